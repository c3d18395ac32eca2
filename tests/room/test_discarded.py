"""What a discarded record captured is nowhere in the room, which runs meanwhile, until it is restored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.rooms import Page, Served, digits, published, served
from tests.support.waiting import until
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME, ONLY = f"http://{DOMAIN}/", f"http://{DOMAIN}/only.html"
TIMES = [datetime(2020, 5, 1, 12, tzinfo=CET) + timedelta(days=number) for number in range(3)]
RECORD = f"{TIMES[1]:%Y%m%dT%H%M%S}-p"
WORD = "zebra"
#: What tells of the discarded crawl, by the way to it.
WAYS = {
    "replay": f"/web/{digits(TIMES[1])}id_/{HOME}",
    "replay of what it alone had": f"/web/{digits(TIMES[1])}id_/{ONLY}",
    "CDX": f"/cdx?url={HOME}",
    "CDX of a host": f"/cdx?url={DOMAIN}/*",
    "TimeMap": f"/timemap/link/{HOME}",
    "TimeMap as JSON": f"/timemap/json/{HOME}",
    "TimeMap of what it alone had": f"/timemap/link/{ONLY}",
    "calendar": f"/web/*/{HOME}",
    "URLs": f"/urls?prefix={HOME}",
    "search": f"/search?q={WORD}",
    "search as CSV": f"/search.csv?q={WORD}",
    "availability": f"/wayback/available?url={ONLY}",
    "record": f"/snapshot/{RECORD}",
    "comparison": f"/diff/{digits(TIMES[0])}..{digits(TIMES[1])}/{HOME}",
}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Three crawls, of which the second had a page of its own, and other words."""
    made = archives.make_archive(tmp_path)
    published(made, DOMAIN, {HOME: Page(b"first")}, TIMES[0])
    published(made, DOMAIN, {HOME: Page(b"the zebra"), ONLY: Page(b"a zebra, too")}, TIMES[1])
    published(made, DOMAIN, {HOME: Page(b"third"), ONLY: None}, TIMES[2])
    catalogue = Catalogue(made)
    records = [each.with_event("captured", "webarcfs", "", each.state) for each in catalogue.records()]
    catalogue.save(records, "test", "events")
    recover(made)
    bring_in_step(made)
    return made


@pytest.fixture
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as found:
        yield found


def _act(archive: Archive, act: str, *words: str) -> None:
    done = run_command("record", act, RECORD, "--archive", archive.root, *words)
    assert done.code == 0, done.err


def _answers(room: Served) -> dict[str, tuple[int, str]]:
    """The answer of each way; where it leads is part of it."""
    found = {name: room.get(path) for name, path in WAYS.items()}
    return {name: (each.status, each.headers.get("location", "") + each.text) for name, each in found.items()}


def test_the_room_shows_nothing_of_it_until_it_is_restored(archive: Archive, room: Served) -> None:
    before = _answers(room)
    assert before["replay"] == (200, "the zebra")
    told = (digits(TIMES[1]), "only.html", RECORD, "a zebra, too", "the zebra")
    assert [name for name, (_, text) in before.items() if not any(each in text for each in told)] == []
    _act(archive, "discard", "--reason", "a trap")
    until(lambda: room.get(WAYS["record"]).status == 404)
    after = _answers(room)
    for name in ("TimeMap of what it alone had", "record"):
        assert after[name][0] == 404, name
    # The digits are those of no capture now; they lead to those of the crawl before.
    for name, url, answer in (("replay", HOME, (200, "first")), ("replay of what it alone had", ONLY, (404, ""))):
        path = f"/web/{digits(TIMES[0])}id_/{url}"
        assert after[name] == (302, path)
        followed = room.get(path)
        assert followed.status == answer[0] and answer[1] in followed.text and WORD not in followed.text
    for name in (
        "CDX",
        "CDX of a host",
        "TimeMap",
        "TimeMap as JSON",
        "calendar",
        "URLs",
        "availability",
        "search",
        "search as CSV",
    ):
        assert digits(TIMES[1]) not in after[name][1] and "only.html" not in after[name][1].replace(ONLY, ""), name
    for name in ("CDX", "TimeMap", "TimeMap as JSON"):
        assert digits(TIMES[0]) in after[name][1] and digits(TIMES[2]) in after[name][1], name
    assert "zebra" not in after["comparison"][1]
    _act(archive, "restore")
    until(lambda: room.get(WAYS["record"]).status == 200)
    restored = _answers(room)
    assert [name for name in WAYS if restored[name] != before[name]] == []
