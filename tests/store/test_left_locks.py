"""Locks that a killed git left are in nobody's way, and those that a git holds stay (git's lockfile API)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up, recover
from agent.maintenance.maintenance import maintain
from agent.maintenance.verification import verify
from tests.support import gitlocks
from tests.support.archives import DOMAIN, add, publish, store_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command, repository
from webarcfs.archive.git.repository import INCOMING, MAIN, RefUpdate, Repository
from webarcfs.archive.model.errors import Busy

pytestmark = pytest.mark.store

#: Everything of git's that is guarded by a lock in a repository of ours, beside refs.
_OTHERS = (
    "packed-refs.new",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "shallow.lock",
    "objects/info/commit-graph.lock",
    "objects/info/commit-graphs/commit-graph-chain.lock",
    "objects/pack/multi-pack-index.lock",
)


@pytest.fixture
def store(archive: Archive) -> Repository:
    publish(archive, DOMAIN, {"a.html": b"1"})
    catch_up(archive)
    return store_of(archive)


def main_of(store: Repository) -> str:
    head = store.head()
    assert head is not None
    return head.oid


def test_a_lock_that_a_killed_git_left_stops_no_swap(store: Repository) -> None:
    """However young it is: a service manager starts an agent again within seconds."""
    one = main_of(store)
    left = gitlocks.leave(store.path, MAIN, "refs/crawls/20990101T030000")
    (store.path / "packed-refs.lock").touch()
    store.update_refs([RefUpdate("refs/crawls/20990101T030000", one, None), RefUpdate(MAIN, one, one)])
    store.update_refs([RefUpdate("refs/crawls/20990101T030000", None, one)])  # this takes the lock of packed refs
    assert not any(lock.exists() for lock in left)
    assert git_command.left_locks(store.path) == [] and store.check() == []


def test_a_lock_that_a_git_holds_stays(store: Repository) -> None:
    """The swap fails and says which lock it was; once its holder has ended, it succeeds."""
    one = main_of(store)
    with gitlocks.held(store.path, MAIN) as (lock,):
        with pytest.raises(Busy, match=r"heads/main\.lock is in the way"):
            store.update_refs([RefUpdate(MAIN, one, one)])
        assert git_command.remove_left_locks(store.path) == [] and lock.exists()
    store.update_refs([RefUpdate(MAIN, one, one)])


@pytest.mark.parametrize("how", ["-C", "--git-dir", "--git-dir=", "GIT_DIR"])
def test_a_git_of_a_person_is_seen_wherever_it_was_started(store: Repository, tmp_path: Path, how: str) -> None:
    """It need not have the repository as its folder."""
    path = str(store.path)
    command = ["git", *{"--git-dir=": [f"--git-dir={path}"], "GIT_DIR": []}.get(how, [how, path])]
    environment = os.environ | ({"GIT_DIR": path} if how == "GIT_DIR" else {})
    with subprocess.Popen(
        [*command, "update-ref", "--stdin"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as person:
        assert person.stdin is not None and person.stdout is not None
        person.stdin.write(f"start\nupdate {MAIN} {main_of(store)}\nprepare\n".encode())
        person.stdin.flush()
        assert [person.stdout.readline(), person.stdout.readline()] == [b"start: ok\n", b"prepare: ok\n"]
        assert (store.path / f"{MAIN}.lock").exists() and git_command.left_locks(store.path) == []
        person.kill()
    assert store.path / f"{MAIN}.lock" in git_command.left_locks(store.path)


def test_a_git_elsewhere_keeps_no_lock_alive(store: Repository, tmp_path: Path) -> None:
    other = Repository.create(tmp_path / "other.git")
    left = gitlocks.leave(store.path, MAIN)
    with gitlocks.held(other.path, MAIN):
        assert set(left) <= set(git_command.remove_left_locks(store.path))
        assert git_command.left_locks(other.path) == []


def test_a_file_that_is_open_is_held(store: Repository) -> None:
    """libgit2 writes locks too, in processes of any name."""
    lock = store.path / "refs/heads/main.lock"
    with lock.open("wb"):
        assert git_command.left_locks(store.path) == []
    assert git_command.remove_left_locks(store.path) == [lock]


def test_a_lock_is_left_when_nobody_touched_it_for_long(store: Repository) -> None:
    """Where a git is at work that may hold any of them: a minute for refs, an hour for all else."""
    locks = [store.path / name for name in ("refs/heads/old.lock", "objects/info/commit-graph.lock")]
    for lock in locks:
        lock.touch()
        os.utime(lock, (time.time() - 120,) * 2)
    with gitlocks.held(store.path, MAIN):
        assert git_command.left_locks(store.path) == [locks[0]]
        os.utime(locks[1], (time.time() - 7200,) * 2)
        assert git_command.remove_left_locks(store.path) == sorted(locks)


@pytest.mark.parametrize("name", [f"{INCOMING}20261121T030000-nightly.lock", f"{MAIN}.lock", *_OTHERS])
def test_a_publication_gets_over_what_a_killed_one_left(store: Repository, name: str) -> None:
    """Any lock, and what else git was making: the next publication clears it away and goes on."""
    lock = store.path / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    (store.path / "objects/pack/tmp_pack_XYZ").touch()
    store.drop_scratch()
    assert not lock.exists() and list((store.path / "objects/pack").glob("tmp_*")) == []
    head = store.head()
    assert head is not None
    with store.importer(head.tree) as importer:
        importer.put("b.html/data.html", b"2")
        importer.finish()
    store.drop_scratch()
    assert store.check() == []


def test_an_addition_gets_over_a_left_lock(archive: Archive, store: Repository) -> None:
    gitlocks.leave(store.path, MAIN)
    before = main_of(store)
    add(archive, "a.html/notes.txt", b"mine")
    assert main_of(store) != before
    assert git_command.left_locks(store.path) == []


def _by_recover(archive: Archive) -> None:
    assert recover(archive).damaged == ()


def _by_maintenance(archive: Archive) -> None:
    assert f"content/{DOMAIN}.git/refs/heads/main.lock" in maintain(archive).removed


@pytest.mark.parametrize("way", [_by_recover, _by_maintenance])
def test_verify_names_a_left_lock_and_it_can_be_removed(
    archive: Archive, store: Repository, way: Callable[[Archive], None]
) -> None:
    assert list(verify(archive)) == []
    gitlocks.leave(store.path, MAIN)
    for quick in (False, True):
        lines = list(verify(archive, quick=quick))
        assert [line.split()[1] for line in lines] == ["HEAD.lock", "refs/heads/main.lock"]
        assert all(line.startswith(f"{DOMAIN}: ") and "was left" in line and "recover" in line for line in lines)
    way(archive)
    assert list(verify(archive)) == []


def test_a_held_lock_is_no_finding_and_survives_recover(archive: Archive, store: Repository) -> None:
    with gitlocks.held(store.path, "refs/heads/persons") as (lock,):
        assert list(verify(archive)) == []
        recover(archive)
        assert maintain(archive).removed == []
        assert lock.exists()


def test_a_backup_gets_over_what_a_killed_one_left(store: Repository, tmp_path: Path) -> None:
    copy = Repository.create(tmp_path / "copy.git")
    gitlocks.leave(copy.path, MAIN)
    repository.fetch(store.path, copy)
    assert copy.ref(MAIN) == store.ref(MAIN)
