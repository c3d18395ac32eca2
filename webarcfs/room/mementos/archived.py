"""Answers of replay: what the archive has at a URL in a state, as a browser may show it, or why there is none.

`mp_` is a page in the room's frame, `id_` the bytes as they were sent, the other modifiers what pages embed. Each
answer depends on the reader and is judged each time: caches must ask again (RFC 9111 section 5.2.2.4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from starlette.responses import Response

from webarcfs.archive.model.url import domain_of
from webarcfs.content.rewriting.references import VERSION
from webarcfs.gate.visibility import Absent
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.memento_views import ErrorPage
from webarcfs.room.mementos import memento_fields
from webarcfs.room.mementos.missing import missing
from webarcfs.room.replay import headers, ranges, showing, states
from webarcfs.room.replay.rewriting import head_of, rewritten
from webarcfs.room.replay.states import Located
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import EMBEDDED, Modifier, Replay, replay_path
from webarcfs.room.wayback.timestamps import digits_of


def answer(visit: Visit, asked: Replay) -> Response:
    """Return the answer to a URL of replay, but for the frame's."""
    if visit.request.headers.get("service-worker", "").lower() == "script":
        return visit.page(ErrorPage(403, "Not allowed", "Archived service workers are not run."), 403)
    located = states.locate(visit.services, asked.url, asked.seconds)
    elsewhere = other_place(visit, located, asked)
    if elsewhere is not None:
        return redirect(visit, elsewhere, asked.url)
    capture = located.state.capture
    if capture is None or located.seq is None:
        return missing(visit, located, asked.modifier)
    if capture.is_redirect:
        return led_on(visit, located, capture, asked.modifier)
    return _body(visit, located, capture, asked.modifier)


def beside_replay(visit: Visit, asked: Replay) -> Response:
    """Return the room's answer where replay has an origin of its own: browsers are sent there, programs get a file.

    Programs do not follow to another port, or they save the redirect. Whoever it is that looks like one, nothing
    archived is shown with the room's origin. So what was sent may be asked for under any name.
    """
    is_for_replay = visit.names_purpose if asked.modifier is Modifier.AS_SENT else visit.is_from_browser
    if is_for_replay:
        return redirect(visit, visit.origins.replay + visit.token + asked.location, asked.url)
    found = answer(replace(visit, token=""), asked)
    if all(name != b"memento-datetime" for name, _ in found.raw_headers):
        return found
    return ranges.with_fields(found, headers.AS_FILE)


def other_place(visit: Visit, located: Located, asked: Replay) -> str | None:
    """Return where a URL of replay belongs; None: here.

    That is at the digits of what it shows, at its folder, in the nearest state, or at its host with or without `www.`.
    """
    prefix = visit.token if asked.modifier is not Modifier.FRAME else visit.origins.prefix
    if located.named is not None and digits_of(located.named) != asked.digits:
        return prefix + replay_path(digits_of(located.named), asked.modifier, located.url)
    if not isinstance(located.state.answer, Absent):
        return None
    found = _like(visit, located, asked)
    return None if found is None else prefix + replay_path(digits_of(found[0]), asked.modifier, found[1])


def _like(visit: Visit, located: Located, asked: Replay) -> tuple[int, str] | None:
    """Return the time and the URL of what is shown in place of a URL that a state does not have; None without any."""
    folder = states.folder_of(visit.services, located)
    if folder is not None and located.seq is not None:
        return located.seq, folder
    near = states.nearest(visit.services, located) if asked.modifier in EMBEDDED else None
    if near is not None:
        return near.seq, located.url
    other = states.at_other_host(visit.services, located.url)
    there = None if other is None else states.locate(visit.services, other, asked.seconds)
    if there is None or there.state.capture is None or there.named is None:
        return None
    return there.named, there.url


def redirect(visit: Visit, place: str, url: str) -> Response:
    """Return a redirect within the room, which is no memento."""
    fields = [*memento_fields.of_redirect(url, place), ("Cache-Control", caching(visit))]
    return ranges.with_fields(Response(status_code=302), fields)


def led_on(visit: Visit, located: Located, capture: VisibleCapture, modifier: Modifier) -> Response:
    """Return an archived redirect, which leads on within the archive; one that leads to no end is no answer."""
    if located.is_loop:
        return missing(visit, located, modifier)
    target, mark, fragment = capture.target.partition("#")
    domain = domain_of(target)
    seq = states.state_in_record(visit.services, domain, located.domain, located.seq or capture.since)
    digits = digits_of(seq if seq is not None else located.seq or capture.since)
    prefix = visit.origins.prefix if modifier is Modifier.FRAME else visit.token
    place = prefix + replay_path(digits, modifier, target) + mark + fragment
    fields = [("Location", place), *memento_fields.of_capture(visit, located, capture)]
    return ranges.with_fields(Response(status_code=capture.status), [*fields, ("Cache-Control", caching(visit))])


def _body(visit: Visit, located: Located, capture: VisibleCapture, modifier: Modifier) -> Response:
    services = visit.services
    head = head_of(services, located.domain, capture)
    room = visit.origins.room or "'self'"
    fields: headers.Headers = [
        *headers.COMMON,
        *memento_fields.of_capture(visit, located, capture),
        *headers.told(head),
    ]
    fields.append(("Cache-Control", caching(visit)))
    anew = rewritten(visit, located, capture, head, modifier)
    if _is_download(capture, modifier):
        fields.append(("Content-Disposition", "attachment"))
    if modifier is Modifier.AS_SENT:
        fields.append(("Content-Security-Policy", headers.policy_of_bytes()))
    else:
        is_framed = modifier is Modifier.PAGE
        policy = headers.policy(room, is_framed=is_framed, has_links=anew is not None)
        fields.append(("Content-Security-Policy", policy))
    shown = capture.mime_type if modifier is Modifier.AS_SENT else showing.shown_type(capture.mime_type)
    kind = headers.content_type(shown, head, modifier, "" if anew is None else anew.charset)
    fields.append(("Content-Type", kind))
    if anew is None:
        etag = f'"{capture.blob}"'

        def pieces(start: int, end: int) -> Iterator[bytes]:
            return services.shared.body_in_pieces(located.domain, capture.blob, capture.size, start, end)

        return ranges.partly(visit.request, capture.status, capture.size, pieces, [*fields, ("ETag", etag)])
    known = f"{capture.blob} {located.seq} {modifier} {VERSION} {visit.token} {visit.origins.pages}"
    etag = f'"{hashlib.sha256(known.encode() + anew.digest).hexdigest()[:32]}"'
    return ranges.whole(visit.request, capture.status, anew.body, [*fields, ("ETag", etag)])


def _is_download(capture: VisibleCapture, modifier: Modifier) -> bool:
    """Return whether a browser must not show a body. What asks for one as a part of a page takes it all the same."""
    if modifier in (Modifier.SCRIPT, Modifier.SHEET):
        return False
    return modifier is Modifier.AS_SENT or showing.reason_against(capture.mime_type, capture.size) is not None


def caching(visit: Visit) -> str:
    """Return the Cache-Control of an answer that the gate judged."""
    return "private, no-store" if visit.reader.name else "no-cache"
