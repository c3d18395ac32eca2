"""Stage 9, index: webarc.db learns what a crawl changed (/Cr-15/). It reads git alone, so `recover` does the same.

Only metadata count: a commit that merely added files, or data nodes, changes no row.
"""

from __future__ import annotations

from collections.abc import Iterator

from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.index.database import Database, DocumentChange
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import MetaData


def index(database: Database, store: Repository, commit: Commit) -> None:
    """Record the snapshot of a crawl's commit, in one transaction. Raises Damaged where a data.xml cannot be read."""
    database.record(commit.message, changes_of(store, commit))


def changes_of(store: Repository, commit: Commit) -> Iterator[DocumentChange]:
    """The documents whose metadata a commit changed, in order of path."""
    before = store.commit(commit.parents[0]).tree if commit.parents else None
    domain = commit.message.tag.domain
    for difference in store.differences(before, commit.tree):
        folder, _, name = difference.path.rpartition("/")
        if name != DATA_XML:
            continue
        path = f"/{domain}/{folder}"
        old, new = (_metadata(store, blob, path) for blob in (difference.old, difference.new))
        if old != new:
            yield DocumentChange(path, new)


def _metadata(store: Repository, blob: str | None, path: str) -> MetaData | None:
    if blob is None:
        return None
    document = store.read(blob)
    try:
        return data_xml.metadata(document)
    except (InvalidDocument, Damaged) as error:
        raise Damaged(f"{path}/{DATA_XML} ({blob} in {store.path}): {error}") from None
