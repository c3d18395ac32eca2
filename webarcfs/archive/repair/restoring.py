"""Brings what is damaged or missing of a repository back from a copy of it, while others read and write.

Only objects come back, and no ref moves. git names an object by its content, so it is no matter how old the copy is:
what has the id is what was there. Each object is held against its id, in the copy before, and in the repository after.

A damaged pack is no longer used afterwards: libgit2 would go on reading the damaged object, though another pack has it
sound. What can be read of it becomes a pack of its own before. A damaged file is moved to `damaged/`, and never
deleted. A killed run leaves the repository as it was, or with a pack too much; the next one does the rest.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import Repository, absent, copy_objects, ids_in, reachable, rotten
from webarcfs.archive.git.writing import Pack
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, now
from webarcfs.archive.repair.mending import ASIDE
from webarcfs.archive.system.files import sync_folder

_ID = re.compile(r"(?<![-\w])[0-9a-f]{40}\b")  # and no name of a pack
_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})\b")
#: Git has it built in, and no copy has it unless a snapshot needs it.
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_NO_OBJECT = "0" * 40
_SCRATCH = "tmp_restored"
_PACKS = "objects/pack"
#: Files of a pack, the index first: without it git does not use the others.
_PACK_KINDS = (".idx", ".pack", ".rev", ".bitmap", ".mtimes", ".keep")
#: Other files with a checksum that git makes again, or does without.
_BESIDE_PACKS = ("multi-pack-index",)
_MOST_ROUNDS = 10
_READ_AT_ONCE = 1 << 16
_PACKED_AT_ONCE = 64 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """What of a repository cannot be read: ids of objects, names of packs, files of single objects."""

    objects: frozenset[str] = frozenset()
    packs: frozenset[str] = frozenset()
    files: frozenset[Path] = frozenset()
    #: The lines of git about it.
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.objects or self.packs or self.files)


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back: ids of objects. `left` is the damage that remains: the copy lacks that, or cannot be read.

    `aside` are the folders of the damaged files.
    """

    objects: frozenset[str]
    left: Damage
    aside: tuple[Path, ...] = ()


def ids_named(store: Repository, lines: Iterable[str]) -> frozenset[str]:
    """Return the objects that lines of git name and that cannot be read."""
    found: set[str] = set()
    for line in lines:
        found.update(_ID.findall(line))
        found.update("".join(match) for match in _LOOSE.findall(line))
    return frozenset(oid for oid in found - {_NO_OBJECT} if not store.is_sound(oid))


def damage_of(store: Repository) -> Damage:
    """Read a repository as a whole, from the disk, and return its damage. Others may be at work in it."""
    broken_files = [line.partition(": ")[0] for line in rotten(store.path)]
    lines = tuple(store.check())
    packs = {Path(name).stem for name in broken_files if name.startswith(f"{_PACKS}/pack-")}
    for index in (store.path / _PACKS).glob("*.idx"):
        if not index.with_suffix(".pack").exists():
            packs.add(index.stem)
    files = {store.path / name for name in broken_files if Path(name).name in _BESIDE_PACKS}
    for line in lines:
        for match in _LOOSE.finditer(line):
            path = store.path / match[0]
            if path.exists() and not _is_sound_file(path, "".join(match.groups())):
                files.add(path)
    return Damage(ids_named(store, lines), frozenset(packs), frozenset(files), lines)


def bring_back(store: Repository, damage: Damage, copy: Path) -> Restored:
    """Bring the damaged objects of a repository back from a copy, with all that they lead to and that is missing.

    The caller keeps repacks away. Raises NotFound without a copy, OSError on a full disk, Damaged where the copy cannot
    be read.
    """
    source = Repository(copy)
    came: set[str] = set()
    aside: list[Path] = []
    for _ in range(_MOST_ROUNDS):  # damage hides damage: git stops at some, and what is missing leads nowhere
        if not damage:
            break
        held, folder = _bring_once(store, damage, source)
        came |= held
        aside += [folder] if folder is not None else []
        damage = damage_of(store)
        if not held and folder is None:
            break
    return Restored(frozenset(came), damage, tuple(dict.fromkeys(aside)))


def _bring_once(store: Repository, damage: Damage, source: Repository) -> tuple[frozenset[str], Path | None]:
    """Bring back what is known to be damaged; return the ids of that, and the folder of damaged files."""
    path = store.path
    for left in (path / "objects").glob(f"{_SCRATCH}*"):
        left.unlink(missing_ok=True)
    new_packs, indexed = _indexed_anew(store, damage.packs)
    wanted = damage.objects - indexed
    held = frozenset(oid for oid in wanted if source.is_sound(oid))
    if held:
        below = absent(path, reachable(source.path, held)) - indexed
        wanted |= below
        held |= {oid for oid in below - held if source.is_sound(oid)}
        new_packs.append(_packed(store, source.path, held, "copied"))
    new_packs += _kept(store, _sound_in(store, damage.packs) - wanted - indexed)
    for pack in new_packs:
        name = path / _PACKS / f"pack-{secrets.token_hex(20)}"  # git would name a pack with the same bytes alike
        for kind in (".pack", ".idx"):
            pack.with_suffix(kind).rename(name.with_suffix(kind))
    git_command.sync_packs(path)
    aside = _put_aside(path, damage)
    store.let_go()
    if _EMPTY_TREE in wanted - held:
        store.write_tree([])
    return held, aside


def _indexed_anew(store: Repository, names: frozenset[str]) -> tuple[list[Path], frozenset[str]]:
    """Return new packs of those of which only the index is damaged, and the ids of their objects."""
    packs: list[Path] = []
    ids: frozenset[str] = frozenset()
    for name in sorted(names):
        pack = store.path / "objects" / f"{_SCRATCH}-indexed-{len(packs)}.pack"
        with suppress(Damaged, FileNotFoundError):
            pack.hardlink_to(store.path / _PACKS / f"{name}.pack")
            git_command.index_pack(pack)
            ids |= ids_in(pack.with_suffix(".idx"))
            packs.append(pack)
            continue
        pack.unlink(missing_ok=True)
    return packs, ids


def _sound_in(store: Repository, names: frozenset[str]) -> frozenset[str]:
    """Return the objects of damaged packs that can be read."""
    if not names:
        return frozenset()
    elsewhere: set[str] = set()
    own: set[str] = set()
    for index in (store.path / _PACKS).glob("*.idx"):
        (own if index.stem in names else elsewhere).update(ids_in(index))
    with suppress(Damaged):
        own.update(store.ids())  # libgit2 may read more of a damaged index
    return frozenset(oid for oid in own - elsewhere if store.is_sound(oid))


def _packed(store: Repository, source: Path, oids: frozenset[str], name: str) -> Path:
    """Write objects into a pack beside those of the repository. Raises Damaged if one of them is not what it should."""
    pack = store.path / "objects" / f"{_SCRATCH}-{name}.pack"
    if copy_objects(source, sorted(oids), pack) != oids:
        raise Damaged(f"{source}: objects came out of it with other ids")
    return pack


def _kept(store: Repository, oids: frozenset[str]) -> list[Path]:
    """Write sound objects of damaged packs into packs of their own."""
    if not oids:
        return []
    with suppress(Damaged):
        return [_packed(store, store.path, oids, "kept")]
    # Git itself stumbles over the damage: it reads what lies around an object, too. So they are read one by one.
    packs: list[Path] = []
    waiting = Pack(store.path)
    for oid in sorted(oids):
        store.add_to(waiting, oid)
        if waiting.bytes > _PACKED_AT_ONCE:
            packs.append(_written(store, waiting, len(packs)))
            waiting = Pack(store.path)
    return [*packs, _written(store, waiting, len(packs))] if len(waiting) else packs


def _written(store: Repository, pack: Pack, number: int) -> Path:
    path = store.path / "objects" / f"{_SCRATCH}-kept-{number}.pack"
    pack.write(path)
    git_command.index_pack(path)
    return path


def _put_aside(path: Path, damage: Damage) -> Path | None:
    """Move the damaged files to a folder of their own; return that, None if there are none."""
    names = [f"{_PACKS}/{name}{kind}" for name in sorted(damage.packs) for kind in _PACK_KINDS]
    names += [str(file.relative_to(path)) for file in sorted(damage.files)]
    moved = [name for name in names if (path / name).exists()]
    if not moved:
        return None
    aside = path / ASIDE / compact_time(now())
    for name in moved:
        target = aside / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (path / name).rename(target)
        sync_folder(target.parent)
        sync_folder((path / name).parent)
    return aside


def _is_sound_file(path: Path, oid: str) -> bool:
    """Return whether the file of a single object unpacks to the bytes that its id names."""
    digest, stream = hashlib.sha1(usedforsecurity=False), zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while not stream.eof and (data := stream.unconsumed_tail or file.read(_READ_AT_ONCE)):
                digest.update(stream.decompress(data, _READ_AT_ONCE))
    except (OSError, zlib.error):
        return False
    return stream.eof and digest.hexdigest() == oid
