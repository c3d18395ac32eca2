"""What others wrote, imported, exported and imported again is the same (#22); `tests/exchange` has real sites."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from warcio import ArchiveIterator

from tests.support import foreignfiles, nasty, warcs
from tests.support.imports import command, import_files, imported
from tests.support.readercommand import webarc
from tests.support.recorder import warcprox
from tests.support.site import Site, redirect
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.document import data_xml
from webarcfs.archive.history import redirect_lists
from webarcfs.export.selection import Asked, documents, select

pytestmark = pytest.mark.crawl

_CAPTURE = """
import sys, urllib.error, urllib.request
from warcio.capture_http import capture_http
with capture_http(sys.argv[1]):
    for url in sys.argv[2:]:
        try:
            urllib.request.build_opener(urllib.request.HTTPHandler).open(url).read()
        except urllib.error.HTTPError as error:
            error.read()
"""


@pytest.fixture
def pages(site: Site) -> Site:
    """A small site with what writers treat differently."""
    paths = ("/b.html", "/gz", "/chunked", "/moved", "/gone", "/q?a=1&b", "/a%20b")
    links = "".join(f'<a href="{path}">x</a>' for path in paths)
    site.add_html("/", f'{links}<img src="/i.png">', "Start")
    site.add("/b.html", "<title>Größe</title>".encode("latin-1"), "text/html; charset=iso-8859-1")
    site.add_nasty("/gz", nasty.gzip_body(b"<title>packed</title>" + b"text" * 500))
    site.add_nasty("/chunked", nasty.chunked(b"<title>pieces</title>" * 90))
    site.add_nasty("/moved", redirect("/b.html"))
    site.add("/q?a=1&b", b"<title>query</title>")
    site.add("/a%20b", b"<title>space</title>")
    site.add("/i.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png")
    site.add("/gone", "<title>gone</title>", status=410)
    return site


def by_wget(site: Site, folder: Path) -> list[Path]:
    subprocess.run(
        ["wget", "-q", "-r", "-l3", "-p", f"--warc-file={folder / 'wget'}", site.url("/")],
        cwd=folder, check=False, timeout=240,
    )  # fmt: skip
    return [folder / "wget.warc.gz"]


def by_warcprox(site: Site, folder: Path) -> list[Path]:
    """With revisits, since it is all fetched twice."""
    with warcprox(folder, "-z") as proxy:
        for number in range(2):
            way = ["-e", "use_proxy=on", "-e", f"http_proxy={proxy}", "-P", str(folder / f"{number}")]
            subprocess.run(["wget", "-q", "-r", "-l3", "-p", *way, site.url("/")], check=False, timeout=240)
    return sorted(folder.glob("*.warc.gz"))


def by_warcio(site: Site, folder: Path) -> list[Path]:
    """As Python's own HTTP client saw it."""
    urls = [
        site.url(path)
        for path in ("/", "/b.html", "/gz", "/chunked", "/moved", "/gone", "/q?a=1&b", "/a%20b", "/i.png")
    ]
    subprocess.run([sys.executable, "-c", _CAPTURE, folder / "warcio.warc.gz", *urls], check=True, timeout=120)
    return [folder / "warcio.warc.gz"]


def by_httrack(site: Site, folder: Path) -> list[Path]:
    return [foreignfiles.httrack(site.url("/"), folder / "mirror")]


def told(archive: Archive) -> dict[str, Counter[tuple[str, ...]]]:
    """Of each snapshot: URL, body, status and time of capture of its documents, and its redirects."""
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for each in select(archive, Asked()):
        rows = found.setdefault(str(each.tag), Counter())
        for document in documents(each.store, each.tree):
            meta = data_xml.metadata(each.store.read(document.data_xml))
            rows[meta.url, document.files[document.data], str(meta.status), str(meta.capture_time)] += 1
        for line in redirect_lists.every(each.store, each.tree):
            rows[str(line),] += 1
    return found


def exported(archive: Archive, out: Path) -> Path:
    done = webarc("export", "--archive", str(archive.root), str(out))
    assert (done.returncode, done.stderr) == (0, "")
    return out


@pytest.mark.parametrize("writer", [by_wget, by_warcprox, by_warcio, by_httrack])
def test_the_files_of_other_writers(archive: Archive, pages: Site, tmp_path: Path, writer) -> None:  # type: ignore[no-untyped-def]
    """Error pages are kept here, where their writer kept them."""
    folder = tmp_path / "files"
    folder.mkdir()
    outcome = import_files(archive, *writer(pages, folder), keep_errors=True).outcome
    assert outcome is not None
    assert len(outcome.warnings) == (writer is by_httrack), outcome.warnings
    again = create(tmp_path / "again")
    imported(again, exported(archive, tmp_path / "out"), keep_errors=True)
    (rows,) = told(archive).values()
    urls = {row[0].partition(pages.host)[2] for row in rows if len(row) > 1}
    wanted = {"/", "/b.html", "/gz", "/chunked", "/q?a=1&b", "/a%20b", "/i.png", "/gone"}
    assert urls - {"/robots.txt"} == wanted - ({"/gone"} if writer is by_httrack else set())
    assert ("/robots.txt" in urls) == (writer in (by_wget, by_warcprox))
    assert len([row for row in rows if len(row) == 1]) == 1, "the redirect"
    assert list(told(again).values()) == [rows]


def test_resource_records_leave_as_resource_records(archive: Archive, tmp_path: Path) -> None:
    """With their type; an index names them; they come back as what they were, and as it was exported."""
    url, body = "http://www.example.org/notes", "Größe".encode("latin-1")
    record = warcs.raw_record(
        {
            "WARC-Type": "resource", "WARC-Target-URI": url, "WARC-Date": "2020-05-01T12:00:00Z",
            "Content-Type": "text/plain; charset=iso-8859-1", "Content-Length": str(len(body)),
        },
        body,
    )  # fmt: skip
    imported(archive, warcs.write(tmp_path / "resource.warc", [record]))
    out = exported(archive, tmp_path / "out")
    with next(out.glob("*.warc.gz")).open("rb") as file:
        records = [
            (each.rec_type, each.content_type, each.content_stream().read())
            for each in ArchiveIterator(file)
            if each.rec_headers.get_header("WARC-Target-URI") == url
        ]
    assert records == [("resource", "text/plain; charset=iso-8859-1", body)]
    webarc("export", "--archive", str(archive.root), "--format", "cdxj", str(tmp_path / "index.cdxj"))
    index = (tmp_path / "index.cdxj").read_text()
    assert '"mime": "text/plain"' in index and url in index, index
    again, same = create(tmp_path / "again"), create(tmp_path / "same")
    imported(again, out)
    assert told(again) == told(archive)
    assert command("import", "--archive", same.root, "--as-exported", out).code == 0
    assert told(same) == told(archive)
