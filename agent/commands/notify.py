"""The commands of `webarc-agent` by which people are told: `notify`, and `watch`, which looks at an archive once."""

from __future__ import annotations

import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import click

from agent.commands.common import archive_option, opened, settings_of
from agent.notifying import notifier
from agent.notifying.changes import Notification, NotificationGroup, event_id
from agent.notifying.channels import channels_of
from agent.notifying.messages import one_line
from agent.notifying.notification_store import NotificationStore, WaitingDelivery
from webarcfs.archive.config.settings import NotificationKind
from webarcfs.archive.model.errors import Exit, UsageError
from webarcfs.archive.model.metadata import format_time, from_epoch, now
from webarcfs.commands.lazy_commands import VerbGroup
from webarcfs.commands.listing import LIST, OBJECT, Form, format_option, print_object, print_rows

#: Notifications that a list has at most.
_MOST = 10_000
_COLUMNS = ("id", "type", "text", "at", "target", "state", "tries", "due", "answer")
_NOBODY = (
    "nobody is told: webarc.toml has no [notify] with mail, webhook or command; for instance\n"
    '[notify]\nmail = ["archive@example.org"]'
)


@click.group(cls=VerbGroup, invoke_without_command=True)
@click.option("--test", "is_test", is_flag=True, help="The same as `notify test`.")
@archive_option
@click.pass_context
def notify(context: click.Context, is_test: bool, archive: str | None) -> None:
    """Test how people are told when something goes wrong, and list what waits.

    \b
    In webarc.toml:
      [notify]
      mail = ["archive@example.org"]
      webhook = ["https://hooks.example.org/webarc"]
      command = ["/usr/local/bin/tell", "archive"]
    \b
    Then:
      webarc-agent notify test
      webarc-agent notify list

    The running agent tells of crawls that failed, are incomplete or found much less, and of what else needs people;
    `webarc-agent watch`, run by a timer, also tells that no agent runs.
    """
    if context.invoked_subcommand is None:
        if not is_test:
            click.echo(context.get_help())
            return
        _test(archive)


@notify.command()
@archive_option
@click.pass_context
def test(context: click.Context, archive: str | None) -> None:
    """Send a test by each way that the settings name, and print what each answered.

    It ends with 0 if all took it, with 2 if one did not. Nothing is tried again.
    """
    _test(_named(context, archive))


def _named(context: click.Context, archive: str | None) -> str | None:
    """Return the archive that is named, before the verb or behind it."""
    above: str | None = context.parent.params.get("archive") if context.parent is not None else None
    return archive or above


def _test(archive: str | None) -> None:
    place = opened(archive)
    settings = settings_of(place)
    channels = channels_of(place, settings)
    if not channels:
        raise UsageError(_NOBODY)
    stop, at = _stop(), now()
    text = "this is a test: notifications of this archive arrive here"
    message = Notification(
        id=event_id(NotificationGroup.TEST, str(uuid.uuid4())), kind=NotificationGroup.TEST, text=text, at=at, since=at
    )
    failed = 0
    for channel in channels:
        reply = channel.send(message, stop)
        for fault in channel.faults():
            if fault != reply.text:
                click.echo(f"{channel.target}: {fault}")
        failed += not reply.is_taken
        click.echo(f"{channel.target}: {reply.text}")
    if failed:
        sys.exit(Exit.FAILED)


@notify.command(name="list")
@archive_option
@format_option(*LIST)
@click.pass_context
def list_(context: click.Context, archive: str | None, form: Form) -> None:
    """List the notifications that wait for another try, and those that were given up.

    What a receiver has taken is in no list. A try that failed is repeated for a day, with growing pauses.
    """
    place = opened(_named(context, archive))
    with NotificationStore(place) as store:
        rows = [_row(delivery) for delivery in store.listed(_MOST)]
    print_rows(form, rows, _lines, as_json=print_object, columns=_COLUMNS)


def _row(delivery: WaitingDelivery) -> dict[str, Any]:
    return {
        "id": delivery.notification.id,
        "type": delivery.notification.kind,
        "text": one_line(delivery.notification.text),
        "at": format_time(delivery.notification.at),
        "target": delivery.target,
        "state": str(delivery.state),
        "tries": delivery.tries,
        "due": format_time(from_epoch(delivery.due)),
        "answer": delivery.answer,
    }


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        when = f"next try {row['due']}" if row["state"] == "waiting" else f"given up {row['due']}"
        number = f"{row['tries']} {'try' if row['tries'] == 1 else 'tries'}"
        tries = f"; {number}, {row['answer']}" if row["answer"] else ""
        yield f"{row['at']} {row['target']}: {row['text']} ({when}{tries})"
    if not rows:
        yield "no notification waits, and none was given up"
    if len(rows) == _MOST:
        yield f"these are the first {_MOST}"


@notify.command()
@archive_option
@click.pass_context
def retry(context: click.Context, archive: str | None) -> None:
    """Let the notifications that were given up wait once more; the agent or `watch` delivers them."""
    place = opened(_named(context, archive))
    with NotificationStore(place) as store:
        click.echo(f"{store.retry(int(time.time()))} notifications wait again")


@click.command()
@archive_option
@format_option(*OBJECT)
@click.option("--from-agent", is_flag=True, hidden=True)
def watch(archive: str | None, form: Form, from_agent: bool) -> None:
    """Look once whether something is amiss, tell whoever [notify] names, and print it.

    It needs no agent: run by a timer (`webarc-agent service install watch`) or by cron, it tells that no agent runs,
    that the disk is nearly full, a backup old, the index behind, that something in the archive could not be read, or
    that nothing was captured of a publication for two intervals. While an agent runs, both do the same, and nobody is
    told twice.

    \b
    */5 * * * * webarc-agent watch --archive /srv/webarc >/dev/null

    It ends with 0 if nothing is amiss, with 3 if something is, with 2 if somebody could not be told. A crawl that waits
    for its release is printed, and is not amiss.
    """
    place = opened(archive)
    outcome = notifier.watch(place, _stop())
    if form is Form.JSON:
        print_object({
            "amiss": [
                {"type": str(condition.kind), "subject": condition.subject, "text": one_line(condition.text)}
                for condition in outcome.amiss
            ],
            "told": len(outcome.queued),
            "failed": outcome.failed,
            "faults": list(outcome.faults),
        })  # fmt: skip
    else:
        for condition in outcome.amiss:
            click.echo(one_line(condition.text))
        for fault in () if from_agent else outcome.faults:  # the agent looks every minute, and `status` says them
            click.echo(fault, err=True)
        if not outcome.amiss and not outcome.faults:
            click.echo("nothing is amiss")
    if outcome.failed or outcome.faults:
        sys.exit(Exit.FAILED)
    if any(condition.kind is not NotificationKind.WAITS_FOR_RELEASE for condition in outcome.amiss):
        sys.exit(Exit.INCOMPLETE)


def _stop() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set: what was not delivered waits for the next time."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
