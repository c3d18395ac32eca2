"""The one family of errors, with the errno of each for mounts, its exit code for commands, its status for HTTP.

Everything that webarcfs raises on purpose is a `WebarcError`. The class is the kind; the message has the event, its
object and the remedy. Only three functions translate: `errno_of` for the mount's adapters, `exit_code_of` for the
commands' `main`, `http_status_of` for the reading room. What cannot be decided, since something is damaged or cannot
be read, is closed to readers: 503.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from enum import IntEnum
from http import HTTPStatus


class Exit(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    USAGE = 1
    FAILED = 2
    INCOMPLETE = 3
    MOUNT_FAILED = 32


class WebarcError(Exception):
    """Base of the family; the class itself is for failures without a more specific class."""

    errno: int = errno.EIO
    exit_code: Exit = Exit.FAILED
    http_status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR


class UsageError(WebarcError):
    """The command line asks for something that does not exist or makes no sense."""

    errno = errno.EINVAL
    exit_code = Exit.USAGE
    http_status = HTTPStatus.BAD_REQUEST


class BadCondition(UsageError):
    """A condition of a query that SQLite rejects, or that reads more than the view (/Cl-6/)."""


class FieldsRefused(UsageError):
    """Input of a form that cannot be taken; `faults` has by field what it is called and a sentence, as people read it.

    `heading` is what holds for all of it, `anchor` what the places of fields in a page are called, with `%s`.
    """

    def __init__(self, heading: str, faults: Mapping[str, tuple[str, str]], anchor: str = "%s") -> None:
        self.heading = heading
        self.anchor = anchor
        self.faults = dict(faults)
        super().__init__(heading or "; ".join(f"{label}: {text}" for label, text in faults.values()))


class StepRefused(UsageError):
    """A record does not allow the step that was asked for: its state, a right, or another process is in the way."""


class BrowserUnable(WebarcError):
    """No browser can be started here: it is not installed, or may not be isolated."""


class CdpFailed(WebarcError):
    """The browser rejects a command, or what that was for is no longer there."""


class BrowserGone(CdpFailed):
    """The browser has ended."""


class TookTooLong(WebarcError):
    """An answer that was abandoned at its time limit."""

    errno = errno.ETIMEDOUT
    http_status = HTTPStatus.SERVICE_UNAVAILABLE


class TooMany(WebarcError):
    """An answer with more rows than the limit; it is not truncated, since that would look complete."""

    errno = errno.EFBIG
    http_status = HTTPStatus.BAD_REQUEST


class SettingsError(WebarcError):
    """webarc.toml (or a filter's file) is not valid; `faults` has a line for each fault."""

    errno = errno.EINVAL
    exit_code = Exit.USAGE
    http_status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, source: str, faults: Sequence[str]) -> None:
        self.source = source
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{source}: {fault}" for fault in self.faults))


class UrlRefused(WebarcError):
    """A URL that cannot be archived: not http(s), or with an invalid host."""

    errno = errno.EINVAL
    http_status = HTTPStatus.BAD_REQUEST


class NotAnArchive(WebarcError):
    """The directory contains no archive, or one of an unsupported layout."""

    errno = errno.ENOENT
    http_status = HTTPStatus.SERVICE_UNAVAILABLE


class Damaged(WebarcError):
    """Something inside the archive cannot be read as what it must be."""

    errno = errno.EIO
    http_status = HTTPStatus.SERVICE_UNAVAILABLE


class DocumentUnread(Damaged):
    """A data.xml that git cannot read: no cache keeps that, since it may come back."""


class OtherFormat(Damaged):
    """A git repository whose objects or refs have a format that webarcfs does not read."""


class DatabaseDamaged(Damaged):
    """webarc.db, which derives from git, cannot be used; `recover` rebuilds it."""


class DatabaseOutdated(DatabaseDamaged):
    """webarc.db is of another version of webarcfs; who writes to it rebuilds it."""


class InvalidDocument(WebarcError):
    """XML that is not well-formed, not valid, or over the bounds (/Xm-4/)."""

    errno = errno.EINVAL


class NotFound(WebarcError):
    """The name does not exist."""

    errno = errno.ENOENT
    http_status = HTTPStatus.NOT_FOUND


class NotShown(NotFound):
    """The same, or readers may not see it. The text is for them: it was made of what they asked."""


class NotADirectory(WebarcError):
    """A component of a path is not a folder."""

    errno = errno.ENOTDIR
    http_status = HTTPStatus.NOT_FOUND


class IsADirectory(WebarcError):
    """A file operation on a folder."""

    errno = errno.EISDIR


class NotALink(WebarcError):
    """readlink of a node that is not a symbolic link."""

    errno = errno.EINVAL


class NameRefused(WebarcError):
    """A name that no file has: it is empty, `.` or `..`, or has a slash or a NUL."""

    errno = errno.EINVAL
    http_status = HTTPStatus.BAD_REQUEST


class NameTooLong(WebarcError):
    """A name longer than the file system allows."""

    errno = errno.ENAMETOOLONG
    http_status = HTTPStatus.NOT_FOUND


class NoAttribute(WebarcError):
    """The extended attribute does not exist."""

    errno = errno.ENODATA


class NotSupported(WebarcError):
    """An operation that the mount does not implement."""

    errno = errno.EOPNOTSUPP


class NotPermitted(WebarcError):
    """Archived content is never changed (/Ar-1/)."""

    errno = errno.EPERM
    http_status = HTTPStatus.FORBIDDEN


class Forbidden(WebarcError):
    """A person without the right, or whom a reader's rules keep out."""

    errno = errno.EACCES
    http_status = HTTPStatus.FORBIDDEN


class DocumentWithheld(Forbidden):
    """A document that a rule keeps from readers, who may know that it is archived; the text is the rule's own."""

    http_status = HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS


class TokenRefused(Forbidden):
    """A program asks without a token, or with one that opens nothing. `challenge` is the header WWW-Authenticate.

    `is_sent`: a token was sent (RFC 6750).
    """

    http_status = HTTPStatus.UNAUTHORIZED

    def __init__(self, message: str, *, is_sent: bool = True) -> None:
        super().__init__(message)
        self.challenge = 'Bearer realm="webarcfs"' + (', error="invalid_token"' if is_sent else "")


class ReadOnly(WebarcError):
    """Older states accept no additions."""

    errno = errno.EROFS
    http_status = HTTPStatus.FORBIDDEN


class Exists(WebarcError):
    """The name is taken."""

    errno = errno.EEXIST


class NotEmpty(WebarcError):
    """A folder that is to be removed contains something."""

    errno = errno.ENOTEMPTY


class Stale(WebarcError):
    """A newer state replaced the one that was read or written."""

    errno = errno.ESTALE
    http_status = HTTPStatus.SERVICE_UNAVAILABLE


class Replaced(Stale):
    """The ARC was replaced or removed while an addition was being written, which is dropped (/Ar-10/)."""


class LookAgain(Stale):
    """The caller's node is no longer the one of its name. On ESTALE the kernel looks the name up again."""


class Busy(WebarcError):
    """Another process holds a required resource."""

    errno = errno.EBUSY
    http_status = HTTPStatus.SERVICE_UNAVAILABLE


class TooManyGuesses(Busy):
    """From an address came so many wrong tokens that none is tried for a while; `seconds` is how long."""

    http_status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


class BodyTooLarge(TooMany):
    """A body that is sent to a server has more bytes than it takes."""

    http_status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class BodyTooSlow(WebarcError):
    """A body that is sent to a server does not come."""

    http_status = HTTPStatus.REQUEST_TIMEOUT


class ConditionMissing(UsageError):
    """A file is sent to a server without saying that none is to be replaced (`If-None-Match: *`)."""

    http_status = HTTPStatus.PRECONDITION_REQUIRED


class FormOutdated(Busy):
    """A form was made from a state that somebody else changed meanwhile; the text is in the language of its page."""


class Interrupted(WebarcError):
    """A process or user requested a stop."""

    errno = errno.EINTR
    http_status = HTTPStatus.SERVICE_UNAVAILABLE


class MountFailed(WebarcError):
    """A mount could not be made or removed."""

    exit_code = Exit.MOUNT_FAILED


class FetchFailed(WebarcError):
    """There is no response of a server. `status` is that of crawl.log, `note` has its words, separated by commas.

    `is_unanswered`: the connection ended before a byte of a response came.
    """

    def __init__(self, status: int, words: str, *, is_unanswered: bool = False) -> None:
        super().__init__(words)
        self.status = status
        self.note = words
        self.is_unanswered = is_unanswered


class CrawlFailed(WebarcError):
    """A crawl could not run at all (as opposed to an incomplete one)."""


def is_damage(error: object) -> bool:
    """Return whether something of the archive, or of its disk, cannot be read, and will not be readable by itself."""
    return isinstance(error, Damaged) or (isinstance(error, OSError) and error.errno == errno.EIO)


def errno_of(error: BaseException) -> int:
    """Return the errno of a mount's answer: the class's own, an OSError's own, EIO for an unexpected error."""
    if isinstance(error, WebarcError):
        return error.errno
    if isinstance(error, OSError) and error.errno:
        return error.errno
    return errno.EIO


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of a command that fails with `error`."""
    return int(error.exit_code if isinstance(error, WebarcError) else Exit.FAILED)


def http_status_of(error: BaseException) -> HTTPStatus:
    """Return the status of the room's answer: the class's own; 503 for an OSError, 500 for an unexpected error."""
    if isinstance(error, WebarcError):
        return error.http_status
    return HTTPStatus.SERVICE_UNAVAILABLE if isinstance(error, OSError) else HTTPStatus.INTERNAL_SERVER_ERROR
