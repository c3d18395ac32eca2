"""An archive behind a server, for a client: the same answers and errors as of a directory or a mount, over HTTP.

It needs the standard library alone. Each document that is listed or read is a request; whoever reads much of a snapshot
takes `read_all`, one stream. Nothing of an archive is kept, but for the lists of names of documents, a minute long: the
names of an older snapshot do not change, those of the newest one are asked for again by their entity tag.

The id of a file's content is its entity tag, so what was read is checked by it, and a cut answer is resumed.
"""

from __future__ import annotations

import io
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from webarcfs.archive.index.links import FoundLink, Question
from webarcfs.archive.index.query import DocumentOrigin
from webarcfs.archive.model.arc_paths import DATA_XML, is_data_file
from webarcfs.archive.model.errors import Busy, Damaged, Exists, NotFound, NotPermitted, UsageError
from webarcfs.archive.model.metadata import CommitTag, MetaData
from webarcfs.archive.system.files import blob_hash
from webarcfs.client.event_stream import RemoteFeed
from webarcfs.client.http_connections import SILENT_SECONDS, ServerAnswer, ServerConnections
from webarcfs.client.observers import NewsFeed
from webarcfs.client.remote_answers import arcs_of, checked, files_of, rows_of, value_of
from webarcfs.client.server_address import ServerAddress, queried, quoted
from webarcfs.client.source import LARGE, PIECE, ArcEntry, ArcListing, Keep, ReadDocument, shown_in
from webarcfs.search.hits import Hit, SearchAnswer, SearchQuestion, Snippet

if TYPE_CHECKING:
    from webarcfs.archive.catalogue.record import Record

#: Lists of names that are remembered, of so many names at most, and for how many seconds without a question.
_LISTINGS = 1_000
_MOST_NAMES = 1_000
_UNASKED = 60.0
#: Characters of a condition that go in a URL; longer ones go in a body.
_LONGEST_IN_URL = 1_500
_TRIES = 3
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
#: The fields of a hit that are plain values.
_HIT_FIELDS: dict[str, type[int] | type[str]] = {
    field.name: int if field.type == "int" else str for field in fields(Hit) if field.name != "snippet"
}
_BLOB_TAG = re.compile(r'"([0-9a-f]{40})"', re.ASCII)


class _Listings:
    """The lists of names that were asked for last. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listings: OrderedDict[tuple[CommitTag, str], tuple[float, str, ArcListing]] = OrderedDict()
        self._newest: dict[str, CommitTag] = {}

    def note(self, tag: CommitTag) -> None:
        """Remember that there is a snapshot: older ones of its domain change no more."""
        known = self._newest.get(tag.domain)
        if known is None or known < tag:
            self._newest[tag.domain] = tag

    def get(self, meta: MetaData) -> tuple[float, str, ArcListing] | None:
        """Return the list of a document, with its age in seconds and its entity tag."""
        with self._lock:
            listing = self._listings.get((meta.commit_tag, meta.path))
        return None if listing is None else (monotonic() - listing[0], listing[1], listing[2])

    def is_final(self, meta: MetaData) -> bool:
        """Return whether the names of a document cannot change, as far as is known."""
        newest = self._newest.get(meta.domain)
        return newest is not None and meta.commit_tag < newest

    def keep(self, meta: MetaData, tag: str, listing: ArcListing) -> None:
        """Remember a list."""
        if len(listing.entries) > _MOST_NAMES:
            return
        key = meta.commit_tag, meta.path
        with self._lock:
            self._listings[key] = monotonic(), tag, listing
            self._listings.move_to_end(key)
            if len(self._listings) > _LISTINGS:
                self._listings.popitem(last=False)


class RemoteSource:
    """The archive at an address."""

    def __init__(self, address: ServerAddress) -> None:
        self._connections = ServerConnections(address)
        self._origin = address.origin
        self._feed = RemoteFeed(self._connections)
        self._listings = _Listings()
        self._can: frozenset[str] = frozenset()

    @property
    def mount(self) -> None:
        """None: it is elsewhere."""
        return

    @property
    def archive(self) -> None:
        """None: it is elsewhere."""
        return

    def close(self) -> None:
        """Close the connections."""
        self._feed.leave()
        self._connections.close()

    # -- documents ---------------------------------------------------------------------------------------------------

    def select(self, where: str, order_by: str, limit: int | None, origin: DocumentOrigin) -> list[MetaData]:
        """Ask the server's database; again, if the answer was cut."""
        query = queried(
            where=where, order_by=order_by, limit=limit, domain=origin.domain, publication=origin.publication
        )
        for tries_left in reversed(range(_TRIES)):
            if len(query) > _LONGEST_IN_URL:
                answer = self._connections.send("POST", "/query", query[1:].encode(), _FORM, is_repeatable=True)
            else:
                answer = self._connections.get("/query" + query)
            try:
                return [self._document(row) for row in rows_of(checked(answer, self._origin), self._origin)]
            except Busy:
                if answer.status != HTTPStatus.OK or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    def document(self, tag: CommitTag, path: str) -> MetaData:
        """Return the document at a path in a snapshot."""
        target = f"/arcs{quoted(str(tag), path.removeprefix(f'/{tag.domain}/'))}"
        answer = checked(self._connections.get(target), self._origin)
        listing = _listing(value_of(answer, self._origin), answer.header("ETag"), self._origin)
        self._listings.keep(listing.document, answer.header("ETag"), listing)
        return listing.document

    def listing(self, meta: MetaData) -> ArcListing:
        """Return the names in a document's ARC, by another request if they may have changed."""
        known = self._listings.get(meta)
        if known is not None and known[0] < _UNASKED and self._listings.is_final(meta):
            return known[2]
        headers = {} if known is None else {"If-None-Match": known[1]}
        answer = self._connections.get(f"/arcs{_place(meta)}", headers)
        tag = answer.header("ETag")
        if known is not None and answer.status == HTTPStatus.NOT_MODIFIED:
            answer.drain()
            listing = known[2]
        else:
            listing = _listing(value_of(checked(answer, self._origin), self._origin), tag, self._origin)
        self._listings.keep(meta, tag or (known[1] if known else ""), listing)
        return listing

    def names(self, meta: MetaData) -> list[str]:
        """Return the names in a document's ARC."""
        return sorted(entry.name for entry in self.listing(meta).entries)

    def data_name(self, meta: MetaData) -> str:
        """Return the name of the document's data file, which additions do not change."""
        known = self._listings.get(meta)
        listing = known[2] if known is not None and known[0] < _UNASKED else self.listing(meta)
        for entry in listing.entries:
            if is_data_file(entry.name) and not entry.is_folder:
                return entry.name
        raise NotFound(f"{meta.path} has no data file in {meta.commit_tag}")

    def read(self, meta: MetaData, name: str) -> BinaryIO:
        """Read a file of the document's ARC: into memory if it is small, else into an unnamed file."""
        name = name.strip("/")
        if ".." in name.split("/"):
            raise NotFound(f"{name!r} leads out of {meta.path}")
        target = f"/files{_place(meta)}{queried(name=name)}"
        if not name:
            raise NotFound(f"{meta.path} has no file {name!r} in {meta.commit_tag}")
        answer = checked(self._connections.get(target), self._origin)
        is_small = answer.length is not None and answer.length <= LARGE
        body = cast(BinaryIO, io.BytesIO() if is_small else tempfile.TemporaryFile())  # noqa: SIM115 # the caller's
        try:
            self._fill(body, target, answer)
            _check(body, answer.header("ETag"), f"{meta.path}/{name}")
        except BaseException:
            body.close()
            raise
        body.seek(0)
        return body

    def _fill(self, body: BinaryIO, target: str, answer: ServerAnswer) -> None:
        """Write an answer; what was cut is asked for again from there, as long as it goes forward."""
        tag = answer.header("ETag")
        while True:
            begin = body.tell()
            try:
                for piece in answer.pieces():
                    body.write(piece)
                return
            except Busy:
                if body.tell() == begin or not tag or tag.startswith("W/"):
                    raise
            answer = self._connections.get(target, {"Range": f"bytes={body.tell()}-", "If-Range": tag})
            if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                answer.drain()
                return  # all of it was there, and is checked
            checked(answer, self._origin)
            if answer.status != HTTPStatus.PARTIAL_CONTENT:
                body.seek(0)
                body.truncate()
            elif not answer.header("Content-Range").startswith(f"bytes {body.tell()}-"):
                answer.close()
                raise Damaged(f"{self._origin} sent another part of a file than it was asked for")

    @contextmanager
    def adding(self, meta: MetaData, name: str) -> Iterator[Keep]:
        """Announce a new file: its name must be free. It is sent when the body is whole."""
        self._must_add()
        place = f"{meta.path}/{name}"
        if name in self.names(meta):
            raise Exists(f"{place} is there already")
        yield lambda body: self._put(f"/files{_place(meta)}{queried(name=name)}", body)

    def _put(self, target: str, body: BinaryIO) -> None:
        start = body.tell()
        size = body.seek(0, io.SEEK_END) - start
        body.seek(start)
        digest = blob_hash(size)
        while piece := body.read(PIECE):
            digest.update(piece)
        body.seek(start)
        headers = {
            "If-None-Match": "*", "Content-Length": str(size), "Content-Type": "application/octet-stream",
        }  # fmt: skip
        answer = self._connections.send("PUT", target, body, headers, is_repeatable=True)
        is_ours = answer.header("ETag") == f'"{digest.hexdigest()}"'
        if answer.is_repeated and answer.status == HTTPStatus.PRECONDITION_FAILED and is_ours:
            answer.drain()  # the answer to the first request was lost, the file was not
            return
        checked(answer, self._origin).drain()

    def add_node(self, meta: MetaData, name: str, element: bytes) -> None:
        """Send a data node. It is sent once, so Busy says that it may have been added."""
        self._must_add()
        target = f"/nodes{_place(meta)}{queried(name=name)}"
        answer = self._connections.send("POST", target, element, {"Content-Type": "application/xml"})
        checked(answer, self._origin).drain()

    def _must_add(self) -> None:
        """Raise NotPermitted if the server takes no additions of this client."""
        if "add" not in self._can:
            about = value_of(checked(self._connections.get("/"), self._origin), self._origin)
            abilities = about.get("can") if isinstance(about, dict) else None
            self._can = frozenset(map(str, abilities if isinstance(abilities, list) else ()))
        if "add" not in self._can:
            raise NotPermitted(
                f"{self._origin} takes no additions, or none of yours: a token with the right may be needed"
            )

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def domains(self) -> list[str]:
        """Return the domains that the server shows."""
        return _texts(value_of(checked(self._connections.get("/domains"), self._origin), self._origin), self._origin)

    def snapshots(self, domain: str) -> list[CommitTag]:
        """Return the commitTags of a domain that the server shows."""
        if "/" in domain or "\0" in domain or domain.startswith(".") or not domain:
            raise NotFound(f"the archive has no domain {domain!r}")
        answer = checked(self._connections.get(f"/domains{quoted(domain)}/snapshots"), self._origin)
        tags = [CommitTag.parse(text) for text in _texts(value_of(answer, self._origin), self._origin)]
        for tag in tags[-1:]:
            self._listings.note(tag)
        return tags

    def documents(self, tag: CommitTag, after: str) -> Iterator[MetaData]:
        """Return the documents of a snapshot; an answer that is cut is resumed behind its last row."""
        return self._resumed(tag, after, self._documents_after(tag, after))

    def _documents_after(self, tag: CommitTag, after: str) -> ServerAnswer:
        target = f"/snapshots{quoted(str(tag))}/documents{queried(after=after)}"
        return checked(self._connections.get(target), self._origin)

    def _resumed(self, tag: CommitTag, after: str, answer: ServerAnswer) -> Iterator[MetaData]:
        while True:
            begin = after
            try:
                for row in rows_of(answer, self._origin):
                    document = self._document(row)
                    after = document.path
                    yield document
                return
            except Busy:
                if after == begin:
                    raise
            answer = self._documents_after(tag, after)

    def changed(self, tag: CommitTag) -> Iterator[MetaData]:
        """Return the documents that a snapshot added or changed."""
        answer = checked(self._connections.get(f"/snapshots{quoted(str(tag))}/changed"), self._origin)
        return (self._document(row) for row in rows_of(answer, self._origin))

    def read_all(self, tag: CommitTag) -> Iterator[ReadDocument]:
        """Read a snapshot in one stream."""
        known = set(self.snapshots(tag.domain))
        answer = checked(self._connections.get(f"/snapshots{quoted(str(tag))}.tar"), self._origin)
        return (self._read_document(tag, known, path, files) for path, files in arcs_of(files_of(answer, self._origin)))

    def _read_document(
        self, tag: CommitTag, known: set[CommitTag], path: str, files: dict[str, BinaryIO]
    ) -> ReadDocument:
        from webarcfs.archive.document.data_xml import metadata  # noqa: PLC0415 # its library takes a while

        stored = metadata(files[DATA_XML].read())
        files[DATA_XML].seek(0)
        if stored.path != f"/{tag.domain}/{path}":
            raise Damaged(f"{self._origin} sent {stored.path} as {path}")
        return ReadDocument(shown_in(stored, tag, known), files)

    def _document(self, row: dict[str, Any]) -> MetaData:
        document = _document(row, self._origin)
        self._listings.note(document.commit_tag)
        return document

    # -- catalogue and indexes ---------------------------------------------------------------------------------------

    def records(self, publication: str | None) -> Iterator[Record]:
        """Return the records that the server shows."""
        answer = checked(self._connections.get("/records" + queried(publication=publication, xml=1)), self._origin)
        return (self._record(row) for row in rows_of(answer, self._origin))

    def _record(self, row: dict[str, Any]) -> Record:
        from webarcfs.archive.catalogue.record import read_record  # noqa: PLC0415 # its library takes a while

        document = row.get("xml")
        if not isinstance(document, str):
            raise Damaged(f"{self._origin} sent a record without its document")
        return read_record(document.encode("utf-8", "replace"))

    def search(self, words: str, narrowing: dict[str, Any]) -> SearchAnswer:
        """Ask the server's full-text index."""
        asked = {name: _asked(value) for name, value in narrowing.items()}
        if unknown := asked.keys() - SearchQuestion.__dataclass_fields__.keys():
            raise UsageError(f"a search has no {', '.join(sorted(unknown))}")
        answer = self._connections.get("/search" + queried(words=words, **asked))
        return _hits(value_of(checked(answer, self._origin), self._origin), self._origin)

    def links(self, question: Question, seconds: float) -> Iterator[FoundLink]:
        """Ask the server's links; it has its own bound for an answer's time, `seconds` are those until it begins."""
        query = queried(
            path=question.path, target=question.targets, word=question.word, at=question.at, ever=_asked(question.ever),
            kind=None if question.kind is None else question.kind.name.lower(), external=_asked(question.external),
            broken=_asked(question.broken), role=question.role, limit=question.limit, domain=question.origin.domain,
            publication=question.origin.publication,
        )  # fmt: skip
        answer = self._connections.get("/links" + query, seconds=max(seconds, SILENT_SECONDS))
        return (_link(row, self._origin) for row in rows_of(checked(answer, self._origin), self._origin))

    # -- news --------------------------------------------------------------------------------------------------------

    @property
    def feed(self) -> NewsFeed:
        """The events of the server."""
        return self._feed

    def is_shown(self, tag: CommitTag) -> bool:  # noqa: ARG002 # a server sends none of the others
        """Return True: the server shows what it sends."""
        return True


def _place(meta: MetaData) -> str:
    """Return the path of a document's routes, behind their first segment."""
    return quoted(str(meta.commit_tag), meta.path.removeprefix(f"/{meta.domain}/"))


def _document(row: dict[str, Any], origin: str) -> MetaData:
    """Return the document of a row. Raises Damaged for what is none."""
    if not all(isinstance(value, str) for value in row.values()):
        raise Damaged(f"{origin} sent a row with what is no text")
    document = MetaData.from_fields(row)
    parts = document.path.split("/")
    if parts[:2] != ["", document.domain] or document.commit_tag.domain != document.domain:
        raise Damaged(f"{origin} sent {document.path!r} as a document of {document.commit_tag}")
    if any(part in ("", ".", "..") or "\0" in part for part in parts[1:]):
        raise Damaged(f"{origin} sent {document.path!r}, which is no path of a document")
    return document


def _listing(value: Any, tag: str, origin: str) -> ArcListing:
    """Return the list of an answer. Raises Damaged for what is none."""
    try:
        entries = tuple(
            ArcEntry(str(entry["name"]), entry["kind"] == "folder", int(entry["size"]), str(entry["id"]))
            for entry in value["entries"]
        )
        return ArcListing(_document(value["metadata"], origin), tag.removeprefix("W/").strip('"'), entries)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise Damaged(f"{origin} sent a list of names that is none: {error!r}") from None


def _asked(value: object) -> object:
    """Return a value of a search as a query has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return int(value) if isinstance(value, bool) and value else value


def _hits(value: Any, origin: str) -> SearchAnswer:
    """Return the hits of an answer. Raises Damaged for what is none."""
    try:
        hits = tuple(_hit(hit) for hit in value["hits"])
        total, in_present = int(value["total"]), value["inPresent"]
        return SearchAnswer(
            total, hits, str(value["suggestion"]), int(value["missing"]), bool(value["exact"]),
            None if in_present is None else int(in_present),
        )  # fmt: skip
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise Damaged(f"{origin} sent hits that are none: {error!r}") from None


def _hit(values: dict[str, Any]) -> Hit:
    """Return a hit; what a newer server says beside is left out."""
    known: dict[str, Any] = {}
    for name, kind in _HIT_FIELDS.items():
        known[name] = kind(values[name])
    CommitTag.parse(known["commitTag"])
    marks = tuple((int(begin), int(end)) for begin, end in values["marks"])
    return Hit(**known, snippet=Snippet(str(values["snippet"]), marks))


def _link(row: dict[str, Any], origin: str) -> FoundLink:
    """Return the link of a row. Raises Damaged for what is none."""
    known = {field.name: row.get(field.name, field.default) for field in fields(FoundLink)}
    if not all(isinstance(value, int if name == "times" else str) for name, value in known.items()):
        raise Damaged(f"{origin} sent a link that is none")
    return FoundLink(**known)


def _texts(value: Any, origin: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise Damaged(f"{origin} sent no list of texts")
    return value


def _check(body: BinaryIO, tag: str, place: str) -> None:
    """Raise Damaged if a body is not the one that its entity tag names."""
    match = _BLOB_TAG.fullmatch(tag)
    if match is None:
        return
    size = body.seek(0, io.SEEK_END)
    digest = blob_hash(size)
    body.seek(0)
    while piece := body.read(PIECE):
        digest.update(piece)
    if digest.hexdigest() != match[1]:
        raise Damaged(f"{place} arrived with other bytes than the archive has")
