"""What the kernel keeps, and what it is told to drop: the fast adapter's own promises (SEMANTICS.md section 7)."""

# The tests speak in system calls.
# ruff: noqa: PTH116, PTH208
from __future__ import annotations

import errno
import itertools
import mmap
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mount.conftest import PAGES, Mounter
from tests.support import archives
from tests.support.archives import DOMAIN, FIRST
from tests.support.mounts import DETACH, Mounted, run
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import TreeEntry
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import COMMITTER, CommitTag, CrawlMessage
from webarcfs.mount.adapters.requests import STATS

pytestmark = [pytest.mark.mount, pytest.mark.only("libfuse3")]
ARCS = 200
#: Tries until the kernel kept what it was given.
TRIES = 5
#: Requests that it may add in a try that counts; to expire more than what changed costs at least four times as many.
SPARE = 15
SITE = {f"d{number // 50}/p{number}.html": b"page %d" % number for number in range(ARCS)}


def requests(mounted: Mounted) -> Counter[str]:
    """What has reached user space so far."""
    words = os.getxattr(mounted.point, STATS).decode().split()
    return Counter({kind: int(count) for kind, _, count in (word.partition("=") for word in words)})


@contextmanager
def asked(mounted: Mounted) -> Iterator[Counter[str]]:
    """The requests inside the block, without the one that counts them; read them afterwards."""
    found: Counter[str] = Counter()
    before = requests(mounted)
    yield found
    found.update(requests(mounted) - before - Counter(getxattr=1))


def asks(
    mounted: Mounted,
    holds: Callable[[Counter[str]], bool],
    look: Callable[[], object],
    change: Callable[[], object] = lambda: None,
) -> None:
    """That after a change a look's requests are as few as they must be, in one of some tries.

    The kernel may drop what it keeps at any time, some kernels a page that lies cold for a second, and asks again then:
    that adds requests and takes none away.
    """
    tries: list[Counter[str]] = []

    def tried() -> bool:
        look()
        look()
        change()
        with asked(mounted) as found:
            look()
        tries.append(found)
        return holds(found)

    assert any(tried() for _ in range(TRIES)), tries


def grep(point: Path, words: str = "page") -> int:
    return len(run("grep", "-r", words, point).stdout.splitlines())


def wait_for(mounted: Mounted, tag: CommitTag) -> None:
    eventually(lambda: str(tag) in (mounted / ".changes").read_text())


def test_a_warm_walk_asks_nothing(archive: Archive, mount: Mounter) -> None:
    """S-cache-1"""
    archives.publish_many(archive, SITE.items())
    read_only = mount(archive, "-o", "ro,stats")

    def walk() -> None:
        assert grep(read_only / DOMAIN) == ARCS
        assert len(run("find", read_only / DOMAIN, "-type", "f", "-size", "-9").stdout.splitlines()) == 3 * ARCS

    asks(read_only, lambda found: found.total() < 20, walk)
    writable = mount(archive, "-o", "stats")

    def opens_alone(found: Counter[str]) -> bool:
        others = found.total() - found["open"] - found["release"]
        return found["open"] == found["release"] == 3 * ARCS and others < 20

    asks(writable, opens_alone, lambda: grep(writable / DOMAIN))


def test_a_publication_expires_what_it_changed(archive: Archive, mount: Mounter) -> None:
    """S-cache-2"""
    archives.publish_many(archive, SITE.items())
    mounted = mount(archive, "-o", "ro,stats")

    def walk() -> None:
        assert grep(mounted / DOMAIN) == ARCS

    def change() -> None:
        wait_for(mounted, archives.publish(archive, pages={"d0/p0.html": b"page %d" % next(numbers)}))

    def is_little(found: Counter[str]) -> bool:
        # The new ARC, its three files, and the listing of the folder that holds it.
        return found["read"] <= 3 + SPARE and found["readdirplus"] <= 6 + SPARE and found.total() <= 20 + SPARE

    numbers = itertools.count(ARCS)
    asks(mounted, is_little, walk, change)
    assert (mounted / f"{DOMAIN}/d0/p0.html/data.html").read_bytes() == b"page %d" % (next(numbers) - 1)
    asks(
        mounted,
        lambda found: found.total() <= 8 + SPARE,
        walk,
        lambda: wait_for(mounted, archives.publish(archive, pages={})),
    )


def test_an_arc_above_others_leaves_them_alone(archive: Archive, mount: Mounter) -> None:
    """S-cache-2, S-stat-3"""
    archives.publish(archive, pages={"blog": b"page 1", **{f"blog/{number}": b"page" for number in range(20)}})
    mounted = mount(archive, "-o", "ro,stats")
    blog = mounted / f"{DOMAIN}/blog"
    before, numbers = os.stat(blog).st_ino, itertools.count(2)

    def walk() -> None:
        assert grep(blog) == 21

    def change() -> None:
        wait_for(mounted, archives.publish(archive, pages={"blog": b"page %d" % next(numbers)}))

    asks(mounted, lambda found: found["read"] <= 3 + SPARE and found.total() <= 15 + SPARE, walk, change)
    last = next(numbers) - 1
    assert (blog / "data").read_bytes() == b"page %d" % last and os.stat(blog).st_ino == before
    assert os.stat(blog).st_mtime == FIRST.timestamp() + last - 1
    wait_for(mounted, archives.publish(archive, pages={"blog": None}))
    assert not (blog / "data").exists() and (blog / "7/data").read_bytes() == b"page"


def test_names_that_were_missed_appear(archive: Archive, mount: Mounter) -> None:
    """S-cache-3"""
    first = archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive, "-o", "stats")
    tag = CommitTag(first.crawl_time.replace(second=1), DOMAIN)
    other = CommitTag(FIRST, "new.example")
    missed = [f"{DOMAIN}/new.html", f"{DOMAIN}/index.html/note.txt", f".snapshots/{tag}", f".snapshots/{DOMAIN}/{tag}"]
    missed += ["new.example", ".snapshots/new.example", f".snapshots/{other}"]

    def miss() -> None:
        assert not any(os.path.lexists(mounted / path) for path in missed)

    asks(mounted, lambda found: found.total() == 0, miss)
    assert archives.publish(archive, pages={"new.html": b"2"}) == tag
    wait_for(mounted, tag)
    archives.add(archive, "index.html/note.txt", b"note")
    wait_for(mounted, archives.publish(archive, "new.example", {"index.html": b"3"}))
    eventually((mounted / f"{DOMAIN}/index.html/note.txt").exists)
    assert [path for path in missed if not os.path.lexists(mounted / path)] == []
    assert (mounted / f".snapshots/{tag}/index.html/note.txt").read_bytes() == b"note"
    assert "new.example" in os.listdir(mounted.point) and "new.example" in os.listdir(mounted / ".snapshots")


def test_a_file_being_written_is_not_asked_about(archive: Archive, mount: Mounter) -> None:
    """S-cache-4"""
    archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive, "-o", "stats")
    path = mounted / f"{DOMAIN}/index.html/note.txt"
    path.parent.stat()
    with asked(mounted) as found:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        created = os.fstat(fd)
    assert (found["create"], found["getattr"]) == (1, 0), found
    assert (created.st_size, created.st_mode & 0o777, created.st_uid) == (0, 0o644, os.getuid())
    try:
        os.write(fd, b"12345")
        with asked(mounted) as found:
            assert [os.stat(path).st_size for _ in range(9)] == [os.fstat(fd).st_size for _ in range(9)] == [5] * 9
        assert found.total() <= 3, found
        sizes = [5]
        for change in (
            lambda: os.pwrite(fd, b"x", 9_999),
            lambda: os.ftruncate(fd, 20_000),
            lambda: os.truncate(path, 50),
            lambda: os.posix_fallocate(fd, 0, 8_192),
            lambda: os.ftruncate(fd, 0),
        ):
            change()
            sizes += [os.fstat(fd).st_size, os.stat(path).st_size]
        assert sizes == [5, 10_000, 10_000, 20_000, 20_000, 50, 50, 8_192, 8_192, 0, 0]
        assert (os.fstat(fd).st_ino, os.fstat(fd).st_mtime) == (created.st_ino, created.st_mtime)
    finally:
        os.close(fd)
    assert os.stat(path).st_mode & 0o777 == 0o444


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the kernel does not refuse by mode")
def test_a_draft_that_is_written_as_a_version_too(archive: Archive, mount: Mounter) -> None:
    """S-cache-4, S-add-2: what is confirmed and still open has two inodes, by both of which it is written."""
    archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive)
    path = mounted / f"{DOMAIN}/index.html/note.txt"
    first = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(first, b"12345")
        assert os.fstat(first).st_size == 5
        os.fsync(first)
        assert os.fstat(first).st_size == os.stat(path).st_size == 5
        for number in range(2):
            second = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.write(second, b"678")
            assert os.fstat(first).st_size == 8 + 3 * number
            os.close(second)
            assert os.fstat(first).st_size == os.stat(path).st_size == 8 + 3 * number
        with path.open("wb"):
            assert os.fstat(first).st_size == 0
        os.pwrite(first, b"9", 0)
        assert os.fstat(first).st_size == 1 and os.pread(first, 9, 0) == b"9"
    finally:
        os.close(first)
    assert path.read_bytes() == b"9"


def test_a_domain_comes_and_goes_without_the_feed(archive: Archive, mount: Mounter, tmp_path: Path) -> None:
    """S-cache-3, S-state-3"""
    archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive)
    path, away = mounted / f"{DOMAIN}/index.html/data.html", tmp_path / "away.git"
    for _ in range(2):
        assert path.read_bytes() == b"1"
        shutil.move(archive.repository(DOMAIN), away)
        eventually(lambda: not path.exists())
        assert os.listdir(mounted.point) == [".changes"]
        shutil.move(away, archive.repository(DOMAIN))
        eventually(path.exists)


def test_fstat_tells_of_the_version(archive: Archive, mount: Mounter) -> None:
    """S-stat-5, S-read-2"""
    archives.publish(archive, pages={"index.html": b"old and long"})
    for options in ("rw", "ro"):
        mounted = mount(archive, "-o", options)
        path = mounted / f"{DOMAIN}/index.html/data.html"
        archives.publish(archive, pages={"index.html": b"old and long"})
        eventually(lambda path=path: path.read_bytes() == b"old and long")  # type: ignore[misc]
        with path.open("rb") as file:
            number = os.fstat(file.fileno()).st_ino
            wait_for(mounted, archives.publish(archive, pages={"index.html": b"new"}))
            assert path.read_bytes() == b"new" and path.stat().st_ino != number
            assert (os.fstat(file.fileno()).st_size, os.fstat(file.fileno()).st_ino) == (12, number)
            assert file.read() == b"old and long"


def test_shared_mapping(site: Mounted) -> None:
    """S-mmap-2"""
    with (site / f"{DOMAIN}/big.bin/data.bin").open("rb") as file:
        for access in ({"access": mmap.ACCESS_READ}, {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ}):
            with mmap.mmap(file.fileno(), 0, **access) as mapped:
                assert mapped[1000:2000] == PAGES["big.bin"][1000:2000]


def test_inside_an_arc_that_is_replaced(archive: Archive, mount: Mounter) -> None:
    """S-state-5"""
    archives.publish(archive, pages={"index.html": b"1", "d/gone.html": b"g"})
    mounted = mount(archive)
    arc, folder = mounted / f"{DOMAIN}/index.html", mounted / f"{DOMAIN}/d"
    inside, above = (os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in (arc, folder))
    try:
        assert sorted(os.listdir(inside)) == ["data.html", "data.xml", "headers.http"]
        wait_for(
            mounted, archives.publish(archive, pages={"index.html": b"2", "d/new.html": b"n", "d/gone.html": None})
        )
        assert (arc / "data.html").read_bytes() == b"2"
        assert os.listdir(above) == ["new.html"]
        old = os.open("data.html", os.O_RDONLY, dir_fd=inside)
        assert os.read(old, 10) == b"1"
        os.close(old)
        archives.add(archive, "index.html/note.txt", b"note")
        eventually((arc / "note.txt").exists)
        assert "note.txt" in os.listdir(arc) and "note.txt" not in os.listdir(inside)
    finally:
        os.close(inside)
        os.close(above)


def test_history_and_present_are_refused_each_in_its_way(archive: Archive, mount: Mounter) -> None:
    """S-change-2: a version that is part of both is one st_ino."""
    tag = archives.publish(archive, pages={"index.html": b"1"})
    mounted = mount(archive)
    now, old = (mounted / f"{place}/index.html/data.html" for place in (DOMAIN, f".snapshots/{tag}"))
    assert now.read_bytes() == old.read_bytes() and now.stat().st_ino == old.stat().st_ino
    for path, number in ((now, errno.EPERM), (old, errno.EROFS), (now, errno.EPERM)):
        with pytest.raises(OSError) as caught:
            path.chmod(0o600)
        assert caught.value.errno == number


MANY = int(os.environ.get("LARGE_FOLDER", "3000"))


def test_large_folder(archive: Archive, mount: Mounter) -> None:
    """S-readdir-2"""
    store, tag = archives.store_of(archive), CommitTag(FIRST, DOMAIN)
    tree, costs = "", []
    for count in (MANY // 4, MANY):  # one state after the other
        arc = store.write_tree([TreeEntry("data", store.write_blob(b"%d" % count), False)])
        tree = store.write_tree([TreeEntry(f"entry-{number:06}", arc, True) for number in range(count)])
        head = store.head()
        message = str(CrawlMessage(tag, "test", True, 1))
        commit = store.write_commit(tree, [head.oid] if head else [], message, COMMITTER, int(time.time()))
        subprocess.run(["git", "-C", str(store.path), "update-ref", "refs/heads/main", commit], check=True)
        mounted = mount(archive, "-o", "stats")
        before, begun = memory(mounted), processor_time(mounted)
        names = os.listdir(mounted / DOMAIN)
        costs.append((processor_time(mounted) - begun, requests(mounted)["readdirplus"]))
        assert sorted(names) == [f"entry-{number:06}" for number in range(count)]
        assert {entry.name: entry.inode() for entry in os.scandir(mounted / DOMAIN)}["entry-000007"] == (
            os.stat(mounted / f"{DOMAIN}/entry-000007").st_ino
        )
        assert memory(mounted) - before < 2_000 * count / 1024 + 4_000, "KiB"
    (seconds, asked_for), (seconds_of_four, asked_for_four) = costs
    assert asked_for_four <= 4 * asked_for + 4
    # Were it quadratic, it would take 16 times as long; the clock ticks in hundredths.
    assert seconds_of_four <= 8 * seconds + 0.2


def processor_time(mounted: Mounted) -> float:
    """Seconds that the mount's process has computed."""
    words = Path(f"/proc/{mounted.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory(mounted: Mounted) -> int:
    """Resident memory of the mount's process, KiB."""
    status = Path(f"/proc/{mounted.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def test_readers_during_publications_and_repacks(archive: Archive, mount: Mounter) -> None:
    """S-state-1, S-state-6"""
    pages = {f"p{number}": b"0" for number in range(20)}
    archives.publish(archive, pages=pages)
    wrong: list[str] = []
    for options in ("rw", "ro"):
        mounted = mount(archive, "-o", options)
        end = threading.Event()

        def read(mounted: Mounted = mounted, end: threading.Event = end) -> None:
            last = dict.fromkeys(pages, -1)
            while not end.is_set():
                for page in pages:
                    try:
                        arc = mounted / f"{DOMAIN}/{page}"
                        os.listdir(arc)
                        body = int((arc / "data").read_bytes())
                    except OSError as error:
                        wrong.append(f"{page}: {error}")
                        continue
                    if body < last[page]:
                        wrong.append(f"{page}: {body} after {last[page]}")
                    last[page] = body

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        try:
            for _ in range(15):
                number = len(list(Feed(archive.changes).lines()))
                chosen = {f"p{(number + each) % 20}": b"%d" % number for each in range(3)}
                tag = archives.publish(archive, pages=chosen)
                if number % 10 == 5:
                    repack(archive)
                wait_for(mounted, tag)
                found = {page: (mounted / f"{DOMAIN}/{page}/data").read_bytes() for page in chosen}
                assert found == chosen
        finally:
            end.set()
            for reader in readers:
                reader.join(30)
        # A name may be gone for a moment between its folder's listing and itself; nothing else may go wrong.
        assert [each for each in wrong if "No such file" not in each] == []
        assert len(wrong) < 10


def repack(archive: Archive) -> None:
    subprocess.run(["git", "-C", str(archive.repository(DOMAIN)), "repack", "-q", "-a", "-d"], check=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, None])
def test_nothing_is_left(archive: Archive, mount: Mounter, number: signal.Signals | None) -> None:
    """S-umount-1, S-signal-1"""
    archives.publish(archive, pages={**SITE, "big.bin": b"0123456789" * 500_000})
    mounted = mount(archive, "-o", "stats")
    big = mounted / f"{DOMAIN}/big.bin/data.bin"
    big.read_bytes()
    grep(mounted.point)
    descriptors, threads = (len(os.listdir(f"/proc/{mounted.pid}/{what}")) for what in ("fd", "task"))
    for _ in range(20):
        assert len(big.read_bytes()) == 5_000_000
        grep(mounted / f"{DOMAIN}/d0")
    eventually(lambda: len(os.listdir(f"/proc/{mounted.pid}/fd")) <= descriptors)
    assert len(os.listdir(f"/proc/{mounted.pid}/task")) == threads
    with big.open("rb", buffering=0) as file:
        file.read(1)
        if number:
            os.kill(mounted.pid, number)
            eventually(lambda: not os.path.ismount(mounted.point))
        else:
            assert run(*DETACH, mounted.point).returncode == 0
        assert len(file.read()) > 0
    assert mounted.ended()
    log = (archive.log / "mount.log").read_text()
    assert "requests: " in log and "is unmounted" in log and "ERROR" not in log


def test_a_listing_under_way_tells_of_nothing_old(archive: Archive, mount: Mounter) -> None:
    """S-state-1, S-readdir-1: who goes on with a listing that began before a publication hides nothing of it."""
    archives.publish_many(archive, ((f"p{number:04}.html", b"old") for number in range(1500)))
    mounted = mount(archive)
    folder = mounted / DOMAIN
    with os.scandir(folder) as entries:
        listed = [next(entries).name]
        tag = archives.publish(archive, pages={"p1400.html": b"new", "p1450.html": None})
        wait_for(mounted, tag)
        listed += [entry.name for entry in entries]
    assert sorted(listed) == [f"p{number:04}.html" for number in range(1500)]
    assert (folder / "p1400.html/data.html").read_bytes() == b"new"
    assert not (folder / "p1450.html").exists()
    assert len(os.listdir(folder)) == 1499


def test_a_rename_cuts_off_no_listing(archive: Archive, mount: Mounter) -> None:
    """S-readdir-1: what is renamed while its folder is listed may be missing; what stands behind it is not."""
    stored = {f"{letter}{number:0200}" for letter in "by" for number in range(250)}  # several requests
    archives.publish(archive, pages={"a.html": b"1"}, extra={f"a.html/{name}": b"" for name in stored})
    mounted = mount(archive)
    arc = mounted / f"{DOMAIN}/a.html"
    renamed, behind = [f"m{number}" for number in range(5)], {f"z{number}" for number in range(5)}
    for name in (*renamed, *sorted(behind)):
        (arc / name).touch()
    with os.scandir(arc) as entries:
        listed = {next(entries).name}
        for name in renamed:
            (arc / name).rename(arc / f"n{name}")
        listed |= {entry.name for entry in entries}
    assert stored | behind <= listed
