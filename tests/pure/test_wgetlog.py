"""What wget's log tells: while wget runs, and of each attempt in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.capture import wgetlog
from agent.capture.wgetlog import LogPosition
from agent.policy.fetchstatus import Status

pytestmark = pytest.mark.pure

BEGIN = "--2026-11-21 03:00:00--  http://e.org/{}\n"
BUSY = "HTTP request sent, awaiting response... \n  HTTP/1.1 503 Busy\n  Retry-After: {}\n"
FINE = "HTTP request sent, awaiting response... \n  HTTP/1.1 200 OK\n  Content-Length: 5\nLength: 5\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("unable to resolve host address", (Status.DNS, "dns")),
        ("failed: Connection refused.", (Status.CONNECT_FAILED, "connection-refused")),
        ("Read error at byte 0 (Connection timed out)", (Status.TIMEOUT, "timeout")),
        ("Read error (Connection reset by peer)", (Status.CONNECTION_LOST, "reset")),
        ("No data received.", (Status.CONNECTION_LOST, "no-answer")),
        ("something else", (Status.CONNECTION_LOST, "lost")),
        # What the server says is no word of wget's.
        (
            "awaiting response... \n  HTTP/1.1 200 OK\n  X: failed: Connection refused\n",
            (Status.CONNECTION_LOST, "lost"),
        ),
    ],
)
def test_why_an_attempt_failed(said: str, expected: tuple[int, str]) -> None:
    (attempt,) = wgetlog.attempts(BEGIN.format("a") + said)
    assert (attempt.url, attempt.failure()) == ("http://e.org/a", expected)


def test_what_an_attempt_was_answered() -> None:
    first, second = wgetlog.attempts(BEGIN.format("a") + BUSY.format(7) + BEGIN.format("b") + FINE)
    assert (first.http_status, first.retry_after) == (503, "7")
    assert (second.http_status, second.retry_after) == (200, "")


def test_a_pause_is_heard_once_the_log_rests(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert wgetlog.pause_requested(log, LogPosition(), 1.0, 0.0) == LogPosition()
    log.write_text(BEGIN.format("a") + BUSY.format(7), "latin-1")
    first = wgetlog.pause_requested(log, LogPosition(), 1.0, 0.0)
    assert first.seconds is None and first.size == log.stat().st_size  # its last answer may be on its way
    second = wgetlog.pause_requested(log, first, 1.0, 0.0)
    assert (second.seconds, second.in_a_row) == (7.0, 1)
    with log.open("a") as file:
        file.write(BEGIN.format("ü") + FINE)
    third = wgetlog.pause_requested(log, second, 1.0, 0.0, ended=True)
    assert (third.seconds, third.in_a_row, third.position) == (None, 0, log.stat().st_size - len("Length: 5\n"))


def test_documents_are_counted_as_they_begin(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert (wgetlog.begun(log), wgetlog.count_begun(log, 0)) == (0, (0, 0))
    log.write_text(BEGIN.format("a") + FINE + BEGIN.format("b") + "--2026-11-21 03:00:01--  http://e", "latin-1")
    whole = log.read_text("latin-1").rfind("\n") + 1
    assert wgetlog.count_begun(log, 0) == (2, whole)
    assert wgetlog.begun(log) == log.read_text("latin-1").rfind("http://e")
    log.write_text(log.read_text("latin-1") + ".org/c\n", "latin-1")
    assert wgetlog.count_begun(log, whole) == (1, log.stat().st_size)
