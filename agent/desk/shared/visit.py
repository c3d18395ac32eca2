"""A request to the desk: by which person, in which session, with which form. For one thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.desk.forms import Form
from agent.desk.login.sessions import Session
from agent.desk.shared.desk import Desk
from webarcfs.archive.catalogue.people import Acting, Person
from webarcfs.archive.catalogue.workflow import RIGHTS, Right
from webarcfs.room.visit import Visit

#: What every page of the desk says to caches: it depends on who asks, and is told to nobody else.
NO_STORE = {"Cache-Control": "private, no-store", "Vary": "Cookie, Accept-Language"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a form was not taken: a text for its head (as it is, not translated), and texts for fields by name.

    `status` is that of the answer.
    """

    text: str
    faults: Mapping[str, str] = field(default_factory=dict)
    status: int = 400


@dataclass(frozen=True, slots=True)
class DeskVisit(Visit):
    """One request by a person. `form` is what was sent, also where it could not be taken: then `problem` says why.

    `now` is true where a form was taken up again after a login: nothing is wrong with it, it was not sent yet.
    """

    desk: Desk = field(kw_only=True)
    person: Person = field(kw_only=True)
    session: Session = field(kw_only=True)
    form: Form = field(kw_only=True, default_factory=Form)
    problem: Problem | None = field(kw_only=True, default=None)
    is_typed: bool = field(kw_only=True, default=False)

    @property
    def path(self) -> str:
        """The decoded path."""
        return str(self.request.scope["path"])

    @property
    def acting(self) -> Acting:
        """The author of changes."""
        return Acting(self.person.name, self.person.role)

    @property
    def rights(self) -> frozenset[Right]:
        """The person's rights."""
        return RIGHTS[self.person.role]

    def may(self, right: Right) -> bool:
        """Return whether the person has a right."""
        return self.person.may(right)

    def page(self, view: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """Return a page of the desk."""
        if self.problem is not None and status == 200:
            status = self.problem.status
        return HTMLResponse(self.renderer(view, self), status, {**NO_STORE, **(headers or {})})

    def led(self, place: str, said: str = "", kind: str = "done") -> Response:
        """Lead to a page after a form was taken; it tells what was done (a msgid, or text)."""
        if said:
            self.desk.sessions.say(self.session, kind, said)
        return RedirectResponse(place, 303, dict(NO_STORE))

    def typed(self, name: str, otherwise: str) -> str:
        """Return what was typed into a field, where a form is shown again; else what the archive has."""
        return self.form.raw(name) if self.is_typed and self.form.has(name) else otherwise

    def with_problem(self, problem: Problem | None) -> DeskVisit:
        """Return the visit with what was typed, to be shown again, and why."""
        return replace(self, problem=problem, is_typed=True)
