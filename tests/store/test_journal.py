"""The journal: what `confirm` confirmed is on disk, once, whatever happens then."""

import errno
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.archives import DOMAIN, publish, store_of
from tests.support.journals import Writer, lines_of, nothing_left
from webarcfs.archive.additions import journal
from webarcfs.archive.additions.commit_additions import commit_additions, replay
from webarcfs.archive.additions.journal import Journal, JournalPosition, StoredBody, Wanted
from webarcfs.archive.additions.journal_log import all_logs, take
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import repository
from webarcfs.archive.model.additions import AddFile, ArcVersion, Author
from webarcfs.archive.model.errors import Damaged, Exists
from webarcfs.archive.system.files import blob_id

pytestmark = pytest.mark.store

#: How often the victim is killed; the long form of this test asks for more.
KILLS = int(os.environ.get("WEBARC_JOURNAL_KILLS", "2"))


@pytest.fixture
def filled(archive: Archive) -> Archive:
    """An archive of three pages."""
    publish(archive, DOMAIN, {"a.html": b"1", "b.html": b"1", "c.html": b"1"})
    return archive


def confirmed(archive: Archive) -> list[str]:
    """The files in all logs, as another process reads them."""
    return [
        record.addition.path
        for log in all_logs(archive)
        for record in log.more() or []
        if isinstance(record.addition, AddFile)
    ]


def test_a_confirmed_addition_is_in_the_log_for_every_process(filled: Archive, writer: Writer) -> None:
    ticket = writer.file("a.html", "n.txt", b"42")
    assert confirmed(filled) == ["n.txt"]
    assert writer.journal.pending(DOMAIN) == [ticket]
    assert writer.journal.pending("other.example") == []


def test_a_large_body_is_a_file_beside_the_log(filled: Archive, writer: Writer) -> None:
    data = os.urandom(300_000)
    blob = writer.file("a.html", "big.bin", data).addition.blob
    fd = writer.journal.read_blob(blob)
    assert isinstance(fd, int)
    assert os.pread(fd, len(data) + 1, 0) == data
    os.close(fd)
    assert writer.size() < 1000
    writer.journal.release(commit_additions(filled, DOMAIN))
    assert [each for each in filled.journal.rglob("*") if each.name.startswith("b")] == []


def test_a_draft_that_is_not_final_is_copied(filled: Archive, writer: Writer) -> None:
    """fsync in the midst of writing: what comes later does not change what was confirmed."""
    fd = writer.journal.draft()
    os.write(fd, b"x" * 200_000)
    place = writer.place("a.html")
    author = Author("anna", "anna@host")
    file = AddFile(place, "log", blob_id(b"x" * 200_000), 200_000, author, 1)
    writer.journal.confirm(file, StoredBody(200_000, fd=fd, final=False))
    os.pwrite(fd, b"y" * 200_000, 0)
    os.close(fd)
    assert commit_additions(filled, DOMAIN).dropped == ()


def test_the_body_is_the_one_that_was_announced(writer: Writer) -> None:
    file = AddFile(writer.place("a.html"), "n", blob_id(b"1"), 1, Author("anna", "anna@host"), 1)
    with pytest.raises(Damaged):
        writer.journal.confirm(file, StoredBody(1, b"2"))
    assert writer.journal.pending() == []


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_name_is_confirmed_once_whichever_mount_it_came_by(filled: Archive, writer: Writer) -> None:
    """EEXIST is told at close, so that nothing confirmed has to be dropped."""
    other = Writer(filled)
    writer.file("a.html", "n.txt", b"1")
    writer.file("a.html", "deep/n.txt", b"1")
    for each in (writer, other):
        for name in ("n.txt", "n.txt/below", "deep"):
            with pytest.raises(Exists):
                each.file("a.html", name, b"2")
    other.file("b.html", "n.txt", b"2")
    other.file("a.html", "deep/m.txt", b"2")
    other.close()


def test_a_name_is_free_again_after_a_rename(filled: Archive, writer: Writer) -> None:
    other = Writer(filled)
    writer.file("a.html", "tmp", b"1")
    writer.move("a.html", "tmp", "n.txt")
    other.file("a.html", "tmp", b"2")
    with pytest.raises(Exists):
        other.move("a.html", "tmp", "n.txt")
    with pytest.raises(Exists):
        other.file("a.html", "n.txt", b"2")
    other.close()


def test_a_data_node_is_confirmed_once(filled: Archive, writer: Writer) -> None:
    """Two writers at once both succeed if their nodes differ; EEXIST if not."""
    other = Writer(filled)
    writer.nodes("a.html", b"<words>42</words>")
    with pytest.raises(Exists):
        other.nodes("a.html", b"<words>43</words>")
    other.nodes("a.html", b'<words xmlns="urn:other">43</words>')
    other.nodes("b.html", b"<words>43</words>")
    other.close()


def test_only_its_own_writer_replaces_what_was_confirmed(writer: Writer) -> None:
    first = writer.file("a.html", "n.txt", b"1")
    with pytest.raises(Exists):
        writer.file("a.html", "n.txt", b"2", replaces=blob_id(b"other"))
    writer.file("a.html", "n.txt", b"2", replaces=first.addition.blob)


def test_its_own_writer_replaces_what_was_renamed_after_its_log_went(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "WORTH", 1)
    first = writer.file("a.html", "n.tmp", b"1")
    writer.journal.release(commit_additions(filled, DOMAIN))
    writer.move("a.html", "n.tmp", "n.txt")
    with pytest.raises(Exists):
        writer.file("a.html", "n.txt", b"2")
    writer.file("a.html", "n.txt", b"2", replaces=first.addition.blob)


def test_many_mounts_claim_one_name_at_once(filled: Archive) -> None:
    writers = [Writer(filled) for _ in range(4)]
    place = writers[0].place("a.html")
    won: list[int] = []

    def work(number: int) -> None:
        for name in range(20):
            data = b"%d" % number
            file = AddFile(place, f"{name}", blob_id(data), len(data), Author(f"{number}", "x@h"), 1)
            try:
                writers[number].journal.confirm(file, StoredBody(len(data), data))
            except Exists:
                continue
            won.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(20))
    assert commit_additions(filled, DOMAIN).dropped == ()
    for each in writers:
        each.journal.release(commit_additions(filled, DOMAIN))
        each.close()
    nothing_left(filled)


# -- logs --------------------------------------------------------------------------------------------------------------


def test_a_long_log_is_followed_by_another_and_goes(filled: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pending stays in order over all of them."""
    monkeypatch.setattr(journal, "FULL", 1000)
    monkeypatch.setattr(journal, "WORTH", 1)
    writer = Writer(filled)
    for number in range(20):
        writer.file("a.html", f"{number}", b"x" * 100)
    assert len(all_logs(filled)) > 3
    assert [ticket.addition.path for ticket in writer.journal.pending()] == [f"{n}" for n in range(20)]  # type: ignore[union-attr]
    writer.move("a.html", "0", "zero")
    writer.journal.release(commit_additions(filled, DOMAIN))
    assert len(all_logs(filled)) == 1 and confirmed(filled) == []
    with pytest.raises(AssertionError):
        nothing_left(filled)
    writer.close()
    nothing_left(filled)
    assert sorted(lines_of(filled, "Added: ")) == sorted(f"a.html/{n}" for n in range(20))


def test_a_journal_that_is_closed_with_something_pending_leaves_it_to_the_next(filled: Archive) -> None:
    writer = Writer(filled)
    writer.file("a.html", "n.txt", b"42")
    writer.close()
    replay(filled)
    assert lines_of(filled, "Added: ") == ["a.html/n.txt"]
    nothing_left(filled)


def test_a_log_of_a_copy_that_was_put_back_stays(filled: Archive) -> None:
    """Its git may lack what the journal that was closed has committed in the archive before."""
    writer = Writer(filled)
    writer.file("a.html", "n.txt", b"42")
    writer.file("a.html", "large", b"4" * 300_000)
    copy = filled.root.with_name("copy")
    shutil.copytree(filled.root, copy)
    done = commit_additions(filled, DOMAIN)
    shutil.rmtree(filled.root)
    copy.rename(filled.root)
    writer.journal.release(done)
    writer.close()
    replay(filled)
    assert sorted(lines_of(filled, "Added: ")) == ["a.html/large", "a.html/n.txt"]
    nothing_left(filled)


# -- failures ----------------------------------------------------------------------------------------------------------


def full_journal(archive: Archive, disk: Path) -> None:
    """Put the journal on a small disk."""
    archive.journal.rmdir()
    archive.journal.symlink_to(disk)


def fill(disk: Path, leave: int) -> Path:
    """Use a disk up but for some bytes."""
    path = disk / "filler"
    free = os.statvfs(disk)
    with path.open("wb") as file:
        file.write(b"x" * (free.f_bavail * free.f_frsize - leave))
    return path


def test_a_full_disk_is_told_at_confirm_and_leaves_nothing(filled: Archive, small_disk: Path) -> None:
    """ENOSPC: what was confirmed before stays, the rest is not there, and it goes on when there is room."""
    full_journal(filled, small_disk)
    writer = Writer(filled)
    writer.file("a.html", "before", b"1" * 900)
    filler = fill(small_disk, 0)
    with pytest.raises(OSError, match="No space") as caught:
        for number in range(20):
            writer.file("a.html", f"{number}", b"2" * 900)
    assert caught.value.errno == errno.ENOSPC
    there = confirmed(filled)
    assert there == [ticket.addition.path for ticket in writer.journal.pending()]  # type: ignore[union-attr]
    filler.unlink()
    writer.file("a.html", f"{len(there) - 1}", b"3" * 900)
    assert len(confirmed(filled)) == len(there) + 1
    writer.journal.release(commit_additions(filled, DOMAIN))
    writer.close()
    assert [each.name for each in small_disk.iterdir()] == []


def test_a_full_disk_under_a_large_body(filled: Archive, small_disk: Path) -> None:
    full_journal(filled, small_disk)
    writer = Writer(filled)
    data = b"x" * 400_000
    file = AddFile(writer.place("a.html"), "big", blob_id(data), len(data), Author("a", "a@h"), 1)
    fd = writer.journal.draft()
    os.write(fd, data)
    filler = fill(small_disk, 0)
    with pytest.raises(OSError, match="No space"):
        writer.journal.confirm(file, StoredBody(len(data), fd=fd, final=False))
    assert writer.journal.pending() == [] and confirmed(filled) == []
    filler.unlink()
    writer.journal.confirm(file, StoredBody(len(data), fd=fd))
    os.close(fd)
    assert commit_additions(filled, DOMAIN).dropped == ()
    writer.close()


def test_no_room_for_a_journal(filled: Archive, small_disk: Path) -> None:
    full_journal(filled, small_disk)
    filler = fill(small_disk, 0)
    with pytest.raises(OSError, match="No space"):
        Journal.open(filled)
    filler.unlink()
    assert [each.name for each in small_disk.iterdir()] == []


def test_a_sync_that_failed_confirms_nothing(filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """EIO: nobody finds what was taken back, by whichever log; what comes then goes into another."""
    writer.file("a.html", "before", b"1")

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            writer.file("a.html", "n.txt", b"2")
    assert confirmed(filled) == ["before"]
    other = Writer(filled)
    other.file("a.html", "n.txt", b"3")
    other.close()
    writer.file("a.html", "after", b"4")
    replay(filled)
    commit_additions(filled, DOMAIN)
    assert sorted(lines_of(filled, "Added: ")) == ["a.html/after", "a.html/before", "a.html/n.txt"]


def test_a_sync_that_failed_hits_all_who_shared_it(filled: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(filled)
    place, begun, told = writer.place("a.html"), threading.Event(), []

    def fail(_: int) -> None:
        begun.wait(60)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def work(number: int) -> None:
        file = AddFile(place, f"{number}", blob_id(b"1"), 1, Author("a", "a@h"), 1)
        try:
            writer.journal.confirm(file, StoredBody(1, b"1"))
        except OSError as error:
            told.append(error.errno)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        while len(confirmed(filled)) < 6:
            pass
        begun.set()
        for thread in threads:
            thread.join()
    assert told == [errno.EIO] * 6
    assert confirmed(filled) == [] and writer.journal.pending() == []
    writer.close()


def test_threads_that_confirm_together_share_syncs(filled: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(filled)
    place, count, first = writer.place("a.html"), [], threading.Event()
    fdatasync = os.fdatasync

    def slow(fd: int) -> None:
        count.append(1)
        if len(count) == 1:
            assert first.wait(60)
        fdatasync(fd)

    def work(number: int) -> None:
        file = AddFile(place, f"{number}", blob_id(b"1"), 1, Author("a", "a@h"), 1)
        writer.journal.confirm(file, StoredBody(1, b"1"))

    monkeypatch.setattr(os, "fdatasync", slow)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    while len(confirmed(filled)) < 16:  # all have written; one of them is syncing
        pass
    first.set()
    for thread in threads:
        thread.join()
    assert len(count) <= 2
    writer.journal.release(commit_additions(filled, DOMAIN))
    writer.close()


# -- several at once ---------------------------------------------------------------------------------------------------


def test_what_is_confirmed_together_shares_a_sync_and_no_fault(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is taken, in git's eyes or by one of them, and a body that is another: the others are confirmed."""
    place, syncs, fdatasync = writer.place("a.html"), [], os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (syncs.append(fd), fdatasync(fd)))
    writer.file("a.html", "taken", b"0")
    syncs.clear()
    found = writer.journal.confirm_all(
        [
            _file(place, "first", b"1"),
            _file(place, "taken", b"2"),
            (_file(place, "other", b"3")[0], StoredBody(1, b"4")),
            _file(place, "first", b"5"),
            _file(place, "second", b"6"),
        ]
    )
    assert [type(each) for each in found] == [JournalPosition, Exists, Damaged, Exists, JournalPosition]
    assert confirmed(filled) == ["taken", "first", "second"]
    assert [each.addition.path for each in writer.journal.pending()] == ["taken", "first", "second"]  # type: ignore[union-attr] # files all
    assert len(syncs) == 1
    assert writer.journal.confirm_all([]) == []


def test_what_is_confirmed_together_may_need_another_log(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that were taken in the log before are taken in the next, and both are synced."""
    monkeypatch.setattr(journal, "FULL", 700)
    place, synced, fdatasync = writer.place("a.html"), set(), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.add(fd), fdatasync(fd)))
    names = [f"n{number % 12}" for number in range(24)]
    found = writer.journal.confirm_all([_file(place, name, b"1") for name in names])
    assert [isinstance(each, Exists) for each in found] == [number >= 12 for number in range(24)]
    assert sorted(confirmed(filled)) == sorted(set(names))
    assert len(all_logs(filled)) == len(synced) > 1
    writer.journal.release(commit_additions(filled, DOMAIN))
    assert len(lines_of(filled, "Added: ")) == 12


def test_a_sync_that_failed_hits_all_that_were_confirmed_together(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, large = writer.place("a.html"), os.urandom(100_000)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        found = writer.journal.confirm_all([_file(place, "n.txt", b"1"), _file(place, "large", large)])
    assert [each.errno for each in found if isinstance(each, OSError)] == [errno.EIO] * 2
    assert confirmed(filled) == [] and writer.journal.pending() == []
    assert list(filled.journal.rglob("b*")) == []
    assert [type(each) for each in writer.journal.confirm_all([_file(place, "large", large)])] == [JournalPosition]


def _file(place: ArcVersion, path: str, data: bytes) -> Wanted:
    return AddFile(place, path, blob_id(data), len(data), Author("a", "a@h"), 1), StoredBody(len(data), data)


# -- kills -------------------------------------------------------------------------------------------------------------

VICTIM = """
import sys, threading
from pathlib import Path
from tests.support.journals import Writer
from webarcfs.archive.config import directory\nfrom webarcfs.archive.additions import journal
from webarcfs.archive.additions.commit_additions import commit_additions, replay
journal.FULL, journal.WORTH = 4000, 1000
archive = directory.open_archive(Path(sys.argv[1]))
replay(archive)
writer = Writer(archive)
def commit():
    while True:
        writer.journal.release(commit_additions(archive, "www.example.org"))
threading.Thread(target=commit, daemon=True).start()
count = 0
while True:
    count += 1
    name = f"{sys.argv[2]}-{count}"
    size = 70000 if count % 10 == 0 else 10
    writer.file("a.html", "tmp" + name, (name.encode() + b"x" * size)[:size])
    if count % 3 == 0:
        writer.nodes("b.html", f"<n{name}/>".encode())
        print(f"n{name}", flush=True)
    writer.move("a.html", "tmp" + name, name)
    print(name, flush=True)
"""


def test_kill_9_loses_nothing_confirmed_and_doubles_nothing(filled: Archive) -> None:
    """The victim confirms and commits; after each kill the next one replays what it left."""
    told: list[str] = []
    for turn in range(KILLS):
        command = [sys.executable, "-c", VICTIM, str(filled.root), str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            for _ in range(random.randint(1, 40)):
                told.append(victim.stdout.readline().strip())
            threading.Event().wait(random.random() * 0.1)
            victim.kill()
            told += [line.strip() for line in victim.stdout if line.endswith("\n")]
    assert "" not in told
    done = replay(filled)
    assert [each for part in done for each in part.dropped] == []
    nothing_left(filled)
    store = store_of(filled)
    head = store.head()
    assert head is not None
    arc = store.find(head.tree, "a.html")
    assert arc is not None
    files = {entry.name for entry in store.entries(arc.oid)}
    document = store.find(head.tree, "b.html/data.xml")
    assert document is not None
    nodes = store.read(document.oid).decode()
    for name in told:
        if name.startswith("n"):
            assert nodes.count(f"<{name}/>") == 1, name
        else:
            assert name in files and f"tmp{name}" not in files, name
    # Of what was not told, each turn has at most what was under way: a file, perhaps with its first name, and a node.
    assert len(files) <= len([name for name in told if not name.startswith("n")]) + 3 + KILLS
    added = lines_of(filled, "Added: ")
    assert len([path for path in added if path.startswith("a.html/")]) == len(
        {path.removeprefix("a.html/").removeprefix("tmp") for path in added if path.startswith("a.html/")}
    )
    assert store.check() == []


HEIR = """
import os, signal, sys
from pathlib import Path
from tests.support.journals import Writer
from webarcfs.archive.config import directory
from webarcfs.archive.additions.journal_log import LogWriter
archive = directory.open_archive(Path(sys.argv[1]))
writer = Writer(archive)
writer.file("a.html", "small", b"42")
writer.file("a.html", "large", b"x" * 100_000)
Path.rename = lambda *_: os._exit(1) if os.fork() else (os.close(1), os.read(0, 1))
LogWriter.create(archive.journal, writer.journal.id + "-000002")
"""


def test_a_lock_that_outlives_its_owner_is_waited_for(filled: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed while it starts git leaves one that has its descriptors until it becomes git: some ms, or more.

    Here it has them until its stdin ends. The owner died while it made its second log.
    """
    monkeypatch.setattr("webarcfs.archive.additions.commit_additions.PATIENCE", 60.0)
    command = [sys.executable, "-c", HEIR, str(filled.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdin is not None and victim.stdout is not None
        victim.stdout.read()
        assert victim.wait(60) == 1
        logs = sorted(each for each in filled.journal.iterdir() if each.is_file())
        assert [each.suffix for each in logs] == [".new", ".log"]
        assert [take(each) for each in logs] == [None, None]
        later = threading.Timer(0.3, victim.stdin.close)
        later.start()
        try:
            replay(filled)
        finally:
            later.join()
    assert sorted(lines_of(filled, "Added: ")) == ["a.html/large", "a.html/small"]
    nothing_left(filled)


def test_a_lock_of_an_owner_who_lives_is_not_waited_for(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webarcfs.archive.additions.commit_additions.PATIENCE", 3600.0)
    writer.file("a.html", "n.txt", b"42")
    assert replay(filled) == [] and confirmed(filled) == ["n.txt"]


def test_a_git_that_outlives_its_caller_is_waited_for(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The git that a killed process had begun to move main with may still hold its lock: that syncs first."""
    monkeypatch.setattr(repository, "_PATIENT", ("-c", "core.filesRefLockTimeout=60000"))
    writer.file("a.html", "n.txt", b"42")
    writer.die()
    lock = filled.repository(DOMAIN) / "refs/heads/main.lock"
    lock.touch()
    later = threading.Timer(0.5, lock.unlink)
    later.start()
    replay(filled)
    later.join()
    assert lines_of(filled, "Added: ") == ["a.html/n.txt"]
    nothing_left(filled)


def test_the_name_of_a_draft_that_a_kill_left_goes(filled: Archive) -> None:
    """Where files without names cannot be made, a draft has one for a moment."""
    (filled.journal / ".draft-x").touch()
    replay(filled)
    nothing_left(filled)


TRACED = """
import os, sys
from pathlib import Path
from tests.support.journals import Writer
from webarcfs.archive.config import directory
writer = Writer(directory.open_archive(Path(sys.argv[1])))
for number in range(5):
    writer.file("a.html", f"{number}", b"x" * (10 if number % 2 else 100000))
    os.write(2, b"confirmed\\n")
"""


def test_what_is_confirmed_was_synced_before(filled: Archive, tmp_path: Path) -> None:
    """By the system calls: between two answers, the log is synced last; before it a large body and its name."""
    trace = tmp_path / "trace"
    calls = "openat,open,linkat,pwrite64,fsync,fdatasync,write"
    command = [
        "strace",
        "-f",
        "-y",
        "-e",
        f"trace={calls}",
        "-o",
        str(trace),
        sys.executable,
        "-c",
        TRACED,
        str(filled.root),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("strace is not here")
    parts = trace.read_text().split('"confirmed\\n"')[:-1]
    assert len(parts) == 5
    for number, part in enumerate(parts):
        lines = part.splitlines()
        record = max(n for n, line in enumerate(lines) if "pwrite64" in line and ".log>" in line)
        synced = max(n for n, line in enumerate(lines) if "fdatasync" in line and ".log>" in line)
        assert record < synced
        if number % 2 == 0:
            linked = max(n for n, line in enumerate(lines) if "linkat" in line)
            body = max(n for n, line in enumerate(lines[:linked]) if "fsync(" in line)
            folder = min(n for n, line in enumerate(lines) if n > linked and "fsync(" in line)
            assert body < linked < folder < record
    replay(filled)


def test_the_place_of_an_addition_is_a_version(filled: Archive, writer: Writer) -> None:
    """The same name in the next version of the ARC is another name."""
    writer.file("a.html", "n.txt", b"1")
    publish(filled, DOMAIN, {"a.html": b"2"})
    assert isinstance(writer.place("a.html"), ArcVersion)
    writer.file("a.html", "n.txt", b"2")
    done = commit_additions(filled, DOMAIN)
    assert [each.addition.blob for each in done.dropped] == [blob_id(b"1")]  # type: ignore[union-attr]
