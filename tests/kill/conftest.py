"""The site that is crawled while the agent is killed, and an archive for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archives import make_archive
from tests.support.generated import Generated
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive

#: How many pages the site has.
PAGES = 60


@pytest.fixture
def site() -> Iterator[Site]:
    """A site of generated pages, served while the test runs."""
    with Site() as site:
        site.mount(Generated(PAGES), at="/")
        yield site


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed process leaves among the temporary files goes with the test."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A new, empty archive."""
    return make_archive(tmp_path)
