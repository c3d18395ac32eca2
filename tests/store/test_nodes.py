"""The model of the mount without any mount: view, tree and nodes over real git repositories."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator, Sequence

import pytest

from tests.support import archives
from tests.support.archives import CREATED, DOMAIN, FIRST
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import TreeEntry
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.errors import Damaged, NameTooLong, NotADirectory, NotFound, NotPermitted, ReadOnly
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system.cache import Cache
from webarcfs.archive.system.files import blob_id
from webarcfs.mount.kernel.inode_table import HELD, OpenContents
from webarcfs.vfs.content import SMALL, Blobs
from webarcfs.vfs.domain_states import DomainChange, DomainState, DomainStates
from webarcfs.vfs.folders import AddedFolder, Arc, StoredFile, StoredFolder
from webarcfs.vfs.node import File, Folder, Node, NodeKind
from webarcfs.vfs.overlay import Ownership, PendingFile
from webarcfs.vfs.root import SHAPE, SnapshotFolder, Symlink, Table, Tree
from webarcfs.vfs.view import View

pytestmark = pytest.mark.store


@pytest.fixture
def tree(view: View) -> Tree:
    return Tree(view)


class NothingPending:
    """The journal of a mount that takes additions, and has none."""

    def read_blob(self, blob: str) -> bytes | int | None:  # noqa: ARG002
        return None


def names(node: Node) -> list[str]:
    assert isinstance(node, Folder)
    return [name for name, _ in node.children()]


def body(node: Node) -> bytes:
    assert isinstance(node, File)
    content = node.open()
    try:
        return content.read(0, 1 << 30)
    finally:
        content.close()


def walk(folder: Folder, path: str = "") -> Iterator[tuple[str, Node]]:
    for name, node in folder.children():
        yield f"{path}/{name}", node
        if isinstance(node, Folder):
            yield from walk(node, f"{path}/{name}")


def test_kinds_of_nodes(archive: Archive, tree: Tree) -> None:
    pages = {"index.html": b"home", "blog": b"blog", "blog/x": b"post", "blog/a/b": b"deep"}
    extra = {"blog/notes/n.txt": b"note", "blog/notes/more/n.txt": b"note"}
    tag = archives.publish(archive, pages=pages, extra=extra)
    kinds = {
        "/": Table,
        "/.snapshots": Table,
        f"/.snapshots/{tag}": SnapshotFolder,
        f"/.snapshots/{tag}/{DOMAIN}": Symlink,
        f"/.snapshots/{DOMAIN}/{tag}": Symlink,
        f"/{DOMAIN}": StoredFolder,
        f"/{DOMAIN}/index.html": Arc,
        f"/{DOMAIN}/index.html/data.html": StoredFile,
        f"/{DOMAIN}/blog": Arc,
        f"/{DOMAIN}/blog/x": Arc,
        f"/{DOMAIN}/blog/a": StoredFolder,  # leads to an ARC, so it is none of blog's additions
        f"/{DOMAIN}/blog/a/b": Arc,
        f"/{DOMAIN}/blog/notes": AddedFolder,
        f"/{DOMAIN}/blog/notes/more": AddedFolder,
        f"/{DOMAIN}/blog/notes/more/n.txt": StoredFile,
    }
    assert {path: type(tree.find(path)) for path in kinds} == kinds
    for path, node in walk(tree.root):
        assert type(tree.find(path)) is type(node) and tree.find(path).ino == node.ino
        assert node.attrs().kind is node.kind and node.attrs().ino == node.ino


def test_listed_and_found(archive: Archive, tree: Tree) -> None:
    tag = archives.publish(archive, pages={"index.html": b"home"})
    assert names(tree.root) == [".changes", DOMAIN]
    assert names(tree.find("/.snapshots")) == [DOMAIN]
    assert names(tree.find(f"/.snapshots/{DOMAIN}")) == [str(tag)]
    assert names(tree.find(f"/.snapshots/{tag}")) == ["index.html"]
    for path in (
        "/x",
        "/.snapshots/x",
        f"/.snapshots/{tag}/x",
        f"/{DOMAIN}/x",
        "/.snapshots/.changes",
        "/@",
        f"/a@{DOMAIN}",
    ):
        with pytest.raises(NotFound):
            tree.find(path)
    with pytest.raises(NotADirectory):
        tree.find("/.changes/x")
    with pytest.raises(NameTooLong):
        tree.find("/" + "\u00fc" * 128)
    assert set(SHAPE) == {"/", "/.snapshots"}


@pytest.mark.parametrize("writable", [False, True])
def test_what_is_told_of_a_file_is_what_its_node_tells(
    archive: Archive, tree: Tree, view: View, writable: bool
) -> None:
    """A listing tells of files without their nodes, which are made later and are the same version."""
    extra = {"blog/notes/n.txt": b"note", "blog/notes/data.xml": b"no ARC's", "readme": b"above ARCs"}
    archives.publish(archive, pages={"blog": b"blog", "blog/x": b"post", "d/e.html": b"e"}, extra=extra)
    if writable:
        view.overlay.begin(NothingPending())
    told = 0
    for path, node in [(f"/{DOMAIN}", tree.find(f"/{DOMAIN}")), *walk(tree.root)]:
        for name, child in node.children() if isinstance(node, Folder) else ():
            child_attrs = node.child_attrs(name)
            assert (child_attrs is not None) == isinstance(child, StoredFile), path
            if child_attrs is not None:
                told += 1
                later = node.child_of(name)
                assert child_attrs == child.attrs() == later.attrs()
                assert later == child
    assert told > 10


def test_what_may_be_another_version_is_told_by_its_node(archive: Archive, tree: Tree, view: View) -> None:
    archives.publish(archive, pages={"a.html": b"1"})
    view.overlay.begin(NothingPending())
    arc = tree.find(f"/{DOMAIN}/a.html")
    assert isinstance(arc, Arc)
    assert arc.child_attrs("data.xml")
    assert arc.place is not None
    view.overlay.confirmed(arc.place, "data.xml", PendingFile(blob_id(b"x"), 1, ("log", 1), b"x"))
    assert arc.child_attrs("data.xml") is None
    assert arc.child_attrs("headers.http")
    view.overlay.reserve(arc.place, "headers.http", TreeEntry("headers.http", "", False), Ownership(1000))
    assert arc.child_attrs("headers.http") is None
    assert arc.child_attrs("nothing") is None
    assert arc.child_attrs("data.html")
    archives.publish(archive, pages={"b.html": b"2"})
    view.refresh()
    assert arc.child_attrs("data.html") is None, "there is a newer state"


def test_version_of_a_file(archive: Archive, tree: Tree, view: View) -> None:
    archives.publish(archive, pages={"index.html": b"1", "same": b"same"})
    path, same = f"/{DOMAIN}/index.html/data.html", f"/{DOMAIN}/same/data"
    old, kept = tree.find(path), tree.find(same)
    assert isinstance(old, StoredFile)
    assert (old.version.domain, old.version.path) == (DOMAIN, "index.html/data.html")
    assert old.attrs().mtime == old.version.mtime == CREATED.timestamp()
    tag = archives.publish(archive, pages={"index.html": b"2"})
    assert body(tree.find(path)) == b"1"  # until the view takes the new state over
    view.refresh()
    assert body(tree.find(path)) == b"2"
    assert body(old) == b"1" and old.attrs().size == 1
    assert tree.find(path).ino != old.ino and tree.find(same).ino == kept.ino
    snapshot = tree.find(f"/.snapshots/{tag}/same/data")
    assert snapshot.ino == kept.ino and snapshot.old and not kept.old


def test_a_crawl_that_stores_the_same_again_makes_another_version(archive: Archive, tree: Tree, view: View) -> None:
    """unchanged = "replace": same body and head, another crawlTime."""
    archives.publish(archive, pages={"index.html": b"1"})
    before = tree.find(f"/{DOMAIN}/index.html")
    archives.publish(archive, pages={"index.html": b"1"})
    view.refresh()
    assert tree.find(f"/{DOMAIN}/index.html").ino != before.ino
    assert tree.find(f"/{DOMAIN}").ino == tree.find(f"/{DOMAIN}").ino


def test_an_addition_leaves_the_arc_its_number(archive: Archive, tree: Tree, view: View) -> None:
    archives.publish(archive, pages={"index.html": b"1"})
    arc = tree.find(f"/{DOMAIN}/index.html")
    archives.add(archive, "index.html/n.txt", b"n")
    view.refresh()
    now = tree.find(f"/{DOMAIN}/index.html")
    assert now.ino == arc.ino and names(now) == [*names(arc), "n.txt"]


def test_refusals(archive: Archive, tree: Tree) -> None:
    tag = archives.publish(archive, pages={"index.html": b"1"})
    for path in ("/", "/.changes", f"/{DOMAIN}", f"/{DOMAIN}/index.html", f"/{DOMAIN}/index.html/data.xml"):
        assert isinstance(tree.find(path).refusal(), NotPermitted)
    for path in (
        "/.snapshots",
        f"/.snapshots/{DOMAIN}",
        f"/.snapshots/{tag}",
        f"/.snapshots/{tag}/index.html/data.xml",
    ):
        assert isinstance(tree.find(path).refusal(), ReadOnly)


def test_data_xml_that_cannot_be_read(archive: Archive, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
    archives.publish(archive, pages={"index.html": b"1", "good.html": b"2"}, extra={"index.html/data.xml": b"<no"})
    arc = tree.find(f"/{DOMAIN}/index.html")
    assert isinstance(arc, Arc) and arc.meta is None and not arc.xattrs()
    assert body(tree.find(f"/{DOMAIN}/index.html/data.html")) == b"1"
    assert tree.find(f"/{DOMAIN}/index.html/data.html").attrs().mtime == FIRST.timestamp()
    assert "has no metadata" in caplog.text
    assert tree.find(f"/{DOMAIN}/good.html").xattrs()


def test_data_nodes_do_not_hide_the_metadata(archive: Archive, tree: Tree) -> None:
    tag = archives.publish(archive, pages={"index.html": b"1"})
    document = data_xml.describe(archives.metadata(DOMAIN, "index.html", tag))
    grown = document.replace(b"<arc:data/>", b"<arc:data><words>" + b"x" * 100_000 + b"</words></arc:data>")
    archives.add(archive, "index.html/data.xml", grown)
    assert tree.find(f"/{DOMAIN}/index.html").xattrs()["user.webarc.url"] == b"http://www.example.org/index.html"
    assert tree.find(f"/{DOMAIN}/index.html/data.xml").attrs().size == len(grown)


def test_additions_of_names_that_are_not_utf8(archive: Archive, tree: Tree) -> None:
    name = os.fsdecode(b"\xff\xfe")
    archives.publish(archive, pages={"index.html": b"1"}, extra={f"index.html/{name}": b"odd"})
    assert body(tree.find(f"/{DOMAIN}/index.html/{name}")) == b"odd"
    assert tree.find(f"/{DOMAIN}/index.html/{name}").ino


def test_a_node_does_not_keep_all_that_its_state_was(archive: Archive, tree: Tree, view: View) -> None:
    """A state knows all commitTags, and the kernel may know a node for months."""
    tag = archives.publish(archive, pages={"a.html": b"1"})
    nodes = [tree.find(f"{top}/a.html/data.html") for top in (f"/{DOMAIN}", f"/.snapshots/{tag}")]
    before = weakref.ref(view.domain(DOMAIN))
    assert before() is not None
    archives.publish(archive, pages={"b.html": b"2"})
    view.refresh()
    gc.collect()
    assert before() is None
    assert [body(node) for node in nodes] == [b"1", b"1"]


def test_the_line_comes_after_the_state(archive: Archive) -> None:
    """The listener (an adapter's expiry) runs when the state is in force and the tag is not yet in .changes."""
    told: list[tuple[str, bytes, int]] = []
    asked: list[bool] = []

    class Told:
        def moved(self, changes: Sequence[DomainChange], tags: Sequence[CommitTag]) -> None:
            (change,), (tag,) = changes, tags
            asked.append(change.new is not None)
            told.append((str(tag), body(root.find(f"/{DOMAIN}/index.html/data.html")), shown.changes.size))

        def shown(self) -> None:
            told.append(("shown", b"", shown.changes.size))

    shown = View(archive)
    shown.listener = Told()
    root = Tree(shown)
    first = archives.publish(archive, pages={"index.html": b"1"})
    shown.refresh()
    size = shown.changes.size
    assert told == [(str(first), b"1", 0), ("shown", b"", size)] and asked == [False]  # nobody had asked for it
    second = archives.publish(archive, pages={"index.html": b"2"})
    shown.refresh()
    assert told[2:] == [(str(second), b"2", size), ("shown", b"", 2 * size)] and asked == [False, True]
    assert shown.changes.size == 2 * size


def test_a_take_over_under_way_is_done_again(archive: Archive, view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's first look reads the refs, a crawl moves them and writes its line, the reader's look ends: the tag
    must not be shown with the state before it."""
    archives.publish(archive, pages={"index.html": b"1"})
    read, go = threading.Event(), threading.Event()
    original = DomainStates._read

    def slow(self: DomainStates, name: str) -> DomainState:
        state = original(self, name)
        if not read.is_set():
            read.set()
            go.wait(5)
        return state

    monkeypatch.setattr(DomainStates, "_read", slow)
    reader = threading.Thread(target=view.domain, args=(DOMAIN,))
    reader.start()
    read.wait(5)
    tag = archives.publish(archive, pages={"index.html": b"2"})
    watcher = threading.Thread(target=view.refresh)
    watcher.start()
    watcher.join(0.2)
    assert view.changes.size == 0
    go.set()
    reader.join()
    watcher.join()
    assert str(tag) in view.domain(DOMAIN).tags and view.changes.read(0, 1000).endswith(f"{tag}\n".encode())


def test_a_line_whose_domain_is_damaged_is_shown_all_the_same(archive: Archive, view: View) -> None:
    archives.publish(archive, "bad.example", {"index.html": b"1"})
    view.domain("bad.example")
    tag = archives.publish(archive, "bad.example", {"index.html": b"2"})
    (archive.repository("bad.example") / "refs/heads/main").write_text("0\n")
    view.refresh()
    assert view.changes.read(0, 1000).decode().splitlines()[-1] == str(tag)
    with pytest.raises(Damaged):
        view.domain("bad.example")


def test_no_lock_is_made_for_names_that_are_no_domain(archive: Archive, tree: Tree) -> None:
    for name in ("/x.example", "/.Trash", "/.snapshots/a@x.example"):
        with pytest.raises(NotFound):
            tree.find(name)
    assert list((archive.root / "lock").iterdir()) == []


def test_domain_without_a_crawl_is_not_shown(archive: Archive, tree: Tree) -> None:
    archives.store_of(archive, "new.example")
    assert names(tree.root) == [".changes"]
    with pytest.raises(NotFound):
        tree.find("/new.example")


def test_changes_follow_the_feed(archive: Archive, view: View) -> None:
    first = archives.publish(archive, pages={"index.html": b"1"})
    view.refresh()
    assert view.changes.read(3, 5) == str(first)[3:8].encode()
    assert view.changes.read(1000, 5) == b""
    Feed(archive.changes).rewrite([first, first])
    view.refresh()
    assert view.changes.size == 2 * (len(str(first)) + 1)
    archive.changes.unlink()
    view.refresh()
    assert view.changes.size == 2 * (len(str(first)) + 1)
    archive.changes.write_text("no tag\n")
    view.refresh()
    assert view.changes.read(0, 100) == b"no tag\n"


def test_cache_is_bounded() -> None:
    cache: Cache[int, bytes] = Cache(100, len)
    for key in range(50):
        assert cache.get(key, lambda: b"x" * 10) == b"x" * 10
    assert cache.weight == 100
    assert cache.get(0, lambda: b"again") == b"again"  # it had gone
    assert cache.get(49, lambda: b"never") == b"x" * 10
    assert cache.get(99, lambda: b"y" * 200) == b"y" * 200
    assert cache.weight <= 100


def test_large_blobs_share_a_file(archive: Archive) -> None:
    store = archives.store_of(archive)
    big = os.urandom(SMALL + 1)
    blob = store.write_blob(big)
    blobs = Blobs()
    gc.collect()  # what earlier tests left must not be closed in between
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    contents = [blobs.open(store, blob, store.size(blob)) for _ in range(10)]
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 # nothing before the first read
    assert all(content.read(SMALL - 5, 100) == big[SMALL - 5 :] for content in contents)
    assert len(os.listdir("/proc/self/fd")) == before + 1  # noqa: PTH208
    for content in contents:
        content.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    with pytest.raises(Damaged):
        store.size("0" * 40)


@pytest.mark.parametrize(("busy", "left"), [(60.0, HELD + 2), (0.0, HELD)])
def test_large_files_that_nobody_opens_stay_while_they_are_read(archive: Archive, busy: float, left: int) -> None:
    """A file more than are kept must not be written anew for each read; one that is idle goes."""
    pages = {f"p{number}": b"%d" % number * (SMALL + 1) for number in range(HELD + 2)}
    archives.publish(archive, pages=dict(pages))
    tree = Tree(View(archive))
    files = [tree.find(f"/{DOMAIN}/{path}/data") for path in pages]
    gc.collect()  # what earlier tests left must not be closed in between
    before, kept = len(os.listdir("/proc/self/fd")), OpenContents(busy)  # noqa: PTH208
    for offset in (0, 1_000):
        for file in files:
            assert isinstance(file, StoredFile)
            assert kept.read(file.ino, file, offset, 1) == pages[file.version.path.partition("/")[0]][:1]
    assert len(os.listdir("/proc/self/fd")) - before == left  # noqa: PTH208
    for file in files:
        kept.forget(file.ino)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_kinds_have_their_modes() -> None:
    assert [kind.value for kind in (NodeKind.FILE, NodeKind.FOLDER, NodeKind.LINK)] == [0o444, 0o755, 0o777]


def test_what_went_while_it_was_listed_hides_nothing(archive: Archive, tree: Tree) -> None:
    """S-readdir-1: a name that is renamed meanwhile may be missing, and nothing else."""
    archives.publish(archive, pages={"a.html": b"a", "b.html": b"b", "c.html": b"c"})
    folder = tree.find(f"/{DOMAIN}")
    assert isinstance(folder, StoredFolder)

    class Listed(StoredFolder):
        def names(self) -> Iterator[str]:
            return iter(["a.html", "gone.html", "c.html"])

    listed = Listed(folder.state, folder.path, folder.tree)
    assert [name for name, _ in listed.children()] == ["a.html", "c.html"]
