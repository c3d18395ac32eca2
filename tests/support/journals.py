"""Writers of additions for tests: what a mount does at close, without the mount."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tests.support.archives import DOMAIN, store_of
from webarcfs.archive.additions.journal import Journal, JournalPosition, StoredBody
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import MAIN
from webarcfs.archive.model.additions import AddFile, Addition, AddNodes, ArcVersion, Author, Move
from webarcfs.archive.model.metadata import format_time
from webarcfs.archive.system.files import blob_id
from webarcfs.archive.system.locks import Turnstile


class Writer:
    """A journal, and the words to write to it; each addition is confirmed under the domain's shared lock."""

    def __init__(self, archive: Archive, domain: str = DOMAIN, kind: type[Journal] = Journal) -> None:
        self.journal = kind.open(archive)
        self._archive = archive
        self._domain = domain
        self._open = True

    def file(self, arc: str, path: str, data: bytes, author: str = "anna", replaces: str = "") -> Any:
        """Add a file: a small one from memory, a large one as a draft."""
        return self._confirm(self._file(arc, path, data, author, replaces), self._body(data))

    def append(self, arc: str, path: str, data: bytes) -> None:
        """Add a small file that is written but not synced, for tests that need many."""
        fsync, os.fdatasync = os.fdatasync, lambda _: None
        try:
            self.file(arc, path, data)
        finally:
            os.fdatasync = fsync

    def nodes(self, arc: str, nodes: bytes, author: str = "anna", source: str = "") -> JournalPosition:
        """Add data nodes."""
        return self._confirm(AddNodes(self.place(arc), nodes, _author(author), int(time.time()), source))

    def move(self, arc: str, old: str, new: str) -> JournalPosition:
        """Rename an addition."""
        return self._confirm(Move(self.place(arc), old, new, _author("anna"), int(time.time())))

    def place(self, arc: str) -> ArcVersion:
        """The version that the ARC is now."""
        store = store_of(self._archive, self._domain)
        head = store.head()
        assert head is not None
        found = store.find(head.tree, f"{arc}/data.xml")
        assert found is not None, arc
        return ArcVersion(self._domain, arc, format_time(data_xml.metadata(store.read(found.oid)).crawl_time))

    def size(self) -> int:
        """Bytes of the log."""
        return next(self._archive.journal.glob(f"{self.journal.id}-*.log")).stat().st_size

    def die(self) -> Path:
        """End as a killed process does: its locks are gone, all else stays. Returns its log."""
        segments = self.journal._segments
        for segment in segments:
            segment.close()
        self._open = False
        return segments[-1].path

    def close(self) -> None:
        """End as a mount does."""
        if self._open:
            self._open = False
            self.journal.close()

    def _file(self, arc: str, path: str, data: bytes, author: str, replaces: str) -> AddFile:
        place = self.place(arc)
        return AddFile(place, path, blob_id(data), len(data), _author(author), int(time.time()), replaces)

    def _body(self, data: bytes) -> StoredBody:
        if len(data) < 1000:
            return StoredBody(len(data), data)
        fd = self.journal.draft()
        os.write(fd, data)
        return StoredBody(len(data), fd=fd)

    def _confirm(self, addition: Addition, body: StoredBody | None = None) -> JournalPosition:
        try:
            with Turnstile(self._archive.lock(self._domain)).shared():
                return self.journal.confirm(addition, body)
        finally:
            if body is not None and body.fd >= 0:
                os.close(body.fd)


def _author(name: str) -> Author:
    return Author(name, f"{name}@host")


def lines_of(archive: Archive, start: str, domain: str = DOMAIN) -> list[str]:
    """The trailers of a domain's commits that start so, without that start; newest commit first."""
    store = store_of(archive, domain)
    key = start.rstrip(": ")
    return [value for commit in store.history(store.ref(MAIN)) for value in commit.message.all(key)]


def nothing_left(archive: Archive) -> None:
    """The journal is empty."""
    assert [each.name for each in archive.journal.iterdir()] == []
