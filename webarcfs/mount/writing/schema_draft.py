"""New schemas, written through `.schemas/`: a file there must be a valid schema at its close, or it is discarded.

They are no additions of an ARC, and bypass the journal: a schema is a plain file of the archive. Safe for any thread;
`store` waits for the disk, so the threads that call it take no requests.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, MutableMapping
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import validation_log
from webarcfs.archive.document.schemas import LARGEST, NAME, Schemas
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.errors import Exists, InvalidDocument, NotPermitted
from webarcfs.archive.system.fsync import sync_folder
from webarcfs.mount.writing.draft import Draft
from webarcfs.view.caller import author
from webarcfs.view.node import Node
from webarcfs.view.state.ownership import Ownership
from webarcfs.view.tree.schemas_folder import SCHEMAS, SchemaFolder


class SchemaDraft(Draft):
    """A schema being written. `folder` shows it under its name from the start."""

    def __init__(self, folder: SchemaFolder, name: str, maker: Ownership, new_file: Callable[[], int]) -> None:
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
            body = self.read(0, LARGEST + 1)
            schemas.check(self.path, body)
            _put(self.folder.path, self.path, body)
            self._stored, self.dirty = True, False
        self.hide()

    def refused(self, archive: Archive, error: BaseException) -> None:
        """Log an error of the writer's (/Xm-4/)."""
        if isinstance(error, InvalidDocument):
            who = author(self.maker.uid)
            validation_log.refused(archive, f"{who.name} <{who.mail}>", f"/{SCHEMAS}/{self.path}", error)


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
