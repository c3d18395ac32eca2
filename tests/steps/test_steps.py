"""Steps of snapshots: what they find, each once, in order, by the right person; what is left of one that fails."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.catalogue import stepfolders
from agent.catalogue.recording import ask_next
from agent.crawl import job_folder
from agent.maintenance.verification import verify
from agent.service.scheduler import read
from agent.steps import checking, converting, plugin, running
from agent.steps.converting import Forms
from agent.steps.running import run_step, run_waiting
from tests.support.archives import DOMAIN
from tests.support.stepped import captured, now_of, page, set_up, told
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.catalogue.workflow import WorkflowStep
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, ReferencePage
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import Busy, StepRefused
from webarcfs.archive.model.metadata import now

pytestmark = pytest.mark.crawl

_SITE: dict[str, bytes | None] = {f"{number}.html": page(f"page {number}") for number in range(6)}


def _xhtml(archive: Archive) -> Forms:
    how = converting.converter(archive.converter_settings)
    return Forms(archive, DOMAIN, converting.XHTML, how.settings)


def _taken(archive: Archive, record: Record, step: WorkflowStep, *, again: bool = False, by: str = "anna") -> Record:
    asked = stepfolders.ask(archive, record, step, by=by, again=again)
    run_step(archive, asked.folder)
    return now_of(archive, record)


def test_the_chain_runs_by_itself_and_waits_for_the_release(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE)
    assert ask_next(archive, record) is WorkflowStep.CONVERT
    assert run_waiting(archive, record.id) == []
    found = now_of(archive, record)
    assert [each.what for each in found.events] == ["captured", "converted", "indexed", "checked", "backup"]
    assert found.state is RecordState.CHECKED and found.text(62) == "First: good" and int(found.text(58)) > 6
    assert not list(archive.jobs.iterdir()) and list(verify(archive)) == []
    stepfolders.ask(archive, found, WorkflowStep.BACKUP)
    assert set(read(archive).runs) == {"test"} and read(archive).open == ()  # a step is no run of a publication


def test_the_second_snapshot_converts_what_changed(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    first = _taken(archive, captured(archive, _SITE | {"bad.html": b"<html><blah>x</blah>"}), WorkflowStep.CONVERT)
    assert (first.text(50), first.text(51)) == ("6", "1") and first.text(52).startswith("7 pages were converted now")
    folder = archive.reports / first.job_name / "convert"
    assert (folder / converting.LIST).read_text() == f"http://{DOMAIN}/bad.html\t<blah> is not recognized!\n"
    with gzip.open(folder / converting.TABLE, "rt") as table:
        rows = [json.loads(line) for line in table]
    assert [row["converted"] for row in rows] == [True] * 6 + [False]
    assert all(set(each) == {"line", "column", "level", "text"} for row in rows for each in row["messages"])
    report = (folder / converting.REPORT).read_text()
    assert "&lt;blah&gt; is not recognized!" in report and "<blah>" not in report  # it is text, not markup
    record = captured(archive, {"1.html": page("changed"), "2.html": None})
    second = _taken(archive, record, WorkflowStep.CONVERT)
    assert (second.text(50), second.text(51)) == ("5", "1") and second.text(52).startswith("1 pages were converted now")
    again = _taken(archive, second, WorkflowStep.CONVERT, again=True)  # only what failed is tried again
    assert again.text(52).startswith("1 pages were converted now") and again.state is RecordState.CONVERTED
    archive.converter_settings.write_text("wrap: 30\n")
    anew = _taken(archive, again, WorkflowStep.CONVERT, again=True)
    assert anew.text(52).startswith("6 pages were converted now") and anew.text(49) != again.text(49)
    assert int(anew.text(37)) != int(anew.text(22)) and list(verify(archive)) == []


def test_other_documents_and_the_pages_stay(archive: Archive, tmp_path: Path) -> None:
    """BT-conv-3, BT-raw-1: main never moves, and only pages have a form."""
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE | {"a.png": b"png", "b.pdf": b"%PDF-1.4", "c.css": b"p { }"})
    store = Repository(archive.repository(DOMAIN))
    before = store.head()
    _taken(archive, record, WorkflowStep.CONVERT)
    assert store.head() == before
    forms = {
        path.split("/")[1] for path, _ in store.files(str(store.ref("refs/forms/xhtml")), "") if "/settings" not in path
    }
    assert len(forms) == len(_SITE) and now_of(archive, record).text(21) == "complete; last step: converted"


def test_bounds_beside_the_snapshot_before(archive: Archive, tmp_path: Path) -> None:
    """BT-qa-6: a snapshot that differs by more than it may is released with a reason alone."""
    set_up(archive, tmp_path / "backup", more='[publication.describe]\nsignature = "1"\n')
    archive.settings.write_text(archive.settings.read_text().replace("check_bounds = 0", "check_bounds = 0.2"))
    captured(archive, _SITE)
    record = captured(archive, {f"{number}.html": None for number in range(1, 6)})
    ask_next(archive, record)
    assert run_waiting(archive, record.id) == []
    found = now_of(archive, record)
    assert "documents: failed: 1, -83% beside 6 before" in found.text(63) and found.events[-2].text.startswith("2 of ")
    done = told(archive, "record", "release", record.id)
    assert done.code == 1 and "reason" in done.err
    words = ("release", record.id, "--reason", "the site was cut")
    assert told(archive, "record", *words).code == 0 and now_of(archive, record).state is RecordState.RELEASED
    measured = ("measure", record.id, "--kind", "migration", "--readers-see")
    assert told(archive, "record", *measured).code == 0 and now_of(archive, record).state is RecordState.CHECKED


def test_registers(archive: Archive) -> None:
    """BT-pres-6: formats that nothing is known to read."""
    captured(archive, _SITE | {"a.wk4": b"123"})
    for words in (("html", "--read-by", "Firefox 115"), ("text/html", "--description", "pages", "--extension", "html")):
        assert told(archive, "register", "set", *words).code == 0
    rows = [line.split("\t") for line in told(archive, "register", "formats").out.splitlines()]
    assert ["html", "6", "-", "Firefox 115"] in rows
    risky = told(archive, "register", "formats", "--at-risk", "--json").out.splitlines()
    assert [json.loads(line)["extension"] for line in risky] == ["wk4"]
    assert "text/html\thtml\tpages" in told(archive, "register", "types").out
    assert "HTML Tidy" in told(None, "register", "programs").out
    archive.formats.write_text("[format.html]\nread = 1\n")
    assert "there is no such key" in told(archive, "register", "formats").err
    captured(archive, {"1.html": page("a faulty register keeps no record from being written")})


def test_a_step_is_not_done_twice(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE)
    asked = stepfolders.ask(archive, record, WorkflowStep.CONVERT, by="anna")
    with pytest.raises(Busy, match="asked for already"):
        stepfolders.ask(archive, record, WorkflowStep.CONVERT, by="bert")
    (tmp_path / "kept").mkdir()
    copy = (archive.jobs / asked.folder / "definition.json").read_bytes()
    run_step(archive, asked.folder)
    (archive.jobs / asked.folder).mkdir()  # as it is if the process was killed before the folder went
    (archive.jobs / asked.folder / "definition.json").write_bytes(copy)
    assert run_step(archive, asked.folder) is None
    assert [each.what for each in now_of(archive, record).events].count("converted") == 1
    assert stepfolders.ask(archive, now_of(archive, record), WorkflowStep.CONVERT).folder  # a new one may be asked for
    with pytest.raises(StepRefused, match="already"):
        run_step(archive, asked.folder)
    assert not (archive.jobs / asked.folder).exists()


def test_a_record_that_is_worked_on_takes_no_step_and_no_decision(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE)
    asked = stepfolders.ask(archive, record, WorkflowStep.CONVERT)
    with stepfolders.locked(archive, record.id):
        assert stepfolders.is_locked(archive, record.id)
        with pytest.raises(Busy, match="another process"):
            run_step(archive, asked.folder)
        shown = told(archive, "record", "list").out
        assert "counted, not released, locked: convert" in shown
        for words in (("reject", record.id, "--reason", "x"), ("step", record.id, "index")):
            done = told(archive, "record", *words)
            assert done.code != 0 and "worked on" in done.err, done
    assert not stepfolders.is_locked(archive, record.id)
    assert "counted, not released, convert requested" in told(archive, "record", "list").out


def test_the_wrong_person_takes_no_step(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE)
    told(archive, "people", "add", "adam", "--role", "administrator", "--unix", "root")
    for words in (
        ("step", record.id, "convert"),
        ("new", "--publication", "test"),
        ("cancel", record.id),
        ("look", record.id, "First"),
        ("measure", record.id, "--kind", "x"),
    ):
        done = told(archive, "record", *words)
        assert done.code != 0 and "one needs the role" in done.err, done
    assert not list(archive.jobs.iterdir())


def test_a_plugin_that_raises_or_hangs_or_dies_is_a_finding(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ourchecks.py").write_text(
        "import os, time\n"
        "def good(snapshot): return []\n"
        "def counts(snapshot): return [f'{sum(1 for _ in snapshot.pages())} pages']\n"
        "def raises(snapshot): raise ValueError('no')\n"
        "def hangs(snapshot): time.sleep(600)\n"
        "def dies(snapshot): os.abort()\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    record = captured(archive, _SITE)
    found = {
        name: plugin.findings(archive, record.id, f"ourchecks:{name}", tmp_path / "scratch", patience=patience)
        for name, patience in (("good", 60), ("counts", 60), ("raises", 60), ("hangs", 2.0), ("dies", 60), ("none", 60))
    }
    assert found["good"] == [] and found["counts"] == ["6 pages"] and found["raises"] == ["raised ValueError: no"]
    assert found["hangs"] == ["took more than 2 s"] and "ended with -6" in found["dies"][0]
    assert "AttributeError" in found["none"][0]


def test_a_step_that_fails_stays_is_tried_again_and_not_for_ever(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    archive.converter_settings.write_text("foo-bar: 1\n")
    record = captured(archive, _SITE)
    ask_next(archive, record)
    (line,) = run_waiting(archive, record.id)
    name = "convert"
    folder = f"step-{record.id}-{name}"
    assert "foo-bar" in line and (archive.jobs / folder).is_dir()
    known = stepfolders.failure(archive, folder)
    assert known is not None and known.failures == 1 and known.again and not known.is_due()
    for _ in range(stepfolders.MOST_FAILURES):
        known = stepfolders.failed(archive, folder, "again")
    assert not known.again  # from now on it waits for a person
    archive.converter_settings.write_text("wrap: 0\n")
    done = told(archive, "record", "step", record.id, "convert")
    assert done.code == 0 and now_of(archive, record).state is RecordState.CHECKED, done
    assert not list(archive.jobs.iterdir())


def test_what_people_write_while_a_step_runs_stays(archive: Archive, tmp_path: Path) -> None:
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE)
    asked = stepfolders.ask(archive, record, WorkflowStep.CONVERT)
    catalogue, original = Catalogue(archive), running._WORK[WorkflowStep.CONVERT]

    def edited_meanwhile(step: running.StepContext) -> running.StepResult:
        result = original(step)
        current, blob = catalogue.read(record.id)
        changed = current.with_event("edited", "bert", "remarks")
        catalogue.save([changed], "bert", "edited", expected={record.id: blob})
        return result

    work = dict(running._WORK) | {WorkflowStep.CONVERT: edited_meanwhile}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_WORK", work)
        run_step(archive, asked.folder)
    assert [each.what for each in now_of(archive, record).events] == ["captured", "edited", "converted"]


def test_a_remark_of_a_person_stays_and_one_of_the_step_goes(archive: Archive, tmp_path: Path) -> None:
    """A step without remarks removes those of its last time alone."""
    set_up(archive, tmp_path / "backup")
    record = captured(archive, _SITE)
    catalogue, original, said = Catalogue(archive), running._WORK[WorkflowStep.CONVERT], ["half of it", "", ""]

    def remarking(step: running.StepContext) -> running.StepResult:
        result = original(step)
        return replace(result, texts={**result.texts, 43: said.pop(0)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_WORK", dict(running._WORK) | {WorkflowStep.CONVERT: remarking})
        assert _taken(archive, record, WorkflowStep.CONVERT).text(43) == "half of it"
        assert _taken(archive, now_of(archive, record), WorkflowStep.CONVERT, again=True).text(43) == ""
        current, blob = catalogue.read(record.id)
        catalogue.save(
            [current.with_values({43: "seen by eye"}, "anna", now())], "anna", "x", expected={record.id: blob}
        )
        assert _taken(archive, now_of(archive, record), WorkflowStep.CONVERT, again=True).text(43) == "seen by eye"


def test_error_pages_by_their_marks_and_time(archive: Archive, tmp_path: Path) -> None:
    marks = '[[publication.error_page]]\ncontains = "<h1>Fehlermeldung</h1>"\n'
    later = '[[publication.error_page]]\ncontains = "page 3"\nfrom = 2030-01-01T00:00:00\n'
    set_up(archive, tmp_path / "backup", more=marks + later)
    errors = {f"e{number}.html": b"<html><h1>Fehlermeldung</h1>" + bytes([97 + number]) for number in range(3)}
    record = _taken(archive, captured(archive, _SITE | errors), WorkflowStep.CONVERT)
    assert (record.text(44), record.text(46)) == ("3", "0")
    second = _taken(archive, captured(archive, {"e0.html": None}), WorkflowStep.CONVERT)
    assert second.text(44) == "2"


def test_reference_pages_have_their_time(archive: Archive) -> None:
    """BT-qa-3: they are chosen anew as the site develops."""
    record = captured(archive, _SITE)
    assert record.date is not None
    day = timedelta(days=1)
    old, new = (ReferencePage(url="http://e.org/", until=record.date + days) for days in (-day, day))
    later, since = (ReferencePage(url="http://e.org/", since=record.date + days) for days in (day, -day))
    publication = Publication(name="p", urls=(), check=(old, new, later, since))
    assert checking.pages_in_force(publication, record) == [new, since]


def test_a_publication_that_is_deleted_goes_on_as_it_was(archive: Archive, tmp_path: Path) -> None:
    marks = '[[publication.error_page]]\ncontains = "page 3"\nfrom = 2020-01-01T00:00:00\n'
    set_up(archive, tmp_path / "backup", more=f"{marks}[[publication.exclude]]\nmatch = 'a.example'\nreason = 'r'\n")
    record = captured(archive, _SITE)
    publication = settings_files.load(archive.settings)[0].publications[0]
    kept = json.dumps(job_folder.settings_of(publication, None)).encode()
    assert job_folder.parsed(kept).publication == publication
    Catalogue(archive).save([], "test", "settings", files={"publications/test.json": kept})
    archive.settings.write_text("")  # it is gone, while its steps are to come
    ask_next(archive, record)
    assert run_waiting(archive, record.id) == []
    found = now_of(archive, record)
    assert found.text(44) == "1" and found.text(62) == "First: good" and found.state is RecordState.CHECKED
