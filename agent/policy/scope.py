"""What enters the frontier, and with which word crawl.log says why the rest does not. Pure.

The hosts are those of the start URLs, what those redirect to, and what the publication accepts beside them (/Cr-7.4/,
seed 3); the depth is counted in links from a start URL (/Cr-1.1/); the guards of `traps` keep out what never ends.
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
    """Why a URL stays out: the fetch status of crawl.log, and a word for its annotations."""

    status: Status
    reason: str


EXCLUDED_HOST = Verdict(Status.OUT_OF_SCOPE, Reason.EXCLUDED_HOST)
FOREIGN_HOST = Verdict(Status.OUT_OF_SCOPE, Reason.FOREIGN_HOST)
PRIVATE_ADDRESS = Verdict(Status.OUT_OF_SCOPE, Reason.PRIVATE_ADDRESS)
TOO_DEEP = Verdict(Status.TOO_MANY_HOPS, Reason.TOO_DEEP)


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of one job.

    `hosts` are archive domains (`url.domain_of`) of start URLs and of what those redirect to. `patterns` and `exclude`
    are host names in which `*` stands for any characters and `?` for one; one with a port (`*.e.org:8080`) is compared
    with host and port, any other with the host alone. `exclude` goes before everything else. `private_addresses`
    says whether the job may ask hosts at such.
    """

    hosts: frozenset[str]
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 5
    page_requisites: bool = True
    traps: traps.Bounds = field(default_factory=traps.Bounds)
    private_addresses: bool = False


def judge(scope: Scope, url: str, depth: int, kind: str) -> Verdict | None:
    """Whether `url` (canonical) may enter the frontier at `depth`: None, or why not.

    `depth` is that of `url` itself: a link's is one more than its page's, a redirect's and a requisite's the same as
    that of what they were found on, since those cost nothing. Requisites are bound by hosts and not by depth; where the
    publication wants none, the caller gives one a link's depth, and it is judged as a link.
    """
    domain = domain_in(url)
    if _matches(scope.exclude, domain):
        return EXCLUDED_HOST
    if kind != LinkKind.SEED and not accepts_host(scope, domain):
        return FOREIGN_HOST
    if not scope.private_addresses and is_private_domain(domain):
        return PRIVATE_ADDRESS
    if depth > scope.depth and (kind == LinkKind.LINK or (kind == LinkKind.REQUISITE and not scope.page_requisites)):
        return TOO_DEEP
    # Whoever names a start URL wants it.
    trap = traps.beyond_all(url) if kind == LinkKind.SEED else traps.why(url, scope.traps)
    return Verdict(Status.TRAP, trap) if trap is not None else None


def accepts_host(scope: Scope, domain: str) -> bool:
    """Whether pages of `domain` (host, with a port where it is not the scheme's own) belong to the job."""
    return not _matches(scope.exclude, domain) and (domain in scope.hosts or _matches(scope.patterns, domain))


def domain_in(url: str) -> str:
    """The domain of a URL that is known to be canonical; `url.domain_of` for one lookup in a million."""
    return url.partition("://")[2].partition("/")[0]


def _matches(patterns: tuple[str, ...], domain: str) -> bool:
    return bool(patterns) and any(_regex(pattern).fullmatch(domain) for pattern in patterns)


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression on domains; without a port it takes any."""
    host = ".".join(_punycode(label) for label in pattern.strip().lower().split("."))
    any_port = "" if _PORT.search(host) else r"(?::\d+)?"
    # Not fnmatch: to it the brackets of an IPv6 address are a set of characters.
    return re.compile(re.escape(host).replace(r"\*", ".*").replace(r"\?", ".") + any_port)


def _punycode(label: str) -> str:
    try:
        return label if label.isascii() else idna.encode(label, uts46=True).decode("ascii")
    except idna.IDNAError:
        return label
