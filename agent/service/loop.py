"""The unattended agent: a loop that begins each publication's job when it is due.

Each turn handles ended children, begins due jobs, runs the periodic tasks, and sleeps until a signal or the next due
time. A job runs in its own process (`agent.service.worker`). The folder names in jobs/ and reports/ are the only state
that must survive a restart.

It logs to log/agent.log, rotated by size, and to the journal or terminal.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import schedule

from agent.catalogue.recording import catch_up_records, crawl_as_before
from agent.crawl.job_folder import command_line_name
from agent.indexing import fulltext, recovery
from agent.maintenance import maintenance
from agent.service import agent_status
from agent.service.agent_status import Agent
from agent.service.dispatch import Children, Dispatch, StepRunner
from agent.service.worker import End
from webarcfs.archive.additions.commit_additions import replay
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Exit, SettingsError
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system import processes
from webarcfs.archive.system.cache import identity
from webarcfs.archive.system.processes import Signals
from webarcfs.archive.system.rotating_log import RotatingLog

# == log ==============================================================================================================


#: Python's level → syslog's priority, which the journal reads from the beginning of a line (sd-daemon(3)).
_PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6, logging.DEBUG: 7}


class JournalFormatter(logging.Formatter):
    """Formats each line with its priority and without the time, which the journal adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's lines, each with its priority."""
        priority = _PRIORITIES.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def to_file(folder: Path) -> None:
    """Also log to agent.log in `folder`; if stderr is the journal, format its lines for it."""
    root = logging.getLogger()
    handler = RotatingLog(folder / "agent.log")
    if processes.journal():
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
#: Seconds that jobs have to store their results; then they are killed, which loses only time.
DRAIN_SECONDS = 90.0


class Service:
    """The agent of one archive. `given` are publications in addition to those of webarc.toml.

    With `once` it ends when none is due. `ready` is called when the agent is ready.
    """

    def __init__(
        self,
        archive: Archive,
        given: Sequence[Publication],
        *,
        once: bool = False,
        ready: Callable[[], None] | None = None,
    ) -> None:
        self.archive = archive
        self.given = tuple(given)
        self.once = once
        self.ready = ready
        self.dispatch = Dispatch(archive)
        self.maintenance = Children()
        self.indexer = Children()
        self.steps = StepRunner(archive)
        self.chores = schedule.Scheduler()
        self.agent: Agent | None = None
        self._settings_read: tuple[object, ...] = ()
        self._no_index_before = 0.0  # a monotonic time: after a failure, the indexer waits

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
            processes.notify("READY=1", f"STATUS={self._state()}")
            _log.info("agent of %s runs as process %d: %s", self.archive.root, os.getpid(), self._state())
            if self.ready is not None:
                self.ready()
            while not signals.stop:
                if signals.take_reload() or self._changed_settings():
                    self.reload()
                if not self._turn():
                    signals.wait(min(_AFTER_TROUBLE, processes.watchdog_seconds() or _AFTER_TROUBLE))
                if self.once and self.dispatch.idle() and self.steps.is_idle and not self._indexes():
                    break
                signals.wait(self.dispatch.seconds_to_next(min(_LONGEST_SLEEP, processes.watchdog_seconds() or 1.0)))
            self._drain(signals)
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

    def _indexes(self) -> bool:
        """Return whether the indexer runs, started now if it has something to do."""
        self.index()
        return bool(self.indexer)

    def _turn(self) -> bool:
        """Run a turn; return False if it failed. Errors are logged, the agent continues (a full disk may be freed)."""
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
        except Exception:
            _log.exception("the agent continues after this")
            return False
        return True

    def _drain(self, signals: Signals) -> None:
        """Stop all jobs; their frontiers stay. Jobs that take too long are killed; they can be resumed as well."""
        children = self.dispatch.children
        processes.notify("STOPPING=1", "STATUS=waiting for jobs to stop")
        _log.info("stopping: %d jobs keep what they have", len(children))
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process handles SIGTERM only after SIGCONT
            children.signal(number)
            self.maintenance.signal(number)
            self.indexer.signal(number)
            self.steps.children.signal(number)
        until = time.monotonic() + DRAIN_SECONDS
        while children or self.maintenance or self.indexer or self.steps.children:
            try:
                self.maintenance.ended()
                self.indexer.ended()
                self.steps.take_ended()
                self.dispatch.take_ended()
            except Exception:
                _log.exception("the agent ends all the same")
            if time.monotonic() > until:
                children.signal(signal.SIGKILL)
                self.maintenance.signal(signal.SIGKILL)
                self.indexer.signal(signal.SIGKILL)
                self.steps.children.signal(signal.SIGKILL)
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

    def _tell_faults(self, faults: tuple[str, ...]) -> None:
        if self.agent is not None and self.agent.faults != faults:
            self.agent = dataclasses.replace(self.agent, faults=faults)
            agent_status.tell(self.archive, self.agent)

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
