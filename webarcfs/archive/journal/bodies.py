"""Bodies of additions on the journal's disk: unnamed drafts, and large bodies in files of their own."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.model.addition import blob_hash
from webarcfs.archive.system.fsync import sync_folder, write_all

#: Prefix of a draft's temporary name, where unnamed files cannot be made.
DRAFT = ".draft-"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredBody:
    """The bytes of a file to be added: `data`, or the first `size` bytes of the descriptor `fd` of a draft.

    A `final` draft is used itself, and must not be written any more; any other is copied. The descriptor stays the
    caller's.
    """

    size: int
    data: bytes | None = None
    fd: int = -1
    final: bool = True


def nameless(folder: Path) -> int:
    """Return a descriptor of a new, unnamed file in `folder`. Raises OSError."""
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            raise
    fd, name = tempfile.mkstemp(prefix=DRAFT, dir=folder)
    Path(name).unlink(missing_ok=True)
    return fd


def read(body: StoredBody) -> bytes:
    """Return a small body's bytes."""
    return body.data if body.data is not None else b"".join(chunks(body))


def chunks(body: StoredBody) -> Iterator[bytes]:
    """Yield a body's bytes in chunks. Raises OSError when the draft is shorter than `size`."""
    if body.data is not None:
        yield body.data
        return
    at = 0
    while at < body.size:
        chunk = os.pread(body.fd, min(_CHUNK, body.size - at), at)
        if not chunk:
            raise OSError(errno.EIO, "a draft is shorter than what was written to it")
        yield chunk
        at += len(chunk)


def blob_of(body: StoredBody) -> str:
    """Return git's id of a body. Raises OSError."""
    digest = blob_hash(body.size)
    for chunk in chunks(body):
        digest.update(chunk)
    return digest.hexdigest()


def store(body: StoredBody, path: Path) -> None:
    """Store a large body at `path`, durably; a final draft gets the name, any other body is copied. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir()
        sync_folder(path.parent.parent)
    try:
        if not (body.data is None and body.final and _link(body, path)):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                for chunk in chunks(body):
                    write_all(fd, chunk)
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _link(body: StoredBody, path: Path) -> bool:
    """Give a draft a name; return False if that is not possible."""
    if os.fstat(body.fd).st_size != body.size:
        return False
    os.fsync(body.fd)
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # With a descriptor Python calls linkat(2), which follows the link in /proc; link(2) does not.
        os.link(f"/proc/self/fd/{body.fd}", path, src_dir_fd=root, follow_symlinks=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        return False
    finally:
        os.close(root)
    return True
