"""What a browser showed of pages, as Browsertrix and ArchiveWeb.page record it: texts, pictures, titles; and DOMs.

WARC files have texts and pictures as resource records of a URN with the page's URL: `urn:text:` when the page was
loaded, `urn:textFinal:` after its scripts ran for a while; `urn:view:` of the window, `urn:fullPage:` of all of it,
`urn:thumbnail:` small. They stand beside the responses, or in files of their own. A WACZ has a line for each page in
`pages/pages.jsonl` and `pages/extraPages.jsonl`, with its title, and perhaps with its text. Exports of ours write the
same URNs, `urn:dom:` with the DOM as HTML, and a metadata record with the title (`urn:webarcfs:rendered:`).

`PageParts` puts the parts into the job. When all files are read, `Attaching` finds the capture of each: the nearest one
of the page's URL, at most `NEAREST` away. One text, one DOM, one picture and one title are kept of a page at a capture,
the best of each kind. `ImportedForms` returns the form of a capture to the pipeline.
"""

from __future__ import annotations

import hashlib
import io
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from agent.crawl.frontier import ImportIndex, PageCapture, PagePart
from agent.crawl.vocabulary import Reason
from agent.crawl.wget import BatchFiles
from agent.importing.foreign import URL_FIELD, FileRecord, ForeignRecord, Spool, Tally
from agent.importing.import_captures import NEAREST, RecordPlace
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.history.rendered_forms import RenderedForm
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import format_utc, from_epoch
from webarcfs.archive.model.picture_kinds import picture_kind
from webarcfs.archive.model.urls import canonical
from webarcfs.content.text import fold
from webarcfs.warc import job_warc
from webarcfs.warc.decoding import body_of
from webarcfs.warc.http_response import base32, parse_date

# == records, pure ====================================================================================================


TEXT, DOM, PICTURE, TITLE = "text", "DOM", "picture", "title"
#: The URN of an export's record with a title.
EXPORTED: Final = "urn:webarcfs:rendered:"
_URN = re.compile(r"urn:(text|textFinal|dom|view|fullPage|thumbnail):(https?:(?s:.*))", re.IGNORECASE)
#: URN → kind of the part, and its rank among parts of that kind: the lowest is kept.
_RANKS: Final = {
    "textfinal": (TEXT, 0), "text": (TEXT, 1), "dom": (DOM, 0),
    "view": (PICTURE, 0), "fullpage": (PICTURE, 1), "thumbnail": (PICTURE, 2),
}  # fmt: skip
_SPELLINGS: Final = {name.lower(): name for name in ("text", "textFinal", "dom", "view", "fullPage", "thumbnail")}
_RANK_OF_PAGES: Final = 3
#: Kind of a part → the bytes of it that are kept.
_BOUNDS: Final = {
    TEXT: rendered_forms.LONGEST_TEXT, DOM: rendered_forms.LARGEST_HTML, PICTURE: rendered_forms.LARGEST_PICTURE,
}  # fmt: skip
_HEAD: Final = b"HTTP/1.0 200 OK\r\n\r\n"
_CHUNK: Final = 1 << 18
#: First bytes of a picture that tell its kind; bytes of a text that show nothing.
_MAGIC: Final = 16
_BLANK: Final = b" \t\r\n\f\v"
#: What a text has in the place of what is no text.
_REPLACEMENT: Final = "\ufffd"
#: What precedes the digest of a text in the content of a capture.
SHOWN: Final = "shown:"


@dataclass(frozen=True, slots=True)
class PageUrn:
    """What a URN of these crawlers names: the URL of a page, the kind of the part, its rank, and the URN's own word."""

    url: str
    kind: str
    rank: int
    origin: str


def page_urn(uri: str) -> PageUrn | None:
    """Return what a URN names; None for any other URI."""
    match = _URN.fullmatch(uri)
    if match is None:
        return None
    kind, rank = _RANKS[match[1].lower()]
    return PageUrn(match[2], kind, rank, f"urn:{_SPELLINGS[match[1].lower()]}")


def clean_text(raw: bytes) -> tuple[bytes, bool]:
    """Return a text in UTF-8 without NUL, and whether it was so; what was not is U+FFFD."""
    text = raw.decode("utf-8", "replace").replace("\0", _REPLACEMENT).encode()
    return text, text == raw


def clean_html(raw: bytes) -> tuple[bytes, bool]:
    """Return HTML in UTF-8, and whether it was so; what was not is U+FFFD. HTML says itself what NUL is."""
    html = raw.decode("utf-8", "replace").encode()
    return html, html == raw


def title_of(title: str, url: str) -> str:
    """Return a title on one line; empty for one that is only the URL of the page."""
    text = fold(title.encode("utf-8", "replace").decode())
    return "" if text in (url, url.rstrip("/")) else text


# == reading ==========================================================================================================


class PageRecord(FileRecord):
    """The line of a page in a list of a WACZ: `time` as it is written there, `text` in UTF-8, `file` its name."""

    def __init__(self, url: str, time: str, title: str, text: bytes, file: str) -> None:
        super().__init__("page", {"warc-target-uri": url, "warc-date": time}, b"", io.BytesIO(text), len(text))
        self.title, self.file = title, file


@dataclass(frozen=True, slots=True)
class PageParts:
    """Takes the parts of pages that the records of a file have. `most` are the bytes of a document that are taken."""

    index: ImportIndex
    spool: Spool
    remarks: Tally
    most: int

    def take(self, file: str, record: ForeignRecord, place: RecordPlace) -> bool:
        """Take what a record has of a page; return whether it is of that kind at all."""
        uri = record.fields.get("warc-target-uri", "").strip("<> ")
        if isinstance(record, PageRecord):
            self._line(file, record, place, uri)
        elif record.type == "metadata" and uri.startswith(EXPORTED):
            self._exported(file, record, place)
        elif record.type in ("resource", "conversion") and (urn := page_urn(uri)) is not None:
            place_of_part = self._place(file, record, place, urn.url)
            if place_of_part is not None:
                self._bytes(place_of_part, urn.kind, urn.rank, urn.origin, record)
        else:
            return False
        return True

    def _line(self, file: str, record: PageRecord, place: RecordPlace, url: str) -> None:
        """Take the title and the text of a line of pages.jsonl."""
        part = self._place(file, record, place, url)
        if part is None:
            return
        if title := title_of(record.title, part.url):
            self._add(part, TITLE, _RANK_OF_PAGES, record.file, title=title)
        if record.length:
            self._bytes(part, TEXT, _RANK_OF_PAGES, record.file, record)

    def _exported(self, file: str, record: ForeignRecord, place: RecordPlace) -> None:
        """Take the title that an export of ours has."""
        part = self._place(file, record, place, record.fields.get(URL_FIELD, ""))
        if part is None or record.length > rendered_forms.LONGEST_DESCRIPTION:
            return
        block = b"".join(iter(lambda: record.read(_CHUNK), b""))
        if record.whole() and (title := title_of(rendered_forms.title_in(block), part.url)):
            self._add(part, TITLE, 0, rendered_forms.title_origin(block) or "export", title=title)

    def _place(self, file: str, record: ForeignRecord, place: RecordPlace, raw: str) -> _PartPlace | None:
        """Return of which page a record is, and when; None, with a remark, where that cannot be said."""
        try:
            url = canonical(raw)
        except UrlRefused as error:
            self.remarks.add(file, "what a browser showed is skipped: its page has no URL of the web", str(error))
            return None
        time = parse_date(record.fields.get("warc-date", ""))
        if time is None:
            what = "what a browser showed is skipped: its record has no date, or one that cannot be"
            self.remarks.add(file, what, url)
            return None
        return _PartPlace(file, place, url, int(time.timestamp()))

    def _bytes(self, part: _PartPlace, kind: str, rank: int, origin: str, record: ForeignRecord) -> None:
        """Store the text, the DOM or the picture of a record, unless something is wrong with it."""
        longest = _BOUNDS[kind]
        most = min(longest, self.most) if self.most else longest
        if record.length > most:
            what = f"a {kind} that a browser showed is skipped: it has more than {most:,} bytes"
            self.remarks.add(part.file, what, part.url)
            return
        content = b"".join(iter(lambda: record.read(_CHUNK), b""))
        if not record.whole():
            return  # whoever reads the records complains
        if not content.strip(_BLANK):
            self.remarks.add(part.file, f"a {kind} that a browser showed is skipped: it is empty", part.url)
            return
        if kind == PICTURE and picture_kind(content[:_MAGIC]) is None:
            what = "a picture that a browser showed is skipped: it is no PNG, JPEG or WebP"
            self.remarks.add(part.file, what, part.url)
            return
        if kind == TEXT:
            content, is_clean = clean_text(content)
            if not is_clean:
                what = "a text that a browser showed is not all UTF-8, or has NUL; U+FFFD takes the place of that"
                self.remarks.add(part.file, what, part.url)
        if kind == DOM:
            content, is_clean = clean_html(content)
            if not is_clean:
                what = "a DOM that a browser showed is not all UTF-8; U+FFFD takes the place of that"
                self.remarks.add(part.file, what, part.url)
        position = self.spool.add(part.url, from_epoch(part.time), _HEAD, [content])
        digest = base32(hashlib.sha1(content, usedforsecurity=False).digest())
        self._add(part, kind, rank, origin, position=position, digest=digest)

    def _add(
        self, part: _PartPlace, kind: str, rank: int, origin: str, *, position: int = -1, digest: str = "",
        title: str = "",
    ) -> None:  # fmt: skip
        self.index.add_part(
            PagePart(
                id=0, source=part.record.source, ordinal=part.record.ordinal, name=part.record.crawl, url=part.url,
                time=part.time, kind=kind, rank=rank, origin=origin, position=position, digest=digest, title=title,
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _PartPlace:
    """Where a part comes from, the URL of its page, and when that was shown, in seconds since 1970."""

    file: str
    record: RecordPlace
    url: str
    time: int


# == attaching ========================================================================================================


#: Redirects in a row that lead from the URL of a part to that of its page.
_MOST_REDIRECTS: Final = 10
#: Adds the archived version of a URL that was captured about then to the captures; returns whether there is one.
Archived = Callable[[PagePart], bool]


@dataclass(frozen=True, slots=True)
class Attaching:
    """Gives each part to the capture of its page. `remarks` say of which pages there is none.

    `go_on` is called between two pages, and raises Interrupted if the import must stop.
    """

    index: ImportIndex
    remarks: Tally
    go_on: Callable[[], None] = lambda: None
    archived: Archived = lambda _: False

    def attach(self) -> None:
        """Attach all parts. To be called when all captures are known, before they are put in order."""
        self.index.index_parts()
        for url in self.index.urls_of_lone_parts():
            self.go_on()
            if target := self._redirected(url):
                self.index.move_parts(url, target)
        for url, parts in groupby(self.index.parts(), key=lambda part: part.url):
            self.go_on()
            self._page(url, list(parts))

    def _redirected(self, url: str) -> str:
        """Return where redirects of the files lead from a URL, if that has a capture; else an empty text."""
        for _ in range(_MOST_REDIRECTS):
            target = self.index.target_of(url)
            try:
                url = canonical(target) if target else ""
            except UrlRefused:
                return ""
            if not url or self.index.page_captures(url):
                return url
        return ""

    def _page(self, url: str, parts: Sequence[PagePart]) -> None:
        captures = self.index.page_captures(url)
        if not captures:
            for part in parts:
                place = _nearest([capture.time for capture in captures], part.time)
                is_there = place is not None and abs(captures[place].time - part.time) <= NEAREST
                if not is_there and self.archived(part):
                    captures = self.index.page_captures(url)
        times = [capture.time for capture in captures]
        chosen: dict[int, _Chosen] = {}
        for part in parts:
            place = _nearest(times, part.time)
            if place is None:
                what = "what a browser showed is skipped: its page is neither in the files nor in the archive"
                self._remark(what, url)
            elif abs(times[place] - part.time) > NEAREST:
                what = "what a browser showed is skipped: no capture of its page is of about that time"
                self._remark(what, f"{url} at {format_utc(from_epoch(part.time))}")
            elif not chosen.setdefault(place, _Chosen()).take(part):
                self._remark("another text, DOM, picture or title of a page at one capture is not kept", url)
        by_version: dict[tuple[str, str], list[int]] = {}
        for place in sorted(chosen):
            by_version.setdefault((captures[place].name, captures[place].content), []).append(place)
        for (name, content), places in by_version.items():
            texts = {chosen[place].text for place in places} - {""}
            if len(texts) <= 1:
                self._show_all(url, name, content, [chosen[place] for place in places])
            else:  # the same bytes showed several texts: each is a version
                for place in places:
                    self._show(url, captures[place], chosen[place])

    def _show_all(self, url: str, name: str, content: str, chosen: Sequence[_Chosen]) -> None:
        """Give one form to all captures that a crawl has of one version."""
        whole = _Chosen()
        for some in chosen:
            for part in some.parts.values():
                if not whole.take(part):
                    self._remark("another text, DOM, picture or title of a page at one capture is not kept", url)
        self.index.show_version(url, name, content, _content(content, whole), Reason.RENDERED)
        self.index.add_form(url, _content(content, whole), [part.id for part in whole.parts.values()])

    def _show(self, url: str, capture: PageCapture, chosen: _Chosen) -> None:
        content = _content(capture.content, chosen)
        self.index.show_capture(capture.id, content, Reason.RENDERED)
        self.index.add_form(url, content, [part.id for part in chosen.parts.values()])

    def _remark(self, what: str, page: str) -> None:
        self.remarks.add(split(arc_path(page.partition(" ")[0]))[0], what, page)


@dataclass(slots=True)
class _Chosen:
    """The parts that are kept of a page at a capture: of each kind that of the lowest rank, of these the latest."""

    parts: dict[str, PagePart] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The digest of the text; empty without one."""
        return self.parts[TEXT].digest if TEXT in self.parts else ""

    def take(self, part: PagePart) -> bool:
        """Take a part; return False where that leaves another one out, of the same kind."""
        other = self.parts.get(part.kind)
        if other is None or (part.rank, -part.time) < (other.rank, -other.time):
            self.parts[part.kind] = part
        return other is None or (other.digest, other.title) == (part.digest, part.title)


def _content(content: str, chosen: _Chosen) -> str:
    """Return what a version is told by: its text as well. A DOM, a picture or a title alone makes none."""
    return f"{content} {SHOWN}{chosen.text}"


def _nearest(times: Sequence[int], time: int) -> int | None:
    """Return the place of the nearest time, of two equally near ones the earlier; None without any."""
    after = bisect_left(times, time)
    near = [place for place in (after - 1, after) if 0 <= place < len(times)]
    return min(near, key=lambda place: abs(times[place] - time), default=None)


# == forms ============================================================================================================


@dataclass(frozen=True, slots=True)
class ImportedForms:
    """The rendered forms of an import's captures; `folder` is that of its job."""

    index: ImportIndex
    folder: Path

    def form(self, capture: int) -> RenderedForm | None:
        """Return the form of a capture, by its id; None without one. Raises Damaged, OSError."""
        parts = {part.kind: part for part in self.index.parts_of(capture)}
        if not parts:
            return None
        content = {kind: self._read(part) for kind, part in parts.items() if part.position >= 0}
        first = next(parts[kind] for kind in (TEXT, DOM, PICTURE, TITLE) if kind in parts)
        origins = {kind: part.origin for kind, part in parts.items()}
        return RenderedForm(
            text=content.get(TEXT, b""),
            picture=content.get(PICTURE, b""),
            title=parts[TITLE].title if TITLE in parts else "",
            text_of=origins.get(TEXT, ""),
            picture_of=origins.get(PICTURE, ""),
            title_of=origins.get(TITLE, ""),
            shown=format_utc(from_epoch(first.time)),
            html=content.get(DOM, b""),
            html_of=origins.get(DOM, ""),
        )

    def _read(self, part: PagePart) -> bytes:
        with BatchFiles(self.folder, part.source).warc.open("rb") as file:
            return b"".join(body_of(job_warc.response_at(file, part.position)))
