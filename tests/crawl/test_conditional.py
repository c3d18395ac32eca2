"""Conditional requests: a server that says 304 sends nothing, and the archive is as if the page had been fetched."""

from __future__ import annotations

import hashlib

import pytest

from agent.maintenance.verification import verify
from tests.support.crawls import arcs, count, crawl, log_lines, tree
from tests.support.nasty import status
from tests.support.site import Exchange, Site
from tests.support.wire import page
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl


def tagged(body: str, by: str = "etag") -> object:
    """A page with an entity tag or a date, that answers 304 to its own."""
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:8]}"' if by == "etag" else "Mon, 01 Jun 2026 10:00:00 GMT"
    sent, asked = ("ETag", "if-none-match") if by == "etag" else ("Last-Modified", "if-modified-since")
    text = f"<html><title>t</title><body>{body}</body></html>"

    def answer(exchange: Exchange) -> None:
        if exchange.request.headers.get(asked) == tag:
            exchange.begin(304, {sent: tag})
        else:
            page(text, headers={sent: tag})(exchange)

    return answer


@pytest.fixture
def large(site: Site) -> Site:
    """A site of ten pages, by tags and dates; one is found through another alone, one has neither."""
    site.add_nasty("/", tagged("".join(f'<a href="/{number}">x</a>' for number in range(8))))  # type: ignore[arg-type]
    for number in range(7):
        site.add_nasty(f"/{number}", tagged(f"{number}" * 5_000, "date" if number % 2 else "etag"))  # type: ignore[arg-type]
    site.add_nasty("/7", tagged('<a href="/deep">deep</a>'))  # type: ignore[arg-type]
    site.add_html("/deep", "no tag")
    return site


def test_an_unchanged_site_is_not_sent_again(archive: Archive, large: Site) -> None:
    first = crawl(archive, large.url(), conditional=True)
    assert count(first) == (10, 0, 0, 0)
    before, sent = tree(archive, large.host), first.summary["bytes"]
    large.clear_log()
    again = crawl(archive, large.url(), conditional=True)
    assert again.complete and count(again) == (0, 0, 0, 10)
    assert tree(archive, large.host) == before
    assert isinstance(sent, int) and isinstance(again.summary["bytes"], int)
    assert again.summary["bytes"] < sent / 10
    lines = log_lines(archive, again)
    assert lines[large.url("/3")].status == 304
    assert lines[large.url("/3")].notes == ("not-modified", "unchanged")
    assert lines[large.url("/deep")].status == 200
    assert again.summary["documents"] == first.summary["documents"]
    assert all(large.count(f"/{number}") == 1 for number in range(8))
    assert list(verify(archive)) == []


def test_a_changed_page_is_sent_and_one_that_is_gone_is_removed(archive: Archive, large: Site) -> None:
    crawl(archive, large.url(), conditional=True)
    large.add_nasty("/3", tagged("new"))  # type: ignore[arg-type]
    large.gone("/4")
    again = crawl(archive, large.url(), conditional=True)
    assert count(again) == (0, 1, 1, 8)
    assert "4" not in arcs(archive, large.host)


def test_without_the_setting_all_is_sent(archive: Archive, large: Site) -> None:
    crawl(archive, large.url())
    large.clear_log()
    again = crawl(archive, large.url())
    assert count(again) == (0, 0, 0, 10)
    assert not any("if-none-match" in request.headers for request in large.requests)
    replaced = crawl(archive, large.url(), conditional=True, unchanged="replace")
    assert count(replaced) == (0, 10, 0, 0)


def test_a_server_that_says_304_to_everything(archive: Archive, large: Site) -> None:
    """What the archive does not have is asked for once more, and fails then; nothing is removed."""
    crawl(archive, large.url(), conditional=True)
    large.add_nasty("/", tagged('<a href="/new">x</a><a href="/1">x</a>'))  # type: ignore[arg-type]
    large.add_nasty("/new", status(304))
    again = crawl(archive, large.url(), conditional=True, min_share=0)
    assert log_lines(archive, again)[large.url("/new")].notes[0] == "asked-again"
    assert large.count("/new") == 2
    assert arcs(archive, large.host) == {"index.html", "1"}
    assert list(verify(archive)) == []
