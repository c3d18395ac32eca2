"""Queries links.db: links of a page, links to a page, links named by a word, links to nothing (seeds 2 and 4).

Users give values, never SQL; the connection is read-only, and a clock bounds the time of an answer.

Joins are in a fixed order (`CROSS JOIN`), from the few rows to the many: URL or word, what links say, pages, versions.
A link is broken if its domain, though archived, does not have the target at that moment, nor the page to which its
redirects lead. Archives of layout 1 have no redirects: there a folder's URL without its slash counts as that of the
folder. The view `link_words` is for asking by word; by page or target it reads the words of all links.
"""

from __future__ import annotations

import json
import marshal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index.links_database import NEVER, SCHEMA_VERSION
from webarcfs.archive.index.links_words import AskedKind, words_of
from webarcfs.archive.index.sqlite_file import STEPS_BETWEEN_LOOKS, as_told_to_readers
from webarcfs.archive.model.arc_paths import arc_path, second_name, split
from webarcfs.archive.model.errors import DatabaseDamaged, NotFound, TookTooLong, UrlRefused, WebarcError
from webarcfs.archive.model.metadata import CommitTag, format_time, from_epoch
from webarcfs.archive.model.redirects import LONGEST_CHAIN, without_fragment
from webarcfs.archive.system import deadline

_CRAWL = "a crawl makes it, or"
#: Seconds that a reader waits for a writer.
PATIENCE = 5.0
#: Rows of a page of a reader's answer, and the bytes of them that are kept in memory.
_PAGE, _SPOOLED = 1_000, 4 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """The links to find: those of the page at `path`, to one of `targets`, or named by all words of `word`; else all.

    `at` is the state of a snapshot, else the newest of every domain, or with `ever` every version. The rest filters.
    """

    path: str = ""
    targets: tuple[str, ...] = ()
    word: str = ""
    at: CommitTag | None = None
    ever: bool = False
    kind: AskedKind | None = None
    external: bool = False
    broken: bool = False
    limit: int | None = None


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
    """Seed 2's figures 39 to 42 of a snapshot: counts of links to pages, of mails and of images."""

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

    def held(self, url: str) -> Held:
        """Return what the reader may see of a URL."""


@dataclass(frozen=True, slots=True)
class Held:
    """Whether the domain of a URL is in the archive, and the path of the document's ARC, if that is."""

    domain: bool
    arc: str

    @property
    def is_broken(self) -> bool:
        """Whether a link to it leads to nothing, though the domain is archived."""
        return self.domain and not self.arc


#: What is archived of a URL, in one state.
Holdings = Callable[[str], Held]


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
        values |= {"limit": -1, "broken": False} | ({"seq": None} if question.at is None else {})
        with _opened(archive.links, seconds) as connection, closing(_Spool()) as spool:
            if question.at is not None:
                _must_have(archive, connection, question.at)
            connection.create_function("is_broken", 1, lambda _target: False)
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
        if question.broken or arcs:
            database = stack.enter_context(closing(_connected(archive.database)))
            holdings = _holdings(database, archive.database, _seq(question.at))
        if holdings is not None:
            connection.create_function("is_broken", 1, _judge(holdings, failures))
        else:
            connection.create_function("is_broken", 1, lambda _target: False)
        try:
            for row in connection.execute(statement, values):
                found = _found(row)
                yield found if holdings is None or not arcs else replace(found, arc=_arc(holdings, found.target))
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
        found = _found(row)
        if not question.broken or holdings(found.target).is_broken:
            yield replace(found, arc=_arc(holdings, found.target)) if arcs else found


def _shown(rows: Iterator[_Row], reader: LinkReader) -> Iterator[_Row]:
    for row in rows:
        deadline.check()
        span = reader.span(row[1], row[6], row[7])
        if span is not None:
            yield (*row[:6], *span, row[8])


def figures_of(found: Iterable[FoundLink]) -> Figures:
    """Return the counts of some links: of those that a reader may see."""
    times: Counter[tuple[str, bool]] = Counter()
    outside = set()
    for each in found:
        is_out = "://" in each.target and split(arc_path(each.target))[0] != split(each.path)[0]
        times[each.kind, is_out] += each.times
        if is_out and each.kind == AskedKind.HTTP.name.lower():
            outside.add(each.target)
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
        sum(rows.get((kind, each), (0, 0))[0] for each in (False, True)) for kind in (AskedKind.MAIL, AskedKind.IMAGE)
    )
    return Figures(inside[0] + outside[0], *outside, inside[0], mails, images)


def _statement(question: Question) -> tuple[str | None, dict[str, Any]]:
    values: dict[str, Any] = {
        "seq": None if question.ever else _seq(question.at),
        "domain": question.at.domain if question.at is not None else None,
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
    deadline.check()
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
    def held(url: str) -> Held:
        try:
            for _ in range(LONGEST_CHAIN + 1):
                path = arc_path(url)
                domain = split(path)[0]
                found = ask_one("metadata/redirected_at", domain=domain, url=url)
                target = without_fragment(found[0]) if found else url
                if target == url:
                    break
                url = target
            else:
                return Held(True, "")
            # A folder without its slash: archives of layout 1 do not have the redirect to the folder.
            folder = path if "?" in url else arc_path(f"{url}/")
        except UrlRefused:
            return Held(False, "")
        second = f"/{second_name(path, url)}"
        has_domain, arc = ask_one(
            "metadata/held_at", domain=domain, second=second, path=f"/{path}", folder=f"/{folder}"
        )
        return Held(bool(has_domain), arc or "")

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
            connection.set_progress_handler(lambda: time.monotonic() > end or deadline.is_over(), STEPS_BETWEEN_LOOKS)
            if connection.execute(sql("schema_version")).fetchone()[0] != SCHEMA_VERSION:
                raise DatabaseDamaged(f"{path} is of another version; `webarc-agent recover` makes it anew from git")
            yield connection
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
                deadline.check()
                raise TookTooLong(f"the answer took more than {seconds:g} s; ask for less, or give a limit") from None
            raise as_told_to_readers(path, error) from None


def _must_have(archive: Archive, connection: sqlite3.Connection, tag: CommitTag) -> None:
    if connection.execute(sql("links/has_snapshot"), {"commitTag": str(tag)}).fetchone() is None:
        raise NotFound(
            f"{archive.links} has no snapshot {tag}; if the archive has, `webarc-agent recover` brings it in"
        )
