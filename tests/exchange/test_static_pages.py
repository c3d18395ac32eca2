"""Documents of an exported folder: references made relative, and what a page says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from tests.support.hostilepages import HOSTILE
from tests.support.properties import examples
from webarcfs.content.references import LONGEST_BODY
from webarcfs.export import static_site
from webarcfs.export.static_places import SiteReading, SiteTarget, file_type
from webarcfs.export.static_site import RewrittenDocument, SitePage, page_of, relative

pytestmark = pytest.mark.pure

URL = "http://e.org/a/page.html"
PLACES = {
    URL: SiteTarget("e.org/a/page.html"),
    "http://e.org/": SiteTarget("e.org/index.html"),
    "http://e.org/a/b.html": SiteTarget("e.org/a/b.html"),
    "http://e.org/a/x?y=1": SiteTarget("e.org/a/x@y=1.html"),
    "http://e.org/s.css": SiteTarget("e.org/s.css"),
    "http://e.org/i.png": SiteTarget("e.org/i.png"),
    "http://e.org/i.svg": SiteTarget("e.org/i.svg"),
    "http://other.org/": SiteTarget("other.org/index.html"),
    "http://e.org/100%25": SiteTarget("e.org/100%25 é.html"),
    "http://e.org/a/%C3%BC.pdf": SiteTarget("e.org/a/ü.PDF"),
    "http://e.org/led": SiteTarget("e.org/a/b.html", "#end"),
}
SAID = {"url": URL, "captured": "2021-05-01T12:00:00", "commitTag": "2021-05-01T12:00:00@e.org", "publication": "p"}


def made(
    body: bytes | str, reading: SiteReading = SiteReading.HTML, content_type: str = "", said: Mapping[str, str] = SAID
) -> SitePage:
    raw = body.encode() if isinstance(body, str) else body
    document = RewrittenDocument(
        url=URL, path="e.org/a/page.html", reading=reading, content_type=content_type, comment=said
    )
    return page_of(document, raw, PLACES.get)


def page(body: bytes | str, **more: str) -> str:
    return made(body, **more).body.decode()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ('<a href="b.html">', '<a href="b.html">'),
        ('<a href="/">', '<a href="../index.html" data-webarc-href="/">'),
        ('<a href="http://e.org/a/b.html#x">', '<a href="b.html#x" data-webarc-href="http://e.org/a/b.html#x">'),
        ("<a href=x?y=1>", '<a href="x@y=1.html" data-webarc-href="x?y=1">'),
        ('<a href="#x">', '<a href="#x">'),
        ('<a href="page.html#x">', '<a href="#x" data-webarc-href="page.html#x">'),
        ('<a href="">', '<a href="page.html" data-webarc-href="">'),
        ('<a href="//other.org">', '<a href="../../other.org/index.html" data-webarc-href="//other.org">'),
        ('<a href="/100%25">', '<a href="../100%2525%20%C3%A9.html" data-webarc-href="/100%25">'),
        ('<a href="/led#x">', '<a href="b.html#end" data-webarc-href="/led#x">'),
        ('<img src="/i.png">', '<img src="../i.png">'),
        ('<img src="/none.png">', '<img src="data:,">'),
        ('<img src="data:image/png;base64,x">', '<img src="data:image/png;base64,x">'),
        ('<img srcset="/i.png 2x, http://live.test/ 3x">', '<img srcset="../i.png 2x, data:%2C 3x">'),
        ('<p style="background:url(/i.png)">', '<p style="background:url(../i.png)">'),
        ('<style>@import "/s.css";</style>', '<style>@import "../s.css";</style>'),
        ('<object data="http://live.test/"></object>', '<object data="about:blank"></object>'),
        ('<meta http-equiv="refresh" content="0;url=/">', '<meta http-equiv="refresh" content="0;url=../index.html">'),
        ('<base href="/x/" target="_blank">', '<base href="" data-webarc-href="/x/" target="_blank">'),
        ('<base href="/a/"><a href="b.html">', '<base href="" data-webarc-href="/a/"><a href="b.html">'),
    ],
)
def test_a_reference_becomes_relative(written: str, becomes: str) -> None:
    assert page(f"<!DOCTYPE html><title>x</title>{written}").rpartition("<title>x</title>")[2] == becomes


def test_what_is_for_browsers_without_scripts_is_shown() -> None:
    inside = '<noscript class="n"><img src="/i.png"><meta http-equiv=refresh content="0;url=/"></noscript>'
    found = page(f"<!DOCTYPE html><title>x</title>{inside}<meta http-equiv=refresh content='9;url=/'>")
    assert found.endswith(
        '<x-noscript class="n"><img src="../i.png"><meta x-http-equiv=refresh content="0;url=/"></x-noscript>'
        "<meta http-equiv=refresh content='9;url=../index.html'>"
    )
    # In a frameset it would take the frames' place.
    assert "<noscript><b>" in page("<!DOCTYPE html><noscript><b></noscript><FRAMESET><frame src=/></FRAMESET>")


@pytest.mark.parametrize(
    ("written", "notice"),
    [
        ('<a href="http://live.test/x?y#z">', "missing.html#http://live.test/x?y#z"),
        ('<a href="c.html">', "missing.html#http://e.org/a/c.html"),
        ('<a href="mailto:a@b.c">', "missing.html#mailto:a@b.c"),
        ('<a href="javascript:alert(1)">', "missing.html#javascript:alert(1)"),
        ('<a href="http://[">', "missing.html#http://["),
        ('<iframe src="http://live.test/"></iframe>', "missing.html#http://live.test/"),
        ('<form action="/search"></form>', "form.html#/search"),
        ("<form></form>", "form.html#"),
        ('<a href="%C3%BC.pdf#page=2">', "live.html#e.org/a/%C3%BC.PDF#page=2"),
        ('<iframe src="%C3%BC.pdf">', "live.html#e.org/a/%C3%BC.PDF"),
        ('<embed src="%C3%BC.pdf">', "live.html#e.org/a/%C3%BC.PDF"),
        ('<button formaction="http://live.test/">', "form.html#http://live.test/"),
        ('<meta http-equiv=refresh content="1; http://live.test/">', "missing.html#http://live.test/"),
    ],
)
def test_what_is_not_in_the_folder_leads_to_a_notice(written: str, notice: str) -> None:
    found = re.search(r"\.\./\.\./_webarcfs/[^\"' >]+", page(f"<!DOCTYPE html><title>x</title>{written}"))
    assert found and unquote(found[0]) == f"../../_webarcfs/{notice}"


def test_a_page_says_what_it_is_and_what_its_references_were() -> None:
    found = page('<!DOCTYPE html><a href="http://live.test/">x</a><img src="/i.png"><img src="http://x/?a--b>c">')
    comment = found.partition("<!--")[2].partition("-->")[0]
    for line in (*(f"{name}: {value}" for name, value in SAID.items()), "../i.png was /i.png"):
        assert line in comment.split("\n")
    assert "data:, was http://x/?a-&#45;b&gt;c" in comment.split("\n")
    assert 'data-webarc-href="http://live.test/"' in found


@pytest.mark.parametrize(
    ("body", "content_type", "charset"),
    [
        ("<p>\u00e4", "", "utf-8"),
        ("<p>\u00e4".encode("latin-1"), "text/html; charset=ISO-8859-1", "windows-1252"),
        ("<p>\u0142".encode("iso8859-2"), "text/html; charset=iso-8859-2", "iso-8859-2"),
        ("<meta charset=koi8-r><p>\u0436".encode("koi8-r"), "", "koi8-r"),
        ("<p>\u65e5\u672c".encode("shift_jis"), "text/html; charset=Shift_JIS", "shift_jis"),
        ("\ufeff<p>\u00e4".encode("utf-16"), "", "utf-8"),
        ("<p>\u65e5\u672c".encode("iso2022_jp"), "text/html; charset=iso-2022-jp", "utf-8"),
        ("<p>\ud55c".encode("cp949"), "text/html; charset=euc-kr", "euc-kr"),
    ],
)
def test_a_page_declares_its_charset_before_all_else(body: bytes | str, content_type: str, charset: str) -> None:
    found = made(body, content_type=content_type).body
    assert found.partition(b">")[0].removeprefix(b"\xef\xbb\xbf") == b'<meta charset="%s"' % charset.encode()
    node = LexborHTMLParser(found.decode(charset)).css_first("p")
    text = "" if node is None else node.text()
    assert text in "\u00e4\u0142\u0436\u65e5\u672c\ud55c" and text


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("<!DOCTYPE html>", "<html lang=x><head><title>x</title>"),
        ("\ufeff <!-- a > b --><?xml version='1.0'?><!doctype HTML PUBLIC 'a'>", "<html>"),
        ("", "<html><head>"),
        ("\ufeff", "text<!DOCTYPE html>"),
        ("", "<!-- no end <!DOCTYPE html>"),
        ("", "<p><!DOCTYPE html>"),
    ],
)
def test_charset_and_policy_stand_behind_the_doctype_and_before_all_else(before: str, behind: str) -> None:
    found = page(f"{before}{behind}")
    assert found.startswith(f'{before}<meta charset="utf-8"><meta http-equiv="Content-Security-Policy"')
    assert found.endswith(f"-->\n{behind}")


def test_a_policy_of_the_page_is_out_of_force_and_ours_is_the_first() -> None:
    found = page('<meta http-equiv=Content-Security-Policy content="default-src *"><script>1</script>')
    assert found.index(static_site.POLICY) < found.index("x-http-equiv")


def test_a_page_of_xml_gets_policy_and_comment_in_its_head() -> None:
    for head, prefix in (("<head lang='>'>", ""), ("", ""), ("<h:head>", "h:")):
        space = f'xmlns{":h" if prefix else ""}="http://www.w3.org/1999/xhtml"'
        end = f"</{prefix}head>" if head else ""
        body = f"<{prefix}body>\u00e4</{prefix}body>"
        source = f"<!DOCTYPE html><!-- <html> --><{prefix}html {space}>\n{head}{end}{body}</{prefix}html>"
        found = made(source, SiteReading.XHTML).body
        root = etree.fromstring(found)
        first = root.find(".//{http://www.w3.org/1999/xhtml}head/{http://www.w3.org/1999/xhtml}meta")
        assert first is not None and first.get("content") == static_site.POLICY
        assert b"url: http://e.org/a/page.html" in found
        assert found.startswith(b'<?xml version="1.0" encoding="utf-8"?>')
        assert root[-1].text == "\u00e4"


@pytest.mark.parametrize(
    "source", ["<r xmlns:h='http://www.w3.org/1999/xhtml'><h:script>1</h:script></r>", "", "<html/>", "<a"]
)
def test_what_is_no_page_of_xml_is_shown_as_text(source: str) -> None:
    root = etree.fromstring(made(source, SiteReading.XHTML).body)
    assert root.xpath("count(//*[local-name() = 'script'])") == 0
    assert "".join(root.itertext()).strip() in (source, "")


def test_a_sheet_keeps_its_charset_and_rules() -> None:
    found = made('@charset "latin1";\n@import "/s.css"; p{color:red}', SiteReading.CSS).body.decode()
    assert found.startswith('@charset "latin1";\n/* ')
    assert found.endswith('*/\n\n@import "../s.css"; p{color:red}')
    found = made(
        "p::before{content:'\u00e4'}".encode("latin-1"), SiteReading.CSS, "text/css; charset=latin1"
    ).body.decode("latin-1")
    assert found.startswith('@charset "windows-1252";\n/* ')
    assert made("a{background:url(http://x/*/y)}", SiteReading.CSS).body.count(b"*/") == 1


# -- drawings

_NS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
_XHTML = "xmlns:h='http://www.w3.org/1999/xhtml'"


@pytest.mark.parametrize(
    "inside",
    [
        '<path d="M0 0"/>', '<a xlink:href="../x.html"><text>t</text></a>', '<image href="data:image/png;base64,x"/>',
        "<style>p{}</style>", '<image xlink:href="data:,"/>', '<use href="#a"/>',
        '<set attributeName="fill" to="red"/>', '<x:note xmlns:x="http://editor/">n</x:note>',
    ],
)  # fmt: skip
def test_a_drawing_without_scripts_stays(inside: str) -> None:
    head = '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd">\n'
    source = f"{head}<svg {_NS}>{inside}</svg>\n".encode()
    assert static_site.cleaned(source) == (source, False)


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>", "<g><script href='x.js'/>tail</g>", "<g onclick='1'/>",
        "<foreignObject><p/></foreignObject>",
        "<a href='javascript:1'/>", "<a xlink:href=' java&#10;script:1'/>", f"<h:script {_XHTML}>1</h:script>",
        f"<h:iframe {_XHTML} srcdoc='x'/>", "<set attributeName='href' to='javascript:1'/>",
        "<set attributeName='onclick' to='1'/>", "<image href='data:text/html,x'/>",
        "<s:script xmlns:s='http://www.w3.org/2000/svg'>1</s:script>",
    ],
)  # fmt: skip
def test_what_a_drawing_would_run_is_taken_out(inside: str) -> None:
    found, is_other = static_site.cleaned(f"<svg {_NS} onload='1'>{inside}<rect id='r'/></svg>".encode())
    assert is_other
    text = found.decode()
    assert not re.search(r"script|onload|onclick|foreignObject|iframe|data:text", text.replace("javascript:1'", "x"))
    assert "<rect" in text and ("tail" in text) == ("tail" in inside)
    assert static_site.cleaned(found) == (found, False)


def test_entities_of_a_drawing_are_put_in_before_it_is_looked_at() -> None:
    entities = '<!ENTITY e "<script>1</script>"><!ENTITY n "http://editor/">'
    source = f'<!DOCTYPE svg [{entities}]><svg {_NS} xmlns:x="&n;">&e;<rect/></svg>'
    found, is_other = static_site.cleaned(source.encode())
    assert is_other and b"script" not in found and b"ENTITY" not in found and b"<rect" in found
    many = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE svg [<!ENTITY e0 "ha">{many}]><svg {_NS}>&e11;</svg>'
    assert len(static_site.cleaned(bomb.encode())[0]) < 1 << 20


@pytest.mark.parametrize(
    "source", ["", "no drawing", "<svg><script>1</script></svg>", f"<svg {_NS}><g><script>1</script>", "<html/>"]
)
def test_what_is_no_drawing_runs_nothing(source: str) -> None:
    found, _ = static_site.cleaned(source.encode())
    assert etree.fromstring(found).xpath("count(//*[namespace-uri() != '' and local-name() = 'script'])") == 0


# -- properties


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_pages_are_tamed(name: str) -> None:
    kind, body = HOSTILE[name]
    reading = file_type(kind, name).reading
    if reading is SiteReading.NONE:
        return
    found = made(body, reading).body
    if reading is SiteReading.DRAWING:
        assert b"script" not in found and b"onload" not in found
    if reading is SiteReading.HTML:
        parsed = LexborHTMLParser(found.decode("utf-8", "replace"))
        assert parsed.css("head meta")[1].attributes["content"] == static_site.POLICY
        for node in parsed.css("[src], [href]"):
            if node.tag not in ("base", "link"):
                value = (node.attributes.get("src") or node.attributes.get("href") or "").strip()
                assert not re.match(r"(?i)https?:|//|\\\\", value), (name, node.html)


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=300), st.sampled_from(list(SiteReading)))
def test_no_content_raises_and_no_comment_is_ended(body: bytes, reading: SiteReading) -> None:
    if reading is SiteReading.NONE:
        return
    found = made(body, reading, said={"url": "http://e.org/--><script>*/", "title": "ä\n-->"}).body
    assert b"--><script" not in found
    if reading is SiteReading.HTML:
        assert b'http-equiv="Content-Security-Policy"' in found
    elif reading is SiteReading.DRAWING:
        etree.fromstring(found)


def test_a_page_that_is_too_long_is_cut_and_says_so() -> None:
    found = made(b"<p>" + b"x" * LONGEST_BODY)
    assert found.is_cut and len(found.body) < LONGEST_BODY + 2_000
    assert not made(b"<p>").is_cut
    assert made(b"<svg xmlns='http://www.w3.org/2000/svg'>" + b" " * LONGEST_BODY, SiteReading.DRAWING).is_cut
    assert not made(b"<html><a", SiteReading.XHTML).is_cut


@given(
    st.lists(st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1), max_size=4),
    st.lists(
        st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1),
        min_size=1,
        max_size=4,
    ),
)
def test_a_relative_reference_leads_to_the_file(folder: list[str], path: list[str]) -> None:
    here: list[str] = list(folder)
    for part in unquote(relative("/".join(folder), "/".join(path))).split("/"):
        if part == ".." and here:
            here.pop()
        else:
            here.append(part)
    if ".." not in (*folder, *path):
        assert here == path


def test_our_own_pages_run_our_script_alone() -> None:
    for found in (static_site.missing(), static_site.form(), static_site.live()):
        parsed = LexborHTMLParser(found.decode())
        assert "sha256-" in (parsed.css("meta")[1].attributes["content"] or "")
        assert len(parsed.css("script")) == 1
    listed = static_site.Listed(
        domain="<e>", commit_tag="<t>", publication="<p>", documents=3, start='a"b', title="<x>"
    )
    parsed = LexborHTMLParser(static_site.index([listed], "<s>").decode())
    assert [node.text() for node in parsed.css("td")] == ["<e><x>", "<t>", "<p>", "3"]
    assert parsed.css_first("td a").attributes["href"] == 'a"b'  # type: ignore[union-attr] # it is there
