"""What wget's log says of each attempt at a URL: where it stands, and why it failed. Pure.

The log is the only witness of attempts that left no response record (MEASURED: resets, broken chunking, 204, a failed
look-up). wget runs with LC_ALL=C; each attempt begins with a line `--time--  URL`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.policy.fetchstatus import Status

_BEGIN = re.compile(r"^--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  (\S.*)$", re.MULTILINE)
_STATUS = re.compile(r"awaiting response\.\.\. (?:\n  HTTP/\S+ )?(\d{3})\b")
# What --server-response adds: the head, indented. Nothing in it is wget's word.
_FIELDS = re.compile(r"(?<=awaiting response\.\.\. \n)(?:  [^\n]*\n)+")
_RETRY_AFTER = re.compile(r"^  retry-after:\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)
#: What wget says → status and note; the first that is found counts.
_FAILURES = tuple(
    (re.compile(pattern), status, note)
    for pattern, status, note in (
        (r"unable to resolve host address|Name or service not known|name resolution", Status.DNS, "dns"),
        (r"failed: Connection refused", Status.CONNECT_FAILED, "connection-refused"),
        (r"failed: Connection timed out", Status.CONNECT_FAILED, "connect-timeout"),
        (r"failed: No route to host|failed: Network is unreachable", Status.CONNECT_FAILED, "unreachable"),
        (r"SSL connection|certificate|SSL handshake|GnuTLS", Status.CONNECT_FAILED, "tls"),
        (r"[Rr]ead error.*timed out|Connection timed out|timed out\.", Status.TIMEOUT, "timeout"),
        (r"Connection reset by peer", Status.CONNECTION_LOST, "reset"),
        (r"Connection closed at byte|Read error at byte \d+.* \(Success\)", Status.CONNECTION_LOST, "closed"),
        (r"No data received", Status.CONNECTION_LOST, "no-answer"),
        (r"failed: ", Status.CONNECT_FAILED, "connect-failed"),
        (r"[Hh]eader|Malformed status line", Status.CONNECTION_LOST, "bad-head"),
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
        return int(Status.CONNECTION_LOST), "lost"


def attempts(log: str) -> list[Attempt]:
    """The attempts in the order in which they were made."""
    parts = _BEGIN.split(log)
    return [Attempt(url.strip(), text) for url, text in zip(parts[1::2], parts[2::2], strict=True)]
