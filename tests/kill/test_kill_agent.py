"""kill -9 of the agent and its job once in each stage: the next `start` finishes the job, nothing is done twice."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import Definition, Phase
from agent.jobs.publishing import STAGES
from tests.kill.conftest import PAGES
from tests.kill.test_kill import change_site
from tests.kill.victim import POINTS
from tests.support import forked
from tests.support.agents import configure, job_of, status
from tests.support.crawls import run_command
from tests.support.generated import Generated
from tests.support.site import Site
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history.sequence import Feed

pytestmark = pytest.mark.crawl

_ALL = [*POINTS, *(f"{name}:25" for name, _ in STAGES), "publish:25"]
_SOME = ["commit-written", "refs-moved"]


def start(archive: Archive) -> None:
    done = run_command("start", "--archive", archive.root, "--once", timeout=120)
    assert done.code == 0, done.err


def killed_worker(archive: Archive, point: str) -> str:
    """A job as the agent begins it, whose process dies at `point`, and the agent with it; its name."""
    settings, _ = settings_files.load(archive.settings)
    (publication,) = settings.publications
    folder = job_folder.new_folder(archive, publication.name)
    job_folder.save(folder, Definition(publication=publication, instances=settings.crawl.max_instances))
    command = [sys.executable, "-m", "tests.kill.victim", f"worker:{point}", str(archive.root), folder.name]
    read, write = os.pipe()  # as the agent does: its end means that the agent is gone
    try:
        done = forked.run(command, stdin=read)
    finally:
        os.close(read)
        os.close(write)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder.name


@pytest.mark.parametrize("point", _ALL if os.environ.get("WEBARC_SOAK") else _SOME)
def test_the_next_start_finishes_the_job(archive: Archive, site: Site, point: str) -> None:
    """Whatever stage it died in: one snapshot of one job, each page fetched once, only what is gone removed."""
    configure(archive, {"name": "p", "urls": [site.url("/")], "interval": "1 hour"}, robots=True)
    assert run_command("crawl", "--archive", archive.root, "--publication", "p").code == 0
    change_site(site)
    site.clear_log()

    job = killed_worker(archive, point)
    told = job_of(archive, "p")
    assert told is not None and told["state"] in ("interrupted", "waiting") and not told["running"]
    start(archive)

    assert [path for path, count in Counter(each.path for each in site.requests).items() if count > 1] == []
    assert status(archive)["jobs"] == []
    assert list(archive.jobs.iterdir()) == []
    ended = job_folder.load_item(archive.reports / job)
    assert ended is not None and ended.state is Phase.ARCHIVED and ended.complete
    store = Repository(archive.repository(next(archive.domains())))
    lines = list(Feed(archive.changes).lines())
    assert len(store.refs(CRAWLS)) == len(lines) == len(set(lines)) == 2
    assert store.check() == []
    head = store.head()
    assert head is not None and head.message.complete
    old = store.commit(head.parents[0])
    gone = {each.path.rpartition("/")[0] for each in store.differences(old.tree, head.tree) if each.new is None}
    assert gone == {Generated(PAGES).path(41).removeprefix("/")}
