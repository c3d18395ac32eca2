"""Resolves revisit records: finds the responses that they repeat (WARC 1.1, section 6.7 and annex).

A response is found by digest, or by the URL and time that the record refers to: in all files of the import, then in the
archive. In the archive it is the version of the URL that was valid at that time, or another version with that digest.
Without a digest, or if the server compressed the body (the digest is then of the compressed body), the time alone
decides.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent.capture.wgetcommand import BatchFiles
from agent.frontier.rows import UrlOutcome
from agent.importing.captures import Capture, settle
from agent.importing.tally import Tally
from agent.jobfolder.job import Job
from agent.policy.fetchstatus import NOT_MODIFIED, Status
from agent.policy.vocabulary import Reason, UrlState
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.model.arc_paths import HEADERS, arc_path, data_name, places, split
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import from_epoch, parse_compact_time
from webarcfs.content import mimetype
from webarcfs.warc import http_response, jobwarc
from webarcfs.warc.decoding import body_of
from webarcfs.warc.fields import base32, capture_key
from webarcfs.warc.writer import WarcWriter

_CHUNK = 1 << 18
#: Number of different versions of a URL that are compared with a digest.
_MOST_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class _Found:
    """A decoded body, and the head of its response."""

    head: bytes
    file: IO[bytes]
    size: int

    def parts(self) -> Iterator[bytes]:
        self.file.seek(0)
        while data := self.file.read(_CHUNK):
            yield data


def resolve(job: Job, losses: Tally, batch: int) -> None:
    """Settle every revisit of the job: write the response into the spool `batch`, or add the loss to `losses`."""
    with WarcWriter(BatchFiles(job.folder, batch).warc) as spool:
        for revisit in list(job.frontier.revisits()):
            _resolve(job, losses, spool, batch, revisit)


def _resolve(job: Job, losses: Tally, spool: WarcWriter, batch: int, revisit: dict[str, Any]) -> None:
    url, time = str(revisit["url"]), from_epoch(revisit["time"])
    arc = arc_path(url)
    capture = Capture(url, split(arc)[0], time)
    with ExitStack() as stack:
        found = _in_the_files(job, revisit, stack) or _in_the_archive(job, revisit, stack)
        if found is None:
            losses.add(capture.domain, "a revisit of what is neither in the files nor in the archive", url)
            lost = UrlOutcome(
                id=0, state=UrlState.FAILED, status=int(Status.INVALID_RESPONSE), note=Reason.REVISIT_UNRESOLVED
            )
            settle(job.frontier, capture, lost, batch)
            return
        own = http_response.parse_head(revisit["head"])
        raw = revisit["head"] if own is not None and own.status != NOT_MODIFIED else found.head
        head = http_response.parse_head(raw)
        assert head is not None  # it was read before
        settled = UrlOutcome(
            id=0,
            state=UrlState.DONE,
            status=head.document_status,
            position=spool.add(url, time, raw, found.parts()),
            size=found.size,
            mime=mimetype.declared_type(head.content_type),
            digest=str(revisit["digest"]).removeprefix("sha1:"),
            arc=split(arc)[1],
            note=Reason.REVISIT,
        )
        settle(job.frontier, capture, settled, batch)


def _in_the_files(job: Job, revisit: dict[str, Any], stack: ExitStack) -> _Found | None:
    keys = [revisit["digest"], capture_key(revisit["origin"], revisit["seen"])]
    place = next((place for key in keys if key and (place := job.frontier.capture(key))), None)
    if place is None:
        return None
    batch, position = place
    with BatchFiles(job.folder, batch).warc.open("rb") as file:
        response = jobwarc.response_at(file, position)
        body = _scratch(job.folder, stack)
        for part in body_of(response):
            body.write(part)
    return _Found(response.head.raw, body, body.tell())


def _in_the_archive(job: Job, revisit: dict[str, Any], stack: ExitStack) -> _Found | None:
    domain = split(arc_path(revisit["origin"]))[0]
    try:
        store = Repository(job.archive.repository(domain))
    except NotFound:
        return None
    body = _scratch(job.folder, stack)
    wanted = str(revisit["digest"]).removeprefix("sha1:")
    comparable = bool(wanted) and ":" not in wanted
    when = revisit["seen"] or revisit["time"]
    name = data_name(revisit["origin"])
    known = (each for arc in places(revisit["origin"]) for each in _versions(store, arc, name, when))
    for valid, blob, head in known:
        packed = http_response.parse_head(head)
        by_time = valid and (not comparable or (packed is not None and bool(packed.get("content-encoding"))))
        if not by_time and not comparable:
            continue
        body.seek(0)
        body.truncate()
        store.copy(blob, body.fileno())
        size = os.fstat(body.fileno()).st_size
        found = _Found(head, body, size)
        if packed is not None and (by_time or _sha1(found) == wanted):
            return found
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


def _sha1(found: _Found) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in found.parts():
        digest.update(part)
    return base32(digest.digest())


def _scratch(folder: Path, stack: ExitStack) -> IO[bytes]:
    return stack.enter_context(tempfile.TemporaryFile(dir=folder, buffering=0))
