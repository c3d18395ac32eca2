"""README, "Search it", "Ask it" and its lines on collections: their commands, as they stand there, find something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from tests.support import archives
from tests.support.browsertrix import png
from tests.support.dated_pages import pdf, response
from tests.support.imports import imported
from tests.support.readercommand import in_shell
from tests.support.sources import ROOT
from tests.support.warcs import write
from webarcfs.archive.config.collection_files import load_collections
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

HOST, CDN = "www.example.org", "cdn.example.net"
HOME = f"http://{HOST}/"
#: The times of twelve crawls; the document names the last two, and the number of the last one.
TIMES = ("2019-05-21", "2025-12-21", *(f"2026-{month:02}-21" for month in range(2, 12)))
_NOTHING = ("", "none\n", "nothing was found\n")


def commands(section: str, *, of: str = "webarc") -> list[str]:
    """The commands of a section of README, without those that ask a mount."""
    text = (ROOT / "README.md").read_text("utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = re.findall(rf"^ {{4,8}}({of} .*)$", text, re.MULTILINE)
    return [line for line in lines if " --mount " not in line]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("readme")
    made = archives.make_archive(folder)
    report = pdf("annual report")
    for number, day in enumerate(TIMES):
        body = (
            f"<title>The minutes of {day}</title><img src='http://{CDN}/a.png'><p>The protocol {number}: the harbour, "
            f"a port, the election, climate change, global warming <a href='{HOME}old.html'>annual report</a>"
            f"<a href='http://{CDN}/x'>x</a>"
        )
        bodies = {
            HOME: (body.encode(), "text/html"), f"{HOME}report.pdf": (report, "application/pdf"),
            f"{HOME}untitled.html": (b"<p>without a title", "text/html"), f"http://{CDN}/a.png": (png(1), "image/png"),
        }  # fmt: skip
        records = [response(url, body, f"{day}T02:00:00Z", mime_type) for url, (body, mime_type) in bodies.items()]
        imported(made, write(folder / f"{day}.warc", records), name="example", complete=True)
    bring_in_step(made)
    (folder / "webarc").symlink_to(made.root)
    return made


def run(archive: Archive, folder: Path, command: str) -> str:
    return in_shell(command, folder, HOME=str(archive.root.parent), WEBARC_ARCHIVE=str(archive.root))


@pytest.mark.parametrize("section", ["Search it", "Ask it"])
def test_each_command_finds_something(archive: Archive, tmp_path: Path, section: str) -> None:
    asked = commands(section)
    assert len(asked) > 8
    for command in asked:
        out = run(archive, tmp_path, command)
        written = re.search(r"> (\S+)$", command)
        assert (tmp_path / written[1]).stat().st_size if written else out not in _NOTHING, command


def test_collections_are_added_and_changed(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "box.jpg").write_bytes(b"\xff\xd8\xff")
    asked = commands("Look at it in a browser", of="webarc-agent collection")
    assert len(asked) == 2
    for command in asked:
        run(archive, tmp_path, command)
    collection = load_collections(archive).by_name["elections"]
    assert collection.title_in("de") == "Bundestagswahlen" and collection.picture == "elections.jpg"
    assert len(collection.crawls) == 1 and collection.text
