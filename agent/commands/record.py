"""`webarc-agent record`: the records of crawls.

They are shown, exported, edited and decided about; `new`, `cancel`, `step`, `look` and `measure` take a crawl along
its way, and `attach`, `detach` and `attachments` are about the files that document it.
"""

from __future__ import annotations

import math
import os
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.table import Table
from rich.text import Text

from agent.catalogue import stepfolders
from agent.commands.common import archive_option, console, follow, mood_of, opened, settings_of, stop_on_signals
from agent.crawl import job_folder
from agent.crawl.job_folder import step_folder
from agent.operations import records
from agent.operations.records import Measure, catalogue_of
from agent.reports.explanations import advice_on
from agent.service import agent_status
from agent.steps import checking, running
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_crawl, look_up_record
from webarcfs.archive.catalogue.record import (
    BY_NUMBER,
    FIELDS,
    Edit,
    Field,
    FieldNumber,
    Occasion,
    Record,
    RecordState,
    is_import,
    step_of,
    write_dublin_core,
    write_record,
)
from webarcfs.archive.catalogue.workflow import HELD, RUNS, TABLE, Decision, Right, WorkflowStep
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, Exit, UsageError
from webarcfs.archive.model.metadata import format_time, from_epoch
from webarcfs.commands.arguments import typed_span
from webarcfs.commands.completing import complete_configured, complete_records
from webarcfs.commands.lazy_commands import AbsolutePath, VerbGroup
from webarcfs.commands.listing import (
    LIST,
    OBJECT,
    Form,
    Mood,
    cell_of,
    format_option,
    print_csv,
    print_lines,
    print_object,
    print_rows,
    show_table,
    styled,
    table_console,
)

_F = TypeVar("_F", bound=Callable[..., Any])

# == record ===========================================================================================================


_publication = click.option(
    "--publication", metavar="NAME", shell_complete=complete_configured, help="Only the crawls of this publication."
)


@click.group(cls=VerbGroup)
def record() -> None:
    """Look at the records of crawls, and decide about them.

    A record describes one crawl of a publication or of URLs, or one import, on all its domains. It is named as the job
    that made it, and has a number. It says what was captured, when, from where, how much; and whether readers may see
    it. Each change is kept, with its author.
    """


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records a list has; empty fields narrow nothing. Times are in seconds since 1970."""

    publication: str | None = None
    states: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    is_incomplete: bool = False
    waits: bool = False

    @property
    def is_of_ids(self) -> bool:
        """Whether the names of records alone tell which are in the list."""
        return self == RecordFilter(publication=self.publication)

    def takes(self, stored_record: Record, discarded: Collection[str]) -> bool:
        """Return whether a record is in the list; discarded ones are where they are asked for alone."""
        if stored_record.state not in self.states if self.states else stored_record.id in discarded:
            return False
        if self.is_incomplete and not is_incomplete(stored_record):
            return False
        if self.waits and stored_record.state not in HELD:
            return False
        if self.since is None and self.until is None:
            return True
        at = None if stored_record.date is None else stored_record.date.timestamp()
        return at is not None and (self.since or 0) <= at < (math.inf if self.until is None else self.until)


def is_incomplete(stored_record: Record) -> bool:
    """Return whether a crawl that was made is known to lack something."""
    is_made = stored_record.state not in {RecordState.OPEN, RecordState.CANCELLED}
    return is_made and stored_record.completeness is False


_LIST_OPTIONS = (
    archive_option,
    _publication,
    click.option(
        "--state",
        "states",
        type=click.Choice([*map(str, RecordState)]),
        multiple=True,
        help="Only records in this state. May be given again.",
    ),
    click.option("--waits", is_flag=True, help="Only those that wait for a release."),
    click.option("--incomplete", is_flag=True, help="Only crawls that are known to lack something."),
    click.option("--during", metavar="SPAN", help="Only those of this span (CET): 2024, 2024-03, 2019..2021."),
    click.option("--since", metavar="TIME", help="Only those from this time on (CET): 2024, 2024-03, 2024-03-31."),
    click.option("--until", metavar="TIME", help="Only those up to the end of this time (CET): 2024, 2024-03."),
    click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=50,
        show_default=True,
        help="So many of the newest; 0 for all.",
    ),
    format_option(*LIST),
)


def _list_options(command: _F) -> _F:
    for option in reversed(_LIST_OPTIONS):
        command = option(command)
    return command


@record.command(name="list")
@_list_options
def list_(archive: str | None, **options: Any) -> None:
    """List records, the newest crawl first; discarded ones only with `--state discarded`.

    Below the table are the sums of what it shows.

    \b
    Examples:
      webarc-agent record list
      webarc-agent record list --waits --publication example
      webarc-agent record list --incomplete --during 2026-11
      webarc-agent record list --publication example --limit 0 --json
    """
    _list_records(archive, **options)


@click.command()
@_list_options
def crawls(archive: str | None, **options: Any) -> None:
    """List crawls, the newest first: by state, publication and time. It is `record list`.

    Discarded ones are listed only with `--state discarded`. Below the table are the sums of what it shows.

    \b
    Examples:
      webarc-agent crawls
      webarc-agent crawls --publication example --since 2026
      webarc-agent crawls --incomplete
      webarc-agent crawls --waits --format csv
    """
    _list_records(archive, **options)


def _filter_of(options: Mapping[str, Any]) -> RecordFilter:
    """Return what the options ask for. Raises UsageError."""
    spans = {name: typed_span(name, options[name]) for name in ("during", "since", "until") if options[name]}
    if "during" in spans and len(spans) > 1:
        raise UsageError("--during is both ends of a time; it does not go with --since and --until")
    begin, end = spans.get("during", (None, None))
    return RecordFilter(
        options["publication"],
        frozenset(options["states"]),
        spans["since"][0] if "since" in spans else begin,
        spans["until"][1] if "until" in spans else end,
        options["incomplete"],
        options["waits"],
    )


def _list_records(archive: str | None, *, limit: int, form: Form, **options: Any) -> None:
    chosen = _filter_of(options)
    place = opened(archive)
    catalogue = catalogue_of(place)
    discarded = catalogue.discarded()
    stored_records = catalogue.records(chosen.publication)
    matching = (stored_record for stored_record in stored_records if chosen.takes(stored_record, discarded))
    shown = list(islice(matching, limit or None))
    asked = _asked(place)
    if form is not Form.TABLE:
        rows = (
            _head(stored_record)
            | {"steps": asked.get(stored_record.id, []), "locked": stepfolders.is_locked(place, stored_record.id)}
            for stored_record in shown
        )
        print_rows(form, rows, iter)
        return
    if not shown:
        click.echo("none")
        return
    _show_records(place, shown, asked)
    if chosen.is_of_ids:
        older = sum(record_id not in discarded for record_id in catalogue.ids(chosen.publication)) - len(shown)
        more = f"and {older} older ones" if older else ""
    else:
        more = "and older ones" if next(matching, None) is not None else ""
    if more:
        click.echo(f"{more}; `--limit 0` lists all")


def _show_records(place: Archive, shown: Sequence[Record], asked: Mapping[str, list[str]]) -> None:
    """Print the table, and the sums of it."""
    decides = any(
        stored_record.release != "automatic" or stored_record.state != RecordState.RELEASED or stored_record.id in asked
        for stored_record in shown
    )
    table = Table(box=None, pad_edge=False)
    for column in ("", "record", "date", "domains", "", *(["state"] if decides else [])):
        # What the next command wants is whole on any terminal.
        least = max(len(stored_record.id) for stored_record in shown) if column == "record" else None
        table.add_column(column, no_wrap=column != "domains", min_width=least)
    for stored_record in shown:
        cells: list[str | Text] = [
            str(stored_record.number),
            stored_record.id,
            stored_record.text(FieldNumber.DATE),
            _sites(stored_record),
            cell_of("incomplete", Mood.BAD) if stored_record.completeness is False else "",
        ]
        if decides:
            cells.append(cell_of(_state(place, stored_record, asked), mood_of(stored_record.state)))
        table.add_row(*cells)
    show_table(table)
    for line in _lines_of_sums(shown, with_states=decides):
        click.echo(line)


def _lines_of_sums(shown: Sequence[Record], *, with_states: bool) -> Iterator[str]:
    """Yield how many crawls there are, and in which states."""
    states = Counter(stored_record.state for stored_record in shown)
    counted = ", ".join(styled(f"{count} {state}", mood_of(state)) for state, count in states.most_common())
    line = f"{len(shown)} crawl{'s' * (len(shown) != 1)}" + f": {counted}" * with_states
    if incomplete := sum(map(is_incomplete, shown)):
        line += f"; {styled(f'{incomplete} incomplete', Mood.BAD)}"
    counted_files = [files for files in (_number(stored_record, FieldNumber.FILES) for stored_record in shown) if files]
    size = sum(_number(stored_record, FieldNumber.BYTES) or 0 for stored_record in shown)
    of = f" in {len(counted_files)} of them" if len(counted_files) < len(shown) else ""
    yield f"{line}; {sum(counted_files):,} files{of}, {size:,} bytes"
    if any(stored_record.state in HELD for stored_record in shown):
        yield "not released: readers do not see it; `webarc-agent record release RECORD` releases it"


def _number(stored_record: Record, field: FieldNumber) -> int | None:
    """Return the number in a field of a record; None where nobody counted."""
    text = stored_record.text(field)
    return int(text) if text.isdecimal() else None


def _sites(stored_record: Record) -> str:
    """Return the domains of a record with pages, and the number of the others."""
    others = len(stored_record.domains) - len(stored_record.sites)
    more = f" and {others} host{'s' * (others > 1)} of their resources" if others else ""
    return ", ".join(stored_record.sites) + more


def _asked(place: Archive) -> dict[str, list[str]]:
    """Return the steps that wait or run, by record."""
    steps_by_record: dict[str, list[str]] = {}
    for name in stepfolders.waiting(place):
        record_id, step = job_folder.step_of(name) or ("", "")
        steps_by_record.setdefault(record_id, []).append(step)
    return steps_by_record


def _state(place: Archive, record: Record, asked: Mapping[str, list[str]]) -> str:
    """Return the state of a record, whether it waits for its release, and the step that waits, or runs and locks it."""
    state = f"{record.state}{', not released' * (record.state in HELD)}"
    if stepfolders.is_locked(place, record.id):
        return f"{state}, locked: {', '.join(asked.get(record.id, ['a person']))}"
    return state + (f", {', '.join(asked[record.id])} requested" if record.id in asked else "")


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@archive_option
@format_option(*OBJECT)
@click.option(
    "--all", "with_empty", is_flag=True, help="Also the fields without a value, and the step that fills each."
)
def show(record_id: str, archive: str | None, form: Form, with_empty: bool) -> None:
    """Show a record, by its number, its name or one of its snapshots; of a publication that of its newest crawl.

    \b
    Examples:
      webarc-agent record show 20261121T030000-example
      webarc-agent record show example
    """
    stored_record = _found(archive, record_id)
    if form is Form.JSON:
        record_fields = stored_record.as_fields() | {
            "attachments": [attachment.name for attachment in stored_record.attachments],
            "missing": [asdict(lack) | {"advice": advice_on(lack.word)} for lack in stored_record.missing],
        }
        print_object(record_fields, indent=1)
        return
    out = table_console()
    state = (
        ""
        if stored_record.release == "automatic" and stored_record.state is RecordState.RELEASED
        else f" ({stored_record.state})"
    )
    out.print(f"{stored_record.title.text}{state}")
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column()
    for field in FIELDS:
        text = stored_record.text(field.number)
        if text:
            table.add_row(str(field.number), field.en, text)
        elif with_empty:
            table.add_row(str(field.number), field.en, f"- ({step_of(field)})", style="dim")
    if stored_record.resources.hosts:
        count = stored_record.resources
        text = f"{count.files:,} files, {count.bytes:,} bytes, of {count.hosts:,} hosts without pages"
        table.add_row("", "resources", text)
    for measure in stored_record.measures:
        for number, value in measure.items():
            table.add_row(str(number), BY_NUMBER[number].en, value.text)
    for lack in stored_record.missing:
        text = f"{lack.urls:,} resources" + f": {lack.word}. {advice_on(lack.word)}" * bool(lack.word)
        table.add_row("", "missing from pages", f"{lack.host or 'further hosts'}, {text}")
    for attachment in stored_record.attachments:
        table.add_row(
            "",
            "attached",
            f"{attachment.name}, {attachment.bytes:,} bytes" + f": {attachment.note}" * bool(attachment.note),
        )
    out.print(table)


@record.command()
@format_option(*LIST)
def fields(form: Form) -> None:
    """List the fields of a record: who sets each, who may edit it, and whether readers see it."""
    print_rows(form, map(_described, FIELDS), lambda rows: map(_field_line, rows))


def _field_line(row: dict[str, Any]) -> str:
    may = [f"archivist ({row['archivist']})"] * (row["archivist"] != Edit.NEVER.value)
    may += ["administrator"] * row["administrator"]
    who = f"set by {row['set_by']}, edited by {', '.join(may) or 'nobody'}"
    seen = "" if row["readers"] else "; not for readers"
    return f"{row['number']:2} {row['kind']} {row['step']:8} {row['en']} ({row['de']}); {who}{seen}"


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
@click.argument("record_ids", nargs=-1, metavar="[RECORD...]", shell_complete=complete_records)
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
    chosen: Iterable[Record] = (
        stored_record
        for stored_record in catalogue.records(publication)
        if stored_record.state is not RecordState.DISCARDED
    )
    if record_ids:
        chosen = [look_up_crawl(place, catalogue, record_id) for record_id in record_ids]
    if form in ("xml", "dc"):
        institution = settings_of(place).describe.institution
        _write_xml(
            chosen,
            to,
            write_record if form == "xml" else lambda record: write_dublin_core(record, institution),
        )
    elif form == "json":
        print_lines(stored_record.as_fields() for stored_record in chosen)
    else:
        rows = (stored_record.as_fields() for stored_record in chosen)
        for first in islice(rows, 1):  # the columns of all
            print_csv(chain([first], rows), list(first))


def _write_xml(records: Iterable[Record], to: Path | None, write: Callable[[Record], bytes]) -> None:
    for record in records:
        if to is None:
            click.echo(write(record), nl=False)
        else:
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{record.id}.xml").write_bytes(write(record))


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@archive_option
@format_option(*LIST)
def log(record_id: str, archive: str | None, form: Form) -> None:
    """Show what happened to a record, newest first: when, by whom, in which role, and why."""
    stored_record = _found(archive, record_id)
    rows = (
        {
            "what": event.what,
            "at": format_time(event.at),
            "by": event.by,
            "role": event.warrant.role,
            "text": event.text,
        }
        for event in reversed(stored_record.events)
    )
    print_rows(form, rows, lambda rows: map(_event_line, rows))


def _event_line(row: dict[str, str]) -> str:
    role = f" ({row['role']})" * bool(row["role"])
    return f"{row['at']}  {row['what']:10} {row['by']}{role}" + (f": {row['text']}" * bool(row["text"]))


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=TEXT...")
@archive_option
def edit(record_id: str, changes: tuple[str, ...], archive: str | None) -> None:
    """Change fields of a record, by their names in `record fields`, or title, language, access.

    An empty text takes the value away. If the record was changed meanwhile, nothing is written.

    \b
    Example:
      webarc-agent record edit 20261121T030000-example remarks='the search of the site does not work' signature=5100
    """
    pairs = dict(_pair(change) for change in changes)
    place = opened(archive)
    acting = people.acting(place, Right.DESCRIBE)
    stored_record, blob = look_up_record(place, catalogue_of(place), record_id)
    records.edit(place, stored_record.id, pairs, acting, blob)


def _pair(text: str) -> tuple[str, str]:
    """Return name and text of a change, FIELD=TEXT. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is no change; write FIELD=TEXT")
    return name, value


_reason = click.option("--reason", default="", metavar="TEXT", help="Kept in the record.")


@record.command()
@click.argument("record_ids", nargs=-1, metavar="[RECORD...]", shell_complete=complete_records)
@archive_option
@click.option(
    "--publication",
    metavar="NAME",
    shell_complete=complete_configured,
    help="All crawls of this publication that wait for a release.",
)
@click.option(
    "--before", metavar="TIME", help="With --publication: only those before this time (CET): 2026, 2026-11, 2026-11-21."
)
@_reason
def release(
    record_ids: tuple[str, ...], archive: str | None, publication: str | None, before: str | None, reason: str
) -> None:
    """Let readers see crawls, each judged by itself.

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
        until = None if before is None else from_epoch(typed_span("before", before)[0])
        waiting = (
            record
            for record in catalogue_of(place).records(publication)
            if record.state in TABLE[WorkflowStep.RELEASE].starts
        )
        ids = [record.id for record in waiting if until is None or (record.date is not None and record.date < until)]
    for record_id in ids:
        _decide(place, record_id, Decision.RELEASE, reason)


def _decision(decision: Decision, explain: str) -> None:
    """Add the command of a decision about one record."""

    @archive_option
    @_reason
    def command(record_ids: tuple[str, ...], archive: str | None, reason: str) -> None:
        for record_id in record_ids:
            _decide(opened(archive), record_id, decision, reason)

    command.__doc__ = explain
    record.command(name=str(decision))(
        click.argument("record_ids", nargs=-1, required=True, metavar="RECORD...", shell_complete=complete_records)(
            command
        )
    )


_decision(Decision.REJECT, "Reject crawls; needs a reason. `reopen` takes it back.")
_decision(
    Decision.DISCARD,
    """Take crawls away from everybody, staff as well; needs a reason. `restore` takes it back.

    They are in no list, present state, search or export; git keeps them. Other crawls stay, and each time shows what
    these give.
    """,
)
_decision(Decision.RESTORE, "Take `discard` back: the record is in the state before it.")
_decision(Decision.REOPEN, "Take a rejection back: the record is in the state before it.")
_decision(
    Decision.WITHDRAW,
    """Take released crawls back from readers; needs a reason. `release` takes it back.

    Other released crawls stay visible; `webarc-agent withhold` takes away a page in all of them.
    """,
)


def _decide(place: Archive, record_id: str, decision: Decision, reason: str) -> None:
    acting = people.acting(place, TABLE[WorkflowStep(decision)].right)
    record, _ = look_up_record(place, catalogue_of(place), record_id)
    changed = records.decide(place, record.id, decision, acting, reason)
    click.echo(f"{record.id}: {changed.state}")
    follow(place, record.id)


def _found(archive: str | None, name: str) -> Record:
    place = opened(archive)
    return look_up_crawl(place, catalogue_of(place), name)


def _head(record: Record) -> dict[str, Any]:
    return {
        "number": record.number,
        "record": record.id,
        "publication": record.publication,
        "state": record.state,
        "date": "" if record.date is None else format_time(record.date),
        "domains": list(record.domains),
        "resource_domains": [domain for domain in record.domains if domain not in record.sites],
        "commit_tags": [str(part.tag) for part in record.sites_first],
        "complete": record.complete,
        "import": is_import(record.id),
        "files": _number(record, FieldNumber.FILES),
        "bytes": _number(record, FieldNumber.BYTES),
    }


# == steps ============================================================================================================


_STEP_WORDS = [str(step) for step in RUNS]
_SECONDS_BETWEEN_LOOKS = 0.2


@record.command()
@click.argument("fields", nargs=-1, metavar="[FIELD=TEXT...]")
@archive_option
@click.option(
    "--publication",
    required=True,
    metavar="NAME",
    shell_complete=complete_configured,
    help="The publication of webarc.toml.",
)
@click.option("--type", "occasion", type=click.Choice([*map(str, Occasion)]), default="regular", show_default=True)
@click.option("--reason", default="", metavar="TEXT", help="The occasion, for --type occasion.")
@click.option("--shift", is_flag=True, help="The schedule continues from this crawl; else it stays as it is.")
def new(  # noqa: PLR0917 # click passes them by name
    fields: tuple[str, ...], archive: str | None, publication: str, occasion: str, reason: str, shift: bool
) -> None:
    """Write the record of a crawl that is to come; `record step RECORD capture` begins it.

    \b
    Example:
      webarc-agent record new --publication example --type occasion --reason 'election' remarks='before the relaunch'
    """
    place = opened(archive)
    acting = people.acting(place, TABLE[WorkflowStep.NEW].right)
    catalogue_of(place)
    saved = records.enter(
        place,
        settings_of(place),
        publication,
        acting,
        occasion=Occasion(occasion),
        reason=reason,
        shift=shift,
        changes=dict(_pair(change) for change in fields),
    )
    click.echo(saved.id)
    _tell_next(place, saved)


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@archive_option
@click.option("--reason", default="", metavar="TEXT", help="Kept in the record.")
def cancel(record_id: str, archive: str | None, reason: str) -> None:
    """Cancel a crawl that has not started."""
    place = opened(archive)
    acting = people.acting(place, TABLE[WorkflowStep.CANCEL].right)
    stored_record, _ = look_up_record(place, catalogue_of(place), record_id)
    changed = records.cancel(place, stored_record.id, acting, reason)
    click.echo(f"{stored_record.id}: {changed.state}")


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@click.argument("name", type=click.Choice(_STEP_WORDS), metavar="STEP")
@archive_option
@click.option("--again", is_flag=True, help="Repeat the step; the steps that follow are due again.")
@click.option("--wait/--no-wait", default=True, help="Wait for the end of a step that the agent runs.")
def step(record_id: str, name: str, archive: str | None, again: bool, wait: bool) -> None:
    """Take a crawl one step further: capture, count, convert, index, check or backup.

    A step starts where the one before is done; then those that need no decision follow, unless the publication goes
    step by step. Where an agent runs, it runs the step.

    \b
    Examples:
      webarc-agent record step 20261121T030000-example convert
      webarc-agent record step 17 convert --again
    """
    place = opened(archive)
    wanted = WorkflowStep(name)
    acting = people.acting(place, TABLE[wanted].right)
    stored_record, _ = look_up_record(place, catalogue_of(place), record_id)
    folder = records.ask(place, stored_record.id, wanted, acting, again=again)
    agent = agent_status.running(place)
    if agent is None:
        good = _run(place, stored_record.id, wanted)
    else:
        click.echo(f"{stored_record.id}: the agent (process {agent.pid}) runs {wanted}", err=True)
        good = not wait or _waited(place, folder)
    _tell(place, stored_record.id)
    if not good:
        sys.exit(Exit.FAILED)


def _run(place: Archive, record_id: str, wanted: WorkflowStep) -> bool:
    if wanted is not WorkflowStep.CAPTURE:
        return follow(place, record_id)
    from webarcfs.commands.output import Display  # noqa: PLC0415 # slow to load, and lists need none of it

    with Display(console) as display:
        running.run_step(place, step_folder(record_id, wanted), stop=stop_on_signals(), progress=display)
    return follow(place, record_id)


def _waited(place: Archive, folder: str) -> bool:
    """Wait until the agent has run a step; return whether it went well."""
    while (place.jobs / folder).is_dir():
        failure = stepfolders.failure(place, folder)
        if failure is not None:
            click.echo(f"{folder}: {failure.reason}; next try {failure.again or 'when somebody asks for it'}", err=True)
            return False
        if agent_status.running(place) is None:
            click.echo(f"{folder}: the agent has ended; the next one resumes it", err=True)
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@click.argument("page", metavar="[PAGE]", default="")
@archive_option
@click.option("--good/--bad", "is_good", default=True, help="What a look at the page showed.")
@click.option("--remark", default="", metavar="TEXT", help="Kept in the record.")
def look(record_id: str, page: str, archive: str | None, is_good: bool, remark: str) -> None:
    """Say what a look at a reference page showed, one with `by = "person"`; without PAGE, list those that wait.

    When all were looked at, the crawl is checked.

    \b
    Example:
      webarc-agent record look 20261121T030000-example Contact --bad --remark 'the menu is missing'
    """
    place = opened(archive)
    acting = people.acting(place, TABLE[WorkflowStep.CHECK].right)
    catalogue = catalogue_of(place)
    name = look_up_record(place, catalogue, record_id)[0].id
    if not page:
        _list_looks(place, catalogue.read(name)[0])
        return
    records.look(place, name, page, acting, is_good=is_good, remark=remark)
    follow(place, name)
    _tell(place, name)


def _list_looks(place: Archive, record: Record) -> None:
    for page in records.looks(place, record):
        click.echo(f"{checking.name_of(page)}\t{page.url}")


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@archive_option
@click.option("--kind", required=True, metavar="TEXT", help="The measure, in a word (field 76).")
@click.option("--description", default="", metavar="TEXT", help="What was done (field 77).")
@click.option("--software", default="", metavar="TEXT", help="Program and version (field 78).")
@click.option("--parameters", default="", metavar="TEXT", help="Its parameters (field 79).")
@click.option("--bytes", "size", type=click.IntRange(min=0), help="Bytes afterwards (field 80) [default: as counted].")
@click.option("--remarks", default="", metavar="TEXT", help="Remarks and errors (field 81).")
@click.option("--readers-see", is_flag=True, help="Readers see the difference: the crawl waits for a new release.")
def measure(archive: str | None, record_id: str, *, size: int | None, readers_see: bool, **texts: str) -> None:
    """Record a measure of preservation that was taken on a crawl, such as a migration.

    \b
    Example:
      webarc-agent record measure 17 --kind migration --description 'PDF to PDF/A' --software 'x 1.2' --readers-see
    """
    place = opened(archive)
    acting = people.acting(place, TABLE[WorkflowStep.MEASURE].right)
    name = look_up_record(place, catalogue_of(place), record_id)[0].id
    records.measure(place, name, Measure(size=size, readers_see=readers_see, **texts), acting)
    _tell(place, name)


def _tell(place: Archive, record_id: str) -> None:
    """Print where a crawl is, and the one command that leads on."""
    record, _ = Catalogue(place).read(record_id)
    last = record.events[-1]
    click.echo(f"{record.id}: {record.state}" + (f" ({last.what}: {last.text})" if last.text else ""))
    _tell_next(place, record)


def _tell_next(place: Archive, record: Record) -> None:
    if command := records.next_command(place, record):
        click.echo(f"next: {command}", err=True)


# == attachments ======================================================================================================


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
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
    stored_record, _ = look_up_record(place, catalogue_of(place), record_id)
    if not path.is_file():
        raise UsageError(f"{path} is no file")
    with path.open("rb") as file:
        name = name or os.fsencode(path.name).decode("utf-8", "replace")
        changed = records.attach(place, stored_record.id, name, file, acting, note=note, is_replacing=is_replacing)
    click.echo(
        f"{stored_record.id}: " + ("nothing is different" if changed == stored_record else changed.events[-1].what)
    )


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@click.argument("name", metavar="NAME")
@archive_option
@click.option("--reason", required=True, metavar="TEXT", help="Kept in the record.")
def detach(record_id: str, name: str, archive: str | None, reason: str) -> None:
    """Take an attached file away from a record; needs a reason.

    The history of catalogue.git keeps its bytes, as it keeps each state of a record.
    """
    place = opened(archive)
    acting = people.acting(place, Right.DESCRIBE)
    stored_record, _ = look_up_record(place, catalogue_of(place), record_id)
    records.detach(place, stored_record.id, name, acting, reason)
    click.echo(f"{stored_record.id}: detached {name}; the catalogue's history keeps it")


@record.command()
@click.argument("record_id", metavar="RECORD", shell_complete=complete_records)
@archive_option
@format_option(*LIST)
@click.option("--get", "name", metavar="NAME", help="Write this one out instead.")
@click.option("--to", type=AbsolutePath(), help="With --get: a new file, or a folder; without it, standard output.")
def attachments(record_id: str, archive: str | None, form: Form, name: str | None, to: Path | None) -> None:
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
    stored_record, _ = look_up_record(place, catalogue, record_id)
    if name is not None:
        _write_out(catalogue, *catalogue.attachment(stored_record.id, unicodedata.normalize("NFC", name)), name, to)
        return
    rows = (asdict(attachment) | {"at": format_time(attachment.at)} for attachment in stored_record.attachments)
    print_rows(form, rows, _show_attachments)


def _show_attachments(rows: Iterable[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("name", "bytes", "since", "by", "note"):
        table.add_column(column, no_wrap=True, justify="right" if column == "bytes" else "left")
    for row in rows:
        table.add_row(row["name"], f"{row['bytes']:,}", row["at"], row["by"], row["note"])
    show_table(table)


def _write_out(catalogue: Catalogue, blob: str, size: int, name: str, to: Path | None) -> None:
    """Write an attachment to standard output, or to a file that is not there yet, whole or not at all."""
    if to is None:
        sys.stdout.flush()
        with suppress(BrokenPipeError):  # its reader has seen enough
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
