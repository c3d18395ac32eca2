"""Reports of what crawls of real sites do not find, or find without end: sitemaps, calendars, session ids."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from tests.support import crawls
from tests.support.crawls import through
from tests.support.messy_sites import Case, MessyCrawl, check, crawled
from tests.support.site import Everywhere, Site
from tests.support.wire import Answer, Exchange, page, redirect
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

XML = "text/xml"
H = "<!DOCTYPE html><title>t</title>"


def urlset(*places: str) -> str:
    """A sitemap of these URLs."""
    rows = "".join(f"<url><loc>{place}</loc></url>" for place in places)
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'


def index(*places: str) -> str:
    """An index of these sitemaps."""
    rows = "".join(f"<sitemap><loc>{place}</loc></sitemap>" for place in places)
    return f'<?xml version="1.0"?><sitemapindex>{rows}</sitemapindex>'


def names(*places: str) -> Answer:
    """A robots.txt that names these sitemaps."""
    return page("".join(f"Sitemap: {place}\n" for place in places), "text/plain")


def xml(text: str | bytes, kind: str = XML) -> Answer:
    """A response of XML."""
    return page(text, kind)


SITEMAPS = (
    Case(
        name="robots-names",
        finding="P",
        serves={
            "/": H,
            "/robots.txt": names("http://robots-names.test/sm.xml"),
            "/ok.html": H,
            "/sm.xml": xml(urlset("http://robots-names.test/ok.html")),
        },
        never=["/sitemap.xml"],
        kept=["/ok.html", "/sm.xml"],
        words={"/ok.html": "listed-alone"},
    ),
    Case(
        name="usual-place",
        finding="P",
        serves={"/": H, "/sitemap.xml": xml(urlset("/ok.html")), "/ok.html": H},
        kept=["/ok.html", "/sitemap.xml"],
        at_most={"/ok.html": 1, "/sitemap.xml": 1},
    ),
    Case(
        name="redirected",
        finding="relative of P",
        serves={
            "/": H,
            "/sitemap.xml": redirect("/sitemap_index.xml", 301),
            "/sitemap_index.xml": xml(index("/1.xml")),
            "/1.xml": xml(urlset("/ok.html")),
            "/ok.html": H,
        },
        kept=["/ok.html", "/sitemap_index.xml", "/1.xml"],
    ),
    Case(
        name="packed",
        finding="relative of P",
        serves={
            "/": H,
            "/robots.txt": names("/sm.xml.gz"),
            "/sm.xml.gz": xml(gzip.compress(urlset("/ok.html").encode()), "application/x-gzip"),
            "/ok.html": H,
        },
        kept=["/ok.html", "/sm.xml.gz"],
    ),
    Case(
        name="lines",
        finding="relative of P",
        serves={
            "/": H,
            "/robots.txt": names("/sm.txt"),
            "/sm.txt": page("\ufeffhttp://lines.test/ok.html\r\nno URL\r\n", "text/plain"),
            "/ok.html": H,
        },
        kept=["/ok.html"],
    ),
    Case(
        name="circle",
        finding="relative of P",
        serves={
            "/": H,
            "/sitemap.xml": xml(index("/a.xml", "/sitemap.xml")),
            "/a.xml": xml(index("/sitemap.xml", "/b.xml")),
            "/b.xml": xml(urlset("/ok.html", "/a.xml")),
            "/ok.html": H,
        },
        kept=["/ok.html"],
        at_most={"/sitemap.xml": 1, "/a.xml": 1, "/b.xml": 1},
    ),
    Case(
        name="answers-all",
        finding="relative of P",
        serves={"/": H, "/sitemap.xml": page(H + "<a href=/x>not found</a>")},
        asked=["/sitemap.xml"],
        never=["/x"],
        words={"/sitemap.xml": "no-sitemap"},
    ),
    Case(
        name="page-there",
        finding="relative of P",
        serves={"/": H + "<a href=/sitemap.xml>all pages</a>", "/sitemap.xml": page(H + "<a href=/x>x</a>"), "/x": H},
        kept=["/sitemap.xml", "/x"],
    ),
    Case(
        name="other-hosts",
        finding="relative of P",
        serves={
            "/": H,
            "/sitemap.xml": xml(urlset("http://elsewhere.test/a", "javascript:x", "ftp://e/", "", "/ok.html")),
            "/ok.html": H,
        },
        kept=["/ok.html"],
        never=["http://elsewhere.test/a", "http://elsewhere.test/robots.txt"],
        words={"http://elsewhere.test/a": "host"},
    ),
    Case(
        name="linked-too",
        finding="relative of P",
        serves={"/": H + "<a href=/a>a</a>", "/sitemap.xml": xml(urlset("/b")), "/a": H + "<a href=/b>b</a>", "/b": H},
        kept=["/b"],
        at_most={"/b": 1},
    ),
    Case(
        name="feed",
        finding="P",
        serves={
            "/": H + "<link rel=alternate type='application/rss+xml' href=/f>",
            "/f": xml("<rss><channel><item><link>http://feed.test/ok.html</link></item></channel></rss>"),
            "/ok.html": H,
        },
        kept=["/f", "/ok.html"],
        words={"/ok.html": "listed-alone"},
    ),
    Case(
        name="atom",
        finding="P",
        serves={
            "/": H + "<link rel='alternate' type='application/atom+xml' href=/f>",
            "/f": xml(
                "<feed xmlns='http://www.w3.org/2005/Atom'><link rel=\"self\" href='/f'/><entry>"
                "<link href='/ok.html'/></entry></feed>"
            ),
            "/ok.html": H,
        },
        kept=["/f", "/ok.html"],
    ),
    Case(
        name="forbidden",
        finding="relative of P",
        serves={
            "/": H,
            "/robots.txt": page("User-agent: *\nDisallow: /no\nSitemap: /no/sm.xml\nSitemap: /sm.xml", "text/plain"),
            "/sm.xml": xml(urlset("/no/a", "/ok.html")),
            "/no/sm.xml": xml(urlset("/x")),
            "/ok.html": H,
        },
        kept=["/ok.html"],
        never=["/no/sm.xml", "/no/a"],
        words={"/no/a": "robots", "/no/sm.xml": "robots"},
    ),
)


@pytest.fixture(scope="module")
def sitemaps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases of sitemaps."""
    with crawled(tmp_path_factory.mktemp("real"), SITEMAPS, sitemaps=True) as done:
        yield done


@pytest.mark.parametrize("case", SITEMAPS, ids=lambda case: case.name)
def test_sitemap(sitemaps: MessyCrawl, case: Case) -> None:
    """S-sitemap-1"""
    check(case, sitemaps)


def test_a_page_that_is_linked_is_not_listed_alone(sitemaps: MessyCrawl) -> None:
    assert "listed-alone" not in sitemaps.log["http://linked-too.test/b"].notes
    assert sitemaps.outcome.complete


def test_leaving_a_sitemap_removes_nothing_and_being_gone_does(archive: Archive, site: Site) -> None:
    """S-sitemap-2"""

    def all_there() -> set[str]:
        outcome = crawls.crawl(
            archive, "http://e.test/", name="e", sitemaps=True, min_share=0, wget_args=through(site.proxy)
        )
        assert outcome.complete, outcome.warnings
        return crawls.arcs(archive, "e.test")

    site.add_html("/", "<a href=/linked>x</a>", host="e.test")
    for place in ("/linked", "/a", "/b", "/c"):
        site.add_html(place, place, host="e.test")
    site.add_nasty("/sitemap.xml", xml(urlset("/a", "/b", "/c")), "e.test")
    everything = {"index.html", "linked", "a", "b", "c", "sitemap.xml"}
    assert all_there() == everything
    site.add_nasty("/sitemap.xml", xml(urlset("/b", "/c")), "e.test")
    assert all_there() == everything
    assert all_there() == everything
    site.gone("/c", host="e.test")
    assert all_there() == everything - {"c"}
    site.add_html("/", "nothing", host="e.test")
    site.gone("/sitemap.xml", host="e.test")
    assert all_there() == {"index.html", "a", "b"}


@pytest.mark.parametrize("settings", [{"depth": 0}, {"sitemaps": False}])
def test_no_sitemap_is_looked_for(archive: Archive, site: Site, settings: dict[str, object]) -> None:
    site.add_html("/", "x")
    crawls.crawl(archive, site.url(), **{"sitemaps": True, **settings})
    assert not site.count("/sitemap.xml")


def test_paths_excludes_and_traps_hold_for_what_a_sitemap_lists(archive: Archive, site: Site) -> None:
    site.add_html("/press/", "x")
    site.add_html("/press/a", "x")
    site.add_nasty("/sitemap.xml", xml(urlset("/press/a", "/b", "/press/2150/01/", "/press/x.exe")))
    outcome = crawls.crawl(archive, site.url("/press/"), paths=["/press/*"], exclude_extensions=["exe"], sitemaps=True)
    log = crawls.log_lines(archive, outcome)
    assert crawls.arcs(archive, site.host) == {"press/index.html", "press/a", "sitemap.xml"}
    words = {"/b": "paths", "/press/2150/01/": "trap:calendar", "/press/x.exe": "extension"}
    assert all(word in log[site.url(place)].notes for place, word in words.items())


def test_the_number_of_urls_is_exact_over_sitemaps(archive: Archive, site: Site) -> None:
    site.add_html("/", "x")
    site.add_nasty("/sitemap.xml", xml(index(*(f"/{n}.xml" for n in range(20)))))
    for n in range(20):
        site.add_nasty(f"/{n}.xml", xml(urlset(*(f"/p{n}-{m}" for m in range(10)))))
    outcome = crawls.crawl(archive, site.url(), sitemaps=True, max_sitemap_urls=25)
    log = crawls.log_lines(archive, outcome)
    assert sum("/p" in url for url in log) == 25
    notes = [line.notes for url, line in log.items() if url.endswith(".xml")]
    assert any("sitemap-cut" in words for words in notes)
    assert outcome.complete


# -- session ids -------------------------------------------------------------------------------------------------------


class _Shop:
    """Pages whose links have an id that is new with each visit, unless a cookie comes back."""

    def __init__(self, link: str, *, cookies: bool) -> None:
        self.link, self.cookies, self.visits = link, cookies, 0

    def __call__(self, exchange: Exchange) -> None:
        self.visits += 1
        knows = self.cookies and "cookie" in {name.lower() for name in exchange.request.headers}
        number = f"{self.visits:032x}"
        links = [f"/p{n}.html" if knows else self.link.format(f"p{n}.html", number) for n in range(4)]
        body = H + "".join(f"<a href='{place}'>x</a>" for place in links)
        page(body, headers={"Set-Cookie": f"id={number}"} if self.cookies else {})(exchange)


@pytest.mark.parametrize("link", ["/{};jsessionid={}", "/{}?PHPSESSID={}", "/{}?sid={}", "/(S({1}))/{0}"])
@pytest.mark.parametrize("cookies", [True, False])
def test_a_site_with_session_ids_does_not_change(archive: Archive, site: Site, link: str, *, cookies: bool) -> None:
    """S-session-1: reported for servlets and shops: each crawl kept all pages anew, and removed those before."""
    site.mount(Everywhere(_Shop(link, cookies=cookies)))
    site.gone("/robots.txt")
    for number in range(2):
        outcome = crawls.crawl(archive, site.url(), name="shop", max_host_documents=60)
        assert outcome.complete, outcome.warnings
        assert len(crawls.arcs(archive, site.host)) == 5
        changes = outcome.summary["arcs"]
        assert isinstance(changes, dict)
        assert number == 0 or (changes["added"], changes["removed"]) == (0, 0)
    assert not any("sess" in arc.lower() or "S(" in arc for arc in crawls.arcs(archive, site.host))
