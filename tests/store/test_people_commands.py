"""`webarc-agent people`: one person can run an archive, roles add up, two first persons at once, hostile names."""

from __future__ import annotations

import json
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawls import Done, run_command, running_command
from tests.support.histories import DOMAIN, History, Step
from tests.support.recorded import published
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.workflow import DEEDS, Right, Role
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Busy, Forbidden, UsageError

pytestmark = pytest.mark.store


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return directory.create(tmp_path / "archive")


def run(archive: Archive, *words: str, login: str = "anna", stdin: str = "") -> Done:
    return run_command(*words, "--archive", archive.root, stdin=stdin, LOGNAME=login)


def table(archive: Archive) -> dict[str, Any]:
    return tomllib.loads(archive.people.read_text())["person"]


def listed(archive: Archive, *words: str) -> list[dict[str, Any]]:
    """The rows that a command lists."""
    return [json.loads(line) for line in run(archive, *words, "--format", "jsonl").out.splitlines()]


def test_the_first_person_has_all_roles_and_runs_the_archive_alone(archive: Archive) -> None:
    """S-people-2."""
    published(archive, History([Step("p", {"a": "1"}, RecordState.COUNTED, held=True), Step("p", {"a": "2"})]))
    done = run(archive, "people", "add", "anna", "--name", "Anna \u4f8b")
    assert done.code == 0, done.err
    assert "archivist, administrator, reviewer, curator; login name anna" in done.out
    assert "the first person has all roles" in done.out and DEEDS[Right.RELEASE] in done.out
    assert table(archive)["anna"]["roles"] == [*Role]
    for words in (
        ("record", "release", "1"),
        ("record", "withdraw", "1", "--reason", "why"),
        ("record", "edit", "1", "remarks=checked by one person"),
        ("withhold", f"http://{DOMAIN}/a", "--reason", "court"),
        ("publication", "add", "q", "http://e.example/"),
        ("register", "set", "pdf", "--made-by", "x"),
        ("people", "add", "ben", "--role", "archivist"),
    ):
        done = run(archive, *words)
        assert done.code == 0, (words, done.err)
    record, _ = Catalogue(archive).read("20200101T000000-p")
    roles = {event.what: event.warrant.role for event in record.events if event.by == "Anna \u4f8b"}
    assert roles == {"released": "archivist", "withdrawn": "archivist", "edited": "archivist"}
    assert [row["role"] for row in listed(archive, "record", "log", "1")[:3]] == ["archivist"] * 3


def test_a_colleague_may_release_and_not_change_publications_by_one_command(archive: Archive) -> None:
    published(archive, History([Step("p", {"a": "1"}, RecordState.COUNTED, held=True)]))
    assert run(archive, "people", "add", "anna").code == 0
    added = run(
        archive, "people", "add", "ben", "--name", "Ben", "--role", "archivist", "--unix", "ben", "--password",
        stdin="a long password\n",
    )  # fmt: skip
    assert added.code == 0, added.err
    assert table(archive)["ben"]["password"].startswith("$argon2id$") and "a long password" not in added.out + added.err
    assert run(archive, "record", "release", "1", login="ben").code == 0
    refused = run(archive, "publication", "add", "q", "http://e.example/", login="ben")
    assert refused.code != 0
    assert (
        "Ben is archivist; to change publications and registers one needs the role administrator or curator; "
        "anna may: ask there"
    ) in refused.err
    stranger = run(archive, "record", "withdraw", "1", "--reason", "x", login="mallory")
    assert stranger.code != 0 and "the role archivist or curator" in stranger.err
    assert "Ben" not in stranger.err and "anna" not in stranger.err.replace(str(archive.root), "")


def test_what_is_left_out_stays_and_roles_are_given_again(archive: Archive) -> None:
    assert run(archive, "people", "add", "anna").code == 0
    assert run(archive, "people", "add", "ben", "--name", "Ben", "--role", "reviewer", "--unix", "ben").code == 0
    more = run(archive, "people", "add", "ben", "--role", "administrator", "--role", "archivist")
    assert more.code == 0 and table(archive)["ben"] == {
        "name": "Ben",
        "unix": "ben",
        "roles": ["archivist", "administrator"],
    }
    assert run(archive, "people", "add", "ben", "--unix", "").code == 0
    assert table(archive)["ben"] == {"name": "Ben", "roles": ["archivist", "administrator"]}
    for words, message in (
        (("ben2",), "give ben2 a role"),
        (("ben", "--all", "--role", "curator"), "leave out --role, or --all"),
        (("ben", "--role", "king"), "king"),
        (("be n", "--all"), "is no key"),
    ):
        refused = run(archive, "people", "add", *words)
        assert refused.code != 0 and message in refused.err, words
    assert run(archive, "people", "add", "ben", "--all").code == 0 and table(archive)["ben"]["roles"] == [*Role]
    rows = listed(archive, "people", "list")
    assert [(row["key"], row["roles"], row["password"]) for row in rows] == [
        ("anna", [*Role], False), ("ben", [*Role], False)]  # fmt: skip


def test_a_role_of_an_older_program_is_read_and_rewritten(archive: Archive) -> None:
    """S-people-1."""
    archive.people.write_text('# ours\n[person.anna]\nrole = "administrator" # she is\nunix = "anna"\n')
    assert (people.load(archive) or {})["anna"].roles == (Role.ADMINISTRATOR,)
    assert run(archive, "people", "add", "anna", "--role", "administrator", "--role", "archivist").code == 0
    assert table(archive)["anna"] == {"name": "anna", "unix": "anna", "roles": ["archivist", "administrator"]}
    assert archive.people.read_text().startswith("# ours\n")


def test_the_first_person_who_could_change_nobody_is_refused(archive: Archive) -> None:
    refused = run(archive, "people", "add", "anna", "--role", "archivist")
    assert refused.code != 0 and "nobody could change people any more" in refused.err and not archive.people.exists()
    nobody = run(archive, "people", "add", "anna", "--unix", "")
    assert nobody.code != 0 and "a login name (--unix) or a password" in nobody.err


def test_an_empty_file_of_people_locks_nobody_out(archive: Archive) -> None:
    archive.people.write_text("# nobody yet\n")
    assert run(archive, "record", "list").code == 0
    assert run(archive, "people", "add", "anna").code == 0
    assert table(archive)["anna"]["roles"] == [*Role]


def test_of_two_first_persons_at_once_one_is_first(archive: Archive) -> None:
    """S-people-2."""
    keys = [f"p{number}" for number in range(6)]
    with ExitStack() as stack:
        words = ("--archive", archive.root)
        processes = [stack.enter_context(running_command("people", "add", key, *words, LOGNAME=key)) for key in keys]
        ended = [(process, *process.communicate()) for process in processes]
    won = [out for process, out, _ in ended if process.returncode == 0]
    assert len(won) == 1 and len(table(archive)) == 1
    (first,) = table(archive)
    for process, _, err in ended:
        if process.returncode:
            assert "somebody else was faster" in err or "no person with the login name" in err
            assert "Traceback" not in err
    assert run(archive, "people", "add", "other", "--role", "reviewer", login=first).code == 0, "the first one may"


def test_who_found_no_people_and_comes_second_is_told_who_was_first(archive: Archive) -> None:
    people.save(archive, Person("anna", "Anna \u4f8b", tuple(Role), "anna"), is_first=True)
    before = archive.people.read_text()
    with pytest.raises(Busy, match="Anna \u4f8b is the first person"):
        people.save(archive, Person("ben", "Ben", tuple(Role), "ben"), is_first=True)
    assert archive.people.read_text() == before


def test_who_lost_the_right_meanwhile_saves_nothing(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    people.save(archive, Person("anna", "Anna", tuple(Role), "anna"), is_first=True)
    monkeypatch.setenv("LOGNAME", "ben")
    for change in (
        lambda: people.save(archive, Person("ben", "Ben", tuple(Role), "ben")),
        lambda: people.set_password(archive, "anna", "hash"),
        lambda: people.remove(archive, "anna"),
    ):
        with pytest.raises(Forbidden):
            change()
    monkeypatch.setenv("LOGNAME", "anna")
    with pytest.raises(UsageError, match="there is no person ben"):
        people.remove(archive, "ben")


def test_people_add_says_what_one_person_cannot_do_with_two_persons(archive: Archive) -> None:
    """S-people-5."""
    archive.settings.write_text("two_persons = true\n")
    alone = run(archive, "people", "add", "anna")
    assert alone.code == 0 and "whoever checks a crawl cannot release it, and you are alone" in alone.err
    twin = run(archive, "people", "add", "anna-desk", "--name", "anna", "--all", "--unix", "anna2")
    assert "you are alone" in twin.err, "another entry of the same human is nobody else"
    ben = run(archive, "people", "add", "ben", "--role", "reviewer", "--unix", "ben")
    assert ben.code == 0 and "cannot release it" not in ben.err
    gone = run(archive, "people", "remove", "ben")
    assert gone.code == 0 and "you are alone" in gone.err
    archive.settings.write_text("two_persons = false\n")
    assert "alone" not in run(archive, "people", "add", "anna", "--name", "Anna").err


@pytest.mark.parametrize(
    "name",
    [
        "\u05e2\u05e8\u05d1 \u05d1\u05e8",
        "\u4f8b\u5b50",
        "\u0639\u0644\u06cc",
        'O\'Neil "x" <b>',
        "[red]Anna[/red]",
        'a"""b\\',
    ],
)
def test_names_in_every_script_come_back_as_they_were(archive: Archive, name: str) -> None:
    assert run(archive, "people", "add", "anna", "--name", name).code == 0
    assert table(archive)["anna"]["name"] == name
    assert listed(archive, "people", "list")[0]["name"] == name
    assert name in run(archive, "people", "list").out


@pytest.mark.parametrize("name", ["a\nb", "a\u202eb", "x" * 10_000, "\x1b[31m", "a\udcffb"])
def test_a_hostile_name_is_a_clear_error_and_writes_nothing(archive: Archive, name: str) -> None:
    for option in ("--name", "--unix"):
        refused = run(archive, "people", "add", "anna", option, name)
        assert refused.code != 0 and ("200 characters" in refused.err or "which no name may have" in refused.err)
        assert not archive.people.exists()
