"""The fast path of libfuse 3 without a kernel: requests as its bytes, answers as it would read them."""

from __future__ import annotations

import errno
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.store.test_inodes import Mounted
from tests.support import archives
from tests.support.archives import DOMAIN
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound
from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.libfuse3.fast_path import FastPath
from webarcfs.mount.adapters.libfuse3.operations import DeferredReply, Workers
from webarcfs.mount.adapters.libfuse3.write_operations import WritingOperations
from webarcfs.mount.kernel import readdir
from webarcfs.vfs.root import ROOT
from webarcfs.vfs.view import View
from webarcfs.writing.service import Additions

pytestmark = pytest.mark.store

LOOKUP, FORGET, GETATTR, MKDIR, OPEN, READ, RELEASE, IOCTL, READDIRPLUS = 1, 2, 3, 9, 14, 15, 18, 39, 44
WRITE, GETXATTR, FLUSH, CREATE = 16, 22, 25, 35


class Asked:
    """A lane whose answers come by a pipe."""

    def __init__(self, mounted: Mounted) -> None:
        self.counts: Counter[str] = Counter()
        self.late_ones: list[Callable[[], None]] = []
        self.late = self.late_ones.append
        self.source, self.sink = os.pipe()
        self.lane = FastPath(self.sink, mounted.operations, self.late, lambda kind: self.counts.update([kind]))

    def send(self, opcode: int, inode: int, body: bytes) -> bool:
        head = struct.pack("=IIQQIIIHH", 40 + len(body), opcode, 77, inode, 1000, 1000, 1, 0, 0)
        # As the kernel leaves it in a buffer that had a longer request before.
        return self.lane.answer(memoryview(head + body + b"left over" * 100))

    def ask(self, opcode: int, inode: int, body: bytes) -> bytes | int:
        """The body of the answer, or the errno."""
        assert self.send(opcode, inode, body)
        reply = os.read(self.source, 1 << 20)
        length, error, unique = struct.unpack_from("=IiQ", reply)
        assert (length, unique) == (len(reply), 77)
        return -error if error or length == 16 else reply[16:]

    def close(self) -> None:
        for fd in {self.source, self.sink} - {-1}:
            os.close(fd)


@pytest.fixture
def mounted(archive: Archive, view: View) -> Mounted:
    archives.publish(archive, pages={"index.html": b"0123456789" * 5000})
    return Mounted(archive, view)


@pytest.fixture
def asked(mounted: Mounted) -> Iterator[Asked]:
    lane = Asked(mounted)
    yield lane
    lane.close()


def read_in(handle: int, offset: int, size: int) -> bytes:
    return struct.pack("=QQIIQII", handle, offset, size, 0, 0, 0, 0)


def lookup(asked: Asked, path: str) -> int:
    number = ROOT
    for name in path.split("/"):
        reply = asked.ask(LOOKUP, number, name.encode() + b"\0")
        assert isinstance(reply, bytes)
        number = readdir.first_number(reply)
    return number


def test_requests_are_answered_as_libfuse_would(mounted: Mounted, asked: Asked) -> None:
    """linux/fuse.h: fuse_in_header, fuse_read_in, fuse_open_in, fuse_release_in; the rest of the buffer is not read."""
    file = lookup(asked, f"{DOMAIN}/index.html/data.html")
    assert file == mounted.lookup(f"{DOMAIN}/index.html/data.html")
    assert asked.ask(GETATTR, file, bytes(16)) == mounted.operations.getattr(file, None)
    folder = mounted.lookup(f"{DOMAIN}/index.html")
    listed = asked.ask(READDIRPLUS, folder, read_in(0, 0, 4096))
    assert isinstance(listed, bytes)
    assert file in set(readdir.nodeids(listed))
    assert asked.ask(OPEN, file, struct.pack("=II", os.O_RDONLY, 0)) == readdir.opened(
        0, readdir.KEEP_CACHE | readdir.NOFLUSH
    )
    assert asked.ask(READ, file, read_in(0, 5, 7)) == b"5678901"
    assert asked.ask(READ, file, read_in(0, 0, 40000)) == b"0123456789" * 4000
    assert asked.ask(READ, file, read_in(0, 50000, 10)) == 0  # the end: nothing behind the header
    assert asked.ask(RELEASE, file, struct.pack("=QIIQ", 0, 0, 0, 0)) == 0
    assert asked.ask(IOCTL, file, bytes(32)) == errno.ENOTTY
    assert asked.counts == {"lookup": 3, "getattr": 1, "readdirplus": 1, "open": 1, "read": 3, "release": 1, "ioctl": 1}


@pytest.fixture
def writing(archive: Archive, view: View, mounted: Mounted) -> Iterator[Asked]:
    """The lane of a mount that takes additions."""
    additions = Additions(view)
    additions.start()
    mount = AdapterContext(archive, mounted.tree, archive.root, 0, 0, {}, lambda *_: None, additions=additions)
    mounted.operations = WritingOperations(mount, mounted.inodes, additions, Workers())
    lane = Asked(mounted)
    yield lane
    additions.stop()
    lane.close()


def test_an_addition_needs_no_libfuse(writing: Asked) -> None:
    """linux/fuse.h: fuse_create_in, fuse_write_in, fuse_flush_in, fuse_getxattr_in.

    Only a write that is longer than what can be seen of the buffer is libfuse's.
    """
    arc = lookup(writing, f"{DOMAIN}/index.html")
    reply = writing.ask(CREATE, arc, struct.pack("=IIII", os.O_WRONLY, 0o644, 0, 0) + b"notes.txt\0")
    assert isinstance(reply, bytes)
    file, handle = readdir.first_number(reply), readdir.handle_of_create(reply)
    for offset, data in ((0, b"some words"), (10, b", and more")):
        head = struct.pack("=QQIIQII", handle, offset, len(data), 0, 0, 0, 0)
        assert writing.ask(WRITE, file, head + data) == struct.pack("=II", len(data), 0)
    long = struct.pack("=QQIIQII", handle, 20, 5000, 0, 0, 0, 0) + bytes(5000)
    request = memoryview(struct.pack("=IIQQIIIHH", 40 + len(long), WRITE, 77, file, 0, 0, 1, 0, 0) + long)
    assert not writing.lane.answer(request[:4096])
    assert writing.send(FLUSH, file, struct.pack("=QIIQ", handle, 0, 0, 0))
    assert writing.ask(GETXATTR, arc, struct.pack("=II", 0, 0) + b"user.webarc.title\0") != 0
    assert writing.ask(GETXATTR, arc, struct.pack("=II", 99, 0) + b"user.nothing\0") == errno.ENODATA
    assert writing.ask(CREATE, arc, struct.pack("=IIII", os.O_WRONLY, 0, 0, 0) + b"data.html\0") == errno.EEXIST
    assert writing.counts.keys() >= {"create", "write", "flush", "getxattr"}


def test_errors_are_errnos(mounted: Mounted, asked: Asked) -> None:
    file = mounted.lookup(f"{DOMAIN}/index.html/data.html")
    assert asked.ask(OPEN, file, struct.pack("=II", os.O_WRONLY, 0)) == errno.EPERM
    assert asked.ask(LOOKUP, file, b"name\0") == errno.ENOTDIR
    assert asked.ask(LOOKUP, ROOT, b"n" * 256 + b"\0") == errno.ENAMETOOLONG
    assert asked.ask(GETATTR, 12345, bytes(16)) == errno.ESTALE


def test_what_is_no_request_of_the_lane_is_left_to_libfuse(asked: Asked) -> None:
    assert not asked.send(MKDIR, ROOT, bytes(8) + b"name\0")
    assert not asked.counts


def test_what_the_kernel_lets_go_is_forgotten_without_an_answer(mounted: Mounted, asked: Asked) -> None:
    """linux/fuse.h: fuse_forget_in; a file that nothing refers to any more is not known."""
    file = lookup(asked, f"{DOMAIN}/index.html/data.html")
    assert lookup(asked, f"{DOMAIN}/index.html/data.html") == file
    for times, known in ((1, True), (1, False), (1, False)):
        assert asked.send(FORGET, file, struct.pack("=Q", times))
        assert (file in mounted.inodes) is known
    os.set_blocking(asked.source, False)
    with pytest.raises(BlockingIOError):
        os.read(asked.source, 1)


def test_interrupts_are_nobodys(asked: Asked) -> None:
    """libfuse would keep each until the request that it is for, which it does not see if that went by the lane."""
    assert asked.send(36, 0, struct.pack("=Q", 77))
    os.set_blocking(asked.source, False)
    with pytest.raises(BlockingIOError):
        os.read(asked.source, 1)


def test_an_answer_that_the_kernel_does_not_take_is_taken_back(mounted: Mounted, asked: Asked) -> None:
    folder = mounted.lookup(DOMAIN)
    known = len(mounted.inodes)
    os.close(asked.source)
    asked.source = -1  # from now on writing fails
    assert asked.send(LOOKUP, folder, b"index.html\0")
    assert asked.send(READDIRPLUS, folder, read_in(0, 0, 4096))
    assert len(mounted.inodes) == known


def test_a_thread_survives_what_cannot_be_taken_back(
    mounted: Mounted, asked: Asked, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It has the turn, which it would not pass on: no request would be taken any more."""

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "as a disk may say")

    monkeypatch.setattr(mounted.inodes, "forget", failing)
    folder = mounted.lookup(DOMAIN)
    os.close(asked.source)
    asked.source = -1
    assert asked.send(LOOKUP, folder, b"index.html\0")
    assert "not taken back" in caplog.text


def test_what_comes_late_is_sent_by_whoever_knows_that_the_session_lasts(
    mounted: Mounted, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer to a condition comes from another thread, which may outlive the session."""
    monkeypatch.setattr(
        mounted.operations, "lookup", lambda *_: DeferredReply(lambda answer: answer(NotFound("nothing")))
    )
    assert asked.send(LOOKUP, ROOT, b"name\0")
    os.set_blocking(asked.source, False)
    with pytest.raises(BlockingIOError):
        os.read(asked.source, 1)
    asked.late_ones[0]()
    assert struct.unpack("=IiQ", os.read(asked.source, 1 << 20)) == (16, -errno.ENOENT, 77)
