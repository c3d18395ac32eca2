"""Who asks desk and gateway: persons by name, by a secret address, or by the word of a trusted proxy. For any thread.

Persons are those of people.toml as it is now. The secret in the address of a feed has 256 random bits, so a fast hash
of it is enough: each request of a feed is judged by it.

Guessing is bounded for each name and each address: so many in a span of time, then nothing is tried. A guesser from one
address has `GUESSES_OF_ADDRESS` in each span; many addresses together have `GUESSES_OF_NAME` for a name. IPv6 gives
each customer a /64 at least, which counts as one address. Who is right is not counted, and a guess that was refused
leaves nothing behind. Where too many are remembered, those with the fewest guesses go first: a flood of other names
does not set a guesser free.
"""

from __future__ import annotations

import hmac
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.tokens import hash_secret
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import ReadersSettings
from webarcfs.room import visit

# == secrets of feeds, pure ===========================================================================================


def make_secret() -> tuple[str, str]:
    """Return a new secret, and what is kept of it."""
    secret = secrets.token_urlsafe(32)
    return secret, hash_secret("feed", secret)


def is_of(person: Person, secret: str) -> bool:
    """Return whether a secret is the person's."""
    return bool(person.feed) and hmac.compare_digest(person.feed.encode(), hash_secret("feed", secret).encode())


# == persons ==========================================================================================================


class Persons:
    """people.toml, read again when it changes: a person who is removed there is out with the next request."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._known: tuple[object, dict[str, Person]] = (None, {})

    def all(self) -> dict[str, Person]:
        """Return the persons by key; none without the file. Raises SettingsError for faults, OSError."""
        try:
            status = os.stat(self._archive.people)  # noqa: PTH116 # asked for each request
        except FileNotFoundError:
            return {}
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
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

        `is_told`: a proxy says who it is, by a login name: the short name serves only where a person has none. A
        name that two persons have is nobody's.
        """
        known = self.all()
        if name in known and not is_told:
            return known[name]
        if is_told:
            persons = [person for person in known.values() if name and name == (person.unix or person.key)]
        else:
            persons = [person for person in known.values() if name and name == person.unix]
        return persons[0] if len(persons) == 1 else None

    def of_feed(self, secret: str) -> Person | None:
        """Return the person whose feed has a secret in its address; None without one."""
        return next((person for person in self.all().values() if is_of(person, secret)), None)


def told_by_proxy(settings: ReadersSettings, peer: str, headers: Mapping[str, str]) -> str:
    """Return the name that a trusted proxy gives to who asks; empty without one."""
    return visit.reader_of(settings, peer, headers).name


def address_of(settings: ReadersSettings, peer: str, headers: Mapping[str, str]) -> str:
    """Return the address of who asks: behind a trusted proxy, the last one that it names in X-Forwarded-For."""
    if not visit.is_trusted(settings, peer):
        return peer
    return headers.get("x-forwarded-for", "").rpartition(",")[2].strip()[:100] or peer


# == guesses ==========================================================================================================


_Key = tuple[str, ...]


#: Guesses within `GUESS_SECONDS`: for a name from an address, from an address, and for a name in all.
GUESS_SECONDS: Final = 300.0
GUESSES_OF_BOTH: Final = 5
GUESSES_OF_ADDRESS: Final = 20
GUESSES_OF_NAME: Final = 30
#: Names and addresses that are remembered, each.
GUESSERS: Final = 10_000


class Guesses:
    """The guesses of the last span of time. Without a name, only those of an address are counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[_Key, deque[float]] = {}

    def begin(self, name: str, address: str) -> float:
        """Count a guess before it is tried; return 0, or the seconds to wait if it may not be tried."""
        now = self._clock()
        keys = _keys(name, address)
        with self._lock:
            wait = max(self._wait(key, most, now) for key, most in keys)
            if not wait:
                for key, _ in keys:
                    self._known.setdefault(key, deque()).append(now)
                if len(self._known) > 3 * GUESSERS:
                    self._forget(now)
            return wait

    def was_right(self, name: str, address: str) -> None:
        """Take the last guess back: it was none."""
        with self._lock:
            for key, _ in _keys(name, address):
                times = self._known.get(key)
                if times:
                    times.pop()
                if not times:
                    self._known.pop(key, None)

    def _wait(self, key: _Key, most: int, now: float) -> float:
        times = self._known.get(key)
        if times is None:
            return 0.0
        while times and times[0] <= now - GUESS_SECONDS:
            times.popleft()
        return times[0] + GUESS_SECONDS - now if len(times) >= most else 0.0

    def _forget(self, now: float) -> None:
        """Forget what is over, and if need be a tenth of the rest: those with the fewest guesses, the oldest first."""
        since = now - GUESS_SECONDS
        self._known = {key: times for key, times in self._known.items() if times and times[-1] > since}
        kept = sorted(self._known, key=lambda key: (len(self._known[key]), self._known[key][-1]), reverse=True)
        for key in kept[27 * GUESSERS // 10 :]:
            del self._known[key]


def _keys(name: str, address: str) -> tuple[tuple[_Key, int], ...]:
    name, address = name.casefold()[:200], _network(address)
    if not name:
        return ((("address", address), GUESSES_OF_ADDRESS),)
    return (
        (("both", name, address), GUESSES_OF_BOTH),
        (("address", address), GUESSES_OF_ADDRESS),
        (("name", name), GUESSES_OF_NAME),
    )


def _network(address: str) -> str:
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    mapped = ip.ipv4_mapped
    return str(ip_network((ip, 64), strict=False)) if mapped is None else str(mapped)
