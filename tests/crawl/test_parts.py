"""Which parts of sites a crawl takes, by path, extension and type, and what it asks of single servers."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise

import pytest

from agent.crawl.vocabulary import Status
from tests.support import crawls, nasty
from tests.support.crawls import crawl, run_command
from tests.support.site import Answer, Exchange, Site, page, redirect
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, ServerSettings

pytestmark = pytest.mark.crawl


def _links(*paths: str) -> str:
    return "".join(f'<a href="{path}">{path}</a>\n' for path in paths)


def _asked(site: Site, host: str | None = None) -> Counter[str]:
    wanted = (request for request in site.requests if request.path != "/robots.txt")
    return Counter(request.path for request in wanted if host in (None, request.host))


# -- parts -------------------------------------------------------------------------------------------------------------


def test_only_the_paths_of_a_publication_are_crawled_with_what_their_pages_need(archive: Archive, site: Site) -> None:
    site.add_nasty("/", redirect("/start.html"))
    site.add_html("/start.html", _links("/press/a", "/press", "/other/b", "/press/../other/c"))
    site.add_html("/press/a", '<img src="/images/logo.png">' + _links("/other/d", "http://b.example/news/1"))
    site.add("/images/logo.png", b"\x89PNG\r\n\x1a\n", "image/png")
    for path in ("/news/1", "/news/2", "/press/x"):
        site.add_html(path, _links("/press/x", "/news/2"), host="b.example")
    outcome = crawl(archive, site.url(), paths=["/press/*", "b.example/news/*"], hosts=["b.example"],
                    exclude_extensions=[], wget_args=crawls.through(site.proxy))  # fmt: skip
    assert outcome.complete and not outcome.warnings
    assert crawls.arcs(archive, site.host) == {"start.html", "press/a", "images/logo.png"}
    assert crawls.arcs(archive, "b.example") == {"news/1", "news/2", "press/x"}
    log = crawls.log_lines(archive, outcome)
    for path in ("/press", "/other/b", "/other/c", "/other/d"):
        assert (log[site.url(path)].status, log[site.url(path)].notes) == (Status.OUT_OF_SCOPE, ("paths",))
        assert _asked(site)[path] == 0


def test_extensions_are_left_out_before_they_are_asked_for(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/a.EXE", "/b.tar.gz", "/c.gz", "/exe", "/d.html?x=.exe"))
    for path in ("/c.gz", "/exe", "/d.html?x=.exe"):
        site.add_html(path, path)
    outcome = crawl(archive, site.url(), exclude_extensions=["exe", "tar.gz"])
    log = crawls.log_lines(archive, outcome)
    left_out = {url for url, line in log.items() if line.notes == ("extension",)}
    assert left_out == {site.url("/a.EXE"), site.url("/b.tar.gz")}
    assert set(_asked(site)) == {"/", "/c.gz", "/exe", "/d.html?x=.exe"}


def test_types_over_the_profile_and_before_the_download_where_the_url_tells(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/a.pdf", "/b.mp4", "/c.html", "/d.css", "/noext") + '<img src="/e.png">')
    site.add("/a.pdf", b"%PDF-1.4\n", "application/pdf")
    site.add("/b.mp4", b"\0\0\0\x18ftypmp42", "video/mp4")
    site.add_html("/c.html", _links("/f.pdf"))
    site.add("/d.css", "p { background: url(/g.png) }", "text/css")
    site.add("/noext", b"\x89PNG\r\n\x1a\n", "image/png")
    for path in ("/e.png", "/g.png"):
        site.add(path, b"\x89PNG\r\n\x1a\n" + path.encode(), "image/png")
    site.add("/f.pdf", b"%PDF-1.4\nf", "application/pdf")
    profile = Profile(include=("text/html", "image/*"), exclude=("application/pdf",))
    outcome = crawl(archive, site.url(), profile=profile, types=["application/pdf"], exclude_types=["image/png"])
    assert outcome.complete
    assert crawls.arcs(archive, site.host) == {"index.html", "a.pdf", "c.html", "f.pdf"}
    log = crawls.log_lines(archive, outcome)
    spared = {url.removeprefix(site.url("")) for url, line in log.items() if line.status == Status.TYPE}
    assert spared == {"/b.mp4", "/e.png", "/g.png"} and not spared & set(_asked(site))
    assert {log[site.url(path)].annotations[0] for path in spared} == {"seed3:-3"}
    for path, note in (("/noext", "filter:types"), ("/d.css", "filter:types")):
        assert log[site.url(path)].notes == (note, "filtered"), "it came, since it has links or does not tell its type"
        assert log[site.url(path)].annotations[0] == "seed3:-3"


def test_a_large_document_whose_server_says_that_it_is_not_wanted_is_cut_off(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/video", "/after"))
    sent: list[int] = []
    site.add_nasty("/video", _slowly("video/mp4", 6_000_000, 400_000, sent))
    site.add_html("/after", "after")
    outcome = crawl(archive, site.url(), types=["text/*"])
    assert 0 < sum(sent) < 6_000_000
    log = crawls.log_lines(archive, outcome)
    assert (log[site.url("/video")].status, log[site.url("/video")].notes) == (Status.TYPE, ("type",))
    assert log[site.url("/after")].notes == ("added",)


def test_all_of_it_in_the_settings_file_and_as_options(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/in/a", "/in/b.zip", "/out"))
    site.add_html("/in/a", _links("/in/deep"))
    site.add_html("/in/deep", _links("/in/deeper"))
    site.add_html("/in/deeper", "")
    archive.settings.write_text(
        f"""
[crawl]
depth = 0
[[publication]]
name = "p"
urls = ["{site.url()}"]
description = "All of it"
depth = "unlimited"
paths = ["/in/*"]
exclude_extensions = ["zip"]
wait = 0
rate_limit = "10 MB"
[[publication.exclude]]
match = "127.0.0.1/in/deeper"
reason = "appraised"
[[publication.server]]
host = "127.0.0.1"
max_documents = 100
""",
        "utf-8",
    )
    done = run_command("crawl", "--archive", archive.root, "--publication", "p")
    assert done.code == 0, done.err
    assert crawls.arcs(archive, site.host) == {"index.html", "in/a", "in/deep"}
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", "--depth", "unlimited", "--paths", "/in/*",
                       "--rate-limit", "10 MB", "--max-host-documents", "2", site.url())  # fmt: skip
    assert done.code == 3 and "max-documents" in done.err


# -- servers -----------------------------------------------------------------------------------------------------------


def test_a_server_has_its_own_depth_pause_and_number_of_documents(archive: Archive, site: Site) -> None:
    for host in ("a.example", "b.example", "c.example"):
        for number in range(8):
            site.add_html(f"/{number}" if number else "/", _links(f"/{number + 1}"), host=host)
    site.add_html("/", _links("/1", "http://b.example/", "http://c.example/"), host="a.example")
    servers = (
        ServerSettings(host="b.*", depth=2, wait=0.2),
        ServerSettings(host="c.example", max_documents=3),
        ServerSettings(host="*", depth=5),
    )
    outcome = crawl(archive, "http://a.example/", hosts=["*.example"], depth=20, server=servers,
                    wget_args=crawls.through(site.proxy))  # fmt: skip
    assert set(_asked(site, "a.example")) == {"/", "/1", "/2", "/3", "/4", "/5"}
    assert set(_asked(site, "b.example")) == {"/", "/1", "/2"}, "counted from where the crawl came to it"
    assert set(_asked(site, "c.example")) == {"/", "/1", "/2"}
    log = crawls.log_lines(archive, outcome)
    assert log["http://b.example/3"].notes == ("server-depth",)
    assert (log["http://c.example/3"].status, log["http://c.example/3"].notes) == (Status.CUT, ("max-documents",))
    assert (outcome.complete, outcome.warnings) == (False, ("max-documents: c.example",))
    times = [request.time for request in site.requests if request.host == "b.example"]
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.19


def test_each_host_has_its_cap_whatever_fails_on_it(archive: Archive, site: Site) -> None:
    for host in ("a.example", "b.example"):
        site.add_html("/", _links(*(f"/{number}" for number in range(30))), host=host)
        for number in range(30):
            site.add_nasty(f"/{number}", nasty.flaky(1, then=page("x")) if number == 2 else page("x"), host=host)
    outcome = crawl(archive, "http://a.example/", "http://b.example/", max_host_documents=10,
                    wget_args=crawls.through(site.proxy))  # fmt: skip
    assert not outcome.complete
    for host in ("a.example", "b.example"):
        assert len(_asked(site, host)) == 10 and len(crawls.arcs(archive, host)) == 10


def test_all_wgets_together_keep_to_the_speed(archive: Archive, site: Site) -> None:
    hosts = [f"h{number}.example" for number in range(3)]
    for host in hosts:
        site.add_html("/", _links("/1", "/2"), host=host)
        for number in (1, 2):
            site.add(f"/{number}", bytes(100_000), "application/octet-stream", host=host)
    begun = time.monotonic()
    outcome = crawl(archive, *(f"http://{host}/" for host in hosts), rate_limit="200 kB", robots=False,
                    wget_args=crawls.through(site.proxy))  # fmt: skip
    seconds = time.monotonic() - begun
    assert outcome.complete and sum(len(crawls.arcs(archive, host)) for host in hosts) == 9
    assert seconds >= 600_000 / 200_000 * 0.8, f"{600 / seconds:.0f} kB a second"


def _slowly(content_type: str, size: int, rate: int, sent: list[int]) -> Answer:
    """So many bytes of a type, at so many a second; `sent` receives what went out."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(200, {"Content-Type": content_type, "Content-Length": str(size)})
        for _ in range(0, size, rate // 10):
            exchange.send(bytes(rate // 10))
            sent.append(rate // 10)
            exchange.wait(0.1)

    return answer
