"""The maker's minute, as system calls and tools see it (SEMANTICS.md section 5, "The maker's minute")."""

# The tests speak in system calls.
# ruff: noqa: PTH102, PTH103, PTH104, PTH105, PTH106, PTH107, PTH116, PTH123, PTH101
from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest
from pypdfium2 import PdfDocument

from tests.mount.conftest import Desk, Mounter, _folder
from tests.mount.test_durability import fill
from tests.mount.test_writing import error_of, write
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.disks import small_disk
from tests.support.mounts import SCRIPTS, UMOUNT, Mounted, run
from tests.support.users import NOBODY
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.additions.commit_additions import commit_additions, fold_in
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import parse_time
from webarcfs.archive.system.locks import Turnstile

pytestmark = pytest.mark.mount

SETTLES = "user.webarc.settles"
#: Rounds of changes; the soak has 1,000.
ROUNDS = int(os.environ.get("CHANGE_ROUNDS", "10"))
LARGE = bytes(range(256)) * 4096 * 5
OWN = {"data.html", "data.xml", "headers.http"}


def settle(archive: Archive, seconds: float) -> None:
    archive.settings.write_text(f"[mount]\ncommit_interval = 0.1\nsettle = {seconds}\n", "utf-8")


@pytest.fixture(scope="module")
def desk(binding: str) -> Iterator[Desk]:
    """A mount in which nothing settles, of an ARC for each test."""
    for folder in _folder():
        archive = archives.make_archive(folder)
        settle(archive, 3600)
        archives.publish(archive, pages={f"p{number}.html": b"page %d" % number for number in range(60)})
        mounted = Mounted(archive.root, folder / "mnt", "-o", f"binding={binding},group={NOBODY}")
        try:
            yield Desk(archive, mounted)
        finally:
            mounted.clear()


@pytest.fixture
def arc(desk: Desk) -> Iterator[Path]:
    """An ARC that nobody has used. No file of it is in git."""
    folder = desk.arc()
    yield folder
    desk.commit(folder)
    assert all(desk.in_git(path) is None for path in added(folder))


def added(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name not in OWN)


def names(folder: Path) -> list[str]:
    return [path.name for path in added(folder)]


def in_git(archive: Archive, arc: str = "a.html") -> dict[str, bytes]:
    store = archives.store_of(archive)
    head = store.head()
    found = store.find(head.tree, arc) if head else None
    assert found is not None
    return {entry.name: store.read(entry.oid) for entry in store.entries(found.oid) if entry.name not in OWN}


def as_other(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as a user who may write there, and is not the maker."""
    return subprocess.run(
        ["sh", "-c", script],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


# -- what a maker may do -----------------------------------------------------------------------------------------------


def test_a_maker_writes_cuts_renames_and_removes(arc: Path) -> None:
    """S-settle-1"""
    for body in (b"1", LARGE):
        write(arc / "n", body)
        with open(arc / "n", "r+b") as file:
            assert file.read() == body
            file.seek(0)
            file.write(b"X")
        assert (arc / "n").read_bytes() == b"X" + body[1:]
        with open(arc / "n", "ab") as file:
            file.write(b"end")
        assert (arc / "n").read_bytes() == b"X" + body[1:] + b"end"
        os.truncate(arc / "n", 2)
        assert (arc / "n").read_bytes() == (b"X" + body[1:] + b"end")[:2]
        (arc / "n").write_bytes(b"again")
        assert (arc / "n").stat().st_size == 5
        os.rename(arc / "n", arc / "m")
        assert names(arc) == ["m"] and (arc / "m").read_bytes() == b"again"
        os.remove(arc / "m")
        assert names(arc) == []
        assert error_of(lambda: os.stat(arc / "m")) == errno.ENOENT


def test_a_name_is_used_again_at_once(arc: Path) -> None:
    """S-settle-1: as scripts do it, whatever was there before."""
    for number in range(20):
        write(arc / "n", b"%d" % number)
        os.remove(arc / "n")
        os.mkdir(arc / "n")
        os.rmdir(arc / "n")
    write(arc / "n", b"last")
    assert (arc / "n").read_bytes() == b"last"


def test_a_renamed_file_is_written_at_once(arc: Path) -> None:
    """S-settle-1: the kernel opens the inode that it knows from the old name."""
    write(arc / "old", b"first")
    for number in range(40):
        os.rename(arc / "old", arc / "new")
        (arc / "new").write_bytes(b"%d" % number)
        assert (arc / "new").read_bytes() == b"%d" % number
        os.rename(arc / "new", arc / "old")
        os.truncate(arc / "old", 0)
        with open(arc / "old", "r+b") as file:
            file.write(b"again")
        assert (arc / "old").read_bytes() == b"again"


def test_changes_follow_each_other_at_once(arc: Path) -> None:
    """S-settle-1: whatever the mount still does for the change before; several files at a time."""

    def change(name: str) -> None:
        path, other = arc / name, arc / f"{name}-other"
        for number in range(ROUNDS):
            path.write_bytes(b"abc" if number % 5 else LARGE)
            os.truncate(path, 2)
            path.write_bytes(b"again")
            with open(path, "ab") as file:
                file.write(b"x")
            os.rename(path, other)
            other.write_bytes(b"other")
            os.rename(other, path)
            assert path.read_bytes() == b"other"

    with ThreadPoolExecutor(6) as makers:
        for done in [makers.submit(change, f"n{number}") for number in range(6)]:
            done.result()


def test_an_open_file_is_renamed_and_replaced(arc: Path) -> None:
    """S-settle-1, S-settle-5, S-rename-1: onto one's own file, open or closed, written or not."""
    for source_closed in (True, False):
        for target_closed in (True, False):
            source, target = (os.open(arc / name, os.O_CREAT | os.O_EXCL | os.O_RDWR) for name in ("source", "target"))
            os.write(source, b"source")
            os.write(target, b"target")
            for fd, closed in ((source, source_closed), (target, target_closed)):
                if closed:
                    os.close(fd)
            os.rename(arc / "source", arc / "target")
            assert names(arc) == ["target"] and (arc / "target").read_bytes() == b"source"
            if not source_closed:
                os.write(source, b" more")
                os.close(source)
            if not target_closed:
                os.write(target, b" goes on")
                assert os.pread(target, 99, 0) == b"target goes on"
                os.close(target)
            assert (arc / "target").read_bytes() == (b"source" if source_closed else b"source more")
            os.remove(arc / "target")


@pytest.mark.parametrize("target", ["none", "closed", "open"])
@pytest.mark.parametrize("confirmed", ["by a copy's close", "by a cut of its name"])
def test_a_handle_goes_on_after_its_file_was_confirmed_and_renamed(arc: Path, confirmed: str, target: str) -> None:
    """S-settle-5: its size and its bytes are what is written through it, by whatever name it is found."""
    replaced = os.open(arc / "three", os.O_CREAT | os.O_EXCL | os.O_WRONLY) if target != "none" else -1
    if target == "closed":
        os.close(replaced)
    with open(arc / "one", "xb", buffering=0) as file, open(arc / "one", "ab", buffering=0) as other:
        file.write(b"12")
        os.close(os.dup(file.fileno()))
        if confirmed == "by a cut of its name":
            os.truncate(arc / "one", 0)
        os.rename(arc / "one", arc / "three")
        file.truncate(5)
        assert [os.fstat(each.fileno()).st_size for each in (file, other)] == [5, 5]
        other.write(b"end")
        assert os.stat(arc / "three").st_size == 8
        assert len((arc / "three").read_bytes()) == 8
    if target == "open":
        os.close(replaced)
    assert len((arc / "three").read_bytes()) == 8
    os.remove(arc / "three")


@pytest.mark.only("libfuse3")  # the other one finds attributes by a name
def test_a_handle_goes_on_after_its_file_went_for_an_equal_one(archive: Archive, mount: Mounter) -> None:
    """S-settle-5, S-rename-1: onto a final file with the same bytes; the handle has none of that file's attributes."""
    settle(archive, 3600)
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    write(mounted / f"{DOMAIN}/a.html/three", b"12")
    assert run(UMOUNT, mounted.point).returncode == 0
    arc = mount(archive) / f"{DOMAIN}/a.html"
    with open(arc / "one", "xb", buffering=0) as file, open(arc / "one", "ab", buffering=0) as other:
        file.write(b"12")
        os.close(os.dup(file.fileno()))
        os.rename(arc / "one", arc / "three")
        file.truncate(5)
        assert [os.fstat(each.fileno()).st_size for each in (file, other)] == [5, 5]
        assert (arc / "three").read_bytes() == b"12"
        other.write(b"end")
        assert [os.fstat(each.fileno()).st_size for each in (file, other)] == [8, 8]
    assert names(arc) == ["three"] and (arc / "three").read_bytes() == b"12"


def test_folders_are_removed_by_their_maker(arc: Path) -> None:
    """S-settle-1"""
    os.makedirs(arc / "d/e")
    write(arc / "d/e/n", b"1")
    assert error_of(lambda: os.rmdir(arc / "d/e")) == errno.ENOTEMPTY
    os.remove(arc / "d/e/n")
    os.removedirs(arc / "d/e")
    assert names(arc) == []
    assert error_of(lambda: os.rmdir(arc)) == errno.EPERM
    with tempfile.TemporaryDirectory(dir=arc) as folder:
        (Path(folder) / "n").write_bytes(b"1")
    assert names(arc) == []


def test_what_renames_refuse(arc: Path) -> None:
    """S-rename-1: RENAME_NOREPLACE, the ARC's own names, another ARC, names of temporary files."""
    write(arc / "n", b"1")
    write(arc / "m", b"2")
    libc = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(arc / "n"), os.fsencode(arc / "m")
    assert libc.renameat2(-100, paths[0], -100, paths[1], 1) == -1
    assert ctypes.get_errno() in (errno.EEXIST, errno.EINVAL)  # fusepy: no flags
    for name in ("data.html", "headers.http", ".x.swp", ".~lock.n#"):
        assert error_of(lambda name=name: os.rename(arc / "n", arc / name)) == errno.EPERM
    assert error_of(lambda: os.rename(arc / "n", arc.parent / "p59.html/n")) == errno.EPERM
    assert {path.name: path.read_bytes() for path in added(arc)} == {"m": b"2", "n": b"1"}


# -- others ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user, too")
def test_others_can_change_nothing(arc: Path) -> None:
    """S-settle-2: neither those whom the mode refuses, nor those whom the mount has to. Both can read it."""
    write(arc / "mine", b"1")
    attempts = ("echo 2 > mine", "echo 2 >> mine", "mv mine n", "rm -f mine", "truncate -s 0 mine", "chmod 600 mine")
    for script in attempts:
        done = as_other(script, arc)
        assert done.returncode != 0 and "ermi" in done.stderr, (script, done)
    assert as_other("set -C; echo 2 > mine", arc).returncode != 0
    assert as_other("cat mine; stat -c %a mine", arc).stdout.split() == ["1664"]
    assert as_other("echo 3 > theirs; echo 4 > theirs; cat theirs", arc).stdout == "4\n"
    for act in (
        lambda: os.open(arc / "theirs", os.O_WRONLY | os.O_TRUNC),
        lambda: os.truncate(arc / "theirs", 0),
        lambda: os.remove(arc / "theirs"),
        lambda: os.rename(arc / "theirs", arc / "n"),
        lambda: os.rename(arc / "mine", arc / "theirs"),
    ):
        assert error_of(act) == errno.EPERM
    assert error_of(lambda: write(arc / "theirs", b"5")) == errno.EEXIST
    assert (arc / "theirs").read_bytes() == b"4\n" and (arc / "mine").read_bytes() == b"1"
    assert as_other("mv theirs moved && rm moved", arc).returncode == 0
    assert names(arc) == ["mine"]


def test_exclusive_creation_fails_for_the_maker_too(arc: Path) -> None:
    """S-settle-2: locks by O_EXCL hold."""
    write(arc / "lock", b"")
    assert error_of(lambda: write(arc / "lock", b"")) == errno.EEXIST
    os.remove(arc / "lock")
    write(arc / "lock", b"1")
    assert error_of(lambda: write(arc / "lock", b"")) == errno.EEXIST


def test_other_mounts_do_not_show_it_and_cannot_take_its_name(archive: Archive, mount: Mounter) -> None:
    """S-settle-2, S-add-7"""
    settle(archive, 3600)
    archives.publish(archive, pages={"a.html": b"page"})
    mounted, other = mount(archive), mount(archive)
    folder, there = mounted / f"{DOMAIN}/a.html", other / f"{DOMAIN}/a.html"
    write(folder / "n", b"1")
    assert names(there) == []
    assert error_of(lambda: write(there / "n", b"2")) == errno.EEXIST
    write(there / "m", b"2")
    os.remove(there / "m")
    write(folder / "m", b"3")
    assert run(UMOUNT, mounted.point).returncode == 0
    eventually(lambda: names(there) == ["m", "n"], PATIENCE)
    assert (there / "n").read_bytes() == b"1" and (there / "m").read_bytes() == b"3"
    assert error_of(lambda: os.remove(there / "n")) == errno.EPERM


# -- empty files, attributes -------------------------------------------------------------------------------------------


def test_an_empty_file_is_filled_whenever_its_maker_likes(archive: Archive, mount: Mounter) -> None:
    """S-settle-3, S-create-1; it settles when it was written."""
    settle(archive, 0.5)
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/a.html"
    write(folder / "empty", b"")
    os.mknod(folder / "node", stat.S_IFREG | 0o644)
    write(folder / "n", b"1")
    eventually(lambda: in_git(archive) == {"n": b"1"}, PATIENCE)
    assert os.getxattr(folder / "empty", SETTLES) == os.getxattr(folder / "node", SETTLES) == b"empty"
    for name in ("empty", "node"):
        subprocess.run(["sh", "-c", 'echo x >> "$0"', folder / name], check=True)
    eventually(lambda: in_git(archive) == {"n": b"1", "empty": b"x\n", "node": b"x\n"}, PATIENCE)
    assert error_of(lambda: os.close(os.open(folder / "empty", os.O_WRONLY))) in (errno.EPERM, errno.EACCES)
    write(folder / "never", b"")
    assert run(UMOUNT, mounted.point).returncode == 0
    assert in_git(archive)["never"] == b""


def test_attributes_say_when_it_settles(archive: Archive, mount: Mounter) -> None:
    """S-settle-4, S-listxattr-1, S-add-2"""
    settle(archive, 1.5)
    archives.publish(archive, pages={"a.html": b"page"})
    folder = mount(archive) / f"{DOMAIN}/a.html"
    with open(folder / "n", "xb") as file:
        file.write(b"1")
        file.flush()
        assert os.getxattr(folder / "n", SETTLES) == b"open"
        assert os.listxattr(folder / "n") == [SETTLES]
    eventually(lambda: os.getxattr(folder / "n", SETTLES) != b"open", PATIENCE)
    when = os.getxattr(folder / "n", SETTLES).decode()
    found = os.stat(folder / "n")
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o644, os.geteuid())
    assert parse_time(when)
    os.chmod(folder / "n", 0o600)
    os.utime(folder / "n", (1, 1))
    eventually(lambda: in_git(archive) == {"n": b"1"}, PATIENCE)
    assert os.listxattr(folder / "n") == []
    assert error_of(lambda: os.getxattr(folder / "n", SETTLES)) == errno.ENODATA
    assert stat.S_IMODE(os.stat(folder / "n").st_mode) == 0o444
    for act in (
        lambda: os.remove(folder / "n"),
        lambda: os.rename(folder / "n", folder / "m"),
        lambda: os.chmod(folder / "n", 0o600),
    ):
        assert error_of(act) == errno.EPERM
    assert (folder / "n").read_bytes() == b"1"


# -- readers -----------------------------------------------------------------------------------------------------------


def test_a_reader_keeps_what_it_opened(arc: Path) -> None:
    """S-settle-5: whatever its maker does then; who opens it later has the new bytes, of another inode."""
    changes: dict[str, Callable[[], object]] = {
        "written": lambda: (arc / "n").write_bytes(b"new"),
        "cut": lambda: os.truncate(arc / "n", 1),
        "replaced": lambda: (write(arc / "tmp", b"new"), os.rename(arc / "tmp", arc / "n")),
        "removed": lambda: os.remove(arc / "n"),
        "made anew": lambda: (os.remove(arc / "n"), write(arc / "n", b"new")),
    }
    for body in (b"old", LARGE):
        for how, change in changes.items():
            write(arc / "n", body)
            with open(arc / "n", "rb", buffering=0) as reader:
                before = os.fstat(reader.fileno()).st_ino
                change()
                assert reader.readall() == body, how
                assert os.pread(reader.fileno(), 9, 0) == body[:9], how
            if how == "removed":
                assert names(arc) == []
            else:
                assert (arc / "n").read_bytes() == (body[:1] if how == "cut" else b"new"), how
                eventually(lambda before=before: os.stat(arc / "n").st_ino != before, PATIENCE)
                os.remove(arc / "n")


@pytest.mark.only("libfuse3")
def test_a_mapping_keeps_what_it_mapped(arc: Path) -> None:
    """S-settle-5, S-mmap-2"""
    write(arc / "n", b"old" * 5_000)
    with (
        open(arc / "n", "rb") as reader,
        mmap.mmap(reader.fileno(), 0, prot=mmap.PROT_READ) as mapping,
    ):
        assert mapping[:3] == b"old"
        (arc / "n").write_bytes(b"new" * 5_000)
        assert mapping[:] == b"old" * 5_000
        assert (arc / "n").read_bytes() == b"new" * 5_000


@pytest.mark.only("libfuse3")  # the other one finds what it opens by a name
@pytest.mark.parametrize("how", ["renamed onto", "written again"])
def test_what_was_looked_up_is_opened_though_its_name_means_another(arc: Path, how: str) -> None:
    """S-settle-5: on ESTALE the kernel asks a second time, not a third, and a program would get it."""
    write(arc / "n", b"old" * 1_000)
    looked_up = os.open(arc / "n", os.O_PATH)  # as the kernel, between its look-up and its open
    try:
        if how == "renamed onto":
            write(arc / "new", b"new")
            os.rename(arc / "new", arc / "n")
        else:
            (arc / "n").write_bytes(b"new")
        assert Path(f"/proc/self/fd/{looked_up}").read_bytes() == b"old" * 1_000
    finally:
        os.close(looked_up)
    assert (arc / "n").read_bytes() == b"new"


def test_a_handle_of_what_was_removed_goes_on(arc: Path) -> None:
    """S-settle-5: as unnamed temporary files do it."""
    fd = os.open(arc / "n", os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.write(fd, b"1")
    os.fsync(fd)
    os.remove(arc / "n")
    write(arc / "n", b"another")
    os.write(fd, b"2")
    os.fsync(fd)
    os.ftruncate(fd, 5)
    assert os.pread(fd, 99, 0) == b"12\0\0\0"
    os.close(fd)
    assert (arc / "n").read_bytes() == b"another"
    with tempfile.TemporaryFile(dir=arc) as file:
        file.write(b"12")
        file.seek(0)
        assert file.read() == b"12"
    assert names(arc) == ["n"]


# -- settling ----------------------------------------------------------------------------------------------------------


def test_a_file_settles_as_it_was_confirmed_last(archive: Archive, mount: Mounter) -> None:
    """S-settle-6: fsync settles nothing, an open file stays open; then it is final."""
    settle(archive, 1)
    archives.publish(archive, pages={"a.html": b"page"})
    folder = mount(archive) / f"{DOMAIN}/a.html"
    with open(folder / "log", "xb", buffering=0) as log:
        log.write(b"1")
        os.fsync(log.fileno())
        write(folder / "n", b"0")
        eventually(lambda: in_git(archive) == {"n": b"0"}, PATIENCE)
        log.write(b"2")
        os.fsync(log.fileno())
        fd = os.open(folder, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        assert in_git(archive) == {"n": b"0"}
    eventually(lambda: in_git(archive) == {"n": b"0", "log": b"12"}, PATIENCE)
    assert (folder / "log").read_bytes() == b"12"


def test_the_end_of_a_mount_settles_all(archive: Archive, mount: Mounter) -> None:
    """S-settle-6, S-drain-1: what was removed does not come back."""
    settle(archive, 3600)
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/a.html"
    for name in ("n", "large", "gone", "old"):
        write(folder / name, LARGE if name == "large" else name.encode())
    (folder / "n").write_bytes(b"again")
    os.remove(folder / "gone")
    os.rename(folder / "old", folder / "new")
    assert in_git(archive) == {}
    assert run(UMOUNT, mounted.point).returncode == 0
    assert in_git(archive) == {"n": b"again", "large": LARGE, "new": b"old"}
    assert "3 additions settled" in (archive.root / "log/mount.log").read_text()
    assert list(archive.journal.iterdir()) == []


def test_a_kill_settles_all(archive: Archive, mount: Mounter) -> None:
    """S-settle-6, S-durable-1: the next mount has what was confirmed, and it is final."""
    settle(archive, 3600)
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/a.html"
    for name in ("n", "large", "gone", "old", "empty"):
        write(folder / name, {"large": LARGE, "empty": b""}.get(name, name.encode()))
    (folder / "n").write_bytes(b"again")
    os.remove(folder / "gone")
    os.rename(folder / "old", folder / "new")
    os.kill(mounted.pid, signal.SIGKILL)
    mounted.clear()
    expected = {"n": b"again", "large": LARGE, "new": b"old", "empty": b""}
    folder = mount(archive) / f"{DOMAIN}/a.html"
    assert {path.name: path.read_bytes() for path in added(folder)} == expected == in_git(archive)
    for name in expected:
        assert error_of(lambda name=name: os.remove(folder / name)) == errno.EPERM


#: Holds a file open with something confirmed in it, and writes more when it is told to. It is a process of its own: a
#: child of ours that closes the file would wait for the lock that we hold.
WRITER = """
import os, sys
with open(sys.argv[1], "xb", buffering=0) as log:
    log.write(b"1")
    os.fsync(log.fileno())
    print("synced", flush=True)
    sys.stdin.readline()
    log.write(b"2")
"""


def test_what_a_crawl_replaces_is_in_the_snapshot_before(archive: Archive, mount: Mounter) -> None:
    """S-settle-6, S-stale-1: also what is open; in an ARC that the crawl left alone the minute goes on."""
    settle(archive, 3600)
    first = archives.publish(archive, pages={"a.html": b"page", "b.html": b"page"})
    mounted = mount(archive)
    folder, other = (mounted / f"{DOMAIN}/{name}" for name in ("a.html", "b.html"))
    write(folder / "n", b"1")
    write(other / "n", b"1")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, folder / "log"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as writer:
        assert writer.stdin is not None and writer.stdout is not None
        assert writer.stdout.readline() == b"synced\n"
        with Turnstile(archive.lock(DOMAIN)).exclusive():
            store = archives.store_of(archive)
            head = store.head()
            assert head is not None
            changes = archives.arc(store, archives.metadata(DOMAIN, "a.html", _later(first)), "a.html", b"new")
            fold_in(archive, store, DOMAIN, following=store.edit(head.tree, changes))
        assert in_git(archive) == {"n": b"1", "log": b"1"} and in_git(archive, "b.html") == {}
        tag = archives.publish(archive, pages={"a.html": b"new"})
        eventually(lambda: str(tag) in (mounted / ".changes").read_text(), PATIENCE)
        writer.communicate(b"\n", timeout=PATIENCE)
        assert writer.returncode == 1  # ESTALE
    assert names(folder) == []
    (other / "n").write_bytes(b"2")
    assert run(UMOUNT, mounted.point).returncode == 0
    assert in_git(archive, "b.html") == {"n": b"2"}
    assert list(archive.journal.iterdir()) == []
    assert commit_additions(archive, DOMAIN).commits == ()


def _later(tag: archives.CommitTag) -> archives.CommitTag:
    return archives.CommitTag(tag.crawl_time.replace(second=59), tag.domain)


def test_without_the_setting_a_closed_file_is_final(archive: Archive, mount: Mounter) -> None:
    """S-settle-1, S-change-1, S-rename-1: as it was before there was one."""
    settle(archive, 0)
    archives.publish(archive, pages={"a.html": b"page"})
    folder = mount(archive) / f"{DOMAIN}/a.html"
    write(folder / "n", b"1")
    write(folder / "m", b"1")
    os.mkdir(folder / "d")
    assert error_of(lambda: os.remove(folder / "n")) == errno.EPERM
    assert error_of(lambda: os.rename(folder / "m", folder / "n")) == errno.EPERM
    assert error_of(lambda: os.rmdir(folder / "d")) == errno.EPERM
    assert os.listxattr(folder / "n") == []
    os.rename(folder / "n", folder / "renamed")
    eventually(lambda: in_git(archive) == {"m": b"1", "renamed": b"1"}, PATIENCE)


def test_one_writes_while_others_read_and_it_settles(archive: Archive, mount: Mounter) -> None:
    """S-settle-1, S-settle-5: whatever a name means at a moment, its bytes are those of one state, whole."""
    settle(archive, 0.2)
    archives.publish(archive, pages={"a.html": b"page"})
    folder = mount(archive) / f"{DOMAIN}/a.html"
    over, faults = threading.Event(), list[str]()

    def read(name: str) -> None:
        while not over.is_set():
            try:
                body = (folder / name).read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                faults.append(f"{name}: {error}")
                return
            if len(set(body)) > 1:
                faults.append(f"{name}: {body[:20]!r} of {len(body)} bytes")

    readers = [threading.Thread(target=read, args=(f"n{number}",)) for number in range(3)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(40):
            for number in range(3):
                with contextlib.suppress(PermissionError):  # it has settled
                    write(folder / "tmp", b"%d" % (turn % 10) * 3_000)
                    os.replace(folder / "tmp", folder / f"n{number}")
                with contextlib.suppress(FileNotFoundError):
                    os.remove(folder / "tmp")
    finally:
        over.set()
        for reader in readers:
            reader.join(PATIENCE)
    assert faults == []
    eventually(lambda: sorted(in_git(archive)) == ["n0", "n1", "n2"], PATIENCE)
    assert {path.name: path.read_bytes() for path in added(folder)} == in_git(archive)


def test_backup_and_export_let_all_settle_first(archive: Archive, mount: Mounter, tmp_path: Path) -> None:
    """S-settle-7: what is open, or empty, does not."""
    settle(archive, 3600)
    archives.publish(archive, pages={"a.html": b"page"})
    folder = mount(archive) / f"{DOMAIN}/a.html"
    write(folder / "empty", b"")
    with open(folder / "log", "xb") as log:
        log.write(b"open")
        log.flush()
        os.fsync(log.fileno())
        write(folder / "n", b"noted")
        out = tmp_path / "out.warc"
        exported = run(SCRIPTS / "webarc", "export", "--archive", archive.root, out)
        assert (exported.returncode, exported.stderr.splitlines()[0]) == (0, "webarc: 1 additions settled first")
        assert b"noted" in out.read_bytes() and in_git(archive) == {"n": b"noted"}
        assert error_of(lambda: os.remove(folder / "n")) == errno.EPERM
        write(folder / "m", b"1")
        verified = run(SCRIPTS / "webarc-agent", "verify", "--quick", "--archive", archive.root)
        assert "wait in the journal" not in verified.stdout
        saved = run(SCRIPTS / "webarc-agent", "backup", "--archive", archive.root, tmp_path / "backup")
        assert saved.returncode == 0 and saved.stdout.startswith("1 additions settled first\n"), saved
        assert error_of(lambda: os.remove(folder / "m")) == errno.EPERM
        again = run(SCRIPTS / "webarc-agent", "backup", "--archive", archive.root, tmp_path / "backup")
        assert again.returncode == 0 and "settled" not in again.stdout
    (folder / "empty").write_bytes(b"filled")
    assert not archive.settle_requests.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_full_disk_at_each_step(archive: Archive, mount: Mounter) -> None:
    """S-full-1, S-settle-6: what was confirmed stays as it was, is shown, and settles when there is room."""
    settle(archive, 5)
    archives.publish(archive, pages={"a.html": b"page"})
    with small_disk(archive.root.parent / "disk", "16m") as disk:
        moved = Archive(disk / "archive")
        shutil.copytree(archive.root, moved.root)
        mounted = mount(moved)
        folder = mounted / f"{DOMAIN}/a.html"
        for name in ("kept", "cut", "gone", "old"):
            write(folder / name, name.encode())
        filler = fill(disk)
        confirmed = {"kept": b"kept", "cut": b"cut", "old": b"old", "gone": b"gone"}
        assert error_of(lambda: write(folder / "new", os.urandom(1 << 20))) == errno.ENOSPC
        assert error_of(lambda: (folder / "kept").write_bytes(os.urandom(1 << 20))) == errno.ENOSPC
        assert not (folder / "new").exists() and (folder / "kept").read_bytes() == b"kept"
        for act in (
            lambda: os.truncate(folder / "cut", 0),
            lambda: os.remove(folder / "gone"),
            lambda: os.rename(folder / "old", folder / "moved"),
        ):
            assert error_of(act) in (None, errno.ENOSPC)
        time.sleep(6)  # their time is over, and the disk takes nothing
        shown = {path.name: path.read_bytes() for path in added(folder)}
        assert shown["kept"] == b"kept" and (shown.get("old") or shown.get("moved")) == b"old"
        assert {**confirmed, "moved": b"old", "cut": b""}.items() | {("cut", b"cut")} >= shown.items()
        filler.unlink()
        assert run(UMOUNT, mounted.point).returncode == 0
        assert in_git(moved) == shown
        assert list(moved.journal.iterdir()) == []


# -- tools -------------------------------------------------------------------------------------------------------------

TOOLS = {
    "a second try": ("nosuchcmd > out; printf right > out", {"out": b"right"}),
    "half a file": (
        "python3 -c \"import sys; sys.stdout.write('{'); raise SystemExit(1)\" > out; printf '{}' > out",
        {"out": b"{}"},
    ),
    "append": ("touch n; printf x >> n; printf y >> n", {"n": b"xy"}),
    "mktemp": (
        'for i in 1 2; do t=$(mktemp -p .); printf $i > "$t"; chmod 644 "$t"; mv "$t" n; done',
        {"n": b"2"},
    ),
    "rm -r": ("mkdir -p d/e; touch d/e/n d/m; rm -r d", {}),
    "dd": ("printf abcdef > n; printf X | dd of=n bs=1 seek=2 conv=notrunc 2>/dev/null", {"n": b"abXdef"}),
    "cp": ("printf 1 > n; printf 2 > m; cp n m; cp -p m o; cp --remove-destination n o", dict.fromkeys("mno", b"1")),
    "install": ("printf 1 > n; install -m 644 n m; install -m 644 n m", {"n": b"1", "m": b"1"}),
    "tee": ("printf 1 | tee n > m; printf 2 | tee -a n > m", {"n": b"12", "m": b"2"}),
    "sort": ("printf 'b\\na\\n' > n; sort -o n n", {"n": b"a\nb\n"}),
    "tar twice": (
        "printf 1 > n; mkdir d; tar cf t.tar n; tar xf t.tar -C d; tar xf t.tar -C d; rm -r d t.tar",
        {"n": b"1"},
    ),
    "patch": (
        "printf 'a\\n' > n; printf -- '--- n\\n+++ n\\n@@ -1 +1 @@\\n-a\\n+b\\n' | patch -s n",
        {"n": b"b\n"},
    ),
    "gzip": ("printf 1 > n; gzip n; gunzip n.gz", {"n": b"1"}),
    "ed": ("printf 'a\\n' > n; printf 's/a/b/\\nw\\nq\\n' | ed -s n", {"n": b"b\n"}),
    "vim": ("printf 'a\\n' > n; vim.tiny -u NONE -es -c 's/a/b/' -c wq n", {"n": b"b\n"}),
    "vim with a backup": (
        "printf 'a\\n' > n; vim.tiny -u NONE -es -c 'set backupcopy=no' -c 's/a/b/' -c wq n",
        {"n": b"b\n"},
    ),
    "emacs": (
        "printf 'a\\n' > n; emacs -Q --batch n --eval '(dotimes (i 2) (insert \"b\") (save-buffer))'",
        {"n": b"bba\n"},  # below the folder of temporary files it makes no backup
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_tools(arc: Path, tool: str) -> None:
    """S-tools-4"""
    script, expected = TOOLS[tool]
    done = subprocess.run(["bash", "-c", script], cwd=arc, capture_output=True, text=True, timeout=240, check=False)
    assert {path.name: path.read_bytes() for path in added(arc)} == expected, done
    assert done.returncode == 0, done


def test_archivers(arc: Path) -> None:
    """S-tools-4: zip makes temporary files, and renames them onto the archive."""
    script = "printf 1 > n; zip -q a.zip n; printf 2 > m; zip -q a.zip m; unzip -q -o a.zip -d out; rm n m"
    script += "; zip -q -d a.zip n"
    done = subprocess.run(["sh", "-c", script], cwd=arc, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done
    assert names(arc) == ["a.zip", "out"]
    shown = subprocess.run(["unzip", "-l", "a.zip"], cwd=arc, capture_output=True, text=True, timeout=240, check=True)
    assert " m\n" in shown.stdout and " n\n" not in shown.stdout


def test_an_office_exports_a_document_twice(arc: Path, tmp_path: Path) -> None:
    """S-tools-4, S-settle-8: LibreOffice makes `lu….tmp` and a lock beside it, and writes over what it exported."""
    source = tmp_path / "page.txt"
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    for text, kind in (("one", "pdf"), ("two words", "pdf"), ("three", "odt"), ("four", "odt")):
        source.write_text(text, "utf-8")
        done = run("soffice", profile, "--headless", "--convert-to", kind, "--outdir", arc, source)
        assert done.returncode == 0 and f"page.{kind}" in names(arc), done
    assert names(arc) == ["page.odt", "page.pdf"]
    with PdfDocument((arc / "page.pdf").read_bytes()) as document:
        assert document[0].get_textpage().get_text_range().strip() == "two words"
    with ZipFile(arc / "page.odt") as package:
        assert b"four" in package.read("content.xml")


@pytest.mark.parametrize("end", ["time", "unmount", "kill", "crawl"])
def test_a_lock_never_settles(archive: Archive, mount: Mounter, end: str) -> None:
    """S-settle-8: after its time, with the mount, where it was killed, and with a crawl that replaces the ARC."""
    lock, store = ".~lock.x.odt#", archives.store_of(archive)
    settle(archive, 0.5 if end == "time" else 3600)
    tag = archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/a.html"
    for name in (lock, "n"):
        write(folder / name, b"1")
    assert error_of(lambda: os.rename(folder / "n", folder / ".~lock.y#")) == errno.EPERM
    if end == "time":
        eventually(lambda: names(folder) == ["n"], PATIENCE)
    elif end == "kill":
        os.kill(mounted.pid, signal.SIGKILL)
        mounted.clear()
        mounted = mount(archive)
    elif end == "crawl":
        head = store.head()
        assert head is not None
        changes = archives.arc(store, archives.metadata(DOMAIN, "a.html", _later(tag)), "a.html", b"new")
        with Turnstile(archive.lock(DOMAIN)).exclusive():
            fold_in(archive, store, DOMAIN, following=store.edit(head.tree, changes))
        assert in_git(archive) == {"n": b"1"}
    assert run(UMOUNT, mounted.point).returncode == 0
    assert in_git(archive) == {"n": b"1"}
    assert list(archive.journal.iterdir()) == []


PROGRAM = """
import os, pathlib, shutil, tempfile
with tempfile.NamedTemporaryFile(dir=".") as file:
    file.write(b"1")
with tempfile.NamedTemporaryFile(dir=".", delete=False) as file:
    file.write(b"kept")
os.chmod(file.name, 0o644)
os.replace(file.name, "kept")
for text in ("1", "2"):
    with open("save.tmp", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace("save.tmp", "save")
pathlib.Path("text").write_text("one")
pathlib.Path("text").write_text("two")
shutil.copy("text", "copy")
shutil.move("copy", "moved")
os.makedirs("tree/deep")
pathlib.Path("tree/deep/n").touch()
shutil.rmtree("tree")
"""


def test_python(arc: Path) -> None:
    """S-tools-4"""
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=arc, check=True, timeout=240)
    expected = {"kept": b"kept", "save": b"2", "text": b"two", "moved": b"two"}
    assert {path.name: path.read_bytes() for path in added(arc)} == expected


@pytest.mark.parametrize("seconds", [3600, 3])
def test_rsync_of_the_same_files_a_second_time(
    archive: Archive, mount: Mounter, tmp_path: Path, seconds: float
) -> None:
    """S-tools-4, S-rename-1: within the minute, and when they are final; no copy is left. Other bytes are refused.

    The folder's times are the archive's (-O).
    """
    settle(archive, seconds)
    archives.publish(archive, pages={"a.html": b"page"})
    folder = mount(archive) / f"{DOMAIN}/a.html"
    (tmp_path / "results").mkdir()
    bodies = {"r1.json": b"{}", "r2.json": LARGE, "r3.json": b""}
    for name, body in bodies.items():
        (tmp_path / "results" / name).write_bytes(body)
    for turn in range(3):
        done = run("rsync", "-aO", f"{tmp_path}/results/", f"{folder}/")
        assert done.stderr == ""
        assert {path.name: path.read_bytes() for path in added(folder)} == bodies
        done = run("rsync", "-a", *(tmp_path / "results").iterdir(), folder)
        assert done.stderr == ""
        assert {path.name: path.read_bytes() for path in added(folder)} == bodies
        if seconds == 3 and turn == 0:
            eventually(lambda: in_git(archive).keys() == {"r1.json", "r2.json"}, PATIENCE)
    (tmp_path / "results/r1.json").write_bytes(b"other")
    done = run("rsync", "-aO", f"{tmp_path}/results/", f"{folder}/")
    assert done.returncode == (23 if seconds == 3 else 0), done
    assert (folder / "r1.json").read_bytes() == (b"{}" if seconds == 3 else b"other")
    assert names(folder) == sorted(bodies)
