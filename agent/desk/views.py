"""What the templates of the desk show: values, without any decision left. Pure.

Texts are plain and are escaped by the templates. An `href` or `action` is a path of the desk. Times are CET.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent.crawl.browser_check import BrowserCheck
from agent.operations.trying import Answer, MoreByDefaults, ShownStart, Trial
from agent.reports import tables
from webarcfs.archive.catalogue.record import ResourceCount
from webarcfs.room.views import ComparePage, FramePage, PageLink, Pages, Slice

# == file views, pure =================================================================================================


@dataclass(frozen=True, slots=True)
class LogPage:
    """A log of a snapshot, in pieces."""

    title: str
    back: PageLink
    text: str
    first: int
    previous: str
    following: str


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """A file that is attached to a snapshot."""

    name: str
    href: str
    bytes: int
    at: datetime
    by: str
    note: str


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """The files of a snapshot, the note that was typed for one that was not taken, and the most bytes of one."""

    rows: tuple[AttachmentRow, ...]
    note: str
    most: int


# == views, pure ======================================================================================================


# -- who asks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoginPage:
    """`/login`, and in place of any page without a session.

    `kept` are the fields of a form that was sent, to come back. `said` is a msgid, `wait` the seconds until another
    try. Without `has_people` the page says how to make some.
    """

    back: str
    kept: tuple[tuple[str, str], ...]
    name: str
    said: str
    wait: int
    has_people: bool
    archive: str


@dataclass(frozen=True, slots=True)
class MessagePage:
    """An answer that is no page: its status, a heading (a msgid), and text."""

    status: int
    heading: str
    text: str


# -- forms -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field of a form. `kind`: text, area, number, tick, choice, or `told` for a value that is only shown.

    `label` and `help` are in the reader's language. `fault` says what is wrong with what was typed; `now` is what the
    archive has meanwhile, where somebody else was faster. `remark` is what a trial found that matters here.
    """

    name: str
    label: str
    value: str
    kind: str = "text"
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    now: str | None = None
    number: int = 0
    placeholder: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class FieldSet:
    """Fields that belong together, under a heading (a msgid). `is_open`: it is unfolded."""

    heading: str
    fields: tuple[FormField, ...]
    is_open: bool = True


# -- snapshots ---------------------------------------------------------------------------------------------------------


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
    no button leads on. `compare` leads to the comparison with the one before.
    """

    id: str
    number: int
    href: str
    name: str
    title: str
    publication: str
    date: datetime
    state: str
    complete: bool
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
class TodayPage:
    """`/`: what needs a person."""

    attentions: tuple[Attention, ...]
    waiting: tuple[SnapshotLine, ...]
    waiting_total: int
    passed_total: int
    troubled: tuple[SnapshotLine, ...]
    jobs: tuple[JobCard, ...]
    has_publications: bool
    last: datetime | None
    next: tuple[str, datetime] | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotsPage:
    """`/snapshots`: a list with its filters, ticks kept over its pages."""

    rows: tuple[SnapshotLine, ...]
    pages: Pages
    page: int
    last_page: int
    filters: tuple[FormField, ...]
    has_filters: bool
    quick: tuple[PageLink, ...]
    orders: tuple[PageLink, ...]
    ticked: str
    ticked_total: int
    passed: str
    csv: str
    query: str
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralPage:
    """`/snapshots/edit`: the same change in several snapshots."""

    ticked: str
    rows: tuple[SnapshotLine, ...]
    total: int
    fields: tuple[FormField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """`/new`: a capture beside the schedule."""

    publications: tuple[tuple[str, str], ...]
    fields: tuple[FormField, ...]
    told: tuple[tuple[str, str], ...]
    has_agent: bool
    command: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """A line of a snapshot's history."""

    what: str
    date: datetime
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A result of a check; `page` is the reference page that waits for a look, with its preview."""

    text: str
    page: str = ""
    preview: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturesRow:
    """A page with the picture of its crawl and that of replay: paths, or empty; how like they are in percent.

    `lacks` counts its parts that replay does not have. `fault` says why they were not compared.
    """

    url: str
    percent: int | None
    lacks: int
    crawl: str
    replay: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRow:
    """An order that a job was given: its words (a msgid), who gave it and why. `is_taken`: the job knows of it."""

    what: str
    value: str
    at: datetime | None
    by: str
    reason: str
    is_taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPage:
    """`/snapshot/<id>`: all that is known of a snapshot, and what can be done with it."""

    line: SnapshotLine
    access: str
    way: tuple[tuple[str, bool, bool], ...]
    buttons: tuple[Button, ...]
    shared: tuple[int, int] | None
    preview: str
    starts: tuple[PageLink, ...]
    resources: ResourceCount
    why: tuple[str, ...]
    failures: tuple[tuple[str, str, str], ...]
    asked: tuple[str, ...]
    asked_now: str
    sets: tuple[FieldSet, ...]
    blob: str
    may_edit: bool
    checks: tuple[CheckRow, ...]
    pictures: tuple[PicturesRow, ...]
    extensions: tuple[Slice, ...]
    compare: str
    others: str
    logs: tuple[PageLink, ...]
    events: tuple[EventRow, ...]
    orders: tuple[OrderRow, ...]
    exports: tuple[PageLink, ...]
    report: str
    measure: tuple[FormField, ...]
    command: str
    has_agent: bool
    job: str
    again: str
    handover: str
    attachments: AttachedFiles
    missing: tuple[LackRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewPage:
    """The frame around a page of a snapshot that staff look at, released or not."""

    frame: FramePage
    name: str
    state: str
    release: Button | None
    withhold: str
    href: str
    patch: Button | None = None

    @property
    def is_unreleased(self) -> bool:
        """Whether readers do not see it."""
        return self.frame.is_unreleased


@dataclass(frozen=True, slots=True)
class PreviewNote:
    """A page of a preview that the snapshot does not have, or that leads out of it; `text` is a msgid.

    `fate` has what the crawl's log says of the URL: its spelling, sentences, what to do (a msgid). `unseen` says why
    the log has nothing (a msgid), empty where it was not asked.
    """

    text: str
    url: str
    record: str
    back: str = ""
    fate: tuple[tuple[str, tuple[str, ...], str], ...] = ()
    unseen: str = ""
    patch: Button | None = None


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """`/compare/<a>..<b>`, with the other snapshots that may be compared: a page of them, in a year if one is chosen.

    `has_filter`: there are more than a page of them.
    """

    page: ComparePage
    others: tuple[SnapshotLine, ...]
    second: str
    pages: Pages
    year: str
    has_filter: bool


# -- jobs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCard:
    """An open job. `orders` are the words that it takes now, `given` those that it was given, the last one's number
    is `last_order`. `typed` is what was typed into a form that was not taken. `views` counts the pages for the browser.
    """

    job: str
    name: str
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
    left: float | None
    latest_end: datetime | None
    held: str
    urls: tuple[tuple[str, int], ...]
    views: tuple[tuple[str, int], ...]
    orders: frozenset[str]
    last_order: int
    given: tuple[OrderRow, ...] = ()
    typed: Mapping[str, str] = field(default_factory=dict)

    @property
    def share(self) -> int:
        """How much is done, in percent."""
        return min(100, 100 * self.done // self.known) if self.known else 0


@dataclass(frozen=True, slots=True)
class RunningPage:
    """`/running`: open jobs and steps, and what comes next."""

    jobs: tuple[JobCard, ...]
    steps: tuple[tuple[str, str, str, str], ...]
    coming: tuple[tuple[str, datetime], ...]
    finished: tuple[PageLink, ...]
    has_agent: bool
    command: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """`/report/<job>`: what became of a job, as tables and pictures."""

    job: str
    name: str
    snapshot: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    orders: tuple[OrderRow, ...]
    tables: tuple[ReportTable, ...]
    log: str
    missing: tuple[LackRow, ...] = ()
    shown: tuple[ShownRow, ...] = ()
    more_shown: int = 0


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A page that a browser was to show: its requests, and the words of crawl.log for what was cut or failed."""

    url: str
    words: tuple[str, ...]
    requests: int
    refused: int
    missed: int
    has_failed: bool


@dataclass(frozen=True, slots=True)
class LackRow:
    """Resources of a host that pages lack: the word for why, and what to do (a msgid). No host: all further ones."""

    host: str
    word: str
    advice: str
    urls: int


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of a report: heading (a msgid), rows as key, meaning, number, percent, bytes."""

    heading: str
    rows: tuple[tuple[str, str, int, float, int], ...]
    left: int = 0


# == office views, pure ===============================================================================================


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule of access, about an address in its spellings."""

    id: str
    addresses: tuple[str, ...]
    access: str
    user: str
    span: str
    lapses: datetime | None
    reason: str
    public_text: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class AccessPage:
    """`/access`: what is withheld, what is closed, what lapses."""

    rules: tuple[RuleRow, ...]
    closed: tuple[tuple[str, str, int], ...]
    fields: tuple[FormField, ...]
    fault: str


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person of the archive."""

    key: str
    name: str
    role: str
    unix: str
    has_password: bool
    rights: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """`/people`: who may do what. `chosen` is the key of the person whose form is open, empty for a new one."""

    rows: tuple[PersonRow, ...]
    fields: tuple[FormField, ...]
    chosen: str
    state: str
    roles: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class PasswordPage:
    """`/password`: one's own password."""

    has_password: bool
    shortest: int


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`/feed`: whether the person has an address of the staff's feed; `address` is the one that was made just now."""

    has_feed: bool
    address: str


@dataclass(frozen=True, slots=True)
class OptionsPage:
    """`/options`: the archive's settings. `is_open`: they may be changed here."""

    sets: tuple[FieldSet, ...]
    state: str
    is_open: bool
    file: str
    fault: str


# == publication views, pure ==========================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationLine:
    """A publication in the list. `count` and `last` are of its snapshots."""

    name: str
    href: str
    description: str
    urls: tuple[str, ...]
    interval: str
    next: datetime | None
    retired: bool
    is_running: bool
    count: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class PublicationsPage:
    """`/publications`."""

    rows: tuple[PublicationLine, ...]
    pages: Pages
    query: str
    faults: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class TrialPage:
    """What came of a trial; `runs`: nothing yet. Each of `starts` is a start URL with its redirects.

    `is_feed`: it is the feed that the publication watches, of which `captured` items were captured before.
    `needs_browser` has the start pages that show little until their scripts run, `shown` those that a browser was to
    show. `browser` is what there is to say of the browser itself.
    """

    runs: bool
    fault: str
    robots: tuple[Answer, ...]
    starts: tuple[tuple[Answer, ...], ...]
    would: tuple[str, ...]
    number: int
    refused: tuple[tuple[str, int, str], ...]
    is_good: bool
    is_feed: bool = False
    captured: int = 0
    more: MoreByDefaults | None = None
    needs_browser: tuple[str, ...] = ()
    shown: tuple[ShownStart, ...] = ()
    browser: BrowserCheck | None = None

    @classmethod
    def of(cls, trial: Trial | None, fault: str) -> TrialPage:
        """Return a trial as pages show it; None: it runs, or ended with a fault."""
        if trial is None:
            return cls(not fault, fault, (), (), (), 0, (), is_good=False)
        refused = sorted(trial.refused.items(), key=lambda pair: -pair[1])
        return cls(
            runs=False,
            fault="",
            robots=tuple(trial.robots),
            starts=tuple(tuple(chain) for chain in trial.starts),
            would=tuple(trial.would),
            number=trial.number,
            refused=tuple((word, count, tables.sentence_of(word) or "") for word, count in refused),
            is_good=trial.is_good,
            is_feed=bool(trial.feed),
            captured=trial.captured,
            more=trial.more,
            needs_browser=tuple(trial.needs_browser),
            shown=tuple(trial.shown),
            browser=trial.browser,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskPublicationPage:
    """`/publications/<name>`, and `/publications/+new`. `copy` is what a file of its own would say."""

    name: str
    description: str
    sets: tuple[FieldSet, ...]
    state: str
    is_open: bool
    retired: bool
    place: str
    copy: str
    trial: TrialPage | None
    jobs: tuple[JobCard, ...]
    snapshots: str


# == register views, pure =============================================================================================


@dataclass(frozen=True, slots=True)
class FormatRow:
    """An extension: how many files the newest captures have of it, and by which programs they are made and read."""

    extension: str
    documents: int
    made_by: str
    read_by: str
    is_at_risk: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistersPage:
    """`/registers`."""

    rows: tuple[FormatRow, ...]
    at_risk: tuple[FormatRow, ...]
    types: tuple[tuple[str, str, str], ...]
    profiles: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]
    programs: tuple[tuple[str, str, str, str], ...]
    of_format: tuple[FormField, ...]
    of_type: tuple[FormField, ...]
    fault: str
