"""Saved pages and the agent: it takes what was asked for, whenever; neither they nor publications wait for the other.

A hostile save reaches nothing at a private address, whatever its page, its redirects or its name server say.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import SavedPage
from agent.operations import saving
from agent.operations.saving import SaveState, UrlRefusal
from agent.service import loop
from tests.support import crawls, nasty
from tests.support.agents import agent, command_of, configure, reports
from tests.support.browsers import needs_chromium
from tests.support.crawls import log_lines, summary_of
from tests.support.resolving import PUBLIC, Sink, environment
from tests.support.site import Site, redirect
from tests.support.waiting import until
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = [pytest.mark.crawl, pytest.mark.timeout(900)]
#: Hostile saves of the test; each that is not refused at once is a crawl of its own.
HOSTILE = 200


@pytest.fixture
def public() -> Iterator[Site]:
    """A site at an address that counts as public."""
    with Site(address=PUBLIC) as running:
        yield running


@pytest.fixture
def inner() -> Iterator[Site]:
    """A site of a publication."""
    with Site() as running:
        running.add_html("/", '<a href="/b">b</a>')
        running.add_html("/b", "b")
        yield running


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A server at a private address."""
    with Sink() as running:
        yield running


def ask(archive: Archive, url: str, by: str = "Anna") -> saving.AskedPage | UrlRefusal:
    """Ask for a page as the desk does."""
    read = saving.read_url(url)
    if isinstance(read, UrlRefusal):
        return read
    definition = saving.define(settings_files.load(archive.settings)[0], SavedPage(url=read, by=by))
    return UrlRefusal.PRIVATE if saving.is_kept_out(definition) else saving.ask(archive, definition)


def job_for(asked: saving.AskedPage | UrlRefusal) -> str:
    """The job of a page that was asked for."""
    assert isinstance(asked, saving.AskedPage) and asked.state is SaveState.BEGUN, asked
    return asked.job


def has_ended(archive: Archive, job: str) -> bool:
    """Whether a job has its report, and no folder any more."""
    return (archive.reports / job / "summary.json").exists() and not (archive.jobs / job).exists()


def open_pages(archive: Archive) -> int:
    """The number of pages that are to be saved."""
    return sum(job_folder.is_page(path.name) for path in archive.jobs.iterdir())


def started(folder: Path, names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What an agent is started with."""
    folder.mkdir()
    return environment(folder, names)


def test_what_was_asked_for_before_it_started_is_saved_then(archive: Archive, public: Site, tmp_path: Path) -> None:
    """S-save-2: also what came meanwhile, and what a kill interrupted; two pages of a host one after the other."""
    configure(archive)
    names = {f"{name}.test": [PUBLIC] for name in ("early", "late", "slow")}
    for host in names:
        for path in ("/", "/2"):
            public.add_html(path, f"{host} {path}", host=f"{host}:{public.port}")
    public.add_nasty("/", nasty.slow(3.0), host=f"slow.test:{public.port}")
    first = [job_for(ask(archive, f"http://early.test:{public.port}{path}")) for path in ("/", "/2")]
    settings = started(tmp_path / "names", names)
    with agent(archive, **settings) as running:
        until(lambda: all(has_ended(archive, job) for job in first), "the first pages are saved")
        later = job_for(ask(archive, f"http://late.test:{public.port}/"))
        until(lambda: has_ended(archive, later), "the later page is saved")
        slow = job_for(ask(archive, f"http://slow.test:{public.port}/"))
        until(lambda: (archive.jobs / slow / "item.json").exists() and bool(running.workers()), "it is being saved")
        running.kill()
    assert not has_ended(archive, slow)
    with agent(archive, **settings) as running:
        until(lambda: has_ended(archive, slow), "the interrupted page is saved")
        assert running.stop() == 0
    for job in (*first, later, slow):
        assert summary_of(archive, job)["complete"], job
        record, _ = Catalogue(archive).read(job)
        assert [event.by for event in record.events if event.what == "asked"] == ["Anna"]


def test_neither_publications_nor_pages_wait_for_the_other(
    archive: Archive, public: Site, inner: Site, tmp_path: Path
) -> None:
    """S-save-4: pages that hang leave publications all their places, and the other way round."""
    hosts = [f"hangs{number}.test" for number in range(12)]
    for host in hosts:
        public.add_nasty("/", nasty.hang(), host=f"{host}:{public.port}")
    public.add_html("/", "quick", host=f"quick.test:{public.port}")
    inner.add_nasty("/hangs", nasty.hang())
    news = {"name": "news", "urls": [inner.url("/")], "interval": "1 hour"}
    configure(archive, news, max_instances=1)
    pages = [job_for(ask(archive, f"http://{host}:{public.port}/", host)) for host in hosts]
    settings = started(tmp_path / "names", {host: [PUBLIC] for host in (*hosts, "quick.test")})
    with agent(archive, **settings) as running:
        until(lambda: reports(archive, "news"), "the publication is crawled")
        assert open_pages(archive) == len(pages)
        assert sum(b"+page" in command_of(pid) for pid in running.workers()) <= 2
        running.signal(signal.SIGTERM)
        assert running.stop() == 0
    for job in pages:
        shutil.rmtree(archive.jobs / job)
    hog = {"name": "hog", "urls": [inner.url("/hangs")], "interval": "1 hour"}
    configure(archive, hog, max_instances=1)
    with agent(archive, **settings) as running:
        until(lambda: inner.count("/hangs") > 0, "the publication has the only wget")
        quick = job_for(ask(archive, f"http://quick.test:{public.port}/"))
        until(lambda: has_ended(archive, quick), "the page is saved")
        assert not reports(archive, "hog")
        assert summary_of(archive, quick)["complete"]


def test_command_and_agent_save_a_page_once(archive: Archive, inner: Site) -> None:
    """S-save-4: whoever of them begins. What a killed command left, the agent ends."""
    configure(archive, private_addresses=True)
    inner.add_nasty("/slow", nasty.slow(4.0))
    with agent(archive) as running:
        done = crawls.run_command("save", "--archive", archive.root, inner.url("/b"))
        assert done.code == 0 and inner.count("/b") == 1, done.err
        command = crawls.start_command("save", "--archive", archive.root, inner.url("/slow"))
        until(lambda: inner.count("/slow") == 1, "it is being saved")
        crawls.end(command)
        until(lambda: not open_pages(archive), "the page is saved")
        assert running.stop() == 0
    (job,) = reports(archive, f"saved-127.0.0.1-{inner.port}+page")[1:]
    assert summary_of(archive, job)["complete"] and summary_of(archive, job)["page"] == inner.url("/slow")


@needs_chromium()
def test_scripts_of_a_saved_page_reach_nothing_inside(
    archive: Archive, public: Site, sink: Sink, tmp_path: Path
) -> None:
    """S-save-3: what they ask for is fetched by our own client, from the address that was judged."""
    configure(archive, fetcher="browser")
    host = f"page.test:{public.port}"
    wanted = [f"http://{name}:{sink.port}/" for name in ("127.0.0.1", "inner.test", "rebound.test", "localhost")]
    script = "".join(f"fetch('{url}').catch(() => 0);" for url in wanted)
    script += "fetch('/own').then(r => r.text()).then(t => { document.body.append(t); });"
    public.add_html("/", f"<p>page</p><script>{script}</script>", host=host)
    public.add("/own", "from its own host", "text/plain", host=host)
    job = job_for(ask(archive, f"http://{host}/"))
    names = {"page.test": [PUBLIC], "inner.test": ["127.0.0.1"], "rebound.test": [PUBLIC, "127.0.0.1"]}
    with agent(archive, **started(tmp_path / "names", names)) as running:
        until(lambda: has_ended(archive, job), "the page is saved")
        assert running.stop() == 0
    assert sink.connections == 0
    lines = log_lines(archive, job)
    assert "rendered" in lines[f"http://{host}/"].notes and lines[f"http://{host}/own"].status == 200
    assert all(lines[url].status < 0 for url in wanted if url in lines)
    assert f"http://rebound.test:{sink.port}/" in lines


BODIES = (
    '<img src="http://127.0.0.1:{port}/{number}">',
    '<iframe src="http://inner.test:{port}/{number}"></iframe>',
    '<link rel="stylesheet" href="http://rebound.test:{port}/{number}.css">',
    '<img srcset="http://0x7f.1:{port}/{number} 2x"><script src="http://[::ffff:127.0.0.1]:{port}/{number}"></script>',
    '<meta http-equiv="refresh" content="0;url=http://localhost:{port}/{number}">',
)


def hostile_urls(public: Site, sink: Sink, names: dict[str, list[str]]) -> Iterator[str]:
    """Yield as many URLs as asked for: at private addresses by all their spellings, by names, redirects and pages."""
    port = sink.port
    literal = (
        "http://127.0.0.1:{port}/{n}", "http://[::1]:{port}/{n}", "http://localhost:{port}/{n}",
        "http://2130706433:{port}/{n}", "http://0177.0.0.01:{port}/{n}", "http://0x7f.0x1:{port}/{n}",
        "http://[::ffff:7f00:1]:{port}/{n}", "http://169.254.169.254/{n}", "http://100.64.0.1/{n}",
        "http://127.0.0.1.:{port}/{n}", "http://user:pw@rebound.test:{port}/{n}", "javascript:fetch({n})",
        "file:///etc/{n}", "gopher://127.0.0.1:{port}/{n}", "http://public.test:25/{n}", "http://x.test/{long}",
    )  # fmt: skip
    for number in range(HOSTILE):
        if number % 4:
            yield literal[number % len(literal)].format(port=port, n=number, long="a" * 10_000)
            continue
        host = f"h{number}.test"
        kind = number // 4 % 8
        names[host] = [PUBLIC]
        if kind < len(BODIES):
            public.add_html("/", BODIES[kind].format(port=port, number=number), host=f"{host}:{public.port}")
            yield f"http://{host}:{public.port}/"
        elif kind == 5:
            public.add_nasty("/", redirect(f"http://rebound.test:{port}/{number}"), host=f"{host}:{public.port}")
            yield f"http://{host}:{public.port}/"
        else:
            names[host] = ["127.0.0.1"] if kind == 6 else [PUBLIC, "127.0.0.1"]
            yield f"{'https' if number % 8 else 'http'}://{host}:{port}/"


def test_hostile_saves_reach_nothing_inside_and_block_nothing(
    archive: Archive, public: Site, inner: Site, sink: Sink, tmp_path: Path
) -> None:
    configure(archive, {"name": "news", "urls": [inner.url("/")], "interval": "1 hour"}, timeout=5.0)
    names: dict[str, list[str]] = {"inner.test": ["127.0.0.1"], "rebound.test": [PUBLIC, "127.0.0.1"]}
    urls = list(hostile_urls(public, sink, names))
    assert len(urls) == HOSTILE
    asked = [ask(archive, url, f"person {number // 4 % 4}") for number, url in enumerate(urls)]
    jobs = [job_for(answer) for answer in asked if isinstance(answer, saving.AskedPage)]
    assert len(jobs) >= HOSTILE // 4
    with agent(archive, **started(tmp_path / "names", names)) as running:
        until(lambda: reports(archive, "news"), "the publication is crawled")
        assert open_pages(archive) > len(jobs) // 2, "it did not wait for them"
        for left in range(len(jobs) - 1, -1, -1):
            until(lambda left=left: open_pages(archive) <= left, "another one has ended")
        assert running.stop() == 0
    assert sink.connections == 0
    assert summary_of(archive, reports(archive, "news")[-1])["complete"]
    inside = [line for job in jobs for line in log_lines(archive, job).values() if f":{sink.port}/" in line.url]
    assert len(inside) >= len(jobs) and all(line.status < 0 for line in inside)
    assert len(jobs) > loop.PAGES_AT_ONCE
