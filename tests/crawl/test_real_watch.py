"""A publication that watches a feed: the page of each new item is captured once, with all that it needs (S-watch)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from agent.crawl import watching
from agent.crawl.vocabulary import Status
from tests.support import crawls, nasty
from tests.support.crawls import Done, run_command
from tests.support.site import Exchange, Site, page
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import PUBLICATIONS
from webarcfs.archive.index.sqlite_file import journal
from webarcfs.archive.model.errors import Exit

pytestmark = pytest.mark.crawl

_RSS = "application/rss+xml"


@pytest.fixture
def other() -> Iterator[Site]:
    with Site() as made:
        yield made


def _settings(archive: Archive, feed: str, *more: str, private: bool = True) -> None:
    lines = ["[[publication]]", 'name = "news"', f'watch = "{feed}"', "wait = 0", "timeout = 5", *more]
    archive.settings.write_text("\n".join([*lines, f"private_addresses = {str(private).lower()}", ""]))


def _run(archive: Archive, *arguments: str) -> Done:
    return run_command("crawl", "--archive", archive.root, "--publication", "news", *arguments)


def _item(link: str, guid: str = "") -> str:
    identity = f'<guid isPermaLink="false">{guid or link}</guid>'
    return f"<item><title>t</title>{f'<link>{link}</link>' if link else ''}{identity}</item>"


def _rss(*items: str, about: str = "") -> str:
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>n</title>{about}{"".join(items)}</channel></rss>'


def _feed(site: Site, *links: str, path: str = "/feed.xml", salt: str = "") -> str:
    items = (_item(link, f"{salt}{number}") for number, link in enumerate(links))
    about = f"<link>{site.url('/')}</link>"
    return site.add(path, _rss(*items, about=about), _RSS)


def _article(site: Site, path: str) -> str:
    site.add(f"{path}.png", b"\x89PNG\r\n\x1a\n" + path.encode(), "image/png")
    return site.add_html(path, f'{path}<img src="{path}.png"><a href="/elsewhere{path}">more</a>')


def _reports(archive: Archive) -> list[str]:
    return sorted(path.name for path in archive.reports.iterdir() if path.name.endswith("-news"))


def _summary(archive: Archive) -> dict[str, Any]:
    return json.loads((archive.reports / _reports(archive)[-1] / "summary.json").read_text())


def _pages(archive: Archive, host: str) -> set[str]:
    return {arc for arc in crawls.arcs(archive, host) if not arc.startswith(("feed", "i/"))}


def test_each_item_is_captured_once_over_days(archive: Archive, site: Site, other: Site) -> None:
    """S-watch-1: new items alone, on any host, with what they need; nothing else of the site, and nothing goes."""
    feed = _feed(site, _article(site, "/a"), _article(other, "/b"))
    _settings(archive, feed)
    done = _run(archive)
    assert done.code == 0, done.err
    assert {"a", "a.png"} <= crawls.arcs(archive, site.host) and {"b", "b.png"} <= crawls.arcs(archive, other.host)
    assert site.count("/feed.xml") == 1 and site.count("/") == 0 and site.count("/elsewhere/a") == 0
    assert b"<rss" in crawls.read(archive, site.host, "feed.xml")
    # The next day: an item is new, one has left the feed, and the ids are others.
    site.clear_log()
    other.clear_log()
    _feed(site, _article(site, "/c"), other.url("/b"), salt="another day ")
    done = _run(archive)
    assert done.code == 0, done.err
    assert site.count("/c") == 1 and site.count("/a") == 0 and other.count("/b") == 0
    assert {"a", "a.png", "c", "c.png"} <= crawls.arcs(archive, site.host)
    watch = _summary(archive)["watch"]
    assert (watch["items"], watch["new"], watch["captured"], watch["waiting"]) == (2, 1, 1, 0)


def test_a_feed_without_news_brings_no_commit(archive: Archive, site: Site) -> None:
    """S-watch-2: the same bytes, and 304; nothing else is asked for, and there is no commit and no record."""
    _settings(archive, _feed(site, _article(site, "/a")))
    assert _run(archive).code == 0
    head, records = crawls.head_of(archive, site.host), len(list(Catalogue(archive).records("news")))
    body = crawls.read(archive, site.host, "feed.xml")
    tagged = page(body, _RSS, 200, {"ETag": '"x"'})

    def conditional(exchange: Exchange) -> None:
        (page(b"", None, 304) if exchange.request.headers.get("if-none-match") == '"x"' else tagged)(exchange)

    for answer in (page(body, _RSS), conditional):
        site.clear_log()
        site.add_nasty("/feed.xml", answer)
        done = _run(archive)
        assert done.code == 0, done.err
        asked = {request.path for request in site.requests}
        assert asked <= {"/feed.xml", "/robots.txt"}, asked
        assert crawls.head_of(archive, site.host) == head
        assert len(list(Catalogue(archive).records("news"))) == records
    assert len(_reports(archive)) == 3


def test_a_feed_that_did_not_change_is_read_in_the_encoding_in_which_it_came(archive: Archive, site: Site) -> None:
    """Its items have the same URLs as before; one that is listed twice counts once."""
    path = "/\u043d\u043e\u0432\u043e\u0441\u0442\u044c"
    _settings(archive, site.url("/feed.xml"))
    site.add_html("/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D1%8C", "news")
    text = _rss(_item(site.url(path), "1"), _item(site.url(path), "2")).replace('<?xml version="1.0"?>', "")
    tagged = page(text.encode("koi8-r"), f"{_RSS}; charset=koi8-r", 200, {"ETag": '"x"'})

    def conditional(exchange: Exchange) -> None:
        (page(b"", None, 304) if exchange.request.headers.get("if-none-match") == '"x"' else tagged)(exchange)

    site.add_nasty("/feed.xml", conditional)
    for new in (1, 0):
        site.clear_log()
        done = _run(archive)
        assert done.code == 0, done.err
        watch = _summary(archive)["watch"]
        assert (watch["items"], watch["new"]) == (1, new), watch
    assert {request.path for request in site.requests} <= {"/feed.xml", "/robots.txt"}


def test_an_item_that_fails_is_tried_again_and_given_up(archive: Archive, site: Site) -> None:
    """S-watch-3: it is named in report and output, also when it left the feed; the bound ends it."""
    feed = _feed(site, _article(site, "/a"), site.url("/late"), site.url("/dead"))
    _settings(archive, feed)
    done = _run(archive)
    assert done.code == Exit.INCOMPLETE
    assert f"{site.url('/dead')} gave nothing: 404; the next crawl tries it again" in done.err
    watch = _summary(archive)["watch"]
    assert watch["not_captured"] == [site.url("/late"), site.url("/dead")] and watch["captured"] == 1
    _feed(site)  # both have left the feed, and one is there now
    _article(site, "/late")
    site.clear_log()
    assert _run(archive).code == Exit.INCOMPLETE
    assert (site.count("/late"), site.count("/dead"), site.count("/a")) == (1, 1, 0)
    assert "late" in crawls.arcs(archive, site.host)
    for number in range(3, watching.MOST_TRIES + 1):
        done = _run(archive)
        assert done.code == Exit.INCOMPLETE, number
    assert f"{site.url('/dead')} gave nothing: 404; it is not tried again" in done.err
    assert _summary(archive)["watch"]["given_up"] == 1
    site.clear_log()
    _feed(site, site.url("/dead"), salt="again")
    assert _run(archive).code == 0
    assert site.count("/dead") == 0


@pytest.mark.parametrize("status", [403, 404, 410])
def test_an_error_page_that_is_kept_settles_no_item(archive: Archive, site: Site, status: int) -> None:
    """S-watch-3 with `keep_errors`: the error page is archived, and the item is asked for again until it comes."""
    feed = _feed(site, _article(site, "/a"), _article(site, "/late"))
    site.gone("/late", status)
    _settings(archive, feed, "keep_errors = true")
    for _ in range(2):
        done = _run(archive)
        assert done.code == Exit.INCOMPLETE and "late" in crawls.arcs(archive, site.host)
        assert f"{site.url('/late')} gave nothing: {status}" in done.err and "next crawl tries it again" in done.err
        assert _summary(archive)["watch"]["not_captured"] == [site.url("/late")]
        _feed(site)  # the item has left the feed
    watching.path_of(archive, "news").unlink()  # webarc.db does not take the error page for the item either
    _feed(site, site.url("/a"), site.url("/late"))
    site.back("/late")
    site.clear_log()
    assert _run(archive).code == 0
    assert (site.count("/late"), site.count("/a")) == (1, 0)
    assert b"late.png" in crawls.read(archive, site.host, "late")


def test_a_patch_settles_the_items_that_it_gets_and_does_not_take_the_feed_for_a_page(
    archive: Archive, site: Site
) -> None:
    feed = _feed(site, _article(site, "/a"), site.url("/late"), site.url("/dead"), site.url("/never"))
    for path in ("/late", "/dead", "/never"):
        site.gone(path, 500)
    _settings(archive, feed)
    assert _run(archive).code == Exit.INCOMPLETE
    site.gone("/feed.xml", 500)
    site.back("/late")
    _article(site, "/late")
    assert _run(archive).code == Exit.INCOMPLETE
    assert "late" in crawls.arcs(archive, site.host)
    for path in ("/feed.xml", "/dead"):
        site.back(path)
    _article(site, "/dead")
    site.clear_log()
    done = run_command("crawl", "--archive", archive.root, "--missing", "news")
    assert done.code == Exit.INCOMPLETE and "/never gave nothing: 500" in done.err, done.err
    assert (site.count("/feed.xml"), site.count("/dead"), site.count("/late")) == (0, 1, 0)
    assert {"dead", "dead.png"} <= crawls.arcs(archive, site.host)
    with watching.WatchedItems(archive, "news", reads=True) as items:
        assert (items.is_settled(site.url("/dead")), items.find(site.url("/never")).tries) == (True, 2)
    site.clear_log()
    assert _run(archive).code == Exit.INCOMPLETE
    assert site.count("/dead") == 0 and site.count("/never")


_NO_FEEDS = (
    (lambda site: site.add_html("/feed.xml", "sorry"), "no feed"),
    (lambda site: site.add("/feed.xml", "<sitemapindex/>", "text/xml"), "no feed"),
    (lambda site: site.gone("/feed.xml"), "feed gave 404"),
    (lambda site: site.add("/robots.txt", "User-agent: *\nDisallow: /feed.xml", "text/plain"), "feed forbidden by"),
    (lambda site: site.add_nasty("/feed.xml", nasty.reset()), "feed failed"),
)


@pytest.mark.parametrize(("spoil", "says"), _NO_FEEDS)
def test_a_feed_that_is_none_is_said_and_the_next_crawl_goes_on(
    archive: Archive, site: Site, spoil: Any, says: str
) -> None:
    """S-watch-4: the crawl is incomplete, with exit code 3; the next one captures what is new."""
    feed = _feed(site, _article(site, "/a"))
    _settings(archive, feed)
    assert _run(archive).code == 0
    spoil(site)
    done = _run(archive)
    assert done.code == Exit.INCOMPLETE and f"{says}" in done.err, done.err
    assert not _summary(archive)["complete"]
    site.back("/feed.xml")
    site.add("/robots.txt", "", "text/plain")
    site.clear_log()
    _feed(site, site.url("/a"), _article(site, "/c"))
    done = _run(archive)
    assert done.code == 0, done.err
    assert site.count("/c") == 1 and site.count("/a") == 0
    assert {"a", "c"} <= crawls.arcs(archive, site.host)


def test_the_feed_opens_no_private_address_but_its_own(archive: Archive, site: Site, other: Site) -> None:
    """S-watch-5: an item at another address of one's own network is never asked for, whatever the feed says."""
    elsewhere = (other.url("/b"), f"http://localhost:{other.port}/l", "http://10.0.0.1/x", "http://[::1]/y")
    site.add_nasty("/r", lambda exchange: _redirect_to(exchange, other.url("/moved")))
    _settings(archive, _feed(site, _article(site, "/a"), *elsewhere, site.url("/r")), private=False)
    done = _run(archive)
    assert "a" in crawls.arcs(archive, site.host), done.err
    assert not other.requests
    lines = crawls.log_lines(archive, _reports(archive)[-1])
    assert all("private-address" in lines[url].notes for url in elsewhere)
    assert "private-address" in lines[other.url("/moved")].notes


def _redirect_to(exchange: Exchange, target: str) -> None:
    page("", None, 302, {"Location": target})(exchange)


def test_what_a_setting_rejects_is_not_tried_again(archive: Archive, site: Site) -> None:
    """A decision would be the same in each crawl: the type of a document, its size."""
    site.add("/big", "x" * 5000)
    site.add("/film", b"\0\0\0\x18ftypmp42" + bytes(100), "video/mp4")
    _settings(archive, _feed(site, site.url("/big"), site.url("/film")), "max_file_size = 2000", 'types = ["text/*"]')
    for code in (Exit.INCOMPLETE, 0):
        done = _run(archive)
        assert done.code == code, done.err
        assert (site.count("/big"), site.count("/film")) == (1, 1)
    assert _summary(archive)["watch"]["new"] == 0


@pytest.mark.parametrize(("point", "asked"), [("captured", 2), ("refs-moved", 1)])
def test_a_discarded_crawl_is_asked_again_for_what_it_did_not_publish(
    archive: Archive, site: Site, point: str, asked: int
) -> None:
    _settings(archive, _feed(site, _article(site, "/a")))
    crawls.run_killed_at(point, "crawl", "--archive", archive.root, "--publication", "news")
    [folder] = archive.jobs.iterdir()
    done = run_command("job", "discard", folder.name, "--reason", "x", "--archive", archive.root)
    assert not list(archive.jobs.iterdir()), done.err
    assert _run(archive).code == 0
    assert site.count("/a") == asked
    assert "a" in crawls.arcs(archive, site.host)


def test_settings_keep_items_out(archive: Archive, site: Site, other: Site) -> None:
    feed = _feed(site, _article(site, "/news/a"), site.url("/ads/b"), other.url("/x"), site.url("/news/big.exe"))
    rest = (f'exclude_hosts = ["{other.host}"]', 'exclude_extensions = ["exe"]', 'paths = ["/news/*"]')
    _settings(archive, feed, *rest)
    done = _run(archive)
    assert done.code == 0, done.err
    assert site.count("/ads/b") == 0 and not other.requests and site.count("/news/big.exe") == 0
    assert "news/a" in crawls.arcs(archive, site.host)
    records, head = len(list(Catalogue(archive).records("news"))), crawls.head_of(archive, site.host)
    assert _run(archive).code == 0
    assert (len(list(Catalogue(archive).records("news"))), crawls.head_of(archive, site.host)) == (records, head)


def test_items_for_which_a_crawl_has_no_room_wait_for_the_next(archive: Archive, site: Site, other: Site) -> None:
    """S-watch-3: a bound of the whole crawl loses no item, also of those that leave the feed, and counts as no try."""
    queries = [_article(site, f"/q?{number}") for number in range(3)]
    with Site() as third:
        items = [*queries, _article(other, "/b"), _article(third, "/c")]
        _settings(archive, _feed(site, *items), "max_queries = 1", "max_hosts = 1", "page_resources = 'none'")
        left = items
        for said in (3, 1, 0):
            done = _run(archive)
            log = crawls.log_lines(archive, _reports(archive)[-1])
            without = [url for url in left if log[url].status == Status.TRAP]
            assert len(without) == said, done.err
            assert done.code == (Exit.INCOMPLETE if said else 0), done.err
            for url in without:
                word = "trap:queries" if "?" in url else "trap:hosts"
                assert f"{url} gave nothing: {Status.TRAP:d}, {word}; the next crawl tries it again" in done.err
            watch = _summary(archive)["watch"]
            assert (watch["waiting"], sorted(watch["not_captured"])) == (said, sorted(without))
            with sqlite3.connect(watching.path_of(archive, "news")) as rows:
                assert rows.execute("SELECT count(*) FROM item WHERE captured = 0").fetchone()[0] == said
                assert not any(tries for (tries,) in rows.execute("SELECT tries FROM item"))
            left = without
            _feed(site)  # all have left the feed
        asked = [(each.host, each.path) for each in (*site.requests, *other.requests, *third.requests)]
        assert all(sum(url == f"http://{host}{path}" for host, path in asked) == 1 for url in items)


def test_a_feed_of_many_items_is_bounded(archive: Archive, site: Site) -> None:
    """The bound is that of sitemaps; what lies behind is said."""
    for number in range(3):
        _article(site, f"/p{number}")
    items = (_item(site.url(f"/p{number}")) for number in range(100_000))
    _settings(archive, site.add("/feed.xml", _rss(*items, _item("")), _RSS), "max_sitemap_urls = 3")
    done = _run(archive)
    assert done.code == 0, done.err
    assert "lists more than was read" in done.err
    assert {"p0", "p1", "p2"} <= crawls.arcs(archive, site.host) and site.count("/p3") == 0
    lines = crawls.log_lines(archive, _reports(archive)[-1])
    assert "sitemap-cut" in lines[site.url("/feed.xml")].notes


def test_sessions_fragments_and_doubles_are_one_item(archive: Archive, site: Site) -> None:
    _article(site, "/a")
    links = [site.url("/a#one"), site.url("/a#two"), site.url("/a?PHPSESSID=abcdef0123456789"), site.url("/a")]
    _settings(archive, site.add("/feed.xml", _rss(*map(_item, links), _item("")), _RSS))
    done = _run(archive)
    assert done.code == 0, done.err
    assert site.count("/a") == 1 and "lists 1 items without a page" in done.err
    site.add("/feed.xml", _rss(_item(site.url("/a;jsessionid=0123456789abcdef#x"))), _RSS)
    assert _run(archive).code == 0
    assert sum(request.path.startswith("/a") and not request.path.endswith("png") for request in site.requests) == 1


def test_a_feed_that_moved_and_items_that_redirect(archive: Archive, site: Site, other: Site) -> None:
    site.add_nasty("/old", lambda exchange: _redirect_to(exchange, other.url("/feed.atom")))
    site.add_nasty("/go", lambda exchange: _redirect_to(exchange, other.url("/a")))
    _article(other, "/a")
    other.add(
        "/feed.atom",
        f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="{site.url("/x/")}"><entry><id>1</id>'
        '<link rel="self" href="no"/><link href="../go"/></entry></feed>',
        "application/atom+xml",
    )
    _settings(archive, site.url("/old"))
    done = _run(archive)
    assert done.code == 0, done.err
    assert {"a", "a.png", "feed.atom"} <= crawls.arcs(archive, other.host)
    head = crawls.head_of(archive, other.host)
    site.clear_log()
    other.clear_log()
    entry = f'<entry><link href="{other.url("/a")}"/></entry>'
    other.add("/feed.atom", f'<feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>')
    done = _run(archive)
    assert done.code == 0, done.err
    assert site.count("/go") == 0 and other.count("/a") == 0
    assert crawls.head_of(archive, other.host) != head  # the feed has changed


def test_it_moves_nothing_of_other_publications(archive: Archive, site: Site) -> None:
    """S-watch-6 (S-list-1): a crawl of the whole site keeps its state, and so do its pages."""
    site.add_html("/", '<a href="/a">a</a><a href="/z">z</a>')
    _article(site, "/a")
    _article(site, "/z")
    options = ("--wait", "0", "--private-addresses")
    assert run_command("crawl", "--archive", archive.root, *options, site.url("/")).code == 0
    before = crawls.store(archive, site.host).refs(PUBLICATIONS)
    site.gone("/z")
    _settings(archive, _feed(site, site.url("/a"), _article(site, "/c")))
    done = _run(archive)
    assert done.code == 0, done.err
    assert crawls.store(archive, site.host).refs(PUBLICATIONS) == before
    assert {"a", "c", "z"} <= crawls.arcs(archive, site.host)


def test_the_items_come_back_from_the_archive(archive: Archive, site: Site) -> None:
    """Without its file of items, or with a damaged one, a publication knows from webarc.db what it has."""
    _settings(archive, _feed(site, _article(site, "/a")))
    assert _run(archive).code == 0
    path = watching.path_of(archive, "news")
    path.unlink()
    site.clear_log()
    assert _run(archive).code == 0
    assert site.count("/a") == 0
    sound = path.read_bytes()
    for damaged in (b"no database at all, and long enough to be looked at as one" * 100, sound[:4096] + b"x" * 8192):
        path.write_bytes(damaged)
        journal(path).write_bytes(b"of a writer that was killed")
        done = _run(archive)
        assert done.code == 0 and f"{path} is damaged" in done.err, done.err
        assert site.count("/a") == 0 and not journal(path).exists()


def test_a_fault_of_what_is_settled_is_none_of_the_file_of_items(archive: Archive) -> None:
    """What became of the items is read from the frontier: its fault is not put down to the file that is written to."""

    def ends() -> Iterator[watching.ItemEnd]:
        yield watching.ItemEnd("http://e.org/", captured=True)
        raise sqlite3.DatabaseError("of the frontier")

    with watching.WatchedItems(archive, "news") as items:
        with pytest.raises(sqlite3.DatabaseError, match="of the frontier"):
            items.settle("job", ends())
        assert not items.is_settled("http://e.org/")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (('urls = ["http://e.org/"]',), "urls: not with `watch`"),
        (('list = "x.txt"',), "list: not with `watch`"),
        (("sitemaps = true",), "sitemaps: not with `watch`"),
        (("depth = 1",), "depth: not with `watch`"),
    ],
)
def test_what_does_not_go_with_it(archive: Archive, lines: tuple[str, ...], says: str) -> None:
    _settings(archive, "http://e.org/feed", *lines)
    done = _run(archive)
    assert done.code and says in done.err, done.err


def test_options_that_do_not_go_with_it(archive: Archive) -> None:
    _settings(archive, "http://e.org/feed", "start = 2024-01-01T00:00:00", "depth = 0")
    done = _run(archive, "--depth", "2")
    assert done.code and "news watches a feed" in done.err
    done = run_command("publication", "add", "other", "--archive", archive.root)
    assert done.code and "--set watch=FEED" in done.err
    done = run_command("publication", "add", "other", "--archive", archive.root, "--set", "watch=e.org/feed")
    assert done.code and "watch: " in done.err
    done = run_command("publication", "add", "other", "--archive", archive.root, "--set", "watch=http://e.org/feed")
    assert done.code == 0, done.err
    done = run_command("publication", "show", "other", "--archive", archive.root, "--all")
    assert "depth = 0    # publications.d/other.toml, watch" in done.out, done.out


def test_the_agent_runs_it_by_its_schedule(archive: Archive, site: Site) -> None:
    """Each run captures what is new since the last one; a run of the agent adds alone as well."""
    _settings(archive, _feed(site, _article(site, "/a")))
    for number, names in enumerate((("/a", "/b"), ("/b", "/c"), ("/c",)), 1):
        done = run_command("start", "--archive", archive.root, "--once")
        assert done.code == 0, done.err
        [report] = [path for path in archive.reports.iterdir() if not path.name.startswith("2001")]
        report.rename(report.with_name(f"2001010{number}T000000-news"))  # a day or more goes by
        _feed(site, *(_article(site, name) for name in names), salt=str(number))
    assert {"a", "b", "c"} <= crawls.arcs(archive, site.host)
    assert [site.count(name) for name in ("/a", "/b", "/c")] == [1, 1, 1]


def test_try_says_what_it_would_take(archive: Archive, site: Site) -> None:
    """Nothing is archived, no item is fetched, and no file of items is made."""
    _settings(archive, _feed(site, _article(site, "/a"), _article(site, "/b"), "http://10.0.0.1/x"), private=False)
    done = run_command("publication", "try", "news", "--archive", archive.root)
    assert done.code == 0, done.err
    assert "2 items would be captured:" in done.out and site.url("/a") in done.out
    assert "1 would not be, private-address" in done.out
    assert site.count("/a") == 0 and not watching.path_of(archive, "news").exists()
    assert _run(archive).code == 0
    _feed(site, _article(site, "/c"), site.url("/a"), site.url("/b"))
    done = run_command("publication", "try", "news", "--archive", archive.root, "--format", "json")
    trial = json.loads(done.out)
    assert (trial["number"], trial["captured"], trial["would"]) == (1, 2, [site.url("/c")])
    site.add_html("/feed.xml", "no feed")
    done = run_command("publication", "try", "news", "--archive", archive.root)
    assert done.code == Exit.INCOMPLETE and "no-feed" in done.out


@pytest.mark.parametrize("point", ["captured", "objects-written", "refs-moved", "before-report", "record-written"])
def test_kill_9_asks_for_nothing_twice(archive: Archive, site: Site, point: str) -> None:
    """S-watch-7: between capture and publication, and behind it; the next run resumes the job, or has nothing to do."""
    _settings(archive, _feed(site, _article(site, "/a"), site.url("/dead")))
    crawls.run_killed_at(point, "crawl", "--archive", archive.root, "--publication", "news")
    for job in archive.jobs.iterdir():
        deeper = run_command("crawl", "--archive", archive.root, "--resume", job.name, "--depth", "3")
        assert deeper.code == 1 and "no --depth" in deeper.err
    done = _run(archive)
    assert "a" in crawls.arcs(archive, site.host), done.err
    assert site.count("/a") == 1
    # The same job counts once; where the report was written, the run was a new one, and tried the item again.
    with sqlite3.connect(watching.path_of(archive, "news")) as items:
        rows = dict(items.execute("SELECT url, tries FROM item"))
    assert rows[site.url("/dead")] == site.count("/dead") <= 2
    assert len(crawls.crawls_of(archive, site.host)) == 1


def test_a_job_that_is_lost_between_capture_and_publication_is_asked_again(archive: Archive, site: Site) -> None:
    """What was not published is asked for again, and nothing else."""
    _settings(archive, _feed(site, _article(site, "/a")))
    assert _run(archive).code == 0
    _feed(site, site.url("/a"), _article(site, "/b"))
    crawls.run_killed_at("captured", "crawl", "--archive", archive.root, "--publication", "news")
    [folder] = archive.jobs.iterdir()
    shutil.rmtree(folder)
    site.clear_log()
    assert _run(archive).code == 0
    assert (site.count("/a"), site.count("/b")) == (0, 1)
    assert {"a", "b"} <= crawls.arcs(archive, site.host)
