"""`python -m tests.soak.mount [--minutes N]`: readers, writers, crawls and repacks at the same time, then what is left.

What must hold: every body that is read is one that was published for that page; every file whose close succeeded is
there, whole; at the end the mount's process has no more descriptors and threads than when it had warmed up, no more
memory but for a bound, nothing deleted open, and after unmounting the journal is empty.
"""

from __future__ import annotations

import argparse
import errno
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.mount.crawler import publish
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.mount.adapters.libfuse3.operations import THREADS
from webarcfs.vfs import content

PAGES = 60
BODY = re.compile(rb"(\d+) (\d+) x*")
#: What a writer may be told while crawls replace the ARCs that it writes into.
FAIR = {errno.ESTALE, errno.ENOENT, errno.EPERM}
#: Address space of the mount, from which it takes the bounds of its caches: those of a large machine's memory are not
#: full after ten minutes, and what fills them looks like a leak.
SPACE = 2 << 30
#: MiB by which the process may have grown since it had warmed up: caches fill up to their bounds (64 MiB of bodies, 16
#: of what was superseded, a part of SPACE for all that hangs on inodes). Mapped packs do not count: the kernel's cache.
GROWTH = 96 + (SPACE // content.PART >> 20)


@dataclass
class Findings:
    """What the threads found, and what they wrote."""

    wrong: list[str] = field(default_factory=list)
    written: dict[str, bytes] = field(default_factory=dict)
    reads: int = 0
    refused: int = 0


@dataclass(frozen=True)
class State:
    """What a process holds."""

    descriptors: int
    threads: int
    memory: int
    deleted: int


class Soak:
    """One run."""

    def __init__(self, archive: Archive, mounted: Mounted) -> None:
        self.archive = archive
        self.mounted = mounted
        self.found = Findings()
        self.end = threading.Event()

    def run(self, seconds: float) -> list[str]:
        """All of it at the same time; what was wrong."""
        jobs = [self.read, self.read, self.walk, self.write, self.repack]
        threads = [threading.Thread(target=self._repeat, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            time.sleep(min(seconds / 3, 60))
            warm = state_of(self.mounted)
            self.end.wait(seconds - min(seconds / 3, 60))
        finally:
            self.end.set()
            for thread in threads:
                thread.join(PATIENCE)
        return [*self.found.wrong, *self._lost(), *self._left(warm)]

    def _repeat(self, job: Callable[[random.Random], None]) -> None:
        chance = random.Random(job.__name__)
        while not self.end.is_set():
            try:
                job(chance)
            except Exception as error:
                self.found.wrong.append(f"{job.__name__}: {type(error).__name__}: {error}")

    # -- what goes on ----------------------------------------------------------------------------------------------

    def read(self, chance: random.Random) -> None:
        """One page, which must be a body of that page."""
        page = chance.randrange(PAGES)
        try:
            body = (self.mounted / f"{DOMAIN}/p{page}/data").read_bytes()
        except FileNotFoundError:  # between a name and what it stands for, a crawl may replace it
            return
        match = BODY.fullmatch(body)
        if match is None or int(match[1]) != page:
            self.found.wrong.append(f"p{page} reads as {body[:40]!r}")
        self.found.reads += 1

    def walk(self, _chance: random.Random) -> None:
        """All of it."""
        run("grep", "-r", "nothing at all", self.mounted / DOMAIN)
        self.end.wait(0.5)

    def write(self, chance: random.Random) -> None:
        """A file beside a page; it is kept if close says so, and if the page stays what it is."""
        name = f"p{PAGES + chance.randrange(PAGES)}/note-{chance.getrandbits(64):x}.txt"
        body = chance.randbytes(chance.randrange(1, 20_000))
        try:
            with (self.mounted / f"{DOMAIN}/{name}").open("xb") as file:
                file.write(body)
        except OSError as error:
            if error.errno not in FAIR:
                raise
            self.found.refused += 1
            return
        self.found.written[name] = body
        self.end.wait(0.02)

    def repack(self, _chance: random.Random) -> None:
        """All packs are replaced by one."""
        repository = self.archive.repository(DOMAIN)
        subprocess.run(["git", "-C", str(repository), "repack", "-q", "--geometric=2", "-d"], check=True)
        self.end.wait(2)

    # -- what is left ----------------------------------------------------------------------------------------------

    def _lost(self) -> list[str]:
        return [
            f"{name} was confirmed and does not read as it was written"
            for name, body in self.found.written.items()
            if read_or_nothing(self.mounted / f"{DOMAIN}/{name}") != body
        ]

    def _left(self, warm: State) -> list[str]:
        def settled() -> bool:
            now = state_of(self.mounted)
            # Workers are started when there is more to do than ever before.
            few = now.descriptors <= warm.descriptors + 4 and now.threads <= warm.threads + THREADS
            return few and not now.deleted

        wrong = []
        try:
            eventually(settled, PATIENCE)
        except AssertionError:
            wrong.append(f"held when warm: {warm}; now: {state_of(self.mounted)}")
        grown = state_of(self.mounted).memory - warm.memory
        if grown > GROWTH:
            wrong.append(f"the process has grown by {grown} MiB")
        done = run(UMOUNT, self.mounted.point)
        if done.returncode or not self.mounted.ended(PATIENCE):
            wrong.append(f"umount: {done.returncode} {done.stderr}")
        left = [str(path) for path in self.archive.root.joinpath("journal").rglob("*") if path.is_file()]
        return wrong + [f"left in the journal: {each}" for each in left]


def body_of(page: int, number: int) -> bytes:
    """A page's body after a crawl; longer with some, so that sizes change."""
    return b"%d %d " % (page, number) + b"x" * (number * 37 % 5_000)


def read_or_nothing(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def state_of(mounted: Mounted) -> State:
    """What the mount's process holds now.

    Packs count only when they were removed: how many there are is the repository's. Temporary files of large bodies do
    not count as deleted.
    """
    process = Path(f"/proc/{mounted.pid}")
    open_files = list(map(target, (process / "fd").iterdir()))
    mapped = (process / "maps").read_text().splitlines()
    memory = int((process / "status").read_text().partition("RssAnon:")[2].split()[0]) // 1024
    deleted = [each for each in (*open_files, *mapped) if ".pack" in each and each.endswith("(deleted)")]
    held = [each for each in open_files if "/objects/pack/" not in each]
    return State(len(held), len(list((process / "task").iterdir())), memory, len(deleted))


def target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


def soak(seconds: float) -> list[str]:
    """A whole run in a folder of its own; what was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="webarcfs-soak-"))
    folder.chmod(0o755)
    try:
        archive = archives.make_archive(folder)
        archives.publish(archive, pages={f"p{page}": body_of(page, 0) for page in range(2 * PAGES)})
        mounted = Mounted(archive.root, folder / "mnt")
        # A process of its own: it holds the domain's lock, for which a close in this one may wait.
        crawler = subprocess.Popen([sys.executable, "-m", __spec__.name, "--crawl", folder], stdin=subprocess.PIPE)
        try:
            run_of = Soak(archive, mounted)
            wrong = run_of.run(seconds)
        finally:
            crawler.communicate(timeout=PATIENCE)
            mounted.clear()
        if crawler.returncode:
            wrong.append(f"the process that crawls ended with {crawler.returncode}")
        wrong += archives.store_of(archive).check()
        found = run_of.found
        print(
            f"{found.reads} reads, {len(found.written)} files written, {found.refused} refused: "
            f"{len(wrong)} things wrong"
        )
        return wrong
    finally:
        shutil.rmtree(folder)


def crawl(folder: Path) -> None:
    """Publish until stdin is closed: some pages change; those that are written beside are left alone."""
    archive, chance = directory.open_archive(folder / "archive"), random.Random(1)
    number = 0
    while not select.select([sys.stdin], [], [], 0.3)[0]:
        number += 1
        chosen = chance.sample(range(PAGES), 5)
        try:
            publish(archive, {f"p{page}": body_of(page, number).decode() for page in chosen})
        except Damaged as error:
            # A repack removed the empty folder into which libgit2 was about to rename an object; nothing is published.
            if "No such file" not in str(error):
                raise
    print(f"{number} crawls")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.mount", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.crawl:
        crawl(given.crawl)
        return 0
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))  # the mount inherits it
    wrong = soak(60 * given.minutes)
    print("\n".join(wrong[:50]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
