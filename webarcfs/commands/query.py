"""`webarc query`: documents by a condition in SQL (/Cl-6/)."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping

import click

from webarcfs.archive.index.query import SECONDS, ask
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, MetaData
from webarcfs.commands.arguments import ArchiveArgument, place_options

#: Columns of a table; the other formats have all.
_SHOWN = ("commitTag", "path", "mimeType", "createTime", "title")


_HELP = f"""Show the documents for which the condition WHERE holds.

Each stands there once for each snapshot that has it. WHERE is an SQL condition over the columns
{", ".join((*FIELDS, *CAPTURE_FIELDS))}. Times are texts: yyyy-mm-ddThh:mm:ss, CET. Error pages are shown where WHERE
names status. Nothing can be changed by it.

\b
Examples:
  webarc query "mimeType = 'application/pdf'" --order-by 'crawlTime DESC' --limit 20
  webarc query "title LIKE '%minutes%' AND crawlTime >= '2026-11-01'" --format csv
  webarc query "url = 'http://www.example.org/'" --format json
  webarc query --mount /mnt/archive "mimeType = 'text/html'" --format paths | xargs -d '\\n' ls -d
"""


@click.command(help=_HELP)
@click.argument("where", default="", metavar="[WHERE]")
@place_options
@click.option("--order-by", default="", metavar="COLUMNS", help="As in SQL: 'crawlTime DESC, path'.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many.")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv", "paths"]), default="table")
@click.option("--seconds", type=click.FloatRange(min=0.01), default=SECONDS, show_default=True, help="Give up after.")
def query(
    where: str,
    *,
    place: ArchiveArgument,
    order_by: str,
    limit: int | None,
    form: str,
    seconds: float,
) -> None:
    """See `_HELP`."""
    _FORMATS[form](ask(place.archive.database, where, order_by, limit, seconds, narrowed=place.narrowed()), place)


def _table(documents: Iterable[MetaData], _place: ArchiveArgument) -> None:
    # Slow to load, and other formats, which programs use, do not need them.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*_SHOWN, box=None, pad_edge=False, header_style="bold")
    for meta in documents:
        fields = meta.as_fields()
        table.add_row(*(Text(fields[name]) for name in _SHOWN))
    Console(width=None if sys.stdout.isatty() else 250).print(table)


def _json(documents: Iterable[MetaData], _place: ArchiveArgument) -> None:
    """Write an array with an object a line, for readers of JSON as a whole and of lines as they come."""
    click.echo("[", nl=False)
    for number, meta in enumerate(documents):
        click.echo((",\n" if number else "\n") + json.dumps(meta.as_fields(), ensure_ascii=False), nl=False)
    click.echo("\n]")


def _csv(documents: Iterable[MetaData], _place: ArchiveArgument) -> None:
    writer = csv.DictWriter(sys.stdout, (*FIELDS, *CAPTURE_FIELDS))
    writer.writeheader()
    writer.writerows(meta.as_fields() for meta in documents)


def _paths(documents: Iterable[MetaData], place: ArchiveArgument) -> None:
    """Write the path of each version in a mount: `/.snapshots/<commitTag>/…`, below the mount if that is known."""
    for meta in documents:
        inner = meta.path.removeprefix(f"/{meta.domain}/")
        click.echo(f"{place.mount or ''}/.snapshots/{meta.commit_tag}/{inner}")


_FORMATS: Mapping[str, Callable[[Iterable[MetaData], ArchiveArgument], None]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "paths": _paths,
}
