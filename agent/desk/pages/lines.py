"""Snapshots as every list of the desk shows them: one row, with the one step that leads on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

from agent.catalogue import stepfolders, ways
from agent.desk.look import words
from agent.desk.shared.visit import DeskVisit
from agent.desk.views import Button, SnapshotLine, Work
from agent.jobfolder.names import step_folder
from agent.steps import running
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.catalogue_database import CatalogueDatabase, opened
from webarcfs.archive.catalogue.record import State
from webarcfs.archive.catalogue.record_rows import RecordRow
from webarcfs.archive.catalogue.steps import RUNS, TABLE, Step, Way, judged, next_of_person
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import now, parse_time
from webarcfs.room.look import language as languages


@contextmanager
def tables(visit: DeskVisit) -> Iterator[CatalogueDatabase]:
    """Open catalogue.db, in step with the catalogue."""
    with opened(visit.desk.archive, Catalogue(visit.desk.archive)) as found:
        yield found


def href_of(record_id: str) -> str:
    """Return the path of a snapshot's page."""
    return f"/snapshot/{quote(record_id, safe='')}"


def name_of(row: RecordRow, language: str) -> str:
    """Return how people call a snapshot: domain and time, `www.bundestag.de, 2 Aug 2005, 03:00 CET`."""
    return f"{row.domain or row.publication}, {languages.moment(row.date, language)}"


def way_of(visit: DeskVisit, row: RecordRow) -> Way:
    """Return the way of a snapshot: kept, since a list asks for the same few."""
    key = ("way", row.publication, row.release, visit.desk.settings_state(), int(now().timestamp()) // 10)

    def made() -> Way:
        settings = visit.desk.settings()
        known = next((each for each in settings.publications if each.name == row.publication), None)
        return ways.way_of(visit.desk.archive, known or settings.unlisted(row.publication), settings, row.release)

    return visit.desk.kept(key, made)


def lines(
    visit: DeskVisit, rows: Iterable[RecordRow], ticked: frozenset[int] = frozenset()
) -> tuple[SnapshotLine, ...]:
    """Return the lines of rows."""
    return tuple(line(visit, each, is_ticked=each.number in ticked) for each in rows)


def line(visit: DeskVisit, row: RecordRow, *, is_ticked: bool = False) -> SnapshotLine:
    """Return the line of a row."""
    is_locked = running.is_locked(visit.desk.archive, row.id)
    button, waits_for = _next(visit, row, is_locked=is_locked)
    compared = (
        f"/compare/{quote(row.before, safe='')}..{quote(row.id, safe='')}" if row.before and row.has_parts else ""
    )
    return SnapshotLine(
        id=row.id,
        number=row.number,
        href=href_of(row.id),
        name=name_of(row, visit.language),
        title=row.title,
        publication=row.publication,
        date=row.date,
        state=str(row.state),
        complete=row.complete or not row.has_parts,
        has_parts=row.has_parts,
        reason=row.reason,
        documents=row.documents,
        bytes=row.bytes,
        documents_before=row.documents_before,
        bytes_before=row.bytes_before,
        compare=compared,
        has_warning=not row.progress.passed,
        is_locked=is_locked,
        work=_work(visit, row.id) if is_locked else None,
        closed_for=row.closed_for,
        next=button,
        waits_for=waits_for,
        is_ticked=is_ticked,
    )


def _work(visit: DeskVisit, record_id: str) -> Work | None:
    """Return the step that a snapshot is locked for, as its folder tells; None without one."""
    for step in RUNS:
        asked = None
        with suppress(Damaged):
            asked = stepfolders.load(visit.desk.archive, step_folder(record_id, step))
        if asked is None:
            continue
        since = None
        with suppress(Damaged):
            since = parse_time(asked.asked)
        return Work(words.STEPS[step], asked.by, since)
    return None


def _next(visit: DeskVisit, row: RecordRow, *, is_locked: bool) -> tuple[Button | None, str]:
    """Return the one step that leads on, as a button; or why there is none."""
    if is_locked:
        return None, words.msgid("is being worked on")
    way = way_of(visit, row)
    step = next_of_person(row.progress, way)
    if step is None:
        return None, words.msgid("is being fetched") if row.progress.is_fetching else ""
    if step is Step.BACKUP:
        return None, ""
    if _is_asked(visit, row.id, step):
        return None, words.msgid("was asked for")
    return _judged(visit, row, step, way)


def _is_asked(visit: DeskVisit, record_id: str, step: Step) -> bool:
    """Return whether a step was asked for, and is to come: one that failed may be asked for again."""
    folder = step_folder(record_id, step)
    archive = visit.desk.archive
    return (archive.jobs / folder).is_dir() and stepfolders.failure(archive, folder) is None


def _judged(visit: DeskVisit, row: RecordRow, step: Step, way: Way) -> tuple[Button | None, str]:
    if not visit.may(TABLE[step].right):
        return None, words.msgid("waits for somebody with the right to go on")
    if step is Step.CHECK and row.progress.looks_wanted:
        return None, words.msgid("waits for a look at its reference pages")
    verdict = judged(step, row.progress, way, visit.rights, person=visit.person.name)
    if not verdict.is_allowed:
        wants = words.msgid("a check found something: its page has what to do")
        return None, wants if step is Step.RELEASE else ""
    return button_of(row.id, row.state, step, is_main=True), ""


def button_of(record_id: str, state: State, step: Step, *, is_main: bool = False, again: bool = False) -> Button:
    """Return the button of a step of a snapshot in a state."""
    rule = TABLE[step]
    is_run = step in (Step.CAPTURE, Step.COUNT, Step.CONVERT, Step.INDEX, Step.CHECK, Step.BACKUP)
    return Button(
        text=words.STEPS[step],
        action=f"{href_of(record_id)}/{'step' if is_run else step}",
        state=str(state),
        is_main=is_main,
        asks_reason=rule.needs_reason,
        is_final=step is Step.CANCEL,
        more=(("step", str(step)), *((("again", "yes"),) if again else ())) if is_run else (),
    )
