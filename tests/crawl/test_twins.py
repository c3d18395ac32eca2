"""Two documents at one place (http and https, `/` and `/index.html`): both are kept, each URL answers with its own."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support import archives, warcs
from tests.support.crawls import arcs, crawl, log_lines, read
from tests.support.imports import import_files, imported
from tests.support.site import Site
from webarcfs.access.gate import KnownGate, Reader
from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import CaptureIndex

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
URLS = tuple(f"{scheme}://{HOST}/d/{name}" for scheme in ("http", "https") for name in ("", "index.html"))
CRAWLS = st.lists(st.dictionaries(st.sampled_from(URLS), st.sampled_from(["1", "2", "3"]), min_size=1), max_size=10)


def shown(archive: Archive, url: str, year: int) -> str | None:
    """The body that the archive shows of a URL at the end of a year."""
    gate = KnownGate(archive, Reader())
    gate.look()
    with CaptureIndex(archive.database) as index:
        capture = VisibleCaptures(gate, index).state(url, int(datetime(year, 12, 31, tzinfo=UTC).timestamp())).capture
    return None if capture is None else archives.store_of(archive, HOST).read(capture.blob).decode()


@pytest.mark.timeout(36000)
@settings(
    max_examples=int(os.environ.get("TWIN_HISTORIES", "4")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(crawls=CRAWLS, is_at_once=st.booleans(), dice=st.randoms(use_true_random=False))
@example(
    crawls=[{URLS[0]: "1", URLS[2]: "2"}, {URLS[2]: "1"}, {URLS[0]: "2", URLS[1]: "2", URLS[3]: "3"}],
    is_at_once=False,
    dice=random.Random(1),
)
@example(crawls=[dict.fromkeys(URLS, "1"), {URLS[1]: "2", URLS[2]: "3"}], is_at_once=True, dice=random.Random(1))
def test_each_url_answers_with_its_own(
    tmp_path_factory: pytest.TempPathFactory, crawls: list[dict[str, str]], is_at_once: bool, dice: random.Random
) -> None:
    """Of crawls that are imported one after the other, or at once as files in any order: no version is lost."""
    folder: Path = tmp_path_factory.mktemp("twins")
    archive = archives.make_archive(folder)
    numbers = list(range(len(crawls)))
    dice.shuffle(numbers)
    (folder / "files").mkdir()
    for number, pages in enumerate(crawls):
        date = f"{2010 + number}-06-01T12:00:00Z"
        records = [warcs.response(url, body.encode(), date) for url, body in pages.items()]
        file = warcs.write(folder / "files" / f"{numbers[number]}.warc", records)
        if not is_at_once:
            imported(archive, file, name="same")
    if is_at_once and crawls:
        result = import_files(archive, folder / "files", name="same")
        assert len(result.outcomes) == len(crawls) and all(not outcome.warnings for outcome in result.outcomes)
    last: dict[str, str] = {}
    sharing: set[str] = set()  # with the same bytes as another one they may be one document, which changes as one
    for number, pages in enumerate(crawls):
        last |= pages
        others = {url: {body for other, body in last.items() if other != url} for url in pages}
        sharing = (sharing - pages.keys()) | {url for url in pages if pages[url] in others[url]}
        for url, body in last.items():
            if url in pages or url not in sharing:
                assert shown(archive, url, 2010 + number) == body, (url, number)


def test_https_has_the_first_name_and_http_the_second_for_good(archive: Archive, tmp_path: Path) -> None:
    both = [warcs.response(f"{scheme}://{HOST}/a", scheme.encode()) for scheme in ("http", "https")]
    imported(archive, warcs.write(tmp_path / "1.warc", both))
    assert (read(archive, HOST, "a"), read(archive, HOST, "a%http")) == (b"https", b"http")
    same = [warcs.response(f"{scheme}://{HOST}/a", b"the same", "2026-01-01T00:00:00Z") for scheme in ("http", "https")]
    imported(archive, warcs.write(tmp_path / "2.warc", same))
    assert (read(archive, HOST, "a"), read(archive, HOST, "a%http")) == (b"the same", b"the same")


def test_the_first_name_changes_hands_when_a_complete_crawl_ends_its_holder(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/d/">1</a>')
    site.add_html("/d/", "the folder")
    crawl(archive, site.url())
    site.add_html("/", '<a href="/d/index.html">1</a>')
    site.add_html("/d/index.html", "the index")
    crawl(archive, site.url())
    assert arcs(archive, site.host) == {"index.html", "d/index.html"}
    assert b"the index" in read(archive, site.host, "d/index.html")


def test_an_incomplete_crawl_takes_no_first_name(archive: Archive, tmp_path: Path) -> None:
    for number, name in enumerate(("", "index.html")):
        record = warcs.response(f"http://{HOST}/d/{name}", name.encode(), f"{2010 + number}-06-01T12:00:00Z")
        imported(archive, warcs.write(tmp_path / f"{number}.warc", [record]), name="same")
    assert arcs(archive, HOST) == {"d/index.html", "d/index.html%http.index"}


def test_a_folder_and_its_index_with_the_same_bytes_are_one_document(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/same/">2</a><a href="/same/index.html">3</a>')
    site.add_html("/same/", "the same")
    site.add_html("/same/index.html", "the same")
    log = log_lines(archive, crawl(archive, site.url()))
    assert arcs(archive, site.host) == {"index.html", "same/index.html"}
    assert log[site.url("/same/index.html")].notes == (f"same-as:{site.url('/same/')}", "duplicate")
