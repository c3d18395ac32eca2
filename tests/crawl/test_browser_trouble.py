"""Trouble amid a page that a browser shows: a full disk."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import disks, script_site
from tests.support.browsers import needs_chromium
from tests.support.crawls import (
    Done,
    check_sound,
    end,
    files,
    log_lines,
    run_command,
    shown_text,
    start_command,
)
from tests.support.script_site import ScriptSite
from tests.support.waiting import PATIENCE, until
from tests.support.wire import Answer, Exchange, page
from webarcfs.archive.config.directory import create

pytestmark = [pytest.mark.crawl, needs_chromium()]
site = script_site.site

#: Requests that the script of the page makes, one after the other.
_STEPS = 6
_COMMAND = ("crawl", "--fetcher", "browser", "--depth", "0", "--wait", "0", "--no-sitemaps")
_LARGE = 300_000


def _add_steps(site: ScriptSite, *, at: dict[int, Answer], after: str = "", steps: int = _STEPS) -> str:
    """Add a page that asks for one step after the other, some of which are answered in a way of their own.

    Returns its URL. It says "done" in the end, once `after` has run.
    """
    script = (
        f"(async () => {{ for (let n = 0; n < {steps}; n++) await fetch('/step?n=' + n).catch(() => 0);"
        f"{after}; document.body.append('done'); }})()"
    )
    site.add_html("/steps", f"<p>words</p><script>{script}</script>")
    for number in range(steps):
        site.add_nasty(f"/step?n={number}", at.get(number, page(f"step {number}", "text/plain")))
    return site.url("/steps")


def _asked(site: ScriptSite) -> Counter[tuple[str, str]]:
    return Counter((request.host, request.path) for request in site.requests)


def _repeated(site: ScriptSite) -> set[str]:
    """The paths that were asked for twice; none may be asked for three times."""
    asked = _asked(site)
    assert max(asked.values()) <= 2, asked
    return {path for (_, path), times in asked.items() if times > 1}


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small_disk(tmp_path / "disk", "16m") as folder:
        yield folder


def _fill(disk: Path, kilobytes: int) -> None:
    """Fill the disk but for that much."""
    free = os.statvfs(disk)
    with (disk / "ballast").open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - (kilobytes << 10))))


def _run_alone(*arguments: str | Path) -> Done:
    """A command to its end; nothing of its session may be left then."""
    process = start_command(*arguments)
    try:
        out, err = process.communicate(timeout=2 * PATIENCE)
        until(lambda: not _of_session(process.pid), "nothing is left of it", within=30.0)
    finally:
        end(process)
    return Done(process.returncode, out, err)


def _of_session(session: int) -> list[int]:
    members = []
    for name in os.listdir("/proc"):  # noqa: PTH208 # names alone
        try:
            if name.isdecimal() and os.getsid(int(name)) == session:
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                members += [int(name)] if state != "Z" else []
        except OSError:
            continue
    return members


@pytest.mark.parametrize("what", ["response", "dom"])
@pytest.mark.parametrize("room", [0, 40, 150])
def test_a_disk_that_gets_full_amid_a_page(disk: Path, tmp_path: Path, site: ScriptSite, what: str, room: int) -> None:
    """A response, or what the page showed, does not fit: the job fails, and is resumed by the same command."""
    is_armed = threading.Event()

    def fill(exchange: Exchange) -> None:
        if is_armed.is_set():
            is_armed.clear()
            _fill(disk, room)
        page(bytes(_LARGE) if what == "response" else "small", "application/octet-stream")(exchange)

    after = f"document.body.dataset.large = 'x'.repeat({_LARGE})" if what == "dom" else ""
    url = _add_steps(site, at={3: fill}, after=after)
    reference = create(tmp_path / "reference")
    assert run_command(*_COMMAND, "--archive", reference.root, url).code == 0

    archive = create(disk / "archive")
    site.clear_log()
    is_armed.set()
    full = _run_alone(*_COMMAND, "--archive", archive.root, url)
    assert full.code == 2, full.err
    assert "full" in full.err or "No space left" in full.err, full.err
    assert "unexpected" not in full.err and "Traceback" not in full.err, full.err
    assert list(archive.domains()) == [] and list(archive.reports.iterdir()) == [], "nothing is archived yet"
    before = _asked(site)
    (disk / "ballast").unlink()
    resumed = _run_alone(*_COMMAND, "--archive", archive.root, url)
    assert resumed.code == 0, resumed.err
    (report,) = archive.reports.iterdir()
    notes = log_lines(archive, report.name)[url].notes
    assert "rendered" in notes and not any(note.startswith("browser-") for note in notes), notes
    assert files(archive, site.host) == files(reference, site.host)
    assert shown_text(archive, url) == shown_text(reference, url)
    assert _repeated(site) <= {f"/step?n={number}" for number in (2, 3)}, (before, _asked(site))
    assert list(archive.jobs.iterdir()) == []
    check_sound(archive)
    check_sound(reference)
