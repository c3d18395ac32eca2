"""A small world of hosts for one crawl: polite ones, busy ones, and every trap and trouble, behind one proxy.

`World(site)` builds it; `world.starts` are its start URLs. What each host is for stands in its method.
"""

from __future__ import annotations

import re

from tests.support import nasty
from tests.support.site import Everywhere, Site, redirect
from tests.support.wire import Exchange, page
from webarcfs.archive.model.metadata import now

#: How many links the page of `wide.example` has; its crawl accepts a few of them.
LINKS = 2000


class World:
    """Hosts under `.example`, all of them served by one Site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.hosts: list[str] = []
        for build in (self._polite, self._busy, self._broken, self._traps, self._soft, self._wide, self._many):
            build()

    @property
    def starts(self) -> list[str]:
        """The home page of each host."""
        return [f"http://{host}/" for host in self.hosts]

    def _host(self, name: str, *paths: str) -> str:
        """A host with a home page that links to these paths."""
        host = f"{name}.example"
        self.hosts.append(host)
        self._site.add_html("/", "".join(f'<a href="{path}">{path}</a>' for path in paths), host=host)
        return host

    def _polite(self) -> None:
        """robots.txt with a delay and a forbidden part; a host that is excluded."""
        host = self._host("polite", "/a", "/b", "/private", "http://excluded.example/", "http://foreign.test/")
        self._site.add("/robots.txt", "User-agent: *\nCrawl-delay: 0.4\nDisallow: /private", "text/plain", host=host)
        self._site.add_html("/a", "a", host=host)
        self._site.add_html("/b", "b", host=host)
        self._site.add_html("/", "never asked", host="excluded.example")

    def _busy(self) -> None:
        """429 with Retry-After, once, and last of all: how soon it is noticed in mid-batch is shown elsewhere."""
        host = self._host("busy", "/1", "/3", "/2")
        for path in ("/1", "/3"):
            self._site.add_html(path, path, host=host)
        self._site.add_nasty("/2", nasty.too_many_requests(retry_after=2, times=1), host)

    def _broken(self) -> None:
        """What hangs, drips, never ends, is cut, is not what it says."""
        troubles = {
            "/hang": nasty.hang(),
            "/drip": nasty.drip(rate=500),
            "/endless": nasty.endless(),
            "/cut": nasty.short_body(),
            "/longer": nasty.wrong_length(),
            "/reset": nasty.reset_before_head(),
            "/loop": nasty.redirect_loop(),
            "/503": nasty.status(503),
            "/away": redirect("http://foreign.test/x"),
        }
        host = self._host("broken", *troubles, "/good")
        for path, answer in troubles.items():
            self._site.add_nasty(path, answer, host)
        self._site.add_html("/good", "good", host=host)

    def _traps(self) -> None:
        """A calendar, paths that grow, too many parameters."""
        year = now().year + 2
        parameters = "&".join(f"a{number}={number}" for number in range(40))
        host = self._host("traps", f"/{year}/11/", "/x/", f"/search?{parameters}", "/1/2/3/4/5/6")
        for each in range(year, year + 4):
            self._site.mount(Everywhere(_next_month), at=f"/{each}", host=host)
        self._site.mount(Everywhere(_deeper), at="/x", host=host)

    def _soft(self) -> None:
        """200 for everything, with two links below each page."""
        host = self._host("soft")
        self._site.mount(Everywhere(nasty.trap()), at="/", host=host)

    def _wide(self) -> None:
        """Thousands of links on a page, that differ in their queries."""
        host = self._host("wide", *(f"/list?n={number}" for number in range(LINKS)))
        self._site.add_html("/list", "list", host=host)
        for number in range(LINKS):
            self._site.add_html(f"/list?n={number}", f"entry {number}", host=host)

    def _many(self) -> None:
        """Each page is on a host of its own, and links to two more."""
        self.hosts.append("m.many.example")
        self._site.unknown_host = _two_more_hosts


def _next_month(exchange: Exchange) -> None:
    match = re.fullmatch(r"/(\d+)/(\d+)/", exchange.request.path)
    assert match
    month = int(match[1]) * 12 + int(match[2])
    page(f'<a href="/{month // 12}/{month % 12 + 1:02}/">next month</a>')(exchange)


def _deeper(exchange: Exchange) -> None:
    page('<a href="a/b/">deeper</a>')(exchange)


def _two_more_hosts(exchange: Exchange) -> None:
    label = exchange.request.host.partition(".")[0]
    page("".join(f'<a href="http://{label}{letter}.many.example/">x</a>' for letter in "ab"))(exchange)
