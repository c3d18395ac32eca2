"""The pages about who may see and do what: `/access`, `/people`, `/password`.

`/access` is what readers may not see: withheld pages, closed publications, what lapses. `/people` is who may do what,
and `/password` is for one's own password.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from agent.desk import forms, login
from agent.desk.theme import words
from agent.desk.views import FormField
from agent.desk.visit import NO_STORE, DeskVisit
from agent.operations import withholding
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import RIGHTS, Right, Role
from webarcfs.archive.model.errors import Busy, SettingsError, UsageError
from webarcfs.archive.model.metadata import format_time

# == people ===========================================================================================================


#: The rights that the desk names; no page needs the others.
_SHOWN = tuple(right for right in Right if right is not Right.ADD)


def show_people(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the persons, and the form of one."""
    text = visit.desk.look_up(visit.language)
    known = visit.desk.persons.all()
    chosen = visit.form.one("was") if visit.is_typed else visit.parameter("key")
    person = known.get(chosen)
    own_roles = person.roles if person is not None else ()
    fields = (
        FormField(name="key", label=text(words.msgid("Short name")), value=visit.typed("key", chosen),
                  kind="told" if person is not None else "text",
                  help=text(words.msgid("Letters, digits, - and _; it logs in with this."))),
        FormField(name="name", label=text(words.msgid("Name")),
                  value=visit.typed("name", person.name if person else ""),
                  help=text(words.msgid("As records tell who did something."))),
        FormField(name="unix", label=text(words.msgid("Login name on this machine")),
                  value=visit.typed("unix", person.unix if person else ""),
                  help=text(words.msgid("For commands, and where a proxy tells who it is."))),
        FormField(name="password", label=text(words.msgid("New password")), value="", kind="password",
                  help=text(words.msgid("Empty: it stays as it is. The person may change it."))),
    )  # fmt: skip
    return visit.page(
        "people.html",
        rows=list(known.values()),
        fields=fields,
        chosen=person.key if person is not None else "",
        state=str(visit.desk.persons.state()),
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
        raise UsageError(visit.desk.said(words.msgid("There is a person of that short name."), visit.language))
    roles = tuple(role for role in Role if role in form.all("roles"))
    if not roles:
        raise UsageError(visit.desk.said(words.msgid("Choose a role."), visit.language))
    password_hash = login.hashed(form.raw("password")) if form.raw("password") else ""
    person = Person(key, form.one("name") or key, roles, form.one("unix"), password_hash)
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
        message = words.msgid("people.toml was changed meanwhile. Nothing was saved; your input is still here.")
        raise Busy(visit.desk.said(message, visit.language))


def password(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form of one's own password."""
    return visit.page("password.html", has_password=bool(visit.person.password), shortest=forms.PASSWORD_SHORTEST)


def set_password(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Change one's own password; other sessions of the person end, and previews of this one."""
    desk, form = visit.desk, visit.form
    if visit.person.password and not login.matches(visit.person.password, form.raw("before")):
        raise UsageError(desk.said(words.msgid("The password until now is wrong."), visit.language))
    if form.raw("password") != form.raw("again"):
        raise UsageError(desk.said(words.msgid("The two new passwords differ."), visit.language))
    password_hash = login.hashed(form.raw("password"))
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
        rules = access_rules.load(visit.desk.archive).rules
    except SettingsError as error:
        fault = str(error)
    else:
        try:
            rules = access_rules.load_for_staff(visit.desk.archive).rules
        except SettingsError as error:
            fault_of_reasons = str(error)
    answers = (
        (str(Access.BLOCK), text(words.msgid("that it is withheld"))),
        (str(Access.EXCLUDE), text(words.msgid("nothing, as if it were not there"))),
    )
    fields = (
        FormField(name="url", label=text(words.msgid("Address")), value=visit.typed("url", visit.parameter("url")),
                  kind="area", help=text(words.msgid(
                      "One a line, withheld in all spellings; with * at its end, all addresses that begin so."))),
        FormField(name="reason", label=text(words.msgid("Reason")), value=visit.typed("reason", ""),
                  help=text(words.msgid("Why, and who asked for it. For staff alone: no reader sees it."))),
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
    closed = [
        (publication.name, str(publication.closed_for))
        for publication in visit.desk.settings().publications
        if publication.closed_for is not None
    ]
    rows = list(map(_row, reversed(_by_id(rules))))
    return visit.page(
        "access.html", rules=rows, closed=closed, fields=fields, fault=fault, fault_of_reasons=fault_of_reasons
    )


def _by_id(rules: Iterable[AccessRule]) -> list[list[AccessRule]]:
    """Return the rules in groups: the spellings of an address share an id and all else, and are lifted together."""
    groups: dict[AccessRule, list[AccessRule]] = {}
    for rule in rules:
        groups.setdefault(replace(rule, key="" if rule.id else rule.key, url=""), []).append(rule)
    return list(groups.values())


def _row(rules: Sequence[AccessRule]) -> tuple[AccessRule, list[str], str]:
    """Return a rule about an address in its spellings: the first of them, all addresses, and the span of captures."""
    rule = rules[0]
    ends = ["" if end is None else format_time(end) for end in (rule.after, rule.before)]
    addresses = [spelling.url or spelling.key for spelling in rules]
    return rule, addresses, "..".join(ends) if any(ends) else ""


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
            message = text(words.msgid("No archived address is %(url)s. It holds for what is captured later."))
            visit.desk.sessions.say(visit.session, "fault", message % {"url": url})
        elif withheld.count is None:
            visit.desk.sessions.say(visit.session, "done", words.msgid("Readers do not see it any more."))
        else:
            message = text(words.msgid("Readers do not see %(url)s any more. Archived addresses: %(count)s."))
            visit.desk.sessions.say(visit.session, "done", message % {"url": url, "count": withheld.count})
    return visit.led("/access")


def lift(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Take back what was withheld under an id."""
    lifted = withholding.lift(visit.desk.archive, visit.form.one("rule"), visit.acting)
    if any(withholding.rules_above(visit.desk.archive, rule) for rule in lifted):
        return visit.led("/access", words.msgid("Another rule still withholds it."), "fault")
    return visit.led("/access", words.msgid("Readers may see it again."))
