"""HTML of any depth, with any number of attributes (/Cr-8/): all of it is heard, in time that grows as pages do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.memory import kept
from tests.support.properties import examples
from webarcfs.content.markup import DEEPEST, MarkupListener, Tokenizer, stream_findings
from webarcfs.content.outlinks import Link, anchors_of, links_of
from webarcfs.content.reference_table import LinkPurpose
from webarcfs.content.text import title_of

pytestmark = pytest.mark.pure

BASE = "http://e.org/"


def links(page: bytes) -> list[Link]:
    return links_of(page, BASE, "text/html", "utf-8")


def anchors(page: bytes) -> list[str]:
    return [link.target for link in anchors_of([page], BASE, "utf-8")]


def title(page: bytes) -> str:
    return title_of([page], "utf-8", "text/html")


class _Heard(MarkupListener[tuple[str, str, tuple[tuple[str, str], ...]]]):
    """All that there is to hear, text in one piece."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.found.append(("start", tag, tuple(attributes.items())))

    def ended(self, tag: str) -> None:
        self.found.append(("end", tag, ()))

    def data(self, data: str) -> None:
        self.found.append(("data", data, ()))


def _text(heard: list[tuple[str, str, tuple[tuple[str, str], ...]]]) -> str:
    return "".join(text for what, text, _ in heard if what == "data")


def _starts(heard: list[tuple[str, str, tuple[tuple[str, str], ...]]]) -> list[tuple[str, object]]:
    return [
        (tag, attributes) for what, tag, attributes in heard if what == "start" and tag not in ("html", "body", "p")
    ]


def tokenized(*pieces: str) -> list[tuple[str, str, tuple[tuple[str, str], ...]]]:
    heard = _Heard()
    tokens = Tokenizer(heard)
    for piece in pieces:
        tokens.feed(piece)
    tokens.close()
    return heard.found


# -- depth


@pytest.mark.large
@pytest.mark.parametrize("levels", [300, 20_000])
@pytest.mark.parametrize("tags", ["<div>", "<font>", "<b>", "<blockquote>", "<ul><li>", "<table><tr><td>"])
def test_links_of_any_depth_are_found_in_order(tags: str, levels: int) -> None:
    page = "".join(f"{tags}<a href={number}>{number}</a>" for number in range(levels)).encode()
    expected = [f"{BASE}{number}" for number in range(levels)]
    assert [link.url for link in links(page)] == expected
    assert anchors(page) == expected


def test_links_of_all_kinds_are_found_below_many_levels() -> None:
    inner = """<base href=/d/><a href='a?x&amp;y'>a</a><IMG SRC=b srcset="c 1x, d 2x"><svg><a xlink:href=e></a></svg>
        <style>b { background: url(f) }</style><p style='background:url("g")'><!-- <a href=no> --><script>"<a href=no>"
        </script><textarea><a href=no></textarea><meta http-equiv=refresh content='0; url=h'><a href=i"""
    shallow = links(inner.encode())
    assert [(link.url.removeprefix(f"{BASE}d/"), link.kind) for link in shallow] == [
        ("a?x&y", LinkPurpose.LINK), ("b", LinkPurpose.REQUISITE), ("c", LinkPurpose.REQUISITE),
        ("d", LinkPurpose.REQUISITE), ("e", LinkPurpose.LINK),
        ("f", LinkPurpose.REQUISITE), ("g", LinkPurpose.REQUISITE), ("h", LinkPurpose.LINK),
    ]  # fmt: skip
    assert links(b"<div>" * 1000 + inner.encode()) == shallow


def test_words_of_links_below_many_levels() -> None:
    page = b"<b>" * 1000 + b"<a href=x>one &amp; <i>two</i></a> three <a href=y title=four></a>"
    found = [(link.target, link.text) for link in anchors_of([page], BASE, "utf-8")]
    assert found == [(f"{BASE}x", "one & two"), (f"{BASE}y", "four")]


def test_a_title_below_many_levels() -> None:
    assert title(b"<svg><title>drawing</title></svg>" + b"<div>" * 1000 + b"<title>a &amp; b</title>") == "a & b"


@pytest.mark.large
@given(st.integers(1, 3 * DEEPEST), st.integers(1, 3 * DEEPEST))
@settings(max_examples=examples(25), deadline=None)
def test_each_link_is_told_once_where_a_page_gets_deep(before: int, deep: int) -> None:
    """Also those before the place, which another reader finds a second time."""
    page = "".join(f"<p><a href={number}>x</a></p>" for number in range(before)) + "<font>" * deep + "<a href=end>"
    assert anchors(page.encode() + b"x" * 100_000) == [f"{BASE}{number}" for number in range(before)] + [f"{BASE}end"]


# -- time


@pytest.mark.large
@pytest.mark.parametrize(
    "shape",
    [
        lambda size: b"<a " + b"".join(b"a%d " % number for number in range(size // 8)) + b">",
        lambda size: b"<a " + b"".join(b"a%d='>' " % number for number in range(size // 12)) + b">",
        lambda size: b"<div>" * (size // 10) + b"</p>" * (size // 10),
        lambda size: b"<font></p>" * (size // 10),
        lambda size: b"</html><p>" * (size // 10),
        lambda size: b"<b>" * 500 + b"<a b='" * (size // 6),
        lambda size: b"<b>" * 500 + b"<!--" * (size // 4),
        lambda size: b"<b>" * 500 + b"<script></" * (size // 10),
        lambda size: b"<b>" * 500 + b"<title>" * (size // 7),
        lambda size: b"<b>" * 500 + b"<" * size,
        lambda size: b"<b>" * 500 + b"&#" + b"0" * size,
        lambda size: b"<b>" * 500 + b"<a href='" + b"x" * size,
    ],
    ids=["attributes", "quoted", "ends", "fonts", "html", "values", "comments", "scripts", "titles", "<", "0", "long"],
)  # fmt: skip
@pytest.mark.parametrize("read", [links, anchors, title], ids=["links", "anchors", "title"])
def test_time_grows_as_the_page_does(read: Callable[[bytes], object], shape: Callable[[int], bytes]) -> None:
    """Four times as much takes about four times as long; where it grew with the square, sixteen times."""
    seconds = []
    for size in (1 << 17, 1 << 19):
        page = shape(size)
        begun = time.process_time()
        read(page)
        seconds.append(time.process_time() - begun)
    assert all(later < 9 * max(earlier, 0.05) for earlier, later in pairwise(seconds)), seconds


# -- memory


@pytest.mark.large
@pytest.mark.parametrize(
    "page",
    [
        b"<title>a</title><p>b <a href=c>d</a>",
        b"<title>a</title>" + b"<b>" * 2 * DEEPEST + b"<a href=c>d</a>",
        b"<title>a",
        b"",
    ],
    ids=["whole", "deep", "open", "empty"],
)
@pytest.mark.parametrize("read", [links, anchors, title], ids=["links", "anchors", "title"])
def test_nothing_stays_of_a_page(read: Callable[[bytes], object], page: bytes) -> None:
    """A parser of lxml that is not closed, or whose target raised, leaves some 300 bytes of each document."""
    assert kept(lambda: read(page), 1000) < 50


# -- the tokenizer


PIECES = st.one_of(
    st.text(alphabet="ab <>/='\"&;!-é", max_size=8),
    st.sampled_from([
        "<a href=x>", "<a href='x y' B=1 b=2>", '<img src="&amp;<b>">', "</a>", "</font >", "<br/>", "<i\n>", "<!--",
        "-->", "--!>", "<!doctype html>", "<?x?>",
        "<script>", "</script>", "<style>", "</STYLE>", "<textarea>", "</textarea >", "&lt;",
        "&#65;", "&#0;", "&#xD800;", "&#99999999999;", "\ud800",
    ]),
)  # fmt: skip


@given(st.lists(PIECES).map("".join), st.integers(1, 7))
@example("<a b=>", 1)
@example("</é><a b='", 1)
@settings(deadline=None)
def test_tokens_do_not_depend_on_the_pieces(page: str, size: int) -> None:
    whole, cut = tokenized(page), tokenized(*(page[at : at + size] for at in range(0, len(page), size)))
    assert [each for each in whole if each[0] != "data"] == [each for each in cut if each[0] != "data"]
    assert _text(whole) == _text(cut)


def test_numbers_that_python_does_not_read() -> None:
    assert _text(tokenized("&#" + "0" * 5000 + "65;&#" + "9" * 5000 + ";&#x" + "f" * 5000 + ";")).count("\ufffd") == 3


TAGS = st.builds(
    "<{}{}>".format,
    st.sampled_from(["a", "b", "IMG", "font", "br", "span", "x-y", "svg"]),
    st.lists(
        st.sampled_from(
            [" ", "\n", "/", " href=x", ' src="a b"', " alt='&amp;>'", " b", " B = 1", " c=&lt;d", " =e", " f='' "]
        )
    ).map("".join),
)  # fmt: skip
PLAIN = st.sampled_from(
    ["text", "&amp;", "<!-- <a> -->", "<!-->", "<?x>", "</b>", "</a\n>", "</font x>", "<", " < ", "&", "é"]
)
RAW = st.sampled_from(
    ["<script>a<b>'</script>", "<style><a></style >", "<textarea>&lt;<b></textarea>", "<script/></SCRIPT>"]
)


@pytest.mark.large
@given(st.lists(st.one_of(TAGS, PLAIN, RAW), max_size=20).map("".join))
@settings(max_examples=examples(300), deadline=None)
def test_the_tokenizer_finds_the_tags_that_libxml2_finds(page: str) -> None:
    """As far as a page is what both can read: of some depth, with the elements that may be anywhere."""
    body = f"<body><p>{page}"
    parsed = list(stream_findings(_Heard, lambda: [body]))
    assert _starts(tokenized(body)) == _starts(parsed)
