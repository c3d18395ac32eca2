"""Crawls killed at each step, one after the other in one archive: each state is what the site said, and can be rebuilt.

Three kills here, `KILLS` in `make soak`. The site has pages and redirects, which come, go and become each other.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from agent.catalogue.recording import catch_up_records
from agent.indexing.recovery import recover
from agent.jobs.publishing import STAGES
from agent.maintenance import backups
from agent.maintenance.verification import verify
from tests.kill.victim import POINTS
from tests.support import forked
from tests.support.archives import rows_of
from tests.support.site import Site, redirect
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import CrawlPart, Record
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.history.versions import statistics
from webarcfs.archive.index.database import Database

pytestmark = pytest.mark.crawl

KILLS = int(os.environ.get("KILLS", "2"))
_URLS = 40
_STEPS = (*POINTS, *(f"{name}:3" for name, _ in STAGES), "publish:3")
#: What a URL may be: page or redirect with its text or target, or nothing.
_World = dict[str, tuple[str, str]]


def test_each_state_after_a_kill(archive: Archive, tmp_path: Path) -> None:
    chance = random.Random(18)
    steps = list(_STEPS) if len(_STEPS) <= KILLS else ["lists-merged", *chance.sample(_STEPS, KILLS - 1)]
    with Site() as site:
        said = _change({}, site, chance)
        _crawl(archive, site, "")
        for number in range(KILLS):
            said = _change(said, site, chance)
            _crawl(archive, site, steps[number % len(steps)])
            _crawl(archive, site, "")
            assert list(verify(archive)) == [], steps[number % len(steps)]
            _is(archive, site, said)
    before = _derived(archive)
    _is_recorded(archive)
    assert len(list(Feed(archive.changes).lines())) == 1 + KILLS
    recover(archive)
    assert _derived(archive) == before
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = open_archive(tmp_path / "restored")
    recover(restored)
    assert _derived(restored) == before
    _is_recorded(restored)
    assert list(verify(restored)) == []


def _derived(archive: Archive) -> tuple[object, ...]:
    """The rows of webarc.db, the feed and the lines."""
    with Database(archive.database) as database:
        led = list(database.dump_redirects())
    return rows_of(archive), led, archive.changes.read_bytes(), [dict(each) for each in _every_line(archive)]


def _is_recorded(archive: Archive) -> None:
    """Each capture has one record, with its own number, and was captured once; its counts are those of its tree."""
    catch_up_records(archive)
    records = sorted(Catalogue(archive).records(), key=lambda each: each.number)
    tags = [str(part.tag) for each in records for part in each.parts]
    assert tags == list(Feed(archive.changes).lines())
    assert [each.number for each in records] == list(range(1, len(records) + 1))
    assert {tuple(event.what for event in each.events) for each in records} == {("captured",)}
    for each in (records[0], records[-1]):
        whole = [statistics(store, store.snapshot_tree(part.tag)) for part, store in _parts(archive, each)]
        assert each.text(22) == str(sum(found.bytes for found in whole)), each.id


def _parts(archive: Archive, record: Record) -> list[tuple[CrawlPart, Repository]]:
    return [(part, Repository(archive.repository(part.tag.domain))) for part in record.parts]


def _every_line(archive: Archive) -> list[dict[str, str]]:
    found = []
    for domain in archive.domains():
        repository = Repository(archive.repository(domain))
        for oid in repository.refs("refs/crawls/").values():
            tree = repository.commit(oid).tree
            found.append({each.url: str(each) for each in redirect_lists.every(repository, tree)})
    return found


def _change(said: _World, site: Site, chance: random.Random) -> _World:
    """Change a fifth of the site."""
    said = dict(said)
    for number in range(_URLS):
        path = f"/{number}"
        if path in said and chance.random() > 0.2:
            continue
        kind = chance.choice(["page", "page", "redirect", "gone"])
        text = f"text {chance.random()}" if kind == "page" else f"/{chance.randrange(_URLS)}?{chance.randrange(3)}"
        said[path] = (kind, text)
        if kind == "page":
            site.add_html(path, text)
        elif kind == "redirect":
            site.add_nasty(path, redirect(text))
        else:
            site.gone(path)
    site.add_html("/", "".join(f'<a href="{path}">x</a>' for path in said))
    return said


def _crawl(archive: Archive, site: Site, point: str) -> None:
    """One crawl of the site, killed at `point` if one is given, and if it comes by there."""
    program = ["-m", "tests.kill.victim", point] if point else ["-c", "from agent.cli import main; main()"]
    options = ["--archive", str(archive.root), "--wait", "0", "--min-share", "0", site.url("/")]
    done = forked.run([sys.executable, *program, "--quiet", "crawl", *options])
    assert done.returncode == (-signal.SIGKILL if point else 0), (point, done.stderr)


def _is(archive: Archive, site: Site, said: _World) -> None:
    """The newest state is what the site says."""
    repository = Repository(archive.repository(site.host))
    head = repository.head()
    assert head is not None
    led = {each.url: each.target for each in redirect_lists.every(repository, head.tree)}
    assert led == {site.url(path): site.url(text) for path, (kind, text) in said.items() if kind == "redirect"}
    for path, (kind, text) in said.items():
        body = repository.find(head.tree, f"{path[1:]}/data")
        assert (body is not None) == (kind == "page"), path
        assert body is None or text.encode() in repository.read(body.oid), path
