"""Crawls of a test, published by a process of their own.

`python -m tests.mount.crawler ARCHIVE` reads a JSON object a line, ARC path → body or null, and prints the commitTag.
A process that has files of a mount open may not publish: each program that it starts closes them, which waits for the
mount, which waits for the publication's lock.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from tests.support import archives
from tests.support.archives import DOMAIN
from webarcfs.archive.additions import commit_additions
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CommitTag, CrawlMessage
from webarcfs.archive.system.locks import Turnstile


class Crawler:
    """The process."""

    def __init__(self, archive: Archive) -> None:
        command = [sys.executable, "-m", "tests.mount.crawler", str(archive.root)]
        pipe = subprocess.PIPE
        root = Path(__file__).parent.parent.parent
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root)

    def publish(self, **pages: str | None) -> str:
        """Publish a crawl of these pages (`a` is a.html), and tell its commitTag."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({f"{page}.html": body for page, body in pages.items()}) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        """Wait until it is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def publish(archive: Archive, pages: dict[str, str | None]) -> CommitTag:
    """As the publish stage does it: what was confirmed goes into the commit before it, under one lock."""
    store = archives.store_of(archive, DOMAIN)
    with Turnstile(archive.lock(DOMAIN)).exclusive():
        commit_additions.fold_in(archive, store, DOMAIN)
        head = store.head()
        assert head is not None
        tag = CommitTag(head.message.tag.crawl_time + timedelta(seconds=1), DOMAIN)
        tree = head.tree
        for page, body in pages.items():
            own = dict.fromkeys(archives.own_files(store, tree, page))
            new = archives.arc(store, archives.metadata(DOMAIN, page, tag), page, body.encode()) if body else {}
            tree = store.edit(tree, own | new)
        number = sum(1 for _ in Feed(archive.changes).lines()) + 1
        archives.commit(store, tree, str(CrawlMessage(tag, "test", True, number)), tag, new_tag=True)
        Feed(archive.changes).append(tag)
    return tag


def main() -> None:
    """Publish what is asked for."""
    archive = directory.open_archive(Path(sys.argv[1]))
    for line in sys.stdin:
        print(publish(archive, json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
