"""Writing without a mount (archive_writer.py): names, uploads that end early, authors, two processes, kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import archives, forked
from tests.support.archives import DOMAIN
from tests.support.unmounted import PAGE, add, body_of
from tests.support.waiting import until
from webarcfs.archive.additions.waiting_additions import read_waiting
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.errors import (
    Exists,
    InvalidDocument,
    NameRefused,
    NameTooLong,
    NotFound,
    NotPermitted,
    Stale,
)
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.vfs.node import Caller, File, Folder, author_named
from webarcfs.writing.archive_writer import ArchiveWriter, Upload
from webarcfs.writing.drafts import DraftFile

pytestmark = pytest.mark.store

ANNA = Caller(os.getuid(), os.getgid(), author_named("Anna Ångström <x>", "anna"))
ME = Caller(os.getuid(), os.getgid())


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = archives.make_archive(tmp_path)
    archives.publish(made, DOMAIN, {"p0.html": b"0", "p1.html": b"1", "p1.html/deep.html": b"2"})
    return made


@pytest.fixture
def writer(archive: Archive) -> Iterator[ArchiveWriter]:
    made = ArchiveWriter(archive)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def tag(archive: Archive) -> CommitTag:
    return _newest(archive)


def _newest(archive: Archive) -> CommitTag:
    head = archives.store_of(archive).head()
    assert head is not None
    return head.message.tag


def _read(writer: ArchiveWriter, path: str) -> bytes:
    node = writer.tree.find(path)
    assert isinstance(node, File)
    content = node.open()
    try:
        return content.read(0, 1 << 24)
    finally:
        content.close()


def _names(writer: ArchiveWriter, path: str = PAGE) -> set[str]:
    node = writer.tree.find(path)
    assert isinstance(node, Folder)
    return set(node.names())


def _stored(archive: Archive, path: str = "p0.html") -> dict[str, bytes]:
    """The files below a path of the newest state, as git has them."""
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    folder = store.find(head.tree, path)
    assert folder is not None
    return {name.removeprefix(f"{path}/"): store.read(oid) for name, oid in store.files(folder.oid, path)}


def _upload(writer: ArchiveWriter, tag: CommitTag, name: str, body: bytes = b"words", caller: Caller = ANNA) -> str:
    with writer.upload(tag, PAGE, name, caller) as upload:
        upload.write(body)
        return upload.keep()


# == what is kept =====================================================================================================


def test_what_is_kept_shows_at_once_and_is_committed_in_the_persons_name(
    writer: ArchiveWriter, archive: Archive, tag: CommitTag
) -> None:
    """It is final: though the settings give makers a minute, git has it after a second."""
    blob = _upload(writer, tag, "more/deep/notes.txt")
    assert _read(writer, f"{PAGE}/more/deep/notes.txt") == b"words"
    store = archives.store_of(archive)
    until(lambda: "more/deep/notes.txt" in _stored(archive))
    head = store.head()
    assert head is not None
    author = _author(store, head.oid)
    assert author.startswith("Anna Ångström x <anna@")
    assert _stored(archive)["more/deep/notes.txt"] == b"words" and blob == _blob(store, head.tree)
    assert writer.tree.find(f"{PAGE}/more/deep/notes.txt").attrs().owner is None


def _author(store: Repository, commit: str) -> str:
    return subprocess.run(
        ["git", "-C", str(store.path), "log", "-1", "--format=%an <%ae>", commit],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip


def _blob(store: Repository, tree: str) -> str:
    entry = store.find(tree, "p0.html/more/deep/notes.txt")
    assert entry is not None
    return entry.oid


def test_persons_and_users_have_commits_of_their_own(writer: ArchiveWriter, archive: Archive, tag: CommitTag) -> None:
    """Two persons with one uid, and the user of the process."""
    otto = Caller(ANNA.uid, ANNA.gid, author_named("Otto", "otto"))
    for number, caller in enumerate((ANNA, otto, ME)):
        _upload(writer, tag, f"note{number}", caller=caller)
    writer.add_node(tag, PAGE, b"<words/>", otto)
    until(lambda: {"note0", "note1", "note2"} <= _stored(archive).keys())
    assert b"<words/>" in _read(writer, f"{PAGE}/data.xml")
    writer.stop()
    store = archives.store_of(archive)
    log = subprocess.run(
        ["git", "-C", str(store.path), "log", "--format=%an%n%(trailers)", "main"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "Otto" in log and "Anna Ångström x" in log


def test_nobody_changes_what_is_kept(writer: ArchiveWriter, tag: CommitTag) -> None:
    """Neither its maker nor another one; the bytes stay."""
    _upload(writer, tag, "notes.txt", b"first")
    for caller in (ANNA, ME):
        with pytest.raises(Exists):
            _upload(writer, tag, "notes.txt", b"second", caller)
    assert _read(writer, f"{PAGE}/notes.txt") == b"first"


def test_a_large_file_and_an_empty_one_are_kept(writer: ArchiveWriter, archive: Archive, tag: CommitTag) -> None:
    piece = os.urandom(1 << 20)
    with writer.upload(tag, PAGE, "large", ANNA) as upload:
        for _ in range(9):
            upload.write(piece)
        upload.keep()
    with writer.upload(tag, PAGE, "empty", ANNA) as upload:
        upload.keep()
    assert writer.stop() == []
    assert _stored(archive)["large"] == piece * 9 and _stored(archive)["empty"] == b""


# == what is given up =================================================================================================


def test_an_upload_that_is_cut_leaves_nothing_and_its_name_free(
    writer: ArchiveWriter, archive: Archive, tag: CommitTag
) -> None:
    upload = writer.upload(tag, PAGE, "more/deep/notes.txt", ANNA)
    upload.write(b"x" * 3_000_000)
    with pytest.raises(Exists):
        writer.upload(tag, PAGE, "more/deep/notes.txt", ME)
    upload.discard()
    assert "more" not in _names(writer)
    assert read_waiting(archive) == {}
    assert not list(archive.journal.glob("*/*")) and not writer.view.overlay.listing(_place(writer), "more/deep")
    _upload(writer, tag, "more/deep/notes.txt", caller=ME)
    assert writer.stop() == []
    assert _stored(archive)["more/deep/notes.txt"] == b"words"


def _place(writer: ArchiveWriter) -> ArcVersion | None:
    return writer.current(_tag_of(writer), PAGE).place


def _tag_of(writer: ArchiveWriter) -> CommitTag:
    head = writer.view.domain(DOMAIN).main
    assert head is not None
    return head.message.tag


def test_a_folder_stays_for_another_upload_when_its_maker_gives_up(writer: ArchiveWriter, tag: CommitTag) -> None:
    first = writer.upload(tag, PAGE, "more/first", ANNA)
    second = writer.upload(tag, PAGE, "more/second", ME)
    first.discard()
    second.write(b"2")
    second.keep()
    assert _names(writer, f"{PAGE}/more") == {"second"}


def test_what_was_kept_is_never_given_up(writer: ArchiveWriter, tag: CommitTag) -> None:
    with writer.upload(tag, PAGE, "notes.txt", ANNA) as upload:
        upload.write(b"words")
        upload.keep()
        upload.discard()
    assert _read(writer, f"{PAGE}/notes.txt") == b"words"


def test_a_confirmed_file_cannot_be_discarded(writer: ArchiveWriter, tag: CommitTag) -> None:
    """An fsync has promised it."""
    ready = writer._additions.ready()
    opened, node = ready.create(writer.current(tag, PAGE), "notes.txt", ME)
    ready.write(opened, b"words", None)
    ready.confirm(opened)
    with pytest.raises(NotPermitted):
        ready.discard(opened)
    ready.release(opened)
    assert isinstance(node, DraftFile) and _read(writer, f"{PAGE}/notes.txt") == b"words"


def test_a_node_that_is_refused_leaves_nothing(writer: ArchiveWriter, tag: CommitTag) -> None:
    before = _read(writer, f"{PAGE}/data.xml")
    for element in (b"<a><b></a>", b"<a/><a/>", b"words", b"<!DOCTYPE a><a/>", b"<a>" + b"x" * 20_000_000 + b"</a>"):
        with pytest.raises((InvalidDocument, Exists)):
            writer.add_node(tag, PAGE, element, ANNA)
        assert _read(writer, f"{PAGE}/data.xml") == before
    writer.add_node(tag, PAGE, b"<a/>", ANNA)
    with pytest.raises(Exists):
        writer.add_node(tag, PAGE, b"<a>2</a>", ME)


# == versions and names ===============================================================================================


def test_the_snapshot_says_which_version_is_meant(writer: ArchiveWriter, archive: Archive, tag: CommitTag) -> None:
    """Any snapshot that has the version will do; one before it does not, and one that lacks the document neither."""
    newer = archives.publish(archive, DOMAIN, {"p1.html": b"changed"}, beside_mounts=True)
    until(lambda: _tag_of(writer) == newer)
    _upload(writer, tag, "old")
    _upload(writer, newer, "new")
    with pytest.raises(Stale):
        writer.upload(tag, f"/{DOMAIN}/p1.html", "notes", ANNA)
    newest = archives.publish(archive, DOMAIN, {"p0.html": None}, beside_mounts=True)
    until(lambda: _tag_of(writer) == newest)
    with pytest.raises(Stale):
        _upload(writer, tag, "gone")
    with pytest.raises(NotFound):
        _upload(writer, newest, "gone")
    for path in (f"/{DOMAIN}", f"/{DOMAIN}/", f"/{DOMAIN}/none.html", f"/{DOMAIN}/p1.html/data.xml"):
        with pytest.raises((NotFound, NotPermitted)):
            writer.upload(newest, path, "notes", ANNA)


def test_a_crawl_that_replaces_the_document_ends_an_upload(
    writer: ArchiveWriter, archive: Archive, tag: CommitTag
) -> None:
    upload = writer.upload(tag, PAGE, "notes.txt", ANNA)
    upload.write(b"words")
    archives.publish(archive, DOMAIN, {"p0.html": b"changed"}, beside_mounts=True)
    with pytest.raises(Stale):
        upload.keep()
    until(lambda: _tag_of(writer) != tag)
    assert "notes.txt" not in _names(writer)
    assert read_waiting(archive) == {}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a\0b", "a/../b", "../x", "/x", "x/", "data.html", "data.xml", "headers.http", "n" * 256]
)
def test_a_name_that_is_none_is_refused(writer: ArchiveWriter, tag: CommitTag, name: str) -> None:
    before = _names(writer)
    with pytest.raises((NameRefused, NameTooLong, Exists)):
        writer.upload(tag, PAGE, name, ANNA)
    assert _names(writer) == before


def test_names_of_any_bytes_are_kept(writer: ArchiveWriter, archive: Archive, tag: CommitTag) -> None:
    names = ["a:b", "100%25", "a\nb", "ü", os.fsdecode(b"\xff\xfe"), "n" * 255, " ", "back\\slash"]
    for name in names:
        _upload(writer, tag, name)
    assert writer.stop() == []
    assert set(names) <= _stored(archive).keys()


# == two processes, and kills =========================================================================================


def _process(archive: Archive, *words: str) -> forked.Popen:
    process = forked.Popen(
        [sys.executable, "-m", "tests.support.unmounted", archive.root, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_two_processes_that_add_the_same_names_keep_each_once(archive: Archive) -> None:
    """S-gateway-6: three hundred names; the bytes of each are those of whoever was told that it is kept."""
    names = [f"n{number}" for number in range(300)]
    processes = {person: _process(archive, person, str(len(names))) for person in ("anna", "otto")}
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    kept = {person: process.communicate(timeout=600) for person, process in processes.items()}
    mine = {person: output.split() for person, (output, _) in kept.items()}
    assert sorted([*mine["anna"], *mine["otto"]]) == sorted(names)
    stored = _stored(archive)
    assert {name: stored[name] for name in names} == {
        name: body_of(name, person) for person, kept_names in mine.items() for name in kept_names
    }
    assert read_waiting(archive) == {}


@pytest.mark.parametrize("moment", [1, 5, 20])
def test_a_kill_after_the_answer_loses_nothing(archive: Archive, moment: int) -> None:
    """What a process was told to be kept is there after the next start, as far as it was told."""
    process = _process(archive, "anna", "0", "k")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    told = [process.stdout.readline() for _ in range(moment)]
    os.kill(process.pid, signal.SIGKILL)
    told += process.communicate(timeout=600)[0].splitlines(keepends=True)
    names = [line.removesuffix("\n") for line in told if line.endswith("\n")]
    assert len(names) >= moment
    writer = ArchiveWriter(archive)
    writer.start()
    try:
        shown = {name: _read(writer, f"{PAGE}/{name}") for name in names}
    finally:
        assert writer.stop() == []
    assert shown == {name: body_of(name, "anna") for name in names}
    stored = _stored(archive)
    assert {name: stored[name] for name in names} == shown
    half = {name for name, body in stored.items() if name.startswith("k") and body != body_of(name, "anna")}
    assert half == set()


def test_a_disk_that_is_full_is_said_and_nothing_stays(
    writer: ArchiveWriter, tag: CommitTag, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC of a write reaches whoever writes."""
    import errno

    from webarcfs.writing import drafts

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as caught, writer.upload(tag, PAGE, "notes.txt", ANNA) as upload:
        monkeypatch.setattr(drafts, "write_all_at", full)
        upload.write(b"words")
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert "notes.txt" not in _names(writer)
    assert isinstance(upload, Upload) and add(writer, tag, "notes.txt", "anna")
