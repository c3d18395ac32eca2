"""`backup` and `restore`: the same refs, trees and table afterwards; incremental, never losing what it has (#4)."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from agent.maintenance import backups
from agent.maintenance.backup_mark import MARK
from agent.maintenance.backups import backup, restore
from tests.support.archives import DOMAIN, add, publish, store_of
from tests.support.disks import small_disk
from tests.support.imports import command, killed_in
from tests.support.journals import Writer
from webarcfs.archive.additions.commit_additions import commit_additions, replay
from webarcfs.archive.config.directory import Archive, create, open_archive
from webarcfs.archive.git.repository import MAIN, RefUpdate
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.errors import Busy, NotAnArchive, UsageError
from webarcfs.archive.system import locks

pytestmark = pytest.mark.crawl

OTHER = "other.example:8080"


@pytest.fixture
def filled(archive: Archive) -> Archive:
    """Two domains, some snapshots, an addition, settings, reports and a log of a journal."""
    publish(archive, DOMAIN, {"a.html": b"1", "b.html": b"1"})
    publish(archive, OTHER, {"a.html": b"1"})
    add(archive, "a.html/notes.txt", b"mine")
    publish(archive, DOMAIN, {"a.html": b"2", "b.html": None})
    store = store_of(archive)
    head = store.head()
    assert head is not None
    store.update_refs([RefUpdate("refs/publications/test", head.tree, None)])
    for name, text in {
        "webarc.toml": "[crawl]\n",
        "filters/x.toml": "x = 1\n",
        "reports/1/crawl.log": "line\n",
    }.items():
        (archive.root / name).parent.mkdir(exist_ok=True)
        (archive.root / name).write_text(text)
    catch_up(archive)
    return archive


def state(archive: Archive) -> dict[str, object]:
    """All that must be the same again: refs (and with them trees), the table, the feed, plain files."""
    with Database(archive.database) as database:
        table = list(database.dump())
    refs = {domain: store_of(archive, domain).refs("refs/") for domain in archive.domains()}
    plain = {
        str(path.relative_to(archive.root)): path.read_bytes()
        for name in ("webarc.toml", "filters", "reports", "xsd")
        for path in sorted([archive.root / name, *(archive.root / name).rglob("*")])
        if path.is_file()
    }
    return {"refs": refs, "table": table, "feed": archive.changes.read_text(), "plain": plain}


def test_backup_delete_restore(filled: Archive, tmp_path: Path) -> None:
    """The same refs, the same trees, the same dump of `metadata`; and it goes on from there."""
    target, before = tmp_path / "backup", state(filled)
    done = command("backup", "--archive", filled.root, target)
    assert (done.code, done.err) == (0, "")
    shutil.rmtree(filled.root)
    done = command("restore", target, filled.root)
    assert done.code == 0, done.err
    again = open_archive(filled.root)
    assert state(again) == before
    for domain in again.domains():
        assert store_of(again, domain).check() == []
    publish(again, DOMAIN, {"c.html": b"3"})
    assert backup(again, target).moved == 1


def test_relative_paths(filled: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the command line, and of the environment, are of the folder that the command was called in."""
    monkeypatch.chdir(filled.root.parent)
    monkeypatch.setenv("WEBARC_ARCHIVE", filled.root.name)
    there = Path(os.path.relpath(tmp_path))
    before = state(filled)
    for arguments in (
        ("backup", there / "backup"),
        ("backup", "--archive", filled.root.name, there / "backup"),
        ("verify", "--archive", there / "backup"),
        ("restore", there / "backup", there / "again"),
        ("verify", "--archive", there / "again"),
    ):
        done = command(*arguments)
        assert done.code == 0, (arguments, done)
    assert state(open_archive(tmp_path / "again")) == before


def test_only_what_is_new_is_copied(filled: Archive, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    assert backup(filled, target).moved == 2
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*") if path.is_file() and path.name != MARK}
    assert backup(filled, target).moved == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    publish(filled, OTHER, {"new.html": b"n"})
    assert backup(filled, target).moved == 1


def test_a_backup_loses_nothing(filled: Archive, tmp_path: Path) -> None:
    """Whatever goes from the archive (a domain, a ref, a report) is still in the backup."""
    target = tmp_path / "backup"
    backup(filled, target)
    shutil.rmtree(filled.repository(OTHER))
    shutil.rmtree(filled.reports / "1")
    store = store_of(filled)
    name, oid = next(iter(store.refs("refs/crawls/").items()))
    store.update_refs([RefUpdate(f"refs/crawls/{name}", None, oid)])
    backup(filled, target)
    copy = Archive(target)
    assert list(copy.domains()) == sorted([DOMAIN, OTHER])
    assert store_of(copy).ref(f"refs/crawls/{name}") == oid
    assert (copy.reports / "1/crawl.log").exists()
    store.update_refs([RefUpdate(f"refs/crawls/{name}", oid, None)])


def test_a_folder_that_is_none_of_ours(filled: Archive, tmp_path: Path) -> None:
    """Somebody else's files, the backup of another archive, the archive itself, an archive that is there already."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="no backup"):
        backup(filled, full)
    with pytest.raises(UsageError, match="no backup"):
        restore(full, tmp_path / "new")
    with pytest.raises(UsageError, match="in the archive itself"):
        backup(filled, filled.root / "backup")
    other = create(tmp_path / "other")
    backup(other, tmp_path / "backup")
    with pytest.raises(UsageError, match="another archive"):
        backup(filled, tmp_path / "backup")
    with pytest.raises(UsageError, match="is an archive already"):
        restore(tmp_path / "backup", filled.root)
    assert sorted(path.name for path in full.iterdir()) == ["thesis.txt"]


def test_a_first_backup_that_was_killed_at_once_is_run_again(filled: Archive, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    target.mkdir()
    (target / ".lock").touch()
    (target / f".{MARK}.4711").write_text('{"id": ', "ascii")
    assert not backup(filled, target).failed


def test_one_backup_at_a_time(filled: Archive, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    backup(filled, target)
    with locks.exclusive(target / ".lock"), pytest.raises(Busy):
        backup(filled, target)


def test_a_live_archive_is_copied_as_it_was_at_one_moment(filled: Archive, tmp_path: Path) -> None:
    """Publications go on meanwhile; main always has its ref, so that nothing is missing in what is restored."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            publish(filled, DOMAIN, {"busy.html": b"%d" % number})
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            target = tmp_path / f"backup-{number}"
            assert backup(filled, target).failed == ()
            copy = store_of(Archive(target))
            head = copy.head()
            assert head is not None
            assert copy.ref(head.message.tag.ref) == head.oid
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("point", ["_copy", "connected", "remove_others"])
def test_a_backup_that_is_killed_is_run_again(filled: Archive, tmp_path: Path, point: str) -> None:
    """And what was there before stays restorable; that it was not finished is said."""
    target = tmp_path / "backup"
    backup(filled, target)
    publish(filled, OTHER, {"new.html": b"n"})
    catch_up(filled)
    killed_in(lambda: backup(filled, target), backups, point)
    done = command("restore", target, tmp_path / "early")
    assert (done.code, "not finished" in done.err) == (3, True)
    backup(filled, target)
    restore(target, tmp_path / "late")
    assert state(open_archive(tmp_path / "late")) == state(filled)


def test_a_restore_that_is_killed_left_no_archive(filled: Archive, tmp_path: Path) -> None:
    """`format` comes last; the next one goes on there."""
    target = tmp_path / "backup"
    backup(filled, target)
    killed_in(lambda: restore(target, tmp_path / "new"), backups, "mirror")
    with pytest.raises(NotAnArchive, match="has not ended"):
        open_archive(tmp_path / "new")
    assert command("restore", target, tmp_path / "new").code == 0
    assert state(open_archive(tmp_path / "new")) == state(filled)


def test_what_is_damaged_is_named_and_the_rest_is_copied(filled: Archive, tmp_path: Path) -> None:
    """One repository that cannot be read: exit 2 with its name, the others are in the backup."""
    target = tmp_path / "backup"
    head = filled.repository(OTHER) / "HEAD"
    text = head.read_text()
    head.write_text("rubbish")
    done = command("backup", "--archive", filled.root, target)
    head.write_text(text)
    assert done.code == 2
    assert f"not copied: {OTHER}" in done.err
    assert store_of(Archive(target)).ref(MAIN) == store_of(filled).ref(MAIN)
    assert json.loads((target / MARK).read_text())["finished"] is None


def test_a_full_disk(filled: Archive, tmp_path: Path) -> None:
    """It is said, exit 2; nothing of the archive suffers, and the next backup elsewhere is whole."""
    (filled.reports / "1/big.warc").write_bytes(bytes(1_000_000))
    with small_disk(tmp_path / "small", "400k") as small:
        done = command("backup", "--archive", filled.root, small / "backup")
        assert (done.code, "No space left" in done.err) == (2, True), done.err
    assert backup(filled, tmp_path / "backup").failed == ()


def test_additions_of_the_journal_are_in_it(filled: Archive, tmp_path: Path) -> None:
    """What was confirmed before the backup began is in it, committed or not, and after the restore it is there once."""
    writer = Writer(filled)
    writer.file("a.html", "committed.txt", b"1")
    commit_additions(filled, DOMAIN)
    writer.file("a.html", "small.txt", b"2")
    writer.file("a.html", "large.bin", bytes(2_000_000))
    backup(filled, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "new")
    again = open_archive(tmp_path / "new")
    replay(again)
    head = store_of(again).head()
    assert head is not None
    added = [each for commit in store_of(again).history(head.oid) for each in commit.message.all("Added")]
    assert sorted(added) == ["a.html/committed.txt", "a.html/large.bin", "a.html/notes.txt", "a.html/small.txt"]
    assert store_of(again).check() == []

    commit_additions(filled, DOMAIN)
    writer.journal.close()
    replay(filled)
    backup(filled, tmp_path / "backup")
    assert [path for path in (tmp_path / "backup/journal").rglob("*") if path.is_file()] == []
