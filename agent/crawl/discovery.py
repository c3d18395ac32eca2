"""Adds URLs to the frontier: the links and redirects of fetched pages, judged by the scope (/Cr-1.1/).

Depth is the number of links from a start URL; redirects and resources of pages do not add to it. A redirect keeps the
right of what it is for: where an image redirects, its target is one. A shorter path found later
counts. If a start URL redirects to another host, that host is accepted too.

Two limits are by count: the URLs that differ only in their query, and the hosts of a crawl. Counts come from the
frontier, so they are valid across batches and restarts; URLs that were accepted but not yet written are added.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from agent.crawl import scope
from agent.crawl.frontier import BEGUN, HOSTS, FoundUrl, Frontier, FrontierUrl
from agent.crawl.scope import ScopeVerdict, TypeRules
from agent.crawl.vocabulary import LinkKind, Reason, Status, UrlState
from webarcfs.archive.config.settings import CrawlSettings, PageResources, Profile, Publication
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.model.url_lists import LONGEST_CHAIN
from webarcfs.content.outlinks import Link, LinkPurpose

# == quotas ===========================================================================================================


QUERIES = ScopeVerdict(Status.TRAP, scope.QUERIES)
TOO_MANY_HOSTS = ScopeVerdict(Status.TRAP, scope.HOSTS)
TOO_MANY_RESOURCE_HOSTS = ScopeVerdict(Status.TRAP, Reason.RESOURCE_HOSTS)
TOO_MANY_RESOURCES = ScopeVerdict(Status.TRAP, Reason.RESOURCE_NUMBER)


class UrlQuotas:
    """Counts the accepted URLs of each path, the hosts of the crawl and the resources of pages; enforces the limits."""

    def __init__(self, frontier: Frontier, settings: CrawlSettings) -> None:
        self._frontier = frontier
        self._most_queries = settings.max_queries
        self._most_resources = settings.max_page_resources
        self._in_frontier: dict[str, int] = {}
        self._let_in: Counter[str] = Counter()
        self._of_page: dict[int, int] = {}
        self._new_of_page: Counter[int] = Counter()
        self._pages = _HostQuota(settings.max_hosts, frontier.page_domains)
        self._resources = _HostQuota(settings.max_resource_hosts, frontier.resource_domains)

    def judge(self, url: str, domain: str, own: bool, page: int = 0) -> ScopeVerdict | None:
        """Return None and count the URL if it may enter, else why not.

        `own`: its host is a start URL's host. `page` is the page that needs a resource; 0: it is no resource.
        """
        if page and self._most_resources and self._count_of(page) >= self._most_resources:
            return TOO_MANY_RESOURCES
        if not own and page and not self._pages.has(domain) and not self._resources.takes(domain):
            return TOO_MANY_RESOURCE_HOSTS
        if not own and not page and not self._pages.takes(domain):
            return TOO_MANY_HOSTS
        path, mark, _ = url.partition("?")
        if mark and self._most_queries:
            if self._count(path) >= self._most_queries:
                return QUERIES
            self._let_in[path] += 1
        self._new_of_page[page] += bool(page)
        return None

    def is_uncertain(self, url: str, page: int = 0) -> bool:
        """Return whether pending URLs must be written before `url` is judged: some may be in the frontier already."""
        if page and self._new_of_page[page] and self._count_of(page) >= self._most_resources > 0:
            return True
        path, mark, _ = url.partition("?")
        return bool(mark and self._most_queries and self._let_in[path] and self._count(path) >= self._most_queries)

    def settle(self) -> None:
        """Reset the pending counts: all accepted URLs are in the frontier now."""
        self._let_in.clear()
        self._in_frontier.clear()
        self._new_of_page.clear()
        self._of_page.clear()

    def _count(self, path: str) -> int:
        if path not in self._in_frontier:
            self._in_frontier[path] = self._frontier.queries(path)
        return self._in_frontier[path] + self._let_in[path]

    def _count_of(self, page: int) -> int:
        if page not in self._of_page:
            self._of_page[page] = self._frontier.resources_of(page)
        return self._of_page[page] + self._new_of_page[page]


class _HostQuota:
    """The hosts beside those of start URLs, up to a number; 0 is no limit."""

    def __init__(self, most: int, known: Callable[[], list[str]]) -> None:
        self._most = most
        self._known = known
        self._hosts: set[str] | None = None

    def has(self, domain: str) -> bool:
        """Return whether a host was taken before."""
        return domain in self._all()

    def takes(self, domain: str) -> bool:
        """Return whether a host is one of them, or may become one."""
        hosts = self._all()
        if domain not in hosts:
            if self._most and len(hosts) >= self._most:
                return False
            hosts.add(domain)
        return True

    def _all(self) -> set[str]:
        if self._hosts is None:
            self._hosts = set(self._known())
        return self._hosts


# == discovery ========================================================================================================


_MOST_KNOWN = 50_000
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

    def __init__(self, frontier: Frontier, publication: Publication, profile: Profile | None = None) -> None:
        self._frontier = frontier
        self.publication = publication
        hosts = frozenset(scope.domain_in(url) for url in publication.urls) | frozenset(frontier.get(HOSTS) or ())
        self._scope = scope.CrawlScope(
            hosts=hosts,
            patterns=publication.hosts,
            exclude=publication.exclude_hosts,
            left_out=tuple(exclusion.match for exclusion in publication.exclude),
            depth=publication.crawl.depth,
            resources=publication.crawl.resources,
            traps=_bounds(frontier, publication.crawl),
            private_addresses=scope.may_be_private(publication.crawl, publication.urls),
            private_resources=publication.crawl.private_addresses,
            paths=publication.crawl.paths,
            extensions=publication.crawl.exclude_extensions,
            types=TypeRules.of(publication.crawl, profile),
            servers=publication.server,
        )
        self._crowd = UrlQuotas(frontier, publication.crawl)
        # Recently added links → their depth: pages of a site share most of their links.
        self._offered: dict[tuple[str, str, int], int] = {}
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
            requisite = link.kind is LinkPurpose.REQUISITE and self._scope.resources is not PageResources.NONE
            at = depth if requisite else depth + 1
            key = (link.url, link.kind, page.embedded + 1 if requisite else 0)
            if self._offered.get(key, at + 1) <= at:
                continue
            self._offered[key] = at
            if self._crowd.is_uncertain(link.url, _page_of(page) if requisite else 0):
                self.flush()
            find = self.judged(link.url, LinkKind.REQUISITE if requisite else LinkKind.LINK, at, page)
            if find.note == Reason.RESOURCE_NUMBER:
                del self._offered[key]  # the next page may have fewer
            self._finds.append(find)
        self._expanded.append((page.id, depth))

    def flush(self) -> None:
        """Write the collected links into the frontier: in bulk, which costs a fraction of single statements."""
        self._frontier.add(self._finds)
        self._frontier.expanded(self._expanded)
        self._finds, self._expanded = [], []
        self._crowd.settle()

    def redirect(self, page: FrontierUrl, target: str) -> None:
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
        if self._is_circle(page):
            self._frontier.annotate(page.id, Reason.REDIRECT_LOOP)

    def end_of(self, row: FrontierUrl) -> FrontierUrl:
        """Return the last row of the redirects from `row`; `row` itself without redirects. A loop ends at a repeat."""
        visited = {row.id}
        while (target := self._frontier.redirected_to(row.id)) is not None and target.id not in visited:
            visited.add(target.id)
            row = target
        return row

    def _is_circle(self, row: FrontierUrl) -> bool:
        visited = {row.id}
        while (target := self._frontier.redirected_to(row.id)) is not None:
            if target.id in visited:
                return True
            visited.add(target.id)
            row = target
        return False

    def forget_if_large(self) -> None:
        """Clear the cache of recent links once it is large, to bound memory."""
        if len(self._offered) > _MOST_KNOWN:
            self._offered.clear()

    def judged(self, url: str, kind: str, depth: int, page: FrontierUrl, *, is_start: bool = False) -> FoundUrl:
        """Return what a URL that a page leads to is to the crawl: it waits, or is refused for a reason."""
        domain = scope.domain_in(url)
        inner = page.inner + (kind == LinkKind.LINK) if domain == page.domain else 0
        embedded = 0 if kind == LinkKind.LINK else page.embedded + (kind == LinkKind.REQUISITE)
        needed_by = _page_of(page) if embedded else 0
        verdict = scope.judge(self._scope, url, depth, kind, on_server=inner, is_start=is_start, embedded=embedded)
        if verdict is None:
            verdict = self._crowd.judge(url, domain, domain in self._scope.hosts, needed_by)
        find = FoundUrl(
            url=url,
            domain=domain,
            kind=kind,
            depth=depth,
            hops=page.hops + _LETTERS[kind],
            found_on=page.id,
            inner=inner,
            embedded=embedded,
            page=needed_by,
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
            verdict = scope.judge(self._scope, row.url, row.depth, row.kind, on_server=row.inner, embedded=row.embedded)
            if verdict is None:
                self._frontier.admit(row.id)

    def is_host_of_job(self, domain: str) -> bool:
        """Return whether pages of a host belong to the job, not only what other pages need of it."""
        return scope.accepts_host(self._scope, domain)


def _page_of(row: FrontierUrl) -> int:
    """Return the page for which something on `row` is needed: itself, or the page that needs it."""
    return row.page if row.embedded and row.page else row.id
