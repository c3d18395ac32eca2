"""The captures of foreign files as rows of an import's index, those of revisit records among them.

The `content` of a capture identifies its version: captures of one URL with the same content are one version.

`Resolving` finds the responses that revisit records repeat (WARC 1.1, section 6.7 and annex). A response is found by
digest, or by the URL and time that the record refers to: in all files of the import, then in the archive. In the
archive it is the version of the URL that was valid at that time, or another version with that digest. Without a digest,
or if the server compressed the body (the digest is then of the compressed body), the time alone decides.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from agent.crawl.frontier import FoundCapture, FrontierUrl, ImportIndex, JobBody, PagePart, StoredCapture, UrlOutcome
from agent.crawl.vocabulary import (
    GONE,
    NOT_MODIFIED,
    LinkKind,
    Reason,
    Status,
    UrlState,
    has_secrets,
    is_error_page,
    source_in,
    word_of_request,
    words_of_certificate,
)
from agent.importing.foreign import Spool, Tally
from webarcfs.access import secret_headers
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, arc_path, data_name, places, second_path, split
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import COPIES, CommitTag, format_time, from_epoch, parse_compact_time
from webarcfs.content import mimetype
from webarcfs.warc import http_response
from webarcfs.warc.http_response import base32, capture_key
from webarcfs.warc.request_key import parts_of

# == captures =========================================================================================================


#: The content of a capture that says that there is nothing at its URL any more.
GONE_CONTENT = "gone"
#: Seconds between the response of a page and what a browser showed of it: it loads, scrolls and waits meanwhile.
NEAREST = 3600
#: How much of what should be a URL is in crawl.log.
_LONGEST_URI = 2000


@dataclass(frozen=True, slots=True)
class CapturedUrl:
    """The URL of a record: canonical, with its domain and the time of the capture; `fraction` in nanoseconds."""

    url: str
    domain: str
    time: datetime
    fraction: int = 0

    @property
    def revisit_key(self) -> str:
        """The key by which a revisit record that names URL and time finds its body."""
        return capture_key(self.url, int(self.time.timestamp()))


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record is: number of its file, its number in that file, the name of its crawl."""

    source: int
    ordinal: int
    crawl: str


def capture_row(
    record: RecordPlace, capture: CapturedUrl, outcome: UrlOutcome, batch: int, *, body: str = "", head: bytes = b""
) -> FoundCapture:
    """Return the row of a capture; `batch` is the number of the WARC with its body, `body` the digest of that.

    `head` is that of a revisit which has one of its own.
    """
    return FoundCapture(
        source=record.source,
        ordinal=record.ordinal,
        name=record.crawl,
        url=capture.url,
        domain=capture.domain,
        time=int(capture.time.timestamp()),
        fraction=capture.fraction,
        state=outcome.state,
        status=outcome.status,
        note=outcome.note,
        batch=batch,
        position=outcome.position,
        size=outcome.size,
        mime=outcome.mime,
        digest=outcome.digest,
        arc=outcome.arc,
        target=outcome.target,
        content=_content(outcome, body),
        head=head,
    )


def log_row(capture: StoredCapture) -> FrontierUrl:
    """Return a capture as crawl.log has it."""
    return FrontierUrl(
        id=capture.id,
        url=capture.url,
        domain=capture.domain,
        kind=LinkKind.LINK,
        depth=0,
        hops="",
        found_on=None,
        state=capture.state,
        tries=1,
        not_before=0.0,
        status=capture.status,
        note=capture.note,
        batch=capture.batch,
        position=capture.position,
        size=capture.size,
        mime=capture.mime,
        digest=capture.digest,
        captured=format_time(from_epoch(capture.time)) if capture.time else "",
        arc=capture.arc,
        target=capture.target,
        expanded=-1,
        nested=0,
        links=-1,
        inner=0,
        result=capture.result,
        embedded=0,
        page=0,
        named="",
    )


def untaken_row(record: RecordPlace, uri: str, time: datetime | None, why: str) -> FoundCapture:
    """Return the row of a record that is not taken, for crawl.log."""
    url = "%20".join(uri.encode("utf-8", "backslashreplace").decode().split())[:_LONGEST_URI]
    return FoundCapture(
        source=record.source,
        ordinal=record.ordinal,
        name=record.crawl,
        url=url or "-",
        time=int(time.timestamp()) if time else 0,
        state=UrlState.REFUSED,
        status=int(Status.ILLEGAL_URL if why == Reason.BAD_URL else Status.INVALID_RESPONSE),
        note=why,
    )


def _content(outcome: UrlOutcome, body: str) -> str:
    source = source_in(outcome.note)
    of_copy = [source] if source in COPIES else []
    if outcome.arc:
        secrets = [Reason.SECRETS] if has_secrets(outcome.note) else []
        return " ".join([body, *(["error"] if is_error_page(outcome.status) else []), *of_copy, *secrets])
    if outcome.target:
        return " ".join([str(outcome.status), outcome.target, *of_copy])
    return GONE_CONTENT if outcome.state == UrlState.DONE and outcome.status in GONE else ""


# == revisits =========================================================================================================


_CHUNK = 1 << 18
#: Number of different versions of a URL that are compared with a digest.
_MOST_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class _ArchivedResponse:
    """A decoded body, and the head of its response, which may have secrets."""

    head: bytes
    file: IO[bytes]
    size: int
    has_secrets: bool = False

    def parts(self) -> Iterator[bytes]:
        self.file.seek(0)
        while data := self.file.read(_CHUNK):
            yield data


@dataclass(frozen=True, slots=True)
class Resolving:
    """What revisits are resolved with: the index of the files, the archive, a folder for bodies.

    Bodies of the archive are written into `spool`, whose number is `batch`. `losses` are revisits of nothing.
    """

    index: ImportIndex
    archive: Archive
    folder: Path
    spool: Spool
    batch: int
    losses: Tally

    def resolve(self) -> None:
        """Add a capture for every revisit; one of an earlier import that finds nothing again waits on."""
        for revisit in self.index.revisits():
            self._resolve(revisit)

    def add_archived(self, captures: CaptureIndex, part: PagePart) -> bool:
        """Add the archived version of a page that was captured about when a browser showed `part` of it.

        Returns whether there is one. Its time is that of the archived capture: it is the same one again.
        """
        domain, arc = split(arc_path(part.url))
        try:
            versions, _ = captures.at(f"/{arc_path(part.url)}", f"/{second_path(part.url)}")
        except NotFound:  # nothing was ever archived
            return False
        own = [row for row in versions if row.url == part.url]
        row = min(own, key=lambda version: abs(version.captured - part.time), default=None)
        if row is None or abs(row.captured - part.time) > NEAREST:
            return False
        with ExitStack() as stack:
            store, body = Repository(self.archive.repository(domain)), _scratch(self.folder, stack)
            store.copy(row.blob, body.fileno())
            has_secrets = secret_headers.plain_crawls(store, domain) is not None
            response = _ArchivedResponse(store.read(row.head), body, row.size, has_secrets=has_secrets)
            capture = CapturedUrl(part.url, domain, from_epoch(row.captured))
            stored = self._spooled(response, capture)
            tree = store.snapshot_tree(CommitTag(from_epoch(row.first), domain))
            described = store.find(tree, f"{row.path.removeprefix(f'/{domain}/')}/{DATA_XML}")
            meta = None if described is None else data_xml.metadata(store.read(described.oid))
        if meta is None:
            return False
        source = f"{Reason.SOURCE}{meta.source}" if meta.source in COPIES else Reason.RESOURCE * bool(meta.source)
        digest, *marks = stored.content.split(" ")
        notes = (
            Reason.REVISIT, source, *words_of_certificate(meta.certificate), Reason.SECRETS * (Reason.SECRETS in marks)
        )  # fmt: skip
        note = ",".join(filter(None, notes))
        outcome = UrlOutcome(
            id=0, state=UrlState.DONE, status=row.status, position=stored.position, size=stored.size,
            mime=row.mime_type, digest=digest, arc=arc, note=note,
        )  # fmt: skip
        place = RecordPlace(part.source, part.ordinal, part.name)
        self.index.add_found(capture_row(place, capture, outcome, stored.batch, body=digest))
        return True

    def _resolve(self, revisit: dict[str, Any]) -> None:
        url, time = str(revisit["url"]), from_epoch(revisit["time"])
        capture = CapturedUrl(url, split(arc_path(url))[0], time, revisit["fraction"])
        body, own = self._body(revisit, capture), http_response.parse_head(revisit["head"])
        if body is None and not revisit["source"]:
            return
        if body is None:
            self.losses.add(capture.domain, "a revisit of what is neither in the files nor in the archive", url)
            lost = UrlOutcome(
                id=0, state=UrlState.FAILED, status=int(Status.INVALID_RESPONSE), note=Reason.REVISIT_UNRESOLVED
            )
            self.index.add_found(capture_row(_place(revisit), capture, lost, 0))
            return
        has_own_head = own is not None and own.status != NOT_MODIFIED
        digest, *marks = body.content.split(" ")
        outcome = UrlOutcome(
            id=0,
            state=UrlState.DONE,
            status=own.document_status if own is not None and has_own_head else body.status,
            position=body.position,
            size=body.size,
            mime=mimetype.declared_type(own.content_type) if own is not None and has_own_head else body.mime,
            digest=str(revisit["digest"]).removeprefix("sha1:"),
            arc=split(arc_path(url))[1],
            note=",".join(
                [Reason.REVISIT, *([Reason.SECRETS] if Reason.SECRETS in marks else []), *_words_of_key(url)]
            ),
        )
        head = revisit["head"] if has_own_head else b""
        row = capture_row(_place(revisit), capture, outcome, body.batch, body=digest, head=head)
        self.index.add_found(row)
        self.index.add_body([capture_key(url, revisit["time"])], replace(body, status=row.status, mime=row.mime))

    def _body(self, revisit: dict[str, Any], capture: CapturedUrl) -> JobBody | None:
        """Return the body that a revisit refers to: in all files of the import, else in the archive."""
        keys = [revisit["digest"], capture_key(revisit["origin"], revisit["seen"])]
        body = next((body for key in keys if key and (body := self.index.body(key))), None)
        if body is not None:
            return body
        with ExitStack() as stack:
            response = _in_the_archive(self.archive, self.folder, revisit, stack)
            return None if response is None else self._spooled(response, capture)

    def _spooled(self, response: _ArchivedResponse, capture: CapturedUrl) -> JobBody:
        head = http_response.parse_head(response.head)
        assert head is not None  # it was read before
        position = self.spool.add(capture.url, capture.time, response.head, response.parts())
        mime = mimetype.declared_type(head.content_type)
        content = " ".join([_sha1(response), *([Reason.SECRETS] if response.has_secrets else [])])
        return JobBody(self.batch, position, response.size, head.document_status, mime, content)


def _words_of_key(url: str) -> list[str]:
    """Return the annotation of a revisit of an answer to another method than GET. Its records do not name the type."""
    parts = parts_of(url)
    return [] if parts is None else [word_of_request(parts.method, "")]


def _place(revisit: dict[str, Any]) -> RecordPlace:
    return RecordPlace(revisit["source"], revisit["ordinal"], revisit["name"])


def _in_the_archive(
    archive: Archive, folder: Path, revisit: dict[str, Any], stack: ExitStack
) -> _ArchivedResponse | None:
    domain = split(arc_path(revisit["origin"]))[0]
    try:
        store = Repository(archive.repository(domain))
    except NotFound:
        return None
    body = _scratch(folder, stack)
    wanted = str(revisit["digest"]).removeprefix("sha1:")
    comparable = bool(wanted) and ":" not in wanted
    when = revisit["seen"] or revisit["time"]
    name = data_name(revisit["origin"])
    candidates = (version for arc in places(revisit["origin"]) for version in _versions(store, arc, name, when))
    for valid, blob, head in candidates:
        packed = http_response.parse_head(head)
        by_time = valid and (not comparable or (packed is not None and bool(packed.get("content-encoding"))))
        if not by_time and not comparable:
            continue
        body.seek(0)
        body.truncate()
        store.copy(blob, body.fileno())
        size = os.fstat(body.fileno()).st_size
        response = _ArchivedResponse(head, body, size)
        if packed is not None and (by_time or _sha1(response) == wanted):
            return replace(response, has_secrets=secret_headers.plain_crawls(store, domain) is not None)
    return None


def _versions(store: Repository, arc: str, name: str, seconds: int) -> Iterator[tuple[bool, str, bytes]]:
    """Yield the versions of an ARC as (valid at the time, data file, head), beginning with the valid version."""
    crawls = {int(parse_compact_time(time).timestamp()): oid for time, oid in store.refs(CRAWLS).items()}
    before = sorted((time for time in crawls if time <= seconds), reverse=True)
    after = sorted(time for time in crawls if time > seconds)
    seen: set[str] = set()
    for time in (*before, *after):
        tree = store.commit(crawls[time]).tree
        data, head = store.find(tree, f"{arc}/{name}"), store.find(tree, f"{arc}/{HEADERS}")
        if data is not None and head is not None and not data.is_tree and data.oid not in seen:
            seen.add(data.oid)
            yield bool(before) and time == before[0], data.oid, store.read(head.oid)
        if len(seen) >= _MOST_VERSIONS:
            return


def _sha1(response: _ArchivedResponse) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in response.parts():
        digest.update(part)
    return base32(digest.digest())


def _scratch(folder: Path, stack: ExitStack) -> IO[bytes]:
    return stack.enter_context(tempfile.TemporaryFile(dir=folder, buffering=0))
