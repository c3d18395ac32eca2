"""The archive for Python programs: documents, their files and data nodes, snapshots, news (/Cl-2/ … /Cl-11/).

    from webarcfs.client import WebarchiveClient

    with WebarchiveClient("/mnt/archive") as client:
        for meta in client.select("mimeType = 'text/html'", "crawlTime DESC", limit=10):
            print(meta.title, len(client.open_read(meta, client.data_name(meta)).read()))

A client of a mount reads and writes through it, and so sees what was written a moment ago; a client of an archive's
directory reads the repositories, and writes nothing (SEMANTICS.md specifies a mount's caches). Errors are those of
`webarcfs.archive.model.errors`, never bare OSErrors; those of system calls on a mount are translated. Safe for any
thread.

On a mount, the folder of an ARC is opened once for all concurrent additions to its document: a node while a file is
written, say. Each saved request would go to the mount's process.

On a directory, each repository is opened once, with caches. An object's name determines its content for ever, so only
the refs are read each time.

A thread follows the feed and delivers new commitTags to observers (/Cl-3/ … /Cl-5/, /Sv-5/). Each observer has a place
of its own in the feed, the last tag that it received, so that none is lost or repeated if the observer does not fail,
and a failing one delays no other. `recover` may rewrite the feed meanwhile: a place is a tag, and an offset only as
long as the tag is found there.
"""

from __future__ import annotations

import builtins
import dataclasses
import errno
import io
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast
from xml.etree import ElementTree

from webarcfs.access import reader_stores
from webarcfs.access.access_rules import Standing
from webarcfs.access.gate import Gate, Reader, StaffGate
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderLinks
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_xml import metadata, parse_element
from webarcfs.archive.git.repository import Repository, TreeEntry, is_arc
from webarcfs.archive.history import versions
from webarcfs.archive.index.links import FoundLink, Question
from webarcfs.archive.index.links import ask as ask_links
from webarcfs.archive.index.query import ANY_ORIGIN, SECONDS, DocumentOrigin, ask
from webarcfs.archive.model.arc_paths import DATA_XML, is_data_file, is_reserved
from webarcfs.archive.model.errors import (
    Exists,
    InvalidDocument,
    NameTooLong,
    NotAnArchive,
    NotFound,
    NotPermitted,
    ReadOnly,
    Replaced,
    Stale,
    UsageError,
    WebarcError,
)
from webarcfs.archive.model.metadata import CommitTag, MetaData, format_time, from_epoch
from webarcfs.archive.system.files import write_all

if TYPE_CHECKING:
    from webarcfs.search.searching import SearchAnswer


# == mounted ==========================================================================================================


#: The attribute of a mount's root with the path of its archive.
ATTRIBUTE = "user.webarc.archive"
_FAMILY: Mapping[int, type[WebarcError]] = {
    errno.EEXIST: Exists,
    errno.EINVAL: InvalidDocument,
    errno.EISDIR: NotFound,
    errno.ENAMETOOLONG: NameTooLong,
    errno.ENOENT: NotFound,
    errno.EPERM: NotPermitted,
    errno.EACCES: NotPermitted,
    errno.EROFS: ReadOnly,
    errno.ESTALE: Stale,
}


def behind(place: Path) -> tuple[Path, Archive] | None:
    """Return the mount that contains a path, and its archive; None outside of any. Raises NotAnArchive."""
    for folder in (place.absolute(), *place.absolute().parents):
        try:
            root = os.getxattr(folder, ATTRIBUTE)
        except OSError:
            continue
        return folder, directory.open_archive(Path(os.fsdecode(root)))
    return None


@contextmanager
def family(what: str, more: Mapping[int, type[WebarcError]] | None = None) -> Iterator[None]:
    """Raise the mount's errno as an error of our family; `more` precedes the table."""
    try:
        yield
    except OSError as error:
        kind = {**_FAMILY, **(more or {})}.get(error.errno or 0, WebarcError)
        raise kind(f"{what}: {error.strerror or error}") from error


# == repositories =====================================================================================================


#: Cached facts, a line each; and cached ARCs, as many as a program uses at once: one may have very many entries.
_REMEMBERED = 1_000
_ARCS = 50
#: Seconds between two checks for packs that a repack removed, and that must not be kept open.
_INTERVAL = 1.0
#: Seconds for which a reader may see what was withdrawn: a withdrawal takes effect within a second.
_READERS_INTERVAL = 0.5
#: Repositories of readers that stay readable after newer ones were made: somebody may be reading a list of documents.
_KEPT = 16
#: The name does not exist, or cannot.
_NOT_THERE = errno.ENOENT, errno.ENAMETOOLONG


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open repository, the identity of its folder, and the time of the last check for removed packs."""

    path: str
    store: Repository
    identity: tuple[int, int]
    looked: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundArc:
    """The folder of an ARC in one snapshot, with its entries by name in git's order."""

    store: Repository
    tree: str
    entries: dict[str, TreeEntry]


class Repositories:
    """The repositories of one archive."""

    def __init__(self, archive: Archive, readers: ReaderRepositories | None = None) -> None:
        """With `readers`, they are as its gate shows them."""
        self._archive = archive
        self._readers = readers
        self._shown: dict[str, tuple[float, Repository]] = {}
        self._opened: dict[str, _Opened] = {}
        self._opening = threading.Lock()
        self._roots = lru_cache(_REMEMBERED)(_root)
        self._trees = lru_cache(_REMEMBERED)(_tree)
        self._arcs = lru_cache(_ARCS)(_arc)
        self._times = lru_cache(_REMEMBERED)(_crawl_time)

    def store(self, domain: str) -> Repository:
        """Return the repository of a domain. Raises NotFound, Damaged."""
        if "/" in domain or domain.startswith("."):
            raise NotFound(f"the archive has no domain {domain!r}")
        if self._readers is not None and self._readers.gate.is_needed:
            return self._for_reader(self._readers, domain)
        with self._opening:
            known, time = self._opened.get(domain), monotonic()
            try:
                folder = os.stat(known.path if known else self._archive.repository(domain))  # noqa: PTH116 # each time
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno not in _NOT_THERE:
                    raise
                raise NotFound(f"the archive has no domain {domain!r}") from None
            if known is None or known.identity != (folder.st_dev, folder.st_ino):
                known = self._open(domain, (folder.st_dev, folder.st_ino))
            elif time - known.looked > _INTERVAL:
                known.store.let_go()
            else:
                return known.store
            self._opened[domain] = replace(known, looked=time)
            return known.store

    def _for_reader(self, readers: ReaderRepositories, domain: str) -> Repository:
        """Return a domain's repository as the reader sees it, or saw it half a second ago."""
        with self._opening:
            looked, store = self._shown.get(domain, (0.0, None))
            if store is None or monotonic() - looked > _READERS_INTERVAL:
                store = readers.open(domain)
                self._shown[domain] = monotonic(), store
            return store

    def close(self) -> None:
        """Remove what was made for the reader."""
        if self._readers is not None:
            self._readers.__exit__()

    def _open(self, domain: str, identity: tuple[int, int]) -> _Opened:
        """Open a repository for the first time, or after it was replaced (by a restore, say)."""
        for cache in (self._roots, self._trees, self._arcs, self._times):
            cache.cache_clear()
        path = self._archive.repository(domain)
        return _Opened(str(path), Repository(path), identity)

    def arc(self, meta: MetaData) -> FoundArc:
        """Return the ARC of a document in its snapshot. Raises NotFound, Damaged."""
        return self.document(meta.commit_tag, meta.path)

    def document(self, tag: CommitTag, path: str) -> FoundArc:
        """Return the ARC at `path` (`/<domain>/…`) in a snapshot. Raises NotFound, Damaged."""
        store = self.store(tag.domain)
        above, _, name = path.removeprefix(f"/{tag.domain}/").rpartition("/")
        root = self._roots(store, store.commit_of(tag))
        # In two steps: the folder is most often that of the previous document.
        tree = self._trees(store, self._trees(store, root, above), name)
        document_arc = self._arcs(store, tree) if tree else None
        if document_arc is None:
            raise NotFound(f"{tag} has no document {path}")
        return document_arc

    def stored(self, arc: FoundArc) -> datetime:
        """Return the start of the crawl that stored this version of an ARC. Raises InvalidDocument, Damaged."""
        return self._times(arc.store, arc.entries[DATA_XML].oid)

    def is_newest(self, tag: CommitTag) -> bool:
        """Return whether a snapshot is the domain's newest one."""
        head = self.store(tag.domain).head()
        return head is not None and head.message.tag == tag


def _root(store: Repository, commit: str) -> str:
    return store.commit(commit).tree


def _tree(store: Repository, folder: str, path: str) -> str:
    """Return the folder at `path` in `folder`, which may be empty; empty if there is none."""
    entry = store.find(folder, path) if folder else None
    return entry.oid if entry is not None and entry.is_tree else ""


def _arc(store: Repository, tree: str) -> FoundArc | None:
    """Return the ARC of a folder; None if it is no ARC."""
    entries = {entry.name: entry for entry in store.entries(tree)}
    return FoundArc(store, tree, entries) if is_arc(entries.values()) else None


def _crawl_time(store: Repository, document: str) -> datetime:
    return metadata(store.read(document)).crawl_time


# == arc folders ======================================================================================================


@dataclass(slots=True)
class ArcFolder:
    """The open folder of an ARC, the start of the crawl that stored it (seconds), and the number of its users."""

    fd: int
    path: str
    stored: int
    users: int = 0

    def check(self) -> None:
        """Raises Stale when it shows another version by now: libfuse's high-level API identifies a folder by its path.

        The kernel has the folder's attributes in its caches, so no process receives a request (SEMANTICS.md).
        """
        with family(self.path, {errno.ENOENT: Stale}):
            shown = int(os.fstat(self.fd).st_mtime)
        if shown != self.stored:
            raise Replaced(f"{self.path} was replaced by a crawl; it is of {format_time(from_epoch(shown))} now")

    def has(self, name: str) -> bool:
        """Return whether a name exists in it."""
        with suppress(OSError):
            os.stat(name, dir_fd=self.fd)
            return True
        return False

    @contextmanager
    def opened(self, name: str, flags: int) -> Iterator[int]:
        """Yield a descriptor of a file in it; an error of its close is raised, unless the block raised one.

        Without a file object, which would query the type of the file: each query goes to the mount's process.
        """
        fd = os.open(name, flags | os.O_CLOEXEC, 0o644, dir_fd=self.fd)
        try:
            yield fd
        except BaseException:
            with suppress(OSError):
                os.close(fd)
            raise
        os.close(fd)


class _Held(threading.local):
    """The folders that a thread is adding to."""

    def __init__(self) -> None:
        self.folders: dict[MetaData, ArcFolder] = {}


class ArcFolders:
    """The folders of the ARCs that a mount shows; without a mount, additions are impossible."""

    def __init__(self, mount: Path | None, repositories: Repositories) -> None:
        self._mount = mount
        self._repositories = repositories
        self._held = _Held()

    @contextmanager
    def current(self, meta: MetaData) -> Iterator[ArcFolder]:
        """Yield the folder of a document's ARC, if it is still the version of `meta`.

        Raises Stale if it is not, NotPermitted without a mount, NotFound.
        """
        held = self._held.folders  # this thread's, even if another one ends it
        folder = held.get(meta) or self._open(meta)
        folder.users += 1
        held[meta] = folder
        try:
            folder.check()
            yield folder
        finally:
            folder.users -= 1
            if not folder.users:
                del held[meta]
                os.close(folder.fd)

    def _open(self, meta: MetaData) -> ArcFolder:
        if self._mount is None:
            raise NotPermitted("writing goes through a mount; give the client one: WebarchiveClient('/mnt/archive')")
        stored = int(self._repositories.stored(self._repositories.arc(meta)).timestamp())
        with family(meta.path, {errno.ENOENT: Stale}):
            fd = os.open(f"{self._mount}{meta.path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return ArcFolder(fd, meta.path, stored)


# == observers ========================================================================================================


#: Seconds between two checks of the feed, unless the client sets others.
INTERVAL = 1.0

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """A receiver of new commitTags (/Cl-2.3/): any callable."""

    def __call__(self, tags: list[CommitTag], /) -> None:
        """Handle new snapshots, in the order of their publication."""


@dataclass
class _Registered:
    observer: Observer
    is_shown: Callable[[CommitTag], bool]
    last: str  # the last tag that was delivered; empty for "from the beginning"
    offset: int  # the place in the feed after it


class News:
    """The observers of one feed, and the thread that serves them; it runs while there are any."""

    def __init__(self, feed: Path, interval: float) -> None:
        self._feed = feed
        self._interval = interval
        self._registered: list[_Registered] = []
        self._change = threading.Condition()
        self._delivering = threading.RLock()
        self._thread: threading.Thread | None = None

    def add(
        self, observer: Observer, since: str | None, is_shown: Callable[[CommitTag], bool] = lambda _: True
    ) -> None:
        """Begin after the tag `since`, or at the feed's end. Raises NotFound when the feed has no such tag."""
        text = self._feed.read_bytes() if self._feed.exists() else b""
        if since is None:
            whole = text[: text.rfind(b"\n") + 1]
            last = whole.splitlines()[-1].decode() if whole else ""
            place = _Registered(observer, is_shown, last, len(whole))
        else:
            offset = _behind(text, since)
            if offset is None:
                raise NotFound(f"there is no {since} in {self._feed}")
            place = _Registered(observer, is_shown, since, offset)
        with self._change:
            self._registered.append(place)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="news", daemon=True)
                self._thread.start()
            self._change.notify()

    def remove(self, observer: Observer) -> None:
        """Forget an observer; wait for the call under way."""
        with self._change:
            self._registered = [
                registration for registration in self._registered if registration.observer is not observer
            ]
            self._change.notify()
        with self._delivering:
            pass

    def stop(self) -> None:
        """Forget all observers, and end the thread."""
        with self._change:
            self._registered = []
            thread, self._thread = self._thread, None
            self._change.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._change:
                if self._thread is not threading.current_thread():
                    return
                registered = list(self._registered)
            for registration in registered:
                with self._delivering:
                    if self._is_registered(registration):
                        self._deliver(registration)
            with self._change:
                if self._thread is threading.current_thread():
                    self._change.wait(self._interval)

    def _is_registered(self, registration: _Registered) -> bool:
        with self._change:
            return registration in self._registered

    def _deliver(self, registration: _Registered) -> None:
        try:
            tags, offset = self._new(registration)
            if tags:
                shown = [tag for tag in tags if registration.is_shown(tag)]
                if shown:
                    registration.observer(shown)
                registration.last, registration.offset = str(tags[-1]), offset
        except Exception:
            _log.exception("an observer failed; it is given the same commitTags again")

    def _new(self, registration: _Registered) -> tuple[list[CommitTag], int]:
        """Return the tags after an observer's place, and the place after them."""
        with self._feed.open("rb") as feed:
            begin = max(0, registration.offset - len(registration.last.encode()) - 1)
            feed.seek(begin)
            text = feed.read()
            own = f"{registration.last}\n".encode() if registration.last else b""
            if not text.startswith(own):  # the feed was rewritten
                feed.seek(0)
                begin, text = 0, feed.read()
                behind = _behind(text, registration.last) if registration.last else 0
                if behind is None:
                    raise NotFound(f"{registration.last} is not in {self._feed} any more")
                own = text[:behind]
        whole = text[len(own) : text.rfind(b"\n") + 1]
        tags = [CommitTag.parse(line) for line in whole.decode().splitlines()]
        return tags, begin + len(own) + len(whole)


def _behind(text: bytes, tag: str) -> int | None:
    """Return the offset after the line of a tag, or None."""
    line = f"{tag}\n".encode()
    if text.startswith(line):
        return len(line)
    begin = text.find(b"\n" + line)
    return None if begin < 0 else begin + 1 + len(line)


# == client ===========================================================================================================


__all__ = ["CommitTag", "MetaData", "Observer", "WebarchiveClient"]

#: Bodies up to this size are read into memory; larger ones go through an unnamed file.
LARGE = 4 << 20
_PIECE = 1 << 20
_DATA = "{urn:webarcfs:arc:1}data"


class WebarchiveClient:
    """Access to one archive (/Cl-2.2/): `place` is its directory, or a mount of it (or a path inside one).

    `interval` is the time between two checks for observers' news, in seconds (/Sv-5.1/). With the name of a `reader`
    (empty: the public), the client shows what that reader may see, of an archive's directory only. Raises NotAnArchive,
    UsageError.
    """

    def __init__(self, place: str | os.PathLike[str], *, interval: float = INTERVAL, reader: str | None = None) -> None:
        self.mount, self.archive = _found(Path(place).absolute())
        if reader is not None and self.mount is not None:
            raise UsageError("a mount shows all that there is; a reader's client needs the archive's directory")
        self._of_client = StaffGate(self.archive) if reader is None else Gate(self.archive, Reader(reader))
        self._readers = ReaderRepositories(self._of_client, keep=_KEPT)
        feed = self.mount / ".changes" if self.mount is not None else self.archive.changes
        self._news = News(feed, interval)
        self._repositories = Repositories(self.archive, self._readers)
        self._folders = ArcFolders(self.mount, self._repositories)

    def __enter__(self) -> WebarchiveClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the observers' thread, after the deliveries under way."""
        self._news.stop()
        self._repositories.close()

    # -- documents ---------------------------------------------------------------------------------------------------

    def select(
        self, where: str = "", order_by: str = "", limit: int | None = None, *, origin: DocumentOrigin = ANY_ORIGIN
    ) -> builtins.list[MetaData]:
        """Return the documents for which an SQL condition holds, one for each snapshot that has them (/Cl-6/).

        `origin` leaves those of a domain, or those that a publication stored. Raises BadCondition, TookTooLong;
        `webarc query --help` describes conditions.
        """
        gate = self._gate
        narrowed = None if gate is None else reader_stores.narrowed(gate)
        return list(ask(self.archive.database, where, order_by, limit, narrowed=narrowed, origin=origin))

    def search(self, words: str, **narrowing: Any) -> SearchAnswer:
        """Return URLs with words, in the language of `webarc search --help`: 20 hits, and the number of all.

        `narrowing` are the fields of `webarcfs.search.searching.SearchQuestion`: `at` (a CommitTag or a time),
        `present`, `during`, `domain`, `type`, `language`, `publication`, `record`, `sort`, `limit`, `offset`, …. Raises
        BadCondition, NotFound without an index, UsageError without the libraries of webarcfs[search].
        """
        if find_spec("tantivy") is None:
            raise UsageError("search needs more libraries: pip install 'webarcfs[search]'")
        from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

        return Searcher(self.archive, self._gate).ask(SearchQuestion(words=words, **narrowing))

    def links(self, question: Question, seconds: float = SECONDS) -> Iterator[FoundLink]:
        """Yield links of pages, with the ARC of each target that is archived; `Question` says which.

        Raises NotFound without links.db, TookTooLong.
        """
        gate = self._gate
        reader = None if gate is None else ReaderLinks(gate, self._readers, question)
        return ask_links(self.archive, question, seconds, reader, arcs=True)

    def document(self, commit_tag: CommitTag | str, path: str) -> MetaData:
        """Return the document at `path` (`/<domain>/…`) in a snapshot, as `at` has it. Raises NotFound."""
        tag = _tag(commit_tag)
        found = self._repositories.document(tag, path)
        return _shown(metadata(found.store.read(found.entries[DATA_XML].oid)), tag, self._known(tag.domain))

    def arc(self, meta: MetaData) -> FoundArc:
        """Return the folder of a document in its snapshot, as the repository has it. Raises NotFound."""
        return self._repositories.arc(meta)

    def repository(self, domain: str) -> Repository:
        """Return the repository of a domain as the client sees it. Raises NotFound, Damaged."""
        return self._repositories.store(domain)

    def list(self, meta: MetaData) -> builtins.list[str]:
        """Return the names in a document's ARC in its snapshot, additions included (/Cl-7/). Raises NotFound."""
        arc = self._repositories.arc(meta)
        if folder := self._shown_in(meta):
            with family(meta.path):
                return sorted(os.listdir(folder))  # noqa: PTH208 # the path is a string already
        return [*arc.entries]

    def data_name(self, meta: MetaData) -> str:
        """Return the name of the document's data file (`data.html`). Raises NotFound."""
        for name, entry in self._repositories.arc(meta).entries.items():
            if is_data_file(name) and not entry.is_tree:
                return name
        raise NotFound(f"{meta.path} has no data file in {meta.commit_tag}")

    def open_read(self, meta: MetaData, name: str) -> BinaryIO:
        """Open a file of the document's ARC as a stream (/Cl-8/): `name` may be in users' folders. Raises NotFound."""
        arc, name = self._repositories.arc(meta), name.strip("/")
        if ".." in name.split("/"):
            raise NotFound(f"{name!r} leads out of {meta.path}")
        store, entry = arc.store, arc.entries.get(name)
        # Crawled files are equal in git, and faster there if small; git does not have recent additions yet.
        crawled = entry if name != DATA_XML and is_reserved(name) else None
        if crawled is not None and not crawled.is_tree and store.size(crawled.oid) <= LARGE:
            return io.BytesIO(store.read(crawled.oid))
        if folder := self._shown_in(meta):
            with family(f"{meta.path}/{name}"):
                return open(f"{folder}/{name}", "rb")  # noqa: PTH123 # the caller closes it
        entry = entry or store.find(arc.tree, name)
        if entry is None or entry.is_tree:
            raise NotFound(f"{meta.path} has no file {name!r} in {meta.commit_tag}")
        if store.size(entry.oid) <= LARGE:
            return io.BytesIO(store.read(entry.oid))
        with family(name):
            body = tempfile.TemporaryFile()  # noqa: SIM115 # the caller closes it
            store.copy(entry.oid, body.fileno())
            body.seek(0)
            return body

    @contextmanager
    def open_write(self, meta: MetaData, name: str) -> Iterator[BinaryIO]:
        """Open a new file in the document's ARC as a stream (/Cl-9/); it is kept if the `with` block raises nothing.

        Raises Exists for an existing name, Stale when a crawl replaced the document (/Ar-10/), NotPermitted where no
        addition is allowed, or for a client without a mount.
        """
        place = f"{meta.path}/{name}"
        with self._folders.current(meta) as folder, tempfile.SpooledTemporaryFile(LARGE) as body:
            if folder.has(name):
                raise Exists(f"{place} is there already")
            # A file closed in a mount stays for ever, so nothing from a failed block may get there.
            yield cast(BinaryIO, body)
            body.seek(0)
            folder.check()
            with family(place), folder.opened(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
                while piece := body.read(_PIECE):
                    write_all(fd, piece)

    # -- data nodes --------------------------------------------------------------------------------------------------

    def get_data(self, meta: MetaData, tag: str) -> ElementTree.Element | None:
        """Return the data node of an expanded name (`words`, `{urn:x}words`), or None (/Cl-10/)."""
        with self.open_read(meta, DATA_XML) as stream:
            document = stream.read()
        parse_element(document)  # refuses what is unsafe for the standard library's parser
        data = ElementTree.fromstring(document).find(_DATA)  # noqa: S314 # our own, checked when it was written
        return next((node for node in (data if data is not None else ()) if node.tag == tag), None)

    def add_data(self, meta: MetaData, tag: str, element: ElementTree.Element | str) -> None:
        """Add a data node (/Cl-11/): `element`, whose expanded name must be `tag`, or the text of a new element.

        Raises Exists for an existing name, InvalidDocument when a schema of the archive does not allow it, Stale,
        NotPermitted as `open_write` does.
        """
        if isinstance(element, str):
            text, element = element, ElementTree.Element(tag)
            element.text = text
        if element.tag != tag:
            raise InvalidDocument(f"the element is called {element.tag}, not {tag}")
        with (
            self._folders.current(meta) as folder,
            family(f"{meta.path}/{DATA_XML}"),
            folder.opened(DATA_XML, os.O_WRONLY | os.O_APPEND) as fd,
        ):
            os.write(fd, ElementTree.tostring(element, "unicode").encode("utf-8", "xmlcharrefreplace"))

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def domains(self) -> builtins.list[str]:
        """Return the domains of the archive, in order."""
        gate = self._gate
        return builtins.list(self.archive.domains()) if gate is None else gate.domains()

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield the records of captures, or of a publication's, newest first: those that the client may see.

        Raises Damaged.
        """
        gate = self._gate
        return Catalogue(self.archive).records(publication) if gate is None else gate.records(publication)

    def snapshots(self, domain: str) -> builtins.list[CommitTag]:
        """Return the commitTags of a domain, oldest first. Raises NotFound."""
        return [tag for tag, _ in versions.snapshots(self._repositories.store(domain), domain)]

    def at(self, commit_tag: CommitTag | str, *, after: str = "") -> Iterator[MetaData]:
        """Yield all documents of a snapshot, by folders; as `select`, but read from git. Raises NotFound.

        `after` is the path of a document (`/<domain>/…`): it yields those that come after that one.
        """
        tag = _tag(commit_tag)
        store = self._repositories.store(tag.domain)
        arcs = versions.arcs(store, store.snapshot_tree(tag))
        if after and not any(f"/{tag.domain}/{arc.path}" == after for arc in arcs):
            raise NotFound(f"{tag} has no document {after}")
        known = self._known(tag.domain)
        return (_shown(versions.described(store, arc), tag, known) for arc in arcs)

    def changed(self, commit_tag: CommitTag | str) -> Iterator[MetaData]:
        """Yield the documents that a snapshot added, or of which it stored another version. Raises NotFound."""
        tag = _tag(commit_tag)
        store = self._repositories.store(tag.domain)
        known = self._known(tag.domain)
        if known is None:
            return versions.stored_by(store, tag)
        # What a hidden snapshot stored is new to the reader where a visible one has it first.
        return (_shown(meta, tag, known) for meta in versions.differing(store, tag))

    # -- news --------------------------------------------------------------------------------------------------------

    def add_observer(self, observer: Observer, since: CommitTag | str | None = None) -> None:
        """Call `observer` with the list of new commitTags, in order, from a thread of its own (/Cl-4/, /Cl-5/).

        It begins after `since`, the last tag that it remembers, or with later publications only. A call that raises is
        logged, and its tags are delivered again, with newer ones. A reader's observer gets the tags that the reader may
        see when they are delivered. Raises NotFound when the feed has no such tag.
        """
        self._news.add(observer, None if since is None else str(_tag(since)), self._is_shown)

    def remove_observer(self, observer: Observer) -> None:
        """Stop calling it; on return no call is under way, unless the observer itself is the caller."""
        self._news.remove(observer)

    # ----------------------------------------------------------------------------------------------------------------

    def _known(self, domain: str) -> Set[CommitTag] | None:
        """Return the snapshots of a domain that the client sees; None for all."""
        return None if self._gate is None else set(self.snapshots(domain))

    @property
    def _gate(self) -> Gate | None:
        """The gate; None where nothing is hidden from staff."""
        return self._of_client if self._of_client.is_needed else None

    def _is_shown(self, tag: CommitTag) -> bool:
        """Return whether the client may see a snapshot. Called in the observers' thread."""
        own = self._of_client
        gate = StaffGate(self.archive) if own.is_staff else Gate(self.archive, own.reader)
        if not gate.is_needed:
            return True
        snapshot = gate.standing(tag)
        return snapshot is not None and snapshot.standing is Standing.OPEN

    def _shown_in(self, meta: MetaData) -> str:
        """Return the path of a document's ARC in the mount, or an empty one: only the newest snapshot can grow."""
        if self.mount is None:
            return ""
        if self._repositories.is_newest(meta.commit_tag):
            return f"{self.mount}{meta.path}"
        return f"{self.mount}/.snapshots/{meta.commit_tag}{meta.path}"


def _found(place: Path) -> tuple[Path | None, Archive]:
    """Return the mount that contains `place`, if any, and the archive."""
    if mount_and_archive := behind(place):
        return mount_and_archive
    if not place.is_dir():
        raise NotAnArchive(f"there is no folder {place}")
    return None, directory.open_archive(place)


def _tag(tag: CommitTag | str) -> CommitTag:
    return tag if isinstance(tag, CommitTag) else CommitTag.parse(tag)


def _shown(meta: MetaData, tag: CommitTag, known: Set[CommitTag] | None) -> MetaData:
    """Return a document's metadata in a snapshot: crawlTime and commitTag are the snapshot's.

    So is the time of capture, if a reader does not know the snapshot that stored it; `known` is None for all.
    """
    is_known = known is None or meta.commit_tag in known
    captured = None if meta.capture_time == tag.crawl_time or not is_known else meta.capture_time
    return dataclasses.replace(meta, crawl_time=tag.crawl_time, commit_tag=tag, captured=captured)
