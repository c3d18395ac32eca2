"""What is amiss in an archive, judged from what is known of it: for notifications, for `watch` and for the desk. Pure.

A condition lasts, as a disk that is nearly full; or it is an end of a job beside the schedule, which is told once.
`Observation` is all that holds at one time. What could not be judged then, as the records of a damaged catalogue, is
named, since it is not over because of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from agent.crawl.vocabulary import TOO_FEW
from agent.maintenance import backup_mark
from webarcfs.archive.catalogue.record import OCCASION, PAGE, PATCH, is_import
from webarcfs.archive.config.settings import SAVED, NotificationKind, Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import parse_time

#: A condition is known by its kind and by what it is about: a publication, a kind of job, a record, or the archive.
Key = tuple[NotificationKind, str]
#: What is about a publication: it ends without a word if that is not crawled any more.
OF_PUBLICATION = frozenset({
    NotificationKind.CRAWL_FAILED, NotificationKind.CRAWL_INCOMPLETE, NotificationKind.CRAWL_SHRANK,
    NotificationKind.NOTHING_CAPTURED,
})  # fmt: skip
#: What a person ends by deciding: nobody has to be told of that.
ENDED_BY_PEOPLE = frozenset({NotificationKind.CHECK_FAILED, NotificationKind.WAITS_FOR_RELEASE})
#: Free space below which a disk is nearly full, where no setting says it: bytes, and share of the whole.
_LITTLE, _SHARE = 2 << 30, 0.05
#: Intervals after which a publication that captured nothing is reported.
_INTERVALS = 2
_MOST_NAMED = 5
#: What jobs beside the schedule are called; all others are imports.
_BESIDE = {OCCASION: "the crawl on an occasion of", PATCH: "the patch of a crawl of"}


@dataclass(frozen=True, slots=True)
class AmissCondition:
    """Something that is amiss: its kind, what it is about, a sentence, and the job or record where there is one.

    `since` is when it began, where that is known: as the end of a crawl. It makes no other condition of it.
    """

    kind: NotificationKind
    subject: str
    text: str
    job: str = ""
    record: str = ""
    lasts: bool = True
    since: datetime | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        """By what it is known as long as it lasts."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is amiss at a time.

    `passing` was so since the last observation, and may be over. `unsure` can neither be said to be so nor to be over.
    `publications` are those that are crawled by the schedule.
    """

    at: datetime
    amiss: tuple[AmissCondition, ...] = ()
    passing: tuple[AmissCondition, ...] = ()
    unsure: frozenset[Key] = frozenset()
    unsure_kinds: frozenset[NotificationKind] = frozenset()
    publications: frozenset[str] = frozenset()

    def is_unsure(self, key: Key) -> bool:
        """Return whether a condition can neither be said to be so nor to be over."""
        return key in self.unsure or key[0] in self.unsure_kinds


# -- the archive -------------------------------------------------------------------------------------------------------


def is_disk_low(free: int, total: int, bound: int) -> bool:
    """Return whether a disk has less free bytes than `bound`; 0 is the bound of its size."""
    return free < (bound or min(_LITTLE, int(total * _SHARE)))


class BackupState(Enum):
    """How a backup is that the settings want."""

    GOOD = "good"
    MISSING = "missing"
    OLD = "old"


def backup_state(mark: Mapping[str, Any] | None, at: datetime, age: Interval) -> BackupState:
    """Return how a backup with this mark is at a time, by the last whole one; None: there is no mark."""
    if mark is None:
        return BackupState.MISSING
    finished = backup_mark.last_finished(mark)
    return BackupState.GOOD if finished is not None and age.after(finished) > at else BackupState.OLD


def lacks_agent(publications: Iterable[Publication], *, agent_runs: bool) -> bool:
    """Return whether an archive has something to crawl, and no agent."""
    return not agent_runs and any(not publication.retired for publication in publications)


def of_archive(
    *, free: int, total: int, disk_bound: int, is_agent_missing: bool, is_index_behind: bool,
    backup: BackupState = BackupState.GOOD, damage: datetime | None = None,
) -> Iterator[AmissCondition]:  # fmt: skip
    """Yield what is amiss with the archive as a whole; `damage` is when something of it could not be read."""
    if is_agent_missing:
        yield AmissCondition(NotificationKind.AGENT_DOWN, "", "no agent runs, so nothing is crawled")
    if is_disk_low(free, total, disk_bound):
        text = f"the disk of the archive is nearly full: {free // 1_000_000} MB are left"
        yield AmissCondition(NotificationKind.DISK_LOW, "", text)
    if backup is not BackupState.GOOD:
        text = "there is no backup" if backup is BackupState.MISSING else "the backup is old"
        yield AmissCondition(NotificationKind.BACKUP_OLD, "", text)
    if is_index_behind:
        yield AmissCondition(NotificationKind.INDEX_BEHIND, "", "the full-text index is behind what is archived")
    if damage is not None:
        yield AmissCondition(NotificationKind.DAMAGED, "", "something in the archive could not be read", since=damage)


# -- crawls ------------------------------------------------------------------------------------------------------------


def called(subject: str, page: str = "") -> str:
    """Return what a job of a publication, or of a kind beside the schedule, is called; `page` is the URL it saves."""
    publication, sign, rest = subject.partition("+")
    if not sign:
        return f"the crawl of {publication}"
    if sign + rest == PAGE:
        return f"the saved page {page or f'of {publication.removeprefix(SAVED)}'}"
    return f"{_BESIDE.get(sign + rest, 'the import into')} {publication}"


def of_report(
    subject: str, summary: Mapping[str, Any], warnings: Sequence[str] = (), *, lasts: bool = True
) -> Iterator[AmissCondition]:
    """Yield what is amiss with a crawl by its summary.json: it is incomplete, or found much less than the one before.

    `subject` is its publication, or the kind of its job; `warnings` are those of its item, as of start URLs that gave
    nothing. Single pages that failed make no crawl incomplete; its report counts them. Files do not tell whether the
    crawl that an import takes in was complete, so an import without a reason is nothing amiss.
    """
    is_complete = summary.get("complete") is not False
    if is_import(subject) and not any(reason for _, reason in _reasons(summary)):
        is_complete = True
    if is_complete and not warnings:
        return
    job, what = str(summary.get("job", "")), called(subject, str(summary.get("page", "")))
    ended = _time(summary.get("finished"))
    reasons = {} if is_complete else {str(host): str(reason) for host, reason in _reasons(summary)}
    shrunk = [host for host, reason in reasons.items() if reason.startswith(TOO_FEW)]
    if shrunk:
        text = f"{what} found much less than before, and removed nothing: {_named(shrunk, reasons)}"
        yield AmissCondition(NotificationKind.CRAWL_SHRANK, subject, text, job, lasts=lasts, since=ended)
    others = [host for host in reasons if host not in shrunk]
    if others or not shrunk:
        why = _named(others, reasons) or _first(list(warnings), "lines")
        text = f"{what} is incomplete{f': {why}' if why else ''}"
        yield AmissCondition(NotificationKind.CRAWL_INCOMPLETE, subject, text, job, lasts=lasts, since=ended)


def _time(text: object) -> datetime | None:
    """Return a time of a report or job; None for what is none."""
    with suppress(Damaged):
        return parse_time(str(text))
    return None


def _reasons(summary: Mapping[str, Any]) -> Iterator[tuple[object, object]]:
    for host in summary.get("hosts") or ():
        if isinstance(host, dict) and not host.get("complete", True):
            yield host.get("host", ""), host.get("reason", "")


def _named(hosts: list[str], reasons: Mapping[str, str]) -> str:
    return _first([f"{host} ({reasons[host]})" if reasons[host] else host for host in hosts], "hosts")


def _first(texts: list[str], what: str) -> str:
    more = len(texts) - _MOST_NAMED
    return "; ".join([*texts[:_MOST_NAMED], *([f"{more} more {what}"] if more > 0 else [])])


def captured_something(summary: Mapping[str, Any]) -> bool:
    """Return whether a crawl fetched any document, by its summary.json."""
    documents = summary.get("documents")
    return bool(summary.get("commit_tags")) or (isinstance(documents, dict) and any(documents.values()))


def failed_job(
    subject: str, job: str, reason: str, failures: int, *, updated: str = "", page: str = ""
) -> AmissCondition:
    """Return the condition of a job that failed, or died, so many times in a row; `page` is the URL that it saves."""
    times = f" {failures} times in a row" if failures > 1 else ""
    text = f"{called(subject, page)} failed{times}: {reason or 'its process ended without a word'}"
    return AmissCondition(NotificationKind.CRAWL_FAILED, subject, text, job, since=_time(updated))


def has_captured_nothing(publication: Publication, since: datetime, at: datetime) -> AmissCondition | None:
    """Return the condition of a publication that captured last, or was new, at `since`; None if that is not long ago.

    One whose first crawl is still to come has the time of two intervals from then on.
    """
    begin = max(since, publication.start) if publication.start is not None else since
    end = begin
    for _ in range(_INTERVALS):
        end = publication.crawl.interval.after(end)
    if at <= end:
        return None
    text = f"nothing was captured of {publication.name} for two intervals of {publication.crawl.interval}"
    return AmissCondition(NotificationKind.NOTHING_CAPTURED, publication.name, text)


def waits(
    record: str, title: str, *, has_passed: bool, must_wait: bool = True, since: datetime | None = None
) -> AmissCondition:
    """Return the condition of a crawl that waits for a decision, or whose check found something, since its end."""
    if has_passed:
        text = f"a crawl waits for its release: {title}"
        return AmissCondition(NotificationKind.WAITS_FOR_RELEASE, record, text, record=record, since=since)
    text = f"the check of a crawl found something{', and it waits' if must_wait else ''}: {title}"
    return AmissCondition(NotificationKind.CHECK_FAILED, record, text, record=record, since=since)


def longer_than(since: datetime, at: datetime, bound: timedelta) -> bool:
    """Return whether something has been so for longer than a bound; a clock that was set back makes it no longer."""
    return at - since >= bound
