"""The collections of an archive as its readers see them: with the crawls that they may see, and with no others.

A collection of which readers see nothing is none for them. What each has is worked out for all at once, when the
catalogue or a collection changed, and is the same for all readers: which crawls lists have does not depend on who asks.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from webarcfs.access.reader_stores import ReaderRecords
from webarcfs.archive.config.collection_files import Collection, CollectionFiles
from webarcfs.archive.config.directory import Archive


@dataclass(frozen=True, slots=True)
class VisibleCollection:
    """A collection, and what readers see of it: the number of its crawls, and the dates of the first and the last.

    `publications` are those of its own that have such crawls. `numbers` are those of the records of its other crawls.
    """

    collection: Collection
    count: int
    first: datetime
    last: datetime
    publications: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CollectionsNow:
    """The collections that readers see, by their names; and the names of those that have a publication, or a record."""

    by_name: Mapping[str, VisibleCollection] = field(default_factory=dict)
    of_publications: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of_numbers: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def of(self, publication: str, number: int) -> list[VisibleCollection]:
        """Return those that a crawl belongs to."""
        names = {*self.of_publications.get(publication, ()), *self.of_numbers.get(number, ())}
        return [self.by_name[name] for name in sorted(names)]


@dataclass(frozen=True, slots=True)
class _Publication:
    """The crawls of a publication that readers see: their number, and the dates of the first and the last."""

    count: int
    first: datetime
    last: datetime


class VisibleCollections:
    """The collections that readers see. For any thread."""

    def __init__(self, archive: Archive) -> None:
        self._files = CollectionFiles(archive)
        self._lock = threading.Lock()
        self._known: tuple[object, CollectionsNow] = ((), CollectionsNow())

    def now(self, records: ReaderRecords) -> CollectionsNow:
        """Return them as they are now. Raises Damaged of the catalogue, SettingsError of the access rules."""
        collections = self._files.now()
        if not collections.by_name:
            return CollectionsNow()
        state = (collections.state, records.commit())
        with self._lock:
            if state != self._known[0]:
                self._known = state, _visible(collections.by_name, records)
            return self._known[1]


def _visible(collections: Mapping[str, Collection], records: ReaderRecords) -> CollectionsNow:
    groups = defaultdict(list)
    for group in records.groups():
        groups[group.publication].append(group)
    publications = {
        name: _Publication(
            sum(group.count for group in parts), min(group.first for group in parts), max(group.last for group in parts)
        )
        for name, parts in groups.items()
    }
    named = records.places({record_id for collection in collections.values() for record_id in collection.crawls})
    visible: dict[str, VisibleCollection] = {}
    of_publications, of_numbers = defaultdict[str, list[str]](list), defaultdict[int, list[str]](list)
    for name, collection in collections.items():
        whole = {one: publications[one] for one in collection.publications if one in publications}
        crawls = [named[one] for one in collection.crawls if one in named and named[one].publication not in whole]
        dates = [crawl.date for crawl in crawls]
        if whole or crawls:
            visible[name] = VisibleCollection(
                collection,
                sum(one.count for one in whole.values()) + len(crawls),
                min([*dates, *(one.first for one in whole.values())]),
                max([*dates, *(one.last for one in whole.values())]),
                tuple(whole),
                tuple(crawl.number for crawl in crawls),
            )
            for one in whole:
                of_publications[one].append(name)
            for crawl in crawls:
                of_numbers[crawl.number].append(name)
    return CollectionsNow(visible, of_publications, of_numbers)
