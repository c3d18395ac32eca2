"""README, "Leaving again": its commands, as they stand there, in their order."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.dated_pages import pdf
from tests.support.readercommand import in_shell
from tests.support.sources import ROOT
from webarcfs.archive.config import directory
from webarcfs.archive.model.metadata import CET
from webarcfs.export.selection import Asked, select

pytestmark = pytest.mark.crawl

SECTION = (ROOT / "README.md").read_text("utf-8").partition("## Leaving again\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^ {4,8}(webarc\S* .*)$", SECTION, re.MULTILINE)
QUESTIONS = [command for command in COMMANDS if " --search " in command or " --query " in command]
#: Of a crawl with a record: `test_hand_over.py` runs it.
OF_RECORD = [command for command in COMMANDS if " --record " in command]


def test_each_command_does_what_it_says(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "webarc")
    archives.publish(archive, pages={"index.html": b'<a href="b.html">b</a>', "b.html": b"b"})
    archives.publish(archive, pages={"b.html": b"changed"})
    assert (len(COMMANDS), len(QUESTIONS), len(OF_RECORD)) == (14, 4, 1)
    for command in COMMANDS:
        if command in QUESTIONS + OF_RECORD:
            continue
        in_shell(command, tmp_path, HOME=str(tmp_path))
    assert sorted(each.name for each in (tmp_path / "leaving").iterdir()) == [
        "index.cdxj", "www.example.org-00000.warc.gz",
    ]  # fmt: skip
    assert gzip.decompress((tmp_path / "then.warc.gz").read_bytes()).count(b"WARC-Type: response") == 2
    assert gzip.decompress((tmp_path / "public.warc.gz").read_bytes()).count(b"WARC-Type: response") == 3
    assert zipfile.ZipFile(tmp_path / "example.wacz").testzip() is None
    assert (tmp_path / "site" / "index.html").exists() and (tmp_path / "deposit" / "bagit.txt").exists()
    again = directory.open_archive(tmp_path / "again")
    states = [[each.tree for each in select(place, Asked())] for place in (archive, again)]
    assert states[0] == states[1]


def test_each_question_takes_away_what_it_finds(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "webarc")
    host, flood = "www.example.org", b"<html lang=en><title>Flood</title><p>The flood of the river</p></html>"
    pages = {"mayor.html": b'<p>The mayor</p><img src="/a.png">', "a.png": b"\x89PNG"}
    pages["report.pdf"] = pdf("annual report")
    archives.publish(archive, host, {"flood.html": flood}, datetime(2021, 7, 20, tzinfo=CET))
    archives.publish(archive, host, {**pages, "minutes.html": b"<p>x</p>"})
    recover(archive)
    bring_in_step(archive)
    said = [in_shell(command, tmp_path, HOME=str(tmp_path)) for command in QUESTIONS]
    warc = gzip.decompress((tmp_path / "mayor.warc.gz").read_bytes())
    assert warc.count(b"WARC-Type: response") == 2 and b"/a.png" in warc
    assert any(file.name.endswith(".pdf") for file in (tmp_path / "reports").rglob("*"))
    assert "flood of the river" in (tmp_path / "flood.csv").read_text("utf-8")
    assert json.loads(said[-1])["url"] == f"http://{host}/minutes.html"
