"""What a server's robots.txt permits (RFC 9309), told by its status and body alone. Pure; protego matches the rules.

`RobotsRules` are rebuilt from what the frontier keeps of them: `parse(rules.status, rules.text.encode())`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from protego import Protego

from webarcfs.archive.model.url import parse as parse_url

#: How many bytes of a robots.txt count (RFC 9309 section 2.5: at least 500 KiB).
LONGEST_BODY = 512 << 10
#: Longest wait, in seconds, that a server may ask for; more would be a way to say no.
LONGEST_DELAY = 60.0

# protego stores each rule of a group once per agent of the group: without a bound, 512 KiB of one group with half of it
# agents and half of it rules would be hundreds of millions of rules.
_MOST_AGENTS = 2_000
_MOST_RULES = 200_000
_AGENT_LINE = re.compile(r"\s*user[ -]?agent\b", re.IGNORECASE)
_RULE_LINE = re.compile(r"\s*(?:dis)?allow\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What a server said about robots: `status` and `text` of its answer.

    `known` is false when it gave none (a server error, no connection): then nothing may be fetched yet, and the
    question is to be asked again later (RFC 9309 section 2.3.1.4).
    """

    status: int
    text: str
    known: bool
    parser: Protego | None = field(default=None, compare=False, repr=False)


def parse(status: int, body: bytes) -> RobotsRules:
    """The rules that an answer to robots.txt sets: `status` is HTTP's, or negative where there was no answer.

    2xx: those in the body. 4xx, and a redirect that led nowhere: everything is allowed (RFC 9309 sections 2.3.1.2 and
    2.3.1.3). Anything else: not known. Never raises for what the body holds.
    """
    if 200 <= status < 300:
        text = _decode(body)
        return RobotsRules(status, text, known=True, parser=_parser(text))
    return RobotsRules(status, "", known=300 <= status < 500)


def allowed(rules: RobotsRules, user_agent: str, url: str) -> bool:
    """Whether `user_agent` may fetch `url` (canonical). Nothing is allowed while the rules are not known."""
    if rules.parser is None:
        return rules.known
    try:
        return bool(rules.parser.can_fetch(url, product_token(user_agent)))
    except ValueError:  # protego splits the URL again, and urlsplit refuses some that are fetched all the same
        return True


def crawl_delay(rules: RobotsRules, user_agent: str) -> float | None:
    """Seconds that the server wants between two requests, at most LONGEST_DELAY; None where it says nothing."""
    if rules.parser is None:
        return None
    delay = rules.parser.crawl_delay(product_token(user_agent))
    return None if delay is None else min(float(delay), LONGEST_DELAY)


def robots_url(url: str) -> str:
    """Where the rules for `url` stand: on its own scheme, host and port. Raises UrlRefused where `url.parse` does."""
    parts = parse_url(url)
    return f"{parts.scheme}://{parts.domain}/robots.txt"


def product_token(user_agent: str) -> str:
    """`webarcfs` of `webarcfs/1.0 (+contact)`: what groups are matched with (RFC 9309 section 2.2.1)."""
    return user_agent.partition("/")[0].strip()


def _decode(body: bytes) -> str:
    body = body.removeprefix(codecs.BOM_UTF8)
    if len(body) > LONGEST_BODY:
        # A rule that is cut short is another rule: `Disallow: /` for `Disallow: /private`.
        body = body[: max(body.rfind(b"\n", 0, LONGEST_BODY), body.rfind(b"\r", 0, LONGEST_BODY)) + 1]
    return body.decode("utf-8", "replace")


def _parser(text: str) -> Protego | None:
    try:
        return Protego.parse("\n".join(_bounded(text)))
    except ValueError:  # nothing that can be read as rules: RFC 9309 section 2.2, what is not understood is ignored
        return None


def _bounded(text: str) -> Iterator[str]:
    """The lines of `text`, up to where its groups would make too many rules."""
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
