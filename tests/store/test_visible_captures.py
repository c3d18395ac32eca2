"""What a reader sees of a URL at each time agrees with the rules, on random archives of two publications."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.histories import DOMAIN, HISTORIES, NOW, PATHS, History, Step
from tests.support.recorded import published
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, Blocked, Closed, Open
from webarcfs.access.gate import Gate, KnownGate, Reader
from webarcfs.access.visible_captures import NEVER, VisibleCaptures
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import CaptureIndex, CaptureRow, Meeting, Span, UrlRows
from webarcfs.archive.model.url_lists import Met

pytestmark = pytest.mark.store

_ARCHIVES = int(os.environ.get("GATE_ARCHIVES", "8"))
_ALL = Span("", "\U0010ffff")


def captures_of(archive: Archive, clock: object = lambda: NOW) -> VisibleCaptures:
    gate = KnownGate(archive, Reader(), clock)  # type: ignore[arg-type]
    gate.look()
    return VisibleCaptures(gate, CaptureIndex(archive.database))


def url(path: str) -> str:
    return f"http://{DOMAIN}/{path}"


def blob(archive: Archive, body: str) -> str:
    return archives.store_of(archive, DOMAIN).write_blob(body.encode())


@settings(max_examples=_ARCHIVES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_a_state_has_what_the_rules_say(tmp_path_factory: pytest.TempPathFactory, history: History) -> None:
    archive = directory.create(tmp_path_factory.mktemp("seen") / "archive")
    published(archive, history)
    recover(archive)
    captures = captures_of(archive)
    open_ones = [number for number in range(len(history.steps)) if history.is_open(number)]
    for number in range(len(history.steps)):
        shown = [each for each in open_ones if each <= number] or open_ones[:1]
        expected = history.at(shown[-1]) if shown else {}
        for path in PATHS:
            found = captures.state(url(path), history.seq(number))
            body = found.capture and found.capture.blob
            assert body == (blob(archive, expected[path]) if path in expected else None), (number, path)
            # What the whole history says of that time is the same.
            same = captures.history(url(path)).at(history.seq(number))
            assert (same.capture if same is not None else None) == found.capture


@settings(max_examples=_ARCHIVES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_the_list_of_captures_has_each_visible_version_at_its_first_visible_snapshot(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    archive = directory.create(tmp_path_factory.mktemp("seen") / "archive")
    published(archive, history)
    recover(archive)
    expected = set()
    for number, state in enumerate(history.states):
        for path, body in state.items():
            if history.is_visible(number, path):
                whole = all(history.is_open(each) for each in range(len(history.steps)))
                inside = [
                    each for each in history.span(number, path)
                    if history.is_open(each) and (whole or history.seen[each].get(path) == body)
                ]  # fmt: skip
                expected.add((url(path), blob(archive, body), history.seq(inside[0])))
    captures = captures_of(archive)
    found = list(captures.below(_ALL))
    assert {(each.url, each.blob, each.since) for each in found} == expected
    assert [(each.surt, each.since) for each in found] == sorted((each.surt, each.since) for each in found)
    assert list(captures.below(_ALL, backwards=True)) == found[::-1]


def test_what_is_known_follows_releases_and_rules_with_the_next_look(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    archives.publish(archive, pages={"a": b"1"})
    recover(archive)
    captures = captures_of(archive, Gate.now.__get__(Gate(archive, Reader())))
    assert isinstance(captures.state(url("a"), NEVER).answer, Open)
    access_rules.withhold(archive, url("a"), "test", "asked for", access=Access.BLOCK, public_text="by law")
    captures.gate.look()
    assert captures.state(url("a"), NEVER).answer == Blocked("by law")
    archives.publish(archive, pages={"a": b"2"})
    recover(archive)
    captures.gate.look()
    assert len(captures.gate.facts(DOMAIN).shown) == 2


def test_another_database_at_the_same_path_is_noticed(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    archives.publish(archive, pages={"a": b"1"})
    recover(archive)
    captures = captures_of(archive)
    assert captures.history(url("a")).captures
    archive.database.unlink()
    archives.publish(archive, pages={"b": b"1"})
    recover(archive)
    captures.gate.look()
    assert captures.history(url("b")).captures


def test_a_closed_url_is_closed_and_not_absent(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    history = History([Step("p", {"a": "1"}, RecordState.RELEASED, closed_for="30 years")])
    published(archive, history)
    recover(archive)
    captures = captures_of(archive)
    state = captures.state(url("a"), history.seq(0))
    assert isinstance(state.answer, Closed)
    assert state.capture is None
    assert not isinstance(captures.state(url("b"), history.seq(0)).answer, Closed)


# -- the newest row of a URL -------------------------------------------------------------------------------------------


_SPANS = st.lists(st.tuples(*[st.integers(0, 12)] * 3, st.booleans()), min_size=1, max_size=7)


@given(_SPANS, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=6))
def test_a_row_is_the_newest_as_all_rows_say(
    spans: list[tuple[int, int, int, bool]], met: list[tuple[int, int]]
) -> None:
    """It is decided from what is sorted once, and agrees with a look at all rows, for each row and time."""
    rows = [
        CaptureRow(f"u{at}", f"/p{at}", "", first, first + length, stored, 0, 200, "", "", "", "", 0, b"",
                   "t" if is_redirect else "", "p", False)
        for at, (first, length, stored, is_redirect) in enumerate(spans)
    ]  # fmt: skip
    meetings: dict[str, list[Meeting]] = {}
    for at, seq in met:
        meetings.setdefault(rows[at % len(rows)].place, []).append(Meeting(seq, Met(seq)))
    led, own = ([row for row in rows if bool(row.target) is is_redirect] for is_redirect in (True, False))
    stored = UrlRows("u", led, sorted(own, key=lambda row: row.first), [], lambda place: meetings.get(place, []))

    def newest(row: CaptureRow | None, seq: int, shown: list[int]) -> bool:
        def times(of: CaptureRow) -> list[int]:
            return [at for at, _ in meetings.get(of.place, ()) if of.first <= at < of.last and at <= seq]

        others = [other for other in rows if other is not row and other.stored <= seq]
        if row is None or any(row.stored < other.stored for other in others):
            return not others
        last = max((at for at in times(row) if at in shown), default=row.stored)
        overlapping = [other for other in others if row.stored < other.last and other.first <= seq]
        return not overlapping or not any(last < at for other in others for at in times(other))

    for seq in range(14):
        for row in (None, *rows):
            for shown in ([], [*range(0, 14, 2)]):
                assert stored.is_newest(row, seq, shown) == newest(row, seq, shown)


def test_a_url_of_very_many_versions_asks_for_no_meeting() -> None:
    """Each of 3,000 versions is the newest at its time: the lists of meetings are not read, nor all rows for each."""
    rows = [
        CaptureRow("u", "/p", "", at, at + 1, at, 0, 200, "", "", "", "", 0, b"", "", "p", False) for at in range(3_000)
    ]
    asked: list[str] = []

    def ask(place: str) -> list[Meeting]:
        asked.append(place)
        return []

    stored = UrlRows("u", [], rows, [], ask)
    stored.rows = []  # whoever goes through all of them finds none
    assert all(stored.is_newest(row, row.first, []) for row in rows) and not asked
    assert not any(stored.is_newest(row, row.first + 1, []) for row in rows[:-1])
