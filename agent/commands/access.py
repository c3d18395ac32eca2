"""`webarc-agent withhold`, `people`: what readers may not see, and who decides."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import click

from agent.commands.common import archive_option, opened
from agent.operations import withholding
from agent.operations.withholding import Withheld
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule
from webarcfs.archive.catalogue import people as persons
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import RIGHTS, Right, Role
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import format_time
from webarcfs.commands.lazy_commands import VerbGroup
from webarcfs.commands.listing import LIST, Form, format_option, print_rows

_log = logging.getLogger(__name__)


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@archive_option
@click.option("--reason", metavar="TEXT", help="Why; kept with the rule, for staff alone.")
@click.option("--public-text", metavar="TEXT", help="What readers of a blocked page are told; else nothing more.")
@click.option(
    "--answer",
    type=click.Choice([str(Access.BLOCK), str(Access.EXCLUDE)]),
    default=str(Access.BLOCK),
    show_default=True,
    help="Readers are told that the page is blocked, or nothing: as if it were not there.",
)
@click.option("--captured", metavar="FROM..TO", help="Only captures of this time (CET); one end may be missing.")
@click.option("--lapses", metavar="DATE", help="The rule ends by itself.")
@click.option("--exact", is_flag=True, help="Only this spelling of the URL.")
@click.option("--list", "as_list", is_flag=True, help="Show the rules.")
@click.option("--lift", metavar="ID", help="Take back what was withheld under this id.")
@format_option(*LIST)
def withhold(
    urls: tuple[str, ...], *, archive: str | None, as_list: bool, lift: str | None, form: Form, **options: Any
) -> None:
    """Take pages away from readers, in all crawls: by URL, or all that begin with one (`http://host/folder/*`).

    The archive keeps them, and the mount shows them. It takes effect at once, and stays until it is lifted.

    All spellings of a URL are taken away: http and https, with and without `www.`, in any case of letters, and both
    `/folder/` and `/folder/index.html`, which are listed. The number of archived URLs that readers lose is printed.

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
        print_rows(form, map(_fields, access_rules.load(place).rules), lambda rows: map(_line, rows))
        return
    if form is not Form.TABLE:
        raise UsageError("--format and --json go with --list")
    acting = persons.acting(place, Right.WITHDRAW)
    if lift is not None:
        for rule in withholding.lift(place, lift, acting):
            above = withholding.rules_above(place, rule)
            if above:
                _log.warning("%s is still withheld, by %s", rule.url or rule.key, ", ".join(sorted(map(_name, above))))
            else:
                click.echo(f"{rule.url or rule.key}: readers may see it again")
        return
    added = withholding.withhold(
        place,
        urls,
        acting,
        reason=options["reason"] or "",
        public_text=options["public_text"] or "",
        answer=options["answer"],
        captured=options["captured"] or "",
        lapses=options["lapses"] or "",
        exact=options["exact"],
    )
    for withheld in added:
        _print(withheld)


def _print(withheld: Withheld) -> None:
    """Print the rules of one withholding and what they take away; warn if that is nothing."""
    for rule in withheld.rules:
        click.echo(f"{rule.id} {rule.url}")
    spellings = " or ".join(rule.url for rule in withheld.rules)
    if withheld.count is None:
        _log.warning("webarc.db cannot say how many archived URLs %s takes away", withheld.id)
        return
    click.echo(f"{withheld.id} takes {withheld.count} archived URL{'' if withheld.count == 1 else 's'} away")
    if not withheld.count:
        _log.warning("no archived URL is %s; the rule holds for what is captured later", spellings)


def _name(rule: AccessRule) -> str:
    return rule.id or rule.key


def _fields(rule: AccessRule) -> dict[str, str]:
    times = {"after": rule.after, "before": rule.before, "lapses": rule.lapses}
    fields = {"id": rule.id, "key": rule.key, "access": str(rule.access), "url": rule.url, "user": rule.user}
    fields |= {"reason": rule.reason, "public_text": rule.public_text, "by": rule.by, "at": rule.at}
    return fields | {name: "" if time is None else format_time(time) for name, time in times.items()}


def _line(fields: dict[str, str]) -> str:
    more = [f"{name} {fields[name]}" for name in ("user", "after", "before", "lapses") if fields[name]]
    more += [f"readers are told {fields['public_text']!r}"] if fields["public_text"] else []
    about = f" ({', '.join(more)})" if more else ""
    what = f"{fields['id'] or '-':8} {fields['access']:7} {fields['url'] or fields['key']}"
    return f"{what}{about}: {fields['reason']} [{fields['by']} {fields['at']}]"


@click.group(cls=VerbGroup)
def people() -> None:
    """Say who may decide about records: persons, their roles, their login names.

    Without people everybody who may write to the archive may do all. From the first person on, `record` and `withhold`
    ask who calls them. The first one is an administrator, who alone may change people.
    """


@people.command(name="list")
@archive_option
@format_option(*LIST)
def list_(archive: str | None, form: Form) -> None:
    """List persons, with their roles and rights."""
    known = persons.load(opened(archive)) or {}
    rows = (
        {
            "key": person.key,
            "name": person.name,
            "role": person.role,
            "unix": person.unix,
            "rights": sorted(map(str, RIGHTS[person.role])),
        }
        for person in known.values()
    )

    def lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
        for row in rows:
            word = ", with a password" if known[row["key"]].password else ""
            about = f"{row['name']}, {row['role']} ({', '.join(row['rights'])}); login {row['unix'] or '-'}"
            yield f"{row['key']}: {about}{word}"

    print_rows(form, rows, lines)


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
def password(key: str, archive: str | None) -> None:
    """Set the password by which a person works at the desk; asked for twice, or read from stdin.

    Only its hash is kept (argon2id). An empty one takes it away. A person with a login name (unix) may set their own.

    \b
    Example:
      webarc-agent people password anna
    """
    if find_spec("argon2") is None:
        raise UsageError("the desk needs more libraries: pip install 'webarcfs[desk]'")
    from agent.desk.login import hashed  # noqa: PLC0415 # of the extra `desk`

    if sys.stdin.isatty():
        text = click.prompt("Password", hide_input=True, confirmation_prompt=True, default="", show_default=False)
    else:
        text = sys.stdin.readline().rstrip("\r\n")
    persons.set_password(opened(archive), key, hashed(text) if text else "")


@people.command()
@click.argument("key")
@archive_option
def remove(key: str, archive: str | None) -> None:
    """Remove a person. The records keep what the person did."""
    persons.remove(opened(archive), key)
