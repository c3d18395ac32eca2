"""Every attempt to write is refused, each with its errno (SEMANTICS.md section 5; /Ar-1/)."""

# The tests speak in system calls.
# ruff: noqa: PTH109
from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.conftest import PAGES, Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import Mounted
from tests.support.users import Other
from webarcfs.archive.directory import Archive

pytestmark = pytest.mark.mount

OLD = f".snapshots/2026-11-21T03:00:00@{DOMAIN}"
PLACES = ["", DOMAIN, f"{DOMAIN}/a b"]
#: Where new files and folders may be made, but nothing else.
ADDING = [f"{DOMAIN}/index.html", f"{DOMAIN}/index.html/more"]
OLD_PLACES = [".snapshots", f".snapshots/{DOMAIN}", OLD, f"{OLD}/index.html"]
Attempt = Callable[[Path], object]


def create(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def listen(path: Path) -> None:
    here = os.getcwd()
    try:
        os.chdir(path.parent)  # the name of a socket is short
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def open_to(flags: int) -> Attempt:
    return lambda path: os.close(os.open(path, flags))


def make_device(path: Path) -> None:
    """A device, or a pipe by the same call: devices of who is not root the kernel refuses before the mount is asked."""
    os.mknod(path, (stat.S_IFIFO if os.geteuid() else stat.S_IFCHR) | 0o600, os.makedev(1, 3))


CREATIONS: dict[str, Attempt] = {
    "open": create,
    "mkdir": Path.mkdir,
    "symlink": lambda path: path.symlink_to("x"),
    "fifo": os.mkfifo,
    "mknod": make_device,
    "socket": listen,
}
CHANGES: dict[str, Attempt] = {
    "write": open_to(os.O_WRONLY),
    "append": open_to(os.O_WRONLY | os.O_APPEND),
    "read and write": open_to(os.O_RDWR),
    "O_TRUNC": open_to(os.O_RDONLY | os.O_TRUNC),
    "truncate": lambda path: os.truncate(path, 0),
    "unlink": Path.unlink,
    "rename": lambda path: path.rename(path.with_name("new")),
    "rename onto": lambda path: path.rename(path.with_name("data.xml")),
    "chmod": lambda path: path.chmod(0o777),
    "chown": lambda path: os.chown(path, 1, 1),
    "utimens": lambda path: os.utime(path, (1, 1)),
    "touch": os.utime,
    "setxattr": lambda path: os.setxattr(path, "user.x", b"1"),
    "removexattr": lambda path: os.removexattr(path, "user.webarc.url"),
}


#: What the kernel answers an owner who is not root by itself, since what is archived has the mode 0444.
BY_MODE = (
    dict.fromkeys(("write", "append", "read and write", "O_TRUNC", "truncate"), errno.EACCES)
    | {"setxattr": errno.EACCES, "removexattr": errno.EACCES, "chown": errno.EPERM}
    if os.geteuid() != 0
    else {}
)


def number_of(attempt: Attempt, path: Path) -> int | None:
    try:
        attempt(path)
    except OSError as error:
        return error.errno
    return None


@pytest.mark.parametrize("what", CREATIONS)
def test_nothing_is_created(site: Mounted, what: str) -> None:
    """S-create-1, S-create-2"""
    answers = {place: number_of(CREATIONS[what], site / place / "new") for place in PLACES}
    assert answers == dict.fromkeys(PLACES, errno.EPERM)
    if what not in ("open", "mkdir"):
        answers = {place: number_of(CREATIONS[what], site / place / "new") for place in ADDING}
        assert answers == dict.fromkeys(ADDING, errno.EPERM)
    answers = {place: number_of(CREATIONS[what], site / place / "new") for place in OLD_PLACES}
    assert answers == dict.fromkeys(OLD_PLACES, errno.EROFS)


@pytest.mark.parametrize("what", [what for what in CREATIONS if what != "socket"])
def test_names_that_are_there(site: Mounted, what: str) -> None:
    """S-create-3"""
    there = [DOMAIN, ".changes", ".snapshots", f"{DOMAIN}/index.html/data.html", f"{OLD}/index.html"]
    assert {name: number_of(CREATIONS[what], site / name) for name in there} == dict.fromkeys(there, errno.EEXIST)


def test_hard_links(site: Mounted) -> None:
    """S-link-1"""
    source = site / f"{DOMAIN}/index.html/data.html"
    assert number_of(lambda path: os.link(source, path), site / f"{DOMAIN}/index.html/link") == errno.EPERM
    assert number_of(lambda path: os.link(source, path), site / f"{OLD}/link") == errno.EROFS


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_archived_never_changes(site: Mounted, what: str) -> None:
    """S-change-1, S-change-2"""
    attempt = CHANGES[what]
    assert number_of(attempt, site / f"{DOMAIN}/index.html/data.html") == BY_MODE.get(what, errno.EPERM)
    assert number_of(attempt, site / f"{DOMAIN}/index.html/notes.txt") == BY_MODE.get(what, errno.EPERM)
    assert number_of(attempt, site / f"{OLD}/index.html/data.html") == BY_MODE.get(what, errno.EROFS)
    if "O_TRUNC" not in what and what not in ("rename onto",):
        assert number_of(attempt, site / f"{DOMAIN}/index.html/none.txt") == errno.ENOENT
    assert (site / f"{DOMAIN}/index.html/data.html").read_bytes() == PAGES["index.html"]


def test_folders_never_change(site: Mounted) -> None:
    """S-change-1, S-change-2"""
    for place, number in ((f"{DOMAIN}/blog", errno.EPERM), (DOMAIN, errno.EPERM), (f"{OLD}/blog", errno.EROFS)):
        for what in ("rename", "chmod", "chown", "utimens", "setxattr"):
            by_mode = errno.EPERM if what == "chown" and os.geteuid() != 0 else number
            assert number_of(CHANGES[what], site / place) == by_mode, (place, what)
        assert number_of(Path.rmdir, site / place) == number
    moved = number_of(lambda path: path.rename(site / f"{OLD}/x"), site / f"{DOMAIN}/index.html/notes.txt")
    assert moved == errno.EROFS
    assert number_of(lambda path: path.rename(site / "x"), site / ".changes") == errno.EPERM


def test_read_only_mount(archive: Archive, mount: Mounter) -> None:
    """S-ro-1"""
    archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive, "-o", "ro")
    folder = mounted / f"{DOMAIN}/index.html"
    answers = {what: number_of(attempt, folder / "new") for what, attempt in CREATIONS.items()}
    answers |= {what: number_of(attempt, folder / "data.html") for what, attempt in CHANGES.items()}
    assert answers == dict.fromkeys(answers, errno.EROFS)
    archives.publish(archive, pages={"index.html": b"2"})
    assert (folder / "data.html").read_bytes() in (b"1", b"2")


AS_OTHER_USER = """
import os, sys
from tests.mount.test_refusals import CHANGES, CREATIONS, number_of
from pathlib import Path
arc = Path(sys.argv[1])
assert (arc / "data.html").read_bytes() and os.listdir(arc)
answers = {what: number_of(attempt, arc / "new") for what, attempt in CREATIONS.items()}
answers |= {what: number_of(attempt, arc / "data.html") for what, attempt in CHANGES.items()}
print({what: number for what, number in answers.items() if number != 13})
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_other_users(site: Mounted, other_user: Other) -> None:
    """S-perm-1, S-open-1"""
    done = other_user.run(other_user.python, "-c", AS_OTHER_USER, site / f"{DOMAIN}/index.html")
    # chmod, chown and times are the owner's alone: the kernel says EPERM by itself.
    assert done.stdout.strip() == str(dict.fromkeys(("chmod", "chown", "utimens"), errno.EPERM)), done.stderr
