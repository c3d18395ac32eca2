"""What examples/wordcount.py takes for a word, and how it lists them, against the plainest way to say the same."""

from __future__ import annotations

import html
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.pure

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "wordcount.py"))
#: Letters of which some are two when they are small; what joins words; what parts them; digits that are no numbers.
TEXTS = st.text("aBzÉéİΣςßǅﬁ漢कि٣²0_-'’.,;/¶— \n\u00a0\u2003", max_size=60)


@given(TEXTS)
def test_words_are_counted_as_the_expression_has_them(text: str) -> None:
    """Runs of letters and digits, joined by apostrophes and hyphens, each in small letters."""
    page = f"<p>{html.escape(text)}</p>".encode()
    pieces = re.split(r"[^\w'’\-\u0080-\U0010ffff]+", text)
    words = [word for piece in pieces for word in re.findall(r"\w+(?:['’-]\w+)*", piece.lower())]
    assert EXAMPLE["count"](page) == Counter(words)


@given(st.dictionaries(st.text("abÉ漢", min_size=1, max_size=3), st.integers(1, 3)))
def test_words_are_listed_by_how_often_they_occur(words: dict[str, int]) -> None:
    """The most frequent first, then by the alphabet."""
    ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    assert EXAMPLE["listed"](Counter(words)).decode() == "".join(f"{times}\t{word}\n" for word, times in ordered)
