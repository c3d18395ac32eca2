"""Reading through a real mount: names, attributes, contents (SEMANTICS.md sections 1, 3 and 4)."""

# The tests speak in system calls.
# ruff: noqa: PTH115, PTH116, PTH208
from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from agent.operations import records
from tests.mount.conftest import ADDITIONS, BIG, PAGES, Mounter
from tests.support import archives
from tests.support.archives import CREATED, DOMAIN, FIRST
from tests.support.histories import History, Step
from tests.support.mounts import Mounted, run
from tests.support.recorded import published
from tests.support.waiting import eventually
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.metadata import compact_time
from webarcfs.archive.model.url_lists import REDIRECTS, Redirect, place_of, write_list

pytestmark = pytest.mark.mount

OLD = f"2026-11-21T03:00:00@{DOMAIN}"
NEW = f"2026-11-21T03:00:01@{DOMAIN}"
OTHER = "other.example:8080"


def data_file(arc: str) -> str:
    return f"{arc}/{arc_paths.data_name(f'http://{DOMAIN}/{arc}')}"


def refused(number: int, action: object, *arguments: object, **more: object) -> None:
    with pytest.raises(OSError) as caught:
        action(*arguments, **more)  # type: ignore[operator]
    assert caught.value.errno == number, os.strerror(caught.value.errno or 0)


def test_root_lists_changes_and_domains(site: Mounted) -> None:
    """S-names-1"""
    assert sorted(os.listdir(site.point)) == [".changes", OTHER, DOMAIN]


def test_snapshots_are_found_by_name(site: Mounted) -> None:
    """S-names-2"""
    assert sorted(os.listdir(site / ".snapshots")) == [OTHER, DOMAIN]
    assert sorted(os.listdir(site / f".snapshots/{DOMAIN}")) == [OLD, NEW]
    assert os.readlink(site / f".snapshots/{DOMAIN}/{OLD}") == f"../{OLD}"
    assert (site / f".snapshots/{DOMAIN}/{OLD}/index.html/data.html").read_bytes() == b"<title>old</title>"
    assert (site / f".snapshots/{NEW}/index.html/data.html").read_bytes() == PAGES["index.html"]
    assert (site / f".snapshots/{OLD}/gone.html").is_dir()
    assert not (site / f"{DOMAIN}/gone.html").exists()
    for missing in (
        f"2026-11-21T03:00:09@{DOMAIN}",
        "no.example",
        f"nonsense@{DOMAIN}",
        "@",
        f"2026-11-21T03:00:00@{OTHER}x",
    ):
        assert not (site / f".snapshots/{missing}").exists()


def test_path_of_metadata_works_in_a_snapshot(site: Mounted, archive: Archive, mount: Mounter) -> None:
    """S-names-3"""
    path = os.getxattr(site / f"{DOMAIN}/blog/x", "user.webarc.path").decode()
    assert (Path(f"{site.point}/.snapshots/{OLD}{path}") / "data").read_bytes() == b"a post"
    assert DOMAIN not in os.listdir(site / f".snapshots/{OLD}")
    tag = archives.publish(archive, pages={"index.html": b"x", f"{DOMAIN}/page": b"of that name"})
    other = mount(archive)
    assert not (other / f".snapshots/{tag}/{DOMAIN}").is_symlink()
    assert (other / f".snapshots/{tag}/{DOMAIN}/page/data").read_bytes() == b"of that name"


def test_redirects_are_found_by_name(archive: Archive, mount: Mounter) -> None:
    """S-names-6"""
    url = f"http://{DOMAIN}/old"
    raw = write_list([Redirect(url, 301, f"http://{DOMAIN}/", CREATED)])
    tag = archives.publish(archive, pages={"index.html": b"x"}, extra={place_of(url): raw})
    mounted = mount(archive)
    for folder in (DOMAIN, f".snapshots/{tag}"):
        assert os.listdir(mounted / folder) == ["index.html"]
        assert (mounted / folder / place_of(url)).read_bytes() == raw
        assert os.listdir(mounted / folder / REDIRECTS) == [place_of(url).split("/")[1]]
        number = errno.EPERM if folder == DOMAIN else errno.EROFS
        refused(number, (mounted / folder / REDIRECTS / "new").write_bytes, b"x")
    assert "old" not in run("find", str(mounted.point)).stdout
    assert REDIRECTS not in run("find", str(mounted.point)).stdout


def test_what_a_record_has_is_found_by_its_name(archive: Archive, mount: Mounter) -> None:
    """S-names-7"""
    steps = [Step("p", {"a": "1"}), Step("q", {"b": "2"}), Step("p", {"a": "3"})]
    tags = published(archive, History(steps))
    ids = [f"{compact_time(tag.crawl_time)}-{step.publication}" for tag, step in zip(tags, steps, strict=True)]
    catch_up(archive)
    records.attach(archive, ids[0], "letter.pdf", BytesIO(b"x"), Acting("anna", None))
    mounted = mount(archive)
    folders = [mounted / f".snapshots/{each}" for each in ids]
    assert [os.listdir(each) for each in folders] == [[DOMAIN]] * 3
    assert os.readlink(folders[0] / DOMAIN) == f"../{tags[0]}"  # it saw all that there was
    assert (folders[0] / DOMAIN / "a/data").read_bytes() == b"1"
    assert os.listdir(folders[1] / DOMAIN) == ["b"] and os.listdir(folders[2] / DOMAIN) == ["a"]
    assert (folders[2] / DOMAIN / "a/data").read_bytes() == b"3"
    assert os.listdir(mounted / ".snapshots") == [DOMAIN]
    refused(errno.ENOENT, os.listdir, mounted / f".snapshots/{ids[0]}x")
    refused(errno.ENOENT, os.listdir, folders[1] / "other.example")
    refused(errno.EROFS, (folders[1] / DOMAIN / "b/new").write_bytes, b"x")


def test_names(site: Mounted) -> None:
    """S-names-4"""
    home = os.fsencode(site / DOMAIN)
    refused(errno.ENOENT, os.stat, home + b"/nothing")
    refused(errno.ENOENT, os.stat, home + b"/INDEX.HTML")
    refused(errno.ENOENT, os.stat, home + b"/\xff\xfe")
    refused(errno.ENOENT, os.stat, os.fsencode(site.point) + b"/\xff")
    refused(errno.ENOENT, os.stat, home + b"/" + b"x" * 255)
    refused(errno.ENAMETOOLONG, os.stat, home + b"/" + b"x" * 256)
    refused(errno.ENAMETOOLONG, os.mkdir, home + b"/" + b"x" * 256)
    refused(errno.ENOTDIR, os.stat, home + b"/index.html/data.html/x")
    for name in (".Trash", ".git", f"x@{DOMAIN}", DOMAIN.upper()):
        assert not (site / name).exists()


def test_arcs_in_arcs_and_additions(site: Mounted) -> None:
    """S-names-5"""
    assert sorted(os.listdir(site / f"{DOMAIN}/blog")) == ["data", "data.xml", "headers.http", "x"]
    assert b'path="/www.example.org/blog/x"' in (site / f"{DOMAIN}/blog/x/data.xml").read_bytes()
    for path, body in ADDITIONS.items():
        assert (site / f"{DOMAIN}/{path}").read_bytes() == body


def test_modes_and_sizes(site: Mounted) -> None:
    """S-stat-1"""
    found = os.stat(site / f"{DOMAIN}/big.bin/data.bin")
    assert stat.filemode(found.st_mode) == "-r--r--r--"
    assert (found.st_size, found.st_blocks, found.st_blksize) == (len(BIG), len(BIG) // 512, 128 * 1024)
    owner = os.stat(os.getxattr(site.point, "user.webarc.archive"))
    assert (found.st_uid, found.st_gid, found.st_nlink) == (owner.st_uid, owner.st_gid, 1)
    folder = os.stat(site / f"{DOMAIN}/big.bin")
    assert (stat.filemode(folder.st_mode), folder.st_size, folder.st_nlink) == ("drwxr-xr-x", 0, 1)
    link = os.lstat(site / f".snapshots/{DOMAIN}/{OLD}")
    assert (stat.filemode(link.st_mode), link.st_size) == ("lrwxrwxrwx", len(OLD) + 3)


def test_times(site: Mounted) -> None:
    """S-stat-2"""
    created, first, second = CREATED.timestamp(), FIRST.timestamp(), FIRST.timestamp() + 1
    times = {
        "index.html/data.html": created,
        "index.html/data.xml": second,
        "index.html/headers.http": second,
        "index.html/notes.txt": second,
        "index.html/more": second,
        "index.html/more/deep/words.txt": second,
        "index.html": second,
        "blog/x": first,
        "blog/x/data.xml": first,
        "a b": second,
        "": second,
    }
    for path, time in times.items():
        found = os.stat(site / f"{DOMAIN}/{path}")
        assert (found.st_mtime, found.st_ctime, found.st_atime) == (time, time, time), path
    assert os.stat(site / f".snapshots/{OLD}").st_mtime == first
    archive = Path(os.fsdecode(os.getxattr(site.point, "user.webarc.archive")))
    assert int(os.stat(site.point).st_mtime) == int(os.stat(archive / "changes").st_mtime)


def test_inode_numbers(archive: Archive, mount: Mounter) -> None:
    """S-stat-3, S-mount-6"""
    archives.publish(archive, pages={"index.html": b"1", "d/same": b"same"})
    one, two = mount(archive), mount(archive)
    names = ["", "/index.html", "/index.html/data.html", "/d", "/d/same", "/d/same/data", "/d/same/data.xml"]

    def numbers(mounted: Mounted) -> list[int]:
        return [os.stat(mounted / f"{DOMAIN}{name}").st_ino for name in names]

    before = numbers(one)
    assert before == numbers(two) and len(set(before)) == len(names)
    listed = {entry.name: entry.inode() for entry in os.scandir(one / f"{DOMAIN}/index.html")}
    assert all(os.stat(one / f"{DOMAIN}/index.html/{name}").st_ino == ino for name, ino in listed.items())
    tag = archives.publish(archive, pages={"index.html": b"2"})
    for mounted in (one, two):
        eventually(lambda mounted=mounted: str(tag) in (mounted / ".changes").read_text())  # type: ignore[misc]
    after = numbers(one)
    changed = [name for name, old, new in zip(names, before, after, strict=True) if old != new]
    assert changed == ["/index.html", "/index.html/data.html"]
    archives.add(archive, "d/same/note.txt", b"note")
    eventually((one / f"{DOMAIN}/d/same/note.txt").exists)
    assert numbers(one) == after


@pytest.mark.only("fusepy")
def test_fstat_answers_for_the_path(archive: Archive, mount: Mounter) -> None:
    """S-stat-4"""
    archives.publish(archive, pages={"index.html": b"old and long"})
    mounted = mount(archive)
    path = mounted / f"{DOMAIN}/index.html/data.html"
    with path.open("rb") as file:
        archives.publish(archive, pages={"index.html": b"new"})
        eventually(lambda: path.stat().st_size == 3)
        assert os.fstat(file.fileno()).st_size == 3
        assert file.read() == b"old and long"


def test_statfs(site: Mounted) -> None:
    """S-statfs-1"""
    here, below = os.statvfs(site / DOMAIN), os.statvfs(os.getxattr(site.point, "user.webarc.archive"))
    assert (here.f_blocks, here.f_bsize, here.f_namemax) == (below.f_blocks, below.f_bsize, 255)


def test_open_for_reading(site: Mounted) -> None:
    """S-open-1"""
    fd = os.open(site / f"{DOMAIN}/index.html", os.O_RDONLY)
    refused(errno.EISDIR, os.read, fd, 1)
    os.close(fd)
    for path in (".changes", f"{DOMAIN}/index.html/data.xml", f".snapshots/{OLD}/index.html/headers.http"):
        assert (site / path).read_bytes()


def test_every_byte_is_read(site: Mounted) -> None:
    """S-read-1"""
    for arc, body in PAGES.items():
        path = site / f"{DOMAIN}/{data_file(arc)}"
        assert path.read_bytes() == body
    fd = os.open(site / f"{DOMAIN}/big.bin/data.bin", os.O_RDONLY)
    for offset in (0, 1, 4095, 131071, 1 << 20, len(BIG) - 3, len(BIG), len(BIG) + 5):
        assert os.pread(fd, 200_000, offset) == BIG[offset : offset + 200_000]
    os.close(fd)


def test_many_readers_of_one_large_file(site: Mounted) -> None:
    """S-read-3"""
    path = site / f"{DOMAIN}/big.bin/data.bin"
    with ThreadPoolExecutor(8) as pool:
        assert all(body == BIG for body in pool.map(lambda _: path.read_bytes(), range(8)))
    # One temporary file for all, and none is left.
    eventually(lambda: not _temporary_files(site))


def test_open_file_is_its_version_to_the_end(archive: Archive, mount: Mounter) -> None:
    """S-read-2"""
    old, new = os.urandom(20_000_000), os.urandom(21_000_000)
    archives.publish(archive, pages={"big.bin": old, "small": b"small"})
    mounted = mount(archive)
    big, small = mounted / f"{DOMAIN}/big.bin/data.bin", mounted / f"{DOMAIN}/small/data"
    with big.open("rb", buffering=0) as reader, small.open("rb", buffering=0) as other, big.open("rb") as late:
        start = reader.read(1_000_000)
        tag = archives.publish(archive, pages={"big.bin": new, "small": None})
        eventually(lambda: str(tag) in (mounted / ".changes").read_text())
        assert big.read_bytes() == new
        assert start + b"".join(iter(lambda: reader.read(1 << 17), b"")) == old
        assert late.read() == old
        assert other.read() == b"small"
    assert not small.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_no_room_for_a_large_file(folder: Path, archive: Archive, mount: Mounter) -> None:
    """S-read-3"""
    archives.publish(archive, pages={"big.bin": BIG * 2, "small": b"small"})
    room = folder / "room"
    room.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", room)
    try:
        mounted = mount(archive, environment={"TMPDIR": str(room)})
        path = mounted / f"{DOMAIN}/big.bin/data.bin"
        fd = os.open(path, os.O_RDONLY)
        refused(errno.ENOSPC, os.read, fd, 10)
        assert (mounted / f"{DOMAIN}/small/data").read_bytes() == b"small"
        run("mount", "-o", "remount,size=60m", room)
        assert os.read(fd, 10) == BIG[:10]
        os.close(fd)
        mounted.clear()
    finally:
        run("umount", "-l", room)


@pytest.mark.only("fusepy")
def test_private_mapping(site: Mounted) -> None:
    """S-mmap-1"""
    with (site / f"{DOMAIN}/big.bin/data.bin").open("rb") as file:
        refused(errno.ENODEV, mmap.mmap, file.fileno(), 0, access=mmap.ACCESS_READ)
        with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
            assert mapped[1000:2000] == BIG[1000:2000]


def test_listing(site: Mounted) -> None:
    """S-readdir-1"""
    kinds = {entry.name: entry.is_dir() for entry in os.scandir(site / f"{DOMAIN}/index.html")}
    assert kinds.pop("more") and not any(kinds.values())
    assert sorted(kinds) == sorted(["data.html", "data.xml", "headers.http", "notes.txt", "n" * 255])
    done = run("ls", "-fa", site / f"{DOMAIN}/blog")
    assert sorted(done.stdout.split()) == [".", "..", "data", "data.xml", "headers.http", "x"]


def test_readlink(site: Mounted) -> None:
    """S-readlink-1"""
    assert os.readlink(site / f".snapshots/{NEW}/{DOMAIN}") == "."
    refused(errno.EINVAL, os.readlink, site / f"{DOMAIN}/index.html")
    refused(errno.EINVAL, os.readlink, site / f"{DOMAIN}/index.html/data.html")


def test_metadata_as_attributes(site: Mounted) -> None:
    """S-getxattr-1, S-listxattr-1"""
    arc = site / f"{DOMAIN}/a b/caf\u00e9 \u00fc.html"
    fields = data_xml.metadata((arc / "data.xml").read_bytes()).as_fields()
    assert (fields["url"], fields["status"]) == (f"http://{arc.relative_to(site.point)}", "200")
    assert (fields["commitTag"], fields["captureTime"]) == (OLD, "2026-11-21T03:00:00")
    named = {f"user.webarc.{name}": value for name, value in fields.items()}
    for path in (arc, arc / "data.html", site / f".snapshots/{OLD}/a b/caf\u00e9 \u00fc.html"):
        found = {name: os.getxattr(path, name).decode() for name in os.listxattr(path)}
        assert found == named | {
            "user.xdg.origin.url": f"http://{arc.relative_to(site.point)}",
            "user.mime_type": "text/html",
        }
    for without in (arc / "data.xml", arc / "headers.http", arc.parent, site / ".changes", site / ".snapshots"):
        assert os.listxattr(without) == []


def test_attribute_of_the_root(site: Mounted) -> None:
    """S-getxattr-2, S-listxattr-1"""
    assert os.listxattr(site.point) == ["user.webarc.archive"]
    assert os.getxattr(site.point, "user.webarc.archive") == os.fsencode(site.point.parent / "archive")


def test_attributes_that_are_not_there(site: Mounted) -> None:
    """S-getxattr-3"""
    arc = site / f"{DOMAIN}/index.html"
    refused(errno.ENODATA, os.getxattr, arc, "user.webarc.nothing")
    refused(errno.ENODATA, os.getxattr, arc / "data.xml", "user.webarc.url")
    refused(errno.ENODATA, os.getxattr, arc, "user.webarc.archive")
    refused(errno.EOPNOTSUPP, os.getxattr, arc, "security.capability")
    if os.geteuid() == 0:  # of others the kernel says by itself that there is none
        refused(errno.EOPNOTSUPP, os.getxattr, arc, "trusted.x")
    refused(errno.ENOENT, os.getxattr, arc / "no", "user.x")


def test_fsync_and_ioctl(site: Mounted) -> None:
    """S-fsync-1, S-ioctl-1"""
    fd = os.open(site / f"{DOMAIN}/index.html/data.html", os.O_RDONLY)
    os.fsync(fd)
    os.fdatasync(fd)
    refused(errno.ENOTTY, fcntl.ioctl, fd, 0x1234)
    os.close(fd)
    fd = os.open(site / DOMAIN, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def test_tools_walk_the_present(site: Mounted, tmp_path: Path) -> None:
    """S-tools-1"""
    expected = 1 + 3 * (len(PAGES) + 1) + len(ADDITIONS)
    found = run("find", site.point, "-type", "f")
    assert (found.returncode, len(found.stdout.splitlines())) == (0, expected), found.stderr
    assert run("ls", "-laR", site.point).returncode == 0
    grepped = run("grep", "-rl", "a post", site.point)
    assert grepped.stdout.splitlines() == [str(site / f"{DOMAIN}/blog/x/data")]
    assert run("cp", "-a", site.point, tmp_path / "copy").returncode == 0
    (tmp_path / "tar").mkdir()
    packed = run("sh", "-c", 'tar -C "$1" -cf - . | tar -C "$2" -xpf -', "sh", site.point, tmp_path / "tar")
    assert (packed.returncode, packed.stderr) == (0, "")
    for copy in ("copy", "tar"):
        assert run("diff", "-r", site.point, tmp_path / copy).stdout == ""
        body = tmp_path / copy / f"{DOMAIN}/blog/x/data"
        assert body.stat().st_mtime == CREATED.timestamp()
        assert stat.filemode(body.stat().st_mode) == "-r--r--r--"


def _temporary_files(mounted: Mounted) -> list[str]:
    """Those that it has open; what it says in the end (server.py) is memory."""
    return [link for link in _open_files(mounted) if link.endswith(" (deleted)") and not link.startswith("/memfd:")]


def _open_files(mounted: Mounted) -> list[str]:
    folder = Path(f"/proc/{mounted.pid}/fd")
    return [os.readlink(link) for link in folder.iterdir()]
