"""Stage 5, compare: a document with the bytes that its ARC has keeps the ARC; nothing after this costs it anything.

Cost follows change, not size (DESIGN.md section 1): the ARC keeps its head, times, title and additions.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.document import Document, replace
from agent.run import Run, is_arc


def compare(documents: Iterator[Document], run: Run) -> Iterator[Document]:
    """All documents, with what their ARC holds now and whether the data file is the same."""
    keep = run.job.settings.unchanged == "keep"
    for document in documents:
        folder = run.shelf.folder(document.arc)
        if folder is None:
            yield document
            continue
        entries = tuple(folder.values())
        data = folder.get(document.data_name)
        same = is_arc(entries) and data is not None and not data.is_tree and data.oid == document.body.blob
        nested = any(entry.is_tree for entry in entries)
        yield replace(document, stored=entries, nested=nested, unchanged=same and keep)
