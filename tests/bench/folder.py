"""Whether a document costs more to publish where many others lie in its folder: a wiki, a forum, `index.php?id=…`.

An import of made-up pages, all in one folder or two hundred in each: processor time of publishing, git's included, and
of all for a document; the most memory of all processes.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.importing.import_sources import sources_of
from agent.jobs import importjob
from agent.pipeline.publish import Publisher
from tests.bench.crawl import own_archive
from tests.bench.measure import cost
from tests.support import warcs
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication

SIZES = (10_000, 100_000, 300_000)
#: Documents in a folder of those that are compared with.
_FEW = 200
_URL = "http://www.example.org/"


def folder(sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each size, in one folder and in small ones, and print its ratio to the first."""
    print("\nan import of many pages, processor time for a document   aim: publishing within a factor of two")
    first: dict[str, float] | None = None
    for pages in sizes:
        for per_folder in (_FEW, pages):
            found = _measure(pages, per_folder)
            first = first or found
            print(
                f"  {pages:7,} pages, {per_folder:7,} in a folder   publish {found['publish'] * 1e6:6.1f} µs "
                f"(× {found['publish'] / first['publish']:.2f})   all {found['all'] * 1e6:6.0f} µs "
                f"(× {found['all'] / first['all']:.2f})   "
                f"{found['own']:4.0f} MiB, {found['memory']:4.0f} with mapped files",
                flush=True,
            )


def _measure(pages: int, per_folder: int) -> dict[str, float]:
    with own_archive() as archive, tempfile.TemporaryDirectory() as scratch:
        file, result = Path(scratch) / "pages.warc", Path(scratch) / "result.json"
        _write(file, pages, per_folder)
        done = cost([sys.executable, "-m", __name__, str(archive.root), str(file), str(result)])
        if done.exit_code:
            raise SystemExit(f"the import ended with {done.exit_code}")
        publish = json.loads(result.read_text("utf-8"))
    return {
        "publish": publish / pages,
        "all": done.processor / pages,
        "own": done.anonymous,
        "memory": done.together,
    }


def _write(path: Path, pages: int, per_folder: int) -> None:
    with path.open("wb") as file:
        for number in range(pages):
            url = f"{_URL}{number // per_folder}/index.php?id={number}"
            body = b"<html><title>Page %d</title><p>What page %d says</html>" % (number, number)
            file.write(warcs.response(url, body))


def _counted(work: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """`work`, its processor time in this process added up."""

    def counted(*arguments: Any) -> Any:
        begun = time.process_time()
        try:
            return work(*arguments)
        finally:
            spent.append(time.process_time() - begun)

    return counted


def main(archive: str, file: str, result: str) -> None:
    """Import a file, and write to another how many seconds of the processor publishing took."""
    spent: list[float] = []
    for name in ("_store", "finish"):
        setattr(Publisher, name, _counted(getattr(Publisher, name), spent))
    sources = sources_of([Path(file)])
    importjob.run(
        Archive(Path(archive)),
        sources,
        Publication(name="bench", urls=()),
        None,
        importjob.ImportRequest(complete=True),
    )
    git = resource.getrusage(resource.RUSAGE_CHILDREN)  # nobody else begins a process
    Path(result).write_text(json.dumps(sum(spent) + git.ru_utime + git.ru_stime), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
