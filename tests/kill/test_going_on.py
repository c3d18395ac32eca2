"""Whatever is killed, left or full: the agent goes on, with the next start or by itself while it lives.

Nothing is lost, and only what was under way is fetched twice. `make soak` goes through the whole matrix.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import Phase
from tests.kill.conftest import PAGES
from tests.kill.test_kill_agent import killed_worker
from tests.support import crawls, disks, gitlocks
from tests.support.agents import agent, configure, job_of, reports
from tests.support.crawls import run_command
from tests.support.generated import Generated
from tests.support.nasty import slow
from tests.support.site import Answer, Exchange, Site, page
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.git.repository import INCOMING, MAIN, Repository
from webarcfs.archive.history.sequence import Feed

pytestmark = pytest.mark.crawl

_SOAK = bool(os.environ.get("WEBARC_SOAK"))
#: Seconds from the kill to the next start. None: as soon as the next agent works, the old process gets on to its end.
_DELAYS = (None, 0.0, 0.1, 0.5, 2.0, 5.0) if _SOAK else (None, 0.0)
#: An interval within which no test ends: whatever goes on does so by itself.
_LONG = "1 month"


@pytest.fixture
def site() -> Iterator[Site]:
    """Pages that are answered slowly enough for a crawl to be met in the midst of them."""
    with Site() as site:
        site.mount(Generated(PAGES), at="/")
        yield site


def hold(site: Site, number: int = 30) -> Callable[[], None]:
    """Hold the answer of one page; returns what lets it go."""
    path = Generated(PAGES).path(number)
    body: Answer = page(Generated(PAGES).body(number))
    site.add_nasty(path, slow(300, body))

    def release() -> None:
        site.add(path, Generated(PAGES).body(number))

    return release


def until_asked(site: Site, number: int = 30) -> None:
    """Wait until a job is at the page that is held."""
    until(lambda: site.count(Generated(PAGES).path(number)), "the job fetches")


def configured(archive: Archive, site: Site) -> None:
    configure(archive, {"name": "p", "urls": [site.url("/")], "interval": _LONG})


def start_once(archive: Archive) -> None:
    done = run_command("start", "--archive", archive.root, "--once", timeout=240)
    assert done.code == 0, done.err


def is_finished(archive: Archive, site: Site, job: str) -> None:
    """One snapshot of the one job, whole; of what was fetched, only what was under way was fetched twice."""
    assert reports(archive, "p") == [job] and list(archive.jobs.iterdir()) == []
    ended = job_folder.load_item(archive.reports / job)
    assert ended is not None and ended.state is Phase.ARCHIVED and ended.complete
    assert len(list(Feed(archive.changes).lines())) == 1
    expected = {Generated(PAGES).path(number).removeprefix("/") or "index.html" for number in range(PAGES)}
    assert expected <= crawls.arcs(archive, site.host)
    assert run_command("verify", "--archive", archive.root, timeout=240).out == "sound\n"


def twice(site: Site) -> list[str]:
    """The pages that were fetched more than once."""
    return [path for path, count in Counter(each.path for each in site.requests).items() if count > 1]


# -- what is killed, and how soon the next agent starts ----------------------------------------------------------------


_STAGES = ("begin", "fetch")


def until_at(stage: str, archive: Archive, site: Site) -> None:
    """Wait until the job's process has just been started, or is at the page that is held."""
    if stage == "begin":
        until(lambda: job_of(archive, "p"), "the job begins")
    else:
        until_asked(site)


@pytest.mark.parametrize("delay", _DELAYS)
@pytest.mark.parametrize("stage", _STAGES)
def test_the_next_start_goes_on_however_soon_it_comes(
    archive: Archive, site: Site, stage: str, delay: float | None
) -> None:
    """The agent alone is killed; its job's process notices, and winds down while the next agent works already."""
    release = hold(site)
    configured(archive, site)
    with agent(archive) as running:
        until_at(stage, archive, site)
        job = until(lambda: job_of(archive, "p"), "the job is there")["job"]
        (worker,) = until(running.workers, "its process is there")
        if delay is None:
            until(lambda: not _holds(worker, archive), "it has let the agent's lock go, as each new program does")
            os.kill(worker, signal.SIGSTOP)
        running.process.kill()
        running.process.wait()
    release()
    try:
        if delay is None:
            _goes_on_behind(archive, worker, job)
        else:
            time.sleep(delay)
            start_once(archive)
    finally:
        _continue(worker)
    is_finished(archive, site, job)
    assert set(twice(site)) <= {Generated(PAGES).path(30), "/robots.txt", "/"}


def _goes_on_behind(archive: Archive, worker: int, job: str) -> None:
    """Start the next agent while the old process is there, which gets on only when that agent has looked around."""
    with agent(archive) as running:
        time.sleep(2)  # turns in which there is nothing to go on with yet; more or fewer of them change nothing
        _continue(worker)
        until(lambda: reports(archive, "p") == [job], "the job goes on")
        assert running.stop() == 0


def _holds(pid: int, archive: Archive) -> bool:
    """Whether a process has the agent's lock open: a fork has, until it is another program."""
    lock = f"{archive.root.name}/lock/.agent"
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it is closed meanwhile
            if str(handle.readlink()).endswith(lock):
                return True
    return False


def _continue(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return


@pytest.mark.parametrize("stage", _STAGES if _SOAK else _STAGES[:1])
@pytest.mark.parametrize("delay", [each for each in _DELAYS if each is not None] if _SOAK else [0.0])
def test_a_start_after_kill_9_of_all(archive: Archive, site: Site, stage: str, delay: float) -> None:
    release = hold(site)
    configured(archive, site)
    with agent(archive) as running:
        until_at(stage, archive, site)
        running.kill()
    job = job_of(archive, "p")
    assert job is not None
    release()
    time.sleep(delay)
    start_once(archive)
    is_finished(archive, site, job["job"])
    assert set(twice(site)) <= {Generated(PAGES).path(30), "/robots.txt", "/"}


def test_once_waits_for_nobody_who_crawls_by_hand(archive: Archive, site: Site) -> None:
    """A crawl that somebody runs is that one's to end, or to interrupt: the agent leaves it alone."""
    release = hold(site)
    configured(archive, site)
    command = crawls.start_command("crawl", "--archive", archive.root, "--publication", "p")
    try:
        until_asked(site)
        with agent(archive) as running:
            command.send_signal(signal.SIGTERM)
            assert command.wait(120) == 3
            time.sleep(2)  # turns in which it might be gone on with
            told = job_of(archive, "p")
            assert told is not None and (told["state"], told["running"]) == ("interrupted", False)
            assert running.stop() == 0
    finally:
        crawls.end(command)
    release()
    start_once(archive)
    is_finished(archive, site, told["job"])


# -- what a killed git left --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["incoming", "main"] if _SOAK else ["both"])
def test_a_lock_that_a_killed_git_left(archive: Archive, site: Site, which: str) -> None:
    """The machine lost its power as git held locks, and the next start comes at once."""
    configured(archive, site)
    job = killed_worker(archive, "commit-written")
    store = Repository(archive.repository(next(archive.domains())))
    refs = {"incoming": [INCOMING + job], "main": [MAIN], "both": [INCOMING + job, MAIN]}[which]
    gitlocks.leave(store.path, *refs)
    left = run_command("verify", "--archive", archive.root)
    assert left.code == 2 and all(f"{ref}.lock was left" in left.out for ref in refs)
    start_once(archive)
    is_finished(archive, site, job)
    assert twice(site) == []


def test_a_lock_that_a_git_holds_fails_the_job_for_now(archive: Archive, site: Site) -> None:
    """Somebody's git is at work on the repository: the reason names its lock, and the next try comes soon."""
    configured(archive, site)
    job = killed_worker(archive, "commit-written")
    repository = archive.repository(next(archive.domains()))
    with gitlocks.held(repository, MAIN) as (lock,):
        assert run_command("start", "--archive", archive.root, "--once", timeout=240).code == 2
        told = _failed(archive)
        assert told is not None and told["again"] and "main.lock is in the way" in told["reason"]
        assert lock.exists()
    start_once(archive)
    is_finished(archive, site, job)
    assert twice(site) == []


# -- by itself, while the agent lives ----------------------------------------------------------------------------------


def test_a_killed_process_is_begun_anew_by_the_agent_that_lives(archive: Archive, site: Site) -> None:
    """The memory was full: the next try comes soon, and not when the publication is due."""
    release = hold(site)
    configured(archive, site)
    with agent(archive) as running:
        until_asked(site)
        (worker,) = running.workers()
        os.kill(worker, signal.SIGKILL)
        told: dict[str, Any] = until(lambda: _failed(archive), "the failure is told")
        assert told["reason"] == "was killed by signal 9" and told["failures"] == 1
        assert told["again"] > told["updated"]
        line = run_command("status", "--archive", archive.root).out
        assert f"next try {told['again']}" in line and "signal 9" in line
        release()
        until(lambda: reports(archive, "p") == [told["job"]], "it goes on by itself")
        assert running.stop() == 0
    is_finished(archive, site, told["job"])
    assert set(twice(site)) <= {Generated(PAGES).path(30)}


def _failed(archive: Archive) -> dict[str, Any] | None:
    job = job_of(archive, "p")
    return job if job is not None and job["state"] == "failed" else None


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small_disk(tmp_path / "disk", "12m") as folder:
        yield folder


@pytest.mark.parametrize("room", [0, 100, 300, 700, 1500] if _SOAK else [0])
def test_a_disk_that_was_full_and_is_freed(disk: Path, site: Site, room: int) -> None:
    """`status` says why, and when it is tried again; nobody has to do anything but to make room."""
    path = Generated(PAGES).path(30)
    filled = threading.Event()
    answer = page(Generated(PAGES).body(30))

    def held(exchange: Exchange) -> None:
        while not filled.is_set():
            exchange.wait(0.05)
        answer(exchange)

    site.add_nasty(path, held)
    archive = create(disk / "archive")
    configured(archive, site)
    ballast = disk / "ballast"
    with agent(archive) as running:
        until_asked(site)
        fill(ballast, room)
        filled.set()
        told = until(lambda: _failed(archive) or reports(archive, "p"), "it has failed, or got by with the room")
        if isinstance(told, dict):
            assert "full" in told["reason"] or "No space left" in told["reason"], told["reason"]
            told = until(lambda: (job := _failed(archive)) and job["again"] and job, "the next try is told")
            assert told["failures"] >= 1
        assert room or isinstance(told, dict)
        ballast.unlink()
        (job,) = until(lambda: reports(archive, "p"), "it goes on by itself")
        assert running.stop() == 0
    is_finished(archive, site, job)


def fill(path: Path, kilobytes: int) -> None:
    """Leave so much of the disk."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            os.truncate(path, max(0, file.tell() - (kilobytes << 10)))
