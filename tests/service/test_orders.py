"""Orders to open jobs: taken within two seconds, durable, each once; nothing is fetched twice for them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from agent.cli import cli
from agent.crawl import job_folder, job_orders
from agent.crawl.frontier import ADDED
from agent.crawl.job_folder import JobState, Phase
from agent.crawl.job_orders import OrderWord
from agent.operations import ordering
from tests.support import crawls, forked
from tests.support.agents import agent, configure, job_of, reports, status, summaries
from tests.support.crawls import end, run_command, start_command
from tests.support.nasty import slow
from tests.support.site import Site, page
from tests.support.waiting import until
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit, NotFound, UsageError, WebarcError
from webarcfs.archive.model.metadata import format_time, now

archive = crawls.archive
pytestmark = pytest.mark.crawl

_PAGES = 120


@pytest.fixture
def site() -> Iterator[Site]:
    """A start page, and pages that take a moment each."""
    with Site() as site:
        site.add_html("/", "".join(f'<a href="/p{number}">x</a>' for number in range(_PAGES)))
        for number in range(_PAGES):
            site.add_nasty(f"/p{number}", slow(0.1, page(f"<html><title>{number}</title></html>")))
        yield site


def publication(site: Site, name: str = "p", **more: Any) -> dict[str, Any]:
    return {"name": name, "urls": [site.url("/")], "interval": "1 day", "wait": 0.02, **more}


def order(archive: Archive, *words: str, code: int = 0) -> str:
    """The command, in this process; what it said."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            cli(["job", "--archive", str(archive.root), *words], standalone_mode=False)
    except WebarcError as error:
        assert error.exit_code == code
        return str(error)
    except click.UsageError as error:
        assert code == Exit.USAGE
        return str(error)
    assert code == 0, said.getvalue()
    return said.getvalue()


def quick(site: Site) -> None:
    for number in range(_PAGES):
        site.add_html(f"/p{number}", f"{number}")


def asked(site: Site) -> Counter[str]:
    return Counter(request.path for request in site.requests if request.path != "/robots.txt")


def fetches(site: Site, pages: int = 4) -> None:
    until(lambda: len(asked(site)) >= pages, "the job fetches", every=0.02)


def span_of_next(site: Site) -> float:
    """Seconds between the next request and the third behind it: six by a wait of two, less where one was late."""
    before = len(site.requests)
    until(lambda: len(site.requests) >= before + 4, "four more requests")
    first, *_, last = site.requests[before : before + 4]
    return last.time - first.time


def is_quiet(site: Site) -> bool:
    """Whether nothing is asked for, for a second."""
    before = len(site.requests)
    time.sleep(1.0)
    return len(site.requests) == before


def finished(archive: Archive, name: str = "p") -> dict[str, Any]:
    """The summary of the only job, once it has ended."""
    until(lambda: reports(archive, name) and not list(archive.jobs.iterdir()), "it has ended")
    (summary,) = summaries(archive, reports(archive, name))
    return summary


# -- under an agent ----------------------------------------------------------------------------------------------------


def test_pause_gives_places_back_and_resume_goes_on_without_fetching_twice(archive: Archive, site: Site) -> None:
    configure(archive, publication(site), max_instances=1)
    with Site() as other, agent(archive) as running:
        fetches(site)
        assert "taken (paused)" in order(archive, "pause", "p")  # else the command says after a while that it waits
        job = until(lambda: (known := job_of(archive, "p")) and not known["running"] and known, "its process has gone")
        assert (job["state"], job["held"], job["reason"], job["orders"]) == ("paused", "paused", "paused", 1)
        assert is_quiet(site)
        told = order(archive, "show", "p")
        assert ": paused, " in order(archive, "list") and "order 1: pause" in told
        assert "interrupted" not in told + run_command("status", "--archive", archive.root).out
        (waiting,) = re.findall(r"^URLs waiting +(\d+)$", told, re.MULTILINE)
        assert f"host {site.host}: {waiting} waiting, next" in told
        other.add_html("/", "the only place is free")
        configure(archive, publication(site), publication(other, "q"), max_instances=1)
        until(lambda: reports(archive, "q"), "another job has the place")
        assert job_of(archive, "p") is not None and asked(site)[f"/p{_PAGES - 1}"] == 0
        quick(site)
        assert "taken" in order(archive, "resume", "p")
        assert finished(archive)["complete"]
        assert running.stop() == 0
    assert set(asked(site).values()) == {1} and len(asked(site)) == _PAGES + 1


def test_a_paused_job_stays_paused_over_restarts_and_when_it_is_due(archive: Archive, site: Site) -> None:
    configure(archive, publication(site, interval="3 seconds"))
    with agent(archive) as running:
        fetches(site)
        order(archive, "pause", "p")
        running.kill()
    before = len(site.requests)
    with agent(archive) as running:
        time.sleep(4.0)
        assert running.workers() == [] and len(site.requests) == before
        assert (job_of(archive, "p") or {})["held"] == "paused"
        quick(site)
        configure(archive, publication(site))
        order(archive, "resume", "p")
        assert finished(archive)["complete"]
        assert running.stop() == 0
    again = {path for path, times in asked(site).items() if times > 1}
    assert len(again) <= 1, "one answer was under way when the agent was killed"


def test_stop_publishes_what_there_is_as_incomplete(archive: Archive, site: Site) -> None:
    quick(site)
    configure(archive, publication(site))
    run_command("start", "--archive", archive.root, "--once")
    (whole,) = reports(archive, "p")
    for number in range(_PAGES):
        site.add_nasty(f"/p{number}", slow(0.1, page(f"<html><title>new {number}</title></html>")))
    site.clear_log()
    configure(archive, publication(site, interval="1 second"))
    with agent(archive) as running:
        fetches(site)
        configure(archive, publication(site))
        said = order(archive, "stop", "p", "--reason", "  it has\n enough ")
        assert "taken" in said or reports(archive, "p") != [whole]
        until(lambda: len(reports(archive, "p")) == 2 and not list(archive.jobs.iterdir()), "it has ended")
        assert running.stop() == 0
    name = reports(archive, "p")[-1]
    (summary,) = summaries(archive, [name])
    log = crawls.log_lines(archive, name)
    cut = [line for line in log.values() if "stopped" in line.notes]
    assert not summary["complete"] and summary["arcs"]["removed"] == 0
    assert [(each["order"], each["reason"]) for each in summary["orders"]] == [("stop", "it has enough")]
    assert summary["orders"][0]["by"]
    assert ": it has enough" in run_command("report", "--archive", archive.root, name).out
    assert summary["arcs"]["changed"] == len(asked(site)) - 1 < _PAGES, "each page that was asked for is published"
    assert len(cut) == _PAGES - summary["arcs"]["changed"]
    assert {line.annotations[0] for line in cut} == {"seed3:-6"}
    assert set(asked(site).values()) == {1}
    assert len(crawls.arcs(archive, site.host)) == _PAGES + 1


def test_discard_ends_without_publishing_and_leaves_a_line(archive: Archive, site: Site) -> None:
    configure(archive, publication(site))
    with agent(archive) as running:
        fetches(site)
        order(archive, "discard", "p")
        summary = finished(archive)
        time.sleep(1.5)
        assert len(reports(archive, "p")) == 1, "it counts as a run"
        assert running.stop() == 0
    assert (summary["complete"], summary["commit_tags"]) == (False, [])
    assert list(archive.domains()) == []
    told = status(archive)["publications"][0]["last"]
    assert (told["state"], told["warnings"]) == ("interrupted", ["discarded"])
    assert Catalogue(archive).read(summary["job"])[0].state == "empty"


def test_exclude_leaves_out_what_waits_of_a_host(archive: Archive, site: Site) -> None:
    hosts = ("a.example", "b.example", "c.b.example")
    for host in hosts:
        site.add_html("/", "".join(f'<a href="/p{number}">x</a>' for number in range(_PAGES)), host=host)
    urls = [f"http://{host}/" for host in hosts]
    configure(archive, publication(site, urls=urls, wget_args=list(crawls.through(site.proxy))))
    with agent(archive) as running:
        until(lambda: all(site.count("/p1", host) for host in hosts), "the job fetches", every=0.02)
        told = order(archive, "exclude", "p", "*b.example")
        assert "taken" in told and "it means b.example, c.b.example\n" in told
        assert "it means no host that the job asks now" in order(archive, "wait", "p", "d.example", "0")
        time.sleep(1.2)
        before = Counter(request.host for request in site.requests)
        quick(site)
        summary = finished(archive)
        assert running.stop() == 0
    after = Counter(request.host for request in site.requests)
    assert [after[host] - before[host] for host in hosts[1:]] == [0, 0]
    assert after["a.example"] == _PAGES + 1
    assert not summary["complete"], "what only those pages lead to is not known"
    log = crawls.log_lines(archive, summary["job"])
    left_out = {line.url for line in log.values() if line.notes == ("left-out",)}
    assert left_out and all("b.example" in url for url in left_out)


def test_at_its_deadline_a_job_waits_and_is_extended(archive: Archive, site: Site) -> None:
    configure(archive, publication(site, max_duration="6 seconds", at_deadline="wait"))
    with agent(archive) as running:
        job = until(
            lambda: (known := job_of(archive, "p")) and known["held"] and not known["running"] and known, "it waits"
        )
        assert (job["held"], job["state"]) == ("deadline", "deadline")
        assert is_quiet(site) and 0 < len(asked(site)) < _PAGES
        assert "its time is over" in order(archive, "resume", "p", code=1)
        assert "is over already" in order(archive, "deadline", "p", "2020-01-01T00:00:00", code=1)
        quick(site)
        later = format_time(now() + timedelta(hours=1))
        assert "taken" in order(archive, "deadline", "p", later)
        assert finished(archive)["complete"]
        assert running.stop() == 0
    assert set(asked(site).values()) == {1} and len(asked(site)) == _PAGES + 1


def test_a_deadline_can_be_moved_both_ways_while_a_job_runs(archive: Archive, site: Site) -> None:
    configure(archive, publication(site, max_duration="1 day"))
    with agent(archive) as running:
        fetches(site)
        later = format_time(now() + timedelta(hours=2))
        assert "taken" in order(archive, "deadline", "p", later)
        assert (job_of(archive, "p") or {})["latest_end"] == later
        order(archive, "deadline", "p", "1 second")
        summary = finished(archive)
        assert running.stop() == 0
    cut = [line for line in crawls.log_lines(archive, summary["job"]).values() if "max-duration" in line.notes]
    assert cut and not summary["complete"]


def test_two_orders_at_once_are_both_taken(archive: Archive, site: Site) -> None:
    configure(archive, publication(site))
    with agent(archive) as running:
        fetches(site)
        both = [
            start_command("job", *words, "--archive", archive.root)
            for words in (("pause", "p"), ("exclude", "p", "x.y"))
        ]
        for each in both:
            assert each.wait(60) == 0
            end(each)
        until(lambda: (job_of(archive, "p") or {}).get("orders") == 2, "both are taken")
        order(archive, "stop", "p")
        assert not finished(archive)["complete"]
        assert running.stop() == 0


@pytest.mark.parametrize("then", ["resume", "stop"] if "ORDER_KILLS" in os.environ else ["resume"])
def test_an_order_that_follows_another_at_once(archive: Archive, site: Site, then: str) -> None:
    """While the wgets of a paused job still end, which takes as long as their pauses."""
    configure(archive, publication(site, wait=0.1))
    with agent(archive) as running:
        fetches(site)
        assert "taken (paused)" in order(archive, "pause", "p")
        assert "taken" in order(archive, then, "p")
        quick(site)
        if then == "resume":
            before = len(site.requests)
            until(lambda: len(site.requests) > before, "it goes on")
            order(archive, "stop", "p")
        assert not finished(archive)["complete"]
        assert running.stop() == 0
    assert set(asked(site).values()) == {1}


# -- a crawl in a terminal, no agent, ended jobs -----------------------------------------------------------------------


def test_a_crawl_in_another_terminal_takes_orders(archive: Archive, site: Site) -> None:
    configure(archive, publication(site))
    crawl = start_command("crawl", "--archive", archive.root, "--publication", "p")
    try:
        fetches(site)
        assert "taken (paused)" in order(archive, "pause", "p")
        until(lambda: is_quiet(site), "its wgets have ended")  # what is left is asked for once it goes on
        assert crawl.poll() is None
        order(archive, "resume", "p")
        before = len(site.requests)
        until(lambda: len(site.requests) > before, "it goes on")
        order(archive, "stop", "p")
        assert crawl.wait(60) == 3
    finally:
        end(crawl)
    summary = finished(archive)
    assert set(asked(site).values()) == {1}
    assert summary["arcs"]["added"] == len(asked(site)) < _PAGES


def test_a_job_that_nobody_runs_is_discarded_by_the_command(archive: Archive, site: Site) -> None:
    configure(archive, publication(site))
    with agent(archive) as running:
        fetches(site)
        assert running.stop() == 0
    assert "takes the order when it is resumed" in order(archive, "exclude", "p", "other.example", "--reason", "a trap")
    assert ": a trap (not taken yet)" in order(archive, "show", "p")
    (given,) = json.loads(order(archive, "show", "p", "--json"))["given"]
    assert (given["order"], given["reason"], given["taken"]) == ("exclude", "a trap", False)
    order(archive, "discard", "p")
    assert finished(archive)["commit_tags"] == []
    assert list(archive.domains()) == []


def test_orders_to_a_job_that_ended_or_that_makes_no_sense_are_refused(archive: Archive, site: Site) -> None:
    quick(site)
    configure(archive, publication(site))
    run_command("start", "--archive", archive.root, "--once")
    (job,) = reports(archive, "p")
    assert f"{job} has ended already" in order(archive, "pause", job, code=2)
    assert f"{job} has ended already" in order(archive, "pause", "p", code=2), "its newest crawl"
    assert "there are: none" in order(archive, "pause", "nobody", code=2)
    (archive.jobs / "20990101T000000-x").mkdir()
    for words, why in (
        (("x",), "say what to do"),
        (("x", "dance"), "dance is no order; there are: pause"),
        (("pause", "x", "now"), "unexpected extra argument"),
        (("deadline", "x"), "Missing parameter: time"),
        (("deadline", "x", "soon"), "neither a time"),
        (("deadline", "x", "2020-01-01T00:00:00"), "is over already"),
        (("exclude", "x", "http://a/"), "is no host"),
        (("exclude", "x", "a.example/old/*"), "leaves out whole hosts"),
        (("pause", "x", "--reason", "x" * 501), "500 characters at most"),
        (("pause", "x", "--reason", "\x1b[2J"), "without control characters"),
        (("list", "--reason", "because"), "No such option"),
    ):
        with pytest.raises((UsageError, click.UsageError), match=why):
            cli(["job", "--archive", str(archive.root), *words], standalone_mode=False)
    assert not (archive.jobs / "20990101T000000-x" / "orders").exists()


def test_orders_get_numbers_of_their_own_and_one_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    for number, word in enumerate(OrderWord, 1):
        assert job_orders.give(tmp_path, word, by="me").number == number == job_orders.last(tmp_path)
    (tmp_path / "orders" / "3.json").write_text('{"word": "dance"}')
    (tmp_path / "orders" / "7.json").write_text("{")
    (tmp_path / "orders" / "notes.txt").write_text("")
    (tmp_path / "orders" / "2.json").write_text('{"word": "stop", "by": "me"}')
    found = job_orders.after(tmp_path, 1)
    assert [each.number for each in found] == [2, 4, 5, 6, 8] and found[0].reason == "", "as older versions wrote it"
    assert job_orders.give(tmp_path, OrderWord.STOP).number == 9
    assert [path.name for path in (tmp_path / "orders").glob(".*")] == []
    with pytest.raises(NotFound, match="has ended already"):
        job_orders.give(tmp_path / "gone", OrderWord.STOP)


def test_an_order_is_on_the_disk_before_its_command_answers(archive: Archive, tmp_path: Path) -> None:
    """By the system calls."""
    job = archive.jobs / "20990101T000000-x"
    job.mkdir()
    trace = tmp_path / "trace"
    traced = ["strace", "-f", "-y", "-e", "trace=fsync,link,linkat,write", "-o", str(trace)]
    subprocess.run(
        [*traced, *crawls.COMMAND, "job", "pause", "x", "--archive", archive.root], check=True, capture_output=True
    )
    calls = trace.read_text().splitlines()
    (written,) = (number for number, call in enumerate(calls) if "fsync" in call and "/orders/." in call)
    (named,) = (number for number, call in enumerate(calls) if "link" in call and "1.json" in call)
    (folder,) = (number for number, call in enumerate(calls) if "fsync" in call and "/orders>" in call)
    (told,) = (number for number, call in enumerate(calls) if "write(1" in call and "pause" in call)
    assert written < named < folder < told
    assert json.loads((job / "orders" / "1.json").read_text())["word"] == "pause"


@pytest.mark.parametrize("word", os.environ.get("ORDER_KILLS", "pause").split())
def test_a_kill_amid_an_order_loses_and_doubles_nothing(archive: Archive, site: Site, word: str) -> None:
    """kill -9 of the job's process a moment after the order, again and again; then all goes on."""
    configure(archive, publication(site))
    with agent(archive) as running:
        fetches(site)
        job_orders.give(archive.jobs / str((job_of(archive, "p") or {})["job"]), OrderWord(word),
                    "nowhere.example" if word == "exclude" else "")  # fmt: skip
        for moment in (0.3, 0.55, 0.1):
            time.sleep(moment)
            for pid in running.workers():
                os.kill(pid, signal.SIGKILL)
        running.kill()
    quick(site)
    with agent(archive) as running:
        if word == "pause":
            until(lambda: (job_of(archive, "p") or {}).get("held") == "paused", "it is paused")
            order(archive, "resume", "p")
        summary = finished(archive)
        assert running.stop() == 0
    assert summary["complete"] == (word == "pause")
    assert (len(summary["commit_tags"]) == 0) == (word == "discard")
    assert max(asked(site).values()) <= 2 and sum(times > 1 for times in asked(site).values()) <= 4
    assert run_command("verify", "--archive", archive.root).code == 0


# -- URLs and waits ----------------------------------------------------------------------------------------------------


def test_a_running_job_takes_urls_and_says_what_it_makes_of_them(archive: Archive, site: Site) -> None:
    """S-order-3: of its hosts alone, and no private address is opened by it; each is fetched once."""
    site.add_html("/forgotten", "<a href='/behind'>x</a><img src='/forgotten.png'>")
    for place in ("/behind", "/forgotten.png"):
        site.add_html(place, place)
    configure(archive, publication(site, exclude_hosts=["left.example"]))
    with agent(archive) as running:
        fetches(site)
        urls = (site.url("/forgotten"), "http://other.example/", "http://10.0.0.1/", "http://left.example/x")
        told = order(archive, "add", "p", *urls, "--reason", "no page links to it")
        assert f"{urls[0]}: waits" in told or f"{urls[0]}: was asked for" in told
        assert f"{urls[1]}: is not asked for, Its host is none" in told
        assert f"{urls[2]}: is not asked for" in told and f"{urls[3]}: is not asked for, The setting" in told
        quick(site)
        summary = finished(archive)
        assert running.stop() == 0
    assert summary["complete"] and asked(site)["/forgotten"] == asked(site)["/behind"] == 1
    assert {"forgotten", "forgotten.png", "behind"} <= crawls.arcs(archive, site.host)
    lines = crawls.log_lines(archive, summary["job"])
    assert [lines[url].notes for url in urls[1:]] == [("host",), ("host",), ("excluded-host",)]


def test_an_added_url_that_failed_is_asked_for_once_more(archive: Archive, site: Site) -> None:
    quick(site)
    site.add_html("/p3", "x" * 200_000)
    site.add_html("/p4", "".join(f'<a href="/q{number}">x</a>' for number in range(_PAGES)))
    for number in range(_PAGES):
        site.add_nasty(f"/q{number}", slow(0.1, page(f"<html><title>{number}</title></html>")))
    configure(archive, publication(site, max_file_size=100_000))
    with agent(archive) as running:
        until(lambda: asked(site)["/q1"], "the first batch was read", every=0.02)
        site.add_html("/p3", "x")
        said = order(archive, "add", "p", site.url("/p3"))  # "waits", or "is taken in …" on a busy machine
        assert f"{site.url('/p3')}: " in said and "is not asked for" not in said
        summary = finished(archive)
        assert running.stop() == 0
    assert summary["complete"] and asked(site)["/p3"] == 2 and "p3" in crawls.arcs(archive, site.host)


def test_what_was_added_too_late_is_named(archive: Archive, site: Site) -> None:
    """The order was taken, and the job was killed when it had fetched all."""
    quick(site)
    configure(archive, publication(site))
    command = [sys.executable, "-m", "tests.kill.victim", "captured", "crawl", "--archive", str(archive.root)]
    forked.run([*command, "--publication", "p"])
    [folder] = archive.jobs.iterdir()
    with job_folder.opened(folder) as frontier, frontier.changes():
        frontier.set(ADDED, ["http://late.example/x"])
    done = run_command("crawl", "--archive", archive.root, "--publication", "p")
    assert done.code == 3 and "not asked for, since all was fetched: http://late.example/x" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("add",),
        ("add", "ftp://x.example/"),
        ("add", *[f"http://x.example/{number}" for number in range(101)]),
        ("wait", "x.example"),
        ("wait", "x.example", "nan"),
        ("wait", "x.example/a", "1"),
        ("wait", "x.example", "soon"),
        ("wait", "x.example", "4000"),
    ],
)
def test_orders_about_urls_that_make_no_sense_are_told(archive: Archive, site: Site, words: tuple[str, ...]) -> None:
    configure(archive, publication(site))
    with agent(archive) as running:
        fetches(site, 1)
        assert order(archive, words[0], "p", *words[1:], code=1)
        order(archive, "discard", "p")
        assert running.stop() == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "http://x.example/?a=1&b=2"), "`webarc-agent crawl --page 'http://x.example/?a=1&b=2'` fetches these"),
        (("wait", "x.example", "5"), 'set host = "x.example" and wait = 5 in a'),
    ],
)
def test_an_order_that_comes_when_all_is_fetched_is_told_what_to_do(words: tuple[str, ...], says: str) -> None:
    state = JobState(job="20261121T030000-p", publication="p", state=Phase.CONVERTING)
    with pytest.raises(UsageError) as caught:
        ordering.judged(state, words[0], words[1:])
    assert says in str(caught.value)


def test_a_wait_holds_for_a_host_from_now_on_and_over_restarts(archive: Archive, site: Site) -> None:
    """S-order-3."""
    configure(archive, publication(site))
    with agent(archive) as running:
        fetches(site)
        assert "taken" in order(archive, "wait", "p", site.host, "2")
        quick(site)
        time.sleep(1.0)
        assert span_of_next(site) > 3.0
        (host,) = json.loads(order(archive, "show", "p", "--json"))["hosts"]
        assert (host["host"], host["wait"], host["last"]) == (site.host, 2.0, "status 200") and host["waiting"]
        running.kill()
    with agent(archive) as running:
        until(lambda: (known := job_of(archive, "p")) and known["running"], "it is resumed")
        assert span_of_next(site) > 3.0
        assert f"host {site.host}: " in order(archive, "show", "p")
        order(archive, "wait", "p", site.host, "0")
        assert finished(archive)["complete"]
        assert running.stop() == 0
