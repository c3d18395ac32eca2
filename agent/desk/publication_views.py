"""What the templates show of publications and their trials: values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agent.acts.trying import Answer, Trial
from agent.desk.views import FieldSet, JobCard
from webarcfs.room.views import Pages


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationLine:
    """A publication in the list. `count` and `last` are of its snapshots."""

    name: str
    href: str
    description: str
    urls: tuple[str, ...]
    interval: str
    next: datetime | None
    retired: bool
    is_running: bool
    count: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class PublicationsPage:
    """`/publications`."""

    rows: tuple[PublicationLine, ...]
    pages: Pages
    query: str
    faults: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class TrialPage:
    """What came of a trial; `runs`: nothing yet. Each of `starts` is a start URL with its redirects."""

    runs: bool
    fault: str
    robots: tuple[Answer, ...]
    starts: tuple[tuple[Answer, ...], ...]
    would: tuple[str, ...]
    number: int
    refused: tuple[tuple[str, int, str], ...]
    is_good: bool

    @classmethod
    def of(cls, found: Trial | None, fault: str, sentences: Mapping[str, str]) -> TrialPage:
        """Return a trial as pages show it; None: it runs, or ended with a fault."""
        if found is None:
            return cls(not fault, fault, (), (), (), 0, (), is_good=False)
        refused = sorted(found.refused.items(), key=lambda each: -each[1])
        return cls(
            runs=False,
            fault="",
            robots=tuple(found.robots),
            starts=tuple(tuple(chain) for chain in found.starts),
            would=tuple(found.would),
            number=found.number,
            refused=tuple((word, count, sentences.get(word, "")) for word, count in refused),
            is_good=found.is_good,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPage:
    """`/publications/<name>`, and `/publications/+new`. `copy` is what a file of its own would say."""

    name: str
    description: str
    sets: tuple[FieldSet, ...]
    state: str
    is_open: bool
    retired: bool
    place: str
    copy: str
    trial: TrialPage | None
    jobs: tuple[JobCard, ...]
    snapshots: str
