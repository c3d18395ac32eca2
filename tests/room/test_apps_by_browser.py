"""Front ends that others built, crawled by our own browser, and shown from the archive: with scripts, and without.

All apps of `tests/support/built_apps.py` are crawled twice, by one publication. What is expected of an app are the
sentences that its start page shows without a click: a crawl clicks nothing that leads on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.fulltext import bring_in_step
from agent.jobs.publishing import JobOutcome
from tests.support import archives
from tests.support.app_server import RequestSeen, serving
from tests.support.browsers import Sink, can_bind, chromium, needs_chromium
from tests.support.built_apps import APPS, BuiltApp
from tests.support.crawls import changed, check_sound, crawl, head_of, log_lines, read, shown_text
from tests.support.pywb_rooms import PywbRoom, pywb_room
from tests.support.recorder import visit_archived
from tests.support.waiting import PATIENCE
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.search.searching import Searcher, SearchQuestion

# The first test waits for two crawls of all apps.
pytestmark = [pytest.mark.crawl, pytest.mark.timeout(1200), needs_chromium()]

_NAMES = [app.name for app in APPS]
#: Apps that only `make soak` runs from this archive: each has another one's framework, and test_built_apps.py runs it.
_LONG = () if "APPS_BY_BROWSER" in os.environ else ("prefect-react", "prefect", "swagger")
#: App → the line of its text in which two crawls may differ: one says when it loaded its data, to the second; the other
#: counts how often it tried to connect, for which no archive has an answer.
_UNSTEADY = {
    "tensorboard": re.compile(r"Last reload: .+"),
    "esphome": re.compile(r"Connection lost\. Reconnecting\.\.\. \(attempt \d+\)"),
}


@dataclass(frozen=True)
class CrawledApps:
    """An archive of all apps, and two crawls: for each, the hosts' commits, the apps' texts and the requests.

    `when` is when the first one had ended, as URLs of the room say it.
    """

    archive: Archive
    crawls: tuple[JobOutcome, JobOutcome]
    commits: tuple[dict[str, str], dict[str, str]]
    texts: tuple[dict[str, str], dict[str, str]]
    asked: tuple[list[RequestSeen], list[RequestSeen]]
    when: str


@dataclass(frozen=True)
class ShownApps:
    """The room with all apps, and a browser whose ways out all lead to the sink."""

    room: PywbRoom
    browser: Browser
    sink: Sink


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> CrawledApps:
    if not all(app.is_here() for app in APPS):
        pytest.skip("needs `make apps`")
    archive = archives.make_archive(tmp_path_factory.mktemp("apps"))
    crawls, commits, texts, asked = [], [], [], []
    when = ""
    with serving(APPS) as server:
        for _ in range(2):
            begin = len(server.seen)
            crawls.append(
                crawl(
                    archive,
                    *(app.url for app in APPS),
                    name="apps",
                    fetcher="browser",
                    depth=0,
                    proxy=f"http://127.0.0.1:{server.port}",
                )
            )
            when = when or datetime.now(UTC).strftime("%Y%m%d%H%M%S")
            commits.append({domain: head_of(archive, domain) for domain in archive.domains()})
            texts.append({app.name: shown_text(archive, app.url) for app in APPS})
            asked.append(server.seen[begin:])
    check_sound(archive)
    return CrawledApps(
        archive, (crawls[0], crawls[1]), (commits[0], commits[1]), (texts[0], texts[1]), (asked[0], asked[1]), when
    )


@pytest.fixture(scope="module")
def shown(crawled: CrawledApps, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownApps]:
    if not can_bind(53):
        pytest.skip("needs the right to answer for names")
    with ExitStack() as stack:
        room = stack.enter_context(pywb_room(crawled.archive))
        sink = stack.enter_context(Sink())
        folder = tmp_path_factory.mktemp("browser")
        browser = stack.enter_context(chromium(folder, sink=sink, names=room.names))
        yield ShownApps(room, browser, sink)


def _app(name: str) -> BuiltApp:
    return next(app for app in APPS if app.name == name)


@pytest.mark.parametrize("name", _NAMES)
def test_what_only_scripts_show_is_kept(crawled: CrawledApps, name: str) -> None:
    """The text of the DOM has the app's sentences; the archived page itself is as it was sent, without them."""
    app = _app(name)
    words = log_lines(crawled.archive, crawled.crawls[0])[app.url].notes
    assert "rendered" in words
    assert not [word for word in words if word.startswith("browser-")]
    text = " ".join(shown_text(crawled.archive, app.url).split())
    sent = LexborHTMLParser(read(crawled.archive, *split(arc_path(app.url))))
    sent.strip_tags(["script"])
    for sentence in app.sentences:
        assert sentence in text
        assert sentence not in sent.text()


@pytest.mark.parametrize("name", [name for name in _NAMES if name not in _LONG])
def test_an_app_runs_from_the_archive(crawled: CrawledApps, shown: ShownApps, name: str) -> None:
    """By its own scripts, with all that they asked for, and nothing leaves the archive."""
    app = replace(_app(name), routes=())
    before = len(shown.sink.asked)
    address = f"{shown.room.origin}/web/{crawled.when}/{app.url}"
    visit = visit_archived(shown.browser, app, address)
    if visit.missing:  # on a busy machine a large module may take longer than an answer may; it is scanned once
        visit = visit_archived(shown.browser, app, address)
    assert visit.missing == ()
    assert shown.sink.asked[before:] == []


@pytest.mark.parametrize("name", _NAMES)
def test_an_app_is_read_without_scripts(crawled: CrawledApps, shown: ShownApps, name: str) -> None:
    """As rendered, in a frame of the room and alone."""
    app = _app(name)
    frame = shown.room.room.get(f"/web/{crawled.when}rf_/{app.url}")
    while frame.status == 302:  # to the time of the capture
        frame = shown.room.room.get(frame.headers["location"].removeprefix(shown.room.origin))
    assert frame.status == 200
    context = shown.browser.new_context(java_script_enabled=False)
    try:
        tab = context.new_page()
        before = len(shown.sink.asked)
        tab.goto(f"{shown.room.replay}/web/{crawled.when}rn_/{app.url}")
        for sentence in app.sentences:  # also in shadow roots
            tab.get_by_text(sentence).first.wait_for(state="attached", timeout=1_000 * PATIENCE)
        source = LexborHTMLParser(tab.content())
    finally:
        context.close()
    assert not [script for script in source.css("script") if script.text() or "src" in script.attributes]
    assert shown.sink.asked[before:] == []


@pytest.mark.parametrize("name", _NAMES)
def test_an_app_is_found_by_words_that_only_its_dom_has(crawled: CrawledApps, name: str) -> None:
    bring_in_step(crawled.archive)
    app = _app(name)
    searcher = Searcher(crawled.archive, Gate(crawled.archive, Reader()))
    for sentence in app.sentences:
        question = SearchQuestion(words=f'"{sentence}" site:{app.host}')
        assert app.url in {hit.url for hit in searcher.ask(question).hits}, sentence


def test_a_second_crawl_changes_nothing(crawled: CrawledApps) -> None:
    """But for one line of the start pages of two apps."""
    first, second = crawled.commits
    assert crawled.crawls[0].complete and crawled.crawls[1].complete
    assert first.keys() == second.keys()
    changed_arcs = {domain: changed(crawled.archive, domain, first[domain], second[domain]) for domain in first}
    may_change = {app.host: {split(arc_path(app.url))[1]} for app in map(_app, _UNSTEADY)}
    assert not {domain: arcs for domain, arcs in changed_arcs.items() if arcs - may_change.get(domain, set())}
    for name in _NAMES:
        assert _steady_lines(name, crawled.texts[0][name]) == _steady_lines(name, crawled.texts[1][name]), name


def _steady_lines(name: str, text: str) -> list[str]:
    unsteady = _UNSTEADY.get(name)
    return [line for line in text.splitlines() if unsteady is None or not unsteady.fullmatch(line)]


@pytest.mark.parametrize("number", [0, 1])
def test_a_crawl_asks_for_nothing_twice(crawled: CrawledApps, number: int) -> None:
    asked = [request for request in crawled.asked[number] if request.method == "GET"]
    assert len(asked) == len(set(asked))
