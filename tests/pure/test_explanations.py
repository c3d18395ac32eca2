"""Each word of crawl.log is explained in plain language, in both languages, and something can be done about it."""

from __future__ import annotations

import re

import pytest

from agent.crawl.vocabulary import DECISIONS, IN_CRAWL_LOG, Figure, Status
from agent.reports import explanations
from agent.reports.explanations import advice_on, desk_advice_on, explanation_of
from webarcfs.web import language

#: The words that say why a URL is not archived, or what to know of it; the others are before a figure.
WORDS = [word for word in IN_CRAWL_LOG if not isinstance(word, Figure)]
STATUSES = [*(status.value for status in Status), 200, 204, 301, 401, 403, 404, 407, 410, 418, 429, 500, 503, 520]
#: Names as files and commands write them: with an underscore, in backticks or brackets, an option, an assignment.
_AS_IN_FILES = re.compile(r"[a-z]_[a-z]|`|\[\[?\w|--\w|\w = ")


def german(text: str) -> str:
    return language.translate(text, "de")


def in_full(word: str) -> str:
    """The word as a log has it: one that ends in a colon is followed by more."""
    return f"{word}x" if word.endswith(":") else str(word)


@pytest.mark.parametrize("word", WORDS)
def test_each_word_has_an_explanation_and_an_advice_in_both_languages(word: str) -> None:
    explanation, advice = explanation_of(in_full(word)), desk_advice_on(in_full(word))
    for text in (explanation, advice):
        assert text and german(text) != text, text
        assert not _AS_IN_FILES.search(text) and not _AS_IN_FILES.search(german(text)), text
    assert advice_on(in_full(word)) != advice_on("an unknown word"), "the general advice is of words of other versions"


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_an_explanation_and_an_advice(status: int) -> None:
    explanation = explanation_of(f"status {status}")
    assert explanation and german(explanation) != explanation
    assert desk_advice_on(f"status {status}") in explanations.TEXTS
    is_gone = advice_on(f"status {status}") == advice_on("status 404")
    assert is_gone == (status in (404, 410, 418, 200, 204, 301))


def test_a_decision_is_never_advised_to_be_forgotten() -> None:
    general = advice_on("an unknown word")
    assert [word for word in DECISIONS if advice_on(str(word)) == general] == []


def test_what_is_no_word_has_no_explanation() -> None:
    for word in ("", "depth:3", "seed3:-7", "of-another-version", "status x"):
        assert explanation_of(word) == ""
