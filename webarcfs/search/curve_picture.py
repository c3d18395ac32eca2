"""Curves as a picture: SVG as text, for a page that has `CURVE_STYLE`, or as a file of its own. Pure.

Each curve has a colour and a shape of its own, so that nothing is said by colour alone. A period with few versions has
a ground of its own and hollow marks. Where nothing was captured a curve is interrupted. All text is escaped, and words
in any script stand apart from what is written around them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from webarcfs.search.curves import FEW, MOST_CURVES, CurvePoint, Curves, decimals, in_per_cent

_WIDTH, _HEIGHT = 760, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 22, 14, 32
#: Between two lines of the axis are at least so many units, and between two labels of periods.
_BETWEEN_LINES, _BETWEEN_LABELS = 44, 54
#: Narrower steps have no marks on their curves, but for those of few versions and single ones.
_MARKED = 7.0
#: Height of a line of the key, and characters of an expression in it.
_LINE, _LONGEST = 22, 70
#: What XML 1.0 cannot hold.
_UNSHOWN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ISOLATED, _ISOLATED_END = "\u2068", "\u2069"

#: How curves look, for pages and for files of their own: their colours in both schemes, their lines and marks.
CURVE_STYLE = """
:root { --c0: #1a4f4a; --c1: #a06a10; --c2: #8a4b32; --c3: #5b5f8c;
  --c4: #3f7f96; --c5: #9a3a6a; --c6: #5d7a1f; --c7: #6b6f6a; }
@media (prefers-color-scheme: dark) {
  :root { --c0: #8fd0c6; --c1: #dba94d; --c2: #e09a7c; --c3: #a9aee0;
    --c4: #7fc0dc; --c5: #e58fb8; --c6: #b3cf6d; --c7: #b4bab5; }
}
.curve { stroke: var(--curve); stroke-width: 2; fill: none; stroke-linejoin: round; }
.point { stroke: var(--curve); stroke-width: 2; fill: var(--curve); }
.point.of-few { fill: var(--paper); }
.few { fill: var(--ground); }
""" + "".join(f".c{number} {{ --curve: var(--c{number}); }}\n" for number in range(MOST_CURVES))
#: What a file has besides: the colours of base.css, for both schemes, and the looks of its texts and axes.
_FILE_STYLE = """
:root { --paper: #faf8f3; --ink: #1c2422; --soft: #56615d; --line: #dcd7ca; --ground: #ece8dd; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #141817; --ink: #e8e5dd; --soft: #a8b1ad; --line: #343c3a; --ground: #29302e; }
}
svg { background: var(--paper); }
text { font-family: system-ui, "Noto Sans", "Liberation Sans", sans-serif; fill: var(--ink); font-size: 13px; }
.label { fill: var(--soft); font-size: 12px; }
.word { unicode-bidi: plaintext; }
.axis { stroke: var(--line); fill: none; }
"""


@dataclass(frozen=True, slots=True)
class CurveTexts:
    """What a picture says, in the language of its page.

    `per_cent` writes a share with so many decimals, `number` a number.
    """

    title: str
    few: str = f"fewer than {FEW} versions"
    of: str = "of"
    nothing: str = "nothing was captured"
    per_cent: Callable[[float, int], str] = in_per_cent
    number: Callable[[int], str] = "{:,}".format


def picture(curves: Curves, texts: CurveTexts, *, is_file: bool = False) -> str:
    """Return the picture: an element for a page, or with `is_file` a whole file with its own colours and its key."""
    if not curves.points:
        return _svg(texts.title, "", texts.nothing, 60, is_file=is_file)
    top = nice_top(curves.most)
    elements = [*_bands(curves.points, texts), *_axes(curves, top, texts)]
    for at in range(len(curves.words)):
        elements += _curve(curves, at, top, texts)
    height = float(_HEIGHT)
    if is_file:
        key = [*_key(curves, texts)]
        elements += key
        height += 14 + _LINE * len(key)
    return _svg(texts.title, "".join(elements), _description(curves, texts), height, is_file=is_file)


def sign(at: int) -> str:
    """Return the mark of a curve, for where its words stand beside it."""
    shape = _shape(at, 10, 10, 5)
    return f'<svg class="sign c{at}" viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">{shape}</svg>'


# -- scales ------------------------------------------------------------------------------------------------------------


def nice_top(most: float) -> float:
    """Return the upper end of an axis for shares up to `most`: a round number, and 1 at most."""
    if most <= 0:
        return 0.01
    size = 10.0 ** math.floor(math.log10(most))
    return min(next(size * factor for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if size * factor >= most * 0.999), 1.0)


def lines_of(top: float) -> list[float]:
    """Return the shares at which an axis has lines, without the one at 0."""
    count = next(
        count
        for count in (5, 4, 3, 2, 1)
        if count == 1 or (_is_round(top / count) and (_HEIGHT - _TOP - _BOTTOM) / count >= _BETWEEN_LINES)
    )
    return [top * number / count for number in range(1, count + 1)]


def _is_round(value: float) -> bool:
    scaled = value / 10.0 ** math.floor(math.log10(value)) * 100
    return abs(scaled - round(scaled)) < 1e-6 and round(scaled) % 25 == 0


def _x(at: int, count: int) -> float:
    step = (_WIDTH - _LEFT - _RIGHT) / count
    return _LEFT + step * (at + 0.5)


def _y(share: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(share / top, 1.0)


# -- parts -------------------------------------------------------------------------------------------------------------


def _bands(points: Sequence[CurvePoint], texts: CurveTexts) -> Iterator[str]:
    """Yield the ground of each period that has few versions."""
    step = (_WIDTH - _LEFT - _RIGHT) / len(points)
    for at, point in enumerate(points):
        if point.is_few:
            what = texts.few if point.captured else texts.nothing
            yield (
                f'<rect class="few" x="{_LEFT + step * at:.1f}" y="{_TOP}" width="{step:.1f}"'
                f' height="{_HEIGHT - _TOP - _BOTTOM}"><title>{point.period}: {_text(what)}</title></rect>'
            )


def _axes(curves: Curves, top: float, texts: CurveTexts) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    shares = lines_of(top)
    places = next(
        number for number in range(9) if all(abs(share - round(share, number + 2)) < 1e-12 for share in shares)
    )
    for share in shares:
        y = _y(share, top)
        yield f'<path class="axis" d="M{_LEFT} {y:.1f}H{right}"/>'
        label = _text(texts.per_cent(share, places))
        yield f'<text class="label" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    yield f'<path class="axis" d="M{_LEFT} {bottom}H{right}"/>'
    count = len(curves.points)
    every = max(1, math.ceil(_BETWEEN_LABELS * count / (_WIDTH - _LEFT - _RIGHT)))
    for at in range(0, count, every):
        yield (
            f'<text class="label" x="{_x(at, count):.1f}" y="{bottom + 19}" text-anchor="middle">'
            f"{curves.points[at].period}</text>"
        )


def _curve(curves: Curves, at: int, top: float, texts: CurveTexts) -> Iterator[str]:
    """Yield the lines of a curve, one for each run of periods in which something was captured, and its marks."""
    count = len(curves.points)
    is_marked = (_WIDTH - _LEFT - _RIGHT) / count >= _MARKED
    runs: list[list[str]] = [[]]
    marks = []
    for number, point in enumerate(curves.points):
        share = point.share(at)
        if share is None:
            runs.append([])
            continue
        x, y = _x(number, count), _y(share, top)
        runs[-1].append(f"{x:.1f} {y:.1f}")
        neighbours = [curves.points[other].captured for other in (number - 1, number + 1) if 0 <= other < count]
        if is_marked or point.is_few or not any(neighbours):
            written = texts.per_cent(share, decimals(share))
            title = (
                f"{_ISOLATED}{curves.words[at]}{_ISOLATED_END}, {point.period}: {written}, "
                f"{texts.number(point.versions[at])} {texts.of} {texts.number(point.captured)}"
                f"{f' ({texts.few})' if point.is_few else ''}"
            )
            marks.append(_shape(at, x, y, 4, is_few=point.is_few, title=title))
    lines = "".join(f'<path class="curve" d="M{"L".join(run)}"/>' for run in runs if len(run) > 1)
    yield f'<g class="c{at}">{lines}{"".join(marks)}</g>'


def _shape(at: int, x: float, y: float, radius: float, *, is_few: bool = False, title: str = "") -> str:
    """Return the mark of a curve at a place: eight shapes, one for each."""
    r, long = radius, radius * 1.35
    shapes = (
        f"M{x - r:.1f} {y:.1f}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 -{2 * r:g} 0z",
        f"M{x - r:.1f} {y - r:.1f}h{2 * r:g}v{2 * r:g}h-{2 * r:g}z",
        f"M{x:.1f} {y - long:.1f}l{long:g} {2 * r:g}h-{2 * long:g}z",
        f"M{x:.1f} {y - long:.1f}l{long:g} {long:g}l-{long:g} {long:g}l-{long:g} -{long:g}z",
        f"M{x:.1f} {y + long:.1f}l{long:g} -{2 * r:g}h-{2 * long:g}z",
        f"M{x - r:.1f} {y - r:.1f}l{2 * r:g} {r:g}l-{2 * r:g} {r:g}z",
        f"M{x - long:.1f} {y - r / 2:.1f}h{2 * long:g}v{r:g}h-{2 * long:g}z",
        f"M{x - r / 2:.1f} {y - long:.1f}h{r:g}v{2 * long:g}h-{r:g}z",
    )
    inside = f"<title>{_text(title)}</title>" if title else ""
    return f'<path class="point{" of-few" if is_few else ""}" d="{shapes[at % len(shapes)]}">{inside}</path>'


def _key(curves: Curves, texts: CurveTexts) -> Iterator[str]:
    """Yield the lines of the key: the mark of each curve with its words, and what the ground means."""
    y = _HEIGHT + 14.0
    for at, words in enumerate(curves.words):
        short = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
        shape = _shape(at, _LEFT + 8, y - 4, 5)
        yield f'<g class="c{at}">{shape}<text class="word" x="{_LEFT + 24}" y="{y:g}">{_text(short)}</text></g>'
        y += _LINE
    if curves.has_few:
        rect = f'<rect class="few" x="{_LEFT}" y="{y - 12:g}" width="16" height="14"/>'
        yield f'<g>{rect}<text x="{_LEFT + 24}" y="{y:g}">{_text(texts.few)}</text></g>'


def _description(curves: Curves, texts: CurveTexts) -> str:
    """Return what the picture shows, in words: of each curve its first, highest and last share."""
    parts = []
    for at, words in enumerate(curves.words):
        shares = [(share, point.period) for point in curves.points if (share := point.share(at)) is not None]
        if shares:
            highest = max(shares, key=lambda pair: pair[0])
            told = dict.fromkeys((shares[0], highest, shares[-1]))
            values = ", ".join(f"{period}: {texts.per_cent(share, decimals(share))}" for share, period in told)
            parts.append(f"{_ISOLATED}{words}{_ISOLATED_END} – {values}")
    return "; ".join(parts) or texts.nothing


def _svg(title: str, inside: str, description: str, height: float, *, is_file: bool) -> str:
    names = 'aria-labelledby="curve-title" aria-describedby="curve-desc"'
    texts = f'<title id="curve-title">{_text(title)}</title><desc id="curve-desc">{_text(description)}</desc>'
    size = f'viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" height="{height:g}" role="img" {names}'
    if not is_file:
        return f'<svg class="picture curves" {size}>{texts}{inside}</svg>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{texts}'
        f"<style>{_FILE_STYLE}{CURVE_STYLE}</style>{inside}</svg>\n"
    )


def _text(text: str) -> str:
    return escape(_UNSHOWN.sub("\ufffd", text))
