"""The one family of errors: what went wrong, as which errno a mount answers it, with which code a command exits.

Everything that webarcfs raises on purpose is a `WebarcError`. The class says the kind; the message says what happened,
to which thing, and what to do. Two functions translate, and nothing else does: `errno_of` for the mount's adapters,
`exit_code_of` for the commands' `main`.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    USAGE = 1
    FAILED = 2
    INCOMPLETE = 3
    MOUNT_FAILED = 32


class WebarcError(Exception):
    """Base of the family; on its own it stands for "it failed, and there is no finer word"."""

    errno: int = errno.EIO
    exit_code: Exit = Exit.FAILED


class UsageError(WebarcError):
    """The command line asks for something that does not exist or makes no sense."""

    errno = errno.EINVAL
    exit_code = Exit.USAGE


class BadCondition(UsageError):
    """A condition of a query that SQLite does not take, or that reaches for more than the view (/Cl-6/)."""


class TookTooLong(WebarcError):
    """An answer that was given up because its time was over."""

    errno = errno.ETIMEDOUT


class TooMany(WebarcError):
    """An answer of more rows than can be given; it is not cut short, since that would look like a whole one."""

    errno = errno.EFBIG


class SettingsError(WebarcError):
    """webarc.toml (or a filter's file) cannot be understood; `faults` has a line for each thing that is wrong."""

    errno = errno.EINVAL
    exit_code = Exit.USAGE

    def __init__(self, source: str, faults: Sequence[str]) -> None:
        self.source = source
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{source}: {fault}" for fault in self.faults))


class UrlRefused(WebarcError):
    """A URL that the archive has no place for: no http(s), or a host that is none."""

    errno = errno.EINVAL


class NotAnArchive(WebarcError):
    """The directory holds no archive, or one of a layout that this program does not know."""

    errno = errno.ENOENT


class Damaged(WebarcError):
    """Something inside the archive cannot be read as what it must be."""

    errno = errno.EIO


class OtherFormat(Damaged):
    """A git repository whose objects or refs are stored in a way that is not read here."""


class DatabaseDamaged(Damaged):
    """webarc.db, which derives from git, cannot be used; `recover` makes it anew."""


class InvalidDocument(WebarcError):
    """XML that is not well-formed, not valid, or over the bounds (/Xm-4/)."""

    errno = errno.EINVAL


class NotFound(WebarcError):
    """There is nothing of that name."""

    errno = errno.ENOENT


class NotADirectory(WebarcError):
    """A path goes through something that is no folder."""

    errno = errno.ENOTDIR


class IsADirectory(WebarcError):
    """A file operation on a folder."""

    errno = errno.EISDIR


class NotALink(WebarcError):
    """readlink of something that is no symbolic link."""

    errno = errno.EINVAL


class NameTooLong(WebarcError):
    """A name longer than a file may have."""

    errno = errno.ENAMETOOLONG


class NoAttribute(WebarcError):
    """There is no extended attribute of that name."""

    errno = errno.ENODATA


class NotSupported(WebarcError):
    """An operation that the mount does not offer at all."""

    errno = errno.EOPNOTSUPP


class NotPermitted(WebarcError):
    """What is archived is never changed (/Ar-1/)."""

    errno = errno.EPERM


class ReadOnly(WebarcError):
    """Older states take no additions."""

    errno = errno.EROFS


class Exists(WebarcError):
    """The name is taken."""

    errno = errno.EEXIST


class Stale(WebarcError):
    """There is a newer state than the one that was asked for or written to."""

    errno = errno.ESTALE


class Replaced(Stale):
    """The ARC was replaced or removed while somebody wrote to it; what was written is dropped (/Ar-10/)."""


class LookAgain(Stale):
    """The caller's node is not the one of its name any more. On ESTALE the kernel looks the name up once more."""


class Busy(WebarcError):
    """Another process holds what is needed."""

    errno = errno.EBUSY


class Interrupted(WebarcError):
    """Somebody asked to stop."""

    errno = errno.EINTR


class MountFailed(WebarcError):
    """A mount could not be made or taken away."""

    exit_code = Exit.MOUNT_FAILED


class CrawlFailed(WebarcError):
    """A crawl could not run at all (as opposed to one that ran and is incomplete)."""


def errno_of(error: BaseException) -> int:
    """The errno with which a mount answers `error`: the class's own, an OSError's own, EIO for anything unexpected."""
    if isinstance(error, WebarcError):
        return error.errno
    if isinstance(error, OSError) and error.errno:
        return error.errno
    return errno.EIO


def exit_code_of(error: BaseException) -> int:
    """The exit code with which a command ends on `error`."""
    return int(error.exit_code if isinstance(error, WebarcError) else Exit.FAILED)
