"""Several handles of one new file are one file, whoever looks at it, by handle or by name (S-add-2, S-cache-4)."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import UMOUNT, run
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.mount


@pytest.fixture
def arc(archive: Archive, mount: Mounter) -> Iterator[Path]:
    """The folder of an ARC in a mount; what was added to it is the same in the next mount."""
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    folder = mounted / DOMAIN / "a.html"
    yield folder
    shown = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert run(UMOUNT, mounted.point).returncode == 0
    again = mount(archive) / DOMAIN / "a.html"
    assert {path.name: path.read_bytes() for path in again.iterdir() if path.is_file()} == shown


def _confirmed_by_nothing(_fd: int) -> None:
    pass


def _copied(fd: int) -> None:
    os.close(os.dup(fd))


CONFIRMED = {"nothing": _confirmed_by_nothing, "fsync": os.fsync, "copy": _copied}


@pytest.mark.parametrize("confirm", CONFIRMED.values(), ids=CONFIRMED)
@pytest.mark.parametrize("by_name", [False, True])
def test_what_is_appended_lands_at_the_end(arc: Path, confirm: Callable[[int], None], by_name: bool) -> None:
    """S-add-6: O_APPEND, whoever looks at the file's size meanwhile."""
    path = arc / "log"
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
    for piece in (b"A" * 100, b"B" * 100, b"C" * 100):
        os.write(fd, piece)
        size = os.stat(path).st_size if by_name else os.fstat(fd).st_size  # noqa: PTH116 # beside fstat
        assert size == os.lseek(fd, 0, os.SEEK_END)
        if piece.startswith(b"A"):
            confirm(fd)
    os.close(fd)
    assert path.read_bytes() == b"A" * 100 + b"B" * 100 + b"C" * 100


@pytest.mark.parametrize("confirm", CONFIRMED.values(), ids=CONFIRMED)
def test_a_second_handle_is_of_the_same_file(arc: Path, confirm: Callable[[int], None]) -> None:
    """S-cache-4: it has the size of now, and what it writes at the end is behind what the first one wrote."""
    path = arc / "notes"
    with path.open("xb+", buffering=0) as first:
        first.write(b"A" * 100)
        confirm(first.fileno())
        first.write(b"B" * 100)
        with path.open("rb+", buffering=0) as second:
            assert os.fstat(second.fileno()).st_size == second.seek(0, os.SEEK_END) == path.stat().st_size == 200
            assert os.fstat(second.fileno()).st_ino == os.fstat(first.fileno()).st_ino == path.stat().st_ino
            second.write(b"C" * 100)
        assert first.read() == b"C" * 100
        first.write(b"D")
        assert path.read_bytes() == b"A" * 100 + b"B" * 100 + b"C" * 100 + b"D"
    assert path.read_bytes() == b"A" * 100 + b"B" * 100 + b"C" * 100 + b"D"


def _cut_by_opening(path: Path, fd: int) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_TRUNC))
    os.pwrite(fd, b"END", 9_000)


def _cut_by_handle(path: Path, fd: int) -> None:
    other = os.open(path, os.O_RDWR)
    os.ftruncate(other, 100)
    os.pwrite(fd, b"END", 9_000)
    os.close(other)


def _cut_by_name(path: Path, fd: int) -> None:
    os.truncate(path, 100)
    os.pwrite(fd, b"END", 9_000)


def _overwrite(path: Path, _fd: int) -> None:
    with path.open("rb+") as other:
        other.seek(1_000)
        other.write(b"y" * 5_000)


CHANGES = {"O_TRUNC": _cut_by_opening, "ftruncate": _cut_by_handle, "truncate": _cut_by_name, "overwrite": _overwrite}


@pytest.mark.parametrize("confirm", CONFIRMED.values(), ids=CONFIRMED)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_by_one_handle_is_seen_by_the_other(
    arc: Path, confirm: Callable[[int], None], change: Callable[[Path, int], None]
) -> None:
    """S-add-8: what was cut off is zeros when the file grows again, also where pages were read before."""
    path = arc / "file"
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.pwrite(fd, b"x" * 9_000, 0)
    confirm(fd)
    assert os.pread(fd, 9_000, 0) == b"x" * 9_000
    change(path, fd)
    seen, size = os.pread(fd, 20_000, 0), os.fstat(fd).st_size
    assert path.read_bytes() == seen
    os.close(fd)
    assert path.read_bytes() == seen
    assert len(seen) == size
    assert seen.count(b"x") == {"_overwrite": 4_000, "_cut_by_opening": 0}.get(change.__name__, 100)


@pytest.mark.only("libfuse3")
def test_bytes_that_were_cut_off_are_never_stored(arc: Path) -> None:
    """S-add-8, through a mapping: the page that it wrote is not written back into a file that was cut off since."""
    path = arc / "file"
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.pwrite(fd, b"SECRET" * 800, 0)
    with mmap.mmap(fd, 4_800) as mapping:
        mapping[0] = ord("S")
    os.close(os.open(path, os.O_RDWR | os.O_TRUNC))
    os.pwrite(fd, b"END", 6_000)
    with mmap.mmap(fd, 6_003) as mapping:
        mapping[1] = mapping[1]
    os.close(fd)
    assert path.read_bytes() == bytes(6_000) + b"END"


def test_a_log_that_is_kept_open_shows_what_it_has(arc: Path) -> None:
    """S-add-2: to every process, also after a child closed its copy of the handle."""
    path = arc / "log"
    script = """exec 7>>"$1"; echo one >&7; (echo two) >&7; cat "$1"; echo three >&7; cat "$1"
                sync "$1"; echo four >&7; cat "$1" """
    shown = subprocess.run(["bash", "-c", script, "bash", path], capture_output=True, text=True, check=True)
    words = ["one", "two", "three", "four"]
    assert shown.stdout.split() == words[:2] + words[:3] + words
    assert path.read_text().split() == words


def test_a_file_is_a_version_once_it_is_closed(arc: Path) -> None:
    """S-add-1: not as long as somebody has it open, and at the latest when the last handle is closed."""
    path = arc / "file"
    first = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    draft = os.fstat(first).st_ino
    os.write(first, b"one")
    os.fsync(first)
    assert path.stat().st_ino == draft
    second = os.open(path, os.O_RDWR)
    os.close(first)
    assert path.stat().st_ino == draft
    os.close(second)
    assert path.stat().st_ino != draft
    version = path.stat()
    assert stat.S_IMODE(version.st_mode) == 0o444
    assert version.st_size == 3


LARGE = {
    "ftruncate": lambda fd: os.ftruncate(fd, 1 << 62),
    "pwrite": lambda fd: os.pwrite(fd, b"x", 1 << 62),
    "smaller": lambda fd: os.ftruncate(fd, 1 << 45),
}


@pytest.mark.parametrize("grow", LARGE.values(), ids=LARGE)
def test_a_file_beyond_the_disk_is_efbig_and_loses_nothing(
    archive: Archive, arc: Path, grow: Callable[[int], object]
) -> None:
    """S-full-3."""
    fd = os.open(arc / "file", os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.write(fd, b"kept")
    with pytest.raises(OSError, match="File too large") as refused:
        grow(fd)
    assert refused.value.errno == errno.EFBIG
    assert os.fstat(fd).st_size == 4
    os.close(fd)
    assert (arc / "file").read_bytes() == b"kept"
    assert "Traceback" not in (archive.root / "log/mount.log").read_text()


def test_no_more_is_reserved_than_there_is(archive: Archive, arc: Path, binding: str) -> None:
    """S-full-3: at once, before the disk is full of it. (Without fallocate(2), posix_fallocate would write.)"""
    libc = ctypes.CDLL(None, use_errno=True)
    disk = os.statvfs(archive.root)
    fd = os.open(arc / "file", os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.write(fd, b"kept")
    for length, number in ((1 << 60, errno.EFBIG), ((disk.f_blocks - 1) * disk.f_frsize, errno.ENOSPC)):
        assert libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(length)) == -1
        assert ctypes.get_errno() == (number if binding == "libfuse3" else errno.EOPNOTSUPP)
        assert os.statvfs(archive.root).f_bavail > disk.f_bavail // 2
    assert os.fstat(fd).st_size == 4
    os.close(fd)
    assert (arc / "file").read_bytes() == b"kept"


def test_mknod_makes_a_file_that_is_opened_later(arc: Path) -> None:
    """S-create-1, as servers of NFS do it."""
    os.mknod(arc / "file", stat.S_IFREG | 0o644)
    assert (arc / "file").read_bytes() == b""
    (arc / "file").write_bytes(b"later")
    assert (arc / "file").read_bytes() == b"later"
    eventually(lambda: stat.S_IMODE((arc / "file").stat().st_mode) == 0o444, 60)  # the mount knows that it was closed
    with pytest.raises(PermissionError):
        (arc / "file").write_bytes(b"again")
    os.mknod(arc / "empty", stat.S_IFREG | 0o644)
    with pytest.raises(PermissionError):
        os.mknod(arc / "pipe", stat.S_IFIFO | 0o644)
    with pytest.raises(PermissionError):
        os.mknod(arc.parents[1] / ".schemas/words.xsd", stat.S_IFREG | 0o644)
    assert [path.name for path in (arc.parents[1] / ".schemas").iterdir()] == []
    with pytest.raises(FileExistsError):
        os.mknod(arc / "empty", stat.S_IFREG | 0o644)


def test_attributes_of_ones_own_additions_are_not_supported(arc: Path) -> None:
    """S-add-5: of an open file, a closed one and a folder alike."""
    (arc / "folder").mkdir()
    (arc / "closed").write_bytes(b"1")
    with (arc / "open").open("xb"):
        for name in ("folder", "closed", "open"):
            with pytest.raises(OSError, match=r"not supported|denied") as refused:
                os.setxattr(arc / name, "user.mine", b"1")
            by_mode = name == "closed" and os.geteuid() != 0  # before the mount is asked
            assert refused.value.errno == (errno.EACCES if by_mode else errno.EOPNOTSUPP)
    with pytest.raises(PermissionError):
        os.setxattr(arc / "data.html", "user.mine", b"1")


def test_a_file_has_the_mode_of_an_open_one_until_all_its_handles_are_closed(arc: Path) -> None:
    """S-add-2: by it the kernel tells whether its maker, unless he is root, may open it once more."""
    first = os.open(arc / "mine", os.O_CREAT | os.O_EXCL | os.O_RDWR)
    modes = []
    for confirm in (lambda: os.fsync(first), lambda: os.close(os.dup(first))):
        os.write(first, b"1")
        confirm()
        modes += [stat.S_IMODE((arc / "mine").stat().st_mode), stat.S_IMODE(os.fstat(first).st_mode)]
        os.close(os.open(arc / "mine", os.O_WRONLY | os.O_APPEND))
    assert modes == [0o644] * 4
    os.close(first)
    eventually(lambda: stat.S_IMODE((arc / "mine").stat().st_mode) == 0o444, 60)
    assert (arc / "mine").read_bytes() == b"11"
