"""`webarc-agent record attach|detach|attachments`: the files that document a snapshot."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent.acts import attaching
from agent.acts.records import catalogue_of, one
from agent.commands.common import archive_option, opened
from agent.commands.records.steps import record
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.archive.model.metadata import format_time
from webarcfs.lazy_commands import AbsolutePath

__all__ = ["record"]


@record.command()
@click.argument("record_id", metavar="RECORD")
@click.argument("path", metavar="FILE", type=AbsolutePath(exists=True, dir_okay=False))
@archive_option
@click.option("--name", metavar="NAME", help="What it is called there; without it, as the file is.")
@click.option("--note", default="", metavar="TEXT", help="What it is; kept in the record.")
@click.option("--replace", "is_replacing", is_flag=True, help="Take the place of another file of this name.")
def attach(  # noqa: PLR0917 # click passes them by name
    record_id: str, path: Path, archive: str | None, name: str | None, note: str, is_replacing: bool
) -> None:
    """Attach a file to a record: a contract, a letter, what documents the site.

    It is kept in the catalogue, beside the record, 20 MB at most, and goes into backups with it. Readers never see it.

    \b
    Example:
      webarc-agent record attach 20261121T030000-example agreement.pdf --note 'signed by the publisher'
    """
    place = opened(archive)
    acting = people.acting(place, Right.DESCRIBE)
    found, _ = one(place, catalogue_of(place), record_id)
    if not path.is_file():
        raise UsageError(f"{path} is no file")
    with path.open("rb") as file:
        name = name or os.fsencode(path.name).decode("utf-8", "replace")
        changed = attaching.attach(place, found.id, name, file, acting, note=note, is_replacing=is_replacing)
    click.echo(f"{found.id}: " + ("nothing is different" if changed == found else changed.events[-1].what))


@record.command()
@click.argument("record_id", metavar="RECORD")
@click.argument("name", metavar="NAME")
@archive_option
@click.option("--reason", required=True, metavar="TEXT", help="Kept in the record.")
def detach(record_id: str, name: str, archive: str | None, reason: str) -> None:
    """Take an attached file away from a record; needs a reason.

    The history of catalogue.git keeps its bytes, as it keeps each state of a record.
    """
    place = opened(archive)
    acting = people.acting(place, Right.DESCRIBE)
    found, _ = one(place, catalogue_of(place), record_id)
    attaching.detach(place, found.id, name, acting, reason)
    click.echo(f"{found.id}: detached {name}; the catalogue's history keeps it")


@record.command()
@click.argument("record_id", metavar="RECORD")
@archive_option
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
@click.option("--get", "name", metavar="NAME", help="Write this one out instead.")
@click.option("--to", type=AbsolutePath(), help="With --get: a new file, or a folder; without it, standard output.")
def attachments(record_id: str, archive: str | None, as_json: bool, name: str | None, to: Path | None) -> None:
    """List the files that are attached to a record, or write one out.

    \b
    Examples:
      webarc-agent record attachments 20261121T030000-example
      webarc-agent record attachments 20261121T030000-example --get agreement.pdf --to .
    """
    if to is not None and name is None:
        raise UsageError("--to needs --get NAME")
    place = opened(archive)
    catalogue = catalogue_of(place)
    found, _ = one(place, catalogue, record_id)
    if name is not None:
        _write_out(catalogue, *catalogue.attachment(found.id, unicodedata.normalize("NFC", name)), name, to)
    elif as_json:
        for each in found.attachments:
            told = asdict(each) | {"at": format_time(each.at)}
            click.echo(json.dumps(told, ensure_ascii=False))
    else:
        table = Table(box=None, pad_edge=False)
        for column in ("name", "bytes", "since", "by", "note"):
            table.add_column(column, no_wrap=True, justify="right" if column == "bytes" else "left")
        for each in found.attachments:
            cells = (each.name, f"{each.bytes:,}", format_time(each.at), each.by, each.note)
            table.add_row(*map(escape, cells))
        Console(highlight=False, soft_wrap=True).print(table)


def _write_out(catalogue: Catalogue, blob: str, size: int, name: str, to: Path | None) -> None:
    """Write an attachment to standard output, or to a file that is not there yet, whole or not at all."""
    if to is None:
        sys.stdout.flush()
        catalogue.copy(blob, sys.stdout.fileno())
        return
    path = to / name if to.is_dir() else to
    try:
        file = path.open("xb")
    except FileExistsError:
        raise UsageError(f"{path} is there already") from None
    try:
        with file:
            catalogue.copy(blob, file.fileno())
            if os.fstat(file.fileno()).st_size != size:
                raise Damaged(f"{name!r} came out with other than {size} bytes")
    except BaseException:
        path.unlink()
        raise
