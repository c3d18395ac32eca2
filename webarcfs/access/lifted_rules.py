"""What was withheld and is lifted: the rules that access.aclj no longer has, by the history of catalogue.git.

Each change of the rules keeps a copy of access.aclj and access-reasons.json there. A rule of one copy that the next one
lacks was lifted by who made that commit, or had been taken out of the file by hand before. For staff alone: the reasons
are with the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from webarcfs.access.access_reasons import parse_reasons
from webarcfs.access.access_rules import AccessRule, AccessRules, load, parse, with_reasons
from webarcfs.archive.catalogue.catalogue import Catalogue, FileState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import SettingsError

#: How the commit of a lift begins; the id of the rule follows.
LIFT = "lift "


@dataclass(frozen=True, slots=True)
class LiftedRule:
    """A rule that holds no more. `by` lifted it at a time; empty: it was taken out of the file by hand before that.

    Without a time nobody has changed the rules since.
    """

    rule: AccessRule
    by: str
    at: datetime | None


class _Identity(NamedTuple):
    """What tells rules apart; a reason or a role may be added later."""

    id: str
    key: str
    access: str
    user: str


def lifted_rules(archive: Archive) -> Iterator[LiftedRule]:
    """Yield the rules that were lifted, those that were lifted last first.

    Copies that cannot be read are passed over. Raises SettingsError for faults of access.aclj as it is now, Damaged,
    and what the deadline of the thread raises.
    """
    newer = load(archive)
    change: FileState | None = None
    names = archive.access_rules.name, archive.access_reasons.name
    for state in Catalogue(archive).file_states(*names):
        if (rules := _rules_of(archive, state)) is not None:
            yield from _lifted_between(rules, newer, change)
            newer, change = rules, state


def _rules_of(archive: Archive, state: FileState) -> AccessRules | None:
    """Return the rules of a copy with their reasons; without these where they cannot be read. None: no rules."""
    text, reasons = (b"" if content is None else content for content in state.contents)
    with suppress(SettingsError, UnicodeDecodeError):
        rules = parse(text.decode("utf-8-sig"), str(archive.access_rules))
        with suppress(SettingsError, UnicodeDecodeError):
            known = parse_reasons(reasons.decode(), str(archive.access_reasons)) if reasons else {}
            return with_reasons(rules, known)
        return rules
    return None


def _lifted_between(rules: AccessRules, newer: AccessRules, change: FileState | None) -> Iterator[LiftedRule]:
    kept = {_identity(rule) for rule in newer.rules}
    for rule in rules.rules:
        if _identity(rule) not in kept:
            if change is None:
                yield LiftedRule(rule, "", None)
            else:
                is_lift = change.subject == f"{LIFT}{rule.id}"
                yield LiftedRule(rule, change.author if is_lift else "", change.time)


def _identity(rule: AccessRule) -> _Identity:
    return _Identity(rule.id if rule.by else "", rule.key, str(rule.access), rule.user)
