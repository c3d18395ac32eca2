"""The result of an export: its folder until it is whole, its files while they grow, and the counts of its summary.

A result is made in the folder `OUT.part` before it has its name. The folder has what was asked and the snapshots that
were selected then, the result under its own name, and what a format notes beside it. One process at a time works in it.
At the end the result is made durable, gets its name in one step, and the folder is removed.

Beside the result lies a file of notes, a line a checkpoint: which piece of which snapshot was written last, and where
the files ended. An interrupted export resumes from them. After a kill or a power cut what lies behind the last
checkpoint is cut off and written again, so that the bytes are the same as without it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Generic, TypeVar

from webarcfs.archive.model.errors import Damaged, Exists, Interrupted, UsageError
from webarcfs.archive.system import locks
from webarcfs.archive.system.clocks import Progress
from webarcfs.archive.system.files import replacing, sync_folder, sync_tree
from webarcfs.export.selection import Selection, Stop, units
from webarcfs.export.version_records import VersionRecords
from webarcfs.export.version_selection import ROWS, ChosenCapture, RowKind, VersionSelection
from webarcfs.export.warc_records import PayloadDigests, RecordCounts, SnapshotRecords, WarcRecord

# == summary, pure ====================================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was exported. `documents` are those of all snapshots: one that is in three snapshots counts three times.

    Of a search or query `versions` is what it found, and there are no snapshots; `documents` has their resources, too.
    `records` are those of the format, if it has records. `bytes` and `files` are those of the result. `left_out` has
    reason → number, for what the format cannot express or what could not be read: never silently. `hidden` counts what
    is in it and readers do not see; None: that is not known.
    """

    snapshots: int = 0
    versions: int = 0
    documents: int = 0
    records: int = 0
    bytes: int = 0
    files: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    hidden: Mapping[str, int] | None = None

    def as_fields(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self) | {"left_out": dict(self.left_out)}


# == unfinished =======================================================================================================


#: What an export may be of: snapshots, or versions that a question found.
Exportable = Selection | VersionSelection
S = TypeVar("S", Selection, VersionSelection)

_ASKED = "export.json"
_DONE = "done.json"
_LOCK = ".lock"
_NEW = ".new"
#: What a selection leaves in the folder before the export is written down.
_BEFORE = (_LOCK, f"{_ASKED}{_NEW}", ROWS, f"{ROWS}{_NEW}")
#: Files beyond which the whole system is synced at once: one after the other takes longer.
_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Unfinished(Generic[S]):
    """What makes a result at `out`. `asked` identifies it; `select` decides what to export, `again` makes the
    selection of what was written down when it began; `make` writes it to a scratch path. Both get the scratch folder.
    """

    out: Path
    asked: Mapping[str, str]
    select: Callable[[Path], S]
    again: Callable[[Mapping[str, Any], Path], S]
    make: Callable[[S, Path], Summary]

    def run(self) -> dict[str, Any]:
        """Make the result, or resume it; return the fields of its summary.

        Raises Exists if something else is at `out` or at its scratch folder, Busy while another process makes it,
        UsageError where it cannot be, and what its functions raise.
        """
        if not (self._part / _DONE).exists():
            self._drop_rest()
            must_be_free(self.out)
        if self._part.is_symlink() or (self._part.exists() and not self._part.is_dir()):
            raise Exists(f"{self._part} is in the way; an export would work there")
        self._part.mkdir(exist_ok=True)
        try:
            busy = f"another export is writing {self.out}; its folder is {self._part}"
            with locks.exclusive_or_busy(self._part / _LOCK, busy):
                return self._in_turn()
        finally:
            self._forget()

    @property
    def _part(self) -> Path:
        return self.out.with_name(f"{self.out.name}.part")

    def _in_turn(self) -> dict[str, Any]:
        selection, scratch, done = self._selected(), self._part / self.out.name, self._part / _DONE
        if done.exists() and not scratch.exists() and self.out.exists():
            summary: dict[str, Any] = _read(done)  # a kill came between its name and the end of the folder
        else:
            must_be_free(self.out)
            summary = self.make(selection, scratch).as_fields()
            _sync(scratch)
            _write(done, summary)
            give_name(scratch, self.out)
        shutil.rmtree(self._part)
        return summary

    def _selected(self) -> S:
        """Return the selection that was written down, or decide on one and write it down."""
        path = self._part / _ASKED
        if not path.exists():
            others = [entry.name for entry in self._part.iterdir() if entry.name not in _BEFORE]
            if others:
                raise Exists(f"{self._part} is no unfinished export, it has {others[0]}; remove it, or name another")
            selection = self.select(self._part)
            _write(path, {"asked": dict(self.asked), "selection": selection.as_json()})
            return selection
        try:
            noted = _read(path)
            before, snapshots = dict(noted["asked"]), dict(noted["selection"])
        except (KeyError, TypeError, ValueError):
            raise Damaged(f"{path} cannot be read; remove {self._part}, and export again") from None
        if before != self.asked:
            differences = ", ".join(
                f"{name} {value}" for name, value in before.items() if value != self.asked.get(name)
            )
            raise Exists(
                f"{self._part} is an unfinished export of something else: {differences}; finish it, or remove it"
            )
        return self.again(snapshots, self._part)

    def _drop_rest(self) -> None:
        """Remove what is left of the folder where a kill came after the result had its name."""
        if self.out.exists() and (self._part / _ASKED).exists() and not (self._part / self.out.name).exists():
            shutil.rmtree(self._part, ignore_errors=True)

    def _forget(self) -> None:
        """Remove the folder if nothing was begun in it."""
        own = (*_BEFORE, _ASKED)
        with suppress(OSError):
            if all(entry.name in own for entry in self._part.iterdir()):
                shutil.rmtree(self._part)


def must_be_free(out: Path) -> None:
    """Raise Exists if there is something at `out`: nothing is ever replaced. Raise UsageError without its folder."""
    parent = out.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"{parent} is no folder; make it first")
    if out.exists() or out.is_symlink():
        raise Exists(f"{out} is there already; give another name, or remove it")


def give_name(result: Path, out: Path) -> None:
    """Let a result that is whole, and on the disk, be `out`. Raises as `must_be_free` does, OSError."""
    must_be_free(out)
    result.rename(out)
    sync_folder(out.absolute().parent)


def _sync(result: Path) -> None:
    if not result.is_dir():
        with result.open("rb") as file:
            os.fsync(file.fileno())
    elif sum(len(files) for _, _, files in os.walk(result)) > _MANY:
        os.sync()
    else:
        sync_tree(result)


def _write(path: Path, value: dict[str, Any]) -> None:
    scratch = path.with_name(f"{path.name}{_NEW}")
    scratch.unlink(missing_ok=True)
    with replacing(path, scratch) as file:
        file.write(json.dumps(value).encode())


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_bytes())
    return value


# == growing ==========================================================================================================


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
    found: int = 0  # versions of a question


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
        for file in (self._file, self._log):
            with suppress(OSError):  # a full disk has raised already
                if file is not None:
                    file.close()

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
                f"{path} is gone, though an export was writing it; remove {path.parent}, and export again"
            ) from None
        if os.fstat(self._file.fileno()).st_size < self.mark.size:
            raise Damaged(f"{path} is shorter than it was; remove {self._notes.parent}, and export again")
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
    """The same on standard output, which cannot resume where it ended."""

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
    out: Growing | Stream, selection: Exportable, write: Callable[[WarcRecord], None], progress: Progress, stop: Stop
) -> Summary:
    """Have `write` put each record of a selection into `out`, from its checkpoint on; return what came of it.

    A document that cannot be read is left out, and counted. Raises Interrupted when `stop` says so, Damaged, OSError.
    """
    if isinstance(selection, VersionSelection):
        return _fill_versions(out, selection, write, progress, stop)
    mark, known = out.mark, len(selection)
    counts = RecordCounts(mark.documents, mark.left_out)
    with PayloadDigests() as digests:
        for exported in selection.after(mark.snapshot):
            progress("snapshots", mark.snapshot, known)
            is_whole = not mark.unit
            snapshot_records = SnapshotRecords(exported, digests, counts)
            for unit in units(exported, mark.unit):
                out.begin_piece()
                before = mark.records, counts.documents
                try:
                    for record in snapshot_records.of(unit):
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
                    raise Interrupted("the export was interrupted; the same command resumes it")
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


def _fill_versions(
    out: Growing | Stream,
    selection: VersionSelection,
    write: Callable[[WarcRecord], None],
    progress: Progress,
    stop: Stop,
) -> Summary:
    mark = out.mark
    counts = RecordCounts(mark.documents, mark.left_out)
    with PayloadDigests() as digests:
        version_records = VersionRecords(selection.open, digests, counts)

        def put(row: ChosenCapture) -> None:
            for record in version_records.of(row):
                write(record)
                mark.records += 1
            mark.documents = counts.documents

        fill_rows(out, selection, ((row, partial(put, row)) for row in selection.after(mark.unit)), progress, stop)
    return Summary(
        versions=mark.found,
        documents=mark.documents,
        records=mark.records,
        bytes=mark.closed + mark.size,
        files=mark.file + 1,
        left_out=mark.left_out | selection.left_out,
    )


def fill_rows(
    out: Growing | Stream,
    selection: VersionSelection,
    rows: Iterable[tuple[ChosenCapture, Callable[[], None]]],
    progress: Progress,
    stop: Stop,
) -> None:
    """Do for each row what is given with it, which writes it; count the versions that were written.

    What cannot be read is left out, and counted. Raises Interrupted when `stop` says so, Damaged, OSError.
    """
    mark = out.mark
    for row, put in rows:
        out.begin_piece()
        before = mark.records, mark.documents
        try:
            put()
            mark.found += row.is_match and row.kind is RowKind.VERSION
        except Damaged as error:
            out.drop_piece(error)
            mark.records, mark.documents = before
            mark.left_out[DAMAGED] = mark.left_out.get(DAMAGED, 0) + 1
        out.end_piece()
        if not mark.unit % _SOME:
            progress("captures", mark.unit, len(selection))
        if stop():
            out.note()
            raise Interrupted("the export was interrupted; the same command resumes it")
    out.note()
    progress("captures", len(selection), len(selection))


def log_damage(error: Damaged) -> None:
    """Say on the log that something is left out."""
    _log.warning("%s", error)


def _last(notes: Path) -> Mark | None:
    """Return the last checkpoint; None without one. A line that a kill cut off is none."""
    try:
        lines = notes.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, TypeError):
            mark = Mark(**json.loads(line))
            numbers = (getattr(mark, attribute.name) for attribute in fields(mark) if attribute.name != "left_out")
            if line.endswith(b"\n") and all(isinstance(number, int) and number >= 0 for number in numbers):
                return mark
    return None
