"""The frontier of a job: every URL that the crawl has seen and what became of it, in SQLite (/Cr-6/).

The job's folder holds it beside the WARCs: whatever kills the job, what was fetched and what is left to do are there.
One process writes to it, in one thread. The statements are the files `sql/frontier/*.sql`.
"""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlite_utils import Database as SqliteDatabase

from agent.frontier.facts import Fact, Value
from agent.policy.vocabulary import UrlState
from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.model.errors import Damaged, WebarcError

#: `PRAGMA user_version` of sql/frontier/schema.sql.
SCHEMA_VERSION = 2
#: What `Frontier.counts` tells beside the states.
NO_STATES = ("bytes", "documents")
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class FrontierUrl:
    """A URL of the frontier; the columns are explained in sql/frontier/schema.sql."""

    id: int
    url: str
    domain: str
    kind: str
    depth: int
    hops: str
    found_on: int | None
    state: str
    tries: int
    not_before: float
    status: int
    note: str
    batch: int
    position: int
    size: int
    mime: str
    digest: str
    captured: str
    arc: str
    target: str
    expanded: int
    nested: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUrl:
    """A URL as it was found: where, how, and whether the scope lets it in (state `waiting`) or why not."""

    url: str
    domain: str
    kind: str
    depth: int
    hops: str
    found_on: int | None = None
    state: str = UrlState.WAITING
    status: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOutcome:
    """What an attempt at a URL came to. `tried` is 0 where the attempt shall not count."""

    id: int
    state: str
    status: int
    tried: int = 1
    not_before: float = 0.0
    note: str = ""
    position: int = 0
    size: int = 0
    mime: str = ""
    digest: str = ""
    captured: str = ""
    arc: str = ""
    target: str = ""


class Frontier:
    """An open frontier.db. Changes are kept at the end of each `with frontier.changes():`."""

    def __init__(self, path: Path) -> None:
        """Open or make it. Raises Damaged when it is none, or of another version; WebarcError when it cannot be opened
        now (a full disk, a lock), which says nothing of what is in it.
        """
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level="IMMEDIATE")
            self._db = SqliteDatabase(self._connection)
            version = self._scalar("schema_version")
            if version == 0 and not self._db.table_names():
                self._db.executescript(sql("frontier/tune") + sql("frontier/schema"))
            elif version != SCHEMA_VERSION:
                raise Damaged(f"{path} is of version {version}, not {SCHEMA_VERSION}; remove its job folder")
            self._db.executescript(sql("frontier/tune"))
        except sqlite3.OperationalError as error:
            raise WebarcError(f"{path} cannot be opened now: {error}") from None
        except sqlite3.DatabaseError as error:
            raise _damaged(path, error) from None

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """All changes inside, or none. Raises OSError on a full disk, Damaged where SQLite says that the file is."""
        try:
            with self._connection:
                yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without its extended part
            if code == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, f"{self._path}: {error}") from None
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _damaged(self._path, error) from None
            raise

    # -- the job -------------------------------------------------------------------------------------------------

    def get(self, fact: Fact[Value]) -> Value | None:
        """A fact about the job; None when it was never set."""
        row = self._connection.execute(sql("frontier/get"), {"key": fact.key}).fetchone()
        return None if row is None else json.loads(row[0])

    def set(self, fact: Fact[Value], value: Value) -> None:
        """Set a fact about the job."""
        self._run("frontier/set", key=fact.key, value=json.dumps(value))

    # -- URLs ----------------------------------------------------------------------------------------------------

    def add(self, finds: Iterable[FoundUrl]) -> None:
        """Take in URLs that were found."""
        self._many("frontier/add", finds)

    def settle(self, outcomes: Iterable[UrlOutcome]) -> None:
        """Note what attempts came to."""
        self._many("frontier/settle", outcomes)

    def waiting(self) -> dict[str, float]:
        """Domain → when its first waiting URL may be fetched (seconds since 1970)."""
        return {row["domain"]: row["ready"] for row in self._query("frontier/waiting")}

    def served(self) -> dict[str, int]:
        """Domain → how many of its URLs wget was given. Goes through all URLs."""
        return {row["domain"]: row["urls"] for row in self._query("frontier/served")}

    def next(self, domain: str, now: float, most: int) -> list[FrontierUrl]:
        """The URLs of `domain` to fetch next, nearest to the start URLs first."""
        return self._rows("frontier/next", domain=domain, now=now, most=most)

    def bound_waits(self, latest: float) -> None:
        """Let no URL wait longer than that (seconds since 1970): another process may have had another clock."""
        self._run("frontier/bound_waits", latest=latest)

    def take(self, rows: Iterable[FrontierUrl], batch: int, domain: str) -> None:
        """Begin a batch."""
        self._run("frontier/new_batch", id=batch, domain=domain)
        self._connection.executemany(sql("frontier/take"), [{"id": row.id, "batch": batch} for row in rows])

    def last_batch(self) -> int:
        """The highest number of a batch; 0 when there is none."""
        return int(self._scalar("frontier/last_batch"))

    def unread_batches(self) -> list[tuple[int, str]]:
        """Batches whose WARC was not worked off: number and domain."""
        return [(row["id"], row["domain"]) for row in self._query("frontier/unread_batches")]

    def batch_read(self, batch: int) -> None:
        """The WARC of a batch was worked off."""
        self._run("frontier/batch_read", id=batch)

    def fetching(self, batch: int) -> list[FrontierUrl]:
        """The URLs of a batch that have no outcome yet."""
        return self._rows("frontier/fetching", batch=batch)

    def annotate(self, row: int, note: str) -> None:
        """Add a word for crawl.log."""
        self._run("frontier/annotate", id=row, note=note)

    def expanded(self, pages: Iterable[tuple[int, int]]) -> None:
        """The links of pages were added: pairs of row and the depth that they were found at."""
        self._connection.executemany(sql("frontier/expanded"), [{"id": row, "depth": depth} for row, depth in pages])

    def to_expand(self) -> list[FrontierUrl]:
        """Pages that turned out to be nearer to a start URL than when their links were added."""
        return self._rows("frontier/to_expand")

    def refused_by_host(self, domain: str) -> list[FrontierUrl]:
        """URLs of `domain` that the scope did not let in."""
        return self._rows("frontier/refused_by_host", domain=domain)

    def admit(self, row: int) -> None:
        """Let in a URL that was refused."""
        self._run("frontier/admit", id=row)

    def again(self, row: int) -> None:
        """Fetch a URL once more."""
        self._run("frontier/again", id=row)

    def give_up(self, status: int, note: str, domain: str = "") -> None:
        """What is still to be fetched (of one domain) will not be, and why."""
        self._run("frontier/give_up", status=status, note=note, domain=domain)

    def fail_domain(self, domain: str, status: int, note: str) -> None:
        """All that waits of a domain has failed."""
        self._run("frontier/fail_domain", domain=domain, status=status, note=note)

    def by_url(self, url: str) -> FrontierUrl | None:
        """The row of a URL."""
        return next(iter(self._rows("frontier/by_url", url=url)), None)

    def redirected_to(self, row: int) -> FrontierUrl | None:
        """The URL that a redirect led to; None where it led nowhere, or was none."""
        return next(iter(self._rows("frontier/redirected_to", id=row)), None)

    def queries(self, path: str) -> int:
        """How many URLs were let in that are `path` and a query."""
        return int(self._connection.execute(sql("frontier/queries"), {"path": path}).fetchone()[0])

    def admitted_domains(self) -> list[str]:
        """The domains that were let in beside those of the start URLs."""
        return [row["domain"] for row in self._query("frontier/admitted_domains")]

    def seeds(self) -> list[FrontierUrl]:
        """The start URLs."""
        return self._rows("frontier/seeds")

    def counts(self) -> dict[str, int]:
        """State → number of URLs; `bytes` of all answers, `documents` that came, robots.txt not counted."""
        rows = list(self._query("frontier/counts"))
        sums = {name: sum(row[name] for row in rows) for name in NO_STATES}
        return {row["state"]: row["urls"] for row in rows} | sums

    def bytes_done(self) -> int:
        """Bytes of the answers that came whole and were not refused."""
        return sum(row["bytes"] for row in self._query("frontier/counts") if row["state"] == "done")

    def all(self) -> Iterator[tuple[FrontierUrl, str]]:
        """Every URL with the URL of the page it was found on, in the order in which they were found."""
        for row in self._query("frontier/all"):
            referrer = row.pop("referrer")
            yield FrontierUrl(**row), referrer or ""

    def robots(self, url: str) -> tuple[int, bytes, float] | None:
        """Status, body and time (seconds since 1970) of a robots.txt; None when it has not answered yet."""
        row = self._connection.execute(sql("frontier/robots"), {"url": url}).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]), float(row[2]))

    def set_robots(self, url: str, status: int, body: bytes, fetched: float) -> None:
        """Keep the answer to a request for a robots.txt; `body` of a redirect is where it leads."""
        self._run("frontier/set_robots", url=url, status=status, body=body, fetched=fetched)

    # -- documents -----------------------------------------------------------------------------------------------

    def last_captured(self, domain: str) -> str:
        """When the last answer of a domain came, as `FrontierUrl.captured` has it; empty where none did."""
        return str(self._connection.execute(sql("frontier/last_captured"), {"domain": domain}).fetchone()[0] or "")

    def domains(self) -> list[str]:
        """The domains that something was asked of."""
        return [row["domain"] for row in self._query("frontier/domains")]

    def document_batches(self, domain: str) -> list[int]:
        """The batches with answers of a domain that are to be archived, in order."""
        return [row["batch"] for row in self._query("frontier/document_batches", domain=domain)]

    def documents(self, domain: str, batch: int) -> Iterator[FrontierUrl]:
        """The answers of a batch that are to be archived; what is noted of them meanwhile does no harm."""
        # An import has one batch for a file, however large. Some at a time, since no question may stay open meanwhile.
        last = {"position": -1, "id": 0}
        while some := self._rows("frontier/documents", domain=domain, batch=batch, most=_AT_ONCE, **last):
            yield from some
            last = {"position": some[-1].position, "id": some[-1].id}

    def count_documents(self, domain: str) -> int:
        """How many answers of a domain are to be archived."""
        return int(self._connection.execute(sql("frontier/count_documents"), {"domain": domain}).fetchone()[0])

    def rivals(self, domain: str) -> Iterator[FrontierUrl]:
        """Answers that share their ARC with another, those of an ARC together."""
        return (FrontierUrl(**row) for row in self._query("frontier/rivals", domain=domain))

    def results(self, results: Iterable[dict[str, Any]]) -> None:
        """Note what became of documents: dicts of id, result, nested, mime, note."""
        self._connection.executemany(sql("frontier/results"), results)

    def rest_unchanged(self, domain: str) -> None:
        """All documents of a domain that nothing was noted of kept their ARCs; said of all at once."""
        self._run("frontier/rest_unchanged", domain=domain)

    def unanswered(self, domain: str) -> Iterator[str]:
        """URLs that the crawl saw, has no page of, and that are not gone: their ARCs stay."""
        return (row["url"] for row in self._query("frontier/unanswered", domain=domain))

    def changed_to_errors(self, domain: str) -> list[tuple[int, str]]:
        """(Row, ARC) of the error pages that changed an ARC; all at once, since what is noted of them changes them."""
        return [(row["id"], row["arc"]) for row in self._query("frontier/changed_to_errors", domain=domain)]

    def clear_results(self, domain: str) -> None:
        """Forget what became of documents: the pipeline begins anew on this domain."""
        self._run("frontier/clear_results", domain=domain)
        self._run("frontier/clear_held", domain=domain)

    def hold(self, domain: str, arcs: Iterable[str]) -> None:
        """Note ARCs that stay although the crawl got no page for them."""
        self._connection.executemany(sql("frontier/hold"), [{"domain": domain, "arc": arc} for arc in arcs])

    def seen(self, domain: str) -> Iterator[tuple[str, bool]]:
        """(ARC, whether its folder held folders) of all that were seen, children right behind their folder."""
        # All of a crawl goes through here, changed or not: as tuples, since dictionaries take twice as long.
        rows = self._connection.execute(sql("frontier/seen"), {"domain": domain})
        return ((arc, bool(nested)) for arc, nested in rows)

    def seen_names(self, domain: str) -> Iterator[str]:
        """The same ARCs in the order of an index, without sorting; mostly stable, which does for a digest."""
        return (arc for (arc,) in self._connection.execute(sql("frontier/seen_names"), {"domain": domain}))

    # -- imports (sql/frontier/captures_schema.sql) ---------------------------------------------------------

    def place(self, row: int, batch: int) -> None:
        """An answer lies in the WARC of this batch."""
        self._run("frontier/place", id=row, batch=batch)

    def begin_captures(self) -> None:
        """Make room for what an import needs to find what revisits stand for."""
        self._db.executescript(sql("frontier/captures_schema"))

    def add_capture(self, keys: Iterable[str], batch: int, position: int) -> None:
        """Note where a body lies, under each of its digests, and its URL and time."""
        rows = [{"key": key, "batch": batch, "position": position} for key in keys]
        self._connection.executemany(sql("frontier/add_capture"), rows)

    def capture(self, key: str) -> tuple[int, int] | None:
        """Batch and position of a body; None where there is none of that key."""
        row = self._connection.execute(sql("frontier/capture"), {"key": key}).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))

    def add_revisit(self, **values: Any) -> None:
        """Keep a revisit record until everything was read."""
        self._run("frontier/add_revisit", **values)

    def revisits(self) -> Iterator[dict[str, Any]]:
        """All revisit records, oldest first."""
        return self._query("frontier/revisits")

    # -- statistics ----------------------------------------------------------------------------------------------

    def by_mime_type(self) -> dict[str, int]:
        """MIME type → number of documents."""
        return {row["mime"]: row["documents"] for row in self._query("frontier/by_mime_type")}

    def by_status(self) -> dict[str, int]:
        """Status → number of URLs."""
        return {str(row["status"]): row["urls"] for row in self._query("frontier/by_status")}

    def by_result(self, domain: str) -> dict[str, int]:
        """Result → number of documents of a domain."""
        return {row["result"]: row["urls"] for row in self._query("frontier/by_result", domain=domain)}

    def _query(self, statement: str, **values: Any) -> Iterator[dict[str, Any]]:
        return iter(self._db.query(sql(statement), values))

    def _rows(self, statement: str, **values: Any) -> list[FrontierUrl]:
        return [FrontierUrl(**row) for row in self._query(statement, **values)]

    def _run(self, statement: str, **values: Any) -> None:
        self._connection.execute(sql(statement), values)

    def _many(self, statement: str, records: Iterable[FoundUrl] | Iterable[UrlOutcome]) -> None:
        self._connection.executemany(
            sql(statement), ({name: getattr(record, name) for name in record.__slots__} for record in records)
        )

    def _scalar(self, statement: str) -> Any:
        return self._connection.execute(sql(statement)).fetchone()[0]


def _damaged(path: Path, error: sqlite3.Error) -> Damaged:
    return Damaged(f"{path}: {error}; remove its job folder, the next crawl begins anew")
