"""Power cuts while tools write and crawls publish: what close confirmed is there afterwards, whole, once, soon in git.

The archive lies on a file system that forgets what was not synced (tests/support/forgetful.py says how). `POWER_CUTS`
says how often.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.test_crash import WRITERS, Confirmed, check_mounted, confirmed, missing_in_git
from tests.crash.writer import ARCS, arc, body
from tests.mount.conftest import folder, pytest_generate_tests
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.forgetful import MODELS, Forgetful, forgetful
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed

__all__ = ["folder", "pytest_generate_tests"]
CUTS = int(os.environ.get("POWER_CUTS", "1"))
pytestmark = [pytest.mark.mount, pytest.mark.timeout(max(1200, CUTS * 120))]


@contextlib.contextmanager
def processes(*commands: list[str | Path]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are gone afterwards."""
    started = [subprocess.Popen([sys.executable, "-m", *map(str, command)]) for command in commands]
    try:
        yield started
    finally:
        for each in started:
            each.kill()
            each.wait()


class Room:
    """An archive on such a disk, and what was confirmed beside it."""

    def __init__(self, folder: Path, model: str, binding: str) -> None:
        self.folder, self.model, self.binding = folder, model, binding
        self.archive = Archive(folder / "disk" / "archive")
        self.manifest, self.published = folder / "manifest", folder / "published"
        self.manifest.touch()
        self.published.touch()
        self.cuts = 0

    def disk(self) -> contextlib.AbstractContextManager[Forgetful]:
        """The disk as the last cut left it."""
        return forgetful(self.folder / "disk", self.folder / "state", self.model)

    def make(self) -> None:
        """A new archive; the disk is unmounted properly."""
        with self.disk() as disk:
            directory.create(self.archive.root)
            archives.publish(self.archive, pages={arc(number): b"page %d" % number for number in range(ARCS)})
            for path in (disk.point, *disk.point.rglob("*")):
                sync(path)
            disk.cut()

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Mounted]:
        """A mount of it."""
        mounted = Mounted(self.archive.root, self.folder / f"mnt{self.cuts}", "-o", f"binding={self.binding}")
        try:
            yield mounted
        finally:
            mounted.clear()

    def write_and_cut(self, chance: random.Random) -> None:
        """Tools write, and crawls publish; at a random moment after each has confirmed something, power is gone."""
        self.cuts += 1
        names = [f"c{self.cuts}-{index}" for index in range(len(WRITERS))]
        with self.disk() as disk, self.mounted() as mounted:
            self.check(mounted)
            tools = [
                ["tests.crash.writer", kind, mounted / DOMAIN, self.manifest, name]
                for kind, name in zip(WRITERS, names, strict=True)
            ]
            crawls = self.published.read_text("ascii").count("\n")
            with processes(*tools, ["tests.crash.publisher", self.archive.root, self.published]) as started:
                eventually(
                    lambda: (
                        {name.rpartition("-")[0] for _, _, name, _ in confirmed(self.manifest)} >= set(names)
                        and self.published.read_text("ascii").count("\n") > crawls
                    ),
                    PATIENCE,
                )
                time.sleep(chance.uniform(0, 1.5))  # the moment, not a bound on anything
                disk.cut(chance.choice((b"", chance.randbytes(8))))
                os.kill(mounted.pid, signal.SIGKILL)
                for each in started[:-1]:
                    assert each.wait(PATIENCE) == 0

    def check(self, mounted: Mounted) -> None:
        """Everything confirmed is there, and every crawl that was published."""
        check_mounted(mounted, confirmed(self.manifest))
        feed = (mounted / ".changes").read_text("ascii").split()
        told = self.published.read_text("ascii").split()
        assert set(told) <= set(feed)
        assert len(feed) == len(set(feed))
        for tag in feed[1:][-3:]:
            assert crawled(mounted / f".snapshots/{tag}/crawled.html/data.html") == tag
        newest = max(feed[1:], default="")
        assert crawled(mounted / f"{DOMAIN}/crawled.html/data.html") >= newest

    def check_history(self) -> None:
        """Each file was added by one commit, and git finds no fault."""
        expected = confirmed(self.manifest)
        git = ["git", "-c", "safe.directory=*", "-C", str(self.archive.repository(DOMAIN)), "log", "--format=%B"]
        log = subprocess.run([*git, "main"], capture_output=True, text=True, check=True).stdout
        added = Counter(line.removeprefix("Added: ") for line in log.splitlines() if line.startswith("Added: "))
        for kind, where, name, _ in expected:
            if kind == "file":
                assert added[f"{where}/{name}"] == 1, name
        assert archives.store_of(self.archive).check() == []
        check_added(self.archive)


def crawled(path: Path) -> str:
    """The crawl that a page was published by, which it says."""
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        return ""


def sync(path: Path) -> None:
    """fsync(2) of a file or folder."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def check_added(archive: Archive) -> None:
    """What was in the journal, and nobody was told of, is there whole or not at all."""
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    for number in range(ARCS):
        place = store.find(head.tree, arc(number))
        assert place is not None
        for entry in store.entries(place.oid):
            if entry.name.startswith("c"):
                assert store.read(entry.oid) == body(entry.name, store.size(entry.oid)), entry.name


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.only("libfuse3")
def test_what_close_confirmed_survives_power_cuts(folder: Path, binding: str, model: str) -> None:
    """Files, data nodes and crawls, in several rounds."""
    chance = random.Random(os.environ.get("POWER_SEED", model))
    room = Room(folder, model, binding)
    room.make()
    for _ in range(CUTS):
        room.write_and_cut(chance)
    with room.disk():
        with room.mounted() as mounted:
            room.check(mounted)
            expected: list[Confirmed] = confirmed(room.manifest)
            eventually(lambda: not missing_in_git(room.archive, expected), PATIENCE)
            check_mounted(mounted, expected)
            assert run(UMOUNT, mounted.point).returncode == 0
        room.check_history()
        assert [path for path in room.archive.journal.iterdir() if path.suffix == ".log"] == []
        assert set(Feed(room.archive.changes).lines()) >= set(room.published.read_text("ascii").split())
