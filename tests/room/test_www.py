"""A URL whose host has no captures is found with `www.` before it, or without, and each answer names what it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import quote

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Answer, Page, Served, digits, published, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.model.metadata import CET

pytestmark = pytest.mark.store

FIRST = datetime(2020, 1, 1, 12, tzinfo=CET)
TIMES = [FIRST + timedelta(days=10 * each) for each in range(2)]
AT = [digits(each) for each in TIMES]
#: URLs that are archived, and what is asked for: with and without www.
PAIRS = [
    ("http://www.example.org/a?b=c", "http://example.org/a?b=c"),
    ("http://bare.example:8080/", "http://www.bare.example:8080/"),
]
#: Archived with www. as well, each at a time of its own.
BOTH, BLOCKED = "http://both.example/", "http://both.example/blocked"
#: Not released, but with www.
HELD = "http://held.example/"


def at_www(url: str) -> str:
    return url.replace("://", "://www.", 1)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = archives.make_archive(tmp_path_factory.mktemp("www"))
    for number, when in enumerate(TIMES):
        for url in {archived for archived, _ in PAIRS}:
            published(made, url.split("/")[2], {url: Page(f"<p>{number}".encode())}, when)
    published(made, "both.example", {BOTH: Page(b"<p>bare"), BLOCKED: Page(b"<p>bare")}, TIMES[0])
    published(made, "both.example", {BOTH: None}, TIMES[1])
    published(made, "www.both.example", {at_www(BOTH): Page(b"<p>www")}, TIMES[1])
    published(made, "held.example", {HELD: Page(b"<p>bare")}, TIMES[0], state=RecordState.COUNTED, held=True)
    published(made, "www.held.example", {at_www(HELD): Page(b"<p>www")}, TIMES[1])
    recover(made)
    access_rules.withhold(made, BLOCKED, "test", "no", access=Access.BLOCK)
    with served(made) as found:
        yield found


def lead(room: Served, place: str) -> Answer:
    """Follow one redirect."""
    answer = room.get(place)
    assert answer.status == 302, place
    return room.get(answer.headers["location"])


@pytest.mark.parametrize(("archived", "asked"), PAIRS)
@pytest.mark.parametrize("modifier", ["", "id_", "mp_", "im_"])
@pytest.mark.parametrize("number", [0, 1])
def test_replay_leads_to_the_host_that_has_it(
    room: Served, archived: str, asked: str, modifier: str, number: int
) -> None:
    place = f"/web/{AT[number]}{modifier}/{asked}"
    assert room.get(place).headers["location"] == f"/web/{AT[number]}{modifier}/{archived}"
    shown = lead(room, place)
    assert shown.status == 200
    assert f'<{archived}>; rel="original"' in shown.headers["link"]


@pytest.mark.parametrize(("archived", "asked"), PAIRS)
def test_a_time_in_between_leads_to_what_was_there_then(room: Served, archived: str, asked: str) -> None:
    answer = room.get(f"/web/20200105000000id_/{asked}")
    assert answer.headers["location"] == f"/web/{AT[0]}id_/{archived}"


@pytest.mark.parametrize(("archived", "asked"), PAIRS)
def test_timegate_timemap_and_availability_name_the_host_that_has_it(room: Served, archived: str, asked: str) -> None:
    for fields in ({}, {"Accept-Datetime": "Thu, 02 Jan 2020 12:00:00 GMT"}):
        answer = room.get(f"/web/{asked}", fields)
        assert answer.status == 302
        assert answer.headers["location"].endswith(f"/{archived}")
        assert f'<{archived}>; rel="original"' in answer.headers["link"]
    assert room.get(f"/timemap/link/{asked}").headers["location"] == f"/timemap/link/{archived}"
    assert f'<{archived}>; rel="original"' in lead(room, f"/timemap/link/{asked}").text
    told = json.loads(room.get(f"/wayback/available?url={quote(asked, safe='')}&timestamp=2020").text)
    assert told["url"] == asked
    assert told["archived_snapshots"]["closest"]["url"].endswith(f"/{archived}")


def originals(room: Served, url: str, more: str = "") -> list[str]:
    return room.get(f"/cdx?url={quote(url, safe='')}&fl=original{more}").text.splitlines()


@pytest.mark.parametrize(("archived", "asked"), PAIRS)
def test_cdx_has_the_rows_of_the_host_that_has_captures(room: Served, archived: str, asked: str) -> None:
    for more in ("", "&matchType=prefix", "&matchType=host", "&sort=reverse", "&limit=-2", "&page=0", "&sort=closest"):
        assert originals(room, asked, more) == [archived, archived], more
    assert originals(room, asked.replace("http:", "https:")) == [archived, archived]
    assert originals(room, asked, "&showNumPages=true") == ["1"]
    assert originals(room, asked, "&page=1") == []
    assert originals(room, asked, "&filter=statuscode:404") == []
    for order in ("", "&sort=reverse"):
        first, _, key = originals(room, asked, f"&limit=1&showResumeKey=true{order}")
        assert [first, *originals(room, asked, f"&resumeKey={key}{order}")] == [archived, archived]


def test_a_url_that_has_captures_at_other_times_answers_by_itself(room: Served) -> None:
    assert room.get(f"/web/{AT[1]}id_/{BOTH}").status == 404
    assert originals(room, BOTH) == [BOTH]
    assert originals(room, BOTH, "&from=2020011100") == []
    assert originals(room, BOTH, "&matchType=domain") == [BOTH, at_www(BOTH)]
    assert (
        room.get(f"/web/{BOTH}", {"Accept-Datetime": "Thu, 06 Feb 2020 12:00:00 GMT"})
        .headers["location"]
        .endswith(f"/{BOTH}")
    )


@pytest.mark.parametrize("place", [f"/web/{AT[0]}/", f"/web/{AT[0]}id_/", "/web/", "/timemap/json/"])
def test_what_is_blocked_stays_so(room: Served, place: str) -> None:
    assert room.get(place + BLOCKED).status == 451


@pytest.mark.parametrize("place", [f"/web/{AT[1]}/", f"/web/{AT[1]}id_/", "/web/", "/timemap/json/"])
def test_what_is_not_released_is_as_what_was_never_there(room: Served, place: str) -> None:
    held, never = room.get(place + HELD), room.get(place + PAIRS[0][1])
    assert held.status == never.status == 302
    assert held.headers["location"].endswith(f"/{at_www(HELD)}")
    assert held.headers.keys() == never.headers.keys()


@pytest.mark.parametrize(
    "url", ["http://nothing.example/", "http://www.nothing.example/", "http://example.org/nothing"]
)
def test_what_no_host_has_is_not_found(room: Served, url: str) -> None:
    for place in (f"/web/{AT[0]}/", f"/web/{AT[0]}im_/", "/web/", "/timemap/link/"):
        assert room.get(place + url).status == 404
    assert originals(room, url) == []
    assert json.loads(room.get(f"/wayback/available?url={url}").text)["archived_snapshots"] == {}
