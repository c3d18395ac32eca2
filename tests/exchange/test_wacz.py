"""WACZ: what validates, replays and imports others' files takes ours; same input, same bytes, also after a kill."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from errno import ENOSPC
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from agent.jobs import exportedjob
from tests.support import archives
from tests.support.crawls import crawl
from tests.support.disks import small_disk
from tests.support.imports import command, killed_in
from tests.support.readercommand import webarc
from tests.support.site import Site, redirect
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists, versions
from webarcfs.archive.model.errors import Interrupted
from webarcfs.export import wacz, warc
from webarcfs.export.export_result import Summary
from webarcfs.export.selection import Asked, select

pytestmark = pytest.mark.crawl

_BIN = Path(sys.executable).parent
_PYWB = Path(__file__).parents[2] / ".venv-pywb" / "bin"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two crawls of a site with a redirect and an error page."""
    made = directory.create(tmp_path_factory.mktemp("wacz") / "archive")
    with Site() as site:
        site.add("/", '<title>Häuser</title><a href="/a">a</a><a href="/old">o</a><a href="/gone">g</a>')
        site.add("/a", "<title>A</title>This is a.")
        site.add("/gone", "<title>Gone</title>", status=404)
        site.add_nasty("/old", redirect("/a"))
        crawl(made, site.url(), keep_errors=True, name="site")
        site.add("/a", "<title>A</title>Changed.")
        crawl(made, site.url(), keep_errors=True, name="site")
    yield made
    shutil.rmtree(made.root)


def export(archive: Archive, out: Path, asked: Asked | None = None) -> Summary:
    return wacz.export(select(archive, asked or Asked()), out, lambda *_: None, lambda: False)


@pytest.fixture(scope="module")
def exported(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive as one WACZ."""
    out = tmp_path_factory.mktemp("exported") / "x.wacz"
    export(archive, out)
    return out


def test_the_validator_of_the_format_accepts_it(exported: Path) -> None:
    done = subprocess.run([_BIN / "wacz", "validate", "-f", exported], capture_output=True, text=True, check=False)
    assert (done.returncode, "the passed WACZ is valid" in done.stdout) == (0, True), done
    damaged = exported.with_name("damaged.wacz")
    raw = bytearray(exported.read_bytes())
    raw[len(raw) // 3] ^= 1  # in the WARC file
    damaged.write_bytes(raw)
    done = subprocess.run([_BIN / "wacz", "validate", "-f", damaged], capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_what_is_looked_up_in_place_is_stored_and_has_no_time_of_a_clock(archive: Archive, exported: Path) -> None:
    newest = select(archive, Asked()).newest.crawl_time
    with zipfile.ZipFile(exported) as package:
        assert package.testzip() is None
        for each in package.infolist():
            is_read_in_place = each.filename.endswith(".gz")
            assert (each.compress_type == zipfile.ZIP_STORED) == is_read_in_place
            assert each.date_time[:4] in {time.timetuple()[:4] for time in (newest, newest - timedelta(hours=1))}
        told = json.loads(package.read("datapackage.json"))
    assert (told["wacz_version"], told["profile"]) == ("1.1.1", "data-package")


def test_each_line_of_the_index_finds_its_record(exported: Path) -> None:
    with zipfile.ZipFile(exported) as package:
        raw, places = package.read("indexes/index.cdx.gz"), package.read("indexes/index.idx").decode().splitlines()
        (name,) = (each for each in package.namelist() if each.startswith("archive/"))
        records = package.read(name)
    lines = gzip.decompress(raw).decode().splitlines()
    assert lines == sorted(lines) and len(lines) >= 6
    assert json.loads(places[0].removeprefix("!meta 0 ")) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    for line in places[1:]:
        key, _, told = line.partition(" {")
        where = json.loads("{" + told)
        part = gzip.decompress(raw[where["offset"] :][: where["length"]]).decode()
        assert part.startswith(f"{key} {{")
    for line in lines:
        told = json.loads(line.split(" ", 2)[2])
        assert told["filename"] == name.removeprefix("archive/")
        offset, length = int(told["offset"]), int(told["length"])
        (record,) = ArchiveIterator(io.BytesIO(records[offset : offset + length]))
        assert record.rec_headers["WARC-Target-URI"] == told["url"]


def test_the_pages_are_the_html_that_was_found(archive: Archive, exported: Path) -> None:
    with zipfile.ZipFile(exported) as package:
        first, *pages = map(json.loads, package.read("pages/pages.jsonl").decode().splitlines())
    assert first == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    domain = next(archive.domains())
    found = sorted((each["url"].removeprefix(f"http://{domain}"), each.get("title")) for each in pages)
    assert found == [("/", "Häuser"), ("/a", "A"), ("/a", "A")]
    assert len({each["id"] for each in pages}) == 3 and all(each["ts"].endswith("Z") for each in pages)


def test_the_same_snapshots_give_the_same_bytes(archive: Archive, exported: Path, tmp_path: Path) -> None:
    export(archive, tmp_path / "x.wacz")
    assert (tmp_path / "x.wacz").read_bytes() == exported.read_bytes()


@pytest.mark.parametrize("point", [
    (warc, "encoded", 9), (wacz, "_summed", 1), (zipfile.ZipFile, "open", 1), (zipfile.ZipFile, "open", 4),
    (wacz, "replace", 1),
])  # fmt: skip
def test_killed_it_goes_on_to_the_same_bytes(
    archive: Archive, exported: Path, tmp_path: Path, point: tuple[object, str, int]
) -> None:
    killed_in(lambda: export(archive, tmp_path / "x.wacz"), *point)
    export(archive, tmp_path / "x.wacz")
    assert (tmp_path / "x.wacz").read_bytes() == exported.read_bytes()


def test_stopped_at_any_moment_it_goes_on_to_the_same_bytes(archive: Archive, exported: Path, tmp_path: Path) -> None:
    out, selection = tmp_path / "x.wacz", select(archive, Asked())
    for moment in range(1, 200, 7):
        asked = iter(range(moment))
        try:
            wacz.export(selection, out, lambda *_: None, lambda left=asked: next(left, None) is None)
        except Interrupted:
            continue
        break
    else:
        pytest.fail("it never ended")
    assert out.read_bytes() == exported.read_bytes()


def test_a_file_of_more_than_four_gigabytes_has_the_long_form(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the limit were lower: each number that does not fit is written as the long form has it."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    export(archive, tmp_path / "x.wacz")
    monkeypatch.undo()
    with zipfile.ZipFile(tmp_path / "x.wacz") as package:
        assert package.testzip() is None
    head = (tmp_path / "x.wacz").read_bytes()[:30]
    assert head[18:26] == b"\xff" * 8
    assert subprocess.run([sys.executable, "-m", "zipfile", "-t", tmp_path / "x.wacz"], check=False).returncode == 0


def test_the_command_leaves_nothing_that_looks_finished(archive: Archive, tmp_path: Path) -> None:
    words = ("export", "--archive", str(archive.root), "--format", "wacz")
    out = tmp_path / "x.wacz"
    killed_in(lambda: webarc(*words, str(out)), zipfile.ZipFile, "open", 3)
    assert [path.name for path in tmp_path.iterdir()] == ["x.wacz.part"]
    assert webarc(*words, str(out)).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.wacz"]


def test_a_full_disk_is_told_and_it_goes_on(archive: Archive, exported: Path, tmp_path: Path) -> None:
    size = exported.stat().st_size
    with small_disk(tmp_path / "disk", "1m") as disk:
        for left in (size // 4, size - 4096):
            (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - left))
            with pytest.raises(OSError) as told:
                export(archive, disk / "x.wacz")
            assert told.value.errno == ENOSPC
            (disk / "ballast").unlink()
        export(archive, disk / "x.wacz")
        assert (disk / "x.wacz").read_bytes() == exported.read_bytes()


def test_memory_is_flat_whatever_a_record_grows_to(tmp_path: Path) -> None:
    """A body of zeros is a thousandth of its size in the file; each way it is taken piece by piece."""
    archive, other = (directory.create(tmp_path / name) for name in ("archive", "other"))
    archives.publish(archive, pages={"x": b"x"})
    archives.add(archive, "x/large.bin", bytes(48 << 20))
    tracemalloc.start()
    try:
        export(archive, tmp_path / "x.wacz")
        assert exportedjob.run(other, [tmp_path / "x.wacz"]).refused == ()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20


@dataclass(frozen=True)
class Held:
    """What an archive has of a URL."""

    body: bytes
    status: int
    captured: str


def held(archive: Archive, number: int) -> dict[str, Held | tuple[int, str]]:
    """URL → document or redirect, in a snapshot of the only domain."""
    each = list(select(archive, Asked()))[number]
    found: dict[str, Held | tuple[int, str]] = {}
    for arc in versions.arcs(each.store, each.tree):
        meta = versions.described(each.store, arc)
        assert arc.data is not None
        found[meta.url] = Held(each.store.read(arc.data.oid), meta.status, f"{meta.capture_time}")
    return found | {each.url: (each.status, each.target) for each in redirect_lists.every(each.store, each.tree)}


def test_imported_as_any_other_wacz_it_has_the_same(archive: Archive, tmp_path: Path) -> None:
    """URLs, bodies, redirects, statuses; of several captures of a URL in one import, the newest has the time."""
    last = list(select(archive, Asked()))[-1]
    export(archive, tmp_path / "one.wacz", Asked(at=last.tag))
    other = directory.create(tmp_path / "other")
    other.settings.write_text("[crawl]\nkeep_errors = true\n")
    done = command("import", "--archive", other.root, tmp_path / "one.wacz")
    assert done.code == 0, done
    assert len(held(archive, 1)) == 4
    now, was = held(other, 0), held(archive, 1)
    assert now.keys() == was.keys()
    for url, then in was.items():
        each = now[url]
        if isinstance(each, Held) and isinstance(then, Held):
            assert (each.body, each.status) == (then.body, then.status) and each.captured >= then.captured
        else:
            assert each == then


def test_imported_as_exported_it_is_the_same(archive: Archive, exported: Path, tmp_path: Path) -> None:
    other = directory.create(tmp_path / "other")
    done = command("import", "--as-exported", "--archive", other.root, exported)
    assert done.code == 0, done
    domain = next(archive.domains())
    one, two = (Repository(each.repository(domain)) for each in (archive, other))
    assert [one.commit(oid).tree for oid in one.refs("refs/crawls/").values()] == [
        two.commit(oid).tree for oid in two.refs("refs/crawls/").values()
    ]


def test_pywb_takes_it_and_finds_its_pages(archive: Archive, exported: Path, tmp_path: Path) -> None:
    for words in (("init", "x"), ("add", "--unpack-wacz", "x", str(exported))):
        subprocess.run([_PYWB / "wb-manager", *words], cwd=tmp_path, check=True, capture_output=True)
    (index,) = (tmp_path / "collections" / "x" / "indexes").glob("*.cdxj")
    found = [json.loads(line.split(" ", 2)[2])["url"] for line in index.read_text().splitlines()]
    domain = next(archive.domains())
    assert {f"http://{domain}/", f"http://{domain}/a", f"http://{domain}/old", f"http://{domain}/gone"} == set(found)
