"""Begins the agent's jobs, resumes interrupted ones, and records how they ended.

`agent.service.scheduler` decides which publications are due and lists earlier runs; `agent.crawl.job_state` decides
when a failed job is tried again. The jobs to resume are determined at each turn, not once: a job left by the previous
agent may still run, and stop some time after this agent began.

Each job is a child process (`Children`), whose lines are logged. So is each step of a snapshot that waits in jobs/
(`StepRunner`): one at a time for a snapshot, few at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from agent.catalogue import stepfolders
from agent.catalogue.stepfolders import StepEnd
from agent.crawl import job_folder, job_orders, job_state
from agent.crawl.job_folder import Definition, is_import, is_patch, kind_of, publication_of, step_of
from agent.crawl.job_state import JobState, Phase
from agent.jobs import patchjob
from agent.service import scheduler
from agent.service.scheduler import History, Past
from agent.service.worker import End
from webarcfs.archive.catalogue.workflow import WorkflowStep
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.model.metadata import format_time, now

# == child processes ==================================================================================================


_log = logging.getLogger("webarc")
_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARNING": logging.WARNING, "ERROR": logging.ERROR}


@dataclass
class Child:
    """A process and the thread that reads its lines. Its stdin stays open as long as the agent lives."""

    name: str
    process: subprocess.Popen[bytes]
    reader: threading.Thread
    last_lines: list[str]  # its last line, if any


class Children:
    """The running child processes, by name."""

    def __init__(self) -> None:
        self._running: dict[str, Child] = {}
        self._last_words: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[str]:
        return iter(self._running)

    def start(self, name: str, *arguments: str) -> None:
        """Run `python argument…`. Raises OSError if no process can be created."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={key: value for key, value in os.environ.items() if key not in ("NOTIFY_SOCKET", "WATCHDOG_USEC")},
            start_new_session=True,
        )
        assert process.stderr is not None
        last_lines: list[str] = []
        reader = threading.Thread(target=_take_lines, args=(name, process.stderr, last_lines), daemon=True)
        reader.start()
        self._running[name] = Child(name, process, reader, last_lines)

    def ended(self) -> list[tuple[str, int]]:
        """Remove the processes that have ended; return their names and exit codes (a signal's number is negative)."""
        done = [child for child in self._running.values() if child.process.poll() is not None]
        for child in done:
            self._forget(child)
        return [(child.name, child.process.returncode) for child in done]

    def last_words(self, name: str) -> str:
        """Return and forget the last line of an ended process; after a failure, this is the reason."""
        return self._last_words.pop(name, "")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to each."""
        for child in self._running.values():
            child.process.send_signal(number)

    def _forget(self, child: Child) -> None:
        del self._running[child.name]
        child.reader.join(1)  # a descendant may still hold stderr; other children must not wait for it
        assert child.process.stdin is not None
        child.process.stdin.close()
        self._last_words[child.name] = "".join(child.last_lines)


def _take_lines(name: str, stream: IO[bytes], last_lines: list[str]) -> None:
    """Log the lines of a child; the first word of a line is its level."""
    with stream:
        for raw in stream:
            line = raw.decode("utf-8", "replace").rstrip()
            word, _, rest = line.partition(" ")
            last_lines[:] = [rest if word in _LEVELS else line]
            if word in _LEVELS:
                _log.log(_LEVELS[word], "%s: %s", name, rest)
            else:
                _log.error("%s: %s", name, line)  # a traceback, or a message of another program


# == step runner ======================================================================================================


#: Steps at once: each uses all processors that it gets. Captures wait for pages, and are none of them.
_AT_ONCE, _CAPTURES = 1, 16
#: Seconds until the next try of a step or a publication that another process works on.
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
            is_capture = _step(name) == WorkflowStep.CAPTURE
            running = sum((_step(child_name) == WorkflowStep.CAPTURE) == is_capture for child_name in self.children)
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
            failure = stepfolders.failure(self._archive, name)
            if failure is None or not failure.again or failure.is_due():
                failure = stepfolders.failed(self._archive, name, how or "failed")
            _log.error("%s: %s; next try %s", name, failure.reason, failure.again or "when somebody asks for it")

    def _due(self) -> Iterator[str]:
        """Yield the steps that can begin now; the first of each snapshot alone."""
        busy = {_record(child_name) for child_name in self.children}
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


# == dispatch =========================================================================================================


#: Jobs at once for each wget that may run: a job that waits for a slot or is in the pipeline needs no wget. Bounded,
#: since each job is a process of some 50 MB.
JOBS_PER_INSTANCE = 4
#: Seconds until the next try of a job that was left.
_LEFT_SECONDS = 0.5
#: Seconds that `start --once` waits for a left job whose publication is locked and whose item names no process: the
#: previous agent may have just begun it. A process that an item names is waited for as long as it runs.
_NAMELESS_SECONDS = 30.0
#: Seconds until the next try of a publication whose job could not be begun.
_AGAIN_SECONDS = 30.0


class Dispatch:
    """The jobs of one archive's agent. `publications` and `settings` are those of the last reload of webarc.toml."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._past = Past(archive)
        self.children = Children()
        self.publications: Sequence[Publication] = ()
        self.settings = Settings()
        self._not_before: dict[str, float] = {}
        self._untold: dict[str, JobState] = {}  # failures not written yet, since the disk is full
        self.history = self._read()
        #: Open jobs from before this agent began; it resumes them once no process works on them.
        self._left = {state.job for state in self.history.open}
        self._aside: set[str] = set()  # jobs that an agent cannot resume
        self._held: dict[str, float] = {}  # jobs to resume that an unknown process holds → since when (monotonic)
        self.ended: set[End] = set()  # exit codes of ended jobs

    def turn(self) -> None:
        """Handle ended jobs, resume interrupted ones, then begin those that are due."""
        self.take_ended()
        self._tell()
        self.history = self._read()
        # A job that a command resumed is left to that command.
        self._left -= {state.job for state in self.history.open if state.runs and not state.by_agent}
        room = self.settings.crawl.max_instances * JOBS_PER_INSTANCE
        for job in self.resume:
            if len(self.children) >= room:
                break
            self._try_to_go_on(job)
        for due in self.due(now()):
            if len(self.children) >= room:
                break
            self._try_to_begin(due.publication)

    @property
    def resume(self) -> list[str]:
        """The jobs to resume: jobs left by the previous agent, failed jobs whose next try is due, jobs with orders."""
        at, others = now(), self._aside | set(self.children)
        free = (state for state in self.history.open if state.job not in others and not state.runs)
        return [state.job for state in free if self._is_to_resume(state, at)]

    def _is_to_resume(self, state: JobState, at: datetime) -> bool:
        """Return whether a job without a process needs one; one that is held does once it has an order."""
        is_asked = is_patch(state.job) and not state.attempted  # by the desk
        if not state.held and (state.job in self._left or is_asked or job_state.is_due(state, at)):
            return True
        if is_import(state.job) or job_orders.last(self._archive.jobs / state.job) <= state.orders:
            return False
        new = job_orders.after(self._archive.jobs / state.job, state.orders)
        # A job that fails before it takes an order is not begun again and again for it.
        return state.state is not Phase.FAILED or any(order.at >= state.updated for order in new)

    def due(self, at: datetime) -> list[scheduler.Due]:
        """Return the publications that are due and have no running or resumable job."""
        busy = {state.publication for state in self.history.open if state.runs or state.held}
        busy |= set(filter(self._has_to_wait, self._not_before))
        busy |= {publication_of(name) for name in (*self.resume, *self.children)}
        free = [publication for publication in self.publications if publication.name not in busy]
        return scheduler.due(free, self.history.runs, at)

    def idle(self) -> bool:
        """Return whether no job runs, also none of the previous agent, and none is due."""
        winding_down = any(state.job in self._left and state.runs for state in self.history.open)
        latest = time.monotonic() - _NAMELESS_SECONDS
        resume = self.resume
        wait = all(self._has_to_wait(job) and self._held.get(job, latest) <= latest for job in resume)
        return not self.children and not winding_down and wait and not self.due(now())

    def _has_to_wait(self, name: str) -> bool:
        """Return whether a publication, or a job to resume, failed to begin recently."""
        return time.monotonic() < self._not_before.get(name, 0.0)

    def seconds_to_next(self, longest: float) -> float:
        """Return the seconds until a publication becomes due; `longest` at most."""
        at = now()
        runs = self.history.runs
        times = (
            scheduler.next_due(publication, runs.get(publication.name, ()), at).timestamp()
            for publication in self.publications
        )
        return min([longest, *(seconds - time.time() for seconds in times if seconds > time.time())])

    def take_ended(self) -> None:
        """Record the ends of jobs whose processes have ended."""
        for job, code in self.children.ended():
            self.history = self._read(surely=True)
            self._ended(job, code)

    def _read(self, *, surely: bool = False) -> History:
        """Return the history, including failures that could not be written."""
        past = self._past.read(surely=surely)
        if not self._untold:
            return past
        return dataclasses.replace(past, open=tuple(self._untold.get(state.job, state) for state in past.open))

    # -- beginning -----------------------------------------------------------------------------------------------

    def _try_to_begin(self, name: str) -> None:
        """Begin a publication's job: a failed or interrupted one, or a new one.

        Errors (a full disk, no more processes) are logged. They do not affect the other publications; this one is tried
        again later.
        """
        try:
            with job_folder.alone(self._archive, name):
                job = self._prepare(name)
            self._start(job)
        except Busy as error:
            _log.info("%s", error)
            self._not_before[name] = time.monotonic() + _ELSEWHERE_SECONDS
        except Exception:
            _log.exception("%s: could not be begun; it is tried again in %g s", name, _AGAIN_SECONDS)
            self.ended.add(End.FAILED)
            self._not_before[name] = time.monotonic() + _AGAIN_SECONDS

    def _prepare(self, name: str) -> str:
        """Prepare the folder of a publication's job for its process; return the job's name."""
        publication = next(publication for publication in self.publications if publication.name == name)
        folder = job_folder.interrupted(self._archive, name) or job_folder.new_folder(self._archive, name)
        try:
            item = scheduler.item_of(folder, name)
            stamp = format_time(now())
            job_state.save(folder, dataclasses.replace(_waiting(item), due=stamp, attempted=stamp))
            job_folder.save(folder, self._definition(publication))
        except BaseException:
            if not job_folder.has_begun(folder):
                job_folder.drop(folder)  # otherwise it would count as a run
            raise
        return folder.name

    def _try_to_go_on(self, job: str) -> None:
        """Resume a job that was left or has failed. Errors are logged, and the job is tried again later."""
        if self._has_to_wait(job):
            return
        try:
            patch = patchjob.patch_in(self._archive.jobs / job)
            with job_folder.alone(self._archive, publication_of(job)), patchjob.alone(self._archive, patch):
                ready = self._make_ready(job)
            self._left.discard(job)
            if ready:
                _log.info("resuming %s", job)
                self._start(job)
            else:
                self._aside.add(job)
        except Busy:  # its process has not written its item yet, or another one holds the publication or the record
            self._not_before[job] = time.monotonic() + _LEFT_SECONDS
            self._held.setdefault(job, time.monotonic())
        except Damaged as error:
            _log.warning("%s", error)
            self._left.discard(job)
            self._aside.add(job)
        except Exception as error:
            _log.exception("%s: could not be resumed", job)
            self.ended.add(End.FAILED)
            self._note_failure(job, job_state.reason_of(error, self._archive.jobs / job))
            self._left.discard(job)

    def _make_ready(self, job: str) -> bool:
        """Prepare a job for its process, with the current settings of its publication, else with its own definition.

        Returns False, and logs why, if the agent cannot resume the job.
        """
        folder = self._archive.jobs / job
        publication = next(
            (publication for publication in self.publications if publication.name == publication_of(job)), None
        )
        if not folder.is_dir() or not job_folder.usable(folder):
            return False
        if is_import(job):
            _log.info("%s is an import that was interrupted; the same command resumes it", job)
            return False
        item = scheduler.item_of(folder, publication_of(job))
        if item.state is Phase.FAILED:  # a failure that its process writes from now on is new
            job_state.save(folder, _waiting(item))
        if publication is not None:
            job_folder.save(folder, self._definition(publication))
        elif job_folder.load(folder) is None:
            _log.warning("%s has no definition; the crawl that made it resumes it", folder)
            return False
        return True

    def _definition(self, publication: Publication) -> Definition:
        profile = self.settings.profiles.get(publication.profile or "")
        return Definition(publication=publication, profile=profile, instances=self.settings.crawl.max_instances)

    def _start(self, job: str) -> None:
        self.children.start(job, "-m", "agent.service.worker", str(self._archive.root), job)
        _log.info("%s: begins", job)
        self._untold.pop(job, None)
        self._held.pop(job, None)
        self.history = self._read()

    # -- ending --------------------------------------------------------------------------------------------------

    def _ended(self, job: str, code: int) -> None:
        self.ended.add(End.STOPPED if code == -signal.SIGTERM else End(code) if code in set(End) else End.FAILED)
        if code == End.ELSEWHERE:
            self._elsewhere(job)
        elif code in (End.DONE, End.INCOMPLETE):
            _log.info("%s: %s", job, "done" if code == End.DONE else "done, but incomplete")
        elif code in (End.STOPPED, -signal.SIGTERM):  # SIGTERM before the worker handled signals
            ended = next((state for state in self.history.open if state.job == job), None)
            how = f"held ({ended.held})" if ended and ended.held else "stopped; the next start resumes it"
            _log.info("%s: %s", job, how)
        else:
            how = f"was killed by signal {-code}" if code < 0 else self.children.last_words(job) or "failed"
            self._note_failure(job, how, killed=code < 0)

    def _note_failure(self, job: str, how: str, *, killed: bool = False) -> None:
        """Record a job's failure and its next try. The reason written by its process takes precedence over `how`."""
        folder = self._archive.jobs / job
        item = next((state for state in self.history.open if state.job == job), None)
        if item is None or not folder.is_dir():
            _log.error("%s: %s", job, how)
            return
        reason = item.reason if item.state is Phase.FAILED and item.reason and not killed else how
        failed = job_state.failed(item, reason, now(), killed=killed)
        _log.error("%s: %s; next try %s", job, reason, failed.again or "when it is due")
        self._untold[job] = failed
        self._tell()
        self.history = self._read()

    def _tell(self) -> None:
        """Write the failures into the items. On a full disk they stay in memory, and each turn tries again."""
        for job, failed in list(self._untold.items()):
            folder = self._archive.jobs / job
            with contextlib.suppress(OSError, Damaged):
                item = job_state.load(folder)
                if folder.is_dir() and not (item is not None and item.runs):  # a command may have resumed it
                    job_state.save_surely(folder, failed)
                del self._untold[job]

    def _elsewhere(self, job: str) -> None:
        """Handle a job whose publication or record another process holds: try again later.

        A folder without a frontier is dropped, unless it is all that there is of what a person asked for.
        """
        folder = self._archive.jobs / job
        self._not_before[kind_of(job)] = time.monotonic() + _ELSEWHERE_SECONDS
        if not folder.is_dir():
            return
        if job_folder.has_begun(folder) or is_patch(job):
            self._left.add(job)
            self._not_before[job] = time.monotonic() + _LEFT_SECONDS
        else:
            job_folder.drop(folder)
            self.history = self._read()


def _waiting(item: JobState) -> JobState:
    return dataclasses.replace(item, state=Phase.WAITING, reason="", again="")
