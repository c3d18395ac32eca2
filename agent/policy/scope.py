"""Decides which URLs enter the frontier, and gives the reason in crawl.log for the refused ones. Pure.

Accepted are the hosts of the start URLs, the hosts that those redirect to, and the publication's patterns (/Cr-7.4/,
seed 3). Depth is counted in links from a start URL (/Cr-1.1/). The guards of `traps` refuse endless sites.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import idna

from agent.policy import traps
from agent.policy.addresses import is_private_domain
from agent.policy.fetchstatus import Status
from agent.policy.typerules import TypeRules, has_extension
from agent.policy.vocabulary import LinkKind, Reason
from webarcfs.archive.config.settings import ServerSettings

_PORT = re.compile(r":[\d*?]+$")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reason why a URL is refused: the fetch status in crawl.log, and a word for its annotations."""

    status: Status
    reason: str


EXCLUDED = Verdict(Status.OUT_OF_SCOPE, Reason.EXCLUDED)
EXCLUDED_HOST = Verdict(Status.OUT_OF_SCOPE, Reason.EXCLUDED_HOST)
FOREIGN_HOST = Verdict(Status.OUT_OF_SCOPE, Reason.FOREIGN_HOST)
PRIVATE_ADDRESS = Verdict(Status.OUT_OF_SCOPE, Reason.PRIVATE_ADDRESS)
OUTSIDE_PATHS = Verdict(Status.OUT_OF_SCOPE, Reason.PATHS)
EXTENSION = Verdict(Status.OUT_OF_SCOPE, Reason.EXTENSION)
TYPE = Verdict(Status.TYPE, Reason.TYPE)
TOO_DEEP_ON_SERVER = Verdict(Status.TOO_MANY_HOPS, Reason.SERVER_DEPTH)
TOO_DEEP = Verdict(Status.TOO_MANY_HOPS, Reason.TOO_DEEP)


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of one job.

    `hosts` are the archive domains (`url.domain_of`) of start URLs and of their redirect targets. `patterns` and
    `exclude` are host names in which `*` matches any characters and `?` matches one. A pattern with a port
    (`*.e.org:8080`) is compared with host and port, any other with the host alone. `exclude` precedes all other rules.
    `private_addresses` allows hosts at private addresses. `left_out` are hosts, or hosts and paths (`e.org/old/*`),
    that the publication leaves out; they precede the rest, too. `paths` are the parts that belong to the job, with or
    without a host before them; none means all. `extensions` and `types` say what is not fetched.
    """

    hosts: frozenset[str]
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 5
    page_requisites: bool = True
    traps: traps.Bounds = field(default_factory=traps.Bounds)
    private_addresses: bool = False
    left_out: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    types: TypeRules = TypeRules()
    servers: tuple[ServerSettings, ...] = ()


def judge(
    scope: Scope, url: str, depth: int, kind: str, *, on_server: int = 0, is_start: bool = False
) -> Verdict | None:
    """Return None if `url` (canonical) may enter the frontier at `depth`, else why not.

    `depth` is the depth of `url` itself: one more than its page's for a link, the same as its page's for a redirect or
    a requisite. Requisites are limited by hosts, not by depth. If the publication does not want requisites, the caller
    passes a link's depth, and they are judged as links. `on_server` is the depth counted from where the crawl came to
    the server. `is_start`: it is what a start URL redirects to.
    """
    domain = domain_in(url)
    if (foreign := _foreign(scope, url, domain, kind)) is not None:
        return foreign
    if not scope.private_addresses and is_private_domain(domain):
        return PRIVATE_ADDRESS
    if depth > scope.depth and (kind == LinkKind.LINK or (kind == LinkKind.REQUISITE and not scope.page_requisites)):
        return TOO_DEEP
    if kind != LinkKind.SEED and (unwanted := _unwanted(scope, url, kind, on_server, is_start)) is not None:
        return unwanted
    # The user names start URLs explicitly: only the fixed limits apply to them.
    trap = traps.beyond_all(url) if kind == LinkKind.SEED else traps.why(url, scope.traps)
    return Verdict(Status.TRAP, trap) if trap is not None else None


def _foreign(scope: Scope, url: str, domain: str, kind: str) -> Verdict | None:
    """Return why the host of a URL, or the part of it, does not belong to the job; None if it does."""
    if matches(scope.exclude, domain):
        return EXCLUDED_HOST
    if scope.left_out and any(_covers(pattern, domain, url) for pattern in scope.left_out):
        return EXCLUDED
    return FOREIGN_HOST if kind != LinkKind.SEED and not accepts_host(scope, domain) else None


def _unwanted(scope: Scope, url: str, kind: str, on_server: int, is_start: bool) -> Verdict | None:
    """Return why a URL of an accepted host is no part of the publication; None if it is one."""
    is_requisite = kind == LinkKind.REQUISITE and scope.page_requisites
    if scope.paths and not is_requisite and not is_start and not _on_paths(scope.paths, url):
        return OUTSIDE_PATHS
    if scope.extensions and has_extension(url, scope.extensions):
        return EXTENSION
    if not is_start and scope.types.spares_url(url):
        return TYPE
    if scope.servers and kind == LinkKind.LINK:
        own = server_of(scope.servers, domain_in(url))
        if own is not None and own.depth is not None and on_server > own.depth:
            return TOO_DEEP_ON_SERVER
    return None


def server_of(servers: tuple[ServerSettings, ...], domain: str) -> ServerSettings | None:
    """Return the settings of a server, the first whose host matches; None if it has none."""
    return next((each for each in servers if matches((each.host,), domain)), None)


def _on_paths(patterns: tuple[str, ...], url: str) -> bool:
    domain = domain_in(url)
    return any(_covers(each if each[0] != "/" else f"*{each}", domain, url) for each in patterns)


def accepts_host(scope: Scope, domain: str) -> bool:
    """Return whether pages of `domain` (a host, with a port unless it is the scheme's default) belong to the job."""
    return not matches(scope.exclude, domain) and (domain in scope.hosts or matches(scope.patterns, domain))


def domain_in(url: str) -> str:
    """Return the domain of a canonical URL: as `url.domain_of`, but without parsing, since it runs for every link."""
    return url.partition("://")[2].partition("/")[0]


def matches(patterns: tuple[str, ...], domain: str) -> bool:
    """Return whether a domain is one of these hosts, in which `*` matches any characters and `?` one."""
    return bool(patterns) and any(_regex(pattern).fullmatch(domain) for pattern in patterns)


def _covers(pattern: str, domain: str, url: str) -> bool:
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
