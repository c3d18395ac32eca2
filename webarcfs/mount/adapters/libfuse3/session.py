"""The loop of the low-level adapter: a session, the threads that receive its requests, and notifications to the kernel.

`serve` runs in the main thread, after every fork. The first request is FUSE_INIT; after its answer there are `THREADS`
threads that receive requests in turn (the main thread is one), one that watches for slow requests, and one that bounds
the table of inodes. All have ended when `serve` returns. No exception leaves a callback: it becomes an errno here.

One thread at a time receives requests, until it reports that it will be busy. If two threads wait for requests at once,
the kernel wakes them alternately, and each then waits for the interpreter lock that the other holds; this doubles the
cost of a short request (measured). So one thread receives all requests, and the others wait. Work that may take long
calls `pass_on`, and another thread takes over meanwhile; `SlowRequestWatcher` finds slow work that did not call it.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from webarcfs.archive.model.errors import MountFailed
from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.libfuse3 import library
from webarcfs.mount.adapters.libfuse3.fast_path import FastPath
from webarcfs.mount.adapters.libfuse3.operations import CALLED, SUBJECTS, DeferredReply, Operations, Workers
from webarcfs.mount.adapters.libfuse3.write_operations import WritingOperations
from webarcfs.mount.adapters.requests import SlowRequests, errno_for
from webarcfs.mount.kernel.inode_table import Inodes, nodeid
from webarcfs.mount.kernel.invalidation import Expiry, Kernel, Trimmer
from webarcfs.mount.options import escaped
from webarcfs.vfs import content
from webarcfs.vfs.node import Caller, Folder

_log = logging.getLogger(__name__)

# == request turns ====================================================================================================


#: Seconds between two checks for a slow request.
INTERVAL = 0.1


class ReceiverTurn:
    """The turn of one session. Safe for any thread."""

    def __init__(self) -> None:
        self._taken = threading.Lock()
        self._mutex = threading.Lock()
        self._holder = 0
        self._busy = False
        self._requests = 0

    def work(self, receive: Callable[[], bool], process: Callable[[], bool]) -> None:
        """Receive and process requests whenever it is this thread's turn, until the session ends.

        Any number of threads may call it. `receive` and `process` return False at the end.
        """
        me = threading.get_ident()
        going = True
        while going:
            if self._holder != me:
                self._taken.acquire()  # released by pass_on, maybe in another thread
                self._holder = me
            going = receive()
            if going:
                self._requests += 1
                self._busy = True
                going = process()
                if self._holder == me:
                    self._busy = False
        self.pass_on()  # the other threads must see the end, too

    def pass_on(self) -> None:
        """Pass the calling thread's turn on, if it has it: the thread will be busy."""
        self._pass_on(threading.get_ident())

    def look(self, before: int) -> int:
        """Pass the turn on if the latest request was under way at the last check; return a number for the next."""
        holder, requests = self._holder, self._requests
        if self._busy and requests == before:
            content.note_cause(holder, "no other request was taken until the lookout acted")
            self._pass_on(holder)
        return requests

    def _pass_on(self, holder: int) -> None:
        with self._mutex:
            if self._holder != holder or not holder:
                return
            self._holder = 0
            self._busy = False
        self._taken.release()


class SlowRequestWatcher(threading.Thread):
    """The thread that finds slow requests."""

    def __init__(self, turn: ReceiverTurn, interval: float = INTERVAL) -> None:
        super().__init__(name="lookout", daemon=True)
        self._turn = turn
        self._interval = interval
        self._end = threading.Event()

    def run(self) -> None:
        """Check repeatedly."""
        seen = 0
        while not self._end.wait(self._interval):
            seen = self._turn.look(seen)

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self.join()


# == session ==========================================================================================================


#: Threads that receive requests, one at a time; the others wait for locks, git or the disk (session.py).
THREADS = 4
_Found = bytes | int | BaseException
#: The oldest protocol with all needed features (opendir without a request: Linux 5.1).
_PROTOCOL = (7, 29)
_NEEDED = library.CAP_NO_OPEN | library.CAP_NO_OPENDIR | library.CAP_READDIRPLUS


library.load()  # an import fails at once if the library cannot be used


def serve(mount: AdapterContext) -> None:
    """Mount, and answer requests until the mount is unmounted. Raises MountFailed if libfuse could not mount."""
    Loop(mount).run()


class Loop:
    """The session of one mount."""

    def __init__(self, mount: AdapterContext) -> None:
        self._mount = mount
        self._library = library.load()
        self._inodes = Inodes(mount.tree.root)
        self._workers = Workers()
        self._turn = ReceiverTurn()
        self._operations = (
            WritingOperations(mount, self._inodes, mount.additions, self._workers, self._turn.pass_on)
            if mount.additions is not None
            else Operations(mount, self._inodes, self._workers, self._turn.pass_on)
        )
        self._count = mount.requests.count if mount.requests else None
        self._slow = SlowRequests(lambda inode: self._inodes.path(inode) if isinstance(inode, int) else "")
        self._session = 0
        self._shortcut: Callable[[memoryview], bool] = lambda _: False
        self._ended = False
        self._answering = threading.Lock()

    def run(self) -> None:
        """Serve the session from its beginning to its end."""
        session, kept = library.new_session(self._arguments(), self._callbacks())
        if not session:
            raise MountFailed("libfuse does not take the options")
        self._session = session
        try:
            if self._library.fuse_session_mount(session, os.fsencode(self._mount.point)):
                raise MountFailed("libfuse cannot mount")
            try:
                self._serve()
            finally:
                self._library.fuse_session_unmount(session)
        finally:
            self._library.fuse_session_destroy(session)
            del kept

    def _serve(self) -> None:
        with library.RequestBuffer(self._session, self._shortcut) as first:
            if not (first.receive() and first.process()):
                return
        fd = self._library.fuse_session_fd(self._session)
        if not self._mount.options.get("debug"):  # with debug, libfuse logs each request that it sees
            self._shortcut = FastPath(fd, self._operations, self._answer_late, self._count, self._slow.note).answer
        lookout, trimmer = SlowRequestWatcher(self._turn), Trimmer(self._inodes, KernelCaches(self._session))
        threads = [threading.Thread(target=self._take, name=f"requests-{number}") for number in range(1, THREADS)]
        for thread in (*threads, lookout, trimmer):
            thread.start()
        self._take()
        for thread in threads:
            thread.join()
        lookout.stop()
        # Threads that still notify the kernel need the session.
        self._workers.stop()
        trimmer.stop()
        self._mount.tree.view.stop()
        with self._answering:
            self._ended = True
        if self._mount.requests:
            _log.info("requests: %s", self._mount.requests)

    def _take(self) -> None:
        with library.RequestBuffer(self._session, self._shortcut) as requests:
            self._turn.work(requests.receive, requests.process)

    def _arguments(self) -> list[bytes]:
        words = [
            name if value is True else f"{name}={escaped(value)}"
            for name, value in self._mount.options.items()
            if value is not False
        ]
        return [b"webarcfs", b"-o", os.fsencode(",".join(str(word) for word in words))]

    # -- callbacks ---------------------------------------------------------------------------------------------------

    def _callbacks(self) -> dict[str, Callable[..., None]]:
        mine: dict[str, Callable[..., None]] = {
            "init": self._init,
            "forget": self._forget,
            "forget_multi": self._forget_multi,
        }
        answered = [name for name in library.OPERATIONS if name not in mine and hasattr(self._operations, name)]
        return mine | {name: self._answered(name) for name in answered}

    def _answered(self, name: str) -> Callable[..., None]:
        """Return an operation as libfuse calls it: with the request first, and no result."""
        operation: Callable[..., bytes | int | DeferredReply] = getattr(self._operations, name)
        called = name in CALLED
        count, slow = self._count, self._slow.note
        finish = self._finisher(name)

        def call(request: int, *arguments: Any) -> None:
            begun = time.monotonic()

            def finish_and_note(outcome: bytes | int | BaseException) -> None:
                finish(request, outcome)
                slow(name, arguments[0], begun)

            try:
                if count is not None:
                    count(name)
                who = (Caller(*library.caller(request)),) if called else ()
                answer = operation(*who, *arguments)
                if isinstance(answer, DeferredReply):
                    note = self._noting(name, request, arguments)
                    answer.start(lambda outcome: self._answer_late(lambda: finish_and_note(note(outcome))))
                    return
            except BaseException as error:
                self._noting(name, request, arguments)(error)
                answer = errno_for(error, name, arguments[0])
            finish_and_note(answer)

        return call

    def _noting(self, name: str, request: int, arguments: tuple[Any, ...]) -> Callable[[_Found], _Found]:
        """Return a function that notes a refusal, and returns the answer. The arguments end with the callback."""
        read_subject = SUBJECTS.get(name)
        if read_subject is None:
            return lambda outcome: outcome
        uid, subject = library.caller(request)[0], read_subject(*arguments)

        def note(outcome: _Found) -> _Found:
            if isinstance(outcome, BaseException):
                self._operations.refused(name, uid, subject, outcome)
            return outcome

        return note

    def _finisher(self, name: str) -> Callable[[int, bytes | int | BaseException], None]:
        """Return a function that sends the answer to an operation, from any thread."""
        undone: Callable[[bytes], None] | None = getattr(self._operations, f"{name}_undone", None)
        reply, reply_error = self._library.fuse_reply_buf, self._library.fuse_reply_err

        def finish(request: int, answer: bytes | int | BaseException) -> None:
            if isinstance(answer, BaseException):
                answer = errno_for(answer, name)
            if isinstance(answer, int):
                reply_error(request, answer)
            elif reply(request, answer, len(answer)) and undone is not None:
                self._safely(undone, answer)

        return finish

    def _answer_late(self, answer: Callable[[], None]) -> None:
        """Answer from a thread that may outlive the session: the last commit answers an fsync of a folder."""
        with self._answering:
            if not self._ended:
                answer()

    def _forget(self, request: int, inode: int, lookups: int) -> None:
        self._safely(self._operations.forget, inode, lookups)
        self._library.fuse_reply_none(request)

    def _forget_multi(self, request: int, count: int, forgotten: Any) -> None:
        for node in forgotten[:count]:
            self._safely(self._operations.forget, node.ino, node.nlookup)
        self._library.fuse_reply_none(request)

    def _init(self, _data: Any, connection: Any) -> None:
        """Handle FUSE_INIT; the kernel's next requests come when this has returned."""
        self._safely(self._greet, connection.contents)

    def _greet(self, connection: Any) -> None:
        protocol = (connection.proto_major, connection.proto_minor)
        if protocol < _PROTOCOL or connection.capable & _NEEDED != _NEEDED:
            _log.error("the kernel speaks FUSE %d.%d only; use -o binding=fusepy", *protocol)
        # Always with attributes: a program that lists a folder usually continues with its entries.
        connection.want &= ~library.CAP_READDIRPLUS_AUTO
        connection.want |= library.CAP_READDIRPLUS | (connection.capable & library.CAP_CACHE_SYMLINKS)
        kernel = KernelCaches(self._session)
        self._mount.live(Expiry(self._mount.tree, self._inodes, kernel), kernel.forget)

    def _safely(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except BaseException:
            _log.exception("%s failed unexpectedly", function.__name__)


class KernelCaches(Kernel):
    """Notifications to the kernel. Not for a thread that receives requests: it would wait for itself."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._library = library.load()

    def forget(self, folder: Folder, name: str) -> None:
        """Invalidate a name in a folder, and the folder's listing."""
        self.forget_name(nodeid(folder), name)
        self.forget_inode(nodeid(folder))

    def forget_name(self, folder: int, name: str) -> None:  # noqa: D102 # see Kernel
        raw = os.fsencode(name)
        self._check(self._library.fuse_lowlevel_notify_inval_entry(self._session, folder, raw, len(raw)))

    def forget_inode(self, inode: int) -> None:  # noqa: D102 # see Kernel
        self._check(self._library.fuse_lowlevel_notify_inval_inode(self._session, inode, 0, 0))

    def _check(self, result: int) -> None:
        # The kernel does not know it, has a mount on it, or is gone: nothing to invalidate.
        if result not in (
            0,
            -errno.ENOENT,
            -errno.ENOTDIR,
            -errno.ENOTEMPTY,
            -errno.EBUSY,
            -errno.ENOTCONN,
            -errno.ENODEV,
            -errno.EBADF,
        ):
            _log.error("the kernel did not take an expiry: %s", os.strerror(-result))
