"""The rows of each dataset, host by host. Everything is of what the asker may see, the counts as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from itertools import chain
from pathlib import Path

from webarcfs.access.access_rules import Standing
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.links import PageBody, StoredLinks
from webarcfs.archive.model.metadata import PAGE_ROLE, RESOURCE_ROLE, CommitTag, format_digits, from_epoch
from webarcfs.dataset.columns import Dataset
from webarcfs.dataset.narrowing import DatasetUnit, year_of
from webarcfs.dataset.readers_versions import ReadersVersions, UnitRow
from webarcfs.dataset.spilled_counts import SpilledCounts
from webarcfs.dataset.table_writers import Row, writable
from webarcfs.dataset.version_texts import VersionTexts
from webarcfs.search.words import extension_of, terms_of

#: Why something is not in a dataset.
NO_TEXT = "versions, captures or snapshots of documents of a type without text"
HIDDEN_DOM = "links of pages as browsers showed them in crawls that are not public"
NO_LINKS = "snapshots whose links are not indexed yet (`webarc-agent recover` brings them in)"

#: Rows of the unit between two looks.
_BETWEEN_LOOKS = 1_000
_ROLES = (PAGE_ROLE, RESOURCE_ROLE)


@lru_cache(maxsize=65_536)
def _named(domain: str, seq: int) -> str:
    return str(CommitTag(from_epoch(seq), domain))


class DatasetRows:
    """Makes the rows of a dataset. A context manager, for one thread.

    `scratch` is a folder for what does not fit into memory. `by_host` is of words. Raises NotFound where an index that
    the dataset needs is missing, UsageError where a library is.
    """

    def __init__(
        self, archive: Archive, versions: ReadersVersions, unit: DatasetUnit, scratch: Path, *, by_host: bool = False
    ) -> None:
        self._archive = archive
        self._versions = versions
        self._unit = unit
        self._scratch = scratch
        self._by_host = by_host
        self.texts: VersionTexts | None = None
        #: Called now and then, also while nothing is written yet; may raise.
        self.look: Callable[[], None] = lambda: None

    def __enter__(self) -> DatasetRows:
        self._stack = ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, dataset: Dataset) -> Iterator[Row]:
        """Yield the rows of a dataset."""
        return {
            Dataset.PAGES: self._pages, Dataset.TEXT: self._text, Dataset.LINKS: self._links,
            Dataset.TYPES: self._types, Dataset.WORDS: self._words, Dataset.HOSTS: self._hosts,
        }[dataset]()  # fmt: skip

    def notes(self) -> list[str]:
        """Return sentences about where texts came from."""
        if self.texts is None:
            return []
        if self.texts.missing_index:
            return [f"There was no full-text index, so texts were read from the documents: {self.texts.read:,}. "
                    "Words that scripts put into pages are not among them."]  # fmt: skip
        return [
            f"Texts that the full-text index did not have were read from the documents: {self.texts.read:,}."
        ] * bool(self.texts.read)

    # -- tables of units -----------------------------------------------------------------------------------------------

    def _pages(self) -> Iterator[Row]:
        for unit in self._units():
            publications = self._versions.publications
            row, domain = unit.version.row, unit.version.domain
            yield (
                format_digits(unit.time), domain, unit.url, writable(row.mime_type), writable(row.title), row.status,
                row.size, row.digest, _ROLES[row.resource], writable(row.target), publications.get(unit.seq, ""),
                _named(domain, unit.seq), *self._more(unit),
            )  # fmt: skip

    def _text(self) -> Iterator[Row]:
        texts = self._opened_texts()
        for unit in self._units():
            version = unit.version
            extracted = texts.of(version, self._versions.shown)
            if extracted is None:
                self._versions.leave_out(NO_TEXT, 1)
                continue
            row = version.row
            yield (
                format_digits(unit.time), version.domain, unit.url, writable(row.mime_type), extracted.language,
                writable(extracted.body), writable(row.title or extracted.title), row.digest, extracted.fault,
                _named(version.domain, unit.seq), *self._more(unit),
            )  # fmt: skip

    def _links(self) -> Iterator[Row]:
        stored = self._stack.enter_context(StoredLinks(self._archive))
        for unit, body in self._bodies(stored):
            domain, when, more = unit.version.domain, format_digits(unit.time), self._more(unit)
            snapshot = _named(domain, unit.seq)
            for kind, target, text, times, host in stored.of(body.number):
                yield (
                    when, unit.url, writable(target), writable(text), kind, times, domain, host, snapshot, *more,
                )  # fmt: skip

    # -- counts --------------------------------------------------------------------------------------------------------

    def _types(self) -> Iterator[Row]:
        counts = self._counts()
        for unit in self._units():
            row = unit.version.row
            key = self._year(unit), unit.version.domain, writable(row.mime_type), extension_of(row.url)
            counts.add(key, 1, row.size)
        for (year, domain, mime_type, extension), (number, size) in counts.rows():
            yield int(year), domain, mime_type, extension, number, size

    def _words(self) -> Iterator[Row]:
        counts, texts = self._counts(), self._opened_texts()
        for unit in self._units():
            extracted = texts.of(unit.version, self._versions.shown)
            if extracted is None:
                self._versions.leave_out(NO_TEXT, 1)
                continue
            of = (self._year(unit), *((unit.version.domain,) if self._by_host else ()))
            for word, number in Counter(terms_of(writable(extracted.body)).split()).items():
                counts.add((*of, word), number, 1)
        for (year, *names), numbers in counts.rows():
            yield (int(year), *names, *numbers)

    def _hosts(self) -> Iterator[Row]:
        yield from self.host_rows()()

    def host_rows(self) -> Callable[[], Iterator[Row]]:
        """Return a function that yields the rows of `hosts`, as often as it is called."""
        counts = self._counts()
        stored = self._stack.enter_context(StoredLinks(self._archive))
        for unit, body in self._bodies(stored):
            year, domain = self._year(unit), unit.version.domain
            links: Counter[str] = Counter()
            for link in stored.of(body.number):
                if link.domain:
                    links[link.domain] += link.times
            for host, number in links.items():
                counts.add((domain, host, year), number, 1)

        def rows() -> Iterator[Row]:
            for (domain, host, year), (number, pages) in counts.rows():
                yield int(year), domain, host, number, pages

        return rows

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _units(self) -> Iterator[UnitRow]:
        for number, unit in enumerate(chain.from_iterable(map(self._versions.units, self._versions.domains))):
            if not number % _BETWEEN_LOOKS:
                self.look()
            yield unit

    def _year(self, unit: UnitRow) -> str:
        return f"{year_of(unit.seq if self._unit is DatasetUnit.SNAPSHOT else unit.time):04}"

    def _more(self, unit: UnitRow) -> tuple[object, ...]:
        if self._unit in (DatasetUnit.VERSION, DatasetUnit.YEAR):
            return unit.time, unit.last, unit.captures
        return (unit.flag,)

    def _bodies(self, stored: StoredLinks) -> Iterator[tuple[UnitRow, PageBody]]:
        """Yield the rows of the unit that are pages with links, each with its body in links.db."""
        path, bodies, domain = "", list[PageBody](), ""
        hidden: frozenset[int] = frozenset()
        for unit in self._units():
            version = unit.version
            if version.domain != domain:
                domain, path = version.domain, ""
                facts = self._versions.facts(domain)
                hidden = frozenset(
                    snapshot.seq for snapshot in facts.snapshots if snapshot.standing is not Standing.OPEN
                )
                self._versions.leave_out(NO_LINKS, len(set(facts.seqs) - stored.snapshots(domain)))
            if version.row.path != path:
                path = version.row.path
                bodies = stored.bodies(path)
            span = next((span for span in version.spans if span.first <= unit.seq < span.last), None)
            seq = version.row.first if span is None else unit.seq  # of what another publication saw no more
            body = next((body for body in bodies if body.first <= seq < body.last), None)
            if body is None or version.row.target:
                continue
            if body.has_dom and (version.spans[0] if span is None else span).stored in hidden:
                self._versions.leave_out(HIDDEN_DOM, 1)
                continue
            yield unit, body

    def _counts(self) -> SpilledCounts:
        return self._stack.enter_context(SpilledCounts(self._scratch))

    def _opened_texts(self) -> VersionTexts:
        self.texts = self._stack.enter_context(VersionTexts(self._archive))
        return self.texts
