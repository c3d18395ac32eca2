"""Benchmarks of the crawl: against wget, the pipeline's stages, publishing against git, memory against size."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.crawl import crawl_log
from agent.jobs import publishing
from tests.bench.measure import Cost, agent, cost
from tests.bench.serve import running
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.database import Database

#: Files a second of the program of 2012, after the download (41 s for 10,270 files, first crawl).
_PROGRAM_OF_2012 = 249
#: The stages that summary.json times, in their order.
STAGES = (*(name for name, _ in publishing.STAGES), "publish", "index")


@dataclass
class Rounds:
    """What several rounds of one measurement gave."""

    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.median:.3g} ({min(self.values):.3g} to {max(self.values):.3g})"


def whole_crawl(pages: int, rounds: int) -> None:
    """A first and an unchanged crawl against a recursive wget of the same site; then what the stages took."""
    first, again, stages, ratio_git, ratio_unchanged = Rounds(), Rounds(), [], Rounds(), Rounds()
    grown, log = [0, 0], Rounds()
    with running("--generate", str(pages)) as port:
        for _ in range(rounds):
            wget = _wget(port)
            with own_archive() as archive:
                crawled = crawl_once(archive, port)
                summary = summary_of(archive)
                first.values.append(crawled.seconds / wget.seconds)
                stages.append(summary["seconds"])
                ratio_git.values.append(summary["seconds"]["publish"] / _git_add(archive))
                before = _sizes(archive)
                again.values.append(crawl_once(archive, port).seconds / wget.seconds)
                grown = [new - old for new, old in zip(_sizes(archive), before, strict=True)]
                log.values.append(_log_ratio(archive))
                ratio_unchanged.values.append(summary_of(archive)["seconds"]["publish"] / summary["seconds"]["publish"])
    print(f"\n{pages} pages, {rounds} rounds; medians (least to most)")
    print(f"  whole crawl / wget -r --warc-file         {first}   aim < 1")
    print(f"  unchanged crawl / wget -r --warc-file     {again}")
    print(f"  publish / git add -A && git commit        {ratio_git}   aim 0.5")
    print(f"  publish, unchanged crawl / first crawl    {ratio_unchanged}   aim 0.05")
    print(f"  an unchanged crawl added                  {grown[0]} git objects, {grown[1]} document versions")
    print(f"  its report / its crawl.log, plain         {log}   aim at most 0.2")
    _print_stages(pages, stages)


def _print_stages(pages: int, rounds: list[dict[str, float]]) -> None:
    print("  after the download, first crawl: documents a second")
    for stage in STAGES:
        values = Rounds([pages / max(each[stage], 1e-6) for each in rounds])
        print(f"    {stage:10} {values.median:12,.0f}")
    whole = Rounds([pages / sum(each[stage] for stage in STAGES) for each in rounds])
    print(f"    {'all':10} {whole}   aim 1,000; the program of 2012: {_PROGRAM_OF_2012}")


def memory(sizes: tuple[int, ...]) -> None:
    """Peak memory of a crawl, its reader and its wgets together, by size of the site."""
    print("\npeak memory of a first crawl, all its processes (the largest)   aim: under 300 MB for 30,000 pages")
    for pages in sizes:
        with running("--generate", str(pages)) as port, own_archive() as archive:
            done = crawl_once(archive, port)
            print(f"  {pages:7,} pages  {done.together:6.0f} MiB ({done.peak:.0f})")


def crawl_once(archive: Archive, port: int) -> Cost:
    """Crawl the site at a port of this machine into an archive."""
    url = f"http://127.0.0.1:{port}/"
    done = cost(agent("crawl", "--archive", str(archive.root), "--wait", "0", url))
    if done.exit_code:
        raise SystemExit(f"the crawl ended with {done.exit_code}")
    return done


def _wget(port: int) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        command = ["wget", "--no-config", "-nv", "-r", "-l", "5", "-p", "--warc-file=site", f"http://127.0.0.1:{port}/"]
        return cost(command, Path(folder))


def _git_add(archive: Archive) -> float:
    """Seconds for `git add -A` and `git commit` of the files of the newest state."""
    domain = next(archive.domains())
    store = Repository(archive.repository(domain))
    head = store.ref("refs/heads/main")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tar = subprocess.Popen(["git", "archive", str(head)], cwd=store.path, stdout=subprocess.PIPE)
        subprocess.run(["tar", "x", "-C", name], stdin=tar.stdout, check=True)
        tar.wait()
        subprocess.run(["git", "init", "-q", name], check=True)
        script = "git add -A && git -c gc.auto=0 -c user.name=a -c user.email=a commit -q -m a"
        return cost(["sh", "-c", script], folder).seconds


def _sizes(archive: Archive) -> tuple[int, int]:
    """How many objects the repository has, and how many versions of documents the database."""
    path = archive.repository(next(archive.domains()))
    command = ["git", "cat-file", "--batch-all-objects", "--batch-check"]
    listed = subprocess.run(command, cwd=path, capture_output=True, check=True)
    with Database(archive.database) as database:
        return listed.stdout.count(b"\n"), database.count_versions()


def _log_ratio(archive: Archive) -> float:
    """The bytes that the newest report takes, for each of its log's as plain text."""
    newest = max(archive.reports.iterdir())
    with crawl_log.reading(newest) as lines:
        plain = sum(len(line.encode()) for line in lines)
    return sum(path.stat().st_size for path in newest.iterdir()) / plain


@contextmanager
def own_archive() -> Iterator[Archive]:
    """An archive that goes afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="webarc-bench-"))
    try:
        cost(agent("init", str(folder / "archive")))
        yield Archive(folder / "archive")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def summary_of(archive: Archive) -> dict[str, Any]:
    """The newest summary.json."""
    newest = max(archive.reports.iterdir())
    found: dict[str, Any] = json.loads((newest / "summary.json").read_text("utf-8"))
    return found
