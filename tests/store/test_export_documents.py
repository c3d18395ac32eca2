"""Documents of a snapshot beside those of the one before: each file of a tree once, with the ARC that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.url_lists import Redirect, place_of, write_list
from webarcfs.export import selection
from webarcfs.export.selection import ExportedDocument, documents, listed_redirects

pytestmark = pytest.mark.store

_NAMES = ("a", "b", "a.b", "notes", "ü ")
_FILES = ("data.xml", "data.html", "headers.http", "x.txt")
_paths = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4).map("/".join)
_files = st.tuples(_paths, st.sampled_from(_FILES)).map("/".join)
#: Path → content; no file is a folder, since no folder has a file's name.
_trees = st.dictionaries(_files, st.sampled_from(("1", "2")), max_size=12)


@cache
def _store() -> Repository:
    return Repository.create(Path(mkdtemp(prefix="webarcfs-test-")) / "x.git")


@pytest.fixture(scope="module", autouse=True)
def _removed() -> Iterable[None]:
    yield
    import shutil

    shutil.rmtree(_store().path.parent)


def _written(tree: dict[str, str]) -> str:
    store = _store()
    return store.edit(store.write_tree([]), {path: store.write_blob(body.encode()) for path, body in tree.items()})


def _model(tree: dict[str, str]) -> dict[str, dict[str, str]]:
    """Folder → its own files, by the rule as it is written down."""
    arcs = {path.rpartition("/")[0] for path in tree if path.rpartition("/")[2] == "data.xml"}
    found: dict[str, dict[str, str]] = {}
    for path, body in tree.items():
        folder = own = path.rpartition("/")[0]
        while own not in arcs and own and not any(f"{arc}/".startswith(f"{own}/") for arc in arcs):
            own = own.rpartition("/")[0]
        if own not in arcs:
            own = folder
        found.setdefault(own, {})[path.removeprefix(f"{own}/")] = _store().write_blob(body.encode())
    return found


def _key(path: str) -> list[bytes]:
    return [name.encode() + b"/" for name in path.split("/")]


@settings(max_examples=examples(60), deadline=None)
@given(_trees, _trees, _trees)
def test_each_file_is_told_once_with_its_arc(
    tree: dict[str, str], before: dict[str, str], seen: dict[str, str]
) -> None:
    now, old, saw = map(_model, (tree, before, seen))
    whole = list(documents(_store(), _written(tree), _written(before), _written(seen)))
    assert {each.path: each.files for each in whole} == now
    assert [each.path for each in whole] == sorted(now, key=_key)
    arcs = [each for each in whole if each.data_xml]
    for each in arcs:
        beside = [found.get(each.path, {}) for found in (old, saw)]
        assert [each.before, each.seen] == [found if "data.xml" in found else None for found in beside]
    changed = documents(_store(), _written(tree), _written(before), every=False)
    assert [each.path for each in changed if each.data_xml] == [each.path for each in arcs if each.files != each.before]


def test_equal_folders_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _written({f"{name}/{number}/data.xml": "1" for name in "abc" for number in range(50)})
    tree = _store().edit(before, {"b/7/data.xml": _store().write_blob(b"2")})
    read: list[str] = []
    whole = _store().read_tree

    def counting(oid: str) -> bytes:
        read.append(oid)
        return whole(oid)

    monkeypatch.setattr(_store(), "read_tree", counting)
    assert [each.path for each in documents(_store(), tree, before, every=False)] == ["b/7"]
    assert len(read) < 12


def test_a_document_names_what_is_its_own() -> None:
    (found,) = documents(
        _store(), _written({"a/data.xml": "1", "a/data.html": "2", "a/headers.http": "3", "a/b/c.txt": "4", "a/d": "5"})
    )
    assert (found.path, found.data, found.is_whole, found.is_changed) == ("a", "data.html", True, True)
    assert [path for path, _ in found.additions()] == ["b/c.txt", "d"]
    assert found.seen is found.files and found.before is None
    assert selection.data_of({"b/data.html": "x"}) == ""
    assert not ExportedDocument("a", {"x.txt": "1"}, None, None).is_whole


def _redirect(number: int, target: str = "t") -> Redirect:
    return Redirect(f"http://e.org/{number}", 301, f"http://e.org/{target}", datetime(2026, 1, 1, tzinfo=UTC))


def _lists(redirects: Iterable[Redirect]) -> str:
    places: dict[str, list[Redirect]] = {}
    for each in redirects:
        places.setdefault(place_of(each.url), []).append(each)
    return _written({place: write_list(found).decode() for place, found in places.items()})


def test_redirects_are_told_beside_those_before_and_those_seen() -> None:
    now = [_redirect(number) for number in range(60)]
    before = [_redirect(number, "t" if number % 2 else "old") for number in range(40)]
    seen = [_redirect(number, "t" if number else "seen") for number in range(20)]
    found = list(listed_redirects(_store(), _lists(now), _lists(before), _lists(seen)))
    assert sorted(each.redirect for each in found if not each.only_seen) == sorted(now)
    assert {each.redirect for each in found if each.was_there} == set(now) & set(before)
    assert {each.redirect for each in found if each.is_seen} == set(seen)
    assert [each.redirect for each in found if each.only_seen] == [_redirect(0, "seen")]
    alone = list(listed_redirects(_store(), _lists(now)))
    assert all(each.is_seen and not each.was_there for each in alone)
    assert [each.redirect.url for each in alone] == sorted(
        (each.url for each in now), key=lambda url: (place_of(url), url)
    )
    assert list(documents(_store(), _lists(now))) == []
