"""What an addition costs when a tool adds a file to each ARC of one folder, however large the folder is.

Twice: by the journal and its commits alone, at the pace of a mount's commit thread; and through a mount. Amortised over
the run: time of an addition, the commits included, the last of which comes at its end; processor time (the tool's
alone, where a mount does the work); bytes that git got for it.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.archives import DOMAIN, HEAD, make_archive, metadata, publish, store_of
from tests.support.mounts import UMOUNT, Mounted, run
from webarcfs.archive.additions.commit_additions import commit_additions, next_commit
from webarcfs.archive.additions.journal import Journal, StoredBody
from webarcfs.archive.additions.placement import LazyTree
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import MAIN, RefUpdate
from webarcfs.archive.git.writing import Pack
from webarcfs.archive.model.additions import AddFile, ArcVersion, Author, Cost
from webarcfs.archive.model.metadata import COMMITTER, CommitTag, CrawlMessage, format_time
from webarcfs.archive.system.files import blob_id, sync_folder
from webarcfs.archive.system.locks import Turnstile

SIZES = (100, 1_000, 10_000, 60_000)
#: Additions that each size is measured with at least: of small folders there are several.
AT_LEAST = 10_000
_AUTHOR = Author("bench", "bench@localhost")


@dataclass(frozen=True, slots=True)
class Result:
    """Per addition: seconds, seconds of the processor, bytes written to git; and the commits of the run."""

    seconds: float
    processor: float
    written: float
    commits: int


def additions(sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each size, and print it with its ratio to the smallest."""
    for how, work in (("the journal alone", _by_journal), ("through a mount", _by_mount)):
        print(f"\nadditions, {how}: one file to each ARC of one folder, per addition, amortised over the run")
        print(f"{'ARCs':>8} {'ms':>8} {'CPU ms':>8} {'git bytes':>10} {'commits':>8}   time, CPU, bytes / smallest")
        first: Result | None = None
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                result = _measure(make_archive(Path(folder)), size, work)
            first = first or result
            print(
                f"{size:8} {result.seconds * 1e3:8.3f} {result.processor * 1e3:8.3f} {result.written:10.0f} "
                f"{result.commits:8}   {result.seconds / first.seconds:.2f}, "
                f"{result.processor / first.processor:.2f}, {result.written / first.written:.2f}",
                flush=True,
            )


def _measure(archive: Archive, size: int, work: Callable[[Archive, list[ArcVersion]], None]) -> Result:
    tag = publish(archive, DOMAIN, {})
    folders = ["pages", *(f"more/{number}" for number in range(1, AT_LEAST // size))]
    for folder in folders:
        fill(archive, tag, size, folder)
    places = [
        ArcVersion(DOMAIN, f"{each}/{n}.html", format_time(tag.crawl_time)) for each in folders for n in range(size)
    ]
    before = _bytes(archive)
    os.sync()
    begun, processor = time.monotonic(), _processor()
    work(archive, places)
    count, took = len(places), time.monotonic() - begun
    store = store_of(archive)
    found = [len(each.message.all("Added")) for each in store.history(store.ref(MAIN))]
    assert sum(found) == count, (found, count)
    commits = sum(number > 0 for number in found)
    return Result(took / count, (_processor() - processor) / count, (_bytes(archive) - before) / count, commits)


def fill(archive: Archive, tag: CommitTag, size: int, folder: str = "pages") -> None:
    """Put ARCs into one folder of a domain that was crawled, in one pack; in time linear in their number."""
    store = store_of(archive)
    pack, head = Pack(store.path), store.head()
    assert head is not None
    tree = LazyTree(store.read_tree, head.tree)
    for number in range(size):
        arc = f"{folder}/{number}.html"
        document = data_xml.describe(metadata(DOMAIN, arc, tag))
        for name, content in (("data.html", b"page %d" % number), ("data.xml", document), ("headers.http", HEAD)):
            tree.put(f"{arc}/{name}", pack.add("blob", content))
    root = tree.write(lambda _, raw: pack.add("tree", raw))
    with pack.stored():
        commit = store.write_commit(root, [head.oid], str(CrawlMessage(tag, "test", True, 1)), COMMITTER, head.time)
        store.update_refs([RefUpdate(MAIN, commit, head.oid), RefUpdate(tag.ref, commit, head.oid)])


def _by_mount(archive: Archive, places: list[ArcVersion]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        mounted = Mounted(archive.root, Path(folder) / "mnt")
        try:
            for number, place in enumerate(places):
                with open(f"{mounted.point}/{DOMAIN}/{place.arc}/words.txt", "wb") as file:  # noqa: PTH123 # as tools do
                    file.write(_words(number))
            sync_folder(mounted.point / DOMAIN / places[0].arc)
            run(UMOUNT, mounted.point)
        finally:
            mounted.clear()


def _by_journal(archive: Archive, places: list[ArcVersion]) -> None:
    journal = Journal.open(archive)
    committer = _Committer(archive, journal)
    committer.start()
    for number, place in enumerate(places):
        data = _words(number)
        with Turnstile(archive.lock(DOMAIN)).shared():
            file = AddFile(place, "words.txt", blob_id(data), len(data), _AUTHOR, int(time.time()))
            journal.confirm(file, StoredBody(len(data), data))
        committer.added()
    committer.finish()
    journal.close()


def _words(number: int) -> bytes:
    return b"%d words, and no more" % number


class _Committer(threading.Thread):
    """Commits as a mount's thread does, at an interval of one second."""

    def __init__(self, archive: Archive, journal: Journal) -> None:
        super().__init__()
        self._archive, self._journal = archive, journal
        self._changed = threading.Condition()
        self._waiting, self._oldest, self._done = 0, 0.0, False

    def added(self) -> None:
        """One more."""
        with self._changed:
            self._oldest = self._oldest if self._waiting else time.monotonic()
            self._waiting += 1

    def finish(self) -> None:
        """Commit what there is now, and end."""
        with self._changed:
            self._done = True
            self._changed.notify_all()
        self.join()

    def run(self) -> None:
        """The thread."""
        cost, ended = Cost(), 0.0
        while True:
            with self._changed:
                due = next_commit(1.0, cost, ended, self._oldest, self._waiting) if self._waiting else float("inf")
                if not self._done and time.monotonic() < due:
                    self._changed.wait(0.1)
                    continue
                done, self._waiting = self._done, 0
            committed = commit_additions(self._archive, DOMAIN)
            self._journal.release(committed)
            cost, ended = committed.cost, time.monotonic()
            if done:
                return


def _processor() -> float:
    """Seconds of the processor, of this process and of git below it; what a mount uses is not among them."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _bytes(archive: Archive) -> int:
    """Bytes of all files of the domain's repository."""
    return sum(path.stat().st_size for path in archive.repository(DOMAIN).rglob("*") if path.is_file())
