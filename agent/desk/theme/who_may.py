"""Who may do what, in words for people of the desk: the role that an act needs, and the persons who have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.desk.theme import words
from agent.desk.theme.words import msgid
from agent.desk.visit import DeskVisit
from webarcfs.archive.catalogue.people import holders
from webarcfs.archive.catalogue.workflow import Right, Role, in_row, roles_with


def role_names(visit: DeskVisit, roles: Iterable[Role], last: str = msgid("and")) -> str:
    """Return the names of roles in a row: `archivist, reviewer and curator`. `last` is a msgid."""
    return _row(visit, [visit.desk.said(words.ROLES[role], visit.language) for role in roles], last)


def who_may(visit: DeskVisit, right: Right) -> str:
    """Return which role may do what the person may not, and who has it; empty for what the person may do."""
    if visit.may(right):
        return ""
    said = visit.desk.look_up(visit.language)
    names, more = holders(visit.desk.persons.all().values(), right, visit.person.key)
    names += [said(msgid("%(count)s more")) % {"count": more}] if more else []
    rest = said(msgid("%(names)s may do it: ask there.")) % {"names": _row(visit, names, msgid("and"))}
    needs = said(msgid("%(what)s: this needs the role %(roles)s."))
    needed = needs % {"what": said(words.RIGHTS[right]), "roles": role_names(visit, roles_with(right), msgid("or"))}
    return f"{needed} {rest if names else said(msgid('Nobody has it.'))}"


def refusal(visit: DeskVisit, right: Right) -> str:
    """Return why the person may not do something: the own roles, and who may."""
    own = visit.desk.said(msgid("%(name)s: %(roles)s."), visit.language)
    return (
        f"{own % {'name': visit.person.name, 'roles': role_names(visit, visit.person.roles)}} {who_may(visit, right)}"
    )


def waits_for(visit: DeskVisit, right: Right) -> str:
    """Return for which role a step waits that the person may not take."""
    said = visit.desk.look_up(visit.language)
    return said(msgid("waits for the role %(roles)s")) % {"roles": role_names(visit, roles_with(right), msgid("or"))}


def _row(visit: DeskVisit, names: Sequence[str], last: str) -> str:
    return in_row(names, visit.desk.said(last, visit.language))
