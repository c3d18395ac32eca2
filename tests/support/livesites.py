"""Real sites, live on loopback and in an archive: the same files under the same names."""

from __future__ import annotations

import mimetypes
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agent.indexing.recovery import recover
from tests.support.realsites import BOOST, HANDBOOK, POSTGRESQL, PYTHON, RealSite
from tests.support.rooms import Page, published
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.model.urls import canonical
from webarcfs.content.outlinks import links_of
from webarcfs.content.reference_table import LinkPurpose
from webarcfs.content.text import decode_charset

#: Host → the site.
SITES: dict[str, RealSite] = {
    "python.test": PYTHON, "postgresql.test": POSTGRESQL, "handbook.test": HANDBOOK, "boost.test": BOOST,
}  # fmt: skip
CAPTURED = datetime(2021, 5, 1, 12, tzinfo=CET)


def sample(host: str, count: int) -> list[str]:
    """URLs of pages of a site, the same ones each time; its start page is among them."""
    site = SITES[host]
    names = [name for name in site.files() if name.endswith(".html")]
    chosen = random.Random(host).sample(sorted(names), min(count, len(names)))
    start = site.starts[0].lstrip("/")
    return [canonical(f"http://{host}/{name}") for name in dict.fromkeys([start, *chosen])][:count]


def _file(url: str) -> Path | None:
    host, _, path = url.partition("://")[2].partition("/")
    if host not in SITES:
        return None
    found = SITES[host].root / unquote(path.partition("?")[0])
    found = found / "index.html" if found.is_dir() else found
    return found if found.is_file() else None


def archived(archive: Archive, urls: list[str]) -> dict[str, bytes]:
    """Publish these pages with all that they need to be shown, a snapshot for each host; return the bodies by URL."""
    bodies: dict[str, bytes] = {}
    waiting = list(urls)
    while waiting:
        url = waiting.pop()
        path = _file(url)
        if url in bodies or path is None:
            continue
        body = bodies[url] = path.read_bytes()
        kind = _kind(path)
        if kind in ("text/html", "text/css", "application/xhtml+xml", "image/svg+xml"):
            found = links_of(body, url, kind, decode_charset(body, ""))
            waiting += [link.url for link in found if link.kind is LinkPurpose.REQUISITE and link.url not in bodies]
    for at, host in enumerate(SITES):
        pages = {url: Page(body, _kind_of(url)) for url, body in bodies.items() if url.startswith(f"http://{host}/")}
        if pages:
            published(archive, host, pages, CAPTURED + timedelta(seconds=at), publication=host.partition(".")[0])
    recover(archive)
    return bodies


def _kind_of(url: str) -> str:
    path = _file(url)
    assert path is not None
    return _kind(path)


def _kind(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


class _Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a word. Types are those that were archived."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def live() -> Iterator[dict[str, str]]:
    """Serve the sites; return where each host is found, for a browser."""
    with ExitStack() as stack:
        origins = {host: stack.enter_context(served(site.root)) for host, site in SITES.items()}
        yield {host: origin.removeprefix("http://") for host, origin in origins.items()}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; return its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
