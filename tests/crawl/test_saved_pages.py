"""Crawls of saved pages: whatever a page or a name server says, nothing at a private address is connected to."""

from __future__ import annotations

import base64
import re
import shlex
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent.crawl import public_proxy
from agent.crawl.job_folder import SavedPage
from agent.crawl.public_proxy import PublicProxy
from agent.crawl.vocabulary import Reason
from agent.jobs import crawljob
from agent.jobs.publishing import JobOutcome
from agent.operations import saving
from tests.support.crawls import crawl, log_lines, publish_as, run_command
from tests.support.readercommand import webarc_bytes
from tests.support.resolving import PUBLIC, Sink, resolving
from tests.support.site import Site, redirect
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import FieldNumber
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Settings
from webarcfs.archive.model.errors import Exit

pytestmark = pytest.mark.crawl


@pytest.fixture
def public() -> Iterator[Site]:
    """A site at an address that counts as public."""
    with Site(address=PUBLIC) as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A server at a private address."""
    with Sink() as running:
        yield running


def save(archive: Archive, url: str, names: Mapping[str, Sequence[str]], **values: Any) -> JobOutcome:
    """Save a page as the agent does."""
    values = {"wait": 0.0, "timeout": 5.0, **values}
    settings = Settings()
    with resolving(names):
        page = SavedPage(url=url, by="Anna", role="archivist", description="for the exhibition")
        definition = saving.define(settings, page, values=values)
        asked = saving.ask(archive, definition)
        assert asked.state is saving.SaveState.BEGUN
        return crawljob.run(
            archive, definition.publication, None, instances=4, folder=archive.jobs / asked.job, by_agent=True
        )


def notes(archive: Archive, done: JobOutcome, url: str) -> tuple[str, ...]:
    """The words of crawl.log on a URL, without Tarântula's."""
    return log_lines(archive, done)[url].notes


def test_a_page_is_saved_with_what_it_needs_and_its_record_says_who_asked(archive: Archive, public: Site) -> None:
    """S-save-2."""
    url = f"http://page.test:{public.port}/a"
    public.add_html("/a", '<img src="/b.png"><a href="/c">c</a>', host=f"page.test:{public.port}")
    public.add("/b.png", b"\x89PNG\r\n\x1a\n", "image/png", host=f"page.test:{public.port}")
    public.add_html("/c", "not asked for", host=f"page.test:{public.port}")
    done = save(archive, url, {"page.test": [PUBLIC]})
    assert done.complete and len(done.tags) == 1
    assert public.count("/b.png", host=f"page.test:{public.port}") == 1
    assert public.count("/c", host=f"page.test:{public.port}") == 0
    record, _ = Catalogue(archive).read(done.job)
    assert record.publication == f"saved-page.test-{public.port}"
    first = record.events[0]
    assert (first.what, first.by, first.text, first.warrant.role) == ("asked", "Anna", url, "archivist")
    assert saving.url_saved_by(archive, done.job) == url


HOSTILE = (
    '<img src="http://127.0.0.1:{port}/img">',
    '<img src="http://localhost:{port}/img">',
    '<img src="http://[::ffff:127.0.0.1]:{port}/img">',
    '<img src="http://2130706433:{port}/img">',
    '<img src="http://0177.0.0.1:{port}/img">',
    '<img src="http://0x7f.1:{port}/img">',
    '<iframe src="http://inner.test:{port}/frame"></iframe>',
    '<link rel="stylesheet" href="http://inner.test:{port}/style.css">',
    '<meta http-equiv="refresh" content="0; url=http://inner.test:{port}/next">',
    '<script src="http://rebound.test:{port}/script.js"></script>',
)


@pytest.mark.parametrize("body", HOSTILE)
def test_nothing_of_a_page_leads_inside(archive: Archive, public: Site, sink: Sink, body: str) -> None:
    url = f"http://page.test:{public.port}/"
    public.add_html("/", body.format(port=sink.port), host=f"page.test:{public.port}")
    names = {"page.test": [PUBLIC], "inner.test": ["127.0.0.1"], "rebound.test": [PUBLIC, "127.0.0.1"]}
    done = save(archive, url, names)
    assert sink.connections == 0
    assert log_lines(archive, done)[url].status == 200
    inside = [line for other, line in log_lines(archive, done).items() if f":{sink.port}/" in other]
    assert inside and all("private-address" in line.notes for line in inside), inside


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC]])
def test_a_name_server_does_not_lead_inside(archive: Archive, sink: Sink, scheme: str, addresses: list[str]) -> None:
    """S-save-3, whether it says so the first or the second time."""
    url = f"{scheme}://rebound.test:{sink.port}/"
    done = save(archive, url, {"rebound.test": addresses})
    assert sink.connections == 0
    assert not done.complete and not done.tags
    assert "private-address" in notes(archive, done, url)


def test_a_redirect_does_not_lead_inside(archive: Archive, public: Site, sink: Sink) -> None:
    host = f"page.test:{public.port}"
    for number, target in enumerate(("127.0.0.1", "rebound.test", "0x7f000001")):
        url = f"http://{host}/{number}"
        public.add_nasty(f"/{number}", redirect(f"http://{target}:{sink.port}/"), host=host)
        done = save(archive, url, {"page.test": [PUBLIC], "rebound.test": [PUBLIC, "127.0.0.1"]})
        assert sink.connections == 0
        assert log_lines(archive, done)[url].status in (301, 302, 307)
        assert not done.complete


def test_a_crawl_of_a_publication_may_be_led_inside_by_its_start_url(archive: Archive, sink: Sink) -> None:
    """As a person says in its settings; and so the sink counts."""
    crawl(archive, f"http://127.0.0.1:{sink.port}/")
    assert sink.connections > 0


def test_the_setting_permits_private_addresses(archive: Archive, sink: Sink) -> None:
    done = save(archive, f"http://127.0.0.1:{sink.port}/", {}, private_addresses=True)
    assert sink.connections > 0 and done.tags


def test_why_a_server_was_not_reached_is_said(archive: Archive, public: Site) -> None:
    """wget knows only that its proxy did not connect."""
    with socket.socket() as reserved:
        reserved.bind((PUBLIC, 0))
        refused = f"http://page.test:{reserved.getsockname()[1]}/"
        done = save(archive, refused, {"page.test": [PUBLIC]})
        assert Reason.CONNECTION_REFUSED in notes(archive, done, refused)
    absent = f"http://absent.test:{public.port}/"
    done = save(archive, absent, {})
    assert "dns" in notes(archive, done, absent)


def test_environment_and_arguments_lead_past_no_proxy(
    archive: Archive, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "rebound.test")
    url = f"http://rebound.test:{sink.port}/"
    done = save(
        archive, url, {"rebound.test": [PUBLIC, "127.0.0.1"]}, wget_args=("--no-proxy", "-e", "no_proxy=rebound.test")
    )
    assert sink.connections == 0 and "private-address" in notes(archive, done, url)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_saves_a_page_and_says_where_it_is(archive: Archive, site: Site) -> None:
    archive.settings.write_text("[crawl]\nwait = 0\ntimeout = 5\nrobots = false\n")
    site.add_html("/a", "saved by a command")
    url = site.url("/a")
    refused = run_command("save", "--archive", archive.root, url)
    assert refused.code == Exit.USAGE and "--private-addresses" in refused.err
    for bad in ("ftp://e.org/", "http://u:p@e.org/", "http://e.org:25/", "http://" + "a" * 9_000):
        assert run_command("save", "--archive", archive.root, bad).code == Exit.USAGE, bad
    assert list(archive.jobs.iterdir()) == []
    done = run_command("save", "--archive", archive.root, url, "--private-addresses", "--description", "why  not")
    assert done.code == 0, done.err
    (way,) = re.findall("^look at it: (.*)$", done.out, re.MULTILINE)
    assert "saved by a command" in _run_as_printed(way)
    (record,) = Catalogue(archive).records(f"saved-127.0.0.1-{site.port}")
    assert record.text(FieldNumber.REMARKS) == "why not" and record.events[0].what == "asked"
    again = run_command("save", "--archive", archive.root, url, "--private-addresses")
    assert again.code == 0 and "saved a moment ago" in again.out and site.count("/a") == 1
    assert f"look at it: {way}\n" in again.out
    gone = run_command("save", "--archive", archive.root, site.url("/no"), "--private-addresses")
    assert gone.code == Exit.INCOMPLETE and "status 404: Not Found" in gone.err


def _run_as_printed(command: str) -> str:
    """What a command of `webarc` prints that a hint has."""
    program, *words = shlex.split(command)
    assert program == "webarc"
    done = webarc_bytes(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_way_to_a_saved_page_is_not_latest(archive: Archive, site: Site) -> None:
    """A saved page is no complete crawl of its host: `latest` is the crawl before, and names what it does not count."""
    archive.settings.write_text("[crawl]\nwait = 0\ntimeout = 5\nrobots = false\n")
    site.add_html("/", "as crawled")
    crawled = crawl(archive, site.url("/"))
    site.add_html("/", "as saved & so on")
    site.add_nasty("/to?a=1&b=2", redirect("/"))
    done = run_command("save", "--archive", archive.root, site.url("/to?a=1&b=2"), "--private-addresses")
    assert done.code == 0, done.err
    (way,) = re.findall("^look at it: (.*)$", done.out, re.MULTILINE)
    assert "as saved" in _run_as_printed(way)
    (tag,) = re.findall(rf"\S+@{re.escape(site.host)}", way)
    latest = webarc_bytes("cat", "latest", site.url("/"), "--archive", archive.root)
    assert b"as crawled" in latest.stdout
    assert latest.stderr.decode() == (
        f"webarc: latest is {crawled.tags[0]}\n"
        f"webarc: a newer snapshot is of no complete crawl, and not counted: {tag}\n"
    )


# -- the proxy itself --------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy() -> Iterator[PublicProxy]:
    running = PublicProxy(CrawlSettings(timeout=2.0))
    yield running
    running.close()


def _ask(proxy: PublicProxy, *lines: str, is_allowed: bool = True) -> bytes:
    parts = urlsplit(proxy.url)
    secret = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    fields = [f"Proxy-Authorization: Basic {secret}"] if is_allowed else []
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as connection:
        connection.sendall("\r\n".join((*lines, *fields, "", "")).encode())
        received = b""
        while piece := connection.recv(4096):
            received += piece
        return received


def test_nobody_else_on_the_machine_gets_through(proxy: PublicProxy, public: Site) -> None:
    public.add_html("/", "hello")
    with resolving({}):
        line = f"GET http://{public.host}/ HTTP/1.1"
        assert _ask(proxy, line, is_allowed=False).startswith(b"HTTP/1.1 407 ")
        assert public.requests == []
        assert b"hello" in _ask(proxy, line, f"Host: {public.host}")


def test_a_request_that_comes_byte_by_byte_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else anybody on the machine could hold all connections, and no wget would get one."""
    monkeypatch.setattr(public_proxy, "_HEAD_SECONDS", 0.2)
    has_ended = threading.Event()
    client, other = socket.socketpair()

    def drip() -> None:
        for _ in range(100):  # ten times as long as a head may take
            if has_ended.wait(0.02):
                return
            other.sendall(b"x")
        other.shutdown(socket.SHUT_WR)

    with client, other:
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(TimeoutError):
                public_proxy._read_head(client)
        finally:
            has_ended.set()
            thread.join()


@pytest.mark.parametrize("port", [22, 25, 6667])
def test_ports_of_other_protocols_are_not_asked(proxy: PublicProxy, port: int) -> None:
    with resolving({}):
        assert _ask(proxy, f"GET http://{PUBLIC}:{port}/ HTTP/1.1") == b""
        assert _ask(proxy, f"CONNECT {PUBLIC}:{port} HTTP/1.1").startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize("line", ["", "GET", "GET / HTTP/1.1", "GET ftp://a.test/ HTTP/1.1", "CONNECT [ HTTP/1.1"])
def test_what_is_no_request_is_refused(proxy: PublicProxy, line: str) -> None:
    assert _ask(proxy, line).startswith(b"HTTP/1.1 400 ")


def test_private_addresses_are_not_connected_to(proxy: PublicProxy, sink: Sink) -> None:
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0177.1", "[::ffff:7f00:1]", "169.254.169.254"):
        assert _ask(proxy, f"GET http://{host}:{sink.port}/ HTTP/1.1") == b""
        assert _ask(proxy, f"CONNECT {host}:{sink.port} HTTP/1.1").startswith(b"HTTP/1.1 502 ")
    assert sink.connections == 0


def test_a_publication_that_a_person_named_is_no_saved_page() -> None:
    assert not publish_as("http://e.org/").is_saved
