"""What templates of the room show in rows and links, where several templates or functions do so. Pure.

Texts are plain and are escaped by the templates. An `href` is a path of the room, ready to be used. Times are CET.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link of the room: where it leads, and its words. `is_here`: it is what the page shows."""

    href: str
    text: str
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class Pages:
    """The way through a long list: rows `first` to `last` of `total`; empty links where there is nothing more."""

    first: int
    last: int
    total: int
    previous: str = ""
    following: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """A snapshot in a list: what its record says to readers. `href` is its record, `start` its first page in replay.

    `title` is its own, or that of its start page; `complete` is None where nobody knows. It has pages of the `domains`;
    of `resource_hosts` others it has only what these pages needed.
    """

    href: str
    start: str
    number: int
    title: str
    publication: str
    signature: str
    provenance: str
    project: str
    domains: tuple[str, ...]
    is_occasion: bool
    reason: str
    date: datetime
    complete: bool | None
    documents: int | None
    bytes: int | None
    closed_until: datetime | None = None
    resource_hosts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionCard:
    """A collection in a list: its beginning in words, the number of its crawls, and the dates of the first and last.

    `picture` is the path of its picture, empty without one; `picture_text` says what it shows.
    """

    href: str
    title: str
    lead: str
    count: int
    first: datetime
    last: datetime
    picture: str = ""
    picture_text: str = ""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a whole, for tables and pictures."""

    label: str
    documents: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A row of a comparison: documents and bytes of a type or extension in two snapshots."""

    label: str
    documents_a: int
    documents_b: int
    bytes_a: int
    bytes_b: int


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """The fields of one step in a record: (number, label, text)."""

    label: str
    fields: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class ExternalLinkRow:
    """An external link of a snapshot: its number, the texts that name it, its target, pages that have it."""

    number: int
    texts: tuple[str, ...]
    url: str
    windows: tuple[str, ...]
    pages: tuple[PageLink, ...]
    more_pages: int


@dataclass(frozen=True, slots=True)
class Marked:
    """A text with marks: places [begin, end) of it."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def pieces(self) -> list[tuple[str, bool]]:
        """Return the text in pieces, each with whether it is marked."""
        parts, at = [], 0
        for begin, end in self.marks:
            parts += [(self.text[at:begin], False), (self.text[begin:end], True)]
            at = end
        return [(piece, mark) for piece, mark in [*parts, (self.text[at:], False)] if piece]


# == memento views, pure ==============================================================================================


class Change(StrEnum):
    """What a snapshot did to a URL."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    GONE = "gone"
    WITHHELD = "withheld"  # a rule withholds it, or it is under embargo


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """A snapshot in the calendar of a URL; `status` is HTTP's, `target` that of a redirect, `diff` the change.

    `digits` are its time, by which its text is compared with another one's; empty where there is no page.
    """

    href: str
    date: datetime
    change: Change
    status: int
    size: int
    mime_type: str
    target: str = ""
    diff: str = ""
    digits: str = ""


class Line(StrEnum):
    """What became of a line between two versions."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"
    SKIPPED = "skipped"  # lines that did not change are left out here


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a comparison: what it was and what it is, each with marks of the words that differ."""

    kind: Line
    old: Marked | None
    new: Marked | None
    skipped: int = 0


class Notice(StrEnum):
    """A page that says why a way ends."""

    EXTERNAL = "external"
    FORM = "form"
    FUNCTION = "function"
    LEFT_OUT = "left-out"
    CLOSED = "closed"
