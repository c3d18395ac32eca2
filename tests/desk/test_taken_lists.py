"""Every list of the desk can be taken away, all of it, as a table and as JSON, by those who may see its page."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent import desk
from agent.crawl import job_folder
from agent.desk.pages import taken
from agent.desk.server.app import ROUTES
from agent.operations import records
from tests.desk.conftest import World, make_archive, record_id, when
from tests.support import desks
from tests.support.desks import Answer
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import FIELDS, RecordState
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import Right, Role
from webarcfs.archive.model.errors import TooMany
from webarcfs.archive.model.metadata import compact_time, format_time
from webarcfs.web import table_files
from webarcfs.web.routing import find_route
from webarcfs.web.table_files import TableFile, as_csv, csv_pieces, harmless

pytestmark = pytest.mark.store
_TEMPLATES = Path(desk.__file__).parent / "theme/templates"
#: More crawls than a page has rows.
_CRAWLS = 57
JOB, OPEN = record_id(_CRAWLS - 1), "20261201T030000-p"
#: Jobs of the same publication that ended before, newest first.
EARLIER = [record_id(9), record_id(5)]
#: The text of an event, of a note and of a name, which a program of tables would take for a formula.
FORMULA = '=HYPERLINK("http://evil.test/","x")'

#: Template with a table or a list of rows → the lists that its page leads to, as paths without the ending.
LISTS = {
    "snapshots.html": {"/snapshots"},
    "snapshot.html": {"/snapshot/{record}/fields", "/snapshot/{record}/history", "/snapshot/{record}/attachments"},
    "running.html": {"/running", "/finished"},
    "report.html": {"/report/{job}/tables", "/report/{job}/pages"},
    "publications.html": {"/publications"},
    "registers.html": {"/registers/formats", "/registers/types", "/registers/programs"},
    "access.html": {"/access"},
    "people.html": {"/people"},
    "tokens.html": {"/tokens"},
}
#: Templates with rows of other lists, or with a table that is no list of the archive's.
NO_LISTS = {
    "desk_parts.html": "macros of the others",
    "today.html": "parts of the crawls, which its links choose in that list",
    "compared.html": "the crawls of a publication, to choose one from",
    "several.html": "the fields of the form of the ticked crawls",
    "trial_parts.html": "what a trial found, which nobody keeps",
    "missing_page.html": "what each crawl did with one URL",
    "url_list.html": "the URLs behind a count, a CSV file of any length, which is written as the log is read",
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A desk whose lists are longer than a page, with hostile words in them."""
    archive = make_archive(tmp_path_factory.mktemp("full") / "archive", (RecordState.COUNTED,) * 3)
    catalogue = Catalogue(archive)
    first, _ = catalogue.read(record_id(0))
    for at in range(3, _CRAWLS):
        own = f"{compact_time(when(0) + timedelta(days=at))}-p"
        catalogue.save([replace(first, id=own, number=0, parts=())], "test", own)
    acting = Acting("Anna", None)
    records.attach(archive, record_id(0), f"{FORMULA[1:5]}.pdf", io.BytesIO(b"%PDF"), acting, note=FORMULA)
    (archive.jobs / OPEN).mkdir()
    job_folder.save_item(archive.jobs / OPEN, job_folder.JobState(job=OPEN, publication="p"))
    report = archive.reports / JOB
    report.mkdir()
    summary = {"complete": True, "bytes": 10, "arcs": {"added": 1, "unchanged": 2}}
    (report / "summary.json").write_text(json.dumps(summary), "utf-8")
    for job in EARLIER:
        (archive.reports / job).mkdir()
    line = "2026-10-01T03:00:00Z 200 10 http://www.example.test/ - - text/html #1 - - - archived\n"
    with gzip.open(report / "crawl.log.gz", "wt", encoding="utf-8") as log:
        log.write(line)
    folder = archive.settings.with_name("publications.d")
    folder.mkdir()
    for number in range(60):
        text = f'[[publication]]\nname = "n{number}"\nurls = ["http://n{number}.test/"]\ndescription = "@sum"\n'
        (folder / f"n{number}.toml").write_text(text, "utf-8")
    people.add_token(archive, "adam", "laptop", [Scope.READ], by=Acting("Adam", (Role.ADMINISTRATOR,), "adam"))
    with desks.served(archive) as served:
        yield World(archive, served, (record_id(0), JOB))
    shutil.rmtree(archive.root)


def path_of(path: str) -> str:
    return path.format(record=record_id(0), job=JOB)


def rows_of(answer: Answer) -> list[list[str]]:
    return list(csv.reader(io.StringIO(answer.text)))


def test_each_template_with_a_table_leads_to_its_lists() -> None:
    """A new table needs a list to take away, or a reason in `NO_LISTS`."""
    with_rows = re.compile(r"parts\.(table|stacked)\(|d\.snapshots\(|<table|d\.lacks\(|d\.orders_given\(")
    found = {path.name for path in _TEMPLATES.glob("*.html") if with_rows.search(path.read_text("utf-8"))}
    assert found - LISTS.keys() - NO_LISTS.keys() == set()
    assert {path for paths in LISTS.values() for path in paths} == {one.path for one in taken.LISTS}
    for template, paths in LISTS.items():
        assert (_TEMPLATES / template).read_text("utf-8").count("parts.taken(") == len(paths), template


@pytest.mark.parametrize("one", taken.LISTS, ids=lambda one: one.name)
def test_a_list_asks_for_the_right_of_its_page(one: taken.TakenList) -> None:
    template = next(name for name, paths in LISTS.items() if one.path in paths)
    page = {"snapshot.html": "/snapshot/x", "report.html": "/report/x", "registers.html": "/registers",
            "running.html": "/running"}.get(template, one.path)  # fmt: skip
    known = find_route(ROUTES, page)
    file = find_route(ROUTES, f"{path_of(one.path)}.csv")
    assert known is not None and file is not None and file[0].post is None
    assert known[0].looks is file[0].looks is one.looks
    assert (one.looks is Right.PEOPLE) == (one.path == "/people")


@pytest.mark.parametrize("one", taken.LISTS, ids=lambda one: one.name)
def test_each_list_is_taken_away_whole_as_a_table_and_as_json(full: World, one: taken.TakenList) -> None:
    client = full.served.client("adam")
    path = path_of(one.path)
    table, named = client.get(f"{path}.csv"), client.get(f"{path}.json")
    assert (table.status, named.status) == (200, 200)
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert named.headers["content-type"] == "application/json"
    for answer, kind in ((table, "csv"), (named, "json")):
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        assert answer.headers["content-disposition"].endswith(f'.{kind}"')
        assert answer.headers["cache-control"] == "private, no-store"
    heads, *rows = rows_of(table)
    entries = json.loads(named.text)
    assert len(rows) == len(entries) and all(list(entry) == heads for entry in entries)
    if one.path not in ("/access", "/report/{job}/pages"):
        assert rows
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-\D", cell)]
    assert client.get(f"{path}.xml").status == 404
    stranger = desks.Client(full.served.port)
    assert "Log in" in stranger.get(f"{path}.csv").words, "nobody who has not logged in sees it"


def test_a_list_has_all_rows_and_those_alone_that_its_page_chooses(full: World) -> None:
    client = full.served.client("carl")
    assert len(rows_of(client.get("/snapshots.csv"))) == _CRAWLS + 1
    assert len(rows_of(client.get("/snapshots.csv?state=released"))) == 1
    page = client.get("/snapshots?year=2026&order=oldest&page=2")
    (href,) = page.page.xpath("//a[contains(@href, '/snapshots.csv')]/@href")
    oldest = rows_of(client.get(href))
    assert len(oldest) == _CRAWLS + 1 and oldest[1][1] == record_id(0)
    assert len(rows_of(client.get("/publications.csv"))) == 62
    (href,) = client.get("/publications?q=n7").page.xpath("//a[contains(@href, '/publications.csv')]/@href")
    assert [row[0] for row in rows_of(client.get(href))] == ["publication", "n7"]
    assert rows_of(client.get("/publications.csv"))[2][1] == "'@sum"
    assert len(rows_of(client.get(f"/snapshot/{record_id(0)}/fields.csv"))) == len(FIELDS) + 1
    report = rows_of(client.get(f"/report/{JOB}/tables.csv"))
    assert ["hosts", "www.example.test", "1", "10"] in report


def test_the_file_of_finished_jobs_has_the_jobs_of_its_page_with_their_figures(full: World) -> None:
    client = full.served.client("carl")
    page = client.get("/running").page
    shown = [href.rpartition("/")[2] for href in page.xpath("//th/a[starts-with(@href, '/report/')]/@href")]
    entries = json.loads(client.get("/finished.json").text)
    assert [entry["job"] for entry in entries] == shown == [JOB, *EARLIER], "all of one publication"
    wanted = {"publication": "p", "begun": format_time(when(_CRAWLS - 1)), "result": "complete", "documents": 3,
              "added": 1, "bytes": 10, "failures": 0}  # fmt: skip
    assert wanted.items() <= entries[0].items()


def test_pages_lead_to_their_lists(full: World) -> None:
    client = full.served.client("adam")
    for template, page in (("snapshots.html", "/snapshots"), ("registers.html", "/registers"),
                           ("people.html", "/people"), ("publications.html", "/publications"),
                           ("snapshot.html", f"/snapshot/{record_id(0)}"), ("running.html", "/running")):  # fmt: skip
        hrefs = set(client.get(page).page.xpath("//p[@class='takeaway']//a/@href"))
        for path in LISTS[template]:
            wanted = {f"{path_of(path)}.{kind}" for kind in table_files.KINDS}
            assert wanted <= hrefs, page
            assert all(client.get(href).status == 200 for href in wanted)


def test_nothing_secret_is_in_a_list(full: World) -> None:
    client = full.served.client("adam")
    for kind in table_files.KINDS:
        text = client.get(f"/people.{kind}").text
        assert "$argon2" not in text and "anna" in text
    forbidden = full.served.client("carl").get("/people.csv")
    assert forbidden.status == 403 and "anna," not in forbidden.text
    for path in ("/report/..%2f..%2fpeople/tables.csv", "/report/.x/pages.json", "/snapshot/none/history.csv"):
        assert client.get(path).status == 404, path


def test_cells_are_no_formulas_and_a_list_is_never_cut() -> None:
    for text in ("=1", "+1", "-x", "@a", "\tx", "\rx", "\n=1"):
        assert harmless(text) == f"'{text}"
    assert harmless(-3) == -3 and harmless("a=1") == "a=1" and harmless(True) == "yes" and harmless(None) is None
    text = as_csv(("a", "b"), [("=x", 'say "hi", now'), (None, "two\nlines")]).decode()
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ["'=x", 'say "hi", now'], ["", "two\nlines"]]
    assert json.loads(TableFile(("a",), [("=x",), (True,)]).written("json")) == [{"a": "=x"}, {"a": True}]
    pieces = list(csv_pieces(("a",), ((number,) for number in range(1_200))))
    assert len(pieces) == 3 and b"".join(pieces).split() == [b"a", *(b"%d" % number for number in range(1_200))]
    many = ((number,) for number in range(table_files.MOST_ROWS + 1))
    with pytest.raises(TooMany, match="100,000"):
        TableFile(("a",), many).written("csv")
