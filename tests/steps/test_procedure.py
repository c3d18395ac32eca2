"""Seed 2's procedure by hand, from a terminal, on a made-up site with its six kinds of reference pages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support import ministry
from tests.support.crawls import Done, run_command
from tests.support.site import Site
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.fields import FIELDS
from webarcfs.archive.catalogue.record import Record, State
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(600)]

#: Fields for remarks where nobody made any, and nothing went wrong.
_EMPTY = {20, 30, 45, 47, 64, 73}


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

    agent("register", "set", "html", "--made-by", "CMS 4", "--read-by", "Firefox 1.5")
    agent("register", "set", "pdf", "--made-by", "Acrobat 6")
    done = agent("record", "new", "--publication", "office", "--type", "occasion", "--reason", "new style", "remarks=r")
    name = done.out.strip()
    assert f"next: webarc-agent record step {name} capture" in done.err
    assert record().state is State.OPEN and record().occasion == "occasion" and record().text(5) == "new style"
    assert "it must be captured" in agent("record", "step", name, "convert", code=1).err  # out of order
    done = agent("record", "step", name, "capture")
    assert record().state is State.CAPTURED and f"step {name} count" in done.err and not record().text(22)
    assert "it must be open" in agent("record", "cancel", name, code=1).err
    for step, following, state in (
        ("count", "convert", State.COUNTED),
        ("convert", "index", State.CONVERTED),
        ("index", "check", State.INDEXED),
        ("check", "look", State.INDEXED),
    ):
        done = agent("record", "step", name, step)
        assert record().state is state and f" {following}" in done.err, done
        if step == "count":
            assert "already" in agent("record", "step", name, step, code=1).err  # not twice
            assert "convert comes first" in agent("record", "release", name, code=1).err
    assert "Minutes" in agent("record", "look", name).out
    done = agent("record", "look", name, "Minutes", "--remark", "as before")
    assert record().state is State.CHECKED and f"record release {name}" in done.err
    agent("record", "release", name)
    agent("record", "step", name, "backup")
    said = ("--description", "d", "--software", "s", "--parameters", "p", "--remarks", "m")
    agent("record", "measure", name, "--kind", "migration", *said)
    found = record()
    texts = {each.number: found.text(each.number) for each in FIELDS if not each.repeats}
    print(json.dumps(texts, indent=1, ensure_ascii=False))
    assert {number for number, text in texts.items() if not text} <= _EMPTY
    assert [found.measures[0][number].text for number in range(76, 80)] == ["migration", "d", "s", "p"]
    assert set(found.measures[0]) == set(range(74, 82))
    shown = agent("record", "show", name).out
    assert "migration" in shown and "CMS 4" in shown
    assert texts[26] == "html: CMS 4; pdf: Acrobat 6" and texts[27] == "html: Firefox 1.5"
    assert texts[44] == "1" and texts[46] == "5" and (texts[50], texts[51]) == ("7", "0")
    assert (texts[2], texts[3], texts[71]) == ("5100", "Press office", "disk 7")
    assert [line.partition(":")[0] for line in texts[62].split("; ")] == [
        each for each in ministry.PAGES if each != "Minutes"
    ] + ["Minutes"]
    assert texts[62].count("good") == 6 and "search for 'paper': good" in texts[63]
    assert int(texts[68]) > 10_000 and (target / "catalogue.git").is_dir()
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
