"""Publishes a page again and again, and reports each commitTag that was published to a file.

`python -m tests.crash.publisher ARCHIVE FILE`: the page `crawled.html` says the commitTag. It ends with the disk.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from tests.support import archives
from tests.support.archives import DOMAIN
from webarcfs.archive.additions import commit_additions
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.git.repository import MAIN, RefUpdate
from webarcfs.archive.history import sequence
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import COMMITTER, CommitTag, CrawlMessage
from webarcfs.archive.repair import repacking
from webarcfs.archive.system import locks
from webarcfs.archive.system.locks import Turnstile


def publish(archive: Archive) -> CommitTag:
    """One crawl, as the publish stage does it (agent/pipeline/publish.py)."""
    store = archives.store_of(archive, DOMAIN)
    commit_additions.commit_additions(archive, DOMAIN)
    head = store.head()
    assert head is not None
    tag = CommitTag(head.message.tag.crawl_time + timedelta(seconds=1), DOMAIN)
    with Turnstile(archive.lock(DOMAIN)).exclusive(), sequence.publication_slot(archive, tag) as turn:
        commit_additions.fold_in(archive, store, DOMAIN)
        head = store.head()
        assert head is not None
        page = archives.arc(store, archives.metadata(DOMAIN, "crawled.html", tag), "crawled.html", str(tag).encode())
        message = str(CrawlMessage(tag, "test", True, turn.number))
        commit = store.write_commit(store.edit(head.tree, page), [head.oid], message, COMMITTER, int(time.time()))
        store.update_refs([RefUpdate(tag.ref, commit, None), RefUpdate(MAIN, commit, head.oid)])
        turn.publish()
    return tag


def pack(archive: Archive) -> None:
    """The refs become one file, as `webarc-agent maintain` does it once there are many."""
    with locks.exclusive(archive.committing_lock(DOMAIN)), Turnstile(archive.lock(DOMAIN)).exclusive():
        repacking.pack_refs(archive.repository(DOMAIN))


def main() -> None:
    """Publish until the disk is gone, and pack refs now and then."""
    archive = open_archive(Path(sys.argv[1]))
    report = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
    for number in itertools.count():
        try:
            if number % 3 == 2:
                pack(archive)
            tag = publish(archive)
        except (OSError, WebarcError) as error:
            print(f"publisher: {error}", file=sys.stderr)
            return
        os.write(report, f"{tag}\n".encode())
        time.sleep(0.2)


if __name__ == "__main__":
    main()
