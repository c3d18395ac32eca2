"""Names in folders of git, looked up in git's bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import archives
from webarcfs.archive.git.repository import TreeEntry
from webarcfs.archive.model.errors import Damaged
from webarcfs.export.static_places import Folders, SiteFolder

_NAMES = st.one_of(
    st.sampled_from(["a", "b", "x 40000 a", "40000 a", "100644 a", "a 40000 b", "40000", "é"]),
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=6),
)


def written(entries: dict[str, bool]) -> bytes:
    """A tree as git writes it: name → whether it is a folder. Ids begin with what looks like a line."""
    lines = sorted(
        (os.fsencode(name) + (b"/" if is_folder else b""), name, is_folder) for name, is_folder in entries.items()
    )
    return b"".join(
        b"%s %s\0%s" % (b"40000" if is_folder else b"100644", os.fsencode(name), identity(name))
        for _, name, is_folder in lines
    )


def identity(name: str) -> bytes:
    return (b"40000 a\0" + hashlib.sha1(name.encode()).digest())[:20]


@pytest.mark.pure
@given(st.dictionaries(_NAMES, st.booleans(), max_size=20), _NAMES)
def test_a_name_is_found_as_what_it_is_and_no_part_of_another_one_is(entries: dict[str, bool], other: str) -> None:
    folder = SiteFolder(written(entries), "x")
    for name in (*entries, other):
        wanted = identity(name).hex()
        assert folder.folder(name) == (wanted if entries.get(name) is True else None)
        assert folder.file(name) == (wanted if entries.get(name) is False else None)


@pytest.mark.pure
def test_what_is_no_tree_is_told() -> None:
    with pytest.raises(Damaged, match="here is no tree"):
        SiteFolder(b"no tree", "here")


@pytest.mark.store
def test_it_is_what_git_says(tmp_path: Path) -> None:
    store = archives.store_of(archives.make_archive(tmp_path))
    blob = store.write_blob(b"x")
    below = store.write_tree([TreeEntry("f", blob, False)])
    tree = store.write_tree(
        [TreeEntry(f"n{number}", below if number % 2 else blob, number % 2 == 1) for number in range(300)]
    )
    folders = Folders()
    for number in range(300):
        name = f"n{number}"
        found = folders.read(store, tree)
        assert (found.folder(name) or found.file(name)) == (
            store.names(tree).find(name) or TreeEntry("", "", False)
        ).oid
    assert folders.read(store, below).file("f") == blob
