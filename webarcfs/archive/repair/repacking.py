"""Keeps a repository quick without keeping anybody from it: packs, refs, the commit-graph, what crashes left.

Nothing here drops an object: a geometric repack takes along whatever lies in the packs that it rolls up, referenced or
not, and loose objects go only where a pack has them. So readers and writers may be at work meanwhile; libgit2 looks for
new packs when it does not find an object in those that it knows. There is no `-a`, and no multi-pack-index: geometric
repacking keeps the number of packs logarithmic.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from webarcfs.archive.git import git_command
from webarcfs.archive.system.fsync import sync_folder

#: So many refs may have a file of their own: each crawl makes one, and main moves with each.
LOOSE_REFS = 50
#: Seconds after which a half-written object is nobody's any more: git is at one for moments.
STALE = 3600.0
#: Where the commit-graph is: a file, or a folder with parts.
GRAPHS = ("objects/info/commit-graph", "objects/info/commit-graphs")
_SCRATCH = (
    "objects/pack/tmp_*",
    "objects/pack/.tmp-*",
    "objects/tmp_*",
    "objects/??/tmp_obj_*",
    "fast_import_crash_*",
)


def repack(repository: Path) -> None:
    """Roll small packs and loose objects up into larger packs, each at least twice the next (git-repack(1)).

    Raises OSError on a full disk, Damaged where an object cannot be read; the repository is as it was then.
    """
    # Many small crawls leave many small packs, and each look-up asks them all.
    arguments = ["-c", "pack.threads=1", "-c", "pack.windowMemory=64m"]
    done = git_command.run([*arguments, "repack", "--geometric=2", "-d", "--quiet"], repository, check=False)
    if done.returncode:
        git_command.fail(f"{repository} was not repacked", done.stderr, repository)


def has_many_refs(repository: Path) -> bool:
    """Whether so many refs have a file of their own that they should be packed."""
    return sum(len(files) for _, _, files in os.walk(repository / "refs")) > LOOSE_REFS


def pack_refs(repository: Path) -> None:
    """Put all refs into one file (git-pack-refs(1)). No ref may move meanwhile.

    Raises OSError on a full disk, Damaged where git cannot.
    """
    # Twice: after a power cut the names of single refs may be gone, and that of the new file not be there yet. So they
    # go only when it is there for good.
    for step in ("--no-prune", "--prune"):
        done = git_command.run(["pack-refs", "--all", step], repository, check=False)
        if done.returncode:
            git_command.fail(f"{repository}: its refs were not packed", done.stderr, repository)
        sync_folder(repository)


def write_graph(repository: Path) -> None:
    """Write the commit-graph, with the paths that each commit changed: `git log -- PATH` is quick by it.

    Raises OSError on a full disk, Damaged where a commit cannot be read.
    """
    arguments = ["commit-graph", "write", "--reachable", "--changed-paths", "--no-progress"]
    done = git_command.run(arguments, repository, check=False)
    if done.returncode:
        git_command.fail(f"{repository} got no commit-graph", done.stderr, repository)


def graph_is_sound(repository: Path) -> bool:
    """Whether the commit-graph says what the commits say, or there is none (git-commit-graph(1))."""
    if not any((repository / name).exists() for name in GRAPHS):
        return True
    return not git_command.run(["commit-graph", "verify", "--no-progress"], repository, check=False).returncode


def stale_files(repository: Path) -> list[Path]:
    """Unfinished objects that a crash left, an hour ago or longer; of locks `leftlocks` judges."""
    found = {path for pattern in _SCRATCH for path in repository.glob(pattern)}
    return sorted(path for path in found if is_stale(path))


def is_stale(path: Path) -> bool:
    """Whether nothing was written to a file for so long that nobody can be at it any more."""
    try:
        return time.time() - path.stat().st_mtime > STALE
    except FileNotFoundError:
        return False
