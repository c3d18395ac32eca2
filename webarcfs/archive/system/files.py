"""Files and folders: durable writes, whole files, temporary folders, mirrors, sorting, small JSON files.

Writes are complete, and names durable: a file is durable when its folder is, too (fsync(2)).

`rewound`, `size_of` and `blob_id_of` are of a whole file, whatever was read of it before.

Whoever makes a temporary folder holds a lock in it; the death of a process releases it. So what a killed process
leaves, the next one removes.

A mirror copies plain files for backups: files of equal size and time stay, new ones appear completely or not at all.

More rows than memory holds are sorted in parts, which an unnamed file keeps until they are read. It is for one thread,
and is removed with its object or its process.

Small JSON files are replaced atomically: after a crash a file is whole or absent.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import heapq
import json
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from io import IOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system import locks

# == fsync ============================================================================================================


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of `data`: write(2) may accept less at a time. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_all_at(fd: int, data: bytes, at: int) -> None:
    """Write all of `data` at an offset of the file (pwrite(2)). Raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


@contextmanager
def replacing(path: Path, scratch: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file, `scratch` until the block ends, then moved to `path` in one step; durable, with its name.

    If the block or the disk fails, the old file at `path` remains. Raises OSError; FileExistsError if `scratch` exists
    already.
    """
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 # it is a descriptor
            yield file
            if durable:
                file.flush()
                os.fsync(fd)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_tree(root: Path) -> None:
    """Sync everything in a new folder, and the folder, but not its name. Raises OSError.

    An empty folder is durable with the folder that names it.
    """
    for folder, folders, files in os.walk(root):
        if not folders and not files and Path(folder) != root:
            continue
        for name in files:
            fd = os.open(Path(folder, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(Path(folder))


def sync_folder(path: Path) -> None:
    """Sync names that were made or removed in a folder. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# == whole files ======================================================================================================


_READ_AT_ONCE = 1 << 16


def rewound(file: IOBase) -> IOBase:
    """Return a file at its begin."""
    file.seek(0)
    return file


def size_of(file: IOBase) -> int:
    """Return the size of a file, which is at its begin then."""
    size = file.seek(0, os.SEEK_END)
    rewound(file)
    return size


def blob_id_of(file: IOBase) -> str:
    """Return the id that a blob of a file would get, without storing it."""
    digest = blob_hash(size_of(file))
    while data := file.read(_READ_AT_ONCE):
        digest.update(data)
    return digest.hexdigest()


def blob_id(body: bytes) -> str:
    """Return the id that git gives a blob of these bytes (gitformat: `blob <size>`, NUL, bytes)."""
    digest = blob_hash(len(body))
    digest.update(body)
    return digest.hexdigest()


def blob_hash(size: int) -> hashlib._Hash:
    """Return the beginning of a blob's hash, to be updated with its `size` bytes."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


# == temporary folders ================================================================================================


#: Begins the names of those with the repositories that are made for readers.
OF_READERS = "webarcfs-reader-"
_LOCK = "lock"


class TemporaryFolder:
    """A new folder whose name begins with `prefix`, until `remove`; it removes those that killed processes left."""

    def __init__(self, prefix: str) -> None:
        remove_left(prefix)
        while (lock := self._make(prefix)) is None:
            continue
        self._unlock = weakref.finalize(self, os.close, lock)

    def _make(self, prefix: str) -> int | None:
        """Make the folder, and return what holds it; None if another process took it for left before it was held."""
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        try:
            lock = locks.try_exclusive(self.path / _LOCK)
        except FileNotFoundError:
            return None
        if lock is None or (self.path / _LOCK).exists():
            return lock
        os.close(lock)
        return None

    def remove(self) -> None:
        """Remove the folder and all in it."""
        self._folder.cleanup()
        self._unlock()


def remove_left(prefix: str) -> None:
    """Remove the folders of this user that have such a name, and that no process holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_own(folder):
            _remove_if_left(folder)


def _is_own(folder: Path) -> bool:
    try:
        about = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _remove_if_left(folder: Path) -> None:
    try:
        with locks.if_free(folder / _LOCK) as is_left:
            if is_left:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # it went meanwhile, or is of another kind
        return


# == file mirror ======================================================================================================


_SCRATCH = ".copying-"


def mirror(source: Path, target: Path, other: list[Path] | None = None) -> set[Path]:
    """Copy a file, or a folder with its content; return the existing files, relative to `source`.

    Files that vanish meanwhile are skipped, and so are hidden ones (a report being written); links are copied as links,
    and nothing is deleted. With `other`, the content of files of equal size and time is compared; if it differs, one
    of the two is damaged, and that of `target` is added to `other`. Raises OSError.
    """
    if not source.is_dir():
        return {Path()} if _copy(source, target, other) else set()
    target.mkdir(parents=True, exist_ok=True)
    paths = set()
    for relative in sorted(_below(source, Path())):
        if _copy(source / relative, target / relative, other):
            paths.add(relative)
    return paths


def remove_others(target: Path, kept: set[Path]) -> None:
    """Remove the files of a folder that are not in `kept`."""
    for relative in list(_below(target, Path())):
        if relative not in kept:
            (target / relative).unlink(missing_ok=True)


def _below(folder: Path, relative: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in sorted(os.scandir(folder / relative), key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder, relative / entry.name)
            else:
                yield relative / entry.name


def _copy(source: Path, target: Path, other: list[Path] | None) -> bool:
    try:
        there = source.lstat()
        here = target.lstat() if os.path.lexists(target) else None
        if here is not None and (here.st_size, here.st_mtime_ns) == (there.st_size, there.st_mtime_ns):
            if other is None or source.is_symlink() or filecmp.cmp(source, target, shallow=False):
                return True
            again = source.lstat()
            if (again.st_size, again.st_mtime_ns) == (there.st_size, there.st_mtime_ns):
                other.append(target)
                return True
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f"{_SCRATCH}{target.name}"[:255])
        scratch.unlink(missing_ok=True)
        shutil.copy2(source, scratch, follow_symlinks=False)
    except FileNotFoundError:
        if source.parent.exists() and not os.path.lexists(source):
            return False
        raise
    if not scratch.is_symlink():
        fd = os.open(scratch, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    scratch.replace(target)
    return True


# == sorting ==========================================================================================================


#: Bytes of rows in memory before they are written out; each row takes some 40 more.
_PART = 4 << 20
#: Bytes of each part that are read at a time.

_LENGTH = 4


class Sorter:
    """Accepts rows of bytes in any order, returns them sorted. A context manager: its end frees the disk."""

    def __init__(self, folder: Path, part: int = _PART) -> None:
        """`folder` receives rows that do not fit into memory, under a name `tmp_…` if it cannot have unnamed files."""
        self._folder = folder
        self._most = part
        self._rows: list[bytes] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._ends: list[int] = []

    def add(self, row: bytes) -> None:
        """Add a row. Raises OSError on a full disk."""
        self._rows.append(row)
        self._bytes += len(row)
        if self._bytes >= self._most:
            self._write_out()

    def rows(self) -> Iterator[bytes]:
        """Return all rows in order; no more may be added."""
        self._rows.sort()
        starts = [0, *self._ends][:-1]
        parts = [self._part(start, end) for start, end in zip(starts, self._ends, strict=True)]
        return heapq.merge(*parts, self._rows) if parts else iter(self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._rows.clear()
        if self._file is not None:
            self._file.close()

    def _write_out(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="tmp_")  # noqa: SIM115 # __exit__ closes it
        self._rows.sort()
        for row in self._rows:
            self._file.write(len(row).to_bytes(_LENGTH, "big") + row)
        self._file.flush()
        self._ends.append(self._file.tell())
        self._rows.clear()
        self._bytes = 0

    def _part(self, start: int, end: int) -> Iterator[bytes]:
        assert self._file is not None
        fd, data, at = self._file.fileno(), b"", 0
        while start < end or at < len(data):
            missing = 0 if len(data) - at < _LENGTH else int.from_bytes(data[at : at + _LENGTH], "big")
            if len(data) - at < _LENGTH + missing:
                size = min(max(_READ_AT_ONCE, missing), end - start)
                data, at, start = data[at:] + os.pread(fd, size, start), 0, start + size
                continue
            yield data[at + _LENGTH : at + _LENGTH + missing]
            at += _LENGTH + missing


# == jsonfile =========================================================================================================


def write_json(path: Path, content: dict[str, Any], *, durable: bool = True) -> None:
    """Replace `path` by `content` atomically. Durable: it is on the disk on return (fsync(2) of file and folder).

    Raises OSError (the disk is full, the folder does not exist); `path` is then unchanged.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)  # left by a dead process with the same process id
    try:
        with replacing(path, scratch, durable=durable) as file:
            file.write(_encoded(content) + b"\n")
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _encoded(content: dict[str, Any]) -> bytes:
    try:
        return json.dumps(content, indent=2, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a name that is no UTF-8
        return json.dumps(content, indent=2).encode()


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the content of `path`; None if the file does not exist. Raises Damaged if it is no JSON object."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise Damaged(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise Damaged(f"{path} holds no JSON object")
    return content
