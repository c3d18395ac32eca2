"""The room in Debian's Chromium: archived pages look like the live ones, links lead right, nothing leaks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext
from playwright.sync_api import Page as Tab
from pypdfium2 import PdfDocument
from selectolax.lexbor import LexborHTMLParser

from agent.indexing import fulltext
from tests.support import archives
from tests.support.browsers import TOLERANCE, Sink, can_bind, chromium, difference, needs_chromium, shot
from tests.support.hostilepages import HOSTILE
from tests.support.livesites import CAPTURED, SITES, archived, live, sample
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.store, needs_chromium()]

#: Pages of each site that are compared, and pages whose links are followed; the soak has 50 and 50.
_EACH = int(os.environ.get("ROOM_PAGES", "1"))
_LINKED = int(os.environ.get("ROOM_LINKED", "2"))
#: So many hostile pages, taken evenly from all.
_ATTACKS = int(os.environ.get("ROOM_HOSTILE", "20"))
_HOSTILE = "hostile.test"


@dataclass
class World:
    """The archive of four real sites and hostile pages, the room that serves it, and the pages."""

    archive: Archive
    room: Served
    urls: list[str]
    bodies: dict[str, bytes]
    hosts: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    archive = archives.make_archive(tmp_path_factory.mktemp("browser"))
    urls = [url for host in SITES for url in sample(host, _EACH)]
    names = ("tutorial/index", "tutorial/appetite", "library/stdtypes")
    urls = list(dict.fromkeys([*urls, *(f"http://python.test/{name}.html" for name in names)]))
    bodies = archived(archive, urls)
    pages = {f"http://{_HOSTILE}/{name}": Page(body, kind) for name, (kind, body) in HOSTILE.items()}
    published(archive, _HOSTILE, pages, CAPTURED + timedelta(minutes=1), publication="hostile")
    fulltext.bring_in_step(archive)
    with live() as hosts, served(archive, two_origins=True) as room:
        yield World(archive, room, urls, bodies, hosts)


@pytest.fixture(scope="module")
def browser(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium"), names=world.hosts) as found:
        yield found


def frame_of(world: World, url: str) -> str:
    """The frame of a page in the snapshot of its host."""
    answer = world.room.get(f"/web/20210502/{url}")
    return world.room.origin + answer.headers["location"]


def test_archived_pages_look_like_the_live_ones(world: World, browser: Browser) -> None:
    found = {}
    for url in world.urls:
        shots = []
        for place in (url, frame_of(world, url).replace("/http", "mp_/http", 1)):
            # In a context of its own, since links that were visited have another colour.
            context = browser.new_context(viewport={"width": 1000, "height": 700}, java_script_enabled=False)
            tab = context.new_page()
            tab.goto(place)
            shots.append(shot(tab))
            context.close()
        found[url] = difference(*shots)
    print(f"{len(found)} pages, {max(found.values()):.5f} of the pixels at most")
    assert {url: part for url, part in found.items() if part > TOLERANCE} == {}


def test_every_link_leads_to_the_blob_of_the_snapshot_or_to_a_notice(world: World) -> None:
    room = world.room
    followed = 0
    for url in world.urls[:: max(len(world.urls) // _LINKED, 1)][:_LINKED]:
        place = urlsplit(frame_of(world, url)).path
        shown = room.get(place.replace("/http", "mp_/http", 1), replay=True)
        assert shown.status == 200
        for node in LexborHTMLParser(shown.body).css("a[href], area[href]"):
            href = node.attributes["href"] or ""
            if href.startswith("#"):
                continue
            assert href.startswith(room.origin), (url, href)
            assert node.attributes["target"] == "_top"
            path = href.removeprefix(room.origin).partition("#")[0]
            if path.startswith("/notice/"):
                original = parse_qs(urlsplit(path).query)["url"][0]
                assert urlsplit(original).hostname not in SITES, (url, href)
                assert room.get(path).status == 200
                continue
            target = path.split("/", 3)[3]
            if target in world.bodies:
                raw = room.get(path.replace("/http", "id_/http", 1), replay=True)
                assert raw.body == world.bodies[target], (url, href)
            else:
                assert room.get(path).status == 404, (url, href)
            followed += 1
    assert followed > 50


def clicked(world: World, context: BrowserContext) -> None:
    """Two clicks keep head and foot true."""
    tab = context.new_page()
    tab.goto(frame_of(world, "http://python.test/index.html"))
    been = {tab.url}
    for _ in range(2):
        inner = tab.frame_locator("iframe")
        links = inner.locator("a[href*='/web/']:visible")
        hrefs = [each for each in links.evaluate_all("all => all.map(each => each.href)") if "#" not in each]
        target = next(
            each for each in hrefs
            if unquote(each.split("/", 5)[5]) in world.bodies and each not in been
        )  # fmt: skip
        inner.locator(f"a[href='{target}']:visible").first.click()
        tab.wait_for_url(target)
        assert tab.locator("#archived-url").inner_text() == target.split("/", 5)[5]
        assert tab.locator("iframe").get_attribute("src").endswith(target.split("/", 5)[5])  # type: ignore[union-attr] # it is there
        assert tab.locator("#archived-date").get_attribute("datetime") == CAPTURED.isoformat()
        assert "Record" in tab.locator("footer").inner_text()
        been.add(target)
    tab.close()


def sheets_of(tab: Tab) -> list[str]:
    """The text of each sheet that a page is printed on."""
    return [page.get_textpage().get_text_range() for page in PdfDocument(tab.pdf())]


def test_a_page_is_printed_whole(world: World, browser: Browser) -> None:
    """As many sheets as the live page has; and the paper of its frame says what it is of, and where the whole is."""
    url = "http://python.test/library/stdtypes.html"
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(url)
    live_sheets = sheets_of(tab)
    tab.goto(frame_of(world, url))
    alone = tab.locator("#archived-alone").get_attribute("href")
    assert alone is not None and len(live_sheets) > 50
    tab.emulate_media(media="screen")
    assert not tab.locator(".printed").is_visible()
    tab.emulate_media(media="print")
    assert tab.locator("nav:visible, summary:visible, footer a:visible").count() == 0
    squeezed = "".join("".join(sheets_of(tab)).split())
    for text in ("Title of library/stdtypes.html", "1 May 2021, 12:00 CET", url, frame_of(world, url), alone):
        assert "".join(text.split()) in squeezed, text
    tab.emulate_media(media=None)
    tab.goto(alone)
    assert sheets_of(tab) == live_sheets
    context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_two_clicks_keep_head_and_foot_true(world: World, browser: Browser, scripts: bool) -> None:
    # Playwright itself needs scripts to look at a page, and runs its own even where a page's are off.
    context = browser.new_context(viewport={"width": 1200, "height": 900}, java_script_enabled=scripts)
    if scripts:
        clicked(world, context)
    else:
        tab = context.new_page()
        tab.goto(frame_of(world, "http://python.test/index.html"))
        assert tab.title()
        assert tab.locator("iframe").count() == 1
    context.close()


def pages_of_the_room() -> list[str]:
    """A page of each kind."""
    url = "http://python.test/index.html"
    record = f"{CAPTURED:%Y%m%dT%H%M%S}-python"
    time = digits(CAPTURED)
    return [
        "/", "/?all=1", "/?q=nothing-fits", "/publication/python", f"/snapshot/{record}", f"/snapshot/{record}/links",
        f"/compare/{record}..{record}", "/search", "/curve?q=python&q=the", "/search?q=python",
        "/search?q=python&group=snapshot",
        "/search?q=%22", f"/search?q=python&from={record}", f"/web/*/{url}", "/web/*/http://python.test/*",
        f"/web/{time}/{url}", f"/web/{time}/http://python.test/nothing.html", f"/diff/{time}..{time}/{url}",
        f"/notice/external?url=http://e.org/&from={time}/{url}", f"/notice/form/x/{time}/{url}", "/notice/function",
        "/notice/left-out", "/notice/closed", "/about", "/nothing",
    ]  # fmt: skip


#: test_look.py has every page in the other looks; here CI has some pages in one, `make soak` all of them in both.
_VIEWS: list[dict[str, object]] = [
    {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}},
    {"color_scheme": "light"},
]


_IS_LONG = "ROOM_PAGES" in os.environ


@pytest.mark.parametrize("look", _VIEWS if _IS_LONG else _VIEWS[:1])
def test_no_page_of_the_room_is_closed_to_anybody(world: World, browser: Browser, look: dict[str, object]) -> None:
    context = browser.new_context(bypass_csp=True, **look)  # type: ignore[arg-type]
    tab = context.new_page()
    found = {}
    for path in pages_of_the_room()[:: 1 if _IS_LONG else 4]:
        tab.goto(world.room.origin + path)
        results = Axe().run(tab, options={"iframes": False, "resultTypes": ["violations"]})
        if results.violations_count:
            found[path] = [
                (each["id"], [node["html"] for node in each["nodes"]][:3]) for each in results.response["violations"]
            ]
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
    context.close()
    assert found == {}


def test_the_keyboard_reaches_all_that_a_page_offers(world: World, browser: Browser) -> None:
    context = browser.new_context()
    tab = context.new_page()
    for path in ("/", "/search?q=python", f"/web/{digits(CAPTURED)}/http://python.test/index.html"):
        tab.goto(world.room.origin + path)
        wanted = tab.evaluate(
            "[...document.querySelectorAll('a[href], button, input, select, summary, iframe')]"
            ".filter(each => each.offsetParent !== null || each.tagName === 'IFRAME')"
            ".filter(each => !each.closest('details:not([open])') || each.tagName === 'SUMMARY').length"
        )
        seen = set()
        for _ in range(wanted + 20):
            tab.keyboard.press("Tab")
            here = tab.evaluate(
                "(() => { const e = document.activeElement; if (!e || e === document.body) return '';"
                " e.dataset.seen = e.dataset.seen || String(Math.random()); return e.dataset.seen; })()"
            )
            if tab.evaluate("document.activeElement && document.activeElement.tagName === 'IFRAME'"):
                seen.add("iframe")
                break
            seen.add(here)
        missed = tab.evaluate(
            "[...document.querySelectorAll('a[href], button, input, select, summary')]"
            ".filter(each => each.offsetParent !== null && !each.dataset.seen)"
            ".filter(each => !each.closest('details:not([open])') || each.tagName === 'SUMMARY')"
            ".filter(each => !each.closest('footer')).map(each => each.outerHTML)"
        )
        assert missed == [], path
    context.close()


def test_nothing_leaves_the_archive_and_hostile_pages_reach_nothing(world: World, tmp_path: Path) -> None:
    if not can_bind(53):
        pytest.skip("needs the right to answer for names")
    hostile = [f"http://{_HOSTILE}/{name}" for name in list(HOSTILE)[:: max(len(HOSTILE) // _ATTACKS, 1)]]
    said: list[str] = []
    opened: list[object] = []
    with Sink() as sink, chromium(tmp_path, sink=sink) as browser:
        context = browser.new_context()
        tab = context.new_page()
        tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        context.on("page", lambda page: opened.append(page))  # noqa: PLW0108 # Playwright marks its handlers
        for url in [*world.urls, *hostile]:
            place = frame_of(world, url)
            tab.goto(place)
            tab.wait_for_timeout(15)
            assert tab.url == place, url
            assert tab.evaluate("window.hacked === undefined && document.title.indexOf('hacked') < 0"), url
        tab.wait_for_timeout(1_000)
        print(f"{len(world.urls)} pages and {len(hostile)} hostile ones: {len(sink.asked)} requests to others")
        assert sink.asked == []
        assert said == []
        assert opened == []
        assert context.cookies() == []
        # The sink counts: what is live is noticed.
        sink.check_counting(tab)
        context.close()
