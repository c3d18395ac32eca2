"""Lists the snapshots of webarc.db, and completes what people type: dates, snapshots, hosts, publications, records.

Rows come in pages, each a short transaction, so that no writer waits for a reader. What completes a word is bounded: in
number by its caller, in time by the connection, which waits for no writer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import Any

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.database import SpanCounts, reading
from webarcfs.archive.index.sqlite_file import STEPS_BETWEEN_LOOKS
from webarcfs.archive.model.errors import DatabaseDamaged

# == snapshots ========================================================================================================


#: Rows of a page.
_ROWS = 1_000
#: Before, and behind, the text of every time.
_FIRST, _LAST = "", "~"
#: Behind every text that begins with a word.
_BEHIND = "\U0010ffff"
#: More than the number of any domain.
_BEHIND_DOMAINS = 1 << 62
_STATEMENTS = {
    (False, False): "names/newest",
    (True, False): "names/oldest",
    (False, True): "names/newest_of_host",
    (True, True): "names/oldest_of_host",
}


@dataclass(frozen=True, slots=True)
class ListedSnapshot:
    """A snapshot: its host, its time as webarc.db has it and in seconds since 1970, the publication of its crawl.

    `is_complete`: the crawl fetched all URLs in its scope, or the import was said to be complete.
    """

    host: str
    time: str
    seq: int
    publication: str
    is_complete: bool

    @property
    def tag(self) -> str:
        """Its commitTag."""
        return f"{self.time}@{self.host}"


@dataclass(frozen=True, slots=True)
class SnapshotSelection:
    """Which snapshots a list has: of a host, of a publication, from one time to another; empty: all.

    Times are texts, yyyy-mm-ddThh:mm:ss in CET.
    """

    host: str = ""
    publication: str = ""
    since: str = ""
    until: str = ""


def list_snapshots(database: Path, chosen: SnapshotSelection, *, oldest: bool = False) -> Iterator[ListedSnapshot]:
    """Yield snapshots by time, newest or oldest first; those of one time by host. Rows may change between pages."""
    for _, rows in groupby(_snapshot_rows(database, chosen, oldest=oldest), attrgetter("time")):
        yield from sorted(rows, key=attrgetter("host"))


def _snapshot_rows(database: Path, chosen: SnapshotSelection, *, oldest: bool) -> Iterator[ListedSnapshot]:
    statement = _STATEMENTS[oldest, bool(chosen.host)]
    named = {"host": chosen.host, "publication": chosen.publication, "limit": _ROWS}
    since, until = chosen.since, chosen.until or _LAST
    time, domain = (_FIRST, -1) if oldest else (_LAST, _BEHIND_DOMAINS)
    while True:
        # Both bounds are as close as can be: the index is entered at either.
        bounds = {"since": max(since, time), "until": until} if oldest else {"since": since, "until": min(until, time)}
        with reading(database) as connection:
            rows = connection.execute(sql(statement), named | bounds | {"time": time, "domain": domain}).fetchall()
        for row_time, _, seq, host, publication, complete in rows:
            yield ListedSnapshot(host, row_time, seq, publication, bool(complete))
        if len(rows) < _ROWS:
            return
        time, domain = rows[-1][:2]


def tags_beginning(database: Path, text: str) -> list[str]:
    """Return the commitTags that begin with a text, newest first."""
    values = {"low": text, "high": f"{text}{_BEHIND}", "limit": -1}
    with reading(database) as connection:
        return [str(row[0]) for row in connection.execute(sql("names/beginning"), values)]


def count_documents(database: Path, host: str) -> SpanCounts:
    """Return how many pages the snapshots of a host have, without error pages: what `webarc stat` counts."""
    with reading(database) as connection:
        return SpanCounts(connection.execute(sql("names/documents"), {"host": host}))


# == words ============================================================================================================


#: Seconds for which a word waits for a writer, and for its answers.
_PATIENCE, _SECONDS = 0.05, 0.15


@contextmanager
def completions(database: Path) -> Iterator[WordCompletions]:
    """Lend what completes words, from a database as it is: nothing is made. Raises WebarcError soon where it cannot."""
    address = f"{database.absolute().as_uri()}?mode=ro"
    end = monotonic() + _SECONDS
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
            connection.set_progress_handler(lambda: monotonic() > end, STEPS_BETWEEN_LOOKS)
            yield WordCompletions(connection)
    except sqlite3.Error as error:
        raise DatabaseDamaged(f"{database}: {error}") from None


class WordCompletions:
    """What completes the beginning of a word, at most so many words."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def tags(self, begins: str, limit: int) -> list[str]:
        """Return commitTags that begin so, newest first."""
        return self._texts("names/beginning", begins, limit)

    def steps(self, begins: str, length: int, limit: int) -> list[str]:
        """Return the first letters of commitTags that begin so, newest first."""
        return self._texts("names/steps", begins, limit, length=length)

    def hosts(self, begins: str, limit: int) -> list[str]:
        """Return hosts with snapshots that begin so, in order."""
        return self._texts("names/hosts", begins, limit)

    def publications(self, begins: str, limit: int) -> list[str]:
        """Return publications with snapshots that begin so, in order."""
        return self._texts("names/publications", begins, limit)

    def records(self, begins: str, limit: int) -> list[str]:
        """Return records that begin so and are not discarded, newest first; the database is that of the catalogue."""
        return self._texts("names/records", begins, limit)

    def discarded(self) -> set[tuple[str, int]]:
        """Return hosts and times of the snapshots of discarded records; the database is that of the catalogue."""
        return {(host, seq) for host, seq in self._connection.execute(sql("names/discarded"))}

    def _texts(self, statement: str, begins: str, limit: int, **values: Any) -> list[str]:
        bounds = {"low": begins, "high": f"{begins}{_BEHIND}", "limit": limit}
        return [str(row[0]) for row in self._connection.execute(sql(statement), bounds | values)]
