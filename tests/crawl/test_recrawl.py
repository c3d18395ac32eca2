"""The second crawl and those after it: cost follows change, and only what is gone goes."""

from __future__ import annotations

import time

import pytest

from tests.support import archives, crawls, nasty
from tests.support.crawls import count, crawl
from tests.support.site import Site, page
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import Database

pytestmark = pytest.mark.crawl

_PAGES = 300


def _fill(site: Site) -> None:
    """A home page, three hundred pages in folders, a style, and `hub`, which alone leads to `leaf`."""
    numbers = "".join(f'<a href="/{number % 7}/{number}.html">{number}</a>\n' for number in range(_PAGES))
    site.add_html("/", f'<link rel="stylesheet" href="/style.css"><a href="/hub">hub</a>{numbers}', title="Home")
    site.add("/style.css", "p { color: black }", "text/css")
    site.add_html("/hub", '<a href="/leaf">leaf</a>')
    site.add_html("/leaf", "leaf")
    for number in range(_PAGES):
        site.add_html(f"/{number % 7}/{number}.html", f"Page {number}.", title=f"Page {number}")


def _versions(archive: Archive) -> int:
    with Database(archive.database) as database:
        return database.count_versions()


def _dump(archive: Archive, tag: str) -> set[str]:
    with Database(archive.database) as database:
        return {row["path"] for row in database.dump() if row["commitTag"] == tag}


def test_unchanged_site_costs_next_to_nothing(archive: Archive, site: Site) -> None:
    _fill(site)
    first = crawl(archive, site.url())
    assert count(first) == (_PAGES + 4, 0, 0, 0)
    assert _versions(archive) == _PAGES + 4
    for _ in range(2):
        before = crawls.count_stored(archive, site.host)
        time.sleep(1.1)  # times in seconds that no list has yet
        outcome = crawl(archive, site.url())
        assert count(outcome) == (0, 0, 0, _PAGES + 4)
        assert crawls.count_stored(archive, site.host) - before == 2, "a commit, and a list of when pages were met"
        assert _versions(archive) == _PAGES + 4
        assert len(_dump(archive, outcome.tags[0])) == _PAGES + 4
    assert archive.changes.read_text().split() == [*first.tags, *_tags_after(archive, first.tags[0])]
    assert len(crawls.crawls_of(archive, site.host)) == 3
    assert list(archive.jobs.iterdir()) == []


def _tags_after(archive: Archive, tag: str) -> list[str]:
    """The other tags, which rise."""
    others = [line for line in archive.changes.read_text().split() if line != tag]
    assert sorted(others) == others and all(other > tag for other in others)
    return others


def test_exactly_what_changed_differs(archive: Archive, site: Site) -> None:
    _fill(site)
    crawl(archive, site.url())
    old = crawls.head_of(archive, site.host)
    site.add_html("/3/3.html", "Changed.", title="Changed")
    site.gone("/4/4.html")
    site.add_html("/hub", '<a href="/leaf">leaf</a><a href="/new">new</a>')
    site.add_html("/new", "New.")
    before = crawls.count_stored(archive, site.host)
    outcome = crawl(archive, site.url())
    new = crawls.head_of(archive, site.host)
    assert count(outcome) == (1, 2, 1, _PAGES + 1)
    assert crawls.changed(archive, site.host, old, new) == {"3/3.html", "4/4.html", "hub", "new"}
    assert crawls.count_stored(archive, site.host) - before < 3 * 4 + 10
    assert b"Page 3." in crawls.read(archive, site.host, "3/3.html", old)
    assert b"Changed." in crawls.read(archive, site.host, "3/3.html", new)
    assert b"Page 4." in crawls.read(archive, site.host, "4/4.html", old)
    assert crawls.arcs(archive, site.host, old) - crawls.arcs(archive, site.host, new) == {"4/4.html"}
    assert crawls.meta(archive, site.host, "3/3.html").title == "Changed"
    assert str(crawls.meta(archive, site.host, "3/3.html").commit_tag) == outcome.tags[0]
    assert str(crawls.meta(archive, site.host, "5/5.html").commit_tag) != outcome.tags[0]
    assert _versions(archive) == _PAGES + 4 + 3


def test_a_page_that_fails_once_stays_with_its_children(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/hub">hub</a><a href="/other">other</a>')
    site.add_html("/hub", '<a href="/leaf">leaf</a>')
    site.add_html("/leaf", '<a href="/twig">twig</a>')
    site.add_html("/twig", "")
    site.add_html("/other", "")
    crawl(archive, site.url())
    before = crawls.tree(archive, site.host)
    site.gone("/hub", 503)
    outcome = crawl(archive, site.url())
    assert outcome.complete
    assert count(outcome) == (0, 0, 0, 4)
    assert crawls.tree(archive, site.host) == before
    site.back("/hub")
    site.add_nasty("/leaf", nasty.truncated_gzip())
    assert count(crawl(archive, site.url())) == (0, 0, 0, 4)
    assert crawls.tree(archive, site.host) == before


def test_gone_unlinked_and_back(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/a">a</a><a href="/b">b</a><a href="/c">c</a>')
    for path in ("/a", "/b", "/c"):
        site.add_html(path, f"This is {path}.")
    first = crawl(archive, site.url())
    site.gone("/a", 404)
    site.gone("/b", 410)
    assert count(crawl(archive, site.url())) == (0, 0, 2, 2)
    assert crawls.arcs(archive, site.host) == {"index.html", "c"}
    site.back("/a")
    again = crawl(archive, site.url())
    assert count(again) == (1, 0, 0, 2)
    assert str(crawls.meta(archive, site.host, "a").commit_tag) == again.tags[0] > first.tags[0]
    site.add_html("/", '<a href="/a">a</a>')
    assert count(crawl(archive, site.url())) == (0, 1, 1, 1)
    assert crawls.arcs(archive, site.host) == {"index.html", "a"}


def test_what_people_added(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/a">a</a><a href="/b">b</a><a href="/c">c</a>')
    for path in ("/a", "/b", "/c"):
        site.add_html(path, f"This is {path}.")
    crawl(archive, site.url())
    for path in ("a/words.txt", "a/sub/deep.txt", "b/words.txt", "c/words.txt", "index.html/words.txt"):
        archives.add(archive, path, b"added", site.host)
    assert count(crawl(archive, site.url())) == (0, 0, 0, 4)
    assert crawls.read_file(archive, site.host, "a/sub/deep.txt") == b"added"
    site.add_html("/b", "Changed.")
    site.gone("/c")
    assert count(crawl(archive, site.url())) == (0, 1, 1, 2)
    for path, left in (("a/words.txt", True), ("a/sub/deep.txt", True), ("index.html/words.txt", True)):
        assert (crawls.read_file(archive, site.host, path) == b"added") is left, path
    for path in ("b/words.txt", "c/words.txt", "c"):
        assert crawls.store(archive, site.host).find(crawls.tree(archive, site.host), path) is None, path


def test_a_page_needs_the_place_of_an_addition(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/blog">blog</a>')
    site.add_html("/blog", "blog")
    crawl(archive, site.url())
    for path in ("blog/x", "blog/notes/mine.txt", "blog/kept.txt"):
        archives.add(archive, path, b"added", site.host)
    site.add_html("/", '<a href="/blog">blog</a><a href="/blog/x/y">y</a><a href="/blog/notes">notes</a>')
    site.add_html("/blog/x/y", "y")
    site.add_html("/blog/notes", "notes")
    assert count(crawl(archive, site.url())) == (2, 1, 0, 1)
    assert crawls.arcs(archive, site.host) == {"index.html", "blog", "blog/x/y", "blog/notes"}
    assert crawls.read_file(archive, site.host, "blog/kept.txt") == b"added"
    assert crawls.read_file(archive, site.host, "blog/notes/mine.txt") is None


def test_unchanged_replace(archive: Archive, site: Site) -> None:
    site.add_html("/", "home")
    crawl(archive, site.url())
    archives.add(archive, "index.html/words.txt", b"added", site.host)
    outcome = crawl(archive, site.url(), unchanged="replace")
    assert count(outcome) == (0, 1, 0, 0)
    assert crawls.read_file(archive, site.host, "index.html/words.txt") is None
    assert str(crawls.meta(archive, site.host, "index.html").commit_tag) == outcome.tags[0]


def test_create_time(archive: Archive, site: Site) -> None:
    dated = {"Last-Modified": "Wed, 07 Jan 2026 11:00:00 GMT"}
    site.add("/", '<a href="/future">f</a>', headers=dated)
    site.add("/future", "", headers={"Last-Modified": "Wed, 07 Jan 2126 11:00:00 GMT"})
    crawl(archive, site.url())
    assert crawls.meta(archive, site.host, "index.html").as_fields()["createTime"] == "2026-01-07T12:00:00"
    future = crawls.meta(archive, site.host, "future")
    assert abs((future.create_time - future.crawl_time).total_seconds()) < 30


def test_another_kind_of_file_at_the_same_url(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/thing">thing</a>')
    site.add_html("/thing", '<a href="/thing/x">x</a>')
    site.add_html("/thing/x", "x")
    crawl(archive, site.url())
    site.add_nasty("/thing", page(b"%PDF-1.4 \n%%EOF", "application/pdf"))
    assert count(crawl(archive, site.url())) == (0, 1, 1, 1)
    assert crawls.meta(archive, site.host, "thing").mime_type == "application/pdf"
