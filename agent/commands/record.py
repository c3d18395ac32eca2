"""`webarc-agent record`: the records that describe captures: `list`, `show`, `export`; their `fields`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from agent.catalogue.describing import described, records
from agent.commands.common import archive_option, opened
from webarcfs.archive.catalogue import record_xml
from webarcfs.archive.catalogue.captures import Capture, captures
from webarcfs.archive.catalogue.fields import FIELDS, Edit, Field, step_of
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import format_time

_publication = click.option("--publication", metavar="NAME", help="Only the captures of this publication.")


@click.group()
def record() -> None:
    """Look at the records of captures: what was captured, when, from where, how much.

    A record describes one capture of a publication, a crawl or an import, on all its domains. It is named as the job
    that made it. What it says is taken from git, and from the job's report if that is still there.
    """


@record.command(name="list")
@archive_option
@_publication
@click.option("--limit", default=50, show_default=True, help="So many of the newest; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def list_(archive: str | None, publication: str | None, limit: int, as_json: bool) -> None:
    """List captures, the newest first.

    \b
    Examples:
      webarc-agent record list
      webarc-agent record list --publication example --limit 0 --json
    """
    found = _numbered(opened(archive), publication)
    shown = list(islice(reversed(found), limit or None))
    if as_json:
        for number, capture in shown:
            click.echo(json.dumps({"number": number, **_head(capture)}, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("", "record", "date", "domains", ""):
        table.add_column(column, no_wrap=column != "domains")
    for number, capture in shown:
        head = _head(capture)
        table.add_row(
            str(number),
            capture.job,
            head["date"],
            ", ".join(head["domains"]),
            "" if capture.is_complete else "incomplete",
        )
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    if len(shown) < len(found):
        console.print(f"and {len(found) - len(shown)} older ones", markup=False)


@record.command()
@click.argument("record_id", metavar="RECORD")
@archive_option
@click.option("--json", "as_json", is_flag=True, help="As an object, with the texts of the fields by name.")
@click.option(
    "--all", "with_empty", is_flag=True, help="Also the fields without a value, and the step that fills each."
)
def show(record_id: str, archive: str | None, as_json: bool, with_empty: bool) -> None:
    """Show a record, by its name or its number in the list.

    \b
    Example:
      webarc-agent record show 20261121T030000-example
    """
    found = _one(opened(archive), record_id)
    if as_json:
        click.echo(json.dumps(found.as_fields(), indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{found.title.text} ({found.state})", markup=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column()
    for field in FIELDS:
        text = found.text(field.number)
        if text:
            table.add_row(str(field.number), field.en, text)
        elif with_empty:
            table.add_row(str(field.number), field.en, f"- ({step_of(field)})", style="dim")
    console.print(table)


@record.command()
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def fields(as_json: bool) -> None:
    """List the fields of a record: who sets each, who may edit it, and whether readers see it."""
    for field in FIELDS:
        told = _described(field)
        if as_json:
            click.echo(json.dumps(told, ensure_ascii=False))
            continue
        may = [f"archivist ({told['archivist']})"] * (field.archivist is not Edit.NEVER)
        may += ["administrator"] * field.administrator
        who = f"set by {told['set_by']}, edited by {', '.join(may) or 'nobody'}"
        seen = "" if field.is_public else "; not for readers"
        click.echo(f"{field.number:2} {field.kind} {told['step']:8} {field.en} ({field.de}); {who}{seen}")


def _described(field: Field) -> dict[str, Any]:
    return {
        "number": field.number,
        "group": field.group,
        "kind": field.kind,
        "name": field.name,
        "en": field.en,
        "de": field.de,
        "step": step_of(field),
        "set_by": field.set_by.value,
        "archivist": field.archivist.value,
        "administrator": field.administrator,
        "readers": field.is_public,
    }


@record.command()
@click.argument("record_ids", nargs=-1, metavar="[RECORD...]")
@archive_option
@_publication
@click.option("--format", "form", type=click.Choice(["xml", "json", "csv"]), default="xml", show_default=True)
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="A folder for several records as XML.")
def export(
    record_ids: tuple[str, ...], archive: str | None, publication: str | None, form: str, to: Path | None
) -> None:
    """Write records to stdout, or as files: all of them, or those that are named.

    As XML (xsd/record.xsd) with all that is known; as JSON, an object a line; as CSV, a line a record.

    \b
    Examples:
      webarc-agent record export 20261121T030000-example > record.xml
      webarc-agent record export --publication example --to records/
      webarc-agent record export --format csv > records.csv
    """
    place = opened(archive)
    if form == "xml" and to is None and len(record_ids) != 1:
        raise UsageError("several records as XML need a folder; give --to FOLDER, or name one record")
    found = [_one(place, each) for each in record_ids] if record_ids else _all(place, publication)
    if form == "xml":
        _write_xml(found, to)
    elif form == "json":
        for each in found:
            click.echo(json.dumps(each.as_fields(), ensure_ascii=False))
    else:
        writer: csv.DictWriter[str] | None = None
        for each in found:
            fields = each.as_fields()
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(fields), lineterminator="\n")
                writer.writeheader()
            writer.writerow(fields)


def _write_xml(found: list[Record] | Iterator[Record], to: Path | None) -> None:
    for each in found:
        if to is None:
            click.echo(record_xml.write(each), nl=False)
        else:
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{each.id}.xml").write_bytes(record_xml.write(each))


def _all(archive: Archive, publication: str | None) -> Iterator[Record]:
    made = records(archive, captures(archive))
    return (each for each in made if publication in (None, each.publication))


def _numbered(archive: Archive, publication: str | None) -> list[tuple[int, Capture]]:
    """Return the captures with their numbers in the order of the feed."""
    found = enumerate(captures(archive), 1)
    return [(number, each) for number, each in found if publication in (None, each.publication)]


def _one(archive: Archive, name: str) -> Record:
    for number, capture in enumerate(captures(archive), 1):
        if name in (capture.job, str(number)):
            return described(archive, capture, number)
    raise NotFound(f"there is no record {name}; `webarc-agent record list` lists them")


def _head(capture: Capture) -> dict[str, Any]:
    return {
        "record": capture.job,
        "publication": capture.publication,
        "date": format_time(min(part.tag.crawl_time for part in capture.parts)),
        "domains": [part.tag.domain for part in capture.parts],
        "commit_tags": [str(part.tag) for part in capture.parts],
        "complete": capture.is_complete,
        "import": capture.is_import,
    }
