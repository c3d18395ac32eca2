"""How long a server that answers 429 or 503 is left alone: what it asks for (RFC 9110 section 10.2.3)."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policy import politeness
from agent.policy.politeness import LONGEST_PAUSE, asks_for_pause, pause, retry_after

pytestmark = pytest.mark.pure

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("", None),
        ("0", 0),
        (" 120 ", 120),
        ("3600", 3600),
        ("3601", LONGEST_PAUSE),
        ("9" * 400, LONGEST_PAUSE),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        (formatdate(NOW + 90, usegmt=True), 90),
        (formatdate(NOW - 90, usegmt=True), 0),
        (formatdate(NOW + 10**6, usegmt=True), LONGEST_PAUSE),
        ("Mon, 99 Foo 2026 25:00:00 GMT", None),
        ("Mon, 21 Sep 2026 14:14:50 -0000", 90),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_PAUSE),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == (None if seconds is None else pytest.approx(seconds, abs=1))


@given(st.text(), st.integers(0, 10**6), st.floats(0, 86400))
def test_a_pause_is_never_longer_than_an_hour_nor_raises(value: str, in_a_row: int, wait: float) -> None:
    assert 0 <= pause(value, in_a_row, wait, NOW) <= LONGEST_PAUSE  # "Retry-After: 0", and a crawl that never waits


def test_who_asks_for_a_pause() -> None:
    assert asks_for_pause(429, "", NOW) and asks_for_pause(429, "5", NOW) and asks_for_pause(503, "5", NOW)
    assert not asks_for_pause(503, "", NOW) and not asks_for_pause(500, "5", NOW) and not asks_for_pause(200, "5", NOW)


def test_backing_off_doubles_and_the_crawls_own_wait_is_the_least() -> None:
    assert [pause("", count, 1.0, NOW) for count in range(4)] == [1, 2, 4, 8]
    assert [pause("", count, 5.0, NOW) for count in range(3)] == [5, 10, 20]
    assert pause("", 100, 1.0, NOW) == LONGEST_PAUSE
    assert pause("0", 3, 2.0, NOW) == 2.0
    assert pause("7", 3, 2.0, NOW) == 7.0


def test_words_for_crawl_log() -> None:
    assert (politeness.BUSY, politeness.SERVER_BUSY) == ("busy", "server-busy")
