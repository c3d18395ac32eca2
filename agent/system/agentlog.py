"""Where the agent's lines go: log/agent.log, rotated by size, and the journal or terminal beside it."""

from __future__ import annotations

import logging
from pathlib import Path

from agent.system import systemd
from webarcfs.archive.system.rotating_log import RotatingLog

#: Python's level → syslog's priority, which the journal reads off the beginning of a line (sd-daemon(3)).
_PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6, logging.DEBUG: 7}


class JournalFormatter(logging.Formatter):
    """Each line with its priority and without the time, which the journal knows."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's lines."""
        priority = _PRIORITIES.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def to_file(folder: Path) -> None:
    """Write what is logged to agent.log in `folder` too; lines to stderr as the journal wants them, if it listens."""
    root = logging.getLogger()
    handler = RotatingLog(folder / "agent.log")
    if systemd.journal():
        for each in root.handlers:
            each.setFormatter(JournalFormatter("%(message)s"))
    root.addHandler(handler)


def only_to_file() -> None:
    """Say nothing on stderr any more."""
    root = logging.getLogger()
    for each in list(root.handlers):
        if not isinstance(each, RotatingLog):
            root.removeHandler(each)
