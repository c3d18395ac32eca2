"""Locks that a git left in a repository when it was killed, told from those that a git holds.

git holds a lock as a file `<what it guards>.lock`, and whoever comes next fails as long as that is there. Its process's
number is not in it. So a lock is taken for left when it was there before all processes were looked at, and none of them
can be its holder: no git is at work in the repository, and nobody has the file open. Where that cannot be told, since
processes of others cannot be seen or looked into, it is left when nobody has touched it for long.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

_log = logging.getLogger(__name__)
_PATTERNS = (
    "*.lock",
    "packed-refs.new",  # what becomes packed-refs, made by whoever holds packed-refs.lock: nobody else can make one
    "refs/**/*.lock",
    "objects/info/*.lock",
    "objects/info/commit-graphs/*.lock",
    "objects/pack/*.lock",
)
#: Seconds after which a lock is nobody's, whoever may be there: git holds those of refs for milliseconds, those of
#: packs and graphs as long as it takes to write them.
_REFS_LOCK = 60.0
_LOCK = 3600.0
_SHORT = ("packed-refs.lock", "packed-refs.new", "HEAD.lock")
_PROC = Path("/proc")
#: Which file a lock is, so that one that was made anew meanwhile is another.
_Identity = tuple[int, int, int]


def left(repository: Path) -> list[Path]:
    """The locks in a repository that nobody holds. A look at a few folders where there is none."""
    found = {path: identity for path in _locks(repository) if (identity := _identity(path)) is not None}
    if not found:
        return []
    # From here on, whoever made them is dead, or among those that are looked at.
    held = _held(repository.resolve(), found)
    return sorted(path for path in found if (path not in held or _is_old(repository, path)) and _is(path, found[path]))


def remove(repository: Path) -> list[Path]:
    """Remove them; returns those that were there. Raises OSError.

    Nobody can make one of them anew before it is gone, since only one process at a time removes them.
    """
    if not left(repository):
        return []
    fd = os.open(repository, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        gone = left(repository)
        for path in gone:
            path.unlink(missing_ok=True)
            _log.warning("%s was left by a git that was killed; it is removed", path)
        return gone
    finally:
        os.close(fd)


def _locks(repository: Path) -> Iterator[Path]:
    for pattern in _PATTERNS:
        yield from repository.glob(pattern)


def _identity(path: Path) -> _Identity | None:
    try:
        stat = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns


def _is(path: Path, identity: _Identity) -> bool:
    return _identity(path) == identity


def _is_old(repository: Path, path: Path) -> bool:
    name = path.relative_to(repository)
    bound = _REFS_LOCK if name.parts[0] == "refs" or name.name in _SHORT else _LOCK
    try:
        return time.time() - path.stat().st_mtime > bound
    except FileNotFoundError:
        return False


# -- who may hold them -------------------------------------------------------------------------------------------------


def _held(repository: Path, locks: Mapping[Path, _Identity]) -> set[Path]:
    """Those that somebody may hold: all, where a git is at work in the repository or not everybody can be seen."""
    if not os.access(_PROC / "1/stat", os.R_OK):  # proc(5), hidepid
        return set(locks)
    by_file = {identity[:2]: path for path, identity in locks.items()}
    shared = (repository / "worktrees").is_dir()  # a git in any folder may work on it then (git-worktree(1))
    held = set[Path]()
    for process in _PROC.iterdir():
        if not process.name.isdecimal():
            continue
        if _is_git(process) and (shared or _works_in(process, repository)):
            return set(locks)
        held.update(by_file[each] for each in _open_files(process) if each in by_file)
    return held


def _is_git(process: Path) -> bool:
    try:
        return (process / "comm").read_bytes().startswith(b"git")
    except OSError:
        return False  # it has ended


def _works_in(process: Path, repository: Path) -> bool:
    """Whether a git may be at work in a repository: by its folder, or by what it was told."""
    try:
        folder = (process / "cwd").readlink()
        words = (process / "cmdline").read_bytes().split(b"\0")
        settings = (process / "environ").read_bytes().split(b"\0")
    except PermissionError:
        return True
    except OSError:
        return False  # it has ended
    told = [each.partition(b"=")[2] for each in (*words, *settings) if each.startswith((b"--git-dir=", b"GIT_DIR="))]
    told += [after for word, after in pairwise(words) if word == b"--git-dir"]
    places = (folder, *((folder / os.fsdecode(each)).resolve() for each in told))
    return any(place.is_relative_to(repository) for place in places)


def _open_files(process: Path) -> Iterator[tuple[int, int]]:
    """Device and number of the files that a process has open, as far as one may know."""
    try:
        files = list((process / "fd").iterdir())
    except OSError:
        return
    for each in files:
        try:
            stat = each.stat()
        except OSError:
            continue
        yield stat.st_dev, stat.st_ino
