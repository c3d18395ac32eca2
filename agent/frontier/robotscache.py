"""Decides which URLs robots.txt allows, from the responses stored in the frontier (RFC 9309).

wget fetches robots.txt like other URLs, before any other URL of its origin. A response is valid for a day.
"""

from __future__ import annotations

from enum import Enum

from agent.frontier.rows import FoundUrl
from agent.frontier.store import Frontier
from agent.policy import robotstxt
from agent.policy.vocabulary import LinkKind, UrlState
from webarcfs.archive.model.redirects import STATUSES
from webarcfs.archive.model.url import domain_of
from webarcfs.archive.system.cache import Cache

_DAY = 86400.0
_MOST_REDIRECTS = 5  # RFC 9309 section 2.3.1.2
#: Characters of robots.txt whose rules are kept, with as many as an empty one counts; others are parsed again.
_KEPT, _EMPTY = 16 << 20, 1_000


class Permission(Enum):
    """The decision of robots.txt on a URL."""

    YES = "yes"
    NO = "no"
    ASK = "ask"  # robots.txt must be fetched first
    UNAVAILABLE = "unavailable"  # it could not be fetched: no URL may be (RFC 9309 section 2.3.1.4)


class RobotsCache:
    """The rules of all origins of a job."""

    def __init__(self, frontier: Frontier, user_agent: str) -> None:
        self._frontier = frontier
        self._user_agent = user_agent
        self._rules = _rules()

    def say(self, url: str, now: float) -> Permission:
        """Return whether `url` may be fetched; `now` in seconds since 1970. ASK adds its robots.txt to the frontier."""
        root = robotstxt.robots_url(url)
        answer = self._answer(root, now)
        if answer is None:
            return Permission.ASK
        rules = self._parsed(root, *answer)
        if not rules.known:
            return Permission.UNAVAILABLE
        return Permission.YES if robotstxt.allowed(rules, self._user_agent, url) else Permission.NO

    def delay(self, url: str, now: float) -> float:
        """Return the Crawl-delay of the origin, in seconds; 0 without one."""
        root = robotstxt.robots_url(url)
        answer = self._answer(root, now)
        return (robotstxt.crawl_delay(self._parsed(root, *answer), self._user_agent) or 0.0) if answer else 0.0

    def _answer(self, root: str, now: float) -> tuple[int, bytes] | None:
        """Return the final status and body of a robots.txt, redirects followed; None while one must be fetched."""
        url = root
        for _ in range(_MOST_REDIRECTS + 1):
            known = self._frontier.robots(url)
            if known is None or known[2] < now - _DAY:
                return self._ask(url, known is not None)
            status, body, _ = known
            if status not in STATUSES or not body:
                return status, body
            url = body.decode("utf-8", "replace")
        return 404, b""

    def _ask(self, url: str, again: bool) -> tuple[int, bytes] | None:
        row = self._frontier.by_url(url)
        if row is None:
            # The depth -1 puts it before all other waiting URLs.
            self._frontier.add([FoundUrl(url=url, domain=domain_of(url), kind=LinkKind.ROBOTS, depth=-1, hops="P")])
        elif row.kind != LinkKind.ROBOTS:
            return 404, b""  # a redirect to a page of the crawl: no rules
        elif again and row.state in (UrlState.DONE, UrlState.FAILED):
            self._frontier.again(row.id)
            self._rules = _rules()
        return None

    def _parsed(self, root: str, status: int, body: bytes) -> robotstxt.RobotsRules:
        return self._rules.get(root, lambda: robotstxt.parse(status, body))


def _rules() -> Cache[str, robotstxt.RobotsRules]:
    return Cache(_KEPT, lambda rules: len(rules.text) + _EMPTY)
