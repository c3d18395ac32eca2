"""Filters decide what is kept: by MIME type, by profile, by whatever a user writes (/Fi-1/ … /Fi-4/)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.jobs.publishing import JobOutcome
from tests.support import crawls
from tests.support.crawls import crawl, run_command
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile

pytestmark = pytest.mark.crawl

_MODULE = '''
"""Filters of a user."""

seen = []

def by_path(path):
    seen.append((path.suffix, path.read_bytes()))
    return b"advert" not in path.read_bytes()

def by_document(document):
    return "advert" not in document.url

def with_settings(document, settings):
    return settings["word"] not in document.url

def broken(document):
    raise RuntimeError("no idea")
'''
_PNG = b"\x89PNG\r\n\x1a\n and more"


@pytest.fixture
def full(site: Site) -> Site:
    """A home page, another page that it alone leads to, an image, a style, a drawing."""
    site.add_html("/", '<img src="/a.png"><img src="/b.svg"><a href="/x.html">x</a><link rel=stylesheet href="/c.css">')
    site.add_html("/x.html", '<a href="/advert.html">y</a>')
    site.add_html("/advert.html", "an advert")
    site.add("/a.png", _PNG, "image/png")
    site.add("/b.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml")
    site.add("/c.css", "p { color: red }", "text/css")
    return site


@pytest.fixture
def user_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module with filters, which can be imported meanwhile."""
    name = f"filters_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(_MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name


def _filtered(archive: Archive, site: Site, outcome: JobOutcome) -> dict[str, str]:
    """Path → the filter that refused it."""
    log = crawls.log_lines(archive, outcome)
    refused = {url: line.notes for url, line in log.items() if "filtered" in line.notes}
    assert all(len(notes) == 2 for notes in refused.values())
    return {url.removeprefix(site.url("")): notes[0] for url, notes in refused.items()}


def test_mime_filter_with_its_file(archive: Archive, full: Site) -> None:
    (archive.filters / "mime.toml").write_text('include = ["text/*", "image/*"]\nexclude = ["image/png"]', "utf-8")
    outcome = crawl(archive, full.url())
    assert outcome.complete and not outcome.warnings
    assert crawls.arcs(archive, full.host) == {"index.html", "x.html", "advert.html", "b.svg", "c.css"}
    assert _filtered(archive, full, outcome) == {"/a.png": "filter:mime"}


def test_profile(archive: Archive, full: Site) -> None:
    outcome = crawl(archive, full.url(), profile=Profile(include=("text/html", "image/*"), exclude=("image/svg+xml",)))
    assert crawls.arcs(archive, full.host) == {"index.html", "x.html", "advert.html", "a.png"}
    assert _filtered(archive, full, outcome) == {"/b.svg": "filter:profile", "/c.css": "filter:profile"}


def test_a_publication_names_its_profile_in_the_settings_file(archive: Archive, full: Site) -> None:
    archive.settings.write_text(
        f"""
[profile.images]
include = ["image/*"]
[profile.pages]
include = ["text/html"]
[[publication]]
name = "p"
urls = ["{full.url()}"]
profile = "pages"
wait = 0
""",
        "utf-8",
    )
    done = run_command("crawl", "--archive", archive.root, "--publication", "p")
    assert done.code == 0, done.err
    assert crawls.arcs(archive, full.host) == {"index.html", "x.html", "advert.html"}


def test_links_of_refused_pages_count(archive: Archive, full: Site) -> None:
    crawl(archive, full.url(), profile=Profile(include=("image/*",)))
    assert crawls.arcs(archive, full.host) == {"a.png", "b.svg"}
    assert full.count("/advert.html") == 1


def test_filters_of_a_user(archive: Archive, full: Site, user_filters: str) -> None:
    outcome = crawl(archive, full.url(), filters=[f"{user_filters}:by_path"])
    assert crawls.arcs(archive, full.host) == {"index.html", "a.png", "b.svg", "c.css"}
    refused = f"filter:{user_filters}:by_path"
    assert _filtered(archive, full, outcome) == {"/x.html": refused, "/advert.html": refused}
    seen = __import__(user_filters).seen
    assert (".png", _PNG) in seen and {suffix for suffix, _ in seen} == {".html", ".png", ".svg", ".css"}
    outcome = crawl(archive, full.url(), name="other", filters=["mime", f"{user_filters}:by_document"])
    assert _filtered(archive, full, outcome) == {"/advert.html": f"filter:{user_filters}:by_document"}
    (archive.filters / f"{user_filters}.toml").write_text('word = "x.html"', "utf-8")
    outcome = crawl(archive, full.url(), name="third", filters=[f"{user_filters}:with_settings"])
    assert _filtered(archive, full, outcome) == {"/x.html": f"filter:{user_filters}:with_settings"}


def test_a_filter_that_fails_keeps_and_says_so_once(
    archive: Archive, full: Site, user_filters: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        outcome = crawl(archive, full.url(), filters=[f"{user_filters}:broken"])
    assert crawls.count(outcome) == (6, 0, 0, 0)
    assert [record.getMessage() for record in caplog.records if "no idea" in str(record.exc_info)] == [
        f"filter {user_filters}:broken failed on {full.url()}; it keeps what it fails on"
    ]


def test_the_summary_names_each_filter_that_failed(archive: Archive, full: Site, user_filters: str) -> None:
    name = f"{user_filters}:broken"
    outcome = crawl(archive, full.url(), filters=[name, "mime"])
    assert crawls.summary_of(archive, outcome)["filter_errors"] == {
        name: {"documents": 6, "first": full.url(), "error": "RuntimeError: no idea"}
    }
    told = run_command("status", "--archive", archive.root).out
    assert f"filter {name} failed on 6 documents, and kept them: RuntimeError: no idea" in told
    assert crawls.summary_of(archive, crawl(archive, full.url(), name="other"))["filter_errors"] == {}


def test_a_filter_that_fails_on_several_domains_is_reported_once(
    archive: Archive, site: Site, user_filters: str, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("a.example", "b.example"):
        site.add_html("/", host, host=host)
    with caplog.at_level(logging.ERROR):
        outcome = crawl(
            archive,
            "http://a.example/",
            "http://b.example/",
            filters=[f"{user_filters}:broken"],
            wget_args=crawls.through(site.proxy),
        )
    assert len([record for record in caplog.records if "no idea" in str(record.exc_info)]) == 1
    assert [each["documents"] for each in outcome.summary["filter_errors"].values()] == [2]  # type: ignore[attr-defined]


def test_a_filter_by_the_path_of_its_file(archive: Archive, full: Site, tmp_path: Path) -> None:
    """Its settings are in filters/<name of the file>.toml (/Fi-2/)."""
    file = tmp_path / "my own filters.py"
    file.write_text(_MODULE + "\n\ndef keep(document):\n    return 'x.html' not in document.url\n", "utf-8")
    outcome = crawl(archive, full.url(), filters=[f"{file}"])
    assert _filtered(archive, full, outcome) == {"/x.html": f"filter:{'_'.join(str(file).split())}"}
    (archive.filters / "my own filters.toml").write_text('word = "advert"', "utf-8")
    outcome = crawl(archive, full.url(), name="other", filters=[f"{file}:with_settings"])
    assert list(_filtered(archive, full, outcome)) == ["/advert.html"]


def test_adverts_are_dropped_and_their_file_adds_to_the_list(archive: Archive, site: Site) -> None:
    site.add_html("/", "".join(f'<img src="http://{host}/a.png">' for host in ("ads.e.org", "own.e.org", "www.e.org")))
    for host in ("ads.e.org", "own.e.org", "www.e.org"):
        site.add("/a.png", _PNG + host.encode(), "image/png", host=host)
    (archive.filters / "adverts.toml").write_text('hosts = ["own.e.org"]', "utf-8")
    outcome = crawl(archive, site.url(), filters=["adverts"], hosts=["*.e.org"], wget_args=crawls.through(site.proxy))
    log = crawls.log_lines(archive, outcome)
    assert {url for url, line in log.items() if "filter:adverts" in line.notes} == {
        "http://ads.e.org/a.png",
        "http://own.e.org/a.png",
    }
    assert [crawls.arcs(archive, host) for host in ("ads.e.org", "own.e.org", "www.e.org")] == [set(), set(), {"a.png"}]


def test_a_page_that_is_refused_from_now_on_keeps_its_arc(archive: Archive, full: Site) -> None:
    crawl(archive, full.url())
    (archive.filters / "mime.toml").write_text('exclude = ["image/*"]', "utf-8")
    assert crawls.count(crawl(archive, full.url())) == (0, 0, 0, 4)
    assert {"a.png", "b.svg"} <= crawls.arcs(archive, full.host)


@pytest.mark.parametrize(
    ("text", "arguments", "faults"),
    [
        ('include = "text/html"\nexlude = []', (), ("include", "exlude")),
        ('include = ["text"]', (), ("include",)),
        ("include = [", (), ("mime.toml",)),
        ("", ("--filters", "no_such_filter"), ("no_such_filter",)),
        ("", ("--filters", "os:no_such_function"), ("os:no_such_function",)),
        ("", ("--filters", "/no/such/file.py:keep"), ("/no/such/file.py:keep", "No such file")),
        ("", ("--filters", "./here.py:keep"), ("here.py", "whole path")),
        ("x = 1", ("--filters", "none", "--filters", "mime", "--filters", "os:nil"), ("none", "x: there", "os:nil")),
    ],
)
def test_wrong_settings_of_a_filter(
    archive: Archive, full: Site, text: str, arguments: tuple[str, ...], faults: tuple[str, ...]
) -> None:
    (archive.filters / "mime.toml").write_text(text, "utf-8")
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", *arguments, full.url())
    assert done.code == 1
    assert all(fault in done.err for fault in faults), done.err
    assert "Traceback" not in done.err
    assert full.requests == []
    assert list(archive.jobs.iterdir()) == []
