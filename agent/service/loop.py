"""The unattended agent: a loop that begins each publication's job when it is due.

Each turn handles ended children, begins due jobs, runs the periodic tasks, and sleeps until a signal or the next due
time. A job runs in its own process (`agent.service.worker`). The folder names in jobs/ and reports/ are the only state
that must survive a restart.

It logs to log/agent.log, rotated by size, and to the journal or terminal.

`Dispatch` begins the agent's jobs, resumes interrupted ones, and records how they ended.

`agent.service.scheduler` decides which publications are due and lists earlier runs; `agent.crawl.job_folder` decides
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import schedule

from agent.catalogue import stepfolders
from agent.catalogue.recording import catch_up_records, crawl_as_before
from agent.catalogue.stepfolders import StepEnd
from agent.crawl import job_folder, job_orders
from agent.crawl.job_folder import (
    Definition,
    JobState,
    Phase,
    command_line_name,
    is_asked_for,
    is_page,
    kind_of,
    publication_of,
    step_of,
)
from agent.indexing import fulltext, recovery
from agent.jobs import crawljob
from agent.maintenance import maintenance
from agent.service import agent_status, scheduler
from agent.service.agent_status import Agent
from agent.service.metrics import ArchiveMetrics, KnownSettings, known_settings
from agent.service.scheduler import History, Past
from agent.service.worker import End
from webarcfs.archive.additions.commit_additions import replay
from webarcfs.archive.catalogue.record import is_import
from webarcfs.archive.catalogue.workflow import WorkflowStep
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Busy, Damaged, Exit, SettingsError, WebarcError
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.system import processes
from webarcfs.archive.system.cache import identity
from webarcfs.archive.system.json_log import JsonFormatter, log_json
from webarcfs.archive.system.processes import Signals
from webarcfs.archive.system.rotating_log import RotatingLog
from webarcfs.web.listeners import address as listen_address

if TYPE_CHECKING:
    from agent.service.metrics_listener import MetricsListener

# == child processes ==================================================================================================


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
                _log.log(_LEVELS[word], "%s: %s", name, rest, extra={"job": name})
            else:
                _log.error("%s: %s", name, line, extra={"job": name})  # a traceback, or a message of another program


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
        self.ends = 0  # how many steps have ended

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
            self.ends += 1
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
#: Jobs at once that save single pages, beside those: neither waits for the other.
PAGES_AT_ONCE = 2
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
        self.ends = 0  # how many jobs have ended

    def turn(self) -> None:
        """Handle ended jobs, resume interrupted ones, then begin those that are due."""
        self.take_ended()
        self._tell()
        self.history = self._read()
        # A job that a command resumed is left to that command.
        self._left -= {state.job for state in self.history.open if state.runs and not state.by_agent}
        room = self.settings.crawl.max_instances * JOBS_PER_INSTANCE
        for job in self.resume:
            if is_page(job):
                if self._has_room_for(job):
                    self._try_to_go_on(job)
            elif self._running_crawls < room:
                self._try_to_go_on(job)
        for due in self.due(now()):
            if self._running_crawls >= room:
                break
            self._try_to_begin(due.publication)

    @property
    def _running_crawls(self) -> int:
        return sum(not is_page(job) for job in self.children)

    def _has_room_for(self, page: str) -> bool:
        """Return whether the job of a page may begin now: two pages of a host are saved one after the other."""
        running = [publication_of(job) for job in self.children if is_page(job)]
        return len(running) < PAGES_AT_ONCE and publication_of(page) not in running

    @property
    def resume(self) -> list[str]:
        """The jobs to resume: jobs left by the previous agent, failed jobs whose next try is due, jobs with orders."""
        at, others = now(), self._aside | set(self.children)
        free = (state for state in self.history.open if state.job not in others and not state.runs)
        return [state.job for state in free if self._is_to_resume(state, at)]

    def _is_to_resume(self, state: JobState, at: datetime) -> bool:
        """Return whether a job without a process needs one; one that is held does once it has an order."""
        is_asked = is_asked_for(state.job) and not state.attempted
        if is_page(state.job):  # also one that a command began and left: a person waits for it
            is_asked = state.state is not Phase.FAILED
        if not state.held and (state.job in self._left or is_asked or job_folder.is_due(state, at)):
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
            job_folder.save_item(folder, dataclasses.replace(_waiting(item), due=stamp, attempted=stamp))
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
            patch = crawljob.patch_in(self._archive.jobs / job)
            with job_folder.alone(self._archive, publication_of(job)), crawljob.lock_record(self._archive, patch):
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
            self._note_failure(job, job_folder.reason_of(error, self._archive.jobs / job))
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
            job_folder.save_item(folder, _waiting(item))
        if publication is not None and not is_page(job):
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
        self.ends += 1
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
        failed = job_folder.failed(item, reason, now(), killed=killed)
        _log.error("%s: %s; next try %s", job, reason, failed.again or "when it is due")
        self._untold[job] = failed
        self._tell()
        self.history = self._read()

    def _tell(self) -> None:
        """Write the failures into the items. On a full disk they stay in memory, and each turn tries again."""
        for job, failed in list(self._untold.items()):
            folder = self._archive.jobs / job
            with contextlib.suppress(OSError, Damaged):
                item = job_folder.load_item(folder)
                if folder.is_dir() and not (item is not None and item.runs):  # a command may have resumed it
                    job_folder.save_surely(folder, failed)
                del self._untold[job]

    def _elsewhere(self, job: str) -> None:
        """Handle a job whose publication or record another process holds: try again later.

        A folder without a frontier is dropped, unless it is all that there is of what a person asked for.
        """
        folder = self._archive.jobs / job
        self._not_before[kind_of(job)] = time.monotonic() + _ELSEWHERE_SECONDS
        if not folder.is_dir():
            return
        if job_folder.has_begun(folder) or is_asked_for(job):
            self._left.add(job)
            self._not_before[job] = time.monotonic() + _LEFT_SECONDS
        else:
            job_folder.drop(folder)
            self.history = self._read()


def _waiting(item: JobState) -> JobState:
    return dataclasses.replace(item, state=Phase.WAITING, reason="", again="")


# == log ==============================================================================================================


#: Python's level → syslog's priority, which the journal reads from the beginning of a line (sd-daemon(3)).
_PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6, logging.DEBUG: 7}


class JournalFormatter(logging.Formatter):
    """Formats each line with its priority and without the time, which the journal adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's lines, each with its priority."""
        priority = _PRIORITIES.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def to_file(folder: Path, *, as_json: bool = False) -> None:
    """Also log to agent.log in `folder`; if stderr is the journal, format its lines for it."""
    root = logging.getLogger()
    handler = RotatingLog(folder / "agent.log")
    if as_json:
        log_json(_PRIORITIES if processes.journal() else None)
        handler.setFormatter(JsonFormatter())
    elif processes.journal():
        for root_handler in root.handlers:
            root_handler.setFormatter(JournalFormatter("%(message)s"))
    root.addHandler(handler)


def only_to_file() -> None:
    """Stop logging to stderr."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if not isinstance(handler, RotatingLog):
            root.removeHandler(handler)


# == loop =============================================================================================================


_log = logging.getLogger("webarc")
_LONGEST_SLEEP = 1.0
#: Seconds of pause after a failed turn, so that a persistent error does not fill the log.
_AFTER_TROUBLE = 5.0
#: Seconds between two looks whether the full-text index is behind, and of pause after its indexer failed.
_SECONDS_BETWEEN_INDEXING, _AFTER_INDEXER = 5, 60
#: Seconds after which a turn of the loop hangs, for those who ask whether the agent is well.
_SECONDS_OF_A_TURN = 120.0
#: Seconds between two looks whether people have to be told of something. One follows the end of jobs and steps, but so
#: many seconds at least after the last one: a look reads settings and reports, and steps may end every second.
_SECONDS_BETWEEN_WATCHES, _LEAST_BETWEEN_WATCHES = 60, 10
#: Seconds that jobs have to store their results; then they are killed, which loses only time.
DRAIN_SECONDS = 90.0


class Service:
    """The agent of one archive. `given` are publications in addition to those of webarc.toml.

    With `once` it ends when none is due. `ready` is called when the agent is ready. `metrics_listen` replaces the
    address of `[metrics]`.
    """

    def __init__(
        self,
        archive: Archive,
        given: Sequence[Publication],
        *,
        once: bool = False,
        ready: Callable[[], None] | None = None,
        metrics_listen: str | None = None,
    ) -> None:
        self.archive = archive
        self._metrics_listen = metrics_listen
        self.given = tuple(given)
        self.once = once
        self.ready = ready
        self.dispatch = Dispatch(archive)
        self.maintenance = Children()
        self.indexer = Children()
        self.notifier = Children()
        self.steps = StepRunner(archive)
        self.chores = schedule.Scheduler()
        self.agent: Agent | None = None
        self._settings_read: tuple[object, ...] = ()
        self._no_index_before = 0.0  # a monotonic time: after a failure, the indexer waits
        self._metrics: MetricsListener | None = None
        self._metrics_address = ""
        self._last_turn = time.monotonic()
        self._ends_told = 0  # of jobs and steps, when the notifier was started last
        self._no_watch_before = 0.0  # a monotonic time
        self._notifier_failed = False

    def run(self) -> Exit:
        """Run the agent until SIGTERM. Raises Busy if another agent runs, SettingsError if webarc.toml is wrong.

        With `once`, the exit code says how the jobs ended. Otherwise it is DONE; the reports contain the results.
        """
        with agent_status.hold(self.archive) as self.agent, Signals() as signals:
            self._take_settings()
            self._bring_in_step(signals)
            self.dispatch = Dispatch(self.archive)  # read again under the lock: the previous agent has ended
            self._tell_faults(self._take_settings())
            self.chores.every(10).seconds.do(self._tell_state)
            self.chores.every(1).minutes.do(self.maintain)
            self.chores.every(_SECONDS_BETWEEN_INDEXING).seconds.do(self.index)
            self.chores.every(_SECONDS_BETWEEN_WATCHES).seconds.do(self.notify)
            processes.notify("READY=1", f"STATUS={self._state()}")
            _log.info("agent of %s runs as process %d: %s", self.archive.root, os.getpid(), self._state())
            self._serve_metrics()
            self.chores.every(1).minutes.do(self._serve_metrics)  # the address may have been in use
            if self.ready is not None:
                self.ready()
            while not signals.stop:
                if signals.take_reload() or self._changed_settings():
                    self.reload()
                if not self._turn():
                    signals.wait(min(_AFTER_TROUBLE, processes.watchdog_seconds() or _AFTER_TROUBLE))
                if self.once and self._is_done():
                    break
                signals.wait(self.dispatch.seconds_to_next(min(_LONGEST_SLEEP, processes.watchdog_seconds() or 1.0)))
            self._drain(signals)
            self._stop_metrics()
            if not self.once:
                return Exit.DONE
            return Exit.FAILED if self.steps.failed else _exit(self.dispatch.ended)

    def reload(self) -> None:
        """Read webarc.toml again. If it is wrong, the old settings stay in force and status shows the errors."""
        processes.reloading()
        faults: tuple[str, ...] = ()
        try:
            faults = self._take_settings()
            _log.info("settings reloaded: %s", self._state())
            for fault in faults:
                _log.error("%s; that publication stays as it was", fault)
        except (SettingsError, OSError) as error:
            faults = error.faults if isinstance(error, SettingsError) else (str(error),)
            for fault in faults:
                _log.error("%s: %s; the settings from before stay in force", self.archive.settings, fault)
        self._tell_faults(faults)
        self._serve_metrics()
        processes.notify("READY=1", f"STATUS={self._state()}")

    def maintain(self) -> None:
        """Start the daily maintenance in its own process, if it is due."""
        if maintenance.due(self.archive, now()) and not self.maintenance:
            command = "from agent.cli import main; main()"
            self.maintenance.start(
                "maintenance", "-c", command, "--quiet", "maintain", "--archive", str(self.archive.root)
            )

    def index(self) -> None:
        """Start the indexer in its own process, if the full-text index is behind. Publishing never waits for it."""
        if self.indexer or time.monotonic() < self._no_index_before:
            return
        if fulltext.wanted(self.archive) and fulltext.is_behind(self.archive):
            command = "from agent.cli import main; main()"
            self.indexer.start("indexer", "-c", command, "--quiet", "index", "--archive", str(self.archive.root))

    def notify(self) -> None:
        """Start the notifier in its own process: it looks at what is amiss, and tells people. Nothing waits for it."""
        if self.notifier or not self.dispatch.settings.notify.tells_anybody:
            return
        self._ends_told = self._ends
        self._no_watch_before = time.monotonic() + _LEAST_BETWEEN_WATCHES
        command = ("-c", "from agent.cli import main; main()", "--quiet", "watch", "--from-agent")
        self.notifier.start("notifier", *command, "--archive", str(self.archive.root))

    @property
    def _ends(self) -> int:
        return self.dispatch.ends + self.steps.ends

    def _is_done(self) -> bool:
        """Return whether there is nothing more to do with `once`: also nobody to be told of how it ended."""
        if not (self.dispatch.idle() and self.steps.is_idle) or self._indexes():
            return False
        if self._ends != self._ends_told:
            self.notify()
        return not self.notifier

    def _indexes(self) -> bool:
        """Return whether the indexer runs, started now if it has something to do."""
        self.index()
        return bool(self.indexer)

    def _turn(self) -> bool:
        """Run a turn; return False if it failed. Errors are logged, the agent continues (a full disk may be freed)."""
        self._last_turn = time.monotonic()
        if processes.watchdog_seconds() is not None:
            processes.notify("WATCHDOG=1")
        try:
            self.dispatch.turn()
            self.steps.turn()
            self.chores.run_pending()
            for name, code in self.maintenance.ended():
                _log.log(logging.ERROR if code else logging.INFO, "%s: ended with %d", name, code)
            for name, code in self.indexer.ended():
                if code:
                    _log.error("%s: ended with %d; it resumes in %d s", name, code, _AFTER_INDEXER)
                    self._no_index_before = time.monotonic() + _AFTER_INDEXER
            self._take_notifier()
        except Exception:
            _log.exception("the agent continues after this")
            return False
        return True

    def _take_notifier(self) -> None:
        """Handle a notifier that has ended; start one if jobs or steps have ended since the last one began."""
        for name, code in self.notifier.ended():
            failed = code not in (Exit.DONE, Exit.INCOMPLETE, -signal.SIGTERM)
            if failed and not self._notifier_failed:  # it has said why; it runs every minute
                _log.error("%s: ended with %d; what it could not do is tried again", name, code)
            self._notifier_failed = failed
        if self._ends != self._ends_told and time.monotonic() >= self._no_watch_before:
            self.notify()

    def _drain(self, signals: Signals) -> None:
        """Stop all jobs; their frontiers stay. Jobs that take too long are killed; they can be resumed as well."""
        children = self.dispatch.children
        groups = (children, self.maintenance, self.indexer, self.notifier, self.steps.children)
        processes.notify("STOPPING=1", "STATUS=waiting for jobs to stop")
        _log.info("stopping: %d jobs keep what they have", len(children))
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process handles SIGTERM only after SIGCONT
            for group in groups:
                group.signal(number)
        until = time.monotonic() + DRAIN_SECONDS
        while any(groups):
            try:
                self.maintenance.ended()
                self.notifier.ended()
                self.indexer.ended()
                self.steps.take_ended()
                self.dispatch.take_ended()
            except Exception:
                _log.exception("the agent ends all the same")
            if time.monotonic() > until:
                for group in groups:
                    group.signal(signal.SIGKILL)
            if processes.watchdog_seconds() is not None:
                processes.notify("WATCHDOG=1")
            signals.wait(0.2)
        _log.info("the agent of %s has ended", self.archive.root)

    def _changed_settings(self) -> bool:
        """Return whether webarc.toml or a file of publications.d is another one than when the settings were read."""
        return identity(self.archive.settings, self.archive.publications) != self._settings_read

    def _take_settings(self) -> tuple[str, ...]:
        """Apply webarc.toml. Publications of the command line replace those of the same name.

        Return the faults of publications in files of their own: these stay as they were, the others are as they are.
        """
        self._settings_read = identity(self.archive.settings, self.archive.publications)
        apart: dict[str, list[str]] = {}
        settings, warning = settings_files.load(self.archive.settings, apart=apart)
        if warning is not None and self.archive.settings.exists():
            _log.warning("%s", warning)
        names = {publication.name for publication in self.given}
        self.dispatch.settings = settings
        kept = [
            publication
            for publication in self.dispatch.publications
            if publication.name in apart and publication.name not in names
        ]
        listed = [
            publication
            for publication in settings.publications
            if publication.name not in names and not publication.retired
        ]
        self.dispatch.publications = (*self.given, *listed, *kept)
        return tuple(fault for faults in apart.values() for fault in faults)

    def _serve_metrics(self) -> None:
        """Answer monitoring systems where the settings say so. What fails is tried again, and crawls go on."""
        wanted = self.dispatch.settings.metrics.listen if self._metrics_listen is None else self._metrics_listen
        if wanted == self._metrics_address:
            return
        self._stop_metrics()
        if not wanted:
            return
        from agent.service.metrics_listener import MetricsListener  # noqa: PLC0415 # it imports asyncio, no command does

        figures = ArchiveMetrics(self.archive, _SettingsOfAgent(self.dispatch))
        try:
            self._metrics = MetricsListener(listen_address(wanted), figures.page, self._is_well)
        except (WebarcError, OSError) as error:
            _log.error("no metrics: %s; it is tried again each minute", error)
            return
        self._metrics_address = wanted
        self._metrics.start()
        _log.info("metrics are at %s/metrics", self._metrics.address.origin or self._metrics.address)

    def _stop_metrics(self) -> None:
        if self._metrics is not None:
            self._metrics.close()
        self._metrics, self._metrics_address = None, ""

    def _is_well(self) -> bool:
        """Return whether its loop turns, and its archive is there. Asked by another thread."""
        return self.archive.is_there and time.monotonic() - self._last_turn < _SECONDS_OF_A_TURN

    def _tell_faults(self, faults: tuple[str, ...]) -> None:
        """Write what is wrong with the settings into the agent's file. On a full disk only the log has it."""
        if self.agent is not None and self.agent.faults != faults:
            agent = dataclasses.replace(self.agent, faults=faults)
            try:
                agent_status.tell(self.archive, agent)
            except OSError as error:
                _log.warning("the faults of the settings are in this log only: %s", error)
                return
            self.agent = agent

    def _bring_in_step(self, signals: Signals) -> None:
        """Commit additions left by dead mounts, index and describe missing snapshots.

        Damage in one domain affects no other.
        """
        crawl_as_before(self.archive)  # first: what follows may raise the layout
        for name, work in (
            ("additions", replay),
            ("the database", lambda archive: recovery.catch_up(archive, lambda: signals.stop)),
            ("the catalogue", lambda archive: catch_up_records(archive, lambda: signals.stop)),
        ):
            try:
                work(self.archive)
            except Exception:
                _log.exception("could not synchronise %s with git; `webarc-agent verify` reports the damage", name)

    def _state(self) -> str:
        return f"{len(self.dispatch.publications)} publications, {len(self.dispatch.children)} jobs run"

    def _tell_state(self) -> None:
        processes.notify(f"STATUS={self._state()}")


class _SettingsOfAgent:
    """The settings that an agent's metrics are about: those that hold in it. Its own file has their faults."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self._known: tuple[tuple[Settings, Sequence[Publication]], KnownSettings] | None = None

    def __call__(self) -> KnownSettings:
        """Return them, the same object until they are others. Called by the thread of the listener."""
        state = (self._dispatch.settings, self._dispatch.publications)
        if self._known is None or any(old is not new for old, new in zip(self._known[0], state, strict=True)):
            self._known = state, known_settings(state[0], 0, state[1])
        return self._known[1]


def _exit(ended: set[End]) -> Exit:
    """Return the exit code of a command whose jobs ended so."""
    if End.FAILED in ended:
        return Exit.FAILED
    return Exit.INCOMPLETE if ended & {End.INCOMPLETE, End.STOPPED} else Exit.DONE


def given(urls: Sequence[str], settings: Settings) -> tuple[Publication, ...]:
    """Return the publication that `start URL…` makes: due at once, then at each interval of `[crawl]` (/Cr-3/)."""
    if not urls:
        return ()
    name = command_line_name(urls)
    return (settings.unlisted(name, tuple(urls), start=now()),)
