"""What `webarc export` writes comes back: as a crawl of any crawler's, or object for object."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from agent.jobs import exportedjob
from agent.maintenance.verification import verify
from tests.support import archives, crawls, nasty
from tests.support.crawls import crawl
from tests.support.imports import command, imported
from tests.support.journals import Writer
from tests.support.readercommand import webarc
from tests.support.realsites import HANDBOOK, POSTGRESQL, PYTHON
from tests.support.recorder import warcprox
from tests.support.site import Site, redirect
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.export.selection import Asked, Exported, documents, select

pytestmark = pytest.mark.crawl

_SITES = (POSTGRESQL, HANDBOOK, PYTHON)
#: Of a real site; 0 is all of it.
_DOCUMENTS = int(os.environ.get("ROUND_TRIP_DOCUMENTS", "25"))
_LAYOUT1 = Path(__file__).parents[1] / "data" / "layout1.tar.gz"


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two publications on a host: redirects, error pages, additions, data nodes, pages that change and that go."""
    archive = directory.create(tmp_path_factory.mktemp("origin") / "archive")
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a><a href="/b/">b</a><a href="/old">o</a><a href="/gone">g</a>')
        site.add_html("/a", "This is a.")
        site.add_html("/b/", '<a href="c">c</a><a href="caf%C3%A9%20x%20">x</a>')
        site.add_html("/b/c", "This is c.")
        site.add_html("/b/caf%C3%A9%20x%20", "This is x.")
        site.add("/big", bytes(5 << 20), content_type="application/octet-stream")
        site.add_html("/b/c", '<a href="/big">big</a>')
        site.add_nasty("/old", redirect("/a"))
        site.add("/gone", "<title>Gone</title>", status=404)
        crawl(archive, site.url(), name="whole", keep_errors=True)
        writer = Writer(archive, site.host)
        writer.file("b/index.html", "notes \udcff.txt", b"42")
        writer.file("b/c", "x/y z/%41.txt", b"deep")
        writer.nodes("a", b"<words>42</words>")
        writer.journal.release(commit_additions(archive, site.host))
        site.add_html("/a", "Changed.")
        crawl(archive, site.url("/b/"), name="part")
        writer.nodes("b/c", b"<late>1</late>")
        writer.file("b/caf\u00e9 x ", "late.txt", b"late")
        writer.journal.release(commit_additions(archive, site.host))
        site.add_nasty("/old", redirect("/b/"))
        crawl(archive, site.url(), name="whole", keep_errors=True)
        writer.close()
    archives.publish(archive, "other.example.org", {"x.html": b"x"})
    yield archive
    shutil.rmtree(archive.root)


def _exported(archive: Archive, out: Path, *words: str) -> list[Path]:
    """The files of an export, without a complaint."""
    done = webarc("export", "--archive", str(archive.root), *words, str(out))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return sorted(out.iterdir()) if out.is_dir() else [out]


def _states(archive: Archive) -> dict[str, tuple[str, str]]:
    """commitTag → trees."""
    return {str(each.tag): (each.tree, each.seen) for each in select(archive, Asked())}


def _told(archive: Archive) -> dict[str, Counter[tuple[str, ...]]]:
    """Of each snapshot of an archive: URL, blob, status and time of capture of its documents, and its redirects."""
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for each in select(archive, Asked()):
        rows = found.setdefault(each.tag.domain, Counter())
        for document in documents(each.store, each.tree):
            meta = data_xml.metadata(each.store.read(document.data_xml))
            rows[meta.url, document.files[document.data], str(meta.status), str(meta.capture_time)] = 1
        for line in redirect_lists.every(each.store, each.tree):
            rows[str(line),] = 1
    return found


@pytest.mark.parametrize("choice", [(), ("--publication", "part")])
def test_it_comes_back_object_for_object(origin: Archive, tmp_path: Path, choice: tuple[str, ...]) -> None:
    files = _exported(origin, tmp_path / "out", *choice)
    again = directory.create(tmp_path / "again")
    assert not exportedjob.run(again, files).refused
    publication = choice[1] if choice else ""
    wanted = {str(each.tag): (each.tree, each.seen) for each in select(origin, Asked(publication=publication))}
    assert _states(again) == wanted and wanted
    if not choice:
        assert list(verify(again)) == []
        told = [[_said(each) for each in select(place, Asked())] for place in (origin, again)]
        assert told[0] == told[1]


def _said(each: Exported) -> tuple[object, ...]:
    """What a crawl's commit says, but for its number in the archive."""
    return each.tag, each.time, [row for row in each.message.trailers if row[0] != "Sequence"]


def test_it_comes_back_as_a_crawl_of_any_crawler(origin: Archive, tmp_path: Path) -> None:
    """Each version's URL, body, status, time of capture, and each redirect: of the first state, with its error page."""
    tags = [each.tag for each in select(origin, Asked())]
    first = tags[0]
    again = directory.create(tmp_path / "again")
    for number, words in enumerate((("--at", str(first)), ("--since", str(first)))):
        files = _exported(origin, tmp_path / f"{number}", *words)
        imported(again, *files, keep_errors=True)
    was, now = _told(origin)[first.domain], _told(again)[first.domain]
    assert was - now == Counter(), was - now


def _comes_back(archive: Archive, folder: Path) -> None:
    """Object for object; and as a crawl: URLs, bodies, statuses, times of capture, redirects, and nothing else."""
    files = _exported(archive, folder / "out")
    same, crawled = directory.create(folder / "same"), directory.create(folder / "crawled")
    assert not exportedjob.run(same, files).refused
    imported(crawled, *files, keep_errors=True)
    assert _states(same) == _states(archive)
    was, now = _told(archive), _told(crawled)
    assert now == was and sum(map(len, was.values())) > 5


def test_three_real_sites_come_back(tmp_path: Path) -> None:
    for each in _SITES:
        if not each.is_installed:
            pytest.skip(each.missing)
    archive = directory.create(tmp_path / "archive")
    with ExitStack() as stack:
        sites = [stack.enter_context(Site()) for _ in _SITES]
        for site, each in zip(sites, _SITES, strict=True):
            site.mount(each.root, at="/")
        starts = [site.url(start) for site, each in zip(sites, _SITES, strict=True) for start in each.starts]
        crawl(archive, *starts, name="real", keep_errors=True, max_host_documents=_DOCUMENTS)
    assert len(list(archive.domains())) == 3
    _comes_back(archive, tmp_path)


def test_what_three_other_writers_wrote_comes_back(tmp_path: Path) -> None:
    """wget, warcprox and warcio: their files as an archive, that exported, and in again."""
    folder = tmp_path / "written"
    folder.mkdir()
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a><a href="/gz">b</a><a href="/old">o</a><a href="/gone">g</a>')
        site.add_html("/a", "This is a.")
        site.add_nasty("/gz", nasty.gzip_body(b"<title>packed</title>" + b"text" * 500))
        site.add_nasty("/old", redirect("/a"))
        site.add("/gone", "<title>Gone</title>", status=404)
        words = ["wget", "-q", "-r", "-P", str(tmp_path / "wget"), f"--warc-file={folder / 'wget'}", site.url("/")]
        subprocess.run(words, check=False, timeout=120)
        with warcprox(folder, "-z") as proxy:
            way = ["-e", "use_proxy=on", "-e", f"http_proxy={proxy}", "-P", str(tmp_path / "proxied")]
            subprocess.run(["wget", "-q", "-r", *way, site.url("/a")], check=False, timeout=120)
    with (folder / "warcio.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        http = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        date = {"WARC-Date": "2021-01-01T00:00:00Z"}
        for number in range(5):
            body = io.BytesIO(b"<title>%d</title>" % number)
            how = {"payload": body, "http_headers": http, "warc_headers_dict": date}
            writer.write_record(writer.create_warc_record(f"http://e.org/{number}", "response", **how))
    archive = directory.create(tmp_path / "archive")
    files = sorted(folder.glob("*.warc.gz"))
    assert len(files) == 3
    imported(archive, *files, keep_errors=True)
    _comes_back(archive, tmp_path)


def test_an_archive_of_layout_1_exports(tmp_path: Path) -> None:
    with tarfile.open(_LAYOUT1) as packed:
        packed.extractall(tmp_path)
    old = open_archive(tmp_path / "layout1")
    before = {path: path.read_bytes() for path in sorted(old.root.rglob("*")) if path.is_file()}
    files = _exported(old, tmp_path / "out")
    assert {path: path.read_bytes() for path in sorted(old.root.rglob("*")) if path.is_file()} == before
    again = directory.create(tmp_path / "again")
    done = command("import", "--as-exported", "--archive", again.root, *files)
    assert done.code == 0, done.err
    assert _states(again) == _states(old)
    assert crawls.read_file(again, "old.example", "a/notes/n.txt") == b"a note"
    assert Repository(again.repository("old.example")).check() == []
