"""`webarc export --format static`: a folder with the newest snapshot of each domain, whole and the same each time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from datetime import timedelta
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import archives, rooms
from tests.support.disks import small_disk
from tests.support.rooms import Page
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import Interrupted
from webarcfs.commands.cli import cli
from webarcfs.content.references import LONGEST_BODY
from webarcfs.export.export_result import Summary
from webarcfs.export.selection import Asked, Selection, select
from webarcfs.export.static_site import export

pytestmark = pytest.mark.store

FIRST = archives.FIRST


def html(body: str) -> Page:
    return Page(b"<!DOCTYPE html>" + body.encode())


#: Documents of two hosts that link to one another; names that no file system likes; kinds of every reading.
A: dict[str, Page] = {
    "http://a.test/": html('<a href="http://b.test/x">b</a><a href="old">o</a><a href="gone">g</a><img src=i.png>'),
    "http://a.test/i.png": Page(b"\x89PNG\r\n\x1a\n", "image/png"),
    "http://a.test/gone": Page(b"gone", status=404),
    "http://a.test/empty.html": Page(b"", "application/x-empty"),
    "http://a.test/dir": html('<a href="dir/">folder</a><a href="dir/y#f">y</a>'),
    "http://a.test/dir/": html('<a href="../dir">up</a>'),
    "http://a.test/dir/y": html('<link rel=stylesheet href="/s.css?v=1">'),
    "http://a.test/s.css?v=1": Page(b"@import '/t.css'; p{background:url(i.png)}", "text/css"),
    "http://a.test/t.css": Page(b"p{color:red}", "text/plain"),
    "http://a.test/Case.html": html("upper"),
    "http://a.test/case.html": html("lower"),
    "http://a.test/blog": html("without"),
    "http://a.test/blog.html": html("with"),
    "http://a.test/file.html": html('<a href="file.html/below">below</a>'),
    "http://a.test/file.html/below": html('<a href="../file.html">up</a>'),
    "http://a.test/CON": html('<a href="aux.txt">a</a>'),
    "http://a.test/aux.txt": Page(b"text", "text/plain"),
    "http://a.test/dots./z%20": html("dots"),
    "http://a.test/caf%C3%A9": html("nfc"),
    "http://a.test/cafe%CC%81": html("nfd"),
    "http://a.test/" + "long/" * 60 + "end": html('<a href="/">home</a>'),
    "http://a.test/" + "n" * 300 + ".html": html("name"),
    "http://a.test/" + "n" * 299 + "m.html": html("name"),
    "http://a.test/draw.svg": Page(b'<svg xmlns="http://www.w3.org/2000/svg" onload="1"/>', "image/svg+xml"),
    "http://a.test/feed": Page(b"<rss/>", "application/rss+xml"),
}
B = {"https://b.test/x": html('<a href="http://a.test/case.html">a</a><a href="http://c.test/">c</a>')}
REDIRECTS = {
    "http://a.test/old": "http://a.test/older",
    "http://a.test/older": "http://b.test/x#part",
    "http://b.test/x": "https://b.test/x",
    "http://a.test/loop": "http://a.test/loop2",
    "http://a.test/loop2": "http://a.test/loop",
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    found = archives.make_archive(tmp_path_factory.mktemp("static"))
    rooms.published(found, "a.test", {"http://a.test/": html("old"), "http://a.test/left": html("left")}, FIRST)
    pages: dict[str, Page | None] = {**A, "http://a.test/left": None}
    redirects = {url: target for url, target in REDIRECTS.items() if url.startswith("http://a.")}
    rooms.published(found, "a.test", pages, FIRST + timedelta(days=1), publication="one", redirects=redirects)
    redirects = {url: target for url, target in REDIRECTS.items() if url.startswith("http://b.")}
    rooms.published(found, "b.test", B, FIRST + timedelta(days=2), publication="two", redirects=redirects)
    archives.add(found, "index.html/note.txt", b"a note", domain="a.test")
    return found


def exported(selection: Selection, out: Path, stop: Any = lambda: False) -> Summary:
    return export(selection, out, lambda *_: None, stop)


@pytest.fixture(scope="module")
def made(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    out = tmp_path_factory.mktemp("made") / "out"
    return out, exported(select(archive, Asked()), out)


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def listing(out: Path) -> dict[str, dict[str, Any]]:
    """static.json: URL → its row."""
    return {row["url"]: row for row in json.loads((out / "static.json").read_text("ascii"))["documents"]}


def text(out: Path, url: str) -> str:
    return (out / listing(out)[url]["file"]).read_text("utf-8")


def test_each_document_has_a_file_of_its_own_and_static_json_tells_all(
    archive: Archive, made: tuple[Path, Summary]
) -> None:
    out, summary = made
    rows = listing(out)
    wanted = {**A, **B}
    del wanted["http://a.test/gone"]
    assert set(rows) == set(wanted)
    own = {"index.html", "static.json", "_webarcfs/missing.html", "_webarcfs/form.html", "_webarcfs/live.html"}
    assert set(files(out)) == {row["file"] for row in rows.values()} | own
    names = [row["file"] for row in rows.values()]
    assert len({unicodedata.normalize("NFC", name).casefold() for name in names}) == len(names)
    for url, row in rows.items():
        domain, _, path = arc_path(url).partition("/")
        store = archives.store_of(archive, domain)
        head = store.head()
        assert head is not None and row["commitTag"] == str(head.message.tag)
        assert row["blob"] in dict(store.files(head.tree, "")).values() and path
        assert row["size"] == (out / row["file"]).stat().st_size
    head = json.loads((out / "static.json").read_text("ascii"))
    assert (head["format"], head["version"], head["files"]) == ("webarcfs static", 1, len(rows))
    assert [(each["publication"], each["start"]) for each in head["snapshots"]] == [
        ("one", "a.test/index.html"), ("two", "b.test/x.html"),
    ]  # fmt: skip
    size = sum(len(content) for content in files(out).values())
    assert summary == Summary(
        snapshots=2, documents=len(rows), files=len(rows) + 5, bytes=size,
        left_out={
            "error pages": 1, "additions": 1, "older snapshots": 1,
            "drawings rewritten, without scripts and declarations": 1,
        },
    )  # fmt: skip


def test_the_list_leads_to_each_site(made: tuple[Path, Summary]) -> None:
    shown = (made[0] / "index.html").read_text("utf-8")
    for part in ('<a href="a.test/index.html">a.test</a>', '<a href="b.test/x.html">b.test</a>', ">two<", "@a.test<"):
        assert part in shown


def test_links_lead_to_files_behind_redirects_and_to_notices(made: tuple[Path, Summary]) -> None:
    out, _ = made
    home = text(out, "http://a.test/")
    assert 'href="../b.test/x.html#part" data-webarc-href="http://b.test/x"' not in home
    assert 'href="../b.test/x.html" data-webarc-href="http://b.test/x"' in home
    assert 'href="../b.test/x.html#part" data-webarc-href="old"' in home
    assert 'href="../_webarcfs/missing.html#http%3A%2F%2Fa.test%2Fgone" data-webarc-href="gone"' in home
    assert "src=i.png" in home and (out / "a.test/i.png").read_bytes() == A["http://a.test/i.png"].body
    other = text(out, "https://b.test/x")
    assert 'href="../_webarcfs/missing.html#http%3A%2F%2Fc.test%2F"' in other
    case = listing(out)["http://a.test/case.html"]["file"]
    assert f'href="../{case}"' in other
    assert 'href="dir/index.html"' in text(out, "http://a.test/dir")
    assert 'href="dir/y.html#f"' in text(out, "http://a.test/dir")
    assert 'href="../s.css@v=1.css"' in text(out, "http://a.test/dir/y")
    assert "@import 't.css'; p{background:url(i.png)}" in text(out, "http://a.test/s.css?v=1")
    below = listing(out)["http://a.test/file.html/below"]["file"]
    assert f'href="{below.removeprefix("a.test/")}"' in text(out, "http://a.test/file.html")
    assert 'href="../file.html"' in text(out, "http://a.test/file.html/below")
    far = listing(out)["http://a.test/" + "long/" * 60 + "end"]["file"]
    assert far.startswith("a.test/_long/")
    assert 'href="../index.html"' in (out / far).read_text("utf-8")
    assert listing(out)["http://a.test/CON"]["file"] == "a.test/_CON.html"
    assert 'href="_aux.txt"' in text(out, "http://a.test/CON")


def test_a_page_says_from_when_and_of_which_publication_it_is(made: tuple[Path, Summary]) -> None:
    out, _ = made
    lines = text(out, "https://b.test/x").split("\n")
    row = listing(out)["https://b.test/x"]
    assert row["captureTime"] == "2026-11-23T03:00:00+01:00"
    for line in (
        "url: https://b.test/x", f"commitTag: {row['commitTag']}", f"captured: {row['captureTime']}",
        f"blob: {row['blob']}", "publication: two", "record: 20261123T030000-two",
    ):  # fmt: skip
        assert line in lines


def test_what_is_chosen_is_exported(archive: Archive, tmp_path: Path) -> None:
    exported(select(archive, Asked(at=FIRST)), tmp_path / "old")
    assert set(listing(tmp_path / "old")) == {"http://a.test/", "http://a.test/left"}
    exported(select(archive, Asked(publication="two")), tmp_path / "two")
    assert set(listing(tmp_path / "two")) == {"https://b.test/x"}
    assert "missing.html#http%3A%2F%2Fa.test%2Fcase.html" in text(tmp_path / "two", "https://b.test/x")


def test_for_a_reader_what_is_closed_is_not_there_and_links_to_it_lead_to_the_notice(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    rooms.published(archive, "a.test", {"http://a.test/": html('<a href="http://b.test/">b</a>')}, FIRST)
    when = FIRST + timedelta(days=1)
    rooms.published(archive, "b.test", {"http://b.test/": html("b")}, when, state=RecordState.COUNTED, held=True)
    with ReaderRepositories(Gate(archive, Reader())) as reader:
        exported(select(archive, Asked(), reader), tmp_path / "out")
    assert set(listing(tmp_path / "out")) == {"http://a.test/"}
    assert "missing.html#http%3A%2F%2Fb.test%2F" in text(tmp_path / "out", "http://a.test/")


# -- the same bytes, whatever comes between


def test_the_same_selection_gives_the_same_bytes_after_every_stop(
    archive: Archive, made: tuple[Path, Summary], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for most in range(1, 30, 3):
        left = most

        def stop() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        try:
            summary = exported(select(archive, Asked()), out, stop)
        except Interrupted:
            continue
    assert summary == made[1]
    assert files(out) == files(made[0])


_KILLED = """
import os, sys
from pathlib import Path
from webarcfs.archive.config.directory import Archive
from webarcfs.export.selection import Asked, select
from webarcfs.export.static_site import export
left = int(sys.argv[3])
def stop():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return False
export(select(Archive(Path(sys.argv[1])), Asked()), Path(sys.argv[2]), lambda *_: None, stop)
"""


def test_after_kill_9_the_same_command_goes_on(archive: Archive, made: tuple[Path, Summary], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for after in (3, 17):
        done = subprocess.run([sys.executable, "-c", _KILLED, str(archive.root), str(out), str(after)], check=False)
        assert done.returncode == -9
        (out / ".new").write_bytes(b"half")  # what a kill in the middle of a file leaves
    assert exported(select(archive, Asked()), out) == made[1]
    assert files(out) == files(made[0])


def test_a_file_that_is_gone_or_shorter_is_made_again(
    archive: Archive, made: tuple[Path, Summary], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for spoil in (Path.unlink, lambda path: path.write_bytes(b"x"), lambda path: shutil.rmtree(path.parent)):
        exported(select(archive, Asked()), out)
        spoil(out / "a.test/i.png")
        assert exported(select(archive, Asked()), out) == made[1]
        assert files(out) == files(made[0])


@pytest.mark.parametrize("spoiled", ["", "{}", '{"file"', "\0"])
def test_notes_that_are_cut_off_cost_no_more_than_time(
    archive: Archive, made: tuple[Path, Summary], tmp_path: Path, spoiled: str
) -> None:
    out = tmp_path / "out"
    exported(select(archive, Asked()), out)
    notes = out.with_name("out.notes")
    kept = notes.read_text("ascii").split("\n")[:5]
    notes.write_text("\n".join(kept) + ("\n" + spoiled if spoiled else ""), "ascii")
    assert exported(select(archive, Asked()), out) == made[1]
    assert files(out) == files(made[0])


def test_notes_of_another_selection_or_another_start_of_the_machine_are_none(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    exported(select(archive, Asked()), out)
    exported(select(archive, Asked(publication="two")), out)
    assert not (out / "a.test").exists()
    (out / "b.test/x.html").write_bytes(b"")  # as a power cut may leave it
    boot = tmp_path / "boot"
    boot.write_text("another\n")
    monkeypatch.setattr("webarcfs.export.static_site._BOOT", boot)
    exported(select(archive, Asked(publication="two")), out)
    assert (out / "b.test/x.html").stat().st_size


def test_a_full_disk_is_told_and_with_more_room_it_goes_on(tmp_path: Path) -> None:
    big = archives.make_archive(tmp_path)
    body = os.urandom(6 << 20)
    rooms.published(big, "a.test", {"http://a.test/z.zip": Page(body, "application/zip"), **A}, FIRST)
    with small_disk(tmp_path / "disk", "4m") as disk:
        with pytest.raises(OSError) as raised:
            exported(select(big, Asked()), disk / "out")
        assert raised.value.errno == ENOSPC
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        exported(select(big, Asked()), disk / "out")
        assert (disk / "out/a.test/z.zip").read_bytes() == body
        exported(select(big, Asked()), tmp_path / "out")
        assert files(disk / "out") == files(tmp_path / "out")


# -- sizes


def test_large_files_are_copied_and_pages_that_are_too_long_are_cut_and_counted(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    zipped = os.urandom(5 << 20)
    long = b'<!DOCTYPE html><a href="/f.zip">f</a>' + b"x" * LONGEST_BODY
    pages = {"http://a.test/f.zip": Page(zipped, "application/zip"), "http://a.test/long.html": Page(long)}
    rooms.published(archive, "a.test", pages, FIRST)
    summary = exported(select(archive, Asked()), tmp_path / "out")
    found = files(tmp_path / "out")
    assert found["a.test/f.zip"] == zipped
    assert b'href="f.zip"' in found["a.test/long.html"] and len(found["a.test/long.html"]) < len(long) + 2_000
    assert dict(summary.left_out) == {"pages cut, since they are too long to be rewritten": 1}


# -- as a command


def test_the_command_makes_the_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    rooms.published(archive, "a.test", A, FIRST)
    done = CliRunner().invoke(
        cli, ["export", "--format", "static", "--archive", str(archive.root), "--json", str(tmp_path / "site")]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["documents"], told["left_out"]["error pages"]) == (len(A) - 1, 1)
    assert (tmp_path / "site/a.test/i.png").read_bytes() == A["http://a.test/i.png"].body
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "site"}
