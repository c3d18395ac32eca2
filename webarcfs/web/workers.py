"""The worker processes of a server: uvicorn's `Multiprocess`, with an end, a start and a reload that lose no request.

uvicorn starts the processes by `spawn`, hands them the sockets, and asks each for a sign of life. Its own supervisor
waits without a bound for a worker that ends, stops altogether when one does not start, replaces workers one by one, and
obeys no signal while it waits. So these parts are written here.

A worker gives a sign of life from its event loop. If the loop is stuck it gives none, and the worker is killed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from uvicorn import Config
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from webarcfs.archive.model.errors import Exit, UsageError, WebarcError, exit_code_of
from webarcfs.archive.system import processes
from webarcfs.web import limits
from webarcfs.web.connections import ProcessServer, ServedApps, server_config
from webarcfs.web.listeners import ListeningSocket

_log = logging.getLogger("webarc")
#: Seconds of a worker's end beyond those that its requests have.
_LENIENCE = 3.0
#: Seconds until a worker that died is started again: the first, doubled with each failure, and the last.
_SHORTEST, _LONGEST = 0.1, 30.0
#: A worker that lived so long had no trouble with starting.
_SETTLED = 10.0
#: Seconds between two looks at workers that start or end.
_MOMENT = 0.05
_STOPS = {signal.SIGTERM, signal.SIGINT}
_OF_SYSTEMD = ["NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"]


class WorkerProcess(Process):
    """A worker: `target` is its own part, the rest is its parent's."""

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.since = time.monotonic()
        self.serves = False
        self._deadline = math.inf  # it is killed then; infinite: it gave a sign of life, and was not asked again

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until the parent ends or says so, then end the process."""
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends these to the whole group; the parent decides
            signal.signal(number, signal.SIG_IGN)
        for name in _OF_SYSTEMD:
            os.environ.pop(name, None)
        code = int(Exit.FAILED)
        try:
            processes.allow_many_files()
            self.config.load()
            gc.freeze()  # what was imported stays: searches for garbage pass over it
            self._server = ProcessServer(self.config, self._answer_parent)
            asyncio.run(self._server.serve(sockets))
            code = int(Exit.DONE)
        except (WebarcError, OSError) as error:
            _log.error("%s", error)
            code = exit_code_of(error)
        except Exception:
            _log.exception("unexpected")
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(code)  # a handler that still runs, whose time is over, is not waited for

    def _answer_parent(self) -> None:
        asyncio.get_running_loop().add_reader(self.child_conn.fileno(), self.pong)

    def look(self, now: float) -> None:
        """Take a sign of life, and ask for the next; kill a worker that gives none or does not end. Never waits."""
        with suppress(OSError, EOFError):  # it has ended, or is ending
            if self.parent_conn.poll():
                self.serves, self._deadline = self.parent_conn.recv(), math.inf
            if self._deadline == math.inf:
                self.parent_conn.send(b"ping")
                self._deadline = now + (limits.HEALTH_SECONDS if self.serves else limits.START_SECONDS)
        if now >= self._deadline:
            self.kill()

    def end(self) -> None:
        """Let it finish its requests, for a while."""
        self._deadline = min(self._deadline, time.monotonic() + limits.GRACE_SECONDS + _LENIENCE)
        self.terminate()

    def describe_end(self) -> str:
        """Return how it ended."""
        code = self.exitcode or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class WorkerProcesses(Multiprocess):
    """The worker processes of a server, for the main thread of their parent. `run` serves until SIGTERM or SIGINT.

    SIGHUP puts new workers in the place of those that serve, if all of the new ones start.
    """

    processes: list[WorkerProcess]  # type: ignore[assignment] # those that serve, or are to

    def __init__(
        self,
        make: Callable[[], ServedApps],
        listeners: Sequence[ListeningSocket],
        count: int,
        ready: Callable[[], None],
    ) -> None:
        """Each of `count` workers calls `make`, which is pickled, once. `ready` is called when all serve at first."""
        super().__init__(server_config(make, count), [listener.socket for listener in listeners])
        for number in SIGNALS.keys() - _STOPS - {signal.SIGHUP}:
            signal.signal(number, signal.SIG_DFL)
        self._listeners, self._ready = listeners, ready
        self._living: list[WorkerProcess] = []
        self._pause = _SHORTEST
        self._start_at = 0.0  # when workers are started in the place of those that died
        self._has_terminal = _has_terminal()

    def run(self) -> None:
        """Serve. It changes the environment and the current folder, which workers inherit.

        Raises WebarcError if a worker does not start at first, UsageError if it says that this is the user's fault.
        """
        os.environ.setdefault("MALLOC_ARENA_MAX", str(limits.POOLS))
        os.environ["PYTHONSAFEPATH"] = "1"  # workers import nothing from the current folder,
        os.chdir("/")  # and start in this one: they may be denied the other
        try:
            super().run()
        finally:
            self.kill()

    # -- what uvicorn calls ------------------------------------------------------------------------------------------

    def init_processes(self) -> None:
        """Start the workers, and wait until they serve."""
        self._renew()
        if self.processes:
            self._ready()

    def restart_all(self) -> None:
        """Reload."""
        processes.reloading()
        try:
            self._renew()
        except (WebarcError, OSError) as error:
            _log.warning("%s; the old workers keep running", error)
            self._notify("the last reload failed; ")

    def keep_subprocess_alive(self) -> None:
        """Start workers in the place of those that died."""
        self._look()
        now = time.monotonic()
        for worker in [worker for worker in self.processes if worker.exitcode is not None]:
            self.processes.remove(worker)
            self._pause = _SHORTEST if now - worker.since >= _SETTLED else min(_LONGEST, 2 * self._pause)
            self._start_at = now + self._pause
            _log.warning("a worker ended (%s); another one starts in %g s", worker.describe_end(), self._pause)
        try:
            while len(self.processes) < self.processes_num and now >= self._start_at and not self.should_exit.is_set():
                self.processes.append(self._start())
        except OSError as error:  # no memory, too many processes: it may pass
            _log.warning("a worker cannot be started: %s", error)
            self._start_at = now + _LONGEST

    def terminate_all(self) -> None:
        """Refuse connections from now on, and end the workers."""
        for listener in self._listeners:
            listener.close()  # the workers close theirs
        self.processes = []
        self._end_others()

    def join_all(self) -> None:
        """Wait for workers that end. A further signal kills them."""
        while self._living:
            time.sleep(_MOMENT)
            self.handle_signals()
            self._look()

    def handle_signals(self) -> None:
        """Obey the signals that came; those that came while it reloaded ask for one reload."""
        for _ in range(self.signal_queue.count(signal.SIGHUP) - 1):
            self.signal_queue.remove(signal.SIGHUP)
        super().handle_signals()

    def handle_term(self) -> None:
        """Stop; at once if it is the second time."""
        if self.should_exit.is_set():
            self.kill()
        processes.notify("STOPPING=1")
        self.should_exit.set()

    handle_int = handle_term

    def handle_hup(self) -> None:
        """Reload; stop if the terminal was closed."""
        if self._has_terminal and not _has_terminal():
            self.handle_term()
        elif not self.should_exit.is_set():
            self.restart_all()

    # -- workers -----------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill all workers."""
        for worker in self._living:
            worker.kill()
            worker.join()

    def _renew(self) -> None:
        """Put new workers in the place of those that serve, when all of the new ones do, unless a signal says stop.

        Raises WebarcError if one does not start.
        """
        try:
            new = [self._start() for _ in range(self.processes_num)]
            while not all(worker.serves for worker in new):
                if _STOPS & {*self.signal_queue}:
                    return
                for worker in new:
                    if worker.exitcode is not None:
                        kind = UsageError if worker.exitcode == Exit.USAGE else WebarcError
                        raise kind(f"a worker ended before it was ready ({worker.describe_end()})")
                time.sleep(_MOMENT)
                self._look()
            self.processes = new
            self._notify()
        finally:
            self._end_others()

    def _start(self) -> WorkerProcess:
        worker = WorkerProcess(self.config, self.sockets)
        worker.start()
        self._living.append(worker)
        return worker

    def _look(self) -> None:
        for worker in self._living:
            worker.look(time.monotonic())
        self._living = [worker for worker in self._living if worker.exitcode is None]

    def _end_others(self) -> None:
        for worker in self._living:
            if worker not in self.processes:
                worker.end()

    def _notify(self, fault: str = "") -> None:
        where = self._listeners[0].address
        processes.notify("READY=1", f"STATUS={fault}{len(self.processes)} workers at {where}")


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
