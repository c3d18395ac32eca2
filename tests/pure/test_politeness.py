"""How long a server that answers 429 or 503 is left alone: what it asks for (RFC 9110 section 10.2.3)."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl import politeness
from agent.crawl.politeness import (
    LONGEST_HOLD,
    LONGEST_PAUSE,
    PATIENCE,
    TRIES,
    NextTry,
    asks_for_pause,
    in_a_row,
    is_given_up,
    is_held,
    next_try,
    pause,
    retry_after,
)

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


@pytest.mark.parametrize(
    ("status", "tries", "value", "expected"),
    [
        # A temporary error: 1, 2 seconds, then it has failed.
        (500, 0, "", NextTry(NOW + 1)),
        (500, 1, "", NextTry(NOW + 2)),
        (500, TRIES - 1, "", NextTry(None)),
        (503, TRIES - 1, "", NextTry(None)),  # one broken page, and no word on a pause
        # Retry-After counts where it is later than the backoff, also of an answer that asks for no pause.
        (500, 0, "30", NextTry(NOW + 30)),
        (500, 1, "0", NextTry(NOW + 2)),
        # A server that asks for a pause is asked more often.
        (503, 0, "30", NextTry(NOW + 30, busy=True)),
        (503, TRIES, "1", NextTry(NOW + 8, busy=True)),
        (429, PATIENCE - 2, "", NextTry(NOW + 16, busy=True)),
        (429, PATIENCE - 1, "", NextTry(None, busy=True)),
        (503, 0, "9" * 9, NextTry(NOW + LONGEST_PAUSE, busy=True)),
    ],
)
def test_the_next_try(status: int, tries: int, value: str, expected: NextTry) -> None:
    assert next_try(status, tries, value, NOW) == expected


@pytest.mark.parametrize(
    ("before", "asking", "responses", "failing", "expected"),
    [
        # Single responses, as wget's log has them: one that asks, one that fails, one that is fine.
        (0, 1, 1, 0, 1),
        (3, 1, 1, 0, 4),
        (3, 0, 1, 1, 3),
        (3, 0, 1, 0, 0),
        # Batches: all ask, one does not, none does.
        (0, 5, 5, 0, 5),
        (2, 5, 5, 0, 7),
        (2, 4, 5, 0, 0),
        (2, 0, 5, 0, 0),
        # Of failing ones a batch is not told; if it were, they would keep the count where all of them fail.
        (2, 0, 5, 5, 2),
        (2, 4, 5, 1, 0),
    ],
)
def test_requests_for_a_pause_in_a_row(before: int, asking: int, responses: int, failing: int, expected: int) -> None:
    assert in_a_row(before, asking, responses, failing=failing) == expected


def test_a_wget_is_held_for_short_pauses_and_few() -> None:
    assert is_held(0, 1) and is_held(LONGEST_HOLD, PATIENCE - 1)
    assert not is_held(LONGEST_HOLD + 1, 1) and not is_held(1, PATIENCE)
    assert is_given_up(PATIENCE) and not is_given_up(PATIENCE - 1)
