"""webarc.db and the feed come back from git alone (/Db-6/, /Cr-2.3/)."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up, catch_up_domain, changes_of, recover
from tests.support.archives import DOMAIN, add, publish, rows_of, store_of
from webarcfs.archive.catalogue.catalogue import Catalogue, CatalogueDatabase
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, RefUpdate
from webarcfs.archive.history import sequence
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database
from webarcfs.archive.index.query import connected
from webarcfs.archive.index.sqlite_file import as_told_to_readers, journal
from webarcfs.archive.model.errors import Damaged

pytestmark = pytest.mark.store
OTHER = "other.example:8080"


@pytest.fixture
def published(archive: Archive) -> Archive:
    """Six snapshots of two domains, in turns, with additions between them."""
    publish(archive, DOMAIN, {"a.html": b"1", "b.html": b"1", "blog": b"1", "blog/x.html": b"1"})
    publish(archive, OTHER, {"a.html": b"1"})
    add(archive, "a.html/notes.txt", b"mine")
    publish(archive, DOMAIN, {"a.html": b"2", "b.html": None})
    add(archive, "blog/notes.txt", b"mine")
    _extend(archive, "blog")
    publish(archive, OTHER, {})
    publish(archive, DOMAIN, {"b.html": b"3"})
    publish(archive, OTHER, {"c.html": b"1"})
    catch_up(archive)
    return archive


def _extend(archive: Archive, arc: str) -> None:
    """Add a data node."""
    store = store_of(archive)
    head = store.head()
    assert head is not None
    found = store.find(head.tree, f"{arc}/data.xml")
    assert found is not None
    document = store.read(found.oid).replace(b"<arc:data/>", b"<arc:data><words>42</words></arc:data>")
    add(archive, f"{arc}/data.xml", document)


def test_a_damaged_catalogue_database_is_removed(published: Archive) -> None:
    with CatalogueDatabase(published.catalogue_database, Catalogue(published)):
        pass
    recover(published)
    assert published.catalogue_database.exists()
    published.catalogue_database.write_bytes(b"nonsense" * 1000)
    assert not recover(published).left and not published.catalogue_database.exists()


def test_both_are_the_same_again(published: Archive) -> None:
    """The same lines, the same ordered dump of `metadata`."""
    rows, lines = rows_of(published), published.changes.read_bytes()
    assert len(lines.splitlines()) == 6
    published.database.unlink()
    published.changes.unlink()
    done = recover(published)
    assert (done.snapshots, done.lines, done.damaged) == (6, 6, ())
    assert (rows_of(published), published.changes.read_bytes()) == (rows, lines)
    assert not [path.name for path in published.root.iterdir() if path.name.startswith(".")]
    catch_up(published)
    assert (rows_of(published), published.changes.read_bytes()) == (rows, lines)


def test_the_table_is_what_the_trees_hold(published: Archive) -> None:
    """A row for each document and snapshot, with the snapshot's own tag."""
    expected = set()
    for domain in (DOMAIN, OTHER):
        store = store_of(published, domain)
        for commit in store.history(store.ref(MAIN)):
            if commit.message.is_crawl:
                for each in store.differences(None, commit.tree):
                    folder, _, name = each.path.rpartition("/")
                    if name == "data.xml":
                        expected.add((str(commit.message.tag), f"/{domain}/{folder}"))
    assert {(row["commitTag"], row["path"]) for row in rows_of(published)} == expected


def test_additions_make_no_rows(published: Archive) -> None:
    """Neither files nor data nodes, whether before a crawl or after the last."""
    with Database(published.database) as database:
        before = database.count_versions()
    add(published, "a.html/more.txt", b"mine")
    _extend(published, "a.html")
    catch_up(published)
    publish(published, DOMAIN, {})
    catch_up(published)
    with Database(published.database) as database:
        assert database.count_versions() == before == 8


def test_what_was_not_indexed_is_caught_up_with(published: Archive) -> None:
    """Killed between publishing and indexing."""
    publish(published, DOMAIN, {"new.html": b"1"})
    publish(published, "third.example", {"a.html": b"1"})
    known = len(rows_of(published))
    catch_up_domain(published, DOMAIN)
    assert len(rows_of(published)) == known + 5
    catch_up(published)
    rows = rows_of(published)
    assert len(rows) == known + 6
    recover(published)
    assert rows_of(published) == rows


def test_catching_up_twice_at_once(published: Archive) -> None:
    for number in range(5):
        publish(published, DOMAIN, {f"{number}.html": b"1"})
    errors: list[BaseException] = []

    def work(what: object) -> None:
        try:
            catch_up(published) if what == "all" else catch_up_domain(published, DOMAIN)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(what,)) for what in ("all", "one", "one", "all")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    rows = rows_of(published)
    recover(published)
    assert rows_of(published) == rows


@pytest.mark.parametrize("content", [b"", b"garbage", b"2026-11-21T03:00:00@gone.example\n", b"\xff\n"])
def test_a_feed_that_is_not_in_step(published: Archive, content: bytes) -> None:
    lines = published.changes.read_bytes()
    published.changes.write_bytes(content)
    catch_up(published)
    assert published.changes.read_bytes() == lines


def test_a_feed_in_another_order(published: Archive) -> None:
    lines = published.changes.read_bytes()
    published.changes.write_bytes(b"".join(reversed(lines.splitlines(keepends=True))))
    catch_up(published)
    assert published.changes.read_bytes() == lines


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_a_database_that_is_not_one(published: Archive, content: bytes) -> None:
    rows = rows_of(published)
    published.database.write_bytes(content)
    catch_up(published)
    assert rows_of(published) == rows


def test_a_database_that_knows_more_than_git(published: Archive) -> None:
    """A repository that was brought back from an older copy."""
    store = store_of(published, OTHER)
    main = store.head()
    assert main is not None
    store.update_refs([RefUpdate(MAIN, main.parents[0], main.oid), RefUpdate(main.message.tag.ref, None, main.oid)])
    catch_up(published)
    assert str(main.message.tag) not in {row["commitTag"] for row in rows_of(published)}
    assert str(main.message.tag) not in published.changes.read_text()


WRITER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE version SET title = title || hex(randomblob(3000))")
connection.execute("UPDATE document SET path = path || hex(randomblob(3000))")
print("half", flush=True)
time.sleep(60)
"""


def test_the_journal_of_a_killed_writer_does_not_spoil_the_new_database(published: Archive) -> None:
    rows = rows_of(published)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(published.database)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"half\n"
        os.kill(writer.pid, signal.SIGKILL)
    assert published.database.with_name("webarc.db-journal").stat().st_size > 0
    published.database.with_name(".webarc.db.new").write_bytes(b"left by a killed recover")
    published.database.with_name(".webarc.db.new-journal").write_bytes(b"x")
    publish(published, DOMAIN, {f"new/{number}.html": b"1" for number in range(60)})
    recover(published)
    found = rows_of(published)
    assert len(found) == len(rows) + 64
    connection = sqlite3.connect(published.database)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert not [path.name for path in published.root.iterdir() if "journal" in path.name and path.is_file()]
    recover(published)
    assert rows_of(published) == found


def test_who_may_write_reads_behind_a_killed_writer(published: Archive) -> None:
    """SQLite rolls back what it left, once; a reader who may not write is told what does that."""
    rows = rows_of(published)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(published.database)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"half\n"
        os.kill(writer.pid, signal.SIGKILL)
    with closing(sqlite3.connect(f"{published.database.as_uri()}?mode=ro", uri=True)) as connection:
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("SELECT * FROM version").fetchall()
        assert "webarc-agent verify" in str(as_told_to_readers(published.database, caught.value))
    with closing(connected(published.database)) as connection:
        assert connection.execute("SELECT count(*) FROM metadata").fetchone() == (len(rows),)
    assert rows_of(published) == rows and not journal(published.database).exists()


def test_what_is_indexed_is_not_read_again(published: Archive, caplog: pytest.LogCaptureFixture) -> None:
    """Catching up costs what is missing: commits that are known may even be gone."""
    rows, lines = rows_of(published), published.changes.read_bytes()
    for name in (DOMAIN, OTHER):
        store = store_of(published, name)
        head = store.head()
        assert head is not None
        for commit in list(store.history(head.oid))[1:]:
            (store.path / "objects" / commit.oid[:2] / commit.oid[2:]).unlink()
    tag = publish(published, DOMAIN, {"new.html": b"1"})
    catch_up(published)
    catch_up_domain(published, OTHER)
    assert [row for row in rows_of(published) if row["commitTag"] != str(tag)] == rows
    assert published.changes.read_bytes() == lines + f"{tag}\n".encode()
    assert caplog.records == []


# -- damage ------------------------------------------------------------------------------------------------------------


def break_repository(archive: Archive, how: str) -> None:
    store = store_of(archive, OTHER)
    head = store.head()
    assert head is not None
    if how == "no repository":
        (store.path / "objects").rename(store.path / "things")
        return
    found = store.find(head.tree, "c.html/data.xml")
    assert found is not None
    if how == "no data.xml any more":
        tree = store.edit(head.tree, {"c.html/data.xml": store.write_blob(b"<html>")})
        commit = store.write_commit(tree, list(head.parents), _message(store.path, head.oid), ("x", "x@x"), head.time)
        store.update_refs([RefUpdate(MAIN, commit, head.oid), RefUpdate(head.message.tag.ref, commit, head.oid)])
        return
    oid = {"commit": head.oid, "tree": head.tree, "blob": found.oid}[how]
    (store.path / "objects" / oid[:2] / oid[2:]).unlink()


def _message(repository: Path, oid: str) -> str:
    done = subprocess.run(["git", "log", "-1", "--format=%B", oid], cwd=repository, check=True, capture_output=True)
    return done.stdout.decode()


KINDS = ("no repository", "commit", "tree", "blob", "no data.xml any more")


@pytest.mark.parametrize("how", KINDS)
def test_a_damaged_repository_is_named_and_the_others_come_back(
    published: Archive, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [row for row in rows_of(published) if row["domain"] == DOMAIN]
    break_repository(published, how)
    done = recover(published)
    assert done.damaged == (OTHER,)
    assert [row for row in rows_of(published) if row["domain"] == DOMAIN] == rows
    assert OTHER in caplog.text
    again = rows_of(published)
    catch_up(published)
    assert rows_of(published) == again


@pytest.mark.parametrize("how", KINDS)
def test_catching_up_leaves_a_damaged_repository_what_it_has(published: Archive, how: str) -> None:
    rows, lines = rows_of(published), published.changes.read_bytes()
    break_repository(published, how)
    catch_up(published)
    assert (rows_of(published), published.changes.read_bytes()) == (rows, lines)
    tag = publish(published, DOMAIN, {"new.html": b"1"})
    catch_up(published)
    assert published.changes.read_bytes() == lines + f"{tag}\n".encode()
    assert str(tag) in {row["commitTag"] for row in rows_of(published)}


def test_a_damaged_data_xml_is_named_with_its_path(published: Archive) -> None:
    break_repository(published, "no data.xml any more")
    head = store_of(published, OTHER).head()
    assert head is not None
    with pytest.raises(Damaged, match=r"/other\.example:8080/c\.html/data\.xml"):
        list(changes_of(store_of(published, OTHER), head))


def test_recovering_keeps_publications_out(published: Archive) -> None:
    """Their order is being read."""
    done = threading.Event()

    def work() -> None:
        recover(published)
        done.set()

    thread = threading.Thread(target=work)
    with sequence.hold(published):
        thread.start()
        assert not done.wait(0.2)
    thread.join()
    assert done.is_set()


def test_progress_is_told(published: Archive) -> None:
    told: list[tuple[str, int, int]] = []
    recover(published, lambda *words: told.append(words))
    numbers: dict[str, list[tuple[int, int]]] = {}
    for what, done, known in told:
        numbers.setdefault(what, []).append((done, known))
    assert list(numbers) == ["check repositories", "index snapshots", "read links of snapshots"]
    assert numbers["index snapshots"] == [(number, 6) for number in range(1, 7)]
    assert numbers["read links of snapshots"][-1] == (6, 6)


def test_an_empty_archive(archive: Archive, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        catch_up(archive)
        done = recover(archive)
    assert (done.snapshots, done.versions, done.lines) == (0, 0, 0)
    assert rows_of(archive) == [] and list(Feed(archive.changes).lines()) == []
    assert not caplog.records
