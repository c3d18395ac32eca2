"""`webarc dataset`: pages, texts, links and counts as tables for research, and the graph of hosts."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from webarcfs.archive.model.errors import Interrupted, WebarcError
from webarcfs.archive.model.metadata import PAGE_ROLE, ROLES, now
from webarcfs.archive.system.standard_streams import is_output_closed
from webarcfs.commands.arguments import ArchiveArgument, moment, place_options
from webarcfs.commands.export import stopping
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import error_console, to_json
from webarcfs.commands.output import Display, log_progress

if TYPE_CHECKING:
    from webarcfs.dataset.dataset_folder import Description

_F = TypeVar("_F", bound=Callable[..., Any])
_STREAM = "-"
_TABLES = ("csv", "jsonl", "parquet")


def _dataset_options(*forms: str, unit: str = "version") -> Callable[[_F], _F]:
    """Add what each dataset has: OUT, the form, the unit (its default), what narrows it, whose view it is."""
    options = (
        click.argument("out", metavar="OUT", type=AbsolutePath(allow_dash=True)),
        click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True),
        click.option(
            "--unit", type=click.Choice(["version", "year", "capture", "snapshot"]), default=unit, show_default=True,
            help="Each content of a URL once, with its first capture; once in each year in which it was captured; each "
            "capture; or each snapshot that has it.",
        ),
        click.option("--domain", "domains", metavar="HOST", multiple=True, help="Only of this host, or of several."),
        click.option("--publication", default="", metavar="NAME", help="Only what its crawls captured."),
        click.option("--during", metavar="SPAN", help="Only of 2024, 2024-03, 2024-03-05 or 2019..2021 (CET)."),
        click.option("--at", metavar="TAG|TIME", help="Of --unit snapshot: this one, or the state at this time."),
        click.option(
            "--type", "types", metavar="KIND|MIME", multiple=True, help="Only of this kind or MIME type: pdf, image/*."
        ),
        click.option(
            "--role", type=click.Choice(ROLES), default=PAGE_ROLE, show_default=True,
            help="Pages, what only pages of other hosts needed, or both.",
        ),
        click.option("--errors", is_flag=True, help="Also error pages."),
        place_options,
        click.option("--json", "as_json", is_flag=True, help="Tell what was written as JSON."),
    )  # fmt: skip

    def add(command: _F) -> _F:
        for option in reversed(options):
            command = cast(_F, option(command))
        return command

    return add


@click.group()
def dataset() -> None:
    """Write tables for research to the folder OUT.

    OUT gets the table, README.md, which says what the columns mean and what is missing, datapackage.json, which says it
    to programs, and hosts.csv, with the complete and the incomplete crawls of each host. It must not exist. While it is
    made it is OUT.part; after an interruption the same command begins again. - is standard output, for the table alone.

    With --as-reader it is what readers may see, in every number.

    To compare years, give --unit year: a version is a row in each year in which it was captured, as in webarc curve.
    With --unit version it is one row, of the year of its first capture. words and types have --unit year by default.

    \b
    Examples:
      webarc dataset pages pages/
      webarc dataset pages captures/ --unit capture --during 2019..2021 --format parquet
      webarc dataset text texts/ --unit year --domain www.example.org --as-reader
      webarc dataset words - --type html | head
      webarc dataset hosts graph/
    """


@dataset.command()
@_dataset_options(*_TABLES)
@click.option("--redirects", is_flag=True, help="Also redirects.")
def pages(**options: Any) -> None:
    """Documents: URL, title, type, size, digest, and when they were captured."""
    _write("pages", **options)


@dataset.command()
@_dataset_options(*_TABLES)
def text(**options: Any) -> None:
    """The visible text of documents, and its language.

    It comes from the full-text index, or is read from the documents where the index has none.

    To count words year by year, give --unit year: each version is a row in each year in which it was captured.
    """
    _write("text", **options)


@dataset.command()
@_dataset_options(*_TABLES)
def links(**options: Any) -> None:
    """The links of pages: from where, to where, and by which text."""
    _write("links", **options)


@dataset.command()
@_dataset_options(*_TABLES, unit="year")
def types(**options: Any) -> None:
    """Counts by year, host, MIME type and extension.

    A version counts once in each year in which it was captured, as in webarc curve. With --unit version it counts in
    the year of its first capture alone: that counts what was new.
    """
    _write("types", **options)


@dataset.command()
@_dataset_options(*_TABLES, unit="year")
@click.option("--by-host", is_flag=True, help="Count each host by itself.")
def words(**options: Any) -> None:
    """Counts of words by year, as the full-text index has words.

    A version counts once in each year in which it was captured, as in webarc curve. With --unit version it counts in
    the year of its first capture alone: that counts what was new.
    """
    _write("words", **options)


@dataset.command()
@_dataset_options("gexf", *_TABLES)
def hosts(**options: Any) -> None:
    """The graph of hosts: the links between them, by year.

    GEXF is for Gephi; the other forms are a table with a row for two hosts and a year. With --unit version the version
    of a page counts in the year of its first capture alone, with --unit year in each year in which it was captured.
    """
    _write("hosts", **options)


def _write(
    name: str,
    *,
    out: Path,
    form: str,
    unit: str,
    place: ArchiveArgument,
    as_json: bool,
    by_host: bool = False,
    during: str | None,
    at: str | None,
    domains: tuple[str, ...],
    **narrowing: Any,
) -> None:
    from webarcfs.dataset import making  # noqa: PLC0415 # `--help` does not wait for these
    from webarcfs.dataset.columns import Dataset  # noqa: PLC0415
    from webarcfs.dataset.narrowing import DatasetUnit, Narrowing, parse_time_span  # noqa: PLC0415
    from webarcfs.dataset.table_writers import TableFormat  # noqa: PLC0415

    order = making.DatasetOrder(
        gate=place.known_gate(),
        dataset=Dataset(name),
        narrowing=Narrowing(
            unit=DatasetUnit(unit),
            domains=frozenset(domains),
            during=None if during is None else parse_time_span(during),
            at=moment(place, at),
            **narrowing,
        ),
        form=None if form == "gexf" else TableFormat(form),
        made=now(),
        by_host=by_host,
    )
    log_progress()
    is_stream = str(out) == _STREAM
    with stopping() as stop, Display(error_console()) as progress:
        try:
            if is_stream:
                description = making.make_stream(
                    order, sys.stdout.buffer, progress, lambda: stop() or is_output_closed()
                )
            else:
                description = making.make_folder(order, out, progress, stop)
        except Interrupted:
            if is_stream and is_output_closed():
                return
            raise
        except OSError as error:
            if is_stream or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise WebarcError(f"{out} was not made: {error.strerror}; nothing is left of it") from None
    _tell(description, out, is_stream=is_stream, as_json=as_json)


def _tell(description: Description, out: Path, *, is_stream: bool, as_json: bool) -> None:
    """Say what was written, and what is not in it."""
    figures = description.as_fields()
    if as_json:
        click.echo(to_json({"out": str(out), **figures}), err=is_stream)
        return
    counted = "edges" if description.form is None else "rows"
    click.echo(f"{out}: {description.rows:,} {counted} of {figures['hosts']:,} hosts", err=is_stream)
    if description.incomplete:
        click.echo(
            f"webarc: {description.incomplete:,} crawls were not complete; hosts.csv says of which hosts", err=True
        )
    for reason, number in description.left_out.items():
        click.echo(f"webarc: left out: {number:,} {reason}", err=True)
    for note in description.notes:
        click.echo(f"webarc: {note}", err=True)
