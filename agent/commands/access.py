"""`webarc-agent withhold`, `people`: what readers may not see, and who decides."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from typing import Any

import click

from agent.commands import person_tokens
from agent.commands.common import archive_option, opened, settings_of
from agent.operations import withholding
from agent.operations.withholding import Withheld
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule
from webarcfs.access.lifted_rules import LiftedRule, lifted_rules
from webarcfs.archive.catalogue import people as persons
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import DEEDS, Right, Role, in_row
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import SettingsError, UsageError
from webarcfs.archive.model.metadata import format_time
from webarcfs.commands.lazy_commands import VerbGroup
from webarcfs.commands.listing import LIST, Form, format_option, print_rows

_log = logging.getLogger(__name__)


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@archive_option
@click.option("--reason", metavar="TEXT", help="Why; kept for staff alone, no reader sees it.")
@click.option("--public-text", metavar="TEXT", help="What readers of the page are told; else only that it is withheld.")
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
@click.option("--all", "with_lifted", is_flag=True, help="With --list: also what was lifted, and by whom.")
@click.option("--lift", metavar="ID", help="Take back what was withheld under this id.")
@format_option(*LIST)
def withhold(
    urls: tuple[str, ...],
    *,
    archive: str | None,
    as_list: bool,
    with_lifted: bool,
    lift: str | None,
    form: Form,
    **options: Any,
) -> None:
    """Take pages away from readers, in all crawls: by URL, or all that begin with one (`http://host/folder/*`).

    The archive keeps them, and the mount shows them. It takes effect at once, and stays until it is lifted. The reason,
    who complained for instance, is on record for staff: in --list, and on the desk's page Access. What was lifted
    stays on record with its reason: --list --all has it, and so has that page.

    All spellings of a URL are taken away: http and https, with and without `www.`, in any case of letters, and both
    `/folder/` and `/folder/index.html`, which are listed. The number of archived URLs that readers lose is printed.

    \b
    Examples:
      webarc-agent withhold http://www.example.org/name.html --reason 'court order 12/2026'
      webarc-agent withhold 'http://www.example.org/old/*' --reason 'wrong figures' --captured ..2026-01-01
      webarc-agent withhold --list
      webarc-agent withhold --list --all
      webarc-agent withhold --lift 1f2e3d4c
    """
    if sum((bool(urls), as_list, lift is not None)) != 1:
        raise UsageError("give URLs, or --list, or --lift ID")
    if with_lifted and not as_list:
        raise UsageError("--all goes with --list")
    place = opened(archive)
    if as_list:
        lifted = map(_fields_of_lifted, lifted_rules(place)) if with_lifted else ()
        print_rows(form, chain(map(_fields, _rules(place)), lifted), lambda rows: map(_line, rows))
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


def _rules(archive: Archive) -> tuple[AccessRule, ...]:
    """Return the rules with their reasons; where these cannot be read, the rules alone, with a warning."""
    rules, fault = access_rules.load_with_fault(archive)
    if fault:
        _log.warning("the reasons cannot be read: %s", fault)
    return rules.rules


def _name(rule: AccessRule) -> str:
    return rule.id or rule.key


def _fields(rule: AccessRule) -> dict[str, str]:
    times = {"after": rule.after, "before": rule.before, "lapses": rule.lapses}
    fields = {"id": rule.id, "key": rule.key, "access": str(rule.access), "url": rule.url, "user": rule.user}
    fields |= {"reason": rule.reason, "public_text": rule.public_text, "by": rule.by, "at": rule.at, "role": rule.role}
    fields |= {name: "" if time is None else format_time(time) for name, time in times.items()}
    return fields | {"state": "in force", "lifted_by": "", "lifted_at": ""}


def _fields_of_lifted(lifted: LiftedRule) -> dict[str, str]:
    at = "" if lifted.at is None else format_time(lifted.at)
    return _fields(lifted.rule) | {"state": "lifted", "lifted_by": lifted.by, "lifted_at": at}


def _line(fields: dict[str, str]) -> str:
    more = [f"{name} {fields[name]}" for name in ("user", "after", "before", "lapses") if fields[name]]
    more += [f"readers are told {fields['public_text']!r}"] if fields["public_text"] else []
    about = f" ({', '.join(more)})" if more else ""
    what = f"{fields['id'] or '-':8} {fields['access']:7} {fields['url'] or fields['key']}"
    role = f" as {fields['role']}" * bool(fields["role"])
    line = f"{what}{about}: {fields['reason']} [{fields['by']}{role} {fields['at']}]"
    if fields["state"] == "in force":
        return line
    how = f"lifted by {fields['lifted_by']}" if fields["lifted_by"] else "taken out of the file by hand"
    before = "before " * (not fields["lifted_by"])
    return f"{line}, {how} {before}{fields['lifted_at']}".rstrip() if fields["lifted_at"] else f"{line}, {how}"


@click.group(cls=VerbGroup)
def people() -> None:
    """Say who may do what: persons, their roles, their login names.

    Without people everybody who may write to the archive may do all. From the first person on, commands that change
    something ask who calls them, by the login name; the desk asks for a password. The first person has all roles,
    unless you choose some: one person can run an archive alone. Who has the role administrator may change people.

    \b
    Roles, whose rights add up:
      archivist      starts crawls, describes, checks, releases, withdraws them, withholds pages
      reviewer       checks and rejects crawls
      administrator  changes publications, registers, options, people; describes crawls
      curator        all of this, but for people

    Who may release crawls at the desk and cannot change publications is an archivist.

    Programs ask over the network by a token of a person: `webarc-agent people token --help`.
    """


people.add_command(person_tokens.token)


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
            "roles": list(map(str, person.roles)),
            "unix": person.unix,
            "password": bool(person.password),
            "rights": sorted(map(str, person.rights)),
        }
        for person in known.values()
    )

    def lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
        for row in rows:
            word = ", with a password" if row["password"] else ""
            about = f"{row['name']}, {', '.join(row['roles'])} ({', '.join(row['rights'])}); login {row['unix'] or '-'}"
            yield f"{row['key']}: {about}{word}"

    print_rows(form, rows, lines)


@people.command()
@click.argument("key")
@archive_option
@click.option("--name", metavar="TEXT", help="As records tell who did something; else KEY.")
@click.option(
    "--role",
    "roles",
    type=click.Choice([*map(str, Role)]),
    multiple=True,
    help="What the person may do; give it again for more roles.",
)
@click.option("--all", "has_all", is_flag=True, help="All roles; the first person has them without it.")
@click.option("--unix", metavar="LOGIN", help="The login name, by which commands know the person; '' for none.")
@click.option(
    "--password",
    "with_password",
    is_flag=True,
    help="Ask for a password for the desk, or read it from stdin. It has 10 characters at least.",
)
def add(  # noqa: PLR0917 # click passes them by name
    key: str,
    archive: str | None,
    name: str | None,
    roles: tuple[str, ...],
    has_all: bool,
    unix: str | None,
    with_password: bool,
) -> None:
    """Add a person, or change the one of that key: what you leave out stays as it is.

    `webarc-agent people --help` says what each role may do. The first person of an archive gets all roles, and your
    login name, unless you give others.

    \b
    Examples:
      webarc-agent people add anna --name 'Anna Beispiel' --password
      webarc-agent people add ben --name 'Ben Beispiel' --role archivist --password
      webarc-agent people add ben --role archivist --role administrator --unix ben
    """
    if roles and has_all:
        raise UsageError("--all means every role: leave out --role, or --all")
    place = opened(archive)
    known = persons.load(place)
    before = (known or {}).get(key)
    is_first = not known
    if not is_first:
        persons.acting(place, Right.PEOPLE)  # who may not change people learns that first
    wanted = tuple(map(Role, Role if has_all or (is_first and not roles) else roles))
    if before is not None and not wanted:
        wanted = before.roles
    if not wanted:
        raise UsageError(
            f"give {key} a role: --role {in_row(list(Role), 'or')}, or --all; `people --help` has what each may do"
        )
    login = unix if unix is not None else before.unix if before else persons.login_name() if is_first else ""
    known_name = before.name if before is not None else key
    person = Person(key, known_name if name is None else name, wanted, login)
    if with_password:
        person = replace(person, password=_asked_password())
    saved = persons.save(place, person, is_first=is_first)
    _tell(place, saved, is_first=is_first, is_all=is_first and not roles)


def _tell(archive: Archive, person: Person, *, is_first: bool, is_all: bool) -> None:
    """Say what a person may do now, how the archive knows the person, and what nobody can do."""
    rights = ", ".join(DEEDS[right] for right in Right if right in person.rights and right is not Right.ADD)
    login = f"; login name {person.unix}" if person.unix else ""
    click.echo(f"{person.key}: {person.name}, {', '.join(person.roles)}{login}")
    click.echo(f"may {rights}")
    if is_all:
        click.echo("the first person has all roles, and can run the archive alone; --role gives fewer")
    if is_first:
        click.echo("from now on commands that change something ask who calls them; `people add` adds others")
    if not person.can_log_in:
        _log.warning("%s cannot log in yet: webarc-agent people password %s", person.name, person.key)
    elif not person.password:
        click.echo(f"for the desk, or its proxy by the login name: webarc-agent people password {person.key}")
    _warn_of_lack(archive)


def _warn_of_lack(archive: Archive) -> None:
    """Warn where a publication wants two persons, and the archive has no second one."""
    with contextlib.suppress(SettingsError):  # other commands say what is wrong with it
        if persons.wants_two(settings_of(archive)):
            lack = persons.lacks_second((persons.load(archive) or {}).values())
            if lack:
                _log.warning("%s", lack)


@people.command()
@click.argument("key")
@archive_option
def password(key: str, archive: str | None) -> None:
    """Set the password by which a person works at the desk; asked for twice, or read from stdin.

    It has 10 characters at least. Only its hash is kept (argon2id). An empty one takes it away. A person with a login
    name (unix) may set their own. Tokens of programs stay as they are.

    \b
    Example:
      webarc-agent people password anna
    """
    place = opened(archive)
    persons.set_password(place, key, _asked_password())
    names = [own.name for own in (persons.load(place) or {})[key].tokens]
    if names:
        _log.info(
            "its tokens are as before; this revokes them: webarc-agent people token revoke %s --person %s",
            " ".join(names), key,
        )  # fmt: skip


def _asked_password() -> str:
    """Return the hash of a password that is asked for, or read from stdin; empty for an empty one."""
    if find_spec("argon2") is None:
        raise UsageError("the desk needs more libraries: pip install 'webarcfs[desk]'")
    from agent.desk.forms import PASSWORD_SHORTEST  # noqa: PLC0415 # of the extra `desk`
    from agent.desk.login import hashed  # noqa: PLC0415 # of the extra `desk`

    if sys.stdin.isatty():
        asked = f"Password ({PASSWORD_SHORTEST} characters at least)"
        text = click.prompt(asked, hide_input=True, confirmation_prompt=True, default="", show_default=False)
    else:
        text = sys.stdin.readline().rstrip("\r\n")
    return hashed(text) if text else ""


@people.command()
@click.argument("key")
@archive_option
def remove(key: str, archive: str | None) -> None:
    """Remove a person. The records keep what the person did."""
    place = opened(archive)
    persons.remove(place, key)
    _warn_of_lack(place)
