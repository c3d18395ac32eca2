"""Numbers what links.db holds once: URLs, texts, their words, and what links say.

What is known is looked up many at a time, what is new gets the next numbers; what came last is remembered, since menus
say the same on page after page. All of it inside the transaction of the one writer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from webarcfs.archive.linkwords import Kind, Link, words_of
from webarcfs.archive.resources import sql

#: How many references are remembered, and how long a URL or text may be for that: some 30 MB.
_REMEMBERED = 100_000
_SHORT = 200


class Numbers:
    """The numbers of an open links.db. Call `begin` in each transaction first, `forget` when one was rolled back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._state: int | None = None
        self._last: dict[str, int] = {}
        self._references: dict[Link, int] = {}
        self._domains: dict[str, int] = {}

    def begin(self) -> None:
        """Go on from what the database holds now: another process may have written to it since."""
        state = self._connection.execute(sql("links_state")).fetchone()[0]
        if state != self._state:
            self.forget()
            cursor = self._connection.execute(sql("links_last_ids"))
            names = [column[0] for column in cursor.description]
            self._last = dict(zip(names, cursor.fetchone(), strict=True))
            self._state = state

    def forget(self) -> None:
        """Remember nothing."""
        self._state = None
        self._references.clear()
        self._domains.clear()

    def references(self, links: Collection[Link]) -> dict[Link, int]:
        """The number of each of `links`, new ones stored."""
        known = self._references
        found = {link: known[link] for link in links if link in known}
        missing = [link for link in links if link not in found]
        if len(known) + len(missing) > _REMEMBERED:
            known.clear()
        # With a URL or a text that is new, nothing can have been said before.
        urls_before, texts_before = self._last["url"], self._last["text"]
        urls = self.urls(link.target for link in missing)
        texts = self._texts({link.text for link in missing})
        new: list[tuple[int, int, int, int]] = []
        for link in missing:
            target, text = urls[link.target], texts[link.text]
            number = None
            if target <= urls_before and text <= texts_before:
                number = self._find_reference(link.kind, target, text)
            if number is None:
                number = self._next("reference")
                new.append((number, int(link.kind), target, text))
            found[link] = number
            if len(link.target) <= _SHORT and len(link.text) <= _SHORT:
                known[link] = number
        self._connection.executemany(sql("links_add_reference"), new)
        return found

    def urls(self, urls: Iterable[str]) -> dict[str, int]:
        """The number of each URL, new ones stored."""
        found, new = self._numbered("url", "links_find_urls", set(urls))
        self._connection.executemany(sql("links_add_url"), [(found[url], url, self._domain_of(url)) for url in new])
        return found

    def domain(self, name: str) -> int:
        """The number of a domain, stored if it is new."""
        if name not in self._domains:
            self._connection.execute(sql("insert_domain"), {"name": name})
            self._domains[name] = int(self._connection.execute(sql("select_domain"), {"name": name}).fetchone()[0])
        return self._domains[name]

    def _domain_of(self, url: str) -> int | None:
        _, separator, rest = url.partition("://")
        return self.domain(rest.partition("/")[0].partition("?")[0]) if separator else None

    def _texts(self, texts: Collection[str]) -> dict[str, int]:
        found, new = self._numbered("text", "links_find_texts", texts)
        self._connection.executemany(sql("links_add_text"), _values(found, new))
        words_in = {text: words_of(text) for text in new}
        words, new_words = self._numbered(
            "word", "links_find_words", {word for each in words_in.values() for word in each}
        )
        self._connection.executemany(sql("links_add_word"), _values(words, new_words))
        naming = sorted((words[word], found[text]) for text, each in words_in.items() for word in each)
        self._connection.executemany(sql("links_add_naming"), naming)
        return found

    def _numbered(self, table: str, find: str, values: Collection[str]) -> tuple[dict[str, int], list[str]]:
        """The number of each value of `table`, and the values that are new to it."""
        if not values:
            return {}, []
        rows = self._connection.execute(sql(find), {"values": json.dumps(list(values))})
        found: dict[str, int] = dict(rows.fetchall())
        new = sorted(value for value in values if value not in found)
        found.update((value, self._next(table)) for value in new)
        return found, new

    def _find_reference(self, kind: Kind, target: int, text: int) -> int | None:
        values: dict[str, Any] = {"target": target, "kind": int(kind), "text": text}
        row = self._connection.execute(sql("links_find_reference"), values).fetchone()
        return None if row is None else int(row[0])

    def _next(self, table: str) -> int:
        self._last[table] += 1
        return self._last[table]


def _values(found: Mapping[str, int], new: Iterable[str]) -> list[tuple[int, str]]:
    return [(found[value], value) for value in new]
