"""A job as its stages see it: where it lies, what it was asked to do, and how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agent.frontier.store import Frontier
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Profile, Publication

#: Is told how far a long work is: what is done, how much of it, of how much that is known.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one publication. `begun` is when the crawl began (/Cr-4/).

    An import has `sources`, the SHA-256 of each file that it reads.
    """

    archive: Archive
    name: str
    folder: Path
    publication: Publication
    profile: Profile | None
    frontier: Frontier
    begun: datetime
    accept_shrink: bool = False
    instances: int = 0  # how many wgets the archive allows over all jobs; 0: as many as this job
    sources: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress = lambda *_: None

    @property
    def settings(self) -> CrawlSettings:
        """How this crawl goes."""
        return self.publication.crawl
