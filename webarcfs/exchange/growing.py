"""The result of an export while it grows: files that are written at their end, and notes from which it goes on.

Beside the result lies a file of notes, a line a checkpoint: which piece of which snapshot was written last, and where
the files ended. After a kill or a power cut what lies behind the last checkpoint is cut off and written again, so that
the bytes are the same as without it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Final

from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.system.fsync import sync_folder
from webarcfs.exchange.bodies import PayloadDigests
from webarcfs.exchange.documents import units
from webarcfs.exchange.records import Record, RecordCounts, SnapshotRecords
from webarcfs.exchange.selection import Selection
from webarcfs.exchange.summary import Progress, Stop, Summary

_log = logging.getLogger("webarc")
#: Why something is not in the result.
DAMAGED = "documents that cannot be read; `webarc-agent verify` says more"
#: Seconds between two checkpoints.
_SECONDS = 1.0
_BUFFER = 1 << 20
_SOME: Final = 100


@dataclass(slots=True)
class Mark:
    """A checkpoint: `unit` pieces of snapshot number `snapshot` are written; file number `file` ends at `size`."""

    snapshot: int = 0
    unit: int = 0
    file: int = 0
    size: int = 0
    closed: int = 0  # bytes of the files before
    records: int = 0
    documents: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


class Growing:
    """The files of a result: the first at `name(0)`, the next at `name(1)`. A context manager; for one thread.

    Each begins with `start(number)`. A file that has `most` bytes is followed by another one; None: there is one only.
    """

    def __init__(
        self, notes: Path, name: Callable[[int], Path], start: Callable[[int], bytes], most: int | None = None
    ) -> None:
        """Open them where the last checkpoint was. Raises Damaged if they are not as they were then, OSError."""
        self.mark = _last(notes) or Mark()
        self._name, self._start, self._most = name, start, most
        self._notes = notes
        self._file: IO[bytes] | None = None
        self._piece = self.mark.size
        self._told = time.monotonic()
        self._log: IO[bytes] | None = None
        self._go_on()

    def __enter__(self) -> Growing:
        return self

    def __exit__(self, *exc: object) -> None:
        for each in (self._file, self._log):
            with suppress(OSError):  # a full disk has raised already
                if each is not None:
                    each.close()

    def write(self, data: bytes) -> None:
        """Append to the current file."""
        assert self._file is not None
        self._file.write(data)
        self.mark.size += len(data)

    def begin_piece(self) -> None:
        """Say that a piece begins, in the next file if this one is full."""
        if self._most is not None and self.mark.size >= self._most:
            self._sync()
            self.mark.closed += self.mark.size
            self.mark.file, self.mark.size = self.mark.file + 1, 0
            self._open_new()
        self._piece = self.mark.size

    def drop_piece(self, error: Damaged) -> None:
        """Take back what was written of a piece that cannot be read to its end; other results than files raise."""
        assert self._file is not None
        _log.warning("%s", error)
        self._file.seek(self._piece)
        self._file.truncate()
        self.mark.size = self._piece

    def end_piece(self) -> None:
        """Say that a piece is complete; now and then it makes a checkpoint."""
        self.mark.unit += 1
        if time.monotonic() - self._told > _SECONDS:
            self.note()

    def note(self) -> None:
        """Make a checkpoint: all that was written is durable when this returns. Raises OSError."""
        self._sync()
        if self._log is None:
            self._log = self._notes.open("ab")
            sync_folder(self._notes.parent)
        self._log.write(json.dumps(asdict(self.mark)).encode() + b"\n")
        self._log.flush()
        os.fsync(self._log.fileno())
        self._told = time.monotonic()

    def _sync(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())

    def _go_on(self) -> None:
        number = self.mark.file + 1
        while (path := self._name(number)).exists() and self._most is not None:
            path.unlink()
            number += 1
        path = self._name(self.mark.file)
        path.parent.mkdir(exist_ok=True)
        if not self.mark.size:
            self._open_new()
            return
        try:
            self._file = path.open("r+b", buffering=_BUFFER)
        except FileNotFoundError:
            raise Damaged(
                f"{path} is gone, though an export was writing it; remove {path.parent}, and export anew"
            ) from None
        if os.fstat(self._file.fileno()).st_size < self.mark.size:
            raise Damaged(f"{path} is shorter than it was; remove {self._notes.parent}, and export anew")
        self._file.truncate(self.mark.size)
        self._file.seek(self.mark.size)

    def _open_new(self) -> None:
        if self._file is not None:
            self._file.close()
        path = self._name(self.mark.file)
        self._file = path.open("wb", buffering=_BUFFER)
        sync_folder(path.parent)
        self.write(self._start(self.mark.file))


class Stream:
    """The same on standard output, which cannot go on where it ended."""

    def __init__(self, start: bytes) -> None:
        self.mark = Mark()
        self.write(start)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def write(self, data: bytes) -> None:
        """Append to it."""
        sys.stdout.buffer.write(data)
        self.mark.size += len(data)

    def begin_piece(self) -> None:
        """Say that a piece begins."""

    def drop_piece(self, error: Damaged) -> None:
        """Raise `error`: what was written is gone."""
        raise error

    def end_piece(self) -> None:
        """Say that a piece is complete."""
        self.mark.unit += 1

    def note(self) -> None:
        """Write what is in memory."""
        sys.stdout.buffer.flush()


def fill(
    out: Growing | Stream, selection: Selection, write: Callable[[Record], None], progress: Progress, stop: Stop
) -> Summary:
    """Have `write` put each record of a selection into `out`, from its checkpoint on; return what came of it.

    A document that cannot be read is left out, and counted. Raises Interrupted when `stop` says so, Damaged, OSError.
    """
    mark, known = out.mark, len(selection)
    counts = RecordCounts(mark.documents, mark.left_out)
    with PayloadDigests() as digests:
        for exported in selection.after(mark.snapshot):
            progress("snapshots", mark.snapshot, known)
            is_whole = not mark.unit
            made = SnapshotRecords(exported, digests, counts)
            for unit in units(exported, mark.unit):
                out.begin_piece()
                before = mark.records, counts.documents
                try:
                    for record in made.of(unit):
                        write(record)
                        mark.records += 1
                except Damaged as error:
                    out.drop_piece(error)
                    mark.records, counts.documents = before
                    counts.leave_out(DAMAGED)
                mark.documents = counts.documents
                out.end_piece()
                if not mark.unit % _SOME:
                    progress("documents", counts.documents, counts.documents)
                if stop():
                    out.note()
                    raise Interrupted("the export was interrupted; the same command goes on")
            digests.turn(is_whole=is_whole)
            mark.snapshot, mark.unit = mark.snapshot + 1, 0
    out.note()
    progress("snapshots", known, known)
    return Summary(
        snapshots=known,
        documents=mark.documents,
        records=mark.records,
        bytes=mark.closed + mark.size,
        files=mark.file + 1,
        left_out=mark.left_out,
    )


def _last(notes: Path) -> Mark | None:
    """Return the last checkpoint; None without one. A line that a kill cut off is none."""
    try:
        lines = notes.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, TypeError):
            found = Mark(**json.loads(line))
            numbers = (getattr(found, each.name) for each in fields(found) if each.name != "left_out")
            if line.endswith(b"\n") and all(isinstance(each, int) and each >= 0 for each in numbers):
                return found
    return None
