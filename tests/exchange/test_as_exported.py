"""`import --as-exported`: the same snapshots, object for object; nothing of one whose records are not all there."""

from __future__ import annotations

import gzip
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from errno import ENOSPC
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.catalogue.recording import catch_up_records
from agent.importing.exported_trees import Intake
from agent.indexing import recovery
from agent.jobs import exportedjob
from agent.maintenance.verification import verify
from tests.support import archives, exportedrecords
from tests.support.archives import rows_of
from tests.support.crawls import count, crawl
from tests.support.disks import small_disk
from tests.support.exportedrecords import Made
from tests.support.imports import command, killed_in
from tests.support.journals import Writer
from tests.support.properties import examples
from tests.support.site import Site, redirect
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import FieldNumber, RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.sequence import Feed, PublicationSlot
from webarcfs.archive.model.arc_paths import HEADERS, data_name
from webarcfs.archive.model.errors import Busy, Damaged, Interrupted
from webarcfs.archive.model.metadata import COMMITTER, CommitTag, CrawlMessage, MetaData
from webarcfs.archive.model.url_lists import Redirect, place_of, write_list
from webarcfs.export import warc
from webarcfs.export.selection import Asked, SelectedSnapshot, Selection, select

pytestmark = pytest.mark.crawl

REFS = ("refs/crawls/", "refs/seen/", "refs/publications/", "refs/heads/")


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two publications on a host, four crawls: redirects, error pages, additions, data nodes, pages that go."""
    archive = directory.create(tmp_path_factory.mktemp("origin") / "archive")
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a><a href="/b/">b</a><a href="/old">o</a><a href="/gone">g</a>')
        for path in ("/a", "/b/", "/b/c", "/b/caf%C3%A9%20x"):
            site.add_html(path, f"This is {path}.")
        site.add_html("/b/", '<a href="c">c</a><a href="caf%C3%A9%20x">x</a>')
        site.add_nasty("/old", redirect("/a"))
        site.add("/gone", "<title>Gone</title>", status=404)
        crawl(archive, site.url(), name="whole", keep_errors=True)
        writer = Writer(archive, site.host)
        writer.file("b/index.html", "notes \udcff.txt", b"42")
        writer.file("b/c", "x/y z/%41.txt", b"deep")
        writer.nodes("a", b"<words>42</words>")
        writer.journal.release(commit_additions(archive, site.host))
        site.add_html("/a", "Changed.")
        crawl(archive, site.url("/b/"), name="part")
        writer.file("a", "late.txt", b"late")
        writer.file("b/c", "late.txt", b"late")
        writer.nodes("b/c", b"<late>1</late>")
        writer.journal.release(commit_additions(archive, site.host))
        site.gone("/b/c")
        site.add_nasty("/old", redirect("/b/"))
        crawl(archive, site.url(), name="whole", keep_errors=True)
        crawl(archive, site.url("/b/"), name="part")
        writer.close()
    assert list(verify(archive)) == []
    yield archive
    shutil.rmtree(archive.root)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive, sound after the test."""
    archive = directory.create(tmp_path / "archive")
    yield archive
    assert list(verify(archive)) == []


def exported(selection: Selection, folder: Path) -> list[Path]:
    """A file for each snapshot."""
    folder.mkdir(exist_ok=True)
    return [
        exportedrecords.write(folder / f"x-{number:05}.warc.gz", exportedrecords.snapshot_records(each))
        for number, each in enumerate(selection)
    ]


def records_in(path: Path) -> bytes:
    """What is in a file behind its warcinfo, which names the commits."""
    return gzip.decompress(path.read_bytes()).partition(b"WARC-Type: metadata")[2]


def trees(archive: Archive) -> dict[str, str]:
    """Ref → tree, of all refs that are states."""
    found = {}
    for domain in archive.domains():
        store = Repository(archive.repository(domain))
        for prefix in REFS:
            for name, oid in store.refs(prefix).items():
                is_commit = store.is_commit(oid)
                found[f"{domain} {prefix}{name}"] = store.commit(oid).tree if is_commit else oid
    return found


def messages(archive: Archive) -> dict[str, tuple[object, ...]]:
    """Tag → what its crawl's commit says, and when."""
    return {str(each.tag): (each.message.trailers, each.time) for each in select(archive, Asked())}


def made_of(archive: Archive, number: int, *, whole: bool = False) -> list[Made]:
    """The records of a snapshot; `whole`: not told by its differences."""
    each = list(select(archive, Asked()))[number]
    return list(exportedrecords.snapshot_records(replace(each, before=None) if whole else each))


def refused(archive: Archive, path: Path, made: Iterable[Made]) -> str:
    """Import records of which nothing can be taken; return what is said."""
    before = trees(archive)
    said = faults_of(archive, path, made)
    assert trees(archive) == before
    return said


def faults_of(archive: Archive, path: Path, made: Iterable[Made]) -> str:
    """Import records; return what is said of those that were not taken."""
    try:
        done = exportedjob.run(archive, [exportedrecords.write(path, made)])
    except Damaged as error:
        return str(error)
    return "\n".join((*done.refused, *done.faults))


def test_the_snapshots_are_the_same_object_for_object(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    files = exported(select(origin, Asked()), tmp_path / "out")
    done = exportedjob.run(empty, list(reversed(files)))
    assert (done.refused, done.faults, done.there) == ((), (), ())
    assert len(done.published) == 4
    assert trees(empty) == trees(origin)
    assert len([name for name in trees(empty) if "refs/seen/" in name]) == 2
    assert messages(empty) == messages(origin)
    assert list(Feed(empty.changes).lines()) == list(Feed(origin.changes).lines())
    assert rows_of(empty) == rows_of(origin)


def test_what_the_exporter_writes_comes_back_object_for_object(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = warc.export(select(origin, Asked()), out, lambda *_: None, lambda: False)
    assert told.left_out == {}
    files = list(out.glob("*.warc.gz"))
    done = exportedjob.run(empty, files)
    assert (done.refused, done.faults, len(done.published)) == ((), (), 4)
    assert trees(empty) == trees(origin)
    assert messages(empty) == messages(origin)
    assert rows_of(empty) == rows_of(origin)
    again = tmp_path / "again"
    warc.export(select(empty, Asked()), again, lambda *_: None, lambda: False)
    assert [records_in(path) for path in files] == [records_in(again / path.name) for path in files]


def test_what_is_there_is_passed_over(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    files = exported(select(origin, Asked()), tmp_path / "out")
    exportedjob.run(empty, files)
    before = trees(empty), list(Feed(empty.changes).lines())
    done = exportedjob.run(empty, files)
    assert (done.published, len(done.there), done.refused) == ((), 4, ())
    assert (trees(empty), list(Feed(empty.changes).lines())) == before


def test_with_a_file_missing_it_says_which_snapshots_lack_what(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    selection = select(origin, Asked())
    files = exported(selection, tmp_path / "out")
    tags = [each.tag for each in selection]
    done = exportedjob.run(empty, [files[0], *files[2:]])
    assert done.published == (tags[0],)
    assert [line.partition(":0")[0][:19] for line in done.refused] == [
        str(tag)[:19] for tag in tags[2:]
    ] or done.refused
    assert all(str(tag) in line for tag, line in zip(tags[2:], done.refused, strict=True))
    assert all("x-00001.warc.gz is not among the files" in line for line in done.refused)
    done = exportedjob.run(empty, files)
    assert (done.published, done.there) == (tuple(tags[1:]), (tags[0],))
    assert trees(empty) == trees(origin)


def test_a_span_comes_on_top_of_what_it_is_told_of(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    first, *_, last = (each.tag for each in select(origin, Asked()))
    exportedjob.run(empty, exported(select(origin, Asked(since=None, at=first)), tmp_path / "one"))
    files = exported(select(origin, Asked(since=first)), tmp_path / "span")
    done = exportedjob.run(empty, files)
    assert (done.published[-1], done.refused) == (last, ())
    assert trees(empty) == trees(origin)


def test_what_a_state_alone_lacks_is_told(origin: Archive, tmp_path: Path) -> None:
    archive, selection = directory.create(tmp_path / "alone"), select(origin, Asked())
    last = exportedrecords.write(tmp_path / "last.warc.gz", made_of(origin, 3, whole=True))
    (remark,) = exportedjob.run(archive, [last]).remarks
    assert "documents name 2 snapshots that are not here" in remark and str(next(iter(selection)).tag) in remark
    assert {"which is not there" in line for line in map(str, verify(archive))} == {True}
    exportedjob.run(archive, exported(selection, tmp_path / "out"))
    assert list(verify(archive)) == [] and trees(archive) == trees(origin)


def test_what_a_publication_saw_and_what_readers_see_come_back(origin: Archive, tmp_path: Path) -> None:
    with ReaderRepositories(Gate(origin, Reader())) as reader:
        chosen = {
            "publication": select(origin, Asked(publication="part")),
            "reader": select(origin, Asked(), reader),
        }
        for name, selection in chosen.items():
            warc.export(selection, tmp_path / f"{name}.warc.gz", lambda *_: None, lambda: False)
            archive = directory.create(tmp_path / name)
            done = exportedjob.run(archive, [tmp_path / f"{name}.warc.gz"])
            assert (done.refused, done.faults, len(done.published)) == ((), (), len(selection))
            assert [each.tree for each in select(archive, Asked())] == [each.tree for each in selection]


def test_crawls_go_on_as_they_would_have_there(empty: Archive, tmp_path: Path) -> None:
    """What is gone is removed, what is the same is not stored again: by refs/publications and the tree."""
    other = directory.create(tmp_path / "other")
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a><a href="/b">b</a><a href="/old">o</a>')
        site.add_html("/a", "This is a.")
        site.add_html("/b", "This is b.")
        site.add_nasty("/old", redirect("/a"))
        crawl(other, site.url(), name="site")
        exportedjob.run(empty, exported(select(other, Asked()), tmp_path / "out"))
        site.add_html("/a", "Changed.")
        site.gone("/b")
        site.add_html("/old", "No redirect any more.")
        outcomes = [crawl(archive, site.url(), name="site") for archive in (other, empty)]
    told = [(count(outcome), outcome.summary["redirects"], outcome.complete) for outcome in outcomes]
    assert told[0] == told[1] and told[0][0] == (1, 1, 1, 1)
    shutil.rmtree(other.root)


def test_what_crawlers_of_two_machines_brought_becomes_one_archive(
    origin: Archive, empty: Archive, tmp_path: Path
) -> None:
    """T-67, as far as it goes: each machine crawls sites of its own; the files come in any order, again and again."""
    other = directory.create(tmp_path / "other")

    def brought(archive: Archive, name: str) -> Path:
        selection = select(archive, Asked())
        warc.export(selection, tmp_path / f"{name}.warc.gz", lambda *_: None, lambda: False)
        return tmp_path / f"{name}.warc.gz"

    with Site() as site:
        site.add_html("/", '<a href="/a">a</a>')
        site.add_html("/a", "This is a.")
        crawl(other, site.url(), name="elsewhere")
        first = brought(other, "first")
        site.add_html("/a", "Changed.")
        crawl(other, site.url(), name="elsewhere")
        second = brought(other, "second")
    assert exportedjob.run(empty, [first]).refused == ()
    assert exportedjob.run(empty, [second, brought(origin, "origin"), first]).refused == ()
    assert trees(empty) == trees(origin) | trees(other)
    recovery.catch_up(empty)
    catch_up_records(empty)
    jobs = {each.message.job for archive in (origin, other) for each in select(archive, Asked())}
    assert set(Catalogue(empty).ids()) == jobs
    shutil.rmtree(other.root)


def test_one_such_import_at_a_time(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    files = exported(select(origin, Asked()), tmp_path / "out")

    def progress(*_: object) -> None:
        with pytest.raises(Busy, match="another import of exported files"):
            exportedjob.run(empty, files)

    exportedjob.run(empty, files, progress=progress)


def test_a_record_without_its_snapshot_is_refused(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    assert "the record that names it is missing" in refused(empty, tmp_path / "x.warc.gz", made_of(origin, 0)[1:])
    assert list(empty.domains()) == []


def test_a_body_that_was_changed_is_refused(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    made = [replace(each, block=each.block.replace(b"This is", b"That is")) for each in made_of(origin, 0)]
    said = refused(empty, tmp_path / "x.warc.gz", made)
    assert "its records make the tree" in said and str(next(iter(select(origin, Asked()))).tag) in said


def test_an_older_snapshot_goes_in_its_place(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    """Main, and what publications saw last, stay with the newer ones."""
    files = exported(select(origin, Asked()), tmp_path / "out")
    whole = exportedrecords.write(tmp_path / "whole.warc.gz", made_of(origin, 2, whole=True))
    assert exportedjob.run(empty, [whole]).refused == ()
    newest = trees(empty)
    done = exportedjob.run(empty, files[:2])
    assert (len(done.published), done.refused) == (2, ())
    assert {name: tree for name, tree in trees(empty).items() if "heads" in name or name.endswith("/whole")} == {
        name: tree for name, tree in newest.items() if "heads" in name or name.endswith("/whole")
    }
    assert list(verify(empty)) == []
    exportedjob.run(empty, files)
    assert trees(empty) == trees(origin)


def test_another_tree_of_that_time_is_refused(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    tag = next(iter(select(origin, Asked()))).tag
    archives.publish(empty, tag.domain, {"a": b"mine"}, tag.crawl_time)
    recovery.catch_up(empty)
    assert "with another tree" in refused(empty, tmp_path / "x.warc.gz", made_of(origin, 0))


def test_what_users_added_here_goes_on_with_newer_snapshots(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    selection = select(origin, Asked())
    files = exported(selection, tmp_path / "out")
    exportedjob.run(empty, files[:1])
    domain = next(empty.domains())
    writer = Writer(empty, domain)
    writer.file("index.html", "mine.txt", b"mine")
    done = exportedjob.run(empty, files)
    writer.journal.release(commit_additions(empty, domain))
    writer.close()
    store = Repository(empty.repository(domain))
    head = store.head()
    assert head is not None and store.find(head.tree, "index.html/mine.txt") is not None
    assert (len(done.published), done.refused) == (3, ())
    assert len(exportedjob.run(empty, files).there) == 4
    origins = [each.tree for each in selection]
    assert [
        store.commit(oid).parents and store.commit(store.commit(oid).parents[0]).tree
        for oid in list(store.refs("refs/crawls/").values())[1:]
    ] == origins[1:]


def test_a_record_gets_the_parts_of_its_job_that_come_later(empty: Archive, tmp_path: Path) -> None:
    """But for one that is released: what was held is looked at by nobody then."""
    other = directory.create(tmp_path / "other")
    for domain in ("a.example", "b.example", "c.example"):
        archives.publish(other, domain, {"x": b"x"})
    job = "20260101T000000-test"
    for each, held in zip(select(other, Asked()), ("no", "no", "yes"), strict=True):
        made = [exportedrecords.named(each, job=job, held=held), *list(exportedrecords.snapshot_records(each))[1:]]
        exportedrecords.write(tmp_path / f"{each.tag.domain}.warc.gz", made)
    catalogue = Catalogue(empty)
    for number, name in enumerate(("a", "b"), 1):
        exportedjob.run(empty, [tmp_path / f"{name}.example.warc.gz"])
        record, blob = catalogue.read(job)
        assert [part.tag.domain for part in record.parts] == ["a.example", "b.example"][:number]
    record = replace(record, state=RecordState.RELEASED)
    catalogue.save([record], "test", "released", expected={job: blob})
    exportedjob.run(empty, [tmp_path / "c.example.warc.gz"])
    assert catalogue.read(job)[0].parts == record.parts
    shutil.rmtree(tmp_path / "other")


@pytest.mark.parametrize("late", [False, True])
def test_a_patch_that_comes_later_is_one(empty: Archive, tmp_path: Path, late: bool) -> None:
    """S-patch-1: the record is as complete as before, and counted again; also if parts of the crawl come with it."""
    other = directory.create(tmp_path / "other")
    for domain, page in (("a.example", "x"), ("b.example", "x"), ("a.example", "y")):
        archives.publish(other, domain, {page: page.encode()})
    job, files = "20260101T000000-test", list[Path]()
    snapshots = sorted(select(other, Asked()), key=lambda each: each.message.sequence)
    for number, (each, patch) in enumerate(zip(snapshots, ("", "", f"{job}+patch"), strict=True)):
        made = [exportedrecords.named(each, job=job, patch=patch), *list(exportedrecords.snapshot_records(each))[1:]]
        files.append(exportedrecords.write(tmp_path / f"{number}.warc.gz", made))
    catalogue = Catalogue(empty)
    exportedjob.run(empty, files[:1])
    before = catalogue.read(job)[0]
    assert before.complete and len(before.parts) == 1
    assert exportedjob.run(empty, files[1:] if late else files[2:]).refused == ()
    after = catalogue.read(job)[0]
    assert after.complete and all(part.complete for part in after.parts)
    events = [event.what for event in after.events[len(before.events) :]]
    assert (len(after.parts), events) == ((3, ["captured", "patched"]) if late else (2, ["patched"]))
    assert all(part.tag.ref in after.text(FieldNumber.COPY_PATH) for part in after.parts)
    exportedjob.run(empty, files)
    again = catalogue.read(job)[0]
    assert again.complete and len(again.parts) == 3 and (again == after or not late)
    shutil.rmtree(other.root)


_POINTS: dict[str, tuple[Any, str, int]] = {
    "in the first file": (Intake, "_record", 4),
    "in the second file": (Intake, "file", 2),
    "before trees": (exportedjob, "build", 1),
    "amid trees": (exportedjob, "build", 3),
    "before a swap": (Repository, "update_refs", 2),
    "before a line of the feed": (PublicationSlot, "publish", 3),
    "before the index": (exportedjob, "catch_up_domain", 1),
    "before the records": (exportedjob, "catch_up_records", 1),
}


@pytest.mark.parametrize("point", _POINTS)
def test_killed_and_begun_again_it_loses_nothing(origin: Archive, empty: Archive, tmp_path: Path, point: str) -> None:
    files = exported(select(origin, Asked()), tmp_path / "out")
    killed_in(lambda: exportedjob.run(empty, files), *_POINTS[point])
    recovery.catch_up(empty)
    catch_up_records(empty)
    assert list(verify(empty)) == []
    assert exportedjob.run(empty, files).refused == ()
    assert trees(empty) == trees(origin)
    assert list(Feed(empty.changes).lines()) == list(Feed(origin.changes).lines())
    assert rows_of(empty) == rows_of(origin)
    assert list(empty.log.glob("tmp_*")) == []


def test_stopped_it_publishes_nothing_half(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    files, stop = exported(select(origin, Asked()), tmp_path / "out"), threading.Event()

    def progress(what: str, done: int, _whole: int) -> None:
        if (what, done) == ("publish snapshots", 2):
            stop.set()

    with pytest.raises(Interrupted):
        exportedjob.run(empty, files, stop=stop, progress=progress)
    assert len(list(Feed(empty.changes).lines())) == 2 and list(verify(empty)) == []
    assert len(exportedjob.run(empty, files).published) == 2
    assert trees(empty) == trees(origin)


@pytest.mark.parametrize("left", [40_960, 122_880, 163_840, 204_800])
def test_a_full_disk_is_told_and_leaves_nothing_half(origin: Archive, tmp_path: Path, left: int) -> None:
    """With each size it gets further: bodies, trees, refs, index."""
    files = exported(select(origin, Asked()), tmp_path / "out")
    with small_disk(tmp_path / "disk", "3m") as disk:
        archive = directory.create(disk / "archive")
        recovery.catch_up(archive)
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - left))
        with pytest.raises(OSError) as told:
            exportedjob.run(archive, files)
        assert told.value.errno == ENOSPC
        (disk / "ballast").unlink()
        recovery.catch_up(archive)
        catch_up_records(archive)
        assert list(verify(archive)) == []
        assert exportedjob.run(archive, files).refused == ()
        assert trees(archive) == trees(origin)


def test_the_command_says_what_came_of_it(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    selection = select(origin, Asked())
    files = exported(selection, tmp_path / "out")
    done = command("import", "--as-exported", "--archive", empty.root, files[1])
    assert (done.code, done.out) == (2, "") and "x-00000.warc.gz is not among the files" in done.err
    done = command("import", "--as-exported", "--archive", empty.root, *files)
    assert (done.code, done.out.split()) == (0, [str(each.tag) for each in selection])
    done = command("import", "--as-exported", "--complete", "--archive", empty.root, *files)
    assert done.code == 1
    other = exportedrecords.write(
        tmp_path / "other.warc.gz", [Made("response", "http://e.org/", {}, b"HTTP/1.1 200\r\n\r\n")]
    )
    done = command("import", "--as-exported", "--archive", empty.root, other)
    assert done.code == 2 and "no record in these files is of a snapshot" in done.err


# -- histories that are made up ----------------------------------------------------------------------------------------

_HOST = "www.example.org"
_URLS = {
    "a": f"http://{_HOST}/a",
    "b/c": f"http://{_HOST}/b/c",
    "b": f"https://{_HOST}/b",
    "d ": f"http://{_HOST}/d%20",
    "x/%/y\u2028": f"http://{_HOST}/x//y%E2%80%A8",
    "index.html?q=%2F": f"http://{_HOST}/?q=/",
}
_pages = st.tuples(
    st.sampled_from(("1", "2")),  # its body
    st.booleans(),  # whether it has a data node
    st.sets(st.sampled_from(("n.txt", "deep/\udcff %41", "deep/x y/data.xmls")), max_size=2),
    st.sampled_from(("no", "as it is", "before additions")),  # what the publication saw
)
_steps = st.tuples(
    st.dictionaries(st.sampled_from(list(_URLS)), _pages, max_size=4),
    st.dictionaries(st.sampled_from("123"), st.tuples(st.sampled_from("xy"), st.booleans()), max_size=2),
    st.booleans(),  # whether it was complete
)


def _chosen(store: Repository, step: Any, number: int) -> SelectedSnapshot:
    """Commit a made-up snapshot; no ref moves."""
    tag, whole, seen = CommitTag(archives.FIRST + timedelta(days=number), _HOST), dict[str, str](), dict[str, str]()
    first = CommitTag(archives.FIRST, _HOST)
    for path, (body, has_node, added, saw) in step[0].items():
        url = _URLS[path]
        meta = MetaData(url, "text/html", "", f"/{_HOST}/{path}", _HOST, archives.FIRST, archives.FIRST, first)
        plain = data_xml.describe(meta)
        noted = plain.replace(b"<arc:data/>", b"<arc:data><w xmlns=''/></arc:data>") if has_node else plain
        own = {data_name(url): body.encode(), HEADERS: archives.HEAD, "data.xml": noted}
        files = own | {name: name.encode("utf-8", "replace") for name in added}
        whole |= {f"{path}/{name}": store.write_blob(raw) for name, raw in files.items()}
        kept = {"no": {}, "as it is": files, "before additions": own | {"data.xml": plain}}[saw]
        seen |= {f"{path}/{name}": store.write_blob(raw) for name, raw in kept.items()}
    time = datetime(2019, 1, 1, tzinfo=UTC)
    for name, (target, is_seen) in step[1].items():
        line = Redirect(f"http://{_HOST}/{name}", 301, f"http://{_HOST}/{target}", time)
        whole[place_of(line.url)] = store.write_blob(write_list([line]))
        seen |= {place_of(line.url): whole[place_of(line.url)]} if is_seen else {}
    tree, saw_tree = (store.edit(store.write_tree([]), files) for files in (whole, seen))
    told = saw_tree if saw_tree != tree else ""
    message = CrawlMessage(tag, "p", step[2], number + 1, job=f"20260101T00000{number}-p", seen=told)
    return SelectedSnapshot(tag, store.write_commit(tree, [], str(message), COMMITTER, 1_000_000 + number), tree, told)


@settings(max_examples=examples(10))
@given(st.lists(_steps, min_size=1, max_size=3), st.randoms())
def test_any_history_comes_back(steps: list[Any], random: Random) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        store = Repository.create(folder / "x.git")
        chosen = tuple(_chosen(store, step, number) for number, step in enumerate(steps))
        selection = Selection(lambda _: store, {_HOST: chosen})
        if random.random() < 0.5:  # by hand, a file for each snapshot in any order; or as the exporter writes it
            files = exported(selection, folder / "out")
            random.shuffle(files)
        else:
            files = [folder / "all.warc.gz"]
            warc.export(selection, files[0], lambda *_: None, lambda: False)
        made = directory.create(folder / "archive")
        done = exportedjob.run(made, files)
        assert (done.refused, done.faults) == ((), ())
        found = [(each.tree, each.seen) for each in select(made, Asked())]
        assert found == [(each.tree, each.seen) for each in selection]
        assert list(verify(made)) == []
        last = next((each for each in reversed(chosen) if steps[chosen.index(each)][2]), None)
        saw = Repository(made.repository(_HOST)).refs("refs/publications/")
        assert saw == ({"p": last.seen or last.tree} if last is not None else {})


# -- what nobody exported ----------------------------------------------------------------------------------------------


def _said(**said: str) -> Callable[[list[Made]], list[Made]]:
    """The snapshot's record with other values."""

    def change(made: list[Made]) -> list[Made]:
        lines = [line for line in made[0].block.decode().splitlines() if line.partition(":")[0] not in said]
        lines += [f"{name}: {value}" for name, value in said.items()]
        return [replace(made[0], block="\r\n".join(lines).encode()), *made[1:]]

    return change


def _tagged(tag: str) -> Callable[[list[Made]], list[Made]]:
    """All of it as if it were of another snapshot."""

    def change(made: list[Made]) -> list[Made]:
        old = made[0].uri.removeprefix("urn:webarcfs:snapshot:")
        return [
            replace(
                each.having(Webarcfs_Commit_Tag=tag),
                uri=each.uri.replace(old, tag),
                block=each.block.replace(old.encode(), tag.encode()),
            )
            for each in made
        ]

    return change


def _added(name: str, arc: str = "a", body: bytes = b"x") -> Callable[[list[Made]], list[Made]]:
    """One addition more; `name` and `arc` are percent-encoded."""

    def change(made: list[Made]) -> list[Made]:
        tag = made[0].uri.removeprefix("urn:webarcfs:snapshot:")
        fields = {"Webarcfs-Commit-Tag": tag, "Webarcfs-File": name}
        return [*made, Made("resource", f"urn:webarcfs:addition:{tag}:{arc}/{name}", fields, body)]

    return change


def _first(kind: str, change: Callable[[Made], Made], **having: str) -> Callable[[list[Made]], list[Made]]:
    """The first record of a kind, which has these fields, changed."""
    wanted = {name.replace("_", "-"): value for name, value in having.items()}

    def one(made: list[Made]) -> list[Made]:
        found = next(each for each in made if each.kind == kind and wanted.items() <= each.fields.items())
        return [change(each) if each is found else each for each in made]

    return one


def _redirect(line: str) -> Callable[[list[Made]], list[Made]]:
    """One redirect more."""

    def change(made: list[Made]) -> list[Made]:
        tag = made[0].uri.removeprefix("urn:webarcfs:snapshot:")
        fields = {"Webarcfs-Commit-Tag": tag, "Webarcfs-Redirect": line.replace("HOST", tag.partition("@")[2])}
        return [
            *made,
            Made("response", fields["Webarcfs-Redirect"].partition("%09")[0], fields, b"HTTP/1.1 301\r\n\r\n"),
        ]

    return change


_XML = {"Webarcfs_File": "data.xml"}
_TIME = "2026-01-01T00:00:00"
#: What was made up → how, and a word of what is said.
HOSTILE: dict[str, tuple[Callable[[list[Made]], list[Made]], str]] = {
    "a domain that climbs": (_tagged(f"{_TIME}@../../etc"), "is not a commitTag"),
    "a domain that is a name of the archive's": (_tagged(f"{_TIME}@.sequence"), "no URL has the domain"),
    "a domain with a blank": (_tagged(f"{_TIME}@a b"), "no URL has the domain"),
    "a time that is none": (_tagged("2026-13-01T00:00:00@www.example.org"), "not a time"),
    "a time of the future": (_tagged("2999-01-01T00:00:00@www.example.org"), "future"),
    "a publication that climbs": (_said(publication="../../heads/main"), "publication"),
    "a publication that git would not have": (_said(publication="x.lock"), "publication"),
    "a job that climbs": (_said(job="../x"), "job"),
    "a job of another publication": (_said(job="20260101T000000-other"), "job"),
    "a tree that is none": (_said(tree="0" * 39), "tree"),
    "another tree": (_said(tree="0" * 40), "its records make the tree"),
    "another seen tree": (_said(seen="0" * 40), "its publication saw"),
    "a tree before that is not there": (_said(before="0" * 40), "which is not there"),
    "a source that is none": (_said(source="md5:x"), "source"),
    "a number that is none": (_said(sequence="-1"), "sequence"),
    "neither complete nor not": (_said(complete="perhaps"), "complete"),
    "a snapshot's record without an end": (
        lambda made: [replace(made[0], block=made[0].block + b"x" * 2_000_000), *made[1:]],
        "a record of 2",
    ),
    "a document of another domain": (
        _first("response", lambda each: replace(each, uri="http://other.example/")),
        "of another domain",
    ),
    "a document of no URL": (_first("response", lambda each: replace(each, uri="ftp://x/")), "only http"),
    "a data file that climbs": (
        _first("response", lambda each: each.having(Webarcfs_Data="../../x")),
        "no name of a data file",
    ),
    "data.xml as data file": (
        _first("response", lambda each: each.having(Webarcfs_Data="data.xml")),
        "no name of a data file",
    ),
    "a response without a body": (_first("response", lambda each: replace(each, block=b"HTTP/1.1 200")), "head"),
    "data.xml of another document": (
        _first("metadata", lambda each: replace(each, block=each.block.replace(b'path="/', b'path="/x/')), **_XML),
        "it is the data.xml of /x/",
    ),
    "data.xml that is none": (_first("metadata", lambda each: replace(each, block=b"<x/>"), **_XML), "not valid"),
    "data.xml with a DTD": (
        _first("metadata", lambda each: replace(each, block=b"<!DOCTYPE x><x/>"), **_XML),
        "data.xml",
    ),
    "no data.xml": (lambda made: [each for each in made if each.fields.get("Webarcfs-File") != "data.xml"], "missing"),
    "an addition that climbs": (_added("../x"), "cannot be the name"),
    "an addition that climbs by escapes": (_added("%2e%2e/x"), "cannot be the name"),
    "an addition of git": (_added(".git/config"), "cannot be the name"),
    "an addition with a NUL": (_added("x%00y"), "cannot be the name"),
    "an addition without a name": (_added("x//y"), "cannot be the name"),
    "an addition with a long name": (_added("x" * 300), "cannot be the name"),
    "an addition that is the data": (_added("data.pdf"), "keep for themselves"),
    "an addition that makes an ARC": (_added("x/data.xml/y"), "cannot have the name"),
    "an addition among the redirects": (_added("ab", "%25redirects/00"), "cannot have the name"),
    "an addition to git": (_added("x", ".git"), "cannot be the name"),
    "an addition to what climbs": (_added("x", ".."), "cannot be the name"),
    "an addition deep down": (_added("/".join(["x"] * 100)), "cannot have the name"),
    "an addition of another snapshot": (
        lambda made: [each if each.kind != "resource" else each.having(Webarcfs_File="b") for each in made],
        "no file below",
    ),
    "an addition to no document": (_added("x", "nowhere"), "that of the document nowhere among them"),
    "a redirect of another domain": (_redirect(f"http://e.org/%09301%09http://e.org/x%09{_TIME}Z"), "another domain"),
    "a redirect without a status": (_redirect(f"http://HOST/%09abc%09http://e.org/x%09{_TIME}Z"), "no URL, status"),
    "a redirect to no URL": (_redirect(f"http://HOST/%09301%09javascript:x%09{_TIME}Z"), "no URL, status"),
    "a redirect with a tab": (_redirect(f"http://HOST/%09301%09http://e.org/x%09{_TIME}Z%09more"), "no redirect of"),
    "a redirect with a NUL": (_redirect(f"http://HOST/%09301%09http://e.org/\0%09{_TIME}Z"), "no redirect of"),
    "a time of the future for its commit": (_said(time="9" * 11), "time 99999999999"),
    "a redirect more": (_redirect(f"http://HOST/x%09301%09http://e.org/x%09{_TIME}Z"), "its records make the tree"),
    "a body that its digest is not of": (
        _first("response", lambda each: each.having(WARC_Block_Digest="sha1:" + "A" * 32)),
        "digest",
    ),
}


def _main_and_publication(archive: Archive) -> dict[str, str]:
    """The refs of the only snapshot that an archive has, beside its own."""
    found = trees(archive)
    own = {tree for name, tree in found.items() if "refs/crawls/" in name}
    return {name: tree for name, tree in found.items() if tree in own and "refs/crawls/" not in name}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_nobody_exported_is_refused(origin: Archive, empty: Archive, tmp_path: Path, what: str) -> None:
    """Nothing is published of a snapshot that it is needed for; what is told beside one is not taken."""
    change, said = HOSTILE[what]
    assert said in faults_of(empty, tmp_path / "x.warc.gz", change(made_of(origin, 0)))
    assert trees(empty).items() <= {**trees(origin), **_main_and_publication(empty)}.items()
    assert {path.name for path in empty.root.parent.iterdir()} == {"archive", "x.warc.gz"}


def test_two_records_of_a_snapshot_that_differ_are_refused(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    made = made_of(origin, 0)
    said = refused(empty, tmp_path / "x.warc.gz", [*made, *_said(tree="0" * 40)(made)[:1]])
    assert "different things" in said


def test_a_file_that_is_cut_off_or_overwritten_is_refused(origin: Archive, empty: Archive, tmp_path: Path) -> None:
    path = exportedrecords.write(tmp_path / "x.warc.gz", made_of(origin, 0))
    whole = path.read_bytes()
    for raw in (whole[: len(whole) // 2], whole[:500] + b"\0" * 400 + whole[900:], whole[400:]):
        path.write_bytes(raw)
        with suppress(Damaged):
            done = exportedjob.run(empty, [path])
            assert done.published == () and done.refused and done.faults
        assert trees(empty) == {}


def test_a_second_data_file_is_no_addition_of_the_arc_above(empty: Archive, tmp_path: Path) -> None:
    """The tree would have the id that is named; and the ARC below would have two bodies."""
    other = directory.create(tmp_path / "other")
    tag = archives.publish(other, pages={"x": b"1", "x/y": b"2"}, extra={"x/y/data.pdf": b"3"})
    each = next(iter(select(other, Asked())))
    made = [record for record in exportedrecords.snapshot_records(each) if "Webarcfs-Redirect" not in record.fields]
    forged = [
        replace(record, uri=record.uri).having(Webarcfs_File="y/data.pdf", Webarcfs_Path="x")
        if record.kind == "resource"
        else record
        for record in made
    ]
    assert "keep for themselves" in refused(empty, tmp_path / "x.warc.gz", made)
    assert "no addition can be in it" in refused(empty, tmp_path / "x.warc.gz", forged)
    assert tag.domain not in set(empty.domains())
    shutil.rmtree(tmp_path / "other")
