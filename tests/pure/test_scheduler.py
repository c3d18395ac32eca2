"""When publications are due, with a clock of the tests' own (/Cr-1.2/, /Cr-3/)."""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.service.scheduler import Due, due, next_due
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.metadata import CET

pytestmark = pytest.mark.pure


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=CET)


def publication(interval: str, start: str | None = None, name: str = "p") -> Publication:
    crawl = CrawlSettings(interval=Interval.parse(interval))
    return Publication(name=name, urls=("http://e.org/",), start=at(start) if start else None, crawl=crawl)


NOW = at("2026-11-21T12:00:00")


def test_without_a_start_the_first_run_is_due_at_once() -> None:
    assert due([publication("1 day")], {}, NOW) == [Due(NOW, "p")]


def test_without_a_start_the_next_run_is_an_interval_after_the_last_began() -> None:
    daily = publication("1 day")
    assert next_due(daily, [at("2026-11-20T23:10:07")], NOW) == at("2026-11-21T23:10:07")
    assert due([daily], {"p": [at("2026-11-20T12:00:01")]}, NOW) == []
    assert due([daily], {"p": [at("2026-11-20T12:00:00")]}, NOW) == [Due(NOW, "p")]


def test_nothing_is_due_before_the_start_date() -> None:
    later = publication("1 day", "2026-12-01T22:00:00")
    assert due([later], {}, NOW) == []
    assert due([later], {}, at("2026-12-01T21:59:59")) == []
    assert due([later], {}, at("2026-12-01T22:00:00")) == [Due(at("2026-12-01T22:00:00"), "p")]
    # A crawl by hand before it does not move it.
    assert next_due(later, [NOW], NOW) == at("2026-12-01T22:00:00")


@pytest.mark.parametrize(
    ("interval", "run", "following"),
    [
        ("1 day", "2026-12-01T21:58:57", "2026-12-02T22:00:00"),
        ("1 month", "2026-12-01T21:58:00", "2027-01-01T22:00:00"),
        ("1 month", "2026-12-01T21:57:59", "2026-12-01T22:00:00"),
    ],
)
def test_a_crawl_by_hand_while_a_new_publication_waits_for_its_start_is_its_first(
    interval: str, run: str, following: str
) -> None:
    new = publication(interval, "2026-12-01T22:00:00")
    assert next_due(new, [at(run)], at(run)) == at(following)
    assert (due([new], {"p": [at(run)]}, at("2026-12-01T22:00:00")) == []) is (following != "2026-12-01T22:00:00")


@pytest.mark.parametrize(
    ("interval", "last", "following"),
    [
        ("1 day", "2026-11-20T23:10:00", "2026-11-21T22:00:00"),
        ("1 day", "2026-11-20T22:00:00", "2026-11-21T22:00:00"),
        ("1 week", "2026-11-01T22:00:00", "2026-11-08T22:00:00"),
        ("6 hours", "2026-11-02T04:00:01", "2026-11-02T10:00:00"),
        ("90 seconds", "2026-11-01T22:01:00", "2026-11-01T22:01:30"),
        ("15 minutes", "2026-11-01T22:14:59", "2026-11-01T22:15:00"),
        ("1 month", "2026-11-01T22:00:00", "2026-12-01T22:00:00"),
    ],
)
def test_with_a_start_runs_stay_on_its_date_and_hour(interval: str, last: str, following: str) -> None:
    assert next_due(publication(interval, "2026-11-01T22:00:00"), [at(last)], at(last)) == at(following)


def test_a_monthly_run_on_the_31st_takes_the_last_day_of_shorter_months_and_returns() -> None:
    monthly = publication("1 month", "2027-01-31T03:00:00")
    seen, time = [], at("2027-01-31T03:00:00")
    for _ in range(14):
        seen.append(time.strftime("%m-%d"))
        time = next_due(monthly, [time], time)
    assert seen[:5] == ["01-31", "02-28", "03-31", "04-30", "05-31"]
    assert seen[12:] == ["01-31", "02-29"]  # 2028


def test_there_is_no_summer_time() -> None:
    """The nights on which Central Europe changes its clocks are as long as all others."""
    daily = publication("1 day", "2026-03-01T02:30:00")
    for day in ("2026-03-28", "2026-03-29", "2026-10-24", "2026-10-25"):
        last = at(f"{day}T02:30:00")
        assert next_due(daily, [last], last) - last == timedelta(days=1)


def test_what_was_missed_is_made_up_once() -> None:
    daily = publication("1 day", "2026-11-01T22:00:00")
    runs = [at("2026-11-03T22:00:05")]
    assert due([daily], {"p": runs}, NOW) == [Due(at("2026-11-04T22:00:00"), "p")]
    runs.append(NOW)
    assert due([daily], {"p": runs}, NOW) == []
    assert next_due(daily, runs, NOW) == at("2026-11-21T22:00:00")


def test_the_longest_due_comes_first() -> None:
    one, two = publication("1 day", name="one"), publication("1 day", name="two")
    runs = {"one": [at("2026-11-19T12:00:00")], "two": [at("2026-11-18T12:00:00")]}
    assert [each.publication for each in due([one, two], runs, NOW)] == ["two", "one"]


@pytest.mark.parametrize(
    ("start", "days"),
    [
        ("2026-03-01T03:00:00", ["2027-03-01", "2028-03-01", "2029-03-01", "2030-03-01"]),
        ("2028-02-29T03:00:00", ["2029-02-28", "2030-02-28", "2031-02-28", "2032-02-29"]),
    ],
)
def test_a_yearly_run_keeps_its_day(start: str, days: list[str]) -> None:
    """Also over leap years: a year is twelve months, not 365 days."""
    yearly = publication("1 year", start)
    time = at(start)
    for day in days:
        time = next_due(yearly, [time], time)
        assert time == at(f"{day}T03:00:00")


def test_a_run_that_a_wrong_clock_named_does_not_stop_the_publication() -> None:
    assert due([publication("1 day")], {"p": [at("2031-01-01T00:00:00")]}, NOW) == [Due(NOW, "p")]


@pytest.mark.parametrize(("interval", "months"), [("monthly", 1), ("quarterly", 3), ("every 5 months", 5)])
def test_months_are_those_of_the_calendar_also_over_february(interval: str, months: int) -> None:
    each = publication(interval, "2027-08-31T03:00:00")
    time = at("2027-08-31T03:00:00")
    for number in range(1, 40):
        run = time + timedelta(minutes=7)  # it begins a little late each time
        time = next_due(each, [run], run)
        year, month = divmod(2027 * 12 + 7 + number * months, 12)
        day = min(31, calendar.monthrange(year, month + 1)[1])
        assert time == at(f"{year}-{month + 1:02}-{day:02}T03:00:00")


def test_a_clock_that_is_set_back_costs_one_run_at_most_and_the_day_stays() -> None:
    """It was three months ahead for a while, and the publication ran twice in this time."""
    monthly = publication("monthly", "2026-08-31T03:00:00")
    ahead = [at("2027-01-31T03:00:00"), at("2027-02-28T03:00:00")]
    assert [each.publication for each in due([monthly], {"p": ahead}, NOW)] == ["p"]
    runs = {"p": [*ahead, NOW]}
    assert due([monthly], runs, NOW) == []
    assert next_due(monthly, runs["p"], NOW) == at("2026-11-30T03:00:00")
    assert next_due(monthly, [*runs["p"], at("2026-11-30T03:00:00")], at("2026-11-30T03:00:01")) == at(
        "2026-12-31T03:00:00"
    )


units = st.sampled_from(["second", "minute", "hour", "day", "week", "month", "year"])
intervals = st.builds(Interval, st.integers(1, 500), units)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(
    lambda time: time.replace(microsecond=0, tzinfo=CET)
)


@given(intervals, st.none() | times, st.none() | times, times)
def test_a_run_begun_now_is_never_followed_by_another_at_once(
    interval: Interval, start: datetime | None, last: datetime | None, now: datetime
) -> None:
    """None is doubled: whatever was before, once a run has begun the next is due later; none is lost: it is due again
    within one interval.
    """
    each = Publication(name="p", urls=(), start=start, crawl=CrawlSettings(interval=interval))
    runs = {"p": [last] if last else []}
    if due([each], runs, now):
        runs["p"].append(now)
        assert due([each], runs, now) == []
        after = next_due(each, runs["p"], now)
        assert now < after <= interval.after(now) + timedelta(days=3 if interval.unit in ("month", "year") else 0)


@given(intervals, times, times)
def test_with_a_start_every_time_is_start_plus_whole_intervals(
    interval: Interval, start: datetime, last: datetime
) -> None:
    each = Publication(name="p", urls=(), start=start, crawl=CrawlSettings(interval=interval))
    time = next_due(each, [last], last)
    assert time >= start
    if interval.unit in ("month", "year"):
        months = (time.year - start.year) * 12 + time.month - start.month
        assert months % (interval.count * (12 if interval.unit == "year" else 1)) == 0
        assert time == (Interval(months, "month").after(start) if months else start)
    else:
        assert (time - start).total_seconds() % interval.seconds == 0
