"""A whole file, whatever was read of it before: from its begin, its size, the id of a blob of git with its bytes."""

from __future__ import annotations

import hashlib
import os
from io import IOBase

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


def blob_id(file: IOBase) -> str:
    """Return the id that a blob of a file would get, without storing it."""
    digest = hashlib.sha1(b"blob %d\0" % size_of(file), usedforsecurity=False)
    while data := file.read(_READ_AT_ONCE):
        digest.update(data)
    return digest.hexdigest()
