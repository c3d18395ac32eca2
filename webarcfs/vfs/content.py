"""The contents of files, and what they cost: how much memory a mount keeps, and what took long. Safe for any thread.

Small blobs come from a bounded cache, large ones through an unlinked temporary file. A `Content` belongs to one open
file and is closed once; contents of the same large blob share one temporary file, removed with the last of them. Blobs
are named by their content, so cached ones never become stale.

What took long while a request was answered is noted, so that the log can say why it was slow. The notes are by thread,
and few: a request is answered by one thread from its beginning to its end.

A mount keeps as many inodes as fit into a sixteenth of the machine's memory. An inode takes some 1,200 bytes here,
including the caches, and about as much in the kernel. An ARC is four inodes, so 300,000 of them are 75,000 documents
and 360 MB, the limit on a machine of 6 GB. Computed once, at the start.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.system.cache import Cache

# == slow causes ======================================================================================================


#: Seconds from which a cause is kept.
_LONG = 0.02
_KEPT = 4
_OWN = threading.local()
#: Thread → the latest cause that another thread noted for it, and when.
_OF_OTHERS: dict[int, tuple[float, str]] = {}


@contextmanager
def timed(cause: str) -> Iterator[None]:
    """Keep `cause`, with its seconds, if what is inside takes long."""
    begun = time.monotonic()
    try:
        yield
    finally:
        ended = time.monotonic()
        if ended - begun >= _LONG:
            _causes().append((begun, f"{cause} took {ended - begun:.2f} s"))


def note_cause(thread: int, cause: str) -> None:
    """Keep `cause` for another thread."""
    _OF_OTHERS[thread] = time.monotonic(), cause


def causes_since(begun: float) -> list[str]:
    """Return the causes that were kept for this thread since the monotonic time `begun`."""
    noted = _OF_OTHERS.get(threading.get_ident())
    return [cause for at, cause in (*_causes(), *([noted] if noted else ())) if at >= begun]


def _causes() -> deque[tuple[float, str]]:
    causes: deque[tuple[float, str]] | None = getattr(_OWN, "causes", None)
    if causes is None:
        causes = _OWN.causes = deque(maxlen=_KEPT)
    return causes


# == limits ===========================================================================================================


#: Bytes that an inode takes in the mount's process, including the caches.
INODE = 1_200
#: Inodes take at most one part in so many of the memory.
PART = 16
#: Fewest and most inodes, whatever the memory.
LEAST, MOST = 50_000, 1_000_000
#: Inodes of an ARC without additions: the folder and its three files.
OF_AN_ARC = 4

#: Number of the C library's memory pools (arenas), by default eight for each processor. Each keeps its largest size
#: ever, and a data.xml of some megabytes takes a hundred while it is parsed.
POOLS = 2

_CGROUP = Path("/sys/fs/cgroup")
_M_ARENA_MAX = -8  # malloc.h


@cache
def most_inodes() -> int:
    """Return the number of inodes that a mount on this machine may know at a time."""
    return inodes_in(memory())


def inodes_in(memory: int) -> int:
    """Return the number of inodes for a mount that can use `memory` bytes. Pure."""
    return max(LEAST, min(MOST, memory // PART // INODE))


def memory(cgroups: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return the bytes that this process can use: the least of the machine's memory, the limits of its control groups
    (cgroups(7), v2), and its own limit (`ulimit -v`, getrlimit(2)).
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        limits.append(limit)
    with contextlib.suppress(OSError):
        names = own.read_text().splitlines()
        group = next((name.removeprefix("0::/") for name in names if name.startswith("0::/")), "")
        for folder in (cgroups / group, *(cgroups / group).parents):
            with contextlib.suppress(OSError, ValueError):  # "max" is no number, and means no limit
                limits.append(int((folder / "memory.max").read_text()))
            if folder == cgroups:
                break
    return min(limits)


def share_pools() -> None:
    """Make the C library use few memory pools (mallopt(3)). Called before any thread starts."""
    _libc().mallopt(_M_ARENA_MAX, POOLS)


class Memory:
    """The memory of the process; returns free memory to the system after growth. For one thread."""

    def __init__(self) -> None:
        self._held = 0

    def give_back(self) -> None:
        """Return free memory to the system (malloc_trim(3)), if usage grew by over a quarter since the last call."""
        if _resident() > self._held * 5 // 4:
            _libc().malloc_trim(0)
            self._held = _resident()


def _resident() -> int:
    """Return the pages of memory that the process holds (proc(5))."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1])


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


# == content ==========================================================================================================


#: Up to this size a blob is read in this process; above, git writes it to a file (pygit2 holds the GIL meanwhile).
SMALL = 4 * 1024 * 1024
#: Capacity of the cache, in bytes.
HELD = 64 * 1024 * 1024


class Content(Protocol):
    """The content of an open file."""

    @property
    def dear(self) -> bool:
        """Whether opening it again is expensive when no other handle has it open."""

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end."""

    def close(self) -> None:
        """Release it."""


@dataclass(frozen=True, slots=True)
class FromMemory:
    """A content that is already in memory."""

    body: bytes
    dear = False

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        return self.body[offset : offset + size]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


@dataclass(frozen=True, slots=True)
class FromFile:
    """A content in an open file, which closes with it."""

    fd: int
    dear = True

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        return os.pread(self.fd, size, offset)

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)


class Blobs:
    """Opens blobs of any repository."""

    def __init__(self) -> None:
        self._cache: Cache[str, bytes] = Cache(HELD, len)
        self._large: dict[str, _Large] = {}
        self._lock = threading.Lock()

    def open(self, store: Repository, blob: str, size: int) -> Content:
        """Return the content of `blob`, which has `size` bytes; it is read with the first `read`."""
        if size <= SMALL:
            return Small(self._cache, store, blob)
        with self._lock:
            large = self._large.setdefault(blob, _Large(store, blob, size))
            large.users += 1
        return _Handle(self, large)

    def whole(self, store: Repository, blob: str) -> bytes:
        """Return all of a `blob` that is small enough for memory."""
        return self._cache.get(blob, lambda: store.read(blob))

    def give_back(self, large: _Large) -> None:
        """Remove a user; the last one removes the temporary file."""
        with self._lock:
            large.users -= 1
            if large.users:
                return
            del self._large[large.blob]
        large.drop()


class Small:
    """A blob that every read fetches through the cache, so that ten thousand open files hold no ten thousand bodies.

    It is in git for good: every open of the same version reads the same bytes.
    """

    def __init__(self, cache: Cache[str, bytes], store: Repository, blob: str) -> None:
        self._cache = cache
        self._store = store
        self._blob = blob

    @property
    def dear(self) -> bool:
        """Return False."""
        return False

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        body = self._cache.get(self._blob, self._from_git)
        return body[offset : offset + size]

    def _from_git(self) -> bytes:
        with timed("reading its body from git"):
            return self._store.read(self._blob)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class _Handle:
    """One user of a large blob."""

    def __init__(self, blobs: Blobs, large: _Large) -> None:
        self._blobs = blobs
        self._large = large

    @property
    def dear(self) -> bool:
        return True

    def read(self, offset: int, size: int) -> bytes:
        return self._large.read(offset, size)

    def close(self) -> None:
        self._blobs.give_back(self._large)


class _Large:
    """A large blob and its temporary file, written by the first reader; the others wait for it."""

    def __init__(self, store: Repository, blob: str, size: int) -> None:
        self.blob = blob
        self.users = 0
        self._store = store
        self._size = size
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()

    def read(self, offset: int, size: int) -> bytes:
        if self._file is None:
            self._wait_for_file()
        assert self._file is not None
        return os.pread(self._file.fileno(), size, offset)

    def _wait_for_file(self) -> None:
        with timed(f"git's copy of its {self._size} bytes to a file"), self._lock:
            if self._file is None:
                self._file = self._copied()

    def drop(self) -> None:
        if self._file is not None:
            self._file.close()

    def _copied(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(prefix="webarcfs-")  # noqa: SIM115 # closed by `drop`
        try:
            # Reserved first: a full disk then fails with ENOSPC at once, instead of a git that fails for some reason.
            os.posix_fallocate(file.fileno(), 0, self._size)
            self._store.copy(self.blob, file.fileno())
        except BaseException:
            file.close()
            raise
        return file
