"""Compares what a journal holds in memory with what is on disk, for additions that a commit did not take."""

from __future__ import annotations

from collections.abc import Iterable

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import LogReader, log_path
from webarcfs.archive.journal.pending import JournalPosition
from webarcfs.archive.model.addition import AddFile


def find_on_disk(archive: Archive, positions: Iterable[JournalPosition]) -> set[tuple[str, int]]:
    """Return the keys of the additions that another process could still commit: record and body are in the journal."""
    wanted = {position.key: position for position in positions}
    on_disk = set()
    for log in sorted({log for log, _ in wanted}):
        reader = LogReader(log_path(archive, log))
        for record in _records(reader):
            position = wanted.get((log, record.number))
            if position is not None and record.addition == position.addition and _has_body(reader, record):
                on_disk.add(position.key)
    return on_disk


def _records(reader: LogReader) -> list[LogRecord]:
    try:
        return reader.more() or []
    except OSError:
        return []


def _has_body(reader: LogReader, record: LogRecord) -> bool:
    """Return whether the body of a record is there in full length; AddNodes was read with its nodes."""
    if not record.file or not isinstance(record.addition, AddFile):
        return True
    try:
        return (reader.bodies / record.file).stat().st_size == record.size
    except OSError:
        return False
