"""examples/wordcount.py (/Cl-12/): an observer that leaves its result as a file and as a data node, exactly once."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import html

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.mounts import UMOUNT, run
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.mount
EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount.py"
DOCUMENTATION = Path("/usr/share/doc/python3.11-doc/html")


@contextmanager
def counting(point: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The example at work on a mount; nothing of it is left behind."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, EXAMPLE, point, *words], stdout=pipe, stderr=pipe, text=True)
    helpers: list[int] = []
    try:
        assert said(process, "counted")
        helpers = helpers_of(process)
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
        eventually(lambda: not alive(helpers), PATIENCE)


def helpers_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that count."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if not has_ended(pid)]


def has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"  # whoever adopted it has not looked yet


def said(process: subprocess.Popen[str], start: str) -> str:
    """The next line that begins so."""
    assert process.stdout is not None
    return next((line for line in process.stdout if line.startswith(start)), "")


def until_it_says(path: Path, text: str) -> None:
    """Wait until a file is there and holds `text`; it is empty while it is written, and goes when a crawl comes."""
    eventually(lambda: _text(path) == text, PATIENCE)


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except OSError:
        return None


def test_each_new_page_is_counted_once(archive: Archive, mount: Mounter) -> None:
    """/Cl-12.1/, /Cl-12.2/: before the program began and while it runs; again only where a crawl changed the page.

    A crawl that changes nothing has nothing counted again.
    """
    archives.publish(archive, pages={"old.html": b"<p>one two two</p><script>no no</script>", "x.pdf": b"%PDF"})
    mounted = mount(archive)
    site = mounted.point / archives.DOMAIN
    with counting(mounted.point) as process:
        assert (site / "old.html/wordcount.txt").read_text() == "2\ttwo\n1\tone\n"
        assert 'total="3" different="2"' in (site / "old.html/data.xml").read_text("utf-8")
        assert not (site / "x.pdf/wordcount.txt").exists()
        archives.publish(archive, pages={"new.html": "<p>Z\u00fcrich, z\u00fcrich!</p>".encode()})
        until_it_says(site / "new.html/wordcount.txt", "2\tz\u00fcrich\n")
        tag = archives.publish(archive, pages={"old.html": b"<p>three</p>"})
        until_it_says(site / "old.html/wordcount.txt", "1\tthree\n")
        assert "1 of 1" in said(process, str(tag))
        tag = archives.publish(archive, pages={})
        assert "0 of 0" in said(process, str(tag))
    again = subprocess.run(
        [sys.executable, EXAMPLE, mounted.point, "--once"], capture_output=True, text=True, check=True
    )
    assert again.stdout.splitlines()[-1] == "counted 0 pages"
    for page in ("old.html", "new.html"):
        assert (site / page / "data.xml").read_text("utf-8").count("total=") == 1


def test_a_counting_process_that_is_killed_ends_the_program(archive: Archive, mount: Mounter) -> None:
    """It says so and does not wait for ever; started again, it counts what is left."""
    archives.publish(archive, pages={"old.html": b"<p>one</p>"})
    mounted = mount(archive)
    with counting(mounted.point) as process:
        helpers = helpers_of(process)
        os.kill(helpers[0], signal.SIGKILL)
        archives.publish(archive, pages={"new.html": b"<p>two</p>", "newer.html": b"<p>three</p>"})
        _, complaint = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert "a process that counts was killed" in complaint
        eventually(lambda: not alive(helpers), PATIENCE)
    with counting(mounted.point, "--once") as process:
        assert process.wait(PATIENCE) == 0
    for page in ("old.html", "new.html", "newer.html"):
        assert (mounted.point / archives.DOMAIN / page / "wordcount.txt").exists()


def test_who_kills_the_program_ends_its_processes(archive: Archive, mount: Mounter) -> None:
    archives.publish(archive, pages={"old.html": b"<p>one</p>"})
    with counting(mount(archive).point) as process:
        helpers = helpers_of(process)
        assert helpers
        process.kill()
        process.wait(PATIENCE)
        eventually(lambda: not alive(helpers), PATIENCE)


def test_pages_that_want_to_be_read_with_care(archive: Archive, mount: Mounter) -> None:
    """A page is read in the encoding that it names, XHTML as XML has it; what takes browsers minutes does not here."""
    pages = {
        "latin.html": '<meta charset="iso-8859-1"><p>\u00e9t\u00e9 \u00e9t\u00e9</p>'.encode("latin-1"),
        "deep.html": b"<p>top</p>" + b"<div>" * 200_000 + b"bottom",
        "empty.xhtml": b"<html><head><script src='x'/><style/></head><body><p>one <a id='q'/>two</p></body></html>",
        "hidden.html": b"<template>a<style>b</style><template>c</template></template>shown<noscript><p>d</noscript>",
    }
    archives.publish(archive, pages=pages)
    mounted = mount(archive)
    with counting(mounted.point, "--once") as process:
        assert process.wait(PATIENCE) == 0
    found = {page: (mounted.point / archives.DOMAIN / page / "wordcount.txt").read_text("utf-8") for page in pages}
    assert found["latin.html"] == "2\t\u00e9t\u00e9\n"
    assert found["deep.html"].startswith("1\t") and "1\ttop\n" in found["deep.html"]
    assert found["empty.xhtml"] == "1\tone\n1\ttwo\n"
    assert found["hidden.html"] == "1\tshown\n"


def test_counts_agree_with_the_text_of_real_pages(archive: Archive, mount: Mounter) -> None:
    """Pages of Python's documentation, at random, against lxml's text of what is left without scripts and styles."""
    number, seed = int(os.environ.get("WORDCOUNT_PAGES", "10")), random.randrange(1 << 32)
    print(f"seed {seed}")
    found = {path.name: path for path in DOCUMENTATION.rglob("*.html")}  # a name once
    pages = random.Random(seed).sample(sorted(found.values()), number)
    archives.publish(archive, pages={path.name: path.read_bytes() for path in pages})
    mounted = mount(archive)
    with counting(mounted.point, "--once") as process:
        assert process.wait(PATIENCE) == 0
    for path in pages:
        root = html.fromstring(path.read_bytes())
        for element in root.xpath("//script | //style | //template | //noscript | //comment()"):
            element.drop_tree()
        text = " ".join(root.itertext()).lower()
        expected = Counter(re.findall(r"\w+(?:['\u2019-]\w+)*", text))
        lines = (mounted.point / archives.DOMAIN / path.name / "wordcount.txt").read_text("utf-8").splitlines()
        assert {word: int(number) for number, word in (line.split("\t") for line in lines)} == expected, path
    assert run(UMOUNT, mounted.point).returncode == 0, "what is being committed is waited for"
