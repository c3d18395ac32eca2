"""Many changes to a tree: in any order, in flat memory, each document at the price of the others."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import pytest

from webarcfs.archive.git import writing
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.git.writing import Rewriting
from webarcfs.archive.system.files import Sorter

pytestmark = pytest.mark.store


def files_of(store: Repository, tree: str) -> dict[str, bytes]:
    return {each.path: store.read(str(each.new)) for each in store.differences(None, tree)}


# -- sorting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [1, 50, 1000, 1 << 20])
def test_rows_come_in_order_however_many(tmp_path: Path, part: int) -> None:
    chance = random.Random(part)
    rows = [chance.randbytes(chance.choice((0, 1, 30, 200_000 if part == 1000 else 90))) for _ in range(300)]
    with Sorter(tmp_path, part) as sorter:
        for row in rows:
            sorter.add(row)
        assert list(sorter.rows()) == sorted(rows)
        assert list(tmp_path.iterdir()) == []


def test_what_is_to_be_sorted_does_not_stay_in_memory(tmp_path: Path) -> None:
    with Sorter(tmp_path, 1 << 20) as sorter:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(400_000):
            sorter.add(b"%0200d" % (number * 7919 % 400_000))
        assert all(row == b"%0200d" % number for number, row in enumerate(sorter.rows()))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 << 10  # of 80 MB


# -- trees -------------------------------------------------------------------------------------------------------------


def test_the_last_file_at_a_path_counts_and_removals_are_of_what_was_there(store: Repository) -> None:
    blobs = {name: store.write_blob(name) for name in (b"old", b"1", b"2")}
    base = store.edit(store.write_tree([]), dict.fromkeys(("a/x", "a/y", "b", "c/z"), blobs[b"old"]))
    with store.rewriting(base) as changes:
        changes.put("a/y", blobs[b"1"])
        changes.put("a/new", blobs[b"1"])
        changes.remove("a")
        changes.put("a/new", blobs[b"2"])
        changes.remove("c/z")
        tree = changes.finish()
    assert files_of(store, tree) == {"a/y": b"1", "a/new": b"2", "b": b"old"}
    with store.rewriting(tree) as changes:
        changes.remove("a")
        changes.remove("b")
        assert changes.finish() == store.write_tree([])
    with store.rewriting(None) as changes:
        assert changes.finish() == store.write_tree([])
    assert store.check() == []


def test_many_trees_become_several_packs(store: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_TREES", 300)
    expected = {f"{n % 7}/{n}/{name}": b"%d" % n for n in range(500) for name in ("data.xml", "more/deep")}
    with store.importer(None) as stream:
        for path, body in expected.items():
            stream.put(path, body)
        tree = stream.finish()
        packs = list((store.path / "objects/pack").glob("*.pack"))
        assert len(packs) == 1 + len(list((store.path / "objects/pack").glob("*.keep"))) == 5
    assert not list((store.path / "objects/pack").glob("*.keep"))
    assert files_of(store, tree) == expected
    assert tree == store.edit(store.write_tree([]), {path: store.write_blob(body) for path, body in expected.items()})
    assert store.check() == []


def test_only_the_first_import_of_a_repository_makes_a_pack_of_few_objects(store: Repository) -> None:
    """Also where each begins with nothing, as imports of what is older than all that is there."""
    for number in range(3):
        with store.importer(None) as stream:
            stream.put("a/data.xml", b"%d" % number)
            tree = stream.finish()
        assert files_of(store, tree) == {"a/data.xml": b"%d" % number}
        assert len(list((store.path / "objects/pack").glob("*.pack"))) == 1
    assert store.check() == []


def test_many_files_are_given_to_several_gits(store: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git remembers each blob that it was given."""
    monkeypatch.setattr(writing, "_BLOBS", 300)
    expected = {f"{n % 50}/{n}.xml": b"%d" % n for n in range(1000)}
    with store.importer(None) as stream:
        for path, body in expected.items():
            stream.put(path, body)
        tree = stream.finish()
    # Three of 300 files, and one of what comes last with the trees.
    assert len(list((store.path / "objects/pack").glob("*.pack"))) == 4
    assert files_of(store, tree) == expected
    assert store.check() == []


def test_a_big_folder_is_read_and_written_once(store: Repository) -> None:
    """However many changes; the work that is counted here is what each change costs."""
    blob, other = store.write_blob(b"x"), store.write_blob(b"y")
    count = 5000
    with store.rewriting(None) as changes:
        for number in range(count):
            changes.put(f"wiki/{number}/data.xml", blob)
        base = changes.finish()
    read: list[int] = []

    def reading(tree: str) -> bytes:
        raw = store.read_tree(tree)
        read.append(raw.count(b"\0"))
        return raw

    with Rewriting(store.path, base, reading) as changes:
        for number in range(0, count, 2):
            changes.put(f"wiki/{number}/data.xml", other)
        tree = changes.finish()
    assert sorted(read) == [*[1] * (1 + count // 2), count]
    assert sum(1 for _ in store.differences(base, tree)) == count // 2


# -- the price ---------------------------------------------------------------------------------------------------------


def test_a_document_costs_the_same_however_many_lie_in_its_folder(tmp_path: Path) -> None:
    """Of a wiki or a forum all pages lie in one. The processor's time counts, git's included."""
    few, many = (_processor(Repository.create(tmp_path / f"{count}.git"), count) / count for count in (5_000, 40_000))
    assert many < 2 * few


def test_finding_a_document_costs_the_same_however_many_lie_in_its_folder(store: Repository) -> None:
    """As `verify` does, and a crawl for pages that failed: the way leads through a large folder each time."""
    blob, sizes, spent = store.write_blob(b"x"), (1_000, 30_000), []
    with store.rewriting(None) as changes:
        for size in sizes:
            for number in range(size):
                changes.put(f"{size}/{number}/data.xml", blob)
                changes.put(f"{size}/{number}/data.html", blob)
        tree = changes.finish()
    for size in sizes:
        begun = _used()
        for number in range(300):
            assert store.find(tree, f"{size}/{number}/data.xml") and store.find(tree, f"{size}/{number}/data.html")
        spent.append(_used() - begun)
    assert spent[1] < 4 * spent[0] + 0.1


def _processor(store: Repository, count: int) -> float:
    """Seconds of the processor, of this process and its children, to store so many documents in one folder."""
    begun = _used()
    with store.importer(None) as stream:
        for number in range(count):
            for name in ("data.php", "data.xml", "headers.http"):
                stream.put(f"index.php?id={number}/{name}", b"%s of page %d" % (name.encode(), number))
        stream.finish()
    return _used() - begun


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
