"""What `webarc export` selects: each snapshot with its tree and that of the one exported before it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support import archives
from tests.support.histories import DOMAIN, FIRST, History, Step
from tests.support.recorded import published
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, NotFound, UsageError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.export.selection import Asked, Exported, Selection, select

pytestmark = pytest.mark.store


def _archive(folder: Path, *steps: Step) -> tuple[Archive, list[CommitTag]]:
    archive = directory.create(folder / "archive")
    return archive, published(archive, History(steps))


def _two(folder: Path) -> tuple[Archive, list[CommitTag]]:
    """Two publications on a domain, in turn."""
    return _archive(
        folder,
        Step("p", {"a": "1"}),
        Step("q", {"b": "2"}),
        Step("p", {"a": "3"}),
        Step("q", {"b": "4"}, RecordState.COUNTED, held=True),
    )


def _rows(found: Selection) -> list[tuple[CommitTag, str, str | None]]:
    return [(each.tag, each.tree, each.before) for each in found]


def _files(each: Exported) -> set[str]:
    return {path.removeprefix("/").partition("/")[0] for path, _ in each.store.files(each.tree, "")}


def test_without_a_choice_it_is_all_snapshots_each_after_the_one_before(tmp_path: Path) -> None:
    archive, tags = _two(tmp_path)
    other = archives.publish(archive, "a.example.org", {"x.html": b"x"})
    store = archives.store_of(archive, DOMAIN)
    trees = [store.snapshot_tree(tag) for tag in tags]
    found = select(archive, Asked())
    first = (other, archives.store_of(archive, "a.example.org").snapshot_tree(other), None)
    assert _rows(found) == [first, *zip(tags, trees, [None, *trees], strict=False)]
    assert _rows(found) == _rows(found)  # it may be read again
    assert [each.tag for each in found.after(3)] == tags[2:]
    assert (len(found), found.newest, found.name) == (5, other, "webarc")
    assert [bool(each.seen) for each in found] == [False, False, True, True, True]
    told = [(each.message.publication, each.message.job, each.message.is_held) for each in found][1:]
    assert [(name, held) for name, _, held in told] == [("p", False), ("q", False), ("p", False), ("q", True)]


def test_at_is_one_snapshot_a_domain(tmp_path: Path) -> None:
    archive, tags = _two(tmp_path)
    late = archives.publish(archive, "a.example.org", {"x.html": b"x"})
    assert [each.tag for each in select(archive, Asked(at=tags[1]))] == [tags[1]]
    assert [each.tag for each in select(archive, Asked(at=late.crawl_time))] == [late, tags[3]]
    early = FIRST + timedelta(days=1, hours=1)
    assert _rows(select(archive, Asked(at=early))) == [
        (tags[1], archives.store_of(archive).snapshot_tree(tags[1]), None)
    ]
    for asked in (Asked(at=FIRST - timedelta(1)), Asked(at=CommitTag(early, DOMAIN)), Asked(at=CommitTag(early, "no"))):
        with pytest.raises(NotFound):
            select(archive, asked)


def test_since_tells_what_came_after_a_snapshot(tmp_path: Path) -> None:
    archive, tags = _two(tmp_path)
    trees = [archives.store_of(archive).snapshot_tree(tag) for tag in tags]
    assert _rows(select(archive, Asked(since=tags[1]))) == [
        (tags[2], trees[2], trees[1]),
        (tags[3], trees[3], trees[2]),
    ]
    assert _rows(select(archive, Asked(since=tags[1], at=tags[2]))) == [(tags[2], trees[2], trees[1])]
    with pytest.raises(NotFound):
        select(archive, Asked(since=tags[3]))
    with pytest.raises(UsageError):
        Asked(since=tags[2], at=tags[1])
    with pytest.raises(UsageError):
        Asked(since=tags[2], at=CommitTag(FIRST, "x.org"))
    with pytest.raises(UsageError):
        Asked(record="r", publication="p")


def test_a_record_and_a_publication_are_exported_as_their_publication_saw_them(tmp_path: Path) -> None:
    archive, tags = _two(tmp_path)
    of_q = list(select(archive, Asked(publication="q")))
    assert [(each.tag, _files(each), each.seen) for each in of_q] == [(tags[1], {"b"}, ""), (tags[3], {"b"}, "")]
    assert of_q[1].before == of_q[0].tree
    record = next(each for each in Catalogue(archive).records("p") if each.parts[0].tag == tags[2])
    of_record = list(select(archive, Asked(record=record.id)))
    assert [(each.tag, _files(each), each.before) for each in of_record] == [(tags[2], {"a"}, None)]
    newest = select(archive, Asked(publication="p", at=FIRST + timedelta(days=9)))
    assert [each.tag for each in newest] == [tags[2]]
    for asked in (Asked(record="20200101T000000-no"), Asked(publication="no")):
        with pytest.raises(NotFound):
            select(archive, asked)


def test_it_stays_as_it_is_while_crawls_and_users_go_on(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "archive")
    tag = archives.publish(archive, pages={"a.html": b"1"})
    found = select(archive, Asked())
    before = _rows(found)
    archives.add(archive, "a.html/notes.txt", b"new")
    archives.publish(archive, pages={"a.html": b"2"})
    assert _rows(found) == before
    again = Selection.from_json(json.loads(json.dumps(found.as_json())), found.open)
    assert _rows(again) == before and again.digest == found.digest
    later = select(archive, Asked(at=tag))
    assert later.digest != found.digest
    assert [each.message.publication for each in later] == ["test"]  # not the message of the addition
    with pytest.raises(Damaged):
        Selection.from_json({"snapshots": {"x": [["no"]]}, "before": {}}, found.open)


def test_a_reader_gets_what_it_may_see_and_as_its_publications_saw_it(tmp_path: Path) -> None:
    archive, tags = _two(tmp_path)
    open_too = archives.publish(archive, "a.example.org", {"x.html": b"x"})
    with ReaderRepositories(Gate(archive, Reader())) as reader:
        found = select(archive, Asked(), reader)
        assert [each.tag for each in found] == [open_too, *tags[:3]]
        assert all(each.message.publication for each in found)
        seen = [_files(each) for each in select(archive, Asked(publication="p"), reader)]
        assert seen == [{"a"}, {"a"}]
        assert [_files(each) for each in select(archive, Asked(publication="q"), reader)] == [{"b"}]
        held = next(each.id for each in Catalogue(archive).records("q") if each.parts[0].tag == tags[3])
        for asked in (Asked(at=tags[3]), Asked(since=tags[3]), Asked(record=held)):
            with pytest.raises(NotFound):
                select(archive, asked, reader)
