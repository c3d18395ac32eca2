"""The links of a page as links.db has them: http, mail and image, each time it is there, with its words."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.index.links import LONGEST_WORD, MOST_WORDS, ArchivedLink, AskedKind, words_of
from webarcfs.content.outlinks import anchors_of, base_of, may_have_base

pytestmark = pytest.mark.pure

BASE = "http://e.org/dir/page.html?q=1"


def found(page: str | bytes | Iterable[bytes], charset: str = "utf-8") -> list[str]:
    """`H target text`, M or I for each link, with BASE's folder left out, and `@window` where it opens in one."""
    whole = page.encode(charset) if isinstance(page, str) else page
    chunks = [whole] if isinstance(whole, bytes) else whole
    base = base_of(chunks, charset) if isinstance(chunks, list) and may_have_base(chunks[0]) else ""
    return [
        f"{kind.name[0]} {target.removeprefix('http://e.org/dir/').removeprefix('mailto:')} {text}".rstrip()
        + (f" @{window}" if window else "")
        for kind, target, text, window in anchors_of(chunks, BASE, charset, base)
    ]


@pytest.mark.parametrize(
    ("page", "links"),
    [
        ("<a href=x>Moteur\n de  <b>recherche</b></a> after", ["H x Moteur de recherche"]),
        ("<A HREF='x'>one</A><a href=x>one</a>", ["H x one", "H x one"]),
        ("<a href=x><img src=l.png alt='The logo'> home</a>", ["I l.png The logo", "H x The logo home"]),
        ("<a href=x title='Next page'><span class=icon></span></a>", ["H x Next page"]),
        ("<map><area href=x alt=North></map>", ["H x North"]),
        ("<a href=x target=_blank>new</a><a href=x>own</a>", ["H x new @_blank", "H x own"]),
        ("<map><area href=x target=' main  frame '></map>", ["H x @main frame"]),
        ("<a href='mailto:a@e.org' target=mail>a</a><img src=i target=x>", ["M a@e.org a @mail", "I i"]),
        ("<a name=x>no link</a><a>nor this</a>", []),
        ("<a href=x>one<a href=y>two</a> three", ["H x one", "H y two"]),
        ("<a href=x>never ended <p>more", ["H x never ended more"]),
        ("<a href=x>a<script>var b</script><style>c{}</style>d</a>", ["H x ad"]),
        ("</html><a href=x>behind the end</a>", ["H x behind the end"]),
        # what is on another page, and what is not
        ("<a href=#top>up</a>", []),
        ("<a href=x#part>part</a>", ["H x part"]),
        ("<a href=''>here</a><a href=' '>here</a>", []),
        # kinds
        ("<img src=x alt='Baballe rouge'>", ["I x Baballe rouge"]),
        ("<img src=x srcset='y 1x, z 2x' alt=a longdesc=d>", ["I x a", "H d a", "I y a", "I z a"]),
        ("<picture><source srcset='a.webp,b.webp 2x'><img data-src=c></picture>", ["I a.webp,b.webp", "I c"]),
        ("<input type=image src=x alt=go><input src=y>", ["I x go"]),
        ("<frameset><frame src=x title=menu></frameset>", ["H x menu"]),
        ("<iframe src=x></iframe><embed src=y><object data=z></object>", ["H x", "H y", "H z"]),
        ("<video src=v poster=p><source src=s><track src=t label=en></video>", ["H v", "I p", "H s", "H t en"]),
        ("<body background=a><table background=b><td background=c>", ["I a", "I b", "I c"]),
        ("<p style='background: url(a.png)'>", ["I a.png"]),
        ("<style>@import 'a.css'; @font-face{src:url(f.woff2?x)} b{background:url(b.png)}</style>", ["I b.png"]),
        ("<svg><image href=a /><a xlink:href=c>text</a></svg>", ["I a", "H c text"]),
        ("<link rel=next href=x title=Next><link rel=icon href=i><link rel=stylesheet href=s>", ["H x Next", "I i"]),
        ("<link rel=preconnect href=//x.org><script src=s></script><form action=f></form>", []),
        ("<meta http-equiv=refresh content='0; url=x'>", ["H x"]),
        # mail
        ("<a href='mailto:Super.Man@Free.FR'>Super Man</a>", ["M Super.Man@free.fr Super Man"]),
        ("<a href='MAILTO:a@e.org,b@e.org?subject=x%20y'>both</a>", ["M a@e.org both", "M b@e.org both"]),
        ("<a href='mailto:a%2Bb@e.org'>x</a><a href=mailto:>x</a><a href='mailto:nobody'>x</a>", ["M a+b@e.org x"]),
        ("<a href='mailto:a%00@e.org'>x</a><a href='mailto:%ff@e.org'>y</a>", ["M a@e.org x", "M \ufffd@e.org y"]),
        # broken forms
        ("<a href='javascript:go()'>x</a><a href='data:text/html,x'>x</a><a href='tel:1'>x</a>", []),
        ("<img src='data:image/png;base64,AAAA'><a href='ftp://e.org/'>x</a>", []),
        ("<a href=' x y '>x</a><a href='a%zz'>x</a>", ["H x%20y x", "H a%25zz x"]),
        ("<a href='http://'>x</a><a href='http://a b/'>x</a><a href='http://[1/'>x</a>", []),
        ("<a href='//other.org/p'>x</a><a href='www.other.org'>x</a>", ["H http://other.org/p x", "H www.other.org x"]),
        ("<a href='\\\\other.org\\p'>x</a>", ["H http://other.org/p x"]),
        ("<a href='ja\nvascript:x'>x</a><a href='x\ty'>x</a>", ["H xy x"]),
        ("<a href='x' href='y'>twice</a><a href=\"z>never closed", ["H x twice"]),
        ("<a href=x>a\0b</a>", ["H x ab"]),
        # base
        ("<head><base href=/sub/><base href=/no/></head><a href=x>x</a>", ["H http://e.org/sub/x x"]),
        ("<a href=x>x</a><base href='http://b.org/d/e'>", ["H http://b.org/d/x x"]),
        ("<base href='javascript:x'><base><a href=x>x</a>", ["H x x"]),
        ("<!-- <base href=/no/> --><a href=x>x</a>", ["H x x"]),
        # nothing
        ("", []),
        ("plain text", []),
    ],
)  # fmt: skip
def test_links_of_html(page: str, links: list[str]) -> None:
    assert found(page) == links


def test_charset() -> None:
    assert found("<a href=x?ä>größer</a>", "cp1252") == ["H x?%E4 größer"]
    assert found(b"<a href=x>gr\xf6\xdfer</a>", "cp1252") == ["H x größer"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Moteur de recherche", ("moteur", "de", "recherche")),
        ("Über-Größe: ÉLÈVE, élève!", ("uber", "grosse", "eleve")),
        ("snake_case 3.5 o'clock", ("snake", "case", "3", "5", "o", "clock")),
        ("ﬁne ＷＩＤＥ", ("fine", "wide")),
        ("Ελλάδα", ("ελλαδα",)),
        ("日本語 текст", ("日本語", "текст")),
        ("… – >>", ()),
        ("w" * 500, ("w" * LONGEST_WORD,)),
    ],
)
def test_words_have_neither_case_nor_accents(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


def test_words_of_one_text_are_bounded() -> None:
    assert len(words_of(" ".join(map(str, range(10_000))))) == MOST_WORDS


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "<a href=x>",
                "</a>",
                "<a",
                " href='",
                "<base ",
                "&#",
                "<style>",
                "url(",
                "<!--",
                "\0",
                ">",
                "<img srcset='a,",
                "mailto:a@b",
                "\ud800",
                "ä",
                "<script>",
                "]]>",
                "<svg>",
                "<p>",
            ]
        )
        | st.text(max_size=5)
    ).map("".join)
)
@example("<a href='mailto:" + "a@b," * 9_000 + "'>")
def test_nothing_that_a_page_holds_raises(page: str) -> None:
    """And what comes of it can be stored: URLs are ASCII, texts are UTF-8."""
    raw = page.encode("utf-8", "surrogatepass")
    for link in anchors_of([raw[:7], raw[7:]], BASE, "utf-8", base_of([raw], "utf-8")):
        assert link.target.startswith(("http://", "https://", "mailto:"))
        link.target.encode()
        assert link.text.encode() is not None and len(link.text) <= 1000


@given(st.text(max_size=30))
def test_words_can_be_stored(text: str) -> None:
    for word in words_of(text.encode("utf-8", "ignore").decode()):
        assert word and word == word.casefold() and word.encode()


@pytest.mark.large
@pytest.mark.parametrize(
    "piece",
    [b"<a href='%d.html'>number</a>", b"<img srcset='%d 1x, b 2x' style='background:url(c)'>",
     b"<div><a href=%d><b>", b"</%d><p"],
)  # fmt: skip
def test_a_page_of_very_many_links_streams(piece: bytes) -> None:
    """As long as the page comes in pieces and what was found is taken, memory is flat."""

    class Page:
        def __iter__(self) -> Iterator[bytes]:
            for first in range(0, 12_000, 1000):
                yield b"".join(piece % number if b"%" in piece else piece for number in range(first, first + 1000))

    tracemalloc.start()
    try:
        count = sum(1 for _ in anchors_of(Page(), BASE, "utf-8"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count >= 12_000 or piece.startswith(b"</")
    assert peak < 6 << 20


@pytest.mark.large
@pytest.mark.parametrize(
    "page",
    ["<a href=x>" + "y " * 1_000_000, "<a href='" + "y" * 900_000 + "'>x</a>", "<img srcset='" + "a," * 400_000 + "'>",
     "<a href=x title='" + "t" * 1_000_000 + "'></a>", "<style>" + "a{b:url(c)}" * 200_000, "<!--" + "x" * 1_000_000],
    ids=["text", "url", "srcset", "title", "style", "comment"],
)  # fmt: skip
def test_what_is_very_long_is_cut(page: str) -> None:
    links = list(anchors_of([page.encode()], BASE, "utf-8"))
    assert all(len(link.target) < 1 << 15 and len(link.text) <= 1000 for link in links)
    assert len(links) < 120_000


def test_links_compare_and_say_what_they_are() -> None:
    assert ArchivedLink(AskedKind.HTTP, "http://e.org/", "x") == (1, "http://e.org/", "x", "")
