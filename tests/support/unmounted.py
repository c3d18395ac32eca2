"""A process that adds to an archive without a mount, for tests that race two of them, or kill one.

`python -m tests.support.unmounted ARCHIVE PERSON ASKED [PREFIX]` writes a line when it is ready, waits for one of its
input, then adds ASKED files to p0.html, and prints the name of each that was kept. The content of a file is its name
and the person's. With a PREFIX, the names are nobody else's, and it goes on until it is killed.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from tests.support.archives import DOMAIN
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import Exists
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.vfs.node import Caller, author_named
from webarcfs.writing.archive_writer import ArchiveWriter

PAGE = f"/{DOMAIN}/p0.html"


def body_of(name: str, person: str) -> bytes:
    """What a person adds under a name: every seventh is longer than what the journal keeps inline."""
    size = 100_000 if sum(name.encode()) % 7 == 0 else 10
    return f"{name} of {person}\n".encode() * size


def add(writer: ArchiveWriter, tag: CommitTag, name: str, person: str) -> bool:
    """Add a file; return whether it was kept, and not there already."""
    try:
        with writer.upload(tag, PAGE, name, Caller(0, 0, author_named(person.title(), person))) as upload:
            upload.write(body_of(name, person))
            upload.keep()
    except Exists:
        return False
    return True


def main() -> None:
    place, person, asked, *prefix = sys.argv[1:]
    writer = ArchiveWriter(directory.open_archive(Path(place)))
    writer.start()
    head = writer.view.domain(DOMAIN).main
    assert head is not None
    print("ready", flush=True)
    sys.stdin.readline()
    for number in count() if prefix else range(int(asked)):
        name = f"{''.join(prefix)}n{number}"
        if add(writer, head.message.tag, name, person):
            print(name, flush=True)
    for line in writer.stop():
        print(f"left: {line}")


if __name__ == "__main__":
    main()
