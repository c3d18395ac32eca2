"""The programs of webarcfs as processes of their own, without the second that each takes to import what it runs.

A server, `python -m tests.support.forked`, has imported everything and has one thread. A program is a fork of it, with
its own arguments, environment, folder, handles and session, and ends as any Python does. What the interpreter or a
module reads at its start is alike in all forks: a program with another such environment is executed.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from webarcfs.compiled import loader

_ROOT = Path(__file__).resolve().parents[2]
#: How wide a terminal the programs take theirs for. A module reads it once.
COLUMNS = "200"
#: What a test may set in the environment, and no module has read when it is imported.
_READ_LATE = frozenset({"HOME", "PATH", "PYTEST_CURRENT_TEST", "WEBARC_ARCHIVE"})
#: What runs a mount. Its server prefers the compiled modules, and leaves the bindings to each mount.
MOUNT = (sys.executable, "-c", "import sys; from webarcfs.mount.process.program import main; sys.exit(main())")
#: What no other program imports.
_LEFT_OUT = ("webarcfs.mount.", "webarcfs.compiled.", "webarcfs._compiled")
#: That of the servers: as it was before the first test, which may change it for itself.
_ENVIRONMENT: Mapping[str, str] = {**os.environ, "COLUMNS": COLUMNS}
_LARGEST = 1 << 20
_lock = threading.Lock()


# == for tests =========================================================================================================


class Popen(subprocess.Popen[str]):
    """`subprocess.Popen` of `[sys.executable, "-c" or "-m", …]` with text streams, as a fork of the server.

    The few methods of CPython's class that start and wait are replaced; pipes, `communicate` and timeouts are its own.
    """

    def __init__(self, command: Sequence[object], **more: Any) -> None:
        super().__init__([str(word) for word in command], text=True, **more)

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        executable, preexec_fn, _, pass_fds, cwd, env, _, _, shell, *ends = rest[:-7]
        _, gid, gids, uid, umask, session, group = rest[-7:]
        environment = {**os.environ, "COLUMNS": COLUMNS} if env is None else dict(env)
        plain = not any((executable, preexec_fn, pass_fds, shell, gid, gids, uid)) and umask < 0 and group < 0
        self._ended = -1
        if not (plain and args[0] == sys.executable and args[1] in ("-c", "-m") and _is_as_imported(environment)):
            super()._execute_child(args, *rest)  # type: ignore[misc] # CPython's own
            return
        read, _, _, written, _, complained = ends
        handles = [end if end >= 0 else own for own, end in enumerate((read, written, complained))]
        folder = str(cwd or Path.cwd())
        try:
            server = _server(tuple(args[:3]) == MOUNT)
            self.pid, self._ended = server.fork(args[1:], environment, folder, handles, bool(session))
            self._child_created = True
        finally:
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined] # CPython's own

    def _internal_poll(self, *words: Any, **named: Any) -> int | None:
        if self._ended < 0:
            return super()._internal_poll(*words, **named)  # type: ignore[misc,no-any-return] # CPython's own
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._ended < 0:
            return super()._wait(timeout=timeout)  # type: ignore[misc,no-any-return] # CPython's own
        with self._waitpid_lock:  # type: ignore[attr-defined] # CPython's own, for two threads that wait
            if self.returncode is None:
                poll = select.poll()
                poll.register(self._ended, select.POLLIN)
                if not poll.poll(None if timeout is None else timeout * 1000):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                told = os.read(self._ended, 100)
                assert told, "the server of forks has ended"
                os.close(self._ended)
                self.returncode = int(told)
        return self.returncode


def run(
    command: Sequence[object], timeout: float = 240, check: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; what it wrote is captured."""
    pipe = subprocess.PIPE
    with Popen(command, **{"stdin": subprocess.DEVNULL, **more}, stdout=pipe, stderr=pipe) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


class _Server:
    """The server of this process. It ends with it."""

    def __init__(self, mounts: bool) -> None:
        self.owner = os.getpid()
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(its.fileno()), *["mounts"] * mounts],
                env=_ENVIRONMENT, cwd=_ROOT, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def fork(
        self, words: list[str], environment: Mapping[str, str], folder: str, handles: list[int], session: bool
    ) -> tuple[int, int]:
        """Start `python WORD…`; its process, and the handle which its exit code is read from."""
        read, written = os.pipe()
        told = json.dumps([words, dict(environment), folder, session], ensure_ascii=True).encode()
        with _lock:
            try:
                socket.send_fds(self._socket, [told], [*handles, written])
            finally:
                os.close(written)
            answer = self._socket.recv(100)
        assert answer, f"the server of forks has ended: {self._process.poll()}"
        return int(answer), read


def _is_as_imported(environment: Mapping[str, str]) -> bool:
    """Whether the modules of a server are what a program with this environment would have."""
    names = (_ENVIRONMENT.keys() | environment.keys()) - _READ_LATE
    return all(_ENVIRONMENT.get(name) == environment.get(name) for name in names)


_servers: dict[bool, _Server] = {}


def _server(mounts: bool) -> _Server:
    with _lock:
        if mounts not in _servers or _servers[mounts].owner != os.getpid():
            _servers[mounts] = _Server(mounts)
        return _servers[mounts]


# == the server ========================================================================================================


def _modules() -> Iterator[str]:
    for package in ("agent", "webarcfs"):
        for found in pkgutil.walk_packages([str(_ROOT / package)], f"{package}."):
            if not found.name.startswith(_LEFT_OUT):
                yield found.name


def _serve(connection: socket.socket) -> tuple[list[str], list[int], dict[str, str], str, bool] | None:
    """Fork for each request; what is asked for, in the fork; None in the server, when nobody asks any more."""
    wake, awake = os.pipe()
    os.set_blocking(awake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for pytest
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    poll.register(connection, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if wake in ready:
            os.read(wake, 1 << 16)
            _tell_ends(running)
        if connection.fileno() not in ready:
            continue
        told, handles, _, _ = socket.recv_fds(connection, _LARGEST, 4)
        if not told:
            return None
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for handle in (wake, awake, *running.values()):
                os.close(handle)
            os.close(handles.pop())
            words, environment, folder, session = json.loads(told)
            if session:
                os.setsid()
            connection.send(str(os.getpid()).encode())
            connection.close()
            return words, handles, environment, folder, session
        *others, running[pid] = handles
        for handle in others:
            os.close(handle)


def _tell_ends(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it
            os.write(running[pid], str(os.waitstatus_to_exitcode(status)).encode())
        os.close(running.pop(pid))


def _be(words: list[str], handles: list[int], environment: dict[str, str], folder: str) -> None:
    """Be `python WORD…`."""
    for own, handle in enumerate(handles):
        os.dup2(handle, own)
        os.close(handle)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
    kind, what, *arguments = words
    sys.argv = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(what, {"__name__": "__main__"})  # as `python -c` does


def _stream(handle: int, mode: str) -> io.TextIOWrapper:
    old = (sys.stdin, sys.stdout, sys.stderr)[handle]
    is_direct = mode == "w" and bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(
        open(handle, f"{mode}b", buffering=0 if is_direct else -1, closefd=False),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=handle == 2,
        write_through=is_direct,
    )


def _main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    mounts = sys.argv[2:] == ["mounts"]
    if mounts:
        loader.use()
    for name in ["webarcfs.mount.process.cli"] if mounts else _modules():
        __import__(name)
    gc.freeze()  # else each fork would copy what a collection touches
    asked = _serve(connection)
    if asked is None:
        return
    code: Any = 0
    try:
        _be(*asked[:4])
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    _end(code)


def _end(code: Any) -> None:
    """End as Python does, but for taking apart each of a thousand modules."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined] # what waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        traceback.print_exc()
        code = 120
    os._exit(code or 0)


if __name__ == "__main__":
    _main()
