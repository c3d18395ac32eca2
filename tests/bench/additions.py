"""What an addition costs when a tool adds a file to each ARC of one folder, however large the folder is.

The journal and its commits, at the pace of a mount's commit thread, without the mount: time of a confirmed addition,
commits included, and bytes that git got for it.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.archives import DOMAIN, make_archive, publish_many, store_of
from webarcfs.archive.additions import AddFile, Author, Place, blob_id
from webarcfs.archive.committing import commit_additions
from webarcfs.archive.directory import Archive
from webarcfs.archive.journal import Body, Journal
from webarcfs.archive.locks import Turnstile
from webarcfs.archive.model import format_time
from webarcfs.archive.pace import Cost, next_commit

SIZES = (100, 1_000, 10_000, 60_000)
#: Additions that each size is measured with at least: the small folders are gone through several times.
AT_LEAST = 2_000
_AUTHOR = Author("bench", "bench@localhost")


@dataclass(frozen=True, slots=True)
class Result:
    """Per addition: seconds until it was confirmed, seconds of all work, bytes written to git."""

    confirm: float
    seconds: float
    written: float
    commits: int


def additions(sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each size, and print it with its ratio to the smallest."""
    print("\nadditions: one file to each ARC of one folder, per addition, amortised over the run")
    print(f"{'ARCs':>8} {'confirm ms':>11} {'all ms':>8} {'git bytes':>10} {'commits':>8}   time, bytes / smallest")
    first: Result | None = None
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            result = measure(make_archive(Path(folder)), size)
        first = first or result
        print(
            f"{size:8} {result.confirm * 1e3:11.3f} {result.seconds * 1e3:8.3f} {result.written:10.0f} "
            f"{result.commits:8}   {result.seconds / first.seconds:.2f}, {result.written / first.written:.2f}",
            flush=True,
        )


def measure(archive: Archive, size: int) -> Result:
    """Add files to `size` ARCs of one folder."""
    tag = publish_many(archive, ((f"pages/{n}.html", b"page %d" % n) for n in range(size)))
    journal, places = (
        Journal.open(archive),
        [Place(DOMAIN, f"pages/{n}.html", format_time(tag.crawl_time)) for n in range(size)],
    )
    rounds = max(1, AT_LEAST // size)
    before = _bytes(archive)
    committer = _Committer(archive, journal)
    committer.start()
    begun = time.monotonic()
    confirmed = 0.0
    for turn in range(rounds):
        started = time.monotonic()
        for number, place in enumerate(places):
            data = b"%d words, and %d more" % (number, turn)
            with Turnstile(archive.lock(DOMAIN)).shared():
                file = AddFile(place, f"words-{turn}.txt", blob_id(data), len(data), _AUTHOR, int(time.time()))
                journal.confirm(file, Body(len(data), data))
            committer.added()
        confirmed += time.monotonic() - started
        committer.drain()
    committer.finish()
    took = time.monotonic() - begun
    count = rounds * size
    journal.close()
    found = sum(
        len(each.message.all("Added")) for each in store_of(archive).history(store_of(archive).ref("refs/heads/main"))
    )
    assert found == count, (found, count)
    return Result(confirmed / count, took / count, (_bytes(archive) - before) / count, committer.commits)


class _Committer(threading.Thread):
    """Commits as a mount's thread does, at an interval of one second."""

    def __init__(self, archive: Archive, journal: Journal) -> None:
        super().__init__()
        self._archive, self._journal = archive, journal
        self._changed = threading.Condition()
        self._waiting, self._oldest, self._done, self._draining = 0, 0.0, False, False
        self.commits = 0

    def added(self) -> None:
        """One more."""
        with self._changed:
            self._oldest = self._oldest if self._waiting else time.monotonic()
            self._waiting += 1

    def drain(self) -> None:
        """Commit what there is now: the end of a run of the tool."""
        with self._changed:
            self._draining = True
            self._changed.notify()
            self._changed.wait_for(lambda: not self._draining)

    def finish(self) -> None:
        """End."""
        with self._changed:
            self._done = True
            self._changed.notify()
        self.join()

    def run(self) -> None:
        """The thread."""
        cost, ended = Cost(), 0.0
        while True:
            with self._changed:
                due = next_commit(1.0, cost, ended, self._oldest, self._waiting) if self._waiting else float("inf")
                if not (self._done or self._draining) and time.monotonic() < due:
                    self._changed.wait(0.1)
                    continue
                done, draining, self._waiting = self._done, self._draining, 0
            committed = commit_additions(self._archive, DOMAIN)
            self.commits += len(committed.commits)
            self._journal.release(committed)
            cost, ended = committed.cost, time.monotonic()
            if draining:
                with self._changed:
                    self._draining = False
                    self._changed.notify()
            if done:
                return


def _bytes(archive: Archive) -> int:
    """Bytes of all files of the domain's repository."""
    return sum(path.stat().st_size for path in archive.repository(DOMAIN).rglob("*") if path.is_file())
