"""The list of what a crawl met unchanged: what is written is read, it is small, and hostile bytes are refused."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model import url_lists
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.url_lists import Met, MetList, column, read_met_list, spelled, spelling_of, write_met_list
from webarcfs.archive.model.urls import canonical

pytestmark = pytest.mark.pure

_NOW = 1_795_000_000
_mets = st.none() | st.builds(
    Met, st.integers(_NOW, _NOW + 10**6) | st.integers(-(10**10), 2 * 10**11), st.integers(0, 3)
)
_names = st.text(max_size=9) | st.sampled_from(["a", "a/b", "a-b", "caf\udce9", ""])
_rows = st.lists(st.tuples(_names, _mets), max_size=40)


def listed(rows: list[tuple[str, Met | None]], redirects: list[tuple[str, Met | None]] | None = None) -> bytes:
    return write_met_list(MetList(column(rows), column(redirects or [])))


@given(_rows, _rows)
def test_what_is_written_is_read(rows: list[tuple[str, Met | None]], redirects: list[tuple[str, Met | None]]) -> None:
    found = read_met_list(listed(rows, redirects))
    assert list(found.arcs.along(name for name, _ in rows)) == rows
    assert list(found.redirects.along(name for name, _ in redirects)) == redirects
    assert write_met_list(found) == listed(rows, redirects)


@given(_rows.filter(bool), st.data())
def test_a_list_of_other_urls_is_refused(rows: list[tuple[str, Met | None]], data: st.DataObject) -> None:
    names = [name for name, _ in rows]
    at = data.draw(st.integers(0, len(names) - 1))
    found = read_met_list(listed(rows)).arcs
    for others in (names[:at], [*names, "more"], [*names[:at], f"{names[at]}x", *names[at + 1 :]]):
        with pytest.raises(Damaged):
            list(found.along(others))


@pytest.mark.large
def test_a_url_takes_few_bytes_in_the_worst_order() -> None:
    """A month's crawl whose order has nothing to do with the tree's: four bytes at most."""
    chance = random.Random(1)
    rows = [(str(number), Met(_NOW + chance.randrange(30 * 86_400), 1)) for number in range(100_000)]
    assert len(listed(rows)) < 4 * len(rows)


@pytest.mark.large
def test_the_usual_order_takes_less() -> None:
    chance = random.Random(1)
    rows = [(str(number), Met(_NOW + number + chance.randrange(20))) for number in range(100_000)]
    assert len(listed(rows)) < len(rows)


def test_what_met_nothing_takes_next_to_nothing() -> None:
    assert len(listed([(str(number), None) for number in range(100_000)])) < 1_000


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(Damaged):
        read_met_list(raw)


@given(_rows, st.data())
def test_changed_bytes_are_refused_or_are_a_list(rows: list[tuple[str, Met | None]], data: st.DataObject) -> None:
    raw = bytearray(listed(rows))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read_met_list(bytes(raw))
    except Damaged:
        return
    assert all(each is None or each.spelling < 4 for part in (found.arcs, found.redirects) for each in part)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw[:-1],
        lambda raw: raw + b"x",
        lambda raw: raw.replace(b"met-1", b"met-2"),
        lambda raw: raw.replace(b" 2 ", b" 3 ", 1),
        lambda raw: raw.replace(b" 2 ", b" 1 ", 1),
        lambda raw: raw.replace(b" 2 ", b" 99999999 ", 1),
        lambda raw: raw.partition(b"\n")[0] + b"\n" + zlib.compress(b"\x09\x00" + bytes(10)),
        lambda raw: raw.partition(b"\n")[0] + b"\n" + zlib.compress(b"\x00\x00" + b"\xff" * 10),
    ],
)
def test_lists_that_are_refused(change: object) -> None:
    raw = listed([("a", Met(_NOW)), ("b", Met(_NOW + 1))])
    assert b" 2 " in raw
    with pytest.raises(Damaged):
        read_met_list(change(raw))  # type: ignore[operator]


@pytest.mark.large
def test_bytes_that_unpack_to_much_more_cost_no_memory() -> None:
    bomb = listed([("a", Met(_NOW))]).partition(b"\n")[0] + b"\n" + zlib.compress(bytes(300_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(Damaged):
            read_met_list(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_list_has_no_more_numbers_than_are_read() -> None:
    head = listed([("a", None)]).replace(b" 1 ", b" %d " % (url_lists.MOST + 1), 1)
    with pytest.raises(Damaged, match="at most"):
        read_met_list(head)


@pytest.mark.parametrize(
    "url",
    [
        "http://e.org/",
        "https://e.org/a",
        "https://e.org/index.html",
        "http://e.org/x/?q=/index.html",
        "http://e.org:8080/x/index.html?q",
        "http://index.html/",
        "https://e.org/an-index.html",
    ],
)
def test_a_place_and_a_spelling_tell_a_url(url: str) -> None:
    """One of a place's URLs, and the spelling of another one, are that other one."""
    canonical_url = canonical(url)
    twins = {spelled(canonical_url, spelling) for spelling in range(4)}
    assert {arc_path(twin) for twin in twins} == {arc_path(url)}
    for twin in twins:
        assert spelled(canonical_url, spelling_of(twin)) == twin == spelled(twin, spelling_of(twin))
