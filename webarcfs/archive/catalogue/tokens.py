"""Tokens of persons, by which programs ask over the network. Pure, but for the making of a secret.

A token is `webarc_`, 43 characters with 256 random bits, and six that are their CRC-32. So a program that looks for
secrets in code finds it by `webarc_[0-9A-Za-z]{49}`, and a mistyped one is told from one that was revoked. It is shown
once. What is kept is its SHA-256: the secret is random, so a slow hash would protect nothing more.

    [person.anna.token.laptop]
    hash = "sha256:…"
    scopes = ["read", "add"]
    made = 2026-12-01T12:00:00+01:00
    expires = 2027-03-01T12:00:00+01:00

A token does what its scopes and the rights of its person both allow. A scope gives no right that the person lacks.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final

from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.metadata import CET

# == scopes ===========================================================================================================


class Scope(StrEnum):
    """What a token is for."""

    READ = "read"
    ADD = "add"
    CAPTURE = "capture"
    MIRROR = "mirror"


#: The right that each scope needs; None: every person of the archive may. A mirror has all that the archive has, also
#: what is withheld, so it is for those who may change the options: they can as well log in on the machine.
NEEDED: Final[Mapping[Scope, Right | None]] = {
    Scope.READ: None,
    Scope.ADD: Right.ADD,
    Scope.CAPTURE: Right.CAPTURE,
    Scope.MIRROR: Right.OPTIONS,
}


def within(scopes: Iterable[Scope], rights: Collection[Right]) -> frozenset[Scope]:
    """Return the scopes that rights allow."""
    return frozenset(scope for scope in scopes if NEEDED[scope] is None or NEEDED[scope] in rights)


def in_scope_order(scopes: Collection[Scope]) -> tuple[Scope, ...]:
    """Return scopes without repetition, in the order of `Scope`."""
    return tuple(scope for scope in Scope if scope in scopes)


# == secrets ==========================================================================================================


PREFIX: Final = "webarc_"
_ALPHABET: Final = digits + ascii_uppercase + ascii_lowercase
_RANDOM, _CHECK = 43, 6
_TEXT = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM + _CHECK}}}", re.ASCII)
_KIND: Final = "sha256:"
_HASH = re.compile(rf"{_KIND}[0-9a-f]{{64}}", re.ASCII)


def make_secret() -> str:
    """Return the text of a new token."""
    text = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return text + _check_of(text)


def is_secret(text: str) -> bool:
    """Return whether a text is that of a token, of whatever archive: its form and its check are right."""
    return _TEXT.fullmatch(text) is not None and text[-_CHECK:] == _check_of(text[:-_CHECK])


def _check_of(text: str) -> str:
    rest, check = zlib.crc32(text.encode()), ""
    for _ in range(_CHECK):
        rest, digit = divmod(rest, len(_ALPHABET))
        check = _ALPHABET[digit] + check
    return check


def hash_secret(purpose: str, secret: str) -> str:
    """Return what is kept of a random secret. `purpose` tells secrets of one kind from those of another."""
    return _KIND + hashlib.sha256(f"webarcfs {purpose} {secret}".encode("utf-8", "replace")).hexdigest()


def hash_token(text: str) -> str:
    """Return what is kept of the text of a token."""
    return hash_secret("token", text)


# == tokens ===========================================================================================================


#: How long a token lasts unless its maker says otherwise, and at most.
LASTS: Final = Interval(90, "day")
LONGEST: Final = Interval(1, "year")
#: Most tokens of a person.
MOST: Final = 50
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_KEYS: Final = ("hash", "scopes", "made", "expires")
#: Years of times that are read: a year more has a number as well.
_YEARS: Final = range(1970, 9000)
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. `name` is its own among those of its person."""

    name: str
    hash: str = field(repr=False)
    scopes: tuple[Scope, ...]
    made: datetime
    expires: datetime

    @property
    def mark(self) -> str:
        """What names the token in files beside people.toml: another token of the same name has another."""
        return self.hash.removeprefix(_KIND)[:16]

    def is_over(self, at: datetime) -> bool:
        """Return whether the token had ended at a time."""
        return at >= self.expires


def is_name(text: str) -> bool:
    """Return whether a token may have this name."""
    return _NAME.fullmatch(text) is not None


def read_tokens(tables: Any, owner: str, faults: list[str]) -> tuple[Token, ...]:
    """Return the tokens below a person, `owner` in the file, without those that have faults, which are added."""
    if not isinstance(tables, Mapping):
        faults.append(f"{owner}.token: write [{owner}.token.NAME]")
        return ()
    return tuple(token for name, table in tables.items() if (token := _read(name, table, owner, faults)) is not None)


def _read(name: str, table: Any, owner: str, faults: list[str]) -> Token | None:
    if not is_name(name):
        faults.append(f"{owner}.token.{_shown(name)}: the name of a token has letters, digits, - and _")
        return None
    place = f"{owner}.token.{name}"
    if not isinstance(table, Mapping):
        faults.append(f"{place}: write [{place}]")
        return None
    wrong = [f"{place}.{_shown(key)}: there is no such key" for key in table if key not in _KEYS]
    if not isinstance(table.get("hash"), str) or not _HASH.fullmatch(table["hash"]):
        wrong.append(f"{place}.hash: is no SHA-256 as `webarc-agent people token make` writes it")
    scopes = _scopes(table.get("scopes"), place, wrong)
    made, expires = (_time(table.get(key), f"{place}.{key}", wrong) for key in ("made", "expires"))
    if made is not None and expires is not None and not made < expires <= LONGEST.after(made):
        wrong.append(f"{place}.expires: is to be after `made`, by a year at most")
    faults += wrong
    if wrong or made is None or expires is None:
        return None
    return Token(name, table["hash"], scopes, made, expires)


def _scopes(values: Any, place: str, wrong: list[str]) -> tuple[Scope, ...]:
    if not isinstance(values, list) or not values:
        wrong.append(f'{place}.scopes: write scopes = ["read"], of {", ".join(Scope)}')
        return ()
    known = [value for value in values if isinstance(value, str) and value in tuple(Scope)]
    unknown = [value for value in values if value not in known]
    wrong += [f"{place}.scopes: {_shown(value)} is none of {', '.join(Scope)}" for value in unknown]
    wrong += [f"{place}.scopes: {scope} is there twice" for scope in Scope if known.count(scope) > 1]
    return in_scope_order([Scope(value) for value in known])


def _time(value: Any, place: str, wrong: list[str]) -> datetime | None:
    if not isinstance(value, datetime) or value.year not in _YEARS:
        wrong.append(f"{place}: write a time, such as 2026-12-01T12:00:00+01:00")
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=CET)).astimezone(CET)


def _shown(value: object) -> str:
    """Return a value of the file for a message: in one line, in ASCII, and short."""
    text = ascii(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def as_table(token: Token) -> dict[str, Any]:
    """Return the table of a token, as the file has it."""
    return {
        "hash": token.hash,
        "scopes": list(map(str, token.scopes)),
        "made": token.made,
        "expires": token.expires,
    }
