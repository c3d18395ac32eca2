"""The WARC records of a snapshot: what they say, in which order (ISO 28500:2017); how they are stored is for `warc`.

A snapshot has a record of its own, then those of its documents in the order of its tree, those of its redirects, and
one with the list of what its crawl met unchanged. From them its tree can be rebuilt, object for object. The records of
a document belong together: a response, with data.xml, the head as it was sent and what users added; or, where the
snapshot before has the same capture, a revisit if the crawl met it, `carried` if not, with what was added since. Ids
follow from what a record is of; nothing depends on clock or machine.

Small bodies come from memory, large ones from a temporary file; each is digested once. A document that did not change
since the snapshot before has the digest that was found then: its body is not read again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Final
from urllib.parse import quote

from webarcfs.access import secret_headers
from webarcfs.access.reader_repositories import hides
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model import url_lists
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import COPIES, HAR, RESOURCE, CommitTag, MetaData, format_utc, from_epoch
from webarcfs.archive.model.url_lists import Met, MetList, spelled
from webarcfs.export.selection import Exported, ExportedDocument, Files, ListedRedirect, Unit, data_of
from webarcfs.warc.http_response import base32, parse_head, response_head
from webarcfs.warc.request_key import KeyParts, parts_of, request_body

# == bodies ===========================================================================================================


#: Up to this size a body is read in this process; above, git writes it to a file.
SMALL: Final = 4 << 20
#: Bytes of a large body that are read at a time.
CHUNK: Final = 1 << 18
#: Bytes of digests that are kept in memory; more of them are in a file.
_IN_MEMORY = 4 << 20
_ID = 20


@dataclass(frozen=True, slots=True)
class RecordBody:
    """A body of `size` bytes: `content`, or where that is None, all of `file`. Valid until its `opened` ends."""

    size: int
    content: bytes | None
    file: IO[bytes] | None = None

    def parts(self) -> Iterator[bytes]:
        """Yield its bytes; may be called again."""
        if self.content is not None:
            yield self.content
            return
        assert self.file is not None
        at = 0
        while part := os.pread(self.file.fileno(), CHUNK, at):
            yield part
            at += len(part)

    def digests(self, head: bytes = b"") -> tuple[bytes, bytes]:
        """Return the SHA-1 of the body, and that of `head` and body."""
        if self.content is not None:
            payload = hashlib.sha1(self.content, usedforsecurity=False)
            return payload.digest(), hashlib.sha1(head + self.content, usedforsecurity=False).digest()
        payload, block = hashlib.sha1(usedforsecurity=False), hashlib.sha1(head, usedforsecurity=False)
        for part in self.parts():
            payload.update(part)
            block.update(part)
        return payload.digest(), block.digest()


NOTHING: Final = RecordBody(0, b"")


@contextmanager
def opened(store: Repository, blob: str) -> Iterator[RecordBody]:
    """Yield the body of a blob of any size. Raises Damaged, OSError on a full disk."""
    size = store.size(blob)
    if size <= SMALL:
        yield RecordBody(size, store.read(blob))
        return
    with tempfile.TemporaryFile(prefix="webarcfs-") as file:
        # Reserved first: a full disk then fails with ENOSPC at once, instead of a git that fails for some reason.
        os.posix_fallocate(file.fileno(), 0, size)
        store.copy(blob, file.fileno())
        yield RecordBody(size, None, file)


def sha1(digest: bytes) -> str:
    """Return a digest as records have it."""
    return f"sha1:{base32(digest)}"


class PayloadDigests:
    """The digests of the bodies of a snapshot, in the order of its documents, kept for the next one. A context manager.

    In two snapshots the documents that both have come in the same order, so one pass over the digests of the one before
    finds them; memory is flat.
    """

    def __init__(self) -> None:
        self._before: IO[bytes] | None = None
        self._now = _kept()

    def __enter__(self) -> PayloadDigests:
        return self

    def __exit__(self, *exc: object) -> None:
        self.turn(is_whole=False)
        self._now.close()

    def turn(self, *, is_whole: bool) -> None:
        """Begin the next snapshot. Unless all documents of the last one were added, it begins with no digests."""
        if self._before is not None:
            self._before.close()
        if is_whole:
            self._now.seek(0)
            self._before = self._now
        else:
            self._now.close()
            self._before = None
        self._now = _kept()

    def add(self, blob: str, digest: bytes) -> None:
        """Keep the digest of the next document's body."""
        self._now.write(bytes.fromhex(blob) + digest)

    def find(self, blob: str) -> bytes | None:
        """Return the digest of a body that the snapshot before has as well; None if it has to be read."""
        wanted = bytes.fromhex(blob)
        while self._before is not None:
            row = self._before.read(2 * _ID)
            if row[:_ID] == wanted:
                return row[_ID:]
            if not row:
                self._before.close()
                self._before = None
        return None


def _kept() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="webarcfs-")  # closed by `turn`


# == records ==========================================================================================================


#: Media types of blocks.
FIELDS_TYPE = "application/warc-fields"
_HTTP = "application/http; msgtype=response"
_REQUEST = "application/http; msgtype=request"
_BYTES = "application/octet-stream"
_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:webarcfs:export:1")
#: Marks of a revisit beside the records of its document, and of what was not met.
_AGAIN = ("Webarcfs-Again", "yes")
_CARRIED = ("Webarcfs-Carried", "yes")
#: What a copy was taken from; an import reads it.
_SOURCE = "Webarcfs-Source"
_CERTIFICATE = "Webarcfs-Certificate"
#: The URL by which the archive has a document, where that is made of a request: a record names the requested URL.
KEY: Final = "Webarcfs-URL"
#: Marks headers that may have what servers answered to a crawl with secrets; an import reads it.
_SECRETS = ("Webarcfs-Secrets", "shown")
#: Why a document has no response.
HIDDEN_FORM = "what browsers showed of pages in crawls that are not public"
UNREADABLE_FORM = "what browsers showed of pages, which cannot be read"
#: The URNs of the parts of what a browser showed: as Browsertrix writes them, and our own of the DOM.
_URNS: Final = {"text": "text", "html": "dom", "picture": "view"}
UNREADABLE = "responses of documents whose data.xml or body is missing or cannot be read; their files are there"
#: Characters of paths that fields have as they are.
_PLAIN = "/!$&'()*+,;=:@~?"


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """A record: its fields in order, and its block: `head`, then `body`. Valid until the next one is asked for.

    `payload` is the SHA-1 of what its payload is, `status` and `mime` what its response says; empty without.
    """

    kind: str
    uri: str
    date: datetime
    id: str
    type: str
    fields: tuple[tuple[str, str], ...]
    head: bytes
    body: RecordBody = NOTHING
    payload: bytes = b""
    status: int = 0
    mime: str = ""


@dataclass(frozen=True, slots=True)
class _Marks:
    """Whether the publication saw a file: what a record says of what it brings."""

    unseen: bool = False
    only_seen: bool = False

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        return (*(("Webarcfs-Unseen", "yes"),) * self.unseen, *(("Webarcfs-Seen", "yes"),) * self.only_seen)


@dataclass(slots=True)
class RecordCounts:
    """What was written so far."""

    documents: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def leave_out(self, reason: str) -> None:
        """Count something that was left out."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


@dataclass(frozen=True, slots=True)
class SnapshotRecords:
    """Makes the records of one snapshot. `counts` has its documents, and reason → number for what was left out."""

    exported: Exported
    digests: PayloadDigests
    counts: RecordCounts
    #: Whether headers that a crawl stored may have secrets. Asked once a crawl: pygit2 keeps memory for each look-up.
    _have_secrets: dict[CommitTag, bool] = field(default_factory=dict)

    def of(self, unit: Unit) -> Iterator[WarcRecord]:
        """Yield the records of a piece. Raises Damaged, OSError."""
        what = unit.what
        if what is None:
            yield self._snapshot()
        elif isinstance(what, MetList):
            yield self._met_list(what)
        elif isinstance(what, ListedRedirect):
            yield from self._redirect(what, unit.met)
        else:
            meta = self._meta(what.data_xml) if what.is_whole else None
            self.counts.documents += meta is not None
            if meta is None:
                yield from self._files(what)
            elif self._is_as_before(what, meta):
                yield from self._as_before(what, meta, unit.met)
            else:
                yield from self._response(what, meta, unit.met)

    def _secrets(self, meta: MetaData) -> tuple[tuple[str, str], ...]:
        stored, known = meta.commit_tag, self._have_secrets
        if stored not in known:
            known[stored] = secret_headers.are_in(self.exported.store, self.exported.tag, stored)
        return (_SECRETS,) * known[stored]

    # -- the snapshot ------------------------------------------------------------------------------------------------

    @property
    def _may_have_secrets(self) -> bool:
        """Whether its headers may have secrets; in an export that begins with it, also those of older crawls."""
        exported = self.exported
        is_first = not exported.before and exported.message.is_crawl
        return exported.message.showed_secrets or (is_first and secret_headers.before(exported.store, exported.tag))

    def _snapshot(self) -> WarcRecord:
        exported, message = self.exported, self.exported.message
        lines = [
            ("commitTag", str(exported.tag)),
            ("publication", message.publication),
            ("job", message.job),
            ("complete", "yes" if message.complete else "no"),
            ("held", "yes" if message.is_held else "no"),
            ("errors", "kept" if message.has_errors else ""),
            ("copies", "kept" if message.has_copies else ""),
            ("resources", ("kept" if message.has_pages else "alone") if message.has_resources else ""),
            ("secrets", "shown" if self._may_have_secrets else ""),
            ("sequence", str(message.sequence)),
            ("tree", exported.tree),
            ("seen", exported.seen),
            ("before", exported.before or ""),
            *(
                (trailer.lower(), value)
                for trailer in ("Patch", "Import", "Source", "Source-End")
                for value in message.all(trailer)
            ),
            ("met", "listed" if message.met else "unknown"),
            ("time", str(exported.time)),
        ]
        block = fields_block([line for line in lines if line[1]])
        uri = f"urn:webarcfs:snapshot:{exported.tag}"
        return self._metadata(uri, exported.tag.crawl_time, FIELDS_TYPE, block, fields=self._named(None))

    def _met_list(self, met_list: MetList) -> WarcRecord:
        uri, block = f"urn:webarcfs:met:{self.exported.tag}", url_lists.write_met_list(met_list)
        return self._metadata(uri, self.exported.tag.crawl_time, _BYTES, block, "met", fields=self._named(None))

    # -- documents ---------------------------------------------------------------------------------------------------

    def _meta(self, blob: str) -> MetaData | None:
        try:
            return data_xml.metadata(self.exported.store.read(blob))
        except (InvalidDocument, Damaged):
            return None

    def _is_as_before(self, document: ExportedDocument, meta: MetaData) -> bool:
        """Return whether a document is the capture of the snapshot before, with perhaps more additions."""
        files, before = document.files, document.before
        if before is None or (document.seen is not None and document.seen != files):
            return False
        if files is before or files == before:
            return True
        same = before.get(document.data) == files[document.data] and before.get(HEADERS) == files.get(HEADERS)
        if not same or DATA_XML not in before or data_of(before) != document.data:
            return False
        return files[DATA_XML] == before[DATA_XML] or self._meta(before[DATA_XML]) == meta

    def _response(self, document: ExportedDocument, meta: MetaData, met: Met | None) -> Iterator[WarcRecord]:
        first: WarcRecord | None = None
        for record in self.capture(document, meta, meta.capture_time):
            if first is None:
                first = record
                self.digests.add(document.files[document.data], record.payload)
            yield record
        assert first is not None
        yield from self._beside(document, meta, first.id, meta.capture_time, document.files)
        if meta.rendered:
            yield from self.rendered(document.path, meta, first.id)
        if met is not None:
            yield from self._met_again(document, met, document.files[document.data], first.payload)

    def capture(self, document: ExportedDocument, meta: MetaData, when: datetime) -> Iterator[WarcRecord]:
        """Yield the record of a document as it was captured at a time, and the request, where that was no GET."""
        store, files, data = self.exported.store, document.files, document.data
        blob = files[data]
        with opened(store, blob) as body:
            http, status, mime = self._http(document, meta, body.size)
            kind, type_ = "response", _HTTP
            if meta.source and meta.source != HAR:  # it came without the head of an answer, and leaves so
                head = parse_head(http)
                kind, type_, http = RESOURCE, (head.content_type if head is not None else "") or _BYTES, b""
            payload, block = body.digests(http)
            named = self._named(document.path, data=data, marks=_marks(document, data))
            digests = (("WARC-Payload-Digest", sha1(payload)), ("WARC-Block-Digest", sha1(block)))
            asked = asked_by(meta)
            named = (*_key(meta.url, asked), *_evidence(meta), *self._secrets(meta), *named)
            first, uri = self._id(kind, document.path, "", blob), meta.url if asked is None else asked.url
            yield WarcRecord(kind, uri, when, first, type_, digests + named, http, body, payload, status, mime)
        if asked is not None:
            yield self._request(document.path, meta, asked, first, when)

    def rendered(self, arc: str, meta: MetaData, first: str) -> Iterator[WarcRecord]:
        """Yield the records of what a browser showed of a document: those of Browsertrix, and one with the title."""
        store = self.exported.store
        if hides(store, meta.commit_tag):
            self.counts.leave_out(HIDDEN_FORM)
            return
        try:
            blobs = rendered_forms.blobs_of(store, meta.rendered)
        except Damaged:
            self.counts.leave_out(UNREADABLE_FORM)
            return
        for name, blob in sorted(blobs.items()):
            uri = f"urn:{_URNS.get(rendered_forms.kind_of(name), 'webarcfs:rendered')}:{meta.url}"
            type_ = rendered_forms.mime_type_of(name)
            kind = "metadata" if name == rendered_forms.DESCRIPTION else "resource"
            with opened(store, blob) as body:
                payload, _ = body.digests()
                fields = (
                    ("WARC-Payload-Digest", sha1(payload)),
                    ("WARC-Block-Digest", sha1(payload)),
                    ("WARC-Concurrent-To", f"<{first}>"),
                    (KEY, meta.url),
                    ("Webarcfs-Rendered", meta.rendered),
                    *self._named(arc, file=name),
                )
                id_ = self._id(kind, arc, name, blob)
                yield WarcRecord(kind, uri, meta.capture_time, id_, type_, fields, b"", body, payload, mime=type_)

    def _met_again(self, document: ExportedDocument, met: Met, blob: str, payload: bytes) -> Iterator[WarcRecord]:
        """Yield the revisit of what the publication saw of a document whose files are written already."""
        seen = replace(document, files=document.seen or {})
        meta = self._meta(seen.data_xml) if seen.is_whole else None
        if meta is not None:
            own = seen.files[seen.data]
            digest = payload if own == blob else self.exported.store.digest(own)
            yield from self._revisit(seen, meta, met, digest, (_AGAIN, *self._named(document.path)))

    def _as_before(self, document: ExportedDocument, meta: MetaData, met: Met | None) -> Iterator[WarcRecord]:
        """Yield the records of the capture of the snapshot before: a revisit only if this crawl met it, too."""
        data = document.data
        blob = document.files[data]
        payload = self.digests.find(blob) or self.exported.store.digest(blob)
        self.digests.add(blob, payload)
        named = self._named(document.path, data=data, marks=_Marks(unseen=document.seen is None))
        if met is not None:
            first, *request = self._revisit(document, meta, met, payload, named)
        else:
            fields = (_CARRIED, (KEY, meta.url), *named)
            lines = [("carried", meta.url), ("captured", format_utc(meta.capture_time))]
            first, request = self._carried(document.path, lines, fields), []
        yield first
        yield from request
        yield from self._since(document, meta, first)

    def _revisit(
        self, document: ExportedDocument, meta: MetaData, met: Met, payload: bytes, named: tuple[tuple[str, str], ...]
    ) -> Iterator[WarcRecord]:
        url = spelled(meta.url, met.spelling)
        yield from self.again(document, meta, (url, from_epoch(met.time)), (meta.capture_time, payload), named)

    def again(
        self,
        document: ExportedDocument,
        meta: MetaData,
        capture: tuple[str, datetime],
        first: tuple[datetime, bytes],
        named: tuple[tuple[str, str], ...],
    ) -> Iterator[WarcRecord]:
        """Yield the revisit of a document, and the request that it answers, where that was no GET.

        `capture` is URL and time of it, `first` the time of the response that it is of, with the SHA-1 of its payload.
        """
        blob = document.files[document.data]
        http, status, mime = self._http(document, meta, self.exported.store.size(blob))
        asked = asked_by(meta)
        (url, when), (of, payload) = capture, first
        fields = (
            *_refers_to(meta.url if asked is None else asked.url, of),
            ("WARC-Payload-Digest", sha1(payload)),
            ("WARC-Block-Digest", _block_digest(http)),
            *_key(meta.url, asked),
            *self._secrets(meta),
            *named,
        )
        name = self._id("revisit", document.path, "", blob)
        uri = url if asked is None else asked.url
        yield WarcRecord("revisit", uri, when, name, _HTTP, fields, http, NOTHING, payload, status, mime)
        if asked is not None:
            yield self._request(document.path, meta, asked, name, when)

    def _request(self, arc: str, meta: MetaData, asked: KeyParts, answer: str, when: datetime) -> WarcRecord:
        """Return the record of the request that a document answers, as far as the document's URL tells it."""
        body, mime = request_body(asked, meta.request_type)
        host, slash, path = asked.url.partition("://")[2].partition("/")
        lines = [f"{asked.method} {slash}{path} HTTP/1.1", f"Host: {host}"]
        lines += [f"Content-Type: {mime}"] * bool(body and mime) + [f"Content-Length: {len(body)}", "", ""]
        head = "\r\n".join(lines).encode("ascii")
        payload, block = RecordBody(len(body), body).digests(head)
        fields = (
            ("WARC-Concurrent-To", f"<{answer}>"),
            ("WARC-Payload-Digest", sha1(payload)),
            ("WARC-Block-Digest", sha1(block)),
            *self._named(arc),
        )
        name = self._id("request", answer)
        return WarcRecord("request", asked.url, when, name, _REQUEST, fields, head, RecordBody(len(body), body))

    def _carried(self, place: str, lines: list[tuple[str, str]], fields: tuple[tuple[str, str], ...]) -> WarcRecord:
        """Return the record of what is here since the snapshot before has it: no capture."""
        uri = f"urn:webarcfs:carried:{self.exported.tag}:{percent(place)}"
        block = fields_block(lines)
        when, of = self.exported.tag.crawl_time, ("carried", place, *lines[0])
        return self._metadata(uri, when, FIELDS_TYPE, block, *of, fields=fields)

    def _since(self, document: ExportedDocument, meta: MetaData, record: WarcRecord) -> Iterator[WarcRecord]:
        """Yield the records of what was added to a document since the snapshot before."""
        before, first, when = document.before or {}, record.id, record.date
        new = {path: blob for path, blob in document.files.items() if before.get(path) != blob}
        yield from self._beside(document, meta, first, when, new)
        for path, addition in document.additions():
            if path not in new:
                yield self._same_addition(document.path, path, addition, _marks(document, path))

    def _http(self, document: ExportedDocument, meta: MetaData, size: int) -> tuple[bytes, int, str]:
        """Return the head of a document's response, its status and its MIME type."""
        sent = self.exported.store.read(document.head) if document.head else b""
        http = response_head(sent, size, meta.status, (("Content-Type", meta.mime_type),))
        head = parse_head(http)
        assert head is not None
        return http, head.status, head.content_type.partition(";")[0].strip()

    def _beside(
        self, document: ExportedDocument, meta: MetaData, first: str, when: datetime, files: Files
    ) -> Iterator[WarcRecord]:
        """Yield the records of a document's files beside its body: those `files`, and those that only `seen` has."""
        seen = document.seen or {}
        for name, type_ in ((DATA_XML, "application/xml"), (HEADERS, _BYTES)):
            rows = [(files.get(name), _marks(document, name))]
            if document.seen is not None and seen.get(name) != document.files.get(name):
                rows.append((seen.get(name), _Marks(only_seen=True)))
            for blob, marks in rows:
                if blob is not None:
                    content = self.exported.store.read(blob)
                    of = ("WARC-Concurrent-To", f"<{first}>"), ("Webarcfs-URL", meta.url)
                    named = (*of, *self._named(document.path, file=name, marks=marks))
                    # A URN: indexes would take one with the document's URL for a capture of it.
                    uri = self._urn("file", document.path, name)
                    yield self._metadata(uri, when, type_, content, document.path, name, blob, fields=named)
        own = (DATA_XML, HEADERS, document.data)
        for path in sorted(files):
            if path not in own:
                yield from self._resource(document.path, path, files[path], _marks(document, path))
        for path in sorted(seen):
            if path not in (DATA_XML, HEADERS) and seen[path] != document.files.get(path):
                yield from self._resource(document.path, path, seen[path], _Marks(only_seen=True))

    def _files(self, document: ExportedDocument) -> Iterator[WarcRecord]:
        """Yield the files of what is no document that can be read: nothing is lost."""
        if document.data_xml or document.data:
            self.counts.leave_out(UNREADABLE)
        for path in sorted(document.files):
            yield from self._resource(document.path, path, document.files[path], _marks(document, path))
        for path in sorted(document.seen or {}):
            blob = (document.seen or {})[path]
            if blob != document.files.get(path):
                yield from self._resource(document.path, path, blob, _Marks(only_seen=True))

    def _resource(self, arc: str, path: str, blob: str, marks: _Marks) -> Iterator[WarcRecord]:
        tag, uri = self.exported.tag, self._urn("addition", arc, path)
        with opened(self.exported.store, blob) as body:
            payload, _ = body.digests()
            fields = (
                ("WARC-Payload-Digest", sha1(payload)),
                ("WARC-Block-Digest", sha1(payload)),
                *self._named(arc, file=path, marks=marks),
            )
            name = self._id("resource", arc, path, blob)
            yield WarcRecord("resource", uri, tag.crawl_time, name, _BYTES, fields, b"", body, payload, 0, _BYTES)

    def _same_addition(self, arc: str, path: str, blob: str, marks: _Marks) -> WarcRecord:
        """Return the record of an addition that the snapshot before has as well."""
        payload = self.exported.store.digest(blob)
        fields = (
            ("WARC-Profile", _PROFILE),
            ("WARC-Payload-Digest", sha1(payload)),
            ("WARC-Block-Digest", _block_digest(b"")),
            *self._named(arc, file=path, marks=marks),
        )
        uri, name = self._urn("addition", arc, path), self._id("revisit", arc, path, blob)
        return WarcRecord("revisit", uri, self.exported.tag.crawl_time, name, _BYTES, fields, b"", NOTHING, payload)

    # -- redirects ---------------------------------------------------------------------------------------------------

    def _redirect(self, listed: ListedRedirect, met: Met | None) -> Iterator[WarcRecord]:
        redirect, marks = listed.redirect, _Marks(not listed.is_seen, listed.only_seen)
        http = response_head(b"", 0, redirect.status, (("Location", redirect.target),))
        payload, _ = NOTHING.digests()
        digests = ("WARC-Payload-Digest", sha1(payload)), ("WARC-Block-Digest", _block_digest(http))
        own = (("Webarcfs-Redirect", str(redirect).replace("\t", "%09")), *marks.fields)
        tagged = self._named(None)

        def record(kind: str, when: datetime, fields: tuple[tuple[str, str], ...]) -> WarcRecord:
            name = self._id(kind, redirect.url, str(redirect), "seen" if listed.only_seen else "")
            return WarcRecord(kind, redirect.url, when, name, _HTTP, fields, http, NOTHING, payload, redirect.status)

        if not listed.was_there:
            yield record("response", redirect.time, (*digests, *tagged, *own))
        elif met is None:
            lines = [("carried", str(redirect).replace("\t", " "))]
            yield self._carried(redirect.url, lines, (_CARRIED, ("Webarcfs-URL", redirect.url), *tagged, *own))
        if met is not None:
            named = own if listed.was_there else (_AGAIN,)
            again = (*_refers_to(redirect.url, redirect.time), *digests, *tagged, *named)
            yield record("revisit", from_epoch(met.time), again)

    def led(self, url: str, status: int, target: str, when: datetime) -> WarcRecord:
        """Return the record of a redirect as it was captured at a time."""
        http = response_head(b"", 0, status, (("Location", target),))
        payload, _ = NOTHING.digests()
        fields = (("WARC-Payload-Digest", sha1(payload)), ("WARC-Block-Digest", _block_digest(http)))
        name = self._id("response", url, target, format_utc(when))
        return WarcRecord(
            "response", url, when, name, _HTTP, (*fields, *self._named(None)), http, NOTHING, payload, status
        )

    # -- parts of records --------------------------------------------------------------------------------------------

    def _metadata(
        self, uri: str, when: datetime, type_: str, block: bytes, *of: str, fields: tuple[tuple[str, str], ...]
    ) -> WarcRecord:
        digest = (("WARC-Block-Digest", _block_digest(block)),)
        body = RecordBody(len(block), block)
        return WarcRecord(
            "metadata", uri, when, self._id("metadata", *of), type_, digest + fields, b"", body, mime=type_
        )

    def named(self, document: ExportedDocument) -> tuple[tuple[str, str], ...]:
        """Return the fields that say where in the archive a document is."""
        return self._named(document.path, data=document.data, marks=_marks(document, document.data))

    def _named(
        self, arc: str | None, *, data: str = "", file: str = "", marks: _Marks | None = None
    ) -> tuple[tuple[str, str], ...]:
        """Return the fields that say where in the archive something is."""
        fields = [("Webarcfs-Commit-Tag", str(self.exported.tag))]
        if arc is not None:
            fields.append(("Webarcfs-Path", percent(arc)))
        if data:
            fields.append(("Webarcfs-Data", percent(data)))
        if file:
            fields.append(("Webarcfs-File", percent(file)))
        return (*fields, *(marks.fields if marks is not None else ()))

    def _urn(self, kind: str, arc: str, path: str) -> str:
        """Return the name of a file, for records that are of no URL."""
        return f"urn:webarcfs:{kind}:{self.exported.tag}:{percent(f'{arc}/{path}' if arc else path)}"

    def _id(self, kind: str, *of: str) -> str:
        return record_id(kind, str(self.exported.tag), *of)


def record_id(*of: str) -> str:
    """Return the id of a record, by what distinguishes it from all others."""
    name = "\n".join(of).encode("utf-8", "surrogateescape")  # paths need not be UTF-8
    return uuid.uuid5(_NAMESPACE, name.decode("latin-1")).urn


def fields_block(lines: list[tuple[str, str]]) -> bytes:
    """Return a block of named fields."""
    return "".join(f"{name}: {value}\r\n" for name, value in lines).encode()


def percent(path: str) -> str:
    """Return a path as fields have it: in ASCII, without spaces; `os.fsdecode(unquote_to_bytes(…))` is the inverse."""
    return quote(os.fsencode(path), safe=_PLAIN)


def _marks(document: ExportedDocument, path: str) -> _Marks:
    """Return whether the publication saw a file of a document."""
    return _Marks(unseen=document.seen is None or document.seen.get(path) != document.files.get(path))


def _evidence(meta: MetaData) -> tuple[tuple[str, str], ...]:
    """Return the fields that say how far a document can be relied on: what is no response, and who may have sent it."""
    fields = ((_SOURCE, meta.source if meta.source in COPIES else ""), (_CERTIFICATE, meta.certificate))
    return tuple((name, value) for name, value in fields if value)


def asked_by(meta: MetaData) -> KeyParts | None:
    """Return the request that a document answers; None for a GET."""
    parts = parts_of(meta.url) if meta.method else None
    return parts if parts is not None and parts.method == meta.method else None


def _key(url: str, asked: KeyParts | None) -> tuple[tuple[str, str], ...]:
    return () if asked is None else ((KEY, url),)


def _refers_to(url: str, time: datetime) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Profile", _PROFILE),
        ("WARC-Refers-To-Target-URI", url),
        ("WARC-Refers-To-Date", format_utc(time)),
    )


def _block_digest(block: bytes) -> str:
    return sha1(RecordBody(len(block), block).digests()[0])
