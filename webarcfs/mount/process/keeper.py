"""A small process beside the mount's: it unmounts on request, and aborts the connection when the mount is killed.

Two tasks need another process. A mount that root started runs as the archive's owner and may not unmount any more. And
a mount may be killed while one of its threads waits inside the kernel: to invalidate a name that a reader has locked,
while that reader waits for the mount. The kernel cannot end that thread, so it does not close /dev/fuse, and all of
them wait for ever, unless another process aborts the connection. Where fusectl is not mounted, root alone can do that,
by a forced unmount.
The process is forked before any thread starts. It holds only its end of a socket, /dev/null and the handle of that
abort (which identifies this connection for good, whatever is mounted later), and ends after the mount's process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

from webarcfs.archive.model.errors import MountFailed, WebarcError
from webarcfs.archive.system.processes import lives
from webarcfs.mount.process import mountpoint

#: Seconds between two checks of the mount's process. Its socket closes with it, but not if a thread is stuck.
LOOK_EVERY = 1.0
#: Seconds that the threads of a killed process may take to end, one after the other.
ENDING = 0.2
_MOUNTED, _UNMOUNT, _DONE, _FAILED = b"m", b"u", b"d", b"f"


class Watchdog:
    """The mount's side of the keeper. One thread at a time may call its methods."""

    def __init__(self, point: Path) -> None:
        mine, its = socket.socketpair()
        parent = os.getpid()
        self._socket = mine
        self._pid = os.fork()
        if self._pid == 0:
            _keep(point, parent, its.fileno())
        its.close()

    def mounted(self) -> bool:
        """Report that the mount exists; return whether the keeper can abort the connection (by fusectl, or as root)."""
        return self._ask(_MOUNTED)

    def unmount(self) -> bool:
        """Request unmounting, detached if it is busy; return whether that succeeded."""
        return self._ask(_UNMOUNT)

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _ask(self, what: bytes) -> bool:
        try:
            self._socket.sendall(what)
            return self._socket.recv(1) == _DONE
        except OSError:  # the keeper was killed
            return False


def _keep(point: Path, parent: int, fd: int) -> None:
    """Run the keeper's process."""
    try:
        _let_go(fd)
        abort, connection = -1, None
        with socket.socket(fileno=3) as master:
            master.settimeout(LOOK_EVERY)
            while (asked := _next(master, parent)) is not None:
                done = True
                if asked == _UNMOUNT:
                    done = _unmounted(point)
                elif asked == _MOUNTED:
                    abort, connection = _handle(point), mountpoint.connection(point)
                    done = abort >= 0 or os.geteuid() == 0
                with contextlib.suppress(OSError):
                    master.sendall(_DONE if done else _FAILED)
        if abort >= 0:
            os.write(abort, b"1")  # no effect if the connection has ended
        elif connection is not None and _is_stuck(parent) and mountpoint.connection(point) == connection:
            mountpoint.force(point)
    except OSError:
        pass
    finally:
        os._exit(0)


def _let_go(fd: int) -> None:
    """Keep no descriptor of the parent's but the socket, as 3; leave its folder, and ignore its terminal's signals."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    if fd != 3:
        os.dup2(fd, 3)
    null = os.open("/dev/null", os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(null, each)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text("webarc-keeper")


def _next(master: socket.socket, parent: int) -> bytes | None:
    """Return the next request; None when the mount's process is gone."""
    while True:
        try:
            return master.recv(1) or None
        except TimeoutError:
            if not lives(parent):
                return None
        except OSError:
            return None


def _handle(point: Path) -> int:
    """Return a descriptor that aborts the mount's connection; -1 if none is available."""
    try:
        return os.open(mountpoint.abort_file(point), os.O_WRONLY)
    except (OSError, MountFailed):
        return -1


def _is_stuck(parent: int) -> bool:
    """Return whether the kernel could not end the mount's process; one that has ended is no parent any more."""
    time.sleep(ENDING)
    return os.getppid() == parent and not lives(parent)


def _unmounted(point: Path) -> bool:
    try:
        mountpoint.unmount_or_detach(point)
    except (OSError, WebarcError):  # the mount's own process sees that it is still mounted
        return False
    return True
