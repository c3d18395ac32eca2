"""The life of a mount's process: mount, become the archive's owner, show the archive, end on a signal.

The main thread is libfuse's loop. `_live` runs in one of libfuse's threads when the kernel has accepted the mount; only
then start the view's thread and the one that waits for signals, which are blocked in all others. Order in `_live`: the
process must be the repositories' owner before it opens them.

A mount logs to stderr in the foreground, else to the archive's own log, the file of `-o log=`, or the system's log.
That is chosen once, when the mount is live and its process is the archive's owner.

The last words of the process are for the command that unmounts it. The command is no parent of the process, and the
process has no terminal. So the process has a file in memory, which the command opens by way of /proc before it
unmounts, and reads when the process has ended. It leaves nothing behind.

A small process beside the mount's unmounts on request, and aborts the connection when the mount is killed. Two tasks
need it. A mount that root started runs as the archive's owner and may not unmount any more. And a mount may be killed
while one of its threads waits inside the kernel: to invalidate a name that a reader has locked, while that reader waits
for the mount. The kernel cannot end that thread, so it does not close /dev/fuse, and all of them wait for ever, unless
another process aborts the connection. Where fusectl is not mounted, root alone can do that, by a forced unmount. The
small process is forked before any thread starts. It holds only its end of a socket, /dev/null and the handle of that
abort (which identifies this connection for good, whatever is mounted later), and ends after the mount's process.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import logging.handlers
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import MountFailed, WebarcError
from webarcfs.archive.system import processes
from webarcfs.archive.system.processes import lives
from webarcfs.archive.system.rotating_log import RotatingLog
from webarcfs.compiled import loader
from webarcfs.mount.adapters.binding import AdapterContext, Serve
from webarcfs.mount.adapters.requests import RequestStats
from webarcfs.mount.options import Options
from webarcfs.mount.process import mountpoint
from webarcfs.vfs import content
from webarcfs.vfs.node import NodeKind
from webarcfs.vfs.root import Tree
from webarcfs.vfs.view import View, ViewListener
from webarcfs.writing.service import Additions, Tell, show_left

# == mount log ========================================================================================================


#: The word for the system's log in `-o log=`.
JOURNAL = "journal"
#: The socket for the system's log lines, of journald and syslogd alike.
DEVICE = Path("/dev/log")
_FORMAT = "%(asctime)s %(levelname)s mount[%(process)d]: %(message)s"
_PLAIN = "mount.webarcfs[%(process)d]: %(message)s"
#: Level → the priority that sd-daemon(3) specifies for the beginning of a line.
_PRIORITIES: Mapping[int, int] = {logging.NOTSET: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}


def start(log: str, archive_log: Path, *, foreground: bool, debug: bool) -> None:
    """Log from now on to `log` (a file, `journal`, or empty). Raises MountFailed if that is not possible."""
    handlers = _chosen(log, archive_log, foreground=foreground)
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    logging.getLogger("webarcfs").setLevel(logging.DEBUG if debug else logging.INFO)


def _chosen(log: str, archive_log: Path, *, foreground: bool) -> list[logging.Handler]:
    if log == JOURNAL:
        return [_system()]
    if log:
        try:
            return [_file(_Watched(log, encoding="utf-8"))]
        except OSError as error:
            raise MountFailed(f"the log {log} cannot be written: {error.strerror}; give another with -o log=") from None
    if foreground:
        return [_stderr()]
    try:
        with archive_log.open("ab"):  # RotatingLog opens it with the first line, too late for the error below
            usual = [_file(RotatingLog(archive_log))]
    except OSError:  # this user may only read the archive
        return [_system() if DEVICE.exists() else logging.NullHandler()]
    # Warnings need an administrator, who reads the system's log.
    return [*usual, _system(logging.WARNING)] if DEVICE.exists() else usual


def _file(handler: logging.Handler) -> logging.Handler:
    handler.setFormatter(logging.Formatter(_FORMAT))
    return handler


def _system(level: int = logging.NOTSET) -> logging.Handler:
    if not DEVICE.exists():
        raise MountFailed(f"the system takes no log lines, {DEVICE} is missing; give a file with -o log=FILE")
    handler = logging.handlers.SysLogHandler(str(DEVICE), logging.handlers.SysLogHandler.LOG_DAEMON)
    handler.setFormatter(logging.Formatter(_PLAIN))
    handler.setLevel(level)
    return handler


def _stderr() -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Prefixed() if _is_journal(sys.stderr.fileno()) else logging.Formatter(_FORMAT))
    return handler


class _Watched(logging.handlers.WatchedFileHandler):
    """A file that other programs may rotate; requests are answered even if it cannot be reopened."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)


class _Prefixed(logging.Formatter):
    """Lines with their priority (sd-daemon(3)); the journal adds time and process itself."""

    def format(self, record: logging.LogRecord) -> str:
        priority = min(number for level, number in _PRIORITIES.items() if level <= record.levelno)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def _is_journal(fd: int) -> bool:
    """Return whether a descriptor leads to the journal (systemd.exec(5), JOURNAL_STREAM)."""
    status = os.fstat(fd)
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


# == farewell =========================================================================================================


_NAME = "webarcfs-farewell"
#: The file begins so once the process has said all: one that is killed says nothing.
_SAID = b"\0"
#: Most lines; the log has all.
_MOST = 20


class Farewell:
    """The file of one mount's process."""

    def __init__(self) -> None:
        self._fd = os.memfd_create(_NAME)

    def write(self, lines: Sequence[str]) -> None:
        """Write what is to be said; for the process that ends."""
        shown = [*lines[:_MOST], *[f"and {len(lines) - _MOST} more, which the log names"] * (len(lines) > _MOST)]
        os.pwrite(self._fd, _SAID + "\n".join(shown).encode("utf-8", "surrogateescape"), 0)


def open_farewell(process: int) -> int | None:
    """Return a descriptor of the file of a process, by its id; None where this user may not read it."""
    folder = Path(f"/proc/{process}/fd")
    try:
        for link in folder.iterdir():
            if os.readlink(link).startswith(f"/memfd:{_NAME}"):  # noqa: PTH115 # the target is no path
                return os.open(link, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        pass
    return None


def read_farewell(fd: int) -> list[str]:
    """Return the lines of the file of a process that has ended."""
    farewell = os.pread(fd, os.fstat(fd).st_size, 0)
    if not farewell.startswith(_SAID):
        return ["the mount's process died; the next mount or agent commits what waits in the journal"]
    return farewell[len(_SAID) :].decode("utf-8", "surrogateescape").splitlines()


# == keeper ===========================================================================================================


#: Seconds between two checks of the mount's process. Its socket closes with it, but not if a thread is stuck.
LOOK_EVERY = 1.0
#: Seconds that the threads of a killed process may take to end, one after the other.
ENDING = 0.2
_MOUNTED, _UNMOUNT, _DONE, _FAILED = b"m", b"u", b"d", b"f"


class Watchdog:
    """The mount's side of the keeper. One thread at a time may call its methods."""

    def __init__(self, point: Path) -> None:
        mine, its = socket.socketpair()
        parent = os.getpid()
        self._socket = mine
        self._pid = os.fork()
        if self._pid == 0:
            _keep(point, parent, its.fileno())
        its.close()

    def mounted(self) -> bool:
        """Report that the mount exists; return whether the keeper can abort the connection (by fusectl, or as root)."""
        return self._ask(_MOUNTED)

    def unmount(self) -> bool:
        """Request unmounting, detached if it is busy; return whether that succeeded."""
        return self._ask(_UNMOUNT)

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _ask(self, what: bytes) -> bool:
        try:
            self._socket.sendall(what)
            return self._socket.recv(1) == _DONE
        except OSError:  # the keeper was killed
            return False


def _keep(point: Path, parent: int, fd: int) -> None:
    """Run the keeper's process."""
    try:
        _let_go(fd)
        abort, connection = -1, None
        with socket.socket(fileno=3) as master:
            master.settimeout(LOOK_EVERY)
            while (asked := _next(master, parent)) is not None:
                done = True
                if asked == _UNMOUNT:
                    done = _unmounted(point)
                elif asked == _MOUNTED:
                    abort, connection = _handle(point), mountpoint.connection(point)
                    done = abort >= 0 or os.geteuid() == 0
                with contextlib.suppress(OSError):
                    master.sendall(_DONE if done else _FAILED)
        if abort >= 0:
            os.write(abort, b"1")  # no effect if the connection has ended
        elif connection is not None and _is_stuck(parent) and mountpoint.connection(point) == connection:
            mountpoint.force(point)
    except OSError:
        pass
    finally:
        os._exit(0)


def _let_go(fd: int) -> None:
    """Keep no descriptor of the parent's but the socket, as 3; leave its folder, and ignore its terminal's signals."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    if fd != 3:
        os.dup2(fd, 3)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text("webarc-keeper")


def _next(master: socket.socket, parent: int) -> bytes | None:
    """Return the next request; None when the mount's process is gone."""
    while True:
        try:
            return master.recv(1) or None
        except TimeoutError:
            if not lives(parent):
                return None
        except OSError:
            return None


def _handle(point: Path) -> int:
    """Return a descriptor that aborts the mount's connection; -1 if none is available."""
    try:
        return os.open(mountpoint.abort_file(point), os.O_WRONLY)
    except (OSError, MountFailed):
        return -1


def _is_stuck(parent: int) -> bool:
    """Return whether the kernel could not end the mount's process; one that has ended is no parent any more."""
    time.sleep(ENDING)
    return os.getppid() == parent and not lives(parent)


def _unmounted(point: Path) -> bool:
    try:
        mountpoint.unmount_or_detach(point)
    except (OSError, WebarcError):  # the mount's own process sees that it is still mounted
        return False
    return True


# == server ===========================================================================================================


#: Seconds for which a mount that received a signal serves the files that are still open.
LINGER = 10.0

#: Allocations between two searches for garbage cycles; Python's default is 700.
_YOUNG = 50_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MountRequest:
    """A mount as requested on the command line."""

    archive: Archive
    point: Path
    options: Options
    serve: Serve
    foreground: bool
    group: int | None = None


class Server:
    """The process of one mount. It calls `ready` when the mount is live, with lines for whoever mounts."""

    def __init__(self, order: MountRequest, ready: Callable[[Sequence[str]], None]) -> None:
        owner = order.archive.root.stat()
        self._order = order
        self._ready = ready
        self._uid, self._gid = owner.st_uid, owner.st_gid
        self._view = View(order.archive)
        self._additions = None if order.options.read_only else Additions(self._view)
        self._failure: BaseException | None = None
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 # until the process ends
        self._stderr = os.dup(2)
        self._keeper: Watchdog | None = None
        self._farewell = Farewell()
        #: No request can arrive any more; only the drain is left, however long it takes.
        self._served = threading.Event()
        #: The kernel's number of this mount, known when it is live.
        self._connection: str | None = None
        self._signals = {signal.SIGTERM, signal.SIGINT} | ({signal.SIGHUP} if order.foreground else set())

    def run(self) -> None:
        """Mount, and return when it is unmounted. Raises MountFailed."""
        processes.allow_many_files()
        content.share_pools()
        self._keeper = Watchdog(self._order.point)  # before there are threads
        # Blocked here, and so in every later thread except the one that waits for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        if not self._order.foreground:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.dup2(self._complaints.fileno(), 2)  # libfuse writes there why it cannot mount
        _search_for_garbage_less()
        try:
            self._order.serve(self._mount())
        except (RuntimeError, MountFailed):  # RuntimeError is fusepy's, MountFailed ours
            self._failure = self._failure or MountFailed(self._complaint())
        finally:
            self._served.set()
            os.dup2(self._stderr, 2)
            self._drain()
            self._view.stop()
            self._view.close()
            self._keeper.close()
        if self._failure is not None:
            raise MountFailed(
                f"cannot mount {self._order.archive.root} on {self._order.point}: {self._failure}"
            ) from self._failure
        _log.info("%s is unmounted", self._order.point)

    def _mount(self) -> AdapterContext:
        options = self._order.options
        flags: dict[str, str | bool] = {
            "fsname": str(self._order.archive.root),
            "subtype": "webarcfs",
            "default_permissions": True,
            "allow_other": options.allow_other or os.geteuid() == 0,
            "ro": options.read_only,
            "nosuid": True,
            "nodev": True,
            "noexec": options.no_programs,
            "debug": options.debug and self._order.foreground,
        }
        tree = Tree(self._view)
        requests = RequestStats() if options.stats else None
        return AdapterContext(
            archive=self._order.archive,
            tree=tree,
            point=self._order.point,
            uid=self._uid,
            gid=self._gid if self._order.group is None else self._order.group,
            options=flags,
            live=self._live,
            requests=requests,
            folder_mode=NodeKind.FOLDER.value if self._order.group is None else 0o775,
            additions=self._additions,
        )

    # -- in libfuse's thread, once -----------------------------------------------------------------------------------

    def _live(self, listener: ViewListener | None, tell: Tell | None) -> None:
        try:
            assert self._keeper is not None
            self._connection = mountpoint.connection(self._order.point)
            can_abort = self._keeper.mounted()
            if os.geteuid() == 0 and self._uid != 0:
                processes.become(self._uid, self._gid)
            self._open_log()
            if loader.form().damaged:
                _log.warning("running %s; `python -m webarcfs.compiled.build` repairs that", loader.form())
            if not can_abort:
                _log.info("without root and fusectl, a mount that is killed at a bad time may leave processes hanging")
            if self._additions is not None:
                self._additions.start(tell)
            notes = self._additions.notes if self._additions is not None else show_left(self._view)
            self._view.start(listener)
            threading.Thread(target=self._wait_for_signals, name="signals", daemon=True).start()
            _log.info("%s is mounted on %s (%s)", self._order.archive.root, self._order.point, loader.form())
            self._ready(notes)
        except BaseException as error:
            self._failure = error
            # In another thread: the kernel waits for the answer to this request.
            threading.Thread(target=self._end, name="end", daemon=True).start()

    def _open_log(self) -> None:
        os.dup2(self._stderr, 2)
        self._complaints.close()
        options, usual = self._order.options, self._order.archive.log / "mount.log"
        start(options.log, usual, foreground=self._order.foreground, debug=options.debug)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _wait_for_signals(self) -> None:
        number = signal.sigwait(self._signals)
        _log.info("ended by %s", signal.Signals(number).name)
        self._end()

    def _end(self) -> None:
        try:
            if self._connection is not None and mountpoint.connection(self._order.point) != self._connection:
                # Somebody unmounted it, and may have mounted another there.
                _log.info("%s: this mount is not there any more, or below another", self._order.point)
            elif self._keeper is None or not self._keeper.unmount():
                mountpoint.unmount_or_detach(self._order.point)
        except Exception:
            _log.exception("%s cannot be unmounted", self._order.point)
        # The loop ends by itself when the last open file is closed; then the process ends.
        if self._served.wait(LINGER):
            return
        self._drain()
        _log.warning(
            "%s: files are open, or a namespace still has the mount, after %g s; readers get an error",
            self._order.point,
            LINGER,
        )
        self._view.close()
        logging.shutdown()
        os._exit(0)

    def _drain(self) -> None:
        """Confirm and commit all writes."""
        if self._additions is not None:
            self._additions.stop()
        self._farewell.write(self._additions.remains if self._additions is not None else [])

    def _complaint(self) -> str:
        if self._complaints.closed:
            return "libfuse ended with an error after it was live"
        self._complaints.seek(0)
        lines = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        return "; ".join(lines) or "libfuse gives no reason"


def _search_for_garbage_less() -> None:
    """Search less often for garbage: a mount's caches contain none, and searching takes a tenth of a walk."""
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
