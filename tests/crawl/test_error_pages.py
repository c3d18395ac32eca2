"""Error pages that are archived (`keep_errors`): they never stand for pages, and never defeat a crawl's guards."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent.crawl.vocabulary import Reason, Result
from agent.maintenance.verification import verify
from tests.support import archives, crawls
from tests.support.crawls import count, crawl
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import versions
from webarcfs.archive.history.versions import statistics
from webarcfs.archive.index.query import ask
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.crawl

_PAGES = 8


def _fill(site: Site) -> set[str]:
    site.add_html("/", "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES)))
    for number in range(_PAGES):
        site.add_html(f"/{number}", f"Page {number}.")
    return {"index.html", *map(str, range(_PAGES))}


def _found(archive: Archive, where: str = "") -> Mapping[str, int]:
    return {meta.path.rpartition("/")[2]: meta.status for meta in ask(archive.database, where, "path")}


def test_an_error_page_is_found_where_it_is_asked_for(archive: Archive, site: Site) -> None:
    every = _fill(site)
    site.add("/3", "<title>Gone</title>", status=404)
    outcome = crawl(archive, site.url(), keep_errors=True)
    assert crawls.arcs(archive, site.host) == every
    assert crawls.meta(archive, site.host, "3").status == 404
    assert _found(archive) == dict.fromkeys(every - {"3"}, 200)
    assert _found(archive, "status = 404") == {"3": 404}
    assert _found(archive, "status >= 200") == dict.fromkeys(every, 200) | {"3": 404}
    assert _found(archive, "title <> 'status'") == dict.fromkeys(every - {"3"}, 200)
    assert _found(archive, '"Status" >= 400 -- status') == {"3": 404}
    assert count(outcome)[0] == len(every) and list(verify(archive)) == []
    store = Repository(archive.repository(site.host))
    figures = statistics(store, store.snapshot_tree(CommitTag.parse(outcome.tags[0])))
    assert (figures.documents, figures.error_pages) == (len(every) - 1, 1)
    assert figures.types["text/html"][0] == len(every) - 1


def test_the_same_bytes_are_another_version_where_page_and_error_change_places(archive: Archive, site: Site) -> None:
    _fill(site)
    said = "<title>Sorry</title>"
    site.add("/3", said)
    crawl(archive, site.url())
    assert crawls.meta(archive, site.host, "3").status == 200
    site.add("/3", said, status=404)
    assert count(crawl(archive, site.url(), keep_errors=True)) == (0, 1, 0, _PAGES)
    assert crawls.meta(archive, site.host, "3").status == 404
    assert count(crawl(archive, site.url(), keep_errors=True)) == (0, 0, 0, _PAGES + 1)
    site.add("/3", said)
    assert count(crawl(archive, site.url())) == (0, 1, 0, _PAGES)  # also where error pages are not kept any more
    assert crawls.meta(archive, site.host, "3").status == 200
    store = Repository(archive.repository(site.host))
    steps = [(step.what, step.status) for step in versions.steps(store, site.host, "3")]
    assert steps == [("added", 200), ("changed", 404), ("changed", 200)]
    rows = archives.rows_of(archive)
    assert [int(row["status"]) for row in rows if row["path"].endswith("/3")] == [200, 404, 404, 200]


def test_a_site_that_answers_404_to_everything_loses_nothing(archive: Archive, site: Site) -> None:
    every = _fill(site)
    crawl(archive, site.url())
    archives.add(archive, "3/notes/n.txt", b"a note", site.host)
    before = crawls.files(archive, site.host)
    for path in ("/", *(f"/{number}" for number in range(_PAGES))):
        site.add(path, "<title>404</title>", status=404)
    outcome = crawl(archive, site.url(), keep_errors=True)
    assert not outcome.complete
    assert crawls.files(archive, site.host) == before and set(before) == every
    assert crawls.read_file(archive, site.host, "3/notes/n.txt") == b"a note"
    line = crawls.log_lines(archive, outcome)[site.url()]
    assert Reason.ERROR_HELD in line.annotations and Result.UNCHANGED in line.annotations
    assert count(outcome)[1] == 0 and list(verify(archive)) == []


def test_many_error_pages_that_stay_are_no_reason_to_doubt(archive: Archive, site: Site) -> None:
    """As many as pages: a crawl that finds them again found what the last one saw."""
    _fill(site)
    for number in range(_PAGES - 2):
        site.add(f"/{number}", f"<title>Not {number}</title>", status=410)
    assert crawl(archive, site.url(), keep_errors=True).complete
    site.add_html("/7", "new text")
    outcome = crawl(archive, site.url(), keep_errors=True)
    assert outcome.complete and count(outcome) == (0, 1, 0, _PAGES)
    for number in range(_PAGES - 2):
        site.add(f"/{number}", f"<title>Never {number}</title>", status=410)
    outcome = crawl(archive, site.url(), keep_errors=True)
    assert outcome.complete and count(outcome) == (0, _PAGES - 2, 0, 3)


@pytest.mark.parametrize("status", [500, 501, 503, 429, 408, 425])
def test_trouble_of_the_server_never_replaces_a_page(archive: Archive, site: Site, status: int) -> None:
    every = _fill(site)
    crawl(archive, site.url())
    before = crawls.files(archive, site.host)
    site.gone("/3", status)
    crawl(archive, site.url(), keep_errors=True)
    assert crawls.files(archive, site.host) == before and set(before) == every
