"""kill -9 of an export at random moments, beside crawls and upkeep: the same command goes on, with the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from agent.maintenance import maintenance
from tests.support import archives
from tests.support.crawls import crawl
from tests.support.histories import DOMAIN
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.export import cdxj, warc
from webarcfs.export.selection import Asked, select

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(600)]

_ROUNDS = int(os.environ.get("EXPORT_KILLS", "2"))
#: The command, with a checkpoint every twentieth of a second, and slow enough to be met before its end.
_COMMAND = """
import time
from webarcfs.commands.cli import main
from webarcfs.export.export_result import Growing
from webarcfs.export import export_result
export_result._SECONDS = 0.05
end_piece = Growing.end_piece
def slowly(files):
    end_piece(files)
    time.sleep(0.002)
Growing.end_piece = slowly
main()
"""


@pytest.fixture
def archive(archive: Archive) -> Archive:
    """Pages that take long to compress, in two snapshots, and another domain before it."""
    chance = random.Random(3)
    pages = {f"{number % 9}/{number}.html": chance.randbytes(6_000).hex().encode() for number in range(400)}
    archives.publish(archive, "a.example.org", {"x.html": b"x"})
    archives.publish_many(archive, pages.items())
    archives.publish(archive, pages={f"new/{number}": chance.randbytes(9_000) for number in range(9)})
    return archive


def _started(archive: Archive, form: str, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _COMMAND, "export", "--format", form, "--archive", str(archive.root), str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("form", ["warc", "cdxj"])
def test_an_export_that_is_killed_goes_on(archive: Archive, tmp_path: Path, form: str) -> None:
    selection = select(archive, Asked())
    whole, out = tmp_path / "whole", tmp_path / "out"
    {"warc": warc, "cdxj": cdxj}[form].export(selection, whole, lambda *_: None, lambda: False)
    chance, kills, went_on = random.Random(form), 0, 0
    while True:
        notes = tmp_path / "out.part" / "out.notes"
        before = notes.stat().st_size if notes.exists() else 0
        with _started(archive, form, out) as process:
            if kills < _ROUNDS:
                until(partial(_went_on, process, notes, before), every=0.01)
                time.sleep(chance.random() / 10)
                process.send_signal(signal.SIGKILL)
            said = process.communicate(timeout=240)[1]
        if process.returncode == 0 or b"is there already" in said:  # the kill came when all was done
            break
        assert process.returncode == -signal.SIGKILL, said
        kills += 1
        went_on += before > 0
        archives.publish(archive, DOMAIN, {f"later/{kills}": b"later"})  # is not exported any more
        if kills == 1:
            maintenance.maintain(archive)
    assert kills and went_on
    assert not (tmp_path / "out.part").exists()
    found = {path.name: path.read_bytes() for path in out.iterdir()} if out.is_dir() else out.read_bytes()
    wanted = {path.name: path.read_bytes() for path in whole.iterdir()} if whole.is_dir() else whole.read_bytes()
    assert found == wanted


def test_a_crawl_and_upkeep_beside_it_change_nothing(archive: Archive, tmp_path: Path, site: Site) -> None:
    """While an export is half way, sites are crawled, packs are made anew and old ones removed."""
    selection, whole, out = select(archive, Asked()), tmp_path / "whole", tmp_path / "out"
    warc.export(selection, whole, lambda *_: None, lambda: False)
    with _started(archive, "warc", out) as process:
        until((tmp_path / "out.part" / "out.notes").exists, every=0.01)
        with _standing(process):
            packs = set(archive.repository(DOMAIN).glob("objects/pack/*.pack"))
            archives.publish(archive, pages={"0/0.html": b"changed"})
            crawl(archive, site.url("/"))
            maintenance.maintain(archive)
            assert not packs & set(archive.repository(DOMAIN).glob("objects/pack/*.pack"))
        said = process.communicate(timeout=240)[1]
    assert process.returncode == 0, said
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }


@contextmanager
def _standing(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stop a process for a while; it goes on whatever happens, so that nobody waits for it for ever."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def _went_on(process: subprocess.Popen[bytes], notes: Path, before: int) -> bool:
    """Whether there is another checkpoint, or it is done."""
    return process.poll() is not None or (notes.exists() and notes.stat().st_size > before)


def test_a_signal_ends_it_at_a_checkpoint(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "out.warc"
    notes = tmp_path / "out.warc.part" / "out.warc.notes"
    with _started(archive, "warc", out) as process:
        until(notes.exists, every=0.01)
        with _standing(process):
            other = _started(archive, "warc", out)
            said = other.communicate(timeout=240)[1]
            assert other.returncode == 2 and b"another export is writing" in said
            process.terminate()
        said = process.communicate(timeout=240)[1]
    assert process.returncode == 2 and b"the same command resumes it" in said
    with _started(archive, "warc", out) as process:
        process.communicate(timeout=240)
    assert process.returncode == 0 and out.exists()
