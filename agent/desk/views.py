"""What templates of the desk show in rows and forms, where several templates or functions do so. Pure.

Texts are plain and are escaped by the templates. An `href` or `action` is a path of the desk. Times are CET.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, urlencode

# -- forms -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field of a form. `kind`: text, address, area, number, choice, or `told` for a value that is shown.

    `date` and `time` are pickers, `ticks` is a choice of several, a line each, `interval` a choice with a field for
    `other` ones. `label` and `help` are in the reader's language. `fault` says what is wrong with what was typed; `now`
    is what the archive has meanwhile, where somebody else was faster. `remark` is what a trial found that matters here.
    `is_set`: its table says it itself.
    """

    name: str
    label: str
    value: str
    kind: str = "text"
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    now: str | None = None
    placeholder: str = ""
    remark: str = ""
    other: str = ""
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class FieldSet:
    """Fields that belong together, under a heading (a msgid). `is_open`: it is unfolded.

    Below them are notes (msgids), the last one of `command` where there is one.
    """

    heading: str
    fields: tuple[FormField, ...]
    is_open: bool = True
    notes: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class DifferingHost:
    """A host of other publications with other rules of when readers see it: name, address and rule of each."""

    host: str
    others: tuple[tuple[str, str, str], ...]


# -- snapshots ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DifferingDocument:
    """A document that two crawls do not have alike: what became of it, and where it is shown.

    `before` is where it is shown as it was; empty where one of the two does not have it.
    """

    what: str
    url: str
    href: str
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A step that a person may take: its words (a msgid), where its form leads, the state that the form is made for.

    `is_main`: the one that leads on. `asks_reason`: a reason has to be typed. `is_final`: it cannot be taken back.
    """

    text: str
    action: str
    state: str
    is_main: bool = False
    asks_reason: bool = False
    is_final: bool = False
    more: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """A step that works on a snapshot (a msgid), for whom (empty: it came by itself), and since it was asked for."""

    step: str
    by: str
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLine:
    """A snapshot, as every list shows it. `name` is how people call it; `next` the one step that leads on.

    `work` is what a locked one is locked for, None in the moment of a decision. `waits_for` says in words (a msgid) why
    no button leads on. `complete` is None where nobody knows. `compare` leads to the comparison with the one before.
    """

    id: str
    number: int
    href: str
    name: str
    publication: str
    state: str
    complete: bool | None
    reason: str
    documents: int | None
    bytes: int | None
    documents_before: int | None
    bytes_before: int | None
    compare: str
    has_warning: bool
    is_locked: bool
    work: Work | None
    closed_for: str
    next: Button | None
    waits_for: str = ""
    is_ticked: bool = False


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that wants a person: words (a msgid, with `%(what)s` for `what`), and where it leads."""

    text: str
    what: str = ""
    href: str = ""
    command: str = ""
    is_grave: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRow:
    """An order that a job was given: its words (a msgid), who gave it and why. `is_taken`: the job knows of it."""

    what: str
    value: str
    at: datetime | None
    by: str
    reason: str
    is_taken: bool


# -- jobs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServersOfJob:
    """The servers that a job asks: of the first ones the name, how many of their addresses wait, and where all are.

    `more` are the others. Without any row, the job knows too many addresses for a page to count them by server.
    """

    rows: tuple[tuple[str, int, str], ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """What a job asks for again: the name and path of the crawl, the first pages with their paths, and how many more.

    Without pages it is what failed, or all of a kind.
    """

    name: str
    href: str
    pages: tuple[tuple[str, str], ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCard:
    """An open job. `orders` are the words that it takes now, `given` those that it was given, the last one's number
    is `last_order`. `typed` is what was typed into a form that was not taken. `views` counts the pages for the browser.
    `urls` counts the addresses by state, `unread` those among the fetched ones that are not read yet.
    """

    job: str
    name: str
    kind: str
    publication: str
    state: str
    is_running: bool
    reason: str
    again: str
    done: int
    known: int
    documents: int
    bytes: int
    speed: float
    latest_end: datetime | None
    held: str
    urls: tuple[tuple[str, int], ...]
    unread: int
    views: tuple[tuple[str, int], ...]
    orders: frozenset[str]
    last_order: int
    given: tuple[OrderRow, ...] = ()
    asked_again: AskedAgain | None = None
    typed: Mapping[str, str] = field(default_factory=dict)
    servers: ServersOfJob | None = None

    @property
    def publication_href(self) -> str:
        """The page of its publication; there is one of those that the settings have."""
        return f"/publications/{quote(self.publication, safe='')}"

    @property
    def share(self) -> int:
        """How much is done, in percent."""
        return min(100, 100 * self.done // self.known) if self.known else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """A job that ended. `kind`, `result` and `why` are msgids.

    `record` is the path of its crawl, empty without one, and `number` its number.

    `why` explains how it ended early, or what failed most often; `host_reason` is what the crawl said of its first
    incomplete host, in English. `failures` are the URLs that failed to come and that no patch got, None where they are
    too many to be counted for a list; `failures_href` leads to them.
    """

    job: str
    name: str
    kind: str
    href: str
    record: str
    number: int
    result: str
    sign: str
    is_whole: bool
    why: str
    host_reason: str
    documents: int
    added: int
    changed: int
    removed: int
    bytes: int
    duration: str
    failures: int | None
    failures_href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlEnd:
    """How a crawl ended, or what it noted then: a msgid with the `word` of the log that it explains, or its own text.

    `setting` is what people call the bound that ended it, with its value `then` and `now`. `href` leads to it, and is
    empty without a publication. `holds`: it ends a patch as well.
    """

    text: str
    word: str = ""
    setting: str = ""
    then: str = ""
    now: str = ""
    href: str = ""
    holds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StillMissing:
    """What a crawl lacks now: URLs that its end left, and that failed to come, with the paths of their lists.

    `patches` are the jobs that asked for them since, with their times.
    """

    left: int
    left_href: str
    failed: int
    failed_href: str
    patches: tuple[tuple[str, datetime | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFateView:
    """What a crawl did with a URL: sentences and advice are msgids. `found` says how it was found (a msgid).

    `referrer` is the page that led to it, empty for none; `reason` the word of the log for why it is not archived.
    """

    url: str
    is_archived: bool
    status: int
    reason: str
    sentences: tuple[str, ...]
    advice: str
    found: str
    referrer: str

    @property
    def href(self) -> str:
        """The page about the page that led to it."""
        return f"/missing?{urlencode({'url': self.referrer})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCrawl:
    """A crawl as a sentence names it: what it is called, and where its page is.

    `publication_href` is the path of its publication, empty for one that no settings have.
    """

    name: str
    href: str
    publication: str
    publication_href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOfUrl:
    """A crawl, and what it did with a URL: where the page about both is, and the line that says most of it."""

    job: str
    crawl: NamedCrawl
    href: str
    fate: UrlFateView


@dataclass(frozen=True, slots=True)
class LackRow:
    """Resources of a host that pages lack: the word for why, and what to do (a msgid). No host: all further ones.

    `href` is the path of these URLs.
    """

    host: str
    word: str
    advice: str
    urls: int
    href: str = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of a report: heading (a msgid), rows as key, meaning, number, percent, bytes.

    `hrefs` has the path of the URLs behind a number, by its key.
    """

    heading: str
    rows: tuple[tuple[str, str, int, float, int], ...]
    left: int = 0
    hrefs: Mapping[str, str] = field(default_factory=dict)
