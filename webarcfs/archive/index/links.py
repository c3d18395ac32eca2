"""links.db: the links of every version of every HTML page, and the queries of it.

Only the agent writes to it; it is derived from git. The words that name a link are stored with case and accents folded.

What links.db stores once, URLs and references with their words, has numbers. Known values are looked up many at a time,
new ones get the next numbers; the latest are cached, since menus repeat on page after page. All of it inside the
transaction of the one writer.

New links, which most are, are not looked for before: the unique index refuses those that are there. Words are in a
full-text index, since any text has any words: with a table of words and texts, and an index of all texts, 1.5 GiB were
written for 500,000 links at the fourth such domain, and at 10,000,000 links the rate had fallen to a quarter.

Links belong to a *body*, the bytes of a page under its URL with the DOM that a browser showed, and are stored once; a
*version* says from which snapshot to which a page had that body. So a snapshot costs the rows of the pages that it
changed; a page that returns to an old body, or an import in between, costs next to nothing. Bodies come first, in
many small transactions: without a version they have no effect, a crash leaves them for the next run, and no writer
waits long for another. Then all versions of the snapshot come in one.

A query asks for the links of a page, links to a page, links named by a word, or links to nothing. Users give values,
never SQL; the connection is read-only, and a clock bounds the time of an answer.

Which publication stored a page is in webarc.db, and asked there for each page of an answer that is narrowed to one.

Joins are in a fixed order (`CROSS JOIN`), from the few rows to the many: URL or word, what links say, pages, versions.
A link is broken if its domain, though archived, does not have the target at that moment, nor the page to which its
redirects lead. Archives of layout 1 have no redirects: there a folder's URL without its slash counts as that of the
folder. The view `link_words` is for asking by word; by page or target it reads the words of all links.
"""

from __future__ import annotations

import json
import marshal
import math
import re
import sqlite3
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.index.query import ANY_ORIGIN, DocumentOrigin
from webarcfs.archive.index.sqlite_file import STEPS_BETWEEN_LOOKS, SqliteFile, as_told_to_readers, version_of
from webarcfs.archive.model.arc_paths import arc_path, second_name, split
from webarcfs.archive.model.errors import DatabaseDamaged, NotFound, TookTooLong, UrlRefused, WebarcError
from webarcfs.archive.model.metadata import ANY_ROLE, PAGE_ROLE, RESOURCE_ROLE, CommitTag, format_time, from_epoch
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, without_fragment
from webarcfs.archive.system import clocks

# == links words, pure ================================================================================================


#: Characters of a word that count, and the most different words of one text: they bound the rows.
LONGEST_WORD = 64
MOST_WORDS = 64
_WORD = re.compile(r"[^\W_]+")


class AskedKind(IntEnum):
    """The kind of a link's target; links.db stores the numbers."""

    HTTP = 1
    MAIL = 2
    IMAGE = 3

    __hash__ = int.__hash__  # an enum's own is a Python function, and links are looked up by the million


class ArchivedLink(NamedTuple):
    """A link of a page: its target (a canonical URL, or `mailto:` and an address), and the text that names it.

    `window` is what HTML calls the target of a link: the name of the window or frame that it opens in.
    """

    kind: AskedKind
    target: str
    text: str
    window: str = ""


def words_of(text: str) -> tuple[str, ...]:
    """Return the different words of a text, without case and accents, in order: `Über-Größe` is `uber` and `grosse`."""
    folded = _folded(text)
    words = _WORD.findall(folded)
    if len(folded) > LONGEST_WORD:
        words = [word[:LONGEST_WORD] for word in words]
    return tuple(dict.fromkeys(words))[:MOST_WORDS]


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(map(_plain, unicodedata.normalize("NFKC", text))).casefold()


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """Return a character without its accents; empty for a mark alone. NFKD puts marks after their character."""
    # Only for scripts whose accents people omit in a search: marks of Indic scripts are vowels.
    return "".join(part for part in unicodedata.normalize("NFKD", char) if not "\u0300" <= part <= "\u036f")


# == links ids ========================================================================================================


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
        numbers = {link: known[link] for link in links if link in known}
        missing = [link for link in links if link not in numbers]
        if len(known) + len(missing) > _REMEMBERED:
            known.clear()
        numbers.update(self._stored(missing))
        known.update(
            (link, numbers[link]) for link in missing if len(link.target) <= _SHORT and len(link.text) <= _SHORT
        )
        return numbers

    def _stored(self, links: Sequence[ArchivedLink]) -> dict[ArchivedLink, int]:
        """Return the numbers of links in the database. Each gets a new one, unless the database already has it."""
        urls, last = self.urls(link.target for link in links), self._last["reference"]
        numbers = dict(zip(links, range(last + 1, last + 1 + len(links)), strict=True))
        self._connection.executemany(
            sql("links/add_reference"),
            ((number, int(link.kind), urls[link.target], link.text, link.window) for link, number in numbers.items()),
        )
        new = {number for (number,) in self._connection.execute(sql("links/new_references"), {"last": last})}
        self._last["reference"] = max(new, default=last)
        naming = ((number, words(link.text)) for link, number in numbers.items() if number in new)
        self._connection.executemany(sql("links/add_words"), naming)
        for link in [link for link, number in numbers.items() if number not in new]:
            numbers[link] = self._find_reference(link, urls[link.target])
        return numbers

    def urls(self, urls: Iterable[str]) -> dict[str, int]:
        """Return the number of each URL; store new ones."""
        wanted = set(urls)
        if not wanted:
            return {}
        rows = self._connection.execute(sql("links/find_urls"), {"values": json.dumps(list(wanted))})
        numbers: dict[str, int] = dict(rows.fetchall())
        new = [(self._next("url"), url, self._domain_of(url)) for url in sorted(wanted - numbers.keys())]
        numbers.update((url, number) for number, url, _ in new)
        self._connection.executemany(sql("links/add_url"), new)
        return numbers

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


# == links database ===================================================================================================


#: `seq_until` of current versions.
NEVER = (1 << 63) - 1
#: Rows that are gathered before they are stored, and the approximate rows of a transaction.
_PORTION = 20_000
_TRANSACTION = 50_000
_FORGET = ("links/forget_versions", "links/forget_snapshots", "links/forget_bodies", "links/forget_pages")


@dataclass(frozen=True, slots=True)
class PageChange:
    """The new state of one path in a snapshot: a page's URL and blob, or None without a page.

    `is_resource`: only pages of other hosts needed it, such as a frame. `dom` is the blob of the DOM that a browser
    showed of it; empty without one.
    """

    path: str
    page: tuple[str, str] | None
    is_resource: bool = False
    dom: str = ""


class _State(NamedTuple):
    """The numbers of a page and of its body (None without one), and what the page is to its host."""

    page: int
    body: int | None
    is_resource: bool


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
            self._ready("links/schema")
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
            self._run("begin")

    def counts(self) -> dict[str, int]:
        """Return the numbers of links, bodies, refs, urls and words."""
        with self._translated():
            cursor = self._connection.execute(sql("links/counts"))
            return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))

    def _take_bodies(
        self, domain: str, changes: Iterable[PageChange], links: Callable[[PageChange], Iterable[ArchivedLink]]
    ) -> list[_State]:
        """Store new bodies; return the state of each page from now on."""
        states: list[_State] = []
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
                    states.append(_State(page, body, change.is_resource))
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
        values = {"page": page, "blob": bytes.fromhex(blob + change.dom), "url": self._numbers.urls([url])[url]}
        known = self._found("links/find_body", **values)
        if known is not None:
            return known, 0
        body = self._run("links/add_body", **values).lastrowid
        assert body is not None
        stream, count = iter(links(change)), 0
        while portion := Counter(islice(stream, _PORTION)):
            count += len(portion)
            self._gather(body, portion)
        return body, count

    def _gather(self, body: int, portion: Counter[ArchivedLink]) -> None:
        self._pending.append((body, portion))
        self._gathered += len(portion)
        if self._gathered >= _PORTION:
            self._flush()

    def _flush(self) -> None:
        """Store the gathered links."""
        pending, self._pending, self._gathered = self._pending, [], 0
        links: dict[ArchivedLink, int] = {}
        for _, portion in pending:
            links.update(portion)
        references = self._numbers.references(links)
        rows = ((body, references[link], times) for body, portion in pending for link, times in portion.items())
        self._connection.executemany(sql("links/add_link"), rows)

    def _take_versions(self, tag: CommitTag, states: Iterable[_State]) -> None:
        seq, domain = int(tag.crawl_time.timestamp()), self._numbers.domain(tag.domain)
        values = {"crawlTime": format_time(tag.crawl_time), "commitTag": str(tag)}
        if not self._run("links/add_snapshot", domain=domain, seq=seq, **values).rowcount:
            return  # another process, catching up, was faster
        following = self._found("select_next_snapshot", domain=domain, seq=seq) or NEVER
        for state in states:
            self._change(state, domain, seq, following)

    def _change(self, state: _State, domain: int, seq: int, following: int) -> None:
        """End a page's version at `seq`, and continue it from the following snapshot, if it was valid there."""
        valid = self._run("links/valid_version", page=state.page, seq=seq).fetchone()
        if valid is not None and valid[2] > seq:
            body, begun, until, is_resource = valid
            before = _State(state.page, body, bool(is_resource))
            if before == state:
                return  # only users' additions or the head have changed
            self._run("links/end_version", page=state.page, seq_from=begun, seq=seq)
            if until > following:
                self._add_version(before, domain, following, until)
        if state.body is not None:
            self._add_version(state, domain, seq, following)

    def _add_version(self, state: _State, domain: int, begun: int, until: int) -> None:
        values = {"page": state.page, "domain": domain, "body": state.body, "resource": state.is_resource}
        self._run("links/add_version", seq_from=begun, seq_until=until, **values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._run("begin")
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


# == links query ======================================================================================================


_CRAWL = "a crawl makes it, or"
#: Seconds that a reader waits for a writer.
PATIENCE = 5.0
#: Rows of a page of a reader's answer, and the bytes of them that are kept in memory.
_PAGE, _SPOOLED = 1_000, 4 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """The links to find: those of the page at `path`, to one of `targets`, or named by all words of `word`; else all.

    `at` is the state of a snapshot, else the newest of every domain, or with `ever` every version. The rest filters.
    Without a `role` they are those of pages, or of the page at `path`, whatever it is. `origin` is that of the pages.
    """

    path: str = ""
    targets: tuple[str, ...] = ()
    word: str = ""
    at: CommitTag | None = None
    ever: bool = False
    kind: AskedKind | None = None
    external: bool = False
    broken: bool = False
    role: str = ""
    limit: int | None = None
    origin: DocumentOrigin = ANY_ORIGIN


@dataclass(frozen=True, slots=True)
class FoundLink:
    """A link in a version of a page: `times` there, since the crawl at `since`, until the one at `until` (or empty).

    `arc` is the path of the target's ARC (`/<domain>/…`) in the state that was asked for, or the newest; empty where
    the archive does not have it, or was not asked. `window` is the name of the window that it opens in.
    """

    page: str
    path: str
    kind: str
    target: str
    text: str
    times: int
    since: str
    until: str
    arc: str = ""
    window: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The fields 39 to 42 of a snapshot's record: counts of links to pages, of mails and of images."""

    total: int
    external: int
    external_targets: int
    internal: int
    mails: int
    images: int


class LinkReader(Protocol):
    """Decides what a reader may see of an answer."""

    def span(self, path: str, first: int, last: int) -> tuple[int, int] | None:
        """Return from when to when the version of a page that is valid at `first` is known; None if it is not."""

    def held(self, url: str) -> LinkTarget:
        """Return what the reader may see of a URL."""


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Whether the domain of a URL is in the archive, and the path of the document's ARC, if that is."""

    domain: bool
    arc: str

    @property
    def is_broken(self) -> bool:
        """Whether a link to it leads to nothing, though the domain is archived."""
        return self.domain and not self.arc


#: What is archived of a URL, in one state.
Holdings = Callable[[str], LinkTarget]


def ask(
    archive: Archive, question: Question, seconds: float, reader: LinkReader | None = None, *, arcs: bool = False
) -> Iterator[FoundLink]:
    """Yield the links of `question`; with a `reader`, of what it may see; with `arcs`, with the ARC of each target.

    Raises NotFound without links.db or the snapshot in it, TookTooLong after `seconds`, Busy while another process
    writes for long, DatabaseDamaged when it cannot be read.
    """
    statement, values = _statement(question)
    if statement is None:
        return
    if reader is not None:
        # The reader judges rows once links.db is closed: git is asked for each, and a crawl would wait for that.
        values |= {"limit": -1, "broken": False, "publication": None} | ({"seq": None} if question.at is None else {})
        with _opened(archive.links, seconds) as connection, closing(_Spool()) as spool:
            if question.at is not None:
                _must_have(archive, connection, question.at)
            spool.fill(connection.execute(statement, values))
            connection.close()
            yield from islice(_judged(_shown(iter(spool), reader), reader.held, question, arcs=arcs), question.limit)
        return
    with ExitStack() as stack:
        connection = stack.enter_context(_opened(archive.links, seconds))
        if question.at is not None:
            _must_have(archive, connection, question.at)
        failures: list[WebarcError] = []
        holdings: Holdings | None = None
        if question.broken or arcs or question.origin.publication:
            database = stack.enter_context(closing(_connected(archive.database)))
            is_stored = _is_stored_by(question.origin.publication, database, archive.database, failures)
            connection.create_function("is_stored", 2, is_stored)
        if question.broken or arcs:
            holdings = _holdings(database, archive.database, _seq(question.at))
            connection.create_function("is_broken", 1, _judge(holdings, failures))
        try:
            for row in connection.execute(statement, values):
                link = _found(row)
                yield link if holdings is None or not arcs else replace(link, arc=_arc(holdings, link.target))
        except sqlite3.DatabaseError:
            if failures:  # SQLite reports that a function failed, but not why
                raise failures[0] from None
            raise


def _judge(holdings: Holdings, failures: list[WebarcError]) -> Callable[[str], bool]:
    """Return whether a URL is broken; errors are added to `failures`, since SQLite does not pass them on."""

    def is_broken(url: str) -> bool:
        try:
            return holdings(url).is_broken
        except WebarcError as error:
            failures.append(error)
            raise

    return is_broken


def _is_stored_by(
    publication: str, connection: sqlite3.Connection, database: Path, failures: list[WebarcError]
) -> Callable[[str, int], bool]:
    """Return whether a publication stored the version of a page that is valid in a snapshot, as webarc.db knows it."""

    @lru_cache(maxsize=65_536)
    def is_stored(path: str, since: int) -> bool:
        values = {"path": path, "seq": since, "publication": publication}
        try:
            return connection.execute(sql("metadata/is_stored_by"), values).fetchone() is not None
        except sqlite3.DatabaseError as error:
            failures.append(as_told_to_readers(database, error))
            raise

    return is_stored


def _arc(holdings: Holdings, target: str) -> str:
    return holdings(target).arc if "://" in target else ""


_Row = tuple[str, str, int, str, str, int, int, int, str]


class _Spool:
    """Rows in order, beyond some megabytes in an unnamed file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOLED)  # noqa: SIM115 # `close` closes it
        self._pages = 0

    def fill(self, rows: sqlite3.Cursor) -> None:
        """Take all rows of an answer. Raises OSError on a full disk."""
        while page := rows.fetchmany(_PAGE):
            marshal.dump(page, self._file)
            self._pages += 1
        self._file.seek(0)

    def __iter__(self) -> Iterator[_Row]:
        for _ in range(self._pages):
            yield from marshal.load(self._file)  # noqa: S302 # this process wrote it

    def close(self) -> None:
        """Give memory and disk back."""
        self._file.close()


def _judged(rows: Iterator[_Row], holdings: Holdings, question: Question, *, arcs: bool) -> Iterator[FoundLink]:
    """Yield the links of rows that the reader may see."""
    for row in rows:
        link = _found(row)
        if not question.broken or holdings(link.target).is_broken:
            yield replace(link, arc=_arc(holdings, link.target)) if arcs else link


def _shown(rows: Iterator[_Row], reader: LinkReader) -> Iterator[_Row]:
    for row in rows:
        clocks.check()
        span = reader.span(row[1], row[6], row[7])
        if span is not None:
            yield (*row[:6], *span, row[8])


def figures_of(links: Iterable[FoundLink]) -> Figures:
    """Return the counts of some links: of those that a reader may see."""
    times: Counter[tuple[str, bool]] = Counter()
    outside = set()
    for link in links:
        is_out = "://" in link.target and split(arc_path(link.target))[0] != split(link.path)[0]
        times[link.kind, is_out] += link.times
        if is_out and link.kind == AskedKind.HTTP.name.lower():
            outside.add(link.target)
    http, mail, image = (kind.name.lower() for kind in (AskedKind.HTTP, AskedKind.MAIL, AskedKind.IMAGE))
    inner, outer = times[http, False], times[http, True]
    mails, images = (times[kind, False] + times[kind, True] for kind in (mail, image))
    return Figures(inner + outer, outer, len(outside), inner, mails, images)


def figures(archive: Archive, tag: CommitTag, seconds: float) -> Figures:
    """Return the counts of a snapshot's links. Raises as `ask` does."""
    with _opened(archive.links, seconds) as connection:
        _must_have(archive, connection, tag)
        values = {"domain": tag.domain, "seq": _seq(tag)}
        rows = {(kind, bool(out)): (n, t) for kind, out, n, t in connection.execute(sql("links/figures"), values)}
    inside, outside = (rows.get((AskedKind.HTTP, external), (0, 0)) for external in (False, True))
    mails, images = (
        sum(rows.get((kind, external), (0, 0))[0] for external in (False, True))
        for kind in (AskedKind.MAIL, AskedKind.IMAGE)
    )
    return Figures(inside[0] + outside[0], *outside, inside[0], mails, images)


def _statement(question: Question) -> tuple[str | None, dict[str, Any]]:
    role = question.role or (ANY_ROLE if question.path else PAGE_ROLE)
    domains = {question.origin.domain, question.at.domain if question.at is not None else ""} - {""}
    if len(domains) > 1:
        return None, {}  # a snapshot has no page of another domain
    values: dict[str, Any] = {
        "resource": None if role == ANY_ROLE else role == RESOURCE_ROLE,
        "seq": None if question.ever else _seq(question.at),
        "domain": next(iter(domains), None),
        "publication": question.origin.publication or None,
        "kind": question.kind,
        "external": question.external,
        "broken": question.broken,
        "limit": -1 if question.limit is None else question.limit,
    }
    begin = "links/all"
    if question.path:
        begin, values["path"] = "links/from", question.path
    elif question.targets:
        begin, values["targets"] = "links/to", json.dumps(question.targets)
    elif question.word:
        words = words_of(question.word)
        if not words:
            return None, {}  # without a word there is nothing to find
        begin, values["words"] = "links/word", " ".join(f'"{word}"' for word in words)
    return f"{sql(begin)}{sql('links/narrow')}", values


def _seq(tag: CommitTag | None) -> int:
    return NEVER - 1 if tag is None else int(tag.crawl_time.timestamp())


def _found(row: _Row) -> FoundLink:
    clocks.check()
    page, path, kind, target, text, times, since, until, window = row
    ended = "" if until == NEVER else format_time(from_epoch(until))
    return FoundLink(
        page=page, path=path, kind=AskedKind(kind).name.lower(), target=target, text=text, times=times,
        since=format_time(from_epoch(since)), until=ended, window=window,
    )  # fmt: skip


def _holdings(connection: sqlite3.Connection, database: Path, seq: int) -> Holdings:
    """Return a function: what webarc.db has of a URL at `seq`, after its redirects."""

    def ask_one(statement: str, **values: object) -> Any:
        try:
            return connection.execute(sql(statement), values | {"seq": seq}).fetchone()
        except sqlite3.DatabaseError as error:
            raise as_told_to_readers(database, error) from None

    @lru_cache(maxsize=65_536)
    def held(url: str) -> LinkTarget:
        try:
            for _ in range(LONGEST_CHAIN + 1):
                path = arc_path(url)
                domain = split(path)[0]
                row = ask_one("metadata/redirected_at", domain=domain, url=url)
                target = without_fragment(row[0]) if row else url
                if target == url:
                    break
                url = target
            else:
                return LinkTarget(True, "")
            # A folder without its slash: archives of layout 1 do not have the redirect to the folder.
            folder = path if "?" in url else arc_path(f"{url}/")
        except UrlRefused:
            return LinkTarget(False, "")
        second = f"/{second_name(path, url)}"
        has_domain, arc = ask_one(
            "metadata/held_at", domain=domain, second=second, path=f"/{path}", folder=f"/{folder}"
        )
        return LinkTarget(bool(has_domain), arc or "")

    return held


def _connected(path: Path) -> sqlite3.Connection:
    """Open a database for reading. Raises NotFound if it is missing."""
    if not path.is_file():
        hint = (
            "a crawl makes it, unless `[index] links = false` in webarc.toml, or" if path.name == "links.db" else _CRAWL
        )
        raise NotFound(f"there is no {path} yet; {hint} `webarc-agent recover`")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE)


@contextmanager
def _opened(path: Path, seconds: float) -> Iterator[sqlite3.Connection]:
    """Open links.db for reading; turn SQLite's errors into ours."""
    end = time.monotonic() + seconds
    with closing(_connected(path)) as connection:
        try:
            connection.set_progress_handler(lambda: time.monotonic() > end or clocks.is_over(), STEPS_BETWEEN_LOOKS)
            connection.create_function("is_broken", 1, lambda _target: False)  # unless a question needs them
            connection.create_function("is_stored", 2, lambda _path, _since: True)
            if connection.execute(sql("schema_version")).fetchone()[0] != version_of("links/schema"):
                raise DatabaseDamaged(f"{path} is of another version; `webarc-agent recover` rebuilds it from git")
            yield connection
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
                clocks.check()
                raise TookTooLong(f"the answer took more than {seconds:g} s; ask for less, or give a limit") from None
            raise as_told_to_readers(path, error) from None


def _must_have(archive: Archive, connection: sqlite3.Connection, tag: CommitTag) -> None:
    if connection.execute(sql("links/has_snapshot"), {"commitTag": str(tag)}).fetchone() is None:
        raise NotFound(
            f"{archive.links} has no snapshot {tag}; if the archive has, `webarc-agent recover` brings it in"
        )


# == stored links =====================================================================================================


class PageBody(NamedTuple):
    """From one snapshot (`first`) up to another (`last`) a page has the body of that number.

    `has_dom`: its links are also those of a DOM that a browser showed.
    """

    first: int
    last: int
    number: int
    has_dom: bool


class StoredLink(NamedTuple):
    """A link of a body. `domain` is the host of its target; empty for a mail address."""

    kind: str
    target: str
    text: str
    times: int
    domain: str


#: Links of a page of an answer.
_LINKS = 5_000
_KINDS = {int(kind): kind.name.lower() for kind in AskedKind}


class StoredLinks:
    """The links of links.db by the path of their page, on one connection. A context manager, for one thread.

    Raises NotFound without links.db, Busy while another process writes for long, DatabaseDamaged.
    """

    def __init__(self, archive: Archive) -> None:
        self._path = archive.links

    def __enter__(self) -> StoredLinks:
        self._stack = ExitStack()
        self._connection = self._stack.enter_context(_opened(self._path, math.inf))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def snapshots(self, domain: str) -> set[int]:
        """Return the snapshots of a domain that links.db has, in seconds since 1970."""
        return {int(row[0]) for row in self._rows("links/snapshots_of_domain", {"domain": domain})}

    def bodies(self, path: str) -> list[PageBody]:
        """Return the bodies of the page at a path (`/<domain>/…`), oldest first."""
        rows = self._rows("links/bodies_of_page", {"path": path})
        return [PageBody(first, last, number, bool(has_dom)) for first, last, number, has_dom in rows]

    def of(self, body: int) -> Iterator[StoredLink]:
        """Yield the links of a body, some at a time."""
        last = -1
        while True:
            rows = self._rows("links/of_body", {"body": body, "last": last, "limit": _LINKS})
            for _, kind, target, text, times, domain in rows:
                yield StoredLink(_KINDS[kind], target, text, times, domain)
            if len(rows) < _LINKS:
                return
            last = rows[-1][0]

    def _rows(self, statement: str, values: dict[str, Any]) -> list[Any]:
        try:
            return self._connection.execute(sql(statement), values).fetchall()
        except sqlite3.DatabaseError as error:
            raise as_told_to_readers(self._path, error) from None
