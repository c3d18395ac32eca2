"""How captures of foreign files become crawls, and a crawl's captures of a host snapshots."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.importing.crawls.cutting import HostCuts, Sighting, cut, versions_at
from agent.importing.crawls.grouping import CrawlSpan, group_by_pauses
from agent.importing.crawls.naming import crawl_of_part, crawl_of_path

pytestmark = pytest.mark.pure

HOUR = 3600
NAMES = ("", "", "", "wacz:1", "part-of:x")


def counted(captures: list[tuple[str, int]]) -> list[tuple[str, int, int]]:
    return [(*key, len(list(rows))) for key, rows in itertools.groupby(sorted(captures))]


def test_a_pause_ends_a_crawl_and_a_name_holds_it_together() -> None:
    captures = [("", 0), ("", 11 * HOUR), ("", 23 * HOUR), ("", 100 * HOUR), ("a", 0), ("a", 999 * HOUR), ("b", 50)]
    assert group_by_pauses(counted(captures), 12 * HOUR) == [
        CrawlSpan("", 0, 11 * HOUR, 2),
        CrawlSpan("a", 0, 999 * HOUR, 2),
        CrawlSpan("b", 50, 50, 1),
        CrawlSpan("", 23 * HOUR, 23 * HOUR, 1),
        CrawlSpan("", 100 * HOUR, 100 * HOUR, 1),
    ]
    assert group_by_pauses([], HOUR) == []


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 50))), st.integers(1, 20))
def test_each_capture_is_in_one_crawl(captures: list[tuple[str, int]], pause: int) -> None:
    """Of its name; between two crawls without a name is a pause, inside of them is none."""
    spans = group_by_pauses(counted(captures), pause)
    assert [span.first for span in spans] == sorted(span.first for span in spans)
    for name, time in captures:
        assert len([span for span in spans if span.name == name and span.first <= time <= span.last]) == 1
    assert sum(span.captures for span in spans) == len(captures)
    for name in {name for name, _ in captures} - {""}:
        assert len([span for span in spans if span.name == name]) == 1
    nameless = [span for span in spans if not span.name]
    assert all(later.first - span.last >= pause for span, later in itertools.pairwise(nameless))
    times = sorted(time for name, time in captures if not name)
    assert len(nameless) == (len([1 for one, two in itertools.pairwise(times) if two - one >= pause]) + bool(times))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/heritrix/jobs/news/20250601120000/warcs/WEB-1.warc.gz", "heritrix:news/20250601120000"),
        ("/jobs/news/20250601120000123/arcs/A.arc", "heritrix:news/20250601120000123"),
        ("/box/archive/1748779200.0/warc/1748779201.warc.gz", "archivebox:archive/1748779200.0"),
        ("/box/archive/1748779200/warc/a.warc.gz", "archivebox:archive/1748779200"),
        ("/jobs/news/latest/warcs/WEB-1.warc.gz", ""),
        ("/20250601120000/WEB-1.warc.gz", ""),
        ("WEB-1.warc.gz", ""),
    ],
)
def test_folders_of_crawlers_name_a_crawl(path: str, name: str) -> None:
    assert crawl_of_path(path) == name


def test_a_warcinfo_names_a_crawl() -> None:
    assert [crawl_of_part(value) for value in ("", "  ", " a\r\n b ", "x" * 999)] == [
        "", "", "part-of:a b", "part-of:" + "x" * 200,
    ]  # fmt: skip


# -- cuts -------------------------------------------------------------------------------------------------------------

#: Captures in order of time: place, which of its two URLs, content, whether it is a redirect.
HISTORIES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("12"), st.sampled_from("xyz"), st.booleans()), max_size=14
)
DOCUMENTS = st.lists(st.tuples(st.sampled_from("abcdef"), st.just("1"), st.sampled_from("xyz"), st.just(False)))
History = list[tuple[str, str, str, bool]]


def places_of(history: History) -> list[list[Sighting]]:
    places: dict[str, list[Sighting]] = {}
    for position, (place, url, content, is_redirect) in enumerate(history):
        places.setdefault(place, []).append(Sighting(position, place + url, content, is_redirect))
    return list(places.values())


def cuts_of(history: History, most: int = 1000) -> HostCuts:
    return cut(lambda: iter(places_of(history)), most)


def excluding(history: History) -> list[tuple[int, int]]:
    """Pairs of positions that cannot be in one snapshot: other documents of a place, or other answers of a URL."""
    pairs = []
    for (one, (place, url, content, redirect)), (two, other) in itertools.combinations(enumerate(history), 2):
        is_of_url = (place, url) == other[:2]
        if place == other[0] and (content, redirect) != other[2:] and (is_of_url or not (redirect or other[3])):
            pairs.append((one, two))
    return pairs


@given(HISTORIES)
def test_no_snapshot_has_two_versions_of_a_place(history: History) -> None:
    cuts = cuts_of(history)
    assert all(cuts.number(one) < cuts.number(two) for one, two in excluding(history))
    assert not list(cuts.dropped(places_of(history)))


@given(HISTORIES.filter(lambda history: len(history) < 9))
def test_the_cuts_are_as_few_as_can_be(history: History) -> None:
    pairs = excluding(history)
    for count in itertools.count():
        chosen = itertools.combinations(range(1, max(len(history), 1)), count)
        if any(all(any(one < begin <= two for begin in begins) for one, two in pairs) for begins in chosen):
            assert len(cuts_of(history).begins) == count
            return


@given(DOCUMENTS, st.integers(1, 6))
def test_more_cuts_than_wanted_cost_versions_of_the_noisiest(history: History, most: int) -> None:
    """Each place keeps its last version, and its first where that is possible; what is left is as above."""
    cuts = cuts_of(history, most)
    assert len(cuts.begins) < most
    dropped = {position for position, _ in cuts.dropped(places_of(history))}
    if len(cuts_of(history).begins) < most:
        assert not dropped
    for sightings in places_of(history):
        versions = versions_at(sightings)
        assert not dropped.intersection(versions[-1].positions)
        if not cuts.newest_only:
            assert versions[0].first not in dropped
            if len(versions) <= cuts.most_versions:
                assert not dropped.intersection(each.position for each in sightings)
    left = [position for position in range(len(history)) if position not in dropped]
    pairs = [pair for pair in excluding(history) if set(pair) <= set(left)]
    assert all(cuts.number(one) < cuts.number(two) or cuts.newest_only for one, two in pairs)
    if cuts.newest_only:  # the first capture of a version tells its snapshot
        for sightings in places_of(history):
            kept = versions_at(each for each in sightings if each.position not in dropped)
            numbers = [cuts.number(version.first) for version in kept]
            assert numbers == sorted(set(numbers))


def test_a_noisy_page_is_thinned_and_the_others_keep_all() -> None:
    """A clock that was captured 200 times, beside a page of three versions."""
    clock: History = [("clock", "1", str(minute), False) for minute in range(200)]
    page: History = [("page", "1", str(version), False) for version in range(3)]
    history = [*clock[:50], page[0], *clock[50:100], page[1], *clock[100:], page[2]]
    cuts = cuts_of(history, 20)
    assert len(cuts.begins) < 20 and not cuts.newest_only
    dropped = dict(cuts.dropped(places_of(history)))
    assert set(dropped.values()) == {"clock1"}
    assert 200 - 20 <= len(dropped) <= 200 - 17
    assert not {0, 201}.intersection(dropped), "the first and the last of the clock"


def test_a_redirect_and_the_page_that_it_replaces_have_two_snapshots() -> None:
    """A redirect to the other URL of a place, as of http to https, needs none."""
    assert cuts_of([("a", "1", "x", False), ("a", "1", "b", True), ("a", "1", "x", False)]).begins == (1, 2)
    assert cuts_of([("a", "1", "b", True), ("a", "2", "x", False), ("a", "1", "b", True)]).begins == ()
