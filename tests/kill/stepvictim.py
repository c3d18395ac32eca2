"""`python -m tests.kill.stepvictim POINT ARCHIVE RECORD`: runs the steps of a record, and kills itself at a point.

A point is the name of a function of POINTS and the number of its call: `save:1`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import agent.catalogue.stepfolders
import agent.maintenance.backups
import agent.steps.context
import agent.steps.converting
import agent.steps.running
import webarcfs.archive.catalogue.catalogue
import webarcfs.archive.git.repository
import webarcfs.search.index
from tests.kill.victim import before
from webarcfs.archive.config.directory import open_archive

#: Name → the function before whose call the process dies, and how many of its calls a chain of steps has.
POINTS: dict[str, tuple[Any, str, int]] = {
    "save": (webarcfs.archive.catalogue.catalogue.Catalogue, "save", 5),
    "refs": (webarcfs.archive.git.repository.Repository, "update_refs", 4),
    "next": (agent.steps.running, "ask_next", 5),
    "done": (agent.catalogue.stepfolders, "done", 5),
    "ask": (agent.catalogue.stepfolders, "ask", 4),
    "put": (agent.steps.converting.FormsWriter, "put", 6),
    "flush": (agent.steps.converting.FormsWriter, "flush", 2),
    "tidy": (agent.steps.converting.Tidy, "_ended", 1),
    "index": (webarcfs.search.index.IndexWriter, "commit", 2),
    "put-text": (webarcfs.search.index.IndexWriter, "put", 1),
    "sync": (agent.steps.context, "sync_tree", 2),
    "backup": (agent.maintenance.backups, "mirror", 3),
    "copy": (agent.maintenance.backups, "_copy", 2),
}


def main(point: str, root: str, record: str) -> None:
    """Arm the point, and run."""
    name, _, call = point.partition(":")
    if name:
        owner, function, _ = POINTS[name]
        before(owner, function, int(call))()
    agent.steps.running.run_waiting(open_archive(Path(root)), record)


if __name__ == "__main__":
    main(*sys.argv[1:4])
