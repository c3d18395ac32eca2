"""`/compare/<a>..<b>`: two snapshots side by side, as the room does it, of all that staff see."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from agent.desk import limits
from agent.desk.pages import lines
from agent.desk.shared.visit import NO_STORE, DeskVisit
from agent.desk.views import ComparedPage
from webarcfs.archive.catalogue.record_rows import Chosen
from webarcfs.archive.model.errors import NotFound
from webarcfs.room.pages import comparing
from webarcfs.room.pages.rows import pages_of

#: Where the page has the list of other snapshots.
_NAVIGATION = "#others"


def compare(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Show the comparison, with the others of the same publication to choose from. Raises NotFound."""
    first, _, second = said["pair"].partition("..")
    page = comparing.compare(visit, said["pair"])
    with lines.tables(visit) as tables:
        row = tables.row(second)
        year = visit.parameter("year")
        chosen = Chosen(publication="" if row is None else row.publication, year=year)
        total = 0 if row is None else tables.count_of(chosen)
        pages, part = pages_of(visit, total, limits.ROWS, name="others", place=_NAVIGATION)
        known = [] if row is None else tables.listed(chosen, offset=part.start, limit=limits.ROWS)
    others = lines.lines(visit, (each for each in known if each.has_parts and each.id not in (first, second)))
    return visit.page(ComparedPage(page, others, second, pages, year, bool(year) or total > limits.ROWS))


def choose(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Lead from a form to the comparison of two snapshots. Raises NotFound."""
    one, other = visit.parameter("from"), visit.parameter("to")
    with lines.tables(visit) as tables:
        row = tables.row(other)
        if row is None:
            raise NotFound(f"there is no snapshot {other}")
        if not one:
            same = tables.listed(Chosen(publication=row.publication), limit=limits.ROWS)
            one = row.before or next((each.id for each in same if each.id != other and each.has_parts), other)
    return RedirectResponse(f"/compare/{quote(one, safe='')}..{quote(other, safe='')}", 303, dict(NO_STORE))
