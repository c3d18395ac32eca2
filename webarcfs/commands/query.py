"""`webarc query`: documents by a condition in SQL (/Cl-6/)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import click

from webarcfs.archive.index.query import SECONDS, DocumentOrigin, ask
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, MetaData
from webarcfs.commands.arguments import ArchiveArgument, origin_options
from webarcfs.commands.listing import LIST, Form, format_option, print_array, print_rows, print_table, while_read
from webarcfs.commands.server_archive import ServerArgument, place_or_server_options

#: Columns of a table; the other formats have all.
_SHOWN = ("commitTag", "path", "mimeType", "createTime", "title")


_HELP = f"""Show the documents for which the condition WHERE holds.

Each stands there once for each snapshot that has it. WHERE is an SQL condition over the columns
{", ".join((*FIELDS, *CAPTURE_FIELDS))}. Times are texts: yyyy-mm-ddThh:mm:ss, CET. Error pages are shown where WHERE
names status. What only pages of other hosts needed is left out by role = 'page'. certificate says what was wrong with
the server's (expired, host, issuer, invalid), where the crawl took it all the same. Nothing can be changed by it.
--domain and --publication hold together with WHERE.

\b
Examples:
  webarc query "mimeType = 'application/pdf'" --order-by 'crawlTime DESC' --limit 20
  webarc query "title LIKE '%minutes%' AND crawlTime >= '2026-11-01'" --format csv
  webarc query "role = 'page' AND mimeType = 'text/html'"
  webarc query "certificate <> ''"
  webarc query --publication example --domain www.example.org "title = ''"
  webarc query "url = 'http://www.example.org/'" --format json
  webarc query --mount /mnt/archive "mimeType = 'text/html'" --format paths | xargs -d '\\n' ls -d
  webarc query --server https://archive.example.org/ "title LIKE '%minutes%'" --format jsonl
"""


@click.command(help=_HELP)
@click.argument("where", default="", metavar="[WHERE]")
@origin_options
@place_or_server_options
@click.option("--order-by", default="", metavar="COLUMNS", help="As in SQL: 'crawlTime DESC, path'.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many.")
@format_option(*LIST, Form.PATHS)
@click.option("--seconds", type=click.FloatRange(min=0.01), default=SECONDS, show_default=True, help="Give up after.")
def query(
    where: str,
    *,
    place: ArchiveArgument | ServerArgument,
    origin: DocumentOrigin,
    order_by: str,
    limit: int | None,
    form: Form,
    seconds: float,
) -> None:
    """See `_HELP`."""
    documents: Iterable[MetaData]
    if isinstance(place, ServerArgument):
        documents = place.client.select(where, order_by, limit, origin=origin)
    else:
        documents = ask(
            place.archive.database, where, order_by, limit, seconds, narrowed=place.narrowed(), origin=origin
        )
    if form is Form.PATHS:
        _print_paths(documents, place)
        return
    rows = (document.as_fields() for document in documents)
    print_rows(form, rows, partial(print_table, _SHOWN), as_json=print_array, columns=(*FIELDS, *CAPTURE_FIELDS))


def _print_paths(documents: Iterable[MetaData], place: ArchiveArgument | ServerArgument) -> None:
    """Write the path of each version in a mount: `/.snapshots/<commitTag>/…`, below the mount if that is known."""
    for meta in while_read(documents):
        inner = meta.path.removeprefix(f"/{meta.domain}/")
        click.echo(f"{place.mount or ''}/.snapshots/{meta.commit_tag}/{inner}")
