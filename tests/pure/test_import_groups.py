"""How captures of foreign files become crawls, and a crawl's captures of a host snapshots."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.importing.crawls import (
    CrawlsBy,
    CrawlSpan,
    HostCuts,
    Sighting,
    UrlCaptures,
    UrlVersion,
    crawl_name,
    crawl_of_path,
    cut,
    group_by_pauses,
    part_of,
    versions_of,
)

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
        ("/x/heritrix/jobs/news/20250601120000/warcs/WEB-1.warc.gz", "news/20250601120000"),
        ("/jobs/news/20250601120000123/arcs/A.arc", "news/20250601120000123"),
        ("/box/archive/1748779200.0/warc/1748779201.warc.gz", "archive/1748779200.0"),
        ("/box/archive/1748779200/warc/a.warc.gz", "archive/1748779200"),
        ("/jobs/news/latest/warcs/WEB-1.warc.gz", ""),
        ("/20250601120000/WEB-1.warc.gz", ""),
        ("WEB-1.warc.gz", ""),
    ],
)
def test_folders_of_crawlers_name_a_crawl(path: str, name: str) -> None:
    assert crawl_of_path(path) == name


def test_a_file_that_holds_a_crawl_names_it_before_its_folder_and_its_records() -> None:
    of_file = {"file": "a.wacz", "digest": "0123456789abcdef", "path": "/j/20250601120000/warcs/a"}
    names = [crawl_name(how, **of_file, container="a.wacz/b.wacz", collection="c") for how in CrawlsBy]
    assert names == ["a.wacz/b.wacz 01234567", "all files", "a.wacz 01234567"]
    assert crawl_name(CrawlsBy.AUTO, **of_file, collection="c") == "j/20250601120000"
    assert crawl_name(CrawlsBy.AUTO, **of_file | {"path": "/a"}, collection="c") == "c"


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (b"", ""), (b"software: x\r\nisPartOf:\r\nformat: y", ""), (b"ispartof: a  b \r\nx: y", "a b"),
        (b"isPartOf: x\r\nwebarcfs-selection: 1234\r\n", ""), (b"description: isPartOf: no", ""),
        (b"a: b\nisPartOf : \xff" + b"x" * 999, "\ufffd" + "x" * 199),
    ],
)  # fmt: skip
def test_a_warcinfo_names_a_crawl(block: bytes, name: str) -> None:
    assert part_of(block) == name


# -- cuts -------------------------------------------------------------------------------------------------------------

#: Captures in order of time: URL, content, crawl.
HISTORIES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.just(1)), max_size=14)
OVERLAPPING = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.integers(1, 3)), max_size=20)
History = list[tuple[str, str, int]]


def urls_of(history: History) -> list[UrlCaptures]:
    urls: dict[str, list[Sighting]] = {}
    for position, (url, content, crawl) in enumerate(history):
        urls.setdefault(url, []).append(Sighting(position, crawl, content))
    return [UrlCaptures(url, sightings) for url, sightings in urls.items()]


def cuts_of(history: History, most: int = 1000) -> HostCuts:
    firsts = {crawl: position for position, (_, _, crawl) in reversed(list(enumerate(history)))}
    return cut(firsts, lambda: iter(urls_of(history)), most)


def begin_of(cuts: HostCuts, history: History, position: int) -> int:
    return cuts.begin(history[position][2], position)


def begins_of(cuts: HostCuts, version: UrlVersion) -> list[int]:
    return [cuts.begin(crawl, position) for crawl, position in version.firsts.items()]


def excluding(history: History) -> list[tuple[int, int]]:
    """Pairs of positions that cannot be in one snapshot: other contents of a URL."""
    return [
        (one, two)
        for (one, (url, content, _)), (two, other) in itertools.combinations(enumerate(history), 2)
        if url == other[0] and content != other[1]
    ]


def published(history: History, cuts: HostCuts) -> dict[str, str]:
    """What a host has when all snapshots are published in order, each with the newest of its captures."""
    state: dict[str, str] = {}
    for position in sorted(range(len(history)), key=lambda position: (begin_of(cuts, history, position), position)):
        url, content, _ = history[position]
        state[url] = content
    return state


@given(OVERLAPPING)
def test_no_snapshot_has_two_versions_of_a_url_and_the_newest_comes_last(history: History) -> None:
    """Also where crawls overlap."""
    cuts = cuts_of(history)
    for one, two in excluding(history):
        assert begin_of(cuts, history, one) != begin_of(cuts, history, two)
    for _, sightings in urls_of(history):
        for version in versions_of(sightings):
            if older := version.replaced:
                before = {crawl: first for crawl, first in older.firsts.items() if first < version.positions[0]}
                assert max(itertools.starmap(cuts.begin, before.items())) < min(begins_of(cuts, version))
    assert not list(cuts.dropped(urls_of(history)))


@given(OVERLAPPING)
@example([("a", "x", 1), ("b", "x", 2), ("b", "x", 1)])
def test_a_version_is_published_first_by_the_crawl_that_has_it_first(history: History) -> None:
    """Else it would have the time of a crawl that began before, and saw it later."""
    cuts = cuts_of(history)
    for _, sightings in urls_of(history):
        for version in versions_of(sightings):
            first, *later = begins_of(cuts, version)
            assert all(first < begin for begin in later)


@given(OVERLAPPING)
def test_when_all_is_published_a_host_is_as_it_was_captured_last(history: History) -> None:
    in_order = HostCuts({crawl: list(range(len(history))) for crawl in range(4)})
    assert published(history, cuts_of(history)) == published(history, in_order)


@given(HISTORIES.filter(lambda history: len(history) < 9))
def test_the_cuts_of_one_crawl_are_as_few_as_can_be(history: History) -> None:
    pairs = excluding(history)
    for count in itertools.count():
        chosen = itertools.combinations(range(1, max(len(history), 1)), count)
        if any(all(any(one < begin <= two for begin in begins) for one, two in pairs) for begins in chosen):
            assert len(cuts_of(history).begins.get(1, [0])) == count + 1
            return


@given(OVERLAPPING, st.integers(1, 6))
def test_more_cuts_than_wanted_cost_versions_of_the_noisiest(history: History, most: int) -> None:
    """Each URL keeps its last version, and its first where that is possible; what is left is as above."""
    cuts = cuts_of(history, most)
    assert all(len(begins) <= most for begins in cuts.begins.values())
    dropped = {position for position, _ in cuts.dropped(urls_of(history))}
    if all(len(begins) <= most for begins in cuts_of(history).begins.values()):
        assert not dropped
    for _, sightings in urls_of(history):
        assert sightings[-1].position not in dropped
        for crawl in cuts.begins:
            own = [each for each in sightings if each.crawl == crawl]
            versions = versions_of(own)
            if versions and not cuts.newest_only:
                assert versions[0].positions[0] not in dropped
                if len(versions) <= cuts.most_versions.get(crawl, 1000):
                    assert not dropped.intersection(each.position for each in own)
        kept = versions_of(each for each in sightings if each.position not in dropped)
        spans = [(min(begins_of(cuts, version)), max(begins_of(cuts, version))) for version in kept]
        assert all(older[1] < newer[0] for older, newer in itertools.pairwise(spans))


def test_a_noisy_page_is_thinned_and_the_others_keep_all() -> None:
    """A clock that was captured 200 times, beside a page of three versions."""
    clock: History = [("clock", str(minute), 1) for minute in range(200)]
    page: History = [("page", str(version), 1) for version in range(3)]
    history = [*clock[:50], page[0], *clock[50:100], page[1], *clock[100:], page[2]]
    cuts = cuts_of(history, 20)
    assert len(cuts.begins[1]) <= 20 and not cuts.newest_only
    dropped = dict(cuts.dropped(urls_of(history)))
    assert set(dropped.values()) == {"clock"}
    assert 200 - 20 <= len(dropped) <= 200 - 17
    assert not {0, 201}.intersection(dropped), "the first and the last of the clock"


def test_crawls_that_overlap_are_cut_where_one_would_hide_what_another_saw_later() -> None:
    """The first crawl began before, and saw the page's newest version after the second one had seen an older one."""
    history: History = [("start", "x", 1), ("page", "old", 2), ("page", "new", 1)]
    assert cuts_of(history).begins == {1: [0, 2], 2: [1]}
