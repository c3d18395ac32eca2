"""Pages as a browser showed them: read without scripts, by who may see the crawl that recorded them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from agent.importing import import_sources
from agent.jobs import importjob
from agent.operations import withholding
from agent.operations.records import Acting
from tests.support.browsertrix import SHELL, Shown, wacz
from tests.support.crawls import archive
from tests.support.imports import imported
from tests.support.pywb_rooms import pywb_room
from tests.support.rooms import Answer, Served, served
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication

pytestmark = pytest.mark.crawl

__all__ = ["archive"]
URL = "http://www.example.org/"
FIRST, SECOND = "20250601120000", "20250701120000"
DOM = """<!DOCTYPE html><html><head><title>App</title><meta http-equiv=refresh content="0;url=/away"><base href="/app/">
<script type=module src=/app.js></script></head><body onload="start()"><div id=root><p id=text>{} giraffe</p>
<a id=next href="../r/1#part">next</a> <a id=code href="javascript:go()">go</a> <a id=here href="#text">here</a>
<img id=image src=/dot.png onerror="send()"><iframe id=inner srcdoc="<script>inner()</script><p>inside"></iframe>
<template shadowrootmode=open><b>shadow</b><script>deep()</script></template></div>
<noscript>Please enable JavaScript</noscript><script>hydrate({})</script></body></html>"""


def shown(path: str, words: str, digits: str = FIRST, body: bytes = SHELL) -> Shown:
    """A page of the application, captured at a time."""
    day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T12:00:0"
    return Shown(
        f"{URL}{path}", body, date=f"{day}0Z", later=f"{day}9Z", text=f"{words} giraffe", dom=DOM.replace("{}", words)
    )


def plain(path: str, digits: str) -> Shown:
    """The same page by a crawl without a browser."""
    day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T12:00:0"
    return Shown(f"{URL}{path}", date=f"{day}0Z", later=f"{day}9Z")


def crawl(archive: Archive, path: Path, *pages: Shown, released: bool = True, name: str = "site") -> None:
    """Import a crawl."""
    source = wacz(path, *pages)
    if released:
        imported(archive, source, name=name)
        return
    held = Publication(name=name, urls=(), release="by-hand", crawl=CrawlSettings())
    importjob.run(archive, import_sources.sources_of([source]), held, None)


@contextmanager
def room_of(archive: Archive, *, two: bool = False) -> Iterator[Served]:
    with served(archive, two_origins=two) as room:
        yield room


def page(room: Served, path: str = "app", at: str = FIRST, modifier: str = "rn_") -> Answer:
    return room.get(f"/web/{at}{modifier}/{URL}{path}", replay=modifier not in ("", "rf_"))


def test_a_page_made_by_scripts_is_read_without_running_any(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-11: its scripts are taken out, and its references lead into the room."""
    crawl(archive, tmp_path / "a.wacz", shown("app", "first"), shown("r/1", "one"))
    with room_of(archive, two=True) as room:
        answer = page(room)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        policy = answer.headers["content-security-policy"]
        assert "script-src 'none'" in policy
        assert "allow-scripts" not in policy
        assert f"frame-ancestors {room.origin}" in policy
        body = answer.text
        for taken in ('start()"><div', "hydrate(", "deep()", "inner()", "Please enable"):
            assert taken not in body.replace('x-onload="start()"', ""), taken
        for kept in ("first giraffe", "shadow", "inside"):
            assert kept in body
        tree = LexborHTMLParser(body)
        assert not any(name.startswith("on") for node in tree.css("*") for name in node.attributes)
        assert all(not script.text() and "src" not in script.attributes for script in tree.css("script"))
        assert tree.css_first("meta[http-equiv]") is None
        href = {name: tree.css_first(f"#{name}").attributes["href"] or "" for name in ("next", "code", "here")}
        assert href["next"] == f"{room.origin}/web/{FIRST}rf_/{URL}r/1#part"
        assert href["code"].startswith(f"{room.origin}/notice/function?url=javascript")
        assert f"from={FIRST}rf_/" in href["code"]
        assert tree.css_first("base").attributes["href"] == f"/web/{FIRST}rn_/{URL}app"
        assert tree.css_first("#image").attributes["src"] == f"/web/{FIRST}im_/{URL}dot.png"
        assert page(room, modifier="mp_").body != answer.body
        assert (
            room.get(f"/web/{FIRST}rn_/{URL}app", replay=True, headers={"If-None-Match": answer.headers["etag"]}).status
            == 304
        )


def test_the_frame_offers_it_and_leads_back(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-11: in English and German; from the frame around it, links through time lead to such frames."""
    plain_page = Shown(f"{URL}text", b"<!DOCTYPE html><title>T</title>as sent", text="as sent")
    crawl(archive, tmp_path / "a.wacz", shown("app", "first"), plain_page)
    crawl(archive, tmp_path / "b.wacz", shown("app", "second", SECOND))
    with room_of(archive) as room:
        frame = page(room, modifier="")
        assert f'href="/web/{FIRST}rf_/{URL}app">As rendered<' in frame.text
        assert "As sent" not in frame.text
        rendered = page(room, modifier="rf_")
        assert rendered.status == 200
        assert f'href="/web/{FIRST}/{URL}app">As sent<' in rendered.text
        assert f'src="/web/{FIRST}rn_/{URL}app"' in rendered.text
        assert f'href="/web/{SECOND}rf_/{URL}app" rel="next"' in rendered.text
        assert "This is what a browser showed when the page was crawled" in rendered.text
        assert "This page has scripts that are not run." in frame.text
        assert "This page has scripts that are not run." not in rendered.text
        german = room.get(f"/web/{FIRST}/{URL}app", headers={"Accept-Language": "de"})
        assert ">Wie im Browser<" in german.text
        assert "As rendered" not in page(room, "text", modifier="").text
        away = page(room, "text", modifier="rf_")
        assert (away.status, away.headers["location"]) == (302, f"/web/{FIRST}/{URL}text")
        away = page(room, "text")
        assert (away.status, away.headers["location"]) == (302, f"/web/{FIRST}mp_/{URL}text")


def test_routes_with_one_shell_show_their_own_texts(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-11: a form belongs to one URL, not to a body."""
    crawl(archive, tmp_path / "a.wacz", *(shown(f"r/{number}", f"route{number}x") for number in range(100)))
    with room_of(archive) as room:
        for number in (0, 42, 99):
            assert f"route{number}x giraffe" in page(room, f"r/{number}").text
            assert page(room, f"r/{number}", modifier="id_").body == SHELL


def test_a_held_crawl_with_another_text_leaves_readers_the_old_one(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-8: the same shell, another text; the second crawl is not released."""
    crawl(archive, tmp_path / "a.wacz", shown("app", "first"))
    crawl(archive, tmp_path / "b.wacz", shown("app", "second", SECOND), released=False)
    with room_of(archive) as room:
        assert "first giraffe" in page(room).text
        away = page(room, at=SECOND)
        assert (away.status, away.headers["location"]) == (302, f"/web/{FIRST}rn_/{URL}app")
        assert 'rel="next"' not in page(room, modifier="rf_").text


@pytest.mark.parametrize("again", ["with a browser", "without"])
def test_what_a_held_crawl_showed_is_not_seen_through_a_later_one(archive: Archive, tmp_path: Path, again: str) -> None:
    """S-rendered-8: a released crawl met the same version; the form is that of the other crawl all the same."""
    crawl(archive, tmp_path / "a.wacz", shown("app", "first"), released=False)
    later = shown("app", "first", SECOND) if again == "with a browser" else plain("app", SECOND)
    crawl(archive, tmp_path / "b.wacz", later)
    with room_of(archive) as room:
        assert page(room, at=SECOND, modifier="mp_").status == 200
        assert "As rendered" not in page(room, at=SECOND, modifier="").text
        away = page(room, at=SECOND)
        assert (away.status, away.headers["location"]) == (302, f"/web/{SECOND}mp_/{URL}app")


def test_a_withheld_page_is_withheld_as_a_browser_showed_it(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-8: the answer is that of the page itself."""
    crawl(archive, tmp_path / "a.wacz", shown("app", "first"), shown("secret", "hidden"))
    withholding.withhold(archive, [f"{URL}secret"], Acting("anna", None), reason="court")
    with room_of(archive) as room:
        for modifier, other in (("rn_", "mp_"), ("rf_", "")):
            answers = [page(room, "secret", modifier=each) for each in (modifier, other)]
            assert [answer.status for answer in answers] == [451, 451]
            assert "giraffe" not in answers[0].text
            assert page(room, "nothing", modifier=modifier).status == 404


def test_a_dom_that_is_too_long_is_not_offered(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-11: a DOM of more than 16 MiB is kept, and not shown."""
    crawl(archive, tmp_path / "a.wacz", replace(shown("long", "first"), dom=f"<!DOCTYPE html>{'long ' * 3_500_000}"))
    with room_of(archive) as room:
        assert "As rendered" not in page(room, "long", modifier="").text
        assert page(room, "long").headers["location"] == f"/web/{FIRST}mp_/{URL}long"


def test_the_room_itself_shows_it_where_pywb_is_the_engine(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-11: with `--engine pywb` the frame has a sandbox without scripts around it."""
    crawl(archive, tmp_path / "a.wacz", shown("app", "first"))
    with pywb_room(archive) as served_room:
        room = served_room.room
        frame = page(room, modifier="rf_")
        assert f'src="{served_room.replay}/web/{FIRST}rn_/{URL}app"' in frame.text
        assert 'sandbox="allow-forms' in frame.text
        answer = page(room)
        assert "first giraffe" in answer.text
        assert "allow-scripts" not in answer.headers["content-security-policy"]
        assert "wombat" not in answer.text
        away = room.get(f"/web/{FIRST}rf_/{URL}app", replay=True)
        assert away.headers["location"] == f"{served_room.origin}/web/{FIRST}rf_/{URL}app"
