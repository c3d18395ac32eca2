"""`notify.db`: what people were told, and the notifications that wait for their delivery.

What was observed and what follows from it are one transaction: a process that is killed has queued all of it or
nothing, and the next one finds the same. A delivery leaves the file after its receiver has taken it. So each receiver
gets a notification at least once, and once more for each process that was killed in between, with the same id.

On a full disk a file that is held in reserve makes room, since that the disk is full is what people must be told.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from agent.notifying.changes import HeldCondition, Known, Notification
from agent.notifying.conditions import AmissCondition, Key
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import NotificationKind
from webarcfs.archive.index.sqlite_file import SqliteFile, journal, translated
from webarcfs.archive.model.errors import DatabaseDamaged
from webarcfs.archive.model.metadata import format_time, parse_time
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import replacing

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
#: Notifications that wait for a target; older ones are given up, which is logged and counted.
MOST_WAITING = 1000
#: Seconds after which what was given up is forgotten.
_FORGOTTEN = 30 * 86400
_RESERVED = 128 << 10
_ROOM_FOR_RESERVE = 8 * _RESERVED
_RESERVE = ".notify.reserve"
_DIGEST, _NUMBER = "digest", "number"


class DeliveryState(StrEnum):
    """How a notification stands with a target."""

    WAITING = "waiting"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True)
class SeenCrawl:
    """The newest report of a publication, or kind of job, that was looked at, and when it captured something last."""

    report: str
    captured: datetime


@dataclass(frozen=True, slots=True)
class WaitingDelivery:
    """A notification that waits for a target, or was given up. `due` is in seconds since 1970."""

    notification: Notification
    target: str
    state: DeliveryState
    tries: int
    due: int
    answer: str


class NotificationStore(SqliteFile):
    """The file of an archive. A context manager, for one thread; several processes may use it at once."""

    def __init__(self, archive: Archive, *, checked: bool = False) -> None:
        """Open or make it; a damaged one is put aside, and that is logged. Raises OSError, Busy.

        `checked` reads all of it for damage first.
        """
        path = archive.notifications
        with contextlib.ExitStack() as opening:
            # One at a time: who opens it while another one makes it would take it for damaged.
            with contextlib.suppress(OSError):  # of a user, or on a disk, that may only be read
                opening.enter_context(locks.exclusive(archive.notifications_opening_lock))
            try:
                self._open(path, checked=checked)
            except DatabaseDamaged:
                aside = path.with_name(f"{path.name}.damaged")
                _log.warning("%s is damaged, and is %s now; what is amiss is told once more", path, aside.name)
                path.replace(aside)
                journal(path).unlink(missing_ok=True)
                self._open(path, checked=False)
        self._reserve = archive.root / _RESERVE

    def _open(self, path: Path, *, checked: bool) -> None:
        super().__init__(path, None)
        try:
            with self._translated():
                self._ready("notify/schema")
            if checked and (findings := self.check()):
                raise DatabaseDamaged(f"{path}: {findings[0]}")
        except BaseException:
            self._connection.close()
            raise

    # -- what people know ------------------------------------------------------------------------------------------

    def take(
        self,
        observe: Callable[
            [Known, Mapping[str, SeenCrawl]], tuple[Known, Mapping[str, SeenCrawl], tuple[Notification, ...]]
        ],
        targets: Iterable[str],
        at: datetime,
    ) -> tuple[Known, tuple[Notification, ...]]:
        """Observe, and keep what follows: what people know then, the crawls that were seen, the notifications to send.

        It is one transaction, and nobody else observes meanwhile. Raises OSError, Busy, and what `observe` raises.
        """

        def work() -> tuple[Known, tuple[Notification, ...]]:
            before, crawls = self.known(), self.crawls()
            after, seen, notifications = observe(before, crawls)
            self._keep(before, after)
            for subject, crawl in seen.items():
                if crawls.get(subject) != crawl:
                    captured = format_time(crawl.captured)
                    self._run("notify/put_crawl", subject=subject, report=crawl.report, captured=captured)
            self._queue(notifications, tuple(targets), at)
            return after, notifications

        return self._change(work)

    def known(self) -> Known:
        """Return what people know."""
        with self._translated():
            facts = {str(name): str(value) for name, value in self._run("notify/facts")}
            held = dict(map(_held, self._run("notify/conditions")))
        digest = facts.get(_DIGEST)
        return Known(held, int(facts.get(_NUMBER, 0)), parse_time(digest) if digest else None)

    def crawls(self) -> dict[str, SeenCrawl]:
        """Return the crawls that were looked at, by publication or kind of job."""
        with self._translated():
            rows = list(self._run("notify/crawls"))
        return {str(subject): SeenCrawl(str(report), parse_time(str(captured))) for subject, report, captured in rows}

    def _keep(self, before: Known, after: Known) -> None:
        for kind, subject in before.held.keys() - after.held.keys():
            self._run("notify/drop_condition", kind=kind, subject=subject)
        for key, held in after.held.items():
            if before.held.get(key) != held:
                self._run("notify/put_condition", **_row(held))
        self._run("notify/put_fact", name=_NUMBER, value=str(after.number))
        if after.digest is not None:
            self._run("notify/put_fact", name=_DIGEST, value=format_time(after.digest))

    # -- deliveries ------------------------------------------------------------------------------------------------

    def _queue(self, notifications: Iterable[Notification], targets: tuple[str, ...], at: datetime) -> None:
        seconds = int(at.timestamp())
        for notification in notifications if targets else ():
            self._run("notify/add", id=notification.id, content=_to_json(notification))
            for target in targets:
                self._run("notify/add_delivery", id=notification.id, target=target, due=seconds)
        for target in targets:
            answer = f"more than {MOST_WAITING} wait"
            given_up = self._run("notify/overflow", target=target, at=seconds, answer=answer, most=MOST_WAITING)
            if given_up.rowcount > 0:
                _log.error("%d notifications for %s were given up: %s", given_up.rowcount, target, answer)

    def next(self, target: str, at: int, longest: int) -> tuple[int, Notification, int] | None:
        """Return the number, the notification and the tries so far of what is due for a target.

        What is due later than `longest` seconds from now is due as well: the clock was set back since.
        """
        with self._translated():
            row = self._run("notify/next", target=target, at=at, latest=at + longest).fetchone()
        return None if row is None else (int(row[0]), _from_json(str(row[1])), int(row[2]))

    def begin(self, number: int, target: str) -> None:
        """Note that a target is told now. Raises OSError on a full disk: that it was told could not be noted either."""
        self._change(lambda: self._run("notify/begin_delivery", number=number, target=target))

    def delivered(self, number: int, target: str) -> None:
        """Forget a notification for a target that has taken it."""

        def work() -> None:
            self._run("notify/delivered", number=number, target=target)
            self._run("notify/sweep")

        self._change(work)

    def failed(self, number: int, target: str, state: DeliveryState, *, tries: int, due: int, answer: str) -> None:
        """Record a try that failed."""
        values = {"state": state, "tries": tries, "due": due, "answer": answer}
        self._change(lambda: self._run("notify/failed", number=number, target=target, **values))

    def sweep(self, targets: Iterable[str], at: int) -> None:
        """Give up what waits for targets that are not set any more, and forget what was given up long ago."""

        def work() -> None:
            known = {str(target) for (target,) in self._run("notify/targets")}
            for target in known - set(targets):
                answer = "it is not in the settings any more"
                given_up = self._run("notify/give_up_target", target=target, at=at, answer=answer).rowcount
                _log.error("%d notifications for %s were given up: %s", given_up, target, answer)
            self._run("notify/sweep_deliveries", before=at - _FORGOTTEN)
            self._run("notify/sweep")

        self._change(work)

    def retry(self, at: int) -> int:
        """Let what was given up wait once more; return how many deliveries these are."""
        return self._change(lambda: self._run("notify/retry", at=at).rowcount)

    def counts(self) -> dict[DeliveryState, int]:
        """Return the number of deliveries by state."""
        with self._translated():
            known = {str(state): int(number) for state, number in self._run("notify/counts")}
        return {state: known.get(state, 0) for state in DeliveryState}

    def listed(self, most: int) -> list[WaitingDelivery]:
        """Return what waits or was given up, oldest first, so many at most."""
        with self._translated():
            rows = list(self._run("notify/listed", most=most))
        return [
            WaitingDelivery(
                _from_json(str(content)), str(target), DeliveryState(state), int(tries), int(due), str(answer)
            )
            for _, content, target, state, tries, due, answer in rows
        ]

    def _change(self, work: Callable[[], _T]) -> _T:
        """Do work in one transaction; on a full disk, once more with the room that is held in reserve."""
        try:
            return self._transaction(work)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._reserve.unlink(missing_ok=True)
            return self._transaction(work)
        finally:
            self._hold_reserve()

    def _transaction(self, work: Callable[[], _T]) -> _T:
        with self._translated():
            self._run("begin")
            with self._connection:
                return work()

    def _hold_reserve(self) -> None:
        """Hold disk space in reserve, unless the disk is as good as full: then others have it."""
        with contextlib.suppress(OSError):
            folder = self._reserve.parent
            if not self._reserve.exists() and shutil.disk_usage(folder).free > _ROOM_FOR_RESERVE:
                with replacing(self._reserve, folder / f"{_RESERVE}.{os.getpid()}-{threading.get_native_id()}") as file:
                    file.write(bytes(_RESERVED))

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translated(self._path):
                yield
        except DatabaseDamaged:  # git has nothing of it
            remedy = "the next `webarc-agent watch`, of a timer or of the agent, puts it aside and makes a new one"
            raise DatabaseDamaged(f"{self._path} is damaged; {remedy}") from None


# -- rows --------------------------------------------------------------------------------------------------------------


def _held(row: tuple[Any, ...]) -> tuple[Key, HeldCondition]:
    kind, subject, since, told, mark, text, job, record = map(str, row)
    condition = AmissCondition(NotificationKind(kind), subject, text, job, record)
    return condition.key, HeldCondition(condition, parse_time(since), mark, parse_time(told) if told else None)


def _row(held: HeldCondition) -> dict[str, str]:
    condition = held.condition
    return {
        "kind": condition.kind,
        "subject": condition.subject,
        "since": format_time(held.since),
        "told": format_time(held.told) if held.told is not None else "",
        "mark": held.mark,
        "text": _storable(condition.text),
        "job": condition.job,
        "record": condition.record,
    }


def _storable(text: str) -> str:
    """Return a text that SQLite takes: names that are no UTF-8 have surrogates."""
    return text.encode("utf-8", "replace").decode()


def _to_json(notification: Notification) -> str:
    return json.dumps(_as_table(notification))


def _as_table(notification: Notification) -> dict[str, Any]:
    table = {field.name: getattr(notification, field.name) for field in dataclasses.fields(notification)}
    times = {name: format_time(table[name]) for name in ("at", "since")}
    return {**table, **times, "parts": [_as_table(part) for part in notification.parts]}


def _from_json(content: str) -> Notification:
    return _from_table(json.loads(content))


def _from_table(table: dict[str, Any]) -> Notification:
    times = {name: parse_time(table[name]) for name in ("at", "since")}
    return Notification(**{**table, **times, "parts": tuple(_from_table(part) for part in table["parts"])})
