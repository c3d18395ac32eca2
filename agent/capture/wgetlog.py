"""Reads wget's log: how far it is, whether its server asked to be left alone, and why an attempt at a URL failed.

The log is the only witness of attempts that left no response record (resets, broken chunking, 204, a failed look-up),
and of an answer before its record is written. wget runs with LC_ALL=C; each attempt begins with a line `--time--  URL`.
While wget runs, its log is read as Latin-1: a character a byte, so that positions are those of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent.policy.fetchstatus import Status
from agent.policy.politeness import asks_for_pause, pause
from agent.policy.vocabulary import Reason

_BEGIN = re.compile(r"^--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  (\S.*)$", re.MULTILINE)
_STATUS = re.compile(r"awaiting response\.\.\. (?:\n  HTTP/\S+ )?(\d{3})\b")
# What --server-response adds: the head, indented. Nothing in it is wget's word.
_FIELDS = re.compile(r"(?<=awaiting response\.\.\. \n)(?:  [^\n]*\n)+")
_RETRY_AFTER = re.compile(r"^  retry-after:\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)
# An answer: its status, its fields, and all until the next attempt.
_ANSWER = re.compile(r"awaiting response\.\.\. \n  HTTP/\S+ (\d{3})[^\n]*\n((?:  [^\n]*\n)*)")
_MOST = 1 << 20
_TAIL = 1 << 16
#: What wget says → status and note; the first that is found counts.
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
        (r"[Hh]eader|Malformed status line", Status.CONNECTION_LOST, Reason.BAD_HEAD),
    )
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the URL as wget writes it, and what it said until the next."""

    url: str
    text: str

    @property
    def http_status(self) -> int:
        """The status that the server answered; 0 when it did not."""
        found = _STATUS.findall(self.text)
        return int(found[-1]) if found else 0

    @property
    def retry_after(self) -> str:
        """The field of that name, where the log has the head of the answer."""
        found = _RETRY_AFTER.findall("".join(_FIELDS.findall(self.text)))
        return str(found[-1]) if found else ""

    def failure(self) -> tuple[int, str]:
        """Why it left no whole response: Heritrix's code and a word for crawl.log."""
        said = _FIELDS.sub("", self.text)
        for pattern, status, note in _FAILURES:
            if pattern.search(said):
                return int(status), note
        return int(Status.CONNECTION_LOST), Reason.LOST


def attempts(log: str) -> list[Attempt]:
    """The attempts in the order in which they were made."""
    parts = _BEGIN.split(log)
    return [Attempt(url.strip(), text) for url, text in zip(parts[1::2], parts[2::2], strict=True)]


# -- while wget runs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogPosition:
    """How far a log was judged, and its size then, in bytes; how often in a row its server has asked for a pause, and
    for how many seconds now: None where its last answer asked for none.
    """

    position: int = 0
    size: int = 0
    in_a_row: int = 0
    seconds: float | None = None


def pause_requested(log: Path, seen: LogPosition, wait: float, now: float, *, ended: bool = False) -> LogPosition:
    """Whether the answers behind what was seen of a log ask for a pause; `ended` if its wget has.

    wget holds back the line that ends an answer which is an error until it says more; so the last answer counts once
    the log did not grow from one look to the next.
    """
    text = _read(log, seen.position, _MOST)
    if text is None:
        return seen
    position, in_a_row, seconds = seen.position, seen.in_a_row, seen.seconds
    size = position + len(text)
    found = list(_ANSWER.finditer(text))
    for answer in found:
        if answer is found[-1] and size != seen.size and not ended:
            break  # it may still be on its way
        seconds, in_a_row = _judge(int(answer[1]), answer[2], in_a_row, wait, now)
        position = seen.position + answer.end()
    return LogPosition(position, size, in_a_row, seconds)


def begun(log: Path) -> int:
    """How many documents wget has begun, told by the position of the last one's line; 0 before the first."""
    try:
        start = max(0, log.stat().st_size - _TAIL)
    except FileNotFoundError:
        return 0
    lines = list(_BEGIN.finditer(_read(log, start) or ""))
    return start + lines[-1].start(1) if lines else 0


def count_begun(log: Path, since: int) -> tuple[int, int]:
    """How many documents wget has begun behind a position in its log, and the position up to which that is certain."""
    new = _read(log, since) or ""
    whole = new.rfind("\n") + 1
    return len(_BEGIN.findall(new[:whole])), since + whole


def _judge(status: int, fields: str, in_a_row: int, wait: float, now: float) -> tuple[float | None, int]:
    found = _RETRY_AFTER.findall(fields)
    value = str(found[0]) if found else ""
    if asks_for_pause(status, value, now):
        return pause(value, in_a_row, wait, now), in_a_row + 1
    return None, in_a_row if status >= 500 else 0


def _read(log: Path, start: int, most: int = -1) -> str | None:
    """The text from a position on; None where there is no log yet."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read(most).decode("latin-1")
    except FileNotFoundError:
        return None
