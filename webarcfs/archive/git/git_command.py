"""Runs the git command, and cares for what it leaves in a repository: locks of killed gits, names that are not synced.

It never runs a hook and never reads another user's configuration file: the archive's repositories may belong to another
user.

git holds a lock as a file `<guarded file>.lock`, and the next git fails as long as that exists. It does not contain the
process id. So a lock counts as left by a killed git if it existed before all processes were examined, and none of them
can be its holder: no git works in the repository, and no process has the file open. Where that is unknown, since
processes of other users cannot be seen or examined, a lock is left if it was not touched for long.

With `core.fsync=all` git syncs a file's content before it gets a name, but never a folder; file systems with an ordered
journal keep the order of names by themselves, others may show a ref after a power cut without the object it names. So
the folders are synced here: those of objects before a ref moves, those of refs before the move is reported. Without
changes this costs next to nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.system import clocks
from webarcfs.archive.system.files import sync_folder

# == git command ======================================================================================================


#: Seconds between two looks at a process that is copying.
_LOOK = 0.2
_NEXT_TO_NOTHING = 1 << 16  # bytes
_LOCK_IN_THE_WAY = re.compile(rb"Unable to create '([^'\n]+\.lock)': File exists")
#: Git's messages for a repository with damaged HEAD, settings or refs.
_SMALL_FILES = re.compile(
    rb"not a git repository|bad (numeric |boolean )?config|packed-refs|(bad|broken) ref|not a valid ref"
)
#: The beginning of every git command. Git 3 accepts a bare repository only with this setting.
GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=all")
#: The formats of a new repository, those that libgit2 reads: git 3 would use SHA-256 and reftable. git-init(1)
_FORMATS = {"GIT_DEFAULT_HASH": "sha1", "GIT_DEFAULT_REF_FORMAT": "files"}


@cache
def environment() -> dict[str, str]:
    """Return the environment of every git command: English messages, only the repository's settings, our formats."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | _FORMATS | {"LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


#: What `Git-Protocol` may say.
_PROTOCOL = re.compile(r"version=[0-9]", re.ASCII)


def upload_pack(
    path: Path, protocol: str, hidden: Iterable[str], *, is_advertising: bool
) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of what answers a fetch over HTTP (gitprotocol-http(5)), by stdin and stdout.

    `hidden` are prefixes of refs that it does not show. A client may leave blobs out, and ask for any object.
    """
    options = ["uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true"]
    options += [f"uploadpack.hideRefs={prefix.rstrip('/')}" for prefix in hidden]
    words = [word for option in options for word in ("-c", option)]
    advertising = ["--http-backend-info-refs"] if is_advertising else []
    command = [*GIT, *words, "upload-pack", "--strict", "--stateless-rpc", *advertising, str(path)]
    spoken = {"GIT_PROTOCOL": protocol} if _PROTOCOL.fullmatch(protocol) else {}
    return command, environment() | spoken


def run(
    arguments: Sequence[str],
    path: Path | None = None,
    stdin: bytes = b"",
    *,
    check: bool = True,
) -> subprocess.CompletedProcess[bytes]:
    """Run `git <arguments>` in `path`. With `check`, raises OSError on a full disk, else Busy or Damaged."""
    done = subprocess.run(
        [*GIT, *arguments],
        cwd=path,
        env=environment(),
        input=stdin,
        capture_output=True,
        check=False,
    )
    if check and done.returncode:
        fail(f"git {arguments[0]} failed{f' in {path}' if path else ''}", done.stderr, path)
    return done


def copy_blob(blob: str, path: Path, fd: int) -> None:
    """Write a blob of the repository `path` to the descriptor `fd`. Ends with the deadline of the thread.

    Raises Damaged for a blob that cannot be read, BrokenPipeError where nobody reads `fd`.
    """
    command = [*GIT, "cat-file", "blob", blob]
    with subprocess.Popen(
        command, cwd=path, env=environment(), stdin=subprocess.DEVNULL, stdout=fd, stderr=subprocess.PIPE
    ) as process:
        try:
            while True:
                try:
                    _, complaint = process.communicate(timeout=_LOOK)
                    break
                except subprocess.TimeoutExpired:
                    clocks.check()
        except BaseException:
            process.kill()
            raise
    if process.returncode == -signal.SIGPIPE:
        raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))  # a BrokenPipeError
    if process.returncode:
        raise Damaged(f"{path}: blob {blob} cannot be read: {reason(complaint)}")


def pack_objects(repository: Path, listed: bytes, fd: int) -> None:
    """Write a pack of the objects whose ids are the lines of `listed` to `fd`. Raises OSError, Damaged."""
    command = [*GIT, "-c", "pack.windowMemory=64m", "pack-objects", "--stdout", "-q", "--threads=1"]
    done = subprocess.run(
        command, cwd=repository, env=environment(), input=listed, stdout=fd, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        fail(f"git pack-objects failed in {repository}", done.stderr, repository)


def index_pack(pack: Path) -> None:
    """Write the index of a pack beside it, from the objects in the pack. Raises OSError, Damaged."""
    index = pack.with_suffix(".idx")
    index.unlink(missing_ok=True)
    # In a repository git would compare them with those of the same names there, which may be damaged.
    done = run(["index-pack", "-o", str(index), str(pack)], Path("/"), check=False)
    if done.returncode:
        fail(f"git index-pack failed at {pack}", done.stderr, pack.parent)
    with index.open("rb") as file:
        os.fsync(file.fileno())


def fail(what: str, complaint: bytes, path: Path | None) -> NoReturn:
    """Raise the error for git's message about the repository `path`: OSError for a full disk, Busy for an existing
    lock, else Damaged.
    """
    for number in (errno.ENOSPC, errno.EDQUOT):
        if os.strerror(number).encode() in complaint:
            raise OSError(number, f"{what}: {os.strerror(number)}")
    if path is not None and is_full(path):  # git says just "couldn't write" in places
        raise OSError(errno.ENOSPC, f"{what}: {os.strerror(errno.ENOSPC)}")
    lock = lock_in_the_way(complaint)
    if lock is not None:
        raise Busy(
            f"{what}: {path / lock if path else lock} is in the way; the git that made it is still at work, or was"
            " killed: when nobody holds it, the next try removes it, or `webarc-agent recover`"
        )
    advice = "; `webarc-agent recover` repairs it, where it can" if _SMALL_FILES.search(complaint) else ""
    raise Damaged(f"{what}: {reason(complaint)}{advice}")


def lock_in_the_way(complaint: bytes) -> Path | None:
    """Return the lock file in git's message as git wrote it: it may be relative to the repository."""
    match = _LOCK_IN_THE_WAY.search(complaint)
    return Path(os.fsdecode(match[1])) if match else None


def is_full(path: Path) -> bool:
    """Return whether the disk of a path has next to no room."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _NEXT_TO_NOTHING or (disk.f_files > 0 and disk.f_favail == 0)


def reason(message: bytes) -> str:
    """Return the line with the reason in git's message: the first that begins with `fatal: `, else the last."""
    lines = message.decode("utf-8", "replace").strip().splitlines()
    fatal = (line for line in lines if line.startswith("fatal: "))
    return next(fatal, lines[-1] if lines else "no reason given")


# == leftlocks ========================================================================================================


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
#: Identity of a lock file, so that one that was recreated meanwhile is another.
_Identity = tuple[int, int, int]


def left_locks(repository: Path) -> list[Path]:
    """Return the locks in a repository that no process holds. Without locks, it reads a few folders only."""
    identities = {path: identity for path in _locks(repository) if (identity := _identity(path)) is not None}
    if not identities:
        return []
    # The makers of these locks are dead by now, or among the processes that are examined next.
    held = _held(repository.resolve(), identities)
    return sorted(
        path for path in identities if (path not in held or _is_old(repository, path)) and _is(path, identities[path])
    )


def remove_left_locks(repository: Path) -> list[Path]:
    """Remove the left locks; return those that existed. Raises OSError.

    No process can make one again before it is removed, since only one at a time removes them.
    """
    if not left_locks(repository):
        return []
    fd = os.open(repository, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        gone = left_locks(repository)
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
        held.update(by_file[identity] for identity in _open_files(process) if identity in by_file)
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
    git_folders = [
        word.partition(b"=")[2] for word in (*words, *settings) if word.startswith((b"--git-dir=", b"GIT_DIR="))
    ]
    git_folders += [after for word, after in pairwise(words) if word == b"--git-dir"]
    places = (folder, *((folder / os.fsdecode(git_folder)).resolve() for git_folder in git_folders))
    return any(place.is_relative_to(repository) for place in places)


def _open_files(process: Path) -> Iterator[tuple[int, int]]:
    """Yield device and inode of the files that a process has open, as far as they are readable."""
    try:
        files = list((process / "fd").iterdir())
    except OSError:
        return
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        yield stat.st_dev, stat.st_ino


# == durability =======================================================================================================


#: Nanoseconds by which the times of files may lag behind the clock.
_COARSE = 10**9


def sync_packs(repository: Path) -> None:
    """Sync the names of packs, and of folders for loose objects. Raises OSError."""
    _folders([repository / "objects", repository / "objects" / "pack"])


def sync_loose(repository: Path, oids: Iterable[str]) -> None:
    """Sync the names of these objects, if they are loose. Raises OSError."""
    _folders(repository / "objects" / prefix for prefix in {oid[:2] for oid in oids})


class LooseObjectsSince:
    """The names of objects that become loose from now on. Raises OSError.

    A folder counts as changed if its time differs, later or not: the clock may be set back meanwhile.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        now = time.time_ns()
        # A folder with the present time is left out: one more change would not alter its time.
        self._seen = {path: mtime for path, mtime in _loose(repository) if abs(now - mtime) > _COARSE}

    def sync(self) -> None:
        """Sync them. Raises OSError."""
        _folders(path for path, mtime in _loose(self._repository) if self._seen.get(path) != mtime)


def _loose(repository: Path) -> Iterator[tuple[Path, int]]:
    with os.scandir(repository / "objects") as scan:
        entries = [entry for entry in scan if len(entry.name) == 2]
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # a repack removed it
            yield Path(entry.path), entry.stat().st_mtime_ns


def sync_refs(repository: Path, names: Iterable[str]) -> None:
    """Sync refs that were moved, made or removed. Raises OSError."""
    _folders(sorted({repository, repository / "refs", *((repository / name).parent for name in names)}))


def _folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # git removes folders that become empty
            sync_folder(folder)
