"""Where the references of an archived page lead in the room: to a frame, an archived file, or a notice. Pure.

A reader stays in the snapshot: links keep its digits, or those that the same record has on the other domain. What is
not archived leads to a notice that names it; nothing leads to the live web.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

from webarcfs.archive.config.settings import LeavingRule
from webarcfs.content.outlinks import bare
from webarcfs.content.rewriting import data_urls
from webarcfs.content.rewriting.references import Rewritten, Use
from webarcfs.content.urlresolver import resolver
from webarcfs.room.wayback.replay_url import Modifier, replay_path

#: The use of a reference → the modifier of its URL.
MODIFIERS = {
    Use.FRAME: Modifier.INNER_FRAME,
    Use.OBJECT: Modifier.OBJECT,
    Use.IMAGE: Modifier.IMAGE,
    Use.STYLE: Modifier.SHEET,
    Use.SCRIPT: Modifier.SCRIPT,
    Use.OTHER: Modifier.OBJECT,
}
#: Attributes that are added to a link: it opens in the room's own window.
_TOP = (("target", "_top"),)
#: The attribute that keeps the original of a link to a notice.
ORIGINAL = "data-webarc-href"
_LONGEST = 2_000
_FRAGMENT = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]")
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*)\s*:", re.IGNORECASE)
#: Schemes of addresses that a person may use elsewhere.
_ELSEWHERE = frozenset(
    {"mailto", "ftp", "ftps", "gopher", "news", "nntp", "tel", "sms", "irc", "xmpp", "magnet", "telnet"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An archived page as it is shown: its URL, the digits of its state, and what leads on from it.

    `digits_of` returns the digits for a domain, None for a domain that the reader sees nothing of. `room` and `prefix`
    precede the paths of the room and of replay: an origin, or nothing where both are one; and the reader's token.
    `origin` is that of replay as far as it is known, for documents that have no place.
    """

    url: str
    digits: str
    charset: str
    room: str
    prefix: str
    digits_of: Callable[[str], str | None]
    rules: Sequence[LeavingRule] = ()
    captured: datetime | None = None
    base: str = ""
    origin: str = ""


@dataclass(slots=True)
class Targets:
    """Returns what takes the place of each reference of one page."""

    place: Place
    _resolve: Callable[[str], str | None] = field(init=False)
    _digits: Callable[[str], str | None] = field(init=False)
    _back: str = field(init=False)
    _has_base: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._resolve = resolver(self.place.url, self.place.charset)
        base = self._resolve(bare(self.place.base)) if self.place.base else None
        if base and base != self.place.url:
            self._resolve, self._has_base = resolver(base, self.place.charset), True
        self._digits = lru_cache(maxsize=1_000)(self.place.digits_of)
        self._back = replay_path(self.place.digits, Modifier.FRAME, self.place.url).removeprefix("/web/")

    def of(self, use: Use, raw: str) -> Rewritten | None:
        """Return what takes the place of a reference as it was written; None: it stays."""
        if use is Use.BASE:
            return Rewritten(f"{self.place.prefix}{replay_path(self.place.digits, Modifier.PAGE, self.place.url)}")
        if use in (Use.LINK, Use.REFRESH):
            return self._link(raw, use)
        if use is Use.FORM:
            return Rewritten(self._notice("form", raw), _TOP)
        if use is Use.TARGET:
            return Rewritten("_top")
        return self._embedded(use, raw)

    def _embedded(self, use: Use, raw: str) -> Rewritten | None:
        if data_urls.is_own(raw):
            if use not in (Use.FRAME, Use.OBJECT):
                return None
            new = data_urls.in_a_frame(raw, self.of, self.place.origin)
            return None if new is None else Rewritten(new)
        if not raw.strip() or (raw.startswith("#") and not self._has_base):
            return None
        url = self._resolve(bare(raw))
        if url is None:
            return Rewritten(data_urls.NOTHING if use in (Use.FRAME, Use.OBJECT) else "data:,")
        digits = self._digits(_domain(url)) or self.place.digits
        return Rewritten(f"{self.place.prefix}{replay_path(digits, MODIFIERS[use], url)}{_fragment(raw)}")

    def _link(self, raw: str, use: Use) -> Rewritten | None:
        if raw.lstrip().startswith("#") and not self._has_base:
            return None
        more = _TOP if use is Use.LINK else ()
        scheme = _SCHEME.match(raw)
        if scheme and scheme[1].lower() not in ("http", "https"):
            kind = "external" if scheme[1].lower() in _ELSEWHERE else "function"
            return Rewritten(self._notice(kind, raw), (*more, (ORIGINAL, raw)))
        url = self._resolve(bare(raw)) if raw.strip() else self.place.url
        if url == self.place.url and "#" in raw and self._has_base and use is Use.LINK:
            return Rewritten(_fragment(raw) or "#")
        target = None if url is None else self._shown(url)
        if target is not None:
            return Rewritten(f"{target}{_fragment(raw)}", more)
        is_ruled = url is not None and rule_for(self.place.rules, "link", url, self.place.captured) is not None
        said = raw if url is None else url + ("" if is_ruled else _fragment(raw))
        notice = self._notice("function" if is_ruled else "external", said)
        return Rewritten(notice, (*more, (ORIGINAL, raw)))

    def _shown(self, url: str) -> str | None:
        """Return where a URL is shown in the room; None where a rule, or the gate, leads to a notice."""
        if rule_for(self.place.rules, "link", url, self.place.captured) is not None:
            return None
        digits = self._digits(_domain(url))
        return None if digits is None else f"{self.place.room}{replay_path(digits, Modifier.FRAME, url)}"

    def _notice(self, kind: str, about: str) -> str:
        """Return the URL of a notice; `about` is told as text, and the page that leads there as the way back."""
        said = quote(about[:_LONGEST], safe="")
        if kind == "form":
            return f"{self.place.room}/notice/form/{said or '-'}/{self._back}"
        return f"{self.place.room}/notice/{kind}?url={said}&from={quote(self._back, safe='/:')}"


def rule_for(rules: Sequence[LeavingRule], on: str, url: str, captured: datetime | None) -> LeavingRule | None:
    """Return the first rule for a form or link with a URL, of a page that was captured then; None without one."""
    for rule in rules:
        if rule.on != on or (captured is not None and not _holds(rule, captured)):
            continue
        if _pattern(rule.match).search(url):
            return rule
    return None


def _holds(rule: LeavingRule, captured: datetime) -> bool:
    return (rule.since is None or captured >= rule.since) and (rule.until is None or captured <= rule.until)


@lru_cache(maxsize=1_000)
def _pattern(match: str) -> re.Pattern[str]:
    return re.compile(".*?".join(map(re.escape, match.split("*"))), re.IGNORECASE | re.DOTALL)


def _domain(url: str) -> str:
    """Return the domain of a canonical URL; to parse each anew would cost as much as all the rest."""
    return url[url.index("//") + 2 :].partition("/")[0]


def _fragment(raw: str) -> str:
    """Return the fragment of a reference, as a URL may have it."""
    if "#" not in raw:
        return ""
    _, mark, rest = raw.partition("#")
    return "#" + _FRAGMENT.sub(lambda each: quote(each[0]), rest.strip()) if mark else ""
