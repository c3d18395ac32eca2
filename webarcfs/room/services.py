"""What handlers ask: the archive as one reader may see it, with everything that stays open between requests.

`Shared` is one for a worker, and safe for any thread. `Services` are of one thread and one reader: SQLite's connections
and gates are not shared between threads.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO

from webarcfs.archive.config import settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.captures import CaptureIndex
from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.system.cache import Cache
from webarcfs.content.rewriting.references import References
from webarcfs.gate.gate import Reader
from webarcfs.gate.known_gate import KnownGate
from webarcfs.gate.reader_links import ReaderLinks
from webarcfs.gate.reader_records import ReaderRecords
from webarcfs.gate.reader_repositories import ReaderRepositories
from webarcfs.gate.visible_captures import VisibleCaptures
from webarcfs.room import limits

if TYPE_CHECKING:
    from webarcfs.archive.index.links_query import Question
    from webarcfs.search.searching import Searcher

#: Bodies up to this size are read into memory; larger ones go through an unnamed file.
_LARGE = 4 << 20
_PIECE = 1 << 18
#: Readers whose gates a thread keeps.
_READERS = 16


@dataclass(frozen=True, slots=True)
class Shared:
    """What all threads of a worker share: repositories and caches, each with its bound."""

    archive: Archive
    repositories: Cache[str, Repository] = field(default_factory=lambda: Cache(limits.REPOSITORIES))
    #: Blob and kind of reading → the references of a body.
    references: Cache[tuple[str, str], References] = field(
        default_factory=lambda: Cache(limits.REWRITER_CACHE_BYTES, lambda each: each.weight)
    )
    #: Domain, snapshot, and what was hidden → counts of it.
    counts: Cache[object, object] = field(default_factory=lambda: Cache(limits.COUNTS))
    distances: Cache[object, tuple[int | None, str]] = field(default_factory=lambda: Cache(limits.DISTANCES))
    _settings: _KnownSettings = field(default_factory=lambda: _KnownSettings())  # noqa: PLW0108 # it is defined below

    def repository(self, domain: str) -> Repository:
        """Return the repository of a domain; several threads may read it at once."""
        return self.repositories.get(domain, lambda: Repository(self.archive.repository(domain)))

    def body(self, domain: str, blob: str) -> bytes:
        """Return a body as a whole. Raises Damaged."""
        return self.repository(domain).read(blob)

    def body_in_pieces(self, domain: str, blob: str, size: int, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a body from `start` up to `end`; a large one is not held in memory."""
        if size <= _LARGE:
            yield self.body(domain, blob)[start:end]
            return
        with tempfile.TemporaryFile() as file:
            self.repository(domain).copy(blob, file.fileno())
            yield from _pieces(file, start, end)

    def settings(self) -> Settings:
        """Return webarc.toml and publications.d as they are now; with faults, as they were last, or the defaults."""
        return self._settings.now(self.archive)


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    file.seek(start)
    while start < end and (piece := file.read(min(_PIECE, end - start))):
        start += len(piece)
        yield piece


class _KnownSettings:
    """Settings, read again when their files change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[object, Settings] = (None, Settings())

    def now(self, archive: Archive) -> Settings:
        state = settings_file.identity(archive.settings)
        with self._lock:
            if state != self._known[0]:
                try:
                    self._known = state, settings_file.load(archive.settings)[0]
                except SettingsError:
                    self._known = state, self._known[1]
            return self._known[1]


class Services:
    """The archive as one reader may see it, for one thread at a time. `look` begins each request.

    Not `of_one_thread`: the threads that use it, one after the other, may be several.
    """

    def __init__(
        self,
        shared: Shared,
        reader: Reader,
        *,
        of_one_thread: bool = True,
        gate: KnownGate | None = None,
        records: ReaderRecords | None = None,
    ) -> None:
        """`gate` and `records` are those of the reader, where others than the public's rules decide."""
        self.shared = shared
        self.archive = shared.archive
        self.gate = gate or KnownGate(shared.archive, reader)
        self.index = CaptureIndex(shared.archive.database, of_one_thread=of_one_thread)
        self.captures = VisibleCaptures(self.gate, self.index)
        self.records = records or ReaderRecords(shared.archive, reader=reader.name)
        self._searcher: Searcher | None = None
        self._repositories: ReaderRepositories | None = None

    def look(self) -> None:
        """Notice what changed in the archive since the last request. Raises what the gate raises."""
        self.gate.look()
        self.gate.rules()

    @property
    def has_search(self) -> bool:
        """Whether there is a full-text index, and the libraries for it."""
        return find_spec("tantivy") is not None and (self.archive.search / "current").exists()

    def searcher(self) -> Searcher:
        """Return the searcher of the reader. Raises NotFound without an index."""
        if self._searcher is None:
            from webarcfs.search.searching import Searcher  # noqa: PLC0415 # of the extra `search`

            self._searcher = Searcher(self.archive, self.gate)
        return self._searcher

    def link_reader(self, question: Question) -> ReaderLinks | None:
        """Return what narrows links to the reader; None where nothing is hidden."""
        if not self.gate.rules().rules and all(self.gate.facts(each).is_whole for each in self.archive.domains()):
            return None
        if self._repositories is None:
            self._repositories = ReaderRepositories(self.gate)
        return ReaderLinks(self.gate, self._repositories, question)

    def close(self) -> None:
        """Close databases, and remove what was made for the reader."""
        self.index.close()
        if self._repositories is not None:
            self._repositories.close()


class OfThread(threading.local):
    """The services of the thread that asks, for the readers that came last."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._known: OrderedDict[Reader, Services] = OrderedDict()

    def of(self, reader: Reader) -> Services:
        """Return the services of a reader in this thread, in step with the archive."""
        found = self._known.get(reader)
        if found is None:
            found = self._known[reader] = Services(self._shared, reader)
            while len(self._known) > _READERS:
                self._known.popitem(last=False)[1].close()
        self._known.move_to_end(reader)
        found.look()
        return found
