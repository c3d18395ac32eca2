"""Writers whose ARC is replaced by a crawl, and mounts side by side (SEMANTICS.md, S-stale-1, S-add-2; /Ar-10/)."""

# ruff: noqa: PTH208
from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest

from tests.mount.conftest import Mounter
from tests.mount.crawler import Crawler
from tests.mount.test_writing import error_of, write
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import Mounted
from tests.support.waiting import eventually
from webarcfs.archive.additions import commit_additions
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names
from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.fusepy_adapter import FusepyOperations
from webarcfs.vfs.root import Tree
from webarcfs.vfs.view import View

pytestmark = pytest.mark.mount


def shows(mounted: Mounted, tag: object) -> None:
    """Wait until the mount shows a crawl."""
    eventually(lambda: str(tag) in (mounted / ".changes").read_text(), 60)


@pytest.fixture
def mounted(archive: Archive, mount: Mounter) -> Mounted:
    archives.publish(archive, pages={"a.html": b"1", "b.html": b"1", "c.html": b"1"})
    return mount(archive)


@pytest.fixture
def crawler(archive: Archive, mounted: Mounted) -> Iterator[Crawler]:
    """Publishes; started before any file of the mount is open."""
    assert mounted.pid
    crawler = Crawler(archive)
    yield crawler
    crawler.end()


def test_stale_writers(archive: Archive, mounted: Mounted, crawler: Crawler) -> None:
    """S-stale-1"""
    files = {name: (mounted / f"{DOMAIN}/{name}.html/new").open("xb", buffering=0) for name in "abc"}
    document = (mounted / f"{DOMAIN}/a.html/data.xml").open("ab", buffering=0)
    for file in files.values():
        file.write(b"half")
    document.write(b"<late>")
    shows(mounted, crawler.publish(a="2", b=None))
    assert error_of(lambda: files["a"].write(b"more")) == errno.ESTALE
    assert error_of(lambda: document.write(b"</late>")) == errno.ESTALE
    assert error_of(lambda: os.fsync(files["b"].fileno())) == errno.ESTALE
    assert {name: error_of(file.close) for name, file in files.items()} == {
        "a": errno.ESTALE,
        "b": errno.ESTALE,
        "c": None,
    }
    assert error_of(document.close) is not None
    assert not (mounted / f"{DOMAIN}/a.html/new").exists()
    assert not (mounted / f"{DOMAIN}/b.html").exists()
    assert (mounted / f"{DOMAIN}/c.html/new").read_bytes() == b"half"
    commit_additions.commit_additions(archive, DOMAIN)
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    assert store.find(head.tree, "c.html/new") is not None
    assert store.find(head.tree, "a.html/new") is None
    assert "new was not added" in (archive.log / "mount.log").read_text("utf-8")


def test_a_crawl_that_the_mount_has_not_seen_yet(mounted: Mounted, crawler: Crawler) -> None:
    """S-stale-1"""
    for turn in range(5):
        with pytest.raises(OSError) as failed, (mounted / f"{DOMAIN}/a.html/new{turn}").open("xb") as file:
            tag = crawler.publish(a=f"new {turn}")
            file.write(b"x")
        assert failed.value.errno == errno.ESTALE
        shows(mounted, tag)


def test_who_stands_in_a_replaced_arc(mounted: Mounted, crawler: Crawler) -> None:
    """S-stale-1"""
    inside = os.open(mounted / f"{DOMAIN}/a.html", os.O_RDONLY | os.O_DIRECTORY)
    try:
        shows(mounted, crawler.publish(a="2"))
        answer = error_of(lambda: os.close(os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=inside)))
        # fusepy works with paths: the folder of that name is another by now, and takes it.
        assert answer in (errno.ESTALE, None)
    finally:
        os.close(inside)
    write(mounted / f"{DOMAIN}/a.html/newer", b"2")
    assert (mounted / f"{DOMAIN}/a.html/newer").read_bytes() == b"2"


def test_what_comes_back_while_somebody_is_in_it(mounted: Mounted, crawler: Crawler) -> None:
    """S-state-1, S-stale-1: a folder above an ARC has one number for good, and nothing old comes back with it."""
    page, inner = mounted / f"{DOMAIN}/a.html", mounted / f"{DOMAIN}/a.html/b.html"

    def shows(**pages: str | None) -> None:
        tag = crawler.publish(**pages)
        eventually(lambda: tag in (mounted / ".changes").read_text(), 60)

    shows(**{"a.html/b": "first"})
    files = [(page / "mine").open("xb"), (inner / "mine").open("xb")]
    shows(a="second")
    assert set(os.listdir(page)) == {"data.html", "data.xml", "headers.http", "b.html"}
    assert error_of((page / "mine").stat) == errno.ENOENT
    assert (inner / "mine").exists()
    shows(**{"a.html/b": None})
    assert not inner.exists()
    shows(**{"a.html/b": "back"})
    assert (inner / "data.html").read_bytes() == b"back"
    assert not (inner / "mine").exists()
    assert [error_of(file.close) for file in files] == [errno.ESTALE] * 2


@pytest.mark.only("fusepy")
def test_a_folder_takes_the_name_of_an_open_file(mounted: Mounted, crawler: Crawler) -> None:
    """S-stale-1: libfuse 2 goes by paths, so the kernel gives the open file up."""
    arc = mounted / f"{DOMAIN}/a.html"
    file = (arc / "name").open("xb", buffering=0)
    crawler.publish(a="newer")
    eventually(lambda: not (arc / "name").exists(), 60)
    (arc / "name").mkdir()
    assert error_of(lambda: file.write(b"lost")) == errno.EIO
    assert error_of(file.close) == errno.EIO
    assert os.listdir(arc / "name") == []


def test_two_mounts(archive: Archive, mounted: Mounted, mount: Mounter) -> None:
    """S-add-2, S-add-7, S-xml-4, S-mount-6"""
    other = mount(archive)
    here, there = (each / f"{DOMAIN}/a.html" for each in (mounted, other))
    assert os.listdir(here) == os.listdir(there)
    write(here / "notes", b"from here")
    (there / "data.xml").open("ab").close()
    with (there / "data.xml").open("ab") as file:
        file.write(b"<there/>")
    with (here / "data.xml").open("ab") as file:
        file.write(b"<here/>")
    eventually(lambda: (there / "notes").exists() and (there / "notes").read_bytes() == b"from here", 60)
    assert "notes" in os.listdir(there)
    for each in (here, there):
        eventually(lambda each=each: set(names((each / "data.xml").read_bytes())) == {"here", "there"}, 60)
    assert (here / "data.xml").read_bytes() == (there / "data.xml").read_bytes()
    one = (here / "same").open("xb")
    two = (there / "same").open("xb") if not (there / "same").exists() else None
    assert two is not None
    one.write(b"1")
    two.write(b"2")
    one.close()
    assert error_of(two.close) == errno.EEXIST
    eventually(lambda: (there / "same").exists() and (there / "same").read_bytes() == b"1", 60)


# Through fusepy a create just while a crawl replaces the folder above may be ENOENT: libfuse 2 goes by paths.
@pytest.mark.only("libfuse3")
def test_crawls_while_many_write(archive: Archive, mounted: Mounted, crawler: Crawler) -> None:
    """S-stale-1, S-add-1: every close that returned is in git under its crawl, and nothing else is."""
    confirmed: list[str] = []
    refused: list[str] = []
    unexpected: list[BaseException] = []
    end = threading.Event()

    def work(number: int) -> None:
        for turn in range(1000):
            if end.is_set():
                return
            path = f"{'abc'[turn % 3]}.html/w{number}-{turn}"
            try:
                write(mounted / f"{DOMAIN}/{path}", path.encode())
                confirmed.append(path)
            except OSError as error:
                refused.append(path)
                if error.errno != errno.ESTALE:
                    unexpected.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        before = len(confirmed)
        eventually(lambda before=before: len(confirmed) > before + 10 or unexpected, 60)
        crawler.publish(**{"ab"[turn % 2]: str(turn)})
    end.set()
    for thread in threads:
        thread.join()
    assert unexpected == []
    commit_additions.commit_additions(archive, DOMAIN)
    found = in_history(archive)
    assert [path for path in confirmed if path not in found] == []
    assert [path for path in refused if path in found] == []
    assert archives.store_of(archive).check() == []


def in_history(archive: Archive) -> set[str]:
    """Every addition that any commit has."""
    store = archives.store_of(archive)
    found: set[str] = set()
    for commit in store.history(store.head().oid if store.head() else None):  # type: ignore[union-attr]
        for page in "abc":
            arc = store.find(commit.tree, f"{page}.html")
            found |= {f"{page}.html/{entry.name}" for entry in store.entries(arc.oid)} if arc else set()
    return found


def test_what_went_since_the_kernel_found_it_is_looked_for_again(archive: Archive) -> None:
    """Fusepy finds a path anew for each call. Of ESTALE the kernel looks again; ENOENT would reach the program, even if
    that asked to create the file.
    """
    archives.publish(archive, pages={"a.html": b"1"})
    tree = Tree(View(archive))
    operations = FusepyOperations(AdapterContext(archive, tree, archive.root, 0, 0, {}, lambda *_: None))
    gone = SimpleNamespace(flags=os.O_RDONLY)
    for call, expected in (
        (("open", f"/{DOMAIN}/a.html/gone", gone), errno.ESTALE),
        (("opendir", f"/{DOMAIN}/a.html/gone"), errno.ESTALE),
        (("getattr", f"/{DOMAIN}/a.html/gone"), errno.ENOENT),
    ):
        assert error_of(partial(operations, *call)) == expected
