"""The pages of many snapshots: `/snapshots`, `/new` and `/compare/<a>..<b>`.

`/snapshots` is the list of all snapshots, what is done with the ticked ones, and the list as a table to take away.
Every list of the desk shows a snapshot as one row, with the one step that leads on.

`/new` begins a capture beside the schedule: which publication, and why.

`/compare/<a>..<b>` shows two snapshots side by side, as the room does it, of all that staff see.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.responses import RedirectResponse, Response

from agent.catalogue import patches, recording, stepfolders
from agent.crawl.job_folder import step_folder
from agent.desk import forms
from agent.desk.pages import fields
from agent.desk.theme import words
from agent.desk.views import Button, ComparedPage, FormField, NewPage, SeveralPage, SnapshotLine, SnapshotsPage, Work
from agent.desk.visit import NO_STORE, DeskVisit
from agent.operations import records
from agent.reports.report import missing_in
from agent.service import agent_status
from webarcfs.archive.catalogue.catalogue import Catalogue, CatalogueDatabase, RecordRow, RecordSelection, opened
from webarcfs.archive.catalogue.record import BY_NAME, FIELDS, FieldPurpose, Occasion, Record, RecordState
from webarcfs.archive.catalogue.workflow import (
    RUNS,
    TABLE,
    Decision,
    Right,
    Way,
    WorkflowStep,
    judged,
    may_edit,
    next_of_person,
)
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import Damaged, NotFound, UsageError, WebarcError
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.archive.system import files
from webarcfs.room.pages import records as room_records
from webarcfs.room.pages.lists import page_in, pages_of
from webarcfs.room.theme import language as languages
from webarcfs.room.views import PageLink, Pages

# == lines ============================================================================================================


@contextmanager
def open_tables(visit: DeskVisit) -> Iterator[CatalogueDatabase]:
    """Open catalogue.db, in step with the catalogue."""
    with opened(visit.desk.archive, Catalogue(visit.desk.archive)) as tables:
        yield tables


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
        known = next(
            (publication for publication in settings.publications if publication.name == row.publication), None
        )
        return recording.way_of(visit.desk.archive, known or settings.unlisted(row.publication), settings, row.release)

    return visit.desk.kept(key, made)


def lines(
    visit: DeskVisit, rows: Iterable[RecordRow], ticked: frozenset[int] = frozenset()
) -> tuple[SnapshotLine, ...]:
    """Return the lines of rows."""
    return tuple(line(visit, row, is_ticked=row.number in ticked) for row in rows)


def line(visit: DeskVisit, row: RecordRow, *, is_ticked: bool = False) -> SnapshotLine:
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
        title=row.title,
        publication=row.publication,
        date=row.date,
        state=str(row.state),
        complete=row.complete or not row.has_parts,
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
        return None, words.msgid("waits for somebody with the right to continue")
    if step is WorkflowStep.CHECK and row.progress.looks_wanted:
        return None, words.msgid("waits for a look at its reference pages")
    verdict = judged(step, row.progress, way, visit.rights, person=visit.person.name)
    if not verdict.is_allowed:
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


def patch_button(visit: DeskVisit, record: Record | RecordRow, url: str = "") -> Button | None:
    """Return the button that asks again for what a crawl did not get, or for one page; None if nobody may."""
    if not visit.may(Right.CAPTURE) or not _can_be_patched(visit, record.id):
        return None
    return Button(
        text=words.msgid("Ask again for this page") if url else words.msgid("Ask again for what is missing"),
        action=f"{href_of(record.id)}/patch",
        state=str(record.state),
        more=(("url", url),) if url else (),
    )


def _can_be_patched(visit: DeskVisit, record_id: str) -> bool:
    """Return whether a record takes a patch, and its crawl lacks something: kept, since each page of a preview asks."""
    archive = visit.desk.archive
    catalogue = Catalogue(archive)

    def lacks_something() -> bool:
        record, _ = catalogue.read(record_id)
        if patches.refusal(archive, catalogue, record):
            return False
        summary: dict[str, Any] = {}
        with suppress(Damaged, OSError):
            summary = files.read_json(archive.reports / record.job_name / "summary.json") or {}
        return bool(missing_in(summary).words)

    state = catalogue.state()
    return visit.desk.kept(("patch", record_id, None if state is None else state.commit), lacks_something)


# == new ==============================================================================================================


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
                  choices=known),
        FormField(name="reason", label=text(words.msgid("Occasion")), value=visit.typed("reason", ""),
                  help=text(words.msgid("Why it is fetched now; empty for a regular crawl."))),
        FormField(name="shift", label=text(words.msgid("The schedule")), value=visit.typed("shift", ""), kind="choice",
                  choices=(("", text(words.msgid("stays as it is"))),
                           ("yes", text(words.msgid("continues from this crawl"))))),
    )  # fmt: skip
    more = tuple(fields.of_field(visit, BY_NAME[name], visit.typed(name, "")) for name in _FIELDS)
    crawl = settings.crawl
    crawl_settings = (
        ("depth", str(crawl.depth)),
        ("wait", str(crawl.wait)),
        ("max_instances", str(crawl.max_instances)),
        ("robots", "yes" if crawl.robots else "no"),
        ("user_agent", crawl.user_agent),
    )
    view = NewPage(
        publications=known,
        fields=(*first, *more),
        told=crawl_settings,
        has_agent=agent_status.running(desk.archive) is not None,
        command=f"webarc-agent start --archive {desk.archive.root}",
    )
    return visit.page(view)


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
    if not form.one("publication"):
        raise UsageError(visit.desk.said(words.msgid("Choose a publication."), visit.language))
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
    """Show the comparison, with the others of the same publication to choose from. Raises NotFound."""
    first, _, second = path_params["pair"].partition("..")
    page = room_records.compare(visit, path_params["pair"])
    with open_tables(visit) as tables:
        row = tables.row(second)
        year = visit.parameter("year")
        chosen = RecordSelection(publication="" if row is None else row.publication, year=year)
        total = 0 if row is None else tables.count_of(chosen)
        pages, part = pages_of(visit, total, forms.ROWS, name="others", place=_NAVIGATION)
        known = [] if row is None else tables.listed(chosen, offset=part.start, limit=forms.ROWS)
    others = lines(visit, (row for row in known if row.has_parts and row.id not in (first, second)))
    return visit.page(ComparedPage(page, others, second, pages, year, bool(year) or total > forms.ROWS))


def choose(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead from a form to the comparison of two snapshots. Raises NotFound."""
    first, second = visit.parameter("from"), visit.parameter("to")
    with open_tables(visit) as tables:
        row = tables.row(second)
        if row is None:
            raise NotFound(f"there is no crawl {second}")
        if not first:
            same = tables.listed(RecordSelection(publication=row.publication), limit=forms.ROWS)
            first = row.before or next(
                (candidate.id for candidate in same if candidate.id != second and candidate.has_parts), second
            )
    return RedirectResponse(f"/compare/{quote(first, safe='')}..{quote(second, safe='')}", 303, dict(NO_STORE))


# == snapshots ========================================================================================================


PATH = "/snapshots"
#: Parameters of the list that choose.
_FILTERS = ("q", "publication", "state", "year", "waits", "complete", "passed")
_PASSED = {"waits": "yes", "complete": "yes", "passed": "yes"}
#: Rows that a table to take away has at most.
_MOST_ROWS = 100_000


def listed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list."""
    query = visit.query.decode("latin-1")
    return visit.page(_view(visit, query, forms.read(visit.parameter("ticked"))))


def again(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list after a form about ticked snapshots that was not taken."""
    return visit.page(_view(visit, visit.form.raw("query"), _ticked(visit)))


def _view(visit: DeskVisit, query: str, ticked: frozenset[int]) -> SnapshotsPage:
    path_params = dict(parse_qsl(query[:8_000], keep_blank_values=True))
    chosen = _chosen(path_params)
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
    return SnapshotsPage(
        rows=lines(visit, rows, ticked),
        pages=pages,
        page=page,
        last_page=last_page,
        filters=tuple(_filters(visit, path_params)),
        has_filters=any(name in kept for name in _FILTERS),
        quick=_quick(path_params),
        orders=(
            PageLink(_href({**kept, "order": ""}, ticked), words.msgid("newest first"), not oldest),
            PageLink(_href({**kept, "order": "oldest"}, ticked), words.msgid("oldest first"), oldest),
        ),
        ticked=forms.written(ticked),
        ticked_total=len(ticked),
        passed=_href({**kept, "page": str(page)}, ticked, tick="passed"),
        csv=f"{PATH}.csv?{urlencode({name: kept[name] for name in _FILTERS if name in kept})}",
        query=urlencode({**kept, "page": str(page)}),
        newest=newest[0].number if newest else 0,
    )


def _chosen(path_params: Mapping[str, str]) -> RecordSelection:
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


# -- a table to take away ----------------------------------------------------------------------------------------------


def as_csv(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Return the list as CSV: all that the filters choose."""
    chosen = _chosen({name: visit.parameter(name) for name in _FILTERS})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("number", "snapshot", "publication", "title", "domain", "date", "state", "complete", "type",
                     "occasion", "documents", "bytes", "closed_for"))  # fmt: skip
    with open_tables(visit) as tables:
        for record in tables.listed(chosen, limit=_MOST_ROWS):
            row = (record.number, record.id, record.publication, record.title, record.domain, format_time(record.date),
                   record.state, "yes" if record.complete else "no", "occasion" if record.is_occasion else "regular",
                   record.reason, record.documents, record.bytes, record.closed_for)  # fmt: skip
            writer.writerow([_harmless(value) for value in row])
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="snapshots.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _harmless(value: object) -> object:
    """Return a value that no program for tables takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


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


def release(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Release the ticked snapshots, each judged by itself; report which were not, and why."""
    numbers = sorted(_ticked(visit))
    if not numbers:
        raise UsageError(visit.desk.said(words.msgid("Tick the crawls that readers shall see."), visit.language))
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
    view = SeveralPage(
        ticked=forms.written(ticked), rows=lines(visit, shown), total=len(numbers), fields=_common_fields(visit)
    )
    return visit.page(view)


def to_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead from the list to the form that changes the ticked snapshots."""
    ticked = _ticked(visit)
    if not ticked:
        raise UsageError(visit.desk.said(words.msgid("Tick the crawls that shall be changed."), visit.language))
    return visit.led(f"{PATH}/edit?{urlencode({'ticked': forms.written(ticked)})}")


def _common_fields(visit: DeskVisit) -> tuple[FormField, ...]:
    """Return the fields that the person may change in any snapshot."""
    wanted = [field for field in FIELDS if not field.repeats and may_edit(field, visit.person.role, is_fetched=True)]
    first = [field for field in wanted if field.kind is FieldPurpose.AVA]
    return tuple(
        fields.of_field(visit, field, visit.typed(field.name, ""))
        for field in (*first, *(w for w in wanted if w not in first))
    )


def save_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Change the same fields of several snapshots; a field that was left empty stays as it is in each."""
    names = {field.name for field in FIELDS}
    changes = {name: values[-1].strip() for name, values in visit.form.fields.items()
               if name in names and values[-1].strip()}  # fmt: skip
    if not changes:
        raise UsageError(visit.desk.said(words.msgid("Fill in what shall be the same in all of them."), visit.language))
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
