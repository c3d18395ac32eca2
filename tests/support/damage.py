"""Damages objects of git, as a disk does.

A damaged pack gets another name: libgit2 shares a pack among all who open its path in a process, and would read on what
was there before.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path


def damage_object(repository: Path, *oids: str) -> None:
    """Damage objects in their own bytes; they are in one pack, or each in a file of its own."""
    loose = [path for oid in oids if (path := repository / "objects" / oid[:2] / oid[2:]).exists()]
    for path in loose:
        _spoil(path, path, [(0, path.stat().st_size)])
    if not loose:
        places = [next(_places(repository, oid)) for oid in oids]
        (path,) = {path for path, _, _ in places}
        damaged = path.with_name(f"pack-{secrets.token_hex(20)}.pack")
        _spoil(path, damaged, [(at, size) for _, at, size in places])
        path.with_suffix(".idx").rename(damaged.with_suffix(".idx"))


def _spoil(path: Path, damaged: Path, places: list[tuple[int, int]]) -> None:
    content = bytearray(path.read_bytes())
    for at, size in places:
        for place in range(at + size // 4, at + size):
            content[place] = 0xFF
    path.unlink()
    damaged.write_bytes(content)


def _places(repository: Path, oid: str) -> Iterator[tuple[Path, int, int]]:
    """Yield where an object is in packs, and how long."""
    for index in (repository / "objects/pack").glob("*.idx"):
        done = subprocess.run(["git", "verify-pack", "-v", index], check=False, capture_output=True, text=True)
        for words in map(str.split, done.stdout.splitlines()):
            if words[:1] == [oid]:
                yield index.with_suffix(".pack"), int(words[4]), int(words[3])
