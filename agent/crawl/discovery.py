"""Adds URLs to the frontier: the links and redirects of fetched pages, judged by the scope (/Cr-1.1/).

Depth is the number of links from a start URL; redirects and resources of pages do not add to it. A redirect keeps the
right of what it is for: where an image redirects, its target is one. A shorter path found later counts. If a start URL
redirects to another host, that host is accepted too. A page of a start URL that goes on by itself within seconds
(Refresh) redirects in that sense.

A redirect that leads back to a URL that was asked for ends there, as in a browser without cookies. But if the cookies
changed since, the URL is asked for once more: sites set a cookie so, also by way of another host (consent, login).

Two limits are by count: the URLs that differ only in their query, and the hosts of a crawl. Counts come from the
frontier, so they are valid across batches and restarts; URLs that were accepted but not yet written are added.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from agent.crawl import politeness, scope
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.frontier import (  # fmt: skip
    BEGUN,
    COOKIES,
    HOSTS,
    LISTED,
    PATTERNS,
    WATCHED,
    FoundUrl,
    Frontier,
    FrontierUrl,
    RedirectCookies,
    WatchedFeed,
)
from agent.crawl.scope import ScopeVerdict
from agent.crawl.sitemaps import MOST_NESTED, MOST_SITEMAPS, USUAL_PLACE
from agent.crawl.vocabulary import LinkKind, Reason, Status, UrlState
from webarcfs.archive.config.settings import CrawlSettings, PageResources, Profile, Publication
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.model.url_lists import LONGEST_CHAIN
from webarcfs.archive.model.urls import SessionIds, both_schemes
from webarcfs.content.outlinks import Link, bare, resolver
from webarcfs.content.reference_table import LinkPurpose, NamedAs

# == quotas ===========================================================================================================


SITEMAP_FULL = ScopeVerdict(Status.QUOTA, Reason.SITEMAP_FULL)
SITEMAP_NUMBER = ScopeVerdict(Status.QUOTA, Reason.SITEMAP_NUMBER)
QUERIES = ScopeVerdict(Status.TRAP, scope.QUERIES)
TOO_MANY_REDIRECTS = ScopeVerdict(Status.TRAP, scope.REDIRECTS)
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


#: Patterns that are counted, and the least count that is kept over interruptions.
_MOST_PATTERNS, _LEAST_KEPT = 1_000, 10


class Patterns:
    """Counts, for each pattern of URLs, the pages in a row that led to nothing new but more URLs of that pattern.

    So do calendars and other pages that a server makes up. A page of real content mostly has something of its own: an
    image, a link elsewhere.
    """

    def __init__(self, frontier: Frontier, most: int) -> None:
        self._frontier = frontier
        self._most = most
        known = frontier.get(PATTERNS) if most else None
        self._counts: dict[str, int] = {} if known is None else known
        self._is_changed = False

    def barren_after(self, page: FrontierUrl, links: Sequence[Link], is_new: Callable[[Link], bool]) -> str:
        """Count a page; return its pattern if no more URLs of it shall enter, else an empty text."""
        pattern = scope.pattern_of(page.url) if self._most else ""
        if not ("#" in pattern or "*" in pattern):
            return ""
        own, others = False, False
        itself: tuple[str, ...] = ()
        for link in links:
            if scope.pattern_of(link.url) == pattern:
                own = own or is_new(link)
                continue
            query = link.url.partition("?")[2]
            if query and not itself:
                place = page.url.partition("://")[2].partition("/")[2]
                itself = (place, quote(place, safe=""))
            if not any(name in query for name in itself) and is_new(link):  # no button to share
                others = True
                break
        if others:
            self._is_changed = self._counts.pop(pattern, 0) >= _LEAST_KEPT or self._is_changed
        elif own:
            self._counts[pattern] = self._counts.pop(pattern, 0) + 1
            if len(self._counts) > _MOST_PATTERNS:
                del self._counts[next(iter(self._counts))]
            self._is_changed = self._is_changed or self._counts[pattern] >= _LEAST_KEPT
        return pattern if self._counts.get(pattern, 0) >= self._most else ""

    def keep(self) -> None:
        """Write the counts into the frontier."""
        if self._is_changed:
            self._is_changed = False
            self._frontier.set(PATTERNS, {key: count for key, count in self._counts.items() if count >= _LEAST_KEPT})


# == discovery ========================================================================================================


_MOST_KNOWN = 50_000
#: A URL as it was offered to the frontier: its kind, and as what it was named. A Link is one.
_Offer = tuple[str, LinkPurpose | LinkKind, NamedAs]
#: In place of the resources in a row, of what lists pages and what is listed: kinds of links have names of purposes.
_LISTS = -1
#: The depth of a link that was not offered yet.
_NEVER = 1 << 30
#: How often a URL is asked for again since redirects led back to it with other cookies.
MOST_RETURNS = 5
_OPEN = frozenset({UrlState.WAITING, UrlState.FETCHING})
# Variables, since each link is compared with them: a member of an enumeration takes Python 3.11 ten times as long.
_REQUISITE, _SITEMAP = LinkPurpose.REQUISITE, LinkPurpose.SITEMAP
_EMBEDDED = frozenset({LinkKind.REQUISITE, LinkKind.REDIRECT})
_LETTERS: Mapping[str, str] = {
    LinkKind.LINK: "L",
    LinkKind.REQUISITE: "E",
    LinkKind.REDIRECT: "R",
    LinkKind.ROBOTS: "P",
    LinkKind.SITEMAP: "M",
    LinkKind.LISTED: "M",
    LinkKind.SEED: "",
    LinkKind.FEED: "",
}
#: The kind of a URL by the last letter of its path.
_KINDS: Mapping[str, LinkKind] = {
    "": LinkKind.SEED,
    "L": LinkKind.LINK,
    "E": LinkKind.REQUISITE,
    "R": LinkKind.REDIRECT,
    "M": LinkKind.LISTED,
}


def judge_once_more(bounds: scope.CrawlScope, url: str, hops: str) -> ScopeVerdict | None:
    """Return why a URL that a crawl before had found by these `hops` is not asked for again; None if it is.

    It counts as near as a start URL.
    """
    embedded, is_start = scope.embedded_in(hops), not hops.strip("R")
    return scope.judge(bounds, url, 0, _KINDS[hops[-1:]], is_start=is_start, embedded=embedded)


#: URLs that are collected before they are written.
_MOST_FINDS = 1_000


def _bounds(frontier: Frontier, settings: CrawlSettings) -> scope.Bounds:
    begun = frontier.get(BEGUN)
    year = (from_epoch(begun) if begun is not None else now()).year
    ahead, back = settings.max_years_ahead, settings.max_years_back
    return scope.Bounds(settings, latest_year=year + ahead if ahead else 0, earliest_year=year - back if back else 0)


def uses_sitemaps(publication: Publication) -> bool:
    """Return whether a crawl looks for pages in sitemaps: not where it follows no links, or has a list of pages."""
    settings = publication.crawl
    return settings.sitemaps and settings.depth > 0 and not publication.list and not publication.watch


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _refused(find: FoundUrl, verdict: ScopeVerdict) -> FoundUrl:
    return dataclasses.replace(find, state=UrlState.REFUSED, status=int(verdict.status), note=verdict.reason)


class Discovery:
    """Judges the URLs that a crawl finds and adds them to the frontier."""

    def __init__(
        self,
        frontier: Frontier,
        publication: Publication,
        profile: Profile | None = None,
        jars: CookieJars | None = None,
        is_settled: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`jars` tell whether a redirect that leads back to a URL has changed its cookies; none: it never has.

        `is_settled` says which items of a watched feed are not asked for any more.
        """
        self._frontier = frontier
        self._jars = jars
        self._is_settled = is_settled
        self.publication = publication
        hosts = frozenset(frontier.get(HOSTS) or ())
        self._scope = scope.scope_of(publication, profile, hosts, _bounds(frontier, publication.crawl))
        self._crowd = UrlQuotas(frontier, publication.crawl)
        self._sessions = SessionIds(publication.crawl.session_parameters)
        self._patterns = Patterns(frontier, publication.crawl.max_pattern)
        self._looks_for_sitemaps = uses_sitemaps(publication)
        self._listed = {host: (pages, maps) for host, (pages, maps) in (frontier.get(LISTED) or {}).items()}
        self._is_listed_new = False  # whether these counts are to be written
        # Resources in a row → recently added links that they led to → their depth.
        self._offered: defaultdict[int, dict[_Offer, int]] = defaultdict(dict)
        self._finds: list[FoundUrl] = []
        self._expanded: list[tuple[int, int]] = []  # page and depth

    def seeds_of_list(self, urls: Iterable[str]) -> None:
        """Add the start URLs of a list, of which there may be a million; their hosts belong to the crawl."""
        hosts = set(self._scope.hosts)

        def found() -> Iterator[FoundUrl]:
            for url in urls:
                bare_url = self._sessions.without(url)
                domain = scope.domain_in(bare_url)
                hosts.add(domain)
                yield FoundUrl(url=bare_url, domain=domain, kind=LinkKind.SEED, depth=0, hops="")

        self._frontier.add(found())
        self._scope = dataclasses.replace(self._scope, hosts=frozenset(hosts))
        self._frontier.set(HOSTS, sorted(hosts))

    def accepts(self, domain: str) -> bool:
        """Return whether pages of a host may belong to the crawl."""
        return scope.accepts_host(self._scope, domain)

    def seeds(self, urls: Iterable[str]) -> None:
        """Add the start URLs (/Cr-2.2/, /Cr-6/)."""
        self._frontier.add(
            FoundUrl(url=url, domain=scope.domain_in(url), kind=LinkKind.SEED, depth=0, hops="")
            for url in dict.fromkeys(map(self._sessions.without, urls))
        )
        if self._looks_for_sitemaps and not self.publication.crawl.robots:
            for origin in dict.fromkeys(map(_origin, urls)):
                self._look_for_sitemap(origin)

    def once_more(self, url: str, hops: str) -> None:
        """Add a URL that a crawl before had found by these `hops`, judged as it was then; `flush` writes it."""
        verdict = judge_once_more(self._scope, url, hops)
        domain, embedded = scope.domain_in(url), scope.embedded_in(hops)
        find = FoundUrl(url=url, domain=domain, kind=_KINDS[hops[-1:]], depth=0, hops=hops, embedded=embedded)
        self._finds.append(find if verdict is None else _refused(find, verdict))
        if len(self._finds) >= _MOST_FINDS:
            self.flush()

    def add_by_hand(self, urls: Iterable[str]) -> None:
        """Add URLs that a person names while the job runs: start URLs, if they are of hosts that it accepts.

        One that was asked for in vain, or that was cut off, is asked for once more. Beside a watched feed they are no
        start URLs: those are its items.
        """
        for url in map(self._sessions.without, urls):
            row = self._frontier.by_url(url)
            verdict = scope.judge(self._scope, url, 0, LinkKind.LINK)
            find = FoundUrl(url=url, domain=scope.domain_in(url), kind=LinkKind.SEED, depth=0, hops="")
            if self.publication.watch:
                find = dataclasses.replace(find, kind=LinkKind.LINK, depth=1, hops="L")
            if row is not None and verdict is None and row.state in (UrlState.FAILED, UrlState.REFUSED):
                self._frontier.admit(row.id)
            self._frontier.add([find if verdict is None else _refused(find, verdict)])

    def links(self, page: FrontierUrl, links: Iterable[Link]) -> None:
        """Add the links of a page; `flush` writes them into the frontier."""
        depth = page.depth
        has_resources = self._scope.resources is not PageResources.NONE
        inside = page.embedded + 1
        clicked, needed = self._offered[0], self._offered[inside]
        # Pages of a site share most of their links: these cost one look here.
        fresh = []
        for link in links:
            purpose = link[1]
            if has_resources and purpose is _REQUISITE:
                if needed.get(link, _NEVER) <= depth:
                    continue
            elif purpose is not _SITEMAP and clicked.get(link, _NEVER) <= depth + 1:
                continue
            fresh.append(link)
        fresh = self._without_sessions(fresh)
        barren = self._patterns.barren_after(page, fresh, self._is_new) if page.kind != LinkKind.SEED else ""
        for link in fresh:
            if link.kind is _SITEMAP and self._is_feed(link.url, page):
                continue
            requisite = has_resources and link.kind is _REQUISITE
            at, offered = (depth, needed) if requisite else (depth + 1, clicked)
            if offered.get(link, _NEVER) <= at:
                continue
            offered[link] = at
            if self._crowd.is_uncertain(link.url, _page_of(page) if requisite else 0):
                self.flush()
            kind = LinkKind.REQUISITE if requisite else LinkKind.LINK
            find = self.judged(link.url, kind, at, page, named=link.named or "")
            if barren and not requisite and find.state == UrlState.WAITING and scope.pattern_of(link.url) == barren:
                find = _refused(find, scope.trapped(scope.PATTERN, link.url))
            if find.note == Reason.RESOURCE_NUMBER:
                del offered[link]  # the next page may have fewer
            self._finds.append(find)
        self._expanded.append((page.id, depth))

    def _without_sessions(self, links: Iterable[Link]) -> list[Link]:
        without = self._sessions.without
        return [link if (url := without(link.url)) == link.url else link._replace(url=url) for link in links]

    def _is_new(self, link: Link) -> bool:
        """Return whether the crawl did not know a link yet."""
        return link not in self._offered[int(link.kind is _REQUISITE)] and self._frontier.by_url(link.url) is None

    # -- sitemaps ------------------------------------------------------------------------------------------------

    def sitemaps_of(self, url: str, status: int, body: bytes) -> None:
        """Add the sitemaps that a robots.txt names, if the crawl goes for pages to its host; else the usual one."""
        origin = _origin(url)
        domain = scope.domain_in(url)
        if not self._looks_for_sitemaps or url != f"{origin}/robots.txt":
            return
        if not scope.accepts_host(self._scope, domain) or not self._frontier.is_page_host(domain):
            return
        rules = politeness.parse_robots(status, body)
        if not rules.known:
            return
        resolve = resolver(url, "utf-8")
        named = [target for raw in politeness.sitemaps_in(rules) if (target := resolve(bare(raw))) is not None]
        self._add_sitemaps(named, None)
        if not named:
            self._look_for_sitemap(origin)

    def page_after_all(self, row: FrontierUrl) -> None:
        """Have a URL fetched as a page that was asked for as a sitemap, is none, and is linked by a page."""
        if row.found_on is not None:
            self._frontier.add([FoundUrl(url=row.url, domain=row.domain, kind=LinkKind.LINK, depth=1, hops="L")])

    def _look_for_sitemap(self, origin: str) -> None:
        usual = f"{origin}{USUAL_PLACE}"
        others = [self._frontier.by_url(url) for url in both_schemes(usual) if url != usual]
        if not any(row is not None and row.kind == LinkKind.SITEMAP for row in others):
            self._add_sitemaps([usual], None)

    def listed(self, sitemap: FrontierUrl, links: Iterable[Link]) -> None:
        """Add what a sitemap or feed lists: pages, as if a start URL linked to them, and further sitemaps."""
        most = self.publication.crawl.max_sitemap_urls
        pages, maps = self._listed.get(sitemap.domain, (0, 0))
        further = []
        for link in self._without_sessions(links):
            if link.kind is _SITEMAP:
                further.append(link.url)
                continue
            if most and pages >= most:
                self._frontier.annotate(sitemap.id, Reason.SITEMAP_CUT)
                break
            pages += 1
            key = (link.url, LinkKind.LISTED, NamedAs.NOTHING)
            if self._offered[_LISTS].get(key, _NEVER) <= 1:
                continue
            self._offered[_LISTS][key] = 1
            if self._crowd.is_uncertain(link.url):
                self.flush()
            self._finds.append(self.judged(link.url, LinkKind.LISTED, 1, sitemap))
        self._count_listed(sitemap.domain, pages, maps)
        self._expanded.append((sitemap.id, sitemap.depth))
        self._add_sitemaps(further, sitemap)
        if most and pages >= most:
            self._frontier.refuse_sitemaps(sitemap.domain, Status.QUOTA, Reason.SITEMAP_FULL)

    def _add_sitemaps(self, urls: Iterable[str], index: FrontierUrl | None) -> None:
        for url in urls:
            domain = scope.domain_in(url)
            pages, maps = self._listed.get(domain, (0, 0))
            find = FoundUrl(
                url=url,
                domain=domain,
                kind=LinkKind.SITEMAP,
                depth=0 if index is None else index.depth,
                hops=(index.hops if index is not None else "") + _LETTERS[LinkKind.SITEMAP],
                found_on=None if index is None else index.id,
            )
            verdict = scope.judge(self._scope, url, 0, LinkKind.SITEMAP) or self._sitemap_bound(find, pages, maps)
            if verdict is None:
                self._count_listed(domain, pages, maps + 1)
            else:
                find = _refused(find, verdict)
            self._finds.append(find)
        self.flush()

    def _sitemap_bound(self, find: FoundUrl, pages: int, maps: int) -> ScopeVerdict | None:
        most = self.publication.crawl.max_sitemap_urls
        if most and pages >= most:
            return SITEMAP_FULL
        return SITEMAP_NUMBER if maps >= MOST_SITEMAPS or find.hops.count("M") > MOST_NESTED else None

    def _is_feed(self, url: str, page: FrontierUrl) -> bool:
        """Add a feed or sitemap that a page names; return False where it is no more than a link."""
        domain = scope.domain_in(url)
        pages, maps = self._listed.get(domain, (0, 0))
        if not self._looks_for_sitemaps or maps >= MOST_SITEMAPS:
            return False
        key, at = (url, LinkKind.SITEMAP, NamedAs.NOTHING), page.depth + 1
        if self._offered[_LISTS].get(key, _NEVER) <= at:
            return True
        find = self.judged(url, LinkKind.LINK, at, page)
        if find.state != UrlState.WAITING:
            return False
        self._offered[_LISTS][key] = at
        self._finds.append(dataclasses.replace(find, kind=LinkKind.SITEMAP))
        self._count_listed(domain, pages, maps + 1)
        return True

    def _count_listed(self, domain: str, pages: int, maps: int) -> None:
        self._listed[domain] = (pages, maps)
        self._is_listed_new = True

    # -- a watched feed ------------------------------------------------------------------------------------------

    def watch(self, waiting: Iterable[str]) -> None:
        """Add the feed that the publication watches, and the items that wait from earlier crawls."""
        url = self.publication.watch
        self._frontier.add([FoundUrl(url=url, domain=scope.domain_in(url), kind=LinkKind.FEED, depth=0, hops="")])
        self._add_items(waiting)

    def items(self, urls: Iterable[str]) -> None:
        """Add what the watched feed lists and is new to the publication; each item is a start URL."""
        urls = dict.fromkeys(map(self._sessions.without, urls))
        new = [url for url in urls if not self._is_settled(url)]
        self._add_items(new)
        self._frontier.set(WATCHED, WatchedFeed(items=len(urls), new=len(new)))

    def _add_items(self, urls: Iterable[str]) -> None:
        """Add items, as far as the settings take them, with their hosts."""
        hosts = set(self._scope.hosts)
        for url in dict.fromkeys(map(self._sessions.without, urls)):
            if self._crowd.is_uncertain(url):
                self.flush()
            find = self.judged_item(url)
            self._finds.append(find)
            if find.state == UrlState.WAITING:
                hosts.add(find.domain)
        self.flush()
        self._scope = dataclasses.replace(self._scope, hosts=frozenset(hosts))
        self._frontier.set(HOSTS, sorted(hosts))

    def item_of(self, url: str) -> str:
        """Return what an item of the watched feed is called: its page without session ids."""
        return self._sessions.without(url)

    def judged_item(self, url: str) -> FoundUrl:
        """Return what an item of the watched feed is to the crawl. Any host may have one: the feed's owner names it."""
        domain = scope.domain_in(url)
        find = FoundUrl(url=url, domain=domain, kind=LinkKind.SEED, depth=0, hops="")
        accepting = dataclasses.replace(self._scope, hosts=frozenset({domain}))
        verdict = scope.judge(accepting, url, 0, LinkKind.LISTED)
        if verdict is None:
            verdict = self._crowd.judge(url, domain, domain == scope.domain_in(self.publication.watch))
        return find if verdict is None else _refused(find, verdict)

    # -- the frontier --------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the collected links into the frontier: in bulk, which costs a fraction of single statements."""
        self._frontier.add(self._finds)
        self._frontier.expanded(self._expanded)
        self._finds, self._expanded = [], []
        self._crowd.settle()
        self._patterns.keep()
        if self._is_listed_new:
            self._is_listed_new = False
            self._frontier.set(LISTED, self._listed)

    def redirect(self, page: FrontierUrl, target: str, *, sets_cookie: bool = False) -> None:
        """Add the target of a redirect, without its session id."""
        self.flush()
        if self.is_itself(page, target):
            self._frontier.annotate(page.id, Reason.REDIRECT_LOOP)
            return
        target = self._sessions.without(target)
        if page.is_start:
            self._accept(scope.domain_in(target))
        kind = page.kind if page.kind in (LinkKind.SITEMAP, LinkKind.FEED) else LinkKind.REDIRECT
        find = self.judged(target, kind, page.depth, page, is_start=page.is_start)
        hops = page.hops + _LETTERS[LinkKind.REDIRECT]
        find = dataclasses.replace(find, hops=hops, named=page.named)
        if len(hops) - len(hops.rstrip("R")) > LONGEST_CHAIN:
            find = _refused(find, TOO_MANY_REDIRECTS)
        self._frontier.add([find])
        self._crowd.settle()
        self.note_cookies(page, sets_cookie=sets_cookie)
        if (circle := self._circle(page)) and self._return_to(circle) is None:
            for row in circle:
                self._frontier.annotate(row.id, Reason.REDIRECT_LOOP)

    def is_itself(self, page: FrontierUrl, target: str) -> bool:
        """Return whether the target of a redirect is the page itself, with a session id."""
        return target != page.url and self._sessions.without(target) == page.url

    def return_to_robots(self, page: FrontierUrl, *, sets_cookie: bool) -> None:
        """Ask again for a robots.txt whose redirects lead back to it, if cookies have changed meanwhile."""
        self.note_cookies(page, sets_cookie=sets_cookie)
        row = self._return_to(self._circle(page))
        if row is not None:
            self._frontier.set_robots(row.url, 0, b"", 0.0)  # long ago: it is to be fetched

    def note_cookies(self, page: FrontierUrl, *, sets_cookie: bool) -> None:
        """Keep what is to be known of the cookies of a redirect."""
        if self._jars is None:
            return
        before = self._cookies(page)
        # Where it was asked for with a session id, that says nothing of its own URL.
        sent = before["sent"] if page.target else self._jars.sent(page.batch, page.url)
        after = RedirectCookies(sent=sent, sets=sets_cookie or before["sets"], again=before["again"])
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
        if sum(map(len, self._offered.values())) > _MOST_KNOWN:
            self._offered.clear()

    def judged(
        self,
        url: str,
        kind: str,
        depth: int,
        page: FrontierUrl,
        *,
        is_start: bool = False,
        named: str = "",
    ) -> FoundUrl:
        """Return what a URL that a page leads to is to the crawl: it waits, or is refused for a reason."""
        domain = scope.domain_in(url)
        inner = page.inner + (kind in scope.CLICKED) if domain == page.domain else 0
        embedded = page.embedded + (kind == LinkKind.REQUISITE) if kind in _EMBEDDED else 0
        needed_by = _page_of(page) if embedded else 0
        verdict = scope.judge(self._scope, url, depth, kind, on_server=inner, is_start=is_start, embedded=embedded)
        if verdict is None:
            verdict = self._crowd.judge(url, domain, domain in self._scope.hosts, needed_by)
        return FoundUrl(
            url=url,
            domain=domain,
            kind=kind,
            depth=depth,
            hops=page.hops + _LETTERS[kind],
            found_on=page.id,
            state=UrlState.WAITING if verdict is None else UrlState.REFUSED,
            status=0 if verdict is None else int(verdict.status),
            note="" if verdict is None else verdict.reason,
            inner=inner,
            embedded=embedded,
            page=needed_by,
            named=named,
        )

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

    def accepts_host(self, domain: str) -> bool:
        """Return whether pages of a host belong to the crawl."""
        return scope.accepts_host(self._scope, domain)

    def is_opened(self, domain: str) -> bool:
        """Return whether a host may be at a private address since a start URL is at one."""
        return scope.opens(self._scope, domain)


def _page_of(row: FrontierUrl) -> int:
    """Return the page for which something on `row` is needed: itself, or the page that needs it."""
    return row.page if row.embedded and row.page else row.id
