"""Sixteen processes add files and data nodes to a thousand ARCs while crawls publish (issue 3).

Every close that returned 0 is in git under the commitTag of the ARC that was written to, every ESTALE is not, and git
finds nothing wrong. `python -m tests.soak.writers [FILES [ARCS [PROCESSES]]]`.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mount.crawler import Crawler
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import Mounted
from webarcfs.archive.additions import commit_additions
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names


def work(root: Path, number: int, files: int, arcs: int) -> None:
    """One writer: prints `what name outcome` for each file and node."""
    for turn in range(files):
        arc = f"p{(number * 7919 + turn * 31) % arcs}"
        name = f"w{number}-{turn}"
        folder = root / f"{arc}.html"
        for what, path, mode, body in (
            ("file", folder / name, "xb", name.encode() * 50),
            ("node", folder / "data.xml", "ab", f"<{name}/>".encode()),
        ):
            outcome = "ok"
            try:
                with path.open(mode, buffering=0) as file:
                    file.write(body)
            except OSError as error:
                outcome = errno.errorcode.get(error.errno or 0, str(error))
            print(what, arc, name, outcome, flush=True)


def main(arguments: list[str]) -> int:
    """Run it; 1 if something is not as it was told."""
    if arguments[:1] == ["work"]:
        work(Path(arguments[1]), *map(int, arguments[2:5]))
        return 0
    files, arcs, processes = (*map(int, arguments), *(10_000, 1_000, 16)[len(arguments) :])
    folder = Path(tempfile.mkdtemp(prefix="webarcfs-soak-"))
    try:
        return _run(folder, files // processes, arcs, processes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, files: int, arcs: int, processes: int) -> int:
    archive = archives.final_at_once(archives.make_archive(folder))
    archives.publish_many(archive, [(f"p{number}.html", b"page %d" % number) for number in range(arcs)])
    mounted = Mounted(archive.root, folder / "mnt")
    crawler = Crawler(archive)
    try:
        begun = time.monotonic()
        command = [sys.executable, "-m", "tests.soak.writers", "work", str(mounted / DOMAIN)]
        writers = []
        for number in range(processes):
            with (folder / f"out{number}").open("wb") as out:
                writers.append(subprocess.Popen([*command, str(number), str(files), str(arcs)], stdout=out))
        crawls = 0
        while any(writer.poll() is None for writer in writers):
            crawler.publish(**{f"p{(crawls * 17 + each) % arcs}": f"crawl {crawls}" for each in range(5)})
            crawls += 1
            time.sleep(1)
        seconds = time.monotonic() - begun
    finally:
        crawler.end()
        mounted.clear()
    commit_additions.replay(archive)
    lines = [line.split() for number in range(processes) for line in (folder / f"out{number}").read_text().splitlines()]
    print(f"{len(lines)} additions in {seconds:.1f} s, {crawls} crawls: {Counter(line[3] for line in lines)}")
    faults = list(_faults(archive, lines)) + archives.store_of(archive).check()
    print("\n".join(faults[:20]) or "every answer was kept")
    return 1 if faults else 0


def _faults(archive: Archive, lines: list[list[str]]) -> list[str]:
    found = _history(archive)
    faults = []
    for what, arc, name, outcome in lines:
        there = (what, arc, name) in found
        if outcome not in ("ok", "ESTALE"):
            faults.append(f"{what} {name} in {arc}: {outcome}")
        elif there != (outcome == "ok"):
            faults.append(f"{what} {name} in {arc}: {outcome}, but it is {'in' if there else 'not in'} git")
    return faults


def _history(archive: Archive) -> set[tuple[str, str, str]]:
    """Every file and node that any commit has; an ARC's tree is looked at once."""
    store = archives.store_of(archive)
    head = store.head()
    found: set[tuple[str, str, str]] = set()
    seen: set[tuple[str, str]] = set()
    for commit in store.history(head.oid if head else None):
        for arc in store.entries(commit.tree):
            if (arc.name, arc.oid) in seen:
                continue
            seen.add((arc.name, arc.oid))
            page = arc.name.removesuffix(".html")
            for entry in store.entries(arc.oid):
                if entry.name == "data.xml":
                    found |= {("node", page, node) for node in names(store.read(entry.oid))}
                else:
                    found.add(("file", page, entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
