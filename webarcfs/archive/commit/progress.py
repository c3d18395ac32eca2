"""The progress of each log of additions, as recorded in the repository.

A commit of additions names the logs and the numbers that it completed, and main moves in one step; so main and the
progress agree after any crash. Later crawls hide that commit: to keep the search short, `refs/additions/<log>`, a blob
with a number, repeats it, and follows main.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from webarcfs.archive.git.repository import RefUpdate, Repository
from webarcfs.archive.model.addition import blob_id
from webarcfs.archive.model.errors import Damaged

#: Prefix of the marks' refs.
ADDITIONS = "refs/additions/"


#: Commits that are searched for the newest one of additions. The refs are up to date with all commits before a crawl.
_NEAR = 20


def done(store: Repository, head: str | None, known: Mapping[str, int]) -> dict[str, int]:
    """Return log → the number of its last addition that was committed or dropped below `head`; `known` are the marks.

    Raises Damaged.
    """
    near = (commit.message.done for commit in islice(store.history(head), _NEAR))
    told = next((each for each in near if each), {})
    return {log: max(known.get(log, 0), told.get(log, 0)) for log in known.keys() | told.keys()}


def marks(store: Repository) -> dict[str, int]:
    """Return the same from the refs, which may be behind. Raises Damaged."""
    found = {name: store.ref(ADDITIONS + name) for name in sorted(_names(store))}
    return {name: number(store, blob) for name, blob in found.items() if blob is not None}


def body(upto: int) -> bytes:
    """Return the bytes of a mark."""
    return b"%d\n" % upto


def moved(log: str, old: int | None, new: str | None) -> RefUpdate:
    """Return the move of a mark from the number that was read to the blob `new`, or its removal; fails if it moved."""
    return RefUpdate(ADDITIONS + log, new, None if old is None else blob_id(body(old)))


def _names(store: Repository) -> set[str]:
    # Without `store.refs`, which would read the refs of all crawls for each commit.
    names = {path.name for path in (store.path / ADDITIONS).glob("*") if not path.name.endswith(".lock")}
    try:
        packed = (store.path / "packed-refs").read_text("utf-8", "replace")
    except FileNotFoundError:
        return names
    lines = (line.partition(" ")[2] for line in packed.splitlines()) if ADDITIONS in packed else ()
    return names | {name.removeprefix(ADDITIONS) for name in lines if name.startswith(ADDITIONS)}


def number(store: Repository, blob: str) -> int:
    """Return the number in a mark. Raises Damaged."""
    text = store.read(blob).strip()
    if not text.isdigit():
        raise Damaged(f"{store.path}: the mark {blob} of a log of additions is no number")
    return int(text)
