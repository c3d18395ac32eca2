"""Benchmarks of reading: mounts against plain files of the same tree, in the same run, cold and warm.

`python -m tests.bench.mount [--arcs N] [--big MIB] [--rounds N] [MOUNT …]`; cold needs root (it drops the page cache).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import Mounted
from webarcfs.archive.directory import Archive

BIG = "big.example"
_FOLDER = 100
_DROP = Path("/proc/sys/vm/drop_caches")

Job = Callable[[Path], object]


def _shell(command: str) -> Job:
    return lambda root: subprocess.run(["sh", "-c", command], cwd=root, check=False, stdout=subprocess.DEVNULL)


def _walk(buffering: int) -> Job:
    def walk(root: Path) -> None:
        for folder, _, names in os.walk(root / DOMAIN):
            for name in names:
                # Not pathlib, which would be half of what is measured.
                with open(f"{folder}/{name}", "rb", buffering) as file:  # noqa: PTH123
                    file.read()

    return walk


ROWS: Mapping[str, Job] = {
    "find -type f": _shell(f"find {DOMAIN} -type f"),
    "find -size": _shell(f"find {DOMAIN} -size +1k"),
    "grep -r": _shell(f"grep -r no_such_word {DOMAIN}"),
    "walk + read": _walk(0),
    # With its buffer, Python asks each file whether it is a terminal, and the kernel knows no answer by heart.
    "walk + isatty": _walk(-1),
    "tar": _shell(f"tar -cf - {DOMAIN} | cat > /dev/null"),
    "big file": _shell(f"dd if={BIG}/big.bin/data.bin of=/dev/null bs=1M status=none"),
}
#: What is measured → options of the mount.
MOUNTS: Mapping[str, str] = {"ro": "ro,binding=libfuse3", "rw": "binding=libfuse3", "fusepy": "binding=fusepy"}


def reading(arcs: int = 4_000, big: int = 256, rounds: int = 3, mounts: Mapping[str, str] = MOUNTS) -> None:
    """Measure and print: seconds for plain files, and the ratio of each mount to them, cold / warm."""
    with _folder() as folder:
        archive, plain = _prepare(folder, arcs, big)
        print(f"\n{arcs} ARCs and a file of {big} MiB; plain files in seconds, mounts as multiples of them; cold/warm")
        print(f"  {'':14}{'plain files':>16}" + "".join(f"{name:>16}" for name in mounts))
        for row, job in ROWS.items():
            base = _measure(job, plain, rounds)
            cells = [
                _against(base, _mounted(job, archive, folder / "mnt", options, rounds)) for options in mounts.values()
            ]
            print(f"  {row:14}{base[0]:>9.3f}/{base[1]:.3f} " + "".join(f"{cell:>16}" for cell in cells), flush=True)
        print("  aims, warm: ro 1.5; rw 1.5 for find and the big file, else 5; cold: 4")


def _against(base: tuple[float, float], found: tuple[float, float]) -> str:
    return f"{found[0] / base[0]:.2f}/{found[1] / base[1]:.2f}"


def _mounted(job: Job, archive: Archive, point: Path, options: str, rounds: int) -> tuple[float, float]:
    def cold() -> float:
        _drop_caches()
        mounted = Mounted(archive.root, point, "-o", options)
        try:
            seconds = _seconds(job, point)
            warm.append(statistics.median(_seconds(job, point) for _ in range(2 * rounds)))
        finally:
            mounted.clear()
        return seconds

    warm: list[float] = []
    return statistics.median(cold() for _ in range(rounds)), statistics.median(warm)


def _measure(job: Job, root: Path, rounds: int) -> tuple[float, float]:
    def cold() -> float:
        _drop_caches()
        return _seconds(job, root)

    first = statistics.median(cold() for _ in range(rounds))
    return first, statistics.median(_seconds(job, root) for _ in range(2 * rounds))


def _seconds(job: Job, root: Path) -> float:
    begun = time.monotonic()
    job(root)
    return time.monotonic() - begun


def _drop_caches() -> None:
    os.sync()
    if os.geteuid() == 0:
        _DROP.write_text("3")


def _prepare(folder: Path, arcs: int, big: int) -> tuple[Archive, Path]:
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
        shutil.copytree(mounted.point, plain)
    finally:
        mounted.clear()
    return archive, plain


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
    parser.add_argument("mounts", nargs="*", choices=[[], *MOUNTS], metavar="MOUNT", help=", ".join(MOUNTS))
    parser.add_argument("--arcs", type=int, default=4_000)
    parser.add_argument("--big", type=int, default=256, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    chosen = {name: MOUNTS[name] for name in given.mounts or MOUNTS}
    reading(given.arcs, given.big, given.rounds, chosen)


if __name__ == "__main__":
    main()
