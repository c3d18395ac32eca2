"""Imports in this process, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent import imports
from agent.jobs import Outcome
from webarcfs.archive import config
from webarcfs.archive.config import CrawlSettings, Publication
from webarcfs.archive.directory import Archive


def import_files(archive: Archive, *files: Path, **how: Any) -> imports.Imported:
    """Import files. `how`: name of the publication, complete, accept_shrink, profile; all else are settings."""
    sources = imports.sources_of(files)
    name, profile = how.pop("name", None) or imports.name_of(sources), how.pop("profile", None)
    judged = {key: how.pop(key) for key in ("complete", "accept_shrink") if key in how}
    settings = config.override(CrawlSettings(), how, "test")
    return imports.run(archive, sources, Publication(name=name, urls=(), crawl=settings), profile, **judged)


def imported(archive: Archive, *files: Path, **how: Any) -> Outcome:
    """Import files without a loss."""
    outcome = import_files(archive, *files, **how).outcome
    assert outcome is not None
    assert not outcome.warnings, outcome.warnings
    return outcome
