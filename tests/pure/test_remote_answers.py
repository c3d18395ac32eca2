"""What a client makes of a server's answers: the ARCs of a stream of files, texts for a terminal, events."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.client.event_stream import ServerEvent, events_of
from webarcfs.client.remote_answers import arcs_of, printable
from webarcfs.client.server_address import ServerAddress, queried, quoted

pytestmark = pytest.mark.pure

Tree = dict[str, "Tree | bytes"]
NAMES = st.sampled_from(["a", "b", "more", "data.html", "data.xml", "headers.http", "z.txt"])
TREES = st.recursive(
    st.dictionaries(NAMES, st.binary(max_size=3), max_size=4),
    lambda below: st.dictionaries(NAMES, st.one_of(below, st.binary(max_size=3)), max_size=4),
    max_leaves=20,
)


def walk(tree: Tree, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for name, content in sorted(tree.items()):
        if isinstance(content, bytes):
            yield prefix + name, content
        else:
            yield from walk(content, f"{prefix}{name}/")


def is_arc(tree: Tree) -> bool:
    return isinstance(tree.get("data.xml"), bytes)


def arcs(tree: Tree, path: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    for name, content in tree.items():
        if isinstance(content, dict):
            yield from arcs(content, f"{path}/{name}" if path else name)
    if is_arc(tree):
        yield path, dict(own(tree, ""))


def own(tree: Tree, prefix: str) -> Iterator[tuple[str, bytes]]:
    for name, content in tree.items():
        if isinstance(content, bytes):
            yield prefix + name, content
        elif not is_arc(content):
            yield from own(content, f"{prefix}{name}/")


@given(TREES)
def test_a_walk_through_a_tree_has_its_arcs(tree: Tree) -> None:
    """Whatever lies in whatever: a folder with data.xml is an ARC, another one belongs to the ARC above it."""
    root: Tree = {"site": tree}
    found = [
        (path, {name: stream.read() for name, stream in files.items()})
        for path, files in arcs_of((path, io.BytesIO(body)) for path, body in walk(root))
    ]
    assert sorted(found) == sorted(arcs(root, ""))


def test_files_that_are_in_no_arc_are_closed() -> None:
    streams = {path: io.BytesIO(b"x") for path in ("a/b/c", "a/data.xml", "loose", "z/y")}
    arc = next(arcs_of(iter(streams.items())))
    assert arc[0] == "a" and sorted(arc[1]) == ["b/c", "data.xml"]
    assert list(arcs_of(iter(streams.items()))) == [("a", {"data.xml": streams["a/data.xml"], "b/c": streams["a/b/c"]})]
    assert streams["loose"].closed and streams["z/y"].closed and not streams["a/b/c"].closed


@given(st.text(), st.integers(0, 20))
def test_a_text_of_a_server_steers_no_terminal(text: str, length: int) -> None:
    assert all(char.isprintable() or char == "\n" for char in printable(text * length))


@given(st.lists(st.integers(0, 59), max_size=20), st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_events_are_read_however_they_come(seconds: list[int], sizes: list[int]) -> None:
    tags = [f"2021-03-01T12:00:{second:02}@example.org" for second in seconds]
    stream = b"".join(
        f": comment\r\n\nid: {tag}\ndata: {tag}\nevent: snapshot\n{end}".encode()
        for tag, end in zip(tags, ["\n", "\r\n"] * len(tags), strict=False)
    )
    pieces = []
    while stream:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(stream[:size])
        stream = stream[size:]
    assert [event for some in events_of(pieces, "server") for event in some] == [ServerEvent(tag, tag) for tag in tags]


def test_an_event_without_an_id_leaves_the_place() -> None:
    first, later = "2021-03-01T12:00:00@example.org", "2021-02-01T12:00:00@example.org"
    stream = f"id: {first}\ndata: {first}\n\ndata: {later}\n\n".encode()
    assert list(events_of([stream], "server")) == [[ServerEvent(first, first), ServerEvent(later, first)]]


def test_an_event_that_is_no_tag_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Damaged, match="no commitTag"):
        list(events_of([b"data: nonsense\n\n"], "server"))
    monkeypatch.setattr("webarcfs.client.event_stream._LONGEST_LINE", 10)
    with pytest.raises(Damaged, match="more than 10 bytes"):
        list(events_of([b"data: " + b"x" * 100], "server"))


def test_names_are_sent_as_bytes() -> None:
    assert quoted("2021-03-01T12:00:00@a.org", "x y/100%25/a?b#c\udcff") == (
        "/2021-03-01T12:00:00@a.org/x%20y/100%2525/a%3Fb%23c%FF"
    )
    assert queried(name="more/\u00e9\udcff&x=1", limit=0, after="", at=None) == "?name=more%2F%C3%A9%FF%26x%3D1&limit=0"


@given(st.text())
def test_any_text_is_an_address_or_an_error(text: str) -> None:
    for url in (text, f"http://{text}", f"https://host/{text}"):
        try:
            address = ServerAddress.parse(url, "webarc_secret", may_send_plainly=True)
        except UsageError:
            continue
        assert "secret" not in repr(address)
        assert address.is_origin_of(address.origin) and address.base.endswith("/api/v1")
