"""`/new`: a capture beside the schedule: which publication, why, and it begins."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from agent.acts import entering, stepping
from agent.desk.look import words
from agent.desk.pages import fields, lines
from agent.desk.shared.visit import DeskVisit
from agent.desk.views import FormField, NewPage
from agent.service import agentlock
from webarcfs.archive.catalogue.fields import BY_NAME
from webarcfs.archive.catalogue.record import Occasion
from webarcfs.archive.catalogue.steps import Step
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import UsageError

#: Fields of a record that are set before it is fetched.
_FIELDS = ("remarks", "signature", "provenance", "project", "crawlerRemarks")


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form."""
    desk = visit.desk
    text = desk.look_up(visit.language)
    settings = desk.settings()
    known = desk.kept(("choices", desk.settings_state()), lambda: _choices(settings))
    chosen = visit.typed("publication", visit.parameter("publication"))
    first = (
        FormField(name="publication", label=text(words.msgid("Publication")), value=chosen, kind="choice",
                  choices=known),
        FormField(name="reason", label=text(words.msgid("Occasion")), value=visit.typed("reason", ""),
                  help=text(words.msgid("Why it is fetched now; empty for a regular capture."))),
        FormField(name="shift", label=text(words.msgid("The schedule")), value=visit.typed("shift", ""), kind="choice",
                  choices=(("", text(words.msgid("stays as it is"))),
                           ("yes", text(words.msgid("goes on from this capture"))))),
    )  # fmt: skip
    more = tuple(fields.of_field(visit, BY_NAME[name], visit.typed(name, "")) for name in _FIELDS)
    crawl = settings.crawl
    told = (("depth", str(crawl.depth)), ("wait", str(crawl.wait)), ("max_instances", str(crawl.max_instances)),
            ("robots", "yes" if crawl.robots else "no"), ("user_agent", crawl.user_agent))  # fmt: skip
    view = NewPage(
        publications=known,
        fields=(*first, *more),
        told=told,
        has_agent=agentlock.running(desk.archive) is not None,
        command=f"webarc-agent start --archive {desk.archive.root}",
    )
    return visit.page(view)


def _choices(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the publications as a form offers them: name, and what it is."""
    told = ((each.name, each.description or ", ".join(each.urls[:2])) for each in settings.publications)
    return tuple((name, f"{name} ({what})" if what else name) for name, what in told)


def start(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Enter the snapshot, and ask for its capture."""
    form = visit.form
    if not form.one("publication"):
        raise UsageError(visit.desk.said(words.msgid("Choose a publication."), visit.language))
    reason = form.one("reason")
    made = entering.enter(
        visit.desk.archive,
        visit.desk.settings(),
        form.one("publication"),
        visit.acting,
        occasion=Occasion.OCCASION if reason else Occasion.REGULAR,
        reason=reason,
        shift=form.one("shift") == "yes",
        changes={name: form.one(name) for name in _FIELDS if form.one(name)},
    )
    stepping.ask(visit.desk.archive, made.id, Step.CAPTURE, visit.acting)
    said = words.msgid("It was entered; the agent fetches it.")
    if agentlock.running(visit.desk.archive) is None:
        said = words.msgid("It was entered, and waits for an agent.")
    return visit.led(lines.href_of(made.id), said)
