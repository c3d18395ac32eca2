"""Changes for webarc.db, of documents that no repository has."""

from __future__ import annotations

from webarcfs.archive.index.database import DocumentChange, StoredVersion
from webarcfs.archive.model.metadata import MetaData

BODY, HEAD, DIGEST = "b0" * 20, "ad" * 20, b"\xd1" * 20


def change(path: str, meta: MetaData | None) -> DocumentChange:
    """The change of a snapshot at a path: that document from then on, or none."""
    return DocumentChange(path, None if meta is None else StoredVersion(meta, BODY, HEAD, 42, DIGEST))
