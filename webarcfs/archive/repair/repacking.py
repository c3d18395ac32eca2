"""Maintains a repository without blocking others: packs, refs, the commit-graph, remains of crashes.

Nothing here drops an object: a geometric repack keeps all objects in the packs that it merges, referenced or not, and
removes loose objects only if a pack has them. So readers and writers may work meanwhile; libgit2 looks for new packs
when it does not find an object in the known ones. There is no `-a`, and no multi-pack-index: geometric repacking keeps
the number of packs logarithmic.

A repack trusts the file system to keep new packs before it loses old ones, as ext4, xfs and btrfs do.
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from webarcfs.archive.git import git_command
from webarcfs.archive.system.files import sync_folder

#: Most refs with a file of their own: each crawl makes one, and main moves with each.
LOOSE_REFS = 50
#: Seconds after which a half-written object is abandoned: git writes one within moments.
STALE = 3600.0
#: The commit-graph: a file, or a folder with parts.
GRAPHS = ("objects/info/commit-graph", "objects/info/commit-graphs")
#: A pack has so many times the objects of the next smaller one at least.
_FACTOR = 2
#: Where an index of packs has the number of its objects: behind its head, the last of 256 counts.
_COUNT_AT = 8 + 255 * 4
#: Nanoseconds by which times of files may be wrong among each other.
_TICK = 10**8
_SCRATCH = (
    "objects/pack/tmp_*",
    "objects/pack/.tmp-*",
    "objects/tmp_*",
    "objects/streamed_*",
    "objects/??/tmp_obj_*",
    "fast_import_crash_*",
)


def is_packed(repository: Path) -> bool:
    """Return whether `repack` would change nothing: no object is loose, and each pack is twice the next at least.

    Most hosts that only give resources are so from one maintenance to the next.
    """
    with os.scandir(repository / "objects") as scan:
        if any(len(entry.name) == len("00") for entry in scan):
            return False
    try:
        counts = sorted(_objects_in(path) for path in (repository / "objects" / "pack").glob("*.idx"))
    except (OSError, struct.error):
        return False
    return all(large >= _FACTOR * small for small, large in pairwise(counts))


def _objects_in(index: Path) -> int:
    """Return how many objects a pack has, by its index (gitformat-pack(5), version 2)."""
    with index.open("rb", buffering=0) as file:
        file.seek(_COUNT_AT)
        count: int = struct.unpack(">I", file.read(4))[0]
        return count


def has_graph(repository: Path) -> bool:
    """Return whether the commit-graph was written after the last ref moved. In doubt it was not.

    Refs move by new files, so their folders tell it. In one tick of the clock the order is not known, nor where the
    clock was set back since.
    """
    try:
        written = max(_changed_at(repository / name) for name in GRAPHS)
        folders = [Path(folder) for folder, _, _ in os.walk(repository / "refs")]
        moved = max(_changed_at(path) for path in (repository / "packed-refs", *folders))
    except OSError:
        return False
    return moved + _TICK < written <= time.time_ns()


def _changed_at(path: Path) -> int:
    """Return when a file or folder changed, in nanoseconds; 0 without it. Raises OSError."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def repack(repository: Path) -> None:
    """Merge small packs and loose objects into larger packs, each at least twice the next (git-repack(1)).

    Raises OSError on a full disk, Damaged for an unreadable object; the repository is unchanged then.
    """
    # Many small crawls leave many small packs, and each look-up searches them all.
    settings = ["-c", "pack.threads=1", "-c", "pack.windowMemory=64m"]
    arguments = ["repack", f"--geometric={_FACTOR}", "-d", "-n", "--quiet"]
    done = git_command.run([*settings, *arguments], repository, check=False)
    if done.returncode:
        git_command.fail(f"{repository} was not repacked", done.stderr, repository)


def has_many_refs(repository: Path) -> bool:
    """Return whether so many refs have a file of their own that they should be packed."""
    return sum(len(files) for _, _, files in os.walk(repository / "refs")) > LOOSE_REFS


def pack_refs(repository: Path) -> None:
    """Put all refs into one file (git-pack-refs(1)). No ref may move meanwhile.

    Raises OSError on a full disk, Damaged if git fails.
    """
    # Twice: after a power cut the single refs might be gone, and the new file not be there yet. So they are removed
    # only when it is durable.
    for step in ("--no-prune", "--prune"):
        done = git_command.run(["pack-refs", "--all", step], repository, check=False)
        if done.returncode:
            git_command.fail(f"{repository}: its refs were not packed", done.stderr, repository)
        sync_folder(repository)


def write_graph(repository: Path) -> None:
    """Write the commit-graph, with the paths that each commit changed: they make `git log -- PATH` fast.

    Its time is that before git reads the refs, so one that moves meanwhile is newer.

    Raises OSError on a full disk, Damaged for an unreadable commit.
    """
    arguments = ["commit-graph", "write", "--reachable", "--changed-paths", "--no-progress"]
    begun = time.time_ns()
    done = git_command.run(arguments, repository, check=False)
    if done.returncode:
        git_command.fail(f"{repository} got no commit-graph", done.stderr, repository)
    for name in GRAPHS:
        with suppress(FileNotFoundError):  # without a commit there is none
            os.utime(repository / name, ns=(begun, begun))


def graph_is_sound(repository: Path) -> bool:
    """Return whether the commit-graph agrees with the commits, or is absent (git-commit-graph(1))."""
    if not any((repository / name).exists() for name in GRAPHS):
        return True
    return not git_command.run(["commit-graph", "verify", "--no-progress"], repository, check=False).returncode


def stale_files(repository: Path) -> list[Path]:
    """Return unfinished objects of a crash an hour or more ago; `git_command.left_locks` finds locks."""
    paths = {path for pattern in _SCRATCH for path in repository.glob(pattern)}
    return sorted(path for path in paths if is_stale(path))


def is_stale(path: Path) -> bool:
    """Return whether a file was not written to for so long that no process can still be writing it."""
    try:
        return time.time() - path.stat().st_mtime > STALE
    except FileNotFoundError:
        return False
