"""The table of inodes, expiry, listings and replies of the low-level adapter, without a kernel."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable

import pytest

from tests.support import archives
from tests.support.archives import DOMAIN
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Objects
from webarcfs.archive.model.errors import Damaged, MountFailed, Stale, UsageError
from webarcfs.mount.adapters import binding
from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.libfuse3 import library
from webarcfs.mount.adapters.libfuse3.operations import Operations, Workers
from webarcfs.mount.kernel import readdir
from webarcfs.mount.kernel.inode_table import Inodes, nodeid
from webarcfs.mount.kernel.invalidation import Expiry, Trimmer
from webarcfs.mount.kernel.readdir import Listings
from webarcfs.vfs import content
from webarcfs.vfs.domain_states import DomainState, DomainStates
from webarcfs.vfs.node import Attrs, Folder, NodeKind
from webarcfs.vfs.root import ROOT, Tree
from webarcfs.vfs.view import View

pytestmark = pytest.mark.store


class Kernel:
    """Notes what it is told, and forgets a name's ARC at once, as the real one does a little later."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.inodes: list[int] = []
        self.operations: Operations | None = None
        self.found: dict[str, int] = {}

    def forget_name(self, folder: int, name: str) -> None:  # noqa: ARG002
        self.names.append(name)
        if self.operations and name in self.found:
            self.operations.forget(self.found[name], 1)

    def forget_inode(self, inode: int) -> None:
        self.inodes.append(inode)


class Mounted:
    """The operations of a mount without a kernel."""

    def __init__(self, archive: Archive, view: View) -> None:
        self.tree = Tree(view)
        self.inodes = Inodes(self.tree.root)
        self.kernel = Kernel()
        mount = AdapterContext(archive, self.tree, archive.root, 0, 0, {}, lambda *_: None)
        self.operations = Operations(mount, self.inodes, Workers())
        view.listener = Expiry(self.tree, self.inodes, self.kernel)

    def lookup(self, path: str) -> int:
        number = ROOT
        for name in path.split("/"):
            number = readdir.first_number(self.operations.lookup(number, os.fsencode(name)))
        return number


def test_what_the_kernel_knows_is_counted(archive: Archive, view: View) -> None:
    archives.publish(archive, pages={"index.html": b"1"})
    mounted = Mounted(archive, view)
    number = mounted.lookup(f"{DOMAIN}/index.html")
    assert mounted.lookup(f"{DOMAIN}/index.html") == number and number in mounted.inodes
    mounted.operations.forget(number, 1)
    assert number in mounted.inodes
    mounted.operations.forget(number, 1)
    assert number not in mounted.inodes
    with pytest.raises(Stale):
        mounted.operations.getattr(number, None)
    mounted.operations.forget(ROOT, 1_000)
    assert ROOT in mounted.inodes
    assert mounted.lookup("nothing") == 0


def test_the_inode_that_was_found_last_under_a_name_is_renamed(archive: Archive, view: View) -> None:
    """S-settle-1: the kernel goes on with it, whatever version it is; nothing is kept of other folders."""
    archives.publish(archive, pages={"index.html": b"1"})
    archives.add(archive, "index.html/n", b"n")
    mounted = Mounted(archive, view)
    inodes, folder = mounted.inodes, mounted.lookup(f"{DOMAIN}/index.html")
    number = mounted.lookup(f"{DOMAIN}/index.html/n")
    other, page = mounted.lookup(f"{DOMAIN}/index.html/headers.http"), mounted.lookup(f"{DOMAIN}/index.html/data.html")
    inodes.rename((folder, "n"), inodes.node(other), (folder, "m"))
    assert inodes.node(number) != inodes.node(other)
    inodes.follow(folder)
    inodes.add(inodes.node(page), folder, "n")
    inodes.add(inodes.node(number), folder, "n")
    inodes.rename((folder, "n"), inodes.node(other), (folder, "m"))
    assert inodes.node(number) == inodes.node(other) != inodes.node(page)
    assert inodes.path(number).endswith("/index.html/m") and inodes.path(page).endswith("/index.html/n")
    inodes.rename((folder, "m"), inodes.node(page), (folder, "n"))
    assert inodes.node(number) == inodes.node(page)
    mounted.operations.forget(number, 3)
    assert number not in inodes
    inodes.rename((folder, "n"), inodes.node(other), (folder, "m"))
    assert inodes.node(page) != inodes.node(other)


def test_what_fails_of_a_look_keeps_nothing_else_from_the_kernel(
    archive: Archive, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of the feed are shown then, so what they announce must be there."""
    domains = (DOMAIN, "other.example", "third.example")
    for domain in domains:
        archives.publish(archive, domain, {"index.html": b"1"})
    mounted = Mounted(archive, view)
    for domain in domains:
        mounted.lookup(f"{domain}/index.html")
    read = DomainStates._read

    def fails(self: DomainStates, name: str) -> DomainState:
        if name == "other.example":
            raise RuntimeError("nobody expected that")
        return read(self, name)

    def breaks(_self: DomainStates) -> None:
        raise RuntimeError("nor that")

    monkeypatch.setattr(DomainStates, "_read", fails)
    monkeypatch.setattr(DomainStates, "let_go", breaks)
    tags = [archives.publish(archive, domain, {"index.html": b"2"}) for domain in domains]
    with pytest.raises(RuntimeError, match="nor that"):
        view.refresh()
    assert view.changes.read(0, 9999).decode().split()[-3:] == [str(tag) for tag in tags]
    assert mounted.kernel.names.count("index.html") == 2 and "other.example" in mounted.kernel.names
    with pytest.raises(RuntimeError):
        view.domain("other.example")


def test_answers_that_were_not_taken_are_taken_back(archive: Archive, view: View) -> None:
    archives.publish(archive, pages={"index.html": b"1", "a b/\u00fc.html": b"2"})
    mounted = Mounted(archive, view)
    operations = mounted.operations
    mounted.lookup(DOMAIN)
    known = len(mounted.inodes)
    reply = operations.lookup(mounted.lookup(DOMAIN), b"index.html")
    operations.lookup_undone(reply)
    reply = operations.readdirplus(mounted.lookup(DOMAIN), 4096, 0, None)
    assert len(mounted.inodes) == known + 2 and len(list(readdir.nodeids(reply))) == 2
    operations.readdirplus_undone(reply)
    assert len(mounted.inodes) == known


def test_what_a_listing_that_failed_told_is_taken_back(archive: Archive, view: View) -> None:
    """The kernel is told of none of it, and so would forget none."""
    archives.publish(archive, pages={f"{each}.html": b"1" for each in range(4)})
    mounted = Mounted(archive, view)
    folder, state = mounted.lookup(DOMAIN), view.domain(DOMAIN)
    assert state.main is not None
    arc = state.reader.find(state.main.tree, "2.html")
    assert arc is not None
    (archive.repository(DOMAIN) / "objects" / arc.oid[:2] / arc.oid[2:]).unlink()
    known = len(mounted.inodes)
    with pytest.raises(Damaged):
        mounted.operations.readdirplus(folder, 4096, 0, None)
    assert len(mounted.inodes) == known


def test_listings_go_on_where_they_were(archive: Archive, view: View) -> None:
    archives.publish(archive, pages={f"p{number:02}": b"1" for number in range(40)})
    tree, listings = Tree(view), Listings()
    folder = tree.find(f"/{DOMAIN}")
    assert isinstance(folder, Folder)
    listing, place = listings.at(folder, 0)
    archives.publish(archive, pages={"p00": None})
    view.refresh()
    again, there = listings.at(folder.now(), listing.offset(7))
    assert again is listing and (place, there) == (0, 7)
    new, _ = listings.at(folder.now(), 0)
    assert len(listing.names) == 42 and len(new.names) == 41


def _listed(mounted: Mounted, folder: int) -> dict[bytes, tuple[int, bytes]]:
    """What readdirplus tells, but for the offsets: name → number for the kernel, all that it is told of it."""
    found, offset = {}, 0
    while reply := mounted.operations.readdirplus(folder, 2_000, offset, None):
        at = 0
        while at < len(reply):
            ino, offset, size, kind = struct.unpack_from("=QQII", reply, at + readdir.ENTRY_SIZE)
            end = at + readdir.ENTRY_SIZE + readdir.entry_size(bytes(size))
            name = reply[at + readdir.ENTRY_SIZE + 24 :][:size]
            found[name] = (
                readdir.first_number(reply[at:]),
                reply[at : at + readdir.ENTRY_SIZE] + bytes((ino % 251, kind)),
            )
            at = end
    return found


def test_what_was_told_of_a_folder_is_told_again_only_where_it_changed(archive: Archive, view: View) -> None:
    pages: dict[str, bytes | None] = {f"d/p{number:02}": b"1" for number in range(30)}
    archives.publish(archive, pages=pages | {"d/below/x": b"1"})
    mounted = Mounted(archive, view)
    folder = mounted.lookup(f"{DOMAIN}/d")
    first = _listed(mounted, folder)
    assert len(first) == 33 and mounted.inodes.remembered == 31
    archives.publish(archive, pages={"d/p00": b"2", "d/p01": None, "d/new": b"1"})
    archives.add(archive, "d/p02/note.txt", b"added")
    view.refresh()
    second = _listed(mounted, folder)
    assert first.keys() - second.keys() == {b"p01"} and second.keys() - first.keys() == {b"new"}
    assert {name for name, (number, _) in second.items() if number} == {b"p00", b"p02", b"new"}
    assert [name for name in first.keys() & second.keys() if first[name][1][-2:] != second[name][1][-2:]] == [b"p00"]
    assert mounted.inodes.remembered == 31
    other = Mounted(archive, view)
    third = _listed(other, other.lookup(f"{DOMAIN}/d"))
    for name, told in third.items():
        # The folder below has the time of an older state, since which it lists the same (S-stat-2).
        assert name == b"below" or told == (second if second[name][0] else first)[name], "as who knows nothing tells it"
    number = first[b"p03"][0]
    mounted.operations.forget(number, 1)
    assert number not in mounted.inodes, "told once, it is counted once"
    assert _listed(mounted, folder)[b"p03"] == first[b"p03"] and number in mounted.inodes
    mounted.operations.forget(folder, 1)
    assert mounted.inodes.remembered == 0


def _counted(name: str, method: Callable[..., object], counts: Counter[str]) -> Callable[..., object]:
    def call(*given: object) -> object:
        counts[name] += 1
        return method(*given)

    return call


def test_what_the_kernel_asks_again_is_not_read_from_git_again(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many ARCs as the mount may know are walked from its caches when the kernel let all of them go."""
    arcs, reads = 60, Counter[str]()
    monkeypatch.setattr(content, "most_inodes", lambda: content.OF_AN_ARC * (arcs + 3))
    for name in ("entries", "read"):
        monkeypatch.setattr(Objects, name, _counted(name, getattr(Objects, name), reads))
    archives.publish(archive, pages={f"d/p{number}": b"1" for number in range(arcs)})
    mounted = Mounted(archive, View(archive))
    counts = []
    for _ in range(2):
        reads.clear()
        folder = mounted.lookup(f"{DOMAIN}/d")
        told = {number for number, _ in _listed(mounted, folder).values() if number}
        for arc in frozenset(told):
            files = _listed(mounted, arc)
            assert len(files) == 5
            told |= {number for number, _ in files.values() if number}
        for number in told | {folder, mounted.lookup(DOMAIN)}:
            mounted.operations.forget(number, 1_000)
        assert len(mounted.inodes) == 1
        counts.append(reads.copy())
    assert counts[0]["entries"] >= arcs and counts[0]["read"] >= arcs
    assert not counts[1], counts[1]


def test_only_what_changed_is_expired(archive: Archive, view: View) -> None:
    archives.publish(
        archive, pages={"d/one.html": b"1", "d/two.html": b"1", "e/three.html": b"1", "blog": b"1", "blog/x": b"1"}
    )
    mounted = Mounted(archive, view)
    view.refresh()
    domain, d, e = (mounted.lookup(path) for path in (DOMAIN, f"{DOMAIN}/d", f"{DOMAIN}/e"))
    blog = mounted.lookup(f"{DOMAIN}/blog")
    mounted.kernel.names.clear()
    mounted.kernel.inodes.clear()
    tag = archives.publish(archive, pages={"d/one.html": b"2", "blog": b"2"})
    view.refresh()
    told = mounted.kernel
    # Each tag is told twice: as what the state has, and as what the feed names.
    assert sorted(set(told.names)) == sorted([str(tag), "one.html", "data", "data.xml"])
    assert {d, blog} <= set(told.inodes) and not {domain, e} & set(told.inodes)


def test_folders_are_what_they_are_now(archive: Archive, view: View) -> None:
    archives.publish(archive, pages={"d/one.html": b"1", "gone/two.html": b"1"})
    mounted = Mounted(archive, view)
    view.refresh()
    d, gone = mounted.lookup(f"{DOMAIN}/d"), mounted.lookup(f"{DOMAIN}/gone")
    archives.publish(archive, pages={"d/new.html": b"2", "gone/two.html": None})
    view.refresh()
    assert readdir.first_number(mounted.operations.lookup(d, b"new.html"))
    assert readdir.first_number(mounted.operations.lookup(gone, b"two.html")), "who is inside still sees what was there"


def test_the_oldest_arcs_go_when_there_are_too_many(archive: Archive, view: View) -> None:
    archives.publish(archive, pages={f"p{number:02}": b"1" for number in range(40)})
    mounted = Mounted(archive, view)
    kernel = mounted.kernel
    kernel.operations = mounted.operations
    kernel.found = {f"p{number:02}": mounted.lookup(f"{DOMAIN}/p{number:02}") for number in range(40)}
    kernel.names.clear()
    Trimmer(mounted.inodes, kernel, most=100).trim()
    assert not kernel.names
    Trimmer(mounted.inodes, kernel, most=30).trim()
    assert len(mounted.inodes) <= 27


def test_beginnings_of_conditions_are_forgotten_like_others(archive: Archive, view: View) -> None:
    mounted = Mounted(archive, view)
    view.refresh()
    known = len(mounted.inodes)
    folders = [mounted.lookup(".query")]
    for name in (b"path = '", b"www.example.org", b"a"):
        reply = mounted.operations.lookup(folders[-1], name)
        assert isinstance(reply, bytes), "nobody waits for the database"
        folders.append(readdir.first_number(reply))
    assert len(set(folders)) == 4 and len(mounted.inodes) == known + 4
    assert [number for number, _, _ in mounted.inodes.oldest_arcs(9)] == folders[1:]
    for number in reversed(folders):
        mounted.operations.forget(number, 1)
    assert len(mounted.inodes) == known


def test_versions_in_history_are_inodes_of_their_own(archive: Archive, view: View) -> None:
    tag = archives.publish(archive, pages={"index.html": b"1"})
    tree = Tree(view)
    now, old = (tree.find(f"/{place}/index.html/data.html") for place in (DOMAIN, f".snapshots/{tag}"))
    assert now.ino == old.ino and nodeid(now) != nodeid(old)


def test_replies_have_the_sizes_that_the_kernel_reads() -> None:
    """linux/fuse.h: fuse_entry_out, fuse_attr_out, fuse_open_out, fuse_statfs_out, fuse_dirent, fuse_getxattr_out."""
    attrs = Attrs(NodeKind.FILE, 1000, -1, 2**63 - 1)
    owned = readdir.Owned(1, 2)
    assert (len(owned.entry(7, attrs)), len(owned.attr(attrs)), len(readdir.opened(1, 2))) == (128, 104, 16)
    assert (len(readdir.statfs(os.statvfs("/"))), len(readdir.size_of_xattr(5)), len(readdir.no_entry())) == (
        80,
        8,
        128,
    )
    for size in range(1, 20):
        entry = readdir.direntplus(owned.entry(7, attrs), readdir.dirent(b"n" * size, 5, NodeKind.FILE, 9))
        assert len(entry) == readdir.ENTRY_SIZE + readdir.entry_size(b"n" * size) and len(entry) % 8 == 0
        assert list(readdir.nodeids(entry * 3)) == [7, 7, 7]


def test_a_library_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MountFailed, match="apt install libfuse3-3"):
        library.load("/nowhere/libfuse3.so.3")
    monkeypatch.setattr(library, "KNOWN", {"libfuse3.so.3": (100, 200)})
    with pytest.raises(MountFailed, match="libfuse3-3"):
        library.load.__wrapped__()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(MountFailed, match="binding=fusepy"):
        library.load.__wrapped__()


def test_the_best_binding_that_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert binding.load().__module__ == "webarcfs.mount.adapters.libfuse3.session"
    assert binding.load("fusepy").__module__ == "webarcfs.mount.adapters.fusepy_adapter"
    monkeypatch.setitem(binding.BINDINGS, "libfuse3", ("webarcfs.mount.nothing", "libfuse3-3"))
    assert binding.load().__module__ == "webarcfs.mount.adapters.fusepy_adapter"
    with pytest.raises(MountFailed, match="apt install libfuse3-3"):
        binding.load("libfuse3")
    with pytest.raises(UsageError):
        binding.load("other")


def test_what_was_told_of_a_folder_is_counted_off_once(archive: Archive, view: View) -> None:
    """The kernel may forget a folder while one thread sorts out what was told of it."""
    archives.publish(archive, pages={"d/a.html": b"a", "d/b.html": b"b"})
    mounted = Mounted(archive, view)
    inodes, folder = mounted.inodes, mounted.tree.find(f"/{DOMAIN}/d")
    number = inodes.add(folder, ROOT, "d")
    mounted.operations.readdirplus(number, 65_536, 0, None)
    assert inodes.remembered == 2

    class Names(list[str]):
        def __len__(self) -> int:
            inodes.forget(number, 1)
            return 0

    inodes.retain_listed(number, Names())
    assert inodes.remembered == 0
