"""What is archived while the crawl goes on is what would have been archived afterwards (`agent/ahead.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import agent.ahead
import agent.run
from agent.document import Document
from agent.run import Run
from agent.stages.publish import Publisher
from tests.bench.serve import Generated
from tests.support import crawls
from tests.support.crawls import StopAfter, count, crawl, log_lines
from tests.support.site import Site
from webarcfs.archive import locks
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import Damaged
from webarcfs.archive.store import INCOMING

pytestmark = pytest.mark.crawl

_PAGES = 150


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every crawl works ahead, however small; the rows of the documents that were taken so."""
    monkeypatch.setattr(agent.ahead, "LEAST", 1)
    rows: list[int] = []
    original = Publisher.take

    def noting(self: Publisher, documents: Iterator[Document], run: Run) -> Iterator[Document]:
        for document in original(self, documents, run):
            if run.batch:
                rows.append(document.row)
            yield document

    monkeypatch.setattr(Publisher, "take", noting)
    return rows


def _fill(site: Site) -> None:
    site.mount(Generated(_PAGES), at="/")
    site.add_html("/twice/index.html", "the same", title="By name")
    site.add_html("/twice/", '<a href="index.html">the same</a>', title="By folder")
    site.add("/", Generated(_PAGES).body(0) + b'<a href="/twice/">both</a>')


def _facts(archive: Archive, site: Site, outcome: crawls.Outcome) -> dict[str, Any]:
    """What two archives of one site have in common."""
    lines = log_lines(archive, outcome)
    return {
        "files": crawls.files(archive, site.host),
        "titles": {arc: crawls.meta(archive, site.host, arc).title for arc in crawls.arcs(archive, site.host)},
        "count": count(outcome),
        "lines": {url: (line.status, line.mime, line.notes) for url, line in lines.items()},
        "documents": outcome.summary["documents"],
    }


def _afterwards(archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The facts of a crawl that does nothing ahead, in an archive of its own."""
    with monkeypatch.context() as patch:
        patch.setattr(agent.ahead, "LEAST", 1 << 30)
        other = crawls.directory.create(archive.root.with_name("afterwards"))
        return _facts(other, site, crawl(other, site.url()))


def test_the_same_comes_of_it(archive: Archive, site: Site, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A first crawl, one of the unchanged site, and one after changes."""
    _fill(site)
    expected = _afterwards(archive, site, monkeypatch)
    assert taken == []
    first = crawl(archive, site.url())
    assert _facts(archive, site, first) == expected
    assert len(set(taken)) == len(taken) > 0
    again = crawl(archive, site.url())
    assert count(again) == (0, 0, 0, sum(expected["count"]))
    site.add(Generated(_PAGES).path(7), b"<html><title>new</title>")
    assert count(crawl(archive, site.url())) == (0, 1, 0, sum(expected["count"]) - 1)
    assert crawls.store(archive, site.host).refs(INCOMING) == {}


def test_urls_that_share_an_arc(
    archive: Archive, site: Site, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one was taken ahead that has a rival, all is done once more, and the right one wins."""
    _fill(site)
    expected = _afterwards(archive, site, monkeypatch)
    monkeypatch.setattr(agent.run, "_SHARED", "no such name")
    assert _facts(archive, site, crawl(archive, site.url())) == expected
    assert taken


def test_what_fails_ahead_is_done_afterwards(
    archive: Archive, site: Site, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(site)
    expected = _afterwards(archive, site, monkeypatch)
    original = Publisher.take

    def failing(self: Publisher, documents: Iterator[Document], run: Run) -> Iterator[Document]:
        for document in original(self, documents, run):
            if run.batch:
                raise Damaged("a test")
            yield document

    monkeypatch.setattr(Publisher, "take", failing)
    assert _facts(archive, site, crawl(archive, site.url())) == expected
    assert len(taken) == 1


def test_a_crawl_that_is_stopped(archive: Archive, site: Site) -> None:
    """It leaves nothing but its job, gives the domain back, and is completed by the next run."""
    _fill(site)
    stop = StopAfter(site, 60)
    stopped = crawl(archive, site.url(), stop=stop.event)
    stop.join()
    if stopped.interrupted:
        with locks.exclusive_or_busy(archive.publishing_lock(site.host), "held"):
            assert crawls.store(archive, site.host).head() is None
    assert count(crawl(archive, site.url()))[1:3] == (0, 0)
    assert len(crawls.arcs(archive, site.host)) == _PAGES + 12
    assert len(archive.changes.read_text().split()) == (1 if stopped.interrupted else 2)


def test_somebody_else_publishes(
    archive: Archive, site: Site, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is done ahead, and nobody waits, while another job has the domain."""
    _fill(site)
    monkeypatch.setattr(locks, "try_exclusive", _refusing(locks.try_exclusive, archive.publishing_lock(site.host)))
    assert count(crawl(archive, site.url())) == (_PAGES + 12, 0, 0, 0)
    assert taken == []


def _refusing(original: Any, path: Any) -> Any:
    return lambda each: None if each == path else original(each)
