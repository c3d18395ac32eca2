"""Of two crawls that overlap, the later capture of a page counts."""

from __future__ import annotations

from datetime import datetime

import pytest

from agent.pipeline.domain_run import LaterCrawls
from webarcfs.archive.model.metadata import parse_time

pytestmark = pytest.mark.pure

_TAG = "2026-11-21T03:00:00@www.example.org"


@pytest.mark.parametrize(
    ("begun", "tag", "captured", "replaces"),
    [
        ({}, _TAG, "2026-11-21T02:00:00", False),  # nothing was published meanwhile
        ({_TAG: "2026-11-21T03:00:00"}, _TAG, "2026-11-21T02:59:59", True),
        ({_TAG: "2026-11-21T03:00:00"}, _TAG, "2026-11-21T03:00:00", False),  # in the same second: ours is the newer
        ({_TAG: "2026-11-21T03:00:00"}, _TAG, "2026-11-21T03:00:01", False),
        # what an older crawl stored is never newer, whatever its tag says
        ({_TAG: "2026-11-21T03:00:00"}, "2027-01-01T00:00:00@www.example.org", "2026-11-21T02:00:00", False),
    ],
)
def test_replaces(begun: dict[str, str], tag: str, captured: str, replaces: bool) -> None:
    times: dict[str, datetime] = {each: parse_time(time) for each, time in begun.items()}
    assert LaterCrawls(times).replaces(tag, parse_time(captured)) is replaces


def test_without_later_crawls_nothing_is_overtaken() -> None:
    assert LaterCrawls() == LaterCrawls({}, overtook=False)
