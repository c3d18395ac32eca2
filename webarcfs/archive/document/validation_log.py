"""`log/validation.log`: a line for each refused extension of a data.xml, and for each refused schema (/Xm-4/)."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET, format_time
from webarcfs.archive.system import rotating_log

#: The file's name in `log/`.
NAME = "validation.log"
#: Longest reason, in characters: it quotes what users wrote.
LONGEST = 1000

_log = logging.getLogger(__name__)


def refused(archive: Archive, user: str, path: str, error: BaseException) -> None:
    """Add a line: time, user, document (its path in the mount), reason.

    Columns are separated by tabs; characters that could end a line are escaped. A failed write is only logged.
    """
    columns = (format_time(datetime.now(CET)), _plain(user), _plain(path), _plain(str(error))[:LONGEST])
    try:
        append(archive.log / NAME, "\t".join(columns))
    except OSError as trouble:
        _log.warning("%s cannot be written: %s", archive.log / NAME, trouble)


def append(path: Path, line: str) -> None:
    """Append a line to a log that is rotated by size; several processes may write it."""
    with suppress(FileNotFoundError):
        if path.stat().st_size >= rotating_log.LARGEST:
            rotating_log.rotate(path)
    # One write of O_APPEND: lines of several processes never mix.
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, f"{line}\n".encode("utf-8", "backslashreplace"))
    finally:
        os.close(fd)


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
