"""CDXJ: an index of captures, a line each: key, time, and what is known of it as JSON; sorted by bytes.

Either of a selection by itself, or of the files that a WARC export made: then with the place of each record in them, so
that replay finds it. Responses and revisits of the web are captures; what else the files hold is not.

The key of a URL is spelled as the programs of the field spell it, so that they find it. It is coarser than
`archive/model/surt`, by which the archive itself sorts: without `www.`, case, the order of parameters, a final slash,
and the sessions that some servers put into URLs. Written after what those programs do with URLs; the tests compare it
with one of them.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote_to_bytes

from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import OK, RESOURCE, format_utc
from webarcfs.archive.system.clocks import Progress
from webarcfs.archive.system.files import Sorter
from webarcfs.export.export_result import Exportable, Growing, Summary, fill
from webarcfs.export.selection import Stop
from webarcfs.export.version_selection import VersionSelection
from webarcfs.export.warc import SELECTION, file_name
from webarcfs.export.warc_records import KEY, WarcRecord, sha1
from webarcfs.warc.http_response import LONGEST_HEAD, parse_head
from webarcfs.warc.request_key import parts_of

# == cdx key, pure ====================================================================================================


_WWW = re.compile(r"\Awww\d*\.")
_ADDRESS = re.compile(r"\[.*\]")
_ESCAPED = re.compile(rb"[^\x21\x22\x24\x26-\x7e]")
_DEFAULT = {"http": "80", "https": "443"}
#: Sessions in paths of ASP.NET: `/(S(…))/page.aspx`.
_IN_PATH = re.compile(r"^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)|\([0-9a-z]{24}\))/([^?]+\.aspx.*)$", re.DOTALL)
#: Parameters that name a session.
_IN_QUERY = (
    *(re.compile(rf"^(.*){name}=[0-9a-z]{{32}}(?:&(.*))?$", re.DOTALL) for name in ("jsessionid", "phpsessid", "sid")),
    re.compile(r"^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$", re.DOTALL),
    re.compile(r"^(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$", re.DOTALL),
)


def cdx_key(url: str) -> str:
    """Return the key of a canonical URL."""
    scheme, _, rest = url.partition("://")
    host_port, slash, rest = rest.partition("/")
    path, mark, query = rest.partition("?")
    return f"{_turned(scheme, host_port)}){_path(slash + path)}{_query(query) if mark else ''}"


def _turned(scheme: str, host_port: str) -> str:
    """Return a host from the top down, with its port, unless that is the scheme's own."""
    host, colon, port = host_port.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = host_port, ""
    names = [host[1:-1]] if _ADDRESS.fullmatch(host) else _WWW.sub("", host.lower().strip(".")).split(".")
    turned = ",".join(reversed(names))
    return turned if not port or port == _DEFAULT.get(scheme) else f"{turned}:{port}"


def _path(path: str) -> str:
    """Return a path in lower case, without what does not change where it leads."""
    kept: list[str] = []
    for name in _plain(path).removeprefix("/").split("/"):
        if name == ".." and kept:
            kept.pop()  # at the top it stays, as there
        elif name != ".":
            kept.append(name)
    canonical = "/" + "/".join(filter(None, kept))
    if session := _IN_PATH.match(canonical.lower()):
        canonical = session[1] + session[2]
    return canonical.lower()


def _query(query: str) -> str:
    """Return a query in lower case and in order, without sessions; empty for an empty one."""
    text = _plain(query).lower()
    for pattern in _IN_QUERY:
        if session := pattern.match(text):
            text = session[1] + (session[2] or "")
    return "?" + "&".join(sorted(text.split("&"), key=lambda parameter: parameter.partition("="))) if text else ""


def _plain(text: str) -> str:
    """Return a part of a URL with the fewest escapes: undone as long as there are any, then of what must have them."""
    raw = text.encode()
    while (undone := unquote_to_bytes(raw)) != raw:
        raw = undone
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], raw).decode("ascii")


# == cdxj =============================================================================================================


#: Name of the index in the folder of the files that it is of.
INDEX: Final = "index.cdxj"
_KINDS = ("response", "revisit", RESOURCE)
_REVISIT = "warc/revisit"
_READ_AT_ONCE = 1 << 18
#: Bytes of a record of which the heads are read.
_HEADS = 2 * LONGEST_HEAD
_GZIP = zlib.MAX_WBITS | 16


def export(selection: Exportable, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write the index of a selection to `out`; see the package. In the folder of its WARC files it is that of these.

    Raises Interrupted, Damaged, OSError.
    """
    folder = out.absolute().parent.parent  # `out` is in a folder of its own beside its place
    if out.name == INDEX and any(folder.glob("*.warc.gz")):
        return _of_files(selection, folder, out, progress, stop)
    is_stream = str(out) == "-"
    with tempfile.TemporaryDirectory(prefix="webarcfs-") as temporary:
        place = Path(temporary) if is_stream else out.parent
        rows = place / f"{out.name}.rows"
        with Growing(place / f"{out.name}.notes", lambda _: rows, lambda _: b"") as files:

            def write(record: WarcRecord) -> None:
                if record.kind in _KINDS and record.uri.startswith("http"):
                    files.write(_line(_Capture.of(record)))

            summary = fill(files, selection, write, progress, stop)
        with rows.open("rb") as lines:
            size, number = sorted_into(lines, out)
        return replace(summary, records=number, bytes=size, files=1)


@dataclass(frozen=True, slots=True)
class _Capture:
    """What a line says."""

    url: str
    date: str
    mime: str
    status: str
    digest: str
    place: tuple[tuple[str, str], ...] = ()
    key: str = ""

    @classmethod
    def of(cls, record: WarcRecord) -> _Capture:
        mime = _REVISIT if record.kind == "revisit" else record.mime
        key = dict(record.fields).get(KEY, "")
        return cls(record.uri, format_utc(record.date), mime, str(record.status), sha1(record.payload), key=key)


def _line(capture: _Capture) -> bytes:
    fields = {"url": capture.url, "mime": capture.mime, "status": capture.status, "digest": capture.digest}
    asked = parts_of(capture.key)
    is_asked = asked is not None and asked.url == capture.url
    if asked is not None and is_asked:  # as other programs say it, which find it by the same key
        fields |= {"method": asked.method, "requestBody": asked.query}
    rest = {name: value for name, value in fields.items() if value} | dict(capture.place)
    digits = capture.date.translate(_NO_SIGNS)
    return f"{cdx_key(capture.key if is_asked else capture.url)} {digits} {json.dumps(rest)}\n".encode()


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


def _of_files(selection: Exportable, folder: Path, out: Path, progress: Progress, stop: Stop) -> Summary:
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
    summary = Summary(documents=documents, records=number, bytes=size, files=1)
    if isinstance(selection, VersionSelection):
        return replace(summary, versions=selection.versions)
    return replace(summary, snapshots=len(selection))


def lines_of(path: Path, digest: str, name: str, stop: Stop, begin: int = 0) -> Iterator[bytes]:
    """Yield the lines of a WARC file of ours, which is called `name`, unordered; it starts at byte `begin` of `path`.

    Raises Damaged if it is not of the selection with this digest, Interrupted.
    """
    for offset, length, head in _members(path, begin):
        if stop():
            raise Interrupted("the export was interrupted; the same command starts the index over")
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
                    piece = member.decompress(data, _READ_AT_ONCE)  # a record of zeros grows a thousandfold
                except zlib.error as error:
                    raise Damaged(f"{path}: the record at byte {offset} cannot be read: {error}") from None
                if not data and not piece and not member.eof:
                    raise Damaged(f"{path} is cut off in the record at byte {offset}")
                head += piece[: max(_HEADS - len(head), 0)]
                left = member.unused_data if member.eof else member.unconsumed_tail
                length += len(data) - len(left)
            yield offset, length, bytes(head)
            offset += length


def _read(path: Path, head: bytes, known: tuple[tuple[int, int], str], name: str) -> _Capture | None:
    """Return the capture of a record of ours; None if it is none. Raises Damaged if it is of another selection."""
    (offset, length), digest = known
    header_lines, _, block = head.partition(b"\r\n\r\n")
    fields = dict(
        line.split(": ", 1) for line in header_lines.decode("utf-8", "replace").split("\r\n")[1:] if ": " in line
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
        fields.get("WARC-Payload-Digest", ""), place, fields.get(KEY, ""),
    )  # fmt: skip
