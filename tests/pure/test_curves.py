"""Periods, shares and pictures of curves."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import BadCondition, TooMany
from webarcfs.archive.model.metadata import CET
from webarcfs.room.theme.rendering import Look, curve_texts, per_cent
from webarcfs.search import curve_picture
from webarcfs.search.curve_picture import CURVE_STYLE, CurveTexts, lines_of, nice_top, picture, sign
from webarcfs.search.curves import (
    COLUMNS,
    FEW,
    MOST_CURVES,
    MOST_PERIODS,
    CurvePoint,
    Curves,
    Period,
    PeriodLength,
    decimals,
    in_per_cent,
    periods,
)

YEAR, MONTH = PeriodLength.YEAR, PeriodLength.MONTH
_SVG = "{http://www.w3.org/2000/svg}"


# -- periods -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "period"), [("2024", Period(2024)), (" 2024-3 ", Period(2024, 3)), ("0001", Period(1))]
)
def test_a_period_is_a_year_or_a_month(text: str, period: Period) -> None:
    assert Period.parse(text) == period


@pytest.mark.parametrize(
    "text", ["", "24", "2024-13", "2024-00", "2024-", "2024-01-01", "0000", "２０２４", "2024 2025", "x"]
)
def test_what_is_no_period_is_refused(text: str) -> None:
    with pytest.raises(BadCondition, match="no year and no month"):
        Period.parse(text)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)), st.sampled_from(PeriodLength))
def test_each_time_is_in_its_period_and_no_other(time: datetime, by: PeriodLength) -> None:
    seconds = int(time.replace(tzinfo=CET).timestamp())
    period = Period.of(seconds, by)
    following = periods(period, Period.of(seconds + (32 if by is MONTH else 367) * 86_400, by))[1]
    assert period.begin.timestamp() <= seconds < following.begin.timestamp()
    assert Period.parse(str(period)) == period


def test_periods_begin_at_midnight_of_the_archive() -> None:
    last_second = datetime(2024, 12, 31, 23, 59, 59, tzinfo=CET)
    assert str(Period.of(int(last_second.timestamp()), YEAR)) == "2024"
    assert str(Period.of(int((last_second + timedelta(seconds=1)).timestamp()), MONTH)) == "2025-01"


@given(st.integers(1900, 2100), st.integers(1, 12), st.integers(0, MOST_PERIODS - 1))
def test_periods_follow_each_other(year: int, month: int, more: int) -> None:
    first = Period(year, month)
    last = Period((year * 12 + month - 1 + more) // 12, (month - 1 + more) % 12 + 1)
    found = periods(first, last)
    assert (found[0], found[-1], len(found)) == (first, last, more + 1)
    assert all(one < other and one.following() == other for one, other in pairwise(found))


def test_a_limit_that_is_a_year_has_all_its_months() -> None:
    year, month = Period(2024), Period(2024, 3)
    assert (year.first(MONTH), year.last(MONTH)) == (Period(2024, 1), Period(2024, 12))
    assert month.first(YEAR) == month.last(YEAR) == year
    assert (month.first(MONTH), year.last(YEAR)) == (month, year)


@pytest.mark.parametrize(
    ("first", "last", "error"),
    [
        (Period(2024), Period(2023), BadCondition),
        (Period(1), Period(MOST_PERIODS + 1), TooMany),
        (Period(2000, 1), Period(2020, 1), TooMany),
    ],
)
def test_periods_are_bounded(first: Period, last: Period, error: type[Exception]) -> None:
    with pytest.raises(error):
        periods(first, last)


# -- shares ------------------------------------------------------------------------------------------------------------


def _curves(*points: tuple[int, ...], words: tuple[str, ...] = ("harbour",), first: int = 2001) -> Curves:
    return Curves(
        words, YEAR, tuple(CurvePoint(Period(first + at), each[0], each[1:]) for at, each in enumerate(points))
    )


def test_a_row_has_the_raw_numbers_and_what_they_are_of() -> None:
    curves = _curves((200, 50, 0), (FEW - 1, 19, 1), (0, 0, 0), (FEW, 1, 2), words=("a", "b"))
    rows = list(curves.rows())
    assert [row["share"] for row in rows] == [0.25, 0.0, 1.0, 0.052632, None, None, 0.05, 0.1]
    assert [row["few"] for row in rows] == [False] * 2 + [True] * 4 + [False] * 2
    assert rows[2] == {"period": "2002", "words": "a", "versions": 19, "captured": 19, "share": 1.0, "few": True}
    assert all(tuple(row) == COLUMNS for row in rows)
    assert curves.most == 1.0 and curves.has_few


@pytest.mark.parametrize(
    ("share", "english", "german"),
    [(0.0, "0.00 %", "0,00 %"), (1.0, "100.0 %", "100,0 %"), (0.1254, "12.5 %", "12,5 %"),
     (0.01254, "1.25 %", "1,25 %"), (0.0001, "0.010 %", "0,010 %")],
)  # fmt: skip
def test_a_share_has_three_digits(share: float, english: str, german: str) -> None:
    assert in_per_cent(share, decimals(share)) == english
    assert (per_cent(share, "en"), per_cent(share, "de")) == (english, german)


@given(st.floats(0, 1))
def test_a_share_that_is_not_zero_is_not_written_as_zero(share: float) -> None:
    if share > 0.00001:
        assert float(in_per_cent(share, decimals(share))[:-2]) > 0


# -- pictures ----------------------------------------------------------------------------------------------------------


@given(st.floats(1e-7, 1))
def test_the_axis_reaches_above_all_shares_and_not_far(most: float) -> None:
    top = nice_top(most)
    assert most * 0.998 <= top <= 1 and (top <= most * 2.01)
    lines = lines_of(top)
    assert 1 <= len(lines) <= 5 and lines[-1] == pytest.approx(top)
    assert all(one < other for one, other in pairwise(lines))


def test_an_axis_without_a_share_has_an_end() -> None:
    assert nice_top(0) == 0.01 and lines_of(0.01)


def _elements(curves: Curves) -> tuple[ElementTree.Element, dict[str, list[ElementTree.Element]]]:
    root = ElementTree.fromstring(picture(curves, CurveTexts("Words"), is_file=True))
    by_class: dict[str, list[ElementTree.Element]] = {}
    for element in root.iter():
        for name in element.get("class", "").split():
            by_class.setdefault(name, []).append(element)
    return root, by_class


def test_periods_with_few_versions_are_marked_and_gaps_are_gaps() -> None:
    root, by_class = _elements(_curves((100, 10), (5, 1), (0, 0), (100, 20), (100, 30)))
    assert len(by_class["curve"]) == 2  # one line before the gap, one after it
    assert len(by_class["point"]) == 4 + 1  # and that of the key
    assert len(by_class["of-few"]) == 1
    assert len(by_class["few"]) == 2 + 1
    grounds = [element.findtext(f"{_SVG}title") for element in by_class["few"]]
    assert grounds == ["2002: fewer than 20 versions", "2003: nothing was captured", None]
    told = [
        element.findtext(f"{_SVG}title") for element in by_class["point"] if element.find(f"{_SVG}title") is not None
    ]
    assert told[1] == "\u2068harbour\u2069, 2002: 20.0 %, 1 of 5 (fewer than 20 versions)"
    assert root.findtext(f"{_SVG}desc") == "\u2068harbour\u2069 – 2001: 10.0 %, 2005: 30.0 %"


def test_a_higher_share_is_higher_up() -> None:
    _, by_class = _elements(_curves((100, 10), (100, 90), (100, 50)))
    heights = [float(place.split()[1]) for place in by_class["curve"][0].attrib["d"][1:].split("L")]
    assert heights[1] < heights[2] < heights[0]


def test_each_curve_has_a_shape_of_its_own() -> None:
    shapes = [re.sub(r"[0-9.]+", "", re.sub(r"c[0-7]", "", sign(at))) for at in range(MOST_CURVES)]
    signs = [sign(at) for at in range(MOST_CURVES)]
    assert len(set(signs)) == MOST_CURVES and all(shapes)


_HOSTILE = st.text(st.characters(), max_size=60)


@given(st.lists(_HOSTILE, min_size=1, max_size=MOST_CURVES), st.lists(st.integers(0, 60), max_size=30), st.booleans())
def test_any_words_make_a_picture_that_is_xml(words: list[str], captured: list[int], is_file: bool) -> None:
    points = [(count, *(count * at // (len(words) or 1) for at in range(len(words)))) for count in captured]
    curves = _curves(*points, words=tuple(words))
    drawn = picture(curves, CurveTexts("A & <title>"), is_file=is_file)
    root = ElementTree.fromstring(drawn)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "path", "text", "g",
    }  # fmt: skip
    assert ("xmlns" in drawn) == is_file


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_says_it_in_its_language(language: str) -> None:
    drawn = picture(_curves((100, 10), (5, 1)), curve_texts(language))
    texts = {"en": ("fewer than 20 versions", "1 of 5"), "de": ("weniger als 20 Fassungen", "1 von 5")}[language]
    assert all(text in drawn for text in texts)
    assert str(FEW) in texts[0]


def test_page_and_file_have_the_same_look() -> None:
    look = Look()
    assert look.static_file(look.static("curves.css")) == (CURVE_STYLE.encode(), "text/css; charset=utf-8")
    assert CURVE_STYLE in picture(_curves((100, 10), (5, 1)), CurveTexts("x"), is_file=True)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_curves_stand_out_from_paper_and_ground_in_both_schemes() -> None:
    """WCAG 2.2, 1.4.11: three to one for what must be seen."""
    schemes = (style.split("@media") for style in (curve_picture._FILE_STYLE, CURVE_STYLE))
    for parts in zip(*schemes, strict=True):
        colours = dict(re.findall(r"--([a-z]+[0-9]?): (#[0-9a-f]{6})", "".join(parts)))
        for ground in (colours["paper"], colours["ground"]):
            for number in range(MOST_CURVES):
                one, other = sorted((_luminance(colours[f"c{number}"]), _luminance(ground)))
                assert (other + 0.05) / (one + 0.05) >= 3, (number, ground, colours[f"c{number}"])
