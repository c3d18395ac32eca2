"""Reads lists of URLs as people have them: plain text, bookmarks of browsers, OPML, RSS and Atom, sitemaps.

A file is read a piece at a time, so that a list of a million URLs needs no memory. What is no URL is told with the
number of its line; the rest is taken. Lines of plain text may have comments: from `#` at the beginning, or behind white
space. A file that is packed by gzip is unpacked, up to a bound: a few megabytes can unpack to any number of them.
"""

from __future__ import annotations

import codecs
import gzip
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, cast

from agent.crawl.sitemaps import MOST_LISTED, SitemapReader
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication
from webarcfs.archive.config.validators import start_url
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system.files import replacing

_GZIP = b"\x1f\x8b"
_SAMPLE, _PIECE = 1 << 12, 1 << 16
#: The longest line of plain text, and how much of what is no URL is shown.
_LONGEST_LINE, _SHOWN = 1 << 14, 60
#: Bytes that are read of what a packed list unpacks to: some million URLs.
LONGEST_UNPACKED = 256 << 20
#: Elements and their attributes with URLs: bookmarks, and OPML.
_LINKS = {"a": ("href",), "outline": ("xmlurl", "htmlurl", "url")}
#: Bookmarks that are no pages: what a browser computes or runs.
_NO_PAGES = ("javascript:", "place:", "about:", "chrome:", "data:", "file:", "mailto:", "feed:")


#: The name of a file that keeps what came by standard input.
STANDARD_INPUT = "standard input"


def list_title(path: Path | str) -> str:
    """Return the name of a list as messages have it."""
    return STANDARD_INPUT if Path(path).name == STANDARD_INPUT else str(path)


@dataclass(frozen=True, slots=True)
class ListedUrl:
    """A line of a list: its number, and the canonical URL; or why it has none. Sitemaps and feeds have no lines: 0.

    `is_no_page`: it is a bookmark of something that a browser runs or computes, which is no fault of the list. Then
    `fault` is its beginning.
    """

    line: int
    url: str = ""
    fault: str = ""
    is_no_page: bool = False


def list_of(archive: Archive, publication: Publication) -> Path:
    """Return the list of a publication; a name without `/` at its beginning lies in the archive's folder."""
    return archive.root / publication.list


def keep_standard_input(path: Path, folder: Path) -> None:
    """Copy what came by standard input into the folder of its job, where a run that resumes the job finds it."""
    kept, scratch = folder / STANDARD_INPUT, folder / f".{STANDARD_INPUT}"
    if path.name == STANDARD_INPUT and path.exists() and not kept.exists():
        scratch.unlink(missing_ok=True)  # of a process that was killed
        with path.open("rb") as source, replacing(kept, scratch) as copy:
            shutil.copyfileobj(source, copy)


def read_urls(path: Path) -> Iterator[ListedUrl]:
    """Yield the URLs of a file in their order, and what is no URL. Raises UsageError if it cannot be read."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if not packed:
                yield from _read(file)
                return
            unpacked = _Unpacked(file)
            yield from _read(cast(IO[bytes], unpacked), lambda: unpacked.has_more)
            if unpacked.has_more:
                size = LONGEST_UNPACKED >> 20
                yield ListedUrl(0, fault=f"it is longer than {size} MiB unpacked; the rest is not read")
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{list_title(path)}: {getattr(error, 'strerror', None) or error}") from None


class _Unpacked:
    """The first bytes of a packed file, read as from a file that ends there."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=file)
        self._left = LONGEST_UNPACKED
        #: Whether there are bytes behind those that are read, once these were.
        self.has_more = False

    def read(self, size: int) -> bytes:
        """Return so many bytes at most; none at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        self.has_more = self.has_more or (not self._left and bool(self._file.read(1)))
        return data


def _read(file: IO[bytes], is_cut: Callable[[], bool] = lambda: False) -> Iterator[ListedUrl]:
    start = file.read(_SAMPLE)
    charset = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8-sig")
    begin = start.decode(charset, "replace").lstrip().lower()
    if not begin.startswith("<"):
        yield from _lines(_text(start, file, charset), is_cut)
    elif "<opml" in begin or not any(
        root in begin for root in ("<urlset", "<sitemapindex", "<rss", "<feed", "<rdf:rdf")
    ):
        yield from _elements(_text(start, file, charset))
    else:
        yield from _listing(start, file)


_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def _text(start: bytes, file: IO[bytes], charset: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(charset)("replace")
    yield decoder.decode(start)
    while piece := file.read(_PIECE):
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _lines(pieces: Iterator[str], is_cut: Callable[[], bool]) -> Iterator[ListedUrl]:
    number, rest = 0, ""
    for piece in pieces:
        if not rest and piece.isspace():  # no URL, however many lines it is
            number += piece.count("\n") or piece.count("\r")
            continue
        *lines, rest = (rest + piece).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            number += 1
            if line:
                yield from _of_line(number, line)
        rest = rest[: 2 * _LONGEST_LINE]  # of a line that never ends, so much is enough to reject it
    if rest and is_cut():
        yield ListedUrl(number + 1, fault=f"{_short(rest)} is cut off")
    else:
        yield from _of_line(number + 1, rest)


def _of_line(number: int, line: str) -> Iterator[ListedUrl]:
    words = line.split()
    if not words or words[0].startswith("#"):
        return
    if len(words) > 1 and not words[1].startswith("#"):
        yield ListedUrl(number, fault=f"{_short(line)} is no URL: it has white space")
    elif not any(mark in words[0] for mark in ".:["):
        yield ListedUrl(number, fault=f"{_short(line)} is no URL")
    else:
        yield _checked(number, words[0])


def _checked(number: int, text: str) -> ListedUrl:
    if len(text) > _LONGEST_LINE:
        return ListedUrl(number, fault=f"{_short(text)} is too long")
    try:
        return ListedUrl(number, start_url(text))
    except UsageError as error:
        return ListedUrl(number, fault=_short(str(error), 3 * _SHOWN))


def _short(text: str, most: int = _SHOWN) -> str:
    text = " ".join(text[: 2 * most].split())
    return text if len(text) <= most else f"{text[:most]}…"


class _Anchors(HTMLParser):
    """Finds the URLs of bookmarks and outlines, with the numbers of their lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[ListedUrl] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the URLs of an element."""
        wanted = _LINKS.get(tag, ())
        for name, value in attrs:
            text = (value or "").strip()
            if name in wanted and text:
                line, is_no_page = self.getpos()[0], text.lower().startswith(_NO_PAGES)
                self.found.append(
                    ListedUrl(line, fault=_short(text), is_no_page=True) if is_no_page else _checked(line, text)
                )

    handle_startendtag = handle_starttag

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip `<![…`. Older releases of Python 3.11 raise AssertionError for words that they do not know."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i, report)

    @property
    def is_stuck(self) -> bool:
        """Whether it waits for the end of something that is too long to be a tag."""
        return len(self.rawdata) > 4 * _PIECE


def _elements(pieces: Iterator[str]) -> Iterator[ListedUrl]:
    parser = _Anchors()
    for piece in pieces:
        parser.feed(piece)
        yield from parser.found
        parser.found = []
        if parser.is_stuck:
            yield ListedUrl(parser.getpos()[0], fault="what begins here never ends; the rest is not read")
            return
    parser.close()
    yield from parser.found


def _listing(start: bytes, file: IO[bytes]) -> Iterator[ListedUrl]:
    reader = SitemapReader("http://list.invalid/", "", MOST_LISTED)
    reader.feed(start)
    while piece := file.read(_PIECE):
        reader.feed(piece)
    listing = reader.close()
    yield from (ListedUrl(0, url) if not _is_relative(url) else _relative(url) for url in listing.pages)
    if listing.maps:
        yield ListedUrl(0, fault=f"it is an index of {len(listing.maps)} sitemaps; give the sitemaps themselves")
    if listing.is_cut or not listing.is_sitemap:
        yield ListedUrl(0, fault="not all of it could be read")


def _is_relative(url: str) -> bool:
    return url.partition("://")[2].partition("/")[0].endswith(".invalid")


def _relative(url: str) -> ListedUrl:
    return ListedUrl(0, fault=f"{_short(url.partition('.invalid')[2])} is no whole URL")
