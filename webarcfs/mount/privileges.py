"""From root to the archive's owner, once it is mounted: git refuses repositories of somebody else, and so do we.

What only root can do, unmounting, is left to a process of its own that does nothing else (`Keeper`). Both are set up
before there are threads.
"""

from __future__ import annotations

import os
import pwd
import signal
from pathlib import Path

from webarcfs.archive.errors import WebarcError
from webarcfs.mount import mountpoint


def become(uid: int, gid: int) -> None:
    """Make the whole process, all its threads, run as this user for good."""
    try:
        user = pwd.getpwuid(uid)
        os.initgroups(user.pw_name, gid)
        os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)
    except KeyError:  # a number without a name, as in containers
        os.setgroups([gid])
        os.environ.update(HOME="/")
    os.setgid(gid)
    os.setuid(uid)


class Keeper:
    """A process of root's that waits to be told to unmount `point`, and ends when its parent does."""

    def __init__(self, point: Path) -> None:
        read, self._write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _keep(point, read)
        os.close(read)

    def unmount(self) -> None:
        """Have it unmounted, detached if it is busy; returns when that is done."""
        os.write(self._write, b"u")
        self.close()

    def close(self) -> None:
        """Let the process go."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1
            os.waitpid(self._pid, 0)


def _keep(point: Path, read: int) -> None:
    """All that the process does. It keeps no descriptor of its parent's but the pipe, and no terminal's signals."""
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(read, 3)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        if os.read(3, 1) == b"u":
            mountpoint.unmount_or_detach(point)
        status = 0
    except WebarcError:
        pass  # the mount's own process sees that it is still mounted
    finally:
        os._exit(status)
