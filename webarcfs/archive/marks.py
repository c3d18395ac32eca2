"""How far each log of additions is committed, as the repository says: `refs/additions/<log>`, a blob with a number."""

from __future__ import annotations

from webarcfs.archive.additions import blob_id
from webarcfs.archive.errors import Damaged
from webarcfs.archive.store import RefUpdate, Store

#: Where the marks are.
ADDITIONS = "refs/additions/"


def marks(store: Store) -> dict[str, int]:
    """Log → the number of the last of its additions that was committed or dropped. Raises Damaged."""
    found = {name: store.ref(ADDITIONS + name) for name in sorted(_names(store))}
    return {name: _number(store, blob) for name, blob in found.items() if blob is not None}


def body(number: int) -> bytes:
    """The bytes of a mark."""
    return b"%d\n" % number


def moved(log: str, old: int | None, new: str | None) -> RefUpdate:
    """Moves a mark from the number that was read to the blob `new`, or removes it; not if it moved meanwhile."""
    return RefUpdate(ADDITIONS + log, new, None if old is None else blob_id(body(old)))


def _names(store: Store) -> set[str]:
    # Not by `store.refs`, which would read the refs of all crawls for each commit.
    names = {path.name for path in (store.path / ADDITIONS).glob("*") if not path.name.endswith(".lock")}
    try:
        packed = (store.path / "packed-refs").read_text("utf-8", "replace")
    except FileNotFoundError:
        return names
    lines = (line.partition(" ")[2] for line in packed.splitlines()) if ADDITIONS in packed else ()
    return names | {name.removeprefix(ADDITIONS) for name in lines if name.startswith(ADDITIONS)}


def _number(store: Store, blob: str) -> int:
    text = store.read(blob).strip()
    if not text.isdigit():
        raise Damaged(f"{store.path}: the mark {blob} of a log of additions is no number")
    return int(text)
