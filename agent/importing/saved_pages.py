"""Reads pages that a browser saved: those of SingleFile, and "Save as: complete" with the folder beside it.

SingleFile writes address and time into a comment, and all that the page needs into the page. Browsers write the address
at most (Chromium and Edge: the mark of the web), and what the page needs into a folder `<page>_files`. There it has
names of the browser's own; its URLs are those to which the page's links lead. Browsers rewrite these links, so such a
page is called a mirror.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urljoin

from agent.importing import mirror
from agent.importing.foreign import CopyRecord, RecordRun, Report, Stated, Step, hash_file, web_url
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import MIRROR, SINGLE_FILE, format_utc

# == what pages say, pure =============================================================================================


#: Bytes of a page in which a comment is looked for.
SEARCHED = 1 << 16
_SINGLE_FILE = re.compile(
    rb"<!--\s{0,9}(?:Page saved with|Archive processed by) SingleFile\b(.{0,8000}?)-->", re.IGNORECASE | re.DOTALL
)
_LINE = re.compile(rb"^[ \t]*(url|saved date):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_MARK = re.compile(rb"<!--\s{0,9}saved from url=\(\d{1,6}\)(\S{1,8000}?)\s{0,9}-->", re.IGNORECASE)
#: `Tue Mar 05 2024 12:34:56 GMT+0100 (Central European Standard Time)`, as JavaScript writes dates.
_OF_JAVASCRIPT = re.compile(r"[A-Za-z]{3} ([A-Za-z]{3} \d{2} \d{4} \d\d:\d\d:\d\d) GMT([+-]\d{4})", re.ASCII)
_HTML = re.compile(rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body|title|meta|!--)")
#: WARC, ARC, gzip, Zstandard and its frames.
_OTHER = re.compile(rb"WARC/|filedesc:|\x1f\x8b|\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
_PAGE = re.compile(r".*\.(?:x?html?|xht)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class PageOrigin:
    """What a page says of itself: what saved it, its address and its time; each empty where it does not say it."""

    source: str
    url: str = ""
    date: str = ""


def origin_of(start: bytes) -> PageOrigin | None:
    """Return what the start of a page says of its origin; None for a page that nothing saved."""
    if match := _SINGLE_FILE.search(start):
        lines = {line[1]: line[2].decode("utf-8", "replace") for line in _LINE.finditer(match[1])}
        return PageOrigin(
            SINGLE_FILE, web_url(html.unescape(lines.get(b"url", ""))), _date(lines.get(b"saved date", ""))
        )
    if match := _MARK.search(start):
        return PageOrigin(MIRROR, web_url(html.unescape(match[1].decode("utf-8", "replace"))))
    return None


def _date(text: str) -> str:
    """Return a time of JavaScript, or of ISO 8601 with a zone, as WARC has it; empty for another."""
    try:
        if match := _OF_JAVASCRIPT.match(text):
            return format_utc(datetime.strptime(f"{match[1]} {match[2]}", "%b %d %Y %H:%M:%S %z"))
        time = datetime.fromisoformat(text)
        return format_utc(time) if time.tzinfo else ""
    except (ValueError, OverflowError):
        return ""


def is_page(name: str, start: bytes) -> bool:
    """Return whether a file is a page, by its first bytes, or by its name if they are not those of another format."""
    return _HTML.match(start) is not None or (_PAGE.fullmatch(name) is not None and not _OTHER.match(start))


# == pages ============================================================================================================


#: How browsers call the folder of a page, by their languages.
_FOLDERS = ("_files", ".files", "-Dateien", "_Dateien", "-filer", "_fichiers", "_archivos", "_file", "_bestanden")


def folder_beside(page: Path) -> Path | None:
    """Return the folder with what a saved page needs; None without one."""
    beside = (page.with_name(page.stem + ending) for ending in _FOLDERS)
    return next((folder for folder in beside if folder.is_dir() and not folder.is_symlink()), None)


def size_of(page: Path) -> int:
    """Return the bytes of a page and of its folder."""
    folder = folder_beside(page)
    return page.stat().st_size + (mirror.size_of(folder) if folder else 0)


def digest_of(page: Path, step: Step, base: str = "") -> str:
    """Return the SHA-256 of a page; with a folder, or where only `base` says its address, one of all that."""
    digest = hashlib.sha256()
    with page.open("rb") as file:
        size = hash_file(file, digest.update, step)
    folder = folder_beside(page)
    own = origin(page) if base else None
    base = "" if own is not None and own.url else base
    if folder is None and not base:
        return digest.hexdigest()
    inner = mirror.digest_of(folder, lambda done: step(size + done)) if folder else ""
    return hashlib.sha256(digest.digest() + inner.encode() + base.encode()).hexdigest()


def origin(path: Path) -> PageOrigin | None:
    """Return what a file says of its origin, if it is a page that something saved. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(SEARCHED)
    return origin_of(start) if is_page(path.name, start[:512]) else None


def parts(path: Path, name: str, report: Report, stated: Stated) -> Iterator[RecordRun]:
    """Yield a saved page as a part, with what it needs. Raises UsageError, which says what is missing."""
    own = origin(path) or PageOrigin(MIRROR)
    url, date = own.url or stated.base, own.date or stated.date
    missing = [
        *(["--base URL, its address"] if not url else []),
        *(["--captured TIME, when it was saved, as in --captured 2019-05-01T12:00"] if not date else []),
    ]
    if missing:
        raise UsageError(f"{name}: the page does not say it itself, so give {' and '.join(missing)}")
    taken = [0]
    yield RecordRun(name, _records(path, url, mirror.Copies(name, report, date, own.source), taken), lambda: taken[0])


def _records(path: Path, url: str, copies: mirror.Copies, taken: list[int]) -> Iterator[CopyRecord]:
    kind = "application/xhtml+xml" if path.suffix.lower() in (".xhtml", ".xht") else "text/html"
    with path.open("rb") as file:
        for record in copies.of_file(url, kind, file, path):
            yield record
            taken[0] += record.length
    folder = folder_beside(path)
    if folder is None:
        return
    base = urljoin(url, quote(os.fsencode(folder.name), safe="") + "/")
    for inner, inner_path in mirror.files_in(folder, copies.left_out, copies.lost):
        inner_url = base + quote(os.fsencode(inner), safe="/")
        for record in copies.of_path(inner_url, mirror.declared_type(inner), inner_path):
            yield record
            taken[0] += record.length
