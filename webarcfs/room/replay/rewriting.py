"""Archived bodies with their references led into the room: which bodies are rewritten, as what, and the result.

The places of the references are kept, and so are bodies that were put together lately. Where references lead is asked
for each answer: a body is shown again only where its page, and all domains that it names, have the same state for the
reader as when it was put together.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.system import deadline
from webarcfs.archive.system.cache import Cache
from webarcfs.content import text
from webarcfs.content.rewriting import assembly, css_references, html_references, inert_types
from webarcfs.content.rewriting import references as body_references
from webarcfs.content.rewriting.references import References, Use
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room import limits
from webarcfs.room.replay import states
from webarcfs.room.replay.states import Located
from webarcfs.room.replay.targets import Place, Targets
from webarcfs.room.services import Services
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import Modifier
from webarcfs.room.wayback.timestamps import digits_of
from webarcfs.warc.http_response import Head, parse_head

#: What shows that a page has code: elements, attributes for events, and XSLT, which makes another document of it.
_SCRIPTS = re.compile(
    rb"<(?:[\w.-]+:)?script\b|\son[a-z]{3,}\s*=|javascript:|<\?xml-stylesheet\s[^<>]{0,400}\b(?:xsl|xml)\b",
    re.IGNORECASE,
)


class Reading(StrEnum):
    """As what a body is read for its references."""

    HTML = "html"
    XML = "xml"
    CSS = "css"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A body that was rewritten, its SHA-256, and the charset of its bytes, if it is another one than was sent."""

    body: bytes
    digest: bytes
    charset: str = ""


#: Archived heads that were read, by their blobs, in bytes.
_HEADS: Cache[str, Head | None] = Cache(1 << 20, lambda each: 200 if each is None else 200 + 3 * len(each.raw))
#: Memory of the bodies that are kept, and of the domains that they name; a page with more of them is not kept.
_KEPT_BYTES = limits.REWRITER_CACHE_BYTES // 4
_MOST_DOMAINS = 1_000
#: What a body is made of → the domains that it names; with the digits of these domains → the body. Both are functions
#: of what they are kept under, so they may be one for all archives and readers.
_NAMED: Cache[tuple[object, ...], tuple[str, ...]] = Cache(
    _KEPT_BYTES // 8, lambda each: 1_000 + sum(60 + len(domain) for domain in each)
)
_BODIES: Cache[tuple[object, ...], Rewritten] = Cache(_KEPT_BYTES, lambda each: 1_000 + len(each.body))


def head_of(services: Services, domain: str, capture: VisibleCapture) -> Head | None:
    """Return the archived head of a capture; None where there is none that can be read."""
    if not capture.head:
        return None
    return _HEADS.get(capture.head, lambda: parse_head(services.shared.body(domain, capture.head)))


def reading_of(mime_type: str, modifier: Modifier) -> Reading | None:
    """Return as what a body is read; None: it stays as it is."""
    if modifier in (Modifier.AS_SENT, Modifier.SCRIPT):
        return None
    if modifier is Modifier.SHEET or mime_type == "text/css":
        return Reading.CSS
    if mime_type == "text/html":
        return Reading.HTML
    return Reading.XML if inert_types.is_xml(mime_type) else None


def references_of(
    services: Services, domain: str, capture: VisibleCapture, reading: Reading, charset: str
) -> References:
    """Return the references of a body, from the cache where it was shown before."""

    def read() -> References:
        body = services.shared.body(domain, capture.blob)
        if reading is Reading.CSS:
            return css_references.of_css(body, charset)
        return html_references.of_html(body, charset, is_xml=reading is Reading.XML)

    return services.shared.references.get((capture.blob, f"{reading} {charset}"), read)


def rewritten(
    visit: Visit, located: Located, capture: VisibleCapture, head: Head | None, modifier: Modifier
) -> Rewritten | None:
    """Return a body with its references led into the room; None for one that stays as it is."""
    reading = reading_of(capture.mime_type, modifier)
    if reading is None or capture.size > limits.REWRITTEN_BYTES:
        return None
    page = _Page(visit, located, capture, reading, "" if head is None else head.content_type)
    made_of = page.made_of()
    domains = _NAMED.held(made_of)
    if domains is not None:
        return _BODIES.get((made_of, tuple(map(page.digits, domains))), page.put_together)
    made = page.put_together()
    if len(page.named) <= _MOST_DOMAINS:
        _NAMED.keep(made_of, tuple(page.named))
        _BODIES.keep((made_of, tuple(page.named.values())), made)
    return made


class _Page:
    """A body that is shown to a reader: what it is made of, and where its references lead."""

    def __init__(
        self, visit: Visit, located: Located, capture: VisibleCapture, reading: Reading, content_type: str
    ) -> None:
        self.named: dict[str, str | None] = {}
        self._visit, self._capture, self._reading = visit, capture, reading
        self._url, self._domain, self._content_type = located.url, located.domain, content_type
        self._seq = located.seq or capture.since
        self._rules = states.leaving(visit.services, located.domain, self._seq).rules
        self._record = lru_cache(maxsize=1)(lambda: states.record_of(visit.services, located.domain, self._seq))

    def made_of(self) -> tuple[object, ...]:
        """Return all that the body depends on, but for the states of the domains that it names."""
        capture, origins = self._capture, self._visit.origins
        return (
            capture.blob, self._reading, self._content_type, self._url, self._seq, capture.captured, self._rules,
            origins.pages, origins.replay or origins.base, self._visit.token,
        )  # fmt: skip

    def digits(self, domain: str) -> str | None:
        """Return the digits of links to a domain, as the gate says now; None where the reader sees nothing of it."""
        if domain not in self.named:
            seq: int | None = self._seq
            if domain != self._domain:
                seq = states.state_beside(self._visit.services, domain, self._record(), self._seq)
            self.named[domain] = None if seq is None else digits_of(seq)
        return self.named[domain]

    def put_together(self) -> Rewritten:
        """Return the body with its references led into the room."""
        shared, capture = self._visit.services.shared, self._capture
        body = shared.body(self._domain, capture.blob)
        charset = text.decode_charset(body, self._content_type)
        references = references_of(self._visit.services, self._domain, capture, self._reading, charset)
        place = Place(
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
        )
        targets = Targets(place)

        def lead(use: Use, written: str) -> body_references.Rewritten | None:
            deadline.check()
            return targets.of(use, written)

        made = assembly.rewritten(body, references, lead)
        return Rewritten(made, hashlib.sha256(made).digest(), references.charset_sent)


def has_scripts(services: Services, domain: str, capture: VisibleCapture) -> bool:
    """Return whether a page has code that a browser would run."""
    if (
        reading_of(capture.mime_type, Modifier.PAGE) not in (Reading.HTML, Reading.XML)
        or capture.size > limits.REWRITTEN_BYTES
    ):
        return False
    return _SCRIPTS.search(services.shared.body(domain, capture.blob)) is not None
