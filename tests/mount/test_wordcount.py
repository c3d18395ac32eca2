"""examples/wordcount.py (/Cl-12/): an observer that leaves its result as a file and as a data node, exactly once."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import html

from tests.mount.conftest import Mounter
from tests.support import archives
from webarcfs.archive.directory import Archive

pytestmark = pytest.mark.mount
EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount.py"
DOCUMENTATION = Path("/usr/share/doc/python3.11-doc/html")
PATIENCE = 60.0


@contextmanager
def counting(point: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The example at work on a mount."""
    process = subprocess.Popen([sys.executable, EXAMPLE, point, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and "counted" in process.stdout.readline()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def until_there(path: Path) -> str:
    end = time.monotonic() + PATIENCE
    while True:
        # A file's name is there before its first line is (S-add-1).
        text = path.read_text("utf-8") if path.exists() else ""
        if text:
            return text
        assert time.monotonic() < end, f"{path} does not come"
        time.sleep(0.02)


def test_each_new_page_is_counted_once(archive: Archive, mount: Mounter) -> None:
    """/Cl-12.1/, /Cl-12.2/: before the program began and while it runs; again only where a crawl changed the page."""
    archives.publish(archive, pages={"old.html": b"<p>one two two</p><script>no no</script>", "x.pdf": b"%PDF"})
    mounted = mount(archive)
    site = mounted.point / archives.DOMAIN
    with counting(mounted.point):
        assert (site / "old.html/wordcount.txt").read_text() == "2\ttwo\n1\tone\n"
        assert 'total="3" different="2"' in (site / "old.html/data.xml").read_text("utf-8")
        assert not (site / "x.pdf/wordcount.txt").exists()
        archives.publish(archive, pages={"new.html": "<p>Z\u00fcrich, z\u00fcrich!</p>".encode()})
        assert until_there(site / "new.html/wordcount.txt") == "2\tz\u00fcrich\n"
        before = (site / "new.html/wordcount.txt").stat().st_ino
        archives.publish(archive, pages={"old.html": b"<p>three</p>"})
        until = time.monotonic() + PATIENCE
        while (site / "old.html/data.html").read_bytes() != b"<p>three</p>" and time.monotonic() < until:
            time.sleep(0.02)
        assert until_there(site / "old.html/wordcount.txt") == "1\tthree\n"
        assert (site / "new.html/wordcount.txt").stat().st_ino == before
    with counting(mounted.point, "--once") as again:
        assert again.wait(PATIENCE) == 0
    assert (site / "new.html/wordcount.txt").stat().st_ino == before


def test_counts_agree_with_the_text_of_real_pages(archive: Archive, mount: Mounter) -> None:
    """Python's documentation, against lxml's text_content of what is left without scripts and styles."""
    pages = sorted(DOCUMENTATION.rglob("*.html"))[::25]
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
