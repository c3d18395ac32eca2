"""`/people`: who may do what, and `/password`: one's own password."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from agent.desk import limits
from agent.desk.login import passwords
from agent.desk.look import words
from agent.desk.office_views import PasswordPage, PeoplePage, PersonRow
from agent.desk.shared.visit import NO_STORE, DeskVisit
from agent.desk.views import FormField
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import RIGHTS, Role
from webarcfs.archive.model.errors import Busy, UsageError


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the persons, and the form of one."""
    text = visit.desk.look_up(visit.language)
    known = visit.desk.persons.all()
    chosen = visit.form.one("was") if visit.is_typed else visit.parameter("key")
    person = known.get(chosen)
    roles = tuple((str(each), text(words.ROLES[each])) for each in Role)
    fields = (
        FormField(name="key", label=text(words.msgid("Short name")), value=visit.typed("key", chosen),
                  kind="told" if person is not None else "text",
                  help=text(words.msgid("Letters, digits, - and _; it logs in with this."))),
        FormField(name="name", label=text(words.msgid("Name")),
                  value=visit.typed("name", person.name if person else ""),
                  help=text(words.msgid("As records tell who did something."))),
        FormField(name="role", label=text(words.msgid("Role")),
                  value=visit.typed("role", str(person.role) if person else ""), kind="choice", choices=roles,
                  help=text(words.msgid("What it may do; each person has one."))),
        FormField(name="unix", label=text(words.msgid("Login name on this machine")),
                  value=visit.typed("unix", person.unix if person else ""),
                  help=text(words.msgid("For commands, and where a proxy tells who it is."))),
        FormField(name="password", label=text(words.msgid("New password")), value="", kind="password",
                  help=text(words.msgid("Empty: it stays as it is. The person may change it."))),
    )  # fmt: skip
    rows = tuple(
        PersonRow(each.key, each.name, str(each.role), each.unix, bool(each.password), tuple(sorted(RIGHTS[each.role])))
        for each in known.values()
    )
    told = tuple((str(role), tuple(sorted(map(str, RIGHTS[role])))) for role in Role)
    view = PeoplePage(rows, fields, person.key if person is not None else "", str(visit.desk.persons.state()), told)
    return visit.page(view)


def save(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Add or change a person."""
    _must_be_current(visit)
    form = visit.form
    key = form.one("was") or form.one("key")
    known = visit.desk.persons.all()
    if not form.one("was") and key in known:
        raise UsageError(visit.desk.said(words.msgid("There is a person of that short name."), visit.language))
    if form.one("role") not in set(Role):
        raise UsageError(visit.desk.said(words.msgid("Choose a role."), visit.language))
    password = passwords.hashed(form.raw("password")) if form.raw("password") else ""
    person = Person(key, form.one("name") or key, Role(form.one("role")), form.one("unix"), password)
    people.save(visit.desk.archive, person, visit.acting)
    if password:
        visit.desk.sessions.end_of(key)
    return visit.led("/people", words.msgid("The person was saved."))


def remove(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Remove a person; what it did stays in the records."""
    _must_be_current(visit)
    key = visit.form.one("was")
    people.remove(visit.desk.archive, key, visit.acting)
    visit.desk.sessions.end_of(key)
    return visit.led("/people", words.msgid("The person was removed."))


def _must_be_current(visit: DeskVisit) -> None:
    """Raises Busy where people.toml changed since the form was made."""
    if visit.form.token.state != str(visit.desk.persons.state()):
        said = words.msgid("people.toml was changed meanwhile. Nothing was saved; what you typed is still here.")
        raise Busy(visit.desk.said(said, visit.language))


def password(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form of one's own password."""
    return visit.page(PasswordPage(bool(visit.person.password), limits.PASSWORD_SHORTEST))


def set_password(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Change one's own password; other sessions of the person end, and previews of this one."""
    desk, form = visit.desk, visit.form
    if visit.person.password and not passwords.matches(visit.person.password, form.raw("before")):
        raise UsageError(desk.said(words.msgid("The password until now is wrong."), visit.language))
    if form.raw("password") != form.raw("again"):
        raise UsageError(desk.said(words.msgid("The two new passwords differ."), visit.language))
    made = passwords.hashed(form.raw("password"))
    people.set_password(desk.archive, visit.person.key, made, visit.acting)
    desk.sessions.end_of(visit.person.key, but=visit.session)
    visit.session.password = made
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
