"""Conditions of users (/Cl-6/, /Db-5.2/): they read the view `metadata`, and nothing else whatever they hold."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.archives import CREATED, FIRST
from tests.support.indexing import change
from tests.support.properties import examples
from webarcfs.archive.index.database import Database
from webarcfs.archive.index.query import ask
from webarcfs.archive.model.errors import BadCondition, DatabaseDamaged, NotFound, TookTooLong, WebarcError
from webarcfs.archive.model.metadata import CommitMessage, CommitTag, MetaData

pytestmark = pytest.mark.store
TAG = CommitTag(FIRST, "e.org")
TITLES = {"/a": "plain", "/b": "it's quoted", "/c": "50 % ; -- DROP TABLE version", "/d": "ümläut"}


def meta(path: str, title: str) -> MetaData:
    kind = "text/html" if path < "/c" else "application/pdf"
    return MetaData(f"http://e.org{path}", kind, title, f"/e.org{path}", "e.org", FIRST, CREATED, TAG)


DOCUMENTS = [meta(path, title) for path, title in TITLES.items()]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("asking") / "webarc.db"
    with Database(path) as opened:
        trailers = (("Publication", "test"), ("Complete", "yes"), ("Sequence", "1"))
        opened.record(CommitMessage(TAG, trailers), [change(each.path, each) for each in DOCUMENTS])
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before, "a condition changed the database"
    assert list(path.parent.iterdir()) == [path]


def paths(database: Path, where: str = "", order_by: str = "path", **more: object) -> list[str]:
    return [each.path.removeprefix("/e.org") for each in ask(database, where, order_by, **more)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("", ["/a", "/b", "/c", "/d"]),
        ("mimeType = 'application/pdf'", ["/c", "/d"]),
        ("title LIKE '%QUOTED%'", ["/b"]),
        ("title = 'it''s quoted' OR path GLOB '*/d'", ["/b", "/d"]),
        ("title = '50 % ; -- DROP TABLE version'", ["/c"]),
        ("url IN (SELECT url FROM metadata WHERE title = 'plain')", ["/a"]),
        ("title <> 'with' AND title <> 'a''with' /* with */ AND path = '/e.org/a' -- with", ["/a"]),
        ("lower(title) LIKE 'ü%' -- a comment", ["/d"]),
        ("crawlTime >= '2026-11-21' AND substr(crawlTime, 1, 4) = '2026' AND date(createTime) < '2027-01-01'",
         ["/a", "/b", "/c", "/d"]),
        ("0", []),
    ],
)  # fmt: skip
def test_a_condition_chooses_documents(database: Path, where: str, expected: list[str]) -> None:
    """/Cl-6/: the answer is metadata."""
    assert paths(database, where) == expected
    assert list(ask(database, "path = '/e.org/b'")) == [DOCUMENTS[1]]


def test_order_and_limit(database: Path) -> None:
    """/Cl-6/: ORDER BY as the user writes it."""
    assert paths(database, "", "mimeType DESC, path DESC") == ["/b", "/a", "/d", "/c"]
    assert paths(database, "", "path DESC", limit=2) == ["/d", "/c"]
    assert paths(database, limit=0) == []


HOSTILE = [
    "1; DROP TABLE version",
    "1) UNION SELECT name, sql, 1, 2, 3, 4, 5, 6 FROM sqlite_master --",
    "1) UNION SELECT * FROM metadata --",
    "url IN (SELECT name FROM sqlite_master)",
    "url IN (SELECT name FROM domain)",
    "EXISTS (SELECT seq_from FROM version WHERE seq_from > 0)",
    "EXISTS (WITH metadata AS (SELECT publication AS p FROM snapshot) SELECT 1 FROM metadata WHERE p > '')",
    "EXISTS (wItH/**/metadata AS (SELECT publication AS p FROM snapshot) SELECT 1 FROM metadata WHERE p > '')",
    "url IN (SELECT publication FROM snapshot AS metadata)",
    "url IN (SELECT publication FROM (SELECT publication FROM snapshot) AS metadata)",
    "url IN (SELECT name FROM pragma_table_info('version'))",
    "load_extension('/tmp/x.so')",
    "writefile('/tmp/x', 'x')",
    "readfile('/etc/passwd') = ''",
    "randomblob(1000000000) = ''",
    "zeroblob(1000000000) = ''",
    "url = printf('%1000000000s', 'x')",
    "fts3_tokenizer('x') = 1",
    "ATTACH 'x' AS y",
    "1); PRAGMA writable_schema = 1; --",
    "(((",
    "url = ",
    "uri = 'x'",
    "'",
    '"',
    "url = 'x' OR `",
    "/*",
    "1 /* ; ",
    "x'zz'",
    "\0",
    "1\0; DROP TABLE version",
    "?1 = :where",
    "(" * 3000 + "1" + ")" * 3000,
    "1 OR " * 20000 + "1",
    "title = '" + "x" * 1_000_000 + "'",
    "[" * 1_000_000,
    "['\"`" * 100_000,
    "\ud800",
]


@pytest.mark.parametrize("where", HOSTILE, ids=lambda where: ascii(where[:30]))
@pytest.mark.parametrize("part", ["where", "order"])
def test_hostile_conditions_reach_nothing(database: Path, where: str, part: str) -> None:
    """What is not a condition over the view is refused, with a message (or, where it is harmless, finds nothing)."""
    try:
        found = paths(database, where) if part == "where" else paths(database, "", where)
    except WebarcError as error:
        assert isinstance(error, BadCondition), error
        assert str(error)
    else:
        assert set(found) <= set(TITLES)


@pytest.mark.parametrize(
    "where",
    [
        "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n)",
        "(SELECT count(*) FROM metadata a, metadata b, metadata c, metadata d, metadata e, metadata f, metadata g,"
        " metadata h, metadata i, metadata j, metadata k, metadata l, metadata m, metadata n, metadata o) > 0",
    ],
)
def test_what_never_ends_is_ended(database: Path, where: str) -> None:
    begun = time.monotonic()
    with pytest.raises((TookTooLong, BadCondition)):
        paths(database, where, seconds=0.3)
    assert time.monotonic() - begun < 60


#: 90,000 letters, another text for each row, so that it is computed for each.
LONG = "substr(title, 1, 0) || " + "replace(" * 4 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 3 + ", 'a', 'aaaaaaaaa')"
#: What one function may take long for.
SLOW = {
    "instr": f"instr({LONG}, substr({LONG}, 1, 45000) || 'b')",
    "replace": f"length(replace({LONG}, substr({LONG}, 1, 45000) || 'b', ''))",
    "replace that grows": "length(" + "replace(" * 30 + "title" + ", 'a', 'aaaaaaaaaa')" * 30 + ")",
    "trim": f"length(trim({LONG}, '{'b' * 8_000}a'))",
    "ltrim": f"length(ltrim({LONG}, '{'b' * 8_000}a'))",
    "rtrim": f"length(rtrim({LONG}, '{'b' * 8_000}a'))",
    "like with a long text": f"({LONG}) LIKE '%{'a' * 247}b'",
    "like with many wildcards": f"({LONG}) LIKE '{'%a' * 124}b'",
    "like with single wildcards": f"({LONG}) LIKE '{'%_' * 124}b'",
    "like with a pattern that is too long": f"({LONG}) LIKE '{'%a' * 500}b'",
    "like whose pattern is made": f"({LONG}) LIKE substr('%' || {LONG}, 1, 240) || 'b'",
    "glob with a long text": f"({LONG}) GLOB '*{'a' * 247}b'",
    "glob with many wildcards": f"({LONG}) GLOB '{'*?' * 124}b'",
    "glob with a set": f"({LONG}) GLOB '*[{'b' * 240}a]c'",
    "glob with sets": f"({LONG}) GLOB '*{f'[{20 * chr(98)}a]' * 10}c'",
    "strftime": f"strftime('%s' || {LONG}, 'now')",
    "for many rows": "(SELECT count(*) FROM metadata AS a, metadata AS b, metadata AS c, metadata AS d WHERE "
    f"instr({LONG}, substr({LONG}, 1, 45000) || 'b') = -1)".replace(
        "title", "a.title || b.title || c.title || d.title"
    ),
    "many of them": " + ".join([f"instr({LONG}, substr({LONG}, 1, 45000) || 'b')"] * 4),
}


@pytest.mark.parametrize("slow", SLOW)
@pytest.mark.parametrize("part", ["where", "order"])
def test_no_function_outlasts_the_time_of_an_answer_by_much(database: Path, slow: str, part: str) -> None:
    """SQLite looks at the clock between two rows, not inside a function: half a minute for one `trim`."""
    condition = f"({SLOW[slow]}) = -1"
    begin = time.thread_time()
    with suppress(TookTooLong, BadCondition):
        paths(database, condition if part == "where" else "1", condition if part == "order" else "path", seconds=0.1)
    assert time.thread_time() - begin < 4


@given(
    st.sampled_from(["trim", "ltrim", "rtrim"]),
    st.one_of(st.text("ab ü", max_size=6), st.integers(0, 120)),
    st.one_of(st.text("ab ü", max_size=3), st.integers(0, 12), st.none()),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_trim_means_what_it_means_to_sqlite(database: Path, name: str, text: object, characters: object) -> None:
    values = ["NULL" if each is None else f"'{each}'" if isinstance(each, str) else str(each)
              for each in (text, characters)]  # fmt: skip
    with closing(sqlite3.connect(":memory:")) as plain:
        (expected,) = plain.execute(f"SELECT quote({name}({values[0]}, {values[1]}))").fetchone()
    quoted = expected.replace("'", "''")
    where = f"quote({name}({values[0]}, {values[1]})) = '{quoted}' AND path = '/e.org/a'"
    assert paths(database, where) == ["/a"]


#: Condition, order, and what is said, with the mark below the place.
COMPLAINTS = [
    ("mimetipe = 'text/html'", "", ["no such column: mimetipe", "  mimetipe = ", "  ^", "did you mean mimeType?"]),
    ('title = "nothing" AND zzz', "", ["no such column: zzz", f"\n  {' ' * 22}^", "the columns are url, mimeType"]),
    ("title = 'zzz' AND zzz = 1", "", ["no such column: zzz", f"\n  {' ' * 18}^"]),
    ("mimeType = text/html", "", ["no such column: text", f"\n  {' ' * 11}^", "in single quotes"]),
    ("url = 'a' ANDD title = 'b'", "", ["near", "ANDD", f"\n  {' ' * 10}^"]),
    ("title = 'AND' AND AND url = 'AND'", "", [f"\n  {' ' * 18}^"]),
    ("-- AND\n url = 'x' AND AND", "", ["\n   url = 'x' AND AND", f"\n  {' ' * 15}^"]),
    ("url = ", "", [f"\n  {' ' * 6}^", "ends too early"]),
    ("(url = 'a') AND (", "", [f"\n  {' ' * 17}^", "ends too early"]),
    ("url = 'a')", "", ["closes what was not opened", f"\n  {' ' * 9}^"]),
    ("1=1) OR (1=1", "", ["closes what was not opened", f"\n  {' ' * 3}^"]),
    ("1", "lower(path)), (url", ["closes what was not opened", f"\n  {' ' * 11}^"]),
    ("(url = ')') AND [)] = 1 -- )\n)", "", ["closes what was not opened", "\n  )", "\n  ^"]),
    ("1 /* (", "", ["never closed", f"\n  {' ' * 2}^"]),
    ("1", "path /*", ["never closed", f"\n  {' ' * 5}^"]),
    ("url = 'a", "", ["unrecognized token", f"\n  {' ' * 6}^", "never closed"]),
    ("crawlTime > 2026-11-21T03:00:00", "", ["unrecognized token", f"\n  {' ' * 20}^"]),
    ("nofunc(url)", "", ["no such function: nofunc", "\n  ^"]),
    ("lower(url, 1) = 'x'", "", ["wrong number of arguments", "\n  ^"]),
    ("count(*) > 1", "", ["misuse of aggregate", "\n  ^"]),
    ("url IN (SELECT name FROM domain)", "", ["prohibited", f"\n  {' ' * 15}^", "view metadata"]),
    ("load_extension('x')", "", ["not authorized", "\n  ^"]),
    ("url = :url", "", ["stands for nothing", f"\n  {' ' * 6}^"]),
    ("1", "crawlTime DESCC", ["near", "  crawlTime DESCC", f"\n  {' ' * 10}^"]),
    ("1", "crawlTime,", [f"\n  {' ' * 10}^", "ends too early"]),
    ("1", "path DESC; DROP TABLE version", ["one statement", f"\n  {' ' * 9}^"]),
    ("url = '" + "x" * 500 + "' AND AND", "", ["AND AND", f"\n  {' ' * 70}^"]),
]


@pytest.mark.parametrize(("where", "order_by", "said"), COMPLAINTS)
def test_errors_show_where_the_condition_is_wrong(database: Path, where: str, order_by: str, said: list[str]) -> None:
    with pytest.raises(BadCondition) as caught:
        paths(database, where, order_by)
    assert [words for words in said if words not in str(caught.value)] == [], str(caught.value)


WORDS = ["url", "title", "'", '"', "(", ")", "=", ";", "--", "/*", "*/", ",", "SELECT", "FROM", "domain"]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS))
       .map(" ".join))  # fmt: skip
def test_any_text_is_answered_or_refused(database: Path, where: str) -> None:
    try:
        assert set(paths(database, where, seconds=5)) <= set(TITLES)
    except BadCondition as error:
        assert str(error)


def test_no_database_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="recover"):
        list(ask(tmp_path / "webarc.db"))
    (tmp_path / "webarc.db").write_bytes(b"no database" * 1000)
    with pytest.raises(DatabaseDamaged, match="recover"):
        list(ask(tmp_path / "webarc.db"))


def test_it_is_read_only(database: Path) -> None:
    """/Db-5.1/"""
    found = ask(database)
    next(found)
    with sqlite3.connect(database) as other:
        assert other.execute("PRAGMA quick_check").fetchone() == ("ok",)
    found.close()  # type: ignore[attr-defined]
