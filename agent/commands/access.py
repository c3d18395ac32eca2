"""`webarc-agent withhold`, `people`: what readers may not see, and who decides."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from agent.commands.common import archive_option, opened, start_url
from webarcfs.archive.catalogue import people as persons
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import RIGHTS, Right, Role
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import format_time, parse_time
from webarcfs.gate import access_file
from webarcfs.gate.access_rules import Access, AccessRule


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@archive_option
@click.option("--reason", metavar="TEXT", help="Why; kept with the rule, and told to readers of a blocked page.")
@click.option(
    "--answer",
    type=click.Choice([str(Access.BLOCK), str(Access.EXCLUDE)]),
    default=str(Access.BLOCK),
    show_default=True,
    help="Readers are told that the page is blocked, or nothing: as if it were not there.",
)
@click.option("--captured", metavar="FROM..TO", help="Only captures of this time (CET); one end may be missing.")
@click.option("--lapses", metavar="DATE", help="The rule ends by itself.")
@click.option("--list", "as_list", is_flag=True, help="Show the rules.")
@click.option("--lift", metavar="ID", help="Take a rule back.")
@click.option("--json", "as_json", is_flag=True, help="With --list: an object a line.")
def withhold(urls: tuple[str, ...], *, archive: str | None, as_list: bool, lift: str | None, **said: Any) -> None:
    """Take pages away from readers, in all snapshots: by URL, or all that begin with one (`http://host/folder/*`).

    The archive keeps them, and the mount shows them. It takes effect at once, and stays until it is lifted.

    \b
    Examples:
      webarc-agent withhold http://www.example.org/name.html --reason 'court order 12/2026'
      webarc-agent withhold 'http://www.example.org/old/*' --reason 'wrong figures' --captured ..2026-01-01
      webarc-agent withhold --list
      webarc-agent withhold --lift 1f2e3d4c
    """
    if sum((bool(urls), as_list, lift is not None)) != 1:
        raise UsageError("give URLs, or --list, or --lift ID")
    place = opened(archive)
    if as_list:
        for rule in access_file.load(place).rules:
            click.echo(json.dumps(_fields(rule), ensure_ascii=False) if said["as_json"] else _line(rule))
        return
    acting = persons.acting(place, Right.WITHDRAW)
    if lift is not None:
        lifted = access_file.lift(place, lift, acting.name)
        if lifted is None:
            raise NotFound(f"there is no rule {lift}; `webarc-agent withhold --list` lists them")
        click.echo(f"{lifted.url or lifted.key}: readers may see it again")
        return
    if not said["reason"]:
        raise UsageError("give a --reason; people will ask for it")
    after, before = _span(said["captured"])
    for url in urls:
        rule = access_file.withhold(
            place, _checked(url), acting.name, said["reason"], access=Access(said["answer"]),
            after=after, before=before, lapses=_time(said["lapses"]),
        )  # fmt: skip
        click.echo(f"{rule.id} {rule.url}")


def _checked(url: str) -> str:
    star = "*" if url.endswith("*") else ""
    return start_url(url.removesuffix("*")) + star


def _span(text: str | None) -> tuple[datetime | None, datetime | None]:
    if text is None:
        return None, None
    begin, dots, end = text.partition("..")
    if not dots:
        raise UsageError(f"{text!r} is no span; write FROM..TO, as in 2026-01-01..2026-02-01")
    return _time(begin), _time(end)


def _time(text: str | None) -> datetime | None:
    return parse_time(text if "T" in text else f"{text}T00:00:00") if text else None


def _fields(rule: AccessRule) -> dict[str, str]:
    times = {"after": rule.after, "before": rule.before, "lapses": rule.lapses}
    fields = {"id": rule.id, "key": rule.key, "access": str(rule.access), "url": rule.url, "user": rule.user}
    fields |= {"reason": rule.reason, "by": rule.by, "at": rule.at}
    return fields | {name: "" if time is None else format_time(time) for name, time in times.items()}


def _line(rule: AccessRule) -> str:
    fields = _fields(rule)
    more = [f"{name} {fields[name]}" for name in ("user", "after", "before", "lapses") if fields[name]]
    about = f" ({', '.join(more)})" if more else ""
    return f"{rule.id or '-':8} {rule.access:7} {rule.url or rule.key}{about}: {rule.reason} [{rule.by} {rule.at}]"


@click.group()
def people() -> None:
    """Say who may decide about records: persons, their roles, their login names.

    Without people everybody who may write to the archive may do all. From the first person on, `record` and `withhold`
    ask who calls them. The first one is an administrator, who alone may change people.
    """


@people.command(name="list")
@archive_option
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def list_(archive: str | None, as_json: bool) -> None:
    """List persons, with their roles and rights."""
    for each in (persons.load(opened(archive)) or {}).values():
        rights = sorted(map(str, RIGHTS[each.role]))
        if as_json:
            told = {"key": each.key, "name": each.name, "role": each.role, "unix": each.unix, "rights": rights}
            click.echo(json.dumps(told, ensure_ascii=False))
        else:
            click.echo(f"{each.key}: {each.name}, {each.role} ({', '.join(rights)}); login {each.unix or '-'}")


@people.command()
@click.argument("key")
@archive_option
@click.option("--name", default="", help="As people write it; else KEY.")
@click.option("--role", type=click.Choice([*map(str, Role)]), required=True, help="What the person is.")
@click.option("--unix", default="", metavar="LOGIN", help="The login name, by which commands know the person.")
def add(key: str, archive: str | None, name: str, role: str, unix: str) -> None:
    """Add a person, or change the one of that key.

    \b
    Example:
      webarc-agent people add anna --name 'Anna Beispiel' --role administrator --unix anna
    """
    persons.save(opened(archive), Person(key, name or key, Role(role), unix))


@people.command()
@click.argument("key")
@archive_option
def remove(key: str, archive: str | None) -> None:
    """Remove a person. What the person did stays in the records."""
    persons.remove(opened(archive), key)
