"""The pages of snapshots: `/snapshots`, `/snapshot/<id>`, `/new` and `/compare/<a>..<b>`.

`/snapshots` is the list of all snapshots, what is done with the ticked ones, and the list as a table to take away.
Every list of the desk shows a snapshot as one row, with the one step that leads on.

`/new` begins a capture beside the schedule: which publication, and why.

`/compare/<a>..<b>` shows two snapshots side by side, as the room does it, of all that staff see.

`/snapshot/<id>` has all that is known of a snapshot, its description as a form, and the buttons of its way.

Below it are the files that are attached to the snapshot (`attachment/<name>`), and the logs of its job and steps, as
text, in pieces (`log/<name>`).
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.responses import RedirectResponse, Response

from agent.catalogue import recording, stepfolders
from agent.catalogue.recording import PatchRefusal
from agent.crawl.job_folder import step_folder
from agent.crawl.vocabulary import CUT
from agent.desk import forms, localized
from agent.desk.pages import fields, jobs
from agent.desk.pages.fields import FormSetting
from agent.desk.theme import words
from agent.desk.theme.who_may import refusal, waits_for
from agent.desk.views import Button, FormField, SnapshotLine, Work
from agent.desk.visit import NO_STORE, DeskVisit
from agent.operations import patching, records
from agent.operations.patching import PlannedPatch
from agent.operations.records import Measure
from agent.reports import counted_urls, missing_urls, url_fates
from agent.reports.counted_urls import UrlSelection
from agent.reports.explanations import explanation_of
from agent.reports.report import Missing
from agent.service import agent_status
from agent.steps import checking, picture_check
from webarcfs.archive.catalogue.catalogue import Catalogue, CatalogueDatabase, RecordRow, RecordSelection, opened
from webarcfs.archive.catalogue.record import (
    BY_NAME,
    BY_NUMBER,
    FIELDS,
    LARGEST_ATTACHMENT,
    Field,
    FieldNumber,
    FieldPurpose,
    Occasion,
    Record,
    RecordState,
    write_dublin_core,
    write_record,
)
from webarcfs.archive.catalogue.workflow import (
    ABOUT,
    ORDER,
    PATCHED,
    RUNS,
    TABLE,
    Decision,
    Progress,
    Right,
    Way,
    WorkflowStep,
    judged,
    may_edit,
    next_of_person,
    progress_of,
)
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Settings
from webarcfs.archive.model.errors import (
    Damaged,
    FieldsRefused,
    Forbidden,
    NotFound,
    TookTooLong,
    UsageError,
    WebarcError,
)
from webarcfs.archive.model.metadata import CommitTag, now, parse_time
from webarcfs.archive.system import clocks
from webarcfs.archive.system.files import size_of
from webarcfs.room.pages import lists
from webarcfs.room.pages import records as room_records
from webarcfs.room.pages.lists import page_in, pages_of
from webarcfs.room.views import PageLink, Pages, Slice
from webarcfs.web import language as languages
from webarcfs.web import limits
from webarcfs.web.answering import StreamedAnswer

# == lines ============================================================================================================


@contextmanager
def open_tables(visit: DeskVisit) -> Iterator[CatalogueDatabase]:
    """Open catalogue.db, in step with the catalogue."""
    with opened(visit.desk.archive, Catalogue(visit.desk.archive)) as tables:
        yield tables


def href_of(record_id: str) -> str:
    """Return the path of a snapshot's page."""
    return f"/snapshot/{quote(record_id, safe='')}"


#: Two crawls of a minute differ by their numbers alone.
_NUMBERED = words.msgid("no. %(number)s")


def name_of(row: RecordRow, language: str) -> str:
    """Return how people call a snapshot: domain, time and number, `www.bundestag.de, 2 Aug 2005, 03:00 CET, no. 7`."""
    number = languages.translate(_NUMBERED, language) % {"number": row.number}
    return f"{row.domain or row.publication}, {languages.moment(row.date, language)}, {number}"


def way_of(visit: DeskVisit, row: RecordRow) -> Way:
    """Return the way of a snapshot: kept, since a list asks for the same few."""
    key = ("way", row.publication, row.release, visit.desk.settings_state(), int(now().timestamp()) // 10)

    def made() -> Way:
        settings = visit.desk.settings()
        known = next(
            (publication for publication in settings.publications if publication.name == row.publication), None
        )
        return recording.way_of(visit.desk.archive, known or settings.unlisted(row.publication), settings, row.release)

    return visit.desk.kept(key, made)


def lines(
    visit: DeskVisit, rows: Iterable[RecordRow], ticked: frozenset[int] = frozenset()
) -> tuple[SnapshotLine, ...]:
    """Return the lines of rows."""
    return tuple(line_of(visit, row, is_ticked=row.number in ticked) for row in rows)


def line_of(visit: DeskVisit, row: RecordRow, *, is_ticked: bool = False) -> SnapshotLine:
    """Return the line of a row."""
    is_locked = stepfolders.is_locked(visit.desk.archive, row.id)
    button, waits_for = _next(visit, row, is_locked=is_locked)
    compared = (
        f"/compare/{quote(row.before, safe='')}..{quote(row.id, safe='')}" if row.before and row.has_parts else ""
    )
    return SnapshotLine(
        id=row.id,
        number=row.number,
        href=href_of(row.id),
        name=name_of(row, visit.language),
        publication=row.publication,
        state=str(row.state),
        complete=row.complete if row.has_parts else True,
        reason=row.reason,
        documents=row.documents,
        bytes=row.bytes,
        documents_before=row.documents_before,
        bytes_before=row.bytes_before,
        compare=compared,
        has_warning=not row.progress.passed,
        is_locked=is_locked,
        work=_work(visit, row.id) if is_locked else None,
        closed_for=localized.interval_of(row.closed_for, visit.language),
        next=button,
        waits_for=waits_for,
        is_ticked=is_ticked,
    )


def _work(visit: DeskVisit, record_id: str) -> Work | None:
    """Return the step that a snapshot is locked for, as its folder says; None without one."""
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
    if step is WorkflowStep.BACKUP:
        return None, ""
    if _is_asked(visit, row.id, step):
        return None, words.msgid("was asked for")
    return _judged(visit, row, step, way)


def _is_asked(visit: DeskVisit, record_id: str, step: WorkflowStep) -> bool:
    """Return whether a step was asked for, and is to come: one that failed may be asked for again."""
    folder = step_folder(record_id, step)
    archive = visit.desk.archive
    return (archive.jobs / folder).is_dir() and stepfolders.failure(archive, folder) is None


def _judged(visit: DeskVisit, row: RecordRow, step: WorkflowStep, way: Way) -> tuple[Button | None, str]:
    if not visit.may(TABLE[step].right):
        return None, waits_for(visit, TABLE[step].right)
    if step is WorkflowStep.CHECK and row.progress.looks_wanted:
        return None, words.msgid("waits for a look at its reference pages")
    acting = visit.acting
    verdict = judged(step, row.progress, way, visit.rights, person=acting.name, names=acting.names)
    if not verdict.is_allowed:
        if step is WorkflowStep.RELEASE and way.two_persons and not row.progress.checkers.isdisjoint(acting.names):
            return None, words.msgid("you checked it: somebody else releases it")
        wants = words.msgid("a check found something: its page has what to do")
        return None, wants if step is WorkflowStep.RELEASE else ""
    return button_of(row.id, row.state, step, is_main=True), ""


def button_of(
    record_id: str, state: RecordState, step: WorkflowStep, *, is_main: bool = False, again: bool = False
) -> Button:
    """Return the button of a step of a snapshot in a state."""
    rule = TABLE[step]
    is_run = step in RUNS
    return Button(
        text=words.STEPS[step],
        action=f"{href_of(record_id)}/{'step' if is_run else step}",
        state=str(state),
        is_main=is_main,
        asks_reason=rule.needs_reason,
        is_final=step is WorkflowStep.CANCEL,
        more=(("step", str(step)), *((("again", "yes"),) if again else ())) if is_run else (),
    )


def patch_button(
    visit: DeskVisit, record: Record | RecordRow, page: str = "", selection: Mapping[str, str] | None = None
) -> Button | None:
    """Return the button that asks for what a crawl did not get, also what its end left; None if nobody may.

    With a `page`, or a `selection` of a list of URLs, it asks for exactly these, whatever kept the crawl from them.
    """
    if not visit.may(Right.CAPTURE):
        return None
    is_named = bool(page) or selection is not None
    if patch_refusal(visit, record.id) is not None or not (is_named or _lacks_something(visit, record.id)):
        return None
    text = words.msgid("Get the missing pages")
    if is_named:
        text = words.msgid("Ask again for this page") if page else words.msgid("Ask again for these")
    more = (("page", page),) if page else ()
    return Button(
        text=text,
        action=f"{href_of(record.id)}/patch",
        state=str(record.state),
        more=more if selection is None else (("selection", urlencode(selection)),),
    )


#: Why a crawl takes no further pages → what people read.
PATCH_REFUSALS: dict[str, str] = {
    PatchRefusal.IMPORT: words.msgid("It is an import, which asks no server. Crawl the page instead."),
    PatchRefusal.OPEN: words.msgid("It has not ended. At Running it can be given more addresses."),
    PatchRefusal.EMPTY: words.msgid("It published nothing, so that there is nothing to add to. Crawl again."),
    PatchRefusal.DISCARDED: words.msgid("It is discarded. Restore it first."),
    PatchRefusal.REJECTED: words.msgid("It is rejected. Take the rejection back first."),
    PatchRefusal.RELEASED: words.msgid(
        "It is released, and readers would see pages that nobody has checked. Withdraw it first, ask again, and "
        "release it after that."
    ),
    PatchRefusal.OLDER: words.msgid("A newer crawl of the publication is there. Ask again in that one."),
}


def patch_refusal(visit: DeskVisit, record_id: str) -> tuple[PatchRefusal, str] | None:
    """Return why a record takes no patch, with the newer crawl if there is one: kept, since each preview asks."""
    archive = visit.desk.archive
    catalogue = Catalogue(archive)
    state = catalogue.state()
    return visit.desk.kept(
        ("patch refusal", record_id, None if state is None else state.commit),
        lambda: recording.judge_patch(archive, catalogue, catalogue.read(record_id)[0]),
    )


def _lacks_something(visit: DeskVisit, record_id: str) -> bool:
    """Return whether the crawl of a record lacks something: kept, since each page of a preview asks."""
    archive = visit.desk.archive
    catalogue = Catalogue(archive)

    def lacks_something() -> bool:
        lacks = _lacks(visit, catalogue.read(record_id)[0].job_name)
        return lacks is None or bool(lacks.words or any(lacks.unwanted.get(word) for word in CUT))

    state = catalogue.state()
    patches = archive.reports.stat().st_mtime_ns  # a patch that got nothing changes no record
    return visit.desk.kept(("patch", record_id, None if state is None else state.commit, patches), lacks_something)


# == new ==============================================================================================================


_CHOOSE = words.msgid("Choose one of the list.")
#: Fields of a record that are set before it is fetched.
_FIELDS = ("remarks", "signature", "provenance", "project", "crawlerRemarks")


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form."""
    desk = visit.desk
    text = desk.look_up(visit.language)
    settings = desk.settings()
    known = desk.kept(("choices", desk.settings_state()), lambda: _choices(settings))
    chosen = visit.typed("publication", visit.parameter("publication"))
    first = (
        FormField(name="publication", label=text(words.msgid("Publication")), value=chosen, kind="choice",
                  choices=known, fault=visit.fault("publication")),
        FormField(name="reason", label=text(words.msgid("Occasion")), value=visit.typed("reason", ""),
                  help=text(words.msgid("Why it is fetched now; empty for a regular crawl."))),
        FormField(name="shift", label=text(words.msgid("The schedule")), value=visit.typed("shift", ""), kind="choice",
                  choices=(("", text(words.msgid("stays as it is"))),
                           ("yes", text(words.msgid("continues from this crawl"))))),
    )  # fmt: skip
    more = tuple(fields.of_field(visit, BY_NAME[name], visit.typed(name, "")) for name in _FIELDS)
    return visit.page(
        "new.html",
        publications=known,
        fields=(*first, *more),
        told=_told(visit, settings),
        has_agent=agent_status.running(desk.archive) is not None,
        command=f"webarc-agent start --archive {desk.archive.root}",
    )


#: Settings of the archive that the form of a new crawl tells.
_TOLD = ("depth", "wait", "max_instances", "robots", "user_agent")


def _told(visit: DeskVisit, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what settings are called, with their values, as people read them."""
    for setting in dataclasses.fields(CrawlSettings):
        if setting.name in _TOLD:
            value = getattr(settings.crawl, setting.name)
            shown = FormSetting(
                name=setting.name, key=setting.name, setting=setting, own=value, in_force=value, has_above=False
            )
            field = fields.of_setting(visit, shown, is_open=False)
            yield field.label, field.value


def _choices(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the publications as a form offers them: name, and what it is."""
    choices = (
        (publication.name, publication.description or ", ".join(publication.named_urls[:2]))
        for publication in settings.publications
    )
    return tuple((name, f"{name} ({what})" if what else name) for name, what in choices)


def start(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Enter the snapshot, and ask for its capture."""
    form = visit.form
    if form.one("publication") not in {known.name for known in visit.desk.settings().publications}:
        raise visit.refusal({"publication": (visit.said(words.msgid("Publication")), visit.said(_CHOOSE))})
    reason = form.one("reason")
    record = records.enter(
        visit.desk.archive,
        visit.desk.settings(),
        form.one("publication"),
        visit.acting,
        occasion=Occasion.OCCASION if reason else Occasion.REGULAR,
        reason=reason,
        shift=form.one("shift") == "yes",
        changes={name: form.one(name) for name in _FIELDS if form.one(name)},
    )
    records.ask(visit.desk.archive, record.id, WorkflowStep.CAPTURE, visit.acting)
    message = words.msgid("It was entered; the agent fetches it.")
    if agent_status.running(visit.desk.archive) is None:
        message = words.msgid("It was entered, and waits for an agent.")
    return visit.led(href_of(record.id), message)


# == comparing ========================================================================================================


#: Where the page has the list of other snapshots.
_NAVIGATION = "#others"


def compare(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show the comparison, with the other crawls of the same servers to compare one of the two with. Raises NotFound.

    The one of the two that stays is the later one, unless `of` says that it is the earlier one.
    """
    first, _, second = path_params["pair"].partition("..")
    values = room_records.comparison(visit, path_params["pair"])
    year = visit.parameter("year")
    stays = first if visit.parameter("of") == "first" else second
    with open_tables(visit) as tables:
        total = tables.count_of_servers(stays, year)
        pages, part = pages_of(visit, total, forms.ROWS, name="others", place=_NAVIGATION)
        rows = tables.of_servers(stays, year, offset=part.start, limit=forms.ROWS)
        known = {record_id: tables.row(record_id) for record_id in (first, second)}
    row = known[stays]
    others = () if row is None else tuple(
        PageLink(_pair(candidate, row), _choice_of(visit, candidate))
        for candidate in rows if candidate.has_parts and candidate.id not in known
    )  # fmt: skip
    names = [known_id if one is None else name_of(one, visit.language) for known_id, one in known.items()]
    return visit.page(
        "compared.html",
        **values,
        names=(names[0], names[-1]),
        number=0 if row is None else row.number,
        others=others,
        pages_of_others=pages,
        year=year,
        has_filter=bool(year) or total > forms.ROWS,
    )


def _pair(candidate: RecordRow, row: RecordRow) -> str:
    """Return the path of the comparison of two crawls, the earlier one first, whose page keeps `row` as it is."""
    if (candidate.date, candidate.number) > (row.date, row.number):
        return f"/compare/{quote(row.id, safe='')}..{quote(candidate.id, safe='')}?of=first"
    return f"/compare/{quote(candidate.id, safe='')}..{quote(row.id, safe='')}"


def _choice_of(visit: DeskVisit, row: RecordRow) -> str:
    """Return what a choice calls a crawl, by its number, time and publication."""
    number = visit.said(_NUMBERED, number=row.number)
    return f"{number}, {languages.moment(row.date, visit.language)}, {row.publication}"


def choose(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead to the comparison of two snapshots; of one with the one before, or one beside it. Raises NotFound."""
    first, second = visit.parameter("from"), visit.parameter("to")
    with open_tables(visit) as tables:
        row = tables.row(second)
        if row is None:
            raise NotFound(f"there is no crawl {second}")
        others = [other for other in tables.of_servers(second, limit=forms.ROWS) if other.id != second]
    place = f"/compare/{quote(first or row.before or second, safe='')}..{quote(second, safe='')}"
    if not first and not row.before and others:
        place = _pair(next((other for other in others if other.date < row.date), others[-1]), row)
    return RedirectResponse(place, 303, dict(NO_STORE))


# == snapshots ========================================================================================================


PATH = "/snapshots"
#: Parameters of the list that choose.
_FILTERS = ("q", "publication", "state", "year", "waits", "complete", "passed")
_PASSED = {"waits": "yes", "complete": "yes", "passed": "yes"}


def listed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list."""
    return _list(visit, visit.query.decode("latin-1"), forms.read(visit.parameter("ticked")))


def again(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list after a form about ticked snapshots that was not taken."""
    return _list(visit, visit.form.raw("query"), _ticked(visit))


def _list(visit: DeskVisit, query: str, ticked: frozenset[int]) -> Response:
    path_params = parameters_of(query)
    chosen = chosen_of(path_params)
    oldest = path_params.get("order") == "oldest"
    with open_tables(visit) as tables:
        total = visit.desk.kept(("total", tables.commit, chosen), lambda: tables.count_of(chosen))
        if path_params.get("tick") == "passed":
            ticked |= set(tables.numbers(replace(chosen, waits=True, complete=True, passed=True), forms.AT_ONCE))
        last_page = max(-(-total // forms.ROWS), 1)
        page = min(page_in(path_params.get("page", "")), last_page)
        rows = tables.listed(chosen, offset=(page - 1) * forms.ROWS, limit=forms.ROWS, oldest=oldest)
        newest = tables.listed(RecordSelection(), limit=1)
    kept = {name: value for name, value in path_params.items() if name in (*_FILTERS, "order") and value}
    first = (page - 1) * forms.ROWS
    pages = Pages(
        first + 1 if total else 0, min(first + forms.ROWS, total), total,
        _href(kept, ticked, page=page - 1) if page > 1 else "",
        _href(kept, ticked, page=page + 1) if page < last_page else "",
    )  # fmt: skip
    return visit.page(
        "snapshots.html",
        rows=lines(visit, rows, ticked),
        pages=pages,
        page=page,
        last_page=last_page,
        filters=_filters(visit, path_params),
        has_filters=any(name in kept for name in _FILTERS),
        quick=_quick(path_params),
        orders=(
            PageLink(_href({**kept, "order": ""}, ticked), words.msgid("newest first"), not oldest),
            PageLink(_href({**kept, "order": "oldest"}, ticked), words.msgid("oldest first"), oldest),
        ),
        ticked=forms.written(ticked),
        ticked_total=len(ticked),
        passed=_href({**kept, "page": str(page)}, ticked, tick="passed"),
        chosen=urlencode(kept),
        query=urlencode({**kept, "page": str(page)}),
        newest=newest[0].number if newest else 0,
    )


def parameters_of(query: str) -> dict[str, str]:
    """Return the parameters of the list; what is longer than a query that a form may keep is left out."""
    return dict(parse_qsl(query[:8_000], keep_blank_values=True))


def chosen_of(path_params: Mapping[str, str]) -> RecordSelection:
    """Return what the parameters of the list choose."""
    flags = {"yes": True, "no": False}
    return RecordSelection(
        publication=path_params.get("publication", ""),
        state=path_params.get("state", "") if path_params.get("state", "") in set(RecordState) else "",
        words=path_params.get("q", "")[:200],
        year=path_params.get("year", ""),
        waits=path_params.get("waits") == "yes",
        complete=flags.get(path_params.get("complete", "")),
        passed=flags.get(path_params.get("passed", "")),
    )


def _href(kept: Mapping[str, str], ticked: frozenset[int], *, page: int = 0, tick: str = "") -> str:
    path_params = {name: value for name, value in kept.items() if value}
    path_params |= {"page": str(page)} if page > 1 else {}
    path_params |= {"ticked": forms.written(ticked)} if ticked else {}
    path_params |= {"tick": tick} if tick else {}
    return f"{PATH}?{urlencode(path_params)}" if path_params else PATH


def _quick(path_params: Mapping[str, str]) -> tuple[PageLink, ...]:
    """Return the choices that people want most, as links."""
    wanted: tuple[tuple[str, dict[str, str]], ...] = (
        (words.msgid("All"), {}),
        (words.msgid("Waiting for a release"), {"waits": "yes"}),
        (words.msgid("All that passed"), _PASSED),
        (words.msgid("Incomplete"), {"complete": "no"}),
        (words.msgid("Released"), {"state": "released"}),
    )
    chosen = {name: path_params[name] for name in _FILTERS if path_params.get(name)}
    return tuple(PageLink(_href(filters, frozenset()), text, filters == chosen) for text, filters in wanted)


def _filters(visit: DeskVisit, path_params: Mapping[str, str]) -> list[FormField]:
    text = visit.desk.look_up(visit.language)
    any_ = ("", text(words.msgid("any")))
    names = [publication.name for publication in visit.desk.settings().publications]
    chosen = path_params.get("publication", "")
    publications = [*([chosen] if chosen and chosen not in names else []), *names]
    states = [(str(state), f"{sign} {text(word)}") for state, (word, sign) in words.STATES.items()]
    yes_no = (any_, ("yes", text(words.msgid("yes"))), ("no", text(words.msgid("no"))))
    return [
        FormField(name="q", label=text(words.msgid("Words")), value=path_params.get("q", "")),
        FormField(name="publication", label=text(words.msgid("Publication")), value=path_params.get("publication", ""),
                  kind="choice", choices=(any_, *((name, name) for name in publications))),
        FormField(name="state", label=text(words.msgid("State")), value=path_params.get("state", ""), kind="choice",
                  choices=(any_, *states)),
        FormField(name="year", label=text(words.msgid("Year")), value=path_params.get("year", ""), kind="number"),
        FormField(name="complete", label=text(words.msgid("Complete")), value=path_params.get("complete", ""),
                  kind="choice", choices=yes_no),
    ]  # fmt: skip


# -- the ticked ones ---------------------------------------------------------------------------------------------------


def _ticked(visit: DeskVisit) -> frozenset[int]:
    """Return what is ticked: on the page that was sent, and on others."""
    shown = forms.read(visit.form.one("shown"))
    return (forms.read(visit.form.one("ticked")) - shown) | forms.read(",".join(visit.form.all("t")))


def keep_ticks(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead to another page of the list, with the ticks kept."""
    path_params = dict(parse_qsl(visit.form.raw("query")[:8_000]))
    kept = {name: value for name, value in path_params.items() if name in (*_FILTERS, "order")}
    go = visit.form.one("go")
    ticked = frozenset() if go == "none" else _ticked(visit)
    page = int(go) if go.isascii() and go.isdecimal() and len(go) < 8 else page_in(path_params.get("page", ""))
    return visit.led(_href(kept, ticked, page=page))


def release_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Release the ticked snapshots, each judged by itself; report which were not, and why."""
    numbers = sorted(_ticked(visit))
    if not numbers:
        raise _wrong(visit, words.msgid("Tick the crawls that readers shall see."))
    done, refused = 0, []
    for record_id in _ids(visit, numbers):
        try:
            records.decide(visit.desk.archive, record_id, Decision.RELEASE, visit.acting)
            done += 1
        except WebarcError as error:
            refused.append(str(error))
    path_params = dict(parse_qsl(visit.form.raw("query")[:8_000]))
    kept = {name: value for name, value in path_params.items() if name in (*_FILTERS, "order")}
    for text in refused[:20]:
        visit.desk.sessions.say(visit.session, "fault", text)
    message = visit.desk.said(words.msgid("Released: %(count)s. Not released: %(refused)s."), visit.language)
    return visit.led(_href(kept, frozenset()), message % {"count": done, "refused": len(refused)})


def _ids(visit: DeskVisit, numbers: list[int]) -> list[str]:
    with open_tables(visit) as tables:
        return [record_id for number in numbers if (record_id := tables.id_of(number)) is not None]


def several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form that changes several snapshots alike."""
    ticked = _ticked(visit) if visit.request.method == "POST" else forms.read(visit.parameter("ticked"))
    numbers = sorted(ticked, reverse=True)
    with open_tables(visit) as tables:
        shown = [row for number in numbers[: forms.TODAY_ROWS] if (record := tables.id_of(number))
                 and (row := tables.row(record)) is not None]  # fmt: skip
    return visit.page(
        "several.html", ticked=forms.written(ticked), rows=lines(visit, shown), total=len(numbers),
        fields=(*fields.empty_about(visit), *_common_fields(visit)),
    )  # fmt: skip


def to_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead from the list to the form that changes the ticked snapshots."""
    ticked = _ticked(visit)
    if not ticked:
        raise _wrong(visit, words.msgid("Tick the crawls that shall be changed."))
    return visit.led(f"{PATH}/edit?{urlencode({'ticked': forms.written(ticked)})}")


def _common_fields(visit: DeskVisit) -> tuple[FormField, ...]:
    """Return the fields that the person may change in any snapshot."""
    wanted = [field for field in FIELDS if not field.repeats and may_edit(field, visit.person.roles, is_fetched=True)]
    first = [field for field in wanted if field.kind is FieldPurpose.AVA]
    return tuple(
        fields.of_field(visit, field, visit.typed(field.name, ""))
        for field in (*first, *(w for w in wanted if w not in first))
    )


def save_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Change the same fields of several snapshots; a field that was left empty stays as it is in each."""
    names = {*BY_NAME, *ABOUT}
    changes = {name: values[-1].strip() for name, values in visit.form.fields.items()
               if name in names and values[-1].strip()}  # fmt: skip
    if not changes:
        raise _wrong(visit, words.msgid("Fill in what shall be the same in all of them."))
    numbers = sorted(forms.read(visit.form.one("ticked")))
    done = 0
    for record_id in _ids(visit, numbers):
        try:
            records.edit(visit.desk.archive, record_id, changes, visit.acting)
            done += 1
        except WebarcError as error:
            visit.desk.sessions.say(visit.session, "fault", f"{record_id}: {error}")
    message = visit.desk.said(words.msgid("Changed: %(count)s crawls."), visit.language)
    return visit.led(PATH, message % {"count": done})


# == attachments ======================================================================================================


_PIECE = 1 << 16


def attach(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Take a file in. Raises UsageError for none, one that is too large, or one whose name is taken."""
    file, archive, record_id = visit.form.file, visit.desk.archive, path_params["record"]
    if file is None:
        raise _wrong(visit, words.msgid("Choose a file to attach."))
    if size_of(file.body) > LARGEST_ATTACHMENT:
        raise _wrong(visit, words.msgid("The file is too large: a file that is attached has 20 MB at most."))
    is_replacing = visit.form.one("replace") == "yes"
    records.attach(
        archive, record_id, file.name, file.body, visit.acting, note=visit.form.one("note"), is_replacing=is_replacing
    )
    return visit.led(href_of(record_id), words.msgid("The file is attached."))


def detach(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Take a file away, for a reason."""
    reason = visit.form.one("reason")
    if not reason:
        raise _wrong(visit, words.msgid("Say why the file is removed."))
    records.detach(visit.desk.archive, path_params["record"], visit.form.one("name"), visit.acting, reason)
    return visit.led(href_of(path_params["record"]), words.msgid("The file is removed. The history keeps it."))


def download(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Give a file out, to be saved: whatever it is, the browser shows and runs nothing of it. Raises NotFound."""
    catalogue = Catalogue(visit.desk.archive)
    blob, size = catalogue.attachment(path_params["record"], path_params["name"])
    name = path_params["name"].encode("ascii", "replace").decode().translate({34: "_", 92: "_", 63: "_"})
    quoted = quote(path_params["name"], safe="")
    headers = {
        **NO_STORE,
        "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quoted}",
        "Content-Length": str(size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamedAnswer(_pieces(catalogue, blob), headers=headers, media_type="application/octet-stream")


def _pieces(catalogue: Catalogue, blob: str) -> Generator[bytes, None, None]:
    with TemporaryFile() as file:
        catalogue.copy(blob, file.fileno())
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece


def _wrong(visit: DeskVisit, text: str, **places: object) -> FieldsRefused:
    return visit.refusal({}, visit.said(text, **places))


# == logs =============================================================================================================


_LINES, _LONGEST = 500, 2_000
#: What a report has beside its logs.
_ENDINGS = (".log", ".log.gz", ".json", ".txt", ".csv", ".tsv")


def of_record(archive: Archive, record: Record) -> Iterator[PageLink]:
    """Yield the logs of a snapshot."""
    for name, _ in _files(archive, record):
        yield PageLink(f"/snapshot/{quote(record.id, safe='')}/log/{quote(name, safe='/')}", name)


def _files(archive: Archive, record: Record) -> Iterator[tuple[str, Path]]:
    """Yield the logs with their names: those of the job, and `<step>/…` of each step."""
    folder = archive.reports / record.job_name
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from ((f"{path.name}/{file.name}", file) for file in sorted(path.iterdir()) if _is_log(file))
        elif _is_log(path):
            yield path.name, path


def _is_log(path: Path) -> bool:
    return path.is_file() and path.name.endswith(_ENDINGS) and not path.name.startswith(".")


def report_href(archive: Archive, job: str) -> str:
    """Return the path of a job's report; empty without one."""
    return f"/report/{quote(job, safe='')}" if (archive.reports / job).is_dir() else ""


def show_log(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show a piece of a log. Raises NotFound, Damaged."""
    record, _ = Catalogue(visit.desk.archive).read(path_params["record"])
    path = next((path for name, path in _files(visit.desk.archive, record) if name == path_params["log"]), None)
    if path is None:
        raise NotFound(f"{record.id} has no log {path_params['log']}")
    asked = visit.parameter("line")
    first = max(int(asked), 1) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else 1
    lines, is_more = _piece(path, first)
    return visit.page(
        "log.html",
        title=path_params["log"],
        back=PageLink(f"/snapshot/{quote(record.id, safe='')}", words.msgid("Back to the crawl")),
        text="\n".join(lines),
        first=first,
        previous=visit.with_parameters(line=max(first - _LINES, 1)) if first > 1 else "",
        following=visit.with_parameters(line=first + _LINES) if is_more else "",
    )


def _piece(path: Path, first: int) -> tuple[list[str], bool]:
    lines: list[str] = []
    opening = gzip.open if path.name.endswith(".gz") else open
    try:
        with opening(path, "rt", encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number >= first + _LINES:
                    return lines, True
                if number >= first:
                    lines.append(text.rstrip("\n")[:_LONGEST])
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    return lines, False


# == pictures =========================================================================================================


def show_picture(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Give out a picture of the last check, as a picture and nothing else. Raises NotFound."""
    record, _ = Catalogue(visit.desk.archive).read(path_params["record"])
    picture = picture_check.picture(_checks_folder(visit.desk.archive, record), path_params["name"])
    if picture is None:
        raise NotFound(f"{record.id} has no picture {path_params['name']}")
    content, mime_type = picture
    headers = {**NO_STORE, "Content-Security-Policy": "sandbox; default-src 'none'"}
    return Response(content, headers=headers, media_type=mime_type)


def _checks_folder(archive: Archive, record: Record) -> Path:
    return archive.reports / record.job_name / str(WorkflowStep.CHECK)


# == snapshot =========================================================================================================


#: Seconds that the logs of a crawl and of its patches are read for its page.
_LOST_SECONDS = 3.0
#: Reasons that a message names why addresses are not asked for again.
_MOST_REASONS = 5
#: Documents of a snapshot up to which the page counts those that no other one has.
_MOST_COUNTED = 100_000
#: Slices that are shown of a snapshot.
_SLICES = 15


def show_snapshot(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show the page of a snapshot; after a form that was not taken, with what was typed. Raises NotFound."""
    archive = visit.desk.archive
    with open_tables(visit) as tables:
        row = tables.row(path_params["record"])
    record, blob = Catalogue(archive).read(path_params["record"])
    if row is None:
        raise NotFound(f"there is no crawl {path_params['record']}")
    line, way = line_of(visit, row), way_of(visit, row)
    at = progress_of(record, is_locked=line.is_locked)
    state_of_form = visit.form.token.state if visit.is_typed and visit.form.token.state else blob
    preview = f"{line.href}/preview" if record.parts else ""
    button = patch_button(visit, record)
    lacks = _lacks(visit, record.job_name)
    return visit.page(
        "snapshot.html",
        line=line,
        access=_access(record),
        way=tuple((words.EVENTS[TABLE[step].event], step in at.done or _is_past(step, record), step in way.set_up
                   or step is WorkflowStep.COUNT) for step in ORDER),
        buttons=list(_buttons(visit, record, at, way, line)),
        shared=_shared(visit, record),
        preview=preview,
        kept=_kept_documents(record, line, url_fates.summary_of(archive, record.job_name)),
        resources=record.resources,
        ends=list(jobs.ends_of(visit, record.job_name, record)),
        still=None if lacks is None or line.complete is not False
        else jobs.still_missing(archive, record.job_name, lacks),
        patch=button,
        patch_refusal=_refusal_of_patch(visit, record) if button is None else None,
        failures=list(_failures(visit, record)),
        asked=tuple(words.STEPS[step] for step in RUNS if _snapshot_is_asked(visit, record, step)),
        asked_now=jobs.asked(archive).get(record.id, ""),
        sets=fields.sets_of(visit, record, _groups()),
        blob=blob if visit.is_conflict else state_of_form,
        may_edit=visit.may(Right.DESCRIBE),
        checks=list(_checks(visit, record)),
        pictures=picture_check.read(_checks_folder(archive, record)),
        extensions=_extensions(record),
        compare=line.compare,
        others=f"/compare?{urlencode({'to': record.id})}{_NAVIGATION}" if record.parts else "",
        logs=list(of_record(archive, record)),
        events=record.events[::-1],
        orders=jobs.rows(archive, record.job_name, visit.language),
        exports=tuple(PageLink(f"{line.href}.{kind}", kind.upper()) for kind in ("xml", "json", "dc")),
        report=report_href(archive, record.job_name),
        measure=_measure(visit) if visit.may(Right.PROCESS) and record.parts else (),
        command=f"webarc-agent start --archive {archive.root}",
        has_agent=agent_status.running(archive) is not None,
        job=record.job_name if (archive.jobs / record.job_name).is_dir() else "",
        handover=_handover(visit, record),
        attachments=record.attachments,
        note=visit.typed("note", ""),
        most_bytes=LARGEST_ATTACHMENT,
        missing=list(jobs.lack_rows(((lack.host, lack.word, lack.urls) for lack in record.missing), record.job_name)),
        lost=[] if lacks is None else jobs.word_rows(record.job_name, lacks),
        again=f"/new?{urlencode({'publication': record.publication})}" if visit.may(Right.CAPTURE) else "",
    )  # fmt: skip


def _lacks(visit: DeskVisit, job: str) -> Missing | None:
    """Return what a crawl lacks now; None where the logs are too long to be read for a page."""
    with suppress(TookTooLong), clocks.under(clocks.Deadline(_LOST_SECONDS)):
        return jobs.lacks_of(visit, job, url_fates.summary_of(visit.desk.archive, job))
    return None


def _kept_documents(record: Record, line: SnapshotLine, summary: Mapping[str, Any]) -> int:
    """Return how many documents a crawl has that did not come with it; 0 where that is not known.

    What a patch brought, and what only pages of other hosts needed, is counted elsewhere.
    """
    is_patched = any(event.what == PATCHED for event in record.events)
    arcs = summary.get("arcs") or {}
    if is_patched or record.resources.hosts or line.documents is None or not arcs:
        return 0
    return max(line.documents - sum(int(arcs.get(name, 0)) for name in ("added", "changed", "unchanged")), 0)


def _refusal_of_patch(visit: DeskVisit, record: Record) -> tuple[str, str, bool] | None:
    """Return why a crawl takes no further pages, where to go for that, and whether to fetch again helps; else None."""
    judged_patch = patch_refusal(visit, record.id)
    if judged_patch is None:
        return None
    refusal, newer = judged_patch
    is_fetched_again = refusal in (PatchRefusal.EMPTY, PatchRefusal.DISCARDED, PatchRefusal.REJECTED)
    return PATCH_REFUSALS[refusal], href_of(newer) if newer else "", is_fetched_again


def _handover(visit: DeskVisit, record: Record) -> str:
    """Return the command that writes a crawl with its description for others to keep; empty for one without pages."""
    if not record.parts:
        return ""
    out = f"--with-records --format wacz {record.id}.wacz"
    return f"webarc export --archive {visit.desk.archive.root} --record {record.id} {out}"


def _is_past(step: WorkflowStep, record: Record) -> bool:
    places = list(ORDER.values())
    return record.state in places and places.index(record.state) >= places.index(ORDER[step])


def _access(record: Record) -> str:
    """Return who may see it now (a msgid)."""
    if record.state is RecordState.RELEASED:
        return words.msgid("Readers see it after its embargo") if record.closed_for else words.msgid("Readers see it")
    return words.msgid("Readers do not see it")


def _groups() -> list[tuple[str, tuple[Field, ...]]]:
    groups = groupby(
        (field for field in FIELDS if not field.repeats and field.number not in (1, 21)), lambda field: field.group
    )
    return [(number, tuple(members)) for number, members in groups]


def _buttons(visit: DeskVisit, record: Record, at: Progress, way: Way, line: SnapshotLine) -> Iterator[Button]:
    """Yield what the person may do with it now, the one step that leads on first."""
    if line.next is not None:
        yield line.next
    if line.complete is not False and (button := patch_button(visit, record)) is not None:
        yield button
    names = visit.acting.names
    wanted = (
        *RUNS,
        WorkflowStep.RELEASE,
        WorkflowStep.REJECT,
        WorkflowStep.REOPEN,
        WorkflowStep.WITHDRAW,
        WorkflowStep.DISCARD,
        WorkflowStep.RESTORE,
        WorkflowStep.CANCEL,
    )
    for step in wanted:
        if line.next is not None and line.next.text == words.STEPS[step]:
            continue
        for again in (False, True) if step in ORDER else (False,):
            verdict = judged(
                step, at, way, visit.rights, person=visit.person.name, names=names, reason="some", again=again
            )
            is_way = step not in ORDER or step in way.set_up or again
            is_backup = step is not WorkflowStep.BACKUP or way.backs_up
            if verdict.is_allowed and is_way and is_backup and not _snapshot_is_asked(visit, record, step):
                button = button_of(record.id, record.state, step, again=again)
                needs = step is WorkflowStep.RELEASE and not at.passed
                yield Button(
                    text=button.text, action=button.action, state=button.state, more=button.more,
                    asks_reason=button.asks_reason or needs, is_final=button.is_final, is_main=needs,
                )  # fmt: skip
                break


def _snapshot_is_asked(visit: DeskVisit, record: Record, step: WorkflowStep) -> bool:
    return (visit.desk.archive.jobs / step_folder(record.id, step)).is_dir()


def _shared(visit: DeskVisit, record: Record) -> tuple[int, int] | None:
    """Return how many documents the snapshot shares with others, and how many are its own; None: not counted."""
    documents = record.text(FieldNumber.FILES)
    if record.state is not RecordState.RELEASED or not documents.isdecimal() or int(documents) > _MOST_COUNTED:
        return None
    if not visit.may(Right.WITHDRAW):
        return None
    services = visit.desk.services()

    def counted() -> tuple[int, int]:
        shared = own = 0
        for part in record.parts:
            seq = int(part.tag.crawl_time.timestamp())
            seqs = services.gate.facts(part.tag.domain).seqs
            later = next((other_seq for other_seq in seqs if other_seq > seq), None)
            for row in services.index.of_snapshot(part.tag.domain, seq):
                is_own = row.first == seq and (later is None or row.last <= later)
                own, shared = own + is_own, shared + (not is_own)
        return shared, own

    return visit.desk.kept(("shared", record.id, services.gate.state), counted)


def _failures(visit: DeskVisit, record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield the steps that failed: step, reason, when it is tried again."""
    for step in RUNS:
        failure = stepfolders.failure(visit.desk.archive, step_folder(record.id, step))
        if failure is not None:
            yield words.STEPS[step], failure.reason, failure.again


def _checks(visit: DeskVisit, record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield what the checks found; or the reference pages that wait for a look, and their previews."""
    waiting = records.looks(visit.desk.archive, record) if progress_of(record).looks_wanted else []
    for page in waiting:
        href = f"{href_of(record.id)}/preview?{urlencode({'url': page.url})}"
        yield "", checking.name_of(page), href
    for number in (62, 63):
        for text in filter(None, record.text(number).split("; ")):
            yield text, "", ""


def _extensions(record: Record) -> tuple[Slice, ...]:
    counts = sorted(recording.parsed(record.text(FieldNumber.FILES_BY_EXTENSION)).items(), key=lambda pair: -pair[1])
    return tuple(Slice(name, count, 0) for name, count in counts[:_SLICES])


def _label_of(visit: DeskVisit, name: str) -> str:
    return words.of_field(BY_NAME[name], visit.language, visit.desk.look_up(visit.language))[0]


def _measure(visit: DeskVisit) -> tuple[FormField, ...]:
    return tuple(
        fields.of_field(visit, BY_NUMBER[number], visit.typed(BY_NUMBER[number].name, "")) for number in range(76, 82)
    )


# -- what its forms do -------------------------------------------------------------------------------------------------


def save(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Change the description: the fields that were sent and differ. Raises Busy where somebody else was faster."""
    record, blob = Catalogue(visit.desk.archive).read(path_params["record"])
    names = {*BY_NAME, *ABOUT}
    sent = {name: values[-1].strip() for name, values in visit.form.fields.items() if name in names}
    known = {name: getattr(record, name).text if name in ABOUT else record.text(BY_NAME[name].number) for name in sent}
    changes = {name: text for name, text in sent.items() if text != known[name].strip()}
    if visit.form.token.state != blob:
        _must_be_mine(visit, changes)
    if changes:
        records.edit(visit.desk.archive, record.id, changes, visit.acting, blob)
    message = words.msgid("The description was saved.") if changes else words.msgid("Nothing was different.")
    return visit.led(href_of(record.id), message)


def _must_be_mine(visit: DeskVisit, changes: Mapping[str, str]) -> None:
    """Raises Busy where a form was made from another state of the record, and would change it."""
    if changes:
        raise visit.outdated(words.msgid(
            "Somebody else changed this description meanwhile. The fields have your input, with the present values "
            "beneath. Save again to take yours."))  # fmt: skip


def _decision(decision: Decision, done: str) -> object:
    def decided(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
        expected = _expected(visit)
        records.decide(
            visit.desk.archive,
            path_params["record"],
            decision,
            visit.acting,
            visit.form.one("reason"),
            expected=expected,
        )
        back = visit.form.one("back")
        return visit.led(back if back in ("/", "/snapshots") else href_of(path_params["record"]), done)

    return decided


def _expected(visit: DeskVisit) -> RecordState | None:
    state = visit.form.token.state
    return RecordState(state) if state in set(RecordState) else None


release = _decision(Decision.RELEASE, words.msgid("It is released; readers see it."))
reject = _decision(Decision.REJECT, words.msgid("It is rejected."))
reopen = _decision(Decision.REOPEN, words.msgid("The rejection is taken back."))
withdraw = _decision(Decision.WITHDRAW, words.msgid("It is withdrawn; readers do not see it any more."))
discard = _decision(Decision.DISCARD, words.msgid("It is discarded; nobody sees what it captured."))
restore = _decision(Decision.RESTORE, words.msgid("It is restored, in the state before it was discarded."))


def cancel(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Give a capture up that has not begun."""
    records.cancel(visit.desk.archive, path_params["record"], visit.acting, visit.form.one("reason"))
    return visit.led(href_of(path_params["record"]), words.msgid("It is cancelled."))


def step(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Ask for a step."""
    word = visit.form.one("step")
    if word not in {str(step) for step in RUNS}:
        raise _wrong(visit, words.msgid("There is no such step."))
    if not visit.may(right := TABLE[WorkflowStep(word)].right):
        raise Forbidden(refusal(visit, right))
    record = _record_as_seen(visit, path_params["record"])
    records.ask(visit.desk.archive, record.id, WorkflowStep(word), visit.acting, again=visit.form.one("again") == "yes")
    return _asked_for(visit, record)


def patch(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Request what a crawl did not get, also what its end left, or exactly the pages of a form."""
    archive = visit.desk.archive
    record = _record_as_seen(visit, path_params["record"])
    with clocks.under(clocks.Deadline(limits.SECONDS)):
        urls = _named_for_patch(visit, record)
        planned = patching.plan(
            archive, visit.desk.settings(), record.job_name, urls=urls, cut=not urls, acting=visit.acting, counts=False
        )
    if not planned.urls:
        if not urls:
            return visit.led(href_of(record.id), words.msgid("Nothing is missing that failed."))
        return visit.led(href_of(record.id), _not_asked_again(visit, planned), "fault")
    patching.begin(archive, planned)
    if not urls:
        return _asked_for(visit, record)
    if planned.left_out:
        visit.desk.sessions.say(visit.session, "fault", _not_asked_again(visit, planned))
    return _led_after_patch(visit, record, planned)


def _led_after_patch(visit: DeskVisit, record: Record, planned: PlannedPatch) -> Response:
    """Lead to what is asked for again: one page to why it was missing, more to the jobs."""
    has_agent = agent_status.running(visit.desk.archive) is not None
    with open_tables(visit) as records:
        row = records.row(record.id)
    crawl = record.id if row is None else f"{name_of(row, visit.language)} ({row.publication})"
    urls = planned.patch.urls
    if planned.urls == 1 and len(urls) == 1:
        message = words.msgid("%(url)s is asked for again. What comes becomes a part of the crawl %(crawl)s.")
        if not has_agent:
            message = words.msgid("%(url)s will be asked for again, for the crawl %(crawl)s. It waits for an agent.")
        path = f"/missing?{urlencode({'url': urls[0], 'crawl': record.job_name})}"
        return visit.led(path, visit.said(message, url=urls[0], crawl=crawl))
    message = words.msgid(
        "Addresses that are asked for again: %(count)s. What comes becomes a part of the crawl %(crawl)s."
    )
    if not has_agent:
        message = words.msgid(
            "Addresses that will be asked for again, for the crawl %(crawl)s: %(count)s. They wait for an agent."
        )
    return visit.led("/running", visit.said(message, count=planned.urls, crawl=crawl))


def _named_for_patch(visit: DeskVisit, record: Record) -> list[str]:
    """Return the URLs that a form names, or chooses by the parameters of a list.

    Raises FieldsRefused for a list without any, and for too many.
    """
    urls = [url for url in visit.form.all("page") if url.strip()]
    if selection := visit.form.one("selection"):
        chosen = UrlSelection.of_parameters(dict(parse_qsl(selection)))
        lines = filter(missing_urls.may_be_named, counted_urls.chosen(visit.desk.archive, record.job_name, chosen))
        urls += [line.url for line in islice(lines, patching.MOST_URLS + 1)]
        if not urls:
            raise _wrong(visit, words.msgid("None of these can be asked for again."))
    if len(urls) > patching.MOST_URLS:
        text = words.msgid("These are too many for one time: %(most)s are the most. Narrow the list first.")
        raise _wrong(visit, text, most=patching.MOST_URLS)
    return urls


def _not_asked_again(visit: DeskVisit, planned: PlannedPatch) -> str:
    """Return what a patch of named pages does not ask for, and why."""
    text = visit.desk.look_up(visit.language)
    reasons = []
    ranked = sorted(planned.left_out.items(), key=lambda pair: -pair[1])
    for word, count in ranked[:_MOST_REASONS]:
        is_there = word == patching.ARCHIVED
        why = words.msgid("The archive has it already.") if is_there else explanation_of(word) or word
        reasons.append(f"{text(why)} ({count})" if len(planned.left_out) > 1 or count > 1 else text(why))
    if more := sum(count for _, count in ranked[_MOST_REASONS:]):
        reasons.append(text(words.msgid("and %(count)s more")) % {"count": more})
    return f"{text(words.msgid('Not asked for again:'))} {' '.join(reasons)}"


def _record_as_seen(visit: DeskVisit, record_id: str) -> Record:
    """Return a record in the state in which the person saw it. Raises UsageError if it has another one by now."""
    record, _ = Catalogue(visit.desk.archive).read(record_id)
    expected = _expected(visit)
    if expected is not None and record.state is not expected:
        raise UsageError(f"{record.id} is {record.state} by now; nothing was done")
    return record


def _asked_for(visit: DeskVisit, record: Record) -> Response:
    """Lead back to a crawl for which the agent has work now."""
    if agent_status.running(visit.desk.archive) is not None:
        return visit.led(href_of(record.id), words.msgid("It was asked for; the agent does it."))
    return visit.led(href_of(record.id), words.msgid("It was asked for, and waits for an agent."))


def look(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Keep what a look at a reference page showed."""
    is_good = visit.form.one("found") == "good"
    remark = visit.form.one("remark")
    if not is_good and not remark:
        raise _wrong(visit, words.msgid("Say what is wrong with the page."))
    page = visit.form.one("page")
    records.look(visit.desk.archive, path_params["record"], page, visit.acting, is_good=is_good, remark=remark)
    return visit.led(href_of(path_params["record"]), words.msgid("The look was kept."))


def measure(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Keep a measure of preservation."""
    form = visit.form
    faults: dict[str, tuple[str, str]] = {}
    if not form.one("measureKind"):
        faults["measureKind"] = _label_of(visit, "measureKind"), visit.said(words.msgid("Say in a word what it was."))
    size = 0
    try:
        size = validators.size(localized.value_of(validators.size, form.one("measureBytes") or "0", visit.language))
    except ValueError as error:
        faults["measureBytes"] = _label_of(visit, "measureBytes"), str(error)
    if faults:
        raise visit.refusal(faults)
    taken = Measure(
        kind=form.one("measureKind"),
        description=form.one("measureDescription"),
        software=form.one("measureSoftware"),
        parameters=form.one("measureParameters"),
        size=size if form.one("measureBytes") else None,
        remarks=form.one("measureRemarks"),
        readers_see=form.one("readers") == "yes",
    )
    records.measure(visit.desk.archive, path_params["record"], taken, visit.acting)
    return visit.led(href_of(path_params["record"]), words.msgid("The measure was kept."))


# -- the record as a file ----------------------------------------------------------------------------------------------


def exported(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Return the record with all that is known: `xml`, `json` or `dc`."""
    record, _ = Catalogue(visit.desk.archive).read(path_params["record"])
    kind = path_params["kind"]
    if kind == "json":
        body, media = json.dumps(record.as_fields(), ensure_ascii=False, indent=1).encode(), "application/json"
    elif kind == "dc":
        institution = visit.desk.settings().describe.institution
        body, media = write_dublin_core(record, institution), "application/xml"
    else:
        body, media = write_record(record), "application/xml"
    return Response(body, media_type=media, headers=dict(NO_STORE))


def start_of(visit: DeskVisit, record: Record, domain: str, url: str) -> tuple[CommitTag, str]:
    """Return the snapshot and the URL with which a preview begins. Raises NotFound."""
    tags = {tag.domain: tag for tag in record.newest_tags}
    if url:
        host = url.partition("://")[2].partition("/")[0]
        if host in tags:
            return tags[host], url
    for start in lists.publication_urls(visit.desk.services(), record.publication):
        host = start.partition("://")[2].partition("/")[0]
        if host in tags and domain in ("", host):
            return tags[host], start
    tag = tags.get(domain) or next(iter(tags.values()), None)
    if tag is None:
        raise NotFound(f"{record.id} has no pages")
    return tag, lists.root_of(visit.desk.services(), tag)
