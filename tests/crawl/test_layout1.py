"""An archive of layout 1, made by the first release: it is read as it is, goes on, and is raised by the first crawl."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from agent.maintenance import backups
from agent.maintenance.verification import verify
from agent.pipeline.publish import crawl_before
from tests.support import archives, crawls
from tests.support.crawls import count, crawl, run_command
from tests.support.site import Site
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import LAYOUT, Archive, layout_of, open_archive
from webarcfs.archive.git.repository import PUBLICATIONS, Repository
from webarcfs.archive.history import sequence, versions
from webarcfs.archive.index.query import ask
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.crawl

_FIXTURE = Path(__file__).parents[1] / "data" / "layout1.tar.gz"
_HOST = "old.example"
_PAGES = {"index.html", "a", "b", "new"}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two publications, `whole` and `home`, crawled twice each; `home` is the start page alone."""
    with tarfile.open(_FIXTURE) as packed:
        packed.extractall(tmp_path)
    return open_archive(tmp_path / "layout1")


def _all(archive: Archive) -> list[tuple[str, str, bytes]]:
    """Every file of every snapshot, as git has it."""
    store = Repository(archive.repository(_HOST))
    found = []
    for name in store.refs("refs/crawls/"):
        tree = store.commit(str(store.ref(f"refs/crawls/{name}"))).tree
        found += [(name, path, store.read(blob)) for path, blob in store.files(tree, "")]
    return found


def _serve(site: Site) -> tuple[str, ...]:
    """The site as the last crawl of the fixture found it."""
    site.add_html("/", "".join(f'<a href="/{name}">{name}</a>' for name in ("a", "b", "new")), host=_HOST)
    site.add_html("/a", "Page a.", title="Title a", host=_HOST)
    site.add_html("/b", "Page b, changed.", title="Title b", host=_HOST)
    site.add_html("/new", "Page new.", title="Title new", host=_HOST)
    return crawls.through(site.proxy)


def test_it_reads_alike_before_and_after_the_upgrade(archive: Archive) -> None:
    assert layout_of(archive.root) == 1
    before = _all(archive)
    assert crawls.arcs(archive, _HOST) == _PAGES
    assert crawls.read_file(archive, _HOST, "a/notes/n.txt") == b"a note"
    meta = crawls.meta(archive, _HOST, "b")
    assert (meta.title, meta.status, meta.capture_time) == ("Title b", 200, meta.crawl_time)
    with pytest.raises(Busy, match="older webarcfs"):
        list(ask(archive.database))
    done = run_command("upgrade", "--archive", archive.root)
    assert done.code == 0, done.err
    assert layout_of(archive.root) == LAYOUT and _all(archive) == before
    assert {found.path.rpartition("/")[2] for found in ask(archive.database)} == _PAGES | {"d.html"}
    assert list(verify(archive)) == []
    records = list(Catalogue(archive).records())
    counted = [(each.publication, each.text(23)) for each in records]
    assert sorted(counted) == [("home", "0")] * 2 + [("whole", "4")] * 2  # what its own crawls stored
    assert {part.seen for each in records for part in each.parts} == {"own"}  # all that layout 1 tells


def test_it_is_crawled_on(archive: Archive, site: Site) -> None:
    through = _serve(site)
    before = crawls.files(archive, _HOST)
    assert run_command("recover", "--archive", archive.root).code == 0
    assert layout_of(archive.root) == 1  # what derives from git is not the archive's layout
    outcome = crawl(archive, f"http://{_HOST}/", name="whole", wget_args=through)
    assert outcome.complete and count(outcome) == (0, 0, 0, 4)
    assert crawls.files(archive, _HOST) == before
    assert layout_of(archive.root) == LAYOUT
    site.gone("/b", host=_HOST)
    assert count(crawl(archive, f"http://{_HOST}/", name="whole", wget_args=through)) == (0, 0, 1, 3)
    assert crawls.arcs(archive, _HOST) == _PAGES - {"b"}
    assert {row["status"] for row in archives.rows_of(archive)} == {200}
    assert list(verify(archive)) == []


def test_what_publications_saw_before_is_known_as_far_as_it_can_be(archive: Archive, site: Site) -> None:
    catch_up(archive)  # as each command that crawls does first
    store = Repository(archive.repository(_HOST))
    head = store.head()
    for name in ("whole", "home"):
        assert crawl_before(store, head, name).tree == store.ref(PUBLICATIONS + name)
    assert crawl_before(store, head, "another").tree is None
    through = _serve(site)
    site.add_html("/", "x" * 50_000, host=_HOST)
    partly = crawl(archive, f"http://{_HOST}/", name="home", wget_args=through, max_total_size=20_000, depth=0)
    assert not partly.complete and partly.tags == ()
    site.add_html("/", '<a href="/a">a</a><a href="/huge">h</a>', host=_HOST)
    site.add_html("/huge", "x" * 50_000, host=_HOST)
    partly = crawl(archive, f"http://{_HOST}/", name="home", wget_args=through, max_total_size=20_000)
    tag = CommitTag.parse(partly.tags[0])
    commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
    assert commit is not None and crawls.arcs(archive, _HOST) == _PAGES
    assert {arc.path for arc in versions.arcs(store, commit.message.seen)} == {"index.html", "a"}


def test_a_backup_of_it_is_restored(archive: Archive, tmp_path: Path) -> None:
    before = _all(archive)
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = open_archive(tmp_path / "restored")
    assert _all(restored) == before and list(verify(restored)) == []
