"""Reads exported WARCs into git: each body becomes a blob of its domain's repository, without any ref.

A body is stored once its record is known to be whole. A process that is killed leaves objects only, and the next one
finds them: git's importer keeps none twice.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import IO

from agent.importing.exported import records as exported
from agent.importing.exported.records import Named, NamedDocument, NamedMet, NamedRedirect, NamedSnapshot
from agent.importing.exported.rows import row_of
from agent.importing.foreign import ForeignRecord, Report, Step
from agent.importing.parts import parts_of
from agent.importing.sources import Source
from agent.importing.tally import printable
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.fast_import import FastImport
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import locks
from webarcfs.archive.system.sorting import Sorter
from webarcfs.warc.tolerant import LONGEST_HEAD

#: A smaller body waits in memory until its record is whole, a larger one in a file without a name.
_IN_MEMORY = 1 << 20
_CHUNK = 1 << 16
#: Lines on faults of the files that are kept.
MOST_FAULTS = 20


class Intake:
    """Takes files in. A context manager; `rows` and `snapshots` are complete after `end`.

    `is_there` tells whether the archive has a snapshot already: its records are passed over.
    """

    def __init__(self, archive: Archive, stop: threading.Event, is_there: Callable[[NamedSnapshot], bool]) -> None:
        self._archive = archive
        self._stop = stop
        self._is_there = is_there
        self._stack = ExitStack()
        self._open: _Blobs | None = None
        self.rows = self._stack.enter_context(Sorter(archive.log))
        self.snapshots: dict[CommitTag, NamedSnapshot] = {}
        #: The blobs of the lists of what their crawls met.
        self.lists: dict[CommitTag, str] = {}
        #: Snapshots that cannot be taken, with the reason.
        self.refused: dict[CommitTag, str] = {}
        self.there: set[CommitTag] = set()
        #: The domains whose repositories were written to.
        self.touched: set[str] = set()
        #: Numbers of records of snapshots' parts, and of responses.
        self.named, self.others = 0, 0
        #: Number of records that were not whole; lines on them.
        self.broken = 0
        self.faults: list[str] = []

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._open is not None:
            self._open.close()
        self._stack.close()

    def file(self, source: Source, step: Step) -> None:
        """Read one file; `step` is called with the bytes taken. Raises OSError on a full disk, Damaged."""
        report = Report()
        for part in parts_of(source.path, source.name, report, step):
            for record in part.records:
                step(part.taken())
                self._record(part.name, record)
        for line in report.losses.lines():
            self._fault(line)

    def end(self) -> None:
        """Store all that was taken in."""
        if self._open is not None:
            self._open.finish()
            self._open.close()
            self._open = None

    def _fault(self, line: str) -> None:
        self.broken += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(printable(line))

    def _record(self, file: str, record: ForeignRecord) -> None:
        try:
            found = self._read(record)
        except Damaged as error:
            self._fault(f"{file}: {error}")
            return
        if isinstance(found, NamedSnapshot):
            self._snapshot(found)
        elif found is not None and found.tag not in self.there:
            blob = self._blob(record, found)
            if not record.whole():
                return  # `records` complains
            if isinstance(found, NamedMet):
                self.lists[found.tag] = blob or ""
            else:
                self.rows.add(row_of(found, blob))

    def _read(self, record: ForeignRecord) -> Named | NamedSnapshot | None:
        """Return what a record names, its HTTP head read; None where that is nothing, or it is not whole."""
        if exported.is_snapshot(record.fields):
            block = _block(record)
            return exported.snapshot(record.fields, block) if record.whole() else None
        found = exported.named(record.fields)
        self.named, self.others = self.named + (found is not None), self.others + (record.type == "response")
        if isinstance(found, NamedMet) and record.length > exported.LONGEST_MET:
            raise Damaged(f"{found.tag}: a list of {record.length} bytes of what its crawl met")
        if isinstance(found, NamedDocument) and found.stored and record.type == "response":
            _skip_head(record)
        return found

    def _snapshot(self, found: NamedSnapshot) -> None:
        known = self.snapshots.setdefault(found.tag, found)
        if known.tree != found.tree:
            self.refused[found.tag] = f"two of the files say different things of it: trees {known.tree}, {found.tree}"
        if self._is_there(found):
            self.there.add(found.tag)

    def _blob(self, record: ForeignRecord, named: Named) -> str | None:
        """Store the body of a record; return its blob, None where there is none, or the record is not whole."""
        if isinstance(named, NamedRedirect) or not (isinstance(named, NamedMet) or named.stored):
            return None
        what = "what it met" if isinstance(named, NamedMet) else named.arc
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="tmp_", dir=str(self._archive.log)) as body:
            while data := record.read(_CHUNK):
                body.write(data)
            if not record.whole():
                return None
            size = body.tell()
            body.seek(0)
            return self._blobs(named.tag.domain).store(f"{named.tag}: {what}", size, body)

    def _blobs(self, domain: str) -> _Blobs:
        if self._open is None or self._open.domain != domain:
            self.end()
            self.touched.add(domain)
            self._open = _Blobs(self._archive, domain, self._stop)
        return self._open


class _Blobs:
    """The importer of one domain, under the lock that keeps crawls from tidying up its unfinished packs."""

    def __init__(self, archive: Archive, domain: str, stop: threading.Event) -> None:
        self.domain = domain
        with ExitStack() as stack:
            stack.enter_context(locks.exclusive_until(archive.publishing_lock(domain), stop))
            path = archive.repository(domain)
            store = Repository(path) if path.is_dir() else Repository.create(path)
            with locks.exclusive(archive.committing_lock(domain)):
                store.drop_scratch()
            self._importer: FastImport = stack.enter_context(store.importer(None))
            self._stack = stack.pop_all()

    def store(self, what: str, size: int, body: IO[bytes]) -> str:
        """Store a body; return its blob."""
        return self._importer.store(what, size, iter(lambda: body.read(_CHUNK), b""))

    def finish(self) -> None:
        """Make what was stored part of the repository."""
        self._importer.finish()

    def close(self) -> None:
        """End the importer, and release the lock."""
        self._stack.close()


def drop_empty(archive: Archive, domain: str) -> None:
    """Remove the repository of a domain that has no ref: of an import that published nothing."""
    path = archive.repository(domain)
    if not path.is_dir() or Repository(path).ref_names("refs/"):
        return
    with locks.exclusive(archive.publishing_lock(domain)), suppress(NotFound):
        if not Repository(path).ref_names("refs/"):  # nobody began to crawl it meanwhile
            shutil.rmtree(path)


def _block(record: ForeignRecord) -> bytes:
    """Return the block of a snapshot's record."""
    if record.length > exported.LONGEST_SNAPSHOT:
        raise Damaged(f"{record.fields.get('warc-target-uri', '')}: a record of {record.length} bytes")
    return b"".join(iter(lambda: record.read(_CHUNK), b""))


def _skip_head(record: ForeignRecord) -> None:
    """Read the HTTP head of a response."""
    size = 0
    while line := record.readline(LONGEST_HEAD):
        size += len(line)
        if line in (b"\r\n", b"\n"):
            return
        if size > LONGEST_HEAD:
            break
    raise Damaged(f"{record.fields.get('warc-target-uri', '')}: a response whose head does not end")


def in_order(sources: Sequence[Source]) -> list[Source]:
    """Return files by name: as they were written, so that what is there already is known before its records."""
    return sorted(sources, key=lambda source: (source.name, source.digest))
