"""What readers see of real crawls and imports: held, half published, gone and back (R1 to R7)."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

import agent.jobs.publishing
from agent.catalogue.recording import catch_up_records
from agent.indexing.recovery import catch_up
from agent.maintenance.verification import verify
from tests.crawl.test_import_order import HOST, warc
from tests.support import crawls
from tests.support.crawls import crawl, run_command
from tests.support.imports import import_files, killed_in
from tests.support.site import Site
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import format_time
from webarcfs.client import WebarchiveClient

pytestmark = pytest.mark.crawl


def _shown(archive: Archive) -> set[tuple[str, str]]:
    """What the public sees: commitTag and path of each document in each snapshot."""
    with WebarchiveClient(archive.root, reader="") as client:
        found = {(str(meta.commit_tag), meta.path) for meta in client.select()}
        in_git = {
            (str(tag), meta.path)
            for domain in client.domains()
            for tag in client.snapshots(domain)
            for meta in client.at(tag)
        }
        assert found <= in_git  # a snapshot of one publication has, for readers, the pages of the others of then, too
        return found


def _records(archive: Archive) -> dict[str, Record]:
    return {each.id: each for each in Catalogue(archive).records()}


def _release(archive: Archive, record: str, *words: str) -> None:
    done = run_command("record", *(words or ("release",)), record, "--archive", archive.root)
    assert done.code == 0, done.err


def test_a_held_crawl_of_two_hosts_is_hidden_until_all_of_it_is_released(archive: Archive, site: Site) -> None:
    """R1, R3: one record a job; a part that was published before the job was killed waits for the whole."""
    site.add_html("/", '<a href="http://b.example/">b</a>', host="a.example")
    site.add_html("/", "b", host="b.example")
    how = {"name": "two", "hosts": ["b.example"], "release": "by-hand", "wget_args": crawls.through(site.proxy)}
    killed_in(lambda: crawl(archive, "http://a.example/", **how), agent.jobs.publishing, "catch_up_domain", 1)
    catch_up(archive)
    assert catch_up_records(archive) == 0  # its job has not ended
    assert len(list(archive.domains())) == 1 and _shown(archive) == set() and _records(archive) == {}
    outcome = crawl(archive, "http://a.example/", **how)
    (record,) = _records(archive).values()
    assert (
        record.id == outcome.job
        and record.state is RecordState.COUNTED
        and record.domains == ("a.example", "b.example")
    )
    assert _shown(archive) == set()
    _release(archive, record.id)
    assert {path for _, path in _shown(archive)} == {"/a.example/index.html", "/b.example/index.html"}
    assert list(verify(archive)) == []


def test_an_automatic_crawl_is_visible_as_the_mount_shows_it(archive: Archive, site: Site) -> None:
    """R3: from its first published part on, before its record is there."""
    site.add_html("/", '<a href="http://b.example/">b</a>', host="a.example")
    site.add_html("/", "b", host="b.example")
    how = {"name": "two", "hosts": ["b.example"], "wget_args": crawls.through(site.proxy)}
    killed_in(lambda: crawl(archive, "http://a.example/", **how), agent.jobs.publishing, "catch_up_domain", 2)
    catch_up(archive)
    assert {path for _, path in _shown(archive)} == {"/a.example/index.html", "/b.example/index.html"}
    assert _records(archive) == {}
    shutil.rmtree(next(archive.jobs.iterdir()))  # its folder is lost, and so is all that only the job knew
    assert catch_up_records(archive) == 1
    (record,) = _records(archive).values()
    assert record.state is RecordState.RELEASED and len(record.parts) == 2 and not record.text(29)


def test_a_job_that_published_nothing_leaves_an_empty_record(archive: Archive, site: Site) -> None:
    """R3: a line for people, never for readers."""
    crawl(archive, site.url("/missing"), name="none")
    (record,) = _records(archive).values()
    assert record.state is RecordState.EMPTY and record.parts == ()
    with WebarchiveClient(archive.root, reader="") as client:
        assert list(client.records()) == []
    assert "none" in run_command("record", "list", "--archive", archive.root).out


def test_a_held_import_between_two_released_snapshots(archive: Archive, tmp_path: Path) -> None:
    """R1, R5, R6: it takes its place when it is released; its record has its first and its last date."""
    for year, pages in (("2020", {"a": b"1", "b": b"1"}), ("2022", {"a": b"2"})):
        import_files(archive, warc(tmp_path, year, f"{year}-01-01T00:00:00Z", pages), name="crawls", complete=True)
    archive.settings.write_text(f'[[publication]]\nname = "found"\nurls = ["http://{HOST}/"]\nrelease = "by-hand"\n')
    files = [
        warc(tmp_path, "mid", "2021-01-01T00:00:00Z", {"a": b"between", "c": b"between"}),
        warc(tmp_path, "other", "2021-03-01T00:00:00Z", {"x": b"x"}, host="other.example"),
    ]
    done = run_command("import", "--publication", "found", "--crawls", "one", *files, "--archive", archive.root)
    assert done.code == 0, done.err
    before = _shown(archive)
    assert {tag[:4] for tag, _ in before} == {"2020", "2022"} and not any(path.endswith("/c") for _, path in before)
    (record,) = (each for each in _records(archive).values() if each.publication == "found")
    assert record.text(7) == "2021-01-01T01:00:00 to 2021-03-01T01:00:00" and len(record.parts) == 2
    assert record.date is not None and record.id.startswith(format_time(record.date)[:4]) is False  # named as its job
    _release(archive, record.id)
    after = _shown(archive)
    assert before < after and {tag[:4] for tag, _ in after - before} == {"2021"}
    _release(archive, record.id, "withdraw", "--reason", "wrong files")
    assert _shown(archive) == before


def test_a_page_that_is_gone_and_back(archive: Archive, site: Site) -> None:
    """R5: each stay is a version of its own, though the bytes are the same."""
    site.add_html("/", '<a href="/a">a</a>')
    site.add_html("/a", "a")
    how = {"name": "pub", "min_share": 0}
    first = crawl(archive, site.url(), **how)
    site.add_html("/", "without")
    site.gone("/a")
    second = crawl(archive, site.url(), **how)
    site.add_html("/", '<a href="/a">a</a>')
    site.add_html("/a", "a")
    third = crawl(archive, site.url(), release="by-hand", **how)
    page = f"/{site.host}/a"
    assert {tag for tag, path in _shown(archive) if path == page} == {first.tags[0]}
    _release(archive, third.job)
    assert {tag for tag, path in _shown(archive) if path == page} == {first.tags[0], third.tags[0]}
    _release(archive, first.job, "withdraw", "--reason", "x")
    assert {tag for tag, path in _shown(archive) if path == page} == {third.tags[0]}
    assert (second.tags[0], f"/{site.host}/index.html") in _shown(archive)


def test_what_was_said_when_a_job_began_holds_until_somebody_decides(archive: Archive, site: Site) -> None:
    """R10: settings that change later change no record."""
    site.add_html("/", "x")
    said = f'[[publication]]\nname = "pub"\nurls = ["{site.url()}"]\nwait = 0\n'
    for more in ('release = "by-hand"\nclosed_for = "1 day"\n', ""):
        archive.settings.write_text(said + more)
        done = run_command("crawl", "--publication", "pub", "--private-addresses", "--archive", archive.root)
        assert done.code == 0, done.err
    newer, older = Catalogue(archive).records()
    assert (older.release, older.closed_for, older.state) == ("by-hand", "1 day", RecordState.COUNTED)
    assert (newer.release, newer.closed_for, newer.state) == ("automatic", "", RecordState.RELEASED)
    _release(archive, older.id)
    assert Catalogue(archive).read(older.id)[0].closed_for == "1 day"
    assert {tag for tag, _ in _shown(archive)} == {str(newer.parts[0].tag)}  # the older one is closed for a day
    assert older.date is not None and newer.date is not None and newer.date - older.date < timedelta(days=1)


def test_when_checked_releases_what_is_complete(archive: Archive, site: Site) -> None:
    """Without any check, a capture that is complete is released by itself, and another one waits."""
    site.add_html("/", '<a href="/a">a</a>')
    site.add_html("/a", "x" * 5000)
    whole = crawl(archive, site.url(), name="pub", release="when-checked")
    site.add_html("/", '<a href="/a">a</a><a href="/b">b</a>')
    site.add_html("/b", "y" * 50_000)
    part = crawl(archive, site.url(), name="pub", release="when-checked", max_total_size=6_000)
    records = _records(archive)
    assert whole.complete and not part.complete
    assert [records[each.job].state for each in (whole, part)] == [RecordState.RELEASED, RecordState.COUNTED]
