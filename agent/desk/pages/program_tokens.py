"""`/tokens`: the tokens by which programs act as a person over the network; made, shown once, and revoked.

Everybody has a list of their own. Who may change people sees those of all, and revokes them; others make theirs
themselves. Nobody sees a token again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from agent.desk import localized
from agent.desk.theme import words
from agent.desk.theme.who_may import refusal
from agent.desk.views import FormField
from agent.desk.visit import DeskVisit
from agent.operations import bearers
from agent.operations.bearers import TokenUse
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.tokens import Scope, Token
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Forbidden
from webarcfs.archive.model.metadata import now

#: How long a token may last, as the form offers it.
_LASTS = tuple(map(str, (Interval(30, "day"), tokens.LASTS, Interval(6, "month"), tokens.LONGEST)))


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token in the list. `scopes` are those that the roles allow, `lacks` the others; `use` is None before its first.

    `mark` tells it from another one of its name.
    """

    person: Person
    token: Token
    scopes: tuple[Scope, ...]
    lacks: tuple[Scope, ...]
    has_ended: bool
    use: TokenUse | None

    @property
    def mark(self) -> str:
        """What the form that revokes it is made for."""
        return self.token.mark


def rows_of(visit: DeskVisit) -> Iterator[TokenRow]:
    """Yield the tokens that a person may see: the own ones, then those of others for who may change people."""
    known, uses, at = visit.desk.persons.all(), bearers.uses(visit.desk.archive), now()
    owners = [known[visit.person.key]] if visit.person.key in known else []
    if visit.may(Right.PEOPLE):
        owners += [person for key, person in known.items() if key != visit.person.key]
    for person in owners:
        for token in person.tokens:
            held = tokens.within(token.scopes, person.rights)
            lacks = tuple(scope for scope in token.scopes if scope not in held)
            scopes = tokens.in_scope_order(held)
            yield TokenRow(person, token, scopes, lacks, token.is_over(at), uses.get(token.mark))


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the tokens, and the form of a new one."""
    return _page(visit)


def _page(visit: DeskVisit, secret: str = "") -> Response:
    """Return the page; once, with a new token."""
    text = visit.desk.look_up(visit.language)
    typed = visit.form.all("scopes") if visit.is_typed else (str(Scope.READ),)
    offered = tokens.in_scope_order(tokens.within(Scope, visit.rights))
    members = (
        FormField(name="name", label=text(words.msgid("Name of the token")), value=visit.typed("name", ""),
                  fault=visit.fault("name"),
                  help=text(words.msgid("Which program has it, such as laptop: letters, digits, - and _."))),
        FormField(name="scopes", label=text(words.msgid("What it is for")), kind="ticks", value="\n".join(typed),
                  choices=tuple((str(scope), text(words.SCOPES[scope])) for scope in offered),
                  fault=visit.fault("scopes"),
                  help=text(words.msgid("It can never do more than your roles allow."))),
        FormField(name="lasts", label=text(words.msgid("Ends after")), kind="choice",
                  value=visit.typed("lasts", str(tokens.LASTS)), fault=visit.fault("lasts"),
                  choices=tuple((lasts, localized.interval_of(lasts, visit.language)) for lasts in _LASTS),
                  help=text(words.msgid("A token that ended opens nothing. Make another one then."))),
    )  # fmt: skip
    return visit.page("tokens.html", rows=list(rows_of(visit)), fields=() if secret else members, secret=secret)


def make(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Make a token of one's own, and show it this once. Raises FieldsRefused."""
    form, at = visit.form, now()
    name, chosen = form.one("name"), [scope for scope in Scope if scope in form.all("scopes")]
    lasts = form.one("lasts") or str(tokens.LASTS)
    person = visit.desk.persons.all().get(visit.person.key, visit.person)
    faults = {}
    label = visit.said(words.msgid("Name of the token"))
    if not tokens.is_name(name):
        faults["name"] = label, visit.said(words.msgid("Type letters, digits, - and _ alone, such as laptop."))
    elif any(token.name == name and not token.is_over(at) for token in person.tokens):
        faults["name"] = (
            label,
            visit.said(words.msgid("You have a token of this name. Revoke it, or type another name.")),
        )
    if not chosen or not tokens.within(chosen, person.rights).issuperset(chosen):
        faults["scopes"] = visit.said(words.msgid("What it is for")), visit.said(words.msgid("Choose what it is for."))
    if lasts not in _LASTS:
        faults["lasts"] = visit.said(words.msgid("Ends after")), visit.said(words.msgid("Choose one of the list."))
    if faults:
        raise visit.refusal(faults)
    secret, _token = people.add_token(
        visit.desk.archive, visit.person.key, name, chosen, expires=_end(lasts, at), by=visit.acting
    )
    return _page(visit, secret)


def _end(lasts: str, at: datetime) -> datetime:
    return Interval.parse(lasts).after(at)


def revoke(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Revoke a token: one's own, or another's for who may change people. Raises Forbidden, FormOutdated."""
    key, name = visit.form.one("person"), visit.form.one("name")
    if key != visit.person.key and not visit.may(Right.PEOPLE):
        raise Forbidden(refusal(visit, Right.PEOPLE))
    person = visit.desk.persons.all().get(key)
    marks = {token.name: token.mark for token in person.tokens} if person is not None else {}
    if marks.get(name) != visit.form.token.state:
        raise visit.outdated(words.msgid("This token was revoked already. This is how the list is now."))
    people.revoke_tokens(visit.desk.archive, key, [name], visit.acting)
    return visit.led("/tokens", words.msgid("The token was revoked; it opens nothing any more."))
