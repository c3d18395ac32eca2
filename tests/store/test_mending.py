"""A damaged byte in HEAD, config or refs of a repository is found by `verify`, also by its quick form, and mended by
`recover`, where the repository tells what was there; what cannot be told is named, and nothing is lost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from agent.maintenance.verification import verify
from tests.support.archives import DOMAIN, FIRST, add, publish, store_of
from tests.support.crawls import run_command
from tests.support.journals import Writer
from tests.support.properties import IS_LONG
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import MAIN, PUBLICATIONS, RefUpdate
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import COMMITTER, CommitTag, CrawlMessage
from webarcfs.archive.repair import mending, repacking
from webarcfs.archive.repair.mending import mend

pytestmark = pytest.mark.store

NIGHTLY = f"{PUBLICATIONS}test"
#: Each n-th byte of packed-refs is damaged.
STEP = 3
OLDER = FIRST - timedelta(days=30)


@pytest.fixture
def sound(archive: Archive) -> Archive:
    """Three crawls and an import of older captures, a publication, additions that are committed, and a commit-graph."""
    publish(archive, DOMAIN, {"a.html": b"1", "b.html": b"1"})
    publish(archive, DOMAIN, {"a.html": b"2"})
    publish(archive, DOMAIN, {"c.html": b"3"})
    store = store_of(archive)
    head = store.head()
    assert head is not None
    tag = CommitTag(OLDER, DOMAIN)
    older = store.write_commit(head.tree, [], str(CrawlMessage(tag, "test", False, 4)), COMMITTER, 1)
    part = store.edit(head.tree, {"b.html/data.html": None})
    store.update_refs([RefUpdate(tag.ref, older, None), RefUpdate(NIGHTLY, part, None)])
    Feed(archive.changes).append(tag)
    writer = Writer(archive)
    writer.file("a.html", "notes.txt", b"mine")
    commit_additions(archive, DOMAIN)
    writer.journal.close()
    repacking.write_graph(store.path)
    catch_up(archive)
    return archive


def repository(archive: Archive) -> Path:
    return archive.repository(DOMAIN)


def pack(archive: Archive) -> None:
    subprocess.run(["git", "pack-refs", "--all"], cwd=repository(archive), check=True)


def state(archive: Archive) -> dict[str, str]:
    return store_of(archive).refs("refs/")


def flips(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The content with a bit turned, another one in each byte."""
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        yield at, bytes(damaged)


def damage(path: Path, content: bytes) -> None:
    if path.exists():
        path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["HEAD", "config", "main", "publications", "additions", "crawls", "older"])
def test_each_byte_of_a_small_file(sound: Archive, name: str) -> None:
    """Found by the quick form, mended, and then all is as it was."""
    newest = store_of(sound).head()
    assert newest is not None
    files = {
        "main": MAIN,
        "publications": NIGHTLY,
        "additions": "refs/additions/" + next(iter(store_of(sound).refs("refs/additions/"))),
        "crawls": newest.message.tag.ref,
        "older": CommitTag(OLDER, DOMAIN).ref,
    }
    path, before = repository(sound) / files.get(name, name), state(sound)
    content = path.read_bytes()
    for at, damaged in list(flips(content))[:: 1 if IS_LONG or name != "config" else STEP]:
        damage(path, damaged)
        found = list(verify(sound, quick=True))
        mended = mend(sound, DOMAIN)
        assert mended.left == [], at
        if name == "config" and not mended.done:  # a blank, or a setting that is git's own business
            damage(path, content)
            continue
        assert any(line.startswith(f"{DOMAIN}: ") for line in found), (at, damaged)
        assert (path.read_bytes(), state(sound)) == (content, before) or name == "config", (at, damaged)
        assert state(sound) == before
        damage(path, content)
    assert list(verify(sound)) == []


def config_faults(archive: Archive) -> list[str]:
    """What is wrong with the settings of the repository."""
    return [line for line in mending.faults(repository(archive)) if line.startswith("config: ")]


def test_files_that_settings_include_do_not_count(sound: Archive, tmp_path: Path) -> None:
    """Those of others may change at any time, and git finds them by the place of the settings' own file."""
    (tmp_path / "others").write_text("[core]\n\tbare = false\n")
    config = repository(sound) / "config"
    own = config.read_text()
    for path in (tmp_path / "others", "others"):
        config.write_text(f"{own}[include]\n\tpath = {path}\n")
        assert config_faults(sound) == []


def test_settings_that_cannot_be_read_are_a_finding(sound: Archive) -> None:
    """Not the end of `verify`: as on a disk that fails."""
    config = repository(sound) / "config"
    config.rename(config.with_name("kept"))
    config.mkdir()
    (line,) = config_faults(sound)
    assert "core.bare is not true" in line
    assert any(line in finding for finding in verify(sound, quick=True))


def test_a_git_that_is_killed_says_nothing_of_the_settings(
    sound: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither now nor to the next who asks."""
    config = repository(sound) / "config"
    config.write_text(f"{config.read_text()}# a text that nobody checked before\n")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    with monkeypatch.context() as patch:
        path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
        patch.setattr(git_command, "environment", lambda: {"PATH": path})
        (line,) = config_faults(sound)
        with pytest.raises(WebarcError, match="killed by signal 9"):
            mending.wrong_settings(repository(sound))
    assert "killed by signal 9" in line
    assert config_faults(sound) == []


def test_each_byte_of_packed_refs(sound: Archive) -> None:
    pack(sound)
    path, before = repository(sound) / "packed-refs", state(sound)
    content = path.read_bytes()
    for at, damaged in list(flips(content))[::STEP]:
        damage(path, damaged)
        assert list(verify(sound, quick=True)), (at, damaged)
        mended = mend(sound, DOMAIN)
        after = state(sound)
        assert mended.left == [], (at, damaged, mended)
        assert {name: oid for name, oid in after.items() if name in before} == before, (at, damaged)
        shutil.rmtree(repository(sound) / "refs")
        (repository(sound) / "refs").mkdir()
        damage(path, content)


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_backup_is_not_needed_for(sound: Archive, packed: bool) -> None:
    """Texts that are gone: main, the refs of crawls and marks of additions follow from the rest."""
    before = state(sound)
    if packed:
        pack(sound)
    for name in before:
        if f"refs/{name}" == NIGHTLY:
            continue
        path = repository(sound) / "refs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        damage(path, b"")
        assert list(verify(sound, quick=True))
        done = run_command("recover", "--archive", sound.root)
        assert (done.code, f"repaired: {DOMAIN}: refs/{name} is at {before[name]} again" in done.out) == (0, True), done
        assert state(sound) == before
    assert list(verify(sound)) == []


def test_a_publication_that_cannot_be_told_is_named_and_does_not_hinder_the_next_crawl(sound: Archive) -> None:
    path = repository(sound) / NIGHTLY
    damage(path, b"\0" * 41)
    done = run_command("recover", "--archive", sound.root)
    assert done.code == 2
    assert f"not repaired: {DOMAIN}: {NIGHTLY}: the object that it named is unknown" in done.err
    assert [each.read_bytes() for each in repository(sound).glob(f"damaged/*/{NIGHTLY}")] == [b"\0" * 41]
    assert store_of(sound).ref(NIGHTLY) is None
    assert run_command("recover", "--archive", sound.root).code == 0
    publish(sound, DOMAIN, {"d.html": b"4"})
    catch_up(sound)
    assert list(verify(sound)) == []


def test_main_is_not_moved_back(sound: Archive) -> None:
    """Where the newest crawl's ref is gone, too, no older state takes its place."""
    before = state(sound)
    newest = max(name for name in before if name.startswith("crawls/"))
    for name in ("heads/main", newest):
        damage(repository(sound) / "refs" / name, b"")
    store = store_of(sound)
    for oid in (before[newest], store.commit(before[newest]).parents[0]):
        (store.path / "objects" / oid[:2] / oid[2:]).unlink()
    done = run_command("recover", "--archive", sound.root)
    assert done.code == 2
    assert f"not repaired: {DOMAIN}: {MAIN}: its commit is unknown" in done.err
    assert f"not repaired: {DOMAIN}: refs/{newest}: " in done.err
    assert (repository(sound) / MAIN).read_bytes() == b""


def test_a_ref_to_an_object_that_is_damaged_is_not_moved(sound: Archive) -> None:
    """Its text is sound. An older commit of the same crawl, without the additions since, is not taken for it."""
    store, before = store_of(sound), {path: path.read_bytes() for path in repository(sound).glob("refs/*/*")}
    head = store.head()
    assert head is not None and not head.message.is_crawl
    path = store.path / "objects" / head.oid[:2] / head.oid[2:]
    for content in (path.read_bytes()[:40], None):
        damage(path, content or b"")
        if content is None:
            path.unlink()
        done = run_command("recover", "--archive", sound.root)
        assert done.code == 2
        for name in (MAIN, head.message.tag.ref):
            assert f"not repaired: {DOMAIN}: {name}: it is at {head.oid}, which cannot be read" in done.err
        assert {path: path.read_bytes() for path in repository(sound).glob("refs/*/*")} == before


def test_additions_that_main_had_and_the_crawls_ref_had_not(sound: Archive) -> None:
    """A power cut may leave that; main comes back with them."""
    store = store_of(sound)
    head = store.head()
    assert head is not None
    add(sound, "a.html/late.txt", b"late")
    late = store.head()
    assert late is not None
    store.update_refs([RefUpdate(head.message.tag.ref, head.oid, late.oid)])
    damage(repository(sound) / MAIN, b"")
    assert mend(sound, DOMAIN).left == []
    assert store_of(sound).ref(MAIN) == late.oid


@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"P # pack-refs\n" * 40])
def test_packed_refs_that_are_gone(sound: Archive, content: bytes) -> None:
    """What follows from nothing is named: the feed has the import of older captures, and that is all."""
    pack(sound)
    before = state(sound)
    (repository(sound) / MAIN).write_text(f"{before['heads/main']}\n")
    damage(repository(sound) / "packed-refs", content)
    mend(sound, DOMAIN)
    after = state(sound)
    assert {name: oid for name, oid in after.items() if name.startswith("crawls/")}.items() < before.items()
    assert len(after) == 4
    publish(sound, DOMAIN, {"d.html": b"4"})


@pytest.mark.parametrize("header", [b"", b"# pack-refs with: peeled\n", b"# pack-refs with: peeled fully-peeled \n"])
def test_packed_refs_that_another_program_wrote_are_no_damage(sound: Archive, header: bytes) -> None:
    """Only git's newer header says that they are in order."""
    pack(sound)
    path, before = repository(sound) / "packed-refs", state(sound)
    lines = path.read_bytes().splitlines(keepends=True)[1:]
    damage(path, header + b"".join(reversed(lines)))
    assert list(verify(sound, quick=True)) == []
    assert (mend(sound, DOMAIN).done, state(sound)) == ([], before)


def test_the_commit_graph_is_made_anew(sound: Archive) -> None:
    (path,) = repository(sound).glob("objects/info/commit-graph")
    content = path.read_bytes()
    for at, damaged in list(flips(content))[::97]:
        damage(path, damaged)
        assert any("commit-graph" in line for line in verify(sound)), at
        assert mend(sound, DOMAIN).left == []
        assert path.read_bytes() == content
    assert list(verify(sound)) == []


def test_a_git_that_crashes_is_a_finding(sound: Archive) -> None:
    """A table of ids that leads beyond the commit-graph kills git 2.39 by SIGBUS, which says nothing."""
    (path,) = repository(sound).glob("objects/info/commit-graph")
    content = path.read_bytes()
    fanout = content.index(b"OIDF") + 8
    begin = int.from_bytes(content[fanout - 4 : fanout + 4])
    for bucket in range(256):
        at = begin + 4 * bucket
        before = int.from_bytes(content[at - 4 : at]) if bucket else 0
        if int.from_bytes(content[at : at + 4]) > before:  # a commit's bucket
            damage(path, content[:at] + (1 << 24).to_bytes(4) + content[at + 4 :])
            found = list(verify(sound))
            assert any("crashed by signal" in line and "commit-graph" in line for line in found), (bucket, found)
            assert mend(sound, DOMAIN).left == []
            assert path.read_bytes() == content
    assert list(verify(sound)) == []


def test_refs_of_others_stay(sound: Archive) -> None:
    """Branches and tags of somebody who works with git, also where packed-refs is mended."""
    for arguments in (
        ["tag", "mine", "main"],
        ["-c", "user.name=x", "-c", "user.email=x@x", "tag", "-a", "-mx", "note", "main"],
    ):
        subprocess.run(["git", *arguments], cwd=repository(sound), check=True)
    subprocess.run(["git", "branch", "maim", "main"], cwd=repository(sound), check=True)
    pack(sound)
    before, path = state(sound), repository(sound) / "packed-refs"
    content = path.read_bytes()
    damage(path, content.replace(b"refs/heads/main", b"refs/heads/mai!"))
    assert mend(sound, DOMAIN).left == []
    after = state(sound)
    assert {name: oid for name, oid in after.items() if name in before} == before
    assert list(verify(sound)) == []


def test_a_sound_repository_is_left_alone(sound: Archive) -> None:
    pack(sound)
    before = {path: path.stat().st_mtime_ns for path in repository(sound).rglob("*")}
    done = run_command("recover", "--archive", sound.root)
    assert (done.code, "repaired" in done.out) == (0, False)
    assert {path: path.stat().st_mtime_ns for path in repository(sound).rglob("*")} == before


def test_settings_of_others_stay(sound: Archive) -> None:
    subprocess.run(["git", "config", "user.name", "anna"], cwd=repository(sound), check=True)
    path = repository(sound) / "config"
    damage(path, path.read_bytes().replace(b"auto = 0", b"auto = 1"))
    assert any("gc.auto is not 0" in line for line in verify(sound, quick=True))
    assert mend(sound, DOMAIN).done[0] == "config has its settings again: gc.auto"
    text = path.read_text()
    assert "name = anna" in text and "auto = 0" in text
