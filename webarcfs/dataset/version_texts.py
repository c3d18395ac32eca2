"""The visible text of versions: that of the full-text index, or read from the document where the index has none.

The index may have words of what a browser showed in a crawl. If that crawl is hidden from the reader, the document
itself is read instead. What is read here has no words that scripts put into a page.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound
from webarcfs.content.extractors.extracted import Extracted
from webarcfs.dataset.readers_versions import ReadersVersion
from webarcfs.texts.extraction import Extraction, ExtractionRequest
from webarcfs.texts.version_text import must_be_installed, request_of

if TYPE_CHECKING:
    from webarcfs.search.index import IndexReader


class VersionTexts:
    """The texts of an archive's versions. A context manager, for one thread."""

    def __init__(self, archive: Archive) -> None:
        """Raise UsageError where the libraries for full text are missing."""
        must_be_installed("tantivy")
        self._archive = archive
        self._index: IndexReader | None = None
        self._last: tuple[ReadersVersion | None, Extracted | None] = None, None
        #: Why the index was not asked; empty if it was.
        self.missing_index = ""
        #: Texts that were read from documents.
        self.read = 0

    def __enter__(self) -> Self:
        from webarcfs.search import generations  # noqa: PLC0415 # of the extra `search`

        try:
            self._index = generations.opened(self._archive)
        except NotFound as error:
            self.missing_index = str(error)
        self._stack = ExitStack()
        self._extraction: Extraction[None] = self._stack.enter_context(Extraction())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, version: ReadersVersion, shown: Container[int]) -> Extracted | None:
        """Return the text of a version; None for a type without text. `shown` are the snapshots that the reader sees.

        The next question about the same version costs nothing.
        """
        if self._last[0] is not version:
            self._last = version, self._find(version, shown)
        return self._last[1]

    def _find(self, version: ReadersVersion, shown: Container[int]) -> Extracted | None:
        row = version.row
        if row.target:
            return None
        request = request_of(self._archive.repository(version.domain), row.mime_type, row.blob, row.head)
        indexed = self._index.find(row.path, row.first) if self._index is not None else None
        if indexed is not None and indexed.blob == row.blob and (not indexed.shown_in or indexed.shown_in in shown):
            return indexed.extracted if indexed.extracted.body or request is not None else None
        return None if request is None else self._read(request)

    def _read(self, request: ExtractionRequest) -> Extracted:
        self.read += 1
        return next(text for _, text in self._extraction.texts([(None, request)]))
