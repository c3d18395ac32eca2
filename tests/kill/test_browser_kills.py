"""kill -9 of a job, of its browser and of what drives that: the small form of `make soak ARGS=kill-browser`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.browsers import needs_chromium

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(1200), needs_chromium()]


def test_nothing_is_lost_doubled_or_left() -> None:
    """A kill of each, at moments that a seed decides."""
    command = [sys.executable, "-m", "tests.soak.browser_kills", "--kills", "3", "--seed", "1", "--small-pages", "1"]
    done = subprocess.run(
        ["setpriv", "--pdeathsig=KILL", *command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
