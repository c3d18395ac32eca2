"""The room says when a server sent what it shows, also in a crawl that took days; each capture has an address."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.recovery import recover
from tests.support import archives, warcs
from tests.support.imports import import_files
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET
from webarcfs.room.replay.memento import http_date

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME, LATE, BOTH = (f"http://{DOMAIN}/{name}" for name in ("", "late.html", "both.html"))
BEGUN = datetime(2020, 1, 1, 12, tzinfo=CET)
SENT = BEGUN + timedelta(hours=30)
AGAIN = BEGUN + timedelta(days=10)
OTHERS = BEGUN + timedelta(days=20)
HIDDEN = BEGUN + timedelta(days=30)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("times"))
    first = {HOME: Page(b"home"), LATE: Page(b"late", captured=SENT), BOTH: Page(b"one", captured=OTHERS)}
    published(made, DOMAIN, first, BEGUN)
    published(made, DOMAIN, {}, AGAIN)  # nothing changed
    published(made, DOMAIN, {BOTH: Page(b"two", captured=OTHERS + timedelta(hours=1))}, OTHERS, publication="q")
    published(made, DOMAIN, {LATE: Page(b"hidden", captured=HIDDEN)}, HIDDEN, state=RecordState.COUNTED, held=True)
    recover(made)
    return made


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as found:
        yield found


def date(when: datetime) -> str:
    return http_date(int(when.timestamp()))


def cdx(room: Served, url: str = f"{DOMAIN}/*") -> list[tuple[str, str, str]]:
    text = room.get(f"/cdx?url={url}&fl=timestamp,original,digest").text
    return [tuple(line.split(" ")) for line in text.splitlines()]  # type: ignore[misc] # three columns


def test_every_interface_tells_when_the_server_sent_it(room: Served) -> None:
    assert [row[0] for row in cdx(room, LATE)] == [digits(SENT)]
    memento = room.get(f"/web/{digits(SENT)}id_/{LATE}")
    assert (memento.status, memento.body, memento.headers["memento-datetime"]) == (200, b"late", date(SENT))
    closest = json.loads(room.get(f"/wayback/available?url={LATE}").text)["archived_snapshots"]["closest"]
    assert closest["timestamp"] == digits(SENT)
    assert f'datetime="{date(SENT)}"' in room.get(f"/timemap/link/{LATE}").text
    gate = room.get(f"/web/{LATE}", {"Accept-Datetime": date(AGAIN)})
    assert gate.headers["location"].endswith(f"/web/{digits(SENT)}mp_/{LATE}")


@pytest.mark.parametrize("when", [BEGUN, AGAIN])
def test_a_snapshot_shows_it_with_the_time_of_its_capture(room: Served, when: datetime) -> None:
    page = room.get(f"/web/{digits(when)}mp_/{LATE}")
    assert page.status == 200 and page.headers["memento-datetime"] == date(SENT)
    frame = room.get(f"/web/{digits(when)}/{LATE}").text
    assert f'datetime="{SENT.isoformat()}"' in frame
    assert "Unchanged since" not in frame, "no crawl met it"
    assert ("has no capture of it" in frame) == (when == AGAIN)


@pytest.mark.parametrize("modifier", ["", "id_", "mp_"])
def test_digits_that_name_nothing_lead_to_those_of_what_is_shown(room: Served, modifier: str) -> None:
    for when in (BEGUN + timedelta(seconds=1), SENT + timedelta(days=1), HIDDEN + timedelta(days=99)):
        answer = room.get(f"/web/{digits(when)}{modifier}/{LATE}")
        assert answer.status == 302
        assert answer.headers["location"].endswith(f"/web/{digits(SENT)}{modifier}/{LATE}")


def test_links_in_a_capture_lead_into_its_snapshot(tmp_path: Path) -> None:
    own = archives.make_archive(tmp_path)
    published(own, DOMAIN, {HOME: Page(b"home"), LATE: Page(b"<a href=/>x</a>", captured=SENT)}, BEGUN)
    recover(own)
    with served(own) as found:
        page = found.get(f"/web/{digits(SENT)}mp_/{LATE}").text
        assert f"/web/{digits(BEGUN)}/{HOME}" in page


def test_what_cdx_lists_is_shown_and_nothing_else_at_that_address(room: Served) -> None:
    """Also where a capture of one crawl has the second in which another one began."""
    rows = cdx(room)
    assert (digits(OTHERS), BOTH) in {row[:2] for row in rows}
    for when, url, digest in rows:
        answer = room.get(f"/web/{when}id_/{url}")
        assert answer.status == 200, (when, url)
        found = base64.b32encode(hashlib.sha1(answer.body, usedforsecurity=False).digest()).decode()
        assert found == digest, (when, url)


def test_the_time_of_a_hidden_crawl_is_in_no_answer(room: Served) -> None:
    assert room.get(f"/web/{digits(HIDDEN)}id_/{LATE}").headers["location"].endswith(f"{digits(SENT)}id_/{LATE}")
    assert digits(HIDDEN) not in room.get(f"/cdx?url={LATE}").text + room.get(f"/timemap/link/{LATE}").text


def test_a_time_leads_to_the_last_crawl_that_met_the_page_until_then(tmp_path: Path) -> None:
    """Three crawls of one page, changed in the third; the second met it unchanged."""
    own = archives.make_archive(tmp_path / "archive")
    files = [
        warcs.write(tmp_path / f"{day}.warc", [warcs.response(LATE, body, f"2020-01-0{day}T10:00:00Z")])
        for day, body in ((1, b"one"), (4, b"one"), (7, b"two"))
    ]
    assert len(import_files(own, *files).outcomes) == 3
    recover(own)
    first, second, third = (f"2020010{day}100000" for day in (1, 4, 7))
    with served(own) as found:
        asked = {"20200102": first, "20200103": first, "20200105": second, "20200106": second, "2021": third}
        for time, expected in asked.items():
            for modifier in ("", "id_", "mp_"):
                answer = found.get(f"/web/{time}{modifier}/{LATE}")
                assert answer.headers["location"].endswith(f"/web/{expected}{modifier}/{LATE}"), (time, modifier)
        assert found.get(f"/web/{second}id_/{LATE}").headers["memento-datetime"] == "Sat, 04 Jan 2020 10:00:00 GMT"
        frame = LexborHTMLParser(found.get(f"/web/{second}/{LATE}").body)
        date = frame.css_first("#archived-date")
        assert date is not None and date.text() == "4 Jan 2020, 11:00 CET"
        assert "Unchanged since 1 Jan 2020, 11:00 CET." in frame.css_first(".notes").text()  # type: ignore[union-attr] # it is there
        assert "Unchanged" not in found.get(f"/web/{first}/{LATE}").text + found.get(f"/web/{third}/{LATE}").text
