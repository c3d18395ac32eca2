"""The agent's log: log/agent.log, rotated by size, and the journal or terminal."""

from __future__ import annotations

import logging
from pathlib import Path

from webarcfs.archive.system import systemd
from webarcfs.archive.system.rotating_log import RotatingLog

#: Python's level → syslog's priority, which the journal reads from the beginning of a line (sd-daemon(3)).
_PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6, logging.DEBUG: 7}


class JournalFormatter(logging.Formatter):
    """Formats each line with its priority and without the time, which the journal adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's lines, each with its priority."""
        priority = _PRIORITIES.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def to_file(folder: Path) -> None:
    """Also log to agent.log in `folder`; if stderr is the journal, format its lines for it."""
    root = logging.getLogger()
    handler = RotatingLog(folder / "agent.log")
    if systemd.journal():
        for each in root.handlers:
            each.setFormatter(JournalFormatter("%(message)s"))
    root.addHandler(handler)


def only_to_file() -> None:
    """Stop logging to stderr."""
    root = logging.getLogger()
    for each in list(root.handlers):
        if not isinstance(each, RotatingLog):
            root.removeHandler(each)
