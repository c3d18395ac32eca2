"""Patches of crawls: what a crawl did not get is asked for again, and belongs to the record of that crawl."""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.catalogue.recording import catch_up_records
from agent.crawl import crawl_log, job_folder
from agent.crawl.job_folder import Definition, Patch
from agent.jobs import crawljob
from agent.operations import patching
from agent.operations.patching import BoundOfCrawl
from agent.reports import missing_urls
from agent.reports.tables import LogLine
from tests.support import crawls, desks
from tests.support.crawls import run_command
from tests.support.nasty import slow
from tests.support.site import Site, page
from tests.support.waiting import until
from tests.support.wire import nobody_there
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.catalogue.catalogue import Catalogue, captures
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Exit, TookTooLong, UsageError
from webarcfs.archive.system import clocks, locks

pytestmark = pytest.mark.crawl

_OPTIONS = ("--wait", "0", "--private-addresses")


def _configure(archive: Archive, site: Site, **more: Any) -> None:
    lines = {"name": "p", "urls": [site.url("/")], "wait": 0, "sitemaps": False, "min_share": 0, **more}
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in lines.items())
    archive.settings.write_text(f"[[publication]]\n{text}\n")


def _pages(site: Site, *, broken: bool) -> None:
    """A start page with a page that fails while `broken`, a page that is gone, and one that is as it is."""
    site.add_html("/", "<a href='/a'>a</a><a href='/b'>b</a><a href='/gone'>c</a>")
    site.add_html("/a", "a")
    site.gone("/gone")
    if broken:
        site.gone("/b", 500)
    else:
        site.add_html("/b", "b<img src='/b.png'><a href='/further'>x</a>")
        site.add_html("/b.png", "x")
        site.add_html("/further", "x")


@contextmanager
def _slow(site: Site, path: str) -> Iterator[None]:
    """A document that takes a minute, as long as it lasts."""
    site.add_nasty(path, slow(60.0, page("x")))
    yield
    site.add_html(path, "x")


def _run(archive: Archive, *arguments: str) -> crawls.Done:
    return run_command("crawl", "--archive", archive.root, *arguments)


def _record(archive: Archive) -> Record:
    (record,) = Catalogue(archive).records()
    return record


def _arcs(archive: Archive, site: Site) -> set[str]:
    return crawls.arcs(archive, site.host)


def test_a_patch_asks_for_what_failed_and_for_what_that_needs(archive: Archive, site: Site) -> None:
    """S-patch-1."""
    _configure(archive, site)
    _pages(site, broken=True)
    first = _run(archive, "--publication", "p")
    before = _record(archive)
    assert first.code == Exit.INCOMPLETE
    assert (
        f"`webarc-agent crawl --missing {before.job_name} --archive {archive.root}` asks again for what failed"
        in first.err
    )
    _pages(site, broken=False)
    site.clear_log()
    done = _run(archive, "--missing", "p")
    assert done.code == 0, done.err
    asked = [request.path for request in site.requests if request.path != "/robots.txt"]
    assert sorted(asked) == ["/b", "/b.png"]
    assert {"a", "b", "b.png"} <= _arcs(archive, site) and "further" not in _arcs(archive, site)
    record = _record(archive)
    assert len(record.parts) == 2 and record.parts[0] == before.parts[0]
    assert (record.id, record.state, record.complete) == (before.id, before.state, before.complete)
    event = record.events[-1]
    assert event.what == "patched" and event.text.startswith("1 of 1 URLs came, ")
    done = _run(archive, "--missing", "p")
    assert (done.code, "nothing failed" in done.out) == (0, True)
    assert "is asked for by its word: status 404 1" in done.out, "what it leaves out is said"
    assert f"`webarc-agent crawl --missing {record.job_name} --word 'status 404' --archive" in done.out
    done = run_command("report", "--archive", archive.root, "p", "--url", site.url("/b"))
    assert f"{site.url('/b')} is archived" in done.out, done.out
    patched = json.loads(run_command("report", "--archive", archive.root, "--json", "p").out)["summary"]
    assert patched["patched_by"] and patched["missing"]["words"] == {"status 404": 1}, "what is missing now"
    desks.with_people(archive)
    with desks.served(archive) as served:
        shown = served.client("anna").get(f"/report/{before.job_name}").words
    assert "not archived: 1: status 404 1" in shown, shown


def test_a_patch_of_named_urls_asks_for_exactly_these(archive: Archive, site: Site) -> None:
    """S-patch-4: a page that is too deep, one that nobody links to, one that was gone; not what an exclude names."""
    far = "http://far.example/"
    _configure(archive, site, depth=1)
    with archive.settings.open("a") as file:
        file.write('[[publication.exclude]]\nmatch = "*/left-out"\nreason = "a test"\n')
    site.add_html("/", f"<a href='/a'>a</a><a href='/gone'>g</a><a href='/left-out'>l</a><a href='{far}'>f</a>")
    site.add_html("/a", "<a href='/deep'>d</a>")
    site.gone("/gone")
    for path in ("/deep", "/unlinked", "/left-out"):
        site.add_html(path, f"{path}<img src='{path}.png'><a href='/further'>x</a>")
        site.add(f"{path}.png", b"x", "image/png")
    _run(archive, "--publication", "p")
    before = _record(archive)
    site.back("/gone")
    site.add_html("/gone", "here again")
    site.clear_log()
    named = [site.url(path) for path in ("/deep", "/unlinked", "/gone", "/left-out", "/a")]
    done = _run(archive, "--missing", "p", *named, far)
    assert done.code == 0, done.err
    assert "asking again for 3 URLs" in done.err
    assert "it does not ask for what else did not come: archived 1, excluded 1, host 1" in done.err
    asked = sorted(request.path for request in site.requests if request.path != "/robots.txt")
    assert asked == ["/deep", "/deep.png", "/gone", "/unlinked", "/unlinked.png"]
    record = _record(archive)
    assert record.id == before.id and record.events[-1].text.startswith("3 of 3 URLs came, ")
    assert {"deep", "unlinked", "gone", "unlinked.png"} <= _arcs(archive, site)
    told = run_command("report", "--archive", archive.root, "p", "--url", site.url("/unlinked")).out
    assert f"{site.url('/unlinked')} is archived" in told, told
    done = _run(archive, "--missing", "p", site.url("/left-out"))
    assert done.code == 0 and "nothing of that is missing" in done.out and "excluded 1" in done.out
    assert _run(archive, "--missing", "p", "--word", "depth", site.url("/deep")).code == Exit.USAGE
    many = [site.url(f"/{at}") for at in range(patching.MOST_URLS + 1)]
    with pytest.raises(UsageError, match="too many"):
        patching.plan(archive, settings_files.load(archive.settings)[0], before.job_name, urls=many)


def test_a_patch_is_read_as_it_was_written(archive: Archive) -> None:
    """Also one of an older version, without named URLs; one without them is written as those versions read it."""
    folder = job_folder.new_folder(archive, "p")
    by_word = Patch(record="r", job="j", word="timeout", url="e.org", by="a")
    named = Patch(record="r", job="j", urls=("http://e.org/a", "http://e.org/b"))
    for patch in (by_word, named, Patch(record="r", job="j", cut=True)):
        shutil.rmtree(folder)
        folder.mkdir()
        job_folder.save(folder, Definition(publication=Publication(name="p", urls=("http://e.org/",)), patch=patch))
        read = job_folder.load(folder)
        assert read is not None and read.patch == patch
        written = json.loads((folder / job_folder.FILE).read_text())["patch"]
        assert ("urls" in written, "cut" in written) == (bool(patch.urls), patch.cut)


def test_the_report_says_how_a_url_is_asked_for_again(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    for named in (("p",), (site.host,), ()):
        done = run_command("report", "--archive", archive.root, *named, "--url", site.url("/b"))
        assert "is not archived" in done.out, named
    unseen = run_command("report", "--archive", archive.root, "--url", site.url("/never"))
    assert unseen.code != 0 and "no page that they read has a link to it" in unseen.out
    assert f"  {site.url('/b')}: status 500" in run_command("report", "--archive", archive.root, "p").out
    [line] = [line for line in done.out.splitlines() if "asks for it again" in line]
    command = shlex.split(line.partition("`")[2].partition("`")[0])
    assert command[:2] == ["webarc-agent", "crawl"] and record.job_name in command
    assert _run(archive, *command[2:]).code == 0 and "b" in _arcs(archive, site)


def _broken(archive: Archive, site: Site, **more: Any) -> Record:
    """The record of a crawl that lacks a page, which the site has by now."""
    _configure(archive, site, **more)
    _pages(site, broken=True)
    assert _run(archive, "--publication", "p").code == Exit.INCOMPLETE
    _pages(site, broken=False)
    site.clear_log()
    return _record(archive)


def _decide(archive: Archive, *words: str) -> None:
    done = run_command("record", words[0], "--archive", archive.root, *words[1:])
    assert done.code == 0, done.err


def test_what_fails_again_is_named_and_stays_missing(archive: Archive, site: Site) -> None:
    _broken(archive, site)
    _pages(site, broken=True)
    done = _run(archive, "--missing", "p")
    assert done.code == Exit.INCOMPLETE and f"{site.url('/b')} gave nothing: 500" in done.err
    assert len(_record(archive).parts) == 1, "nothing came"
    _pages(site, broken=False)
    site.gone("/b.png", 500)
    assert _run(archive, "--missing", "p").code == Exit.INCOMPLETE
    site.add_html("/b.png", "x")
    site.clear_log()
    (second,) = {path.name for path in archive.reports.glob("*+patch")} - {
        path.name for path in sorted(archive.reports.glob("*+patch"))[:1]
    }
    done = _run(archive, "--missing", second)
    assert done.code == 0, "a patch names the crawl that it patched"
    assert [request.path for request in site.requests if request.path != "/robots.txt"] == ["/b.png"]
    assert len(_record(archive).parts) == 3


def test_words_and_patterns_choose_and_what_fits_nothing_is_told(archive: Archive, site: Site) -> None:
    job = _broken(archive, site).id
    for options, says in (
        (("--word", "furlong"), "'furlong' is no word of crawl.log; there are: host, excluded"),
        (("--url", "http://"), "is no host or part of one"),
        (("--depth", "2"), "leave --depth out"),
        (("--page",), "--page goes with URLs"),
        ((site.url("/"), "--word", "timeout"), "URLs are asked for without them"),
    ):
        done = _run(archive, "--missing", job, *options)
        assert done.code == Exit.USAGE and says in done.err, done.err
    for options in (("--word", "dns"), ("--word", "source:HAR"), ("--url", "other.example")):
        done = _run(archive, "--missing", job, *options)
        assert done.code == 0 and "nothing of that is missing" in done.out, done.err
        assert "did not come: status 404 1, status 500 1" in done.out
    assert not site.requests
    assert "--word and --url go with --missing" in _run(archive, site.url("/"), "--word", "dns").err
    site.add_html("/gone", "x")
    done = _run(archive, "--missing", job, "--word", "404")
    assert done.code == 0, done.err
    assert site.count("/gone") == 1 and site.count("/b") == 0
    done = _run(archive, "--missing", job, "--word", "status 500", "--url", f"http://{site.host}/b*")
    assert done.code == 0 and "b" in _arcs(archive, site)


def test_another_patch_of_the_record_does_not_take_the_place_of_one_that_waits(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    settings, _ = settings_files.load(archive.settings)
    page = patching.plan(archive, settings, record.id, url=site.url("/b"))
    gone = patching.plan(archive, settings, record.id, word="status 404")
    by_another = dataclasses.replace(page.patch, by="another")
    again = dataclasses.replace(page, definition=dataclasses.replace(page.definition, patch=by_another))
    first, second = patching.begin(archive, page), patching.begin(archive, gone)
    assert first != second and patching.begin(archive, again) == first
    site.add_html("/gone", "x")
    for folder in (first, second):
        done = _run(archive, "--resume", folder.name)
        assert done.code == 0, done.err
    assert {"b", "gone"} <= _arcs(archive, site) and len(_record(archive).parts) == 3


@pytest.mark.parametrize(
    ("decisions", "says"),
    [
        ((("discard", "ID", "--reason", "x"),), "it is discarded"),
        ((("reject", "ID", "--reason", "x"),), "it is rejected"),
        ((("release", "ID"),), "withdraw it first"),
        ((("release", "ID"), ("withdraw", "ID", "--reason", "x")), ""),
        ((), ""),
    ],
)
def test_the_state_of_the_record_decides_whether_it_takes_a_patch(
    archive: Archive, site: Site, decisions: tuple[tuple[str, ...], ...], says: str
) -> None:
    """S-patch-2: a record that readers see by a person's decision takes none; of a held one readers see nothing."""
    record = _broken(archive, site, release="by-hand")
    for words in decisions:
        _decide(archive, *(record.id if word == "ID" else word for word in words))
    done = _run(archive, "--missing", record.id)
    if says:
        assert done.code and says in done.err and not site.requests
        return
    assert done.code == 0, done.err
    after = _record(archive)
    assert after.state is RecordState.COUNTED and len(after.parts) == 2 and all(part.is_held for part in after.parts)
    assert not list(Gate(archive, Reader()).records())
    _decide(archive, "release", record.id)
    assert _record(archive).state is RecordState.RELEASED


def test_a_withdrawn_crawl_of_an_automatic_publication_stays_withdrawn(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    _decide(archive, "withdraw", record.id, "--reason", "x")
    assert _run(archive, "--missing", record.id).code == 0
    after = _record(archive)
    assert after.state is RecordState.COUNTED and [part.is_held for part in after.parts] == [False, True]


def test_only_the_newest_crawl_of_a_publication_is_patched(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    assert _run(archive, "--publication", "p").code == 0
    done = _run(archive, "--missing", record.id)
    assert done.code and "is a newer crawl of p; patch that one" in done.err
    assert "nothing failed" in _run(archive, "--missing", "p").out


def test_what_the_end_of_a_crawl_left_is_asked_for_by_its_word_and_what_is_resumed_leads_there(
    archive: Archive, site: Site
) -> None:
    """S-patch-1: the exit code is 3 where that is all; the bound that ended the crawl is named, if it still holds."""
    _configure(archive, site, max_total_size=2500)
    site.add_html("/", "<a href='/a'>a</a><a href='/b'>b</a><a href='/c'>c</a>")
    for path in ("/a", "/b", "/c"):
        site.add_html(path, path + "x" * 1_500)
    done = _run(archive, "--publication", "p")
    record = _record(archive)
    job, command = record.job_name, f"`webarc-agent crawl --missing {record.job_name} --word max-total-size --archive"
    assert done.code == Exit.INCOMPLETE and command in done.err
    done = _run(archive, "--missing", "p")
    assert done.code == Exit.INCOMPLETE and f"{job}: nothing failed; what did not come for" in done.out
    assert command in done.out and "max_total_size is 2500, and bounds what is asked for again as well" in done.err
    assert json.loads(_run(archive, "--missing", "p", "--json").out)["missing"] == 0
    for words in (("crawl", "--resume", "p"), ("crawl", "--resume", record.id), ("job", "resume", "p")):
        done = run_command(*words, "--archive", archive.root)
        assert done.code and f"{job} has ended already" in done.err and f"crawl --missing {job}" in done.err
    done = run_command("job", "resume", "nobody", "--archive", archive.root)
    assert "there is no open job nobody; there are: none" in done.err
    done = _run(archive, "--missing", "p", "--word", "max-total-size", "--max-total-size", "1 MB")
    assert done.code == 0 and "bounds what" not in done.err and {"a", "b", "c"} <= _arcs(archive, site)
    assert _run(archive, "--missing", "p").code == 0


@pytest.mark.parametrize(
    ("then", "now", "holds"),
    [(900, 900, True), (900, 1_000, False), (900, 0, False), (0, 900, True), (900, 100, True),
     (Interval(1, "day"), Interval(24, "hour"), True), (Interval(1, "day"), Interval(1, "month"), False)],
)  # fmt: skip
def test_a_bound_holds_unless_it_was_raised(then: int | Interval, now: int | Interval, *, holds: bool) -> None:
    assert BoundOfCrawl("max_total_size", then, now).holds is holds


def test_jobs_that_are_unknown_or_published_nothing_are_told(archive: Archive, site: Site) -> None:
    assert "there is no report" in _run(archive, "--missing", "nowhere").err
    _configure(archive, site)
    site.gone("/", 500)
    assert _run(archive, "--publication", "p").code == Exit.INCOMPLETE
    done = _run(archive, "--missing", "p")
    assert done.code and "published nothing" in done.err


def test_a_dead_host_of_resources_is_asked_again_as_it_was(archive: Archive, site: Site) -> None:
    """Its host is none of the crawl's: it is a resource still, and its server is told the page. Excludes hold."""
    with nobody_there() as host:
        away, port = f"http://{host}", int(host.partition(":")[2])
    site.add_html("/", f"<link rel=stylesheet href='{away}/a.css'><a href='/page'>x</a>")
    site.add_html("/page", f"<img src='{away}/i.png'><a href='{away}/page'>x</a>")
    _configure(archive, site, private_addresses=True)
    assert _run(archive, "--publication", "p").code == 0, "a host of resources alone loses nothing"
    before = _record(archive)
    assert {(lack.host, lack.urls) for lack in before.missing} == {(host, 2)}
    with Site(port) as other:
        other.add("/a.css", "a{background:url(/b.png)}", "text/css")
        for place in ("/i.png", "/b.png"):
            other.add(place, "x", "image/png")
        other.add_html("/page", "x")
        done = _run(archive, "--missing", "p")
        assert done.code == 0, done.err
        asked = {request.path: request.headers.get("referer", "") for request in other.requests}
    assert asked.keys() - {"/robots.txt"} == {"/a.css", "/i.png", "/b.png"}
    assert {asked["/a.css"], asked["/i.png"]} == {site.url("/")}
    record = _record(archive)
    assert record.domains == (site.host, host)
    assert record.missing == () and (before.resources.hosts, record.resources.hosts) == (0, 1)
    assert record.resources.files == 3 and record.resources.bytes > 0
    assert {
        line.path for line in crawls.log_lines(archive, sorted(p.name for p in archive.reports.iterdir())[-1]).values()
    } >= {"E", "LE"}


def test_a_host_of_pages_stays_one_where_only_an_image_is_asked_for(archive: Archive, site: Site) -> None:
    """Its commit, its documents, its record and its report say so."""
    site.add_html("/", "<img src='/i.png'>")
    site.gone("/i.png", 500)
    _configure(archive, site)
    _run(archive, "--publication", "p")
    before = _record(archive)
    site.add("/i.png", "x", "image/png")
    done = _run(archive, "--missing", "p")
    assert done.code == 0, done.err
    after = _record(archive)
    assert len(after.parts) == 2 and not any(part.is_resource for part in after.parts)
    assert (after.domains, after.sites) == (before.domains, before.sites)
    head = crawls.store(archive, site.host).head()
    assert head is not None and head.message.has_pages and not head.message.has_resources
    assert crawls.meta(archive, site.host, "i.png").role == "page"
    (patch,) = archive.reports.glob("*+patch")
    (end,) = crawls.summary_of(archive, patch.name)["hosts"]
    assert (end["role"], end["complete"]) == ("page", True)


def test_settings_of_now_hold(archive: Archive, site: Site) -> None:
    """An exclude that came since the crawl leaves the URL out, and says so."""
    _broken(archive, site, exclude_hosts=["x.example"])
    with archive.settings.open("a") as settings:
        settings.write(f'\n[[publication.exclude]]\nmatch = "{site.host}/b"\nreason = "private"\n')
    done = _run(archive, "--missing", "p")
    assert done.code == Exit.INCOMPLETE and "gave nothing: -5000, excluded" in done.err
    assert not [request for request in site.requests if request.path == "/b"]


def test_a_crawl_by_hand_is_patched_by_its_own_settings(archive: Archive, site: Site) -> None:
    _pages(site, broken=True)
    assert run_command("crawl", "--archive", archive.root, *_OPTIONS, "--depth", "1", site.url("/")).code
    _pages(site, broken=False)
    record = _record(archive)
    before = Catalogue(archive).file(f"publications/{record.publication}.json")
    assert _run(archive, "--missing", record.id).code == 0
    assert Catalogue(archive).file(f"publications/{record.publication}.json") == before
    assert {"b", "b.png"} <= _arcs(archive, site)


def test_a_patch_that_is_killed_goes_on_and_what_came_is_not_fetched_again(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    with _slow(site, "/b.png"):
        running = crawls.start_command("crawl", "--archive", archive.root, "--missing", "p")
        until(lambda: site.count("/b.png"), "it fetches")
        running.kill()
        running.wait()
    assert len(_record(archive).parts) == 1
    (folder,) = archive.jobs.iterdir()
    says = _run(archive, "--missing", folder.name).err
    assert f"crawl --resume {folder.name}" in says
    assert _run(archive, "--resume", folder.name).code == 0
    assert site.count("/b") == 1 and len(_record(archive).parts) == 2
    assert _record(archive).id == record.id and not list(archive.jobs.iterdir())


def test_a_patch_that_is_stopped_while_it_adds_what_is_missing_starts_with_that(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    settings, _ = settings_files.load(archive.settings)
    asked = patching.plan(archive, settings, record.id).definition
    stop = threading.Event()
    stop.set()
    outcome = crawljob.run(archive, asked.publication, None, patch=asked.patch, stop=stop)
    with job_folder.looked_at(archive.jobs / outcome.job) as frontier:
        assert outcome.interrupted and frontier.counts().get("waiting", 0) == 0
    assert _run(archive, "--resume", outcome.job).code == 0 and "b" in _arcs(archive, site)


def test_a_patch_of_a_record_that_is_worked_on_leaves_no_order(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    with locks.exclusive_or_busy(archive.record_lock(record.id), "is free"):
        done = _run(archive, "--missing", "p")
    assert done.code and "worked on by another process" in done.err and not list(archive.jobs.iterdir())


def test_a_patch_whose_record_was_decided_about_meanwhile_publishes_nothing(archive: Archive, site: Site) -> None:
    """S-patch-2."""
    record = _broken(archive, site)
    with _slow(site, "/b.png"):
        running = crawls.start_command("crawl", "--archive", archive.root, "--missing", "p")
        until(lambda: site.count("/b.png"), "it fetches")
        held = run_command("record", "discard", "--archive", archive.root, record.id, "--reason", "x")
        assert held.code and "worked on by another process" in held.err
        running.kill()
        running.wait()
    _decide(archive, "discard", record.id, "--reason", "x")
    (folder,) = archive.jobs.iterdir()
    done = _run(archive, "--resume", folder.name)
    assert done.code == Exit.INCOMPLETE and "takes no patch: it is discarded" in done.err
    assert len(_record(archive).parts) == 1 and not list(archive.jobs.iterdir())


def test_a_record_that_lacks_its_patch_gets_it_at_the_next_start(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = _broken(archive, site)
    settings, _ = settings_files.load(archive.settings)
    planned = patching.plan(archive, settings, record.id)
    assert planned.urls == patching.plan(archive, settings, record.id, counts=False).urls == 1
    asked = planned.definition
    with monkeypatch.context() as patched:
        patched.setattr("agent.jobs.publishing.keep_patch", lambda *_: None)
        crawljob.run(archive, asked.publication, asked.profile, patch=asked.patch)
    assert len(_record(archive).parts) == 1
    catch_up_records(archive)
    after = _record(archive)
    assert len(after.parts) == 2 and after.events[-1].what == "patched"
    catch_up_records(archive)
    assert _record(archive) == after


def test_git_alone_has_both_as_one_crawl(archive: Archive, site: Site) -> None:
    record = _broken(archive, site)
    assert _run(archive, "--missing", "p").code == 0
    (capture,) = captures(archive)
    assert (capture.job, [part.tag for part in capture.parts]) == (
        record.id,
        [part.tag for part in _record(archive).parts],
    )
    assert capture.is_complete == record.complete and capture.patches[0].endswith("+patch")


def test_a_patched_crawl_is_exported_and_imported_as_one(archive: Archive, site: Site, tmp_path: Path) -> None:
    record = _broken(archive, site)
    assert _run(archive, "--missing", "p").code == 0
    report = run_command("report", "--archive", archive.root, record.id).out
    (patch,) = archive.reports.glob("*+patch")
    assert f"patched by {patch.name}" in report
    assert f"a patch of {record.id}" in run_command("report", "--archive", archive.root, patch.name).out
    out = tmp_path / "out.warc.gz"
    command = [str(Path(sys.executable).with_name("webarc")), "export", "--archive", str(archive.root)]
    subprocess.run([*command, "--record", record.id, str(out)], check=True, capture_output=True)
    other = directory.create(tmp_path / "other")
    done = run_command("import", "--archive", other.root, "--as-exported", out)
    assert done.code == 0, done.err
    assert [part.tag for part in _record(other).parts] == [part.tag for part in _record(archive).parts]
    assert _record(other).complete == _record(archive).complete
    (capture,) = captures(other)
    assert capture.patches == (patch.name,)


def _log(archive: Archive, job: str, *lines: str, patches: str = "") -> None:
    """A report whose log has lines `STATUS URL PATH NOTES`."""
    folder = archive.reports / job
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps({"patches": patches} if patches else {}))
    columns = (line.split() for line in lines)
    crawl_log.write(
        folder,
        (f"t {status} - {url} {path} - text/html #1 t - - seed3:0,{notes}" for status, url, path, notes in columns),
    )


def _missing(archive: Archive, job: str) -> dict[str, int]:
    lines = missing_urls.lines(archive, job)
    return {line.url.rpartition("/")[2]: line.status for line in lines if missing_urls.has_failed(line)}


def test_what_a_patch_never_tried_stays_as_the_crawl_left_it(archive: Archive) -> None:
    job = "20260101T030000-p"
    _log(archive, job, *(f"-4 http://a/{name} L timeout" for name in "abcd"))
    _log(
        archive,
        "20260102T030000-p+patch",
        "-6000 http://a/a L stopped",
        "-6000 http://a/b L max-duration",
        "-5001 http://a/c L left-out",
        "-5003 http://a/d L max-total-size",
        "-2 http://a/e.png LE dns",
        "-6000 http://a/f.png LE stopped",
        patches=job,
    )
    _log(
        archive,
        "20260103T030000-p+patch",
        "-6000 http://a/e.png LE discarded",
        "200 http://a/f.png LE added",
        patches=job,
    )
    assert _missing(archive, job) == {"a": -4, "b": -4, "c": -4, "d": -4, "e.png": -2}
    _log(archive, "20260104T030000-p+patch", "-6000 http://a/g.png LE stopped", patches=job)
    (untried,) = (line for line in missing_urls.lines(archive, job) if missing_urls.is_chosen(line, "stopped"))
    assert untried.url == "http://a/g.png"
    about = {name: missing_urls.lines_of(archive, job, f"http://a/{name}") for name in ("a", "f.png", "g.png")}
    assert [line.status for lines in about.values() for line in lines.values()] == [-4, 200, -6000]


def test_what_a_patch_settled_is_not_asked_for_again(archive: Archive) -> None:
    job = "20260101T030000-p"
    _log(archive, job, *(f"500 http://a/{name} L status" for name in "abcdef"))
    _log(
        archive,
        "20260102T030000-p+patch",
        "301 http://a/a L -",
        "200 http://a/b L duplicate,same-as:http://a/x",
        "304 http://a/c L not-modified",
        "200 http://a/d L filter:mime",
        "-5000 http://a/e L excluded",
        "404 http://a/f L -",
        patches=job,
    )
    assert _missing(archive, job) == {"e": 500}, "a setting that leaves it out now says nothing of the server"


def test_a_long_log_is_read_no_longer_than_a_deadline_lets(archive: Archive) -> None:
    job = "20260101T030000-p"
    _log(archive, job, "500 http://a/a L status")
    assert _missing(archive, job) == {"a": 500}
    for read in (lambda: _missing(archive, job), lambda: missing_urls.lines_of(archive, job, "http://a/b")):
        with clocks.under(clocks.Deadline(-1)), pytest.raises(TookTooLong):
            read()


def test_what_is_missing_by_the_words_of_its_line() -> None:
    def failed(status: int, *words: str, path: str = "L") -> bool:
        return missing_urls.has_failed(LogLine("http://a/b", status, 0, path, "-", ("seed3:0", *words)))

    assert (
        failed(-2, "dns") and failed(-2, "server-down", "dns") and failed(503) and failed(501) and failed(429, "busy")
    )
    assert failed(200, "truncated") and failed(200, "undecodable") and failed(-61, "robots-unavailable")
    assert not failed(200, "added") and not failed(404) and not failed(403) and not failed(302, "redirect-loop")
    assert not failed(-2, "dns", path="LP") and not failed(-2, "dns", path="M") and not failed(200, "filter:mime")
    assert (
        not failed(-5000, "host") and not failed(-9998, "robots") and not failed(200, "duplicate", "same-as:http://b/")
    )
    assert not failed(-6000, "stopped") and missing_urls.is_chosen(
        LogLine("http://a/b", -6000, 0, "L", "-", ("seed3:0", "stopped")), "stopped"
    )
    tls = LogLine("https://a/b", -2, 0, "L", "-", ("seed3:0", "tls:expired"))
    assert missing_urls.is_chosen(tls, "tls") and missing_urls.is_chosen(tls, "tls:expired", "a/*")
    assert not missing_urls.is_chosen(tls, "tls:host") and not missing_urls.is_chosen(tls, "", "b")
