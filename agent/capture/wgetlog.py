"""Reads wget's log: its progress, whether the server asked for a pause, and why an attempt at a URL failed.

Only the log records attempts without a response record (resets, broken chunking, 204, a failed look-up), and a response
before its record is written. wget runs with LC_ALL=C; each attempt begins with a line `--time--  URL`. While wget runs,
its log is read as Latin-1: one character per byte, so that positions in the text are positions in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent.policy.fetchstatus import Status
from agent.policy.politeness import asks_for_pause, in_a_row, pause
from agent.policy.vocabulary import Reason

_BEGIN = re.compile(r"^--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  (\S.*)$", re.MULTILINE)
_STATUS = re.compile(r"awaiting response\.\.\. (?:\n  HTTP/\S+ )?(\d{3})\b")
# The response head, indented, that --server-response adds. It contains no messages of wget.
_FIELDS = re.compile(r"(?<=awaiting response\.\.\. \n)(?:  [^\n]*\n)+")
_RETRY_AFTER = re.compile(r"^  retry-after:[ \t]*(.*?)[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
# A response: its status and its fields.
_ANSWER = re.compile(r"awaiting response\.\.\. \n  HTTP/\S+ (\d{3})[^\n]*\n((?:  [^\n]*\n)*)")
_LENGTH = re.compile(r"^Length: [^\[\n]*\[([^\]\n;]+)", re.MULTILINE)
_MOST = 1 << 20
_TAIL = 1 << 16
#: wget's message → status and note; the first match counts.
_FAILURES = tuple(
    (re.compile(pattern), status, note)
    for pattern, status, note in (
        (r"unable to resolve host address|Name or service not known|name resolution", Status.DNS, Reason.DNS),
        (r"failed: Connection refused", Status.CONNECT_FAILED, Reason.CONNECTION_REFUSED),
        (r"failed: Connection timed out", Status.CONNECT_FAILED, Reason.CONNECT_TIMEOUT),
        (r"failed: No route to host|failed: Network is unreachable", Status.CONNECT_FAILED, Reason.UNREACHABLE),
        (r"SSL connection|certificate|SSL handshake|GnuTLS", Status.CONNECT_FAILED, Reason.TLS),
        (r"[Rr]ead error.*timed out|Connection timed out|timed out\.", Status.TIMEOUT, Reason.TIMEOUT),
        (r"Connection reset by peer", Status.CONNECTION_LOST, Reason.RESET),
        (r"Connection closed at byte|Read error at byte \d+.* \(Success\)", Status.CONNECTION_LOST, Reason.CLOSED),
        (r"No data received", Status.CONNECTION_LOST, Reason.NO_ANSWER),
        (r"failed: ", Status.CONNECT_FAILED, Reason.CONNECT_FAILED),
        (r"[Hh]eader|Malformed status line", Status.INVALID_RESPONSE, Reason.BAD_HEAD),
    )
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the URL as wget writes it, and the log text until the next attempt."""

    url: str
    text: str

    @property
    def http_status(self) -> int:
        """The HTTP status of the response; 0 without a response."""
        found = _STATUS.findall(self.text)
        return int(found[-1]) if found else 0

    @property
    def retry_after(self) -> str:
        """The field Retry-After of the response, if the log contains its head; else empty."""
        heads = _FIELDS.findall(self.text)
        return _retry_after(heads[-1]) if heads else ""

    def failure(self) -> tuple[int, str]:
        """Return why no whole response was recorded: Heritrix's code and a word for crawl.log."""
        said = _FIELDS.sub("", self.text)
        for pattern, status, note in _FAILURES:
            if pattern.search(said):
                return int(status), note
        return int(Status.CONNECTION_LOST), Reason.LOST


def attempts(log: str) -> list[Attempt]:
    """Return the attempts in the order in which they were made."""
    parts = _BEGIN.split(log)
    return [Attempt(url.strip(), text) for url, text in zip(parts[1::2], parts[2::2], strict=True)]


# -- while wget runs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The position up to which a log was judged, and its size then, both in bytes.

    Then the server's requests for a pause in a row, and the last pause in seconds: None if the last response asked for
    none.
    """

    position: int = 0
    size: int = 0
    in_a_row: int = 0
    seconds: float | None = None


def pause_requested(log: Path, seen: LogPosition, wait: float, now: float, *, ended: bool = False) -> LogPosition:
    """Judge the responses after `seen`; return the new position with the pause they ask for. `ended`: wget has ended.

    After an error response, wget buffers the last line until it logs more. So the last response counts once the log has
    not grown between two calls.
    """
    text = _read(log, seen.position, _MOST)
    if text is None:
        return seen
    position, count, seconds = seen.position, seen.in_a_row, seen.seconds
    size = position + len(text)
    found = list(_ANSWER.finditer(text))
    for answer in found:
        if answer is found[-1] and size != seen.size and not ended:
            break  # it may be incomplete
        seconds, count = _judge(int(answer[1]), answer[2], count, wait, now)
        position = seen.position + answer.end()
    return LogPosition(position, size, count, seconds)


def begun(log: Path) -> int:
    """Return the position in the log of the last document that wget has begun; 0 before the first."""
    try:
        start = max(0, log.stat().st_size - _TAIL)
    except FileNotFoundError:
        return 0
    lines = list(_BEGIN.finditer(_read(log, start) or ""))
    return start + lines[-1].start(1) if lines else 0


def declared_type(log: Path, start: int) -> str:
    """Return the MIME type that the server declares for the document that begins at `start`; empty if it is not known.

    wget shows it without its parameters.
    """
    found = _LENGTH.search((_read(log, start) or "") if start else "")
    return found[1].strip().lower() if found else ""


def count_begun(log: Path, since: int) -> tuple[int, int]:
    """Count the documents begun after the position `since`; return the count, and the end of the last whole line."""
    new = _read(log, since) or ""
    whole = new.rfind("\n") + 1
    return len(_BEGIN.findall(new[:whole])), since + whole


def _judge(status: int, head: str, before: int, wait: float, now: float) -> tuple[float | None, int]:
    value = _retry_after(head)
    asks = asks_for_pause(status, value, now)
    seconds = pause(value, before, wait, now) if asks else None
    return seconds, in_a_row(before, int(asks), failing=int(status >= 500 and not asks))


def _retry_after(head: str) -> str:
    """Return the field Retry-After of a head, or an empty text. The first of several counts, as in `http_response`."""
    found = _RETRY_AFTER.search(head)
    return found[1] if found else ""


def _read(log: Path, start: int, most: int = -1) -> str | None:
    """Return the text from a position on; None if the log does not exist yet."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read(most).decode("latin-1")
    except FileNotFoundError:
        return None
