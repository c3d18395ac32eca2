"""`/options` and `/publications`: the archive's settings, and what is archived, when and how.

Settings in webarc.toml are in force from the next job on; comments in the file stay. A publication may be tried before
it is in force: each trial has a thread, a few at once, and is kept for an hour with what was typed, so that its page
has the form again, with what was found.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from agent.desk import forms, localized
from agent.desk.pages import fields, jobs, snapshots
from agent.desk.pages.fields import FormSetting
from agent.desk.theme import words
from agent.desk.views import DifferingHost, FieldSet, FormField
from agent.desk.visit import DeskVisit
from agent.operations import excluded_parts, first_crawls, trying
from agent.operations.trying import Trial
from agent.reports.explanations import explanation_of
from agent.service import agent_status, scheduler
from agent.service.agent_status import Disagreement, disagreements
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.settings import (
    BackupSettings,
    CrawlSettings,
    DescribeSettings,
    IndexSettings,
    MountSettings,
    NotifySettings,
    Publication,
    Release,
    ReleaseSettings,
    Settings,
)
from webarcfs.archive.model.errors import FieldsRefused, NotFound, SettingsError, WebarcError
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.system.cache import identity
from webarcfs.room.pages.lists import pages_of
from webarcfs.web import language as languages

# == options ==========================================================================================================


#: Table of webarc.toml (empty: its top) → heading (a msgid), its class, and whether it is unfolded.
TABLES: dict[str, tuple[str, type, bool]] = {
    "": (words.msgid("Release"), ReleaseSettings, True),
    "crawl": (words.msgid("Crawler"), CrawlSettings, True),
    "describe": (words.msgid("Description"), DescribeSettings, True),
    "backup": (words.msgid("Backup"), BackupSettings, True),
    "notify": (words.msgid("Notifications"), NotifySettings, False),
    "index": (words.msgid("Search and links"), IndexSettings, False),
    "mount": (words.msgid("Mount"), MountSettings, False),
}
#: Attributes of `Settings` by table.
_OF = {"": "release", **{table: table for table in TABLES if table}}
#: Settings by table that are changed in the file alone: whoever may change them runs any program of the machine.
_IN_FILE_ALONE = {"notify": frozenset({"command", "sendmail", "webhook_secret"})}


def show_options(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the settings in force, as a form for those who may change them."""
    settings, faults = visit.desk.settings_and_faults()
    is_open = visit.may(Right.OPTIONS) and not faults
    sets = []
    for table, (heading, _kind, unfolded) in TABLES.items():
        members = tuple(fields.of_setting(visit, shown, is_open=is_open) for shown in _options_of(settings, table))
        field_set = FieldSet(heading, members, unfolded or any(member.fault for member in members))
        sets.append(_with_ways(visit, field_set, settings.notify) if table == "notify" else field_set)
    return visit.page("options.html", sets=sets, state=_state(visit), is_open=is_open, fault="\n".join(faults))


def _with_ways(visit: DeskVisit, field_set: FieldSet, notify: NotifySettings) -> FieldSet:
    """Add whether a program is run, which is set in the file alone, and the command that sends a test."""
    program = words.msgid("A program is run for each notification, too.")
    without = words.msgid("No program is run for notifications.")
    notes: tuple[str, ...] = (program if notify.command else without,)
    if not (notify.mail or notify.webhook or notify.command):
        return dataclasses.replace(field_set, notes=notes)
    notes += (words.msgid("This command sends a test by each way:"),)
    command = f"webarc-agent notify test --archive {visit.desk.archive.root}"
    return dataclasses.replace(field_set, notes=notes, command=command)


def _options_of(settings: Settings, table: str) -> Iterator[FormSetting]:
    """Yield the settings of a table as they hold."""
    held, prefix = getattr(settings, _OF[table]), f"{table}." if table else ""
    for setting in dataclasses.fields(TABLES[table][1]):
        if "check" not in setting.metadata:
            continue
        key, value = setting.metadata.get("key", setting.name), getattr(held, setting.name)
        is_older_word = key == "page_requisites" and value  # for those who still say it
        if is_older_word or setting.name in _IN_FILE_ALONE.get(table, frozenset()):
            continue
        yield FormSetting(name=f"{prefix}{key}", key=key, setting=setting, own=value, in_force=value, has_above=False)


def _state(visit: DeskVisit) -> str:
    return str(identity(visit.desk.archive.settings))


def save_options(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Write the settings that differ from those in force. Raises FieldsRefused with all faults, and writes nothing."""
    settings = visit.desk.settings()
    archive = visit.desk.archive
    with settings_files.changing(archive.settings, archive.settings_lock) as document:
        if visit.form.token.state != _state(visit):
            message = words.msgid("The settings were changed meanwhile. Nothing was saved; your input is still here.")
            raise visit.outdated(message)
        changed = _changed(visit, settings)
        for table, values in changed.items():
            target: Any = document if not table else document.setdefault(table, {})
            for key, value in values.items():
                if value in ("", None):
                    target.pop(key, None)
                else:
                    target[key] = value
        tomllib.loads(str(document.as_string()))
        settings_files.parse(str(document.as_string()), str(archive.settings))
    message = words.msgid("The settings were saved.") if changed else words.msgid("Nothing was different.")
    return visit.led("/options", message)


def _changed(visit: DeskVisit, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what was typed and differs from what holds, by table. Raises FieldsRefused."""
    changes: dict[str, dict[str, Any]] = {}
    faults: dict[str, tuple[str, str]] = {}
    for table in TABLES:
        for shown in _options_of(settings, table):
            try:
                is_changed, value = fields.typed_setting(visit, shown)
            except ValueError as error:
                faults[shown.name] = shown.label(visit), str(error)
                continue
            if is_changed:
                changes.setdefault(table, {})[shown.key] = value
    if faults:
        raise visit.refusal(faults)
    return changes


# == trials ===========================================================================================================


#: Trials that run at once, those that are kept, and for how long.
_AT_ONCE, _MOST, _SECONDS = 2, 100, 3600.0


@dataclass(slots=True, eq=False)
class RunningTrial:
    """A trial: whose it is, what was typed, and what came of it.

    `called` is the publication as it was typed, `disagreements` those that there were with it.
    """

    name: str
    session: str
    typed: tuple[tuple[str, str], ...]
    state: str
    begun: float = field(default_factory=time.monotonic)
    found: Trial | None = None
    fault: str = ""
    called: str = ""
    disagreements: tuple[Disagreement, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.found is None and not self.fault


class Trials:
    """The trials of a desk. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, RunningTrial] = OrderedDict()

    def begin(self, visit: DeskVisit, settings: Settings, publication: Publication, trial: RunningTrial) -> str:
        """Begin a trial; return its mark. Raises Busy while others run."""
        archive = visit.desk.archive
        with self._lock:
            if sum(running_trial.runs for running_trial in self._known.values()) >= _AT_ONCE:
                raise visit.outdated(words.msgid("Others try publications now. Please try again in a minute."))
            mark = secrets.token_urlsafe(9)
            self._known[mark] = trial
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

        def attempt() -> None:
            try:
                profile = settings.profiles.get(publication.profile or "")
                trial.found = trying.attempt(archive, publication, profile, settings.crawl.max_instances)
            except (WebarcError, OSError) as error:
                trial.fault = str(error)
            except BaseException as error:
                trial.fault = f"unexpected: {error!r}"
                raise

        threading.Thread(target=attempt, name=f"trial of {publication.name}", daemon=True).start()
        return mark

    def find(self, mark: str, session: str) -> RunningTrial | None:
        """Return a trial of a session; None for any other, and for one that is long over."""
        with self._lock:
            trial = self._known.get(mark)
        if trial is None or trial.session != session or time.monotonic() - trial.begun > _SECONDS:
            return None
        return trial


#: All trials of this process: they are few, and bounded.
TRIALS = Trials()


# == publications =====================================================================================================


#: Keys of a publication by the parts of its form: those that one wants, then those that one may want, in groups.
#: What is not here is in the last group.
_FIRST = ("urls", "interval")
_WHAT = ("description", "note", "start", "list", "watch", "fetcher", "release", "closed_for")
_EXTENT = ("depth", "hosts", "exclude_hosts", "exclude", "paths", "exclude_extensions", "profile", "types",
           "exclude_types", "max_path_depth", "max_file_size", "max_total_size", "page_resources",
           "page_requisites", "max_resource_hosts", "max_page_resources")  # fmt: skip
_CHECKS = ("check", "checks", "check_search", "check_bounds", "check_pictures", "check_likeness",
           "error_page", "rule", "step_by_step", "two_persons", "required_hosts")  # fmt: skip
_BROWSER = ("browser", "click", "browser_behaviours", "browser_page_seconds", "browser_requests", "browser_bytes",
            "browser_scroll", "browser_clicks", "keep_rendered", "hash_routes", "post", "drop_parameters")  # fmt: skip
_OWN = {
    setting.metadata.get("key", setting.name): setting
    for setting in dataclasses.fields(Publication)
    if "check" in setting.metadata
}
_CRAWL = {setting.metadata.get("key", setting.name): setting for setting in dataclasses.fields(CrawlSettings)}
_DESCRIBE = {f"describe.{setting.name}": setting for setting in dataclasses.fields(DescribeSettings)}
#: Keys of a publication that the archive says where it does not.
_ABOVE = frozenset({*_CRAWL, *_DESCRIBE, *(setting.name for setting in dataclasses.fields(ReleaseSettings))})
#: Keys that the form has no field for: a name stays, and a button retires.
_NOT_HERE = frozenset({"name", "retired", "retired_since", "retired_reason"})


def listed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list."""
    desk = visit.desk
    settings, faults = desk.settings_and_faults()
    publications = fitting(visit)
    pages, part = pages_of(visit, len(publications), forms.ROWS)
    shown = publications[part]
    with snapshots.open_tables(visit) as tables:
        names = tuple(publication.name for publication in shown)
        newest = desk.kept(("newest", tables.commit, names), lambda: tables.newest(names))
    past, at = desk.history(), now()
    running = {job.publication for job in past.open}
    rows = [
        SimpleNamespace(
            name=publication.name,
            href=f"/publications/{quote(publication.name, safe='')}",
            description=publication.description,
            urls=publication.named_urls,
            interval=localized.interval_text(publication.crawl.interval, visit.language),
            next=None
            if publication.retired
            else scheduler.next_due(publication, past.runs.get(publication.name, ()), at),
            retired=publication.retired,
            is_running=publication.name in running,
            count=newest[publication.name][0] if publication.name in newest else 0,
            last=from_epoch(newest[publication.name][1]) if publication.name in newest else None,
        )
        for publication in shown
    ]
    return visit.page(
        "publications.html", rows=rows, pages=pages, query=visit.parameter("q"), faults=faults,
        total=len(settings.publications),
    )  # fmt: skip


def fitting(visit: DeskVisit) -> list[Publication]:
    """Return the publications that the words of the page choose."""
    query = visit.parameter("q").casefold()
    return [publication for publication in visit.desk.settings().publications if query in _text_of(publication)]


def _text_of(publication: Publication) -> str:
    """Return what the list is searched in."""
    return f"{publication.name} {publication.description} {' '.join(publication.named_urls)}".casefold()


# -- the form of one ---------------------------------------------------------------------------------------------------


def new(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form of a new publication."""
    return _form(visit, "", {}, None)


def show(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show a publication; with the right, as a form. Raises NotFound."""
    own, _ = _own_table(visit, path_params["name"])
    return _form(visit, path_params["name"], own, None)


def _own_table(visit: DeskVisit, name: str) -> tuple[dict[str, Any], str]:
    """Return what a publication says itself, and the state of its file. Raises NotFound, SettingsError."""
    archive = visit.desk.archive
    path = settings_files.file_of(archive, name) if name.isprintable() and "/" not in name else None
    if path is not None and path.exists():
        text = path.read_text("utf-8-sig")
        try:
            tables = tomllib.loads(text).get("publication", [{}])
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(str(path), [f"not TOML: {error}"]) from None
        return (dict(tables[0]) if isinstance(tables, list) and tables else {}), _state_of(text)
    known = next((publication for publication in visit.desk.settings().publications if publication.name == name), None)
    if known is None:
        raise NotFound(f"there is no publication {name}")
    tables = tomllib.loads(archive.settings.read_text("utf-8-sig")).get("publication", [])
    return dict(next((table for table in tables if table.get("name") == name), {})), ""


def _state_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _form(visit: DeskVisit, name: str, own: Mapping[str, Any], trial: RunningTrial | None) -> Response:
    """Show a publication, or a new one. `copy` is what a file of its own would have."""
    desk = visit.desk
    shown = _form_settings(visit, name, own)
    held = shown.held
    is_own = not name or settings_files.file_of(desk.archive, name).exists()
    is_open = is_own and visit.may(Right.PUBLICATIONS)
    state = "new" if not name else _own_table(visit, name)[1]
    if visit.is_typed and visit.form.token.state and not visit.is_conflict:
        state = visit.form.token.state
    copy = ""
    if name and not is_own and visit.may(Right.PUBLICATIONS):
        copy = settings_files.text_of({"publication": [own]})
    counts = {} if trial is None or trial.found is None else trial.found.refused
    sets = tuple(_sets(visit, shown, None if trial is None else trial.found, is_open=is_open))
    return visit.page(
        "publication_form.html",
        name=name,
        description=held.description if name else "",
        first=_first_fields(visit, shown, name, is_open=is_open),
        sets=sets,
        has_more=any(group.is_open for group in sets),
        next=_next_crawl(visit, held) if name and not held.retired else None,
        state=state,
        is_open=is_open,
        retired=held.retired if name else False,
        retired_since=held.retired_since if name else None,
        retired_reason=held.retired_reason if name else "",
        differing=list(_differing(visit, name, trial)),
        place=settings_files.place_of(desk.archive, name) if name else "",
        copy=copy,
        trial=trial,
        refused=[
            (word, counts[word], explanation_of(word.partition(",")[0]), trial.found.refused_urls.get(word, ()))
            for word in sorted(counts, key=lambda word: -counts[word])
            if trial is not None and trial.found is not None
        ],
        jobs=[card for card in jobs.cards(visit) if card.publication == name],
        snapshots=f"/snapshots?publication={quote(name, safe='')}" if name else "",
    )


def _differing(visit: DeskVisit, name: str, trial: RunningTrial | None) -> Iterator[DifferingHost]:
    """Yield the hosts of a publication, as it is or as it was tried, that others show to readers by other rules."""
    known: Sequence[Disagreement]
    if trial is None:
        settings = visit.desk.settings()
        known = visit.desk.kept(("disagreeing", visit.desk.settings_state()), lambda: disagreements(settings))
    else:
        name, known = trial.called, trial.disagreements
    for host in known:
        others = tuple(
            (publication.name, f"/publications/{quote(publication.name, safe='')}", _rule_in_words(visit, publication))
            for publication in host.others(name)
        )
        if others:
            yield DifferingHost(host.host, others)


def _rule_in_words(visit: DeskVisit, publication: Publication) -> str:
    """Return when readers may see crawls of a publication."""
    text = visit.desk.look_up(visit.language)
    release = dict(words.choices_of_setting("release", Release, text))[publication.release]
    if publication.closed_for is None:
        return release
    span = localized.interval_text(publication.closed_for, visit.language)
    return f"{release}; {visit.said(words.msgid('embargo of %(span)s'), span=span)}"


def _form_settings(visit: DeskVisit, name: str, own: Mapping[str, Any]) -> FormSettings:
    settings = visit.desk.settings()
    held = next((publication for publication in settings.publications if publication.name == name), None)
    return FormSettings(
        held or settings.unlisted("x"), own, tuple(settings.profiles), visit.desk.look_up(visit.language)
    )


def _next_crawl(visit: DeskVisit, publication: Publication) -> datetime:
    return scheduler.next_due(publication, visit.desk.history().runs.get(publication.name, ()), now())


def _first_fields(visit: DeskVisit, settings: FormSettings, name: str, *, is_open: bool) -> tuple[FormField, ...]:
    """Return the fields that one wants: addresses, name, how often."""
    addresses, how_often = (fields.of_setting(visit, settings.of(key), is_open=is_open) for key in _FIRST)
    if name:
        return addresses, how_often
    text = visit.desk.look_up(visit.language)
    called = FormField(
        name="name", label=text(words.msgid("Name")), value=visit.typed("name", ""), fault=visit.fault("name"),
        help=text(words.msgid("Letters, digits, dots and hyphens; it stays for good. Empty: as the first address.")),
    )  # fmt: skip
    return addresses, called, how_often


def _sets(visit: DeskVisit, settings: FormSettings, trial: Trial | None, *, is_open: bool) -> Iterator[FieldSet]:
    """Yield the fields that one may want, in groups; one with something that is set, or a fault, is unfolded."""
    text = visit.desk.look_up(visit.language)
    groups = ((words.msgid("What, and when"), _WHAT), (words.msgid("Extent"), _EXTENT),
              (words.msgid("Pages that a browser shows"), _BROWSER),
              (words.msgid("Checks and release"), _CHECKS),
              (words.msgid("Description"), tuple(_DESCRIBE)))  # fmt: skip
    in_groups = {key for _, keys in groups for key in keys} | {*_FIRST, *_NOT_HERE}
    rest = tuple(key for key in (*_OWN, *_CRAWL) if key not in in_groups)
    for heading, keys in (*groups, (words.msgid("Manners and limits"), rest)):
        members = []
        for key in keys:
            member = fields.of_setting(visit, settings.of(key), is_open=is_open)
            if key == "page_requisites" and not member.is_set:
                continue  # an older word, for those who still say it
            if key == "fetcher" and trial is not None:
                member = replace(member, remark=_of_trial(trial, text))
            help_text = _help(key, member.help, settings.of(key).check, visit.language)
            members.append(replace(member, help=help_text))
        yield FieldSet(heading, tuple(members), any(_is_wanted(visit, member) for member in members))


def _is_wanted(visit: DeskVisit, member: FormField) -> bool:
    """Return whether a field says something, so that it is not folded away."""
    is_typed = visit.is_typed and bool(member.value) and member.kind in ("text", "area", "time")
    return bool(member.is_set or member.fault or member.remark or is_typed)


@dataclass(frozen=True, slots=True)
class FormSettings:
    """The settings of a publication in a form: those that hold, and what its own table says."""

    held: Publication
    own: Mapping[str, Any]
    profiles: tuple[str, ...]
    text: Callable[[str], str]

    def of(self, key: str) -> FormSetting:
        """Return a setting."""
        head, dot, tail = key.partition(".")
        own = (self.own.get(head) or {}).get(tail) if dot else self.own.get(key)
        if key in _OWN:
            setting, value = _OWN[key], getattr(self.held, _OWN[key].name)
        elif key in _CRAWL:
            setting, value = _CRAWL[key], getattr(self.held.crawl, _CRAWL[key].name)
        else:
            setting, value = _DESCRIBE[key], getattr(self.held.describe, _DESCRIBE[key].name)
        choices: tuple[tuple[str, str], ...] = ()
        if key == "profile":
            choices = (("", self.text(words.msgid("none"))), *((profile, profile) for profile in self.profiles))
        return FormSetting(
            name=key, key=tail or key, setting=setting, own=own, in_force=value,
            has_above=key in _ABOVE or not _has_default(setting), words=choices,
        )  # fmt: skip


def _has_default(setting: dataclasses.Field[Any]) -> bool:
    """Return whether one of the values that a setting may have is its default, and no other table says another."""
    return setting.metadata["check"] is validators.boolean or hasattr(setting.metadata["check"], "words")


def _of_trial(trial: Trial, text: Callable[[str], str]) -> str:
    """Return what a trial says of whether the site needs a browser; empty where it says nothing of that."""
    if trial.feed or not trial.is_good:
        return ""
    if trial.needs_browser:
        sentence = words.msgid("The trial: %(needing)s of %(all)s start pages hold little without their scripts.")
        return text(sentence) % {"needing": len(trial.needs_browser), "all": len(trial.starts)}
    if trial.shown:
        sentence = words.msgid("The trial: a browser showed %(shown)s of %(all)s start pages.")
        return text(sentence) % {"shown": sum(start.is_shown for start in trial.shown), "all": len(trial.shown)}
    return text(words.msgid("The trial: the start pages hold their text without a browser."))


def _help(key: str, help_text: str, check: Any, language: str) -> str:
    if hasattr(check, "table") or (check is validators.time and key == "start"):
        return f"{help_text} {localized.what_to_type(check, language)}"
    return help_text


# -- from text to text -------------------------------------------------------------------------------------------------


def _typed_values(visit: DeskVisit, settings: FormSettings) -> tuple[dict[str, Any], list[str]]:
    """Return the keys that were typed and differ from the file, and those that were emptied. Raises FieldsRefused."""
    values: dict[str, Any] = {}
    removed: list[str] = []
    faults: dict[str, tuple[str, str]] = {}
    for key in (*_OWN, *_CRAWL, *_DESCRIBE):
        if key in _NOT_HERE:
            continue
        shown = settings.of(key)
        try:
            is_changed, value = fields.typed_setting(visit, shown)
        except ValueError as error:
            faults[key] = shown.label(visit), str(error)
            continue
        if is_changed and value is not None:
            values[key] = value
        elif is_changed and shown.own is not None:
            removed.append(key)
    faults |= _against_each_other(visit, settings, {**settings.own, **values}, removed, faults)
    if faults:
        raise _refusal(visit, faults)
    return values, removed


def _refusal(visit: DeskVisit, faults: Mapping[str, tuple[str, str]]) -> FieldsRefused:
    """Return the error of the form, with its faults in the order of its fields."""
    order = ("urls", "name", "interval", *_WHAT, *_EXTENT, *_BROWSER, *_CHECKS, *_DESCRIBE)
    places = {key: number for number, key in enumerate(order)}
    return visit.refusal(dict(sorted(faults.items(), key=lambda fault: places.get(fault[0], len(places)))))


def _against_each_other(
    visit: DeskVisit, settings: FormSettings, says: Mapping[str, Any], removed: Iterable[str], known: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return what is missing, and what does not go with the feed that a publication watches."""
    held = {key: value for key, value in says.items() if key not in set(removed)}
    faults: dict[str, str] = {}
    if not any(held.get(key) for key in ("urls", "list", "watch")) and "urls" not in set(known):
        faults["urls"] = visit.said(words.msgid("Type the address where the crawl begins, such as www.example.org."))
    if held.get("watch"):
        sentence = words.msgid("This does not go with a feed to watch, whose pages alone are fetched: leave it empty.")
        against = [key for key in ("urls", "list") if held.get(key)]
        against += [key for key, only in settings_files.OF_WATCH.items() if held.get(key, only) != only]
        faults |= {key: visit.said(sentence) for key in against if key not in set(known)}
    return {key: (settings.of(key).label(visit), sentence) for key, sentence in faults.items()}


# -- what the form does ------------------------------------------------------------------------------------------------


def save(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Write a publication; it is in force within a second, and says when it is crawled next.

    Raises FieldsRefused, Busy; nothing is written then.
    """
    archive = visit.desk.archive
    before = _held(visit, path_params.get("name", ""))
    if name := path_params.get("name", ""):
        settings_files.write_publication(archive, name, lambda: _edited(visit, name))
    else:
        name, values = _new_values(visit)
        values.setdefault("start", first_crawls.first_start(archive).replace(tzinfo=None))
        settings_files.write_publication(archive, name, lambda: settings_files.new_text(archive, name, values))
    visit.desk.look(surely=True)
    about = " ".join(_of_exclusions(visit, before, _held(visit, name)))
    message = f"{visit.said(_what_follows(visit, name))} {about}".rstrip()
    return visit.led(f"/publications/{quote(name, safe='')}", message)


def _held(visit: DeskVisit, name: str) -> Publication | None:
    return next((known for known in visit.desk.settings().publications if known.name == name), None)


def _of_exclusions(visit: DeskVisit, before: Publication | None, after: Publication | None) -> Iterator[str]:
    """Yield how many addresses that the newest crawl knew each new excluded part matches; that one has no reason."""
    old, new = (() if held is None else held.exclude for held in (before, after))
    changed = excluded_parts.changed_since(old, new)
    for part in excluded_parts.count_matches(visit.desk.archive, "" if after is None else after.name, changed):
        number = partial(languages.number, language=visit.language)
        if part.job:
            urls = f"{'≥ ' * part.is_cut}{number(part.urls)}"
            sentence = words.msgid("%(part)s: of %(known)s addresses that the newest crawl knew, %(count)s match.")
            yield visit.said(sentence, part=part.match, known=number(part.known), count=urls)
        if not part.has_reason:
            yield visit.said(words.msgid("%(part)s has no reason; write it behind a #."), part=part.match)
    if (more := len(changed) - excluded_parts.MOST) > 0:
        yield visit.said(words.msgid("and %(count)s more"), count=languages.number(more, visit.language))


def _new_values(visit: DeskVisit) -> tuple[str, dict[str, Any]]:
    """Return the name of a new publication, typed or proposed, and its settings. Raises FieldsRefused."""
    faults: dict[str, tuple[str, str]] = {}
    values: dict[str, Any] = {}
    try:
        values, _ = _typed_values(visit, _form_settings(visit, "", {}))
    except FieldsRefused as error:
        faults = error.faults
    name = visit.form.one("name")
    taken = {publication.name for publication in visit.desk.settings().publications}
    if not name and not faults:
        name = first_crawls.propose_name((*values.get("urls", ()), *filter(None, [values.get("watch")])), taken)
    label = visit.said(words.msgid("Name"))
    if name in taken or (name.isprintable() and "/" not in name and name and _has_file(visit, name)):
        faults["name"] = label, visit.said(words.msgid("There is a publication of this name. Choose another one."))
    elif name or not faults:
        try:
            localized.value_of(validators.name, name, visit.language)
        except ValueError as error:
            faults["name"] = label, str(error)
    if faults:
        raise _refusal(visit, faults)
    return name, values


def _has_file(visit: DeskVisit, name: str) -> bool:
    with suppress(OSError):  # a name that is too long
        return settings_files.file_of(visit.desk.archive, name).exists()
    return False


def _what_follows(visit: DeskVisit, name: str) -> str:
    """Return that a publication was saved, and when it is crawled next."""
    held = _held(visit, name)
    if held is None or held.retired:
        return words.msgid("The publication was saved; it holds at once.")
    runs = visit.desk.history().runs.get(name, ())
    when = _next_crawl(visit, held)
    if agent_status.running(visit.desk.archive) is None and when <= now():
        return words.msgid("The publication was saved. No agent runs; it is fetched as soon as one does.")
    places = {"when": languages.moment(when, visit.language)}
    if runs:
        return visit.said(words.msgid("The publication was saved. It is fetched next on %(when)s."), **places)
    return visit.said(words.msgid(
        "The publication was saved. It is fetched first on %(when)s. Until then it can be changed or retired here."
    ), **places)  # fmt: skip


def _edited(visit: DeskVisit, name: str) -> str:
    own, state = _own_table(visit, name)
    if visit.form.token.state != state:
        late = words.msgid(
            "Somebody changed this publication meanwhile. The fields have your input, with the present values beneath. "
            "Save again to take yours."
        )
        raise visit.outdated(late)
    values, removed = _typed_values(visit, _form_settings(visit, name, own))
    return settings_files.edited_text(visit.desk.archive, name, values, removed)


def retire(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Retire a publication, or take that back."""
    archive, name = visit.desk.archive, path_params["name"]
    is_back = visit.form.one("back") == "yes"

    def edited() -> str:
        if not is_back:
            return settings_files.retired_text(archive, name, visit.form.one("reason"))
        own, _ = _own_table(visit, name)
        written = {"retired", *settings_files.written_of_retirement(archive, name)}
        return settings_files.edited_text(archive, name, {}, [key for key in written if key in own])

    settings_files.write_publication(archive, name, edited)
    message = words.msgid("It is fetched again.") if is_back else words.msgid("It is retired; its crawls stay.")
    return visit.led(f"/publications/{quote(name, safe='')}", message)


def try_(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Try a publication as it was typed; nothing is archived, and nothing is saved."""
    archive = visit.desk.archive
    if name := path_params.get("name", ""):
        own, _ = _own_table(visit, name)
        values, removed = _typed_values(visit, _form_settings(visit, name, own))
        text = settings_files.edited_text(archive, name, values, removed)
    else:
        name, values = _new_values(visit)
        text = settings_files.new_text(archive, name, values)
    settings, publication = settings_files.with_text(archive, name, text)
    typed = [(field_name, value) for field_name, value in visit.form.typed() if field_name != "name"]
    trial = RunningTrial(
        path_params.get("name", ""), visit.session.public, (*typed, ("name", name)), visit.form.token.state,
        called=name, disagreements=tuple(disagreements(settings)),
    )  # fmt: skip
    mark = TRIALS.begin(visit, settings, publication, trial)
    return visit.led(f"/publications-trial/{mark}")


def trial(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show a trial: that it runs, or the form again with what was found. Raises NotFound."""
    running_trial = TRIALS.find(path_params["mark"], visit.session.public)
    if running_trial is None:
        raise NotFound(visit.desk.said(words.msgid("This trial is over; try again."), visit.language))
    if running_trial.runs:
        return visit.page("trial.html")
    kept = forms.of_pairs(list(running_trial.typed))
    kept = replace(kept, token=forms.FormToken("", running_trial.state, False))
    typed = replace(visit, form=kept, is_typed=True)
    own = _own_table(visit, running_trial.name)[0] if running_trial.name else {}
    return _form(typed, running_trial.name, own, running_trial)
