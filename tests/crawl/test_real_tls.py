"""Reports of what crawls of real sites miss: servers whose certificate is not valid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.support import crawls
from tests.support.crawls import secret_file
from tests.support.readercommand import webarc
from tests.support.rooms import served
from tests.support.secure import Authority, SecureHosts
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import FieldNumber
from webarcfs.archive.config import directory
from webarcfs.archive.config import settings as config
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import ServerSettings
from webarcfs.archive.model.errors import CrawlFailed, SettingsError

pytestmark = pytest.mark.crawl

HTML = b"<html><title>t</title><a href=/b>b</a></html>"


def answer(body: bytes = HTML, fields: str = "", status: str = "200 OK") -> bytes:
    """A whole response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Servers:
    """Hosts with certificates of all kinds, and what they were asked for."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        other = Authority(folder, "other")
        issue = self.authority.issue
        self.own = {
            "fine.test": issue("fine.test"),
            "expired.test": issue("expired.test", years=(2020, 2021)),
            "early.test": issue("early.test", years=(2040, 2041)),
            "host.test": issue("host.test", names="other.test"),
            "issuer.test": other.issue("issuer.test"),
            "both.test": other.issue("both.test", years=(2020, 2021)),
            "certificate.test": None,
        }
        self.asked: list[tuple[str, str]] = []
        self.tell: Callable[[str, str], bytes] = lambda *_: answer()
        self.hosts = SecureHosts(folder, self._told, self.own)

    def _told(self, host: str, path: str) -> bytes:
        self.asked.append((host, path))
        return answer(b"", status="404 Not Found") if path == "/robots.txt" else self.tell(host, path)

    def crawl(self, archive: Archive, *urls: str, **settings: Any) -> dict[str, crawls.Line]:
        """Crawl, and return the lines of crawl.log."""
        how = {"ca": str(self.authority.file), "max_instances": 8, **settings}
        through = ("-e", "use_proxy=on", "-e", f"https_proxy={self.hosts.proxy}", *how.pop("wget_args", ()))
        outcome = crawls.crawl(archive, *urls, wget_args=through, **how)
        return dict(crawls.log_lines(archive, outcome))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Servers:
    return Servers(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def running(made: Servers) -> Iterator[Servers]:
    with made.hosts:
        yield made


@pytest.fixture
def servers(running: Servers) -> Servers:
    running.asked.clear()
    running.tell = lambda *_: answer()
    return running


WORDS = {
    "expired": {"tls:expired"},
    "early": {"tls:expired"},
    "host": {"tls:host"},
    "issuer": {"tls:issuer"},
    "both": {"tls:expired", "tls:issuer"},
    "certificate": {"tls:handshake"},
}
BAD = [f"https://{name}.test/" for name in WORDS]


def test_each_fault_has_its_word(archive: Archive, servers: Servers) -> None:
    log = servers.crawl(archive, "https://fine.test/", *BAD, robots=False)
    assert {url: {note for note in log[url].notes if note.startswith("tls")} for url in BAD} == {
        f"https://{name}.test/": words for name, words in WORDS.items()
    }
    assert log["https://fine.test/"].status == 200
    assert {host for host, _ in servers.asked} == {"fine.test"}, "nothing was sent to the others"


def test_any_certificate_will_do(archive: Archive, servers: Servers) -> None:
    """What was wrong stands with each capture, also of those that came over the same connection."""
    servers.crawl(archive, "https://fine.test/", *BAD[:-1], certificates="any")
    for name, words in WORDS.items():
        if name != "certificate":
            wanted = " ".join(sorted(word.removeprefix("tls:") for word in words))
            for arc in ("b", next(arc for arc in crawls.arcs(archive, f"{name}.test") if arc != "b")):
                assert crawls.meta(archive, f"{name}.test", arc).certificate == wanted, (name, arc)
    assert {crawls.meta(archive, "fine.test", arc).certificate for arc in crawls.arcs(archive, "fine.test")} == {""}


@pytest.mark.parametrize("target", ["https://127.0.0.1/secret", "https://[::1]/secret", "http://169.254.169.254/x"])
def test_any_certificate_leads_no_start_url_inside(archive: Archive, servers: Servers, target: str) -> None:
    """Whoever is not checked may say where its page is, and that is in the network of the crawler."""
    moved = answer(b"", f"Location: {target}\r\n", "302 Found")
    servers.tell = lambda host, path: moved if (host, path) == ("expired.test", "/") else answer(b"<p>x")
    log = servers.crawl(archive, BAD[0], certificates="any", hosts=["*"], wget_args=NO_HTTP)
    assert "private-address" in log[target].notes and log[target].status < 0
    assert {host for host, _ in servers.asked} == {"expired.test"}


def test_any_certificate_of_one_host(archive: Archive, servers: Servers) -> None:
    own = ServerSettings(host="exp*.test", certificates="any")
    log = servers.crawl(archive, *BAD[:3], server=[own])
    assert log[BAD[0]].status == 200 and "tls:expired" in log[BAD[0]].notes
    assert log[BAD[2]].status < 0

    log = servers.crawl(
        archive, *BAD[:1], certificates="any", server=[ServerSettings(host="exp*", certificates="check")]
    )
    assert log[BAD[0]].status < 0


def test_redirects_say_it_too(archive: Archive, servers: Servers) -> None:
    servers.tell = lambda _, path: answer(b"", "Location: /x\r\n", "302 Found") if path == "/" else answer(b"<p>x")
    log = servers.crawl(archive, BAD[0], certificates="any")
    assert "tls:expired" in log[BAD[0]].notes and log["https://expired.test/x"].status == 200


def test_an_authority_that_cannot_be_read(archive: Archive, servers: Servers) -> None:
    with pytest.raises(CrawlFailed, match=r"/nowhere[.]pem cannot be read"):
        servers.crawl(archive, "https://fine.test/", ca="/nowhere.pem")
    with pytest.raises(SettingsError, match="absolute"):
        config.override(config.CrawlSettings(), {"ca": "own.pem"}, "test")


SECURE = "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"


def hsts(fields: str = SECURE) -> Callable[[str, str], bytes]:
    """A home page with links by http, and other pages without."""
    links = b"<a href=http://fine.test/a>a</a><a href=http://fine.test:81/p>p</a><a href=http://w.fine.test/>w</a>"
    return lambda _, path: answer(links, fields) if path == "/" else answer(b"<p>x")


#: Nothing answers by http here, quickly.
NO_HTTP = ("-e", "http_proxy=http://127.0.0.1:9")


def test_a_host_that_asks_for_https_gets_it(archive: Archive, servers: Servers) -> None:
    servers.tell = hsts()
    log = servers.crawl(archive, "https://fine.test/", hosts=["*.test", "fine.test:81"], wget_args=NO_HTTP)
    assert log["http://fine.test/a"].status == 307 and "hsts" in log["http://fine.test/a"].notes
    assert log["https://fine.test/a"].status == 200 and log["https://fine.test/a"].path == "LR"
    assert "hsts" in log["http://w.fine.test/"].notes
    assert log["http://fine.test:81/p"].status < 0, "a port is another server"


@pytest.mark.parametrize("field", ["", "Strict-Transport-Security: max-age=0\r\n", "Strict-Transport-Security: x\r\n"])
def test_others_are_asked_by_http(archive: Archive, servers: Servers, field: str) -> None:
    servers.tell = hsts(field)
    log = servers.crawl(archive, "https://fine.test/", wget_args=NO_HTTP)
    assert log["http://fine.test/a"].status < 0


def test_what_is_not_checked_asks_for_nothing(archive: Archive, servers: Servers) -> None:
    servers.tell = lambda _, path: answer(b"<a href=http://expired.test/a>a</a>" if path == "/" else b"x", SECURE)
    log = servers.crawl(archive, "https://expired.test/", certificates="any", wget_args=NO_HTTP)
    assert log["http://expired.test/a"].status < 0


def test_secrets_by_https(archive: Archive, servers: Servers, tmp_path: Path) -> None:
    """A host that gets one must have a valid certificate, whatever `certificates` says; and none goes by http."""
    got: list[bytes] = []
    servers.hosts.heads = got
    secret = secret_file(tmp_path, "me:word", "expired.test", "fine.test")
    log = servers.crawl(archive, BAD[0], BAD[2], "https://fine.test/", certificates="any", login=[secret])
    assert log[BAD[0]].status < 0 and "tls:expired" in log[BAD[0]].notes
    assert log[BAD[2]].status == 200, "another host gets none, and needs none"
    sent = {(b"host: fine.test" in head.lower(), b"authorization: basic" in head.lower()) for head in got}
    assert sent == {(True, True), (False, False)}


def test_what_was_not_checked_is_shown(archive: Archive, servers: Servers, tmp_path: Path) -> None:
    """S-certificate-1: in the frame, `log`, report, record and exports, for readers as well; not for a valid one."""
    servers.crawl(archive, "https://fine.test/", *BAD[:-1], certificates="any")
    wanted = {"both.test": "expired issuer", "host.test": "host", "fine.test": ""}
    record = next(Catalogue(archive).records())
    assert "--no-check-certificate" in record.text(FieldNumber.COMMAND_LINE)
    remarks = record.for_readers().text(FieldNumber.CAPTURE_REMARKS)
    assert "both.test (expired issuer) 2" in remarks and "host.test (host) 2" in remarks and "fine" not in remarks
    assert remarks in crawls.run_command("report", "--archive", archive.root, record.job_name).out
    for option in ((), ("--as-reader",)):
        found = webarc("query", "--archive", str(archive.root), *option, "--json", "certificate <> ''").stdout
        rows = {row["domain"]: row["certificate"] for row in json.loads(found)}
        assert {host: rows.get(host, "") for host in wanted} == wanted and all(rows.values())
    with served(archive) as room:
        for host, words in wanted.items():
            url = f"https://{host}/"
            log = webarc("log", "--archive", str(archive.root), "--as-reader", url)
            assert (f"(certificate: {words})" in log.stdout) == bool(words) and log.returncode == 0
            rows = webarc("log", "--archive", str(archive.root), "--json", url).stdout.splitlines()
            assert json.loads(rows[0])["certificate"] == words
            frame = room.get(f"/web/2100/{url}", {"Accept-Language": "en"})
            frame = room.get(frame.headers["location"]) if frame.status in (302, 307) else frame
            assert ('class="unchecked"' in frame.text) == bool(words), frame.text[:500]
            assert ("nobody who is trusted issued it." in frame.text) == ("issuer" in words)
    for option in ((), ("--as-reader",)):
        out = tmp_path / f"out{len(option)}.warc.gz"
        assert webarc("export", "--archive", str(archive.root), *option, str(out)).returncode == 0
        with out.open("rb") as file:
            fields = {
                record.rec_headers["WARC-Target-URI"]: record.rec_headers.get_header("Webarcfs-Certificate") or ""
                for record in ArchiveIterator(file)
                if record.rec_type == "response"
            }
        assert {host: fields[f"https://{host}/"] for host in wanted} == wanted
    copy = directory.create(tmp_path / "copy")
    assert crawls.run_command("import", "--archive", copy.root, out).code == 0
    for host, words in wanted.items():
        row = webarc("log", "--archive", str(copy.root), "--json", f"https://{host}/").stdout
        assert json.loads(row)["certificate"] == words
