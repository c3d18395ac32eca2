"""What a crawl met unchanged, and when: refs/met, the trailer Met, and what keeps them."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up, recover
from agent.jobs.publishing import JobOutcome
from agent.maintenance import backups
from agent.maintenance.verification import verify
from agent.pipeline import publish
from tests.crawl.test_conditional import tagged
from tests.support import warcs
from tests.support.crawls import StopAfter, count, crawl, run_command
from tests.support.imports import imported, killed_in
from tests.support.journals import Writer
from tests.support.nasty import reset, slow
from tests.support.site import Site, redirect
from tests.support.waiting import until
from tests.support.wire import page
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MET, RefUpdate, Repository
from webarcfs.archive.history import redirect_lists, sequence, versions
from webarcfs.archive.index import database
from webarcfs.archive.index.database import CaptureIndex, Database
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.model.metadata import CommitMessage, CommitTag, from_epoch, parse_time
from webarcfs.archive.model.url_lists import HTTP, INDEX, Met, write_met_list

pytestmark = pytest.mark.crawl

_HOST = "e.org"


def tag_of(outcome: JobOutcome, domain: str = "") -> CommitTag:
    """The snapshot of an outcome, of a domain if there are several."""
    tags = map(CommitTag.parse, outcome.tags)
    return next(tag for tag in tags if not domain or tag.domain == domain)


def message(archive: Archive, tag: CommitTag) -> CommitMessage:
    store = Repository(archive.repository(tag.domain))
    crawl_commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
    assert crawl_commit is not None
    return crawl_commit.message


def met(archive: Archive, outcome: JobOutcome, domain: str = "") -> dict[str, Met | None]:
    """What a crawl met: of each ARC and each redirect that its publication saw."""
    tag = tag_of(outcome, domain)
    store = Repository(archive.repository(tag.domain))
    commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
    assert commit is not None and store.ref(tag.met_ref) == commit.message.met
    found = redirect_lists.of_crawl(store, commit)
    assert found is not None and store.read(commit.message.met) == write_met_list(found)
    tree = redirect_lists.seen_tree(commit)
    arcs = dict(redirect_lists.met_arcs(store, tree, found))
    assert arcs.keys() == {arc.path for arc in versions.arcs(store, tree)}
    return arcs | dict(redirect_lists.met_redirects(store, tree, found))


def at(found: dict[str, Met | None], name: str) -> int:
    """When something was met."""
    each = found[name]
    assert each is not None, f"{name} was not met"
    return each.time


def is_sound(archive: Archive) -> bool:
    return list(verify(archive)) == []


def fill(site: Site) -> None:
    site.add_html("/", "".join(f'<a href="{path}">x</a>' for path in ("/a", "/a/b", "/a-b", "/a.b", "/old")))
    for path in ("/a", "/a/b", "/a-b", "/a.b"):
        site.add_html(path, f"This is {path}.")
    site.add_nasty("/old", redirect("/a"))


def test_what_a_crawl_met_unchanged_has_its_time(archive: Archive, site: Site) -> None:
    fill(site)
    first = crawl(archive, site.url())
    stored = {"index.html", "a", "a/b", "a-b", "a.b", site.url("/old")}
    assert met(archive, first) == dict.fromkeys(stored)
    site.add_html("/a", "Changed.")
    begun = int(time.time())
    second = crawl(archive, site.url())
    found = met(archive, second)
    assert found.keys() == stored and found["a"] is None
    times = [at(found, name) for name in stored - {"a"}]
    assert begun - 1 <= min(times) <= max(times) <= time.time()
    assert {each.spelling for each in found.values() if each is not None} == {HTTP, 0}  # 0: of the redirect
    assert is_sound(archive)


def test_not_modified_is_met(archive: Archive, site: Site) -> None:
    site.add_nasty("/", tagged('<a href="/a">a</a>'))  # type: ignore[arg-type]
    site.add_nasty("/a", tagged("a"))  # type: ignore[arg-type]
    crawl(archive, site.url(), conditional=True)
    again = crawl(archive, site.url(), conditional=True)
    assert count(again) == (0, 0, 0, 2) and None not in met(archive, again).values()


def test_what_was_carried_over_was_not_met(archive: Archive, site: Site) -> None:
    """Pages that failed, redirects without an answer, error pages that replace nothing."""
    fill(site)
    site.add_html("/a.b", '<a href="/huge">x</a>')
    site.add_html("/huge", "small")
    crawl(archive, site.url())
    site.add_nasty("/a", reset())
    site.add("/a-b", "<title>Gone</title>", status=404)
    site.add_nasty("/old", reset())
    site.add_html("/huge", "x" * 50_000)
    again = crawl(archive, site.url(), keep_errors=True, max_total_size=20_000)
    assert not again.complete
    found = met(archive, again)
    assert {name for name, each in found.items() if each is None} == {"a", "a-b", "huge", site.url("/old")}
    assert is_sound(archive)


def test_a_publication_lists_what_it_saw(archive: Archive, site: Site) -> None:
    fill(site)
    crawl(archive, site.url(), name="whole")
    home = crawl(archive, site.url(), name="home", depth=0)
    assert list(met(archive, home)) == ["index.html"] and at(met(archive, home), "index.html")
    writer = Writer(archive, site.host)
    writer.file("a/b", "deep/notes.txt", b"42")  # additions are in no list
    writer.journal.release(commit_additions(archive, site.host))
    writer.close()
    assert at(met(archive, crawl(archive, site.url(), name="whole")), "a/b")
    assert is_sound(archive)


def test_of_several_urls_at_a_place_its_own_counts(archive: Archive, tmp_path: Path) -> None:
    def crawled(name: str, second: int, *urls: str) -> JobOutcome:
        rows = [(url, f"2024-0{second}-01T00:00:0{number}Z") for number, url in enumerate(urls)]
        records = [warcs.response(url, b"<title>same</title>", when) for url, when in rows]
        return imported(archive, warcs.write(tmp_path / f"{name}.warc", records), name="x")

    own = f"http://{_HOST}/index.html"
    crawled("first", 1, own)
    both = crawled("both", 2, f"https://{_HOST}/", own, f"https://{_HOST}/index.html")
    when = int(parse_time("2024-02-01T01:00:01").timestamp())
    assert met(archive, both) == {"index.html": Met(when, HTTP | INDEX)}
    other = crawled("other", 3, f"https://{_HOST}/")
    assert met(archive, other) == {"index.html": Met(int(parse_time("2024-03-01T01:00:00").timestamp()), 0)}
    assert is_sound(archive)


def test_an_import_has_the_times_of_its_captures(archive: Archive, tmp_path: Path) -> None:
    """Also one that is older than the newest state."""

    def crawled(name: str, year: int, body: bytes) -> JobOutcome:
        dates = (f"{year}-01-01T00:00:00Z", f"{year}-01-01T00:10:00Z")
        records = [warcs.response(f"http://{_HOST}/{path}", body, date) for path, date in zip("ab", dates, strict=True)]
        return imported(archive, warcs.write(tmp_path / f"{name}.warc", records), name=name)

    crawled("old", 2010, b"<p>1")
    crawled("new", 2020, b"<p>2")
    between = crawled("between", 2015, b"<p>1")
    assert met(archive, between) == {
        path: Met(int(parse_time(f"2015-01-01T01:{minute}:00").timestamp()), HTTP)
        for path, minute in (("a", "00"), ("b", "10"))
    }
    assert is_sound(archive)


def test_not_modified_says_nothing_of_a_version_that_came_meanwhile(archive: Archive, site: Site) -> None:
    """A crawl that goes on after another one stored a newer version: its answer was about the older one."""
    site.add_html("/", '<a href="/a">a</a><a href="/b">b</a>')
    site.add_nasty("/a", tagged("first"))  # type: ignore[arg-type]
    site.add_html("/b", "b")
    crawl(archive, site.url(), name="first")
    site.add_nasty("/b", slow(300, page("b")))
    stop = StopAfter(site, 6)
    crawl(archive, site.url(), name="slow", stop=stop.event, conditional=True)
    stop.join()
    until(lambda: list(archive.jobs.iterdir()), "it was interrupted")
    site.add_html("/b", "b")
    site.add_nasty("/a", tagged("second"))  # type: ignore[arg-type]
    crawl(archive, site.url(), name="first")
    site.clear_log()
    resumed = crawl(archive, site.url(), name="slow", conditional=True)
    assert site.count("/a") == 0, "it had the answer"
    found = met(archive, resumed)
    assert found["a"] is None and at(found, "b")


def test_backup_restore_recover_and_maintenance_keep_it(archive: Archive, site: Site, tmp_path: Path) -> None:
    fill(site)
    crawl(archive, site.url())
    again = crawl(archive, site.url())
    tag, found = tag_of(again), met(archive, again)
    assert run_command("maintain", "--archive", archive.root).code == 0
    subprocess.run(["git", "-C", archive.repository(site.host), "gc", "--quiet", "--prune=now"], check=True)
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = Archive(tmp_path / "restored")
    assert met(restored, again) == found and is_sound(restored)
    store = Repository(restored.repository(site.host))
    kept = store.ref(tag.met_ref)
    store.update_refs([RefUpdate(tag.met_ref, None, kept), RefUpdate(f"{MET}20200101T000000", kept, None)])
    lines = "\n".join(verify(restored))
    assert f"{tag.met_ref} is gone" in lines and f"{MET}20200101T000000: there is no crawl of that time" in lines
    assert run_command("recover", "--archive", restored.root).code == 0
    assert met(restored, again) == found and store.ref(f"{MET}20200101T000000") is None
    assert is_sound(restored)


def test_a_list_of_other_urls_is_found(archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(site)
    crawl(archive, site.url())
    real = publish.met_list_of

    def wrong(*arguments: object) -> bytes:
        made = real(*arguments)  # type: ignore[arg-type]
        line, _, rest = made.partition(b"\n")
        words = line.split(b" ")
        words[3] = b"0" * 16
        return b" ".join(words) + b"\n" + rest

    monkeypatch.setattr(publish, "met_list_of", wrong)
    tag = tag_of(crawl(archive, site.url()))
    assert any(f"{tag.met_ref}: the list of what a crawl met is not of these" in line for line in verify(archive))


def test_after_a_power_cut_its_ref_follows(archive: Archive, site: Site) -> None:
    fill(site)
    tag = tag_of(crawl(archive, site.url()))
    store = Repository(archive.repository(site.host))
    store.update_refs([RefUpdate(tag.met_ref, None, store.ref(tag.met_ref))])
    sequence.mend(archive)
    assert store.ref(tag.met_ref) == message(archive, tag).met and is_sound(archive)


def test_a_kill_before_the_refs_move_leaves_no_list(archive: Archive, site: Site) -> None:
    fill(site)
    crawl(archive, site.url(), name="x")
    store = Repository(archive.repository(site.host))
    before = store.ref_names(MET)
    killed_in(lambda: crawl(archive, site.url(), name="x"), Repository, "update_refs")
    assert Repository(archive.repository(site.host)).ref_names(MET) == before
    again = crawl(archive, site.url(), name="x")
    assert None not in met(archive, again).values() and is_sound(archive)


def test_a_crawl_of_an_unchanged_site_adds_a_commit_and_its_list(archive: Archive, site: Site) -> None:
    site.add_html("/", "".join(f'<a href="/{number}">x</a>' for number in range(300)))
    for number in range(300):
        site.add_html(f"/{number}", f"This is {number}.")
    crawl(archive, site.url())
    store = Repository(archive.repository(site.host))
    before = set(store.ids())
    again = crawl(archive, site.url())
    new = set(store.ids()) - before
    listed = message(archive, tag_of(again)).met
    assert new == {str(store.ref(tag_of(again).ref)), listed}
    assert store.size(listed) < 4 * 301
    assert from_epoch(at(met(archive, again), "7")) >= tag_of(again).crawl_time
    with pytest.raises(Busy):
        store.update_refs([RefUpdate(tag_of(again).met_ref, listed, None)])


def indexed(archive: Archive, outcome: JobOutcome) -> dict[str, Met | None]:
    """What webarc.db has of what a crawl met: of each ARC and each redirect of its list."""
    tag = tag_of(outcome)
    with CaptureIndex(archive.database) as index:
        found = {}
        for name in met(archive, outcome):
            meetings = index.met(tag.domain, name if "://" in name else f"/{tag.domain}/{name}")
            assert [each.seq for each in meetings] == sorted(each.seq for each in meetings)
            by_crawl = dict(meetings)
            found[name] = by_crawl.get(int(tag.crawl_time.timestamp()))
        return found


def test_the_database_has_what_was_met(archive: Archive, site: Site) -> None:
    fill(site)
    outcomes = [crawl(archive, site.url())]
    site.add_html("/a", "Changed.")
    outcomes.append(crawl(archive, site.url()))
    site.add_nasty("/a-b", reset())
    outcomes.append(crawl(archive, site.url()))
    lists = [met(archive, each) for each in outcomes]
    assert not any(lists[0].values()) and any(lists[2].values()) and lists[2]["a-b"] is None
    assert [indexed(archive, each) for each in outcomes] == lists
    with closing(sqlite3.connect(archive.database)) as database:
        rows = database.execute("SELECT * FROM met ORDER BY kind, block, seq").fetchall()
        assert len(rows) == 4  # of two crawls ARCs and redirects
    recover(archive)
    assert [indexed(archive, each) for each in outcomes] == lists
    with closing(sqlite3.connect(archive.database)) as database:
        assert database.execute("SELECT * FROM met ORDER BY kind, block, seq").fetchall() == rows


@pytest.mark.parametrize("most", [1, 100_000])
def test_the_index_is_the_same_from_what_is_at_hand_and_from_the_tree(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Also where names are numbered in portions, and a portion ends between them."""
    monkeypatch.setattr(publish, "_MOST_AT_HAND", most)
    monkeypatch.setattr(database, "_AT_ONCE", 2)
    fill(site)
    crawl(archive, site.url())
    again = crawl(archive, site.url())
    found = indexed(archive, again)
    assert len([name for name in found if "://" not in name]) > 2
    assert found == met(archive, again) and None not in found.values()
    recover(archive)
    assert indexed(archive, again) == found


def test_a_list_that_cannot_be_read_hides_no_snapshot(
    archive: Archive, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    fill(site)
    crawl(archive, site.url())
    again = crawl(archive, site.url())
    store = Repository(archive.repository(tag_of(again).domain))
    real = Repository.read

    def read(self: Repository, oid: str) -> bytes:
        return b"no list" if oid == message(archive, tag_of(again)).met else real(self, oid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "read", read)
        archive.database.unlink()
        catch_up(archive)
    assert store.ref(tag_of(again).met_ref) and "webarc.db does not know what" in caplog.text
    with Database(archive.database) as database:
        assert str(tag_of(again)) in database.indexed(tag_of(again).domain)
    assert not any(indexed(archive, again).values())
