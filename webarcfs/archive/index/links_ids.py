"""Assigns numbers to what links.db stores once: URLs, and references with their words.

Known values are looked up many at a time, new ones get the next numbers; the latest are cached, since menus repeat on
page after page. All of it inside the transaction of the one writer.

New links, which most are, are not looked for before: the unique index refuses those that are there. Words are in a
full-text index, since any text has any words: with a table of words and texts, and an index of all texts, 1.5 GiB were
written for 500,000 links at the fourth such domain, and at 10,000,000 links the rate had fallen to a quarter.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index.links_words import ArchivedLink, words_of

#: References that are cached, and the longest URL or text among them: some 30 MB.
_REMEMBERED = 100_000
_SHORT = 200


class LinkIds:
    """The numbers of an open links.db. Call `begin` first in each transaction, `forget` after a rollback."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._state: int | None = None
        self._last: dict[str, int] = {}
        self._references: dict[ArchivedLink, int] = {}
        self._domains: dict[str, int] = {}

    def begin(self) -> None:
        """Read the state of the database: another process may have written to it since."""
        state = self._connection.execute(sql("links/state")).fetchone()[0]
        if state != self._state:
            self.forget()
            cursor = self._connection.execute(sql("links/last_ids"))
            names = [column[0] for column in cursor.description]
            self._last = dict(zip(names, cursor.fetchone(), strict=True))
            self._state = state

    def forget(self) -> None:
        """Clear the caches."""
        self._state = None
        self._references.clear()
        self._domains.clear()

    def references(self, links: Collection[ArchivedLink]) -> dict[ArchivedLink, int]:
        """Return the number of each of `links`; store new ones."""
        known = self._references
        found = {link: known[link] for link in links if link in known}
        missing = [link for link in links if link not in found]
        if len(known) + len(missing) > _REMEMBERED:
            known.clear()
        found.update(self._stored(missing))
        known.update((link, found[link]) for link in missing if len(link.target) <= _SHORT and len(link.text) <= _SHORT)
        return found

    def _stored(self, links: Sequence[ArchivedLink]) -> dict[ArchivedLink, int]:
        """Return the numbers of links in the database. Each gets a new one, unless the database already has it."""
        urls, last = self.urls(link.target for link in links), self._last["reference"]
        found = dict(zip(links, range(last + 1, last + 1 + len(links)), strict=True))
        self._connection.executemany(
            sql("links/add_reference"),
            ((number, int(link.kind), urls[link.target], link.text, link.window) for link, number in found.items()),
        )
        new = {number for (number,) in self._connection.execute(sql("links/new_references"), {"last": last})}
        self._last["reference"] = max(new, default=last)
        naming = ((number, words(link.text)) for link, number in found.items() if number in new)
        self._connection.executemany(sql("links/add_words"), naming)
        for link in [link for link, number in found.items() if number not in new]:
            found[link] = self._find_reference(link, urls[link.target])
        return found

    def urls(self, urls: Iterable[str]) -> dict[str, int]:
        """Return the number of each URL; store new ones."""
        wanted = set(urls)
        if not wanted:
            return {}
        rows = self._connection.execute(sql("links/find_urls"), {"values": json.dumps(list(wanted))})
        found: dict[str, int] = dict(rows.fetchall())
        new = [(self._next("url"), url, self._domain_of(url)) for url in sorted(wanted - found.keys())]
        found.update((url, number) for number, url, _ in new)
        self._connection.executemany(sql("links/add_url"), new)
        return found

    def domain(self, name: str) -> int:
        """Return the number of a domain; store a new one."""
        if name not in self._domains:
            self._connection.execute(sql("insert_domain"), {"name": name})
            self._domains[name] = int(self._connection.execute(sql("select_domain"), {"name": name}).fetchone()[0])
        return self._domains[name]

    def _domain_of(self, url: str) -> int | None:
        _, separator, rest = url.partition("://")
        return self.domain(rest.partition("/")[0].partition("?")[0]) if separator else None

    def _find_reference(self, link: ArchivedLink, target: int) -> int:
        values: dict[str, Any] = {"target": target, "kind": int(link.kind), "text": link.text, "window": link.window}
        return int(self._connection.execute(sql("links/find_reference"), values).fetchone()[0])

    def _next(self, table: str) -> int:
        self._last[table] += 1
        return self._last[table]


def words(text: str) -> str:
    """Return the words of a text in the form of the table `naming`."""
    return " ".join(words_of(text))
