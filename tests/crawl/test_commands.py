"""The commands: exit codes, one clear line for each fault, help for each option, and reports."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from agent.cli import cli
from tests.support import crawls, nasty
from tests.support.crawls import crawl, end, run_command, start_command
from tests.support.site import Site
from tests.support.warcs import response, write
from tests.support.wire import page
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.metadata import CommitTag, from_epoch, now

pytestmark = pytest.mark.crawl


def _faults(done: crawls.Done) -> list[str]:
    assert "Traceback" not in done.err
    return [line for line in done.err.splitlines() if line.startswith("webarc-agent: ")]


# -- sums and warnings -------------------------------------------------------------------------------------------------


def test_the_sums_of_a_crawl_are_one_object_on_standard_output(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/gone">gone</a>')
    done = run_command("crawl", "--archive", archive.root, "--format", "json", site.url())
    sums = json.loads(done.out)
    assert done.code == 0 and sums["complete"] and sums["record"] == sums["job"] and sums["arcs"]["added"] == 1
    (tag,) = sums["commit_tags"]
    assert CommitTag.parse(tag).domain == site.host
    assert "1 added" in done.err and tag not in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is told of root")
def test_root_is_told_once_where_work_begins_alone(archive: Archive, site: Site) -> None:
    site.add_html("/", "x")
    warning = "running as root"
    assert run_command("crawl", "--archive", archive.root, site.url()).err.count(warning) == 1
    for words in (("crawl", "--help"), ("start", "--help"), ("crawl", "--dpeth", "1"), ("crawl", "--page"), ("crawl",)):
        done = run_command(*words)
        assert warning not in done.out + done.err
    assert warning not in run_command("crawl", "--archive", archive.root, "--quiet-not", site.url()).err


# -- faults ------------------------------------------------------------------------------------------------------------


def test_all_faults_of_settings_are_told(archive: Archive, site: Site) -> None:
    archive.settings.write_text(
        '[crawl]\ndepth = -1\ndepht = 3\nwait = "soon"\n[[publication]]\nname = "a b"\nurls = ["ftp://x/"]\n', "utf-8"
    )
    done = run_command("crawl", "--archive", archive.root, site.url())
    assert done.code == 1
    faults = _faults(done)
    for expected in ("crawl.depth:", "crawl.depht: there is no such setting; did you mean depth?", "crawl.wait:"):
        assert any(expected in fault for fault in faults), expected
    assert any(".name:" in fault for fault in faults) and any(".urls:" in fault for fault in faults)
    assert all(str(archive.settings) in fault for fault in faults)
    assert site.requests == []


def test_toml_that_is_none(archive: Archive, site: Site) -> None:
    archive.settings.write_text("[crawl\ndepth = 1", "utf-8")
    done = run_command("crawl", "--archive", archive.root, site.url())
    assert (done.code, len(_faults(done))) == (1, 1)
    assert "line 1" in done.err


def test_all_faults_of_options_are_told(archive: Archive, site: Site) -> None:
    options = ("--depth=-1", "--wait=-2", "--max-duration=soon", "--unchanged=maybe", "--min-share=7")
    done = run_command("crawl", "--archive", archive.root, *options, site.url())
    assert done.code == 1
    assert len(_faults(done)) == len(options)
    for name in ("depth", "wait", "max_duration", "unchanged", "min_share"):
        assert f"command line: {name}: " in done.err
    assert site.requests == []


def _crawl_input(archive: Archive, temporary: Path, given: bytes) -> crawls.Done:
    command = [*crawls.COMMAND, "crawl", "--archive", str(archive.root), "--wait=0", "--private-addresses", "--list=-"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, input=given, capture_output=True, env=environment, timeout=240, check=False)
    return crawls.Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_what_is_wrong_in_standard_input_is_told_and_nothing_is_left_of_it(
    archive: Archive, site: Site, tmp_path: Path
) -> None:
    left = tmp_path / "webarcfs-list-of-a-killed-process"
    left.mkdir()
    (left / "lock").touch()
    site.add_html("/a", "a")
    for given, code, says in (
        (b"# nothing\n", 1, "webarc-agent: standard input has no URL"),
        (gzip.compress(b"http://e.org/")[:-8], 1, "webarc-agent: standard input: Compressed file ended"),
        (f"no url at all\n{site.url('/a')}\n".encode(), 3, "standard input:1: no url at all is no URL"),
        (b"no\n" * 60 + site.url("/a").encode(), 3, "standard input: 10 further lines are no URLs"),
    ):
        done = _crawl_input(archive, tmp_path, given)
        assert (done.code, says in done.err) == (code, True), done.err
        assert "webarcfs-list-" not in done.err
        assert not list(tmp_path.glob("webarcfs-list-*"))
        assert not (archive.root / "lists").exists()


def test_an_option_that_is_no_number(archive: Archive, site: Site) -> None:
    done = run_command("crawl", "--archive", archive.root, "--depth", "deep", site.url())
    assert done.code == 1
    assert "command line: depth: 'deep' is not a whole number from 0 on, nor 'unlimited'" in done.err
    done = run_command("crawl", "--archive", archive.root, "--max-hosts", "many", site.url())
    assert done.code == 1 and "--max-hosts" in done.err and "many" in done.err


@pytest.mark.parametrize("url", ["ftp://e.example/", "mailto:a@e.example", "http://", "http://a b/", "http://e.org:x/"])
def test_refused_url(archive: Archive, url: str) -> None:
    done = run_command("crawl", "--archive", archive.root, url)
    assert (done.code, len(_faults(done))) == (1, 1)


def test_no_url(archive: Archive) -> None:
    assert run_command("crawl", "--archive", archive.root).code == 1


def test_no_archive(tmp_path: Path, site: Site) -> None:
    done = run_command("crawl", "--archive", tmp_path / "none", site.url())
    assert done.code == 2
    (fault,) = _faults(done)
    assert f"`webarc-agent init {tmp_path / 'none'}`" in fault
    assert run_command("crawl", site.url(), WEBARC_ARCHIVE=str(tmp_path / "none")).code == 2
    assert not (tmp_path / "none").exists()


def test_archive_of_a_later_version(archive: Archive, site: Site) -> None:
    archive.format.write_text("99\n")
    done = run_command("crawl", "--archive", archive.root, site.url())
    assert done.code == 2 and "99" in done.err


def test_init(tmp_path: Path) -> None:
    done = run_command("init", tmp_path / "new")
    assert done.code == 0 and "webarc-agent crawl --archive" in done.out
    assert run_command("init", tmp_path / "new").code == 1
    (tmp_path / "file").write_text("mine")
    done = run_command("init", tmp_path)
    assert (done.code, len(_faults(done))) == (1, 1)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "new"]
    assert run_command("init", tmp_path / "file").code == 1
    assert run_command("no-such-command").code == 1


def test_the_time_of_a_crawl_is_when_it_began(archive: Archive, site: Site) -> None:
    """/Cr-12.6/: of all its documents, and in its tag; the pages came later."""
    site.add_html("/", '<a href="/late">l</a>')
    site.add_nasty("/late", nasty.slow(2.5, then=page("late")))
    before = now().replace(microsecond=0)
    (tag,) = crawl(archive, site.url()).tags
    begun = crawls.meta(archive, site.host, "late").crawl_time
    assert begun == crawls.meta(archive, site.host, "index.html").crawl_time == CommitTag.parse(tag).crawl_time
    assert before <= begun <= from_epoch(int(site.requests[0].time))


# -- help --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_help_names_every_option(command: str) -> None:
    told = CliRunner().invoke(cli, [command, "--help"])
    assert told.exit_code == 0
    for parameter in cli.commands[command].params:
        if isinstance(parameter, click.Option) and parameter.hidden:  # an old name
            continue
        for option in (*parameter.opts, *parameter.secondary_opts):
            assert option.startswith("--") is False or option in told.output, option


def test_every_setting_is_an_option() -> None:
    options = {option for parameter in cli.commands["crawl"].params for option in parameter.opts}
    told = CliRunner().invoke(cli, ["crawl", "--help"]).output
    for name in crawls.fields_of(CrawlSettings):
        option = f"--{name.replace('_', '-')}"
        assert option in options and option in told
    defaults = re.sub(r"\s+", " ", told)
    assert "[default: 5]" in defaults and "[default: 10 days]" in defaults and "[default: mime]" in defaults


def test_options_win_over_the_file(archive: Archive, site: Site) -> None:
    archive.settings.write_text('[crawl]\ndepth = 0\nuser_agent = "from-the-file/1"\nwait = 0', "utf-8")
    site.add_html("/", '<a href="/a">a</a>')
    site.add_html("/a", "")
    done = run_command("crawl", "--archive", archive.root, "--depth", "1", site.url())
    assert done.code == 0
    assert crawls.arcs(archive, site.host) == {"index.html", "a"}
    assert {request.headers["user-agent"] for request in site.requests} == {"from-the-file/1"}


# -- what is told ------------------------------------------------------------------------------------------------------


def test_tags_and_nothing_else_on_standard_output(archive: Archive, site: Site) -> None:
    site.add_html("/", "home")
    done = run_command("--quiet", "crawl", "--archive", archive.root, "--wait=0", site.url().removeprefix("http://"))
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == archive.changes.read_text().split()


def test_reports(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/a">a</a><a href="/missing">m</a><a href="http://away.example/">w</a>')
    site.add_html("/a", "")
    outcome = crawl(archive, site.url(), keep_warc=True)
    folder = archive.reports / outcome.job
    assert {path.name for path in folder.iterdir()} >= {"crawl.log.gz", "summary.json", "item.json", "000001.warc"}
    assert not (folder / "crawl.log").exists()
    log = crawls.log_lines(archive, outcome)
    assert set(log) == {
        site.url(),
        site.url("/a"),
        site.url("/missing"),
        site.url("/robots.txt"),
        "http://away.example/",
    }
    line = log[site.url("/a")]
    assert (line.status, line.path, line.referrer, line.mime) == (200, "L", site.url(), "text/html")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.timestamp)
    assert re.fullmatch(r"\d{17}", line.fetched) and re.fullmatch(r"sha1:[A-Z2-7]{32}", line.digest)
    assert line.worker.startswith("#") and int(line.size) > 0 and line.source == "-"
    assert log["http://away.example/"].annotations == ("seed3:-5", "host", "depth:1")
    content = json.loads((folder / "summary.json").read_text("utf-8"))
    assert set(content) == {
        "job", "publication", "commit_tags", "complete", "started", "finished", "seconds", "urls", "documents", "bytes",
        "arcs", "redirects", "orders", "filter_errors", "hosts", "missing",
        "certificates", "needs_browser", "shown",
    }  # fmt: skip
    assert content["job"] == outcome.job and content["job"].endswith(f"-{content['publication']}")
    assert content["commit_tags"] == list(outcome.tags) and content["complete"] is True
    assert content["urls"] == {"200": 2, "404": 2, "-5000": 1}
    assert content["documents"] == {"text/html": 2}
    assert content["arcs"] == {"added": 2, "changed": 0, "removed": 0, "unchanged": 0}
    assert set(content["seconds"]) >= {"capture", "unpack", "filter", "extract", "describe", "publish", "index"}
    assert content["started"] <= content["finished"] and content["bytes"] > 0


def test_error_pages_can_be_kept(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/missing">m</a>')
    site.add("/missing", "<title>Not here</title>", status=404)
    crawl(archive, site.url(), keep_errors=True)
    assert crawls.meta(archive, site.host, "missing").title == "Not here"
    head = crawls.read_file(archive, site.host, "missing/headers.http")
    assert head is not None and head.startswith(b"HTTP/1.1 404 ")


# -- two at once -------------------------------------------------------------------------------------------------------


def _wait_for(site: Site, requests: int) -> None:
    for _ in range(500):
        if len(site.requests) >= requests:
            return
        time.sleep(0.02)
    raise AssertionError(f"only {len(site.requests)} requests came")


def test_one_publication_twice_at_once(archive: Archive, site: Site) -> None:
    site.add_nasty("/", nasty.slow(300.0))
    arguments = ("crawl", "--archive", archive.root, "--wait=0", site.url())
    first = start_command(*arguments)
    try:
        _wait_for(site, 2)
        second = run_command(*arguments)
        assert second.code == 2
        assert "is being crawled or imported already" in _faults(second)[0]
        first.terminate()
        assert first.wait(60) == 3
    finally:
        end(first)
    assert site.count("/") == 1


def test_two_publications_on_one_host_at_once(archive: Archive, site: Site) -> None:
    for side in "ab":
        site.add_html(f"/{side}", "".join(f'<a href="/{side}/{number}">x</a>' for number in range(20)))
        for number in range(20):
            site.add_html(f"/{side}/{number}", f'<a href="/{side}/{number}/x">x</a>')
            site.add_html(f"/{side}/{number}/x", f"{side} {number}")
    running = [start_command("crawl", "--archive", archive.root, "--wait=0", site.url(f"/{side}")) for side in "ab"]
    try:
        told = [process.communicate(timeout=240) for process in running]
        assert [process.returncode for process in running] == [0, 0], told
    finally:
        for process in running:
            end(process)
    tags = archive.changes.read_text().split()
    assert sorted(out.strip() for out, _ in told) == sorted(tags)
    assert len(set(tags)) == 2 and tags == sorted(tags)
    assert len(crawls.arcs(archive, site.host)) == 2 * 41
    assert site.max_open() == 1
    assert site.count("/robots.txt") == 2


def test_sigterm_keeps_what_was_fetched(archive: Archive, site: Site) -> None:
    site.add_html("/", "".join(f'<a href="/{number}">x</a>' for number in range(5)))
    for number in range(4):
        site.add_html(f"/{number}", "x")
    site.add_nasty("/4", nasty.slow(1.0))
    arguments = ("crawl", "--archive", archive.root, "--wait=0", site.url())
    running = start_command(*arguments)
    try:
        _wait_for(site, 7)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 3
    finally:
        end(running)
    done = run_command(*arguments)
    assert done.code == 0 and "resuming the interrupted job" in done.err
    assert len(crawls.arcs(archive, site.host)) == 6
    assert {site.count(f"/{number}") for number in range(4)} == {1}


def test_a_file_is_not_taken_for_a_host(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my urls.txt").write_text("http://a.example/\n", "utf-8")
    done = run_command("crawl", "--archive", archive.root, "my urls.txt")
    assert done.code == 1 and "`webarc-agent crawl --list 'my urls.txt'" in done.err
    assert not any(archive.jobs.iterdir())


def test_the_sums_of_an_import_name_its_crawls(archive: Archive, tmp_path: Path) -> None:
    file = write(tmp_path / "a.warc", [response("http://a.example/", b"<p>a")])
    sums = json.loads(run_command("import", "--archive", archive.root, file, "--format", "json").out)
    (crawl_sums,) = sums["crawls"]
    assert crawl_sums["whole"] is True and crawl_sums["complete"] is None and crawl_sums["arcs"]["added"] == 1
    assert sums["known"] == [] == sums["faults"]
    again = json.loads(run_command("import", "--archive", archive.root, file, "--format", "json").out)
    assert again["crawls"] == [] and again["known"] == [str(file)]
    plan = run_command("import", "--archive", archive.root, file, "--try", "--again", "--json")
    assert {"crawls", "hosts", "untaken", "losses", "remarks"} == json.loads(plan.out).keys()
