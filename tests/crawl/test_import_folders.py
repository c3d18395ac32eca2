"""`import` of folders as crawlers leave them, of lists, of standard input, and of names that are no text."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent.importing.import_sources import STDIN, chosen, files_of, listed, sources_of
from agent.jobs import importjob
from tests.support import warcs
from tests.support.crawls import Done, arcs
from tests.support.foreignfiles import arc_record, gzipped, write_arc, write_wacz
from tests.support.imports import command, import_files, imported, killed_in
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication
from webarcfs.archive.model.errors import Damaged, UsageError

pytestmark = pytest.mark.crawl

HOST = "www.example.org"


def packed(*names: str) -> bytes:
    return gzipped([warcs.response(f"http://{HOST}/{name}", f"<title>{name}</title>".encode()) for name in names])


def put(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(*names))
    return path


def piped(archive: Archive, data: bytes, *words: str) -> Done:
    """`webarc-agent import` with these bytes on standard input."""
    program = [Path(sys.executable).with_name("webarc-agent"), "import", "--archive", archive.root, *words]
    done = subprocess.run(program, input=data, capture_output=True, check=False, timeout=240)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


LAYOUTS = {
    "Browsertrix": ["collections/site/archive/rec-1.warc.gz", "collections/site/archive/rec-0.warc.gz"],
    "Heritrix": ["20250601/warcs/WEB-0.warc.gz", "latest/warcs/WEB-1.warc.gz"],
    "ArchiveBox": ["archive/1748779200.0/warc/1748779201.warc.gz", "archive/1748779300.0/warc/1748779301.warc.gz"],
    "capitals": ["A.WARC.GZ", "b.Warc.gz"],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_files_in_a_folder_are_one_crawl(archive: Archive, tmp_path: Path, layout: str) -> None:
    """Recursively, in order of their paths; what is no crawler's file is passed over."""
    top = tmp_path / "top"
    for number, path in enumerate(LAYOUTS[layout]):
        put(top / path, f"{number}", "both")
    for other in ("crawl.log", "index.cdx.gz", "warc/readme.html", "screenshot.png"):
        (top / other).parent.mkdir(exist_ok=True, parents=True)
        (top / other).write_bytes(b"WARC/1.0\r\n but no file of records")
    found = sources_of([top])
    assert [source.path for source in found] == sorted(top / path for path in LAYOUTS[layout])
    outcome = imported(archive, top)
    assert (arcs(archive, HOST), len(outcome.tags)) == ({"0", "1", "both"}, 1)
    assert import_files(archive, top).outcome is None


def test_formats_beside_each_other(archive: Archive, tmp_path: Path) -> None:
    put(tmp_path / "top" / "a.warc.gz", "a")
    write_arc(tmp_path / "top" / "b.arc", [arc_record(f"http://{HOST}/b", warcs.http(b"b"))])
    write_wacz(tmp_path / "top" / "c.wacz", {"archive/c.warc.gz": packed("c")})
    put(tmp_path / "single.warc", "d")
    imported(archive, tmp_path / "top", tmp_path / "single.warc", tmp_path / "top" / "a.warc.gz")
    assert arcs(archive, HOST) == {"a", "b", "c", "d"}


def test_a_file_that_cannot_be_read_is_named() -> None:
    """As of a disk that fails; the kernel has a file that nobody can read from its start."""
    with pytest.raises(UsageError, match=r"/proc/\d+/mem: Input/output error"):
        sources_of([Path("/proc/self/mem")])


def test_exported_files_may_be_given_by_their_folder(tmp_path: Path) -> None:
    put(tmp_path / "out" / "webarc-00001.warc.gz", "a")
    put(tmp_path / "out" / "webarc-00000.warc.gz", "b")
    with ExitStack() as stack:
        names = [
            path.name
            for path in files_of([tmp_path / "out", tmp_path / "out" / "webarc-00000.warc.gz"], tmp_path, stack)
        ]
    assert names == ["webarc-00000.warc.gz", "webarc-00001.warc.gz", "webarc-00000.warc.gz"]


def test_a_file_that_is_still_written_is_left_out(tmp_path: Path) -> None:
    """As Heritrix names it; given by name, it is taken."""
    put(tmp_path / "WEB-0.warc.gz", "a")
    put(tmp_path / "WEB-1.warc.gz.open", "b")
    found = chosen([tmp_path], tmp_path, ExitStack())
    assert [source.name for source in found.sources] == ["WEB-0.warc.gz"]
    assert ["WEB-1.warc.gz.open is left out" in remark for remark in found.remarks] == [True]
    assert len(sources_of([tmp_path, tmp_path / "WEB-1.warc.gz.open"])) == 2


def test_a_folder_of_nothing_says_what_to_do(archive: Archive, site: Site, tmp_path: Path) -> None:
    """A mirror of wget without its WARC; an HTTrack of long ago."""
    site.add_html("/", "x")
    subprocess.run(["wget", "-q", "-r", "-P", tmp_path / "mirror", site.url("/")], check=True, timeout=120)
    done = command("import", "--archive", archive.root, tmp_path / "mirror")
    assert (done.code, done.err.count("\n")) == (1, 1) and "--captured" in done.err
    (tmp_path / "old" / "hts-cache").mkdir(parents=True)
    (tmp_path / "old" / "hts-cache" / "new.dat").touch()
    with pytest.raises(UsageError, match="HTTrack before"):
        sources_of([tmp_path / "old"])
    assert not [*archive.jobs.iterdir(), *archive.domains()]


def test_symbolic_links_in_folders_are_not_followed(tmp_path: Path) -> None:
    """They may lead in a circle, and to files that whoever filled the folder may not read; one given by name is."""
    secret = put(tmp_path / "secret" / "x.warc.gz", "secret")
    put(tmp_path / "a" / "y.warc.gz", "own")
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "gone.warc.gz").symlink_to(tmp_path / "nothing")
    (tmp_path / "a" / "link.warc.gz").symlink_to(secret)
    (tmp_path / "a" / "folder").symlink_to(secret.parent)
    (tmp_path / "a" / "mirror" / "hts-cache").mkdir(parents=True)
    (tmp_path / "a" / "mirror" / "hts-cache" / "new.zip").symlink_to(secret)
    found = chosen([tmp_path / "a"], tmp_path, ExitStack())
    assert [source.name for source in found.sources] == ["y.warc.gz"]
    assert sorted(remark.partition(" ")[0].rpartition("/")[2] for remark in found.remarks) == [
        "gone.warc.gz", "link.warc.gz", "new.zip",
    ]  # fmt: skip
    assert all("it is a symbolic link; give it by name" in remark for remark in found.remarks)
    assert len(sources_of([tmp_path / "a" / "link.warc.gz"])) == 1
    (tmp_path / "a" / "y.warc.gz").unlink()
    with pytest.raises(UsageError, match=r"link\.warc\.gz is left out: it is a symbolic link"):
        sources_of([tmp_path / "a"])


def test_a_list(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path a line, from a file or standard input; it may have folders, and names that are no UTF-8."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd \xff\xfe name.warc.gz"))
    put(odd, "odd")
    put(tmp_path / "folder" / "b.warc.gz", "b")
    lines = b"\n".join([os.fsencode(odd), b"", os.fsencode(tmp_path / "folder")]) + b"\r\n"
    (tmp_path / "list").write_bytes(lines)
    done = command("import", "--archive", archive.root, "--list", tmp_path / "list")
    assert (done.code, arcs(archive, HOST)) == (0, {"odd", "b"})
    with (tmp_path / "list").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        assert listed(STDIN) == [odd, tmp_path / "folder"]
    known = import_files(archive, *listed(tmp_path / "list")).known
    assert [each.place.rpartition("/")[2] for each in known] == ["odd \\xff\\xfe name.warc.gz", "b.warc.gz"]
    (tmp_path / "empty").write_bytes(b"\n\n")
    for path, said in ((tmp_path / "empty", "no path in it"), (tmp_path / "away", "No such file")):
        with pytest.raises(UsageError, match=said):
            listed(path)
    done = command("import", "--archive", archive.root)
    assert (done.code, done.err.count("\n")) == (1, 1) and "FILE or --list is missing" in done.err


def test_names_that_are_no_text_are_told_with_their_faults(archive: Archive, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.warc"))
    odd.write_bytes(warcs.response(f"http://{HOST}/a", b"a") + b"rubbish")
    done = command("import", "--archive", archive.root, odd)
    assert done.code == 3 and "\\xff.warc: a record that is cut off" in done.err
    done = command("import", "--archive", archive.root, Path(f"{odd}.away"))
    assert done.code == 1 and "\\xff.warc.away is no file" in done.err
    odd.write_bytes(b"BZh91AY&SY")
    done = command("import", "--archive", archive.root, odd)
    assert done.code == 2 and "\\xff.warc is compressed" in done.err


def test_standard_input(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any format; its hash is known afterwards, so that it is known again, as a file too. Nothing of it stays."""
    wacz = write_wacz(tmp_path / "b.wacz", {"archive/b.warc.gz": packed("b"), "archive/a.warc": packed("a")})
    before = {path.name for path in archive.log.iterdir()}
    assert piped(archive, wacz.read_bytes(), "-").code == 0
    assert arcs(archive, HOST) == {"a", "b"}
    assert import_files(archive, wacz).outcome is None
    assert "standard input was imported already" in piped(archive, wacz.read_bytes(), "-").out
    assert {path.name for path in archive.log.iterdir()} - before <= {"imported.json"}
    (tmp_path / "nothing").touch()
    with (tmp_path / "nothing").open() as given, ExitStack() as stack:
        monkeypatch.setattr("sys.stdin", given)
        nothing = chosen([STDIN], tmp_path, stack).sources
        with pytest.raises(Damaged, match="standard input: there is no record of a crawl in it"):
            importjob.run(archive, nothing, Publication(name="x", urls=()), None)


def test_an_import_of_a_folder_that_is_killed_goes_on(archive: Archive, tmp_path: Path) -> None:
    """Of a WACZ, an ARC file and a WARC; the files have been read, and one domain of two is published."""
    top = tmp_path / "top"
    put(top / "a.warc.gz", "a")
    write_arc(top / "b.arc", [arc_record("http://b.example/b", warcs.http(b"b"))])
    write_wacz(top / "c.wacz", {"archive/c.warc.gz": packed("c")})
    for call in (1, 2):
        killed_in(lambda: import_files(archive, top), importjob, "publish_domain", call)
    imported(archive, top)
    assert (arcs(archive, HOST), arcs(archive, "b.example")) == ({"a", "c"}, {"b"})
    assert not list(archive.jobs.iterdir())
