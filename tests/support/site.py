"""A web site for tests: pages, folders of real files and misbehaviour, under any number of host names, on loopback.

    with Site() as site:
        site.add_html("/", '<a href="a.html">a</a>')
        site.mount("/usr/share/doc/postgresql-doc-15/html", at="/docs/")
        site.add_nasty("/broken", nasty.reset())
        site.add_html("/", "another host", host="b.example")      # reached through site.proxy

What is looked for, in this order: marked as gone, added, mounted; under the request's own host name, then under none.
So an added page lies over a mounted file, and what was registered without a host is on every host that the site knows:
its own address and each name ever given as `host`. A name it does not know is answered by `site.unknown_host`.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from io import FileIO
from mimetypes import MimeTypes
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import unquote

from tests.support.wire import HTML, Answer, Exchange, Page, Request, Server, error_page, head, listen, page, redirect

__all__ = ["HTML", "Answer", "Everywhere", "Exchange", "Folder", "Page", "Request", "Site", "Tree", "page", "redirect"]

_EVERY_HOST = ""
_NOT_FOUND = error_page(404)
_SMALL = 1 << 18
_PLAIN = re.compile(r"[A-Za-z0-9\-._~!*'();:@&=+$,/?]*", re.ASCII)
_TO_REWRITE = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!*'();:@&=+$,/?]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*'()")


class Tree(Protocol):
    """Many pages at once, such as a folder of files."""

    def find(self, path: str) -> Answer | None:
        """The page at `path`, which starts with `/`, or None."""


class Site:
    """Serves while its `with` block runs; port 0 is any free one. Changes take effect with the next request."""

    def __init__(self, port: int = 0, address: str = "127.0.0.1") -> None:
        listener = listen(port, address)
        self.port: int = listener.getsockname()[1]
        #: Name of the site itself, as it stands in its URLs.
        self.host = f"{address}:{self.port}"
        #: For `http_proxy`: every host name leads here.
        self.proxy = f"http://{self.host}"
        #: What answers, through the proxy, for host names that nobody registered.
        self.unknown_host: Answer = _bad_gateway
        self._server = Server(self._route, listener)
        self._hosts = {self.host, f"localhost:{self.port}"}
        self._pages: dict[tuple[str, str], Answer] = {}
        self._gone: dict[tuple[str, str], _Gone] = {}
        self._trees: dict[str, list[tuple[str, Tree]]] = {}
        self._log: list[Request] = []

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self._server.stop()
        if kind is None and self._server.errors:
            raise self._server.errors[0]

    def url(self, path: str = "/", host: str | None = None) -> str:
        """The URL of `path` here, or on one of the site's other names."""
        return f"http://{host or self.host}{path}"

    # What there is

    def add(  # noqa: PLR0917  the order of HTTP
        self,
        path: str,
        body: bytes | str = b"",
        content_type: str | None = HTML,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        host: str | None = None,
    ) -> str:
        """Put a page at `path`, in place of what was there or gone; returns its URL. `path` includes the query."""
        return self.add_nasty(path, page(body, content_type, status, headers), host)

    def add_html(self, path: str, body: str, title: str = "", host: str | None = None) -> str:
        """A page of HTML with this body element, in UTF-8."""
        text = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>"
        return self.add(path, text, host=host)

    def add_nasty(self, path: str, answer: Answer, host: str | None = None) -> str:
        """Put any behaviour at `path`: see `tests.support.nasty`."""
        key = self._key(path, host)
        self._pages[key] = answer
        self._gone.pop(key, None)
        return self.url(path, host)

    def remove(self, path: str, host: str | None = None) -> None:
        """Take an added page away (a mounted file below it shows again). KeyError where nothing was added."""
        del self._pages[self._key(path, host)]

    def mount(self, tree: Tree | Path | str, at: str = "/", host: str | None = None) -> None:
        """Serve a folder of files, or any Tree, below `at`. Longer places win over shorter ones, later over earlier."""
        served = Folder(tree) if isinstance(tree, (str, Path)) else tree
        name = self._know(host)
        trees = [(at.rstrip("/"), served), *self._trees.get(name, ())]
        self._trees[name] = sorted(trees, key=lambda place: -len(place[0]))

    def gone(self, path: str, status: int = 404, times: int | None = None, host: str | None = None) -> None:
        """Answer `status` for what is at `path`, added or mounted: `times` times, or until `back` or `add`."""
        self._gone[self._key(path, host)] = _Gone(status, times)

    def back(self, path: str, host: str | None = None) -> None:
        """Undo `gone`."""
        self._gone.pop(self._key(path, host), None)

    def add_host(self, *hosts: str) -> None:
        """Names under which the pages without a host are served too."""
        for host in hosts:
            self._know(host)

    # What was asked for

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in the order in which they came."""
        return list(self._log)

    def clear_log(self) -> None:
        """Forget the requests so far."""
        self._log.clear()

    def count(self, path: str, host: str | None = None) -> int:
        """How often `path` was asked for, on any host or on that one."""
        wanted = wire_path(path)
        return sum(wire_path(r.path) == wanted and host in (None, r.host) for r in self.requests)

    def max_open(self, host: str | None = None) -> int:
        """The greatest number of connections that were open to `host` (default: the site itself) at one time."""
        return self._server.max_open.get(host or self.host, 0)

    # How it is found

    def _know(self, host: str | None) -> str:
        if host is None or host == self.host:
            return _EVERY_HOST
        self._hosts.add(host.lower())
        return host.lower()

    def _key(self, path: str, host: str | None) -> tuple[str, str]:
        return self._know(host), wire_path(path)

    def _route(self, request: Request) -> Answer:
        self._log.append(request)
        if request.proxied and request.host not in self._hosts:
            return self.unknown_host
        path = wire_path(request.path)
        for host in (request.host, _EVERY_HOST):
            answer = self._find(host, path)
            if answer is not None:
                return answer
        return _NOT_FOUND

    def _find(self, host: str, path: str) -> Answer | None:
        key = (host, path)
        gone = self._gone.get(key)
        if gone is not None and gone.once_more():
            return gone.answer
        return self._pages.get(key) or self._find_mounted(host, path)

    def _find_mounted(self, host: str, path: str) -> Answer | None:
        for at, tree in self._trees.get(host, ()):
            if path == at:
                return to_folder
            if path.startswith(f"{at}/"):
                answer = tree.find(path[len(at) :])
                if answer is not None:
                    return answer
        return None


class _Gone:
    def __init__(self, status: int, times: int | None) -> None:
        self.answer = error_page(status)
        self._times = times
        self._count = itertools.count()

    def once_more(self) -> bool:
        return self._times is None or next(self._count) < self._times


class Folder:
    """A folder of files as a web server shows it: index.html for folders, 301 where their slash is missing."""

    def __init__(self, root: Path | str) -> None:
        self._root = str(Path(root).resolve(strict=True))

    def find(self, path: str) -> Answer | None:
        """The file at `path`; its query is ignored."""
        name = unquote(path.partition("?")[0], errors="surrogateescape")
        if "\0" in name or ".." in name.split("/"):
            return None
        return self._at(self._root + name)

    def _at(self, file: str) -> Answer | None:
        try:
            mode = os.stat(file).st_mode  # noqa: PTH116  a third of the time of Path.stat
        except OSError:
            return None
        if not stat.S_ISDIR(mode):
            return None if file.endswith("/") else FileAnswer(file)
        return self._at(f"{file}index.html") if file.endswith("/") else to_folder


class Everywhere:
    """The same Answer at every path of a Tree."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def find(self, path: str) -> Answer:  # noqa: ARG002
        """The Answer."""
        return self._answer


class FileAnswer:
    """A file's bytes as they are when asked for, its type by its name, Last-Modified from its mtime."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, exchange: Exchange) -> None:
        try:
            file = FileIO(self._path)
        except OSError:
            error_page(403)(exchange)
            return
        with file:
            info = os.fstat(file.fileno())
            answer = head(200, _describe(self._path, info))
            if exchange.request.method == "HEAD":
                exchange.send(answer)
            elif info.st_size <= _SMALL:
                exchange.send(answer + file.read(info.st_size))
            else:
                exchange.send(answer)
                exchange.send_file(file)


def _describe(name: str, info: os.stat_result) -> dict[str, str]:
    return {
        "Last-Modified": _http_date(int(info.st_mtime)),
        "Content-Type": content_type_of(name),
        "Content-Length": str(info.st_size),
    }


def to_folder(exchange: Exchange) -> None:
    """Answer for a folder's name without its slash."""
    path, mark, query = exchange.request.path.partition("?")
    redirect(f"http://{exchange.request.host}{path}/{mark}{query}", 301)(exchange)


def content_type_of(name: str) -> str:
    """By extension, from Python's own table, so that it does not depend on the machine."""
    return _type_of_extension(os.path.splitext(name)[1])  # noqa: PTH122  faster than Path.suffix


@lru_cache(maxsize=256)
def _type_of_extension(extension: str) -> str:
    guessed, encoding = MimeTypes().guess_type(f"x{extension}")
    return f"application/{encoding}" if encoding else guessed or "application/octet-stream"


@lru_cache(maxsize=4096)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def wire_path(path: str) -> str:
    """The one spelling of a path with its query: escapes in upper case, and only where RFC 3986 needs them.

    What is not ASCII is escaped as UTF-8, or as the byte that it was in the request.
    """
    if _PLAIN.fullmatch(path):
        return path
    return _TO_REWRITE.sub(_rewrite, path.encode("utf-8", "surrogateescape")).decode("ascii")


def _rewrite(match: re.Match[bytes]) -> bytes:
    found = match[0]
    byte = int(found[1:], 16) if len(found) == 3 else found[0]
    return bytes((byte,)) if byte in _UNRESERVED else b"%%%02X" % byte


def _bad_gateway(exchange: Exchange) -> None:
    exchange.keep = False
    error_page(502, {"Connection": "close"})(exchange)
