"""`import` of ARC files: of both versions, as their writers differed, whole and damaged."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from tests.support import foreignfiles, warcs
from tests.support.crawls import arcs, log_lines, meta, read, read_file
from tests.support.foreignfiles import arc_description, arc_record, write_arc
from tests.support.imports import command, import_files, imported
from tests.support.properties import examples
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive
from webarcfs.warc.foreign_files import records_of, stream_of

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
#: ARC files that others wrote; pywb comes with them.
SAMPLES = ROOT / ".venv-pywb" / "sample_archive" / "warcs"


def url(path: str) -> str:
    return f"http://{HOST}/{path}"


def split(data: bytes) -> tuple[list[tuple[str, bytes]], list[str]]:
    """URL and block of each whole record, and the complaints."""
    complaints: list[str] = []
    found = []
    for record in records_of(stream_of(BytesIO(data)), lambda what, _: complaints.append(what)):
        block = b""
        while part := record.read(11):
            block += part
        if record.whole():
            found.append((record.fields["warc-target-uri"], block))
    return found, complaints


@pytest.mark.parametrize(("how", "version"), [("plain", 1), ("gzip", 2), ("gzip-whole", 1)])
def test_pages_errors_and_redirects_are_those_of_a_warc(
    archive: Archive, tmp_path: Path, how: str, version: int
) -> None:
    file = write_arc(
        tmp_path / "a.arc",
        [
            arc_record("dns:www.example.org", b"20250601120000\nwww.example.org. 60 IN A 192.0.2.7\n", kind="text/dns"),
            arc_record(url("robots.txt"), warcs.http(b"User-agent: *", "text/plain"), version=version),
            arc_record(url("a"), warcs.http(b"<title>a</title>"), version=version),
            arc_record(url("gone"), warcs.http(b"", status="404 Not Found"), version=version),
            arc_record(url("moved"), warcs.http(b"", status="301 Moved", Location="/a"), version=version),
        ],
        how,
        version,
    )
    outcome = imported(archive, file)
    assert arcs(archive, HOST) == {"a", "robots.txt"}
    assert read(archive, HOST, "a") == b"<title>a</title>"
    assert (meta(archive, HOST, "a").title, outcome.tags) == ("a", (f"2025-06-01T13:00:00@{HOST}",))
    assert {each.rpartition("/")[2]: line.status for each, line in log_lines(archive, outcome).items()} == {
        "robots.txt": 200, "a": 200, "gone": 404, "moved": 301,
    }  # fmt: skip
    assert import_files(archive, file).outcome is None, "it was imported already"


@pytest.mark.parametrize("how", ["plain", "gzip"])
def test_a_part_without_the_description_of_its_file(archive: Archive, tmp_path: Path, how: str) -> None:
    """As files that were cut into parts, or put together of chosen records, have none."""
    pages = [arc_record(url(name), warcs.http(name.encode())) for name in ("a", "b")]
    imported(archive, warcs.write(tmp_path / "part.arc", pages, how))
    assert {name: read(archive, HOST, name) for name in arcs(archive, HOST)} == {"a": b"a", "b": b"b"}


@pytest.mark.parametrize("name", ["example.arc", "example.arc.gz"])
def test_files_of_another_writer(archive: Archive, name: str) -> None:
    """Of the Wayback Machine's live web; the first record's length is one less than most have it."""
    imported(archive, SAMPLES / name)
    (path,) = arcs(archive, "example.com")
    assert meta(archive, "example.com", path).title == "Example Domain"
    assert b"HTTP/1.1 200 OK\r\n" in (
        read_file(archive, "example.com", f"{path}/headers.http" if path else "headers.http") or b""
    )


def test_a_file_of_nothing_but_faults(archive: Archive) -> None:
    done = command("import", "--archive", archive.root, SAMPLES / "bad.arc")
    assert done.code in (2, 3) and "bad.arc" in done.err and "Traceback" not in done.err
    assert not list(archive.domains())


@pytest.mark.parametrize("counted", [-2, -1, 0, 1])
@pytest.mark.parametrize("more", [b"", b"<?xml version='1.0'?>\n<arcmetadata>\n<a/>\n\n</arcmetadata>\n"])
def test_the_description_of_the_file_is_counted_as_its_writer_likes(counted: int, more: bytes) -> None:
    body = arc_record(url("a"), b"HTTP/1.0 200 OK\n\nx")
    assert split(arc_description(1, more, counted) + body) == ([(url("a"), b"HTTP/1.0 200 OK\n\nx")], [])


def test_lines_as_they_were_written() -> None:
    """Blanks in URLs and types, bytes that are no UTF-8, no address, longer and shorter dates."""
    data = arc_description()
    block = b"HTTP/1.0 200 OK\n\nx"
    for line in (
        b"http://e.example/a b c?d= e 65.36.164.67 20040925001013 text/html",
        b"http://e.example/t 65.36.164.67 20120516020333 text/html, application/x-javascript",
        b"http://e.example/\xfc 65.36.164.67 20120516020333 text/html",
        "http://e.example/ü ::1 201205160203 no-type".encode(),
        b"http://e.example/n - 20120516020333123 -",
        b"https://e.example/n2 - 20120516020333 ",
    ):
        data += line + b" %d\n" % len(block) + block + b"\n"
    found, complaints = split(data)
    assert ([uri for uri, _ in found], complaints) == (
        [
            "http://e.example/a%20b%20c?d=%20e", "http://e.example/t", "http://e.example/%FC", "http://e.example/ü",
            "http://e.example/n", "https://e.example/n2",
        ],
        [],
    )  # fmt: skip
    assert {each for _, each in found} == {block}


def test_an_answer_without_a_head_is_taken_as_a_body(archive: Archive, tmp_path: Path) -> None:
    """HTTP/0.9, as early crawls have it: the line has the type, and crawl.log says so."""
    file = write_arc(tmp_path / "old.arc", [arc_record(url("old"), b"<title>old</title>", "19970301000000")])
    outcome = imported(archive, file)
    assert read(archive, HOST, "old") == b"<title>old</title>"
    assert "resource" in log_lines(archive, outcome)[url("old")].notes
    assert outcome.tags == (f"1997-03-01T01:00:00@{HOST}",)


@pytest.mark.parametrize("how", ["plain", "gzip"])
def test_a_file_cut_at_every_byte(tmp_path: Path, how: str) -> None:
    """A record is whole or it is not there; of a cut one something is said."""
    blocks = [b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 20, b"HTTP/1.1 200 OK\r\n\r\n" + b"b" * 90, b"HTTP/1.1 204 x\r\n\r\n"]
    whole = [(url(f"{number}"), block) for number, block in enumerate(blocks)]
    data = write_arc(tmp_path / "file", [arc_record(*each) for each in whole], how).read_bytes()
    made = [arc_description(), *(arc_record(*each) for each in whole)]
    ends = [len(warcs.write(tmp_path / "part", made[:number], how).read_bytes()) for number in range(1, 4)]
    for end in range(len(data)):
        found, complaints = split(data[:end])
        assert found == whole[: len(found)], end
        assert complaints or len(found) == 3 or any(abs(end - each) <= 1 for each in ends) or end < ends[0], end
    assert split(data) == (whole, [])


@pytest.mark.parametrize("how", ["plain", "gzip"])
@pytest.mark.parametrize("wrong", [-7, -1, 9, 999_999])
def test_a_wrong_length_costs_its_record_alone(how: str, wrong: int) -> None:
    good = [arc_record(url(name), b"HTTP/1.0 200 OK\n\n" + name.encode()) for name in ("one", "two", "three", "four")]
    block = b"HTTP/1.0 200 OK\n\nsome <b>text</b>\nand more"
    bad = arc_record(url("bad"), block).replace(b" %d\n" % len(block), b" %d\n" % (len(block) + wrong), 1)
    members = [arc_description(), good[0], bad, *good[1:]]
    found, complaints = split(b"".join(map(gzip.compress, members) if how == "gzip" else members))
    assert complaints
    names = [uri.rpartition("/")[2] for uri, _ in found]
    assert [name for name in names if name != "bad"] == ["one", "two", "three", "four"]
    assert "bad" not in names


def test_warcio_reads_the_same(tmp_path: Path) -> None:
    made = [arc_record(url(f"{number}"), warcs.http(b"x" * number * 100)) for number in range(20)]
    file = write_arc(tmp_path / "a.arc.gz", made, "gzip")
    with file.open("rb") as stream:
        theirs = [
            (
                record.rec_headers.get_header("WARC-Target-URI"),
                record.http_headers.to_bytes() + record.raw_stream.read(),
            )
            for record in ArchiveIterator(stream, arc2warc=True)
            if record.rec_type == "response"
        ]
    assert split(file.read_bytes()) == (theirs, [])


LINES = st.one_of(
    st.binary(max_size=40),
    st.builds(
        arc_record,
        st.sampled_from(["http://e.example/", "dns:x", "filedesc://x", "http://e.example/ 1.2.3.4 20010101000000 x"]),
        st.binary(max_size=60),
        st.sampled_from(["20010101000000", "2001", "99999999999999", "x"]),
    ),
    st.just(foreignfiles.arc_description(2)),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(LINES, max_size=6), st.booleans(), st.data())
def test_any_arc_file_can_be_split(made: list[bytes], packed: bool, data: st.DataObject) -> None:
    """Records come or complaints; it always ends, and what is whole is in the file as it is."""
    made = [arc_description(), *made]
    raw = bytearray(b"".join(map(gzip.compress, made) if packed else made))
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=4)):
        raw[place] = data.draw(st.integers(0, 255))
    found, _ = split(bytes(raw))
    if not packed:
        assert all(block in bytes(raw) for _, block in found)
