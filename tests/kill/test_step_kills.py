"""Steps killed at each point, one snapshot after the other: nothing is lost, no step is done twice, `verify` is clean.

Four kills here, `KILLS` in `make soak`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from agent.catalogue.recording import ask_next
from agent.maintenance import backups
from agent.maintenance.verification import verify
from agent.steps import converting
from agent.steps.converting import Forms
from agent.steps.running import run_waiting
from tests.kill.stepvictim import POINTS
from tests.support import forked
from tests.support.archives import DOMAIN
from tests.support.stepped import captured, now_of, page, set_up
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.index.database import CaptureIndex

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("KILLS", "2"))
_EVENTS = ["captured", "counted", "converted", "indexed", "checked", "backup"]
_ALL = [f"{name}:{call}" for name, (_, _, calls) in POINTS.items() for call in range(1, calls + 1)]


def test_each_step_after_a_kill(archive: Archive, tmp_path: Path) -> None:
    chance = random.Random(23)
    points = [_ALL[number % len(_ALL)] for number in range(KILLS)] if len(_ALL) <= KILLS else chance.sample(_ALL, KILLS)
    set_up(archive, tmp_path / "backup")
    died = 0
    for number, point in enumerate(points):
        pages = {f"{place}.html": page(f"page {chance.random()}") for place in chance.sample(range(20), 5)}
        is_checked = number % 2 == 0  # then it is released by itself
        how = "when-checked" if is_checked else "by-hand"
        record = captured(archive, {"0.html": page(f"first {number}"), **pages}, RecordState.CAPTURED, how)
        ask_next(archive, record)
        command = [sys.executable, "-m", "tests.kill.stepvictim", point, str(archive.root), record.id]
        code = forked.run(command).returncode
        assert code in (0, -signal.SIGKILL), point
        died += code != 0
        assert run_waiting(archive, record.id) == [], point
        found = now_of(archive, record)
        whats = [each.what for each in found.events]
        assert [each for each in whats if each != "released"] == _EVENTS, point
        assert whats.count("released") == is_checked and found.state is (
            RecordState.RELEASED if is_checked else RecordState.CHECKED
        )
        assert found.text(51) == "0" and found.text(62) == "First: good", point
        assert not [each for each in archive.jobs.iterdir() if not each.name.startswith(".")], point
        _has_forms(archive, int(found.text(50)))
        if number % 20 == 0 or KILLS <= 10:
            assert list(verify(archive)) == [], point
    assert died >= 0.8 * KILLS, f"{died} of {KILLS} points were reached"
    assert list(verify(archive)) == []
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = open_archive(tmp_path / "restored")
    assert list(verify(restored)) == []
    _has_forms(restored, int(found.text(50)))


def _has_forms(archive: Archive, count: int) -> None:
    """Each page of the newest snapshot has its XHTML."""
    forms = Forms(archive, DOMAIN, converting.XHTML, converting.converter(archive.converter_settings).settings)
    with CaptureIndex(archive.database) as index:
        seq = 2**40
        rows = list(index.of_snapshot(DOMAIN, seq))
    assert len(rows) == count
    assert all(converting.PAGE in forms.files(row.blob) for row in rows)
