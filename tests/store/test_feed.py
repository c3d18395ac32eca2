"""The feed: whole lines only, in order, whatever a crash left (/Cl-5/)."""

import os
import threading
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.archives import FIRST
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.store
TAGS = [CommitTag(FIRST + timedelta(seconds=n), "www.example.org") for n in range(200)]


def test_an_empty_feed_and_one_that_is_missing(archive: Archive) -> None:
    feed = Feed(archive.changes)
    assert list(feed.lines()) == [] and feed.last() is None
    archive.changes.unlink()
    assert list(feed.lines()) == [] and feed.last() is None
    feed.append(TAGS[0])
    assert archive.changes.read_text() == f"{TAGS[0]}\n"


def test_lines_are_appended(archive: Archive) -> None:
    feed = Feed(archive.changes)
    for tag in TAGS:
        feed.append(tag)
        assert feed.last() == str(tag)
    assert list(feed.lines()) == [str(tag) for tag in TAGS]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 60), st.binary(max_size=50).filter(lambda raw: b"\n" not in raw))
def test_a_line_that_a_crash_cut_off_goes_with_the_next(archive: Archive, whole: int, torn: bytes) -> None:
    before = [str(tag) for tag in TAGS[:whole]]
    archive.changes.write_bytes("".join(f"{line}\n" for line in before).encode() + torn)
    feed = Feed(archive.changes)
    assert list(feed.lines()) == before
    assert feed.last() == (before[-1] if before else None)
    feed.append(TAGS[100])
    assert archive.changes.read_text("utf-8") == "".join(f"{line}\n" for line in [*before, str(TAGS[100])])


def test_damage_is_read_as_lines_that_are_no_tags(archive: Archive) -> None:
    archive.changes.write_bytes(b"\xff\xfe\r\x85\n\x00\n")
    feed = Feed(archive.changes)
    assert len(list(feed.lines())) == 2
    archive.changes.write_bytes(b"\xff\n")
    assert feed.last() == "\ufffd"


def test_whoever_follows_it_sees_bytes_appear_at_its_end_only(archive: Archive) -> None:
    feed = Feed(archive.changes)
    seen = bytearray()
    done = threading.Event()

    def follow() -> None:
        with archive.changes.open("rb", buffering=0) as file:
            while not done.is_set() or file.tell() < os.fstat(file.fileno()).st_size:
                seen.extend(file.read(4096))

    reader = threading.Thread(target=follow)
    reader.start()
    for tag in TAGS:
        feed.append(tag)
    done.set()
    reader.join()
    assert seen.decode() == "".join(f"{tag}\n" for tag in TAGS)


def test_rewriting_leaves_alone_what_is_right(archive: Archive) -> None:
    feed = Feed(archive.changes)
    assert feed.rewrite(TAGS[:3]) == 3
    before = archive.changes.stat()
    assert feed.rewrite(TAGS[:3]) == 3
    after = archive.changes.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert feed.rewrite(TAGS[:2]) == 2
    assert list(feed.lines()) == [str(tag) for tag in TAGS[:2]]
    assert sorted(path.name for path in archive.root.iterdir() if "changes" in path.name) == ["changes"]
