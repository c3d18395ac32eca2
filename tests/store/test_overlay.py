"""What a mount lays over git's trees until those have it (webarcfs/vfs/overlay.py), without any mount."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.journals import Writer
from webarcfs.archive.additions import journal
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.additions.journal import Journal
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.git.repository import MAIN, Commit, RefUpdate, Repository, TreeEntry
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.additions import AddNodes, ArcVersion
from webarcfs.archive.model.errors import Damaged, Exists, NameRefused, NameTooLong, NotFound, NotPermitted, Stale
from webarcfs.archive.model.metadata import COMMITTER
from webarcfs.archive.system.files import blob_id
from webarcfs.mount.kernel.readdir import Listings
from webarcfs.vfs.folders import StoredFile, StoredFolder
from webarcfs.vfs.node import Caller, Folder
from webarcfs.vfs.overlay import Overlay, Ownership, PendingFile
from webarcfs.vfs.root import Tree
from webarcfs.vfs.view import REFS_EVERY, View
from webarcfs.writing.addition_names import has
from webarcfs.writing.confirmation import Committer, DocumentWriter, LockedHead
from webarcfs.writing.drafts import Draft
from webarcfs.writing.writer import Writer as Writing

pytestmark = pytest.mark.store

PLACE = ArcVersion(DOMAIN, "index.html", "2026-11-21T03:00:00")
A, B = blob_id(b"a"), blob_id(b"bb")


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    archive = archives.make_archive(tmp_path)
    archives.publish(archive, pages={"index.html": b"1"})
    view = View(archive)
    with contextlib.closing(Journal.open(archive)) as journal:
        view.overlay.begin(journal)
        yield Tree(view)


def listing(tree: Tree, path: str = "") -> set[str]:
    folder = tree.find(f"/{DOMAIN}/index.html{path}")
    assert isinstance(folder, Folder)
    return set(folder.names()) - {"data.html", "data.xml", "headers.http"}


def test_pending_files_are_seen_until_git_has_them(tree: Tree) -> None:
    overlay = tree.view.overlay
    overlay.confirmed(PLACE, "notes", PendingFile(A, 1, ("log", 1)))
    assert listing(tree) == {"notes"}
    assert tree.find(f"/{DOMAIN}/index.html/notes").attrs().size == 1
    assert overlay.committed_files(DOMAIN) == []
    overlay.committed(DOMAIN, {("log", 1)})
    settled = overlay.committed_files(DOMAIN)
    assert settled == [(PLACE, "notes", TreeEntry("notes", A, False))]
    overlay.drop(settled)
    assert listing(tree) == set()
    assert overlay.size(A) is None


def test_nobody_misses_what_git_has_just_taken_over(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever found the folder in the state before, and asks the overlay when a newer state is in force."""
    view, folder = tree.view, tree.find(f"/{DOMAIN}/index.html")
    assert isinstance(folder, Folder)
    writer = Writer(view.archive)
    view.overlay.begin(writer.journal)
    ticket = writer.file("index.html", "notes", b"a")
    number = ticket.log, ticket.number
    view.overlay.confirmed(PLACE, "notes", PendingFile(A, 1, number))
    commit_additions(view.archive, DOMAIN)
    view.overlay.committed(DOMAIN, {number})
    view.refresh()
    assert view.overlay.committed_files(DOMAIN) == []
    assert "notes" in folder.names()
    assert folder.lookup("notes").attrs().size == 1
    # And the same where that comes about between two looks.
    writer.file("index.html", "more", b"a")
    asked = view.overlay.listing

    def listing(*place: str) -> object:
        found = asked(*place)  # type: ignore[arg-type]
        commit_additions(view.archive, DOMAIN)
        view._states.renewed(DOMAIN)
        return found

    monkeypatch.setattr(view.overlay, "listing", listing)
    assert "more" in tree.find(f"/{DOMAIN}/index.html").names()  # type: ignore[attr-defined] # a folder
    writer.close()


def test_what_comes_after_a_commit_is_not_dropped_with_it(tree: Tree) -> None:
    overlay = tree.view.overlay
    overlay.confirmed(PLACE, "notes", PendingFile(A, 1, ("log", 1)))
    overlay.committed(DOMAIN, {("log", 1)})
    settled = overlay.committed_files(DOMAIN)
    overlay.confirmed(PLACE, "notes", PendingFile(B, 2, ("log", 2)))
    overlay.drop(settled)
    assert tree.find(f"/{DOMAIN}/index.html/notes").attrs().size == 2


def test_a_version_that_git_never_gets_is_stale_and_not_damage(tree: Tree) -> None:
    overlay, reader = tree.view.overlay, tree.view.domain(DOMAIN).reader
    overlay.confirmed(PLACE, "notes", PendingFile(A, 1, ("log", 1)))
    overlay.confirmed(PLACE, "notes", PendingFile(B, 2, ("log", 2)))
    assert reader.size(A) == 1  # who has looked it up may still ask what it is
    with pytest.raises(Stale):
        reader.open(A, 1)
    with pytest.raises(Damaged):
        reader.size("0" * 40)


def test_renames_leave_no_old_name(tree: Tree) -> None:
    overlay = tree.view.overlay
    overlay.confirmed(PLACE, "old", PendingFile(A, 1, ("log", 1)))
    overlay.moved(PLACE, "old", "new", PendingFile(A, 1, ("log", 2)))
    assert listing(tree) == {"new"}
    with pytest.raises(NotFound):
        tree.find(f"/{DOMAIN}/index.html/old")
    overlay.moved(PLACE, "data.html", "moved", PendingFile(A, 1, ("log", 3)))
    with pytest.raises(NotFound):  # though git has it
        tree.find(f"/{DOMAIN}/index.html/data.html")


def test_what_was_renamed_does_not_come_back_when_its_successor_goes(tree: Tree) -> None:
    overlay = tree.view.overlay
    overlay.moved(PLACE, "data.html", "moved", PendingFile(A, 1, ("log", 1)))
    assert overlay.reserve(PLACE, "data.html", TreeEntry("data.html", "", True), Ownership(0))
    overlay.removed(PLACE, "data.html")
    with pytest.raises(NotFound):
        tree.find(f"/{DOMAIN}/index.html/data.html")


def test_a_folder_takes_the_name_of_what_was_renamed(tree: Tree) -> None:
    """At once, though the state that is shown has the file still."""
    overlay = tree.view.overlay
    overlay.moved(PLACE, "data.html", "moved", PendingFile(A, 1, ("log", 1)))
    assert overlay.reserve(PLACE, "data.html", TreeEntry("data.html", "", True), Ownership(0))
    assert isinstance(tree.find(f"/{DOMAIN}/index.html/data.html"), Folder)
    overlay.committed(DOMAIN, {("log", 1)})
    overlay.drop(overlay.committed_files(DOMAIN))
    assert isinstance(tree.find(f"/{DOMAIN}/index.html/data.html"), Folder)


def test_folders_are_there_before_git_has_them(tree: Tree) -> None:
    overlay = tree.view.overlay
    assert overlay.reserve(PLACE, "more", TreeEntry("more", "", True), Ownership(0))
    assert not overlay.reserve(PLACE, "more", TreeEntry("more", "", True), Ownership(0))
    overlay.confirmed(PLACE, "more/deep", PendingFile(A, 1, ("log", 1)))
    assert (listing(tree), listing(tree, "/more")) == ({"more"}, {"deep"})
    assert overlay.makers.of(PLACE, "more") == Ownership(0)
    overlay.committed(DOMAIN, {("log", 1)})
    overlay.drop(overlay.committed_files(DOMAIN))
    assert listing(tree) == set()  # with the file in git, its folder is, too


def test_a_folder_stays_when_its_only_file_is_renamed_out_of_it(tree: Tree) -> None:
    """As on any file system; git has no such folder any more, so it is this mount's memory only (S-add-4)."""
    overlay = tree.view.overlay
    overlay.confirmed(PLACE, "more/deep/w", PendingFile(A, 1, ("log", 1)))
    overlay.moved(PLACE, "more/deep/w", "w", PendingFile(A, 1, ("log", 2)))
    assert (listing(tree), listing(tree, "/more"), listing(tree, "/more/deep")) == ({"more", "w"}, {"deep"}, set())
    overlay.committed(DOMAIN, {("log", 1), ("log", 2)})
    overlay.drop(overlay.committed_files(DOMAIN))
    assert (listing(tree), listing(tree, "/more/deep")) == ({"more"}, set())


def test_empty_folders_go_with_the_arc_that_a_crawl_replaced(tree: Tree) -> None:
    """They are this mount's memory only, which would grow for as long as it is mounted (S-add-4)."""
    archive, overlay = tree.view.archive, tree.view.overlay
    archives.publish(archive, pages={"kept.html": b"1"})
    tree.view.refresh()
    kept = tree.find(f"/{DOMAIN}/kept.html")
    assert isinstance(kept, StoredFolder) and kept.place is not None
    for place in (PLACE, kept.place):
        for path in ("empty", "empty/deep", "more"):
            assert overlay.reserve(place, path, TreeEntry(path.rpartition("/")[2], "", True), Ownership(0))
    archives.publish(archive, pages={"index.html": b"2"})
    tree.view.refresh()
    assert (overlay.listing(PLACE, ""), overlay.listing(PLACE, "empty")) == ({}, {})
    assert (listing(tree), {*overlay.listing(kept.place, "")}) == (set(), {"empty", "more"})


def test_a_draft_that_is_closed_for_good_takes_no_bytes(tmp_path: Path) -> None:
    """Its descriptor is another file's by then: a truncate(2) that comes late (by an O_PATH descriptor) may not hit."""
    draft = Draft(PLACE, "notes", 0, 0, lambda: journal.nameless(tmp_path))
    draft.write(b"1234", 0)
    draft.let_go()
    other = journal.nameless(tmp_path)
    os.write(other, b"other")
    for attempt in (lambda: draft.truncate(0), lambda: draft.write(b"x", 0), lambda: draft.allocate(0, 0, 9)):
        with pytest.raises(Stale):
            attempt()
    assert os.pread(other, 9, 0) == b"other"
    os.close(other)


def test_a_place_that_an_arc_took_is_told_before_anything_is_confirmed(tree: Tree) -> None:
    """A crawl put a page into a folder that a user had made: nothing may be confirmed that the commit would drop."""
    archive = tree.view.archive
    archives.add(archive, "index.html/more/w", b"1")
    archives.publish(archive, pages={"index.html/more/page.html": b"1"})
    place = ArcVersion(DOMAIN, "index.html", tree.find(f"/{DOMAIN}/index.html").place.version)  # type: ignore[attr-defined] # an Arc
    main = LockedHead.now(tree.view.domain(DOMAIN).reader)
    main.check_free(place, "other/new")
    with pytest.raises(Stale, match="ARC of its own"):
        main.check_free(place, "more/new")
    with pytest.raises(Exists):
        main.check_free(place, "more")


def test_who_syncs_while_a_commit_is_under_way_waits_for_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-fsyncdir-1: what was confirmed before is in git when it returns, also if its commit has begun already."""
    archive = tree.view.archive
    writer = Writer(archive)
    committer = Committer(archive, writer.journal, tree.view.overlay, 0.0)
    begun, go_on, told = threading.Event(), threading.Event(), threading.Event()

    def slow(*args: object) -> object:
        begun.set()
        assert go_on.wait(60)
        return commit_additions(*args)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr("webarcfs.archive.additions.commit_additions.commit_additions", slow)
    committer.start()
    try:
        writer.file("index.html", "n.txt", b"42")
        committer.added(DOMAIN)
        assert begun.wait(60)
        committer.sync(DOMAIN, lambda _error: told.set())
        assert not told.is_set()
        go_on.set()
        assert told.wait(60) and writer.journal.pending() == []
    finally:
        go_on.set()
        committer.stop()
        writer.close()


def test_at_the_end_files_are_taken_in_and_the_kernel_is_told_nothing(tree: Tree) -> None:
    """Its session has ended by then: what would be sent there could hit whatever has its descriptor by now."""
    archive, told = tree.view.archive, []
    journal = Journal.open(archive)
    committer = Committer(archive, journal, tree.view.overlay, 0.0)
    writer = Writing(tree.view, journal, committer, Schemas(archive.schemas))
    writer.tell = lambda _folder, name: told.append(name)
    opened, _ = writer.create(tree.find(f"/{DOMAIN}/index.html"), "open.txt", Caller(0, 0))
    writer.write(opened, b"42", 0)
    writer.finish()
    assert [each.addition.path for each in journal.pending()] == ["open.txt"]  # type: ignore[union-attr] # an AddFile
    assert told == []
    journal.close()


def test_a_close_waits_for_the_rename_that_makes_the_file_data_xml(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-rename-1: confirmed meanwhile, it would be an addition under its old name, which is given up."""
    archive = tree.view.archive
    journal = Journal.open(archive)
    tree.view.overlay.begin(journal)
    writer = Writing(tree.view, journal, Committer(archive, journal, tree.view.overlay, 0.0), Schemas(archive.schemas))
    me, arc = Caller(os.getuid(), os.getgid()), tree.find(f"/{DOMAIN}/index.html")
    opened, node = writer.create(arc, "new.tmp", me)
    old = tree.find(f"/{DOMAIN}/index.html/data.xml")
    assert isinstance(old, StoredFile)
    body = old.open().read(0, 9999).replace(b"<arc:data/>", b"<arc:data><words/></arc:data>")
    writer.write(opened, body, 0)
    closing = threading.Thread(target=lambda: writer.confirm(opened))
    rewrite = DocumentWriter.rewrite

    def slow(*arguments: Any) -> None:
        closing.start()
        closing.join(0.3)  # it cannot end before the rename has
        rewrite(*arguments)

    monkeypatch.setattr(DocumentWriter, "rewrite", slow)
    try:
        writer.names.rename((arc, "new.tmp"), (arc, "data.xml"), 0, me)
        closing.join(60)
        assert [type(each.addition) for each in journal.pending()] == [AddNodes]
        assert listing(tree) == set()
        handles = opened.draft.handles
        for flags in (os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
            with pytest.raises(Stale):  # by way of /proc/self/fd, or as data.xml, while the kernel thinks it is that
                writer.open(node, flags, me)
        with pytest.raises(Stale):
            node.open()
        assert opened.draft.handles == handles
        writer.release(opened)
        with pytest.raises(Stale, match="closed"):  # nobody keeps its bytes
            node.draft.hold()
    finally:
        journal.close()


def test_who_comes_too_late_for_a_data_xml_extends_the_newest(tree: Tree) -> None:
    """S-xml-4: the version that was looked up is superseded by others, and git never gets it."""
    archive = tree.view.archive
    journal = Journal.open(archive)
    tree.view.overlay.begin(journal)
    committer = Committer(archive, journal, tree.view.overlay, 0.0)
    writer, me = Writing(tree.view, journal, committer, Schemas(archive.schemas)), Caller(0, 0)
    path = f"/{DOMAIN}/index.html/data.xml"
    looked_up = tree.find(path)
    for number in range(3):
        opened = writer.open(tree.find(path) if number < 2 else looked_up, os.O_WRONLY | os.O_APPEND, me)
        looked_up = tree.find(path) if number == 1 else looked_up
        writer.write(opened, b"<n%d/>" % number, 0)
        writer.confirm(opened)
        writer.release(opened)
    shown = tree.find(path)
    assert isinstance(shown, StoredFile)
    assert all(b"<n%d/>" % number in shown.open().read(0, 9999) for number in range(3))
    journal.close()


def test_a_data_xml_that_was_looked_up_is_read_though_others_extend_it(tree: Tree) -> None:
    """S-xml-4: ESTALE would come to who asks twice at the wrong moments, and at once to who has it open."""
    journal = Journal.open(tree.view.archive)
    tree.view.overlay.begin(journal)
    committer = Committer(tree.view.archive, journal, tree.view.overlay, 0.0)
    writer, me = Writing(tree.view, journal, committer, Schemas(tree.view.archive.schemas)), Caller(0, 0)
    path = f"/{DOMAIN}/index.html/data.xml"
    looked_up = []
    for number in range(3):
        opened = writer.open(tree.find(path), os.O_WRONLY | os.O_APPEND, me)
        writer.write(opened, b"<n%d/>" % number, 0)
        writer.confirm(opened)
        writer.release(opened)
        looked_up.append(tree.find(path))
    for number, node in enumerate(looked_up):
        assert isinstance(node, StoredFile)
        body = node.open().read(0, 9999)
        assert (node.attrs().size, body.count(b"<n")) == (len(body), number + 1)
    journal.close()


def test_what_was_added_is_there_while_its_state_comes_into_force(tree: Tree) -> None:
    """S-add-1: whoever found the folder in the state before finds what is not laid over that any more."""
    archive, overlay = tree.view.archive, tree.view.overlay
    overlay.reserve(PLACE, "more", TreeEntry("more", "", True), Ownership(0))
    overlay.confirmed(PLACE, "notes", PendingFile(A, 1, ("log", 1)))
    overlay.confirmed(PLACE, "more/deep", PendingFile(A, 1, ("log", 2)))
    overlay.confirmed(PLACE, "old", PendingFile(A, 1, ("log", 3)))
    archives.add(archive, "index.html/old", b"a")
    tree.view.refresh()
    arc = tree.find(f"/{DOMAIN}/index.html")
    more = tree.find(f"/{DOMAIN}/index.html/more")
    assert isinstance(arc, StoredFolder) and isinstance(more, StoredFolder)
    overlay.moved(PLACE, "old", "new", PendingFile(A, 1, ("log", 4)))
    archives.add(archive, "index.html/notes", b"a")
    archives.add(archive, "index.html/more/deep", b"a")
    archives.add(archive, "index.html/new", b"a")
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    store.update_refs([RefUpdate(MAIN, without(store, head, "index.html/old"), head.oid)])
    overlay.committed(DOMAIN, {("log", number) for number in range(1, 5)})
    for _ in range(REFS_EVERY):
        tree.view.refresh()
    assert overlay.late() == set() and overlay.listing(PLACE, "") == {}
    assert (listing(tree), listing(tree, "/more")) == ({"notes", "more", "new"}, {"deep"})
    shown, _ = Listings().at(arc, 0)
    assert {*shown.names} >= {"notes", "more", "new"} and "old" not in shown.names
    for folder, name in ((arc, "notes"), (arc, "more"), (more, "deep"), (arc, "new")):
        assert Tree.child(folder, name).attrs().ino and has(folder, name)
    with pytest.raises(NotFound):
        Tree.child(arc, "old")


def without(store: Repository, head: Commit, path: str) -> str:
    """A commit on top of `head` that removes a file."""
    return store.write_commit(store.edit(head.tree, {path: None}), [head.oid], str(head.message.tag), COMMITTER, 1)


def test_a_name_that_was_given_again_stays_with_who_has_it(tree: Tree) -> None:
    """Saving by rename twice, while the first file is still open: its close lets go of nothing but itself."""
    archive = tree.view.archive
    journal = Journal.open(archive)
    committer = Committer(archive, journal, tree.view.overlay, 0.0)
    writer, me = Writing(tree.view, journal, committer, Schemas(archive.schemas)), Caller(0, 0)
    folder = tree.find(f"/{DOMAIN}/index.html")
    document = archives.store_of(archive).read(folder.lookup("data.xml").version.blob)  # type: ignore[attr-defined]
    first, _ = writer.create(folder, "tmp", me)
    writer.write(first, document.replace(b"<arc:data/>", b"<arc:data><one/></arc:data>"), 0)
    writer.names.rename((folder, "tmp"), (folder, "data.xml"), 0, me)
    second, _ = writer.create(folder, "tmp", me)
    writer.write(second, b"42", 0)
    writer.release(first)
    writer.names.rename((folder, "tmp"), (folder, "kept"), 0, me)
    writer.release(second)
    assert listing(tree) == {"kept"}
    journal.close()


def test_makers_lose_their_rights_in_time() -> None:
    overlay = Overlay()
    overlay.reserve(PLACE, "mine", TreeEntry("mine", A, False), Ownership(7))
    assert overlay.makers.of(PLACE, "mine") == Ownership(7)
    assert overlay.makers.of(None, "mine") is None
    assert overlay.makers.of(PLACE, "other") is None


@pytest.mark.parametrize("name", ["data.xml", "data", "data.html", "headers.http", ".git", ".GITmodules", "git~1"])
def test_reserved_names(name: str) -> None:
    with pytest.raises(NotPermitted):
        arc_paths.check_name("", name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../data.xml", "a\0b", "/"])
def test_what_no_kernel_asks_for_is_no_name(name: str) -> None:
    """A name that was confirmed, and that the commit drops, would be a promise that is not kept."""
    with pytest.raises(NameRefused):
        arc_paths.check_name("", name)
    with pytest.raises(NameRefused):
        arc_paths.check_name("in", name)


def test_bounds_of_names() -> None:
    arc_paths.check_name("", "n" * 255)
    arc_paths.check_name("in", "data.txt")
    with pytest.raises(NameTooLong):
        arc_paths.check_name("", "\u00e9" * 128)
    with pytest.raises(NameTooLong):
        arc_paths.check_name("/".join("d" * 64), "deeper")
    with pytest.raises(NotPermitted):
        arc_paths.check_name("in", "data.xml")


def test_domains_of_which_git_has_what_is_shown_from_here_are_late() -> None:
    """They are looked at again even if main does not move any more: another mount may have committed it."""
    overlay = Overlay()
    overlay.confirmed(PLACE, "notes", PendingFile(A, 1, ("log", 1)))
    assert overlay.late() == set()
    overlay.committed(PLACE.domain, {("log", 1)})
    assert overlay.late() == {PLACE.domain}
    overlay.drop(overlay.committed_files(PLACE.domain))
    assert overlay.late() == set()
