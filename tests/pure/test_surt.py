"""The key of a URL that sorts by host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.urls import canonical, surt

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.org/", "org,example)/"),
        ("https://example.org/", "org,example)/"),
        ("http://www.example.org/", "org,example,www)/"),
        ("http://www.example.org:8080/a/B?x=1&A=2", "org,example,www:8080)/a/B?x=1&A=2"),
        ("http://localhost/a", "localhost)/a"),
        ("http://10.0.0.7/a", "10.0.0.7)/a"),
        ("http://10.0.0.7:81/", "10.0.0.7:81)/"),
        ("http://[2001:db8::1]/", "[2001:db8::1])/"),
        ("http://[2001:db8::1]:8080/x", "[2001:db8::1]:8080)/x"),
        ("http://1.2.3.example/", "example,3,2,1)/"),
        ("http://xn--bcher-kva.example/%C3%BC", "example,xn--bcher-kva)/%C3%BC"),
        ("http://e.org/a)/b,c", "org,e)/a)/b,c"),
        ("http://e.org/?u=http://f.org:80/", "org,e)/?u=http://f.org:80/"),
    ],
)
def test_keys(url: str, key: str) -> None:
    """For ever: a database that is made anew has the same."""
    assert canonical(url) == url
    assert surt(url) == key


_hosts = st.from_regex(r"[a-z]{1,5}(\.[a-z]{1,5}){0,3}(:[1-9][0-9]{3})?", fullmatch=True)


@given(_hosts, _hosts, st.from_regex(r"/[A-Za-z0-9/?=]{0,9}", fullmatch=True))
def test_a_key_tells_its_url_but_for_the_scheme(host: str, other: str, rest: str) -> None:
    key = surt(f"http://{host}{rest}")
    assert key == surt(f"https://{host}{rest}")
    assert (key == surt(f"http://{other}{rest}")) == (host == other)
    name, _, left = key.partition(")")
    domain, colon, port = name.partition(":")
    assert ".".join(reversed(domain.split(","))) + colon + port + left == host + rest
