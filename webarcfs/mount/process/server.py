"""The life of a mount's process: mount, become the archive's owner, show the archive, end on a signal.

The main thread is libfuse's loop. `_live` runs in one of libfuse's threads when the kernel has accepted the mount; only
then start the view's thread and the one that waits for signals, which are blocked in all others. Order in `_live`: the
process must be the repositories' owner before it opens them.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import MountFailed
from webarcfs.archive.system import privileges
from webarcfs.mount.adapters.binding import AdapterContext, Serve
from webarcfs.mount.adapters.request_stats import RequestStats
from webarcfs.mount.lifetime.service import Additions, Tell, show_left
from webarcfs.mount.options import Options
from webarcfs.mount.process import mount_log, mountpoint
from webarcfs.mount.process.farewell import Farewell
from webarcfs.mount.process.keeper import Watchdog
from webarcfs.native import loader
from webarcfs.view import limits
from webarcfs.view.node import NodeKind
from webarcfs.view.tree.root import Tree
from webarcfs.view.tree.view import View, ViewListener

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
        self._signals = {signal.SIGTERM, signal.SIGINT} | ({signal.SIGHUP} if order.foreground else set())

    def run(self) -> None:
        """Mount, and return when it is unmounted. Raises MountFailed."""
        privileges.allow_many_files()
        limits.share_pools()
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
            can_abort = self._keeper.mounted()
            if os.geteuid() == 0 and self._uid != 0:
                privileges.become(self._uid, self._gid)
            self._open_log()
            if loader.form().damaged:
                _log.warning("running %s; `python -m webarcfs.native.build` mends that", loader.form())
            if not can_abort:
                _log.info(
                    "without root and fusectl, a mount that is killed at a bad moment may leave processes hanging"
                )
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
        mount_log.start(options.log, usual, foreground=self._order.foreground, debug=options.debug)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _wait_for_signals(self) -> None:
        number = signal.sigwait(self._signals)
        _log.info("ended by %s", signal.Signals(number).name)
        self._end()

    def _end(self) -> None:
        try:
            if self._keeper is None or not self._keeper.unmount():
                mountpoint.unmount_or_detach(self._order.point)
        except Exception:
            _log.exception("%s cannot be unmounted", self._order.point)
        # The loop ends by itself when the last open file is closed; then the process ends.
        if self._served.wait(LINGER):
            return
        self._drain()
        _log.warning("%s: files are still open after %g s; their readers get an error", self._order.point, LINGER)
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
        said = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        return "; ".join(said) or "libfuse gives no reason"


def _search_for_garbage_less() -> None:
    """Search less often for garbage: a mount's caches contain none, and searching takes a tenth of a walk."""
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
