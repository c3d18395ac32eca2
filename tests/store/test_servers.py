"""What all jobs know of a server: when it was asked last, and until when it is to be left alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent import servers
from agent.manners import LONGEST_PAUSE

pytestmark = pytest.mark.store


def test_the_file_of_a_server(tmp_path: Path) -> None:
    lock = os.open(tmp_path / ".server-e.org", os.O_RDWR | os.O_CREAT)
    try:
        now = time.time()
        assert servers.free_at(lock, 5, now) == 0, "it never was asked"
        servers.note(lock)
        assert servers.free_at(lock, 5, time.time()) == pytest.approx(time.time() + 5, abs=2)
        servers.note(lock, now + 60, 3)
        assert servers.free_at(lock, 5, now) == pytest.approx(now + 60, abs=0.01)
        assert servers.asked_in_a_row(lock) == 3
        assert servers.free_at(lock, 5, now - 10**6) <= now - 10**6 + LONGEST_PAUSE, "the clock was set back"
        servers.note(lock)
        assert servers.asked_in_a_row(lock) == 0
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"\n", 0)  # as older versions wrote it
        assert (servers.asked_in_a_row(lock), servers.free_at(lock, 0, time.time()) <= time.time()) == (0, True)
    finally:
        os.close(lock)
