"""Pages get other references, keep every other byte, and nothing that a browser would load slips through."""

from __future__ import annotations

import html
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from tests.support.growth import is_linear
from tests.support.loaded_references import FORBIDDEN, of_page, of_sheet
from webarcfs.content.css_references import of_css
from webarcfs.content.reference_table import MOST_INNER
from webarcfs.content.references import LONGEST_BODY, References, Rewritten, Use
from webarcfs.content.rewriting.assembly import rewritten
from webarcfs.content.rewriting.html_references import of_html
from webarcfs.content.text import decode_charset

pytestmark = pytest.mark.pure

#: What a hostile page is made of.
PARTS = (
    "<", ">", "</", "/>", '"', "'", "=", "&quot;", " ", "\n", "x", "-", "--", "!", "<!--", "-->", "--!>", "<!-->",
    "<![CDATA[", "]]>", "<?", "<!doctype html>", "<a href=e1>", "<a href='e2'>", '<a target=t href="e3">', "</a>",
    "<img src=e4>", "<img srcset='e5 1x, e6 (2,3) 2x'>", "<svg>", "</svg>", "<svg/>", "<math>", "</math>", "<mi>",
    "</mi>", "<title>", "</title>", "<title/>", "<style>", "</style>", "<style/>", "<style>@import 'e7';",
    "a{b:url(e8)}", "a{b:url(&quot;e9&quot;)}", "<script>", "</script>", "<script/>", "<textarea>", "</textarea>",
    "<xmp>", "</xmp>", "<iframe>", "</iframe>", "<noembed>", "</noembed>", "<noframes>", "</noframes>", "<noscript>",
    "</noscript>", "<plaintext>", "<select>", "</select>", "<option>", "<table>", "</table>", "<tr>", "<td>", "<col>",
    "<colgroup>", "<template>", "</template>", "<frameset>", "</frameset>", "<frame src=e10>", "<foreignObject>",
    "</foreignObject>", "<desc>", "</desc>", "<p>", "</p>", "<b>", "</b>", "<form>", "<button formaction=e11>",
    "<base href=e12>", "<meta http-equiv=refresh content='0;url=e13'>", "<link rel=stylesheet href=e14>",
    "<iframe srcdoc='<a href=e15>'>", "<image xlink:href=e16>", "<image src=e17>", "<p style='a:url(e18)'>",
    "<object data=e19>", "<annotation-xml encoding=text/html>", "</annotation-xml>", "<a\0href=e21>", "<a/href=e22>",
    "<A HREF=e23 href=e24>", "<br>", "<html manifest=e26>", "</head>", "</body>", "<body>", "href=e27", "<a href=",
    "title='", "\0", "\r", "\f", "<input type=image src=e28>", '<a title="</style><img src=e29>">',
    "<a title='</noscript><img src=e30>'>", "<textarea/>", "<script>'<!--<script>", "<select/>", "<foreignObject/>",
    "<a href=e31/>",
)  # fmt: skip


def new(
    page: str | bytes, charset: str = "utf-8", *, to: str = "/w", is_xml: bool = False, target: bool = False
) -> tuple[list[str], bytes]:
    """The references as `use text`, and the page with each turned into `to` and its number."""
    body = page.encode(charset) if isinstance(page, str) else page
    seen: list[str] = []
    attributes = (("target", "_top"),) if target else ()

    def rewrite(use: Use, text: str) -> Rewritten:
        seen.append(f"{use} {text}")
        return Rewritten(f"{to}{len(seen)}", attributes if use in (Use.LINK, Use.FORM, Use.BASE) else ())

    return seen, rewritten(body, of_html(body, charset, is_xml=is_xml), rewrite)


def slipped(page: str) -> list[str]:
    """What a browser would load or go to in the rewritten page that was not rewritten."""
    _, out = new(page, target=True)
    return [each for each in of_page(out.decode()) if not each.startswith("/w")]


@pytest.mark.parametrize(
    ("page", "after"),
    [
        ("<a href=x>", "<a href=/w1>"),
        ("<A HREF='x'>", "<A HREF='/w1'>"),
        ('<a href="x"href=y>', '<a href="/w1"href=y>'),  # the first counts
        ("<a/href=x>", "<a/href=/w1>"),
        ("<a href>", '<a href="/w1">'),
        ("<a href= >", "<a href= /w1>"),
        ("<a href\n=\t'x\ny'>", "<a href\n=\t'/w1'>"),
        ("<form><form action=x>", '<form action="/w1"><form action=/w2>'),
        ("<img src=a srcset='b 1x, c,d (e,f) 2x,g,'>", "<img src=/w1 srcset='/w2 1x, /w3 (e,f) 2x,/w4,'>"),
        ("<link imagesrcset='a 1x' rel=preload as=image href=b>",
         "<link imagesrcset='/w1 1x' rel=preload as=image href=/w2>"),
        ("<p style='a:url(b) url(&quot;c&quot;)'>", "<p style='a:url(/w1) url(&#34;/w2&#34;)'>"),
        ("<style>@import 'x';</style x><style>a{b:url(y)}", "<style>@import '/w1';</style x><style>a{b:url(/w2)}"),
        ("<meta http-equiv=Refresh content='5; URL=\"x\"'>",
         "<meta http-equiv=Refresh content='5; URL=&#34;/w1&#34;'>"),
        ("<noscript><img src=x></noscript>", "<noscript><img src=/w1></noscript>"),
        ("<template><img src=x></template>", "<template><img src=/w1></template>"),
        ("<iframe srcdoc='<a href=&quot;x&quot;>'>", "<iframe srcdoc='&lt;a href=&#34;/w1&#34;&#62;'>"),
        ("<object codebase=a data=b archive='c,d'>", "<object x-codebase=a data=/w1 archive='/w2,/w3'>"),
        ("<object><param name=movie value=x><param name=y value=z>",
         "<object><param name=movie value=/w1><param name=y value=z>"),
        ("<svg><a xlink:href=x><feImage href=y /><set attributeName=href to=z>",
         "<svg><a xlink:href=/w1><feImage href=/w2 /><set x-attributeName=href to=z>"),
        ("<svg><style><![CDATA[a{b:url(c)}]]></style>", "<svg><style>a{b:url(/w1)}</style>"),
        ("<svg><style>a{b:url(&quot;c&amp;d&quot;)}</style>", '<svg><style>a{b:url("/w1")}</style>'),
        ("<svg><title/><a href=x>", "<svg><title/></title><a href=/w1>"),
        # out of force
        ("<link rel='DNS-Prefetch stylesheet' href=x>", "<link rel='x-DNS-Prefetch stylesheet' href=/w1>"),
        ("<link rel=modulepreload href=x>", "<link rel=x-modulepreload href=x>"),
        ("<a ping=x href=y>", "<a x-ping=x href=/w1>"),
        ("<script src=x integrity=y crossorigin nonce=z>", "<script src=/w1 x-integrity=y x-crossorigin nonce=z>"),
        ("<script type=speculationrules>{}</script>", "<script type=x-speculationrules>{}</script>"),
        ("<meta http-equiv=Content-Security-Policy content=x>",
         "<meta x-http-equiv=Content-Security-Policy content=x>"),
        ("<html manifest=x>", "<html x-manifest=x>"),
        # script data has its own ends
        ("<script><!--<script></script><a href=x>--></script><a href=y>",
         "<script><!--<script></script><a href=x>--></script><a href=/w1>"),
        ("<script><!--></script><a href=y>", "<script><!--></script><a href=/w1>"),
        ("<!--!><a href=x>--><a href=y>", "<!--!><a href=x>--><a href=/w1>"),
        ("<!---!><a href=x>--!><a href=y>", "<!---!><a href=x>--!><a href=/w1>"),
        ("<!--><a href=x>", "<!--><a href=/w1>"),
    ],
)  # fmt: skip
def test_references_of_pages(page: str, after: str) -> None:
    assert new(page)[1].decode() == after


@pytest.mark.parametrize(
    "page",
    [
        "<link rel=canonical href=x><link rel=alternate href=y><blockquote cite=x><img longdesc=x>",
        "<!-- <a href=x> --><script>'<a href=x>'</script><textarea><a href=x></textarea><title><a href=x></title>",
        "<xmp><a href=x></xmp><iframe><a href=x></iframe><noembed><a href=x></noembed><plaintext><a href=x>",
        "<![CDATA[<b]]> > <? <a href=x> <! <a href=x> </ <a href=x>",
        "<a title='x>y' href='z",
        "<div src=x href=y data=z><a xhref=x data-href=y>",
        "<base target=>"[:-1],
        "",
    ],
)
def test_what_is_no_reference_stays(page: str) -> None:
    seen, out = new(page)
    assert (seen, out) == ([], page.encode())


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("<a href=1><area href=2><svg><a href=3></svg>", ["link 1", "link 2", "link 3"]),
        ("<form action=1><input formaction=2><isindex action=3>", ["form 1", "form 2", "form 3"]),
        ("<frame src=1><iframe src=2></iframe><portal src=3>", ["frame 1", "frame 2", "frame 3"]),
        ("<object data=1><embed src=2><applet code=3>", ["object 1", "object 2", "object 3"]),
        ("<img src=1 data-src=2 lowsrc=3 dynsrc=4><input type=image src=5><td background=6><video poster=7>",
         [f"image {number}" for number in range(1, 8)]),
        ("<link rel=icon href=1><link rel=preload as=style href=2><link rel=manifest href=3>",
         ["image 1", "style 2", "other 3"]),
        ("<script src=1></script><svg><script href=2></script>", ["script 1", "script 2"]),
        ("<audio src=1><video src=2><source src=3><track src=4>", ["other 1", "other 2", "other 3", "other 4"]),
        ("<base href=1><base href=2>", ["base 1", "base 2"]),
        ("<base target=x><button formtarget=y>", ["target x", "target y"]),
        ("<a href='javascript:x()'><a href=mailto:x><a href=about:blank><img src=data:,x>",
         ["link javascript:x()", "link mailto:x", "link about:blank", "image data:,x"]),
    ],
)  # fmt: skip
def test_uses(page: str, seen: list[str]) -> None:
    assert new(page)[0] == seen


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("?a&amp;b", "?a&b"),
        ("?a&ampb", "?a&ampb"),
        ("?a&amp=b", "?a&amp=b"),
        ("?a&copy=b&copy;", "?a&copy=b©"),
        ("?a&copy&lt", "?a©<"),
        ("&#x41;&#66&#128;&#0;&#xD800;&#1;&#99999999999999999999;", "AB€\ufffd\ufffd\1\ufffd"),
        ("&notit;&nbsp;&bogus;&", "&notit;\xa0&bogus;&"),
    ],
)
def test_character_references_in_attributes(written: str, read: str) -> None:
    seen, _ = new(f'<a href="{written}">')
    assert seen == [f"link {read}"]
    parsed = LexborHTMLParser(f'<a href="{written}">').css_first("a")
    assert parsed is not None
    assert parsed.attributes["href"] == read


@pytest.mark.parametrize(
    "page",
    ["<a href=x>", "<a href='x'>", '<a href="x">', "<a href>", "<a href=>", "<form>",
     "<img srcset='x 1x'>", "<p style='a:url(x)'>", "<p style=a:url(x)>", "<style>a{b:url(x)}</style>",
     "<iframe srcdoc='<a href=x>'>", "<meta http-equiv=refresh content='0;url=x'>",
     "<svg><style>a{b:url(x)}</style></svg>", "<svg><style>a{b:url(&quot;x&quot;)}</style></svg>"],
)  # fmt: skip
def test_a_new_value_stays_in_its_place(page: str) -> None:
    to = "/a\"b'c>d<e&lt;f</style>é,(g)\\h`="
    _, out = new(page, to=to)
    assert list(of_page(out.decode())) == [f"{to}1"]
    assert out.isascii()


def test_a_list_of_images_is_one_word_each() -> None:
    _, out = new("<img srcset='x, y 2x'>", to=",a b\t")
    assert out == b"<img srcset='%2Ca%20b%091, %2Ca%20b%092 2x'>"


@pytest.mark.parametrize(
    ("page", "after"),
    [
        ("<a href=x>", '<a href=/w1 target="_top">'),
        ("<a target=y href='x'>", "<a target=_top href='/w1'>"),
        ("<a href='x'target='y'>", "<a href='/w1'target='_top'>"),
        ("<area href='x'class=z target>", "<area href='/w1'class=z target=\"_top\">"),
        ("<form target=y>", '<form action="/w1" target=_top>'),
        ("<button formaction='x'>", "<button formaction='/w1' formtarget=\"_top\">"),
        ("<base target=y href=x>", "<base target=_top href=/w1>"),
    ],
)
def test_targets_are_replaced_or_added(page: str, after: str) -> None:
    assert new(page, target=True)[1].decode() == after


def test_elements_get_other_attributes_also() -> None:
    body = b'<a href="x&amp;y" class=z>'
    more = (("data-webarcfs-href", 'x&"<é'),)
    out = rewritten(body, of_html(body, "utf-8"), lambda *_: Rewritten("/w", more))
    assert out == b'<a href="/w" data-webarcfs-href="x&amp;&#34;&lt;&#233;" class=z>'


def test_a_target_stays_where_its_reference_does() -> None:
    body = b"<a href=x target=y>"
    assert rewritten(body, of_html(body, "utf-8"), lambda *_: None) == body


@pytest.mark.parametrize(
    ("page", "base"),
    [("<a href=x>", None), ("<base target=x><base href=' a '><base href=b>", " a "), ("<BASE HREF='&amp;'>", "&")],
)
def test_the_first_base_is_told(page: str, base: str | None) -> None:
    assert of_html(page.encode(), "utf-8").base == base


def test_an_inner_page_has_its_own_base_and_inner_pages() -> None:
    page = """<iframe srcdoc="<base href='http://f.org/'><a href='x'><iframe srcdoc='<a href=y>'>">"""
    seen, out = new(page)
    assert seen == ["base http://f.org/", "link http://f.org/x", "link http://f.org/y"]
    assert b"x-srcdoc" not in out


def test_inner_pages_end_somewhere() -> None:
    page = "<a href=x>"
    for _ in range(MOST_INNER + 1):
        page = f'<iframe srcdoc="{html.escape(page)}"></iframe>'
    seen, out = new(page)
    assert seen == []
    assert b"x-srcdoc" in out


@pytest.mark.parametrize(
    ("page", "after"),
    [
        ("<img data-src=a>", '<img src="/w1" data-src=/w2>'),
        ("<img src='data:image/gif;base64,A=' data-lazy-src=a data-lazy-srcset='b 2x'>",
         "<img srcset=\"/w1 2x\" src='/w2' data-lazy-src=/w3 data-lazy-srcset='/w4 2x'>"),
        ("<img data-original=a src=/i/blank.gif>", "<img data-original=/w1 src=/w2>"),
        ("<img src=real.png data-src=a>", "<img src=/w1 data-src=/w2>"),
        ("<img srcset='a 2x' data-src=b>", "<img srcset='/w1 2x' data-src=/w2>"),
        ("<video data-poster=p data-src=v>", '<video src="/w1" poster="/w2" data-poster=/w3 data-src=/w4>'),
        ("<picture><source data-srcset='a 1x'><img data-src=b></picture>",
         "<picture><source srcset=\"/w1 1x\" data-srcset='/w2 1x'><img src=\"/w3\" data-src=/w4></picture>"),
        ("<p data-bg=/a.png style='b:c;'>", "<p data-bg=/a.png style='b:c;background-image:url(&#34;/w1&#34;)'>"),
        ("<p data-bg='url(a)'>", "<p style=\"background-image:url(/w1)\" data-bg='url(a)'>"),
        ("<p data-background=dark>", "<p data-background=dark>"),
        # a page without scripts shows the one in <noscript>
        ("<img data-src=a> <noscript><img src=a></noscript>", "<img data-src=/w1> <noscript><img src=/w2></noscript>"),
        ("<noscript><img src=a></noscript> <img data-src=a>", "<noscript><img src=/w1></noscript> <img data-src=/w2>"),
        ("<img data-src=a><noscript><img src=b></noscript>",
         '<img src="/w1" data-src=/w2><noscript><img src=/w3></noscript>'),
    ],
)  # fmt: skip
def test_lazy_elements_get_what_a_script_would_give_them(page: str, after: str) -> None:
    """S-page-3"""
    assert new(page)[1].decode() == after


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-32-be", "iso2022_jp", "utf-7"])
def test_encodings_that_are_not_over_ascii_become_utf_8(charset: str) -> None:
    raw = "<p>日本<a href='x日'>".encode(charset)
    references = of_html(raw, charset)
    assert references.charset_sent == "utf-8"
    assert rewritten(raw, references, lambda _, text: Rewritten(f"/{text[:1]}")).decode() == "<p>日本<a href='/x'>"


@pytest.mark.parametrize(("charset", "text"), [("cp932", "表"), ("gb18030", "誠"), ("big5", "功"), ("euc_jp", "表")])
def test_text_in_its_own_encoding_stays(charset: str, text: str) -> None:
    page = f"<p title='{text}'>{text}<a href='{text}'>{text}<style>a{{b:'{text}';c:url('{text}')}}</style>"
    seen, out = new(page, charset)
    assert seen == [f"link {text}", f"other {text}"]
    after = f"<p title='{text}'>{text}<a href='/w1'>{text}<style>a{{b:'{text}';c:url('/w2')}}</style>"
    assert out.decode(charset) == after


# --- XML


@pytest.mark.parametrize(
    ("page", "after"),
    [
        ("<x:image xmlns:q='l' q:href='a'/>", "<x:image xmlns:q='l' q:href='/w1'/>"),
        ("<_:a a:href='a' b:href='b'/>", "<_:a a:href='/w1' b:href='/w2'/>"),
        ("<title/><a href='x'/><!-- --!><a href='x'/> --><![CDATA[<a href='x'>]]><a href='y'/>",
         "<title/><a href='/w1'/><!-- --!><a href='x'/> --><![CDATA[<a href='x'>]]><a href='/w2'/>"),
        ("<?xml-stylesheet type='text/css' href='x'?><?a <a href='y'> ?>",
         "<?xml-stylesheet type='text/css' href='/w1'?><?a <a href='y'> ?>"),
        ("<?xml-stylesheet type='text/xsl' href='x'?>", "<?x-xml-stylesheet type='text/xsl' href='x'?>"),
        ("<?xml-stylesheet a-type='text/css' type='text/xsl' href='x'?>",
         "<?x-xml-stylesheet a-type='text/css' type='text/xsl' href='x'?>"),
        ("<?xml-stylesheet type='text/&#120;sl' href='x'?>", "<?x-xml-stylesheet type='text/&#120;sl' href='x'?>"),
        # An instruction ends at its first `?>`, whatever quotes are open.
        ("<?xml-stylesheet href='?><a href='x'/><?y '?>", "<?x-xml-stylesheet href='?><a href='/w1'/><?y '?>"),
        ("<!DOCTYPE r [<?y '?>]><r><a href='x'/></r><!--']>-->",
         "<!DOCTYPE r [<?y '?>]><r><a href='/w1'/></r><!--']>-->"),
        ("<!DOCTYPE r [<?y <!-- ?><!ENTITY e '<a/>'><?y --> ?>]>", "<!DOCTYPE r [<?y <!-- ?><?y --> ?>]>"),
        ("<!DOCTYPE r [<?xml-stylesheet href='x'?>]>", "<!DOCTYPE r [<?xml-stylesheet href='/w1'?>]>"),
        # What an entity is, the document may say.
        ("<!DOCTYPE r [<!ENTITY num 'http://e'>]><a href='&num;x'/>",
         "<!DOCTYPE r [<!ENTITY num 'http://e'>]><a x-href='&num;x'/>"),
        ("<m:meta http-equiv='&e;' content='0;url=x'/>", "<m:meta x-http-equiv='&e;' content='0;url=x'/>"),
        ("<a x:href='a&e;' title='&e;'/>", "<a x:x-href='a&e;' title='&e;'/>"),
        ("<a href='?a&amp;b&#38;c'/>", "<a href='/w1'/>"),
        # An element in a style element is one.
        ("<style>a{}<a href='x'>y</a></style>", "<style>a{}y</style>"),
        ("<h:style><\u00e9 href='x'/></h:style>", "<h:style>&lt;&#233; href=&#39;x&#39;/&#62;</h:style>"),
        ("<style><![CDATA[a{b:url(c)} d>e]]></style>", "<style>a{b:url(/w1)} d&#62;e</style>"),
        ("<style>a{b:url(c)}</style>", "<style>a{b:url(/w1)}</style>"),
        ("<style><![CDATA[a > b]]></style>", "<style><![CDATA[a > b]]></style>"),
        # entities and defaults could bring in what is not seen
        ("<!DOCTYPE a [<!ENTITY x 'http://e.org/'><!ENTITY y '<a>'><!ENTITY z '&#60;'><!ATTLIST a b CDATA 'c'>]><a/>",
         "<!DOCTYPE a [<!ENTITY x 'http://e.org/'>]><a/>"),
        ("<a href='x' target='y'/>", "<a href='/w1' target='_top'/>"),
    ],
)  # fmt: skip
def test_references_of_xml(page: str, after: str) -> None:
    assert new(page, is_xml=True, target="target" in page)[1].decode() == after


@pytest.mark.parametrize("page", ['<a b="', "<a>&x;<!--", "<![CDATA[ <a href='x'>", "<!DOCTYPE a ["])
def test_xml_ends_where_it_is_not_well_formed(page: str) -> None:
    references = of_html(b"<p/>" + page.encode() + b"<a href='x'/>", "utf-8", is_xml=True)
    assert references.is_cut


def test_rewritten_svg_is_well_formed() -> None:
    svg = (
        b"<svg xmlns='http://www.w3.org/2000/svg' xmlns:l='http://www.w3.org/1999/xlink'><style>@import 'a&amp;b';"
        b"<![CDATA[ c{d:url(e)} ]]></style><a l:href='f' target='g'><image href='h'/></a></svg>"
    )
    seen, out = new(svg, is_xml=True, target=True)
    root = etree.fromstring(out)
    assert seen == ["style a&b", "other e", "link f", "image h"]
    assert list(of_sheet(root[0].text or "")) == ["/w1", "/w2"]
    assert {str(name): str(value) for name, value in root[1].attrib.items()} == {
        "{http://www.w3.org/1999/xlink}href": "/w3",
        "target": "_top",
    }


# --- nothing slips through


@pytest.mark.parametrize(
    "page",
    [
        "<svg><style><a href=x></style>",
        "<svg><title></svg><style></style><a href=x>",
        "<p><b></p><svg><title>t</title></svg></b></title><style><a href=x></style>",
        "<svg><foreignObject><p></svg></p></foreignObject><style><img src=x></style>",
        "<select><style></select><a href=x></style>",
        "<select><template></select></template><style></select><a href=x>",
        "<frameset><title><frame src=x>",
        "<template><col><style></template><a href=x>",
        "<svg><![CDATA[><a href=x>]]>",
        "<svg><style/><a href=x>",
        "<svg><style>a{b:url(&quot;x&quot;)}&lt;!--</style>",
        "<noscript><a title='</noscript><img src=x>'></noscript>",
        "<noscript><style></noscript><img src=x></style>",
        "<math><annotation-xml encoding=text/html><style></math><img src=x></style>",
        "<<a href=x>", "<a <b href=x>", "<a =href=x href=y>", "<a b=c=d href=x>", "<a 'href=x>' href=y>",
        "<a href=x" + " a=b" * 1000 + ">", "<b>" * 3000 + "<a href=x>",
    ],
)  # fmt: skip
def test_pages_that_readers_disagree_on(page: str) -> None:
    assert slipped(page) == []


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
@example("<svg><style>@import 'e7';<iframe srcdoc='<a href=e15>'>")
@example("<template><col></noscript><title><template><img src=e4>")
def test_nothing_that_a_browser_finds_slips_through(page: str) -> None:
    assert slipped(page) == []


@given(st.text(alphabet="<>/=\"'!-abhref svgtyle\n\0&#;[]?", max_size=300))
def test_nothing_slips_through_in_any_text(page: str) -> None:
    assert slipped(page) == []


@pytest.mark.parametrize(
    "page", ["<noscript><a title='</noscript>' href=x></noscript><b>", "<noscript><!--</noscript>"]
)
def test_a_browser_that_runs_scripts_reads_the_same_ends(page: str) -> None:
    _, out = new(page + "<img src=y>")
    assert out.count(b"</noscript") == (1 if "<b>" in page else 0)


def outside(body: bytes, references: References) -> list[bytes]:
    """The bytes between the references."""
    parts, at = [], 0
    for index in range(0, len(references.rows), 3):
        parts.append(body[at : references.rows[index]])
        at = references.rows[index + 1]
    return [*parts, body[at:]]


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join), st.sampled_from(["utf-8", "cp1252", "gb18030"]))
def test_bytes_outside_of_references_stay(page: str, charset: str) -> None:
    body = page.encode()
    references = of_html(body, charset)
    out = rewritten(body, references, lambda *_: Rewritten("/w"))
    at = 0
    for part in outside(body, references):
        kept = part if not references.holes else b""
        assert kept in out[at:]
        at = out.index(kept, at) + len(kept)
    begins = list(references.rows[::3])
    assert begins == sorted(begins)


@given(
    st.binary(max_size=300), st.sampled_from(["utf-8", "cp932", "big5", "utf-16-be", "hz", "nonsense"]), st.booleans()
)
def test_any_bytes_are_a_page(body: bytes, charset: str, is_xml: bool) -> None:
    rewritten(body, of_html(body, charset, is_xml=is_xml), lambda *_: Rewritten("/w"))


# --- real pages


FOLDERS = [Path("/usr/share/doc", name, "html") for name in ("python3.11", "postgresql-doc-15", "debian-handbook")]


def real_files() -> list[Path]:
    found = [
        Path(folder, name)
        for root in FOLDERS
        for folder, _, names in os.walk(root)
        for name in sorted(names)
        if name.endswith((".html", ".css"))
    ]
    return random.Random(0).sample(sorted(found), min(len(found), 60))


@pytest.mark.large
def test_real_pages_have_the_references_that_lexbor_finds_and_none_else() -> None:
    files = real_files()
    if not files:
        pytest.skip("no documentation is installed here")
    for file in files:
        body = file.read_bytes()
        charset = decode_charset(body, "text/html")
        is_sheet = file.suffix == ".css"
        references = of_css(body, charset) if is_sheet else of_html(body, charset)
        seen: list[str] = []

        def rewrite(_use: Use, text: str, seen: list[str] = seen) -> Rewritten:
            seen.append(text)
            return Rewritten("/w")

        out = rewritten(body, references, rewrite)
        reader = of_sheet if is_sheet else of_page
        expected = [each for each in reader(body.decode(charset, "replace")) if not each.startswith(FORBIDDEN)]
        assert Counter(seen) == Counter(expected), file
        assert set(reader(out.decode(charset, "replace"))) <= {"/w"}, file


# --- bounds


@pytest.mark.large
@pytest.mark.parametrize(
    "part",
    ["<", "<a ", '<a b="', "<!--", "<![CDATA[", "<svg>", "<svg><title>", "<svg><style/>", "<script><!--", "<noscript>",
     "<a title='</noscript>'>", "<template>", "<select>", "</", "<svg><![CDATA[>", "&#", " x=y", "<iframe srcdoc='",
     "<p style='url(", "<img srcset='a, ", "<object codebase=a data=b>", "<form>"],
)  # fmt: skip
@pytest.mark.parametrize("is_xml", [False, True])
def test_hostile_pages_take_linear_time(part: str, is_xml: bool) -> None:
    def seconds(size: int) -> float:
        body = b"<a " + part.encode() * (size // len(part))
        begin = time.process_time()
        rewritten(body, of_html(body, "utf-8", is_xml=is_xml), lambda *_: Rewritten("/w"))
        return time.process_time() - begin

    assert is_linear(seconds, 8_000)


def test_a_hundred_thousand_tags_and_attributes() -> None:
    page = "<b>" * 100_000 + "<a" + " x=y" * 100_000 + " href=z>"
    assert new(page)[0] == ["link z"]


def test_a_page_beyond_the_limit_ends_there() -> None:
    body = b"x" * (LONGEST_BODY - 3) + b"<a href=x>"
    references = of_html(body, "utf-8")
    assert references.is_cut
    assert len(rewritten(body, references, lambda *_: None)) == LONGEST_BODY


def test_positions_are_light() -> None:
    references = of_html(b"<a href=x>" * 500, "utf-8")
    assert len(references) == 500
    assert references.weight < 8_000
