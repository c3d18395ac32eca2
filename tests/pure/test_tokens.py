"""Tokens, pure: their text and its check, their scopes within the rights of a person, and their tables in the file."""

from __future__ import annotations

import string
import tomllib
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.tokens import NEEDED, Scope, Token
from webarcfs.archive.catalogue.workflow import Role, rights_of
from webarcfs.archive.config import settings_files
from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.model.metadata import CET

pytestmark = pytest.mark.pure
_HASH = tokens.hash_token("a")
_MADE = datetime(2026, 12, 1, 12, tzinfo=CET)
_ALPHABET = string.ascii_letters + string.digits


# == texts ============================================================================================================


@given(st.integers(7, 55), st.sampled_from(_ALPHABET))
@settings(max_examples=examples(300))
def test_a_mistyped_token_is_none(at: int, letter: str) -> None:
    """S-token-1."""
    text = tokens.make_secret()
    assert len(text) == 56 and text.startswith("webarc_") and text.isascii() and text[7:].isalnum()
    assert tokens.is_secret(text)
    typed = text[:at] + letter + text[at + 1 :]
    assert tokens.is_secret(typed) == (typed == text)
    swapped = text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]
    assert tokens.is_secret(swapped) == (swapped == text)
    assert not tokens.is_secret(text[:at]) and not tokens.is_secret(f"{text}\n") and not tokens.is_secret(f" {text}")


@given(st.text())
@settings(max_examples=examples(300))
def test_any_other_text_is_no_token_and_has_a_hash(text: str) -> None:
    assert not tokens.is_secret(text)
    assert tokens.hash_token(text) != tokens.hash_secret("feed", text), "a secret of one kind is none of another"


def test_the_check_is_the_crc_of_what_stands_before_it() -> None:
    """Other programs check a token by what the documents say."""
    assert tokens.is_secret("webarc_" + "0" * 43 + _base_62(_crc("webarc_" + "0" * 43)))
    assert len({tokens.make_secret() for _ in range(1000)}) == 1000


def _crc(text: str) -> int:
    """CRC-32 (ISO 3309) bit by bit, as its definition has it."""
    value = 0xFFFFFFFF
    for byte in text.encode():
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def _base_62(number: int) -> str:
    letters = string.digits + string.ascii_uppercase + string.ascii_lowercase
    return "".join(letters[number // 62**place % 62] for place in reversed(range(6)))


# == scopes ===========================================================================================================


@given(st.sets(st.sampled_from(Scope)), st.sets(st.sampled_from(Role)), st.sets(st.sampled_from(Role)))
@settings(max_examples=examples(300))
def test_a_scope_gives_no_right_and_a_role_gives_no_scope(
    scopes: set[Scope], roles: set[Role], more: set[Role]
) -> None:
    """S-token-2."""
    held = tokens.within(scopes, rights_of(roles))
    assert held <= scopes
    assert held == {scope for scope in scopes if NEEDED[scope] is None or NEEDED[scope] in rights_of(roles)}
    assert held <= tokens.within(scopes, rights_of(roles | more)), "another role takes nothing away"
    assert (Scope.READ in held) == (Scope.READ in scopes)


def test_what_each_scope_needs() -> None:
    """S-token-2: what a role may do with all scopes."""
    may = {role: set(tokens.within(Scope, rights_of([role]))) for role in Role}
    assert may == {
        Role.ARCHIVIST: {Scope.READ, Scope.CAPTURE},
        Role.ADMINISTRATOR: {Scope.READ, Scope.MIRROR},
        Role.REVIEWER: {Scope.READ},
        Role.CURATOR: set(Scope),
    }
    assert NEEDED.keys() == set(Scope)


# == the file =========================================================================================================


def _table(**values: Any) -> dict[str, Any]:
    return {"hash": _HASH, "scopes": ["read"], "made": _MADE, "expires": _MADE + timedelta(90), **values}


def _file(own: Any, *, file_format: Any = 2, other: Any = None) -> str:
    persons = {"anna": {"roles": ["archivist"], "token": own}}
    persons |= {} if other is None else {"ben": {"roles": ["archivist"], "token": other}}
    head = {} if file_format is None else {"format": file_format}
    return settings_files.text_of({**head, "person": persons})


def _faults(text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        people._parse(text, "people.toml")
    return list(caught.value.faults)


_SCOPES = st.lists(st.sampled_from(Scope), min_size=1, unique=True)
_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True)
_TIMES = st.datetimes(datetime(1970, 1, 1), datetime(8999, 12, 30)).map(
    lambda time: time.replace(microsecond=0, tzinfo=CET)
)


@st.composite
def _tokens(draw: st.DrawFn) -> list[Token]:
    names = draw(st.lists(_NAMES, unique=True, max_size=4))
    made = [draw(_TIMES) for _ in names]
    return [
        Token(name, tokens.hash_token(tokens.make_secret()), tokens.in_scope_order(draw(_SCOPES)), time,
              time + timedelta(seconds=draw(st.integers(1, 365 * 86_400))))
        for name, time in zip(names, made, strict=True)
    ]  # fmt: skip


@given(_tokens())
@settings(max_examples=examples(200))
def test_what_is_written_is_read(own: list[Token]) -> None:
    """S-token-3."""
    text = _file({token.name: tokens.as_table(token) for token in own})
    assert people._parse(text, "people.toml")["anna"].tokens == tuple(own)


_VALUES = st.recursive(
    st.none().filter(bool) | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=5)
    | st.sampled_from([_HASH, *Scope]) | st.datetimes() | st.dates() | st.times(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_TABLES = st.dictionaries(
    st.sampled_from(("hash", "scopes", "made", "expires")) | st.text(max_size=8), _VALUES, max_size=6
)


@given(_VALUES | st.dictionaries(st.sampled_from(["laptop"]) | st.text(max_size=8), _TABLES | _VALUES, max_size=3))
@settings(max_examples=examples(1000))
def test_whatever_stands_below_a_person_is_read_or_a_fault_in_words(own: Any) -> None:
    """S-token-3: never an error of another kind, never a token that the rules do not have."""
    faults: list[str] = []
    for token in tokens.read_tokens(own, "person.anna", faults):
        assert tokens.is_name(token.name) and token.scopes and token.made < token.expires
        assert token.expires - token.made <= timedelta(366)
    assert all(fault.startswith("person.anna.token") and fault.isprintable() for fault in faults)
    assert all(len(fault) < 300 for fault in faults)


@pytest.mark.parametrize(("values", "fault"), [
    ({"scopes": []}, '.scopes: write scopes = ["read"], of read, add, capture, mirror'),
    ({"scopes": "read"}, '.scopes: write scopes = ["read"], of read, add, capture, mirror'),
    ({"scopes": ["read", "write"]}, ".scopes: 'write' is none of read, add, capture, mirror"),
    ({"scopes": ["read", ["add"]]}, ".scopes: ['add'] is none of read, add, capture, mirror"),
    ({"scopes": ["read", "add", "read"]}, ".scopes: read is there twice"),
    ({"scopes": ["a\nb" + "x" * 99]}, ".scopes: 'a\\nb" + "x" * 35 + "… is none of read, add, capture, mirror"),
    ({"hash": "webarc_secret"}, ".hash: is no SHA-256 as `webarc-agent people token make` writes it"),
    ({"hash": _HASH.upper()}, ".hash: is no SHA-256 as `webarc-agent people token make` writes it"),
    ({"secret": "x"}, ".'secret': there is no such key"),
    ({"made": "2026-12-01"}, ".made: write a time, such as 2026-12-01T12:00:00+01:00"),
    ({"expires": _MADE}, ".expires: is to be after `made`, by a year at most"),
    ({"expires": _MADE + timedelta(366)}, ".expires: is to be after `made`, by a year at most"),
])  # fmt: skip
def test_a_fault_names_the_token_and_what_to_write(values: dict[str, Any], fault: str) -> None:
    """S-token-3."""
    assert _faults(_file({"laptop": _table(**values)})) == [f"person.anna.token.laptop{fault}"]


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "\u4f8b", "x" * 65, "a\nb", "\u202e"])
def test_a_hostile_name_is_a_fault(name: str) -> None:
    """S-token-3."""
    (fault,) = _faults(_file({name: _table()}))
    assert fault.endswith("the name of a token has letters, digits, - and _") and fault.isascii() | ("…" in fault)
    assert fault.isprintable()


def test_a_token_that_two_persons_have_is_a_fault() -> None:
    """S-token-3: nobody could say whose it is."""
    own = {"laptop": _table()}
    assert _faults(_file(own, other={"desktop": _table()})) == [
        "person.ben.token.desktop.hash: is that of person.anna.token.laptop as well; remove one of them"
    ]
    assert _faults(_file({**own, "second": _table()})) == [
        "person.anna.token.second.hash: is that of person.anna.token.laptop as well; remove one of them"
    ]
    twice = _file(own) + '\n[person.anna.token.laptop]\nhash = "x"\n'
    assert "twice" in _faults(twice)[0]


def test_the_format_of_the_file() -> None:
    """S-token-4: files of before are read, and have no tokens; newer ones are refused as a whole."""
    own = {"laptop": _table()}
    assert people._parse('[person.anna]\nrole = "reviewer"\n', "") == {"anna": Person("anna", "anna", (Role.REVIEWER,))}
    for file_format in (None, 1):
        assert _faults(_file(own, file_format=file_format)) == ["person.anna.token: write format = 2 above all tables"]
        assert people._parse(_file({}, file_format=file_format), "")["anna"].tokens == ()
    newer = "format = 3\n[person.anna]\nwhatever = 1\n"
    assert _faults(newer) == ["format: a newer version of webarcfs wrote this file; use that"]
    for wrong in (0, -1, True, "2", 2.0, [2]):
        assert _faults(_file(own, file_format=wrong)) == ["format: write format = 2"]


def test_a_time_without_a_zone_is_cet_and_no_secret_is_in_a_message() -> None:
    text = _file({"laptop": _table()}).replace("+01:00", "")
    (token,) = people._parse(text, "")["anna"].tokens
    assert (token.made, token.expires) == (_MADE, _MADE + timedelta(90))
    assert not token.is_over(token.expires - timedelta(seconds=1)) and token.is_over(token.expires)
    assert _HASH not in repr(token) and _HASH not in repr(people._parse(text, ""))
    assert tomllib.loads(text)["person"]["anna"]["token"]["laptop"]["hash"] == _HASH
