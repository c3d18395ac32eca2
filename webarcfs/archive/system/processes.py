"""Processes: whether one runs and which one it is, privileges, systemd, signals.

A process is identified by its id and start time, since the kernel reuses process ids (proc(5)).

In a server's process, root becomes the archive's owner after it has done what only root can do: mounting, and binding
of low ports. Git refuses repositories of another user, and so do mount and reading room. No state.

systemd is notified of the service's state by the protocol of sd_notify(3), a datagram to the socket in NOTIFY_SOCKET.
Without that variable nothing is sent. Errors of the socket are ignored: the service continues.

A service records signals without loss, and waits for them without polling (set_wakeup_fd).
"""

from __future__ import annotations

import contextlib
import grp
import importlib
import os
import pwd
import resource
import select
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from webarcfs.archive.model.errors import UsageError

# == privileges =======================================================================================================


#: Modules that Python imports on first use only.
_LATER = ("_strptime", "concurrent.futures.thread", "encodings.idna", "linecache", "lxml.etree", "traceback")


def allow_many_files() -> None:
    """Raise the limit of open files to the hard limit: each file that is being written takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def become(uid: int, gid: int) -> None:
    """Switch the whole process, all its threads, to this user for good."""
    for name in _LATER:  # this user may not be allowed to read Python's folder
        importlib.import_module(name)
    try:
        user = pwd.getpwuid(uid)
        os.initgroups(user.pw_name, gid)
        os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)
    except KeyError:  # a number without a name, common in containers
        os.setgroups([gid])
        os.environ.update(HOME="/")
    os.setgid(gid)
    os.setuid(uid)


def become_owner(folder: Path) -> None:
    """Switch to the owner of a folder, if this is root: git opens no repositories of others."""
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        become(owner.st_uid, owner.st_gid)


def group(name: str) -> int:
    """Return the number of a group, given by name or number. Raises UsageError for an unknown name."""
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(f"there is no group {name!r}; `getent group` lists them") from None


# == processes ========================================================================================================


def lives(process: int) -> bool:
    """Return whether a process runs. A killed one is a zombie as long as one of its threads is stuck."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
    except OSError:
        return False
    return state not in ("Z", "X")


# == systemd ==========================================================================================================


def notify(*lines: str) -> None:
    """Send lines such as `READY=1` and `STATUS=…` in one datagram."""
    name = os.environ.get("NOTIFY_SOCKET")
    if not name or name[0] not in "/@":
        return
    address = "\0" + name[1:] if name[0] == "@" else name
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), address)


def reloading() -> None:
    """Notify systemd of a reload of the settings. systemd requires the monotonic time, and READY=1 afterwards."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def watchdog_seconds() -> float | None:
    """Return the interval for WATCHDOG=1: half of WATCHDOG_USEC; None if systemd does not watch this process."""
    pid = os.environ.get("WATCHDOG_PID", "")
    usec = os.environ.get("WATCHDOG_USEC", "")
    if not usec.isdecimal() or int(usec) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 2_000_000


def journal() -> bool:
    """Return whether stderr is the journal, which adds times to lines itself and parses `<priority>`."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    try:
        info = os.fstat(2)
    except OSError:
        return False
    return stream == f"{info.st_dev}:{info.st_ino}"


# == processid ========================================================================================================


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified by its id and its start time (clock ticks since boot)."""

    pid: int
    ticks: int

    @classmethod
    def current(cls) -> Process:
        """Return the current process."""
        return cls(os.getpid(), _ticks(os.getpid()) or 0)

    def runs(self) -> bool:
        """Return whether it is alive: it exists with the same start time, and is no zombie."""
        return self.pid > 0 and _ticks(self.pid) == self.ticks


def _ticks(pid: int) -> int | None:
    """Return the start time of a live process; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


# == signals ==========================================================================================================


_TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class Signals:
    """A context manager for the main thread. `stop` after SIGTERM or SIGINT; SIGHUP asks to read the settings again."""

    def __init__(self) -> None:
        self.stop = False
        self._reload = False
        self._read, self._write = -1, -1
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {signum: signal.signal(signum, self._note) for signum in _TAKEN}
        return self

    def __exit__(self, *exc: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)

    def take_reload(self) -> bool:
        """Return whether SIGHUP arrived since the last call."""
        asked, self._reload = self._reload, False
        return asked

    def wait(self, seconds: float) -> None:
        """Sleep until a signal arrives, SIGCHLD included, or the time has passed."""
        select.select([self._read], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                pass

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self.stop = True
        elif number == signal.SIGHUP:
            self._reload = True
