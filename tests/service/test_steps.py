"""Steps under the agent: by themselves after a capture, asked for by a command, again after a failure; occasions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.catalogue import stepfolders
from agent.crawl import job_folder
from agent.crawl.job_folder import Definition
from agent.service import scheduler
from tests.support import crawls
from tests.support.agents import agent, status
from tests.support.crawls import run_command
from tests.support.nasty import slow
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = pytest.mark.crawl


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        site.add_html("/", '<p>hello<br><a href="/a">a</a>')
        site.add_html("/a", "<b>a")
        yield site


def _configure(archive: Archive, site: Site, text: str) -> None:
    archive.settings.write_text(
        f'{text}[[publication]]\nname = "p"\nurls = ["{site.url()}"]\nwait = 0\nprivate_addresses = true\n'
        f'interval = "1 day"\n[[publication.check]]\nurl = "{site.url("/a")}"\nname = "A"\n'
    )
    archive.converter_settings.parent.mkdir(exist_ok=True)
    archive.converter_settings.touch()


def _record(archive: Archive) -> Record | None:
    return next(Catalogue(archive).records("p"), None)


def _state(archive: Archive) -> RecordState | None:
    found = _record(archive)
    return None if found is None else found.state


def test_what_needs_no_decision_runs_by_itself(archive: Archive, site: Site, tmp_path: Path) -> None:
    """`when-checked` ends released; the agent answers a command, too, and a step that failed is tried again."""
    backup = tmp_path / "backup"
    _configure(archive, site, f'release = "when-checked"\n[backup]\nto = "{backup}"\n')
    with agent(archive):
        until(lambda: _state(archive) is RecordState.RELEASED, "the snapshot is released")
        until(lambda: not list(stepfolders.waiting(archive)), "all steps have ended")
        found = _record(archive)
        assert found is not None
        whats = [each.what for each in found.events]
        assert sorted(whats) == sorted(["captured", "converted", "indexed", "checked", "released", "backup"])
        assert found.text(50) == "2" and found.text(62) == "A: good" and (backup / "catalogue.git").is_dir()
        done = run_command("record", "step", found.id, "convert", "--again", "--archive", archive.root, timeout=120)
        assert done.code == 0 and "the agent (process" in done.err and "released" in done.out, done
        found = _record(archive)
        assert found is not None and [each.what for each in found.events].count("converted") == 2
    assert scheduler.read(archive).open == ()


def test_a_record_is_captured_by_the_agent_and_does_not_shift_the_schedule(archive: Archive, site: Site) -> None:
    _configure(archive, site, 'release = "by-hand"\nstep_by_step = true\n')
    assert run_command("start", "--once", "--archive", archive.root, timeout=120).code == 0
    before = json.loads(run_command("status", "--json", "--archive", archive.root).out)["publications"]
    words = ("--publication", "p", "--type", "occasion", "--reason", "election", "--archive", archive.root)
    name = run_command("record", "new", *words).out.strip()
    with agent(archive):
        done = run_command("record", "step", name, "capture", "--archive", archive.root, timeout=120)
        assert done.code == 0 and f"record step {name} count" in done.err, done
        found, _ = Catalogue(archive).read(name)
        assert found.state is RecordState.CAPTURED and found.job.endswith("-p+occasion") and found.text(5) == "election"
        assert [each["next"] for each in status(archive)["publications"]] == [each["next"] for each in before]
    assert run_command("crawl", *words, timeout=120).code == 0  # the same at once, without a record before
    assert [each["name"] for each in status(archive)["publications"]] == ["p"]
    newest = _record(archive)
    assert newest is not None and newest.id != name and (newest.occasion, newest.text(5)) == ("occasion", "election")
    assert [each["next"] for each in status(archive)["publications"]] == [each["next"] for each in before]
    _assert_is_the_newest(archive, newest)
    assert _reported(archive, name) == found.job_name != name  # that record was there before its job
    assert run_command("crawl", *words, "--shift", timeout=120).code == 0
    assert [each["next"] for each in status(archive)["publications"]] != [each["next"] for each in before]
    (shifted,) = (each for each in Catalogue(archive).records("p") if each.number > newest.number)
    assert not shifted.id.endswith("+occasion") and shifted.occasion == "occasion"


def _reported(archive: Archive, name: str) -> str:
    summary = json.loads(run_command("report", name, "--json", "--archive", archive.root).out)["summary"]
    return str(summary["job"])


def _assert_is_the_newest(archive: Archive, newest: Record) -> None:
    """Whichever command is given the publication's name, it means this crawl; its number does so, too."""
    for text in ("p", str(newest.number), newest.id):
        assert _reported(archive, text) == newest.id
        shown = run_command("record", "show", text, "--json", "--archive", archive.root)
        assert json.loads(shown.out)["id"] == newest.id
        assert newest.id in run_command("crawl", "--missing", text, "--archive", archive.root).out
    assert [each["last"]["job"] for each in status(archive)["publications"]] == [newest.id]


def test_a_record_is_cancelled_before_its_capture(archive: Archive, site: Site) -> None:
    _configure(archive, site, "")
    name = run_command("record", "new", "--publication", "p", "--archive", archive.root).out.strip()
    done = run_command("record", "cancel", name, "--reason", "too early", "--archive", archive.root)
    found, _ = Catalogue(archive).read(name)
    assert done.code == 0 and found.state is RecordState.CANCELLED and found.text(6) == "too early"
    for words in (("cancel", name), ("step", name, "capture")):
        done = run_command("record", *words, "--archive", archive.root)
        assert done.code == 1 and "it is cancelled" in done.err, done
    assert not list(archive.jobs.iterdir())


def test_a_capture_of_a_record_outlives_the_agent(archive: Archive, site: Site) -> None:
    """kill -9 of the agent and the step's process while pages are fetched: one job, one record, captured once."""
    _configure(archive, site, 'release = "by-hand"\nstep_by_step = true\n')
    site.add_nasty("/slow", slow(4.0))
    site.add_html("/", '<a href="/a">a</a><a href="/slow">s</a>')
    assert run_command("start", "--once", "--archive", archive.root, timeout=120).code == 0
    words = ("--publication", "p", "--type", "occasion", "--reason", "election", "--archive", archive.root)
    name = run_command("record", "new", *words).out.strip()
    with agent(archive) as running:
        done = run_command("record", "step", name, "capture", "--no-wait", "--archive", archive.root)
        assert done.code == 0, done
        until(lambda: Catalogue(archive).read(name)[0].job, "the capture has begun")
        job = Catalogue(archive).read(name)[0].job
        done = run_command("record", "cancel", name, "--archive", archive.root)
        assert done.code == 1 and "has begun" in done.err
        running.kill()
    assert (archive.jobs / job).is_dir() and Catalogue(archive).read(name)[0].state is RecordState.OPEN
    with agent(archive):
        until(lambda: Catalogue(archive).read(name)[0].state is RecordState.CAPTURED, "the record is captured")
        until(lambda: not list(archive.jobs.iterdir()), "the step has ended, and its folder is gone")
    found, _ = Catalogue(archive).read(name)
    assert found.job == job and [each.what for each in found.events] == ["new", "begun", "captured"]
    assert [each.id for each in Catalogue(archive).records("p")][1:] != [job] and not list(archive.jobs.iterdir())
    assert len(list(Catalogue(archive).ids("p"))) == 2


def test_a_job_that_was_begun_and_not_noted_is_taken(archive: Archive, site: Site) -> None:
    """kill -9 between the folder of the job and the record's note of it."""
    _configure(archive, site, 'release = "by-hand"\nstep_by_step = true\n')
    words = ("--publication", "p", "--archive", archive.root)
    name = run_command("record", "new", *words).out.strip()
    left = job_folder.new_folder(archive, "p")
    publication = settings_files.load(archive.settings)[0].publications[0]
    job_folder.save(left, Definition(publication=publication, record=name))
    assert run_command("record", "step", name, "capture", "--archive", archive.root, timeout=120).code == 0
    (found,) = Catalogue(archive).records("p")
    assert (found.id, found.job_name, found.state) == (name, left.name, RecordState.CAPTURED)
    assert not list(archive.jobs.iterdir())
