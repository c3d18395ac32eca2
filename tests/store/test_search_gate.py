"""Searches of readers agree with the gate: the same versions, in every state, inside the query (R5, R6, R8)."""

from __future__ import annotations

import hashlib
import os
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from tantivy import Query

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.histories import DOMAIN, FIRST, HISTORIES, NOW, History, Step
from tests.support.properties import examples
from tests.support.recorded import published
from webarcfs.access.access_rules import Access, AccessRule, AccessRules, Open, rule_key
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.search import generations
from webarcfs.search.index import IndexReader
from webarcfs.search.searching import Searcher, SearchQuestion
from webarcfs.search.translation import Filter, Moment, ReadersView, Shown, Translator
from webarcfs.search.words import SNAPSHOT

pytestmark = pytest.mark.store
#: Archives that are tried; the soak has more.
_ARCHIVES = int(os.environ.get("SEARCH_ARCHIVES", "12"))


def _found(reader: IndexReader, shown: Shown, moment: Moment) -> set[tuple[str, str, int]]:
    """Path, blob and beginning of the versions that a filter leaves."""
    make = Translator(reader.schema)
    documents = make.but(Query.all_query(), make.term("mark", SNAPSHOT))
    query = Filter(make, shown).applied(documents, moment)
    page = reader.documents(query, 10_000)
    found = [(each.path, each.blob, each.since) for each in page.plain()]
    assert len(found) == page.total
    return set(found)


def _blob(body: str) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(body), body.encode())).hexdigest()


def _agree(archive: Archive, history: History) -> None:
    published(archive, history)
    recover(archive)
    bring_in_step(archive)
    view = ReadersView(Gate(archive, Reader(), clock=lambda: NOW))
    reader = generations.opened(archive)
    ever, all_of_them = set(), set()
    for number, state in enumerate(history.states):
        for path, body in state.items():
            version = (f"/{DOMAIN}/{path}", _blob(body), history.seq(history.span(number, path).start))
            all_of_them.add(version)
            if history.is_visible(number, path):
                ever.add(version)
    assert _found(reader, Shown(), Moment(ever=True)) == all_of_them
    assert _found(reader, view.shown(Moment(ever=True)), Moment(ever=True)) == ever
    last = len(history.steps) - 1
    for number in range(last + 1):
        moments = [Moment(history.seq(number))] + ([Moment()] if number == last else [])
        for moment in moments:
            staff = {(path, blob) for path, blob, _ in _found(reader, Shown(), moment)}
            assert staff == {(f"/{DOMAIN}/{path}", _blob(body)) for path, body in history.states[number].items()}
            seen = {(path, blob) for path, blob, _ in _found(reader, view.shown(moment), moment)}
            assert seen == {(f"/{DOMAIN}/{path}", _blob(body)) for path, body in history.at(number).items()}
    searcher = Searcher(archive, Gate(archive, Reader(), clock=lambda: NOW))
    every = SearchQuestion(words=f"site:{DOMAIN}", limit=1_000)
    answer = searcher.ask(every)
    assert searcher.count_versions(every) == len(ever)
    assert answer.total == len(answer.hits) == len({path for path, _, _ in ever})
    now = {f"/{DOMAIN}/{path}" for path in history.at(last)}
    assert answer.in_present == len({path for path, _, _ in ever} & now) == len(now)
    opened = {history.time(each).strftime("%Y-%m-%dT%H:%M:%S") for each in range(last + 1) if history.is_open(each)}
    for hit in answer.hits:
        times = {hit.commitTag.partition("@")[0], hit.since, hit.until, hit.first, hit.last, hit.wordsFrom, hit.wordsTo}
        assert times <= opened
        assert (hit.wordsFrom, hit.wordsTo) == (hit.first, hit.last)  # all versions are found
    groups = searcher.by_snapshot(SearchQuestion(words=f"site:{DOMAIN}", limit=100))
    assert {each.commitTag.partition("@")[0] for each in groups} <= opened


@given(HISTORIES)
@settings(
    max_examples=_ARCHIVES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_search_finds_what_the_gate_shows(tmp_path_factory: pytest.TempPathFactory, history: History) -> None:
    _agree(directory.create(tmp_path_factory.mktemp("gate") / "archive"), history)


def test_long_runs_of_held_snapshots(tmp_path: Path) -> None:
    """A run that is too long to list its spans is given as numbers."""
    states = (RecordState.RELEASED if number in (0, 30) else RecordState.COUNTED for number in range(35))
    steps = [Step("p", {"a": str(number), "b": "1"}, state, held=True) for number, state in enumerate(states)]
    _agree(directory.create(tmp_path / "archive"), History(steps))


def test_access_rules_decide_inside_the_query(tmp_path: Path) -> None:
    """Of the rules that fit a URL the heaviest decides, as in the gate: for hosts, folders, pages, times, readers."""
    archive = archives.make_archive(tmp_path)
    names = ("a", "a/b", "ab", "a/b/c", "c")
    for number in range(3):
        pages = {name: f"{number}-{name}".encode() for name in names if number != 1 or name != "c"}
        archives.publish(archive, DOMAIN, pages, FIRST + timedelta(days=number))  # type: ignore[arg-type]
    recover(archive)
    bring_in_step(archive)
    reader = generations.opened(archive)
    chance = random.Random(4)
    seen = set()
    for _ in range(examples(125)):
        rules = AccessRules(tuple(_rule(chance) for _ in range(chance.randrange(1, 6))))
        archive.access_rules.write_text(str(rules))
        for name in ("", "anna"):
            gate = Gate(archive, Reader(name), clock=lambda: NOW)
            shown = ReadersView(gate).shown(Moment(ever=True))
            found = {(path, since) for path, _, since in _found(reader, shown, Moment(ever=True))}
            allowed = {
                (each.path, each.first)
                for each in database.versions_of(archive.database, DOMAIN)
                if isinstance(gate.may(DOMAIN, each.path, each.first), Open)
            }
            assert found == allowed, str(rules)
            seen.add(len(found))
    assert len(seen) > 5  # the rules hid something, and not all


@pytest.mark.parametrize("words", ["apple OR pear", "apple", "title:apple OR pear", "apple pear"])
def test_the_order_of_a_readers_hits_tells_nothing_of_what_is_hidden(tmp_path: Path, words: str) -> None:
    """BM25 over all documents would: a word that hidden ones have counts less."""
    shown = {
        "1.html": "apple", "2.html": "pear", "3.html": "apple pear", "4.html": f"apple {'long ' * 50}",
        "5.html": f"pear pear {'long ' * 20}", "6.html": "<title>apple</title>pear",
        "7.html": "<title>pear</title>apple", "8.html": "apple apple apple",
    }  # fmt: skip
    orders, staff = set(), set()
    for number, word in enumerate(("nothing", "apple", "pear", "apple " * 20, f"pear {'long ' * 200}")):
        archive = directory.create(tmp_path / str(number))
        hidden = shown | {f"{each % 8 + 1}hidden{each}.html": f"{word} {each}" for each in range(30)}
        published(archive, History([Step("p", shown), Step("p", hidden, RecordState.COUNTED, held=True)]))
        recover(archive)
        bring_in_step(archive)
        question = SearchQuestion(words=words, limit=100, present=True)
        gate = Gate(archive, Reader(), clock=lambda: NOW)
        orders.add(tuple(hit.path for hit in Searcher(archive, gate).ask(question).hits))
        staff.add(tuple(hit.path for hit in Searcher(archive).ask(question).hits if "hidden" not in hit.path))
    assert len(orders) == 1 and next(iter(orders))
    assert len(staff) > 1 or words in ("apple", "apple pear")  # those who see all have the better order


def _rule(chance: random.Random) -> AccessRule:
    path = chance.choice(("", "a", "a/b", "a/", "c", "ab"))
    exact = chance.random() < 0.4
    key = (
        chance.choice(("org,", "org,example,"))
        if chance.random() < 0.2
        else rule_key(f"http://{DOMAIN}/{path}", exact=exact)
    )
    moment: list[datetime | None] = [None, None, *(FIRST + timedelta(days=each) for each in range(3))]
    return AccessRule(
        key=key,
        access=chance.choice(list(Access)),
        user=chance.choice(("", "", "anna", "bert")),
        after=chance.choice(moment),
        before=chance.choice(moment),
        lapses=chance.choice((None, None, NOW - timedelta(days=1), NOW + timedelta(days=1))),
        id=f"{chance.random()}",
    )


def test_a_closed_page_is_found_by_the_reader_whom_a_rule_names(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "archive")
    published(archive, History([Step("p", {"a": "1", "b": "2"}, closed_for="30 years")]))
    recover(archive)
    bring_in_step(archive)
    rule = AccessRule(key=rule_key(f"http://{DOMAIN}/a", exact=True), access=Access.ALLOW, user="anna", id="1")
    archive.access_rules.write_text(str(AccessRules((rule,))))
    question = SearchQuestion(words=f"site:{DOMAIN}")
    found = {name: Searcher(archive, Gate(archive, Reader(name), clock=lambda: NOW)).ask(question).total
             for name in ("", "anna", "bert")}  # fmt: skip
    assert found == {"": 0, "anna": 1, "bert": 0}


def test_rules_take_from_the_urls_and_from_those_of_the_present(tmp_path: Path) -> None:
    """Where rules alone hide something, a reader's counts are those of the questions for each state."""
    archive = directory.create(tmp_path / "archive")
    published(archive, History([
        Step("p", {"a.html": "lion 1", "b.html": "lion 2", "c.html": "lion 3", "d.html": "lion 4"}),
        Step("p", {"a.html": "lion 5", "b.html": "zebra 6", "c.html": "lion 7", "d.html": "lion 4"}),
    ]))  # fmt: skip
    recover(archive)
    bring_in_step(archive)
    own, other = (rule_key(f"http://{DOMAIN}/{name}.html", exact=True) for name in "ac")
    rules = AccessRules((
        AccessRule(key=own, access=Access.BLOCK, before=FIRST + timedelta(hours=12), id="1"),
        AccessRule(key=other, access=Access.BLOCK, id="2"),
        AccessRule(key=other, access=Access.ALLOW, user="anna", id="3"),
    ))  # fmt: skip
    archive.access_rules.write_text(str(rules))
    counts: dict[str | None, tuple[int, int | None]] = {}
    for name in (None, "", "anna"):
        searcher = Searcher(archive, None if name is None else Gate(archive, Reader(name), clock=lambda: NOW))
        answer = searcher.ask(SearchQuestion(words="lion"))
        assert answer.in_present == searcher.ask(SearchQuestion(words="lion", present=True)).total
        counts[name] = answer.total, answer.in_present
    assert counts == {None: (4, 3), "": (3, 2), "anna": (4, 3)}


def test_a_page_that_a_rule_gives_to_a_reader_weighs_no_more(tmp_path: Path) -> None:
    """One that all see, and a rule names for a reader, is found once: better pages stand before it."""
    archive = directory.create(tmp_path / "archive")
    published(archive, History([Step("p", {"a.html": "lion zebra", "b.html": "lion zebra okapi"})]))
    recover(archive)
    bring_in_step(archive)
    question = SearchQuestion(words="lion OR zebra OR okapi")
    rule = AccessRule(key=rule_key(f"http://{DOMAIN}/a.html", exact=True), access=Access.ALLOW, user="anna", id="1")
    archive.access_rules.write_text(str(AccessRules((rule,))))
    for name in ("", "anna"):
        hits = Searcher(archive, Gate(archive, Reader(name), clock=lambda: NOW)).ask(question).hits
        assert [hit.path for hit in hits] == [f"/{DOMAIN}/b.html", f"/{DOMAIN}/a.html"], name
