"""Pages whose styles, scripts, images and fonts lie on other hosts look in the room as live, in Chromium."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Request, Response

from tests.support import archives, loaded_references, split_sites
from tests.support.browsers import chromium, difference, needs_chromium
from tests.support.crawls import run_command, through
from tests.support.rooms import Served, served
from tests.support.site import Site
from tests.support.split_sites import SiteForm, body_at, sample, url_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.urls import canonical
from webarcfs.content.outlinks import resolver

pytestmark = [pytest.mark.crawl, needs_chromium()]

#: Pages that are compared; the soak has 50.
_PAGES = int(os.environ.get("SPLIT_PAGES", "4"))
#: Part of the pixels of a page that may differ by more than a tenth; in the mean of all pages.
_WORST, _MEAN = 0.01, 0.002
_WIDTH, _TALLEST = 1000, 4_000


@dataclass
class World:
    """The live sites, the archive of a crawl of pages of theirs, and the room that serves it."""

    site: Site
    archive: Archive
    room: Served
    pages: list[tuple[str, str]]

    @property
    def names(self) -> dict[str, str]:
        """Where a browser finds each host; there are no others."""
        return dict.fromkeys(split_sites.hosts(), self.site.host) | {"127.0.0.1": "127.0.0.1", "*": "~NOTFOUND"}


@dataclass
class Shown:
    """A page as a browser shows it, and the URLs that it loaded for that; what is absent does not count."""

    look: bytes
    loaded: set[str]
    height: int
    by_scripts: frozenset[str] = frozenset()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pages = sample(_PAGES)
    archive = archives.make_archive(tmp_path_factory.mktemp("split"))
    with ExitStack() as stack:
        site = stack.enter_context(Site())
        split_sites.serve(site)
        options = ["--wait", "0", *(f"--wget-args={argument}" for argument in through(site.proxy))]
        urls = [url_of(*each) for each in pages]
        done = run_command("crawl", "--archive", archive.root, *options, "--page", *urls, timeout=900)
        assert done.code == 0, done.err
        print(done.err)
        yield World(site, archive, stack.enter_context(served(archive, two_origins=True)), pages)


@pytest.fixture(scope="module")
def browser(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium"), names=world.names) as found:
        yield found


@pytest.fixture(scope="module")
def live(world: World, browser: Browser) -> dict[str, Shown]:
    """The live pages, by URL."""
    return {url: shown(browser, url) for url in (url_of(*each) for each in world.pages)}


def shown(browser: Browser, place: str, *, height: int = 0, scripts: bool = False) -> Shown:
    """Show a page in a window as tall as the page, or of a height."""
    # In a context of its own, since links that were visited have another colour.
    context = browser.new_context(viewport={"width": _WIDTH, "height": height or 700}, java_script_enabled=scripts)
    tab = context.new_page()
    traffic = Traffic(tab)
    tab.goto(place)
    if not height:
        size = context.new_cdp_session(tab).send("Page.getLayoutMetrics")["cssContentSize"]
        height = min(int(size["height"]), _TALLEST)
        tab.set_viewport_size({"width": _WIDTH, "height": height})
    traffic.wait()
    look = tab.screenshot(animations="disabled")
    traffic.wait()
    context.close()
    return Shown(look, traffic.loaded, height, frozenset(traffic.by_scripts))


class Traffic:
    """What a tab loaded, by the URLs that the archive has for it, and the requests that wait for an answer."""

    def __init__(self, tab: Page) -> None:
        self.loaded: set[str] = set()
        self.by_scripts: set[str] = set()
        self._tab = tab
        self._open: list[Request] = []
        tab.on("request", lambda request: self._open.append(request))  # noqa: PLW0108 # Playwright marks its handlers
        tab.on("requestfinished", lambda request: self._open.remove(request))  # noqa: PLW0108
        tab.on("requestfailed", lambda request: self._open.remove(request))  # noqa: PLW0108
        tab.on("response", self._answered)

    def _answered(self, response: Response) -> None:
        if response.request.resource_type in ("fetch", "xhr"):
            self.by_scripts.add(canonical(response.url))
        if response.ok:
            self.loaded.add(original(response.url))

    def wait(self) -> None:
        """Wait until nothing is asked for any more."""
        quiet = 0
        for _ in range(2_000):
            self._tab.wait_for_timeout(50)
            quiet = 0 if self._open else quiet + 1
            if quiet == 4:
                return
        raise AssertionError(f"no answer came to {[request.url for request in self._open]}")


def difference_of(one: Shown, other: Shown) -> float:
    """The part of the pixels that differ visibly. Screenshots are kept as files, since all would fill the memory."""
    images = (Image.open(BytesIO(shown_page.look)).convert("RGB") for shown_page in (one, other))
    return difference(*images)


def original(url: str) -> str:
    """The URL that replay shows at a URL of its own; any other as it is."""
    match = re.fullmatch(r"http://127\.0\.0\.1:\d+/web/\d+[a-z]*_?/(.*)", url)
    return match[1] if match else url


def replayed(world: World, url: str) -> str:
    """Where the room shows a page, without its frame."""
    location = world.room.get(f"/web/2030/{url}").headers["location"]
    return f"http://127.0.0.1:{world.room.replay_port}" + location.replace("/http", "mp_/http", 1)


def test_no_reference_is_missed_when_a_site_is_split() -> None:
    """Neither in pages nor in styles: what the unsplit form has, the split form names at its host."""
    forms: set[str] = set()
    for host, name in sample(_PAGES):
        names = {name, "split/fonts.css"}
        for each in sorted(names):
            whole, split = ([*_named(host, each, form, forms)] for form in (SiteForm.WHOLE, split_sites.form_of(each)))
            assert split == whole, (host, each)
            names |= {other for other in whole if other.endswith(".css")} - names
    assert forms == {"http", ""}


def _named(host: str, name: str, form: SiteForm, schemes: set[str]) -> Iterator[str]:
    """The files that a file refers to, as another parser finds them; `schemes` receives those of other hosts."""
    url = url_of(host, name, form)
    resolve = resolver(url, "utf-8")
    text = (body_at(url) or b"").decode("utf-8", "replace")
    for written in loaded_references.of_sheet(text) if name.endswith(".css") else loaded_references.of_page(text):
        target = resolve(written.partition("#")[0])
        if target is not None and body_at(target) is not None:
            yield urlsplit(target).path
            if form is not SiteForm.WHOLE and urlsplit(written).netloc:
                schemes.add(urlsplit(written).scheme)


def test_a_split_site_looks_as_the_unsplit_one(world: World, browser: Browser, live: dict[str, Shown]) -> None:
    for host, name in world.pages:
        split = live[url_of(host, name)]
        whole = shown(browser, url_of(host, name, SiteForm.WHOLE), height=split.height)
        assert difference_of(split, whole) == 0, (host, name)
        assert len({urlsplit(url).hostname for url in split.loaded}) == 3, (host, name)
        assert _paths(split.loaded) == _paths(whole.loaded), (host, name)


def _paths(urls: set[str]) -> set[str]:
    return {url.partition("://")[2].partition("/")[2] for url in urls}


def test_pages_look_in_the_room_as_live(world: World, browser: Browser, live: dict[str, Shown]) -> None:
    parts, others = {}, {}
    for url, page in live.items():
        room = shown(browser, replayed(world, url), height=page.height)
        parts[url] = difference_of(page, room)
        if page.loaded != room.loaded:
            others[url] = (sorted(page.loaded - room.loaded), sorted(room.loaded - page.loaded))
        print(f"{parts[url]:.5f} of {page.height} lines, {len(page.loaded)} URLs: {url}")
    mean = sum(parts.values()) / len(parts)
    print(f"{len(parts)} pages: {max(parts.values()):.5f} of the pixels at most, {mean:.5f} in the mean")
    assert others == {}
    assert {url: part for url, part in parts.items() if part > _WORST} == {}
    assert mean <= _MEAN


def test_pages_look_within_their_frame_as_live(world: World, browser: Browser) -> None:
    for url in [url_of(*each) for each in world.pages][1 :: _PAGES // 4]:
        context = browser.new_context(viewport={"width": _WIDTH, "height": 900})
        tab = context.new_page()
        traffic = Traffic(tab)
        tab.goto(world.room.origin + world.room.get(f"/web/2030/{url}").headers["location"])
        traffic.wait()
        box = tab.locator("#archived").bounding_box()
        assert box is not None and box["width"] == _WIDTH and box["height"] > 500
        look = tab.screenshot(animations="disabled", clip=box)
        context.close()
        page = shown(browser, url, height=int(box["height"]))
        assert page.loaded <= traffic.loaded, url
        assert difference_of(page, Shown(look, traffic.loaded, page.height)) <= _MEAN, url


def test_nothing_is_missing_that_the_server_has(world: World, browser: Browser) -> None:
    """What a browser asks for where scripts run, by the server's own log, is archived byte for byte.

    But for what scripts request by themselves, which no document names.
    """
    world.site.clear_log()
    by_scripts = {url for each in world.pages for url in shown(browser, url_of(*each), scripts=True).by_scripts}
    asked = {canonical(f"http://{request.host}{request.path}") for request in world.site.requests}
    bodies = {url: body for url in asked if (body := body_at(url)) is not None}
    missing = {url for url, body in bodies.items() if _archived(world, url) != body}
    kinds = Counter(PurePosixPath(urlsplit(url).path).suffix for url in bodies)
    print(f"{len(asked)} URLs were asked for, the server has {len(bodies)}: {dict(kinds)}")
    print(f"{len(missing - by_scripts)} are missing, and of what scripts requested: {sorted(missing & by_scripts)}")
    assert missing <= by_scripts
    assert {".html", ".css", ".js", ".png", ".svg", ".ttf"} <= set(kinds)


def _archived(world: World, url: str) -> bytes | None:
    location = world.room.get(f"/web/2030/{url}").headers.get("location", "")
    answer = world.room.get(location.replace("/http", "id_/http", 1), replay=True)
    return answer.body if answer.status == 200 else None
