"""Reads versions of documents from webarc.db for decisions about readers: by path and snapshot, or of a whole domain.

A page of rows is one short transaction, so that no writer waits for a reader. All functions raise NotFound without a
database, Busy while another process writes for long, DatabaseDamaged when it cannot be read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index.query import connected
from webarcfs.archive.index.sqlite_file import IN_TURN, as_told_to_readers
from webarcfs.archive.model.metadata import parse_time

#: Rows of a page.
_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version of a document: in the snapshots from `first` up to `last`, which no longer contains it (seconds).

    `path` is `/<domain>/…`, `stored` the snapshot whose crawl stored it, `blob` git's id of its body.
    """

    path: str
    url: str
    captured: datetime
    blob: str
    first: int
    last: int
    stored: int


def version_at(database: Path, path: str, seq: int) -> HeldVersion | None:
    """Return the version of the document at a path in a snapshot; None without one."""
    with _reading(database) as connection:
        row = connection.execute(sql("metadata/version_at"), {"path": path, "seq": seq}).fetchone()
        return None if row is None else _version(row)


def versions_of(database: Path, domain: str) -> Iterator[HeldVersion]:
    """Yield all versions of all documents of a domain, by path and time. Rows may change between pages."""
    path, first = "", -1
    while True:
        values = {"domain": domain, "path": path, "first": first, "limit": _ROWS}
        with _reading(database) as connection:
            rows = connection.execute(sql("metadata/versions_of"), values).fetchall()
        yield from map(_version, rows)
        if len(rows) < _ROWS:
            return
        path, first = rows[-1][0], rows[-1][4]


def domains(database: Path) -> list[str]:
    """Return the domains that have snapshots, in order."""
    with _reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("metadata/select_domains"))]


def _version(row: tuple[str, str, str, str, int, int, int]) -> HeldVersion:
    path, url, captured, blob, first, last, stored = row
    return HeldVersion(path, url, parse_time(captured), blob, first, last, stored)


@contextmanager
def _reading(database: Path) -> Iterator[sqlite3.Connection]:
    with IN_TURN, closing(connected(database)) as connection:
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise as_told_to_readers(database, error) from None
