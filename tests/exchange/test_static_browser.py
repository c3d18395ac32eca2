"""Exported folders in Debian's Chromium, opened from `file:`: they look like the live sites, and ask for nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Page as Tab
from selectolax.lexbor import LexborHTMLParser

from tests.support import archives, rooms
from tests.support.browsers import TOLERANCE, Sink, can_bind, chromium, difference, needs_chromium, shot
from tests.support.hostilepages import HOSTILE
from tests.support.livesites import CAPTURED, live, sample, served
from tests.support.realsites import PYTHON
from tests.support.rooms import Page
from webarcfs.content.rewriting.html_references import LOADED_RELS
from webarcfs.export.selection import Asked, select
from webarcfs.export.static_site import export

pytestmark = [
    pytest.mark.store,
    needs_chromium(),
    pytest.mark.skipif(not PYTHON.is_installed, reason=PYTHON.missing),
]

_HOST = "python.test"
_HOSTILE = "hostile.test"
_PLAIN = "plain.test"
#: Of so many pages all references are followed; 0: of all.
_LINKED = int(os.environ.get("STATIC_LINKED", "20"))
#: Pages that are compared with the live ones, and that the browser looks at with all names counted.
_SHOTS = int(os.environ.get("STATIC_SHOTS", "4"))
#: Each so many-th hostile page is opened.
_EACH = int(os.environ.get("STATIC_HOSTILE", "3"))


@dataclass
class World:
    """Python's documentation and hostile pages, exported."""

    out: Path
    pages: dict[str, Page]

    def place(self, host: str, name: str) -> Path:
        return self.out / host / name

    def url(self, path: Path) -> str:
        return f"file://{path}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("static")
    archive = archives.make_archive(folder)
    names = [name for name in PYTHON.files() if not name.startswith("_sources/")]
    pages = rooms.pages_of(PYTHON.root, _HOST, names)
    # What pages name with a query is the same file.
    for query in ("_static/pydoctheme.css?2022.1",):
        pages[f"http://{_HOST}/{query}"] = pages[f"http://{_HOST}/{query.partition('?')[0]}"]
    rooms.published(archive, _HOST, pages, CAPTURED)
    hostile = {f"http://{_HOSTILE}/{name}": Page(body, kind) for name, (kind, body) in HOSTILE.items()}
    rooms.published(archive, _HOSTILE, hostile, CAPTURED)
    plain = b"<!DOCTYPE html><link rel=stylesheet href=s.css><noscript><p>without scripts</noscript><script>1</script>"
    sheet = Page(b"p{color:rgb(1,2,3)}", "text/css")
    rooms.published(archive, _PLAIN, {f"http://{_PLAIN}/": Page(plain), f"http://{_PLAIN}/s.css": sheet}, CAPTURED)
    export(select(archive, Asked()), folder / "out", lambda *_: None, lambda: False)
    return World(folder / "out", pages)


def references(path: Path) -> Iterator[tuple[str, str, str]]:
    """What a page refers to: element, reference, original; without links that browsers do nothing with."""
    for node in LexborHTMLParser(path.read_text("utf-8", "replace")).css("[href], [src], [action]"):
        if node.tag == "link" and LOADED_RELS.isdisjoint((node.attributes.get("rel") or "").split()):
            continue
        for name in ("href", "src", "action"):
            value = node.attributes.get(name)
            if value is not None:
                yield node.tag or "", value, node.attributes.get("data-webarc-href") or value


def test_no_reference_is_broken_that_was_not_broken_in_the_archive(world: World) -> None:
    names = sorted(name for name in PYTHON.files() if name.endswith(".html"))
    step = max(len(names) // _LINKED, 1) if _LINKED else 1
    files = {row["url"]: row["file"] for row in json.loads((world.out / "static.json").read_text("ascii"))["documents"]}
    followed = notices = right = 0
    for name in names[::step]:
        path = world.place(_HOST, name)
        for tag, value, was in references(path):
            target, _, fragment = value.partition("#")
            if not target or target.startswith("data:"):
                assert not target or tag in ("link", "img", "script"), (name, value)
                continue
            assert not urlsplit(value).scheme, (name, value)
            found = (path.parent / unquote(target)).resolve()
            assert found.is_relative_to(world.out) and found.is_file(), (name, value)
            followed += 1
            if found.parent.name == "_webarcfs":
                notices += 1
                told = unquote(fragment)
                if tag == "a" and told.startswith(f"http://{_HOST}/"):
                    assert told.partition("#")[0] not in world.pages, (name, value)
            elif tag == "a":
                url = urljoin(f"http://{_HOST}/{name}", was).partition("#")[0]
                assert found == world.out / files[url], (name, value, was)
                right += 1
    print(f"{followed} references of {len(names[::step])} pages, {notices} of them to notices")
    assert right > 1_000 and notices < followed / 2


def test_pages_look_like_the_live_ones(world: World, tmp_path: Path) -> None:
    found = {}
    with live() as hosts, chromium(tmp_path, names=hosts) as browser:
        for url in sample(_HOST, _SHOTS):
            shots = []
            for place in (url, world.url(world.out / url.removeprefix("http://"))):
                context = browser.new_context(viewport={"width": 1000, "height": 700}, java_script_enabled=False)
                tab = context.new_page()
                tab.goto(place)
                shots.append(shot(tab))
                context.close()
            found[url] = difference(*shots)
    print(f"{len(found)} pages, {max(found.values()):.5f} of the pixels at most")
    assert {url: part for url, part in found.items() if part > TOLERANCE} == {}
    assert len(found) == _SHOTS


def _is_hacked(tab: Tab) -> bool:
    """Return whether a script of the page ran. A page that leads to another one is asked when that is there."""
    for _ in range(5):
        try:
            return bool(tab.evaluate("window.hacked !== undefined || document.title.includes('hacked')"))
        except BrowserError:
            tab.wait_for_load_state()
    raise AssertionError("the page goes on and on")


def test_nothing_is_asked_for_and_hostile_pages_reach_nothing(world: World, tmp_path: Path) -> None:
    if not can_bind(53):
        pytest.skip("needs the right to answer for names")
    ours = [world.out / "index.html", *(world.out / url.removeprefix("http://") for url in sample(_HOST, _SHOTS))]
    hostile = sorted(path for path in (world.out / _HOSTILE).rglob("*") if path.is_file())
    assert len(hostile) == len(HOSTILE)
    hostile = [path for path in hostile if path.suffix != ".html"] + hostile[::_EACH]
    said: list[str] = []
    with Sink() as sink, chromium(tmp_path, sink=sink) as browser:
        context = browser.new_context(accept_downloads=False)
        tab = context.new_page()
        tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        opened: list[object] = []
        context.on("page", lambda page: opened.append(page))  # noqa: PLW0108 # Playwright marks its handlers
        for path in [*ours, *hostile]:
            tab.goto(world.url(path))
            tab.wait_for_timeout(15)
            assert urlsplit(tab.url).scheme == "file", path
            assert not _is_hacked(tab), path
        tab.wait_for_timeout(1_000)
        print(f"{len(ours)} pages and {len(hostile)} hostile ones: {len(sink.asked)} requests to others")
        assert (sink.asked, said, opened) == ([], [], [])
        # The sink counts: what is live is noticed.
        sink.check_counting(tab)
        context.close()


def test_from_a_file_and_from_a_web_server_it_is_the_same(world: World, tmp_path: Path) -> None:
    with served(world.out) as origin, chromium(tmp_path) as browser:
        for root in (world.url(world.out), origin):
            tab = browser.new_page()
            tab.goto(f"{root}/{_PLAIN}/index.html")
            assert tab.locator("p:visible").inner_text() == "without scripts"
            assert tab.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(1, 2, 3)"
            tab.goto(f"{root}/{_HOST}/index.html")
            assert tab.evaluate("document.styleSheets.length") > 1


def test_a_reader_comes_from_the_list_to_a_page_and_from_a_link_out_to_the_notice(world: World, tmp_path: Path) -> None:
    with chromium(tmp_path) as browser:
        tab = browser.new_page()
        tab.goto(world.url(world.out / "index.html"))
        tab.click(f"text={_HOST}")
        assert tab.title() == "3.11.2 Documentation"
        tab.click("text=Tutorial >> nth=0")
        assert tab.url == world.url(world.place(_HOST, "tutorial/index.html"))
        tab.go_back()
        tab.locator("a[data-webarc-href^='https://www.python.org/']:visible").first.click()
        assert tab.url.startswith(world.url(world.out / "_webarcfs/missing.html"))
        assert tab.inner_text("#address").startswith("https://www.python.org/")
        tab.go_back()
        tab.locator("input[name=q]:visible").first.fill("words")
        tab.locator("input[name=q]:visible").first.press("Enter")
        tab.wait_for_url("**/form.html*")
        assert tab.inner_text("h1") == "Forms do not work here"
