"""A collection as a query: what its publications stored, and what its own crawls have.

A reader asks for a collection as the reading room shows it: with the crawls that the reader may see. For staff it has
all that its file names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tantivy import Query

from webarcfs.access.gate import Gate
from webarcfs.access.reader_collections import VisibleCollections
from webarcfs.access.reader_stores import ReaderRecords
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import collection_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, TooMany
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import clocks
from webarcfs.search.translation import Translator

#: Crawls that a collection may name by themselves for a search: each is a span of its own in the query.
MOST_CRAWLS = 2_000


class SearchedCollections:
    """The collections of an archive for searches by one asker. For one thread."""

    def __init__(self, archive: Archive, gate: Gate | None, visible: VisibleCollections | None = None) -> None:
        """`visible` are those of a server, which all of its searches share."""
        self._archive = archive
        self._gate = gate
        self._visible = visible or VisibleCollections(archive)

    def query(self, make: Translator, name: str) -> Query:
        """Return the query of a collection. Raises NotFound for one that is not there for the asker, TooMany."""
        publications, tags = self._members(name)
        seqs: dict[str, list[int]] = defaultdict(list)
        for tag in tags:
            clocks.check()
            seqs[tag.domain].append(int(tag.crawl_time.timestamp()))
        crawls = (
            make.all(make.term("domain", domain), make.any(*(make.contained(seq) for seq in of_domain)))
            for domain, of_domain in seqs.items()
        )
        return make.any(make.terms("publication", list(publications)), *crawls)

    def _members(self, name: str) -> tuple[Iterable[str], Iterable[CommitTag]]:
        """Return the publications of a collection, and the snapshots of its own crawls."""
        if self._gate is None or self._gate.is_staff:
            collection = collection_files.find_collection(self._archive, name)
            _must_be_few(name, len(collection.crawls))
            return collection.publications, self._tags_of(collection.crawls)
        records = ReaderRecords(self._archive, self._gate.now, self._gate.reader.name)
        visible = self._visible.now(records).by_name.get(name)
        if visible is None:
            raise NotFound(f"there is no collection {name!r}")
        _must_be_few(name, len(visible.numbers))
        heads = records.collected((), visible.numbers, slice(0, len(visible.numbers)))
        return visible.publications, [tag for head in heads if head.closed_until is None for tag in head.tags]

    def _tags_of(self, crawls: Iterable[str]) -> Iterator[CommitTag]:
        catalogue = Catalogue(self._archive)
        for record_id in crawls:
            if catalogue.has(record_id):
                yield from catalogue.read(record_id)[0].newest_tags


def _must_be_few(name: str, crawls: int) -> None:
    if crawls > MOST_CRAWLS:
        raise TooMany(
            f"the collection {name!r} names {crawls:,} crawls by themselves, and {MOST_CRAWLS:,} can be searched;"
            " its publications, named instead, have no bound"
        )
