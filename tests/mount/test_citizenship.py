"""What an administrator expects: groups, logs, mounts that were killed or hang, autofs (SEMANTICS.md section 6)."""

# The tests speak in system calls.
# ruff: noqa: PTH115

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import DETACH, MOUNT, UMOUNT, Mounted, run
from tests.support.namespaces import apart
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.system import locks
from webarcfs.mount.process import mountpoint

pytestmark = pytest.mark.mount
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
PAGE = f"{DOMAIN}/index.html/data.html"


@pytest.fixture
def filled(archive: Archive) -> Archive:
    archives.publish(archive, pages={"index.html": b"page"})
    return archive


# -- ownership --------------------------------------------------------------------------------------------------------


@as_root
def test_folders_of_a_group(filled: Archive, mount: Mounter) -> None:
    """S-mount-7"""
    mounted = mount(filled, "-o", "group=daemon")
    for path, mode in ((".", 0o775), (f"{DOMAIN}/index.html", 0o775), (PAGE, 0o444)):
        found = (mounted / path).stat()
        assert (found.st_mode & 0o7777, found.st_gid) == (mode, 1), path
        assert found.st_uid == filled.root.stat().st_uid
    by_number = mount(filled, "-o", "group=54321")
    assert by_number.point.stat().st_gid == 54321


def test_programs_are_not_started(folder: Path, archive: Archive, mount: Mounter) -> None:
    """S-mount-4"""
    archives.publish(archive, pages={"index.html": b"page"})
    mounted = mount(archive, "-o", "noexec")
    assert os.statvfs(mounted.point).f_flag & os.ST_NOEXEC
    assert "unmount it" in run(MOUNT, archive.root, folder, "-o", "remount").stderr


# -- logs -------------------------------------------------------------------------------------------------------------


def test_log_in_a_file(filled: Archive, mount: Mounter, folder: Path) -> None:
    """S-log-1"""
    mounted = mount(filled, "-o", f"log={folder}/my.log")
    assert (mounted / PAGE).read_bytes() == b"page"
    assert "is mounted on" in (folder / "my.log").read_text()
    assert not (filled.log / "mount.log").exists()
    point = folder / "nothing"
    point.mkdir()
    done = run(MOUNT, filled.root, point, "-o", "log=/nowhere/at/all.log")
    assert done.returncode == 32 and "/nowhere/at/all.log cannot be written" in done.stderr
    found = mountpoint.mounted(point)
    run(*DETACH, point)
    assert found is None


SYSTEM_LOG = """
set -e
mkdir "$2/dev"; for each in fuse null urandom; do touch "$2/dev/$each"; mount --bind /dev/$each "$2/dev/$each"; done
ln -s "$2/log" "$2/dev/log"; mount --rbind "$2/dev" /dev
"$1" "$3" "$2/mnt" -o log=journal
umount -i "$2/mnt"
"""


@as_root
def test_log_in_the_systems_log(filled: Archive, folder: Path) -> None:
    """S-log-1"""
    (folder / "mnt").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(folder / "log"))
        system.settimeout(PATIENCE)
        done = run(*apart(SYSTEM_LOG, MOUNT, folder, filled.root))
        assert (done.returncode, done.stderr) == (0, "")
        said = b""
        while b"is mounted on" not in said:  # what else there is to say comes before it
            said = system.recv(4096)
        assert said.startswith(b"<30>mount.webarcfs[")  # facility daemon, priority info
    assert not (filled.log / "mount.log").exists()
    point = folder / "nothing"
    point.mkdir()
    if not Path("/dev/log").exists():
        done = run(MOUNT, filled.root, point, "-o", "log=journal")
        run(*DETACH, point)
        assert done.returncode == 32 and "-o log=FILE" in done.stderr


def test_a_slow_request_is_named_in_the_log(filled: Archive, mount: Mounter) -> None:
    """S-log-2: a close waits for the domain's lock, which a publication holds for long here."""
    mounted = mount(filled)
    log = filled.log / "mount.log"
    tries = count()

    def close_slowly() -> bool:
        new = f"{DOMAIN}/index.html/notes{next(tries)}"
        with (mounted / new).open("w") as file, ExitStack() as held:
            file.write("x")
            held.enter_context(locks.Turnstile(filled.lock(DOMAIN)).exclusive())
            ending = threading.Thread(target=file.close)
            ending.start()
            ending.join(0.5)  # it cannot end meanwhile
            held.close()
            ending.join(PATIENCE)
        return f"slow: flush /{new} took " in log.read_text()

    eventually(close_slowly, PATIENCE)  # another request may have been slow within the same second


def test_lines_for_the_journal(filled: Archive, folder: Path) -> None:
    """S-log-1: in front, with stderr led to the journal, lines have their priority (sd-daemon(3))."""
    point = folder / "mnt"
    point.mkdir()
    read, write = os.pipe()
    found = os.fstat(write)
    environment = {**os.environ, "JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
    with subprocess.Popen([MOUNT, filled.root, point, "-f", "--debug"], stderr=write, env=environment) as process:
        os.close(write)
        try:
            eventually((point / PAGE).exists, PATIENCE)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            run(*DETACH, point)
            process.kill()
    with os.fdopen(read) as log:
        assert any(line.startswith("<6>") and "is mounted on" in line for line in log)


# -- who stands beside the mount --------------------------------------------------------------------------------------


def test_it_stays_in_the_group_of_its_caller(filled: Archive, mount: Mounter) -> None:
    """S-mount-8: autofs knows its own helpers by their process group."""
    mounted = mount(filled)
    assert os.getpgid(mounted.pid) == os.getpgid(0)
    assert os.getsid(mounted.pid) == os.getsid(0)


def test_the_keeper_holds_nothing_and_goes_with_the_mount(filled: Archive, mount: Mounter) -> None:
    """S-crash-2"""
    for end in (signal.SIGTERM, signal.SIGKILL):
        mounted = mount(filled)
        (keeper,) = children(mounted.pid)
        assert Path(f"/proc/{keeper}/comm").read_text() == "webarc-keeper\n"
        open_files = {os.readlink(each) for each in Path(f"/proc/{keeper}/fd").iterdir()}
        assert all(name == "/dev/null" or name.startswith(("socket:", "/sys/fs/fuse/")) for name in open_files)
        assert os.readlink(f"/proc/{keeper}/cwd") == "/"
        os.kill(mounted.pid, end)
        assert mounted.ended(PATIENCE)
        eventually(partial(gone, keeper), PATIENCE)


@pytest.fixture
def fusectl() -> None:
    """The kernel's control of FUSE, which a system that booted has mounted. It stays: others may use it by then."""
    if not os.path.ismount(mountpoint.CONNECTIONS):
        done = run("mount", "-t", "fusectl", "none", mountpoint.CONNECTIONS)
        assert os.path.ismount(mountpoint.CONNECTIONS), done.stderr


class Stuck:
    """A mount that hangs, and a process that waits for it."""

    def __init__(self, archive: Archive, point: Path, connections: Path = mountpoint.CONNECTIONS) -> None:
        self.point = point
        command = [sys.executable, "-m", "tests.mount.stuck", str(connections), str(archive.root), str(point)]
        self.mount = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        eventually(lambda: mountpoint.mounted(point) == mountpoint.TYPE or self.mount.poll() is not None, PATIENCE)
        eventually((point / PAGE).exists, PATIENCE)
        self.reader = subprocess.Popen(["stat", str(point / "slow")], stdout=-1, stderr=-1)
        assert self.mount.stdout is not None
        assert self.mount.stdout.readline() == b"stuck\n"

    def clear(self) -> None:
        """Whatever happened: nothing of it is left."""
        run(UMOUNT, "-f", self.point)
        run(*DETACH, self.point)
        for process in (self.mount, self.reader):
            process.kill()
            process.communicate(timeout=PATIENCE)


@pytest.fixture
def stuck(filled: Archive, folder: Path, fusectl: None) -> Iterator[Stuck]:  # noqa: ARG001
    (folder / "mnt").mkdir()
    found = Stuck(filled, folder / "mnt")
    try:
        yield found
    finally:
        found.clear()


@as_root
def test_killed_while_it_waits_in_the_kernel(stuck: Stuck) -> None:
    """S-crash-2"""
    stuck.mount.kill()
    assert stuck.reader.wait(PATIENCE) == 1
    stuck.mount.wait(PATIENCE)


@as_root
def test_killed_while_it_waits_in_the_kernel_without_fusectl(filled: Archive, folder: Path) -> None:
    """S-crash-2: root's keeper needs none; what is mounted is stale then, as it is with fusectl."""
    (folder / "mnt").mkdir()
    stuck = Stuck(filled, folder / "mnt", connections=folder / "none")
    try:
        stuck.mount.kill()
        assert stuck.reader.wait(PATIENCE) == 1
        stuck.mount.wait(PATIENCE)
    finally:
        stuck.clear()


@as_root
def test_a_mount_that_hangs_is_ended_by_root_without_fusectl(
    filled: Archive, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-umount-2"""
    (folder / "mnt").mkdir()
    stuck = Stuck(filled, folder / "mnt", connections=folder / "none")
    try:
        monkeypatch.setattr(mountpoint, "CONNECTIONS", folder / "none")
        mountpoint.abort(stuck.point)
        assert stuck.reader.wait(PATIENCE) == 1
    finally:
        stuck.clear()


@as_root
def test_a_mount_that_hangs_is_ended_by_force(stuck: Stuck) -> None:
    """S-umount-2"""
    done = run(UMOUNT, "-f", stuck.point)
    assert (done.returncode, done.stderr) == (0, "")
    assert mountpoint.mounted(stuck.point) is None
    assert stuck.reader.wait(PATIENCE) == 1


@as_root
def test_force_needs_a_mount(filled: Archive, folder: Path, fusectl: None) -> None:  # noqa: ARG001
    """S-umount-2"""
    assert "nothing is mounted" in run(UMOUNT, "-f", folder).stderr
    mounted = Mounted(filled.root, folder / "mnt")
    try:
        os.kill(mounted.pid, signal.SIGKILL)
        assert mounted.ended(PATIENCE)
        done = run(UMOUNT, "-f", mounted.point)  # stale is as good as hanging
        assert (done.returncode, done.stderr) == (0, "")
        assert mountpoint.mounted(mounted.point) is None
    finally:
        mounted.clear()


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True
