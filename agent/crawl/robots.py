"""Decides what a server's robots.txt permits (RFC 9309), from its status and body. Pure; protego matches the rules.

`RobotsRules` can be rebuilt from the stored status and text: `parse(rules.status, rules.text.encode())`.

`RobotsCache` decides by the responses that are stored in the frontier. wget fetches robots.txt like other URLs, before
any other URL of its origin. A response is valid for a day.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from protego import Protego

from agent.crawl.frontier import FoundUrl, Frontier
from agent.crawl.vocabulary import LinkKind, UrlState
from webarcfs.archive.model.url_lists import STATUSES
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.model.urls import parse as parse_url
from webarcfs.archive.system.cache import Cache

# == robots.txt, pure =================================================================================================


#: Bytes of a robots.txt that are parsed (RFC 9309 section 2.5: at least 500 KiB).
LONGEST_BODY = 512 << 10
#: The longest Crawl-delay in seconds; a longer one would amount to a refusal.
LONGEST_DELAY = 60.0

#: Sitemaps that one robots.txt may name.
MOST_NAMED = 1_000

# protego stores each rule of a group once per agent of the group. Without a bound, one group of 512 KiB, half of it
# agents and half of it rules, would become hundreds of millions of rules.
_MOST_AGENTS = 2_000
_MOST_RULES = 200_000
_AGENT_LINE = re.compile(r"\s*user[ -]?agent\b", re.IGNORECASE)
_RULE_LINE = re.compile(r"\s*(?:dis)?allow\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of a server: `status` and `text` of the response to robots.txt.

    `known` is false after a server error or without a connection: then nothing may be fetched yet, and robots.txt must
    be requested again later (RFC 9309 section 2.3.1.4).
    """

    status: int
    text: str
    known: bool
    parser: Protego | None = field(default=None, compare=False, repr=False)


def parse(status: int, body: bytes) -> RobotsRules:
    """Return the rules of a robots.txt; `status` is the HTTP status, or negative without a response.

    2xx: the rules in the body. 4xx, and an unresolved redirect: everything is allowed (RFC 9309 sections 2.3.1.2 and
    2.3.1.3). Any other status: not known. Never raises because of the body's content.
    """
    if 200 <= status < 300:
        text = _decode(body)
        return RobotsRules(status, text, known=True, parser=_parser(text))
    return RobotsRules(status, "", known=300 <= status < 500)


def allowed(rules: RobotsRules, user_agent: str, url: str) -> bool:
    """Return whether `user_agent` may fetch `url` (canonical). Nothing is allowed while the rules are not known."""
    if rules.parser is None:
        return rules.known
    try:
        return bool(rules.parser.can_fetch(url, product_token(user_agent)))
    except ValueError:  # protego splits the URL again, and urlsplit rejects some URLs that wget can fetch
        return True


def crawl_delay(rules: RobotsRules, user_agent: str) -> float | None:
    """Return the Crawl-delay in seconds, at most LONGEST_DELAY; None without one."""
    if rules.parser is None:
        return None
    delay = rules.parser.crawl_delay(product_token(user_agent))
    return None if delay is None else min(float(delay), LONGEST_DELAY)


def sitemaps(rules: RobotsRules) -> list[str]:
    """Return the sitemaps that a robots.txt names, as written, each once and at most MOST_NAMED of them."""
    if rules.parser is None:
        return []
    return list(islice(dict.fromkeys(map(str, rules.parser.sitemaps)), MOST_NAMED))


def robots_url(url: str) -> str:
    """Return the URL of the robots.txt for `url`, on its scheme, host and port. Raises UrlRefused as `urls.parse`."""
    parts = parse_url(url)
    return f"{parts.scheme}://{parts.domain}/robots.txt"


def product_token(user_agent: str) -> str:
    """Return the token that groups are matched with: `webarcfs` of `webarcfs/1.0 (+…)` (RFC 9309 section 2.2.1)."""
    return user_agent.partition("/")[0].strip()


def _decode(body: bytes) -> str:
    body = body.removeprefix(codecs.BOM_UTF8)
    if len(body) > LONGEST_BODY:
        # A truncated rule is another rule: `Disallow: /` instead of `Disallow: /private`.
        body = body[: max(body.rfind(b"\n", 0, LONGEST_BODY), body.rfind(b"\r", 0, LONGEST_BODY)) + 1]
    return body.decode("utf-8", "replace")


def _parser(text: str) -> Protego | None:
    try:
        return Protego.parse("\n".join(_bounded(text)))
    except ValueError:  # not readable as rules: a crawler ignores unparsable content (RFC 9309 section 2.2)
        return None


def _bounded(text: str) -> Iterator[str]:
    """Yield the lines of `text` until its groups would make too many rules."""
    agents, weight, in_rules = 0, 0, False
    for line in text.splitlines():
        if _AGENT_LINE.match(line):
            agents = 1 if in_rules else agents + 1
            in_rules = False
        else:
            in_rules = in_rules or _RULE_LINE.match(line) is not None
            weight += max(agents, 1) * (1 + line.count("$"))
        if agents > _MOST_AGENTS or weight > _MOST_RULES:
            return
        yield line


# == robots cache =====================================================================================================


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
        root = robots_url(url)
        answer = self._answer(root, now)
        if answer is None:
            return Permission.ASK
        rules = self._parsed(root, *answer)
        if not rules.known:
            return Permission.UNAVAILABLE
        return Permission.YES if allowed(rules, self._user_agent, url) else Permission.NO

    def delay(self, url: str, now: float) -> float:
        """Return the Crawl-delay of the origin, in seconds; 0 without one."""
        root = robots_url(url)
        answer = self._answer(root, now)
        return (crawl_delay(self._parsed(root, *answer), self._user_agent) or 0.0) if answer else 0.0

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

    def _parsed(self, root: str, status: int, body: bytes) -> RobotsRules:
        return self._rules.get(root, lambda: parse(status, body))


def _rules() -> Cache[str, RobotsRules]:
    return Cache(_KEPT, lambda rules: len(rules.text) + _EMPTY)
