"""All that webarc.db has of a domain, for what goes through a whole archive: versions, redirects, what crawls met.

Rows come in order of path (redirects: of URL) and time, a page a short transaction, as plain tuples: each is one of a
million. Raises NotFound without a database, Busy while another process writes for long, DatabaseDamaged when it cannot
be read.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.query import connected
from webarcfs.archive.index.sqlite_file import IN_TURN, as_told_to_readers
from webarcfs.archive.model.url_lists import SIZE, MetBlock, meetings_of, unpacked

#: Rows of a page.
_ROWS = 2_000
#: Bytes of lists of what crawls met that are kept.
_KEPT = 24 << 20


class StoredRow(NamedTuple):
    """A version of a document, or a redirect, which has a `target`, in the snapshots from `first` up to `last`.

    `number` is that of the document, or by which lists of crawls have the redirect (0: they do not). `stored` is the
    snapshot whose crawl stored it, `captured` the time of the response, both in seconds since 1970. `blob`, `head` and
    `digest` (SHA-1 of the body) are in hexadecimal. `resource` is 1 if only pages of other hosts needed it.
    """

    number: int
    path: str
    url: str
    first: int
    last: int
    stored: int
    captured: int
    status: int
    mime_type: str
    title: str
    blob: str
    head: str
    size: int
    digest: str
    target: str
    resource: int


class StoredRows:
    """The rows of webarc.db, on one connection. A context manager, for one thread."""

    def __init__(self, database: Path) -> None:
        self._path = database
        with IN_TURN:
            self._connection = connected(database)
        self._blocks: OrderedDict[tuple[str, int, int], list[tuple[int, int, bytes]]] = OrderedDict()
        self._kept = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def versions(self, domain: str) -> Iterator[StoredRow]:
        """Yield the versions of a domain, by path, document and time."""
        values: dict[str, object] = {"domain": domain, "path": "", "number": -1, "first": -1, "limit": _ROWS}
        while rows := self._rows("captures/versions_of_domain", values):
            yield from map(StoredRow._make, rows)
            if len(rows) < _ROWS:
                return
            values |= {"number": rows[-1][0], "path": rows[-1][1], "first": rows[-1][3]}

    def redirects(self, domain: str) -> Iterator[StoredRow]:
        """Yield the redirects of a domain, by URL and time."""
        values: dict[str, object] = {"domain": domain, "url": "", "first": -1, "limit": _ROWS}
        while rows := self._rows("captures/redirects_of_domain", values):
            yield from map(StoredRow._make, rows)
            if len(rows) < _ROWS:
                return
            values |= {"url": rows[-1][2], "first": rows[-1][3]}

    def met(self, domain: str, kind: int, number: int) -> list[tuple[int, int, int]]:
        """Return when crawls met an ARC (kind 0) or a redirect (1) unchanged: snapshot, time, spelling; in order.

        The number of an ARC is the lowest one of the documents at its path.
        """
        block = number // SIZE
        key = domain, kind, block
        if key in self._blocks:
            self._blocks.move_to_end(key)
            rows = self._blocks[key]
        else:
            rows = self._read_block(domain, kind, block)
        return meetings_of(rows, number)

    def _read_block(self, domain: str, kind: int, block: int) -> list[tuple[int, int, bytes]]:
        values = {"domain": domain, "kind": kind, "block": block}
        packed = self._rows("captures/met_block", values)
        rows = [(seq, base, unpacked(MetBlock(block, base, times))) for seq, base, times in packed]
        self._blocks[domain, kind, block] = rows
        self._kept += sum(len(raw) for _, _, raw in rows)
        while self._kept > _KEPT and len(self._blocks) > 1:
            _, oldest = self._blocks.popitem(last=False)
            self._kept -= sum(len(raw) for _, _, raw in oldest)
        return rows

    def _rows(self, statement: str, values: dict[str, object]) -> list[tuple[Any, ...]]:
        try:
            with IN_TURN:
                return self._connection.execute(sql(statement), values).fetchall()
        except sqlite3.DatabaseError as error:
            raise as_told_to_readers(self._path, error) from None
