"""One counter and one order for all publications, whatever dies when."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest

from tests.support.archives import FIRST, store_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, Commit, RefUpdate
from webarcfs.archive.history import sequence
from webarcfs.archive.history.sequence import Feed, PublicationSlot
from webarcfs.archive.model.metadata import COMMITTER, CommitTag, CrawlMessage

pytestmark = pytest.mark.store


class Killed(BaseException):
    """Stands for kill -9."""


def tag(number: int, domain: str = "e.org") -> CommitTag:
    return CommitTag(FIRST + timedelta(seconds=number), domain)


def move_refs(archive: Archive, turn: PublicationSlot) -> None:
    store = store_of(archive, turn.tag.domain)
    message = str(CrawlMessage(turn.tag, "test", True, turn.number))
    main = store.ref(MAIN)
    commit = store.write_commit(store.write_tree([]), [main] if main else [], message, COMMITTER, turn.number)
    store.update_refs([RefUpdate(MAIN, commit, main), RefUpdate(turn.tag.ref, commit, None)])


def publish(archive: Archive, which: CommitTag) -> int:
    with sequence.publication_slot(archive, which) as turn:
        move_refs(archive, turn)
        turn.publish()
        return turn.number


def lines(archive: Archive) -> list[str]:
    return list(Feed(archive.changes).lines())


class crash(AbstractContextManager[None]):  # noqa: N801  reads as a statement
    """The block ends in a kill."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        assert kind is Killed
        return True


def test_numbers_and_lines_go_up_together(archive: Archive) -> None:
    tags = [tag(n, domain) for n in range(3) for domain in ("e.org", "f.org")]
    assert [publish(archive, each) for each in tags] == [1, 2, 3, 4, 5, 6]
    assert lines(archive) == [str(each) for each in tags]


def test_killed_before_the_refs_moved(archive: Archive) -> None:
    publish(archive, tag(1))
    with crash(), sequence.publication_slot(archive, tag(2)):
        raise Killed
    assert publish(archive, tag(2)) == 3, "the number may be lost"
    assert lines(archive) == [str(tag(1)), str(tag(2))]


@pytest.mark.parametrize("domain", ["e.org", "f.org"])
def test_killed_between_refs_and_feed(archive: Archive, domain: str) -> None:
    """The next turn, on whatever domain, adds the line that is missing before its own."""
    publish(archive, tag(1))
    with crash(), sequence.publication_slot(archive, tag(2)) as turn:
        move_refs(archive, turn)
        raise Killed
    assert lines(archive) == [str(tag(1))]
    publish(archive, tag(3, domain))
    assert lines(archive) == [str(tag(1)), str(tag(2)), str(tag(3, domain))]


def test_killed_after_the_line(archive: Archive) -> None:
    with crash(), sequence.publication_slot(archive, tag(1)) as turn:
        move_refs(archive, turn)
        turn.publish()
        raise Killed
    publish(archive, tag(2))
    assert lines(archive) == [str(tag(1)), str(tag(2))]


def test_killed_in_the_middle_of_the_line(archive: Archive) -> None:
    with crash(), sequence.publication_slot(archive, tag(1)) as turn:
        move_refs(archive, turn)
        archive.changes.write_text(str(tag(1))[:9])
        raise Killed
    publish(archive, tag(2))
    assert lines(archive) == [str(tag(1)), str(tag(2))]


@pytest.mark.parametrize(
    "state", [None, b"", b"5", b"garbage\n", b"7 no tag\n", b"\xff\xff\n", b"3 2026-11-21T03:00:0"]
)
def test_a_counter_that_is_lost_or_damaged_is_found_again_in_git(archive: Archive, state: bytes | None) -> None:
    for number in range(1, 4):
        publish(archive, tag(number, f"{number % 2}.org"))
    if state is None:
        archive.sequence.unlink()
    else:
        archive.sequence.write_bytes(state)
    assert publish(archive, tag(9)) == 4
    assert lines(archive)[-1] == str(tag(9)) and len(lines(archive)) == 4


def test_a_damaged_repository_does_not_stop_the_others(archive: Archive) -> None:
    publish(archive, tag(1, "f.org"))
    with crash(), sequence.publication_slot(archive, tag(2)) as turn:
        move_refs(archive, turn)
        raise Killed
    (archive.repository("e.org") / "HEAD").unlink()
    assert publish(archive, tag(3, "f.org")) == 3
    archive.sequence.unlink()
    assert publish(archive, tag(4, "f.org")) == 4


def test_a_domain_whose_repository_went_does_not_stop_the_others(archive: Archive) -> None:
    with crash(), sequence.publication_slot(archive, tag(1, "gone.org")):
        raise Killed
    assert publish(archive, tag(2)) == 2
    assert lines(archive) == [str(tag(2))]


def test_publications_take_turns(archive: Archive) -> None:
    tags = [tag(n, f"{n}.org") for n in range(8)]
    threads = [threading.Thread(target=publish, args=(archive, each)) for each in tags]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lines(archive)) == sorted(str(each) for each in tags)
    numbers = {str(store.message.tag): store.message.sequence for store in _heads(archive)}
    assert [numbers[line] for line in lines(archive)] == list(range(1, 9)), "the feed is in the order of the numbers"


def _heads(archive: Archive) -> Iterator[Commit]:
    for domain in archive.domains():
        head = store_of(archive, domain).head()
        assert head is not None
        yield head


def test_hold_keeps_publications_out(archive: Archive) -> None:
    done = threading.Event()

    def work() -> None:
        publish(archive, tag(1))
        done.set()

    thread = threading.Thread(target=work)
    with sequence.hold(archive):
        thread.start()
        assert not done.wait(0.2)
    thread.join()
    assert done.is_set()


@pytest.mark.parametrize("missing", ["tag", "main"])
def test_refs_that_a_power_cut_left_behind_are_brought_up_at_the_next_start(archive: Archive, missing: str) -> None:
    """The refs of one transaction may survive in part; the publication is there whole afterwards, and in the feed."""
    publish(archive, tag(1))
    with crash(), sequence.publication_slot(archive, tag(2)) as turn:
        before = store_of(archive, "e.org").ref(MAIN)
        move_refs(archive, turn)
        raise Killed
    store = store_of(archive, "e.org")
    after = store.ref(MAIN)
    store.update_refs([RefUpdate(MAIN, before, after) if missing == "main" else RefUpdate(tag(2).ref, None, after)])
    sequence.mend(archive)
    assert store.ref(MAIN) == store.ref(tag(2).ref) == after
    assert lines(archive) == [str(tag(1)), str(tag(2))]
    sequence.mend(archive)
    assert lines(archive) == [str(tag(1)), str(tag(2))]
