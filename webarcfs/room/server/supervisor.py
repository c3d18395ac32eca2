"""The parent of `webarc serve`: binds the sockets, starts the workers, and restarts those that die.

SIGTERM and SIGINT end it after the requests that run; a second one at once. SIGHUP starts new workers, and ends the old
ones when the new ones answer, so no request is lost; if the new ones fail, the old ones stay. It reads no archive and
no request. One thread, which waits for signals, workers' words and their ends.

The workers share the room's sockets, and the supervisor removes them at the end.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType

from webarcfs.archive.model.errors import Exit, UsageError, WebarcError
from webarcfs.archive.system import processes
from webarcfs.room.server.options import Engine, RoomOptions, ServerOptions, WorkerOrder, room_options
from webarcfs.web import limits
from webarcfs.web.listeners import PATIENCE, Address, ListeningSocket, TcpAddress, bind, inherited

# == supervisor =======================================================================================================


#: The listeners of the room, of replay if it has its own, and of what pywb asks.
Bound = tuple[ListeningSocket, ListeningSocket | None, ListeningSocket | None]
#: Starts a worker. -P: nothing is imported from the folder in which `webarc serve` happens to be called.
WORKER = (sys.executable, "-P", "-m", "webarcfs.room.server.worker")
#: Seconds of a worker's end beyond those that its requests have.
_LENIENCE = 3.0
#: Seconds until a worker that died is started again: the first, doubled with each failure, and the last.
_SHORTEST, _LONGEST = 0.1, 30.0
#: A worker that lived so long had no trouble with starting.
_SETTLED = 10.0
#: The names of sockets that systemd hands over.
_ROOM, _REPLAY = "room", "replay"
_OF_SYSTEMD = (
    "NOTIFY_SOCKET",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
)


@dataclass(slots=True, eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    end: int  # a descriptor that can be read when the process has ended
    ready: int  # a pipe, on which it says that it is ready; -1 afterwards
    generation: int
    started: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    killed_at: float | None = None  # it is ending, and is killed then


def serve(options: ServerOptions, program: Sequence[str] = WORKER, say: Callable[[str], None] = print) -> None:
    """Serve until a signal. `say` gets to know where, when all is ready.

    Raises Busy for an address in use, UsageError for one that cannot be had or origins that do not fit, and what
    Supervisor.run raises.
    """
    room, replay = bound(options)
    source = bind(TcpAddress("127.0.0.1", 0), 0) if options.engine is Engine.PYWB else None
    try:
        options_of_room = room_options(
            options, room.address, replay.address if replay else None, secrets.token_bytes(32)
        )
        _drop_privileges(options)
        if source is None:
            Supervisor(options_of_room, options, (room, replay, None), program, say).run()
        else:
            _with_pywb(options_of_room, options, (room, replay, source), program, say)
    finally:
        for listener in (room, replay, source):
            if listener is not None:
                listener.close()


def _with_pywb(
    options_of_room: RoomOptions,
    options: ServerOptions,
    listeners: Bound,
    program: Sequence[str],
    say: Callable[[str], None],
) -> None:
    from webarcfs.room.replay.pywb_process import Pywb  # noqa: PLC0415 # one engine of two

    source = listeners[2]
    assert source is not None
    pywb = Pywb(source.socket.getsockname()[1])
    pywb.start()
    try:
        pywb.wait()
        Supervisor(replace(options_of_room, pywb=pywb.origin), options, listeners, program, say).run()
    finally:
        pywb.stop()


def bound(options: ServerOptions, patience: float = PATIENCE) -> tuple[ListeningSocket, ListeningSocket | None]:
    """Return the listeners of the options, or those of systemd, which come first. Raises Busy, UsageError."""
    given = inherited(os.environ, os.getpid())
    if given:
        named = given.get(_ROOM) or next(iter(given.values()))
        return named, given.get(_REPLAY) or next(
            (listener for listener in given.values() if listener is not named), None
        )
    room = bind(options.listen, patience)
    try:
        return room, None if options.replay_listen is None else bind(options.replay_listen, patience)
    except BaseException:
        room.close()
        raise


def described(options_of_room: RoomOptions, room: Address) -> str:
    """Return where readers find the room."""
    return options_of_room.origin or str(room)


def _drop_privileges(options: ServerOptions) -> None:
    """Continue as the archive's owner, if this is root: git opens no repositories of others."""
    owner = options.archive.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        processes.become(owner.st_uid, owner.st_gid)


class Supervisor:
    """The workers of one `webarc serve`."""

    def __init__(
        self,
        options_of_room: RoomOptions,
        options: ServerOptions,
        listeners: Bound,
        program: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self._room_options = options_of_room
        self._options = options
        self._room, self._replay, self._source = listeners
        self._program = program
        self._say = say
        self._selector = selectors.DefaultSelector()
        self._workers: set[_Worker] = set()
        self._generation = 1
        self._is_up = False
        self._is_stopping = False
        self._is_asked_to_reload = False
        self._reloading = False
        self._has_terminal = _has_terminal()
        self._failures = 0
        self._to_start: list[float] = []  # when a worker is started that takes the place of one that died
        self._signals: list[int] = []

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises WebarcError if the workers do not start at first."""
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        self._selector.register(woken, selectors.EVENT_READ, lambda: _drain(woken))
        before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        handlers = {
            number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        try:
            for _ in range(self._options.workers):
                self._start()
            while self._workers or not self._is_stopping:
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._turn()
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.wait()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            self._selector.close()
            wake.close()
            woken.close()

    # -- a turn ------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        while self._signals:
            self._obey(self._signals.pop(0))
        now = time.monotonic()
        for worker in self._workers:
            if worker.killed_at is not None and now >= worker.killed_at:
                worker.process.kill()
        if self._is_stopping:
            return
        for due in [due for due in self._to_start if due <= now]:
            self._to_start.remove(due)
            try:
                self._start()
            except OSError as error:  # no memory, too many processes: it may pass
                _complain(f"a worker cannot be started: {error}")
                self._to_start.append(now + _LONGEST)
        if self._is_asked_to_reload and self._is_up and not self._reloading:
            self._reload()

    def _patience(self) -> float | None:
        """Return the seconds to the next thing that is due."""
        due = [worker.killed_at for worker in self._workers if worker.killed_at is not None]
        due += [] if self._is_stopping else self._to_start
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _obey(self, number: int) -> None:
        closed = number == signal.SIGHUP and self._has_terminal and not _has_terminal()
        if number == signal.SIGHUP and not closed:  # that of a terminal which was closed asks for no reload
            self._is_asked_to_reload = True
        elif self._is_stopping:
            for worker in self._workers:
                worker.process.kill()
        else:
            self._is_stopping = True
            processes.notify("STOPPING=1")
            for listener in (self._room, self._replay, self._source):
                if listener is not None:
                    listener.close()  # the workers close theirs: from now on connections are refused
            for worker in self._workers:
                self._end(worker)

    # -- workers -----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        ready, ready_end = os.pipe()
        descriptors = [self._room.socket.fileno(), ready_end]
        descriptors += [listener.socket.fileno() for listener in (self._replay, self._source) if listener is not None]
        order = WorkerOrder(
            room=self._room_options,
            room_socket=self._room.socket.fileno(),
            replay_socket=None if self._replay is None else self._replay.socket.fileno(),
            ready=ready_end,
            access_log=self._options.access_log,
            source_socket=None if self._source is None else self._source.socket.fileno(),
        )
        environment = {name: value for name, value in os.environ.items() if name not in _OF_SYSTEMD}
        environment.setdefault("MALLOC_ARENA_MAX", str(limits.POOLS))
        try:
            process = subprocess.Popen(self._program, stdin=subprocess.PIPE, pass_fds=descriptors, env=environment)
        except BaseException:
            os.close(ready)
            raise
        finally:
            os.close(ready_end)
        worker = _Worker(process, os.pidfd_open(process.pid), ready, self._generation)
        assert process.stdin is not None
        try:  # it fits into the pipe; a worker that died already is found by its end
            process.stdin.write(order.to_json().encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass
        self._workers.add(worker)
        self._selector.register(ready, selectors.EVENT_READ, lambda: self._is_heard(worker))
        self._selector.register(worker.end, selectors.EVENT_READ, lambda: self._has_ended(worker))

    def _is_heard(self, worker: _Worker) -> None:
        """Note that a worker is ready, or that it closed the pipe without a word: then its end follows."""
        worker.is_ready = bool(os.read(worker.ready, 100))
        self._forget_pipe(worker)
        if worker.is_ready and self._all_ready() and not self._is_stopping:
            if not self._is_up:
                self._is_up = True
                self._tell()
            if self._reloading:
                self._reloading = False
                for other_worker in self._workers:
                    if other_worker.generation < self._generation:
                        self._end(other_worker)
            processes.notify("READY=1", f"STATUS={self._options.workers} workers at {self._where}")

    def _all_ready(self) -> bool:
        ready = sum(1 for worker in self._workers if worker.generation == self._generation and worker.is_ready)
        return ready >= self._options.workers

    def _has_ended(self, worker: _Worker) -> None:
        code = worker.process.wait()
        self._selector.unregister(worker.end)
        os.close(worker.end)
        self._forget_pipe(worker)
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        self._workers.discard(worker)
        if self._is_stopping or worker.killed_at is not None:
            return
        if not self._is_up:
            kind = UsageError if code == Exit.USAGE else WebarcError
            raise kind(f"a worker ended before it was ready ({_end_of(code)})")
        if self._reloading and worker.generation < self._generation:
            return  # it was to end soon; if the reload fails, others take its place
        if self._reloading and worker.generation == self._generation and not worker.is_ready:
            self._give_up_reload(code)
            return
        self._failures = 0 if time.monotonic() - worker.started >= _SETTLED else self._failures + 1
        pause = min(_LONGEST, _SHORTEST * 2.0**self._failures) if self._failures > 1 else 0.0
        _complain(f"a worker ended ({_end_of(code)}); another one starts" + (f" in {pause:g} s" if pause else ""))
        self._to_start.append(time.monotonic() + pause)

    def _forget_pipe(self, worker: _Worker) -> None:
        if worker.ready >= 0:
            self._selector.unregister(worker.ready)
            os.close(worker.ready)
            worker.ready = -1

    def _end(self, worker: _Worker) -> None:
        if worker.killed_at is None:
            worker.killed_at = time.monotonic() + limits.GRACE_SECONDS + _LENIENCE
            worker.process.terminate()

    # -- reload ------------------------------------------------------------------------------------------------------

    def _reload(self) -> None:
        """Start a new generation; the old one continues until all of the new one are ready."""
        self._is_asked_to_reload = False
        self._reloading = True
        processes.reloading()
        self._generation += 1
        self._to_start.clear()
        for _ in range(self._options.workers):
            self._start()

    def _give_up_reload(self, code: int) -> None:
        _complain(f"the new workers do not start ({_end_of(code)}); the old ones keep running")
        self._reloading = False
        for worker in self._workers:
            if worker.generation == self._generation:
                self._end(worker)
        self._generation -= 1
        alive = sum(1 for worker in self._workers if worker.generation == self._generation and worker.killed_at is None)
        self._to_start += [time.monotonic()] * (self._options.workers - alive)
        processes.notify("READY=1", f"STATUS=the last reload failed; {alive} workers at {self._where}")

    # -- words -------------------------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return described(self._room_options, self._room.address)

    def _tell(self) -> None:
        replay = f"; archived pages at {self._room_options.replay_origin}" if self._room_options.has_two_origins else ""
        self._say(f"the reading room of {self._room_options.archive} is at {self._where}{replay}")
        has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if self._options.opens_browser and has_display and self._room_options.origin:
            threading.Thread(target=webbrowser.open, args=(f"{self._room_options.origin}/",), daemon=True).start()


def _drain(woken: socket.socket) -> None:
    try:
        while woken.recv(4096):
            pass
    except BlockingIOError:
        pass


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _end_of(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _complain(text: str) -> None:
    sys.stderr.write(f"webarc serve: {text}\n")
    sys.stderr.flush()
