"""Additions become commits, each exactly once, whatever dies when (/Ar-8.1/, /Ar-10/)."""

import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.archives import DOMAIN, publish, publish_many, store_of
from tests.support.journals import Writer, lines_of, nothing_left
from webarcfs.archive.additions import commit_additions as committing
from webarcfs.archive.additions.commit_additions import ADDITIONS, commit_additions, replay
from webarcfs.archive.additions.journal import Journal
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, RefUpdate
from webarcfs.archive.git.writing import Pack
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.system import locks

pytestmark = pytest.mark.store


@pytest.fixture
def filled(archive: Archive) -> Archive:
    """Two pages, one of them with a page inside."""
    publish(archive, DOMAIN, {"a.html": b"1", "blog": b"1", "blog/x.html": b"1"})
    return archive


def read(archive: Archive, path: str) -> bytes | None:
    store = store_of(archive)
    head = store.head()
    assert head is not None
    found = store.find(head.tree, path)
    return None if found is None or found.is_tree else store.read(found.oid)


def log(archive: Archive) -> list[str]:
    """Author and message of each commit, newest first."""
    command = ["git", "log", "--format=%an <%ae>%n%B%x00", MAIN]
    done = subprocess.run(command, cwd=archive.repository(DOMAIN), check=True, capture_output=True, text=True)
    return [each.strip() for each in done.stdout.split("\0") if each.strip()]


def test_many_additions_are_one_commit_under_the_current_tag(filled: Archive, writer: Writer) -> None:
    """/Ar-8.1/: the same commitTag; the author is who wrote; a trailer for each file, quoted as git does."""
    tag = publish(filled, DOMAIN, {})
    for name in ("notes.txt", "more/deep/w.txt", "a b\n.txt", "caf\udce9"):
        writer.file("a.html", name, name.encode("utf-8", "surrogateescape"))
    done = commit_additions(filled, DOMAIN)
    assert (len(done.commits), done.dropped, done.cost.additions) == (1, (), 4)
    newest, before, *_ = log(filled)
    *lines, journal = newest.splitlines()
    assert journal.startswith("Journal: ") and journal.endswith(" 4")
    assert lines == [
        "anna <anna@host>",
        str(tag),
        "",
        "Added: a.html/notes.txt",
        "Added: a.html/more/deep/w.txt",
        r'Added: "a.html/a b\n.txt"',
        r'Added: "a.html/caf\351"',
    ]
    assert "Sequence: 2" in before
    store = store_of(filled)
    assert store.ref(tag.ref) == store.ref(MAIN) == done.commits[-1]
    assert read(filled, "a.html/more/deep/w.txt") == b"more/deep/w.txt"
    assert read(filled, "a.html/caf\udce9") == b"caf\xe9"
    assert store.check() == []


def test_authors_who_take_turns_make_a_commit_each(filled: Archive, writer: Writer) -> None:
    for number in range(10):
        writer.file("a.html", f"{number}.txt", b"x", author=("anna", "bert")[number % 2])
    assert len(commit_additions(filled, DOMAIN).commits) == 2
    assert {each.splitlines()[0] for each in log(filled)[:2]} == {"anna <anna@host>", "bert <bert@host>"}


def test_what_is_committed_is_released_and_stays_readable(filled: Archive, writer: Writer) -> None:
    ticket = writer.file("a.html", "n.txt", b"42")
    blob = ticket.addition.blob
    assert writer.journal.read_blob(blob) == b"42"
    done = commit_additions(filled, DOMAIN)
    assert done.upto == {ticket.log: ticket.number}
    assert list(writer.journal.release(done)) == [ticket]
    assert writer.journal.read_blob(blob) is None and writer.journal.pending() == []
    assert read(filled, "a.html/n.txt") == b"42"
    assert commit_additions(filled, DOMAIN).commits == ()
    writer.close()
    nothing_left(filled)


def test_marks_go_when_their_log_is_gone(filled: Archive, writer: Writer) -> None:
    writer.file("a.html", "n.txt", b"42")
    writer.journal.release(commit_additions(filled, DOMAIN))
    assert store_of(filled).refs(ADDITIONS)
    writer.close()
    commit_additions(filled, DOMAIN)
    assert store_of(filled).refs(ADDITIONS) == {}
    assert store_of(filled).check() == []


def test_data_nodes_are_merged_into_data_xml_as_it_is_by_then(filled: Archive, writer: Writer) -> None:
    """Two writers at once both succeed if their nodes differ."""
    other = Writer(filled)
    writer.nodes("a.html", b"<words>42</words>")
    other.nodes("a.html", b'<w:x xmlns:w="urn:w">1</w:x>', author="bert")
    writer.nodes("a.html", b"<more/>")
    done = commit_additions(filled, DOMAIN)
    assert done.dropped == ()
    document = read(filled, "a.html/data.xml")
    assert document is not None
    assert all(node in document for node in (b"<words>42</words>", b"<more/>", b'xmlns:w="urn:w"'))
    other.close()


def test_a_rename_of_an_addition_whether_committed_or_not(filled: Archive, writer: Writer) -> None:
    writer.file("a.html", "tmp1", b"1")
    writer.move("a.html", "tmp1", "one.txt")
    assert len(commit_additions(filled, DOMAIN).commits) == 1
    assert (read(filled, "a.html/tmp1"), read(filled, "a.html/one.txt")) == (None, b"1")
    writer.move("a.html", "one.txt", "deep/two.txt")
    commit_additions(filled, DOMAIN)
    assert (read(filled, "a.html/one.txt"), read(filled, "a.html/deep/two.txt")) == (None, b"1")
    assert "Renamed: a.html/one.txt -> a.html/deep/two.txt" in log(filled)[0]
    writer.file("a.html", ".data.tmp", b"<file/>")
    writer.nodes("a.html", b"<words/>", source=".data.tmp")
    commit_additions(filled, DOMAIN)
    assert read(filled, "a.html/.data.tmp") is None and b"<words/>" in (read(filled, "a.html/data.xml") or b"")


def test_a_file_that_was_synced_and_then_written_on(filled: Archive, writer: Writer) -> None:
    """Each version is confirmed; in git is the last one, whether the first was committed before or not."""
    first = writer.file("a.html", "log.txt", b"1")
    writer.file("a.html", "log.txt", b"12", replaces=first.addition.blob)
    commit_additions(filled, DOMAIN)
    assert read(filled, "a.html/log.txt") == b"12"
    second = writer.journal.pending()[-1]
    writer.file("a.html", "log.txt", b"123", replaces=second.addition.blob)
    assert commit_additions(filled, DOMAIN).dropped == ()
    assert read(filled, "a.html/log.txt") == b"123"
    third = writer.journal.pending()[-1]
    fourth = writer.file("a.html", "log.txt", b"1234", replaces=third.addition.blob)
    writer.file("a.html", "log.txt", b"12345", replaces=fourth.addition.blob)
    assert commit_additions(filled, DOMAIN).dropped == ()
    assert read(filled, "a.html/log.txt") == b"12345"


# -- crawls ------------------------------------------------------------------------------------------------------------


def test_a_crawl_that_replaced_the_arc(filled: Archive, writer: Writer, caplog: pytest.LogCaptureFixture) -> None:
    """/Ar-10/: what was added to the old version is never put into the new one; the log says so."""
    writer.file("a.html", "n.txt", b"42")
    writer.file("blog", "n.txt", b"42")
    publish(filled, DOMAIN, {"a.html": b"2"})
    with caplog.at_level(logging.WARNING):
        done = commit_additions(filled, DOMAIN)
    assert [each.addition.place.arc for each in done.dropped] == ["a.html"]
    assert (read(filled, "a.html/n.txt"), read(filled, "blog/n.txt")) == (None, b"42")
    assert "/www.example.org/a.html: an addition went" in caplog.text
    assert commit_additions(filled, DOMAIN).dropped == ()


def test_a_page_that_took_the_name(filled: Archive, writer: Writer) -> None:
    writer.file("blog", "new.html", b"42")
    writer.file("blog", "way/in.txt", b"42")
    publish(filled, DOMAIN, {"blog/new.html": b"1", "blog/way/to": b"1"})
    assert len(commit_additions(filled, DOMAIN).dropped) == 2


@pytest.mark.parametrize(
    "path", ["data.xml", "data.txt", "headers.http", "sub/data.xml", "x.html/n.txt", ".git/x", "a/../b"]
)
def test_names_that_are_no_addition_s_are_never_committed(filled: Archive, writer: Writer, path: str) -> None:
    writer.file("blog", path, b"42")
    assert len(commit_additions(filled, DOMAIN).dropped) == 1
    assert store_of(filled).check() == []


def test_fold_in_is_for_who_holds_the_lock(filled: Archive, writer: Writer) -> None:
    writer.file("a.html", "n.txt", b"42")
    with locks.Turnstile(filled.lock(DOMAIN)).exclusive():
        done = committing.fold_in(filled, store_of(filled), DOMAIN)
    assert len(done.commits) == 1 and read(filled, "a.html/n.txt") == b"42"


def test_a_commit_that_another_came_before_is_prepared_anew(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Main moved while the objects were made: by a crawl, or by the commit of another mount."""
    writer.file("a.html", "n.txt", b"42")
    writer.file("blog", "n.txt", b"42")
    times = []

    def plan(*args: object) -> object:
        made = planned(*args)
        if len(times) < 2:
            publish(filled, DOMAIN, {"a.html": str(len(times)).encode()})
        times.append(1)
        return made

    planned = committing.planned
    monkeypatch.setattr(committing, "planned", plan)
    done = commit_additions(filled, DOMAIN)
    assert (len(times), len(done.dropped), len(done.commits)) == (3, 1, 1)
    assert read(filled, "blog/n.txt") == b"42"


def test_what_a_publication_takes_in_meanwhile_is_done_once(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A commit read the logs, then a publication folded them in and more was confirmed: nothing is done twice."""
    writer.file("a.html", "n.txt", b"42")
    writer.move("a.html", "n.txt", "m.txt")
    writer.nodes("a.html", b"<one/>")

    def plan(*args: object) -> object:
        monkeypatch.undo()
        writer.nodes("a.html", b"<two/>")
        with locks.Turnstile(filled.lock(DOMAIN)).exclusive():
            assert committing.fold_in(filled, store_of(filled), DOMAIN).dropped == ()
        return committing.planned(*args)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(committing, "planned", plan)
    done = commit_additions(filled, DOMAIN)
    assert (done.commits, done.dropped, set(done.upto.values())) == ((), (), {4})
    assert read(filled, "a.html/m.txt") == b"42" and read(filled, "a.html/n.txt") is None
    assert commit_additions(filled, DOMAIN).dropped == () and "went" not in caplog.text


def test_when_the_refs_cannot_move_nothing_has_happened(
    filled: Archive, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.file("a.html", "n.txt", b"42")
    before = store_of(filled).ref(MAIN)

    def refuse(*_: object) -> None:
        raise Busy("somebody holds it")

    with monkeypatch.context() as patch:
        patch.setattr("webarcfs.archive.git.repository.Repository.update_refs", refuse)
        with pytest.raises(Busy):
            commit_additions(filled, DOMAIN)
    assert store_of(filled).ref(MAIN) == before
    assert len(commit_additions(filled, DOMAIN).commits) == 1


# -- many --------------------------------------------------------------------------------------------------------------


def test_two_mounts_and_an_agent_at_once(archive: Archive) -> None:
    """Writers, committers and publications interleave: all that was confirmed is in git once, under its tag."""
    publish(archive, DOMAIN, {f"{n}.html": b"1" for n in range(4)})
    writers = [Writer(archive) for _ in range(2)]
    stop, errors = threading.Event(), []

    def guarded(work: object) -> threading.Thread:
        def run() -> None:
            try:
                work()  # type: ignore[operator]
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def adding(number: int) -> None:
        for count in range(40):
            writers[number].file(f"{count % 4}.html", f"{number}-{count}.txt", b"%d" % count)

    def committing_all(number: int) -> None:
        while not stop.is_set():
            writers[number].journal.release(commit_additions(archive, DOMAIN))

    threads = [guarded(lambda n=n: adding(n)) for n in range(2)]
    others = [guarded(lambda n=n: committing_all(n)) for n in range(2)]
    for thread in threads:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    for each in writers:
        each.journal.release(commit_additions(archive, DOMAIN))
        each.close()
    assert errors == []
    lines = lines_of(archive, "Added: ")
    assert sorted(lines) == sorted(f"{c % 4}.html/{n}-{c}.txt" for n in range(2) for c in range(40))
    assert all(read(archive, line) is not None for line in lines)
    assert store_of(archive).check() == []
    nothing_left(archive)


def test_a_large_folder_is_written_once_for_many_additions(archive: Archive) -> None:
    """What a commit writes above the ARCs does not depend on how many additions it brings."""
    publish_many(archive, ((f"pages/{n}.html", b"x") for n in range(3000)))
    writer = Writer(archive)
    for number in range(3):
        writer.file(f"pages/{number}.html", "n.txt", b"42")
    few = commit_additions(archive, DOMAIN)
    for number in range(3, 1500):
        writer.append(f"pages/{number}.html", "n.txt", b"42")
    many = commit_additions(archive, DOMAIN)
    assert (few.cost.additions, many.cost.additions) == (3, 1497)
    assert abs(few.cost.shared_bytes - many.cost.shared_bytes) < 10_000
    assert read(archive, "pages/1499.html/n.txt") == b"42"
    assert store_of(archive).check() == []
    assert not list(Path(archive.repository(DOMAIN)).glob("objects/pack/*.keep"))
    writer.close()


# -- replay ------------------------------------------------------------------------------------------------------------


def test_what_a_dead_mount_left_is_committed_once(filled: Archive) -> None:
    writer = Writer(filled)
    writer.file("a.html", "n.txt", b"42")
    writer.file("a.html", "big.bin", b"x" * 200_000)
    writer.die()
    done = replay(filled)
    assert [len(each.commits) for each in done] == [1]
    assert read(filled, "a.html/n.txt") == b"42" and len(read(filled, "a.html/big.bin") or b"") == 200_000
    assert replay(filled) == []
    nothing_left(filled)


def test_a_dead_mount_that_had_committed_but_not_removed_its_log(filled: Archive) -> None:
    writer = Writer(filled)
    writer.file("a.html", "tmp", b"42")
    writer.move("a.html", "tmp", "n.txt")
    commit_additions(filled, DOMAIN)
    commits = log(filled)
    writer.die()
    replay(filled)
    assert log(filled) == commits
    assert read(filled, "a.html/tmp") is None
    nothing_left(filled)


def test_a_log_in_use_is_left_to_its_owner(filled: Archive, writer: Writer) -> None:
    writer.file("a.html", "n.txt", b"42")
    assert replay(filled) == []
    assert len(writer.journal.pending()) == 1


def test_replaying_at_once_does_each_once(filled: Archive) -> None:
    writer = Writer(filled)
    for number in range(20):
        writer.file("a.html", f"{number}.txt", b"42")
    writer.die()
    threads = [threading.Thread(target=replay, args=(filled,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines_of(filled, "Added: ")) == 20
    nothing_left(filled)


def test_a_log_of_a_newer_version_is_left_alone(filled: Archive, caplog: pytest.LogCaptureFixture) -> None:
    path = filled.journal / "20300101T000000-1-abcd-000001.log"
    path.write_bytes(b"webarcfs journal 3\nwho knows")
    replay(filled)
    commit_additions(filled, DOMAIN)
    assert path.read_bytes().endswith(b"who knows")
    assert "newer" in caplog.text


def test_a_torn_end_was_never_confirmed(filled: Archive) -> None:
    writer = Writer(filled)
    writer.file("a.html", "n.txt", b"42")
    path = writer.die()
    whole = path.read_bytes()
    path.write_bytes(whole + b"WAR\x1e\x40\0\0\0abcd{")
    replay(filled)
    assert read(filled, "a.html/n.txt") == b"42"
    nothing_left(filled)


def test_what_can_be_read_of_a_damaged_log_is_kept_and_the_rest_set_aside(
    filled: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Writer(filled)
    ends = []
    for name in ("one", "two", "three"):
        writer.file("a.html", name, name.encode())
        ends.append(writer.size())
    path = writer.die()
    raw = bytearray(path.read_bytes())
    raw[ends[0] + 20] ^= 255
    path.write_bytes(raw)
    replay(filled)
    assert [read(filled, f"a.html/{name}") for name in ("one", "two", "three")] == [b"one", None, b"three"]
    assert f"bytes {ends[0]} to {ends[1]}" in caplog.text
    assert [each.name for each in filled.journal.iterdir()] == [path.with_suffix(".damaged").name]
    assert path.with_suffix(".damaged").read_bytes() == bytes(raw)


def test_a_large_body_that_was_damaged_is_set_aside(filled: Archive) -> None:
    writer = Writer(filled)
    writer.file("a.html", "big.bin", b"x" * 200_000)
    writer.file("a.html", "n.txt", b"42")
    path = writer.die()
    body = next(each for each in filled.journal.rglob("b*") if each.is_file())
    body.write_bytes(b"y" * 200_000)
    replay(filled)
    assert (read(filled, "a.html/big.bin"), read(filled, "a.html/n.txt")) == (None, b"42")
    assert path.with_suffix(".damaged").exists() and body.exists()


def test_an_archive_without_the_domain_keeps_its_log(filled: Archive, caplog: pytest.LogCaptureFixture) -> None:
    writer = Writer(filled)
    writer.file("a.html", "n.txt", b"42")
    path = writer.die()
    repository = filled.repository(DOMAIN)
    repository.rename(repository.with_name("elsewhere"))
    replay(filled)
    assert path.exists() and "stay" in caplog.text
    repository.with_name("elsewhere").rename(repository)
    replay(filled)
    assert read(filled, "a.html/n.txt") == b"42"


def test_a_journal_that_nothing_came_of_goes(filled: Archive) -> None:
    Journal.open(filled).close()
    nothing_left(filled)


def test_a_full_disk_under_git_loses_nothing(filled: Archive, writer: Writer, small_disk: Path) -> None:
    """ENOSPC when a commit is written: the journal has it all, and the next commit takes it."""
    repository = filled.repository(DOMAIN)
    shutil.copytree(repository, small_disk / "moved.git")
    shutil.rmtree(repository)
    repository.symlink_to(small_disk / "moved.git")
    filler = small_disk / "filler"
    free = os.statvfs(small_disk)
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize))
    before = store_of(filled).ref(MAIN)
    for number in range(3):
        writer.file("a.html", f"{number}", os.urandom(20_000))
    with pytest.raises(OSError, match="No space"):
        commit_additions(filled, DOMAIN)
    assert store_of(filled).ref(MAIN) == before and len(writer.journal.pending()) == 3
    filler.unlink()
    assert len(commit_additions(filled, DOMAIN).commits) == 1
    assert len(lines_of(filled, "Added: ")) == 3
    assert store_of(filled).check() == []


def test_what_main_says_is_done_is_not_done_again_where_the_marks_stayed_behind(
    filled: Archive, writer: Writer
) -> None:
    """A power cut may leave main where it was moved to, and the marks, and the commitTag's ref, where they were."""
    tag = publish(filled, DOMAIN, {})
    store = store_of(filled)
    old = store.ref(MAIN)
    writer.file("a.html", "tmp", b"1")
    writer.move("a.html", "tmp", "one.txt")
    done = commit_additions(filled, DOMAIN)
    marks = store.refs(ADDITIONS)
    store.update_refs([RefUpdate(ADDITIONS + name, None, oid) for name, oid in marks.items()])
    store.update_refs([RefUpdate(tag.ref, old, store.ref(tag.ref))])
    again = commit_additions(filled, DOMAIN)
    assert (again.commits, again.dropped, again.upto) == ((), (), done.upto)
    assert store.refs(ADDITIONS) == marks
    assert store.ref(tag.ref) == store.ref(MAIN) == done.commits[-1]
    assert (read(filled, "a.html/tmp"), read(filled, "a.html/one.txt")) == (None, b"1")


def test_a_repack_that_takes_a_folder_from_under_git_costs_a_second_try(
    filled: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git repack -d` of somebody else removes an empty objects/xx/ between its making and its use."""
    given, answers = Pack._given_to, [(128, b"", b"error: unable to write file\nfatal: failed to write object\n")]

    def fails_once(self: Pack, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        return answers.pop() if answers else given(self, command)

    monkeypatch.setattr(Pack, "_given_to", fails_once)
    store = store_of(filled)
    pack = Pack(store.path)
    blob = pack.add("blob", b"once more")
    with pack.stored():
        assert store.read(blob) == b"once more"
    assert not answers
