"""`import` puts each host's snapshot in its place in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.importing import warcfile
from agent.importing.crawls import CrawlsBy
from agent.importing.import_sources import name_of, sources_of
from agent.importing.planning import Grouping
from agent.indexing.recovery import recover
from agent.jobs import importjob
from agent.reports import report
from tests.support import warcs
from tests.support.archives import rows_of
from tests.support.crawls import arcs, files, read, store
from tests.support.imports import command, import_files, imported, killed_in
from tests.support.mounts import Mounted
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, MAIN, Repository
from webarcfs.archive.history.sequence import Feed

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
PAGE = b"<html><title>%s</title></html>"


def warc(folder: Path, name: str, date: str, pages: dict[str, bytes], host: str = HOST) -> Path:
    """A file with these pages, all captured at one time (UTC; the archive's times are an hour later)."""
    records = [warcs.response(f"http://{host}/{path}", PAGE % body, date) for path, body in pages.items()]
    return warcs.write(folder / f"{name}.warc", records)


def tags(archive: Archive) -> dict[str, set[str]]:
    """Each commitTag of the host with the paths that the view `metadata` gives it."""
    found: dict[str, set[str]] = {}
    for row in rows_of(archive):
        found.setdefault(row["commitTag"], set()).add(f"{row['path'].rpartition('/')[2]}={row['title']}")
    return found


def test_older_captures_become_a_snapshot_in_between(archive: Archive, tmp_path: Path) -> None:
    """Main stays; the feed has a line more, the ref is there; the table is what the trees hold, also after recover."""
    for year, pages in {
        "2020": {"a.html": b"a1", "b.html": b"b1"},
        "2022": {"a.html": b"a1", "b.html": b"b2", "c.html": b"c2"},
        "2024": {"a.html": b"a4"},
    }.items():
        imported(archive, warc(tmp_path, year, f"{year}-01-01T00:00:00Z", pages))
    main = store(archive, HOST).ref(MAIN)
    imported(archive, warc(tmp_path, "2021", "2021-01-01T00:00:00Z", {"a.html": b"a3", "d.html": b"d3"}))
    imported(archive, warc(tmp_path, "2019", "2019-01-01T00:00:00Z", {"b.html": b"b0"}))
    imported(archive, warc(tmp_path, "2021-later", "2021-06-01T00:00:00Z", {"b.html": b"b2"}))

    repository = store(archive, HOST)
    assert repository.ref(MAIN) == main
    assert [line[:7] for line in Feed(archive.changes).lines()] == [
        "2020-01", "2022-01", "2024-01", "2021-01", "2019-01", "2021-06",
    ]  # fmt: skip
    assert {tag[:7]: pages for tag, pages in tags(archive).items()} == {
        "2019-01": {"b.html=b0"},
        "2020-01": {"a.html=a1", "b.html=b1"},
        "2021-01": {"a.html=a3", "b.html=b1", "d.html=d3"},
        "2021-06": {"a.html=a3", "b.html=b2", "d.html=d3"},
        "2022-01": {"a.html=a1", "b.html=b2", "c.html=c2"},
        "2024-01": {"a.html=a4", "b.html=b2", "c.html=c2"},
    }
    crawls = repository.refs(CRAWLS)
    parents = {time[:6]: repository.commit(oid).parents for time, oid in crawls.items()}
    assert parents["201901"] == ()
    assert parents["202101"] == (crawls["20200101T010000"],)
    assert parents["202106"] == (crawls["20210101T010000"],)
    assert repository.commit(crawls["20210101T010000"]).message.all("Source")

    rows, lines = rows_of(archive), archive.changes.read_bytes()
    archive.database.unlink()
    archive.changes.unlink()
    recover(archive)
    assert (rows_of(archive), archive.changes.read_bytes()) == (rows, lines)


def test_the_order_of_importing_makes_no_difference(archive: Archive, tmp_path: Path) -> None:
    """The same states, where each file holds all pages, whichever file comes first."""
    years = {
        "2020": {"a.html": b"1", "b.html": b"1"},
        "2021": {"a.html": b"2", "b.html": b"1"},
        "2022": {"a.html": b"1", "b.html": b"3"},
    }
    for year in ("2022", "2020", "2021"):
        imported(archive, warc(tmp_path, year, f"{year}-01-01T00:00:00Z", years[year]))
    assert {tag[:4]: pages for tag, pages in tags(archive).items()} == {
        year: {f"{path}={body.decode()}" for path, body in pages.items()} for year, pages in years.items()
    }


@pytest.mark.mount
def test_a_mount_shows_an_older_snapshot_at_once(archive: Archive, tmp_path: Path) -> None:
    """Also when somebody had looked for it before."""
    imported(archive, warc(tmp_path, "new", "2024-01-01T00:00:00Z", {"a.html": b"new"}))
    mounted = Mounted(archive.root, tmp_path / "mnt")
    try:
        old = mounted / f".snapshots/2020-01-01T01:00:00@{HOST}"
        assert not old.exists()
        imported(archive, warc(tmp_path, "old", "2020-01-01T00:00:00Z", {"a.html": b"old"}))
        eventually(lambda: old.name in (mounted / ".changes").read_text(), within=60)
        assert (old / "a.html/data.html").read_bytes() == PAGE % b"old"
        assert (mounted / f"{HOST}/a.html/data.html").read_bytes() == PAGE % b"new"
        assert (mounted / f".snapshots/{HOST}/{old.name}").is_symlink()
    finally:
        mounted.clear()


def test_one_time_for_each_host(archive: Archive, tmp_path: Path) -> None:
    """Several files and hosts without a pause are one crawl; each host's snapshot is of its own first record."""
    one = warc(tmp_path, "one", "2021-03-01T10:00:00Z", {"x.html": b"x"})
    two = warcs.write(
        tmp_path / "two.warc.gz",
        [
            warcs.response("http://b.example/", b"b", "2021-03-01T11:00:05Z"),
            warcs.response("http://b.example/2", b"b", "2021-03-01T11:00:04Z"),
            warcs.response(f"http://{HOST}/y.html", b"y", "2021-03-01T09:00:00Z"),
        ],
        "gzip",
    )
    out = imported(archive, one, two)
    assert list(out.tags) == ["2021-03-01T12:00:04@b.example", f"2021-03-01T10:00:00@{HOST}"]
    assert arcs(archive, HOST) == {"x.html", "y.html"}
    message = store(archive, HOST).commit(str(store(archive, HOST).ref(MAIN))).message
    assert len(message.all("Source")) == 2 and len(message.all("Source-End")) == 1
    assert message.publication == name_of(sources_of([one, two]))


def test_twice_changes_nothing(archive: Archive, tmp_path: Path) -> None:
    """Files whose hash is known change nothing, whatever they are called; new ones beside them are imported."""
    one = warc(tmp_path, "one", "2021-03-01T10:00:00Z", {"x.html": b"x"})
    imported(archive, one)
    copy = tmp_path / "copy.warc"
    copy.write_bytes(one.read_bytes())
    before = store(archive, HOST).refs("refs/")
    done = command("import", "--archive", archive.root, copy)
    assert (done.code, done.out) == (0, f"{copy} was imported already\n")
    assert store(archive, HOST).refs("refs/") == before
    two = warc(tmp_path, "two", "2021-04-01T10:00:00Z", {"y.html": b"y"})
    done = command("import", "--archive", archive.root, copy, two)
    assert (done.code, done.out) == (0, f"{copy} was imported already\n2021-04-01T11:00:00@{HOST}\n")
    assert arcs(archive, HOST) == {"x.html", "y.html"}
    assert len(list(archive.reports.iterdir())) == 2
    assert list(archive.jobs.iterdir()) == []


def test_it_removes_only_what_is_complete(archive: Archive, tmp_path: Path) -> None:
    """An import removes nothing, unless it is said to be complete; the shrink guard holds then, too."""
    for number, pages in enumerate(({"a": b"1", "b": b"1", "c": b"1"}, {"a": b"1", "b": b"1"}), 1):
        file = warc(tmp_path, f"whole-{number}", f"2021-0{number}-01T00:00:00Z", pages)
        imported(archive, file, name="site", complete=True)
    assert arcs(archive, HOST) == {"a", "b"}
    imported(archive, warc(tmp_path, "part", "2021-03-01T00:00:00Z", {"a": b"2"}), name="site")
    assert arcs(archive, HOST) == {"a", "b"}
    many = {f"{number}": b"1" for number in range(10)}
    imported(archive, warc(tmp_path, "many", "2021-04-01T00:00:00Z", many), name="site", complete=True)
    less = warc(tmp_path, "less", "2021-05-01T00:00:00Z", {"1": b"1"})
    done = command("import", "--archive", archive.root, "--publication", "site", "--complete", less)
    assert (done.code, "--accept-shrink" in done.err) == (3, True)
    assert arcs(archive, HOST) == set(many)


def test_of_several_captures_of_a_url_the_newest_counts(archive: Archive, tmp_path: Path) -> None:
    """With `--crawls one` and one snapshot: the newest that can be archived, wherever it stands."""
    url = f"http://{HOST}/a.html"
    records = [
        warcs.response(url, b"new", "2021-01-03T00:00:00Z"),
        warcs.response(url, b"old", "2021-01-01T00:00:00Z"),
        warcs.record("response", url, warcs.http(b"gone", status="404 Not Found"), "2021-01-04T00:00:00Z"),
        warcs.record("response", url, warcs.http(b"cut", Content_Length="99"), "2021-01-05T00:00:00Z"),
    ]
    file = warcs.write(tmp_path / "many.warc", records)
    outcome = import_files(archive, file, grouping=Grouping(CrawlsBy.ONE, max_cuts=1)).outcome
    assert read(archive, HOST, "a.html") == b"new"
    assert outcome is not None and ["--max-cuts" in line for line in outcome.warnings] == [True]
    assert [line[:10] for line in Feed(archive.changes).lines()] == ["2021-01-03"]


def test_what_did_not_change_keeps_its_arc(archive: Archive, tmp_path: Path) -> None:
    """The same bytes keep the ARC of the snapshot that an import is made on."""
    imported(archive, warc(tmp_path, "one", "2021-01-01T00:00:00Z", {"a": b"1", "b": b"1"}))
    imported(archive, warc(tmp_path, "two", "2022-01-01T00:00:00Z", {"a": b"1", "b": b"2"}))
    repository = store(archive, HOST)
    one, two = (repository.commit(oid).tree for oid in repository.refs(CRAWLS).values())
    assert {each.path.partition("/")[0] for each in repository.differences(one, two)} == {"b"}
    assert files(archive, HOST)["a"] == files(archive, HOST, repository.refs(CRAWLS)["20210101T010000"])["a"]


def test_an_import_that_is_killed_goes_on(archive: Archive, tmp_path: Path) -> None:
    """At any point: in the middle of a file, between two hosts, before the report."""
    hosts = ("a.example", "b.example", "c.example")
    pages = {f"{number}": b"%d" % number for number in range(30)}
    given = [warc(tmp_path, host, "2021-01-01T00:00:00Z", pages, host) for host in hosts]
    places: tuple[tuple[Any, str, int], ...] = (
        (warcfile._Reading, "take", 40),
        (importjob, "publish_domain", 1),
        (importjob, "publish_domain", 2),
        (Repository, "update_refs", 2),
        (report, "write", 1),
    )
    for owner, name, call in places:
        killed_in(lambda: import_files(archive, *given), owner, name, call)
    assert command("import", "--archive", archive.root, *given).code == 0
    assert sorted(line.partition("@")[2] for line in Feed(archive.changes).lines()) == list(hosts)
    for host in hosts:
        assert len(arcs(archive, host)) == 30
        assert len(store(archive, host).refs(CRAWLS)) == 1
    assert list(archive.jobs.iterdir()) == []
    assert len(list(archive.reports.iterdir())) == 1
    assert "imported already" in command("import", "--archive", archive.root, *given).out
