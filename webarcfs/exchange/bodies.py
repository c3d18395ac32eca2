"""Bodies for records: small ones from memory, large ones from a temporary file; with their digests, each once.

A document that did not change since the snapshot before has the digest that was found then: its body is not read again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from webarcfs.archive.git.repository import Repository
from webarcfs.warc.fields import base32

#: Up to this size a body is read in this process; above, git writes it to a file.
SMALL: Final = 4 << 20
#: Bytes of a large body that are read at a time.
CHUNK: Final = 1 << 18
#: Bytes of digests that are kept in memory; more of them are in a file.
_IN_MEMORY = 4 << 20
_ID = 20


@dataclass(frozen=True, slots=True)
class Body:
    """A body of `size` bytes: `content`, or where that is None, all of `file`. Valid until its `opened` ends."""

    size: int
    content: bytes | None
    file: IO[bytes] | None = None

    def parts(self) -> Iterator[bytes]:
        """Yield its bytes; may be called again."""
        if self.content is not None:
            yield self.content
            return
        assert self.file is not None
        at = 0
        while part := os.pread(self.file.fileno(), CHUNK, at):
            yield part
            at += len(part)

    def digests(self, head: bytes = b"") -> tuple[bytes, bytes]:
        """Return the SHA-1 of the body, and that of `head` and body."""
        if self.content is not None:
            payload = hashlib.sha1(self.content, usedforsecurity=False)
            return payload.digest(), hashlib.sha1(head + self.content, usedforsecurity=False).digest()
        payload, block = hashlib.sha1(usedforsecurity=False), hashlib.sha1(head, usedforsecurity=False)
        for part in self.parts():
            payload.update(part)
            block.update(part)
        return payload.digest(), block.digest()


NOTHING: Final = Body(0, b"")


@contextmanager
def opened(store: Repository, blob: str) -> Iterator[Body]:
    """Yield the body of a blob of any size. Raises Damaged, OSError on a full disk."""
    size = store.size(blob)
    if size <= SMALL:
        yield Body(size, store.read(blob))
        return
    with tempfile.TemporaryFile(prefix="webarcfs-") as file:
        # Reserved first: a full disk then fails with ENOSPC at once, instead of a git that fails for some reason.
        os.posix_fallocate(file.fileno(), 0, size)
        store.copy(blob, file.fileno())
        yield Body(size, None, file)


def digest_of(store: Repository, blob: str) -> bytes:
    """Return the SHA-1 of a blob's bytes, in flat memory; no file is made, however large the blob is."""
    digest = hashlib.sha1(usedforsecurity=False)
    if store.size(blob) <= SMALL:
        digest.update(store.read(blob))
        return digest.digest()
    receiver, sender = os.pipe()
    with ThreadPoolExecutor(1) as thread, open(receiver, "rb") as pipe:  # noqa: PTH123 # a descriptor
        sent = thread.submit(_sent, store, blob, sender)
        while part := pipe.read(CHUNK):
            digest.update(part)
        sent.result()
    return digest.digest()


def _sent(store: Repository, blob: str, sender: int) -> None:
    try:
        store.copy(blob, sender)
    finally:
        os.close(sender)


def sha1(digest: bytes) -> str:
    """Return a digest as records have it."""
    return f"sha1:{base32(digest)}"


class PayloadDigests:
    """The digests of the bodies of a snapshot, in the order of its documents, kept for the next one. A context manager.

    In two snapshots the documents that both have come in the same order, so one pass over the digests of the one before
    finds them; memory is flat.
    """

    def __init__(self) -> None:
        self._before: IO[bytes] | None = None
        self._now = _kept()

    def __enter__(self) -> PayloadDigests:
        return self

    def __exit__(self, *exc: object) -> None:
        self.turn(is_whole=False)
        self._now.close()

    def turn(self, *, is_whole: bool) -> None:
        """Begin the next snapshot. Unless all documents of the last one were added, it begins with no digests."""
        if self._before is not None:
            self._before.close()
        if is_whole:
            self._now.seek(0)
            self._before = self._now
        else:
            self._now.close()
            self._before = None
        self._now = _kept()

    def add(self, blob: str, digest: bytes) -> None:
        """Keep the digest of the next document's body."""
        self._now.write(bytes.fromhex(blob) + digest)

    def find(self, blob: str) -> bytes | None:
        """Return the digest of a body that the snapshot before has as well; None if it has to be read."""
        wanted = bytes.fromhex(blob)
        while self._before is not None:
            row = self._before.read(2 * _ID)
            if row[:_ID] == wanted:
                return row[_ID:]
            if not row:
                self._before.close()
                self._before = None
        return None


def _kept() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="webarcfs-")  # closed by `turn`
