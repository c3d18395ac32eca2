"""Sessions of persons: kept in the memory of this process, so that an end is one, wherever the cookie is.

The cookie is the session's name, signed for this desk alone: another one, at another port of the same host, which gets
the same cookies, does not take it. The key is made at the start and is nowhere else: a restart ends all sessions. What
was typed survives that (`forms`). For any thread.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from itsdangerous import BadSignature, Signer

from agent.desk import limits
from webarcfs.archive.catalogue.people import Person


@dataclass(slots=True, eq=False)
class Session:
    """A session. `public` names it in tokens; `proxy` is the name that a proxy told, empty after a password."""

    secret: str
    person: str
    password: str = field(repr=False)
    proxy: str
    began: float
    seen: float
    #: Whether its cookie ever came back: a program without cookies begins a session with each request.
    is_used: bool = field(init=False, default=False)
    public: str = field(init=False)
    language: str = ""
    said: list[tuple[str, str]] = field(default_factory=list)
    sent: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.take_secret(self.secret)

    def take_secret(self, secret: str) -> None:
        """Take a secret, from which the public name follows."""
        self.secret = secret
        self.public = hashlib.sha256(secret.encode()).hexdigest()[:16]


class Sessions:
    """The sessions of a desk. `place` is its origin, or its address: the cookie is good there alone."""

    def __init__(self, key: bytes, place: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._signer = Signer(key, salt=f"webarcfs session {place}", digest_method=hashlib.sha256)
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Session] = {}
        #: The name of the cookie: desks at several ports of a host do not take each other's away.
        self.cookie = f"webarc_desk_{hashlib.sha256(place.encode()).hexdigest()[:8]}"

    def begin(self, person: Person, proxy: str = "") -> tuple[Session, str]:
        """Begin a session of a person; return it, and the value of its cookie."""
        now = self._clock()
        session = Session(secrets.token_urlsafe(32), person.key, person.password, proxy, now, now)
        with self._lock:
            own = [known for known in self._known.values() if known.person == person.key]
            if len(own) >= limits.SESSIONS_OF_PERSON:
                del self._known[min(own, key=_worth).secret]
            elif len(self._known) >= limits.SESSIONS:
                sessions = Counter(known.person for known in self._known.values())
                (most, _), *_ = sessions.most_common(1)
                rivals = [known for known in self._known.values() if known.person == most]
                del self._known[min(rivals, key=_worth).secret]
            self._known[session.secret] = session
        return session, self._signer.sign(session.secret).decode()

    def once(self, person: Person) -> Session:
        """Return a session of a person for one request, which no cookie finds."""
        now = self._clock()
        return Session(secrets.token_urlsafe(32), person.key, person.password, "", now, now)

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None for any other, and for one that is over."""
        try:
            secret = self._signer.unsign(cookie).decode()
        except (BadSignature, ValueError):
            return None
        now = self._clock()
        with self._lock:
            found = self._known.get(secret)
            if found is None:
                return None
            if now - found.seen > limits.IDLE_SECONDS or now - found.began > limits.LONGEST_SECONDS:
                del self._known[secret]
                return None
            found.seen = now
            found.is_used = True
            return found

    def named(self, public: str) -> Session | None:
        """Return the open session of a public name; None without one."""
        now = self._clock()
        with self._lock:
            for each in self._known.values():
                if each.public == public:
                    is_over = now - each.seen > limits.IDLE_SECONDS or now - each.began > limits.LONGEST_SECONDS
                    return None if is_over else each
        return None

    def renew(self, session: Session) -> str:
        """Give a session another secret and name, so that older cookies and tokens open nothing; return its cookie."""
        with self._lock:
            self._known.pop(session.secret, None)
            session.take_secret(secrets.token_urlsafe(32))
            self._known[session.secret] = session
        return self._signer.sign(session.secret).decode()

    def end(self, session: Session) -> None:
        """End a session."""
        with self._lock:
            self._known.pop(session.secret, None)

    def end_of(self, person: str, but: Session | None = None) -> None:
        """End the sessions of a person, all but one."""
        with self._lock:
            for secret in [each.secret for each in self._known.values() if each.person == person and each is not but]:
                del self._known[secret]

    # -- what a session keeps ----------------------------------------------------------------------------------------

    def is_new(self, session: Session, mark: str) -> bool:
        """Return whether a form is sent for the first time in a session, and remember it."""
        with self._lock:
            if mark in session.sent:
                return False
            session.sent[mark] = None
            while len(session.sent) > limits.SENT:
                session.sent.popitem(last=False)
            return True

    def say(self, session: Session, kind: str, text: str) -> None:
        """Keep something to tell with the next page."""
        with self._lock:
            session.said.append((kind, text))
            del session.said[:-20]

    def hear(self, session: Session) -> list[tuple[str, str]]:
        """Return what is to be told with this page, once."""
        with self._lock:
            found, session.said = session.said, []
        return found


def _worth(session: Session) -> tuple[bool, float]:
    """Return by what sessions are kept: the least goes first."""
    return session.is_used, session.seen
