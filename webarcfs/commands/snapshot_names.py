"""The names that people give to snapshots, and the snapshot that each one means.

A commitTag names one snapshot. Short names are dates and times (`2019-03`: the state at their end), `latest` and
`latest~2` (the complete snapshots, counted back from the newest), and the beginning of a commitTag that no other one
has. A text that is a date or a time is one; anything else is a beginning. `@` and a host, or a publication, may follow
a date, a time and `latest`. Else what stands beside the name says of which host it is: a URL, or an option.
The number or the name of a record is its crawl's snapshot, the name of a publication that of its newest crawl.

Who sees a part of the archive has names for that part: hidden snapshots neither count nor are listed.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from typing import Protocol

from webarcfs.access.access_rules import Standing
from webarcfs.access.gate import Gate
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_crawl
from webarcfs.archive.catalogue.record import newest_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.index import database, names
from webarcfs.archive.index.names import ListedSnapshot, SnapshotSelection
from webarcfs.archive.model.arc_paths import LONGEST_NAME
from webarcfs.archive.model.errors import Busy, Damaged, NotFound, UsageError
from webarcfs.archive.model.metadata import (
    CommitMessage,
    CommitTag,
    format_time,
    from_epoch,
    parse_compact_time,
    parse_moment,
)

# == names, pure ======================================================================================================


#: Candidates that a message lists.
_LISTED = 10
_LATEST = re.compile(r"latest(?:~(?P<back>\d{1,9}))?(?:@(?P<of>.+))?", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest complete snapshot, or the one that is so many before it; `of` a host or publication, if named."""

    back: int
    of: str = ""


@dataclass(frozen=True, slots=True)
class StateAt:
    """The newest snapshot that is not later than a time; `of` a host or publication, if it is named."""

    end: datetime
    of: str = ""


@dataclass(frozen=True, slots=True)
class TagBeginning:
    """The only snapshot whose commitTag begins with a text."""

    text: str


SnapshotName = CommitTag | Latest | StateAt | TagBeginning


def parse_name(text: str) -> SnapshotName:
    """Return what a name of a snapshot says. Raises UsageError for `latest` with what is no number behind it."""
    if match := _LATEST.fullmatch(text):
        return Latest(int(match["back"] or 0), match["of"] or "")
    if text.startswith("latest~"):
        raise UsageError(f"{text!r}: behind ~ stands a number, as in latest~1, the complete snapshot before the latest")
    with suppress(Damaged):
        return CommitTag.parse(text)
    time, _, of = text.partition("@")
    if of or "@" not in text:
        with suppress(Damaged):
            if isinstance(end := parse_moment(time), datetime):
                return StateAt(end, of)
    return TagBeginning(text)


def names_host(text: str) -> bool:
    """Return whether a name says itself of which host, or publication, it is."""
    name = parse_name(text)
    return isinstance(name, CommitTag) or (isinstance(name, Latest | StateAt) and bool(name.of))


def number_up_to(seqs: Sequence[int], end: datetime) -> int:
    """Return how many snapshots, given by their times in order, are not later than a time."""
    return bisect_right(seqs, end.timestamp())


def listed(heading: str, candidates: Sequence[object]) -> str:
    """Return a message that lists the first candidates, a line each, and counts the others."""
    lines = [heading, *(f"  {candidate}" for candidate in candidates[:_LISTED])]
    if len(candidates) > _LISTED:
        lines.append(f"  and {len(candidates) - _LISTED:,} more")
    return "\n".join(lines)


# == snapshots ========================================================================================================


@dataclass(frozen=True, slots=True)
class CrawlFacts:
    """What a name may depend on: the publication of a snapshot's crawl, and whether that was complete."""

    publication: str
    is_complete: bool


class KnownSnapshots(Protocol):
    """The snapshots of an archive, wherever it is, as names are resolved by them."""

    def has_host(self, host: str) -> bool:
        """Return whether there is a snapshot of a host."""

    def hosts(self) -> list[str]:
        """Return the hosts with snapshots, in order."""

    def hosts_of(self, publication: str) -> list[str]:
        """Return the hosts of which a publication has snapshots, in order."""

    def publications(self) -> list[str]:
        """Return the publications with snapshots, in order."""

    def seqs(self, host: str) -> list[int]:
        """Return the times of a host's snapshots, oldest first; none for an unknown host."""

    def newest_first(
        self, host: str, publication: str = "", until: datetime | None = None
    ) -> Iterator[tuple[int, CrawlFacts]]:
        """Yield the snapshots of a host with what is known of them, newest first; of a publication; up to a time."""

    def message(self, host: str, seq: int) -> CommitMessage | None:
        """Return the message of a crawl's commit; None if it is not known."""

    def beginning(self, text: str, host: str = "") -> list[CommitTag]:
        """Return the snapshots whose commitTags begin with a text, newest first; of one host, or of all."""

    def of_crawl(self, text: str) -> list[CommitTag]:
        """Return the snapshots of the crawl that a record's number or name, or a publication, means, in order."""


class VisibleSnapshots:
    """The snapshots of an archive for whoever asks: those of git, but for what a gate hides. For one thread.

    webarc.db is asked for what it knows of them; without it, their commits are.
    """

    def __init__(self, archive: Archive, gate: Gate | None) -> None:
        self._archive = archive
        self._gate = gate
        self._seqs: dict[str, list[int]] = {}
        self._open: tuple[str, Repository] | None = None

    def has_host(self, host: str) -> bool:
        """Return whether there is a snapshot of a host."""
        return bool(self.seqs(host))

    def hosts(self) -> list[str]:
        """Return the hosts with snapshots, in order."""
        return [host for host in self._archive.domains() if self.seqs(host)]

    def hosts_of(self, publication: str) -> list[str]:
        """Return the hosts of which a publication has snapshots, in order."""
        try:
            hosts = database.domains_of(self._archive.database, publication)
        except (NotFound, Damaged, Busy):
            hosts = [*self._archive.domains()]
        return [host for host in hosts if next(self.newest_first(host, publication), None) is not None]

    def publications(self) -> list[str]:
        """Return the publications with snapshots, in order."""
        return sorted({facts.publication for host in self.hosts() for _, facts in self.newest_first(host)})

    def seqs(self, host: str) -> list[int]:
        """Return the times of a host's snapshots, oldest first; none for an unknown host."""
        if host not in self._seqs:
            self._seqs[host] = self._read(host)
        return self._seqs[host]

    def _read(self, host: str) -> list[int]:
        if not host or "/" in host or len(host.encode()) > LONGEST_NAME or not self._archive.repository(host).is_dir():
            return []
        if self._gate is not None:
            return [shown.seq for shown in self._gate.snapshots(host) if shown.standing is Standing.OPEN]
        times = map(parse_compact_time, self._store(host).ref_names(CRAWLS))
        return sorted(int(time.timestamp()) for time in times)

    def newest_first(
        self, host: str, publication: str = "", until: datetime | None = None
    ) -> Iterator[tuple[int, CrawlFacts]]:
        """Yield the snapshots of a host with what is known of them, newest first; of a publication; up to a time."""
        seqs = self.seqs(host)
        seqs = seqs if until is None else seqs[: number_up_to(seqs, until)]
        rows = self._rows(host, seqs[-1]) if seqs else iter(())
        row = next(rows, None)
        for seq in reversed(seqs):
            while row is not None and row.seq > seq:
                row = next(rows, None)
            facts = CrawlFacts(row.publication, row.is_complete) if row is not None and row.seq == seq else None
            if facts is None and (message := self.message(host, seq)) is not None:
                facts = CrawlFacts(message.publication, message.complete)
            if facts is not None and publication in ("", facts.publication):
                yield seq, facts

    def _rows(self, host: str, newest: int) -> Iterator[ListedSnapshot]:
        with suppress(NotFound, Damaged, Busy):  # without webarc.db the commits say it
            chosen = SnapshotSelection(host, until=format_time(from_epoch(newest)))
            yield from names.list_snapshots(self._archive.database, chosen)

    def message(self, host: str, seq: int) -> CommitMessage | None:
        """Return the message of a crawl's commit; None if it has gone."""
        store = self._store(host)
        target = store.ref(tag_of(host, seq).ref)
        commit = sequence.crawl_commit(store, target) if target is not None else None
        return None if commit is None else commit.message

    def _store(self, host: str) -> Repository:
        if self._open is None or self._open[0] != host:  # one is asked again and again
            self._open = host, Repository(self._archive.repository(host))
        return self._open[1]

    def beginning(self, text: str, host: str = "") -> list[CommitTag]:
        """Return the snapshots whose commitTags begin with a text, newest first; of one host, or of all."""
        if host:
            tags = [tag_of(host, seq) for seq in reversed(self.seqs(host)) if begins(host, seq, text)]
        else:
            try:
                texts = names.tags_beginning(self._archive.database, text)
                tags = [tag for tag in map(CommitTag.parse, texts) if self.has(tag.domain, seq_of(tag))]
            except (NotFound, Damaged, Busy):
                tags = [tag for host in self._archive.domains() for tag in self.beginning(text, host)]
        return sorted(tags, key=lambda tag: (-tag.crawl_time.timestamp(), tag.domain))

    def of_crawl(self, text: str) -> list[CommitTag]:
        """Return the snapshots of the crawl that a record's number or name, or a publication, means, in order.

        None of a crawl, or of its hosts, that is hidden. Those with pages alone, where it has some.
        """
        shown = None if self._gate is None else self._gate.records
        try:
            parts = look_up_crawl(self._archive, Catalogue(self._archive), text, shown).parts
        except (NotFound, Damaged, Busy):
            return []
        visible = [part for part in parts if self.has(part.tag.domain, seq_of(part.tag))]
        tags = {part.tag for part in visible if not part.is_resource} or {part.tag for part in visible}
        return sorted(newest_of(tags), key=lambda tag: tag.domain)

    def has(self, host: str, seq: int) -> bool:
        """Return whether there is a snapshot of a host at a time."""
        seqs = self.seqs(host)
        place = bisect_left(seqs, seq)
        return place < len(seqs) and seqs[place] == seq

    def is_whole(self, host: str) -> bool:
        """Return whether nothing of a host is hidden."""
        if self._gate is None:
            return True
        is_open = all(shown.standing is Standing.OPEN for shown in self._gate.snapshots(host))
        return is_open and (self._gate.is_staff or self._gate.shows_all_of([host]))


def seq_of(tag: CommitTag) -> int:
    """Return the time of a snapshot in seconds since 1970."""
    return int(tag.crawl_time.timestamp())


def tag_of(host: str, seq: int) -> CommitTag:
    """Return the commitTag of a host's snapshot."""
    return CommitTag(from_epoch(seq), host)


def begins(host: str, seq: int, text: str) -> bool:
    """Return whether the commitTag of a snapshot begins with a text."""
    return str(tag_of(host, seq)).startswith(text)


# == resolving ========================================================================================================


@dataclass(frozen=True, slots=True)
class Beside:
    """What is said beside a name: a host, by a URL or an option, and a publication; empty: nothing."""

    host: str = ""
    publication: str = ""


#: Hosts of which it is looked up whether they have pages; and imports that are looked for among the newest snapshots.
_LOOKED_AT, _NEWEST = 200, 1_000


def resolve(text: str, snapshots: KnownSnapshots, beside: Beside) -> CommitTag:
    """Return the snapshot of a name. A whole commitTag is returned as it is, whether or not there is such a snapshot.

    Raises UsageError for a name of several snapshots, which it lists, or of an unknown kind, NotFound for one of none.
    """
    name = parse_name(text)
    if isinstance(name, TagBeginning):
        if tags := snapshots.of_crawl(text):
            return _only_of_crawl(text, tags, beside.host)
        return _only(text, snapshots.beginning(text, beside.host), beside.host)
    if isinstance(name, CommitTag):
        if snapshots.has_host(name.domain):
            return name
        if tags := snapshots.beginning(text):  # its host is cut
            return _only(text, tags, "")
        if not snapshots.hosts_of(name.domain):
            return name
        name = StateAt(name.crawl_time, name.domain)  # of a publication
    host, publication = _host_and_publication(text, name.of, snapshots, beside, name)
    return _of_host(text, name, snapshots, host, publication)


def _only_of_crawl(text: str, tags: Sequence[CommitTag], host: str) -> CommitTag:
    """Return the snapshot of a crawl, of a host if one is named. Raises UsageError for a crawl of several."""
    tags = [tag for tag in tags if tag.domain == host] or tags
    if len(tags) == 1:
        return tags[0]
    raise UsageError(listed(f"{text} is a crawl of {len(tags):,} hosts; take one of these:", tags))


def newer_than_latest(text: str, tag: CommitTag, snapshots: VisibleSnapshots, beside: Beside) -> list[CommitTag]:
    """Return the snapshots that are newer than the one that `latest` means, newest first; none for another name.

    They are of crawls that are not complete, as those are that save a page.
    """
    name = parse_name(text)
    if not isinstance(name, Latest) or name.back:
        return []
    publication = beside.publication if name.of.lower() in ("", tag.domain) else name.of
    rows = snapshots.newest_first(tag.domain, publication)
    return [tag_of(tag.domain, seq) for seq, _ in takewhile(lambda row: row[0] > seq_of(tag), rows)]


def _only(text: str, tags: Sequence[CommitTag], host: str) -> CommitTag:
    if len(tags) == 1:
        return tags[0]
    if tags:
        raise UsageError(listed(f"{text!r} begins {len(tags):,} commitTags; write more of one:", tags))
    of_host = f" of {host}" if host else ""
    raise UsageError(
        f"{text!r} is no commitTag and no time, and no commitTag{of_host} begins so; `webarc snapshots` lists them; "
        "2026-11-21, 2026-11, latest and latest~1 are names, too, and so is a crawl's number in `webarc-agent crawls`"
    )


def _host_and_publication(
    text: str, of: str, snapshots: KnownSnapshots, beside: Beside, name: Latest | StateAt
) -> tuple[str, str]:
    """Return the host that a name is of, and the publication if one is named. Raises UsageError, NotFound."""
    if of and snapshots.has_host(of):
        return of, beside.publication
    if of and snapshots.has_host(of.lower()):
        return of.lower(), beside.publication
    publication = of or beside.publication
    if beside.host and not of:
        return beside.host, publication
    hosts = snapshots.hosts_of(publication) if publication else snapshots.hosts()
    if publication and not hosts:
        raise NotFound(unknown_name(publication, snapshots))
    if not hosts:
        raise NotFound("the archive has no snapshot that can be shown")
    if publication and beside.host in hosts:
        return beside.host, publication
    hosts = _with_pages(hosts, snapshots)
    if len(hosts) == 1:
        return hosts[0], publication
    tags = [_find(name, snapshots, host, publication) for host in hosts[:_LISTED]]
    shown = [str(tag) for tag in tags if tag is not None] or hosts[:_LISTED]
    whose = f"publication {publication}" if publication else "the archive"
    raise UsageError(
        listed(
            f"{text!r} is of no host, and {whose} has {len(hosts):,}; write one behind @, or take one of these:",
            [*shown, *hosts[_LISTED:]],
        )
    )


def _with_pages(hosts: list[str], snapshots: KnownSnapshots) -> list[str]:
    """Return the hosts with pages, if there are any: others have only what these pages need."""
    if not 1 < len(hosts) <= _LOOKED_AT:
        return hosts
    newest = ((host, snapshots.message(host, snapshots.seqs(host)[-1])) for host in hosts)
    return [host for host, message in newest if message is None or message.has_pages] or hosts


def unknown_name(word: str, snapshots: KnownSnapshots) -> str:
    """Return the message for what is neither a host nor a publication, with names like it."""
    known = [*snapshots.hosts(), *snapshots.publications()]
    close = difflib.get_close_matches(word, known, 3) or [name for name in known if word in name][:3]
    question = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"the archive has no host and no publication {word!r}{question}"


def _of_host(text: str, name: Latest | StateAt, snapshots: KnownSnapshots, host: str, publication: str) -> CommitTag:
    tag = _find(name, snapshots, host, publication)
    if tag is not None:
        return tag
    whose = f"{host} has" if not publication else f"publication {publication} has, of {host},"
    rows = list(snapshots.newest_first(host, publication))
    if not rows:
        raise NotFound(f"{whose} no snapshot that can be shown")
    if isinstance(name, StateAt):
        raise NotFound(f"{whose} no snapshot up to {text.partition('@')[0]}; the first is {tag_of(host, rows[-1][0])}")
    if counting := list(_counting(snapshots, host, publication)):
        number = f"{len(counting):,} snapshot{'s' * (len(counting) > 1)} that latest counts"
        raise NotFound(f"{whose} {number}; the first is {tag_of(host, counting[-1])}")
    raise NotFound(f"{whose} no complete snapshot; the newest is {tag_of(host, rows[0][0])}")


def _find(name: Latest | StateAt, snapshots: KnownSnapshots, host: str, publication: str) -> CommitTag | None:
    """Return the snapshot of a host, and of a publication if one is named; None without one."""
    if isinstance(name, StateAt):
        seq = next((seq for seq, _ in snapshots.newest_first(host, publication, name.end)), None)
    else:
        seq = next(islice(_counting(snapshots, host, publication), name.back, None), None)
    return None if seq is None else tag_of(host, seq)


def _counting(snapshots: KnownSnapshots, host: str, publication: str) -> Iterator[int]:
    """Yield the snapshots that `latest` counts, newest first: the complete ones.

    Of imports nobody may know whether they are complete. Where a host has no complete snapshot, they count.
    """
    rows = snapshots.newest_first(host, publication)
    complete = (seq for seq, facts in rows if facts.is_complete)
    newest = next(complete, None)
    if newest is not None:
        yield newest
        yield from complete
        return
    for seq, _ in islice(snapshots.newest_first(host, publication), _NEWEST):
        message = snapshots.message(host, seq)
        if message is not None and message.is_import:
            yield seq
