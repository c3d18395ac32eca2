"""The fusepy adapter's operations of a mount that accepts additions; operations.py has those that read.

libfuse calls from any number of its own threads, and the kernel caches nothing that needs invalidation: so a close
simply waits for the journal, where the low-level adapter replies later.
"""

# ruff: noqa: D102 # the methods are fusepy's operations; SEMANTICS.md specifies their answers
from __future__ import annotations

import contextlib
import os
import threading
from typing import Any

from webarcfs.archive.model.errors import NotSupported, WebarcError
from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.fusepy.operations import Handle, Operations, caller
from webarcfs.mount.lifetime.service import Additions
from webarcfs.mount.writing.draft import DraftFile
from webarcfs.mount.writing.open_files import Opened
from webarcfs.mount.writing.writer import Writer
from webarcfs.view.node import Node

#: Flags by which libfuse creates a file for mknod(2); the kernel never sends exactly these.
_MKNOD = os.O_CREAT | os.O_EXCL | os.O_WRONLY
#: Operations that write, by what their arguments are about: an open file, a new or old name, a node.
_OF_HANDLE = frozenset(("write", "flush", "fsync", "release", "truncate"))
_OF_NAME = frozenset(("create", "mkdir", "mknod", "symlink", "link", "unlink", "rmdir", "rename"))
_OF_NODE = frozenset(("open", "truncate", "fsyncdir", "chmod", "chown", "utimens", "setxattr", "removexattr"))


class WritingOperations(Operations):
    """The operations of one mount."""

    def __init__(self, mount: AdapterContext, additions: Additions) -> None:
        super().__init__(mount)
        self._additions = additions
        self._opened: dict[int, Opened] = {}

    @property
    def _writer(self) -> Writer:
        return self._additions.ready()

    def _note_refusal(self, op: str, args: tuple[Any, ...], error: BaseException) -> None:
        opened = self._opened.get(args[-1].fh) if op in _OF_HANDLE and hasattr(args[-1], "fh") else None
        with contextlib.suppress(WebarcError):  # what it is about is no longer there
            if opened is not None:
                self._refusals.note(op, opened.draft.maker.uid, (opened, ""), error)
            elif op in _OF_NAME:
                folder, _, name = args[op == "rename"].rpartition("/")
                self._refusals.note(op, caller().uid, (self._tree.find(folder), name), error)
            elif op in _OF_NODE and args[0] is not None:
                self._refusals.note(op, caller().uid, (self._tree.find(args[0]), ""), error)

    # -- names -------------------------------------------------------------------------------------------------------

    def create(self, path: str, _mode: int, fi: Any) -> int:  # type: ignore[override]
        folder, _slash, name = path.rpartition("/")
        made = fi.flags == _MKNOD  # libfuse closes it at once
        opened, node = (self._writer.make if made else self._writer.create)(self._looked_up(folder), name, caller())
        if made:
            self._writer.confirm(opened)
        return self._keep(opened, node, fi)

    def mkdir(self, path: str, _mode: int) -> None:
        folder, _slash, name = path.rpartition("/")
        self._writer.names.mkdir(self._looked_up(folder), name, caller())

    def rename(self, old: str, new: str) -> None:
        (folder, _, name), (target, _, new_name) = old.rpartition("/"), new.rpartition("/")
        self._writer.names.rename((self._tree.find(folder), name), (self._tree.find(target), new_name), 0, caller())

    def _may_change(self, path: str, *_: Any) -> None:
        self._writer.names.may_change(self._tree.find(path), caller())

    chmod = chown = utimens = _may_change

    def truncate(self, path: str, length: int, fi: Any = None) -> None:
        opened = self._opened.get(fi.fh) if fi is not None else None
        if opened is not None:
            self._writer.truncate(opened, length)
            return
        node = self._draft(self._tree.find(path))
        if not isinstance(node, DraftFile):
            raise node.refusal()
        kept = self._writer.cut(node.draft, length)
        if kept is not None:
            self._writer.release(kept)

    def unlink(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._writer.names.unlink(self._tree.find(folder), name, caller())

    def rmdir(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._writer.names.rmdir(self._tree.find(folder), name, caller())

    def _draft(self, node: Node) -> Node:
        """Return the draft of a version whose maker has it open for writing; else the node itself."""
        return self._writer.files.open_draft(node, caller()) or node

    def setxattr(self, path: str, name: str, *_: Any) -> None:
        node = self._tree.find(path)
        if not name.startswith("user.") or self._writer.names.is_recent(node):
            raise NotSupported(name)
        raise node.refusal()

    removexattr = setxattr

    # -- contents ----------------------------------------------------------------------------------------------------

    def open(self, path: str, fi: Any) -> int:
        if fi.flags & os.O_ACCMODE == os.O_RDONLY and not fi.flags & os.O_TRUNC:
            return super().open(path, fi)
        node = self._looked_up(path)
        if fi.flags & os.O_ACCMODE == os.O_RDONLY:
            raise node.refusal()
        node = self._draft(node)
        return self._keep(self._writer.open(node, fi.flags, caller()), node, fi)

    def read(self, path: str, size: int, offset: int, fi: Any) -> bytes:
        opened = self._opened.get(fi.fh)
        return opened.draft.read(offset, size) if opened else super().read(path, size, offset, fi)

    def write(self, _path: str, data: bytes, offset: int, fi: Any) -> int:
        # The kernel computes its own offset from the size that it knows, which other writers may have changed since.
        opened = self._opened[fi.fh]
        written = self._writer.write(opened, data, None if fi.flags & os.O_APPEND else offset)
        if fi.flags & os.O_DSYNC:  # the flags of this write; O_SYNC includes it
            self._writer.confirm(opened)
        return written

    def flush(self, path: str, fi: Any) -> int:
        opened = self._opened.get(fi.fh)
        if opened is not None:
            self._writer.closing(opened)
        return self.fsync(path, 0, fi)

    def fsync(self, _path: str, _data: int, fi: Any) -> int:
        opened = self._opened.get(fi.fh)
        if opened is not None and not self._writer.is_confirmed(opened):
            self._writer.confirm(opened)
        return 0

    def fsyncdir(self, path: str, _data: int, fh: int) -> int:
        done = threading.Event()
        failures: list[BaseException] = []

        def finish(error: BaseException | None) -> None:
            failures.extend([error] if error else [])
            done.set()

        handle = self._handles.get(fh)
        self._writer.sync_folder(handle.node if handle else self._tree.find(path), finish)
        done.wait()
        if failures:
            raise failures[0]
        return 0

    def release(self, path: str, fi: Any) -> int:
        opened = self._opened.pop(fi.fh, None)
        if opened is None:
            return super().release(path, fi)
        del self._handles[fi.fh]
        self._writer.release(opened)
        return 0

    def _keep(self, opened: Opened, node: Any, fi: Any) -> int:
        fi.fh = self._open(Handle(node))
        self._opened[fi.fh] = opened
        fi.direct_io = 1
        return 0
