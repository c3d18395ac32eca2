"""Which state a mount shows, and when (SEMANTICS.md section 2)."""

# The tests speak in system calls.
# ruff: noqa: PTH208
from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from agent.maintenance.backups import backup
from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.archives import DOMAIN, FIRST
from tests.support.crawls import run_command
from tests.support.damage import damage_object
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.repair import repacking
from webarcfs.archive.system.locks import Turnstile

pytestmark = pytest.mark.mount

ROUNDS = 20
#: The second of the rules, where other tests have most of the processors.
_SECOND = 5.0


def test_whoever_reads_a_tag_finds_its_state(archive: Archive, mount: Mounter) -> None:
    """S-state-1, S-changes-1"""
    archives.publish(archive, pages={"index.html": b"0"})
    mounted = mount(archive)
    arc = mounted / f"{DOMAIN}/index.html"
    command = ["tail", "-f", "-n", "+1", "-s", "0.02", str(mounted / ".changes")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        publisher = threading.Thread(target=publish_rounds, args=(archive,))
        try:
            seen = [CommitTag.parse(tail.stdout.readline().strip())]
            publisher.start()
            while len(seen) < ROUNDS + 1:
                tag = CommitTag.parse(tail.stdout.readline().strip())
                found = CommitTag.parse(os.getxattr(arc, "user.webarc.commitTag").decode())
                assert found >= tag
                assert int((arc / "data.html").read_bytes()) >= len(seen)
                assert (mounted / f".snapshots/{tag}/index.html/data.html").read_bytes() == b"%d" % len(seen)
                seen.append(tag)
        finally:
            publisher.join()
            tail.kill()
    assert [str(tag) for tag in seen] == list(Feed(archive.changes).lines())


def publish_rounds(archive: Archive) -> None:
    for number in range(1, ROUNDS + 1):
        archives.publish(archive, pages={"index.html": b"%d" % number})
        time.sleep(0.01 * (number % 4))


def test_packing_refs_changes_nothing_that_is_shown(archive: Archive, mount: Mounter) -> None:
    """S-state-6: whoever packs them, while crawls publish and additions come."""
    archives.publish(archive, pages={"index.html": b"0"})
    mounted = mount(archive)
    snapshots = mounted / f".snapshots/{DOMAIN}"
    repository = archive.repository(DOMAIN)
    for number in range(1, 6):
        packing = subprocess.Popen(["git", "pack-refs", "--all"], cwd=repository)
        tag = archives.publish(archive, pages={"index.html": b"%d" % number})
        assert packing.wait() == 0
        eventually(lambda: (mounted / ".changes").read_text().split()[-1] == str(tag))  # noqa: B023 # it is waited for here
        assert (mounted / f"{DOMAIN}/index.html/data.html").read_bytes() == b"%d" % number
        (mounted / f"{DOMAIN}/index.html/notes.txt").write_bytes(b"%d" % number)
        subprocess.run(["git", "pack-refs", "--all"], cwd=repository, check=True)
        assert (mounted / f"{DOMAIN}/index.html/notes.txt").read_bytes() == b"%d" % number
        assert len(os.listdir(snapshots)) == number + 1
    shown = sorted(os.listdir(snapshots))
    subprocess.run(["git", "pack-refs", "--all"], cwd=repository, check=True)
    archives.add(archive, "index.html/theirs.txt", b"of another mount")
    eventually((mounted / f"{DOMAIN}/index.html/theirs.txt").exists)
    assert (mounted / f"{DOMAIN}/index.html/theirs.txt").read_bytes() == b"of another mount"
    assert sorted(os.listdir(snapshots)) == shown


def test_publications_show_within_a_second(archive: Archive, mount: Mounter) -> None:
    """S-state-2"""
    mounted = mount(archive)
    assert os.listdir(mounted.point) == [".changes"]
    for domain in (DOMAIN, "new.example"):
        for body in (b"1", b"2"):
            archives.publish(archive, domain, {"index.html": body})
            path = mounted / f"{domain}/index.html/data.html"
            assert eventually(lambda path=path, body=body: path.exists() and path.read_bytes() == body) < _SECOND  # type: ignore[misc]
    tags = set(Feed(archive.changes).lines())
    assert eventually(lambda: set((mounted / ".changes").read_text().splitlines()) == tags) < _SECOND
    assert sorted(os.listdir(mounted.point)) == [".changes", "new.example", DOMAIN]


def test_additions_of_others_show(archive: Archive, mount: Mounter) -> None:
    """S-state-2"""
    tag = archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive)
    addition = mounted / f"{DOMAIN}/index.html/note.txt"
    assert not addition.exists()
    archives.add(archive, "index.html/note.txt", b"note")
    assert eventually(addition.exists) < 2 * _SECOND
    assert (mounted / f".snapshots/{tag}/index.html/note.txt").read_bytes() == b"note"
    assert (mounted / ".changes").read_text() == f"{tag}\n"
    git = ["git", "-C", str(archive.repository(DOMAIN))]
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    archives.add(archive, "index.html/more.txt", b"more")
    assert eventually((mounted / f"{DOMAIN}/index.html/more.txt").exists) < 2 * _SECOND


def test_older_capture_makes_a_snapshot_and_main_stays(archive: Archive, mount: Mounter) -> None:
    """S-names-2"""
    archives.publish(archive, pages={"index.html": b"new"})
    mounted = mount(archive)
    assert (mounted / f"{DOMAIN}/index.html").is_dir()
    # As an import of old captures does: a ref and a line of its own, and main stays.
    store, tag = archives.store_of(archive), CommitTag(FIRST - timedelta(days=1), DOMAIN)
    with Turnstile(archive.lock(DOMAIN)).exclusive():
        main = store.ref("refs/heads/main")
        assert main is not None
        subprocess.run(["git", "-C", str(archive.repository(DOMAIN)), "update-ref", tag.ref, main], check=True)
        Feed(archive.changes).append(tag)
    eventually(lambda: str(tag) in (mounted / ".changes").read_text())
    assert (mounted / f".snapshots/{tag}/index.html/data.html").read_bytes() == b"new"
    assert str(tag) in os.listdir(mounted / f".snapshots/{DOMAIN}")


def test_damage_is_kept_to_its_domain(archive: Archive, mount: Mounter) -> None:
    """S-state-3"""
    for domain in (DOMAIN, "bad.example", "worse.example"):
        archives.publish(archive, domain, {"index.html": b"1"})
    bad, worse = archive.repository("bad.example"), archive.repository("worse.example")
    (bad / "HEAD").rename(bad / "HEAD.away")
    mounted = mount(archive)
    assert sorted(os.listdir(mounted.point)) == [".changes", "bad.example", "worse.example", DOMAIN]
    assert (mounted / "worse.example/index.html/data.html").read_bytes() == b"1"
    shutil.rmtree(worse / "objects")
    (worse / "refs/heads/main").write_text("nonsense\n")
    for domain in ("bad.example", "worse.example"):
        eventually(lambda domain=domain: errno_of_stat(mounted / domain) == errno.EIO)  # type: ignore[misc]
    assert errno_of_stat(mounted / ".snapshots/bad.example") == errno.EIO
    assert (mounted / f"{DOMAIN}/index.html/data.html").read_bytes() == b"1"
    archives.publish(archive, DOMAIN, {"index.html": b"2"})
    assert eventually(lambda: (mounted / f"{DOMAIN}/index.html/data.html").read_bytes() == b"2") < _SECOND
    log = (archive.log / "mount.log").read_text()
    assert "bad.example cannot be shown" in log and "worse.example cannot be shown" in log
    (bad / "HEAD.away").rename(bad / "HEAD")
    assert (mounted / "bad.example/index.html/data.html").read_bytes() == b"1"


def test_a_damaged_page_that_comes_back_is_shown_at_once(archive: Archive, mount: Mounter, folder: Path) -> None:
    """S-state-9"""
    archives.publish(archive, pages={"index.html": bytes(range(256)) * 8, "other.html": b"1"})
    repacking.repack(archive.repository(DOMAIN))
    assert backup(archive, folder / "backup").failed == ()
    store, arc = archives.store_of(archive), f"{DOMAIN}/index.html"
    head = store.head()
    assert head is not None
    parts = [store.find(head.tree, f"index.html/{name}") for name in ("data.html", "data.xml")]
    damage_object(archive.repository(DOMAIN), *(part.oid for part in parts if part is not None))
    mounted = mount(archive)
    with pytest.raises(OSError, match="Input/output error"):
        (mounted / f"{arc}/data.html").read_bytes()
    with pytest.raises(OSError, match="Input/output error"):
        (mounted / f"{arc}/data.xml").read_bytes()
    assert "user.webarc.path" not in os.listxattr(mounted / arc)
    assert (mounted / f"{DOMAIN}/other.html/data.html").read_bytes() == b"1"
    done = run_command("restore", "--damaged", folder / "backup", archive.root)
    assert done.code == 0, done.err
    assert (mounted / f"{arc}/data.html").read_bytes() == bytes(range(256)) * 8
    assert b"http://www.example.org/index.html" in (mounted / f"{arc}/data.xml").read_bytes()
    assert os.getxattr(mounted / arc, "user.webarc.path") == f"/{arc}".encode()


def test_repository_put_in_the_place_of_another(archive: Archive, mount: Mounter, tmp_path: Path) -> None:
    """S-state-3"""
    archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive)
    path = mounted / f"{DOMAIN}/index.html/data.html"
    assert path.read_bytes() == b"1"
    repository = archive.repository(DOMAIN)
    shutil.move(repository, tmp_path)
    eventually(lambda: errno_of_stat(path) == errno.ENOENT)  # EIO until the mount looked again
    assert os.listdir(mounted.point) == [".changes"]
    archives.publish(archive, pages={"index.html": b"3"}, crawl_time=FIRST + timedelta(days=1))
    eventually(lambda: path.exists() and path.read_bytes() == b"3")


def test_feed_missing_and_written_anew(archive: Archive, mount: Mounter) -> None:
    """S-state-4"""
    first = archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive)
    feed = mounted / ".changes"
    with feed.open() as follower:
        assert follower.read() == f"{first}\n"
        archive.changes.unlink()
        time.sleep(0.5)
        assert feed.read_text() == f"{first}\n"
        second = archives.publish(archive, pages={"index.html": b"2"}, to_feed=False)
        Feed(archive.changes).rewrite([first, second])
        eventually(lambda: feed.read_text() == f"{first}\n{second}\n")
        assert follower.read() == f"{second}\n"
    Feed(archive.changes).rewrite([second])
    eventually(lambda: feed.read_text() == f"{second}\n")
    with archive.changes.open("a") as unfinished:
        unfinished.write("2026-11-2")
    time.sleep(0.5)
    assert feed.read_text() == f"{second}\n"
    third = archives.publish(archive, pages={"index.html": b"3"})
    eventually(lambda: feed.read_text() == f"{second}\n{third}\n")


def test_mount_without_a_feed(archive: Archive, mount: Mounter) -> None:
    """S-state-4"""
    archives.publish(archive, pages={"index.html": b"1"})
    archive.changes.unlink()
    mounted = mount(archive)
    assert (mounted / ".changes").read_bytes() == b""
    assert (mounted / f"{DOMAIN}/index.html/data.html").read_bytes() == b"1"
    tag = archives.publish(archive, pages={"index.html": b"2"})
    eventually(lambda: (mounted / ".changes").read_text() == f"{tag}\n")


def errno_of_stat(path: Path) -> int | None:
    try:
        path.stat()
    except OSError as error:
        return error.errno
    return None
