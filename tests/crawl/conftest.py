"""Fixtures: an empty archive, held to be sound after each test, and a site."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.crawls import archive
from tests.support.site import Site

__all__ = ["archive", "site"]


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without pages, served while the test runs."""
    with Site() as running:
        yield running
