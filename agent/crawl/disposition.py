"""Applies the results of batches to the frontier, and adds the URLs found in them (/Cr-1.1/).

A failed page contributes the links of its archived version: without them, pages that only this page links to would
count as no longer linked, and their ARCs would be removed. A server that is never reached is given up. Both make the
crawl incomplete. The scope decides which URLs enter.

The archived pages also give the conditions under which a server need not send them again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from agent.crawl import frontier, wget
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.discovery import Discovery
from agent.crawl.frontier import FrontierUrl, UrlOutcome
from agent.crawl.hsts import SecureOnly
from agent.crawl.job_folder import Job
from agent.crawl.politeness import BUSY, SERVER_BUSY, TRIES, in_a_row, is_given_up
from agent.crawl.scope import PRIVATE_ADDRESS
from agent.crawl.vocabulary import TEMPORARY_REDIRECT, LinkKind, Reason, Status, UrlState
from agent.crawl.wget import FetchResult
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, arc_path, data_name, places, split
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import OK, format_time, now
from webarcfs.archive.system import clocks
from webarcfs.content import mimetype, outlinks, text
from webarcfs.warc import http_response

# == archived pages ===================================================================================================


#: Response field → the request field that makes a request conditional on it (RFC 9110 section 13.1).
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
#: Values that are sent back: an entity tag or a date, which a server may have made up.
_VALUE = re.compile(r"[ !#-~\x22]{1,200}", re.ASCII)
_LARGEST_HEAD = 1 << 16
#: Repositories that stay open.
_REPOSITORIES = 16


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page in the newest state of its domain: git's ids of its body and head, its MIME type, its status."""

    url: str
    body: str
    head: str
    mime_type: str
    status: int


class ArchivedPages:
    """Reads pages from the newest states of an archive's domains. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._open = lru_cache(_REPOSITORIES)(lambda domain: Repository(archive.repository(domain)))

    def links(self, url: str) -> list[outlinks.Link]:
        """Return the links of the page at `url`; none if there is no page, or it cannot be read."""
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or store.size(page.body) > outlinks.LONGEST_BODY:
                return []
            body = store.read(page.body)
            head = http_response.parse_head(store.read(page.head)) if store.size(page.head) <= _LARGEST_HEAD else None
        except WebarcError:
            return []  # not archived yet, or damaged: `verify` reports damage, a crawl continues
        charset = text.decode_charset(body[: mimetype.SAMPLE], "" if head is None else head.content_type)
        return outlinks.links_of(body, url, page.mime_type, charset)

    def mime_type(self, url: str) -> str | None:
        """Return the MIME type of the page that was stored for this very URL; None if there is none."""
        try:
            page = self._page(url)
        except WebarcError:
            return None
        return page.mime_type if page is not None and page.url == url and page.status == OK else None

    def conditions(self, url: str) -> Mapping[str, str]:
        """Return request fields for `url` by which a server sends the page only if it is not the archived one.

        Empty if the page must be requested in full: it was not stored for this very URL, is an error page, or came
        without an entity tag and a date.
        """
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or page.url != url or page.status != OK or store.size(page.head) > _LARGEST_HEAD:
                return {}
            head = http_response.parse_head(store.read(page.head))
        except WebarcError:
            return {}
        if head is None or head.status != OK:
            return {}
        values = {asked: head.get(sent) for sent, asked in _CONDITIONS.items()}
        return {asked: value for asked, value in values.items() if _VALUE.fullmatch(value)}

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
                return ArchivedPage(meta.url, body.oid, answer.oid, meta.mime_type, meta.status)
        return None


# == disposition ======================================================================================================


#: URLs of a server that are settled in one statement.
_AT_ONCE = 1000
_UNREACHED = frozenset({Status.DNS, Status.CONNECT_FAILED})
#: Reason of a capture that ended early because the crawl took longer than `max_duration`.
OVER_TIME = Reason.OVER_TIME
#: Reason of a capture that ended early because the next document would have exceeded `max_total_size`.
OVER_SIZE = Reason.OVER_SIZE


@dataclass(frozen=True, slots=True)
class Captured:
    """The end of a capture: whether it fetched all URLs in scope, and otherwise the reason."""

    complete: bool
    reason: str = ""


class Disposition:
    """Writes the results of a job into its frontier, and tracks which servers fail."""

    def __init__(self, job: Job, archived: ArchivedPages, jars: CookieJars | None = None) -> None:
        self._folder = job.folder
        self._frontier = job.frontier
        self._discovery = Discovery(job.frontier, job.publication, job.profile, jars)
        self._archived = archived
        self._secure = SecureOnly(job.frontier)
        self._settled: list[UrlOutcome] = []
        self._unreached: dict[str, int] = {}
        self._busy: dict[str, int] = {}
        self._most = job.settings.max_total_size
        self._bytes = job.frontier.bytes_done() if self._most else 0
        self.is_full = False
        self._down: set[str] = set(job.frontier.get(frontier.SERVERS_DOWN) or ())

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
        self._judge_server(domain, settled)
        self._expand()
        self._discovery.forget_if_large()
        return again

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
        if row.kind != LinkKind.ROBOTS:
            self._discovery.links(row, self._archived.links(row.url))

    def _flush(self) -> None:
        self._frontier.settle(self._settled)
        self._settled = []
        self._discovery.flush()

    def is_doubtful(self, domain: str) -> bool:
        """Return whether the last batch could not reach the server."""
        return domain in self._unreached

    def verdict(self, left_out: tuple[str, ...], full: set[str]) -> Captured:
        """Return the end of the capture once nothing is left to fetch.

        `left_out` are hosts that a person dropped while it ran, `full` ones that had all documents that they may have.
        """
        if left_out:
            return Captured(False, f"left out: {', '.join(left_out)}")
        if full:
            return Captured(False, f"{Reason.HOST_FULL}: {', '.join(sorted(full))}")
        if self._down:
            return Captured(False, f"server down: {', '.join(sorted(self._down))}")
        if unread := self._frontier.get(frontier.LINKS_UNREAD):
            return Captured(False, f"links not read: {unread}")
        failed = [row.url for row in self._frontier.seeds() if _has_failed(self._discovery.end_of(row))]
        if failed:
            return Captured(False, f"start URL failed: {failed[0]}")
        return Captured(True)

    def _one(self, answer: FetchResult) -> UrlOutcome:
        row, settled = answer.row, self._fitting(self._held(answer))
        if answer.hsts:
            self._secure.learn(row.url, answer.hsts)
        if settled.note == OVER_SIZE:
            self._settled.append(settled)
            return settled
        if settled.state in (UrlState.FAILED, UrlState.REFUSED):
            self._fail(settled, row)
        else:
            self._settled.append(settled)
        if settled.state == UrlState.WAITING:
            return settled
        if row.kind == LinkKind.ROBOTS:
            status = settled.status if settled.state == UrlState.DONE else settled.status or Status.ROBOTS_UNREACHABLE
            body = answer.target.encode() or answer.robots
            self._frontier.set_robots(row.url, status, body, clocks.steady())
            if answer.target:
                self._flush()
                self._discovery.return_to_robots(row, sets_cookie=answer.sets_cookie)
        elif answer.target:
            self._flush()  # `redirect` reads the frontier
            self._discovery.redirect(row, answer.target, sets_cookie=answer.sets_cookie)
        elif settled.note == Reason.NOT_MODIFIED:
            self._discovery.links(row, self._archived.links(row.url))
        else:
            if wget.LINKS_UNREAD in settled.note.split(","):
                # Pages that only this page links to must not count as no longer linked: the crawl is incomplete.
                self._frontier.set(frontier.LINKS_UNREAD, row.url)
            self._discovery.links(row, answer.links)
        return settled

    def _held(self, answer: FetchResult) -> UrlOutcome:
        """Return the outcome; for a page that did not change and that the archive no longer has, it waits once more."""
        row, settled = answer.row, answer.settled
        if settled.note != Reason.NOT_MODIFIED:
            return settled
        mime = self._archived.mime_type(row.url)
        if mime is not None:
            return replace(settled, mime=mime)
        state = UrlState.FAILED if row.note == Reason.ASKED_AGAIN else UrlState.WAITING
        return UrlOutcome(id=row.id, state=state, status=settled.status, note=Reason.ASKED_AGAIN)

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
        self._down.add(domain)
        self._frontier.set(frontier.SERVERS_DOWN, sorted(self._down))
        self._frontier.fail_domain(domain, status, note)

    def keep_out(self, domain: str) -> None:
        """Fail all waiting URLs of a domain that is at a private address.

        The links of their archived versions are added. A robots.txt of another server that redirects there is unknown.
        """
        status, note = int(PRIVATE_ADDRESS.status), PRIVATE_ADDRESS.reason
        while rows := self._frontier.next(domain, math.inf, _AT_ONCE):
            for row in rows:
                self._fail(UrlOutcome(id=row.id, state=UrlState.FAILED, status=status, tried=0, note=note), row)
                if row.kind == LinkKind.ROBOTS:
                    self._frontier.set_robots(row.url, status, b"", clocks.steady())
            self._flush()

    def _expand(self) -> None:
        """Add the links of pages whose depth has decreased: these links may now be within the depth limit."""
        while nearer := self._frontier.to_expand():  # a page that comes nearer brings others nearer
            for row in nearer:
                warc = wget.BatchFiles(self._folder, row.batch).warc
                self._discovery.links(row, wget.links_at(warc, row.position, row) if row.position else ())
            self._discovery.flush()


def _has_failed(row: FrontierUrl) -> bool:
    """Return whether `row`, the end of a start URL's redirects, failed or is at a private address."""
    return row.state == UrlState.FAILED or PRIVATE_ADDRESS.reason in row.note.split(",")
