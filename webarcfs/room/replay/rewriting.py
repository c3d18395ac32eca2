"""Archived bodies with their references led into the room: which bodies are rewritten, as what, and the result.

The places of the references are kept, and so are bodies that were put together lately. Where references lead is asked
for each answer: a body is shown again only where its page, and all domains that it names, have the same state for the
reader as when it was put together.

A reference leads to a frame, an archived file, or a notice. A reader stays in the snapshot: links keep its digits, or
those that the same record has on the other domain. What is not archived leads to a notice that names it; nothing leads
to the live web.

A document that a browser may show has had its links rewritten, or has none. The others are sent as downloads.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from urllib.parse import quote

from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.archive.config.settings import LeavingRule
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.system import clocks
from webarcfs.archive.system.cache import Cache
from webarcfs.content import css_references, text
from webarcfs.content.outlinks import bare, resolver
from webarcfs.content.references import SCHEME, References, Rewritten, Use, fragment_of
from webarcfs.content.rewriting import assembly, data_urls, html_references
from webarcfs.content.rewriting.scriptless import without_scripts
from webarcfs.room.replay import memento
from webarcfs.room.replay.memento import Located
from webarcfs.room.replay.replay_url import MODULES, Modifier, digits_of, replay_path
from webarcfs.room.visit import Services, Visit
from webarcfs.warc.http_response import Head, parse_head
from webarcfs.web import limits

# == targets, pure ====================================================================================================


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
#: Schemes of addresses that a person may use elsewhere.
_ELSEWHERE = frozenset(
    {"mailto", "ftp", "ftps", "gopher", "news", "nntp", "tel", "sms", "irc", "xmpp", "magnet", "telnet"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedPage:
    """An archived page as it is shown: its URL, the digits of its state, and what leads on from it.

    `digits_of` returns the digits for a domain, None for a domain that the reader sees nothing of. `room` and `prefix`
    precede the paths of the room and of replay: an origin, or nothing where both are one; and the reader's token.
    `origin` is that of replay as far as it is known, for documents that have no place. `modifier` is that of the page.
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
    modifier: Modifier = Modifier.PAGE

    @property
    def frame(self) -> Modifier:
        """The frame in which its links are shown: a page that a browser showed leads to such pages."""
        return Modifier.RENDERED_FRAME if self.modifier is Modifier.RENDERED else Modifier.FRAME


@dataclass(slots=True)
class ReplayTargets:
    """Returns what takes the place of each reference of one page."""

    place: ReplayedPage
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
        self._back = replay_path(self.place.digits, self.place.frame, self.place.url).removeprefix("/web/")

    def of(self, use: Use, raw: str) -> Rewritten | None:
        """Return what takes the place of a reference as it was written; None: it stays."""
        if use is Use.BASE:
            return Rewritten(
                f"{self.place.prefix}{replay_path(self.place.digits, self.place.modifier, self.place.url)}"
            )
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
        return Rewritten(f"{self.place.prefix}{replay_path(digits, MODIFIERS[use], url)}{fragment_of(raw)}")

    def _link(self, raw: str, use: Use) -> Rewritten | None:
        if raw.lstrip().startswith("#") and not self._has_base:
            return None
        more = _TOP if use is Use.LINK else ()
        scheme = SCHEME.match(raw)
        if scheme and scheme[1].lower() not in ("http", "https"):
            kind = "external" if scheme[1].lower() in _ELSEWHERE else "function"
            return Rewritten(self._notice(kind, raw), (*more, (ORIGINAL, raw)))
        url = self._resolve(bare(raw)) if raw.strip() else self.place.url
        if url == self.place.url and "#" in raw and self._has_base and use is Use.LINK:
            return Rewritten(fragment_of(raw) or "#")
        target = None if url is None else self._shown(url)
        if target is not None:
            return Rewritten(f"{target}{fragment_of(raw)}", more)
        is_ruled = url is not None and rule_for(self.place.rules, "link", url, self.place.captured) is not None
        address = raw if url is None else url + ("" if is_ruled else fragment_of(raw))
        notice = self._notice("function" if is_ruled else "external", address)
        return Rewritten(notice, (*more, (ORIGINAL, raw)))

    def _shown(self, url: str) -> str | None:
        """Return where a URL is shown in the room; None where a rule, or the gate, leads to a notice."""
        if rule_for(self.place.rules, "link", url, self.place.captured) is not None:
            return None
        digits = self._digits(_domain(url))
        return None if digits is None else f"{self.place.room}{replay_path(digits, self.place.frame, url)}"

    def _notice(self, kind: str, about: str) -> str:
        """Return the URL of a notice; `about` is written as text, and the page that leads there as the way back."""
        quoted = quote(about[:_LONGEST], safe="")
        if kind == "form":
            return f"{self.place.room}/notice/form/{quoted or '-'}/{self._back}"
        return f"{self.place.room}/notice/{kind}?url={quoted}&from={quote(self._back, safe='/:')}"


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
    """Return the domain of a canonical URL; to parse each again would cost as much as all the rest."""
    return url[url.index("//") + 2 :].partition("/")[0]


# == rewriting ========================================================================================================


#: What shows that a page has code: elements, attributes for events, and XSLT, which makes another document of it.
_SCRIPTS = re.compile(
    rb"<(?:[\w.-]+:)?script\b|\son[a-z]{3,}\s*=|javascript:|<\?xml-stylesheet\s[^<>]{0,400}\b(?:xsl|xml)\b",
    re.IGNORECASE,
)


class ReplayReading(StrEnum):
    """As what a body is read for its references."""

    HTML = "html"
    XML = "xml"
    CSS = "css"


@dataclass(frozen=True, slots=True)
class RewrittenBody:
    """A body that was rewritten, its SHA-256, and the charset of its bytes, if it is another one than was sent."""

    body: bytes
    digest: bytes
    charset: str = ""


#: Archived heads that were read, by their blobs, in bytes.
_HEADS: Cache[str, Head | None] = Cache(1 << 20, lambda head: 200 if head is None else 200 + 3 * len(head.raw))
#: Memory of the bodies that are kept, and of the domains that they name; a page with more of them is not kept.
_KEPT_BYTES = limits.REWRITER_CACHE_BYTES // 4
_MOST_DOMAINS = 1_000
#: What a body is made of → the domains that it names; with the digits of these domains → the body. Both are functions
#: of what they are kept under, so they may be one for all archives and readers.
_NAMED: Cache[tuple[object, ...], tuple[str, ...]] = Cache(
    _KEPT_BYTES // 8, lambda domains: 1_000 + sum(60 + len(domain) for domain in domains)
)
_BODIES: Cache[tuple[object, ...], RewrittenBody] = Cache(_KEPT_BYTES, lambda body: 1_000 + len(body.body))


def head_of(services: Services, domain: str, capture: VisibleCapture) -> Head | None:
    """Return the archived head of a capture; None where there is none that can be read."""
    if not capture.head:
        return None
    head = _HEADS.get(capture.head, lambda: parse_head(services.shared.body(domain, capture.head)))
    shown = b"" if head is None else services.shown_head(domain, capture, head.raw)
    return head if head is None or shown is head.raw else parse_head(shown)


def reading_of(mime_type: str, modifier: Modifier) -> ReplayReading | None:
    """Return as what a body is read; None: it stays as it is."""
    if modifier in (Modifier.AS_SENT, Modifier.SCRIPT) or modifier in MODULES:
        return None
    if modifier is Modifier.SHEET or mime_type == "text/css":
        return ReplayReading.CSS
    if mime_type == "text/html":
        return ReplayReading.HTML
    return ReplayReading.XML if data_urls.is_read_as_xml(mime_type) else None


def _is_page(mime_type: str) -> bool:
    return reading_of(mime_type, Modifier.PAGE) in {ReplayReading.HTML, ReplayReading.XML}


def references_of(
    services: Services, domain: str, capture: VisibleCapture, reading: ReplayReading, charset: str
) -> References:
    """Return the references of a body, from the cache where it was shown before."""

    def read() -> References:
        body = services.shared.body(domain, capture.blob)
        if reading is ReplayReading.CSS:
            return css_references.of_css(body, charset)
        return html_references.of_html(body, charset, is_xml=reading is ReplayReading.XML)

    return services.shared.references.get((capture.blob, f"{reading} {charset}"), read)


def rewritten(
    visit: Visit, located: Located, capture: VisibleCapture, head: Head | None, modifier: Modifier
) -> RewrittenBody | None:
    """Return a body with its references led into the room; None for one that stays as it is."""
    reading = reading_of(capture.mime_type, modifier)
    if reading is None or capture.size > limits.REWRITTEN_BYTES:
        return None
    return _kept(_Page(visit, located, capture, reading, "" if head is None else head.content_type))


def rewritten_dom(visit: Visit, located: Located, capture: VisibleCapture) -> tuple[str, RewrittenBody] | None:
    """Return a page as a browser showed it, without scripts, with its references led into the room; None without one.

    The first is the blob of the DOM.
    """
    blob = memento.dom_of(visit.services, located.domain, capture)
    if not blob:
        return None
    return blob, _kept(_Page(visit, located, capture, ReplayReading.HTML, "text/html; charset=utf-8", dom=blob))


def _kept(page: _Page) -> RewrittenBody:
    """Return the body of a page, from the cache where it was shown before."""
    made_of = page.made_of()
    domains = _NAMED.held(made_of)
    if domains is not None:
        return _BODIES.get((made_of, tuple(map(page.digits, domains))), page.put_together)
    body = page.put_together()
    if len(page.named) <= _MOST_DOMAINS:
        _NAMED.keep(made_of, tuple(page.named))
        _BODIES.keep((made_of, tuple(page.named.values())), body)
    return body


class _Page:
    """A body that is shown to a reader: what it is made of, and where its references lead."""

    def __init__(
        self,
        visit: Visit,
        located: Located,
        capture: VisibleCapture,
        reading: ReplayReading,
        content_type: str,
        *,
        dom: str = "",
    ) -> None:
        """`dom` is the blob of what a browser showed, if that is read in place of the body."""
        self._dom = dom
        self.named: dict[str, str | None] = {}
        self._visit, self._capture, self._reading = visit, capture, reading
        self._url, self._domain, self._content_type = located.url, located.domain, content_type
        self._seq = located.seq or capture.since
        self._rules = memento.leaving(visit.services, located.domain, self._seq).rules
        self._record = lru_cache(maxsize=1)(lambda: memento.record_of(visit.services, located.domain, self._seq))

    def made_of(self) -> tuple[object, ...]:
        """Return all that the body depends on, but for the states of the domains that it names."""
        capture, origins = self._capture, self._visit.origins
        return (
            self._dom or capture.blob, bool(self._dom), self._reading, self._content_type, self._url, self._seq,
            capture.captured, self._rules,
            origins.pages, origins.replay or origins.base, self._visit.token,
        )  # fmt: skip

    def digits(self, domain: str) -> str | None:
        """Return the digits of links to a domain, as the gate says now; None where the reader sees nothing of it."""
        if domain not in self.named:
            seq: int | None = self._seq
            if domain != self._domain:
                seq = memento.state_beside(self._visit.services, domain, self._record(), self._seq)
            self.named[domain] = None if seq is None else digits_of(seq)
        return self.named[domain]

    def put_together(self) -> RewrittenBody:
        """Return the body with its references led into the room."""
        shared, capture = self._visit.services.shared, self._capture
        if self._dom:
            charset, body = "utf-8", without_scripts(shared.body(self._domain, self._dom))
            references = shared.references.get((self._dom, "dom"), lambda: html_references.of_html(body, charset))
        else:
            body = shared.body(self._domain, capture.blob)
            charset = text.decode_charset(body, self._content_type)
            references = references_of(self._visit.services, self._domain, capture, self._reading, charset)
        place = ReplayedPage(
            url=self._url,
            digits=digits_of(self._seq),
            charset=charset,
            room=self._visit.origins.pages,
            prefix=self._visit.token,
            digits_of=self.digits,
            rules=self._rules,
            captured=from_epoch(capture.captured),
            base=references.base or "",
            origin=self._visit.origins.replay or self._visit.origins.base,
            modifier=Modifier.RENDERED if self._dom else Modifier.PAGE,
        )
        targets = ReplayTargets(place)

        def lead(use: Use, written: str) -> Rewritten | None:
            clocks.check()
            return targets.of(use, written)

        new_body = assembly.rewritten(body, references, lead)
        return RewrittenBody(new_body, hashlib.sha256(new_body).digest(), references.charset_sent)


def has_scripts(services: Services, domain: str, capture: VisibleCapture) -> bool:
    """Return whether a page has code that a browser would run."""
    if not _is_page(capture.mime_type) or capture.size > limits.REWRITTEN_BYTES:
        return False
    shared = services.shared
    return shared.scripted.get(capture.blob, lambda: _SCRIPTS.search(shared.body(domain, capture.blob)) is not None)


# == showing, pure ====================================================================================================


class DownloadReason(StrEnum):
    """Why a document is a download."""

    TOO_LARGE = "too-large"  #: a page that is too long to be rewritten
    NOT_READ = "not-read"  #: its type may have links, as PDF and MHTML do, and nothing here rewrites them


def reason_against(mime_type: str, size: int) -> DownloadReason | None:
    """Return why a document is not shown; None: it is shown with its links rewritten, or it has none."""
    if _is_page(mime_type):
        return DownloadReason.TOO_LARGE if size > limits.REWRITTEN_BYTES else None
    return DownloadReason.NOT_READ if data_urls.as_text(mime_type) is None else None


def shown_type(mime_type: str) -> str:
    """Return the type as which a browser is sent a document: text/plain for one that it would make links of."""
    return data_urls.as_text(mime_type) or mime_type
