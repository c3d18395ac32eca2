"""`import` of files as nobody should write them: what is whole is imported, the rest is said, nothing surprises."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import lzma
import tarfile
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import brotli
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.crawl import crawl_log, scope
from agent.maintenance.verification import verify
from tests.support import warcs
from tests.support.crawls import arcs, log_lines, read, read_file
from tests.support.imports import command, import_files, imported
from tests.support.properties import examples
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.config.settings import Profile
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import format_time
from webarcfs.warc import bytestream
from webarcfs.warc.foreign_files import records_of, stream_of
from webarcfs.warc.http_response import digest_key, parse_date

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
HOW = ("plain", "gzip", "gzip-whole")


def url(path: str) -> str:
    return f"http://{HOST}/{path}"


def pages(*names: str) -> list[bytes]:
    return [warcs.response(url(name), f"<title>{name}</title>".encode()) for name in names]


def split(data: bytes) -> tuple[list[bytes], list[str]]:
    """The blocks of the whole records of a file, and the complaints."""
    complaints: list[str] = []
    found = []
    for record in records_of(stream_of(BytesIO(data)), lambda what, _: complaints.append(what)):
        block = b""
        while data := record.read(7):
            block += data
        if record.whole():
            found.append(block)
    return found, complaints


# -- files that are cut off or damaged ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW)
def test_a_file_that_is_cut_off(archive: Archive, tmp_path: Path, how: str) -> None:
    """What is whole is imported, and the cut is said: exit 3."""
    file = warcs.write(tmp_path / "cut.warc", pages(*(f"{number:03}" for number in range(100))), how)
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    done = command("import", "--archive", archive.root, file)
    assert done.code == 3
    assert "cut" in done.err
    found = sorted(arcs(archive, HOST))
    assert 50 < len(found) < 80
    assert found == [f"{number:03}" for number in range(len(found))]


@pytest.mark.parametrize("how", HOW)
def test_a_file_cut_at_every_byte(how: str, tmp_path: Path) -> None:
    """A record is whole or it is not there."""
    whole = [b"a" * 20, b"b" * 300, b""]
    blocks = [warcs.record("resource", url("x"), block) for block in whole]
    data = warcs.write(tmp_path / "file", blocks, how).read_bytes()
    for end in range(len(data)):
        found, _ = split(data[:end])
        assert found == whole[: len(found)], end
    assert split(data) == (whole, [])


def test_lengths_that_are_wrong() -> None:
    """Too short or too long: the record goes, its neighbours stay."""
    for length in ("3", "9999999", "60", "-5", "1e3", "", "9" * 5000):
        head = {"WARC-Type": "resource", "WARC-Target-URI": url("bad"), "Content-Length": length}
        bad = warcs.raw_record(head, b"bad" * 5)
        good = [warcs.record("resource", url(name), name.encode()) for name in ("one", "two", "three")]
        for data in (b"".join([good[0], bad, *good[1:]]), b"".join(map(gzip.compress, [good[0], bad, *good[1:]]))):
            found, complaints = split(data)
            assert found == [b"one", b"two", b"three"], length
            assert complaints, length


def test_a_damaged_member_costs_its_record() -> None:
    """Of a file with a gzip member for each record, the others are read."""
    members = [
        gzip.compress(warcs.record("resource", url("x"), bytes(range(256)) * 9 + name)) for name in (b"1", b"2", b"3")
    ]
    for place in range(10, len(members[1]) - 8, 5):
        broken = bytearray(members[1])
        broken[place] ^= 0xFF
        found, complaints = split(members[0] + bytes(broken) + members[2])
        assert [block[-1:] for block in found] in ([b"1", b"3"], [b"1", b"2", b"3"])
        assert complaints or len(found) == 3
    found, complaints = split(members[0] + b"rubbish" * 20 + members[2] + b"rubbish")
    assert ([block[-1:] for block in found], len(complaints)) == ([b"1", b"3"], 2)


def test_a_member_that_grows_beyond_measure_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is damage: its neighbours are read, and of it no more than the bound."""
    monkeypatch.setattr(bytestream, "BOMB_SIZE", 1 << 22)
    good = [gzip.compress(warcs.record("resource", url(name), name.encode())) for name in ("one", "two", "three")]
    bomb = gzip.compress(warcs.record("resource", url("bomb"), bytes(40 << 20)))
    stream = stream_of(BytesIO(good[0] + bomb + b"".join(good[1:])))
    sizes, complaints = [], list[str]()
    for record in records_of(stream, lambda what, _: complaints.append(what)):
        size = 0
        while data := record.read(1 << 16):
            size += len(data)
        sizes.append((size, record.whole()))
    assert [size for size, whole in sizes if whole] == [3, 3, 5]
    assert complaints and max(sizes)[0] < 6 << 20


def test_what_is_no_warc(archive: Archive, tmp_path: Path) -> None:
    """Text, nothing, a folder, a file that is not there: one line, and nothing is left behind."""
    for name, body in {"text": b"not a WARC\n" * 99, "empty": b"", "gz": gzip.compress(b"neither")}.items():
        (tmp_path / name).write_bytes(body)
        with pytest.raises(Damaged, match="no record of a crawl"):
            import_files(archive, tmp_path / name)
    done = command("import", "--archive", archive.root, tmp_path / "missing")
    assert (done.code, done.err) == (1, f"webarc-agent: {tmp_path / 'missing'} is no file and no folder\n")
    assert not [*archive.jobs.iterdir(), *archive.domains()]


def tarred() -> bytes:
    held = BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("a.warc"))
    return held.getvalue()


def zipped() -> bytes:
    held = BytesIO()
    with zipfile.ZipFile(held, "w") as zip_:
        zip_.writestr("holiday.jpg", b"a picture")
    return held.getvalue()


OTHERS = {
    "a.warc.bz2": (bz2.compress(b"WARC/1.0\r\n"), "bzip2"),
    "a.warc.xz": (lzma.compress(b"WARC/1.0\r\n"), "xz"),
    "a.tar.gz": (tarred(), "tar"),
    "a.warc.gz": (zipped(), "no WACZ"),
    "cut.wacz": (zipped()[:-1], "cannot be read"),
    "page.har.gz": (gzip.compress(b'{ "log": {"version": "1.2", "entries": []}}'), "gzip -d"),
    "index.cdx": (b" CDX N b a m s k r M S V g\ncom,example)/ 2010", "index"),
    "index.cdxj": (b'com,example)/ 20100101000000 {"url": "http://example.com/"}\n', "index"),
    "files.7z": (b"7z\xbc\xaf\x27\x1c\0\4", "7z x"),
    "list.json": (b'{"resources": [{"path": "\\ud800\\n.wacz"}, {"name": "one.wacz"}]}', "one.wacz"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_named(archive: Archive, tmp_path: Path, name: str) -> None:
    """By what is in them; of others beside it they cost nothing, and the exit code says that something is missing."""
    body, word = OTHERS[name]
    (tmp_path / name).write_bytes(body)
    done = command("import", "--archive", archive.root, tmp_path / name)
    assert done.code == 2 and done.err.startswith(f"webarc-agent: {tmp_path / name}") and word in done.err
    assert done.err.count("\n") == 1
    assert not [*archive.jobs.iterdir(), *archive.domains()]
    good = tmp_path / "good.warc"
    good.write_bytes(b"".join(pages("a")))
    done = command("import", "--archive", archive.root, tmp_path / name, good)
    assert (done.code, arcs(archive, HOST)) == (3, {"a"})
    assert f"{tmp_path / name}" in done.err and word in done.err


def test_what_cannot_be_read_costs_itself_only(archive: Archive, tmp_path: Path) -> None:
    """As on a disk that fails, or without the permission: the kernel has a file that nobody can read."""
    bad = tmp_path / "bad.warc"
    bad.symlink_to("/proc/self/mem")
    good = warcs.write(tmp_path / "good.warc", pages("a"))
    assert command("import", "--archive", archive.root, bad).code == 1
    for option in ("--complete", "--as-exported"):
        assert command("import", "--archive", archive.root, option, good, bad).code == 2
    assert not [*archive.jobs.iterdir(), *archive.domains()]
    done = command("import", "--archive", archive.root, good, bad)
    assert (done.code, arcs(archive, HOST)) == (3, {"a"})
    assert done.err.count("Input/output error; it is left out") == 1


def test_what_is_whole_and_not_taken_costs_the_exit_code(archive: Archive, tmp_path: Path) -> None:
    """A record of a web server, each with a line in crawl.log; what a setting leaves out does not."""
    whole = [
        warcs.record("response", url("headless"), b"<p>no head at all"),
        warcs.record("response", "http://-a b-/x", warcs.http(b"x")),
        warcs.response(url("later"), b"x", "2025-02-31T12:00:00Z"),
    ]
    for number, record in enumerate(whole):
        done = command(
            "import", "--archive", archive.root, warcs.write(tmp_path / f"{number}.warc", [record, *pages(f"{number}")])
        )
        assert done.code == 3, (number, done.err)
    parts = [
        warcs.record(
            "response", url("part"), warcs.http(b"x", status="206 Partial Content", Content_Range="bytes 5-5/9")
        ),
        warcs.record("response", "dns:www.example.org", b"1.2.3.4"),
    ]
    done = command("import", "--archive", archive.root, warcs.write(tmp_path / "parts.warc", [*parts, *pages("p")]))
    assert done.code == 0, done.err
    notes = [line.notes for folder in archive.reports.iterdir() for line in log_lines(archive, folder.name).values()]
    for word in ("no-head", "bad-url", "bad-date", "partial"):
        assert sum(word in each for each in notes) == 1, word


def test_a_file_of_a_folder_that_cannot_be_read_costs_itself_only(archive: Archive, tmp_path: Path) -> None:
    """It is named, and the exit code says that something is missing; what is complete must not miss a thing."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.warc.gz").write_bytes(bz2.compress(b"".join(pages("bz")))[:-9])
    (folder / "b.wacz").write_bytes(zipped()[:-1])
    nothing = command("import", "--archive", archive.root, folder)
    assert nothing.code == 2 and "a.warc.gz" in nothing.err and "b.wacz" in nothing.err
    warcs.write(folder / "good.warc", pages("a"))
    whole = command("import", "--archive", archive.root, "--complete", folder)
    assert whole.code == 2 and not [*archive.jobs.iterdir(), *archive.domains()]
    done = command("import", "--archive", archive.root, folder)
    assert done.code == 3 and arcs(archive, HOST) == {"a"}
    assert all(f"{folder / name}" in done.err for name in ("a.warc.gz", "b.wacz"))


def test_spellings_that_other_tools_use() -> None:
    """Line ends without a carriage return, folded fields, fields twice, odd case, padding: all are read."""
    block = b"body"
    odd = (
        b"WARC/0.18\nwarc-TYPE: Resource\nWARC-Target-URI:\n  http://x/\ncontent-length: 4\nContent-Length: 9\n\n"
        + block
    )
    assert split(odd + b"\n\n" + odd + b"\0\0\0") == ([block, block], [])
    assert split(b"\r\n\r\n" + odd + b"\r\n" + odd) == ([block, block], [])


# -- records -----------------------------------------------------------------------------------------------------------


def test_kinds_of_records(archive: Archive, tmp_path: Path) -> None:
    """Resources are archived; requests, metadata and warcinfo are read past; what is not taken is said."""
    file = warcs.write(
        tmp_path / "kinds.warc",
        [
            warcs.raw_record({"WARC-Type": "warcinfo", "Content-Length": "0"}, b""),
            warcs.record("request", url("a"), b"GET /a HTTP/1.1\r\n\r\n"),
            *pages("a"),
            warcs.record("metadata", url("a"), b"via: x"),
            warcs.record("resource", url("style.css"), b"p {}", Type="resource", version="1.1"),
            warcs.record("resource", "dns:www.example.org", b"1.2.3.4"),
            warcs.record("resource", "file:///etc/passwd", b"root"),
            warcs.record("conversion", url("c"), b"converted"),
            warcs.record("continuation", url("d"), b"more"),
            warcs.record("response", "<http://www.example.org/brackets>", warcs.http(b"x")),
            warcs.record("response", url("robots.txt"), warcs.http(b"User-agent: *")),
        ],
    )
    result = import_files(archive, file)
    assert result.outcome is not None
    assert (result.outcome.interrupted, result.outcome.warnings) == (False, ())
    assert arcs(archive, HOST) == {"a", "style.css", "brackets", "robots.txt"}
    assert read(archive, HOST, "style.css") == b"p {}"
    told = "\n".join(result.remarks)
    for word in ("'conversion'", "'continuation'", "dns:www.example.org", "2 times"):
        assert word in told


def digest_of(data: bytes, how: str = "sha1") -> str:
    return f"{how}:{base64.b32encode(hashlib.new(how, data).digest()).decode()}"


@pytest.mark.parametrize("declared", ["block", "payload", "both", "sha256"])
def test_a_body_that_is_not_what_its_digest_says(archive: Archive, tmp_path: Path, declared: str) -> None:
    """It is no page, a revisit of the true body does not get the false one, and the exit code says so."""
    true, false = b"<title>true</title>", b"<title>fals</title>"
    how = "sha256" if declared == "sha256" else "sha1"
    fields = {}
    if declared in ("block", "both"):
        fields["Block_Digest"] = digest_of(warcs.http(true))
    if declared != "block":
        fields["Payload_Digest"] = digest_of(true, how)
    revisit = warcs.record(
        "revisit", url("again"), warcs.http(b""), Payload_Digest=digest_of(true, how), date="2025-06-02T12:00:00Z"
    )
    file = warcs.write(
        tmp_path / "false.warc",
        [
            *pages("ok"),
            warcs.record("response", url("false"), warcs.http(false), **fields),
            warcs.record("response", url("fine"), warcs.http(b"fine"), Block_Digest=digest_of(warcs.http(b"fine"))),
            revisit,
        ],
    )
    result = import_files(archive, file)
    assert result.outcome is not None
    assert any("digest" in line for line in result.outcome.warnings)
    assert arcs(archive, HOST) == {"ok", "fine"}


def test_digests_as_writers_have_them(archive: Archive, tmp_path: Path) -> None:
    """In hex or base32, of the body with its codings or without: none of these is damage."""
    body = gzip.compress(TEXT)
    head = {"Content_Encoding": "gzip"}
    hexed = f"sha1:{hashlib.sha1(TEXT).hexdigest()}"
    file = warcs.write(
        tmp_path / "digests.warc",
        [
            warcs.record("response", url("sent"), warcs.http(body, **head), Payload_Digest=digest_of(body)),
            warcs.record("response", url("decoded"), warcs.http(body, **head), Payload_Digest=hexed),
            warcs.record("response", url("odd"), warcs.http(TEXT), Payload_Digest="crc32:12345678"),
            warcs.record("response", url("md5"), warcs.http(TEXT), Payload_Digest=digest_of(TEXT, "md5")),
        ],
    )
    result = import_files(archive, file)
    assert result.outcome is not None
    assert result.outcome.warnings == ()
    assert arcs(archive, HOST) == {"sent", "decoded", "odd", "md5"}


@pytest.mark.parametrize("order", ["request first", "answer first", "without identifiers"])
def test_the_answer_to_head_is_no_page(archive: Archive, tmp_path: Path, order: str) -> None:
    """A browser's recording has the answers to both; the page is the one to GET, and the other one is told."""

    def exchange(method: str, body: bytes, second: int) -> list[bytes]:
        date, number = f"2025-06-01T12:00:0{second}Z", f"<urn:uuid:00000000-0000-4000-8000-00000000000{second}>"
        asked = f"{method} /search HTTP/1.1\r\n\r\n".encode()
        named = {} if order == "without identifiers" else {"Concurrent_To": number}
        request = warcs.record("request", url("search"), asked, date, **named)
        answer = warcs.record("response", url("search"), warcs.http(body), date)
        if named:
            answer = answer.replace(b"<urn:uuid:00000000-0000-4000-8000-000000000000>", number.encode(), 1)
        return [answer, request] if order == "answer first" else [request, answer]

    file = warcs.write(tmp_path / "head.warc", [*exchange("GET", b"the page", 5), *exchange("OPTIONS", b"found", 9)])
    result = import_files(archive, file)
    assert read(archive, HOST, "search") == b"the page"
    assert result.outcome is not None
    assert ["other methods than GET" in line for line in result.outcome.warnings] == [True]
    with crawl_log.reading(archive.reports / result.outcome.job) as lines:
        words = [line.split() for line in lines]
    assert sorted((columns[3], "method" in columns[11]) for columns in words) == [
        (url("search"), False),
        (url("search"), True),
    ]


def test_a_path_of_very_many_segments_costs_its_record_alone(archive: Archive, tmp_path: Path) -> None:
    """Each segment is a folder in another: what is deeper than can be walked is named, and the rest comes in."""
    deepest, too_deep = "a/" * (scope.MOST_SEGMENTS - 1) + "b", "a/" * 1500 + "b"
    result = import_files(archive, warcs.write(tmp_path / "deep.warc", pages("ok", deepest, too_deep)))
    assert result.outcome is not None
    assert [f"more than {scope.MOST_SEGMENTS} segments" in line for line in result.outcome.warnings] == [True]
    assert arcs(archive, HOST) == {"ok", deepest}
    assert not list(verify(archive))


def test_answers_that_are_not_archived(archive: Archive, tmp_path: Path) -> None:
    """Errors, redirects, heads that are none, cut bodies: crawl.log has a line for each, with the reason."""
    file = warcs.write(
        tmp_path / "answers.warc",
        [
            *pages("ok"),
            warcs.record("response", url("404"), warcs.http(b"", status="404 Not Found")),
            warcs.record("response", url("moved"), warcs.http(b"", status="301 Moved", Location="/ok")),
            warcs.record("response", url("http09"), b"<html>no head</html>"),
            warcs.record("response", url("long-status"), b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n"),
            warcs.record("response", url("short"), warcs.http(b"12345", Content_Length="50")),
            warcs.record("response", url("limited"), warcs.http(b"12345"), Truncated="length"),
            warcs.record("response", url("bad-gzip"), warcs.http(b"\x1f\x8b\x08rubbish", Content_Encoding="gzip")),
            warcs.record("response", url("old"), warcs.http(b"x"), date="0001-01-01T00:00:00Z"),
            warcs.record("response", url("future"), warcs.http(b"x"), date="9999-12-31T23:59:59Z"),
            warcs.record("response", url("part"), warcs.http(b"x"), Segment_Number="1"),
        ],
    )
    outcome = import_files(archive, file).outcome
    assert outcome is not None
    assert len(outcome.warnings) == 4
    assert arcs(archive, HOST) == {"ok"}
    lines = log_lines(archive, outcome)
    assert {each.rpartition("/")[2]: line.status for each, line in lines.items()} == {
        "ok": 200, "404": 404, "moved": 301, "http09": -404, "long-status": -404, "short": -3, "limited": -3,
        "bad-gzip": -3, "old": -404, "future": -404, "part": -404,
    }  # fmt: skip
    words = {each.rpartition("/")[2]: line.notes for each, line in lines.items()}
    assert ("bad-date" in words["old"], "bad-date" in words["future"], "segment" in words["part"]) == (True, True, True)


def test_an_address_that_cannot_be_archived_is_told_each_time(archive: Archive, tmp_path: Path) -> None:
    """A line each in crawl.log, and exit code 3; what is of no web server is counted alone."""
    bad = ["http://-a-..example/x", "http://a b.example/", "HTTPS://[1::/y"]
    made = [warcs.response(each, b"x") for each in (*bad, "dns:www.example.org", "urn:x:y", url("ok"))]
    outcome = import_files(archive, warcs.write(tmp_path / "bad.warc", made)).outcome
    assert outcome is not None and ["3 times" in line for line in outcome.warnings] == [True]
    with crawl_log.reading(archive.reports / outcome.job) as lines:
        told = [line.split()[3] for line in lines if "bad-url" in line]
    assert told == [each.replace(" ", "%20") for each in bad]


def chunked(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:])) + b"0\r\n\r\n"


TEXT = "<html><title>Grüße</title>".encode() + b"text " * 40
BODIES = {
    "chunked": (chunked(TEXT), {"Transfer_Encoding": "chunked"}),
    "dechunked": (TEXT, {"Transfer_Encoding": "chunked"}),
    "gzip": (gzip.compress(TEXT), {"Content_Encoding": "gzip", "Content_Length": str(len(gzip.compress(TEXT)))}),
    "chunked-gzip": (chunked(gzip.compress(TEXT)), {"Transfer_Encoding": "chunked", "Content_Encoding": "gzip"}),
    "dechunked-gzip": (gzip.compress(TEXT), {"Transfer_Encoding": "chunked", "Content_Encoding": "gzip"}),
    "gunzipped": (TEXT, {"Content_Encoding": "gzip", "Content_Length": "9999"}),
    "deflate": (zlib.compress(TEXT), {"Content_Encoding": "deflate"}),
    "inflated": (TEXT, {"Content_Encoding": "deflate"}),
    "brotli": (brotli.compress(TEXT), {"Content_Encoding": "br"}),
    "unbrotlied": (TEXT, {"Content_Encoding": "br", "Transfer_Encoding": "chunked"}),
}


@pytest.mark.parametrize("said", ["abc", "5abc", "", "-5", "1.5e3", "5, 6"])
def test_a_length_that_is_none(archive: Archive, tmp_path: Path, said: str) -> None:
    """What the record holds counts, and crawl.log tells; where it holds nothing, its crawler believed the head."""
    responses = [
        warcs.record("response", url(name), warcs.http(body, Content_Length=said))
        for name, body in (("whole", TEXT), ("empty", b""))
    ]
    outcome = import_files(archive, warcs.write(tmp_path / "lengths.warc", responses)).outcome
    assert outcome is not None
    assert arcs(archive, HOST) == {"whole"} and read(archive, HOST, "whole") == TEXT
    log = log_lines(archive, outcome)
    assert "bad-length" in log[url("whole")].notes and log[url("whole")].status == 200
    assert "bad-length" in log[url("empty")].notes and log[url("empty")].status < 0


def test_bodies_in_their_codings_and_without(archive: Archive, tmp_path: Path) -> None:
    """Some tools store bodies decoded and leave the head as it was: the body is the same either way."""
    made = [warcs.record("response", url(name), warcs.http(body, **how)) for name, (body, how) in BODIES.items()]
    imported(archive, warcs.write(tmp_path / "bodies.warc.gz", made, "gzip"))
    assert {name: read(archive, HOST, name) for name in sorted(BODIES)} == dict.fromkeys(sorted(BODIES), TEXT)
    head = read_file(archive, HOST, "dechunked/headers.http")
    assert head is not None and b"Transfer-Encoding: chunked" in head  # as received


def test_profiles_and_filters_hold(archive: Archive, tmp_path: Path) -> None:
    """/Cr-9/, as in a crawl."""
    records = [*pages("a.html"), warcs.record("response", url("b.png"), warcs.http(b"\x89PNG\r\n\x1a\n", "image/png"))]
    imported(archive, warcs.write(tmp_path / "x.warc", records), profile=Profile(include=("image/*",)))
    assert arcs(archive, HOST) == {"b.png"}


def test_dates_and_digests() -> None:
    for text, expected in {
        "2021-06-01T12:00:00Z": "2021-06-01T13:00:00",
        "2021-06-01T12:00:00.123456789Z": "2021-06-01T13:00:00",
        "2021": "2021-01-01T01:00:00",
        "2021-06": "2021-06-01T01:00:00",
        "20210601120000": "2021-06-01T13:00:00",
        "2021-06-01t12:00:00z": "2021-06-01T13:00:00",
        "2021-06-01T12:00:00+00:00": "2021-06-01T13:00:00",
        "2021-06-01T12:00:00.5-0700": "2021-06-01T20:00:00",
        "2016-12-31T23:59:60Z": "2017-01-01T01:00:00",
        # as ClueWeb09 has them, with days of the year
        "2009-03-84T12:35:08-0700": "2009-03-25T20:35:08",
        "2008-10-294T05:21:46-0700": "2008-10-20T13:21:46",
    }.items():
        found = parse_date(text)
        assert found is not None and format_time(found) == expected
    assert [parse_date(text) for text in ("", "now", "2021-02-30", "1970-01-01T00:00:00Z", "9999")] == [None] * 5
    wrong = ("2009-03-95T12:35:08-0700", "2009-12-999T00:00:00Z", "0000-01-99T00:00:00Z", "2021-06-01T12:00:61Z")
    assert [parse_date(text) for text in wrong] == [None] * 4
    key = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    assert digest_key("SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj") == key
    assert digest_key("sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709") == key
    assert (digest_key(""), digest_key("sha256:Ab")) == ("", "sha256:Ab")


# -- anything ----------------------------------------------------------------------------------------------------------

FIELDS = st.sampled_from(
    ["WARC-Type", "WARC-Target-URI", "WARC-Date", "Content-Length", "WARC-Payload-Digest", "WARC-Refers-To-Date",
     "WARC-Refers-To-Target-URI", "WARC-Truncated", "Content-Type", "X"]
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(
        ["response", "resource", "revisit", "http://h.example/", "https://h.example/a?b", "<http://h.example/c>",
         "http://[::1]/", "http://h.example:99999/", "http://\u0130/", "2021-01-01T00:00:00Z", "2021-99-99", "0", "5",
         "40", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"]
    ),
    st.text(max_size=30),
)  # fmt: skip
BLOCKS = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda status, head, body: b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\n\r\n" + body,
        st.sampled_from([b"200 OK", b"200", b"404 x", b"304 x", b"\xb2\xb2\xb2", b""]),
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [b"Transfer-Encoding: chunked", b"Content-Encoding: gzip", b"Content-Encoding: br, gzip, x",
                 b"Content-Length: 3", b"Content-Length: " + b"9" * 5000, b"Content-Type: text/html; charset=\xff",
                 b"Last-Modified: Mon, 99 Foo 99999 99:99:99 +9999"]
            ),
        ),
        st.binary(max_size=60),
    ),
)  # fmt: skip
GOOD = st.sampled_from(["response", "resource", "revisit"])
RECORDS = st.one_of(
    st.builds(warcs.raw_record, st.dictionaries(FIELDS, VALUES), BLOCKS),
    st.builds(lambda kind, block, uri: warcs.record(kind, uri, block), GOOD, BLOCKS, VALUES),
    st.builds(lambda kind, block: warcs.record(kind, "http://h.example/x", block), GOOD, BLOCKS),
    st.binary(max_size=60),
)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(RECORDS, max_size=5), st.sampled_from(HOW), st.integers(0, 400))
def test_anything_is_imported_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, made: list[bytes], how: str, cut: int
) -> None:
    """Malformed records, heads and bodies: never an unexpected exception, and nothing stays behind."""
    folder = tmp_path_factory.mktemp("any")
    archive = create(folder / "archive")
    file = warcs.write(folder / "any.warc", made, how)
    if cut < 100:
        file.write_bytes(file.read_bytes()[:-cut])
    try:
        import_files(archive, file)
    except WebarcError as error:
        assert "no record of a crawl" in str(error)
    assert list(archive.jobs.iterdir()) == []


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(RECORDS, max_size=5), st.sampled_from(HOW), st.data())
def test_any_file_can_be_split(made: list[bytes], how: str, data: st.DataObject) -> None:
    """Records come or complaints; it always ends."""
    raw = b"".join(gzip.compress(each) if how == "gzip" else each for each in made)
    raw = bytearray(gzip.compress(raw) if how == "gzip-whole" else raw)
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=4)) if raw else []:
        raw[place] = data.draw(st.integers(0, 255))
    split(bytes(raw))
