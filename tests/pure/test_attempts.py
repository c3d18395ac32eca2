"""When a job that failed is tried again."""

from __future__ import annotations

import errno
from datetime import timedelta

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import JobState, Phase
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.model.metadata import format_time, parse_time

pytestmark = pytest.mark.pure

_AT = parse_time("2026-11-21T03:00:00")
_ITEM = JobState(job="20261121T030000-nightly", publication="nightly", state=Phase.COLLECTING, pid=7, ticks=7)


def _pauses(count: int, *, killed: bool) -> list[float | None]:
    """Seconds until each next try, None where there is none."""
    known, pauses = _ITEM, []
    for _ in range(count):
        known = job_folder.failed(known, "why", _AT, killed=killed)
        pauses.append((parse_time(known.again) - _AT).total_seconds() if known.again else None)
    return pauses


def test_pauses_grow_up_to_an_hour_and_go_on() -> None:
    assert _pauses(30, killed=False) == [10, 60, 300, 1800, *[3600] * 26]


def test_a_job_that_kills_its_process_each_time_is_given_up_until_it_is_due() -> None:
    assert _pauses(12, killed=True) == [10, 60, 300, 1800, *[3600] * 5, None, None, None]


def test_a_failed_job_is_nobodys_and_says_why() -> None:
    failed = job_folder.failed(_ITEM, "why", _AT, killed=False)
    assert (failed.state, failed.reason, failed.pid, failed.ticks, failed.failures) == (Phase.FAILED, "why", 0, 0, 1)
    assert failed.updated == format_time(_AT)


def test_it_is_due_when_its_pause_is_over() -> None:
    failed = job_folder.failed(_ITEM, "why", _AT, killed=False)
    assert not job_folder.is_due(failed, _AT + timedelta(seconds=9))
    assert job_folder.is_due(failed, _AT + timedelta(seconds=10))
    assert not job_folder.is_due(_ITEM, _AT + timedelta(days=1))


def test_a_clock_that_was_set_back_costs_a_pause_at_most() -> None:
    failed = job_folder.failed(_ITEM, "why", _AT, killed=False)
    assert job_folder.is_due(failed, _AT - timedelta(days=400))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "/a/x.warc"),
            "the disk is full: No space left on device: /a/x.warc; make room, and it resumes by itself",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the disk is full: No space left on device: /a; make room, and it resumes by itself",
        ),
        (Busy("main.lock is in the way"), "Busy: main.lock is in the way"),
    ],
)
def test_a_reason_names_the_file_and_what_to_do(error: Exception, reason: str) -> None:
    assert job_folder.reason_of(error, "/a") == reason
