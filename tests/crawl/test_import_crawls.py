"""`import` of files of many crawls at once: each version is found at its time, whatever the order of the files."""

from __future__ import annotations

import base64
import hashlib
import itertools
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.crawl import crawl_log
from agent.importing.crawls import CrawlsBy
from agent.importing.planning import Grouping
from agent.jobs import importjob
from agent.reports import report
from tests.support import warcs
from tests.support.archives import make_archive
from tests.support.crawls import arcs, read, store
from tests.support.foreignfiles import gzipped, write_wacz
from tests.support.imports import command, import_files, imported, killed_in
from tests.support.properties import examples
from webarcfs.access.gate import KnownGate, Reader
from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.metadata import CrawlMessage, from_epoch, utc

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
HOUR = 3600
#: A capture: name of the page, seconds since 2010, content.
History = Sequence[tuple[str, int, str]]


def date(seconds: int) -> str:
    return f"{datetime(2010, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def captured(page: str, seconds: int, content: str, host: str = HOST) -> bytes:
    return warcs.response(f"http://{host}/{page}", f"<title>{content}</title>".encode(), date(seconds))


def versions(archive: Archive, page: str, host: str = HOST) -> list[tuple[str, str]]:
    """Time of capture and content of each version of a page, as webarc.db has them."""
    repository = Repository(archive.repository(host))
    with CaptureIndex(archive.database) as index:
        rows, _ = index.at(f"/{host}/{page}")
    found = {(row.captured, row.blob) for row in rows if not row.target}
    return [
        (f"{utc(from_epoch(time)):%Y-%m-%dT%H:%M:%SZ}", repository.read(blob).decode()[7:-8])
        for time, blob in sorted(found)
    ]


def true_versions(history: History, page: str) -> list[tuple[str, str]]:
    """What a page was, each version with the time at which it was captured first."""
    seen = sorted((time, content) for name, time, content in history if name == page)
    return [(date(next(run)[0]), content) for content, run in itertools.groupby(seen, key=lambda capture: capture[1])]


def shuffled(folder: Path, records: Iterable[bytes], files: int, seed: int) -> Path:
    """A folder of files that have these records in a random order."""
    dice = random.Random(seed)
    parts: list[list[bytes]] = [[] for _ in range(files)]
    for record in dice.sample(list(records), len(list(records))):
        dice.choice(parts).append(record)
    folder.mkdir()
    for number, part in enumerate(parts):
        if part:
            warcs.write(folder / f"{number}.warc.gz", part, "gzip")
    return folder


def test_two_crawls_of_two_years_have_their_times(archive: Archive, tmp_path: Path) -> None:
    """What once became one snapshot of 2010 with the text of 2020."""
    records = {
        year: warcs.response(f"http://{HOST}/", f"as of {year}".encode(), f"{year}-01-01T00:00:00Z")
        for year in (2020, 2010)
    }
    files = [warcs.write(tmp_path / f"{year}.warc", [record]) for year, record in records.items()]
    done = command("import", "--archive", archive.root, *files)
    assert (done.code, done.out.split()) == (0, [f"2010-01-01T01:00:00@{HOST}", f"2020-01-01T01:00:00@{HOST}"])
    crawls = store(archive, HOST).refs(CRAWLS)
    for year in (2010, 2020):
        assert read(archive, HOST, "index.html", crawls[f"{year}0101T010000"]) == f"as of {year}".encode()
    described = [record for record in Catalogue(archive).records() if record.parts]
    assert sorted(str(record.date)[:4] for record in described) == ["2010", "2020"]
    assert [len(record.parts) for record in described] == [1, 1]


HISTORIES = st.lists(
    st.tuples(st.sampled_from(("a", "b", "c")), st.integers(0, 400), st.sampled_from("xyz")), min_size=1, max_size=16,
    unique_by=lambda capture: capture[:2],
).map(lambda history: [(page, minutes * 1800, content) for page, minutes, content in history])  # fmt: skip


@pytest.mark.timeout(1200)
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(HISTORIES, st.integers(1, 5), st.integers(0, 99), st.sampled_from([*CrawlsBy]))
@example([("b", 0, "x"), ("a", 9 * HOUR, "x"), ("a", 1800, "x")], 2, 2, CrawlsBy.FILE)
def test_no_history_loses_a_version_or_a_time(
    tmp_path_factory: pytest.TempPathFactory, history: History, files: int, seed: int, crawls: CrawlsBy
) -> None:
    """However the captures lie in the files, and whatever is one crawl."""
    folder = tmp_path_factory.mktemp("history")
    archive = make_archive(folder)
    made = shuffled(folder / "files", [captured(*capture) for capture in history], files, seed)
    result = import_files(archive, made, grouping=Grouping(crawls, 12 * HOUR, 100))
    assert all(not outcome.warnings for outcome in result.outcomes)
    for page in {name for name, _, _ in history}:
        assert versions(archive, page) == true_versions(history, page)
        assert read(archive, HOST, page).decode()[7:-8] == true_versions(history, page)[-1][1]


def test_a_crawl_with_two_versions_of_a_page_has_two_snapshots_and_one_record(archive: Archive, tmp_path: Path) -> None:
    """A further snapshot has what changed; what did not is carried on. The record counts the last one."""
    history = [("a", 0, "a1"), ("b", 10, "b1"), ("a", 20, "a2"), ("c", 30, "c1"), ("b", 40, "b1")]
    outcome = imported(archive, warcs.write(tmp_path / "x.warc", [captured(*each) for each in history]), name="site")
    assert outcome.tags == (f"2010-01-01T01:00:00@{HOST}", f"2010-01-01T01:00:20@{HOST}")
    crawls = store(archive, HOST).refs(CRAWLS)
    assert arcs(archive, HOST, crawls["20100101T010000"]) == {"a", "b"}
    assert read(archive, HOST, "a", crawls["20100101T010000"]) == b"<title>a1</title>"
    assert arcs(archive, HOST) == {"a", "b", "c"}
    (record,) = Catalogue(archive).records()
    assert ([str(part.tag)[:19] for part in record.parts], record.domains) == (
        ["2010-01-01T01:00:00", "2010-01-01T01:00:20"], (HOST,),
    )  # fmt: skip
    assert (record.text(23), record.text(12)) == ("3", HOST)
    with crawl_log.reading(archive.reports / outcome.job) as lines:
        told = [
            (line.split()[3].rpartition("/")[2], line.split()[11].rpartition(",")[0].rpartition(",")[2])
            for line in lines
        ]
    assert told == [("a", "added"), ("b", "added"), ("a", "changed"), ("c", "added"), ("b", "unchanged")]


def test_what_is_complete_removes_at_the_last_snapshot_of_a_crawl(archive: Archive, tmp_path: Path) -> None:
    """Pages of its earlier snapshots stay; what is gone in between, and what only the crawl before had, goes."""
    first = [captured("old", 0, "1"), captured("a", 1, "a1"), captured("b", 2, "b1")]
    imported(archive, warcs.write(tmp_path / "1.warc", first), name="site", complete=True)
    day = 24 * HOUR
    gone = warcs.record("response", f"http://{HOST}/b", warcs.http(b"", status="404 Not Found"), date(day + 50))
    second = [
        captured("a", day, "a1"), captured("b", day + 1, "b2"), captured("c", day + 2, "c1"),
        captured("a", day + 20, "a2"), gone, captured("d", day + 60, "d1"),
    ]  # fmt: skip
    imported(archive, warcs.write(tmp_path / "2.warc", second), name="site", complete=True)
    crawls = store(archive, HOST).refs(CRAWLS)
    assert [arcs(archive, HOST, crawls[name]) for name in sorted(crawls)] == [
        {"old", "a", "b"}, {"old", "a", "b", "c"}, {"a", "c", "d"},
    ]  # fmt: skip
    record = next(record for record in Catalogue(archive).records() if len(record.parts) == 2)
    assert (record.complete, [part.complete for part in record.parts]) == (True, [False, True])


def test_crawlers_name_their_crawls(archive: Archive, tmp_path: Path) -> None:
    """By folders, a WACZ, isPartOf; a new warcinfo alone is none. What has no name is parted by pauses."""

    def put(path: str, *records: bytes) -> None:
        (tmp_path / "top" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / path).write_bytes(gzipped(list(records)))

    def info(collection: str) -> bytes:
        block = b"software: x\r\n" + (f"isPartOf: {collection}\r\n".encode() if collection else b"")
        return warcs.raw_record({"WARC-Type": "warcinfo", "Content-Length": str(len(block))}, block)

    month = 30 * 24 * HOUR
    for launch, time in (("20100101000000", 0), ("20100301000000", 2 * month)):
        put(f"jobs/news/{launch}/warcs/WEB-1.warc.gz", info("news"), captured("h", time, launch))
        put(f"jobs/news/{launch}/warcs/WEB-2.warc.gz", info("news"), captured("h2", time + 20 * HOUR, launch))
    for snapshot, time in (("1262304000.0", 5), ("1262304060.1", 65)):
        put(f"archive/{snapshot}/warc/1.warc.gz", captured("box", time, snapshot))
    put("a.warc.gz", info("ours"), captured("p", 0, "1"), info("ours"), captured("p", month, "2"))
    put("b.warc.gz", info(""), captured("n", 0, "1"), info(""), captured("n", HOUR, "2"), captured("n", month, "3"))
    wacz = [captured("w", 0, "1"), captured("w", 3 * month, "2")]
    write_wacz(tmp_path / "top" / "c.wacz", {"archive/c.warc.gz": gzipped(wacz)})
    result = import_files(archive, tmp_path / "top", name="site")
    pages: dict[str, set[str]] = {}
    for outcome in result.outcomes:
        with crawl_log.reading(archive.reports / outcome.job) as lines:
            pages[outcome.job.rpartition(".")[2]] = {line.split()[3].rpartition("/")[2] for line in lines}
    assert sorted(map(sorted, pages.values())) == [
        ["box"], ["box"], ["h", "h2"], ["h", "h2"], ["n"], ["n"], ["p"], ["w"],
    ]  # fmt: skip
    assert [content for _, content in versions(archive, "n")] == ["1", "2", "3"]
    assert [content for _, content in versions(archive, "box")] == ["1262304000.0", "1262304060.1"]


def test_crawls_that_overlap_carry_each_other_on(archive: Archive, tmp_path: Path) -> None:
    """Snapshots are published in order of time, not crawl by crawl: the newest state has what both have."""
    day = 24 * HOUR
    for name, times in (("one", (0, 20)), ("two", (10, 30))):
        made = [captured(f"{name}-{at}", at * day, "x") for at in times] + [
            captured("both", at * day, f"{at}") for at in times
        ]
        write_wacz(tmp_path / f"{name}.wacz", {"archive/x.warc.gz": gzipped(made)})
    result = import_files(archive, tmp_path / "one.wacz", tmp_path / "two.wacz")
    assert sorted(len(outcome.tags) for outcome in result.outcomes) == [2, 2]
    assert arcs(archive, HOST) == {"both", "one-0", "one-20", "two-10", "two-30"}
    assert [content for _, content in versions(archive, "both")] == ["0", "10", "20", "30"]


def test_more_versions_than_wanted_are_told_one_by_one(archive: Archive, tmp_path: Path) -> None:
    """Exit code 3, a line, a count, and a word each in crawl.log; the other pages keep all."""
    clock = [("clock", minute * 60, f"{minute}") for minute in range(40)]
    page = [("page", 1, "one"), ("page", 20 * 60 + 1, "two")]
    file = warcs.write(tmp_path / "x.warc", [captured(*each) for each in (*clock, *page)])
    done = command("import", "--archive", archive.root, "--max-cuts", "5", file)
    assert done.code == 3 and "--max-cuts" in done.err and "times" in done.err
    found = versions(archive, "clock")
    assert (found[0], found[-1]) == ((date(0), "0"), (date(39 * 60), "39")) and 2 < len(found) <= 5
    assert versions(archive, "page") == true_versions(page, "page")
    (folder,) = archive.reports.iterdir()
    with crawl_log.reading(folder) as lines:
        dropped = sum("max-cuts" in line for line in lines)
    assert dropped == 40 - len(found)


def test_an_import_of_many_crawls_that_is_killed_goes_on_by_its_plan(archive: Archive, tmp_path: Path) -> None:
    """Also with other options: the plan is written before anything is published. No file is known before its end."""
    history = [
        (page, year * 365 * 24 * HOUR + at, f"{year}-{at}") for year in range(3) for at in (0, 9) for page in "ab"
    ]
    folder = shuffled(tmp_path / "files", [captured(*each) for each in history], 3, 1)
    for owner, name, call in (
        (importjob, "publish_domain", 1),
        (Repository, "update_refs", 2),
        (importjob.CutPublishing, "_digests", 3),
        (report, "write", 1),
        (report, "remove_job", 1),
    ):
        killed_in(lambda: import_files(archive, folder, name="site"), owner, name, call)
        assert command("status", "--archive", archive.root).code == 0
    result = import_files(archive, folder, name="site", grouping=Grouping(CrawlsBy.ONE, max_cuts=1))
    assert result.outcome is None or not result.outcome.warnings
    for page in "ab":
        assert versions(archive, page) == true_versions(history, page)
    records = [record for record in Catalogue(archive).records() if record.parts]
    assert [len(record.parts) for record in records] == [2, 2, 2]
    assert len(list(archive.reports.iterdir())) == 3
    assert import_files(archive, folder, name="site").outcome is None
    assert list(archive.jobs.iterdir()) == []


def test_a_file_is_known_when_the_last_of_its_snapshots_is_there(archive: Archive, tmp_path: Path) -> None:
    from agent.importing.import_sources import known_sources

    file = warcs.write(tmp_path / "x.warc", [captured("a", year * 365 * 24 * HOUR, f"{year}") for year in range(3)])
    killed_in(lambda: import_files(archive, file), importjob, "publish_domain", 3)
    assert known_sources(archive) == set() and len(store(archive, HOST).refs(CRAWLS)) == 2
    import_files(archive, file)
    assert len(known_sources(archive)) == 1


def test_a_revisit_of_nothing_waits_for_a_later_import(archive: Archive, tmp_path: Path) -> None:
    """`report` names it until then; it is found at its own time, and in a crawl of its own."""
    day = 24 * HOUR
    body = b"<title>first</title>"
    digest = f"sha1:{base64.b32encode(hashlib.sha1(body).digest()).decode()}"
    revisits = [
        warcs.record("revisit", f"http://{HOST}/{page}", warcs.http(b""), date(at), Payload_Digest=digest)
        for page, at in (("a", 40 * day), ("b", 40 * day + HOUR))
    ]
    later = warcs.write(tmp_path / "later.warc", [*revisits, captured("c", 40 * day, "c")])
    assert command("import", "--archive", archive.root, "--publication", "site", later).code == 3
    (report_of,) = archive.reports.iterdir()
    told = command("report", "--archive", archive.root, report_of.name).out
    assert "wait until an import" in told and f"http://{HOST}/a" in told.partition("wait until")[2], told
    nothing = warcs.write(tmp_path / "nothing.warc", [captured("d", 20 * day, "d")])
    imported(archive, nothing, name="other")
    assert len(list(report.folders_with_waiting(archive.reports))) == 1
    first = warcs.write(tmp_path / "first.warc", [captured("a", 0, "first")])
    result = import_files(archive, first, name="site")
    assert all(not outcome.warnings for outcome in result.outcomes)
    assert not report.folders_with_waiting(archive.reports)
    assert versions(archive, "b") == [(date(40 * day + HOUR), "first")]
    assert len(store(archive, HOST).refs(CRAWLS)) == 4
    assert command("verify", "--archive", archive.root).code == 0


def test_a_trial_prints_the_plan_and_publishes_nothing(archive: Archive, tmp_path: Path) -> None:
    year = 365 * 24 * HOUR
    history = [("a", 0, "1"), ("a", 9, "2"), ("b", 5, "b"), ("a", year, "3")]
    records = [captured(*capture) for capture in history]
    records += [captured("x", 3, "x", host="other.example"), warcs.record("response", f"http://{HOST}/n", b"headless")]
    folder = shuffled(tmp_path / "files", records, 3, 5)
    before = {path.name for path in archive.log.iterdir()}
    done = command("import", "--archive", archive.root, "--try", folder)
    assert done.code == 3 and not [*archive.jobs.iterdir(), *archive.domains(), *archive.reports.iterdir()]
    assert {path.name for path in archive.log.iterdir()} - before <= {"imported.json"}
    lines = done.out.splitlines()
    assert lines[0].startswith("crawl 1: 2010-01-01T01:00:00 to ") and ", 2 hosts, 4 captures, " in lines[0]
    assert any(line.startswith(f"  {HOST}: 3 captures in 2 snapshots") for line in lines)
    assert any(line.startswith("crawl 2: 2011-01-01T01:00:00") for line in lines)
    assert any(line.startswith("not taken: 1 no-head") for line in lines)
    assert command("import", "--archive", archive.root, folder).code == 3
    again = command("import", "--archive", archive.root, "--try", "--again", folder)
    assert again.out.startswith("nothing would be added"), again


def test_known_files_are_taken_again_for_what_is_missing(archive: Archive, tmp_path: Path) -> None:
    """What `--max-cuts` left out comes, the rest is not doubled."""
    history = [("clock", minute * 60, f"{minute}") for minute in range(9)] + [
        ("page", 30, "page"),
        ("page", 90, "page"),
    ]
    folder = shuffled(tmp_path / "files", [captured(*capture) for capture in history], 2, 3)
    assert command("import", "--archive", archive.root, "--max-cuts", "3", folder).code == 3
    assert len(versions(archive, "clock")) == 3
    snapshots = len(store(archive, HOST).refs(CRAWLS))
    assert command("import", "--archive", archive.root, "--again", folder).code == 0
    assert versions(archive, "clock") == true_versions(history, "clock")
    assert versions(archive, "page") == true_versions(history, "page")
    count = len(store(archive, HOST).refs(CRAWLS))
    assert count <= snapshots + 9
    done = command("import", "--archive", archive.root, "--again", folder)
    assert (done.code, len(store(archive, HOST).refs(CRAWLS))) == (0, count), done.err
    assert command("verify", "--archive", archive.root).code == 0


def test_what_an_older_version_made_one_snapshot_is_named_and_parted(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`upgrade` says the command; with it, each capture has its time."""
    year = 365 * 24 * HOUR
    history = [("a", 0, "1"), ("c", 1, "c"), ("b", year, "b"), ("a", year, "2")]
    file = warcs.write(tmp_path / "years.warc", [captured(*capture) for capture in history])
    flat = CrawlMessage.__str__

    def of_older(message: CrawlMessage) -> str:
        lines = flat(message).splitlines()
        return "\n".join(line for line in lines if not line.startswith(("Import:", "Source-End:"))) + "\n"

    with monkeypatch.context() as patch:
        patch.setattr(CrawlMessage, "__str__", of_older)
        import_files(archive, file, name="old", grouping=Grouping(CrawlsBy.ONE, max_cuts=1))
    told = command("upgrade", "--archive", archive.root).out
    assert "import --again --publication old" in told and f"@{HOST}" in told, told
    assert command("import", "--archive", archive.root, "--publication", "old", file).out.endswith("already\n")
    assert command("import", "--archive", archive.root, "--again", "--publication", "old", file).code == 0
    for page in "abc":
        assert set(versions(archive, page)) == set(true_versions(history, page))
    assert command("verify", "--archive", archive.root).code == 0


def test_a_redirect_takes_the_place_of_the_page_from_then_on(archive: Archive, tmp_path: Path) -> None:
    """In one crawl and in a later one; a page that comes back, too. The page stays in its snapshots."""

    def moved(page: str, seconds: int) -> bytes:
        head = warcs.http(b"", status="301 Moved", Location=f"http://{HOST}/c")
        return warcs.record("response", f"http://{HOST}/{page}", head, date(seconds))

    day = 24 * HOUR
    records = [
        captured("a", 0, "a1"), captured("b", 1, "b1"), captured("c", 2, "c"), moved("a", 10),
        moved("b", 30 * day), captured("b", 60 * day, "b2"),
    ]  # fmt: skip
    result = import_files(archive, shuffled(tmp_path / "files", records, 3, 1))
    assert len(result.outcomes) == 3 and all(not outcome.warnings for outcome in result.outcomes)
    found = {(page, at): shown(archive, page, at) for page in "ab" for at in (5, 10, 29 * day, 30 * day, 61 * day)}
    moved_to = f"http://{HOST}/c"
    assert found == {
        ("a", 5): "a1", **{("a", at): moved_to for at in (10, 29 * day, 30 * day, 61 * day)},
        ("b", 5): "b1", ("b", 10): "b1", ("b", 29 * day): "b1", ("b", 30 * day): moved_to, ("b", 61 * day): "b2",
    }  # fmt: skip
    assert command("verify", "--archive", archive.root).code == 0


def shown(archive: Archive, page: str, seconds: int) -> str:
    """The title of the page that readers see at a time, or where it leads."""
    gate = KnownGate(archive, Reader())
    gate.look()
    with CaptureIndex(archive.database) as index:
        at = int(datetime(2010, 1, 1, tzinfo=UTC).timestamp()) + seconds
        capture = VisibleCaptures(gate, index).state(f"http://{HOST}/{page}", at).capture
    assert capture is not None, (page, seconds)
    return capture.target or store(archive, HOST).read(capture.blob).decode()[7:-8]
