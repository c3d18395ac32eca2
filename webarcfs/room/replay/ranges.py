"""Bodies over HTTP: conditions and ranges (RFC 9110 sections 13 and 14), without a large body in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from webarcfs.room.answering import StreamedAnswer, streamed

Fields = Sequence[tuple[str, str]]
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
#: Bodies up to this size are sent at once.
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes from `start` up to `end` of a body."""

    start: int
    end: int


def part(asked: str, size: int) -> Part | None:
    """Return the part that a Range asks for: all of it where the header means nothing, None where it has no byte.

    Several ranges are answered by the whole body, as RFC 9110 section 14.2 allows.
    """
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not any(found.groups()):
        return Part(0, size)
    first, last = found.groups()
    if not first:
        return Part(max(size - int(last), 0), size) if int(last) and size else None
    start = int(first)
    end = min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return Part(0, size)
    return Part(start, end) if start < size else None


def whole(request: Request, status: int, body: bytes, fields: Fields) -> Response:
    """Return a body as a whole; 304 where the client has it."""
    if _is_known(request, fields):
        return with_fields(Response(status_code=304), fields)
    answer = Response(b"" if request.method == "HEAD" else body, status)
    return with_fields(answer, [*fields, ("Content-Length", str(len(body)))])


def partly(
    request: Request, status: int, size: int, pieces: Callable[[int, int], Iterator[bytes]], fields: Fields
) -> Response:
    """Return what is asked of a body; `pieces` yields the bytes from a place up to another."""
    if _is_known(request, fields):
        return with_fields(Response(status_code=304), fields)
    asked = request.headers.get("range", "") if status == 200 and _is_current(request, fields) else ""
    wanted = part(asked, size)
    fields = [*fields, ("Accept-Ranges", "bytes")]
    if wanted is None:
        return with_fields(Response(status_code=416), [*fields, ("Content-Range", f"bytes */{size}")])
    if wanted != Part(0, size):
        status = 206
        fields = [*fields, ("Content-Range", f"bytes {wanted.start}-{wanted.end - 1}/{size}")]
    length = wanted.end - wanted.start
    fields = [*fields, ("Content-Length", str(length))]
    if request.method == "HEAD":
        return with_fields(Response(b"", status), fields)
    if length <= _SMALL:
        return with_fields(Response(b"".join(pieces(wanted.start, wanted.end)), status), fields)
    return with_fields(StreamedAnswer(streamed(pieces(wanted.start, wanted.end)), status), fields)


def with_fields(answer: Response, fields: Fields) -> Response:
    """Return an answer with exactly these fields; several may have one name."""
    named = {name.lower() for name, _ in fields}
    kept = [(name, value) for name, value in answer.raw_headers if name.decode("latin-1") not in named]
    own = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fields]
    answer.raw_headers = [*kept, *own]
    return answer


def _is_known(request: Request, fields: Fields) -> bool:
    """Return whether the client has the body already (RFC 9110 section 13.1.2)."""
    known = request.headers.get("if-none-match", "")
    return bool(known) and (known.strip() == "*" or _etag(fields) in _tags(known))


def _is_current(request: Request, fields: Fields) -> bool:
    """Return whether a range is of this body (RFC 9110 section 13.1.5). Dates are not compared: they may be equal."""
    condition = request.headers.get("if-range")
    return condition is None or condition.strip() == _etag(fields)


def _etag(fields: Fields) -> str:
    return next((value for name, value in fields if name == "ETag"), "")


def _tags(known: str) -> set[str]:
    return {each.strip().removeprefix("W/") for each in known.split(",")}
