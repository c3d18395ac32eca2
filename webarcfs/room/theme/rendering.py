"""The pages of the room, and the pictures in them.

Pictures are SVG and made here: shares of a whole, upright bars, the calendar of a URL. They have names for screen
readers and no styles of their own: `room.css` has the colours, for light and dark. What a picture shows is beside it as
text or as a table. Nothing is said by colour alone. All text is escaped.
"""

from __future__ import annotations

import calendar
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from markupsafe import Markup

from webarcfs.archive.config.directory import Archive
from webarcfs.room.views import CalendarEntry, Change, Slice, SnapshotRow
from webarcfs.search.curve_picture import CURVE_STYLE, CurveTexts, picture, sign
from webarcfs.search.curves import Curves, decimals
from webarcfs.web import language as languages
from webarcfs.web.rendering import PageRenderer, link_to

# == pictures, pure ===================================================================================================


#: Parts of a strip that have a colour of their own; what is more is one part, the rest.
MOST = 7
#: Years that are shown without a snapshot between those that have some.
_MOST_YEARS = 60
#: The mark that means several in one place: the change that matters most.
_WEIGHT = {Change.SAME: 0, Change.CHANGED: 1, Change.NEW: 2, Change.GONE: 3, Change.WITHHELD: 4}
_CELL, _ROW = 34, 26


@dataclass(frozen=True, slots=True)
class Bar:
    """An upright bar: its value, the text that says it, and the label below it, which may be empty."""

    value: int
    text: str
    label: str = ""
    name: str = ""


# -- shares ------------------------------------------------------------------------------------------------------------


def parts_of(slices: Sequence[Slice], rest: str) -> list[Slice]:
    """Return the largest parts of a whole as they have colours, what is left as one, called `rest`."""
    shown = list(slices[:MOST])
    if len(slices) == MOST + 1:
        return list(slices)
    if len(slices) > MOST:
        others = slices[MOST:]
        shown.append(Slice(rest, sum(part.documents for part in others), sum(part.bytes for part in others)))
    return shown


# -- upright bars ------------------------------------------------------------------------------------------------------


def years(counts: Sequence[tuple[int, int]], title: str, language: str) -> Markup:
    """Return upright bars of snapshots by year."""
    return _columns([Bar(n, languages.number(n, language), str(year)) for year, n in counts], title, "years")


def sizes(rows: Sequence[SnapshotRow], title: str, language: str) -> Markup:
    """Return the bytes of snapshots as upright bars, oldest first; those that were not counted are left out."""
    bars, year = [], 0
    for row in reversed(rows):
        if row.bytes is not None:
            label = "" if row.date.year == year else str(row.date.year)
            year = row.date.year
            text = languages.size(row.bytes, language)
            bars.append(Bar(row.bytes, text, label, f"{languages.day(row.date, language)}: {text}"))
    return _columns(bars, title, "sizes") if len(bars) > 1 else Markup("")


def _columns(bars: Sequence[Bar], title: str, key: str) -> Markup:
    """Return upright bars above a line. What few bars are is written above each; of many, above the highest."""
    if not bars:
        return Markup("")
    most = max(bar.value for bar in bars) or 1
    step = max(min(64, 680 // len(bars)), 6)
    highest = next((at for at, bar in enumerate(bars) if bar.value == most), 0)
    every = -(-36 // step)
    elements, labelled = [], -every
    for at, bar in enumerate(bars):
        x, height = 30 + at * step, round(110 * bar.value / most)
        middle = x + step / 2
        elements.append(
            Markup('<rect class="bar" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="1"><title>{}</title></rect>')
            .format(x + step * 0.14, 132 - height, step * 0.72, height, bar.name or f"{bar.label}: {bar.text}")
        )  # fmt: skip
        if bar.value and (step >= 52 or at == highest):
            elements.append(_text("figure", middle, 126 - height, bar.text))
        if bar.label and at - labelled >= every:
            labelled = at
            elements.append(_text("label", middle, 149, bar.label))
    width = 60 + step * len(bars)
    elements.append(Markup('<path class="axis" d="M24 132.5H{}"/>').format(width - 24))
    description = ", ".join(bar.name or f"{bar.label}: {bar.text}" for bar in bars[:100])
    return _picture(key, (width, 156), title, Markup("").join(elements), description)


# -- the calendar of a URL ---------------------------------------------------------------------------------------------


@cache
def mark(change: str) -> Markup:
    """Return the mark of a change, for where its name is beside it. Each row of a list has one."""
    return Markup('<svg class="sign" viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">{}</svg>').format(
        _mark(Change(change), 10, 10, 7)
    )


def months_of(
    year: int, entries: Sequence[CalendarEntry], names: Mapping[str, str], language: str
) -> list[tuple[str, Markup, bool]]:
    """Return the months of a year: name, picture, whether it is empty. A day with snapshots leads to the last of them.

    `names` are the changes as the language has them.
    """
    by_day: dict[tuple[int, int], list[CalendarEntry]] = defaultdict(list)
    for entry in entries:
        if entry.date.year == year:
            by_day[entry.date.month, entry.date.day].append(entry)
    return [
        (
            languages.month(year, number, language),
            _month(year, number, by_day, names, language),
            not any(key[0] == number for key in by_day),
        )
        for number in range(1, 13)
    ]


def _month(
    year: int, number: int, by_day: Mapping[tuple[int, int], Sequence[CalendarEntry]], names: Mapping[str, str],
    language: str,
) -> Markup:  # fmt: skip
    elements = [
        _text("weekday", at * _CELL + _CELL / 2, 14, name) for at, name in enumerate(languages.weekdays(language))
    ]
    weeks = calendar.Calendar().monthdayscalendar(year, number)
    for line, week in enumerate(weeks):
        for at, day in enumerate(week):
            if not day:
                continue
            x, y = at * _CELL + _CELL / 2, 24 + line * _ROW + _ROW / 2
            here = by_day.get((number, day), ())
            if not here:
                elements.append(_text("day", x, y + 4, str(day)))
                continue
            change = _weightiest(here)
            inside = _mark(change, x, y, 11) + _text(f"day on {change.value}", x, y + 4, str(day))
            elements.append(_linked(here, names, language, inside))
    label = languages.month(year, number, language)
    return _picture("month", (7 * _CELL, 26 + 6 * _ROW), label, Markup("").join(elements))


def years_of(
    entries: Sequence[CalendarEntry], hrefs: Mapping[int, str], names: Mapping[str, str], title: str, language: str
) -> Markup:
    """Return years and their months, with a mark where there are snapshots; several are shown by their number.

    `hrefs` are the pages of the years: a month with several snapshots leads there.
    """
    by_month: dict[tuple[int, int], list[CalendarEntry]] = defaultdict(list)
    for entry in entries:
        by_month[entry.date.year, entry.date.month].append(entry)
    known = sorted({year for year, _ in by_month})
    if not known:
        return Markup("")
    shown = list(range(known[0], known[-1] + 1)) if known[-1] - known[0] < _MOST_YEARS else known
    left, cell = 58, 52
    elements = [_text("weekday", left + at * cell + cell / 2, 14, name)
             for at, name in enumerate(languages.months(language))]  # fmt: skip
    for line, year in enumerate(shown):
        y = 24 + line * 30 + 15
        elements.append(Markup('<path class="axis" d="M{} {}H{}"/>').format(left, y + 15, left + 12 * cell))
        elements.append(_text("label", 24, y + 4, str(year)))
        for number in range(1, 13):
            here = by_month.get((year, number), ())
            x = left + (number - 1) * cell + cell / 2
            if not here:
                elements.append(Markup('<circle class="none" cx="{:.1f}" cy="{}" r="1.5"/>').format(x, y))
                continue
            change = _weightiest(here)
            inside = _mark(change, x, y, 8)
            if len(here) > 1:
                inside += _text("figure", x + 19, y + 4, f"×{len(here)}")
            elements.append(_linked(here, names, language, inside, hrefs.get(year, "")))
    return _picture("calendar", (left + 12 * cell + 8, 30 + 30 * len(shown)), title, Markup("").join(elements))


def _weightiest(entries: Iterable[CalendarEntry]) -> Change:
    return max((entry.change for entry in entries), key=lambda change: _WEIGHT[change])


def _linked(
    entries: Sequence[CalendarEntry], names: Mapping[str, str], language: str, inside: Markup, several: str = ""
) -> Markup:
    """Return a mark as a link that says what it means; one that leads nowhere is said all the same."""
    label = "; ".join(
        f"{languages.moment(entry.date, language)}: {names[entry.change.value]}" for entry in entries[:12]
    )
    shown = [entry.href for entry in entries if entry.href]
    href = several if several and len(entries) > 1 else (shown[-1] if shown else "")
    if not (leads := link_to(href)):
        return Markup('<g class="gone-day" role="img" aria-label="{}"><title>{}</title>{}</g>').format(
            label, label, inside
        )
    return Markup('<a{} aria-label="{}"><title>{}</title>{}</a>').format(leads, label, label, inside)


def _mark(change: Change, x: float, y: float, radius: float) -> Markup:
    """Return a mark: a disc is new, a diamond changed, a ring the same, a crossed square gone, a barred ring hidden."""
    if change is Change.NEW:
        shape = Markup('<circle cx="{:g}" cy="{:g}" r="{:g}"/>').format(x, y, radius)
    elif change is Change.CHANGED:
        long = radius * 1.2
        shape = Markup('<path d="M{:g} {:g}l{r:g} {r:g}l-{r:g} {r:g}l-{r:g} -{r:g}z"/>').format(x, y - long, r=long)
    elif change is Change.SAME:
        shape = Markup('<circle cx="{:g}" cy="{:g}" r="{:g}"/>').format(x, y, radius - 1)
    elif change is Change.WITHHELD:
        shape = Markup('<circle cx="{x:g}" cy="{y:g}" r="{r:g}"/><path d="M{a:g} {y:g}h{w:g}"/>').format(
            x=x, y=y, r=radius - 1, a=x - radius * 0.5, w=radius
        )
    else:
        half = radius * 0.8
        shape = Markup('<path d="M{a:g} {b:g}h{w:g}v{w:g}h-{w:g}zl{w:g} {w:g}m0 -{w:g}l-{w:g} {w:g}"/>').format(
            a=x - half, b=y - half, w=2 * half
        )
    return Markup('<g class="mark {}">{}</g>').format(change.value, shape)


# -- words over time ---------------------------------------------------------------------------------------------------


def curve_texts(language: str) -> CurveTexts:
    """Return what a picture of curves says in a language."""
    return CurveTexts(
        title=languages.translate(languages.msgid("Share of the captured versions with these words"), language),
        few=languages.translate(languages.msgid("fewer than 20 versions"), language),
        of=languages.translate(languages.msgid("of"), language),
        nothing=languages.translate(languages.msgid("nothing was captured"), language),
        per_cent=partial(languages.per_cent, language=language),
        number=partial(languages.number, language=language),
    )


def over_time(curves: Curves, language: str) -> Markup:
    """Return curves of words as a picture, without its key."""
    return Markup(picture(curves, curve_texts(language)))  # noqa: S704 # it escapes all text


def curve_sign(at: int) -> Markup:
    """Return the mark of a curve, for where its words stand beside it."""
    return Markup(sign(at))  # noqa: S704 # it has no text


def per_cent(share: float, language: str) -> str:
    """Return a share as a text in per cent."""
    return languages.per_cent(share, decimals(share), language)


# -- all pictures ------------------------------------------------------------------------------------------------------


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return Markup('<text class="{}" x="{:g}" y="{:g}" text-anchor="middle">{}</text>').format(kind, x, y, text)


def _picture(key: str, measures: tuple[float, float], title: str, inside: Markup, description: str = "") -> Markup:
    """Return a picture with its name. With a description it is one image, else its marks are read one by one."""
    width, height = measures
    role = Markup('group" aria-label="{}').format(title)
    if description:
        role = Markup('img" aria-labelledby="{k}-title" aria-describedby="{k}-desc').format(k=key)
        caption = Markup('<title id="{k}-title">{}</title><desc id="{k}-desc">{}</desc>').format(
            title, description, k=key
        )
        inside = caption + inside
    return Markup(
        '<svg class="picture {}" viewBox="0 0 {:g} {:g}" width="{:g}" height="{:g}" role="{}">{}</svg>'
    ).format(key, width, height, width, height, role, inside)


# == rendering ========================================================================================================


class Look(PageRenderer):
    """Renders the pages of the room, and has its files. Any thread may use it."""

    def __init__(self, archive: Archive | None = None) -> None:
        theme = Path(__file__).parent
        files = {"curves.css": CURVE_STYLE.encode(), "curve_page.css": (theme / "curve_page.css").read_bytes()}
        super().__init__(theme, archive, _pictures, files=files)


def _pictures(language: str) -> dict[str, object]:
    functions = (years, sizes, months_of, years_of, over_time, per_cent)
    drawn = {function.__name__: partial(function, language=language) for function in functions}
    return {"parts_of": parts_of, "mark": mark, "curve_sign": curve_sign, **drawn}
