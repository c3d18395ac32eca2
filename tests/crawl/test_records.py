"""`webarc-agent record`: a record for each capture, from git alone where the reports are gone."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from agent.catalogue import recording
from agent.catalogue.recording import catch_up_records
from agent.indexing import recovery
from tests.crawl.test_import_order import warc
from tests.support.archives import DOMAIN, publish
from tests.support.crawls import crawl, run_command
from tests.support.imports import imported
from tests.support.site import Site
from webarcfs.archive.catalogue import record
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.versions import statistics

pytestmark = pytest.mark.crawl


def _records(archive: Archive) -> list[Record]:
    """The records of an archive, as they were numbered."""
    return sorted(Catalogue(archive).records(), key=lambda each: each.number)


def _is_counted(archive: Archive, record: Record) -> bool:
    """Whether the counts by difference are what walking the whole trees gives."""
    whole = [_walked(archive, record, domain) for domain in record.domains]
    assert [record.text(number) for number in (22, 23)] == [str(sum(each[n] for each in whole)) for n in (0, 1)]
    return True


def _walked(archive: Archive, record: Record, domain: str) -> tuple[int, int]:
    part = next(each for each in record.parts if each.tag.domain == domain)
    store = Repository(archive.repository(domain))
    found = statistics(store, part.seen or store.snapshot_tree(part.tag))
    return found.bytes, found.documents


def test_each_capture_has_a_record(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/a.html">a</a><a href="/deep/er/b.png">b</a>')
    site.add_html("/a.html", "a")
    site.add("/deep/er/b.png", b"b" * 100, "image/png")
    first = crawl(archive, site.url(), name="pub")
    site.add_html("/", '<a href="/a.html">a</a><a href="/c.css">c</a>')
    site.add("/c.css", b"c", "text/css")
    second = crawl(archive, site.url(), name="pub", release="by-hand")
    one, two = _records(archive)
    assert [each.id for each in (one, two)] == [first.job, second.job]
    assert [(each.number, each.state, each.complete) for each in (one, two)] == [
        (1, RecordState.RELEASED, True), (2, RecordState.COUNTED, True),
    ]  # fmt: skip
    assert _is_counted(archive, one) and _is_counted(archive, two)
    assert [one.text(24), two.text(24)] == ["2", "0"]
    assert recording.parsed(one.text(25)) == {"html": 2, "png": 1}
    assert recording.parsed(two.text(25)) == {"html": 2, "css": 1}
    assert [one.text(28), two.text(28)] == ["html, png", "css"]
    assert one.text(12) == site.host and one.text(29).endswith(" s")
    assert record.read_record(record.write_record(two)) == two


#: The fields that a capture fills without any input, in the order of their numbers.
_WITHOUT_INPUT = (*range(1, 6), 7, 8, *range(10, 20), *range(21, 26), 28, 29, *range(31, 35))


def test_a_capture_without_any_input_fills_these_fields(archive: Archive, site: Site) -> None:
    site.add_html("/", "x")
    crawl(archive, site.url(), name="pub")
    (record,) = _records(archive)
    assert [number for number in range(1, 35) if record.text(number)] == list(_WITHOUT_INPUT)
    texts = {each: record.text(each) for each in _WITHOUT_INPUT}
    print(texts)
    assert texts[2] == "pub" and texts[3] == site.host and texts[4] == "Internet"
    assert texts[11].startswith("Wget/") and "--warc-file" in texts[19]
    assert f"content/{site.host}.git refs/crawls/" in texts[33]
    assert [event.what for event in record.events] == ["captured"]


def test_settings_describe_the_records(archive: Archive, site: Site) -> None:
    archive.settings.write_text(
        '[describe]\nsignature = "5100"\nproject = "Sites"\n'
        f'[[publication]]\nname = "pub"\nurls = ["{site.url()}"]\nwait = 0\nclosed_for = "30 years"\n'
        'description = "The site"\nnote = "Since 2005"\n[publication.describe]\nprovenance = "Press office"\n'
    )
    site.add_html("/", "x")
    assert run_command("crawl", "--publication", "pub", "--archive", archive.root, "--private-addresses").code == 0
    (record,) = _records(archive)
    assert [record.text(number) for number in (2, 3, 4)] == ["5100", "Press office", "Sites"]
    assert (record.release, record.closed_for, record.state) == ("automatic", "30 years", RecordState.RELEASED)


def test_records_of_a_hundred_older_captures_are_made_from_git_alone(archive: Archive) -> None:
    for number in range(100):
        pages = {f"{number % 10}/page.html": b"x" * number, f"{number}.png": b"y"}
        if number > 3:
            pages[f"{number - 3}.png"] = None  # type: ignore[assignment]
        publish(archive, pages=pages)
    shutil.rmtree(archive.reports)
    recovery.catch_up(archive)
    assert catch_up_records(archive) == 100 and catch_up_records(archive) == 0
    found = _records(archive)
    assert len(found) == len({each.id for each in found}) == 100
    assert found[0].publication == "test" and found[-1].number == 100
    assert all(_is_counted(archive, each) for each in found[::20])
    assert not any(each.text(number) for each in found for number in (29, 31))  # what only the report knows
    assert {record.read_record(record.write_record(each)) == each for each in found} == {True}


def test_two_publications_and_an_import_are_captures_of_their_own(archive: Archive, site: Site, tmp_path: Path) -> None:
    site.add_html("/", '<a href="/a">a</a>')
    site.add_html("/a", "a")
    crawl(archive, site.url(), name="whole")
    crawl(archive, site.url(), name="home", depth=0)
    imported(archive, warc(tmp_path, "old", "2020-01-01T00:00:00Z", {"a": b"0"}), name="old")
    whole, home, old = _records(archive)
    assert [each.text(23) for each in (whole, home, old)] == ["2", "1", "1"]  # what each publication saw
    assert [each.publication for each in (whole, home, old)] == ["whole", "home", "old"]
    assert old.text(7).startswith("2020-01-01")
    assert not any(each.text(9) for each in (whole, home, old)), "a server that names no system"


def test_the_command(archive: Archive, site: Site, tmp_path: Path) -> None:
    site.add_html("/", "x")
    for _ in range(3):
        crawl(archive, site.url(), name="pub")
    done = run_command("record", "list", "--limit", "2", "--archive", archive.root)
    assert done.code == 0 and "and 1 older ones" in done.out
    done = run_command("record", "list", "--json", "--archive", archive.root)
    listed = [json.loads(line) for line in done.out.splitlines()]
    assert [each["number"] for each in listed] == [3, 2, 1]
    newest = listed[0]["record"]
    shown = run_command("record", "show", newest, "--archive", archive.root)
    assert "bytes after the download" in shown.out and "conversion tool" not in shown.out
    shown = run_command("record", "show", "3", "--all", "--archive", archive.root)
    assert "conversion tool" in shown.out and "(convert)" in shown.out
    found = json.loads(run_command("record", "show", newest, "--json", "--archive", archive.root).out)
    assert (found["files"], found["domain"], found["complete"]) == ("1", site.host, "yes")
    raw = run_command("record", "export", newest, "--archive", archive.root).out
    assert record.read_record(raw.encode()).id == newest
    rows = list(
        csv.DictReader(io.StringIO(run_command("record", "export", "--format", "csv", "--archive", archive.root).out))
    )
    assert [each["number"] for each in rows] == ["3", "2", "1"]
    done = run_command("record", "export", "--to", tmp_path / "out", "--archive", archive.root)
    assert done.code == 0 and len(list((tmp_path / "out").glob("*.xml"))) == 3
    assert run_command("record", "export", "--archive", archive.root).code == 1
    assert run_command("record", "show", "nonsense", "--archive", archive.root).code == 2
    assert DOMAIN not in found["domain"]


def test_the_fields_are_listed() -> None:
    told = [json.loads(line) for line in run_command("record", "fields", "--json").out.splitlines()]
    assert len(told) == 81
    assert told[7] == {
        "number": 8, "group": "1", "kind": "LOG", "name": "person", "en": "person", "de": "Bearbeiter",
        "step": "capture", "set_by": "system", "archivist": "never", "administrator": False, "readers": False,
    }  # fmt: skip
    assert "Bestandssignatur" in run_command("record", "fields").out
