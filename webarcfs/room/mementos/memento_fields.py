"""The headers of Memento (RFC 7089) that answers about captures have."""

from __future__ import annotations

from webarcfs.gate.visible_captures import UrlHistory, VisibleCapture
from webarcfs.room.replay.states import Located
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.memento import CORS, Headers, memento_headers, redirect_headers


def of_capture(visit: Visit, located: Located, capture: VisibleCapture) -> Headers:
    """Return the headers of a memento: an archived page, redirect or error."""
    return of_history(visit, located, capture, visit.services.captures.history(located.url))


def of_history(visit: Visit, located: Located, capture: VisibleCapture, history: UrlHistory) -> Headers:
    """Return the headers of a memento whose history is known."""
    known = history.captures or [capture]
    return [*CORS, *memento_headers(visit.origins.base, located.url, known, capture)]


def of_redirect(url: str, place: str) -> Headers:
    """Return the headers of a redirect within the room, which is no memento."""
    return [*CORS, *redirect_headers(url, place)]
