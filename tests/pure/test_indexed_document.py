"""A document of the full-text index comes back from its bytes as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.content.extractors.extracted import Extracted
from webarcfs.search.words import CURRENT, WORDLESS, IndexedDocument, from_bytes, marks

pytestmark = pytest.mark.pure

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
_EXTRACTED = st.builds(
    Extracted, body=_TEXT, headings=_TEXT, description=_TEXT, language=st.sampled_from(["", "en"]), fault=_TEXT
)
_DOCUMENTS = st.builds(
    IndexedDocument, url=_TEXT, path=_TEXT.map("/{}".format), domain=_TEXT, publication=_TEXT, since=st.just(1),
    until=st.sampled_from([2, CURRENT]), captured=st.just(2), mime_type=_TEXT, title=_TEXT, status=st.just(200),
    size=st.integers(0, 1 << 50), blob=st.binary().map(bytes.hex), extracted=_EXTRACTED,
)  # fmt: skip


@given(_DOCUMENTS)
def test_back_from_bytes(document: IndexedDocument) -> None:
    text = replace(document.extracted, title=document.title)
    assert from_bytes(document.about(), document.content()) == replace(document, extracted=text)
    without = Extracted(title=text.title, language=text.language, fault=text.fault)
    assert from_bytes(document.about()) == replace(document, extracted=without)


def test_the_bytes_of_a_usual_document_are_few() -> None:
    url = "http://www.example.org/news/2026/index.html"
    usual = IndexedDocument(
        url=url, path=url.removeprefix("http:/"), domain="www.example.org", publication="p", since=1_600_000_000,
        until=CURRENT, captured=1_600_000_000, mime_type="text/html", title="News", status=200, size=12_345,
        blob="5b" * 20, extracted=Extracted(body="word " * 100, language="en"),
    )  # fmt: skip
    assert len(usual.about()) < 2 * len(url) + 80 and len(usual.content()) < 30
    assert from_bytes(usual.about(), usual.content()) == replace(
        usual, extracted=replace(usual.extracted, title="News")
    )


def test_only_a_document_without_any_words_is_found_by_those_of_its_address() -> None:
    url = "http://www.example.org/harbour.png"
    picture = IndexedDocument(
        url=url, path=url.removeprefix("http:/"), domain="www.example.org", publication="p", since=1_600_000_000,
        until=CURRENT, captured=1_600_000_000, mime_type="image/png", title="", status=200, size=1, blob="5b" * 20,
    )  # fmt: skip
    assert WORDLESS in marks(picture)
    assert WORDLESS not in marks(replace(picture, title="Harbour"))
    for part in ("body", "title", "headings", "description"):
        assert WORDLESS not in marks(replace(picture, extracted=Extracted(**{part: "harbour"})))
