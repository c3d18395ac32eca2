"""What a mount must answer, in memory: the reference that `tests/mount/test_stateful.py` holds a real mount against.

One domain of ARCs, additions, data nodes and open handles, of one user. Every method says the errno (0: it succeeds)
and what the mount shows afterwards. SEMANTICS.md in a page of Python.
"""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, field

from tests.support import archives

#: Seconds for which the maker of a file may rename it; the model is certain only for less.
CERTAIN = 30.0
#: Seconds in which the mount may learn that the last handle is closed: the kernel tells it after close(2) returned.
SOON = 10.0


@dataclass
class Draft:
    """A file being written; `shown` is what the last close or fsync confirmed.

    Its name means the buffer while a handle is `in_use`: until it is closed as far as a close can tell (one that was
    copied goes on), and again from then on when one is written through.
    """

    arc: Arc
    path: str
    buffer: bytes = b""
    shown: bytes | None = None
    dirty: bool = True
    handles: int = 0
    gone: bool = False
    #: Its maker removed it, or put another file in its place: its handles go on, and nothing is kept.
    removed: bool = False
    in_use: set[int] = field(default_factory=set)
    hidden: bool = False


@dataclass
class Paper:
    """A handle on data.xml: the names that were there when it was opened, and what was appended since."""

    arc: Arc
    taken: set[str]
    nodes: list[tuple[str, str]] = field(default_factory=list)
    unfinished: str = ""
    dirty: bool = False
    refused: int = 0
    path: str = "data.xml"


@dataclass
class Held:
    """A handle that reads: what was there when it was opened, and what its close says."""

    arc: Arc
    path: str
    body: bytes


@dataclass
class Arc:
    """One version of an ARC."""

    name: str
    body: bytes
    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    nodes: list[tuple[str, str]] = field(default_factory=list)
    drafts: dict[str, Draft] = field(default_factory=dict)
    #: Folders that were made through this mount.
    own: set[str] = field(default_factory=set)
    #: Whose name may still be changed: None while it is open, else when it was closed.
    made: dict[str, float | None] = field(default_factory=dict)
    stale: bool = False

    def has(self, path: str) -> bool:
        """Whether a name is taken."""
        return path in self.files or path in self.folders or path in self.drafts or path in RESERVED

    def shown(self) -> dict[str, bytes]:
        """Every addition that is seen, with its content."""
        drafts = {path: draft.buffer for path, draft in self.drafts.items() if not draft.hidden}
        return self.files | drafts


RESERVED = ("data.html", "data.xml", "headers.http")


class Model:
    """The domain."""

    def __init__(self, *, settles: bool = False) -> None:
        self.arcs: dict[str, Arc] = {}
        #: Files are provisional until the mount ends; else they are final when they are closed.
        self.settles = settles

    # -- files -------------------------------------------------------------------------------------------------------

    def place(self, arc: str, path: str) -> int:
        """Whether a name can be looked for: its ARC and folder are there."""
        found = self.arcs.get(arc)
        parent = path.rpartition("/")[0]
        return errno.ENOENT if found is None or (parent and parent not in found.folders) else 0

    def inner(self, arc: str) -> list[str]:
        """ARCs in the folder of an ARC, which is there if any are, whether that is one itself or not."""
        return [name[len(arc) + 1 :] for name in self.arcs if name.startswith(f"{arc}/")]

    def make(self, arc: str, path: str) -> int:
        """Whether a name can be made."""
        if arc not in self.arcs and self.inner(arc) and "/" not in path:
            return errno.EPERM
        if error := self.place(arc, path):
            return error
        if self.arcs[arc].has(path):
            return errno.EEXIST
        return errno.EPERM if path.startswith("data.") else 0

    def create(self, arc: str, path: str) -> tuple[int, Draft | None]:
        """open(O_CREAT | O_EXCL)."""
        if error := self.make(arc, path):
            return error, None
        found = self.arcs[arc]
        draft = found.drafts[path] = Draft(found, path, handles=1)
        found.made[path] = None
        return 0, draft

    def reopen(self, arc: str, path: str) -> tuple[int, Draft | None]:
        """open(O_WRONLY) of what is there."""
        if error := self.place(arc, path):
            return error, None
        found = self.arcs[arc]
        draft = found.drafts.get(path)
        if draft is not None:
            draft.handles += 1
            return 0, draft
        if path in found.folders:
            return errno.EISDIR, None
        if self.settles and path in found.made:
            return 0, self.revived(arc, path)
        return (errno.EPERM if path in found.files else errno.ENOENT), None

    def just_closed(self, arc: str, path: str) -> bool:
        """Whether the last handle was closed so short ago that the mount may not know it yet."""
        closed = self.arcs[arc].made.get(path)
        return not self.settles and closed is not None and time.monotonic() - closed < SOON

    def revived(self, arc: str, path: str) -> Draft:
        """It was open still, or is opened again."""
        found = self.arcs[arc]
        body = found.files[path]
        draft = found.drafts[path] = Draft(found, path, body, body, dirty=False, handles=1)
        found.made[path] = None
        return draft

    def use(self, draft: Draft, handle: int) -> None:
        """A handle is opened, or written through."""
        draft.in_use.add(handle)
        draft.hidden = False

    def write(self, draft: Draft, data: bytes, at: int) -> int:
        """pwrite(2)."""
        if draft.gone and not draft.arc.stale:
            return errno.ESTALE
        if draft.arc.stale:
            draft.dirty = True  # its close says so, too
            return errno.ESTALE
        draft.buffer = draft.buffer[:at].ljust(at, b"\0") + data + draft.buffer[at + len(data) :]
        draft.dirty = True
        return 0

    def truncate(self, draft: Draft, size: int) -> int:
        """ftruncate(2), and O_TRUNC."""
        if draft.gone:
            return errno.ESTALE if size != len(draft.buffer) else 0
        draft.dirty = draft.dirty or size != len(draft.buffer)
        draft.buffer = draft.buffer[:size].ljust(size, b"\0")
        return 0

    def confirm(self, draft: Draft) -> int:
        """fsync, or the flush of a close."""
        if draft.removed:
            return 0
        if draft.dirty and draft.arc.stale:
            return errno.ESTALE
        if draft.dirty:
            draft.shown, draft.dirty = draft.buffer, False
            draft.arc.files[draft.path] = draft.buffer
        draft.hidden = not draft.in_use
        return 0

    def flush(self, draft: Draft, handle: int) -> int:
        """close(2) of a copy of a handle."""
        draft.in_use.discard(handle)
        return self.confirm(draft)

    def close(self, draft: Draft, handle: int) -> int:
        """close(2) of a handle."""
        error = self.flush(draft, handle)
        draft.handles -= 1
        if not draft.handles and not draft.gone and not draft.removed:
            draft.arc.drafts.pop(draft.path, None)
            draft.arc.made[draft.path] = time.monotonic()
        return error

    def became(self, draft: Draft) -> None:
        """A new file was renamed onto data.xml: it is gone, and takes no more."""
        for names in (draft.arc.drafts, draft.arc.files, draft.arc.made):
            names.pop(draft.path, None)  # type: ignore[attr-defined]
        draft.dirty, draft.gone = False, True

    def mkdir(self, arc: str, path: str) -> int:
        """mkdir(2)."""
        if error := self.make(arc, path):
            return error
        found = self.arcs[arc]
        found.folders.add(path)
        found.own.add(path)
        return 0

    def may_rename(self, arc: str, old: str) -> bool | None:
        """Whether it is its maker's still; None: who knows."""
        found = self.arcs.get(arc)
        if found is None or old not in found.made:
            return False
        closed = found.made[old]
        return True if self.settles or closed is None or time.monotonic() - closed < CERTAIN else None

    def rename(self, arc: str, old: str, new: str) -> int:  # noqa: PLR0911 # an answer for each reason
        """rename(2) in an ARC, to a name that is no data.xml."""
        if error := self.place(arc, old) or self.place(arc, new):
            return error
        found = self.arcs[arc]
        if not found.has(old):
            return errno.ENOENT
        if old == new:  # the kernel answers that by itself
            return 0
        if found.has(new) and (old in found.folders) != (new in found.folders):  # and that, too
            return errno.ENOTDIR if old in found.folders else errno.EISDIR
        if old not in found.files and old not in found.drafts:
            return errno.EPERM
        if not self.may_rename(arc, old) or (found.has(new) and not self.settles):
            return errno.EPERM
        if found.has(new):
            return self.rename_onto(found, old, new)
        if new.startswith("data."):
            return errno.EPERM
        self.move(found, old, new)
        return 0

    def rename_onto(self, found: Arc, old: str, new: str) -> int:
        """The same onto a name that is there, by the maker of a file that is provisional."""
        draft = found.drafts.get(old)
        if draft is not None and (draft.dirty or draft.shown is None):
            draft.shown, draft.dirty = draft.buffer, False
            found.files[old] = draft.buffer
        if new in found.made:
            self.remove(found, new)
            self.move(found, old, new)
            return 0
        if new in found.files and found.files[new] == found.files[old]:
            self.remove(found, old)
            return 0
        return errno.EPERM

    def remove(self, found: Arc, path: str) -> None:
        """A provisional file goes; its handles go on."""
        draft = found.drafts.pop(path, None)
        if draft is not None:
            draft.removed = True
        found.files.pop(path, None)
        found.made.pop(path)

    def move(self, found: Arc, old: str, new: str) -> None:
        """A file has another name."""
        if old in found.files:
            found.files[new] = found.files.pop(old)
        if old in found.drafts:
            found.drafts[new] = found.drafts.pop(old)
            found.drafts[new].path = new
        found.made[new] = found.made.pop(old)

    def change(self, arc: str, path: str, how: str) -> int | None:  # noqa: PLR0911 # an answer for each reason
        """unlink(2), rmdir(2), truncate(2) to nothing, chmod(2) or utimensat(2); None: who knows."""
        if error := self.place(arc, path):
            return error
        found = self.arcs[arc]
        if not found.has(path):
            return errno.ENOENT
        folder, draft = path in found.folders, found.drafts.get(path)
        if folder and how in ("unlink", "cut"):  # the kernel says that
            return errno.EISDIR
        if not folder and how == "rmdir":
            return errno.ENOTDIR
        if how in ("chmod", "utime"):
            own = path in found.own if folder else self.may_rename(arc, path)
            return None if own is None else 0 if own else errno.EPERM
        if how == "cut" and draft is not None:
            draft.hidden = False
            return self.truncate(draft, 0)
        return self.change_own(found, path, how) if self.settles else errno.EPERM

    def change_own(self, found: Arc, path: str, how: str) -> int:
        """unlink(2), rmdir(2), or truncate(2) to nothing of what is closed, while it is provisional."""
        if how == "rmdir":
            if path not in found.own:
                return errno.EPERM
            if any(name.startswith(f"{path}/") for name in [*found.files, *found.folders, *found.drafts]):
                return errno.ENOTEMPTY
            found.folders.discard(path)
            found.own.discard(path)
            return 0
        if path not in found.made:
            return errno.EPERM
        if how == "cut":
            found.files[path] = b""
        else:
            self.remove(found, path)
        return 0

    def hold(self, arc: str, path: str) -> tuple[int, Held | None]:
        """open(O_RDONLY) of what is there, unless it is being written and grows."""
        if error := self.place(arc, path):
            return error, None
        found = self.arcs[arc]
        draft = found.drafts.get(path)
        if path in found.folders or (draft is not None and not draft.hidden):
            return 0, None
        body = {"data.html": found.body, "headers.http": archives.HEAD, **found.files}.get(path)
        return (errno.ENOENT, None) if body is None else (0, Held(found, path, body))

    # -- data nodes --------------------------------------------------------------------------------------------------

    def paper(self, arc: str) -> tuple[int, Paper | None]:
        """open(O_APPEND) of data.xml."""
        found = self.arcs.get(arc)
        return (0, Paper(found, {name for name, _ in found.nodes})) if found is not None else (errno.ENOENT, None)

    def append(self, paper: Paper, name: str, text: str, what: str) -> int:
        """write(2) of a node: `whole`, its `begin` or its `end` only, or something `wrong`."""
        if paper.arc.stale:
            paper.dirty = True
            return errno.ESTALE
        if paper.refused:
            return paper.refused
        if what == "end" and not paper.unfinished:
            paper.refused = errno.EINVAL
        elif not paper.unfinished and what != "end":
            if name in paper.taken:
                paper.refused = errno.EEXIST
            paper.taken.add(name)
        if what == "wrong":  # its begin comes first
            paper.refused = paper.refused or errno.EINVAL
        if paper.refused:
            return paper.refused
        paper.dirty = True
        if what == "whole" and not paper.unfinished:
            paper.nodes.append((name, text))
        elif what == "begin" and not paper.unfinished:
            paper.unfinished = name
        return 0

    def finish(self, paper: Paper) -> int:
        """fsync, or the flush of a close."""
        if not paper.dirty:
            return 0
        if paper.refused or paper.unfinished:
            return paper.refused or errno.EINVAL
        return self.add_nodes(paper)

    def add_nodes(self, paper: Paper) -> int:
        """What was appended becomes nodes, all or none."""
        if not paper.nodes:
            paper.dirty = False
            return 0
        if paper.arc.stale:
            return errno.ESTALE
        if {name for name, _ in paper.nodes} & {name for name, _ in paper.arc.nodes}:
            return errno.EEXIST
        paper.arc.nodes += paper.nodes
        paper.nodes, paper.dirty = [], False
        return 0

    # -- what happens to all ---------------------------------------------------------------------------------------

    def crawl(self, pages: dict[str, bytes | None]) -> None:
        """A crawl replaces, adds or removes ARCs."""
        for path, body in pages.items():
            old = self.arcs.pop(path, None)
            if old is not None:
                old.stale = True
            if body is not None:
                self.arcs[path] = Arc(path, body)

    def end(self) -> None:
        """The mount ends, however: what was confirmed stays, what only this mount knew goes."""
        for arc in self.arcs.values():
            arc.drafts.clear()
            arc.made.clear()
            arc.own.clear()
            kept = [path.split("/") for path in arc.files]
            arc.folders = {"/".join(words[:depth]) for words in kept for depth in range(1, len(words))}
