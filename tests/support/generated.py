"""A site of as many pages as a test asks for, made while it is asked for them."""

from __future__ import annotations

import random
import re
import struct
import zlib
from functools import cached_property, lru_cache

from tests.support.wire import Answer, page

_PAGES_IN_A_FOLDER = 200
_CHILDREN = 20
_OTHERS = 5
_IMAGES = 10
_PIECE = 1200
_PIECES = 8
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
