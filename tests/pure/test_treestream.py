"""A tree made of another one and changes: what comes out, and that each folder is read once and written once."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.git import writing
from webarcfs.archive.model.errors import Damaged

pytestmark = pytest.mark.pure

Files = dict[str, bytes]
names = st.sampled_from(["a", "a!", "a.b", "a.b.c", "a0", "b", "é", "ab"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
blobs = st.binary(min_size=20, max_size=20).filter(any)
contents = st.dictionaries(paths, blobs, max_size=10)


class Trees:
    """Trees by id, and how often each was read and written."""

    def __init__(self) -> None:
        self.raw: dict[str, bytes] = {}
        self.read: Counter[str] = Counter()
        self.written: Counter[str] = Counter()

    def reading(self, oid: str) -> bytes:
        """What `changed` reads with."""
        self.read[oid] += 1
        return self.raw[oid]

    def storing(self, raw: bytes) -> str:
        """What `changed` stores with."""
        oid = hashlib.sha1(b"tree %d\0%s" % (len(raw), raw)).hexdigest()
        self.raw[oid] = raw
        self.written[oid] += 1
        return oid

    def of(self, files: Files) -> str | None:
        """The tree of these files, made folder by folder from the innermost."""
        below: dict[str, Files] = {}
        lines = []
        for path, blob in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = blob
            else:
                lines.append((name.encode(), b"100644 %s\0%s" % (name.encode(), blob)))
        for name, inner in below.items():
            oid = bytes.fromhex(str(self.of(inner)))
            lines.append((name.encode() + b"/", b"40000 %s\0%s" % (name.encode(), oid)))
        return self.storing(b"".join(line for _, line in sorted(lines))) if lines else None

    def folders(self) -> int:
        """How many lines lead to folders, in all trees that were read."""
        return sum(self.raw[oid].count(b"40000 ") for oid in self.read)


def without_conflicts(files: Files) -> Files:
    """Without the files that are folders, too."""
    return {path: blob for path, blob in files.items() if not any(each.startswith(f"{path}/") for each in files)}


def changed(trees: Trees, base: str | None, removed: set[str], put: Files) -> str | None:
    """`treestream.changed`, given changes in order."""
    changes = dict.fromkeys(removed, b"") | put
    rows = sorted((path.encode(), blob) for path, blob in changes.items())
    return writing.changed_tree(base, rows, trees.reading, trees.storing)


def expected(base: Files, removed: set[str], put: Files) -> Files:
    """What becomes of files, path by path."""

    def stays(path: str) -> bool:
        above = [path[:index] for index, char in enumerate(path) if char == "/"] + [path]
        taken = any(each.startswith(f"{path}/") for each in put)
        return not taken and not any(each in removed or each in put for each in above)

    return {path: blob for path, blob in base.items() if stays(path)} | without_conflicts(put)


@given(contents.map(without_conflicts), st.sets(paths, max_size=5), contents)
def test_changes_come_out_as_path_by_path(base: Files, removed: set[str], put: Files) -> None:
    trees = Trees()
    before = trees.of(base)
    assert changed(trees, before, removed, put) == Trees().of(expected(base, removed, put))


@given(contents.map(without_conflicts), contents.map(without_conflicts))
def test_each_folder_is_read_once_and_written_once(base: Files, put: Files) -> None:
    """And none that is not concerned."""
    trees = Trees()
    before = trees.of({f"in/{path}": blob for path, blob in base.items()} | {"beside/x": b"1" * 20})
    trees.written.clear()
    changed(trees, before, set(), {f"in/{path}": blob for path, blob in put.items()})
    concerned = {""} | {f"in/{path}"[:index] for path in put for index, char in enumerate(f"in/{path}") if char == "/"}
    assert sum(trees.read.values()) <= len(concerned)
    assert sum(trees.written.values()) <= len(concerned)


def test_what_does_not_change_is_not_written() -> None:
    trees = Trees()
    files = {f"{n}/{m}": b"%020d" % n for n in range(5) for m in range(5)}
    before = trees.of(files)
    trees.written.clear()
    assert changed(trees, before, {"7", "3/9"}, {"2/2": files["2/2"]}) == before
    assert not trees.written
    assert changed(trees, before, set(files), {}) is None
    assert writing.changed_tree(before, [], trees.reading, trees.storing) == before


def test_other_modes_stay() -> None:
    """Users may have committed links and programs beside us, old programs folders of another mode."""
    trees = Trees()
    inner = trees.storing(b"100644 x\0" + b"1" * 20)
    raw = b"120000 link\x00%s040000 old\x00%s100755 run\x00%s" % (b"2" * 20, bytes.fromhex(inner), b"3" * 20)
    before = trees.storing(raw)
    after = changed(trees, before, set(), {"new": b"4" * 20})
    assert trees.raw[str(after)] == raw.replace(b"040000 old", b"100644 new\0" + b"4" * 20 + b"040000 old")


@pytest.mark.parametrize("raw", [b"no tree", b"100644 a\0" + b"1" * 19, b"100644 a\0" + b"1" * 20 + b"rest", b"x" * 30])
def test_a_tree_that_cannot_be_read_is_said_so(raw: bytes) -> None:
    trees = Trees()
    before = trees.storing(raw)
    with pytest.raises(Damaged, match=before):
        changed(trees, before, set(), {"b": b"1" * 20})


def test_paths_may_be_as_deep_as_urls_are_long() -> None:
    trees = Trees()
    deep = "/".join("d" * 3000)
    tree = changed(trees, None, set(), {f"{deep}/x": b"1" * 20, f"{deep}/y": b"2" * 20})
    assert sum(trees.written.values()) == 3001
    assert changed(trees, tree, {f"{deep}/x"}, {f"{deep}/y": b"2" * 20, "e": b"3" * 20}) is not None
