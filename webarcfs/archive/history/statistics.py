"""Statistics of a snapshot: documents and bytes by MIME type and by extension."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.versions import arcs, described
from webarcfs.archive.model.errors import InvalidDocument

#: The type or extension of a document without one.
NONE = "(none)"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Documents and bytes; each kind of count by MIME type and by extension (of the data file, without its dot).

    Error pages are counted by themselves, and are no documents here.
    """

    documents: int = 0
    bytes: int = 0
    types: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    extensions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    error_pages: int = 0

    def as_table(self) -> dict[str, object]:
        """For JSON: `{"documents": n, "bytes": n, "types": {"text/html": {"documents": n, "bytes": n}, …}, …}`."""
        tables = {"types": self.types, "extensions": self.extensions}
        parts = {
            name: {key: {"documents": count, "bytes": size} for key, (count, size) in table.items()}
            for name, table in tables.items()
        }
        return {"documents": self.documents, "bytes": self.bytes, "error_pages": self.error_pages, **parts}


def statistics(store: Repository, tree: str) -> Statistics:
    """Count a snapshot's documents; bodies are not read. An ARC with an unreadable data.xml has no type."""
    counts: dict[str, Counter[str]] = {"types": Counter(), "extensions": Counter()}
    sizes: dict[str, Counter[str]] = {"types": Counter(), "extensions": Counter()}
    error_pages = 0
    for arc in arcs(store, tree):
        if arc.data is None:
            continue
        size = store.size(arc.data.oid)
        try:
            meta = described(store, arc)
            if meta.is_error_page:
                error_pages += 1
                continue
            kind = meta.mime_type or NONE
        except InvalidDocument:
            kind = NONE
        # data.xml is the ARC's own, so an .xml body is data.orig.xml: the last part is the extension.
        extension = arc.data.name.rpartition(".")[2] if "." in arc.data.name else NONE
        for table, key in (("types", kind), ("extensions", extension)):
            counts[table][key] += 1
            sizes[table][key] += size
    joined = {
        table: {key: (count, sizes[table][key]) for key, count in counts[table].most_common()} for table in counts
    }
    return Statistics(
        documents=sum(counts["types"].values()),
        bytes=sum(sizes["types"].values()),
        types=joined["types"],
        extensions=joined["extensions"],
        error_pages=error_pages,
    )
