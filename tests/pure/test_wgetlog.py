"""What wget's log tells: while wget runs, and of each attempt in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.crawl import wget
from agent.crawl.vocabulary import Status
from agent.crawl.wget import LogPosition
from webarcfs.warc import http_response

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
        ("Read error at byte 5 (The TLS connection was non-properly terminated.).", (Status.CONNECTION_LOST, "closed")),
        ("Read error at byte 0 (Error decoding the received TLS packet.).", (Status.CONNECTION_LOST, "closed")),
        ("Proxy tunneling failed: Bad\nUnable to establish SSL connection.", (Status.CONNECT_FAILED, "connect-failed")),
        (
            "GnuTLS: received alert [120]: No supported application protocol could be negotiated\n"
            "Unable to establish SSL connection.",
            (Status.CONNECT_FAILED, "http2-only"),
        ),
        ("something else", (Status.CONNECTION_LOST, "lost")),
        # What the server says is no word of wget's.
        (
            "awaiting response... \n  HTTP/1.1 200 OK\n  X: failed: Connection refused\n",
            (Status.CONNECTION_LOST, "lost"),
        ),
    ],
)
def test_why_an_attempt_failed(said: str, expected: tuple[int, str]) -> None:
    (attempt,) = wget.read_attempts(BEGIN.format("a") + said)
    assert (attempt.url, attempt.failure()) == ("http://e.org/a", expected)


def test_what_an_attempt_was_answered() -> None:
    first, second = wget.read_attempts(BEGIN.format("a") + BUSY.format(7) + BEGIN.format("b") + FINE)
    assert (first.http_status, first.retry_after) == (503, "7")
    assert (second.http_status, second.retry_after) == (200, "")


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        (("Retry-After: 7", "Retry-After: 90"), "7"),
        (("retry-after:7 ", "X: 1", "Retry-After: 90"), "7"),
        (("Retry-After:", "Retry-After: 90"), ""),
        (("Retry-After:", "X: 90"), ""),
        (("X: 1",), ""),
    ],
)
def test_the_first_retry_after_counts_wherever_it_is_read(fields: tuple[str, ...], value: str, tmp_path: Path) -> None:
    """In the log while wget runs, in the log of an attempt, and in the head in the WARC."""
    log = tmp_path / "log"
    status = "HTTP/1.1 429 Too Many Requests"
    said = "".join(f"  {line}\n" for line in (status, *fields))
    log.write_text(f"{BEGIN.format('a')}HTTP request sent, awaiting response... \n{said}", "latin-1")
    (attempt,) = wget.read_attempts(log.read_text("latin-1"))
    head = http_response.parse_head("\r\n".join((status, *fields, "", "")).encode())
    assert head is not None
    assert (attempt.retry_after, head.get("retry-after")) == (value, value)
    heard = wget.pause_requested(log, LogPosition(), 1.0, 0.0, ended=True)
    assert heard.seconds == (float(value) if value else 1.0)


def test_of_two_responses_of_an_attempt_the_last_one_counts() -> None:
    (attempt,) = wget.read_attempts(BEGIN.format("a") + BUSY.format(7) + BUSY.format(9))
    assert (attempt.http_status, attempt.retry_after) == (503, "9")
    (attempt,) = wget.read_attempts(BEGIN.format("a") + BUSY.format(7) + FINE)
    assert (attempt.http_status, attempt.retry_after) == (200, "")


def test_a_response_that_fails_keeps_the_count_and_another_one_clears_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    broken = "HTTP request sent, awaiting response... \n  HTTP/1.1 500 Oh\n  Content-Length: 5\nLength: 5\n"
    for said, in_a_row in (((BUSY, BUSY), 2), ((BUSY, broken), 1), ((BUSY, broken, BUSY), 2), ((BUSY, FINE, BUSY), 1)):
        log.write_text("".join(BEGIN.format(number) + each.format(7) for number, each in enumerate(said)), "latin-1")
        assert wget.pause_requested(log, LogPosition(), 1.0, 0.0, ended=True).in_a_row == in_a_row


def test_a_pause_is_heard_once_the_log_rests(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert wget.pause_requested(log, LogPosition(), 1.0, 0.0) == LogPosition()
    log.write_text(BEGIN.format("a") + BUSY.format(7), "latin-1")
    first = wget.pause_requested(log, LogPosition(), 1.0, 0.0)
    assert first.seconds is None and first.size == log.stat().st_size  # its last answer may be on its way
    second = wget.pause_requested(log, first, 1.0, 0.0)
    assert (second.seconds, second.in_a_row) == (7.0, 1)
    with log.open("a") as file:
        file.write(BEGIN.format("ü") + FINE)
    third = wget.pause_requested(log, second, 1.0, 0.0, ended=True)
    assert (third.seconds, third.in_a_row, third.position) == (None, 0, log.stat().st_size - len("Length: 5\n"))


def test_documents_are_counted_as_they_begin(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert (wget.begun(log), wget.count_begun(log, 0)) == (0, (0, 0))
    log.write_text(BEGIN.format("a") + FINE + BEGIN.format("b") + "--2026-11-21 03:00:01--  http://e", "latin-1")
    whole = log.read_text("latin-1").rfind("\n") + 1
    assert wget.count_begun(log, 0) == (2, whole)
    assert wget.begun(log) == log.read_text("latin-1").rfind("http://e")
    log.write_text(log.read_text("latin-1") + ".org/c\n", "latin-1")
    assert wget.count_begun(log, whole) == (1, log.stat().st_size)
