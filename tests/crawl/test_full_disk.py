"""The disk is full at some point of a crawl: a line says so, nothing suffers, and the next crawl goes on from there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.reports import report
from tests.support import crawls, disks
from tests.support.crawls import run_command, store
from tests.support.generated import Generated
from tests.support.site import Site
from webarcfs.archive.config.directory import create
from webarcfs.archive.history.sequence import Feed

pytestmark = pytest.mark.crawl

_PAGES = 40
#: Kilobytes that are left when the crawl begins: too few for the database, for the frontier, for what is fetched, for
#: what is published. `make soak` goes through them in small steps.
_ROOMS = range(0, 2400, 100) if os.environ.get("WEBARC_SOAK") else (60, 300, 700)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small_disk(tmp_path / "disk", "8m") as folder:
        yield folder


def leave(disk: Path, kilobytes: int) -> Path:
    """Fill the disk but for that much; returns what fills it."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - (kilobytes << 10))))
    return ballast


@pytest.mark.parametrize("room", _ROOMS)
def test_a_crawl_on_a_disk_that_gets_full(disk: Path, site: Site, room: int) -> None:
    site.mount(Generated(_PAGES), at="/")
    archive = create(disk / "archive")
    command = ("crawl", "--wait", "0", "--archive", archive.root, site.url("/"))
    ballast = leave(disk, room)
    first = run_command(*command, timeout=240)
    ballast.unlink()
    assert first.code in (0, 2, 3), first.err
    assert "unexpected" not in first.err and "Traceback" not in first.err, first.err
    if first.code == 2:
        assert "full" in first.err or "No space left" in first.err, first.err
    for domain in archive.domains():
        assert store(archive, domain).check() == []
    done = run_command(*command, timeout=240)
    assert done.code == 0, done.err
    assert len(crawls.arcs(archive, site.host)) > _PAGES
    assert len(list(Feed(archive.changes).lines())) == (1 if first.code == 2 else 2), "published once each"
    assert run_command("verify", "--archive", archive.root, timeout=240).out == "sound\n"
    assert list(archive.jobs.iterdir()) == []


@pytest.mark.parametrize("room", [0, 28])
def test_a_disk_that_is_full_when_the_report_is_written(
    disk: Path, site: Site, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Room for the compressed log alone is enough; with none at all the next run of the job does the rest."""
    site.mount(Generated(5 * _PAGES), at="/")
    archive = create(disk / "archive")
    write = report.write

    def write_when_full(*arguments: Any) -> Path:
        leave(disk, room)
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(report, "write", write_when_full)
        if room:
            outcome = crawls.crawl(archive, site.url("/"))
        else:
            with pytest.raises(OSError) as caught:
                crawls.crawl(archive, site.url("/"))
            assert caught.value.errno == errno.ENOSPC
            assert list(archive.reports.iterdir()) == [], "what could not be written takes no room"
            assert len(list(archive.jobs.iterdir())) == 1
    (disk / "ballast").unlink()
    if not room:
        site.clear_log()
        outcome = crawls.crawl(archive, site.url("/"))
        assert site.requests == []
    assert outcome.complete and list(archive.jobs.iterdir()) == []
    text = crawls.log_text(archive, outcome.job)
    assert len(text.splitlines()) > 5 * _PAGES and len(text) > 28 << 10
    assert len(list(Feed(archive.changes).lines())) == 1
