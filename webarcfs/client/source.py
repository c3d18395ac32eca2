"""What a client asks of an archive, wherever that is: a directory, a mount, or a server.

`LocalSource` answers from a directory or a mount, `RemoteSource` over HTTP. Both raise the same errors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from webarcfs.archive.index.query import DocumentOrigin
from webarcfs.archive.model.metadata import CommitTag, MetaData
from webarcfs.client.observers import NewsFeed

if TYPE_CHECKING:  # these need libraries that a remote archive's client need not load
    from webarcfs.archive.catalogue.record import Record
    from webarcfs.archive.config.directory import Archive
    from webarcfs.archive.index.links import FoundLink, Question
    from webarcfs.search.hits import SearchAnswer

#: Bodies up to this size are read into memory; larger ones go through an unnamed file.
LARGE = 4 << 20
#: Bytes of a body that are read or written at a time.
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ArcEntry:
    """A name in an ARC. `blob` is the id of its content; `size` is in bytes, and 0 of a folder."""

    name: str
    is_folder: bool
    size: int
    blob: str

    def as_fields(self) -> dict[str, object]:
        """Return what clients of a server get of it."""
        kind = "folder" if self.is_folder else "file"
        return {"name": self.name, "kind": kind, "size": self.size, "id": self.blob}


@dataclass(frozen=True, slots=True)
class ArcListing:
    """A document in a snapshot, with the names in its ARC. `tree` changes with any of them."""

    document: MetaData
    tree: str
    entries: tuple[ArcEntry, ...]


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document with the files of its ARC by name (`more/notes.txt` in a folder), as streams at their beginnings.

    The streams are closed when the next document is asked for.
    """

    metadata: MetaData
    files: dict[str, BinaryIO] = field(default_factory=dict)

    def close(self) -> None:
        """Close the streams."""
        for stream in self.files.values():
            stream.close()


def shown_in(meta: MetaData, tag: CommitTag, known: Set[CommitTag] | None) -> MetaData:
    """Return a document's metadata in a snapshot: crawlTime and commitTag are the snapshot's.

    So is the time of capture, if a reader does not know the snapshot that stored it; `known` is None for all.
    """
    is_known = known is None or meta.commit_tag in known
    captured = None if meta.capture_time == tag.crawl_time or not is_known else meta.capture_time
    return dataclasses.replace(meta, crawl_time=tag.crawl_time, commit_tag=tag, captured=captured)


#: Keeps the rest of a stream as the file that was announced.
Keep = Callable[[BinaryIO], None]


class ArchiveSource(Protocol):
    """An archive as a client reads and extends it. Safe for any thread; errors are those of our family."""

    @property
    def mount(self) -> Path | None:
        """The mount, if it is one."""

    @property
    def archive(self) -> Archive | None:
        """The archive's directory, if that is on this machine."""

    @property
    def feed(self) -> NewsFeed:
        """The commitTags in the order of their publication."""

    def is_shown(self, tag: CommitTag) -> bool:
        """Return whether the client may see a snapshot of the feed. Called in the observers' thread."""

    def domains(self) -> list[str]:
        """Return the domains, in order."""

    def snapshots(self, domain: str) -> list[CommitTag]:
        """Return the commitTags of a domain, oldest first. Raises NotFound."""

    def select(self, where: str, order_by: str, limit: int | None, origin: DocumentOrigin) -> list[MetaData]:
        """Return the documents for which a condition holds. Raises BadCondition, TookTooLong."""

    def documents(self, tag: CommitTag, after: str) -> Iterator[MetaData]:
        """Return the documents of a snapshot, by folders; those behind the one at the path `after`. Raises NotFound."""

    def changed(self, tag: CommitTag) -> Iterator[MetaData]:
        """Return the documents that a snapshot added, or of which it stored another version. Raises NotFound."""

    def read_all(self, tag: CommitTag) -> Iterator[ReadDocument]:
        """Return the documents of a snapshot with their files. Raises NotFound."""

    def document(self, tag: CommitTag, path: str) -> MetaData:
        """Return the document at `path` (`/<domain>/…`) in a snapshot. Raises NotFound."""

    def listing(self, meta: MetaData) -> ArcListing:
        """Return what git has of a document's ARC in its snapshot. Raises NotFound."""

    def names(self, meta: MetaData) -> list[str]:
        """Return the names in a document's ARC, with additions of a moment ago. Raises NotFound."""

    def data_name(self, meta: MetaData) -> str:
        """Return the name of the document's data file. Raises NotFound."""

    def read(self, meta: MetaData, name: str) -> BinaryIO:
        """Open a file of the document's ARC. Raises NotFound."""

    def adding(self, meta: MetaData, name: str) -> AbstractContextManager[Keep]:
        """Announce a new file. Raises Exists, Stale, NotPermitted, when it is announced or kept."""

    def add_node(self, meta: MetaData, name: str, element: bytes) -> None:
        """Add a data node of the expanded `name`. Raises Exists, InvalidDocument, Stale, NotPermitted."""

    def records(self, publication: str | None) -> Iterator[Record]:
        """Return the records of crawls, newest first. Raises Damaged."""

    def search(self, words: str, narrowing: dict[str, Any]) -> SearchAnswer:
        """Return URLs with words. Raises BadCondition, NotFound without an index, UsageError."""

    def links(self, question: Question, seconds: float) -> Iterator[FoundLink]:
        """Return links of pages. Raises NotFound without links.db, TookTooLong."""

    def close(self) -> None:
        """Give back what is held open."""
