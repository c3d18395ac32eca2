"""Benchmarks of reading: mounts against plain files of the same tree, in the same run, cold and warm.

`python -m tests.bench.mount [--arcs N] [--big MIB] [--rounds N] [PLACE …]`; cold needs root (it drops the page cache).
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.bench.places import PLACES, Place, Stage
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.compiled import runs_compiled
from tests.support.mounts import Mounted
from tests.support.waiting import eventually
from webarcfs.mount.adapters.requests import STATS

BIG = "big.example"
_FOLDER = 100
_READERS = 64
_PIECES = 50
_DROP = Path("/proc/sys/vm/drop_caches")

Job = Callable[[Path], object]


def _shell(command: str) -> Job:
    return lambda root: subprocess.run(["sh", "-c", command], cwd=root, check=False, stdout=subprocess.DEVNULL)


def _walk(buffering: int) -> Job:
    def walk(root: Path) -> None:
        for folder, _, names in os.walk(f"{root}/{DOMAIN}/."):
            for name in names:
                # Not pathlib, which would be half of what is measured.
                with open(f"{folder}/{name}", "rb", buffering) as file:  # noqa: PTH123
                    file.read()

    return walk


def _readers(root: Path) -> None:
    """64 readers at a time, each of pieces of the big file and of pages, the same ones in each run."""
    big = root / BIG / "big.bin/data.bin"
    folders = sorted(os.listdir(root / DOMAIN))  # noqa: PTH208

    def read(number: int) -> None:
        chosen = random.Random(number)
        descriptor = os.open(big, os.O_RDONLY)
        size = os.fstat(descriptor).st_size
        for _ in range(_PIECES):
            os.pread(descriptor, 4096, chosen.randrange(size))
            folder = chosen.choice(folders)
            page = f"p{int(folder[1:]) * _FOLDER + chosen.randrange(10)}.html"
            with open(f"{root}/{DOMAIN}/{folder}/{page}/data.html", "rb", 0) as file:  # noqa: PTH123 # see _walk
                file.read()
        os.close(descriptor)

    with ThreadPoolExecutor(_READERS) as pool:
        list(pool.map(read, range(_READERS)))


# With `/.`, so that a link to the domain is followed.
ROWS: Mapping[str, Job] = {
    "find -type f": _shell(f"find {DOMAIN}/. -type f"),
    "find -size": _shell(f"find {DOMAIN}/. -size +1k"),
    "grep -r": _shell(f"grep -r no_such_word {DOMAIN}/."),
    "walk + read": _walk(0),
    # With its buffer, Python asks each file whether it is a terminal, and the kernel knows no answer by heart.
    "walk + isatty": _walk(-1),
    "tar": _shell(f"tar -cf - {DOMAIN}/. | cat > /dev/null"),
    "big file": _shell(f"dd if={BIG}/big.bin/data.bin of=/dev/null bs=1M status=none"),
    "64 readers": _readers,
}


def reading(arcs: int = 4_000, big: int = 256, rounds: int = 3, places: Collection[str] = tuple(PLACES)) -> None:
    """Measure and print: seconds for plain files, and the ratio of each other place to them, cold / warm."""
    others = [name for name in places if name != "plain"]
    with _folder() as folder:
        stage = _prepare(folder, arcs, big)
        print(f"{arcs} ARCs and a file of {big} MiB; plain files in seconds, the rest as multiples of them; cold/warm")
        print(f"  {'':14}{'plain files':>16}" + "".join(f"{name:>14}" for name in others))
        for row, job in ROWS.items():
            base = _measure(job, PLACES["plain"], stage, rounds)
            print(f"  {row:14}{base[0]:>9.3f}/{base[1]:.3f} ", end="", flush=True)
            for name in others:
                found = _measure(job, PLACES[name], stage, rounds)
                print(f"{f'{found[0] / base[0]:.2f}/{found[1] / base[1]:.2f}':>14}", end="", flush=True)
            print()
        print("  aims, warm: ro 1.5; rw 1.5 for find and the big file, else 5; cold: 4; snapshots: 1.2 times rw")
        _asked(stage)
        _after_a_crawl(stage, arcs, rounds)


def _measure(job: Job, place: Place, stage: Stage, rounds: int) -> tuple[float, float]:
    """Seconds, cold and warm: the medians of some runs."""
    cold, warm = [], []
    for _ in range(rounds):
        _drop_caches()
        with place(stage) as root:
            cold.append(_seconds(job, root))
            warm += [_seconds(job, root) for _ in range(3)]
    return statistics.median(cold), statistics.median(warm)


def _asked(stage: Stage) -> None:
    """The requests that reach user space: with the first run of a job, the second, the third.

    Writable, the kernel asks each inode once for its atime, which it forgets whenever it reads from us.
    """
    for options in ("ro", "rw"):
        mounted = Mounted(stage.archive.root, stage.folder / "mnt", "-o", f"{options},stats,binding=libfuse3")
        try:
            for row in ("find -size", "grep -r"):
                counts = [_requests(mounted)]
                for _ in range(3):
                    ROWS[row](mounted.point)
                    counts.append(_requests(mounted))
                asked = (f"{after - before - 1}" for before, after in itertools.pairwise(counts))  # but for this one
                print(f"  {options}: requests of {row}, first, second and third: {', '.join(asked)}", flush=True)
        finally:
            mounted.clear()
    print("  aim: under 100 for a second grep -r on ro")


def _requests(mounted: Mounted) -> int:
    words = os.getxattr(mounted.point, STATS).decode().split()
    return sum(int(word.partition("=")[2]) for word in words)


def _after_a_crawl(stage: Stage, arcs: int, rounds: int) -> None:
    """What a walk costs after a crawl that changed one ARC in a hundred, against a cold one.

    And what a warm walk of plain files costs against that: no file system's warm walk can be expected to cost less.
    """
    edition = itertools.count()
    for name in ("ro", "rw"):
        for row in ("find -size", "walk + read"):
            cold, warm, after, files = [], [], [], []
            for _ in range(rounds):
                with PLACES["plain"](stage) as root:
                    files.append([_seconds(ROWS[row], root) for _ in range(3)][-1])
                _drop_caches()
                with PLACES[name](stage) as root:
                    cold.append(_seconds(ROWS[row], root))
                    warm.append([_seconds(ROWS[row], root) for _ in range(2)][-1])
                    _publish(stage, root, arcs, next(edition))
                    after.append(_seconds(ROWS[row], root))
            first, then = statistics.median(cold), statistics.median(after)
            print(
                f"  {name}: {row} after a crawl that changed 1 %: {then / first:.1%} of a cold one, "
                f"where without one it is {statistics.median(warm) / first:.1%}, and that of plain files "
                f"{statistics.median(files) / first:.1%} (aim: 10 %)",
                flush=True,
            )


def _publish(stage: Stage, root: Path, arcs: int, edition: int) -> None:
    """Change one ARC in a hundred, and wait until the mount shows it."""
    changed = (f"d{each // _FOLDER:03}/p{each}.html" for each in range(edition % 100, arcs, 100))
    tag = archives.publish(stage.archive, pages=dict.fromkeys(changed, b"changed %d" % edition))
    eventually(lambda: str(tag) in (root / ".changes").read_text(), 60)


def _seconds(job: Job, root: Path) -> float:
    begun = time.monotonic()
    job(root)
    return time.monotonic() - begun


def _drop_caches() -> None:
    os.sync()
    if os.geteuid() == 0:
        _DROP.write_text("3")


def _prepare(folder: Path, arcs: int, big: int) -> Stage:
    """An archive, and the same tree as plain files."""
    archive = archives.make_archive(folder)
    bodies = random.Random(1)
    words = [f"word{number}" for number in range(2_000)]
    archives.publish_many(
        archive,
        (
            (f"d{number // _FOLDER:03}/p{number}.html", " ".join(bodies.choices(words, k=1_200)).encode())
            for number in range(arcs)
        ),
    )
    archives.publish_many(archive, [("big.bin", bodies.randbytes(1 << 20) * big)], BIG)
    plain = folder / "plain"
    mounted = Mounted(archive.root, folder / "mnt", "-o", "ro")
    try:
        print(f"\nmounts run {'compiled' if runs_compiled(mounted.pid) else 'interpreted'} modules")
        shutil.copytree(mounted.point, plain)
    finally:
        mounted.clear()
    return Stage(archive, plain, folder)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="webarcfs-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.mount", description=__doc__)
    parser.add_argument("places", nargs="*", metavar="PLACE", help=", ".join(PLACES))
    parser.add_argument("--arcs", type=int, default=4_000)
    parser.add_argument("--big", type=int, default=256, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if unknown := set(given.places) - set(PLACES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are: {', '.join(PLACES)}")
    reading(given.arcs, given.big, given.rounds, given.places or tuple(PLACES))


if __name__ == "__main__":
    main()
