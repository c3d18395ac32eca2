"""What close confirmed is there afterwards, whatever ends the mount (SEMANTICS.md, "Durability"; issue 3)."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.mount.test_writing import error_of, write
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.disks import small_disk
from tests.support.mounts import SCRIPTS, UMOUNT, UNMOUNT, Mounted, run
from tests.support.waiting import eventually
from webarcfs.archive.additions import commit_additions
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import sync_folder
from webarcfs.mount.process import mountpoint

pytestmark = pytest.mark.mount

#: Kills, each a little later; tests/crash has them at random moments.
ROUNDS = 2


@pytest.fixture
def arcs(archive: Archive) -> list[str]:
    """An archive of a few ARCs."""
    pages = [f"p{number}.html" for number in range(4)]
    archives.publish(archive, pages=dict.fromkeys(pages, b"page"))
    return pages


def in_git(archive: Archive, path: str) -> bytes | None:
    store = archives.store_of(archive)
    head = store.head()
    entry = store.find(head.tree, path) if head else None
    return store.read(entry.oid) if entry else None


def kill(mounted: Mounted) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may be dead, and its parent have seen that
        os.kill(mounted.pid, signal.SIGKILL)
    assert mounted.ended(60)
    mounted.clear()


def test_killed_after_closes(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-durable-1"""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    for turn in range(ROUNDS):
        mounted = mount(archive)
        manifest: list[str] = []
        nodes: list[str] = []
        ends: list[OSError] = []

        def work(  # noqa: PLR0917
            number: int,
            mounted: Mounted = mounted,
            turn: int = turn,
            manifest: list[str] = manifest,
            nodes: list[str] = nodes,
            ends: list[OSError] = ends,
        ) -> None:
            try:
                for step in range(10_000):
                    path = f"{arcs[step % len(arcs)]}/f{turn}-{number}-{step}"
                    write(mounted / f"{DOMAIN}/{path}", path.encode() * 100)
                    manifest.append(path)
                    if step % 3 == 0:
                        with (mounted / f"{DOMAIN}/{arcs[0]}/data.xml").open("ab", buffering=0) as file:
                            file.write(f"<n{turn}-{number}-{step}/>".encode())
                        nodes.append(f"n{turn}-{number}-{step}")
            except OSError as error:
                ends.append(error)  # it is dead

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        while len(manifest) < 10 + 7 * turn:
            assert not ends, f"{ends}\n{(archive.log / 'mount.log').read_text('utf-8')[-4000:]}"
            threads[0].join(0.01)
        os.kill(mounted.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(60)
        confirmed, added = list(manifest), list(nodes)
        kill(mounted)
        again = mount(archive)
        for path in confirmed:
            assert (again / f"{DOMAIN}/{path}").read_bytes() == path.encode() * 100
            assert in_git(archive, path) == path.encode() * 100
        found = names((again / f"{DOMAIN}/{arcs[0]}/data.xml").read_bytes())
        assert set(added) <= set(found)
        assert len(found) == len(set(found))
        again.clear()
    assert archives.store_of(archive).check() == []


#: How a file is opened, and the flags of each write, so that write(2) answers when the bytes are durable.
SYNCHRONOUS = {
    "O_SYNC": (os.O_SYNC, 0),
    "O_DSYNC": (os.O_DSYNC, 0),
    "RWF_SYNC": (0, os.RWF_SYNC),
    "RWF_DSYNC": (0, os.RWF_DSYNC),
}


def test_a_synchronous_write_is_durable_when_it_answers(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-durable-3: kill -9 while all handles are open, each by itself, so that no close or fsync of another helps."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    large, descriptors = os.urandom(300_000), []
    mounted = mount(archive)
    try:
        for name, (opening, writing) in SYNCHRONOUS.items():
            fd = os.open(mounted / f"{DOMAIN}/{arcs[0]}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | opening, 0o600)
            descriptors.append(fd)
            assert os.pwritev(fd, [b"one"], 0, writing) == 3
            assert os.pwritev(fd, [b"two"], 3, writing) == 3
            fd = os.open(mounted / f"{DOMAIN}/{arcs[0]}/{name}-large", os.O_RDWR | os.O_CREAT | opening, 0o600)
            descriptors.append(fd)
            assert os.pwritev(fd, [large], 0, writing) == len(large)
            fd = os.open(mounted / f"{DOMAIN}/{arcs[0]}/data.xml", os.O_WRONLY | os.O_APPEND | opening)
            descriptors.append(fd)
            node = f"<{name}/>".encode()
            assert os.pwritev(fd, [node], -1 if writing else 0, writing) == len(node)
        os.kill(mounted.pid, signal.SIGKILL)
        assert mounted.ended(60)
    finally:
        for fd in descriptors:
            with contextlib.suppress(OSError):
                os.close(fd)
    kill(mounted)
    again = mount(archive)
    for name in SYNCHRONOUS:
        assert (again / f"{DOMAIN}/{arcs[0]}/{name}").read_bytes() == b"onetwo", name
        assert (again / f"{DOMAIN}/{arcs[0]}/{name}-large").read_bytes() == large, name
    assert names((again / f"{DOMAIN}/{arcs[0]}/data.xml").read_bytes()) == tuple(SYNCHRONOUS)


@pytest.mark.parametrize("how", ["umount", "umount.webarcfs", "SIGTERM", "detached"])
def test_ends_lose_nothing(archive: Archive, arcs: list[str], mount: Mounter, how: str) -> None:
    """S-drain-1"""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/{arcs[0]}"
    for number in range(10):
        write(folder / f"f{number}", b"%d" % number)
    with (folder / "data.xml").open("ab") as file:
        file.write(b"<node/>")
    writer = None
    if how == "detached":
        # A writer that is still at it when the mount is told to end.
        script = "import sys,time; f=open(sys.argv[1],'xb',0); f.write(b'open'); print(flush=True); time.sleep(600)"
        writer = subprocess.Popen([sys.executable, "-c", script, folder / "open"], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
    try:
        match how:
            case "umount":
                assert run(*UNMOUNT, mounted.point).returncode == 0
            case "umount.webarcfs":
                assert run(UMOUNT, mounted.point).returncode == 0
            case _:
                os.kill(mounted.pid, signal.SIGTERM)
        assert mounted.ended(60)
    finally:
        if writer is not None:
            writer.kill()
            writer.wait()
            writer.stdout.close()  # type: ignore[union-attr]
    assert [in_git(archive, f"{arcs[0]}/f{number}") for number in range(10)] == [b"%d" % number for number in range(10)]
    assert names(in_git(archive, f"{arcs[0]}/data.xml") or b"") == ("node",)
    if how == "detached":
        assert in_git(archive, f"{arcs[0]}/open") == b"open"
    assert [path for path in archive.journal.iterdir() if path.suffix == ".log"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_no_room_in_the_journal(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-full-1"""
    journal = Path(archive.journal)
    done = run("mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs", journal)
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        mounted = mount(archive)
        folder = mounted / f"{DOMAIN}/{arcs[0]}"
        assert error_of(lambda: write_large(folder / "large", 8 << 20)) == errno.ENOSPC
        assert not (folder / "large").exists()
        # There is room again as soon as the kernel has said that the large one's last handle is gone.
        eventually(lambda: error_of(lambda: write(folder / "small", b"fits")) is None, 60)
        assert (folder / "small").read_bytes() == b"fits"
        mounted.clear()
        commit_additions.replay(archive)
    finally:
        run("umount", "-l", journal)
    assert in_git(archive, f"{arcs[0]}/small") == b"fits"
    assert in_git(archive, f"{arcs[0]}/large") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_disk_that_was_full_at_the_start(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-full-1: it is ENOSPC, and not a mount that takes nothing; and additions are taken as soon as there is room."""
    with small_disk(archive.root.parent / "disk", "16m") as disk:
        moved = Archive(disk / "archive")
        shutil.copytree(archive.root, moved.root)
        filler = fill(disk)
        mounted = mount(moved)
        folder = mounted / f"{DOMAIN}/{arcs[0]}"
        assert error_of(lambda: write(folder / "new", b"1")) == errno.ENOSPC
        assert error_of((folder / "folder").mkdir) == errno.ENOSPC
        filler.unlink()
        eventually(lambda: error_of(lambda: write(folder / "new", b"1")) is None, 60)
        with (folder / "data.xml").open("ab") as document:
            document.write(b"<note/>")
        mounted.clear()
        commit_additions.replay(moved)
        assert in_git(moved, f"{arcs[0]}/new") == b"1"
        assert names(in_git(moved, f"{arcs[0]}/data.xml") or b"") == ("note",)


def fill(disk: Path) -> Path:
    """Fill a disk to the last block, also with what a mount lets go after its last answer."""
    filler = disk / "filler"
    for _ in range(20):
        with contextlib.suppress(OSError), filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
        time.sleep(0.1)
    return filler


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_what_cannot_be_committed_is_shown_from_the_journal(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-durable-4, S-umount-3: a mount on a full disk, the next ones, and one on which there is room again."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    with small_disk(archive.root.parent / "disk", "16m") as disk:
        moved = Archive(disk / "archive")
        shutil.copytree(archive.root, moved.root)
        mounted = mount(moved)
        assert mounted.notes == ""
        files = {f"f{number}": b"%d" % number for number in range(5)}
        files |= {"large": os.urandom(300_000), "new": b"moved", "folder/inner": b"deep"}
        (mounted / f"{DOMAIN}/{arcs[0]}/folder").mkdir()
        for name, body in files.items():
            write(mounted / f"{DOMAIN}/{arcs[0]}" / (name if name != "new" else "old"), body)
        (mounted / f"{DOMAIN}/{arcs[0]}/old").rename(mounted / f"{DOMAIN}/{arcs[0]}/new")
        with (mounted / f"{DOMAIN}/{arcs[0]}/data.xml").open("ab") as file:
            file.write(b"<node/>")
        filler, waits = fill(disk), f"{DOMAIN}: {len(files) + 2} additions wait in the journal"
        assert waits in run(UMOUNT, mounted.point).stderr
        mode: tuple[str, ...]
        for mode in ((), ("-o", "ro")):
            mounted = mount(moved, *mode)
            assert waits in mounted.notes
            folder = mounted / f"{DOMAIN}/{arcs[0]}"
            check_shown(folder, files)
            assert error_of(lambda: write(folder / "more", b"1")) == (errno.EROFS if mode else errno.ENOSPC)  # noqa: B023 # called at once
            done = run(UMOUNT, mounted.point)
            assert done.returncode == 0 and (waits in done.stderr) is (mode == ())
        mounted = mount(moved)
        folder = mounted / f"{DOMAIN}/{arcs[0]}"
        verified = run(SCRIPTS / "webarc-agent", "verify", "--quick", "--archive", moved.root)
        assert waits in verified.stdout
        reading = mount(moved, "-o", "ro")
        filler.unlink()
        eventually(lambda: in_git(moved, f"{arcs[0]}/large") == files["large"], 60)
        for each in (mounted, reading):
            check_shown(each / f"{DOMAIN}/{arcs[0]}", files)
        eventually(lambda: error_of(lambda: write(folder / "more", b"1")) is None, 60)
        (folder / "empty").mkdir()
        for each in (mounted, reading):
            done = run(UMOUNT, each.point)
            assert (done.returncode, done.stderr) == (0, "")
        assert in_git(moved, f"{arcs[0]}/more") == b"1"
        assert [path.name for path in moved.journal.iterdir()] == []


def check_shown(folder: Path, files: dict[str, bytes]) -> None:
    """Look for the files, in listings and by name, for the file that was renamed, and for the data node."""
    listed = {path.name for path in folder.iterdir()} - {"data.html", "data.xml", "headers.http"}
    assert listed == {name.partition("/")[0] for name in files}
    for name, body in files.items():
        assert (folder / name).read_bytes() == body
        assert (folder / name).stat().st_size == len(body)
    assert names((folder / "data.xml").read_bytes()) == ("node",)


def test_an_archive_that_was_put_back_under_a_mount(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-durable-1: nothing is confirmed into a journal that is not there any more."""
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/{arcs[0]}"
    write(folder / "before", b"1")
    sync_folder(folder)
    copy = archive.root.with_name("copy")
    shutil.copytree(archive.root, copy)
    shutil.rmtree(archive.root)
    copy.rename(archive.root)
    confirmed = [name for name in ("one", "two", "three") if error_of(lambda: write(folder / name, b"2")) is None]  # noqa: B023 # called at once
    assert len(confirmed) >= 2, "only what was under way is refused"
    assert error_of(lambda: sync_folder(folder)) is None
    for name in ("before", *confirmed):
        assert in_git(archive, f"{arcs[0]}/{name}") is not None
    assert run(UMOUNT, mounted.point).returncode == 0


def put_back(archive: Archive, copy: Path) -> None:
    """Replace the archive by a copy of it."""
    shutil.rmtree(archive.root)
    copy.rename(archive.root)


def empty(archive: Archive) -> None:
    """Remove all that is in the journal."""
    for path in archive.journal.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("how", ["emptied", "removed", "body removed", "older copy", "copy with the journal"])
def test_what_others_took_from_the_journal_is_written_again(
    archive: Archive, arcs: list[str], mount: Mounter, how: str
) -> None:
    """S-durable-2, S-fsyncdir-1: fsync of a folder is 0 only with all that was confirmed in git."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    mounted = mount(archive)
    folder, copy = mounted / f"{DOMAIN}/{arcs[0]}", archive.root.with_name("copy")
    if how == "older copy":
        shutil.copytree(archive.root, copy)
    files = {f"f{number}": b"%d" % number for number in range(5)} | {"large": os.urandom(300_000), "new": b"moved"}
    for name, body in files.items():
        write(folder / (name if name != "new" else "old"), body)
    (folder / "old").rename(folder / "new")
    with (folder / "log").open("xb", buffering=0) as file:  # several versions of one file
        for _ in range(3):
            file.write(b"line\n")
            os.fsync(file.fileno())
    with (folder / "data.xml").open("ab") as file:
        file.write(b"<node/>")
    match how:
        case "emptied":
            empty(archive)
        case "removed":
            shutil.rmtree(archive.journal)
        case "body removed":
            [body_file] = archive.journal.glob("*/b*")
            body_file.unlink()
        case "older copy":
            put_back(archive, copy)
        case _:
            shutil.copytree(archive.root, copy)
            put_back(archive, copy)
    assert error_of(lambda: sync_folder(folder)) is None
    for name, body in (files | {"log": b"line\n" * 3}).items():
        assert in_git(archive, f"{arcs[0]}/{name}") == body, name
        assert (folder / name).read_bytes() == body
    assert in_git(archive, f"{arcs[0]}/old") is None
    assert names(in_git(archive, f"{arcs[0]}/data.xml") or b"") == ("node",)
    write(folder / "later", b"later")
    done = run(UMOUNT, mounted.point)
    assert (done.returncode, done.stderr) == (0, "")
    assert in_git(archive, f"{arcs[0]}/later") == b"later"
    commit_additions.replay(archive)  # a copy of the journal is a dead one
    assert [path.name for path in archive.journal.iterdir()] == []
    assert archives.store_of(archive).check() == []


def test_what_cannot_be_written_again_is_lost_and_said_so(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-durable-2, S-fsyncdir-1, S-umount-3: others wrote over the bytes, which are nowhere else."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    mounted = mount(archive)
    folder, other = mounted / f"{DOMAIN}/{arcs[0]}", mounted / f"{DOMAIN}/{arcs[1]}"
    write(folder / "first", b"first")
    write(folder / "lost", b"body that is looked for")
    write(other / "third", b"third")
    [log] = archive.journal.glob("*.log")
    data = log.read_bytes()
    with log.open("r+b") as file:
        file.seek(data.index(b"body that is looked for"))
        file.write(b"x" * 10)
    assert error_of(lambda: sync_folder(other)) == errno.EIO
    assert error_of(lambda: sync_folder(folder)) is None, "it is told once"
    assert in_git(archive, f"{arcs[0]}/first") == b"first"
    assert in_git(archive, f"{arcs[1]}/third") == b"third"
    eventually(lambda: not (folder / "lost").exists(), 60)
    write(folder / "lost", b"written again")
    sync_folder(folder)
    assert in_git(archive, f"{arcs[0]}/lost") == b"written again"
    done = run(UMOUNT, mounted.point)
    line = f"/{DOMAIN}/{arcs[0]}/lost is lost: it is in neither git nor the journal"
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1 and line in done.stderr
    assert line in (archive.log / "mount.log").read_text("utf-8")


def test_who_unmounts_is_told_what_is_not_in_git(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-umount-3: additions that wait in the journal, and those of a journal that is gone."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    repository = archive.repository(DOMAIN)
    for gone in (False, True):
        mounted = mount(archive)
        for number in range(3):
            write(mounted / f"{DOMAIN}/{arcs[0]}/{gone}{number}", b"1")
        repository.rename(archive.root / "elsewhere")
        if gone:
            empty(archive)
        done = run(UMOUNT, mounted.point)
        (archive.root / "elsewhere").rename(repository)
        assert done.returncode == 0
        lines = done.stderr.splitlines()
        if gone:
            assert [f"/{DOMAIN}/{arcs[0]}/True{number} is lost" in lines[number] for number in range(3)] == [True] * 3
        else:
            assert len(lines) == 1 and f"{DOMAIN}: 3 additions wait in the journal" in lines[0]
        log = (archive.log / "mount.log").read_text("utf-8")
        assert all(line.removeprefix("umount.webarcfs: ") in log for line in lines)
    commit_additions.replay(archive)
    assert in_git(archive, f"{arcs[0]}/False2") == b"1"


def test_who_unmounts_is_told_of_a_process_that_died(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-umount-3: it is killed while it commits the rest."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    mounted = mount(archive)
    write(mounted / f"{DOMAIN}/{arcs[0]}/new", b"1")
    with locks.exclusive(archive.committing_lock(DOMAIN)):
        command = subprocess.Popen([UMOUNT, mounted.point], stderr=subprocess.PIPE, text=True)
        eventually(lambda: mountpoint.mounted(mounted.point) is None, 60)
        os.kill(mounted.pid, signal.SIGKILL)
        _, said = command.communicate(timeout=240)
    assert command.returncode == 0 and "process died" in said
    commit_additions.replay(archive)
    assert in_git(archive, f"{arcs[0]}/new") == b"1"


def test_who_unmounts_is_told_what_it_waits_for(archive: Archive, arcs: list[str], mount: Mounter) -> None:
    """S-umount-1: it waits while the process commits, and says so."""
    archives.final_at_once(archive, "commit_interval = 3600.0\n")
    mounted = mount(archive)
    write(mounted / f"{DOMAIN}/{arcs[0]}/new", b"1")
    with locks.exclusive(archive.committing_lock(DOMAIN)):
        command = subprocess.Popen([UMOUNT, mounted.point], stderr=subprocess.PIPE, text=True)
        assert command.stderr is not None and "its process commits what was written" in command.stderr.readline()
    assert command.communicate(timeout=240)[1] == "" and command.returncode == 0
    assert in_git(archive, f"{arcs[0]}/new") == b"1"


def write_large(path: Path, size: int) -> None:
    with path.open("xb", buffering=0) as file:
        for _ in range(size >> 16):
            file.write(os.urandom(1 << 16))
