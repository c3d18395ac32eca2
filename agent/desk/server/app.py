"""Answers requests to the desk: who asks, whether they may, whether a form is ours, and in what page that ends.

The order is the same for each route of the table: a foreign origin is refused, then who has no session logs in, then
the right is asked for, then the form's token. So no handler decides about any of these, and none can forget it.

`Bodies` takes requests before a handler sees them: three methods, and forms as whole bodies, bounded in size and time.
A form with a file (multipart/form-data, RFC 7578) may be larger; it is read as it comes, and the file goes to a
temporary one. Only who may send one sends more than others: that is asked before the body is read.

`ROUTES` has all routes of the desk, with the right that each needs. The tests try each without a login, a right, a
token.

The process of `webarc-agent desk` has one listener, one event loop, a few threads for its handlers.

SIGTERM and SIGINT end it after the requests that run. The key of sessions and tokens is made at its start, and is
nowhere else.

`/events` has the figures of what runs, as server-sent events (HTML, section "Server-sent events"). One look at the jobs
a second serves all who watch, and none is taken while nobody does. It reads files that the jobs write anyway, so the
agent does nothing for it. Who watches gets a whole state at first, and another when it differs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import secrets
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final
from urllib.parse import quote, urlsplit

import multipart
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.desk import forms, login
from agent.desk.forms import SentFile, SentForm
from agent.desk.login import Session
from agent.desk.pages import access, jobs, preview, registers, settings_pages, snapshots, today
from agent.desk.theme.desk_rendering import DeskLook, Saying
from agent.desk.theme.words import msgid
from agent.desk.views import LoginPage, MessagePage
from agent.desk.visit import NO_STORE, Desk, DeskVisit, Problem
from agent.operations.records import catalogue_of
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordSelection, opened
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import (
    Busy,
    NotFound,
    SettingsError,
    TooMany,
    UsageError,
    WebarcError,
    http_status_of,
)
from webarcfs.archive.system import processes
from webarcfs.room.visit import Origins
from webarcfs.web.access_log import AccessLog, Logged
from webarcfs.web.answering import REASON, Answering, disconnected, peer
from webarcfs.web.connections import (
    HostRules,
    ProcessServer,
    SecurityHeaders,
    ServedApps,
    host_names,
    refusal,
    room_headers,
    server_config,
)
from webarcfs.web.language import negotiated
from webarcfs.web.listeners import Address, bind, hosts_of, inherited

# == uploads ==========================================================================================================


_KIND: Final = "multipart/form-data"
#: Most fields, the file among them.
_FIELDS: Final = 20


def boundary_of(content_type: str) -> str:
    """Return what lies between the fields of a form with a file; empty for another kind of body."""
    kind, options = multipart.parse_options_header(content_type)
    return str(options.get("boundary", "")) if kind == _KIND else ""


async def read(chunks: AsyncIterator[bytes], boundary: str) -> SentForm:
    """Return the form of a body. Raises UsageError; OSError where there is no space for the file."""
    reading = _Reading()
    try:
        with multipart.PushMultipartParser(
            boundary, max_segment_count=_FIELDS, max_segment_size=forms.UPLOAD_BYTES, strict=True
        ) as parser:
            async for chunk in chunks:
                for event in parser.parse(chunk) if chunk else ():
                    reading.hear(event)
        return reading.form()
    except multipart.MultipartError as error:
        reading.close()
        raise UsageError(str(error)) from None
    except BaseException:
        reading.close()
        raise


class _Reading:
    """What was read of a form so far."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str]] = []
        self._name = ""
        self._text: bytearray | None = None
        self._size = 0
        self._file: SpooledTemporaryFile[bytes] | None = None
        self._file_name = ""

    def hear(self, event: object) -> None:
        """Take an event of the parser: the head of a field, a piece of its value, or None at its end."""
        if isinstance(event, multipart.MultipartSegment):
            self._begin(event.name, event.filename)
        elif event is None:
            if self._text is not None:
                self._pairs.append((self._name, self._text.decode("utf-8", "replace")))
        elif isinstance(event, bytes | bytearray | memoryview):
            if self._text is None:
                assert self._file is not None
                self._file.write(event)
            else:
                self._size += len(event)
                if self._size > forms.BODY_BYTES:
                    raise UsageError("its fields are too long")
                self._text += event

    def _begin(self, name: str, file_name: str | None) -> None:
        self._name, self._text = name, bytearray() if file_name is None else None
        if file_name is not None:
            if self._file is not None:
                raise UsageError("it has two files")
            self._file_name = file_name
            self._file = SpooledTemporaryFile(max_size=forms.UPLOAD_IN_MEMORY)  # noqa: SIM115 # until it is answered

    def form(self) -> SentForm:
        """Return the form; a file that nobody chose is none."""
        if self._file is None or not self._file_name:
            self.close()
            return forms.of_pairs(self._pairs)
        self._file.seek(0)
        name = forms.clean(self._file_name).replace("\\", "/").rpartition("/")[2]
        return forms.of_pairs(self._pairs, SentFile(name, self._file))

    def close(self) -> None:
        """Let the file go."""
        file: IO[bytes] | SpooledTemporaryFile[bytes] | None = self._file
        if file is not None:
            file.close()


# == bodies ===========================================================================================================


#: Where the body of a request is left for its handler.
BODY = "webarc.body"
#: Where a form with a file is left, read.
FORM = "webarc.form"
_METHODS = (b"allow", b"GET, HEAD, POST")


class Bodies:
    """An ASGI app that passes requests on to another, each with its whole body; what is refused is answered here."""

    def __init__(self, app: ASGIApp, takes_file: Callable[[str], bool], may_send: Callable[[Request], bool]) -> None:
        """`takes_file`: whether a path takes a file; `may_send`: whether a person who may send one asks. It blocks."""
        self._app = app
        self._takes_file = takes_file
        self._may_send = may_send

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return
        method = scope["method"]
        as_read = "GET" if method == "POST" else method
        headers = [header for header in scope["headers"] if method != "POST" or header[0] not in _OF_BODIES]
        refused = HTTPStatus.METHOD_NOT_ALLOWED if method == "OPTIONS" else None
        refused = refused or refusal(as_read, len(scope["query_string"]), headers)
        if refused is None and method == "POST":
            refused = await self._read(scope, receive)
        if refused is not None:
            is_large = refused is HTTPStatus.REQUEST_ENTITY_TOO_LARGE and self._takes_file(scope["path"])
            await _refuse(send, refused, ": a file that is attached has 20 MB at most" if is_large else "")
            return
        try:
            await self._app(scope, receive, send)
        finally:
            form = scope.get(FORM)
            if isinstance(form, SentForm) and form.file is not None:
                form.file.body.close()

    async def _read(self, scope: Scope, receive: Receive) -> HTTPStatus | None:
        """Leave the body in the scope; return the status with which it is refused."""
        boundary = boundary_of(Headers(scope=scope).get("content-type", ""))
        if boundary and self._takes_file(scope["path"]):
            return await self._read_file(scope, receive, boundary)
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not length.isdigit() or len(length) > 12 or int(length) > forms.BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        try:
            body = await asyncio.wait_for(_whole(receive), forms.BODY_SECONDS)
        except TimeoutError:
            return HTTPStatus.REQUEST_TIMEOUT
        if len(body) > forms.BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        scope[BODY] = body
        return None

    async def _read_file(self, scope: Scope, receive: Receive, boundary: str) -> HTTPStatus | None:
        """Leave the form of a body with a file in the scope; return the status with which it is refused."""
        may_send = await asyncio.to_thread(self._may_send, Request(scope))
        most = forms.UPLOAD_BYTES if may_send else forms.BODY_BYTES
        too_large = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if may_send else HTTPStatus.FORBIDDEN
        length = Headers(scope=scope).get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 12 or int(length) > most:
            return too_large
        try:
            async with asyncio.timeout(forms.UPLOAD_SECONDS):
                scope[FORM] = await read(_chunks(receive, most), boundary)
        except TimeoutError:
            return HTTPStatus.REQUEST_TIMEOUT
        except TooMany:
            return too_large
        except UsageError:
            return HTTPStatus.BAD_REQUEST
        except OSError:  # no space for it
            return HTTPStatus.INSUFFICIENT_STORAGE
        return None


async def _chunks(receive: Receive, most: int) -> AsyncIterator[bytes]:
    """Yield a body as it comes. Raises TooMany; a client that has gone ends it."""
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        body = message.get("body", b"")
        size += len(body)
        if size > most:
            raise TooMany(f"a body of more than {most} bytes")
        yield body
        if not message.get("more_body"):
            return


_OF_BODIES = (b"content-length", b"transfer-encoding")


async def _whole(receive: Receive) -> bytes:
    """Return the body of a request; one byte too many where it is too long; nothing if the client has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        body += message.get("body", b"")
        if len(body) > forms.BODY_BYTES or not message.get("more_body"):
            return bytes(body[: forms.BODY_BYTES + 1])


async def _refuse(send: Send, status: HTTPStatus, reason: str) -> None:
    body = f"{status} {status.phrase}{reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *([_METHODS] if status is HTTPStatus.METHOD_NOT_ALLOWED else []),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


# == routing, pure ====================================================================================================


#: Answers a request of a person who has the right.
Handler = Callable[[DeskVisit, Mapping[str, str]], Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRoute:
    """A path, as an expression over the decoded path, with the handlers of GET and POST; None: there is none.

    `looks` and `acts` are the rights of GET and POST; None: every person of the archive. `again` shows the page of a
    form with what was typed: after a fault, or a login. `example` is a path, for tests. `action` is what tokens of the
    form are made for; empty: the path, without `suffix` where two buttons send one form to two places. `takes_file`:
    its form has a file.
    """

    name: str
    pattern: re.Pattern[str]
    example: str
    get: Handler | None = None
    post: Handler | None = None
    looks: Right | None = None
    acts: Right | None = None
    again: Handler | None = None
    action: str = ""
    suffix: str = ""
    takes_file: bool = False

    def action_of(self, path: str) -> str:
        """Return for which action a token must be made that is sent to a path."""
        return self.action or path.removesuffix(self.suffix)


def route(name: str, pattern: str, example: str, **more: object) -> DeskRoute:
    """Return a route."""
    return DeskRoute(name=name, pattern=re.compile(pattern, re.DOTALL), example=example, **more)  # type: ignore[arg-type] # as DeskRoute has them


def find_route(routes: tuple[DeskRoute, ...], path: str) -> tuple[DeskRoute, dict[str, str]] | None:
    """Return the first route that fits a path, and what the path says."""
    for route in routes:
        if match := route.pattern.fullmatch(path):
            return route, match.groupdict()
    return None


# == routes ===========================================================================================================


_RECORD = r"/snapshot/(?P<record>[^/]+)"
_EXAMPLE = "/snapshot/20260101T000000-p"


def _of_snapshot(name: str, word: str, post: object, right: Right) -> DeskRoute:
    """Return the route of a form on the page of a snapshot."""
    return route(name, f"{_RECORD}/{word}", f"{_EXAMPLE}/{word}", post=post, acts=right, again=snapshots.show_snapshot)


#: The first that fits answers.
ROUTES: Final[tuple[DeskRoute, ...]] = (
    route("today", r"/", "/", get=today.today),
    route("snapshots as a table", r"/snapshots\.csv", "/snapshots.csv", get=snapshots.as_csv),
    route("snapshots", r"/snapshots", "/snapshots", get=snapshots.listed),
    route("ticks", r"/snapshots/ticks", "/snapshots/ticks", post=snapshots.keep_ticks, again=snapshots.again,
          action=snapshots.PATH),
    route("release the ticked", r"/snapshots/release", "/snapshots/release", post=snapshots.release_several,
          acts=Right.RELEASE, again=snapshots.again, action=snapshots.PATH),
    route("choose several", r"/snapshots/several", "/snapshots/several", post=snapshots.to_several,
          acts=Right.DESCRIBE, again=snapshots.again, action=snapshots.PATH),
    route("change several", r"/snapshots/edit", "/snapshots/edit", get=snapshots.several, post=snapshots.save_several,
          looks=Right.DESCRIBE, acts=Right.DESCRIBE, again=snapshots.several),
    route("new snapshot", r"/new", "/new", get=snapshots.show, post=snapshots.start,
          looks=Right.CAPTURE, acts=Right.CAPTURE,
          again=snapshots.show),
    route("log", rf"{_RECORD}/log/(?P<log>.+)", f"{_EXAMPLE}/log/crawl.log.gz", get=snapshots.show_log),
    route("picture", rf"{_RECORD}/picture/(?P<name>[^/]+)", f"{_EXAMPLE}/picture/01-replay.jpg",
          get=snapshots.show_picture),
    route("preview", rf"{_RECORD}/preview", f"{_EXAMPLE}/preview", get=preview.begin),
    _of_snapshot("description", "describe", snapshots.save, Right.DESCRIBE),
    route("attach", f"{_RECORD}/attach", f"{_EXAMPLE}/attach", post=snapshots.attach, acts=Right.DESCRIBE,
          again=snapshots.show_snapshot, takes_file=True),
    _of_snapshot("detach", "detach", snapshots.detach, Right.DESCRIBE),
    route("attachment", rf"{_RECORD}/attachment/(?P<name>[^/]+)", f"{_EXAMPLE}/attachment/contract.pdf",
          get=snapshots.download),
    _of_snapshot("release", "release", snapshots.release, Right.RELEASE),
    _of_snapshot("reject", "reject", snapshots.reject, Right.REVIEW),
    _of_snapshot("reopen", "reopen", snapshots.reopen, Right.REVIEW),
    _of_snapshot("withdraw", "withdraw", snapshots.withdraw, Right.WITHDRAW),
    _of_snapshot("discard", "discard", snapshots.discard, Right.WITHDRAW),
    _of_snapshot("restore", "restore", snapshots.restore, Right.WITHDRAW),
    _of_snapshot("cancel", "cancel", snapshots.cancel, Right.CAPTURE),
    _of_snapshot("patch", "patch", snapshots.patch, Right.CAPTURE),
    _of_snapshot("look", "look", snapshots.look, Right.REVIEW),
    _of_snapshot("measure", "measure", snapshots.measure, Right.PROCESS),
    route("step", f"{_RECORD}/step", f"{_EXAMPLE}/step", post=snapshots.step, again=snapshots.show_snapshot),
    route("snapshot as a file", rf"{_RECORD}\.(?P<kind>xml|json|dc)", f"{_EXAMPLE}.xml", get=snapshots.exported),
    route("snapshot", _RECORD, _EXAMPLE, get=snapshots.show_snapshot),
    route("previewed page", r"/s/(?P<token>[^/]+)/(?:web|notice)/.*", "/s/x/web/20260101000000/http://e.org/",
          get=preview.shown),
    route("compare", r"/compare/(?P<pair>[^/]+)", "/compare/a..b", get=snapshots.compare),
    route("compare with any", r"/compare", "/compare", get=snapshots.choose),
    route("running", r"/running", "/running", get=jobs.running),
    route("order", r"/job/(?P<job>[^/]+)/order", "/job/20260101T000000-p/order", post=jobs.give, acts=Right.CAPTURE,
          again=jobs.running),
    route("publications", r"/publications", "/publications", get=settings_pages.listed),
    route("new publication", r"/publications/\+new", "/publications/+new",
          get=settings_pages.new, post=settings_pages.save,
          looks=Right.PUBLICATIONS, acts=Right.PUBLICATIONS, again=settings_pages.new),
    route("try a new publication", r"/publications/\+try", "/publications/+try", post=settings_pages.try_,
          acts=Right.PUBLICATIONS, again=settings_pages.new, action="/publications/+new"),
    route("trial", r"/publications-trial/(?P<mark>[^/]+)", "/publications-trial/x", get=settings_pages.trial,
          looks=Right.PUBLICATIONS),
    route("publication", r"/publications/(?P<name>[^/+]+)", "/publications/p", get=settings_pages.show,
          post=settings_pages.save, acts=Right.PUBLICATIONS, again=settings_pages.show),
    route("try a publication", r"/publications/(?P<name>[^/+]+)/try", "/publications/p/try", post=settings_pages.try_,
          acts=Right.PUBLICATIONS, again=settings_pages.show, suffix="/try"),
    route("retire", r"/publications/(?P<name>[^/+]+)/retire", "/publications/p/retire", post=settings_pages.retire,
          acts=Right.PUBLICATIONS, again=settings_pages.show),
    route("registers", r"/registers", "/registers", get=registers.show),
    route("keep in a register", r"/registers/save", "/registers/save", post=registers.save, acts=Right.PUBLICATIONS,
          again=registers.show),
    route("report", r"/report/(?P<job>[^/]+)", "/report/20260101T000000-p", get=jobs.report),
    route("access", r"/access", "/access", get=access.show),
    route("withhold", r"/access/withhold", "/access/withhold", post=access.withhold, acts=Right.WITHDRAW,
          again=access.show),
    route("lift", r"/access/lift", "/access/lift", post=access.lift, acts=Right.WITHDRAW, again=access.show),
    route("options", r"/options", "/options",
          get=settings_pages.show_options, post=settings_pages.save_options, acts=Right.OPTIONS,
          again=settings_pages.show_options),
    route("people", r"/people", "/people", get=access.show_people, looks=Right.PEOPLE),
    route("save person", r"/people/save", "/people/save",
          post=access.save, acts=Right.PEOPLE, again=access.show_people),
    route("remove person", r"/people/remove", "/people/remove", post=access.remove, acts=Right.PEOPLE,
          again=access.show_people),
    route("password", r"/password", "/password", get=access.password, post=access.set_password, again=access.password),
    route("feed", r"/feed/(?P<feed>[^/]+)\.atom", "/feed/x.atom", get=today.read),
    route("address of the feed", r"/feed", "/feed", get=today.show_feed, post=today.change, again=today.show_feed),
    route("language", r"/language", "/language", post=access.language, again=today.today),
    route("logout", r"/logout", "/logout", post=access.logout, again=today.today),
)  # fmt: skip


# == app ==============================================================================================================


_YEAR = 365 * 24 * 3600
#: Fields of the form of a login that keep another form.
_KEPT, _BACK = "kept-", "back"
_WRONG = msgid("The name or the password is wrong.")
_LATE = msgid(
    "This form was not sent: it was made before you logged in, or by another session. Your input is still here."
)
_TWICE = msgid("This form was sent already. Nothing was done again; this is how things are now.")
#: The path of a feed without its secret.
_FEED = "/feed/-.atom"
#: The files that a fault of settings names before its key.
_FILES = re.compile(r"^(?:\S+\.toml: )+")
#: What may be the hash of a password.
_HASH = re.compile(r"\$argon2\S*|\$\d?[a-z]*\$\S+")
_MEANWHILE = msgid("Your session was over. Your input is still here; nothing was sent yet.")


class DeskApp:
    """The handlers of the desk. Any thread may use it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.look = DeskLook(desk.archive)

    def answer(self, request: Request) -> Response:
        """Answer a request."""
        path = request.scope["path"]
        if (static := self._static(path)) is not None:
            return static
        is_post = request.method == "POST"
        self.desk.look(surely=is_post)
        try:
            return self._answer(request, path, is_post=is_post)
        finally:
            if is_post:
                self.desk.look(surely=True)  # the next page shows what the form changed

    def _answer(self, request: Request, path: str, *, is_post: bool) -> Response:
        if is_post and not self._is_own_origin(request):
            return self._message(request, HTTPStatus.FORBIDDEN, msgid("This form is not of this desk"))
        form = _form(request) if is_post else SentForm()
        if path == "/login":
            return self._login(request, form)
        known = find_route(ROUTES, path)
        if known is None:
            raise NotFound("there is no such page")
        route, path_params = known
        if (part := self._by_secret(request, route, path_params)) is not None:
            return part
        who = self._who(request)
        if who is None:
            return self._ask(request, form if is_post and route.post is not None else SentForm())
        session, person, cookie = who
        visit = replace(self._visit(request, session, person), form=form)
        response = self._acted(route, path_params, visit) if is_post else self._looked(route, path_params, visit)
        if cookie:
            self.desk.set_cookie(response, cookie)
        return response

    def _by_secret(self, request: Request, route: DeskRoute, path_params: Mapping[str, str]) -> Response | None:
        """Return what a secret in the path opens, without a session; None for any other."""
        secret = path_params.get("feed", "")
        if secret:
            request.scope["path"] = _FEED  # logs have the path
        if request.method == "POST":
            return None
        if secret:
            reader = self.desk.persons.of_feed(secret)
            once = None if reader is None else self._visit(request, self.desk.sessions.once(reader), reader)
            return None if once is None else self._looked(route, path_params, once)
        return preview.embedded(request, self.desk, path_params["token"]) if "token" in path_params else None

    def _looked(self, route: DeskRoute, path_params: Mapping[str, str], visit: DeskVisit) -> Response:
        if route.get is None:
            return self._message(visit.request, HTTPStatus.METHOD_NOT_ALLOWED, msgid("This cannot be asked here"))
        return self._refused(route.looks, visit) or route.get(visit, path_params)

    def _acted(self, route: DeskRoute, path_params: Mapping[str, str], visit: DeskVisit) -> Response:
        if route.post is None:
            return self._message(visit.request, HTTPStatus.METHOD_NOT_ALLOWED, msgid("This cannot be asked here"))
        refused = self._refused(route.acts, visit)
        if refused is not None:
            return refused
        token = self.desk.tokens.read(visit.form.raw(forms.TOKEN), visit.session.public, route.action_of(visit.path))
        visit = replace(visit, form=replace(visit.form, token=token))
        if not token.is_ours:
            return self._again(route, path_params, visit, Problem(self._said(visit, _LATE), status=403))
        if not self.desk.sessions.is_new(visit.session, token.mark):
            return self._again(
                route, path_params, visit, Problem(self._said(visit, _TWICE), status=409), is_typed=False
            )
        try:
            return route.post(visit, path_params)
        except (WebarcError, OSError) as error:
            return self._again(route, path_params, visit, _problem(error))

    def _refused(self, right: Right | None, visit: DeskVisit) -> Response | None:
        """Return the answer to a person without a right; None to one who has it."""
        if right is None or visit.may(right):
            return None
        text = f"{visit.person.name}: {visit.person.role}, {right}"
        return self._message(
            visit.request, HTTPStatus.FORBIDDEN, msgid("You do not have the right to do this"), text, visit
        )

    def _again(
        self,
        route: DeskRoute,
        path_params: Mapping[str, str],
        visit: DeskVisit,
        problem: Problem | None,
        *,
        is_typed: bool = True,
    ) -> Response:
        """Show the page of a form, with what was typed and why it was not taken."""
        again = route.again or route.get
        if again is None or not (route.looks is None or visit.may(route.looks)):
            status = HTTPStatus(problem.status if problem is not None else 403)
            text = problem.text if problem is not None else ""
            return self._message(visit.request, status, msgid("This form was not taken"), text, visit)
        return again(replace(visit.with_problem(problem), is_typed=is_typed), path_params)

    # -- who asks ----------------------------------------------------------------------------------------------------

    def _who(self, request: Request) -> tuple[Session, Person, str] | None:
        """Return session and person of a request, and a new cookie where a proxy says who it is; None: nobody."""
        settings = self.desk.settings().desk
        proxy_user = login.told_by_proxy(settings, peer(request), request.headers)
        session = self.desk.sessions.find(request.cookies.get(self.desk.sessions.cookie, ""))
        if proxy_user:
            person = self.desk.persons.find(proxy_user, is_told=True)
            if person is None:
                return None
            if session is None or session.proxy != proxy_user or session.person != person.key:
                session, cookie = self.desk.sessions.begin(person, proxy_user)
                return session, person, cookie
            return session, person, ""
        if session is None or session.proxy:
            return None
        person = self.desk.person_of(session)
        if person is None:
            self.desk.sessions.end(session)
            return None
        return session, person, ""

    def is_known(self, request: Request) -> bool:
        """Return whether a person of the archive asks."""
        return self._who(request) is not None

    @staticmethod
    def takes_file(path: str) -> bool:
        """Return whether a form that is sent to a path has a file."""
        known = find_route(ROUTES, path)
        return known is not None and known[0].takes_file

    def may_send_file(self, request: Request) -> bool:
        """Return whether a person asks who may act on a path."""
        known = find_route(ROUTES, request.scope["path"])
        with suppress(WebarcError, OSError):
            who = self._who(request)
            return who is not None and known is not None and (known[0].acts is None or who[1].may(known[0].acts))
        return False

    def _ask(self, request: Request, form: SentForm) -> Response:
        """Ask who it is, and keep what was typed."""
        kept = [(f"{_KEPT}{name}", value) for name, value in form.typed()]
        token = form.raw(forms.TOKEN)
        kept += [(f"{_KEPT}{forms.TOKEN}", token)] if token else []
        message = _MEANWHILE if kept else ""
        return self._login_page(request, back=_target(request), kept=kept, message=message, status=HTTPStatus.FORBIDDEN)

    def _login(self, request: Request, form: SentForm) -> Response:
        back = _own_path(form.raw(_BACK) if request.method == "POST" else request.query_params.get(_BACK, "/"))
        if request.method != "POST":
            if self._who(request) is not None:
                return RedirectResponse(back, 303, dict(NO_STORE))
            return self._login_page(request, back=back)
        kept = [(name, value) for name, values in form.fields.items() if name.startswith(_KEPT) for value in values]
        name, address = form.one("name"), self._address(request)
        wait = self.desk.guesses.begin(name, address)
        if wait:
            page = self._login_page(
                request, back=back, kept=kept, name=name, wait=int(wait) + 1, status=HTTPStatus.TOO_MANY_REQUESTS
            )
            page.headers["Retry-After"] = str(int(wait) + 1)
            return page
        person = self.desk.persons.find(name)
        if not login.matches(person.password if person is not None else "", form.raw("password")) or person is None:
            return self._login_page(
                request, back=back, kept=kept, name=name, message=_WRONG, status=HTTPStatus.FORBIDDEN
            )
        self.desk.guesses.was_right(name, address)
        session, cookie = self.desk.sessions.begin(person)
        session.language = request.query_params.get("lang", "")
        response = self._back(request, session, person, back, kept)
        self.desk.set_cookie(response, cookie)
        return response

    def _back(
        self, request: Request, session: Session, person: Person, back: str, kept: list[tuple[str, str]]
    ) -> Response:
        """Lead to where the login was asked for; a form that was sent then is shown again, as it was typed."""
        known = find_route(ROUTES, urlsplit(back).path)
        if not kept or known is None or known[0].post is None:
            return RedirectResponse(back, 303, dict(NO_STORE))
        route, path_params = known
        form = forms.of_pairs([(name.removeprefix(_KEPT), value) for name, value in kept])
        parts = urlsplit(back)
        scope = {**request.scope, "path": parts.path, "query_string": parts.query.encode(), "method": "POST"}
        visit = self._visit(Request(scope), session, person)
        token = self.desk.tokens.read(form.raw(forms.TOKEN), session.public, "")
        visit = replace(visit, form=replace(form, token=token))
        problem = Problem(self._said(visit, _MEANWHILE), status=200)
        return self._again(route, path_params, visit, problem)

    def _login_page(
        self, request: Request, *, back: str, kept: list[tuple[str, str]] | None = None, name: str = "",
        message: str = "", wait: int = 0, status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:  # fmt: skip
        has_people = any(person.password for person in self.desk.persons.all().values())
        view = LoginPage(back, tuple(kept or ()), name, message, wait, has_people, str(self.desk.archive.root))
        language = self._language(request, None)
        body = self.look.render(view, Saying(language, request.scope["path"]))
        return HTMLResponse(body, int(status), dict(NO_STORE))

    def _address(self, request: Request) -> str:
        return login.address_of(self.desk.settings().desk, peer(request), request.headers)

    def _is_own_origin(self, request: Request) -> bool:
        """Return whether a form comes from a page of this desk, as far as the browser says where it comes from."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin")
        if site != "same-origin":
            return False
        if origin is None:
            return True
        return origin == self.desk.origin or urlsplit(origin).netloc == request.headers.get("host", "")

    # -- answers -----------------------------------------------------------------------------------------------------

    def _visit(self, request: Request, session: Session, person: Person) -> DeskVisit:
        return DeskVisit(
            request, self.desk.services().gate.reader, self._language(request, session), self.desk.services(),
            Origins(base=self.desk.origin), self._render, desk=self.desk, person=person, session=session,
        )  # fmt: skip

    def _language(self, request: Request, session: Session | None) -> str:
        asked = request.query_params.get("lang", "") or (session.language if session is not None else "")
        return negotiated(asked, request.headers.get("accept-language", ""))

    def _render(self, view: object, visit: object) -> str:
        assert isinstance(visit, DeskVisit)
        messages = self.desk.sessions.hear(visit.session)
        return self.look.render(view, Saying(visit.language, visit.path, visit, tuple(messages)))

    def _said(self, visit: DeskVisit, text: str) -> str:
        return self.desk.said(text, visit.language)

    def _message(
        self, request: Request, status: HTTPStatus, heading: str, text: str = "", visit: DeskVisit | None = None
    ) -> Response:
        view = MessagePage(int(status), heading, text)
        language = visit.language if visit is not None else self._language(request, None)
        body = self.look.render(view, Saying(language, request.scope["path"], visit))
        return HTMLResponse(body, int(status), dict(NO_STORE))

    def _static(self, path: str) -> Response | None:
        if not path.startswith("/static/") and path != "/favicon.ico":
            return None
        file = self.look.static_file(path)
        if file is None:
            return PlainTextResponse("404 Not Found\n", 404)
        return Response(file[0], media_type=file[1], headers={"Cache-Control": f"public, max-age={_YEAR}, immutable"})

    def error(self, request: Request, status: HTTPStatus, error: WebarcError | None) -> Response:
        """Return the page of an error."""
        is_known = False
        with suppress(WebarcError, OSError):
            is_known = self.is_known(request)
        text = str(error) if error is not None and is_known else ""
        reason = request.scope.get(REASON)
        if reason is not None and not isinstance(reason, Busy) and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            text = self._reason(request, reason)
        return self._message(request, status, _HEADINGS.get(status, msgid("Something is wrong")), text)

    def _reason(self, request: Request, reason: Exception) -> str:
        """Return what is damaged to those who may mend it, by what was known of them before; to others who has it."""
        settings, session = self.desk.settings().desk, None
        with suppress(WebarcError, OSError):
            session = self.desk.sessions.find(request.cookies.get(self.desk.sessions.cookie, ""))
        person = self.desk.persons.last().get(session.person) if session is not None else None
        is_same = (
            session is not None
            and person is not None
            and (
                login.told_by_proxy(settings, peer(request), request.headers) == session.proxy
                if session.proxy
                else bool(person.password) and person.password == session.password
            )
        )
        if person is not None and is_same and person.may(Right.OPTIONS):
            return _HASH.sub("…", str(reason))
        text = msgid("The person who runs the desk finds the reason in its log.")
        return self.desk.said(text, self._language(request, session if is_same else None))


_HEADINGS = {
    HTTPStatus.NOT_FOUND: msgid("There is no such page"),
    HTTPStatus.BAD_REQUEST: msgid("This cannot be asked"),
    HTTPStatus.FORBIDDEN: msgid("You do not have the right to do this"),
    HTTPStatus.CONFLICT: msgid("Somebody else was faster"),
    HTTPStatus.SERVICE_UNAVAILABLE: msgid("The archive is busy, or something in it is damaged"),
}


def _form(request: Request) -> SentForm:
    """Return what was sent. Raises UsageError for what is no form."""
    form = request.scope.get(FORM)
    if isinstance(form, SentForm):
        return form
    return forms.parse(request.scope.get(BODY, b""), request.headers.get("content-type", ""))


def _problem(error: Exception) -> Problem:
    """Return the answer to a form that could not be taken: 409 where somebody else was faster, else 400 or 403."""
    status = HTTPStatus.CONFLICT if isinstance(error, Busy) else http_status_of(error)
    faults: dict[str, str] = {}
    if isinstance(error, SettingsError):
        status = HTTPStatus.BAD_REQUEST
        for fault in error.faults:
            name, _, text = _FILES.sub("", fault).partition(": ")
            faults[name.rpartition(".")[2]] = text
    return Problem(str(error), faults, int(status))


def _target(request: Request) -> str:
    query = request.url.query
    path = quote(request.scope["path"], safe="/:@!$&'()*+,;=~-._")
    return f"{path}?{query}" if query else path


def _own_path(text: str) -> str:
    """Return a path of the desk, whatever is said: nothing leads elsewhere after a login."""
    is_path = text.startswith("/") and not text.startswith(("//", "/\\", "/login", "/logout"))
    return text if is_path and text.isprintable() else "/"


# == watching =========================================================================================================


PATH = "/events"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
#: Looks at the jobs until the newest snapshot is asked for again.
_EVERY = 5


class Watching:
    """All who watch. For the event loop."""

    def __init__(self, desk: Desk, may_watch: Callable[[Request], bool]) -> None:
        self._desk = desk
        self._may_watch = may_watch
        self._watchers: dict[asyncio.Queue[str], str] = {}  # with what each was sent last
        self._looking: asyncio.Task[None] | None = None
        self._looks = 0
        self._newest = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one who watches, until it goes."""
        allowed = await asyncio.to_thread(self._may_watch, Request(scope))
        if not allowed or len(self._watchers) >= forms.WATCHERS or scope["method"] != "GET":
            status = 403 if not allowed else 503
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        own: asyncio.Queue[str] = asyncio.Queue(4)
        gone = asyncio.ensure_future(disconnected(receive))
        self._watchers[own] = ""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await self._tell(own, gone, scope, send)
        finally:
            self._watchers.pop(own, None)
            gone.cancel()

    async def _tell(self, own: asyncio.Queue[str], gone: asyncio.Future[None], scope: Scope, send: Send) -> None:
        while not gone.done():
            waiting = asyncio.ensure_future(own.get())
            both: set[asyncio.Future[Any]] = {waiting, gone}
            await asyncio.wait(both, timeout=forms.WATCH_QUIET, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                text = f"data: {waiting.result()}\n\n"
            else:
                waiting.cancel()
                # The session may have ended meanwhile.
                if gone.done() or not await asyncio.to_thread(self._may_watch, Request(scope)):
                    break
                text = ": still here\n\n"
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b""})

    async def _look(self) -> None:
        """Look at the jobs as long as somebody watches."""
        while self._watchers:
            watching = list(self._watchers)  # who comes meanwhile has a page that may be newer than this look
            with contextlib.suppress(WebarcError, OSError):
                state = await asyncio.to_thread(self._now)
                for queue in watching:
                    if self._watchers.get(queue, state) == state:  # it has gone, or knows it
                        continue
                    if queue.full():
                        queue.get_nowait()  # who is slow gets the newest state
                    queue.put_nowait(state)
                    self._watchers[queue] = state
            await asyncio.sleep(forms.WATCH_SECONDS)

    def _now(self) -> str:
        archive = self._desk.archive
        state = jobs.describe_jobs(archive, self._desk.history().open)
        if self._looks % _EVERY == 0:
            with opened(archive, Catalogue(archive)) as tables:
                newest = tables.listed(RecordSelection(), limit=1)
            self._newest = newest[0].number if newest else 0
        self._looks += 1
        return json.dumps({**state, "newest": self._newest}, ensure_ascii=False, separators=(",", ":"))


# == serving ==========================================================================================================


_log = logging.getLogger("webarc")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskOptions:
    """The command line of `webarc-agent desk`. `origin` is where browsers find it, behind a proxy."""

    archive: Path
    listen: Address
    origin: str = ""
    hosts: tuple[str, ...] = ()
    access_log: str = ""
    opens_browser: bool = False


def desk_headers() -> dict[str, str]:
    """Return what every answer of the desk forbids browsers.

    The room's rules, and that a page asks its own desk alone. A form names its origin, which the room's pages need not.
    """
    headers = room_headers("")
    headers["Content-Security-Policy"] += "; connect-src 'self'"
    headers["Referrer-Policy"] = "same-origin"
    return headers


def make(desk: Desk, log: AccessLog | None = None, names: frozenset[str] = frozenset()) -> tuple[ASGIApp, Answering]:
    """Return the app of a desk, and the threads in which it answers. `names` are its hosts; without any it is any."""
    app = DeskApp(desk)
    answering = Answering(app.error)
    pages = answering.endpoint(app.answer)
    watching = Watching(desk, app.is_known)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        await (watching if scope.get("path") == PATH else pages)(scope, receive, send)

    bounded = Bodies(route, app.takes_file, app.may_send_file)
    ruled: ASGIApp = SecurityHeaders(HostRules(bounded, names), desk_headers())
    return (Logged(ruled, log, "desk") if log is not None and log.is_on else ruled), answering


def serve(options: DeskOptions, say: Callable[[str], None] = print) -> None:
    """Serve until a signal. `say` gets to know where.

    Raises Busy for an address in use, and what opening the archive raises.
    """
    given = inherited(os.environ, os.getpid())
    listener = next(iter(given.values())) if given else bind(options.listen)
    try:
        processes.become_owner(options.archive)
        processes.allow_many_files()
        origin = options.origin or listener.address.origin
        place = options.origin or str(listener.address)
        archive = directory.open_archive(options.archive)
        desk = Desk(archive, secrets.token_bytes(32), origin=origin, place=place)
        threading.Thread(target=_complete, args=(archive,), name="records", daemon=True).start()
        log = AccessLog(options.access_log)
        app, answering = make(desk, log, host_names(origin, hosts=hosts_of(listener.address, options.hosts)))
        config = server_config(lambda: ServedApps([app], answering.close))
        server = ProcessServer(config, lambda: _tell(desk, place, options, say))
        asyncio.run(server.serve([listener.socket]))
        log.close()
    finally:
        listener.close()


def _complete(archive: Archive) -> None:
    """Write the records that captures have not got: those of archives that had no agent for a while."""
    try:
        catalogue_of(archive)
    except (WebarcError, OSError) as error:
        _log.warning("%s", error)


def _faults(desk: Desk) -> Iterator[str]:
    """Yield what keeps pages of the desk from being shown: files that people changed by hand, and the catalogue."""
    try:
        desk.persons.all()
    except (WebarcError, OSError) as error:
        yield f"{error}; nobody can log in until it is repaired"
    yield from desk.settings_and_faults()[1]
    try:
        next(Catalogue(desk.archive).records(), None)
    except (WebarcError, OSError) as error:
        yield str(error)


def _tell(desk: Desk, place: str, options: DeskOptions, say: Callable[[str], None]) -> None:
    say(f"the desk of {desk.archive.root} is at {place}")
    for fault in _faults(desk):
        say(f"fault: {fault}")
    processes.notify("READY=1", f"STATUS=at {place}")
    if options.opens_browser and desk.origin:
        threading.Thread(target=webbrowser.open, args=(f"{desk.origin}/",), daemon=True).start()
