"""Reports of what crawls of real sites miss: HTTP as servers speak it, and browsers take it."""

from __future__ import annotations

import gzip
import io
import logging
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import crawls, nasty
from tests.support.messy_sites import FINE, PIXEL, Case, MessyCrawl, check, crawl_cases, crawled, with_head
from tests.support.readercommand import webarc
from tests.support.site import Site, redirect
from tests.support.wire import HTML, Answer, Exchange, head, in_chunks, page
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

#: The page that leads on.
PAGE = "<!doctype html><title>t</title><a href=/ok.html>ok</a>"
RAW = PAGE.encode()
OK = {"/ok.html": FINE}


def _folder() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as packed:
        packed.addfile(tarfile.TarInfo("a"), io.BytesIO())
    return gzip.compress(file.getvalue(), mtime=0)


TGZ = _folder()


def both_lengths(length: int, *pieces: bytes, close: bool = True) -> Answer:
    """Chunks beside a Content-Length; the connection stays open unless it shall `close`."""
    fields = {"Content-Type": "text/html", "Content-Length": str(length), "Transfer-Encoding": "chunked"}
    fields |= {"Connection": "close"} if close else {}
    return (nasty.then_close if close else nasty.raw)(head(200, fields) + b"".join(in_chunks(pieces)))


def coded(coding: str, body: bytes, mime: str = HTML) -> Answer:
    """A body under a Content-Encoding that it has or not."""
    return page(body, mime, headers={"Content-Encoding": coding})


def located(location: bytes) -> Answer:
    """A redirect with these very bytes as its Location."""
    return with_head(b"Location: " + location + b"\r\nContent-Length: 0", b"", b"302 Found")


def refreshing(field: str, text: str = "<title>t</title>") -> Answer:
    """A page with the field Refresh."""
    return page(text, HTML, headers={"Refresh": field})


def only_from(host: str, what: Answer) -> Answer:
    """An answer for those who come from a page of a host; 403 for others."""

    def answer(exchange: Exchange) -> None:
        came_from = exchange.request.headers.get("referer", "")
        (what if came_from.startswith(f"http://{host}/") else page("no", HTML, status=403))(exchange)

    return answer


def _to(target: str, **serves: Answer | str) -> dict[str, Answer | str]:
    return {"/": f"<a href='{target}'>x</a>", **serves}


_PACKED = gzip.compress(RAW, mtime=0)
CASES = (
    # chunks count, whatever Content-Length says
    Case(
        name="cl-and-chunked",
        finding="C",
        serves={"/": both_lengths(len(RAW), RAW), **OK},
        asked=["/ok.html"],
        bodies={"/": RAW},
        words={"/": "bad-length"},
        at_most={"/": 2},
    ),
    *(
        Case(name=name, finding="C", serves={"/": both_lengths(length, *pieces), **OK}, bodies={"/": RAW})
        for name, length, pieces in (
            ("cl-too-small", 10, [RAW]),
            ("cl-too-large", 9999, [RAW]),
            ("cl-of-first-chunk", 20, [RAW[:20], RAW[20:]]),
            ("cl-zero-and-chunked", 0, [RAW]),
        )
    ),
    Case(
        name="cl-and-chunked-many",
        finding="C",
        serves={
            "/": "".join(f"<a href=/{number}>x</a>" for number in range(12)),
            **{f"/{number}": both_lengths(len(RAW), RAW, close=False) for number in range(12)},
            **OK,
        },
        bodies={f"/{number}": RAW for number in range(12)} | {"/ok.html": FINE.encode()},
    ),
    # Location as browsers read it
    *(
        Case(name=name, finding="G", serves=_to("/r", **{"/r": located(location)}), asked=[target])
        for name, location, target in (
            ("loc-latin1", b"/caf\xe9", "/caf%E9"),
            ("loc-utf8", b"/caf\xc3\xa9", "/caf%C3%A9"),
            ("loc-utf8-nbsp", b"/voil\xc3\xa0", "/voil%C3%A0"),
            ("loc-utf8-query", b"/x?q=voil\xc3\xa0", "/x?q=voil%C3%A0"),
            ("loc-mixed", b"/\xe9/\xc3\xa9", "/%E9/%C3%A9"),
            ("loc-space", b"/a b.html", "/a%20b.html"),
            ("loc-backslash", b"\\x\\y", "/x/y"),
            ("loc-relative", b"x/../y", "/y"),
            ("loc-query-only", b"?q=1", "/r?q=1"),
            ("loc-scheme-only", b"http:y", "/y"),
            ("loc-three-slashes", b"///loc-three-slashes.test/y", "/y"),
            ("loc-upper", b"HTTP://LOC-UPPER.TEST:80/y", "/y"),
            ("loc-fragment", b"/y#\xe9", "/y"),
            ("loc-quotes", b'/"<y>"', "/%22%3Cy%3E%22"),
        )
    ),
    # the label of a file, and the coding of a page
    Case(
        name="tgz-coded",
        finding="H",
        serves=_to("/x.tar.gz", **{"/x.tar.gz": coded("x-gzip", TGZ, "application/x-gzip")}),
        bodies={"/x.tar.gz": TGZ},
        words={"/x.tar.gz": "coding:x-gzip"},
    ),
    Case(
        name="tgz-tar",
        finding="H",
        serves=_to("/x.tgz", **{"/x.tgz": coded("gzip", TGZ, "application/x-tar")}),
        bodies={"/x.tgz": TGZ},
    ),
    Case(
        name="dump-coded",
        finding="H",
        serves=_to("/d.sql.gz", **{"/d.sql.gz": coded("gzip", TGZ, "application/octet-stream")}),
        bodies={"/d.sql.gz": TGZ},
    ),
    Case(
        name="svgz-coded",
        finding="H",
        serves=_to("/x.svgz", **{"/x.svgz": coded("gzip", gzip.compress(b"<svg/>"), "image/svg+xml")}),
        bodies={"/x.svgz": b"<svg/>"},
    ),
    Case(
        name="html-gz-coded",
        finding="H",
        serves=_to("/p.html.gz", **{"/p.html.gz": coded("x-gzip", gzip.compress(RAW))}, **OK),
        bodies={"/p.html.gz": RAW},
        asked=["/ok.html"],
    ),
    # what browsers forgive in codings
    *(
        Case(
            name=name,
            finding="I",
            serves={"/": coded(coding, body), **OK},
            asked=["/ok.html"],
            bodies={"/": RAW},
            words={"/": word},
            at_most={"/": 1},
        )
        for name, coding, body, word in (
            ("gzip-trailing", "gzip", _PACKED + b"\r\n", "trailing-bytes"),
            ("gzip-comment", "gzip", _PACKED + b"<!-- cached -->" * 9, "trailing-bytes"),
            ("gzip-no-trailer", "gzip", _PACKED[:-8], "bad-checksum"),
            ("gzip-wrong-crc", "gzip", _PACKED[:-8] + b"\1" * 8, "bad-checksum"),
            ("gzip-not", "gzip", RAW, "not-coded:gzip"),
            ("br-not", "br", RAW, "not-coded:br"),
            ("deflate-trailing", "deflate", zlib.compress(RAW) + b"\r\n", "trailing-bytes"),
        )
    ),
    Case(
        name="deflate-not",
        finding="I",
        serves=_to("/p", **{"/p": coded("deflate", PIXEL, "image/png")}),
        bodies={"/p": PIXEL},
        words={"/p": "not-coded:deflate"},
    ),
    Case(
        name="gzip-cut",
        finding="I",
        serves=_to("/p", **{"/p": coded("gzip", gzip.compress(RAW)[:-20])}),
        words={"/p": "truncated-gzip"},
    ),
    # pages that go on by themselves
    Case(name="refresh-header", finding="M", serves={"/": refreshing("0; url=/ok.html"), **OK}, kept=["/ok.html"]),
    Case(
        name="refresh-slow",
        finding="M",
        serves=_to("/p", **{"/p": refreshing("30;URL='/ok.html'")}, **OK),
        kept=["/ok.html"],
    ),
    Case(name="refresh-latin1", finding="M", serves={"/": refreshing("0;url=/caf\xe9")}, asked=["/caf%E9"]),
    Case(
        name="refresh-image",
        finding="M",
        serves=_to("/p", **{"/p": page(PIXEL, "image/png", headers={"Refresh": "1;/ok.html"})}, **OK),
        kept=["/ok.html"],
    ),
    Case(
        name="refresh-itself",
        finding="M",
        serves={"/": refreshing("5", PAGE), **OK},
        kept=["/ok.html"],
        at_most={"/": 1},
    ),
    Case(
        name="refresh-to-host",
        finding="L",
        serves={
            "/": refreshing("0; url=http://refresh-target.test/a/"),
            "http://refresh-target.test/a/": PAGE,
            "http://refresh-target.test/ok.html": FINE,
        },
        kept=["http://refresh-target.test/ok.html"],
    ),
    Case(
        name="meta-other-host",
        finding="L",
        serves={
            "/": "<meta http-equiv=refresh content='0;url=http://meta-target.test/1'>",
            "http://meta-target.test/1": PAGE,
            "http://meta-target.test/ok.html": FINE,
        },
        kept=["http://meta-target.test/1", "http://meta-target.test/ok.html"],
    ),
    Case(
        name="meta-chain",
        finding="L",
        serves={
            "/": redirect("/a"),
            "/a": "<base href=http://chain-one.test/x/><meta http-equiv=Refresh content='2; y'>",
            "http://chain-one.test/x/y": refreshing("1;http://chain-two.test/"),
            "http://chain-two.test/": PAGE,
        },
        asked=["http://chain-two.test/ok.html"],
    ),
    Case(
        name="meta-late",
        finding="L",
        serves={
            "/": "<meta http-equiv=refresh content='30;url=http://late-target.test/'>",
            "http://late-target.test/": FINE,
        },
        never=["http://late-target.test/"],
    ),
    Case(
        name="meta-noscript",
        finding="L",
        serves={
            "/": "<noscript><meta http-equiv=refresh content='0;url=http://noscript-target.test/'></noscript>",
            "http://noscript-target.test/": FINE,
        },
        never=["http://noscript-target.test/"],
    ),
    Case(
        name="meta-deep",
        finding="L",
        serves=_to(
            "/p",
            **{
                "/p": "<meta http-equiv=refresh content='0;url=http://deep-target.test/'>",
                "http://deep-target.test/": FINE,
            },
        ),
        never=["http://deep-target.test/"],
    ),
    Case(
        name="meta-round",
        finding="L",
        serves={
            "/": "<meta http-equiv=refresh content='0;url=/b'>",
            "/b": "<meta http-equiv=refresh content='0;url=/'>",
        },
        kept=["/b"],
        at_most={"/": 1, "/b": 1},
    ),
    # Referer, passing errors, other successes
    Case(
        name="referer",
        finding="S",
        serves={
            "/": "<a href=/deep/><img src=/i.png>",
            "/deep/": only_from("referer.test", page("<a href=/r>x</a>", HTML)),
            "/i.png": only_from("referer.test", page(PIXEL, "image/png")),
            "/r": redirect("/end"),
            "/end": only_from("referer.test", page(FINE, HTML)),
        },
        kept=["/deep/", "/end"],
        bodies={"/i.png": PIXEL},
    ),
    *(
        Case(
            name=f"error-{status}",
            finding="S",
            serves={"/": PAGE, "/ok.html": nasty.flaky(1, page(FINE, HTML), status)},
            kept=["/ok.html"],
            at_most={"/ok.html": 2},
        )
        for status in (520, 522, 524, 530)
    ),
    Case(
        name="created",
        finding="S",
        serves=_to("/p", **{"/p": page(FINE, HTML, status=201)}),
        words={"/p": "other-status"},
    ),
    Case(
        name="accepted",
        finding="S",
        serves=_to("/p", **{"/p": page(FINE, HTML, status=202)}),
        words={"/p": "other-status"},
    ),
    Case(
        name="partial",
        finding="S",
        serves=_to("/p", **{"/p": page(FINE[:9], HTML, status=206, headers={"Content-Range": "bytes 0-8/99"})}),
        words={"/p": "partial"},
    ),
)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases."""
    with crawled(tmp_path_factory.mktemp("real"), CASES, max_instances=4) as done:
        yield done


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(crawl: MessyCrawl, case: Case) -> None:
    """S-http-1, S-http-2, S-http-3 and S-http-6"""
    check(case, crawl)


def test_a_document_may_take_long_as_long_as_it_comes(archive: Archive) -> None:
    """S-http-5: `timeout` is for what comes no further; `max_document_time` ends what comes for ever."""

    def stall(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900000\r\n\r\n" + b"z" * 30_000)
        exchange.wait(60)

    with Site() as site:
        site.add_nasty("/long", nasty.drip(rate=20_000, body=b"x" * 160_000), "a.test")
        site.add_nasty("/endless", nasty.drip(rate=20_000, body=b"x" * 1_000_000), "b.test")
        site.add_nasty("/stalls", stall, "c.test")
        proxy = crawls.through(site.proxy)
        first = crawls.crawl(archive, "http://a.test/long", "http://c.test/stalls", timeout=4.0, wget_args=proxy)
        second = crawls.crawl(archive, "http://b.test/endless", max_document_time="9 seconds", wget_args=proxy)
    log = {**crawls.log_lines(archive, first), **crawls.log_lines(archive, second)}
    assert (log["http://a.test/long"].status, log["http://a.test/long"].notes) == (200, ("added",))
    assert (log["http://b.test/endless"].status, log["http://b.test/endless"].notes) == (-5004, ("time-limit",))
    assert "timeout" in log["http://c.test/stalls"].notes


def test_resources_of_other_hosts_come_with_the_host_of_their_page(archive: Archive) -> None:
    """S-http-4: hotlinking is forbidden there; the target of a redirect has the Referer of what redirects to it."""
    cases = (
        Case(
            name="www",
            finding="S",
            serves={
                "/": "<img src=http://cdn.test/1.png><img src=http://cdn.test/r>",
                "http://cdn.test/1.png": only_from("www.test", page(PIXEL, "image/png")),
                "http://cdn.test/r": redirect("http://store.test/2.png"),
                "http://store.test/2.png": only_from("www.test", page(PIXEL, "image/png")),
            },
            kept=["http://cdn.test/1.png", "http://store.test/2.png"],
        ),
        Case(
            name="other",
            finding="S",
            serves={
                "/": "<img src=http://cdn.test/3.png>",
                "http://cdn.test/3.png": only_from("other.test", page(PIXEL, "image/png")),
            },
            kept=["http://cdn.test/3.png"],
        ),
    )
    with Site() as site:
        done = crawl_cases(archive, site, cases, hosts=("cdn.test", "store.test"))
        for case in cases:
            check(case, done)
        sent = {request.path: request.headers.get("referer") for request in site.requests if request.host == "www.test"}
    assert sent == {"/robots.txt": None, "/": None}


def test_a_start_url_whose_links_lead_elsewhere_gets_a_warning(
    archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    """A script forwards as well, and nothing can tell that from a page of links. A frame is fetched."""
    cases = (
        Case(
            name="gone",
            finding="L",
            serves={"/": "<frameset><frame src=http://www.new.test/></frameset>", "http://www.new.test/": FINE},
            kept=["http://www.new.test/"],
        ),
        Case(name="links", finding="L", serves={"/": "<a href=http://b.test/>b</a><a href=http://c.test/>c</a>"}),
        Case(name="whole", finding="L", serves={"/": PAGE + "<a href=http://a.test/>a</a>", **OK}),
        Case(name="empty", finding="L", serves={"/": FINE}),
    )
    with Site() as site, caplog.at_level(logging.WARNING):
        done = crawl_cases(archive, site, cases)
    check(cases[0], done)
    lonely = [text for text in caplog.messages if "leads to other" in text or "lead to other" in text]
    assert [text.partition(". If")[0] for text in lonely] == [
        "http://links.test/ gave one page, and its links lead to other hosts: b.test, c.test",
    ]
    assert done.outcome.complete and done.outcome.warnings == ()


def test_a_file_that_is_packed_leaves_as_it_was_sent(archive: Archive, tmp_path: Path) -> None:
    """S-http-2: export gives the bytes that checksums beside the file are of."""
    case = Case(
        name="tgz", finding="H", serves=_to("/x.tar.gz", **{"/x.tar.gz": coded("x-gzip", TGZ, "application/x-gzip")})
    )
    with Site() as site:
        crawl_cases(archive, site, (case,))
    assert webarc("export", "--archive", str(archive.root), str(tmp_path / "out")).returncode == 0
    raw_warc = b"".join(gzip.decompress(file.read_bytes()) for file in tmp_path.rglob("*.warc.gz"))
    assert raw_warc.count(TGZ) == 1


def test_an_unchanged_page_goes_on_as_before(archive: Archive) -> None:
    """S-http-3: the server says 304 for the page of the start URL, and the host that it leads to is crawled again."""

    def start(exchange: Exchange) -> None:
        if exchange.request.headers.get("if-none-match") == '"1"':
            page("", status=304, headers={"ETag": '"1"'})(exchange)
        else:
            page("<meta http-equiv=refresh content='0;url=http://home.test/'>", HTML, headers={"ETag": '"1"'})(exchange)

    with Site() as site:
        site.add_nasty("/", start, "start.test")
        site.add_nasty("/", page(PAGE, HTML), "home.test")
        site.add_nasty("/ok.html", page(FINE, HTML), "home.test")
        for _ in range(2):
            how = {"wget_args": crawls.through(site.proxy), "conditional": True}
            outcome = crawls.crawl(archive, "http://start.test/", **how)
            assert outcome.complete and outcome.warnings == ()
            log = crawls.log_lines(archive, outcome)
            assert {url for url, line in log.items() if line.status in (200, 304)} == {
                "http://start.test/", "http://home.test/", "http://home.test/ok.html"
            }  # fmt: skip
    assert log["http://start.test/"].status == 304
    assert crawls.count(outcome) == (0, 0, 0, 3)
