"""kill -9 of the agent once in each stage of a crawl: the archive is sound, nothing is fetched or published twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from agent.jobs.publishing import STAGES
from agent.maintenance.verification import verify
from tests.kill.conftest import PAGES
from tests.kill.victim import POINTS
from tests.support import forked
from tests.support.crawls import COMMAND, log_text
from tests.support.generated import Generated
from tests.support.mounts import Mounted
from tests.support.nasty import slow
from tests.support.site import Site, page
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, INCOMING, MAIN, SEEN, Repository
from webarcfs.archive.history import versions
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.warc import job_warc

pytestmark = [pytest.mark.crawl, pytest.mark.mount]

_BEFORE_THE_SWAP = (
    "first-batch-read",
    "later-batch-read",
    "captured",
    "documents-stored",
    "lists-merged",
    "objects-written",
    "commit-written",
)


def agent(archive: Archive, site: Site, point: str = "", *what: str) -> subprocess.CompletedProcess[str]:
    """One crawl of the site, or of `what`, killed at `point` if one is given."""
    program = ["-m", "tests.kill.victim", point] if point else ["-c", "from agent.cli import main; main()"]
    arguments = ["--quiet", "crawl", "--archive", str(archive.root), "--wait", "0", *(what or (site.url("/"),))]
    return forked.run([sys.executable, *program, *arguments])


def store(archive: Archive) -> Repository:
    return Repository(archive.repository(next(archive.domains())))


def change_site(site: Site) -> None:
    """Some pages change, one goes, one is new (linked from the start page)."""
    old = Generated(PAGES)
    for number in (3, 7, 20):
        site.add(old.path(number), b"<html><title>changed</title>" + old.body(number))
    site.gone(old.path(41))
    site.add("/new.html", b"<html><title>new</title></html>")
    site.add("/", old.body(0) + b'<a href="/new.html">new</a>')


#: In the middle of the documents: CI has the first stage and the last, `make soak` all of them.
_AMID = [f"{name}:25" for name, _ in STAGES] if os.environ.get("WEBARC_SOAK") else ["unpack:25"]
#: Between points that are tried always; tests/kill/test_many_kills.py meets some of them.
_LEFT_TO_SOAK = (
    ()
    if os.environ.get("WEBARC_SOAK")
    else (
        "first-batch-read",
        "later-batch-read",
        "documents-stored",
        "lists-merged",
        "objects-written",
        "refs-moved",
        "before-index",
        "in-record",
        "record-written",
        "before-report",
        "in-report",
    )
)


@pytest.mark.parametrize("point", [*(each for each in POINTS if each not in _LEFT_TO_SOAK), *_AMID, "publish:25"])
def test_kill(archive: Archive, site: Site, point: str) -> None:
    """A job that is killed at any point leaves the archive as it was, or as it shall be; the next run finishes it."""
    assert agent(archive, site).returncode == 0
    old = store(archive).ref(MAIN)
    change_site(site)
    site.clear_log()

    assert agent(archive, site, point).returncode == -signal.SIGKILL
    repository = store(archive)
    assert repository.check() == []
    if ":" in point or point in _BEFORE_THE_SWAP:
        assert repository.ref(MAIN) == old
        assert len(list(Feed(archive.changes).lines())) == 1
        _mount_shows_the_old_state(archive, site)

    done = agent(archive, site)
    assert done.returncode == 0, done.stderr
    assert [path for path, count in Counter(each.path for each in site.requests).items() if count > 1] == []
    _is_as_it_shall_be(archive)


@pytest.mark.parametrize(
    "point",
    [each for each in POINTS if each != "later-batch-read"]
    if os.environ.get("WEBARC_SOAK")
    else ("commit-written", "refs-moved"),
)
def test_what_a_killed_crawl_saw_is_kept_with_it_or_not_at_all(archive: Archive, site: Site, point: str) -> None:
    """A publication that sees a part: refs/seen moves with its commit."""
    assert agent(archive, site).returncode == 0
    part = (site.url(Generated(PAGES).path(3)), "--depth", "0")
    assert agent(archive, site, point, *part).returncode == -signal.SIGKILL
    repository = store(archive)
    assert len(repository.refs(SEEN)) == len(repository.refs(CRAWLS)) - 1 == int(point not in _BEFORE_THE_SWAP)
    done = agent(archive, site, "", *part)
    assert done.returncode == 0, done.stderr
    head = repository.head()
    assert head is not None and head.message.seen
    assert repository.refs(SEEN) == {head.message.tag.seen_ref.removeprefix(SEEN): head.message.seen}
    saw = {arc.path for arc in versions.arcs(repository, head.message.seen)}  # the page and its requisites
    assert Generated(PAGES).path(3).strip("/") in saw and len(saw) == 3
    assert list(verify(archive)) == []


def test_a_page_that_kills_the_agent_is_read_by_another_process(archive: Archive, site: Site) -> None:
    """A job is not killed again and again by the same page; nothing is fetched twice, and no page is left out."""
    site.add("/", Generated(PAGES).body(0) + b'<a href="/poison.html">poison</a>')
    site.add("/poison.html", b"<html><title>poison</title><a href='/behind.html'>behind</a>")
    site.add("/behind.html", b"<html><title>behind</title>")
    assert agent(archive, site, "/").returncode == -signal.SIGKILL
    done = agent(archive, site, "/")
    assert done.returncode == 0, done.stderr
    assert [path for path, count in Counter(each.path for each in site.requests).items() if count > 1] == []
    repository = store(archive)
    head = repository.head()
    assert head is not None and head.message.complete
    assert repository.find(head.tree, "behind.html/data.html") is not None
    assert repository.find(head.tree, "index.html/data.html") is not None


def _mount_shows_the_old_state(archive: Archive, site: Site) -> None:
    """Every page is in the mount as it was before the crawl that was killed, and nothing else is."""
    pages = Generated(PAGES)
    mounted = Mounted(archive.root, archive.root.parent / "mnt")
    try:
        for number in range(PAGES):
            arc = arc_path(site.url(pages.path(number)))
            assert (mounted / f"{arc}/data.html").read_bytes() == pages.body(number)
        assert not (mounted / arc_path(site.url("/new.html"))).exists()
    finally:
        mounted.clear()


def _is_as_it_shall_be(archive: Archive) -> None:
    """One new snapshot, in git, in the feed and in the database, and nothing left over."""
    repository = store(archive)
    assert repository.check() == []
    refs = repository.refs(CRAWLS)
    lines = list(Feed(archive.changes).lines())
    assert len(refs) == len(lines) == len(set(lines)) == 2
    head = repository.head()
    assert head is not None
    assert str(head.message.tag) == lines[-1]
    assert head.message.complete
    old = repository.commit(head.parents[0])
    changed = {each.path.rpartition("/")[0] for each in repository.differences(old.tree, head.tree)}
    pages = Generated(PAGES)
    expected = {pages.path(number).removeprefix("/") for number in (3, 7, 20, 41)} | {"new.html", "index.html"}
    assert changed == expected
    with Database(archive.database) as database:
        assert database.indexed(next(archive.domains())) == set(lines)
    assert repository.refs(INCOMING) == {}
    assert list(archive.jobs.iterdir()) == []
    reports = sorted(archive.reports.iterdir())
    assert len(reports) == 2
    summary = json.loads((reports[-1] / "summary.json").read_text("utf-8"))
    assert summary["arcs"] == {"added": 1, "changed": 4, "removed": 1, "unchanged": PAGES + 11 - 5}
    assert len(log_text(archive, reports[-1].name).splitlines()) == sum(summary["urls"].values())


def test_kill_while_wget_fetches(archive: Archive, site: Site) -> None:
    """wget dies with the agent; what is whole in its WARC by then is not fetched again."""
    pages = Generated(PAGES)
    site.add(pages.path(12), page(pages.body(12)) and pages.body(12))
    site.add_nasty(pages.path(12), slow(12, page(pages.body(12))))
    arguments = ["--quiet", "crawl", "--archive", str(archive.root), "--wait", "0", site.url("/")]
    with forked.Popen([*COMMAND, *arguments]) as process:
        while site.count(pages.path(12)) == 0:
            assert process.poll() is None
        process.kill()
    job = next(archive.jobs.iterdir())
    whole = {each.url for path in job.glob("*.warc") for each in job_warc.responses(path)}
    assert len(whole) > 5
    wget = ["pgrep", "-f", str(job)]  # its answer would take longer
    until(lambda: subprocess.run(wget, check=False, capture_output=True).stdout == b"", within=10, every=0.05)
    site.clear_log()

    assert agent(archive, site).returncode == 0
    assert whole & {site.url(each.path) for each in site.requests} == set()
    tree = store(archive).head()
    assert tree is not None
    for number in range(PAGES):
        name = pages.path(number).strip("/") or "index.html"
        entry = store(archive).find(tree.tree, f"{name}/data.html")
        assert entry is not None, name
        assert store(archive).read(entry.oid) == pages.body(number)
