"""Nothing that a reader clicks or opens leads out: hostile documents of all types in Chromium, in room and folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import Sink, can_bind, chromium, needs_chromium, poll
from tests.support.hostile_clicks import Hostile, click, generated, is_opened, large, one_of_each
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.archive.model.metadata import CET
from webarcfs.content.rewriting import data_urls
from webarcfs.export.selection import Asked, select
from webarcfs.export.static_places import ACTIVE, EXTENSIONS
from webarcfs.export.static_site import export

pytestmark = [
    pytest.mark.store,
    needs_chromium(),
    pytest.mark.skipif(not can_bind(53), reason="needs the right to answer for names"),
]

_HOST = "hostile.test"
_WHEN = datetime(2021, 5, 1, 12, tzinfo=CET)
#: Generated documents, and their seed.
_COUNT = int(os.environ.get("CLICK_DOCUMENTS", "4"))
_SEED = os.environ.get("CLICK_SEED", "clicks")
_MOST_REWRITTEN = 16 << 20
#: Pages in which a reader leaves the tab as it was: so many documents are opened in a tab before a new one.
_TAB = 25
#: How often a link is clicked at most until the sink counts it.
_CLICKS = 30


@dataclass
class World:
    """A room and an exported folder with the same documents."""

    room: Served
    out: Path
    files: dict[str, str]
    documents: list[Hostile]

    def places(self, document: Hostile) -> dict[str, str]:
        """Where a document is: way of coming to it → address."""
        url = f"http://{_HOST}/{document.name}"
        replay = f"http://127.0.0.1:{self.room.replay_port}"
        places = {
            "frame": f"{self.room.origin}/web/{digits(_WHEN)}/{url}",
            "page": f"{replay}/web/{digits(_WHEN)}mp_/{url}",
            "as sent": f"{replay}/web/{digits(_WHEN)}id_/{url}",
        }
        return places | {"file": f"file://{self.out}/{self.files[url]}"} if url in self.files else places


@dataclass
class Led:
    """What came of it."""

    clicks: Counter[str] = field(default_factory=Counter)
    opened: Counter[str] = field(default_factory=Counter)
    out: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("clicks")
    archive = archives.make_archive(folder)
    documents = [
        *one_of_each(),
        Hostile("large.html", "text/html", large(_MOST_REWRITTEN + (1 << 20), "http://large.out.test/")),
        *generated(_SEED, _COUNT),
    ]
    pages = {f"http://{_HOST}/{each.name}": Page(each.body, each.mime_type) for each in documents}
    published(archive, _HOST, pages, _WHEN)
    recover(archive)
    out = folder / "out"
    export(select(archive, Asked()), out, lambda *_: None, lambda: False)
    rows = json.loads((out / "static.json").read_text("ascii"))["documents"]
    with served(archive, two_origins=True) as room:
        yield World(room, out, {row["url"]: row["file"] for row in rows}, documents)


def test_a_link_to_a_pdf_in_a_folder_leads_through_the_notice(world: World, tmp_path: Path) -> None:
    with chromium(tmp_path) as browser:
        tab = browser.new_page()
        tab.goto(f"file://{world.out}/{world.files[f'http://{_HOST}/shelf.html']}")
        tab.click("a")
        tab.wait_for_url("**/_webarcfs/live.html#*")
        leaf = world.files[f"http://{_HOST}/leaf.pdf"]
        assert tab.inner_text("#address") == leaf
        assert tab.locator("#way").evaluate("way => way.href") == f"file://{world.out}/{leaf}"


def test_what_is_no_page_for_the_archive_is_none_for_the_browser(tmp_path: Path) -> None:
    body = next(each.body for each in one_of_each() if each.mime_type == "multipart/related")
    shown = {}
    with chromium(tmp_path) as browser:
        tab = browser.new_context(accept_downloads=False).new_page()
        for extension in sorted(EXTENSIONS - ACTIVE)[:: 1 if _COUNT > 100 else 6]:
            path = tmp_path / f"x.{extension}"
            path.write_bytes(body)
            if is_opened(tab, path.as_uri()):
                shown[extension] = tab.evaluate("document.contentType")
            tab.goto("about:blank")
    print(f"{len(shown)} extensions are shown: {sorted(set(shown.values()))}")
    assert {kind for kind in shown.values() if data_urls.as_text(kind) is None} - {"application/pdf"} == set()


def _clicked(context: BrowserContext, sink: Sink, world: World) -> Led:
    """Click all documents everywhere."""
    led = Led()
    tab = context.new_page()
    for number, document in enumerate(world.documents):
        if number % _TAB == 0:
            tab.close()
            tab = context.new_page()
        for way, place in world.places(document).items():
            led.clicks[way] += click(tab, place, is_thorough=number % 4 == 0)
            led.opened[way] += 1
            for each in sink.asked:
                led.out.append(f"{document.name} ({way}): {each}")
                print(led.out[-1], flush=True)
            sink.asked.clear()
            for each in context.pages:
                if each is not tab:
                    each.close()
    tab.wait_for_timeout(1_000)
    led.out += [f"at last: {each}" for each in sink.asked]
    sink.asked.clear()
    tab.close()
    return led


def test_nothing_that_is_clicked_or_opened_leads_out(world: World, tmp_path: Path) -> None:
    with Sink() as sink, chromium(tmp_path, sink=sink) as browser:
        context = browser.new_context(accept_downloads=False)
        led = _clicked(context, sink, world)
        print(f"{len(world.documents)} documents: {dict(led.opened)} opened, {dict(led.clicks)} clicks, {led.out} out")
        # The sink counts, and the hand clicks: a link of a live page leads out.
        live = tmp_path / "live.html"
        live.write_text("<a href=http://live.out.test/ style=display:block>x</a>")
        tab = context.new_page()
        for _ in range(_CLICKS):  # a click that a busy browser does not take in time is lost
            assert click(tab, f"file://{live}", is_thorough=False) == 1
            if sink.asked:
                break
        poll(tab, lambda: sink.asked)
        assert sink.asked
        context.close()
    assert led.out == []
    assert led.clicks["frame"] > 0 and led.clicks["file"] > 0
    assert led.clicks["as sent"] == 0
