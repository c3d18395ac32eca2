"""What a server's answers mean: problems as errors of our family, rows, and the documents of a tar file.

Rows are lines of JSON: the names of the columns, an array a row, and `{"end": true, "rows": N}`. Without that line the
answer was cut.
"""

from __future__ import annotations

import errno
import json
import math
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from tarfile import HeaderError
from typing import IO, Any, BinaryIO, Self, cast

from webarcfs.archive.model import errors
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Busy, Damaged, WebarcError
from webarcfs.client.http_connections import ServerAnswer
from webarcfs.client.source import LARGE, PIECE

# == problems =========================================================================================================


PROBLEM_TYPE = "application/problem+json"
_URN = "urn:webarcfs:error:"
#: Bytes of a description of an error, and characters of it that people are shown.
_LARGEST_PROBLEM = 1 << 16
_LONGEST_DETAIL = 4_000
#: The error of a status, where an answer does not say it: something between client and server made it.
_OF_STATUS = {
    HTTPStatus.BAD_REQUEST: errors.UsageError,
    HTTPStatus.UNAUTHORIZED: errors.Forbidden,
    HTTPStatus.FORBIDDEN: errors.Forbidden,
    HTTPStatus.NOT_FOUND: errors.NotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: errors.NotSupported,
    HTTPStatus.CONFLICT: errors.Stale,
    HTTPStatus.PRECONDITION_FAILED: errors.Exists,
    HTTPStatus.CONTENT_TOO_LARGE if hasattr(HTTPStatus, "CONTENT_TOO_LARGE") else 413: errors.TooMany,
    HTTPStatus.TOO_MANY_REQUESTS: errors.Busy,
    HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS: errors.Forbidden,
    HTTPStatus.BAD_GATEWAY: errors.Busy,
    HTTPStatus.SERVICE_UNAVAILABLE: errors.Busy,
    HTTPStatus.GATEWAY_TIMEOUT: errors.TookTooLong,
}


def checked(answer: ServerAnswer, origin: str) -> ServerAnswer:
    """Return an answer that is a success; raise the error of another one."""
    if answer.status < HTTPStatus.BAD_REQUEST:
        return answer
    raise error_of(answer, origin)


def error_of(answer: ServerAnswer, origin: str) -> WebarcError:
    """Return the error that an answer describes: of the class that its `type` names, if that is one of our family."""
    problem: dict[str, Any] = {}
    if answer.media_type == PROBLEM_TYPE:
        try:
            value = json.loads(answer.body(_LARGEST_PROBLEM))
        except ValueError:
            value = None
        problem = value if isinstance(value, dict) else {}
    else:
        answer.drain()
    detail = printable(str(problem.get("detail") or problem.get("title") or ""))
    text = detail or f"{origin} answers with status {answer.status}"
    error = _made(str(problem.get("type", "")).removeprefix(_URN), text, answer.status, origin)
    if answer.status == HTTPStatus.INSUFFICIENT_STORAGE:
        error.errno = errno.ENOSPC
    return error


def _made(name: str, text: str, status: int, origin: str) -> WebarcError:
    kind = getattr(errors, name, None) if name.isidentifier() else None
    if not (isinstance(kind, type) and issubclass(kind, WebarcError)):
        kind = _OF_STATUS.get(HTTPStatus(status) if status in _STATUSES else HTTPStatus.IM_A_TEAPOT, WebarcError)
    if kind is errors.SettingsError:
        return errors.SettingsError(origin, [text])
    # An error that has more to say than a text is raised as the nearest one above it that has not.
    family: list[type[WebarcError]] = [base for base in kind.__mro__ if issubclass(base, WebarcError)]
    return next((base for number, base in enumerate(family) if not _adds_values(family[number:])), WebarcError)(text)


def _adds_values(family: list[type[WebarcError]]) -> bool:
    """Return whether one of these classes is made of more than a text."""
    return any("__init__" in vars(base) for base in family)


_STATUSES = frozenset(int(status) for status in HTTPStatus)


def printable(text: str) -> str:
    """Return a text of a server as a terminal may show it: bounded, without characters that steer it."""
    cut = text[:_LONGEST_DETAIL]
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in cut)


# == json =============================================================================================================


#: Bytes of an answer that is one JSON value, and of a row.
_LARGEST_VALUE = 64 << 20
_LONGEST_ROW = 4 << 20


def value_of(answer: ServerAnswer, origin: str) -> Any:
    """Return the JSON value of an answer. Raises Damaged for what is none."""
    try:
        return json.loads(answer.body(_LARGEST_VALUE))
    except (ValueError, RecursionError):
        raise Damaged(f"{origin} sent what is no JSON") from None


def rows_of(answer: ServerAnswer, origin: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an answer by the names of their columns. Raises Busy where it was cut, Damaged."""
    lines = _lines(answer, origin)
    columns = next(lines, None)
    if columns is None:
        raise _cut(origin)
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise Damaged(f"{origin} sent rows without the names of their columns")
    count = 0
    for row in lines:
        if isinstance(row, list) and len(row) == len(columns):
            count += 1
            yield dict(zip(columns, row, strict=True))
        elif isinstance(row, dict) and row.get("end") is True and row.get("rows") == count:
            for _ in lines:
                raise Damaged(f"{origin} sent something behind the end of its rows")
            return
        else:
            raise Damaged(f"{origin} sent a row that is none: {printable(str(row)[:200])}")
    raise _cut(origin)


def _lines(answer: ServerAnswer, origin: str) -> Iterator[Any]:
    rest = b""
    for piece in answer.pieces():
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_ROW:
            answer.close()
            raise Damaged(f"{origin} sent a row of more than {_LONGEST_ROW:,} bytes")
        for line in whole:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise Damaged(f"{origin} sent a row that is no JSON") from None
    if rest:
        raise _cut(origin)


def _cut(origin: str) -> Busy:
    return Busy(f"the answer of {origin} was cut; ask again")


# == tar ==============================================================================================================


#: Bytes of the attributes of a file in a tar file, with what lies before them.
_LARGEST_HEADER = 1 << 20


class _Pieces:
    """The body of an answer as a file that can be read once; `most` bytes of it until that is set anew."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""
        self.most: float = _LARGEST_HEADER

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and (piece := self._rest or next(self._pieces, b"")):
            parts.append(piece[:size])
            size -= len(parts[-1])
            self.most -= len(parts[-1])
            self._rest = piece[len(parts[-1]) :]
            if self.most < 0:
                raise Damaged(f"attributes of a file in a tar file have more than {_LARGEST_HEADER:,} bytes")
        return b"".join(parts)


class _Member(tarfile.TarInfo):
    """A member of a tar file. `tarfile` takes what is cut, or no header at all, for the end."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except HeaderError as error:
            kind = type(error).__name__
            if kind in ("EmptyHeaderError", "TruncatedHeaderError"):
                raise Busy("the tar file was cut; ask again") from None
            if kind == "InvalidHeaderError":
                raise Damaged(f"a tar file has something that is none of its headers: {error}") from None
            raise


def files_of(answer: ServerAnswer, origin: str) -> Iterator[tuple[str, BinaryIO]]:
    """Yield the files of a tar file by their paths, as streams. Raises Busy where it was cut, Damaged."""
    pieces = _Pieces(answer.pieces())
    try:
        with tarfile.open(
            fileobj=cast(IO[bytes], pieces), mode="r|", tarinfo=_Member, encoding="utf-8", errors="surrogateescape"
        ) as members:
            while (member := members.next()) is not None:
                setattr(members, "members", [])  # noqa: B010 # it would keep them all
                if not member.isreg():
                    raise Damaged(f"{origin} sent a tar file with something that is no file: {printable(member.name)}")
                body = members.extractfile(member)
                assert body is not None, "a regular file has a body"
                pieces.most = math.inf
                kept = _kept(cast(BinaryIO, body), member.size)
                pieces.most = _LARGEST_HEADER
                yield member.name, kept
            pieces.most = math.inf
            while pieces.read(PIECE):
                pass
    except tarfile.ReadError as error:
        raise Busy(f"the tar file of {origin} was cut; ask again ({error})") from error
    except tarfile.TarError as error:
        raise Damaged(f"{origin} sent what is no tar file: {error}") from error
    finally:
        answer.close()


def _kept(body: BinaryIO, size: int) -> BinaryIO:
    """Return a body that stays: in memory if it is small, else in an unnamed file."""
    kept = cast(BinaryIO, tempfile.SpooledTemporaryFile(LARGE))  # noqa: SIM115 # the caller closes it
    try:
        while piece := body.read(PIECE):
            kept.write(piece)
            size -= len(piece)
        if size:
            raise Busy("the tar file was cut; ask again")
    except BaseException:
        kept.close()
        raise
    kept.seek(0)
    return kept


def arcs_of(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[tuple[str, dict[str, BinaryIO]]]:
    """Yield the paths of ARCs with their files, of the files of a tree in the order of a walk through its folders.

    A folder with data.xml is an ARC; the files of another one are additions to the ARC above it.
    """
    above: list[tuple[str, dict[str, BinaryIO]]] = [("", {})]
    try:
        for path, stream in files:
            folder, _, name = path.rpartition("/")
            while not f"{folder}/".startswith(f"{above[-1][0]}/") and len(above) > 1:
                yield from _left(above)
            while above[-1][0] != folder:
                begin = above[-1][0]
                step = folder[len(begin) + 1 if begin else 0 :].partition("/")[0]
                above.append((f"{begin}/{step}" if begin else step, {}))
            above[-1][1][name] = stream
        while len(above) > 1:
            yield from _left(above)
    finally:
        for _, left in above:
            for stream in left.values():
                stream.close()


def _left(above: list[tuple[str, dict[str, BinaryIO]]]) -> Iterator[tuple[str, dict[str, BinaryIO]]]:
    """Leave the innermost folder; yield it if it is an ARC."""
    path, files = above.pop()
    if DATA_XML in files:
        yield path, files
        return
    folder, files_above = above[-1]
    name = path[len(folder) + 1 if folder else 0 :]
    files_above.update({f"{name}/{below}": stream for below, stream in files.items()})
