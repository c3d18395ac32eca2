"""webarc.db: every version of every document, for queries (/Db-1/ … /Db-6/). Only the agent writes to it.

Derived from git; `record` adds the changes of one snapshot. The statements are the files of `sql/`. The database keeps
SQLite's rollback journal (no WAL), so that readers without write permission can open it.

Read from it are captures of URLs, versions for decisions about readers, and versions for full text.

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
from itertools import accumulate, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, Self

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.query import connected
from webarcfs.archive.index.sqlite_file import IN_TURN, SqliteFile, as_told_to_readers, queries_of
from webarcfs.archive.model.arc_paths import arc_path, second_path, split
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitMessage, MetaData, format_time, parse_time, utc
from webarcfs.archive.model.url_lists import (
    SIZE,
    Met,
    MetBlock,
    Redirect,
    blocks_of,
    extent_of,
    meetings_of,
    met_in,
    unpacked,
)
from webarcfs.archive.model.urls import surt
from webarcfs.archive.system import clocks

# == database =========================================================================================================


#: The metadata that are the same in all rows of a snapshot, and the path, which is the key.
OF_SNAPSHOT = frozenset({"path", "domain", "crawlTime", "commitTag"})
#: `seq_until` of current versions.
_NEVER = (1 << 63) - 1
#: URLs that one statement numbers.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a document: its metadata, git's ids of body and headers.http, size and SHA-1 of the body."""

    meta: MetaData
    blob: str
    head: str
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """The change of a snapshot at one path: the version from then on, None if the document was removed."""

    path: str
    version: StoredVersion | None


class Database(SqliteFile):
    """An open webarc.db. Use it as a context manager, in one thread."""

    def __init__(self, path: Path) -> None:
        """Open or make the database at `path`. Raises DatabaseDamaged for another program's file or another version."""
        super().__init__(path, "IMMEDIATE")
        with self._translated():
            self._db = queries_of(self._connection)
            self._ready("schema")

    def record(
        self,
        message: CommitMessage,
        changes: Iterable[DocumentChange],
        redirects: Iterable[tuple[str, Redirect | None]] = (),
        met: Iterable[tuple[str, Met]] = (),
    ) -> None:
        """Add one snapshot, in one transaction; once only (/Cr-15/).

        `changes`, and `redirects` (URL, the redirect from then on), are against the previous snapshot in time. It is
        the newest of its domain, or an import from before that: then its versions end at the next snapshot in time,
        from which earlier ones continue. `met` is what the crawl met unchanged: paths of ARCs, URLs of redirects.
        """
        tag = message.tag
        seq = int(tag.crawl_time.timestamp())
        with self._translated(), self._connection:
            domain = self._domain(tag.domain)
            snapshot = self._run(
                "metadata/insert_snapshot",
                domain=domain,
                seq=seq,
                crawlTime=format_time(tag.crawl_time),
                commitTag=str(tag),
                sequence=message.sequence,
                publication=message.publication,
                complete=int(message.complete),
            )
            if not snapshot.rowcount:
                return  # another process, catching up, was faster
            following = self._next(domain, seq)
            for change in changes:
                if following != _NEVER:
                    self._split(change.path, seq, following)
                self._run("metadata/close_version", seq=seq, path=change.path)
                if change.version is not None:
                    values = _values(change.version) | {"domain": domain, "seq": seq, "next": following, "stored": seq}
                    self._run("metadata/insert_document", **values)
                    self._run("metadata/insert_version", **values)
            for url, redirect in redirects:
                values = {"domain": domain, "url": url, "seq": seq, "next": following}
                if following != _NEVER:
                    self._run("metadata/split_redirect", **values)
                self._run("metadata/close_redirect", **values)
                if redirect is not None:
                    self._run("metadata/insert_redirect", **values | _redirect_values(redirect))
            self._record_met(domain, seq, met)

    def indexed(self, domain: str) -> set[str]:
        """Return the commitTags of `domain` that are in the database."""
        with self._translated():
            rows = self._db.query(sql("metadata/select_indexed"), {"name": domain})
            return {str(row["commitTag"]) for row in rows}

    def since(self, sequence: int) -> Iterator[tuple[int, str]]:
        """Yield (number, commitTag) of the snapshots published after a number of the archive's counter, in order."""
        with self._translated():
            for row in self._db.query(sql("metadata/select_since"), {"sequence": sequence}):
                yield int(row["sequence"]), str(row["commitTag"])

    def current(self, domain: str) -> dict[str, dict[str, str]]:
        """Return the newest state of `domain`: path → the metadata but for those of `OF_SNAPSHOT`."""
        with self._translated():
            rows = self._db.query(sql("metadata/select_current"), {"name": domain})
            return {row["path"]: {name: str(row[name]) for name in row.keys() - OF_SNAPSHOT} for row in rows}

    def redirects(self, domain: str) -> dict[str, Redirect]:
        """Return the redirects in the newest state of `domain`, by URL."""
        with self._translated():
            rows = self._db.query(sql("metadata/select_redirects"), {"name": domain})
            return {str(row["url"]): _redirect(row) for row in rows}

    def count_versions(self) -> int:
        """Return the number of versions of documents."""
        with self._translated():
            return int(self._one("metadata/count_versions"))

    def dump(self) -> Iterator[dict[str, str]]:
        """Yield the whole view `metadata`, ordered by commitTag and path."""
        with self._translated():
            yield from self._db.query(sql("metadata/dump"))

    def dump_redirects(self) -> Iterator[dict[str, str]]:
        """Yield the redirects of every snapshot, ordered by commitTag and URL."""
        with self._translated():
            yield from self._db.query(sql("metadata/dump_redirects"))

    def _split(self, path: str, seq: int, following: int) -> None:
        """Split the versions at a path that are valid before and after a snapshot."""
        for row in list(self._db.query(sql("metadata/select_split"), {"path": path, "seq": seq, "next": following})):
            self._run("metadata/insert_version", **row)

    def _record_met(self, domain: int, seq: int, met: Iterable[tuple[str, Met]]) -> None:
        """Add what the crawl of a snapshot met unchanged: after its changes, so that each ARC has its number."""
        for is_redirect, names in groupby(met, lambda row: not row[0].startswith("/")):
            numbered = self._with_redirect_numbers if is_redirect else self._with_arc_numbers
            for block in blocks_of(numbered(names)):
                values = {"block": block.number, "base": block.base, "times": block.times}
                self._run("metadata/insert_met", domain=domain, kind=int(is_redirect), seq=seq, **values)

    def _with_arc_numbers(self, met: Iterator[tuple[str, Met]]) -> Iterator[tuple[int, Met]]:
        for portion in _portions(met):
            paths = [path for path, _ in portion]
            rows = self._run("metadata/select_met_arcs", paths=json.dumps(paths))
            for (path, when_met), (number,) in zip(portion, rows, strict=True):
                if number is None:
                    raise Damaged(f"the list of what a crawl met unchanged has {path}, and no snapshot has it")
                yield int(number), when_met

    def _with_redirect_numbers(self, met: Iterator[tuple[str, Met]]) -> Iterator[tuple[int, Met]]:
        for portion in _portions(met):
            urls = json.dumps([url for url, _ in portion])
            self._run("metadata/insert_met_redirects", urls=urls)
            rows = self._run("metadata/select_met_redirects", urls=urls)
            for (_, when_met), (number,) in zip(portion, rows, strict=True):
                yield int(number), when_met

    def _domain(self, name: str) -> int:
        self._run("insert_domain", name=name)
        return int(self._db.execute(sql("select_domain"), {"name": name}).fetchone()[0])

    def _next(self, domain: int, seq: int) -> int:
        next_seq = self._db.execute(sql("select_next_snapshot"), {"domain": domain, "seq": seq}).fetchone()[0]
        return _NEVER if next_seq is None else int(next_seq)


def _portions(met: Iterator[tuple[str, Met]]) -> Iterator[list[tuple[str, Met]]]:
    """Yield what a crawl met in lists, each for one statement: a site may have a million URLs."""
    while portion := list(islice(met, _AT_ONCE)):
        yield portion


def _values(version: StoredVersion) -> dict[str, object]:
    """Return the columns of a version and its document."""
    return version.meta.as_fields() | {
        "surt": surt(version.meta.url),
        "status": version.meta.status,
        "blob": bytes.fromhex(version.blob),
        "head": bytes.fromhex(version.head),
        "size": version.size,
        "digest": version.digest,
        "resource": version.meta.is_resource,
    }


def _redirect_values(redirect: Redirect) -> dict[str, object]:
    """Return the columns of a redirect."""
    return {
        "path": f"/{arc_path(redirect.url)}",
        "surt": surt(redirect.url),
        "status": redirect.status,
        "target": redirect.target,
        "captureTime": format_time(redirect.time),
    }


def _redirect(row: dict[str, Any]) -> Redirect:
    return Redirect(row["url"], row["status"], row["target"], utc(parse_time(row["captureTime"])))


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
    with reading(database) as connection:
        row = connection.execute(sql("metadata/version_at"), {"path": path, "seq": seq}).fetchone()
        return None if row is None else _version(row)


def versions_of(database: Path, domain: str) -> Iterator[HeldVersion]:
    """Yield all versions of all documents of a domain, by path and time. Rows may change between pages."""
    path, first = "", -1
    while True:
        values = {"domain": domain, "path": path, "first": first, "limit": _ROWS}
        with reading(database) as connection:
            rows = connection.execute(sql("metadata/versions_of"), values).fetchall()
        yield from map(_version, rows)
        if len(rows) < _ROWS:
            return
        path, first = rows[-1][0], rows[-1][4]


def domains(database: Path) -> list[str]:
    """Return the domains that have snapshots, in order."""
    with reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("metadata/select_domains"))]


def domains_of(database: Path, publication: str) -> list[str]:
    """Return the domains of which a publication has snapshots, in order."""
    values = {"publication": publication}
    with reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("metadata/domains_of_publication"), values)]


def urls_of(database: Path, publication: str) -> list[str]:
    """Return the URLs of the documents, but for error pages, and redirects that the crawls of a publication stored."""
    values = {"publication": publication}
    with reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("metadata/urls_of_publication"), values)]


def _version(row: tuple[str, str, str, str, int, int, int]) -> HeldVersion:
    path, url, captured, blob, first, last, stored = row
    return HeldVersion(path, url, parse_time(captured), blob, first, last, stored)


@contextmanager
def reading(database: Path) -> Iterator[sqlite3.Connection]:
    """Open webarc.db to read it, and close it. Raises what `as_told_to_readers` returns."""
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

    def in_snapshots(self, places: Sequence[tuple[str, int]]) -> list[list[CaptureRow]]:
        """Return what snapshots have at canonical URLs, of each URL and snapshot the rows: the one in force first.

        That is a redirect, else the version at the second name of its path, else at the first.
        """
        paths = [(f"/{arc_path(url)}", f"/{second_path(url)}") for url, _ in places]
        versions = [(at, *paths[at], seq) for at, (_, seq) in enumerate(places)]
        redirects = [(at, split(paths[at][0])[0], url, seq) for at, (url, seq) in enumerate(places)]
        found: list[list[CaptureRow]] = [[] for _ in places]
        for at, *values in self._rows("captures/redirects_in_snapshots", {"places": json.dumps(redirects)}):
            found[at].append(_row(tuple(values)))
        rows = self._rows("captures/versions_in_snapshots", {"places": json.dumps(versions)})
        stored = [(at, _row(tuple(values))) for at, *values in rows]
        for at, row in sorted(stored, key=lambda pair: pair[1].path != paths[pair[0]][1]):
            found[at].append(row)
        return found

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
            return [Meeting(seq, Met(time, spelling)) for seq, time, spelling in meetings_of(last[1], number)]

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
        self._stored = sorted(row.stored for row in self.rows)
        by_begin = sorted(self.rows, key=_begin_of)
        self._begins = [_begin_of(row) for row in by_begin]
        self._longest = list(_two_longest(by_begin))

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
        stored = bisect_right(self._stored, seq)
        if row is None:
            return not stored
        if stored and row.stored < self._stored[stored - 1]:
            return False
        begun = bisect_right(self._begins, seq)
        longest = self._longest[begun - 1] if begun else ()
        if not any(row.stored < other.last for other in longest if other is not None and other is not row):
            return True
        others = [other for other in self.rows if other is not row and other.stored <= seq]
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


def _begin_of(row: CaptureRow) -> int:
    """Return from when a row counts: it was stored, and a snapshot has it."""
    return max(row.stored, row.first)


def _two_longest(rows: Sequence[CaptureRow]) -> Iterator[tuple[CaptureRow, CaptureRow | None]]:
    """Yield, of the rows up to each, the two that snapshots have longest: one is not the row that is asked about."""
    first: CaptureRow | None = None
    second: CaptureRow | None = None
    for row in rows:
        if first is None or first.last < row.last:
            first, second = row, first
        elif second is None or second.last < row.last:
            second = row
        yield first, second


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

    `blob` and `head` are git's ids of body and headers.http, `captured` seconds since 1970, `size` bytes, `stored` the
    snapshot whose crawl stored it.
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
    stored: int


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
        with reading(database) as connection:
            rows = connection.execute(sql("search/versions"), values | key).fetchall()
        for row in rows:
            (
                mime_type, since, until, _, url, path, title, status, captured, blob, head, size, publication, resource,
                stored,
            ) = row  # fmt: skip
            yield SourceVersion(
                url, path, mime_type, title, status, int(parse_time(captured).timestamp()), blob.hex(), head.hex(),
                size, publication or "", since, until, bool(resource), stored,
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
    with reading(database) as connection:
        rows = connection.execute(sql("search/snapshots"), {"domain": domain}).fetchall()
    return [SourceSnapshot(*row) for row in rows]


def count_snapshots(database: Path) -> int:
    """Return the number of snapshots of all domains."""
    with reading(database) as connection:
        return int(connection.execute(sql("search/count_snapshots")).fetchone()[0])


def count_versions(database: Path) -> dict[str, int]:
    """Return the number of versions of each domain."""
    with reading(database) as connection:
        return dict(connection.execute(sql("search/count_versions")).fetchall())


class SpanCounts:
    """How many versions the snapshots of a domain have. A span has the first one, the first one behind, a number."""

    def __init__(self, spans: Iterable[tuple[int, int, int]]) -> None:
        changes: dict[int, int] = {}
        for since, until, count in spans:
            changes[since] = changes.get(since, 0) + count
            changes[until] = changes.get(until, 0) - count
        self._seqs = sorted(changes)
        self._totals = list(accumulate(changes[seq] for seq in self._seqs))

    def at(self, seq: int) -> int:
        """Return the number of a snapshot."""
        place = bisect_right(self._seqs, seq)
        return self._totals[place - 1] if place else 0


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """What the crawl of a snapshot captured of documents: the first and the last time, in seconds since 1970.

    `stored` versions are new, `met` ones it met unchanged; `carried` are in the snapshot's tree, and it did neither.
    """

    first: int
    last: int
    stored: int
    met: int
    carried: int


def capture_facts(database: Path, domain: str, seqs: Iterable[int]) -> dict[int, CaptureFacts]:
    """Return what the crawls of some snapshots of a domain captured. One that captured nothing has its own time."""
    wanted = sorted(seqs)
    values = {"domain": domain, "seqs": json.dumps(wanted)}
    with reading(database) as connection:
        sizes = SpanCounts(connection.execute(sql("search/tree_sizes"), {"domain": domain}))
        stored = {seq: rest for seq, *rest in connection.execute(sql("search/stored"), values)}
    extents: dict[int, list[tuple[int, int, int]]] = {}
    for seq, block in _met_blocks(database, domain, wanted):
        extents.setdefault(seq, []).append(extent_of(block))
    facts = {}
    for seq in wanted:
        count, *times = stored.get(seq, (0,))
        captured = [int(parse_time(time).timestamp()) for time in times]
        captured += [time for _, *both in extents.get(seq, ()) for time in both]
        met = sum(number for number, *_ in extents.get(seq, ()))
        carried = sizes.at(seq) - count - met
        facts[seq] = CaptureFacts(min(captured, default=seq), max(captured, default=seq), count, met, carried)
    return facts


def met_in_snapshot(database: Path, domain: str, seq: int) -> Iterator[tuple[str, int, Met]]:
    """Yield what the crawl of a snapshot met of documents: path, first snapshot of the version, time and spelling."""
    for _, block in _met_blocks(database, domain, [seq]):
        met = dict(met_in(block))
        with reading(database) as connection:
            rows = connection.execute(
                sql("search/met_versions"), {"numbers": json.dumps([*met]), "seq": seq}
            ).fetchall()
        for number, path, since in rows:
            yield path, since, met[number]


class TreeVersion(NamedTuple):
    """A version in the tree of a snapshot whose crawl did not store it. `number` is that of its ARC."""

    path: str
    since: int
    until: int
    stored: int
    number: int


def carried_in_snapshot(database: Path, domain: str, seq: int) -> Iterator[TreeVersion]:
    """Yield the versions in the tree of a snapshot that its crawl neither stored nor met, by path."""
    met = {number for _, block in _met_blocks(database, domain, [seq]) for number, _ in met_in(block)}
    path = ""
    while True:
        values = {"domain": domain, "seq": seq, "path": path, "limit": _ROWS}
        with reading(database) as connection:
            rows = connection.execute(sql("search/tree"), values).fetchall()
        yield from (version for version in map(TreeVersion._make, rows) if version.number not in met)
        if len(rows) < _ROWS:
            return
        path = rows[-1][0]


def _met_blocks(database: Path, domain: str, seqs: Sequence[int]) -> Iterator[tuple[int, MetBlock]]:
    """Yield what the crawls of some snapshots met, in blocks. Rows may change between pages."""
    block, seq = -1, -1
    while True:
        values = {"domain": domain, "seqs": json.dumps(seqs), "block": block, "seq": seq, "limit": _ROWS}
        with reading(database) as connection:
            rows = connection.execute(sql("search/met"), values).fetchall()
        for block, seq, base, times in rows:
            clocks.check()
            yield seq, MetBlock(block, base, times)
        if len(rows) < _ROWS:
            return


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
