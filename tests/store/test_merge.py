"""Additions that came while a crawl was being prepared (/Ar-10/)."""

import logging
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.arcs import additions_of, arcs_of, files_of_arc, tree_of
from tests.support.properties import examples
from webarcfs.archive.additions.placement import additions_since
from webarcfs.archive.git.repository import Repository

pytestmark = pytest.mark.store


def test_an_addition_to_an_arc_that_stayed_is_kept(store: Repository) -> None:
    before = tree_of(store, {"a": "1", "b": "1"}, ["a/old.txt"])
    after = tree_of(store, {"a": "1", "b": "1"}, ["a/old.txt", "a/new.txt", "a/deep/er/new.txt", "b/new.txt"])
    crawled = tree_of(store, {"a": "1", "b": "2", "c": "1"}, ["a/old.txt"])
    merged = additions_since(store, before, after, crawled)
    assert arcs_of(store, merged) == {"a", "b", "c"}
    assert additions_of(store, merged) == {"a/old.txt", "a/new.txt", "a/deep/er/new.txt"}


def test_what_goes_is_logged(store: Repository, caplog: pytest.LogCaptureFixture) -> None:
    before = tree_of(store, {"a": "1", "gone": "1"})
    after = tree_of(store, {"a": "1", "gone": "1"}, ["a/x.txt", "a/deep/y.txt", "gone/z.txt"])
    with caplog.at_level(logging.WARNING):
        merged = additions_since(store, before, after, tree_of(store, {"a": "2"}))
    assert merged == tree_of(store, {"a": "2"})
    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {
        "a/x.txt",
        "a/deep/y.txt",
        "gone/z.txt",
    }


def test_a_data_xml_that_was_extended_is_kept(store: Repository) -> None:
    before = tree_of(store, {"a": "1", "b": "1"})
    extended = {f"{arc}/data.xml": store.write_blob(b"extended") for arc in ("a", "b")}
    merged = additions_since(store, before, store.edit(before, extended), tree_of(store, {"a": "1", "b": "2", "c": ""}))
    read = {arc: store.find(merged, f"{arc}/data.xml") for arc in ("a", "b")}
    assert read["a"] is not None and store.read(read["a"].oid) == b"extended"
    assert read["b"] is not None and store.read(read["b"].oid) == files_of_arc("b", "2")["b/data.xml"]


def test_an_arc_that_was_replaced_by_the_same_bytes_is_replaced(store: Repository) -> None:
    """`unchanged = "replace"`: the same body and head, and a data.xml of the new crawl."""
    before = tree_of(store, {"a": "1"})
    after = store.edit(
        before, {"a/new.txt": store.write_blob(b"added"), "a/data.xml": store.write_blob(b"old meta, new node")}
    )
    crawled = store.edit(before, {"a/data.xml": store.write_blob(b"new meta")})
    assert additions_since(store, before, after, crawled) == crawled


def test_a_page_takes_the_place_of_an_addition(store: Repository) -> None:
    """If a crawled ARC needs the name of an addition, the addition goes: never the page."""
    before = tree_of(store, ["blog"])
    crawled = tree_of(store, ["blog", "blog/file", "blog/folder", "blog/way/to/page"])
    after = tree_of(
        store, ["blog"], ["blog/file", "blog/folder/x.txt", "blog/way/x.txt", "blog/way/to/x.txt", "blog/fine.txt"]
    )
    merged = additions_since(store, before, after, crawled)
    assert arcs_of(store, merged) == arcs_of(store, crawled)
    assert additions_of(store, merged) == {"blog/fine.txt"}
    assert store.check() == []


def test_an_arc_inside_one_that_was_replaced_keeps_its_own(store: Repository) -> None:
    before = tree_of(store, {"blog": "1", "blog/x": "1"})
    after = tree_of(store, {"blog": "1", "blog/x": "1"}, ["blog/new.txt", "blog/x/new.txt"])
    merged = additions_since(store, before, after, tree_of(store, {"blog": "2", "blog/x": "1"}))
    assert additions_of(store, merged) == {"blog/x/new.txt"}
    merged = additions_since(store, before, after, tree_of(store, {"blog/x": "1"}))
    assert (arcs_of(store, merged), additions_of(store, merged)) == ({"blog/x"}, {"blog/x/new.txt"})


def test_an_addition_that_was_renamed_meanwhile(store: Repository) -> None:
    before = tree_of(store, ["a", "b"], ["a/old.txt", "b/old.txt"])
    after = tree_of(store, ["a", "b"], ["a/new.txt", "b/new.txt"])
    crawled = tree_of(store, {"a": "", "b": "2", "c": ""}, ["a/old.txt"])
    assert additions_of(store, additions_since(store, before, after, crawled)) == {"a/new.txt"}
    page = tree_of(store, ["a", "b", "a/old.txt"], ["b/old.txt"])
    merged = additions_since(store, before, after, page)
    assert arcs_of(store, merged) == {"a", "b", "a/old.txt"}, "the page that took the old name stays"


def test_nothing_came(store: Repository) -> None:
    before, crawled = tree_of(store, ["a"]), tree_of(store, ["b"])
    assert additions_since(store, before, before, crawled) == crawled
    assert additions_since(store, before, tree_of(store, ["a"], ["a/x"]), before) == tree_of(store, ["a"], ["a/x"])


arcs = st.sampled_from(["a", "a/b", "a/b/c", "d", "d/e"])
versions = st.sampled_from(["1", "2"])
states = st.dictionaries(arcs, versions, max_size=5)


@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states, states, st.sets(arcs), st.sets(arcs))
def test_against_a_naive_model(
    store: Repository, old: dict[str, str], new: dict[str, str], first: set[str], then: set[str]
) -> None:
    """An addition is there in the end if its ARC is the version that it was made in; the ARCs are the crawl's."""
    had = {f"{arc}/one.txt" for arc in first if arc in old}
    came = {f"{arc}/{name}" for arc in then if arc in old for name in ("two.txt", "own/three.txt")}
    before, after = tree_of(store, old, had), tree_of(store, old, had | came)

    def stay(paths: Iterable[str]) -> set[str]:
        return {path for path in paths if new.get(_arc(path)) == old[_arc(path)]}

    crawled = tree_of(store, new, stay(had))
    merged = additions_since(store, before, after, crawled)
    assert merged == tree_of(store, new, stay(had | came))


def _arc(path: str) -> str:
    return path.removesuffix("/own/three.txt").removesuffix("/one.txt").removesuffix("/two.txt")


def test_many_additions_in_a_big_folder_are_quick(store: Repository) -> None:
    """All happens under the domain's exclusive lock."""
    with store.importer(None) as importer:
        for n in range(3000):
            importer.put(f"pages/{n}.html/data.xml", b"x")
        before = importer.finish()
    blob = store.write_blob(b"42")
    after = store.edit(before, {f"pages/{n}.html/words.txt": blob for n in range(3000)})
    crawled = store.edit(before, {"pages/1.html/data.xml": blob, "pages/new.html/data.xml": blob})
    merged = additions_since(store, before, after, crawled)
    assert len(additions_of(store, merged)) == 2999
