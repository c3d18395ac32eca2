"""Begins jobs, goes on with interrupted ones, and notes how they ended: the agent's dealings with its jobs.

What is due is `agent.scheduler`'s to say; what ran, `agent.history`'s. A job that fails hurts nobody else, and is tried
again when its publication is due again.
"""

from __future__ import annotations

import dataclasses
import logging
import signal
import time
from collections.abc import Sequence
from datetime import datetime

from agent import definition, history, item, jobs, scheduler
from agent.children import Children
from agent.definition import Definition
from agent.history import Past
from agent.item import AT_WORK, Item, State
from agent.jobnames import is_import, kind_of
from agent.worker import End
from webarcfs.archive.config import Publication, Settings
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import Busy, Damaged
from webarcfs.archive.model import format_time, now

_log = logging.getLogger("webarc")
#: Jobs at once, for each wget that may run: a job that waits for its turn or goes through the pipeline needs no wget.
#: A bound all the same, since each is a process of some 50 MB.
JOBS_PER_INSTANCE = 4
#: Seconds until a publication that somebody else was crawling is looked at again.
_ELSEWHERE_SECONDS = 5.0
#: Seconds until one is tried again that could not be begun at all.
_AGAIN_SECONDS = 30.0


class Dispatch:
    """The jobs of one archive's agent. `publications` and `settings` are as webarc.toml was read last."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._past = Past(archive)
        self.children = Children()
        self.publications: Sequence[Publication] = ()
        self.settings = Settings()
        self.history = self._past.read()
        self.resume = [each.job for each in self.history.open if not each.runs]
        self._not_before: dict[str, float] = {}
        self.ended: set[End] = set()  # how jobs ended

    def turn(self) -> None:
        """Take what ended, begin what is due; what was interrupted comes first."""
        self.take_ended()
        self.history = self._past.read()
        room = self.settings.crawl.max_instances * JOBS_PER_INSTANCE
        for job in list(self.resume):
            if len(self.children) >= room:
                break
            self._try_to_go_on(job)
        for each in self.due(now()):
            if len(self.children) >= room:
                break
            self._try_to_begin(each.publication)

    def due(self, at: datetime) -> list[scheduler.Due]:
        """What is due and nobody is at."""
        busy = {each.publication for each in self.history.open if each.runs}
        busy |= set(filter(self._has_to_wait, self._not_before))
        busy |= {kind_of(name) for name in (*self.resume, *self.children)}
        free = [each for each in self.publications if each.name not in busy]
        return scheduler.due(free, self.history.runs, at)

    def idle(self) -> bool:
        """Whether nothing runs and nothing is due."""
        return not self.children and all(map(self._has_to_wait, self.resume)) and not self.due(now())

    def _has_to_wait(self, name: str) -> bool:
        """Whether a publication, or a job that is to be gone on with, failed to begin a moment ago."""
        return time.monotonic() < self._not_before.get(name, 0.0)

    def seconds_to_next(self, longest: float) -> float:
        """Seconds until a publication comes due; `longest` at most."""
        at = now()
        runs = self.history.runs
        times = (scheduler.next_due(each, runs.get(each.name, ()), at).timestamp() for each in self.publications)
        return min([longest, *(time_ - time.time() for time_ in times if time_ > time.time())])

    def take_ended(self) -> None:
        """Note how those jobs ended whose processes have."""
        for job, code in self.children.ended():
            self.history = self._past.read(surely=True)
            self._ended(job, code)

    # -- beginning -----------------------------------------------------------------------------------------------

    def _try_to_begin(self, name: str) -> None:
        """Begin a publication's job: the one that failed or was interrupted, or a new one. What stands in the way (a
        full disk, no more processes) is logged; the others are begun all the same, and this one in a while.
        """
        try:
            with jobs.alone(self._archive, name):
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
        """Make the folder of a publication's job ready for its process; returns the job's name."""
        publication = next(each for each in self.publications if each.name == name)
        folder = jobs.interrupted(self._archive, name) or jobs.new_folder(self._archive, name)
        try:
            known = history.item_of(folder, name)
            stamp = format_time(now())
            item.save(folder, dataclasses.replace(known, due=stamp, attempted=stamp, state=State.WAITING, reason=""))
            definition.save(folder, self._definition(publication))
        except BaseException:
            if not (folder / "frontier.db").exists():
                jobs.drop(folder)  # else it would count as a run
            raise
        return folder.name

    def _try_to_go_on(self, job: str) -> None:
        """Start a job that the agent before left. What stands in the way is logged; it is tried again in a while."""
        if self._has_to_wait(job):
            return
        try:
            self._go_on(job)
            self.resume.remove(job)
        except Damaged as error:
            _log.warning("%s", error)
            self.resume.remove(job)
        except Exception:
            _log.exception("%s: could not be gone on with; it is tried again in %g s", job, _AGAIN_SECONDS)
            self.ended.add(End.FAILED)
            self._not_before[job] = time.monotonic() + _AGAIN_SECONDS

    def _go_on(self, job: str) -> None:
        """Start a job that the agent before left; as the settings say now, or as it was defined if they do not."""
        folder = self._archive.jobs / job
        publication = next((each for each in self.publications if each.name == kind_of(job)), None)
        if not folder.is_dir() or not jobs.usable(folder):
            return
        if is_import(job):
            _log.info("%s is an import that was interrupted; the same command goes on with it", job)
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
        return Definition(publication=publication, profile=profile, instances=self.settings.crawl.max_instances)

    def _start(self, job: str) -> None:
        self.children.start(job, "-m", "agent.worker", str(self._archive.root), job)
        _log.info("%s: begins", job)
        self.history = self._past.read()

    # -- ending --------------------------------------------------------------------------------------------------

    def _ended(self, job: str, code: int) -> None:
        self.ended.add(End.STOPPED if code == -signal.SIGTERM else End(code) if code in set(End) else End.FAILED)
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
        folder = self._archive.jobs / job
        known = next((each for each in self.history.open if each.job == job), None)
        if known is not None and folder.is_dir() and known.state in AT_WORK:
            item.save(folder, _failed(known, how))
            self.history = self._past.read()

    def _elsewhere(self, job: str) -> None:
        """Somebody else crawls the publication: drop the folder if nothing is in it, and look again in a while."""
        folder = self._archive.jobs / job
        self._not_before[kind_of(job)] = time.monotonic() + _ELSEWHERE_SECONDS
        if folder.is_dir() and not (folder / "frontier.db").exists():
            jobs.drop(folder)
            self.history = self._past.read()


def _failed(known: Item, how: str) -> Item:
    return dataclasses.replace(known, state=State.FAILED, reason=how, updated=format_time(now()), pid=0, ticks=0)
