"""What commands say to somebody who has read little: last lines, lists and reports name what helps."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.crawl.disposition import lines_on_hosts
from agent.crawl.vocabulary import cause_among
from tests.support import crawls
from tests.support.crawls import Done, run_command
from tests.support.secure import Authority, SecureHosts
from tests.support.site import Site, redirect
from tests.support.wire import Exchange, page
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit

archive = crawls.archive
pytestmark = pytest.mark.crawl


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def _configure(archive: Archive, site: Site, **more: Any) -> None:
    lines = {"name": "p", "urls": [site.url("/")], "wait": 0, "sitemaps": False, **more}
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in lines.items())
    archive.settings.write_text(f"[[publication]]\n{text}\n")


def _run(archive: Archive, *words: str | Path) -> Done:
    return run_command(*words, "--archive", archive.root, timeout=120)


# -- releases ----------------------------------------------------------------------------------------------------------


def test_a_crawl_that_waits_for_its_release_says_so_with_the_command(archive: Archive, site: Site) -> None:
    site.add_html("/", "start")
    _configure(archive, site, release="by-hand")
    done = _run(archive, "crawl", "--publication", "p", "--private-addresses")
    assert done.code == 0, done.err
    (command,) = (line.partition("; next: ")[2] for line in done.err.splitlines() if "until it is released" in line)
    listed = _run(archive, "record", "list").out
    assert "counted, not released" in listed and "`webarc-agent record release RECORD`" in listed
    assert _run(archive, *command.split()[1:]).code == 0
    assert "not released" not in _run(archive, "record", "list").out


def test_a_crawl_that_readers_see_says_nothing_of_a_release(archive: Archive, site: Site) -> None:
    site.add_html("/", "start")
    _configure(archive, site)
    done = _run(archive, "crawl", "--publication", "p", "--private-addresses")
    assert done.code == 0 and "released" not in done.err
    assert "released" not in _run(archive, "record", "list").out


def test_a_publication_that_is_added_says_when_it_is_crawled_and_that_readers_wait(
    archive: Archive, site: Site
) -> None:
    site.add_html("/", "start")
    secret = archive.root.parent / "cookies"
    secret.write_text("consent=yes\n")
    secret.chmod(0o600)
    words = ("publication", "add", "p", site.url("/"), "--set", "wait=0", "--set", "interval=1 week")
    cookies = ("--set", f'cookies=[{{hosts=["{site.url("")}"], file="{secret}"}}]')
    tried = _run(archive, *words, *cookies, "--try").out
    assert "a running agent would crawl it every week" in tried and "once somebody releases it" in tried
    assert "nothing is changed until the command is run without --try" in tried and "publication retire" not in tried
    out = _run(archive, *words, *cookies).out
    assert "a running agent crawls it every week" in out and "once somebody releases it" in out
    assert "`webarc-agent publication retire p` ends that" in out and "--try" not in out
    out = _run(archive, *(word.replace("p", "q", 1) if word == "p" else word for word in words)).out
    assert "crawls it every week" in out and "releases it" not in out


# -- reasons -----------------------------------------------------------------------------------------------------------


def test_an_expired_certificate_is_named_with_what_takes_it(archive: Archive, site: Site, tmp_path: Path) -> None:
    """The words name the certificate, and not that its server was given up for it."""
    authority = Authority(tmp_path)
    certificates = {"old.test": authority.issue("old.test", years=(2019, 2020))}
    with SecureHosts(tmp_path, _empty_page, certificates) as hosts:
        through = f"--wget-args=--execute=https_proxy={hosts.proxy}"
        options = ("--wait", "0", "--private-addresses", "--no-sitemaps", through, "--ca", str(authority.file))
        done = _run(archive, "crawl", "https://old.test/", *options)
        assert done.code == Exit.INCOMPLETE, done.err
        assert "certificate not valid (tls:expired): old.test" in done.err
        assert "not archived: 1: tls:expired 1" in done.err and "\nserver" not in done.err
        assert "crawl again with it" in done.err and "--missing" not in done.err, "it published nothing"
        told = _run(archive, "report", "--url", "https://old.test/").out
        assert "tls:expired" in told and "crawl again with --certificates any" in told
        site.add_html("/", "<a href='https://old.test/'>a</a>")
        done = _run(archive, "crawl", site.url("/"), "https://old.test/", *options)
        (job,) = (path.name for path in archive.reports.iterdir() if site.host.partition(":")[0] in path.name)
        (command,) = re.findall("`webarc-agent (crawl --missing .* --certificates any --archive .*)`", done.err)
        assert "asks again for what failed" not in done.err, "that can only fail once more"
        told = _run(archive, "report", job, "--url", "https://old.test/").out
        assert "--certificates any --archive" in told and "` asks for it again" in told
        done = run_command(*command.split(), timeout=120)
        assert done.code == 0 and "1 added" in done.err, done.err


def _empty_page(_host: str, path: str) -> bytes:
    status = "404 Not Found" if path == "/robots.txt" else "200 OK"
    return f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n".encode()


def test_the_word_for_why_is_the_cause() -> None:
    assert cause_among(["server-down", "dns"]) == "dns" and cause_among(["server-down"]) == "server-down"
    assert not cause_among([]) and cause_among(["busy", "server-down"]) == "busy"
    ends = {"a": "server down: dns", "b": "server down: dns", "c": "links not read: http://c/x", "d": "left out"}
    assert lines_on_hosts(ends) == ["server down (dns): a, b", "links not read: c", "left out: d"]


# -- counts ------------------------------------------------------------------------------------------------------------


def test_a_crawl_and_its_report_count_the_same_before_and_after_a_patch(archive: Archive, site: Site) -> None:
    """S-patch-3: what was not asked for stands apart from what failed, and the patch changes what it got alone."""
    links = ("a", "b", "gone", "big", "closed", "moved")
    site.add_html("/", "".join(f"<a href='/{path}'>x</a>" for path in links) + "<a href='http://c.test/'>c</a>")
    site.add_html("/a", "a")
    site.gone("/gone")
    site.gone("/b", 500)
    site.add("/big", b"x" * 200_000, "application/pdf")
    site.add("/robots.txt", "User-agent: *\nDisallow: /closed", "text/plain")
    site.add_nasty("/moved", redirect("http://elsewhere.test/there"))
    _configure(archive, site, max_file_size="100 kB")
    done = _run(archive, "crawl", "--publication", "p", "--private-addresses")
    failed = "not archived: 3: status 404 1, status 500 1, too-big 1"
    apart = "not asked for: 1 by robots; led to hosts outside of this crawl: 1"
    assert failed in done.err and apart in done.err, done.err
    out = _run(archive, "report", "p").out
    assert failed in out and apart in out
    told = _run(archive, "report", "p", "--url", site.url("/moved")).out
    assert "it redirects to http://elsewhere.test/there" in told
    site.add_html("/b", "b")
    done = _run(archive, "crawl", "--missing", "p", "--private-addresses")
    assert done.code == 0, done.err
    assert "such as --word robots: robots 1, status 404 1, too-big 1" in done.err
    out = _run(archive, "report", "p").out
    assert "not archived: 2: status 404 1, too-big 1" in out and apart in out and "patched by" in out
    tables = json.loads(_run(archive, "report", "p", "--json").out)
    counts = {row["key"]: row["urls"] for row in tables["tables"] if row["table"] in ("left_out", "statuses")}
    assert counts["status 404"] == 1 and "500" not in counts and "status 500" not in counts
    assert [end["failed"] for end in tables["summary"]["hosts"] if end["role"] == "page"] == [1], "what is too big"
    told = _run(archive, "report", "p", "--url", site.url("/b")).out
    assert f"{site.url('/b')} is archived" in told and f"found by a link of {site.url('/')}" in told
    done = _run(archive, "crawl", "--missing", "p", "--word", "host")
    assert done.code == 0 and "nothing of that is missing" in done.out


# -- one URL ----------------------------------------------------------------------------------------------------------


def test_a_url_is_told_of_by_the_crawl_that_asked_for_it(archive: Archive, site: Site, tmp_path: Path) -> None:
    """A later crawl that saw a link to it, and went no further, knows less; its host means its site, not a list."""
    links = ("gone", "broken", "closed", "photos")
    site.add_html("/", "".join(f"<a href='/{path}'>x</a>" for path in links))
    site.add_html("/photos", "<link rel=stylesheet href=/s.css><img src=/1.png><img src=/none.png>")
    site.add("/s.css", "body { background: url(/2.png) }", "text/css")
    for path in ("/1.png", "/2.png"):
        site.add(path, b"\x89PNG", "image/png")
    site.gone("/gone")
    site.gone("/broken", 500)
    site.add("/robots.txt", "User-agent: *\nDisallow: /closed", "text/plain")
    site.add_html("/unlinked", "alone")
    options = ("--wait", "0", "--private-addresses", "--no-sitemaps")
    assert _run(archive, "crawl", site.url("/"), *options).code == Exit.INCOMPLETE
    (whole,) = (folder.name for folder in archive.reports.iterdir())
    file = tmp_path / "list.txt"
    file.write_text(site.url("/"))
    assert _run(archive, "crawl", "--list", file, *options).code == 0

    def told(path: str, *named: str, code: int = 0) -> str:
        done = _run(archive, "report", *named, "--url", site.url(path))
        assert done.code == code, done.err
        return done.out

    for named in ((), (site.host,)):
        for path, word in (("/closed", "robots"), ("/gone", "status 404"), ("/broken", "status 500")):
            out = told(path, *named)
            first, _, rest = out.partition("did not ask for it: ")
            assert word in first and "depth" not in first and f"by the crawl {whole}" in first
            assert rest.startswith("depth: ") is not named, "the newer crawl, where no crawl is named"
    out = told("/photos")
    assert "3 archived, 1 missing" in out and f"    {site.url('/none.png')}: status 404" in out
    needs = json.loads(_run(archive, "report", "--json", "--url", site.url("/photos")).out)["needs"]
    assert needs == {"resources": 4, "missing": [[site.url("/none.png"), "status 404"]]}
    assert _run(archive, "report", site.host).out.startswith(f"{whole}: complete but for what failed, ")
    unseen = told("/unlinked", code=1)
    (command,) = re.findall("`webarc-agent (crawl --page .*)`", unseen)
    done = _run(archive, "crawl", "--missing", whole, "--url", site.url("/unlinked"), site.url("/unlinked"))
    assert done.code == Exit.USAGE and "choose among what is missing" in done.err
    done = _run(archive, "crawl", "--missing", whole, "--url", site.url("/unlinked"))
    assert done.code == 0 and "never saw" in done.out
    assert run_command(*command.split(), *options, timeout=120).code == 0, "it names the archive itself"
    assert f"{site.url('/unlinked')} is archived" in told("/unlinked")
    assert "is archived" in told("/unlinked", site.host)
    assert _run(archive, "report", site.host).out.startswith(whole)
    for folder in archive.reports.glob("*unlinked*"):
        shutil.rmtree(folder)
    assert "the archive has versions of it from other crawls, the newest of 2" in told("/unlinked", code=1)
    archive.database.write_bytes(b"no database")
    done = _run(archive, "report", "--url", site.url("/unlinked"))
    assert done.code == Exit.USAGE and "whether another crawl has it is not known" in done.err


def test_secrets_that_no_start_url_gets_are_told(archive: Archive, site: Site) -> None:
    """S-secret-1: what is given for a bare host goes by https alone."""
    site.add_html("/", "start")
    secret = crawls.secret_file(archive.root.parent, "consent=yes\n", site.host)
    _configure(archive, site, cookies=[{"hosts": [site.host], "file": secret.file}], private_addresses=True)
    text = archive.settings.read_text().replace('[{"hosts": ', "[{hosts = ").replace(', "file": ', ", file = ")
    archive.settings.write_text(text)
    kept_back = f"{site.url('/')} is asked without the secrets of {site.host}"
    assert kept_back in _run(archive, "publication", "try", "p").out
    assert kept_back in _run(archive, "crawl", "--publication", "p").err
    archive.settings.write_text(text.replace(f'["{site.host}"]', f'["http://{site.host}"]'))
    assert "is asked without" not in _run(archive, "publication", "try", "p").out
    assert "is asked without" not in _run(archive, "crawl", "--publication", "p").err


def test_cookies_of_a_file_open_a_wall_by_the_command_line_alone(archive: Archive, site: Site) -> None:
    """S-secret-1: they go to the hosts of the start URLs, a person releases the crawl, and nothing has their values."""
    other = "http://other.test"

    def wall(exchange: Exchange) -> None:
        is_open = b"privacy=accepted" in exchange.request.head
        page(f"<p>the news<img src='{other}/1.png'>" if is_open else "<p>do you agree?")(exchange)

    site.add_nasty("/", wall)
    site.add_html("/1.png", "picture", host="other.test")
    secret = Path(crawls.secret_file(archive.root.parent, "privacy=accepted\n", mode=0o644).file)
    options = ("--cookies", secret, "--wait", "0", "--private-addresses", "--no-sitemaps")
    through = [f"--wget-args={word}" for word in crawls.through(site.proxy)]
    refused = _run(archive, "crawl", site.url("/"), *options)
    assert refused.code != 0 and "chmod 600" in refused.err
    assert list(archive.jobs.iterdir()) == [], "there is no job that could go on without them"
    secret.chmod(0o600)
    done = _run(archive, "crawl", site.url("/"), *options, *through)
    assert done.code == 0 and "until it is released" in done.err, done.err
    assert b"the news" in crawls.read(archive, site.host, "index.html")
    assert {request.host for request in site.requests if b"privacy" in request.head} == {site.host}
    assert {request.host for request in site.requests} == {site.host, "other.test"}
    for kept in (*archive.reports.rglob("*"), *archive.log.rglob("*")):
        assert not kept.is_file() or b"accepted" not in kept.read_bytes(), kept
    assert "--cookies goes with URLs" in _run(archive, "crawl", "--publication", "p", "--cookies", secret).err


# -- the first command, and lists --------------------------------------------------------------------------------------


def test_init_names_help_that_is_there(tmp_path: Path) -> None:
    done = run_command("init", tmp_path / "new")
    assert done.code == 0 and "(man" not in done.out
    (command,) = re.findall("`webarc-agent (crawl --help)`", done.out)
    assert "--max-file-size" in run_command(*command.split()).out


def test_bookmarks_that_are_no_pages_are_named(archive: Archive, site: Site, tmp_path: Path) -> None:
    site.add_html("/", "start")
    entries = [f"javascript:void({number})" for number in range(9)] + ["place:type=6", site.url("/")]
    file = tmp_path / "bookmarks.html"
    file.write_text("<DL>\n" + "\n".join(f'<DT><A HREF="{entry}">x</A>' for entry in entries))
    done = _run(archive, "crawl", "--list", file, "--wait", "0", "--private-addresses")
    assert done.code == 0, done.err
    assert f"{file}: 10 entries are no pages of the web" in done.err
    assert f"{file}:2: javascript:void(0)" in done.err and "void(5)" not in done.err and "and 5 more" in done.err
