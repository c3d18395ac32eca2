"""The DOM of a page without its scripts: what goes, what stays, and that no content is too much."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.support.properties import examples
from webarcfs.content.rewriting.scriptless import without_scripts

pytestmark = pytest.mark.pure

_CASES = {
    "an event": ('<p onclick="a()" ONLOAD=b class=x>', '<p x-onclick="a()" x-ONLOAD=b class=x>'),
    "a script": ("<script src=/a.js>alert('</p>')</script>b", "<script x-src=/a.js></script>b"),
    "a script in a comment of a script": (
        "<script>x='<!--<script>'</script>--></script>b", "<script></script>b",
    ),
    "a script without an end": ("a<script>x", "a<script>"),
    "a script in a drawing": ("<svg><script>x</script></svg>", "<svg><script></script></svg>"),
    "an empty script in a drawing": ("<svg><script href=a /><p>", "<svg><script x-href=a /></script><p>"),
    "a script in a shadow root": (
        "<template shadowrootmode=open><script>x</script><b>", "<template shadowrootmode=open><script></script><b>",
    ),
    "a refresh": ("<meta http-equiv=Refresh content='0;url=/'>", "<meta x-http-equiv=Refresh content='0;url=/'>"),
    "what is for others": ("<noscript><img src=x onerror=y></noscript>b", "<noscript></noscript>b"),
    "the same without an end": ("a<noscript>b", "a<noscript>"),
    "a page in an attribute": (
        '<iframe srcdoc="&lt;script>x&lt;/script>b">', '<iframe srcdoc="&lt;script&#62;&lt;/script&#62;b">',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("html", "left"), _CASES.values(), ids=_CASES)
def test_what_would_run_goes(html: str, left: str) -> None:
    """S-rendered-11: scripts and noscript are emptied, events and refreshes put out of force."""
    assert without_scripts(html.encode()) == left.encode()


@pytest.mark.parametrize(
    "html",
    [
        "<!DOCTYPE html><title><script></title><textarea><script>x</script></textarea><!--<script>x</script>-->",
        '<style>a::before{content:"<script>"}</style><p title="<script>x</script>">\u00e4 \U0001f992',
        '<a href="javascript:x()">led elsewhere by whoever leads references</a>',
    ],
)
def test_what_is_no_script_stays(html: str) -> None:
    assert without_scripts(html.encode()) == html.encode()


_PIECES = st.sampled_from(
    ["<script>", "</script>", "<script", "<!--", "-->", "<svg>", "</svg>", "<style>", "</style>", "<select>",
     "<p onx=1>", "<template>", "</template>", "<noscript>", "</noscript>", "<title>", "</title>", "\0", "'", '"', ">",
     "x", "<math>", "<textarea>", "</textarea>", "<iframe srcdoc='&lt;script>1&lt;/script>'>", "</iframe>",
     "<![CDATA[", "]]>"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=30).map("".join))
@settings(max_examples=examples(1_000), deadline=None)
def test_no_page_has_a_script_or_an_event_left(html: str) -> None:
    """S-rendered-11: as a parser of HTML reads it, whatever the page has."""
    tree = LexborHTMLParser(without_scripts(html.encode()))
    assert not [script.text() for script in tree.css("script") if script.text().strip()]
    assert not [name for node in tree.css("*") for name in node.attributes if name.startswith("on")]
