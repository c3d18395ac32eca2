"""`/`: what needs a person today, and nothing else; `/feed`: the same as an Atom feed for staff.

`/feed` makes a person's own address of the feed, which has what needs a person, newest first. Programs that read feeds
cannot log in by a form. So a person has a secret address made, which is shown once, and people.toml keeps its hash. It
opens this feed alone, with what everybody sees at Today, until the person takes it back.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response

from agent.crawl import browser_check
from agent.crawl.job_folder import Hold
from agent.desk import forms
from agent.desk.pages import finished_jobs, jobs, snapshots
from agent.desk.pages.snapshots import lines, open_tables
from agent.desk.theme import words
from agent.desk.views import Attention
from agent.desk.visit import DeskVisit
from agent.maintenance import backup_mark
from agent.notifying import conditions, notifier
from agent.notifying.conditions import BackupState
from agent.notifying.observing import state_of_backup
from agent.operations import who_asks
from agent.reports.storage import forecast_captured
from agent.service import agent_status
from agent.service.agent_status import disagreements
from webarcfs.access import access_rules
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordRow, RecordSelection
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import Damaged, NotFound, SettingsError, WebarcError
from webarcfs.archive.model.metadata import now, parse_time
from webarcfs.archive.repair import damage_note
from webarcfs.room.pages import about
from webarcfs.web.ranges import entity_tag

# == today ============================================================================================================


#: Snapshots that wait for a release, and those of them that passed.
_WAITING = RecordSelection(waits=True), RecordSelection(waits=True, complete=True, passed=True)
#: Days before its end in which the person of a token is told of it.
_TOKEN_DAYS = 14
#: What is said of a backup.
_OVERDUE = {
    BackupState.MISSING: words.msgid("There is no backup in %(what)s"),
    BackupState.OLD: words.msgid("The backup in %(what)s is old"),
}


#: Publications that are due next and jobs that ended last, as Today has them.
_COMING, _FINISHED = 3, 5


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes that are free, of how many, and what a year brings at most; None if that is not known."""

    free: int
    total: int
    coming: int | None


@dataclass(frozen=True, slots=True)
class LastBackup:
    """When the last backup was finished, None for none; whether one is set up, and whether it went elsewhere."""

    finished: datetime | None
    is_set_up: bool
    is_elsewhere: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The snapshots that want a person: those that wait for a release, and those of late that did not get all."""

    waiting: list[RecordRow]
    total: int
    passed: int
    troubled: list[RecordRow]
    newest: RecordRow | None


def find_waiting(visit: DeskVisit, most: int = forms.TODAY_ROWS) -> Found:
    """Return the snapshots that want a person, newest first, `most` of each at most."""
    desk = visit.desk
    since = int((now() - timedelta(days=forms.DAYS)).timestamp())
    with open_tables(visit) as tables:
        waiting = tables.listed(_WAITING[0], limit=most)
        total, passed = desk.kept(("waiting", tables.commit), lambda: tuple(map(tables.count_of, _WAITING)))
        troubled = tables.listed(RecordSelection(state=RecordState.RELEASED, complete=False, since=since), limit=most)
        troubled += tables.listed(RecordSelection(state=RecordState.EMPTY, since=since), limit=most)
        newest = tables.listed(RecordSelection(), limit=1)
    troubled = sorted(troubled, key=lambda row: row.date, reverse=True)[:most]
    return Found(waiting, total, passed, troubled, newest[0] if newest else None)


def today(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the page."""
    desk, overview = visit.desk, find_waiting(visit)
    amiss = sorted([*attentions(visit), *_ending_tokens(visit)], key=lambda attention: not attention.is_grave)
    return visit.page(
        "today.html",
        attentions=amiss,
        waiting=lines(visit, overview.waiting),
        waiting_total=overview.total,
        passed_total=overview.passed,
        troubled=lines(visit, overview.troubled),
        jobs=list(jobs.cards(visit)),
        has_publications=bool(desk.settings().publications),
        last=overview.newest.date if overview.newest is not None else None,
        coming=jobs.coming(visit, _COMING),
        finished=finished_jobs.newest(visit)[:_FINISHED],
        disk=_disk(visit),
        backup=_backup(visit),
        is_quiet=not (amiss or overview.waiting or overview.troubled or desk.history().open),
    )


def _disk(visit: DeskVisit) -> Disk:
    """Return what the disk has, and what a year brings at most."""
    desk = visit.desk
    archive = desk.archive
    state = Catalogue(archive).state()
    space = shutil.disk_usage(archive.root)

    def forecast() -> int | None:
        with suppress(WebarcError, OSError):
            return forecast_captured(archive, desk.settings())
        return None

    key = ("forecast", desk.settings_state(), None if state is None else state.commit)
    return Disk(space.free, space.total, desk.kept(key, forecast))


def _backup(visit: DeskVisit) -> LastBackup:
    """Return the last backup, to the folder of the settings or by hand to another one."""
    folder = visit.desk.settings().backup.to
    own = backup_mark.finished_at(Path(folder)) if folder else None
    last = backup_mark.last_of(visit.desk.archive)
    if last is None or (own is not None and own >= last[0]):
        return LastBackup(own, bool(folder), is_elsewhere=False)
    return LastBackup(last[0], bool(folder), is_elsewhere=not folder or Path(folder) != last[1])


def attentions(visit: DeskVisit) -> Iterator[Attention]:
    """Yield what is amiss, the gravest first."""
    desk = visit.desk
    archive = desk.archive
    settings, faults = desk.settings_and_faults()
    for fault in faults[:10]:
        yield Attention(words.msgid("The settings have a fault: %(what)s"), fault, "/options", is_grave=True)
    yield from _of_archive(archive, settings)
    for job in desk.history().refused:
        yield Attention(words.msgid("A job was left alone: %(what)s"), job, "/running")
    overdue = _OVERDUE.get(state_of_backup(settings.backup.to, now(), settings.notify.backup_age))
    if overdue:
        yield Attention(overdue, settings.backup.to, "/options")
    told = notifier.overview(archive, settings)
    if told["faults"] or told["given_up"]:
        yield Attention(words.msgid("Some notifications could not be sent. These commands say why:"),
                        command=f"webarc-agent status --archive {archive.root}; "
                        f"webarc-agent notify list --archive {archive.root}")  # fmt: skip
    for differing in desk.kept(("disagreeing", desk.settings_state()), lambda: disagreements(settings)):
        yield Attention(
            words.msgid("Publications of one host differ in release or embargo: %(what)s"),
            f"{differing.host} ({', '.join(differing.names)})", f"/publications/{quote(differing.names[0], safe='')}",
        )  # fmt: skip
    uses_browser = desk.kept(("browser", desk.settings_state()), lambda: browser_check.uses_browser(settings))
    # Whether it may be isolated is not tried here: the desk may be forbidden what the agent is allowed.
    if uses_browser and browser_check.check_program(settings.browser).word:
        yield Attention(words.msgid("Publications need a browser, and none can show pages. This command says why:"),
                        command=f"webarc-agent status --archive {archive.root}")  # fmt: skip
    try:
        soon = now() + timedelta(days=forms.DAYS)
        for rule in access_rules.load(archive).rules:
            if rule.lapses is not None and now() < rule.lapses < soon:
                yield Attention(words.msgid("Soon readers see again: %(what)s"), rule.url or rule.key, "/access")
    except SettingsError as error:
        yield Attention(words.msgid("The rules of access have a fault, and readers see nothing: %(what)s"),
                        str(error), "/access", is_grave=True)  # fmt: skip
    if settings.index.search and not visit.services.has_search:
        yield Attention(words.msgid("There is no search in this archive. This command makes its index:"),
                        command=f"webarc-agent index --archive {archive.root}")  # fmt: skip


def _ending_tokens(visit: DeskVisit) -> Iterator[Attention]:
    """Yield the person's own tokens that end soon. No feed has them: it is the same for everybody."""
    at = now()
    for token in visit.person.tokens:
        if at < token.expires < at + timedelta(days=_TOKEN_DAYS):
            yield Attention(words.msgid("Your token ends soon; its program needs another one: %(what)s"), token.name,
                            "/tokens")  # fmt: skip


def _of_archive(archive: Archive, settings: Settings) -> Iterator[Attention]:
    """Yield what is amiss with the archive as a whole, and grave."""
    if damage_note.met_at(archive) is not None:
        yield Attention(words.msgid("Something in the archive could not be read. This command names it:"),
                        command=f"webarc-agent verify --archive {archive.root}", is_grave=True)  # fmt: skip
    if conditions.lacks_agent(settings.publications, agent_runs=agent_status.running(archive) is not None):
        yield Attention(words.msgid("No agent runs, so nothing is fetched. This command starts it:"),
                        command=f"webarc-agent start --archive {archive.root}", is_grave=True)  # fmt: skip
    space = shutil.disk_usage(archive.root)
    if conditions.is_disk_low(space.free, space.total, settings.notify.disk_free):
        yield Attention(words.msgid("The disk is nearly full: %(what)s MB are left"), str(space.free // 1_000_000),
                        is_grave=True)  # fmt: skip


# == feed =============================================================================================================


#: The program that has the feed keeps it, and asks each time whether it still holds.
_FOR_ONE = "private, no-cache"
_HELD = words.msgid("A job waits for an order: %(what)s")
_WAITS = words.msgid("Waits for a release: %(what)s")
_INCOMPLETE = words.msgid("It did not get all: %(what)s")
_EMPTY = words.msgid("It got nothing: %(what)s")


@dataclass(frozen=True, slots=True)
class OpenTask:
    """Something that wants a person. `mark` identifies it, as long as it lasts; `text` is a msgid with `what`.

    `command` is what helps.
    """

    mark: str
    text: str
    what: str
    href: str
    since: datetime
    command: str = ""


# -- one's own address -------------------------------------------------------------------------------------------------


def show_feed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show whether there is an address, and the forms that make one and take it back."""
    return visit.page("feed.html", has_feed=bool(visit.person.feed), address="")


def change(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Make a new address, and show it this once; or take it back."""
    archive, key = visit.desk.archive, visit.person.key
    if visit.form.one("word") == "end":
        people.set_feed(archive, key, "")
        return visit.led("/feed", words.msgid("The address was taken back; it opens nothing any more."))
    secret, kept = who_asks.make_secret()
    people.set_feed(archive, key, kept)
    return visit.page("feed.html", has_feed=True, address=f"{visit.base}/feed/{secret}.atom?lang={visit.language}")


# -- the feed ----------------------------------------------------------------------------------------------------------


def read(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Return the feed to who has an address. Raises NotFound for any other: nobody reads it by a session.

    It does not name its own address, which is a secret, and which programs pass on with what they read.
    """
    if not who_asks.is_of(visit.person, path_params["feed"]):
        raise NotFound("there is no such page")
    base, text = visit.base, visit.desk.look_up(visit.language)
    entries = sorted(_entries(visit), key=lambda feed_entry: feed_entry.since, reverse=True)[: forms.ROWS]
    title = f"{text(words.msgid('Web archive'))}: {text(words.msgid('What wants you'))}"
    feed = about.begun(f"{base}/feed", title, entries[0].since if entries else visit.desk.began)
    about.author(feed, "webarcfs")
    for entry in entries:
        what = f"{text(entry.text).replace('%(what)s', entry.what)} {entry.command}".strip()
        about.link(
            about.add_entry(feed, f"{base}/feed#{entry.mark}", what, entry.since), f"{base}{entry.href}", "alternate"
        )
    body = about.written(feed)
    tag = entity_tag(body)
    since = visit.desk.kept(("feed", visit.person.key, tag), now)  # what ended is in no entry, and changes it
    return about.answered(visit.request, body, tag, since, _FOR_ONE)


def _entries(visit: DeskVisit) -> Iterator[OpenTask]:
    overview = find_waiting(visit, forms.ROWS)
    for text, rows in ((_WAITS, overview.waiting), ("", overview.troubled)):
        for row in rows:
            why = text or (_EMPTY if row.state is RecordState.EMPTY else _INCOMPLETE)
            since = _changed(visit, row)
            mark = f"{row.id}/{'waits' if text else row.state}/{int(since.timestamp())}"
            yield OpenTask(mark, why, snapshots.name_of(row, visit.language), snapshots.href_of(row.id), since)
    for job in visit.desk.history().open:
        if job.held == Hold.DEADLINE:
            with suppress(Damaged):
                yield OpenTask(f"{job.job}/{job.orders}", _HELD, job.publication, "/running", parse_time(job.updated))
    amiss = {f"{attention.text} {attention.what}": attention for attention in attentions(visit)}
    for key, since in visit.desk.since(tuple(amiss), now()).items():
        attention = amiss[key]
        mark = f"{hashlib.sha256(key.encode()).hexdigest()[:16]}/{since:%Y-%m-%d}"
        yield OpenTask(mark, attention.text, attention.what, attention.href or "/", since, attention.command)


def _changed(visit: DeskVisit, row: RecordRow) -> datetime:
    """Return when a snapshot came to its state."""
    with suppress(Damaged, NotFound):
        events = Catalogue(visit.desk.archive).read(row.id)[0].events
        return events[-1].at if events else row.date
    return row.date
