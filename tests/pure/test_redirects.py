"""The lists of redirects: their lines, places and targets."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import urls
from webarcfs.archive.model import url_lists
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.url_lists import (
    LONGEST_TARGET,
    REDIRECTS,
    Redirect,
    is_place,
    place_of,
    read_list,
    target_of,
    write_list,
)

pytestmark = pytest.mark.pure

TIME = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
URL = "http://www.example.org/a"
_TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)).map(
    lambda time: time.replace(microsecond=0, tzinfo=UTC)
)


@st.composite
def _redirects(draw: st.DrawFn) -> Redirect:
    url, target = (draw(urls.canonical_urls) for _ in range(2))
    fragment = draw(st.sampled_from(["", "#", "#part", "#a%20b"]))
    return Redirect(url, draw(st.sampled_from(sorted(url_lists.STATUSES))), target + fragment.rstrip("#"), draw(_TIMES))


@pytest.mark.large
@given(st.lists(_redirects(), unique_by=lambda each: each.url))
def test_a_list_is_read_as_it_was_written(found: list[Redirect]) -> None:
    raw = write_list(found)
    assert read_list(raw) == sorted(found)
    assert write_list(read_list(raw)) == raw


def test_the_line_is_as_the_documents_say() -> None:
    each = Redirect(URL, 301, "https://www.example.org/a#b", TIME)
    assert write_list([each]) == b"http://www.example.org/a\t301\thttps://www.example.org/a#b\t2026-11-21T02:03:04Z\n"
    digest = subprocess.run(["sha256sum"], input=URL.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()
    assert place_of(URL) == f"{REDIRECTS}/{digest[:2]}/{digest[2:4]}"


@given(urls.canonical_urls)
def test_no_document_has_the_place_of_the_redirects(url: str) -> None:
    """In every name of an ARC, two hex digits follow a `%`, or nothing does."""
    parts = arc_path(url).split("/")[1:]
    assert REDIRECTS not in parts
    for part in parts:
        for piece in part.split("%")[1:]:
            assert part == "%" or (all(each in "0123456789abcdefABCDEF" for each in piece[:2]) and len(piece) >= 2)


@given(urls.canonical_urls)
def test_a_url_has_one_place(url: str) -> None:
    assert is_place(place_of(url))


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "http://www.example.org/b"),
        ("b", "http://www.example.org/b"),
        ("?q=1", "http://www.example.org/a?q=1"),
        ("//other.example", "http://other.example/"),
        ("HTTPS://WWW.Example.org:443/a", "https://www.example.org/a"),
        ("/b#part two", "http://www.example.org/b#part%20two"),
        ("#only", "http://www.example.org/a#only"),
        ("/b#", "http://www.example.org/b"),
        ("/b#a#b", "http://www.example.org/b#a%23b"),
        ("/b#%zz%41", "http://www.example.org/b#%25zz%41"),
        ("/caf\u00c3\u00a9", "http://www.example.org/caf%C3%A9"),
        ("  /b\t", "http://www.example.org/b"),
        ("/../../b", "http://www.example.org/b"),
        ("", ""),
        ("javascript:alert(1)", ""),
        ("mailto:a@b.example", ""),
        ("http://[::1", ""),
        ("http:///f.org/h", "http://f.org/h"),
        ("\\\\f.org\\x", "http://f.org/x"),
        ("http:b", "http://www.example.org/b"),
        ("/caf\xe9", "http://www.example.org/caf%E9"),
        ("/caf\xc3\xa9", "http://www.example.org/caf%C3%A9"),
        ("/voil\xc3\xa0", "http://www.example.org/voil%C3%A0"),
        ("/caf\xe9?q=\xe9#\xe9", "http://www.example.org/caf%E9?q=%E9#%E9"),
        ("/\xe9t\xc3\xa9", "http://www.example.org/%E9t%C3%A9"),
        ("/a b.html", "http://www.example.org/a%20b.html"),
        ("/a\tb", "http://www.example.org/ab"),
        ("\\b\\c?d\\e", "http://www.example.org/b/c?d%5Ce"),
        ("http:\\\\f.org\\x", "http://f.org/x"),
        ('/<b>"|{}^`', "http://www.example.org/%3Cb%3E%22%7C%7B%7D%5E%60"),
        ("/b\xa0", "http://www.example.org/b%A0"),
        ("http://f\xe9.org/", ""),
        ("http://user:secret@f.org/", "http://f.org/"),
        ("https:b", "https://b/"),
    ],
)
def test_the_target_of_a_location(location: str, target: str) -> None:
    assert target_of(URL, location) == target


@given(st.text(max_size=200))
def test_any_location_gives_a_line_or_nothing(location: str) -> None:
    target = target_of(URL, location)
    if target:
        assert read_list(write_list([Redirect(URL, 302, target, TIME)]))[0].target == target


def test_a_redirect_to_itself_and_one_that_is_too_long() -> None:
    assert Redirect(URL, 302, f"{URL}#x", TIME).is_to_itself
    assert not Redirect(URL, 302, f"{URL}/", TIME).is_to_itself
    assert url_lists.is_too_long(target_of(URL, "/" + "x" * LONGEST_TARGET))
    assert not url_lists.is_too_long(target_of(URL, "/x"))


@pytest.mark.large
def test_a_change_rewrites_the_lists_that_it_is_in() -> None:
    """Of 100,000 redirects 1 % change: the new lists are at most 5 % of all."""
    lists: dict[str, list[Redirect]] = {}
    for number in range(100_000):
        each = Redirect(f"http://www.example.org/node/{number}", 301, f"http://www.example.org/page/{number}", TIME)
        lists.setdefault(place_of(each.url), []).append(each)
    sizes = {place: len(write_list(found)) for place, found in lists.items()}
    changed = {place_of(f"http://www.example.org/node/{number}") for number in range(0, 100_000, 100)}
    assert sum(sizes[place] for place in changed) <= 0.05 * sum(sizes.values())
    assert max(map(len, lists.values())) < url_lists.MOST_LINES / 100


_GOOD = write_list([Redirect(f"http://www.example.org/{name}", 302, URL, TIME) for name in "ab"])


@pytest.mark.parametrize(
    "raw",
    [
        b"x",
        b"\n",
        _GOOD[:-1],
        _GOOD + _GOOD,
        b"".join(reversed(_GOOD.splitlines(keepends=True))),
        _GOOD.replace(b"302", b"200"),
        _GOOD.replace(b"Z", b""),
        _GOOD.replace(b"2026-11", b"2026-13"),
        _GOOD.replace(b"\t", b" "),
        _GOOD.replace(b"http:", b"file:"),
        b"\xff" + _GOOD,
    ],
)
def test_a_damaged_list_is_refused(raw: bytes) -> None:
    with pytest.raises(Damaged):
        read_list(raw)


def test_a_list_with_a_line_of_another_place_is_refused() -> None:
    assert len(read_list(_GOOD)) == 2
    with pytest.raises(Damaged, match="does not belong"):
        read_list(_GOOD, f"{REDIRECTS}/00/00")
