"""Adds URLs to the frontier: the links and redirects of fetched pages, judged by the scope (/Cr-1.1/).

Depth is the number of links from a start URL; redirects and requisites do not add to it. A shorter path found later
counts. If a start URL redirects to another host, that host is accepted too.

A redirect that leads back to a URL that was asked for ends there, as in a browser without cookies. But if the cookies
changed since, the URL is asked for once more: sites set a cookie so, also by way of another host (consent, login).

Two limits are by count: the URLs that differ only in their query, and the hosts of a crawl. Counts come from the
frontier, so they are valid across batches and restarts; URLs that were accepted but not yet written are added.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping

from agent.crawl import scope
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.frontier import BEGUN, COOKIES, HOSTS, FoundUrl, Frontier, FrontierUrl, RedirectCookies
from agent.crawl.scope import ScopeVerdict, TypeRules
from agent.crawl.vocabulary import LinkKind, Reason, Status, UrlState
from webarcfs.archive.config.settings import CrawlSettings, Profile, Publication
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.model.url_lists import LONGEST_CHAIN
from webarcfs.content.outlinks import Link, LinkPurpose

# == quotas ===========================================================================================================


QUERIES = ScopeVerdict(Status.TRAP, scope.QUERIES)
TOO_MANY_HOSTS = ScopeVerdict(Status.TRAP, scope.HOSTS)


class UrlQuotas:
    """Counts the accepted URLs of each path and the hosts of the crawl, and enforces their limits."""

    def __init__(self, frontier: Frontier, settings: CrawlSettings) -> None:
        self._frontier = frontier
        self._most_queries = settings.max_queries
        self._most_hosts = settings.max_hosts
        self._in_frontier: dict[str, int] = {}
        self._let_in: Counter[str] = Counter()
        self._hosts: set[str] | None = None

    def judge(self, url: str, domain: str, own: bool) -> ScopeVerdict | None:
        """Return None and count the URL if it may enter, else why not. `own`: its host is a start URL's host."""
        if not own and self._most_hosts and not self._has_room_for(domain):
            return TOO_MANY_HOSTS
        path, mark, _ = url.partition("?")
        if mark and self._most_queries:
            if self._count(path) >= self._most_queries:
                return QUERIES
            self._let_in[path] += 1
        return None

    def is_uncertain(self, url: str) -> bool:
        """Return whether pending URLs must be written before `url` is judged: some may be in the frontier already."""
        path, mark, _ = url.partition("?")
        return bool(mark and self._most_queries and self._let_in[path] and self._count(path) >= self._most_queries)

    def settle(self) -> None:
        """Reset the pending counts: all accepted URLs are in the frontier now."""
        self._let_in.clear()
        self._in_frontier.clear()

    def _count(self, path: str) -> int:
        if path not in self._in_frontier:
            self._in_frontier[path] = self._frontier.queries(path)
        return self._in_frontier[path] + self._let_in[path]

    def _has_room_for(self, domain: str) -> bool:
        if self._hosts is None:
            self._hosts = set(self._frontier.admitted_domains())
        if domain not in self._hosts:
            if len(self._hosts) >= self._most_hosts:
                return False
            self._hosts.add(domain)
        return True


# == discovery ========================================================================================================


_MOST_KNOWN = 50_000
#: How often a URL is asked for again since redirects led back to it with other cookies.
MOST_RETURNS = 5
_OPEN = frozenset({UrlState.WAITING, UrlState.FETCHING})
_LETTERS: Mapping[str, str] = {
    LinkKind.LINK: "L",
    LinkKind.REQUISITE: "E",
    LinkKind.REDIRECT: "R",
    LinkKind.ROBOTS: "P",
    LinkKind.SEED: "",
}


def _bounds(frontier: Frontier, settings: CrawlSettings) -> scope.Bounds:
    begun = frontier.get(BEGUN)
    year = (from_epoch(begun) if begun is not None else now()).year
    return scope.Bounds(settings, latest_year=year + settings.max_years_ahead if settings.max_years_ahead else 0)


class Discovery:
    """Judges the URLs that a crawl finds and adds them to the frontier."""

    def __init__(
        self,
        frontier: Frontier,
        publication: Publication,
        profile: Profile | None = None,
        jars: CookieJars | None = None,
    ) -> None:
        """`jars` tell whether a redirect that leads back to a URL has changed its cookies; none: it never has."""
        self._frontier = frontier
        self._jars = jars
        self.publication = publication
        hosts = frozenset(scope.domain_in(url) for url in publication.urls) | frozenset(frontier.get(HOSTS) or ())
        self._scope = scope.CrawlScope(
            hosts=hosts,
            patterns=publication.hosts,
            exclude=publication.exclude_hosts,
            left_out=tuple(exclusion.match for exclusion in publication.exclude),
            depth=publication.crawl.depth,
            page_requisites=publication.crawl.page_requisites,
            traps=_bounds(frontier, publication.crawl),
            private_addresses=scope.may_be_private(publication.crawl, publication.urls),
            paths=publication.crawl.paths,
            extensions=publication.crawl.exclude_extensions,
            types=TypeRules.of(publication.crawl, profile),
            servers=publication.server,
        )
        self._crowd = UrlQuotas(frontier, publication.crawl)
        # Recently added links → their depth: pages of a site share most of their links.
        self._offered: dict[tuple[str, str], int] = {}
        self._finds: list[FoundUrl] = []
        self._expanded: list[tuple[int, int]] = []  # page and depth

    def seeds(self, urls: Iterable[str]) -> None:
        """Add the start URLs (/Cr-2.2/, /Cr-6/)."""
        self._frontier.add(
            FoundUrl(url=url, domain=scope.domain_in(url), kind=LinkKind.SEED, depth=0, hops="")
            for url in dict.fromkeys(urls)
        )

    def links(self, page: FrontierUrl, links: Iterable[Link]) -> None:
        """Add the links of a page; `flush` writes them into the frontier."""
        depth = page.depth
        for link in links:
            requisite = link.kind is LinkPurpose.REQUISITE and self._scope.page_requisites
            at = depth if requisite else depth + 1
            key = (link.url, link.kind)
            if self._offered.get(key, at + 1) <= at:
                continue
            self._offered[key] = at
            if self._crowd.is_uncertain(link.url):
                self.flush()
            self._finds.append(self.judged(link.url, LinkKind.REQUISITE if requisite else LinkKind.LINK, at, page))
        self._expanded.append((page.id, depth))

    def flush(self) -> None:
        """Write the collected links into the frontier: in bulk, which costs a fraction of single statements."""
        self._frontier.add(self._finds)
        self._frontier.expanded(self._expanded)
        self._finds, self._expanded = [], []
        self._crowd.settle()

    def redirect(self, page: FrontierUrl, target: str, *, sets_cookie: bool = False) -> None:
        """Add the target of a redirect."""
        self.flush()
        is_start = page.kind == LinkKind.SEED or (page.kind == LinkKind.REDIRECT and not page.hops.strip("R"))
        if is_start:
            self._accept(scope.domain_in(target))
        find = self.judged(target, LinkKind.REDIRECT, page.depth, page, is_start=is_start)
        trail = len(find.hops) - len(find.hops.rstrip("R"))
        if trail > LONGEST_CHAIN:
            find = dataclasses.replace(find, state=UrlState.REFUSED, status=int(Status.TRAP), note=scope.REDIRECTS)
        self._frontier.add([find])
        self._crowd.settle()
        self._note_cookies(page, sets_cookie)
        if (circle := self._circle(page)) and self._return_to(circle) is None:
            for row in circle:
                self._frontier.annotate(row.id, Reason.REDIRECT_LOOP)

    def return_to_robots(self, page: FrontierUrl, *, sets_cookie: bool) -> None:
        """Ask again for a robots.txt whose redirects lead back to it, if cookies have changed meanwhile."""
        self._note_cookies(page, sets_cookie)
        row = self._return_to(self._circle(page))
        if row is not None:
            self._frontier.set_robots(row.url, 0, b"", 0.0)  # long ago: it is to be fetched

    def end_of(self, row: FrontierUrl) -> FrontierUrl:
        """Return the last row of the redirects from `row`; `row` itself without redirects. A loop ends at a repeat."""
        visited = {row.id}
        while (target := self._frontier.redirected_to(row.id)) is not None and target.id not in visited:
            visited.add(target.id)
            row = target
        return row

    def _note_cookies(self, page: FrontierUrl, sets_cookie: bool) -> None:
        """Keep what is to be known of the cookies of a redirect."""
        if self._jars is None:
            return
        before = self._cookies(page)
        after = RedirectCookies(
            sent=self._jars.sent(page.batch, page.url), sets=sets_cookie or before["sets"], again=before["again"]
        )
        if after != before:
            self._frontier.set(COOKIES.of(page.id), after)

    def _cookies(self, row: FrontierUrl) -> RedirectCookies:
        return self._frontier.get(COOKIES.of(row.id)) or RedirectCookies(sent="", sets=False, again=0)

    def _circle(self, page: FrontierUrl) -> list[FrontierUrl]:
        """Return the redirects that lead from the target of `page` back to it; none if they lead elsewhere.

        If they lead to a circle that `page` is not in, it is returned from where they come to it.
        """
        rows: dict[int, FrontierUrl] = {}
        row: FrontierUrl | None = page
        while row is not None and row.id not in rows:
            rows[row.id] = row
            row = self._frontier.redirected_to(row.id)
        if row is None:
            return []
        rows[row.id] = row  # `page` is as it was before its response
        circle = list(rows.values())[list(rows).index(row.id) :]
        return [*circle[1:], circle[0]] if row.id == page.id else circle

    def _return_to(self, circle: list[FrontierUrl]) -> FrontierUrl | None:
        """Ask once more for the first of a circle's redirects whose cookies have changed since it was asked for.

        Return it, or one that still waits; None if there is none. A site may change a cookie with each response, so
        there is a bound.
        """
        waiting = next((row for row in circle if row.state in _OPEN), None)
        if waiting is not None or self._jars is None:
            return waiting
        cookies = [(row, self._cookies(row)) for row in circle]
        if not any(kept["sets"] for _, kept in cookies):
            return None  # others of the site changed them
        for row, kept in cookies:
            if kept["again"] < MOST_RETURNS and kept["sent"] != self._jars.now(row.url):
                kept["again"] += 1
                self._frontier.set(COOKIES.of(row.id), kept)
                self._frontier.again(row.id)
                return row
        return None

    def forget_if_large(self) -> None:
        """Clear the cache of recent links once it is large, to bound memory."""
        if len(self._offered) > _MOST_KNOWN:
            self._offered.clear()

    def judged(self, url: str, kind: str, depth: int, page: FrontierUrl, *, is_start: bool = False) -> FoundUrl:
        """Return what a URL that a page leads to is to the crawl: it waits, or is refused for a reason."""
        domain = scope.domain_in(url)
        inner = page.inner + (kind == LinkKind.LINK) if domain == page.domain else 0
        verdict = scope.judge(self._scope, url, depth, kind, on_server=inner, is_start=is_start)
        if verdict is None:
            verdict = self._crowd.judge(url, domain, domain in self._scope.hosts)
        find = FoundUrl(
            url=url,
            domain=domain,
            kind=kind,
            depth=depth,
            hops=page.hops + _LETTERS[kind],
            found_on=page.id,
            inner=inner,
        )
        if verdict is None:
            return find
        return dataclasses.replace(find, state=UrlState.REFUSED, status=int(verdict.status), note=verdict.reason)

    def _accept(self, domain: str) -> None:
        if domain in self._scope.hosts:
            return
        self._scope = dataclasses.replace(self._scope, hosts=self._scope.hosts | {domain})
        self._offered.clear()
        self._frontier.set(HOSTS, sorted(self._scope.hosts))
        for row in self._frontier.refused_by_host(domain):
            if scope.judge(self._scope, row.url, row.depth, row.kind, on_server=row.inner) is None:
                self._frontier.admit(row.id)
