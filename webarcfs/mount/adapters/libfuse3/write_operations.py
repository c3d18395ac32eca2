"""The low-level adapter's operations of a mount that accepts additions; operations.py has those that read.

A worker (operations.py) answers a close, when the journal has the file and the kernel has dropped the name: the
kernel's next lookup finds the new version. Until then the name means the draft, an inode of its own. If a copy of the
handle (dup) continues to write, the name means the draft again; so until the last release the kernel caches no name of
the version, and asks.

Closes and fsyncs that arrive together are confirmed in one batch (confirmation.py), one thread for each domain. Closes
that arrive during a batch form the next one; so the more arrive, the less each costs. Large files are confirmed alone,
and a domain that a publisher has locked delays no other. As one thread confirms for all, threads need not hand the
interpreter to one another meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from webarcfs.archive.model.errors import LookAgain, NotSupported, Stale, WebarcError
from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.libfuse3 import library
from webarcfs.mount.adapters.libfuse3.operations import Answer, DeferredReply, Operations, Subject, Workers
from webarcfs.mount.kernel import readdir
from webarcfs.mount.kernel.inode_table import Inodes
from webarcfs.vfs.folders import StoredFile
from webarcfs.vfs.node import Caller, Folder, Node
from webarcfs.vfs.root import Tree
from webarcfs.writing.addition_names import ParentAndName, find
from webarcfs.writing.drafts import DraftFile, Opened
from webarcfs.writing.service import Additions
from webarcfs.writing.writer import Writer

# == close batches ====================================================================================================


#: Largest batch: the bodies are in memory, none larger than a journal's record holds.
MOST = 64

_Close = tuple[Opened, Answer]

_log = logging.getLogger(__name__)


class CloseBatcher:
    """The closes of one mount."""

    def __init__(self, writer: Callable[[], Writer], workers: Workers) -> None:
        self._writer = writer
        self._workers = workers
        self._lock = threading.Lock()
        #: The waiting closes by domain; a domain is a key as long as a thread works on it.
        self._waiting: dict[str, list[_Close]] = {}

    def close(self, opened: Opened) -> DeferredReply:
        """Return the reply to a close: that the written bytes are durable and visible, or the error."""
        return DeferredReply(lambda answer: self._add((opened, answer)))

    def _add(self, close: _Close) -> None:
        domain = close[0].draft.place.domain
        with self._lock:
            if domain in self._waiting:
                self._waiting[domain].append(close)
                return
            self._waiting[domain] = [close]
        self._workers.release(lambda: self._confirm(domain))

    def _confirm(self, domain: str) -> None:
        """Confirm the waiting closes until none is left."""
        while closes := self._next(domain):
            together = [close for close in closes if not close[0].is_dear]
            for opened, answer in closes:
                if opened.is_dear:
                    self._alone(opened, answer)
            if together:
                self._together(together)

    def _next(self, domain: str) -> list[_Close]:
        with self._lock:
            waiting = self._waiting[domain]
            if not waiting:
                del self._waiting[domain]
                return []
            self._waiting[domain] = waiting[MOST:]
            return waiting[:MOST]

    def _alone(self, opened: Opened, answer: Answer) -> None:
        writer = self._writer()
        self._workers.close(lambda: writer.confirm(opened)).start(answer)

    def _together(self, closes: list[_Close]) -> None:
        answers = iter([answer for _, answer in closes])
        try:
            for error in self._writer().confirm_all([opened for opened, _ in closes]):
                next(answers)(0 if error is None else error)
        except BaseException as error:
            _log.exception("closes were not confirmed")
            for answer in answers:  # every caller waits for an answer, and other closes for this thread
                answer(error)


# == write operations =================================================================================================


# ruff: noqa: D102 # the methods are the operations of libfuse; SEMANTICS.md specifies their answers


class WritingOperations(Operations):
    """The operations of one mount."""

    writes: ClassVar[bool] = True

    def __init__(
        self,
        mount: AdapterContext,
        inodes: Inodes,
        additions: Additions,
        workers: Workers,
        hand_over: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(mount, inodes, workers, hand_over)
        self._additions = additions
        self._closing = CloseBatcher(additions.ready, workers)
        self._opened: dict[int, Opened] = {}

    @property
    def _writer(self) -> Writer:
        return self._additions.ready()

    # -- names -------------------------------------------------------------------------------------------------------

    def create(self, caller: Caller, parent: int, name: bytes, _mode: int, _fi: Any) -> bytes:
        text = os.fsdecode(name)
        opened, node = self._writer.create(self._known(parent, name), text, caller)
        self._inodes.follow(parent)
        return self._entry(node, parent, text) + readdir.opened(self._keep(opened), readdir.KEEP_CACHE)

    def create_undone(self, reply: bytes) -> None:
        """Undo an answer that the kernel rejected."""
        self.lookup_undone(reply)
        self._release(readdir.handle_of_create(reply))

    def mknod(self, caller: Caller, parent: int, name: bytes, mode: int, device: int) -> bytes:
        if not stat.S_ISREG(mode):
            return super().mknod(caller, parent, name, mode, device)
        text, writer = os.fsdecode(name), self._writer
        opened, node = writer.make(self._known(parent, name), text, caller)
        self._inodes.follow(parent)

        def close() -> None:
            try:
                writer.confirm(opened)
            finally:
                writer.release(opened)

        reply = self._entry(node, parent, text)
        self._workers.release(close)  # the kernel holds the folder until the answer
        return reply

    def mknod_undone(self, reply: bytes) -> None:
        """Undo an answer that the kernel rejected."""
        self.lookup_undone(reply)

    def mkdir(self, caller: Caller, parent: int, name: bytes, _mode: int) -> bytes:
        text = os.fsdecode(name)
        folder = self._known(parent, name)
        self._writer.names.mkdir(folder, text, caller)
        return self._entry(Tree.child(folder, text), parent, text)

    def mkdir_undone(self, reply: bytes) -> None:
        """Undo an answer that the kernel rejected."""
        self.lookup_undone(reply)

    def rename(  # noqa: PLR0917 # libfuse's arguments
        self, caller: Caller, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int
    ) -> DeferredReply:
        source = self._known(parent, name), os.fsdecode(name)
        target = self._known(new_parent, new_name), os.fsdecode(new_name)
        writer = self._writer

        def work() -> Callable[[], None]:
            changed = writer.names.rename(source, target, flags, caller)
            there = find(*target)
            if isinstance(there, StoredFile | DraftFile):  # the kernel may open it at once
                self._inodes.follow(new_parent)
                self._inodes.rename((parent, source[1]), there, (new_parent, target[1]))
            return lambda: self._tell(changed)

        return self._workers.rename(work)

    def _tell(self, changed: list[ParentAndName]) -> None:
        for folder, name in changed:
            if isinstance(folder, Folder):
                self._writer.tell(folder, name)

    def setattr(self, caller: Caller, inode: int, attr: int, to_set: int, fi: Any) -> bytes:
        opened = self._opened.get(fi.contents.fh) if fi else None
        node = self._inodes.named(inode) if opened is None else self._inodes.node(inode)
        if to_set & library.SET_SIZE:
            size = library.size_of_stat(attr)
            if opened is not None:
                self._writer.truncate(opened, size)
            elif isinstance(node, DraftFile):
                with self._revived(node, caller):
                    self._cut(node, size)
            else:
                self._look_again(node, caller)
                raise node.refusal()
        elif opened is None:
            self._writer.names.may_change(node, caller)
        return self.getattr(inode, fi)

    def _cut(self, node: DraftFile, size: int) -> None:
        writer = self._writer
        opened = writer.cut(node.draft, size)
        if opened is not None:
            self._workers.release(lambda: writer.release(opened))

    def unlink(self, caller: Caller, parent: int, name: bytes) -> DeferredReply:
        folder, text, writer = self._known(parent, name), os.fsdecode(name), self._writer

        def work() -> Callable[[], None]:
            writer.names.unlink(folder, text, caller)
            return _do_nothing

        return self._workers.rename(work)

    def rmdir(self, caller: Caller, parent: int, name: bytes) -> bytes | int:
        self._writer.names.rmdir(self._known(parent, name), os.fsdecode(name), caller)
        return 0

    def setxattr(self, inode: int, name: bytes, *_: Any) -> bytes:
        node = self._inodes.node(inode)
        if not name.startswith(b"user.") or self._writer.names.is_recent(node):
            raise NotSupported(os.fsdecode(name))
        raise node.refusal()

    def removexattr(self, inode: int, *rest: Any) -> bytes:
        return self.setxattr(inode, *rest)

    def refused(self, operation: str, uid: int, subject: Subject, error: BaseException) -> None:
        inode, name, handle = subject
        opened = self._opened.get(handle)
        try:
            where = self._inodes.node(inode) if opened is None else opened
        except WebarcError:
            return  # the kernel has forgotten it meanwhile
        self._refusals.note(operation, uid if opened is None else opened.draft.maker, (where, os.fsdecode(name)), error)

    # -- contents ----------------------------------------------------------------------------------------------------

    def open(self, caller: Caller, inode: int, fi: Any) -> bytes | int | DeferredReply:
        flags = fi.contents.flags
        if flags & os.O_ACCMODE == os.O_RDONLY and not flags & os.O_TRUNC:
            return super().open(caller, inode, fi)
        node = self._inodes.named(inode)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            raise node.refusal()
        if not isinstance(node, DraftFile):
            self._look_again(node, caller)
        with self._revived(node, caller):
            opened = self._writer.open(node, flags, caller)
        return readdir.opened(self._keep(opened), readdir.DIRECT_IO if opened.direct else readdir.KEEP_CACHE)

    def _look_again(self, node: Node, caller: Caller) -> None:
        """Raise Stale for a version that its maker still writes to: the kernel looks the name up, and finds the draft.

        The kernel thus writes to one inode of a file, so that all handles share one size and one page cache.
        """
        if self._writer.files.open_draft(node, caller) is not None:
            raise LookAgain("the file is still open; its name means what is being written")

    @contextlib.contextmanager
    def _revived(self, node: Node, caller: Caller) -> Iterator[None]:
        """Let the kernel find a draft if this one was closed just now: it looks a name up once, and not twice."""
        try:
            yield
        except Stale:
            self._writer.files.open_draft(node, caller)
            raise

    def _entry(self, node: Node, parent: int, name: str, valid: int = readdir.ALWAYS) -> bytes:
        # Its maker may write again before the kernel has dropped the name.
        writer = self._additions.writer
        return super()._entry(node, parent, name, 0 if writer is not None and writer.files.is_open(node) else valid)

    def open_undone(self, reply: bytes) -> None:
        """Undo an answer that the kernel rejected."""
        if not self._release(readdir.first_number(reply)):
            super().open_undone(reply)

    def read(self, inode: int, size: int, offset: int, fi: Any) -> bytes:
        opened = self._opened.get(fi.contents.fh)
        return opened.draft.read(offset, size) if opened else super().read(inode, size, offset, fi)

    def write(self, _inode: int, address: int, size: int, offset: int, fi: Any) -> bytes | DeferredReply:
        info = fi.contents
        return self.take(info.fh, library.memory(address, size), offset, bool(info.writepage), info.flags)

    def take(self, handle: int, data: bytes, offset: int, mapped: bool, flags: int) -> bytes | DeferredReply:
        opened = self._opened[handle]
        reply = readdir.written(self._writer.write(opened, data, offset, mapped=mapped))
        if not flags & os.O_DSYNC or mapped:  # O_SYNC includes it
            return reply
        confirmed = self._closing.close(opened)
        return DeferredReply(lambda answer: confirmed.start(lambda outcome: answer(outcome or reply)))

    def fallocate(self, _inode: int, mode: int, offset: int, length: int, fi: Any) -> int:
        self._writer.allocate(self._opened[fi.contents.fh], mode, offset, length)
        return 0

    def flush(self, _inode: int, fi: Any) -> int | DeferredReply:
        opened = self._opened.get(fi.contents.fh)
        if opened is not None:
            self._writer.closing(opened)
        return self._confirm(opened)

    def fsync(self, _inode: int, _data: int, fi: Any) -> int | DeferredReply:
        return self._confirm(self._opened.get(fi.contents.fh))

    def _confirm(self, opened: Opened | None) -> int | DeferredReply:
        if opened is None or self._writer.is_confirmed(opened):
            return 0
        return self._closing.close(opened)

    def fsyncdir(self, inode: int, _data: int, _fi: Any) -> DeferredReply:
        folder, writer = self._inodes.node(inode), self._writer
        return DeferredReply(lambda answer: writer.sync_folder(folder, lambda error: answer(error or 0)))

    def release(self, inode: int, fi: Any) -> int:
        return 0 if self._release(fi.contents.fh) else super().release(inode, fi)

    def _keep(self, opened: Opened) -> int:
        handle = next(self._numbers)
        self._opened[handle] = opened
        return handle

    def _release(self, handle: int) -> bool:
        """Release a handle for writing; return False if `handle` is none."""
        opened = self._opened.pop(handle, None)
        if opened is None:
            return False
        writer = self._writer
        if not writer.release_at_once(opened):
            self._workers.release(lambda: writer.release(opened))
        return True


def _do_nothing() -> None:
    """Do nothing after an answer: the kernel has dropped the name itself."""
