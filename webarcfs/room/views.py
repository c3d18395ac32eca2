"""What the templates of the room show: values, without any decision left. Pure.

Texts are plain and are escaped by the templates. An `href` is a path of the room, ready to be used. Times are CET.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

# == views, pure ======================================================================================================


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

    It has pages of the `domains`; of `resource_hosts` others it has only what these pages needed.
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
    complete: bool
    documents: int | None
    bytes: int | None
    closed_until: datetime | None = None
    resource_hosts: int = 0


@dataclass(frozen=True, slots=True)
class PublicationRow:
    """A publication in a list: its snapshots that readers see, and the next to the newest of them."""

    href: str
    name: str
    description: str
    count: int
    first: datetime
    newest: SnapshotRow
    next_to_newest: SnapshotRow | None


@dataclass(frozen=True, slots=True)
class Fonds:
    """The publications of one signature."""

    signature: str
    publications: tuple[PublicationRow, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter of a list: its name in the URL, its label (English, a msgid), and its values as links."""

    name: str
    label: str
    values: tuple[PageLink, ...]
    chosen: str = ""


@dataclass(frozen=True, slots=True)
class HomePage:
    """`/`: fonds with their publications; or snapshots, where filters choose them or there is one publication."""

    query: str
    fonds: tuple[Fonds, ...]
    rows: tuple[SnapshotRow, ...]
    pages: Pages | None
    filters: tuple[Choice, ...]
    order: tuple[PageLink, ...]
    has_search: bool
    total_snapshots: int


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
class PublicationPage:
    """`/publication/<name>`: its snapshots, newest first; `years` are snapshots by year."""

    name: str
    description: str
    rows: tuple[SnapshotRow, ...]
    pages: Pages
    years: tuple[tuple[int, int], ...]
    compare: tuple[PageLink, ...]
    search: str


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """The fields of one step in a record: (number, label, text)."""

    label: str
    fields: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class PartRow:
    """What a snapshot has of a domain: its start page in replay, documents and their bytes.

    `is_resource`: it has no page of the domain, only what pages of others needed.
    """

    domain: str
    start: str
    documents: int
    bytes: int
    is_resource: bool = False


@dataclass(frozen=True, slots=True)
class RecordPage:
    """`/snapshot/<record>`: a record, as readers see it. Statistics are of the pages that the reader may see.

    `resources` are the documents, and their bytes, that only pages of other hosts needed.
    """

    row: SnapshotRow
    is_closed: bool
    groups: tuple[FieldGroup, ...]
    starts: tuple[PageLink, ...]
    parts: tuple[PartRow, ...]
    types: tuple[Slice, ...]
    extensions: tuple[Slice, ...]
    before: SnapshotRow | None
    changes: tuple[Compared, ...]
    compare: str
    links: str
    neighbours: tuple[PageLink, ...]
    exports: tuple[PageLink, ...]
    resources: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class ComparePage:
    """`/compare/<A>..<B>`: two snapshots by type and by extension; what came and what went.

    `other` shows the documents with what only pages of other hosts needed, or without it.
    """

    a: SnapshotRow
    b: SnapshotRow
    types: tuple[Compared, ...]
    extensions: tuple[Compared, ...]
    documents: tuple[PageLink, ...]
    counts: tuple[tuple[str, int], ...]
    figures: tuple[tuple[str, str, str], ...]
    pages: Pages | None
    other: PageLink | None = None


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
class LinksPage:
    """`/snapshot/<record>/links`: external links. `csv` is the same as a table."""

    row: SnapshotRow
    links: tuple[ExternalLinkRow, ...]
    pages: Pages
    csv: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRow:
    """A hit of a search. `calendar` are the versions of its URL; `first` and `last` snapshots that have the URL."""

    href: str
    calendar: str
    title: str
    url: str
    mime_type: str
    language: str
    size: int
    first: datetime
    last: datetime
    snippet: Marked
    signature: str
    project: str
    domain: str
    record: PageLink | None


@dataclass(frozen=True, slots=True)
class HitGroup:
    """The hits of one snapshot: its name, how many, and the first of them."""

    anchor: str
    title: str
    date: datetime
    domain: str
    total: int
    hits: tuple[HitRow, ...]
    more: str


@dataclass(frozen=True, slots=True)
class Facet:
    """A facet: its name in the URL, its label (English, a msgid), and values with counts."""

    name: str
    label: str
    values: tuple[tuple[PageLink, int], ...]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """`/search`. `fields` are the fields of the form as they were sent. `fault` marks what is wrong with the words."""

    words: str
    fields: dict[str, str]
    has_index: bool
    total: int = 0
    hits: tuple[HitRow, ...] = ()
    groups: tuple[HitGroup, ...] = ()
    facets: tuple[Facet, ...] = ()
    pages: Pages | None = None
    suggestion: PageLink | None = None
    fault: str = ""
    from_record: SnapshotRow | None = None
    sorts: tuple[PageLink, ...] = ()
    groupings: tuple[PageLink, ...] = ()
    exports: tuple[PageLink, ...] = ()
    missing: int = 0
    publications: tuple[str, ...] = ()
    snapshots: tuple[tuple[str, str, bool], ...] = ()  # record, its title, whether it is ticked


@dataclass(frozen=True, slots=True)
class AboutPage:
    """`/about`: what the archive is, for readers; counts, interfaces, version."""

    version: str
    engine: str
    snapshots: int
    publications: int
    domains: int
    first: datetime | None
    last: datetime | None
    interfaces: tuple[tuple[str, str], ...] = field(default=())


# == memento views, pure ==============================================================================================


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
    years: tuple[tuple[PageLink, int], ...]
    year: int | None
    versions: int
    timemaps: tuple[PageLink, ...]
    others: tuple[PageLink, ...]
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
class FrameRecord:
    """What a frame says of the record of its snapshot."""

    href: str
    signature: str
    project: str
    date: datetime
    is_occasion: bool
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePage:
    """`/web/<digits>/<url>`: the frame around an archived page. `source` is the URL of the page itself, for the iframe.

    `date` is the snapshot's time, `captured` that of the server's answer. An earlier snapshot stored it if it
    `is_unchanged`, as the snapshot's own crawl met it, or if it `is_carried_over`: that crawl has no capture of it.
    `furthest` is the largest distance in days between the snapshot and what the page embeds; None if it is not known.
    `goes_on`: where browsers would proceed from the page by themselves. `alone` is the page without a frame, as it is
    printed; empty where that is not to be had. `rendered` is the frame of the page as a browser showed it, where there
    is that; `as_sent`, in that frame, is the way back.
    """

    url: str
    title: str
    source: str
    sandbox: str
    date: datetime
    captured: datetime
    is_unchanged: bool
    furthest: int | None
    previous: PageLink | None
    following: PageLink | None
    first: PageLink | None
    last: PageLink | None
    calendar: str
    differences: str
    raw: str
    search: str
    record: FrameRecord | None
    has_scripts: bool
    runs_scripts: bool
    goes_on: PageLink | None = None
    alone: str = ""
    is_unreleased: bool = False
    is_carried_over: bool = False
    reason_against: str = ""  # why the document is a download, in words of `DownloadReason`
    size: int = 0
    message_script: bool = False  # pywb's engine reports to the frame where it is
    certificate: tuple[str, ...] = ()  # what was wrong with the server's: expired, host, issuer, invalid
    rendered: str = ""
    as_sent: str = ""
    copy: str = ""  # what it was taken from, if no server sent it to a crawler: mirror, SingleFile, HAR, MHTML


class Notice(StrEnum):
    """A page that says why a way ends."""

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
    before: PageLink | None
    after: PageLink | None
    variants: tuple[PageLink, ...]
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
