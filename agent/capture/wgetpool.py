"""The wgets of a job that are at work: started with a batch, watched, held, ended. The only module that runs wget.

A wget inherits the lock of its server and its place among the archive's wgets, so both hold as long as it lives,
whoever dies. What it fetched is in its WARC whatever becomes of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.capture import serverlocks, wgetcommand, wgetlog
from agent.capture.disposition import OVER_SIZE
from agent.capture.fetchresults import Killed
from agent.capture.wgetlog import LogPosition
from agent.frontier.store import FrontierUrl
from agent.policy.fetchstatus import Status
from agent.policy.politeness import is_held
from agent.policy.vocabulary import Reason
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.errors import CrawlFailed
from webarcfs.warc.decoding import BAD_LENGTH

_WATCH = 0.25
#: Seconds in which wget's own time-out, which costs no other page, may come before ours.
_GRACE = 1.0
#: How much of a document may be on its way beyond a limit until wget is ended: what it holds in its buffers.
_SLACK = 1 << 16
_PATIENT_END = 5.0
#: wget was ended before the end of its batch; no URL is at fault.
ENDED_EARLY = Killed(0, "")


@dataclass
class Running:
    """A wget at work. `lock` keeps its server to itself, `place` is its place among the archive's wgets."""

    files: wgetcommand.BatchFiles
    rows: list[FrontierUrl]
    domain: str
    process: subprocess.Popen[bytes]
    lock: int
    place: int
    pidfd: int
    wait: float
    begun: int = 0
    documents: int = 0  # that it has begun, and the place in its log up to which they were counted
    counted: int = 0
    since: float = field(default_factory=time.monotonic)
    watched: float = 0.0
    seen: LogPosition = LogPosition()
    stopped_until: float = 0.0  # monotonic; until then it is stopped, since its server asked for a pause. 0: it is not
    killed: Killed | None = None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill(self, why: Killed) -> None:
        """End it at once."""
        self.killed = why
        self.send(signal.SIGKILL)


class Wgets:
    """A job's wgets at work, by server. `folder` is the job's."""

    def __init__(self, folder: Path, settings: CrawlSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._running: list[Running] = []
        self._cookies = folder / "cookies"
        self._cookies.mkdir(exist_ok=True)

    def __len__(self) -> int:
        return len(self._running)

    @property
    def domains(self) -> set[str]:
        """The servers that are being asked."""
        return {each.domain for each in self._running}

    @property
    def answered(self) -> int:
        """Documents that they are through with, as far as their logs were looked at."""
        return sum(max(0, min(each.documents, len(each.rows)) - 1) for each in self._running)

    @property
    def descriptors(self) -> list[int]:
        """What becomes readable when one of them ends (pidfd_open(2))."""
        return [each.pidfd for each in self._running]

    @property
    def pause(self) -> bool:
        """Whether one of them pauses between its requests, so that there is time to step in."""
        return any(each.wait for each in self._running)

    def start(
        self, files: wgetcommand.BatchFiles, rows: list[FrontierUrl], domain: str, wait: float, held: tuple[int, int]
    ) -> None:
        """Start one on a batch, whose list is written: `rows` that are all to be read to the end (BAD_LENGTH), or none.

        `held` is (the server's lock, a place): ours from now on.
        """
        with files.errors.open("wb") as errors:
            process = subprocess.Popen(
                wgetcommand.command(
                    files, self._settings, wait, self._cookies / domain, to_the_end=rows[0].note == BAD_LENGTH
                ),
                env=wgetcommand.environment(),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd=self._folder,
                pass_fds=held,
            )
        lock, place = held
        seen = LogPosition(in_a_row=serverlocks.asked_in_a_row(lock))
        pidfd = os.pidfd_open(process.pid)
        self._running.append(Running(files, rows, domain, process, lock, place, pidfd, wait, seen=seen))

    def ended(self) -> Iterable[Running]:
        """Those that have ended; they are not of these any more. Raises CrawlFailed for one that could not begin."""
        for each in [each for each in self._running if each.process.poll() is not None]:
            self._release(each)
            _check_begun(each)
            yield each

    def end(self) -> list[Running]:
        """End all, politely at first; returns them."""
        for each in self._running:
            each.killed = each.killed or (ENDED_EARLY if each.process.poll() is None else None)
            each.process.terminate()
            each.send(signal.SIGCONT)
        for each in self._running:
            try:
                each.process.wait(_PATIENT_END)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
        ended = list(self._running)
        for each in ended:
            self._release(each)
        return ended

    def watch(self, room: int | None) -> None:
        """End what takes too long or grows too large, hold what was asked for a pause; `room` is what the crawl may
        keep yet, in bytes, None where that has no limit.
        """
        now = time.monotonic()
        for each in self._running:
            if now - each.watched >= _WATCH and not each.stopped_until:
                each.watched = now
                self._watch(each, room, now)
            self._hold_or_end(each, now)

    def _watch(self, each: Running, room: int | None, now: float) -> None:
        begun = wgetlog.begun(each.files.log)
        if begun != each.begun:
            each.begun, each.since = begun, now
            new, each.counted = wgetlog.count_begun(each.files.log, each.counted)
            each.documents += new
        why = self._too_much(each, room)  # first: on a busy machine what is too big may be too long under way as well
        if why is None and each.begun and now - each.since > self._settings.timeout + each.wait + _GRACE:
            why = Killed(Status.TIME_LIMIT, Reason.TIME_LIMIT)
        if why is not None:
            each.kill(why)

    def _too_much(self, each: Running, room: int | None) -> Killed | None:
        """Whether the document under way, or all of the batch, is more than the crawl takes."""
        most = self._settings.max_file_size
        if not most and room is None:
            return None
        size = wgetcommand.bytes_so_far(each.process.pid, self._folder)
        if most and size > most + _SLACK:
            return Killed(Status.QUOTA, Reason.TOO_BIG)
        if room is not None and size > room + _SLACK:
            return Killed(Status.QUOTA, OVER_SIZE)
        return ENDED_EARLY if room is not None and wgetcommand.bytes_fetched(each.files) > room + _SLACK else None

    @staticmethod
    def _hold_or_end(each: Running, now: float) -> None:
        """Hold a wget whose server asked for a pause before it asks for the next URL; end it where that is long."""
        if each.stopped_until and each.stopped_until <= now:
            each.stopped_until, each.since = 0.0, now
            each.send(signal.SIGCONT)
        if not each.wait or each.stopped_until or each.killed:
            return  # without a pause between two requests there is no time to step in
        each.seen = wgetlog.pause_requested(each.files.log, each.seen, each.wait, time.time())
        if each.seen.seconds is None:
            return
        if is_held(each.seen.seconds, each.seen.in_a_row):
            each.send(signal.SIGSTOP)
            each.stopped_until = now + each.seen.seconds
            each.seen = replace(each.seen, seconds=None)
        else:
            each.kill(ENDED_EARLY)

    def _release(self, each: Running) -> None:
        """Give its server and its place free; other jobs learn what the server asked for."""
        self._running.remove(each)
        if each.killed not in (None, ENDED_EARLY) and wgetlog.begun(each.files.log) != each.begun:
            each.killed = ENDED_EARLY  # wget had gone on to the next document, which is not to blame
        seen = wgetlog.pause_requested(each.files.log, each.seen, each.wait, time.time(), ended=True)
        serverlocks.note(each.lock, seen.seconds or 0.0, seen.in_a_row)
        for fd in (each.lock, each.place, each.pidfd):
            os.close(fd)


def _check_begun(each: Running) -> None:
    """A wget that could not even begin will not do better next time: say what it said."""
    if each.process.returncode != 0 and not each.killed and not wgetlog.begun(each.files.log):
        raise CrawlFailed(f"wget ended with {each.process.returncode}: {wgetcommand.complaint(each.files)}")
