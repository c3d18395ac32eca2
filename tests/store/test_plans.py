"""Which way SQLite goes for the questions that must not cost more as an archive grows (sql/schema.sql; /Cl-6/)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.archives import FIRST
from tests.support.indexing import change
from webarcfs.archive.config.directory import sql
from webarcfs.archive.index import query
from webarcfs.archive.index.database import Database
from webarcfs.archive.index.query import Condition, ask
from webarcfs.archive.model.metadata import CommitMessage, CommitTag, MetaData

pytestmark = pytest.mark.store
TAG = CommitTag(FIRST, "e.org")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "webarc.db"
    with Database(path) as opened:
        trailers = (("Publication", "test"), ("Complete", "yes"), ("Sequence", "1"))
        found = MetaData("http://e.org/a", "text/html", "t", "/e.org/a", "e.org", FIRST, FIRST, TAG)
        opened.record(CommitMessage(TAG, trailers), [change(found.path, found)])
    return path


def plan(database: Path, where: str, order_by: str, limit: int | None = 100) -> Iterator[str]:
    """SQLite's steps, outermost loop first, with the connection that `ask` uses."""
    with closing(query.connected(database)) as connection:
        query._fence(connection, 5.0)
        statement = query._statement("metadata/ask", Condition(where, order_by, limit))
        yield from (str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))


QUESTIONS = {
    "url": ("url = 'http://e.org/a'", "", "document USING INDEX sqlite_autoindex_document_1 (url=?)"),
    "url by time": ("url = 'http://e.org/a'", "crawlTime DESC", "(url=?)"),
    "path": ("path = '/e.org/a'", "", "(path=?)"),
    "domain and time": (f"domain = 'e.org' AND crawlTime = '{FIRST:%Y-%m-%dT%H:%M:%S}'", "", "(name=?)"),
    "domain since": ("domain = 'e.org' AND crawlTime >= '2026-11-01'", "", "(name=?)"),
    "domain and time by path": ("domain = 'e.org' AND crawlTime = '2026-11-21T03:00:00'", "path", "(name=?)"),
    "type by time": ("mimeType = 'text/html'", "crawlTime", "SCAN snapshot USING INDEX snapshot_by_time"),
    "type by time, newest": ("mimeType = 'text/html'", "crawlTime DESC", "SCAN snapshot USING INDEX snapshot_by_time"),
    "type of a domain by time": ("mimeType = 'text/html' AND domain = 'e.org'", "crawlTime DESC", "(name=?)"),
    "everything by time": ("", "crawlTime DESC", "SCAN snapshot USING INDEX snapshot_by_time"),
    "a snapshot": (f"commitTag = '{TAG}'", "", "(commitTag=?)"),
    "a snapshot by path": (f"commitTag = '{TAG}'", "path", "(commitTag=?)"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_is_read_whole_and_nothing_is_sorted(database: Path, name: str) -> None:
    """Only the snapshots may be gone through, which are few; so LIMIT ends a query early, however much there is.

    The versions of one URL are sorted: it may have had two places, so that none of them is in the order of time alone.
    """
    where, order_by, first = QUESTIONS[name]
    steps = list(plan(database, where, order_by))
    assert first in steps[0], steps
    sorted_by = [step for step in steps if "TEMP B-TREE" in step]
    assert sorted_by == (["USE TEMP B-TREE FOR ORDER BY"] if name == "url by time" else []), steps
    assert not [step for step in steps if "AUTOMATIC" in step], steps
    assert not [step for step in steps if step.startswith("SCAN") and not step.startswith("SCAN snapshot")], steps


def test_they_are_answered(database: Path) -> None:
    for where, order_by, _ in QUESTIONS.values():
        assert [meta.url for meta in ask(database, where, order_by)] == ["http://e.org/a"], (where, order_by)


@pytest.mark.parametrize(
    "statement",
    [
        *("metadata/close_version", "metadata/select_split", "metadata/insert_version", "metadata/select_current"),
        *("metadata/select_met_arc", "metadata/select_met_redirect", "captures/met_block"),
    ],
)
def test_recording_looks_up_what_it_changes(database: Path, statement: str) -> None:
    """A crawl's cost per document does not grow with the archive either, nor does a look at one URL."""
    text = sql(statement)
    values = dict.fromkeys(re.findall(r":(\w+)", text), 1)
    with closing(sqlite3.connect(database)) as connection:
        steps = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    assert not [step for step in steps if step.startswith("SCAN")], steps


@pytest.mark.parametrize("statement", ["metadata/select_met_arcs", "metadata/select_met_redirects"])
def test_only_the_questions_of_many_are_gone_through(database: Path, statement: str) -> None:
    text = sql(statement)
    values = dict.fromkeys(re.findall(r":(\w+)", text), "[]")
    with closing(sqlite3.connect(database)) as connection:
        steps = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    assert [step for step in steps if step.startswith("SCAN")] == ["SCAN wanted VIRTUAL TABLE INDEX 1:"], steps
    assert any(step.startswith("SEARCH") for step in steps), steps
