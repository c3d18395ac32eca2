"""A snapshot as checks see it: its record, its documents, their bodies and links. Read only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.indexing import bodies
from agent.steps.context import documents_of, pages_of, tree_of
from webarcfs.archive.catalogue.record import Part, Record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.captures import CaptureIndex, CaptureRow
from webarcfs.archive.index.links_words import ArchivedLink
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.content import anchors, visible_lines
from webarcfs.content.text import decode_charset, decoder


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
            versions, _ = index.at(f"/{path}")
        return next((each for each in versions if each.first <= seq < each.last), None)

    def body(self, document: CaptureRow) -> bytes:
        """Return the bytes of a document."""
        return self._store(document).read(document.blob)

    def text(self, document: CaptureRow) -> str:
        """Return what people read on a page."""
        body = self.body(document)
        plain = decoder(self._charset(document, body)).decode(body, True)
        return "\n".join(visible_lines.lines(plain.encode("utf-8", "replace")))

    def links(self, document: CaptureRow) -> list[ArchivedLink]:
        """Return the links of a page."""
        body = self.body(document)
        charset = self._charset(document, body)
        base = anchors.base_of((body,), charset) if anchors.may_have_base(body) else ""
        return list(anchors.anchors_of((body,), document.url, charset, base))

    def _part(self, domain: str) -> Part | None:
        """Return what is newest of a domain: an import may have several snapshots of one."""
        return next((each for each in reversed(self.record.parts) if each.tag.domain == domain), None)

    def _store(self, document: CaptureRow) -> Repository:
        return Repository(self.archive.repository(split(document.path)[0]))

    def _charset(self, document: CaptureRow, body: bytes) -> str:
        return decode_charset(body, bodies.content_type(self._store(document), document.head))
