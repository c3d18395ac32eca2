"""Which pages need a browser, by what they say before their scripts run."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.content.outlinks import find
from webarcfs.content.scripted_pages import needs_browser

pytestmark = pytest.mark.pure

_SCRIPT = '<script src="/main.js"></script>'
_TEXT = "<p>" + "one word after another " * 10 + "</p>"
_FEW = "<p>three words only</p>"

NEEDING = {
    "Vue": f"<!DOCTYPE html><title>A long title of more than ten words that is seen nowhere in the page itself</title>"
    f"<noscript><strong>We are sorry but this does not work properly without JavaScript enabled.</strong></noscript>"
    f'<div id="app"></div>{_SCRIPT}',
    "React": f"<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>{_SCRIPT}",
    "Next": f'<div id="__next"> <!-- filled later --> </div>{_SCRIPT}',
    "Angular": f"<app-root></app-root>{_SCRIPT}",
    "docsify": f'<div id="app">Loading…</div><script>window.$docsify = {{}}</script>{_SCRIPT}',
    "module": '<div id="app"></div><script type="module" src="/a.js"></script>',
    "inline": "<body><script>document.write('all that there is to read here, and that is quite a lot')</script>",
    "upper case": '<BODY><DIV ID="x"></DIV><SCRIPT SRC="a.js"></SCRIPT></BODY>',
    "spinner": f'<img src="/wait.gif" alt="please wait"> Loading{_SCRIPT}',
    "redirect by script": "<script>location.replace('/en/')</script>",
    "hidden text": f'<div style="display: none">{_TEXT}<div>{_TEXT}</div></div>{_FEW}{_SCRIPT}',
    "hidden by attribute": f"<section hidden><section>{_TEXT}</section>{_TEXT}</section>{_SCRIPT}",
    "template": f"<template>{_TEXT}<template>{_TEXT}</template></template>{_SCRIPT}",
    "comment": f"<!-- {_TEXT} -->{_SCRIPT}",
    "static head and foot": f'<nav>{"Home News About " * 4}</nav><div id="app"></div>{_SCRIPT}<footer>Imprint</footer>',
    "frame of a counter": f'<iframe src="/counter" width="1" height="1"></iframe><div id="app"></div>{_SCRIPT}',
    "fallback in a frame": f"<iframe>{_TEXT}</iframe>{_SCRIPT}",
    "refresh without scripts": f"<noscript><meta http-equiv=refresh content='0; url=/plain'></noscript>{_SCRIPT}",
    "refresh to itself": f"<meta http-equiv=refresh content=300>{_FEW}{_SCRIPT}",
    "three words of Chinese": f"<p>正在加载中</p>{_SCRIPT}",
}
SPEAKING = {
    "no script": "<body><p>Under construction</p></body>",
    "text": f"{_TEXT}{_SCRIPT}",
    "rendered by its server": f'<div id="root"><main>{_TEXT}</main></div>{_SCRIPT}',
    "text behind a long script": f"<script>{'x = 1;' * 20_000}</script>{_TEXT}",
    "data": f'{_FEW}<script type="application/ld+json">{{"name": "a"}}</script>',
    "empty script": f"{_FEW}<script></script>",
    "script in noscript": f"<noscript>{_SCRIPT}</noscript>{_FEW}",
    "frames": f'<frameset cols="1,2"><frame src="a"><frame src="b"></frameset><noframes>no frames</noframes>{_SCRIPT}',
    "frame set after a script": f'{_SCRIPT}<frameset><frame src="a"></frameset>',
    "framed": f'<iframe src="/all"></iframe>{_SCRIPT}',
    "pictures": f"{'<img src=a.png>' * 4}{_SCRIPT}",
    "pictures alone": "<img src=a.png>",
    "refresh": f'<meta http-equiv="Refresh" content="0; URL=/en/">{_SCRIPT}Click here',
    "form": f"<form><input name=user><input type=password>Log in<button>Go</button> to your account</form>{_SCRIPT}",
    "Chinese": f"<p>{'这是一个没有空格的很长的句子' * 3}</p>{_SCRIPT}",
    "Japanese": f"<p>{'これは日本語の文章です' * 3}</p>{_SCRIPT}",
    "shadow root": f"<my-page><template shadowrootmode=open>{_TEXT}</template></my-page>{_SCRIPT}",
    "much text beside an empty root": f'{_TEXT * 3}<div id="app"></div>{_SCRIPT}',
    "quote in a tag": f"<p don't>{_TEXT}</p>{_SCRIPT}",
    "nothing": "",
}


@pytest.mark.parametrize("name", NEEDING)
def test_a_page_that_only_its_scripts_fill_needs_a_browser(name: str) -> None:
    assert needs_browser(NEEDING[name])


@pytest.mark.parametrize("name", SPEAKING)
def test_a_page_that_says_something_needs_none(name: str) -> None:
    assert not needs_browser(SPEAKING[name])


def test_xhtml_ends_its_elements_in_their_tags() -> None:
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><script src="a.js"/><div id="app"/>{_FEW}</body></html>'
    assert needs_browser(page, is_xhtml=True)
    assert not needs_browser(page.replace(_FEW, _TEXT * 3), is_xhtml=True)
    assert needs_browser(page.replace(_FEW, _TEXT * 3)), "HTML would take the text for the script's"


@pytest.mark.parametrize("kind", ["text/html", "application/xhtml+xml"])
def test_what_reads_a_page_for_links_says_it(kind: str) -> None:
    shell = NEEDING["React"].encode()
    assert find(shell, "http://e.org/", kind, "utf-8").needs_browser
    assert not find(shell, "http://e.org/", "image/svg+xml", "utf-8").needs_browser
    many = shell + b"".join(b"<a href=/%d>x</a>" % number for number in range(30))
    assert not find(many, "http://e.org/", kind, "utf-8").needs_browser
    wide = NEEDING["React"].encode("utf-16-le")
    assert find(wide, "http://e.org/", "text/html", "utf-16-le").needs_browser


_PIECES = st.sampled_from(
    ["<", ">", "</", "/>", "<!--", "-->", "<script", "</script>", "<noscript>", "</noscript>", "<template>",
     "<p hidden>", '<div id="app">', "</div>", "=", '"', "'", "<a b='", '<a b="', "&amp;", "word ", "<img src=x>",
     "<iframe src=", "\0"]
)  # fmt: skip


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=60))
def test_no_page_raises(pieces: list[str]) -> None:
    page = "".join(pieces)
    needs_browser(page)
    assert not needs_browser(page.replace("<", "")), "without a tag there is no script"


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(_PIECES, max_size=30), st.integers(40, 200))
def test_text_before_all_else_is_enough(pieces: list[str], words: int) -> None:
    assert not needs_browser("word " * words + "".join(pieces))


@pytest.mark.parametrize(
    "piece", ["<", "<a ", '<a b="', "<a b='x", "<!--", "<!", "<script>", "<script></script>", "<p hidden>",
              "<template>", "<noscript>", "</p", "<a =", '<div id="app">', "<img src=data:>", "<title>", "&"]
)  # fmt: skip
def test_the_time_is_linear_in_the_page(piece: str) -> None:
    """A page of a megabyte takes no more than a few times as long as ten of a tenth."""

    def seconds(page: str) -> float:
        begun = time.process_time()
        needs_browser(page)
        return time.process_time() - begun

    page = piece * (1_000_000 // len(piece))
    tenth = sum(seconds(page[: len(page) // 10]) for _ in range(10))
    assert seconds(page) < 5 * tenth + 0.5
