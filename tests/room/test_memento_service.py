"""The room speaks Memento (RFC 7089), a test for each of its rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET
from webarcfs.room.replay.memento import http_date

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME, GONE, OLD = (f"http://{DOMAIN}/{name}" for name in ("", "gone.html", "old"))
FIRST = datetime(2020, 1, 1, 12, tzinfo=CET)
TIMES = [FIRST + timedelta(days=10 * each) for each in range(5)]
LINK = re.compile(
    r'<([^>]*)>; rel="([^"]*)"(?:; type="[^"]*")?(?:; from="([^"]*)"; until="([^"]*)")?(?:; datetime="([^"]*)")?'
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("mementos"))
    bodies = ["one", "two", "two", "three", "four"]
    for number, when in enumerate(TIMES):
        pages: dict[str, Page | None] = {}
        if number != 2:  # the third snapshot has the second version
            pages[HOME] = Page(f"<title>Home</title>{bodies[number]}".encode())
        if number == 1:
            pages[GONE] = Page(b"<p>here")
        if number == 2:
            pages[GONE] = None
        published(made, DOMAIN, pages, when, redirects={OLD: HOME} if number == 0 else None)
    error = {f"http://{DOMAIN}/error": Page(b"<p>no such page", status=404)}
    published(made, DOMAIN, error, TIMES[-1] + timedelta(days=1))
    recover(made)
    return made


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as found:
        yield found


def date(when: datetime) -> str:
    return http_date(int(when.timestamp()))


def links(text: str) -> dict[str, tuple[str, str]]:
    """Each rel, with its target and datetime."""
    return {rel: (found[1], found[5] or "") for found in LINK.finditer(text) for rel in found[2].split()}


# -- TimeGate (RFC 7089, section 4.1, pattern 2.1: 302, the TimeGate distinct from the original) -----------------------


@pytest.mark.parametrize(
    ("asked", "memento"),
    [
        (TIMES[0] - timedelta(days=1000), 0),  # before the first: the first
        (TIMES[0], 0),
        (TIMES[1] + timedelta(hours=1), 1),
        (TIMES[2] + timedelta(days=1), 1),  # the second version is still in force
        (TIMES[4] + timedelta(days=9999), 4),  # after the last: the last
    ],
)
def test_a_timegate_leads_to_the_memento_in_force(room: Served, asked: datetime, memento: int) -> None:
    answer = room.get(f"/web/{HOME}", {"Accept-Datetime": date(asked)})
    assert answer.status == 302
    assert answer.headers["location"].endswith(f"/web/{digits(TIMES[memento])}mp_/{HOME}")
    assert "accept-datetime" in answer.headers["vary"]
    assert "memento-datetime" not in answer.headers
    told = links(answer.headers["link"])
    assert told["original"][0] == HOME
    assert told["timemap"][0] == f"{room.origin}/timemap/link/{HOME}"
    assert told["first"] == (f"{room.origin}/web/{digits(TIMES[0])}mp_/{HOME}", date(TIMES[0]))
    assert told["last"] == (f"{room.origin}/web/{digits(TIMES[4])}mp_/{HOME}", date(TIMES[4]))


def test_where_the_page_was_gone_the_memento_is_the_nearest_in_time(room: Served) -> None:
    answer = room.get(f"/web/{GONE}", {"Accept-Datetime": date(TIMES[4])})
    assert answer.status == 302
    assert f"/web/{digits(TIMES[1])}mp_/" in answer.headers["location"]


def test_without_accept_datetime_a_timegate_leads_to_the_newest_frame(room: Served) -> None:
    answer = room.get(f"/web/{HOME}")
    assert answer.status == 302
    assert answer.headers["location"] == f"/web/{digits(TIMES[-1] + timedelta(days=1))}/{HOME}"
    assert "accept-datetime" in answer.headers["vary"]


@pytest.mark.parametrize(
    "asked", ["yesterday", "Thu, 31 May 2007", "2020-01-01T00:00:00Z", "Fri, 31 May 2007 20:35:00 GMT"]
)
def test_a_broken_date_is_400(room: Served, asked: str) -> None:
    answer = room.get(f"/web/{HOME}", {"Accept-Datetime": asked})
    assert answer.status == 400
    assert "memento-datetime" not in answer.headers


def test_a_timegate_of_nothing_is_404_without_memento_headers(room: Served) -> None:
    answer = room.get(f"/web/http://{DOMAIN}/nothing", {"Accept-Datetime": date(TIMES[0])})
    assert answer.status == 404
    assert not {"link", "memento-datetime"} & answer.headers.keys()


# -- mementos ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modifier", ["", "mp_", "id_"])
def test_a_memento_tells_its_time_and_its_neighbours_and_does_not_vary(room: Served, modifier: str) -> None:
    answer = room.get(f"/web/{digits(TIMES[1])}{modifier}/{HOME}", {"Accept-Datetime": date(TIMES[4])})
    assert answer.status == 200
    assert answer.headers["memento-datetime"] == date(TIMES[1])
    assert "accept-datetime" not in answer.headers.get("vary", "").lower()
    told = links(answer.headers["link"])
    assert told["original"][0] == HOME
    assert told["timegate"][0] == f"{room.origin}/web/{HOME}"
    assert told["prev"][1] == date(TIMES[0])
    assert told["next"][1] == date(TIMES[3])  # the third snapshot has the second version


def test_a_version_that_a_later_snapshot_has_keeps_its_time(room: Served) -> None:
    answer = room.get(f"/web/{digits(TIMES[2])}mp_/{HOME}")
    assert answer.status == 200
    assert answer.headers["memento-datetime"] == date(TIMES[1])


def test_archived_redirects_and_errors_are_mementos(room: Served) -> None:
    redirect = room.get(f"/web/{digits(TIMES[0])}mp_/{OLD}")
    assert redirect.status == 301
    assert redirect.headers["location"] == f"/web/{digits(TIMES[0])}mp_/{HOME}"
    assert redirect.headers["memento-datetime"] == date(TIMES[0])
    error = room.get(f"/web/{digits(TIMES[-1] + timedelta(days=1))}mp_/http://{DOMAIN}/error")
    assert error.status == 404
    assert error.headers["memento-datetime"] == date(TIMES[-1] + timedelta(days=1))
    assert b"no such page" in error.body


def test_other_redirects_have_the_original_and_do_not_vary(room: Served) -> None:
    answer = room.get(f"/web/2020/{HOME}")
    assert answer.status == 302
    assert links(answer.headers["link"])["original"][0] == HOME
    assert "vary" not in answer.headers
    assert "memento-datetime" not in answer.headers


def test_what_is_not_there_has_no_memento_headers(room: Served) -> None:
    answer = room.get(f"/web/{digits(TIMES[3])}mp_/{GONE}")
    assert answer.status == 404
    assert not {"link", "memento-datetime"} & answer.headers.keys()


# -- TimeMaps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/timemap/link/", "/web/timemap/link/"])
def test_a_timemap_lists_each_version_once(room: Served, path: str) -> None:
    answer = room.get(f"{path}{HOME}", {"Accept-Datetime": date(TIMES[0])})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/link-format")
    assert "vary" not in answer.headers
    told = links(answer.text)
    assert {"original", "timegate", "self", "first", "last"} <= told.keys()
    own = next(found for found in LINK.finditer(answer.text) if found[2] == "self")
    assert (own[3], own[4]) == (date(TIMES[0]), date(TIMES[4]))
    mementos = [found[5] for found in LINK.finditer(answer.text) if "memento" in found[2].split()]
    assert mementos == [date(TIMES[each]) for each in (0, 1, 3, 4)]
    for found in LINK.finditer(answer.text):
        if "memento" in found[2].split():
            assert room.get(found[1].removeprefix(room.origin)).headers["memento-datetime"] == found[5]


def test_a_timemap_of_nothing_is_404(room: Served) -> None:
    answer = room.get(f"/timemap/link/http://{DOMAIN}/nothing")
    assert answer.status == 404
    assert "link" not in answer.headers


def test_scripts_of_others_may_read_the_headers(room: Served) -> None:
    for path in (f"/web/{HOME}", f"/web/{digits(TIMES[0])}mp_/{HOME}", f"/timemap/json/{HOME}", f"/cdx?url={HOME}"):
        answer = room.get(path)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "Memento-Datetime" in answer.headers["access-control-expose-headers"]
    assert room.get(f"/web/{HOME}", method="OPTIONS").status in (200, 204)


def test_head_is_get_without_a_body(room: Served) -> None:
    for path in (
        f"/web/{HOME}",
        f"/web/{digits(TIMES[0])}mp_/{HOME}",
        f"/timemap/link/{HOME}",
        "/",
        f"/cdx?url={HOME}",
    ):
        got, asked = room.get(path), room.get(path, method="HEAD")
        assert asked.body == b""
        assert asked.status == got.status
        assert asked.headers.keys() - {"content-length", "transfer-encoding"} == got.headers.keys() - {
            "content-length", "transfer-encoding",
        }  # fmt: skip
