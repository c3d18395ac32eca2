"""What all adapters do with a request: its errno, the reason of a refusal, its count, its time. Safe for any thread.

Exceptions of operations are mapped to errno here alone. An unexpected exception is logged with its traceback and
becomes EIO; no exception ends the mount.

Why the mount refused a name or a write is a line in the log, and the last reason for each user an attribute. An errno
is one of few words, and a user of the mount reads no log. So each folder has the extended attribute
`user.webarc.refused`, for each user another one. Lines of the log are bounded by rate, reasons by number. Memory only.

Requests that reach user space are counted by kind (`-o stats`). Each thread has its own counter: no contention.

Slow requests are logged by operation and path, with what took long meanwhile (`vfs/content.py`). At most one line a
second, so that a slow disk does not fill the log; the next line counts those left out. An answer that waits for the
disk, such as a close's, is measured until it is sent.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final

from webarcfs.archive.model.errors import LookAgain, NoAttribute, NotFound, NotSupported, WebarcError, errno_of
from webarcfs.archive.model.metadata import CET, format_time
from webarcfs.vfs import content
from webarcfs.vfs.folders import StoredFile, StoredFolder
from webarcfs.vfs.node import Folder, Maker, Node, author
from webarcfs.vfs.root import Table
from webarcfs.vfs.view import SCHEMAS, SchemaFolder
from webarcfs.writing.drafts import DraftFile, Opened, SchemaDraft

# == errno map ========================================================================================================


# System errors that mean the same to the caller as to the mount. Any other error concerns files of the archive that the
# caller did not name; its ENOENT, for example, would deny the existence of the *caller's* file.
_RESOURCES = frozenset((errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EFBIG, errno.EIO))

_HINTS = {
    errno.EMFILE: "; each file being written takes one of the mount's descriptors, and its hard limit is reached "
    "(ulimit -Hn, LimitNOFILE=)",
    errno.ENFILE: "; the system's limit of open files is reached (sysctl fs.file-max)",
}

_log = logging.getLogger(__name__)


def errno_for(error: BaseException, operation: str, where: object = "") -> int:
    """Return the errno for `error`, raised by `operation` on `where`; log errors of the archive and the system."""
    number = errno_of(error)
    if isinstance(error, WebarcError):
        if number == errno.EIO:
            _log.error("%s %s: %s", operation, where, error)
        return number
    if isinstance(error, OSError) and number in _RESOURCES:
        _log.error("%s %s: %s%s", operation, where, error, _HINTS.get(number, ""))
        return number
    _log.error("%s %s failed unexpectedly", operation, where, exc_info=error)
    return errno.EIO


# == refusals =========================================================================================================


#: The attribute.
REFUSED: Final = "user.webarc.refused"
#: Most reasons, by folder and user; the longest, in characters: it may quote what users wrote.
MOST, LONGEST = 1_000, 1_000
#: Lines of the log that may follow each other at once; then it is one a second.
BURST = 20

#: Errors that belong to ordinary work: the name is not there, an access control list is not to be had.
_ORDINARY = (LookAgain, NotFound, NotSupported, NoAttribute)


class Refusals:
    """The refusals of one mount."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: OrderedDict[tuple[str, Maker], str] = OrderedDict()
        self._lines = float(BURST)
        self._counted = time.monotonic()
        self._left_out = 0

    def note(self, operation: str, maker: Maker, where: tuple[Node | Opened, str], error: BaseException) -> None:
        """Note an operation that failed: at a name in a folder, or at an open file or a node without a name."""
        if isinstance(error, _ORDINARY) or not isinstance(error, WebarcError | OSError):
            return
        folder, name = _place_of(*where)
        if not folder:
            return
        reason = _line((error.strerror if isinstance(error, OSError) else None) or str(error))
        when = format_time(datetime.now(CET))
        with self._lock:
            self._reasons[folder, maker] = f"{when} {name or folder}: {reason}"
            self._reasons.move_to_end((folder, maker))
            if len(self._reasons) > MOST:
                self._reasons.popitem(last=False)
            left_out = self._take_line()
        if left_out is not None:
            more = f"; {left_out} more before it" if left_out else ""
            path = f"{folder.rstrip('/')}/{name}" if name else folder
            _log.info("refused: %s %r of %s: %s%s", operation, path, author(maker).mail, reason, more)

    def of(self, node: Node, uid: int) -> bytes | None:
        """Return the last reason for a user in a folder; None if there is none, or `node` is no folder."""
        if not isinstance(node, Folder):
            return None
        reason = self._reasons.get((_place_of(node, "")[0], uid))
        return os.fsencode(reason) if reason is not None else None

    def _take_line(self) -> int | None:
        """Return the number of lines left out before this one; None to leave this one out. Under the lock."""
        now = time.monotonic()
        self._lines = min(float(BURST), self._lines + now - self._counted)
        self._counted = now
        if self._lines < 1:
            self._left_out += 1
            return None
        self._lines -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text[:LONGEST])


def _place_of(where: Node | Opened, name: str) -> tuple[str, str]:
    """Return the folder that a reason belongs to, and the path in it: an ARC's folder, if it is in one.

    Nothing for history, which refuses everything, and for what is no folder of the archive.
    """
    folder, path = "", ""
    match where:
        case Opened() | DraftFile():
            draft = where.draft
            place, path = draft.place, draft.path
            folder = f"/{SCHEMAS}" if isinstance(draft, SchemaDraft) else f"/{place.domain}/{place.arc}"
        case StoredFolder() if not where.old:
            arc, path = where.enclosing, "/".join(filter(None, (where.inner, name)))
            folder = f"/{where.state.reader.domain}/{where.path if arc is None else arc.path}".rstrip("/")
        case StoredFile() if not where.old:
            inner = where.inner if where.place is not None else where.version.path.rpartition("/")[2]
            path = inner
            folder = f"/{where.version.domain}/{where.version.path.removesuffix(inner)}".rstrip("/")
        case SchemaFolder():
            folder, path = f"/{SCHEMAS}", name
        case Table() if not where.old:
            folder, path = "/", name
        case _:
            pass
    return folder, path


# == request stats ====================================================================================================


#: Extended attribute of the root with the counts; not listed.
STATS = "user.webarc.stats"


class RequestStats:
    """The counts of one mount."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[Counter[str]] = []

    def count(self, kind: str) -> None:
        """Count one request of this kind."""
        try:
            mine: Counter[str] = self._local.counter
        except AttributeError:
            mine = self._local.counter = Counter()
            self._all.append(mine)
        mine[kind] += 1

    def __str__(self) -> str:
        total: Counter[str] = Counter()
        for counter in self._all:
            total.update(counter.copy())
        return " ".join(f"{kind}={number}" for kind, number in sorted(total.items()))


# == slow requests ====================================================================================================


#: Seconds from which a request is slow.
SLOW: Final = 0.1
_BETWEEN_LINES = 1.0


class SlowRequests:
    """The slow requests of one mount; `path_of` returns the path of an operation's argument."""

    def __init__(self, path_of: Callable[[object], str]) -> None:
        self._path_of = path_of
        self._lock = threading.Lock()
        self._next_line = 0.0
        self._left_out = 0

    def note(self, operation: str, where: object, begun: float) -> None:
        """Log a request that began at the monotonic time `begun` and ends now, if it was slow."""
        now = time.monotonic()
        if now - begun < SLOW:
            return
        with self._lock:
            if now < self._next_line:
                self._left_out += 1
                return
            self._next_line, left_out, self._left_out = now + _BETWEEN_LINES, self._left_out, 0
        more = f"; {left_out} more before it" if left_out else ""
        why = "".join(f"; {cause}" for cause in content.causes_since(begun))
        _log.info("slow: %s %s took %.2f s%s%s", operation, self._path_of(where), now - begun, why, more)
