"""Every attempt to write is refused, each with its errno (SEMANTICS.md section 5; /Ar-1/)."""

# The tests speak in system calls.
# ruff: noqa: PTH109
from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mount.conftest import PAGES, Desk, Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import Mounted
from tests.support.users import Other
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.errors import NotFound, NotPermitted
from webarcfs.mount.adapters import requests
from webarcfs.mount.adapters.requests import REFUSED, Refusals
from webarcfs.writing.drafts import Opened

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


def refused(folder: Path) -> str:
    """The last reason in a folder, without its time."""
    return os.getxattr(folder, REFUSED).decode().partition(" ")[2]


def no_reason(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        os.getxattr(folder, REFUSED)
        return False
    return REFUSED not in os.listxattr(folder)


def test_why_a_name_is_refused(desk: Desk) -> None:
    """S-getxattr-4, S-listxattr-1, S-log-3"""
    arc, other = desk.arc(), desk.arc()
    assert no_reason(arc)
    (arc / "sub").mkdir()
    assert number_of(create, arc / "none/x") == errno.ENOENT
    assert no_reason(arc)
    assert number_of(create, arc / "data.json") == errno.EPERM
    assert refused(arc) == refused(arc / "sub") == "data.json: 'data.json' is a name that ARCs keep for themselves"
    assert REFUSED in os.listxattr(arc)
    assert number_of(create, arc / "sub/4913") == errno.EPERM
    assert refused(arc).startswith("sub/4913: '4913' is what an editor leaves behind")
    (arc / "notes.txt").write_bytes(b"1")
    assert number_of(lambda path: path.rename(arc / "data.html"), arc / "notes.txt") == errno.EPERM
    assert refused(arc) == "data.html: 'data.html' is there"
    assert number_of(Path.unlink, arc / "data.html") == errno.EPERM
    assert refused(arc).startswith("data.html: archived files are never changed")
    assert number_of(os.mkfifo, os.fsencode(arc) + b"/p\xff") == errno.EPERM  # type: ignore[arg-type]
    assert b" p\xff: " in os.getxattr(arc, REFUSED)
    assert no_reason(other)
    assert "refused: create" in (log := (desk.archive.root / "log/mount.log").read_text("utf-8", "surrogateescape"))
    assert f"{arc.relative_to(desk.mounted.point)}/data.json'" in log
    assert "keep for themselves" in log


@pytest.mark.parametrize("how", ["close", "write", "fsync"])
def test_why_data_xml_is_refused(desk: Desk, how: str) -> None:
    """S-getxattr-4: where the reason comes late, and is the parser's."""
    arc = desk.arc()
    fd = os.open(arc / "data.xml", os.O_WRONLY | os.O_APPEND | (os.O_SYNC if how == "write" else 0))
    try:
        number = number_of(lambda _: os.write(fd, b"<half>"), arc)
        if how == "fsync":
            number = number_of(lambda _: os.fsync(fd), arc)
    finally:
        closed = number_of(lambda _: os.close(fd), arc)
    assert errno.EINVAL in (number, closed)
    assert refused(arc).startswith("data.xml: ")
    assert "half" in refused(arc)


def test_why_it_is_refused_outside_of_arcs(desk: Desk) -> None:
    """S-getxattr-4: the root, a domain, `.schemas`; nothing in history."""
    point, domain = desk.mounted.point, desk.mounted / DOMAIN
    for folder in (point, domain):
        assert number_of(create, folder / "new") == errno.EPERM
        assert refused(folder).startswith("new: archived files are never changed; new files are made in")
    schemas = point / ".schemas"
    assert number_of(create, schemas / "a b") == errno.EINVAL
    assert refused(schemas).startswith("a b: 'a b' is no name for a schema")
    assert number_of(lambda path: path.write_bytes(b"<x/>"), schemas / "x.xsd") == errno.EINVAL
    assert refused(schemas).startswith("x.xsd: ")
    old = point / ".snapshots" / DOMAIN
    assert number_of(create, old / "new") == errno.EROFS
    assert no_reason(old)


ANOTHER = """
import os, sys
try:
    print(os.getxattr(sys.argv[1], "user.webarc.refused"))
except OSError as error:
    print(error.errno, "user.webarc.refused" in os.listxattr(sys.argv[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_a_reason_is_its_users(desk: Desk, other_user: Other) -> None:
    """S-getxattr-4"""
    arc = desk.arc()
    assert number_of(create, arc / "data.json") == errno.EPERM
    done = other_user.run(other_user.python, "-c", ANOTHER, arc)
    assert done.stdout.strip() == f"{errno.ENODATA} False", done.stderr


def test_refusals_are_bounded(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-getxattr-4, S-log-3: by number, length and rate; one line each, whatever is quoted."""
    seconds = [100.0]
    monkeypatch.setattr(requests.time, "monotonic", lambda: seconds[0])
    caplog.set_level("INFO")
    noted = Refusals()

    def place(number: int) -> Opened:
        return Opened(SimpleNamespace(place=ArcVersion("a.example", f"{number}", "t"), path="x"))  # type: ignore[arg-type]

    for number in range(requests.MOST + 500):
        noted.note("write", 1, (place(number), ""), NotPermitted("one\ntwo" + "x" * 10_000))
    noted.note("write", 1, (place(0), ""), NotFound("none"))
    noted.note("write", 1, (place(0), ""), AssertionError("a fault of ours"))
    kept = noted._reasons
    assert len(kept) == requests.MOST
    assert ("/a.example/1499", 1) in kept and ("/a.example/0", 1) not in kept
    assert max(map(len, kept.values())) < requests.LONGEST + 100
    assert len(caplog.messages) == requests.BURST
    assert not any("\n" in line for line in caplog.messages)
    seconds[0] += 1
    noted.note("write", 1, (place(0), ""), NotPermitted("no"))
    assert caplog.messages[-1].endswith(": no; 1480 more before it")
