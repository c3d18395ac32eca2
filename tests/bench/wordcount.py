"""How soon examples/wordcount.py has counted a site that a crawl publishes while it runs (/Cl-12/)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.archives import DOMAIN, make_archive, publish_many
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.realsites import PYTHON

_EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount.py"


def wordcount(rounds: int) -> None:
    """Publish all pages of the demo's site at once, and wait for what the example leaves beside each."""
    pages = {path: (PYTHON.root / path).read_bytes() for path in PYTHON.files() if path.endswith(".html")}
    taken = [_round(pages) for _ in range(rounds)]
    size = sum(map(len, pages.values())) >> 20
    print(f"\nwordcount, started before a crawl publishes {len(pages)} pages of {size} MiB   aim: all within 2 s")
    for first, last in taken:
        print(f"  the first after {first:.2f} s, the last after {last:.2f} s")


def _round(pages: dict[str, bytes]) -> tuple[float, float]:
    """Seconds from the publication to the first page's result and to the last one's, as the example tells them."""
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
            run(UMOUNT, point)
        finally:
            mounted.clear()
    return first, last


def _wait(file: Path, begun: float) -> float:
    while not file.exists():
        time.sleep(0.01)
    return time.monotonic() - begun
