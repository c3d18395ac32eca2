"""The format of a journal's log: records with length and checksum. Pure.

A log is a line that names the format, then records. An incomplete record at the end, cut off by a crash, is none; a
damaged record is skipped, since the next one can be found by its mark.

A log of provisional files has another version, so that older programs leave it alone. Only the last state of each file
counts in it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, decode, encode
from webarcfs.archive.model.errors import Damaged

#: The first line of a log; the number is the format's version.
HEADER: Final = b"webarcfs journal 1\n"
#: The first line of a log of provisional files.
PROVISIONAL_HEADER: Final = b"webarcfs journal 2\n"
_FORMAT: Final = b"webarcfs journal "
_MARK: Final = b"WAR\x1e"
_FRAME: Final = len(_MARK) + 8
#: Bodies up to this size are part of their record; larger ones are files beside the log.
INLINE: Final = 64 * 1024
#: A longer length is damage.
LONGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One addition in a log. Its body is at `offset` of the log, or in the file `file` beside it."""

    number: int
    addition: Addition
    offset: int
    size: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """Part of a log: its records, the offset after the last of them, and damaged spans.

    `tail` classifies the bytes after it: none, the beginning of a record ("torn"), or other bytes ("damaged").
    """

    records: tuple[LogRecord, ...]
    end: int
    damage: tuple[tuple[int, int], ...]
    tail: str


def is_newer(head: bytes) -> bool:
    """Return whether a newer version of this program wrote a log that begins so."""
    return head.startswith(_FORMAT) and not head.startswith((HEADER, PROVISIONAL_HEADER))


def frame(number: int, addition: Addition, body: bytes = b"", file: str = "") -> bytes:
    """Return a record with `body` inside it, or in `file`. For AddNodes, the nodes are the body."""
    payload = b"%d %s %s\n%s" % (number, file.encode("ascii") or b"-", encode(addition), body)
    length = len(payload).to_bytes(4, "little")
    return _MARK + length + zlib.crc32(length + payload).to_bytes(4, "little") + payload


def scan(data: bytes, start: int) -> Scan:
    """Read the records of `data`, which is at offset `start` of a log and begins with a record."""
    records: list[LogRecord] = []
    damage: list[tuple[int, int]] = []
    at = 0
    while at < len(data):
        found = _record(data, at, start)
        if found is None:
            next_one = _next_record(data, at, start)
            if next_one is None:
                break
            damage.append((start + at, start + next_one))
            at = next_one
        else:
            record, at = found
            records.append(record)
    return Scan(tuple(records), start + at, tuple(damage), _tail(data[at:]))


def _record(data: bytes, at: int, start: int) -> tuple[LogRecord, int] | None:
    """Return the record at `at` and the offset after it; None for an incomplete or damaged one."""
    body = at + _FRAME
    if data[at : at + len(_MARK)] != _MARK or body > len(data):
        return None
    length, check = data[at + 4 : at + 8], int.from_bytes(data[at + 8 : at + 12], "little")
    end = body + int.from_bytes(length, "little")
    if end - body > LONGEST or end > len(data):
        return None
    payload = data[body:end]
    if zlib.crc32(length + payload) != check:
        return None
    try:
        return _read(payload, start + body), end
    except (Damaged, ValueError):
        return None


def _read(payload: bytes, start: int) -> LogRecord:
    line, newline, body = payload.partition(b"\n")
    number, file, text = line.split(b" ", 2)
    name = "" if file == b"-" else file.decode("ascii")
    addition = decode(text, body)
    size = addition.size if isinstance(addition, AddFile) else len(body)
    if not newline or (isinstance(addition, AddFile) and not name and len(body) != addition.size):
        raise Damaged("a record without its body")
    return LogRecord(int(number), addition, start + len(line) + 1, size, name)


def _next_record(data: bytes, at: int, start: int) -> int | None:
    """Return the offset of the next sound record after damage at `at`, or None."""
    while (at := data.find(_MARK, at + 1)) >= 0:
        if _record(data, at, start) is not None:
            return at
    return None


def _tail(rest: bytes) -> str:
    """Classify the bytes after the last record; a file system may leave zeros where data were not written yet."""
    if not rest:
        return ""
    if not rest.strip(b"\0") or len(rest) < _FRAME:
        return "torn"
    length = int.from_bytes(rest[4:8], "little")
    cut = rest.startswith(_MARK) and length <= LONGEST and _FRAME + length > len(rest)
    return "torn" if cut else "damaged"


def with_nodes(record: LogRecord, nodes: bytes) -> LogRecord:
    """Return a record of AddNodes with its nodes, which were in a file."""
    addition = record.addition
    assert isinstance(addition, AddNodes)
    whole = AddNodes(addition.place, nodes, addition.author, addition.time, addition.source)
    return LogRecord(record.number, whole, record.offset, len(nodes), record.file)
