"""The outcome of a URL that was not answered well: when it is tried again, and when it has failed."""

from __future__ import annotations

from typing import Any

import pytest

from agent.crawl.frontier import FrontierUrl, UrlOutcome
from agent.crawl.politeness import PATIENCE, TRIES, again, failed, passing, paused
from agent.crawl.vocabulary import Reason, Status, UrlState

pytestmark = pytest.mark.pure

NOW = 1_790_000_000.0


def row(tries: int = 0) -> FrontierUrl:
    """A URL that was tried so often before."""
    empty: dict[str, Any] = dict.fromkeys(FrontierUrl.__dataclass_fields__, "")
    return FrontierUrl(**{**empty, "id": 7, "tries": tries, "url": "http://e.org/", "domain": "e.org"})


def told(outcome: UrlOutcome) -> tuple[str, int, str, float]:
    """What matters of an outcome: state, status, remark, and seconds until the next try."""
    assert outcome.id == 7
    return outcome.state, outcome.status, outcome.note, outcome.not_before - NOW if outcome.not_before else 0


def test_what_was_not_attempted_counts_no_try() -> None:
    outcome = again(row(2))
    assert (told(outcome), outcome.tried) == ((UrlState.WAITING, 0, "", 0), 0)


@pytest.mark.parametrize(
    ("tries", "status", "expected"),
    [
        (0, Status.CONNECT_FAILED, (UrlState.WAITING, 1)),
        (1, Status.CONNECT_FAILED, (UrlState.WAITING, 2)),
        (TRIES - 1, Status.CONNECT_FAILED, (UrlState.FAILED, 0)),
        (0, Status.QUOTA, (UrlState.FAILED, 0)),
        (0, Status.TIME_LIMIT, (UrlState.FAILED, 0)),
    ],
)
def test_a_failure_waits_longer_each_time_and_is_final_in_the_end(
    tries: int, status: Status, expected: tuple[str, float]
) -> None:
    state, number, note, seconds = told(failed(row(tries), status, "remark", NOW))
    assert ((state, seconds), number, note) == (expected, status, "remark")


@pytest.mark.parametrize(
    ("status", "retry_after", "tries", "expected"),
    [
        (503, "120", 0, (UrlState.WAITING, Reason.BUSY, 120)),
        (503, "120", PATIENCE - 2, (UrlState.WAITING, Reason.BUSY, 120)),
        (503, "120", PATIENCE - 1, (UrlState.FAILED, Reason.BUSY, 0)),
        (503, "", 0, (UrlState.WAITING, "", 1)),
        (503, "", TRIES - 1, (UrlState.FAILED, "", 0)),
        (429, "", 0, (UrlState.WAITING, Reason.BUSY, 1)),
        (500, "120", 0, (UrlState.WAITING, "", 120)),
    ],
)
def test_an_answer_that_may_be_better_later(
    status: int, retry_after: str, tries: int, expected: tuple[str, str, float]
) -> None:
    whole = UrlOutcome(id=7, state=UrlState.DONE, status=status)
    state, number, note, seconds = told(passing(row(tries), whole, retry_after, NOW))
    assert ((state, note, seconds), number) == (expected, status)
    in_the_log = paused(row(tries), status, retry_after, NOW)
    if expected[1] == Reason.BUSY:
        assert in_the_log is not None and told(in_the_log) == (state, number, note, pytest.approx(seconds))
    else:
        assert in_the_log is None  # its server asked for no pause
