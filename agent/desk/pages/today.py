"""`/`: what needs a person today, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from starlette.responses import Response

from agent.desk import limits
from agent.desk.look import words
from agent.desk.pages import jobs, lines
from agent.desk.shared.visit import DeskVisit
from agent.desk.views import Attention, TodayPage
from agent.service import agentlock
from agent.service.statusview import disagreeing
from agent.system import jsonfile
from agent.upkeep.backupmark import MARK
from webarcfs.archive.catalogue.record import State
from webarcfs.archive.catalogue.record_rows import Chosen, RecordRow
from webarcfs.archive.model.errors import Damaged, SettingsError
from webarcfs.archive.model.metadata import now, parse_time
from webarcfs.gate import access_file

#: Free space below which a disk is told of: bytes, and share of the whole.
_LITTLE, _SHARE = 2 << 30, 0.05
#: Snapshots that wait for a release, and those of them that passed.
_WAITING = Chosen(waits=True), Chosen(waits=True, complete=True, passed=True)
#: Days after which a backup is overdue.
_BACKUP_DAYS = 7


@dataclass(frozen=True, slots=True)
class Found:
    """The snapshots that want a person: those that wait for a release, and those of late that did not get all."""

    waiting: list[RecordRow]
    total: int
    passed: int
    troubled: list[RecordRow]
    newest: RecordRow | None


def found(visit: DeskVisit, most: int = limits.TODAY_ROWS) -> Found:
    """Return the snapshots that want a person, newest first, `most` of each at most."""
    desk = visit.desk
    since = int((now() - timedelta(days=limits.DAYS)).timestamp())
    with lines.tables(visit) as tables:
        waiting = tables.listed(_WAITING[0], limit=most)
        total, passed = desk.kept(("waiting", tables.commit), lambda: tuple(map(tables.count_of, _WAITING)))
        troubled = tables.listed(Chosen(state=State.RELEASED, complete=False, since=since), limit=most)
        troubled += tables.listed(Chosen(state=State.EMPTY, since=since), limit=most)
        newest = tables.listed(Chosen(), limit=1)
    troubled = sorted(troubled, key=lambda each: each.date, reverse=True)[:most]
    return Found(waiting, total, passed, troubled, newest[0] if newest else None)


def today(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the page."""
    desk, snapshots = visit.desk, found(visit)
    view = TodayPage(
        attentions=tuple(attentions(visit)),
        waiting=lines.lines(visit, snapshots.waiting),
        waiting_total=snapshots.total,
        passed_total=snapshots.passed,
        troubled=lines.lines(visit, snapshots.troubled),
        jobs=tuple(jobs.cards(visit)),
        has_publications=bool(desk.settings().publications),
        last=snapshots.newest.date if snapshots.newest is not None else None,
        next=next(iter(jobs.coming(visit)), None),
        command=f"webarc-agent start --archive {desk.archive.root}",
    )
    return visit.page(view)


def attentions(visit: DeskVisit) -> Iterator[Attention]:
    """Yield what is amiss, the gravest first."""
    desk = visit.desk
    archive = desk.archive
    settings, faults = desk.settings_and_faults()
    for each in faults[:10]:
        yield Attention(words.msgid("The settings have a fault: %(what)s"), each, "/options", is_grave=True)
    if settings.publications and agentlock.running(archive) is None:
        yield Attention(words.msgid("No agent runs, so nothing is fetched. This command starts it:"),
                        command=f"webarc-agent start --archive {archive.root}", is_grave=True)  # fmt: skip
    space = shutil.disk_usage(archive.root)
    if space.free < min(_LITTLE, int(space.total * _SHARE)):
        yield Attention(words.msgid("The disk is nearly full: %(what)s MB are left"), str(space.free // 1_000_000),
                        is_grave=True)  # fmt: skip
    for job in desk.history().refused:
        yield Attention(words.msgid("A job was left alone: %(what)s"), job, "/running")
    overdue = _overdue(settings.backup.to)
    if overdue:
        yield Attention(overdue, settings.backup.to, "/options")
    for host in desk.kept(("disagreeing", desk.settings_state()), lambda: disagreeing(settings)):
        yield Attention(words.msgid("Publications disagree: %(what)s"), host)
    try:
        soon = now() + timedelta(days=limits.DAYS)
        for rule in access_file.load(archive).rules:
            if rule.lapses is not None and now() < rule.lapses < soon:
                yield Attention(words.msgid("Soon readers see again: %(what)s"), rule.url or rule.key, "/access")
    except SettingsError as error:
        yield Attention(words.msgid("The rules of access have a fault, and readers see nothing: %(what)s"),
                        str(error), "/access", is_grave=True)  # fmt: skip
    if settings.index.search and not visit.services.has_search:
        yield Attention(words.msgid("There is no search in this archive. This command makes its index:"),
                        command=f"webarc-agent index --archive {archive.root}")  # fmt: skip


def _overdue(folder: str) -> str:
    """Return what to say of a backup that is missing or old; empty for a good one, or none that is wanted."""
    if not folder:
        return ""
    with suppress(Damaged, OSError, KeyError, TypeError, ValueError):
        mark = jsonfile.read(Path(folder) / MARK)
        if mark is None:
            return words.msgid("There is no backup in %(what)s")
        if mark["finished"] and parse_time(str(mark["finished"])) > now() - timedelta(days=_BACKUP_DAYS):
            return ""
    return words.msgid("The backup in %(what)s is more than a week old")
