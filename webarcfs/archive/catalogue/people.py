"""people.toml: the persons of an archive, their roles and rights, and their login names (`unix`).

Without the file everybody who may write to the archive may do all. With it, a command that decides about records is
refused to a login name that it does not have, or that lacks the right. `password` is the hash of a password, for those
who work at the desk, `feed` the hash of the secret in the address of one's feed. The file is for its owner alone
(0600).

    [person.anna]
    name = "Anna Beispiel"
    role = "archivist"
    unix = "anna"
    password = "$argon2id$v=19$…"
    feed = "sha256:…"
"""

from __future__ import annotations

import getpass
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webarcfs.archive.catalogue.workflow import RIGHTS, Right, Role
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Forbidden, SettingsError, UsageError

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEYS = ("name", "role", "unix", "password", "feed")
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Person:
    """A person: `key` names it in the file, `unix` is the login name, `password` and `feed` are hashes; each may be
    empty.
    """

    key: str
    name: str
    role: Role
    unix: str = ""
    password: str = field(default="", repr=False)
    feed: str = field(default="", repr=False)

    def may(self, right: Right) -> bool:
        """Return whether the person has a right."""
        return right in RIGHTS[self.role]


@dataclass(frozen=True, slots=True)
class Acting:
    """The author of a change: a name for the catalogue, and the role; None where the archive has no people."""

    name: str
    role: Role | None


def load(archive: Archive) -> dict[str, Person] | None:
    """Return the persons by key; None without the file. Raises SettingsError with all faults, OSError."""
    try:
        text = archive.people.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise SettingsError(str(archive.people), [f"not UTF-8 at byte {error.start}"]) from None
    return _parse(text, str(archive.people))


def _parse(text: str, source: str) -> dict[str, Person]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [f"not TOML: {error}"]) from None
    faults = [f"{key}: there is no such table" for key in tables if key != "person"]
    persons = tables.get("person", {})
    if not isinstance(persons, dict):
        raise SettingsError(source, ["person: write [person.KEY]"])
    people = {key: person for key, table in persons.items() if (person := _person(key, table, faults)) is not None}
    logins = [person.unix for person in people.values() if person.unix]
    faults += [f"unix: {login} is there twice" for login in sorted(set(logins)) if logins.count(login) > 1]
    if faults:
        raise SettingsError(source, faults)
    return people


def _person(key: str, table: Any, faults: list[str]) -> Person | None:
    if not isinstance(table, Mapping) or not _KEY.fullmatch(key):
        faults.append(f"person.{key}: write [person.KEY]; the key has letters, digits, - and _")
        return None
    wrong = [f"person.{key}.{name}: there is no such key" for name in table if name not in _KEYS]
    wrong += [f"person.{key}.{name}: is not a text" for name in table if not isinstance(table[name], str)]
    if table.get("role") not in set(Role):
        wrong.append(f"person.{key}.role: is none of {', '.join(Role)}")
    faults += wrong
    if wrong:
        return None
    texts = {name: str(table.get(name, "")) for name in _KEYS}
    return Person(key, texts["name"] or key, Role(table["role"]), texts["unix"], texts["password"], texts["feed"])


def acting(archive: Archive, right: Right) -> Acting:
    """Return the author of a change by this process. Raises Forbidden if the archive's people do not allow it."""
    login = _login()
    persons = load(archive)
    if persons is None:
        return Acting(login or "unknown", None)
    person = next((person for person in persons.values() if login and person.unix == login), None)
    if person is None:
        raise Forbidden(f"{archive.people} has no person with unix = {login!r}; `webarc-agent people list` lists them")
    if not person.may(right):
        raise Forbidden(f"{person.name} is {person.role}, which does not have the right to {right}")
    return Acting(person.name, person.role)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def is_key(text: str) -> bool:
    """Return whether a person may have this key."""
    return _KEY.fullmatch(text) is not None


def save(archive: Archive, person: Person, by: Acting | None = None) -> None:
    """Add or change a person; who has a password keeps it, unless `person` has another.

    `by` is who asks for it, and was found to have the right; None: the person of this process. Raises UsageError if
    nobody could change people then, Forbidden, SettingsError.
    """
    if by is None:
        acting(archive, Right.PEOPLE)
    if not _KEY.fullmatch(person.key):
        raise UsageError(f"{person.key!r} is no key; it has letters, digits, - and _")
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        known = load(archive) or {}
        before = known.get(person.key)
        if before is not None and not person.password:
            person = replace(person, password=before.password)
        _must_stay_open(known | {person.key: person})
        fields = {"name": person.name, "role": str(person.role), "unix": person.unix, "password": person.password}
        _write(document.setdefault("person", {}), person.key, fields)
        _parse(document.as_string(), str(archive.people))  # a login name that is there twice would lock everybody out


def set_password(archive: Archive, key: str, password: str, by: Acting | None = None) -> None:
    """Give a person the hash of a password; an empty one takes it and the feed away. One may do so for oneself.

    `by` as in `save`. Raises UsageError without such a person, or if nobody could change people then, Forbidden.
    """
    persons = load(archive) or {}
    if key not in persons:
        raise UsageError(f"there is no person {key}; there are: {', '.join(persons) or 'none'}")
    if by is None and persons[key].unix != _login():
        acting(archive, Right.PEOPLE)
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        known = load(archive) or {}
        _must_stay_open(known | {key: replace(known.get(key, persons[key]), password=password)})
        _write(document.setdefault("person", {}), key, {"password": password} | ({} if password else {"feed": ""}))


def set_feed(archive: Archive, key: str, feed: str) -> None:
    """Give a person, who asks for it, the hash of the secret of a feed; an empty one takes it away.

    Raises Forbidden where the person is not there any more, SettingsError.
    """
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        if key not in (load(archive) or {}):
            raise Forbidden(f"{archive.people} has no person {key}")
        _write(document.setdefault("person", {}), key, {"feed": feed})


def _write(persons: Any, key: str, fields: Mapping[str, str]) -> None:
    """Write fields of a person; what else people wrote there stays."""
    table = persons.setdefault(key, {})
    for name, text in fields.items():
        if text:
            table[name] = text
        else:
            table.pop(name, None)


def remove(archive: Archive, key: str, by: Acting | None = None) -> None:
    """Remove a person. `by` as in `save`. Raises UsageError if there is none, or nobody could change people then."""
    if by is None:
        acting(archive, Right.PEOPLE)
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        persons = load(archive) or {}
        if key not in persons:
            raise UsageError(f"there is no person {key}; there are: {', '.join(persons) or 'none'}")
        _must_stay_open({name: person for name, person in persons.items() if name != key})
        del document["person"][key]


def _must_stay_open(persons: Mapping[str, Person]) -> None:
    if not any(person.may(Right.PEOPLE) and (person.unix or person.password) for person in persons.values()):
        raise UsageError(
            "nobody could change people any more; there must be an administrator with a login name (unix) or a password"
        )
