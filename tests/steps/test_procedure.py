"""Seed 2's procedure by hand, from a terminal, on a made-up site with its six kinds of reference pages."""

from __future__ import annotations

import getpass
import json
import shutil
from pathlib import Path

import pytest

from tests.support import ministry
from tests.support.crawls import Done, run_command
from tests.support.site import Site
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(600)]


def test_the_whole_procedure_fills_the_record(archive: Archive, site: Site, tmp_path: Path) -> None:
    ministry.build(site)
    target = tmp_path / "backup"
    archive.settings.write_text(ministry.settings(site, backup=str(target)))
    archive.converter_settings.parent.mkdir()
    archive.converter_settings.write_text("wrap: 100\n")

    def agent(*words: str, code: int = 0) -> Done:
        done = run_command(*words, "--archive", archive.root, timeout=300)
        assert done.code == code, (words, done.code, done.out, done.err)
        return done

    def record() -> Record:
        return Catalogue(archive).read(name)[0]

    for what, (made, read) in ministry.FORMATS.items():
        agent("register", "set", what, "--made-by", made, *(("--read-by", read) if read else ()))
    done = agent("record", "new", "--publication", "office", "--type", "occasion", "--reason", "new style", "remarks=r")
    name = done.out.strip()
    assert f"next: webarc-agent record step {name} capture" in done.err
    assert record().state is RecordState.OPEN and record().occasion == "occasion" and record().text(5) == "new style"
    assert "it must be captured" in agent("record", "step", name, "convert", code=1).err  # out of order
    done = agent("record", "step", name, "capture")
    assert record().state is RecordState.CAPTURED and f"step {name} count" in done.err and not record().text(22)
    assert "it must be open" in agent("record", "cancel", name, code=1).err
    for step, following, state in (
        ("count", "convert", RecordState.COUNTED),
        ("convert", "index", RecordState.CONVERTED),
        ("index", "check", RecordState.INDEXED),
        ("check", "look", RecordState.INDEXED),
    ):
        done = agent("record", "step", name, step)
        assert record().state is state and f" {following}" in done.err, done
        if step == "count":
            assert "already" in agent("record", "step", name, step, code=1).err  # not twice
            assert "convert comes first" in agent("record", "release", name, code=1).err
    assert "Minutes" in agent("record", "look", name).out
    done = agent("record", "look", name, "Minutes", "--remark", "as before")
    assert record().state is RecordState.CHECKED and f"record release {name}" in done.err
    agent("record", "release", name)
    agent("record", "step", name, "backup")
    kind, description, software, parameters = ministry.MEASURE
    said = ("--description", description, "--software", software, "--parameters", parameters, "--remarks", "m")
    agent("record", "measure", name, "--kind", kind, *said)
    found = record()
    ministry.must_be_filled(found, getpass.getuser())
    shown = agent("record", "show", name).out
    assert "migration" in shown and "CMS 4" in shown
    assert (target / "catalogue.git").is_dir()
    job = archive.reports / found.job_name
    assert "CMS" not in (job / "convert" / "conversion.html").read_text() and (job / "check" / "checks.json").is_file()
    for step in ("count", "convert", "index", "check", "backup"):
        assert json.loads((job / step / "step.json").read_text())["record"] == name
    assert [each.what for each in found.events] == [
        "new", "begun", "captured", "counted", "converted", "indexed", "checking", "looked", "checked", "released",
        "backup", "measure",
    ]  # fmt: skip
    assert not list(archive.jobs.iterdir())
    forms = Repository(archive.repository(site.host)).ref("refs/forms/xhtml")
    assert forms is not None
    assert agent("verify").out
    shutil.rmtree(target)
