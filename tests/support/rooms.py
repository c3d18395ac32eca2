"""Archives for tests of the reading room, and rooms that serve them: real HTTP on loopback, in a thread of the test."""

from __future__ import annotations

import http.client
import mimetypes
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from tests.support import archives
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import CrawlPart, Record, RecordState, Value
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.metadata import CommitTag, CrawlMessage, MetaData, compact_time, utc
from webarcfs.archive.model.url_lists import Redirect, place_of, write_list
from webarcfs.archive.system.locks import Turnstile
from webarcfs.room.server import app
from webarcfs.room.server.options import RoomOptions
from webarcfs.web.connections import RequestRules, SecurityHeaders, room_headers, shared_headers

#: The sandboxed records of tests: enough fields for lists.
_KEY = b"a key of tests"


@dataclass(frozen=True)
class Page:
    """A document that is published: its body, and what data.xml and headers.http say of it."""

    body: bytes
    mime_type: str = "text/html"
    title: str = ""
    status: int = 200
    head: bytes = b""
    captured: datetime | None = None  # where the server sent it later than the crawl began

    @property
    def sent(self) -> bytes:
        """The head as the server sent it."""
        return self.head or f"HTTP/1.1 {self.status} X\r\nContent-Type: {self.mime_type}\r\n\r\n".encode()


def published(
    archive: Archive,
    domain: str,
    pages: Mapping[str, Page | None],
    when: datetime,
    *,
    publication: str = "p",
    state: RecordState | None = RecordState.RELEASED,
    held: bool = False,
    closed_for: str = "",
    redirects: Mapping[str, str] | None = None,
    signature: str = "5100",
    title: str = "",
    complete: bool = True,
    sources: Sequence[str] = (),
    resources: str = "",
) -> CommitTag:
    """Publish a capture: URL → page (None removes it), URL → target of a redirect; with its record.

    `sources` are digests of the files of an import, `resources` the trailer.
    """
    store = archives.store_of(archive, domain)
    head = store.head()
    tag = CommitTag(when, domain)
    base = head.tree if head else store.write_tree([])
    changes: dict[str, str | None] = {}
    for url, page in pages.items():
        path = arc_paths.split(arc_paths.arc_path(url))[1]
        changes |= dict.fromkeys(archives.own_files(store, base, path))
        if page is not None:
            meta = MetaData(
                url, page.mime_type, page.title or f"Title of {path}", f"/{domain}/{path}", domain, when, when, tag,
                captured=page.captured, status=page.status,
            )  # fmt: skip
            files = {
                arc_paths.data_name(url): page.body,
                arc_paths.DATA_XML: data_xml.describe(meta),
                arc_paths.HEADERS: page.sent,
            }
            changes |= {f"{path}/{name}": store.write_blob(content) for name, content in files.items()}
    for url, target in (redirects or {}).items():
        line = Redirect(url, 301, target, utc(when))
        changes[place_of(url)] = store.write_blob(write_list([line]))
    tree = store.edit(base, changes)
    number = sum(1 for _ in Feed(archive.changes).lines()) + 1
    job = f"{compact_time(when)}-{publication}"
    with Turnstile(archive.lock(domain)).exclusive():
        message = CrawlMessage(
            tag, publication, complete, number, job=job, held=held, sources=sources, resources=resources
        )
        archives.commit(store, tree, str(message), tag, new_tag=True)
        Feed(archive.changes).append(tag)
    if state is not None:
        recorded(
            archive, job, publication, [tag], state, held=held, closed_for=closed_for, signature=signature, title=title
        )
    return tag


def recorded(
    archive: Archive, job: str, publication: str, tags: list[CommitTag], state: RecordState, *, held: bool = False,
    closed_for: str = "", signature: str = "5100", title: str = "",
) -> None:  # fmt: skip
    """Write the record of a capture."""
    values = {2: Value(signature), 3: Value("office"), 4: Value("Internet"), 12: Value(tags[0].domain)}
    record = Record(
        id=job, number=0, publication=publication, state=state, complete=True, closed_for=closed_for,
        title=Value(title or f"Internet: {tags[0].domain}"), values=values,
        parts=tuple(CrawlPart(tag, True, "", held) for tag in tags),
    )  # fmt: skip
    Catalogue(archive).save([record], "test", job)


def pages_of(root: Path, domain: str, names: list[str]) -> dict[str, Page]:
    """Files below a folder as the pages of a site."""
    found = {}
    for name in names:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        found[f"http://{domain}/{name}"] = Page((root / name).read_bytes(), kind)
    return found


def digits(when: datetime) -> str:
    """The digits of a time in URLs."""
    return when.astimezone(UTC).strftime("%Y%m%d%H%M%S")


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def without_date(self) -> dict[str, str]:
        """The headers, but for the time of the answer."""
        return {name: value for name, value in self.headers.items() if name != "date"}


class Served:
    """A room that is served: asked without following anything."""

    def __init__(self, port: int, replay_port: int | None) -> None:
        self.port = port
        self.replay_port = replay_port

    @property
    def origin(self) -> str:
        """Where the room is."""
        return f"http://127.0.0.1:{self.port}"

    def get(
        self, path: str | bytes, headers: Mapping[str, str] | None = None, *, method: str = "GET", replay: bool = False
    ) -> Answer:
        """Ask for a path, sent as it is."""
        text = path.decode("latin-1") if isinstance(path, bytes) else path
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.replay_port if replay and self.replay_port else self.port
        )
        connection._validate_path = lambda _: None  # type: ignore[attr-defined] # broken paths are part of the tests
        connection._encode_request = lambda request: request.encode("latin-1")  # type: ignore[attr-defined]
        try:
            connection.putrequest(method, text, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            body = response.read()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
        finally:
            connection.close()


@contextmanager
def served(
    archive: Archive, *, two_origins: bool = False, origin: str = "", replay_origin: str = ""
) -> Iterator[Served]:
    """Serve an archive on free ports."""
    ports = [_socket() for _ in range(2 if two_origins else 1)]
    numbers = [each.getsockname()[1] for each in ports]
    options = RoomOptions(
        archive=archive.root,
        origin=origin or f"http://127.0.0.1:{numbers[0]}",
        replay_origin=(replay_origin or f"http://127.0.0.1:{numbers[1]}") if two_origins else "",
        key=_KEY,
    )
    apps = app.make(options)
    room = SecurityHeaders(RequestRules(apps.room), room_headers(options.replay_origin))
    replay = None if apps.replay is None else SecurityHeaders(RequestRules(apps.replay), shared_headers())
    with _running([(each, asgi) for each, asgi in zip(ports, (room, replay), strict=False) if asgi]):
        yield Served(numbers[0], numbers[1] if two_origins else None)


@contextmanager
def _running(pairs: list[tuple[socket.socket, ASGIApp]]) -> Iterator[None]:
    """Run apps on sockets, each in a thread."""
    servers = []
    for own, asgi in pairs:
        server = uvicorn.Server(uvicorn.Config(asgi, log_level="warning", lifespan="off", proxy_headers=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        servers.append((server, thread))
    try:
        while not all(server.started for server, _ in servers):
            time.sleep(0.01)
        yield
    finally:
        for server, _ in servers:
            server.should_exit = True
        for _, thread in servers:
            thread.join(60)


@contextmanager
def served_to_pywb(archive: Archive) -> Iterator[Served]:
    """Serve what pywb asks."""
    own = _socket()
    source = app.make(RoomOptions(archive=archive.root, origin="http://r", key=_KEY)).source
    assert source is not None
    with _running([(own, source)]):
        yield Served(own.getsockname()[1], None)


def _socket() -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", 0))
    return found
