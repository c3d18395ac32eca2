"""The contents of files: small blobs from a bounded cache, large ones through an unlinked temporary file.

Safe for any thread. A `Content` belongs to one open file and is closed once; contents of the same large blob share one
temporary file, which goes with the last of them. Blobs are named by their content, so what is cached never goes stale.
"""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass
from typing import IO, Protocol

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.system.cache import Cache

#: Up to this size a blob is read in this process; above, git writes it to a file (pygit2 holds the GIL meanwhile).
SMALL = 4 * 1024 * 1024
#: What the cache holds at most, in bytes.
HELD = 64 * 1024 * 1024


class Content(Protocol):
    """What an open file reads from."""

    @property
    def dear(self) -> bool:
        """Whether it is dear to open again when nobody else has it open."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`; fewer only at the end."""

    def close(self) -> None:
        """Give it back."""


@dataclass(frozen=True, slots=True)
class FromMemory:
    """A content that is in memory anyway."""

    body: bytes
    dear = False

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`."""
        return self.body[offset : offset + size]

    def close(self) -> None:
        """Nothing to give back."""


@dataclass(frozen=True, slots=True)
class FromFile:
    """A content in an open file, which closes with it."""

    fd: int
    dear = True

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`."""
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
        """The content of `blob`, which has `size` bytes; nothing of it is read before the first `read`."""
        if size <= SMALL:
            return Small(self._cache, store, blob)
        with self._lock:
            large = self._large.setdefault(blob, _Large(store, blob, size))
            large.users += 1
        return _Handle(self, large)

    def whole(self, store: Repository, blob: str) -> bytes:
        """All of a `blob` that is small enough to be in memory whole."""
        return self._cache.get(blob, lambda: store.read(blob))

    def give_back(self, large: _Large) -> None:
        """One user fewer; the last one takes the temporary file with it."""
        with self._lock:
            large.users -= 1
            if large.users:
                return
            del self._large[large.blob]
        large.drop()

    @property
    def open_files(self) -> int:
        """How many large blobs are in use."""
        return len(self._large)


class Small:
    """A blob that is read through the cache each time, so that ten thousand open files hold no ten thousand bodies.

    It is in git for good: whoever opens the same version again reads the same.
    """

    def __init__(self, cache: Cache[str, bytes], store: Repository, blob: str) -> None:
        self._cache = cache
        self._store = store
        self._blob = blob

    @property
    def dear(self) -> bool:
        """It is not."""
        return False

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`."""
        body = self._cache.get(self._blob, lambda: self._store.read(self._blob))
        return body[offset : offset + size]

    def close(self) -> None:
        """Nothing to give back."""


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
    """A large blob and its temporary file, written by whoever reads first; the others wait for it."""

    def __init__(self, store: Repository, blob: str, size: int) -> None:
        self.blob = blob
        self.users = 0
        self._store = store
        self._size = size
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()

    def read(self, offset: int, size: int) -> bytes:
        with self._lock:
            if self._file is None:
                self._file = self._copied()
        return os.pread(self._file.fileno(), size, offset)

    def drop(self) -> None:
        if self._file is not None:
            self._file.close()

    def _copied(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(prefix="webarcfs-")  # noqa: SIM115 # closed by `drop`
        try:
            # Reserved first: a full disk is then ENOSPC at once, and not a git that fails for some reason.
            os.posix_fallocate(file.fileno(), 0, self._size)
            self._store.copy(self.blob, file.fileno())
        except BaseException:
            file.close()
            raise
        return file
