"""Finds locks that a killed git left in a repository, as opposed to those that a git holds.

git holds a lock as a file `<guarded file>.lock`, and the next git fails as long as that exists. It does not contain the
process id. So a lock counts as left if it existed before all processes were examined, and none of them can be its
holder: no git works in the repository, and no process has the file open. Where that is unknown, since processes of
other users cannot be seen or examined, a lock is left if it was not touched for long.
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
    "packed-refs.new",  # becomes packed-refs; only the holder of packed-refs.lock makes it
    "refs/**/*.lock",
    "objects/info/*.lock",
    "objects/info/commit-graphs/*.lock",
    "objects/pack/*.lock",
)
#: Seconds after which a lock counts as left in any case: git holds those of refs for milliseconds, those of packs and
#: graphs as long as it takes to write them.
_REFS_LOCK = 60.0
_LOCK = 3600.0
_SHORT = ("packed-refs.lock", "packed-refs.new", "HEAD.lock")
_PROC = Path("/proc")
#: Identity of a lock file, so that one made again meanwhile is another.
_Identity = tuple[int, int, int]


def left(repository: Path) -> list[Path]:
    """Return the locks in a repository that no process holds. Without locks, it reads a few folders only."""
    found = {path: identity for path in _locks(repository) if (identity := _identity(path)) is not None}
    if not found:
        return []
    # The makers of these locks are dead by now, or among the processes that are examined next.
    held = _held(repository.resolve(), found)
    return sorted(path for path in found if (path not in held or _is_old(repository, path)) and _is(path, found[path]))


def remove(repository: Path) -> list[Path]:
    """Remove the left locks; return those that existed. Raises OSError.

    No process can make one again before it is removed, since only one at a time removes them.
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


# -- possible holders --------------------------------------------------------------------------------------------------


def _held(repository: Path, locks: Mapping[Path, _Identity]) -> set[Path]:
    """Return the locks that may be held: all, if a git works in the repository or some processes are hidden."""
    if not os.access(_PROC / "1/stat", os.R_OK):  # proc(5), hidepid
        return set(locks)
    by_file = {identity[:2]: path for path, identity in locks.items()}
    shared = (repository / "worktrees").is_dir()  # then a git in any folder may work on it (git-worktree(1))
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
    """Return whether a git may work in a repository: by its folder, arguments or environment."""
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
    """Yield device and inode of the files that a process has open, as far as they are readable."""
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
