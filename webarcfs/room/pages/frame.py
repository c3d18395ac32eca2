"""`/web/<digits>/<url>`: the room's frame around an archived page, with the ways through time in its head."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from webarcfs.access.visible_captures import UrlHistory, VisibleCapture
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.model.urls import domain_of
from webarcfs.content import outlinks
from webarcfs.content.outlinks import bare, based_resolver
from webarcfs.content.references import Rewritten, Use
from webarcfs.content.rewriting import assembly
from webarcfs.content.text import decode_charset
from webarcfs.room.pages.archived import led_on, missing, redirect
from webarcfs.room.pages.citing import citation_of
from webarcfs.room.replay import headers, memento
from webarcfs.room.replay.memento import Located, headers_for_all
from webarcfs.room.replay.replay_url import (
    Modifier,
    Replay,
    calendar_path,
    cite_path,
    diff_path,
    digits_of,
    record_path,
    replay_path,
)
from webarcfs.room.replay.rewriting import has_scripts, head_of, reading_of, reason_against, references_of
from webarcfs.room.views import PageLink
from webarcfs.room.visit import Evidence, Services, Visit
from webarcfs.web import limits

#: Uses of references that make up what a page shows.
_SHOWN = frozenset({Use.IMAGE, Use.STYLE, Use.FRAME, Use.OBJECT, Use.OTHER})
_DAY = 86_400
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


def frame(visit: Visit, asked: Replay) -> Response:
    """Return the frame of a URL in a state; or where it belongs, or why there is none."""
    located = memento.locate(visit.services, asked.url, asked.seconds)
    elsewhere = memento.other_place(visit, located, asked)
    if elsewhere is not None:
        return redirect(visit, elsewhere, asked.url)
    if asked.must_redirect:
        return redirect(visit, visit.origins.prefix + asked.location, asked.url)
    capture = located.state.capture
    if capture is None or located.seq is None:
        return missing(visit, located)
    if capture.is_redirect:
        return led_on(visit, located, capture, asked.modifier)
    evidence = memento.evidence_of(visit.services, located.domain, capture)
    has_dom = bool(memento.dom_of(visit.services, located.domain, capture, evidence))
    is_rendered = asked.modifier is Modifier.RENDERED_FRAME
    if is_rendered and not has_dom:
        return redirect(visit, visit.origins.prefix + replay_path(asked.digits, Modifier.FRAME, asked.url), asked.url)
    history = visit.services.captures.history(located.url)
    values = _values(
        visit, located, located.seq, capture, history, evidence=evidence, has_dom=has_dom, is_rendered=is_rendered
    )
    fields = headers_for_all(visit.origins.base, located.url, history, capture)
    return visit.page("frame.html", http_status=capture.status, http_headers=dict(fields), **values)


def _values(
    visit: Visit,
    located: Located,
    seq: int,
    capture: VisibleCapture,
    history: UrlHistory,
    *,
    evidence: Evidence,
    has_dom: bool,
    is_rendered: bool,
) -> dict[str, Any]:
    """Return the values of the frame around a page, or around what a browser showed of it.

    `source` is the URL of the page itself, `date` the snapshot's time, `captured` that of the server's response: where
    a crawl met it again, it is `unchanged_since` an earlier one. It `is_carried_over` from an earlier snapshot, if the
    snapshot's own crawl has no capture of it. `furthest` is the largest distance in days between the snapshot and what
    the page embeds, None if it is not known. A browser would proceed from the page to where it `goes_on`. `alone` is
    the page as it is printed, and `whole` its address for paper, which readers with rights have none of: theirs end.
    `rendered` is the frame of the page as a browser showed it, `as_sent` the way back.
    """
    services, url = visit.services, located.url
    before, after = history.beside(seq)
    shown = [state for state in history.states if state.capture is not None]
    head = memento.record_of(services, located.domain, seq)
    digits = digits_of(seq if located.named is None else located.named)
    runs_scripts = visit.origins.runs_scripts and not is_rendered
    # What is no page reports nothing to the frame, so the engine of scripts need not see it.
    is_of_pywb = runs_scripts and capture.mime_type in _PAGES
    if is_rendered:
        frame_modifier, modifier = Modifier.RENDERED_FRAME, Modifier.RENDERED
        furthest, goes_on = None, ""
    else:
        frame_modifier = Modifier.FRAME
        modifier = Modifier.PAGE if is_of_pywb or not runs_scripts else Modifier.OBJECT
        furthest, goes_on = _contents(visit, located, seq, capture)
    source = f"{visit.origins.replay}{visit.token}{replay_path(digits, modifier, url)}"
    times = memento.shown_times(history, capture, seq)
    alone = _alone(visit, digits, url, has_dom=has_dom) if runs_scripts else source
    changed = next(
        (state for state in reversed(shown) if state.seq < seq and _differs(services, state.capture, capture)), None
    )
    newest = shown[-1] if shown and shown[-1].seq > seq else None
    # What leads elsewhere has no text to compare.
    has_newer = newest is not None and _differs(services, newest.capture, capture)
    return {
        "url": url,
        "title": capture.title,
        "source": source,
        "sandbox": headers.SANDBOX_WITH_SCRIPTS if runs_scripts else headers.SANDBOX,
        "date": from_epoch(seq),
        "citation": citation_of(visit, located, capture, times.captured),
        "cite": cite_path(digits, url),
        "captured": from_epoch(times.captured),
        "unchanged_since": None if times.since is None else from_epoch(times.since),
        "is_carried_over": times.is_carried_over,
        "furthest": furthest,
        "goes_on": None
        if not goes_on or is_of_pywb
        else PageLink(replay_path(digits, Modifier.FRAME, goes_on), goes_on),
        "previous": _version(url, before.seq if before else None, frame_modifier),
        "following": _version(url, after.seq if after else None, frame_modifier),
        "first": _version(url, shown[0].seq if shown and shown[0].seq < seq else None, frame_modifier),
        "last": _version(url, None if newest is None else newest.seq, frame_modifier),
        "calendar": calendar_path(url),
        "differences": "" if changed is None else diff_path(changed.seq, seq, url),
        "until_newest": diff_path(seq, newest.seq, url) if newest is not None and has_newer else "",
        "raw": f"{visit.origins.replay}{visit.token}{replay_path(digits, Modifier.AS_SENT, url)}",
        "alone": alone,
        "whole": "" if visit.token else alone if visit.origins.replay else visit.base + alone,
        "search": f"/search?{urlencode({'from': head.id})}" if head is not None and services.has_search else "",
        "record": head,
        "record_href": "" if head is None else record_path(head.id),
        "has_scripts": not is_rendered and has_scripts(services, located.domain, capture),
        "runs_scripts": visit.origins.runs_scripts,
        "is_unreleased": False,
        "reason_against": "" if is_of_pywb or is_rendered else reason_against(capture.mime_type, capture.size) or "",
        "size": capture.size,
        "message_script": runs_scripts,
        "rendered": replay_path(digits, Modifier.RENDERED_FRAME, url) if has_dom and not is_rendered else "",
        "as_sent": replay_path(digits, Modifier.FRAME, url) if is_rendered else "",
        "copy": evidence.copy,
        "certificate": evidence.certificate,
    }


def _alone(visit: Visit, digits: str, url: str, *, has_dom: bool) -> str:
    """Return the page for printing where scripts run: without them, since pywb's engine shows it in the frame only."""
    modifier = Modifier.RENDERED if has_dom else Modifier.OBJECT
    return f"{visit.origins.replay}{visit.token}{replay_path(digits, modifier, url)}"


def _differs(services: Services, earlier: VisibleCapture | None, capture: VisibleCapture) -> bool:
    if earlier is None or earlier.is_redirect:
        return False
    return earlier.blob != capture.blob or not memento.has_same_text(services, earlier, capture)


def _version(url: str, seq: int | None, modifier: Modifier) -> PageLink | None:
    if seq is None:
        return None
    return PageLink(replay_path(digits_of(seq), modifier, url), from_epoch(seq).isoformat())


def _contents(visit: Visit, located: Located, seq: int, capture: VisibleCapture) -> tuple[int | None, str]:
    """Return the largest distance in days between a snapshot and what a page embeds; None: it embeds nothing known.

    With it comes the URL to which a browser would proceed from the page by itself, if there is one: in the frame, where
    no scripts run, browsers stay (HTML, "sandboxed automatic features").
    Only so many references are looked up; the answer is kept as long as the archive stays as it is.
    """
    services = visit.services
    reading = reading_of(capture.mime_type, Modifier.PAGE)
    if reading is None or capture.size > limits.REWRITTEN_BYTES:
        return None, ""
    key = (capture.blob, capture.head, located.url, seq, services.gate.reader, services.gate.state)
    return services.shared.distances.get(key, lambda: _measured(visit, located, seq, capture))


def _measured(visit: Visit, located: Located, seq: int, capture: VisibleCapture) -> tuple[int | None, str]:
    services = visit.services
    body = services.shared.body(located.domain, capture.blob)
    head = head_of(services, located.domain, capture)
    charset = decode_charset(body, "" if head is None else head.content_type)
    reading = reading_of(capture.mime_type, Modifier.PAGE)
    assert reading is not None
    references = references_of(services, located.domain, capture, reading, charset)
    resolve = based_resolver(located.url, charset, references.base or "")
    embedded: dict[str, None] = {}
    goes_on = outlinks.field_target(located.url, "" if head is None else head.get("refresh"))

    def collect(use: Use, raw: str) -> Rewritten | None:
        nonlocal goes_on
        if use is Use.REFRESH and not goes_on:
            goes_on = resolve(bare(raw)) or ""
        if use in _SHOWN and len(embedded) < limits.EMBEDDED and (url := resolve(bare(raw))):
            embedded[url] = None
        return None

    assembly.rewritten(body, references, collect)
    days = [abs(time - seq) // _DAY for url in embedded if (time := _time_of(visit, located, seq, url)) is not None]
    return max(days, default=None), "" if goes_on == located.url else goes_on


def _time_of(visit: Visit, located: Located, seq: int, url: str) -> int | None:
    """Return when the version of a URL was captured that a page of a state embeds."""
    try:
        at = memento.state_in_record(visit.services, domain_of(url), located.domain, seq)
        if at is None:
            return None
        state = visit.services.captures.state(url, at)
        if state.capture is None:
            nearest = visit.services.captures.history(url).nearest(at)
            return None if nearest is None else nearest.seq
    except UrlRefused:
        return None
    return at
