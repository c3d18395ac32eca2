"""Fixtures: a traversable folder, archives in it, and mounts that are gone after the test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import archives
from tests.support.mounts import Mounted
from tests.support.users import open_folder
from webarcfs.archive.config.directory import Archive
from webarcfs.mount.adapters.binding import BINDINGS

Mounter = Callable[..., Mounted]
#: What is about what stands behind the bindings. CI has the first one do it, `make soak` all of them.
_BY_ONE = frozenset({
    "test_asking", "test_client", "test_crawled", "test_discarded", "test_documents", "test_durability", "test_queries",
    "test_roles", "test_schemas", "test_searches", "test_stale", "test_states", "test_wordcount",
})  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Whatever mounts is tested on each binding, or on those that its mark `only` names."""
    if "binding" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("only")
        bindings = list(only.args) if only else list(BINDINGS)
        if metafunc.module.__name__.rpartition(".")[2] in _BY_ONE and not os.environ.get("WEBARC_SOAK"):
            bindings = bindings[:1]
        metafunc.parametrize("binding", bindings, scope="module")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    yield from _folder()


@pytest.fixture
def archive(folder: Path) -> Archive:
    """An empty archive, in which a closed file is final."""
    return archives.final_at_once(archives.make_archive(folder))


@pytest.fixture
def mount(folder: Path, binding: str) -> Iterator[Mounter]:
    """Mounts an archive, with options: `mount(archive, "-o", "ro")`."""
    with ExitStack() as stack:

        def make(archive: Archive, *options: str, **more: object) -> Mounted:
            point = folder / f"mnt{len(list(folder.glob('mnt*')))}"
            mounted = Mounted(archive.root, point, "-o", f"binding={binding}", *options, **more)  # type: ignore[arg-type]
            stack.callback(mounted.clear)
            return mounted

        yield make


#: What the archive of `site` holds: ARC path → body. A nested ARC, odd names, an empty body, a large one.
BIG = bytes(range(256)) * 4096 * 5
PAGES = {
    "index.html": b"<title>home</title>",
    "blog": b"the blog",
    "blog/x": b"a post",
    "empty.txt": b"",
    "big.bin": BIG,
    "a b/caf\u00e9 \u00fc.html": b"umlauts",
    "p.php?a=1&u=%2fx": b"query",
    "100%25": b"percent",
    "l" * 200: b"long name",
}
ADDITIONS = {
    "index.html/notes.txt": b"a note",
    "index.html/more/deep/words.txt": b"42",
    "index.html/" + "n" * 255: b"as long as can be",
}


@pytest.fixture(scope="module")
def site(binding: str) -> Iterator[Mounted]:
    """A mount of two states of a site and another domain, for tests that only look."""
    for folder in _folder():
        archive = archives.final_at_once(archives.make_archive(folder))
        archives.publish(archive, pages={**PAGES, "index.html": b"<title>old</title>", "gone.html": b"gone"})
        archives.publish(archive, pages={"index.html": PAGES["index.html"], "gone.html": None}, extra=ADDITIONS)
        archives.publish(archive, "other.example:8080", {"index.html": b"other"})
        mounted = Mounted(archive.root, folder / "mnt", "-o", f"binding={binding}")
        try:
            yield mounted
        finally:
            mounted.clear()


def _folder() -> Iterator[Path]:
    with open_folder() as path:
        try:
            yield path
        finally:
            assert str(path) not in Path("/proc/self/mountinfo").read_text("utf-8"), "a mount is left"


class Desk:
    """A mount to write to: an ARC for each test, and a look into git."""

    def __init__(self, archive: Archive, mounted: Mounted) -> None:
        self.archive = archive
        self.mounted = mounted
        self._numbers = itertools.count()

    def arc(self) -> Path:
        """The folder of an ARC that nobody has used."""
        return self.mounted / f"{archives.DOMAIN}/p{next(self._numbers)}.html"

    def in_git(self, path: Path) -> bytes | None:
        """What main has for a file of the mount."""
        domain, _, inner = str(path.relative_to(self.mounted.point)).partition("/")
        store = archives.store_of(self.archive, domain)
        head = store.head()
        entry = store.find(head.tree, inner) if head else None
        return store.read(entry.oid) if entry and not entry.is_tree else None

    def commit(self, folder: Path) -> None:
        """Have git take in what was added: fsync of a folder."""
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@pytest.fixture(scope="module")
def desk(binding: str) -> Iterator[Desk]:
    """A mount of many small ARCs, each for one test."""
    for folder in _folder():
        archive = archives.final_at_once(archives.make_archive(folder))
        archives.publish(archive, pages={f"p{number}.html": b"page %d" % number for number in range(60)})
        mounted = Mounted(archive.root, folder / "mnt", "-o", f"binding={binding}")
        try:
            yield Desk(archive, mounted)
        finally:
            mounted.clear()
