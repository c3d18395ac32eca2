"""A search of all versions: one hit a URL, its best version, and numbers of URLs, however many versions they have."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.archives import DOMAIN, FIRST
from tests.support.histories import NOW as READERS_NOW
from tests.support.histories import History, Step
from tests.support.recorded import published
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import BadCondition, TookTooLong, TooMany
from webarcfs.archive.model.metadata import CommitTag, format_time
from webarcfs.archive.system import clocks
from webarcfs.archive.system.clocks import Deadline
from webarcfs.content.extractors.extracted import Extracted
from webarcfs.search import index, searching
from webarcfs.search.index import IndexReader, IndexWriter
from webarcfs.search.query_language import parse_search
from webarcfs.search.searching import HitOrder, Searcher, SearchQuestion
from webarcfs.search.translation import Translator
from webarcfs.search.words import CURRENT, IndexedDocument

pytestmark = pytest.mark.store
#: A page that changed in each snapshot, and pages that did not.
VERSIONS, OTHERS = 120, 30


def _page(text: str, title: str = "T", language: str = "en") -> bytes:
    return f"<html lang={language}><title>{title}</title><p>{text}</p></html>".encode()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """One page is better than the others, and has many versions; the last one is without the word."""
    made = archives.make_archive(tmp_path_factory.mktemp("versions"))
    pages = {f"o{number:02}.html": _page(f"giraffe and other animals, {number}") for number in range(OTHERS)}
    for number in range(VERSIONS):
        pages["busy.html"] = _page(f"giraffe giraffe giraffe {number}", "giraffe", "de" if number == 5 else "en")
        archives.publish(made, pages=pages, crawl_time=FIRST + timedelta(days=number))  # type: ignore[arg-type]
        pages = {}
    archives.publish(
        made, pages={"busy.html": _page("nothing"), "o00.html": None}, crawl_time=FIRST + timedelta(days=VERSIONS)
    )
    recover(made)
    bring_in_step(made)
    return made


def test_a_url_with_many_versions_leaves_room_for_others(archive: Archive) -> None:
    searcher = Searcher(archive)
    for limit in (1, 2, 20, 100):
        answer = searcher.ask(SearchQuestion(words="giraffe", limit=limit))
        urls = [hit.url for hit in answer.hits]
        assert len(set(urls)) == len(urls) == min(limit, OTHERS + 1)
        assert urls[0] == f"http://{DOMAIN}/busy.html"
        assert (answer.total, answer.is_exact, answer.in_present) == (OTHERS + 1, True, OTHERS - 1)
    assert searcher.count_versions(SearchQuestion(words="giraffe")) == VERSIONS + OTHERS
    assert searcher.count(SearchQuestion(words="giraffe")) == OTHERS + 1


def test_a_word_of_the_address_is_none_of_the_text(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    archives.publish(archive, pages={"a.html": _page("port"), "b.html": _page("of example"), "c.png": b"\x89PNG"})
    recover(archive)
    bring_in_step(archive)

    def urls(words: str) -> list[str]:
        hits = Searcher(archive).ask(SearchQuestion(words=words)).hits
        return sorted(hit.url.removeprefix(f"http://{DOMAIN}/") for hit in hits)

    assert urls("example") == ["b.html"]
    assert urls("url:example") == ["a.html", "b.html", "c.png"]
    assert urls("port -example") == ["a.html"]


def test_a_hit_says_how_many_versions_lie_between_and_lack_the_words(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    for number, text in enumerate(("giraffe", "zebra", "giraffe zebra", "lion", "giraffe lion", "okapi")):
        archives.publish(archive, pages={"a.html": _page(text)}, crawl_time=FIRST + timedelta(days=number))
    recover(archive)
    bring_in_step(archive)
    (hit,) = Searcher(archive).ask(SearchQuestion(words="giraffe")).hits
    assert (hit.versions, hit.ofVersions) == (3, 5)
    for gate in (None, Gate(archive, Reader())):
        answer = Searcher(archive, gate).ask(SearchQuestion(words="zebra"))
        assert [(hit.versions, hit.ofVersions) for hit in answer.hits] == [(2, 2)]


def test_what_is_only_in_earlier_versions(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    for gate in (None, Gate(archive, Reader())):
        answer = Searcher(archive, gate).ask(SearchQuestion(words="giraffe", past=True))
        assert {hit.url for hit in answer.hits} == {f"http://{DOMAIN}/busy.html", f"http://{DOMAIN}/o00.html"}
        assert (answer.total, answer.is_exact, answer.in_present) == (2, True, 0)
    facets = Searcher(archive).facets(SearchQuestion(words="giraffe", past=True))
    assert facets["domain"] == [(DOMAIN, 2)]
    with pytest.raises(BadCondition):
        Searcher(archive).ask(SearchQuestion(words="giraffe present:now", past=True))
    monkeypatch.setattr(searching, "_ONE_BY_ONE", 1)
    monkeypatch.setattr(searching, "MOST_EXACT", 1)
    with pytest.raises(TooMany):
        Searcher(archive).ask(SearchQuestion(words="giraffe", past=True))


@pytest.mark.parametrize("sort", HitOrder)
def test_pages_of_hits_have_each_url_once(archive: Archive, sort: HitOrder) -> None:
    searcher = Searcher(archive)
    urls: list[str] = []
    for offset in range(0, OTHERS + 10, 7):
        urls += [
            hit.url for hit in searcher.ask(SearchQuestion(words="giraffe", sort=sort, limit=7, offset=offset)).hits
        ]
    assert len(urls) == len(set(urls)) == OTHERS + 1
    if sort is HitOrder.URL:
        assert urls == sorted(urls)
    if sort is HitOrder.DATE:
        assert urls[0].endswith("busy.html")  # its newest version that has the word is younger
    places = [*searcher.places(SearchQuestion(words="giraffe", sort=sort, limit=1_000))]
    assert [path for _, path in places] == [f"/{url.partition('://')[2]}" for url in urls]


def test_a_hit_has_the_span_in_which_it_has_the_words(archive: Archive) -> None:
    busy, *_ = Searcher(archive).ask(SearchQuestion(words="giraffe", sort=HitOrder.DATE)).hits
    times = [format_time(FIRST + timedelta(days=number)) for number in range(VERSIONS + 1)]
    assert (busy.wordsFrom, busy.wordsTo, busy.versions) == (times[0], times[-2], VERSIONS)
    assert (busy.first, busy.last, busy.since, busy.until) == (times[0], times[-1], times[-2], times[-2])
    (third,) = Searcher(archive).ask(SearchQuestion(words='"giraffe 3"')).hits
    assert (third.wordsFrom, third.wordsTo, third.versions) == (times[3], times[3], 1)
    # Of a state, it is that of all time.
    (then,) = Searcher(archive).ask(SearchQuestion(words="giraffe url:busy", at=CommitTag(FIRST, DOMAIN))).hits
    assert (then.wordsFrom, then.wordsTo, then.since, then.until) == (times[0], times[-2], times[0], times[0])


def test_facets_count_urls(archive: Archive) -> None:
    facets = Searcher(archive).facets(SearchQuestion(words="giraffe"))
    assert facets["kind"] == [("html", OTHERS + 1)] and facets["domain"] == [(DOMAIN, OTHERS + 1)]
    assert dict(facets["language"])["de"] == 1  # one version of it is in German
    assert facets["year"] == [("2026", OTHERS + 1), ("2027", 1)]
    for year, count in facets["year"]:
        assert Searcher(archive).ask(SearchQuestion(words=f"giraffe during:{year}")).total == count


def test_many_urls_are_about_so_many(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of URLs, the total is an estimate, and says so; hits and pages are as before."""
    monkeypatch.setattr(searching, "MOST_EXACT", 10)
    monkeypatch.setattr(searching, "_ONE_BY_ONE", 10)
    monkeypatch.setattr(searching, "_FEWEST", 1)
    answer = Searcher(archive).ask(SearchQuestion(words="giraffe", limit=1))
    assert not answer.is_exact and abs(answer.total - OTHERS - 1) <= 3 and len(answer.hits) == 1
    assert answer.in_present == OTHERS - 1  # one version a URL is counted
    during = Searcher(archive).ask(SearchQuestion(words="giraffe during:2026", limit=1))
    assert not during.is_exact and abs((during.in_present or 0) - OTHERS + 1) <= 3
    assert dict(Searcher(archive).facets(SearchQuestion(words="giraffe"))["kind"])["html"] >= OTHERS - 3
    few = Searcher(archive).ask(SearchQuestion(words='"giraffe 3"'))
    assert (few.total, few.is_exact, few.in_present) == (1, True, 0)


def test_urls_of_the_present_are_counted_as_by_their_own_question(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the versions that were found know it, or the present is asked; whether they are few or many."""
    searcher, reader = Searcher(archive), Searcher(archive, Gate(archive, Reader()))
    for one_by_one, most_exact in ((20_000, 10_000), (10, 10_000), (10, 10)):
        monkeypatch.setattr(searching, "_ONE_BY_ONE", one_by_one)
        monkeypatch.setattr(searching, "MOST_EXACT", most_exact)
        for words in (
            "giraffe", "animals", "nothing", "nothing OR animals", "url:busy", "url:o00", "zebra",
            '"giraffe and"', '"giraffe giraffe"', "gira*", "anim* -nothing", '"other animals" OR nothi*',
        ):  # fmt: skip
            present = searcher.ask(SearchQuestion(words=words, present=True)).total
            assert searcher.ask(SearchQuestion(words=words)).in_present == present, words
            late = searcher.ask(SearchQuestion(words=words, during="2027"))
            for question in (SearchQuestion(words=words), SearchQuestion(words=words, during="2027")):
                assert reader.ask(question) == searcher.ask(question), question  # nothing is hidden
            if most_exact > 10:
                hits = searcher.ask(SearchQuestion(words=words, present=True, limit=1_000)).hits
                urls = {hit.url for hit in searcher.ask(SearchQuestion(words=words, during="2027", limit=1_000)).hits}
                assert late.in_present == len(urls & {hit.url for hit in hits}), words


def test_paths_of_many_versions_are_counted_in_a_part_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """About right, and exact where all are looked at; of what no snapshot ended the number is always exact."""
    with IndexWriter(tmp_path) as writer:
        for number in range(2_000):
            path = f"/{DOMAIN}/p{number}.html"
            for version in range(1 + number % 4):
                is_current = version == number % 4 and number % 5 > 0
                document = IndexedDocument(
                    url=f"http:/{path}", path=path, domain=DOMAIN, publication="p", since=version,
                    until=CURRENT if is_current else version + 1, captured=version, mime_type="text/html", title="",
                    status=200, size=1, blob="00" * 20, extracted=Extracted(body=f"giraffe {'zebra' * (version % 2)}"),
                )  # fmt: skip
                writer.put(document)
        writer.commit()
    reader, make = IndexReader(tmp_path), Translator(IndexReader(tmp_path).schema)
    for words, expected in (("giraffe", (2_000, 1_600)), ("zebra", (1_500, 800)), ("-zebra", (2_000, 800))):
        query = make.query(parse_search(words))
        places, current = reader.places_of(query, reader.count(query))
        assert (len(places), current) == expected, words
        monkeypatch.setattr(index, "_SAMPLED", 10_000)
        assert reader.count_places_and_current(query, reader.count(query)) == expected, words
        monkeypatch.setattr(index, "_SAMPLED", 500)
        about, current = reader.count_places_and_current(query, reader.count(query))
        assert about != expected[0] and abs(about - expected[0]) < expected[0] / 10 and current == expected[1], words
    assert reader.count_places_and_current(make.query(parse_search("lion")), 5_000) == (0, 0)


def test_the_deepest_page_and_the_deadline(archive: Archive) -> None:
    searcher = Searcher(archive)
    with pytest.raises(TooMany, match="narrow the search"):
        searcher.ask(SearchQuestion(words="giraffe", offset=searching.MOST_HITS))
    assert searcher.ask(SearchQuestion(words="giraffe", offset=1_000)).hits == ()
    deadline = Deadline(60)
    deadline.cancel()
    with clocks.under(deadline), pytest.raises(Exception, match="nobody waits"):
        searcher.ask(SearchQuestion(words="giraffe"))
    with clocks.under(Deadline(-1)), pytest.raises(TookTooLong):
        Searcher(archive).ask(SearchQuestion(words="giraffe during:2026"))


def test_states_are_given_once(archive: Archive) -> None:
    searcher = Searcher(archive)
    for narrowing in (
        {"words": "a during:2024", "during": "2025"},
        {"words": "a during:2024", "present": True},
        {"words": "a present:2024", "at": FIRST},
        {"words": "a present:now", "record": "x"},
        {"words": "a", "during": "2024-31"},
        {"words": "a", "during": "last year"},
    ):
        with pytest.raises(BadCondition):
            searcher.ask(SearchQuestion(**narrowing))  # type: ignore[arg-type]
    with pytest.raises(BadCondition):
        searcher.by_snapshot(SearchQuestion(words="a", at=FIRST))


def test_groups_by_snapshot_are_of_the_span(archive: Archive) -> None:
    searcher = Searcher(archive)
    groups = searcher.by_snapshot(SearchQuestion(words="giraffe url:busy during:2026-11-24..2026-11-25", limit=5))
    assert [(group.commitTag, group.total) for group in groups] == [
        (f"2026-11-25T03:00:00@{DOMAIN}", 1), (f"2026-11-24T03:00:00@{DOMAIN}", 1),
    ]  # fmt: skip
    assert [hit.since[:10] for group in groups for hit in group.hits] == ["2026-11-25", "2026-11-24"]
    assert sum(group.total for group in searcher.by_snapshot(SearchQuestion(words="giraffe", present=True))) > VERSIONS


def test_readers_are_told_of_no_hidden_version(archive: Archive) -> None:
    """Neither by the number of versions, nor by the span of the words, nor by how many are in the present."""
    hidden = archives.make_archive(archive.root.parent / "hidden")
    steps = [
        Step("p", {"a.html": "giraffe", "b.html": "zebra"}),
        Step("p", {"a.html": "giraffe 2", "b.html": "giraffe"}, RecordState.COUNTED, held=True),
        Step("p", {"a.html": "zebra", "b.html": "zebra"}),
        Step("p", {"a.html": "giraffe 3", "b.html": "giraffe 4"}, RecordState.COUNTED, held=True),
    ]
    history = History(steps)
    published(hidden, history)
    recover(hidden)
    bring_in_step(hidden)
    reader, staff = Searcher(hidden, Gate(hidden, Reader(), clock=lambda: READERS_NOW)), Searcher(hidden)
    question = SearchQuestion(words="giraffe")
    (hit,) = reader.ask(question).hits
    first = format_time(history.time(0))
    assert (hit.path, hit.versions, hit.wordsFrom, hit.wordsTo) == (f"/{DOMAIN}/a.html", 1, first, first)
    assert (reader.ask(question).total, reader.ask(question).in_present) == (1, 0)
    assert (staff.ask(question).total, staff.ask(question).in_present) == (2, 2)
    assert reader.ask(SearchQuestion(words="giraffe during:2020-01-02")).total == 0
    assert staff.ask(SearchQuestion(words="giraffe during:2020-01-02")).total == 2
    assert dict(reader.facets(question)["year"]) == {"2020": 1}
