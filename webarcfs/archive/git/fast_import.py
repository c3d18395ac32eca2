"""Writes many files at once: their bytes as the stream of a `git fast-import` (git-fast-import(1)), their trees by us.

Measured at three times the speed of `git add` and `git commit`, and no file of a crawl is created on the way. Git is
told of no paths: it looks through all of a folder for each, and keeps all trees in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from webarcfs.archive.git import durability
from webarcfs.archive.git.git_command import GIT, environment, fail
from webarcfs.archive.git.tree_rewriting import Rewriting
from webarcfs.archive.model.addition import blob_hash
from webarcfs.archive.model.errors import Damaged, WebarcError

#: Files above it are neither held in memory by git nor compressed against each other.
BIG_FILE = 8 * 1024 * 1024
# git asks for 256 KiB to compress each object; glibc would take them from the kernel and give them back each time: that
# is 600,000 page faults for 10,000 pages, which on a virtual machine can cost more than all the rest (mallopt(3)).
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(4 << 20), "MALLOC_TRIM_THRESHOLD_": str(16 << 20)}
#: Git remembers each blob that it was given, in some 70 bytes, so it begins anew after so many.
_BLOBS = 300_000
# Room for git to fall behind while the next documents are read and described.
_PIPE = 1 << 20


class FastImport:
    """Files go in as a stream, a tree comes out. No ref shows any of it; a process that dies leaves objects only.

    Use it as a context manager.
    """

    def __init__(self, repository: Path, base: str | None, read: Callable[[str], bytes]) -> None:
        """`base` is the tree to begin with, None for an empty one; `read` gives git's bytes of a tree."""
        self._repository = repository
        self._loose = durability.Since(repository)
        self._tree = Rewriting(repository, base, read)
        self._blobs = 0
        self._process = self._begin()

    def remove(self, path: str) -> None:
        """Drop the file or folder that the tree has at `path`; what is put there, before or after, stays."""
        self._tree.remove(path)

    def put(self, path: str, body: bytes) -> None:
        """Write a file."""
        digest = blob_hash(len(body))
        digest.update(body)
        self._send(b"blob\ndata %d\n%s\n" % (len(body), body))
        self._put(path, digest.digest())

    def put_stream(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write a file of exactly `size` bytes from its chunks."""
        digest, left = blob_hash(size), size
        self._send(b"blob\ndata %d\n" % size)
        for chunk in chunks:
            left -= len(chunk)
            digest.update(chunk)
            self._send(chunk)
        if left:
            raise WebarcError(f"{path}: the body changed its size while it was stored")
        self._send(b"\n")
        self._put(path, digest.digest())

    def put_oid(self, path: str, blob: str) -> None:
        """Place a blob that is in the repository already."""
        self._tree.put(path, blob)

    def finish(self) -> str:
        """Store all, and return the tree. Raises OSError or Damaged when git could not write.

        Until the importer is closed, nobody's repack drops the trees.
        """
        self._end()
        self._loose.sync()  # what is not much is not put into a pack
        return self._tree.finish()

    def __enter__(self) -> FastImport:
        return self

    def __exit__(self, *exc: object) -> None:
        self._tree.__exit__(*exc)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stderr):
            if stream is not None:
                _close_quietly(stream)

    def _put(self, path: str, blob: bytes) -> None:
        self._tree.put_digest(path, blob)
        self._blobs += 1
        if self._blobs % _BLOBS == 0:
            self._end()
            self._process = self._begin()

    def _begin(self) -> subprocess.Popen[bytes]:
        settings = ["-c", "core.compression=1", "-c", "pack.compression=1", "-c", f"core.bigFileThreshold={BIG_FILE}"]
        process = subprocess.Popen(
            [*GIT, *settings, "fast-import", "--depth=0", "--quiet", "--done"],
            cwd=self._repository,
            env=environment() | _MALLOC,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=1 << 18,
        )
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # more than fs.pipe-user-pages-soft allows this user: it works all the same
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE)
        return process

    def _send(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(data)
        except BrokenPipeError:
            self._wait()
            raise Damaged(f"{self._repository}: git fast-import ended early") from None

    def _end(self) -> None:
        self._send(b"done\n")
        self._wait()

    def _wait(self) -> None:
        """Wait for git, and raise what it complains of."""
        stdin, stderr = self._process.stdin, self._process.stderr
        assert stdin is not None and stderr is not None
        _close_quietly(stdin)
        message = stderr.read()
        if self._process.wait():
            fail(f"{self._repository}: git fast-import failed", message, self._repository)


def _close_quietly(stream: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()
