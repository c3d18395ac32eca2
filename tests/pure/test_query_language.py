"""The language of searches: what each form means, and that a fault is marked at its place."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import BadCondition
from webarcfs.archive.model.metadata import CET
from webarcfs.search.query_language import (
    DEEPEST,
    LONGEST,
    MOST_BEGINNINGS,
    MOST_WORDS,
    After,
    All,
    Any,
    Before,
    DocumentPart,
    Expression,
    Language,
    Not,
    ParsedSearch,
    Site,
    TypeCondition,
    Words,
    parse_condition,
    parse_search,
    parse_span,
    parse_whole_search,
)

pytestmark = pytest.mark.pure


def _word(text: str) -> Words:
    return Words((text,), natural=text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("report", _word("report")),
        ("annual report", All((_word("annual"), _word("report")))),
        ("annual AND report", All((_word("annual"), _word("report")))),
        ('"annual  Report"', Words(("annual", "report"))),
        ("„annual report“", Words(("annual", "report"))),
        ("-draft", Not(_word("draft"))),
        ("NOT draft", Not(_word("draft"))),
        ("a -b", All((_word("a"), Not(_word("b"))))),
        ("a OR b c", Any((_word("a"), All((_word("b"), _word("c")))))),
        ("(a OR b) c", All((Any((_word("a"), _word("b"))), _word("c")))),
        ("report*", Words(("report",), beginning=True)),
        ("title:Report", Words(("report",), DocumentPart.TITLE, natural="Report")),
        ('title:"a b"', Words(("a", "b"), DocumentPart.TITLE)),
        ("3.14", Words(("3", "14"))),
        ("foo-bar", Words(("foo", "bar"))),
        ("12:30", Words(("12", "30"))),
        ("https://example.org/a", Words(("example", "org", "a"), DocumentPart.URL)),
        ("site:www.Example.org", Site("www.example.org")),
        ("site:https://example.org/a-b/C:d/", Site("example.org/a-b/C:d")),
        ("type:pdf", TypeCondition("pdf")),
        ("type:image/*", TypeCondition("image/*")),
        ("lang:de-AT", Language("de")),
        ("before:2024-01", Before(datetime(2024, 1, 1, tzinfo=CET))),
        ("after:2024-01-31", After(datetime(2024, 1, 31, tzinfo=CET))),
        ("after:2024-01-31T12:30", After(datetime(2024, 1, 31, 12, 30, tzinfo=CET))),
        ('a ... "!"', _word("a")),
        ("東京", Words(("東京", "京"))),
    ],
)
def test_searches_and_their_meaning(text: str, meaning: Expression) -> None:
    assert parse_search(text) == meaning


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ('a "b', "never closed", 2),
        ("a (b", "never closed", 2),
        ("a b)", "closes nothing", 3),
        ("a OR", "between two words", 2),
        ("OR a", "between two words", 0),
        ("a *", "beginning of a word", 2),
        ("foo:bar", "no field", 0),
        ("a before:20x", "a time is", 9),
        ("before:2023-02-29", "a time is", 7),
        ("after:0000", "a time is", 6),
        ("after:٢٠٢٤", "a time is", 6),
        ("after:2024-13", "a time is", 6),
        ("type:pfd", "a type is", 5),
        ("lang:deutsch", "a language is", 5),
        ("site:/a", "a site is", 5),
        ("a NOT", "comes a word", 2),
        ("a (during:2024)", "in no brackets", 3),
        ("(a (b present:now))", "in no brackets", 6),
        ("a -during:2024", "in no brackets", 3),
        ("NOT present:2024", "in no brackets", 4),
        ("a OR during:2024", "in no brackets", 5),
        ("during:2024 OR a", "in no brackets", 0),
        ("a Present:now OR b", "in no brackets", 2),
        ("during:2024 a during:2024", "once", 14),
        ("during:2024 present:now", "once", 12),
        ("a during:20x", "a span of time is", 9),
        ("during:2024-13", "a span of time is", 7),
        ("during:2023-02-29", "a span of time is", 7),
        ("during:2024-00", "a span of time is", 7),
        ("during:0000", "a span of time is", 7),
        ("during:2019..", "a span of time is", 7),
        ("during:..2019", "a span of time is", 7),
        ("during:2019..2020..2021", "a span of time is", 7),
        ("during:2019-2021", "a span of time is", 7),
        ("during:now", "a span of time is", 7),
        ("during:2021..2019", "ends before it begins", 7),
        ("during:٢٠٢٤", "a span of time is", 7),
        ("present:2019..2020", "of one time", 8),
        ("present:then", "a span of time is", 8),
    ],
)
def test_faults_are_marked_at_their_place(text: str, said: str, place: int) -> None:
    with pytest.raises(BadCondition, match=said) as error:
        parse_search(text)
    assert str(error.value).splitlines()[1:] == [f"  {text}", f"  {' ' * place}^"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no word"),
        (" ... ", "no word"),
        ("x" * (LONGEST + 1), "characters"),
        ("x" * 1_000_000, "characters"),
        (" OR ".join("x" * (MOST_WORDS + 1)), "words"),
        (" ".join(["xy*"] * (MOST_BEGINNINGS + 1)), r"with a \*"),
        ("(" * (DEEPEST + 1) + "a", "inside each other"),
        ("-" * 8_000 + "a", "inside each other"),
        ("a \ud800", "UTF-8"),
    ],
)
def test_searches_are_bounded(text: str, said: str) -> None:
    with pytest.raises(BadCondition, match=said):
        parse_search(text)


def _at(*time: int) -> int:
    return int(datetime(*time, tzinfo=CET).timestamp())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "during"),
    [
        ("2024", (_at(2024, 1, 1), _at(2025, 1, 1))),
        ("2023", (_at(2023, 1, 1), _at(2024, 1, 1))),
        ("2024-02", (_at(2024, 2, 1), _at(2024, 3, 1))),
        ("2024-12", (_at(2024, 12, 1), _at(2025, 1, 1))),
        ("2024-2-29", (_at(2024, 2, 29), _at(2024, 3, 1))),
        ("2019..2021", (_at(2019, 1, 1), _at(2022, 1, 1))),
        ("2019-05..2021", (_at(2019, 5, 1), _at(2022, 1, 1))),
        ("2021-01-31..2021-02", (_at(2021, 1, 31), _at(2021, 3, 1))),
        ("2024-01-31T12:30", (_at(2024, 1, 31, 12, 30), _at(2024, 1, 31, 12, 31))),
        ("2024-01-31T12:30:05", (_at(2024, 1, 31, 12, 30, 5), _at(2024, 1, 31, 12, 30, 6))),
        ("9999-12", (_at(9999, 12, 1), _at(9999, 12, 31) + 86_400)),
    ],
)
def test_spans_of_time_have_both_ends(text: str, during: tuple[int, int]) -> None:
    assert parse_span(text) == during
    assert parse_whole_search(f"a during:{text} b") == ParsedSearch(All((_word("a"), _word("b"))), during=during)
    assert parse_search(f"during:{text}") == All()
    if ".." not in text:
        assert parse_whole_search(f"(a OR b) present:{text}").at == during[1] - 1


def test_the_present_is_a_state() -> None:
    assert parse_whole_search("a present:now") == ParsedSearch(_word("a"), is_present=True)
    assert parse_whole_search('present:"NOW"').is_present
    assert parse_whole_search("present").expression == _word("present")


def test_a_search_says_of_which_states_it_speaks() -> None:
    for state in ("during:2024", "present:2024", "present:now"):
        assert parse_whole_search(state).says_states and parse_whole_search(f"a {state}").says_states
    assert not parse_whole_search("a before:2024 after:2020").says_states


def test_a_state_in_quotes_is_words() -> None:
    assert parse_whole_search('"during:2024"').expression == Words(("during", "2024"))


@pytest.mark.parametrize(
    "word", ["東京都", "отчёт", "กรุงเทพ", "ירושלים", "مدينة", "Ἀθῆναι", "서울", "naïve", "हिन्दी", "😀 x"]
)
def test_a_span_stands_beside_words_of_every_script(word: str) -> None:
    search = parse_whole_search(f"{word} during:2024 {word}")
    assert search.during == parse_span("2024") and search.expression == parse_search(f"{word} {word}")


def test_values_from_elsewhere_are_one_value() -> None:
    assert parse_condition("site", "example.org/a") == Site("example.org/a")
    for name, value in (
        ("site", 'a" OR "b'),
        ("type", "pdf lang:de"),
        ("lang", ""),
        ("after", "2024 OR a"),
        ("site", "a b"),
    ):
        with pytest.raises(BadCondition):
            parse_condition(name, value)
    for text in ("", "2024 2025", "x", "2024-", "2024\n"):
        with pytest.raises(BadCondition):
            parse_span(text)


_PIECES = st.sampled_from(
    [
        '"',
        "(",
        ")",
        "-",
        "OR",
        "AND",
        "NOT",
        "*",
        "a",
        "b*",
        "title:",
        "site:",
        "before:",
        "during:",
        "present:",
        "2024",
        "2019..2021",
        "now",
        " ",
        "é",
        "東",
        "\x1b",
        "“",
        ":",
    ]
)


@given(st.lists(_PIECES, max_size=30).map("".join) | st.text())
def test_any_text_is_a_search_or_has_a_fault(text: str) -> None:
    try:
        found = parse_whole_search(text)
    except BadCondition as error:
        assert all(char.isprintable() for line in str(error).splitlines() for char in line)
    else:
        states = [found.during, found.at, found.is_present or None]
        assert found.expression != All() or any(state is not None for state in states)
        assert sum(state is not None for state in states) <= 1
        assert found.during is None or found.during[0] < found.during[1]
        assert parse_search(text) == found.expression
