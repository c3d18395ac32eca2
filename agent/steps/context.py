"""What a step is given, and what it returns; the documents of a record, as its publication saw them.

`Snapshot` is a snapshot as checks see it: its record, its documents, their bodies and links. Read only.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.catalogue.stepfolders import AskedStep, folder_of
from webarcfs.archive.catalogue.record import OWN, CrawlPart, Record
from webarcfs.archive.catalogue.workflow import Way
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.index.database import CaptureIndex, CaptureRow
from webarcfs.archive.index.links import ArchivedLink
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, Interrupted, InvalidDocument, NotFound
from webarcfs.archive.model.metadata import CommitTag, format_time, from_epoch, now
from webarcfs.archive.model.picture_kinds import picture_kind
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.archive.system.files import sync_tree
from webarcfs.content import outlinks, text, visible_lines
from webarcfs.content.text import decode_charset, decoder
from webarcfs.warc.http_response import LONGEST_OF_ARC, content_type_in

# == context ==========================================================================================================


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """A step that runs: its record as it was at the beginning, the settings of its publication now."""

    archive: Archive
    asked: AskedStep
    record: Record
    publication: Publication
    settings: Settings
    way: Way
    person: str
    before: Record | None
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress = unseen

    @property
    def scratch(self) -> Path:
        """A folder that goes with the step."""
        return folder_of(self.archive, self.asked) / "scratch"

    def must_go_on(self) -> None:
        """Raises Interrupted if the process is to end."""
        if self.stop.is_set():
            raise Interrupted(f"the step {self.asked.step} of {self.record.id} was stopped; it begins again")

    @contextmanager
    def report(self) -> Iterator[Path]:
        """Yield a new folder for the step's report; at the end it takes the place of the one before."""
        final = self.archive.reports / self.record.job_name / str(self.asked.step)
        new = final.with_name(f".{self.asked.step}.{os.getpid()}")
        for left in final.parent.glob(f".{self.asked.step}.*"):
            shutil.rmtree(left)
        new.mkdir(parents=True)
        try:
            yield new
            sync_tree(new)
            shutil.rmtree(final, ignore_errors=True)
            new.rename(final)
        finally:
            shutil.rmtree(new, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step found: texts of fields by number; `remark` for the record's history, where something is amiss.

    `waits`: a person has to look before the step is done.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    remark: str = ""
    waits: bool = False


class Clock:
    """When a step began, and how long it has taken."""

    def __init__(self) -> None:
        self.begun = format_time(now())
        self._since = time.monotonic()

    @property
    def told(self) -> str:
        """The duration, as fields have it."""
        return f"{time.monotonic() - self._since:.0f} s"


def pages_of(archive: Archive, part: CrawlPart) -> Iterator[CaptureRow]:
    """Yield the HTML documents of a record on a domain, in order of path: those that its publication saw."""
    return (row for row in documents_of(archive, part) if row.mime_type in text.HTML_TYPES)


def documents_of(archive: Archive, part: CrawlPart) -> Iterator[CaptureRow]:
    """Yield the documents of a record on a domain, in order of path."""
    store = Repository(archive.repository(part.tag.domain))
    tree = tree_of(archive, part)
    whole = tree == store.snapshot_tree(part.tag)
    with CaptureIndex(archive.database) as index:
        for row in index.of_snapshot(part.tag.domain, int(part.tag.crawl_time.timestamp())):
            if whole or store.find(tree, row.path[1:].partition("/")[2]) is not None:
                yield row


def tree_of(archive: Archive, part: CrawlPart) -> str:
    """Return the tree that a record's publication saw on a domain; where only its own ARCs count, the whole one."""
    store = Repository(archive.repository(part.tag.domain))
    return part.seen if part.seen and part.seen != OWN else store.snapshot_tree(part.tag)


def _links_in(page: bytes, url: str, charset: str) -> list[ArchivedLink]:
    base = outlinks.base_of((page,), charset) if outlinks.may_have_base(page) else ""
    return list(outlinks.anchors_of((page,), url, charset, base))


# == snapshot =========================================================================================================


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture that a browser took of a page; `ending` is that of a file's name, `origin` what it was taken from."""

    content: bytes
    ending: str
    origin: str

    @property
    def is_of_window(self) -> bool:
        """Whether it shows the window, as a picture of replay does."""
        return self.origin in rendered_forms.OF_WINDOW


@dataclass(frozen=True)
class Snapshot:
    """What a record describes. A plug-in gets one: `def check(snapshot) -> list[str]` returns what is wrong."""

    archive: Archive
    record: Record

    def documents(self) -> Iterator[CaptureRow]:
        """Yield its documents: each with `url`, `mime_type`, `size`, `status`, `title`, `blob`."""
        for part in self.record.parts:
            yield from documents_of(self.archive, part)

    def pages(self) -> Iterator[CaptureRow]:
        """Yield its HTML documents."""
        for part in self.record.parts:
            yield from pages_of(self.archive, part)

    def find(self, url: str) -> CaptureRow | None:
        """Return the document that the snapshot has of a URL; None without one."""
        path = arc_path(url)
        domain, arc = split(path)
        part = self._part(domain)
        store = None if part is None else Repository(self.archive.repository(domain))
        if part is None or store is None or store.find(tree_of(self.archive, part), arc) is None:
            return None
        seq = int(part.tag.crawl_time.timestamp())
        with CaptureIndex(self.archive.database) as index:
            rows, _ = index.at(f"/{path}")
        return next((row for row in rows if row.first <= seq < row.last), None)

    def body(self, document: CaptureRow) -> bytes:
        """Return the bytes of a document."""
        return self._store(document).read(document.blob)

    def text(self, document: CaptureRow) -> str:
        """Return what people read on a page: what a browser showed, where the archive has that."""
        if form := self._form(document):
            with suppress(Damaged):
                if shown := rendered_forms.text_of(self._store(document), form):
                    return "\n".join(visible_lines.shown_lines(shown))
        body = self.body(document)
        plain = decoder(self._charset(document, body)).decode(body, True)
        return "\n".join(visible_lines.lines(plain.encode("utf-8", "replace")))

    def picture_of(self, document: CaptureRow) -> PagePicture | None:
        """Return the picture that a browser took of a page; None without one, and for one of another format."""
        form, store = self._form(document), self._store(document)
        if not form:
            return None
        with suppress(Damaged):
            blobs = rendered_forms.blobs_of(store, form)
            described = b""
            if rendered_forms.DESCRIPTION in blobs:
                described = store.read_short(blobs[rendered_forms.DESCRIPTION], rendered_forms.LONGEST_DESCRIPTION)
            for name in (name for name in blobs if rendered_forms.kind_of(name) == "picture"):
                content = store.read_short(blobs[name], rendered_forms.LARGEST_PICTURE)
                if kind := picture_kind(content):
                    return PagePicture(content, kind.ending, rendered_forms.picture_origin(described))
        return None

    def links(self, document: CaptureRow) -> list[ArchivedLink]:
        """Return the links of a page, with those of the DOM that a browser showed, where the archive has that."""
        body = self.body(document)
        own = _links_in(body, document.url, self._charset(document, body))
        form, dom = self._form(document), b""
        if form:
            with suppress(Damaged):
                dom = rendered_forms.read_html(self._store(document), form)
        more = Counter(_links_in(dom, document.url, "utf-8")) - Counter(own)
        return [*own, *more.elements()]

    def _part(self, domain: str) -> CrawlPart | None:
        """Return what is newest of a domain: an import may have several snapshots of one."""
        return next((part for part in reversed(self.record.parts) if part.tag.domain == domain), None)

    def _form(self, document: CaptureRow) -> str:
        """Return the tree of what a browser showed of a document; empty without one."""
        domain, arc = split(document.path)
        try:
            return rendered_forms.named_at(self._store(document), CommitTag(from_epoch(document.first), domain), arc)
        except (Damaged, InvalidDocument, NotFound):
            return ""  # `verify` says so

    def _store(self, document: CaptureRow) -> Repository:
        return Repository(self.archive.repository(split(document.path)[0]))

    def _charset(self, document: CaptureRow, body: bytes) -> str:
        return decode_charset(body, content_type_in(self._store(document).read_short(document.head, LONGEST_OF_ARC)))
