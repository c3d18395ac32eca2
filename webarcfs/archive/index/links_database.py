"""links.db: the links of every version of every HTML page. Only the agent writes to it; derived from git.

Links belong to a *body*, the bytes of a page under its URL, and are stored once; a *version* says from which snapshot
to which a page had that body. So a snapshot costs the rows of the pages that it changed; a page that returns to an old
body, or an import in between, costs next to nothing. Bodies come first, in many small transactions: without a version
they have no effect, a crash leaves them for the next run, and no writer waits long for another. Then all versions of
the snapshot come in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index.links_ids import LinkIds, words
from webarcfs.archive.index.links_words import ArchivedLink
from webarcfs.archive.index.sqlite_file import SqliteFile
from webarcfs.archive.model.metadata import CommitTag, format_time

#: `PRAGMA user_version` of sql/links/schema.sql; a database of another version is rebuilt.
SCHEMA_VERSION = 3
#: `seq_until` of current versions.
NEVER = (1 << 63) - 1
#: Rows that are gathered before they are stored, and the approximate rows of a transaction.
_PORTION = 20_000
_TRANSACTION = 50_000
_FORGET = ("links/forget_versions", "links/forget_snapshots", "links/forget_bodies", "links/forget_pages")


@dataclass(frozen=True, slots=True)
class PageChange:
    """The new state of one path in a snapshot: a page's URL and blob, or None without a page."""

    path: str
    page: tuple[str, str] | None


class LinksDatabase(SqliteFile):
    """An open links.db. Use it as a context manager, in one thread."""

    def __init__(self, path: Path) -> None:
        """Open or make the database at `path`. Raises DatabaseDamaged for another program's file or another version."""
        super().__init__(path, None)
        self._pending: list[tuple[int, Counter[ArchivedLink]]] = []
        self._gathered = 0
        with self._translated():
            self._connection.create_function("words_of", 1, words, deterministic=True)  # the schema's triggers call it
            self._connection.execute(sql("links/tune"))
            self._ready(SCHEMA_VERSION, "links/schema")
        self._numbers = LinkIds(self._connection)

    def record(
        self, tag: CommitTag, changes: Iterable[PageChange], links: Callable[[PageChange], Iterable[ArchivedLink]]
    ) -> None:
        """Add one snapshot, once only. `changes` are against the previous one in time.

        `links` returns the links of a page, and is called for unknown pages only.
        """
        with self._translated():
            if self._found("links/has_snapshot", commitTag=str(tag)):
                return
            states = self._take_bodies(tag.domain, changes, links)
            with self._transaction():
                self._take_versions(tag, states)

    def indexed(self, domain: str) -> set[str]:
        """Return the commitTags of `domain` that are in the database."""
        with self._translated():
            return {str(row[0]) for row in self._connection.execute(sql("links/indexed"), {"name": domain})}

    def domains(self) -> list[str]:
        """Return the domains with a snapshot here."""
        with self._translated():
            return [str(row[0]) for row in self._connection.execute(sql("links/domains"))]

    def forget(self, domain: str) -> None:
        """Drop the pages of a domain, and what belongs to them only."""
        with self._translated(), self._transaction():
            for statement in _FORGET:
                self._run(statement, name=domain)
            self._run("links/forget_domains")
            self._numbers.forget()

    def hold(self) -> None:
        """Exclude other writers until this is closed."""
        with self._translated():
            self._run("links/begin")

    def check(self) -> list[str]:
        """Return SQLite's findings about the file, a line each; none for a sound one."""
        with self._translated():
            found = [str(row[0]) for row in self._connection.execute(sql("check_database"))]
        return [line for line in found if line != "ok"]

    def counts(self) -> dict[str, int]:
        """Return the numbers of links, bodies, refs, urls and words."""
        with self._translated():
            cursor = self._connection.execute(sql("links/counts"))
            return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))

    def _take_bodies(
        self, domain: str, changes: Iterable[PageChange], links: Callable[[PageChange], Iterable[ArchivedLink]]
    ) -> list[tuple[int, int | None]]:
        """Store new bodies; return the numbers of each page and of its body from now on, None without one."""
        states: list[tuple[int, int | None]] = []
        pending = iter(changes)
        more = True
        while more:
            rows = 0
            with self._transaction():
                while rows < _TRANSACTION:
                    change = next(pending, None)
                    if change is None:
                        more = False
                        break
                    page = self._page(domain, change)
                    if page is None:
                        continue
                    body, new = self._body(page, change, links)
                    states.append((page, body))
                    rows += 1 + new
                self._flush()
        return states

    def _page(self, domain: str, change: PageChange) -> int | None:
        page = self._found("links/find_page", path=change.path)
        if page is None and change.page is not None:
            return self._run("links/add_page", domain=self._numbers.domain(domain), path=change.path).lastrowid
        return page

    def _body(
        self, page: int, change: PageChange, links: Callable[[PageChange], Iterable[ArchivedLink]]
    ) -> tuple[int | None, int]:
        """Return the number of a page's body, and the number of links that were added with it."""
        if change.page is None:
            return None, 0
        url, blob = change.page
        values = {"page": page, "blob": bytes.fromhex(blob), "url": self._numbers.urls([url])[url]}
        known = self._found("links/find_body", **values)
        if known is not None:
            return known, 0
        body = self._run("links/add_body", **values).lastrowid
        assert body is not None
        stream, count = iter(links(change)), 0
        while said := Counter(islice(stream, _PORTION)):
            count += len(said)
            self._gather(body, said)
        return body, count

    def _gather(self, body: int, said: Counter[ArchivedLink]) -> None:
        self._pending.append((body, said))
        self._gathered += len(said)
        if self._gathered >= _PORTION:
            self._flush()

    def _flush(self) -> None:
        """Store the gathered links."""
        pending, self._pending, self._gathered = self._pending, [], 0
        links: dict[ArchivedLink, int] = {}
        for _, said in pending:
            links.update(said)
        references = self._numbers.references(links)
        rows = ((body, references[link], times) for body, said in pending for link, times in said.items())
        self._connection.executemany(sql("links/add_link"), rows)

    def _take_versions(self, tag: CommitTag, states: Iterable[tuple[int, int | None]]) -> None:
        seq, domain = int(tag.crawl_time.timestamp()), self._numbers.domain(tag.domain)
        values = {"crawlTime": format_time(tag.crawl_time), "commitTag": str(tag)}
        if not self._run("links/add_snapshot", domain=domain, seq=seq, **values).rowcount:
            return  # another process, catching up, was faster
        following = self._found("select_next_snapshot", domain=domain, seq=seq) or NEVER
        for page, body in states:
            self._change(page, domain, body, seq, following)

    def _change(self, page: int, domain: int, body: int | None, seq: int, following: int) -> None:
        """End a page's version at `seq`, and continue it from the following snapshot, if it was valid there."""
        valid = self._run("links/valid_version", page=page, seq=seq).fetchone()
        if valid is not None and valid[2] > seq:
            before, begun, until = valid
            if before == body:
                return  # only users' additions or the head have changed
            self._run("links/end_version", page=page, seq_from=begun, seq=seq)
            if until > following:
                self._add_version(page, domain, following, until, before)
        if body is not None:
            self._add_version(page, domain, seq, following, body)

    def _add_version(self, page: int, domain: int, begun: int, until: int, body: int) -> None:
        self._run("links/add_version", page=page, domain=domain, seq_from=begun, seq_until=until, body=body)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._run("links/begin")
        try:
            self._numbers.begin()
            yield
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            self._numbers.forget()
            self._pending, self._gathered = [], 0
            raise

    def _found(self, statement: str, **values: Any) -> int | None:
        row = self._run(statement, **values).fetchone()
        return None if row is None or row[0] is None else int(row[0])
