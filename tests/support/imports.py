"""Imports in this process, for tests."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.importing import import_sources
from agent.jobs import importjob
from agent.jobs.publishing import JobOutcome
from tests.support.crawls import Done, run_command
from webarcfs.archive.config import settings as config
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication


@dataclass(frozen=True)
class Result:
    """What an import told; `outcome` is that of its last crawl, None if all files were known."""

    outcome: JobOutcome | None
    outcomes: tuple[JobOutcome, ...]
    known: tuple[import_sources.Source, ...]
    remarks: tuple[str, ...]


def import_files(archive: Archive, *files: Path, **how: Any) -> Result:
    """Import files. `how`: name of the publication, complete, accept_shrink, profile, grouping; else settings."""
    sources = import_sources.sources_of(files)
    name, profile = how.pop("name", None) or import_sources.name_of(sources), how.pop("profile", None)
    judged = {key: how.pop(key) for key in ("complete", "accept_shrink", "again", "grouping") if key in how}
    settings = config.override(CrawlSettings(), how, "test")
    done = importjob.run(
        archive, sources, Publication(name=name, urls=(), crawl=settings), profile, importjob.ImportRequest(**judged)
    )
    outcomes = done.outcomes
    return Result(outcomes[-1] if outcomes else None, outcomes, done.known, done.remarks)


def command(*arguments: str | Path) -> Done:
    """`webarc-agent` with these arguments; it may take its time on a busy machine."""
    return run_command(*arguments, timeout=240)


def killed_in(what: Callable[[], object], owner: Any, name: str, call: int = 1) -> None:
    """Do `what` in a child of this process, which dies by SIGKILL just before the n-th call of `owner.name`."""
    child = os.fork()
    if not child:
        calls = itertools.count(1)
        original = getattr(owner, name)

        def dying(*arguments: Any, **named: Any) -> Any:
            if next(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        setattr(owner, name, dying)
        try:
            what()
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"{name} was not called {call} times"


def imported(archive: Archive, *files: Path, **how: Any) -> JobOutcome:
    """Import files without a loss."""
    outcome = import_files(archive, *files, **how).outcome
    assert outcome is not None
    assert not outcome.warnings, outcome.warnings
    return outcome
