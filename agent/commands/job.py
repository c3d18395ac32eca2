"""`webarc-agent job`: the open jobs, and orders to them while they run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from agent.commands.common import archive_option, mood_of, opened, tell
from agent.crawl import job_folder, job_orders
from agent.crawl.job_orders import Order, OrderWord
from agent.operations import ordering
from agent.reports.shown_pages import text_of_views
from agent.service import agent_status
from agent.service.agent_status import overview
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UsageError, WebarcError
from webarcfs.commands.completing import complete_jobs
from webarcfs.commands.lazy_commands import VerbGroup, is_unknown
from webarcfs.commands.listing import LIST, Form, format_option, print_object, print_rows, styled

#: Seconds that the command waits until the job has taken an order: one that runs, and one that has to begin first.
_SOON, _LATER = 3.0, 8.0
#: Hosts that `job show` names.
_MOST_HOSTS = 30
#: State of a URL in a job → what its number is called; and the width of that.
_STATES = {"done": "fetched", "fetching": "being requested", "refused": "left out"}
_WIDTH = 20


_reason = click.option(
    "--reason", default="", metavar="TEXT", help="Why the order is given; the report of the job keeps it."
)
_named_job = click.argument("name", metavar="JOB", shell_complete=complete_jobs)


class JobGroup(VerbGroup):
    """The commands about open jobs. The former order of words, with the job first, holds for one more release."""

    is_former_order_taken = True

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that a command line names. Raises UsageError, which names the orders."""
        if is_unknown(self, ctx, args):
            orders = ", ".join(OrderWord)
            if args[1:] and not args[1].startswith("-"):
                raise UsageError(f"{args[1]} is no order; there are: {orders}")
            raise UsageError(f"say what to do with {args[0]}: {orders}; or `webarc-agent job show {args[0]}`")
        return super().resolve_command(ctx, args)


@click.group(cls=JobGroup)
def job() -> None:
    """List the open jobs, show one, or tell one what to do.

    \b
    Examples:
      webarc-agent job list
      webarc-agent job show example
      webarc-agent job pause example
      webarc-agent job deadline example '2 hours'
      webarc-agent job exclude example 'calendar.example.org' --reason 'an endless calendar'
      webarc-agent job add example https://www.example.org/forgotten
      webarc-agent job wait example www.example.org 10

    A job is named as its folder in jobs/, or by its publication. An order is on the disk before the command ends,
    and is taken within two seconds, whoever runs the job: the agent, or `crawl` in another terminal. A job that
    nobody runs takes it when it is resumed. Documents that are under way are finished, so that none is fetched twice;
    where the job is to end, five seconds are waited for them.
    """


@job.command(name="list")
@archive_option
@format_option(*LIST)
def list_(archive: str | None, form: Form) -> None:
    """List the open jobs."""
    print_rows(form, overview(opened(archive))["jobs"], _lines, as_json=print_object)


@job.command()
@_named_job
@archive_option
@format_option(*LIST)
def show(name: str, archive: str | None, form: Form) -> None:
    """Show an open job, its orders and its hosts.

    Of each host it says how many URLs wait, when the next one may be fetched, and the last word of crawl.log. A URL
    that is fetched is not a document yet: wget hands them over in batches, which are read then. Where a browser shows
    pages, it says how many wait, were shown or could not be.
    """
    place = opened(archive)
    described_job = _described(place, ordering.find(place, name))
    print_rows(form, [described_job], _lines_of, as_json=lambda _: print_object(described_job))


def _add_order(word: OrderWord, explain: str, *values: click.Argument) -> None:
    """Add the command of an order."""

    def command(name: str, archive: str | None, reason: str, **given: str | tuple[str, ...]) -> None:
        place = opened(archive)
        texts: list[str] = []
        for value in (given[str(argument.name)] for argument in values):
            texts.extend([value] if isinstance(value, str) else value)
        _order(place, ordering.find(place, name), reason, str(word), *texts)

    command.__doc__ = explain
    order_command = job.command(name=str(word))(_named_job(archive_option(_reason(command))))
    order_command.params[1:1] = values


_add_order(OrderWord.PAUSE, "Fetch nothing, keep everything; other jobs get the places for wget.")
_add_order(OrderWord.RESUME, "Continue after a pause.")
_add_order(OrderWord.STOP, "Fetch nothing more, and publish what there is, as incomplete.")
_add_order(OrderWord.DISCARD, "End without publishing anything more.")
_add_order(
    OrderWord.DEADLINE,
    "Say until when it may fetch. TIME is 2026-12-01T22:00:00 (CET), or a span from now, such as '2 hours'.",
    click.Argument(["time"], metavar="TIME"),
)
_add_order(
    OrderWord.EXCLUDE,
    "Leave out what waits of a host, or of hosts with *; a name without a port is of any port.",
    click.Argument(["host"], metavar="HOST"),
)
_add_order(
    OrderWord.ADD,
    "Fetch further URLs, as start URLs. The hosts, excludes and robots.txt of the crawl hold.",
    click.Argument(["urls"], metavar="URL...", nargs=-1, required=True),
)
_add_order(
    OrderWord.WAIT,
    "Set the pause between two requests to a host. It holds from now on; HOST may have *.",
    click.Argument(["host"], metavar="HOST"),
    click.Argument(["seconds"], metavar="SECONDS"),
)


def _lines(jobs: list[dict[str, Any]]) -> Iterator[str]:
    for job in jobs:
        held = f", {job['held']}" if job["held"] not in {"", job["state"]} else ""
        until = f", ends by {job['latest_end']}" if job["latest_end"] else ""
        shown = text_of_views(job["views"])
        state = styled(job["state"], mood_of(job["held"] or job["state"]))
        yield f"{job['job']}: {state}{held}, {job['documents']} documents{until}{'; ' if shown else ''}{shown}"
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
        if job[name] and (name != "held" or job["held"] != job["state"]):
            yield f"{name.replace('_', ' '):{_WIDTH}} {job[name]}"
    for state, count in job["urls"].items():
        unread = f", {job['unread']} of them not read yet" if state == "done" and job["unread"] else ""
        yield f"{f'URLs {_STATES.get(state, state)}':{_WIDTH}} {count}{unread}"
    if shown := text_of_views(job["views"]):
        yield shown
    for order in job["given"]:
        taken = "" if order["taken"] else " (not taken yet)"
        words = f"{order['order']} {order['value']}".strip()
        why = f": {order['reason']}" if order["reason"] else ""
        yield f"order {order['number']}: {words}, {order['at']} by {order['by']}{why}{taken}"
    for host in job["hosts"][:_MOST_HOSTS]:
        asked = f", {host['fetching']} being requested" if host["fetching"] else ""
        at = (f", next {host['next'] or 'now'}") if host["waiting"] or host["fetching"] else ""
        last = f", last {host['last']}" if host["last"] else ""
        yield f"host {host['host']}: {host['waiting']} waiting{asked}{at}{last}"
    if more := len(job["hosts"][_MOST_HOSTS:]):
        yield f"{more} further hosts; --json has them all"


# -- orders ------------------------------------------------------------------------------------------------------------


def _order(archive: Archive, folder: Path, reason: str, word: str, *values: str) -> None:
    person = people.acting(archive, Right.CAPTURE)
    runs = ordering.state_of(folder).runs
    hosts = ordering.matching_hosts(folder, word, values)
    order = ordering.give(folder, word, values, person.name, reason)
    if runs or agent_status.running(archive) is not None:
        click.echo(f"{folder.name}: {order}, {ordering.is_taken(folder, order, _SOON if runs else _LATER)}")
        for line in ordering.what_became(folder, order):
            click.echo(f"  {line}")
    else:
        _without_process(archive, folder, order)
    if hosts is not None:
        more = f" and {len(hosts) - ordering.MOST_MATCHING} more" if len(hosts) > ordering.MOST_MATCHING else ""
        click.echo(f"  it means {', '.join(hosts[: ordering.MOST_MATCHING]) or 'no host that the job asks now'}{more}")


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
