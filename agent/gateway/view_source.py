"""What the API's handlers ask at the gateway: all that staff see, with what was added here a moment ago.

Documents of the newest snapshot are read by the view of the `ArchiveWriter`, which shows its own additions at once.
All else is read from the repositories and indexes. A file that is still being sent is not there.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self
from xml.etree.ElementTree import Element

from agent.gateway.askers import Asker, Askers
from webarcfs.access.gate import Gate, StaffGate
from webarcfs.api.api_source import ClientSource, FileBody
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_xml import data_node
from webarcfs.archive.model.arc_paths import DATA_XML, is_reserved
from webarcfs.archive.model.errors import NotFound, TokenRefused
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import clocks
from webarcfs.client.source import ArcEntry, ArcListing
from webarcfs.vfs.content import Content
from webarcfs.vfs.folders import AddedFolder, Arc, StoredFile, StoredFolder
from webarcfs.vfs.node import File, Node
from webarcfs.web.ranges import body_in_pieces
from webarcfs.writing.archive_writer import ArchiveWriter
from webarcfs.writing.drafts import DraftFile

#: What a server can do of what scopes allow beyond reading.
_ABILITIES: Final = (Scope.ADD, Scope.MIRROR)
_PIECE: Final = 1 << 18


class GatewaySource(ClientSource):
    """The archive for one person; for any thread. `of` gives it to another one."""

    def __init__(self, archive: Archive, writer: ArchiveWriter, askers: Askers) -> None:
        super().__init__(archive, None)
        self._writer = writer
        self._askers = askers
        self._asker: Asker | None = None

    def of(self, asker: Asker) -> Self:
        """Return it for whoever asks."""
        source = copy.copy(self)
        source._asker = asker
        return source

    def _gate(self) -> Gate:
        return StaffGate(self._archive)

    @property
    def person(self) -> str:
        """The name of whoever asks."""
        return self._asker.person.name if self._asker is not None else ""

    def abilities(self) -> list[str]:
        """Return what whoever asks may do here."""
        scopes = self._asker.scopes if self._asker is not None else frozenset()
        return [*super().abilities(), *(str(scope) for scope in _ABILITIES if scope in scopes)]

    def shown(self, tags: Iterable[CommitTag]) -> set[CommitTag]:
        """Return those of some snapshots that are shown now. Raises TokenRefused: a listener may be here for days."""
        if self._asker is not None and not self._askers.still_holds(self._asker, Scope.READ):
            raise TokenRefused("the right to read has ended")
        return super().shown(tags)

    # -- catalogue -------------------------------------------------------------------------------------------------

    def record(self, record_id: str) -> Record:
        """Return a record, whatever its state, unless it is discarded."""
        record, _ = self._catalogue.read(record_id)
        if record.state is RecordState.DISCARDED:
            raise NotFound(f"{record_id} is discarded")
        return record

    def publication(self, name: str) -> dict[str, object]:
        """Return what a publication is, with the number of its records in each year."""
        years: dict[int, int] = {}
        for record in self.records(name):
            clocks.check()
            year = int(record.id[:4])
            years[year] = years.get(year, 0) + 1
        if not years:
            raise NotFound(f"there is no publication {name!r}")
        years = {year: years.get(year, 0) for year in range(min(years), max(years) + 1)}
        return {"name": name, "description": self._description(name), "records": sum(years.values()), "years": years}

    # -- documents -------------------------------------------------------------------------------------------------

    def arc(self, tag: CommitTag, path: str) -> ArcListing:
        """Return a document with its names, those of a moment ago among them."""
        listing = super().arc(tag, path)
        arc = self._growing(tag, path)
        if arc is None:
            return listing
        entries = tuple(entry for name in arc.names() if (entry := _entry(arc, name)) is not None)
        is_as_in_git = {(entry.name, entry.blob) for entry in entries} == {
            (entry.name, entry.blob) for entry in listing.entries
        }
        return ArcListing(listing.document, listing.tree if is_as_in_git else _digest(arc), entries)

    def file(self, tag: CommitTag, path: str, name: str) -> FileBody:
        """Return a file of a document."""
        arc = self._growing(tag, path) if name == DATA_XML or not is_reserved(name) else None
        if arc is None:
            return super().file(tag, path, name)
        node: Node = arc
        for part in name.split("/"):
            node = self._writer.tree.child(node, part)
        blob = _blob(node)
        if not isinstance(node, File) or not blob:
            raise NotFound(f"{path} has no file {name!r} in {tag}")
        file, size = node, node.attrs().size
        return FileBody(blob, size, lambda start, end: _pieces(file, start, end))

    def node(self, tag: CommitTag, path: str, name: str) -> Element | None:
        """Return the data node of an expanded name, or None."""
        document = self.file(tag, path, DATA_XML)
        return data_node(b"".join(document.pieces(0, document.size)), name)

    # -- for mirrors -----------------------------------------------------------------------------------------------

    def blob(self, domain: str, oid: str) -> FileBody:
        """Return a blob by its id. Raises NotFound."""
        store = self._store(domain)
        size = store.find_blob(oid)
        if size is None:
            raise NotFound(f"{domain} has no blob {oid}")
        return FileBody(oid, size, lambda start, end: body_in_pieces(store, oid, size, start, end))

    def repository_path(self, domain: str) -> Path:
        """Return where the repository of a domain is. Raises NotFound."""
        self._store(domain)
        return self._archive.repository(domain)

    # --------------------------------------------------------------------------------------------------------------

    def _growing(self, tag: CommitTag, path: str) -> Arc | None:
        """Return a document's folder as the view shows it, if `tag` is the newest snapshot; else it cannot grow."""
        domain = self._writer.view.domain(tag.domain)
        if domain.main is None or domain.main.message.tag != tag:
            return None
        node = self._writer.tree.find(path)
        return node if isinstance(node, Arc) and node.place is not None else None


def _entry(folder: StoredFolder, name: str) -> ArcEntry | None:
    """Return a name in an ARC; None for what is still being sent, a folder for that alone, and what went meanwhile."""
    try:
        node = folder.in_force(lambda current: current.lookup(name))
    except NotFound:
        return None
    if isinstance(node, StoredFolder):
        is_there = node.tree or any(_entry(node, inner) is not None for inner in node.names())
        return ArcEntry(name, True, 0, node.tree) if is_there else None
    blob = _blob(node)
    return ArcEntry(name, False, node.attrs().size, blob) if blob else None


def _blob(node: Node) -> str:
    """Return the id of a file's content; empty for what is no file yet."""
    if isinstance(node, DraftFile):
        return node.draft.blob
    return node.version.blob if isinstance(node, StoredFile) else ""


def _digest(arc: StoredFolder) -> str:
    """Return what changes with any name in an ARC, where git has no such tree yet."""
    folders: list[StoredFolder] = [arc]
    names: list[tuple[str, str]] = []
    while folders:
        clocks.check()
        folder = folders.pop()
        for name in folder.names():
            entry = _entry(folder, name)
            node = folder.lookup(name) if entry is not None and entry.is_folder else None
            names.append((f"{folder.path}/{name}", entry.blob if entry is not None else ""))
            if isinstance(node, AddedFolder):
                folders.append(node)
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()[:40]


def _pieces(file: File, start: int, end: int) -> Iterator[bytes]:
    content: Content = file.open()
    try:
        while start < end and (piece := content.read(start, min(_PIECE, end - start))):
            start += len(piece)
            yield piece
    finally:
        content.close()
