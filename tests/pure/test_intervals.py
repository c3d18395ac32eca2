"""Spans of time: `<n> second|minute|hour|day|week|month(s)` (/Cr-1.2/)."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.metadata import CET

pytestmark = pytest.mark.pure
NOON = datetime(2026, 1, 31, 12, tzinfo=CET)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 second", 1),
        ("90 seconds", 90),
        ("30 minutes", 1800),
        ("1 hour", 3600),
        ("1 day", 86400),
        ("  2 Weeks ", 1209600),
        ("1month", 2592000),
        ("100 months", 259200000),
        ("30 years", 946080000),
        ("hourly", 3600),
        ("daily", 86400),
        (" Weekly ", 604800),
        ("monthly", 2592000),
        ("quarterly", 7776000),
        ("yearly", 31536000),
        ("annually", 31536000),
        ("every day", 86400),
        ("Every  week", 604800),
        ("every 3 hours", 10800),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert Interval.parse(text).seconds == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "day", "0 days", "-1 day", "1.5 days", "1 decade", "1 day 2 hours"),
        *("9999999 days", "999999 months", "101 years"),
        *("every", "every 0 days", "everyday", "week", "biweekly", "\u0663 days", "daily weekly", "every daily"),
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"interval|hundred years"):
        Interval.parse(text)


@pytest.mark.parametrize(
    ("months", "end"),
    [
        (1, datetime(2026, 2, 28, 12, tzinfo=CET)),
        (2, datetime(2026, 3, 31, 12, tzinfo=CET)),
        (11, datetime(2026, 12, 31, 12, tzinfo=CET)),
        (12, datetime(2027, 1, 31, 12, tzinfo=CET)),
        (25, datetime(2028, 2, 29, 12, tzinfo=CET)),
    ],
)
def test_months_keep_the_day_or_take_the_last(months: int, end: datetime) -> None:
    assert Interval(months, "month").after(NOON) == end
    if months % 12 == 0:
        assert Interval(months // 12, "year").after(NOON) == end


def test_words_are_calendar_months_and_years() -> None:
    assert Interval.parse("monthly") == Interval(1, "month") == Interval.parse("every month")
    assert Interval.parse("quarterly") == Interval(3, "month")
    assert Interval.parse("yearly") == Interval(1, "year")


units = st.sampled_from(["second", "minute", "hour", "day", "week", "month", "year"])


@given(st.integers(1, 100), units)
def test_round_trip(count: int, unit: str) -> None:
    interval = Interval(count, unit)
    assert Interval.parse(str(interval)) == interval


@given(st.integers(1, 999999), units)
def test_every_interval_that_is_accepted_has_an_end(count: int, unit: str) -> None:
    try:
        interval = Interval.parse(f"{count} {unit}s")
    except ValueError:
        return
    assert timedelta(0) < interval.after(NOON) - NOON < timedelta(days=40000)
