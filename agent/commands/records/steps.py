"""`webarc-agent record new|cancel|step|look|measure`: the way of a snapshot, step by step."""

from __future__ import annotations

import sys
import time

import click

from agent.acts import entering, stepping
from agent.acts.records import catalogue_of, one
from agent.acts.stepping import Measure
from agent.catalogue import stepfolders, ways
from agent.commands.common import archive_option, follow, opened, settings_of, stop_on_signals
from agent.commands.records.record import record
from agent.jobfolder.names import step_folder
from agent.service import agentlock
from agent.steps import checking, running
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Occasion, Record
from webarcfs.archive.catalogue.steps import (
    RUNS,
    TABLE,
    Step,
    next_by_itself,
    next_of_person,
    progress_of,
)
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit, UsageError

__all__ = ["record"]
_STEP_WORDS = [str(each) for each in RUNS]
_SECONDS_BETWEEN_LOOKS = 0.2


@record.command()
@click.argument("fields", nargs=-1, metavar="[FIELD=TEXT...]")
@archive_option
@click.option("--publication", required=True, metavar="NAME", help="The publication of webarc.toml.")
@click.option("--type", "occasion", type=click.Choice([*map(str, Occasion)]), default="regular", show_default=True)
@click.option("--reason", default="", metavar="TEXT", help="The occasion, for --type occasion.")
@click.option("--shift", is_flag=True, help="The schedule goes on from this capture; else it stays as it is.")
def new(  # noqa: PLR0917 # click passes them by name
    fields: tuple[str, ...], archive: str | None, publication: str, occasion: str, reason: str, shift: bool
) -> None:
    """Write the record of a capture that is to come; `record step RECORD capture` begins it.

    \b
    Example:
      webarc-agent record new --publication example --type occasion --reason 'election' remarks='before the relaunch'
    """
    place = opened(archive)
    acting = people.acting(place, TABLE[Step.NEW].right)
    catalogue_of(place)
    saved = entering.enter(
        place,
        settings_of(place),
        publication,
        acting,
        occasion=Occasion(occasion),
        reason=reason,
        shift=shift,
        changes=dict(pair(each) for each in fields),
    )
    click.echo(saved.id)
    _tell_next(place, saved)


def pair(text: str) -> tuple[str, str]:
    """Return name and text of a change, FIELD=TEXT. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is no change; write FIELD=TEXT")
    return name, value


@record.command()
@click.argument("record_id", metavar="RECORD")
@archive_option
@click.option("--reason", default="", metavar="TEXT", help="Kept in the record.")
def cancel(record_id: str, archive: str | None, reason: str) -> None:
    """Give a capture up that has not begun."""
    place = opened(archive)
    acting = people.acting(place, TABLE[Step.CANCEL].right)
    found, _ = one(place, catalogue_of(place), record_id)
    changed = entering.cancel(place, found.id, acting, reason)
    click.echo(f"{found.id}: {changed.state}")


@record.command()
@click.argument("record_id", metavar="RECORD")
@click.argument("name", type=click.Choice(_STEP_WORDS), metavar="STEP")
@archive_option
@click.option("--again", is_flag=True, help="Once more: what was done is done anew, and what follows is due again.")
@click.option("--wait/--no-wait", default=True, help="Wait for the end of a step that the agent runs.")
def step(record_id: str, name: str, archive: str | None, again: bool, wait: bool) -> None:
    """Take a snapshot one step further: capture, count, convert, index, check or backup.

    A step starts where the one before is done; then those that need no decision follow, unless the publication goes
    step by step. Where an agent runs, it runs the step.

    \b
    Examples:
      webarc-agent record step 20261121T030000-example convert
      webarc-agent record step 17 convert --again
    """
    place = opened(archive)
    wanted = Step(name)
    acting = people.acting(place, TABLE[wanted].right)
    found, _ = one(place, catalogue_of(place), record_id)
    folder = stepping.ask(place, found.id, wanted, acting, again=again)
    agent = agentlock.running(place)
    if agent is None:
        good = _run(place, found.id, wanted)
    else:
        click.echo(f"{found.id}: the agent (process {agent.pid}) runs {wanted}", err=True)
        good = not wait or _waited(place, folder)
    _tell(place, found.id)
    if not good:
        sys.exit(Exit.FAILED)


def _run(place: Archive, record_id: str, wanted: Step) -> bool:
    if wanted is not Step.CAPTURE:
        return follow(place, record_id)
    running.run_step(place, step_folder(record_id, wanted), stop=stop_on_signals())
    return follow(place, record_id)


def _waited(place: Archive, folder: str) -> bool:
    """Wait until the agent has run a step; return whether it went well."""
    while (place.jobs / folder).is_dir():
        failure = stepfolders.failure(place, folder)
        if failure is not None:
            click.echo(f"{folder}: {failure.reason}; next try {failure.again or 'when somebody asks for it'}", err=True)
            return False
        if agentlock.running(place) is None:
            click.echo(f"{folder}: the agent has ended; the next one goes on with it", err=True)
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


@record.command()
@click.argument("record_id", metavar="RECORD")
@click.argument("page", metavar="[PAGE]", default="")
@archive_option
@click.option("--good/--bad", "is_good", default=True, help="What a look at the page showed.")
@click.option("--remark", default="", metavar="TEXT", help="Kept in the record.")
def look(record_id: str, page: str, archive: str | None, is_good: bool, remark: str) -> None:
    """Say what a look at a reference page showed, one with `by = "person"`; without PAGE, list those that wait.

    When all were looked at, the snapshot is checked.

    \b
    Example:
      webarc-agent record look 20261121T030000-example Contact --bad --remark 'the menu is missing'
    """
    place = opened(archive)
    acting = people.acting(place, TABLE[Step.CHECK].right)
    catalogue = catalogue_of(place)
    name = one(place, catalogue, record_id)[0].id
    if not page:
        _list_looks(place, catalogue.read(name)[0])
        return
    stepping.look(place, name, page, acting, is_good=is_good, remark=remark)
    follow(place, name)
    _tell(place, name)


def _list_looks(place: Archive, found: Record) -> None:
    for each in stepping.looks(place, found):
        click.echo(f"{checking.name_of(each)}\t{each.url}")


@record.command()
@click.argument("record_id", metavar="RECORD")
@archive_option
@click.option("--kind", required=True, metavar="TEXT", help="The measure, in a word (field 76).")
@click.option("--description", default="", metavar="TEXT", help="What was done (field 77).")
@click.option("--software", default="", metavar="TEXT", help="Program and version (field 78).")
@click.option("--parameters", default="", metavar="TEXT", help="Its parameters (field 79).")
@click.option("--bytes", "size", type=click.IntRange(min=0), help="Bytes afterwards (field 80) [default: as counted].")
@click.option("--remarks", default="", metavar="TEXT", help="Remarks and errors (field 81).")
@click.option("--readers-see", is_flag=True, help="Readers see the difference: the snapshot waits for a new release.")
def measure(archive: str | None, record_id: str, *, size: int | None, readers_see: bool, **said: str) -> None:
    """Record a measure of preservation that was taken on a snapshot, such as a migration.

    \b
    Example:
      webarc-agent record measure 17 --kind migration --description 'PDF to PDF/A' --software 'x 1.2' --readers-see
    """
    place = opened(archive)
    acting = people.acting(place, TABLE[Step.MEASURE].right)
    name = one(place, catalogue_of(place), record_id)[0].id
    stepping.measure(place, name, Measure(size=size, readers_see=readers_see, **said), acting)
    _tell(place, name)


def _tell(place: Archive, record_id: str) -> None:
    """Print where a snapshot is, and the one command that leads on."""
    found, _ = Catalogue(place).read(record_id)
    last = found.events[-1]
    click.echo(f"{found.id}: {found.state}" + (f" ({last.what}: {last.text})" if last.text else ""))
    _tell_next(place, found)


def _tell_next(place: Archive, found: Record) -> None:
    way, at = ways.of_record(place, found), progress_of(found)
    if next_by_itself(at, way) is not None:
        return
    waiting = stepping.looks(place, found)
    following = next_of_person(at, way)
    if waiting:
        names = ", ".join(repr(checking.name_of(each)) for each in waiting)
        click.echo(f"next: webarc-agent record look {found.id} PAGE, for {names}", err=True)
    elif following is Step.RELEASE:
        reason = "" if at.passed else " --reason TEXT"
        click.echo(f"next: webarc-agent record release {found.id}{reason}", err=True)
    elif following is not None:
        click.echo(f"next: webarc-agent record step {found.id} {following}", err=True)
