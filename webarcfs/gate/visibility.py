"""Decides what readers may see: the rules of records and snapshots. Pure.

- A *snapshot* is what one capture published on a domain. It is open to readers if its record is released and not closed
  any more. Without a record, or while its job has not ended, it is open unless git says `Release: held`.
- A *version* (path, bytes, the snapshots that contain it) is visible if some open snapshot contains it. A snapshot
  contains what its publication saw: the whole tree, or less where several publications share a domain.
- So a page that a held snapshot shares with a released one is visible, since the released one captured it, too.
- What a reader sees of a domain at a time is, for each publication, its newest open snapshot not later than that time;
  of these together, for each path, the newest. Where nothing of a domain is hidden, that is the domain's own state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from webarcfs.archive.catalogue.record import State
from webarcfs.archive.config.interval import Interval


class Standing(Enum):
    """What a snapshot is to a reader."""

    OPEN = "open"
    CLOSED = "closed"  # released, but not before a date
    HIDDEN = "hidden"  # as if it were not there
    DISCARDED = "discarded"  # hidden from staff as well

    @property
    def is_told(self) -> bool:
        """Whether a reader is told that the snapshot is there."""
        return self in {Standing.OPEN, Standing.CLOSED}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a domain, to one reader. `seq` orders the snapshots of a domain; it is their time in seconds.

    `seen` is the tree that its publication saw, empty for the whole tree. `until` is the end of its closure.
    """

    seq: int
    publication: str
    standing: Standing
    seen: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document: in the snapshots from `first` up to `last`, which no longer contains it.

    `blob` is git's id of its body; `stored` is the snapshot whose crawl stored it.
    """

    path: str
    blob: str
    first: int
    last: int
    stored: int


#: Whether a snapshot whose publication saw less than the whole tree saw a version.
Saw = Callable[[Snapshot, Version], bool]


@dataclass(frozen=True, slots=True)
class Open:
    """A reader may see it, as the open snapshot `since` captured it first."""

    since: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A reader may see it from `until` on."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rule forbids it, and says so. `text` is what the rule tells readers; mostly nothing."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """To a reader it is not there."""


Answer = Open | Closed | Blocked | Absent


def standing(
    state: State | None, *, held: bool, closed_for: str, captured: datetime, now: datetime
) -> tuple[Standing, datetime | None]:
    """Return the standing of a snapshot, and the end of its closure. `state` is that of its record; None: it has none.

    `held`: git says that it was not to be shown at once.
    """
    if state is None or state is State.OPEN:
        return (Standing.HIDDEN if held else Standing.OPEN), None
    if state is not State.RELEASED:
        return (Standing.DISCARDED if state is State.DISCARDED else Standing.HIDDEN), None
    until = Interval.parse(closed_for).after(captured) if closed_for else None
    return (Standing.CLOSED, until) if until is not None and now < until else (Standing.OPEN, None)


def may(snapshots: Iterable[Snapshot], version: Version, saw: Saw) -> Open | Closed | Absent:
    """Return whether a reader may see a version, by the snapshots of its domain."""
    closed: list[datetime] = []
    for each in sorted(_containing(snapshots, version, saw), key=lambda each: each.seq):
        if each.standing is Standing.OPEN:
            return Open(each.seq)
        if each.standing is Standing.CLOSED and each.until is not None:
            closed.append(each.until)
    return Closed(min(closed)) if closed else Absent()


def _containing(snapshots: Iterable[Snapshot], version: Version, saw: Saw) -> Iterator[Snapshot]:
    for each in snapshots:
        is_there = version.first <= each.seq < version.last and each.standing.is_told
        if is_there and (not each.seen or saw(each, version)):
            yield each


def newest_open(snapshots: Iterable[Snapshot], seq: int) -> list[Snapshot]:
    """Return what a reader sees of a domain at `seq`: the newest open snapshot of each publication, newest first."""
    found: dict[str, Snapshot] = {}
    for each in sorted(snapshots, key=lambda each: each.seq):
        if each.seq <= seq and each.standing is Standing.OPEN:
            found[each.publication] = each
    return sorted(found.values(), key=lambda each: each.seq, reverse=True)


class Scope:
    """All that a reader may see of a domain, as spans: for filters of many versions at once."""

    def __init__(self, snapshots: Sequence[Snapshot], saw: Saw) -> None:
        self.snapshots = sorted(snapshots, key=lambda each: each.seq)
        self._saw = saw
        shown = [each for each in self.snapshots if each.standing is Standing.OPEN]
        self._whole = [each.seq for each in shown if not each.seen]
        self._partial = [each for each in shown if each.seen]

    @property
    def is_whole(self) -> bool:
        """Whether a reader may see every version of the domain, and every snapshot."""
        return all(each.standing is Standing.OPEN for each in self.snapshots)

    @property
    def is_plain(self) -> bool:
        """Whether the spans of `hidden` alone decide: each open snapshot saw its whole tree."""
        return not self._partial

    def hidden(self) -> list[tuple[int, int | None]]:
        """Return the runs in which no open snapshot saw the whole tree: first snapshot, and the next that did.

        A version from `first` up to `last` is hidden, as far as whole trees go, if some run has first >= run's first
        and last <= run's end; None is no end.
        """
        runs: list[tuple[int, int | None]] = []
        begin: int | None = None
        whole = set(self._whole)
        for each in self.snapshots:
            if each.seq in whole:
                if begin is not None:
                    runs.append((begin, each.seq))
                begin = None
            elif begin is None:
                begin = each.seq
        return [*runs, (begin, None)] if begin is not None else runs

    def shows(self, version: Version) -> bool:
        """Return whether a reader may see a version."""
        place = bisect_left(self._whole, version.first)
        if place < len(self._whole) and self._whole[place] < version.last:
            return True
        return any(version.first <= each.seq < version.last and self._saw(each, version) for each in self._partial)
