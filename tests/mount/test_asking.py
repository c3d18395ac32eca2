"""`webarc` on a mount: it answers as it does on the archive behind it, and paths are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from tests.mount.conftest import Mounter
from tests.store.test_webarc import webarc
from tests.support import archives
from tests.support.readercommand import webarc_bytes
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.mount


def test_paths_of_an_answer_are_there(archive: Archive, mount: Mounter) -> None:
    archives.publish(archive, pages={"a b/x.html": b"old", "gone.html": b"gone"})
    archives.publish(archive, pages={"a b/x.html": b"new", "gone.html": None})
    catch_up(archive)
    mounted = mount(archive)
    answer = webarc("query", "--mount", str(mounted.point / "www.example.org"), "", "--order-by", "crawlTime, path",
                    "--format", "paths")  # fmt: skip
    bodies = [(Path(line) / "data.html").read_bytes() for line in answer.stdout.splitlines()]
    assert bodies == [b"old", b"gone", b"new"], answer


def test_each_command_answers_on_a_mount_as_on_its_archive(archive: Archive, mount: Mounter) -> None:
    """Documents are named by URL, by their path in the archive, or where they lie in the mount."""
    first = str(archives.publish(archive, pages={"a b/x.html": b"<p>old</p>", "gone.html": b"gone"}))
    second = str(archives.publish(archive, pages={"a b/x.html": b"<p>new</p>", "gone.html": None}))
    catch_up(archive)
    mounted = mount(archive)
    inner, url = "/www.example.org/a b/x.html", "http://www.example.org/a%20b/x.html"
    for words in (
        ["query", "mimeType = 'text/html'", "--order-by", "crawlTime, path", "--format", "json"],
        ["log", inner], ["log", url], ["diff", first, second], ["diff", first, second, inner, "-w"],
        ["stat", first, second], ["stat", second, "--json"],
    ):  # fmt: skip
        here = webarc(*words, "--mount", str(mounted.point))
        there = webarc(*words, "--archive", str(archive.root))
        assert here.returncode == 0 and here.stdout, (words, here)
        assert here.stdout == there.stdout, words
        placed = [f"{mounted.point}{inner}" if word == inner else word for word in words]
        assert webarc(*placed, "--mount", str(mounted.point)).stdout == there.stdout, placed
    found = webarc_bytes("cat", first, mounted.point / "www.example.org/a b/x.html", "--mount", mounted.point)
    assert found.stdout == b"<p>old</p>"


#: Words, with `{mount}` for the mount's path, and the exit code.
HOSTILE = [
    (["query", "1; DROP TABLE version"], 1),
    (["query", "ATTACH 'x' AS y"], 1),
    (["query", "1) UNION SELECT name, sql, 1, 2, 3, 4, 5, 6 FROM sqlite_master --"], 1),
    (["query", "load_extension('x')"], 1),
    (["query", "PRAGMA writable_schema = 1"], 1),
    (["query", "'"], 1),
    (["query", "title = '" + "x" * 100_000 + "'"], 1),
    (["query", "1", "--order-by", "(SELECT name FROM domain)"], 1),
    (["log", "/etc/passwd"], 2),
    (["log", "../../etc/passwd"], 1),
    (["log", "{mount}/../../etc/passwd"], 1),
    (["log", "{mount}/.snapshots"], 1),
    (["cat", "2020-01-01T00:00:00@www.example.org", "{mount}/www.example.org/x.html"], 2),
    (["cat", "2026-11-21T03:00:00@..", "/../format"], 2),
    (["cat", "2026-11-21T03:00:00@www.example.org/../..", "/x"], 2),
    (["diff", "x", "y"], 1),
    (["stat", "@"], 1),
]


@pytest.mark.only("libfuse3")
def test_hostile_words_are_refused_and_change_nothing(archive: Archive, mount: Mounter) -> None:
    archives.publish(archive, pages={"x.html": b"x"})
    catch_up(archive)
    mounted = mount(archive)
    before = _contents(archive)
    for words, code in HOSTILE:
        answer = webarc(*(word.replace("{mount}", str(mounted.point)) for word in words), "--mount", str(mounted.point))
        assert (answer.returncode, answer.stdout) == (code, ""), answer
        assert answer.stderr.startswith(("webarc: ", "Usage: ")) and "Traceback" not in answer.stderr, answer
        assert len(answer.stderr) < 2_000
    assert _contents(archive) == before


def _contents(archive: Archive) -> dict[Path, bytes]:
    """All that is of value; what a mount keeps for itself is not."""
    own = {archive.root / name for name in ("lock", "log", "journal")}
    files = (path for path in archive.root.rglob("*") if path.is_file() and not own & set(path.parents))
    return {path: path.read_bytes() for path in files}
