"""Reads documents from webarc.db: captures of URLs, versions for decisions about readers, versions for full text.

A page of rows is one short transaction, so that no writer waits for a reader, however slowly it reads. All functions
raise NotFound without a database, Busy while another process writes for long, DatabaseDamaged when it cannot be read.
Those that read captures also end with the deadline of their thread.

Captures are those of one URL, or of all URLs in a span of keys, in order of the keys. Versions for readers are found by
path and snapshot, or of a whole domain; those for full text come with git's ids, snapshots and the spans of a path.
"""

from __future__ import annotations

import heapq
import json
import os
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.query import connected
from webarcfs.archive.index.sqlite_file import IN_TURN, as_told_to_readers
from webarcfs.archive.model.metadata import parse_time
from webarcfs.archive.model.url_lists import SIZE, Met, MetBlock, met_at, unpacked
from webarcfs.archive.system import clocks

# == held versions ====================================================================================================


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


def domains_of(database: Path, publication: str) -> list[str]:
    """Return the domains of which a publication has snapshots, in order."""
    values = {"publication": publication}
    with _reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("metadata/domains_of_publication"), values)]


def urls_of(database: Path, publication: str) -> list[str]:
    """Return the URLs of the documents, but for error pages, and redirects that the crawls of a publication stored."""
    values = {"publication": publication}
    with _reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("metadata/urls_of_publication"), values)]


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


# == captures =========================================================================================================


#: `until` of a capture that the newest snapshot has.
NEVER = (1 << 63) - 1
_FORWARDS = ("captures/versions_below", "captures/redirects_below")
_BACKWARDS = ("captures/versions_backwards", "captures/redirects_backwards")

#: The number of an ARC or (True) of a redirect in the lists of what crawls met.
_NUMBER = {False: "metadata/select_met_arc", True: "metadata/select_met_redirect"}


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A version of a document, or a redirect, which has a `target`, in the snapshots from `first` up to `last`.

    `stored` is the snapshot whose crawl stored it (snapshots are seconds since 1970), `captured` the time of the
    answer in seconds, `blob` and `head` git's ids of the body and of headers.http, `size` bytes, `digest` the SHA-1 of
    the body, `publication` that of the crawl that stored it. `surt` is the key of the URL. `is_resource`: only pages of
    other hosts needed it.
    """

    url: str
    path: str
    surt: str
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
    digest: bytes
    target: str
    publication: str
    is_resource: bool

    @property
    def place(self) -> str:
        """What the lists of crawls have it by: the URL of a redirect, the path of a document."""
        return self.url if self.target else self.path

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Its place in the order of `below`."""
        return self.surt, self.path, self.url, self.first


class Meeting(NamedTuple):
    """The crawl of the snapshot `seq` met something unchanged, at a time and in a spelling."""

    seq: int
    met: Met


class Span(NamedTuple):
    """The URLs whose keys are `low` or more and less than `high`, behind the row `after`, if there is one."""

    low: str
    high: str
    after: tuple[str, str, str, int] | None = None


class CaptureIndex:
    """webarc.db, kept open for many questions. A context manager, for one thread at a time.

    Another database at the same path, as `recover` makes one, is noticed at the next question. Not `of_one_thread`: the
    threads that ask, one after the other, may be several.
    """

    def __init__(self, database: Path, *, of_one_thread: bool = True) -> None:
        self._path = database
        self._of_one_thread = of_one_thread
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] = (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; the next question opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def at(self, path: str, second: str = "") -> tuple[list[CaptureRow], list[CaptureRow]]:
        """Return the versions and the redirects at a path (`/<domain>/…`), of both schemes, oldest first.

        The versions are also those at `second`, the second name of the path for a URL.
        """
        versions = [_row(row) for row in self._rows("captures/versions_at", {"path": path, "second": second})]
        return versions, [_row(row) for row in self._rows("captures/redirects_at", {"path": path})]

    def below(self, span: Span, *, backwards: bool = False) -> Iterator[CaptureRow]:
        """Yield the versions and redirects of all URLs of a span, in order of key, path, URL and time; or backwards."""
        kinds = (
            self._below(statement, span, backwards=backwards) for statement in (_BACKWARDS if backwards else _FORWARDS)
        )
        return heapq.merge(*kinds, key=lambda row: row.key, reverse=backwards)

    def met(self, domain: str, name: str) -> list[Meeting]:
        """Return when crawls met an ARC (its path) or a redirect (its URL) unchanged, in the order of the snapshots."""
        return self.meetings()(domain, name)

    def meetings(self) -> Callable[[str, str], list[Meeting]]:
        """Return a function that does what `met` does, and keeps the rows of the last block: for neighbours."""
        last: tuple[tuple[str, bool, int], list[tuple[int, int, bytes]]] | None = None

        def met(domain: str, name: str) -> list[Meeting]:
            nonlocal last
            is_redirect = not name.startswith("/")
            numbers = self._rows(_NUMBER[is_redirect], {"url" if is_redirect else "path": name})
            if not numbers or numbers[0][0] is None:
                return []
            number = int(numbers[0][0])
            key = domain, is_redirect, number // SIZE
            if last is None or last[0] != key:
                last = key, self._block(*key)
            meetings = ((seq, met_at(base, raw, number)) for seq, base, raw in last[1])
            return [Meeting(seq, meeting) for seq, meeting in meetings if meeting is not None]

        return met

    def _block(self, domain: str, is_redirect: bool, number: int) -> list[tuple[int, int, bytes]]:
        rows = self._rows("captures/met_block", {"domain": domain, "kind": int(is_redirect), "block": number})
        return [(seq, base, unpacked(MetBlock(number, base, times))) for seq, base, times in rows]

    def complete(self, domain: str) -> frozenset[int]:
        """Return the snapshots of a domain whose crawls were complete, in seconds since 1970."""
        return frozenset(row[0] for row in self._rows("captures/complete", {"domain": domain}))

    def spread(self) -> list[tuple[str, int, str, str]]:
        """Return the snapshots that stored versions of several days: domain, time, first and last capture."""
        return [(row[0], row[1], row[2], row[3]) for row in self._rows("captures/spread", {})]

    def of_snapshot(self, domain: str, seq: int) -> Iterator[CaptureRow]:
        """Yield the versions in a snapshot of a domain, in order of path; one of a path."""
        path = ""
        while True:
            values = {"domain": domain, "seq": seq, "path": path, "limit": _ROWS}
            rows = self._rows("captures/of_snapshot", values)
            yield from map(_row, rows)
            if len(rows) < _ROWS:
                return
            path = rows[-1][1]

    def between(self, domain: str, seq: int, other: int) -> Iterator[CaptureRow]:
        """Yield the versions of a domain that one of two snapshots has and the other has not, by path and time."""
        path, first = "", -1
        while True:
            values = {"domain": domain, "seq": seq, "other": other, "path": path, "first": first, "limit": _ROWS}
            rows = self._rows("captures/between", values)
            yield from map(_row, rows)
            if len(rows) < _ROWS:
                return
            _, path, _, first = rows[-1][:4]

    def _below(self, statement: str, span: Span, *, backwards: bool) -> Iterator[CaptureRow]:
        end = (span.high, "", "", -1) if backwards else (span.low, "", "", -1)
        surt, path, url, first = span.after or end
        while True:
            values = {"surt": surt, "path": path, "url": url, "first": first, "limit": _ROWS}
            rows = self._rows(statement, values | ({"low": span.low} if backwards else {"high": span.high}))
            yield from map(_row, rows)
            if len(rows) < _ROWS:
                return
            url, path, surt, first = rows[-1][:4]

    def _rows(self, statement: str, values: dict[str, object]) -> list[tuple[Any, ...]]:
        try:
            with IN_TURN:
                return self._opened().execute(sql(statement), values).fetchall()
        except sqlite3.DatabaseError as error:
            self.close()
            raise as_told_to_readers(self._path, error) from None

    def _opened(self) -> sqlite3.Connection:
        try:
            status = os.stat(self._path)  # noqa: PTH116 # asked for each question
            identity = (status.st_dev, status.st_ino)
        except FileNotFoundError:
            identity = (0, 0)
        if self._connection is None or identity != self._identity:
            self.close()
            self._connection = connected(self._path, of_one_thread=self._of_one_thread)
            self._identity = identity
        return self._connection


class UrlRows:
    """What is stored for one URL: its redirects come first, then the versions at the second name of its path, then
    those at the first. Of each kind a snapshot has one at most.

    What another URL has at the first name answers for this one until it has a document of its own.
    """

    def __init__(
        self,
        url: str,
        redirects: list[CaptureRow],
        own: list[CaptureRow],
        first: list[CaptureRow],
        met: Callable[[str], list[Meeting]],
    ) -> None:
        """`met` is asked for the meetings of an ARC (its path) or a redirect (its URL)."""
        self._url = url
        self._ask, self._meetings = met, dict[str, dict[int, Met]]()
        self._alone_from = own[0].first if own else NEVER
        self.rows = [*redirects, *own, *(row for row in first if self._is_of(row, row.first))]
        self.has_redirects = bool(redirects or own)
        self._kinds = [(rows, [row.first for row in rows]) for rows in (redirects, own, first) if rows]

    def met(self, row: CaptureRow) -> Mapping[int, Met]:
        """Return the snapshots whose crawls met what was at the place of a row unchanged, in order."""
        return self.met_at(row.place)

    def met_at(self, name: str) -> Mapping[int, Met]:
        """Return the same for an ARC (its path) or a redirect (its URL)."""
        if name not in self._meetings:
            self._meetings[name] = dict(self._ask(name))
        return self._meetings[name]

    def is_newest(self, row: CaptureRow | None, seq: int, shown: Sequence[int]) -> bool:
        """Return whether no crawl up to a time stored or met anything at the URL later than this row; None: anything.

        Where it is not known at once, that is looked up in the lists of what crawls met. A meeting of the row itself
        counts where its snapshot is shown, one of another row in any case: then each snapshot is looked at.
        """
        others = [other for other in self.rows if other is not row and other.stored <= seq]
        if row is None or any(row.stored < other.stored for other in others):
            return not others
        if not any(row.stored < other.last and other.first <= seq for other in others):
            return True
        own = max((met_seq for met_seq in self._met_in(row, seq) if _has(shown, met_seq)), default=row.stored)
        return not any(own < met_seq for other in others for met_seq in self._met_in(other, seq))

    def _met_in(self, row: CaptureRow, seq: int) -> Iterator[int]:
        return (met_seq for met_seq in self.met(row) if row.first <= met_seq < row.last and met_seq <= seq)

    def at(self, seq: int) -> Iterator[CaptureRow]:
        """Yield what a snapshot has, as far as its domain is concerned."""
        for rows, firsts in self._kinds:
            place = bisect_right(firsts, seq) - 1
            if place >= 0 and seq < rows[place].last and self._is_of(rows[place], seq):
                yield rows[place]

    def _is_of(self, row: CaptureRow, seq: int) -> bool:
        return seq < self._alone_from or row.url == self._url


def _has(seqs: Sequence[int], seq: int) -> bool:
    place = bisect_left(seqs, seq)
    return place < len(seqs) and seqs[place] == seq


def _row(row: tuple[Any, ...]) -> CaptureRow:
    clocks.check()
    (
        url, path, surt, first, last, stored, captured, status, mime_type, title, blob, head, size, digest, target,
        publication, resource,
    ) = row  # fmt: skip
    return CaptureRow(
        url, path, surt, first, last, stored, int(parse_time(captured).timestamp()), status, mime_type, title, blob,
        head, size, digest, target, publication, bool(resource),
    )  # fmt: skip


# == fulltext source ==================================================================================================


#: Rows of a page.


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
    is_resource: bool


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
            mime_type, since, until, _, url, path, title, status, captured, blob, head, size, publication, resource = (
                row
            )
            yield SourceVersion(
                url, path, mime_type, title, status, int(parse_time(captured).timestamp()), blob.hex(), head.hex(),
                size, publication or "", since, until, bool(resource),
            )  # fmt: skip
        if len(rows) < _ROWS:
            return
        after = rows[-1][:4]


def every_version(database: Path) -> Iterator[SourceVersion]:
    """Yield all versions of all domains."""
    for domain in count_versions(database):
        touched = {snapshot.seq for snapshot in snapshots(database, domain)}
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
