"""What servers ask of a crawl: pauses and retries after 429, 503 and other errors, and what robots.txt permits.

Pauses (RFC 6585 section 4, RFC 9110 section 10.2.3): how long, how often, and when a server is given up are decided
here; which statuses pass, in `vocabulary.py`. Others apply it:

1. `crawl/wget.py` has wget write the heads of responses into its log, if there is a wait between requests.
2. `crawl/wget.py` reads status and Retry-After from the log while wget runs (`asks_for_pause`, `pause`). It counts
   single responses in a row (`in_a_row`); the count is kept in the server's lock file, for all jobs.
3. `crawl/wgetpool.py` stops that wget for the pause, or ends it (`is_held`), and writes the pause into the server's
   lock file (`crawl/server_locks.py`), so that no job sends a request before it is over.
4. `crawl/wget.py` gives the URL the outcome that is decided here: waiting until its next try, or failed (`next_try`).
   sql/frontier/settle.sql counts the tries.
5. `crawl/disposition.py` counts whole batches in a row (`in_a_row`), for its own run, and gives a server up
   (`is_given_up`).

Without a wait between requests, the log has no heads, so 2 and 3 see nothing: wget is neither stopped nor ended, and no
pause is recorded. The URL that was refused still waits (4), and the server is given up (5).

A URL without a usable response waits for its next try, or has failed. The frontier does the retries: after an outcome
that may improve, the URL waits until `not_before`. Times are in seconds since 1970.

What robots.txt permits (RFC 9309) is decided from its status and body; protego matches the rules.

`RobotsRules` can be rebuilt from the stored status and text: `parse_robots(rules.status, rules.text.encode())`.

`RobotsCache` decides by the responses that are stored in the frontier. wget fetches robots.txt like other URLs, before
any other URL of its origin. A response is valid for a day.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum
from itertools import islice

from protego import Protego

from agent.crawl.frontier import FoundUrl, Frontier, FrontierUrl, UrlOutcome
from agent.crawl.vocabulary import LinkKind, Reason, Status, UrlState
from webarcfs.archive.model.url_lists import STATUSES
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.model.urls import parse as parse_url
from webarcfs.archive.system.cache import Cache

# == politeness, pure =================================================================================================


#: The longest pause in seconds, whatever a server asks for: an hour.
LONGEST_PAUSE = 3600.0
#: For pauses of up to this many seconds, wget is stopped and keeps its slot and buffers; for longer ones it is ended.
LONGEST_HOLD = 60.0
#: Requests for a pause in a row after which a server, or a page, is given up.
PATIENCE = 6
#: Tries after which a URL has failed, and attempts in a row after which an unreachable server is given up.
TRIES = 3
#: Annotations in crawl.log: of a response that asked for a pause, and of the URLs of a server given up for pauses.
BUSY = Reason.BUSY
SERVER_BUSY = Reason.SERVER_BUSY


def retry_after(value: str, now: float) -> float | None:
    """Return the seconds that a Retry-After field asks to wait, 0 to LONGEST_PAUSE; None if it is not valid.

    `value` is a number of seconds or an HTTP date; `now` is in seconds since 1970.
    """
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:10]), LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(text)
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE)


def asks_for_pause(status: int, value: str, now: float) -> bool:
    """Return whether a response asks for a pause of the whole server: 429 always, 503 only with Retry-After.

    A 503 without Retry-After is mostly one broken page.
    """
    return status == 429 or (status == 503 and retry_after(value, now) is not None)


def pause(value: str, in_a_row: int, wait: float, now: float) -> float:
    """Return the length of a requested pause in seconds: Retry-After, else doubled with each request in a row.

    `in_a_row` is the number of requests for a pause before this one, `wait` the crawl's pause between two requests.
    """
    asked = retry_after(value, now)
    backing_off = max(wait, 1.0) * 2.0 ** min(in_a_row, 12)
    return min(max(asked if asked is not None else backing_off, wait), LONGEST_PAUSE)


def in_a_row(before: int, asking: int, responses: int = 1, *, failing: int = 0) -> int:
    """Return how many requests for a pause a server has made in a row, after more `responses`; `before` is the count.

    `asking` of the responses ask for a pause, `failing` ones have another status of 500 or above. If all ask, they are
    added; if all fail, the count stays; otherwise it restarts. `wget.py` judges response by response and distinguishes
    failing ones. `disposition.py` judges a batch as a whole and does not distinguish them: they restart the count.
    """
    if asking == responses:
        return before + asking
    return before if failing == responses else 0


def is_held(seconds: float, in_a_row: int) -> bool:
    """Return whether wget is stopped during the pause and continues after it; otherwise it is ended."""
    return seconds <= LONGEST_HOLD and in_a_row < PATIENCE


def is_given_up(in_a_row: int) -> bool:
    """Return whether a server is given up after so many requests for a pause in a row."""
    return in_a_row >= PATIENCE


@dataclass(frozen=True, slots=True)
class NextTry:
    """The time of a URL's next try, in seconds since 1970, None for never; `busy` if its server asked for a pause."""

    at: float | None
    busy: bool = False


def next_try(status: int, tries: int, value: str, now: float) -> NextTry:
    """Return the next try of a URL after a temporary error: after the backoff or Retry-After, whichever is later.

    `tries` is the number of tries before this one; `value` is the field Retry-After. A URL is tried up to PATIENCE
    times if the server asked for a pause, else TRIES times.
    """
    busy = asks_for_pause(status, value, now)
    is_last = tries + 1 >= (PATIENCE if busy else TRIES)
    return NextTry(None if is_last else now + max(delay(tries), retry_after(value, now) or 0.0), busy)


def delay(tries: int) -> float:
    """Return the seconds until the next try after `tries` earlier tries: 1, 2, 4, …"""
    return 2.0**tries if tries < 16 else 65536.0


# == retries, pure ====================================================================================================


def again(row: FrontierUrl) -> UrlOutcome:
    """Return the outcome of a URL that was not attempted, or interrupted: it waits, and no try is counted."""
    return UrlOutcome(id=row.id, state=UrlState.WAITING, status=0, tried=0)


def failed(row: FrontierUrl, status: int, note: str, now: float) -> UrlOutcome:
    """Return the outcome of a failure: waiting, or failed after the last try. Too big or too slow is always failed."""
    outcome = UrlOutcome(id=row.id, state=UrlState.FAILED, status=int(status), note=note)
    if status in (Status.QUOTA, Status.TIME_LIMIT, Status.TYPE):
        return outcome
    return _later(outcome, next_try(0, row.tries, "", now))


def passing(row: FrontierUrl, outcome: UrlOutcome, value: str, now: float) -> UrlOutcome:
    """Return the outcome of a response with a temporary error; `value` is its field Retry-After."""
    following = next_try(outcome.status, row.tries, value, now)
    return _later(replace(outcome, note=BUSY) if following.busy else outcome, following)


def paused(row: FrontierUrl, status: int, value: str, now: float) -> UrlOutcome | None:
    """Return the outcome of a URL if its response, known from the log, asks for a pause; else None."""
    if not asks_for_pause(status, value, now):
        return None
    return passing(row, UrlOutcome(id=row.id, state=UrlState.FAILED, status=status), value, now)


def _later(outcome: UrlOutcome, following: NextTry) -> UrlOutcome:
    if following.at is None:
        return replace(outcome, state=UrlState.FAILED)
    return replace(outcome, state=UrlState.WAITING, not_before=following.at)


# == robots.txt, pure =================================================================================================


#: Bytes of a robots.txt that are parsed (RFC 9309 section 2.5: at least 500 KiB).
LONGEST_ROBOTS = 512 << 10
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


def parse_robots(status: int, body: bytes) -> RobotsRules:
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


def sitemaps_in(rules: RobotsRules) -> list[str]:
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
    if len(body) > LONGEST_ROBOTS:
        # A truncated rule is another rule: `Disallow: /` instead of `Disallow: /private`.
        body = body[: max(body.rfind(b"\n", 0, LONGEST_ROBOTS), body.rfind(b"\r", 0, LONGEST_ROBOTS)) + 1]
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
        return self._rules.get(root, lambda: parse_robots(status, body))


def _rules() -> Cache[str, RobotsRules]:
    return Cache(_KEPT, lambda rules: len(rules.text) + _EMPTY)
