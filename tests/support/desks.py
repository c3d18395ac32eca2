"""Desks for tests: an archive with people, served over real HTTP in a thread, and clients that fill in its forms."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

import uvicorn
from argon2 import PasswordHasher
from lxml import html

from agent.desk.server.app import make
from agent.desk.visit import Desk
from webarcfs.archive.config.directory import Archive

PASSWORD = "correct horse battery"
#: Person → role; the name is what records tell.
PEOPLE = {"anna": ("Anna \u4f8b", "archivist"), "adam": ("Adam", "administrator"), "rita": ("Rita", "reviewer"),
          "carl": ("Carl", "curator"), "bert": ("Bert", "archivist")}  # fmt: skip
_HASHES: dict[str, str] = {}


def with_people(archive: Archive, names: Sequence[str] = tuple(PEOPLE)) -> None:
    """Write people.toml; all have the same password, whose hash costs less than those of real ones."""
    if not _HASHES:
        _HASHES["all"] = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
    tables = [
        f'[person.{key}]\nname = "{PEOPLE[key][0]}"\nrole = "{PEOPLE[key][1]}"\npassword = "{_HASHES["all"]}"\n'
        for key in names
    ]
    archive.people.write_text("# people write comments\n" + "\n".join(tables), "utf-8")
    archive.people.chmod(0o600)


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    path: str = ""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    @property
    def page(self) -> html.HtmlElement:
        """The body as a page."""
        return html.fromstring(self.body.decode("utf-8"))

    @property
    def words(self) -> str:
        """What people read of the page."""
        return " ".join(self.page.find("body").text_content().split())

    def form(self, action: str) -> dict[str, list[str]]:
        """The fields of the form with an action, as a browser would send them."""
        found = next(iter(self.page.xpath(f'//form[@action="{action}"]')), None)
        assert found is not None, (action, [each.get("action") for each in self.page.xpath("//form")])
        own = found.get("id")
        elements = found.xpath(".//input|.//select|.//textarea")
        elements += self.page.xpath(f'//*[@form="{own}"]') if own else []
        fields: dict[str, list[str]] = {}
        for each in elements:
            name, kind = each.get("name"), each.get("type")
            if not name or (kind in ("checkbox", "radio") and each.get("checked") is None):
                continue
            if each.tag == "select":
                chosen = each.xpath("option[@selected]") or each.xpath("option")[:1]
                value = chosen[0].get("value", "") if chosen else ""
            elif each.tag == "textarea":
                value = (each.text or "").removeprefix("\n")
            elif each.tag == "button":
                continue
            else:
                value = each.get("value", "on" if kind == "checkbox" else "")
            fields.setdefault(name, []).append(value)
        return fields


@dataclass
class Client:
    """A browser without scripts: keeps cookies, follows nothing unless asked."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = {"Accept-Language": "en", **self.headers, **(headers or {})}
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        try:
            with suppress(
                BrokenPipeError, ConnectionResetError
            ):  # refused before all of it was sent: the answer is there
                connection.request(method, path, body, sent)
            response = connection.getresponse()
            content = response.read()
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self.cookies[key] = rest.partition(";")[0].strip('"')
                    if not self.cookies[key]:
                        del self.cookies[key]
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, content, path)
        finally:
            connection.close()

    def get(self, path: str, *, follow: bool = True) -> Answer:
        """Ask for a page."""
        answer = self.ask("GET", path)
        while follow and answer.status in (302, 303, 301):
            answer = self.ask("GET", answer.headers["location"])
        return answer

    def post(
        self, path: str, fields: Mapping[str, str | Sequence[str]], *, follow: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """Send a form."""
        body = urlencode(fields, doseq=True).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        answer = self.ask("POST", path, body, kind)
        return self.get(answer.headers["location"]) if follow and answer.status == 303 else answer

    def submit(
        self, page: Answer, action: str, changes: Mapping[str, str | Sequence[str]] | None = None, *,
        to: str = "", follow: bool = True,
    ) -> Answer:  # fmt: skip
        """Fill in a form of a page, and send it; `to` is another address for it, as a button may say."""
        return self.post(to or action, {**page.form(action), **(changes or {})}, follow=follow)

    def send_file(
        self, page: Answer, action: str, name: str, body: bytes, changes: Mapping[str, str] | None = None, *,
        follow: bool = True, cut: int = 0,
    ) -> Answer:  # fmt: skip
        """Fill in a form with a file, and send it as browsers do, without the last `cut` bytes."""
        mark = b"----a-boundary-7d81b516112482"
        fields = {**page.form(action), **(changes or {})}
        fields.pop("file", None)
        parts = [f'name="{key}"\r\n\r\n'.encode() + "".join(value).encode() for key, value in fields.items()]
        parts.append(f'name="file"; filename="{name}"\r\nContent-Type: text/html\r\n\r\n'.encode() + body)
        sent = b"".join(b"--%s\r\nContent-Disposition: form-data; %s\r\n" % (mark, each) for each in parts)
        sent = (sent + b"--%s--\r\n" % mark)[: -cut or None]
        answer = self.ask("POST", action, sent, {"Content-Type": f"multipart/form-data; boundary={mark.decode()}"})
        return self.get(answer.headers["location"]) if follow and answer.status == 303 else answer

    def stranger(self) -> Client:
        """A browser with cookies of the same names, and other values."""
        return Client(self.port, {name: f"{value}x" for name, value in self.cookies.items()})

    def login(self, name: str, password: str = PASSWORD) -> Answer:
        """Log in."""
        return self.submit(self.get("/login"), "/login", {"name": name, "password": password})


@dataclass
class ServedDesk:
    """A desk that is served."""

    desk: Desk
    port: int

    @property
    def origin(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def client(self, name: str = "") -> Client:
        """A new client, logged in as a person."""
        made = Client(self.port)
        if name:  # as a login does it, without the time that a hash takes
            _, made.cookies[self.desk.sessions.cookie] = self.desk.sessions.begin(self.desk.persons.all()[name])
        return made


@contextmanager
def served(archive: Archive, *, origin: str = "") -> Iterator[ServedDesk]:
    """Serve an archive's desk on a free port."""
    own = socket.socket()
    own.bind(("127.0.0.1", 0))
    own.listen(128)
    port = own.getsockname()[1]
    place = origin or f"http://127.0.0.1:{port}"
    desk = Desk(archive, b"a key of tests, 32 bytes long ..", origin=place, place=place)
    app, _ = make(desk)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", proxy_headers=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield ServedDesk(desk, port)
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(60)
        own.close()
