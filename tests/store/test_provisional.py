"""Provisional files: their last states are durable, in one log, and settle when their mount is dead."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.maintenance import verification
from tests.support.archives import DOMAIN, publish, store_of
from tests.support.journals import Writer, nothing_left
from webarcfs.archive.additions import journal
from webarcfs.archive.additions.commit_additions import commit_additions, replay
from webarcfs.archive.additions.journal import ProvisionalJournal
from webarcfs.archive.additions.journal_log import (
    FileKey,
    LogReader,
    LogRecord,
    all_logs,
    is_newer,
    last_states,
    provisional_logs,
)
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.additions import AddFile, Addition, ArcVersion, Author, Move, Removal
from webarcfs.archive.model.errors import Exists, NotFound

pytestmark = pytest.mark.store

#: How often the victim is killed; the long form of this test asks for more.
KILLS = int(os.environ.get("WEBARC_JOURNAL_KILLS", "2"))
LARGE = 100_000


@pytest.fixture
def filled(archive: Archive) -> Archive:
    """An archive of two pages."""
    publish(archive, DOMAIN, {"a.html": b"1", "b.html": b"1"})
    return archive


class Maker(Writer):
    """A journal of provisional files, and the words to write to it."""

    journal: ProvisionalJournal

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive, kind=ProvisionalJournal)

    def write(self, path: str, data: bytes) -> None:
        """Confirm a state of a file."""
        before = self.journal.state(self.key(path))
        self.file("a.html", path, data, replaces=before.blob if before else "")

    def rename(self, old: str, new: str) -> None:
        self.move("a.html", old, new)

    def remove(self, path: str) -> None:
        self._confirm(Removal(self.place("a.html"), path, Author("anna", "anna@host"), 1))

    def settle(self, path: str) -> None:
        """Take it for final, as a mount does: its own journal has it first."""
        self.journal.remove([self.key(path)])

    def key(self, path: str) -> FileKey:
        return self.place("a.html"), path

    def files(self) -> dict[str, bytes]:
        """What it has."""
        return {path: self.read(path) for _, path in self.journal.files()}

    def read(self, path: str) -> bytes:
        with self.journal.body(self.key(path)) as body:
            return body.data if body.data is not None else os.pread(body.fd, body.size + 1, 0)


@pytest.fixture
def maker(filled: Archive) -> Iterator[Maker]:
    """One mount's provisional files."""
    made = Maker(filled)
    yield made
    made.close()


def in_git(archive: Archive) -> dict[str, bytes]:
    """What was added to a.html."""
    store = store_of(archive)
    head = store.head()
    arc = store.find(head.tree, "a.html") if head else None
    assert arc is not None
    own = {"data.html", "data.xml", "headers.http"}
    return {entry.name: store.read(entry.oid) for entry in store.entries(arc.oid) if entry.name not in own}


def read_back(archive: Archive) -> dict[str, str]:
    """The blobs of the provisional files, as another process reads them from the logs."""
    logs = provisional_logs(archive)
    additions = [record.addition for log in logs for record in log.left(log.more() or [])]
    return {each.path: each.blob for each in additions if isinstance(each, AddFile)}


STEPS = st.lists(
    st.tuples(st.sampled_from(("write", "write", "rename", "remove")), st.sampled_from("abc"), st.sampled_from("abc"))
)


@given(STEPS)
def test_the_last_states_are_those_of_any_file_system(steps: list[tuple[str, str, str]]) -> None:
    """Whatever was written, renamed and removed: one state of each file is left, under its last name."""
    place, by = ArcVersion("d", "a", "v"), Author("a", "m")
    records, expected = [], dict[str, str]()
    for number, (what, name, other) in enumerate(steps, 1):
        addition: Addition
        if what == "write":
            addition = AddFile(place, name, str(number), 0, by, 1, expected.get(name, ""))
            expected[name] = str(number)
        elif name not in expected or (what == "rename" and name == other):
            continue
        elif what == "rename":
            addition = Move(place, name, other, by, 1)
            expected[other] = expected.pop(name)
        else:
            addition = Removal(place, name, by, 1)
            del expected[name]
        records.append(LogRecord(number, addition, 0, 0))
    states = [record.addition for record in last_states(records)]
    assert {each.path: each.blob for each in states if isinstance(each, AddFile)} == expected
    assert [record.number for record in last_states(records)] == sorted(int(blob) for blob in expected.values())


def test_states_renames_and_removals(filled: Archive, maker: Maker) -> None:
    """Nobody commits them; every process can read the last states; the bytes of the past are gone."""
    maker.write("n", b"1")
    maker.write("n", b"x" * LARGE)
    maker.write("n", b"y" * LARGE)
    maker.write("old", b"2")
    maker.write("new", b"z" * LARGE)
    maker.rename("old", "new")
    maker.write("gone", b"3")
    maker.remove("gone")
    assert maker.files() == {"n": b"y" * LARGE, "new": b"2"}
    assert read_back(filled) == {path: maker.journal.state(maker.key(path)).blob for path in ("n", "new")}  # type: ignore[union-attr]
    assert len(list((filled.journal / maker.journal.id).iterdir())) == 1
    assert commit_additions(filled, DOMAIN).commits == ()
    assert all_logs(filled) == [] and replay(filled) == []
    with pytest.raises(NotFound):
        maker.read("gone")


def test_a_reader_has_the_bytes_that_it_opened(maker: Maker) -> None:
    for data in (b"1", b"x" * LARGE):
        maker.write("n", data)
        state = maker.journal.state(maker.key("n"))
        assert state is not None
        with maker.journal.body(maker.key("n")) as body:
            maker.write("n", data + b"2")
            assert (body.data if body.data is not None else os.pread(body.fd, LARGE, 0)) == data
        assert maker.journal.read_blob(state.blob) is None


def test_a_name_belongs_to_one_mount(filled: Archive, maker: Maker) -> None:
    """Whether the other one's file is provisional or not; until it is renamed, removed, or another log has it."""
    other, plain = Maker(filled), Writer(filled)
    maker.write("n", b"1")
    plain.file("a.html", "m", b"1")
    for path in ("n", "m", "n/below"):
        with pytest.raises(Exists):
            other.write(path, b"2")
    other.write("o", b"2")
    with pytest.raises(Exists):
        other.rename("o", "n")
    with pytest.raises(Exists):
        plain.file("a.html", "n", b"2")
    maker.rename("n", "renamed")
    other.rename("o", "n")
    other.remove("n")
    maker.write("n", b"3")
    plain.file("a.html", "n", b"3", replaces=maker.journal.state(maker.key("n")).blob)  # type: ignore[union-attr] # it settles
    maker.settle("n")
    late = [Maker(filled) for _ in range(4)]  # they read the logs in any order, which have random names
    for each in (other, *late):
        with pytest.raises(Exists):
            each.write("n", b"4")
        each.close()
    assert maker.files() == {"renamed": b"1"}
    plain.close()


def test_the_log_is_replaced_when_most_of_it_is_past(
    filled: Archive, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is long there, such as an empty file, keeps nothing of the others."""
    monkeypatch.setattr(journal, "FULL", 4_000)
    maker.journal._full = 4_000
    other = Maker(filled)
    maker.write("empty", b"")
    maker.write("large", b"x" * LARGE)
    names = set()
    for number in range(200):
        maker.write("n", b"%d" % number)
        [log] = [log for log in provisional_logs(filled) if log.id.startswith(maker.journal.id)]
        names.add(log.path.name)
        assert log.path.stat().st_size < 9_000
        assert maker.journal.read_blob(maker.journal.state(maker.key("n")).blob) == b"%d" % number  # type: ignore[union-attr]
    assert len(names) > 10
    assert maker.files() == {"empty": b"", "large": b"x" * LARGE, "n": b"199"}
    for path in maker.files():
        with pytest.raises(Exists):
            other.write(path, b"2")
    other.close()
    maker.die()
    replay(filled)
    assert in_git(filled) == {"empty": b"", "large": b"x" * LARGE, "n": b"199"}
    nothing_left(filled)


def test_the_log_is_replaced_while_others_confirm(
    filled: Archive, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is lost that another thread has written, and not synced or noted yet."""
    monkeypatch.setattr(journal, "FULL", 2_000)
    maker.journal._full = 2_000
    fdatasync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (time.sleep(0.001), fdatasync(fd)))

    def confirm(thread: int) -> None:
        for number in range(30):
            maker.write(f"{thread}-{number % 4}", b"%d" % number)

    threads = [threading.Thread(target=confirm, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = {f"{thread}-{name}": b"%d" % (28 + name - 4 * (name > 1)) for thread in range(6) for name in range(4)}
    assert maker.files() == expected
    maker.die()
    replay(filled)
    assert in_git(filled) == expected


def test_a_sync_that_fails_confirms_nothing_and_costs_nothing_else(
    filled: Archive, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    maker.write("n", b"1")
    maker.write("large", b"x" * LARGE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        for act in (lambda: maker.write("n", b"2"), lambda: maker.remove("large"), lambda: maker.rename("n", "m")):
            with pytest.raises(OSError, match="Input/output"):
                act()
    assert maker.files() == {"n": b"1", "large": b"x" * LARGE}
    maker.write("n", b"3")
    maker.die()
    replay(filled)
    assert in_git(filled) == {"n": b"3", "large": b"x" * LARGE}


def test_what_settled_and_was_not_yet_let_go_settles_as_the_same_file(filled: Archive, maker: Maker) -> None:
    """A kill between the mount's own journal and its log of provisional files; git may have it, or not yet."""
    plain = Writer(filled)
    for number in range(2):
        maker.write(f"old{number}", b"x" * LARGE)
        maker.rename(f"old{number}", f"n{number}")
        plain.file("a.html", f"n{number}", b"x" * LARGE, replaces=maker.journal.state(maker.key(f"n{number}")).blob)  # type: ignore[union-attr]
        if number == 0:
            commit_additions(filled, DOMAIN)
    plain.die()
    maker.die()
    assert [each for part in replay(filled) for each in part.dropped] == []
    assert in_git(filled) == {"n0": b"x" * LARGE, "n1": b"x" * LARGE}
    nothing_left(filled)


def test_what_settled_leaves_nothing(filled: Archive, maker: Maker) -> None:
    maker.write("n", b"x" * LARGE)
    maker.settle("n")
    assert maker.journal.files() == [] and read_back(filled) == {}
    maker.close()
    nothing_left(filled)


def test_an_older_program_leaves_the_log_alone(filled: Archive, maker: Maker) -> None:
    """Its version is another one, for those who know version 1 only."""
    maker.write("n", b"1")
    [log] = provisional_logs(filled)
    head = log.path.read_bytes()[:19]
    assert head == b"webarcfs journal 2\n"
    assert not is_newer(head) and is_newer(b"webarcfs journal 3\n")


def test_verify_reads_it(filled: Archive, maker: Maker) -> None:
    """A body that is gone is told; not one that was written again while it looked."""
    maker.write("n", b"x" * LARGE)
    [log] = provisional_logs(filled)
    [record] = log.left(log.more() or [])
    assert verification._is_whole(log, record)
    maker.write("n", b"y" * LARGE)
    assert verification._is_whole(log, record)
    [body] = (filled.journal / maker.journal.id).iterdir()
    body.unlink()
    again = LogReader(log.path)
    [record] = again.left(again.more() or [])
    assert not verification._is_whole(again, record)


VICTIM = """
import random, sys
from pathlib import Path
from tests.store.test_provisional import Maker, LARGE
from webarcfs.archive.additions.commit_additions import replay
from webarcfs.archive.config import directory
from webarcfs.archive.additions import journal
journal.FULL = 4000
archive = directory.open_archive(Path(sys.argv[1]))
replay(archive)
maker = Maker(archive)
maker.journal._full = 4000
chance = random.Random(int(sys.argv[2]))
have = {}
count = 0
while True:
    count += 1
    path, other = (f"{sys.argv[2]}-{chance.randrange(4)}" for _ in range(2))
    step = chance.choice("wwwrd")
    if step == "w":
        text = f"{count}"
        print("try w", path, text, flush=True)
        maker.write(path, text.encode() + b"x" * (LARGE if count % 7 == 0 else 0))
        have[path] = text
    elif path not in have or path == other:
        continue
    elif step == "r":
        print("try r", path, other, flush=True)
        maker.rename(path, other)
        have[other] = have.pop(path)
    else:
        print("try d", path, "-", flush=True)
        maker.remove(path)
        del have[path]
    print("did", flush=True)
"""


def test_kill_9_loses_no_confirmed_state_and_brings_none_back(filled: Archive) -> None:
    """What is in git in the end is what was confirmed last, or what was being confirmed."""
    allowed: list[list[dict[str, str]]] = []
    for turn in range(KILLS):
        command = [sys.executable, "-c", VICTIM, str(filled.root), str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            lines = [victim.stdout.readline() for _ in range(random.randint(1, 120))]
            threading.Event().wait(random.random() * 0.05)
            victim.kill()
            lines += [line for line in victim.stdout if line.endswith("\n")]
        have: dict[str, str] = {}
        following: dict[str, str] = {}
        for line in lines:
            words = line.split()
            if words == ["did"]:
                have = following
                continue
            _, step, path, other = words
            following = dict(have)
            if step == "w":
                following[path] = other
            elif step == "r":
                following[other] = following.pop(path)
            else:
                del following[path]
        allowed.append([have, following])
    assert [each for part in replay(filled) for each in part.dropped] == []
    nothing_left(filled)
    found = {path: data.rstrip(b"x").decode() for path, data in in_git(filled).items()}
    for turn, either in enumerate(allowed):
        of_turn = {path: text for path, text in found.items() if path.startswith(f"{turn}-")}
        assert of_turn in either
    assert store_of(filled).check() == []
