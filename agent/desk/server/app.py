"""Answers requests to the desk: who asks, whether they may, whether a form is ours, and in what page that ends.

The order is the same for each route of the table: a foreign origin is refused, then who has no session logs in, then
the right is asked for, then the form's token. So no handler decides about any of these, and none can forget it.

`FormReader` reads a form before its handler runs, by Starlette's parser, bounded in size and time. A form with a file
(multipart/form-data, RFC 7578) may be larger; it is read as it comes, and the file goes to a temporary one. Only who
may send one sends more than others: that is asked before the body is read.

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
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from python_multipart.multipart import parse_options_header
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.desk import forms, login
from agent.desk.forms import SentForm
from agent.desk.login import Session
from agent.desk.pages import (
    access,
    finished_jobs,
    jobs,
    missing_pages,
    preview,
    program_tokens,
    registers,
    saved_page,
    settings_pages,
    snapshots,
    taken,
    today,
)
from agent.desk.theme.desk_rendering import DeskLook, Saying
from agent.desk.theme.who_may import refusal
from agent.desk.theme.words import msgid
from agent.desk.visit import NO_STORE, Desk, DeskVisit, Problem
from agent.operations import who_asks
from agent.operations.records import catalogue_of
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordSelection, opened
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import (
    Busy,
    FieldsRefused,
    Forbidden,
    FormOutdated,
    NotFound,
    SettingsError,
    StepRefused,
    TooMany,
    UsageError,
    WebarcError,
    http_status_of,
)
from webarcfs.archive.system import processes
from webarcfs.room.visit import Origins
from webarcfs.web import table_files
from webarcfs.web.access_log import AccessLog, Logged
from webarcfs.web.answering import REASON, Answering, peer
from webarcfs.web.connections import (
    HostRules,
    ProcessServer,
    RequestRules,
    RestOfBody,
    SecurityHeaders,
    ServedApps,
    host_names,
    plain_refusal,
    room_headers,
    server_config,
)
from webarcfs.web.health import PATH as HEALTH_PATH
from webarcfs.web.health import Health
from webarcfs.web.language import negotiated
from webarcfs.web.listeners import Address, bind, hosts_of, inherited
from webarcfs.web.routing import PathRoute, find_route, name_expression, static_routes

# == bodies ===========================================================================================================


_WITH_FILE: Final = b"multipart/form-data"
#: Most fields of a form with a file, that one among them.
_FIELDS: Final = 20
#: Digits of a length that are read: Python refuses to read thousands.
_LENGTH_DIGITS: Final = 20
#: Where the form of a request is left for its handler, or what is wrong with it.
FORM = "webarc.form"


# The parser warns of each broken form, which anybody may send as often as they like.
logging.getLogger("python_multipart").setLevel(logging.ERROR)


class _MultiPart(MultiPartParser):
    """Starlette's parser, which does not tell a whole form from the beginning of one."""

    spool_max_size = forms.UPLOAD_IN_MEMORY
    is_whole = False

    def on_end(self) -> None:
        """Note that the last boundary came."""
        self.is_whole = True


async def read_form(request: Request, most: int, *, takes_file: bool = False) -> SentForm:
    """Return the form of a request, whose body has so many bytes at most.

    Raises UsageError for what is no form, TooMany, ClientDisconnect; OSError where there is no space for the file.
    """
    kind, options = parse_options_header(request.headers.get("content-type"))
    length = request.headers.get("content-length", "0").lstrip("0")
    if len(length) > _LENGTH_DIGITS or int(length or "0") > most:
        raise TooMany(f"a body of more than {most} bytes")

    async def bounded() -> AsyncGenerator[bytes, None]:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise TooMany(f"a body of more than {most} bytes")
            yield chunk
        if isinstance(parser, _MultiPart):
            text = sum(len(value) for _, value in parser.items if isinstance(value, str))
            if not parser.is_whole or text > limit:
                raise UsageError("the form ends too early, or its fields are too long")

    parser: FormParser | _MultiPart
    limit = forms.BODY_BYTES
    if takes_file and kind == _WITH_FILE and options.get(b"charset", b"utf-8").lower() == b"utf-8":
        parser = _MultiPart(request.headers, bounded(), max_files=1, max_fields=_FIELDS - 1, max_part_size=limit)
    elif kind == b"application/x-www-form-urlencoded":
        parser = FormParser(request.headers, bounded(), max_fields=forms.FIELDS, max_part_size=limit)
    else:
        raise UsageError("a form of this page was expected")
    try:
        return forms.of_pairs((await parser.parse()).multi_items())
    except MultiPartException as error:
        raise UsageError(error.message) from None


class FormReader:
    """An ASGI app that passes requests on to another, each with its form, within bounds of size and time."""

    def __init__(self, app: ASGIApp, may_send: Callable[[Request], bool] | None = None) -> None:
        """`may_send`, where a form has a file: whether a person who may send it asks. It blocks."""
        self._app = app
        self._may_send = may_send

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refused = None
        if scope["method"] == "POST":
            try:
                refused = await self._read(Request(scope, receive))
            except ClientDisconnect:  # nobody is there to be answered
                return
        if refused is not None:
            is_large = refused is HTTPStatus.REQUEST_ENTITY_TOO_LARGE and self._may_send is not None
            reason = ": a file that is attached has 20 MB at most" if is_large else ""
            await plain_refusal(refused, reason)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            form = scope.get(FORM)
            if isinstance(form, SentForm) and form.file is not None:
                form.file.body.close()

    async def _read(self, request: Request) -> HTTPStatus | None:
        """Leave the form in the scope; return the status with which it is refused."""
        most, seconds, too_large = forms.BODY_BYTES, forms.BODY_SECONDS, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        kind, _ = parse_options_header(request.headers.get("content-type"))
        if self._may_send is not None and kind == _WITH_FILE:
            seconds = forms.UPLOAD_SECONDS
            if await asyncio.to_thread(self._may_send, request):
                most = forms.UPLOAD_BYTES
            else:
                too_large = HTTPStatus.FORBIDDEN
        try:
            async with asyncio.timeout(seconds):
                request.scope[FORM] = await read_form(request, most, takes_file=self._may_send is not None)
        except TimeoutError:
            return HTTPStatus.REQUEST_TIMEOUT
        except TooMany:
            return too_large
        except UsageError as error:
            request.scope[FORM] = error  # for the handler: who asks from elsewhere learns nothing of it
        except OSError:  # no space for the file
            return HTTPStatus.INSUFFICIENT_STORAGE
        return None


# == routing, pure ====================================================================================================


#: Answers a request of a person who has the right.
Handler = Callable[[DeskVisit, Mapping[str, str]], Response]


@dataclass(eq=False, repr=False)
class DeskRoute(PathRoute):
    """A path, with the handlers of GET and POST; None: there is none.

    `looks` and `acts` are the rights of GET and POST; None: every person of the archive. `again` shows the page of a
    form with what was typed, after a fault, or a login; None: `get` does. `action` is what tokens of the form are made
    for; empty: the path, without `suffix` where two buttons send one form to two places. `takes_file`: its form has a
    file.
    """

    name: str
    path: str
    get: Handler | None = None
    post: Handler | None = None
    looks: Right | None = None
    acts: Right | None = None
    again: Handler | None = None
    action: str = ""
    suffix: str = ""
    takes_file: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.name, self.path)
        self.again = self.again or self.get

    def action_of(self, path: str) -> str:
        """Return for which action a token must be made that is sent to a path."""
        return self.action or path.removesuffix(self.suffix)


# == routes ===========================================================================================================


name_expression("rest", ".+")
name_expression("export", "xml|json|dc")
name_expression("rows", "|".join(table_files.KINDS))
name_expression("name", "[^/+]+")
name_expression("preview", "web|notice")


def _of_snapshot(name: str, word: str, post: Any, right: Right | None, *, takes_file: bool = False) -> DeskRoute:
    """Return the route of a form on the page of a snapshot."""
    path, again = f"/snapshot/{{record}}/{word}", snapshots.show_snapshot
    return DeskRoute(name, path, post=post, acts=right, again=again, takes_file=takes_file)


#: The first that fits answers.
ROUTES: Final[tuple[DeskRoute, ...]] = (
    DeskRoute("today", "/", today.today),
    *(DeskRoute(f"{taken_list.name}, as a file", f"{taken_list.path}.{{ending:rows}}", taken_list.answer,
                looks=taken_list.looks) for taken_list in taken.LISTS),
    DeskRoute("snapshots", "/snapshots", snapshots.listed),
    DeskRoute("ticks", "/snapshots/ticks", post=snapshots.keep_ticks, again=snapshots.again, action=snapshots.PATH),
    DeskRoute("release the ticked", "/snapshots/release", post=snapshots.release_several, acts=Right.RELEASE,
              again=snapshots.again, action=snapshots.PATH),
    DeskRoute("choose several", "/snapshots/several", post=snapshots.to_several, acts=Right.DESCRIBE,
              again=snapshots.again, action=snapshots.PATH),
    DeskRoute("change several", "/snapshots/edit", snapshots.several, snapshots.save_several, Right.DESCRIBE,
              Right.DESCRIBE),
    DeskRoute("new snapshot", "/new", snapshots.show, snapshots.start, Right.CAPTURE, Right.CAPTURE),
    DeskRoute("log", "/snapshot/{record}/log/{log:rest}", snapshots.show_log),
    DeskRoute("picture", "/snapshot/{record}/picture/{name}", snapshots.show_picture),
    DeskRoute("preview", "/snapshot/{record}/preview", preview.begin),
    _of_snapshot("description", "describe", snapshots.save, Right.DESCRIBE),
    _of_snapshot("attach", "attach", snapshots.attach, Right.DESCRIBE, takes_file=True),
    _of_snapshot("detach", "detach", snapshots.detach, Right.DESCRIBE),
    DeskRoute("attachment", "/snapshot/{record}/attachment/{name}", snapshots.download),
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
    _of_snapshot("step", "step", snapshots.step, None),
    DeskRoute("snapshot as a file", "/snapshot/{record}.{kind:export}", snapshots.exported),
    DeskRoute("snapshot", "/snapshot/{record}", snapshots.show_snapshot),
    DeskRoute("previewed page", "/s/{token}/{page:preview}/", preview.shown),
    DeskRoute("compare", "/compare/{pair}", snapshots.compare),
    DeskRoute("compare with any", "/compare", snapshots.choose),
    DeskRoute("running", "/running", finished_jobs.running),
    DeskRoute("order", "/job/{job}/order", post=jobs.give, acts=Right.CAPTURE, again=finished_jobs.running),
    DeskRoute("save a page", "/save", saved_page.show, saved_page.save, Right.CAPTURE, Right.CAPTURE),
    DeskRoute("saved page", "/save/{job}", saved_page.result),
    DeskRoute("publications", "/publications", settings_pages.listed),
    DeskRoute("new publication", "/publications/+new", settings_pages.new, settings_pages.save, Right.PUBLICATIONS,
              Right.PUBLICATIONS),
    DeskRoute("try a new publication", "/publications/+try", post=settings_pages.try_, acts=Right.PUBLICATIONS,
              again=settings_pages.new, action="/publications/+new"),
    DeskRoute("trial", "/publications-trial/{mark}", settings_pages.trial, looks=Right.PUBLICATIONS),
    DeskRoute("publication", "/publications/{name:name}", settings_pages.show, settings_pages.save,
              acts=Right.PUBLICATIONS),
    DeskRoute("try a publication", "/publications/{name:name}/try", post=settings_pages.try_, acts=Right.PUBLICATIONS,
              again=settings_pages.show, suffix="/try"),
    DeskRoute("retire", "/publications/{name:name}/retire", post=settings_pages.retire, acts=Right.PUBLICATIONS,
              again=settings_pages.show),
    DeskRoute("registers", "/registers", registers.show),
    DeskRoute("keep in a register", "/registers/save", post=registers.save, acts=Right.PUBLICATIONS,
              again=registers.show),
    DeskRoute("URLs of a report as a table", "/report/{job}/urls.csv", missing_pages.urls_as_csv),
    DeskRoute("URLs of a report", "/report/{job}/urls", missing_pages.list_urls),
    DeskRoute("report", "/report/{job}", jobs.report),
    DeskRoute("missing page", "/missing", missing_pages.show),
    DeskRoute("access", "/access", access.show),
    DeskRoute("withhold", "/access/withhold", post=access.withhold, acts=Right.WITHDRAW, again=access.show),
    DeskRoute("lift", "/access/lift", post=access.lift, acts=Right.WITHDRAW, again=access.show),
    DeskRoute("options", "/options", settings_pages.show_options, settings_pages.save_options, acts=Right.OPTIONS),
    DeskRoute("people", "/people", access.show_people, looks=Right.PEOPLE),
    DeskRoute("save person", "/people/save", post=access.save, acts=Right.PEOPLE, again=access.show_people),
    DeskRoute("remove person", "/people/remove", post=access.remove, acts=Right.PEOPLE, again=access.show_people),
    DeskRoute("password", "/password", access.password, access.set_password),
    DeskRoute("tokens", "/tokens", program_tokens.show, program_tokens.make),
    DeskRoute("revoke a token", "/tokens/revoke", post=program_tokens.revoke, again=program_tokens.show),
    DeskRoute("feed", "/feed/{feed}.atom", today.read),
    DeskRoute("address of the feed", "/feed", today.show_feed, today.change),
    DeskRoute("language", "/language", post=access.language, again=today.today),
    DeskRoute("logout", "/logout", post=access.logout, again=today.today),
)  # fmt: skip
LOGIN: Final = DeskRoute("login", "/login")
#: Any other path.
_ABSENT: Final = DeskRoute("absent", "/")


# == app ==============================================================================================================


#: Fields of the form of a login that keep another form.
_KEPT, _BACK = "kept-", "back"
_WRONG = msgid("The name or the password is wrong.")
_LATE = msgid(
    "This form was not sent: it was made before you logged in, or by another session. Your input is still here."
)
_TWICE = msgid("This form was sent already. Nothing was done again; this is how things are now.")
#: The path of a feed without its secret.
_FEED = "/feed/-.atom"
#: What may be the hash of a password.
_HASH = re.compile(r"\$argon2\S*|\$\d?[a-z]*\$\S+")
_NOT_TAKEN = msgid("Nothing was saved. Your input is still here. Please look at these fields:")
_FAULT_ELSEWHERE = msgid(
    "Nothing was saved: a file of settings has a fault elsewhere. Options names it, and an administrator repairs it."
)
_NOT_WRITTEN = msgid("It could not be written: %(why)s. Your input is still here.")
_MEANWHILE = msgid("Your session was over. Your input is still here; nothing was sent yet.")


class DeskApp:
    """The handlers of the desk. Any thread may use it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.look = DeskLook(desk.archive)
        #: For anybody, without a login: it says nothing but whether the desk can answer.
        self.health = Health(self._look_at_archive)

    def _look_at_archive(self) -> None:
        self.desk.persons.all()
        if not self.desk.archive.is_there:
            raise self.desk.archive.missing("the archive")
        with opened(self.desk.archive) as tables:
            tables.newest(())

    def router(self, answering: Answering, names: frozenset[str]) -> Router:
        """Return the desk as an ASGI app. `names` are its hosts; without any it is any."""

        def endpoint(route: DeskRoute) -> ASGIApp:
            may_send = partial(self._may_act, route) if route.takes_file else None
            return FormReader(answering.endpoint(partial(self.answer, route)), may_send)

        watching = Watching(self.desk, self.is_known)
        health = PathRoute("health", HEALTH_PATH).bound(answering.endpoint(self.health.answer))
        own = [health, *(route.bound(endpoint(route)) for route in (*ROUTES, LOGIN))]
        return Router(
            [*static_routes(answering, self.look.static_file), *own, PathRoute("events", PATH).bound(watching)],
            redirect_slashes=False,
            default=endpoint(_ABSENT),
            middleware=[
                Middleware(RestOfBody),
                Middleware(SecurityHeaders, desk_headers()),
                Middleware(HostRules, names),
                Middleware(RequestRules, lambda method, _: method == "POST", "GET, HEAD, POST"),
            ],
        )

    def answer(self, route: DeskRoute, request: Request) -> Response:
        """Answer a request."""
        is_post = request.method == "POST"
        self.desk.look(surely=is_post)
        try:
            return self._answer(route, request, is_post=is_post)
        finally:
            if is_post:
                self.desk.look(surely=True)  # the next page shows what the form changed

    def _answer(self, route: DeskRoute, request: Request, *, is_post: bool) -> Response:
        if is_post and not self._is_own_origin(request):
            return self._message(request, HTTPStatus.FORBIDDEN, msgid("This form is not of this desk"))
        form = request.scope.get(FORM, SentForm())
        if isinstance(form, UsageError):
            raise form
        if route is LOGIN:
            return self._login(request, form)
        if route is _ABSENT:
            raise NotFound("there is no such page")
        if (part := self._by_secret(request, route)) is not None:
            return part
        who = self._who(request)
        if who is None:
            return self._ask(request, form if route.post is not None else SentForm())
        session, person, cookie = who
        visit = replace(self._visit(request, session, person), form=form)
        response = self._handled(route, visit)
        if cookie:
            self.desk.set_cookie(response, cookie)
        return response

    def _by_secret(self, request: Request, route: DeskRoute) -> Response | None:
        """Return what a secret in the path opens, without a session; None for any other."""
        secret, token = request.path_params.get("feed", ""), request.path_params.get("token", "")
        if secret:
            request.scope["path"] = _FEED  # logs have the path
        if request.method == "POST":
            return None
        if secret:
            reader = self.desk.persons.of_feed(secret)
            once = None if reader is None else self._visit(request, self.desk.sessions.once(reader), reader)
            return None if once is None else self._handled(route, once)
        return preview.embedded(request, self.desk, token) if token else None

    def _handled(self, route: DeskRoute, visit: DeskVisit) -> Response:
        is_post = visit.request.method == "POST"
        handler, right = (route.post, route.acts) if is_post else (route.get, route.looks)
        if handler is None:
            return self._message(visit.request, HTTPStatus.METHOD_NOT_ALLOWED, msgid("This cannot be asked here"))
        if right is not None and not visit.may(right):
            text = refusal(visit, right)
            return self._message(visit.request, HTTPStatus.FORBIDDEN, _HEADINGS[HTTPStatus.FORBIDDEN], text, visit)
        return self._acted(route, handler, visit) if is_post else handler(visit, visit.request.path_params)

    def _acted(self, route: DeskRoute, post: Handler, visit: DeskVisit) -> Response:
        token = self.desk.tokens.read(visit.form.raw(forms.TOKEN), visit.session.public, route.action_of(visit.path))
        visit = replace(visit, form=replace(visit.form, token=token))
        if not token.is_ours:
            return self._again(route, visit, Problem(self._said(visit, _LATE), status=403))
        if not self.desk.sessions.is_new(visit.session, token.mark):
            return self._again(route, visit, Problem(self._said(visit, _TWICE), status=409), is_typed=False)
        try:
            return post(visit, visit.request.path_params)
        except (WebarcError, OSError) as error:
            return self._again(route, visit, _problem(error, visit))

    def _again(self, route: DeskRoute, visit: DeskVisit, problem: Problem, *, is_typed: bool = True) -> Response:
        """Show the page of a form, with what was typed and why it was not taken."""
        if route.again is None or not (route.looks is None or visit.may(route.looks)):
            heading = msgid("This form was not taken")
            return self._message(visit.request, HTTPStatus(problem.status), heading, problem.text, visit)
        return route.again(replace(visit.with_problem(problem), is_typed=is_typed), visit.request.path_params)

    # -- who asks ----------------------------------------------------------------------------------------------------

    def _who(self, request: Request) -> tuple[Session, Person, str] | None:
        """Return session and person of a request, and a new cookie where a proxy says who it is; None: nobody."""
        settings = self.desk.settings().desk
        proxy_user = who_asks.told_by_proxy(settings, peer(request), request.headers)
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

    def _may_act(self, route: DeskRoute, request: Request) -> bool:
        """Return whether a person asks who may send the form of a route."""
        with suppress(WebarcError, OSError):
            who = self._who(request)
            return who is not None and (route.acts is None or who[1].may(route.acts))
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
        name = form.one("name")
        address = who_asks.address_of(self.desk.settings().desk, peer(request), request.headers)
        page = partial(self._login_page, request, back=back, kept=kept, name=name)
        if wait := self.desk.guesses.begin(name, address):
            response = page(wait=int(wait) + 1, status=HTTPStatus.TOO_MANY_REQUESTS)
            response.headers["Retry-After"] = str(int(wait) + 1)
            return response
        person = self.desk.persons.find(name)
        if not login.matches(person.password if person is not None else "", form.raw("password")) or person is None:
            return page(message=_WRONG, status=HTTPStatus.FORBIDDEN)
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
        scope = {**request.scope, "path": parts.path, "query_string": parts.query.encode(), "path_params": path_params}
        visit = self._visit(Request(scope), session, person)
        token = self.desk.tokens.read(form.raw(forms.TOKEN), session.public, "")
        visit = replace(visit, form=replace(form, token=token))
        problem = Problem(self._said(visit, _MEANWHILE), status=200)
        return self._again(route, visit, problem)

    def _login_page(
        self, request: Request, *, back: str, kept: list[tuple[str, str]] | None = None, name: str = "",
        message: str = "", wait: int = 0, status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:  # fmt: skip
        has_people = any(person.password for person in self.desk.persons.all().values())
        values = {
            "back": back, "kept": kept or (), "name": name, "said": message, "wait": wait, "has_people": has_people,
            "archive": str(self.desk.archive.root),
        }  # fmt: skip
        body = self.look.render("login.html", values, Saying(self._language(request, None), request.scope["path"]))
        return HTMLResponse(body, int(status), dict(NO_STORE))

    def _is_own_origin(self, request: Request) -> bool:
        """Return whether a form comes from a page of this desk, as far as the browser says where it comes from."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin")
        if site != "same-origin" or origin is None:
            return site == "same-origin"
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

    def _render(self, template: str, values: Mapping[str, object], visit: object) -> str:
        assert isinstance(visit, DeskVisit)
        messages = self.desk.sessions.hear(visit.session)
        return self.look.render(template, values, Saying(visit.language, visit.path, visit, tuple(messages)))

    def _said(self, visit: DeskVisit, text: str) -> str:
        return self.desk.said(text, visit.language)

    def _message(
        self, request: Request, status: HTTPStatus, heading: str, text: str = "", visit: DeskVisit | None = None
    ) -> Response:
        language = visit.language if visit is not None else self._language(request, None)
        saying = Saying(language, request.scope["path"], visit)
        body = self.look.render("message.html", {"heading": heading, "text": text}, saying)
        return HTMLResponse(body, int(status), dict(NO_STORE))

    def error(self, request: Request, status: HTTPStatus, error: WebarcError | None) -> Response:
        """Return the page of an error."""
        text = ""
        with suppress(WebarcError, OSError):
            text = str(error) if error is not None and self.is_known(request) else ""
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
                who_asks.told_by_proxy(settings, peer(request), request.headers) == session.proxy
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


def _problem(error: Exception, visit: DeskVisit) -> Problem:
    """Return the answer to a form that could not be taken: 409 where somebody else was faster, else 400 or 403.

    It names no path of this machine, and no setting by its key.
    """
    status = HTTPStatus.CONFLICT if isinstance(error, Busy) else http_status_of(error)
    if isinstance(error, FieldsRefused):
        faults = {name: text for name, (_, text) in error.faults.items()}
        labels = {name: label for name, (label, _) in error.faults.items()}
        return Problem(error.heading or visit.said(_NOT_TAKEN), faults, int(status), labels, error.anchor)
    if isinstance(error, SettingsError):
        return Problem(visit.said(_FAULT_ELSEWHERE), status=int(HTTPStatus.BAD_REQUEST))
    if isinstance(error, OSError):
        return Problem(visit.said(_NOT_WRITTEN, why=error.strerror or type(error).__name__), status=int(status))
    text = str(error).replace(f"{visit.desk.archive.root}/", "").replace(str(visit.desk.archive.root), "…")
    if visit.language == "en" or isinstance(error, FormOutdated):
        return Problem(text, status=int(status))
    generic = next(sentence for kind, sentence in _IN_GENERAL if isinstance(error, kind))
    detail = "" if isinstance(error, StepRefused | Busy) else text
    return Problem(visit.said(generic), status=int(status), detail=detail)


#: What people read of an error that has no words in their language; the English ones may stand beneath.
_IN_GENERAL: Final[tuple[tuple[type[Exception], str], ...]] = (
    (StepRefused, msgid("The crawl does not take this step now. Nothing was done; this is how it is now.")),
    (Busy, msgid("Somebody else was faster, or works on it. Nothing was done; this is how it is now.")),
    (NotFound, msgid("What this form is about is not there any more. Nothing was done.")),
    (Forbidden, msgid("You do not have the right to do this")),
    (Exception, msgid("This form was not taken. Nothing was done.")),
)


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
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
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
        request = Request(scope)
        response = Response(status_code=HTTPStatus.FORBIDDEN)
        if await asyncio.to_thread(self._may_watch, request):
            response = StreamingResponse(self._tell(request), 200, _HEADERS, "text/event-stream")
            if len(self._watchers) >= forms.WATCHERS or scope["method"] != "GET":
                response = Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        await response(scope, receive, send)

    async def _tell(self, request: Request) -> AsyncGenerator[str, None]:
        own: asyncio.Queue[str] = asyncio.Queue(4)
        self._watchers[own] = ""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                try:
                    yield f"data: {await asyncio.wait_for(own.get(), forms.WATCH_QUIET)}\n\n"
                except TimeoutError:
                    if not await asyncio.to_thread(self._may_watch, request):  # the session may have ended meanwhile
                        return
                    yield ": still here\n\n"
        finally:
            self._watchers.pop(own, None)

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
    logs_json: bool = False


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
    ruled = app.router(answering, names)
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
        log = AccessLog(options.access_log, as_json=options.logs_json)
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
