"""Archived bodies with their references led into the room: which bodies are rewritten, as what, and the result.

The places of the references are kept; where they lead is decided for each answer. So a page that was shown before is
put together from slices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from webarcfs.archive.model.metadata import from_epoch
from webarcfs.content import text
from webarcfs.content.rewriting import assembly, css_references, html_references
from webarcfs.content.rewriting.references import References
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

#: What shows that a page has code: elements, and attributes for events.
_SCRIPTS = re.compile(rb"<script\b|\son[a-z]{3,}\s*=|javascript:", re.IGNORECASE)


class Reading(StrEnum):
    """As what a body is read for its references."""

    HTML = "html"
    XML = "xml"
    CSS = "css"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A body that was rewritten, and the charset of its bytes, if it is another one than was sent."""

    body: bytes
    charset: str = ""


def head_of(services: Services, domain: str, capture: VisibleCapture) -> Head | None:
    """Return the archived head of a capture; None where there is none that can be read."""
    return parse_head(services.shared.body(domain, capture.head)) if capture.head else None


def reading_of(mime_type: str, modifier: Modifier) -> Reading | None:
    """Return as what a body is read; None: it stays as it is."""
    if modifier in (Modifier.AS_SENT, Modifier.SCRIPT):
        return None
    if modifier is Modifier.SHEET or mime_type == "text/css":
        return Reading.CSS
    if mime_type == "text/html":
        return Reading.HTML
    return Reading.XML if mime_type in ("application/xhtml+xml", "image/svg+xml") else None


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
    services = visit.services
    body = services.shared.body(located.domain, capture.blob)
    charset = text.decode_charset(body, "" if head is None else head.content_type)
    references = references_of(services, located.domain, capture, reading, charset)
    targets = Targets(place_of(visit, located, capture, charset, references.base or ""))
    return Rewritten(assembly.rewritten(body, references, targets.of), references.charset_sent)


def place_of(visit: Visit, located: Located, capture: VisibleCapture, charset: str, base: str) -> Place:
    """Return a page as it is shown, for what leads on from it."""
    services, seq = visit.services, located.seq or capture.since

    def digits(domain: str) -> str | None:
        found = states.state_in_record(services, domain, located.domain, seq)
        return None if found is None else digits_of(found)

    return Place(
        url=located.url,
        digits=digits_of(seq),
        charset=charset,
        room=visit.origins.room,
        prefix=visit.token,
        digits_of=digits,
        rules=states.leaving(services, located.domain, seq).rules,
        captured=from_epoch(capture.captured),
        base=base,
    )


def has_scripts(services: Services, domain: str, capture: VisibleCapture) -> bool:
    """Return whether a page has code that a browser would run."""
    if (
        reading_of(capture.mime_type, Modifier.PAGE) not in (Reading.HTML, Reading.XML)
        or capture.size > limits.REWRITTEN_BYTES
    ):
        return False
    return _SCRIPTS.search(services.shared.body(domain, capture.blob)) is not None
