"""Applies the results of batches to the frontier, and adds the URLs found in them (/Cr-1.1/).

A failed page contributes the links of its archived version: without them, pages that only this page links to would
count as no longer linked, and their ARCs would be removed. A server that is never reached is given up.

What a browser showed of the archived version leads on as well (its DOM), where the page fails or no browser shows it
now. What its scripts asked for stands in no DOM. So a page that fails in a crawl by browser, and was shown before,
makes its host incomplete. A crawl by wget does not look for it, and warns.

Each host is judged for itself (`host_ends`): a server that is down, refuses or forbids its start URL makes its own host
incomplete, and nothing of the others. Hosts that only gave resources of pages are not judged.

The archived pages also give the conditions under which a server need not send them again.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from agent.crawl import frontier, watching, wget
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.discovery import Discovery
from agent.crawl.frontier import FoundUrl, Frontier, FrontierUrl, UrlOutcome
from agent.crawl.hsts import SecureOnly
from agent.crawl.job_folder import Job
from agent.crawl.politeness import BUSY, SERVER_BUSY, TRIES, in_a_row, is_given_up
from agent.crawl.scope import PRIVATE_ADDRESS, fetcher_of, may_show_pages
from agent.crawl.sitemaps import LONGEST_SITEMAP, MOST_LISTED, Listing, read_feed
from agent.crawl.vocabulary import (
    CERTIFICATE_FAULTS,
    GONE,
    NOT_SHOWN,
    SAME_METHOD,
    TEMPORARY_REDIRECT,
    WHOLE,
    LinkKind,
    Reason,
    Status,
    UrlState,
    ViewState,
)
from agent.crawl.watching import WatchedItems
from agent.crawl.wget import FetchResult
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Fetcher
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, arc_path, data_name, places, split
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import OK, format_time, now
from webarcfs.archive.system import clocks
from webarcfs.content import mimetype, outlinks, text
from webarcfs.content.outlinks import Link
from webarcfs.content.reference_table import LinkPurpose, NamedAs
from webarcfs.warc import http_response, request_key

_log = logging.getLogger(__name__)

# == archived pages ===================================================================================================


#: Response field → the request field that makes a request conditional on it (RFC 9110 section 13.1).
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
#: Values that are sent back: an entity tag or a date, which a server may have made up.
_VALUE = re.compile(r"[ !#-~\x22]{1,200}", re.ASCII)
_LARGEST_HEAD = 1 << 16
#: Repositories that stay open.
_REPOSITORIES = 16
#: Domains of which is kept in memory whether they have what browsers showed.
_MOST_DOMAINS = 10_000


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page in the newest state of its domain: git's ids of its body and head, its MIME type, status and role.

    `rendered` is git's id of what a browser showed of it; empty without that.
    """

    url: str
    body: str
    head: str
    mime_type: str
    status: int
    is_resource: bool
    rendered: str


@dataclass(frozen=True, slots=True)
class _Content:
    """What of an archived page leads on: its body, and its field Refresh."""

    body: bytes
    mime_type: str
    charset: str
    refresh: str


class ArchivedPages:
    """Reads pages from the newest states of an archive's domains. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._open = lru_cache(_REPOSITORIES)(lambda domain: Repository(archive.repository(domain)))
        self._has_forms = lru_cache(_MOST_DOMAINS)(self._look_for_forms)

    def links(self, url: str, named: str = "") -> list[outlinks.Link]:
        """Return the links of the page at `url`, which another one named so; none if it is missing or unreadable."""
        return list(self.page_links(url, named).links)

    def page_links(self, url: str, named: str = "") -> outlinks.PageLinks:
        """Return the same, and whether the page needs a browser."""
        content = self._content(url, named)
        if content is None:
            return outlinks.PageLinks()
        found = outlinks.find(content.body, url, content.mime_type, content.charset)
        return found._replace(links=(*found.links, *outlinks.field_link(url, content.refresh)))

    def shown_links(self, url: str) -> list[Link] | None:
        """Return the links of the DOM that a browser showed of the page at `url`; None if none showed it."""
        try:
            page = self._page(url) if self._has_forms(split(arc_path(url))[0]) else None
            if page is None or not page.rendered:
                return None
            html = rendered_forms.read_html(self._store(url), page.rendered)
        except WebarcError:
            return None
        return outlinks.links_of(html[: outlinks.LONGEST_BODY], url, "text/html", "utf-8")

    def forward(self, url: str) -> str:
        """Return where the page at `url` goes on by itself within seconds; empty if it does not, or cannot be read."""
        content = self._content(url)
        if content is None:
            return ""
        return outlinks.forward_of(url, content.refresh, content.body, content.mime_type, content.charset)

    def _content(self, url: str, named: str = "") -> _Content | None:
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or store.size(page.body) > outlinks.LONGEST_BODY:
                return None
            body = store.read(page.body)
            head = _head_of(store, page)
        except WebarcError:
            return None  # not archived yet, or damaged: `verify` reports damage, a crawl continues
        sent = "" if head is None else head.content_type
        charset = text.decode_charset(body[: mimetype.SAMPLE], sent)
        nosniff = head is not None and head.forbids_sniffing
        kind = outlinks.read_as(page.mime_type, mimetype.declared_type(sent), NamedAs(named), nosniff=nosniff)
        return _Content(body, kind, charset, "" if head is None else head.get("refresh"))

    def feed(self, url: str, most: int) -> tuple[Listing, int] | None:
        """Return what the feed at `url` lists, and how many items have no page; None if it cannot be read as one."""
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or store.size(page.body) > LONGEST_SITEMAP:
                return None
            head = _head_of(store, page)
            sent = "" if head is None else head.content_type
            listing, unlinked = read_feed([store.read(page.body)], url, most or MOST_LISTED, sent)
        except WebarcError:
            return None
        return (listing, unlinked) if listing.is_sitemap else None

    def mime_type(self, url: str) -> str | None:
        """Return the MIME type of the page that was stored for this very URL; None if there is none."""
        try:
            page = self._page(url)
        except WebarcError:
            return None
        return page.mime_type if page is not None and page.url == url and page.status == OK else None

    def conditions(self, url: str, *, as_page: bool = True) -> Mapping[str, str]:
        """Return request fields for `url` by which a server sends the page only if it is not the archived one.

        Empty if the page must be requested in full: it was not stored for this very URL, is an error page, or came
        without an entity tag and a date. The same holds for what becomes a page (`as_page`) and was a resource.
        """
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or page.url != url or page.status != OK or (as_page and page.is_resource):
                return {}
            head = _head_of(store, page)
        except WebarcError:
            return {}
        if head is None or head.status != OK:
            return {}
        values = {asked: head.get(sent) for sent, asked in _CONDITIONS.items()}
        return {asked: value for asked, value in values.items() if _VALUE.fullmatch(value)}

    def _look_for_forms(self, domain: str) -> bool:
        """Return whether a domain has what browsers showed; one without a repository is not looked for again."""
        try:
            return self._open(domain).ref(rendered_forms.REF) is not None
        except WebarcError:
            return False

    def _store(self, url: str) -> Repository:
        store: Repository = self._open(split(arc_path(url))[0])
        return store

    def _page(self, url: str) -> ArchivedPage | None:
        store = self._store(url)
        head = store.head()
        if head is None:
            return None
        names = (data_name(url), HEADERS, DATA_XML)
        for arc in places(url):
            body, answer, xml = (store.find(head.tree, f"{arc}/{name}") for name in names)
            if body is not None and answer is not None and xml is not None:
                meta = data_xml.metadata(store.read(xml.oid))
                return ArchivedPage(
                    meta.url, body.oid, answer.oid, meta.mime_type, meta.status, meta.is_resource, meta.rendered
                )
        return None


def _head_of(store: Repository, page: ArchivedPage) -> http_response.Head | None:
    """Return the status line and fields of an archived page; None if they are too many, or none."""
    return http_response.parse_head(store.read(page.head)) if store.size(page.head) <= _LARGEST_HEAD else None


# == disposition ======================================================================================================


#: URLs of a server that are settled in one statement.
_AT_ONCE = 1000
#: Statuses from here on are no page: redirects that end nowhere, errors.
_NO_PAGE = 300
_UNREACHED = frozenset({Status.DNS, Status.CONNECT_FAILED})
#: Reason of a capture that ended early because the crawl took longer than `max_duration`.
OVER_TIME = Reason.OVER_TIME
#: Reason of a capture that ended early because the next document would have exceeded `max_total_size`.
OVER_SIZE = Reason.OVER_SIZE


@dataclass(frozen=True, slots=True)
class Captured:
    """The end of a capture: whether it came to its end, and otherwise the reason, which holds for all hosts.

    `hosts` has the hosts that are incomplete though it did, each with its reason.
    """

    complete: bool
    reason: str = ""
    hosts: Mapping[str, str] = field(default_factory=dict)

    def is_complete(self, domain: str) -> bool:
        """Return whether all URLs in scope of a host were fetched."""
        return self.complete and domain not in self.hosts


#: Why a host is incomplete, as people read it, by the word of its URLs.
_HOST_REASONS: Mapping[str, str] = {
    Reason.LEFT_OUT: "left out",
    Reason.HOST_FULL: Reason.HOST_FULL,
    Reason.ROBOTS_UNAVAILABLE: "robots.txt not available",
    Reason.LINKS_UNREAD: "links not read",
}
#: Hosts that a line names; the report has them all.
_MOST_NAMED = 10


def host_ends(
    job_frontier: Frontier, ends: Iterable[tuple[FrontierUrl, FrontierUrl]], *, accept_shrink: bool = False
) -> dict[str, str]:
    """Return host → why it is incomplete, once nothing is left to fetch.

    `ends` has the start URLs with the last URL of their redirects. Resources of pages make no host incomplete.
    `accept_shrink`: a person said that what is gone is gone, also where nothing else is left of a host.
    """
    hosts: dict[str, str] = {}
    for domain, why in (job_frontier.get(frontier.GIVEN_UP) or {}).items():
        what = "certificate not valid" if why and set(why.split(",")) <= set(CERTIFICATE_FAULTS) else "server down"
        hosts[domain] = f"{what}: {why}" if why else what
    for domain in job_frontier.get(frontier.SERVERS_DOWN) or ():
        hosts.setdefault(domain, "server down")
    for fault in job_frontier.host_faults():
        text = _HOST_REASONS.get(fault.word, "not shown to its end by a browser")
        is_of_page = fault.word == Reason.LINKS_UNREAD or fault.word in NOT_SHOWN
        hosts.setdefault(fault.domain, f"{text}: {fault.url}" if is_of_page else text)
    for seed, end in ends:
        if why := _fault_of_start(job_frontier, seed, end, accept_shrink=accept_shrink):
            hosts.setdefault(seed.domain, why)
            hosts.setdefault(end.domain, why)
    with_pages = {host.domain for host in job_frontier.crawled_hosts() if host.has_pages}
    return {domain: hosts[domain] for domain in sorted(hosts.keys() & with_pages)}


def lines_on_hosts(hosts: Mapping[str, str]) -> list[str]:
    """Return a line for each reason why hosts are incomplete, with the hosts; URLs are left to the report."""
    by_reason: dict[str, list[str]] = {}
    for domain, why in hosts.items():
        what, _, word = why.partition(": ")
        by_reason.setdefault(f"{what} ({word})" if word and "://" not in word else what, []).append(domain)
    return [f"{why}: {named(domains)}" for why, domains in by_reason.items()]


def named(domains: Sequence[str]) -> str:
    """Return the first of these hosts, and how many more there are."""
    more = len(domains) - _MOST_NAMED
    return ", ".join(domains[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _fault_of_start(job_frontier: Frontier, seed: FrontierUrl, end: FrontierUrl, *, accept_shrink: bool) -> str:
    """Return why a start URL makes its host incomplete; empty if it does not.

    A start URL that is gone (404, 410) is one page less, as any page; it counts only where the host gave nothing else.
    One that a setting refuses was not wanted.
    """
    if end.state == UrlState.FAILED or PRIVATE_ADDRESS.reason in end.note.split(","):
        return f"start URL failed: {seed.url}"
    if end.status == Status.ROBOTS:
        return f"start URL forbidden by robots.txt: {seed.url}"
    if end.state != UrlState.DONE or end.arc or end.status < _NO_PAGE:
        return ""
    if end.status in GONE and (accept_shrink or job_frontier.has_captures(end.domain)):
        return ""
    return f"start URL gave {end.status}: {seed.url}"


#: Pages that a browser may show, by the type that their server declares.
_SHOWN_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class _ArchivedLead:
    """Whether the archived version of a page needs a browser, and whether one showed it."""

    needs_browser: bool
    was_shown: bool


class Disposition:
    """Writes the results of a job into its frontier, and tracks which servers fail."""

    def __init__(self, job: Job, archived: ArchivedPages, jars: CookieJars | None = None) -> None:
        self._folder = job.folder
        self._accept_shrink = job.accept_shrink
        self._frontier = job.frontier
        self._watched = WatchedItems(job.archive, job.publication.name) if job.publication.watch else None
        is_settled = self._watched.is_settled if self._watched is not None else lambda _: False
        self._discovery = Discovery(job.frontier, job.publication, job.profile, jars, is_settled)
        self._most_items = job.settings.max_sitemap_urls
        self._archived = archived
        self._publication = job.publication
        self._may_show = may_show_pages(job.publication)
        self._is_warned = False
        self._secure = SecureOnly(job.frontier)
        self._settled: list[UrlOutcome] = []
        self._unreached: dict[str, int] = {}
        self._busy: dict[str, int] = {}
        self._most = job.settings.max_total_size
        self._bytes = job.frontier.bytes_done() if self._most else 0
        self.is_full = False
        self._given_up: dict[str, str] = job.frontier.get(frontier.GIVEN_UP) or {}

    @property
    def room(self) -> int | None:
        """The number of bytes that the crawl may still keep (`max_total_size`); None without a limit."""
        return max(self._most - self._bytes, 0) if self._most else None

    def take_in(self, domain: str, results: Iterable[FetchResult]) -> int:
        """Apply the results of a batch of one server; return how many of its documents wait once more.

        The caller wraps the call in one transaction.
        """
        settled, again = [], 0
        for answer in results:
            settled.append(self._one(answer))
            again += settled[-1].state == UrlState.WAITING and answer.row.kind != LinkKind.ROBOTS
        self._flush()
        if domain:
            self._judge_server(domain, settled)
        self._expand()
        self._discovery.forget_if_large()
        return again

    # -- pages that a browser shows ------------------------------------------------------------------------------

    def accepts_host(self, domain: str) -> bool:
        """Return whether pages of a host belong to the crawl."""
        return self._discovery.accepts_host(domain)

    def judge_requisite(self, page: FrontierUrl, url: str) -> FoundUrl:
        """Return what a URL that a page's scripts ask for is to the crawl."""
        return self._discovery.judged(url, LinkKind.REQUISITE, page.depth, page)

    def add_requisite(self, page: FrontierUrl, url: str, note: str) -> FrontierUrl | None:
        """Add a URL that a page's scripts ask for, with annotations if it waits; return its row."""
        found = self.judge_requisite(page, url)
        if note and found.state == UrlState.WAITING:
            found = replace(found, note=note)
        self._frontier.add([found])
        self._discovery.flush()
        return self._frontier.by_url(url)

    def shown(self, row: FrontierUrl, links: Sequence[Link], forward: str) -> None:
        """Add what a page leads to that a browser has shown. The caller wraps it in one transaction."""
        self._discovery.links(row, links)
        if forward and row.is_start:
            self._go_on(row, forward)
        elif forward:
            self._discovery.links(row, [Link(forward, LinkPurpose.LINK, NamedAs.NOTHING)])
        self._flush()
        self._expand()

    def _wants_view(self, row: FrontierUrl, settled: UrlOutcome) -> bool:
        """Return whether a browser is to show a page."""
        if not self._may_show or not wget.is_page(row) or settled.mime not in _SHOWN_TYPES:
            return False
        if settled.state != UrlState.DONE or not settled.arc or settled.status not in WHOLE or not settled.position:
            return False
        fetcher = fetcher_of(self._publication, row.url)
        is_needed = fetcher is Fetcher.AUTO and Reason.NEEDS_BROWSER in settled.note.split(",")
        return fetcher is Fetcher.BROWSER or is_needed

    def secure(self, rows: list[FrontierUrl]) -> list[FrontierUrl]:
        """Redirect those of these URLs to https whose hosts asked for that; return them."""
        secured = [
            (row, target) for row in rows if row.kind != LinkKind.ROBOTS and (target := self._secure.target(row.url))
        ]
        for row, target in secured:
            outcome = UrlOutcome(
                id=row.id,
                state=UrlState.DONE,
                status=TEMPORARY_REDIRECT,
                tried=0,
                note=Reason.HSTS,
                captured=format_time(now()),
                target=target,
            )
            self._settled.append(outcome)
            self._flush()
            self._discovery.redirect(row, target)
        return [row for row, _ in secured]

    def fail(self, settled: UrlOutcome, row: FrontierUrl) -> None:
        """Settle a page that failed finally or is disallowed, and add the links of its archived version.

        Otherwise the crawl would not find the pages that only this page links to.
        """
        self._fail(settled, row)
        self._flush()

    def _fail(self, settled: UrlOutcome, row: FrontierUrl) -> None:
        self._settled.append(settled)
        # Leaving a sitemap removes nothing, and the items of a feed that does not come wait for the next crawl.
        if row.kind in (LinkKind.ROBOTS, LinkKind.SITEMAP, LinkKind.FEED):
            return
        archived = self._lead_on_as_archived(row)
        is_unknown = settled.state == UrlState.FAILED and settled.status != Status.ROBOTS_UNREACHABLE
        if archived.was_shown and is_unknown and self._may_show and not row.embedded:
            self._flush()
            self._frontier.annotate(row.id, Reason.BROWSER_BEFORE)

    def _flush(self) -> None:
        self._frontier.settle(self._settled)
        self._settled = []
        self._discovery.flush()

    def add(self, urls: Iterable[str]) -> None:
        """Add URLs that a person names. The caller wraps it in one transaction."""
        self._discovery.add_by_hand(urls)

    def is_doubtful(self, domain: str) -> bool:
        """Return whether the last batch could not reach the server."""
        return domain in self._unreached

    def verdict(self) -> Captured:
        """Return the end of the capture once nothing is left to fetch."""
        seeds, why = self._frontier.seeds(), ""
        if self._watched is not None:
            seeds = filter(watching.is_wanted, seeds)
            domain, why = watching.fault_of_feed(self._frontier)
        ends = ((seed, self._frontier.end_of(seed)) for seed in seeds)
        hosts = host_ends(self._frontier, ends, accept_shrink=self._accept_shrink)
        return Captured(True, hosts=hosts | ({domain: why} if why else {}))

    def close(self) -> None:
        """Close what it has open."""
        if self._watched is not None:
            self._watched.close()

    def is_opened(self, domain: str) -> bool:
        """Return whether a host may be at a private address since a start URL is at one."""
        return self._discovery.is_opened(domain)

    def _one(self, answer: FetchResult) -> UrlOutcome:
        answer = self._held(answer)
        row, settled = answer.row, self._fitting(answer.settled)
        if answer.hsts:
            self._secure.learn(row.url, answer.hsts)
        if settled.note == OVER_SIZE:
            self._settled.append(settled)
            return settled
        settled = self._with_session(answer, settled)
        if settled.state in (UrlState.FAILED, UrlState.REFUSED):
            self._fail(settled, row)
        else:
            self._settled.append(settled)
        if settled.state == UrlState.WAITING:
            return settled
        if row.kind == LinkKind.ROBOTS:
            self._take_robots(answer, settled)
        elif settled.note == Reason.NO_SITEMAP:
            self._flush()
            self._discovery.page_after_all(row)
        elif answer.lists and row.kind == LinkKind.SITEMAP:
            self._flush()  # `listed` annotates the sitemap
            self._discovery.listed(row, answer.links)
        elif answer.target:
            self._follow(answer, settled)
        elif row.kind == LinkKind.FEED:
            if answer.lists:
                self._discovery.items(link.url for link in answer.links)
        else:
            self._take_page(answer, settled)
        return settled

    def _follow(self, answer: FetchResult, settled: UrlOutcome) -> None:
        """Add the target of a redirect. That of a POST may be a POST again, which its page asks for: no document."""
        row = answer.row
        if settled.status not in SAME_METHOD or request_key.parts_of(row.url) is None:
            self._flush()  # `redirect` reads the frontier
            self._discovery.redirect(row, answer.target, sets_cookie=answer.sets_cookie)

    def _with_session(self, answer: FetchResult, settled: UrlOutcome) -> UrlOutcome:
        """Return the outcome; a page that leads to itself with a session id is asked for with that, once."""
        row, target = answer.row, answer.target or answer.forward
        if settled.state != UrlState.DONE or not target or row.target or row.kind == LinkKind.ROBOTS:
            return settled
        if not self._discovery.is_itself(row, target):
            return settled
        self._discovery.note_cookies(row, sets_cookie=answer.sets_cookie)
        return UrlOutcome(
            id=row.id, state=UrlState.WAITING, status=settled.status, tried=0, note=row.note, target=target
        )

    def _take_robots(self, answer: FetchResult, settled: UrlOutcome) -> None:
        status = settled.status if settled.state == UrlState.DONE else settled.status or Status.ROBOTS_UNREACHABLE
        body = answer.target.encode() or answer.robots
        self._frontier.set_robots(answer.row.url, status, body, clocks.steady())
        self._flush()  # both read the frontier
        if answer.target:
            self._discovery.return_to_robots(answer.row, sets_cookie=answer.sets_cookie)
        else:
            self._discovery.sitemaps_of(answer.row.url, status, body)

    def _take_page(self, answer: FetchResult, settled: UrlOutcome) -> None:
        """Add the links of a page; those of the archived one if it did not change."""
        if settled.note == Reason.NOT_MODIFIED:
            archived = self._lead_on_as_archived(answer.row)
            if archived.was_shown:
                self._warn_of_scripts(answer.row)
            if archived.needs_browser and wget.is_page(answer.row):
                self._flush()
                self._frontier.annotate(answer.row.id, Reason.NEEDS_BROWSER)
        else:
            self._discovery.links(answer.row, answer.links)
            self._go_on(answer.row, answer.forward)
        if self._wants_view(answer.row, settled):
            self._frontier.want_view(answer.row)
        elif settled.status in WHOLE and not answer.row.embedded and settled.mime in _SHOWN_TYPES:
            self._lead_on_as_shown(answer.row)

    def _lead_on_as_archived(self, row: FrontierUrl) -> _ArchivedLead:
        """Add what the archived version of a page leads to, and what a browser showed of it; return what that is."""
        archived = self._archived.page_links(row.url, row.named)
        shown = self._archived.shown_links(row.url)
        self._discovery.links(row, (*archived.links, *(shown or ())))
        self._go_on(row, self._archived.forward(row.url) if row.is_start else "")
        return _ArchivedLead(archived.needs_browser, shown is not None)

    def _lead_on_as_shown(self, row: FrontierUrl) -> None:
        """Add what a browser showed of the archived version of a page that no browser shows now."""
        shown = self._archived.shown_links(row.url)
        if shown is not None:
            self._discovery.links(row, shown)
            self._warn_of_scripts(row)

    def _warn_of_scripts(self, row: FrontierUrl) -> None:
        if not self._may_show and not self._is_warned:
            self._is_warned = True
            _log.warning(
                "a browser showed %s before, and `fetcher` lets none show it now: the links that it showed then are "
                "followed; what scripts alone asked for is not, and leaves the newest snapshot",
                row.url,
            )

    def _go_on(self, row: FrontierUrl, target: str) -> None:
        """Add the target of a page that goes on by itself, as that of a redirect; nothing without a target."""
        if target and not self._discovery.is_itself(row, target):
            self._flush()
            self._discovery.redirect(row, target)

    def _held(self, answer: FetchResult) -> FetchResult:
        """Return the result; a page that did not change and that the archive no longer has waits once more.

        The watched feed that did not change lists what the archived one lists.
        """
        row, settled = answer.row, answer.settled
        if settled.note != Reason.NOT_MODIFIED:
            return answer
        mime = self._archived.mime_type(row.url)
        archived = self._archived.feed(row.url, self._most_items) if row.kind == LinkKind.FEED else None
        if mime is None or (row.kind == LinkKind.FEED and archived is None):
            state = UrlState.FAILED if row.note == Reason.ASKED_AGAIN else UrlState.WAITING
            waits = UrlOutcome(id=row.id, state=state, status=settled.status, note=Reason.ASKED_AGAIN)
            return replace(answer, settled=waits)
        if archived is None:
            return replace(answer, settled=replace(settled, mime=mime))
        listing, unlinked = archived
        note = ",".join([settled.note, *wget.feed_words(listing, unlinked)])
        links = tuple([Link(url, LinkPurpose.LINK) for url in listing.pages])
        return replace(answer, settled=replace(settled, mime=mime, note=note), links=links, lists=True)

    def _fitting(self, settled: UrlOutcome) -> UrlOutcome:
        """Return the outcome unchanged if its bytes fit into `max_total_size`, else refused: the limit is exact."""
        if not self._most:
            return settled
        if settled.state == UrlState.DONE and self._bytes + settled.size > self._most:
            settled = replace(
                settled, state=UrlState.REFUSED, status=int(Status.QUOTA), note=OVER_SIZE, arc="", target=""
            )
        if settled.state == UrlState.DONE:
            self._bytes += settled.size
        self.is_full = self.is_full or settled.note == OVER_SIZE
        return settled

    def _judge_server(self, domain: str, settled: list[UrlOutcome]) -> None:
        """Count consecutive batches in which the server was not reached, and consecutive requests for a pause.

        At the limit (`TRIES`, `is_given_up`) the server is given up; its remaining pages are not requested.
        """
        tried = [outcome for outcome in settled if outcome.tried]
        if tried and all(outcome.status in _UNREACHED for outcome in tried):
            self._unreached[domain] = self._unreached.get(domain, 0) + 1
            if self._unreached[domain] >= TRIES:
                self._give_up(domain, tried[-1].status, f"{Reason.SERVER_DOWN},{tried[-1].note}")
        else:
            self._unreached.pop(domain, None)
        if tried:
            asking = sum(outcome.note == BUSY for outcome in tried)
            self._busy[domain] = in_a_row(self._busy.get(domain, 0), asking, len(tried))
            if is_given_up(self._busy[domain]):
                self._give_up(domain, tried[-1].status, SERVER_BUSY)

    def _give_up(self, domain: str, status: int, note: str) -> None:
        self._given_up[domain] = note.removeprefix(f"{Reason.SERVER_DOWN},")
        self._frontier.set(frontier.GIVEN_UP, self._given_up)
        self.drop(domain, UrlState.FAILED, status, note)

    def keep_out(self, domain: str) -> None:
        """Fail all waiting URLs of a domain that is at a private address."""
        self.drop(domain, UrlState.FAILED, int(PRIVATE_ADDRESS.status), PRIVATE_ADDRESS.reason)

    def drop(self, domain: str, state: UrlState, status: int, note: str) -> None:
        """Settle all waiting URLs of a domain, which are not fetched any more.

        The links of their archived versions are added: other hosts are judged for themselves, and lose nothing by what
        this one did not say. A robots.txt of another server that redirects there is unknown.
        """
        while rows := self._frontier.next(domain, math.inf, _AT_ONCE):
            for row in rows:
                self._fail(UrlOutcome(id=row.id, state=state, status=status, tried=0, note=note), row)
                if row.kind == LinkKind.ROBOTS:
                    self._frontier.set_robots(row.url, status, b"", clocks.steady())
            self._flush()

    def _expand(self) -> None:
        """Add the links of pages whose depth has decreased: these links may now be within the depth limit."""
        while nearer := self._frontier.to_expand():  # a page that comes nearer brings others nearer
            for row in nearer:
                warc = wget.BatchFiles(self._folder, row.batch).warc
                self._discovery.links(row, wget.links_at(warc, row.position, row) if row.position else ())
                self._discovery.links(row, self._links_shown(row))
            self._discovery.flush()

    def _links_shown(self, row: FrontierUrl) -> Sequence[Link]:
        """Return the links of what a browser showed of a page; none without that."""
        view = self._frontier.view(row.id) if self._may_show else None
        if view is None or view.state != ViewState.DONE or view.html_at < 0:
            return ()
        with wget.BatchFiles(self._folder, view.batch).warc.open("rb") as file:
            file.seek(view.html_at)
            html = file.read(min(view.html_size, outlinks.LONGEST_BODY))
        return outlinks.links_of(html, row.url, "text/html", "utf-8")
