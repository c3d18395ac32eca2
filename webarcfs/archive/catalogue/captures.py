"""The captures of an archive, as git tells them: which crawls' commits one job made, and what it saw.

A commit of layout 2 names its job. Of older ones those of the same publication and time are one job, whose name these
two are; imports are one by the same files. Nothing else is read: no report, no catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from webarcfs.archive.catalogue.record import Part
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Commit, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import compact_time, from_epoch


@dataclass(frozen=True, slots=True)
class CapturedPart:
    """A crawl's commit on a domain, with what tells its job."""

    part: Part
    job: str
    publication: str
    sources: tuple[str, ...]
    time: int
    sequence: int

    @property
    def key(self) -> tuple[str, ...]:
        """What the commits of one job have in common, and no others."""
        if self.job:
            return (self.job,)
        if self.sources:
            return (self.publication, *sorted(self.sources))
        return (self.publication, str(self.time))


@dataclass(frozen=True, slots=True)
class Capture:
    """What one job published: its parts in the order of the feed. `is_import`: it read files, and fetched nothing."""

    job: str
    publication: str
    parts: tuple[Part, ...]
    sequence: int  # of its first part
    is_import: bool

    @property
    def is_complete(self) -> bool:
        """Whether all its parts are complete."""
        return all(part.complete for part in self.parts)


def captures(archive: Archive) -> Iterator[Capture]:
    """Yield all captures of an archive, in the order of the feed; skips what cannot be read."""
    jobs: dict[tuple[str, ...], list[CapturedPart]] = {}
    for domain in archive.domains():
        for each in _parts(archive, domain):
            jobs.setdefault(each.key, []).append(each)
    found = (_capture(sorted(parts, key=lambda each: each.sequence)) for parts in jobs.values())
    return iter(sorted(found, key=lambda each: each.sequence))


def _parts(archive: Archive, domain: str) -> Iterator[CapturedPart]:
    with suppress(NotFound, Damaged):  # `verify` reports it
        store = Repository(archive.repository(domain))
        for name in store.ref_names(CRAWLS):
            with suppress(Damaged):
                target = store.ref(f"{CRAWLS}{name}")
                commit = sequence.crawl_commit(store, target) if target is not None else None
                if commit is not None:
                    yield _part(commit)


def _part(commit: Commit) -> CapturedPart:
    message = commit.message
    part = Part(message.tag, message.complete, message.seen, message.is_held)
    sources = tuple(message.all("Source"))
    return CapturedPart(part, message.job, message.publication, sources, commit.time, message.sequence)


def _capture(parts: list[CapturedPart]) -> Capture:
    first = parts[0]
    job = first.job or f"{compact_time(from_epoch(first.time))}-{first.publication}"
    return Capture(job, first.publication, tuple(each.part for each in parts), first.sequence, bool(first.sources))
