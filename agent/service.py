"""The agent that runs unattended: starts each publication's job when it is due, and survives what happens to them.

The loop: take what children ended, start what is due, look after the chores, sleep until a signal or what comes next.
What is due is `agent.scheduler`'s to say; a job runs in a process of its own (`agent.worker`). All that it must keep
in mind over a restart are the names of the folders in jobs/ and reports/.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import schedule

from agent import agentfile, definition, history, item, jobs, scheduler, systemd
from agent import recover as recovery
from agent.agentfile import Agent
from agent.children import Children
from agent.definition import Definition
from agent.history import History
from agent.item import AT_WORK, Item, State
from agent.signals import Signals
from agent.worker import End
from webarcfs.archive import config
from webarcfs.archive.config import Publication, Settings
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import SettingsError, WebarcError
from webarcfs.archive.model import format_time, now

_log = logging.getLogger("webarc")
#: Jobs at once, for each wget that may run: a job that waits for its turn or goes through the pipeline needs no wget.
#: A bound all the same, since each is a process of some 50 MB.
JOBS_PER_INSTANCE = 4
_LONGEST_SLEEP = 1.0
#: Seconds that jobs get to keep what they have; then they are killed, which costs them nothing but time.
DRAIN_SECONDS = 90.0
#: Seconds until a publication that somebody else was crawling is looked at again.
_ELSEWHERE_SECONDS = 5.0


class Service:
    """The agent of one archive. `given` are publications beside those of webarc.toml; `once`: end when none is due;
    `ready` is called when it is.
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
        self.settings = Settings()
        self.children = Children()
        self.history = History({}, {}, ())
        self.seen: tuple[int, int] = (0, 0)
        self.resume: list[str] = []
        self.not_before: dict[str, float] = {}
        self.chores = schedule.Scheduler()
        self.agent: Agent | None = None

    @property
    def publications(self) -> tuple[Publication, ...]:
        """Those of webarc.toml and those of the command line, which win."""
        names = {each.name for each in self.given}
        return (*self.given, *(each for each in self.settings.publications if each.name not in names))

    def run(self) -> None:
        """Be the agent until SIGTERM. Raises Busy when there is one, SettingsError when webarc.toml is wrong."""
        with agentfile.hold(self.archive) as self.agent, Signals() as signals:
            self.settings = self._load()
            self._catch_up()
            self._look()
            self.resume = [each.job for each in self.history.open if not each.runs]
            self.chores.every(10).seconds.do(self._tell_state)
            systemd.notify("READY=1", f"STATUS={self._state()}")
            _log.info("agent of %s runs as process %d: %s", self.archive.root, os.getpid(), self._state())
            if self.ready is not None:
                self.ready()
            while not signals.stop:
                if signals.take_reload():
                    self.reload()
                self._guarded_turn()
                if self.once and not self.children and not self.resume and not self._due(now()):
                    break
                signals.wait(self._sleep())
            self._drain(signals)

    def reload(self) -> None:
        """Read webarc.toml again; one that is wrong changes nothing, and status says so."""
        systemd.reloading()
        faults: tuple[str, ...] = ()
        try:
            self.settings = self._load()
            _log.info("settings read again: %d publications", len(self.publications))
        except (SettingsError, OSError) as error:
            faults = error.faults if isinstance(error, SettingsError) else (str(error),)
            for fault in faults:
                _log.error("%s: %s; the settings from before stay in force", self.archive.settings, fault)
        if self.agent is not None:
            self.agent = dataclasses.replace(self.agent, faults=faults)
            agentfile.tell(self.archive, self.agent)
        systemd.notify("READY=1", f"STATUS={self._state()}")

    # -- one turn of the loop ------------------------------------------------------------------------------------

    def _guarded_turn(self) -> None:
        """A turn; whatever goes wrong in it is logged, and the agent goes on (a full disk may be mended meanwhile)."""
        try:
            self.turn()
        except Exception:
            _log.exception("the agent goes on after this")
        if systemd.watchdog_seconds() is not None:
            systemd.notify("WATCHDOG=1")

    def turn(self) -> None:
        """Take what ended, start what is due."""
        for name, code in self.children.ended():
            self._ended(name, code)
        self._look()
        self.chores.run_pending()
        room = self.settings.crawl.max_instances * JOBS_PER_INSTANCE
        while self.resume and len(self.children) < room:
            self._go_on(self.resume.pop(0))
        for each in self._due(now()):
            if len(self.children) >= room:
                break
            self._begin(each.publication)

    def _look(self) -> None:
        """See what other processes began and ended; costs two stat(2) where nothing changed."""
        stamp = history.stamp(self.archive)
        if stamp != self.seen or any(each.state in AT_WORK for each in self.history.open):
            self.seen = stamp
            self.history = history.read(self.archive)

    def _due(self, at: datetime) -> list[scheduler.Due]:
        """What is due and nobody is at."""
        busy = {each.publication for each in self.history.open if each.runs}
        busy |= {name for name, until in self.not_before.items() if time.monotonic() < until}
        busy |= {name.partition("-")[2] for name in (*self.resume, *self.children)}
        free = [each for each in self.publications if each.name not in busy]
        return scheduler.due(free, self.history.runs, at)

    def _begin(self, name: str) -> None:
        """Start a publication's job: the one that failed or was interrupted, or a new one."""
        publication = next(each for each in self.publications if each.name == name)
        folder = jobs.interrupted(self.archive, name) or jobs.new_folder(self.archive, name)
        known = history.item_of(folder, name)
        stamp = format_time(now())
        item.save(folder, dataclasses.replace(known, due=stamp, attempted=stamp, state=State.WAITING, reason=""))
        definition.save(folder, self._definition(publication))
        self._start(folder.name)

    def _go_on(self, job: str) -> None:
        """Start a job that the agent before left; as the settings say now, or as it was defined if they do not."""
        folder = self.archive.jobs / job
        publication = next((each for each in self.publications if each.name == job.partition("-")[2]), None)
        if not folder.is_dir() or not jobs.usable(folder):
            return
        if publication is not None:
            definition.save(folder, self._definition(publication))
        elif definition.load(folder) is None:
            _log.warning("%s has no definition; the crawl that made it goes on with it", folder)
            return
        _log.info("going on with %s", job)
        self._start(job)

    def _definition(self, publication: Publication) -> Definition:
        profile = self.settings.profiles.get(publication.profile or "")
        return Definition(
            publication=publication, profile=profile, instances=self.settings.crawl.max_instances, accept_shrink=False
        )

    def _start(self, job: str) -> None:
        self.children.start(job, "agent.worker", (str(self.archive.root), job))
        _log.info("%s: begins", job)
        self.history = history.read(self.archive)

    # -- how jobs end --------------------------------------------------------------------------------------------

    def _ended(self, job: str, code: int) -> None:
        self.history = history.read(self.archive)
        if code == End.ELSEWHERE:
            self._elsewhere(job)
        elif code in (End.DONE, End.INCOMPLETE):
            _log.info("%s: %s", job, "done" if code == End.DONE else "done, but incomplete")
        elif code in (End.STOPPED, -signal.SIGTERM):  # the latter before it had begun
            _log.info("%s: stopped; the next start goes on from there", job)
        else:
            how = f"was killed by signal {-code}" if code < 0 else "failed"
            _log.error("%s: %s; it is tried again when it is due", job, how)
            self._note_failure(job, how)

    def _note_failure(self, job: str, how: str) -> None:
        """Put a job whose process could not say so itself down as failed."""
        folder = self.archive.jobs / job
        known = next((each for each in self.history.open if each.job == job), None)
        if known is not None and folder.is_dir() and known.state in AT_WORK:
            item.save(folder, _failed(known, how))
            self.history = history.read(self.archive)

    def _elsewhere(self, job: str) -> None:
        """Somebody else crawls the publication: drop the folder if nothing is in it, and look again in a while."""
        folder = self.archive.jobs / job
        self.not_before[job.partition("-")[2]] = time.monotonic() + _ELSEWHERE_SECONDS
        if folder.is_dir() and not (folder / "frontier.db").exists():
            jobs.drop(folder)
            self.history = history.read(self.archive)

    def _drain(self, signals: Signals) -> None:
        """Stop all jobs; they keep their frontiers. Those that take too long are killed, which they survive too."""
        systemd.notify("STOPPING=1", "STATUS=waiting for jobs to stop")
        _log.info("stopping: %d jobs keep what they have", len(self.children))
        self.children.signal(signal.SIGTERM)
        until = time.monotonic() + DRAIN_SECONDS
        while self.children:
            for name, code in self.children.ended():
                self._ended(name, code)
            if time.monotonic() > until:
                self.children.signal(signal.SIGKILL)
            signals.wait(0.2)
        _log.info("the agent of %s has ended", self.archive.root)

    # -- the rest ------------------------------------------------------------------------------------------------

    def _load(self) -> Settings:
        settings, warning = config.load(self.archive.settings)
        if warning is not None and self.archive.settings.exists():
            _log.warning("%s", warning)
        return settings

    def _catch_up(self) -> None:
        """Bring what derives from git in step, as far as it can be; a damaged repository stops no other's crawls."""
        try:
            recovery.catch_up(self.archive)
        except (WebarcError, OSError):
            _log.exception("could not bring the database in step with git; `webarc-agent recover` makes it anew")

    def _sleep(self) -> float:
        """Seconds until there may be something to do."""
        at = now()
        times = [
            scheduler.next_due(each, self.history.runs.get(each.name, ()), at).timestamp() - time.time()
            for each in self.publications
        ]
        longest = min(_LONGEST_SLEEP, systemd.watchdog_seconds() or _LONGEST_SLEEP)
        return min([longest, *(seconds for seconds in times if seconds > 0)])

    def _state(self) -> str:
        return f"{len(self.publications)} publications, {len(self.children)} jobs run"

    def _tell_state(self) -> None:
        systemd.notify(f"STATUS={self._state()}")


def _failed(known: Item, how: str) -> Item:
    return dataclasses.replace(known, state=State.FAILED, reason=how, updated=format_time(now()), pid=0, ticks=0)


def given(urls: Sequence[str], settings: Settings) -> tuple[Publication, ...]:
    """The publication that `start URL…` makes: due at once, and at each interval of `[crawl]` from then on (/Cr-3/)."""
    if not urls:
        return ()
    name = jobs.command_line_name(urls)
    return (Publication(name=name, urls=tuple(urls), start=now(), crawl=settings.crawl),)
