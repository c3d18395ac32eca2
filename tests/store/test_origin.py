"""`--domain` and `--publication` mean the same in searches, queries and questions about links, and keep to the gate."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.archives import FIRST, publish
from tests.support.histories import DOMAIN, HISTORIES, NOW, History, Step
from tests.support.readercommand import webarc
from tests.support.recorded import published
from webarcfs.access import reader_stores
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderLinks
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import links, query
from webarcfs.archive.index.links import Question
from webarcfs.archive.index.query import ANY_ORIGIN, Condition, DocumentOrigin
from webarcfs.archive.model.metadata import MetaData
from webarcfs.client import WebarchiveClient
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.store

OTHER = "other.example"
IDN, IN_PUNYCODE = "münchen.example", "xn--mnchen-3ya.example"
_PAGE = '<a href="http://other.example/">harbour</a> {}'
_ORIGINS = [
    DocumentOrigin(domain, publication) for domain in ("", DOMAIN, OTHER) for publication in ("", "p", "q", "test", "x")
]
_ARCHIVES = int(os.environ.get("SEARCH_ARCHIVES", "10"))


def _of_pages(history: History) -> History:
    """The same history, of pages with a word and a link."""
    return History(
        [
            replace(step, pages={f"{path}.html": _PAGE.format(body) for path, body in step.pages.items()})
            for step in history.steps
        ]
    )


def _archive(folder: Path, history: History) -> Archive:
    """An archive with a history of the publications p and q, and two domains of another one, `test`."""
    archive = directory.create(folder / "archive")
    archive.settings.write_text("[index]\nlinks = true\n")
    published(archive, history)
    publish(archive, OTHER, {"a.html": _PAGE.format(0).encode()}, FIRST)
    publish(archive, IN_PUNYCODE, {"a.html": _PAGE.format(0).encode()}, FIRST + timedelta(seconds=1))
    recover(archive)
    bring_in_step(archive)
    return archive


def _publication(history: History, meta: MetaData, *, to_readers: bool) -> str:
    """Whose crawl stored a version, by the history alone; to readers, if they may see that crawl."""
    if meta.domain != DOMAIN:
        return "test"
    number = (meta.crawl_time - history.time(0)).days
    path = meta.path.removeprefix(f"/{DOMAIN}/")
    span = history.span(number, path)
    if not to_readers or history.is_open(span.start):
        return history.steps[span.start].publication
    body = history.states[number][path]
    return next(
        history.steps[number].publication
        for number in span
        if history.is_open(number) and history.seen[number].get(path) == body
    )


def _of(history: History, rows: Iterable[MetaData], origin: DocumentOrigin, *, to_readers: bool) -> list[MetaData]:
    return [
        meta
        for meta in rows
        if origin.domain in ("", meta.domain)
        and origin.publication in ("", _publication(history, meta, to_readers=to_readers))
    ]


#: A page that an embargoed crawl stored, and an open one of another publication met.
_EMBARGOED = History([Step("p", {"a": "1"}, closed_for="1 year"), Step("q", {"a": "1"})])


@given(HISTORIES)
@example(_EMBARGOED)
@settings(
    max_examples=_ARCHIVES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_searches_queries_and_links_keep_to_origin_and_gate(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    history = _of_pages(history)
    archive = _archive(tmp_path_factory.mktemp("origin"), history)
    gate = Gate(archive, Reader(), clock=lambda: NOW)
    narrowed = reader_stores.narrowed(gate)
    order = "commitTag, path"
    all_rows = list(query.ask(archive.database, "", order))
    readers_rows = list(query.ask(archive.database, "", order, narrowed=narrowed))
    with closing(ReaderRepositories(gate)) as repositories:
        for origin in _ORIGINS:
            staff = list(query.ask(archive.database, "", order, origin=origin))
            assert staff == _of(history, all_rows, origin, to_readers=False), origin
            also = list(query.ask(archive.database, "path LIKE '%a.html'", order, origin=origin))
            assert also == [meta for meta in staff if meta.path.endswith("a.html")], origin
            shown = list(query.ask(archive.database, "", order, narrowed=narrowed, origin=origin))
            assert shown == _of(history, readers_rows, origin, to_readers=narrowed is not None), origin
            found_words = SearchQuestion(
                words="harbour", domain=origin.domain, publication=origin.publication, limit=100
            )
            for searcher, rows in ((Searcher(archive), staff), (Searcher(archive, gate), shown)):
                answer = searcher.ask(found_words)
                assert {hit.path for hit in answer.hits} == {meta.path for meta in rows}, origin
                by_publication = dict(searcher.facets(found_words)["publication"])
                assert origin.publication in ("", *by_publication) or not rows, (origin, by_publication)
                if not origin.publication:
                    to_readers = rows is shown and narrowed is not None
                    names = {(_publication(history, meta, to_readers=to_readers), meta.path) for meta in rows}
                    assert by_publication == Counter(name for name, _ in names), origin

            for at in (None, *{meta.commit_tag for meta in all_rows}):
                question = Question(at=at, ever=at is None, origin=origin)
                whole = Question(at=at, ever=at is None)
                expected = {meta.path for meta in staff if at is None or meta.commit_tag == at}
                found = set(links.ask(archive, question, 30.0))
                assert found <= set(links.ask(archive, whole, 30.0))
                assert {link.path for link in found} == expected, (origin, at)
                assert {link.path for link in links.ask(archive, question, 30.0, arcs=True)} == expected
                seen = links.ask(archive, question, 30.0, ReaderLinks(gate, repositories, question))
                of_readers = {meta.path for meta in shown if at is None or meta.commit_tag == at}
                if at is None:
                    assert {link.path for link in seen} == of_readers, origin
                else:
                    assert {link.path for link in seen} >= of_readers, (origin, at)


def _two(folder: Path) -> tuple[Archive, History]:
    """Of two publications: q waits for its release, and stored b, which p met later, and c."""
    steps = (
        Step("p", {"a": "1"}),
        Step("q", {"b": "2", "c": "3"}, RecordState.COUNTED, held=True),
        Step("p", {"a": "1", "b": "2"}),
    )
    history = _of_pages(History(steps))
    return _archive(folder, history), history


def _paths(archive: Archive, *words: str) -> list[str]:
    answer = webarc(*words, "--archive", str(archive.root), "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    return sorted({row["path"] for row in csv.DictReader(io.StringIO(answer.stdout))})


_COMMANDS = {
    "search": ("search", "harbour"),
    "query": ("query",),
    "links": ("links", "--word", "harbour", "--ever"),
}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--publication", "p"), ["a.html"]),
        (("--publication", "q"), ["b.html", "c.html"]),
        (("--publication", "q", "--domain", DOMAIN), ["b.html", "c.html"]),
        (("--publication", "q", "--domain", OTHER), []),
        (("--publication", "Q"), []),
        (("--publication", "'; DROP TABLE version; --"), []),
        (("--domain", DOMAIN), ["a.html", "b.html", "c.html"]),
        (("--domain", "WWW.Example.ORG"), ["a.html", "b.html", "c.html"]),
        (("--domain", "www.example.org:80"), ["a.html", "b.html", "c.html"]),
        (("--domain", "example.org"), []),
        (("--domain", "www.example.org:8080"), []),
    ],
)
def test_the_commands_agree(tmp_path: Path, options: tuple[str, ...], names: list[str]) -> None:
    archive, _ = _two(tmp_path)
    answers = {name: _paths(archive, *words, *options) for name, words in _COMMANDS.items()}
    expected = [f"/{DOMAIN}/{name}" for name in names]
    assert all(answer == expected for answer in answers.values()), answers


@pytest.mark.parametrize("spelling", [IDN, IDN.upper(), IN_PUNYCODE, f"{IDN}."])
def test_a_host_with_umlauts_is_found_by_both_its_names(tmp_path: Path, spelling: str) -> None:
    archive, _ = _two(tmp_path)
    for words in _COMMANDS.values():
        assert _paths(archive, *words, "--domain", spelling) == [f"/{IN_PUNYCODE}/a.html"]


@pytest.mark.parametrize("text", ["http://e.org/", "a/b", "two words", "a@b", "?", "a..b", " e.org", "e.org:x"])
def test_what_is_no_host_is_refused(tmp_path: Path, text: str) -> None:
    archive, _ = _two(tmp_path)
    for words in _COMMANDS.values():
        answer = webarc(*words, "--archive", str(archive.root), "--domain", text)
        assert answer.returncode == 1 and "is no host" in answer.stderr, answer


def test_no_option_shows_a_reader_who_stored_what_waits(tmp_path: Path) -> None:
    """To a reader, b is of p: the crawl of q that stored it is hidden, and its name is in no answer."""
    archive, _ = _two(tmp_path)
    for words in _COMMANDS.values():
        ask = (*words, "--as-reader")
        assert _paths(archive, *ask, "--publication", "q") == []
        assert _paths(archive, *ask, "--publication", "p") == [f"/{DOMAIN}/a.html", f"/{DOMAIN}/b.html"]
        assert _paths(archive, *ask, "--publication", "p", "--domain", OTHER) == []
    answer = webarc("links", "--archive", str(archive.root), "--publication", "p", "--as-reader", "--json")
    assert {row["path"] for row in json.loads(answer.stdout)} == {f"/{DOMAIN}/a.html", f"/{DOMAIN}/b.html"}


def test_no_hit_and_no_facet_names_a_publication_that_waits(tmp_path: Path) -> None:
    """The index has q as the publication of b: its hidden crawl stored it."""
    archive, _ = _two(tmp_path)
    answers = {}
    for options in ((), ("--as-reader",)):
        answer = webarc("search", "harbour", "--archive", str(archive.root), "--facets", "--format", "json", *options)
        found = json.loads(answer.stdout)
        own = [hit for hit in found["hits"] if hit["path"].startswith(f"/{DOMAIN}/")]
        hits = {hit["path"].rpartition("/")[2]: hit["publication"] for hit in own}
        answers[options] = hits, found["facets"]["publication"]
    assert answers[()] == ({"a.html": "p", "b.html": "q", "c.html": "q"}, {"p": 1, "q": 2, "test": 2})
    assert answers["--as-reader",] == ({"a.html": "p", "b.html": "p"}, {"p": 2, "test": 2})


def test_a_readers_condition_does_not_reach_past_the_origin(tmp_path: Path) -> None:
    """Where something is hidden elsewhere, a reader's condition has no SELECT, whatever the options leave."""
    archive, _ = _two(tmp_path)
    escape = "1 OR (SELECT count(*) FROM main.metadata) > 0"
    for more in ((), ("--as-reader",)):
        for options in (("--domain", OTHER), ("--publication", "test")):
            answer = webarc("query", escape, "--archive", str(archive.root), *options, *more, "--format", "csv")
            rows = list(csv.DictReader(io.StringIO(answer.stdout)))
            assert (answer.returncode, rows) == (1, []) if more else all(row["domain"] != DOMAIN for row in rows)


def test_counting_links_takes_no_origin(tmp_path: Path) -> None:
    archive, history = _two(tmp_path)
    tag = f"{history.time(0):%Y-%m-%dT%H:%M:%S}@{DOMAIN}"
    answer = webarc("links", "--count", tag, "--publication", "p", "--archive", str(archive.root))
    assert answer.returncode == 1 and "nothing narrows it" in answer.stderr


def test_the_client_has_them(tmp_path: Path) -> None:
    archive, _ = _two(tmp_path)
    with WebarchiveClient(archive.root) as client:
        origin = DocumentOrigin(DOMAIN, "q")
        assert {meta.path for meta in client.select(origin=origin)} == {f"/{DOMAIN}/b.html", f"/{DOMAIN}/c.html"}
        assert {link.path for link in client.links(Question(origin=origin, ever=True))} == {
            f"/{DOMAIN}/b.html", f"/{DOMAIN}/c.html"
        }  # fmt: skip


@pytest.mark.parametrize("origin", [DocumentOrigin("e.org"), DocumentOrigin("", "p"), DocumentOrigin("e.org", "p")])
def test_nothing_is_read_whole(tmp_path: Path, origin: DocumentOrigin) -> None:
    """The documents of a domain are found by its name, those of a publication in the domains that it crawled."""
    archive = archives.make_archive(tmp_path)
    publish(archive, "e.org", {"a.html": b"a"})
    recover(archive)
    with closing(query.connected(archive.database)) as connection:
        query._show_origin(connection, origin)
        statement = query._statement("metadata/ask", Condition("mimeType = 'text/html'", "", 10))
        plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    scans = {step.split()[1] for step in plan if step.startswith("SCAN")}
    assert scans <= {"main.snapshot", "own", "temp.wanted"}, plan  # own: the snapshots, for their publications
    assert any("version" in step and "(domain=?" in step for step in plan), plan


def test_no_origin_is_any() -> None:
    assert ANY_ORIGIN.is_any and not DocumentOrigin("a").is_any and not DocumentOrigin("", "p").is_any
