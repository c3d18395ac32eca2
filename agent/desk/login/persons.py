"""The persons of people.toml as they are now, and who asks, where a trusted proxy says so. For any thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from agent.desk.login import feedkeys
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import ReadersSettings
from webarcfs.gate import trusted_proxy


class Persons:
    """people.toml, read again when it changes: a person who is removed there is out with the next request."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._known: tuple[object, dict[str, Person]] = (None, {})

    def all(self) -> dict[str, Person]:
        """Return the persons by key; none without the file. Raises SettingsError for faults, OSError."""
        try:
            found = os.stat(self._archive.people)  # noqa: PTH116 # asked for each request
        except FileNotFoundError:
            return {}
        state = (found.st_ino, found.st_size, found.st_mtime_ns)
        with self._lock:
            if state != self._known[0]:
                self._known = state, people.load(self._archive) or {}
            return self._known[1]

    def last(self) -> dict[str, Person]:
        """Return the persons of the last file without faults, by key: for those who mend it. None may act by this."""
        return self._known[1]

    def state(self) -> object:
        """Return a value that changes with the file."""
        self.all()
        return self._known[0]

    def find(self, name: str, *, is_told: bool = False) -> Person | None:
        """Return the person of a short name, else of a login name; None without one.

        `is_told`: a proxy says who it is, by a login name: the short name stands for it only where a person has none. A
        name that two persons have is nobody's.
        """
        known = self.all()
        if name in known and not is_told:
            return known[name]
        if is_told:
            found = [each for each in known.values() if name and name == (each.unix or each.key)]
        else:
            found = [each for each in known.values() if name and name == each.unix]
        return found[0] if len(found) == 1 else None

    def of_feed(self, secret: str) -> Person | None:
        """Return the person whose feed has a secret in its address; None without one."""
        return next((each for each in self.all().values() if feedkeys.is_of(each, secret)), None)


def told_by_proxy(settings: ReadersSettings, peer: str, headers: Mapping[str, str]) -> str:
    """Return the name that a trusted proxy tells of who asks; empty without one."""
    return trusted_proxy.reader_of(settings, peer, headers).name


def address_of(settings: ReadersSettings, peer: str, headers: Mapping[str, str]) -> str:
    """Return the address of who asks: behind a trusted proxy, the last one that it names in X-Forwarded-For."""
    if not trusted_proxy.is_trusted(settings, peer):
        return peer
    return headers.get("x-forwarded-for", "").rpartition(",")[2].strip()[:100] or peer
