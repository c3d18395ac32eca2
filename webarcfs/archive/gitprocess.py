"""Runs the git command; only store.py and importer.py call it.

Never a hook and never a configuration file of somebody else: the archive's repositories may belong to another user.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from webarcfs.archive.errors import Damaged

#: How every git command starts.
GIT = ("git", "-c", "core.hooksPath=/dev/null")


@cache
def environment() -> dict[str, str]:
    """The environment of every git command: messages in English, no settings but the repository's own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {"LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def run(
    arguments: Sequence[str],
    path: Path | None = None,
    stdin: bytes = b"",
    *,
    check: bool = True,
    stdout: int = subprocess.PIPE,
) -> subprocess.CompletedProcess[bytes]:
    """Run `git <arguments>` in `path`. With `check`, raises OSError on a full disk and Damaged on other failures."""
    done = subprocess.run(
        [*GIT, *arguments],
        cwd=path,
        env=environment(),
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )
    if check and done.returncode:
        fail(f"git {arguments[0]} failed{f' in {path}' if path else ''}", done.stderr)
    return done


def fail(what: str, stderr: bytes) -> None:
    """Raise what git's complaint means: OSError(ENOSPC, EDQUOT) for a full disk, else Damaged."""
    for number in (errno.ENOSPC, errno.EDQUOT):
        if os.strerror(number).encode() in stderr:
            raise OSError(number, f"{what}: {os.strerror(number)}")
    raise Damaged(f"{what}: {last_line(stderr)}")


def last_line(message: bytes) -> str:
    """The last line of what git said."""
    lines = message.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
