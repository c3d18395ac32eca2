"""New files and folders in ARCs, as system calls see them (SEMANTICS.md section 5, "Additions"; /Ar-1/)."""

# The tests speak in system calls.
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH116, PTH123, PTH208
from __future__ import annotations

import ctypes
import errno
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.conftest import Desk
from tests.mount.test_refusals import number_of
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.waiting import eventually

pytestmark = pytest.mark.mount


def write(path: Path | str | bytes, body: bytes) -> None:
    """Create a file and close it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, body)
    finally:
        os.close(fd)


def error_of(call: Callable[[], object]) -> int | None:
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_a_closed_file_is_there_and_in_git(desk: Desk) -> None:
    """S-add-1, S-add-2"""
    arc = desk.arc()
    before = sorted(os.listdir(arc))
    write(arc / "notes.txt", b"a note")
    assert (arc / "notes.txt").read_bytes() == b"a note"
    assert sorted(os.listdir(arc)) == sorted([*before, "notes.txt"])
    number = os.stat(arc / "notes.txt").st_ino
    eventually(lambda: desk.in_git(arc / "notes.txt") == b"a note", 60)
    found = os.stat(arc / "notes.txt")
    assert (found.st_ino, found.st_size, found.st_mode & 0o777) == (number, 6, 0o444)
    assert found.st_mtime == os.stat(arc / "headers.http").st_mtime
    head = archives.store_of(desk.archive).head()
    assert head is not None
    assert head.message.tag.crawl_time == archives.FIRST
    # Without asking for it: the watch of the view takes over what was committed, and it stays what it was.
    write(arc / "second.txt", b"2")
    desk.commit(arc)
    assert (arc / "notes.txt").read_bytes() == b"a note"


def test_the_empty_file_is_a_file(desk: Desk) -> None:
    """S-add-1"""
    arc = desk.arc()
    write(arc / "empty", b"")
    assert os.stat(arc / "empty").st_size == 0
    desk.commit(arc)
    assert desk.in_git(arc / "empty") == b""


def test_fsync_confirms_and_leaves_open(desk: Desk) -> None:
    """S-add-1, S-add-2"""
    arc = desk.arc()
    with open(arc / "log", "xb", buffering=0) as file:
        file.write(b"one\n")
        os.fsync(file.fileno())
        desk.commit(arc)
        assert desk.in_git(arc / "log") == b"one\n"
        file.write(b"two\n")
        assert file.tell() == 8
    assert (arc / "log").read_bytes() == b"one\ntwo\n"
    desk.commit(arc)
    assert desk.in_git(arc / "log") == b"one\ntwo\n"


def test_a_file_is_confirmed_again_and_again(desk: Desk) -> None:
    """S-add-1, S-add-2: whichever of its states git has by then."""
    arc = desk.arc()
    with open(arc / "log", "xb", buffering=0) as file:
        for number in range(4):
            desk.commit(arc)
            for word in (b"a", b"b", b"c"):
                file.write(b"%d%s\n" % (number, word))
                os.fsync(file.fileno())
    desk.commit(arc)
    expected = b"".join(b"%d%s\n" % (number, word) for number in range(4) for word in (b"a", b"b", b"c"))
    assert (arc / "log").read_bytes() == desk.in_git(arc / "log") == expected


def test_a_name_is_taken_again_at_once_after_a_rename(desk: Desk) -> None:
    """S-rename-1, S-add-1: as those do who rotate their logs, whatever git has by then."""
    arc = desk.arc()
    for number in range(4):
        with open(arc / "log", "xb", buffering=0) as file:
            file.write(b"%d" % number)
            os.fsync(file.fileno())
            file.write(b"more")
        if number % 2 == 0:
            desk.commit(arc)
        os.rename(arc / "log", arc / f"log.{number}")
    desk.commit(arc)
    assert [desk.in_git(arc / f"log.{number}") for number in range(4)] == [b"%dmore" % number for number in range(4)]
    assert desk.in_git(arc / "log") is None


def test_a_forked_child_may_close_first(desk: Desk) -> None:
    """S-add-2"""
    arc = desk.arc()
    script = (
        "import os,sys\nfile=open(sys.argv[1],'wb',0)\nfile.write(b'parent ')\n"
        "if not (child:=os.fork()):\n file.write(b'child ')\n file.close()\n os._exit(0)\n"
        "os.waitpid(child,0)\nfile.write(b'parent again')\n"
    )
    subprocess.run([sys.executable, "-c", script, arc / "forked"], check=True, timeout=240)
    assert (arc / "forked").read_bytes() == b"parent child parent again"
    desk.commit(arc)
    eventually(lambda: desk.in_git(arc / "forked") == b"parent child parent again", 60)


@pytest.mark.only("libfuse3")
def test_a_mapping_may_write_after_the_close(desk: Desk) -> None:
    """S-add-2"""
    arc = desk.arc()
    with open(arc / "mapped", "x+b") as file:
        file.truncate(8192)
        memory = mmap.mmap(file.fileno(), 8192)
    memory[:5] = b"after"
    memory.close()

    def whole() -> bool:
        desk.commit(arc)
        return desk.in_git(arc / "mapped") == b"after" + bytes(8187)

    eventually(whole, 60)
    assert (arc / "mapped").read_bytes()[:5] == b"after"


def test_a_final_file_is_final(desk: Desk) -> None:
    """S-add-2, S-change-1"""
    arc = desk.arc()
    write(arc / "final", b"1")
    refusal = errno.EPERM if os.geteuid() == 0 else errno.EACCES  # by its mode, before the mount is asked
    eventually(lambda: error_of(lambda: os.close(os.open(arc / "final", os.O_WRONLY))) == refusal, 60)
    assert number_of(Path.unlink, arc / "final") == errno.EPERM
    assert number_of(lambda path: os.truncate(path, 0), arc / "final") == refusal
    assert (arc / "final").read_bytes() == b"1"


NAMES: dict[str, tuple[bytes, int | None]] = {
    "data file": (b"data.txt", errno.EPERM),
    "data alone": (b"data", errno.EPERM),
    "git": (b".git", errno.EPERM),
    "gitmodules": (b".gitmodules", errno.EPERM),
    "short name": (b"GIT~1", errno.EPERM),
    "255 bytes": (b"n" * 255, None),
    "256 bytes": (b"n" * 256, errno.ENAMETOOLONG),
    "not UTF-8": (b"caf\xe9", None),
    "trailing dot": (b"x.", None),
    "a newline": (b"a\nb", None),
    "quotes": (b'"\\', None),
    "swap file of vim": (b".notes.txt.swp", errno.EPERM),
    "second swap file": (b".notes.txt.swo", errno.EPERM),
    "trial of vim": (b"4913", errno.EPERM),
    "written by sed": (b"sedAb3xYz", errno.EPERM),
    "written by perl": (b"XXAb3xYz", errno.EPERM),
    "journal of SQLite": (b"notes.db-journal", errno.EPERM),
    "lock of LibreOffice": (b".~lock.report.pdf#", errno.EPERM),
    "lock of Emacs": (b".#notes.txt", errno.EPERM),
    "saved by Emacs itself": (b"#notes.txt#", errno.EPERM),
    "hidden": (b".notes.txt", None),
    "a hash": (b"#1", None),
    "a hash at the end": (b"C#", None),
    "number": (b"4914", None),
    "sed's manual": (b"sed-1.txt", None),
    "journal": (b"a-journal.txt", None),
}


def test_names(desk: Desk) -> None:
    """S-add-3"""
    arc = os.fsencode(desk.arc())
    own = set(os.listdir(arc))
    answers = {what: error_of(lambda name=name: write(arc + b"/" + name, b"x")) for what, (name, _) in NAMES.items()}
    assert answers == {what: number for what, (_, number) in NAMES.items()}
    os.mkdir(arc + b"/more")
    assert error_of(lambda: write(arc + b"/more/data.xml", b"x")) == errno.EPERM
    write(arc + b"/more/data.txt", b"y")
    desk.commit(Path(os.fsdecode(arc)))
    assert set(os.listdir(arc)) - own == {b"more", *(name for name, number in NAMES.values() if number is None)}
    for name in (b".a.swp", b"4913", b"sedAb3xYz", b"x-journal", b".~lock.a.odt#", b".#a", b"#a#"):
        assert error_of(lambda name=name: os.rename(arc + b"/x.", arc + b"/" + name)) == errno.EPERM
        os.mkdir(arc + b"/" + name)
    assert desk.in_git(Path(os.fsdecode(arc + b"/caf\xe9"))) == b"x"
    assert archives.store_of(desk.archive).check() == []


def test_folders(desk: Desk) -> None:
    """S-add-3, S-add-4"""
    arc = desk.arc()
    os.makedirs(arc / "more/deep")
    write(arc / "more/deep/w.txt", b"42")
    assert error_of(lambda: os.mkdir(arc / "more")) == errno.EEXIST
    numbers = [os.stat(arc / path).st_ino for path in ("more", "more/deep", "more/deep/w.txt")]
    desk.commit(arc)
    eventually(lambda: desk.in_git(arc / "more/deep/w.txt") == b"42", 60)
    write(arc / "more/second.txt", b"43")
    assert sorted(os.listdir(arc / "more")) == ["deep", "second.txt"]
    assert numbers == [os.stat(arc / path).st_ino for path in ("more", "more/deep", "more/deep/w.txt")]
    deep = arc
    for _ in range(64):
        deep = deep / "d"
        os.mkdir(deep)
    assert error_of(lambda: os.mkdir(deep / "d")) == errno.ENAMETOOLONG


def test_what_is_set_on_ones_own(desk: Desk) -> None:
    """S-add-5"""
    arc = desk.arc()
    write(arc / "mine", b"1")
    os.mkdir(arc / "folder")
    for path in (arc / "mine", arc / "folder"):
        os.chmod(path, 0o600)
        os.chown(path, os.getuid(), os.getgid())
        os.utime(path, (1, 1))
        assert os.stat(path).st_mtime == os.stat(arc).st_mtime
    with open(arc / "open", "xb") as file:
        os.fchmod(file.fileno(), 0o755)
        os.utime(file.fileno(), (1, 1))
        assert error_of(lambda: os.setxattr(file.fileno(), "user.x", b"1")) == errno.EOPNOTSUPP
    access = "system.posix_acl_access"
    assert error_of(lambda: os.setxattr(arc / "mine", access, b"\2\0\0\0")) in (errno.EOPNOTSUPP, errno.EINVAL)
    if os.geteuid() == 0:  # what another made is not one's own
        done = subprocess.run(["touch", arc / "mine"], user=65534, group=65534, check=False, capture_output=True)
        assert done.returncode


def test_shapes_of_writing(desk: Desk) -> None:
    """S-add-6"""
    arc = desk.arc()
    fd = os.open(arc / "shaped", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.pwrite(fd, b"world", 6)
    os.pwrite(fd, b"hello,", 0)
    os.ftruncate(fd, 9)
    assert os.pread(fd, 100, 0) == b"hello,wor"
    assert os.fstat(fd).st_size == 9
    again = os.open(arc / "shaped", os.O_WRONLY | os.O_TRUNC)
    os.write(again, b"anew")
    os.close(again)
    os.close(fd)
    assert (arc / "shaped").read_bytes() == b"anew"
    fd = os.open(arc / "appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, b"1")
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"2")
    os.close(fd)
    assert (arc / "appended").read_bytes() == b"12"


def test_fallocate(desk: Desk, binding: str) -> None:
    """S-add-6"""
    with open(desk.arc() / "allocated", "xb") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        ctypes.set_errno(0)  # success leaves there what was
        failed = libc.fallocate(file.fileno(), 0, 0, 5000)
        assert (failed, ctypes.get_errno()) == ((0, 0) if binding == "libfuse3" else (-1, errno.EOPNOTSUPP))
        assert os.fstat(file.fileno()).st_size == (0 if failed else 5000)
        # A hole is no reservation; programs that dig some go on when they are told so, and not at EIO.
        assert libc.fallocate(file.fileno(), 3, 0, 4096) == -1
        assert ctypes.get_errno() == errno.EOPNOTSUPP


def test_a_name_is_given_once(desk: Desk) -> None:
    """S-add-7"""
    arc = desk.arc()
    answers: list[int | None] = []
    barrier = threading.Barrier(8)

    def create() -> None:
        barrier.wait()
        answers.append(error_of(lambda: write(arc / "one", b"x")))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers, key=str) == [errno.EEXIST] * 7 + [None]


def test_large_files(desk: Desk) -> None:
    """S-add-8"""
    arc = desk.arc()
    body = b"".join(number.to_bytes(4, "big") for number in range(5 << 20 >> 2)) * 2
    write(arc / "large", body)
    with open(arc / "large", "rb") as file:
        assert os.pread(file.fileno(), 1000, len(body) - 500) == body[-500:]
        assert os.pread(file.fileno(), 8, 5 << 20) == body[5 << 20 : (5 << 20) + 8]
        desk.commit(arc)
        assert file.read() == body
    assert (arc / "large").read_bytes() == body
    assert desk.in_git(arc / "large") == body


def test_renames(desk: Desk, binding: str) -> None:
    """S-rename-1"""
    arc, other = desk.arc(), desk.arc()
    write(arc / "a.tmp", b"a")
    os.rename(arc / "a.tmp", arc / "a")
    assert ((arc / "a").read_bytes(), (arc / "a.tmp").exists()) == (b"a", False)
    desk.commit(arc)
    os.mkdir(arc / "in")
    os.rename(arc / "a", arc / "in/a")  # it is in git by now
    assert (sorted(os.listdir(arc / "in")), (arc / "a").exists()) == (["a"], False)
    assert "a" not in os.listdir(arc)
    desk.commit(arc)
    assert (desk.in_git(arc / "in/a"), desk.in_git(arc / "a")) == (b"a", None)
    with open(arc / "open.tmp", "xb") as file:
        file.write(b"still ")
        file.flush()
        os.rename(arc / "open.tmp", arc / "open")
        file.write(b"open")
    assert (arc / "open").read_bytes() == b"still open"
    assert error_of(lambda: os.rename(arc / "open", arc / "data.html")) == errno.EPERM
    assert error_of(lambda: os.rename(arc / "open", arc / "in/a")) == errno.EPERM
    assert error_of(lambda: os.rename(arc / "open", other / "open")) == errno.EPERM
    assert error_of(lambda: os.rename(arc / "open", arc / ".git")) == errno.EPERM
    assert error_of(lambda: os.rename(arc / "headers.http", arc / "mine")) == errno.EPERM
    if binding == "libfuse3":
        libc = ctypes.CDLL(None, use_errno=True)
        names = (os.fsencode(arc / "open"), -100, os.fsencode(arc / "in/a"))
        assert libc.renameat2(-100, names[0], names[1], names[2], 1) == -1
        assert ctypes.get_errno() == errno.EEXIST
    desk.commit(arc)
    assert (desk.in_git(arc / "open"), desk.in_git(arc / "open.tmp")) == (b"still open", None)
    assert sorted(set(os.listdir(arc)) - set(os.listdir(other))) == ["in", "open"]


def test_what_was_renamed_is_its_makers_by_its_new_name_at_once(desk: Desk) -> None:
    """S-rename-1: the kernel is told after the rename, and until then has the file by its old name."""
    arc = desk.arc()
    for number in range(40):
        write(arc / f"old{number}", b"1")
        new = (arc / f"old{number}").rename(arc / f"new{number}")
        new.chmod(0o640)
        os.utime(new, (1, 1))


def test_what_became_a_document_takes_no_more(desk: Desk) -> None:
    """S-rename-1, S-xml-4: who has the file open gets ESTALE; who appends to data.xml meanwhile goes on."""
    arc = desk.arc()
    document = arc / "data.xml"
    appending = document.open("ab", buffering=0)
    appending.write(b"<before/>")
    file = (arc / "new.xml").open("xb", buffering=0)
    file.write(document.read_bytes().replace(b"<arc:data/>", b"<arc:data><saved/></arc:data>"))
    os.rename(arc / "new.xml", document)
    assert error_of(lambda: file.write(b"more")) == errno.ESTALE
    file.close()
    appending.write(b"<behind/>")
    os.fsync(appending.fileno())
    appending.close()
    assert not (arc / "new.xml").exists()
    assert [node in document.read_bytes() for node in (b"<saved/>", b"<before/>", b"<behind/>")] == [True] * 3


def test_fsync_of_the_folder_waits_for_git(desk: Desk) -> None:
    """S-fsyncdir-1"""
    arc = desk.arc()
    for number in range(20):
        write(arc / f"f{number}", b"%d" % number)
        desk.commit(arc)
        assert desk.in_git(arc / f"f{number}") == b"%d" % number
    desk.commit(desk.mounted / DOMAIN)


def test_many_at_once(desk: Desk) -> None:
    """S-add-1, S-add-2"""
    arcs = [desk.arc() for _ in range(4)]
    failures: list[object] = []

    def work(number: int) -> None:
        try:
            for turn in range(25):
                path = arcs[turn % len(arcs)] / f"w{number}-{turn}"
                write(path, b"%d %d" % (number, turn))
                assert path.read_bytes() == b"%d %d" % (number, turn)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    desk.commit(arcs[0])
    for number in range(6):
        for turn in range(25):
            assert desk.in_git(arcs[turn % len(arcs)] / f"w{number}-{turn}") == b"%d %d" % (number, turn)
    assert all(len(os.listdir(arc)) >= 3 + 6 * 6 for arc in arcs)
