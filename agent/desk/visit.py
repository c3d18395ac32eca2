"""A request to the desk, by which person, in which session, with which form; and what all requests of a desk share.

A `DeskVisit` is of one thread, and so is the archive that it asks: as staff see it, all snapshots, released or not,
withheld pages too; or as readers would see it if one record were released. A `Desk` has the archive, who is who, the
sessions, and what is asked often. It is for any thread.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.desk.forms import SentForm
from agent.desk.login import LoginTokens, Session, Sessions
from agent.operations.who_asks import Guesses, Persons
from agent.service.scheduler import History, Past
from webarcfs.archive.catalogue.people import Acting, Person, acting_person
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import FieldsRefused, FormOutdated, SettingsError
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system.cache import Cache, identity
from webarcfs.room.opened import OpenedServices
from webarcfs.room.visit import Services, Shared, Visit
from webarcfs.web import language as languages

# == desk =============================================================================================================


_T = TypeVar("_T")
#: Services that a thread keeps: of staff, and of records that are previewed.
_SERVICES = 8
#: Seconds for which pages go by the files of publications.d that were found: there may be hundreds.
_FILES_HOLD = 0.5
#: Answers that are kept between requests.
_KEPT = 200


class Desk:
    """The desk of an archive. `origin` is where browsers find it, empty if not known; `place` binds sessions."""

    def __init__(self, archive: Archive, key: bytes, *, origin: str = "", place: str = "") -> None:
        self.archive = archive
        self.origin = origin
        self.persons = Persons(archive)
        self.sessions = Sessions(key, place or origin)
        self.tokens = LoginTokens(key)
        self.guesses = Guesses()
        self.shared = Shared(archive)
        self._threads = _OfThread(self.shared)
        self._past = Past(archive)
        self._lock = threading.Lock()
        #: When this desk was started.
        self.began = now()
        self._since: dict[str, datetime] = {}
        self._settings: tuple[object, Settings, tuple[str, ...]] = (None, Settings(), ())
        self._settings_number = 0
        self._looked_at: tuple[object, float] = (None, 0.0)  # webarc.toml; a monotonic time
        self._kept: Cache[object, object] = Cache(_KEPT)
        self.look(surely=True)

    def person_of(self, session: Session) -> Person | None:
        """Return the person of a session, as people.toml has it now; None where the session is not good any more.

        That is so once the password is another, or the name that a proxy gave is another person's.
        """
        person = self.persons.all().get(session.person)
        if person is None:
            return None
        if session.proxy:
            return person if self.persons.find(session.proxy, is_told=True) == person else None
        return person if person.password and person.password == session.password else None

    def set_cookie(self, response: Response, cookie: str) -> None:
        """Give a browser the cookie of its session."""
        response.set_cookie(
            self.sessions.cookie, cookie, httponly=True, samesite="lax", path="/",
            secure=self.origin.startswith("https:"),
        )  # fmt: skip

    def services(self, record: str | None = None) -> Services:
        """Return the archive as staff see it; with a record, as readers would if that alone were released."""
        return self._threads.of(record)

    def settings(self) -> Settings:
        """Return webarc.toml and publications.d as they are now; with faults, as they were last."""
        return self.settings_and_faults()[0]

    def look(self, *, surely: bool) -> None:
        """Read the settings again if their files changed. `surely`: also if publications.d was looked at just now."""
        own, at = identity(self.archive.settings), time.monotonic()
        before, looked = self._looked_at
        if not surely and own == before and at - looked < _FILES_HOLD:
            return
        state = identity(self.archive.settings, self.archive.publications)
        with self._lock:
            self._looked_at = own, at
            if state == self._settings[0]:
                return
            try:
                self._settings = state, settings_files.load(self.archive.settings)[0], ()
            except SettingsError as error:
                self._settings = state, self._settings[1], error.faults
            self._settings_number += 1

    def settings_and_faults(self) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings, and their faults: then the settings are those from before."""
        with self._lock:
            return self._settings[1], self._settings[2]

    def settings_state(self) -> int:
        """Return a number that changes with the settings."""
        return self._settings_number

    def said(self, text: str, language: str) -> str:
        """Return a text of ours in a language."""
        return languages.translate(text, language)

    def look_up(self, language: str) -> Callable[[str], str]:
        """Return what says texts of ours in a language."""
        return partial(languages.translate, language=language)

    def history(self) -> History:
        """Return the runs of publications, and the open jobs as they are now."""
        with self._lock:
            return self._past.read()

    def since(self, keys: Iterable[str], at: datetime) -> dict[str, datetime]:
        """Return since when each of these is so, as far as this desk was asked; what is not named is over."""
        with self._lock:
            self._since = {key: self._since.get(key, at) for key in keys}
            return self._since

    def kept(self, key: object, make: Callable[[], _T]) -> _T:
        """Return what is kept under a key, else make it. Keys say all that it depends on."""
        return self._kept.get(key, make)  # type: ignore[return-value] # each key has one type


class _OfThread(threading.local):
    """The services of the thread that asks."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._known: OrderedDict[str | None, Services] = OrderedDict()

    def of(self, record: str | None) -> Services:
        services = self._known.get(record)
        if services is None:
            services = self._known[record] = OpenedServices(self._shared, record)
            while len(self._known) > _SERVICES:
                self._known.popitem(last=False)[1].close()
        self._known.move_to_end(record)
        services.look()
        return services


# == visit ============================================================================================================


#: What every page of the desk says to caches: it depends on who asks, and is for nobody else.
NO_STORE = {"Cache-Control": "private, no-store", "Vary": "Cookie, Accept-Language"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a form was not taken: a text for its head (as it is, not translated), and texts for fields by name.

    `status` is that of the answer. `labels` are what the fields are called that have faults,
    `anchor` with `%s` what their places are called. `detail` is English,
    whatever the language of the page.
    """

    text: str
    faults: Mapping[str, str] = field(default_factory=dict)
    status: int = 400
    labels: Mapping[str, str] = field(default_factory=dict)
    anchor: str = "f-%s"
    detail: str = ""

    def place(self, name: str) -> str:
        """Return the id of a field in the page."""
        return self.anchor % name.replace(".", "-")


@dataclass(frozen=True, slots=True)
class DeskVisit(Visit):
    """One request by a person. `form` is what was sent, also where it could not be taken: then `problem` says why.

    `now` is true where a form was taken up again after a login: nothing is wrong with it, it was not sent yet.
    """

    desk: Desk = field(kw_only=True)
    person: Person = field(kw_only=True)
    session: Session = field(kw_only=True)
    form: SentForm = field(kw_only=True, default_factory=SentForm)
    problem: Problem | None = field(kw_only=True, default=None)
    is_typed: bool = field(kw_only=True, default=False)

    @property
    def path(self) -> str:
        """The decoded path."""
        return str(self.request.scope["path"])

    @property
    def acting(self) -> Acting:
        """The author of changes."""
        proxy = self.session.proxy
        key = ("acting", self.person, proxy, self.desk.persons.state())
        return self.desk.kept(key, lambda: acting_person(self.desk.persons.all(), self.person, proxy))

    @property
    def rights(self) -> frozenset[Right]:
        """The person's rights."""
        return self.person.rights

    def may(self, right: Right) -> bool:
        """Return whether the person has a right."""
        return self.person.may(right)

    def page(
        self,
        template: str,
        /,
        *,
        http_status: int = 200,
        http_headers: Mapping[str, str] | None = None,
        **values: object,
    ) -> Response:
        """Return a page of the desk, which its template makes of these values."""
        if self.problem is not None and http_status == 200:
            http_status = self.problem.status
        return HTMLResponse(self.renderer(template, values, self), http_status, {**NO_STORE, **(http_headers or {})})

    def led(self, place: str, message: str = "", kind: str = "done") -> Response:
        """Lead to a page after a form was taken; it says what was done (a msgid, or text)."""
        if message:
            self.desk.sessions.say(self.session, kind, message)
        return RedirectResponse(place, 303, dict(NO_STORE))

    @property
    def is_conflict(self) -> bool:
        """Whether a form is shown again since somebody else was faster."""
        return self.problem is not None and self.problem.status == HTTPStatus.CONFLICT

    def typed(self, name: str, otherwise: str) -> str:
        """Return what was typed into a field, where a form is shown again; else what the archive has."""
        return self.form.raw(name) if self.is_typed and self.form.has(name) else otherwise

    def said(self, text: str, **places: object) -> str:
        """Return a text of ours (a msgid) in the language of the page, with its places filled."""
        translated = self.desk.said(text, self.language)
        return translated % places if places else translated

    def refusal(
        self, faults: Mapping[str, tuple[str, str]], heading: str = "", *, anchor: str = "f-%s"
    ) -> FieldsRefused:
        """Return the error of a form whose fields have faults: by field what it is called, and what to type."""
        return FieldsRefused(heading, faults, anchor)

    def outdated(self, text: str) -> FormOutdated:
        """Return the error of a form that was made from an older state, with a text of ours (a msgid)."""
        return FormOutdated(self.said(text))

    def fault(self, name: str) -> str:
        """Return what is wrong with what was typed into a field; empty where nothing is."""
        return "" if self.problem is None else self.problem.faults.get(name, "")

    def with_problem(self, problem: Problem | None) -> DeskVisit:
        """Return the visit with what was typed, to be shown again, and why."""
        return replace(self, problem=problem, is_typed=True)
