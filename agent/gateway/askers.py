"""Who asks the gateway: a person by a token, or by the name that a trusted proxy gives. For any thread.

A token may do what its scopes and the rights of its person both allow; whom a proxy names, what the rights allow. A
cookie opens nothing, so no page of another site can make a browser act here. Where a proxy names whoever asks, that a
browser sends it from a page of another site is looked for as well.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from agent.operations import who_asks
from agent.operations.bearers import Bearer, Bearers
from agent.operations.who_asks import Persons
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.tokens import NEEDED, Scope, within
from webarcfs.archive.catalogue.workflow import in_row, roles_with
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import DeskSettings
from webarcfs.archive.model.additions import Author
from webarcfs.archive.model.errors import Forbidden
from webarcfs.vfs.node import author_named
from webarcfs.web.answering import peer

#: Methods that change nothing.
_READING: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Asker:
    """A person who asks, and what for. `bearer` is None for whom a proxy names."""

    person: Person
    scopes: frozenset[Scope]
    bearer: Bearer | None = None

    @property
    def author(self) -> Author:
        """Whom commits name."""
        return author_named(self.person.name, self.person.key)

    def demand(self, scope: Scope) -> None:
        """Raise Forbidden, with what to do, unless the person may do here what a scope is for."""
        if self.bearer is not None:
            self.bearer.demand(scope)
        elif scope not in self.scopes:
            right = NEEDED[scope]
            assert right is not None
            has, needed = in_row(self.person.roles, "and"), in_row(roles_with(right), "or")
            raise Forbidden(f"{self.person.name} is {has}; this needs the role {needed}")


class Askers:
    """Finds who asks."""

    def __init__(self, archive: Archive, origin: str = "") -> None:
        self._archive = archive
        self._origin = origin
        self.persons = Persons(archive)
        self._bearers = Bearers(archive, self.persons)
        self._lock = threading.Lock()
        self._settings: tuple[object, DeskSettings] = (None, DeskSettings())

    def of(self, request: Request) -> Asker:
        """Return who asks. Raises TokenRefused, TooManyGuesses, Forbidden; SettingsError for faults, OSError."""
        settings, authorization = self._proxies(), request.headers.get("authorization", "")
        told = who_asks.told_by_proxy(settings, peer(request), request.headers)
        if not told or authorization[:7].lower() == "bearer ":
            bearer = self._bearers.of_header(
                authorization, who_asks.address_of(settings, peer(request), request.headers)
            )
            return Asker(bearer.person, bearer.scopes, bearer)
        if request.method not in _READING and not self._is_of_program(request):
            raise Forbidden("this was sent by a page of another site")
        person = self.persons.find(told, is_told=True)
        if person is None:
            raise Forbidden(f"the proxy names {told!r}, who is no person of this archive")
        return Asker(person, within(Scope, person.rights))

    def still_holds(self, asker: Asker, scope: Scope) -> bool:
        """Return whether a person may still do what a scope is for: a body may have taken long."""
        if asker.bearer is not None:
            return self._bearers.still_holds(asker.bearer, scope)
        person = self.persons.all().get(asker.person.key)
        return person is not None and scope in within(Scope, person.rights)

    def _is_of_program(self, request: Request) -> bool:
        """Return whether no page of another site sends a request, as far as the browser says where it comes from."""
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return False
        origin = request.headers.get("origin")
        return origin in (None, self._origin) or urlsplit(origin or "").netloc == request.headers.get("host", "")

    def _proxies(self) -> DeskSettings:
        """Return which proxies are trusted, as the settings are now; with faults, as they were last."""
        try:
            status = self._archive.settings.stat()
            state: object = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            state = ()
        with self._lock:
            if state != self._settings[0]:
                self._settings = state, settings_files.load(self._archive.settings)[0].desk
            return self._settings[1]
