"""Decides which URLs enter the frontier, and gives the reason in crawl.log for the refused ones. Pure.

Accepted are the hosts of the start URLs, the hosts that those redirect to, and the publication's patterns (/Cr-7.4/, as
in Tarântula). Depth is counted in links from a start URL (/Cr-1.1/).

Addresses of this machine or its network, and reserved ones, are refused: they are not on the public internet. The
machine of the archive may reach servers there that the users who request crawls cannot reach.

Types decide which documents a crawl keeps, and which URLs need not be fetched for that. A publication's own types go
before its profile. A document whose type is not wanted is fetched all the same where it may have links: they lead to
what is wanted.

The guards against spider traps refuse sites that never end, by accident or on purpose. Each guard has a bound in
`[crawl]` (0: no bound) and a word that follows `trap:` in crawl.log. Real sites stay far below the bounds. If a site
exceeds one, the word names it, and the publication can raise it.
"""

from __future__ import annotations

import ipaddress
import mimetypes
import re
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from urllib.parse import unquote

import idna

from agent.crawl.vocabulary import Figure, LinkKind, Reason, Status
from webarcfs.archive.config.settings import CrawlSettings, Fetcher, PageResources, Profile, Publication, ServerSettings
from webarcfs.archive.model.urls import domain_of
from webarcfs.content.outlinks import may_have_links

# == addresses, pure ==================================================================================================


_PROXY = re.compile(r"(?:https?|ftp)proxy=")
_LOCAL = re.compile(r"(?:.*\.)?localhost\.?", re.IGNORECASE)
# IPv6 addresses in which an IPv4 address lies in the last four bytes (RFC 4291 section 2.5.5, RFC 6052).
_EMBEDDING = tuple(
    ipaddress.IPv6Network(network) for network in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)


def is_private(address: str) -> bool:
    """Return whether an IP address is private, loopback, link-local, multicast or reserved (RFC 6890).

    For an IPv6 address that embeds an IPv4 address, the IPv4 address decides. Raises ValueError for an invalid address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = [ip.sixtofour, *(ip.teredo or ())]
        inner += [ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) for network in _EMBEDDING if ip in network]
        if any(ipv4 is not None and is_private(str(ipv4)) for ipv4 in inner):
            return True
        if ip.is_site_local:  # deprecated (RFC 3879), but still routed in networks that use it
            return True
    return not ip.is_global or ip.is_multicast


def is_private_host(host: str) -> bool | None:
    """Return whether a host is at a private address, judged by its name; None if the name must be looked up.

    An IPv4 address may have fewer parts, or be octal or hexadecimal: inet_aton(3) and wget accept these forms.
    """
    if _LOCAL.fullmatch(host):
        return True
    try:
        address_infos = socket.getaddrinfo(host.strip("[]"), None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return any(is_private(str(address_info[4][0])) for address_info in address_infos)


def host_of(domain: str) -> str:
    """Return the host of `host[:port]`, an IPv6 address without its brackets."""
    if domain.startswith("["):
        return domain[1:].partition("]")[0]
    return domain.partition(":")[0]


@lru_cache(maxsize=4096)
def is_private_domain(domain: str) -> bool | None:
    """Return `is_private_host` of a domain's host (`host[:port]`)."""
    return is_private_host(host_of(domain))


def may_be_private(publication: Publication) -> bool:
    """Return whether a crawl may request from private addresses: by its settings, or since a start URL is at one."""
    if publication.crawl.private_addresses or publication.is_saved:
        return publication.crawl.private_addresses
    return any(is_private_domain(domain_of(url)) for url in publication.named_urls)


def is_proxied(wget_args: Iterable[str], environment: Mapping[str, str], proxy: str = "") -> bool:
    """Return whether wget uses a proxy, by its arguments, the environment or the setting. It looks names up itself."""
    arguments = [argument.lower() for argument in wget_args]
    if any(
        _PROXY.search(re.sub(r"[-_ ]", "", argument)) for argument in arguments
    ):  # to wget, http-proxy is http_proxy
        return True
    return "--no-proxy" not in arguments and bool(
        proxy or any(environment.get(name) for name in ("http_proxy", "https_proxy"))
    )


# == type rules, pure =================================================================================================


def is_wanted(mime_type: str, rules: Profile) -> bool:
    """Return whether a MIME type matches an include (or no includes are given) and no exclude (/Fi-4.4/)."""
    included = not rules.include or matches_type(mime_type, rules.include)
    return included and not matches_type(mime_type, rules.exclude)


def matches_type(mime_type: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a MIME type is one of these, in which `*` matches any characters."""
    return any(_pattern(pattern).fullmatch(mime_type) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class TypeRules:
    """The types of a crawl: those of its profile and `types`, without `exclude_types`."""

    profile: Profile | None = None
    types: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: CrawlSettings, profile: Profile | None) -> TypeRules:
        """Return the rules of a crawl."""
        return cls(profile, settings.types, settings.exclude_types)

    @property
    def are_own(self) -> bool:
        """Whether there is more than a profile."""
        return bool(self.types or self.exclude)

    def wants(self, mime_type: str) -> bool:
        """Return whether documents of a type are kept."""
        if matches_type(mime_type, self.exclude):
            return False
        if matches_type(mime_type, self.types):
            return True
        return is_wanted(mime_type, self.profile) if self.profile is not None else not self.types

    def spares(self, mime_type: str) -> bool:
        """Return whether documents of a type need not be fetched: they are not kept, and lead nowhere."""
        return bool(mime_type) and not may_have_links(mime_type) and not self.wants(mime_type)

    def spares_url(self, url: str) -> bool:
        """Return whether the extension in a URL shows that it need not be fetched."""
        if not self.are_own and self.profile is None:
            return False
        return self.spares(_types().get(f".{extension_of(url)}", ""))


def extension_of(url: str) -> str:
    """Return the extension of the file that a canonical URL names, in lower case; empty without one."""
    name = url.partition("://")[2].partition("?")[0].partition("/")[2].rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""


def has_extension(url: str, extensions: tuple[str, ...]) -> bool:
    """Return whether the file that a URL names ends in one of these extensions."""
    name = url.partition("://")[2].partition("?")[0].rpartition("/")[2].lower()
    return any(name.endswith(f".{extension}") for extension in extensions)


@cache
def _types() -> dict[str, str]:
    """Return extension → type, from Python's own table, so that it does not depend on the machine."""
    return mimetypes.MimeTypes().types_map[True]


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*"), re.IGNORECASE)


# == traps, pure ======================================================================================================


#: Longer URLs are refused whatever the settings: RFC 9110 section 4.1 asks servers to support 8,000 octets.
LONGEST_URL = 8192
#: Nor may a path have more segments: each is a folder inside another, and the archive is read folder by folder.
MOST_SEGMENTS = 200

LENGTH = Reason.URL_LENGTH
PATH_DEPTH = Reason.PATH_DEPTH
REPEATS = Reason.REPEATS
PARAMETERS = Reason.PARAMETERS
QUERIES = Reason.QUERIES
CALENDAR = Reason.CALENDAR
PATTERN = Reason.PATTERN
HOSTS = Reason.HOSTS
REDIRECTS = Reason.REDIRECTS

# Years 1900 to 2199 with a month, 1000 to 2199 in a whole date or a parameter: other four-digit numbers are mostly not
# years.
_YEAR, _ANY_AGE = r"(19\d\d|2[01]\d\d)", r"(1\d\d\d|2[01]\d\d)"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        # /2031/05/, /2031/05/17.html
        rf"/{_YEAR}/{_MONTH}(?:/{_DAY})?(?=[/?.]|$)",
        rf"/{_ANY_AGE}/{_MONTH}/{_DAY}(?=[/?.]|$)",
        # 2031-05, 2031-05-17 as a segment or value of their own
        rf"(?<![^/?&;=_]){_ANY_AGE}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?(?![\d-])",
        # weeks: 2031-W05, /2031/week/5
        rf"(?<![^/?&;=_]){_ANY_AGE}[-/_]?(?:w|week|kw)[-/_]?(?:0?[1-9]|[1-4]\d|5[0-3])(?!\d)",
        # ?year=2031&month=5, in any order; ?date=20310517. Names are bounded, so that a hostile query costs little.
        rf"[?&;][\w.\[-]{{0,30}}(?:year|jahr|yr)\]?={_ANY_AGE}(?!\d)",
        rf"[?&;][\w.\[-]{{0,30}}(?:date|datum|day|month|week|cal)[\w.\]-]{{0,30}}={_ANY_AGE}"
        r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?(?!\d)",
    )
)
# ?start=1764288000: a time in seconds, or in thousandths, since 1970. Fewer digits are mostly not times.
_SECONDS = re.compile(
    r"[?&;][\w.\[-]{0,30}(?:time|stamp|ts|epoch|start|from|date|datum|day|month|week|cal)[\w.\]-]{0,30}="
    r"(\d{9,10})(?:\d{3})?(?!\d)",
    re.IGNORECASE | re.ASCII,
)
_YEAR_OF_SECONDS = 31_556_952
_ANY_YEAR = re.compile("1[0-9][0-9][0-9]|2[01][0-9][0-9]|[0-9]{9}")
_SEPARATOR = re.compile("[&;]")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a URL, in settings of `[crawl]`; 0 is no bound.

    `latest_year` is the last year to which a calendar is followed: the year of the crawl plus `max_years_ahead`.
    `earliest_year` is the first one, the year of the crawl less `max_years_back`.
    """

    settings: CrawlSettings = CrawlSettings()
    latest_year: int = 0
    earliest_year: int = 0


def trap_in(url: str, bounds: Bounds) -> str | None:
    """Return the word for the trap that a canonical URL resembles; None if it resembles none."""
    settings = bounds.settings
    path, mark, query = url.partition("?")
    slashes = path.count("/") - 2
    if too_much := _beyond(url, slashes):
        return too_much
    if settings.max_path_depth and slashes > settings.max_path_depth:
        return PATH_DEPTH
    if settings.max_repeats and slashes > settings.max_repeats and repeats(path) > settings.max_repeats:
        return REPEATS
    if mark and _explodes(query, settings):
        return PARAMETERS
    if (bounds.latest_year or bounds.earliest_year) and _ANY_YEAR.search(url) and _is_far(url, bounds):
        return CALENDAR
    return None


def _is_far(url: str, bounds: Bounds) -> bool:
    """Return whether the dates in a URL lie too far ahead or back."""
    years = years_in(url)
    if not years:
        return False
    return bool(bounds.latest_year and max(years) > bounds.latest_year) or max(years) < bounds.earliest_year


def beyond_all(url: str) -> str | None:
    """Return the word for the fixed limit that a canonical URL exceeds, whatever the settings; else None."""
    return _beyond(url, url.partition("?")[0].count("/") - 2)


def _beyond(url: str, slashes: int) -> str | None:
    if len(url) > LONGEST_URL:
        return LENGTH
    return PATH_DEPTH if slashes > MOST_SEGMENTS else None


def repeats(path: str) -> int:
    """Return the count of the most frequent segment in a URL without its query (`/a/b/a/b/a/b/`: 3)."""
    return max(Counter(path.split("/")[3:]).values(), default=0)


def latest_year_in(url: str) -> int | None:
    """Return the latest year of the calendar dates in a URL; None without a date."""
    return max(years_in(url), default=None)


def years_in(url: str) -> list[int]:
    """Return the years of the calendar dates in a URL.

    A date is a year with a month or week, or a parameter whose name denotes a date or a time. A number alone is none.
    """
    rest = f"/{unquote(url.partition('://')[2].partition('/')[2])}"
    years = [int(year) for pattern in _DATES for year in pattern.findall(rest)]
    return years + [1970 + int(seconds) // _YEAR_OF_SECONDS for seconds in _SECONDS.findall(rest)]


_DIGITS = re.compile(r"-?[0-9]+")
_TOKEN = re.compile(r"(?=[^/?&=;]*[0-9])(?=[^/?&=;]*[A-Za-z])[A-Za-z0-9_-]{20,}")
_NUMBERS = re.compile("(?:/#)+")
#: Characters of a pattern that reports show.
_LONGEST_PATTERN = 200


@lru_cache(maxsize=1 << 14)  # pages of a site share most of their links
def pattern_of(url: str) -> str:
    """Return the pattern of a canonical URL: `www.e.org/calendar/#?view=week&from=#`.

    `#` stands for digits, also in several segments in a row, and `*` for a long value of letters and digits.
    """
    domain, slash, rest = url.partition("://")[2].partition("/")
    path, mark, query = rest.partition("?")
    path = _NUMBERS.sub("/#", _DIGITS.sub("#", _TOKEN.sub("*", slash + path)).rstrip("/"))
    if mark:
        values = sorted(set(_SEPARATOR.split(_DIGITS.sub("#", _TOKEN.sub("*", query)))))
        query = "?" + "&".join(values)
    return (domain + path + query).replace(",", "%2C")[:_LONGEST_PATTERN]


def _explodes(query: str, settings: CrawlSettings) -> bool:
    """Return whether a query has too many parameters, or too many repetitions of one parameter with its value."""
    parameters = _SEPARATOR.split(query)
    if settings.max_parameters and len(parameters) > settings.max_parameters:
        return True
    if not settings.max_repeats or len(parameters) <= settings.max_repeats:
        return False
    return max(Counter(parameters).values()) > settings.max_repeats


# == scope, pure ======================================================================================================


_PORT = re.compile(r":[\d*?]+$")


@dataclass(frozen=True, slots=True)
class ScopeVerdict:
    """The reason why a URL is refused: the fetch status in crawl.log, and a word for its annotations."""

    status: Status
    reason: str


EXCLUDED = ScopeVerdict(Status.OUT_OF_SCOPE, Reason.EXCLUDED)
EXCLUDED_HOST = ScopeVerdict(Status.OUT_OF_SCOPE, Reason.EXCLUDED_HOST)
FOREIGN_HOST = ScopeVerdict(Status.OUT_OF_SCOPE, Reason.FOREIGN_HOST)
PRIVATE_ADDRESS = ScopeVerdict(Status.OUT_OF_SCOPE, Reason.PRIVATE_ADDRESS)
OUTSIDE_PATHS = ScopeVerdict(Status.OUT_OF_SCOPE, Reason.PATHS)
EXTENSION = ScopeVerdict(Status.OUT_OF_SCOPE, Reason.EXTENSION)
TYPE = ScopeVerdict(Status.TYPE, Reason.TYPE)
TOO_DEEP_ON_SERVER = ScopeVerdict(Status.TOO_MANY_HOPS, Reason.SERVER_DEPTH)
TOO_DEEP = ScopeVerdict(Status.TOO_MANY_HOPS, Reason.TOO_DEEP)
RESOURCE_DEPTH = ScopeVerdict(Status.TOO_MANY_HOPS, Reason.RESOURCE_DEPTH)
#: Resources in a row without a link: a frame in a frame, a style that imports a style. Browsers have no such bound.
MOST_EMBEDDED = 5


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """The bounds of one job.

    `hosts` are the archive domains (`urls.domain_of`) of start URLs and of their redirect targets. `patterns` and
    `exclude` are host names in which `*` matches any characters and `?` matches one. A pattern with a port
    (`*.e.org:8080`) is compared with host and port, any other with the host alone. `exclude` precedes all other rules.
    `private_addresses` allows hosts at private addresses, `private_resources` also those that are no hosts of the job,
    and only have what its pages need; `private_hosts` narrows it to some hosts of the job. `left_out` are hosts, or
    hosts and paths (`e.org/old/*`), that the publication leaves out; they precede the rest, too. `paths` are the parts
    that belong to the job, with or without a host before them; none means all. `extensions` and `types` say what is
    not fetched.
    """

    hosts: frozenset[str]
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 5
    resources: PageResources = PageResources.HOSTS
    traps: Bounds = field(default_factory=Bounds)
    private_addresses: bool = False
    private_resources: bool = False
    left_out: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    types: TypeRules = TypeRules()
    servers: tuple[ServerSettings, ...] = ()
    private_hosts: frozenset[str] | None = None


def scope_of(
    publication: Publication, profile: Profile | None, hosts: frozenset[str] = frozenset(), traps: Bounds | None = None
) -> CrawlScope:
    """Return the bounds of a crawl of a publication; `hosts` are further hosts that belong to it."""
    named = frozenset(map(domain_in, publication.named_urls))
    return CrawlScope(
        hosts=named | hosts,
        patterns=publication.hosts,
        exclude=publication.exclude_hosts,
        left_out=tuple(exclusion.match for exclusion in publication.exclude),
        depth=publication.crawl.depth,
        resources=publication.crawl.resources,
        traps=traps or Bounds(publication.crawl),
        private_addresses=may_be_private(publication),
        private_hosts=named if publication.watch else None,
        private_resources=publication.crawl.private_addresses,
        paths=publication.crawl.paths,
        extensions=publication.crawl.exclude_extensions,
        types=TypeRules.of(publication.crawl, profile),
        servers=publication.server,
    )


#: What costs depth; and what belongs to a crawl wherever it lies on its host.
CLICKED = frozenset({LinkKind.LINK, LinkKind.LISTED})
_COUNTED = CLICKED | {LinkKind.REQUISITE}
_NAMED = frozenset({LinkKind.SEED, LinkKind.SITEMAP, LinkKind.FEED})


def judge(  # each bound is a line
    scope: CrawlScope,
    url: str,
    depth: int,
    kind: str,
    *,
    on_server: int = 0,
    is_start: bool = False,
    embedded: int = 0,
) -> ScopeVerdict | None:
    """Return None if `url` (canonical) may enter the frontier at `depth`, else why not.

    `depth` is the depth of `url` itself: one more than its page's for a link, the same as its page's for a redirect or
    a resource, and 1 for what a sitemap lists. `embedded` counts the resources in a row that led to it, over redirects:
    0 for a page. Resources are limited by that, and by hosts unless any host may have them, not by depth or paths. If
    the publication wants no resources, the caller passes a link's depth, and they are judged as links. `on_server` is
    the depth counted from where the crawl came to the server. `is_start`: it is what a start URL redirects to.
    """
    domain = domain_in(url)
    is_resource = (embedded > 0 or kind == LinkKind.REQUISITE) and scope.resources is not PageResources.NONE
    if (foreign := _foreign(scope, url, domain, kind, is_resource=is_resource)) is not None:
        return foreign
    if keeps_out(scope, domain, is_resource=is_resource):
        return PRIVATE_ADDRESS
    if depth > scope.depth and not is_resource and kind in _COUNTED:
        return TOO_DEEP
    if is_resource and embedded > MOST_EMBEDDED:
        return RESOURCE_DEPTH
    if kind not in _NAMED:
        unwanted = _unwanted(scope, url, kind, on_server, is_free=is_start, is_resource=is_resource)
        if unwanted is not None:
            return unwanted
    return _trap(scope, url, kind)


def _trap(scope: CrawlScope, url: str, kind: str) -> ScopeVerdict | None:
    """Return which trap a URL is; None if it is none."""
    # The user names start URLs explicitly: only the fixed limits apply to them.
    trap = beyond_all(url) if kind in (LinkKind.SEED, LinkKind.FEED) else trap_in(url, scope.traps)
    if trap is None:
        return None
    return trapped(CALENDAR, url) if trap == CALENDAR else ScopeVerdict(Status.TRAP, trap)


def trapped(word: str, url: str) -> ScopeVerdict:
    """Return the refusal of a URL that is one of many of a pattern, which it names."""
    return ScopeVerdict(Status.TRAP, f"{word},{Figure.PATTERN}{pattern_of(url)}")


def _foreign(scope: CrawlScope, url: str, domain: str, kind: str, *, is_resource: bool) -> ScopeVerdict | None:
    """Return why the host of a URL, or the part of it, does not belong to the job; None if it does."""
    if matches_host(scope.exclude, domain):
        return EXCLUDED_HOST
    if scope.left_out and any(covers(pattern, domain, url) for pattern in scope.left_out):
        return EXCLUDED
    if kind in (LinkKind.SEED, LinkKind.FEED) or (is_resource and scope.resources is PageResources.ANY):
        return None
    return None if accepts_host(scope, domain) else FOREIGN_HOST


def keeps_out(scope: CrawlScope, domain: str, *, is_resource: bool = False) -> bool:
    """Return whether a host may not be asked since it is at a private address.

    A start URL at such an address opens the hosts of the job, not those that any page may name as its resources'.
    """
    if scope.private_addresses and (scope.private_resources or opens(scope, domain, is_resource=is_resource)):
        return False
    return bool(is_private_domain(domain))


def opens(scope: CrawlScope, domain: str, *, is_resource: bool = True) -> bool:
    """Return whether a start URL at a private address opens that of a host as well: a host of the job.

    The feed that a publication watches opens its own host alone: what it lists comes from others.
    """
    if scope.private_hosts is not None:
        return domain in scope.private_hosts
    return not is_resource or accepts_host(scope, domain)


def _unwanted(  # what it is, and from where
    scope: CrawlScope, url: str, kind: str, on_server: int, *, is_free: bool, is_resource: bool
) -> ScopeVerdict | None:
    """Return why a URL of an accepted host is no part of the publication; None if it is one. `is_free`: of a start."""
    if scope.paths and not is_resource and not is_free and not _on_paths(scope.paths, url):
        return OUTSIDE_PATHS
    if scope.extensions and has_extension(url, scope.extensions):
        return EXTENSION
    if not is_free and scope.types.spares_url(url):
        return TYPE
    if scope.servers and kind in CLICKED:
        own = server_of(scope.servers, domain_in(url))
        if own is not None and own.depth is not None and on_server > own.depth:
            return TOO_DEEP_ON_SERVER
    return None


def server_of(servers: tuple[ServerSettings, ...], domain: str) -> ServerSettings | None:
    """Return the settings of a server, the first whose host matches; None if it has none."""
    return next((server for server in servers if matches_host((server.host,), domain)), None)


def fetcher_of(publication: Publication, url: str) -> Fetcher:
    """Return what shows a page: a rule of its path, else the setting of its server, else that of the publication."""
    if publication.browser and _on_paths(tuple(rule.match for rule in publication.browser), url):
        return Fetcher.BROWSER
    own = server_of(publication.server, domain_in(url))
    return Fetcher(publication.crawl.fetcher if own is None or own.fetcher is None else own.fetcher)


def may_show_pages(publication: Publication) -> bool:
    """Return whether a browser may show any page of a publication."""
    servers = (server.fetcher for server in publication.server)
    is_any = any(fetcher not in (None, Fetcher.WGET) for fetcher in (publication.crawl.fetcher, *servers))
    return is_any or bool(publication.browser)


def wait_of(publication: Publication, ordered: Mapping[str, float], domain: str) -> float:
    """Return the seconds between two requests to a server: as people ordered, by pattern, else by the settings."""
    given = next((wait for host, wait in ordered.items() if matches_host((host,), domain)), None)
    if given is not None:
        return given
    own = server_of(publication.server, domain)
    return publication.crawl.wait if own is None or own.wait is None else own.wait


def _on_paths(patterns: tuple[str, ...], url: str) -> bool:
    domain = domain_in(url)
    return any(covers(pattern if pattern[0] != "/" else f"*{pattern}", domain, url) for pattern in patterns)


def accepts_host(scope: CrawlScope, domain: str) -> bool:
    """Return whether pages of `domain` (a host, with a port unless it is the scheme's default) belong to the job."""
    return not matches_host(scope.exclude, domain) and (domain in scope.hosts or matches_host(scope.patterns, domain))


def domain_in(url: str) -> str:
    """Return the domain of a canonical URL: as `urls.domain_of`, but without parsing, since it runs for every link."""
    return url.partition("://")[2].partition("/")[0]


def embedded_in(hops: str) -> int:
    """Return how many resources in a row, one in another, the hops by which a URL was found end with."""
    return hops.rpartition("L")[2].rpartition("M")[2].count("E")


def matches_host(patterns: tuple[str, ...], domain: str) -> bool:
    """Return whether a domain is one of these hosts, in which `*` matches any characters and `?` one."""
    return bool(patterns) and any(_regex(pattern).fullmatch(domain) for pattern in patterns)


def covers(pattern: str, domain: str, url: str) -> bool:
    """Return whether a URL of a domain matches a host, or a host and a path, in which `*` matches any characters."""
    host, slash, path = pattern.partition("/")
    if not _regex(host).fullmatch(domain):
        return False
    return not slash or _path_regex(path).fullmatch(url.partition("://")[2].partition("/")[2]) is not None


@lru_cache(maxsize=1024)
def _path_regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    """Return a pattern as a regular expression on domains; without a port it matches any port."""
    host = ".".join(_punycode(label) for label in pattern.strip().lower().split("."))
    any_port = "" if _PORT.search(host) else r"(?::\d+)?"
    # Not fnmatch: it reads the brackets of an IPv6 address as a character set.
    return re.compile(re.escape(host).replace(r"\*", ".*").replace(r"\?", ".") + any_port)


def _punycode(label: str) -> str:
    try:
        return label if label.isascii() else idna.encode(label, uts46=True).decode("ascii")
    except idna.IDNAError:
        return label
