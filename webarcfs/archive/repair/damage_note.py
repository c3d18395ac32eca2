"""The note that something of an archive could not be read: `log/damaged.json`, in no backup.

Who meets damage writes it: the room, and `verify`. It is taken back when `verify` read all and found nothing, and when
`restore --damaged` left nothing damaged. Staff see it at the desk and by `webarc-agent status`. It says that there is
damage, and `verify` says what: what a room met must not become a list that anybody can make longer.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import datetime

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.archive.system import files

_NAME = "damaged.json"
#: Seconds in which a process writes it once.
_INTERVAL = 60.0


def write(archive: Archive) -> None:
    """Note that damage was met now. An archive that nobody may write to has no note."""
    with suppress(OSError):
        files.write_json(archive.log / _NAME, {"met": format_time(now())}, durable=False)


def clear(archive: Archive) -> None:
    """Take the note back."""
    with suppress(OSError):
        (archive.log / _NAME).unlink(missing_ok=True)


def read(archive: Archive) -> datetime | None:
    """Return when damage was met last; None for none. Raises Damaged, OSError where the note cannot be read."""
    note = files.read_json(archive.log / _NAME)
    try:
        return None if note is None else parse_time(str(note["met"]))
    except (KeyError, TypeError) as error:
        raise Damaged(f"{_NAME}: it has no time") from error


def met_at(archive: Archive) -> datetime | None:
    """Return the same; None also where the note cannot be read."""
    with suppress(Damaged, OSError):
        return read(archive)
    return None


class DamageWriter:
    """Writes the note for a server, at most once a minute, and never in the thread that answers."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._last: float | None = None

    def note(self) -> None:
        """Note that damage was met, if that was not noted just before."""
        with self._lock:
            at = time.monotonic()
            if self._last is not None and at - self._last < _INTERVAL:
                return
            self._last = at
        threading.Thread(target=write, args=(self._archive,), name="damage", daemon=True).start()
