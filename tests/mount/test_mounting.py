"""The commands: mounting, its options and failures, unmounting, signals, crashes (SEMANTICS.md section 6)."""

# The tests speak in system calls.
from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import webarcfs
from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import DETACH, MOUNT, UMOUNT, Mounted, run
from tests.support.namespaces import apart
from tests.support.users import Other
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.mount.adapters.binding import BINDINGS
from webarcfs.mount.process import mountpoint

pytestmark = pytest.mark.mount
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
PAGE = f"{DOMAIN}/index.html/data.html"
BIG = b"0123456789abcdef" * 400_000


@pytest.fixture
def filled(archive: Archive) -> Archive:
    archives.publish(archive, pages={"index.html": b"page", "big.bin": BIG})
    return archive


def fails(code: int, *command: str | Path, **more: object) -> str:
    """The one line with which a command fails."""
    done = run(*command, **more)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_live_when_it_returns(filled: Archive, mount: Mounter) -> None:
    """S-mount-1"""
    mounted = mount(filled)
    assert (mounted / PAGE).read_bytes() == b"page"
    assert "is mounted on" in (filled.log / "mount.log").read_text()
    done = run(MOUNT, "-v", "-n", "-t", "webarcfs", "-o", "rw", mounted.point.with_name("elsewhere"))
    assert done.returncode == 32


def test_the_archive_that_is_not_named(filled: Archive, folder: Path) -> None:
    """S-mount-1"""
    point = folder / "mnt"
    point.mkdir()
    done = run(MOUNT, point, env={**os.environ, "WEBARC_ARCHIVE": str(filled.root)})
    assert (done.returncode, done.stderr) == (0, "")
    assert run(UMOUNT, point).returncode == 0
    environment = {name: value for name, value in os.environ.items() if name != "WEBARC_ARCHIVE"}
    if not Path("/srv/webarc").exists():
        assert "/srv/webarc holds no archive" in fails(32, MOUNT, point, env=environment)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_front(filled: Archive, folder: Path, number: signal.Signals) -> None:
    """S-mount-1, S-signal-1"""
    point = folder / "mnt"
    point.mkdir()
    with subprocess.Popen([MOUNT, filled.root, point, "-f"], stderr=subprocess.PIPE, text=True) as process:
        try:
            eventually((point / PAGE).exists)
            process.send_signal(number)
            assert process.wait(60) == 0
        finally:
            run(*DETACH, point)
            process.kill()
        assert process.stderr is not None
        log = process.stderr.read()
    assert f"ended by {number.name}" in log and "is unmounted" in log
    assert mountpoint.mounted(point) is None


def test_mount_table(filled: Archive, mount: Mounter) -> None:
    """S-mount-2"""
    mounted = mount(filled)
    line = next(line for line in Path("/proc/self/mounts").read_text().splitlines() if str(mounted.point) in line)
    source, _, kind, options, *_ = line.split()
    assert (source, kind) == (str(filled.root), "fuse.webarcfs")
    assert {"rw", "nosuid", "nodev", "default_permissions"} <= set(options.split(","))


@as_root
def test_odd_names_of_archive_and_mount_point(folder: Path) -> None:
    """S-mount-2"""
    odd = folder / "a, b\\ \u00fc"
    odd.mkdir()
    archive = archives.make_archive(odd)
    archives.publish(archive, pages={"index.html": b"page"})
    mounted = Mounted(archive.root, odd / "m n,t \u00e4")
    try:
        assert (mounted / PAGE).read_bytes() == b"page"
        assert run(UMOUNT, mounted.point).returncode == 0
    finally:
        mounted.clear()


@pytest.fixture
def helper() -> Iterator[None]:
    """/sbin/mount.webarcfs, as an installed package has it."""
    path = Path("/sbin/mount.webarcfs")
    if path.exists():
        yield
        return
    path.symlink_to(MOUNT)
    try:
        yield
    finally:
        path.unlink()


@as_root
@pytest.mark.usefixtures("helper")
def test_called_by_mount(filled: Archive, folder: Path) -> None:
    """S-mount-2, S-umount-1"""
    point = folder / "mnt"
    point.mkdir()
    done = run("mount", "-t", "webarcfs", "-o", "ro,noatime,x-systemd.automount,nofail", filled.root, point)
    try:
        assert (done.returncode, done.stderr) == (0, "")
        assert (point / PAGE).read_bytes() == b"page"
        assert run("umount", point).returncode == 0
    finally:
        run(*DETACH, point)
    done = run("mount", "-t", "webarcfs", filled.root, point / "nowhere")
    assert done.returncode == 32


def test_wrong_calls(filled: Archive, folder: Path) -> None:
    """S-mount-3, S-mount-4"""
    assert "--help" in fails(1, MOUNT)
    assert "3 names" in fails(1, MOUNT, "a", "b", "c")
    assert "'nonsense'" in fails(1, MOUNT, filled.root, folder, "-o", "ro,nonsense")
    assert "no group 'nobodys'" in fails(1, MOUNT, filled.root, folder, "-o", "group=nobodys")
    assert "'other'" in fails(1, MOUNT, filled.root, folder, "-o", "binding=other")
    assert "-Z" in fails(1, MOUNT, filled.root, folder, "-Z")
    assert fails(1, UMOUNT)
    for command in (MOUNT, UMOUNT):
        assert run(command, "--help").returncode == 0
        assert run(command, "--version").stdout.startswith(Path(command).name)


def test_failures_say_what_to_do(filled: Archive, folder: Path, mount: Mounter) -> None:
    """S-mount-3"""
    point = folder / "point"
    point.mkdir()
    assert "webarc-agent init" in fails(32, MOUNT, folder, point)
    assert "holds no archive" in fails(32, MOUNT, folder / "nothing", point)
    assert "mkdir" in fails(32, MOUNT, filled.root, folder / "nowhere")
    assert "not a folder" in fails(32, MOUNT, filled.root, filled.format)
    assert "would hide the archive" in fails(32, MOUNT, filled.root, folder)
    mounted = mount(filled)
    assert f"umount.webarcfs {mounted.point}" in fails(32, MOUNT, filled.root, mounted.point)
    environment = {**os.environ, "FUSE_LIBRARY_PATH": "/nowhere/libfuse.so.2"}
    fusepy = ("-o", "binding=fusepy")
    assert "apt install libfuse2" in fails(32, MOUNT, filled.root, point, *fusepy, env=environment)
    filled.format.write_text("99\n")
    assert "layout 99" in fails(32, MOUNT, filled.root, point)


def test_a_folder_of_the_archive_is_no_mount_point(filled: Archive, folder: Path) -> None:
    """S-mount-3: mounted there, the mount would wait for itself, or hide what it shows."""
    repository = next(iter(filled.content.iterdir()))
    filled.schemas.mkdir(exist_ok=True)
    (folder / "link").symlink_to(filled.content)
    for point in (filled.root, filled.content, repository, filled.journal, filled.log, filled.schemas, folder / "link"):
        point.mkdir(exist_ok=True)
        assert "would hide" in fails(32, MOUNT, filled.root, point)


@as_root
def test_a_folder_of_the_archive_is_none_elsewhere_either(filled: Archive, folder: Path) -> None:
    """S-mount-3"""
    point = folder / "point"
    point.mkdir()
    bound = 'mount --bind "$2/content" "$3" && exec "$@"'
    assert "would hide" in fails(32, *apart(bound, MOUNT, filled.root, point))


@as_root
def test_failures_of_the_system(filled: Archive, folder: Path, other_user: Other) -> None:
    """S-mount-3"""
    point = folder / "point"
    point.mkdir()
    without = 'mount -t tmpfs none /dev && exec "$@"'
    assert "modprobe fuse" in fails(32, *apart(without, MOUNT, filled.root, point))
    broken = 'mount --bind /etc/hostname /dev/fuse && exec "$@"'
    for each in BINDINGS:
        command = (MOUNT, filled.root, point, "-o", f"binding={each}")
        said = fails(32, *apart(broken, *command))
        assert f"cannot mount {filled.root} on {point}: fuse" in said
    done = other_user.run(other_user.mount, filled.root, point)
    assert (done.returncode, done.stdout) == (32, "") and "belongs to user" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_options(filled: Archive, mount: Mounter) -> None:
    """S-mount-4"""
    passed = "rw,_netdev,nofail,noauto,user,users,x-gvfs-show,defaults,relatime,nosuid,nodev,noexec,comment=x"
    ours = "debug,stats,binding=fusepy"
    if os.geteuid() == 0:  # whom /etc/fuse.conf need not allow it
        ours += ",allow_other"
    mount(filled, "-o", passed, "-o", ours)
    mount(filled, "-s", "-o", "nonsense")
    read_only = mount(filled, "-o", "ro")
    assert os.statvfs(read_only.point).f_flag & os.ST_RDONLY


@as_root
def test_becomes_the_owner(filled: Archive, mount: Mounter) -> None:
    """S-mount-5"""
    for uid, gid in ((65534, 65534), (54321, 54321)):  # one with a name, one without
        run("chown", "-R", f"{uid}:{gid}", filled.root)
        (filled.log / "mount.log").unlink(missing_ok=True)
        mounted = mount(filled)
        status = Path(f"/proc/{mounted.pid}/status").read_text()
        assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in status
        assert f"Gid:\t{gid}\t{gid}\t{gid}\t{gid}\n" in status
        found = (mounted / PAGE).stat()
        assert (found.st_uid, found.st_gid) == (uid, gid)
        assert (mounted / f"{DOMAIN}/big.bin/data.bin").read_bytes() == BIG
        assert (filled.log / "mount.log").stat().st_uid == uid
        os.kill(mounted.pid, signal.SIGTERM)
        assert mounted.ended()
        assert mountpoint.mounted(mounted.point) is None
        again = mount(filled)
        assert run(UMOUNT, again.point).returncode == 0
        assert not processes_of(again.point)


@as_root
def test_becomes_an_owner_who_cannot_read_python(filled: Archive, mount: Mounter, folder: Path) -> None:
    """S-mount-5: whatever is imported was so before, wherever Python and its packages lie."""
    home = folder / "home"
    (home / "lib").mkdir(parents=True)
    home.chmod(0o700)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (home / "lib" / python).symlink_to(sysconfig.get_path("stdlib"))
    places = {"packages": sysconfig.get_path("purelib"), "sources": Path(webarcfs.__file__).parents[1]}
    for name, place in places.items():
        (home / name).symlink_to(place)
    environment = {"PYTHONHOME": str(home), "PYTHONPATH": f"{home}/sources:{home}/packages"}
    run("chown", "-R", "65534:65534", filled.root)
    mounted = mount(filled, environment=environment)
    assert (mounted / PAGE).read_bytes() == b"page"
    tag = (mounted / ".changes").read_text().split()[-1]
    arc = (mounted / PAGE).parent
    (arc / "note.txt").write_bytes(b"mine")
    with (arc / "data.xml").open("rb") as document:
        document.read()
    assert os.listxattr(arc)
    assert sorted(os.listdir(mounted / ".snapshots" / tag / "index.html"))  # noqa: PTH208
    folder_fd = os.open(arc, os.O_RDONLY)
    os.fsync(folder_fd)
    os.close(folder_fd)
    assert run(UMOUNT, mounted.point).returncode == 0
    assert mounted.ended()
    assert "No module named" not in (filled.log / "mount.log").read_text()


AS_ITS_OWNER = """
set -e
mknod -m 666 "$4/fuse" c 10 229 && mount --bind "$4/fuse" /dev/fuse   # as udev makes it; here for this namespace
as() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
as "$1" "$3" "$4/mnt"
as cat "$4/mnt/$5"
if cat "$4/mnt/$5" 2>/dev/null; then echo root may read it without allow_other; fi
as "$2" "$4/mnt"
"""


@as_root
def test_mounted_by_its_owner(folder: Path, other_user: Other) -> None:
    """S-mount-5, S-umount-1"""
    mine = folder / "mine"
    (mine / "mnt").mkdir(parents=True)
    archive = archives.make_archive(mine)
    archives.publish(archive, pages={"index.html": b"page"})
    run("chown", "-R", "65534:65534", mine)
    programs = (other_user.mount, other_user.umount)
    done = run(*apart(AS_ITS_OWNER, *programs, archive.root, mine, PAGE))
    assert (done.stdout, done.stderr, done.returncode) == ("page", "", 0)
    assert not processes_of(mine / "mnt")


def test_unmounting(filled: Archive, mount: Mounter) -> None:
    """S-umount-1"""
    mounted = mount(filled)
    with (mounted / f"{DOMAIN}/big.bin/data.bin").open("rb", buffering=0) as file:
        file.read(1)
        assert "fuser" in fails(32, UMOUNT, mounted.point)
        assert (mounted / PAGE).read_bytes() == b"page"
        assert run(UMOUNT, "-l", mounted.point).returncode == 0
        assert mountpoint.mounted(mounted.point) is None
        assert b"0" + b"".join(iter(lambda: file.read(1 << 17), b"")) == BIG
        assert not mounted.ended(0)
    assert mounted.ended()
    again = mount(filled)
    assert run(UMOUNT, again.point).returncode == 0
    assert again.ended(0)
    assert "nothing is mounted" in fails(32, UMOUNT, again.point)
    if os.geteuid() == 0:
        run("mount", "-t", "tmpfs", "none", again.point)
        assert "type tmpfs" in fails(32, UMOUNT, again.point)
        run("umount", again.point)
        plain = mount(filled)
        assert run("umount", plain.point).returncode == 0
        assert plain.ended()


def test_told_to_end_while_busy(filled: Archive, mount: Mounter) -> None:
    """S-signal-1"""
    mounted = mount(filled)
    with (mounted / f"{DOMAIN}/big.bin/data.bin").open("rb", buffering=0) as file:
        file.read(1)
        os.kill(mounted.pid, signal.SIGTERM)
        eventually(lambda: mountpoint.mounted(mounted.point) is None)
        assert b"0" + b"".join(iter(lambda: file.read(1 << 17), b"")) == BIG
    assert mounted.ended()
    assert "files are open" not in (filled.log / "mount.log").read_text(), "it does not wait for its last second"


def test_a_mount_that_took_its_place_stays(filled: Archive, mount: Mounter) -> None:
    """S-signal-1"""
    mounted = mount(filled)
    with (mounted / f"{DOMAIN}/big.bin/data.bin").open("rb", buffering=0) as file:
        file.read(1)
        assert run(UMOUNT, "-l", mounted.point).returncode == 0
        again = Mounted(filled.root, mounted.point)
        try:
            os.kill(mounted.pid, signal.SIGTERM)
            eventually(lambda: "not there any more" in (filled.log / "mount.log").read_text())
            assert (again / PAGE).read_bytes() == b"page"
            file.close()
            assert mounted.ended()
            assert (again / PAGE).read_bytes() == b"page"
        finally:
            again.clear()
    log = (filled.log / "mount.log").read_text()
    assert "ERROR" not in log and "files are open" not in log


def test_killed(filled: Archive, mount: Mounter) -> None:
    """S-crash-1"""
    mounted = mount(filled)
    os.kill(mounted.pid, signal.SIGKILL)
    assert mounted.ended()
    with pytest.raises(OSError) as caught:
        (mounted / PAGE).read_bytes()
    assert caught.value.errno == errno.ENOTCONN
    said = fails(32, MOUNT, filled.root, mounted.point)
    assert "stale" in said
    command = said.split("`")[1]
    assert run(*command.split()).returncode == 0
    again = Mounted(filled.root, mounted.point)
    assert (again / PAGE).read_bytes() == b"page"
    again.clear()


def test_a_stale_point_is_unmounted_though_somebody_is_inside(filled: Archive, mount: Mounter) -> None:
    """S-crash-1: nobody can do anything there, so it is detached."""
    mounted = mount(filled)
    inside = os.open(mounted / DOMAIN, os.O_RDONLY | os.O_DIRECTORY)
    file = (mounted / PAGE).open("rb")
    try:
        os.kill(mounted.pid, signal.SIGKILL)
        assert mounted.ended()
        done = run(UMOUNT, mounted.point)
        assert (done.returncode, done.stderr) == (0, "")
        assert mountpoint.mounted(mounted.point) is None
    finally:
        os.close(inside)
        with contextlib.suppress(OSError):  # ENOTCONN on fusepy
            file.close()


def test_nobody_waits_for_the_daemon(filled: Archive, folder: Path) -> None:
    """S-mount-1: whoever reads the command's output to its end is not kept waiting by the mount's process."""
    point = folder / "mnt"
    point.mkdir()
    arguments = [MOUNT, str(filled.root), str(point)]
    script = f"import subprocess; subprocess.run({arguments!r}, capture_output=True, check=True)"
    try:
        assert run(sys.executable, "-c", script).returncode == 0
        assert mountpoint.mounted(point) == mountpoint.TYPE
    finally:
        run(UMOUNT, point)


def processes_of(point: Path) -> list[str]:
    """Command lines of living processes that name the mount point."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_text("utf-8", "replace").replace("\0", " ")
        except OSError:
            continue
        if "mount.webarcfs" in line and str(point) in line:
            found.append(line)
    return found
