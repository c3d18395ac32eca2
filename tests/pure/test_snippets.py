"""Snippets: the piece of a text with most of the words, and the places of the words in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import BadCondition
from webarcfs.search.query_language import parse_search
from webarcfs.search.searching import LENGTH, Snippet, snippet, wanted

pytestmark = pytest.mark.pure
_TEXT = "Intro. " * 100 + "The annual\n\nreport was  about cats; reports follow. " + "End. " * 100


def _snippet(text: str, words: str) -> Snippet:
    return snippet(text, wanted(parse_search(words), lambda word: word.lower().removesuffix("s")))


def _marked(found: Snippet) -> list[str]:
    return [found.text[begin:end] for begin, end in found.marks]


def test_the_words_are_marked() -> None:
    assert _marked(_snippet(_TEXT, "annual report")) == ["annual", "report", "reports"]
    assert _marked(_snippet(_TEXT, "cat")) == ["cats"]
    assert _marked(_snippet(_TEXT, "rep*")) == ["report", "reports"]
    assert _marked(_snippet(_TEXT, '"annual report" -cats')) == ["annual", "report"]
    assert _marked(_snippet("vor 東京都です nach", "東京")) == ["東京都です"]
    assert _marked(_snippet("Über die Straße", "strasse")) == ["Straße"]


def test_a_snippet_is_one_short_line_around_the_words() -> None:
    found = _snippet(_TEXT, "annual")
    assert found.text.startswith("… Intro.") and found.text.endswith(" …")
    assert "The annual report was about cats;" in found.text
    assert len(found.text) <= LENGTH + 4
    assert _snippet(_TEXT, "nothing").text.startswith("Intro. Intro.")
    assert _snippet("", "a") == Snippet()


@given(st.text(max_size=600), st.text(st.characters(categories=("L", "N")), min_size=1, max_size=5))
def test_marks_are_inside_the_snippet(text: str, word: str) -> None:
    try:
        found = _snippet(f"{text} {word} {text}", word)
    except BadCondition:
        return
    assert "\n" not in found.text
    last = 0
    for begin, end in found.marks:
        assert last <= begin < end <= len(found.text)
        last = end
