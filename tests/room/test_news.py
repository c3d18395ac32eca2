"""The news feed: valid Atom, of what readers may see, with validators that hold."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from lxml import etree

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, published, served
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Event, Record, RecordState, Value
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET, compact_time

pytestmark = pytest.mark.store

ATOM = "{http://www.w3.org/2005/Atom}"
HOST = "www.example.org"
FIRST = datetime(2020, 5, 1, 12, tzinfo=CET)
#: Elements of RFC 4287 that a feed and an entry have once, and what others they may have (section 4.1).
ONCE = {"feed": ("id", "title", "updated"), "entry": ("id", "title", "updated")}
MAY = {
    "feed": {"id", "title", "updated", "author", "link", "entry"},
    "entry": {"id", "title", "updated", "author", "link", "summary", "published"},
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def check(body: bytes) -> etree._Element:
    """Hold a document to what RFC 4287 demands of feeds."""
    feed = etree.fromstring(body)
    entries = feed.findall(f"{ATOM}entry")
    assert feed.tag == f"{ATOM}feed" and (feed.find(f"{ATOM}author") is not None or not entries)
    for node in (feed, *entries):
        kind = etree.QName(node).localname
        names = [etree.QName(child).localname for child in node]
        assert {etree.QName(child).namespace for child in node} == {ATOM[1:-1]} and set(names) <= MAY[kind]
        assert [names.count(name) for name in ONCE[kind]] == [1, 1, 1]
        assert re.match(r"[a-z][a-z0-9+.-]*:\S+\Z", node.findtext(f"{ATOM}id") or "")
        times = [node.findtext(f"{ATOM}{name}") for name in ("updated", "published")]
        assert all(_TIME.fullmatch(time) for time in times if time is not None)
        assert times[1] is None or times[1] <= (times[0] or "")
        authors = [author.findtext(f"{ATOM}name") for author in node.findall(f"{ATOM}author")]
        assert authors and all(authors)
        alternates = [
            (link.get("type"), link.get("hreflang")) for link in node.findall(f"{ATOM}link[@rel='alternate']")
        ]
        assert len(set(alternates)) == len(alternates) > 0  # an entry without content must have one
        assert all(link.get("href") for link in node.findall(f"{ATOM}link"))
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == len(ids)
    return feed


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = archives.make_archive(tmp_path)
    for at in range(4):
        pages: dict[str, Page | None] = {f"http://{HOST}/": Page(b"%d" % at, title=f"Page {at}")}
        published(archive, HOST, pages, FIRST + timedelta(days=at), title=f"Crawl {at} \x07\u202e<&>")
    recover(archive)
    return archive


def record_id(at: int) -> str:
    return f"{compact_time(FIRST + timedelta(days=at))}-p"


def test_it_is_valid_with_many_and_without_any(archive: Archive, tmp_path: Path) -> None:
    with served(archive) as room:
        feed = check(room.get("/news.atom").body)
        assert len(feed.findall(f"{ATOM}entry")) == 4
        (own,) = [link.get("href") for link in feed.findall(f"{ATOM}link[@rel='self']")]
        assert own == f"{room.origin}/news.atom"
        (second,) = check(room.get("/news.atom?page=1").body).findall(f"{ATOM}link[@rel='self']")
        assert second.get("href") == f"{room.origin}/news.atom?page=1"
    with served(archives.make_archive(tmp_path / "empty")) as room:
        answer = room.get("/news.atom")
        assert check(answer.body).find(f"{ATOM}entry") is None and "last-modified" not in answer.headers


def condition(room: Served, **headers: str) -> tuple[int, bytes]:
    answer = room.get("/news.atom", {name.replace("_", "-"): value for name, value in headers.items()})
    return answer.status, answer.body


def test_a_program_that_has_it_gets_304_by_its_tag_or_its_date(archive: Archive) -> None:
    with served(archive) as room:
        answer = room.get("/news.atom")
        tag, date = answer.headers["etag"], answer.headers["last-modified"]
        assert answer.headers["cache-control"] == "no-cache"
        assert condition(room, If_None_Match=tag) == condition(room, If_Modified_Since=date) == (304, b"")
        assert condition(room, If_None_Match=f'W/{tag}, "x"', If_Modified_Since="x")[0] == 304
        assert condition(room, If_None_Match='"x"', If_Modified_Since=date) == (200, answer.body)
        for other in ("yesterday", "", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"):
            assert condition(room, If_Modified_Since=other) == (200, answer.body)
        head = room.get("/news.atom", method="HEAD")
        assert head.body == b"" and head.status == 200
        for name in ("etag", "last-modified", "content-length", "content-type"):
            assert head.headers[name] == answer.headers[name]


def _event(record: Record, at: datetime, state: RecordState) -> Record:
    return replace(record, state=state, events=(*record.events, Event(str(state), at, "x", "", state)))


@pytest.mark.parametrize("change", ["release", "withdraw", "title", "provenance"])
def test_no_change_of_what_it_says_leaves_a_validator_as_it_was(archive: Archive, change: str) -> None:
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=5)
    catalogue = Catalogue(archive)
    catalogue.change(record_id(1), lambda was: _event(was, FIRST, RecordState.RELEASED), "x", lambda _: "released")
    with served(archive) as room:
        before = room.get("/news.atom")
        match change:
            case "release":
                published(archive, "b.example.org", {"http://b.example.org/": Page(b"x")}, FIRST + timedelta(days=9))
                recover(archive)
            case "withdraw":  # of another one than the newest
                catalogue.change(record_id(1), lambda was: _event(was, later, RecordState.REJECTED), "x", lambda _: "w")
            case "title":
                catalogue.change(
                    record_id(0), lambda was: replace(was, title=Value("New", "x", later)), "x", lambda _: "t"
                )
            case "provenance":
                catalogue.change(record_id(0), lambda was: was.with_values({3: "New"}, "x", later), "x", lambda _: "p")
        after = room.get("/news.atom")
        assert after.body != before.body and after.headers["etag"] != before.headers["etag"]
        was, now = (parsedate_to_datetime(answer.headers["last-modified"]) for answer in (before, after))
        assert now > was
        assert condition(room, If_Modified_Since=before.headers["last-modified"])[0] == 200


def test_a_change_of_a_hidden_record_is_not_told(archive: Archive) -> None:
    published(archive, "b.example.org", {"http://b.example.org/": Page(b"x")}, FIRST + timedelta(days=8),
              state=RecordState.COUNTED, held=True, publication="q")  # fmt: skip
    recover(archive)
    with served(archive) as room:
        before = room.get("/news.atom")
        Catalogue(archive).change(
            f"{compact_time(FIRST + timedelta(days=8))}-q",
            lambda was: was.with_event("rejected", "x", "", RecordState.REJECTED),
            "x",
            lambda _: "rejected",
        )
        after = room.get("/news.atom")
    assert (after.body, after.headers["last-modified"]) == (before.body, before.headers["last-modified"])


def test_a_crawl_whose_embargo_ended_is_news_of_then(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    published(archive, HOST, {f"http://{HOST}/": Page(b"x")}, FIRST, closed_for="2 years")
    recover(archive)
    with served(archive) as room:
        answer = room.get("/news.atom")
        assert check(answer.body).findtext(f"{ATOM}updated", "").startswith("2022-")
        assert " 2022 " in answer.headers["last-modified"]
