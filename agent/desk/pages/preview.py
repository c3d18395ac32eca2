"""`/s/<token>/…`: pages of a snapshot for staff, by the room's replay, with the snapshot's record open alone.

The token names a session and a record; it is good for an hour, and no longer than the session and its password. What a
page embeds is asked for without cookies, so the token is all that it has; frames are for the person of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent.desk.pages import missing_pages, snapshots
from agent.desk.pages.snapshots import start_of
from agent.desk.theme import words
from agent.desk.visit import NO_STORE, Desk, DeskVisit
from agent.reports import missing_urls
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.workflow import Right, WorkflowStep
from webarcfs.archive.model.errors import Damaged, NotFound, TookTooLong, UsageError
from webarcfs.archive.system import clocks
from webarcfs.room.pages import archived, frame, lists
from webarcfs.room.replay.replay_url import FRAMES, Refused, Replay, TimeGate, parse
from webarcfs.room.views import Notice, PageLink
from webarcfs.room.visit import Origins, Renderer, Visit


def begin(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Lead to the first page of a snapshot, or to the one that is asked for. Raises NotFound."""
    record, _ = Catalogue(visit.desk.archive).read(path_params["record"])
    tag, url = start_of(visit, record, visit.parameter("domain"), visit.parameter("url"))
    token = visit.desk.tokens.preview(visit.session.public, record.id)
    return RedirectResponse(f"/s/{token}{lists.frame_of(tag, url)}", 303, dict(NO_STORE))


def shown(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show a frame, or a notice. Raises NotFound for a token of another session, or one that is over."""
    preview = visit.desk.tokens.of_preview(path_params["token"])
    if preview is None or preview[0] != visit.session.public:
        raise NotFound(
            visit.desk.said(words.msgid("This preview is over; open it again from its crawl."), visit.language)
        )
    prefix = f"/s/{path_params['token']}"
    if visit.path.startswith(f"{prefix}/notice/"):
        return _notice(visit, preview[1])
    return _answer(_Preview(visit, preview[1], prefix))


class _Preview:
    """A preview that is asked for a page."""

    def __init__(self, visit: DeskVisit, record: str, prefix: str) -> None:
        self.visit, self.record, self.prefix = visit, record, prefix

    def render(self, template: str, values: Mapping[str, Any], _: Visit) -> str:
        """Return the HTML of what the room answers: its frame in ours, and any other page as a note."""
        match template:
            case "frame.html":
                template, values = "preview.html", _framed(self, values)
            case "missing.html":
                template, values = "preview_note.html", self._missing(values["url"])
            case "notice.html":
                template, values = "preview_note.html", self._noticed(values)
            case "error.html":
                template, values = "preview_note.html", _note(values["heading"], values["details"], self.record)
        return self.visit.renderer(template, values, self.visit)

    def _noticed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the note on a page that the publication leaves out, or that is under embargo."""
        if values["kind"] is Notice.CLOSED:
            note = _note(words.msgid("This page is under embargo"), values["url"], self.record)
        else:
            note = self._missing(values["url"]) | {"text": words.msgid("This part was left out")}
        return note | {"reason": values["reason"], "until": values["until"]}

    def _missing(self, url: str) -> dict[str, Any]:
        """Return the note on a page that the crawl does not have, with what its log has of the URL."""
        archive = self.visit.desk.archive
        record = Catalogue(archive).read(self.record)[0]
        note = _note(words.msgid("This crawl does not have the page"), url, self.record)
        note |= {"more": f"/missing?{urlencode({'url': url, 'crawl': record.job_name})}"}
        try:
            with clocks.under(clocks.Deadline(_SECONDS)):
                lines = missing_urls.lines_of(archive, record.job_name, url)
        except (NotFound, Damaged):
            return note | {"unseen": words.msgid("Its log is not there, or is damaged.")}
        except TookTooLong:
            return note | {"unseen": words.msgid("The log of this crawl is too long to be read at once.")}
        if not lines:
            unseen = words.msgid("No page that the crawl read has a link to it.")
            return note | {"unseen": unseen, "patch": snapshots.patch_button(self.visit, record, url)}
        fates = [missing_pages.view_of(line) for line in lines.values()]
        missing = next(filter(missing_urls.may_be_named, lines.values()), None)
        patch = None if missing is None else snapshots.patch_button(self.visit, record, missing.url)
        return note | {"fate": fates, "patch": patch}


def _note(text: str, url: str, record: str) -> dict[str, Any]:
    """Return the values of a note on a page that the snapshot does not have, or that leads out of it.

    `fate` has what the crawl's log has of the URL: its spelling, sentences, what to do. `unseen` is why the log has
    nothing, `more` the page with all about it. `reason` is why the publication leaves it out, `until` the end of its
    embargo.
    """
    note = {"text": text, "url": url, "record": record, "fate": (), "unseen": "", "patch": None, "more": ""}
    return note | {"reason": "", "until": None}


#: Seconds that the logs of a crawl and of its patches are read for a page.
_SECONDS = 5.0


def _answer(preview: _Preview) -> Response:
    visit = preview.visit
    room = _room_visit(
        visit.request, visit.desk, preview.record, preview.prefix, language=visit.language, renderer=preview.render
    )
    asked = _asked(room)
    if isinstance(asked, TimeGate) or asked.modifier not in FRAMES:
        raise NotFound("there is no such page")
    response = frame.frame(room, asked)
    response.headers.update(NO_STORE)
    return response


def embedded(request: Request, desk: Desk, token: str) -> Response | None:
    """Return what a frame embeds, whose session is known by the token alone; None for a frame, or no such token."""
    preview = desk.tokens.of_preview(token)
    if preview is None:
        return None
    session = desk.sessions.named(preview[0])
    if session is None or desk.person_of(session) is None:
        return None
    prefix = f"/s/{token}"
    room = _room_visit(request, desk, preview[1], prefix, language="en", renderer=_in_words)
    asked = parse(room.raw_path, room.query)
    if not isinstance(asked, Replay) or asked.modifier in FRAMES:
        return None
    response = archived.answer(room, asked)
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "private, no-store"
    return response


def _in_words(_template: str, values: Mapping[str, object], _: Visit) -> str:
    return f"{values.get('heading', 'This crawl does not have it')}\n"


def _asked(room: Visit) -> Replay | TimeGate:
    asked = parse(room.raw_path, room.query)
    if isinstance(asked, Refused):
        raise UsageError(asked.reason)
    if not isinstance(asked, Replay | TimeGate):
        raise NotFound("there is no such page")
    return asked


def _room_visit(request: Request, desk: Desk, record: str, prefix: str, *, language: str, renderer: Renderer) -> Visit:
    """Return the request as the room has it: without the prefix, the record open."""
    scope = dict(request.scope)
    raw = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
    scope["raw_path"] = raw.removeprefix(prefix.encode())
    scope["path"] = scope["path"].removeprefix(prefix)
    services = desk.services(record)
    origins = Origins(prefix=prefix)
    return Visit(Request(scope), services.gate.reader, language, services, origins, renderer, prefix)


def _framed(preview: _Preview, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the frame around a page, whose links stay in the preview."""
    visit = preview.visit

    def within(link: PageLink | None) -> PageLink | None:
        return None if link is None else replace(link, href=preview.prefix + link.href)

    with snapshots.open_tables(visit) as tables:
        row = tables.row(preview.record)
    if row is None:
        raise NotFound(f"there is no crawl {preview.record}")
    line = snapshots.line_of(visit, row)
    release = line.next if line.next is not None and line.next.action.endswith(f"/{WorkflowStep.RELEASE}") else None
    return {
        **values,
        "previous": within(values["previous"]),
        "following": within(values["following"]),
        "rendered": values["rendered"] and preview.prefix + values["rendered"],
        "as_sent": values["as_sent"] and preview.prefix + values["as_sent"],
        "is_unreleased": row.state is not RecordState.RELEASED,
        "name": line.name,
        "release": release,
        "withhold": f"/access?{urlencode({'url': values['url']})}" if visit.may(Right.WITHDRAW) else "",
        "href": f"/snapshot/{quote(preview.record, safe='')}",
        "patch": snapshots.patch_button(visit, row),
    }


def _notice(visit: DeskVisit, record: str) -> Response:
    """Say that a link or a form leads out of the snapshot, as the room does to readers."""
    is_form = "/notice/form/" in visit.path
    url = visit.parameter("url")
    text = (
        words.msgid("This form asked the site itself, which is not here")
        if is_form
        else words.msgid("This link leads out of the crawl")
    )
    return visit.page("preview_note.html", **_note(text, url, record))
