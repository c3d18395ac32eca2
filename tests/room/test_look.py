"""The look of the room: templates, languages, pictures, our own files; and, in a browser, that nobody is kept out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Route
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.room.samples import EMPTY, REPLAY, RICH, START, Sample, each_text, notice, row, with_values
from tests.support.browsers import chromium, needs_chromium
from webarcfs.archive.config.directory import Archive
from webarcfs.room.theme import rendering
from webarcfs.room.theme.rendering import Look
from webarcfs.room.views import Change, Notice
from webarcfs.web import language
from webarcfs.web.connections import room_headers
from webarcfs.web.rendering import link_to

pytestmark = pytest.mark.store

LOOK = Look()
ALL = {f"{name} (rich)": page for name, page in RICH.items()} | {
    f"{name} (empty)": page for name, page in EMPTY.items()
}
#: All schemes, widths and languages for all pages, or a choice that has each of them.
_ALL_LOOKS = bool(os.environ.get("ROOM_LOOK"))

HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", "javascript:alert(1)//",
    "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "data:text/html,<script>alert(1)</script>",
    "//evil.example/", "/\\evil.example/", "/\t/evil.example/", "\\\\evil.example/", "http://evil.example/",
    "</title><svg onload=alert(1)>", "]]><x y=z>", "{{ 7 * 7 }} %(count)s %s %", "<b>\u202egnp.exe\x00</b>",
)  # fmt: skip


def rendered(page: Sample, code: str = "en", **others: Any) -> str:
    return LOOK.render(*page, language=code, **{"path": "/x", "has_search": True, **others})


def nodes(page: Sample, code: str = "en") -> list[LexborNode]:
    return LexborHTMLParser(rendered(page, code)).css("*")


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_each_page_is_rendered_in_each_language_with_all_and_with_nothing(name: str) -> None:
    for code in language.LANGUAGES:
        for has_search in (True, False):
            html = rendered(ALL[name], code, has_search=has_search)
            found = LexborHTMLParser(html)
            assert found.css_first("html").attributes["lang"] == code  # type: ignore[union-attr] # it is there
            assert len(found.css("h1")) == 1
            assert len(found.css("main")) == 1
            assert found.css_first("title").text().strip(" –")  # type: ignore[union-attr] # it is there
            assert "None" not in found.css_first("body").text()  # type: ignore[union-attr] # it is there
            ids = [node.attributes["id"] for node in found.css("[id]")]
            assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ALL)
def test_pages_have_no_styles_and_scripts_of_their_own(name: str) -> None:
    for node in nodes(ALL[name]):
        assert node.tag != "style"
        assert "style" not in node.attributes
        assert node.tag != "script" or (node.attributes["src"] or "").startswith("/static/")


#: Links to archived bytes, and to the desk, whose address is a setting.
_OF_REPLAY = ("archived-raw", "archived-download", "archived-alone", "save-page")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_others_wrote_is_text_in_every_field_of_every_page(hostile: str) -> None:
    for name, page in RICH.items():
        known = {node.tag for node in nodes(each_text(page, lambda text: f"/{text}"[:9]))} | {"strong"}
        for node in nodes(each_text(page, lambda _: hostile)):
            assert node.tag in known, (name, node.html)
            for attribute, value in node.attributes.items():
                assert re.fullmatch(r"[A-Za-z-]+|y1|y2|x1|x2", attribute), (name, node.html)
                assert not attribute.startswith("on"), (name, node.html)
                if attribute in ("href", "src", "action", "formaction"):
                    leads = value or ""
                    # Handlers make the frame's source; the page as it was sent is beside it.
                    is_replay = node.tag == "iframe" or node.attributes.get("id") in _OF_REPLAY
                    assert leads.startswith(("/", "?", "#")) or (is_replay and leads.startswith("http://")), name
                    assert not re.match(r"//|.*[\x00-\x20\\]", leads), (name, node.html)
    if "7" in hostile:
        html = rendered(each_text(RICH["error"], lambda _: hostile)).replace(hostile, "")
        assert "49" not in re.sub(r"/static/[0-9a-f]+/", "", html)


def test_a_frame_shows_replay_and_nothing_else() -> None:
    for source, leads in ((f"{REPLAY}/web/1mp_/x", True), ("/web/1mp_/x", True), ("javascript:alert(1)", False)):
        page = each_text(RICH["frame"], lambda text, source=source: source if text.startswith(REPLAY) else text)
        found = LexborHTMLParser(rendered(page))
        assert (found.css_first("iframe").attributes.get("src") == source) is leads  # type: ignore[union-attr] # it is there
        assert bool(found.css_first("#archived-raw[href]")) is leads
    assert link_to("http://elsewhere.test/x", f"{REPLAY}/y") == ""
    assert link_to(f"{REPLAY}.evil.test/x", f"{REPLAY}/y") == ""


def test_columns_that_have_no_value_are_not_shown() -> None:
    def heads(page: Sample) -> list[str]:
        return [node.text().strip() for node in LexborHTMLParser(rendered(page)).css("table.snapshots thead th")]

    assert heads(EMPTY["publication"]) == ["Date", "Crawl", "View"]
    assert heads(RICH["list"]) == [
        "Date", "Crawl", "Call number", "Project", "Type", "Documents", "Size", "View"
    ]  # fmt: skip


def test_the_archives_own_words_stand_in_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "de.toml").write_text(
        'title = "Webarchiv des Hauses"\ninstitution = "Das Haus"\n'
        'form = "Erster <b>Absatz</b>.\\n\\nZweiter Absatz."\n'
    )
    look = Look(Archive(tmp_path))
    html = look.render(*notice(Notice.FORM), language="de", path="/notice/form")
    found = LexborHTMLParser(html)
    assert [node.text() for node in found.css(".notice-page p")][:2] == ["Erster <b>Absatz</b>.", "Zweiter Absatz."]
    assert "Webarchiv des Hauses" in found.css_first("title").text()  # type: ignore[union-attr] # it is there
    assert "Das Haus" in found.css_first("header").text()  # type: ignore[union-attr] # it is there
    own = look.render(*notice(Notice.FORM, "Nur hier."), language="de", path="/notice/form")
    assert "Nur hier." in own
    assert "Absatz" not in own


def test_what_is_closed_is_not_opened_from_a_list() -> None:
    found = LexborHTMLParser(rendered(each_text(RICH["list"], lambda text: text)))
    first = found.css_first("table.snapshots tbody tr")
    assert first is not None
    assert "under embargo until 1 Jan 2035" in first.text()
    assert first.css("td.open a") == []


# -- languages ---------------------------------------------------------------------------------------------------------


def test_dates_and_numbers_are_those_of_the_language() -> None:
    assert language.moment(START, "en") == "2 Aug 2005, 03:00 CET"
    assert language.moment(START, "de") == "2. Aug. 2005, 03:00 Uhr MEZ"
    assert language.day(START, "de") == "2. Aug. 2005"
    assert [language.size(each, "en") for each in (0, 999, 3_210_000, 10**13)] == ["0 B", "999 B", "3.2 MB", "10.0 TB"]
    assert language.size(3_210_000, "de") == "3,2 MB"
    assert language.number(1_234_567, "de") == "1.234.567"
    assert language.name_of_language("de", "en") == "German"
    assert language.name_of_language("<x>", "en") == "<x>"


def test_texts_of_others_are_looked_up_and_never_filled_in() -> None:
    assert language.translate("newest first", "de") == "neueste zuerst"
    assert language.translate("%(count)s <b>", "de") == "%(count)s <b>"
    assert language.translate("", "de") == ""


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_each_mark_of_a_calendar_is_a_link_with_a_name_and_has_a_shape_of_its_own() -> None:
    found = LexborHTMLParser(rendered(RICH["calendar of a year"]))
    labels = [node.attributes["aria-label"] or "" for node in found.css(".months a")]
    assert labels[0] == "2 Aug 2005, 03:00 CET: new"
    assert "1 Sept 2005, 03:00 CET: changed; 1 Sept 2005, 09:00 CET: same" in labels
    assert [node.attributes["aria-label"] for node in found.css(".months .gone-day")] == ["2 Nov 2005, 03:00 CET: gone"]
    shapes = {re.sub(r'class="[^"]*"', "", str(rendering.mark(each))) for each in Change}
    assert len(shapes) == len(Change)
    years = LexborHTMLParser(rendered(RICH["calendar"])).css(".calendar a")
    assert len(years) == 7
    assert all(node.attributes["aria-label"] and node.attributes["href"] for node in years)


def test_pictures_have_names_and_say_in_words_what_they_show() -> None:
    for name in ("publication", "record"):
        for node in LexborHTMLParser(rendered(RICH[name])).css("svg[role=img]"):
            assert (node.css_first("title").text() or "").strip()  # type: ignore[union-attr] # it is there
    assert "2008: 9" in LexborHTMLParser(rendered(RICH["publication"])).css_first("#years-desc").text()  # type: ignore[union-attr] # it is there
    assert rendering.sizes([row(bytes=None)] * 3, "x", "en") == ""
    many = rendering.sizes([row(number % 9 + 3, title="<b>") for number in range(500)], "<i>", "en")
    assert "<i>" not in many
    assert len(many) < 250_000


# -- files -------------------------------------------------------------------------------------------------------------


def test_our_files_are_found_by_their_digest_alone() -> None:
    path = LOOK.static("room.css")
    found = LOOK.static_file(path)
    assert found is not None
    assert found[1] == "text/css; charset=utf-8"
    for other in (
        "/static/room.css", f"/static/{'0' * 12}/room.css", f"{path}/", f"/static/{'0' * 12}/../rendering.py",
        path.replace("room.css", "..%2frendering.py"), "/static/", "/",
    ):  # fmt: skip
        assert LOOK.static_file(other) is None


def test_the_first_page_is_small() -> None:
    found = LexborHTMLParser(html := rendered(RICH["home"]))
    paths = [node.attributes["href"] or "" for node in found.css("link[rel=stylesheet], link[rel=icon]")]
    sheets = b"".join((LOOK.static_file(path) or (b"",))[0] for path in paths)
    assert len(sheets) < 26_000
    assert len(sheets) + len(html) < 50_000
    assert b"url(" not in sheets
    assert b"@import" not in sheets


def test_only_pages_of_curves_have_their_colours() -> None:
    path = LOOK.static("curves.css")
    assert {name for name in RICH if path in rendered(RICH[name])} == {name for name in RICH if "curve" in name}


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


class Stage:
    """A room of samples for a browser: what a tab asks for is answered here, with the room's real headers."""

    def __init__(self) -> None:
        self.html = ""
        self.inner = "<!DOCTYPE html><html lang=en><title>x</title><p>archived</p>"

    def answer(self, route: Route) -> None:
        url = route.request.url
        if url.startswith(REPLAY):
            route.fulfill(body=self.inner, content_type="text/html")
            return
        found = LOOK.static_file(url.removeprefix("http://room.test"))
        if found is not None:
            route.fulfill(body=found[0], content_type=found[1])
            return
        route.fulfill(body=self.html, content_type="text/html; charset=utf-8", headers=room_headers(REPLAY))


_DESK, _PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
_LOOKS = [("en", "light", _DESK), ("de", "dark", _PHONE), ("de", "light", _PHONE)]
_MORE = [
    (code, scheme, size) for code in ("en", "de") for scheme in ("light", "dark") for size in (_DESK, _PHONE)
]  # fmt: skip


@needs_chromium()
@pytest.mark.parametrize(("code", "scheme", "size"), _MORE if _ALL_LOOKS else _LOOKS)
def test_no_page_is_closed_to_anybody(browser: Browser, code: str, scheme: Any, size: Any) -> None:
    stage, axe, faults = Stage(), Axe(), {}
    context = browser.new_context(color_scheme=scheme, viewport=size, bypass_csp=True)
    context.route("**/*", stage.answer)
    tab = context.new_page()
    if _ALL_LOOKS:
        chosen = ALL
    elif scheme == "light":
        chosen = {name: page for name, page in ALL.items() if ("(rich)" in name) is (size is _DESK)}
        chosen = dict(list(chosen.items())[::2])
    else:
        chosen = {name: page for name, page in ALL.items() if "(rich)" in name and "notice" not in name}
        chosen = dict(list(chosen.items())[int(size is _DESK) :: 6])
    for name, page in chosen.items():
        stage.html = rendered(page, code)
        tab.goto("http://room.test/x")
        results = axe.run(tab, options={"iframes": False, "resultTypes": ["violations"]})
        if results.violations_count:
            faults[name] = [
                (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
                for each in results.response["violations"]
            ]
        if not tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            faults[name] = [*faults.get(name, []), ("wider than the window", [])]
    context.close()
    assert faults == {}


@needs_chromium()
@pytest.mark.parametrize("code", ["en", "de"])
def test_tables_of_lists_are_read_on_a_phone_without_scrolling(browser: Browser, code: str) -> None:
    """No letter of a word stands alone in its line, and each cell says what it is."""
    stage = Stage()
    context = browser.new_context(viewport=_PHONE)  # type: ignore[arg-type] # a dictionary of its two keys
    context.route("**/*", stage.answer)
    tab = context.new_page()
    for name in ("prefix", "links", "compare", "list", "publication"):
        stage.html = rendered(RICH[name], code)
        tab.goto("http://room.test/x")
        assert tab.locator("main table.stacked").count() > 0
        assert tab.evaluate(
            "[...document.querySelectorAll('table')].every(e => e.getBoundingClientRect().right <= 320)"
        )
        cells = tab.locator("main table.stacked td:visible")
        assert all(box["width"] > 200 for each in cells.all() if (box := each.bounding_box())), name
        unnamed = "td:not([data-label], .date, .open, .sign, .bars)"
        assert tab.locator(f"main table.stacked {unnamed}").count() == 0, name
    context.close()


@needs_chromium()
def test_pages_keep_to_their_policy_and_the_frame_fills_the_window(browser: Browser) -> None:
    stage, said = Stage(), []
    context = browser.new_context(viewport=_DESK)  # type: ignore[arg-type] # a dictionary of its two keys
    context.route("**/*", stage.answer)
    tab = context.new_page()
    tab.on("console", lambda message: said.append(message.text))
    for name in ("home", "record", "calendar", "search", "frame", "frame of pywb"):
        stage.html = rendered(RICH[name])
        tab.goto("http://room.test/x")
    assert [each for each in said if "Content Security Policy" in each] == []
    box = tab.locator("iframe").bounding_box()
    assert box is not None
    assert box["height"] > 700
    assert tab.evaluate("document.documentElement.scrollHeight <= window.innerHeight")
    tab.set_viewport_size(_PHONE)  # type: ignore[arg-type] # a dictionary of its two keys
    assert tab.locator("nav.times:visible").count() == 0
    tab.locator("summary").click()
    assert tab.locator("nav.times:visible a").first.is_visible()
    context.close()


_LOADED = "{wb_type: 'load', url: 'http://e.org/%s', ts: '20200101000000'}"
_NOT_BELIEVED = (
    "{wb_type: 'load', url: 'javascript:alert(1)'}", "{wb_type: 'load', url: 'http://e.org/<b>'}",
    "{wb_type: 'load', url: '//e.org/b'}", "{wb_type: 'load', url: 'http://e.org/' + 'b'.repeat(9000)}",
    "{wb_type: 'load', url: 7}", "{wb_type: 'load'}", "{wb_type: 'cookie', url: 'http://e.org/b'}", "'http://e.org/b'",
    "null", "[]", "{webarc: 'other', url: 'http://e.org/b'}", "{webarc: 'external', url: 7}",
)  # fmt: skip


@needs_chromium()
@pytest.mark.parametrize(
    ("of_the_iframe", "of_the_window", "leads"),
    [([_LOADED % "b"], [], True), (_NOT_BELIEVED, [], False), ([], [_LOADED % "b"], False)],
    ids=["its own", "broken ones", "of others"],
)
def test_the_frame_believes_messages_of_its_iframe_alone(
    browser: Browser, of_the_iframe: list[str], of_the_window: list[str], leads: bool
) -> None:
    stage = Stage()
    page = RICH["frame of pywb"]
    stage.html = rendered(with_values(page, url="http://e.org/a", sandbox="allow-scripts allow-same-origin"))
    context = browser.new_context()
    context.route("**/*", stage.answer)
    tab = context.new_page()
    tab.goto("http://room.test/web/20200101000000/http://e.org/a")
    for message in (_LOADED % "a", *of_the_iframe):
        tab.frames[1].evaluate(f"() => {{ parent.postMessage({message}, '*') }}")
    for message in of_the_window:
        tab.evaluate(f"() => {{ window.postMessage({message}, '*') }}")
    if leads:
        tab.wait_for_url("http://room.test/web/20200101000000/http://e.org/b")
    else:
        tab.wait_for_timeout(150)
        assert tab.url == "http://room.test/web/20200101000000/http://e.org/a"
    context.close()
