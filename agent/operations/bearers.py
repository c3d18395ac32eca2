"""Who asks by a token: the person, and what the token may. And when tokens were used last. For any thread.

A token is looked for in people.toml as it is at each request, so one that was revoked, or whose person was removed,
opens nothing from then on. A wrong one counts as a guess of its address, whatever is wrong with it. Once an address has
guessed too often, only tokens that were right before are taken from there: a program with a revoked token does not keep
its neighbours out. That a token ended is told to who has it, and is no guess.

`lock/token-uses.json` (0600) has by the marks of tokens when they were used last, to an hour, and from which address.
Nothing depends on it. A request never waits for it, nor fails since it cannot be written.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from agent.operations.who_asks import Guesses, Persons
from webarcfs.archive.catalogue import tokens
from webarcfs.archive.catalogue.people import Acting, Person, acting_person
from webarcfs.archive.catalogue.tokens import NEEDED, Scope, Token
from webarcfs.archive.catalogue.workflow import in_row, roles_with
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, Forbidden, TokenRefused, TooManyGuesses
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.archive.system import files, locks

_log = logging.getLogger("webarc")

# == uses =============================================================================================================


#: A use is written unless one of the last hour is.
WRITTEN_EACH: Final = timedelta(hours=1)
_MODE = 0o600
_LONGEST_ADDRESS = 100


@dataclass(frozen=True, slots=True)
class TokenUse:
    """When a token was used last, and from which address; it may have been used for an hour after that."""

    at: datetime
    address: str


def uses(archive: Archive) -> dict[str, TokenUse]:
    """Return the last uses of tokens by their marks; none where the file is missing or cannot be read."""
    try:
        content = files.read_json(archive.token_uses)
    except (Damaged, OSError):
        return {}
    return dict(_uses_of((content or {}).get("uses")))


def _uses_of(content: object) -> Iterator[tuple[str, TokenUse]]:
    for mark, use in content.items() if isinstance(content, Mapping) else ():
        try:
            yield str(mark), TokenUse(parse_time(str(use["at"])), _plain(str(use["address"])))
        except (Damaged, KeyError, TypeError):
            continue


def _plain(address: str) -> str:
    """Return an address as lists can show it: a proxy passes on what its client said."""
    text = address[:_LONGEST_ADDRESS]
    return text if text.isascii() and text.isprintable() else ascii(text)[1:-1][:_LONGEST_ADDRESS]


class UseLog:
    """Writes when tokens are used: for each token at its first use since the start, and once an hour."""

    def __init__(self, archive: Archive, clock: Callable[[], float] = time.monotonic) -> None:
        self._archive = archive
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[str, float] = {}

    def note(self, token: Token, address: str, marks: Callable[[], frozenset[str]]) -> None:
        """Note a use. `marks` are those of all tokens that there are: others are forgotten."""
        now_ = self._clock()
        with self._lock:
            last = self._written.get(token.mark)
            if last is not None and now_ - last < WRITTEN_EACH.total_seconds():
                return
            self._written[token.mark] = now_
        try:
            with locks.if_free(self._archive.token_uses_lock) as is_free:
                if is_free:
                    self._write(token.mark, TokenUse(now(), _plain(address)), marks())
                    return
        except OSError as error:  # a full disk, for instance
            _log.warning("when the token %s was used cannot be written: %s", token.name, error)
            return
        with self._lock:  # another process writes: at the next use
            self._written.pop(token.mark, None)

    def _write(self, mark: str, use: TokenUse, marks: frozenset[str]) -> None:
        known = uses(self._archive)
        before = known.get(mark)
        if before is not None and timedelta() <= use.at - before.at < WRITTEN_EACH:
            with self._lock:  # it was written by another process, or before a restart
                self._written[mark] = self._clock() - (use.at - before.at).total_seconds()
            return
        kept = {own: known[own] for own in sorted(known.keys() & marks)} | {mark: use}
        content = {own: {"at": format_time(last.at), "address": last.address} for own, last in kept.items()}
        text = json.dumps({"format": 1, "uses": content}, indent=2)
        settings_files.replace_file(self._archive.token_uses, text.encode() + b"\n", _MODE)
        with self._lock:
            self._written = {own: at for own, at in self._written.items() if own in marks}


# == bearers ==========================================================================================================


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who asks by a token. `scopes` are those that the person's rights allow, `acting` is the author of changes."""

    person: Person
    token: Token
    scopes: frozenset[Scope]
    acting: Acting = field(repr=False)

    def demand(self, scope: Scope) -> None:
        """Raises Forbidden, with what to do, unless the token may do what a scope is for."""
        if scope in self.scopes:
            return
        right = NEEDED[scope]
        if scope in self.token.scopes and right is not None:
            has, needed = in_row(self.person.roles, "and"), in_row(roles_with(right), "or")
            raise Forbidden(f"{self.person.name} is {has}; the scope {scope} needs the role {needed}")
        raise Forbidden(
            f"the token {self.token.name} has not got the scope {scope}; `webarc-agent people token make` makes one "
            "that has"
        )


_ASK = "make one with `webarc-agent people token make`, and send it as `Authorization: Bearer webarc_…`"


class Bearers:
    """Finds who asks by a token. `persons` may be shared with others that ask for them."""

    def __init__(
        self,
        archive: Archive,
        persons: Persons | None = None,
        guesses: Guesses | None = None,
        use_log: UseLog | None = None,
    ) -> None:
        self._persons = persons or Persons(archive)
        self._guesses = guesses or Guesses()
        self._use_log = use_log or UseLog(archive)
        self._lock = threading.Lock()
        self._known: tuple[Mapping[str, Person], dict[str, tuple[Person, Token]]] = ({}, {})
        self._acting: dict[str, Acting] = {}
        #: Hashes of tokens that were right since this start.
        self._right: set[str] = set()

    def of_header(self, authorization: str, address: str) -> Bearer:
        """Return who asks, by the header Authorization. Raises as `of_text`, also for a header without a token."""
        scheme, _, text = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise TokenRefused(f"a token is needed: {_ASK}", is_sent=False)
        return self.of_text(text.strip(), address)

    def of_text(self, text: str, address: str) -> Bearer:
        """Return who asks, by the text of a token, from an address.

        Raises TokenRefused, TooManyGuesses; SettingsError where people.toml has faults, OSError.
        """
        persons = self._persons.all()
        known = self._index(persons)
        digest = tokens.hash_token(text)
        owner = known.get(digest) if tokens.is_secret(text) else None
        if owner is None or digest not in self._right:
            self._try(digest, address, is_right=owner is not None)
        assert owner is not None
        person, token = owner
        if token.is_over(now()):
            raise TokenRefused(f"the token {token.name} ended at {format_time(token.expires)} (CET): {_ASK}")
        self._use_log.note(token, address, lambda: frozenset(own.mark for _, own in known.values()))
        return Bearer(person, token, tokens.within(token.scopes, person.rights), self._acting_of(persons, person))

    def still_holds(self, bearer: Bearer, scope: Scope) -> bool:
        """Return whether a token opens what it opened before, for answers and bodies that take long.

        Raises SettingsError where people.toml has faults, OSError.
        """
        owner = self._index(self._persons.all()).get(bearer.token.hash)
        if owner is None or owner[1].is_over(now()):
            return False
        return scope in tokens.within(owner[1].scopes, owner[0].rights)

    def _try(self, digest: str, address: str, *, is_right: bool) -> None:
        """Count a guess. Raises TooManyGuesses, TokenRefused for a wrong one."""
        if wait := self._guesses.begin("", address):
            raise TooManyGuesses("too many wrong tokens came from this address: try it later", wait)
        if not is_right:
            raise TokenRefused(f"this is no token of this archive, or it was revoked: {_ASK}")
        self._guesses.was_right("", address)
        with self._lock:
            self._right.add(digest)

    def _index(self, persons: Mapping[str, Person]) -> dict[str, tuple[Person, Token]]:
        """Return persons and tokens by the hashes of these."""
        with self._lock:
            if self._known[0] is not persons:
                known = {token.hash: (person, token) for person in persons.values() for token in person.tokens}
                self._known = persons, known
                self._acting = {}
                self._right &= known.keys()
            return self._known[1]

    def _acting_of(self, persons: Mapping[str, Person], person: Person) -> Acting:
        """Return a person as the author of changes; kept, since all persons are asked for who is one human."""
        with self._lock:
            kept = self._acting.get(person.key)
            if kept is None or self._known[0] is not persons:
                kept = acting_person(persons, person)
                if self._known[0] is persons:
                    self._acting[person.key] = kept
            return kept
