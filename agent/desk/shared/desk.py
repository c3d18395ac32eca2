"""What the requests of a desk share: the archive, who is who, sessions, the look, and what is asked often. Any thread.

The archive is read as staff see it: all snapshots, released or not, withheld pages too.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from starlette.responses import Response

from agent.desk.login.guesses import Guesses
from agent.desk.login.persons import Persons
from agent.desk.login.sessions import Session, Sessions
from agent.desk.login.tokens import Tokens
from agent.desk.shared.opened import OpenedServices
from agent.service.history import History, Past
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.config import settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system.cache import Cache
from webarcfs.room.look import language as languages
from webarcfs.room.services import Services, Shared

#: The folder of the desk's texts.
LOCALE = Path(__file__).parent.parent / "look" / "locale"
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
        self.tokens = Tokens(key)
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

        That is so once the password is another, or the name that a proxy told is another person's.
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
        own, at = settings_file.own_identity(self.archive.settings), time.monotonic()
        before, looked = self._looked_at
        if not surely and own == before and at - looked < _FILES_HOLD:
            return
        state = settings_file.identity(self.archive.settings)
        with self._lock:
            self._looked_at = own, at
            if state == self._settings[0]:
                return
            try:
                self._settings = state, settings_file.load(self.archive.settings)[0], ()
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
        return languages.said(text, language, LOCALE)

    def look_up(self, language: str) -> Callable[[str], str]:
        """Return what says texts of ours in a language."""
        return partial(languages.said, language=language, more=LOCALE)

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
        found = self._known.get(record)
        if found is None:
            found = self._known[record] = OpenedServices(self._shared, record)
            while len(self._known) > _SERVICES:
                self._known.popitem(last=False)[1].close()
        self._known.move_to_end(record)
        found.look()
        return found
