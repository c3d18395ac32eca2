"""Gateways for tests: an archive with persons and tokens, served over real HTTP in a thread, and programs that ask."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import uvicorn

from agent.gateway.gateway_app import Gateway
from tests.support.waiting import until
from webarcfs.api.routes import PREFIX
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.web.access_log import AccessLog, Logged

#: Person → role.
PEOPLE = {"carl": ("Carl Curator", "curator"), "anna": ("Anna", "archivist"), "adam": ("Adam", "administrator")}


def with_persons(archive: Archive) -> None:
    """Write people.toml."""
    tables = [f'[person.{key}]\nname = "{name}"\nroles = ["{role}"]\n' for key, (name, role) in PEOPLE.items()]
    archive.people.write_text("\n".join(tables), "utf-8")
    archive.people.chmod(0o600)


def token(archive: Archive, person: str, *scopes: Scope, name: str = "laptop") -> str:
    """Make a token of a person."""
    return people.add_token(archive, person, name, scopes, by=_acting(archive, person))[0]


def revoke(archive: Archive, person: str, name: str = "laptop") -> None:
    """Revoke a token of a person."""
    people.revoke_tokens(archive, person, [name], by=_acting(archive, person))


def _acting(archive: Archive, person: str) -> people.Acting:
    known = people.load(archive)
    assert known is not None
    return people.acting_person(known, known[person])


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """The status, and the class that a client raises."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        assert self.json["status"] == self.status
        return self.status, self.json["type"].rpartition(":")[2]


def place(tag: CommitTag | str, path: str, name: str = "", kind: str = "files") -> str:
    """The path of a file, or of what else a document has."""
    query = f"?name={quote(name.encode('utf-8', 'surrogateescape'), safe='/')}" if name else ""
    return f"{PREFIX}/{kind}/{tag}/{quote(path)}{query}"


@dataclass
class Program:
    """A program that asks with a token."""

    port: int
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = {**({"Authorization": f"Bearer {self.token}"} if self.token else {}), **self.headers, **(headers or {})}
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                connection.request(method, path, body, sent, encode_chunked=sent.get("Transfer-Encoding") == "chunked")
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Ask for something."""
        return self.ask("GET", path, None, headers)

    def put(self, tag: CommitTag, path: str, name: str, body: Any, **headers: str) -> Answer:
        """Add a file."""
        return self.ask("PUT", place(tag, path, name), body, {"If-None-Match": "*", **headers})

    def post(self, tag: CommitTag, path: str, name: str, body: bytes, kind: str = "application/xml") -> Answer:
        """Add a data node."""
        return self.ask("POST", place(tag, path, name, "nodes"), body, {"Content-Type": kind})

    def send_part(self, path: str, part: bytes, length: int | None, has_begun: Callable[[], bool]) -> None:
        """Begin to add a file, and go away in the middle; without a length, in chunks."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as own:
            how = f"Content-Length: {length}" if length is not None else "Transfer-Encoding: chunked"
            own.sendall(
                f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n{how}\r\n"
                f"Authorization: Bearer {self.token}\r\n\r\n".encode()
            )
            own.sendall(part if length is not None else b"%x\r\n%s\r\n" % (len(part), part))
            until(has_begun)


@dataclass
class ServedGateway:
    """A gateway that is served."""

    gateway: Gateway
    port: int

    def program(self, token: str = "", **headers: str) -> Program:
        """A program with a token."""
        return Program(self.port, token, headers)


@contextmanager
def served(archive: Archive, log: AccessLog | None = None) -> Iterator[ServedGateway]:
    """Serve an archive's gateway on a free port."""
    own = socket.socket()
    own.bind(("127.0.0.1", 0))
    own.listen(128)
    gateway = Gateway(archive, f"http://127.0.0.1:{own.getsockname()[1]}")
    app = gateway.app()
    gateway.start()
    ruled = Logged(app, log, "gateway") if log is not None else app
    server = uvicorn.Server(uvicorn.Config(ruled, log_level="warning", lifespan="off", proxy_headers=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield ServedGateway(gateway, own.getsockname()[1])
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(60)
        own.close()
        gateway.stop()
