"""The states of domains that were taken over, the detection of moves, and the reading of their repositories.

A state is taken over under the domain's shared lock (/Ar-2/): the refs are read once, and the lock is released; all
later reads start from those refs. A domain is taken over on first access, and again when its refs have moved. Safe for
any thread; only one thread at a time may detect moves.

Nodes get trees, metadata of ARCs and contents from a domain's repository through bounded caches. No lock is held while
git reads. All domains share the caches, since git names every object by its content.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Commit, Repository, TreeEntry
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.errors import Damaged, DocumentUnread, InvalidDocument, LookAgain, NotFound, WebarcError
from webarcfs.archive.model.metadata import CET, CommitTag, MetaData, format_time, parse_time
from webarcfs.archive.system.cache import Cache
from webarcfs.archive.system.locks import Turnstile
from webarcfs.vfs import content
from webarcfs.vfs.content import Blobs, Content, FromFile, FromMemory
from webarcfs.vfs.node import seconds
from webarcfs.vfs.overlay import Overlay
from webarcfs.vfs.query_answers import Discarded

# == domain reader ====================================================================================================


Entries = Mapping[str, TreeEntry]

#: Documents whose metadata are cached, 2 KB each: for a file whose extended attributes are read one after another.
_DESCRIBED = 1_000

_log = logging.getLogger(__name__)


class ArcTimes:
    """The times of an ARC and the size of its data.xml: crawlTime as text and in seconds, createTime in seconds."""

    __slots__ = ("crawl", "crawled", "created", "size")

    def __init__(self, crawl: str, create: str, size: int) -> None:
        """Raises Damaged for an invalid time."""
        self.crawl = crawl
        self.crawled = seconds(parse_time(crawl))
        self.created = seconds(parse_time(create))
        self.size = size


class Caches:
    """The caches that the readers of one mount share, sized for the inodes that the mount may know, `most`.

    A node that the kernel dropped and looks up again is therefore not read from git again.
    """

    def __init__(self, most: int | None = None) -> None:
        most = most if most is not None else content.most_inodes()
        self.trees: Cache[str, Entries] = Cache(most + most // content.OF_AN_ARC, lambda entries: len(entries) + 1)
        self.dates: Cache[str, ArcTimes | None] = Cache(most // content.OF_AN_ARC)
        self.metadata: Cache[str, MetaData | None] = Cache(_DESCRIBED)
        #: data.xml that git could not read, which is logged once.
        self.unread: Cache[str, bool] = Cache(_DESCRIBED)
        self.commits: Cache[str, Commit] = Cache(2_000)
        self.leads: Cache[str, bool] = Cache(most // content.OF_AN_ARC)
        # Each addition reads its ARC several times.
        self.arcs: Cache[tuple[str, ArcVersion], TreeEntry | None] = Cache(1_000)
        self.blobs = Blobs()


class DomainReader:
    """A reader of the repository of `domain`. `overlay` has the additions of this mount that its states lack.

    `origin` is the archive's repository, where `store` is one without the discarded snapshots.
    """

    def __init__(
        self, domain: str, store: Repository, caches: Caches, overlay: Overlay, origin: Repository | None = None
    ) -> None:
        self.domain = domain
        self.store = store
        self.origin = store if origin is None else origin
        self.overlay = overlay
        self._caches = caches

    def entries(self, tree: str) -> Entries:
        """Return the entries of a tree, by name; none for a folder that git does not have yet."""
        if not tree:
            return {}
        return self._caches.trees.get(tree, lambda: {entry.name: entry for entry in self.store.entries(tree)})

    def find(self, tree: str, path: str) -> TreeEntry | None:
        """Return git's entry at `path` below `tree`, or None."""
        entry: TreeEntry | None = TreeEntry("", tree, True)
        for name in path.split("/"):
            entry = self.entries(entry.oid).get(name) if entry is not None and entry.is_tree else None
        return entry

    def commit(self, oid: str) -> Commit:
        """Return a commit. Raises Damaged for any other object."""
        return self._caches.commits.get(oid, lambda: self.store.commit(oid))

    def is_arc(self, tree: str) -> bool:
        """Return whether a folder is an ARC: it contains a file data.xml."""
        document = self.entries(tree).get(arc_paths.DATA_XML)
        return document is not None and document.is_document

    def leads_to_arcs(self, tree: str) -> bool:
        """Return whether an ARC lies somewhere below: this distinguishes a folder above ARCs from one of additions."""
        return self.leads(tree, self.entries(tree))

    def leads(self, tree: str, entries: Entries) -> bool:
        """Return the same for a tree whose entries are known."""
        for entry in entries.values():
            if entry.is_tree:
                return self._caches.leads.get(tree, lambda: self._leads_to_arcs(tree))
        return False

    def arc(self, tree: str, place: ArcVersion) -> TreeEntry | None:
        """Return the folder of an ARC below `tree`; None if there is no ARC, or another version."""
        try:
            return self._caches.arcs.get((tree, place), lambda: self._arc(tree, place))
        except DocumentUnread:
            return None

    def _arc(self, tree: str, place: ArcVersion) -> TreeEntry | None:
        entry = self.find(tree, place.arc)
        if entry is not None and entry.is_tree and self.is_arc(entry.oid):
            dates = self._read_dates(self.entries(entry.oid)[arc_paths.DATA_XML].oid)
            if dates is not None and dates.crawl == place.version:
                return entry
        return None

    def dates(self, document: str) -> ArcTimes | None:
        """Return the times of the ARC whose data.xml is the blob `document`; None, with a log line, as `described`."""
        try:
            return self._read_dates(document)
        except DocumentUnread:
            return None

    def _read_dates(self, document: str) -> ArcTimes | None:
        return self._caches.dates.get(document, lambda: self._dated(document))

    def described(self, document: str) -> MetaData | None:
        """Return the metadata of that ARC; None, with a line in the log, if its data.xml is not understood."""
        try:
            return self._caches.metadata.get(document, lambda: self._parse(document))
        except DocumentUnread:
            return None

    def size(self, blob: str) -> int:
        """Return a blob's size."""
        pending = self.overlay.size(blob)
        return pending if pending is not None else self.store.size(blob)

    def open(self, blob: str, size: int) -> Content:
        """Return the content of a blob of `size` bytes, to be closed.

        Raises Stale for a version that was replaced before git had it, and is no longer kept here.
        """
        pending = self._pending(blob)
        if pending is None and self.overlay.is_superseded(blob):
            try:
                self.store.size(blob)
            except Damaged:  # fail now, and not at the first read
                raise LookAgain("there is a newer version of it") from None
        return pending or self._caches.blobs.open(self.store, blob, size)

    def document(self, blob: str) -> bytes:
        """Return a data.xml that git has."""
        return self._caches.blobs.whole(self.store, blob)

    def _pending(self, blob: str) -> Content | None:
        """Return the content of a blob that is not in git yet, or None."""
        pending = self.overlay.read_blob(blob)
        return None if pending is None else FromFile(pending) if isinstance(pending, int) else FromMemory(pending)

    def _leads_to_arcs(self, tree: str) -> bool:
        below = (entry.oid for entry in self.entries(tree).values() if entry.is_tree)
        return any(self.is_arc(oid) or self.leads_to_arcs(oid) for oid in below)

    def _dated(self, blob: str) -> ArcTimes | None:
        document = self._read(blob)
        try:
            times = data_xml.times(document)
            if times is not None:
                return ArcTimes(times[0], times[1], len(document))
        except Damaged:
            pass  # `described` logs it
        meta = self.described(blob)
        if meta is None:
            return None
        return ArcTimes(format_time(meta.crawl_time), format_time(meta.create_time), self.store.size(blob))

    def _read(self, blob: str) -> bytes:
        """Return a data.xml. Raises DocumentUnread, with a line in the log at the first time."""
        try:
            return self.store.read(blob)
        except Damaged as error:
            if self._caches.unread.held(blob) is None:
                _log.error("%s: data.xml %s cannot be read: %s", self.domain, blob, error)
            self._caches.unread.keep(blob, True)
            raise DocumentUnread(str(error)) from None

    def _parse(self, blob: str) -> MetaData | None:
        document = self._read(blob)
        try:
            return data_xml.metadata(document)
        except (InvalidDocument, Damaged) as error:
            _log.error("%s: data.xml %s has no metadata: %s", self.domain, blob, error)
            return None


# == domain states ====================================================================================================


_EXPECTED = WebarcError, OSError

Signature = tuple[object, ...]


class StateToken:
    """Identifies one state, by object identity."""


@dataclass(frozen=True)
class DomainState:
    """A domain as it was taken over: the newest commit, and the commit of each commitTag in order.

    `is_older`: the newest crawl is discarded, so that this is an older state, which takes no additions.

    It grows with the number of snapshots, and is freed when the next one is in force: nodes, which live as long as the
    kernel knows them, keep only its `mark`.
    """

    name: str
    reader: DomainReader
    main: Commit | None
    tags: Mapping[str, str]
    signature: Signature
    mark: StateToken = field(compare=False, repr=False)
    is_older: bool = False


@dataclass(frozen=True, slots=True)
class DomainChange:
    """A domain that may have moved: its state before (None if it was never read), and the one in force now.

    `new` is None if the domain was never read, or cannot be read.
    """

    name: str
    old: DomainState | None
    new: DomainState | None


class DomainStates:
    """The newest state of each domain of an archive that was read so far."""

    def __init__(self, archive: Archive, overlay: Overlay, discarded: Discarded) -> None:
        self._discarded = discarded
        self._caches = Caches()
        self._overlay = overlay
        self._archive = archive
        self._repositories: tuple[int, frozenset[str]] = (0, frozenset())
        self._states: dict[str, DomainState] = {}
        self._faults: dict[str, str] = {}
        self._mutexes: dict[str, threading.Lock] = {}

    def domains(self) -> Iterator[str]:
        """Yield the domains that have been crawled, in order, including those that cannot be read."""
        for name in self._archive.domains():
            try:
                if self.domain(name).main is not None:
                    yield name
            except NotFound:
                continue
            except WebarcError:
                yield name

    def domain(self, name: str) -> DomainState:
        """Return the state of a domain. Raises NotFound, or Damaged when its repository cannot be read."""
        state = self._states.get(name)
        return state if state is not None else self._take_over(name)

    def known(self, name: str) -> DomainState | None:
        """Return the state of a domain in force; None if it was not read yet, or cannot be read."""
        return self._states.get(name)

    # -- moves -------------------------------------------------------------------------------------------------------

    def moved(self) -> set[str]:
        """Return the domains that moved since they were taken over, appeared or disappeared. One thread at a time."""
        discarded = self._discarded.by_domain()  # once: an archive has thousands of domains
        states = self._states.copy().items()
        return {name for name, state in states if self._has_moved(state, discarded)} | self._come_or_gone()

    def renewed(self, name: str) -> DomainChange:
        """Take a domain over once more, if it was ever read."""
        old, new = self._states.get(name), None
        # A domain that was never read is read on first access, in its state by then. The mutex shows that, and not the
        # state: a take-over may be under way that read the refs before they moved.
        if name in self._mutexes:
            # The error is logged, and the next access returns it. Other moved domains must be handled in any case.
            with contextlib.suppress(Exception):
                new = self._take_over(name)
        return DomainChange(name, old, new)

    def let_go(self) -> None:
        """Close packs that a repack removed: a mount lives for months, and open files would keep them on the disk."""
        for state in self._states.copy().values():
            with contextlib.suppress(OSError, WebarcError):  # it is gone or damaged; the next read fails
                if state.reader.origin.let_go():
                    _log.debug("%s: repacked", state.name)

    def _come_or_gone(self) -> frozenset[str]:
        """Return the domains whose repositories appeared or disappeared: the feed does not announce each of them."""
        time, known = self._repositories
        now = self._archive.content.stat().st_mtime_ns
        if now == time:
            return frozenset()
        domains = frozenset(self._archive.domains())
        self._repositories = now, domains
        return domains ^ known

    def _has_moved(self, state: DomainState, discarded: Mapping[str, frozenset[str]]) -> bool:
        try:
            return self._signature(state.name, discarded) != state.signature
        except OSError:
            return True

    # -- taking over -------------------------------------------------------------------------------------------------

    def _take_over(self, name: str) -> DomainState:
        if not _is_domain(name) or not self._archive.repository(name).is_dir():
            self._states.pop(name, None)
            raise self._archive.missing(f"the archive has no domain {name}")
        with self._mutexes.setdefault(name, threading.Lock()):
            try:
                state = self._states[name] = self._read(name)
            except Exception as error:
                # An old state must not outlive a tag that is about to be shown.
                self._states.pop(name, None)
                self._note(name, error)
                raise
            self._faults.pop(name, None)
            return state

    def _read(self, name: str) -> DomainState:
        path = self._archive.repository(name)
        discarded = self._discarded.by_domain()
        signature = self._signature(name, discarded)  # first: a later move is then detected by the next check
        store = self._store(name, path, signature)
        with self._shared(name):
            main, crawls = store.head(), store.refs(CRAWLS)
            shown = self._discarded.repository(name) if name in discarded else store
        newest, origin = main, store
        if shown is not store:
            newest, crawls = (None, {}) if shown is None else (shown.head(), shown.refs(CRAWLS))
            store = store if shown is None else shown
        tags = {str(CommitTag(time, name)): oid for compact, oid in crawls.items() if (time := _time(compact))}
        is_older = newest is not None and main is not None and newest.tree != main.tree
        reader = DomainReader(name, store, self._caches, self._overlay, origin)
        return DomainState(name, reader, newest, tags, signature, StateToken(), is_older)

    def _signature(self, name: str, discarded: Mapping[str, frozenset[str]]) -> Signature:
        """Return a value that changes when main moves, or when something of the domain is discarded or restored."""
        return (*_signature(self._archive.repository(name)), discarded.get(name))

    def _store(self, name: str, path: Path, signature: Signature) -> Repository:
        old = self._states.get(name)
        # Only for the same folder, not for a replacement (by a restore, say).
        return old.reader.origin if old is not None and old.signature[0] == signature[0] else Repository(path)

    @contextlib.contextmanager
    def _shared(self, name: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Turnstile(self._archive.lock(name)).shared())
            except OSError as error:
                # An archive on read-only media, or not writable and without a lock file.
                _log.info("%s: read without its lock: %s", name, error)
            yield

    def _note(self, name: str, error: Exception) -> None:
        if self._faults.get(name) != str(error):
            self._faults[name] = str(error)
            _log.error("%s cannot be shown: %s", name, error, exc_info=None if isinstance(error, _EXPECTED) else error)


def _is_domain(name: str) -> bool:
    return not name.startswith(".") and "@" not in name


def _signature(repository: Path) -> Signature:
    """Return a value that changes when main moves: the identity of the folder, and of the file that holds the ref."""
    folder = repository.stat()
    for name in ("refs/heads/main", "packed-refs"):
        with contextlib.suppress(FileNotFoundError):
            status = (repository / name).stat()
            return (folder.st_dev, folder.st_ino), name, status.st_ino, status.st_mtime_ns, status.st_size
    return ((folder.st_dev, folder.st_ino),)


def _time(compact: str) -> datetime | None:
    try:
        return datetime.strptime(compact, "%Y%m%dT%H%M%S").replace(tzinfo=CET)
    except ValueError:
        return None
