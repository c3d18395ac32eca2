"""`python -m tests.bench.resource_hosts [--hosts 10000] [--sites 100]`: what hosts that only give resources cost.

Sites, each of some pages, show images from hosts of their own, as adverts and CDNs do. They are one publication,
crawled by real wget through the proxy of one site of this machine: once, once more without a change, and once when
nine tenths of the hosts are needed no more. Then the archive is backed up, maintained, mounted and looked at, and a
site with one page is crawled beside. Printed are seconds, and milliseconds a host.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.crawl import STAGES, summary_of
from tests.bench.measure import Cost, agent, cost
from tests.support import crawls, desks, rooms
from tests.support.messy_sites import PIXEL
from tests.support.mounts import Mounted
from tests.support.site import Answer, Site, page
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository

#: Pages of a site; its hosts are spread over them.
_PAGES = 5
#: After the third crawl one host in so many is needed.
_LEFT = 10


class _Needs:
    """A site whose pages show an image of each of its hosts."""

    def __init__(self, number: int, hosts: list[str]) -> None:
        self._number = number
        self._hosts = hosts
        #: One host in so many is shown.
        self.every = 1

    def find(self, path: str) -> Answer | None:
        """The start page with links to the others, and their images."""
        name = path.strip("/").removesuffix(".html") or "0"
        if not name.isdecimal() or int(name) >= _PAGES:
            return None
        links = "".join(f'<a href="/{other}.html">{other}</a>' for other in range(1, _PAGES)) if name == "0" else ""
        shown = self._hosts[:: self.every][int(name) :: _PAGES]
        images = "".join(f'<img src="http://{host}/pixel.png">' for host in shown)
        return page(f"<!DOCTYPE html><title>site {self._number}, page {name}</title>{links}{images}")


class _Images:
    """A host of resources: no robots.txt, one image."""

    def find(self, path: str) -> Answer | None:
        """The image."""
        return page(PIXEL, "image/png") if path == "/pixel.png" else None


def resource_hosts(hosts: int, sites: int) -> None:
    """Measure all of it."""
    print(f"\n{hosts:,} hosts of resources of {sites} sites")
    with tempfile.TemporaryDirectory(prefix="webarcfs-bench-") as name, Site() as site:
        folder = Path(name)
        archive = directory.create(folder / "archive")
        needs = _serve(site, hosts, sites)
        _write_settings(archive, site, hosts, sites)
        for which in ("first", "unchanged", "a tenth of the hosts", "unchanged again"):
            if which.startswith("a tenth"):
                for tree in needs:
                    tree.every = _LEFT
            before = _commits(archive)
            _print_crawl(which, archive, hosts, _run(archive, "crawl", "--publication", "all"))
            _print_disk(archive, hosts)
            now = _commits(archive)
            print(f"    commits {sum(now.values()):,}, of them new {sum(now.values()) - sum(before.values()):,}")
        for which in ("beside, first", "beside, unchanged"):
            _print_crawl(which, archive, hosts, _run(archive, "crawl", "--publication", "beside"))
        _print_chores(archive, folder, hosts)
        _print_looks(archive, folder, hosts)


def _serve(site: Site, hosts: int, sites: int) -> list[_Needs]:
    names = [f"r{number:05}.test" for number in range(hosts)]
    images, needs = _Images(), []
    for name in names:
        site.mount(images, host=name)
    for number in range(sites):
        tree = _Needs(number, names[number::sites])
        site.mount(tree, host=f"s{number:03}.test")
        needs.append(tree)
    site.add_html("/", "one page", host="beside.test")
    return needs


def _write_settings(archive: Archive, site: Site, hosts: int, sites: int) -> None:
    starts = ", ".join(f'"http://s{number:03}.test/"' for number in range(sites))
    archive.settings.write_text(
        f"[crawl]\nwait = 0\nsitemaps = false\nmax_resource_hosts = {2 * hosts}\nmax_instances = 8\n"
        f"wget_args = {list(crawls.through(site.proxy))}\n"
        f'[[publication]]\nname = "all"\nurls = [{starts}]\n'
        '[[publication]]\nname = "beside"\nurls = ["http://beside.test/"]\n'
    )


def _run(archive: Archive, *arguments: str) -> Cost:
    done = cost(agent(arguments[0], "--archive", str(archive.root), *arguments[1:]))
    if done.exit_code:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.exit_code}")
    return done


def _print_crawl(which: str, archive: Archive, hosts: int, done: Cost) -> None:
    seconds: dict[str, float] = summary_of(archive)["seconds"]
    after = sum(seconds.get(stage, 0.0) for stage in STAGES)
    rest = done.seconds - seconds.get("capture", 0.0)
    parts = ", ".join(f"{stage} {1000 * seconds[stage] / hosts:.2f}" for stage in STAGES if stage in seconds)
    print(
        f"  crawl, {which}: {done.seconds:.1f} s ({done.processor:.1f} of processors), capture"
        f" {seconds.get('capture', 0.0):.1f} s, {done.together:.0f} MiB\n"
        f"    after the capture {_each(rest, hosts)}; stages {_each(after, hosts)}: {parts}",
        flush=True,
    )


def _each(seconds: float, hosts: int) -> str:
    return f"{seconds:.2f} s ({1000 * seconds / hosts:.2f} ms a host)"


def _commits(archive: Archive) -> dict[str, int]:
    return {
        domain: len(Repository(archive.repository(domain)).ref_names(CRAWLS))
        for domain in archive.domains()
        if domain.startswith("r")
    }


def _print_disk(archive: Archive, hosts: int) -> None:
    for name, folder in (("archive", archive.root), ("content", archive.content), ("locks", archive.root / "locks")):
        inodes, size = _disk(folder)
        print(f"    {name}: {inodes:,} inodes ({inodes / hosts:.1f} a host), {size / (1 << 20):,.1f} MiB"
              f" ({size / hosts / 1024:.1f} KiB a host)")  # fmt: skip


def _disk(folder: Path) -> tuple[int, int]:
    """Inodes and bytes on the disk of a folder, as du(1) counts them."""
    inodes = size = 0
    for root, _, names in os.walk(folder):
        for path in (root, *(f"{root}/{name}" for name in names)):
            status = os.lstat(path)
            inodes += 1
            size += status.st_blocks * 512
    return inodes, size


def _print_chores(archive: Archive, folder: Path, hosts: int) -> None:
    copy = str(folder / "backup")
    for which, arguments in (
        ("backup", ("backup", copy)),
        ("backup again", ("backup", copy)),
        ("backup again, quick", ("backup", "--quick", copy)),
        ("maintain", ("maintain",)),
        ("maintain again", ("maintain",)),
        ("status", ("status",)),
        ("verify --quick", ("verify", "--quick")),
    ):
        done = _run(archive, *arguments)
        print(f"  {which}: {_each(done.seconds, hosts)}, {done.processor:.1f} s of processors", flush=True)
    for which, path in (("archive", archive.root), ("backup", Path(copy))):
        inodes, size = _disk(path)
        print(f"  {which}: {inodes / hosts:.1f} inodes, {size / hosts / 1024:.1f} KiB a host")


def _print_looks(archive: Archive, folder: Path, hosts: int) -> None:
    begun = time.monotonic()
    mounted = Mounted(archive.root, folder / "mount")
    try:
        print(f"  mount: {_each(time.monotonic() - begun, hosts)}")
        for which in ("ls -l of the root", "ls -l of the root again"):
            begun = time.monotonic()
            listed = subprocess.run(["ls", "-l", mounted.point], capture_output=True, text=True, check=True)
            print(f"  {which}: {_each(time.monotonic() - begun, hosts)}, {listed.stdout.count(chr(10)):,} lines")
    finally:
        mounted.clear()
    desks.with_people(archive)
    with desks.served(archive) as served:
        client = served.client("adam")
        job = max(path.name for path in archive.reports.iterdir() if path.name.endswith("all"))
        for path in ("/", "/snapshots", f"/snapshot/{job}", "/publications/all", "/access", "/running"):
            _print_page("desk", path, lambda path=path: client.get(path))  # type: ignore[misc]
    with rooms.served(archive) as room:
        for path in ("/", "/publication/all", f"/snapshot/{job}", "/urls?q=r00001.test"):
            _print_page("room", path, lambda path=path: room.get(path))  # type: ignore[misc]


def _print_page(where: str, path: str, ask: Callable[[], Any]) -> None:
    """Print what a page costs that was asked for before."""
    times: list[float] = []
    for _ in range(4):
        begun = time.monotonic()
        answer = ask()
        times.append(1000 * (time.monotonic() - begun))
    print(
        f"  {where} {path}: {answer.status}, {len(answer.body):,} bytes, first {times[0]:.0f} ms, then"
        f" {min(times[1:]):.1f} ms"
    )


def main() -> None:
    """Measure with as many hosts as are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.resource_hosts", description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--sites", type=int, default=100)
    given = parser.parse_args()
    resource_hosts(given.hosts, given.sites)


if __name__ == "__main__":
    main()
