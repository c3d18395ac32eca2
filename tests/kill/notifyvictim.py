"""`python -m tests.kill.notifyvictim POINT ARCHIVE`: `webarc-agent watch`, which kills itself with SIGKILL at a point.

A point is `statement:<n>`, before the n-th statement that the process gives to notify.db, or `taken:<n>`, after the
n-th receiver has taken a notification and before that is noted.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from agent.notifying import notifier
from agent.notifying.notification_store import NotificationStore
from tests.kill.victim import die
from webarcfs.archive.config.directory import open_archive

#: The points of a soak: 50 in all.
POINTS = [*(f"statement:{number}" for number in range(1, 115, 3)), *(f"taken:{number}" for number in range(1, 13))]


def main(point: str, root: str) -> None:
    """Arm the point, and watch."""
    kind, _, number = point.partition(":")
    owner, name = NotificationStore, "_run" if kind == "statement" else "delivered"
    original, lock, calls = getattr(owner, name), threading.Lock(), 0

    def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        with lock:
            calls += 1
            if calls == int(number):
                die()
        return original(*arguments, **named)

    setattr(owner, name, dying)
    notifier.watch(open_archive(Path(root)), threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:3])
