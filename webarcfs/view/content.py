"""The contents of files: small blobs from a bounded cache, large ones through an unlinked temporary file.

Safe for any thread. A `Content` belongs to one open file and is closed once; contents of the same large blob share one
temporary file, removed with the last of them. Blobs are named by their content, so cached ones never become stale.
"""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass
from typing import IO, Protocol

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.system.cache import Cache
from webarcfs.view import slow_causes

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

    @property
    def open_files(self) -> int:
        """The number of large blobs in use."""
        return len(self._large)


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
        with slow_causes.timed("reading its body from git"):
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
        with slow_causes.timed(f"git's copy of its {self._size} bytes to a file"), self._lock:
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
