"""A file being written, and the operations of its handles: bytes in an unnamed file on the journal's disk.

Every process on the mount sees a draft under its name from the start, as on any file system. A close or fsync confirms
its bytes as a version of the file, and the draft continues as long as a handle is open (dup, fork, mmap). Safe for any
thread: its lock is held while bytes change or are written to the journal, and never during a notification of the
kernel.

A close cannot tell whether it is the last one, so a draft knows which of its handles were used since they were closed.
While there is one, the name means the draft; else the version that was confirmed last, until a handle is used after
all.
"""

# ruff: noqa: D102 # view/node.py specifies the methods of a node
from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from webarcfs.archive.journal.journal import StoredBody
from webarcfs.archive.journal.log_format import INLINE
from webarcfs.archive.model.addition import ArcVersion, blob_hash, blob_id
from webarcfs.archive.model.errors import LookAgain, NotSupported, Replaced
from webarcfs.archive.system.fsync import write_all_at
from webarcfs.view.content import Content
from webarcfs.view.node import Attrs, File, number
from webarcfs.view.state.ownership import OPEN, Ownership
from webarcfs.view.tree.files import provisional_xattrs

_PIECE = 1 << 20
_numbers = itertools.count(1)

#: Bytes of a hole that are accepted without a check of the free space.
LARGE_HOLE = 1 << 30
#: fallocate(2): reserve space beyond the end without making the file longer.
KEEP_SIZE = 1


class Draft:
    """A new file of `maker` at `path` in the ARC `place`, with one open handle; `new_file` makes unnamed files."""

    def __init__(self, place: ArcVersion, path: str, maker: Ownership, mtime: int, new_file: Callable[[], int]) -> None:
        self.place = place
        self.path = path
        self.maker = maker
        self.mtime = mtime
        self.number = next(_numbers)
        #: Its st_ino: that of the version that its maker opened again; programs compare it (vim). 0: one of its own.
        self.ino = 0
        self.lock = threading.RLock()
        #: Held for moments only: no look at the size waits for the disk, nor finds the descriptor of another file.
        self._descriptor = threading.RLock()
        self.handles = 1
        #: Whether it differs from what was last confirmed; also True for a new, empty file.
        self.dirty = True
        #: The blob confirmed last, and its size.
        self.blob = ""
        self.blob_size = 0
        #: All confirmed blobs: git may have any of them by now.
        self.blobs: set[str] = set()
        #: Whether it was renamed onto data.xml, and is no longer a file.
        self.gone = False
        #: Whether it is provisional when it is closed, and not final.
        self.provisional = False
        #: Whether its maker removed it: its handles go on, and nothing of it is kept.
        self.removed = False
        #: Whether its name means the draft, and not the version confirmed last: from the start until the close of all
        #: its handles, as far as a close can tell, and again when one of them is used after that (dup, mmap).
        self.shown = True
        #: The handles used since their last close (a close cannot tell whether it is the last one).
        self.in_use: set[object] = set()
        #: Whether confirming failed since the last write.
        self.failed = False
        self._new_file = new_file
        self._fd = new_file()
        self._users = 1  # including readers
        self._lent = False
        self._size = 0
        self._fault: OSError | None = None

    def take_over(self, blob: str, body: StoredBody) -> None:
        """Begin with the bytes of the version that was confirmed last, whose name it does not have yet."""
        if body.data is not None:
            write_all_at(self._fd, body.data, 0)
        else:
            os.dup2(body.fd, self._fd, inheritable=False)
            self._lent = True
        self.blob, self.blob_size, self.blobs = blob, body.size, {blob}
        self.dirty = self.shown = False

    @property
    def has_name(self) -> bool:
        """Whether it is a file of the ARC still."""
        return not (self.gone or self.removed)

    @property
    def is_open(self) -> bool:
        """Whether a handle is open, for writing or reading."""
        return self._users > 0

    @property
    def size(self) -> int:
        with self._descriptor:
            return os.fstat(self._fd).st_size if self._users else self._size

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def write(self, data: bytes, offset: int | None) -> int:
        """Write all of `data` at `offset`, or at the end. Raises OSError."""
        with self.lock:
            self._change()
            at = self.size if offset is None else offset
            self._check_room(at, LARGE_HOLE)
            try:
                write_all_at(self._fd, data, at)
            except OSError as error:
                if error.errno != errno.EFBIG:  # an EFBIG wrote nothing: the content is intact
                    self._fault = error
                raise
        return len(data)

    def truncate(self, size: int) -> None:
        with self.lock:
            if size != self.size:
                self._check_room(size, LARGE_HOLE)
                self._change(keep=size)
                os.ftruncate(self._fd, size)
            if size == 0:
                self._fault = None

    def allocate(self, mode: int, offset: int, length: int) -> None:
        """Reserve space (fallocate(2)). Raises OSError, and NotSupported for any other mode."""
        if mode not in (0, KEEP_SIZE):
            raise NotSupported(f"fallocate of mode {mode}")
        if mode == 0:
            with self.lock:
                self._check_room(offset + length, 0)
                self._change()
                size = self.size
                try:
                    os.posix_fallocate(self._fd, offset, length)
                except OSError:
                    os.ftruncate(self._fd, size)  # the disk keeps what it reserved before the failure
                    raise

    def body(self) -> tuple[str, StoredBody]:
        """Return the current blob and its bytes, which no longer change. The caller holds the lock.

        Raises the error of a failed write: no user can remove or mend a file that was stored in part.
        """
        if self._fault is not None:
            raise self._fault.with_traceback(None)
        size = self.size
        if size <= INLINE:  # the journal stores the bytes, and not the file
            data = os.pread(self._fd, size, 0)
            return blob_id(data), StoredBody(len(data), data)
        digest = blob_hash(size)
        for at in range(0, size, _PIECE):
            digest.update(os.pread(self._fd, _PIECE, at))
        self._lent = True
        return digest.hexdigest(), StoredBody(size, fd=self._fd)

    def hold(self) -> None:
        """Add a user. Raises LookAgain when its name means a version by now: it is closed for good, or is data.xml."""
        with self.lock:
            gone = self._why_gone()
            if gone:
                raise LookAgain(gone)
            self._users += 1

    def let_go(self) -> None:
        """Remove a user; the last one closes the file."""
        with self.lock, self._descriptor:
            self._size = self.size
            self._users -= 1
            if not self._users:
                os.close(self._fd)

    def _check_there(self) -> None:
        gone = self._why_gone()
        if gone:
            raise Replaced(gone)

    def _why_gone(self) -> str:
        """Return why it is no draft any more; empty while it is one."""
        if not self._users:  # its descriptor may be another file's (truncate(2) by way of an O_PATH descriptor)
            return f"{self.path} is closed"
        return f"{self.path} was renamed onto data.xml" if self.gone else ""

    def _check_room(self, end: int, unasked: int) -> None:
        """Raise EFBIG or ENOSPC if the disk has no room up to `end` and more than `unasked` bytes are new.

        Git stores no holes, and hashes all their bytes. A disk fills up before it refuses a reservation as too large.
        """
        more = end - self.size
        if more > unasked:
            disk = os.fstatvfs(self._fd)
            if end > disk.f_blocks * disk.f_frsize:
                raise OSError(errno.EFBIG, "the file would be larger than the journal's disk")
            if more > disk.f_bavail * disk.f_frsize:
                raise OSError(errno.ENOSPC, "the file would need more than the room on the journal's disk")

    def _change(self, keep: int | None = None) -> None:
        """Prepare for a change; with `keep`, only so many bytes are needed."""
        self._check_there()
        self.dirty, self.failed = True, False
        if self._lent:  # the journal has this file now: continue with a copy
            self._copy(self.size if keep is None else min(keep, self.size))

    def _copy(self, size: int) -> None:
        copy = self._new_file()
        try:
            at = 0
            while at < size:
                at += os.copy_file_range(self._fd, copy, size - at, at, at)
            os.dup2(copy, self._fd, inheritable=False)
        finally:
            os.close(copy)
        self._lent = False


#: The files open for writing: the ARC, the path in it, the draft.
Drafts = dict[tuple[ArcVersion, str], Draft]


@dataclass(frozen=True)
class DraftFile(File):
    """The node of a draft."""

    draft: Draft
    attrs_cacheable = False

    @property
    def is_open(self) -> bool:
        return self.draft.is_open

    @property
    def ino(self) -> int:
        return number("draft", str(os.getpid()), str(self.draft.number))

    def attrs(self) -> Attrs:
        return Attrs(
            self.kind, self.draft.size, self.draft.mtime, self.draft.ino or self.ino, 1, self.draft.maker.uid, True
        )

    def xattrs(self) -> Mapping[str, bytes]:
        return provisional_xattrs(OPEN if self.draft.provisional and self.draft.has_name else None)

    def open(self) -> Content:
        self.draft.hold()
        return Reading(self.draft)


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a draft for a reader, who sees it grow."""

    draft: Draft
    dear = False

    def read(self, offset: int, size: int) -> bytes:
        return self.draft.read(offset, size)

    def close(self) -> None:
        self.draft.let_go()
