"""`/web/<digits>/<url>`: the room's frame around an archived page, with the ways through time in its head."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from starlette.responses import Response

from webarcfs.access.reader_stores import RecordHead
from webarcfs.access.visible_captures import UrlHistory, VisibleCapture
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.model.urls import domain_of
from webarcfs.content import outlinks
from webarcfs.content.outlinks import bare, based_resolver
from webarcfs.content.references import Rewritten, Use
from webarcfs.content.rewriting import assembly
from webarcfs.content.text import decode_charset
from webarcfs.room import limits
from webarcfs.room.pages.archived import led_on, missing, redirect
from webarcfs.room.replay import headers, memento
from webarcfs.room.replay.memento import Located, headers_for_all
from webarcfs.room.replay.replay_url import (
    Modifier,
    Replay,
    calendar_path,
    diff_path,
    digits_of,
    parse,
    record_path,
    replay_path,
)
from webarcfs.room.replay.rewriting import has_scripts, head_of, reading_of, reason_against, references_of
from webarcfs.room.views import FramePage, FrameRecord, PageLink
from webarcfs.room.visit import Services, Visit

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
    has_dom = bool(memento.dom_of(visit.services, located.domain, capture))
    if asked.modifier is Modifier.RENDERED_FRAME and not has_dom:
        return redirect(visit, visit.origins.prefix + replay_path(asked.digits, Modifier.FRAME, asked.url), asked.url)
    history = visit.services.captures.history(located.url)
    view = _view(visit, located, located.seq, capture, history)
    if has_dom:
        view = _with_dom(visit, view, located, located.seq, is_rendered=asked.modifier is Modifier.RENDERED_FRAME)
    fields = headers_for_all(visit.origins.base, located.url, history, capture)
    return visit.page(view, capture.status, dict(fields))


def _view(visit: Visit, located: Located, seq: int, capture: VisibleCapture, history: UrlHistory) -> FramePage:
    services, url = visit.services, located.url
    before, after = history.beside(seq)
    shown = [state for state in history.states if state.capture is not None]
    head = memento.record_of(services, located.domain, seq)
    # What is no page reports nothing to the frame, so the engine of scripts need not see it.
    is_of_pywb = visit.origins.runs_scripts and capture.mime_type in _PAGES
    is_page = is_of_pywb or not visit.origins.runs_scripts
    digits = digits_of(seq if located.named is None else located.named)
    source = visit.token + replay_path(digits, Modifier.PAGE if is_page else Modifier.OBJECT, url)
    evidence = memento.evidence_of(services, located.domain, capture)
    furthest, goes_on = _contents(visit, located, seq, capture)
    is_older = seq > max(capture.since, capture.captured)
    is_met = capture.is_revisit or (is_older and any(met.is_revisit and met.since == seq for met in history.captures))
    changed = next(
        (state for state in reversed(shown) if state.seq < seq and _differs(services, state.capture, capture)), None
    )
    return FramePage(
        url=url,
        title=capture.title,
        source=f"{visit.origins.replay}{source}",
        sandbox=headers.SANDBOX_WITH_SCRIPTS if visit.origins.runs_scripts else headers.SANDBOX,
        date=from_epoch(seq),
        captured=from_epoch(_first_captured(capture, history)),
        is_unchanged=is_met,
        is_carried_over=is_older and not is_met,
        furthest=furthest,
        goes_on=None if not goes_on or is_of_pywb else PageLink(replay_path(digits, Modifier.FRAME, goes_on), goes_on),
        previous=_version(url, before.seq if before else None),
        following=_version(url, after.seq if after else None),
        first=_version(url, shown[0].seq if shown and shown[0].seq < seq else None),
        last=_version(url, shown[-1].seq if shown and shown[-1].seq > seq else None),
        calendar=calendar_path(url),
        differences="" if changed is None else diff_path(changed.seq, seq, url),
        raw=f"{visit.origins.replay}{visit.token}{replay_path(digits, Modifier.AS_SENT, url)}",
        alone="" if visit.origins.runs_scripts else f"{visit.origins.replay}{source}",
        search=f"/search?{urlencode({'from': head.id})}" if head is not None and services.has_search else "",
        record=None if head is None else _record(head),
        has_scripts=has_scripts(services, located.domain, capture),
        runs_scripts=visit.origins.runs_scripts,
        reason_against="" if is_of_pywb else reason_against(capture.mime_type, capture.size) or "",
        size=capture.size,
        message_script=visit.origins.runs_scripts,
        copy=evidence.copy,
        certificate=evidence.certificate,
    )


def _with_dom(visit: Visit, view: FramePage, located: Located, seq: int, *, is_rendered: bool) -> FramePage:
    """Return the frame of a page that has a DOM: with the way there, or, around the DOM, with the way back."""
    digits, url = digits_of(seq if located.named is None else located.named), located.url
    if not is_rendered:
        return replace(view, rendered=replay_path(digits, Modifier.RENDERED_FRAME, url))
    source = f"{visit.origins.replay}{visit.token}{replay_path(digits, Modifier.RENDERED, url)}"
    return replace(
        view,
        source=source,
        alone=source,
        sandbox=headers.SANDBOX,
        as_sent=replay_path(digits, Modifier.FRAME, url),
        previous=_rendered(view.previous),
        following=_rendered(view.following),
        first=_rendered(view.first),
        last=_rendered(view.last),
        furthest=None,
        goes_on=None,
        has_scripts=False,
        reason_against="",
        message_script=False,
    )


def _rendered(way: PageLink | None) -> PageLink | None:
    """Return the way to the same page of another time, as a browser showed it then."""
    asked = None if way is None else parse(way.href.encode("ascii"))
    if way is None or not isinstance(asked, Replay):
        return None
    return replace(way, href=replay_path(asked.digits, Modifier.RENDERED_FRAME, asked.url))


def _record(head: RecordHead) -> FrameRecord:
    return FrameRecord(
        href=record_path(head.id),
        signature=head.signature,
        project=head.project,
        date=head.date,
        is_occasion=head.is_occasion,
        complete=head.complete,
    )


def _first_captured(capture: VisibleCapture, history: UrlHistory) -> int:
    """Return when the version of a capture was captured first: a crawl may only have met it unchanged."""
    times = (
        visible_capture.captured
        for visible_capture in history.captures
        if not visible_capture.is_revisit and visible_capture.until == capture.until
    )
    return next(times, capture.captured) if capture.is_revisit else capture.captured


def _differs(services: Services, one: VisibleCapture | None, other: VisibleCapture) -> bool:
    if one is None or one.is_redirect:
        return False
    return one.blob != other.blob or not memento.has_same_text(services, one, other)


def _version(url: str, seq: int | None) -> PageLink | None:
    if seq is None:
        return None
    return PageLink(replay_path(digits_of(seq), Modifier.FRAME, url), from_epoch(seq).isoformat())


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
