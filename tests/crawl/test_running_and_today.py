"""What the desk shows of jobs that run, also imports, and of those that ended; and Today when nothing is to do."""

from __future__ import annotations

import getpass
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.crawl import job_folder
from agent.desk.pages import finished_jobs
from agent.importing.import_sources import chosen
from agent.jobs import importjob, publishing
from agent.service import scheduler
from agent.service.scheduler import Past
from tests.support import crawls, desks, warcs
from tests.support.desks import Answer, ServedDesk
from tests.support.site import Site
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication

pytestmark = pytest.mark.crawl


@pytest.fixture
def served(archive: Archive) -> Iterator[ServedDesk]:
    desks.with_people(archive)
    with desks.served(archive) as served:
        yield served


def rows_of(page: Answer) -> list[list[str]]:
    """The cells of the table of jobs that ended."""
    (table,) = page.page.xpath("//table[caption='Jobs that ended last, the newest first']")
    return [[" ".join(cell.text_content().split()) for cell in row] for row in table.xpath("tbody/tr")]


def test_jobs_that_ended_are_shown_with_what_came_of_them(archive: Archive, site: Site, served: ServedDesk) -> None:
    """Result and why, documents, bytes, duration, failures that lead to their URLs; a crawl of which nothing came."""
    site.add_html("/", "<a href='/a'>a</a><a href='/broken'>b</a>")
    site.add_html("/a", "a")
    site.gone("/broken", 500)
    crawls.crawl(archive, site.url("/"), name="first")
    site.add_html("/a", "another a")
    site.back("/broken")
    site.add_html("/broken", "whole")
    crawls.crawl(archive, site.url("/"), name="second")
    crawls.crawl(archive, "http://127.0.0.1:9/", name="third", private_addresses=True)
    for path in ("/running", "/"):
        page = served.client("anna").get(path)
        found = {row[0].partition(",")[0]: row for row in rows_of(page)}
        assert list(found) == ["third", "second", "first"]
        assert found["first"][1] == "◐ complete but for what failed The server failed."
        assert found["second"][1] == "● complete" and found["third"][1].startswith("∅ empty"), found
        assert found["first"][2] == "2 2 new, 0 changed, 0 gone"
        assert found["second"][2] == "3 1 new, 1 changed, 0 gone"
        assert [row[5].partition(":")[0] for row in found.values()] == ["1", "0", "1"]
        assert all(re.fullmatch(r"\d+ (sec|secs|min|mins)", row[4]) for row in found.values())
        (href,) = page.page.xpath("//td[a[contains(., 'first')]]/a/@href")
        assert site.url("/broken") in served.client("anna").get(href).words
        assert page.page.xpath("//table//a[starts-with(@href, '/report/')]")
        assert len(page.page.xpath("//table//a[starts-with(@href, '/snapshot/')]")) >= 2
    german = served.client("carl")
    german.headers["Accept-Language"] = "de"
    words = german.get("/running").words
    assert (
        "vollständig bis auf Fehlschläge" in words
        and "Der Server scheiterte." in words
        and "1 neu, 1 geändert, 0 fort" in words
    )


def test_a_crawl_lacks_what_no_patch_of_it_got(
    archive: Archive, site: Site, served: ServedDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Today, Running and the list for programs count as the crawl's page does."""
    publication = f'[[publication]]\nname = "p"\nurls = ["{site.url("/")}"]\n'
    archive.settings.write_text(f"[crawl]\nwait = 0.0\nsitemaps = false\n{publication}")
    own = f'role = "curator"\nunix = "{getpass.getuser()}"'
    archive.people.write_text(archive.people.read_text().replace('role = "curator"', own))
    site.add_html("/", "<a href='/b'>b</a><a href='/c'>c</a>")
    for path in ("/b", "/c"):
        site.gone(path, 500)
    why = "◐ complete but for what failed The server failed."

    def shown(served: ServedDesk = served) -> tuple[str, str, object]:
        """Result, failures, and the failures in the list for programs."""
        anna = served.client("anna")
        rows = [row for page in ("/", "/running") for row in rows_of(anna.get(page)) if "asked again" not in row[0]]
        assert rows[0] == rows[1] and len(rows) == 2
        (own,) = (job for job in json.loads(anna.get("/finished.json").text) if "+patch" not in job["job"])
        return rows[0][1], rows[0][5].partition(":")[0], own["failures"]

    crawls.run_command("crawl", "--archive", archive.root, "--publication", "p")
    assert shown() == (why, "2", 2)
    (job,) = (folder.name for folder in archive.reports.iterdir())
    for path, after in (("/b", (why, "1", 1)), ("/c", ("● complete", "0", 0))):
        site.back(path)
        site.add_html(path, "whole")
        crawls.run_command("crawl", "--archive", archive.root, "--missing", "p")
        assert shown() == after
        listed = served.client("anna").get(f"/report/{job}/urls?lack=missing").words
        assert f"Number{after[2]}" in listed, listed
    monkeypatch.setattr(finished_jobs, "_LOG_SECONDS", -1.0)
    with desks.served(archive) as another:
        assert shown(another) == (why, "not known", None)


def test_a_job_that_ended_leads_to_its_crawl_once_that_has_a_record(
    archive: Archive, site: Site, served: ServedDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report is there before the record: who looked then sees the link later, without another report."""
    site.add_html("/", "a")
    before: list[Answer] = []
    keep_capture = publishing.keep_capture

    def keep_late(*given: Any) -> None:
        before.append(served.client("anna").get("/running"))
        keep_capture(*given)

    monkeypatch.setattr(publishing, "keep_capture", keep_late)
    done = crawls.crawl(archive, site.url("/"), name="late")
    (early,) = before
    links = f"//table//a[starts-with(@href, '/snapshot/{done.job}')]"
    assert len(rows_of(early)) == 1 and not early.page.xpath(links)
    assert served.client("anna").get("/running").page.xpath(links)


def test_an_import_is_shown_while_it_runs_and_once_it_has_ended(
    archive: Archive, served: ServedDesk, tmp_path: Path
) -> None:
    """At any moment: it is in one of both lists, never in none."""
    path = warcs.write(tmp_path / "a.warc", [warcs.response("http://town.test/", b"<p>x")])
    reached, goes_on = threading.Event(), threading.Event()

    def progress(*_: Any) -> None:
        reached.set()
        goes_on.wait(60)

    def work() -> None:
        from contextlib import ExitStack

        with ExitStack() as stack:
            sources = chosen([path], tmp_path, stack).sources
            importjob.run(archive, sources, Publication(name="town", urls=()), None, progress=progress)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert reached.wait(60)
        page = served.client("anna").get("/running")
        assert "Nothing runs." not in page.words
        (card,) = page.page.xpath("//section[@class='job']")
        assert "town, " in card.text_content() and "import" in card.text_content()
    finally:
        goes_on.set()
        thread.join()
    page = served.client("anna").get("/running")
    assert "Nothing runs." in page.words
    (row,) = rows_of(page)
    assert row[0].startswith("town, ") and "import" in row[0] and row[1] == "● imported"


def test_a_job_that_ends_while_both_folders_are_read_is_in_one_list(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = "20261001T030000-p"
    (archive.jobs / job).mkdir()
    past, read = Past(archive), scheduler._reported

    def ends_then(archive: Archive) -> Any:
        reported = read(archive)
        if (archive.jobs / job).exists():
            (archive.jobs / job).rename(archive.reports / job)
        return reported

    monkeypatch.setattr(scheduler, "_reported", ends_then)
    history = past.read()
    assert history.open == () and history.last == {"p": job}


def test_today_with_nothing_to_do_shows_how_the_archive_is(archive: Archive, site: Site, served: ServedDesk) -> None:
    """Last results, disk, backup, what comes next, and the field for a page that is missing."""
    site.add_html("/", "a")
    archive.settings.write_text(f'[[publication]]\nname = "p"\nurls = ["{site.url("/")}"]\ninterval = "1 week"\n')
    crawls.crawl(archive, site.url("/"), name="p")
    page = served.client("carl").get("/")
    words = page.words
    assert re.search(r"[\d.,]+ [GTM]B of [\d.,]+ [GTM]B are free\. A year brings [\d.,]+ k?B at most", words), words
    assert "Last backup" in words and "None is set up." in words
    assert page.page.xpath("//dd/a[@href='/publications/p']") and rows_of(page)[0][1] == "● complete"
    assert page.page.xpath("//a[@href='/missing']")
    backup = archive.root.parent / "backup"
    with archive.settings.open("a") as file:
        file.write(f'[backup]\nto = "{backup}"\n')
    assert "none yet" in served.client("carl").get("/").words
    assert crawls.run_command("backup", "--archive", archive.root, backup).code == 0
    assert re.search(r"Last backup\d+ \w+ 20\d\d", served.client("carl").get("/").words)
    mark = json.loads((backup / directory.BACKUP).read_text())
    (backup / directory.BACKUP).write_text(json.dumps({**mark, "finished": "", "last": mark["finished"]}))
    assert re.search(r"Last backup\d+ \w+ 20\d\d", served.client("carl").get("/").words), "while another one runs"
    for folder in archive.reports.iterdir():
        (folder / "summary.json").write_text("{broken")
    assert served.client("carl").get("/").status == 200, "a report that cannot be read is no reason to show nothing"


def test_a_report_of_chance_is_no_result(archive: Archive, served: ServedDesk) -> None:
    """Folders without a summary, with one of another version, or with a hostile name."""
    for name, text in (
        ("20261001T030000-x<i>", None),
        ("20261002T030000-y", "[]"),
        ("20261003T030000-z", '{"arcs": 3}'),
    ):
        (archive.reports / name).mkdir()
        if text is not None:
            (archive.reports / name / "summary.json").write_text(text)
    job_folder.new_folder(archive, "p")
    page = served.client("anna").get("/running")
    assert page.status == 200 and "<i>" not in page.text
    assert len(rows_of(page)) == 3
