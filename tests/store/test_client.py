"""The client (/Cl-2/ … /Cl-11/) and its observers (/Sv-5/) on a directory and on a server; on a mount: tests/mount."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from agent.indexing.recovery import catch_up
from tests.support import archives
from tests.support.rooms import served
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import versions
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.errors import BadCondition, Damaged, NotAnArchive, NotFound, NotPermitted, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.client import WebarchiveClient

pytestmark = pytest.mark.store
BIG = bytes(range(256)) * 4096 * 5


class Noted:
    """An observer that keeps what it is given, and fails when told to."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.fails = 0
        self._change = threading.Condition()

    def __call__(self, tags: list[CommitTag]) -> None:
        with self._change:
            self.calls.append([str(tag) for tag in tags])
            self._change.notify_all()
            if self.fails:
                self.fails -= 1
                raise ValueError("an observer that fails")

    @property
    def tags(self) -> list[str]:
        return [tag for call in self.calls for tag in call]

    def until(self, enough: Callable[[], bool]) -> bool:
        with self._change:
            return self._change.wait_for(enough, PATIENCE)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = archives.make_archive(tmp_path)
    archives.publish(made, pages={"index.html": b"<title>one</title>", "big.bin": BIG, "gone.html": b"x"})
    archives.publish(made, pages={"index.html": b"<title>two</title>", "gone.html": None})
    archives.add(made, "big.bin/more/notes.txt", b"a note")
    catch_up(made)
    return made


class Connect(Protocol):
    """Opens a client of the archive."""

    def __call__(self, *, interval: float) -> WebarchiveClient: ...


@pytest.fixture(params=["directory", "url"])
def connect(request: pytest.FixtureRequest, archive: Archive) -> Iterator[Connect]:
    """A client's way to the archive: its directory, or the reading room's server over a socket."""
    if request.param == "directory":
        yield partial(WebarchiveClient, archive.root)
        return
    with served(archive) as room:
        yield partial(WebarchiveClient, f"http://127.0.0.1:{room.port}/")


@pytest.fixture
def client(connect: Connect) -> Iterator[WebarchiveClient]:
    with connect(interval=0.02) as opened:
        yield opened


def test_documents_are_found_and_read(client: WebarchiveClient) -> None:
    """/Cl-2.1/, /Cl-6/, /Cl-7/, /Cl-8/: metadata are the key to the ARC, in any snapshot."""
    old, new = client.select("path LIKE '%index.html'", "crawlTime")
    assert client.list(old) == ["data.html", "data.xml", "headers.http"]
    assert client.open_read(old, "data.html").read() == b"<title>one</title>"
    assert client.open_read(new, client.data_name(new)).read() == b"<title>two</title>"
    big = client.select("path LIKE '%big.bin'", "crawlTime DESC", limit=1)[0]
    with client.open_read(big, "data.bin") as stream:
        stream.seek(len(BIG) - 3)
        assert stream.read() == BIG[-3:]
    assert client.open_read(big, "more/notes.txt").read() == b"a note"


def test_a_snapshot_is_read_as_a_whole(client: WebarchiveClient) -> None:
    """Each document with all files of its ARC: the same as one by one."""
    old, new = client.snapshots(archives.DOMAIN)
    for tag in (old, new):
        documents = []
        for document in client.read_all(tag):
            meta = document.metadata
            bodies = {name: stream.read() for name, stream in document.files.items()}
            assert [name for name in bodies if "/" not in name] == [
                entry.name for entry in client.listing(meta).entries if not entry.is_folder
            ]
            assert bodies == {name: client.open_read(meta, name).read() for name in bodies}
            documents.append(meta)
        assert sorted(documents, key=str) == sorted(client.at(tag), key=str)
    added = {meta.path: client.listing(meta) for meta in client.at(new)}["/www.example.org/big.bin"]
    assert {entry.name: (entry.is_folder, entry.size) for entry in added.entries}["more"] == (True, 0)
    assert {entry.name: entry.size for entry in added.entries}["data.bin"] == len(BIG)
    assert [name for document in client.read_all(new) for name in document.files if "/" in name] == ["more/notes.txt"]


def test_snapshots_and_what_they_changed(client: WebarchiveClient) -> None:
    first, second = client.snapshots("www.example.org")
    assert client.domains() == ["www.example.org"]
    assert [meta.path for meta in client.at(first)] == [
        f"/www.example.org/{name}" for name in ("big.bin", "gone.html", "index.html")
    ]
    assert [meta.path for meta in client.changed(second)] == ["/www.example.org/index.html"]
    assert sorted(map(str, client.at(str(second)))) == sorted(map(str, client.select(f"commitTag = '{second}'")))


def test_what_a_snapshot_changed_is_what_it_stored(archive: Archive, client: WebarchiveClient) -> None:
    """Found by comparing it with the one before, additions and all, it is the same as by looking at every document."""
    archives.publish(archive, pages={"index.html": b"<title>two</title>", "a/b.html": b"x", "a/b.html/c.html": b"y"})
    archives.add(archive, "a/b.html/more/notes.txt", b"a note")
    archives.publish(archive, pages={"a/b.html/c.html": b"z", "index.html": None})
    for tag in client.snapshots(archives.DOMAIN):
        store = Repository(archive.repository(archives.DOMAIN))
        every = (versions.described(store, arc) for arc in versions.arcs(store, store.snapshot_tree(tag)))
        stored = {meta.path: meta for meta in every if meta.commit_tag == tag}
        assert {meta.path: meta for meta in client.changed(tag)} == stored, tag


def test_a_repository_that_was_put_in_place_of_another_is_read(archive: Archive, client: WebarchiveClient) -> None:
    """A restore does that; a client lives long, and keeps repositories open."""
    repository = archive.repository(archives.DOMAIN)
    old = client.snapshots(archives.DOMAIN)
    shutil.copytree(repository, repository.with_name("copy"))
    repository.rename(repository.with_name("away"))
    repository.with_name("copy").rename(repository)
    tag = archives.publish(archive, pages={"index.html": b"<title>three</title>"})
    eventually(lambda: client.snapshots(archives.DOMAIN) == [*old, tag], PATIENCE)
    assert [meta.path for meta in client.changed(tag)] == ["/www.example.org/index.html"]
    repository.rename(repository.with_name("gone"))
    eventually(lambda: _is_gone(client), PATIENCE)


def _is_gone(client: WebarchiveClient) -> bool:
    try:
        client.snapshots(archives.DOMAIN)
    except NotFound:
        return True
    except Damaged:  # a server looks for the repositories of its readers each half second
        return False
    return False


def test_errors_are_of_our_family(client: WebarchiveClient, tmp_path: Path) -> None:
    """/Sv-2.2/"""
    meta = client.select("path LIKE '%index.html'")[0]
    with pytest.raises(BadCondition):
        client.select("nonsense(")
    for call in (
        lambda: client.open_read(meta, "no"),
        lambda: client.open_read(meta, "../data.html"),
        lambda: client.snapshots("other.example"),
        lambda: client.snapshots("x" * 300),
        lambda: client.snapshots("x\0"),
        lambda: list(client.at("2020-01-01T00:00:00@www.example.org")),
        lambda: client.add_observer(Noted(), "2020-01-01T00:00:00@www.example.org"),
    ):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(NotPermitted, match=r"mount|takes no additions"), client.open_write(meta, "x"):
        pass
    with pytest.raises(NotAnArchive):
        WebarchiveClient(tmp_path / "nothing")
    with pytest.raises(WebarcError):
        client.at("no tag")


def test_data_nodes_are_found_by_name(client: WebarchiveClient) -> None:
    """/Cl-10/"""
    meta = client.select("path LIKE '%index.html'")[0]
    assert client.get_data(meta, "words") is None


def test_observers_are_given_each_tag_once_in_order(archive: Archive, client: WebarchiveClient) -> None:
    """/Cl-4/, /Cl-5/, /Sv-5.5/"""
    noted, other = Noted(), Noted()
    client.add_observer(noted)
    published = [str(archives.publish(archive, pages={f"{number}.html": b"x"})) for number in range(5)]
    client.add_observer(other, since=published[2])
    published += [str(archives.publish(archive, pages={f"{number}.html": b"x"})) for number in range(5, 8)]
    assert noted.until(lambda: len(noted.tags) >= 8) and other.until(lambda: len(other.tags) >= 5)
    assert (noted.tags, other.tags) == (published, published[3:])
    client.remove_observer(noted)
    archives.publish(archive, pages={"last.html": b"x"})
    assert other.until(lambda: len(other.tags) >= 6)
    assert noted.tags == published


def test_what_was_published_is_listed_in_order(archive: Archive, client: WebarchiveClient) -> None:
    tags = client.snapshots(archives.DOMAIN)
    assert client.published() == tags and client.published(since=tags[0]) == tags[1:]
    tags.append(archives.publish(archive, pages={"1.html": b"x"}))
    eventually(lambda: client.published(since=str(tags[1])) == tags[2:], PATIENCE)
    with pytest.raises(NotFound):
        client.published(since="2020-01-01T00:00:00@www.example.org")


def test_an_observer_that_fails_loses_nothing(archive: Archive, client: WebarchiveClient) -> None:
    """And holds up nobody else."""
    failing, other = Noted(), Noted()
    failing.fails = 2
    client.add_observer(failing)
    client.add_observer(other)
    tag = str(archives.publish(archive, pages={"1.html": b"x"}))
    assert failing.until(lambda: len(failing.calls) >= 3) and other.until(lambda: bool(other.calls))
    assert [call[0] for call in failing.calls[:3]] == [tag] * 3
    assert other.tags == [tag]


def test_none_is_lost_across_a_restart(archive: Archive, connect: Connect) -> None:
    """An observer that remembers its last tag goes on behind it, also when the feed was written anew meanwhile."""
    noted = Noted()
    with connect(interval=0.02) as first:
        first.add_observer(noted)
        seen = str(archives.publish(archive, pages={"1.html": b"x"}))
        assert noted.until(lambda: noted.tags == [seen])
    missed = [str(archives.publish(archive, pages={f"{number}.html": b"x"})) for number in (2, 3)]
    again = Noted()
    with connect(interval=0.02) as second:
        second.add_observer(again, since=noted.tags[-1])
        assert again.until(lambda: again.tags == missed)
        lines = list(Feed(archive.changes).lines())
        archive.changes.unlink()
        Feed(archive.changes).rewrite([CommitTag.parse(line) for line in lines])
        later = str(archives.publish(archive, pages={"4.html": b"x"}))
        assert again.until(lambda: len(again.tags) >= 3)
    assert again.tags == [*missed, later]


def test_an_observer_may_end_its_own_watch(archive: Archive, client: WebarchiveClient) -> None:
    noted = Noted()

    def once(tags: list[CommitTag]) -> None:
        client.remove_observer(once)
        noted(tags)

    client.add_observer(once)
    tag = str(archives.publish(archive, pages={"1.html": b"x"}))
    assert noted.until(lambda: noted.tags == [tag])


def test_how_often_is_looked_is_the_clients_to_say(archive: Archive, connect: Connect) -> None:
    """/Sv-5.1/: who asks for a look an hour is not told within it; who asks for many is."""
    last = str(archives.publish(archive, pages={"0.html": b"x"}))
    seldom, often = Noted(), Noted()
    with connect(interval=3600) as slow, connect(interval=0.02) as quick:
        slow.add_observer(seldom, since=str(slow.snapshots("www.example.org")[-2]))
        quick.add_observer(often)
        assert seldom.until(lambda: seldom.tags == [last]), "the first look is at once"
        later = str(archives.publish(archive, pages={"1.html": b"x"}))
        assert often.until(lambda: often.tags == [later])
        assert seldom.tags == [last]
    assert seldom.tags == [last], "and closing does not wait for the hour"


def test_a_thousand_tags_come_in_order_whatever_the_observer_does(archive: Archive) -> None:
    """/Cl-5/: it fails now and then while they come in pieces; each is delivered, none out of turn.

    A server shows no tag without a snapshot; test_remote_client.py has this of one.
    """
    feed, begun = Feed(archive.changes), len(list(Feed(archive.changes).lines()))
    expected = [CommitTag(archives.FIRST + timedelta(hours=number), "www.example.org") for number in range(1, 1001)]
    taken: list[CommitTag] = []
    enough = threading.Event()

    def moody(tags: list[CommitTag]) -> None:
        if len(tags) % 3 == 1 and not enough.is_set() and moody_turns.pop():
            raise OSError("not now")
        taken.extend(tags)
        if taken[-1] == expected[-1]:
            enough.set()

    moody_turns = [False, True] * 500
    with WebarchiveClient(archive.root, interval=0.02) as client:
        client.add_observer(moody)
        for tag in expected:
            feed.append(tag)
        assert enough.wait(PATIENCE)
    assert taken == expected and len(list(feed.lines())) == begun + 1000
