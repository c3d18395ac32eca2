"""`python -m tests.soak.hosts [--seconds 60]`: forty hosts of 2,000 pages share four places of one crawl.

With no pause, the host that was served least has at least half of the mean; with a second between two requests to one
host, each host has been asked for more than its start page and robots.txt. Exit 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support import crawls
from tests.support.site import Answer, Site, page
from webarcfs.archive.config import directory

_HOSTS = [f"h{number:02}.example" for number in range(40)]
_PLACES, _PAGES = 4, 2_000


class _Pages:
    """A start page with a link to each of the other pages."""

    def __init__(self, host: str) -> None:
        self._host = host
        links = "".join(f'<a href="/{number}.html">{number}</a>\n' for number in range(_PAGES))
        self._start = page(f"<html><body>{links}</body></html>")

    def find(self, path: str) -> Answer | None:
        """Any page; there is no robots.txt."""
        if path == "/":
            return self._start
        return page(f"<html><body>{self._host} {path}</body></html>") if path.endswith(".html") else None


def served(wait: float, seconds: int) -> Counter[str]:
    """Pages that each host was asked for in a crawl of so many seconds, robots.txt not counted."""
    with tempfile.TemporaryDirectory(prefix="webarcfs-soak-") as folder, Site() as site:
        for host in _HOSTS:
            site.mount(_Pages(host), host=host)
        crawls.crawl(
            directory.create(Path(folder) / "archive"),
            *(f"http://{host}/" for host in _HOSTS),
            wait=wait,
            max_duration=f"{seconds} seconds",
            max_instances=_PLACES,
            wget_args=crawls.through(site.proxy),
        )
        return Counter(request.host for request in site.requests if request.path != "/robots.txt")


def main() -> int:
    """Both forms; what each host was served is printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.hosts", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    seconds = parser.parse_args().seconds
    faults = []
    for wait in (0.0, 1.0):
        found = served(wait, seconds)
        counts = sorted(found[host] for host in _HOSTS)
        mean = sum(counts) / len(counts)
        print(f"wait {wait:g}: pages a host: least {counts[0]}, mean {mean:.1f}, most {counts[-1]}", flush=True)
        if wait and counts[0] < 2:
            faults.append(f"wait {wait:g}: {sum(count < 2 for count in counts)} hosts had their start page at most")
        if not wait and counts[0] < mean / 2:
            faults.append(f"wait {wait:g}: the least served host has less than half of the mean")
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
