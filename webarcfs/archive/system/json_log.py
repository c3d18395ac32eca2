r"""Lines of logs as JSON, an object each, for programs that collect logs.

All keys but `time`, `level` and `message` may be missing. Whatever a name or a message has, a line is ASCII, has no
line end in it, and is valid JSON: characters are escaped as `\uXXXX`, what is no Unicode is written as `\\udcff`.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping

#: A job's name: when it began, and its publication.
_JOB = re.compile(r"\d{8}T\d{6}-([^+/\s]+)\S*", re.ASCII)
#: Longest message: what is cut is said with its length.
LONGEST = 65_536
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_line(values: Mapping[str, object]) -> str:
    """Return an object as one line, without its end. Values are texts, numbers or None."""
    return json.dumps({key: _text(value) if isinstance(value, str) else value for key, value in values.items()})


def timestamp(at: float) -> str:
    """Return seconds since 1970 as RFC 3339 writes them, with the offset of this machine."""
    offset = time.strftime("%z", time.localtime(at))
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))
    return f"{local}.{int(at * 1000) % 1000:03}{offset[:3]}:{offset[3:5]}"


def message_line(message: str, level: int = logging.INFO, **more: object) -> str:
    """Return the line of a message of now."""
    return json_line({"time": timestamp(time.time()), "level": _level(level), "message": message, **more})


class JsonFormatter(logging.Formatter):
    """Formats records as JSON. `job` and `publication` are those of a job that a record is about."""

    def __init__(self, priorities: Mapping[int, int] | None = None) -> None:
        """`priorities`: level → the number that the journal reads from the beginning of a line, and takes away."""
        super().__init__()
        self._priorities = priorities

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError) as error:  # a mistake in the call, which must not cost the line
            message = f"{record.msg} ({error})"
        values: dict[str, object] = {
            "time": timestamp(record.created),
            "level": _level(record.levelno),
            "message": message,
            "logger": record.name,
            "process": record.process,
        }
        job = getattr(record, "job", "") or _job_in(record.args)
        if match := _JOB.fullmatch(str(job)):
            values |= {"job": job, "publication": match[1]}
        if record.exc_info and record.exc_info[0] is not None:
            values["traceback"] = self.formatException(record.exc_info)
        prefix = "" if self._priorities is None else f"<{self._priorities.get(record.levelno, 6)}>"
        return prefix + json_line(values)


def log_json(priorities: Mapping[int, int] | None = None) -> None:
    """Log JSON from now on, to stderr, where this process logs to a terminal or the journal."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        plain = handler if type(handler) is logging.StreamHandler else logging.StreamHandler()
        plain.setFormatter(JsonFormatter(priorities))
        root.removeHandler(handler)
        root.addHandler(plain)


def is_json() -> bool:
    """Return whether this process logs JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def _level(number: int) -> str:
    return logging.getLevelName(number).lower()


def _job_in(arguments: object) -> str:
    """Return the job that a record is about: its first value, where that is the name of one."""
    first = arguments[0] if isinstance(arguments, tuple) and arguments else ""
    return first if isinstance(first, str) and _JOB.fullmatch(first) else ""


def _text(text: str) -> str:
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST} characters more)"
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", cut)
