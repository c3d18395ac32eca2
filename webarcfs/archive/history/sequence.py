"""One counter for the archive's publications, and the feed in its order, after any crash.

A publication takes the next number, moves its refs, and adds its line to the feed, all under one lock. Number and tag
are written down first; so the next publication after a crash can find out whether the refs moved, and adds the missing
line before its own.

The feed is the file `changes`, one commitTag a line, in the order of publication; append only, derived from git
(/Cl-5/). A reader that follows it byte by byte sees only complete lines appear at its end. The next append removes a
line that a crash cut off, which no reader can have taken for a line.
"""

from __future__ import annotations

import contextlib
import filecmp
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, MAIN, Commit, RefUpdate, Repository
from webarcfs.archive.model.errors import Busy, Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import locks

# == feed =============================================================================================================


_LONGEST_LINE = 1024


class Feed:
    """The file `changes` of an archive. Only the holder of the sequence lock may append."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their newline, oldest first; an unfinished line is left out."""
        try:
            with self._path.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
                yield from (line.removesuffix("\n") for line in file if line.endswith("\n"))
        except FileNotFoundError:
            return

    def last(self) -> str | None:
        """Return the last complete line, or None."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 2 * _LONGEST_LINE))
                whole = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return None
        return whole[-1].decode("utf-8", "replace") if whole else None

    def append(self, tag: CommitTag) -> None:
        """Add a line, and return when it is on disk."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            end = _end_of_whole_lines(fd)
            os.ftruncate(fd, end)
            os.pwrite(fd, f"{tag}\n".encode(), end)
            os.fsync(fd)
        finally:
            os.close(fd)

    def rewrite(self, tags: Iterable[CommitTag]) -> int:
        """Replace the file in one step, if it differs; return its number of lines."""
        scratch = self._path.with_name(f".{self._path.name}.new")
        count = 0
        with scratch.open("w", encoding="utf-8") as file:
            for tag in tags:
                file.write(f"{tag}\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists() and filecmp.cmp(scratch, self._path, shallow=False):
            scratch.unlink()
        else:
            scratch.rename(self._path)
        return count


def _end_of_whole_lines(fd: int) -> int:
    size = os.fstat(fd).st_size
    start = max(0, size - _LONGEST_LINE)
    return start + os.pread(fd, size - start, start).rfind(b"\n") + 1


# == sequence =========================================================================================================


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublicationSlot:
    """A publication's hold on the counter: its number, and the feed that it will add to."""

    number: int
    feed: Feed
    tag: CommitTag

    def publish(self) -> None:
        """Add the line: the refs have moved."""
        self.feed.append(self.tag)


@contextmanager
def publication_slot(archive: Archive, tag: CommitTag) -> Iterator[PublicationSlot]:
    """Take the next number for `tag`, exclusively. The caller moves the refs, then calls `publish`."""
    feed = Feed(archive.changes)
    with locks.exclusive(archive.sequence) as fd:
        last = _settle(archive, feed, fd)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{last + 1} {tag}\n".encode(), 0)
        os.fsync(fd)
        yield PublicationSlot(last + 1, feed, tag)


def last_number(archive: Archive) -> int:
    """Return the number of the newest publication; 0 before the first."""
    with locks.exclusive(archive.sequence) as fd:
        return _settle(archive, Feed(archive.changes), fd)


@contextmanager
def hold(archive: Archive) -> Iterator[None]:
    """Exclude all publications, to rewrite data derived from their order."""
    with locks.exclusive(archive.sequence):
        yield


def mend(archive: Archive) -> None:
    """Repair the last publication after a power cut: some of its refs may have moved, and others not.

    If main or the crawl's ref has the publication, the other follows; then the feed gets its line. Called when a mount
    or an agent starts; a damaged repository raises nothing.
    """
    try:
        begun = _begun(archive.sequence.read_text("utf-8", "replace"))
    except OSError:
        return
    if begun is None or not archive.repository(begun[1].domain).is_dir() or not os.access(archive.sequence, os.W_OK):
        return
    number, tag = begun
    with locks.Turnstile(archive.lock(tag.domain)).exclusive(), locks.exclusive(archive.sequence) as fd:
        with contextlib.suppress(Damaged, Busy):
            store = Repository(archive.repository(tag.domain))
            updates = _missing(store, tag, number)
            if updates:
                _log.warning("%s: the publication of %s was interrupted, and is completed", archive.root, tag)
                store.update_refs(updates)
        _settle(archive, Feed(archive.changes), fd)


def _missing(store: Repository, tag: CommitTag, number: int) -> list[RefUpdate]:
    """Return the moves that the publication `number` still needs."""
    head, target = store.head(), store.ref(tag.ref)
    last = target or (head.oid if head else None)
    crawl = crawl_commit(store, last) if last is not None else None
    if crawl is None or (crawl.message.tag, crawl.message.sequence) != (tag, number):
        return []
    updates = []
    parent = crawl.parents[0] if crawl.parents else None
    if target is None:
        updates.append(RefUpdate(tag.ref, last, None))
    elif parent == (head.oid if head else None):
        # An import of older captures follows another snapshot, and does not move main.
        updates.append(RefUpdate(MAIN, target, parent))
    for ref, named in ((tag.seen_ref, crawl.message.seen), (tag.met_ref, crawl.message.met)):
        now = store.ref(ref)
        if named and named != now:
            updates.append(RefUpdate(ref, named, now))
    return updates


def crawl_commit(store: Repository, ref_target: str) -> Commit | None:
    """Return the crawl's own commit below a ref of `refs/crawls/`, which also has the additions made since."""
    return next((commit for commit in store.history(ref_target) if commit.message.is_crawl), None)


def _settle(archive: Archive, feed: Feed, fd: int) -> int:
    """Return the last used number; add the feed's line for a publication that moved its refs and died before it."""
    begun = _begun(os.pread(fd, 4096, 0).decode("utf-8", "replace"))
    if begun is None:
        return _highest(archive)
    number, tag = begun
    if feed.last() != str(tag) and _was_published(archive, tag, number):
        feed.append(tag)
    return number


def _begun(state: str) -> tuple[int, CommitTag] | None:
    """Return the number and tag that were last written down; None if they cannot be read."""
    number, _, tag = state.rstrip("\n").partition(" ")
    if not state.endswith("\n") or not number.isdecimal():
        return None
    try:
        return int(number), CommitTag.parse(tag)
    except Damaged:
        return None


def _was_published(archive: Archive, tag: CommitTag, number: int) -> bool:
    try:
        store = Repository(archive.repository(tag.domain))
        target = store.ref(tag.ref)
        commit = crawl_commit(store, target) if target else None
    except (NotFound, Damaged):
        return False  # one damaged repository must not stop all others; `verify` reports it
    return commit is not None and commit.message.sequence == number


def _highest(archive: Archive) -> int:
    """Return the highest number in any repository: for an archive whose counter was lost."""
    highest = 0
    for domain in archive.domains():
        try:
            store = Repository(archive.repository(domain))
            commits = (crawl_commit(store, target) for target in store.refs(CRAWLS).values())
            highest = max([highest, *(commit.message.sequence for commit in commits if commit is not None)])
        except Damaged:
            continue  # one damaged repository must not stop all others; `verify` reports it
    return highest
