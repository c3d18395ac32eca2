"""`python -m agent.service.worker ARCHIVE JOB`: the process of one job, which the agent starts.

Processes, not threads: leaks and crashes end with the job, killing one job does not affect the others, and two jobs
never use pygit2, lxml and libmagic in one interpreter. The worker stops on SIGTERM, or when the agent ends (end of
stdin). In both cases the fetched documents are kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import sys
import threading
from enum import IntEnum
from pathlib import Path

from agent.crawl import job_folder
from agent.crawl.job_folder import AT_WORK, Phase, reason_of
from agent.jobs import crawljob
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import Busy, NotFound, WebarcError
from webarcfs.archive.system.processes import Process

_log = logging.getLogger("webarc")


class End(IntEnum):
    """Exit codes of a worker."""

    DONE = 0
    FAILED = 2
    INCOMPLETE = 3
    STOPPED = 4
    ELSEWHERE = 5  # another process works on it, or has finished it


def main(root: str, job: str) -> int:
    """Run a job according to its definition; return its exit code. Errors are logged with their traceback."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the agent, which sends SIGTERM
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_watch_agent, args=(stop,), daemon=True).start()
    try:
        return _run(root, job, stop)
    except (Busy, NotFound) as error:
        if _began(Path(root) / "jobs" / job):  # Busy during the job, for example since git holds a lock
            _log.error("%s", error)
            return End.FAILED
        if (Path(root) / "reports" / job).is_dir():
            _log.info("another process has finished it")  # a command that saves a page, and nothing is wrong
        else:
            _log.warning("%s", error)
        return End.ELSEWHERE
    except WebarcError as error:
        _log.error("%s", error, exc_info=error)
        _note(Path(root) / "jobs" / job, error)
        return End.FAILED
    except Exception as error:
        _log.exception("unexpected, please report it")
        _note(Path(root) / "jobs" / job, error)
        return End.FAILED


def _began(folder: Path) -> bool:
    """Return whether this process began the job, instead of finding it held by another process."""
    try:
        item = job_folder.load_item(folder)
    except (OSError, WebarcError):
        return False
    return item is not None and Process(item.pid, item.ticks) == Process.current()


def _note(folder: Path, error: Exception) -> None:
    """Write into the item why the job could not begin; `publishing.failures_noted` does so for later failures."""
    with contextlib.suppress(OSError, WebarcError):
        item = job_folder.load_item(folder)
        if item is not None and item.state in AT_WORK:
            job_folder.save_surely(
                folder, dataclasses.replace(item, state=Phase.FAILED, reason=reason_of(error, folder))
            )


def _run(root: str, job: str, stop: threading.Event) -> End:
    archive = directory.open_archive(Path(root))
    folder = archive.jobs / job
    asked = job_folder.load(folder)
    if asked is None:
        raise NotFound(f"there is no definition in {folder}")
    outcome = crawljob.run(
        archive,
        asked.publication,
        asked.profile,
        accept_shrink=asked.accept_shrink,
        instances=asked.instances,
        folder=folder,
        by_agent=True,
        stop=stop,
    )
    for warning in outcome.warnings:
        _log.warning("%s", warning)
    if outcome.interrupted:
        return End.STOPPED
    return End.DONE if outcome.is_whole else End.INCOMPLETE


def _watch_agent(stop: threading.Event) -> None:
    """Set `stop` at the end of stdin. The agent holds its other end and never writes: it closes when the agent dies."""
    while True:
        try:
            if not os.read(0, 512):
                break
        except OSError:
            break
    stop.set()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    sys.exit(main(*sys.argv[1:3]))
