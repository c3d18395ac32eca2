"""A mount as a client uses it: its archive, its errnos as errors of our family, and the folders of ARCs that grow.

The folder of an ARC is opened once for all concurrent additions to its document: a node while a file is written, say.
Each saved request would go to the mount's process.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import (
    Exists,
    InvalidDocument,
    NameTooLong,
    NotFound,
    NotPermitted,
    ReadOnly,
    Replaced,
    Stale,
    WebarcError,
)
from webarcfs.archive.model.metadata import MetaData, format_time, from_epoch
from webarcfs.client.repositories import Repositories

#: The attribute of a mount's root with the path of its archive.
ATTRIBUTE = "user.webarc.archive"
_FAMILY: Mapping[int, type[WebarcError]] = {
    errno.EEXIST: Exists,
    errno.EINVAL: InvalidDocument,
    errno.EISDIR: NotFound,
    errno.ENAMETOOLONG: NameTooLong,
    errno.ENOENT: NotFound,
    errno.EPERM: NotPermitted,
    errno.EACCES: NotPermitted,
    errno.EROFS: ReadOnly,
    errno.ESTALE: Stale,
}


def behind(place: Path) -> tuple[Path, Archive] | None:
    """Return the mount that contains a path, and its archive; None outside of any. Raises NotAnArchive."""
    for folder in (place.absolute(), *place.absolute().parents):
        try:
            root = os.getxattr(folder, ATTRIBUTE)
        except OSError:
            continue
        return folder, directory.open_archive(Path(os.fsdecode(root)))
    return None


@contextmanager
def family(what: str, more: Mapping[int, type[WebarcError]] | None = None) -> Iterator[None]:
    """Raise the mount's errno as an error of our family; `more` precedes the table."""
    try:
        yield
    except OSError as error:
        kind = {**_FAMILY, **(more or {})}.get(error.errno or 0, WebarcError)
        raise kind(f"{what}: {error.strerror or error}") from error


@dataclass(slots=True)
class ArcFolder:
    """The open folder of an ARC, the start of the crawl that stored it (seconds), and the number of its users."""

    fd: int
    path: str
    stored: int
    users: int = 0

    def check(self) -> None:
        """Raises Stale when it shows another version by now: libfuse's high-level API identifies a folder by its path.

        The kernel has the folder's attributes in its caches, so no process receives a request (SEMANTICS.md).
        """
        with family(self.path, {errno.ENOENT: Stale}):
            shown = int(os.fstat(self.fd).st_mtime)
        if shown != self.stored:
            raise Replaced(f"{self.path} was replaced by a crawl; it is of {format_time(from_epoch(shown))} now")

    def has(self, name: str) -> bool:
        """Return whether a name exists in it."""
        with suppress(OSError):
            os.stat(name, dir_fd=self.fd)
            return True
        return False

    @contextmanager
    def opened(self, name: str, flags: int) -> Iterator[int]:
        """Yield a descriptor of a file in it; an error of its close is raised, unless the block raised one.

        Without a file object, which would query the type of the file: each query goes to the mount's process.
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
    """The folders that a thread is adding to."""

    def __init__(self) -> None:
        self.folders: dict[MetaData, ArcFolder] = {}


class ArcFolders:
    """The folders of the ARCs that a mount shows; without a mount, additions are impossible."""

    def __init__(self, mount: Path | None, repositories: Repositories) -> None:
        self._mount = mount
        self._repositories = repositories
        self._held = _Held()

    @contextmanager
    def current(self, meta: MetaData) -> Iterator[ArcFolder]:
        """Yield the folder of a document's ARC, if it is still the version of `meta`.

        Raises Stale if it is not, NotPermitted without a mount, NotFound.
        """
        held = self._held.folders  # this thread's, even if another one ends it
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
