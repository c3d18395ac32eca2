"""`webarc-agent people token`: tokens by which programs act as persons over the network."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import click

from agent.commands.common import archive_option, opened
from agent.operations import bearers
from webarcfs.archive.catalogue import people as persons
from webarcfs.archive.catalogue import tokens
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import in_row
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged, NotFound, UsageError
from webarcfs.archive.model.metadata import format_time, now, parse_moment
from webarcfs.commands.lazy_commands import VerbGroup
from webarcfs.commands.listing import LIST, OBJECT, Form, format_option, print_rows, print_sums

_log = logging.getLogger(__name__)
_person_option = click.option(
    "--person", metavar="KEY", help="Whose token, by the short name; else the person of your login name."
)


@click.group(cls=VerbGroup)
def token() -> None:
    """Make, list and revoke the tokens by which programs act as persons over the network.

    A token is a password for one program. It can do what its scopes allow, as far as its person's roles do. You make
    and revoke your own; who has the role administrator may do so for everybody. It ends at its time, when it is
    revoked, and with its person.

    \b
    Scopes:
      read     read everything that persons of the archive see
      add      add files and data nodes to documents (curator)
      capture  have pages saved (archivist, curator)
      mirror   copy the whole archive (administrator, curator)

    \b
    Examples:
      webarc-agent people token make laptop
      webarc-agent people token make analysis --scope read --scope add --expires '30 days'
      webarc-agent people token list
      webarc-agent people token revoke laptop
    """


@token.command()
@click.argument("name")
@archive_option
@_person_option
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([*map(str, Scope)]),
    multiple=True,
    help="What it is for; give it again for more scopes. [default: read]",
)
@click.option(
    "--expires",
    metavar="WHEN",
    help=f"When it ends: after an interval such as '30 days', or a day; a year at most. [default: {tokens.LASTS}]",
)
@format_option(*OBJECT)
def make(
    name: str, *, archive: str | None, person: str | None, scopes: tuple[str, ...], expires: str | None, form: Form
) -> None:
    """Make a token, and print it, this once: the archive keeps its hash alone.

    NAME says which program has it, such as laptop: letters, digits, - and _. Standard output has the token and nothing
    else. Whoever has it can do what its scopes allow, so keep it as a password, in a file that is yours alone.

    \b
    Examples:
      (umask 077; webarc-agent people token make laptop > ~/.webarc-token)
      webarc-agent people token make harvester --person harvester --scope add --expires 2027-06-30
    """
    place = opened(archive)
    key = _key_of(place, person)
    secret, made = persons.add_token(
        place, key, name, [Scope(scope) for scope in scopes] or [Scope.READ], expires=_end_of(expires)
    )
    sums = {"person": key, "name": made.name, "scopes": list(map(str, made.scopes))}
    sums |= {"made": format_time(made.made), "expires": format_time(made.expires), "token": secret}
    try:
        print_sums(form, sums, [secret])
        sys.stdout.flush()
    except OSError:  # a full disk, for instance: nobody has the token
        persons.revoke_tokens(place, key, [name])
        raise
    _log.info(
        "the token %s of %s may %s until %s; it is not shown again",
        made.name, key, in_row(made.scopes, "and"), format_time(made.expires),
    )  # fmt: skip


def _key_of(archive: Archive, person: str | None) -> str:
    """Return the short name of the person that is named, else of the one who calls. Raises UsageError."""
    if person is not None:
        return person
    login = persons.login_name()
    known = persons.load(archive) or {}
    own = next((other.key for other in known.values() if login and other.unix == login), None)
    if own is None:
        there = f"there are: {', '.join(known)}" if known else "`webarc-agent people add` adds the first one"
        raise UsageError(f"no person has the login name {login!r}: give --person KEY; {there}")
    return own


def _end_of(text: str | None) -> datetime | None:
    """Return when a token ends, as a person types it; None for nothing. Raises UsageError."""
    if text is None:
        return None
    try:
        return Interval.parse(text).after(now())
    except (ValueError, OverflowError):
        pass
    try:
        moment = parse_moment(text)
    except Damaged:
        moment = None
    if not isinstance(moment, datetime):
        raise UsageError(f"--expires {text!r}: write an interval such as '30 days', or a day such as 2027-06-30")
    return moment


@token.command(name="list")
@archive_option
@click.option("--person", metavar="KEY", help="Only the tokens of this person.")
@format_option(*LIST)
def list_(*, archive: str | None, person: str | None, form: Form) -> None:
    """List tokens: whose they are, their scopes, what the roles allow of these, when they end and were used last.

    A token itself is never shown again. The last use is right to an hour.
    """
    place = opened(archive)
    known = persons.load(place) or {}
    if person is not None and person not in known:
        raise NotFound(f"there is no person {person}; there are: {', '.join(known) or 'none'}")
    at, uses = now(), bearers.uses(place)
    rows = (
        {
            "person": owner.key,
            "name": own.name,
            "scopes": list(map(str, own.scopes)),
            "may": list(map(str, tokens.in_scope_order(tokens.within(own.scopes, owner.rights)))),
            "made": format_time(own.made),
            "expires": format_time(own.expires),
            "ended": own.is_over(at),
            "used": format_time(uses[own.mark].at) if own.mark in uses else None,
            "address": uses[own.mark].address if own.mark in uses else None,
        }
        for owner in known.values()
        if person in (None, owner.key)
        for own in owner.tokens
    )
    print_rows(form, rows, _lines)


def _lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        lacks = [scope for scope in row["scopes"] if scope not in row["may"]]
        without = f" (not {', '.join(lacks)}: the roles do not allow it)" if lacks else ""
        end = "ended" if row["ended"] else "ends"
        used = f"used {row['used']} from {row['address'] or '-'}" if row["used"] else "never used"
        yield f"{row['person']}: {row['name']}, {', '.join(row['scopes'])}{without}; {end} {row['expires']}; {used}"


@token.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@archive_option
@_person_option
def revoke(*, names: tuple[str, ...], archive: str | None, person: str | None) -> None:
    """Revoke tokens: within a second they open nothing any more.

    \b
    Examples:
      webarc-agent people token revoke laptop
      webarc-agent people token revoke analysis harvester --person ben
    """
    place = opened(archive)
    key = _key_of(place, person)
    persons.revoke_tokens(place, key, names)
    click.echo(f"revoked of {key}: {', '.join(dict.fromkeys(names))}")
