"""The table of extractors, and what all of them share: clean text, its language."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import BinaryIO, Protocol, cast

from webarcfs.content import text
from webarcfs.content.extractors import pdf, text_formats
from webarcfs.content.extractors.extracted import LONGEST, Extracted, Fault, UnreadableDocument


class _Detector(Protocol):
    def classify(self, sample: str) -> tuple[str, float]:
        """Return the code of the language, and a weight."""


Extractor = Callable[[BinaryIO, str], Extracted]
#: Characters of a text from which its language is guessed, and fewest letters for that.
_SAMPLE, _LEAST = 2_000, 40
#: C0 and C1 controls, and what is no character: terminals would obey some of them.
_UNWANTED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]+")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_CODE = re.compile(r"[a-z]{2,3}")


def _html(file: BinaryIO, content_type: str) -> Extracted:
    charset = text.decode_charset(file.read(text.SAMPLE), content_type)
    return text_formats.extract_html(text_formats.chunks_of(file), charset)


def _mail(file: BinaryIO, _content_type: str) -> Extracted:
    return text_formats.extract_mail(file, lambda data, kind: _raw(io.BytesIO(data), kind.partition(";")[0], kind))


_OFFICE: Extractor = lambda file, _: text_formats.extract_office(file)  # noqa: E731
_RTF: Extractor = lambda file, _: text_formats.extract_rtf(file)  # noqa: E731
_PDF: Extractor = lambda file, _: pdf.extract(file)  # noqa: E731
_EXTRACTORS: Mapping[str, Extractor] = {
    "text/html": _html,
    "application/xhtml+xml": _html,
    "application/pdf": _PDF,
    "application/rtf": _RTF,
    "text/rtf": _RTF,
    "message/rfc822": _mail,
    **dict.fromkeys(
        [
            *(f"application/vnd.openxmlformats-officedocument.{kind}" for kind in (
                "wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet",
                "wordprocessingml.template", "presentationml.slideshow", "spreadsheetml.template",
            )),
            *(f"application/vnd.ms-{kind}.macroenabled.12" for kind in (
                "word.document", "excel.sheet", "powerpoint.presentation",
            )),
            *(f"application/vnd.oasis.opendocument.{kind}" for kind in (
                "text", "presentation", "spreadsheet", "graphics", "text-template",
            )),
        ],
        _OFFICE,
    ),
}  # fmt: skip
#: Types of programs, whose text is for machines.
_NO_TEXT = frozenset(
    [
        "text/css",
        *text.SCRIPT_TYPES,
        "application/json",
        "text/json",
        "application/manifest+json",
        "application/ld+json",
        "text/vtt",
        "text/cache-manifest",
        "application/x-empty",
        "text/x-c",
    ]
)
#: Formats with text that nothing here reads.
_UNREAD = frozenset(
    [
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/postscript",
        "application/epub+zip",
        "application/x-mobipocket-ebook",
        "image/vnd.djvu",
        "application/vnd.wordperfect",
    ]
)


def has_text(mime_type: str) -> bool:
    """Return whether documents of a type are read."""
    return _extractor(mime_type) is not None or mime_type in _UNREAD


def extract(file: BinaryIO, mime_type: str, content_type: str = "", language: str = "") -> Extracted:
    """Return the text of a document, clean, with its language. `content_type` is the header's value, or empty.

    With a `language` that is known, it is not guessed: the model for that takes half a second to load. A document
    without a text has a fault. Raises MemoryError, and what libraries raise for content they do not expect.
    """
    try:
        extracted = _raw(file, mime_type, content_type)
    except UnreadableDocument as error:
        return Extracted(fault=error.fault)
    body = clean(extracted.body)
    fault = extracted.fault
    if not fault and not body and mime_type in _EXTRACTORS and "html" not in mime_type:
        fault = Fault.NO_TEXT
    return dataclasses.replace(
        extracted,
        body=body,
        title=text.fold(extracted.title),
        headings=clean(extracted.headings),
        description=clean(extracted.description)[: text.LONGEST_TITLE * 10],
        language=language or language_of(body, extracted.language),
        fault=str(fault),
    )


def _raw(file: BinaryIO, mime_type: str, content_type: str) -> Extracted:
    extractor = _extractor(mime_type)
    if extractor is not None:
        return extractor(file, content_type)
    return Extracted(fault=Fault.NO_EXTRACTOR if mime_type in _UNREAD else "")


def _extractor(mime_type: str) -> Extractor | None:
    if mime_type in _NO_TEXT:
        return None
    if (extractor := _EXTRACTORS.get(mime_type.lower())) is not None:
        return extractor
    if text.is_xml(mime_type):
        return text_formats.extract_xml
    return text_formats.extract_text if mime_type.startswith("text/") else None


def clean(raw_text: str) -> str:
    """Return text without controls, each line without needless spaces, no line empty."""
    plain_text = _UNWANTED.sub(" ", raw_text[:LONGEST])
    return _LINES.sub("\n", _SPACES.sub(" ", plain_text)).strip()


def language_of(body: str, declared: str = "") -> str:
    """Return the language of a text; what it declares counts where it is too short to tell."""
    sample = body[:_SAMPLE]
    if sum(map(str.isalpha, sample[: 2 * _LEAST])) >= _LEAST:
        return _detector().classify(sample)[0]
    code = declared.strip().lower().partition("-")[0].partition("_")[0]
    return code if _CODE.fullmatch(code) else ""


@lru_cache(maxsize=1)
def _detector() -> _Detector:
    import py3langid  # type: ignore[import-untyped] # noqa: PLC0415 # of the extra `search`; slow to load, without types

    return cast(_Detector, py3langid)
