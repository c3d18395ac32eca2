"""The agent keeps links.db up with each crawl, unless `[index] links` says no."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from agent.jobs import publishing
from tests.support.crawls import crawl
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.system import locks

pytestmark = pytest.mark.crawl


def _links(archive: Archive) -> list[tuple[str, str, str, str]]:
    with closing(sqlite3.connect(archive.links)) as connection:
        return sorted(connection.execute("SELECT commitTag, path, target, text FROM links"))


def test_each_crawl_brings_the_links_of_what_it_changed(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's own charset counts, as the server names it; a second crawl adds rows for the changed page only.

    Others may publish on the domain meanwhile.
    """
    catch_up_links, free = publishing.catch_up_links, []

    def looks(archive: Archive, domain: str, stop: Callable[[], bool]) -> None:
        with locks.if_free(archive.publishing_lock(domain)) as now:
            free.append(now)
        catch_up_links(archive, domain, stop)

    monkeypatch.setattr(publishing, "catch_up_links", looks)
    archive.settings.write_text("[index]\nlinks = true\n", "utf-8")
    site.add_html("/", "<a href=a.html>first</a>")
    site.add("/a.html", "<html><a href=/>gr\xfcn</a>".encode("cp1252"), "text/html; charset=iso-8859-1")
    crawl(archive, site.url())
    domain = site.url().split("/")[2]
    assert [row[1:] for row in _links(archive)] == [
        (f"/{domain}/a.html", site.url("/"), "grün"),
        (f"/{domain}/index.html", site.url("/a.html"), "first"),
    ]
    site.add_html("/", "<a href=a.html>second</a>")
    crawl(archive, site.url())
    with closing(sqlite3.connect(archive.links)) as connection:
        assert connection.execute("SELECT count(*) FROM body").fetchone()[0] == 3
    assert [row[3] for row in _links(archive)] == ["grün", "first", "grün", "second"]
    assert free == [True, True]
