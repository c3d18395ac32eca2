"""An archive that a server reads by a view, and writes to, without a mount.

What is added shows here at once, and in mounts and other servers as soon as it is committed. A journal belongs to a
process, and names are claimed across all of them, so any number of mounts and servers may add at once. A file is final
as soon as it is kept: nobody changes it afterwards. When `Upload.keep` has returned, no crash loses it.

For any thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Exists, NotADirectory, NotFound, Replaced
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.vfs.folders import Arc
from webarcfs.vfs.node import Caller, Folder
from webarcfs.vfs.root import Tree
from webarcfs.vfs.view import View
from webarcfs.writing.drafts import Opened
from webarcfs.writing.service import Additions
from webarcfs.writing.writer import Writer

#: A folder of an ARC: the version of the ARC, and the path in it.
_FolderKey = tuple[ArcVersion, str]


class ArchiveWriter:
    """An archive to read and to write to. Raises SettingsError for an invalid webarc.toml."""

    def __init__(self, archive: Archive) -> None:
        self.view = View(archive)
        self.tree = Tree(self.view)
        self._additions = Additions(self.view, final_at_once=True)

    @property
    def notes(self) -> list[str]:
        """What whoever starts the server must know, a line each; nothing while all is well."""
        return self._additions.notes

    def start(self) -> None:
        """Commit what dead processes left, and accept additions; follow publications. After the last fork.

        Where nothing can be written, `notes` says why, and what is there can be read.
        """
        self._additions.start()
        self.view.start()

    def stop(self) -> list[str]:
        """Commit the rest, and end; return what is left outside of git, a line each."""
        self._additions.stop()
        self.view.stop()
        self.view.close()
        return self._additions.remains

    def current(self, tag: CommitTag, path: str) -> Arc:
        """Return the folder of a document (`/<domain>/…`) that has additions, if it is still what `tag` has.

        Raises NotFound for a document that the snapshot does not have, Stale if a crawl replaced or removed it since.
        """
        below = path.removeprefix(f"/{tag.domain}/")
        stored = self._arc(f"/.snapshots/{tag}/{below}")
        try:
            arc = self._arc(f"/{tag.domain}/{below}")
        except (NotFound, NotADirectory):
            raise Replaced(f"{path} was removed by a crawl") from None
        if arc.place is None or stored.dates is None:
            raise arc.refusal()
        if arc.place.version != stored.dates.crawl:
            raise Replaced(f"{path} was replaced by a crawl; it is of {arc.place.version} now")
        return arc

    def _arc(self, path: str) -> Arc:
        node = self.tree.find(path)
        if not isinstance(node, Arc):
            raise NotFound(f"there is no document {path}")
        return node

    def upload(self, tag: CommitTag, path: str, name: str, caller: Caller) -> Upload:
        """Begin a new file of a document; `name` may be in folders, which are made (`more/notes.txt`).

        Nobody else can take the name here until the upload ends. Raises Exists, Stale, NotPermitted, NotFound, ReadOnly
        where nothing can be written, OSError for a full disk, and the errors of `arc_paths.check_name`.
        """
        writer = self._additions.ready()
        folder: Folder = self.current(tag, path)
        *above, last = name.split("/")
        made: list[_FolderKey] = []
        try:
            for part in above:
                folder = self._folder(writer, folder, part, caller, made)
            opened, _ = writer.create(folder, last, caller)
        except BaseException:
            self._remove(made)
            raise
        return Upload(writer, opened, lambda: self._remove(made))

    def _folder(self, writer: Writer, folder: Folder, name: str, caller: Caller, made: list[_FolderKey]) -> Folder:
        """Return a folder in an ARC, which is made if it is not there."""
        try:
            node = self.tree.child(folder, name)
        except NotFound:
            place, path = writer.names.free(folder, name)
            try:
                writer.names.mkdir(folder, name, caller)
                made.insert(0, (place, path))
            except Exists:  # another upload made it meanwhile
                pass
            node = self.tree.child(folder, name)
        if not isinstance(node, Folder):
            raise Exists(f"{name!r} is a file")
        return node

    def _remove(self, made: list[_FolderKey]) -> None:
        """Remove folders that are empty again."""
        for place, path in made:
            self.view.overlay.remove_folder(place, path)

    def add_node(self, tag: CommitTag, path: str, element: bytes, caller: Caller) -> None:
        """Add a data node to a document: an element as XML.

        Raises Exists, InvalidDocument, Stale, NotPermitted, NotFound, ReadOnly, OSError.
        """
        writer = self._additions.ready()
        document = self.tree.child(self.current(tag, path), DATA_XML)
        upload = Upload(writer, writer.open(document, os.O_WRONLY | os.O_APPEND, caller))
        with upload:
            upload.write(element)
            upload.keep()


class Upload:
    """A new file while it comes. Nothing of it stays unless it is kept. One thread at a time uses it."""

    def __init__(self, writer: Writer, opened: Opened, undo: Callable[[], None] = lambda: None) -> None:
        self._writer = writer
        self._opened = opened
        self._undo = undo
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def write(self, data: bytes) -> None:
        """Append bytes. Raises Stale as soon as the document is known to be replaced, OSError."""
        self._writer.write(self._opened, data, None)

    def keep(self) -> str:
        """Make it durable and final; return the id of its content. Raises Stale, Exists, InvalidDocument, OSError.

        After an error nothing of it stays.
        """
        self._writer.closing(self._opened)
        try:
            self._writer.confirm(self._opened)
        except BaseException:
            self.discard()
            raise
        self._is_over = True
        self._writer.release(self._opened)
        return self._opened.draft.blob

    def discard(self) -> None:
        """Give it up: its name is free. Does nothing if it was kept."""
        if self._is_over:
            return
        self._is_over = True
        self._writer.discard(self._opened)
        self._undo()
