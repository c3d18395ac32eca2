"""`import` of what other tools wrote gives the same data files and titles as crawling the same site (#4)."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.support import nasty, warcs
from tests.support.crawls import arcs, crawl, files, meta, read, read_file
from tests.support.imports import command, import_files, imported
from tests.support.recorder import warcprox
from tests.support.site import Site, redirect
from webarcfs.archive.config.directory import Archive, create

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
PATHS = ("b.html", "gz", "chunked", "moved", "gone", "q?a=1", "a%20b")


@pytest.fixture
def pages(site: Site) -> Site:
    """A small site with what tools treat differently: codings, types, errors, redirects, queries, odd names."""
    links = "".join(
        f'<a href="{path}">x</a>' for path in ("b.html", "gz", "chunked", "moved", "gone", "q?a=1", "a%20b")
    )
    site.add_html("/", f'{links}<img src="/i.png"><link rel=stylesheet href="/s.css">', "Startseite")
    site.add("/b.html", "<title>Größe</title>".encode("latin-1"), "text/html; charset=iso-8859-1")
    site.add_nasty("/gz", nasty.gzip_body(b"<title>packed</title>" + b"text" * 500))
    site.add_nasty("/chunked", nasty.chunked(b"<title>pieces</title>" * 90))
    site.add_nasty("/moved", redirect("/b.html"))
    site.add("/q?a=1", b"<title>query</title>")
    site.add("/a%20b", b"<title>space</title>")
    site.add("/i.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png")
    site.add("/s.css", b"p {}", "text/css")
    return site


def paths(archive: Archive, domain: str) -> list[str]:
    return sorted(arcs(archive, domain))


def is_as_crawled(archive: Archive, site: Site, tmp_path: Path) -> None:
    """The same ARCs, data files and metadata, but for the times."""
    crawled = create(tmp_path / "crawled")
    crawl(crawled, site.url("/"))
    assert files(archive, site.host) == files(crawled, site.host)
    for path in paths(crawled, site.host):
        one, two = (meta(each, site.host, path) for each in (archive, crawled))
        assert (one.url, one.title, one.mime_type) == (two.url, two.title, two.mime_type)


@pytest.mark.parametrize("how", [(), ("--no-warc-compression",)])
def test_wget(archive: Archive, pages: Site, tmp_path: Path, how: tuple[str, ...]) -> None:
    """wget's own WARCs, with its brackets around URLs; gzip and plain."""
    name = tmp_path / "site"
    command = ["wget", "-q", "-r", "-l3", "-p", f"--warc-file={name}", *how, pages.url("/")]
    subprocess.run(command, cwd=tmp_path, check=False, timeout=240)
    imported(archive, next(tmp_path.glob("site.warc*")))
    is_as_crawled(archive, pages, tmp_path)


def test_warcprox(archive: Archive, pages: Site, tmp_path: Path) -> None:
    """A proxy's WARCs: answers as they came over the wire, and revisits of what came twice."""
    folder = tmp_path / "warcs"
    folder.mkdir()
    with warcprox(folder, "-z") as proxy:
        for number in range(2):
            way = ["-e", "use_proxy=on", "-e", f"http_proxy={proxy}", "-P", str(tmp_path / f"{number}")]
            subprocess.run(["wget", "-q", "-r", "-l3", "-p", *way, pages.url("/")], check=False, timeout=240)
    made = sorted(folder.glob("*.warc.gz"))
    assert made
    imported(archive, *made)
    is_as_crawled(archive, pages, tmp_path)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_warcio(archive: Archive, tmp_path: Path, version: str) -> None:
    """What warcio writes, with its own revisit records, in both versions of the format."""
    path = tmp_path / "warcio.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version=version)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "test"}))
        http = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        first = writer.create_warc_record(
            f"http://{HOST}/a", "response", payload=BytesIO(b"<title>a</title>"), http_headers=http,
            warc_headers_dict={"WARC-Date": "2021-01-01T00:00:00Z"},
        )  # fmt: skip
        writer.write_record(first)
        same = writer.create_revisit_record(
            f"http://{HOST}/b",
            first.rec_headers.get_header("WARC-Payload-Digest"),
            f"http://{HOST}/a",
            "2021-01-01T00:00:00Z",
            http_headers=StatusAndHeaders("200 OK", [("Content-Type", "text/html"), ("X", "b")], protocol="HTTP/1.1"),
            warc_headers_dict={"WARC-Date": "2021-01-02T00:00:00Z"},
        )
        writer.write_record(same)
    imported(archive, path)
    assert arcs(archive, HOST) == {"a", "b"}
    assert read(archive, HOST, "b") == b"<title>a</title>"


# -- revisits ----------------------------------------------------------------------------------------------------------

BODY = b"<title>once</title>"
SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
#: SHA-1 of BODY in base32.
DIGEST = "sha1:" + base64.b32encode(hashlib.sha1(BODY).digest()).decode()


def revisit(path: str, date: str, head: bytes, profile: str, **fields: str) -> bytes:
    return warcs.record("revisit", f"http://{HOST}/{path}", head, date, "1.1", Profile=profile, **fields)


HEAD = warcs.http(b"", X_Own="yes")
NONE = warcs.http(b"", status="304 Not Modified")
ORIGIN = {"Refers_To_Target_URI": f"http://{HOST}/a", "Refers_To_Date": "2021-01-01T00:00:00Z"}
LATER = ORIGIN | {"Refers_To_Date": "2022-06-01T00:00:00Z"}


def test_revisits_in_the_files(archive: Archive, tmp_path: Path) -> None:
    """By digest or by URL and time, also of what comes later; a head of their own stays."""
    early = warcs.write(
        tmp_path / "1.warc",
        [
            revisit("by-digest", "2021-02-01T00:00:00Z", HEAD, SAME, Payload_Digest=DIGEST),
            revisit("by-origin", "2021-02-01T00:00:00Z", NONE, NOT_MODIFIED, **ORIGIN),
            revisit("bare", "2021-02-01T00:00:00Z", b"", SAME, Payload_Digest=DIGEST.lower()),
        ],
    )
    origin = warcs.response(f"http://{HOST}/a", BODY, "2021-01-01T00:00:00Z")
    later = warcs.write(tmp_path / "2.warc.gz", [origin], "gzip")
    imported(archive, early, later)
    assert {name: read(archive, HOST, name) for name in paths(archive, HOST)} == dict.fromkeys(
        ["a", "bare", "by-digest", "by-origin"], BODY
    )
    assert b"X-Own" in (read_file(archive, HOST, "by-digest/headers.http") or b"")
    assert b"200 OK" in (read_file(archive, HOST, "by-origin/headers.http") or b"")


def test_revisits_of_what_is_in_the_archive(archive: Archive, tmp_path: Path) -> None:
    """The version that was valid then, by time, or the one with that digest."""
    for date, body in (("2021-01-01", BODY), ("2022-01-01", b"changed"), ("2023-01-01", b"again")):
        imported(archive, warcs.write(tmp_path / date, [warcs.response(f"http://{HOST}/a", body, f"{date}T00:00:00Z")]))
    file = warcs.write(
        tmp_path / "revisits.warc",
        [
            revisit("digest", "2024-02-01T00:00:00Z", b"", SAME, Payload_Digest=DIGEST, **ORIGIN),
            revisit("time", "2024-02-01T00:00:00Z", NONE, NOT_MODIFIED, **LATER),
            revisit("a", "2024-02-01T00:00:00Z", NONE, NOT_MODIFIED),
        ],
    )
    imported(archive, file)
    assert [read(archive, HOST, name) for name in ("digest", "time", "a")] == [BODY, b"changed", b"again"]


def test_revisits_of_nothing(archive: Archive, tmp_path: Path) -> None:
    """What cannot be found is said, and is a loss."""
    other = "sha1:" + "A" * 32
    records = [
        warcs.response(f"http://{HOST}/a", BODY),
        revisit("lost", "2025-07-01T00:00:00Z", b"", SAME, Payload_Digest=other),
        revisit("lost-too", "2025-07-01T00:00:00Z", b"", SAME),
        revisit("lost-host", "2025-07-01T00:00:00Z", b"", SAME, Refers_To_Target_URI="http://nowhere.example/"),
    ]
    done = command("import", "--archive", archive.root, warcs.write(tmp_path / "x.warc", records))
    assert done.code == 3
    assert "a revisit of what is neither in the files nor in the archive, 3 times" in done.err
    assert arcs(archive, HOST) == {"a"}
    result = import_files(archive, warcs.write(tmp_path / "y.warc", [*records[:1], b"\r\n"]))
    assert result.outcome is not None and not result.outcome.warnings
