"""Why the mount refused a name or a write: a line in the log, and the last reason for each user in an attribute.

An errno is one of few words, and a user of the mount reads no log. So each folder has the extended attribute
`user.webarc.refused`, for each user another one. Lines of the log are bounded by rate, reasons by number. Memory only;
safe for any thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from datetime import datetime
from typing import Final

from webarcfs.archive.model.errors import LookAgain, NoAttribute, NotFound, NotSupported, WebarcError
from webarcfs.archive.model.metadata import CET, format_time
from webarcfs.mount.writing.draft import DraftFile
from webarcfs.mount.writing.open_files import Opened
from webarcfs.mount.writing.schema_draft import SchemaDraft
from webarcfs.view.caller import author
from webarcfs.view.node import Folder, Node
from webarcfs.view.tree.files import StoredFile
from webarcfs.view.tree.folders import StoredFolder
from webarcfs.view.tree.root import Table
from webarcfs.view.tree.schemas_folder import SCHEMAS, SchemaFolder

#: The attribute.
REFUSED: Final = "user.webarc.refused"
#: Most reasons, by folder and user; the longest, in characters: it may quote what users wrote.
MOST, LONGEST = 1_000, 1_000
#: Lines of the log that may follow each other at once; then it is one a second.
BURST = 20

#: Errors that belong to ordinary work: the name is not there, an access control list is not to be had.
_ORDINARY = (LookAgain, NotFound, NotSupported, NoAttribute)

_log = logging.getLogger(__name__)


class Refusals:
    """The refusals of one mount."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: OrderedDict[tuple[str, int], str] = OrderedDict()
        self._lines = float(BURST)
        self._counted = time.monotonic()
        self._left_out = 0

    def note(self, operation: str, uid: int, where: tuple[Node | Opened, str], error: BaseException) -> None:
        """Note an operation that failed: at a name in a folder, or at an open file or a node without a name."""
        if isinstance(error, _ORDINARY) or not isinstance(error, WebarcError | OSError):
            return
        folder, name = _place_of(*where)
        if not folder:
            return
        reason = _line((error.strerror if isinstance(error, OSError) else None) or str(error))
        when = format_time(datetime.now(CET))
        with self._lock:
            self._reasons[folder, uid] = f"{when} {name or folder}: {reason}"
            self._reasons.move_to_end((folder, uid))
            if len(self._reasons) > MOST:
                self._reasons.popitem(last=False)
            left_out = self._take_line()
        if left_out is not None:
            more = f"; {left_out} more before it" if left_out else ""
            path = f"{folder.rstrip('/')}/{name}" if name else folder
            _log.info("refused: %s %r of %s: %s%s", operation, path, author(uid).mail, reason, more)

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
