"""Errors as problem details (RFC 9457): which error of the family has which status, and what clients learn of it.

`type` is `urn:webarcfs:error:` and the name of the class, so that a client raises the same error. The detail has no
path of the server: what the server's own state causes is described by its class alone, and what is not there by the
handler, in words that are the same for what does not exist and for what readers may not see.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from webarcfs.archive.model import errors
from webarcfs.archive.model.errors import WebarcError, http_status_of
from webarcfs.web import limits

MEDIA_TYPE: Final = "application/problem+json"
_URN: Final = "urn:webarcfs:error:"

#: Class → status. An error has the status of the first of its classes that is here, else that of the reading room.
STATUS: Final[Mapping[type[WebarcError], HTTPStatus]] = {
    errors.Exists: HTTPStatus.PRECONDITION_FAILED,  # of a file: its PUT says `If-None-Match: *`
    errors.Stale: HTTPStatus.CONFLICT,
    errors.LookAgain: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.InvalidDocument: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NotPermitted: HTTPStatus.FORBIDDEN,
    errors.ReadOnly: HTTPStatus.FORBIDDEN,
    errors.DocumentWithheld: HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS,
    errors.TokenRefused: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NameTooLong: HTTPStatus.BAD_REQUEST,
    errors.NameRefused: HTTPStatus.BAD_REQUEST,
    errors.UrlRefused: HTTPStatus.BAD_REQUEST,
    errors.ConditionMissing: HTTPStatus.PRECONDITION_REQUIRED,
    errors.UsageError: HTTPStatus.BAD_REQUEST,
    errors.BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.BodyTooSlow: HTTPStatus.REQUEST_TIMEOUT,
    errors.TooMany: HTTPStatus.BAD_REQUEST,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.NotADirectory: HTTPStatus.NOT_FOUND,
    errors.IsADirectory: HTTPStatus.NOT_FOUND,
    errors.NotSupported: HTTPStatus.BAD_REQUEST,
    errors.TooManyGuesses: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.TookTooLong: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Interrupted: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Damaged: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.SettingsError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.NotAnArchive: HTTPStatus.SERVICE_UNAVAILABLE,
}
#: A node that is there already: its POST says nothing of what it expects.
_EXISTS_OTHERWISE: Final = HTTPStatus.CONFLICT
#: Errors of a full disk, or of a full quota.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What clients learn of errors that the server's state causes, whose messages are for its administrators.
_DETAILS: Final[Mapping[type[WebarcError], str]] = {
    errors.Busy: "the archive is busy; ask again soon",
    errors.LookAgain: "the document was replaced meanwhile; ask again",
    errors.Interrupted: "the server is ending; ask again",
    errors.SettingsError: "the settings of the archive have faults",
    errors.Damaged: "this cannot be read, since something in the archive is damaged",
    errors.NotAnArchive: "the archive is not there",
}
_FAILED: Final = "the server failed"


def status_of(error: Exception, method: str = "GET") -> HTTPStatus:
    """Return the status of an error that a request with some method met."""
    if isinstance(error, errors.Exists) and method == "POST":
        return _EXISTS_OTHERWISE
    if isinstance(error, WebarcError):
        own = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)
        return http_status_of(error) if own is None else own
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return HTTPStatus.INSUFFICIENT_STORAGE
    return http_status_of(error)


def detail_of(error: Exception, status: HTTPStatus) -> str:
    """Return what clients learn of an error."""
    if status is HTTPStatus.INSUFFICIENT_STORAGE:
        return "there is no room left for it"
    if isinstance(error, errors.NotFound) and not isinstance(error, errors.NotShown):
        return "there is nothing at this address"
    if isinstance(error, errors.TookTooLong) or status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return str(error)
    return next((_DETAILS[kind] for kind in type(error).__mro__ if kind in _DETAILS), _FAILED)


def name_of(error: Exception) -> str:
    """Return the class of the family by which a client knows an error."""
    if isinstance(error, errors.NotShown):
        return errors.NotFound.__name__
    own = type(error).__name__
    return own if isinstance(error, WebarcError) and hasattr(errors, own) else WebarcError.__name__


def problem(
    status: HTTPStatus, name: str, detail: str, headers: Mapping[str, str] | None = None, title: str = ""
) -> Response:
    """Return the answer to a request that failed. `name` is a class of the family."""
    values = {"type": f"{_URN}{name}", "title": title or status.phrase, "status": int(status), "detail": detail}
    fields = {"Cache-Control": "no-store", **(headers or {})}
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        fields.setdefault("Retry-After", str(limits.RETRY_SECONDS))
    return Response(json.dumps(values).encode(), int(status), fields, MEDIA_TYPE)


def problem_of(request: Request, error: Exception) -> Response:
    """Return the answer to a request that met an error."""
    status = status_of(error, request.method)
    return problem(status, name_of(error), detail_of(error, status), _fields_of(error))


def _fields_of(error: Exception) -> dict[str, str]:
    """Return the header fields that say what to do about an error."""
    if isinstance(error, errors.TokenRefused):
        return {"WWW-Authenticate": error.challenge}
    if isinstance(error, errors.TooManyGuesses):
        return {"Retry-After": str(int(error.seconds) + 1)}
    return {}
