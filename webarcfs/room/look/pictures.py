"""Pictures of the room as SVG, made here: bars, years, sizes over snapshots, the strip of a calendar.

They have names for screen readers and no styles of their own: `room.css` has the colours, for light and dark. A table
with the same figures stands beside each. All text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from webarcfs.room.look import language as languages
from webarcfs.room.memento_views import CalendarEntry, Change
from webarcfs.room.views import Slice, SnapshotRow

#: Bars of a picture; what is more is one bar, the rest.
MOST = 12
_WIDTH = 640
_SHAPES = {Change.NEW: "new", Change.CHANGED: "changed", Change.SAME: "same", Change.GONE: "gone"}


def bars(slices: Sequence[Slice], label: str, rest: str, language: str) -> Markup:
    """Return horizontal bars of documents, the most frequent first; nothing for none."""
    if not slices:
        return Markup("")
    shown = list(slices[:MOST])
    if len(slices) > MOST:
        others = slices[MOST:]
        shown.append(Slice(rest, sum(each.documents for each in others), sum(each.bytes for each in others)))
    most = max(each.documents for each in shown) or 1
    rows = []
    for at, each in enumerate(shown):
        y, width = at * 26, max(round((_WIDTH - 330) * each.documents / most), 1)
        figures = languages.number(each.documents, language), languages.size(each.bytes, language)
        rows.append(
            Markup('<text class="label" x="210" y="{}" text-anchor="end">{}</text>'
                   '<rect class="bar" x="220" y="{}" width="{}" height="16" rx="2"/>'
                   '<text class="figure" x="{}" y="{}">{} · {}</text>').format(
                y + 15, _short(each.label), y + 3, width, 228 + width, y + 15, *figures
            )
        )  # fmt: skip
    return _picture(_WIDTH, len(shown) * 26, label, Markup("").join(rows))


def years(counts: Sequence[tuple[int, int]], label: str, language: str) -> Markup:
    """Return upright bars of snapshots by year."""
    if not counts:
        return Markup("")
    most = max(count for _, count in counts) or 1
    step = min(56, _WIDTH // len(counts)) or 1
    rows = []
    for at, (year, count) in enumerate(counts):
        height = round(80 * count / most)
        x = at * step
        rows.append(
            Markup('<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(
                x + 4, 100 - height, max(step - 8, 2), height
            )
        )
        if step >= 30 or at % (30 // step + 1) == 0:
            rows.append(
                Markup('<text class="label" x="{}" y="116" text-anchor="middle">{}</text>'
                       '<text class="figure" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                    x + step / 2, year, x + step / 2, 94 - height, languages.number(count, language) if count else ""
                )
            )  # fmt: skip
    return _picture(step * len(counts), 122, label, Markup("").join(rows))


def sizes(rows: Sequence[SnapshotRow], label: str, language: str) -> Markup:
    """Return the bytes of snapshots as upright bars, oldest first; those that were not counted are left out."""
    counted = [each for each in reversed(rows) if each.bytes is not None]
    if len(counted) < 2:
        return Markup("")
    most = max(each.bytes or 0 for each in counted) or 1
    step = min(56, _WIDTH / len(counted))
    found = [
        Markup('<rect class="bar" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}: {}</title></rect>').format(
            at * step + step / 8, 84 - height, step * 3 / 4, height, languages.day(each.date, language),
            languages.size(each.bytes or 0, language),
        )
        for at, each in enumerate(counted)
        if (height := max(round(80 * (each.bytes or 0) / most), 1))
    ]  # fmt: skip
    return _picture(round(step * len(counted)), 88, label, Markup("").join(found))


def strip(entries: Sequence[CalendarEntry], label: str, language: str) -> Markup:
    """Return snapshots on a line of time: a disc is new, a diamond changed, a stroke the same, a cross gone."""
    if not entries:
        return Markup("")
    first, last = entries[0].date, entries[-1].date
    span = (last - first).total_seconds() or 1.0
    found = [Markup('<line class="axis" x1="20" y1="30" x2="{}" y2="30"/>').format(_WIDTH - 20)]
    for each in entries:
        x = 20 + (_WIDTH - 40) * ((each.date - first).total_seconds() / span if len(entries) > 1 else 0.5)
        found.append(_mark(each, x, languages.moment(each.date, language)))
    ends = ((20, "start", first), (_WIDTH - 20, "end", last)) if len(entries) > 1 else ((_WIDTH / 2, "middle", first),)
    for x, anchor, time in ends:
        found.append(
            Markup('<text class="label" x="{}" y="58" text-anchor="{}">{}</text>').format(
                x, anchor, languages.day(time, language)
            )
        )
    return _picture(_WIDTH, 64, label, Markup("").join(found))


def _mark(entry: CalendarEntry, x: float, when: str) -> Markup:
    kind = _SHAPES[entry.change]
    shapes = {
        Change.NEW: Markup('<circle cx="{x:.1f}" cy="30" r="7"/>'),
        Change.CHANGED: Markup('<path d="M{x:.1f} 22l8 8-8 8-8-8z"/>'),
        Change.SAME: Markup('<path d="M{x:.1f} 24v12"/>'),
        Change.GONE: Markup('<path d="M{a:.1f} 25l10 10m0-10l-10 10"/>'),
    }
    return Markup('<g class="mark {}"><title>{}</title>{}</g>').format(
        kind, when, shapes[entry.change].format(x=x, a=x - 5)
    )


def _picture(width: int, height: int, label: str, inside: Markup) -> Markup:
    return Markup(
        '<svg class="picture" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    ).format(width, height, width, height, escape(label), inside)


def _short(label: str) -> str:
    return label if len(label) <= 30 else f"{label[:29]}…"
