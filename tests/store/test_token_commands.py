"""`webarc-agent people token`: a token is printed once, listed without its secret, and revoked."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawls import Done, run_command
from tests.support.mounts import SCRIPTS
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import format_time, now

pytestmark = pytest.mark.store


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    own = directory.create(tmp_path / "archive")
    own.people.write_text(
        '[person.anna]\nroles = ["administrator"]\nunix = "anna"\n'
        '[person.carl]\nname = "Carl"\nroles = ["curator"]\nunix = "carl"\n'
        '[person.harvester]\nroles = ["curator"]\n'
    )
    return own


def run(archive: Archive, *words: str, login: str = "anna", stdin: str = "") -> Done:
    return run_command("people", *words, "--archive", archive.root, stdin=stdin, LOGNAME=login)


def listed(archive: Archive, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(archive, "token", "list", *words, "--format", "jsonl").out.splitlines()]


def token_of(archive: Archive, key: str) -> tokens.Token:
    (own,) = (people.load(archive) or {})[key].tokens
    return own


def test_a_token_is_printed_once_and_alone(archive: Archive) -> None:
    """S-token-1: standard output is the token, and nothing else has it."""
    done = run(archive, "token", "make", "laptop", login="carl")
    assert done.code == 0, done.err
    secret = done.out.strip()
    assert done.out == f"{secret}\n" and tokens.is_secret(secret)
    assert secret not in done.err and "may read until" in done.err and "not shown again" in done.err
    own = token_of(archive, "carl")
    assert own.hash == tokens.hash_token(secret) and own.scopes == (tokens.Scope.READ,)
    assert own.expires - own.made == timedelta(90)
    for words in (("token", "list"), ("token", "list", "--json"), ("list",), ("list", "--json")):
        printed = run(archive, *words)
        assert printed.code == 0 and secret[7:] not in printed.out + printed.err and own.hash[7:] not in printed.out
    for path in archive.root.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


def test_tokens_are_made_with_scopes_and_an_end_listed_and_revoked(archive: Archive) -> None:
    made = run(
        archive, "token", "make", "analysis", "--scope", "add", "--scope", "read", "--expires", "30 days", "--json",
        login="carl",
    )  # fmt: skip
    sums = json.loads(made.out)
    assert made.code == 0 and tokens.is_secret(sums["token"])
    assert (sums["person"], sums["name"], sums["scopes"]) == ("carl", "analysis", ["read", "add"])
    day = f"{now() + timedelta(40):%Y-%m-%d}"
    assert (
        run(archive, "token", "make", "night", "--person", "harvester", "--scope", "mirror", "--expires", day).code == 0
    )
    assert token_of(archive, "harvester").expires == token_of(archive, "harvester").expires.replace(
        hour=23, minute=59, second=59
    )
    rows = listed(archive)
    assert [(row["person"], row["name"], row["scopes"], row["may"], row["ended"]) for row in rows] == [
        ("carl", "analysis", ["read", "add"], ["read", "add"], False),
        ("harvester", "night", ["mirror"], ["mirror"], False),
    ]
    assert rows[0]["expires"] == sums["expires"] == format_time(token_of(archive, "carl").expires)
    assert [row["name"] for row in listed(archive, "--person", "harvester")] == ["night"]
    assert (
        run_command("people", "add", "carl", "--role", "reviewer", "--archive", archive.root, LOGNAME="anna").code == 0
    )
    assert listed(archive, "--person", "carl")[0]["may"] == ["read"]
    assert "(not add: the roles do not allow it)" in run(archive, "token", "list").out
    done = run(archive, "token", "revoke", "analysis", login="carl")
    assert done.code == 0 and done.out == "revoked of carl: analysis\n"
    assert [row["name"] for row in listed(archive)] == ["night"]
    assert run(archive, "token", "revoke", "night", "--person", "harvester").code == 0
    assert listed(archive) == []


@pytest.mark.parametrize(("words", "login", "code", "message"), [
    (("make", "laptop", "--person", "anna"), "carl", 2, "to change people one needs the role administrator"),
    (("revoke", "laptop", "--person", "anna"), "carl", 2, "to change people one needs the role administrator"),
    (("make", "laptop"), "mallory", 1, "no person has the login name 'mallory': give --person KEY; there are: anna"),
    (("make", "laptop", "--person", "anna"), "mallory", 2, "no person with the login name 'mallory'"),
    (("make", "a b"), "carl", 1, "is no name of a token"),
    (("make", "x", "--scope", "all"), "carl", 1, "all"),
    (("make", "x", "--scope", "add"), "anna", 2, "a token with the scope add needs the role curator"),
    (("make", "x", "--expires", "2 years"), "carl", 1, "a token lasts a year at most"),
    (("make", "x", "--expires", "2020-01-01"), "carl", 1, "a token lasts a year at most"),
    (("make", "x", "--expires", "soon"), "carl", 1, "--expires 'soon': write an interval such as '30 days'"),
    (("make", "x", "--expires", "99999999 days"), "carl", 1, "write an interval such as '30 days', or a day"),
    (("make", "x", "--expires", "2027-01-01T00:00:00@a.b"), "carl", 1, "write an interval such as '30 days'"),
    (("make",), "carl", 1, "NAME"),
    (("revoke", "x"), "carl", 1, "carl has no token 'x'; there are: none"),
    (("list", "--person", "x"), "carl", 2, "there is no person x; there are: anna, carl, harvester"),
])  # fmt: skip
def test_what_is_refused_says_what_to_do(
    archive: Archive, words: tuple[str, ...], login: str, code: int, message: str
) -> None:
    """S-token-5."""
    before = archive.people.read_bytes()
    done = run(archive, "token", *words, login=login)
    assert done.code == code and message in done.err and done.out == ""
    assert archive.people.read_bytes() == before


def test_a_token_that_could_not_be_printed_is_none(archive: Archive) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [SCRIPTS / "webarc-agent", "people", "token", "make", "laptop", "--archive", archive.root],
            env={**os.environ, "LOGNAME": "carl"}, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2 and "No space left on device" in done.stderr and "webarc_" not in done.stderr
    assert listed(archive) == []


def test_another_password_says_which_tokens_stay(archive: Archive) -> None:
    """S-token-6."""
    assert run(archive, "token", "make", "laptop", login="carl").code == 0
    done = run(archive, "password", "carl", stdin="a long password\n")
    assert done.code == 0 and "people token revoke laptop --person carl" in done.err
    assert token_of(archive, "carl").name == "laptop"
