"""What the templates of the room show of URLs of the past: values, without any decision left. Pure.

Texts are plain and are escaped by the templates. An `href` is a path of the room, ready to be used. Times are CET.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webarcfs.room.views import FieldGroup, Link, Marked, SnapshotRow


class Change(StrEnum):
    """What a snapshot did to a URL."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """A snapshot in the calendar of a URL; `status` is HTTP's, `target` that of a redirect, `diff` the change."""

    href: str
    date: datetime
    change: Change
    status: int
    size: int
    mime_type: str
    target: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class CalendarPage:
    """`/web/*/<url>`: the snapshots of a URL, oldest first, those of `year` where one is chosen."""

    url: str
    entries: tuple[CalendarEntry, ...]
    years: tuple[tuple[Link, int], ...]
    year: int | None
    versions: int
    timemaps: tuple[Link, ...]
    others: tuple[Link, ...]
    prefix: str


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """A URL below a prefix: how many versions, from when to when."""

    href: str
    url: str
    mime_type: str
    versions: int
    first: datetime
    last: datetime
    is_present: bool


@dataclass(frozen=True, slots=True)
class PrefixPage:
    """`/web/*/<prefix>*`: URLs below a prefix, with the link to the next ones."""

    prefix: str
    rows: tuple[PrefixRow, ...]
    following: str
    is_start: bool


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


@dataclass(frozen=True, slots=True)
class DiffPage:
    """`/diff/<t1>..<t2>/<url>`: two versions of a page by their text; side by side, or one below the other.

    `is_cut`: only the beginning was compared. `is_coarse`: some lines are marked as a whole.
    """

    url: str
    old: CalendarEntry
    new: CalendarEntry
    lines: tuple[DiffLine, ...]
    is_side_by_side: bool
    other_view: str
    is_text: bool
    is_same: bool
    is_cut: bool
    is_coarse: bool
    calendar: str
    old_frame: str
    new_frame: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePage:
    """`/web/<digits>/<url>`: the frame around an archived page. `source` is the URL of the page itself, for the iframe.

    `date` is the snapshot's time, `captured` that of the server's answer, which an earlier snapshot stored if it
    `is_unchanged`, `furthest` the largest distance in days between the snapshot and what the page embeds; None if it is
    not known. `goes_on`: where browsers would go on from the page by themselves. `alone` is the page without a frame,
    as it is printed; empty where that is not to be had.
    """

    url: str
    title: str
    source: str
    sandbox: str
    date: datetime
    captured: datetime
    is_unchanged: bool
    furthest: int | None
    previous: Link | None
    following: Link | None
    first: Link | None
    last: Link | None
    calendar: str
    differences: str
    raw: str
    search: str
    record: SnapshotRow | None
    has_scripts: bool
    runs_scripts: bool
    goes_on: Link | None = None
    alone: str = ""
    is_unreleased: bool = False
    reason_against: str = ""  # why the document is a download, in words of `replay.showing.Reason`
    size: int = 0
    message_script: bool = False  # pywb's engine tells the frame where it is


class Notice(StrEnum):
    """A page that says why a way does not go on."""

    EXTERNAL = "external"
    FORM = "form"
    FUNCTION = "function"
    LEFT_OUT = "left-out"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class NoticePage:
    """`/notice/<kind>`. `url` is shown word for word, as text; `text` is the archive's own words, empty for ours."""

    kind: Notice
    url: str
    back: str
    text: str = ""
    reason: str = ""
    until: datetime | None = None
    record: SnapshotRow | None = None
    groups: tuple[FieldGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingPage:
    """404 "not in this snapshot": what there is instead."""

    url: str
    date: datetime | None
    before: Link | None
    after: Link | None
    variants: tuple[Link, ...]
    calendar: str
    prefix: str
    search: str
    record: SnapshotRow | None


@dataclass(frozen=True, slots=True)
class InnerNotice:
    """What a frame of an archived page shows in place of a page that is not shown. `heading` is a msgid."""

    heading: str
    url: str


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """Any other answer that is no page: HTTP status, a heading and a text (msgids), and details as text."""

    status: int
    heading: str
    text: str
    details: str = ""
