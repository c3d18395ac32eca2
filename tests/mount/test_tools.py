"""Ordinary tools on new files (SEMANTICS.md, S-tools-2; issue 3)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.mount.conftest import Desk

pytestmark = pytest.mark.mount


def run(*command: str | Path, cwd: Path | None = None, data: bytes = b"") -> None:
    """Run a tool; whatever it complains of is a failure."""
    done = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, cwd=cwd, input=data, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, b""), (command, done.stderr)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of files to bring in."""
    for path, body in {"a": b"1", "in/b": b"2" * 10_000, "in/deep/c": b"", "large": b"x" * 3_000_000}.items():
        (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / path).write_bytes(body)
        os.utime(tmp_path / "src" / path, (1e9, 1e9))
    return tmp_path / "src"


def same(left: Path, right: Path) -> bool:
    return subprocess.run(["diff", "-r", left, right], check=False, capture_output=True).returncode == 0


def test_copying(desk: Desk, source: Path) -> None:
    """S-tools-2"""
    arc = desk.arc()
    run("cp", "-p", source / "a", arc / "copied")
    assert (arc / "copied").read_bytes() == b"1"
    run("cp", "-rp", source, arc / "tree")
    assert same(source, arc / "tree")
    shutil.copytree(source, arc / "by-python")
    desk.commit(arc)
    assert same(source, arc / "tree")
    assert same(source, arc / "by-python")
    assert desk.in_git(arc / "tree/in/b") == b"2" * 10_000


def test_tar(desk: Desk, source: Path) -> None:
    """S-tools-2"""
    arc = desk.arc()
    packed = subprocess.run(["tar", "c", "-C", source.parent, "src"], check=True, capture_output=True).stdout
    run("tar", "x", cwd=arc, data=packed)
    assert same(source, arc / "src")
    desk.commit(arc)
    assert same(source, arc / "src")


def test_rsync(desk: Desk, source: Path) -> None:
    """S-tools-2"""
    arc = desk.arc()
    run("rsync", "-a", source, arc)
    assert same(source, arc / "src")
    desk.commit(arc)
    assert same(source, arc / "src")
    assert [name for name in os.listdir(arc / "src") if name.startswith(".")] == []  # noqa: PTH208


def test_small_tools(desk: Desk) -> None:
    """S-tools-2"""
    arc = desk.arc()
    run("touch", "touched", cwd=arc)
    run("touch", "-d", "2001-01-01", "dated", cwd=arc)
    run("sh", "-c", "echo one > shell; (echo a; echo b) > group; : > empty; cat group shell > both", cwd=arc)
    run("sh", "-c", "exec 3> held; echo 1 >&3; echo 2 >&3; sh -c 'echo 3 >&3'; exec 3>&-", cwd=arc)
    run("sh", "-c", "sort -r > sorted; seq 3 | tee teed > /dev/null", cwd=arc, data=b"1\n2\n")
    run("dd", "if=/dev/zero", "of=zeros", "bs=64k", "count=5", "conv=fsync", "status=none", cwd=arc)
    run("mkdir", "-p", "more/deep", cwd=arc)
    run("install", "-m", "600", "shell", "more/deep/installed", cwd=arc)
    run("mv", "shell", "moved", cwd=arc)
    expected = {
        "touched": b"",
        "dated": b"",
        "group": b"a\nb\n",
        "empty": b"",
        "both": b"a\nb\none\n",
        "held": b"1\n2\n3\n",
        "sorted": b"2\n1\n",
        "teed": b"1\n2\n3\n",
        "zeros": bytes(5 << 16),
        "more/deep/installed": b"one\n",
        "moved": b"one\n",
    }
    assert {name: (arc / name).read_bytes() for name in expected} == expected
    desk.commit(arc)
    assert {name: desk.in_git(arc / name) for name in expected} == expected
    assert desk.in_git(arc / "shell") is None


def test_python_saves(desk: Desk) -> None:
    """S-tools-2"""
    arc = desk.arc()
    script = (
        "import os, pathlib\n"
        "pathlib.Path('text').write_text('text')\n"
        "with open('save.tmp', 'w') as file:\n file.write('saved'); file.flush(); os.fsync(file.fileno())\n"
        "os.replace('save.tmp', 'save')\n"
        "folder = os.open('.', os.O_RDONLY); os.fsync(folder); os.close(folder)\n"
        "with open('lines', 'a') as file:\n file.write('1\\n'); file.write('2\\n')\n"
        "with open('mixed', 'x+') as file:\n file.write('abc'); file.seek(1); file.write('X'); file.seek(0)\n"
        " assert file.read() == 'aXc'\n"
    )
    run(sys.executable, "-c", script, cwd=arc)
    expected = {"text": b"text", "save": b"saved", "lines": b"1\n2\n", "mixed": b"aXc"}
    assert {name: (arc / name).read_bytes() for name in expected} == expected
    assert desk.in_git(arc / "save") == b"saved"
    desk.commit(arc)
    assert {name: desk.in_git(arc / name) for name in expected} == expected


#: What people would type, each of which means to change `data.html`, or to keep a database here.
EDITING = {
    "vim": ["vim.tiny", "-es", "-c", "%s/a/b/e", "-c", "wq!", "data.html"],
    "vim writes anew": ["vim.tiny", "-es", "-c", "set backupcopy=no", "-c", "normal ox", "-c", "wq!", "data.html"],
    "sed": ["sed", "-i", "s/a/b/", "data.html"],
    "sed with a backup": ["sed", "-i.old", "s/a/b/", "data.html"],
    "perl": ["perl", "-pi", "-e", "s/a/b/", "data.html"],
    "sqlite": [
        sys.executable, "-c", "import sqlite3; sqlite3.connect('notes.db').executescript('BEGIN; CREATE TABLE a (b);')"
    ],
}  # fmt: skip


@pytest.mark.parametrize("editor", EDITING)
def test_editors_leave_nothing_behind(desk: Desk, editor: str) -> None:
    """S-tools-3, S-add-3: they say that they cannot, and what nobody could remove is not made."""
    arc = desk.arc()
    before = {path.name: path.read_bytes() for path in arc.iterdir()}
    done = subprocess.run(
        EDITING[editor], check=False, capture_output=True, cwd=arc, timeout=240, stdin=subprocess.DEVNULL
    )
    after = {path.name: path.read_bytes() for path in arc.iterdir()}
    if editor == "sqlite":  # it makes the file that it was asked for before it looks for room for its journal
        assert after.pop("notes.db") == b""
    assert after == before
    assert done.returncode != 0 or b"not permitted" in done.stderr  # perl says why, and answers 0
    desk.commit(arc)
    assert {path.name for path in arc.iterdir()} - {"notes.db"} == set(before)


def test_recipes_for_editors(desk: Desk, tmp_path: Path) -> None:
    """S-tools-3: as SEMANTICS.md has them."""
    arc = desk.arc()
    (tmp_path / "words.sql").write_text("CREATE TABLE word (text); INSERT INTO word VALUES ('colour');")
    shell = (
        "sed 's/a/b/g' data.html > spelling.html && cat data.html > $T/page.html && vim.tiny -es -c 'normal ox' -c wq"
    )
    shell += " $T/page.html && cp $T/page.html corrected.html"
    run("sh", "-c", shell.replace("$T", str(tmp_path)), cwd=arc)
    with closing(sqlite3.connect(tmp_path / "words.db")) as made:
        made.executescript((tmp_path / "words.sql").read_text())
    run("cp", tmp_path / "words.db", arc / "words.db")
    desk.commit(arc)
    page = (arc / "data.html").read_bytes()
    assert desk.in_git(arc / "spelling.html") == page.replace(b"a", b"b")
    assert desk.in_git(arc / "corrected.html") == (tmp_path / "page.html").read_bytes() != page
    with closing(sqlite3.connect(f"{(arc / 'words.db').as_uri()}?immutable=1", uri=True)) as there:
        assert there.execute("SELECT text FROM word").fetchall() == [("colour",)]
