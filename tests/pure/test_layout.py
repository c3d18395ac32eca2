"""URL to path (/Cr-8.2/, /Cr-11/): legal, stable, and one place for each URL."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.urls import canonical_urls, raw_urls
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.arc_paths import (
    LONGEST_SEGMENT,
    arc_path,
    data_name,
    is_data_file,
    is_reserved,
    second_path,
    spellings,
)
from webarcfs.archive.model.urls import canonical, parse

pytestmark = pytest.mark.pure

# What HFS+ takes for nothing inside a name (git-config(1), core.protectHFS).
_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


#: URL → ARC path, data file: the rules by example.
VECTORS: tuple[tuple[str, str, str], ...] = (
    ("http://www.example.org", "www.example.org/index.html", "data.html"),
    ("http://www.example.org/", "www.example.org/index.html", "data.html"),
    ("https://www.example.org/index.html", "www.example.org/index.html", "data.html"),
    ("HTTP://WWW.Example.ORG:80/a", "www.example.org/a", "data"),
    ("http://www.example.org:8080/a.PDF", "www.example.org:8080/a.PDF", "data.pdf"),
    ("https://www.example.org:80/", "www.example.org:80/index.html", "data.html"),
    ("http://user:secret@www.example.org/a#part", "www.example.org/a", "data"),
    ("http://bücher.example/", "xn--bcher-kva.example/index.html", "data.html"),
    ("http://[2001:DB8::1]:81/x", "[2001:db8::1]:81/x", "data"),
    ("http://e.org/blog/", "e.org/blog/index.html", "data.html"),
    ("http://e.org/blog", "e.org/blog", "data"),
    ("http://e.org/blog/x", "e.org/blog/x", "data"),
    ("http://e.org/?a=1", "e.org/index.html?a=1", "data.html"),
    ("http://e.org/p.php?a=1&b=%26", "e.org/p.php?a=1&b=%26", "data.php"),
    ("http://e.org/p?u=/x", "e.org/p?u=%2Fx", "data"),
    ("http://e.org/p?u=%2Fx", "e.org/p?u=%2fx", "data"),
    ("http://e.org/p?", "e.org/p?", "data"),
    ("http://e.org/caf%C3%A9%20bar.html", "e.org/café bar.html", "data.html"),
    ("http://e.org/caf%E9", "e.org/caf%E9", "data"),
    ("http://e.org/100%25", "e.org/100%25", "data"),
    ("http://e.org/50%off", "e.org/50%25off", "data"),
    ("http://e.org/..%2fetc", "e.org/..%2Fetc", "data"),
    ("http://e.org/a/../b", "e.org/a/%2E%2E/b", "data"),
    ("http://e.org/%00%0A", "e.org/%00%0A", "data"),
    ("http://e.org/what%3Fnow", "e.org/what%3Fnow", "data"),
    ("http://e.org/a//b", "e.org/a/%/b", "data"),
    ("http://e.org/data.xml", "e.org/%64ata.xml", "data.orig.xml"),
    ("http://e.org/feed.xml", "e.org/feed.xml", "data.orig.xml"),
    ("http://e.org/headers.http", "e.org/%68eaders.http", "data.http"),
    ("http://e.org/data", "e.org/%64ata", "data"),
    ("http://e.org/data.php?" + "x" * 300, "e.org/%64ata.php?" + "x" * 172 + "~4e5e4a545e7917bf", "data.php"),
    ("http://e.org/.git/config", "e.org/%2Egit/config", "data"),
    ("http://e.org/git~1", "e.org/git%7E1", "data"),
    ("http://e.org/operator~.html", "e.org/operator~.html", "data.html"),
    ("http://e.org/archive.tar.gz", "e.org/archive.tar.gz", "data.gz"),
    ("http://e.org/.bashrc", "e.org/.bashrc", "data"),
    ("http://e.org/" + "x" * 300, "e.org/" + "x" * 183 + "~0d4e2ca9e9cbced7", "data"),
)


@pytest.mark.parametrize(("url", "path", "data"), VECTORS)
def test_vectors(url: str, path: str, data: str) -> None:
    assert (arc_path(url), data_name(url)) == (path, data)


def test_there_are_enough_vectors() -> None:
    assert len(VECTORS) >= 30
    assert len({url for url, _, _ in VECTORS}) == len(VECTORS)


@given(raw_urls())
@example("http://e.org/data." + "x" * 300)
@example("http://e.org/data.\\.git/x")
@example("http://e.org/headers.http")
def test_every_segment_is_a_legal_name(raw: str) -> None:
    domain, *segments = arc_path(raw).split("/")
    assert domain == parse(raw).domain
    assert segments
    for name in segments:
        _assert_legal(name)


def _assert_legal(name: str) -> None:
    raw = name.encode("utf-8")  # strict: no surrogates
    assert 1 <= len(raw) <= LONGEST_SEGMENT
    assert not re.search("[\x00-\x1f\x7f-\x9f/\ufffe\uffff]", name)
    assert name not in (".", "..", "data", "data.xml", "headers.http")
    assert not name.startswith("data.")
    plain = _HFS.sub("", name).lower()
    assert not plain.startswith(".git")
    assert "\\.git" not in plain
    assert not re.match(r"(git|gi[0-9a-f]{4})~[0-9]", plain.rpartition("\\")[2])


@given(canonical_urls, canonical_urls)
@example("http://e.org/data." + "x" * 300, "http://e.org/%64ata." + "x" * 301)
@example("http://e.org/p?u=/x", "http://e.org/p?u=%2Fx")
def test_two_urls_have_two_places(one: str, other: str) -> None:
    if arc_path(one) == arc_path(other):
        assert _same_by_rule(one) == _same_by_rule(other)


@given(st.text(st.sampled_from("%2f/?~.da\u00e9"), max_size=9), st.text(st.sampled_from("%2f/?~.da\u00e9"), max_size=9))
def test_near_misses_have_two_places(one: str, other: str) -> None:
    first, second = canonical(f"http://e.org/{one}"), canonical(f"http://e.org/{other}")
    if arc_path(first) == arc_path(second):
        assert _same_by_rule(first) == _same_by_rule(second)


def _same_by_rule(url: str) -> tuple[str, str, str | None]:
    """The two cases in which URLs share a path: an empty last segment is index.html; http and https."""
    parts = parse(url)
    return parts.domain, parts.path + ("index.html" if parts.path.endswith("/") else ""), parts.query


@given(st.lists(st.integers(150, 260), min_size=2, max_size=2), st.sampled_from(["a", "%C3%A9", "%E9", "%25"]))
def test_long_names_stay_apart(lengths: list[int], piece: str) -> None:
    """A segment over 200 bytes is cut and ends in `~` and 16 hex digits of its SHA-256; no other name looks so."""
    urls = {f"http://e.org/{piece * length}" for length in lengths}
    paths = {arc_path(url) for url in urls}
    assert len(paths) == len(urls)
    again = {arc_path(f"http://e.org/{path.partition('/')[2].replace('%', '%25')}") for path in paths}
    for path in again:
        _assert_legal(path.partition("/")[2])
    cut = {path for path in paths if re.search("~[0-9a-f]{16}$", path)}
    assert not cut & again, "a URL spelled like a cut name must not get its place"


@given(canonical_urls)
def test_the_data_file_is_recognised_and_never_data_xml(url: str) -> None:
    name = data_name(url)
    assert is_data_file(name) and is_reserved(name) and name != arc_paths.DATA_XML
    assert re.fullmatch(r"data(\.[a-z0-9]{1,16}|\.orig\.xml)?", name)


@pytest.mark.parametrize(
    ("name", "data", "reserved"),
    [
        ("data", True, True),
        ("data.html", True, True),
        ("data.orig.xml", True, True),
        ("data.xml", False, True),
        ("headers.http", False, True),
        ("notes.txt", False, False),
        ("Data.html", False, False),
        ("database", False, False),
    ],
)
def test_names_that_an_arc_uses_itself(name: str, data: bool, reserved: bool) -> None:
    assert (is_data_file(name), is_reserved(name)) == (data, reserved)


def test_blog_and_blog_x_live_together() -> None:
    assert arc_path("http://e.org/blog/x").startswith(arc_path("http://e.org/blog") + "/")


def test_split() -> None:
    assert arc_paths.split("/e.org/a/b") == ("e.org", "a/b") == arc_paths.split("e.org/a/b")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://E.org", ["http://e.org/", "http://e.org/index.html"]),
        ("https://e.org/a/./index%2Ehtml?b=1#c", ["https://e.org/a/index.html?b=1", "https://e.org/a/?b=1"]),
        ("http://e.org/a/?", ["http://e.org/a/?", "http://e.org/a/index.html?"]),
        ("http://e.org/a", ["http://e.org/a"]),
        ("http://e.org/index.html/b", ["http://e.org/index.html/b"]),
        ("http://e.org/%2Findex.html", ["http://e.org/%2Findex.html"]),
        ("http://e.org/INDEX.HTML", ["http://e.org/INDEX.HTML"]),
    ],
)
def test_the_spellings_of_a_place(url: str, expected: list[str]) -> None:
    assert list(spellings(url)) == expected
    assert len({arc_path(spelling) for spelling in expected}) == 1


@pytest.mark.parametrize("url", [url for url, _, _ in VECTORS])
def test_urls_of_one_scheme_share_a_place_only_as_spellings(url: str) -> None:
    same = {canonical(other) for other, _, _ in VECTORS if arc_path(canonical(other)) == arc_path(canonical(url))}
    scheme = canonical(url).partition(":")[0]
    assert {other for other in same if other.startswith(f"{scheme}:")} <= set(spellings(url))


@pytest.mark.parametrize(
    ("url", "second"),
    [
        ("http://e.org/", "e.org/index.html%http"),
        ("https://e.org/index.html", "e.org/index.html%https.index"),
        ("https://e.org/a?/index.html", "e.org/a?%2Findex.html%https"),
        ("http://e.org/" + "x" * 300, "e.org/" + "x" * 183 + "~0d4e2ca9e9cbced7%http"),
    ],
)
def test_second_names(url: str, second: str) -> None:
    assert second_path(url) == second


@given(canonical_urls, canonical_urls)
@example("http://e.org/a%25http", "http://e.org/a")
@example("http://e.org/a", "https://e.org/a")
@example("http://e.org/", "http://e.org/index.html")
def test_a_second_name_is_that_of_one_url_and_no_first_name(one: str, other: str) -> None:
    assert second_path(one) != arc_path(other)
    assert (second_path(one) == second_path(other)) == (one == other)
    assert all(len(name.encode()) <= 255 for name in second_path(one).split("/"))
