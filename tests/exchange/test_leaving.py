"""README, "Leaving again": its commands, as they stand there, in their order."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import archives
from tests.support.sources import ROOT
from webarcfs.archive.config import directory
from webarcfs.export.selection import Asked, select

pytestmark = pytest.mark.crawl

SECTION = (ROOT / "README.md").read_text("utf-8").partition("## Leaving again\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^ {4,8}(webarc\S* .*)$", SECTION, re.MULTILINE)


def test_each_command_does_what_it_says(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "webarc")
    archives.publish(archive, pages={"index.html": b'<a href="b.html">b</a>', "b.html": b"b"})
    archives.publish(archive, pages={"b.html": b"changed"})
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    assert len(COMMANDS) == 9
    for command in COMMANDS:
        words = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
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
