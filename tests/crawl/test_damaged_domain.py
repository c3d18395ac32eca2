"""A domain's repository is damaged, or locked by what a crash left: one line names it, and no other domain suffers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import crawls
from tests.support.crawls import run_command, store
from tests.support.site import Site
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN

pytestmark = pytest.mark.crawl

HOSTS = ("a.example", "b.example")


@pytest.fixture
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Not the one that is held to be sound afterwards."""
    yield directory.create(tmp_path_factory.mktemp("damaged") / "archive")


def crawl_all(archive: Archive, site: Site) -> crawls.Done:
    settings = [f"--wget-args={each}" for each in crawls.through(site.proxy)]
    starts = [f"http://{host}/" for host in HOSTS]
    return run_command("crawl", "--archive", archive.root, "--wait", "0", *settings, *starts, timeout=240)


def write(site: Site, text: str) -> None:
    for host in HOSTS:
        site.add_html("/", f'{text} of {host}<a href="/a">a</a>', host=host)
        site.add_html("/a", f"{text}, a, of {host}", host=host)


def unpack(repository: Path) -> None:
    """Make a file of each object, so that one can be damaged alone."""
    for pack in list((repository / "objects" / "pack").glob("*.pack")):
        content = pack.read_bytes()
        for file in pack.parent.glob(f"{pack.stem}.*"):
            file.unlink()
        subprocess.run(["git", "-C", repository, "unpack-objects", "-q"], input=content, check=True)


def test_a_damaged_page_hinders_no_crawl(archive: Archive, site: Site) -> None:
    """Its file is cut off: what does not need it goes on, and nothing is lost when it is back."""
    write(site, "first")
    assert crawl_all(archive, site).code == 0
    repository = store(archive, "b.example")
    head = repository.head()
    assert head is not None
    entry = repository.find(head.tree, "index.html/data.html")
    assert entry is not None
    unpack(archive.repository("b.example"))
    damage = archive.repository("b.example") / "objects" / entry.oid[:2] / entry.oid[2:]
    content = damage.read_bytes()
    damage.chmod(0o644)
    damage.write_bytes(content[: len(content) // 2])

    write(site, "second")
    done = crawl_all(archive, site)
    assert "Traceback" not in done.err and "unexpected" not in done.err, done.err
    assert done.code in (0, 2), done.err
    if done.code == 2:
        assert "b.example" in done.err, done.err
    damage.write_bytes(content)
    again = crawl_all(archive, site)
    assert again.code == 0, again.err
    for host in HOSTS:
        assert f"second of {host}".encode() in crawls.read(archive, host, "index.html")
        assert store(archive, host).check() == []


def test_a_stale_lock_of_git_is_passed_over(archive: Archive, site: Site) -> None:
    write(site, "first")
    assert crawl_all(archive, site).code == 0
    lock = archive.repository("b.example") / f"{MAIN}.lock"
    lock.touch()
    hours_ago = time.time() - 7200
    os.utime(lock, (hours_ago, hours_ago))
    write(site, "second")
    done = crawl_all(archive, site)
    assert done.code == 0, done.err
    assert not lock.exists()
    assert all(f"second of {host}".encode() in crawls.read(archive, host, "index.html") for host in HOSTS)


@pytest.mark.parametrize("name", ["HEAD", MAIN, "publications"])
def test_a_damaged_small_file_is_mended_by_recover_and_crawls_go_on(archive: Archive, site: Site, name: str) -> None:
    """Until then the crawl fails and says so, or does not need it; nobody has to use git."""
    write(site, "first")
    assert crawl_all(archive, site).code == 0
    repository = archive.repository("b.example")
    path = next((repository / "refs/publications").iterdir()) if name == "publications" else repository / name
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 0x10]) + content[1:])
    verified = run_command("verify", "--quick", "--archive", archive.root)
    assert (verified.code, "`webarc-agent recover` repairs it" in verified.out) == (2, True), verified
    write(site, "second")
    done = crawl_all(archive, site)
    assert "Traceback" not in done.err, done.err
    assert done.code == 0 or ("b.example" in done.err and "`webarc-agent recover --archive" in done.err), done.err
    recovered = run_command("recover", "--archive", archive.root)
    assert (recovered.code, "repaired: b.example: " in recovered.out) == (0, True), recovered
    again = crawl_all(archive, site)
    assert again.code == 0, again.err
    assert all(f"second of {host}".encode() in crawls.read(archive, host, "index.html") for host in HOSTS)
    assert run_command("verify", "--archive", archive.root).out == "sound\n"
