"""Closes that come at once: confirmed together, each for itself (confirmation.py, write_operations.py)."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.waiting import until
from webarcfs.archive.additions.journal import Journal
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.model.additions import AddFile, AddNodes, ArcVersion
from webarcfs.archive.model.errors import Exists, Stale, WebarcError
from webarcfs.archive.system import locks
from webarcfs.archive.system.locks import Turnstile
from webarcfs.mount.adapters.libfuse3 import write_operations
from webarcfs.mount.adapters.libfuse3.operations import Workers
from webarcfs.mount.adapters.libfuse3.write_operations import CloseBatcher
from webarcfs.vfs.domain_states import DomainState
from webarcfs.vfs.node import Caller, Node
from webarcfs.vfs.overlay import PendingFile
from webarcfs.vfs.root import Tree
from webarcfs.vfs.view import REFS_EVERY, View
from webarcfs.writing.confirmation import Committer
from webarcfs.writing.drafts import LITTLE, Draft, Opened
from webarcfs.writing.writer import Writer

pytestmark = pytest.mark.store

ME = Caller(os.getuid(), os.getgid())
OTHER = "other.example.org"
Answer = bytes | int | BaseException


class Mount:
    """What a mount has for writing, without a kernel; what closes are told is in `answers`."""

    def __init__(self, folder: Path) -> None:
        self.archive = archives.make_archive(folder)
        for domain in (DOMAIN, OTHER):
            archives.publish(self.archive, domain, {f"p{number}.html": b"1" for number in range(4)})
        self.view = View(self.archive)
        self.journal = Journal.open(self.archive)
        self.view.overlay.begin(self.journal)
        committer = Committer(self.archive, self.journal, self.view.overlay, 0.0)
        self.writer = Writer(self.view, self.journal, committer, Schemas(self.archive.schemas))
        self.workers = Workers()
        self.closing = CloseBatcher(lambda: self.writer, self.workers)
        self.answers: Queue[tuple[str, Answer]] = Queue()
        self._opened: list[Opened] = []

    def file(self, page: str, name: str, body: bytes = b"1", domain: str = DOMAIN) -> Opened:
        """A new file that was written and not closed."""
        opened, _ = self.writer.create(Tree(self.view).find(f"/{domain}/{page}"), name, ME)
        self.writer.write(opened, body, 0)
        self._opened.append(opened)
        return opened

    def nodes(self, page: str, nodes: bytes) -> Opened:
        """A document that was appended to and not closed."""
        document = Tree(self.view).find(f"/{DOMAIN}/{page}/data.xml")
        opened = self.writer.open(document, os.O_WRONLY | os.O_APPEND, ME)
        self.writer.write(opened, nodes, 0)
        return opened

    def close(self, name: str, opened: Opened) -> None:
        """Close it; the answer comes."""
        self.closing.close(opened).start(lambda answer: self.answers.put((name, answer)))

    def end(self) -> None:
        """Let go of what it holds: the process runs other tests, too."""
        self.workers.stop()
        for opened in self._opened:
            opened.draft.let_go()
        self.journal.close()

    def told(self, number: int) -> dict[str, Answer]:
        """The next answers."""
        return dict(self.answers.get(timeout=240) for _ in range(number))

    def pending(self) -> list[str]:
        """What the journal has, in its order."""
        additions = [each.addition for each in self.journal.pending()]
        return [each.path for each in additions if isinstance(each, AddFile)] + [
            each.nodes.decode() for each in additions if isinstance(each, AddNodes)
        ]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    found = Mount(tmp_path)
    yield found
    found.end()


def test_what_is_closed_while_the_domain_is_held_is_confirmed_with_one_sync(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty closes wait for a publisher; then the first has a sync, and all that came after it another."""
    syncs, fdatasync = [], os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (syncs.append(fd), fdatasync(fd)))
    opened = {f"n{number}": mount.file(f"p{number % 4}.html", f"n{number}") for number in range(30)}
    with Turnstile(mount.archive.lock(DOMAIN)).exclusive():
        for name, each in opened.items():
            mount.close(name, each)
        assert mount.answers.empty()
    assert mount.told(30) == dict.fromkeys(opened, 0)
    assert sorted(mount.pending()) == sorted(opened)
    assert len(syncs) <= 2
    assert not any(each.draft.dirty for each in opened.values())


def test_what_one_is_refused_for_is_nothing_to_the_others(mount: Mount) -> None:
    """Each close has its own answer, and what was refused is not there."""
    old = mount.file("p0.html", "stale")
    archives.publish(mount.archive, DOMAIN, {"p0.html": b"2"})
    both = mount.nodes("p1.html", b"<words/>"), mount.nodes("p1.html", b"<words/>")
    files = {name: mount.file(f"{name}.html", name) for name in ("p2", "p3")}
    with Turnstile(mount.archive.lock(DOMAIN)).exclusive():
        for name, each in {**files, "stale": old, "first": both[0], "second": both[1]}.items():
            mount.close(name, each)
    told = mount.told(5)
    assert [told[name] for name in ("p2", "p3", "first")] == [0, 0, 0]
    assert isinstance(told["stale"], Stale) and isinstance(told["second"], Exists)
    assert mount.pending() == ["p2", "p3", "<words/>"]
    assert mount.view.overlay.get(old.draft.place, "", "stale") is None
    assert both[1].draft.failed and not both[0].draft.failed


def test_nodes_of_one_document_that_are_closed_together_are_all_in_it(mount: Mount) -> None:
    """S-xml-4: each is merged with those before, so they are confirmed one after another."""
    opened = {f"{number}": mount.nodes("p1.html", b"<n%d/>" % number) for number in range(6)}
    with Turnstile(mount.archive.lock(DOMAIN)).exclusive():
        for name, each in opened.items():
            mount.close(name, each)
    assert mount.told(6) == dict.fromkeys(opened, 0)
    document = Tree(mount.view).find(f"/{DOMAIN}/p1.html/data.xml")
    assert all(b"<n%d/>" % number in document.open().read(0, 9999) for number in range(6))  # type: ignore[attr-defined] # a File


def test_a_domain_is_taken_over_before_its_lock_is_shared(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state may be dropped at any time, by an error, and is then read under the same lock.

    Who shares that lock already would wait for a publisher that waits for him.
    """
    repository, domain, free = mount.archive.repository(DOMAIN), mount.view.domain, []

    def taken_over(name: str) -> DomainState:
        with locks.if_free(mount.archive.lock(name)) as is_free:
            free.append(is_free)
        return domain(name)

    def drop() -> None:
        repository.rename(repository.with_name("away"))
        for _ in range(REFS_EVERY):
            mount.view.refresh()
        repository.with_name("away").rename(repository)

    monkeypatch.setattr(mount.view, "domain", taken_over)
    opened, nodes = mount.file("p0.html", "n"), mount.nodes("p1.html", b"<n/>")
    for each in (opened, nodes):
        drop()
        mount.writer.confirm(each)
    folder = Tree(mount.view).find(f"/{DOMAIN}/p0.html")
    drop()
    mount.writer.names.rename((folder, "n"), (folder, "m"), 0, ME)
    assert len(free) > 3 and all(free)
    assert mount.pending() == ["n", "<n/>"]


def test_a_file_that_somebody_else_is_at_does_not_hold_up_the_others(mount: Mount) -> None:
    """A lock that is not free, as during a rename, is waited for in the end, and with no other lock in hand."""
    busy, free = mount.file("p0.html", "busy"), mount.file("p0.html", "free")
    assert isinstance(busy.draft, Draft)
    outcomes: Queue[BaseException | None] = Queue()
    closer = threading.Thread(target=lambda: [outcomes.put(each) for each in mount.writer.confirm_all([busy, free])])
    with busy.draft.lock:
        closer.start()
        until(lambda: mount.pending() == ["free"], "the one that is free is confirmed")
        assert free.draft.lock.acquire(timeout=240)
        free.draft.lock.release()
        assert closer.is_alive()
    closer.join(60)
    assert [outcomes.get(timeout=240) for _ in range(2)] == [None, None]
    assert mount.pending() == ["free", "busy"]


def test_a_file_that_is_closed_twice_at_once_is_confirmed_once(mount: Mount) -> None:
    """dup(2): both closes say the same."""
    opened = mount.file("p0.html", "n")
    assert list(mount.writer.confirm_all([opened, opened])) == [None, None]
    assert mount.pending() == ["n"]


def test_a_domain_that_is_held_keeps_no_other_waiting_nor_does_a_large_file(mount: Mount) -> None:
    held, large = mount.file("p1.html", "held"), mount.file("p0.html", "large", b"x" * (LITTLE + 1), OTHER)
    other, another = (mount.file("p1.html", name, domain=OTHER) for name in ("other", "another"))
    assert isinstance(large.draft, Draft)
    with Turnstile(mount.archive.lock(DOMAIN)).exclusive():
        mount.close("held", held)
        mount.close("other", other)
        assert mount.told(1) == {"other": 0}
        with large.draft.lock:  # somebody is at it: it takes as long as that takes
            mount.close("large", large)
            mount.close("another", another)
            assert mount.told(1) == {"another": 0}
        assert mount.told(1) == {"large": 0}
    assert mount.told(1) == {"held": 0}


def test_more_than_are_taken_at_once(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_operations, "MOST", 4)
    opened = {f"n{number}": mount.file("p0.html", f"n{number}") for number in range(30)}
    with Turnstile(mount.archive.lock(DOMAIN)).exclusive():
        for name, each in opened.items():
            mount.close(name, each)
    assert mount.told(30) == dict.fromkeys(opened, 0)


def test_what_cannot_be_shown_is_nothing_to_the_others(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has them all by then."""
    confirmed = mount.view.overlay.confirmed

    def fail(place: ArcVersion, path: str, pending: PendingFile, shown: Node | None) -> None:
        if path == "n1":
            raise MemoryError
        confirmed(place, path, pending, shown)

    monkeypatch.setattr(mount.view.overlay, "confirmed", fail)
    outcomes = list(mount.writer.confirm_all([mount.file("p0.html", f"n{number}") for number in range(3)]))
    assert [type(each) for each in outcomes] == [type(None), MemoryError, type(None)]
    assert mount.pending() == ["n0", "n1", "n2"]


def test_whatever_goes_wrong_everybody_is_answered(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails, a lock file that cannot be had, and what nobody thought of; the next close is well again."""

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for owner, name in ((os, "fdatasync"), (Turnstile, "shared"), (Writer, "confirm_all")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            for number in range(3):
                mount.close(f"{name}{number}", mount.file("p0.html", f"{name}{number}"))
            told = mount.told(3)
        assert [error.errno for error in told.values() if isinstance(error, OSError)] == [errno.EIO] * 3
        assert not any(isinstance(error, WebarcError) for error in told.values())
    mount.close("n", mount.file("p0.html", "n"))
    assert mount.told(1) == {"n": 0}
    assert mount.pending() == ["n"]
