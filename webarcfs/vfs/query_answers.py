"""Answers conditions and searches for the mount: finds documents for the links of `.query/` and `.search/` (/Cl-6/).

A condition is checked on lookup, and answered on the first access to its links: the check takes a millisecond, the
answer up to `query_seconds` of `[mount]`. An answer belongs to one state of webarc.db, which its `Stamp` identifies,
and never changes. Safe for any thread; a thread that needs a missing answer waits for it, and delays no other.

A search is read on lookup, and answered on the first access to its links. It means the present; after `all:` every
version, with one link a URL. An answer belongs to one state of the full-text index. Its libraries come with the extra
`search`, and are loaded with the first search.

What discarded records captured is left out by the mount: by domain, in queries and in searches. A domain of which
something is discarded is read from a repository that has the other snapshots alone (`gate`). Safe for any thread.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import MountSettings
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index import query
from webarcfs.archive.index.query import Condition, from_name, parse
from webarcfs.archive.model.errors import (
    BadCondition,
    Busy,
    Interrupted,
    LookAgain,
    NotFound,
    SettingsError,
    TookTooLong,
    TooMany,
    WebarcError,
)

if TYPE_CHECKING:
    from webarcfs.access.gate import StaffGate
    from webarcfs.access.reader_repositories import ReaderRepositories


# == discarded ========================================================================================================


#: Repositories that are kept for nodes of older states, when there is a newer one.
_KEPT = 4

_log = logging.getLogger(__name__)


class Discarded:
    """The discarded records of one archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._catalogue = Catalogue(archive)
        self._repositories: ReaderRepositories | None = None
        self._is_closed = False
        self._ids: frozenset[str] = frozenset()
        self._domains: dict[str, frozenset[str]] = {}

    def ids(self) -> frozenset[str]:
        """Return the ids of the records; none where the catalogue cannot be read, which the log then says."""
        with self._lock:
            return self._look()

    def by_domain(self) -> Mapping[str, frozenset[str]]:
        """Return the commitTags that are discarded, of each domain that has any."""
        with self._lock:
            self._look()
            return self._domains

    def repository(self, domain: str) -> Repository | None:
        """Return the repository of the other snapshots of a domain; None if there are none.

        Raises Damaged; Interrupted after `close`.
        """
        with self._lock:
            if self._is_closed:
                raise Interrupted("the mount ends")
            if self._repositories is None:
                from webarcfs.access.gate import StaffGate  # noqa: PLC0415 # as above
                from webarcfs.access.reader_repositories import ReaderRepositories  # noqa: PLC0415 # as above

                self._repositories = ReaderRepositories(StaffGate(self._archive), keep=_KEPT)
            try:
                return self._repositories.open(domain)
            except NotFound:
                return None

    def close(self) -> None:
        """Remove the repositories; none is made any more."""
        with self._lock:
            self._is_closed = True
            if self._repositories is not None:
                self._repositories.close()

    def gate(self) -> StaffGate | None:
        """Return a gate for one thread; None where nothing is discarded."""
        if not self.ids():
            return None
        from webarcfs.access.gate import StaffGate  # noqa: PLC0415 # as above

        return StaffGate(self._archive)

    def _look(self) -> frozenset[str]:
        try:
            ids = self._catalogue.discarded()
            if ids != self._ids:
                domains: dict[str, set[str]] = {}
                for record in (self._catalogue.read(record_id)[0] for record_id in ids):
                    for part in record.parts:
                        domains.setdefault(part.tag.domain, set()).add(str(part.tag))
                self._domains = {domain: frozenset(tags) for domain, tags in domains.items()}
                self._ids = ids
        except (WebarcError, OSError) as error:
            _log.warning("nobody knows what is discarded: %s", error)
        return self._ids


# == query answers ====================================================================================================


#: Most hits of an answer.
ROWS = 100_000
#: Answers that are computed at a time: the rest of the mount needs the processor, too.
AT_ONCE = 4
#: Hits that are kept in total, some 200 bytes each, and conditions.
KEPT_HITS, KEPT = 250_000, 1_000
#: Size and offset of SQLite's change counter in a database file (sqlite.org/fileformat, 1.3.8).
_COUNTER = (4, 24)
#: The remedy for a condition that ends too early.
SLASH = "a / in a condition is written %2F"


#: `<commitTag>/<path of the ARC in its domain>`, in the requested order.
Hits = tuple[str, ...]
#: Finds the hits of one condition.
Look = Callable[[], Hits]


@dataclass(frozen=True, slots=True)
class Stamp:
    """A state of webarc.db: its inode, size, time in nanoseconds, SQLite's change counter, and what is discarded."""

    inode: int
    size: int
    time: int
    counter: bytes

    @property
    def mtime(self) -> int:
        """The time of the last change, in seconds since 1970."""
        return self.time // 10**9


class QueryAnswer:
    """The hits of one condition in one state; computed on first use."""

    def __init__(self, look: Callable[[], Hits]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._hits: Hits | None = None
        self._failure: WebarcError | None = None
        self._dropped = False

    @property
    def is_there(self) -> bool:
        """Whether `hits` returns without a wait."""
        return self._hits is not None or self._dropped

    @property
    def size(self) -> int:
        """The number of hits in memory."""
        return len(self._hits or ())

    def hits(self) -> Hits:
        """Return the hits. Raises the errors of `Queries`, and Stale if they were evicted: a new lookup finds new ones.

        Threads that waited for another thread's run share its result, including its error: each run takes as long.
        """
        answer = self._hits
        if answer is None:
            known = self._failure
            with self._lock:
                answer, failure = self._hits, self._failure
                if answer is None and failure is not None and failure is not known:
                    raise type(failure)(str(failure))
                if answer is None and not self._dropped:
                    answer = self._looked()
                    self._hits = None if self._dropped else answer
        if answer is None:
            raise LookAgain("the answer had to give way to others; ask again")
        return answer

    def _looked(self) -> Hits:
        try:
            return self._look()
        except WebarcError as error:
            self._failure = type(error)(str(error))
            raise

    def drop(self) -> None:
        """Free the hits."""
        self._dropped = True
        self._hits = None


Key = tuple[str, Stamp]


class Queries:
    """The conditions of one mount.

    An invalid one raises NotFound, and the log has the reason; TookTooLong, TooMany and Busy concern valid ones.
    """

    def __init__(self, archive: Archive, discarded: Discarded | None = None) -> None:
        self._settings = archive.settings
        self._database = archive.database
        self._discarded = discarded or Discarded(archive)
        self._counter = _Counter(archive)
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._answers: OrderedDict[Key, QueryAnswer] = OrderedDict()

    @cached_property
    def seconds(self) -> float:
        """The longest time for an answer, and for the wait before it."""
        try:
            return settings_files.load(self._settings)[0].mount.query_seconds
        except SettingsError as error:  # a read-only mount needs no settings, and does not check them
            _log.warning("conditions may take the usual time: %s", error)
            return MountSettings().query_seconds

    def stamp(self) -> Stamp:
        """Return webarc.db's current state. Raises NotFound if it is missing, Damaged while the archive is gone."""
        return self._with_discarded(self._counter.stamp())

    def _with_discarded(self, stamp: Stamp) -> Stamp:
        ids = self._discarded.ids()
        return replace(stamp, counter=stamp.counter + "\n".join(sorted(ids)).encode()) if ids else stamp

    def is_known(self, name: str) -> bool:
        """Return whether `find` has found this condition in this state before."""
        try:
            return (name, self.stamp()) in self._answers
        except WebarcError:
            return True  # `find` then fails at once

    def find(self, name: str) -> tuple[QueryAnswer, Stamp]:
        """Return the answer of the condition of that name, and the state. Raises NotFound, Busy, Damaged."""
        with _told(name):
            stamp = self.stamp()
            with self._lock:
                known = self._answers.get((name, stamp))
                if known is not None:
                    self._answers.move_to_end((name, stamp))
                    return known, stamp
            look = self._checked(name)
        return self._keep((name, stamp), QueryAnswer(lambda: self._look(name, look))), stamp

    def _checked(self, name: str) -> Look:
        """Return a function that finds the hits of a condition. Raises BadCondition for an invalid one."""
        condition = parse(from_name(name))
        query.check(self._database, condition, self._narrowed())
        return lambda: self._found(condition)

    def _narrowed(self) -> query.Narrowed | None:
        gate = self._discarded.gate()
        if gate is None:
            return None
        from webarcfs.access import reader_stores  # noqa: PLC0415 # most mounts need none of it, and start sooner

        return reader_stores.narrowed(gate)

    def _found(self, condition: Condition) -> Hits:
        most = ROWS + 1 if condition.limit is None else min(condition.limit, ROWS + 1)
        asked = Condition(condition.where, condition.order_by, most)
        hits = tuple(f"{tag}/{_inner(path)}" for tag, path in self._places(asked))
        if len(hits) > ROWS:
            raise TooMany(f"more than {ROWS:,} documents; narrow it, or end it with LIMIT {ROWS}")
        return hits

    def _places(self, asked: Condition) -> Iterator[tuple[str, str]]:
        return query.places(self._database, asked, self.seconds, self._narrowed())

    def _keep(self, key: Key, answer: QueryAnswer) -> QueryAnswer:
        with self._lock:
            answer = self._answers.setdefault(key, answer)
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)[1].drop()
        return answer

    def _look(self, name: str, look: Look) -> Hits:
        with _told(name), self._turn():
            hits = look()
        self._make_room(len(hits))
        return hits

    def _make_room(self, size: int) -> None:
        """Drop the least recently used answers, until `size` more hits may be kept."""
        with self._lock:
            held = size + sum(answer.size for answer in self._answers.values())
            for key, answer in list(self._answers.items()):
                if held <= KEPT_HITS:
                    break
                if answer.size:
                    held -= answer.size
                    del self._answers[key]
                    answer.drop()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=self.seconds):
            raise Busy(f"{AT_ONCE} other conditions have been at work for {self.seconds:g} s; try again")
        try:
            yield
        finally:
            self._turns.release()


class _Counter:
    """Reads the state of a database without SQLite.

    The file stays open as long as the name leads to it: closing it would release SQLite's locks on it in other threads
    of this process (sqlite.org/howtocorrupt, 2.2).
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._path = archive.database
        self._lock = threading.Lock()
        self._fd = -1
        self._file = (0, 0)

    def stamp(self) -> Stamp:
        try:
            with self._lock:
                status = self._path.stat()
                if (status.st_dev, status.st_ino) != self._file:
                    self._open()
                status = os.fstat(self._fd)
                counter = os.pread(self._fd, *_COUNTER)
        except FileNotFoundError:
            what = f"there is no {self._path} yet; a crawl makes it, or `webarc-agent recover`"
            raise self._archive.missing(what) from None
        return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, counter)

    def _open(self) -> None:
        new = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        if self._fd >= 0:
            os.close(self._fd)
        status = os.fstat(new)
        self._fd, self._file = new, (status.st_dev, status.st_ino)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Log the reason why a condition cannot be answered; turn BadCondition into NotFound."""
    try:
        yield
    except (BadCondition, NotFound, TookTooLong, TooMany, Busy) as error:
        # Always one line, and without the mark below it that a terminal would show.
        message = " | ".join(line for line in str(error).splitlines() if not line.startswith("  "))
        if "never closed" in message:  # the text after a slash is another name
            message += f" | {SLASH}"
        refused = unanswered(name, message)
        raise (refused if isinstance(error, BadCondition) else error) from None


def unanswered(name: str, why: str) -> NotFound:
    """Log why a condition is not answered; return the error for the caller."""
    _log.info("the condition %r is not answered: %s", name, why)
    return NotFound(why)


def _inner(path: str) -> str:
    """Return `/<domain>/<path>` without the domain."""
    return path[1:].partition("/")[2]


# == search answers ===================================================================================================


#: Most hits of an answer.
_MOST = 20_000
#: Before words that are searched in all versions.
_ALL = "all:"


class Searches(Queries):
    """The searches of one mount. An invalid one raises NotFound, and the log has the reason."""

    def __init__(self, archive: Archive, discarded: Discarded | None = None) -> None:
        super().__init__(archive, discarded)
        self._archive = archive

    def stamp(self) -> Stamp:
        """Return the state of the index. Raises NotFound without one."""
        if find_spec("tantivy") is None:
            raise NotFound("searches need more libraries: pip install 'webarcfs[search]'")
        from webarcfs.search import generations  # noqa: PLC0415 # of the extra `search`

        status = generations.state(self._archive)
        return self._with_discarded(Stamp(status.st_ino, status.st_size, status.st_mtime_ns, b""))

    def _checked(self, name: str) -> Look:
        from webarcfs.search.query_language import parse_whole_search  # noqa: PLC0415 # few mounts are searched

        words = from_name(name)
        in_all = words.startswith(_ALL)
        words = words.removeprefix(_ALL) if in_all else words
        says_states = parse_whole_search(words).says_states
        return lambda: self._searched(words, present=not in_all and not says_states)

    def _searched(self, words: str, *, present: bool) -> Hits:
        from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

        searcher = Searcher(self._archive, self._discarded.gate())
        question = SearchQuestion(words=words, present=present, limit=_MOST)
        if searcher.count(question) > _MOST:
            raise TooMany(f"more than {_MOST:,} URLs; narrow the search")
        return tuple(f"{tag}/{path[1:].partition('/')[2]}" for tag, path in searcher.places(question))
