"""Parts of the agent by themselves: places for wget, who holds the archive, items on disk, systemd's protocol."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from agent.crawl import job_folder
from agent.crawl.frontier import Frontier
from agent.crawl.job_folder import Definition, Job, JobState, Patch, Phase
from agent.crawl.server_locks import Slots
from agent.jobs import crawljob
from agent.maintenance import maintenance
from agent.reports import report
from agent.service import agent_status, loop, scheduler
from agent.service.loop import Dispatch, Service
from agent.service.worker import End
from tests.support import disks
from tests.support.crawls import publish_as
from tests.support.waiting import until
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.config.settings import CrawlSettings, Profile, Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Busy, Damaged, WebarcError
from webarcfs.archive.model.metadata import compact_time, now
from webarcfs.archive.system import files, locks, processes
from webarcfs.archive.system.processes import Process

pytestmark = pytest.mark.store


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return create(tmp_path / "archive")


# -- what ran ----------------------------------------------------------------------------------------------------------


def test_a_report_from_a_time_to_come_hides_none_that_ran_since(archive: Archive) -> None:
    """A clock that was wrong for one run must not have its publication crawled again and again for years."""
    at = now()
    first, last, ahead = (compact_time(at + timedelta(days=days)) for days in (-2, -1, 900))
    for name in (first, ahead, last, "20269931T990000"):
        (archive.reports / f"{name}-nightly").mkdir()
    past = scheduler.read(archive)
    assert past.last == {"nightly": f"{last}-nightly"}
    nightly = Publication(name="nightly", urls=(), crawl=CrawlSettings(interval=Interval.parse("1 week")))
    assert scheduler.due([nightly], past.runs, at) == []


def test_a_job_that_cannot_be_opened_now_is_kept_for_later(archive: Archive) -> None:
    """A full disk, say: nothing is wrong with the job, so that none is begun in its place, and it is tried again."""
    folder = archive.jobs / "20261121T030000-nightly"
    (folder / "frontier.db").mkdir(parents=True)
    job_folder.save_item(folder, JobState(job=folder.name, publication="nightly", state=Phase.INTERRUPTED))
    for call in (lambda: job_folder.usable(folder), lambda: job_folder.interrupted(archive, "nightly")):
        with pytest.raises(WebarcError, match="cannot be opened now") as caught:
            call()
        assert not isinstance(caught.value, Damaged)
    agent = Dispatch(archive)
    assert agent.resume == [folder.name]
    agent.turn()
    assert agent.resume == [] and agent.idle() and len(agent.children) == 0
    known = job_folder.load_item(folder)
    assert known is not None and "cannot be opened now" in known.reason
    assert (known.state, known.failures, known.again > known.updated) == (Phase.FAILED, 1, True)


def test_a_patch_that_was_asked_for_waits_while_its_record_is_worked_on(archive: Archive) -> None:
    """It has no frontier yet, and its folder is all that there is of the order."""
    patch = Patch(record="20261121T030000-nightly", job="20261121T030000-nightly")
    folder = crawljob.begin_patch(archive, Definition(publication=Publication(name="nightly", urls=()), patch=patch))
    agent = Dispatch(archive)
    with locks.exclusive_or_busy(archive.record_lock(patch.record), "is free"):
        agent.turn()
        assert len(agent.children) == 0, "no process is begun that could do nothing"
        agent.children.start(folder.name, "-m", "agent.service.worker", str(archive.root), folder.name)
        until(lambda: (agent.take_ended(), len(agent.children) == 0)[1], "its process has ended")
    assert crawljob.patch_in(folder) == patch and End.ELSEWHERE in agent.ended
    agent = Dispatch(archive)
    assert agent.resume == [folder.name]


@pytest.mark.parametrize("is_done", [True, False])
def test_a_job_that_another_process_has_finished_is_no_fault(
    archive: Archive, is_done: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As when a command saves a page that the agent was about to save. A job that is nowhere is one."""
    job = "20261121T030000-saved-www.example.org+page"
    if is_done:
        (archive.reports / job).mkdir()
    agent = Dispatch(archive)
    with caplog.at_level(logging.INFO):
        agent.children.start(job, "-m", "agent.service.worker", str(archive.root), job)
        until(lambda: (agent.take_ended(), len(agent.children) == 0)[1], "its process has ended")
    assert End.ELSEWHERE in agent.ended
    (line,) = [record for record in caplog.records if job in record.getMessage()]
    assert (line.levelno, "another process has finished it" in line.getMessage()) == (
        logging.INFO if is_done else logging.WARNING,
        is_done,
    )


def test_a_failure_that_the_full_disk_takes_no_word_of_is_told_later(tmp_path: Path) -> None:
    """Until then it is kept in mind, so that the job is not tried again at each turn."""
    with disks.small_disk(tmp_path / "disk", "4m") as disk:
        archive = create(disk / "archive")
        folder = archive.jobs / "20261121T030000-nightly"
        folder.mkdir()
        job_folder.save_item(folder, JobState(job=folder.name, publication="nightly", failures=1))
        agent = Dispatch(archive)
        agent.children.start(folder.name, "-c", "raise OSError('no room for 000001.warc')")
        with (disk / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        until(lambda: (agent.take_ended(), len(agent.children) == 0)[1], "its process has ended")
        agent.turn()
        (known,) = agent.history.open
        assert (known.state, known.reason, known.failures) == (Phase.FAILED, "OSError: no room for 000001.warc", 2)
        on_disk = job_folder.load_item(folder)
        assert on_disk is not None and on_disk.state is Phase.WAITING
        (disk / "ballast").unlink()
        agent.turn()
        assert job_folder.load_item(folder) == known


def test_a_job_loses_no_warc_on_its_way_into_the_report(archive: Archive) -> None:
    """Whatever stands in the way of the report, the job has all that it had, and is told whole afterwards."""
    folder = job_folder.new_folder(archive, "nightly")
    (folder / "000001.warc").write_bytes(b"WARC/1.0")
    publication = Publication(name="nightly", urls=(), crawl=CrawlSettings(keep_warc=True))
    frontier = Frontier(folder / "frontier.db")
    job = Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        publication=publication,
        profile=None,
        frontier=frontier,
        begun=now(),
    )
    in_the_way = archive.reports / folder.name
    in_the_way.touch()
    with pytest.raises(OSError, match="Not a directory"):
        report.write(job, report.account_of(job), {})
    assert (folder / "000001.warc").read_bytes() == b"WARC/1.0"
    in_the_way.unlink()
    for _ in range(2):  # once more: killed before its folder was gone
        written = report.write(job, report.account_of(job), {"complete": True})
        assert (written / "000001.warc").read_bytes() == b"WARC/1.0"
        assert files.read_json(written / "summary.json") == {"complete": True}
    report.remove_job(folder)
    frontier.close()
    assert list(archive.jobs.iterdir()) == []


def test_a_job_that_is_half_removed_is_none(archive: Archive) -> None:
    """It has its report; going on with the rest of it would crawl the site under its name once more."""
    half = archive.jobs / ".20261121T030000-nightly"
    half.mkdir()
    Frontier(half / "frontier.db").close()
    assert scheduler.read(archive).open == ()
    assert job_folder.interrupted(archive, "nightly") is None
    assert not half.exists()


# -- places for wget ---------------------------------------------------------------------------------------------------


def test_no_more_places_than_there_are(tmp_path: Path) -> None:
    """/Cr-7.3/, over all jobs."""
    first, second = Slots(tmp_path, 2), Slots(tmp_path, 2)
    places = [first.take(0), second.take(0)]
    assert None not in places
    assert first.take(1) is None and second.take(1) is None
    for place in places:
        os.close(place or 0)


def test_a_job_without_a_place_comes_before_one_that_has_some(tmp_path: Path) -> None:
    rich, poor = Slots(tmp_path, 2), Slots(tmp_path, 2)
    held = [rich.take(0), rich.take(1)]
    assert poor.take(0) is None  # stands there now
    os.close(held.pop() or 0)
    assert rich.take(1) is None, "it took what another was waiting for"
    place = poor.take(0)
    assert place is not None
    os.close(held.pop() or 0)
    again = rich.take(0)
    assert again is not None
    os.close(place)
    os.close(again)


def test_a_job_that_gives_up_its_turn_holds_nobody_up(tmp_path: Path) -> None:
    rich, poor = Slots(tmp_path, 1), Slots(tmp_path, 1)
    held = rich.take(0)
    assert poor.take(0) is None
    os.close(held or 0)
    assert rich.take(0) is None
    poor.leave()
    assert rich.take(0) is not None


def test_many_jobs_on_few_places_all_get_their_share(tmp_path: Path) -> None:
    """Ten jobs, three places, each batch one step long: nobody starves, whoever asks first in each step."""
    chance = random.Random(1)
    slots = [Slots(tmp_path, 3) for _ in range(10)]
    held: dict[int, list[int]] = {number: [] for number in range(10)}
    got = [0] * 10
    for _ in range(400):
        for number in chance.sample(range(10), 10):
            while held[number] and chance.random() < 0.5:
                os.close(held[number].pop())
            place = slots[number].take(len(held[number]))
            if place is not None:
                held[number].append(place)
                got[number] += 1
        assert sum(map(len, held.values())) <= 3
    for places in held.values():
        for place in places:
            os.close(place)
    assert min(got) > max(got) / 4, got


# -- who holds the archive ---------------------------------------------------------------------------------------------


def test_one_agent_an_archive(archive: Archive) -> None:
    assert agent_status.running(archive) is None
    with agent_status.hold(archive) as agent:
        assert agent_status.running(archive) == agent
        with pytest.raises(Busy, match=f"process {os.getpid()} since"), agent_status.hold(archive):
            pass
    assert agent_status.running(archive) is None


def test_a_start_waits_for_what_a_killed_agent_had_forked(archive: Archive) -> None:
    """It has the agent's lock until it executes its program; there is no agent meanwhile."""

    def start() -> int:
        with agent_status.hold(archive) as agent:
            return agent.pid

    with ThreadPoolExecutor(1) as other:
        with locks.exclusive(archive.root / "lock/.agent"):
            started = other.submit(start)
            time.sleep(2.0)  # longer than a start waits for an agent that runs
            assert not started.done()
        assert started.result() == os.getpid()


def test_a_dead_agent_is_none(archive: Archive) -> None:
    """Its number may be another process's by now."""
    current = Process.current()
    assert current.runs()
    assert not Process(current.pid, current.ticks + 1).runs()
    agent_status.tell(archive, agent_status.Agent(current.pid, current.ticks + 1, "2026-11-21T03:00:00"))
    assert agent_status.running(archive) is None


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        fields = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()
        known = Process(process.pid, int(fields[19]))
        assert known.runs()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not known.runs()


def test_the_archive_is_put_in_order_once_a_day(archive: Archive) -> None:
    """By a process of its own; the time of the last is in log/, so that restarts do not put it off."""
    agent = Service(archive, ())
    agent.maintain()
    (done,) = until(agent.maintenance.ended, "maintenance has ended")
    assert done == ("maintenance", 0)
    agent.maintain()
    assert len(agent.maintenance) == 0
    day_ago = time.time() - 90_000
    os.utime(archive.log / "maintained", (day_ago, day_ago))
    agent.maintain()
    until(agent.maintenance.ended, "maintenance has ended once more")
    assert not maintenance.due(archive, now())


def test_the_ends_of_many_steps_are_told_together(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first at once; those after it by one notifier, a while later, and not each by one of its own."""
    monkeypatch.setattr(loop, "_LEAST_BETWEEN_WATCHES", 4)
    archive.settings.write_text('[notify]\ncommand = ["/bin/true"]\n')
    agent = Service(archive, ())
    agent.dispatch.settings = settings_files.load(archive.settings)[0]
    agent.steps.ends += 1
    agent._take_notifier()
    assert list(agent.notifier) == ["notifier"]
    until(agent.notifier.ended, "people were told")
    begun = agent._no_watch_before
    for _ in range(3):
        agent.steps.ends += 1
        agent._take_notifier()
        assert not agent.notifier or time.monotonic() >= begun
    until(lambda: (agent._take_notifier(), agent.notifier)[1], "people are told of the others")
    assert time.monotonic() >= begun
    until(agent.notifier.ended, "people were told")
    agent._take_notifier()
    assert not agent.notifier


# -- items and definitions ---------------------------------------------------------------------------------------------


def test_an_item_is_read_as_it_was_written(tmp_path: Path) -> None:
    each = JobState(
        job="j", publication="p", state=Phase.COLLECTING, urls={"done": 3}, bytes=7, warnings=("w",), tags=("t",)
    )
    job_folder.save_item(tmp_path, each)
    assert job_folder.load_item(tmp_path) == each
    assert [path.name for path in tmp_path.iterdir()] == ["item.json"]


def test_a_definition_is_read_as_it_was_written(tmp_path: Path) -> None:
    publication = publish_as("http://e.org/", hosts=("*.e.org",), max_duration="2 hours", filters=("mime", "adverts"))
    asked = Definition(publication=publication, profile=Profile(include=("text/*",)), accept_shrink=True, instances=3)
    job_folder.save(tmp_path, asked)
    assert job_folder.load(tmp_path) == asked


def test_a_folder_of_another_version_is_refused_and_left_alone(archive: Archive) -> None:
    folder = job_folder.new_folder(archive, "p")
    (folder / "frontier.db").write_bytes(b"")
    files.write_json(folder / "item.json", {"version": 99, "news": 1})
    files.write_json(folder / "definition.json", {"version": 99, "news": 1})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for load in (job_folder.load_item, job_folder.load):
        with pytest.raises(Damaged, match="another version"):
            load(folder)
    assert job_folder.interrupted(archive, "p") is None
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert job_folder.new_folder(archive, "p").name > folder.name


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "state": "asleep"}', "\0\0"])
def test_a_broken_item_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "item.json").write_text(text)
    with pytest.raises(Damaged):
        job_folder.load_item(tmp_path)


# -- systemd -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("abstract", [False, True])
def test_notify_sends_one_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    """sd_notify(3): the socket's name, or `@` and an abstract one."""
    name = f"@webarc-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name[1:] if abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        processes.notify("READY=1", "STATUS=3 publications")
        assert listener.recv(4096) == b"READY=1\nSTATUS=3 publications"
        processes.reloading()
        first, second = listener.recv(4096).split(b"\n")
        assert first == b"RELOADING=1" and second.startswith(b"MONOTONIC_USEC=")


def test_nobody_listens_and_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    processes.notify("READY=1")  # must not raise
    monkeypatch.delenv("NOTIFY_SOCKET")
    processes.notify("READY=1")  # must not raise


@pytest.mark.parametrize(
    ("usec", "pid", "expected"),
    [
        ("", "", None),
        ("30000000", "", 15.0),
        ("2000000", "own", 1.0),
        ("2000000", "1", None),
        ("x", "", None),
    ],
)
def test_watchdog(monkeypatch: pytest.MonkeyPatch, usec: str, pid: str, expected: float | None) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    assert processes.watchdog_seconds() == expected


@pytest.mark.parametrize("name", ["webarc-agent.service", "webarc-watch.service"])
def test_the_unit_is_sound_and_exposes_little(tmp_path: Path, name: str) -> None:
    """Nothing in it is unknown to systemd, and it is hardened."""
    unit = Path(__file__).parents[2] / "examples" / name
    copy = tmp_path / name
    copy.write_text(unit.read_text("utf-8").replace("/usr/local/bin/webarc-agent", "/bin/true"), "utf-8")
    for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=25", "--no-pager"]):
        done = subprocess.run(
            ["systemd-analyze", *command, str(copy)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr, done.stderr


def test_the_timer_starts_what_watches(tmp_path: Path) -> None:
    for name in ("webarc-watch.timer", "webarc-watch.service"):
        text = (Path(__file__).parents[2] / "examples" / name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace("/usr/local/bin/webarc-agent", "/bin/true"), "utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "webarc-watch.timer")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        files.write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


def test_a_job_keeps_what_was_said_of_release_when_it_began(tmp_path: Path) -> None:
    """To release captures later is an act upon them, never a side effect of a setting."""
    began = publish_as("http://e.org/", release="by-hand", closed_for="2 years")
    job_folder.save(tmp_path, Definition(publication=began))
    now_said = publish_as("http://e.org/", depth=7, release="automatic")
    job_folder.save(tmp_path, Definition(publication=now_said))
    known = job_folder.load(tmp_path)
    assert known is not None and known.publication.crawl.depth == 7
    assert (known.publication.release, known.publication.closed_for) == ("by-hand", began.closed_for)
