"""The modules that a mount runs most are compiled; whatever is wrong with that form, the mount serves all the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.compiled import copied, runs_compiled
from tests.support.mounts import MOUNT, Mounted, run
from webarcfs.archive.config.directory import Archive
from webarcfs.compiled import loader

pytestmark = [pytest.mark.mount, pytest.mark.only("libfuse3")]


def reads(mounted: Mounted) -> bool:
    return (mounted / f"{archives.DOMAIN}/p.html/data.html").read_bytes() == b"a page"


@pytest.fixture
def page(archive: Archive) -> Archive:
    archives.publish(archive, pages={"p.html": b"a page"})
    return archive


def test_a_mount_runs_the_compiled_modules(folder: Path, page: Archive, mount: Mounter) -> None:
    environment = copied(folder)
    mounted = mount(page, environment=environment)
    assert reads(mounted)
    assert runs_compiled(mounted.pid)
    assert "(compiled)" in (page.log / "mount.log").read_text("utf-8")
    assert run(MOUNT, "--version", env={**os.environ, **environment}).stdout.endswith(", compiled\n")


def test_by_a_word_in_the_environment_it_runs_the_sources(folder: Path, page: Archive, mount: Mounter) -> None:
    mounted = mount(page, environment={**copied(folder), loader.INTERPRETED: "1"})
    assert reads(mounted)
    assert not runs_compiled(mounted.pid)


#: Makes garbage of each kind of folder, with what it has read of git, which somebody else has, too: what is young is
#: garbage if its references are as many as those that young objects show.
_COLLECTED = """
import gc
import sys
from webarcfs.compiled import loader
assert loader.use()
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.git.repository import Repository
from webarcfs.vfs.node import remember
from webarcfs.vfs.folders import ShownState
from webarcfs.vfs.folders import AddedFolder, Arc, StoredFolder
from webarcfs.vfs.root import SnapshotFolder
from webarcfs.vfs.domain_states import Caches, DomainReader
from webarcfs.vfs.overlay import Overlay
from pathlib import Path

tag = CommitTag.parse("2026-11-21T03:00:00@" + sys.argv[2])
state = ShownState(DomainReader(tag.domain, Repository(Path(sys.argv[1])), Caches(), Overlay()), tag, "", lambda: state)
arc = Arc(state, "a", "", "", None, False)
kept = {}
for kind, more in ((StoredFolder, ()), (Arc, ("", None, False)), (AddedFolder, (arc,)), (SnapshotFolder, ())):
    gc.collect()
    kept[kind] = {"name": ["value"]}
    knot = [kind(state, "a", "", *more)]
    remember(knot[0], "_entries", kept[kind])
    knot.append(knot)
    del knot
    gc.collect(0)
print(*kept.values())
"""


def test_garbage_takes_nothing_with_it_that_is_in_use(folder: Path, page: Archive) -> None:
    """mypyc (2.4) has a frozen dataclass show what it inherits twice: what listings had read was emptied."""
    of = page.repository(archives.DOMAIN), archives.DOMAIN
    done = run(sys.executable, "-c", _COLLECTED, *of, env={**os.environ, **copied(folder)}, cwd=folder)
    assert (done.stdout.split("\n"), done.stderr) == (["{'name': ['value']} " * 3 + "{'name': ['value']}", ""], "")


def cut_off(library: Path) -> None:
    os.truncate(library, library.stat().st_size // 2)


def garbled(library: Path) -> None:
    """As wrong as a library for another machine; the list of sums is right."""
    library.write_bytes(b"\x7fELF" + bytes(5000))
    loader.seal(library.parent)


def other_sources(library: Path) -> None:
    with library.parents[2].joinpath("archive/model/urls.py").open("a") as file:
        file.write("# changed\n")


def removed(library: Path) -> None:
    library.unlink()


@pytest.mark.parametrize("spoil", [cut_off, garbled, other_sources, removed])
def test_what_cannot_be_used_is_not_used(
    spoil: Callable[[Path], None], folder: Path, page: Archive, mount: Mounter
) -> None:
    """Of a form that is damaged the log warns; one of other sources is none."""
    environment = copied(folder)
    spoil(loader.place(folder / "webarcfs") / f"{loader.LIBRARY}{loader.SUFFIX}")
    mounted = mount(page, environment=environment)
    assert reads(mounted)
    assert not runs_compiled(mounted.pid)
    log = (page.log / "mount.log").read_text("utf-8")
    assert ("WARNING" in log) == (spoil is not other_sources)
