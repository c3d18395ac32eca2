"""How quick work is and how long the rest takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.system.clocks import WINDOW, Speed
from webarcfs.commands.output import described, duration

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("seen", "known", "a_second", "left"),
    [
        ([], 10, None, None),
        ([(0, 0)], 10, None, None),
        ([(0, 0), (0.5, 4)], 10, None, None),
        ([(0, 0), (2, 4)], 10, 2.0, 3.0),
        ([(5, 100), (7, 104)], 110, 2.0, 3.0),
        ([(0, 0), (10, 0)], 10, 0.0, None),
        ([(0, 10), (10, 10), (20, 30)], 30, 1.0, 0.0),
        ([(0, 0), (2, 4)], 3, 2.0, 0.0),
        # What was long ago counts no more.
        ([(0, 0), (1, 1000), (1 + WINDOW, 1000), (1 + 2 * WINDOW, 1000 + 2 * WINDOW)], 1000 + 3 * WINDOW, 2.0, 15.0),
        # Some of it is to be done again.
        ([(0, 0), (10, 100), (20, 90), (30, 110)], 120, 110 / 30, 2.7),
    ],
)
def test_speed(seen: list[tuple[float, int]], known: int, a_second: float | None, left: float | None) -> None:
    speed = Speed()
    for time, done in seen:
        speed.note(time, done)
    assert speed.a_second == (None if a_second is None else pytest.approx(a_second, rel=0.1))
    assert speed.left(known) == (None if left is None else pytest.approx(left, rel=0.1))


def test_however_much_is_done_little_is_remembered() -> None:
    speed = Speed()
    for number in range(100_000):
        speed.note(number / 2000, number)
    assert speed.a_second == pytest.approx(2000, rel=0.01)
    assert len(speed._seen) <= WINDOW * 10 + 3


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**9))), st.integers(0, 10**12))
def test_it_is_never_negative(steps: list[tuple[float, int]], known: int) -> None:
    """Whatever is told, and whenever: neither speed nor rest is below zero."""
    speed, now = Speed(), 0.0
    for pause, done in steps:
        now += pause
        speed.note(now, done)
        assert speed.a_second is None or speed.a_second >= 0
        left = speed.left(known)
        assert left is None or left >= 0


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"), (0.4, "0 s"), (45, "45 s"), (59.6, "1 min"), (200, "3 min 20 s"), (3600, "1 h"),
        (3661, "1 h 1 min"), (7500, "2 h 5 min"), (86_400 * 3 + 5 * 3600 + 59, "3 d 5 h"), (86_400 + 59, "1 d"),
    ],
)  # fmt: skip
def test_a_time_has_two_units(seconds: float, told: str) -> None:
    assert duration(seconds) == told


@pytest.mark.parametrize(
    ("a_second", "left", "in_bytes", "told"),
    [
        (None, None, False, ""),
        (0.0, None, False, "0.0/s"),
        (12.345, 45.0, False, "12.3/s, 45 s left"),
        (1234.5, 0.0, False, "1234/s, 0 s left"),
        (999.0, None, True, "999 bytes/s"),
        (12_345_678.0, 61.0, True, "12.3 MB/s, 1 min 1 s left"),
    ],
)
def test_what_people_read(a_second: float | None, left: float | None, in_bytes: bool, told: str) -> None:
    assert described(a_second, left, in_bytes=in_bytes) == told
