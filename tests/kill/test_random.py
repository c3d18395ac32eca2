"""kill -9 at random moments of crawls and imports: nothing lost, nothing doubled, every repository sound (#4).

Four rounds here, `KILL_ROUNDS` in `make soak`. A round's seed is its number; where it strikes depends on the machine.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from tests.support import warcs
from tests.support.crawls import end, files, start_command, store
from tests.support.generated import Generated
from tests.support.imports import command
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.git.repository import CRAWLS
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database

pytestmark = pytest.mark.crawl

ROUNDS = int(os.environ.get("KILL_ROUNDS", "2"))
_PAGES = 60
_KILLS = 2
_LONGEST = 2.5  # seconds until the kill; a crawl or an import of this size takes about so long


@pytest.mark.parametrize("number", range(0, ROUNDS, 2))
def test_crawls(tmp_path: Path, number: int) -> None:
    archive = create(tmp_path / "archive")
    with Site() as site:
        site.mount(Generated(_PAGES), at="/")
        _killed(archive, random.Random(number), ["crawl", "--wait", "0", "--archive", archive.root, site.url("/")])
        reference = create(tmp_path / "reference")
        assert command("crawl", "--wait", "0", "--archive", reference.root, site.url("/")).code == 0
        assert files(archive, site.host) == files(reference, site.host)


@pytest.mark.parametrize("number", range(1, ROUNDS, 2))
def test_imports(tmp_path: Path, number: int) -> None:
    hosts = ("a.example", "b.example")
    given = [
        warcs.write(
            tmp_path / f"{host}.warc.gz",
            [warcs.response(f"http://{host}/{page}", b"<title>%d</title>" % page * 99) for page in range(_PAGES * 5)],
            "gzip",
        )
        for host in hosts
    ]
    archive = create(tmp_path / "archive")
    _killed(archive, random.Random(number), ["import", "--archive", archive.root, *given])
    for host in hosts:
        assert len(files(archive, host)) == _PAGES * 5
        assert len(store(archive, host).refs(CRAWLS)) == 1


def _killed(archive: Archive, chance: random.Random, arguments: Sequence[str | Path]) -> None:
    """Begin the command, kill it and all that it started, some times; then let it end, and look at the archive."""
    for _ in range(_KILLS):
        process = start_command(*arguments)
        try:
            process.wait(chance.uniform(0.1, _LONGEST))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        finally:
            end(process)
        for domain in archive.domains():
            assert store(archive, domain).check() == []
    done = command(*arguments)
    assert done.code == 0, done.err
    catch_up(archive)
    lines = list(Feed(archive.changes).lines())
    refs = {domain: store(archive, domain).refs(CRAWLS) for domain in archive.domains()}
    with Database(archive.database) as database:
        indexed = {tag for domain in refs for tag in database.indexed(domain)}
    assert len(lines) == len(set(lines)) == sum(map(len, refs.values()))
    assert indexed == set(lines)
    assert list(archive.jobs.iterdir()) == []
    for domain in refs:
        assert store(archive, domain).check() == []
