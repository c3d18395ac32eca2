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
    Site,
    TypeCondition,
    Words,
    parse_search,
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
        ("after:2024-13", "a time is", 6),
        ("type:pfd", "a type is", 5),
        ("lang:deutsch", "a language is", 5),
        ("site:/a", "a site is", 5),
        ("a NOT", "comes a word", 2),
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
        "2024",
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
        found = parse_search(text)
    except BadCondition as error:
        assert all(char.isprintable() for line in str(error).splitlines() for char in line)
    else:
        assert found != All()
