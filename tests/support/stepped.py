"""Captures without a crawl, for tests of steps: pages into git, webarc.db and links.db, and a record that waits."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

from agent.catalogue.recording import catch_up_records
from agent.cli import cli
from agent.indexing import recovery
from tests.support.archives import publish
from tests.support.crawls import Done
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import WebarcError, exit_code_of

#: Settings with all steps set up; `test` is the publication of `publish`.
SETTINGS = """
release = "by-hand"
[backup]
to = "{backup}"
[[publication]]
name = "test"
urls = ["http://www.example.org/"]
check_bounds = 0
{more}
[[publication.check]]
url = "http://www.example.org/0.html"
name = "First"
"""


def captured(
    archive: Archive,
    pages: Mapping[str, bytes | None],
    state: RecordState = RecordState.COUNTED,
    release: str = "by-hand",
) -> Record:
    """Publish pages, and return the record of that capture in a state, with the way of its release."""
    publish(archive, pages=pages)
    recovery.catch_up(archive)
    catch_up_records(archive)
    catalogue = Catalogue(archive)
    newest, blob = catalogue.read(next(catalogue.ids("test")))
    events = [replace(each, state=state) for each in newest.events]
    waiting = replace(newest, state=state, release=release, events=tuple(events))
    catalogue.save([waiting], "test", "waits", expected={newest.id: blob})
    return catalogue.read(newest.id)[0]


def page(text: str) -> bytes:
    """A page with a defect."""
    return f"<html><head><title>{text}</title></head><body><p>{text}<br>more</body></html>".encode()


def set_up(archive: Archive, backup: object, more: str = "") -> None:
    """Write settings with all steps."""
    archive.settings.write_text(SETTINGS.format(backup=backup, more=more))
    archive.converter_settings.parent.mkdir(exist_ok=True)
    archive.converter_settings.write_text("wrap: 0\n")


def told(archive: Archive | None, *words: str) -> Done:
    """A command of `webarc-agent` in this process: its exit code, and what it printed. Quick, where many are tried."""
    out, err = io.StringIO(), io.StringIO()
    before = logging.getLogger().handlers[:]
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            cli([*words, *(["--archive", str(archive.root)] if archive else [])], standalone_mode=False)
    except SystemExit as error:
        code = int(error.code or 0)
    except WebarcError as error:
        code = exit_code_of(error)
        err.write(str(error))
    finally:
        logging.getLogger().handlers[:] = before
    return Done(code, out.getvalue(), err.getvalue())


def now_of(archive: Archive, record: Record) -> Record:
    """The record as it is now."""
    return Catalogue(archive).read(record.id)[0]
