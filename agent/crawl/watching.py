"""The feed that a publication watches (`watch`): which of its items are captured, which wait, what a crawl made of it.

An item is the canonical URL of its page, without session id and fragment: a feed may make up ids as it likes. One that
a crawl of the publication published is not asked for again. One that did not come is asked for again by the next
crawls, also when it has left the feed, until `MOST_TRIES` of them did so in vain.

The items are in `watch/<publication>.db` of the archive, written by the crawl once it is published: after a kill before
that the job is resumed, and says it again. A crawl that is resumed counts once. If the file is missing, what the
publication captured is read from webarc.db.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.crawl.frontier import WATCH_BEGUN, WATCHED, Frontier, FrontierUrl, WatchedFeed
from agent.crawl.vocabulary import DECISIONS, NOT_TRIED, Figure, Reason, Result, Status, UrlState, is_error_page
from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.config.settings import Publication
from webarcfs.archive.index import database
from webarcfs.archive.index.sqlite_file import SqliteFile, remove, translated
from webarcfs.archive.model.errors import DatabaseDamaged

_log = logging.getLogger(__name__)

#: Crawls that ask for an item in vain until it is given up.
MOST_TRIES = 10
_IN_MEMORY = Path(":memory:")
#: Reasons of bounds of a whole crawl, which had no room any more: the next one begins with these items.
_LATER = frozenset({Reason.HOSTS, Reason.QUERIES})
#: Reasons of settings, which the next crawl would find again.
_FINAL = DECISIONS - {Reason.ROBOTS, *_LATER}
_STORED = frozenset({Result.ADDED, Result.CHANGED, Result.UNCHANGED, Result.DUPLICATE})
#: Items that a report names; crawl.log has all.
_MOST_NAMED = 50

# == items ============================================================================================================


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """What became of an item in a crawl. `tries` is what the crawl counts for: 0 if it did not ask for it."""

    url: str
    captured: bool
    tries: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether it is not asked for any more, if this is the sum of all crawls: it is captured, or was given up."""
        return self.captured or self.tries >= MOST_TRIES


def path_of(archive: Archive, publication: str) -> Path:
    """Return the file with the items of a publication."""
    return archive.root / "watch" / f"{publication}.db"


class WatchedItems(SqliteFile):
    """The items of a publication. A context manager, for one thread; one process at a time writes."""

    def __init__(self, archive: Archive, publication: str, *, reads: bool = False) -> None:
        """Open the file, or make it from webarc.db; who only `reads` makes none.

        A damaged one is rebuilt, and that is logged. Raises the errors of `translated`.
        """
        path = path_of(archive, publication)
        if not reads:
            path.parent.mkdir(exist_ok=True)
        elif not path.exists():
            path = _IN_MEMORY
        try:
            self._open(path)
        except DatabaseDamaged:
            _log.warning(
                "%s is damaged; the items of %s are read from webarc.db, and failed ones count from the beginning",
                path,
                publication,
            )
            if not reads:
                remove(path)
            self._open(_IN_MEMORY if reads else path)
        try:
            if not self._is_filled:
                self._fill(archive, publication)
        except BaseException:
            self.close()
            raise

    def find(self, url: str) -> ItemEnd:
        """Return what all crawls made of an item; of one that is new, nothing."""
        with self._translated():
            row = self._run("watch/find", url=url).fetchone()
        return ItemEnd(url, captured=False) if row is None else ItemEnd(url, bool(row[0]), int(row[1]))

    def is_settled(self, url: str) -> bool:
        """Return whether an item is not asked for any more."""
        return self.find(url).is_settled

    def waiting(self, number: int) -> list[str]:
        """Return the items, so many at most (0: all), that earlier crawls asked for in vain and the next one shall."""
        with self._translated():
            return [str(url) for (url,) in self._run("watch/waiting", most=MOST_TRIES, number=number or -1)]

    def settle(self, job: str, ends: Iterable[ItemEnd]) -> None:
        """Record, durably, what became of items in a job."""
        # A list: an error of where the ends come from is none of this file.
        rows = [{"url": end.url, "captured": end.captured, "tries": end.tries, "job": job} for end in ends]
        with self._translated(), self._connection:
            self._connection.executemany(sql("watch/settle"), rows)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _open(self, path: Path) -> None:
        super().__init__(path, "IMMEDIATE")
        try:
            with self._translated():
                self._ready("watch/schema")
                self._is_filled = bool(self._one("watch/is_filled"))
        except BaseException:
            self.close()
            raise

    def _fill(self, archive: Archive, publication: str) -> None:
        """Add what the publication has captured according to webarc.db."""
        is_there = archive.database.exists()  # without one, each item is new
        urls = database.urls_of(archive.database, publication) if is_there else []
        self.settle("", (ItemEnd(url, captured=True) for url in ("", *urls)))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translated(self._path):
                yield
        except DatabaseDamaged:
            raise DatabaseDamaged(f"{self._path} is damaged; remove it: webarc.db says what is captured") from None


# == a crawl ==========================================================================================================


def fault_of_feed(frontier: Frontier) -> tuple[str, str]:
    """Return the host of the feed, and why the crawl has no items of it; empty where it has them."""
    feed = frontier.feed()
    if feed is None:
        return "", ""
    end = frontier.end_of(feed)
    words = end.note.split(",")
    if end.state == UrlState.FAILED:
        why = f"feed failed: {feed.url}"
    elif end.status == Status.ROBOTS:
        why = f"feed forbidden by robots.txt: {feed.url}"
    elif end.state == UrlState.REFUSED:
        why = f"feed not fetched ({words[0]}): {feed.url}"
    elif Reason.NO_FEED in words:
        why = f"no feed: {feed.url}"
    elif end.state == UrlState.DONE and not end.arc:
        why = f"feed gave {end.status}: {feed.url}"
    elif frontier.get(WATCHED) is None:
        why = f"feed not read: {feed.url}"  # it led to what was asked for as an item
    else:
        why = ""
    return (end.domain if end.state != UrlState.REFUSED else feed.domain), why


def is_wanted(item: FrontierUrl) -> bool:
    """Return whether an item is one that the settings of the crawl take, as far as its URL says."""
    was_found = item.batch > 0 or item.status in NOT_TRIED or item.status == Status.ROBOTS
    return item.state != UrlState.REFUSED or was_found or _has_no_room(item)


def _has_no_room(item: FrontierUrl) -> bool:
    """Return whether an item was not asked for since the crawl had as many hosts or queries as it may."""
    return item.state == UrlState.REFUSED and item.batch == 0 and not _LATER.isdisjoint(item.note.split(","))


def ends_of(frontier: Frontier, is_published: Callable[[str], bool]) -> Iterator[ItemEnd]:
    """Yield what became of the items that a crawl asked for, with the pages to which they redirect."""
    for item in filter(is_wanted, frontier.seeds()):
        end = frontier.end_of(item)
        captured = end.result in _STORED and not is_error_page(end.status) and is_published(end.domain)
        yield ItemEnd(item.url, captured, 0 if captured or _has_no_room(item) else _tries_of(end))
        if captured and end.id != item.id:
            yield ItemEnd(end.url, captured=True)


def _tries_of(end: FrontierUrl) -> int:
    """Return what a crawl counts for that did not capture an item: all that there are where a setting decided."""
    words = end.note.split(",")
    if end.status in NOT_TRIED or Reason.OVER_SIZE in words:
        return 0
    return MOST_TRIES if end.result == Result.FILTERED or _FINAL.intersection(words) else 1


def unlinked_in(feed: FrontierUrl) -> int:
    """Return how many items of a feed have no page, as its annotations say."""
    counts = [word.removeprefix(Figure.UNLINKED) for word in feed.note.split(",") if word.startswith(Figure.UNLINKED)]
    return int(counts[-1]) if counts and counts[-1].isdecimal() else 0


def account_of(archive: Archive, publication: Publication, frontier: Frontier) -> dict[str, Any]:
    """Return what a report says of the feed of a crawl, once its items are settled."""
    feed = frontier.feed()
    listed = frontier.get(WATCHED) or WatchedFeed(items=0, new=0)
    captured = 0
    waiting: list[str] = []
    given_up: list[str] = []
    with WatchedItems(archive, publication.name, reads=True) as items:
        for item in filter(is_wanted, frontier.seeds()):
            end = items.find(item.url)
            if end.captured:
                captured += 1
            else:
                (given_up if end.is_settled else waiting).append(item.url)
    return {
        "feed": publication.watch,
        **listed,
        "again": frontier.get(WATCH_BEGUN) or 0,
        "captured": captured,
        "waiting": len(waiting),
        "given_up": len(given_up),
        "unlinked": 0 if feed is None else unlinked_in(frontier.end_of(feed)),
        "not_captured": [*given_up, *waiting][:_MOST_NAMED],
    }


def is_idle(publication: Publication, frontier: Frontier) -> bool:
    """Return whether a crawl of a feed had nothing to ask for but the feed."""
    return bool(publication.watch) and next(filter(is_wanted, frontier.seeds()), None) is None
