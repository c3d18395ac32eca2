"""Objects of a repository that are damaged or missing come back from a copy of it, and nothing readable is lost."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from agent.maintenance.backups import backup
from tests.support.archives import DOMAIN, make_archive, publish, store_of
from tests.support.damage import damage_object
from tests.support.imports import killed_in
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.repair import repacking, restoring
from webarcfs.archive.repair.restoring import bring_back, damage_of

pytestmark = pytest.mark.store

#: libgit2 has it as an object where git has it built in.
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SEED = 20261130


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Three snapshots, a backup of them, and a fourth that the backup lacks."""
    archive, chance = make_archive(tmp_path), random.Random(_SEED)
    for number in range(3):
        pages = {f"{name}.html": b"%d " % name * 300 + chance.randbytes(100).hex().encode() for name in range(8)}
        publish(archive, DOMAIN, pages | {"number.html": b"%d" % number})
    assert backup(archive, tmp_path / "backup").failed == ()
    publish(archive, DOMAIN, {"new.html": b"newer than the backup"})
    return archive


def copy_of(archive: Archive) -> Path:
    """The repository in the backup."""
    return archive.root.parent / "backup/content" / f"{DOMAIN}.git"


def spoil(path: Path, how: str, chance: random.Random) -> None:
    """Damage a file as a disk does."""
    content = bytearray(path.read_bytes())
    path.unlink()
    at = chance.randrange(len(content))
    if how == "flipped":
        content[at] ^= 1 << chance.randrange(8)
    elif how == "zeroed":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    elif how == "cut off":
        del content[at:]
    if how != "gone":
        path.write_bytes(content)


@pytest.mark.parametrize("kind", ["pack", "loose"])
def test_whatever_a_disk_damages_comes_back(archive: Archive, tmp_path: Path, kind: str) -> None:
    """What the copy has is whole again, in whatever file the damage was; what came after it is kept if it can be."""
    repository, chance = archive.repository(DOMAIN), random.Random(_SEED)
    if kind == "pack":
        repacking.repack(repository)
    everything = set(store_of(archive).ids()) - {EMPTY_TREE}
    newer = everything - set(Repository(copy_of(archive)).ids())
    refs = store_of(archive).refs("refs/")
    brought = 0
    for number in range(30):
        path = tmp_path / f"{number}.git"  # libgit2 would share the packs of one path
        shutil.copytree(repository, path)
        files = sorted(path for path in (path / "objects").rglob("*") if path.is_file())
        for file in chance.sample(files, min(len(files), chance.choice([1, 2, 5]))):
            spoil(file, chance.choice(["flipped", "zeroed", "cut off", "gone"]), chance)
        store = Repository(path)
        restored = bring_back(store, damage_of(store), copy_of(archive))
        bad = {oid for oid in everything if not Repository(path).is_sound(oid)}
        assert bad <= newer
        assert restored.left.objects <= bad and bool(restored.left) == bool(bad)
        if not bad:
            assert Repository(path).check() == [] and not damage_of(Repository(path))
        assert Repository(path).refs("refs/") == refs
        brought += len(restored.objects)
    assert brought


@pytest.mark.parametrize("step", ["copy_objects", "_put_aside", "_sound_in", "secrets.token_hex", "rename"])
def test_it_may_be_killed_at_any_step(archive: Archive, step: str) -> None:
    """Nothing readable is less than before, and the next run does the rest."""
    repository = archive.repository(DOMAIN)
    repacking.repack(repository)
    head = store_of(archive).head()
    assert head is not None
    page = store_of(archive).find(head.tree, "3.html/data.html")
    assert page is not None
    everything = set(store_of(archive).ids())
    damage_object(repository, page.oid)
    (pack,) = repository.glob("objects/pack/*.pack")
    readable = {oid for oid in everything if store_of(archive).is_sound(oid)}
    assert page.oid not in readable

    def run() -> None:
        bring_back(store_of(archive), damage_of(store_of(archive)), copy_of(archive))

    owner, name = {
        "secrets.token_hex": (restoring.secrets, "token_hex"), "rename": (Path, "rename"),
    }.get(step, (restoring, step))  # fmt: skip
    killed_in(run, owner, name, 1 if step != "rename" else 3)
    assert readable <= {oid for oid in everything if store_of(archive).is_sound(oid)}
    run()
    assert all(store_of(archive).is_sound(oid) for oid in everything)
    assert damage_of(store_of(archive)).objects == frozenset() and store_of(archive).check() == []
    assert not list((repository / "objects").glob("tmp_*"))
    assert list((repository / "damaged").rglob(pack.name))
