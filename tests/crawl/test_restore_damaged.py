"""A page is damaged or lost: `verify` names it, `restore --damaged` brings it back, and what runs shows it at once."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up, recover
from agent.maintenance import restoration
from agent.maintenance.backups import backup
from agent.maintenance.restoration import restore_damaged
from tests.support import sinks
from tests.support.archives import FIRST, make_archive, rows_of, store_of
from tests.support.damage import damage_object
from tests.support.imports import command, killed_in
from tests.support.rooms import Page, digits, published, served
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import arc_path, data_name, split
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.repair import damage_note, repacking

pytestmark = pytest.mark.crawl

TOWN = "www.town.example"
OTHER = "news.town.example:8080"
COUNCIL = f"http://{TOWN}/council.html"
SECOND = FIRST + timedelta(days=1)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two snapshots of a town and one of its news, in a backup."""
    archive = make_archive(tmp_path)
    pages = {f"http://{TOWN}/{name}.html": Page(f"<p>{name}, first</p>".encode() * 20) for name in "abcdef"}
    published(archive, TOWN, pages | {COUNCIL: Page(b"<p>the old council</p>" * 20)}, FIRST)
    published(archive, OTHER, {f"http://{OTHER}/": Page(b"<p>news</p>" * 20)}, FIRST)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Town: council\r\n\r\n"
    published(archive, TOWN, {COUNCIL: Page(b"<p>the new council</p>" * 20, head=head)}, SECOND)
    catch_up(archive)
    repacking.repack(archive.repository(TOWN))
    assert backup(archive, tmp_path / "backup").failed == ()
    return archive


def copy_of(archive: Archive) -> Path:
    """The backup."""
    return archive.root.parent / "backup"


def part_of(archive: Archive, url: str, name: str = "") -> str:
    """The object of a part of a page in the newest snapshot."""
    domain, path = split(arc_path(url))
    store = store_of(archive, domain)
    head = store.head()
    assert head is not None
    entry = store.find(head.tree, f"{path}/{name or data_name(url)}")
    assert entry is not None
    return entry.oid


def spoil(archive: Archive, url: str = COUNCIL, name: str = "") -> str:
    """Damage a part of a page; return its object."""
    oid = part_of(archive, url, name)
    damage_object(archive.repository(split(arc_path(url))[0]), oid)
    return oid


def refs(archive: Archive) -> dict[str, dict[str, str]]:
    return {domain: store_of(archive, domain).refs("refs/") for domain in archive.domains()}


def test_a_room_shows_a_damaged_page_again_without_a_restart(archive: Archive) -> None:
    """Its reader is told that the page cannot be read, and not that the archive is busy."""
    path = f"/web/{digits(SECOND)}id_/{COUNCIL}"
    before, was = command("verify", "--archive", archive.root), refs(archive)
    oid = spoil(archive)
    with served(archive) as room:
        missing = room.get(path)
        assert missing.status == 503
        assert "This page cannot be read at present" in missing.text and "busy" not in missing.text
        assert "retry-after" not in missing.headers
        assert room.get(f"/web/{digits(FIRST)}id_/{COUNCIL}").status == 200

        found = command("verify", "--archive", archive.root)
        assert found.code == 2
        line = next(line for line in found.out.splitlines() if COUNCIL in line)
        assert line.startswith(f"{TOWN}: {COUNCIL} of the snapshot 2026-11-22T03:00:00@{TOWN}, its content")
        assert oid in line and f"`webarc-agent restore --damaged DIR {archive.root}`" in line
        assert found.out.count(COUNCIL) == 1

        command_line = f"`webarc-agent verify --archive {archive.root}` names it"
        assert command_line in command("status", "--archive", archive.root).out
        checked = command("status", "--check", "--archive", archive.root)
        assert (checked.code, "could not be read" in checked.out, command_line in checked.out) == (2, True, True)

        done = command("restore", "--damaged", copy_of(archive), archive.root)
        assert (done.code, done.err) == (0, "")
        assert command("status", "--check", "--archive", archive.root).out == "ok\n"
        assert f"came back: {COUNCIL} of the snapshot 2026-11-22T03:00:00@{TOWN}, its content\n" in done.out
        answer = room.get(path)
        assert (answer.status, "the new council" in answer.text) == (200, True)
    assert command("verify", "--archive", archive.root) == before
    assert refs(archive) == was
    again = command("restore", "--damaged", copy_of(archive), archive.root, "--format", "json")
    assert (again.code, json.loads(again.out)["objects"], json.loads(again.out)["whole"]) == (0, 0, True)


@pytest.mark.parametrize("name", ["data.xml", "headers.http"])
def test_the_other_parts_of_a_page_are_named_too(archive: Archive, name: str) -> None:
    spoil(archive, name=name)
    words = {"data.xml": "its description", "headers.http": "its headers"}[name]
    found = command("verify", "--archive", archive.root)
    assert f"{TOWN}: {COUNCIL} of the snapshot 2026-11-22T03:00:00@{TOWN}, {words}: it cannot be read" in found.out
    done = restore_damaged(copy_of(archive), archive)
    assert done.is_whole and f"{COUNCIL} of the snapshot 2026-11-22T03:00:00@{TOWN}, {words}" in map(str, done.pages)
    assert store_of(archive, TOWN).check() == []


def test_recover_leaves_no_snapshot_out_and_says_what_comes_first(archive: Archive) -> None:
    """Also where the snapshot was left out on purpose it returns with the page."""
    rows, lines = rows_of(archive), archive.changes.read_bytes()
    spoil(archive)
    done = command("recover", "--archive", archive.root)
    assert done.code == 2
    assert f"they would lack 1 snapshot: 2026-11-22T03:00:00@{TOWN}" in done.err.replace("rebuilt now, ", "")
    assert f"`webarc-agent restore --damaged DIR {archive.root}`" in done.err
    assert (rows_of(archive), archive.changes.read_bytes()) == (rows, lines)

    without = command("recover", "--leave-out", "--archive", archive.root)
    assert without.code == 2 and "left out of webarc.db, changes and links.db: 1 snapshot: 2026-11-22" in without.err
    assert rows_of(archive) != rows
    assert command("restore", "--damaged", copy_of(archive), archive.root).code == 0
    assert (rows_of(archive), archive.changes.read_bytes()) == (rows, lines)
    assert recover(archive).left_out == ()
    assert rows_of(archive) == rows


def test_a_room_tells_staff_of_damage_that_a_reader_met(archive: Archive) -> None:
    """Until `verify` read all and found nothing: that somebody met it is enough."""
    oid = spoil(archive)
    with served(archive) as room:
        assert damage_note.met_at(archive) is None
        assert room.get(f"/web/{digits(SECOND)}id_/{COUNCIL}").status == 503
        until(lambda: damage_note.met_at(archive) is not None)
        assert oid not in (archive.log / "damaged.json").read_text()
    assert command("verify", "--quick", "--archive", archive.root).code in (0, 2)
    assert damage_note.met_at(archive) is not None
    assert restore_damaged(copy_of(archive), archive).is_whole
    assert damage_note.met_at(archive) is None
    damage_note.write(archive)
    assert command("verify", "--archive", archive.root).code == 0
    assert damage_note.met_at(archive) is None


def test_people_are_told_of_damage_that_a_reader_met_and_that_it_is_over(archive: Archive, tmp_path: Path) -> None:
    """S-tell-6. Each once, whatever a reader meets meanwhile; `watch` prints it."""
    told = tmp_path / "told"
    recorder = str(sinks.recorder(tmp_path / "tell", told))
    archive.settings.write_text(sinks.settings(command=[recorder]))
    assert command("watch", "--archive", archive.root).out == "nothing is amiss\n"
    spoil(archive)
    with served(archive) as room:
        room.get(f"/web/{digits(SECOND)}id_/{COUNCIL}")
        until(lambda: damage_note.met_at(archive) is not None)
    for _ in range(2):
        done = command("watch", "--archive", archive.root)
        assert (done.code, done.out) == (3, "something in the archive could not be read\n")
        damage_note.write(archive)
    assert [message["type"] for message in sinks.recorded(told)] == ["damaged"]
    note = archive.log / "damaged.json"
    note.write_text("{")
    command("watch", "--archive", archive.root)
    assert len(sinks.recorded(told)) == 1, "a note that cannot be read ends nothing"
    assert restore_damaged(copy_of(archive), archive).is_whole
    for _ in range(2):
        assert command("watch", "--archive", archive.root).out == "nothing is amiss\n"
    first, second = sinks.recorded(told)
    assert (second["type"], second["data"]["recovered_from"]) == ("recovered", "damaged")
    assert first["data"]["text"] == "something in the archive could not be read"
    spoil(archive)
    assert command("verify", "--archive", archive.root).code == 2
    assert command("watch", "--archive", archive.root).code == 3
    assert [message["type"] for message in sinks.recorded(told)] == ["damaged", "recovered", "damaged"]


def test_what_the_backup_lacks_is_named_and_the_rest_comes_back(archive: Archive) -> None:
    newest = published(archive, TOWN, {f"http://{TOWN}/new.html": Page(b"<p>new</p>" * 20)}, SECOND + timedelta(1))
    repacking.repack(archive.repository(TOWN))
    spoil(archive)
    oid = spoil(archive, f"http://{TOWN}/new.html")
    done = command("restore", "--damaged", copy_of(archive), archive.root)
    assert done.code == 2 and f"came back: {COUNCIL}" in done.out and "not all are whole" in done.out
    part = f"http://{TOWN}/new.html of the snapshot {newest}, its content"
    assert f"not back: {TOWN}: {part}: it cannot be read ({oid}); the backup does not have it" in done.err
    assert store_of(archive, TOWN).is_sound(part_of(archive, COUNCIL))


def test_a_repository_that_is_gone_is_copied(archive: Archive) -> None:
    was = refs(archive)
    shutil.rmtree(archive.repository(TOWN))
    done = command("restore", "--damaged", copy_of(archive), archive.root)
    assert (done.code, f"{TOWN}: its repository was gone, and is copied, with 2 snapshots" in done.out) == (0, True)
    assert refs(archive) == was


def test_what_people_removed_stays_removed(archive: Archive) -> None:
    """A repository that is in none of the archive's lists any more was not lost."""
    shutil.rmtree(archive.repository(OTHER))
    assert recover(archive).damaged == ()
    assert restore_damaged(copy_of(archive), archive).is_whole
    assert list(archive.domains()) == [TOWN]


def test_everything_of_a_repository_may_be_damaged(archive: Archive) -> None:
    was = refs(archive)
    path = archive.repository(TOWN)
    shutil.rmtree(path / "objects")
    (path / "HEAD").write_text("nonsense")
    done = restore_damaged(copy_of(archive), archive)
    assert done.is_whole and any(COUNCIL in str(part) for part in done.pages)
    assert refs(archive) == was and store_of(archive, TOWN).check() == []


def test_records_come_back_too(archive: Archive) -> None:
    repacking.repack(archive.catalogue)
    was = command("record", "list", "--archive", archive.root)
    (pack,) = archive.catalogue.glob("objects/pack/*.pack")
    pack.unlink()
    assert command("verify", "--archive", archive.root).code == 2
    done = restore_damaged(copy_of(archive), archive)
    assert done.is_whole and any("objects of records are back" in line for line in done.done)
    shutil.rmtree(archive.catalogue)
    assert restore_damaged(copy_of(archive), archive).is_whole
    assert command("record", "list", "--archive", archive.root) == was


def test_a_killed_run_is_taken_up(archive: Archive) -> None:
    spoil(archive)
    shutil.rmtree(archive.repository(OTHER))
    was = {TOWN: refs(archive)[TOWN]}
    killed_in(lambda: restore_damaged(copy_of(archive), archive), restoration, "connected")
    killed_in(lambda: restore_damaged(copy_of(archive), archive), restoration, "find_parts")
    done = restore_damaged(copy_of(archive), archive)
    assert done.is_whole and refs(archive)[TOWN] == was[TOWN]
    assert not [path for path in archive.content.iterdir() if path.name.startswith(".")]
    assert all(store_of(archive, domain).check() == [] for domain in archive.domains())


def test_only_the_archives_own_backup_is_taken(archive: Archive, tmp_path: Path) -> None:
    other = make_archive(tmp_path / "other")
    with pytest.raises(UsageError, match="is the backup of another archive"):
        restore_damaged(copy_of(archive), other)
    with pytest.raises(UsageError, match="holds no backup"):
        restore_damaged(archive.root, archive)
    given = command("restore", copy_of(archive), archive.root)
    assert given.code != 0 and "--damaged" in given.err
