"""What browsers showed, for those who read it: search, links, differences, exports; and who does not see it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from agent.importing import import_sources
from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from agent.jobs import importjob
from agent.maintenance.verification import verify
from agent.steps.context import Snapshot
from tests.store.test_webarc import webarc
from tests.support.browsertrix import Shown, wacz
from tests.support.crawls import archive
from tests.support.imports import imported
from tests.support.rooms import served
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderLinks
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.index.links import Question, ask
from webarcfs.export import warc
from webarcfs.export.selection import Asked, select
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.crawl

__all__ = ["archive"]
HOST = "www.example.org"
URL = f"http://{HOST}/"
#: Two shells: one without a link, one with links of its own.
SHELL = b"<!DOCTYPE html><div id=root></div><script src=/app.js></script>"
OWN = b"<!DOCTYPE html><a href=/own>own</a><a href=/twice>twice</a>"


def page(path: str, words: str, month: int = 6, body: bytes = SHELL, more: str = "") -> Shown:
    """A page that a browser showed in a month."""
    day = f"2025-{month:02}-01T12:00:0"
    dom = f"<!DOCTYPE html><p>{words}</p><a href=/to/{words}>{words}</a>{more}"
    return Shown(f"{URL}{path}", body, date=f"{day}0Z", later=f"{day}9Z", text=f"Words\n{words}", dom=dom)


def plain(path: str, month: int) -> Shown:
    day = f"2025-{month:02}-01T12:00:0"
    return Shown(f"{URL}{path}", SHELL, date=f"{day}0Z", later=f"{day}9Z")


def crawl(archive: Archive, path: Path, *pages: Shown, released: bool = True) -> None:
    source = wacz(path, *pages)
    if released:
        imported(archive, source, name="site")
        return
    held = Publication(name="site", urls=(), release="by-hand", crawl=CrawlSettings())
    importjob.run(archive, import_sources.sources_of([source]), held, None)


def crawl_under_embargo(archive: Archive, path: Path, *pages: Shown) -> None:
    closed = Publication(name="site", urls=(), closed_for=Interval.parse("100 years"), crawl=CrawlSettings())
    importjob.run(archive, import_sources.sources_of([wacz(path, *pages)]), closed, None)


def found(archive: Archive, words: str, *, ever: bool = False, reader: bool = True, name: str = "") -> list[str]:
    bring_in_step(archive)
    searcher = Searcher(archive, Gate(archive, Reader(name)) if reader else None)
    answer = searcher.ask(SearchQuestion(words=words, present=not ever))
    return sorted(hit.url.removeprefix(URL) for hit in answer.hits)


def targets(
    archive: Archive, path: str, *, ever: bool = False, reader: bool = True, name: str = ""
) -> list[tuple[str, int]]:
    """The links of a page, with how often they are there."""
    question = Question(path=f"/{HOST}/{path}", ever=ever)
    gate = Gate(archive, Reader(name))
    with ReaderRepositories(gate) as repositories:
        narrowed = ReaderLinks(gate, repositories, question) if reader else None
        return sorted((link.target.removeprefix(URL), link.times) for link in ask(archive, question, 60, narrowed))


def exported(archive: Archive, out: Path) -> bytes:
    """What an export for readers has."""
    with ReaderRepositories(Gate(archive, Reader())) as reader:
        warc.export(select(archive, Asked(), reader), out, lambda *_: None, lambda: False)
    return b"".join(gzip.decompress(path.read_bytes()) for path in sorted(out.glob("*.warc.gz")))


def difference(archive: Archive, *arguments: Any) -> str:
    done = webarc("diff", "--archive", str(archive.root), *map(str, arguments))
    assert done.returncode == 0, done.stderr
    return done.stdout


OLD, NEW = f"2025-06-01T13:00:00@{HOST}", f"2025-07-01T13:00:00@{HOST}"


def test_each_route_of_one_shell_has_its_own_readers(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-12: search and links tell routes apart that share a body."""
    crawl(archive, tmp_path / "a.wacz", *(page(f"r/{number}", f"route{number}x") for number in range(100)))
    for number in (0, 57, 99):
        assert found(archive, f"route{number}x") == [f"r/{number}"]
        assert targets(archive, f"r/{number}") == [(f"to/route{number}x", 1)]
    assert not list(verify(archive))


def test_links_of_the_dom_are_joined_with_those_of_the_body(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-12: a link that both have counts once, and one that the DOM has more often as often as there."""
    more = "<a href=/own>own</a>" + "<a href=/twice>twice</a>" * 2
    crawl(archive, tmp_path / "a.wacz", page("app", "first", body=OWN, more=more))
    links = [("own", 1), ("to/first", 1), ("twice", 2)]
    assert targets(archive, "app") == targets(archive, "app", reader=False) == links
    recover(archive)
    assert targets(archive, "app") == links


def test_checks_of_a_crawl_get_what_a_browser_showed(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-12: the text that a browser showed, and the links of body and DOM."""
    crawl(archive, tmp_path / "a.wacz", page("app", "first", body=OWN), plain("plain", 6))
    snapshot = Snapshot(archive, next(iter(Catalogue(archive).records())))
    document, other = snapshot.find(f"{URL}app"), snapshot.find(f"{URL}plain")
    assert document is not None
    assert other is not None
    assert snapshot.text(document) == "Words\nfirst"
    assert [link.target for link in snapshot.links(document)] == [f"{URL}own", f"{URL}twice", f"{URL}to/first"]
    assert (snapshot.text(other), snapshot.links(other)) == ("", [])


def test_a_held_crawl_with_another_text_changes_nothing_for_readers(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-8: the same shell, another text: readers have the old one in search, links, diff and export."""
    crawl(archive, tmp_path / "a.wacz", page("app", "first"))
    crawl(archive, tmp_path / "b.wacz", page("app", "second", 7), released=False)
    assert found(archive, "first") == found(archive, "first", ever=True) == ["app"]
    assert found(archive, "second") == found(archive, "second", ever=True) == []
    assert found(archive, "second", reader=False) == ["app"]
    assert targets(archive, "app") == targets(archive, "app", ever=True) == [("to/first", 1)]
    assert targets(archive, "app", reader=False) == [("to/second", 1)]
    sent = exported(archive, tmp_path / "out")
    assert b"first" in sent
    assert b"second" not in sent
    assert f"~ /{HOST}/app" in difference(archive, OLD, NEW)
    shown = difference(archive, OLD, NEW, f"{URL}app")
    assert "-first" in shown
    assert "+second" in shown
    denied = webarc("diff", "--archive", archive.root, "--as-reader", OLD, NEW, f"{URL}app")
    assert denied.returncode != 0
    with served(archive) as room:
        answer = room.get(f"/diff/20250601120000..20250701120000/{URL}app")
        assert b"second" not in answer.body


def test_differences_are_those_of_what_browsers_showed(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-13: in the room and by the command; of the bodies, where one crawl had no browser."""
    crawl(archive, tmp_path / "a.wacz", page("app", "first"), page("same", "same"), plain("new", 6))
    crawl(archive, tmp_path / "b.wacz", page("app", "second", 7), page("same", "same", 7), page("new", "third", 7))
    listed = difference(archive, OLD, NEW)
    assert listed.splitlines() == [f"~ /{HOST}/app", f"~ /{HOST}/new"]
    assert "+third" in difference(archive, OLD, NEW, f"{URL}new")
    as_reader = difference(archive, "--as-reader", OLD, NEW, f"{URL}app")
    assert "-first" in as_reader
    assert "+second" in as_reader
    with served(archive) as room:
        answer = room.get(f"/diff/20250601120000..20250701120000/{URL}app")
        assert answer.status == 200
        assert b"first" in answer.body
        assert b"second" in answer.body
        frame = room.get(f"/web/20250701120000/{URL}app")
        assert "What changed" in frame.text
        calendar = room.get(f"/web/*/{URL}app")
        assert f"/diff/20250601120000..20250701120000/{URL}app" in calendar.text
        assert "/diff/" not in room.get(f"/web/*/{URL}same").text


@pytest.mark.parametrize("again", ["with a browser", "without"])
def test_a_later_crawl_that_met_the_version_shows_nothing_of_it(archive: Archive, tmp_path: Path, again: str) -> None:
    """S-rendered-8: what a held crawl recorded is in no search, no links, no diff and no export of readers."""
    crawl(archive, tmp_path / "a.wacz", page("app", "first"), released=False)
    crawl(archive, tmp_path / "b.wacz", page("app", "first", 7) if again == "with a browser" else plain("app", 7))
    for ever in (False, True):
        assert found(archive, "first", ever=ever) == []
        assert targets(archive, "app", ever=ever) == []
    assert found(archive, "first", reader=False) == ["app"]
    assert targets(archive, "app", reader=False) == [("to/first", 1)]
    sent = exported(archive, tmp_path / "out")
    assert b"first" not in sent
    assert b"urn:dom:" not in sent
    assert b"id=root" in sent


def test_a_reader_who_may_see_a_closed_page_by_name_sees_its_dom(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-8: in search and links, as in the room; others see none of it."""
    crawl_under_embargo(archive, tmp_path / "a.wacz", page("app", "first"))
    assert (found(archive, "first", name="anna"), targets(archive, "app", ever=True, name="anna")) == ([], [])
    archive.access_rules.write_text('org,example)/app - {"access": "allow", "user": "anna"}\n')
    assert found(archive, "first", name="anna") == ["app"]
    assert targets(archive, "app", ever=True, name="anna") == [("to/first", 1)]
    for name in ("", "bert"):
        assert (found(archive, "first", name=name), targets(archive, "app", ever=True, name=name)) == ([], [])


@pytest.mark.parametrize("is_open", [True, False])
def test_a_rule_by_name_opens_no_dom_of_a_held_crawl(archive: Archive, tmp_path: Path, *, is_open: bool) -> None:
    """S-rendered-8: nor that of a closed crawl where the reader sees the page through an open one."""
    archive.access_rules.write_text('org,example)/app - {"access": "allow", "user": "anna"}\n')
    if is_open:
        crawl_under_embargo(archive, tmp_path / "a.wacz", page("app", "first"))
        crawl(archive, tmp_path / "b.wacz", plain("app", 7))
    else:
        crawl(archive, tmp_path / "a.wacz", page("app", "first"), released=False)
        crawl_under_embargo(archive, tmp_path / "b.wacz", plain("app", 7))
        assert found(archive, "first", name="anna") == []
    assert targets(archive, "app", ever=True, name="anna") == []
    assert targets(archive, "app", ever=True, name="") == []
    assert targets(archive, "app", ever=True, reader=False) == [("to/first", 1)]
