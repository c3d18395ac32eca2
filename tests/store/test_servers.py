"""What all jobs know of a server: when it was asked last, and until when it is to be left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agent.crawl import loop, server_locks
from agent.crawl.politeness import LONGEST_PAUSE
from tests.support.waiting import until
from webarcfs.archive.system import clocks

pytestmark = pytest.mark.store


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / ".server-e.org", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


def test_the_file_of_a_server(lock: int) -> None:
    assert server_locks.seconds_to_wait(lock, 500) == 0, "it never was asked"
    server_locks.note_request(lock)
    assert 400 < server_locks.seconds_to_wait(lock, 500) <= 501
    server_locks.note_request(lock, 1000, 3)
    assert 900 < server_locks.seconds_to_wait(lock, 500) <= 1001
    assert server_locks.asked_in_a_row(lock) == 3
    server_locks.note_request(lock)
    assert server_locks.asked_in_a_row(lock) == 0
    assert server_locks.seconds_to_wait(lock, 0) <= 0


@pytest.mark.parametrize("hours", [-100, -5, 5, 100])
def test_setting_the_clock_changes_no_wait(lock: int, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    server_locks.note_request(lock, 1000, 1)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + hours * 3600)
    assert 900 < server_locks.seconds_to_wait(lock, 500) <= 1001
    os.utime(lock, (0, real() - hours * 3600))
    assert 900 < server_locks.seconds_to_wait(lock, 500) <= 1001


@pytest.mark.parametrize("hours", [-1000, -5, 0, 5, 1000])
def test_after_a_restart_of_the_machine_no_wait_is_longer_than_it_can_have_been(
    lock: int, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    server_locks.note_request(lock, 1000, 1)
    monkeypatch.setattr(server_locks, "boot", lambda: "another")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + hours * 3600)
    left = server_locks.seconds_to_wait(lock, 5)
    assert left <= 0 if hours else 900 < left <= 1001


@pytest.mark.parametrize(
    "content", [b"\n", b"1.5 x\n", b"\xff" * 200, b"9e99 1\n", b"9e99 1 9e99 9e99 z\n", b"1 2 3\n"]
)
def test_files_that_others_wrote(lock: int, content: bytes) -> None:
    """Those of older versions, and garbage: the pause between two requests holds, nothing else."""
    os.pwrite(lock, content, 0)
    assert server_locks.seconds_to_wait(lock, 0) <= 0
    assert server_locks.seconds_to_wait(lock, 500) <= 501 < LONGEST_PAUSE


def test_the_steady_clock_neither_leaps_nor_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    first = clocks.steady()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    second = clocks.steady()
    assert first <= second < first + 600
    assert abs(first - clocks.OFFSET - clocks.since_boot()) < 600


def test_the_hosts_that_were_looked_up_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl may meet any number of hosts; names that no name server is asked for, since they are too long."""
    monkeypatch.setattr(loop, "_MOST_RESULTS", 2)
    known = loop.Lookups(names=True)
    hosts = [f"{'a' * 64}{number}.example.org" for number in range(3)]

    def is_public(host: str) -> bool:
        return known.reach(host) is loop.Reach.PUBLIC

    for host in hosts:
        until(partial(is_public, host), host)
    assert [known.reach(host) for host in reversed(hosts)] == [*[loop.Reach.PUBLIC] * 2, loop.Reach.PENDING]
