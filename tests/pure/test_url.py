"""One spelling for each URL, and the refusal of what is none."""

import contextlib
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.urls import canonical_urls, raw_urls
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical, domain_of, parse, remove_dot_segments

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("raw", "spelling"),
    [
        ("http://e.org", "http://e.org/"),
        ("HTTP://E.Org:80/A", "http://e.org/A"),
        ("https://e.org:443/", "https://e.org/"),
        ("https://e.org:80/", "https://e.org:80/"),
        ("http://e.org:/", "http://e.org/"),
        ("http://e.org:0080/", "http://e.org/"),
        ("http://e.org./", "http://e.org/"),
        ("http://user:pa@ss@e.org/", "http://e.org/"),
        ("http://e.org/a#b?c", "http://e.org/a"),
        ("http://e.org#b", "http://e.org/"),
        ("http://e.org?a", "http://e.org/?a"),
        ("http://e.org/?", "http://e.org/?"),
        (" \n http://e.org/a\tb\r\nc \x00", "http://e.org/abc"),
        ("http:\\\\e.org\\a\\b?c\\d#e\\f", "http://e.org/a/b?c%5Cd"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("http://B%C3%BCcher.example/", "http://xn--bcher-kva.example/"),
        ("http://ex%61mple.org/", "http://example.org/"),
        ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
        ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
        ("http://a_b.example/", "http://a_b.example/"),
        ("http://_a_.example/", "http://_a_.example/"),
        # hyphens at the edges of labels, which DNS has and browsers take
        ("http://foo-.example/", "http://foo-.example/"),
        ("http://-A.b-.example/", "http://-a.b-.example/"),
        ("http://b\u00fccher.foo-.example/", "http://xn--bcher-kva.foo-.example/"),
        ("http://b\u00fccher-.example/", "http://xn--bcher--3ya.example/"),
        ("http://a_b.B\u00dcCHER\u3002example/", "http://a_b.xn--bcher-kva.example/"),
        # escapes: RFC 3986 section 6.2.2, and only where they are needed
        ("http://e.org/%7euser", "http://e.org/~user"),
        ("http://e.org/%41%2d%2E%5f", "http://e.org/A-._"),
        ("http://e.org/a%2fb", "http://e.org/a%2Fb"),
        ("http://e.org/a%26b&c", "http://e.org/a%26b&c"),
        ("http://e.org/50%", "http://e.org/50%25"),
        ("http://e.org/50%zz", "http://e.org/50%25zz"),
        ('http://e.org/a b"<>^`{|}', "http://e.org/a%20b%22%3C%3E%5E%60%7B%7C%7D"),
        ("http://e.org/caf\u00e9", "http://e.org/caf%C3%A9"),
        ("http://e.org/\ud800", "http://e.org/%3F"),
        ("http://e.org/[a]", "http://e.org/%5Ba%5D"),
        ("http://e.org/?a=[b]&c=d/e?f", "http://e.org/?a=%5Bb%5D&c=d/e?f"),
        # dot segments: RFC 3986 section 5.2.4, escaped ones too
        ("http://e.org/a/./b/../c", "http://e.org/a/c"),
        ("http://e.org/../../a", "http://e.org/a"),
        ("http://e.org/a/%2e%2E/b/.", "http://e.org/b/"),
        ("http://e.org/a/..", "http://e.org/"),
        ("http://e.org/a//../b", "http://e.org/a/b"),
        ("http://e.org/..%2fa", "http://e.org/..%2Fa"),
        ("http://e.org/?a/../b", "http://e.org/?a/../b"),
        ("http://e.org/.a/..b", "http://e.org/.a/..b"),
    ],
)
def test_canonical(raw: str, spelling: str) -> None:
    assert canonical(raw) == spelling


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "/a",
        "//e.org/",
        "e.org/a",
        "ftp://e.org/",
        "mailto:a@e.org",
        "javascript:alert(1)",
        "data:text/html,x",
        "http:",
        "http://",
        "http:///a",
        "http:/a",
        "http://user@/",
        "http://:80/",
        "http://./",
        "http://../",
        "http://a..b/",
        "http://-\u0661a.org/",
        "http://a b/",
        "http://a%2Fb/",
        "http://a%00b/",
        "http://%ff/",
        "http://%41\ud800/",
        "http://\ud800/",
        "http://e.org\u3002/\u0000".replace("/\u0000", ""),
        "http://" + "a" * 64 + ".org/",
        "http://" + "a." * 116 + "org/",
        "http://e.org:0/",
        "http://e.org:65536/",
        "http://e.org:http/",
        "http://e.org:-1/",
        "http://e.org:\u0661/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[1.2.3.4]/",
        "http://[g::]/",
        "http://::1/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%25\x01]/",
        "http://[]/",
        "http://e.org,f.org/",
        "http://.git/",
    ],
)
def test_no_place_for_it(raw: str) -> None:
    """A host is valid labels or bracketed IPv6, or the URL is refused."""
    with pytest.raises(UrlRefused):
        parse(raw)


@given(raw_urls())
def test_canonical_is_idempotent_and_ascii(raw: str) -> None:
    once = canonical(raw)
    assert canonical(once) == once
    assert once.isascii() and once.isprintable() and " " not in once
    assert domain_of(once) == domain_of(raw)


@given(canonical_urls)
def test_canonical_has_neither_userinfo_nor_fragment_nor_dot_segments(url: str) -> None:
    parts = parse(url)
    assert "@" not in parts.domain and "#" not in url
    assert not {".", ".."} & set(parts.path.split("/"))
    assert str(parts) == url


@given(st.text(max_size=40))
def test_anything_is_parsed_or_refused(text: str) -> None:
    for raw in (text, f"http://{text}", f"http://{text}/", f"http://e.org/{text}"):
        with contextlib.suppress(UrlRefused):
            assert canonical(raw).isascii()


@given(st.lists(st.sampled_from([0, 0, 0, 1, 0x10, 0xFFFF]), min_size=8, max_size=8))
def test_ipv6_addresses_are_written_as_rfc_5952_says(groups: list[int]) -> None:
    full = ":".join(f"{group:X}" for group in groups)
    packed = b"".join(group.to_bytes(2, "big") for group in groups)
    written = domain_of(f"http://[{full}]/")
    assert ipaddress.IPv6Address(written[1:-1]).packed == packed
    assert written == written.lower()
    assert "::" in written or ":0:0:" not in f":{written[1:-1]}:"


@given(st.lists(st.sampled_from([".", "..", "a", ""]), min_size=1, max_size=8))
def test_dot_segments_as_rfc_3986_removes_them(segments: list[str]) -> None:
    """Against the RFC's own algorithm (section 5.2.4), step by step."""
    path = "/" + "/".join(segments)
    assert remove_dot_segments(path) == _rfc(path)


def _rfc(given: str) -> str:
    output = ""
    while given:
        if given.startswith("/./") or given == "/.":
            given = "/" + given[3:]
        elif given.startswith("/../") or given == "/..":
            given = "/" + given[4:]
            output = output.rpartition("/")[0]
        else:
            end = given.find("/", 1)
            end = len(given) if end < 0 else end
            output, given = output + given[:end], given[end:]
    return output
