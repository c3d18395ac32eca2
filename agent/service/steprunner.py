"""Runs the steps of snapshots that wait in jobs/: a process each, one at a time for a snapshot, few at once."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Iterator

from agent.catalogue import stepfolders
from agent.catalogue.stepfolders import StepEnd
from agent.jobfolder.names import step_of
from agent.system.childprocesses import Children
from webarcfs.archive.catalogue.steps import Step
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged

_log = logging.getLogger("webarc")
#: Steps at once: each uses all processors that it gets. Captures wait for pages, and are none of them.
_AT_ONCE, _CAPTURES = 1, 16
#: Seconds until a snapshot is looked at again that another process works on.
_ELSEWHERE_SECONDS = 5.0


class StepRunner:
    """The steps of one archive's agent."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.children = Children()
        self._not_before: dict[str, float] = {}
        self._stamp = 0
        self._waiting: list[str] = []
        self.failed = False

    def turn(self) -> None:
        """Handle steps that have ended, and begin those that are due."""
        self.take_ended()
        for name in self._due():
            is_capture = _step(name) == Step.CAPTURE
            running = sum((_step(each) == Step.CAPTURE) == is_capture for each in self.children)
            if running < (_CAPTURES if is_capture else _AT_ONCE):
                self.children.start(name, "-m", "agent.steps.worker", str(self._archive.root), name)

    def take_ended(self) -> None:
        """Handle the steps whose processes have ended."""
        for name, code in self.children.ended():
            if code == StepEnd.ELSEWHERE:
                self._not_before[name] = time.monotonic() + _ELSEWHERE_SECONDS
            elif code not in (StepEnd.DONE, StepEnd.STOPPED, -signal.SIGTERM):
                self._note(name, f"was killed by signal {-code}" if code < 0 else self.children.last_words(name))

    @property
    def is_idle(self) -> bool:
        """Return whether no step runs, and none is due."""
        return not self.children and not any(True for _ in self._due())

    def _note(self, name: str, how: str) -> None:
        """Note a failure that the process could not note, and say when it is tried again."""
        self.failed = True
        with contextlib.suppress(OSError):
            known = stepfolders.failure(self._archive, name)
            if known is None or not known.again or known.is_due():
                known = stepfolders.failed(self._archive, name, how or "failed")
            _log.error("%s: %s; next try %s", name, known.reason, known.again or "when somebody asks for it")

    def _due(self) -> Iterator[str]:
        """Yield the steps that can begin now; the first of each snapshot alone."""
        busy = {_record(each) for each in self.children}
        for name in self._listed():
            record = _record(name)
            if record in busy or time.monotonic() < self._not_before.get(name, 0.0):
                continue
            failure = stepfolders.failure(self._archive, name)
            if failure is not None and not failure.is_due():
                continue
            busy.add(record)
            yield name

    def _listed(self) -> list[str]:
        """Return the folders of steps; jobs/ is listed again when it has changed, or has some."""
        stamp = self._archive.jobs.stat().st_mtime_ns
        if stamp != self._stamp or self._waiting:
            self._stamp = stamp
            with contextlib.suppress(Damaged):
                self._waiting = list(stepfolders.waiting(self._archive))
        return self._waiting


def _record(name: str) -> str:
    return (step_of(name) or ("", ""))[0]


def _step(name: str) -> str:
    return (step_of(name) or ("", ""))[1]
