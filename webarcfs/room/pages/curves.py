"""`/curve`: in which share of what was captured words stand, over time; as a picture with its table, CSV and SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from webarcfs.archive.model.errors import BadCondition, TooMany
from webarcfs.room.pages.search_question import LONGEST, NARROWING, narrowed, searcher_of
from webarcfs.room.theme.rendering import curve_texts
from webarcfs.room.views import PageLink
from webarcfs.room.visit import Visit
from webarcfs.search.curve_picture import picture
from webarcfs.search.curves import (
    COLUMNS,
    MOST_CURVES,
    CurvePoint,
    Curves,
    Period,
    PeriodLength,
    count_curves,
)
from webarcfs.web.language import msgid
from webarcfs.web.table_files import MEDIA_TYPES, as_csv

#: Fields for words that the form shows beside those that are filled.
_BLANK = 2
_STEPS = {PeriodLength.YEAR: msgid("by year"), PeriodLength.MONTH: msgid("by month")}

#: The values of a page without curves.
_NO_CURVES: dict[str, Any] = {
    "fault": "", "curves": None, "rows": (), "exports": (), "steps": (),
}  # fmt: skip


def address(words: Sequence[str], **narrowing: str) -> str:
    """Return the page with the curves of some searches. `narrowing` has parameters of `/search`, such as `site`."""
    given = {name: value for name, value in narrowing.items() if name in NARROWING and value}
    return f"/curve?{urlencode({'q': words, **given}, doseq=True)}"


def curve(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show the curves of up to eight searches; without words, the form. A `fault` marks what is wrong with them."""
    words, services = _words(visit), visit.services
    shown: dict[str, Any] = {}
    if words and services.has_search:
        try:
            shown = _shown(visit, _counted(visit, words))
        except (BadCondition, TooMany) as error:
            shown = {"fault": str(error)}
    blank = max(1, min(_BLANK, MOST_CURVES - len(words)))
    return visit.page(
        "curve.html",
        words=tuple(words),
        inputs=(*words, *[""] * blank)[: max(MOST_CURVES, len(words))],
        fields=visit.given(("by", "from", "to", *NARROWING)),
        has_index=services.has_search,
        **(_NO_CURVES | shown),
    )


def exported(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the curves as `csv` or `svg`. Raises BadCondition, TooMany, NotFound without words or an index."""
    curves = _counted(visit, _words(visit))
    if path_params["kind"] == "svg":
        return visit.file(picture(curves, curve_texts(visit.language), is_file=True).encode(), "image/svg+xml")
    rows = (row | {"few": "true" if row["few"] else "false"} for row in curves.rows())
    return visit.file(as_csv(COLUMNS, ([row[name] for name in COLUMNS] for row in rows)), MEDIA_TYPES["csv"])


def _words(visit: Visit) -> list[str]:
    """Return the searches of a request, in their order."""
    return [words for value in visit.parameters().get("q", ()) if (words := value.strip()[:LONGEST])]


def _counted(visit: Visit, words: Sequence[str]) -> Curves:
    """Return the curves that a request asks for. Raises BadCondition, TooMany, NotFound."""
    searcher, by = searcher_of(visit), visit.parameter("by")
    first, last = (Period.parse(text) if (text := visit.parameter(name)) else None for name in ("from", "to"))
    length = PeriodLength(by) if by in set(PeriodLength) else PeriodLength.YEAR
    return count_curves(searcher, words, narrowed(visit), length, (first, last))


def _shown(visit: Visit, curves: Curves) -> dict[str, Any]:
    names = visit.given(NARROWING)
    return {
        "curves": curves,
        "rows": tuple(_row(point, curves, names) for point in curves.points),
        "exports": tuple(PageLink(visit.with_parameters(f"/curve.{kind}"), kind.upper()) for kind in ("csv", "svg")),
        "steps": tuple(
            PageLink(visit.with_parameters(by=str(step)), label, curves.by is step) for step, label in _STEPS.items()
        ),
    }


def _row(point: CurvePoint, curves: Curves, names: Mapping[str, str]) -> SimpleNamespace:
    return SimpleNamespace(
        period=str(point.period),
        captured=point.captured,
        is_few=point.is_few,
        cells=tuple(_cells(point, curves, names)),
    )


def _cells(point: CurvePoint, curves: Curves, names: Mapping[str, str]) -> Iterator[SimpleNamespace]:
    """Yield what a line of the table has of each curve. A number leads to the search that finds what it counts."""
    for at, words in enumerate(curves.words):
        versions = point.versions[at]
        query = urlencode({"q": words, "during": str(point.period), **names})
        yield SimpleNamespace(
            words=words, share=point.share(at), versions=versions, href=f"/search?{query}" if versions else ""
        )
