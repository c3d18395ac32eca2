"""The frontier of a job: every URL that the crawl has seen, with its state and outcome, in SQLite (/Cr-6/).

It is in the job's folder beside the WARCs: after any kill of the job, the fetched and the remaining URLs are known. One
process writes to it, in one thread. The statements are the files `sql/frontier/*.sql`; the columns are explained in
sql/frontier/schema.sql.

Its table `job` has the facts of the job: values that its steps need after an interruption. A fact has one writer; its
comment names the module. The frontiers of interrupted jobs contain the keys, so a key must not change. `Frontier.get`
and `Frontier.set` take a fact; the value has its type.

`ImportIndex` is the frontier of an import, which is also its index: its captures, the crawls and the snapshots that
they become. Sorting, grouping and cutting are questions to SQLite, which keeps on the disk what is more than memory
holds. Its statements are the files `sql/imports/*.sql`.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

from agent.crawl.vocabulary import NOT_SHOWN, LinkKind, Reason, Status, UrlState, ViewState, cause_among
from webarcfs.archive.config.directory import sql
from webarcfs.archive.git.git_command import is_full
from webarcfs.archive.index.sqlite_file import queries_of, version_of
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, LONGEST_TARGET

# == rows =============================================================================================================


@dataclass(frozen=True, slots=True)
class FrontierUrl:
    """A URL of the frontier; the columns are explained in sql/frontier/schema.sql."""

    id: int
    url: str
    domain: str
    kind: str
    depth: int
    hops: str
    found_on: int | None
    state: str
    tries: int
    not_before: float
    status: int
    note: str
    batch: int
    position: int
    size: int
    mime: str
    digest: str
    captured: str
    arc: str
    target: str
    expanded: int
    nested: int
    links: int
    inner: int
    result: str
    embedded: int
    page: int
    named: str

    @property
    def asked(self) -> str:
        """The URL that a server is asked for, while it waits or is fetched."""
        return self.target or self.url

    @property
    def is_start(self) -> bool:
        """Whether it is a start URL or a watched feed, or one to which nothing but redirects lead from there."""
        is_named = self.kind in (LinkKind.SEED, LinkKind.FEED)
        return is_named or (self.kind == LinkKind.REDIRECT and not self.hops.strip("R"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUrl:
    """A found URL: its page, its kind, and whether the scope accepts it (state `waiting`) or why not."""

    url: str
    domain: str
    kind: str
    depth: int
    hops: str
    found_on: int | None = None
    state: str = UrlState.WAITING
    status: int = 0
    note: str = ""
    inner: int = 0
    embedded: int = 0
    page: int = 0
    named: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOutcome:
    """The outcome of an attempt at a URL. `tried` is 0 if the attempt does not count."""

    id: int
    state: str
    status: int
    tried: int = 1
    not_before: float = 0.0
    note: str = ""
    position: int = 0
    size: int = 0
    mime: str = ""
    digest: str = ""
    captured: str = ""
    arc: str = ""
    target: str = ""
    links: int = -1


@dataclass(frozen=True, slots=True)
class PageView:
    """A page that a browser shows; the columns are explained in sql/frontier/schema.sql."""

    id: int
    state: str
    tries: int
    batch: int
    words: str
    title: str
    shown: str
    html_at: int
    html_size: int
    text_at: int
    text_size: int
    picture_at: int
    picture_size: int
    requests: int
    refused: int
    missed: int


class ShownView(NamedTuple):
    """A page that a browser showed or could not show: when, the words for what was cut or failed, and its requests.

    `refused` counts the requests that the crawl did not send, `missed` those without a whole response.
    """

    url: str
    state: str
    words: str
    shown: str
    requests: int
    refused: int
    missed: int
    pictures: int

    @property
    def has_failed(self) -> bool:
        """Whether nothing is kept of what the page showed."""
        return self.state != ViewState.DONE


class CrawledHost(NamedTuple):
    """A host that the crawl was to ask: whether it has pages of the crawl, and how many of its URLs failed."""

    domain: str
    has_pages: int
    failed: int


class HostFault(NamedTuple):
    """Why a host is not whole: the word, and the first URL with it."""

    domain: str
    word: str
    url: str


def _word(status: int, note: str) -> str:
    words = [word for word in note.split(",") if word and not (status > 0 and word.partition(":")[0] == Reason.TLS)]
    return cause_among(words) or f"status {status}"


class FailedUrl(NamedTuple):
    """A page that did not come, or a resource that pages need."""

    url: str
    status: int
    note: str

    @property
    def word(self) -> str:
        """The word of crawl.log for why; the status where it has none."""
        return _word(self.status, self.note)


class MissingUrls(NamedTuple):
    """URLs of a host that are not in the archive, with what became of them; of resources, and of pages."""

    domain: str
    is_resource: int
    has_failed: int
    status: int
    note: str
    urls: int

    @property
    def word(self) -> str:
        """The word of crawl.log for why; the status where it has none."""
        return _word(self.status, self.note)


class HostNow(NamedTuple):
    """A host that a job asks: URLs that wait and are with wget, when one may be fetched, the last outcome."""

    domain: str
    waiting: int
    fetching: int
    ready: float | None
    status: int
    note: str

    @property
    def word(self) -> str:
        """The first word of crawl.log for the last outcome, else its status; empty before the first one."""
        return _word(self.status, self.note) if self.status else ""


class MetAnswer(NamedTuple):
    """An answer that said what the archive had: of a URL at a place. A duplicate is not the one that was compared."""

    arc: str
    url: str
    captured: str
    status: int
    is_duplicate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCapture:
    """A capture of a foreign file; the columns are explained in sql/imports/schema.sql.

    One without a `domain` is a record that is not taken; `note` says why.
    """

    source: int
    ordinal: int
    name: str
    url: str
    domain: str = ""
    time: int
    fraction: int = 0
    state: str
    status: int = 0
    note: str = ""
    batch: int = 0
    position: int = 0
    size: int = 0
    mime: str = ""
    digest: str = ""
    arc: str = ""
    target: str = ""
    content: str = ""
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """A capture in the order of time; `id` is its position in that order."""

    id: int
    source: int
    name: str
    url: str
    domain: str
    time: int
    state: str
    status: int
    note: str
    batch: int
    position: int
    size: int
    mime: str
    digest: str
    arc: str
    target: str
    content: str
    head: bytes
    crawl: int
    cut: int
    result: str


@dataclass(frozen=True, slots=True)
class PagePart:
    """What a browser showed of a page; sql/imports/schema.sql explains the columns. `id` is 0 before it has one."""

    id: int
    source: int
    ordinal: int
    name: str
    url: str
    time: int
    kind: str
    rank: int
    origin: str
    position: int
    digest: str
    title: str


@dataclass(frozen=True, slots=True)
class PageCapture:
    """A capture that is to be archived: its number in `found`, its crawl's name, its time in seconds, its content."""

    id: int
    name: str
    time: int
    content: str


@dataclass(frozen=True, slots=True)
class JobBody:
    """A body in a WARC of the job, with what its capture said of it."""

    batch: int
    position: int
    size: int
    status: int
    mime: str
    content: str


@dataclass(frozen=True, slots=True)
class StoredCrawl:
    """A crawl of an import: its number, the name of its captures, its first and its last time; whether it is done."""

    number: int
    name: str
    first: int
    last: int
    done: int


@dataclass(frozen=True, slots=True)
class StoredCut:
    """A snapshot of a host in a crawl of an import; `outcome` is JSON, empty until it is published."""

    crawl: int
    domain: str
    number: int
    begin: int
    time: int
    is_last: int
    outcome: str


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """What an import would publish of a host in a crawl."""

    crawl: int
    domain: str
    captures: int
    bytes: int
    cuts: int


@dataclass(frozen=True, slots=True)
class UntakenCount:
    """How many captures with a status and a word are in no snapshot, and the first of their URLs."""

    status: int
    note: str
    number: int
    first: str


# == facts ============================================================================================================


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Fact(Generic[Value]):
    """One fact, by its key; its values are JSON."""

    key: str


@dataclass(frozen=True, slots=True)
class FactAbout(Generic[Value]):
    """A fact that has one value per subject, a domain or a batch."""

    key: str

    def of(self, subject: str | int) -> Fact[Value]:
        """Return the fact about one subject."""
        return Fact(f"{self.key}:{subject}")


class CaptureEnd(TypedDict):
    """The end of fetching: whether it came to its end, and otherwise the reason; and the hosts that are not whole."""

    complete: bool
    reason: str
    hosts: NotRequired[dict[str, str]]  # absent where an older version fetched


class JobHold(TypedDict):
    """Why a job waits for an order, and since when, in seconds since the epoch."""

    why: str
    since: float


class PublishedDomain(TypedDict):
    """The publication of a domain, as in summary.json."""

    commit_tag: str
    complete: bool
    reason: str
    arcs: dict[str, int]
    redirects: NotRequired[dict[str, int]]  # absent where an older version began the job
    shared: NotRequired[bool]  # nothing changed: the commitTag is that of an earlier crawl


class FilterFailure(TypedDict):
    """The failures of a filter: the number of documents, the first URL, and its error."""

    documents: int
    first: str
    error: str


class FileRead(TypedDict):
    """The result of importing a WARC file: its number of records, what was lost, and what was skipped."""

    records: int
    losses: list[str]
    remarks: list[str]


class GroupingFact(TypedDict):
    """The options by which captures become crawls and snapshots."""

    crawls: str
    pause: int
    max_cuts: int


class CutOutcome(TypedDict):
    """What became of a snapshot of an import; `part` is None if there was nothing to publish.

    `known`: the archive had all of it before the import.
    """

    part: PublishedDomain | None
    known: bool
    seconds: dict[str, float]
    filter_errors: dict[str, FilterFailure]


#: The start of the job, in seconds since the epoch: crawl.job_folder.
BEGUN: Fact[float] = Fact("begun")
#: The end of fetching; absent until then: jobs.crawljob.
CAPTURED: Fact[CaptureEnd] = Fact("captured")
#: The number of the last order that the job took: crawl.job_orders.
ORDERS: Fact[int] = Fact("orders")
#: Why the job waits for an order; None if it does not: crawl.job_orders.
HELD: Fact[JobHold | None] = Fact("held")
#: The seconds for which the job was paused, over all pauses: crawl.job_orders.
HELD_SECONDS: Fact[float] = Fact("held_seconds")
#: The deadline that a person gave, in seconds since the epoch: crawl.job_orders.
DEADLINE: Fact[float] = Fact("deadline")
#: Hosts that a person had left out: crawl.job_orders.
LEFT_OUT: Fact[list[str]] = Fact("left_out")
#: Whether a person ended the fetching: crawl.job_orders.
STOPPED: Fact[bool] = Fact("stopped")
#: Whether a person discarded the job: crawl.job_orders.
DISCARDED: Fact[bool] = Fact("discarded")
#: The archive's counter when fetching began: pipeline.domain_run.
COUNTER: Fact[int] = Fact("counter")
#: Whether fetching had ended before the publishing process started: pipeline.domain_run.
WAITED: Fact[bool] = Fact("waited")
#: The hosts that redirects of start URLs led to: crawl.discovery.
HOSTS: Fact[list[str]] = Fact("hosts")
#: The domains whose servers were given up, as older versions noted them: crawl.disposition.
SERVERS_DOWN: Fact[list[str]] = Fact("down")
#: Domain → the words for why its server was given up: crawl.disposition.
GIVEN_UP: Fact[dict[str, str]] = Fact("given_up")


class RedirectCookies(TypedDict):
    """What stands for the cookies with which a redirect was requested; whether it came with others.

    `again`: how often it was requested again because they had changed.
    """

    sent: str
    sets: bool
    again: int


#: The cookies of a redirect, by its id: crawl.discovery.
COOKIES: FactAbout[RedirectCookies] = FactAbout("cookies")
#: Whether the policy of a host that asked for https is for its subdomains as well; None if it ended it: crawl.hsts.
HSTS: FactAbout[bool | None] = FactAbout("hsts")
#: Host → how many pages and how many further sitemaps its sitemaps listed: crawl.discovery.
LISTED: Fact[dict[str, tuple[int, int]]] = Fact("listed")
#: Pattern → how many pages of it in a row led to nothing new but each other: crawl.discovery.
PATTERNS: Fact[dict[str, int]] = Fact("patterns")
#: The page that had named a URL which a job asks for again, by the URL; empty without one: jobs.crawljob.
ASKED: FactAbout[str] = FactAbout("asked")
#: How many URLs the job asks for again, once they are in the frontier: jobs.crawljob.
ASKED_URLS: Fact[int] = Fact("asked_urls")
#: The hosts of which the crawl had pages that the job patches: jobs.crawljob.
PAGE_HOSTS: Fact[list[str]] = Fact("page_hosts")
#: URLs that a person had added, and that are not in the frontier yet: crawl.job_orders.
ADDED: Fact[list[str]] = Fact("added")
#: Host → the seconds between two requests to it that a person gave: crawl.job_orders.
WAITS: Fact[dict[str, float]] = Fact("waits")
#: Whether a run of the job showed secrets to servers; its publication may have none any more: crawl.loop.
SHOWED_SECRETS: Fact[bool] = Fact("showed_secrets")
#: The lines of the list of URLs that are no URLs, and how many there are, once the list was read: jobs.crawljob.
LIST_READ: Fact[tuple[list[str], int]] = Fact("list_read")


class WatchedFeed(TypedDict):
    """How many items a watched feed lists, and how many of them are new to the publication."""

    items: int
    new: int


#: How many items wait from earlier crawls, once they and the feed were added: jobs.crawljob.
WATCH_BEGUN: Fact[int] = Fact("watch_begun")
#: What the watched feed listed; absent until it was read: crawl.discovery.
WATCHED: Fact[WatchedFeed] = Fact("watched")
#: Filter → its failures: jobs.publishing.
FILTER_ERRORS: Fact[dict[str, FilterFailure]] = Fact("filter_errors")
#: Step → its seconds, over all processes of the job: reports.report.
SECONDS: Fact[dict[str, float]] = Fact("seconds")
#: Domains that only have resources, and of which the crawl needed none: jobs.publishing.
IDLE: Fact[list[str]] = Fact("idle")
#: The publication of a domain: reports.report.
PUBLISHED: FactAbout[PublishedDomain] = FactAbout("published")
#: The commitTag of the job on a domain: jobs.publishing.
TAG: FactAbout[str] = FactAbout("tag")
#: The SHA-256 of each file of an import, in order: the number of a file is its place in it: jobs.importjob.
SOURCES: Fact[list[str]] = Fact("sources")
#: Whether the user declared an import complete: jobs.importjob.
COMPLETE: Fact[bool] = Fact("complete")
#: Whether an import may remove most of a domain: jobs.importjob.
ACCEPT_SHRINK: Fact[bool] = Fact("accept_shrink")
#: The result of a file of an import, by its batch: jobs.importjob.
FILE_READ: FactAbout[FileRead] = FactAbout("file")
#: The options of an import by which captures become crawls and snapshots: jobs.importjob.
GROUPING: Fact[GroupingFact] = Fact("grouping")
#: The lines on versions that an import could not keep; absent until the import is planned: jobs.importjob.
PLANNED: Fact[list[str]] = Fact("planned")
#: The remarks on what browsers showed, of no page of the import; with PLANNED: jobs.importjob.
PLAN_REMARKS: Fact[list[str]] = Fact("plan_remarks")
#: Whether an import takes known files again: jobs.importjob.
AGAIN: Fact[bool] = Fact("again")
#: The URLs that a crawl of an import saw in its earlier snapshots, once it is filled: jobs.importjob.
FILLED: Fact[list[str]] = Fact("filled")


# == store ============================================================================================================


#: Version → the statements that add what the next one has: jobs of older versions are finished as they are.
_UPGRADES = {2: "frontier/upgrade_2", 3: "frontier/upgrade_3", 4: "frontier/upgrade_4"}
#: Keys of `Frontier.counts` that are not states.
NO_STATES = ("bytes", "documents")
_AT_ONCE = 1000
_Row = FoundUrl | UrlOutcome | FoundCapture | PagePart | StoredCrawl | StoredCut


class Frontier:
    """An open frontier.db. The end of each `with frontier.changes():` commits."""

    def __init__(self, path: Path) -> None:
        """Open or create it. Raises Damaged for another file or version, OSError on a full disk, else WebarcError."""
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level="IMMEDIATE")
            self._db = queries_of(self._connection)
            version = self._scalar("schema_version")
            if version == 0 and not self._db.table_names():
                self._db.executescript(sql("frontier/tune") + sql("frontier/schema"))
                version = self._scalar("schema_version")
            while version in _UPGRADES:
                self._db.executescript(sql(_UPGRADES[version]))
                version = self._scalar("schema_version")
            if version != (newest := version_of("frontier/schema")):
                raise Damaged(f"{path} is of version {version}, not {newest}; remove its job folder")
            self._db.executescript(sql("frontier/tune"))
        except sqlite3.OperationalError as error:
            if is_full(path.parent):  # SQLite says just "disk I/O error" in places
                raise OSError(errno.ENOSPC, f"{path}: {os.strerror(errno.ENOSPC)}") from None
            raise WebarcError(f"{path} cannot be opened now: {error}") from None
        except sqlite3.DatabaseError as error:
            raise _damaged(path, error) from None

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Commit all changes inside, or none. Raises OSError on a full disk, Damaged if SQLite reports corruption."""
        try:
            with self._connection:
                yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without its extended part
            if code == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, f"{self._path}: {error}") from None
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _damaged(self._path, error) from None
            raise

    def get(self, fact: Fact[Value]) -> Value | None:
        """Return a fact about the job; None if it was never set."""
        row = self._connection.execute(sql("frontier/get"), {"key": fact.key}).fetchone()
        return None if row is None else json.loads(row[0])

    def set(self, fact: Fact[Value], value: Value) -> None:
        """Set a fact about the job."""
        self._run("frontier/set", key=fact.key, value=json.dumps(value))

    # -- URLs ----------------------------------------------------------------------------------------------------

    def add(self, finds: Iterable[FoundUrl]) -> None:
        """Add found URLs, and as what they are named."""
        finds = iter(finds)
        while portion := list(islice(finds, _AT_ONCE)):  # a list of URLs may have a million
            self._many("frontier/add", portion)
            self.name(find for find in portion if find.named)

    def name(self, finds: Iterable[FoundUrl]) -> None:
        """Note as what URLs in the frontier are named; one that was read before is read again as that."""
        self._many("frontier/name", finds)

    def settle(self, outcomes: Iterable[UrlOutcome]) -> None:
        """Record the outcomes of attempts."""
        self._many("frontier/settle", outcomes)

    def waiting(self) -> dict[str, float]:
        """Return domain → when its first waiting URL may be fetched (seconds since 1970)."""
        return {row["domain"]: row["ready"] for row in self._query("frontier/waiting")}

    def served(self) -> dict[str, tuple[int, int]]:
        """Return domain → the number of its URLs in batches so far, and how many of them count as documents.

        Reads all rows.
        """
        return {row["domain"]: (row["urls"], row["documents"]) for row in self._query("frontier/served")}

    def next(self, domain: str, now: float, most: int) -> list[FrontierUrl]:
        """Return the next URLs of `domain` to fetch, at most `most`, nearest to the start URLs first."""
        return self._rows("frontier/next", domain=domain, now=now, most=most)

    def bound_waits(self, latest: float) -> None:
        """Limit all waits to `latest` (seconds since 1970): another process may have used another clock."""
        self._run("frontier/bound_waits", latest=latest)

    def take(self, rows: Iterable[FrontierUrl], batch: int, domain: str) -> None:
        """Begin a batch: add it, and mark its URLs as being fetched."""
        self._run("frontier/new_batch", id=batch, domain=domain)
        self._connection.executemany(sql("frontier/take"), [{"id": row.id, "batch": batch} for row in rows])

    def join(self, row: int, batch: int) -> None:
        """Take a waiting URL into a batch that has begun."""
        self._run("frontier/take", id=row, batch=batch)

    def begin_batch(self, batch: int, domain: str) -> None:
        """Begin a batch that has no URLs yet."""
        self._run("frontier/new_batch", id=batch, domain=domain)

    def last_batch(self) -> int:
        """Return the highest number of a batch; 0 without batches."""
        return int(self._scalar("frontier/last_batch"))

    def unread_batches(self) -> list[tuple[int, str]]:
        """Return number and domain of the batches whose WARC was not read to its end."""
        return [(row["id"], row["domain"]) for row in self._query("frontier/unread_batches")]

    def batch_read(self, batch: int) -> None:
        """Mark the WARC of a batch as read."""
        self._run("frontier/batch_read", id=batch)

    def fetching(self, batch: int) -> list[FrontierUrl]:
        """Return the URLs of a batch that have no outcome yet."""
        return self._rows("frontier/fetching", batch=batch)

    def annotate(self, row: int, note: str) -> None:
        """Add a word for crawl.log."""
        self._run("frontier/annotate", id=row, note=note)

    def expanded(self, pages: Iterable[tuple[int, int]]) -> None:
        """Record that the links of pages were added: pairs of the page's id and its depth then."""
        self._connection.executemany(sql("frontier/expanded"), [{"id": row, "depth": depth} for row, depth in pages])

    def to_expand(self) -> list[FrontierUrl]:
        """Return pages whose depth has decreased since their links were added."""
        return self._rows("frontier/to_expand")

    def refused_by_host(self, domain: str) -> list[FrontierUrl]:
        """Return the URLs of `domain` that the scope refused."""
        return self._rows("frontier/refused_by_host", domain=domain)

    def admit(self, row: int) -> None:
        """Accept a URL that was refused."""
        self._run("frontier/admit", id=row)

    def again(self, row: int) -> None:
        """Set a URL to be fetched again."""
        self._run("frontier/again", id=row)

    def give_up(self, status: int, note: str, domain: str = "") -> None:
        """Refuse all URLs still to be fetched (of one domain), with the given reason."""
        self._run("frontier/give_up", status=status, note=note, domain=domain)

    def refuse_sitemaps(self, domain: str, status: int, note: str) -> None:
        """Refuse all waiting sitemaps of a domain, with the given reason."""
        self._run("frontier/refuse_sitemaps", domain=domain, status=status, note=note)

    def is_page_host(self, domain: str) -> bool:
        """Return whether a page of a domain waits: something else than a resource of a page elsewhere."""
        return bool(self._scalar("frontier/is_page_host", domain=domain))

    def listed_arcs(self, domain: str) -> list[str]:
        """Return the ARCs of a domain's documents that the crawl knows by sitemaps alone."""
        return [row["arc"] for row in self._query("frontier/listed_arcs", domain=domain)]

    def by_url(self, url: str) -> FrontierUrl | None:
        """Return the row of a URL; None if it is unknown."""
        return next(iter(self._rows("frontier/by_url", url=url)), None)

    def redirected_to(self, row: int) -> FrontierUrl | None:
        """Return the target of a redirect; None if `row` is no redirect or its target is not in the frontier."""
        return next(iter(self._rows("frontier/redirected_to", id=row)), None)

    def end_of(self, row: FrontierUrl) -> FrontierUrl:
        """Return the last row of the redirects from `row`; `row` itself without redirects. A loop ends at a repeat."""
        visited = {row.id}
        while (target := self.redirected_to(row.id)) is not None and target.id not in visited:
            visited.add(target.id)
            row = target
        return row

    def referrers(self, rows: Sequence[FrontierUrl]) -> dict[int, str]:
        """Return the page that named each URL, by id; redirects between them are passed over.

        Start URLs and robots.txt have none.
        """
        ids = json.dumps([row.id for row in rows])
        found = self._query("frontier/referrers", ids=ids, longest=LONGEST_CHAIN)
        pages = {int(row["id"]): str(row["url"]) for row in found}
        if self.get(ASKED_URLS):
            for row in rows:
                if row.id not in pages and (page := self.get(ASKED.of(row.url))):
                    pages[row.id] = page
        return pages

    def hosts_named(self, page: int) -> dict[str, bool]:
        """Return the hosts of all that a page names, and whether the crawl took anything there."""
        return {str(row["domain"]): bool(row["is_taken"]) for row in self._query("frontier/hosts_named", id=page)}

    def queries(self, path: str) -> int:
        """Return the number of accepted URLs that consist of `path` and a query."""
        return int(self._scalar("frontier/queries", path=path))

    def page_domains(self) -> list[str]:
        """Return the domains with accepted pages other than those of the start URLs and of the watched feed."""
        return [row["domain"] for row in self._query("frontier/page_domains")]

    def resource_domains(self) -> list[str]:
        """Return the domains with accepted resources of pages other than those of the start URLs."""
        return [row["domain"] for row in self._query("frontier/resource_domains")]

    def resources_of(self, page: int) -> int:
        """Return the number of accepted resources that a page was the first to need."""
        return int(self._scalar("frontier/resources_of", page=page))

    def crawled_hosts(self) -> list[CrawledHost]:
        """Return the hosts from which the crawl fetched, or would have."""
        later = json.dumps([Status.ROBOTS, Status.CUT, Status.QUOTA, Status.LEFT_OUT])
        rows = self._connection.execute(sql("frontier/crawled_hosts"), {"later": later})
        known = frozenset(self.get(PAGE_HOSTS) or ())
        hosts = map(CrawledHost._make, rows)
        return [host._replace(has_pages=1) if host.domain in known else host for host in hosts]

    def hosts_now(self) -> list[HostNow]:
        """Return the hosts that the job asks, those with URLs that wait first. Reads all rows."""
        return list(map(HostNow._make, self._connection.execute(sql("frontier/hosts_now"))))

    def host_faults(self) -> list[HostFault]:
        """Return why hosts are not whole, as far as their URLs say it."""
        words = {
            "left_out": Reason.LEFT_OUT,
            "full": Reason.HOST_FULL,
            "robots_unavailable": Reason.ROBOTS_UNAVAILABLE,
            "unread": json.dumps([Reason.LINKS_UNREAD, *NOT_SHOWN]),
        }
        return list(map(HostFault._make, self._connection.execute(sql("frontier/host_faults"), words)))

    def missing(self) -> Iterator[MissingUrls]:
        """Yield what pages need and the archive does not have, and pages that did not come."""
        return map(MissingUrls._make, self._connection.execute(sql("frontier/missing")))

    def unwanted(self) -> Iterator[tuple[str, bool, int]]:
        """Yield (annotations, whether redirects led to them, pages) of what the crawl knew and did not ask for."""
        for note, is_redirect, urls in self._connection.execute(sql("frontier/unwanted")):
            yield note, bool(is_redirect), urls

    def failed_urls(self, most: int, *, is_resource: bool) -> Iterator[FailedUrl]:
        """Yield the first pages that did not come, or resources; those that a server does not have at the end."""
        bounds = {"most": most, "is_resource": is_resource}
        return map(FailedUrl._make, self._connection.execute(sql("frontier/failed_urls"), bounds))

    def unchecked(self) -> Iterator[tuple[str, str, int]]:
        """Yield (domain, annotations, documents) of what came under certificates that were not valid."""
        return iter(self._connection.execute(sql("frontier/unchecked")))

    def needing_browser(self) -> dict[str, int]:
        """Return host → how many of its pages show little until their scripts run, and are none for the browser."""
        word = {"needs_browser": Reason.NEEDS_BROWSER}
        return dict(self._connection.execute(sql("frontier/needing_browser"), word).fetchall())

    def failed_resources(self) -> Iterator[tuple[str, str]]:
        """Yield (domain, URL) of the resources of pages that did not come."""
        return iter(self._connection.execute(sql("frontier/failed_resources")))

    def seeds(self) -> Iterator[FrontierUrl]:
        """Yield the start URLs in their order, read in portions: there may be a million."""
        after = 0
        while rows := self._rows("frontier/seeds", after=after, most=_AT_ONCE):
            yield from rows
            after = rows[-1].id

    # -- pages that a browser shows ------------------------------------------------------------------------------

    def want_view(self, row: FrontierUrl) -> None:
        """Have a page shown by a browser, once."""
        self._run("frontier/want_view", id=row.id)

    def next_views(self, most: int) -> list[FrontierUrl]:
        """Return the next pages to be shown."""
        return self._rows("frontier/next_views", most=most)

    def open_views(self) -> int:
        """Return how many pages are to be shown, or are being shown."""
        return int(self._scalar("frontier/open_views"))

    def show(self, row: int, batch: int) -> None:
        """Mark a page as being shown, in a batch of its own."""
        self._run("frontier/show", id=row, batch=batch)

    def show_again(self, row: int, *, tried: bool, most: int, word: str) -> None:
        """Have a page shown once more, or let it fail with a word after `most` tries."""
        self._run("frontier/show_again", id=row, tried=int(tried), most=most, word=word)

    def return_views(self) -> None:
        """Have the pages shown once more that were being shown when the job was killed."""
        self._run("frontier/return_views")

    def shown(self, row: int, **values: Any) -> None:
        """Record what a page showed."""
        self._run("frontier/shown", id=row, **values)

    def view(self, row: int) -> PageView | None:
        """Return what is known of a page that a browser shows; None for any other."""
        return next((PageView(**record) for record in self._query("frontier/view", id=row)), None)

    def shown_pages(self) -> dict[str, int]:
        """Return how many pages a browser showed and could not show, and their requests; empty without any page."""
        return next((dict(record) for record in self._query("frontier/shown_pages")), {})

    def views(self) -> dict[str, int]:
        """Return how many pages are in which state (`ViewState`) that a browser is to show, shows or showed."""
        return {row["state"]: row["pages"] for row in self._query("frontier/views")}

    def shown_views(self) -> Iterator[ShownView]:
        """Yield the pages that a browser showed or could not show."""
        return (ShownView(**record) for record in self._query("frontier/shown_views"))

    def annotate_views(self, word: str) -> None:
        """Add a word for crawl.log to the pages that are to be shown."""
        self._run("frontier/annotate_views", word=word)

    def end_views(self, word: str) -> None:
        """Let no browser show the rest; the word says why."""
        self.annotate_views(word)
        self._run("frontier/end_views", word=word)

    def feed(self) -> FrontierUrl | None:
        """Return the feed that the publication watches; None where it watches none."""
        return next(iter(self._rows("frontier/feed")), None)

    def asked(self) -> Iterator[FrontierUrl]:
        """Yield the URLs that the job asks for again, in their order, read in portions."""
        after = 0
        while rows := self._rows("frontier/asked", after=after, most=_AT_ONCE):
            yield from rows
            after = rows[-1].id

    def counts(self) -> dict[str, int]:
        """Return state → number of URLs; also `bytes` of all responses, and `documents` fetched without robots.txt."""
        rows = list(self._query("frontier/counts"))
        sums = {name: sum(row[name] for row in rows) for name in NO_STATES}
        return {row["state"]: row["urls"] for row in rows} | sums

    def bytes_done(self) -> int:
        """Return the bytes of the whole responses that were not refused."""
        return sum(row["bytes"] for row in self._query("frontier/counts") if row["state"] == "done")

    def all(self) -> Iterator[tuple[FrontierUrl, str]]:
        """Yield every URL with the URL of the page it was found on, in the order in which they were found."""
        return self._with_referrer(self._query("frontier/all"))

    def ended_in_batch(self, batch: int) -> Iterator[tuple[FrontierUrl, str]]:
        """Yield the URLs of a batch that have an outcome, with the URL of the page each was found on."""
        return self._with_referrer(self._query("frontier/ended_in_batch", batch=batch))

    def refused_since(self, since: int) -> Iterator[tuple[FrontierUrl, str]]:
        """Yield the URLs found after the row `since` and refused at once, with the URL of the page of each."""
        return self._with_referrer(self._query("frontier/refused_since", since=since))

    def last_url(self) -> int:
        """Return the row of the URL that was found last; 0 without one."""
        return int(self._scalar("frontier/last_url"))

    def robots(self, url: str) -> tuple[int, bytes, float] | None:
        """Return status, body and time (seconds since 1970) of a robots.txt; None before the first response."""
        row = self._connection.execute(sql("frontier/robots"), {"url": url}).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]), float(row[2]))

    def set_robots(self, url: str, status: int, body: bytes, fetched: float) -> None:
        """Store the response to a request for robots.txt; `body` of a redirect is its target."""
        self._run("frontier/set_robots", url=url, status=status, body=body, fetched=fetched)

    # -- documents -----------------------------------------------------------------------------------------------

    def last_captured(self, domain: str) -> str:
        """Return the time of a domain's last response, formatted as `FrontierUrl.captured`; empty without one."""
        return str(self._scalar("frontier/last_captured", domain=domain) or "")

    def domains(self) -> list[str]:
        """Return the domains to which a request was made."""
        return [row["domain"] for row in self._query("frontier/domains")]

    def document_batches(self, domain: str) -> list[int]:
        """Return the batches that contain responses of a domain to be archived, in order."""
        return [row["batch"] for row in self._query("frontier/document_batches", domain=domain)]

    def documents(self, domain: str, batch: int) -> Iterator[FrontierUrl]:
        """Yield the responses of a batch to be archived, in portions, so that the caller may write meanwhile."""
        last = {"position": -1, "id": 0}
        while some := self._rows("frontier/documents", domain=domain, batch=batch, most=_AT_ONCE, **last):
            yield from some
            last = {"position": some[-1].position, "id": some[-1].id}

    def count_documents(self, domain: str) -> int:
        """Return the number of responses of a domain to be archived."""
        return int(self._scalar("frontier/count_documents", domain=domain))

    def rivals(self, domain: str) -> Iterator[FrontierUrl]:
        """Yield responses that share their ARC with another response, grouped by ARC."""
        return (FrontierUrl(**row) for row in self._query("frontier/rivals", domain=domain))

    def move(self, row: int, arc: str) -> None:
        """Record that the document of a URL has another ARC than the first name of its URL."""
        self._run("frontier/move", id=row, arc=arc)

    def results(self, results: Iterable[dict[str, Any]]) -> None:
        """Record the results of documents: dicts of id, result, nested, mime, note."""
        self._connection.executemany(sql("frontier/results"), results)

    def rest_unchanged(self, domain: str) -> None:
        """Set the result `unchanged` for all documents of a domain without a result, in one statement."""
        self._run("frontier/rest_unchanged", domain=domain)

    def unanswered(self, domain: str) -> Iterator[str]:
        """Yield URLs that the crawl saw and has no page of, except those with status 404 or 410: their ARCs stay."""
        return (row["url"] for row in self._query("frontier/unanswered", domain=domain))

    def redirects(self, domain: str) -> Iterator[tuple[int, str, int, str, str, str]]:
        """Yield row, URL, status, target, time, note of a domain's redirects that can be kept, in order of the rows."""
        return iter(self._connection.execute(sql("frontier/redirects"), {"domain": domain, "longest": LONGEST_TARGET}))

    def answered(self, domain: str) -> Iterator[str]:
        """Yield the URLs of a domain that have an answer other than a redirect."""
        return (url for (url,) in self._connection.execute(sql("frontier/answered"), {"domain": domain}))

    def has_captures(self, domain: str) -> bool:
        """Return whether the crawl has anything of a domain for the archive."""
        return bool(self._scalar("frontier/has_captures", domain=domain))

    def not_modified(self, domain: str) -> list[tuple[int, str, str]]:
        """Return (row, URL, ARC) of the documents that a server did not send again, since they did not change."""
        return list(self._connection.execute(sql("frontier/not_modified"), {"domain": domain}))

    def has_more(self, domain: str) -> bool:
        """Return whether the crawl has anything of a domain for the archive beside the feed that it watches."""
        return bool(self._scalar("frontier/has_more", domain=domain))

    def has_body(self, domain: str, arc: str) -> bool:
        """Return whether the crawl saw a document whose place is this ARC, and the archive has it."""
        return bool(self._scalar("frontier/has_body", domain=domain, arc=arc))

    def new_errors(self, domain: str) -> list[tuple[int, str, str, str]]:
        """(Row, URL, ARC, result) of error pages that are new in their ARCs; all at once, as notes change the rows."""
        return list(self._connection.execute(sql("frontier/new_errors"), {"domain": domain}))

    def clear_results(self, domain: str) -> None:
        """Clear the results of documents: the pipeline restarts on this domain."""
        self._run("frontier/clear_results", domain=domain)
        self._run("frontier/clear_held", domain=domain)

    def clear_moves(self, domain: str) -> None:
        """Give the documents of a domain the first names of their ARCs again."""
        self._run("frontier/clear_moves", domain=domain)

    def hold(self, domain: str, arcs: Iterable[str]) -> None:
        """Record ARCs that stay although the crawl fetched no page for them."""
        self._connection.executemany(sql("frontier/hold"), [{"domain": domain, "arc": arc} for arc in arcs])

    def seen(self, domain: str) -> Iterator[tuple[str, bool]]:
        """Yield (ARC, whether its folder contained folders) of all seen ARCs, children directly after their folder."""
        # Every ARC of a crawl passes here, changed or not: tuples, since dictionaries take twice as long.
        rows = self._connection.execute(sql("frontier/seen"), {"domain": domain})
        return ((arc, bool(nested)) for arc, nested in rows)

    def seen_names(self, domain: str) -> Iterator[str]:
        """Yield the same ARCs in the order of an index, unsorted; the order is stable enough for a digest."""
        return (arc for (arc,) in self._connection.execute(sql("frontier/seen_names"), {"domain": domain}))

    def met(self, domain: str) -> Iterator[MetAnswer]:
        """Yield the answers of a domain that its ARCs had already, by ARC, in the order of a tree."""
        return map(MetAnswer._make, self._connection.execute(sql("frontier/met"), {"domain": domain}))

    # -- imports -------------------------------------------------------------------------------------------------

    def add_settled(self, rows: Iterable[dict[str, Any]]) -> None:
        """Add URLs with their outcomes: dicts of the columns of sql/frontier/add_settled.sql."""
        self._connection.executemany(sql("frontier/add_settled"), rows)

    def rows_with_results(self) -> Iterator[dict[str, Any]]:
        """Yield id, result, note and MIME type of the URLs that have a result or a note."""
        return self._query("frontier/rows_with_results")

    # -- reports -------------------------------------------------------------------------------------------------

    def by_mime_type(self) -> dict[str, int]:
        """Return MIME type → number of documents."""
        return {row["mime"]: row["documents"] for row in self._query("frontier/by_mime_type")}

    def by_status(self) -> dict[str, int]:
        """Return status → number of URLs."""
        return {str(row["status"]): row["urls"] for row in self._query("frontier/by_status")}

    def by_result(self, domain: str) -> dict[str, int]:
        """Return result → number of documents of a domain."""
        return {row["result"]: row["urls"] for row in self._query("frontier/by_result", domain=domain)}

    @staticmethod
    def _with_referrer(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[FrontierUrl, str]]:
        for row in rows:
            referrer = row.pop("referrer")
            yield FrontierUrl(**row), referrer or ""

    def _query(self, statement: str, **values: Any) -> Iterator[dict[str, Any]]:
        return iter(self._db.query(sql(statement), values))

    def _rows(self, statement: str, **values: Any) -> list[FrontierUrl]:
        return [FrontierUrl(**row) for row in self._query(statement, **values)]

    def _run(self, statement: str, **values: Any) -> None:
        self._connection.execute(sql(statement), values)

    def _many(self, statement: str, records: Iterable[_Row]) -> None:
        rows = ({name: getattr(record, name) for name in record.__slots__} for record in records)
        self._connection.executemany(sql(statement), rows)

    def _scalar(self, statement: str, **values: Any) -> Any:
        return self._connection.execute(sql(statement), values).fetchone()[0]


def _damaged(path: Path, error: sqlite3.Error) -> Damaged:
    return Damaged(f"{path}: {error}; remove its job folder, the next crawl starts over")


# == import index ======================================================================================================


class ImportIndex(Frontier):
    """An open frontier.db of an import. Facts and transactions are those of every frontier."""

    def __init__(self, path: Path) -> None:
        """Open or create it. Raises what `Frontier` raises."""
        super().__init__(path)
        self._db.executescript(sql("imports/schema"))

    # -- reading -------------------------------------------------------------------------------------------------

    def add_found(self, capture: FoundCapture) -> None:
        """Add a capture as it is read."""
        self._many("imports/add_found", [capture])

    def add_body(self, keys: Iterable[str], body: JobBody) -> None:
        """Record a body under each of its keys: its digests, and its URL and time."""
        values = {name: getattr(body, name) for name in body.__slots__}
        self._connection.executemany(sql("imports/add_body"), [values | {"key": key} for key in keys])

    def body(self, key: str) -> JobBody | None:
        """Return the body with that key; None without one."""
        row = self._connection.execute(sql("imports/body"), {"key": key}).fetchone()
        return None if row is None else JobBody(*row)

    def add_revisit(self, **values: Any) -> None:
        """Store a revisit record until all files are read."""
        self._run("imports/add_revisit", **values)

    def add_waiting(self, revisits: Iterable[dict[str, Any]]) -> None:
        """Store the revisits that earlier imports could not resolve, unless the files have them themselves."""
        self._run("imports/index_revisits")
        self._connection.executemany(sql("imports/add_waiting"), revisits)
        self._run("imports/drop_waiting")

    def revisits(self) -> Iterator[dict[str, Any]]:
        """Return all revisit records, oldest first."""
        return self._query("imports/revisits")

    def unresolved(self, crawl: int) -> Iterator[dict[str, Any]]:
        """Yield the revisit records of a crawl that found nothing."""
        return self._query("imports/unresolved", crawl=crawl, note=Reason.REVISIT_UNRESOLVED)

    def has_capture(self, domain: str, url: str, time: int) -> bool:
        """Return whether the import has a capture of a URL of that time."""
        return bool(self._scalar("imports/has_capture", domain=domain, url=url, time=time))

    # -- what browsers showed ------------------------------------------------------------------------------------

    def add_part(self, part: PagePart) -> None:
        """Add a part as it is read."""
        self._many("imports/add_part", [part])

    def index_parts(self) -> None:
        """Create the indexes that the methods below need."""
        self._run("imports/index_parts")
        self._run("imports/index_found")

    def urls_of_lone_parts(self) -> list[str]:
        """Return the URLs of parts whose page has no capture that is to be archived."""
        return [url for (url,) in self._connection.execute(sql("imports/urls_of_lone_parts"))]

    def target_of(self, url: str) -> str:
        """Return where a capture of a URL redirects; empty if none does."""
        row = self._connection.execute(sql("imports/target_of"), {"url": url}).fetchone()
        return "" if row is None else str(row[0])

    def move_parts(self, url: str, target: str) -> None:
        """Give the parts of a URL to another one."""
        self._run("imports/move_parts", url=url, target=target)

    def parts(self) -> Iterator[PagePart]:
        """Yield all parts, those of a URL together and in order of time."""
        return (PagePart(*row) for row in self._connection.execute(sql("imports/parts")))

    def page_captures(self, url: str) -> list[PageCapture]:
        """Return the captures of a URL that are to be archived, in order of time."""
        return [PageCapture(*row) for row in self._connection.execute(sql("imports/page_captures"), {"url": url})]

    def show_version(self, url: str, name: str, content: str, new: str, word: str) -> None:
        """Give all captures of a version another content, and a word."""
        self._run("imports/show_version", url=url, name=name, content=content, new=new, word=word)

    def show_capture(self, capture: int, new: str, word: str) -> None:
        """Give a capture another content, and a word."""
        self._run("imports/show_capture", id=capture, new=new, word=word)

    def add_form(self, url: str, content: str, parts: Iterable[int]) -> None:
        """Record which parts the form of a version has, one of each kind."""
        rows = ({"url": url, "content": content, "part": part} for part in parts)
        self._connection.executemany(sql("imports/add_form"), rows)

    def parts_of(self, capture: int) -> list[PagePart]:
        """Return the parts of the form of a capture, by its number in the order of time."""
        rows = self._connection.execute(sql("imports/parts_of_capture"), {"capture": capture})
        return [PagePart(*row) for row in rows]

    # -- planning ------------------------------------------------------------------------------------------------

    def sort(self) -> None:
        """Put all captures that were read in order of time."""
        self._run("imports/sort")
        self._run("imports/clear_found")

    def times(self) -> Iterator[tuple[str, int, int]]:
        """Yield name, time and number of the captures, sorted by name and time."""
        return iter(self._connection.execute(sql("imports/times")))

    def add_crawls(self, crawls: Iterable[StoredCrawl]) -> None:
        """Add the crawls, and put each capture into its crawl."""
        self._many("imports/add_crawl", crawls)
        self._run("imports/place_in_crawls")

    def index_captures(self) -> None:
        """Create the indexes by crawl, host and URL, which the methods below need."""
        self._run("imports/index_urls")
        self._run("imports/index_cuts")

    def hosts(self, *, all_of_them: bool) -> list[tuple[str, int, int]]:
        """Return host, crawl and first capture of the hosts that have something for the archive, or of all hosts."""
        return list(self._connection.execute(sql("imports/hosts"), {"all": all_of_them}))

    def sightings(self, domain: str, *, gone: bool) -> Iterator[tuple[str, Iterator[tuple[int, int, str]]]]:
        """Yield each URL of a host with its captures: position, crawl, content.

        `gone`: also those that say that there is nothing any more.
        """
        rows = self._connection.execute(sql("imports/sightings"), {"domain": domain, "gone": gone})
        for url, group in groupby(rows, key=itemgetter(0)):
            yield url, ((position, crawl, content) for _, position, crawl, content in group)

    def add_cuts(self, cuts: Iterable[StoredCut]) -> None:
        """Add snapshots of hosts."""
        self._many("imports/add_cut", cuts)

    def place_in_cuts(self, dropped: Iterable[int], note: str) -> None:
        """Put each capture into a snapshot of its host; the dropped ones into none, with a word for crawl.log."""
        self._run("imports/place_in_cuts")
        self._connection.executemany(sql("imports/drop"), ({"id": position, "note": note} for position in dropped))
        self._run("imports/date_cuts")

    # -- publishing ----------------------------------------------------------------------------------------------

    def crawls(self) -> list[StoredCrawl]:
        """Return the crawls in order of time."""
        return [StoredCrawl(**row) for row in self._query("imports/crawls")]

    def cuts(self) -> list[StoredCut]:
        """Return the snapshots of hosts in the order in which they are published."""
        return [StoredCut(**row) for row in self._query("imports/cuts")]

    def ends_of_sources(self) -> dict[int, set[int]]:
        """Return the beginning of a snapshot → the numbers of the files that no later one has a capture of."""
        ends: dict[int, set[int]] = {}
        for source, begin in self._connection.execute(sql("imports/ends_of_sources")):
            ends.setdefault(begin, set()).add(source)
        return ends

    def sources_of(self, cut: StoredCut) -> list[int]:
        """Return the numbers of the files that a snapshot has captures of."""
        rows = self._connection.execute(sql("imports/sources_of_cut"), _of(cut))
        return [source for (source,) in rows]

    def captures_of(self, cut: StoredCut) -> Iterator[StoredCapture]:
        """Yield the captures of a snapshot, those of a URL together and in order of time."""
        return self._captures("imports/captures_of_cut", **_of(cut))

    def captures_of_host(self, cut: StoredCut) -> Iterator[StoredCapture]:
        """Yield the captures of all snapshots that its crawl has of its host, in the same order."""
        return self._captures("imports/captures_of_host", crawl=cut.crawl, domain=cut.domain)

    def set_results(self, cut: StoredCut, rows: Iterable[dict[str, Any]], outcome: str) -> None:
        """Record what became of a snapshot and its captures; `rows` have id, result, note and MIME type."""
        self._connection.executemany(sql("imports/set_result"), rows)
        self._run("imports/repeat_results", **_of(cut))
        self._run("imports/set_outcome", crawl=cut.crawl, domain=cut.domain, number=cut.number, outcome=outcome)

    def outcomes(self, crawl: int) -> list[str]:
        """Return the outcomes of a crawl's snapshots, by host and time."""
        return [row["outcome"] for row in self._query("imports/outcomes", crawl=crawl)]

    def is_published(self, crawl: int) -> bool:
        """Return whether all snapshots of a crawl have their outcome."""
        return not int(self._scalar("imports/left_in_crawl", crawl=crawl))

    def is_known(self, crawl: int) -> bool:
        """Return whether a crawl has snapshots, and the archive had each of them."""
        return not int(self._scalar("imports/news_of_crawl", crawl=crawl))

    def planned_hosts(self) -> list[PlannedHost]:
        """Return what the plan has of each host that is to be published, by crawl and host."""
        return [PlannedHost(**row) for row in self._query("imports/planned_hosts")]

    def untaken(self) -> list[UntakenCount]:
        """Return how many captures and records are in no snapshot, by status and word."""
        return [UntakenCount(**row) for row in self._query("imports/untaken")]

    def crawl_done(self, crawl: int) -> None:
        """Record that a crawl has its report."""
        self._run("imports/crawl_done", number=crawl)

    # -- reports -------------------------------------------------------------------------------------------------

    def counts(self, crawl: int = 0) -> dict[str, int]:
        """Return state → number of captures, of one crawl or of all; also `bytes` and `documents`."""
        rows = list(self._query("imports/counts", crawl=crawl))
        sums = {name: sum(row[name] for row in rows) for name in NO_STATES}
        return {row["state"]: row["urls"] for row in rows} | sums

    def by_status_of(self, crawl: int) -> dict[str, int]:
        """Return status → number of captures of a crawl."""
        return {str(row["status"]): row["urls"] for row in self._query("imports/by_status", crawl=crawl)}

    def by_mime_type_of(self, crawl: int) -> dict[str, int]:
        """Return MIME type → number of archived captures of a crawl."""
        return {row["mime"]: row["documents"] for row in self._query("imports/by_mime_type", crawl=crawl)}

    def log_of(self, crawl: int) -> Iterator[StoredCapture]:
        """Yield all captures and records of a crawl in order of time."""
        return self._captures("imports/log_of_crawl", crawl=crawl)

    def batches_of(self, crawl: int) -> list[int]:
        """Return the numbers of the WARCs in the job's folder that contain documents of a crawl."""
        rows = self._connection.execute(sql("imports/batches_of_crawl"), {"crawl": crawl})
        return [batch for (batch,) in rows]

    def _captures(self, statement: str, **values: Any) -> Iterator[StoredCapture]:
        return (StoredCapture(*row) for row in self._connection.execute(sql(statement), values))


def _of(cut: StoredCut) -> dict[str, Any]:
    return {"crawl": cut.crawl, "domain": cut.domain, "cut": cut.number}
