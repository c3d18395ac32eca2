"""A backup that a disk damaged: the next one notices and mends it, `verify` names it, `restore` makes nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from agent.maintenance.backup_mark import MARK
from agent.maintenance.backups import backup
from tests.support.archives import DOMAIN, add, make_archive, publish, store_of
from tests.support.imports import command, killed_in
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.git.repository import RefUpdate

pytestmark = pytest.mark.crawl

OTHER = "other.example:8080"


@pytest.fixture
def filled(tmp_path: Path) -> Archive:
    """Two domains, some snapshots, an addition, a publication, a report."""
    archive = make_archive(tmp_path)
    publish(archive, DOMAIN, {f"{number}.html": b"%d" % number for number in range(20)})
    publish(archive, OTHER, {"a.html": b"1"})
    add(archive, "1.html/notes.txt", b"mine")
    publish(archive, DOMAIN, {"1.html": b"new", "2.html": None})
    head = store_of(archive).head()
    assert head is not None
    store_of(archive).update_refs([RefUpdate("refs/publications/test", head.tree, None)])
    (archive.reports / "1").mkdir()
    (archive.reports / "1/crawl.log").write_text("line\n")
    catch_up(archive)
    return archive


@pytest.fixture
def copy(filled: Archive, tmp_path: Path) -> Archive:
    """A backup of it, as if it were an archive."""
    assert backup(filled, tmp_path / "backup").failed == ()
    return Archive(tmp_path / "backup")


def refs(archive: Archive) -> dict[str, dict[str, str]]:
    return {domain: store_of(archive, domain).refs("refs/") for domain in archive.domains()}


def one(archive: Archive, pattern: str, domain: str = DOMAIN) -> Path:
    (path,) = archive.repository(domain).glob(pattern)
    return path


def flip(path: Path, at: int = -1, bit: int = 1) -> None:
    """Turn a bit in the middle, or where it is said; the file's time stays."""
    content, stat = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2 if at < 0 else at] ^= bit
    path.chmod(0o644)
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: time and content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


def places(archive: Archive) -> Iterator[tuple[Path, int]]:
    """Where a byte may be damaged that decides on something: in packs, indexes, and small files."""
    repository = archive.repository(DOMAIN)
    for pattern, step in {"objects/pack/*.pack": 211, "objects/pack/*.idx": 173}.items():
        (path,) = repository.glob(pattern)
        yield from ((path, at) for at in range(0, path.stat().st_size, step))
    for name in ("HEAD", "refs/heads/main", "refs/publications/test"):
        yield repository / name, 7


def test_each_place_is_noticed_and_mended(filled: Archive, copy: Archive, tmp_path: Path) -> None:
    """Exit 2 with the file's name once, then 0; what is there then is whole, and the damaged one is kept."""
    expected, pristine = refs(filled), tmp_path / "pristine"
    shutil.copytree(copy.root, pristine)
    for path, at in places(copy):
        flip(path, at)
        done = backup(filled, copy.root)
        assert done.failed == (), (path, at)
        assert len(done.mended) == 1 and path.name in done.mended[0], (path, at, done)
        assert refs(copy) == expected
        assert store_of(copy).check() == []
        assert backup(filled, copy.root).mended == ()
        shutil.rmtree(copy.root)
        shutil.copytree(pristine, copy.root)


def test_the_command_says_it_and_the_damaged_one_is_kept(filled: Archive, copy: Archive) -> None:
    pack = one(copy, "objects/pack/*.pack")
    flip(pack)
    content = pack.read_bytes()
    quick = command("backup", "--quick", "--archive", filled.root, copy.root)
    assert (quick.code, "the files that were there before were not read" in quick.out) == (0, True)
    done = command("backup", "--archive", filled.root, copy.root)
    assert done.code == 2
    assert f"was damaged: {DOMAIN}: {pack}: it does not fit its checksum" in done.err
    (aside,) = copy.content.glob(f"{DOMAIN}.git.damaged-*")
    assert str(aside) in done.err
    assert (aside / "objects/pack" / pack.name).read_bytes() == content
    assert list(copy.domains()) == sorted([DOMAIN, OTHER])
    again = command("backup", "--archive", filled.root, copy.root)
    assert (again.code, again.err) == (0, "")


def test_a_pack_that_is_gone_is_noticed(filled: Archive, copy: Archive) -> None:
    for path in copy.repository(DOMAIN).glob("objects/pack/*"):
        path.unlink()
    done = command("backup", "--archive", filled.root, copy.root)
    assert (done.code, f"was damaged: {DOMAIN}" in done.err) == (2, True)
    assert store_of(copy).check() == []


def test_what_is_new_after_the_damage_is_in_it(filled: Archive, copy: Archive) -> None:
    flip(one(copy, "objects/pack/*.idx"))
    publish(filled, DOMAIN, {"new.html": b"n"})
    assert command("backup", "--archive", filled.root, copy.root).code == 2
    assert refs(copy) == refs(filled)


def test_a_damaged_archive_takes_no_copy_away(filled: Archive, copy: Archive) -> None:
    """What can be read of the backup may be all there is: nothing is put aside unless the new one is whole."""
    flip(one(copy, "objects/pack/*.pack"))
    head = store_of(filled).head()
    assert head is not None
    found = store_of(filled).find(head.tree, "3.html/data.html")
    assert found is not None
    flip(filled.repository(DOMAIN) / "objects" / found.oid[:2] / found.oid[2:])
    before = tree(copy.content)
    done = command("backup", "--archive", filled.root, copy.root)
    assert done.code == 2
    assert "it does not fit its checksum, and there is no other copy, since the archive failed" in done.err
    assert tree(copy.content) == before
    assert json.loads((copy.root / MARK).read_text())["finished"] is None


@pytest.mark.parametrize("call", [2, 3])
def test_a_backup_that_is_killed_while_it_puts_a_damaged_repository_aside(
    filled: Archive, copy: Archive, call: int
) -> None:
    """Before the damaged one is moved, and before the new one is: the next one goes on, and the damaged one is kept."""
    pack = one(copy, "objects/pack/*.pack")
    flip(pack)
    content = pack.read_bytes()
    killed_in(lambda: backup(filled, copy.root), Path, "rename", call)
    backup(filled, copy.root)
    assert [path.read_bytes() for path in copy.content.glob(f"*.damaged-*/objects/pack/{pack.name}")] == [content]
    assert refs(copy) == refs(filled)
    assert store_of(copy).check() == []
    assert len(list(copy.content.iterdir())) == 3


def test_what_only_the_backup_has_is_not_lost(filled: Archive, copy: Archive) -> None:
    """A ref that the archive has no more comes over from the damaged repository, where it can be read."""
    store = store_of(filled)
    name, oid = min(store.refs("refs/crawls/").items())
    store.update_refs([RefUpdate(f"refs/crawls/{name}", None, oid)])
    (copy.repository(DOMAIN) / "refs/publications/test").write_bytes(b"x" * 41)
    assert backup(filled, copy.root).mended
    assert store_of(copy).ref(f"refs/crawls/{name}") == oid
    shutil.rmtree(filled.repository(OTHER))
    flip(one(copy, "objects/pack/*.pack", OTHER))
    done = command("backup", "--archive", filled.root, copy.root)
    assert (done.code, f"not copied: {OTHER}: objects/pack/" in done.err) == (2, True), done.err


def test_a_plain_file_that_differs_is_named_and_left(filled: Archive, copy: Archive) -> None:
    log = copy.reports / "1/crawl.log"
    flip(log)
    before = log.read_bytes()
    done = command("backup", "--archive", filled.root, copy.root)
    assert (done.code, f"{log} is not what the archive has" in done.err) == (2, True)
    assert (log.read_bytes(), (filled.reports / "1/crawl.log").read_text()) == (before, "line\n")
    log.unlink()
    assert command("backup", "--archive", filled.root, copy.root).code == 0
    assert log.read_text() == "line\n"


# -- verify ------------------------------------------------------------------------------------------------------------


def test_verify_of_a_backup(copy: Archive) -> None:
    """Sound, and nothing in it is touched."""
    before = tree(copy.root)
    for how, verdict in (((), "sound"), (("--quick",), "nothing was found; not read: ")):
        done = command("verify", "--archive", copy.root, *how)
        assert (done.code, done.out.startswith(verdict), done.err) == (0, True, "")
    assert tree(copy.root) == before


@pytest.mark.parametrize("quick", [False, True])
def test_verify_names_each_damage_of_a_backup(copy: Archive, quick: bool) -> None:
    for path, at in [*places(copy)][:: 5 if quick else 9]:
        content = path.read_bytes()
        flip(path, at)
        done = command("verify", "--archive", copy.root, *(["--quick"] if quick else []))
        assert (done.code, path.name in done.out) == (2, True), (path, at, done.out)
        path.write_bytes(content)


def test_verify_of_a_backup_that_was_not_finished(copy: Archive) -> None:
    mark = json.loads((copy.root / MARK).read_text())
    (copy.root / MARK).write_text(json.dumps(mark | {"finished": None}))
    done = command("verify", "--archive", copy.root)
    assert (done.code, "was not finished" in done.out) == (2, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk read-only")
def test_verify_of_a_backup_on_a_disk_that_is_read_only(copy: Archive, tmp_path: Path) -> None:
    point = tmp_path / "readonly"
    point.mkdir()
    subprocess.run(["mount", "--bind", copy.root, point], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)
        assert command("verify", "--archive", point).code == 0
        done = command("restore", point, tmp_path / "new")
        assert done.code == 0, done.err
    finally:
        subprocess.run(["umount", point], check=True)


# -- restore -----------------------------------------------------------------------------------------------------------


def _damage_a_pack(copy: Archive) -> None:
    flip(one(copy, "objects/pack/*.pack"))


def _damage_a_ref(copy: Archive) -> None:
    (copy.repository(DOMAIN) / "refs/publications/test").write_bytes(b"\0" * 41)


@pytest.mark.parametrize("damage", [_damage_a_pack, _damage_a_ref])
def test_a_restore_that_failed_made_no_archive_and_is_gone_on_with(
    filled: Archive, copy: Archive, tmp_path: Path, damage: Callable[[Archive], None]
) -> None:
    expected, new = refs(filled), tmp_path / "new"
    damage(copy)
    done = command("restore", copy.root, new)
    assert (done.code, f"not copied: {DOMAIN}: " in done.err) == (2, True), done.err
    assert f"{new} is no archive yet" in done.err and "is an archive again" not in done.out
    verified = command("verify", "--archive", new)
    assert verified.code == 2 and "its restore has not ended" in verified.err
    assert command("backup", "--archive", filled.root, copy.root).code == 2
    again = command("restore", copy.root, new)
    assert again.code == 0, again.err
    assert refs(open_archive(new)) == expected
    assert command("verify", "--archive", new).code == 0
    assert not [path.name for path in new.iterdir() if path.name.startswith(".")]


def test_a_restore_in_part_says_what_is_missing_until_somebody_knows(copy: Archive, tmp_path: Path) -> None:
    new = tmp_path / "new"
    _damage_a_pack(copy)
    done = command("restore", "--partial", copy.root, new)
    assert (done.code, f"not copied: {DOMAIN}: " in done.err) == (2, True)
    assert refs(open_archive(new)) == {OTHER: refs(copy)[OTHER]}
    verified = command("verify", "--archive", new)
    assert (verified.code, verified.out.startswith(f"missing: {DOMAIN}: ")) == (2, True)
    (new / "missing").unlink()
    assert command("verify", "--archive", new).code == 0


def test_the_restore_of_another_backup_is_not_mixed_with_it(copy: Archive, tmp_path: Path) -> None:
    other = make_archive(tmp_path / "x")
    backup(other, tmp_path / "other")
    _damage_a_pack(copy)
    assert command("restore", copy.root, tmp_path / "new").code == 2
    done = command("restore", tmp_path / "other", tmp_path / "new")
    assert (done.code, "another backup" in done.err) == (1, True)
