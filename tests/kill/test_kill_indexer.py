"""kill -9 of the indexer, and of publications beside it, at random moments: the next run has all, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import catch_up
from agent.maintenance.verification import verify
from tests.support import archives
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.search import generations
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(3_000)]
_ROUNDS = int(os.environ.get("INDEX_KILLS", "2"))
_DOMAINS = ("www.example.org", "other.example.net")
_PUBLISH = """
import sys
from pathlib import Path
from agent.indexing.recovery import catch_up
from tests.support import archives
from webarcfs.archive.config.directory import open_archive
archive, number = open_archive(Path(sys.argv[1])), int(sys.argv[2])
catch_up(archive)
for step in range(20):
    some = range(number % 7, 40, 7)
    pages = {f"{each}.html": f"<p>word{each} round{number} step{step}</p>".encode() for each in some}
    archives.publish(archive, sys.argv[3], pages)
    catch_up(archive)
"""


@contextmanager
def _started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()
        process.wait()


def _extractors(archive: Archive) -> list[str]:
    """Command lines of processes that extract texts for this archive's indexer: they end with it."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if (
                "webarcfs.texts.extraction" in line
                and (each.parent / "environ").read_bytes().find(os.fsencode(archive.root)) >= 0
            ):
                found.append(line)
        except OSError:
            continue
    return found


def test_kills_lose_and_double_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archives.make_archive(tmp_path)
    monkeypatch.setenv("WEBARC_TEST_OF", str(archive.root))
    for domain in _DOMAINS:
        archives.publish(archive, domain, {f"{each}.html": f"<p>word{each}</p>".encode() for each in range(40)})
    catch_up(archive)
    bring_in_step(archive)
    chance = random.Random(7)
    killed = 0
    for number in range(_ROUNDS):
        index = ("-c", "from agent.cli import main; main()", "--quiet", "index", "--archive", str(archive.root))
        with _started("-c", _PUBLISH, str(archive.root), str(number), _DOMAINS[number % 2]) as publisher:
            until = time.monotonic() + chance.uniform(0.3, 2.5)
            while time.monotonic() < until:
                with _started(*index) as indexer:
                    time.sleep(chance.uniform(0.2, 0.9))
                    killed += indexer.poll() is None
                    indexer.send_signal(signal.SIGKILL)
            publisher.send_signal(signal.SIGKILL)
        searched = Searcher(archive).ask(SearchQuestion(words="word7", exact=True))  # whatever was killed, readers read
        assert searched.total >= 1
    eventually(lambda: not _extractors(archive), 20)
    catch_up(archive)
    bring_in_step(archive)
    assert list(verify(archive)) == []
    rows = database.count_versions(archive.database)
    assert generations.opened(archive).counts() == rows
    searcher = Searcher(archive)
    for each in range(40):
        question = SearchQuestion(words=f"text:word{each}", exact=True, present=True)
        assert searcher.ask(question).total == len(_DOMAINS)
    total = searcher.count_versions(SearchQuestion(words="site:example.org OR site:example.net"))
    assert total == sum(rows.values())
    assert killed >= _ROUNDS / 4, f"only {killed} of the indexers were at work when they were killed"
    print(f"{killed} indexers and {_ROUNDS} publishers killed; {total} versions")
