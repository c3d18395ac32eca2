"""A store, an archive and what reads and writes it, for each test; a small file system that can be full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import disks
from tests.support.archives import DOMAIN, make_archive
from tests.support.journals import Writer
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.vfs.view import View


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A new, empty archive."""
    return make_archive(tmp_path)


@pytest.fixture
def view(archive: Archive) -> View:
    """A view whose thread does not run: the test says when it looks."""
    return View(archive)


@pytest.fixture
def writer(filled: Archive) -> Iterator[Writer]:
    """A journal of the archive that the test file filled with pages."""
    made = Writer(filled)
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Repository:
    """An empty repository."""
    return Repository.create(tmp_path / f"{DOMAIN}.git")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; skips where none can be mounted."""
    with disks.small_disk(tmp_path / "small", "1m") as folder:
        yield folder
