"""Lists of the reading room show what the records say, and a first page reads no more than it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise, product
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.support import archives, rooms
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, Standing, standing
from webarcfs.access.reader_stores import ReaderRecords, RecordHead
from webarcfs.archive.catalogue.catalogue import Catalogue, ShownSelection, opened
from webarcfs.archive.catalogue.record import CrawlPart, Occasion, Record, RecordState, Value, read_record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import Database
from webarcfs.archive.index.sqlite_file import SqliteFile
from webarcfs.archive.model.metadata import CommitTag, compact_time, parse_time
from webarcfs.archive.system.cache import identity
from webarcfs.web import language as languages

pytestmark = pytest.mark.store
BEGIN = parse_time("2019-06-01T03:00:00")
NOW = parse_time("2026-01-01T00:00:00")
ALL = slice(0, 1_000)


def record(number: int, state: RecordState, *, held: bool = False, closed_for: str = "", of: int = 3) -> Record:
    when = BEGIN + timedelta(days=20 * number)
    name = f"p{number % of}"
    hosts = [f"www{number}.example.org", f"static{number % 4}.example.org"]
    values = {2: f"51{number % 2}0", 3: "Stra\u00dfe", 4: "Internet", 12: hosts[0], 22: "1000", 23: str(number)}
    if number % 5 == 0:
        values |= {5: "Election \u4f8b", 12: "", 23: ""}
    parts = [CrawlPart(CommitTag(when + timedelta(seconds=at), host), True, "", held and at > 0, at > 0) for at, host in
             enumerate(reversed(hosts) if number % 3 else hosts)]  # fmt: skip
    crawl = Record(
        id=f"{compact_time(when)}-{name}", number=0, publication=name, state=state, complete=number % 2 == 0,
        closed_for=closed_for, title=Value(f"Crawl {number}"), parts=tuple(parts),
        occasion=Occasion.OCCASION if number % 5 == 0 else Occasion.REGULAR,
        values={key: Value(text) for key, text in values.items()},
    )  # fmt: skip
    if state is RecordState.RELEASED:
        crawl = crawl.with_event("released", "x", "", RecordState.RELEASED)
    return crawl


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive with a record of each state, held in part and not, closed for some time or for ever, and not.

    One record is released, and is of nothing.
    """
    archive = archives.make_archive(tmp_path)
    kinds = product(RecordState, (False, True), ("", "1 year", "90 years", "for ever"))
    records = [record(number, state, held=held, closed_for=time) for number, (state, held, time) in enumerate(kinds)]
    records += [record(len(records) + number, RecordState.RELEASED) for number in range(9)]
    records.append(replace(record(len(records), RecordState.RELEASED), parts=()))
    Catalogue(archive).save(records, "test", "some")
    return archive


def expected(archive: Archive, at: datetime = NOW) -> list[tuple[Record, datetime | None]]:
    """The records that readers may see, by the records themselves: newest first, with the end of their closure."""
    visible = []
    for record in Catalogue(archive).records():
        if record.date is None:
            continue  # it is of nothing
        held = any(part.is_held for part in record.parts)
        record_standing, until = standing(
            record.state, held=held, closed_for=record.closed_for, captured=record.date, now=at
        )
        if record_standing in (Standing.OPEN, Standing.CLOSED):
            visible.append((record, until if record_standing is Standing.CLOSED else None))
    return sorted(visible, key=lambda pair: (str(pair[0].date), pair[0].number), reverse=True)


def check(head: RecordHead, shown: Record, until: datetime | None) -> None:
    assert (head.id, head.number, head.title, head.closed_until) == (shown.id, shown.number, shown.title.text, until)
    assert (head.tags, head.resource_domains) == (shown.newest_tags, shown.domains_without_pages)
    assert (head.signature, head.project, head.provenance) == (shown.text(2), shown.text(4), shown.text(3))
    assert (head.domain, head.occasion, head.date) == (shown.text(12) or shown.domains[0], shown.text(5), shown.date)
    figures = (None, None) if until is not None else (int(shown.text(23)) if shown.text(23) else None, 1000)
    assert (head.documents, head.bytes) == figures
    releases = [event.at for event in shown.events if event.state is RecordState.RELEASED]
    assert (head.released, head.release_number) == (releases[-1] if releases else shown.date, max(len(releases), 1))


def test_each_list_has_what_the_records_say(archive: Archive) -> None:
    records, every = ReaderRecords(archive, lambda: NOW), expected(archive)
    assert {until is None for _, until in every} == {True, False} and len(every) > 12
    for head, (shown, until) in zip(records.listed(ShownSelection(), ALL), every, strict=True):
        check(head, shown, until)
        assert records.head(shown.id) == head
    visible = {shown.id for shown, _ in every}
    for other in Catalogue(archive).records():
        assert (records.head(other.id) is not None) == (other.id in visible)
    assert [head.id for head in records.listed(ShownSelection(), slice(2, 5), oldest=True)] == [
        shown.id for shown, _ in every[::-1][2:5]
    ]
    released = sorted((pair for pair in every if pair[1] is None), key=lambda p: (p[0].events[-1].at if p[0].events else
                      p[0].date, p[0].number), reverse=True)  # fmt: skip
    assert [head.id for head in records.released(ALL)] == [shown.id for shown, _ in released]
    assert records.count_open() == len(released)
    assert records.count_sites() == len({host for shown, _ in every for host in shown.sites})
    counts = Counter({(g.publication, g.is_occasion, g.year): 0 for g in records.groups()})
    for group in records.groups():
        counts[group.publication, group.is_occasion, group.year] += group.count
    assert counts == Counter(
        (shown.publication, shown.occasion is Occasion.OCCASION, str(shown.date.year))
        for shown, _ in every
        if shown.date
    )


def test_a_publication_and_what_is_beside_a_record(archive: Archive) -> None:
    records = ReaderRecords(archive, lambda: NOW)
    for name in ("p0", "p1", "p2"):
        own = [(shown, until) for shown, until in expected(archive) if shown.publication == name]
        ids, open_ids = [shown.id for shown, _ in own], [shown.id for shown, until in own if until is None]
        assert [head.id for head in records.of_publication(name, ALL)] == ids
        assert [head.id for head in records.of_publication(name, slice(1, 3))] == ids[1:3]
        years = records.years_of(name)
        assert {year: count for year, count in years.items() if count} == Counter(
            shown.date.year for shown, _ in own if shown.date
        )
        assert list(years) == list(range(min(years), max(years) + 1))
        assert [head.id for head in records.newest([name], 2)[name]] == ids[:2]
        for at, record_id in enumerate(ids):
            earlier, later = records.beside(record_id), records.beside(record_id, later=True)
            assert (earlier.id if earlier else None) == next(iter(ids[at + 1 :]), None)
            assert (later.id if later else None) == (ids[at - 1] if at else None)
            older = records.beside(record_id, only_open=True)
            assert (older.id if older else None) == next((i for i in ids[at + 1 :] if i in open_ids), None)
    assert not records.years_of("none") and records.beside("none") is None and records.newest(["none"], 2) == {}


@pytest.mark.parametrize(
    ("words", "is_there"),
    [("CRAWL 5", True), ("strasse", True), ("election \u4f8b p0", True), ("static1", True), ("", True),
     ("\x00", False), ("crawl \x00", False), ("a b c d e f", False), ('" %', False)],
)  # fmt: skip
def test_words_choose_in_each_list(archive: Archive, words: str, is_there: bool) -> None:
    def fits(shown: Record) -> bool:
        fields = (shown.title.text, *map(shown.text, (2, 3, 4, 5)), shown.publication, str(shown.number),
                  shown.text(12) or shown.domains[0], *shown.domains)  # fmt: skip
        return all(word in " ".join(fields).casefold() for word in words.casefold().split())

    records = ReaderRecords(archive, lambda: NOW)
    every = [shown for shown, _ in expected(archive) if fits(shown)]
    assert bool(every) == is_there
    for year in ("", "2022", "1999"):
        chosen = ShownSelection(words=words, year=year)
        ids = [shown.id for shown in every if shown.date and year in ("", str(shown.date.year))]
        assert [head.id for head in records.listed(chosen, ALL)] == ids
        assert sum(group.count for group in records.groups(chosen)) == len(ids)


def test_a_closure_ends_and_a_rule_counts_with_the_next_question(archive: Archive) -> None:
    times = [NOW]
    records = ReaderRecords(archive, lambda: times[0])
    first = [(head.id, head.closed_until) for head in records.listed(ShownSelection(), ALL)]
    times[0] = parse_time("2120-01-01T00:00:00")
    later = records.listed(ShownSelection(), ALL)
    assert [head.id for head in later] == [record_id for record_id, _ in first]
    assert not [head for head in later if head.closed_until] and [until for _, until in first if until]
    assert records.count_open() == len(later) == len(records.released(ALL))
    (host,) = later[0].resource_domains
    access_rules.withhold(archive, f"http://{host}/secret", "x", "no", access=Access.BLOCK)
    heads = records.listed(ShownSelection(), ALL)
    assert heads[0].bytes is None and any(head.bytes is not None for head in heads)


def test_a_record_that_is_withdrawn_is_in_no_list(archive: Archive) -> None:
    records = ReaderRecords(archive, lambda: NOW)
    before = [head.id for head in records.listed(ShownSelection(), ALL)]
    Catalogue(archive).change(
        before[0], lambda was: was.with_event("withdrawn", "x", "", RecordState.REJECTED), "x", lambda _: "withdrawn"
    )
    assert [head.id for head in records.listed(ShownSelection(), ALL)] == before[1:]
    assert records.head(before[0]) is None and sum(group.count for group in records.groups()) == len(before) - 1


# -- what a first page reads -------------------------------------------------------------------------------------------


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the rows that statements of databases return, and the records that are read from git."""
    counts: Counter[str] = Counter()
    run = SqliteFile._run

    class Rows(list[tuple[object, ...]]):
        def fetchall(self) -> list[tuple[object, ...]]:
            return self

        def fetchone(self) -> tuple[object, ...] | None:
            return self[0] if self else None

    def counting(self: SqliteFile, statement: str, **values: object) -> object:
        rows = Rows(run(self, statement, **values))
        counts["rows"] += len(rows)
        counts["statements"] += 1
        counts[statement] += 1
        return rows

    def reading(content: bytes) -> Record:
        counts["records"] += 1
        return read_record(content)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteFile, "_run", counting)
        patch.setattr("webarcfs.archive.catalogue.catalogue.read_record", reading)
        yield counts


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?all=1",
        "/?all=1&page=2",
        "/?q=crawl",
        "/publication/p0",
        "/publication/p0?page=2",
        "/collections",
        "/collection/c",
        "/collection/c?page=2",
        "/search",
        "/about",
        "/status.json",
        "/news.atom",
        "/news.atom?page=2",
    ],
)
def test_a_first_page_reads_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Six times the crawls cost no more rows, and no record is read from git. Years and publications stay the same."""
    costs = []
    for name, many in (("few", 220), ("many", 1_320)):
        archive = archives.make_archive(tmp_path / name)
        when = BEGIN - timedelta(days=200)
        records = [
            Record(
                id=f"{compact_time(when + timedelta(minutes=at))}-p{at % 2}", number=0, publication=f"p{at % 2}",
                state=RecordState.RELEASED, title=Value("Crawl"), values={2: Value("5100")},
                parts=(CrawlPart(CommitTag(when + timedelta(minutes=at), f"www{at % 40}.example.org"), True),),
            )
            for at in range(many)
        ]  # fmt: skip
        Catalogue(archive).save(records, "test", "many")
        archive.collections.mkdir()
        (archive.collections / "c.toml").write_text('title = "C"\npublications = ["p0", "p1"]\n')
        with opened(archive), Database(archive.database):
            pass  # as the agent leaves them
        with rooms.served(archive) as room, counted(monkeypatch) as counts:
            assert room.get(path).status == 200
        costs.append(counts)
    few, more = costs
    assert few["records"] == more["records"] == 0
    assert more["statements"] == few["statements"] > 0
    assert more["rows"] == few["rows"]


def test_a_page_asks_no_list_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archives.make_archive(tmp_path)
    records = [record(number, RecordState.RELEASED, of=1) for number in range(3)]
    catalogue = Catalogue(archive)
    with Database(archive.database):
        pass
    with rooms.served(archive) as room:
        for count, closed_for in ((1, ""), (2, "90 years")):
            catalogue.save([replace(records[1], closed_for=closed_for)], "test", "closure")
            catalogue.save([records[0], records[2]], "test", "others")
            with counted(monkeypatch) as counts:
                assert room.get("/publication/p0").status == 200
                assert room.get(f"/snapshot/{records[2].id}").status == 200
            assert counts["catalogue/shown_of_publication"] == 1
            assert counts["catalogue/shown_before"] == count + 1


def test_a_request_looks_at_the_files_of_the_settings_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each publication may have a file, and there may be hundreds."""
    archive = archives.make_archive(tmp_path)
    Catalogue(archive).save([record(1, RecordState.RELEASED, of=1)], "test", "one")
    with Database(archive.database):
        pass
    archive.settings.write_text('[save]\naddress = "https://desk.example/"\n')
    looks: list[tuple[Path, ...]] = []

    def counting(*paths: Path) -> tuple[object, ...]:
        looks.append(paths)
        return identity(*paths)

    monkeypatch.setattr("webarcfs.room.visit.identity", counting)
    leading = {"/web/*/http://e.example/": 200, "/web/20200101000000/http://e.example/": 404,
               "/notice/external?url=http%3A%2F%2Fe.example%2F": 200}  # fmt: skip
    with rooms.served(archive) as room:
        for path, status in {"/": 200, "/publication/p0": 200, **leading}.items():
            looks.clear()
            answer = room.get(path)
            assert (answer.status, len(looks)) == (status, 1), path
            assert (b"save-page" in answer.body) is (path in leading), path


def test_each_open_crawl_is_compared_with_the_open_one_before_it_and_the_link_says_its_date(tmp_path: Path) -> None:
    """A crawl under embargo is in the list and in no comparison; the last row of a page is compared with the next."""
    archive = archives.make_archive(tmp_path)
    of_one = [record(number, RecordState.RELEASED, of=1, closed_for="90 years" if number in (56, 53, 20, 8) else "")
              for number in range(58)]  # fmt: skip
    Catalogue(archive).save(of_one, "test", "some")
    open_ones = [one for one in reversed(of_one) if not one.closed_for]
    wanted = {
        f"/compare/{older.id}..{newer.id}": languages.moment(newer.date, "en")
        for newer, older in pairwise(open_ones)
        if newer.date is not None
    }
    shown: dict[str, str] = {}
    with Database(archive.database):
        pass
    with rooms.served(archive) as room:
        for page in ("", "?page=2"):
            links = LexborHTMLParser(room.get(f"/publication/p0{page}").body).css("a[href^='/compare/']")
            shown |= {
                link.attributes["href"] or "": link.text().removesuffix(" with the crawl before it") for link in links
            }
    assert shown == wanted and len(wanted) == 53
