"""The captures of an archive, as git tells them: which crawls' commits one job made, and what it saw.

A commit of layout 2 names its job. Of older ones those of the same publication and time are one job, whose name these
two are; imports are one by the same files. Nothing else is read: no report, no catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from webarcfs.archive.catalogue.record import OWN, Part
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, PUBLICATIONS, Commit, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag, compact_time, from_epoch


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
    """What one job published: its parts in the order of the feed. `is_import`: it read files, and fetched nothing.

    `last` is the number in the feed of its last part, `sequence` of its first.
    """

    job: str
    publication: str
    parts: tuple[Part, ...]
    sequence: int
    last: int
    is_import: bool

    @property
    def is_complete(self) -> bool:
        """Whether the last of its parts on each domain is complete."""
        return all({part.tag.domain: part.complete for part in self.parts}.values())

    @property
    def is_held(self) -> bool:
        """Whether readers were not allowed to see it at once."""
        return any(part.is_held for part in self.parts)


def captures(archive: Archive, tags: Iterable[CommitTag] | None = None) -> list[Capture]:
    """Return the captures of an archive, or those of some commitTags, in the order of the feed.

    Skips what cannot be read: `verify` reports it.
    """
    jobs: dict[tuple[str, ...], list[CapturedPart]] = {}
    for each in _all_parts(archive) if tags is None else _named_parts(archive, tags):
        jobs.setdefault(each.key, []).append(each)
    found = (_capture(sorted(parts, key=lambda each: each.sequence)) for parts in jobs.values())
    return sorted(found, key=lambda each: each.sequence)


def _all_parts(archive: Archive) -> Iterator[CapturedPart]:
    for domain in archive.domains():
        with suppress(NotFound, Damaged):
            store = Repository(archive.repository(domain))
            for name in store.ref_names(CRAWLS):
                yield from _at(store, f"{CRAWLS}{name}")


def _named_parts(archive: Archive, tags: Iterable[CommitTag]) -> Iterator[CapturedPart]:
    stores: dict[str, Repository] = {}
    for tag in tags:
        with suppress(NotFound, Damaged):
            if tag.domain not in stores:
                stores[tag.domain] = Repository(archive.repository(tag.domain))
            yield from _at(stores[tag.domain], tag.ref)


def _at(store: Repository, ref: str) -> Iterator[CapturedPart]:
    with suppress(Damaged):
        target = store.ref(ref)
        commit = sequence.crawl_commit(store, target) if target is not None else None
        if commit is not None:
            yield _part(store, commit)


def part_of(store: Repository, commit: Commit) -> Part:
    """Return what a crawl's commit published. Of layout 1 git tells no seen tree: then each publication saw its own."""
    message = commit.message
    seen = message.seen
    if not seen and not message.job and len(_publications(store)) > 1:
        seen = OWN
    return Part(message.tag, message.complete, seen, message.is_held)


def _publications(store: Repository) -> set[str]:
    """Return the publications that ever published on a domain."""
    found = set(store.ref_names(PUBLICATIONS))
    for target in store.refs(CRAWLS).values() if len(found) <= 1 else ():
        with suppress(Damaged):
            commit = sequence.crawl_commit(store, target)
            found |= {commit.message.publication} if commit is not None else set()
    return found


def _part(store: Repository, commit: Commit) -> CapturedPart:
    message = commit.message
    part = part_of(store, commit)
    sources = tuple(message.all("Source"))
    return CapturedPart(part, message.job, message.publication, sources, commit.time, message.sequence)


def _capture(parts: list[CapturedPart]) -> Capture:
    first = parts[0]
    job = first.job or f"{compact_time(from_epoch(first.time))}-{first.publication}"
    shown = tuple(each.part for each in parts)
    return Capture(job, first.publication, shown, first.sequence, parts[-1].sequence, bool(first.sources))
