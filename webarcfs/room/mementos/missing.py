"""Answers about URLs that a state does not show: absent, closed, blocked, or left out by an appraisal.

What is absent, excluded or not released is the same answer, byte for byte, by the same work: nothing here looks past
the gate.
"""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import Response

from webarcfs.archive.model.metadata import from_epoch
from webarcfs.gate.visibility import Blocked, Closed
from webarcfs.gate.visible_captures import State
from webarcfs.room.look.language import moment
from webarcfs.room.memento_views import ErrorPage, InnerNotice, MissingPage
from webarcfs.room.pages import notices, rows
from webarcfs.room.pages.calendar import variants
from webarcfs.room.replay import states
from webarcfs.room.replay.states import Located
from webarcfs.room.views import Link
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import Modifier, calendar_path, prefix_path, replay_path
from webarcfs.room.wayback.timestamps import digits_of

#: By this field clients of the Wayback Machine tell what may not be shown from what is not there.
_REFUSED = {"X-Archive-Wayback-Runtime-Error": "AdministrativeAccessControlException: it may not be shown"}


#: What frames of archived pages ask for: there is no place for a page of the room.
_INNER = frozenset({Modifier.INNER_FRAME, Modifier.IFRAME, Modifier.OBJECT})


def missing(visit: Visit, located: Located, modifier: Modifier = Modifier.FRAME) -> Response:
    """Return the answer about a URL that a state does not show: 403 closed, 451 blocked, else 404."""
    return _inner(visit, located) if modifier in _INNER else _whole(visit, located)


def _inner(visit: Visit, located: Located) -> Response:
    """Return the same answer as a small notice: its heading, and the URL."""
    if isinstance(located.state.answer, Closed):
        return visit.page(InnerNotice("This is closed", located.url), 403, _REFUSED)
    if isinstance(located.state.answer, Blocked):
        return visit.page(InnerNotice("Not available for legal reasons", located.url), 451, _REFUSED)
    return visit.page(InnerNotice("Not in this snapshot", located.url), 404)


def _whole(visit: Visit, located: Located) -> Response:
    answer = located.state.answer
    place = located.domain, located.state.closed or located.state.seq
    if isinstance(answer, Closed):
        return visit.page(notices.closed(visit, located.url, answer.until, place), 403, _REFUSED)
    if isinstance(answer, Blocked):
        text = "This page is archived, and may not be shown."
        return visit.page(ErrorPage(451, "Not available for legal reasons", text, answer.text), 451, _REFUSED)
    if located.seq is not None:
        exclusions = states.leaving(visit.services, located.domain, located.seq).exclusions
        found = states.left_out(exclusions, located.url)
        if found is not None:
            return visit.page(notices.left_out(visit, located.url, found.reason, (located.domain, located.seq)), 404)
    return visit.page(_page(visit, located), 404)


def _page(visit: Visit, located: Located) -> MissingPage:
    services, seq = visit.services, located.seq
    before: State | None = None
    after: State | None = None
    if seq is not None:
        before, after = services.captures.history(located.url).beside(seq)
    head = None if seq is None else states.record_of(services, located.domain, seq)
    folder = located.url.partition("?")[0].rpartition("/")[0]
    return MissingPage(
        url=located.url,
        date=None if seq is None else from_epoch(seq),
        before=_version(visit, located.url, before),
        after=_version(visit, located.url, after),
        variants=tuple(variants(services, located.url)),
        calendar=calendar_path(located.url),
        prefix=prefix_path(f"{folder}/"),
        search=f"/search?{urlencode({'q': f'site:{located.domain}'})}" if services.has_search else "",
        record=None if head is None else rows.snapshot_row(services, head),
    )


def _version(visit: Visit, url: str, state: State | None) -> Link | None:
    if state is None:
        return None
    when = moment(from_epoch(state.seq), visit.language)
    return Link(replay_path(digits_of(state.seq), Modifier.FRAME, url), when)
