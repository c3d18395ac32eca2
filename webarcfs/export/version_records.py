"""The WARC records of chosen versions: what replay, an import and a reader of WARC files need, and nothing else.

A version is a response (or what it was made of), with the request where that was no GET, and what a browser showed of
it. A capture that met it unchanged is a revisit, a redirect is a response. The archive's own files, additions and the
states of snapshots are in exports of snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import MetaData, from_epoch
from webarcfs.export.selection import Exported, ExportedDocument, Opener, crawl_of
from webarcfs.export.version_selection import ChosenCapture, RowKind, VersionReader
from webarcfs.export.warc_records import PayloadDigests, RecordCounts, SnapshotRecords, WarcRecord


class VersionDocuments:
    """Reads the documents of rows, as the asker sees them. For one thread."""

    def __init__(self, open_: Opener) -> None:
        self.reader = VersionReader(open_)

    def of(self, row: ChosenCapture) -> tuple[Repository, ExportedDocument, MetaData]:
        """Return the repository, the document of a row, and its metadata. Raises Damaged, Exists."""
        store, files = self.reader.files(row)
        try:
            meta = data_xml.metadata(store.read(files[DATA_XML]))
        except InvalidDocument as error:
            raise Damaged(f"{row.tag} {row.path}: {error}") from None
        return store, ExportedDocument(row.arc, files, None, files), meta


class VersionRecords:
    """Makes the records of rows, which come in their order. `counts` has the versions that were written."""

    def __init__(self, open_: Opener, digests: PayloadDigests, counts: RecordCounts) -> None:
        self._documents = VersionDocuments(open_)
        self._digests = digests
        self._counts = counts
        self._records: SnapshotRecords | None = None

    def of(self, row: ChosenCapture) -> Iterator[WarcRecord]:
        """Yield the records of a row. Raises Damaged, Exists, OSError."""
        records, when = self._of_snapshot(row), from_epoch(row.captured)
        if row.kind is RowKind.REDIRECT:
            yield records.led(row.url, row.status, row.target, when)
            return
        _, document, meta = self._documents.of(row)
        if row.kind is RowKind.REVISIT:
            first = from_epoch(row.of_captured), bytes.fromhex(row.digest)
            yield from records.again(document, meta, (row.url, when), first, records.named(document))
            return
        response = ""
        for record in records.capture(document, meta, when):
            response = response or record.id
            yield record
        if meta.rendered:
            yield from records.rendered(document.path, meta, response)
        self._counts.documents += 1

    def _of_snapshot(self, row: ChosenCapture) -> SnapshotRecords:
        known = self._records
        if known is None or known.exported.tag != row.tag:
            store, tag = self._documents.reader.store(row.domain), row.tag
            commit = store.commit_of(tag)
            crawl = crawl_of(store, tag, commit)
            exported = Exported(store, tag, store.commit(commit).tree, None, crawl.message, crawl.time)
            known = self._records = SnapshotRecords(exported, self._digests, self._counts)
        return known
