"""Runs the git command, for the store and the modules that write for it.

Never a hook and never another user's configuration file: the archive's repositories may belong to another user.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.system import deadline

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

    Raises Damaged for a blob that cannot be read.
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
                    deadline.check()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise Damaged(f"{path}: blob {blob} cannot be read: {reason(complaint)}")


def fail(what: str, complaint: bytes, path: Path | None) -> NoReturn:
    """Raise the error for git's message about the repository `path`: OSError for a full disk, Busy for an existing
    lock, else Damaged.
    """
    for number in (errno.ENOSPC, errno.EDQUOT):
        if os.strerror(number).encode() in complaint:
            raise OSError(number, f"{what}: {os.strerror(number)}")
    if path is not None and _is_full(path):  # git says just "couldn't write" in places
        raise OSError(errno.ENOSPC, f"{what}: {os.strerror(errno.ENOSPC)}")
    lock = lock_in_the_way(complaint)
    if lock is not None:
        raise Busy(
            f"{what}: {path / lock if path else lock} is in the way; the git that made it is still at work, or was"
            " killed: when nobody holds it, the next try removes it, or `webarc-agent recover`"
        )
    advice = "; `webarc-agent recover` mends it, where it can" if _SMALL_FILES.search(complaint) else ""
    raise Damaged(f"{what}: {reason(complaint)}{advice}")


def lock_in_the_way(complaint: bytes) -> Path | None:
    """Return the lock file in git's message as git wrote it: it may be relative to the repository."""
    match = _LOCK_IN_THE_WAY.search(complaint)
    return Path(os.fsdecode(match[1])) if match else None


def _is_full(path: Path) -> bool:
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
