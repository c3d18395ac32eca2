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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, get_type_hints
from urllib.parse import quote

from starlette.responses import Response

from agent.desk import forms
from agent.desk.pages import fields, jobs, snapshots
from agent.desk.theme import words
from agent.desk.views import FieldSet, FormField
from agent.desk.visit import DeskVisit
from agent.operations import trying
from agent.operations.trying import Trial
from agent.reports.explanations import explanation_of
from agent.service import scheduler
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import (
    SECRETS,
    BackupSettings,
    CrawlSettings,
    DescribeSettings,
    IndexSettings,
    MountSettings,
    NotifySettings,
    Publication,
    ReleaseSettings,
    Settings,
)
from webarcfs.archive.model.errors import Busy, NotFound, SettingsError, UsageError, WebarcError
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.system.cache import identity
from webarcfs.room.pages.lists import pages_of

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
    for table, (heading, kind, unfolded) in TABLES.items():
        known = getattr(settings, _OF[table])
        values = {setting.name: getattr(known, setting.name) for setting in dataclasses.fields(known)}
        prefix = f"{table}." if table else ""
        left_out = _IN_FILE_ALONE.get(table, frozenset())
        form_fields = fields.of_settings(visit, kind, values, prefix=prefix, is_open=is_open, leave_out=left_out)
        sets.append(FieldSet(heading, form_fields, unfolded))
    path = visit.desk.archive.settings
    return visit.page(
        "options.html", sets=sets, state=_state(visit), is_open=is_open, file=str(path), fault="\n".join(faults)
    )


def _state(visit: DeskVisit) -> str:
    return str(identity(visit.desk.archive.settings))


def save_options(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Write the settings that differ from those in force. Raises SettingsError with all faults, and writes nothing."""
    settings = visit.desk.settings()
    archive = visit.desk.archive
    with settings_files.changing(archive.settings, archive.settings_lock) as document:
        if visit.form.token.state != _state(visit):
            message = words.msgid("webarc.toml was changed meanwhile. Nothing was saved; your input is still here.")
            raise Busy(visit.desk.said(message, visit.language))
        changed = _changed(visit, settings)
        for table, values in changed.items():
            target: Any = document if not table else document.setdefault(table, {})
            for key, value in values.items():
                if value in ("", None):
                    target.pop(key, None)
                else:
                    target[key] = value
        settings_files.parse(_text(document), str(archive.settings))
    message = words.msgid("The settings were saved.") if changed else words.msgid("Nothing was different.")
    return visit.led("/options", message)


def _text(document: Any) -> str:
    text = str(document.as_string())
    tomllib.loads(text)
    return text


def _changed(visit: DeskVisit, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what was typed and differs from what holds, by table."""
    changes: dict[str, dict[str, Any]] = {}
    for table, (_, kind, _unfolded) in TABLES.items():
        known = getattr(settings, _OF[table])
        prefix = f"{table}." if table else ""
        for setting in dataclasses.fields(kind):
            name = f"{prefix}{setting.metadata.get('key', setting.name)}"
            is_left_out = setting.name in _IN_FILE_ALONE.get(table, frozenset())
            if "check" not in setting.metadata or is_left_out or not visit.form.has(name):
                continue
            typed = fields.typed_in(visit, name).strip()
            if typed != fields.as_text(getattr(known, setting.name)).strip():
                value = fields.from_text(kind, setting.name, typed)
                changes.setdefault(table, {})[setting.metadata.get("key", setting.name)] = value
    return changes


# == trials ===========================================================================================================


#: Trials that run at once, those that are kept, and for how long.
_AT_ONCE, _MOST, _SECONDS = 2, 100, 3600.0


@dataclass(slots=True, eq=False)
class RunningTrial:
    """A trial: whose it is, what was typed, and what came of it."""

    name: str
    session: str
    typed: tuple[tuple[str, str], ...]
    state: str
    begun: float = field(default_factory=time.monotonic)
    found: Trial | None = None
    fault: str = ""

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.found is None and not self.fault


class Trials:
    """The trials of a desk. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, RunningTrial] = OrderedDict()

    def begin(self, archive: Archive, settings: Settings, publication: Publication, trial: RunningTrial) -> str:
        """Begin a trial; return its mark. Raises Busy while others run."""
        with self._lock:
            if sum(running_trial.runs for running_trial in self._known.values()) >= _AT_ONCE:
                raise Busy("others try publications now; please try again in a minute")
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


#: Keys of a publication by the parts of its form; what is not here is in the last part.
_FIRST = ("urls", "list", "watch", "description", "note", "fetcher", "start", "interval", "release", "closed_for",
          "retired")  # fmt: skip
_EXTENT = ("depth", "hosts", "exclude_hosts", "exclude", "paths", "exclude_extensions", "profile", "types",
           "exclude_types", "max_path_depth", "max_file_size", "max_total_size", "page_resources",
           "page_requisites", "max_resource_hosts", "max_page_resources")  # fmt: skip
_CHECKS = ("check", "checks", "check_search", "check_bounds", "check_pictures", "check_likeness",
           "error_page", "rule", "step_by_step", "two_persons")  # fmt: skip
_BROWSER = ("browser", "click", "browser_behaviours", "browser_page_seconds", "browser_requests", "browser_bytes",
            "browser_scroll", "browser_clicks", "keep_rendered", "post", "drop_parameters")  # fmt: skip
_OWN = {
    setting.metadata.get("key", setting.name): setting
    for setting in dataclasses.fields(Publication)
    if "check" in setting.metadata
}
_CRAWL = {setting.metadata.get("key", setting.name): setting for setting in dataclasses.fields(CrawlSettings)}
_DESCRIBE = {f"describe.{setting.name}": setting for setting in dataclasses.fields(DescribeSettings)}
#: Keys that are lists of tables: a line each, as TOML.
_TABLES = frozenset({"exclude", "rule", "check", "error_page", "server", "browser", "click", *SECRETS})


def listed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list."""
    desk = visit.desk
    settings, faults = desk.settings_and_faults()
    query = visit.parameter("q").casefold()
    publications = [publication for publication in settings.publications if query in _text_of(publication)]
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
            interval=str(publication.crawl.interval),
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
    settings = desk.settings()
    held = next(
        (publication for publication in settings.publications if publication.name == name), None
    ) or settings.unlisted("x")
    is_own = not name or settings_files.file_of(desk.archive, name).exists()
    is_open = is_own and visit.may(Right.PUBLICATIONS)
    state = "new" if not name else _own_table(visit, name)[1]
    if visit.is_typed and visit.form.token.state and (visit.problem is None or visit.problem.status != 409):
        state = visit.form.token.state
    copy = ""
    if name and not is_own and visit.may(Right.PUBLICATIONS):
        copy = settings_files.text_of({"publication": [own]})
    counts = {} if trial is None or trial.found is None else trial.found.refused
    return visit.page(
        "publication_form.html",
        name=name,
        description=held.description if name else "",
        sets=list(_sets(visit, name, held, own, None if trial is None else trial.found, is_open=is_open)),
        state=state,
        is_open=is_open,
        retired=held.retired if name else False,
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


def _sets(
    visit: DeskVisit, name: str, held: Publication, own: Mapping[str, Any], trial: Trial | None, *, is_open: bool
) -> Iterator[FieldSet]:
    text = visit.desk.look_up(visit.language)
    faults = visit.problem.faults if visit.problem is not None else {}
    is_conflict = visit.problem is not None and visit.problem.status == 409

    def made(key: str) -> FormField:
        setting, value, hint = _setting(held, key)
        own_value = _own_value(own, key)
        current = "" if own_value is None else _publications_text(key, own_value)
        typed = visit.typed(key, current)
        kind = "told" if not is_open else "choice" if hint is bool or _words_of(setting) else "area" \
            if str(hint).startswith("tuple") or key == "note" else "text"  # fmt: skip
        choices = _choices(key, setting, hint, text)
        in_force = current or _publications_text(key, settings_files.plain(value))
        return FormField(
            name=key,
            label=words.label_of_setting(key.removeprefix("describe."), text),
            value=typed if is_open else dict(choices).get(in_force, in_force),
            kind=kind,
            help=_help(key, text(setting.metadata["help"]), text),
            choices=choices,
            fault=faults.get(key.rpartition(".")[2], ""),
            placeholder=_publications_text(key, settings_files.plain(value)) if name or key not in ("urls",) else "",
            now=current if is_conflict and typed != current else None,
            remark=_of_trial(trial, text) if key == "fetcher" and trial is not None else "",
        )

    if not name:
        yield FieldSet(words.msgid("Name"), (
            FormField(name="name", label=text(words.msgid("Name")), value=visit.typed("name", ""),
                      help=text(words.msgid("Letters, digits, dots and hyphens; it stays for good.")),
                      fault=faults.get("name", "")),))  # fmt: skip
    known = [*_OWN, *_CRAWL]
    parts = ((words.msgid("What, and when"), _FIRST), (words.msgid("Extent"), _EXTENT),
             (words.msgid("Pages that a browser shows"), _BROWSER),
             (words.msgid("Checks and release"), _CHECKS))  # fmt: skip
    for at, (heading, keys) in enumerate(parts):
        yield FieldSet(
            heading, tuple(made(key) for key in keys if key in known), is_open=at == 0 or (bool(name) and at == 1)
        )
    yield FieldSet(words.msgid("Description"), tuple(made(key) for key in _DESCRIBE), is_open=False)
    in_parts = {key for _, keys in parts for key in keys} | {"name"}
    yield FieldSet(
        words.msgid("Manners and limits"), tuple(made(key) for key in known if key not in in_parts), is_open=False
    )


def _setting(held: Publication, key: str) -> tuple[Any, Any, Any]:
    """Return the setting of a key, its value in force, and its type."""
    for table, of in ((_OWN, held), (_CRAWL, held.crawl)):
        if key in table:
            return table[key], getattr(of, table[key].name), get_type_hints(type(of))[table[key].name]
    setting = _DESCRIBE[key]
    return setting, getattr(held.describe, setting.name), str


def _own_value(own: Mapping[str, Any], key: str) -> Any:
    head, dot, tail = key.partition(".")
    return (own.get(head) or {}).get(tail) if dot else own.get(key)


def _words_of(setting: Any) -> tuple[str, ...]:
    return getattr(setting.metadata["check"], "words", ())


def _choices(key: str, setting: Any, hint: Any, text: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    values = ("yes", "no") if hint is bool else _words_of(setting)
    return (("", text("as the archive says")), *words.choices_of_setting(key, values, text)) if values else ()


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


def _help(key: str, help_text: str, text: Callable[[str], str]) -> str:
    if key == "exclude":
        return f"{help_text} {text(words.msgid('One a line: a host, or host and path with *, then # and the reason.'))}"
    if key in _TABLES:
        return f"{help_text} {text(words.msgid('One a line, as TOML.'))} {_EXAMPLES.get(key, '')}"
    return help_text


_EXAMPLES = {
    "check": 'url = "http://www.example.org/", name = "Start", expects = "page", by = "person"',
    "rule": 'match = "/search", on = "form", does = "search", term = "q"',
    "error_page": 'contains = "<h1>Error</h1>"',
    "server": 'host = "www.example.org", wait = 2',
    "browser": 'match = "/map/*"',
    "click": 'text = "Accept"',
}


# -- from text and to text ---------------------------------------------------------------------------------------------


def _publications_text(key: str, value: Any) -> str:
    """Return the value of a key as it is in the form."""
    if key in _TABLES and isinstance(value, list | tuple):
        return "\n".join(_table_line(key, table) for table in value)
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return fields.as_text(value)


def _table_line(key: str, table: Mapping[str, Any]) -> str:
    if key == "exclude" and set(table) <= {"match", "reason"}:
        return f"{table.get('match', '')} # {table['reason']}" if table.get("reason") else str(table.get("match", ""))
    return settings_files.text_of(dict(table)).strip().replace("\n", ", ")


def _value(key: str, text: str) -> Any:
    """Return what was typed for a key as TOML has it. Raises SettingsError for a line that is none."""
    if key in _TABLES:
        return [_table(key, line.strip()) for line in text.splitlines() if line.strip()]
    if key == "depth" and text == "unlimited":
        return text
    if key in _CRAWL:
        return fields.from_text(CrawlSettings, _CRAWL[key].name, text)
    if key in _OWN:
        return fields.from_text(Publication, _OWN[key].name, text)
    return text


def _table(key: str, line: str) -> dict[str, Any]:
    if key == "exclude" and "=" not in line.partition("#")[0]:
        match, _, reason = line.partition("#")
        return {"match": match.strip()} | ({"reason": reason.strip()} if reason.strip() else {})
    try:
        return dict(tomllib.loads(f"it = {{ {line} }}")["it"])
    except tomllib.TOMLDecodeError as error:
        raise SettingsError("publication", [f"{key}: {line!r} is no TOML: {error}"]) from None


def _typed_values(visit: DeskVisit, own: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the keys that were typed and differ from the file, and those that were emptied."""
    values: dict[str, Any] = {}
    removed: list[str] = []
    for key in (*_OWN, *_CRAWL, *_DESCRIBE):
        if key == "name" or not visit.form.has(key):
            continue
        own_value = _own_value(own, key)
        current = "" if own_value is None else _publications_text(key, own_value)
        typed = visit.form.one(key)
        if typed == current.strip():
            continue
        if typed:
            values[key] = _value(key, typed)
        elif own_value is not None:
            removed.append(key)
    return values, removed


# -- what the form does ------------------------------------------------------------------------------------------------


def save(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Write a publication; it is in force within a second.

    Raises SettingsError, Busy, UsageError; nothing is written then.
    """
    archive = visit.desk.archive
    name = path_params.get("name") or visit.form.one("name")
    if path_params.get("name"):
        settings_files.write_publication(archive, name, lambda: _edited(visit, name))
    else:
        _must_be_name(visit, name)
        values, _ = _typed_values(visit, {})
        settings_files.write_publication(archive, name, lambda: settings_files.new_text(archive, name, values))
    return visit.led(
        f"/publications/{quote(name, safe='')}", words.msgid("The publication was saved; it holds at once.")
    )


def _must_be_name(visit: DeskVisit, name: str) -> None:
    if not name:
        raise UsageError(visit.desk.said(words.msgid("Give it a name."), visit.language))
    try:
        _OWN["name"].metadata["check"](name)
    except ValueError as error:
        raise SettingsError("publication", [f"name: {error}"]) from None


def _edited(visit: DeskVisit, name: str) -> str:
    own, state = _own_table(visit, name)
    if visit.form.token.state != state:
        late = words.msgid(
            "Somebody changed this publication meanwhile. The fields have your input, with the present values beneath. "
            "Save again to take yours."
        )
        raise Busy(visit.desk.said(late, visit.language))
    values, removed = _typed_values(visit, own)
    return settings_files.edited_text(visit.desk.archive, name, values, removed)


def retire(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Retire a publication, or take that back."""
    archive, name = visit.desk.archive, path_params["name"]
    is_back = visit.form.one("back") == "yes"
    values: dict[str, Any] = {} if is_back else {"retired": True}

    def edited() -> str:
        own, _ = _own_table(visit, name)
        return settings_files.edited_text(archive, name, values, ["retired"] if is_back and "retired" in own else [])

    settings_files.write_publication(archive, name, edited)
    message = words.msgid("It is fetched again.") if is_back else words.msgid("It is retired; its crawls stay.")
    return visit.led(f"/publications/{quote(name, safe='')}", message)


def try_(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Try a publication as it was typed; nothing is archived, and nothing is saved."""
    archive = visit.desk.archive
    name = path_params.get("name") or visit.form.one("name")
    if path_params.get("name"):
        own, _ = _own_table(visit, name)
        values, removed = _typed_values(visit, own)
        text = settings_files.edited_text(archive, name, values, removed)
    else:
        _must_be_name(visit, name)
        values, _ = _typed_values(visit, {})
        text = settings_files.new_text(archive, name, values)
    settings, publication = settings_files.with_text(archive, name, text)
    trial = RunningTrial(
        path_params.get("name", ""), visit.session.public, tuple(visit.form.typed()), visit.form.token.state
    )
    mark = TRIALS.begin(archive, settings, publication, trial)
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
