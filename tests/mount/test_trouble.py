"""Reading when things go wrong around the mount: masses of handles, repacks, an archive that goes, clocks that turn."""

# The tests speak in system calls.
# ruff: noqa: PTH115
from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.mount.test_schemas import SCHEMA
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed

pytestmark = pytest.mark.mount
PAGE = f"{DOMAIN}/index.html/data.html"
HANDLES = {"libfuse3": 10_000, "fusepy": 1_000}
FOLLOWED = int(os.environ.get("FOLLOWED_CRAWLS", "5"))

OPENER = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]) + 100,) * 2)
files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(int(sys.argv[2]))]
print("open", flush=True)
sys.stdin.read()
print(all(os.pread(file, 9, 0) == b"page" for file in files[::100]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for so many files")
def test_ten_thousand_handles(archive: Archive, mount: Mounter, binding: str) -> None:
    """S-open-2"""
    archives.publish(archive, pages={"index.html": b"page", "other": b"other"})
    mounted = mount(archive)
    memory = []
    for _ in range(2):
        command = [sys.executable, "-c", OPENER, str(mounted / PAGE), str(HANDLES[binding])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as opener:
            assert opener.stdout is not None
            assert opener.stdout.readline() == "open\n"
            assert (mounted / f"{DOMAIN}/other/data").read_bytes() == b"other"
            assert len(list(Path(f"/proc/{mounted.pid}/fd").iterdir())) < 100
            memory.append(resident(mounted))
            said, _ = opener.communicate("")
            assert said == "True\n"
    assert memory[1] - memory[0] < 4_000, "KiB: the first ones were let go"


def resident(mounted: Mounted) -> int:
    """Memory of the mount's process, KiB."""
    return int(Path(f"/proc/{mounted.pid}/status").read_text().partition("VmRSS:")[2].split()[0])


def test_repacks_under_readers_leave_nothing_open(archive: Archive, mount: Mounter) -> None:
    """S-state-6"""
    archives.publish(archive, pages={f"p{number}": b"%d" % number * 1000 for number in range(50)})
    mounted = mount(archive)
    for number in range(3):
        tag = archives.publish(archive, pages={"index.html": b"%d" % number})
        repository = str(archive.repository(DOMAIN))
        subprocess.run(["git", "-C", repository, "repack", "-q", "-a", "-d"], check=True)
        eventually(lambda tag=tag: str(tag) in (mounted / ".changes").read_text(), PATIENCE)
        assert run("grep", "-rc", "nothing", mounted / f".snapshots/{tag}").returncode == 1
    eventually(lambda: not deleted_packs(mounted), PATIENCE)
    assert (mounted / f"{DOMAIN}/p7/data").read_bytes() == b"7" * 1000


def deleted_packs(mounted: Mounted) -> list[str]:
    """Packs that the mount's process holds though they are gone: open files and mappings."""
    process = Path(f"/proc/{mounted.pid}")
    held = process.joinpath("maps").read_text().splitlines()
    for each in process.joinpath("fd").iterdir():
        try:
            held.append(os.readlink(each))
        except FileNotFoundError:
            continue
    return [each for each in held if ".pack" in each and each.endswith("(deleted)")]


def test_an_archive_that_goes_and_comes_back(archive: Archive, mount: Mounter) -> None:
    """S-state-7"""
    archives.publish(archive, pages={"index.html": b"page", "other": b"other"})
    mounted = mount(archive)
    assert (mounted / PAGE).read_bytes() == b"page"
    away = archive.root.with_name("away")
    archive.root.rename(away)
    eventually(lambda: fails(mounted / f"{DOMAIN}/never/asked"), PATIENCE)
    away.rename(archive.root)
    eventually(lambda: not fails(mounted / f"{DOMAIN}/other/data"), PATIENCE)
    assert (mounted / f"{DOMAIN}/other/data").read_bytes() == b"other"
    tag = archives.publish(archive, pages={"index.html": b"new"})
    eventually(lambda: str(tag) in (mounted / ".changes").read_text(), PATIENCE)
    assert (mounted / PAGE).read_bytes() == b"new"
    shutil.rmtree(archive.root)
    eventually(lambda: fails(mounted / f"{DOMAIN}/gone/data"), PATIENCE)
    done = run(UMOUNT, mounted.point)
    assert (done.returncode, done.stderr) == (0, "")
    assert mounted.ended(PATIENCE)


def test_nothing_of_an_archive_that_is_gone_looks_deleted(archive: Archive, mount: Mounter) -> None:
    """S-state-7: EIO for all that was not read yet, and found again as soon as the archive is back."""
    for domain in (DOMAIN, "b.example.org", "c.example.org"):
        archives.publish(archive, domain=domain, pages={"index.html": b"page", "other": b"other"})
    (archive.schemas / "words.xsd").write_bytes(SCHEMA)
    mounted = mount(archive)
    assert (mounted / PAGE).read_bytes() == b"page"
    unread = ["b.example.org", "b.example.org/index.html/data.html", ".snapshots/c.example.org", ".schemas/words.xsd"]
    absent = [".query/1", "never.example.org"]
    away = archive.root.with_name("away")
    for again in (set(), {0}, {0}):  # what was found meanwhile, the kernel knows
        archive.root.rename(away)
        asked = {path: number_of(mounted / path) for path in unread}
        missing = {number_of(mounted / path) for path in absent}
        listed = {path: number_of(mounted / path, os.listdir) for path in ("b.example.org", ".schemas", "")}
        away.rename(archive.root)
        assert set(asked.values()) <= {errno.EIO, *again}, asked
        assert set(listed.values()) <= {errno.EIO, *again}, listed
        if not again:
            assert missing == {errno.EIO}
        # At once, and not when what the kernel remembers of it has become old.
        assert number_of(mounted / ".schemas/words.xsd") == 0
        assert number_of(mounted / "never.example.org") == number_of(mounted / ".query/1") == errno.ENOENT
    assert sorted(path.name for path in mounted.point.iterdir() if path.is_dir()) == [
        "b.example.org", "c.example.org", DOMAIN
    ]  # fmt: skip
    assert (mounted / "b.example.org/index.html/data.html").read_bytes() == b"page"


def number_of(path: Path, ask: Callable[[Path], object] = os.stat) -> int:
    """The errno of a question, 0 for an answer."""
    try:
        ask(path)
    except OSError as error:
        return error.errno or -1
    return 0


def fails(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return True
    return False


def test_a_clock_that_was_set_back(archive: Archive, mount: Mounter) -> None:
    """S-state-8"""
    archives.publish(archive, pages={"index.html": b"0"})
    mounted = mount(archive)
    assert (mounted / PAGE).read_bytes() == b"0"
    for number in range(1, 4):
        tag = archives.publish(archive, pages={"index.html": b"%d" % number})
        before = time.time() - number * 86_400
        for path in (archive.changes, archive.repository(DOMAIN) / "refs/heads/main", archive.repository(DOMAIN)):
            os.utime(path, (before, before))
        eventually(lambda tag=tag: str(tag) in (mounted / ".changes").read_text(), PATIENCE)
        assert (mounted / PAGE).read_bytes() == b"%d" % number


FOLLOWER = """
tail -f -n +1 -s 0.05 "$1/.changes" | while read tag; do
    echo "$tag $(cat "$1/.snapshots/$tag/index.html/data.html")"
done
"""


def test_a_shell_follows_the_changes(archive: Archive, mount: Mounter) -> None:
    """S-changes-1: each of the crawls is acted on exactly once, in order, and its state is found."""
    archives.publish(archive, pages={"index.html": b"0"})
    mounted = mount(archive)
    command = ["setsid", "sh", "-c", FOLLOWER, "sh", str(mounted.point)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        try:
            found = [follower.stdout.readline()]
            for number in range(1, FOLLOWED):
                archives.publish(archive, pages={"index.html": b"%d" % number})
                if number % 3 == 0:  # some one by one, some at a time
                    found += [follower.stdout.readline() for _ in range(number + 1 - len(found))]
            found += [follower.stdout.readline() for _ in range(FOLLOWED - len(found))]
        finally:
            os.killpg(follower.pid, 9)
    assert found == [f"{tag} {number}\n" for number, tag in enumerate(Feed(archive.changes).lines())]
