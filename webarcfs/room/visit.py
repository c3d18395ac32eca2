"""A request to the room: who asks, in which language, and the archive as that reader may see it. For one thread.

A proxy in front of the archive's servers may pass the name of a reader. Only addresses of `[readers] proxies` are
believed. Anybody else is the public, whatever the request says. A client of a unix socket has no address; it is
believed where `unix` is among the proxies.

Handlers ask `Services`: the archive as one reader may see it, with everything that stays open between requests.
`Shared` is one for a worker, and safe for any thread. `Services` are of one thread and one reader: SQLite's connections
and gates are not shared between threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from webarcfs.access.gate import KnownGate, Reader
from webarcfs.access.reader_collections import CollectionsNow, VisibleCollections
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderLinks, ReaderRecords
from webarcfs.access.visible_captures import VisibleCapture, VisibleCaptures
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import ReadersSettings, Settings
from webarcfs.archive.config.validators import UNIX
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.errors import SettingsError, UsageError
from webarcfs.archive.system.cache import Cache, identity
from webarcfs.content.references import References
from webarcfs.warc.http_response import blank_response
from webarcfs.web import limits
from webarcfs.web.ranges import body_in_pieces
from webarcfs.web.table_files import MEDIA_TYPES, TableFile

if TYPE_CHECKING:
    from webarcfs.archive.index.links import Question
    from webarcfs.search.searching import Searcher


# == trusted proxy, pure ==============================================================================================


#: Longest name of a reader that is believed.
_LONGEST = 200


def reader_of(settings: ReadersSettings, peer: str, headers: Mapping[str, str]) -> Reader:
    """Return the reader of a request from the address `peer`, or `unix`; the public if no trusted proxy names one.

    The names of headers have any case. A name with unprintable characters, or of several readers, is none.
    """
    if not settings.header or not is_trusted(settings, peer):
        return Reader()
    names = [value.strip() for name, value in headers.items() if name.casefold() == settings.header.casefold()]
    name = names[0] if len(names) == 1 else ""
    return Reader(name) if name.isprintable() and len(name) <= _LONGEST and "," not in name else Reader()


def is_trusted(settings: ReadersSettings, peer: str) -> bool:
    """Return whether a client is a proxy that is believed."""
    if peer == UNIX:
        return UNIX in settings.proxies
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in ip_network(proxy) for proxy in settings.proxies if proxy != UNIX)


# == services =========================================================================================================


#: Readers whose gates a thread keeps.
_READERS = 16


@dataclass(frozen=True, slots=True)
class Evidence:
    """How far a capture can be relied on, by its data.xml.

    `copy` is what it was taken from; empty for what a server sent to a crawler. `certificate` has the words for what
    was wrong with the server's, which the crawl took all the same. `rendered` is the tree of what a browser showed, and
    `captured` the time at which the version was captured.
    """

    copy: str = ""
    certificate: tuple[str, ...] = ()
    rendered: str = ""
    captured: datetime | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """What all threads of a worker share: repositories and caches, each with its bound."""

    archive: Archive
    repositories: Cache[str, Repository] = field(default_factory=lambda: Cache(limits.REPOSITORIES))
    #: Blob and kind of reading → the references of a body.
    references: Cache[tuple[str, str], References] = field(
        default_factory=lambda: Cache(limits.REWRITER_CACHE_BYTES, lambda references: references.weight)
    )
    #: Blob of a data.xml → what it says of its capture.
    evidence: Cache[str, Evidence] = field(default_factory=lambda: Cache(limits.EVIDENCE))
    #: Domain and tree of what a browser showed → the files of that, by their names.
    forms: Cache[tuple[str, str], Mapping[str, str]] = field(default_factory=lambda: Cache(limits.EVIDENCE))
    #: Blob of a page → whether it has code that a browser would run.
    scripted: Cache[str, bool] = field(default_factory=lambda: Cache(limits.SCRIPTED))
    #: Domain, snapshot, and what was hidden → counts of it.
    counts: Cache[object, object] = field(default_factory=lambda: Cache(limits.COUNTS))
    distances: Cache[object, tuple[int | None, str]] = field(default_factory=lambda: Cache(limits.DISTANCES))
    collections: VisibleCollections = field(init=False)
    _settings: _KnownSettings = field(default_factory=lambda: _KnownSettings())  # noqa: PLW0108 # it is defined below

    def __post_init__(self) -> None:
        object.__setattr__(self, "collections", VisibleCollections(self.archive))

    def repository(self, domain: str) -> Repository:
        """Return the repository of a domain; several threads may read it at once."""
        return self.repositories.get(domain, lambda: Repository(self.archive.repository(domain)))

    def body(self, domain: str, blob: str) -> bytes:
        """Return a body as a whole. Raises Damaged."""
        return self.repository(domain).read(blob)

    def body_in_pieces(self, domain: str, blob: str, size: int, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a body from `start` up to `end`; a large one is not held in memory."""
        yield from body_in_pieces(self.repository(domain), blob, size, start, end)

    def settings(self) -> Settings:
        """Return webarc.toml and publications.d as they are now; with faults, as they were last, or the defaults."""
        return self._settings.now(self.archive)


class _KnownSettings:
    """Settings, read again when their files change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[object, Settings] = (None, Settings())

    def now(self, archive: Archive) -> Settings:
        state = identity(archive.settings, archive.publications)
        with self._lock:
            if state != self._known[0]:
                try:
                    self._known = state, settings_files.load(archive.settings)[0]
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
        self._settings: Settings | None = None

    def look(self, settings: Settings | None = None) -> None:
        """Notice what changed in the archive since the last request. Raises what the gate raises.

        `settings` are those that were read for this request already: it costs a look at each publication's file.
        """
        self._settings = settings
        self.gate.look()
        self.gate.rules()

    def settings(self) -> Settings:
        """Return the settings as they were when they were first asked for in this request: a list asks for each row."""
        if self._settings is None:
            self._settings = self.shared.settings()
        return self._settings

    def collections(self) -> CollectionsNow:
        """Return the collections that readers see, as they are now."""
        return self.shared.collections.now(self.records)

    @property
    def has_search(self) -> bool:
        """Whether there is a full-text index, and the libraries for it."""
        return find_spec("tantivy") is not None and (self.archive.search / "current").exists()

    def shown_head(self, domain: str, capture: VisibleCapture, head: bytes) -> bytes:
        """Return the archived head of a capture as the reader may see it; the same object if that is all of it."""
        blanked = blank_response(head)
        if blanked is head or not self.gate.hides_headers(self.shared.repository(domain), capture.stored):
            return head
        return blanked

    def searcher(self) -> Searcher:
        """Return the searcher of the reader. Raises NotFound without an index."""
        if self._searcher is None:
            from webarcfs.search.searching import Searcher  # noqa: PLC0415 # of the extra `search`

            self._searcher = Searcher(self.archive, self.gate, self.shared.collections)
        return self._searcher

    def link_reader(self, question: Question) -> ReaderLinks | None:
        """Return what narrows links to the reader; None where nothing is hidden."""
        if not self.gate.rules().rules and all(self.gate.facts(domain).is_whole for domain in self.archive.domains()):
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

    def of(self, reader: Reader, settings: Settings | None = None) -> Services:
        """Return the services of a reader in this thread, in step with the archive; `settings` as `look` has them."""
        services = self._known.get(reader)
        if services is None:
            services = self._known[reader] = Services(self._shared, reader)
            while len(self._known) > _READERS:
                self._known.popitem(last=False)[1].close()
        self._known.move_to_end(reader)
        services.look(settings)
        return services


# == visit ============================================================================================================


#: Most parameters of a query that are read.
_MOST = 100


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the room and replay are: `replay` and `room` are origins, both empty where they are one.

    `base` is the room's origin in any case, as far as it is known, for URLs that others read. `runs_scripts`: replay is
    pywb's engine. `prefix` precedes the paths of frames and notices, where another server shows them below a path.
    """

    room: str = ""
    replay: str = ""
    base: str = ""
    runs_scripts: bool = False
    prefix: str = ""

    @property
    def pages(self) -> str:
        """What precedes the paths of frames and notices in links of archived pages."""
        return self.room + self.prefix


class Renderer(Protocol):
    """Makes the HTML of a page."""

    def __call__(self, template: str, values: Mapping[str, object], visit: Visit, /) -> str:
        """Return a page in the language of the visit."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, with what its handler needs. `token` precedes paths of replay for readers with rights."""

    request: Request
    reader: Reader
    language: str
    services: Services
    origins: Origins
    renderer: Renderer = field(repr=False)
    token: str = ""
    key: str = field(default="", repr=False)

    def page(
        self,
        template: str,
        /,
        *,
        http_status: int = 200,
        http_headers: Mapping[str, str] | None = None,
        **values: object,
    ) -> Response:
        """Return a page of the room, which its template makes of these values."""
        headers = {"Cache-Control": self.caching, "Vary": "Accept-Language", **(http_headers or {})}
        return HTMLResponse(self.renderer(template, values, self), http_status, headers)

    def file(self, body: bytes, media_type: str) -> Response:
        """Return what is no page."""
        return Response(body, media_type=media_type, headers={"Cache-Control": self.caching})

    def table(self, table: TableFile, kind: str) -> Response:
        """Return a list as a file of a kind. Raises TooMany."""
        return self.file(table.written(kind), MEDIA_TYPES[kind])

    def led(self, place: str) -> Response:
        """Return a redirect."""
        return Response(status_code=302, headers={"Location": place, "Cache-Control": self.caching})

    @property
    def caching(self) -> str:
        """The Cache-Control of a response. It depends on the reader, and is judged each time: caches must ask again."""
        return "private, no-store" if self.reader.name else "no-cache"

    @property
    def names_purpose(self) -> bool:
        """Whether a browser asks that trusts the address: it says what for (Fetch Metadata), and no program does."""
        return "sec-fetch-mode" in self.request.headers

    @property
    def is_from_browser(self) -> bool:
        """Whether a browser asks, or a program that calls itself one: each of them says that it is Mozilla."""
        return self.names_purpose or self.request.headers.get("user-agent", "").startswith("Mozilla/")

    @property
    def raw_path(self) -> bytes:
        """The path as it was sent, undecoded and without the query."""
        scope = self.request.scope
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        return path.partition(b"?")[0]

    @property
    def base(self) -> str:
        """The address of the site, for programs that follow what an answer says."""
        return self.origins.base or str(self.request.base_url).rstrip("/")

    @property
    def query(self) -> bytes:
        """The query as it was sent."""
        raw_query: bytes = self.request.scope["query_string"]
        return raw_query

    def parameters(self) -> dict[str, list[str]]:
        """Return the parameters of the query, in their order. Raises UsageError for too many."""
        values_by_name: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(self.query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST)
        except ValueError:
            raise UsageError(f"a query has {_MOST} parameters at most") from None
        for name, value in pairs:
            values_by_name.setdefault(name, []).append(value)
        return values_by_name

    def parameter(self, name: str) -> str:
        """Return the last value of a parameter, or an empty text."""
        return self.parameters().get(name, [""])[-1].strip()

    def given(self, names: Iterable[str]) -> dict[str, str]:
        """Return those of some parameters that have a value."""
        return {name: value for name in names if (value := self.parameter(name))}

    def with_parameters(self, path: str = "", /, **changes: str | int | None) -> str:
        """Return the path with the query changed: None or an empty text takes a parameter out."""
        parameters = {name: values for name, values in self.parameters().items() if name not in changes and any(values)}
        parameters |= {name: [str(value)] for name, value in changes.items() if value not in (None, "")}
        query = urlencode(parameters, doseq=True)
        here = path or self.request.scope["path"]
        return f"{here}?{query}" if query else str(here)
