"""Mount points: whether one can be mounted on, what is mounted, and unmounting it with the system's own commands.

No state, no threads of its own; used by the commands and by the thread of a mount that waits for signals.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

from webarcfs.archive.errors import Busy, MountFailed

#: The type that the mount table shows for a webarcfs mount.
TYPE = "fuse.webarcfs"
_ESCAPE = re.compile(r"\\([0-7]{3})")


def check(point: Path, archive: Path) -> None:
    """Raise MountFailed, with what to do, unless an archive can be mounted on `point` (absolute, links resolved)."""
    try:
        os.statvfs(point)  # asks whoever serves it; the kernel may know the rest by heart
        is_folder = (point.stat().st_mode & 0o170000) == 0o040000
    except FileNotFoundError:
        raise MountFailed(f"the mount point {point} does not exist; make it with `mkdir {point}`") from None
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            raise MountFailed(
                f"{point} is a stale mount point, its process is gone; clear it with `{_clearing(point)}`"
            ) from None
        raise MountFailed(f"the mount point {point} cannot be used: {error.strerror}") from None
    if not is_folder:
        raise MountFailed(f"the mount point {point} is not a folder; give one that is")
    if mounted(point) == TYPE:
        raise MountFailed(f"{point} is already mounted; unmount it first with `umount.webarcfs {point}`")
    if archive.is_relative_to(point):
        raise MountFailed(f"the mount point {point} would hide the archive {archive} from its own mount; give another")


def mounted(point: Path) -> str | None:
    """Type of the file system mounted on `point`, the topmost one; None when nothing is."""
    found = None
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        fields, _, rest = line.partition(" - ")
        if _unescape(fields.split(" ")[4]) == str(point):
            found = rest.split(" ")[0]
    return found


def unmount(point: Path, *, lazy: bool = False) -> None:
    """Unmount. `lazy` detaches what is busy; otherwise raises Busy for it. Raises MountFailed for any other reason."""
    command = _unmount_command() + (["-l" if os.geteuid() == 0 else "-z"] if lazy else [])
    done = subprocess.run(
        [*command, "--", str(point)], env=os.environ | {"LC_ALL": "C"}, capture_output=True, check=False
    )
    if done.returncode == 0:
        return
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = said[-1] if said else f"{command[0]} ended with {done.returncode}"
    if "busy" in reason:
        raise Busy(f"{point} is busy; `fuser -vm {point}` shows who uses it, `umount.webarcfs -l {point}` detaches it")
    raise MountFailed(f"{point} cannot be unmounted: {reason}")


def unmount_or_detach(point: Path) -> None:
    """Unmount, and detach what is busy."""
    try:
        unmount(point)
    except Busy:
        unmount(point, lazy=True)


def _unmount_command() -> list[str]:
    if os.geteuid() == 0:
        return ["umount", "--internal-only"]  # not by way of umount.webarcfs
    return [shutil.which("fusermount3") or "fusermount", "-u"]


def _clearing(point: Path) -> str:
    return f"umount -l {point}" if os.geteuid() == 0 else f"fusermount -uz {point}"


def _unescape(text: str) -> str:
    raw = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
    return raw if raw.isascii() else raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
