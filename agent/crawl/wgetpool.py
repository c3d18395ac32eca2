"""The running wgets of a job: starts, watches, pauses and ends them. The only module that runs wget.

A wget inherits the lock of its server and its slot among the archive's wgets. So both are held as long as it lives,
even if the agent dies. Its documents are in its WARC however it ends, but for the last one: wget keeps the end of its
WARC in memory until its next request. So wgets that shall ask for nothing more are not killed (`end_soon`). They finish
the document that is under way, may then open no file and no connection, and end by themselves.

`HaltedProcess` holds a child at its system calls, so that it does nothing while it is looked at (ptrace(2)).
`signal.SIGSTOP` would stop it anywhere: between a look and the next, a process that is quick is past what was to be
seen. Held at each call, it cannot be. A child is held by the thread that began it, and resumes by itself if that thread
ends. While it is held, nobody else may wait for it: `subprocess.Popen.poll` would take a halt for its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from agent.crawl import wget
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.disposition import OVER_SIZE
from agent.crawl.frontier import FrontierUrl
from agent.crawl.politeness import is_held
from agent.crawl.scope import TypeRules
from agent.crawl.secrets import Secrets, blank_requests
from agent.crawl.server_locks import asked_in_a_row, note_request
from agent.crawl.vocabulary import Reason, Status
from agent.crawl.wget import DRAINED, ENDED_EARLY, Killed, LogPosition
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.errors import CrawlFailed

# == tracing ==========================================================================================================


_CONT, _DETACH, _SYSCALL, _SYSEMU, _SEIZE, _INTERRUPT = 7, 17, 24, 31, 0x4206, 0x4207
_TRACESYSGOOD = 1
_ENDED = frozenset({os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED})
_ASK = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, None, None)"


class HaltedProcess:
    """A child process that is halted now, or as soon as it can be. Raises OSError if it may not be, or has ended."""

    def __init__(self, pid: int) -> None:
        if not may_trace():
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        self._pid = pid
        self._halt: int | None = None  # why it is held, as the kernel says
        self.is_gone = False
        _ptrace(_SEIZE, pid, _TRACESYSGOOD)
        _ptrace(_INTERRUPT, pid)

    def stands(self, *, wait: bool = False) -> bool:
        """Return whether it is held now; with `wait`, once it is held or has ended."""
        if self._halt is None and not self.is_gone:
            state = os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG))
            if state is not None and state.si_code in _ENDED:
                self.is_gone = True  # whoever started it takes its exit code
            elif state is not None:
                os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG)
                self._halt = state.si_status
        return self._halt is not None

    def go_on(self, *, skipping: bool = False) -> None:
        """Let it run to its next system call, or out of the one where it is held; it must be held.

        With `skipping`, the call that comes next is not made: a sleep that the halt interrupted is over.
        """
        self._send(_SYSEMU if skipping else _SYSCALL)

    def let_go(self) -> None:
        """Hold it no longer."""
        if not self.stands():
            self._try(_INTERRUPT)
            self.stands(wait=True)
        self._send(_DETACH)

    def _send(self, request: int) -> None:
        halt, self._halt = self._halt or 0, None
        # A signal that it was to get is handed over; other halts have numbers above the signals.
        self._try(request, halt if halt < signal.NSIG else 0)

    def _try(self, request: int, data: int = 0) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
            _ptrace(request, self._pid, data)


def end_sleep(pid: int) -> bool:
    """End the sleep that a child process is in; return whether that was done. If it has woken, nothing happens."""
    try:
        call, switches = _whereabouts(pid)
        held = HaltedProcess(pid)
    except OSError:
        return False
    done = False
    try:
        # In the same call, and switched from once: for the halt. So it has made no other call.
        done = held.stands(wait=True) and _whereabouts(pid) == (call, switches + 1)
        if done:
            held.go_on(skipping=True)
            held.stands(wait=True)
    except OSError:
        pass  # it was killed meanwhile
    held.let_go()
    return done


def _whereabouts(pid: int) -> tuple[str, int]:
    """Return the system call that a process is in, with its arguments, and how often it gave the processor up."""
    call = Path(f"/proc/{pid}/syscall").read_text("ascii")
    status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    return call, int(status.partition("\nvoluntary_ctxt_switches:")[2].split(None, 1)[0])


@cache
def may_trace() -> bool:
    """Return whether this process may hold others. Another one tries it: a filter of system calls may kill who asks."""
    if "\nSeccomp:\t0\n" in Path("/proc/self/status").read_text("ascii", "replace"):
        return True
    return subprocess.run([sys.executable, "-I", "-S", "-c", _ASK], check=False, capture_output=True).returncode == 0


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    call = _library().ptrace
    call.restype, call.argtypes = ctypes.c_long, (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    if call(request, pid, None, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# == running wgets ====================================================================================================


_WATCH = 0.25
#: Seconds beyond wget's own time-out before it is killed: its own time-out affects no other page.
_GRACE = 1.0
#: The part of `timeout` after which it is looked how far a document has come: most are there by then.
_FIRST_LOOK = 0.25
#: Bytes of a document beyond a limit at which wget is ended: the size of its buffers.
_SLACK = 1 << 16
_PATIENT_END = 5.0
#: Seconds that an answer may take to begin, where a wget that shall end cannot be held at its system calls.
_LONGEST_ANSWER = 1.0
#: Seconds in which a wget comes to its next system call.
_MOMENT = 0.0001
#: Descriptors that leave wget its standard input alone: it can open nothing, and still wait for a connection.
_NO_MORE_FILES = 1


@dataclass
class Running:
    """A running wget. `lock` is the descriptor of its server's lock, `place` of its slot among the archive's wgets."""

    files: wget.BatchFiles
    rows: list[FrontierUrl]
    domain: str
    process: subprocess.Popen[bytes]
    lock: int
    place: int
    pidfd: int
    wait: float
    begun: int = 0
    documents: int = 0  # begun by it; `counted` is the position in its log up to which they were counted
    counted: int = 0
    since: float = field(default_factory=time.monotonic)
    arrived: int = 0  # bytes of the current document, when it came further last: `progress`
    progress: float = 0.0
    started: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    speed: int = 0  # bytes a second; 0: as fast as the server
    watched: float = 0.0
    seen: LogPosition = LogPosition()
    stopped_until: float = 0.0  # monotonic: the end of its stop, since its server asked for a pause; 0: not stopped
    killed: Killed | None = None
    ending: float = 0.0  # monotonic: since when it shall ask for nothing more; 0: it may continue
    held: HaltedProcess | None = None  # while it is kept from its next request, until it cannot make one
    connections: set[str] | None = None  # when it was first held
    freed: bool = False  # it has no document under way, and others may have its server and its slot

    @property
    def may_ask(self) -> bool:
        """Whether it shall end, and may still make a request."""
        return self.ending > 0 and self.killed is None

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended."""
        if self.held is not None:
            self.held.stands()
            if not self.held.is_gone:
                return False
            self.held = None
        return self.process.poll() is not None

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return self.ended - self.started if self.ended else 0.0

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def kill(self, why: Killed) -> None:
        """Kill it for the given reason."""
        self.killed = replace(why, drained=why.drained or (self.killed is not None and self.killed.drained))
        self.send(signal.SIGKILL)

    def let_go(self) -> None:
        """Hold it at its system calls no longer."""
        if self.held is not None:
            self.held.let_go()
            self.held = None


class Wgets:
    """A job's running wgets, at most one per server. `folder` is the job's folder."""

    def __init__(
        self,
        folder: Path,
        settings: CrawlSettings,
        types: TypeRules,
        jars: CookieJars,
        secrets: Secrets,
        *,
        proxy: str = "",
    ) -> None:
        """`proxy` is the URL of one that all of them must use; it binds to `bind` for them."""
        if proxy:
            # Last, since wget obeys the last of several: nothing that was set before leads past the proxy.
            wget_args = (*settings.wget_args, "--proxy=on", "--execute=no_proxy=")
            settings = replace(settings, proxy=proxy, bind="", wget_args=wget_args)
        self._must_use_proxy = bool(proxy)
        self._folder = folder
        self._types = types if types.are_own or types.profile else None
        self._settings = settings
        self._running: list[Running] = []
        self._jars = jars
        self._secrets = secrets
        if settings.ca and not os.access(settings.ca, os.R_OK):
            raise CrawlFailed(f"`ca`: {settings.ca} cannot be read")  # wget would go on without it

    def __len__(self) -> int:
        return len(self._running)

    @property
    def domains(self) -> set[str]:
        """The servers that they fetch from."""
        return {running.domain for running in self._running}

    @property
    def speed(self) -> int:
        """Bytes a second that they may fetch together, as far as they have a limit."""
        return sum(running.speed for running in self._running)

    @property
    def answered(self) -> int:
        """The number of documents that they have finished, as far as their logs were read."""
        return sum(max(0, min(running.documents, len(running.rows)) - 1) for running in self._running)

    @property
    def descriptors(self) -> list[int]:
        """Descriptors that become readable when a wget ends (pidfd_open(2))."""
        return [running.pidfd for running in self._running]

    @property
    def pause(self) -> bool:
        """Whether a wget pauses between its requests, so that it can be stopped before the next one."""
        return any(running.wait for running in self._running)

    def start(
        self,
        files: wget.BatchFiles,
        rows: list[FrontierUrl],
        domain: str,
        wait: float,
        held: tuple[int, int],
        *,
        conditions: Mapping[str, str],
        referrer: str = "",
        speed: int = 0,
        checked: bool = True,
    ) -> None:
        """Start wget on a batch whose list is written. Either all `rows` have the note Reason.BAD_LENGTH, or none.

        If the server is shown secrets, all `rows` have one scheme. `held` is (the server's lock, a slot); this object
        closes them. `conditions` are request fields for one URL. `referrer` is the field Referer of all. `speed` is the
        limit in bytes a second; 0 is none. `checked`: the server must have a valid certificate.
        """
        shown = self._secrets.for_url(rows[0].url)
        sent_cookies, cookies = self._jars.begin(files.number, domain, shown.cookies if shown else ())
        config = self._jars.config(files.number, shown.config) if shown and shown.fields else None
        with files.errors.open("wb") as errors:
            process = subprocess.Popen(
                wget.command(
                    files,
                    self._settings,
                    wait,
                    cookies,
                    sent_cookies=sent_cookies,
                    to_the_end=rows[0].note == Reason.BAD_LENGTH,
                    conditions=conditions,
                    referrer=referrer,
                    speed=speed,
                    checked=checked or self._secrets.knows(domain),
                    config=config,
                ),
                env=wget.environment(self._settings.proxy, alone=self._must_use_proxy),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd=self._folder,
                pass_fds=held,
                umask=0o077 if shown else -1,  # its requests are in the WARC
                process_group=0,  # Ctrl-C in the terminal is for the job, which lets it finish its document
            )
        lock, place = held
        seen = LogPosition(in_a_row=asked_in_a_row(lock))
        pidfd = os.pidfd_open(process.pid)
        self._running.append(Running(files, rows, domain, process, lock, place, pidfd, wait, seen=seen, speed=speed))

    def ended(self) -> Iterable[Running]:
        """Remove and yield the wgets that have ended. Raises CrawlFailed for a wget that could not start."""
        for running in [running for running in self._running if running.has_ended]:
            self._release(running)
            _check_begun(running)
            yield running

    @property
    def may_ask(self) -> bool:
        """Whether a wget that shall end may still make a request: `tend` is wanted soon."""
        return any(running.may_ask for running in self._running)

    @property
    def under_way(self) -> int:
        """The number of documents that wgets which shall end still fetch."""
        return sum(running.ending > 0 and not running.freed for running in self._running)

    def end_soon(self, which: Callable[[str], bool] = lambda _: True) -> None:
        """From now on let the wgets on `which` servers end without another request; `tend` sees to it.

        Each finishes the document that is under way, within its bounds.
        """
        for running in self._running:
            if which(running.domain) and not running.ending and not running.killed:
                running.ending = time.monotonic()

    def tend(self) -> None:
        """Bring the wgets that shall end nearer to it. Call it again soon, until none `may_ask` and all have ended."""
        moving = [running for running in self._running if running.ending and not running.has_ended]
        while moving:
            moving = [running for running in moving if self._bring_on(running)]
            time.sleep(_MOMENT if moving else 0)

    def _bring_on(self, running: Running) -> bool:
        """Bring one nearer to its end; return whether it moves, so that it is worth to come again at once."""
        if not running.may_ask:
            return self._finish(running)
        if running.stopped_until:
            _forbid(running)
            self._free(running)
            running.send(signal.SIGCONT)
            return False
        if running.held is not None and running.held.stands():
            now = wget.connections(running.process.pid)
            running.connections = now if running.connections is None else running.connections
            if now <= running.connections and not wget.is_answered(running.process.pid, self._folder):
                running.held.go_on()
                return True
            _forbid(running)  # the answer has begun, or there will be none: wget has connected for the next document
        elif not self._is_forbidden_if(running, wget.is_between):
            return self._hold(running)
        running.let_go()
        return False

    def _hold(self, running: Running) -> bool:
        """Hold one at its system calls, if it is not; where that cannot be, kill it if its answer is late."""
        if running.held is not None:
            return False
        try:
            running.held = HaltedProcess(running.process.pid)
        except OSError:
            is_late = time.monotonic() - running.ending > _LONGEST_ANSWER
            if not self._is_forbidden_if(running, wget.is_answered) and is_late:
                running.kill(ENDED_EARLY)
        return running.held is not None

    def _is_forbidden_if(self, running: Running, state: Callable[[int, Path], bool]) -> bool:
        """Forbid requests to one that is in a state, and still is in it afterwards; return whether it was."""
        pid = running.process.pid
        if not state(pid, self._folder):
            return False
        _forbid(running)
        if not state(pid, self._folder):
            running.killed = None
            _limit(running, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        return running.killed is not None

    def _finish(self, running: Running) -> bool:
        """End the pauses of one that makes no requests any more; give up its lock and its slot."""
        if running.killed != DRAINED or not wget.is_between(running.process.pid, self._folder):
            return False
        if not running.freed:
            self._free(running)
        return end_sleep(running.process.pid)

    @staticmethod
    def _free(running: Running) -> None:
        """Give up the lock and the slot of one that sends nothing any more; it has them open, too."""
        running.freed = True
        _note_pause(running)
        for fd in (running.lock, running.place):
            fcntl.flock(fd, fcntl.LOCK_UN)

    def end(self) -> list[Running]:
        """End all wgets and return them: SIGTERM first, SIGKILL after `_PATIENT_END` seconds."""
        for running in self._running:
            running.let_go()
            running.killed = running.killed or (None if running.has_ended else ENDED_EARLY)
            running.send(signal.SIGTERM)
            running.send(signal.SIGCONT)
        for running in self._running:
            try:
                running.process.wait(_PATIENT_END)
            except subprocess.TimeoutExpired:
                running.process.kill()
                running.process.wait()
        ended = list(self._running)
        for running in ended:
            self._release(running)
        return ended

    def watch(self, room: int | None) -> None:
        """End wgets that exceed a time or size limit; pause wgets whose server asked for it.

        `room` is the number of bytes that the crawl may still keep; None without a limit.
        """
        now = time.monotonic()
        for running in self._running:
            if now - running.watched >= _WATCH and not running.stopped_until and not running.freed:
                running.watched = now
                self._watch(running, room, now)
            self._hold_or_end(running, now)

    def _watch(self, running: Running, room: int | None, now: float) -> None:
        begun = wget.begun(running.files.log)
        if begun != running.begun:
            running.begun, running.since = begun, now
            running.arrived = 0
            new, running.counted = wget.count_begun(running.files.log, running.counted)
            running.documents += new
        why = self._too_much(running, room)  # first: on a busy machine a document that is too big may also be too slow
        if why is None and self._takes_too_long(running, now):
            why = Killed(Status.TIME_LIMIT, Reason.TIME_LIMIT)
        if why is not None:
            running.kill(why)

    def _takes_too_long(self, running: Running, now: float) -> bool:
        """Return whether the current document came no further for `timeout`, or takes longer than a whole one may.

        wget's buffers hide the first kilobytes, and each step is one of theirs: less than that in `timeout` is nothing.
        """
        spent = now - running.since - running.wait - _GRACE
        timeout = self._settings.timeout
        if not running.begun or spent <= timeout * _FIRST_LOOK:
            return False
        size = wget.bytes_so_far(running.process.pid, self._folder)
        if size != running.arrived:
            running.arrived, running.progress = size, now
        still = now - running.wait - _GRACE - max(running.progress, running.since)
        return still > timeout or spent > self._settings.max_document_time.seconds

    def _too_much(self, running: Running, room: int | None) -> Killed | None:
        """Return why wget must be killed: the current document, or the whole batch, is too large; or it is not wanted.

        Small documents of a type that is not kept come whole: another wget would cost more.
        """
        most = self._settings.max_file_size
        if not most and room is None and self._types is None:
            return None
        size = wget.bytes_so_far(running.process.pid, self._folder)
        if most and size > most + _SLACK:
            return Killed(Status.QUOTA, Reason.TOO_BIG)
        if room is not None and size > room + _SLACK:
            return Killed(Status.QUOTA, OVER_SIZE)
        if self._types and size > _SLACK and self._types.spares(wget.declared_type(running.files.log, running.begun)):
            return Killed(Status.TYPE, Reason.TYPE)
        return ENDED_EARLY if room is not None and wget.bytes_fetched(running.files) > room + _SLACK else None

    @staticmethod
    def _hold_or_end(running: Running, now: float) -> None:
        """Stop a wget whose server asked for a pause, before its next request; end it if the pause is long."""
        if running.stopped_until and running.stopped_until <= now:
            running.stopped_until, running.since, running.arrived = 0.0, now, 0
            running.send(signal.SIGCONT)
        if not running.wait or running.stopped_until or running.killed or running.ending:
            return  # without a wait between requests, wget cannot be stopped before the next one
        running.seen = wget.pause_requested(running.files.log, running.seen, running.wait, time.time())
        if running.seen.seconds is None:
            return
        if is_held(running.seen.seconds, running.seen.in_a_row):
            running.send(signal.SIGSTOP)
            running.stopped_until = now + running.seen.seconds
            running.seen = replace(running.seen, seconds=None)
        else:
            running.kill(ENDED_EARLY)

    def _release(self, running: Running) -> None:
        """Record the pause that the server asked for, for all jobs; then release the server's lock and the slot."""
        self._running.remove(running)
        running.ended = time.monotonic()
        running.documents += wget.count_begun(running.files.log, running.counted)[0]
        if running.killed is not None and running.killed.status and wget.begun(running.files.log) != running.begun:
            # wget had already begun the next document, which is not at fault
            running.killed = DRAINED if running.killed.drained else ENDED_EARLY
        if self._secrets.knows(running.domain) or wget.sends_proxy_password(self._settings.proxy):
            blank_requests(running.files.warc, self._secrets.field_names)
        # A wget that was kept from opening files wrote no cookies.
        self._jars.ended(running.files.number, whole=running.killed is None and running.process.poll() is not None)
        if not running.freed:
            _note_pause(running)
        for fd in (running.lock, running.place, running.pidfd):
            os.close(fd)


def _forbid(running: Running) -> None:
    """Let wget open no more files and connections: it makes no other request, fails all that is left, and ends."""
    running.killed = DRAINED
    _limit(running, _NO_MORE_FILES)


def _limit(running: Running, most: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # wget's as well; it stays, so that the other can be undone
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (most, hard))


def _note_pause(running: Running) -> None:
    """Write into the lock of its server that it was asked now, and the pause that the server asked for."""
    seen = wget.pause_requested(running.files.log, running.seen, running.wait, time.time(), ended=True)
    left = max(0.0, running.stopped_until - time.monotonic())
    note_request(running.lock, left if seen.seconds is None else seen.seconds, seen.in_a_row)


def _check_begun(running: Running) -> None:
    """Raise CrawlFailed with wget's message if it failed before its first document: a retry would fail as well."""
    if running.process.returncode != 0 and not running.killed and not wget.begun(running.files.log):
        raise CrawlFailed(f"wget ended with {running.process.returncode}: {wget.complaint(running.files)}")
