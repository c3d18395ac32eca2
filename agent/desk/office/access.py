"""`/access`: what readers may not see: withheld pages, closed publications, what lapses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from starlette.responses import Response

from agent.acts import withholding
from agent.desk import limits
from agent.desk.look import words
from agent.desk.office_views import AccessPage, RuleRow
from agent.desk.shared.visit import DeskVisit
from agent.desk.views import FormField
from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.gate import access_file
from webarcfs.gate.access_rules import Access, AccessRule


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the rules, and the form of a new one."""
    text = visit.desk.look_up(visit.language)
    fault = ""
    rules: tuple[AccessRule, ...] = ()
    try:
        rules = access_file.load(visit.desk.archive).rules
    except SettingsError as error:
        fault = str(error)
    answers = (
        (str(Access.BLOCK), text(words.msgid("that it is withheld"))),
        (str(Access.EXCLUDE), text(words.msgid("nothing, as if it were not there"))),
    )
    fields = (
        FormField(name="url", label=text(words.msgid("Address")), value=visit.typed("url", visit.parameter("url")),
                  kind="area", help=text(words.msgid(
                      "One a line, withheld in all spellings; with * at its end, all addresses that begin so."))),
        FormField(name="reason", label=text(words.msgid("Reason")), value=visit.typed("reason", ""),
                  help=text(words.msgid("Kept with the rule, for staff alone."))),
        FormField(name="public_text", label=text(words.msgid("Text for readers")), value=visit.typed("public_text", ""),
                  help=text(words.msgid("Told to readers where a page is said to be withheld; empty: nothing more."))),
        FormField(name="answer", label=text(words.msgid("Readers are told")), value=visit.typed("answer", "block"),
                  kind="choice", choices=answers),
        FormField(name="captured", label=text(words.msgid("Only captures of the time")),
                  value=visit.typed("captured", ""), placeholder="2026-01-01..2026-02-01",
                  help=text(words.msgid("CET, one end may be missing; empty: all captures."))),
        FormField(name="lapses", label=text(words.msgid("Ends by itself on")), value=visit.typed("lapses", ""),
                  placeholder="2030-01-01", help=text(words.msgid("Empty: it stays until it is lifted."))),
    )  # fmt: skip
    closed = tuple(
        (each.name, str(each.closed_for), 0)
        for each in visit.desk.settings().publications
        if each.closed_for is not None
    )
    view = AccessPage(
        rules=tuple(map(_row, reversed(_by_id(rules)))), closed=closed, fields=fields, state="", fault=fault
    )
    return visit.page(view)


def _by_id(rules: Iterable[AccessRule]) -> list[list[AccessRule]]:
    """Return the rules in groups: the spellings of an address share an id and all else, and are lifted together."""
    groups: dict[AccessRule, list[AccessRule]] = {}
    for rule in rules:
        groups.setdefault(replace(rule, key="" if rule.id else rule.key, url=""), []).append(rule)
    return list(groups.values())


def _row(rules: Sequence[AccessRule]) -> RuleRow:
    rule = rules[0]
    ends = ["" if each is None else format_time(each) for each in (rule.after, rule.before)]
    return RuleRow(
        id=rule.id,
        addresses=tuple(spelling.url or spelling.key for spelling in rules),
        access=str(rule.access),
        user=rule.user,
        span="..".join(ends) if any(ends) else "",
        lapses=rule.lapses,
        reason=rule.reason,
        public_text=rule.public_text,
        by=rule.by,
        at=rule.at,
        is_soon=rule.lapses is not None and rule.lapses < now() + timedelta(days=limits.DAYS),
    )


def withhold(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Add rules."""
    form = visit.form
    urls = [line.strip() for line in form.raw("url").splitlines() if line.strip()]
    answer = form.one("answer") if form.one("answer") in set(Access) else str(Access.BLOCK)
    added = withholding.withhold(
        visit.desk.archive, urls, visit.acting,
        reason=form.one("reason"), public_text=form.one("public_text"), answer=answer,
        captured=form.one("captured"), lapses=form.one("lapses"),
    )  # fmt: skip
    text = visit.desk.look_up(visit.language)
    for withheld in added:
        url = withheld.rules[0].url
        if withheld.count == 0:
            told = text(words.msgid("No archived address is %(url)s. It holds for what is captured later."))
            visit.desk.sessions.say(visit.session, "fault", told % {"url": url})
        elif withheld.count is None:
            visit.desk.sessions.say(visit.session, "done", words.msgid("Readers do not see it any more."))
        else:
            told = text(words.msgid("Readers do not see %(url)s any more. Archived addresses: %(count)s."))
            visit.desk.sessions.say(visit.session, "done", told % {"url": url, "count": withheld.count})
    return visit.led("/access")


def lift(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Take back what was withheld under an id."""
    lifted = withholding.lift(visit.desk.archive, visit.form.one("rule"), visit.acting)
    if any(withholding.rules_above(visit.desk.archive, rule) for rule in lifted):
        return visit.led("/access", words.msgid("Another rule still withholds it."), "fault")
    return visit.led("/access", words.msgid("Readers may see it again."))
