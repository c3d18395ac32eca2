"""`webarc-agent start`, real: agents and their jobs as processes, against real servers on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import Phase
from tests.support import crawls
from tests.support.agents import agent, configure, fake_report, job_of, reports, status, summaries
from tests.support.crawls import run_command
from tests.support.nasty import slow
from tests.support.site import Answer, Exchange, Site, page
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import format_time, now, parse_compact_time, parse_time
from webarcfs.warc import job_warc

archive = crawls.archive
pytestmark = pytest.mark.crawl


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a><a href="/b">b</a>')
        site.add_html("/a", "a")
        site.add_html("/b", "b")
        yield site


def publication(name: str, site: Site, **more: Any) -> dict[str, Any]:
    return {"name": name, "urls": [site.url("/")], "interval": "1 day", **more}


def run_once(archive: Archive, code: int = 0) -> None:
    """What is due, and what was interrupted, to its end."""
    done = run_command("start", "--archive", archive.root, "--once", timeout=120)
    assert done.code == code, done.err


def test_once_tells_how_the_crawls_ended(archive: Archive, site: Site) -> None:
    """As `crawl` does: 3 where a crawl was incomplete, 2 where one failed."""
    configure(archive, {"name": "p", "urls": [site.url("/missing")], "interval": "1 day"})
    run_once(archive, code=3)
    configure(archive, publication("q", site, wget_args=["--no-such-option"]))
    run_once(archive, code=2)
    configure(archive, publication("q", site))
    run_once(archive)


def begun(name: str) -> Any:
    return parse_compact_time(name.partition("-")[0])


def tags(archive: Archive) -> list[str]:
    return list(Feed(archive.changes).lines())


def last(archive: Archive, name: str) -> dict[str, Any]:
    told = next(each for each in status(archive)["publications"] if each["name"] == name)["last"]
    assert told is not None
    return dict(told)


# -- when jobs run -----------------------------------------------------------------------------------------------------


def test_each_publication_runs_whenever_it_is_due(archive: Archive, site: Site) -> None:
    """None is lost, none doubled: a run a time of the row start, start + interval, … that was not missed."""
    start = now() + timedelta(seconds=2)
    intervals = {"one": 2, "two": 3, "three": 4}
    at = format_time(start)
    configure(
        archive,
        *(publication(name, site, interval=f"{seconds} seconds", start=at) for name, seconds in intervals.items()),
    )
    with agent(archive) as running:
        until(lambda: all(len(reports(archive, name)) >= 2 for name in intervals), "two runs of each")
        assert running.stop() == 0
    for name, seconds in intervals.items():
        times = [begun(each) for each in reports(archive, name)]
        slots = [(time - start).total_seconds() // seconds for time in times]
        assert times[0] >= start, "it ran before its start date"
        assert len(set(slots)) == len(slots), f"{name} was doubled: {times}"
        assert all(each["complete"] for each in summaries(archive, reports(archive, name)))
    assert len(tags(archive)) == len(set(tags(archive))) == len(list(archive.reports.iterdir()))


def test_what_was_missed_is_made_up_once_after_a_restart(archive: Archive, site: Site) -> None:
    """The names of the reports are all that is kept in mind."""
    for ago in (864_000, 432_000):
        fake_report(archive, "missed", ago)
    fake_report(archive, "fresh", 3600)
    configure(archive, publication("missed", site), publication("fresh", site))
    run_once(archive)
    assert len(reports(archive, "missed")) == 3
    assert len(reports(archive, "fresh")) == 1
    run_once(archive)
    assert len(reports(archive, "missed")) == 3


def test_urls_on_the_command_line_are_crawled_at_once(archive: Archive, site: Site) -> None:
    """Beside the publications of webarc.toml, which come at their own time."""
    later = format_time(now() + timedelta(days=1))
    configure(archive, publication("later", site, start=later))
    done = run_command("start", "--archive", archive.root, "--once", site.url("/"))
    assert done.code == 0, done.err
    assert len(tags(archive)) == 1
    assert reports(archive, "later") == []
    told = {each["name"]: each for each in status(archive)["publications"]}
    assert told["later"]["next"] == later


class Most:
    """Counts how many answers were under way at one time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.seen = 0

    def during(self, answer: Answer) -> Answer:
        def counted(exchange: Exchange) -> None:
            with self._lock:
                self._now += 1
                self.seen = max(self.seen, self._now)
            try:
                answer(exchange)
            finally:
                with self._lock:
                    self._now -= 1

        return counted


def test_more_publications_than_places_for_wget(archive: Archive) -> None:
    """`max_instances` holds over all jobs (/Cr-1.3/, /Cr-7.3/), one connection a server; every job gets its turn."""
    hosts = [f"h{number}.example" for number in range(6)]
    most = Most()
    with Site() as site:
        for host in hosts:
            site.add_html("/", "".join(f'<a href="/{n}">x</a>' for n in range(3)), host=host)
            for number in range(3):
                site.add_nasty(f"/{number}", most.during(slow(0.1, page(f"{host} {number}"))), host=host)
        configure(
            archive,
            *({"name": host.split(".")[0], "urls": [f"http://{host}/"], "interval": "1 day"} for host in hosts),
            max_instances=2,
            wget_args=list(crawls.through(site.proxy)),
        )
        run_once(archive)
        assert [site.max_open(host) for host in hosts] == [1] * len(hosts)
        assert 1 <= most.seen <= 2
    assert len(tags(archive)) == len(hosts)


# -- one agent, its end, its settings ----------------------------------------------------------------------------------


def test_a_second_agent_says_who_the_first_is(archive: Archive) -> None:
    with agent(archive) as running:
        second = run_command("start", "--archive", archive.root)
        assert second.code == 2
        assert f"process {running.process.pid} since" in second.err
        assert running.stop() == 0
    assert status(archive)["agent"] is None


def test_detach_and_stop(archive: Archive, site: Site) -> None:
    """`start --detach` comes back when the agent is ready, `stop` when it has ended."""
    configure(archive, publication("p", site))
    started = run_command("start", "--archive", archive.root, "--detach")
    try:
        assert started.code == 0, started.err
        told = status(archive)["agent"]
        assert told is not None and f"process {told['pid']}" in started.out
        until(lambda: reports(archive, "p"), "p ran")
    finally:
        stopped = run_command("stop", "--archive", archive.root, timeout=120)
    assert stopped.code == 0 and "has ended" in stopped.out
    assert status(archive)["agent"] is None
    assert "no agent runs" in run_command("stop", "--archive", archive.root).out
    assert "begins" in (archive.log / "agent.log").read_text("utf-8")


def test_detach_tells_what_is_wrong_with_the_settings(archive: Archive) -> None:
    archive.settings.write_text('[crawl]\ndepth = -1\nwait = "x"\n')
    for extra in ((), ("--detach",)):
        done = run_command("start", "--archive", archive.root, *extra)
        assert done.code == 1
        assert "crawl.depth" in done.err and "crawl.wait" in done.err
    assert status(archive)["settings_faults"] != []


def test_sighup_reads_the_settings_again(archive: Archive, site: Site) -> None:
    configure(archive, publication("old", site))
    with agent(archive) as running:
        until(lambda: reports(archive, "old"), "old ran")
        configure(archive, publication("old", site), publication("new", site))
        running.signal(signal.SIGHUP)
        until(lambda: reports(archive, "new"), "new ran")
        assert running.stop() == 0
    assert len(reports(archive, "old")) == 1


def test_settings_are_read_again_when_they_change(archive: Archive, site: Site) -> None:
    """webarc.toml and files of publications.d, without a signal."""
    configure(archive, publication("old", site))
    with agent(archive) as running:
        until(lambda: reports(archive, "old"), "old ran")
        (archive.root / "publications.d").mkdir()
        said = f'[[publication]]\nname = "new"\nurls = ["{site.url("/")}"]\n'
        (archive.root / "publications.d" / "new.toml").write_text(said)
        until(lambda: reports(archive, "new"), "new ran")
        (archive.root / "publications.d" / "bad.toml").write_text("nonsense")
        until(lambda: any("bad.toml" in each for each in status(archive)["settings_faults"]), "the fault is told")
        (archive.root / "publications.d" / "bad.toml").unlink()
        configure(archive, publication("old", site), publication("third", site))
        until(lambda: reports(archive, "third"), "third ran")
        assert status(archive)["settings_faults"] == []
        assert running.stop() == 0


def test_settings_that_are_wrong_change_nothing_and_are_told(archive: Archive, site: Site) -> None:
    configure(archive, publication("p", site, interval="2 seconds"))
    with agent(archive) as running:
        until(lambda: reports(archive, "p"), "p ran")
        archive.settings.write_text("[crawl]\nnonsense = 1\n")
        running.signal(signal.SIGHUP)
        until(lambda: any("nonsense" in each for each in status(archive)["settings_faults"]), "the fault is told")
        until(lambda: "stay in force" in (archive.log / "agent.log").read_text("utf-8"), "the fault is logged")
        told = run_command("status", "--archive", archive.root).out
        assert "  p: webarc.toml cannot be read; last" in told
        before = len(reports(archive, "p"))
        until(lambda: len(reports(archive, "p")) >= before + 2, "p goes on")
        configure(archive, publication("q", site))
        running.signal(signal.SIGHUP)
        until(lambda: reports(archive, "q"), "q ran")
        assert status(archive)["settings_faults"] == []
        assert running.stop() == 0


def test_readiness_and_watchdog_reach_systemd(archive: Archive, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        with agent(archive, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="2000000") as running:
            said: list[str] = []

            def heard(word: str) -> bool:
                while word not in said:
                    said.extend(listener.recv(4096).decode().splitlines())
                return True

            assert heard("READY=1") and heard("WATCHDOG=1")
            running.signal(signal.SIGHUP)
            assert heard("RELOADING=1")
            assert running.stop() == 0
            assert heard("STOPPING=1")


# -- jobs that are cut short -------------------------------------------------------------------------------------------


#: Pages of an endless site that are answered; what comes after them is held.
_QUICK = 6


def endless(site: Site, pages: int = 30) -> None:
    """A site whose crawl does not end by itself: after some pages the server holds its answers."""
    site.add_html("/", "".join(f'<a href="/p{number}">x</a>' for number in range(pages)))
    for number in range(pages):
        answer = page(f"<html><title>{number}</title></html>")
        site.add_nasty(f"/p{number}", answer if number < _QUICK else slow(300, answer))


def fetches(site: Site) -> None:
    """Wait until a job on an endless site has got what it can get."""
    until(lambda: site.count(f"/p{_QUICK}"), "the job fetches")


def hurry(site: Site, pages: int = 30) -> None:
    """Hold nothing any more."""
    for number in range(pages):
        site.add(f"/p{number}", f"<html><title>{number}</title></html>")


def whole_in_warcs(archive: Archive) -> set[str]:
    found: set[str] = set()
    for job in archive.jobs.iterdir():
        for path in job.glob("*.warc"):
            found |= {each.url for each in job_warc.responses(path)}
    return found


def test_sigterm_keeps_the_frontier_and_the_next_start_goes_on(archive: Archive, site: Site) -> None:
    endless(site)
    configure(archive, publication("p", site))
    with agent(archive) as running:
        fetches(site)
        assert running.stop() == 0
    job = job_of(archive, "p")
    assert job is not None and (job["state"], job["running"]) == ("interrupted", False)
    assert tags(archive) == []
    hurry(site)
    whole = whole_in_warcs(archive)
    assert len(whole) >= 5
    site.clear_log()
    run_once(archive)
    assert reports(archive, "p") == [job["job"]]
    assert whole & {site.url(each.path) for each in site.requests} == set()
    assert len(crawls.arcs(archive, site.host)) == 31


def test_after_kill_9_of_everything_the_next_start_finishes_the_job(archive: Archive, site: Site) -> None:
    """What is whole in a WARC is not fetched again, nothing is published twice, nothing is removed."""
    endless(site)
    configure(archive, publication("p", site))
    with agent(archive) as running:
        fetches(site)
        running.kill()
    job = job_of(archive, "p")
    assert job is not None and (job["state"], job["running"]) == ("interrupted", False)
    tells_how_far_it_is(archive, job)
    assert status(archive)["agent"] is None
    hurry(site)
    whole = whole_in_warcs(archive)
    site.clear_log()
    run_once(archive)
    assert reports(archive, "p") == [job["job"]]
    assert whole & {site.url(each.path) for each in site.requests} == set()
    assert len(tags(archive)) == 1
    assert list(archive.jobs.iterdir()) == []


def tells_how_far_it_is(archive: Archive, job: dict[str, Any]) -> None:
    """What status tells of an open job."""
    assert set(job) == {
        *("job", "publication", "due", "begun", "updated", "stage", "done", "known", "urls", "views", "bytes"),
        *(
            "documents",
            "unread",
            "state",
            "running",
            "reason",
            "failures",
            "again",
            "a_second",
            "left",
            "latest_end",
            "held",
            "orders",
        ),
    }
    assert job["urls"].get("done", 0) >= 1 and job["bytes"] > 0
    assert job_folder.load(archive.jobs / job["job"]) is not None
    told = run_command("status", "--archive", archive.root).out
    assert f"{job['job']}: interrupted" in told and "no agent runs" in told


def test_jobs_end_when_only_the_agent_is_killed(archive: Archive, site: Site) -> None:
    """They notice by their stdin, keep what they have, and the next start goes on."""
    endless(site)
    configure(archive, publication("p", site))
    with agent(archive) as running:
        fetches(site)
        running.process.kill()
        running.process.wait()
        job = until(lambda: job_of(archive, "p"), "the job is there")
        until(lambda: not (job_of(archive, "p") or {"running": False})["running"], "the job has stopped")
    hurry(site)
    run_once(archive)
    assert reports(archive, "p") == [job["job"]]


def test_an_interrupted_job_of_urls_is_finished_too(archive: Archive, site: Site) -> None:
    """Its definition is in its folder: no webarc.toml and no command line names it any more."""
    endless(site)
    configure(archive)
    with agent(archive, site.url("/")) as running:
        fetches(site)
        running.kill()
    hurry(site)
    run_once(archive)
    assert len(tags(archive)) == 1 and list(archive.jobs.iterdir()) == []


def test_crawl_resumes_a_job_by_its_name(archive: Archive, site: Site) -> None:
    endless(site)
    configure(archive, publication("p", site))
    with agent(archive) as running:
        fetches(site)
        running.kill()
    hurry(site)
    unknown = run_command("crawl", "--archive", archive.root, "--resume", "20200101T000000-p")
    job = job_of(archive, "p")
    assert job is not None
    assert unknown.code == 1 and job["job"] in unknown.err
    done = run_command("crawl", "--archive", archive.root, "--resume", job["job"])
    assert done.code == 0, done.err
    assert reports(archive, "p") == [job["job"]]


def test_crawl_of_a_publication(archive: Archive, site: Site) -> None:
    """Now, by the name in webarc.toml, options over its own settings; the scheduler counts it as a run."""
    configure(archive, publication("p", site, depth=0), publication("q", site))
    unknown = run_command("crawl", "--archive", archive.root, "--publication", "r")
    assert unknown.code == 1 and "there are: p, q" in unknown.err
    both = run_command("crawl", "--archive", archive.root, "--publication", "p", site.url("/"))
    assert both.code == 1
    done = run_command("crawl", "--archive", archive.root, "--publication", "p")
    assert done.code == 0, done.err
    assert crawls.arcs(archive, site.host) == {"index.html"}
    deeper = run_command("crawl", "--archive", archive.root, "--publication", "p", "--depth", "1")
    assert deeper.code == 0, deeper.err
    assert crawls.arcs(archive, site.host) == {"index.html", "a", "b"}
    run_once(archive)
    assert (len(reports(archive, "p")), len(reports(archive, "q"))) == (2, 1)


def test_a_deadline_ends_a_job_as_interrupted_with_what_it_has(archive: Archive, site: Site) -> None:
    """Seed 3, 3.3.2: the documents collected until then are kept; nothing is removed."""
    assert run_command("crawl", "--archive", archive.root, "--wait", "0", site.url("/")).code == 0
    site.remove("/b")
    endless(site)
    configure(archive, publication("p", site, max_duration="8 seconds"))
    run_once(archive, code=3)
    told = last(archive, "p")
    assert (told["state"], told["complete"]) == ("interrupted", False)
    assert told["warnings"] == ["max-duration"]
    assert "incomplete" in run_command("status", "--archive", archive.root).out
    kept = crawls.arcs(archive, site.host)
    assert {"index.html", "a", "b"} <= kept
    assert f"p{_QUICK}" not in kept
    assert told["arcs"]["removed"] == 0


def test_a_crawl_that_shrank_is_told_and_accepted_once(archive: Archive, site: Site) -> None:
    """The shrink guard: summary, status and exit code tell it; --accept-shrink overrides it."""
    endless(site)
    hurry(site, 30)
    configure(archive, publication("p", site))
    command = ("crawl", "--archive", archive.root, "--publication", "p")
    assert run_command(*command).code == 0
    for number in range(30):
        site.gone(f"/p{number}", 404)
    shrunk = run_command(*command)
    assert shrunk.code == 3
    told = last(archive, "p")
    assert told["complete"] is False
    assert any("accept-shrink" in each for each in told["warnings"])
    assert "accept-shrink" in run_command("status", "--archive", archive.root).out
    assert len(crawls.arcs(archive, site.host)) == 31
    assert run_command(*command, "--accept-shrink").code == 0
    assert last(archive, "p")["arcs"]["removed"] == 30


# -- jobs that fail ----------------------------------------------------------------------------------------------------


def test_a_failing_job_hurts_no_other_and_is_tried_again_when_due(archive: Archive, site: Site) -> None:
    """A filter that cannot be loaded, a setting that wget refuses: told in status and log; the agent goes on."""
    configure(
        archive,
        publication("bad", site, wget_args=["--no-such-option"], interval="3 seconds"),
        publication("good", site, interval="3 seconds"),
    )
    with agent(archive) as running:
        until(lambda: len(reports(archive, "good")) >= 2, "good runs")
        first = until(lambda: _failed(archive, "bad"), "bad has failed")
        assert "wget" in first["reason"]
        until(lambda: (archive.log / "agent.log").read_text("utf-8").count("CrawlFailed") >= 2, "it was tried again")
        assert "Traceback" in (archive.log / "agent.log").read_text("utf-8")
        configure(archive, publication("bad", site, interval="3 seconds"))
        running.signal(signal.SIGHUP)
        until(lambda: reports(archive, "bad"), "mended, it runs")
        until(lambda: not running.zombies(), "the dead are taken note of")
        assert running.stop() == 0


def _failed(archive: Archive, name: str) -> dict[str, Any] | None:
    job = job_of(archive, name)
    return job if job is not None and job["state"] == "failed" else None


def test_a_job_whose_filters_cannot_be_loaded_says_why(archive: Archive, site: Site) -> None:
    configure(archive, publication("p", site, filters=["no_such_filter"]))
    run_once(archive, code=2)
    job = job_of(archive, "p")
    assert job is not None and job["state"] == "failed" and "no_such_filter" in job["reason"]
    configure(archive, publication("p", site))
    run_once(archive)
    assert reports(archive, "p") == [job["job"]]


def test_the_agent_outlives_trouble_of_its_own(archive: Archive, site: Site) -> None:
    """Whatever a turn of its loop raises is logged, and it goes on when that is mended."""
    configure(archive, publication("p", site, interval="2 seconds"))
    with agent(archive) as running:
        until(lambda: reports(archive, "p"), "p ran")
        away = archive.reports.rename(archive.root / "away")
        until(lambda: "continues after this" in (archive.log / "agent.log").read_text("utf-8"), "it is told")
        if archive.reports.is_dir():  # a job that was just ending has made it anew
            shutil.rmtree(archive.reports)
        away.rename(archive.reports)
        before = len(reports(archive, "p"))
        until(lambda: len(reports(archive, "p")) >= before + 2, "p goes on")
        assert running.stop() == 0


def test_a_job_that_is_killed_is_failed_and_goes_on_when_due(archive: Archive, site: Site) -> None:
    endless(site)
    configure(archive, publication("p", site, interval="6 seconds"))
    with agent(archive) as running:
        fetches(site)
        job = job_of(archive, "p")
        assert job is not None
        os.kill(running.workers()[0], signal.SIGKILL)
        # Until the site is held no more the job cannot end, so that what is told of its death is not passed over.
        failed = until(lambda: _failed(archive, "p"), "it is told")
        assert "signal 9" in failed["reason"]
        hurry(site)
        until(lambda: job["job"] in reports(archive, "p"), "the same job is finished")
        assert running.stop() == 0


def test_job_folders_of_another_version_are_refused_and_left_alone(archive: Archive, site: Site) -> None:
    configure(archive, publication("p", site))
    folder = archive.jobs / "20200101T000000-p"
    folder.mkdir()
    (folder / "frontier.db").write_bytes(b"another time's")
    (folder / job_folder.ITEM_FILE).write_text(json.dumps({"version": 99}))
    run_once(archive)
    assert len(reports(archive, "p")) == 1
    assert {path.name for path in folder.iterdir()} == {"frontier.db", job_folder.ITEM_FILE}
    assert any("another version" in each for each in status(archive)["refused"])
    assert "another version" in run_command("status", "--archive", archive.root).out


# -- what status tells -------------------------------------------------------------------------------------------------


def held(until_set: threading.Event, then: Answer) -> Answer:
    """An answer that waits for an event."""

    def answer(exchange: Exchange) -> None:
        while not until_set.is_set():
            exchange.wait(0.05)
        then(exchange)

    return answer


def test_status_follows_a_job_through_its_states(archive: Archive, site: Site) -> None:
    """Waiting until the base document is there, then collecting; archived in the end (seed 3, figure 3.7)."""
    links = "".join(f'<a href="/p{number}">x</a>' for number in range(3))
    base, rest = threading.Event(), threading.Event()
    site.add_nasty("/", held(base, page(links)))
    for number in range(3):
        site.add_nasty(f"/p{number}", held(rest, page("p")))
    configure(archive, publication("p", site))
    seen: list[str] = []

    def follow() -> bool:
        job = job_of(archive, "p")
        if job is not None and (not seen or seen[-1] != job["state"]):
            seen.append(job["state"])
            {"waiting": base, "collecting": rest}.get(job["state"], rest).set()
        return job is None and bool(reports(archive, "p"))  # the report comes first, then the folder goes

    with agent(archive) as running:
        until(follow, "p ran")
        told = json.loads(run_command("status", "--archive", archive.root, "--json").out)
        assert running.stop() == 0
    assert [each for each in seen if each != "converting"] == ["waiting", "collecting"]
    expected = {"archive", "agent", "settings_faults", "settings_warnings", "kept_at_old_defaults", "browser"}
    expected |= {"publications", "jobs", "refused", "collection_faults", "notifications", "damage_met"}
    assert set(told) == expected
    one = told["publications"][0]
    assert set(one) == {"name", "urls", "interval", "next", "retired", "jobs", "last"}
    assert (one["name"], one["interval"], one["jobs"]) == ("p", "1 day", [])
    assert one["last"]["state"] == "archived" and one["last"]["complete"] is True
    assert parse_time(one["next"]) == begun(one["last"]["job"]) + timedelta(days=1)
    kept = job_folder.load_item(archive.reports / one["last"]["job"])
    assert kept is not None and kept.state is Phase.ARCHIVED and kept.urls["done"] == 4
