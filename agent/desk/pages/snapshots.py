"""`/snapshots`: the list of all snapshots, what is done with the ticked ones, and the list as a table to take away."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from agent.acts import deciding
from agent.desk import limits, ticks
from agent.desk.look import words
from agent.desk.pages import fields, lines
from agent.desk.shared.visit import NO_STORE, DeskVisit
from agent.desk.views import FormField, SeveralPage, SnapshotsPage
from webarcfs.archive.catalogue.fields import FIELDS, Kind
from webarcfs.archive.catalogue.record import State
from webarcfs.archive.catalogue.record_rows import Chosen
from webarcfs.archive.catalogue.workflow import Decision, may_edit
from webarcfs.archive.model.errors import UsageError, WebarcError
from webarcfs.archive.model.metadata import format_time
from webarcfs.room.pages.rows import page_in
from webarcfs.room.views import Link, Pages

PATH = "/snapshots"
#: Parameters of the list that choose.
_FILTERS = ("q", "publication", "state", "year", "waits", "complete", "passed")
_PASSED = {"waits": "yes", "complete": "yes", "passed": "yes"}
#: Rows that a table to take away has at most.
_MOST_ROWS = 100_000


def listed(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list."""
    query = visit.query.decode("latin-1")
    return visit.page(_view(visit, query, ticks.read(visit.parameter("ticked"))))


def again(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the list after a form about ticked snapshots that was not taken."""
    return visit.page(_view(visit, visit.form.raw("query"), _ticked(visit)))


def _view(visit: DeskVisit, query: str, ticked: frozenset[int]) -> SnapshotsPage:
    said = dict(parse_qsl(query[:8_000], keep_blank_values=True))
    chosen = _chosen(said)
    oldest = said.get("order") == "oldest"
    with lines.tables(visit) as tables:
        total = visit.desk.kept(("total", tables.commit, chosen), lambda: tables.count_of(chosen))
        if said.get("tick") == "passed":
            ticked |= set(tables.numbers(replace(chosen, waits=True, complete=True, passed=True), limits.AT_ONCE))
        last_page = max(-(-total // limits.ROWS), 1)
        page = min(page_in(said.get("page", "")), last_page)
        found = tables.listed(chosen, offset=(page - 1) * limits.ROWS, limit=limits.ROWS, oldest=oldest)
        newest = tables.listed(Chosen(), limit=1)
    kept = {name: value for name, value in said.items() if name in (*_FILTERS, "order") and value}
    first = (page - 1) * limits.ROWS
    pages = Pages(
        first + 1 if total else 0, min(first + limits.ROWS, total), total,
        _href(kept, ticked, page=page - 1) if page > 1 else "",
        _href(kept, ticked, page=page + 1) if page < last_page else "",
    )  # fmt: skip
    return SnapshotsPage(
        rows=lines.lines(visit, found, ticked),
        pages=pages,
        page=page,
        last_page=last_page,
        filters=tuple(_filters(visit, said)),
        has_filters=any(name in kept for name in _FILTERS),
        quick=_quick(said),
        orders=(
            Link(_href({**kept, "order": ""}, ticked), words.msgid("newest first"), not oldest),
            Link(_href({**kept, "order": "oldest"}, ticked), words.msgid("oldest first"), oldest),
        ),
        ticked=ticks.written(ticked),
        ticked_total=len(ticked),
        passed=_href({**kept, "page": str(page)}, ticked, tick="passed"),
        csv=f"{PATH}.csv?{urlencode({name: kept[name] for name in _FILTERS if name in kept})}",
        query=urlencode({**kept, "page": str(page)}),
        newest=newest[0].number if newest else 0,
    )


def _chosen(said: Mapping[str, str]) -> Chosen:
    flags = {"yes": True, "no": False}
    return Chosen(
        publication=said.get("publication", ""),
        state=said.get("state", "") if said.get("state", "") in set(State) else "",
        words=said.get("q", "")[:200],
        year=said.get("year", ""),
        waits=said.get("waits") == "yes",
        complete=flags.get(said.get("complete", "")),
        passed=flags.get(said.get("passed", "")),
    )


def _href(kept: Mapping[str, str], ticked: frozenset[int], *, page: int = 0, tick: str = "") -> str:
    said = {name: value for name, value in kept.items() if value}
    said |= {"page": str(page)} if page > 1 else {}
    said |= {"ticked": ticks.written(ticked)} if ticked else {}
    said |= {"tick": tick} if tick else {}
    return f"{PATH}?{urlencode(said)}" if said else PATH


def _quick(said: Mapping[str, str]) -> tuple[Link, ...]:
    """Return the choices that people want most, as links."""
    wanted: tuple[tuple[str, dict[str, str]], ...] = (
        (words.msgid("All"), {}),
        (words.msgid("Waiting for a release"), {"waits": "yes"}),
        (words.msgid("All that passed"), _PASSED),
        (words.msgid("Incomplete"), {"complete": "no"}),
        (words.msgid("Released"), {"state": "released"}),
    )
    now = {name: said[name] for name in _FILTERS if said.get(name)}
    return tuple(Link(_href(each, frozenset()), text, each == now) for text, each in wanted)


def _filters(visit: DeskVisit, said: Mapping[str, str]) -> list[FormField]:
    text = visit.desk.look_up(visit.language)
    any_ = ("", text(words.msgid("any")))
    names = [each.name for each in visit.desk.settings().publications]
    chosen = said.get("publication", "")
    publications = [*([chosen] if chosen and chosen not in names else []), *names]
    states = [(str(state), f"{sign} {text(word)}") for state, (word, sign) in words.STATES.items()]
    yes_no = (any_, ("yes", text(words.msgid("yes"))), ("no", text(words.msgid("no"))))
    return [
        FormField(name="q", label=text(words.msgid("Words")), value=said.get("q", "")),
        FormField(name="publication", label=text(words.msgid("Publication")), value=said.get("publication", ""),
                  kind="choice", choices=(any_, *((each, each) for each in publications))),
        FormField(name="state", label=text(words.msgid("State")), value=said.get("state", ""), kind="choice",
                  choices=(any_, *states)),
        FormField(name="year", label=text(words.msgid("Year")), value=said.get("year", ""), kind="number"),
        FormField(name="complete", label=text(words.msgid("Complete")), value=said.get("complete", ""), kind="choice",
                  choices=yes_no),
    ]  # fmt: skip


# -- a table to take away ----------------------------------------------------------------------------------------------


def as_csv(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Return the list as CSV: all that the filters choose."""
    chosen = _chosen({name: visit.parameter(name) for name in _FILTERS})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("number", "snapshot", "publication", "title", "domain", "date", "state", "complete", "type",
                     "occasion", "documents", "bytes", "closed_for"))  # fmt: skip
    with lines.tables(visit) as tables:
        for each in tables.listed(chosen, limit=_MOST_ROWS):
            row = (each.number, each.id, each.publication, each.title, each.domain, format_time(each.date), each.state,
                   "yes" if each.complete else "no", "occasion" if each.is_occasion else "regular", each.reason,
                   each.documents, each.bytes, each.closed_for)  # fmt: skip
            writer.writerow([_harmless(value) for value in row])
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="snapshots.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _harmless(value: object) -> object:
    """Return a value that no program for tables takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


# -- the ticked ones ---------------------------------------------------------------------------------------------------


def _ticked(visit: DeskVisit) -> frozenset[int]:
    """Return what is ticked: on the page that was sent, and on others."""
    shown = ticks.read(visit.form.one("shown"))
    return (ticks.read(visit.form.one("ticked")) - shown) | ticks.read(",".join(visit.form.all("t")))


def keep_ticks(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead to another page of the list, with the ticks kept."""
    said = dict(parse_qsl(visit.form.raw("query")[:8_000]))
    kept = {name: value for name, value in said.items() if name in (*_FILTERS, "order")}
    go = visit.form.one("go")
    ticked = frozenset() if go == "none" else _ticked(visit)
    page = int(go) if go.isascii() and go.isdecimal() and len(go) < 8 else page_in(said.get("page", ""))
    return visit.led(_href(kept, ticked, page=page))


def release(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Release the ticked snapshots, each judged by itself; tell which were not, and why."""
    numbers = sorted(_ticked(visit))
    if not numbers:
        raise UsageError(visit.desk.said(words.msgid("Tick the snapshots that readers shall see."), visit.language))
    done, refused = 0, []
    for record_id in _ids(visit, numbers):
        try:
            deciding.decide(visit.desk.archive, record_id, Decision.RELEASE, visit.acting)
            done += 1
        except WebarcError as error:
            refused.append(str(error))
    said = dict(parse_qsl(visit.form.raw("query")[:8_000]))
    kept = {name: value for name, value in said.items() if name in (*_FILTERS, "order")}
    for text in refused[:20]:
        visit.desk.sessions.say(visit.session, "fault", text)
    told = visit.desk.said(words.msgid("Released: %(count)s. Not released: %(refused)s."), visit.language)
    return visit.led(_href(kept, frozenset()), told % {"count": done, "refused": len(refused)})


def _ids(visit: DeskVisit, numbers: list[int]) -> list[str]:
    with lines.tables(visit) as tables:
        return [found for each in numbers if (found := tables.id_of(each)) is not None]


def several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form that changes several snapshots alike."""
    ticked = _ticked(visit) if visit.request.method == "POST" else ticks.read(visit.parameter("ticked"))
    numbers = sorted(ticked, reverse=True)
    with lines.tables(visit) as tables:
        shown = [row for each in numbers[: limits.TODAY_ROWS] if (record := tables.id_of(each))
                 and (row := tables.row(record)) is not None]  # fmt: skip
    view = SeveralPage(
        ticked=ticks.written(ticked), rows=lines.lines(visit, shown), total=len(numbers), fields=_common_fields(visit)
    )
    return visit.page(view)


def to_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead from the list to the form that changes the ticked snapshots."""
    ticked = _ticked(visit)
    if not ticked:
        raise UsageError(visit.desk.said(words.msgid("Tick the snapshots that shall be changed."), visit.language))
    return visit.led(f"{PATH}/edit?{urlencode({'ticked': ticks.written(ticked)})}")


def _common_fields(visit: DeskVisit) -> tuple[FormField, ...]:
    """Return the fields that the person may change in any snapshot."""
    wanted = [each for each in FIELDS if not each.repeats and may_edit(each, visit.person.role, is_fetched=True)]
    first = [each for each in wanted if each.kind is Kind.AVA]
    return tuple(
        fields.of_field(visit, each, visit.typed(each.name, ""))
        for each in (*first, *(w for w in wanted if w not in first))
    )


def save_several(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Change the same fields of several snapshots; a field that was left empty stays as it is in each."""
    names = {each.name for each in FIELDS}
    changes = {name: values[-1].strip() for name, values in visit.form.fields.items()
               if name in names and values[-1].strip()}  # fmt: skip
    if not changes:
        raise UsageError(visit.desk.said(words.msgid("Fill in what shall be the same in all of them."), visit.language))
    numbers = sorted(ticks.read(visit.form.one("ticked")))
    done = 0
    for record_id in _ids(visit, numbers):
        try:
            deciding.edit(visit.desk.archive, record_id, changes, visit.acting)
            done += 1
        except WebarcError as error:
            visit.desk.sessions.say(visit.session, "fault", f"{record_id}: {error}")
    told = visit.desk.said(words.msgid("Changed: %(count)s snapshots."), visit.language)
    return visit.led(PATH, told % {"count": done})
