"""A server for the built apps: each host of `BuiltApp` has its files and answers, as its own server would.

The files come from the wheels, which are never unpacked. Everything is served over HTTP/1.1, on one port of loopback;
the Host field tells the apps apart.
"""

from __future__ import annotations

import mimetypes
import re
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.app_answers import CannedAnswer
from tests.support.built_apps import BuiltApp

#: Types that Python's table lacks or has by an older name.
_MEDIA_TYPES = {
    ".js": "text/javascript", ".mjs": "text/javascript", ".woff2": "font/woff2", ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip
_FILLED_TYPES = ("text/", "application/json", "application/manifest+json")
#: A body of a request may have so many bytes.
_MOST_SENT = 100_000


class AppFiles:
    """The files of an app by their paths. Any thread may read them."""

    def __init__(self, app: BuiltApp) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._files = {} if isinstance(app.source, Path) else _members(app)

    def read(self, path: str) -> bytes | None:
        """Return the bytes at a path, or None where there is no such file."""
        if isinstance(self._app.source, Path):
            file = (self._app.source / path.lstrip("/")).resolve()
            return file.read_bytes() if file.is_file() and file.is_relative_to(self._app.source) else None
        found = self._files.get(path)
        if found is None:
            return None
        with self._lock:
            return found[0].read(found[1])


def _members(app: BuiltApp) -> dict[str, tuple[zipfile.ZipFile, str]]:
    assert not isinstance(app.source, Path)
    wheel = zipfile.ZipFile(app.source.path)
    files: dict[str, tuple[zipfile.ZipFile, str]] = {}
    for folder in app.folders:
        archive = zipfile.ZipFile(BytesIO(wheel.read(folder.archive))) if folder.archive else wheel
        before = f"{folder.folder}/" if folder.folder else ""
        for name in archive.namelist():
            if name.startswith(before) and not name.endswith("/"):
                files.setdefault(f"{folder.path.rstrip('/')}/{name.removeprefix(before)}", (archive, name))
    return files


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A request that an app got: method, host, path with query, and the status of its answer."""

    method: str
    host: str
    path: str
    status: int


class _Server(ThreadingHTTPServer):
    """Says nothing of browsers that close a connection."""

    def handle_error(self, *about: Any) -> None:
        """Print what is no trouble of a connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*about)


class AppServer:
    """The running server: its port, and the requests that it got."""

    def __init__(self, apps: Sequence[BuiltApp]) -> None:
        self.apps = {app.host: app for app in apps}
        self.files = {app.host: AppFiles(app) for app in apps}
        self.seen: list[RequestSeen] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        """Serve, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving, and close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def answer(self, method: str, host: str, target: str, body: bytes, is_page: bool) -> CannedAnswer:
        """Return what the app at a host answers; `is_page` is whether a browser asks for a page."""
        app = self.apps.get(host)
        if app is None:
            return CannedAnswer(b"no such app", "text/plain", 404)
        path = unquote(urlsplit(target).path)
        text = body.decode("utf-8", "replace")
        for key in (f"{method} {target} {text}", f"{method} {target}", f"{method} {path} {text}", f"{method} {path}"):
            if key in app.answers:
                return app.answers[key]
        if method not in ("GET", "HEAD"):
            return CannedAnswer(b'{"detail": "unknown"}', status=404)
        start_file = f"/{app.start_file.lstrip('/')}"
        file = self.files[host].read(path)
        if file is None and (path == app.start or (app.has_history and is_page)):
            path, file = start_file, self.files[host].read(start_file)
        if file is None:
            return CannedAnswer(b'{"detail": "unknown"}', status=404)
        media_type = _media_type(path)
        if media_type.startswith(_FILLED_TYPES):
            for placeholder, value in app.filled.items():
                file = file.replace(placeholder.encode(), value.encode())
        return CannedAnswer(file, media_type)


def _media_type(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return _MEDIA_TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def _handler(server: AppServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= _MOST_SENT:
                self.send_error(413)
                return
            body = self.rfile.read(length)
            target = (
                self.path if self.path.startswith("/") else urlsplit(self.path)._replace(scheme="", netloc="").geturl()
            )
            host = (self.headers.get("Host") or "").partition(":")[0]
            is_page = "text/html" in self.headers.get("Accept", "")
            answer = server.answer(self.command, host, target, body, is_page)
            content, span = _ranged(answer, self.headers.get("Range", ""))
            status = 206 if span else answer.status
            server.seen.append(RequestSeen(self.command, host, target, status))
            self.send_response(status)
            self.send_header("Content-Type", answer.media_type)
            self.send_header("Content-Length", str(len(content)))
            if span:
                self.send_header("Content-Range", span)
            if answer.media_type.startswith("video/"):
                self.send_header("Accept-Ranges", "bytes")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = _answer  # noqa: N815 # names of http.server

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


def _ranged(answer: CannedAnswer, asked: str) -> tuple[bytes, str]:
    """Return the bytes that a Range field asks for of a video, and the Content-Range; else all of them and ""."""
    span = re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
    size = len(answer.body)
    if span is None or answer.status != 200 or not answer.media_type.startswith("video/") or int(span[1]) >= size:
        return answer.body, ""
    last = min(int(span[2] or size - 1), size - 1)
    return answer.body[int(span[1]) : last + 1], f"bytes {span[1]}-{last}/{size}"


@contextmanager
def serving(apps: Sequence[BuiltApp]) -> Iterator[AppServer]:
    """Serve apps."""
    server = AppServer(apps)
    server.start()
    try:
        yield server
    finally:
        server.stop()
