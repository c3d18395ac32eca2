"""people.toml: the persons of an archive, their roles and rights, and their login names (`unix`).

Without the file everybody who may write to the archive may do all. With it, a command that decides about records is
refused to a login name that it does not have, or that lacks the right. A person may have several roles, whose rights
add up. `password` is the hash of a password, for those who work at the desk, `feed` the hash of the secret in the
address of one's feed. Below a person are the tokens of programs that act as the person (`tokens`). The file is for its
owner alone (0600).

    format = 2

    [person.anna]
    name = "Anna Beispiel"
    roles = ["archivist", "administrator"]
    unix = "anna"
    password = "$argon2id$v=19$…"
    feed = "sha256:…"

Older programs wrote one `role = "archivist"`. That is read, and is rewritten as `roles` when the person is changed.
Files of before had no tokens, and no `format`. They are read, and get it with their first token: from then on, programs
of before refuse the file, and nobody is let in by them.

One human may have two entries, or work at the desk by one name and in a terminal by another. Entries that share a short
name, a name or a login name are one human (`names_of`), for rules that want two.
"""

from __future__ import annotations

import getpass
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from webarcfs.archive.catalogue import tokens
from webarcfs.archive.catalogue.record import NO_WARRANT, Warrant
from webarcfs.archive.catalogue.tokens import Scope, Token
from webarcfs.archive.catalogue.workflow import (
    DEEDS,
    Right,
    Role,
    folded,
    in_order,
    in_row,
    rights_of,
    role_for,
    roles_with,
)
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import Busy, Forbidden, SettingsError, UsageError
from webarcfs.archive.model.metadata import format_time, now

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: The format of the file, and the first that has tokens. A file without a number is of the first.
FORMAT = 2
_TEXTS = ("name", "role", "unix", "password", "feed")
_MODE = 0o600
#: Most characters of a name, and of a login name.
LONGEST_NAME = 200
#: What no name has: control characters, ends of lines, and marks that turn the text around them.
_NOT_IN_NAMES = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class Person:
    """A person: `key` names it in the file, `unix` is the login name, `password` and `feed` are hashes; each may be
    empty. `roles` are in the order of `Role`.
    """

    key: str
    name: str
    roles: tuple[Role, ...]
    unix: str = ""
    password: str = field(default="", repr=False)
    feed: str = field(default="", repr=False)
    tokens: tuple[Token, ...] = ()

    @property
    def rights(self) -> frozenset[Right]:
        """The rights of all roles."""
        return rights_of(self.roles)

    @property
    def can_log_in(self) -> bool:
        """Whether some command, or the desk, can know the person."""
        return bool(self.unix or self.password)

    def may(self, right: Right) -> bool:
        """Return whether the person has a right."""
        return right in self.rights


@dataclass(frozen=True, slots=True)
class Acting:
    """The author of a change: a name for the catalogue, and the roles; None where the archive has no people.

    `key` is the short name in people.toml, `names` are all names of the human.
    """

    name: str
    roles: tuple[Role, ...] | None
    key: str = ""
    names: frozenset[str] = frozenset()

    @property
    def rights(self) -> frozenset[Right] | None:
        """The rights of all roles; None where everybody may do all."""
        return None if self.roles is None else rights_of(self.roles)

    def warrant(self, right: Right) -> Warrant:
        """Return what allows an act that needs a right."""
        role = None if self.roles is None else role_for(right, self.roles)
        return NO_WARRANT if role is None else Warrant(str(role), self.key)


def acting_person(persons: Mapping[str, Person], person: Person, told: str = "") -> Acting:
    """Return a person as the author of a change. `told` is the name that a login or a proxy gave."""
    return Acting(person.name, person.roles, person.key, names_of(persons.values(), (told, *_own_names(person))))


# == one human, pure ==================================================================================================


def _own_names(person: Person) -> tuple[str, ...]:
    return person.key, person.name, person.unix


def names_of(persons: Iterable[Person], names: Iterable[str]) -> frozenset[str]:
    """Return all names, folded, by which a human with these names is known.

    Entries are one human if they share a short name, a name or a login name, also by way of a third entry. A proxy
    names people by their login names, or short names. That is strict: where two humans have one name, rules that want
    two persons take them for one, until one of them gets another name.
    """
    known = {folded(name) for name in names if name}
    entries = [{folded(name) for name in _own_names(person) if name} for person in persons]
    while True:
        linked = [entry for entry in entries if not known.isdisjoint(entry)]
        if not linked:
            return frozenset(known)
        entries = [entry for entry in entries if known.isdisjoint(entry)]
        known = known.union(*linked)


def humans(persons: Collection[Person]) -> list[list[Person]]:
    """Return the persons in groups, of one human each."""
    groups: dict[frozenset[str], list[Person]] = {}
    for person in persons:
        groups.setdefault(names_of(persons, _own_names(person)), []).append(person)
    return list(groups.values())


def wants_two(settings: Settings) -> bool:
    """Return whether some publication wants another person to release a crawl than who checked it."""
    return settings.release.two_persons or any(publication.two_persons for publication in settings.publications)


def lacks_second(persons: Collection[Person]) -> str:
    """Return why nobody can release what was checked, where that takes two persons; empty where two share the work."""
    groups = [
        rights_of(role for person in group if person.can_log_in for role in person.roles) for group in humans(persons)
    ]
    able = {number for number, rights in enumerate(groups) if not rights.isdisjoint({Right.REVIEW, Right.RELEASE})}
    is_released = any(Right.RELEASE in rights for rights in groups)
    is_checked = any(Right.REVIEW in rights for rights in groups)
    if len(able) > 1 and is_released and is_checked:
        return ""
    rest = "and you are alone" if len(groups) == 1 else "and nobody else may release it"
    needed = in_row(roles_with(Right.RELEASE), "or")
    return (
        f"with two_persons, whoever checks a crawl cannot release it, {rest}. Crawls of such a publication wait until "
        f"a second person has the role {needed}, or until two_persons = false"
    )


# == refusals, pure ===================================================================================================


#: Most persons that a refusal names.
_MOST_NAMED = 5


def holders(persons: Iterable[Person], right: Right, but: str = "") -> tuple[list[str], int]:
    """Return the names of who has a right and can log in, without the person of a key; and how many more there are."""
    names = [person.name for person in persons if person.may(right) and person.can_log_in and person.key != but]
    return names[:_MOST_NAMED], len(names[_MOST_NAMED:])


def refusal(person: Person, right: Right, persons: Iterable[Person]) -> str:
    """Return why a person may not do something: the own roles, those that could, and who has one."""
    names, more = holders(persons, right, person.key)
    who = ", ".join(names) + (f" and {more} more" if more else "")
    rest = f"{who} may: ask there" if names else "nobody has it; `webarc-agent people add` gives it"
    has = in_row(person.roles, "and")
    return f"{person.name} is {has}; to {DEEDS[right]} one needs the role {in_row(roles_with(right), 'or')}; {rest}"


# == file =============================================================================================================


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
    file_format = tables.pop("format", 1)
    if type(file_format) is not int or not 1 <= file_format <= FORMAT:
        is_newer = type(file_format) is int and file_format > FORMAT
        fault = "a newer version of webarcfs wrote this file; use that" if is_newer else f"write format = {FORMAT}"
        raise SettingsError(source, [f"format: {fault}"])
    faults = [f"{key}: there is no such table" for key in tables if key != "person"]
    persons = tables.get("person", {})
    if not isinstance(persons, dict):
        raise SettingsError(source, ["person: write [person.KEY]"])
    people = {key: person for key, table in persons.items() if (person := _person(key, table, faults)) is not None}
    if file_format < FORMAT:
        faults += [f"person.{key}.token: write format = {FORMAT} above all tables" for key, person in people.items()
                   if person.tokens]  # fmt: skip
    logins = [person.unix for person in people.values() if person.unix]
    faults += [f"unix: {login} is there twice" for login in sorted(set(logins)) if logins.count(login) > 1]
    faults += _shared_tokens(people)
    if faults:
        raise SettingsError(source, faults)
    return people


def _shared_tokens(people: Mapping[str, Person]) -> Iterator[str]:
    """Yield a fault for each token that is there twice: it could not be said whose it is."""
    places: dict[str, str] = {}
    for key, person in people.items():
        for token in person.tokens:
            place = f"person.{key}.token.{token.name}"
            first = places.setdefault(token.hash, place)
            if first != place:
                yield f"{place}.hash: is that of {first} as well; remove one of them"


def _person(key: str, table: Any, faults: list[str]) -> Person | None:
    if not isinstance(table, Mapping) or not _KEY.fullmatch(key):
        faults.append(f"person.{key}: write [person.KEY]; the key has letters, digits, - and _")
        return None
    wrong = [f"person.{key}.{name}: there is no such key" for name in table if name not in (*_TEXTS, "roles", "token")]
    wrong += [f"person.{key}.{name}: is not a text" for name in _TEXTS if not isinstance(table.get(name, ""), str)]
    roles = table.get("roles", [table["role"]] if "role" in table else [])
    if "role" in table and "roles" in table:
        wrong.append(f"person.{key}.roles: role is there as well; keep one of them")
    elif not isinstance(roles, list) or not roles:
        wrong.append(f'person.{key}.roles: write roles = ["archivist"], of {", ".join(Role)}')
    elif any(role not in tuple(Role) for role in roles):  # no set: lists and tables cannot be looked for in one
        wrong.append(f"person.{key}.{'roles' if 'roles' in table else 'role'}: is none of {', '.join(Role)}")
    own_tokens = tokens.read_tokens(table.get("token", {}), f"person.{key}", wrong)
    faults += wrong
    if wrong:
        return None
    texts = {name: str(table.get(name, "")) for name in _TEXTS}
    own = in_order([Role(role) for role in roles])
    return Person(key, texts["name"] or key, own, texts["unix"], texts["password"], texts["feed"], own_tokens)


def acting(archive: Archive, right: Right) -> Acting:
    """Return the author of a change by this process. Raises Forbidden if the archive's people do not allow it.

    The message names persons to a person of the archive alone.
    """
    login = login_name()
    persons = load(archive)
    if persons is None:
        return Acting(login or "unknown", None, names=names_of((), (login,)))
    person = next((person for person in persons.values() if login and person.unix == login), None)
    if person is None:
        needed = in_row(roles_with(right), "or")
        raise Forbidden(
            f"{archive.people} has no person with the login name {login!r}; to {DEEDS[right]} one needs the role "
            f"{needed}. Who may change people adds you: webarc-agent people add KEY --role ROLE --unix "
            f"{login or 'LOGIN'}"
        )
    if not person.may(right):
        raise Forbidden(refusal(person, right, persons.values()))
    return acting_person(persons, person, login)


def login_name() -> str:
    """Return the login name of this process; empty for a user without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def checked_name(text: str, what: str) -> str:
    """Return a name without blanks around it. Raises UsageError for one that no list could show."""
    name = text.strip()
    if len(name) > LONGEST_NAME:
        raise UsageError(f"{what} has {LONGEST_NAME} characters at most")
    if bad := _NOT_IN_NAMES.search(name):
        raise UsageError(f"{what} has the character U+{ord(bad[0]):04X}, which no name may have")
    return name


def is_key(text: str) -> bool:
    """Return whether a person may have this key."""
    return _KEY.fullmatch(text) is not None


def save(archive: Archive, person: Person, by: Acting | None = None, *, is_first: bool = False) -> Person:
    """Add or change a person, and return it; who has a password keeps it, unless `person` has another.

    `by` is who asks for it, and was found to have the right; None: the person of this process. `is_first`: the caller
    found no people. Raises Busy if there are some by now, UsageError if nobody could change people then, Forbidden,
    SettingsError.
    """
    if not _KEY.fullmatch(person.key):
        raise UsageError(f"{person.key!r} is no key; it has letters, digits, - and _")
    name = checked_name(person.name, "a name") or person.key
    person = replace(person, name=name, unix=checked_name(person.unix, "a login name"), roles=in_order(person.roles))
    if not person.roles:
        raise UsageError(f"give {person.key} a role: {', '.join(Role)}")
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        known = load(archive) or {}
        if is_first and known:
            names = ", ".join(other.name for other in known.values())
            raise Busy(
                f"somebody else was faster: {names} is the first person of this archive by now; nothing was written. "
                "`webarc-agent people list` shows who may change people"
            )
        if by is None and known:
            acting(archive, Right.PEOPLE)
        before = known.get(person.key)
        if before is not None and not person.password:
            person = replace(person, password=before.password)
        _must_stay_open(known | {person.key: person})
        fields = {"name": person.name, "unix": person.unix, "password": person.password, "role": ""}
        table = document.setdefault("person", {})
        _write(table, person.key, fields)
        table[person.key]["roles"] = list(map(str, person.roles))
        _parse(document.as_string(), str(archive.people))  # a login name that is there twice would lock everybody out
    return person


def set_password(archive: Archive, key: str, password: str, by: Acting | None = None) -> None:
    """Give a person the hash of a password; an empty one takes it and the feed away. One may do so for oneself.

    `by` as in `save`. Raises UsageError without such a person, or if nobody could change people then, Forbidden.
    """
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        known = load(archive) or {}
        person = _known(known, key)
        if by is None and (not person.unix or person.unix != login_name()):
            acting(archive, Right.PEOPLE)
        _must_stay_open(known | {key: replace(person, password=password)})
        _write(document.setdefault("person", {}), key, {"password": password} | ({} if password else {"feed": ""}))


def set_feed(archive: Archive, key: str, feed: str) -> None:
    """Give a person, who asks for it, the hash of the secret of a feed; an empty one takes it away.

    Raises Forbidden where the person is not there any more, SettingsError.
    """
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        if key not in (load(archive) or {}):
            raise Forbidden(f"{archive.people} has no person {key}")
        _write(document.setdefault("person", {}), key, {"feed": feed})


# -- tokens ------------------------------------------------------------------------------------------------------------


def add_token(
    archive: Archive,
    key: str,
    name: str,
    scopes: Collection[Scope],
    *,
    expires: datetime | None = None,
    by: Acting | None = None,
) -> tuple[str, Token]:
    """Give a person a new token; return its text, which is kept nowhere, and what is kept. Those that ended go.

    One may do so for oneself, and who may change people for all. `by` as in `save`. Raises UsageError for a name,
    scopes or an end that no token has, and without such a person, Forbidden, SettingsError.
    """
    if not tokens.is_name(name):
        raise UsageError(f"{name!r} is no name of a token; it has letters, digits, - and _, such as laptop")
    made = now()
    expires = tokens.LASTS.after(made) if expires is None else expires.replace(microsecond=0)
    latest = tokens.LONGEST.after(made)
    if not made < expires <= latest:
        raise UsageError(f"a token lasts a year at most: it ends after now, and not after {format_time(latest)}")
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        person = _of_token(load(archive) or {}, archive, key, by)
        valid = [token for token in person.tokens if not token.is_over(made)]
        if any(token.name == name for token in valid):
            raise UsageError(
                f"{person.key} has a token {name} already; revoke it, `webarc-agent people token revoke {name}`, or "
                "choose another name"
            )
        if len(valid) >= tokens.MOST:
            raise UsageError(f"{person.key} has {len(valid)} tokens, which is the most; revoke some")
        _must_hold(person, scopes)
        secret = tokens.make_secret()
        token = Token(name, tokens.hash_token(secret), tokens.in_scope_order(scopes), made, expires)
        table = document["person"][key].setdefault("token", {})
        for ended in person.tokens:
            if ended not in valid:
                del table[ended.name]
        table[name] = tokens.as_table(token)
        document["format"] = FORMAT
        _parse(document.as_string(), str(archive.people))  # before it is written: a fault would lock everybody out
    return secret, token


def revoke_tokens(archive: Archive, key: str, names: Collection[str], by: Acting | None = None) -> None:
    """Revoke tokens of a person: from now on they open nothing. All of them or none. Who may is as in `add_token`."""
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        person = _of_token(load(archive) or {}, archive, key, by)
        own = [token.name for token in person.tokens]
        for name in names:
            if name not in own:
                raise UsageError(f"{key} has no token {name!r}; there are: {', '.join(own) or 'none'}")
        table = document["person"][key]
        for name in set(names):
            del table["token"][name]
        if not table["token"]:
            del table["token"]


def _of_token(known: Mapping[str, Person], archive: Archive, key: str, by: Acting | None) -> Person:
    """Return a person whose tokens this process may change. Raises UsageError, Forbidden."""
    if not known:
        raise UsageError("tokens are of persons, and there are none yet: `webarc-agent people add` adds the first one")
    person = known.get(key)
    if by is None and (person is None or not person.unix or person.unix != login_name()):
        acting(archive, Right.PEOPLE)
    return _known(known, key)


def _must_hold(person: Person, scopes: Collection[Scope]) -> None:
    """Raises UsageError without a scope, and Forbidden for one that the person has not got the right for."""
    if not scopes:
        raise UsageError(f"a token has a scope: {', '.join(Scope)}")
    for scope in tokens.in_scope_order(scopes):
        right = tokens.NEEDED[scope]
        if right is not None and not person.may(right):
            has, needed = in_row(person.roles, "and"), in_row(roles_with(right), "or")
            raise Forbidden(f"{person.name} is {has}; a token with the scope {scope} needs the role {needed}")


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
    with settings_files.changing(archive.people, archive.settings_lock, _MODE) as document:
        persons = load(archive) or {}
        _known(persons, key)
        if by is None:
            acting(archive, Right.PEOPLE)
        _must_stay_open({name: person for name, person in persons.items() if name != key})
        del document["person"][key]


def _known(persons: Mapping[str, Person], key: str) -> Person:
    """Return a person by the key. Raises UsageError."""
    person = persons.get(key)
    if person is None:
        raise UsageError(f"there is no person {key}; there are: {', '.join(persons) or 'none'}")
    return person


def _must_stay_open(persons: Mapping[str, Person]) -> None:
    if not any(person.may(Right.PEOPLE) and person.can_log_in for person in persons.values()):
        raise UsageError(
            "nobody could change people any more; there must be a person with the role administrator, and with a login "
            "name (--unix) or a password"
        )
