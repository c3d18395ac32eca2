"""Processor seconds of all processes beside those of another commit: `python -m tests.bench.beside COMMIT`.

Each round measures three in turn: the other commit, this checkout's last commit, and the other one again. The other
one's two series differ by the noise of this machine alone; only a difference beyond it says anything of the change.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import cost
from tests.bench.serve import running
from tests.support import realsites, warcs
from tests.support.generated import Generated
from tests.support.waiting import eventually

_ROOT = Path(__file__).parents[2]
_ADDITIONS = 400
_APPENDS = 100
#: Pages that nobody here wrote; of these, crawls are measured.
_SITES = {"python": realsites.PYTHON, "postgresql": realsites.POSTGRESQL}
#: The three that are measured in turn.
_BEFORE, _AGAIN, _NOW = "before", "again", "now"


@dataclass(frozen=True, slots=True)
class Checkout:
    """The sources of one commit, with their compiled modules, run by this interpreter and its libraries."""

    root: Path

    def command(self, script: str, *arguments: str) -> list[str]:
        """The command line of one of its console scripts."""
        with (self.root / "pyproject.toml").open("rb") as file:
            module, _, function = tomllib.load(file)["project"]["scripts"][script].partition(":")
        run = f"import sys; from {module} import {function} as main; sys.argv[0] = {script!r}; sys.exit(main())"
        return [sys.executable, "-c", run, *arguments]

    @property
    def environment(self) -> Mapping[str, str]:
        """Its modules come before the ones that are installed."""
        return os.environ | {"PYTHONPATH": str(self.root)}

    def run(self, script: str, *arguments: str) -> float:
        """Run a console script to its end; the processor seconds of all its processes."""
        done = cost(["env", f"PYTHONPATH={self.root}", *self.command(script, *arguments)], self.root)
        if done.exit_code:
            raise SystemExit(f"{script} {' '.join(arguments)} ended with {done.exit_code}")
        return done.processor


def beside(commit: str, rounds: int, pages: int, site: realsites.RealSite | None = None) -> None:
    """Measure, and print a line for each kind of work."""
    served = ("--generate", str(pages)) if site is None else (str(site.root),)
    with _folder() as folder, running(*served) as port:
        before, now = _checkout(folder / "before", commit), _checkout(folder / "now", "HEAD")
        file = _warc(folder / "site.warc", pages) if site is None else None
        start = f"http://127.0.0.1:{port}{site.starts[0] if site is not None else '/'}"
        found: dict[str, dict[str, list[float]]] = {}
        for number in range(rounds):
            for name, checkout in ((_BEFORE, before), (_NOW, now), (_AGAIN, before)):
                for work, seconds in _work(checkout, folder / "work", file, start):
                    found.setdefault(work, {}).setdefault(name, []).append(seconds)
            print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    what = f"{pages} pages" if site is None else site.package
    print(f"\nprocessor seconds of all processes, {what}, {rounds} rounds: median (least to most)")
    print(f"  {'':18}{commit:>24}{'the same again':>24}{'now':>24}   now / before")
    for work, values in found.items():
        columns = "".join(f"{_told(values[name]):>24}" for name in (_BEFORE, _AGAIN, _NOW))
        ratio = statistics.median(values[_NOW]) / statistics.median(values[_BEFORE] + values[_AGAIN])
        spread = values[_BEFORE] + values[_AGAIN]
        within = min(spread) <= statistics.median(values[_NOW]) <= max(spread)
        print(f"  {work:18}{columns}   {ratio:.3f}{'' if within else ', beyond the spread'}", flush=True)


def _told(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _work(checkout: Checkout, folder: Path, file: Path | None, start: str) -> Iterator[tuple[str, float]]:
    """What is measured, each with its processor seconds, on an archive of its own; without a file, crawls alone."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    archive = str(folder / "archive")
    checkout.run("webarc-agent", "--quiet", "init", archive)
    (Path(archive) / "webarc.toml").write_text("[index]\nlinks = false\n", "utf-8")
    crawl = ("--quiet", "crawl", "--archive", archive, "--wait", "0", start)
    if file is not None:
        yield "import", checkout.run("webarc-agent", "--quiet", "import", "--archive", archive, str(file))
    yield "first crawl", checkout.run("webarc-agent", *crawl)
    yield "unchanged crawl", checkout.run("webarc-agent", *crawl)
    if file is not None:
        yield from _mount(checkout, Path(archive), folder / "mnt")
    linked = folder / "linked"
    checkout.run("webarc-agent", "--quiet", "init", str(linked))
    (linked / "webarc.toml").write_text("[index]\nlinks = true\n", "utf-8")
    yield "crawl with links", checkout.run("webarc-agent", *crawl[:3], str(linked), *crawl[4:])


def _mount(checkout: Checkout, archive: Path, point: Path) -> Iterator[tuple[str, float]]:
    """A mount that is walked and added to: what its process and its users take."""
    point.mkdir()
    command = checkout.command("mount.webarcfs", "-f", str(archive), str(point))
    process = subprocess.Popen(command, cwd=checkout.root, env=checkout.environment, stderr=subprocess.DEVNULL)
    try:
        eventually(point.is_mount, 60)
        own = _own()
        for pattern in ("no_such_word", "another_one"):
            subprocess.run(["grep", "-r", pattern, "."], cwd=point, check=False, stdout=subprocess.DEVNULL)
        subprocess.run(["find", ".", "-size", "+1k"], cwd=point, check=True, stdout=subprocess.DEVNULL)
        _add(point)
        users = _own() - own
        process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
            subprocess.run(["umount", "-i", "-l", str(point)], check=False)
    yield "mount: process", usage.ru_utime + usage.ru_stime
    yield "mount: its users", users


def _add(point: Path) -> None:
    """Files and data nodes, as tools add them."""
    arcs = [Path(folder) for folder, _, names in os.walk(point) if "data.xml" in names]
    for arc in arcs[:_ADDITIONS]:
        (arc / "words.txt").write_bytes(b"some words\n" * 100)
    for number, arc in enumerate(arcs[:_APPENDS]):
        with (arc / "data.xml").open("ab") as document:
            document.write(b"<note number='%d'/>" % number)


def _own() -> float:
    """Processor seconds of this process and of the children that it waited for."""
    both = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _checkout(folder: Path, commit: str) -> Checkout:
    """The sources of a commit, without its history, compiled."""
    folder.mkdir()
    with subprocess.Popen(["git", "archive", commit], cwd=_ROOT, stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "x", "-C", str(folder)], stdin=packed.stdout, check=True)
    if packed.returncode:
        raise SystemExit(f"there is no commit {commit}")
    made = Checkout(folder)
    # Older commits have it at other places.
    places = {"webarcfs/compiled": "webarcfs.compiled.build", "webarcfs/native": "webarcfs.native.build"}
    builder = next((name for place, name in places.items() if (folder / place).is_dir()), "webarcfs.compiling")
    subprocess.run([sys.executable, "-m", builder], cwd=folder, env=made.environment, check=True)
    # As installers do: else each process of the larger commit compiles more of its sources, which no user pays for.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "agent", "webarcfs"], cwd=folder, check=True)
    return made


def _warc(path: Path, pages: int) -> Path:
    """The generated site as a WARC of another host."""
    tree = Generated(pages)
    records = (warcs.response(f"http://imported.example{tree.path(each)}", tree.body(each)) for each in range(pages))
    return warcs.write(path, records)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="webarc-beside-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Measure this commit beside another one."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.beside", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=1_500)
    parser.add_argument("--site", choices=sorted(_SITES), help="crawl the documentation of a Debian package instead")
    given = parser.parse_args()
    beside(given.commit, given.rounds, given.pages, _SITES[given.site] if given.site else None)


if __name__ == "__main__":
    main()
