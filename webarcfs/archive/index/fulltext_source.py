"""Reads from webarc.db what the full-text index needs: versions with git's ids, snapshots, spans of a path.

A page of rows is one short transaction, so that no writer waits for an index that is being made. All functions raise
NotFound without a database, Busy while another process writes for long, DatabaseDamaged when it cannot be read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index.query import connected
from webarcfs.archive.index.sqlite_file import IN_TURN, as_told_to_readers
from webarcfs.archive.model.metadata import parse_time

#: Rows of a page.
_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A row of webarc.db: the bytes at a path, in the snapshots from `since` up to `until` (seconds since 1970).

    `blob` and `head` are git's ids of body and headers.http, `captured` seconds since 1970, `size` bytes.
    """

    url: str
    path: str
    mime_type: str
    title: str
    status: int
    captured: int
    blob: str
    head: str
    size: int
    publication: str
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """A snapshot of a domain."""

    domain: str
    seq: int
    tag: str
    publication: str


@dataclass(frozen=True, slots=True)
class PathSpan:
    """The snapshots that have one version of what is at a path."""

    since: int
    until: int
    blob: str
    stored: int
    captured: int
    url: str


def versions(database: Path, domain: str, touched: Iterable[int]) -> Iterator[SourceVersion]:
    """Yield the versions of a domain that began or ended in one of some snapshots. Rows may change between pages."""
    values = {"domain": domain, "touched": json.dumps(sorted(touched)), "limit": _ROWS}
    after: tuple[str, int, int, int] = ("", 0, 0, 0)
    while True:
        key = dict(zip(("mimeType", "seq_from", "seq_until", "document"), after, strict=True))
        with _reading(database) as connection:
            rows = connection.execute(sql("search/versions"), values | key).fetchall()
        for row in rows:
            mime_type, since, until, _, url, path, title, status, captured, blob, head, size, publication = row
            yield SourceVersion(
                url, path, mime_type, title, status, int(parse_time(captured).timestamp()), blob.hex(), head.hex(),
                size, publication or "", since, until,
            )  # fmt: skip
        if len(rows) < _ROWS:
            return
        after = rows[-1][:4]


def every_version(database: Path) -> Iterator[SourceVersion]:
    """Yield all versions of all domains."""
    for domain in count_versions(database):
        touched = {each.seq for each in snapshots(database, domain)}
        yield from versions(database, domain, touched)


def snapshots(database: Path, domain: str | None = None) -> list[SourceSnapshot]:
    """Return the snapshots of all domains, or of one, oldest first in each."""
    with _reading(database) as connection:
        rows = connection.execute(sql("search/snapshots"), {"domain": domain}).fetchall()
    return [SourceSnapshot(*row) for row in rows]


def count_snapshots(database: Path) -> int:
    """Return the number of snapshots of all domains."""
    with _reading(database) as connection:
        return int(connection.execute(sql("search/count_snapshots")).fetchone()[0])


def count_versions(database: Path) -> dict[str, int]:
    """Return the number of versions of each domain."""
    with _reading(database) as connection:
        return dict(connection.execute(sql("search/count_versions")).fetchall())


class PathSpans:
    """Looks up the spans of paths, on one connection. Use it as a context manager, in one thread."""

    def __init__(self, database: Path) -> None:
        self._database = database
        with IN_TURN:
            self._connection = connected(database)

    def __enter__(self) -> PathSpans:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def of(self, path: str) -> list[PathSpan]:
        """Return the spans of the versions at a path, oldest first."""
        try:
            with IN_TURN:
                rows = self._connection.execute(sql("search/spans"), {"path": path}).fetchall()
        except sqlite3.DatabaseError as error:
            raise as_told_to_readers(self._database, error) from None
        return [
            PathSpan(since, until, blob.hex(), stored, int(parse_time(captured).timestamp()), url)
            for since, until, blob, stored, captured, url in rows
        ]


@contextmanager
def _reading(database: Path) -> Iterator[sqlite3.Connection]:
    with IN_TURN, closing(connected(database)) as connection:
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise as_told_to_readers(database, error) from None
