"""Git's bytes of a tree as lines, and what differs between two of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.git.writing import FILE, FOLDER, Line, changed_lines, key, read_lines
from webarcfs.archive.model.errors import Damaged

pytestmark = pytest.mark.pure

_ONE, _TWO = b"1" * 20, b"\0\n" * 10
_NAMES = st.binary(min_size=1, max_size=4).filter(lambda name: b"\0" not in name and b"/" not in name)
_TREES = st.dictionaries(_NAMES, st.tuples(st.sampled_from([FILE, FOLDER]), st.sampled_from([_ONE, _TWO])), max_size=6)


def _file(name: bytes, oid: bytes = _ONE) -> Line:
    return FILE, name, oid


def _folder(name: bytes, oid: bytes = _ONE) -> Line:
    return FOLDER, name, oid


def _raw(*tree: Line) -> bytes:
    return b"".join(mode + b" " + name + b"\0" + oid for mode, name, oid in tree)


@pytest.mark.parametrize(
    "tree",
    [
        [],
        [_file(b"a")],
        [_file(b"a b"), _folder(b"c", _TWO), (b"100755", b"d", _ONE), (b"120000", b"e", _ONE)],
        [(b"040000", b"old", _ONE)],
        [_file(b"\xff\n\\ 100644 x", _TWO)],
    ],
)
def test_lines_are_read_as_they_were_written(tree: list[Line]) -> None:
    assert list(read_lines(_raw(*tree), "x")) == tree


@pytest.mark.parametrize(
    "raw",
    [
        b"x",
        b"100644 a\0" + b"1" * 19,
        b"100644 \0" + b"1" * 20,
        b"100944 a\0" + b"1" * 20,
        _raw(_file(b"a")) + b"100644 b",
        b"\0" + _raw(_file(b"a")),
    ],
)
def test_what_is_no_tree_is_damage(raw: bytes) -> None:
    with pytest.raises(Damaged, match="tree 17 is no tree"):
        list(read_lines(raw, "tree 17"))


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ([], [], []),
        ([_file(b"a")], [_file(b"a")], []),
        ([_file(b"a")], [_file(b"a", _TWO)], [(_file(b"a"), _file(b"a", _TWO))]),
        ([], [_file(b"a")], [(None, _file(b"a"))]),
        ([_file(b"a"), _file(b"b")], [_file(b"b")], [(_file(b"a"), None)]),
        # a file and a folder of one name are two things, and `.` sorts between them
        ([_file(b"a")], [_folder(b"a")], [(_file(b"a"), None), (None, _folder(b"a"))]),
        (
            [_file(b"a"), _file(b"a.b")],
            [_file(b"a.b"), _folder(b"a")],
            [(_file(b"a"), None), (None, _folder(b"a"))],
        ),
        # the mode alone is no change: nothing of ours sets another one
        ([(b"100755", b"a", _ONE)], [_file(b"a")], []),
        ([(b"040000", b"a", _ONE)], [_folder(b"a")], []),
    ],
)
def test_changed(before: list[Line], after: list[Line], pairs: list[tuple[Line | None, Line | None]]) -> None:
    assert list(changed_lines(iter(before), iter(after))) == pairs


@given(_TREES, _TREES)
def test_what_is_told_as_changed_leads_from_one_tree_to_the_other(
    first: dict[bytes, tuple[bytes, bytes]], second: dict[bytes, tuple[bytes, bytes]]
) -> None:
    before, after = (
        sorted(((mode, name, oid) for name, (mode, oid) in each.items()), key=key) for each in (first, second)
    )
    pairs = list(changed_lines(iter(before), iter(after)))
    made = set(before) - {was for was, _ in pairs if was} | {now for _, now in pairs if now}
    assert made == set(after)
    assert all(was != now for was, now in pairs)
