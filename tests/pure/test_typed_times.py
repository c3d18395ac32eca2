"""Times and spans of time as people type them into the form of the search."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.model.errors import BadCondition
from webarcfs.room.pages.search_question import span_in, time_in
from webarcfs.search.query_language import parse_span

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024", "2024"), (" 2024-03 ", "2024-03"), ("2024-03-31", "2024-03-31"), ("3/2024", "2024-03"),
        ("03.2024", "2024-03"), ("31.3.2024", "2024-03-31"), ("31. 3. 2024", "2024-03-31"), ("", ""),
        ("yesterday", "yesterday"), ("31/3/2024", "31/3/2024"), ("\u0663/2024", "\u0663/2024"),
        ("2024-03-31T12:00:00@example.org", "2024-03-31T12:00:00@example.org"),
    ],
)  # fmt: skip
def test_a_time_is_written_as_searches_have_it(text: str, time: str) -> None:
    assert time_in(text) == time


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("2024", "2024"), ("2019..2021", "2019..2021"), ("2019-2021", "2019..2021"), ("2019 - 2021", "2019..2021"),
        ("2019\u20132021", "2019..2021"), ("2019 \u2014 2021", "2019..2021"), ("2019\u20262021", "2019..2021"),
        ("2019 to 2021", "2019..2021"), ("2019 bis 2021", "2019..2021"), ("3/2019 \u2013 31.12.2021",
        "2019-03..2021-12-31"), ("2019-03-01..2019-04", "2019-03-01..2019-04"), ("2024-03", "2024-03"),
        ("2024-03-31", "2024-03-31"), ("", ""), ("tomorrow", "tomorrow"),
    ],
)  # fmt: skip
def test_a_span_is_written_as_searches_have_it(text: str, span: str) -> None:
    assert span_in(text) == span


EARLIER, LATER = st.dates(date(1990, 1, 1), date(2029, 12, 31)), st.dates(date(2030, 1, 1), date(2090, 12, 31))
FORMS = st.sampled_from(
    ["{0:%Y}", "{0:%Y-%m}", "{0:%Y-%m-%d}", "{0:%m/%Y}", "{0:%m.%Y}", "{0:%d.%m.%Y}", "{0:%d. %m. %Y}"]
)
BETWEEN = st.sampled_from(["..", " .. ", "\u2013", " \u2013 ", " to ", " bis ", "\u2026"])


@given(EARLIER, LATER, FORMS, FORMS, BETWEEN)
@settings(max_examples=examples(300), deadline=None)
def test_every_spelling_of_a_span_means_its_days(a: date, b: date, first: str, last: str, between: str) -> None:
    begin, end = parse_span(span_in(f"{first.format(a)}{between}{last.format(b)}"))
    assert begin <= parse_span(f"{a:%Y-%m-%d}")[0] and parse_span(f"{b:%Y-%m-%d}")[1] <= end


@given(st.text(max_size=30))
@settings(max_examples=examples(300), deadline=None)
def test_no_text_is_more_than_a_fault(text: str) -> None:
    span = span_in(text)
    assert span_in(span) == span
    try:
        begin, end = parse_span(span)
    except BadCondition:
        return
    assert begin < end
