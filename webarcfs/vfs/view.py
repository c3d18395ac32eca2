"""The states of domains that the mount shows, and the thread that follows publications, additions and schemas.

A domain is taken over (domain_states.py) on first access, and again when its refs have moved. One background thread
watches for that: the feed names publications, and the ref of main also moves for additions. A line appears in
`.changes` only after its state was taken over, so that a reader of a commitTag finds that state or a newer one. Safe
for any thread; `start` starts the thread, after every fork.

`.changes` is the archive's feed, up to the publications that this mount has taken over. The view's thread reads new
lines with `pending`, takes over their states, and then shows the lines with `release`; any thread reads. A feed that
`recover` rewrote is another file with the same lines; while the feed is missing, the last one remains, so that its
readers do not see everything again.

`.schemas/` is the archive's folder of schemas for data nodes, `ARCHIVE/xsd` (/Xm-3.3/). It is not in git: a schema is a
plain file that any user may put there, through a mount or not. So the view's thread checks for changes (`Watch`), and
notifies the kernel as for publications. Safe for any thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Protocol

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.schemas import NAME, Stamp
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system.files import OF_READERS, remove_left
from webarcfs.vfs.content import Content
from webarcfs.vfs.domain_states import DomainChange, DomainState, DomainStates
from webarcfs.vfs.node import Attrs, File, Folder, Node, number
from webarcfs.vfs.overlay import CommittedFile, Overlay, is_gone
from webarcfs.vfs.query_answers import Discarded, Queries, Searches

# == changes file =====================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods of a node


@dataclass(frozen=True, slots=True)
class PendingLines:
    """Complete lines of the feed that are not shown yet: their tags, the file, the offset of their end."""

    tags: tuple[CommitTag, ...]
    fd: int
    end: int


class Changes:
    """The file as readers see it. It is also its own content: one for all handles."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._end = 0
        self._seen = (0, 0, 0)
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that readers see."""
        return self._end

    @property
    def mtime(self) -> int:
        """The time of the feed's last growth; 0 without a feed."""
        with self._lock:
            return int(os.fstat(self._fd).st_mtime) if self._fd >= 0 else 0

    @property
    def dear(self) -> bool:
        """Return False: it is open as long as the mount."""
        return False

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the shown lines."""
        with self._lock:
            size = min(size, self._end - offset)
            return os.pread(self._fd, size, offset) if size > 0 else b""

    def close(self) -> None:
        """Do nothing: the file belongs to the mount, not to a handle."""

    def pending(self) -> PendingLines | None:
        """Return the lines that are not shown yet; None without a change. Only the view's thread calls it."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        seen = (status.st_dev, status.st_ino, status.st_size)
        if seen == self._seen:
            return None
        grown = seen[:2] == self._seen[:2] and status.st_size >= self._end
        fd = self._fd if grown else os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._seen = seen
        return _whole_lines(fd, self._end if grown else 0)

    def release(self, pending: PendingLines) -> None:
        """Show these lines. Their states must have been taken over."""
        with self._lock:
            old, self._fd, self._end = self._fd, pending.fd, pending.end
            if old not in (-1, pending.fd):
                os.close(old)


class ChangesFile(File):
    """`.changes`: the feed up to the states that this mount shows. It grows under an open file."""

    attrs_cacheable: ClassVar[bool] = False

    def __init__(self, changes: Changes) -> None:
        self.changes: Final = changes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangesFile) and self.changes == other.changes

    def __hash__(self) -> int:
        return hash((ChangesFile, self.changes))

    @property
    def ino(self) -> int:
        return number("changes")

    def attrs(self) -> Attrs:
        return Attrs(self.kind, self.changes.size, self.changes.mtime, self.ino)

    def open(self) -> Content:
        return self.changes


def _whole_lines(fd: int, start: int) -> PendingLines:
    text = b""
    while piece := os.pread(fd, 1 << 20, start + len(text)):
        text += piece
    whole = text[: text.rfind(b"\n") + 1]
    tags = tuple(tag for line in whole.splitlines() if (tag := _tag(line)))
    return PendingLines(tags, fd, start + len(whole))


def _tag(line: bytes) -> CommitTag | None:
    try:
        return CommitTag.parse(line.decode("utf-8", "replace"))
    except Damaged:
        return None


# == schemas folder ===================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


#: Its name in the mount's root.
SCHEMAS = ".schemas"


class SchemaFolder(Folder):
    """The folder. It shows no files other than schemas, and no folders."""

    attrs_cacheable: ClassVar[bool] = False

    def __init__(self, archive: Archive, drafts: MutableMapping[str, Node]) -> None:
        self.archive: Final = archive
        #: New schemas that are being written through this mount, by name.
        self.drafts: Final = drafts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaFolder) and self.archive == other.archive

    def __hash__(self) -> int:
        return hash((SchemaFolder, self.archive))

    @property
    def path(self) -> Path:
        """The folder in the archive."""
        return self.archive.schemas

    @property
    def ino(self) -> int:
        return number("schemas")

    def attrs(self) -> Attrs:
        try:
            time = int(self.path.stat().st_mtime)
        except OSError:
            time = 0
        return Attrs(self.kind, 0, time, self.ino)

    def names(self) -> Iterator[str]:
        stamps_by_name = stamps(self.path)
        if not stamps_by_name and not self.archive.is_there:
            raise self.archive.missing("schemas")
        return iter(sorted(stamps_by_name.keys() | self.drafts.keys()))

    def lookup(self, name: str) -> Node:
        draft = self.drafts.get(name)
        if draft is not None:
            return draft
        stamp = _stamp(self.path / name) if NAME.fullmatch(name) else None
        if stamp is None:
            raise self.archive.missing(f"there is no schema {name!r}")
        return SchemaFile(self.path / name, stamp)


@dataclass(frozen=True)
class SchemaFile(File):
    """One schema, as it was at its lookup."""

    path: Path
    stamp: Stamp

    @property
    def ino(self) -> int:
        return number("schema", self.path.name, *map(str, self.stamp))

    def attrs(self) -> Attrs:
        time, size, _ = self.stamp
        return Attrs(self.kind, size, time // 10**9, self.ino)

    def open(self) -> Content:
        try:
            return _Opened(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        except FileNotFoundError:
            raise NotFound(f"the schema {self.path.name!r} is gone") from None


class _Opened:
    """An open schema."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def dear(self) -> bool:
        return False

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def close(self) -> None:
        os.close(self._fd)


class Watch:
    """Detects changes in the folder. For one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, Stamp] | None = None

    def changed(self) -> list[str]:
        """Return the names that changed since the last call; none at the first."""
        old, self._seen = self._seen, stamps(self._folder)
        return sorted({name for name, _ in old.items() ^ self._seen.items()}) if old is not None else []


def stamps(folder: Path) -> dict[str, Stamp]:
    """Return the schemas of the folder; none if the folder is missing."""
    try:
        names = [path.name for path in folder.iterdir() if NAME.fullmatch(path.name)]
    except OSError:
        return {}
    return {name: stamp for name in names if (stamp := _stamp(folder / name)) is not None}


def _stamp(path: Path) -> Stamp | None:
    """Return the stamp of a regular file; None for a link, which might lead to files outside."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if stat.S_ISREG(status.st_mode) else None


# == view =============================================================================================================


#: Seconds between two checks of the feed; a publication must show within a second.
FEED_INTERVAL = 0.05
#: Checks of the feed between two checks of the refs of all domains in use (additions add no line to the feed).
REFS_EVERY = 16

_log = logging.getLogger(__name__)


class ViewListener(Protocol):
    """Receives publications from the view's thread, which holds no lock meanwhile."""

    def moved(self, changes: Sequence[DomainChange], tags: Sequence[CommitTag]) -> None:
        """Handle changed states, now in force; the lines of `tags` appear in `.changes` when this returns."""

    def files_superseded(self, state: DomainState, paths: Sequence[str]) -> None:
        """Handle files of the domain whose versions in git differ from those that this mount showed until now."""

    def shown(self) -> None:
        """Handle new lines of `.changes`."""

    def schemas(self, names: Sequence[str]) -> None:
        """Handle changed names in `.schemas`."""


class View:
    """The states that a mount of `archive` shows. `overlay` has the additions of this mount that they lack."""

    def __init__(self, archive: Archive, overlay: Overlay | None = None) -> None:
        self.archive = archive
        self.overlay = overlay if overlay is not None else Overlay()
        self.listener: ViewListener | None = None
        self.changes = Changes(archive.changes)
        self._schemas = Watch(archive.schemas)
        #: Schemas that are being written, by name.
        self.schema_drafts: dict[str, Node] = {}
        #: The answers to conditions.
        self.discarded = Discarded(archive)
        self.queries = Queries(archive, self.discarded)
        self.searches = Searches(archive, self.discarded)
        self._states = DomainStates(archive, self.overlay, self.discarded)
        self._looks = 0
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="view", daemon=True)

    def start(self, listener: ViewListener | None = None) -> None:
        """Show the publications so far, and watch for later ones, which `listener` receives."""
        remove_left(OF_READERS)
        self.refresh()
        self.listener = listener
        self._watcher.start()

    def stop(self) -> None:
        """End the thread; the states stay readable."""
        self._stop.set()
        if self._watcher.is_alive():
            self._watcher.join(timeout=5)
        self.listener = None  # if the thread still waits for a lock: there is no kernel to notify

    def close(self) -> None:
        """Remove what was made for the states; nothing can be read any more."""
        self.discarded.close()

    @property
    def mtime(self) -> int:
        """The time of the archive's last change: that of the folders above the domains."""
        return self.changes.mtime or int(self.archive.format.stat().st_mtime)

    def domains(self) -> Iterator[str]:
        """Return the domains that have been crawled, in order, including those that cannot be read."""
        return self._states.domains()

    def domain(self, name: str) -> DomainState:
        """Return the state of a domain. Raises NotFound, or Damaged when its repository cannot be read."""
        return self._states.domain(name)

    def refresh(self) -> None:
        """Check the archive once. For one thread at a time."""
        pending = self.changes.pending()
        tags = pending.tags if pending else ()
        try:
            with contextlib.ExitStack() as after:
                self._follow({tag.domain for tag in tags} | self._looked(after), tags)
        finally:
            if pending:
                self.changes.release(pending)
                if self.listener is not None:
                    self.listener.shown()

    def _looked(self, after: contextlib.ExitStack) -> set[str]:
        """Every REFS_EVERY-th call: return the domains that moved without a line in the feed; check schemas and packs.

        Exceptions are deferred to `after`, so that new lines of the feed are followed although a check failed.
        """
        self._looks += 1
        moved: set[str] = set()
        looks: Sequence[Callable[[], None]] = ()
        if self._looks % REFS_EVERY == 1:
            looks = (lambda: self._look_at_refs(moved), self._look_at_schemas, self._states.let_go)
        for look in looks:
            try:
                look()
            except Exception as error:
                after.callback(_raise, error)
        return moved

    def _look_at_refs(self, moved: set[str]) -> None:
        # Another mount may have committed this one's additions, in a state that was taken over before we knew.
        moved |= self.overlay.late()
        moved |= self._states.moved()

    def _look_at_schemas(self) -> None:
        schemas = self._schemas.changed()
        if schemas and self.listener is not None:
            self.listener.schemas(schemas)

    def _follow(self, moved: set[str], tags: Sequence[CommitTag]) -> None:
        """Take over the states that moved, those of `tags` among them, and invalidate what changed."""
        committed = [(name, files) for name in moved if (files := self.overlay.committed_files(name))]
        changes = [self._states.renewed(name) for name in moved]
        if self.listener is not None and changes:
            self.listener.moved(changes, tags)
        for name, committed_files in committed:
            self._settle(name, committed_files)
        for change in changes:
            self._forget_empty(change)

    def _forget_empty(self, change: DomainChange) -> None:
        """Forget empty folders of users in ARCs that a crawl replaced: no process can find them any more."""
        old, new = (state.main if state else None for state in (change.old, change.new))
        if change.new is None or new is None or (old is not None and old.message.tag == new.message.tag):
            return
        reader, tree = change.new.reader, new.tree
        self.overlay.forget_empty(change.name, lambda place: reader.arc(tree, place) is not None)

    def _settle(self, name: str, committed: Sequence[CommittedFile]) -> None:
        """Show from git the additions that git had before the state was read."""
        state = self._states.known(name)
        if state is None or state.main is None:
            return
        paths = ((f"{place.arc}/{path}", None if is_gone(entry) else entry) for place, path, entry in committed)
        other = [path for path, entry in paths if state.reader.find(state.main.tree, path) != entry]
        self.overlay.drop(committed)
        if other and self.listener is not None:
            self.listener.files_superseded(state, other)

    def _watch(self) -> None:
        while not self._stop.wait(FEED_INTERVAL):
            try:
                self.refresh()
            except Exception:
                _log.exception("looking for publications failed; it is tried again")


def _raise(error: Exception) -> None:
    raise error
