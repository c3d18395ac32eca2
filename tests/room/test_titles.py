"""A crawl to which no person gave a title has that of its start page, as far as the reader may see the page."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.recovery import recover
from tests.room.test_first_pages import counted
from tests.support import archives
from tests.support.rooms import Page, published, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import SYSTEM, RecordState, Value
from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.index.database import CaptureIndex, Database
from webarcfs.archive.model.metadata import CET, compact_time

pytestmark = pytest.mark.store

FIRST = datetime(2020, 5, 1, 12, tzinfo=CET)
HOST = "town.example.com"
HOME = f"http://{HOST}/"
#: Name of a crawl → its pages, redirects and what else is said of it; and the title that it has for readers.
CASES: Mapping[str, tuple[dict[str, Page | None], dict[str, object], str]] = {
    "plain": ({HOME: Page(b"x", title="The town\n  of Springs")}, {}, "The town of Springs"),
    "led": ({f"{HOME}de/": Page(b"x", title="Die Stadt")}, {"redirects": {HOME: f"{HOME}de/#top"}}, "Die Stadt"),
    "away": ({f"{HOME}a": Page(b"x", title="A")}, {"redirects": {HOME: "http://other.example.com/"}}, HOST),
    "round": ({f"{HOME}a": Page(b"x", title="A")}, {"redirects": {HOME: f"{HOME}b", f"{HOME}b": HOME}}, HOST),
    "odd": ({f"{HOME}a": Page(b"x", title="A")}, {"redirects": {HOME: "mailto:a@town.example.com"}}, HOST),
    "closed": ({HOME: Page(b"x", title="Not to be seen")}, {"closed_for": "90 years"}, HOST),
    "error": ({HOME: Page(b"x", title="Sorry", status=503)}, {}, HOST),
    "long": ({HOME: Page(b"x", title="\u202eword " * 3_000)}, {}, ("\u202eword " * 40)[:160].rstrip() + "…"),
    "page": ({f"{HOME}minutes.html": Page(b"x", title="Minutes")}, {}, "Minutes"),
    "nothing": ({f"{HOME}a.png": Page(b"x", "image/png")}, {}, HOST),
}


def untitled(archive: Archive, record_id: str) -> None:
    """Give a record the title that the program makes."""
    title = Value(f"Internet: {HOST}, 2020-05-01T12:00:00", SYSTEM, FIRST)
    Catalogue(archive).change(record_id, lambda was: replace(was, title=title), "x", lambda _: "title")


def names(page: bytes) -> list[str]:
    return [node.text().strip() for node in LexborHTMLParser(page).css("table.snapshots th[role=rowheader] > a")]


@pytest.mark.parametrize("case", CASES)
def test_a_crawl_has_the_title_of_its_start_page(tmp_path: Path, case: str) -> None:
    pages, more, title = CASES[case]
    archive = archives.make_archive(tmp_path)
    published(archive, HOST, pages, FIRST, **more)  # type: ignore[arg-type]
    recover(archive)
    record_id = f"{compact_time(FIRST)}-p"
    untitled(archive, record_id)
    with served(archive) as room:
        assert names(room.get("/publication/p").body) == [title]
        record = room.get(f"/snapshot/{record_id}")
        heading = LexborHTMLParser(record.body).css_first("h1")
        assert heading is not None and heading.text() == title
        assert "2020-05-01T12:00:00" not in LexborHTMLParser(record.body).css_first("main h1").text()  # type: ignore[union-attr]
        feed = etree.fromstring(room.get("/news.atom").body)
        shown = [entry.text for entry in feed.iterfind(".//{*}entry/{*}title")]
        assert shown == ([] if case == "closed" else [title])
        assert "Not to be seen" not in record.text


def test_a_title_that_people_wrote_stays_and_the_record_keeps_its_own(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    published(archive, HOST, {HOME: Page(b"x", title="Page")}, FIRST, title="By hand")
    later = FIRST + timedelta(days=1)
    published(archive, HOST, {HOME: Page(b"y", title="Page of later")}, later)
    recover(archive)
    untitled(archive, f"{compact_time(later)}-p")
    with served(archive) as room:
        assert names(room.get("/publication/p").body) == ["Page of later", "By hand"]
        assert "Internet: town.example.com" in room.get(f"/snapshot/{compact_time(later)}-p.xml").text
        assert "Page of later" not in room.get(f"/snapshot/{compact_time(later)}-p.xml").text


@pytest.mark.parametrize("access", [Access.BLOCK, Access.EXCLUDE])
def test_the_title_of_a_page_that_is_withheld_is_told_nowhere(tmp_path: Path, access: Access) -> None:
    archive = archives.make_archive(tmp_path)
    pages: dict[str, Page | None] = {HOME: Page(b"x", title="Secret name"), f"{HOME}a": Page(b"x", title="Open page")}
    published(archive, HOST, pages, FIRST)
    recover(archive)
    record_id = f"{compact_time(FIRST)}-p"
    untitled(archive, record_id)
    access_rules.withhold(archive, HOME, "x", "no", access=access)
    with served(archive) as room:
        for path in ("/", "/?all=1", "/publication/p", f"/snapshot/{record_id}", "/news.atom", "/collections"):
            assert "Secret name" not in room.get(path).text, path
        assert names(room.get("/publication/p").body) == ["Open page"]


def test_a_hidden_crawl_gives_no_title_to_one_that_shares_its_page(tmp_path: Path) -> None:
    """Two publications of one host: the one has only what is open."""
    archive = archives.make_archive(tmp_path)
    published(archive, HOST, {f"{HOME}a.png": Page(b"x", "image/png")}, FIRST)
    later = FIRST + timedelta(days=1)
    published(archive, HOST, {HOME: Page(b"x", title="Held back")}, later, publication="q", state=RecordState.COUNTED,
              held=True)  # fmt: skip
    recover(archive)
    untitled(archive, f"{compact_time(FIRST)}-p")
    with served(archive) as room:
        page = room.get("/?all=1")
        assert names(page.body) == [HOST] and "Held back" not in page.text


@contextmanager
def asked_captures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note the statements that webarc.db is asked."""
    asked: list[str] = []
    ask = CaptureIndex._rows

    def noting(self: CaptureIndex, statement: str, values: dict[str, object]) -> object:
        asked.append(statement)
        return ask(self, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(CaptureIndex, "_rows", noting)
        yield asked


def test_titles_of_a_page_of_rows_cost_no_more_questions_than_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for many in (1, 50):
        archive = archives.make_archive(tmp_path / str(many))
        for at in range(many):
            when = FIRST + timedelta(days=at)
            published(archive, HOST, {HOME: Page(b"%d" % at, title=f"Title {at}")}, when)
            untitled(archive, f"{compact_time(when)}-p")
        recover(archive)
        with served(archive) as room, counted(monkeypatch) as counts, asked_captures(monkeypatch) as asked:
            assert names(room.get("/publication/p").body) == [f"Title {at}" for at in reversed(range(many))]
        costs.append((sorted(asked), counts["catalogue/heads_of_records"]))
    assert costs[0] == costs[1] == (["captures/redirects_in_snapshots", "captures/versions_in_snapshots"], costs[0][1])


def test_of_a_page_with_many_versions_one_is_looked_at_for_each_crawl(tmp_path: Path) -> None:
    """Each statement seeks: no step reads the versions or redirects of a page one after the other."""
    with Database(tmp_path / "webarc.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "webarc.db")) as connection:
        for name in ("versions", "redirects"):
            statement = f"EXPLAIN QUERY PLAN {sql(f'captures/{name}_in_snapshots')}"
            steps = [str(row[3]) for row in connection.execute(statement, {"places": "[]"})]
            assert not [step for step in steps if step.startswith("SCAN") and "VIRTUAL" not in step], steps
            sought = [step for step in steps if "seq_from" in step]
            assert len(sought) == 2 and any("seq_from=?" in step for step in sought), steps
