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
from agent.policy.vocabulary import LinkKind, Reason

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
TOO_DEEP = Verdict(Status.TOO_MANY_HOPS, Reason.TOO_DEEP)


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of one job.

    `hosts` are the archive domains (`url.domain_of`) of start URLs and of their redirect targets. `patterns` and
    `exclude` are host names in which `*` matches any characters and `?` matches one. A pattern with a port
    (`*.e.org:8080`) is compared with host and port, any other with the host alone. `exclude` precedes all other rules.
    `private_addresses` allows hosts at private addresses. `left_out` are hosts, or hosts and paths (`e.org/old/*`),
    that the publication leaves out; they precede the rest, too.
    """

    hosts: frozenset[str]
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 5
    page_requisites: bool = True
    traps: traps.Bounds = field(default_factory=traps.Bounds)
    private_addresses: bool = False
    left_out: tuple[str, ...] = ()


def judge(scope: Scope, url: str, depth: int, kind: str) -> Verdict | None:
    """Return None if `url` (canonical) may enter the frontier at `depth`, else why not.

    `depth` is the depth of `url` itself: one more than its page's for a link, the same as its page's for a redirect or
    a requisite. Requisites are limited by hosts, not by depth. If the publication does not want requisites, the caller
    passes a link's depth, and they are judged as links.
    """
    domain = domain_in(url)
    if _matches(scope.exclude, domain):
        return EXCLUDED_HOST
    if scope.left_out and any(_covers(pattern, domain, url) for pattern in scope.left_out):
        return EXCLUDED
    if kind != LinkKind.SEED and not accepts_host(scope, domain):
        return FOREIGN_HOST
    if not scope.private_addresses and is_private_domain(domain):
        return PRIVATE_ADDRESS
    if depth > scope.depth and (kind == LinkKind.LINK or (kind == LinkKind.REQUISITE and not scope.page_requisites)):
        return TOO_DEEP
    # The user names start URLs explicitly: only the fixed limits apply to them.
    trap = traps.beyond_all(url) if kind == LinkKind.SEED else traps.why(url, scope.traps)
    return Verdict(Status.TRAP, trap) if trap is not None else None


def accepts_host(scope: Scope, domain: str) -> bool:
    """Return whether pages of `domain` (a host, with a port unless it is the scheme's default) belong to the job."""
    return not _matches(scope.exclude, domain) and (domain in scope.hosts or _matches(scope.patterns, domain))


def domain_in(url: str) -> str:
    """Return the domain of a canonical URL: as `url.domain_of`, but without parsing, since it runs for every link."""
    return url.partition("://")[2].partition("/")[0]


def _matches(patterns: tuple[str, ...], domain: str) -> bool:
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
