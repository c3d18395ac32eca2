"""Who works at the desk: passwords, sessions, tokens of forms and previews. For any thread.

Passwords are kept as argon2id hashes (RFC 9106). An unknown name takes as long as a wrong password.

Tokens are signed with the key of this start. A form's token says in which session and for which action the form was
made, and which state of its object it showed: sent late it does nothing, whatever changed meanwhile. Each has a mark of
its own, by which a second copy is recognised. A preview's token says which record a session may look at; it is valid
for an hour.

Sessions are kept in the memory of this process, so that an end is one, wherever the cookie is. The cookie is the
session's name, signed for this desk alone: another one, at another port of the same host, which gets the same cookies,
does not take it. The key is made at the start and is nowhere else: a restart ends all sessions. What was typed survives
that (`forms`).
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from itsdangerous import BadData, BadSignature, Signer, URLSafeSerializer, URLSafeTimedSerializer

from agent.desk import forms
from agent.desk.forms import FormToken
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.model.errors import UsageError

# == passwords ========================================================================================================


_HASHER = PasswordHasher()


def hashed(password: str) -> str:
    """Return the hash of a new password. Raises UsageError for one that is too short, or too long."""
    if not forms.PASSWORD_SHORTEST <= len(password) <= forms.PASSWORD_LONGEST:
        raise UsageError(
            f"a password has {forms.PASSWORD_SHORTEST} to {forms.PASSWORD_LONGEST} characters; several words are best"
        )
    return _HASHER.hash(password)


def matches(known: str, password: str) -> bool:
    """Return whether a password has a hash; False, after the same time, for an empty hash."""
    try:
        return _HASHER.verify(known or _nobodys(), password[: forms.PASSWORD_LONGEST]) and bool(known)
    except (Argon2Error, InvalidHashError):
        return False


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _HASHER.hash("nobody has this password")


# == tokens, pure =====================================================================================================


_DIGEST = {"digest_method": hashlib.sha256}


class LoginTokens:
    """Makes and reads tokens."""

    def __init__(self, key: bytes) -> None:
        self._forms = URLSafeSerializer(key, salt="webarcfs form", signer_kwargs=_DIGEST)
        self._previews = URLSafeTimedSerializer(key, salt="webarcfs preview", signer_kwargs=_DIGEST)

    def form(self, session: str, action: str, state: str = "") -> str:
        """Return the token of a form."""
        return str(self._forms.dumps([session, action, secrets.token_urlsafe(9), state]))

    def read(self, text: str, session: str, action: str) -> FormToken:
        """Return what a token says; of a foreign or broken one, what it says of the state, if it does."""
        try:
            values, is_ours = self._forms.loads(text), True
        except BadData:
            values, is_ours = self._unsafely(text), False
        if not (isinstance(values, list) and len(values) == 4 and all(isinstance(value, str) for value in values)):
            return FormToken("", "", False)
        return FormToken(values[2], values[3], is_ours and values[0] == session and values[1] == action)

    def _unsafely(self, text: str) -> object:
        """Return what a token says that another start signed: which state a form showed is no secret."""
        try:
            return self._forms.loads_unsafe(text)[1]
        except (BadData, ValueError):
            return None

    def preview(self, session: str, record: str) -> str:
        """Return the token of a preview."""
        return str(self._previews.dumps([session, record]))

    def of_preview(self, text: str) -> tuple[str, str] | None:
        """Return session and record of a preview; None for a token that is not valid, or not any more."""
        try:
            values = self._previews.loads(text, max_age=forms.PREVIEW_SECONDS)
        except BadData:
            return None
        return (str(values[0]), str(values[1])) if isinstance(values, list) and len(values) == 2 else None


# == sessions =========================================================================================================


@dataclass(slots=True, eq=False)
class Session:
    """A session. `public` names it in tokens; `proxy` is the name that a proxy gave, empty after a password."""

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
            own = [other for other in self._known.values() if other.person == person.key]
            if len(own) >= forms.SESSIONS_OF_PERSON:
                del self._known[min(own, key=_worth).secret]
            elif len(self._known) >= forms.SESSIONS:
                sessions = Counter(other.person for other in self._known.values())
                (most, _), *_ = sessions.most_common(1)
                rivals = [other for other in self._known.values() if other.person == most]
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
            session = self._known.get(secret)
            if session is None:
                return None
            if now - session.seen > forms.IDLE_SECONDS or now - session.began > forms.LONGEST_SECONDS:
                del self._known[secret]
                return None
            session.seen = now
            session.is_used = True
            return session

    def named(self, public: str) -> Session | None:
        """Return the open session of a public name; None without one."""
        now = self._clock()
        with self._lock:
            for session in self._known.values():
                if session.public == public:
                    is_over = now - session.seen > forms.IDLE_SECONDS or now - session.began > forms.LONGEST_SECONDS
                    return None if is_over else session
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
            for secret in [
                session.secret for session in self._known.values() if session.person == person and session is not but
            ]:
                del self._known[secret]

    # -- what a session keeps ----------------------------------------------------------------------------------------

    def is_new(self, session: Session, mark: str) -> bool:
        """Return whether a form is sent for the first time in a session, and remember it."""
        with self._lock:
            if mark in session.sent:
                return False
            session.sent[mark] = None
            while len(session.sent) > forms.SENT:
                session.sent.popitem(last=False)
            return True

    def say(self, session: Session, kind: str, text: str) -> None:
        """Keep something to report with the next page."""
        with self._lock:
            session.said.append((kind, text))
            del session.said[:-20]

    def hear(self, session: Session) -> list[tuple[str, str]]:
        """Return what is to be reported with this page, once."""
        with self._lock:
            messages, session.said = session.said, []
        return messages


def _worth(session: Session) -> tuple[bool, float]:
    """Return by what sessions are kept: the least is dropped first."""
    return session.is_used, session.seen
