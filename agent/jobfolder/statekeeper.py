"""Updates a job's item.json: at every change of state, and periodically with the progress."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from pathlib import Path
from typing import Any

from agent.frontier import facts
from agent.frontier.store import NO_STATES, Frontier
from agent.jobfolder import jobstate
from agent.jobfolder.job import Progress
from agent.jobfolder.jobstate import JobState, Phase
from agent.system.processid import Process
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.terminal.speed import Speed

_SECONDS_BETWEEN = 2.0
#: Counting reads all rows: the pause until the next count is this many times its duration.
_PART_OF_COUNTING = 50


class StateKeeper:
    """The item of one job, kept by its process."""

    def __init__(self, folder: Path, publication: str, progress: Progress, *, by_agent: bool = False) -> None:
        self.folder = folder
        self._progress = progress
        self._frontier: Frontier | None = None
        self._again = 0.0
        self._speed = Speed()
        known = jobstate.load(folder) or JobState(job=folder.name, publication=publication)
        process, begun = Process.current(), format_time(now())
        self.item = dataclasses.replace(
            known,
            begun=known.begun or begun,
            attempted=begun,
            pid=process.pid,
            ticks=process.ticks,
            by_agent=by_agent,
            reason="",
            again="",
        )

    def begin(self, frontier: Frontier) -> None:
        """Set the state of a job that begins or is resumed."""
        jobstate.reserve(self.folder)
        self._frontier = frontier
        captured = frontier.get(facts.CAPTURED) is not None
        collected = frontier.counts().get("done", 0) > 0
        state = Phase.CONVERTING if captured else Phase.COLLECTING if collected else Phase.WAITING
        self.to(state)

    def to(self, state: Phase, **facts: Any) -> None:
        """Set another state, and write the item."""
        self.item = self.ended(state, **facts)
        jobstate.save(self.folder, self.item)

    def note(self, **facts: Any) -> None:
        """Write some fields of the item at once, if they have other values; `Job.note` is this method."""
        changed = dataclasses.replace(self.item, **facts)
        if changed != self.item:
            self.item = dataclasses.replace(changed, updated=format_time(now()))
            with contextlib.suppress(OSError):  # the frontier has them
                jobstate.save(self.folder, self.item)

    def failed(self, reason: str) -> None:
        """Write that the job has failed. Raises OSError if the disk is too full even with the reserve."""
        counts: dict[str, Any] = {}
        with contextlib.suppress(OSError, WebarcError):  # the reason matters more than the counts
            counts = self._counts()
        stamp = format_time(now())
        self.item = dataclasses.replace(self.item, state=Phase.FAILED, updated=stamp, reason=reason, **counts)
        jobstate.save_surely(self.folder, self.item)

    def ended(self, state: Phase, **facts: Any) -> JobState:
        """Return the item in the given state, with current counts and the given fields."""
        stamp = format_time(now())
        return dataclasses.replace(self.item, state=state, updated=stamp, **self._counts(), **facts)

    def progress(self, stage: str, done: int, known: int) -> None:
        """Report `done` of `known` things of a stage; `Job.progress` is this method."""
        self._progress(stage, done, known)
        begun = time.monotonic()
        is_new = stage != self.item.stage
        if is_new:
            self._speed = Speed()
        self._speed.note(begun, done)
        waits = stage == "capture" and done > 0 and self.item.state is Phase.WAITING
        if not (waits or is_new or begun >= self._again):
            return
        counts = self._counts() if stage == "capture" else {}
        # wget may have fetched the first page before it is read.
        collects = waits and counts.get("urls", {}).get("done", 0) > 0
        if not (collects or is_new or begun >= self._again):
            return
        left = self._speed.left(known)
        self.item = dataclasses.replace(
            self.item,
            state=Phase.COLLECTING if collects else self.item.state,
            updated=format_time(now()),
            stage=stage,
            done=done,
            known=known,
            a_second=round(self._speed.a_second or 0.0, 3),
            left=None if left is None else round(left),
            **counts,
        )
        with contextlib.suppress(OSError):  # a full disk must not end the job here, only where documents are written
            jobstate.save(self.folder, self.item, durable=collects)
        ended = time.monotonic()
        self._again = ended + max(_SECONDS_BETWEEN, _PART_OF_COUNTING * (ended - begun))

    def _counts(self) -> dict[str, Any]:
        if self._frontier is None:
            return {}
        counts = self._frontier.counts()
        urls = {state: count for state, count in counts.items() if state not in NO_STATES}
        return {"urls": urls, **{name: counts[name] for name in NO_STATES}}
