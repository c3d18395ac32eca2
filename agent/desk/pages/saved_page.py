"""`/save`: saves one page. The form, also filled by a bookmarklet or by a link of the reading room; then the result.

To ask for the form starts nothing, whatever is filled in; only the form itself does, with its token. `/save/<job>`
shows the job while it is open, and what came of it from its report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from agent.crawl import browser_check
from agent.crawl.job_folder import SavedPage
from agent.desk import localized
from agent.desk.pages import jobs, missing_pages
from agent.desk.theme import words
from agent.desk.views import FormField
from agent.desk.visit import DeskVisit, Problem
from agent.operations import ordering, saving
from agent.operations.saving import AskedPage, SaveState, UrlRefusal
from agent.service import agent_status
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordRow, opened
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.settings import Fetcher, Release
from webarcfs.archive.model.errors import NotFound
from webarcfs.web import language as languages

PATH = "/save"
_LED: Mapping[SaveState, str] = {
    SaveState.BEGUN: words.msgid("The page is being saved."),
    SaveState.RUNS: words.msgid("This page is being saved already. This is how far it is."),
    SaveState.RECENT: words.msgid("This page was saved a moment ago. This is what came of it."),
}
#: When readers see a saved page, by what its publication says of releases.
_READERS: Mapping[Release, str] = {
    Release.AUTOMATIC: words.msgid("Readers see the page as soon as it is saved."),
    Release.WHEN_CHECKED: words.msgid("Readers see the page once its checks have passed."),
    Release.BY_HAND: words.msgid("Readers see the page once somebody has released it."),
}


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the form, filled with the parameter `url`."""
    desk = visit.desk
    text = desk.look_up(visit.language)
    faults = visit.problem.faults if visit.problem is not None else {}
    form_fields = [
        FormField(
            name="url",
            label=text(words.msgid("Address of the page")),
            value=visit.typed("url", visit.parameter("url")),
            kind="address",
            placeholder="https://www.example.org/page",
            help=text(words.msgid("The page is saved with all that it needs to be shown. Its links are not followed.")),
            fault=faults.get("url", ""),
        ),
        FormField(
            name="description",
            label=text(words.msgid("Why it is saved")),
            value=visit.typed("description", ""),
            help=text(words.msgid("It stands in the description of the crawl. You may leave it empty.")),
            fault=faults.get("description", ""),
        ),
    ]
    if _has_browser(visit):
        usual = desk.settings().crawl.fetcher
        form_fields.append(
            FormField(
                name="fetcher",
                label=text(words.msgid("This page needs a browser")),
                value=visit.typed("fetcher", usual),
                kind="choice",
                choices=words.choices_of_setting("fetcher", map(str, Fetcher), text),
                help=text(words.msgid("A browser also gets what the scripts of a page ask for. It takes longer.")),
            )
        )
    return visit.page(
        "save.html",
        fields=form_fields,
        bookmarklet=_bookmarklet(desk.origin),
        most=saving.PER_HOUR,
        **_readers_to_come(visit),
        has_agent=agent_status.running(desk.archive) is not None,
        command=f"webarc-agent start --archive {desk.archive.root}",
    )


def _readers_to_come(visit: DeskVisit) -> dict[str, Any]:
    """Return when readers will see the page that is typed, and its embargo, in words."""
    typed = saving.read_url(visit.typed("url", visit.parameter("url")))
    settings = visit.desk.settings()
    publication = saving.publication_of(settings, "" if isinstance(typed, UrlRefusal) else typed)
    closed_for = publication.closed_for
    return {
        "readers": _READERS[Release(publication.release)],
        "embargo": "" if closed_for is None else localized.interval_text(closed_for, visit.language),
    }


def _has_browser(visit: DeskVisit) -> bool:
    """Return whether a browser is set up: its program is there."""
    settings = visit.desk.settings()
    key = ("browser program", visit.desk.settings_state())
    return visit.desk.kept(key, lambda: not browser_check.check_program(settings.browser).word)


def _bookmarklet(origin: str) -> str:
    """Return the link that opens the form with the address of the page at which it is clicked."""
    return f"javascript:void(location.href='{origin}{PATH}?url='+encodeURIComponent(location.href))"


def save(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Ask for a page to be saved. Raises UsageError, SettingsError, OSError."""
    form, settings = visit.form, visit.desk.settings()
    url = saving.read_url(form.raw("url"))
    if isinstance(url, UrlRefusal):
        return _refused(visit, path_params, url)
    description = saving.description_of(form.raw("description"))
    fetcher = saving.must_be_known(form.one("fetcher")) if _has_browser(visit) else ""
    warrant = asdict(visit.acting.warrant(Right.CAPTURE))
    page = SavedPage(url=url, by=visit.acting.name, description=description, **warrant)
    definition = saving.define(settings, page, fetcher="" if fetcher == settings.crawl.fetcher else fetcher)
    if saving.is_kept_out(definition):
        return _refused(visit, path_params, UrlRefusal.PRIVATE)
    asked = saving.ask(visit.desk.archive, definition)
    if not asked.job:
        return _put_off(visit, path_params, asked)
    message = _LED[asked.state]
    if asked.state is SaveState.BEGUN and agent_status.running(visit.desk.archive) is None:
        message = words.msgid("It was asked for, and waits for an agent.")
    return visit.led(f"{PATH}/{quote(asked.job, safe='')}", message)


def _refused(visit: DeskVisit, path_params: Mapping[str, str], why: UrlRefusal) -> Response:
    text = visit.desk.said(str(why), visit.language)
    return show(visit.with_problem(Problem(text, {"url": text})), path_params)


def _put_off(visit: DeskVisit, path_params: Mapping[str, str], asked: AskedPage) -> Response:
    """Say when the person may ask again."""
    if asked.again is None:
        text = visit.desk.said(words.TOO_MANY_WAIT, visit.language)
        return show(visit.with_problem(Problem(text, status=HTTPStatus.SERVICE_UNAVAILABLE)), path_params)
    when = languages.moment(asked.again, visit.language)
    text = visit.desk.said(words.SAVED_TOO_OFTEN, visit.language) % {"count": saving.PER_HOUR, "when": when}
    return show(visit.with_problem(Problem(text, status=HTTPStatus.TOO_MANY_REQUESTS)), path_params)


# == what became of it ================================================================================================


def result(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show the job of a page, or what came of it. Raises NotFound, Damaged."""
    archive, job = visit.desk.archive, path_params["job"]
    page = saving.page_of(archive, job)
    if page is not None:
        return visit.page(
            "saved_page.html",
            url=page.url,
            job=jobs.card(visit, ordering.state_of(archive.jobs / job)),
            has_agent=agent_status.running(archive) is not None,
            command=f"webarc-agent start --archive {archive.root}",
            **_NOTHING,
        )
    url = saving.url_saved_by(archive, job)
    if not url:
        raise NotFound(f"there is no page that {job} saves")
    return visit.page("saved_page.html", url=url, job=None, **{**_NOTHING, **_ended(visit, job, url)})


#: What a page of a job has that has not ended.
_NOTHING: Mapping[str, Any] = {
    "is_saved": False, "shown": "", "record": "", "report": "", "sentences": (),
    "again": "", "readers": "", "until": None,
}  # fmt: skip


def _ended(visit: DeskVisit, job: str, url: str) -> dict[str, Any]:
    """Return what came of a page: links to it and to its record, or why it did not come."""
    archive = visit.desk.archive
    lines = saving.lines_of(archive, job, url)
    last = lines[-1] if lines else None
    is_saved = last is not None and last.archived
    with opened(archive, Catalogue(archive)) as records:
        record = records.row(job)
    href = f"/snapshot/{quote(job, safe='')}"
    has_parts = record is not None and record.has_parts
    shown = f"{href}/preview?{urlencode({'url': last.url})}" if is_saved and has_parts and last is not None else ""
    return {
        "is_saved": is_saved,
        **(_readers_of(visit, record, last.url) if shown and record is not None and last is not None else {}),
        "shown": shown,
        "record": href if record is not None else "",
        "report": f"/report/{quote(job, safe='')}",
        "sentences": [] if is_saved else saving.why_not(lines),
        "again": f"{PATH}?{urlencode({'url': url})}",
    }


def _readers_of(visit: DeskVisit, record: RecordRow, url: str) -> dict[str, Any]:
    """Return whether readers see a saved page (a msgid), or the end of its embargo while that lasts."""
    if missing_pages.rule_on(visit, url) is not None:
        return {"readers": words.msgid("It is withheld from readers.")}
    if record.state is not RecordState.RELEASED:
        return {"readers": words.msgid("Readers see it once the crawl is released.")}
    until = missing_pages.readers_of(record).get("until")
    return {"until": until} if until is not None else {"readers": words.msgid("Readers see this page.")}
