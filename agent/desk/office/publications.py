"""`/publications`: what is archived, when and how: the list, the form of one, and its trial before it is in force."""

from __future__ import annotations

import dataclasses
import hashlib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, get_type_hints
from urllib.parse import quote

from starlette.responses import Response

from agent.desk import forms, limits
from agent.desk.look import help_texts, words
from agent.desk.office.trials import TRIALS, RunningTrial
from agent.desk.pages import fields, jobs, lines
from agent.desk.publication_views import PublicationLine, PublicationPage, PublicationsPage, TrialPage
from agent.desk.shared.visit import DeskVisit
from agent.desk.views import FieldSet, FormField
from agent.policy.vocabulary import IN_CRAWL_LOG
from agent.service import scheduler
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import publication_files as files
from webarcfs.archive.config import toml_file
from webarcfs.archive.config.settings import CrawlSettings, DescribeSettings, Publication
from webarcfs.archive.model.errors import Busy, NotFound, SettingsError, UsageError
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.room.pages.rows import pages_of

#: Keys of a publication by the parts of its form; what is not here is in the last part.
_FIRST = ("urls", "description", "note", "start", "interval", "release", "closed_for", "retired")
_EXTENT = ("depth", "hosts", "exclude_hosts", "exclude", "paths", "exclude_extensions", "profile", "types",
           "exclude_types", "max_path_depth", "max_file_size", "max_total_size", "page_requisites")  # fmt: skip
_CHECKS = ("check", "checks", "check_search", "check_bounds", "error_page", "rule", "step_by_step", "two_persons")
_OWN = {
    each.metadata.get("key", each.name): each for each in dataclasses.fields(Publication) if "check" in each.metadata
}
_CRAWL = {each.metadata.get("key", each.name): each for each in dataclasses.fields(CrawlSettings)}
_DESCRIBE = {f"describe.{each.name}": each for each in dataclasses.fields(DescribeSettings)}
#: Keys that are lists of tables: a line each, as TOML.
_TABLES = frozenset({"exclude", "rule", "check", "error_page", "server"})


def listed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list."""
    desk = visit.desk
    settings, faults = desk.settings_and_faults()
    words_of = visit.parameter("q").casefold()
    known = [
        each for each in settings.publications
        if not words_of or words_of in f"{each.name} {each.description} {' '.join(each.urls)}".casefold()
    ]  # fmt: skip
    pages, part = pages_of(visit, len(known), limits.ROWS)
    shown = known[part]
    with lines.tables(visit) as tables:
        names = tuple(each.name for each in shown)
        newest = desk.kept(("newest", tables.commit, names), lambda: tables.newest(names))
    past, at = desk.history(), now()
    running = {each.publication for each in past.open}
    rows = tuple(
        PublicationLine(
            name=each.name,
            href=f"/publications/{quote(each.name, safe='')}",
            description=each.description,
            urls=each.urls,
            interval=str(each.crawl.interval),
            next=None if each.retired else scheduler.next_due(each, past.runs.get(each.name, ()), at),
            retired=each.retired,
            is_running=each.name in running,
            count=newest[each.name][0] if each.name in newest else 0,
            last=from_epoch(newest[each.name][1]) if each.name in newest else None,
        )
        for each in shown
    )
    return visit.page(PublicationsPage(rows, pages, visit.parameter("q"), faults, len(settings.publications)))


# -- the form of one ---------------------------------------------------------------------------------------------------


def new(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form of a new publication."""
    return visit.page(_view(visit, "", {}, None))


def show(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Show a publication; with the right, as a form. Raises NotFound."""
    own, _ = _own_table(visit, said["name"])
    return visit.page(_view(visit, said["name"], own, None))


def _own_table(visit: DeskVisit, name: str) -> tuple[dict[str, Any], str]:
    """Return what a publication says itself, and the state of its file. Raises NotFound, SettingsError."""
    archive = visit.desk.archive
    path = files.file_of(archive, name) if name.isprintable() and "/" not in name else None
    if path is not None and path.exists():
        text = path.read_text("utf-8-sig")
        try:
            tables = tomllib.loads(text).get("publication", [{}])
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(str(path), [f"not TOML: {error}"]) from None
        return (dict(tables[0]) if isinstance(tables, list) and tables else {}), _state_of(text)
    known = next((each for each in visit.desk.settings().publications if each.name == name), None)
    if known is None:
        raise NotFound(f"there is no publication {name}")
    tables = tomllib.loads(archive.settings.read_text("utf-8-sig")).get("publication", [])
    return dict(next((each for each in tables if each.get("name") == name), {})), ""


def _state_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _view(visit: DeskVisit, name: str, own: Mapping[str, Any], trial: TrialPage | None) -> PublicationPage:
    desk = visit.desk
    settings = desk.settings()
    held = next((each for each in settings.publications if each.name == name), None) or settings.unlisted("x")
    is_own = not name or files.file_of(desk.archive, name).exists()
    is_open = is_own and visit.may(Right.PUBLICATIONS)
    state = "new" if not name else _own_table(visit, name)[1]
    if visit.is_typed and visit.form.token.state and (visit.problem is None or visit.problem.status != 409):
        state = visit.form.token.state
    copy = ""
    if name and not is_own and visit.may(Right.PUBLICATIONS):
        copy = toml_file.text_of({"publication": [own]})
    card = [each for each in jobs.cards(visit) if each.publication == name]
    return PublicationPage(
        name=name,
        description=held.description if name else "",
        sets=tuple(_sets(visit, name, held, own, is_open=is_open)),
        state=state,
        is_open=is_open,
        retired=held.retired if name else False,
        place=files.place_of(desk.archive, name) if name else "",
        copy=copy,
        trial=trial,
        jobs=tuple(card),
        snapshots=f"/snapshots?publication={quote(name, safe='')}" if name else "",
    )


def _sets(
    visit: DeskVisit, name: str, held: Publication, own: Mapping[str, Any], *, is_open: bool
) -> Iterator[FieldSet]:
    text = visit.desk.look_up(visit.language)
    faults = visit.problem.faults if visit.problem is not None else {}
    is_conflict = visit.problem is not None and visit.problem.status == 409

    def made(key: str) -> FormField:
        field, value, hint = _setting(held, key)
        said = _own_value(own, key)
        current = "" if said is None else _text(key, said)
        typed = visit.typed(key, current)
        kind = "told" if not is_open else "choice" if hint is bool or _words_of(field) else "area" \
            if str(hint).startswith("tuple") or key == "note" else "text"  # fmt: skip
        return FormField(
            name=key,
            label=help_texts.label_of_setting(key.removeprefix("describe."), text),
            value=typed if is_open else current or _text(key, files.plain(value)),
            kind=kind,
            help=_help(key, text(field.metadata["help"]), text),
            choices=_choices(field, hint, text),
            fault=faults.get(key.rpartition(".")[2], ""),
            placeholder=_text(key, files.plain(value)) if name or key not in ("urls",) else "",
            now=current if is_conflict and typed != current else None,
        )

    if not name:
        yield FieldSet(words.msgid("Name"), (
            FormField(name="name", label=text(words.msgid("Name")), value=visit.typed("name", ""),
                      help=text(words.msgid("Letters, digits, dots and hyphens; it stays for good.")),
                      fault=faults.get("name", "")),))  # fmt: skip
    known = [*_OWN, *_CRAWL]
    parts = ((words.msgid("What, and when"), _FIRST), (words.msgid("Extent"), _EXTENT),
             (words.msgid("Checks and release"), _CHECKS))  # fmt: skip
    for at, (heading, keys) in enumerate(parts):
        yield FieldSet(
            heading, tuple(made(key) for key in keys if key in known), is_open=at == 0 or (bool(name) and at == 1)
        )
    yield FieldSet(words.msgid("Description"), tuple(made(key) for key in _DESCRIBE), is_open=False)
    listed_ = {key for _, keys in parts for key in keys} | {"name"}
    yield FieldSet(
        words.msgid("Manners and limits"), tuple(made(key) for key in known if key not in listed_), is_open=False
    )


def _setting(held: Publication, key: str) -> tuple[Any, Any, Any]:
    """Return the field of a key, its value in force, and its type."""
    for table, of in ((_OWN, held), (_CRAWL, held.crawl)):
        if key in table:
            return table[key], getattr(of, table[key].name), get_type_hints(type(of))[table[key].name]
    field = _DESCRIBE[key]
    return field, getattr(held.describe, field.name), str


def _own_value(own: Mapping[str, Any], key: str) -> Any:
    head, dot, tail = key.partition(".")
    return (own.get(head) or {}).get(tail) if dot else own.get(key)


def _words_of(field: Any) -> tuple[str, ...]:
    return getattr(field.metadata["check"], "words", ())


def _choices(field: Any, hint: Any, text: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    values = ("yes", "no") if hint is bool else _words_of(field)
    return (("", text("as the archive says")), *((each, text(each)) for each in values)) if values else ()


def _help(key: str, said: str, text: Callable[[str], str]) -> str:
    if key == "exclude":
        return f"{said} {text(words.msgid('One a line: a host, or host and path with *, then # and the reason.'))}"
    if key in _TABLES:
        return f"{said} {text(words.msgid('One a line, as TOML.'))} {_EXAMPLES.get(key, '')}"
    return said


_EXAMPLES = {
    "check": 'url = "http://www.example.org/", name = "Start", expects = "page", by = "person"',
    "rule": 'match = "/search", on = "form", does = "search", term = "q"',
    "error_page": 'contains = "<h1>Error</h1>"',
    "server": 'host = "www.example.org", wait = 2',
}


# -- from text and to text ---------------------------------------------------------------------------------------------


def _text(key: str, value: Any) -> str:
    """Return the value of a key as it stands in the form."""
    if key in _TABLES and isinstance(value, list | tuple):
        return "\n".join(_table_line(key, each) for each in value)
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return fields.as_text(value)


def _table_line(key: str, table: Mapping[str, Any]) -> str:
    if key == "exclude" and set(table) <= {"match", "reason"}:
        return f"{table.get('match', '')} # {table['reason']}" if table.get("reason") else str(table.get("match", ""))
    return toml_file.text_of(dict(table)).strip().replace("\n", ", ")


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
        said = _own_value(own, key)
        current = "" if said is None else _text(key, said)
        typed = visit.form.one(key)
        if typed == current.strip():
            continue
        if typed:
            values[key] = _value(key, typed)
        elif said is not None:
            removed.append(key)
    return values, removed


# -- what the form does ------------------------------------------------------------------------------------------------


def save(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Write a publication; it is in force within a second.

    Raises SettingsError, Busy, UsageError; nothing is written then.
    """
    archive = visit.desk.archive
    name = said.get("name") or visit.form.one("name")
    if said.get("name"):
        files.write(archive, name, lambda: _edited(visit, name))
    else:
        _must_be_name(visit, name)
        values, _ = _typed_values(visit, {})
        files.write(archive, name, lambda: files.new_text(archive, name, values))
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
            "Somebody changed this publication meanwhile. What you typed is in the fields, and beneath what it is now; "
            "saving again takes yours."
        )
        raise Busy(visit.desk.said(late, visit.language))
    values, removed = _typed_values(visit, own)
    return files.edited_text(visit.desk.archive, name, values, removed)


def retire(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Retire a publication, or take that back."""
    archive, name = visit.desk.archive, said["name"]
    is_back = visit.form.one("back") == "yes"
    values: dict[str, Any] = {} if is_back else {"retired": True}

    def edited() -> str:
        own, _ = _own_table(visit, name)
        return files.edited_text(archive, name, values, ["retired"] if is_back and "retired" in own else [])

    files.write(archive, name, edited)
    said_ = words.msgid("It is fetched again.") if is_back else words.msgid("It is retired; what was archived stays.")
    return visit.led(f"/publications/{quote(name, safe='')}", said_)


def try_(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Try a publication as it was typed; nothing is archived, and nothing is saved."""
    archive = visit.desk.archive
    name = said.get("name") or visit.form.one("name")
    if said.get("name"):
        own, _ = _own_table(visit, name)
        values, removed = _typed_values(visit, own)
        text = files.edited_text(archive, name, values, removed)
    else:
        _must_be_name(visit, name)
        values, _ = _typed_values(visit, {})
        text = files.new_text(archive, name, values)
    settings, found = files.with_text(archive, name, text)
    trial = RunningTrial(said.get("name", ""), visit.session.public, tuple(visit.form.typed()), visit.form.token.state)
    mark = TRIALS.begin(archive, settings, found, trial)
    return visit.led(f"/publications-trial/{mark}")


def trial(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Show a trial: that it runs, or the form again with what was found. Raises NotFound."""
    found = TRIALS.find(said["mark"], visit.session.public)
    if found is None:
        raise NotFound(visit.desk.said(words.msgid("This trial is over; try again."), visit.language))
    sentences = {str(word): word.sentence for word in IN_CRAWL_LOG}
    shown = TrialPage.of(found.found, found.fault, sentences)
    if found.runs:
        return visit.page(shown)
    kept = forms.of_pairs(list(found.typed))
    kept = replace(kept, token=forms.FormToken("", found.state, False))
    typed = replace(visit, form=kept, is_typed=True)
    own = _own_table(visit, found.name)[0] if found.name else {}
    return visit.page(_view(typed, found.name, own, shown))
