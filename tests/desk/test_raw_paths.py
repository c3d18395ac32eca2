"""Archived URLs in paths come to replay as they were sent: in the room, and in previews of the desk; TCP and Unix."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import ASGIApp

from agent.desk.server import app as desk_app
from agent.desk.visit import Desk
from agent.indexing.recovery import recover
from tests.desk.conftest import DOMAIN, record_id, when
from tests.support import archives, desks
from tests.support.rooms import Page, digits, published
from webarcfs.archive.config.directory import Archive
from webarcfs.room.server import app as room_app
from webarcfs.room.server.options import RoomOptions
from webarcfs.web.connections import RequestRules

pytestmark = pytest.mark.store
_HOME = f"http://{DOMAIN}/"
_IDN = "http://xn--bcher-kva.example/"
#: URLs that differ in what a server might decode, fold or cut off.
URLS = (
    _HOME, f"{_HOME}a/b", f"{_HOME}a%2Fb", f"{_HOME}a%23b", f"{_HOME}a%3Fb", f"{_HOME}a?b", f"{_HOME}a%0Ab",
    f"{_HOME}a%0A", f"{_HOME}a%FF", f"{_HOME}a%252Fb", f"{_HOME}a//b", f"{_HOME}/a", f"{_HOME}?u=%2F&v=%23", _IDN,
)  # fmt: skip
#: Spellings of those.
SAME = {
    f"{_HOME}x/../a/b": f"{_HOME}a/b", f"{_HOME}%2e%2e/a/b": f"{_HOME}a/b", f"{_HOME}./a%2fb": f"{_HOME}a%2Fb",
    f"http:/{DOMAIN}/": _HOME, DOMAIN: _HOME, f"http%3A%2F%2F{DOMAIN}%2Fa%3Fb": f"{_HOME}a?b",
    "http://b%C3%BCcher.example/": _IDN,
}  # fmt: skip
#: What is refused wherever it is asked for.
FAULTS = ("", f"http://user:word@{DOMAIN}/", "ftp://e.org/", "http://%00/", f"{_HOME}a\\b")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("raw"))
    for domain in (DOMAIN, "xn--bcher-kva.example"):
        pages = {url: Page(url.encode(), "text/plain") for url in URLS if f"//{domain}/" in url}
        published(made, domain, pages, when(0))
    recover(made)
    desks.with_people(made)
    return made


@contextlib.contextmanager
def serving(app: ASGIApp, listener: socket.socket) -> Iterator[None]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", proxy_headers=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


class Asking:
    """A program that is served. `prefix` precedes the paths of replay."""

    def __init__(self, address: tuple[str, int] | str, prefix: str) -> None:
        self.address, self.prefix = address, prefix

    def get(self, path: str) -> tuple[int, bytes]:
        """Send a path as it is."""
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        with socket.socket(family) as client:
            client.connect(self.address)
            head = f"GET {self.prefix}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            client.sendall(head.encode("latin-1"))
            with http.client.HTTPResponse(client) as response:
                response.begin()
                return response.status, response.read()


@pytest.fixture(scope="module", params=["room by TCP", "room by Unix", "desk by TCP", "desk by Unix"])
def asking(
    request: pytest.FixtureRequest, archive: Archive, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asking]:
    program, _, family = request.param.split()
    is_unix = family == "Unix"
    listener = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
    listener.bind(str(tmp_path_factory.mktemp("s") / "s") if is_unix else ("127.0.0.1", 0))
    prefix, app = "", None
    if program == "room":
        app = RequestRules(room_app.make(RoomOptions(archive=archive.root, origin="http://r", key=b"k")).room)
    else:
        desk = Desk(archive, b"a key of tests, 32 bytes long ..", origin="http://d", place="http://d")
        session, _ = desk.sessions.begin(desk.persons.all()["carl"])
        prefix, app = f"/s/{desk.tokens.preview(session.public, record_id(0))}", desk_app.make(desk)[0]
    with serving(app, listener):
        yield Asking(listener.getsockname(), prefix)


@pytest.mark.parametrize("url", [*URLS, *SAME])
def test_an_archived_url_comes_as_it_was_sent(asking: Asking, url: str) -> None:
    for modifier in ("mp_", "id_"):
        status, body = asking.get(f"/web/{digits(when(0))}{modifier}/{url}")
        assert (status, body) == (200, SAME.get(url, url).encode())


@pytest.mark.parametrize("url", FAULTS)
def test_what_is_no_archived_url_is_refused(asking: Asking, url: str) -> None:
    is_desk = bool(asking.prefix)  # without a session only what a page embeds is answered
    assert asking.get(f"/web/{digits(when(0))}mp_/{url}")[0] == (403 if is_desk else 400)


@pytest.mark.parametrize("count", range(1, 21))
def test_a_time_has_up_to_14_digits(asking: Asking, count: int) -> None:
    status, _ = asking.get(f"/web/{'2' * count}mp_/{_HOME}")
    assert status == (302 if count <= 14 else 403 if asking.prefix else 400)


@pytest.mark.parametrize(
    "path", ["/about%0A", "/%0A", "/snapshots%0A", "/about/", "/login%0A", "/web", "/timemap", "/status.jsonx"]
)
def test_a_path_of_ours_fits_as_a_whole(asking: Asking, path: str) -> None:
    assert Asking(asking.address, "").get(path)[0] == 404
