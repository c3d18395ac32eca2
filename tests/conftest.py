"""For all tests: another user, the umask, and time.

What hypothesis makes up may take as long as it takes, since the machine may be busy.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support import users
from tests.support.properties import examples

# What ten thousand tests consist of stays: no collection of garbage need look at it, until all are there and after.
gc.disable()
# Archives of tests are read by other users; a umask of 077 closes a checkout, and nothing that a test makes.
os.umask(0o022)

settings.register_profile("webarcfs", deadline=None, max_examples=examples(200))
settings.register_profile("check", deadline=None, max_examples=20)  # for `make check`
settings.load_profile("webarcfs")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def other_user() -> Iterator[users.Other]:
    """What another user can run, wherever this checkout lies. Only root can become one."""
    with users.other() as other:
        yield other
