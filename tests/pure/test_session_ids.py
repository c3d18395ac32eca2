"""Session ids leave URLs, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.urls import SESSION_PARAMETERS, SessionIds, canonical

pytestmark = pytest.mark.pure

IDS = SessionIds(SESSION_PARAMETERS)
HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("path", "bare"),
    [
        (f"p.html;jsessionid={HEX}", "p.html"),
        ("p.html;jsessionid=A1.node2?x=1", "p.html?x=1"),
        ("p.html;JSESSIONID=A1", "p.html"),
        ("a;jsessionid=1/b;v=2", "a/b;v=2"),
        ("a/..;jsessionid=1/b", "b"),
        ("a/.;jsessionid=1", "a/"),
        ("(S(4v3y3555zk5gvn55fpq5ym45));jsessionid=1/x", "x"),
        ("p?PHPSESSID=abc", "p"),
        ("p?a=1&PHPSESSID=abc&b=2", "p?a=1&b=2"),
        ("p?PHPSESSID=abc&b=2", "p?b=2"),
        (f"p?sid={HEX}", "p"),
        (f"p?a;sid={HEX};b", "p?a;b"),
        ("p?sid=12", "p?sid=12"),
        ("p?sid=section-of-the-site", "p?sid=section-of-the-site"),
        ("p?ASPSESSIONIDQQBADSAC=ABCDEFGHIJKLMNOPABCDEFGH", "p"),
        ("p?CFID=12&CFTOKEN=34&x=1", "p?x=1"),
        ("p?cfid=12", "p?cfid=12"),
        ("shop?zenid=1&osCsid=2", "shop"),
        ("(S(4v3y3555zk5gvn55fpq5ym45))/d/p.aspx", "d/p.aspx"),
        ("(A(abcdefgh12)S(4v3y3555zk5gvn55fpq5ym45))/p.aspx", "p.aspx"),
        ("wiki/f(S(x))/g", "wiki/f(S(x))/g"),
        ("p?", "p?"),
        ("p?insid=1&phpsessid", "p?insid=1&phpsessid"),
    ],
)
def test_what_is_taken_out(path: str, bare: str) -> None:
    assert IDS.without(f"http://e.org/{path}") == f"http://e.org/{bare}"


def test_no_names_take_nothing_out() -> None:
    url = f"http://e.org/(S({HEX}))/a;jsessionid=1?PHPSESSID=2"
    assert SessionIds(()).without(url) == url


_PIECES = (
    "a", "b", "..", ".", "/", ";", "=", "&", "?", ";jsessionid=1", "PHPSESSID=2", f"sid={HEX}",
    "/(S(4v3y3555zk5gvn55fpq5ym45))", "CFID=1", "CFTOKEN=2",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_taking_out_once_is_enough_and_keeps_urls_canonical(text: str) -> None:
    url = canonical(f"http://e.org/{text}")
    bare = IDS.without(url)
    assert IDS.without(bare) == bare and canonical(bare) == bare
    assert bare.startswith("http://e.org/") and len(bare) <= len(url)
