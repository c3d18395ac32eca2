"""Additions become commits: what the logs of all mounts hold for a domain, exactly once (DESIGN.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from webarcfs.archive.additions import Addition
from webarcfs.archive.directory import Archive
from webarcfs.archive.pace import Cost
from webarcfs.archive.store import Store


@dataclass(frozen=True, slots=True)
class Dropped:
    """An addition that did not get into git, and why: its ARC was replaced, or a page needs its name."""

    log: str
    number: int
    addition: Addition
    reason: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The state of a domain's additions: each log is done up to a number, and git has what was not dropped."""

    domain: str
    upto: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    commits: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)


def judge(store: Store, tree: str, addition: Addition) -> None:
    """Check an addition against a domain's state, main's tree: `close` does, under the domain's shared lock.

    Raises Stale when the ARC is not the version that it was made for (/Ar-10/), Exists when its name is taken,
    NotPermitted where no addition may be.
    """
    raise NotImplementedError


def commit_additions(archive: Archive, domain: str) -> Committed:
    """Commit what is pending for a domain in the logs of all mounts, living or dead. Takes the domain's locks.

    Raises OSError on a full disk, Damaged when the repository cannot be used; then nothing has happened.
    """
    raise NotImplementedError


def fold_in(archive: Archive, store: Store, domain: str) -> Committed:
    """The same for a caller who holds the domain's lock alone: a publication, right before its swap."""
    raise NotImplementedError


def replay(archive: Archive) -> list[Committed]:
    """Commit what dead mounts left, and remove their logs; mounts and agents call it when they start.

    What cannot be read is reported and set aside. A log in use, or of a newer version, is left alone.
    """
    raise NotImplementedError
