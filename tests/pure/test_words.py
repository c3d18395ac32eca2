"""Texts as words: a word as it is written is found, whatever its case, accents and script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webarcfs.search.words import LONGEST_WORD, natural, terms_of, words_of

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Hello_World foo-bar 3.14", "hello world foo bar 3 14"),
        ("Über Straße naïve Café", "uber strasse naive cafe"),
        ("e\u0301te\u0301", "ete"),
        ("ﬁne ①", "fine 1"),
        ("İstanbul", "istanbul"),
        ("Ёлка", "елка"),
        ("كِتَاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("東京都です", "東京 京都 都で です す"),
        ("abc東京1", "abc 東京 京 1"),
        ("سفارشی\u200cسازی", "سفارشی سازی"),
        ("한국어", "한국 국어 어"),
        ("co\u00adoperate a\u200bb", "cooperate a b"),
        ("x" * 500, "x" * LONGEST_WORD),
        ("", ""),
        ("... \n", ""),
    ],
)
def test_texts_as_terms(text: str, terms: str) -> None:
    assert terms_of(text).split() == terms.split()


@given(st.text())
@example("\u3200 x\u2122 \u2116")
@example("0\u202a0 a\u2060b \ufeffc")  # marks of direction, joiners, a byte order mark
def test_a_text_has_the_terms_of_its_words(text: str) -> None:
    words = list(words_of(text))
    assert [term for word in words for term in word.terms] == terms_of(text).split()
    places = [place for word in words for place in (word.begin, word.end)]
    assert places == sorted(places)


@given(st.text())
def test_forms_of_one_text_are_one(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert terms_of(unicodedata.normalize(form, text)).split() == terms_of(text).split()


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_case_makes_no_difference(text: str) -> None:
    assert terms_of(text.upper()).split() == terms_of(text).split() or text.upper().lower() != text.lower()


@given(st.text())
def test_terms_are_stable(text: str) -> None:
    """The terms of terms are the same, but for pairs: so a suggestion may be searched as it is."""
    terms = terms_of(text).split()
    plain = [each for each in terms if each.isascii()]
    assert terms_of(" ".join(plain)).split() == plain


def test_stemmers_get_accents() -> None:
    assert natural("Die Häuser, MANGÉES") == "die häuser mangées"
