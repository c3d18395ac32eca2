"""A fast web server for benchmarks: `python -m tests.bench.serve DIR` or `python -m tests.bench.serve --generate N`.

Prints its port and serves until SIGINT or SIGTERM. Several processes accept from one socket, so that the server is not
what is measured. Through `http_proxy` every host name leads here. Benchmarks in Python say `with running(…) as port`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NoReturn

from tests.support.site import Folder, Tree
from tests.support.wire import Answer, Request, Server, error_page, listen, page

_PAGES_IN_A_FOLDER = 200
_CHILDREN = 20
_OTHERS = 5
_IMAGES = 10
_PIECE = 1200
_PIECES = 8
_NOT_FOUND = error_page(404)
_PAGE = re.compile(r"/f(\d{5})/page-(\d{7})\.html", re.ASCII)
_IMAGE = re.compile(r"/img/(\d)\.png", re.ASCII)


class Generated:
    """A site of `pages` pages of about 11 KB, the same every time, made when asked for; a Tree for Site.mount.

    Page 0 is `/`. Each links to 20 below it in a tree (or to any others, where there is none below) and 5 any others:
    all of 168,000 pages are within depth 4. One in a hundred has other text in each `edition`.
    """

    def __init__(self, pages: int, edition: int = 0) -> None:
        self._pages = pages
        self._edition = edition

    def find(self, path: str) -> Answer | None:
        """The page, style or image at `path`."""
        number = self._number(path)
        if number is not None:
            return page(self.body(number))
        if path == "/style.css":
            return page(_style(), "text/css")
        image = _IMAGE.fullmatch(path)
        return page(_png(int(image[1])), "image/png") if image else None

    def path(self, number: int) -> str:
        """Where a page lies."""
        return f"/f{number // _PAGES_IN_A_FOLDER:05d}/page-{number:07d}.html" if number else "/"

    def paths(self) -> list[str]:
        """Where all pages, the style and the images lie."""
        return [self.path(n) for n in range(self._pages)] + ["/style.css", *map(_image_path, range(_IMAGES))]

    def links(self, number: int) -> list[int]:
        """The pages that a page links to."""
        below = range(number * _CHILDREN + 1, number * _CHILDREN + 1 + _CHILDREN)
        return [n if n < self._pages else self._other(n) for n in below] + [
            self._other(number * _OTHERS + n) for n in range(_OTHERS)
        ]

    def body(self, number: int) -> bytes:
        """The HTML of a page."""
        links = "".join(f'<li><a href="{self.path(n)}">Page {n}</a></li>\n' for n in self.links(number))
        start = (number * 7919 + self.version(number) * 104_729) * 31
        text = "".join(f"<p>{self._piece(start + n * 15_485_863)}</p>\n" for n in range(_PIECES))
        return (
            f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>Page {number}</title>\n'
            f'<link rel="stylesheet" href="/style.css"></head>\n<body><h1>Page {number}</h1>\n'
            f'<img src="{_image_path(number % _IMAGES)}" alt="">\n{text}<ul>\n{links}</ul></body></html>\n'
        ).encode()

    def version(self, number: int) -> int:
        """How often a page has changed by this edition."""
        first = number % 100 or 100
        return (self._edition - first) // 100 + 1 if self._edition >= first else 0

    def _number(self, path: str) -> int | None:
        if path == "/":
            return 0
        match = _PAGE.fullmatch(path)
        number = int(match[2]) if match else 0
        return number if 0 < number < self._pages and path == self.path(number) else None

    def _other(self, seed: int) -> int:
        return seed * 2_654_435_761 % 4_294_967_291 % self._pages

    def _piece(self, seed: int) -> str:
        start = seed % (len(self._text) - _PIECE)
        return self._text[start : start + _PIECE]

    @cached_property
    def _text(self) -> str:
        chance = random.Random(2012)
        words = ["".join(chance.choices("aeioubdfgklmnprstvw", k=chance.randint(2, 10))) for _ in range(3000)]
        return " ".join(chance.choices(words, k=150_000))


def _image_path(number: int) -> str:
    return f"/img/{number}.png"


def _style() -> str:
    return "".join(f"p.c{n} {{ margin: {n}px; color: #{n:03x}; }}\n" for n in range(100))


@lru_cache(maxsize=_IMAGES)
def _png(number: int) -> bytes:
    """A picture of noise, 64 × 64 (PNG specification, sections 5 and 11)."""
    noise = random.Random(number)
    rows = b"".join(b"\0" + noise.randbytes(64 * 3) for _ in range(64))
    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in chunks)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


Route = Callable[[Request], Answer]


def one_tree(tree: Tree) -> Route:
    """The same pages under every host name."""
    return lambda request: tree.find(request.path) or _NOT_FOUND


def folder_per_host(root: Path) -> Route:
    """Each folder of `root` is the site of the host that it is named after."""
    trees: dict[str, Tree] = {folder.name: Folder(folder) for folder in root.iterdir() if folder.is_dir()}

    def route(request: Request) -> Answer:
        tree = trees.get(request.host)
        return (tree.find(request.path) if tree else None) or _NOT_FOUND

    return route


def serve(route: Route, listener: socket.socket, processes: int) -> None:
    """Serve from that many processes until this one is interrupted; none outlives it, however it ends."""
    end, alive = os.pipe()
    children = [_fork(route, listener, end, alive) for _ in range(processes)]
    os.close(end)
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        os.close(alive)
        for child in children:
            os.waitpid(child, 0)


@contextmanager
def running(*arguments: str) -> Iterator[int]:
    """The command with these arguments, in the background; gives its port."""
    command = [sys.executable, "-m", "tests.bench.serve", *arguments]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def _fork(route: Route, listener: socket.socket, end: int, alive: int) -> int:
    child = os.fork()
    if not child:
        os.close(alive)
        _work(route, listener, end)
    return child


def _work(route: Route, listener: socket.socket, end: int) -> NoReturn:
    """Serve until the other end of the pipe closes, which happens when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = Server(route, listener)
    server.start()
    os.read(end, 1)
    server.stop()
    os._exit(1 if server.errors else 0)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.serve", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("dir", nargs="?", type=Path, metavar="DIR", help="folder to serve")
    what.add_argument("--generate", type=int, metavar="N", help="serve a made-up site of N pages")
    parser.add_argument("--edition", type=int, default=0, help="each edition of a made-up site changes 1 %% of it")
    parser.add_argument("--host-header", action="store_true", help="each folder of DIR is the site of a host")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _route(arguments: argparse.Namespace) -> Route:
    if arguments.generate:
        site = Generated(arguments.generate, arguments.edition)
        site.body(0)  # before the fork, so that the text is made once
        return one_tree(site)
    return folder_per_host(arguments.dir) if arguments.host_header else one_tree(Folder(arguments.dir))


def main() -> None:
    """Read the command line, print the port, serve."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)
    route = _route(arguments)
    listener = listen(arguments.port)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    serve(route, listener, arguments.processes)


if __name__ == "__main__":
    main()
