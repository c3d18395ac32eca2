"""Tokens in people.toml: they are made, revoked, and end with their person; what people wrote there stays."""

from __future__ import annotations

import multiprocessing
import os
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.catalogue.people import Acting, Person
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import Role
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Forbidden, SettingsError, UsageError
from webarcfs.archive.model.metadata import now

pytestmark = pytest.mark.store
_TEXT = """# who works here
[person.anna] # since 2020
name = "Anna"
role = "curator"
unix = "anna"

# the boss
[person.adam]
role = "administrator"
unix = "adam"

[person.ben]
roles = ["reviewer"]
unix = "ben"
"""
_BY = Acting("Adam", (Role.ADMINISTRATOR,), "adam")
_READ = [Scope.READ]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    own = directory.create(tmp_path / "archive")
    own.people.write_text(_TEXT)
    return own


def as_login(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LOGNAME", name)


def persons(archive: Archive) -> dict[str, Person]:
    return people.load(archive) or {}


def test_a_token_is_made_and_the_file_has_its_hash_alone(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-token-1, S-token-4."""
    as_login(monkeypatch, "anna")
    secret, token = people.add_token(archive, "anna", "laptop", [Scope.ADD, Scope.READ, Scope.ADD])
    assert tokens.is_secret(secret) and token.hash == tokens.hash_token(secret)
    assert token.scopes == (Scope.READ, Scope.ADD)
    assert token.expires - token.made == timedelta(90)
    assert persons(archive)["anna"].tokens == (token,)
    text = archive.people.read_text()
    assert secret[7:] not in text and token.hash in text and "\nformat = 2\n" in text
    assert stat.S_IMODE(archive.people.stat().st_mode) == 0o600
    for line in _TEXT.splitlines():
        assert line in text
    second, _ = people.add_token(archive, "anna", "other", _READ, expires=tokens.LONGEST.after(now()))
    assert second != secret and [own.name for own in persons(archive)["anna"].tokens] == ["laptop", "other"]
    people.revoke_tokens(archive, "anna", ["laptop", "laptop"])
    assert [own.name for own in persons(archive)["anna"].tokens] == ["other"]
    people.revoke_tokens(archive, "anna", ["other"])
    assert "token" not in archive.people.read_text()


def test_who_may_make_and_revoke_tokens(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-token-5: everybody their own, who may change people all."""
    as_login(monkeypatch, "anna")
    people.add_token(archive, "anna", "laptop", _READ)
    with pytest.raises(Forbidden, match="to change people one needs the role administrator"):
        people.add_token(archive, "ben", "laptop", _READ)
    as_login(monkeypatch, "mallory")
    for change in (
        lambda: people.add_token(archive, "anna", "x", _READ),
        lambda: people.revoke_tokens(archive, "anna", ["laptop"]),
        lambda: people.revoke_tokens(archive, "nobody", ["laptop"]),
    ):
        with pytest.raises(Forbidden, match="no person with the login name 'mallory'"):
            change()
    as_login(monkeypatch, "adam")
    people.add_token(archive, "ben", "laptop", _READ)
    people.revoke_tokens(archive, "anna", ["laptop"])
    as_login(monkeypatch, "mallory")
    people.add_token(archive, "ben", "desk", _READ, by=_BY)
    assert [own.name for own in persons(archive)["ben"].tokens] == ["laptop", "desk"]
    with pytest.raises(UsageError, match="there is no person carl; there are: anna, adam, ben"):
        people.add_token(archive, "carl", "desk", _READ, by=_BY)


def test_a_scope_that_the_roles_do_not_allow_is_refused_when_a_token_is_made(archive: Archive) -> None:
    """S-token-2."""
    with pytest.raises(Forbidden, match="ben is reviewer; a token with the scope add needs the role curator"):
        people.add_token(archive, "ben", "x", [Scope.READ, Scope.ADD], by=_BY)
    with pytest.raises(Forbidden, match="the scope mirror needs the role administrator or curator"):
        people.add_token(archive, "ben", "x", [Scope.MIRROR], by=_BY)
    with pytest.raises(UsageError, match="a token has a scope: read, add, capture, mirror"):
        people.add_token(archive, "ben", "x", [], by=_BY)
    assert archive.people.read_text() == _TEXT


@pytest.mark.parametrize("name", ["", "a b", "../x", "a\0b", "\u4f8b", "x" * 65, "a.b", "[x]", "\ud800"])
def test_a_name_that_no_token_has_is_refused(archive: Archive, name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits, - and _, such as laptop"):
        people.add_token(archive, "ben", name, _READ, by=_BY)
    with pytest.raises(UsageError, match="ben has no token"):
        people.revoke_tokens(archive, "ben", [name], by=_BY)
    assert archive.people.read_text() == _TEXT


def test_an_end_in_the_past_or_after_more_than_a_year_is_refused(archive: Archive) -> None:
    """S-token-3."""
    for expires in (now() - timedelta(days=1), now() - timedelta(seconds=1), now() + timedelta(400)):
        with pytest.raises(UsageError, match="a token lasts a year at most"):
            people.add_token(archive, "ben", "x", _READ, expires=expires, by=_BY)


def test_names_are_there_once_and_those_of_tokens_that_ended_are_free(archive: Archive) -> None:
    people.add_token(archive, "ben", "laptop", _READ, expires=now() + timedelta(days=1), by=_BY)
    with pytest.raises(UsageError, match="ben has a token laptop already; revoke it"):
        people.add_token(archive, "ben", "laptop", _READ, by=_BY)
    text = archive.people.read_text()
    (token,) = persons(archive)["ben"].tokens
    for time in (token.made, token.expires):
        text = text.replace(time.isoformat(), (time - timedelta(30)).isoformat())
    archive.people.write_text(text)
    people.add_token(archive, "ben", "other", _READ, by=_BY)
    assert [own.name for own in persons(archive)["ben"].tokens] == ["other"], "what ended goes"
    people.add_token(archive, "ben", "laptop", _READ, by=_BY)


def test_a_person_has_so_many_tokens_at_most(archive: Archive) -> None:
    for number in range(tokens.MOST):
        people.add_token(archive, "ben", f"t{number}", _READ, by=_BY)
    with pytest.raises(UsageError, match="ben has 50 tokens, which is the most; revoke some"):
        people.add_token(archive, "ben", "more", _READ, by=_BY)
    people.add_token(archive, "anna", "laptop", _READ, by=_BY)


def test_tokens_end_with_their_person_and_stay_when_the_person_is_changed(archive: Archive) -> None:
    """S-token-6."""
    _, token = people.add_token(archive, "ben", "laptop", _READ, by=_BY)
    people.save(archive, Person("ben", "Ben B", (Role.ARCHIVIST,), "ben2"), _BY)
    people.set_password(archive, "ben", "hash", _BY)
    people.set_password(archive, "ben", "", _BY)
    people.set_feed(archive, "ben", "sha256:x")
    assert persons(archive)["ben"].tokens == (token,)
    with pytest.raises(UsageError, match="ben has no token 'desk'; there are: laptop"):
        people.revoke_tokens(archive, "ben", ["laptop", "desk"], by=_BY)
    assert persons(archive)["ben"].tokens == (token,), "all of them or none"
    people.remove(archive, "ben", _BY)
    assert token.hash not in archive.people.read_text()
    people.save(archive, Person("ben", "Ben", (Role.ARCHIVIST,), "ben"), _BY)
    assert persons(archive)["ben"].tokens == ()


def test_an_archive_without_people_has_no_tokens(archive: Archive) -> None:
    archive.people.unlink()
    with pytest.raises(UsageError, match="tokens are of persons, and there are none yet"):
        people.add_token(archive, "anna", "laptop", _READ)
    assert not archive.people.exists()


def test_a_file_with_faults_is_not_written(archive: Archive) -> None:
    archive.people.write_text(_TEXT + '[person.ben.token.x]\nscopes = ["all"]\n')
    before = archive.people.read_bytes()
    with pytest.raises(SettingsError, match="'all' is none of read, add, capture, mirror"):
        people.add_token(archive, "anna", "laptop", _READ, by=_BY)
    with pytest.raises(SettingsError):
        people.revoke_tokens(archive, "ben", ["x"], by=_BY)
    assert archive.people.read_bytes() == before


_KEYS = ("anna", "adam", "ben")
_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "revoke", "save", "feed", "remove")), st.sampled_from(_KEYS),
        st.sampled_from(("a", "b-1", "c")),
    ),
    max_size=12,
)  # fmt: skip


@given(_OPERATIONS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_changed_the_file_has_what_was_done(
    archive: Archive, operations: list[tuple[str, str, str]]
) -> None:
    """The tables of a person may stand apart, and have comments between them."""
    archive.people.write_text(_TEXT)
    has: dict[str, dict[str, Any]] = {key: {} for key in _KEYS}
    for word, key, name in operations:
        try:
            if word == "add":
                _, token = people.add_token(archive, key, name, _READ, by=_BY)
                has[key][name] = token
            elif word == "revoke":
                people.revoke_tokens(archive, key, [name], by=_BY)
                del has[key][name]
            elif word == "save":
                people.save(archive, Person(key, name, (Role.ADMINISTRATOR,), key), _BY)
                has.setdefault(key, {})
            elif word == "feed":
                people.set_feed(archive, key, "sha256:x")
            else:
                people.remove(archive, key, _BY)
                del has[key]
        except (UsageError, Forbidden):
            continue
    known = persons(archive)
    assert {key: {own.name: own for own in person.tokens} for key, person in known.items()} == has
    assert "# who works here" in archive.people.read_text()


def _make(root: str, number: int) -> None:
    own = directory.open_archive(Path(root))
    for turn in range(5):
        people.add_token(own, "ben", f"p{number}-{turn}", _READ, by=_BY)
    os._exit(0)


def test_two_processes_at_once_lose_no_token(archive: Archive) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_make, args=(str(archive.root), number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(persons(archive)["ben"].tokens) == 15
