"""The open folders of ARCs that a client adds to, each as long as something is added to it.

A thread opens a folder once for all that it adds to the document at a time: a node while a file is written, say. Each
question that this saves would go to the mount's process.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.model.errors import NotPermitted, Replaced, Stale
from webarcfs.archive.model.metadata import MetaData, format_time, from_epoch
from webarcfs.client.mounted import family
from webarcfs.client.repositories import Repositories


@dataclass(slots=True)
class ArcFolder:
    """The open folder of an ARC, when the crawl began that stored it (seconds), and how many additions want it."""

    fd: int
    path: str
    stored: int
    users: int = 0

    def check(self) -> None:
        """Raises Stale when it shows another version by now: what the folder is, the high-level API knows by its path.

        What its attributes say is asked of no process, as the kernel has them (SEMANTICS.md).
        """
        with family(self.path, {errno.ENOENT: Stale}):
            shown = int(os.fstat(self.fd).st_mtime)
        if shown != self.stored:
            raise Replaced(f"{self.path} was replaced by a crawl; it is of {format_time(from_epoch(shown))} now")

    def has(self, name: str) -> bool:
        """Whether there is anything of that name."""
        with suppress(OSError):
            os.stat(name, dir_fd=self.fd)
            return True
        return False

    @contextmanager
    def opened(self, name: str, flags: int) -> Iterator[int]:
        """A descriptor of a file in it; what closing it raises is told, unless something else was wrong before.

        Without a file object, which asks what it is that it writes to: each question goes to the mount's process.
        """
        fd = os.open(name, flags | os.O_CLOEXEC, 0o644, dir_fd=self.fd)
        try:
            yield fd
        except BaseException:
            with suppress(OSError):
                os.close(fd)
            raise
        os.close(fd)


class _Held(threading.local):
    """The folders that a thread adds to just now."""

    def __init__(self) -> None:
        self.folders: dict[MetaData, ArcFolder] = {}


class ArcFolders:
    """The folders of the ARCs that a mount shows; without a mount nothing can be added."""

    def __init__(self, mount: Path | None, repositories: Repositories) -> None:
        self._mount = mount
        self._repositories = repositories
        self._held = _Held()

    @contextmanager
    def current(self, meta: MetaData) -> Iterator[ArcFolder]:
        """The folder of a document's ARC, if that is still the version that `meta` speaks of.

        Raises Stale if it is not, NotPermitted without a mount, NotFound.
        """
        held = self._held.folders  # this thread's, whichever ends it
        folder = held.get(meta) or self._open(meta)
        folder.users += 1
        held[meta] = folder
        try:
            folder.check()
            yield folder
        finally:
            folder.users -= 1
            if not folder.users:
                del held[meta]
                os.close(folder.fd)

    def _open(self, meta: MetaData) -> ArcFolder:
        if self._mount is None:
            raise NotPermitted("writing goes through a mount; give the client one: WebarchiveClient('/mnt/archive')")
        stored = int(self._repositories.stored(self._repositories.arc(meta)).timestamp())
        with family(meta.path, {errno.ENOENT: Stale}):
            fd = os.open(f"{self._mount}{meta.path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return ArcFolder(fd, meta.path, stored)
