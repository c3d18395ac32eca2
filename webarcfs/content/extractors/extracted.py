"""The text of a document, in parts, and the reason where there is none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Most characters of a document's text; the rest is not searched.
LONGEST = 10_000_000


class Fault(StrEnum):
    """A reason why a document has no text, or not all of it."""

    NONE = ""
    NO_TEXT = "no-text"  # it has a form for text, and none in it: a scanned PDF
    ENCRYPTED = "encrypted"
    DAMAGED = "damaged"
    TOO_LONG = "too-long"  # the beginning is there
    TOO_SLOW = "too-slow"
    TOO_LARGE = "too-large"  # more memory than an extractor may have
    NO_EXTRACTOR = "no-extractor"  # a format with text that nothing here reads


#: A sentence for each fault.
SENTENCES = {
    Fault.NO_TEXT: "It has pages, and no text in them; a scan perhaps.",
    Fault.ENCRYPTED: "It is encrypted.",
    Fault.DAMAGED: "It is not of the form that its type says.",
    Fault.TOO_LONG: f"Only its first {LONGEST:,} characters are searched.",
    Fault.TOO_SLOW: "Reading it took too long.",
    Fault.TOO_LARGE: "Reading it took too much memory.",
    Fault.NO_EXTRACTOR: "Nothing here reads this format.",
}


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's text as people see it, lines apart; its headings, and its description in words.

    `language` is a code of two letters, or empty.
    """

    body: str = ""
    title: str = ""
    headings: str = ""
    description: str = ""
    language: str = ""
    fault: str = Fault.NONE


class UnreadableDocument(Exception):  # its kind is the fault
    """A document whose text cannot be had."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(SENTENCES.get(fault, fault))
        self.fault = fault
