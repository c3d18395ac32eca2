"""The test site itself: it serves as it says, misbehaves as it says, and leaves nothing behind."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import brotli
import pytest
from lxml import html

from tests.bench.serve import running
from tests.support import nasty, realsites
from tests.support.generated import Generated
from tests.support.nasty_pages import COLLISIONS, collisions, encodings
from tests.support.site import Answer, Everywhere, Site, page, wire_path
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.urls import canonical

pytestmark = pytest.mark.crawl

BODY = nasty.BODY
PACKED = gzip.compress(BODY, mtime=0)
NETWORK, SERVER_ERROR = 4, 8  # wget(1), EXIT STATUS
_MB = 1_000_000


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running_site:
        yield running_site


def wget(*arguments: str, timeout: float = 1) -> subprocess.CompletedProcess[bytes]:
    fixed = ["wget", "--no-config", "--no-verbose", "--tries=1", f"--timeout={timeout}", "-O", "-"]
    return subprocess.run([*fixed, *arguments], capture_output=True, check=False, timeout=240)


def ask(site: Site, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(site.host, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def links_of(body: bytes) -> list[str]:
    return [str(anchor.attrib["href"]) for anchor in html.fromstring(body.decode()).iter("a")]


# A good site


def test_pages_are_served_as_they_were_added(site: Site) -> None:
    url = site.add("/a.txt", "grün", "text/plain", headers={"Last-Modified": "Sat, 21 Nov 2026 12:00:00 GMT"})
    assert url == f"http://127.0.0.1:{site.port}/a.txt"
    status, headers, body = ask(site, "/a.txt")
    assert (status, headers["Content-Type"], body) == (200, "text/plain", "grün".encode())
    assert headers["Last-Modified"] == "Sat, 21 Nov 2026 12:00:00 GMT"
    assert ask(site, "/b.txt")[0] == 404


def test_a_connection_is_kept_and_every_request_logged(site: Site) -> None:
    urls = [site.add_html(f"/{n}?q=ä", str(n)) for n in range(20)]
    assert wget("--header=X-Test: yes", *urls).returncode == 0
    assert [r.path for r in site.requests] == [wire_path(f"/{n}?q=ä") for n in range(20)]
    assert {r.connection_id for r in site.requests} == {1}
    assert site.requests[0].headers["x-test"] == "yes"
    assert site.requests[0].host == site.host
    assert (site.count("/3?q=ä"), site.count("/3"), site.max_open()) == (1, 0, 1)
    site.clear_log()
    assert not site.requests


def test_head_requests_get_no_body(site: Site) -> None:
    site.add("/x", BODY)
    with urllib.request.urlopen(urllib.request.Request(site.url("/x"), method="HEAD")) as answer:
        assert (answer.headers["Content-Length"], answer.read()) == (str(len(BODY)), b"")


def test_a_request_has_the_beginning_of_its_body(site: Site) -> None:
    site.add("/x", b"1")
    connection = http.client.HTTPConnection(site.host)
    bodies = [b"\r\n\r\n" * 50_000, b"short", b""]
    for body in bodies:
        connection.request("POST", "/x", body=body)
        assert connection.getresponse().read() == b"1"
    connection.close()
    assert [request.body for request in site.requests] == [body[: 1 << 16] for body in bodies]


def test_folders_are_served_as_by_a_web_server(site: Site, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/index.html").write_text("index")
    (tmp_path / "ä b%.css").write_bytes(b"x" * _MB)
    site.mount(tmp_path, at="/docs/")
    status, headers, _ = ask(site, "/docs/sub")
    assert (status, headers["Location"]) == (301, site.url("/docs/sub/"))
    assert wget(site.url("/docs/sub")).stdout == b"index"
    status, headers, body = ask(site, "/docs/%C3%A4%20b%25.css")
    assert (status, headers["Content-Type"], body) == (200, "text/css", b"x" * _MB)
    assert headers["Last-Modified"].endswith("GMT")
    for missing in ("/docs/", "/docs/../x", "/docs/sub/x", "/docs/%00", "/docs/sub/index.html/"):
        assert ask(site, missing)[0] == 404, missing


def test_what_is_added_or_gone_lies_over_what_is_mounted(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("file")
    site.mount(tmp_path)
    site.add("/a.html", b"added")
    assert ask(site, "/a.html")[2] == b"added"
    site.gone("/a.html", 410)
    assert ask(site, "/a.html")[0] == 410
    site.back("/a.html")
    site.remove("/a.html")
    assert ask(site, "/a.html")[2] == b"file"
    site.gone("/a.html", 503, times=2)
    assert [ask(site, "/a.html")[0] for _ in range(3)] == [503, 503, 200]


def test_many_hosts_without_dns(site: Site) -> None:
    proxy = ("-e", "use_proxy=on", "-e", f"http_proxy={site.proxy}")
    site.add("/", b"own")
    site.add("/", b"A", host="a.example")
    site.add("/", b"B", host="b.example:8080")
    site.add("/everywhere", b"every")
    assert (
        wget(*proxy, "http://A.example/", "http://b.example:8080/", "http://a.example/everywhere").stdout == b"ABevery"
    )
    assert {(r.host, r.proxied) for r in site.requests} == {("a.example", True), ("b.example:8080", True)}
    assert wget(site.url("/")).stdout == b"own"
    assert ask(site, "/", Host="a.example")[2] == b"A"
    assert wget(*proxy, "http://c.example/").returncode == SERVER_ERROR
    assert (site.max_open("a.example"), site.max_open("c.example"), site.max_open("d.example")) == (1, 1, 0)


def test_connections_open_to_one_host_are_counted(site: Site) -> None:
    for host in ("a.example", "b.example"):
        site.add_nasty("/", nasty.slow(0.3), host)
    arguments = ["wget", "--no-config", "-qO/dev/null", "-e", "use_proxy=on", "-e", f"http_proxy={site.proxy}"]
    crawls = [subprocess.Popen([*arguments, f"http://{host}/"]) for host in ("a.example", "a.example", "b.example")]
    assert [crawl.wait() for crawl in crawls] == [0, 0, 0]
    assert (site.max_open("a.example"), site.max_open("b.example")) == (2, 1)


def test_one_after_the_other_is_never_two_at_once(site: Site) -> None:
    url = site.add_html("/", "x")
    for _ in range(20):
        assert wget(url).returncode == 0
    assert site.max_open() == 1


# A nasty one


#: Behaviour → wget's exit code and what it writes.
SEEN_BY_WGET: dict[str, tuple[Answer, int, bytes]] = {
    "short_body": (nasty.short_body(), NETWORK, BODY[: len(BODY) // 2]),
    "wrong_length": (nasty.wrong_length(), 0, BODY[: len(BODY) // 2]),
    "truncated_gzip": (nasty.truncated_gzip(), 0, PACKED[: len(PACKED) // 2]),
    "false_gzip": (nasty.false_gzip(), 0, BODY),
    "broken_chunking": (nasty.broken_chunking(), 0, BODY),  # wget reads a chunk size of nonsense as 0, the end
    "cut_chunking": (nasty.cut_chunking(), NETWORK, BODY),
    "reset": (nasty.reset(), NETWORK, BODY[: len(BODY) // 2]),
    "reset_before_head": (nasty.reset_before_head(), NETWORK, b""),
    "close_before_head": (nasty.close_before_head(), NETWORK, b""),
    "hang": (nasty.hang(), NETWORK, b""),
    "huge_header": (nasty.huge_header(), NETWORK, b""),
    "slow": (nasty.slow(0.2), 0, BODY),
    "too slow": (nasty.slow(9), NETWORK, b""),
    "drip": (nasty.drip(50_000), 0, BODY),
    "status": (nasty.status(404), SERVER_ERROR, b""),
    "http_204": (nasty.http_204(), 0, b""),
    "flaky": (nasty.flaky(1), SERVER_ERROR, b""),
    "too_many_requests": (nasty.too_many_requests(), SERVER_ERROR, b""),
    "redirect_loop": (nasty.redirect_loop(), SERVER_ERROR, b""),
    "chunked": (nasty.chunked(), 0, BODY),
    "no_content_length": (nasty.no_content_length(), 0, BODY),
    "no_content_length of HTTP/1.1": (nasty.no_content_length(version="HTTP/1.1"), 0, BODY),
    "empty": (nasty.empty(), 0, b""),
    "gzip_body": (nasty.gzip_body(), 0, PACKED),
    "brotli_body": (nasty.brotli_body(), 0, brotli.compress(BODY)),
    "set_cookie": (nasty.set_cookie(), 0, BODY),
}


@pytest.mark.large
@pytest.mark.parametrize("name", SEEN_BY_WGET)
def test_how_wget_sees_it(site: Site, name: str) -> None:
    answer, code, body = SEEN_BY_WGET[name]
    result = wget(site.add_nasty("/x", answer))
    assert (result.returncode, len(result.stdout)) == (code, len(body)), result.stderr
    assert result.stdout == body


@pytest.mark.parametrize("refusal", [nasty.flaky(2), nasty.too_many_requests(times=2)])
def test_a_refusal_that_ends(site: Site, refusal: Answer) -> None:
    site.add_nasty("/x", refusal)
    answers = [ask(site, "/x") for _ in range(4)]
    assert [a[2] == BODY for a in answers] == [False, False, True, True]


def test_a_refusal_says_when_to_come_back(site: Site) -> None:
    site.add_nasty("/x", nasty.too_many_requests(7))
    status, headers, _ = ask(site, "/x")
    assert (status, headers["Retry-After"]) == (429, "7")


def test_traps_never_end(site: Site) -> None:
    site.mount(Everywhere(nasty.redirect_forever()), at="/forever")
    site.mount(Everywhere(nasty.trap()), at="/trap")
    assert wget(site.url("/forever/"), "--max-redirect=30").returncode == SERVER_ERROR
    assert len({r.path for r in site.requests}) == 31
    assert b'href="/trap/1/2/1/"' in ask(site, "/trap/1/2/")[2]


def test_a_cookie_comes_back(site: Site) -> None:
    urls = [site.add_nasty("/", nasty.set_cookie("a=1")), site.add_html("/x", "x")]
    assert wget(*urls).returncode == 0
    assert site.requests[1].headers["cookie"] == "a=1"


def test_an_endless_body_ends_with_its_reader(site: Site) -> None:
    site.add_nasty("/x", nasty.endless())
    connection = http.client.HTTPConnection(site.host)
    connection.request("GET", "/x")
    assert len(connection.getresponse().read(5 * _MB)) == 5 * _MB
    connection.close()


@pytest.mark.large
def test_a_big_body_is_fast_and_the_same_every_time(site: Site) -> None:
    size = 300 * _MB + 17
    url = site.add_nasty("/x", nasty.big_body(size))
    digest = hashlib.sha256()
    with urllib.request.urlopen(url) as answer:
        while data := answer.read(1 << 20):
            digest.update(data)
    assert digest.hexdigest() == nasty.big_sha256(size)
    assert nasty.big_sha256(_MB, seed=1) != nasty.big_sha256(_MB)


@pytest.mark.parametrize(
    "answer", [nasty.hang, lambda: nasty.drip(1), nasty.endless, lambda: nasty.big_body(10**12), lambda: page("idle")]
)
def test_nothing_is_left_of_a_site(answer: Callable[[], Answer]) -> None:
    before = {*threading.enumerate()}  # threads of earlier tests may end meanwhile
    with Site() as site:
        site.add_nasty("/", answer())
        connection = http.client.HTTPConnection(site.host)
        connection.request("GET", "/")
        time.sleep(0.1)
    assert {*threading.enumerate()} <= before
    connection.close()


def test_a_fault_in_an_answer_fails_the_test() -> None:
    with pytest.raises(ZeroDivisionError), Site() as site:
        site.add_nasty("/", lambda exchange: exchange.send(b"%d" % (1 // 0)))
        with pytest.raises(http.client.RemoteDisconnected):
            ask(site, "/")


# Pages made for trouble


def test_collisions_are_different_urls_and_different_arcs(site: Site) -> None:
    bodies = collisions(site)
    assert len(bodies) == len(COLLISIONS) + 1 == len(set(bodies.values()))
    assert all(canonical(site.url(path)) == site.url(path) for path in bodies)
    assert len({arc_path(site.url(path)) for path in bodies}) == len(bodies)


def test_collisions_are_served_to_wget_by_the_links_of_their_index(site: Site) -> None:
    bodies = collisions(site)
    links = links_of(ask(site, "/")[2])
    assert [wire_path(link) for link in links] == list(bodies)[:-1]
    result = wget(*map(site.url, links))
    assert result.returncode == 0, result.stderr
    assert result.stdout == b"".join(list(bodies.values())[:-1])


def test_pages_of_all_encodings_are_linked_and_served(site: Site) -> None:
    titles = encodings(site)
    links = links_of(ask(site, "/enc/")[2])
    assert {*links, "/enc/"} == set(titles)
    assert all(ask(site, link)[0] == 200 for link in links)
    assert max(map(len, titles.values())) == 1000
    assert all(title == " ".join(title.split()) and title.isprintable() for title in titles.values())


def test_pages_declare_what_their_names_say(site: Site) -> None:
    titles = encodings(site)
    for name, codec in (("euc-jp", "euc_jp"), ("utf-16be-bom", "utf-16"), ("windows-1252", "cp1252")):
        body = ask(site, f"/enc/{name}.html")[2].decode(codec)
        assert f"<title>{titles[f'/enc/{name}.html']}</title>" in body


@pytest.mark.large
@pytest.mark.parametrize("real", realsites.ALL, ids=lambda real: real.package)
def test_real_sites_are_whole(real: realsites.RealSite) -> None:
    if not real.is_installed:
        pytest.skip(real.missing)
    files = real.files()
    assert len(files) > 1000
    assert {start.lstrip("/") for start in real.starts} <= set(files)


# For benchmarks


def test_a_generated_site_is_linked_within_depth_5() -> None:
    made = Generated(3000)
    depth, queue = {0: 0}, [0]
    for number in queue:
        new = [n for n in dict.fromkeys(made.links(number)) if n not in depth]
        depth |= dict.fromkeys(new, depth[number] + 1)
        queue += new
    assert len(depth) == 3000
    assert max(depth.values()) <= 5


def test_an_edition_changes_one_page_in_a_hundred() -> None:
    first, second, much_later = Generated(500, 1), Generated(500, 2), Generated(500, 102)
    assert [n for n in range(500) if first.body(n) != second.body(n)] == [2, 102, 202, 302, 402]
    assert all(second.body(n) != much_later.body(n) for n in range(500))


@pytest.mark.large
def test_the_command_serves_and_ends(tmp_path: Path) -> None:
    (tmp_path / "a.example").mkdir()
    (tmp_path / "a.example/index.html").write_text("A")
    with running("--host-header", str(tmp_path)) as port:
        proxy = ("-e", "use_proxy=on", "-e", f"http_proxy=127.0.0.1:{port}")
        assert wget(*proxy, "http://a.example/").stdout == b"A"
        assert wget(*proxy, "http://b.example/").returncode == SERVER_ERROR
    with running("--generate", "100", "--processes", "1") as port:
        paths = Generated(100).paths()
        result = wget(*(f"http://127.0.0.1:{port}{path}" for path in paths))
    assert result.returncode == 0
    assert result.stdout.startswith(b"".join(map(Generated(100).body, range(100))))
