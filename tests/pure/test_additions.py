"""Additions as lines of a journal, their logs, their commits and their pace."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.additions.commit_additions import LONGEST, MOST, OWN_BYTES, groups, newest, next_commit
from webarcfs.archive.additions.journal_log import HEADER, frame, is_newer, scan
from webarcfs.archive.model.additions import (
    AddFile,
    Addition,
    AddNodes,
    ArcVersion,
    Author,
    Cost,
    Move,
    Removal,
    decode,
    encode,
)
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import AdditionsMessage, CommitTag, parse_message, quoted
from webarcfs.archive.system.files import blob_hash, blob_id

pytestmark = pytest.mark.pure

# Names come from the kernel as bytes; what is no UTF-8 travels as surrogates.
names = st.binary(min_size=1, max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
places = st.builds(ArcVersion, names, names, names)
authors = st.builds(Author, names, names)
times = st.integers(0, 1 << 40)
bodies = st.binary(max_size=200)


@st.composite
def additions(draw: st.DrawFn) -> tuple[Addition, bytes]:
    """An addition with its body."""
    body, place, author, time = draw(bodies), draw(places), draw(authors), draw(times)
    path = draw(names)
    kinds: tuple[Addition, ...] = (
        AddFile(place, path, blob_id(body), len(body), author, time, draw(st.sampled_from(["", "0" * 40]))),
        AddNodes(place, body, author, time, draw(st.sampled_from(["", path]))),
        Move(place, path, draw(names), author, time),
        Removal(place, path, author, time),
    )
    addition = draw(st.sampled_from(kinds))
    return addition, b"" if isinstance(addition, Move | Removal) else body


@given(additions())
def test_an_addition_comes_back_from_its_line(given_: tuple[Addition, bytes]) -> None:
    addition, body = given_
    line = encode(addition)
    assert b"\n" not in line and line.isascii()
    assert decode(line, body) == addition


OF_NO_KIND = encode(AddNodes(ArcVersion("d", "a", "v"), b"", Author("a", "m"), 1)).replace(b"nodes", b"other")


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"nonsense", b'{"kind":"what"}', OF_NO_KIND])
def test_what_is_no_addition_is_damage(line: bytes) -> None:
    with pytest.raises(Damaged):
        decode(line)


@given(bodies)
def test_a_body_is_named_as_git_names_it(body: bytes) -> None:
    digest = blob_hash(len(body))
    digest.update(body)
    assert digest.hexdigest() == blob_id(body) == hashlib.sha1(b"blob %d\0%s" % (len(body), body)).hexdigest()


# -- logs --------------------------------------------------------------------------------------------------------------


@given(st.lists(additions(), max_size=5), st.integers(0, 100))
def test_records_come_back_from_a_log(each: list[tuple[Addition, bytes]], start: int) -> None:
    data = b"".join(frame(n, addition, body) for n, (addition, body) in enumerate(each, 1))
    found = scan(data, start)
    assert [record.number for record in found.records] == list(range(1, len(each) + 1))
    assert [record.addition for record in found.records] == [addition for addition, _ in each]
    bodies_found = [data[r.offset - start : r.offset - start + r.size] for r in found.records]
    assert [body for body, (a, _) in zip(bodies_found, each, strict=True) if not isinstance(a, Move)] == [
        body for a, body in each if not isinstance(a, Move)
    ]
    assert (found.end, found.damage, found.tail) == (start + len(data), (), "")


@given(st.lists(additions(), min_size=1, max_size=4), st.data())
def test_a_log_that_was_cut_anywhere_keeps_what_is_whole(
    each: list[tuple[Addition, bytes]], data: st.DataObject
) -> None:
    """kill -9 and power failure: the end is torn, or zeros; no record is ever half there."""
    frames = [frame(n, addition, body) for n, (addition, body) in enumerate(each, 1)]
    raw = b"".join(frames)
    cut = data.draw(st.integers(0, len(raw)))
    whole = next(n for n in range(len(frames), -1, -1) if len(b"".join(frames[:n])) <= cut)
    found = scan(raw[:cut], 0)
    assert [record.number for record in found.records] == list(range(1, whole + 1))
    assert found.end == len(b"".join(frames[:whole]))
    assert found.tail == ("" if cut == found.end else "torn")
    # A record may end in zeros, and be whole with them.
    padded = scan(raw[:cut] + bytes(5000), 0)
    assert padded.records[:whole] == found.records and len(padded.records) <= whole + 1


@given(st.lists(additions(), min_size=2, max_size=5), st.data())
def test_a_byte_that_changed_costs_one_record(each: list[tuple[Addition, bytes]], data: st.DataObject) -> None:
    frames = [frame(n, addition, body) for n, (addition, body) in enumerate(each, 1)]
    raw = bytearray(b"".join(frames))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    hit = next(n for n in range(1, len(frames) + 1) if at < len(b"".join(frames[:n])))
    found = scan(bytes(raw), 0)
    assert [record.number for record in found.records] == [n for n in range(1, len(frames) + 1) if n != hit]
    assert found.tail or found.damage


def test_a_newer_format_is_told_from_a_damaged_one() -> None:
    assert is_newer(b"webarcfs journal 3\n") and is_newer(b"webarcfs journal 10\n")
    assert not is_newer(HEADER) and not is_newer(b"garbage")


# -- commits -----------------------------------------------------------------------------------------------------------

ANNA, BERT = Author("anna", "a@h"), Author("bert", "b@h")
PLACE, OTHER = ArcVersion("d", "a", "v"), ArcVersion("d", "b", "v")


def file(
    name: str, author: Author = ANNA, place: ArcVersion = PLACE, blob: str = "1" * 40, replaces: str = ""
) -> AddFile:
    return AddFile(place, name, blob, 1, author, 1, replaces)


def test_authors_that_take_turns_make_two_commits() -> None:
    turns = [file(f"{n}", (ANNA, BERT)[n % 2]) for n in range(6)]
    assert groups(turns) == [[0, 2, 4], [1, 3, 5]]


def test_what_touches_one_name_keeps_its_order() -> None:
    """Data nodes of two authors in one data.xml stand there in the order in which they were confirmed."""
    nodes = [AddNodes(place, b"", author, 1) for place, author in ((PLACE, ANNA), (PLACE, BERT), (PLACE, ANNA))]
    assert groups([*nodes, file("x"), file("y", BERT)]) == [[0], [1, 4], [2, 3]]


def test_commits_are_bounded() -> None:
    assert [len(each) for each in groups([file(f"{n}") for n in range(MOST + 1)])] == [MOST, 1]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([ANNA, BERT]), st.sampled_from([PLACE, OTHER]))))
def test_groups_hold_each_addition_once_in_order(what: list[tuple[str, Author, ArcVersion]]) -> None:
    each = [file(*every) for every in what]
    made = groups(each)
    assert sorted(index for group in made for index in group) == list(range(len(each)))
    order = {index: (number, index) for number, group in enumerate(made) for index in group}
    for number, group in enumerate(made):
        assert len({each[index].author for index in group}) == 1 and group == sorted(group), number
    for later in range(len(each)):
        for earlier in range(later):
            if (each[earlier].place, each[earlier].path) == (each[later].place, each[later].path):
                assert order[earlier] < order[later]


def test_only_the_last_version_of_a_file_is_wanted() -> None:
    row = [file("x", blob="1"), file("x", blob="2", replaces="1"), file("y"), file("x", blob="3", replaces="2")]
    assert newest(row) == {2: row[2], 3: file("x", blob="3")}
    row = [file("x", blob="1"), Move(PLACE, "x", "y", ANNA, 1), file("x", blob="2", replaces="1")]
    assert newest(row) == dict(enumerate(row))
    row = [file("x", blob="2", replaces="1"), file("x", blob="3", replaces="2")]
    assert newest(row) == {1: file("x", blob="3", replaces="1")}, "git has the first, and never the second"


QUOTED = {
    "plain.txt": "plain.txt",
    "a b": "a b",
    'q"uote': r'"q\"uote"',
    "back\\slash": r'"back\\slash"',
    "new\nline": r'"new\nline"',
    "bücher": r'"b\303\274cher"',
    "x\udce9": r'"x\351"',
    "\x7f\a": r'"\177\a"',
}


@pytest.mark.parametrize("path", QUOTED, ids=range(len(QUOTED)))
def test_a_path_is_quoted_as_git_does(path: str) -> None:
    assert quoted(path) == QUOTED[path]


def test_a_commit_of_additions_is_no_crawl() -> None:
    tag = CommitTag.parse("2026-11-21T03:00:00@www.example.org")
    message = parse_message(str(AdditionsMessage(tag, ["a/x", "a/y"], [("a/o", "a/n")])))
    assert (message.tag, message.is_crawl, message.all("Added")) == (tag, False, ["a/x", "a/y"])
    assert message.all("Renamed") == ["a/o -> a/n"]


# -- pace --------------------------------------------------------------------------------------------------------------


def test_a_commit_follows_within_the_interval_where_commits_are_cheap() -> None:
    assert next_commit(1.0, Cost(), 0.0, 100.0, 1) == 101.0
    assert next_commit(1.0, Cost(0.05, 2_000, 1), 100.0, 100.0, 1) == pytest.approx(101.0)


def test_a_dear_commit_waits_until_it_brings_what_its_trees_cost() -> None:
    """A folder of 60,000 ARCs: 2 MB for each commit."""
    dear = Cost(0.5, 2 << 20, 1)
    assert next_commit(1.0, dear, 100.0, 100.0, 1) == 100.0 + LONGEST
    assert next_commit(1.0, dear, 100.0, 100.0, (2 << 20) // OWN_BYTES + 1) == 102.5, (
        "half a second is a fifth of the time"
    )
    assert next_commit(1.0, dear, 100.0, 500.0, 1) == 501.0, "after a long rest it is done at once"


def test_commits_take_a_share_of_the_time() -> None:
    assert next_commit(1.0, Cost(4.0, 0, 1), 100.0, 100.0, 1) == pytest.approx(120.0)


seconds = st.floats(0, 1e6)


@given(st.floats(0.01, 60), st.builds(Cost, seconds, st.integers(0, 1 << 30)), seconds, seconds, st.integers(1, 10**6))
def test_no_addition_waits_too_long_and_more_of_them_never_wait_longer(
    interval: float, cost: Cost, ended: float, oldest: float, waiting: int
) -> None:
    due = next_commit(interval, cost, ended, oldest, waiting)
    assert oldest + interval <= due <= oldest + interval + LONGEST
    assert next_commit(interval, cost, ended, oldest, waiting + 1) <= due
