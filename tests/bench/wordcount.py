"""How soon examples/wordcount.py has counted a site that a crawl publishes while it runs (/Cl-12/)."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.archives import DOMAIN, make_archive, publish_many
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.realsites import PYTHON

_EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount.py"


#: Pages that are published at once, to see how many are counted within the aim; the last is all of the site.
SIZES = (100, 200, 300, 400, 10_000)


def wordcount(rounds: int, sizes: tuple[int, ...] = SIZES[-1:]) -> None:
    """Publish pages of the demo's site at once, and wait for what the example leaves beside each."""
    every = {path: (PYTHON.root / path).read_bytes() for path in PYTHON.files() if path.endswith(".html")}
    print("\nwordcount, started before a crawl publishes pages   aim: all are counted within 2 s")
    for number in sizes:
        step = max(1, len(every) // number)
        pages = dict(list(every.items())[::step][:number])
        alone, size = _counting_alone(pages), sum(map(len, pages.values())) >> 20
        print(
            f" {len(pages)} pages of {size} MiB; to count the words alone, pages in memory and nothing stored, takes "
            f"{_counting_by_all(pages):.2f} s with all processors at once, one of them {alone:.2f} s"
        )
        for _ in range(rounds):
            first, last, example, mount = _round(pages)
            spent = f"processors: {example:.2f} s for the example, {mount:.2f} s for the mount"
            print(f"  the first after {first:.2f} s, the last after {last:.2f} s; {spent}", flush=True)


def _counting_alone(pages: dict[str, bytes]) -> float:
    """Seconds of the processor for what no program can do without: parse the pages, count, and write the lists."""
    example = runpy.run_path(str(_EXAMPLE))
    begun = time.process_time()
    for body in pages.values():
        example["listed"](example["count"](body))
    return time.process_time() - begun


def _counting_by_all(pages: dict[str, bytes]) -> float:
    """Seconds by the clock for the same with a process for each processor: no program with this parser takes less."""
    queue, context = list(pages.values()), multiprocessing.get_context("fork")
    example = runpy.run_path(str(_EXAMPLE))
    following, start = context.Value("i", 0), context.Barrier((os.cpu_count() or 1) + 1)

    def work() -> None:
        start.wait()
        while True:
            with following.get_lock():
                number = following.value
                following.value += 1
            if number >= len(queue):
                return
            example["listed"](example["count"](queue[number]))

    processes = [context.Process(target=work) for _ in range(os.cpu_count() or 1)]
    for process in processes:
        process.start()
    start.wait()
    begun = time.monotonic()
    for process in processes:
        process.join()
    return time.monotonic() - begun


def _round(pages: dict[str, bytes]) -> tuple[float, float, float, float]:
    """Seconds from the publication to the first page's result and to the last one's, as the example tells them; and
    those that processors were at it, for the example with its start, and for the mount with what it commits."""
    with tempfile.TemporaryDirectory() as folder:
        archive = make_archive(Path(folder))
        point = Path(folder) / "mnt"
        mounted = Mounted(archive.root, point)
        try:
            command = [sys.executable, str(_EXAMPLE), str(point)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                assert process.stdout.readline().startswith("counted")
                publish_many(archive, pages.items())
                begun = time.monotonic()
                first = _wait(point / DOMAIN / next(iter(pages)) / "wordcount.txt", begun)
                told = process.stdout.readline()
                last = time.monotonic() - begun
                assert f" {len(pages)} of {len(pages)} " in told, told
                process.terminate()
                _, _, usage = os.wait4(process.pid, 0)
                process.returncode = 0
            mount = _processor(mounted.pid)
            run(UMOUNT, point)
        finally:
            mounted.clear()
    return first, last, usage.ru_utime + usage.ru_stime, mount


def _processor(pid: int) -> float:
    """User and system seconds of a process and of its ended children (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _wait(file: Path, begun: float) -> float:
    while not file.exists():
        time.sleep(0.01)
    return time.monotonic() - begun
