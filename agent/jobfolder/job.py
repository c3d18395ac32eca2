"""A job as its stages see it: its folder, its publication, its frontier."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from agent.frontier.store import Frontier
from agent.policy.typerules import TypeRules
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Profile, Publication

#: Reports the progress of long work: (name of the work, number done, number known).
Progress = Callable[[str, int, int], None]


class Note(Protocol):
    """Writes fields of the job's item at once."""

    def __call__(self, **facts: Any) -> None:
        """The fields by name."""


def _nothing(**_facts: Any) -> None:
    """Write nothing: nobody keeps an item of this job."""


@dataclass(frozen=True, slots=True)
class ImportedCut:
    """A snapshot of a host, cut out of the captures of an import: its number in its crawl, the time of its first one.

    `sources` are the SHA-256 of the files that it has captures of, `ended` those that no later snapshot has any of.
    `earlier` are the URLs that the crawl saw in snapshots before this one, and not again.
    """

    job: str
    number: int
    time: datetime
    sources: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one publication. `begun` is the start of the crawl (/Cr-4/).

    A crawl of an import publishes one snapshot of a host at a time, `cut`.
    """

    archive: Archive
    name: str
    folder: Path
    publication: Publication
    profile: Profile | None
    frontier: Frontier
    begun: datetime
    accept_shrink: bool = False
    instances: int = 0  # number of wgets that the archive allows over all jobs; 0: as many as this job
    cut: ImportedCut | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress = lambda *_: None
    note: Note = _nothing
    by_agent: bool = False  # whether it ends when it is held, since the agent begins it again

    @property
    def types(self) -> TypeRules:
        """Which types of documents it keeps."""
        return TypeRules.of(self.settings, self.profile)

    @property
    def settings(self) -> CrawlSettings:
        """The crawl settings of the publication."""
        return self.publication.crawl
