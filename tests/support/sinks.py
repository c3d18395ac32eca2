"""Receivers of notifications for tests: a real SMTP server with a `sendmail` before it, an HTTP server, programs."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from agent.notifying.changes import Notification
from agent.notifying.notification_store import NotificationStore

_SENDMAIL = """#!{python} -S
import smtplib, sys
receivers = sys.argv[sys.argv.index("--") + 1:]
with smtplib.SMTP("127.0.0.1", {port}) as server:
    server.sendmail("agent@example.org", receivers, sys.stdin.buffer.read().replace(b"\\n", b"\\r\\n"))
"""


@dataclass(frozen=True)
class Mail:
    """A mail that arrived: by its envelope, and as its reader has it."""

    receivers: tuple[str, ...]
    message: EmailMessage

    @property
    def id(self) -> str:
        """The id of its notification."""
        return str(self.message["Message-ID"]).strip("<>").partition("@")[0]

    @property
    def text(self) -> str:
        """Its text."""
        return str(self.message.get_content())


@dataclass
class MailSink:
    """An SMTP server that keeps what arrives, and the program that delivers to it."""

    sendmail: Path
    mails: list[Mail] = field(default_factory=list)

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Keep a mail."""
        content = envelope.content or b""
        assert isinstance(content, bytes)
        message = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append(Mail(tuple(envelope.rcpt_tos), message))
        return "250 kept"


@contextmanager
def mail_sink(folder: Path) -> Iterator[MailSink]:
    """An SMTP server on a free port, and `sendmail` for it in `folder`."""
    sink = MailSink(folder / "sendmail")
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: SMTP(sink, loop=loop), "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        port = server.sockets[0].getsockname()[1]
        program(sink.sendmail, _SENDMAIL.format(python=sys.executable, port=port))
        yield sink
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass(frozen=True)
class Posted:
    """A request that arrived; names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        """Its JSON."""
        return dict(json.loads(self.body))


@dataclass
class HttpSink:
    """An HTTP server that keeps what arrives, and answers with `status` and `headers`."""

    port: int = 0
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[Posted] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def http_sink() -> Iterator[HttpSink]:
    """An HTTP server on a free port."""
    sink = HttpSink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            names = {name.lower(): value for name, value in self.headers.items()}
            sink.requests.append(Posted(self.path, names, body))
            self.send_response(sink.status)
            for name, value in sink.headers.items():
                self.send_header(name, value)
            if sink.status != 204:
                self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sink.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()


def program(path: Path, text: str) -> Path:
    """A program with this text."""
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


def recorder(path: Path, into: Path) -> Path:
    """A program that adds each JSON that it gets to a file."""
    return program(path, f"#!/bin/sh\nexec cat >> '{into}'\n")


def recorded(into: Path) -> list[dict[str, Any]]:
    """What the program of `recorder` got."""
    return [json.loads(line) for line in into.read_text("utf-8").splitlines()] if into.exists() else []


def queue(store: NotificationStore, notifications: Iterable[Notification], target: str, at: datetime) -> None:
    """Queue notifications for a target, as if they followed from what was observed."""
    queued = tuple(notifications)
    store.take(lambda known, _: (known, {}, queued), [target], at)


def settings(*, disk_free: str = "0", **values: str | bool | Sequence[str]) -> str:
    """The table [notify], its values as JSON spells them, which is TOML for these."""
    lines = [
        f"{name} = {json.dumps(value if isinstance(value, str | bool) else list(value))}"
        for name, value in values.items()
    ]
    return "\n".join(["[notify]", f'disk_free = "{disk_free}"' if disk_free != "0" else "", *lines, ""])
