"""`import` of answers that break HTTP's rules as many do: taken with a note, but never a part as the whole."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agent.importing import warcfile
from tests.support import warcs
from tests.support.crawls import arcs, log_lines, meta, read, read_file
from tests.support.imports import import_files, imported
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive
from webarcfs.warc import http_response
from webarcfs.warc.foreign_files import records_of, stream_of

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
#: WARC files that others wrote; pywb comes with them.
SAMPLES = ROOT / ".venv-pywb" / "sample_archive" / "warcs"
BODY = b"<html><title>here</title></html>"


def url(path: str) -> str:
    return f"http://{HOST}/{path}"


HEADS = {
    "doubled": b"HTTP/1.1 200 OK\r\r\nContent-Type: text/html\r\r\n\r\r\n",
    "bare": b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n",
    "mixed": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\n\r\n",
    "no-reason": b"HTTP/1.1 200\r\nContent-Type: text/html\r\n\r\n",
    "blank-reason": b"HTTP/1.0 200 \r\nContent-Type: text/html\r\n\r\n",
    "close-reason": b"HTTP/1.1 200OK\r\nContent-Type: text/html\r\n\r\n",
    "two": b"HTTP/2 200\r\ncontent-type: text/html\r\n\r\n",
    "two-point": b"HTTP/2.0 200 \r\ncontent-type: text/html\r\n\r\n",
    "three": b"HTTP/3 200 OK\r\ncontent-type: text/html\r\n\r\n",
    "small": b"http/1.1 200 ok\r\nCONTENT-TYPE : text/html\r\n\r\n",
    "odd-lines": b"HTTP/1.1 200 OK\r\nno field\r\nX-\xff: \xfe\x00\r\nContent-Type: text/html\r\n\r\n",
}


def test_heads_that_others_read_too(archive: Archive, tmp_path: Path) -> None:
    made = [warcs.record("response", url(name), head + BODY) for name, head in HEADS.items()]
    imported(archive, warcs.write(tmp_path / "heads.warc", made))
    assert {name: read(archive, HOST, name) for name in sorted(arcs(archive, HOST))} == dict.fromkeys(
        sorted(HEADS), BODY
    )
    assert {meta(archive, HOST, name).title for name in HEADS} == {"here"}


@pytest.mark.parametrize(
    "line", [b"HTTP/1.1", b"HTTP/1.1 OK 200", b"HTTP/1.1 2000 OK", b"HTTP/1.1 20x", b"200 OK", b""]
)
def test_heads_that_are_none(line: bytes) -> None:
    assert http_response.parse_head(line + b"\r\nContent-Type: text/html\r\n\r\n") is None


def test_a_file_that_a_program_took_for_text(archive: Archive, tmp_path: Path) -> None:
    """Each line feed of it became two bytes, in bodies as well: undone, the lengths and digests are right again."""
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300 + b"\n\r\n\r"
    made = [
        warcs.record("response", url("a"), warcs.http(BODY)),
        warcs.record("response", url("b"), warcs.http(picture, "image/png")),
        warcs.record("response", url("c"), warcs.http(b"\n\n\n")),
    ]
    text = re.sub(rb"\n", rb"\r\n", b"".join(made))
    imported(archive, warcs.write(tmp_path / "text.warc", [text]))
    assert [read(archive, HOST, name) for name in "abc"] == [BODY, picture, b"\n\n\n"]
    found = [
        record.whole()
        for record in records_of(stream_of(BytesIO((SAMPLES / "missing-status-text.warc").read_bytes())), _none)
    ]
    assert found == [True]


def _none(what: str, where: int) -> None:
    raise AssertionError(f"{what} at {where}")


def test_a_range_that_is_the_whole_is_the_document(archive: Archive, tmp_path: Path) -> None:
    """As browsers ask for videos; a part of one never becomes the document, and both are said."""
    size = len(BODY)
    ranges = {
        "whole": f"bytes 0-{size - 1}/{size}",
        "begin": f"bytes 0-{size - 1}/{size + 9}",
        "end": f"bytes 9-{size + 8}/{size + 9}",
        "unknown": f"bytes 0-{size - 1}/*",
        "less": f"bytes 0-{size}/{size + 1}",
        "none": "",
    }
    made = [
        warcs.record("response", url(name), warcs.http(BODY, status="206 Partial Content", Content_Range=said))
        for name, said in ranges.items()
    ]
    result = import_files(archive, warcs.write(tmp_path / "ranges.warc", made))
    assert arcs(archive, HOST) == {"whole"} and read(archive, HOST, "whole") == BODY
    sent = read_file(archive, HOST, "whole/headers.http")
    assert sent is not None and sent.startswith(b"HTTP/1.1 206 Partial Content\r\n")
    assert meta(archive, HOST, "whole").status == 200
    assert {name: line.status for name, line in log_lines(archive, result.outcome).items()} == {
        url(name): 200 if name == "whole" else 206 for name in ranges
    }
    said = "\n".join(result.remarks)
    assert "(206) are taken" in said and "parts of documents (206) are skipped, 5 times" in said


# -- lengths -----------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50) + struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
ENDED = {
    "page": (BODY + b"\n<!-- made in 3 ms -->\n", "text/html"),
    "png": (PNG, "image/png"),
    "jpg": (b"\xff\xd8\xff\xe0" + bytes(90) + b"\xff\xd9", "image/jpeg"),
    "gif": (b"GIF89a" + bytes(30) + b"\0;", "image/gif"),
    "pdf": (b"%PDF-1.4\n" + bytes(2000) + b"%%EOF\n", "application/pdf"),
    "svg": (b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><g/></svg>\n", "image/svg+xml"),
}


def test_a_body_of_another_length_than_its_head_says(archive: Archive, tmp_path: Path) -> None:
    """A longer one is taken; so is a shorter one that ends as its kind does. Each is said, and none is a loss."""
    made = []
    for name, (body, kind) in ENDED.items():
        for how, length in (("short", len(body) + 100), ("long", len(body) - 9), ("none", 0)):
            made.append(
                warcs.record("response", url(f"{name}-{how}"), warcs.http(body, kind, Content_Length=str(length)))
            )
    made.append(
        warcs.record("response", url("text-long"), warcs.http(b"text of no end", "text/plain", Content_Length="3"))
    )
    result = import_files(archive, warcs.write(tmp_path / "lengths.warc", made))
    assert result.outcome is not None and not result.outcome.warnings
    assert len(arcs(archive, HOST)) == len(made)
    assert read(archive, HOST, "jpg-short") == ENDED["jpg"][0]
    assert any(f"another length than their heads say are taken, {len(made)} times" in line for line in result.remarks)
    assert all("bad-length" in line.notes for line in log_lines(archive, result.outcome).values())


def test_a_part_is_never_archived_as_the_whole(archive: Archive, tmp_path: Path) -> None:
    """Whatever says that it is one: its length, its crawler, the record, its chunks or its packing."""
    cut = gzip.compress(BODY * 9)[:-9]
    made = [
        *(
            warcs.record("response", url(name), warcs.http(body[: len(body) // 2], kind, Content_Length=str(len(body))))
            for name, (body, kind) in ENDED.items()
        ),
        warcs.record("response", url("text"), warcs.http(b"no end", "text/plain", Content_Length="99")),
        warcs.record("response", url("empty"), warcs.http(b"", Content_Length="99")),
        warcs.record("response", url("marked"), warcs.http(BODY), Truncated="time"),
        warcs.record(
            "response", url("gzip"), warcs.http(cut, Content_Encoding="gzip", Content_Length=str(len(cut) + 9))
        ),
        warcs.record("response", url("chunks"), warcs.http(b"5\r\nabcde\r\n9\r\nabc", Transfer_Encoding="chunked")),
        warcs.record("response", url("ok"), warcs.http(BODY)),
        warcs.record("response", url("record"), warcs.http(BODY * 99))[:-300],
    ]
    outcome = import_files(archive, warcs.write(tmp_path / "parts.warc", made)).outcome
    assert outcome is not None and arcs(archive, HOST) == {"ok"}
    log = {each.rpartition("/")[2]: line for each, line in log_lines(archive, outcome).items()}
    assert {name for name, line in log.items() if line.status == -3} == set(ENDED) | {
        "text", "empty", "marked", "gzip", "chunks",
    }  # fmt: skip


def test_an_error_that_was_cut_is_no_loss(archive: Archive, tmp_path: Path) -> None:
    """It would not be archived anyway."""
    made = [
        warcs.record("response", url("a"), warcs.http(BODY)),
        warcs.record("response", url("gone"), warcs.http(b"x", status="404 Not Found"), Truncated="length"),
    ]
    outcome = imported(archive, warcs.write(tmp_path / "x.warc", made))
    assert log_lines(archive, outcome)[url("gone")].status == 404


@given(st.sampled_from(sorted(ENDED)), st.integers(1, 40))
def test_no_beginning_of_a_body_ends_as_its_kind(name: str, less: int) -> None:
    body = BODY if name == "page" else ENDED[name][0].rstrip()
    assert warcfile.ends(body[: warcfile.TAIL], body[-warcfile.TAIL :])
    part = body[:-less]
    assert not warcfile.ends(part[: warcfile.TAIL], part[-warcfile.TAIL :])


PAGE = b'<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><br><title>one</title>'
#: What was sent as Content-Type, the body, and the type that browsers give to it.
TYPES = {
    "page": (b"text/html", PAGE, "text/html"),
    "xhtml": (b"application/xhtml+xml", PAGE, "application/xhtml+xml"),
    "none": (b"", b"<p>x", "text/html"),
    "text": (b"text/plain", b"<html><title>no</title>", "text/plain"),
    "sheet": (b"text/css", b"h1,h2,body{margin:0}\n.a,.b,.c{color:red}\n", "text/css"),
    "script": (b"text/javascript", b"<html>.replace('<!--', '<html>')", "text/javascript"),
    "bytes": (b"application/octet-stream", bytes(range(256)) * 400, "application/octet-stream"),
}


def test_the_archived_head_decides_of_what_type_a_body_is(archive: Archive, tmp_path: Path) -> None:
    made = [
        warcs.record(
            "response",
            url(name),
            b"\r\n".join([b"HTTP/1.1 200 OK", *([b"Content-Type: " + sent] * bool(sent)), b"", body]),
        )
        for name, (sent, body, _) in TYPES.items()
    ]
    imported(archive, warcs.write(tmp_path / "types.warc", made))
    for name, (_, _, mime_type) in TYPES.items():
        assert meta(archive, HOST, name).mime_type == mime_type, name
    assert (meta(archive, HOST, "page").title, meta(archive, HOST, "text").title) == ("one", "")


#: Content-Encoding → a body that was stored without it.
STORED = {
    "br": "<p>Grüße".encode("latin-1"),
    "gzip": "<p>Grüße".encode("latin-1"),
    "deflate": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "zstd": b"<p>plain",
}


def test_bodies_that_were_stored_without_what_their_heads_name(archive: Archive, tmp_path: Path) -> None:
    made = [
        warcs.record("response", url(coding), warcs.http(body, Content_Encoding=coding))
        for coding, body in STORED.items()
    ]
    outcome = imported(archive, warcs.write(tmp_path / "stored.warc", made))
    lines = log_lines(archive, outcome)
    for coding, body in STORED.items():
        assert read(archive, HOST, coding) == body
        assert f"not-coded:{coding}" in lines[url(coding)].notes


def test_zstd_is_decoded(archive: Archive, tmp_path: Path) -> None:
    made = [warcs.record("response", url("z"), warcs.http(zstandard.compress(BODY), Content_Encoding="zstd"))]
    imported(archive, warcs.write(tmp_path / "zstd.warc", made))
    assert read(archive, HOST, "z") == BODY
