"""Fixtures: an empty archive, held to be sound after each test, and a site."""

from __future__ import annotations

from tests.crawl.conftest import site
from tests.support.crawls import archive

__all__ = ["archive", "site"]
