"""Which ARCs a crawl removes (/Cr-14.2/)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.crawl.frontier import Frontier
from agent.crawl.job_folder import Job
from agent.pipeline.domain_run import DomainRun, TreeReader
from agent.pipeline.publish import RemovalVerdict, had_no_pages, removed_arcs, seen_part, without
from tests.store.arcs import additions_of, arcs_of, tree_of
from tests.support import archives
from tests.support.archives import DOMAIN, FIRST, store_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import PUBLICATIONS, RefUpdate, TreeEntry
from webarcfs.archive.history.versions import statistics
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.metadata import PAGE_ROLE, RESOURCE_ROLE, CommitTag

pytestmark = pytest.mark.store
Judge = Callable[..., RemovalVerdict]


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[Frontier]:
    frontier = Frontier(tmp_path / "frontier.db")
    yield frontier
    frontier.close()


@pytest.fixture
def judge(archive: Archive, frontier: Frontier) -> Judge:
    """The verdict on a crawl of `publication` that saw these ARCs."""

    def verdict(
        seen: set[str], found: int | None = None, publication: str = "mine", *, accept: bool = False, share: float = 0.5
    ) -> RemovalVerdict:
        store = store_of(archive)
        settings = Publication(name=publication, urls=(), crawl=CrawlSettings(min_share=share))
        job = Job(
            archive=archive,
            name="job",
            folder=archive.jobs,
            publication=settings,
            profile=None,
            frontier=frontier,
            begun=FIRST,
            accept_shrink=accept,
        )
        tree = tree_of(store, seen)
        with frontier.changes():
            frontier.clear_results(DOMAIN)
            frontier.hold(DOMAIN, seen)
        run = DomainRun(
            job=job,
            domain=DOMAIN,
            store=store,
            base=None,
            tag=CommitTag(FIRST, DOMAIN),
            complete=True,
            shelf=TreeReader(store, tree),
        )
        part = seen_part(store, publication, tree, frontier.seen_names(DOMAIN), lambda: frontier.seen(DOMAIN))
        last = store.ref(PUBLICATIONS + publication)
        return removed_arcs(run, last, part, len(seen) if found is None else found)

    return verdict


def saw(archive: Archive, publication: str, arcs: set[str]) -> None:
    """Set what the last complete crawl of a publication saw."""
    store = store_of(archive)
    ref = PUBLICATIONS + publication
    store.update_refs([RefUpdate(ref, tree_of(store, arcs), store.ref(ref))])


def test_the_first_crawl_removes_nothing(archive: Archive, judge: Judge) -> None:
    saw(archive, "other", {"a", "b"})
    assert judge({"c"}) == RemovalVerdict(True)


def test_what_the_last_one_saw_and_this_one_did_not(archive: Archive, judge: Judge) -> None:
    saw(archive, "mine", {"a", "b", "c/d", "c/e"})
    assert judge({"a", "c/d", "new"}) == RemovalVerdict(True, ["b", "c/e"])
    assert judge({"a", "b", "c/d", "c/e"}) == RemovalVerdict(True)


def test_what_another_publication_holds_stays(archive: Archive, judge: Judge) -> None:
    """Two publications on one host, in turns: neither removes the other's pages."""
    saw(archive, "mine", {"a", "b", "c", "d"})
    saw(archive, "second", {"b", "x"})
    saw(archive, "third", {"c"})
    assert judge({"a", "y"}) == RemovalVerdict(True, ["d"])
    assert judge({"b"}, publication="second") == RemovalVerdict(True, ["x"])


def test_an_arc_around_another(archive: Archive, judge: Judge) -> None:
    saw(archive, "mine", {"blog", "blog/x", "blog/x/y", "z"})
    assert judge({"blog/x", "blog/x/y", "z"}) == RemovalVerdict(True, ["blog"])
    assert judge({"blog", "blog/x/y", "z"}) == RemovalVerdict(True, ["blog/x"])
    saw(archive, "other", {"blog/x/y"})
    assert judge({"blog", "z"}) == RemovalVerdict(True, ["blog/x"])


@pytest.mark.parametrize(("found", "believed"), [(5, True), (4, False), (0, False)])
def test_a_crawl_that_found_too_little_is_not_believed(
    archive: Archive, judge: Judge, found: int, believed: bool
) -> None:
    """Fewer than `min_share` of the ARCs that the last complete one saw: nothing is removed."""
    saw(archive, "mine", {f"{n}" for n in range(10)})
    verdict = judge({f"{n}" for n in range(found)})
    assert verdict.complete is believed
    assert len(verdict.removed) == (10 - found if believed else 0)
    assert ("--accept-shrink" in verdict.reason and f"found {found} of the 10" in verdict.reason) is not believed


def test_accept_shrink_overrides_and_so_does_a_share_of_nothing(archive: Archive, judge: Judge) -> None:
    saw(archive, "mine", {f"{n}" for n in range(10)})
    for verdict in (judge({"0"}, accept=True), judge({"0"}, share=0)):
        assert verdict.complete and len(verdict.removed) == 9 and not verdict.reason


def test_new_arcs_do_not_hide_a_shrink(archive: Archive, judge: Judge) -> None:
    """Pages that failed keep their ARC, but count as not found."""
    saw(archive, "mine", {f"{n}" for n in range(10)})
    assert not judge({f"{n}" for n in range(10)}, found=4).complete
    assert judge({f"{n}" for n in range(10)} | {"new"}, found=5).complete


def test_what_cannot_be_read_makes_no_host_a_page_host(archive: Archive) -> None:
    """A resource host may lose most of its documents; one that has another data.xml than ours is judged by the rest."""
    store, tag = store_of(archive), CommitTag(FIRST, DOMAIN)
    meta = replace(archives.metadata(DOMAIN, "a.png", tag), role=RESOURCE_ROLE)
    files = {f"{name}.png/{DATA_XML}": data_xml.describe(meta) for name in "bcd"} | {f"a.png/{DATA_XML}": b"<strange/>"}
    files |= {f"{name}.png/data.png": b"p" for name in "abcd"}
    tree = store.edit(store.write_tree([]), {path: store.write_blob(body) for path, body in files.items()})
    assert had_no_pages(store, None, "mine", tree)
    unreadable = store.find(tree, "a.png")
    assert unreadable is not None
    alone = store.write_tree([TreeEntry("a.png", unreadable.oid, True)])
    assert not had_no_pages(store, None, "mine", alone), "nothing says that it is a resource: nothing may go"
    counts = [statistics(store, tree, frozenset(roles)).documents for roles in ({PAGE_ROLE}, {RESOURCE_ROLE})]
    assert counts == [1, 3], "each document has one role"


def test_without_takes_an_arc_and_its_additions(archive: Archive) -> None:
    store = store_of(archive)
    tree = tree_of(
        store,
        ["blog", "blog/x", "blog/deep/y", "other"],
        ["blog/notes.txt", "blog/mine/er/notes.txt", "blog/x/notes.txt", "other/notes.txt"],
    )
    left = without(store, tree, ["blog"])
    assert arcs_of(store, left) == {"blog/x", "blog/deep/y", "other"}
    assert additions_of(store, left) == {"blog/x/notes.txt", "other/notes.txt"}
    left = without(store, tree, ["blog/x", "not/there"])
    assert arcs_of(store, left) == {"blog", "blog/deep/y", "other"}
    assert additions_of(store, left) == {"blog/notes.txt", "blog/mine/er/notes.txt", "other/notes.txt"}
    assert store.find(without(store, tree, ["blog/deep/y"]), "blog/deep") is None, "git keeps no empty folder (/Cr-10/)"
    assert without(store, tree, ["blog", "blog/x", "blog/deep/y", "other"]) == store.write_tree([])
    assert without(store, tree, []) == tree


def test_removing_much_of_a_big_folder_is_quick(archive: Archive) -> None:
    store = store_of(archive)
    arcs = [f"pages/{n}.html" for n in range(3000)]
    with store.importer(None) as importer:
        for arc in arcs:
            importer.put(f"{arc}/data.xml", b"x")
        tree = importer.finish()
    assert arcs_of(store, without(store, tree, arcs[:2999])) == {arcs[2999]}
