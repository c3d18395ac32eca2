"""The WARC records of chosen versions: what replay, an import and a reader of WARC files need, and nothing else.

A version is a response (or what it was made of), with the request where that was no GET, and what a browser showed of
it. A capture that met it unchanged is a revisit, a redirect is a response. The archive's own files, additions and the
states of snapshots are in exports of snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from webarcfs.archive.model.metadata import from_epoch
from webarcfs.export.selection import Exported, Opener, crawl_of
from webarcfs.export.version_selection import ChosenCapture, RowKind, VersionReader
from webarcfs.export.warc_records import PayloadDigests, RecordCounts, SnapshotRecords, WarcRecord


class VersionRecords:
    """Makes the records of rows, which come in their order. `counts` has the versions that were written."""

    def __init__(self, open_: Opener, digests: PayloadDigests, counts: RecordCounts) -> None:
        self._reader = VersionReader(open_)
        self._digests = digests
        self._counts = counts
        self._records: SnapshotRecords | None = None

    def of(self, row: ChosenCapture) -> Iterator[WarcRecord]:
        """Yield the records of a row. Raises Damaged, Exists, OSError."""
        records, when = self._of_snapshot(row), from_epoch(row.captured)
        if row.kind is RowKind.REDIRECT:
            yield records.led(row.url, row.status, row.target, when)
            return
        _, document, meta = self._reader.document(row)
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
            store, tag = self._reader.store(row.domain), row.tag
            commit = store.commit_of(tag)
            crawl = crawl_of(store, tag, commit)
            exported = Exported(store, tag, store.commit(commit).tree, None, crawl.message, crawl.time)
            known = self._records = SnapshotRecords(exported, self._digests, self._counts)
        return known
