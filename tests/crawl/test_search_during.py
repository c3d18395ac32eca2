"""`during:` finds what was captured in a span of time: it equals a scan of all captures, for staff and for readers."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.importing import import_sources
from agent.indexing.fulltext import bring_in_step
from agent.jobs import importjob
from tests.support import archives, warcs
from tests.support.crawls import run_command
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.access.gate import Gate, KnownGate, Reader, StaffGate
from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication, Release
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index import database
from webarcfs.archive.index.database import CaptureIndex, Span
from webarcfs.archive.model.metadata import CET, utc
from webarcfs.search import capture_times
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(1_800)]

YEARS = range(2015, 2023)
#: Each with the publications that crawl it.
HOSTS = {"one.example.org": ("p",), "two.example.org": ("q", "r"), "open.example.org": ("s", "t")}
_SCRIPTS = ("東京都", "отчёт", "กรุงเทพ", "ירושלים", "مدينة", "Ἀθῆναι", "서울", "naïve")
WORDS = [*(f"word{number}" for number in range(92)), *_SCRIPTS]
PATHS = (*(f"p{number}.html" for number in range(7)), "folder/index.html", "old/a.html", "old/b.html")
_DAY = timedelta(days=1)
#: Path, seconds since 1970 and text of a capture.
Seen = tuple[str, int, str]


@dataclass(frozen=True)
class Crawl:
    """A crawl of a publication: what it found at which time, by URL."""

    host: str
    publication: str
    pages: Mapping[str, tuple[datetime, str]]
    complete: bool
    released: bool

    def seen(self) -> Iterator[Seen]:
        for url, (when, text) in self.pages.items():
            yield f"/{url.partition('://')[2]}", int(when.timestamp()), text


def _crawls(dice: random.Random) -> Iterator[Crawl]:
    """Some crawls a year of each host, one of them over New Year's midnight; most pages as they were before."""
    for host, publications in HOSTS.items():
        texts: dict[str, str] = {}
        for year in YEARS:
            for number in range(dice.choice((1, 2, 3))):
                begun = datetime(year, 1, 2, 3, tzinfo=CET) + dice.randrange(360) * _DAY
                if number == 0 and year % 3 == 0:
                    begun = datetime(year, 12, 31, 23, 59, 57, tzinfo=CET)
                pages = {}
                for at, path in enumerate(dice.sample(PATHS, dice.randrange(4, len(PATHS) + 1))):
                    if path not in texts or dice.random() < 0.25:
                        texts[path] = " ".join(dice.choices(WORDS, k=6)) + f" {host} {dice.randrange(1000)}"
                    url = f"http://{host}/{path}"
                    pages[url] = (begun + timedelta(seconds=at), texts[path])
                released = host == "open.example.org" or dice.random() < 0.7
                yield Crawl(host, dice.choice(publications), pages, dice.random() < 0.4, released)


def _imported(archive: Archive, folder: Path, number: int, crawl: Crawl) -> None:
    records = [
        warcs.response(url, f"<html lang=en><p>{text}</p></html>".encode(), f"{utc(when):%Y-%m-%dT%H:%M:%SZ}",
                       )
        for url, (when, text) in crawl.pages.items()
    ]  # fmt: skip
    source = warcs.write(folder / f"{number}.warc", records)
    release = Release.AUTOMATIC if crawl.released else Release.BY_HAND
    publication = Publication(name=crawl.publication, urls=(), release=release, crawl=CrawlSettings())
    request = importjob.ImportRequest(complete=crawl.complete, accept_shrink=True)
    importjob.run(archive, import_sources.sources_of([source]), publication, None, request)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Archive, list[Crawl]]:
    folder = tmp_path_factory.mktemp("during")
    archive = archives.make_archive(folder)
    dice = random.Random(41)
    crawls = list(_crawls(dice))
    order = list(enumerate(crawls))
    dice.shuffle(order)
    for at, (number, crawl) in enumerate(order):
        _imported(archive, folder, number, crawl)
        if at % 20 == 7:
            bring_in_step(archive)  # the rest comes to an index that has some
    bring_in_step(archive)
    return archive, crawls


def _by_word_and_year(seen: Iterator[Seen]) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for path, time, text in seen:
        year = datetime.fromtimestamp(time, CET).year
        for word in text.split():
            found[word, year].add(path)
    return found


def _captures(archive: Archive) -> Iterator[Seen]:
    """What the CDX API would tell a reader, with the texts that git has."""
    gate = KnownGate(archive, Reader())
    gate.look()
    with CaptureIndex(archive.database) as index:
        for capture in VisibleCaptures(gate, index).below(Span("", "\U0010ffff"), with_met=True):
            domain = capture.path[1:].partition("/")[0]
            raw = Repository(archive.repository(domain)).read(capture.blob).decode()
            yield capture.path, capture.captured, re.sub("<[^>]*>", " ", raw)


def _agree(searcher: Searcher, seen: Iterator[Seen]) -> int:
    """Whether each word is found in each year where a capture has it; return how many are."""
    truth = _by_word_and_year(seen)
    found = 0
    for word in WORDS:
        for year in YEARS:
            question = SearchQuestion(words=f'text:"{word}" during:{year}', exact=True, limit=1_000)
            answer = searcher.ask(question)
            paths = {hit.path for hit in answer.hits}
            assert paths == truth.get((word, year), set()), (word, year)
            assert answer.total == len(answer.hits) == len(paths) and answer.is_exact
            found += len(paths)
    everything = {(path, year) for (_, year), paths in truth.items() for path in paths}
    for year in YEARS:
        hits = searcher.ask(SearchQuestion(words=f"during:{year}", limit=1_000)).hits
        assert {(hit.path, year) for hit in hits} == {pair for pair in everything if pair[1] == year}
    return found


def test_staff_find_what_the_crawls_captured(made: tuple[Archive, list[Crawl]]) -> None:
    archive, crawls = made
    found = _agree(Searcher(archive), (seen for crawl in crawls for seen in crawl.seen()))
    assert found > len(WORDS) * len(YEARS) / 2


@pytest.mark.parametrize("most_listed", [16, 0], ids=["versions by their ends", "versions by runs of snapshots"])
def test_spans_of_time_may_be_of_any_length(
    made: tuple[Archive, list[Crawl]], most_listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days, months, several years, and one second of a crawl."""
    monkeypatch.setattr(capture_times, "_LISTED", most_listed)
    archive, crawls = made
    searcher, dice = Searcher(archive), random.Random(5)
    seen = [one for crawl in crawls for one in crawl.seen()]
    for _ in range(60):
        at = datetime.fromtimestamp(dice.choice(seen)[1], CET)
        first, last = sorted(dice.sample(YEARS, 2))
        for text, begin, end in (
            (f"{at:%Y-%m-%d}", at.replace(hour=0, minute=0, second=0), None),
            (f"{at:%Y-%m-%dT%H:%M:%S}", at, at + timedelta(seconds=1)),
            (f"{first}..{last}", datetime(first, 1, 1, tzinfo=CET), datetime(last + 1, 1, 1, tzinfo=CET)),
            (f"{first}-12..{last}-01", datetime(first, 12, 1, tzinfo=CET), datetime(last, 2, 1, tzinfo=CET)),
        ):
            limit = end or begin + _DAY
            expected = {path for path, when, _ in seen if begin.timestamp() <= when < limit.timestamp()}
            answer = searcher.ask(SearchQuestion(words="url:html", during=text, limit=1_000))
            assert {hit.path for hit in answer.hits} == expected, text


def test_readers_find_what_they_may_see(made: tuple[Archive, list[Crawl]]) -> None:
    """A hidden crawl's capture is none, whichever crawl carried over what it stored."""
    archive, crawls = made
    assert sum(not crawl.released for crawl in crawls) > 5
    searcher = Searcher(archive, Gate(archive, Reader()))
    found = _agree(searcher, _captures(archive))
    staff = _by_word_and_year(seen for crawl in crawls for seen in crawl.seen())
    assert len(WORDS) < found < sum(map(len, staff.values()))


def test_access_rules_hold_for_the_time_and_the_spelling_of_captures(made: tuple[Archive, list[Crawl]]) -> None:
    archive, _ = made
    searcher = Searcher(archive, Gate(archive, Reader()))
    before = _by_word_and_year(_captures(archive))
    one, two, third = HOSTS
    between = {"after": datetime(2017, 1, 1, tzinfo=CET), "before": datetime(2019, 5, 1, tzinfo=CET)}
    rules = [
        (f"http://{one}/p1.html", {}),
        (f"http://{one}/old/*", between),
        (f"http://{two}/p2.html", {"after": datetime(2018, 6, 1, tzinfo=CET)}),
        (f"http://{third}/p3.html", {"before": datetime(2018, 6, 1, tzinfo=CET), "access": Access.EXCLUDE}),
        (f"http://{third}/folder/", {"exact": True}),
        (f"https://{one}/folder/ind*", {}),
    ]  # fmt: skip
    made_rules = [
        rule
        for url, how in rules
        for rule in access_rules.withhold(archive, url, "test", "asked for", **how)  # type: ignore[arg-type]
    ]
    try:
        after = _by_word_and_year(_captures(archive))
        _agree(searcher, _captures(archive))
        assert sum(map(len, after.values())) < sum(map(len, before.values()))
        # What is withheld is found by staff.
        assert Searcher(archive).ask(SearchQuestion(words="url:p1", during="2015..2022", domain=one)).total == 1
        assert searcher.ask(SearchQuestion(words="url:p1", during="2015..2022", domain=one)).total == 0
    finally:
        for rule in made_rules:
            access_rules.lift(archive, rule.id, "test")


def test_what_is_discarded_was_captured_by_nobody(made: tuple[Archive, list[Crawl]]) -> None:
    archive, crawls = made
    chosen = next(
        record for record in Catalogue(archive).records()
        if record.parts[0].tag.domain == "one.example.org" and record.parts[0].tag.crawl_time.year == 2018
    )  # fmt: skip
    begun = int(chosen.parts[0].tag.crawl_time.timestamp())
    done = run_command("record", "discard", chosen.id, "--reason", "x", "--archive", archive.root)
    assert done.code == 0, done.err
    try:
        others = [crawl for crawl in crawls if min(when for _, when, _ in crawl.seen()) != begun]
        assert len(others) == len(crawls) - 1
        searcher = Searcher(archive, StaffGate(archive))
        question = SearchQuestion(words="url:html", during="2018", limit=1_000, domain="one.example.org")
        expected = {
            path for crawl in others if crawl.host == "one.example.org" for path, when, _ in crawl.seen()
            if datetime.fromtimestamp(when, CET).year == 2018
        }  # fmt: skip
        # A crawl after it may have carried over what it had stored: that is then first seen there.
        gone = next({path for path, _, _ in crawl.seen()} for crawl in crawls if crawl not in others)
        found = {hit.path for hit in searcher.ask(question).hits}
        assert expected <= found <= expected | gone
    finally:
        assert run_command("record", "restore", chosen.id, "--archive", archive.root).code == 0


def test_a_version_has_its_weight_once_however_it_was_captured(tmp_path: Path) -> None:
    """Stored and met in one span of time, it stands behind a better one that was stored alone."""
    archive = archives.make_archive(tmp_path)
    host = "one.example.org"
    better, worse = f"http://{host}/better.html", f"http://{host}/worse.html"
    for number, urls in enumerate(((better, worse), (worse,))):
        begun = datetime(2020, 3 + number, 1, tzinfo=CET)
        texts = {better: "giraffe giraffe giraffe lion", worse: "giraffe lion lion lion"}
        pages = {url: (begun, texts[url]) for url in urls}
        _imported(archive, tmp_path, number, Crawl(host, "p", pages, complete=True, released=True))
    bring_in_step(archive)
    facts = database.capture_facts(archive.database, host, [int(datetime(2020, 4, 1, tzinfo=CET).timestamp())])
    assert [(of_crawl.stored, of_crawl.met) for of_crawl in facts.values()] == [(0, 1)]
    for words in ("giraffe", "giraffe during:2020", "giraffe during:2020-03"):
        assert [hit.url for hit in Searcher(archive).ask(SearchQuestion(words=words)).hits] == [better, worse], words


def test_few_versions_are_asked_for(made: tuple[Archive, list[Crawl]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a crawl captured its whole tree, the lists of what it met are not read."""
    archive, crawls = made
    read: list[int] = []
    original = database.met_in_snapshot

    def met_in_snapshot(path: Path, domain: str, seq: int) -> object:
        read.append(seq)
        return original(path, domain, seq)

    monkeypatch.setattr(database, "met_in_snapshot", met_in_snapshot)
    searcher = Searcher(archive)
    searcher.ask(SearchQuestion(words="during:2016..2020"))
    assert len(read) < sum(2016 <= min(when.year for when, _ in crawl.pages.values()) <= 2020 for crawl in crawls)
    read.clear()
    searcher.ask(SearchQuestion(words="word1 during:2016..2020"))
    assert read == []  # it is remembered
