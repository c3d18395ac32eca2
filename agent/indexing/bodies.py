"""Bodies of archived documents, from git, for what reads them: links and texts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

from webarcfs.archive.git.repository import Repository
from webarcfs.content import anchors

_CHUNK = 1 << 20
_LONGEST_HEAD = 1 << 16


@contextmanager
def opened(store: Repository, blob: str) -> Iterator[BinaryIO]:
    """Yield a body as a file, of memory or without a name."""
    if store.size(blob) <= _CHUNK:
        yield BytesIO(store.read(blob))
        return
    with tempfile.TemporaryFile() as file:
        store.copy(blob, file.fileno())
        file.seek(0)
        yield file


@contextmanager
def chunks(store: Repository, blob: str) -> Iterator[Iterable[bytes]]:
    """Yield the chunks of a body; each iteration begins at its start."""
    if store.size(blob) <= _CHUNK:
        yield (store.read(blob),)
        return
    with tempfile.TemporaryFile() as file:
        store.copy(blob, file.fileno())

        yield _Chunks(file.fileno())


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The chunks of a body in a file; each iteration begins at its start."""

    fd: int

    def __iter__(self) -> Iterator[bytes]:
        at = 0
        while at < anchors.LONGEST_PAGE and (chunk := os.pread(self.fd, _CHUNK, at)):
            yield chunk
            at += len(chunk)


def content_type(store: Repository, head: str) -> str:
    """Return the Content-Type in a page's stored head; empty without one."""
    if not head or store.size(head) > _LONGEST_HEAD:
        return ""
    for line in store.read(head).split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-type":
            return value.strip().decode("latin-1")
    return ""
