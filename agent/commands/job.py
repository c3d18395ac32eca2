"""`webarc-agent job`: the open jobs, and orders to them while they run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from agent.commands.common import archive_option, opened, tell
from agent.crawl import job_folder, job_orders
from agent.crawl.job_orders import Order, OrderWord
from agent.operations import ordering
from agent.reports.shown_pages import text_of_views
from agent.service import agent_status
from agent.service.agent_status import overview
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError, WebarcError
from webarcfs.commands.completing import complete_jobs
from webarcfs.commands.listing import LIST, Form, format_option, print_object, print_rows

#: Seconds that the command waits until the job has taken an order: one that runs, and one that has to begin first.
_SOON, _LATER = 3.0, 8.0
#: Hosts that `job show` names.
_MOST_HOSTS = 30


def _complete_words(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    """Return what may stand behind the words so far: an open job, or an order to it."""
    words: tuple[str, ...] = context.params.get("words") or ()
    if len(words) == 1 and words[0] != "show":
        return [word for word in OrderWord if word.startswith(text)]
    first = [word for word in ("list", "show") if word.startswith(text) and not words]
    return [*first, *complete_jobs(context, parameter, text)] if words in ((), ("show",)) else []


@click.command()
@click.argument("words", nargs=-1, metavar="[list | show JOB | JOB ORDER [VALUE]]", shell_complete=_complete_words)
@archive_option
@click.option("--reason", default="", metavar="TEXT", help="Why the order is given; the report of the job keeps it.")
@format_option(*LIST)
def job(words: tuple[str, ...], archive: str | None, reason: str, form: Form) -> None:
    """List the open jobs, show one, or tell one what to do.

    \b
    webarc-agent job list
    webarc-agent job show example
    webarc-agent job example pause
    webarc-agent job example deadline '2 hours'
    webarc-agent job example exclude 'calendar.example.org' --reason 'an endless calendar'
    webarc-agent job example add https://www.example.org/forgotten
    webarc-agent job example wait www.example.org 10

    A job is named as its folder in jobs/, or by its publication. An order is on the disk before the command ends,
    and is taken within two seconds, whoever runs the job: the agent, or `crawl` in another terminal. A job that
    nobody runs takes it when it is resumed. Documents that are under way are finished, so that none is fetched twice;
    where the job is to end, five seconds are waited for them.

    \b
    pause           fetch nothing, keep everything; other jobs get the places for wget
    resume          continue after a pause
    stop            fetch nothing more, and publish what there is, as incomplete
    discard         end without publishing anything more
    deadline TIME   until when it may fetch: 2026-12-01T22:00:00 (CET), or a span from now
    exclude HOST    leave out what waits of a host, or of hosts with *
    add URL...      fetch these too, as start URLs; the hosts, excludes and robots.txt of the crawl hold
    wait HOST SECONDS
                    from now on, the seconds between two requests to a host, or to hosts with *

    `job show` also lists the hosts that it asks: how many URLs wait, when the next one may be fetched, and the last
    word of crawl.log for that host. Where a browser shows pages, it says how many wait, were shown or could not be.
    """
    place = opened(archive)
    if reason and (len(words) < 2 or words[0] in ("list", "show")):
        raise UsageError("a reason goes with an order: webarc-agent job JOB ORDER --reason TEXT")
    if words in ((), ("list",)):
        jobs = overview(place)["jobs"]
        print_rows(form, jobs, _lines, as_json=print_object)
    elif words[0] == "show" and len(words) == 2:
        job = _described(place, ordering.find(place, words[1]))
        print_rows(form, [job], _lines_of, as_json=lambda _: print_object(job))
    elif len(words) >= 2:
        _order(place, _find(place, words), reason, *words[1:])
    else:
        raise UsageError(f"say what to do with {words[0]}: {', '.join(OrderWord)}; or `job show {words[0]}`")


def _find(place: Archive, words: tuple[str, ...]) -> Path:
    """Return the folder of the job that is named first. Raises NotFound; UsageError where the order is named first."""
    try:
        return ordering.find(place, words[0])
    except NotFound:
        if words[0] in [*OrderWord]:
            raise UsageError(f"the job comes first: `webarc-agent job {words[1]} {words[0]}`") from None
        raise


def _lines(jobs: list[dict[str, Any]]) -> Iterator[str]:
    for job in jobs:
        held = f", {job['held']}" if job["held"] else ""
        until = f", ends by {job['latest_end']}" if job["latest_end"] else ""
        shown = text_of_views(job["views"])
        yield f"{job['job']}: {job['state']}{held}, {job['documents']} documents{until}{'; ' if shown else ''}{shown}"
    if not jobs:
        yield "no job is open"


def _described(archive: Archive, folder: Path) -> dict[str, Any]:
    job = next((job for job in overview(archive)["jobs"] if job["job"] == folder.name), None)
    if job is None:
        raise job_orders.ended(folder.name)
    given = [{**order, "taken": order["number"] <= job["orders"]} for order in job_orders.describe_orders(folder)]
    try:
        hosts = ordering.hosts_now(archive, folder)
    except (WebarcError, OSError):  # it has not begun, or is about to end
        hosts = []
    return {**job, "given": given, "hosts": hosts}


def _lines_of(jobs: Iterable[dict[str, Any]]) -> Iterator[str]:
    (job,) = jobs
    for name in ("job", "publication", "state", "held", "reason", "begun", "latest_end", "documents", "bytes"):
        if job[name]:
            yield f"{name.replace('_', ' '):12} {job[name]}"
    for state, count in job["urls"].items():
        yield f"{f'URLs {state}':12} {count}"
    if shown := text_of_views(job["views"]):
        yield shown
    for order in job["given"]:
        taken = "" if order["taken"] else " (not taken yet)"
        words = f"{order['order']} {order['value']}".strip()
        why = f": {order['reason']}" if order["reason"] else ""
        yield f"order {order['number']}: {words}, {order['at']} by {order['by']}{why}{taken}"
    for host in job["hosts"][:_MOST_HOSTS]:
        at = (f", next {host['next'] or 'now'}") if host["waiting"] else ""
        last = f", last {host['last']}" if host["last"] else ""
        yield f"host {host['host']}: {host['waiting']} waiting{at}{last}"
    if more := len(job["hosts"][_MOST_HOSTS:]):
        yield f"{more} further hosts; --json has them all"


# -- orders ------------------------------------------------------------------------------------------------------------


def _order(archive: Archive, folder: Path, reason: str, word: str, *values: str) -> None:
    person = people.acting(archive, Right.CAPTURE)
    runs = ordering.state_of(folder).runs
    order = ordering.give(folder, word, values, person.name, reason)
    if runs or agent_status.running(archive) is not None:
        click.echo(f"{folder.name}: {order}, {ordering.is_taken(folder, order, _SOON if runs else _LATER)}")
        for line in ordering.what_became(folder, order):
            click.echo(f"  {line}")
    else:
        _without_process(archive, folder, order)


def _without_process(archive: Archive, folder: Path, order: Order) -> None:
    """Discard a job that nobody runs, here and now; any other order waits."""
    asked = job_folder.load(folder) if order.word is OrderWord.DISCARD else None
    if asked is None:
        click.echo(f"{folder.name}: {order}, given; nobody runs the job, and it takes the order when it is resumed")
        return
    from agent.jobs import crawljob  # noqa: PLC0415 # its imports are slow, and few commands need them

    outcome = crawljob.run(
        archive, asked.publication, asked.profile, instances=asked.instances, folder=folder, stop=threading.Event()
    )
    tell(outcome)
