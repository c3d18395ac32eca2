"""Answers requests to the desk: who asks, whether they may, whether a form is ours, and in what page that ends.

The order is the same for each route of the table: a foreign origin is refused, then who has no session logs in, then
the right is asked for, then the form's token. So no handler decides about any of these, and none can forget it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from agent.desk import forms
from agent.desk.forms import Form
from agent.desk.login import passwords, persons
from agent.desk.login.sessions import Session
from agent.desk.look.desk_look import DeskLook, Saying
from agent.desk.look.words import msgid
from agent.desk.preview import replay
from agent.desk.server.bodies import BODY, FORM
from agent.desk.server.routes import ROUTES
from agent.desk.server.routing import Route, found
from agent.desk.shared.desk import Desk
from agent.desk.shared.visit import NO_STORE, DeskVisit, Problem
from agent.desk.views import LoginPage, MessagePage
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.model.errors import Busy, NotFound, SettingsError, WebarcError, http_status_of
from webarcfs.room.answering import REASON, peer
from webarcfs.room.look.language import negotiated
from webarcfs.room.visit import Origins

_YEAR = 365 * 24 * 3600
#: Fields of the form of a login that keep another form.
_KEPT, _BACK = "kept-", "back"
_WRONG = msgid("The name or the password is wrong.")
_LATE = msgid(
    "This form was not sent: it was made before you logged in, or by another session. What you typed is still here."
)
_TWICE = msgid("This form was sent already. Nothing was done again; this is how things are now.")
#: The path of a feed without its secret.
_FEED = "/feed/-.atom"
#: The files that a fault of settings names before its key.
_FILES = re.compile(r"^(?:\S+\.toml: )+")
#: What may be the hash of a password.
_HASH = re.compile(r"\$argon2\S*|\$\d?[a-z]*\$\S+")
_MEANWHILE = msgid("Your session was over. What you typed is still here; nothing was sent yet.")


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
        form = _form(request) if is_post else Form()
        if path == "/login":
            return self._login(request, form)
        known = found(ROUTES, path)
        if known is None:
            raise NotFound("there is no such page")
        route, said = known
        if (part := self._by_secret(request, route, said)) is not None:
            return part
        who = self._who(request)
        if who is None:
            return self._ask(request, form if is_post and route.post is not None else Form())
        session, person, cookie = who
        visit = replace(self._visit(request, session, person), form=form)
        response = self._acted(route, said, visit) if is_post else self._looked(route, said, visit)
        if cookie:
            self.desk.set_cookie(response, cookie)
        return response

    def _by_secret(self, request: Request, route: Route, said: Mapping[str, str]) -> Response | None:
        """Return what a secret in the path opens, without a session; None for any other."""
        secret = said.get("feed", "")
        if secret:
            request.scope["path"] = _FEED  # logs tell of the path
        if request.method == "POST":
            return None
        if secret:
            reader = self.desk.persons.of_feed(secret)
            once = None if reader is None else self._visit(request, self.desk.sessions.once(reader), reader)
            return None if once is None else self._looked(route, said, once)
        return replay.embedded(request, self.desk, said["token"]) if "token" in said else None

    def _looked(self, route: Route, said: Mapping[str, str], visit: DeskVisit) -> Response:
        if route.get is None:
            return self._message(visit.request, HTTPStatus.METHOD_NOT_ALLOWED, msgid("This cannot be asked here"))
        return self._refused(route.looks, visit) or route.get(visit, said)

    def _acted(self, route: Route, said: Mapping[str, str], visit: DeskVisit) -> Response:
        if route.post is None:
            return self._message(visit.request, HTTPStatus.METHOD_NOT_ALLOWED, msgid("This cannot be asked here"))
        refused = self._refused(route.acts, visit)
        if refused is not None:
            return refused
        token = self.desk.tokens.read(visit.form.raw(forms.TOKEN), visit.session.public, route.action_of(visit.path))
        visit = replace(visit, form=replace(visit.form, token=token))
        if not token.is_ours:
            return self._again(route, said, visit, Problem(self._said(visit, _LATE), status=403))
        if not self.desk.sessions.is_new(visit.session, token.mark):
            return self._again(route, said, visit, Problem(self._said(visit, _TWICE), status=409), is_typed=False)
        try:
            return route.post(visit, said)
        except (WebarcError, OSError) as error:
            return self._again(route, said, visit, _problem(error))

    def _refused(self, right: Right | None, visit: DeskVisit) -> Response | None:
        """Return the answer to a person without a right; None to one who has it."""
        if right is None or visit.may(right):
            return None
        text = f"{visit.person.name}: {visit.person.role}, {right}"
        return self._message(
            visit.request, HTTPStatus.FORBIDDEN, msgid("You do not have the right to do this"), text, visit
        )

    def _again(
        self, route: Route, said: Mapping[str, str], visit: DeskVisit, problem: Problem | None, *, is_typed: bool = True
    ) -> Response:
        """Show the page of a form, with what was typed and why it was not taken."""
        again = route.again or route.get
        if again is None or not (route.looks is None or visit.may(route.looks)):
            status = HTTPStatus(problem.status if problem is not None else 403)
            text = problem.text if problem is not None else ""
            return self._message(visit.request, status, msgid("This form was not taken"), text, visit)
        return again(replace(visit.with_problem(problem), is_typed=is_typed), said)

    # -- who asks ----------------------------------------------------------------------------------------------------

    def _who(self, request: Request) -> tuple[Session, Person, str] | None:
        """Return session and person of a request, and a new cookie where a proxy tells who it is; None: nobody."""
        settings = self.desk.settings().desk
        told = persons.told_by_proxy(settings, peer(request), request.headers)
        session = self.desk.sessions.find(request.cookies.get(self.desk.sessions.cookie, ""))
        if told:
            person = self.desk.persons.find(told, is_told=True)
            if person is None:
                return None
            if session is None or session.proxy != told or session.person != person.key:
                session, cookie = self.desk.sessions.begin(person, told)
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
        known = found(ROUTES, path)
        return known is not None and known[0].takes_file

    def may_send_file(self, request: Request) -> bool:
        """Return whether a person asks who may act on a path."""
        known = found(ROUTES, request.scope["path"])
        with suppress(WebarcError, OSError):
            who = self._who(request)
            return who is not None and known is not None and (known[0].acts is None or who[1].may(known[0].acts))
        return False

    def _ask(self, request: Request, form: Form) -> Response:
        """Ask who it is, and keep what was typed."""
        kept = [(f"{_KEPT}{name}", value) for name, value in form.typed()]
        token = form.raw(forms.TOKEN)
        kept += [(f"{_KEPT}{forms.TOKEN}", token)] if token else []
        said = _MEANWHILE if kept else ""
        return self._login_page(request, back=_target(request), kept=kept, said=said, status=HTTPStatus.FORBIDDEN)

    def _login(self, request: Request, form: Form) -> Response:
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
        if not passwords.matches(person.password if person is not None else "", form.raw("password")) or person is None:
            return self._login_page(request, back=back, kept=kept, name=name, said=_WRONG, status=HTTPStatus.FORBIDDEN)
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
        known = found(ROUTES, urlsplit(back).path)
        if not kept or known is None or known[0].post is None:
            return RedirectResponse(back, 303, dict(NO_STORE))
        route, said = known
        form = forms.of_pairs([(name.removeprefix(_KEPT), value) for name, value in kept])
        parts = urlsplit(back)
        scope = {**request.scope, "path": parts.path, "query_string": parts.query.encode(), "method": "POST"}
        visit = self._visit(Request(scope), session, person)
        token = self.desk.tokens.read(form.raw(forms.TOKEN), session.public, "")
        visit = replace(visit, form=replace(form, token=token))
        problem = Problem(self._said(visit, _MEANWHILE), status=200)
        return self._again(route, said, visit, problem)

    def _login_page(
        self, request: Request, *, back: str, kept: list[tuple[str, str]] | None = None, name: str = "",
        said: str = "", wait: int = 0, status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:  # fmt: skip
        has_people = any(each.password for each in self.desk.persons.all().values())
        view = LoginPage(back, tuple(kept or ()), name, said, wait, has_people, str(self.desk.archive.root))
        language = self._language(request, None)
        body = self.look.render(view, Saying(language, request.scope["path"]))
        return HTMLResponse(body, int(status), dict(NO_STORE))

    def _address(self, request: Request) -> str:
        return persons.address_of(self.desk.settings().desk, peer(request), request.headers)

    def _is_own_origin(self, request: Request) -> bool:
        """Return whether a form comes from a page of this desk, as far as the browser says where it comes from."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        said = request.headers.get("origin")
        if site != "same-origin":
            return False
        if said is None:
            return True
        return said == self.desk.origin or urlsplit(said).netloc == request.headers.get("host", "")

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
        said = self.desk.sessions.hear(visit.session)
        return self.look.render(view, Saying(visit.language, visit.path, visit, tuple(said)))

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
                persons.told_by_proxy(settings, peer(request), request.headers) == session.proxy
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


def _form(request: Request) -> Form:
    """Return what was sent. Raises UsageError for what is no form."""
    read = request.scope.get(FORM)
    if isinstance(read, Form):
        return read
    return forms.parse(request.scope.get(BODY, b""), request.headers.get("content-type", ""))


def _problem(error: Exception) -> Problem:
    """Return what a form is told that could not be taken: 409 where somebody else was faster, else 400 or 403."""
    status = HTTPStatus.CONFLICT if isinstance(error, Busy) else http_status_of(error)
    faults: dict[str, str] = {}
    if isinstance(error, SettingsError):
        status = HTTPStatus.BAD_REQUEST
        for each in error.faults:
            name, _, text = _FILES.sub("", each).partition(": ")
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
