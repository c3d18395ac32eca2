"""`webarc-agent record`: the records that describe captures: shown, exported, edited, and decided about."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent.acts import deciding
from agent.acts.records import catalogue_of, one
from agent.catalogue import stepfolders
from agent.commands.common import archive_option, follow, opened, settings_of
from agent.jobfolder import names
from agent.steps import running
from webarcfs.archive.catalogue import dublin_core, people, record_xml
from webarcfs.archive.catalogue.fields import BY_NUMBER, FIELDS, Edit, Field, step_of
from webarcfs.archive.catalogue.record import Record, State
from webarcfs.archive.catalogue.workflow import RULES, Decision, Right
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import format_time, parse_time
from webarcfs.lazy_commands import AbsolutePath

#: A number of more digits is none that SQLite could have.
_DIGITS = 15
_publication = click.option("--publication", metavar="NAME", help="Only the captures of this publication.")


@click.group()
def record() -> None:
    """Look at the records of captures, and decide about them.

    A record describes one capture of a publication, a crawl or an import, on all its domains. It is named as the job
    that made it, and has a number. It says what was captured, when, from where, how much; and whether readers may see
    it. Each change is kept, with its author.
    """


@record.command(name="list")
@archive_option
@_publication
@click.option("--state", type=click.Choice([*map(str, State)]), help="Only records in this state.")
@click.option("--limit", default=50, show_default=True, help="So many of the newest; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def list_(archive: str | None, publication: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List records, the newest capture first; discarded ones only with `--state discarded`.

    \b
    Examples:
      webarc-agent record list
      webarc-agent record list --publication example --limit 0 --json
      webarc-agent record list --state counted
    """
    place = opened(archive)
    catalogue = catalogue_of(place)
    discarded = catalogue.discarded()
    found = (
        each for each in catalogue.records(publication) if (each.state == state if state else each.id not in discarded)
    )
    shown = list(islice(found, limit or None))
    asked = _asked(place)
    if as_json:
        for each in shown:
            row = {"steps": asked.get(each.id, []), "locked": running.is_locked(place, each.id)}
            click.echo(json.dumps(_head(each) | row, ensure_ascii=False))
        return
    decides = any(each.release != "automatic" or each.state != State.RELEASED or each.id in asked for each in shown)
    table = Table(box=None, pad_edge=False)
    for column in ("", "record", "date", "domains", "", *(["state"] if decides else [])):
        table.add_column(column, no_wrap=column != "domains")
    for each in shown:
        whole = "" if each.complete else "incomplete"
        told = (str(each.number), each.id, each.text(7), ", ".join(each.domains), whole)
        table.add_row(*told, *([_state(place, each, asked)] if decides else []))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    older = sum(each not in discarded for each in catalogue.ids(publication)) - len(shown) if state is None else 0
    if older:
        console.print(f"and {older} older ones", markup=False)


def _asked(place: Archive) -> dict[str, list[str]]:
    """Return the steps that wait or run, by record."""
    found: dict[str, list[str]] = {}
    for name in stepfolders.waiting(place):
        record_id, step = names.step_of(name) or ("", "")
        found.setdefault(record_id, []).append(step)
    return found


def _state(place: Archive, found: Record, asked: dict[str, list[str]]) -> str:
    """Return the state of a record, with the step that waits, or runs and locks it."""
    if running.is_locked(place, found.id):
        return f"{found.state}, locked: {', '.join(asked.get(found.id, ['a person']))}"
    return str(found.state) + (f", {', '.join(asked[found.id])} asked for" if found.id in asked else "")


@record.command()
@click.argument("record_id", metavar="RECORD")
@archive_option
@click.option("--json", "as_json", is_flag=True, help="As an object, with the texts of the fields by name.")
@click.option(
    "--all", "with_empty", is_flag=True, help="Also the fields without a value, and the step that fills each."
)
def show(record_id: str, archive: str | None, as_json: bool, with_empty: bool) -> None:
    """Show a record, by its name or its number.

    \b
    Example:
      webarc-agent record show 20261121T030000-example
    """
    found, _ = _found(archive, record_id)
    if as_json:
        told = found.as_fields() | {"attachments": [each.name for each in found.attachments]}
        click.echo(json.dumps(told, indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    state = "" if found.release == "automatic" and found.state is State.RELEASED else f" ({found.state})"
    console.print(f"{found.title.text}{state}", markup=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column()
    for field in FIELDS:
        text = found.text(field.number)
        if text:
            table.add_row(str(field.number), field.en, text)
        elif with_empty:
            table.add_row(str(field.number), field.en, f"- ({step_of(field)})", style="dim")
    for measure in found.measures:
        for number, value in measure.items():
            table.add_row(str(number), BY_NUMBER[number].en, value.text)
    for each in found.attachments:
        table.add_row("", "attached", escape(f"{each.name}, {each.bytes:,} bytes" + f": {each.note}" * bool(each.note)))
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
@click.option("--format", "form", type=click.Choice(["xml", "json", "csv", "dc"]), default="xml", show_default=True)
@click.option("--to", type=AbsolutePath(file_okay=False), help="A folder for several records as XML.")
def export(
    record_ids: tuple[str, ...], archive: str | None, publication: str | None, form: str, to: Path | None
) -> None:
    """Write records to stdout, or as files: all that are not discarded, or those that are named.

    As XML (xsd/record.xsd) with all that is known; as JSON, an object a line; as CSV, a line a record; as Dublin Core
    (oai_dc), what other catalogues take.

    \b
    Examples:
      webarc-agent record export 20261121T030000-example > record.xml
      webarc-agent record export --publication example --to records/
      webarc-agent record export --format csv > records.csv
    """
    place = opened(archive)
    if form in ("xml", "dc") and to is None and len(record_ids) != 1:
        raise UsageError("several records as XML need a folder; give --to FOLDER, or name one record")
    catalogue = catalogue_of(place)
    found: Iterable[Record] = (each for each in catalogue.records(publication) if each.state is not State.DISCARDED)
    if record_ids:
        found = [one(place, catalogue, each)[0] for each in record_ids]
    if form in ("xml", "dc"):
        institution = settings_of(place).describe.institution
        _write_xml(found, to, record_xml.write if form == "xml" else lambda each: dublin_core.write(each, institution))
    elif form == "json":
        for each in found:
            click.echo(json.dumps(each.as_fields(), ensure_ascii=False))
    else:
        writer: csv.DictWriter[str] | None = None
        for each in found:
            values = each.as_fields()
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(values), lineterminator="\n")
                writer.writeheader()
            writer.writerow(values)


def _write_xml(found: Iterable[Record], to: Path | None, write: Callable[[Record], bytes]) -> None:
    for each in found:
        if to is None:
            click.echo(write(each), nl=False)
        else:
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{each.id}.xml").write_bytes(write(each))


@record.command()
@click.argument("record_id", metavar="RECORD")
@archive_option
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def log(record_id: str, archive: str | None, as_json: bool) -> None:
    """Show what happened to a record, newest first: when, by whom, and why."""
    found, _ = _found(archive, record_id)
    for event in reversed(found.events):
        if as_json:
            told = {"what": event.what, "at": format_time(event.at), "by": event.by, "text": event.text}
            click.echo(json.dumps(told, ensure_ascii=False))
        else:
            click.echo(f"{format_time(event.at)}  {event.what:10} {event.by}" + (f": {event.text}" * bool(event.text)))


@record.command()
@click.argument("record_id", metavar="RECORD")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=TEXT...")
@archive_option
def edit(record_id: str, changes: tuple[str, ...], archive: str | None) -> None:
    """Change fields of a record, by their names in `record fields`, or title, language, access.

    An empty text takes the value away. If the record was changed meanwhile, nothing is written.

    \b
    Example:
      webarc-agent record edit 20261121T030000-example remarks='the search of the site does not work' signature=5100
    """
    pairs = dict(_pair(each) for each in changes)
    place = opened(archive)
    acting = people.acting(place, Right.DESCRIBE)
    found, blob = one(place, catalogue_of(place), record_id)
    deciding.edit(place, found.id, pairs, acting, blob)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is no change; write FIELD=TEXT")
    return name, value


_reason = click.option("--reason", default="", metavar="TEXT", help="Kept in the record.")


@record.command()
@click.argument("record_ids", nargs=-1, metavar="[RECORD...]")
@archive_option
@click.option("--publication", metavar="NAME", help="All captures of this publication that wait for a release.")
@click.option("--before", metavar="TIME", help="With --publication: only those before this time (CET).")
@_reason
def release(
    record_ids: tuple[str, ...], archive: str | None, publication: str | None, before: str | None, reason: str
) -> None:
    """Let readers see captures, each judged by itself.

    \b
    Examples:
      webarc-agent record release 20261121T030000-example
      webarc-agent record release --publication example --before 2026-11-01
    """
    if bool(record_ids) == (publication is not None) or (before is not None and publication is None):
        raise UsageError("name records, or give --publication (and --before)")
    place = opened(archive)
    ids: Iterable[str] = record_ids
    if publication is not None:
        until = None if before is None else _time(before)
        waiting = (
            each for each in catalogue_of(place).records(publication) if each.state in RULES[Decision.RELEASE].starts
        )
        ids = [each.id for each in waiting if until is None or (each.date is not None and each.date < until)]
    for each in ids:
        _decide(place, each, Decision.RELEASE, reason)


def _time(text: str) -> Any:
    try:
        return parse_time(text if "T" in text else f"{text}T00:00:00")
    except ValueError as error:
        raise UsageError(str(error)) from None


def _decision(decision: Decision, explain: str) -> None:
    """Add the command of a decision about one record."""

    @archive_option
    @_reason
    def command(record_ids: tuple[str, ...], archive: str | None, reason: str) -> None:
        for each in record_ids:
            _decide(opened(archive), each, decision, reason)

    command.__doc__ = explain
    record.command(name=str(decision))(
        click.argument("record_ids", nargs=-1, required=True, metavar="RECORD...")(command)
    )


_decision(Decision.REJECT, "Refuse to release captures; needs a reason. `reopen` takes it back.")
_decision(
    Decision.DISCARD,
    """Take captures away from everybody, staff as well; needs a reason. `restore` takes it back.

    They are in no list, present state, search or export; git keeps them. What other captures contain stays: each time
    shows what these give.
    """,
)
_decision(Decision.RESTORE, "Take `discard` back: the record is in the state before it.")
_decision(Decision.REOPEN, "Take a rejection back: the record is in the state before it.")
_decision(
    Decision.WITHDRAW,
    """Take released captures back from readers; needs a reason. `release` takes it back.

    What other released captures contain stays visible; `webarc-agent withhold` takes away a page in all of them.
    """,
)


def _decide(place: Archive, record_id: str, decision: Decision, reason: str) -> None:
    acting = people.acting(place, RULES[decision].right)
    found, _ = one(place, catalogue_of(place), record_id)
    changed = deciding.decide(place, found.id, decision, acting, reason)
    click.echo(f"{found.id}: {changed.state}")
    follow(place, found.id)


def _found(archive: str | None, name: str) -> tuple[Record, str]:
    place = opened(archive)
    return one(place, catalogue_of(place), name)


def _head(record: Record) -> dict[str, Any]:
    return {
        "number": record.number,
        "record": record.id,
        "publication": record.publication,
        "state": record.state,
        "date": "" if record.date is None else format_time(record.date),
        "domains": list(record.domains),
        "commit_tags": [str(part.tag) for part in record.parts],
        "complete": record.complete,
        "import": names.is_import(record.id),
    }
