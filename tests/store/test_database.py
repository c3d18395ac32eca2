"""webarc.db (/Db-1/ … /Db-6/): versions with a span, the view `metadata`, readers of any user."""

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.archives import CREATED, FIRST
from tests.support.indexing import change
from tests.support.properties import examples
from tests.support.users import Other, open_folder
from webarcfs.archive.config import directory
from webarcfs.archive.index import sqlite_file
from webarcfs.archive.index.database import Database, DocumentChange
from webarcfs.archive.model.errors import Busy, DatabaseDamaged
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, CommitMessage, CommitTag, MetaData

pytestmark = pytest.mark.store
DOMAIN = "e.org"


def tag(number: int, domain: str = DOMAIN) -> CommitTag:
    return CommitTag(FIRST + timedelta(seconds=number), domain)


def message(which: CommitTag, sequence: int) -> CommitMessage:
    trailers = (("Publication", "test"), ("Complete", "yes"), ("Sequence", str(sequence)))
    return CommitMessage(which, trailers)


def meta(path: str, which: CommitTag, title: str = "", scheme: str = "http", created: datetime = CREATED) -> MetaData:
    url = f"{scheme}://{which.domain}{path}"
    where = f"/{which.domain}{path}"
    return MetaData(url, "text/html", title, where, which.domain, which.crawl_time, created, which)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "webarc.db") as opened:
        yield opened


def test_a_row_for_each_document_and_snapshot(database: Database) -> None:
    """/Db-3/: the specification's flat table of eight columns; commitTag and crawlTime are the snapshot's."""
    one, two = tag(1), tag(2)
    a, b = meta("/a", one, "A"), meta("/b", one, "B")
    database.record(message(one, 1), [change(a.path, a), change(b.path, b)])
    newer = meta("/b", two, "B2")
    database.record(message(two, 2), [change(b.path, newer)])
    rows = list(database.dump())
    assert list(rows[0]) == [*FIELDS, *CAPTURE_FIELDS, "surt", "blob", "head", "size", "stored"]
    found = [(row["commitTag"], row["crawlTime"], row["url"], row["title"]) for row in rows]
    assert found == [
        (str(one), "2026-11-21T03:00:01", a.url, "A"),
        (str(one), "2026-11-21T03:00:01", b.url, "B"),
        (str(two), "2026-11-21T03:00:02", a.url, "A"),
        (str(two), "2026-11-21T03:00:02", b.url, "B2"),
    ]
    assert database.count_versions() == 3, "a document that stays costs no row"


def test_an_unchanged_snapshot_costs_no_version(database: Database) -> None:
    a = meta("/a", tag(1))
    database.record(message(tag(1), 1), [change(a.path, a)])
    for number in range(2, 50):
        database.record(message(tag(number), number), [])
    assert database.count_versions() == 1
    assert len(list(database.dump())) == 49


def test_removed_and_back_again(database: Database) -> None:
    a = meta("/a", tag(1))
    for number, found in enumerate([a, None, a, None], 1):
        database.record(message(tag(number), number), [change(a.path, found)])
    assert [row["commitTag"] for row in database.dump()] == [str(tag(1)), str(tag(3))]


def test_http_and_https_share_a_path(database: Database) -> None:
    plain, secure = meta("/a", tag(1)), meta("/a", tag(2), scheme="https")
    database.record(message(tag(1), 1), [change(plain.path, plain)])
    database.record(message(tag(2), 2), [change(secure.path, secure)])
    assert [row["url"] for row in database.dump()] == [plain.url, secure.url]


def test_a_snapshot_is_taken_in_once(database: Database, tmp_path: Path) -> None:
    """Two processes that catch up at the same time: the second finds it done."""
    a = meta("/a", tag(1), "right")
    database.record(message(tag(1), 1), [change(a.path, a)])
    with Database(tmp_path / "webarc.db") as other:
        other.record(message(tag(1), 1), [change(a.path, meta("/a", tag(1), "wrong"))])
    assert [row["title"] for row in database.dump()] == ["right"]
    assert database.indexed(DOMAIN) == {str(tag(1))}
    assert database.indexed("other.org") == set()


def test_two_snapshots_of_one_number_are_a_fault(database: Database) -> None:
    database.record(message(tag(1), 1), [])
    with pytest.raises(DatabaseDamaged, match="sequence"):
        database.record(message(tag(1, "f.org"), 1), [])
    assert database.indexed("f.org") == set()


def test_a_snapshot_is_whole_or_not_there(database: Database) -> None:
    def changes() -> Iterator[DocumentChange]:
        a = meta("/a", tag(1))
        yield change(a.path, a)
        raise KeyError("the repository is damaged here")

    with pytest.raises(KeyError):
        database.record(message(tag(1), 1), changes())
    assert list(database.dump()) == [] and database.indexed(DOMAIN) == set()


pages = st.dictionaries(st.sampled_from(["/a", "/b", "/c", "/d"]), st.sampled_from(["1", "2", "3"]))


@settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([DOMAIN, "f.org"]), pages), max_size=8))
def test_the_view_is_the_naive_table(tmp_path: Path, states: list[tuple[str, Mapping[str, str]]]) -> None:
    """Against a table with a row for each document and snapshot."""
    path = tmp_path / "model.db"
    path.unlink(missing_ok=True)
    now: dict[str, Mapping[str, str]] = {DOMAIN: {}, "f.org": {}}
    naive: list[tuple[str, str, str]] = []
    with Database(path) as database:
        for number, (domain, state) in enumerate(states, 1):
            which = tag(number, domain)
            old, now[domain] = now[domain], state
            touched = [page for page in sorted(old.keys() | state.keys()) if old.get(page) != state.get(page)]
            changes = [
                change(f"/{domain}{page}", meta(page, which, state[page]) if page in state else None)
                for page in touched
            ]
            database.record(message(which, number), changes)
            naive += [(str(which), f"/{domain}{page}", title) for page, title in state.items()]
        assert [(row["commitTag"], row["path"], row["title"]) for row in database.dump()] == sorted(naive)


# -- files -------------------------------------------------------------------------------------------------------------


def test_nothing_is_left_beside_it(tmp_path: Path) -> None:
    """No WAL left behind."""
    with Database(tmp_path / "webarc.db") as database:
        a = meta("/a", tag(1))
        database.record(message(tag(1), 1), [change(a.path, a)])
        assert [path.name for path in tmp_path.iterdir()] == ["webarc.db"]
    assert [path.name for path in tmp_path.iterdir()] == ["webarc.db"]


READER = """
import sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(connection.execute(sys.argv[2]).fetchone()[0])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_reader_of_another_user_can_open_it(other_user: Other) -> None:
    """/Db-5.2/: readers without write permission on the archive."""
    with open_folder() as folder:
        with Database(folder / "webarc.db") as database:
            a = meta("/a", tag(1))
            database.record(message(tag(1), 1), [change(a.path, a)])
            (folder / "webarc.db").chmod(0o444)
            folder.chmod(0o555)
            query = "SELECT count(*) FROM metadata WHERE url = 'http://e.org/a'"
            done = other_user.run(other_user.python, "-c", READER, folder / "webarc.db", query)
        assert done.stdout == "1\n", done.stderr
        assert [path.name for path in folder.iterdir()] == ["webarc.db"]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_damage_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "webarc.db").write_bytes(content)
    with pytest.raises(DatabaseDamaged, match="webarc-agent recover"):
        Database(tmp_path / "webarc.db")


def test_a_schema_of_another_version(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "webarc.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DatabaseDamaged, match=r"version 99.*webarc-agent recover"):
        Database(tmp_path / "webarc.db")


def test_whatever_is_recorded_its_tables_are_those_of_the_schema(tmp_path: Path) -> None:
    """/Db-4/: documents have the columns that there are, and no document brings one."""

    def tables(path: Path) -> list[tuple[str, ...]]:
        with sqlite3.connect(path) as connection:
            return sorted(
                connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
            )

    empty, used = tmp_path / "empty.db", tmp_path / "used.db"
    with closing(sqlite3.connect(empty)) as connection:
        connection.executescript(directory.path("sql", "schema.sql").read_text("utf-8"))
    with Database(used) as database:
        for number in range(1, 4):
            at, changed = tag(number), [meta(f"/{name}", tag(number), str(number)) for name in "abc"]
            database.record(message(at, number), [change(each.path, each) for each in changed])
    assert tables(used) == tables(empty)


def test_one_that_somebody_holds_is_busy_and_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "PATIENCE", 0.1)
    with Database(tmp_path / "webarc.db") as database:
        other = sqlite3.connect(tmp_path / "webarc.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Busy):
            database.record(message(tag(1), 1), [])
        other.close()
        database.record(message(tag(1), 1), [])


def test_a_full_disk(small_disk: Path) -> None:
    with Database(small_disk / "webarc.db") as database:
        changes = (change(f"/e.org/{n}", meta(f"/{n}", tag(1), "x" * 900)) for n in range(5000))
        with pytest.raises(OSError, match="full") as caught:
            database.record(message(tag(1), 1), changes)
        assert caught.value.errno == errno.ENOSPC
        assert database.indexed(DOMAIN) == set()


def test_the_schema_is_a_file_that_sqlite_takes_as_it_is(tmp_path: Path) -> None:
    """/Db-1/."""
    schema = directory.path("sql", "schema.sql")
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.executescript(schema.read_text())
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    assert {"domain", "snapshot", "document", "version", "metadata"} <= names
    columns = [row[1] for row in connection.execute("PRAGMA table_info(metadata)")]
    assert columns == [*FIELDS, *CAPTURE_FIELDS]


_OPENING = """
import sqlite3, sys, threading
from webarcfs.archive.index.sqlite_file import queries_of

sys.setswitchinterval(1e-6)
hidden, ended = [], threading.Event()
queries_of(sqlite3.connect(":memory:"))

def look():
    while not ended.is_set():
        hidden.append(sys.modules.get("numpy", "absent") is None)

looker = threading.Thread(target=look)
looker.start()
connection = sqlite3.connect(":memory:")
for _ in range(20_000):
    queries_of(connection)
ended.set()
looker.join()
print(len(hidden) > 1_000, any(hidden), "numpy" in sys.modules)
"""


def test_opening_a_database_hides_numpy_from_no_other_thread() -> None:
    """Only while the library is imported for the first time; a chart that is drawn later finds numpy."""
    done = subprocess.run([sys.executable, "-c", _OPENING], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False", "False"]
