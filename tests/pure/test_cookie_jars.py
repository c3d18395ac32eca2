"""Jars of cookies: what belongs to one site, what a request sends, and how wgets of one site share a jar."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl.cookie_jars import LONGEST_COOKIE, MOST_COOKIES, Cookie, CookieJars, Jar, merged
from webarcfs.archive.model.sites import site_of

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("domain", "site"),
    [
        ("www.example.org", "example.org"),
        ("WWW.Example.org:8080", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("someone.github.io", "someone.github.io"),
        ("localhost:8000", "localhost"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::1]:8000", "[::1]"),
        ("img.shop.test", "shop.test"),
    ],
)
def test_sites(domain: str, site: str) -> None:
    assert site_of(domain) == site


def cookie(line: str) -> Cookie:
    """The cookie of a line with spaces for tabs."""
    read = Cookie.read(line.replace(" ", "\t"))
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("line", "url", "is_sent"),
    [
        ("e.org FALSE / FALSE 0 a b", "http://e.org/", True),
        ("e.org FALSE / FALSE 0 a b", "http://www.e.org/", False),
        ("e.org TRUE / FALSE 0 a b", "http://www.e.org/", True),
        (".e.org TRUE / FALSE 0 a b", "http://e.org/", True),
        ("e.org TRUE / FALSE 0 a b", "http://fake-e.org/", False),
        ("e.org FALSE / TRUE 0 a b", "http://e.org/", False),
        ("e.org FALSE / TRUE 0 a b", "https://e.org/", True),
        ("e.org FALSE /x FALSE 0 a b", "http://e.org/x/y", True),
        ("e.org FALSE /x FALSE 0 a b", "http://e.org/xy", False),
        ("e.org FALSE /x/ FALSE 0 a b", "http://e.org/x/y?z", True),
        ("e.org:81 FALSE / FALSE 0 a b", "http://e.org:81/", True),
        ("e.org:81 FALSE / FALSE 0 a b", "http://e.org/", False),
        ("e.org FALSE / FALSE 0 a b", "http://e.org:81/", True),
    ],
)
def test_what_a_request_sends(line: str, url: str, is_sent: bool) -> None:
    one = cookie(line)
    assert one.is_for(url) == is_sent
    assert bool(Jar({one.key: one}).digest(url)) == is_sent


def jar(**values: str) -> Jar:
    """A jar of cookies of one host."""
    cookies = [Cookie("e.org", False, "/", False, "0", name, value) for name, value in values.items()]
    return Jar({one.key: one for one in cookies})


def values(one: Jar) -> dict[str, str]:
    """Name → value."""
    return {cookie.name: cookie.value for cookie in one.cookies.values()}


_VALUES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("0123"))


@given(_VALUES, _VALUES, _VALUES)
def test_no_wget_undoes_what_another_learnt(
    sent: dict[str, str], first: dict[str, str], second: dict[str, str]
) -> None:
    """Two begin with one jar: what only one changed is as that one left it."""
    both = merged(merged(jar(**sent), jar(**sent), jar(**first), whole=True), jar(**sent), jar(**second), whole=True)
    for name in sent.keys() | first.keys() | second.keys():
        changed = second.get(name) if second.get(name) != sent.get(name) else first.get(name)
        assert values(both).get(name) == changed


@given(_VALUES)
def test_a_jar_is_read_as_it_was_written(cookies: dict[str, str]) -> None:
    one = Jar(jar(**cookies).cookies, lost=3)
    assert Jar.read(one.text) == one


def test_a_killed_wget_removes_nothing() -> None:
    assert values(merged(jar(a="1"), jar(a="1"), jar(b="2"), whole=False)) == {"a": "1", "b": "2"}


def test_a_jar_has_bounds() -> None:
    """The oldest goes; what no browser would keep is not kept."""
    many = jar(**{f"n{number}": "" for number in range(MOST_COOKIES + 5)})
    kept = merged(jar(old="1"), Jar(), many, whole=False)
    assert len(kept.cookies) == MOST_COOKIES and "old" not in values(kept)
    assert Cookie.read(f"e.org\tFALSE\t/\tFALSE\t0\ta\t{'x' * LONGEST_COOKIE}") is None


def test_hosts_of_a_site_share_a_jar(tmp_path: Path) -> None:
    """Over a restart, too; the folder and its files are for nobody else."""
    jars = CookieJars(tmp_path / "cookies")
    sent, got = jars.begin(1, "www.e.org")
    assert sent is None
    got.write_text(jar(a="1").text.replace("e.org", ".e.org").replace("FALSE\t/", "TRUE\t/"), "latin-1")
    jars.ended(1, whole=True)
    again = CookieJars(tmp_path / "cookies")
    sent, _ = again.begin(2, "img.e.org:8080")
    assert sent is not None and "\ta\t1" in sent.read_text("latin-1")
    assert again.sent(2, "http://img.e.org:8080/") == again.now("http://img.e.org/") != ""
    assert {path.stat().st_mode & 0o77 for path in [tmp_path / "cookies", *(tmp_path / "cookies").iterdir()]} == {0}
    again.forget(2)
    assert [path.name for path in (tmp_path / "cookies").iterdir() if path.suffix == ".sent"] == ["~000001.sent"]


def test_what_a_killed_agent_left_is_taken_up(tmp_path: Path) -> None:
    """What its wgets got counts; where they left nothing, a redirect may have lost its cookie."""
    jars = CookieJars(tmp_path)
    _, got = jars.begin(1, "e.org")
    got.write_text(jar(a="1").text, "latin-1")
    jars.begin(2, "f.org")
    again = CookieJars(tmp_path)
    assert again.sent(1, "http://e.org/") == "" != again.now("http://e.org/")
    assert again.sent(2, "http://f.org/") == "" != again.now("http://f.org/")


def test_jars_of_an_older_version_are_joined(tmp_path: Path) -> None:
    """They were of hosts."""
    for host in ("www.e.org", "img.e.org"):
        (tmp_path / host).write_text(jar(a="1").text.replace("e.org", host), "latin-1")
    jars = CookieJars(tmp_path)
    assert jars.now("http://www.e.org/") and jars.now("http://img.e.org/") and not jars.now("http://e.org/")


@pytest.mark.parametrize("written", ["", "# e.org", "# e.org\n", "# e.org\n# Netscape HTTP Coo"])
def test_a_file_that_a_killed_process_had_not_written_whole_is_no_batch(tmp_path: Path, written: str) -> None:
    folder = tmp_path / "cookies"
    jars = CookieJars(folder)
    jars.begin(1, "e.org")
    (sent,) = folder.glob("*.sent")
    sent.write_text(written)
    again = CookieJars(folder)
    assert list(folder.iterdir()) == [] and again.now("http://e.org/") == ""
