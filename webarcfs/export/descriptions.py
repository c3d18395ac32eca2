"""The descriptions of crawls that go with an export: the records of its snapshots, as XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from webarcfs.access.gate import Gate
from webarcfs.archive.catalogue.catalogue import Catalogue, opened
from webarcfs.archive.catalogue.record import RecordState, write_record
from webarcfs.archive.config.directory import Archive
from webarcfs.export.export_result import Exportable
from webarcfs.export.version_selection import VersionSelection

#: The folder of records in a result.
FOLDER = "records"


def descriptions(archive: Archive, selection: Exportable, gate: Gate | None) -> Iterator[tuple[str, bytes]]:
    """Yield the record of each crawl of a selection: the name of its file, and XML (xsd/record.xsd).

    For a reader, whose `gate` it is, they are those that it may see, with the fields that readers see.
    """
    catalogue = Catalogue(archive)
    ids = _record_ids(archive, catalogue, selection)
    if gate is None or gate.is_staff:
        records = (catalogue.read(record_id)[0] for record_id in sorted(ids))
    else:
        records = (record for record in gate.records() if record.id in ids)
    for record in records:
        if record.state is not RecordState.DISCARDED:
            yield f"{record.id}.xml", write_record(record)


def write_records(folder: Path, records: Iterable[tuple[str, bytes]]) -> tuple[int, int]:
    """Write records into their folder in another one, which there is; return their number and bytes."""
    count = size = 0
    for name, content in records:
        (folder / FOLDER).mkdir(exist_ok=True)
        (folder / FOLDER / name).write_bytes(content)
        count, size = count + 1, size + len(content)
    return count, size


def _record_ids(archive: Archive, catalogue: Catalogue, selection: Exportable) -> set[str]:
    seqs: dict[str, set[int]] = {}
    if isinstance(selection, VersionSelection):
        for row in selection.after(0):
            seqs.setdefault(row.domain, set()).add(row.seq)
    else:
        for domain, snapshots in selection.chosen.items():
            seqs[domain] = {int(snapshot.tag.crawl_time.timestamp()) for snapshot in snapshots}
    with opened(archive, catalogue) as tables:
        return {
            record_id for domain, own in seqs.items() for seq, record_id in tables.records(domain).items() if seq in own
        }
