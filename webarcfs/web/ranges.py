"""Conditions and ranges (RFC 9110 sections 13 and 14), answered without a large body in memory.

The pieces of a large body come from an unnamed file, so that a client that takes its time holds no memory.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from starlette.requests import Request
from starlette.responses import Response

from webarcfs.archive.git.repository import Repository
from webarcfs.web.answering import StreamedAnswer, streamed

# == ranges ===========================================================================================================


Fields = Sequence[tuple[str, str]]
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
#: Bodies up to this size are sent at once.
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class BodyRange:
    """The bytes from `start` up to `end` of a body."""

    start: int
    end: int


def part(asked: str, size: int) -> BodyRange | None:
    """Return the part that a Range asks for: all of it where the header means nothing, None where it has no byte.

    Several ranges are answered by the whole body, as RFC 9110 section 14.2 allows.
    """
    match = _RANGE.fullmatch(asked.strip())
    if match is None or not any(match.groups()):
        return BodyRange(0, size)
    first, last = match.groups()
    if not first:
        return BodyRange(max(size - int(last), 0), size) if int(last) and size else None
    start = int(first)
    end = min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return BodyRange(0, size)
    return BodyRange(start, end) if start < size else None


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
    if wanted != BodyRange(0, size):
        status = 206
        fields = [*fields, ("Content-Range", f"bytes {wanted.start}-{wanted.end - 1}/{size}")]
    length = wanted.end - wanted.start
    fields = [*fields, ("Content-Length", str(length))]
    if request.method == "HEAD":
        return with_fields(Response(b"", status), fields)
    if length <= _SMALL:
        return with_fields(Response(b"".join(pieces(wanted.start, wanted.end)), status), fields)
    return with_fields(StreamedAnswer(streamed(pieces(wanted.start, wanted.end)), status), fields)


def entity_tag(content: bytes) -> str:
    """Return the tag of a body (RFC 9110 section 8.8.3): of its bytes, or of what it is made of."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def with_fields(answer: Response, fields: Fields) -> Response:
    """Return an answer with exactly these fields; several may have one name."""
    named = {name.lower() for name, _ in fields}
    kept = [(name, value) for name, value in answer.raw_headers if name.decode("latin-1") not in named]
    own = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fields]
    answer.raw_headers = [*kept, *own]
    return answer


def _is_known(request: Request, fields: Fields) -> bool:
    """Return whether the client has the body already (RFC 9110 sections 13.1.2 and 13.1.3).

    A date counts where no tag is named, and if it is the very date of the body: after a withdrawal that may be earlier.
    """
    known = request.headers.get("if-none-match")
    if known is None:
        date = next((value for name, value in fields if name == "Last-Modified"), "")
        return bool(date) and request.headers.get("if-modified-since", "").strip() == date
    return known.strip() == "*" or _etag(fields) in _tags(known)


def _is_current(request: Request, fields: Fields) -> bool:
    """Return whether a range is of this body (RFC 9110 section 13.1.5). Dates are not compared: they may be equal."""
    condition = request.headers.get("if-range")
    return condition is None or condition.strip() == _etag(fields)


def _etag(fields: Fields) -> str:
    return next((value for name, value in fields if name == "ETag"), "")


def _tags(known: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in known.split(",")}


# == pieces ===========================================================================================================


#: Bodies up to this size are read into memory; larger ones go through an unnamed file.
_LARGE = 4 << 20
_PIECE = 1 << 18


def body_in_pieces(store: Repository, blob: str, size: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a body from `start` up to `end`; a large one is not held in memory. Raises Damaged."""
    if size <= _LARGE:
        yield store.read(blob)[start:end]
        return
    with tempfile.TemporaryFile() as file:
        store.copy(blob, file.fileno())
        yield from _pieces(file, start, end)


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    file.seek(start)
    while start < end and (piece := file.read(min(_PIECE, end - start))):
        start += len(piece)
        yield piece
