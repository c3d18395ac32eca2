"""The full-text index on disk: a folder of Tantivy, with versions of documents and the snapshots they belong to.

One process writes; any number reads. Documents and the marks of their snapshots become visible together, at a commit.
A reader needs no right to write: Tantivy would lock a file in the index's folder, so a reader opens the files by links
in a folder of its own, which it removes at once.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import tantivy
from tantivy import FieldType, Filter, Occur, Query, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from webarcfs.archive.index.database import CaptureFacts
from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import clocks
from webarcfs.search.query_language import DocumentPart
from webarcfs.search.words import (
    CURRENT,
    SNAPSHOT,
    IndexedDocument,
    from_bytes,
    key,
    kind_of,
    marks,
    natural,
    place_of,
    terms_of,
)

#: Raised with each change of the fields: an index of another version is rebuilt.
VERSION = 5
#: The languages in which other forms of a word are found, with the stemmer of each.
STEMMERS = {
    "de": "german", "en": "english", "es": "spanish", "fr": "french", "it": "italian", "nl": "dutch",
    "pt": "portuguese",
}  # fmt: skip
#: The fields of the parts of a document.
FIELDS = {
    DocumentPart.TEXT: "body",
    DocumentPart.TITLE: "title",
    DocumentPart.HEADINGS: "headings",
    DocumentPart.DESCRIPTION: "description",
    DocumentPart.URL: "url",
}
#: Memory of the writer, bytes: it writes a segment when this is full.
_HEAP = 64 << 20
_META = "meta.json"
#: Folders of links in which readers open an index: this, their process id, and what makes them unique.
_LINKS = "webarc-search-"
#: Seconds that a reader waits for a writer that replaces files.
_PATIENCE = 5.0
_ANEW = "`webarc-agent index --rebuild` rebuilds it"
_WORDS = "words"
#: The field of other forms of words: stems, each with its language (`de:haus`), where they are not the word itself.
STEMS = "stems"
#: Documents whose places are looked at where all are too many, about, and the end of the numbers that places are.
_SAMPLED, _PLACES_END = 4_096, 1 << 63
#: Words whose stems are remembered.
_KNOWN = 1 << 17


def _schema() -> tantivy.Schema:
    builder = SchemaBuilder()
    for name in ("key", "mark", "site"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("rule_key", "domain", "publication", "type", "kind", "extension", "language"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
    for name in FIELDS.values():
        builder.add_text_field(name, tokenizer_name=_WORDS)
    builder.add_text_field(STEMS, tokenizer_name=_WORDS, index_option="freq")
    for name in ("since", "until", "captured", "size"):
        builder.add_integer_field(name, fast=True)
    builder.add_integer_field("place", indexed=True, fast=True)
    for name in ("begin", "end"):  # of snapshots: when their crawls captured something
        builder.add_integer_field(name, fast=True)
    for name in ("about", "content", "tag"):
        builder.add_bytes_field(name, stored=True)
    return builder.build()


def _analyzer(language: str) -> TextAnalyzer:
    stemmed = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer(STEMMERS[language]))
    return stemmed.filter(Filter.ascii_fold()).build()


#: Stemmers, for questions and for marks in texts.
_ANALYZERS: dict[str, TextAnalyzer] = {}


def stem(word: str, language: str) -> str:
    """Return the stem of a word in a language that has a stemmer, as the index has it."""
    return _stem(natural(word), language)


@lru_cache(maxsize=_KNOWN)
def _stem(word: str, language: str) -> str:
    if language not in _ANALYZERS:
        _ANALYZERS[language] = _analyzer(language)
    return str(next(iter(_ANALYZERS[language].analyze(word)), ""))


def stem_term(language: str, root: str) -> str:
    """Return the term of a stem in the field of stems."""
    return f"{language}:{root}"


@lru_cache(maxsize=_KNOWN)
def _other_form(word: str, language: str) -> str:
    """Return the term of a word's stem; empty where that is the word itself, which its own field has."""
    root, terms = _stem(word, language), terms_of(word)
    return stem_term(language, root) if root not in ("", terms) and " " not in terms else ""


def _other_forms(texts: Iterable[str], language: str) -> str:
    """Return the stems of texts, with spaces between."""
    stems = (_other_form(word, language) for text in texts for word in natural(text).split())
    return " ".join(stem for stem in stems if stem)


def _with_tokenizers(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer(_WORDS, TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    return index


class IndexWriter:
    """Writes one index; a context manager. What is not committed when it ends is forgotten. Raises Damaged, OSError."""

    def __init__(self, folder: Path) -> None:
        """Open the index in a folder, or make it. The caller holds the archive's lock for it."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        _remove_left()
        with _translated(folder):
            index = (
                tantivy.Index.open(str(folder)) if (folder / _META).exists() else tantivy.Index(_schema(), str(folder))
            )
            self._index = _with_tokenizers(index)
            self._index.config_reader("manual")
            self._writer = self._index.writer(_HEAP, 1)

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            with _translated(self._folder):
                self._writer.wait_merging_threads()
        self._open_to_readers()
        del self._writer

    def put(self, document: IndexedDocument) -> None:
        """Add a version, in place of the same one if it is there."""
        extracted = document.extracted
        title = document.title or extracted.title
        stems = ""
        if extracted.language in STEMMERS:
            stems = _other_forms((title, extracted.description, extracted.body), extracted.language)
        with _translated(self._folder):
            self._writer.delete_documents_by_term("key", document.key)
            self._writer.add_document(
                tantivy.Document(
                    key=document.key,
                    rule_key=document.rule_key(),
                    mark=[*marks(document)],
                    site=[*dict.fromkeys(document.sites())],
                    domain=document.domain,
                    publication=document.publication,
                    type=document.mime_type,
                    kind=kind_of(document.mime_type),
                    extension=document.extension,
                    language=extracted.language,
                    body=terms_of(extracted.body),
                    title=terms_of(title),
                    headings=terms_of(extracted.headings),
                    description=terms_of(extracted.description),
                    url=terms_of(document.url),
                    place=place_of(document.path),
                    since=document.since,
                    until=document.until,
                    captured=document.captured,
                    size=document.size,
                    about=document.about(),
                    content=document.content(),
                    stems=stems,
                )
            )

    def mark_snapshot(self, tag: str, facts: CaptureFacts) -> None:
        """Note that all documents of a snapshot are there, and what its crawl captured."""
        seq = int(CommitTag.parse(tag).crawl_time.timestamp())
        with _translated(self._folder):
            self._writer.delete_documents_by_term("key", tag)
            self._writer.add_document(
                tantivy.Document(
                    key=tag,
                    mark=[SNAPSHOT],
                    domain=tag.partition("@")[2],
                    begin=min(facts.first, seq),
                    end=max(facts.last, seq),
                    tag=tag.encode(),
                    about=json.dumps([seq, *astuple(facts)]).encode(),
                )
            )

    def forget(self, domain: str) -> None:
        """Remove all documents and snapshots of a domain."""
        with _translated(self._folder):
            self._writer.delete_documents_by_term("domain", domain)

    def commit(self) -> None:
        """Make all changes visible and durable."""
        with _translated(self._folder):
            self._writer.commit()
        self._open_to_readers()

    def _open_to_readers(self) -> None:
        """Let the files be read by all who may read the folder: Tantivy makes some of them private."""
        mode = self._folder.stat().st_mode & 0o444
        for name in (_META, ".managed.json"):
            with suppress(FileNotFoundError):
                (self._folder / name).chmod(0o200 | mode)


class IndexReader:
    """Reads one index as it was at its last commit when this was opened. For any thread. Raises Damaged, Busy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self.identity = _identity(folder)
        except FileNotFoundError:
            raise Damaged(f"{folder} has no index; {_ANEW}") from None
        self._index = _opened(folder)
        self.schema = self._index.schema
        self.searcher = self._index.searcher()

    @property
    def is_current(self) -> bool:
        """Whether nothing was committed since."""
        try:
            return _identity(self._folder) == self.identity
        except OSError:
            return False

    def documents(
        self, query: Query, limit: int, offset: int = 0, order: str = "", *, ascending: bool = False
    ) -> HitPage:
        """Return a page of the documents of a query; by relevance, or by the numbers of a field."""
        with _translated(self._folder):
            direction = tantivy.Order.Asc if ascending else tantivy.Order.Desc
            search_result = self.searcher.search(query, max(limit, 1), True, order or None, offset, direction)
            shown = search_result.hits[:limit]
            return HitPage(getattr(search_result, "count", 0) or 0, [address for _, address in shown], self)

    def best(
        self, query: Query, limit: int, order: str = "", *, ascending: bool = False, looked_at: int = 0
    ) -> Matches:
        """Return the first documents of a query with their places; by relevance, or by the numbers of a field.

        `looked_at`: of so many documents all places are wanted, too, so that nothing finds the documents again.
        """
        with _translated(self._folder):
            direction = tantivy.Order.Asc if ascending else tantivy.Order.Desc
            fetched = max(limit, looked_at, 1)
            search_result = self.searcher.search(query, fetched, True, order or None, 0, direction)
            hits, total = search_result.hits, getattr(search_result, "count", 0) or 0
            addresses = [address for _, address in hits]
            places = self._values("place", addresses)
            ranked = [
                Match(place, since, value, address)
                for place, since, (value, address) in zip(
                    places[:limit], self._values("since", addresses[:limit]), hits[:limit], strict=True
                )
            ]
            whole = (set(places), self._values("until", addresses).count(CURRENT)) if total == len(hits) else None
            return Matches(total, ranked, whole)

    def _values(self, field: str, addresses: list[tantivy.DocAddress]) -> list[int]:
        """Return the numbers of a field of documents."""
        return cast("list[int]", self.searcher.fast_field_values(field, addresses)) if addresses else []

    def page(self, total: int, addresses: Sequence[tantivy.DocAddress]) -> HitPage:
        """Return a page of documents that were found."""
        return HitPage(total, addresses, self)

    def count_places(self, query: Query) -> int:
        """Return about how many paths the documents of a query have: some per cent more or less."""
        with _translated(self._folder):
            return round(self.searcher.cardinality(query, "place"))

    def count_places_and_current(self, query: Query, versions: int) -> tuple[int, int]:
        """Return about how many paths the documents of a query have, and how many of them no snapshot ended.

        The latter is exact, and each has a path of its own. The paths of the others alone are counted in a part of all
        places, which are hashes: with some thousand documents in it, the first number is mostly within two per cent.
        `versions` is about the number of documents.
        """
        parts = max(versions / _SAMPLED, 1.0)
        is_current = {"range": {"field": "until", "ranges": [{"key": "current", "from": float(CURRENT)}]}}
        within = {
            "field": "place",
            "interval": float(_PLACES_END),
            "hard_bounds": {"min": 0.0, "max": _PLACES_END / parts},
        }
        of_part = {"current": is_current, "places": {"terms": {"field": "place", "size": 4 * _SAMPLED}}}
        counts = self.aggregate(query, {"current": is_current, "part": {"histogram": within, "aggs": of_part}})
        current, others = _current(counts), 0
        for part in counts["part"]["buckets"]:
            others += len(part["places"]["buckets"]) - _current(part)
        return current + round(others * parts), current

    def places_of(self, query: Query, versions: int) -> tuple[set[int], int]:
        """Return the places of some versions of a query, and how many of these versions no snapshot ended.

        Each is looked at: all of them, if `versions` is their number.
        """
        with _translated(self._folder):
            hits = self.searcher.search(Query.const_score_query(query, 0.0), max(versions, 1), False).hits
            addresses = [address for _, address in hits]
            return set(self._values("place", addresses)), self._values("until", addresses).count(CURRENT)

    def places(self, query: Query, most: int) -> set[int] | None:
        """Return the places of the documents of a query; None if they are more than `most`."""
        buckets = self.aggregate(query, {"place": {"terms": {"field": "place", "size": most + 1}}})["place"]["buckets"]
        return None if len(buckets) > most else {int(bucket["key"]) for bucket in buckets}

    def count(self, query: Query) -> int:
        """Return the number of documents of a query. None is weighed."""
        return self.documents(Query.const_score_query(query, 0.0), 0).total

    def aggregate(self, query: Query, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return Tantivy's answer to an aggregation request."""
        with _translated(self._folder):
            return dict(self.searcher.aggregate(query, wanted))

    def frequency(self, field: str, term: str) -> int:
        """Return the number of documents with a term."""
        with _translated(self._folder):
            return int(self.searcher.doc_freq(field, term))

    def count_terms(self) -> int:
        """Return the number of different words in the texts of all documents. Takes memory for each of them."""
        with _translated(self._folder):
            return len(self.searcher.terms_with_prefix(FIELDS[DocumentPart.TEXT], ""))

    def similar(self, field: str, prefix: str, query: Query, limit: int) -> list[tuple[str, int]]:
        """Return terms that begin so, with the number of documents of a query that have each."""
        with _translated(self._folder):
            return self.searcher.terms_with_prefix(field, prefix, query, limit)

    def count_snapshots(self) -> int:
        """Return the number of snapshots whose documents are all there."""
        return self.count(Query.term_query(self.schema, "mark", SNAPSHOT))

    def snapshots(self) -> set[str]:
        """Return the commitTags of the snapshots whose documents are all there."""
        query = Query.term_query(self.schema, "mark", SNAPSHOT)
        with _translated(self._folder):
            hits = self.searcher.search(query, max(self.searcher.num_docs, 1), False).hits
            return {_bytes(self.searcher.doc(address), "tag").decode() for _, address in hits}

    def facts_of(self, begin: int, end: int) -> Iterator[tuple[str, int, CaptureFacts]]:
        """Yield domain, time and facts of the snapshots that, or whose captures, may lie in a span of time.

        The span is from `begin` on, before `end`, all in seconds since 1970.
        """
        is_snapshot = Query.term_query(self.schema, "mark", SNAPSHOT)
        begins = Query.range_query(self.schema, "begin", FieldType.Integer, None, end - 1)
        ends = Query.range_query(self.schema, "end", FieldType.Integer, begin, None)
        query = Query.boolean_query([(Occur.Must, part) for part in (is_snapshot, begins, ends)])
        with _translated(self._folder):
            for _, address in self.searcher.search(query, max(self.searcher.num_docs, 1), False).hits:
                clocks.check()
                document = self.searcher.doc(address)
                seq, *facts = json.loads(_bytes(document, "about"))
                yield _bytes(document, "tag").decode().partition("@")[2], seq, CaptureFacts(*facts)

    def last_capture(self) -> int | None:
        """Return the last time at which a crawl captured something, in seconds since 1970; None without snapshots."""
        is_snapshot = Query.term_query(self.schema, "mark", SNAPSHOT)
        value = self.aggregate(is_snapshot, {"last": {"max": {"field": "end"}}})["last"]["value"]
        return None if value is None else int(value)

    def counts(self) -> dict[str, int]:
        """Return the number of documents of each domain."""
        make = {"domain": {"terms": {"field": "domain", "size": 65_000}}}
        documents = Query.boolean_query(
            [(Occur.Must, Query.all_query()), (Occur.MustNot, Query.term_query(self.schema, "mark", SNAPSHOT))]
        )
        buckets = self.aggregate(documents, make)["domain"]["buckets"]
        return {str(bucket["key"]): int(bucket["doc_count"]) for bucket in buckets}

    def find(self, path: str, since: int) -> IndexedDocument | None:
        """Return a version with its text; None if it is not there."""
        page = self.documents(Query.term_query(self.schema, "key", key(path, since)), 1)
        return next(page.with_text(), None)


@dataclass(frozen=True, slots=True)
class Match:
    """A document of an answer: the place of its path, its first snapshot, and what ordered it."""

    place: int
    since: int
    value: object
    address: tantivy.DocAddress


@dataclass(frozen=True, slots=True)
class Matches:
    """The first documents of an answer, and the number of all.

    `whole`, where all were looked at: their places, and how many of them no snapshot ended.
    """

    total: int
    ranked: list[Match]
    whole: tuple[set[int], int] | None


class HitPage:
    """Some documents of an answer, and the number of all."""

    def __init__(self, total: int, addresses: Sequence[tantivy.DocAddress], reader: IndexReader) -> None:
        self.total = total
        self._addresses = addresses
        self._reader = reader

    def __len__(self) -> int:
        return len(self._addresses)

    def plain(self) -> Iterator[IndexedDocument]:
        """Yield the documents without their texts."""
        for address in self._addresses:
            yield from_bytes(_bytes(self._reader.searcher.doc(address), "about"))

    def with_text(self) -> Iterator[IndexedDocument]:
        """Yield the documents with their texts."""
        for address in self._addresses:
            document = self._reader.searcher.doc(address)
            yield from_bytes(_bytes(document, "about"), _bytes(document, "content"))


def _current(counts: dict[str, Any]) -> int:
    """Return the number of documents that no snapshot ended, of an aggregation that counts them."""
    return next(int(bucket["doc_count"]) for bucket in counts["current"]["buckets"] if bucket["key"] == "current")


def _bytes(document: tantivy.Document, field: str) -> bytes:
    return cast(bytes, document.get_first(field) or b"")


def state_of(folder: Path) -> os.stat_result:
    """Return the state of the file that each commit replaces."""
    return (folder / _META).stat()


def _identity(folder: Path) -> tuple[int, int, int]:
    status = state_of(folder)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _opened(folder: Path) -> tantivy.Index:
    """Open an index for reading, whatever its writer does meanwhile."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return _opened_once(folder)
        except (ValueError, OSError) as error:  # files of an old state go, or meta.json is private for a moment
            if time.monotonic() > until or not (folder / _META).exists():
                if isinstance(error, PermissionError):
                    raise Busy(f"{folder} is being written; try again") from None
                raise Damaged(f"{folder} cannot be read: {error}; {_ANEW}") from None
            time.sleep(0.05)


def _opened_once(folder: Path) -> tantivy.Index:
    own = Path(tempfile.mkdtemp(prefix=f"{_LINKS}{os.getpid()}-"))
    try:
        shutil.copyfile(folder / _META, own / _META)
        for name in os.listdir(folder):  # noqa: PTH208 # names are needed
            if not name.startswith(".") and name != _META:
                (own / name).symlink_to(folder.absolute() / name)
        index = _with_tokenizers(tantivy.Index.open(str(own)))
        index.config_reader("manual")
        index.reload()
        return index
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _remove_left() -> None:
    """Remove the links of readers that were killed while they opened an index; writers do so, readers do not wait.

    One that lives, and is taken for dead from within a container, finds its links gone, and opens once more.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_LINKS}*"):
        process = left.name.removeprefix(_LINKS).partition("-")[0]
        if process.isdecimal() and not Path("/proc", process).exists():
            shutil.rmtree(left, ignore_errors=True)  # those of other users stay


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    """Turn Tantivy's errors into ours."""
    try:
        yield
    except ValueError as error:
        if "No space left" in str(error) or "StorageFull" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from None
        raise Damaged(f"{folder}: {error}") from None
