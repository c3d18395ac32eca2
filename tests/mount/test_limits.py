"""Many files being written at once (SEMANTICS.md, "Additions"; issue 3, "Bad input")."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.mount.test_writing import error_of
from tests.support import archives
from tests.support.archives import DOMAIN
from webarcfs.archive.additions.journal import RESERVE
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.mount

FILES = 300
FEW = 64


@pytest.fixture
def few_files() -> Iterator[None]:
    """A soft limit that is less than what is opened; processes that are started inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * FILES:
        pytest.skip("no more files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES // 2, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
def test_many_files_are_written_at_once(archive: Archive, mount: Mounter) -> None:
    """S-full-2: the soft limit that the mount was started with does not count; the hard one does."""
    archives.publish(archive, pages={"a.html": b"a"})
    mounted = mount(archive)
    folder = mounted / f"{DOMAIN}/a.html"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    fds = [new(folder / f"f{number}") for number in range(FILES)]
    close_all(fds)
    resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE, (RESERVE + FEW, hard))
    opened: list[int] = []
    error = error_of(lambda: opened.extend(new(folder / f"g{number}") for number in range(2 * FEW)))
    assert error == errno.EMFILE
    assert 0 < len(opened) < FEW
    close_all(opened)
    close_all([new(folder / "again")])
    names = [*(f"f{number}" for number in range(FILES)), *(f"g{number}" for number in range(len(opened))), "again"]
    assert [(folder / name).read_bytes() for name in names] == [name.encode() for name in names]
    assert "Too many open files" in (archive.log / "mount.log").read_text("utf-8")


def new(path: Path) -> int:
    """A new file, written and open."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(fd, path.name.encode())
    return fd


def close_all(fds: list[int]) -> None:
    """Close files, each of which must be confirmed."""
    for fd in fds:
        os.close(fd)
