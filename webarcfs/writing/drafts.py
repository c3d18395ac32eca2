"""The files that are being written through one mount: their bytes, their handles, and what their names mean meanwhile.

A draft has its bytes in an unnamed file on the journal's disk. Every process on the mount sees it under its name from
the start, as on any file system. A close or fsync confirms its bytes as a version of the file, and the draft continues
as long as a handle is open (dup, fork, mmap). Safe for any thread: its lock is held while bytes change or are written
to the journal, and never during a notification of the kernel.

A close cannot know whether it is the last one, so a draft knows which of its handles were used since they were closed.
While there is one, the name means the draft; else the version that was confirmed last, until a handle is used after
all.

The maker of a provisional file may open it again: it becomes a draft once more, with the bytes that were confirmed
last. The kernel looks the name up before it opens the draft (it writes to one inode of a file), so a handle of the
mount's own keeps the draft until then. No method of the table of open files waits for the disk's confirmation; it is
safe for any thread.

A writer of data.xml gets a copy of the document; its changes there are private (/Xm-3/). Its close turns them into data
nodes (confirmation.py). Errors that a write can detect fail the write: shells ignore the result of close.

A new schema, written through `.schemas/`, must be valid at its close, or it is discarded. It is no addition of an ARC,
and bypasses the journal: a schema is a plain file of the archive. Safe for any thread; `store` waits for the disk, so
the threads that call it take no requests.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.additions.journal import ProvisionalJournal, StoredBody
from webarcfs.archive.additions.journal_log import INLINE, FileKey
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_nodes, schemas
from webarcfs.archive.document.data_xml import LARGEST
from webarcfs.archive.document.schemas import LARGEST_SCHEMA, NAME, Schemas
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import (
    Exists,
    InvalidDocument,
    LookAgain,
    NotFound,
    NotPermitted,
    NotSupported,
    Replaced,
    WebarcError,
)
from webarcfs.archive.system.files import blob_hash, blob_id, sync_folder, write_all_at
from webarcfs.vfs.content import Content
from webarcfs.vfs.folders import StoredFile, provisional_xattrs, version_ino
from webarcfs.vfs.node import Attrs, Caller, File, Maker, Node, author, number, uid_of
from webarcfs.vfs.overlay import GRACE, OPEN, Overlay
from webarcfs.vfs.view import SCHEMAS, SchemaFolder

# == draft ============================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods of a node


_PIECE = 1 << 20
_numbers = itertools.count(1)

#: Bytes of a hole that are accepted without a check of the free space.
LARGE_HOLE = 1 << 30
#: fallocate(2): reserve space beyond the end without making the file longer.
KEEP_SIZE = 1


class Draft:
    """A new file of `maker` at `path` in the ARC `place`, with one open handle; `new_file` makes unnamed files."""

    def __init__(self, place: ArcVersion, path: str, maker: Maker, mtime: int, new_file: Callable[[], int]) -> None:
        self.place = place
        self.path = path
        self.maker = maker
        self.mtime = mtime
        self.number = next(_numbers)
        #: Its st_ino: that of the version that its maker opened again; programs compare it (vim). 0: one of its own.
        self.ino = 0
        self.lock = threading.RLock()
        #: Held for moments only: no look at the size waits for the disk, nor finds the descriptor of another file.
        self._descriptor = threading.RLock()
        self.handles = 1
        #: Whether it differs from what was last confirmed; also True for a new, empty file.
        self.dirty = True
        #: The blob confirmed last, and its size.
        self.blob = ""
        self.blob_size = 0
        #: All confirmed blobs: git may have any of them by now.
        self.blobs: set[str] = set()
        #: Whether it was renamed onto data.xml, and is no longer a file.
        self.gone = False
        #: Whether it is provisional when it is closed, and not final.
        self.provisional = False
        #: Whether its maker removed it: its handles continue, and nothing of it is kept.
        self.removed = False
        #: Whether its name means the draft, and not the version confirmed last: from the start until the close of all
        #: its handles, as far as a close can know, and again when one of them is used after that (dup, mmap).
        self.shown = True
        #: The handles used since their last close (a close cannot know whether it is the last one).
        self.in_use: set[object] = set()
        #: Whether confirming failed since the last write.
        self.failed = False
        self._new_file = new_file
        self._fd = new_file()
        self._users = 1  # including readers
        self._lent = False
        self._size = 0
        self._fault: OSError | None = None

    def take_over(self, blob: str, body: StoredBody) -> None:
        """Begin with the bytes of the version that was confirmed last, whose name it does not have yet."""
        if body.data is not None:
            write_all_at(self._fd, body.data, 0)
        else:
            os.dup2(body.fd, self._fd, inheritable=False)
            self._lent = True
        self.blob, self.blob_size, self.blobs = blob, body.size, {blob}
        self.dirty = self.shown = False

    @property
    def has_name(self) -> bool:
        """Whether it is a file of the ARC still."""
        return not (self.gone or self.removed)

    @property
    def is_open(self) -> bool:
        """Whether a handle is open, for writing or reading."""
        return self._users > 0

    @property
    def size(self) -> int:
        with self._descriptor:
            return os.fstat(self._fd).st_size if self._users else self._size

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def write(self, data: bytes, offset: int | None) -> int:
        """Write all of `data` at `offset`, or at the end. Raises OSError."""
        with self.lock:
            self._change()
            at = self.size if offset is None else offset
            self._check_room(at, LARGE_HOLE)
            try:
                write_all_at(self._fd, data, at)
            except OSError as error:
                if error.errno != errno.EFBIG:  # an EFBIG wrote nothing: the content is intact
                    self._fault = error
                raise
        return len(data)

    def truncate(self, size: int) -> None:
        with self.lock:
            if size != self.size:
                self._check_room(size, LARGE_HOLE)
                self._change(keep=size)
                os.ftruncate(self._fd, size)
            if size == 0:
                self._fault = None

    def allocate(self, mode: int, offset: int, length: int) -> None:
        """Reserve space (fallocate(2)). Raises OSError, and NotSupported for any other mode."""
        if mode not in (0, KEEP_SIZE):
            raise NotSupported(f"fallocate of mode {mode}")
        if mode == 0:
            with self.lock:
                self._check_room(offset + length, 0)
                self._change()
                size = self.size
                try:
                    os.posix_fallocate(self._fd, offset, length)
                except OSError:
                    os.ftruncate(self._fd, size)  # the disk keeps what it reserved before the failure
                    raise

    def body(self) -> tuple[str, StoredBody]:
        """Return the current blob and its bytes, which no longer change. The caller holds the lock.

        Raises the error of a failed write: no user can remove or mend a file that was stored in part.
        """
        if self._fault is not None:
            raise self._fault.with_traceback(None)
        size = self.size
        if size <= INLINE:  # the journal stores the bytes, and not the file
            data = os.pread(self._fd, size, 0)
            return blob_id(data), StoredBody(len(data), data)
        digest = blob_hash(size)
        for at in range(0, size, _PIECE):
            digest.update(os.pread(self._fd, _PIECE, at))
        self._lent = True
        return digest.hexdigest(), StoredBody(size, fd=self._fd)

    def hold(self) -> None:
        """Add a user. Raises LookAgain when its name means a version by now: it is closed for good, or is data.xml."""
        with self.lock:
            gone = self._why_gone()
            if gone:
                raise LookAgain(gone)
            self._users += 1

    def let_go(self) -> None:
        """Remove a user; the last one closes the file."""
        with self.lock, self._descriptor:
            self._size = self.size
            self._users -= 1
            if not self._users:
                os.close(self._fd)

    def _check_there(self) -> None:
        gone = self._why_gone()
        if gone:
            raise Replaced(gone)

    def _why_gone(self) -> str:
        """Return why it is no draft any more; empty while it is one."""
        if not self._users:  # its descriptor may be another file's (truncate(2) by way of an O_PATH descriptor)
            return f"{self.path} is closed"
        return f"{self.path} was renamed onto data.xml" if self.gone else ""

    def _check_room(self, end: int, unasked: int) -> None:
        """Raise EFBIG or ENOSPC if the disk has no room up to `end` and more than `unasked` bytes are new.

        Git stores no holes, and hashes all their bytes. A disk fills up before it refuses a reservation as too large.
        """
        more = end - self.size
        if more > unasked:
            disk = os.fstatvfs(self._fd)
            if end > disk.f_blocks * disk.f_frsize:
                raise OSError(errno.EFBIG, "the file would be larger than the journal's disk")
            if more > disk.f_bavail * disk.f_frsize:
                raise OSError(errno.ENOSPC, "the file would need more than the room on the journal's disk")

    def _change(self, keep: int | None = None) -> None:
        """Prepare for a change; with `keep`, only so many bytes are needed."""
        self._check_there()
        self.dirty, self.failed = True, False
        if self._lent:  # the journal has this file now: continue with a copy
            self._copy(self.size if keep is None else min(keep, self.size))

    def _copy(self, size: int) -> None:
        copy = self._new_file()
        try:
            at = 0
            while at < size:
                at += os.copy_file_range(self._fd, copy, size - at, at, at)
            os.dup2(copy, self._fd, inheritable=False)
        finally:
            os.close(copy)
        self._lent = False


#: The files open for writing: the ARC, the path in it, the draft.
Drafts = dict[tuple[ArcVersion, str], Draft]


@dataclass(frozen=True)
class DraftFile(File):
    """The node of a draft."""

    draft: Draft
    attrs_cacheable = False

    @property
    def is_open(self) -> bool:
        return self.draft.is_open

    @property
    def ino(self) -> int:
        return number("draft", str(os.getpid()), str(self.draft.number))

    def attrs(self) -> Attrs:
        return Attrs(
            self.kind, self.draft.size, self.draft.mtime, self.draft.ino or self.ino, 1, uid_of(self.draft.maker), True
        )

    def xattrs(self) -> Mapping[str, bytes]:
        return provisional_xattrs(OPEN if self.draft.provisional and self.draft.has_name else None)

    def open(self) -> Content:
        self.draft.hold()
        return DraftReading(self.draft)


@dataclass(frozen=True, slots=True)
class DraftReading:
    """The content of a draft for a reader, who sees it grow."""

    draft: Draft
    dear = False

    def read(self, offset: int, size: int) -> bytes:
        return self.draft.read(offset, size)

    def close(self) -> None:
        self.draft.let_go()


# == document buffer ==================================================================================================


class DocumentBuffer:
    """The private buffer of one handle, with the methods of a draft."""

    path = DATA_XML
    #: It is never confirmed as a file.
    blob = ""

    def __init__(self, place: ArcVersion, old: bytes, maker: Maker, *, rewriting: bool) -> None:
        self.place = place
        self.maker = maker
        self.old = old
        #: The buffer as it was last confirmed.
        self.seen = b""
        self.lock = threading.RLock()
        self.handles = 1
        self.dirty = False
        self.failed = False
        self._bytes = bytearray() if rewriting else bytearray(old)
        # Data written in order are checked at once.
        self._judge: data_nodes.IncrementalCheck | None = data_nodes.IncrementalCheck(old, rewriting=rewriting)
        self._refused: WebarcError | None = None

    @property
    def size(self) -> int:
        """Bytes in the buffer."""
        return len(self._bytes)

    def read(self, offset: int, size: int) -> bytes:
        """Return the writer's view of the document."""
        return bytes(self._bytes[offset : offset + size])

    def write(self, data: bytes, offset: int | None) -> int:
        """Write at `offset`, or at the end. Raises the refusal as early as it is certain."""
        with self.lock:
            at = len(self._bytes) if offset is None else offset
            _check_size(at + len(data))
            if self._judge is not None and at == len(self._bytes):
                try:
                    self._judge.feed(data)
                except WebarcError as error:
                    self._refused = error
                    raise
            else:
                self._judge = None
            self.dirty, self.failed = True, False
            self._bytes.extend(bytes(max(0, at - len(self._bytes))))
            self._bytes[at : at + len(data)] = data
        return len(data)

    def truncate(self, size: int) -> None:
        """Cut the buffer, or extend it with NULs. Raises InvalidDocument when it is too large."""
        with self.lock:
            _check_size(size)
            if size != len(self._bytes):
                self._judge = data_nodes.IncrementalCheck(self.old, rewriting=True) if size == 0 else None
                self.dirty, self.failed = size > 0, False
                del self._bytes[size:]
                self._bytes.extend(bytes(size - len(self._bytes)))

    def allocate(self, _mode: int, _offset: int, _length: int) -> None:
        """Raise NotSupported: a document has no space to reserve."""
        raise NotSupported("no space is reserved for a document")

    def hold(self) -> None:
        """Do nothing: a buffer needs no count of its users."""

    def let_go(self) -> None:
        """Do nothing: a buffer needs no count of its users."""

    def written(self) -> bytes:
        """Return the document as written. Raises the refusal of a write."""
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        return bytes(self._bytes)


def whole(file: File) -> bytes:
    """Return the content of a file that becomes, or is, a document. Raises InvalidDocument when it is too large."""
    _check_size(file.attrs().size)
    content = file.open()
    try:
        return content.read(0, LARGEST)
    finally:
        content.close()


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise InvalidDocument(f"a document of {size} bytes; at most {LARGEST} are possible")


# == schema draft =====================================================================================================


class SchemaDraft(Draft):
    """A schema being written. `folder` shows it under its name from the start."""

    def __init__(self, folder: SchemaFolder, name: str, maker: Maker, new_file: Callable[[], int]) -> None:
        if not NAME.fullmatch(name):
            raise InvalidDocument(f"{name!r} is no name for a schema; it is called <element>.xsd")
        super().__init__(ArcVersion("", SCHEMAS, ""), name, maker, folder.attrs().mtime, new_file)
        self.folder = folder
        self.shown = False  # not in the overlay: the folder shows it
        self._stored = False
        self._node: Node | None = None

    def show(self, node: Node) -> None:
        """Show the draft in the listing. Raises Exists."""
        if self.drafts.setdefault(self.path, node) is not node:
            raise Exists(f"{self.path!r} is there")
        self._node = node

    def hide(self) -> None:
        """Remove the draft from the listing, unless another draft has taken its name."""
        if self._node is not None and self.drafts.get(self.path) is self._node:
            del self.drafts[self.path]

    @property
    def drafts(self) -> MutableMapping[str, Node]:
        """All schemas being written, by name."""
        return self.folder.drafts

    def store(self, schemas: Schemas) -> None:
        """Store it in the folder, for good. Raises InvalidDocument, Exists, NotPermitted, OSError."""
        with self.lock:
            if self._stored:
                raise NotPermitted(f"{self.path} is stored; a schema is never changed")
            body = self.read(0, LARGEST_SCHEMA + 1)
            schemas.check(self.path, body)
            _put(self.folder.path, self.path, body)
            self._stored, self.dirty = True, False
        self.hide()

    def refused(self, archive: Archive, error: BaseException) -> None:
        """Log an error of the writer's (/Xm-4/)."""
        if isinstance(error, InvalidDocument):
            who = author(self.maker)
            schemas.refused(archive, f"{who.name} <{who.mail}>", f"/{SCHEMAS}/{self.path}", error)


def _put(folder: Path, name: str, body: bytes) -> None:
    """Store a new file, synced, completely or not at all."""
    new = folder / f".new-{os.getpid()}-{name}"
    try:
        with new.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.link(new, folder / name)
    except FileExistsError:
        raise Exists(f"the schema {name!r} is there") from None
    finally:
        with contextlib.suppress(OSError):
            new.unlink()
    sync_folder(folder)


# == open files =======================================================================================================


#: Files up to this size, in bytes, are released on the request's thread.
LITTLE = 1 << 20
#: Seconds for which a draft is kept for an open that the kernel should send at once.
KEPT = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A handle for writing. `direct`: the kernel may not cache its pages. `append`: writes ignore the offset.

    Each is distinct, even if two belong to the same file.
    """

    draft: Draft | DocumentBuffer
    direct: bool = False
    append: bool = False

    @property
    def is_dear(self) -> bool:
        """Whether confirming it may take long, and no other close should wait for it."""
        return isinstance(self.draft, SchemaDraft) or self.draft.size > LITTLE


class OpenFiles:
    """The drafts of one mount, by name."""

    def __init__(self, overlay: Overlay, provisional: ProvisionalJournal | None) -> None:
        self.drafts: Drafts = {}
        self._overlay = overlay
        self._provisional = provisional
        self._reviving = threading.Lock()
        #: Handles of our own, and until when they are kept (monotonic).
        self._kept: dict[Draft, tuple[Opened, float]] = {}

    def of(self, node: Node) -> Draft | None:
        """Return the draft of a version that is still open."""
        if not isinstance(node, StoredFile) or node.place is None:
            return None
        return self.drafts.get((node.place, node.inner))

    def is_open(self, node: Node) -> bool:
        """Return whether a version belongs to a file that is still open: its name may mean the draft again."""
        return bool(self.drafts) and self.of(node) is not None

    def open_draft(self, node: Node, caller: Caller) -> DraftFile | None:
        """Return the draft of a file that its maker has open or may open again, and show it under its name; or None.

        `node` is a version, or a draft that is closed by now. Raises OSError.
        """
        match node:
            case StoredFile(place=ArcVersion() as place):
                key, mtime = (place, node.inner), node.version.mtime
            case DraftFile() if node.draft.has_name and not isinstance(node.draft, SchemaDraft):
                key, mtime = (node.draft.place, node.draft.path), node.draft.mtime
            case _:
                return None
        draft = self.drafts.get(key)
        if draft is None or (draft.maker == caller.maker and not self._hold(draft)):
            with self._reviving:
                draft = self.drafts.get(key) or self._revived(key, mtime, caller)
        if draft is None or draft.maker != caller.maker:
            return None
        with draft.lock:
            self.show(draft)
        return DraftFile(draft)

    def _hold(self, draft: Draft) -> bool:
        """Keep a draft: its last handle may be released before the kernel opens it. Return False if it is over."""
        with draft.lock:
            if self.drafts.get((draft.place, draft.path)) is not draft:
                return False
            if draft not in self._kept:
                draft.hold()
                draft.handles += 1
                self._kept[draft] = Opened(draft), time.monotonic() + KEPT
            return True

    def _revived(self, key: FileKey, mtime: int, caller: Caller) -> Draft | None:
        """Make a draft of a provisional file of the caller's."""
        place, path = key
        if self._provisional is None or not self._overlay.makers.reopened(place, path, caller.maker):
            return None
        try:
            state = self._provisional.state(key)
            if state is None:
                raise NotFound(f"{path} is not in the journal")
            draft = Draft(place, path, caller.maker, mtime, self._provisional.draft)
            with self._provisional.body(key) as body:
                draft.take_over(state.blob, body)
            draft.provisional = True
            draft.ino = version_ino(place.domain, f"{place.arc}/{path}", state.blob, mtime)
        except BaseException:
            self._overlay.makers.closed(place, path)
            raise
        self.drafts[key] = draft
        self._kept[draft] = Opened(draft), time.monotonic() + KEPT
        return draft

    def keep(self, draft: Draft) -> None:
        """Keep a draft open that mknod(2) made, where a closed file is final: its maker may open it for a while."""
        draft.hold()
        with draft.lock:
            draft.handles += 1
        self._kept[draft] = Opened(draft), time.monotonic() + GRACE

    def kept(self, draft: Draft) -> Opened | None:
        """Take our own handle of a draft; the caller releases it."""
        kept = self._kept.pop(draft, None) if self._kept else None
        return kept[0] if kept is not None else None

    def kept_for_nothing(self) -> list[Opened]:
        """Take our own handles whose time is over; the caller releases them."""
        now = time.monotonic()
        over = [draft for draft, (_, until) in list(self._kept.items()) if until < now]
        return [opened for draft in over if (opened := self.kept(draft)) is not None]

    def show(self, draft: Draft) -> None:
        """Make the name of a draft mean the draft, and not the version confirmed last. Under its lock."""
        if not draft.shown and draft.blob and draft.has_name:
            self._overlay.shown(draft.place, draft.path, DraftFile(draft))
            draft.shown = True

    def hide(self, draft: Draft) -> bool:
        """Make the name of a draft mean the version confirmed last; return whether that changed. Under its lock."""
        if not draft.shown or not draft.blob or not draft.has_name:
            return False
        self._overlay.closed(draft.place, draft.path, DraftFile(draft))
        draft.shown = False
        return True

    def closed(self, draft: Draft) -> bool:
        """Note that the last handle of a draft was closed; return whether its name means another version now."""
        if draft.removed or self.drafts.get((draft.place, draft.path), draft) is not draft:  # a successor has the name
            return False
        with draft.lock:
            if draft.handles:  # it was opened meanwhile
                return False
            hidden = self.hide(draft)
            # Before it is no draft any more: whoever finds none opens it again, if it is closed.
            self._overlay.makers.closed(draft.place, draft.path, is_empty=not draft.blob_size)
            self.drafts.pop((draft.place, draft.path), None)
        return hidden
