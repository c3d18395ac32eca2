"""No click of a reader leads out of the archive without the notice: each link of hostile documents, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import Sink, can_bind, chromium, needs_chromium
from tests.support.rooms import Page, Served, digits, published, served
from tests.support.ways_out import FRAMES, XML, click_all
from webarcfs.archive.model.metadata import CET

pytestmark = [
    pytest.mark.store,
    needs_chromium(),
    pytest.mark.skipif(not can_bind(53), reason="needs the right to answer for names"),
]

HOST = "hostile.test"
WHEN = datetime(2021, 5, 1, 12, tzinfo=CET)


@dataclass
class World:
    """Rooms with hostile documents: on one origin, and on two."""

    one: Served
    two: Served


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    archive = archives.make_archive(tmp_path_factory.mktemp("ways"))
    pages = {f"http://{HOST}/{name}": Page(body, kind) for name, (kind, body) in {**FRAMES, **XML}.items()}
    published(archive, HOST, pages, WHEN)
    recover(archive)
    with served(archive) as one, served(archive, two_origins=True) as two:
        yield World(one, two)


def _clicked(room: Served, folder: Path, documents: Iterable[str]) -> list[str]:
    """What was asked of others when each link was clicked."""
    led: list[str] = []
    with Sink() as sink, chromium(folder, sink=sink) as browser:
        context = browser.new_context()
        tab = context.new_page()
        for name in documents:
            count = click_all(tab, f"{room.origin}/web/{digits(WHEN)}/http://{HOST}/{name}")
            print(f"{name}: {count} links, {len(sink.asked)} requests to others")
            led += [f"{name}: {each}" for each in sink.asked]
            sink.asked.clear()
        # The sink counts: what is live is noticed.
        tab = context.new_page()
        sink.check_counting(tab)
        context.close()
    return led


def test_frames_with_documents_in_their_addresses_lead_nowhere(world: World, tmp_path: Path) -> None:
    assert _clicked(world.two, tmp_path, FRAMES) == []


def test_they_lead_nowhere_where_the_room_has_one_origin(world: World, tmp_path: Path) -> None:
    assert _clicked(world.one, tmp_path, ("html.html", "svg.html")) == []


def test_documents_of_xml_lead_nowhere(world: World, tmp_path: Path) -> None:
    assert _clicked(world.two, tmp_path, XML) == []
    for name, (kind, _) in XML.items():
        shown = world.two.get(f"/web/{digits(WHEN)}mp_/http://{HOST}/{name}", replay=True)
        assert shown.headers["content-type"].partition(";")[0] == kind
        assert not re.search(rb"\shref='http://[a-z]+\.test/", shown.body), name
