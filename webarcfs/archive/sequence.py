"""One counter for the archive's publications, and the feed kept in its order, whatever dies when (DESIGN.md section 3).

A publication takes the next number under the lock, moves its refs, and adds its line to the feed, all in one turn. The
number and the tag are written down first; so whoever comes next after a crash can tell whether the refs moved, and adds
the line that is missing before its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from webarcfs.archive import locks
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import Damaged, NotFound
from webarcfs.archive.feed import Feed
from webarcfs.archive.model import CommitTag
from webarcfs.archive.store import CRAWLS, Commit, Store


@dataclass(frozen=True, slots=True)
class Turn:
    """A publication's hold on the counter: its number, and the feed that it will add to."""

    number: int
    feed: Feed
    tag: CommitTag

    def publish(self) -> None:
        """The refs have moved: add the line."""
        self.feed.append(self.tag)


@contextmanager
def turn(archive: Archive, tag: CommitTag) -> Iterator[Turn]:
    """Take the next number for `tag`, alone. The caller moves the refs, then calls `publish`."""
    feed = Feed(archive.changes)
    with locks.exclusive(archive.sequence) as fd:
        last = _settle(archive, feed, fd)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{last + 1} {tag}\n".encode(), 0)
        os.fsync(fd)
        yield Turn(last + 1, feed, tag)


def last_number(archive: Archive) -> int:
    """The number of the newest publication; 0 before the first."""
    with locks.exclusive(archive.sequence) as fd:
        return _settle(archive, Feed(archive.changes), fd)


@contextmanager
def hold(archive: Archive) -> Iterator[None]:
    """Keep all publications out, to rewrite what derives from their order."""
    with locks.exclusive(archive.sequence):
        yield


def crawl_commit(store: Store, ref_target: str) -> Commit | None:
    """The crawl's own commit below a ref of `refs/crawls/`, which also counts the additions made since."""
    return next((commit for commit in store.history(ref_target) if commit.message.is_crawl), None)


def _settle(archive: Archive, feed: Feed, fd: int) -> int:
    """The number that was used last; a publication that moved its refs and died before its line gets it now."""
    state = os.pread(fd, 4096, 0).decode("utf-8", "replace")
    number, _, tag_text = state.rstrip("\n").partition(" ")
    if not state.endswith("\n") or not number.isdecimal():
        return _highest(archive)
    try:
        tag = CommitTag.parse(tag_text)
    except Damaged:
        return _highest(archive)
    if feed.last() != str(tag) and _was_published(archive, tag, int(number)):
        feed.append(tag)
    return int(number)


def _was_published(archive: Archive, tag: CommitTag, number: int) -> bool:
    try:
        store = Store(archive.repository(tag.domain))
        target = store.ref(tag.ref)
        commit = crawl_commit(store, target) if target else None
    except (NotFound, Damaged):
        return False  # one damaged repository must not stop all others; `verify` names it
    return commit is not None and commit.message.sequence == number


def _highest(archive: Archive) -> int:
    """The highest number in any repository: for an archive whose counter was lost."""
    highest = 0
    for domain in archive.domains():
        try:
            store = Store(archive.repository(domain))
            found = (crawl_commit(store, target) for target in store.refs(CRAWLS).values())
            highest = max([highest, *(commit.message.sequence for commit in found if commit is not None)])
        except Damaged:
            continue  # one damaged repository must not stop all others; `verify` names it
    return highest
