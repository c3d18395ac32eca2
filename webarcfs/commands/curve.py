"""`webarc curve`: in which share of what was captured words stand, over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

import click

from webarcfs.archive.index.query import SECONDS, DocumentOrigin
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import ROLES
from webarcfs.archive.system import clocks
from webarcfs.commands.arguments import ArchiveArgument, origin_options, place_options
from webarcfs.commands.lazy_commands import with_archive
from webarcfs.commands.listing import LIST, Form, format_option, print_array, print_rows, print_table
from webarcfs.search.curves import (
    COLUMNS,
    FEW,
    MOST_CURVES,
    MOST_PERIODS,
    CurvePoint,
    Curves,
    Period,
    PeriodLength,
    count_curves,
    decimals,
    in_per_cent,
)

_HELP = f"""Count in how much of what was captured WORDS stand, year by year.

Each argument is a search of its own, in the language of `webarc search`, and has a curve of its own; {MOST_CURVES} at
most. The share of a year is the number of distinct versions with the words that were captured in it, of all distinct
versions that were captured in it: stored, or met unchanged, by a crawl. So a year in which much was crawled is not
higher for that. Where fewer than {FEW} versions were captured, the year is marked. The options narrow both numbers.

The table has the share and the number of each. CSV and JSON have a row for each year and search, with the number of all
that was captured. At most {MOST_PERIODS} years or months are counted.

\b
Examples:
  webarc curve harbour port
  webarc curve '"climate change"' '"global warming"' --format csv
  webarc curve 'minister OR secretary' --domain www.example.org --from 2010 --to 2020
  webarc curve election --by month --from 2024 --format svg > election.svg
"""


@click.command(help=_HELP)
@click.argument("words", nargs=-1, required=True, metavar="WORDS…")
@click.option(
    "--by", type=click.Choice([*map(str, PeriodLength)]), default="year", show_default=True, help="A point for each."
)
@click.option("--from", "first", default="", metavar="YEAR|MONTH", help="From this on: 2010, 2010-03.")
@click.option("--to", "last", default="", metavar="YEAR|MONTH", help="Up to this, and including it.")
@origin_options
@click.option("--type", "type_", default="", metavar="KIND|MIME", help="Only of this kind or MIME type: pdf, image/*.")
@click.option("--lang", default="", metavar="CODE", help="Only in this language: de, en.")
@click.option("--errors", is_flag=True, help="Also error pages.")
@click.option(
    "--role", type=click.Choice(ROLES), help="Pages (default), what only pages of other hosts needed, or both."
)
@click.option("--exact", is_flag=True, help="Only the words as they are written, no other forms of them.")
@format_option(*LIST, Form.SVG)
@click.option("--seconds", type=click.FloatRange(min=0.01), default=SECONDS, show_default=True, help="Give up after.")
@place_options
def curve(
    *, words: tuple[str, ...], place: ArchiveArgument, origin: DocumentOrigin, by: str, first: str, last: str,
    type_: str, lang: str, errors: bool, role: str | None, exact: bool, form: Form, seconds: float,
) -> None:  # fmt: skip
    """See `_HELP`."""
    if find_spec("tantivy") is None:
        raise UsageError("search needs more libraries: pip install 'webarcfs[search]'")
    from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

    question = SearchQuestion(
        words="", domain=origin.domain, publication=origin.publication, type=type_, language=lang, role=role or "",
        error_pages=errors, exact=exact,
    )  # fmt: skip
    between = (Period.parse(first) if first else None, Period.parse(last) if last else None)
    with clocks.under(clocks.Deadline(seconds)):
        curves = count_curves(Searcher(place.archive, place.gate), words, question, PeriodLength(by), between)
    if curves.missing:
        click.echo(
            with_archive(
                f"webarc: {curves.missing} snapshots are not indexed yet; the agent does it, or `webarc-agent index`"
            ),
            err=True,
        )
    if form is Form.SVG:
        from webarcfs.search.curve_picture import CurveTexts, picture  # noqa: PLC0415 # for this form alone

        texts = CurveTexts("Share of the captured versions with these words")
        click.echo(picture(curves, texts, is_file=True), nl=False)
        return
    print_rows(form, curves.rows(), lambda _: _table(curves), as_json=print_array, columns=COLUMNS)


def _table(curves: Curves) -> Iterator[str]:
    """Print a line for each period, then yield what the mark of some means."""
    columns = _distinct([str(curves.by), "captured", *curves.words])
    print_table(columns, (dict(zip(columns, _cells(point), strict=True)) for point in curves.points))
    if curves.has_few:
        yield f"* fewer than {FEW} versions were captured: a share of so few says little"


def _distinct(headings: Sequence[str]) -> list[str]:
    """Return headings, no two of them the same: those that are repeated have blanks behind them."""
    taken: dict[str, None] = {}
    for heading in headings:
        name = heading
        while name in taken:
            name += " "
        taken[name] = None
    return list(taken)


def _cells(point: CurvePoint) -> Iterator[str]:
    yield f"{point.period}{' *' if point.is_few else ''}"
    yield f"{point.captured:,}"
    for at, count in enumerate(point.versions):
        share = point.share(at)
        yield "" if share is None else f"{in_per_cent(share, decimals(share))} ({count:,})"
