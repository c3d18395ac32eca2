"""CDXJ: an index of captures, a line each: key, time, and what is known of it as JSON; sorted by bytes.

Either of a selection by itself, or of the files that a WARC export made: then with the place of each record in them, so
that replay finds it. Responses and revisits of the web are captures; what else the files hold is not.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Final

from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import OK, RESOURCE, format_utc
from webarcfs.archive.system.sorting import Sorter
from webarcfs.exchange.bodies import sha1
from webarcfs.exchange.cdx_key import cdx_key
from webarcfs.exchange.growing import Growing, fill
from webarcfs.exchange.records import Record
from webarcfs.exchange.selection import Selection
from webarcfs.exchange.summary import Progress, Stop, Summary
from webarcfs.exchange.warc import SELECTION, file_name
from webarcfs.warc.http_response import LONGEST_HEAD, parse_head

#: Name of the index in the folder of the files that it is of.
INDEX: Final = "index.cdxj"
_KINDS = ("response", "revisit", RESOURCE)
_REVISIT = "warc/revisit"
_READ_AT_ONCE = 1 << 18
#: Bytes of a record of which the heads are read.
_HEADS = 2 * LONGEST_HEAD
_GZIP = zlib.MAX_WBITS | 16


def export(selection: Selection, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write the index of a selection to `out`; see the package. In the folder of its WARC files it is that of these.

    Raises Interrupted, Damaged, OSError.
    """
    folder = out.absolute().parent.parent  # `out` is in a folder of its own beside its place
    if out.name == INDEX and any(folder.glob("*.warc.gz")):
        return _of_files(selection, folder, out, progress, stop)
    is_stream = str(out) == "-"
    with tempfile.TemporaryDirectory(prefix="webarcfs-") as made:
        place = Path(made) if is_stream else out.parent
        rows = place / f"{out.name}.rows"
        with Growing(place / f"{out.name}.notes", lambda _: rows, lambda _: b"") as files:

            def write(record: Record) -> None:
                if record.kind in _KINDS and record.uri.startswith("http"):
                    files.write(_line(_Capture.of(record)))

            found = fill(files, selection, write, progress, stop)
        with rows.open("rb") as lines:
            size, number = sorted_into(lines, out)
        return Summary(
            snapshots=found.snapshots, documents=found.documents, records=number, bytes=size, files=1,
            left_out=found.left_out,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Capture:
    """What a line tells."""

    url: str
    date: str
    mime: str
    status: str
    digest: str
    place: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, record: Record) -> _Capture:
        mime = _REVISIT if record.kind == "revisit" else record.mime
        return cls(record.uri, format_utc(record.date), mime, str(record.status), sha1(record.payload))


def _line(capture: _Capture) -> bytes:
    told = {"url": capture.url, "mime": capture.mime, "status": capture.status, "digest": capture.digest}
    rest = {name: value for name, value in told.items() if value} | dict(capture.place)
    digits = capture.date.translate(_NO_SIGNS)
    return f"{cdx_key(capture.url)} {digits} {json.dumps(rest)}\n".encode()


_NO_SIGNS = str.maketrans("", "", "-:TZ")


def sorted_into(lines: Iterable[bytes], out: Path) -> tuple[int, int]:
    """Write lines to `out` in order, equal ones once; return bytes and number."""
    size = number = 0
    last = b""
    is_stream = str(out) == "-"
    with Sorter(Path(tempfile.gettempdir()) if is_stream else out.parent) as sorter:
        for line in lines:
            sorter.add(line)
        with _opened(out) as file:
            for line in sorter.rows():
                if line != last:
                    size += file.write(line)
                    number += 1
                last = line
    return size, number


@contextmanager
def _opened(out: Path) -> Iterator[IO[bytes]]:
    if str(out) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with out.open("wb") as file:
            yield file


# -- of files ----------------------------------------------------------------------------------------------------------


def _of_files(selection: Selection, folder: Path, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write the index of the files in `folder`. Raises Damaged if they are not of this selection."""
    names = (file_name(selection.name, number) for number in count())
    paths: list[Path] = []
    while (path := folder / next(names)).exists():
        paths.append(path)
    documents = 0

    def lines() -> Iterator[bytes]:
        nonlocal documents
        digest = selection.digest
        for number, path in enumerate(paths):
            progress("files", number, len(paths))
            for line in lines_of(path, digest, path.name, stop):
                documents += 1
                yield line

    if not paths:
        raise Damaged(f"{folder} has no file {file_name(selection.name, 0)}: it is an export of something else")
    size, number = sorted_into(lines(), out)
    return Summary(snapshots=len(selection), documents=documents, records=number, bytes=size, files=1)


def lines_of(path: Path, digest: str, name: str, stop: Stop, begin: int = 0) -> Iterator[bytes]:
    """Yield the lines of a WARC file of ours, which is called `name`, unordered; it starts at byte `begin` of `path`.

    Raises Damaged if it is not of the selection with this digest, Interrupted.
    """
    for offset, length, head in _members(path, begin):
        if stop():
            raise Interrupted("the export was interrupted; the same command begins the index anew")
        capture = _read(path, head, ((offset, length), digest), name)
        if capture is not None:
            yield _line(capture)


def _members(path: Path, begin: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield offset, length and the first bytes of each member of a file. Raises Damaged if it is not whole."""
    with path.open("rb") as file:
        file.seek(begin)
        offset, left = 0, b""
        while left or (left := file.read(_READ_AT_ONCE)):
            member, head, length = zlib.decompressobj(_GZIP), bytearray(), 0
            while not member.eof:
                data = left or file.read(_READ_AT_ONCE)
                try:
                    found = member.decompress(data, _READ_AT_ONCE)  # a record of zeros grows a thousandfold
                except zlib.error as error:
                    raise Damaged(f"{path}: what is at byte {offset} cannot be read: {error}") from None
                if not data and not found and not member.eof:
                    raise Damaged(f"{path} is cut off in the record at byte {offset}")
                head += found[: max(_HEADS - len(head), 0)]
                left = member.unused_data if member.eof else member.unconsumed_tail
                length += len(data) - len(left)
            yield offset, length, bytes(head)
            offset += length


def _read(path: Path, head: bytes, known: tuple[tuple[int, int], str], name: str) -> _Capture | None:
    """Return the capture of a record of ours; None if it is none. Raises Damaged if it is of another selection."""
    (offset, length), digest = known
    fields_of, _, block = head.partition(b"\r\n\r\n")
    fields = dict(
        line.split(": ", 1) for line in fields_of.decode("utf-8", "replace").split("\r\n")[1:] if ": " in line
    )
    kind = fields.get("WARC-Type", "")
    if kind == "warcinfo" and f"{SELECTION}: {digest}\r\n".encode() not in block:
        raise Damaged(f"{path} is of other snapshots than these; name an index of its own")
    url = fields.get("WARC-Target-URI", "")
    if kind not in _KINDS or not url.startswith("http"):
        return None
    http = None if kind == RESOURCE else parse_head(block.partition(b"\r\n\r\n")[0])
    status, type_ = (str(http.status), http.content_type) if http is not None else ("", "")
    if kind == RESOURCE:
        status, type_ = str(OK), fields.get("Content-Type", "")
    mime = type_.partition(";")[0].strip()
    place = (("length", str(length)), ("offset", str(offset)), ("filename", name))
    return _Capture(
        url, fields["WARC-Date"], _REVISIT if kind == "revisit" else mime, status,
        fields.get("WARC-Payload-Digest", ""), place,
    )  # fmt: skip
