"""Notifies systemd of the service's state: the protocol of sd_notify(3), a datagram to the socket in NOTIFY_SOCKET.

Without that variable nothing is sent. Errors of the socket are ignored: the service continues.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time


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
