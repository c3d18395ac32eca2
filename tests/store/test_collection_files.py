"""Files of collections: read within bounds, changed with their comments, copied by backups; and their commands."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from agent.cli import cli as agent_cli
from agent.indexing.recovery import recover
from agent.maintenance.backups import backup, restore
from tests.room.test_collections import PNG, collection, day, record_id
from tests.support import archives
from tests.support.rooms import Page, published
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import Role
from webarcfs.archive.config import collection_files
from webarcfs.archive.config.collection_files import (
    LARGEST_FILE,
    MOST_COLLECTIONS,
    CollectionFiles,
    load_collections,
    parse_collection,
    picture_type,
)
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import SettingsError
from webarcfs.room.server.checks import _collections

pytestmark = pytest.mark.store


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = archives.make_archive(tmp_path)
    for number in range(2):
        published(
            archive, "a.example.org", {"http://a.example.org/": Page(b"%d" % number)}, day(number), publication="a"
        )
    recover(archive)
    return archive


def run(archive: Archive, *arguments: str) -> Result:
    return CliRunner().invoke(agent_cli, ["collection", arguments[0], *arguments[1:], "--archive", str(archive.root)])


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["title: is missing"]),
        ("title = 7", ["title: 7 is not a line of text"]),
        ('title = "a\\nb"', ["is not a line of text"]),
        (f'title = "{"x" * 201}"', ["200 letters at most"]),
        (f'title = "a"\ntext = "{"x" * 20_001}"', ["20,000 letters at most"]),
        ('title = "a"\ntext = "\\u0000"', ["it is no text"]),
        ('title = "a"\npublication = ["a"]', ["did you mean publications?"]),
        ('title = "a"\npublications = ["../a"]', ["is no name"]),
        ('title = "a"\ncrawls = ["a/b"]', ["is no record"]),
        ('title = "a"\npicture = "../a.png"', ["is no name of a file"]),
        ('title = "a"\npicture = ".a.png"', ["is no name of a file"]),
        ('title = "a"\n[de]\nnames = 1', ["there is no such setting"]),
        ("title = ", ["not TOML"]),
        (f'title = "a"\npublications = {json.dumps([f"p{at}" for at in range(1_001)])}', ["1,000 can be named"]),
        (f'title = "a"\ncrawls = {json.dumps([f"c{at}" for at in range(10_001)])}', ["10,000 can be named at most"]),
        ('title = 1\ntext = 2\npicture = 3\n', ["title", "text", "picture"]),
    ],
)  # fmt: skip
def test_faults_are_told_all_at_once(text: str, faults: list[str]) -> None:
    with pytest.raises(SettingsError) as error:
        parse_collection("c", text)
    assert all(fault in str(error.value) for fault in faults), str(error.value)


@given(st.text(max_size=300))
def test_any_text_is_a_collection_or_faults(text: str) -> None:
    try:
        assert parse_collection("c", text).title
    except SettingsError as error:
        assert error.faults


@given(st.binary(max_size=200))
def test_any_bytes_are_a_picture_or_none(body: bytes) -> None:
    assert picture_type(body) in (None, ("image/png", "png"), ("image/jpeg", "jpg"), ("image/webp", "webp"),
                                  ("image/svg+xml", "svg"))  # fmt: skip


def test_whether_a_picture_is_an_svg_costs_no_more_for_many_comments() -> None:
    assert picture_type(b"<!---->" * 500 + b"<svg>") == ("image/svg+xml", "svg")
    assert picture_type(b"<!---->" * 100_000 + b"<svg>") is None, "it is looked for at the beginning alone"
    assert picture_type(b"\xef\xbb\xbf <?xml version='1.0'?><!DOCTYPE svg><svg/>") == ("image/svg+xml", "svg")
    assert picture_type(b"<!-- <svg> ") is None


def test_only_a_changed_file_is_read_again(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        collection(archive, name, f'title = "{name}"\n')
    files, read = CollectionFiles(archive), list[str]()
    plain = collection_files.parse_collection
    monkeypatch.setattr(collection_files, "parse_collection", lambda name, text: read.append(name) or plain(name, text))
    first = files.now()
    assert list(first.by_name) == read == ["a", "b", "c"] and files.now() is first
    collection(archive, "b", 'title = "another"\n')
    assert files.now().by_name["b"].title == "another" and read == ["a", "b", "c", "b"]


def test_bounds_are_told_and_cost_no_other_collection(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    collection(archive, "good", 'title = "Good"\n')
    collection(archive, "large", f'title = "Large"\ntext = "{"x" * LARGEST_FILE}"\n')
    (archive.collections / "latin.toml").write_bytes(b'title = "\xe4"\n')
    (archive.collections / "folder.toml").mkdir()
    collection(archive, "bad name", 'title = "a"\n')
    collections = load_collections(archive)
    assert list(collections.by_name) == ["good"] and len(collections.faults) == 4
    assert any("1,048,576 bytes" in fault for fault in collections.faults)
    monkeypatch.setattr(collection_files, "MOST_COLLECTIONS", 2)
    assert any("3 files beyond 2 are left out" in fault for fault in load_collections(archive).faults)
    assert MOST_COLLECTIONS >= 1_000


def test_commands_add_change_and_remove_one(archive: Archive, tmp_path: Path) -> None:
    picture = tmp_path / "any.name"
    picture.write_bytes(PNG)
    added = run(
        archive, "add", "c", "--title", "The title", "--text", "One.\n\nTwo.", "--publication", "a",
        "--publication", "later", "--crawl", "2", "--set", "de.title=Der Titel",
    )  # fmt: skip
    assert added.exit_code == 0, added.output
    assert "the catalogue has no crawl of later yet" in added.output
    assert run(archive, "change", "c", "--picture", str(picture)).exit_code == 0, "a key after a table"
    one = load_collections(archive).by_name["c"]
    assert one.text == "One.\n\nTwo."
    assert (one.title, one.title_in("de"), one.picture) == ("The title", "Der Titel", "c.png")
    assert (one.publications, one.crawls) == (("a", "later"), (record_id(1, "a"),))
    assert (archive.collections / "c.png").read_bytes() == PNG

    path = archive.collections / "c.toml"
    path.write_text("# why it is there\n" + path.read_text())
    changed = run(
        archive, "change", "c", "--crawl", record_id(0, "a"), "--without-publication", "later", "--unset", "de"
    )
    assert changed.exit_code == 0, changed.output
    one = load_collections(archive).by_name["c"]
    assert one.publications == ("a",) and one.crawls == (record_id(1, "a"), record_id(0, "a"))
    assert path.read_text().startswith("# why it is there\n") and not one.words

    rows = json.loads(run(archive, "list", "--format", "json").stdout)
    assert rows == [
        {"name": "c", "title": "The title", "publications": ["a"], "crawls": list(one.crawls), "picture": "c.png"}
    ]
    assert "The title" in run(archive, "show", "c").output
    assert run(archive, "remove", "c").exit_code == 0
    assert list(archive.collections.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "c", "--title", "x"), "there is a collection c already"),
        (("add", "d"), "give its title"),
        (("add", "../d", "--title", "x"), "is no name"),
        (("add", "d", "--title", "x", "--crawl", "77"), "there is no record 77"),
        (("add", "d", "--title", "x", "--crawl", "20200101T000000-a"), "there is no record 20200101T000000-a"),
        (("add", "d", "--title", "x", "--set", "titel=1"), "did you mean title?"),
        (("add", "d", "--title", "x", "--set", "title.x=1"), "title is no table, so it has no title.x"),
        (("add", "d", "--title", "x", "--picture", __file__), "is no picture"),
        (("change", "c"), "say what to change"),
        (("change", "c", "--without-crawl", "x"), "c has no crawl x"),
        (("change", "c", "--unset", "picture"), "does not say picture"),
        (("change", "c", "--unset", "title.x"), "title is no table, so it has no title.x"),
        (("change", "d", "--title", "x"), "there is no collection d; there are: c"),
        (("show", "d"), "there is no collection d; there are: c"),
        (("remove", "d"), "there is no collection d"),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(archive: Archive, arguments: tuple[str, ...], message: str) -> None:
    collection(archive, "c", 'title = "C"\n')
    before = {path.name: path.read_bytes() for path in archive.collections.iterdir()}
    refused = run(archive, *arguments)
    assert refused.exit_code != 0 and message in " ".join((refused.output + str(refused.exception)).split())
    assert {path.name: path.read_bytes() for path in archive.collections.iterdir()} == before


def test_who_may_describe_crawls_may_change_collections(archive: Archive) -> None:
    login = pwd.getpwuid(os.geteuid()).pw_name
    people.save(archive, Person("adam", "Adam", (Role.ADMINISTRATOR,), login))
    assert run(archive, "add", "b", "--title", "B").exit_code == 0
    people.save(archive, Person("eva", "Eva", (Role.ADMINISTRATOR,), "nobody"))
    people.save(archive, Person("adam", "Adam", (Role.REVIEWER,), login))
    for arguments in (("add", "c", "--title", "C"), ("change", "b", "--title", "C"), ("remove", "b")):
        assert run(archive, *arguments).exit_code != 0
    assert [one.title for one in load_collections(archive).by_name.values()] == ["B"]


def test_a_picture_that_two_collections_have_stays_with_the_other(archive: Archive) -> None:
    for name in "ab":
        collection(archive, name, f'title = "{name}"\npicture = "shared.png"\n')
    (archive.collections / "shared.png").write_bytes(PNG)
    assert run(archive, "remove", "a").exit_code == 0 and (archive.collections / "shared.png").exists()
    assert run(archive, "remove", "b").exit_code == 0 and not (archive.collections / "shared.png").exists()


def test_a_backup_has_collections_with_their_pictures(archive: Archive, tmp_path: Path) -> None:
    collection(archive, "c", 'title = "C"\npicture = "c.png"\n')
    (archive.collections / "c.png").write_bytes(PNG)
    assert not backup(archive, tmp_path / "backup").failed
    restore(tmp_path / "backup", tmp_path / "restored")
    restored = Archive(tmp_path / "restored")
    assert load_collections(restored).by_name["c"].title == "C"
    assert (restored.collections / "c.png").read_bytes() == PNG


def test_status_and_check_report_faults(archive: Archive) -> None:
    collection(archive, "c", 'title = "C"\npicture = "none.png"\n')
    collection(archive, "bad", "title = 7\n")
    status = CliRunner().invoke(agent_cli, ["status", "--archive", str(archive.root)])
    assert "collections.d/bad.toml: title: 7 is not a line of text" in status.output
    assert "collections.d/c.toml: picture: there is no picture collections.d/none.png" in status.output
    with pytest.raises(Exception, match=r"bad\.toml"):
        _collections(archive)
