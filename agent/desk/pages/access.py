"""The pages about who may see and do what: `/access`, `/people`, `/password`.

`/access` is what readers may not see: withheld pages, closed publications, what lapses. `/people` is who may do what,
and `/password` is for one's own password.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta

from starlette.responses import RedirectResponse, Response

from agent.desk import forms, localized, login
from agent.desk.pages import fields
from agent.desk.theme import words
from agent.desk.views import FormField
from agent.desk.visit import NO_STORE, DeskVisit
from agent.operations import withholding
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule
from webarcfs.access.lifted_rules import LiftedRule, lifted_rules
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import RIGHTS, Right, Role
from webarcfs.archive.config import validators
from webarcfs.archive.model.errors import SettingsError, TookTooLong
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.system import clocks
from webarcfs.web import language as languages

# == people ===========================================================================================================


#: The rights that the desk names; no page needs the others.
_SHOWN = tuple(right for right in Right if right is not Right.ADD)
_PASSWORD_HELP = words.msgid("At least %(count)s characters. Empty: it stays as it is. The person may change it.")


def show_people(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the persons, and the form of one."""
    text = visit.desk.look_up(visit.language)
    known = visit.desk.persons.all()
    chosen = visit.form.one("was") if visit.is_typed else visit.parameter("key")
    person = known.get(chosen)
    own_roles = person.roles if person is not None else ()
    members = (
        FormField(name="key", label=text(words.msgid("Short name")), value=visit.typed("key", chosen),
                  kind="told" if person is not None else "text",
                  fault=visit.fault("key"), help=text(words.msgid("Letters, digits, - and _; it logs in with this."))),
        FormField(name="name", label=text(words.msgid("Name")),
                  value=visit.typed("name", person.name if person else ""),
                  help=text(words.msgid("As records tell who did something."))),
        FormField(name="unix", label=text(words.msgid("Login name on this machine")),
                  value=visit.typed("unix", person.unix if person else ""),
                  fault=visit.fault("unix"),
                  help=text(words.msgid("For commands, and where a proxy tells who it is."))),
        FormField(name="password", label=text(words.msgid("New password")), value="", kind="password",
                  fault=visit.fault("password"),
                  help=visit.said(_PASSWORD_HELP, count=forms.PASSWORD_SHORTEST)),
    )  # fmt: skip
    return visit.page(
        "people.html",
        rows=list(known.values()),
        fields=members,
        chosen=person.key if person is not None else "",
        state=str(visit.desk.persons.state()),
        role_fault=visit.fault("roles"),
        ticked=set(visit.form.all("roles")) if visit.is_typed else set(own_roles),
        rights_of={role: [right for right in _SHOWN if right in RIGHTS[role]] for role in Role},
    )


def save(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Add or change a person."""
    _must_be_current(visit)
    form = visit.form
    key = form.one("was") or form.one("key")
    known = visit.desk.persons.all()
    if not form.one("was") and key in known:
        sentence = words.msgid("There is a person of that short name.")
        raise visit.refusal({"key": (visit.said(words.msgid("Short name")), visit.said(sentence))})
    roles = tuple(role for role in Role if role in form.all("roles"))
    if not roles:
        sentence = words.msgid("Choose a role.")
        raise visit.refusal({"roles": (visit.said(words.msgid("Roles")), visit.said(sentence))})
    password_hash = _hashed(visit) if form.raw("password") else ""
    person = Person(key, form.one("name") or key, roles, form.one("unix"), password_hash)
    _must_be_person(visit, person, known)
    people.save(visit.desk.archive, person, visit.acting)
    if password_hash:
        visit.desk.sessions.end_of(key)
    _say_who_lacks(visit)
    return visit.led("/people", words.msgid("The person was saved."))


def _say_who_lacks(visit: DeskVisit) -> None:
    """Say with the next page what nobody can do where a second person has to release what the first one checked."""
    known = people.load(visit.desk.archive) or {}
    if people.wants_two(visit.desk.settings()) and people.lacks_second(known.values()):
        text = words.msgid(
            "A publication wants two persons: whoever checks a crawl cannot release it, and nobody else may. "
            "Such a crawl waits until a second person may check or release."
        )
        visit.desk.sessions.say(visit.session, "fault", text)


def _must_be_person(visit: DeskVisit, person: Person, known: Mapping[str, Person]) -> None:
    """Raises FieldsRefused for a short name that is none, and for a login name that another person has."""
    if not people.is_key(person.key):
        sentence = words.msgid("Type letters, digits, - and _ alone, such as anna.")
        raise visit.refusal({"key": (visit.said(words.msgid("Short name")), visit.said(sentence))})
    owner = next((other for other in known.values() if person.unix and other.unix == person.unix), None)
    if owner is not None and owner.key != person.key:
        sentence = words.msgid("%(name)s has this login name.")
        label = visit.said(words.msgid("Login name on this machine"))
        raise visit.refusal({"unix": (label, visit.said(sentence, name=owner.name))})


def _hashed(visit: DeskVisit, anchor: str = "f-%s") -> str:
    """Return the hash of the password that was typed. Raises FieldsRefused."""
    if forms.PASSWORD_SHORTEST <= len(visit.form.raw("password")) <= forms.PASSWORD_LONGEST:
        return login.hashed(visit.form.raw("password"))
    sentence = words.msgid("A password has %(least)s to %(most)s characters; several words are best.")
    bounds = {"least": forms.PASSWORD_SHORTEST, "most": forms.PASSWORD_LONGEST}
    faults = {"password": (visit.said(words.msgid("New password")), visit.said(sentence, **bounds))}
    raise visit.refusal(faults, anchor=anchor)


def remove(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Remove a person; what it did stays in the records."""
    _must_be_current(visit)
    key = visit.form.one("was")
    people.remove(visit.desk.archive, key, visit.acting)
    visit.desk.sessions.end_of(key)
    _say_who_lacks(visit)
    return visit.led("/people", words.msgid("The person was removed."))


def _must_be_current(visit: DeskVisit) -> None:
    """Raises Busy where people.toml changed since the form was made."""
    if visit.form.token.state != str(visit.desk.persons.state()):
        message = words.msgid("The list of people was changed meanwhile. Nothing was saved; your input is still here.")
        raise visit.outdated(message)


def password(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form of one's own password."""
    return visit.page("password.html", has_password=bool(visit.person.password), shortest=forms.PASSWORD_SHORTEST)


def set_password(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Change one's own password; other sessions of the person end, and previews of this one."""
    desk, form = visit.desk, visit.form
    if visit.person.password and not login.matches(visit.person.password, form.raw("before")):
        sentence = words.msgid("The password until now is wrong.")
        faults = {"before": (visit.said(words.msgid("Password until now")), visit.said(sentence))}
        raise visit.refusal(faults, anchor="%s")
    if form.raw("password") != form.raw("again"):
        sentence = words.msgid("The two new passwords differ.")
        faults = {"again": (visit.said(words.msgid("New password, once more")), visit.said(sentence))}
        raise visit.refusal(faults, anchor="%s")
    password_hash = _hashed(visit, anchor="%s")
    people.set_password(desk.archive, visit.person.key, password_hash, visit.acting)
    desk.sessions.end_of(visit.person.key, but=visit.session)
    visit.session.password = password_hash
    response = visit.led("/password", words.msgid("The password was changed."))
    desk.set_cookie(response, desk.sessions.renew(visit.session))
    return response


def logout(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """End the session."""
    visit.desk.sessions.end(visit.session)
    response = RedirectResponse("/login", 303, dict(NO_STORE))
    response.delete_cookie(visit.desk.sessions.cookie, path="/")
    return response


def language(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Choose the language of the session."""
    wanted = visit.form.one("language")
    visit.session.language = wanted if wanted in ("en", "de") else ""
    back = visit.form.one("back")
    return visit.led(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/")


# == access ===========================================================================================================


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the rules, and the form of a new one."""
    text = visit.desk.look_up(visit.language)
    fault = fault_of_reasons = ""
    rules: tuple[AccessRule, ...] = ()
    try:
        known, fault_of_reasons = access_rules.load_with_fault(visit.desk.archive)
        rules = known.rules
    except SettingsError as error:
        fault = str(error)
    answers = (
        (str(Access.BLOCK), text(words.msgid("that it is withheld"))),
        (str(Access.EXCLUDE), text(words.msgid("nothing, as if it were not there"))),
    )
    members = (
        FormField(name="url", label=text(words.msgid("Address")), value=visit.typed("url", visit.parameter("url")),
                  kind="area", fault=visit.fault("url"), help=text(words.msgid(
                      "One a line, withheld in all spellings; with * at its end, all addresses that begin so."))),
        FormField(name="reason", label=text(words.msgid("Reason")), value=visit.typed("reason", ""),
                  fault=visit.fault("reason"),
                  help=text(words.msgid("Why, and who asked for it. For staff alone: no reader sees it."))),
        FormField(name="public_text", label=text(words.msgid("Text for readers")), value=visit.typed("public_text", ""),
                  fault=visit.fault("public_text"), help=text(words.msgid(
                      "Told to readers where a page is said to be withheld; empty: nothing more."))),
        FormField(name="answer", label=text(words.msgid("Readers are told")), value=visit.typed("answer", "block"),
                  kind="choice", choices=answers, fault=visit.fault("answer")),
        *(_day_field(visit, name, label, help_text) for name, (label, help_text) in _DAYS.items()),
    )  # fmt: skip
    closed = [
        (publication.name, localized.interval_text(publication.closed_for, visit.language))
        for publication in visit.desk.settings().publications
        if publication.closed_for is not None
    ]
    rows = [_row(group, visit.language) for group in _newest_first(_by_id(rules))]
    shows_lifted = visit.parameter("lifted") == "yes" and not fault
    lifted, is_cut = _lifted(visit) if shows_lifted else ((), False)
    return visit.page(
        "access.html", rules=rows, closed=closed, fields=members, fault=fault, fault_of_reasons=fault_of_reasons,
        lifted=lifted, shows_lifted=shows_lifted, is_cut=is_cut,
    )  # fmt: skip


#: Rules that were lifted and are listed, and seconds in which they are looked for.
_MOST_LIFTED, _SECONDS = 500, 6.0


def _lifted(visit: DeskVisit) -> tuple[list[tuple[LiftedRule, list[str]]], bool]:
    """Return what was withheld and is lifted, with all addresses of each, and whether there is more."""
    groups: dict[tuple[str, datetime | None], list[LiftedRule]] = {}
    is_cut = False
    with clocks.under(clocks.Deadline(_SECONDS)):
        try:
            for lifted in lifted_rules(visit.desk.archive):
                key = lifted.rule.id or lifted.rule.key, lifted.at
                if key not in groups and len(groups) == _MOST_LIFTED:
                    is_cut = True
                    break
                groups.setdefault(key, []).append(lifted)
        except TookTooLong:
            is_cut = True
    rows = [(group[0], [lifted.rule.url or lifted.rule.key for lifted in group]) for group in groups.values()]
    return rows, is_cut


def _newest_first(groups: Iterable[list[AccessRule]]) -> list[list[AccessRule]]:
    """Return groups of rules by when they were made; those that say no time come last."""
    return sorted(groups, key=lambda group: group[0].at, reverse=True)


def _by_id(rules: Iterable[AccessRule]) -> list[list[AccessRule]]:
    """Return the rules in groups: the spellings of an address share an id and all else, and are lifted together."""
    groups: dict[AccessRule, list[AccessRule]] = {}
    for rule in rules:
        groups.setdefault(replace(rule, key="" if rule.id else rule.key, url=""), []).append(rule)
    return list(groups.values())


#: Fields of a rule that have a day: label and help (msgids).
_DAYS = {
    "captured_from": (
        words.msgid("Captured from"),
        words.msgid("Only what was captured on this day or later, CET; empty: from the first on."),
    ),
    "captured_to": (
        words.msgid("Captured until"),
        words.msgid("Only what was captured until the end of this day, CET; empty: also what comes."),
    ),
    "lapses": (words.msgid("Ends by itself on"), words.msgid("Empty: it stays until it is lifted.")),
}


def _day_field(visit: DeskVisit, name: str, label: str, help_text: str) -> FormField:
    """Return the field of a day, with a picker."""
    typed = visit.typed(name, "")
    return FormField(
        name=name, label=visit.said(label), value=typed, kind=fields.day_kind(typed), help=visit.said(help_text),
        fault=visit.fault(name),
    )  # fmt: skip


def _row(rules: Sequence[AccessRule], language: str) -> tuple[AccessRule, list[str], str]:
    """Return a rule about an address in its spellings: the first of them, all addresses, and the span of captures."""
    rule = rules[0]
    first = "" if rule.after is None else _when(rule.after, language)
    last = "" if rule.before is None else _when(rule.before, language, is_end=True)
    addresses = [spelling.url or spelling.key for spelling in rules]
    return rule, addresses, f"{first} – {last}".strip() if first or last else ""


def _when(time: datetime, language: str, *, is_end: bool = False) -> str:
    """Return a day where a time is its first moment, or, as an end, the last of the day before."""
    own = time.astimezone(CET)
    if (own.hour, own.minute, own.second) != (0, 0, 0):
        return languages.moment(time, language)
    return languages.day(time - timedelta(days=1) if is_end else time, language)


def withhold(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Add rules. Raises FieldsRefused."""
    form = visit.form
    urls = [line.strip() for line in form.raw("url").splitlines() if line.strip()]
    faults: dict[str, tuple[str, str]] = {}
    try:
        if not urls:
            raise ValueError(localized.what_to_type(validators.url, visit.language))
        bare = "\n".join(url.removesuffix("*") for url in urls)
        localized.value_of(validators.list_of(validators.url), bare, visit.language)
    except ValueError as error:
        faults["url"] = visit.said(words.msgid("Address")), str(error)
    if not form.one("reason"):
        sentence = words.msgid("Type a reason: people will ask for it.")
        faults["reason"] = visit.said(words.msgid("Reason")), visit.said(sentence)
    answer = form.one("answer") or str(Access.BLOCK)
    if answer not in (Access.BLOCK, Access.EXCLUDE):
        sentence = localized.what_to_type(validators.boolean, visit.language)
        faults["answer"] = visit.said(words.msgid("Readers are told")), sentence
    if form.one("public_text") and answer == Access.EXCLUDE:
        sentence = words.msgid("Readers are told nothing of this page: leave it empty, or say that it is withheld.")
        faults["public_text"] = visit.said(words.msgid("Text for readers")), visit.said(sentence)
    first, last, lapses = (_typed_day(visit, name, label, faults) for name, (label, _) in _DAYS.items())
    if first is not None and last is not None and last < first:
        sentence = words.msgid("This day is before the first one.")
        faults["captured_to"] = visit.said(words.msgid("Captured until")), visit.said(sentence)
    if faults:
        raise visit.refusal(faults)
    end = "" if last is None else (last + timedelta(days=1)).isoformat()
    added = withholding.withhold(
        visit.desk.archive, urls, visit.acting,
        reason=form.one("reason"), public_text=form.one("public_text"), answer=answer,
        captured=f"{first or ''}..{end}" if first or last else "", lapses="" if lapses is None else lapses.isoformat(),
    )  # fmt: skip
    text = visit.desk.look_up(visit.language)
    for withheld in added:
        url = withheld.rules[0].url
        if withheld.count == 0:
            message = text(words.msgid("No archived address is %(url)s. It holds for what is captured later."))
            visit.desk.sessions.say(visit.session, "fault", message % {"url": url})
        elif withheld.count is None:
            visit.desk.sessions.say(visit.session, "done", words.msgid("Readers do not see it any more."))
        else:
            message = text(words.msgid("Readers do not see %(url)s any more. Archived addresses: %(count)s."))
            visit.desk.sessions.say(visit.session, "done", message % {"url": url, "count": withheld.count})
    return visit.led("/access")


def _typed_day(visit: DeskVisit, name: str, label: str, faults: dict[str, tuple[str, str]]) -> date | None:
    """Return the day of a field; None for an empty one, and for one with a fault, which is noted."""
    if not (typed := visit.form.one(name)):
        return None
    with suppress(ValueError, OverflowError):
        day = localized.read_day(typed)
        if date.min < day < date.max:
            return day
    sentence = words.msgid("“%(typed)s” is no day. Type one such as 2026-12-01.")
    faults[name] = visit.said(label), visit.said(sentence, typed=typed[:80])
    return None


def lift(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Take back what was withheld under an id."""
    lifted = withholding.lift(visit.desk.archive, visit.form.one("rule"), visit.acting)
    if any(withholding.rules_above(visit.desk.archive, rule) for rule in lifted):
        return visit.led("/access", words.msgid("Another rule still withholds it."), "fault")
    urls = ", ".join(rule.url or rule.key for rule in lifted)
    return visit.led("/access", visit.said(words.msgid("Readers may see it again: %(url)s"), url=urls))
