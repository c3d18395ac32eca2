"""Where a mount logs: stderr in the foreground, else the archive's own log, the file of `-o log=`, or the system's log.

Called once, when the mount is live and its process is the archive's owner. No state.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from webarcfs.archive.model.errors import MountFailed
from webarcfs.archive.system.rotating_log import RotatingLog

#: The word for the system's log in `-o log=`.
JOURNAL = "journal"
#: The socket for the system's log lines, of journald and syslogd alike.
DEVICE = Path("/dev/log")
_FORMAT = "%(asctime)s %(levelname)s mount[%(process)d]: %(message)s"
_PLAIN = "mount.webarcfs[%(process)d]: %(message)s"
#: Level → the priority that sd-daemon(3) specifies for the beginning of a line.
_PRIORITIES: Mapping[int, int] = {logging.NOTSET: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}


def start(log: str, archive_log: Path, *, foreground: bool, debug: bool) -> None:
    """Log from now on to `log` (a file, `journal`, or empty). Raises MountFailed if that is not possible."""
    handlers = _chosen(log, archive_log, foreground=foreground)
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    logging.getLogger("webarcfs").setLevel(logging.DEBUG if debug else logging.INFO)


def _chosen(log: str, archive_log: Path, *, foreground: bool) -> list[logging.Handler]:
    if log == JOURNAL:
        return [_system()]
    if log:
        try:
            return [_file(_Watched(log, encoding="utf-8"))]
        except OSError as error:
            raise MountFailed(f"the log {log} cannot be written: {error.strerror}; give another with -o log=") from None
    if foreground:
        return [_stderr()]
    try:
        with archive_log.open("ab"):  # RotatingLog opens it with the first line, too late for the error below
            usual = [_file(RotatingLog(archive_log))]
    except OSError:  # this user may only read the archive
        return [_system() if DEVICE.exists() else logging.NullHandler()]
    # Warnings need an administrator, who reads the system's log.
    return [*usual, _system(logging.WARNING)] if DEVICE.exists() else usual


def _file(handler: logging.Handler) -> logging.Handler:
    handler.setFormatter(logging.Formatter(_FORMAT))
    return handler


def _system(level: int = logging.NOTSET) -> logging.Handler:
    if not DEVICE.exists():
        raise MountFailed(f"the system takes no log lines, {DEVICE} is missing; give a file with -o log=FILE")
    handler = logging.handlers.SysLogHandler(str(DEVICE), logging.handlers.SysLogHandler.LOG_DAEMON)
    handler.setFormatter(logging.Formatter(_PLAIN))
    handler.setLevel(level)
    return handler


def _stderr() -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Prefixed() if _is_journal(sys.stderr.fileno()) else logging.Formatter(_FORMAT))
    return handler


class _Watched(logging.handlers.WatchedFileHandler):
    """A file that other programs may rotate; requests are answered even if it cannot be reopened."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)


class _Prefixed(logging.Formatter):
    """Lines with their priority (sd-daemon(3)); the journal adds time and process itself."""

    def format(self, record: logging.LogRecord) -> str:
        priority = min(number for level, number in _PRIORITIES.items() if level <= record.levelno)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def _is_journal(fd: int) -> bool:
    """Return whether a descriptor leads to the journal (systemd.exec(5), JOURNAL_STREAM)."""
    found = os.fstat(fd)
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
