"""`webarc-agent maintain` puts an archive in order, and takes nothing that anybody needs."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.indexing.recovery import catch_up
from agent.maintenance.maintenance import due, maintain
from agent.maintenance.verification import verify
from tests.support.archives import DOMAIN, add, publish, store_of
from tests.support.crawls import run_command
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import CRAWLS, INCOMING, MAIN, RefUpdate, Repository
from webarcfs.archive.model import metadata
from webarcfs.archive.repair import repacking
from webarcfs.archive.system import locks

pytestmark = pytest.mark.store


def _old(path: Path) -> Path:
    """As if nobody had touched it for two hours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - 7200,) * 2)
    return path


def _packs(store: Repository) -> int:
    return len(list((store.path / "objects/pack").glob("*.pack")))


def _loose(store: Repository) -> int:
    return len(list(store.path.glob("objects/??/*")))


def test_many_small_packs_become_few_while_readers_read(archive: Archive) -> None:
    for number in range(12):
        publish(archive, DOMAIN, {f"{number}.html": b"%d" % number})
        subprocess.run(["git", "repack", "-d", "-q"], cwd=archive.repository(DOMAIN), check=True)
    catch_up(archive)
    reader = store_of(archive)  # has its list of packs already
    head = reader.head()
    assert head is not None and _packs(reader) == 12
    add(archive, "1.html/notes.txt", b"mine")
    unborn = reader.write_blob(b"an addition that is not committed yet")
    maintain(archive)
    assert _packs(reader) <= 3 and _loose(reader) == 0
    assert (reader.path / "objects/info/commit-graph").exists()
    for number in range(12):
        found = reader.find(head.tree, f"{number}.html/data.html")
        assert found is not None and reader.read(found.oid) == b"%d" % number
    assert reader.read(unborn) == b"an addition that is not committed yet"
    assert list(verify(archive)) == []


def test_a_domain_that_nothing_changed_starts_no_git(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of an archive's hosts only give resources, and change seldom."""
    run, commands = git_command.run, list[str]()

    def noted(arguments: Sequence[str], path: Path | None = None, *more: Any, **options: Any) -> Any:
        commands.extend(word for word in arguments if word in ("repack", "commit-graph"))
        return run(arguments, path, *more, **options)

    publish(archive, DOMAIN, {"a.html": b"1"})
    catch_up(archive)
    time.sleep(0.2)  # a ref and the graph within a tick of the clock are in no order
    monkeypatch.setattr(git_command, "run", noted)
    for wanted in (["repack", "commit-graph"], []):
        commands.clear()
        maintain(archive)
        assert commands == wanted
    publish(archive, DOMAIN, {"b.html": b"2"})
    time.sleep(0.2)
    commands.clear()
    maintain(archive)
    assert commands == ["repack", "commit-graph"]
    assert _loose(store_of(archive)) == 0 and store_of(archive).check() == []


def test_what_crashes_left_goes_and_nothing_else(archive: Archive) -> None:
    publish(archive, DOMAIN, {"a.html": b"1"})
    catch_up(archive)
    store = store_of(archive)
    head = store.head()
    assert head is not None
    store.update_refs([RefUpdate(f"{INCOMING}dead", head.oid, None)])
    gone = [
        _old(store.path / "refs/heads/main.lock"),
        _old(store.path / "packed-refs.lock"),
        _old(store.path / "objects/pack/tmp_pack_XYZ"),
        _old(archive.reports / ".dead/summary.json").parent,
        _old(archive.content / ".new-1-e.org.git/HEAD").parent,
    ]
    for folder in gone[3:]:
        os.utime(folder, (time.time() - 7200,) * 2)
    gone.append(_old(archive.jobs / ".20261121T020000-done/000001.warc").parent)
    os.utime(gone[-1], (time.time() - 7200,) * 2)
    empty = archive.jobs / "20261121T030000-dead"
    empty.mkdir()
    os.utime(empty, (time.time() - 7200,) * 2)
    kept = archive.jobs / "20261121T040000-new"
    kept.mkdir()
    done = run_command("maintain", "--archive", archive.root)
    assert done.code == 0 and "Traceback" not in done.err
    assert not any(path.exists() for path in (*gone, empty))
    assert store.refs(INCOMING) == {}
    assert kept.exists()
    assert store.ref(MAIN) == head.oid and list(verify(archive)) == []


def test_a_job_that_is_prepared_or_alive_keeps_its_folder(archive: Archive) -> None:
    folder = archive.jobs / "20261121T030000-nightly"
    folder.mkdir()
    os.utime(folder, (time.time() - 7200,) * 2)
    with locks.exclusive(archive.root / "lock" / ".publication-nightly"):
        assert maintain(archive).busy == [folder.name]
    assert folder.is_dir()
    (folder / "item.json").write_text("{}")
    os.utime(folder, (time.time() - 7200,) * 2)
    maintain(archive)
    assert folder.is_dir()


def test_an_import_that_is_alive_keeps_its_folders(archive: Archive) -> None:
    """Its folder's name says more than its publication's, whose lock it holds."""
    folder = archive.jobs / "20261121T030000-nightly+1a2b3c4d"
    report = archive.reports / f".{folder.name}"
    for each in (folder, report):
        each.mkdir()
        os.utime(each, (time.time() - 7200,) * 2)
    with locks.exclusive(archive.publication_lock("nightly")):
        assert maintain(archive).busy == [folder.name, report.name]
    assert folder.is_dir() and report.is_dir()
    assert maintain(archive).removed == [f"jobs/{folder.name}", f"reports/{report.name}"]


def test_a_pack_that_a_mount_is_storing_stays(archive: Archive) -> None:
    publish(archive, DOMAIN, {"a.html": b"1"})
    store = store_of(archive)
    head = store.head()
    assert head is not None
    store.update_refs([RefUpdate(f"{INCOMING}dead", head.oid, None)])
    storing = store.path / "objects/pack/tmp_pack_alive"
    storing.touch()
    upkeep = threading.Thread(target=maintain, args=(archive,))
    with locks.exclusive(archive.committing_lock(DOMAIN)):
        upkeep.start()
        upkeep.join(1)  # it waits: however long this is, nothing goes
        assert storing.exists() and list(store.refs(INCOMING)) == ["dead"]
    upkeep.join(60)
    assert not upkeep.is_alive() and store.refs(INCOMING) == {}


def test_a_domain_that_a_crawl_is_at_work_on_waits(archive: Archive) -> None:
    publish(archive, DOMAIN, {"a.html": b"1"})
    store = store_of(archive)
    head = store.head()
    assert head is not None
    store.update_refs([RefUpdate(f"{INCOMING}alive", head.oid, None)])
    with locks.exclusive(archive.publishing_lock(DOMAIN)):
        assert maintain(archive).busy == [DOMAIN]
    assert list(store.refs(INCOMING)) == ["alive"]


def test_a_damaged_domain_costs_no_other(archive: Archive) -> None:
    publish(archive, DOMAIN, {"a.html": b"1"})
    publish(archive, "other.example", {"a.html": b"1"})
    (archive.repository(DOMAIN) / "HEAD").write_text("x")
    done = maintain(archive)
    assert done.domains == ["other.example"]
    assert [line.partition(":")[0] for line in done.failed] == [DOMAIN]


def test_it_is_due_once_a_day(archive: Archive) -> None:
    assert due(archive, metadata.now())
    maintain(archive)
    assert not due(archive, metadata.now())
    assert due(archive, metadata.now() + timedelta(days=1, minutes=1))


# -- what is left to do ------------------------------------------------------------------------------------------------


def _pack(store: Repository, number: int) -> None:
    """A pack of so many objects, beside those that are there."""
    for _ in range(number):
        store.write_blob(os.urandom(8))
    names = "\n".join(path.parent.name + path.name for path in store.path.glob("objects/??/*"))
    subprocess.run(
        ["git", "pack-objects", "-q", "objects/pack/pack"],
        cwd=store.path,
        input=names.encode(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    subprocess.run(["git", "prune-packed", "-q"], cwd=store.path, check=True)


def _names(store: Repository) -> set[str]:
    return {path.name for path in store.path.glob("objects/*/*")}


def test_a_loose_object_is_to_be_packed(store: Repository) -> None:
    assert repacking.is_packed(store.path), "nothing is there"
    store.write_blob(b"x")
    assert not repacking.is_packed(store.path)
    repacking.repack(store.path)
    assert repacking.is_packed(store.path) and _packs(store) == 1


@pytest.mark.parametrize(
    ("sizes", "packed"), [((4, 4), False), ((7, 4), False), ((8, 4), True), ((4, 9), True), ((2, 9, 4), True)]
)
def test_packs_are_left_alone_where_a_repack_would_leave_them(
    store: Repository, sizes: Sequence[int], packed: bool
) -> None:
    """By the same rule as git's own."""
    for number in sizes:
        _pack(store, number)
    assert (_loose(store), _packs(store)) == (0, len(sizes))
    before = _names(store)
    assert repacking.is_packed(store.path) is packed
    repacking.repack(store.path)
    assert (_names(store) == before) is packed
    assert repacking.is_packed(store.path)


def test_an_index_of_a_pack_that_is_cut_off_is_to_be_looked_at(store: Repository) -> None:
    _pack(store, 4)
    (index,) = store.path.glob("objects/pack/*.idx")
    index.chmod(0o644)
    os.truncate(index, 100)
    assert not repacking.is_packed(store.path)


@pytest.fixture
def graphed(archive: Archive) -> Repository:
    """A repository whose refs moved an hour ago, with a graph of now."""
    for number in range(2):
        publish(archive, DOMAIN, {"a.html": b"%d" % number})
    store = store_of(archive)
    for path in (store.path / "refs", *(path for path in (store.path / "refs").rglob("*") if path.is_dir())):
        os.utime(path, (time.time() - 3600,) * 2)
    assert not repacking.has_graph(store.path)
    repacking.write_graph(store.path)
    assert repacking.has_graph(store.path)
    return store


@pytest.mark.parametrize("change", ["moves", "is new", "is removed", "the last of its folder goes", "is packed"])
def test_a_ref_that_changes_wants_a_new_graph(graphed: Repository, change: str) -> None:
    main = graphed.ref(MAIN)
    crawl, other = sorted(f"{CRAWLS}{name}" for name in graphed.refs(CRAWLS))
    if change == "moves":
        graphed.update_refs([RefUpdate(MAIN, graphed.ref(crawl), main)])
    elif change == "is new":
        graphed.update_refs([RefUpdate("refs/publications/test", main, None)])
    elif change == "is packed":
        repacking.pack_refs(graphed.path)
    else:
        gone = [crawl] if change == "is removed" else [crawl, other]
        graphed.update_refs([RefUpdate(name, None, graphed.ref(name)) for name in gone])
    assert not repacking.has_graph(graphed.path)


def test_a_packed_ref_that_is_removed_wants_a_new_graph(graphed: Repository) -> None:
    repacking.pack_refs(graphed.path)
    for path in (graphed.path / "packed-refs", graphed.path / "refs", *(graphed.path / "refs").rglob("*")):
        os.utime(path, (time.time() - 3600,) * 2)
    assert repacking.has_graph(graphed.path)
    crawl = f"{CRAWLS}{min(graphed.refs(CRAWLS))}"
    graphed.update_refs([RefUpdate(crawl, None, graphed.ref(crawl))])
    assert not repacking.has_graph(graphed.path)


def test_a_ref_that_moves_while_the_graph_is_written_wants_a_new_one(
    graphed: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may move after git read it, and before the file is there."""
    run = git_command.run

    def slowly(arguments: Sequence[str], *more: Any, **options: Any) -> Any:
        if "commit-graph" in arguments:
            graphed.update_refs([RefUpdate("refs/publications/test", graphed.ref(MAIN), None)])
            time.sleep(0.2)  # more than a tick of the clock
        return run(arguments, *more, **options)

    monkeypatch.setattr(git_command, "run", slowly)
    repacking.write_graph(graphed.path)
    assert not repacking.has_graph(graphed.path)


def test_a_graph_of_the_future_is_none(graphed: Repository) -> None:
    """The clock was set back: refs that move now seem older."""
    os.utime(graphed.path / repacking.GRAPHS[0], (time.time() + 3600,) * 2)
    assert not repacking.has_graph(graphed.path)
    repacking.write_graph(graphed.path)
    assert repacking.has_graph(graphed.path)


def test_a_repository_without_a_commit_has_no_graph(store: Repository) -> None:
    repacking.write_graph(store.path)
    assert not repacking.has_graph(store.path)
