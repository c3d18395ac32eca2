"""Tells systemd how the service is: sd_notify(3)'s protocol, a datagram to the socket that NOTIFY_SOCKET names.

Without that variable nothing is sent. Trouble with the socket is nobody's business: the service goes on.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time


def notify(*lines: str) -> None:
    """Send such as `READY=1`, `STATUS=…`, all in one datagram."""
    name = os.environ.get("NOTIFY_SOCKET")
    if not name or name[0] not in "/@":
        return
    address = "\0" + name[1:] if name[0] == "@" else name
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), address)


def reloading() -> None:
    """The settings are being read anew; systemd wants the monotonic time with it, and READY=1 afterwards."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def watchdog_seconds() -> float | None:
    """How often WATCHDOG=1 is to be sent: half of what systemd allows; None where it does not watch this process."""
    pid = os.environ.get("WATCHDOG_PID", "")
    usec = os.environ.get("WATCHDOG_USEC", "")
    if not usec.isdecimal() or int(usec) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 2_000_000


def journal() -> bool:
    """Whether stderr goes to the journal, which puts times to lines itself and understands `<priority>`."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    try:
        info = os.fstat(2)
    except OSError:
        return False
    return stream == f"{info.st_dev}:{info.st_ino}"
