"""The references of style sheets, as they are written there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.content.outlinks import references

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("", []),
        ("a { color: red }", []),
        ("a { background: url(x.png) }", ["x.png"]),
        ("url( 'x.png' ) URL(\"y.png\")", ["x.png", "y.png"]),
        ("@import 'x.css'; @IMPORT \"y.css\" screen; @import url(z.css);", ["x.css", "y.css", "z.css"]),
        ("url(a.woff2) format('woff2'), url(a.woff)", ["a.woff2", "a.woff"]),
        # no references: comments, namespaces, strings
        ("/* url(no) */ url(yes) /* url(no)", ["yes"]),
        ("@namespace svg url(http://www.w3.org/2000/svg); url(yes)", ["yes"]),
        ("a::after { content: 'url(no)' \"url(no)\" } b { src: url(yes) }", ["yes"]),
        ("url() url('') @import '';", []),
        # escapes: CSS Syntax 4.3.7
        (r"url(a\ b.png)", ["a b.png"]),
        (r"url('\63 .png') url(\000063.png)", ["c.png", "c.png"]),
        (r"url('it\'s') url(\(x\))", ["it's", "(x)"]),
        ("url('a\\\nb')", ["ab"]),
        (r"url('\0') url('\110000') url('\D800')", ["\ufffd", "\ufffd", "\ufffd"]),
        # cut off
        ("url(", []),
        ("url(x", ["x"]),
        ("url('x", ["x"]),
        ("@import 'x", ["x"]),
        ("url('x\ny) url(z)", ["z"]),  # a string that ends with its line is none, and loads nothing
    ],
)
def test_references(css: str, found: list[str]) -> None:
    assert list(references(css)) == found


@given(st.text(alphabet="url(@import'\"\\/* )x\n6;"))
def test_any_text_has_references_or_none(css: str) -> None:
    assert all(references(css))
