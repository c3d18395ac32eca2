"""Mount points: checks before mounting, the mount table, and unmounting with the system's own commands.

No state, no threads of its own; called by the commands and by the thread of a mount that waits for signals.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

from webarcfs.archive.model.errors import Busy, MountFailed

#: The type of a webarcfs mount in the mount table.
TYPE = "fuse.webarcfs"
#: The kernel's folder of FUSE connections, if fusectl is mounted there.
CONNECTIONS = Path("/sys/fs/fuse/connections")
_ESCAPE = re.compile(r"\\([0-7]{3})")


def check(point: Path, archive: Path) -> None:
    """Raise MountFailed with a remedy unless an archive can be mounted on `point` (absolute, links resolved)."""
    try:
        os.statvfs(point)  # a request to the serving process; the kernel may have the rest in its caches
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
    if _is_inside(point, archive):
        raise MountFailed(f"the mount point {point} would hide a part of the archive {archive}; give one outside of it")


def _is_inside(point: Path, archive: Path) -> bool:
    """Return whether a folder belongs to an archive, by its path or as the same folder elsewhere (mount --bind)."""
    root = Path(os.path.realpath(archive))
    if point.is_relative_to(root):
        return True
    itself = point.stat()
    with os.scandir(root) as entries:
        folders = [root, *(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))]
    return any(os.path.samestat(itself, folder.stat()) for folder in folders)


def is_stale(point: Path) -> bool:
    """Return whether a mount point's process is gone, so that every access fails with ENOTCONN."""
    try:
        os.statvfs(point)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def mounted(point: Path) -> str | None:
    """Return the type of the topmost file system on `point`; None if nothing is mounted."""
    mount = _found(point)
    return mount[0] if mount else None


def resolved(point: str) -> Path:
    """Return the mount point with links resolved, without a request to the mount, which may hang."""
    absolute = Path(os.path.abspath(point))  # noqa: PTH100 # without a request to it
    beside = Path(os.path.realpath(absolute.parent)) / absolute.name
    for path in (absolute, beside):
        if mounted(path) is not None:
            return path
    return Path(os.path.realpath(point))


def abort_file(point: Path) -> Path:
    """Return the kernel's file that aborts the connection of the FUSE mount on `point` when it is written to.

    Raises MountFailed if there is no such mount, or fusectl is not mounted.
    """
    mount = _found(point)
    if mount is None or not mount[0].startswith("fuse"):
        raise MountFailed(f"no FUSE file system is mounted on {point}")
    file = CONNECTIONS / mount[1] / "abort"
    if not file.exists():
        raise MountFailed(
            f"connection {mount[1]} of {point} is not in {CONNECTIONS}; as root: `mount -t fusectl none {CONNECTIONS}`"
        )
    return file


def abort(point: Path) -> None:
    """Abort the connection of a mount that hangs: every waiting process gets an error. Raises MountFailed."""
    if os.geteuid() == 0 and not has_fusectl() and connection(point) is not None:
        force(point)
        return
    file = abort_file(point)
    try:
        file.write_bytes(b"1")
    except OSError as error:
        raise MountFailed(f"{point} cannot be aborted: {error.strerror}; do it as the user who mounted it") from None


def has_fusectl() -> bool:
    """Return whether the kernel's folder of FUSE connections is mounted."""
    return os.path.ismount(CONNECTIONS)


def connection(point: Path) -> str | None:
    """Return the number of the connection of the topmost mount on `point`; None if that is none of FUSE."""
    mount = _found(point)
    return mount[1] if mount is not None and mount[0].startswith("fuse") else None


def force(point: Path) -> None:
    """Abort a connection by a forced unmount, as root may without fusectl (umount2(2), MNT_FORCE).

    A mount that processes wait in stays, as busy, and is stale then; one that nobody uses is unmounted.
    """
    subprocess.run(["umount", "--internal-only", "--force", "--", str(point)], capture_output=True, check=False)


def _found(point: Path) -> tuple[str, str] | None:
    """Return type and minor device number of the topmost mount on `point`; FUSE numbers connections by the latter."""
    mount = None
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        fields, _, rest = line.partition(" - ")
        _, _, device, _, where, *_ = fields.split(" ")
        if _unescape(where) == str(point):
            mount = rest.split(" ")[0], device.partition(":")[2]
    return mount


def unmount(point: Path, *, lazy: bool = False) -> None:
    """Unmount. `lazy` detaches a busy mount; otherwise raises Busy, but detaches a stale one, which serves no process.

    Raises MountFailed for any other reason.
    """
    command = _unmount_command() + (["-l" if os.geteuid() == 0 else "-z"] if lazy else [])
    done = subprocess.run(
        [*command, "--", str(point)], env=os.environ | {"LC_ALL": "C"}, capture_output=True, check=False
    )
    if done.returncode == 0:
        return
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = lines[-1] if lines else f"{command[0]} ended with {done.returncode}"
    if "busy" in reason:
        if not lazy and is_stale(point):
            unmount(point, lazy=True)
            return
        raise Busy(f"{point} is busy; `fuser -vm {point}` shows who uses it, `umount.webarcfs -l {point}` detaches it")
    raise MountFailed(f"{point} cannot be unmounted: {reason}")


def unmount_or_detach(point: Path) -> None:
    """Unmount; detach a busy mount."""
    try:
        unmount(point)
    except Busy:
        unmount(point, lazy=True)


def _unmount_command() -> list[str]:
    if os.geteuid() == 0:
        return ["umount", "--internal-only"]  # without umount.webarcfs
    return [shutil.which("fusermount3") or "fusermount", "-u"]


def _clearing(point: Path) -> str:
    return f"umount -l {point}" if os.geteuid() == 0 else f"fusermount -uz {point}"


def _unescape(text: str) -> str:
    raw = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
    return raw if raw.isascii() else raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
