"""Mounts from a program's view: the archive behind a path, and the errors of system calls as ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    Stale,
    WebarcError,
)

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
