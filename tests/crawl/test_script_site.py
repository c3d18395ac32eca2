"""The site of scripts, shown by Chromium that nobody holds back: its pages work, and its log says what was sent."""

from __future__ import annotations

import gzip
import hashlib
import math
import socket
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.support.bad_pages import GOOD, GOOD_WORDS, BadPage, BadPageSizes, gzip_bomb, serve_bad_pages
from tests.support.browsers import chromium, needs_chromium
from tests.support.nasty import big_sha256
from tests.support.script_site import (
    CLICKED,
    INSIDE,
    LEFT_OUT,
    LOADED,
    MAIN,
    OTHER,
    POSTED,
    SCROLLED,
    SHOWN,
    ScriptRequest,
    ScriptSite,
    picture,
    tone,
)
from tests.support.waiting import until

pytestmark = pytest.mark.crawl

SIZES = BadPageSizes(large=3 << 20, bomb=8 << 20, dom=1 << 20, frames=20, slow=0.2)


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptSite]:
    with ScriptSite() as site:
        yield site


@pytest.fixture(scope="module")
def bad(site: ScriptSite) -> dict[str, BadPage]:
    return serve_bad_pages(site, SIZES)


@pytest.fixture(scope="module")
def browser(site: ScriptSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium that finds the site's names and no others."""
    names = dict.fromkeys((MAIN, OTHER, *INSIDE), site.host) | {"*": "~NOTFOUND"}
    with chromium(tmp_path_factory.mktemp("browser"), names=names) as browser:
        yield browser


@pytest.fixture
def tab(site: ScriptSite, browser: Browser) -> Iterator[Page]:
    """A window without cookies or a cache, and an empty log."""
    context = browser.new_context()
    try:
        site.clear_log()
        yield context.new_page()
    finally:
        context.close()


def ask(site: ScriptSite, path: str, host: str = MAIN, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(site.url(path), data=body, headers={"Host": host})
    with urllib.request.urlopen(request, timeout=60) as answer:
        data: bytes = answer.read()
    # The client has the last byte a moment before the site's thread says that it has ended.
    until(lambda: all(response.end for response in site.responses), "the threads of the site have ended their answers")
    return data


@needs_chromium()
def test_the_page_asks_for_all_that_it_says_and_shows_what_came(site: ScriptSite, tab: Page) -> None:
    tab.goto(f"http://{MAIN}/", wait_until="commit")
    for name, words in SHOWN.items():
        tab.get_by_text(f"{name}: {words}", exact=True).wait_for()
    assert tab.title() == "Route /"
    before = site.asked()
    assert before >= {*LOADED, *POSTED, *LEFT_OUT}
    assert not before & {*CLICKED}
    until(lambda: _scroll(tab, site), "scrolled to the end")
    for number in range(3):
        tab.get_by_role("button", name="Load more").click()
        tab.get_by_text(f"more {number + 1}").wait_for()
    assert tab.get_by_role("button", name="Load more").count() == 0
    assert tab.locator("li").count() == 50
    robots = ScriptRequest("GET", MAIN, "/private/forbidden.js")
    rest = site.asked() - {*LOADED, *POSTED, *LEFT_OUT, *SCROLLED, *CLICKED, robots}
    assert {asked.path for asked in rest} == {"/inside/secret"}
    assert [response.path for response in site.against_robots()] == [robots.path]
    assert {response.host for response in site.against_addresses()} == {*INSIDE}
    assert {response.status for response in site.sent_to("/media/tone.wav")} == {206}
    assert site.most_at_once(MAIN) > 1 and site.connections(MAIN) > 1, "that is what a crawl must not do"


def _scroll(tab: Page, site: ScriptSite) -> bool:
    tab.mouse.wheel(0, 700)
    return site.asked() >= {*SCROLLED}


@needs_chromium()
def test_routes_are_pages_of_the_same_script(site: ScriptSite, tab: Page) -> None:
    tab.goto(f"http://{MAIN}/item/10")
    tab.get_by_text("part /item/10").wait_for()
    tab.get_by_role("link", name="About").click()
    tab.get_by_text("part /about").wait_for()
    assert site.sent_to("/about") == [], "history.pushState asks for no page"
    tab.get_by_role("link", name="Help").click()
    tab.get_by_text("This is the route /about#/help, made by a script.").wait_for()


@needs_chromium()
def test_a_small_page_takes_seven_requests(site: ScriptSite, tab: Page) -> None:
    tab.goto(f"http://{MAIN}/small/3.html")
    until(lambda: tab.title() == "page 3, shown", "its own words")
    paths = sorted(asked.path for asked in site.asked())
    assert paths == [
        "/api/numbers?page=3", "/api/words?page=3", "/assets/small.css", "/assets/small.js", "/pic/own-3.png",
        "/pic/small.png", "/small/3.html",
    ]  # fmt: skip


@needs_chromium()
def test_a_page_leaves(site: ScriptSite, tab: Page) -> None:
    tab.goto(f"http://{MAIN}/away.html")
    tab.get_by_text("part /about").wait_for()
    assert len(site.sent_to("/about")) == 1


def test_the_log_has_heads_and_bodies_as_sent(site: ScriptSite) -> None:
    site.clear_log()
    begun = [ask(site, path) for path in ("/api/hello?x=1", "/api/packed", "/media/tone.wav")]
    posted = ask(site, "/api/search", body=b'{"q":"alpha"}')
    hello, packed, sound, search = site.responses
    assert (hello.body, packed.body, sound.body, search.body) == (*begun, posted)
    assert (search.method, search.asked, search.status) == ("POST", b'{"q":"alpha"}', 200)
    assert gzip.decompress(packed.body) == b'{"word": "packed"}'
    assert sound.body == tone() and sound.digest == hashlib.sha256(tone()).hexdigest()
    assert hello.head.count(b"\r\nSet-Cookie: ") == hello.head.count(b"\r\nSET-cookie: ") == 1
    assert b"\r\nX-MiXed-Case: Kept As It Is\r\n" in hello.head and hello.head.endswith(b"\r\n\r\n")
    assert hello.sent == len(hello.head) + len(hello.body)
    assert 0 < site.smallest_gap(MAIN) < math.inf and site.smallest_gap(OTHER) == math.inf
    assert (site.most_at_once(MAIN), site.connections(MAIN)) == (1, 4)


def test_bytes_are_the_same_in_each_run(site: ScriptSite) -> None:
    with ScriptSite() as again:
        for path in ("/", "/assets/main.js", "/small/7.html", "/pic/lazy-3.png", "/media/tone.wav", "/api/packed"):
            for which in (site, again):
                which.clear_log()
                ask(which, path)
            (here,), (there,) = site.responses, again.responses
            assert (here.head, here.body) == (there.head, there.body)
    assert len({picture(number) for number in range(1_200)}) == 1_200


@needs_chromium()
def test_bad_pages_show_what_they_say(site: ScriptSite, browser: Browser, bad: dict[str, BadPage]) -> None:
    """Those that show something certain, each in a window of its own; and the good page after them."""
    wrong = []
    context = browser.new_context()
    try:
        for page in (*bad.values(), BadPage("good", GOOD, "", GOOD_WORDS)):
            if not page.shows:
                continue
            tab = context.new_page()
            try:
                tab.goto(site.url(page.path, MAIN), wait_until="commit")
                tab.get_by_text(page.shows).first.wait_for()
            except Error as error:
                wrong.append(f"{page.name}: {error.message}")
            tab.close()
    finally:
        context.close()
    assert wrong == []


def test_each_bad_page_says_what_is_right(bad: dict[str, BadPage]) -> None:
    assert len(bad) > 50
    assert all(page.right.endswith(".") and page.path == f"/bad/{page.name}" for page in bad.values())


def test_bad_bodies_are_as_large_as_they_say(site: ScriptSite, bad: dict[str, BadPage]) -> None:
    site.clear_log()
    assert len(ask(site, bad["large-body"].path + "/large.bin")) == SIZES.large
    packed = ask(site, bad["bomb"].path + "/bomb.txt")
    assert packed == gzip_bomb(SIZES.bomb) and len(packed) < SIZES.bomb // 100
    assert gzip.decompress(packed) == b" " * SIZES.bomb
    large, _ = site.responses
    assert (large.size, large.digest) == (SIZES.large, big_sha256(SIZES.large))


def test_interim_heads_are_told_from_the_answer(site: ScriptSite, bad: dict[str, BadPage]) -> None:
    site.clear_log()
    with socket.create_connection(("127.0.0.1", site.port)) as connection:
        path = bad["early-hints"].path
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {MAIN}\r\nConnection: close\r\n\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    (response,) = site.responses
    assert response.interim + response.head + response.body == received
    assert response.interim.startswith(b"HTTP/1.1 103 ") and response.status == 200
