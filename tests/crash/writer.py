"""A tool that adds files or data nodes through a mount, and reports each that close confirmed to a manifest.

`python -m tests.crash.writer KIND DOMAIN-FOLDER MANIFEST NAME`: KIND is `files` or `nodes`, NAME makes its names
unique. It ends with the mount, which the test kills.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from pathlib import Path

#: The ARCs that all writers add to.
ARCS = 20
#: Sizes of files: inline in the journal, and beside it.
SIZES = (0, 1, 100, 5000, 70_000, 300_000)


def arc(number: int) -> str:
    """The path of an ARC inside the domain."""
    return f"p{number % ARCS}.html"


def body(name: str, size: int) -> bytes:
    """The content of a file, which its name and size make."""
    return random.Random(name).randbytes(size)


def add_file(folder: Path, name: str, size: int) -> str:
    """A new file, closed or synced and closed; what to report."""
    path = folder / name
    with path.open("xb") as file:
        file.write(body(name, size))
        if size == SIZES[3]:
            file.flush()
            os.fsync(file.fileno())
    return f"file\t{folder.name}\t{name}\t{size}\n"


def add_node(folder: Path, name: str) -> str:
    """A new data node; what to report."""
    with (folder / "data.xml").open("ab") as file:
        file.write(f"<{name}>{name * 20}</{name}>\n".encode())
    return f"node\t{folder.name}\t{name}\t0\n"


def main() -> None:
    """Write until the mount is gone."""
    kind, domain, manifest, name = sys.argv[1:]
    report = os.open(manifest, os.O_WRONLY | os.O_APPEND)
    for number in itertools.count():
        folder = Path(domain, arc(number))
        each = f"{name}-{number}"
        try:
            line = add_node(folder, each) if kind == "nodes" else add_file(folder, each, SIZES[number % len(SIZES)])
        except OSError:
            return
        os.write(report, line.encode())


if __name__ == "__main__":
    main()
