"""The result of a commit of additions: progress of each log of the journal, dropped additions, cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webarcfs.archive.model.addition import Addition


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a commit: seconds, and bytes of the trees above the ARCs, which each commit writes once."""

    seconds: float = 0.0
    shared_bytes: int = 0
    additions: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """An addition that did not get into git, with the reason: a crawl took its ARC or place, or it was damaged."""

    log: str
    number: int
    addition: Addition
    reason: str
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """The state of a domain's additions: each log is done up to a number, and git has all that were not dropped.

    `damage`: the spans of each log that could not be read. Git lacks the records in them.
    """

    domain: str
    upto: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    commits: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    damage: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
