"""Readers' conditions that try to learn what is hidden: by answers, by errors, by the work that they cause, by time."""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from tests.support.histories import DOMAIN, History, Step
from tests.support.recorded import published
from webarcfs.access import reader_stores
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import query
from webarcfs.archive.index.query import Condition, equalities
from webarcfs.archive.model.errors import WebarcError

pytestmark = pytest.mark.store

#: Questions that are asked, and pairs whose times are compared; the soak has 1,000 and 200. With few pairs only a
#: large difference tells.
_FEW = 100
_QUESTIONS = int(os.environ.get("READER_QUESTIONS", "40"))
_PAIRS = int(os.environ.get("READER_PAIRS", "6"))
_BOMB = "abs(-9223372036854775807-1)"
_MANY, _MORE = (f"replace('{'a' * 40}', 'a', '{letter * 50}')" for letter in "bc")
#: A fifth of a second: each looks for 30,000 letters in 60,000.
_SLOW = "max(0, {})".format(
    ", ".join(f"instr(replace({_MANY}, 'b', '{'c' * 30}'), replace({_MORE}, 'c', '{'c' * 15}') || {number})"
              for number in range(20))
)  # fmt: skip
_LONG = f"length(replace(replace('{'a' * 50}', 'a', '{'b' * 50}'), 'b', '{'c' * 50}'))"
#: Conditions that hold for a row that is looked for.
_TESTS = (
    "url = 'http://{domain}/{word}.html'",
    "url LIKE '%/{word}%'",
    "path GLOB '*{word}*'",
    "instr(url, '{word}')",
    "url || '' = 'http://{domain}/{word}.html'",
    "url BETWEEN 'http://{domain}/{word}' AND 'http://{domain}/{word}~'",
    "substr(url, -{length}) = '{word}.html'",
    "length(url) > 0 AND lower(path) LIKE '%{word}%'",
    "url IN ('http://{domain}/{word}.html', '')",
    "min(url, 'http://{domain}/{word}.html') = url AND path LIKE '%{word}%'",
)
#: What would tell: a row, an error, a value that is too long, slowness.
_CONDITIONS = (
    "{test}",
    "NOT ({test})",
    "CASE WHEN {test} THEN {bomb} ELSE 0 END = 1",
    "({test}) AND {bomb}",
    "iif({test}, {bomb}, 1)",
    "unlikely({test}) AND {bomb}",
    "likely(status > 0) AND CASE WHEN {test} THEN {bomb} ELSE 1 END",
    "CASE WHEN {test} THEN {long} ELSE 1 END",
    "CASE WHEN {test} THEN {slow} ELSE 1 END = 1",
    "status > 0 OR ({test} AND {bomb})",
    "coalesce(nullif({test}, 0), 0) = 0 OR {bomb}",
)
_ORDERS = ("", "", "url", "CASE WHEN {test} THEN {bomb} ELSE 0 END", "iif({test}, {slow}, url)")


def _archive(folder: Path, word: str, count: int) -> Archive:
    """An archive with some public documents, and as many hidden ones, one of which has a word in its URL."""
    archive = directory.create(folder)
    shown = {f"{number:04}.html": "x" for number in range(count)}
    hidden = shown | {f"{word}.html": word} | {f"h{number:04}.html": "y" for number in range(count)}
    published(archive, History([Step("p", shown), Step("p", hidden, RecordState.COUNTED, held=True)]))
    recover(archive)
    return archive


def _question(chance: random.Random, word: str) -> Condition:
    def form(text: str) -> str:
        test = chance.choice(_TESTS).format(domain=DOMAIN, word=word, length=len(f"{word}.html"))
        return text.format(test=test, bomb=_BOMB, slow=_SLOW, long=_LONG)

    return Condition(
        form(chance.choice(_CONDITIONS)), form(chance.choice(_ORDERS)), chance.choice((None, None, 1, 1000))
    )


def _asked(archive: Archive, condition: Condition) -> object:
    """What a reader is told: the rows, or the error."""
    narrowed = reader_stores.narrowed(Gate(archive, Reader()))
    assert narrowed is not None
    try:
        rows = query.ask(archive.database, condition.where, condition.order_by, condition.limit, narrowed=narrowed)
        return [str(row) for row in rows]
    except WebarcError as error:
        return type(error), str(error).replace(str(archive.root), "")


def _steps(archive: Archive, condition: Condition) -> int:
    """How many steps SQLite takes for a reader's answer."""
    narrowed, steps = reader_stores.narrowed(Gate(archive, Reader())), 0
    assert narrowed is not None

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with closing(query.connected(archive.database)) as connection:
        narrowed(connection, equalities(condition.where), query.ANY_ORIGIN)
        connection.set_progress_handler(count, 1)
        try:
            connection.execute(query._statement("metadata/ask", condition)).fetchall()
        except sqlite3.Error:
            return -steps
    return steps


def test_many_questions_learn_nothing(tmp_path: Path) -> None:
    """Two archives that differ only in what is hidden give the same answers, by as many steps."""
    with_word, without = _archive(tmp_path / "a", "zebra", 4), _archive(tmp_path / "b", "other", 4)
    chance, outcomes = random.Random(7), set()
    for word in ["zebra"] * _QUESTIONS + ["0002"] * 50:
        condition = _question(chance, word)
        told = _asked(with_word, condition)
        assert told == _asked(without, condition), condition
        assert _steps(with_word, condition) == _steps(without, condition), condition
        outcomes.add((word, type(told)))
    assert ("0002", tuple) in outcomes and ("0002", list) in outcomes  # of a document that is shown, they learn


def test_time_tells_nothing(tmp_path: Path) -> None:
    """Medians of interleaved pairs: a hidden word beside an absent one, as far apart as two absent ones."""
    archive = _archive(tmp_path / "a", "zebra", 300)
    test = f"CASE WHEN url LIKE '%/{{word}}%' THEN {_SLOW} ELSE 1 END = 1"

    def seconds(word: str) -> float:
        begun = time.perf_counter()
        _asked(archive, Condition(test.format(word=word)))
        return time.perf_counter() - begun

    def apart(one: str, other: str) -> Iterator[float]:
        for number in range(_PAIRS):
            pair = (one, other) if number % 2 else (other, one)
            spans = {word: seconds(word) for word in pair}
            yield spans[one] / spans[other] - 1

    equal = [*apart("absen", "nothi")]
    told = abs(statistics.median(apart("zebra", "absen")))
    noise = statistics.stdev(equal) / _PAIRS**0.5
    print(
        f"\nhidden beside absent: {told:.2%}; two absent ones: {statistics.median(equal):.2%}, give or take {noise:.2%}"
    )
    assert told <= (1 if _PAIRS < _FEW else abs(statistics.median(equal)) + 4 * noise)
    assert statistics.median(apart("0002", "absen")) > 1, "of a document that is shown, time tells"


_FORMS = (
    Condition("url = 'x'"), Condition("title LIKE 'x%'"), Condition("crawlTime > '2020' AND status < 400"),
    Condition("commitTag = 'x'", "crawlTime DESC", 5), Condition("", "title"), Condition("status > 0", "path, url", 1),
    Condition("url IN ('a', 'b')"), Condition("url = 'a' OR title = 'b'"), Condition("domain = 'x' AND path > '/x'"),
    Condition("captureTime < '2020'", "captureTime"), Condition("likely(url = 'x') AND unlikely(mimeType = 'y')"),
    Condition("createTime IS NULL"), Condition("", "", 1), Condition("status = 404", "length(title) DESC"),
)  # fmt: skip


@pytest.mark.parametrize("condition", _FORMS, ids=str)
@pytest.mark.parametrize(
    "columns",
    ["", "SELECT count(*) FROM metadata", "SELECT domain, max(title) FROM metadata"],
    ids=["rows", "count", "max"],
)
def test_the_gate_is_innermost_in_each_form(tmp_path: Path, condition: Condition, columns: str) -> None:
    """EXPLAIN: the gate's rows are made first, by a subquery to which the reader's terms add nothing."""
    archive = _archive(tmp_path / "a", "zebra", 2)
    narrowed = reader_stores.narrowed(Gate(archive, Reader()))
    assert narrowed is not None
    statement = query._statement("metadata/ask", condition)
    if columns:
        rest = statement.partition("FROM metadata")[2]
        statement = f"{columns}{rest}"
    with closing(query.connected(archive.database)) as connection:
        narrowed(connection, equalities(condition.where), query.ANY_ORIGIN)

        def inner(text: str) -> tuple[list[str], list[str]]:
            rows = connection.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
            top = [(number, said) for number, parent, _, said in rows if parent == 0]
            inside = {top[0][0]}
            for number, parent, _, _ in rows:
                inside |= {number} if parent in inside else set()
            return [said for _, said in top], [said for number, _, _, said in rows if number in inside]

        top, own = inner(statement)
        assert top[0] in ("CO-ROUTINE metadata", "MATERIALIZE metadata"), top
        assert top[1] in ("SCAN metadata", "SEARCH metadata"), top  # the latter for one max()
        whole = inner(query._statement("metadata/ask", Condition("1")))[1]
        assert set(own[1:]) <= set(whole[1:])
        assert columns or own[1:] == whole[1:]
