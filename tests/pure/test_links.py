"""What a crawl goes on with (/Cr-1.1/, /Cr-8/): links and requisites of pages, style sheets and feeds."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical
from webarcfs.content.markup import stream_findings
from webarcfs.content.outlinks import LONGEST_BODY, MOST_LINKS, Link, Links, bare, links_of, resolver
from webarcfs.content.reference_table import LinkPurpose

pytestmark = pytest.mark.pure

BASE = "http://e.org/dir/page.html?q=1"


def found(body: str | bytes, mime_type: str = "text/html", charset: str = "utf-8", url: str = BASE) -> list[str]:
    """`L url`, `R url` and `S url` (a sitemap or feed) for each link, with BASE's folder left out."""
    raw = body.encode(charset) if isinstance(body, str) else body
    links = links_of(raw, url, mime_type, charset)
    return [f"{link.kind.value[0].upper()} {link.url.removeprefix('http://e.org/dir/')}" for link in links]


@pytest.mark.parametrize(
    ("html", "links"),
    [
        ("<a href=x>", ["L x"]),
        ("<A HREF='x'>", ["L x"]),
        ("<map><area href=x></map>", ["L x"]),
        ("<form action=x><button formaction=y></form>", []),
        ("<iframe src=x></iframe>", ["R x"]),
        ("<frameset><frame src=x></frameset>", ["R x"]),
        ("<img src=x srcset='y 1x, z 2x' longdesc=d>", ["L d", "R x", "R y", "R z"]),
        ("<img data-src=x data-srcset='y 2x'>", ["R x", "R y"]),
        ("<picture><source srcset='a.webp,b.webp 2x'><img src=c></picture>", ["R a.webp,b.webp", "R c"]),
        ("<script src=x></script>", ["R x"]),
        ("<input type=IMAGE src=x><input type=text src=y>", ["R x"]),
        ("<video src=a poster=b><source src=c><track src=d></video>", ["R a", "R b", "R c", "R d"]),
        ("<audio src=a></audio>", ["R a"]),
        ("<object data=a codebase=java></object>", ["R java/a"]),
        ("<embed src=a>", ["R a"]),
        ("<applet code=A.class archive='x.jar, y.jar'></applet>", ["R A.class", "R x.jar", "R y.jar"]),
        ("<body class=has-background><body title=x\nBACKGROUND = a>", ["R a"]),
        ("<title></title><p>x<body background=a>", ["R a"]),
        ("<body background=a><table background=b><tr><td background=c>", ["R a", "R b", "R c"]),
        ("<p style='background: url(a.png)'>x", ["R a.png"]),
        ("<style>@import 'a.css'; b { background: url(b.png) }</style>", ["R a.css", "R b.png"]),
        ("<svg><image href=a /><image xlink:href=b /><a xlink:href=c></a></svg>", ["R a", "R b", "L c"]),
        ("<a href=1><img src=2 style='background:url(3)'><a href=4>", ["L 1", "R 2", "R 3", "L 4"]),
        # link, by its rel
        ("<link rel=stylesheet href=x>", ["R x"]),
        ("<link rel='alternate stylesheet' href=x>", ["R x"]),
        ("<link rel='shortcut icon' href=x>", ["R x"]),
        ("<link rel=apple-touch-icon href=x>", ["R x"]),
        ("<link rel=manifest href=x><link rel=preload href=y as=font>", ["R x", "R y"]),
        ("<link rel=preload as=image imagesrcset='a 1x, b 2x'>", ["R a", "R b"]),
        ("<link rel=next href=x><link rel=prev href=y><link rel=canonical href=z>", ["L x", "L y", "L z"]),
        ("<link rel=alternate type=application/rss+xml href=feed>", ["S feed"]),
        ("<link rel=alternate type=text/html hreflang=de href=de>", ["L de"]),
        ("<link rel=sitemap type=application/xml href=/map.xml>", ["S http://e.org/map.xml"]),
        ("<link rel=dns-prefetch href=//x.org><link rel=preconnect href=//y.org>", []),
        # refresh
        ("<meta http-equiv=refresh content='5; url=x'>", ["L x"]),
        ("<meta http-equiv=Refresh content='0;URL=\"x y\"'>", ["L x%20y"]),
        ("<meta http-equiv=refresh content='5'>", []),
        ("<meta http-equiv=content-type content='text/html; url=x'>", []),
        # base: the first, against the page
        ("<base href=/other/><a href=x>", ["L http://e.org/other/x"]),
        ("<a href=x><base target=_top><base href=//f.org/b/c><base href=/no/>", ["L http://f.org/b/x"]),
        ("<base href='javascript:0'><a href=x>", ["L x"]),
        # each once per kind, in the order of their first appearance
        ("<a href=b><a href=a><a href=b#x><a href=./b><img src=b>", ["L b", "L a", "R b"]),
        # what is no page
        ("<a href=''><a href='#x'><a href='  '>", []),
        ("<a href=javascript:x()><a href='java\nscript:x()'><a href=mailto:a@e.org><a href=tel:1>", []),
        ("<img src='data:image/png;base64,AAAA'><a href=ftp://e.org/x><a href=file:///x>", []),
        ("<a href='http://'><a href='http://[::1/x'><a href='http://e.org:99999/'><a href='//['>", []),
        ("<a href=\"javascript:'x'\" href=y>", []),
        ("<!-- <a href=x> --><script>'<a href=y>'</script><textarea><a href=z></textarea>", []),
        ("", []),
        ("no markup", []),
        ("<a href=x", []),
    ],
)
def test_html(html: str, links: list[str]) -> None:
    assert found(html) == links


def test_templates_of_values_are_no_urls() -> None:
    """XSLT puts values where an attribute has braces; what else its attributes name is taken."""
    sheet = (
        '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:import href="i.xsl"/>'
        '<x:template match="/"><html xmlns="http://www.w3.org/1999/xhtml"><a href="{$itemURL}"/><a href="b"/></html>'
        '<a href="{link}">l</a><img src="c" srcset="{d} 2x"/><link href="{@href}"/><link>f</link>'
        "</x:template></x:stylesheet>"
    )
    assert found(sheet, "text/xsl") == found(sheet, "text/xml") == ["L f", "R i.xsl", "L b", "R c"]
    assert found('<feed><link href="{x}"/></feed>', "text/xml") == ["L %7Bx%7D"]


@pytest.mark.parametrize("mime_type", ["application/xhtml+xml", "text/html"])
def test_xhtml(mime_type: str) -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script src="s"/><title/><a href="x"/></html>'
    )
    assert found(page, mime_type) == ["R s", "L x"]


@pytest.mark.parametrize(
    ("css", "links"),
    [
        ("a { background: url(x.png) }", ["x.png"]),
        ("url( 'x.png' ) URL(\"y.png\")", ["x.png", "y.png"]),
        ("@import 'x.css'; @import \"y.css\" screen; @import url(z.css);", ["x.css", "y.css", "z.css"]),
        ("/* url(no) */ url(yes) /* url(no)", ["yes"]),
        ("@namespace svg url(http://www.w3.org/2000/svg); url(yes)", ["yes"]),
        ('a::after { content: "url(no)" } b { src: url(yes) }', ["yes"]),
        (r"url(a\ b.png) url('\63 .png') url('it\'s')", ["a%20b.png", "c.png", "it's"]),
        ("url(data:image/png;base64,AAAA) url() url('')", []),
        ("@font-face { src: url(a.woff2) format('woff2'), url(a.woff) }", ["a.woff2", "a.woff"]),
        ("url(", []),
        ("url('x", ["x"]),
    ],
)
def test_css(css: str, links: list[str]) -> None:
    assert found(css, "text/css") == [f"R {link}" for link in links]


@pytest.mark.parametrize(
    ("xml", "links"),
    [
        ("<rss><channel><link>http://e.org/a</link><item><link> /b </link></item></channel></rss>", ["/a", "/b"]),
        ("<rss><item><enclosure url='/a.mp3' type='audio/mpeg'/><guid>/no</guid></item></rss>", ["/a.mp3"]),
        ("<feed xmlns='urn:a'><link rel='self' href='/f'/><link href='/a'/></feed>", ["/f", "/a"]),
        ("<feed xmlns='urn:a' xml:base='/b/'><link href='a'/></feed>", ["/b/a"]),
        ("<urlset xmlns='urn:s'><url><loc>/a?b=1&amp;c</loc></url></urlset>", ["/a?b=1&c"]),
        ("<!DOCTYPE r [<!ENTITY x SYSTEM '/etc/passwd'>]><r><link>/a</link><link>&x;</link></r>", ["/a"]),
        ("<rss xml:base='&#xD800;'><link>&#xD800;</link><link href='&#xDFFF;'/><link>/a</link></rss>", ["/a"]),
        ("<rss><link>/a</link><broken", ["/a"]),
        ("", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mime_type", ["application/rss+xml", "text/xml"])
def test_feeds(xml: str, links: list[str], mime_type: str) -> None:
    assert found(xml, mime_type) == [f"L http://e.org{link}" for link in links]


def test_a_feed_has_no_file_of_this_machine_read(tmp_path: Path) -> None:
    """A DTD that a document names is not opened: whoever opens this pipe waits for ever."""
    pipe = tmp_path / "pipe.dtd"
    os.mkfifo(pipe)
    feed = f'<?xml version="1.0"?><!DOCTYPE rss SYSTEM "{pipe.as_uri()}"><rss><link>http://e.org/</link></rss>'.encode()
    found: list[Link] = []
    reader = threading.Thread(
        target=lambda: found.extend(links_of(feed, "http://e.org/feed", "application/rss+xml", "utf-8")), daemon=True
    )
    reader.start()
    reader.join(120)
    if reader.is_alive():
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    assert [each.url for each in found] == ["http://e.org/"]


@pytest.mark.parametrize("mime_type", ["text/plain", "image/png", "application/pdf", ""])
def test_other_types_have_no_links(mime_type: str) -> None:
    assert found("<a href=x>", mime_type) == []


@pytest.mark.parametrize(
    ("charset", "path", "query"),
    [
        ("utf-8", "caf%C3%A9", "caf%C3%A9"),
        ("cp1252", "caf%C3%A9", "caf%E9"),
        ("utf-16", "caf%C3%A9", "caf%C3%A9"),
        ("utf-16-be", "caf%C3%A9", "caf%C3%A9"),
    ],
)
def test_queries_are_in_the_encoding_of_the_page(charset: str, path: str, query: str) -> None:
    """url.spec.whatwg.org, query state; a path is always UTF-8."""
    assert found("<a href='café?café#café'>", charset=charset) == [f"L {path}?{query}"]


def test_a_query_that_the_encoding_cannot_hold() -> None:
    assert found("<a href='x?日&#x4E2D;'>".encode("euc_jp"), charset="euc_jp") == ["L x?%C6%FC%C3%E6"]
    assert found(b"<a href='x?&#x65E5;'>", charset="cp1252") == ["L x?%26%2326085%3B"]


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("x.html", "http://e.org/dir/x.html"),
        ("../x", "http://e.org/x"),
        ("../../../x", "http://e.org/x"),
        ("./x/../y/", "http://e.org/dir/y/"),
        (".", "http://e.org/dir/"),
        ("..", "http://e.org/"),
        ("/", "http://e.org/"),
        ("/x//y", "http://e.org/x//y"),
        ("//f.org", "http://f.org/"),
        ("//F.org:80/x", "http://f.org/x"),
        ("?x=/../y", "http://e.org/dir/page.html?x=/../y"),
        ("x?a=../b", "http://e.org/dir/x?a=../b"),
        ("x:y", None),
        ("./x:y", "http://e.org/dir/x:y"),
        ("x;y=z", "http://e.org/dir/x;y=z"),
        ("a b", "http://e.org/dir/a%20b"),
        ("%7Ex", "http://e.org/dir/~x"),
        ("%zz", "http://e.org/dir/%25zz"),
        ("..\\x", "http://e.org/x"),
        ("\\\\f.org\\x", "http://f.org/x"),
        ("x?a\\b", "http://e.org/dir/x?a%5Cb"),
        ("htt\np://f.org/\tx", "http://f.org/x"),
        ("HTTPS://F.org", "https://f.org/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("", None),
        # What browsers make of slashes that are missing, too many or backslashes (url.spec.whatwg.org).
        ("http:x", "http://e.org/dir/x"),
        ("http:/x", "http://e.org/x"),
        ("http:?x", "http://e.org/dir/page.html?x"),
        ("http:", "http://e.org/dir/page.html?q=1"),
        ("http:///f.org/x", "http://f.org/x"),
        ("HTTP:\\\\f.org\\x", "http://f.org/x"),
        ("https:f.org", "https://f.org/"),
        ("https:/f.org/x", "https://f.org/x"),
        ("https:////f.org", "https://f.org/"),
        ("///f.org/x", "http://f.org/x"),
        ("////f.org/x", "http://f.org/x"),
        ("\\/\\/f.org/x", "http://f.org/x"),
        ("/\\f.org", "http://f.org/"),
        (" x ", "http://e.org/dir/x"),
        ("http://", None),
        ("//", None),
    ],
)
def test_resolving(reference: str, url: str | None) -> None:
    assert resolver(BASE, "utf-8")(reference) == url


@given(st.lists(st.sampled_from([*"ab./?=&%~", "..", "%7E", "%2f", "é"]), min_size=1).map("".join))
@example("a/..")
@example("?")
def test_resolving_is_rfc_3986_and_then_canonical(reference: str) -> None:
    """The short cuts give what urljoin and `canonical` give, where urljoin follows the RFC."""
    if "//" in reference.partition("?")[0]:
        return  # urljoin drops empty segments
    try:
        expected = canonical(urljoin("http://e.org/dir/page.html", reference))
    except UrlRefused:
        return
    resolved = resolver("http://e.org/dir/page.html", "utf-8")(reference)
    assert resolved is not None
    assert resolved.rstrip("?") == expected.rstrip("?")  # urljoin drops an empty query
    assert canonical(resolved) == resolved


PIECES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["<a href=", "<base href=", "<img srcset='", "'", ">", "<style>url(", "http://", "[", "]", "//"]),
    st.sampled_from(
        ["<meta http-equiv=refresh content='", "<object codebase=", " data=", "\\", "%", "#", "?", ",", ":"]
    ),
    st.sampled_from(["<link>", "</link>", "&#0;", "&#xD800;", "<!DOCTYPE", "<![CDATA[", "\0", "@import '"]),
)


@given(
    st.lists(PIECES).map("".join),
    st.sampled_from(["text/html", "text/css", "text/xml", "image/svg+xml"]),
    st.sampled_from(["utf-8", "utf-16", "cp1252", "euc_jp", "nonsense", ""]),
)
def test_nothing_raises_and_all_is_canonical(body: str, mime_type: str, charset: str) -> None:
    for link in links_of(body.encode("utf-8", "replace"), BASE, mime_type, charset):
        assert canonical(link.url) == link.url


STYLES = (
    "url(a.png)",
    "u\\72l(b.png)",
    "&#117;rl(c.png)",
    "image-set('d.png' 1x)",
    "geturl()",
    "@import 'e.css';",
    "x",
)
STYLED = st.one_of(
    st.builds(
        "{}{}{}{}{}".format,
        st.sampled_from(["<p style", "<p title='=\"' STYLE", "<rect\tfill", "<p data-x=1 style", "<img src=i style"]),
        st.sampled_from(["=", " = ", "=\n", ""]),
        st.sampled_from(['"', "'", ""]),
        st.sampled_from([f"{word} color:red;background:{style}" for style in STYLES for word in ("", "a=b")]),
        st.sampled_from(['">', "'>", ">", " >", '"/>', ""]),
    ),
    st.builds("<style>{}</style>".format, st.sampled_from(STYLES)),
    st.sampled_from(
        [*STYLES, "<a href=l>", 'text = "', "it's ", "<b>", "<iframe srcdoc='<p style=color:url(f.png)>'>"]
    ),
)


@given(st.lists(STYLED, max_size=8).map("".join))
@example("geturl()<p style=color:u\\72l(b.png)>")
@example('url(<p title=\'"\'style="background:&#117;rl(c.png)">')
def test_a_page_is_searched_as_far_as_its_functions_need_it(page: str) -> None:
    """What is left out of a page that has functions of CSS somewhere, attributes or texts, has no reference."""
    low = page.lower()
    if not any(function in low for function in ("url(", "image-set(", "src(")):
        return  # then none is looked for in attributes
    bases: list[str] = []
    everywhere = stream_findings(lambda: Links(bases, styled=True), lambda: (page,))
    resolve = resolver(BASE, "utf-8")
    links = {(target, kind) for raw, kind, _ in everywhere if (target := resolve(bare(raw)))}
    assert {(link.url, link.kind) for link in links_of(page.encode(), BASE, "text/html", "utf-8")} == links


_HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "links": ("text/html", lambda: b"".join(b"<a href=%d>" % n for n in range(1_000_000))),
    "link elements": ("text/xml", lambda: b"".join(b"<link>%d</link>" % n for n in range(1_000_000))),
    "depth": ("text/html", lambda: b"<b>" * 1_000_000 + b"<a href=x>"),
    "srcset of commas": ("text/html", lambda: b"<img srcset='" + b"," * 4_000_000),
    "srcset": ("text/html", lambda: b"<img srcset='" + b"x,  " * 1_000_000),
    "quoted url": ("text/css", lambda: b'url("' * 1_000_000),
    "url": ("text/css", lambda: b"url(" * 1_000_000),
    "url of spaces": ("text/css", lambda: b"url(" + b" " * 4_000_000),
    "comments": ("text/css", lambda: b"/*" * 1_000_000),
    "import": ("text/css", lambda: b"@import " * 500_000),
    "escapes": ("text/css", lambda: b"\\" * 4_000_000),
    "refresh": ("text/html", lambda: b"<meta http-equiv=refresh content='" + b" 1" * 1_000_000),
    "dots": ("text/html", lambda: b"<a href='" + b"../" * 1_000_000 + b"'>"),
    "comments of SVG": ("image/svg+xml", lambda: b"<!--" * 20_000),
    "stylesheets of XML": ("application/xhtml+xml", lambda: b"<?xml-stylesheet " * 20_000),
    "bgset": ("text/html", lambda: (b"<p data-bgset='a " + b"[" * 32_000 + b"'>") * 20),
}


@pytest.mark.large
@pytest.mark.parametrize("kind", _HOSTILE)
def test_hostile_bodies_cost_bounded_time(kind: str) -> None:
    mime_type, make = _HOSTILE[kind]
    body = make()
    started = time.process_time()
    assert len(links_of(body, BASE, mime_type, "utf-8")) <= MOST_LINKS
    assert time.process_time() - started < 10


def test_only_the_start_of_a_body_is_parsed() -> None:
    assert found(b"<a href=x>" + b" " * LONGEST_BODY + b"<a href=y>") == ["L x"]


def test_kinds_are_the_frontier_s_words() -> None:
    assert Link("http://e.org/", LinkPurpose.LINK).kind.value == "link"
    assert Link("http://e.org/", LinkPurpose.REQUISITE).kind.value == "requisite"


def test_links_behind_the_end_of_the_page() -> None:
    """What follows `</html>` belongs to the page, as browsers have it (WHATWG, "after after body" insertion mode)."""
    found = links_of(b"<html><body></body></html>\n<a href=x>x</a>", "http://e.org/", "text/html", "utf-8")
    assert [link.url for link in found] == ["http://e.org/x"]
