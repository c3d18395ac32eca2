"""How servers fail, and what crawl.log says of it: one clear line each, and no other page is the poorer for it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brotli
import pytest

from agent.crawl.vocabulary import Status
from tests.support import crawls, nasty
from tests.support.crawls import Line, crawl, run_command
from tests.support.site import Answer, Everywhere, Site, page, redirect
from tests.support.wire import nobody_there
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.warc import decoding

pytestmark = pytest.mark.crawl

_TRIES = "tries:3"
_GOOD = {f"/good-{number}": f"<p>Good page {number}.</p>".encode() for number in range(20)}


@dataclass(frozen=True)
class Trouble:
    """A way to fail, and how it ends: status, notes, how often it was asked for."""

    answer: Answer
    status: int
    notes: tuple[str, ...]
    asked: int = 3


_TROUBLES = {
    "/short-body": Trouble(nasty.short_body(), Status.CONNECTION_LOST, ("truncated", _TRIES)),
    "/short-body-empty": Trouble(nasty.short_body(sent=0), Status.CONNECTION_LOST, ("truncated", _TRIES)),
    "/length-beyond-all": Trouble(nasty.wrong_length(declared=10**30), Status.CONNECTION_LOST, ("truncated", _TRIES)),
    "/length-cut": Trouble(nasty.no_length_and_reset("abc"), Status.CONNECTION_LOST, ("reset", "tries:4"), 4),
    "/truncated-gzip": Trouble(nasty.truncated_gzip(), Status.CONNECTION_LOST, ("truncated-gzip", _TRIES)),
    "/broken-chunking": Trouble(nasty.broken_chunking(), Status.CONNECTION_LOST, ("broken-chunking", _TRIES)),
    "/cut-chunking": Trouble(nasty.cut_chunking(), Status.CONNECTION_LOST, ("closed", _TRIES)),
    "/reset": Trouble(nasty.reset(), Status.CONNECTION_LOST, ("reset", _TRIES)),
    "/reset-before-head": Trouble(nasty.reset_before_head(), Status.CONNECTION_LOST, ("reset", _TRIES)),
    "/close-before-head": Trouble(nasty.close_before_head(), Status.CONNECTION_LOST, ("no-answer", _TRIES)),
    "/huge-header": Trouble(nasty.huge_header(), Status.INVALID_RESPONSE, ("bad-head", _TRIES)),
    "/hang": Trouble(nasty.hang(), Status.TIMEOUT, ("timeout", _TRIES)),
    "/drip": Trouble(nasty.drip(rate=2000, body=b"x" * 100_000), Status.TIME_LIMIT, ("time-limit",), 1),
    "/endless": Trouble(nasty.endless(), Status.QUOTA, ("too-big",), 1),
    "/big": Trouble(nasty.big_body(2_000_001), Status.QUOTA, ("too-big",), 1),
    "/204": Trouble(nasty.http_204(), 204, (), 1),
    "/404": Trouble(nasty.status(404), 404, (), 1),
    "/410": Trouble(nasty.status(410), 410, (), 1),
    "/403": Trouble(nasty.status(403), 403, (), 1),
    "/500": Trouble(nasty.status(500), 500, (_TRIES,), 3),
    "/999": Trouble(nasty.status(999), 999, (), 1),
    "/redirect-loop": Trouble(nasty.redirect_loop(), 302, ("redirect-loop",), 1),
    "/redirect-to-404": Trouble(redirect("/nowhere"), 302, (), 1),
    "/redirect-to-mail": Trouble(redirect("mailto:webmaster@example.org"), 302, ("bad-location",), 1),
    "/redirect-nowhere": Trouble(page("gone somewhere", status=301), 301, ("bad-location",), 1),
    "/redirect-away": Trouble(redirect("http://elsewhere.example/"), 302, (), 1),
}
_NEARLY: dict[str, tuple[Answer, bytes | None, str]] = {
    "/flaky": (nasty.flaky(2), nasty.BODY, "tries:3"),
    "/429": (nasty.too_many_requests(retry_after=2, times=1), nasty.BODY, "tries:2"),
    "/false-gzip": (nasty.false_gzip(), nasty.BODY, "not-coded:gzip"),
    "/empty": (nasty.empty(), b"", ""),
    "/wrong-length": (nasty.wrong_length(), nasty.BODY[: len(nasty.BODY) // 2], ""),
    **{
        f"/length-{number}": (nasty.no_length(said), nasty.BODY, "bad-length,tries:2")
        for number, said in enumerate(("abc", "12abc", "", "+5", "1.5e3", "-5", "100, 9999", "5 5"))
    },
    "/length-twice": (nasty.no_length(f"{len(nasty.BODY)}, {len(nasty.BODY)}"), nasty.BODY, ""),
    "/slow": (nasty.slow(0.5), nasty.BODY, ""),
    "/cookie": (nasty.set_cookie(), nasty.BODY, ""),
    "/redirect-with-bad-body": (redirect("/target-1"), None, ""),
}


@pytest.fixture(scope="module")
def all_at_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Archive, dict[str, Line]]]:
    """One crawl of a site on which everything fails that can, and some pages do not."""
    with Site() as site:
        for path, trouble in _TROUBLES.items():
            site.add_nasty(path, trouble.answer)
        for path, (answer, _, _) in _NEARLY.items():
            site.add_nasty(path, answer)
        for path, body in _GOOD.items():
            site.add(path, body)
        site.mount(Everywhere(nasty.redirect_forever()), at="/forever")
        site.add_nasty("/loop-a", redirect("/loop-b"))
        site.add_nasty("/loop-b", redirect("/loop-a"))
        site.add("/target-1", "found by way of a redirect")
        paths = [*_TROUBLES, *_NEARLY, "/forever/", "/loop-a"]
        # A good page before and behind each bad one, so that whatever a bad one breaks, it would show.
        mixed = [path for pair in zip(paths, [*_GOOD] * 3, strict=False) for path in pair]
        site.add_html("/", "".join(f'<a href="{path}">{path}</a>\n' for path in mixed))
        made = directory.create(tmp_path_factory.mktemp("trouble") / "archive")
        outcome = crawl(made, site.url(), timeout=2, max_document_time="8 seconds", max_file_size=2_000_000)
        assert outcome.complete and outcome.warnings == ()
        assert crawls.store(made, site.host).check() == []
        yield site, made, crawls.log_lines(made, outcome)


Crawled = tuple[Site, Archive, dict[str, Line]]


@pytest.mark.parametrize("path", _TROUBLES)
def test_trouble_ends_as_said(all_at_once: Crawled, path: str) -> None:
    site, archive, log = all_at_once
    expected = _TROUBLES[path]
    line = log[site.url(path)]
    assert (line.status, line.notes, site.count(path)) == (expected.status, expected.notes, expected.asked)
    assert path[1:] not in crawls.arcs(archive, site.host)


@pytest.mark.parametrize("path", [path for path, (_, body, _) in _NEARLY.items() if body is not None])
def test_trouble_that_passes(all_at_once: Crawled, path: str) -> None:
    site, archive, log = all_at_once
    _, body, tries = _NEARLY[path]
    assert crawls.read(archive, site.host, path[1:]) == body
    assert log[site.url(path)].status == 200
    assert set(log[site.url(path)].notes) == {"added", *filter(None, tries.split(","))}


def test_trouble_costs_no_other_page(all_at_once: Crawled) -> None:
    site, archive, log = all_at_once
    for path, body in _GOOD.items():
        assert crawls.read(archive, site.host, path[1:]) == body
        assert log[site.url(path)].notes == ("added",)
        assert site.count(path) == 1
    expected = {"index.html", "target-1", *(path[1:] for path in _GOOD)}
    expected |= {path[1:] for path, (_, body, _) in _NEARLY.items() if body is not None}
    assert crawls.arcs(archive, site.host) == expected


def test_redirects_without_end(all_at_once: Crawled) -> None:
    site, _, log = all_at_once
    chain = [line for url, line in log.items() if url.startswith(site.url("/forever/"))]
    assert [line.status for line in chain] == [302] * 21 + [Status.TRAP]
    assert chain[-1].notes == ("trap:redirects",)
    assert log[site.url("/loop-a")].status == log[site.url("/loop-b")].status == 302
    assert log[site.url("/loop-b")].notes == ("redirect-loop",)
    assert (site.count("/loop-a"), site.count("/loop-b")) == (1, 1)


def test_retry_after_is_obeyed(all_at_once: Crawled) -> None:
    site = all_at_once[0]
    first, second = (request.time for request in site.requests if request.path == "/429")
    assert 2 <= second - first < 10


def test_one_connection_at_a_time(all_at_once: Crawled) -> None:
    assert all_at_once[0].max_open() == 1


def test_cookies_come_back(archive: Archive, site: Site) -> None:
    site.add_nasty("/", nasty.set_cookie(body=b'<a href="/a">a</a>'))
    site.add_html("/a", '<a href="/b">b</a>')
    site.add_html("/b", "")
    crawl(archive, site.url())
    sent = {request.path: request.headers.get("cookie") for request in site.requests}
    assert sent == {"/robots.txt": None, "/": None, "/a": "session=1", "/b": "session=1"}


# -- crawls that come to nothing ---------------------------------------------------------------------------------------


def _run(archive: Archive, *arguments: str) -> crawls.Done:
    return run_command("crawl", "--archive", archive.root, "--wait", "0", "--timeout", "5", *arguments)


def _only_log(archive: Archive) -> dict[str, Line]:
    (report,) = archive.reports.iterdir()
    return crawls.log_lines(archive, report.name)


def test_site_down(archive: Archive) -> None:
    with nobody_there() as host:
        done = _run(archive, f"http://{host}/")
    assert done.code == 3
    assert f"server down (connection-refused): {host}" in done.err
    line = _only_log(archive)[f"http://{host}/"]
    assert (line.status, line.notes) == (Status.CONNECT_FAILED, ("server-down", "connection-refused"))
    assert list(archive.domains()) == []


def test_unknown_host(archive: Archive) -> None:
    done = _run(archive, "http://nowhere.invalid/")
    assert done.code == 3
    line = _only_log(archive)["http://nowhere.invalid/"]
    assert (line.status, line.notes) == (Status.DNS, ("server-down", "dns"))
    assert list(archive.domains()) == []


def test_start_page_missing(archive: Archive, site: Site) -> None:
    done = _run(archive, site.url("/missing"))
    assert done.code == 3
    assert f"{site.url('/missing')} gave nothing: 404" in done.err
    assert _only_log(archive)[site.url("/missing")].status == 404
    assert list(archive.domains()) == []


def test_start_page_redirects_in_a_circle(archive: Archive, site: Site) -> None:
    site.add_nasty("/a", redirect("/b"))
    site.add_nasty("/b", redirect("/a"))
    done = _run(archive, site.url("/a"))
    assert done.code == 3
    assert f"{site.url('/a')} gave nothing (by way of {site.url('/b')}): 302, redirect-loop" in done.err


def test_one_start_page_of_two_is_missing(archive: Archive, site: Site) -> None:
    site.add_html("/here", "here")
    done = _run(archive, site.url("/here"), site.url("/missing"))
    assert done.code == 3
    assert crawls.arcs(archive, site.host) == {"here"}
    assert done.out.strip().endswith(f"@{site.host}")


def test_two_start_pages_redirect_to_one(archive: Archive, site: Site) -> None:
    site.add_html("/home", "home")
    site.add_nasty("/", redirect("/home"))
    site.add_nasty("/old", redirect("/home", 301))
    done = _run(archive, site.url("/"), site.url("/old"), site.url("/home"))
    assert (done.code, "gave nothing" in done.err) == (0, False)
    assert crawls.arcs(archive, site.host) == {"home"}
    assert site.count("/home") == 1


def test_redirects_are_followed_whatever_their_body_is(archive: Archive, site: Site) -> None:
    body = page("not zipped", status=302, headers={"Location": "/target", "Content-Encoding": "gzip"})
    site.add_nasty("/", body)
    site.add_html("/target", "here")
    assert crawl(archive, site.url()).complete
    assert crawls.arcs(archive, site.host) == {"target"}


def test_arguments_that_wget_does_not_know(archive: Archive, site: Site) -> None:
    site.add_html("/", "home")
    done = _run(archive, "--wget-args=--no-such-option", site.url())
    assert done.code == 2
    assert "no-such-option" in done.err and len(done.err.splitlines()) <= 3
    assert _run(archive, site.url()).code == 0, "and the next one goes on from there"


def test_archive_in_a_very_deep_folder(archive: Archive, site: Site) -> None:
    deep = archive.root.parent / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    site.add_html("/", "home")
    assert crawl(directory.create(deep / "archive"), site.url()).complete


def test_a_limit_of_size_holds_wherever_temporary_files_go(
    archive: Archive, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """wget heeds TMPDIR more than what it is told: what is on its way would be out of sight, and without a limit."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    site.add_html("/", '<a href="/endless">e</a>')
    site.add_nasty("/endless", nasty.endless())
    outcome = crawl(archive, site.url(), timeout=60, max_file_size=1_000_000)
    assert crawls.log_lines(archive, outcome)[site.url("/endless")].notes == ("too-big",)


# -- bombs -------------------------------------------------------------------------------------------------------------


def test_decompression_bombs(archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_BOMB_SIZE", 1 << 22)
    zeros = bytes(1 << 25)
    site.add("/gzip", gzip.compress(zeros), headers={"Content-Encoding": "gzip"})
    site.add("/br", brotli.compress(zeros, quality=5), headers={"Content-Encoding": "br"})
    site.add("/twice", gzip.compress(gzip.compress(zeros)), headers={"Content-Encoding": "gzip, gzip"})
    site.add("/fine", gzip.compress(zeros[: 1 << 21]), headers={"Content-Encoding": "gzip"})
    site.add_html("/", '<a href="/gzip">1</a><a href="/br">2</a><a href="/twice">3</a><a href="/fine">4</a>')
    log = crawls.log_lines(archive, crawl(archive, site.url()))
    for path in ("/gzip", "/br", "/twice"):
        assert (log[site.url(path)].status, log[site.url(path)].notes) == (Status.QUOTA, ("decompression-bomb",))
    assert crawls.read(archive, site.host, "fine") == zeros[: 1 << 21]
    assert crawls.arcs(archive, site.host) == {"index.html", "fine"}


def test_what_is_no_http_and_what_was_not_asked_for_have_seed3s_codes(archive: Archive, site: Site) -> None:
    """-1 and -6; -3 is in test_parts.py. The rest are those of HTTP, of the scope and of the system."""
    site.add_html("/", '<a href="/huge">h</a><a href="/a">a</a><a href="/b">b</a>')
    site.add_nasty("/huge", nasty.huge_header())
    for path in ("/a", "/b"):
        site.add(path, bytes(3000), "application/octet-stream")
    log = crawls.log_lines(archive, crawls.crawl(archive, site.url(), max_host_documents=3))
    assert log[site.url("/huge")].annotations[0] == "seed3:-1"
    assert log[site.url("/b")].annotations == ("seed3:-6", "max-documents", "depth:1")
