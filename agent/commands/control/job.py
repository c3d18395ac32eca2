"""`webarc-agent job`: the open jobs, and orders to them while they run."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import click

from agent.catalogue.circumstances import person_of_process
from agent.commands.common import archive_option, opened, tell
from agent.jobfolder import definition, jobstate, orders
from agent.jobfolder.jobstate import JobState
from agent.jobfolder.names import is_import, publication_of
from agent.jobfolder.orders import Order, Word
from agent.jobs import crawljob
from agent.service import agentlock
from agent.service.statusview import overview
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.interval import Interval
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import CET, format_time, now

#: Seconds that the command waits until the job has taken an order: one that runs, and one that has to begin first.
_SOON, _LATER = 3.0, 8.0


@click.command()
@click.argument("words", nargs=-1, metavar="[list | show JOB | JOB ORDER [VALUE]]")
@archive_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def job(words: tuple[str, ...], archive: str | None, as_json: bool) -> None:
    """List the open jobs, show one, or tell one what to do.

    \b
    webarc-agent job list
    webarc-agent job show example
    webarc-agent job example pause
    webarc-agent job example deadline '2 hours'
    webarc-agent job example exclude 'calendar.example.org'

    A job is named as its folder in jobs/, or by its publication. An order is on the disk before the command ends,
    and is taken within two seconds, whoever runs the job: the agent, or `crawl` in another terminal. A job that
    nobody runs takes it when it goes on.

    \b
    pause           fetch nothing, keep everything; other jobs get the places for wget
    resume          go on after a pause
    stop            fetch nothing more, and publish what there is, as incomplete
    discard         end without publishing anything more
    deadline TIME   until when it may fetch: 2026-12-01T22:00:00 (CET), or a span from now
    exclude HOST    leave out what waits of a host, or of hosts with *
    """
    place = opened(archive)
    if words in ((), ("list",)):
        _list(place, as_json=as_json)
    elif words[0] == "show" and len(words) == 2:
        _show(place, find(place, words[1]), as_json=as_json)
    elif len(words) >= 2:
        _order(place, find(place, words[0]), *words[1:])
    else:
        raise UsageError(f"say what to do with {words[0]}: {', '.join(Word)}; or `job show {words[0]}`")


def find(archive: Archive, name: str) -> Path:
    """Return the folder of an open job, by its name or its publication. Raises NotFound, which says what there is."""
    folders = sorted(path for path in archive.jobs.iterdir() if not path.name.startswith((".", "step-")))
    found = [path for path in folders if name in (path.name, publication_of(path.name))]
    if found:
        return found[-1]
    if "/" not in name and (archive.reports / name).is_dir():
        raise orders.ended(name)
    there = ", ".join(path.name for path in folders) or "none"
    raise NotFound(f"there is no open job {name}; there are: {there}")


def _list(archive: Archive, *, as_json: bool) -> None:
    told = overview(archive)["jobs"]
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for each in told:
        held = f", {each['held']}" if each["held"] else ""
        until = f", ends by {each['latest_end']}" if each["latest_end"] else ""
        click.echo(f"{each['job']}: {each['state']}{held}, {each['documents']} documents{until}")
    if not told:
        click.echo("no job is open")


def _show(archive: Archive, folder: Path, *, as_json: bool) -> None:
    told = next((each for each in overview(archive)["jobs"] if each["job"] == folder.name), None)
    if told is None:
        raise orders.ended(folder.name)
    given = [
        {
            "number": each.number,
            "order": str(each.word),
            "value": each.value,
            "by": each.by,
            "at": each.at,
            "taken": each.number <= told["orders"],
        }
        for each in orders.after(folder, 0)
    ]
    if as_json:
        click.echo(json.dumps({**told, "given": given}, indent=2, ensure_ascii=False))
        return
    for name in ("job", "publication", "state", "held", "reason", "begun", "latest_end", "documents", "bytes"):
        if told[name]:
            click.echo(f"{name.replace('_', ' '):12} {told[name]}")
    for state, count in told["urls"].items():
        click.echo(f"{f'URLs {state}':12} {count}")
    for order in given:
        taken = "" if order["taken"] else " (not taken yet)"
        words = f"{order['order']} {order['value']}".strip()
        click.echo(f"order {order['number']}: {words}, {order['at']} by {order['by']}{taken}")


# -- orders ------------------------------------------------------------------------------------------------------------


def _order(archive: Archive, folder: Path, word: str, *values: str) -> None:
    known = jobstate.load(folder) or JobState(job=folder.name, publication=publication_of(folder.name))
    wanted, value = _checked(known, word, values)
    order = orders.give(folder, wanted, value, by=person_of_process())
    if not known.runs and agentlock.running(archive) is None:
        _without_process(archive, folder, order)
    else:
        click.echo(f"{folder.name}: {order}, {_wait(folder, order, _SOON if known.runs else _LATER)}")


def _checked(known: JobState, word: str, values: tuple[str, ...]) -> tuple[Word, str]:
    """Return the order and its value. Raises UsageError for one that makes no sense."""
    if word not in set(Word):
        raise UsageError(f"{word} is no order; there are: {', '.join(Word)}")
    wanted = Word(word)
    most = 1 if wanted in (Word.DEADLINE, Word.EXCLUDE) else 0
    if len(values) != most:
        what = {Word.DEADLINE: "a time", Word.EXCLUDE: "a host"}.get(wanted, "nothing")
        raise UsageError(f"{word} wants {what} behind it")
    if is_import(known.job):
        raise UsageError(f"{known.job} is an import, which takes no orders; the same command goes on with it")
    if wanted is Word.DEADLINE:
        return wanted, format_time(_time(values[0]))
    if wanted is Word.EXCLUDE:
        return wanted, _host(values[0])
    if wanted is Word.RESUME and known.held == jobstate.Hold.DEADLINE:
        raise UsageError(f"its time is over: give it more by `deadline`, or `stop` or `discard` {known.job}")
    return wanted, ""


def _time(text: str) -> datetime:
    """Return the time that a person means. Raises UsageError for none, or one in the past."""
    try:
        at = now() + timedelta(seconds=Interval.parse(text).seconds)
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(f"{text!r} is neither a time, as 2026-12-01T22:00:00, nor a span, as '2 hours'") from None
    at = (at if at.tzinfo is not None else at.replace(tzinfo=CET)).astimezone(CET)
    if at <= now():
        raise UsageError(f"{format_time(at)} is over already; `stop` ends it now")
    return at


def _host(text: str) -> str:
    try:
        pattern = validators.url_pattern(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if "/" in pattern:
        raise UsageError(f"{text!r} has a path; an order leaves out whole hosts")
    return pattern.lower()


def _wait(folder: Path, order: Order, seconds: float) -> str:
    """Wait until the job has taken an order; return what to say of it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        known = jobstate.load(folder)
        if known is None and not folder.is_dir():
            return "and it has ended"
        if known is not None and known.orders >= order.number:
            return f"taken ({known.held})" if known.held else "taken"
        time.sleep(0.05)
    return "given; it is taken as soon as the job can"


def _without_process(archive: Archive, folder: Path, order: Order) -> None:
    """Discard a job that nobody runs, here and now; any other order waits."""
    asked = definition.load(folder) if order.word is Word.DISCARD else None
    if asked is None:
        click.echo(f"{folder.name}: {order}, given; nobody runs the job, and it takes it when it goes on")
        return
    outcome = crawljob.run(
        archive, asked.publication, asked.profile, instances=asked.instances, folder=folder, stop=threading.Event()
    )
    tell(outcome)
