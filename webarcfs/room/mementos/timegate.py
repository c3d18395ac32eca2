"""`/web/<url>`: the TimeGate of a URL; `/timemap/…`: its TimeMaps (RFC 7089)."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import PlainTextResponse, Response

from webarcfs.gate.visibility import Absent
from webarcfs.gate.visible_captures import UrlHistory, VisibleCapture
from webarcfs.room import limits
from webarcfs.room.answering import StreamedAnswer, streamed
from webarcfs.room.mementos.archived import caching, redirect
from webarcfs.room.mementos.missing import missing
from webarcfs.room.replay import states
from webarcfs.room.replay.ranges import with_fields
from webarcfs.room.visit import Visit
from webarcfs.room.wayback import timemap as timemaps
from webarcfs.room.wayback.memento import (
    CORS,
    BadDate,
    accept_datetime,
    nearest,
    timegate_headers,
    timemap_headers,
    uri_m,
)
from webarcfs.room.wayback.replay_url import Modifier, TimeGate, TimeMap, replay_path
from webarcfs.room.wayback.timestamps import digits_of


def timegate(visit: Visit, asked: TimeGate) -> Response:
    """Return the way to the memento for Accept-Datetime; without it to the newest snapshot's frame."""
    wanted = visit.request.headers.get("accept-datetime")
    seconds: int | BadDate = limits.NOW if wanted is None else accept_datetime(wanted)
    if isinstance(seconds, BadDate):
        return with_fields(PlainTextResponse(f"{seconds.what}\n", 400), [*CORS, ("Vary", "accept-datetime")])
    history, asked = _history(visit, asked, seconds)
    # Where replay has an origin of its own, the room leads there with the reader's token.
    prefix = visit.token if asked.modifier is not Modifier.FRAME and not visit.origins.replay else ""
    if wanted is None:
        state = history.at(seconds)
        if state is None or state.capture is None:
            state = history.nearest(seconds)
        capture = None if state is None else state.capture
        place = "" if state is None else prefix + replay_path(digits_of(state.seq), asked.modifier, asked.url)
    else:
        capture = nearest(history.captures, asked.url, seconds)
        place = "" if capture is None else prefix + _memento(visit, asked, capture)
    if capture is None:
        return missing(visit, states.locate(visit.services, asked.url, seconds))
    fields = timegate_headers(visit.origins.base, asked.url, history.captures, capture, place)
    return with_fields(Response(status_code=302), [*CORS, *fields, ("Cache-Control", caching(visit))])


def _history(visit: Visit, asked: TimeGate, seconds: int) -> tuple[UrlHistory, TimeGate]:
    """Return what answers for a URL, and the URL: it may be at its host with or without `www.`."""
    captures = visit.services.captures
    if isinstance(captures.state(asked.url, seconds).answer, Absent):
        other = states.at_other_host(visit.services, asked.url)
        asked = asked if other is None else replace(asked, url=other)
    return captures.history(asked.url), asked


def _memento(visit: Visit, asked: TimeGate, capture: VisibleCapture) -> str:
    if asked.modifier is Modifier.FRAME:
        return uri_m(visit.origins.replay if visit.is_from_browser else "", capture)
    return uri_m("", capture, asked.modifier)


def timemap(visit: Visit, asked: TimeMap) -> Response:
    """Return a page of the mementos of a URL; 404 without Memento's headers where readers see none."""
    history = visit.services.captures.history(asked.url)
    lines = timemaps.timemap(visit.origins.base, asked, history.captures)
    if lines is None:
        located = states.locate(visit.services, asked.url, limits.NOW)
        is_absent = isinstance(located.state.answer, Absent)
        other = states.at_other_host(visit.services, asked.url) if is_absent else None
        if other is None:
            return missing(visit, located)
        return redirect(visit, replace(asked, url=other).location, asked.url)
    fields = [*CORS, *timemap_headers(asked.form), ("Cache-Control", caching(visit))]
    return with_fields(StreamedAnswer(streamed(each.encode() for each in lines)), fields)
