"""`/missing?url=…`, why a page is missing; `/report/<job>/urls?…`, the URLs behind a count of a report, also as CSV.

Both read the logs of crawls, which may have millions of lines: for some seconds, and they say what was not read then.
They decide nothing: a button of theirs is the form of a record that asks again for what its crawl did not get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from agent.crawl.job_folder import publication_of
from agent.desk.forms import ROWS
from agent.desk.pages import jobs, snapshots
from agent.desk.theme import words
from agent.desk.views import Button, CrawlOfUrl, FormField, NamedCrawl, UrlFateView
from agent.desk.visit import NO_STORE, DeskVisit
from agent.operations import patching
from agent.reports import counted_urls, url_fates
from agent.reports.counted_urls import Lack, UrlSelection, page_of
from agent.reports.explanations import desk_advice_on, explanation_of
from agent.reports.tables import LogLine
from agent.reports.url_fates import CrawlFate, Knowledge, PossibleSource, UrlSearch
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule
from webarcfs.archive.catalogue.catalogue import RecordRow, release_of
from webarcfs.archive.catalogue.record import PATCH
from webarcfs.archive.config import validators
from webarcfs.archive.model.errors import SettingsError, TookTooLong, UsageError, WebarcError
from webarcfs.archive.model.metadata import CommitTag, now
from webarcfs.archive.system import clocks
from webarcfs.room.pages.lists import page_in, way_through
from webarcfs.web.answering import StreamedAnswer
from webarcfs.web.table_files import MEDIA_TYPES, csv_pieces

# == what a log has of a URL ==========================================================================================


#: Seconds that logs are read for a page, and for what else it says of a URL.
_SECONDS, _FURTHER_SECONDS = 6.0, 4.0
_FOUND = {
    "L": words.msgid("A link on this page leads to it:"),
    "E": words.msgid("This page needs it:"),
    "R": words.msgid("This address redirects to it:"),
    "M": words.msgid("This sitemap or feed lists it:"),
}
_FOUND_ALONE = {
    "": words.msgid("It is a start address of the crawl."),
    "-": words.msgid("It is a start address of the crawl."),
    "L": words.msgid("It was named by a person, or which page led to it is not known."),
    "P": words.msgid("It is the robots.txt of a server."),
    "M": words.msgid("The crawl looked for it by itself, as a sitemap of its host."),
}


def view_of(line: LogLine) -> UrlFateView:
    """Return what a crawl did with a URL, as people read it."""
    sentences = [explanation_of(note) for note in line.notes]
    if not line.archived:
        word = line.reason if explanation_of(line.reason) else f"status {line.status}"
        sentences = [
            explanation_of(f"status {line.status}") if line.status > 0 else "",
            explanation_of(word),
            *sentences,
        ]
    hop = line.path[-1:]
    has_referrer = line.referrer.startswith("http")
    found = _FOUND.get(hop, _FOUND["L"]) if has_referrer else _FOUND_ALONE.get(hop, _FOUND_ALONE["L"])
    return UrlFateView(
        url=line.url,
        is_archived=line.archived,
        status=line.status,
        reason="" if line.archived else line.reason,
        sentences=tuple(dict.fromkeys(filter(None, sentences))),
        advice="" if line.archived else desk_advice_on(line.reason),
        found=found,
        referrer=line.referrer if has_referrer else "",
    )


# == why a page is missing ============================================================================================


#: Crawls that are named of those that saw a URL.
_MOST_CRAWLS = 20
#: Newer crawls that are named beside the one that asked for it.
_MOST_NEWER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _PatchOffer:
    """How a crawl gets a page: the button, or why there is none (a msgid), with where to go for that."""

    crawl: NamedCrawl
    button: Button | None
    refusal: str = ""
    href: str = ""
    is_running: bool = False


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the field, and what became of the URL that it has."""
    typed, job = visit.parameter("url"), visit.parameter("crawl")
    values: dict[str, Any] = {"url": typed, "job": job, "fault": "", "is_asked": bool(typed)}
    if typed:
        try:
            url = validators.start_url(typed)
        except UsageError:
            values |= {"fault": words.msgid("Type the address of a page, such as https://www.example.org/page.")}
        else:
            values |= _values_of(visit, url, job)
    return visit.page("missing_page.html", **{**_NOTHING, **values})


_NOTHING: Mapping[str, Any] = {
    "main": None, "redirects": (), "others": (), "more_crawls": 0, "sources": None, "without": (), "unread": 0,
    "older": 0, "damaged": 0, "rule": None, "readers": "", "until": None, "preview": "", "offer": None, "captured": (),
    "named": None, "fates": (), "newer": (), "was_asked": False, "this_page": "",
}  # fmt: skip


def _values_of(visit: DeskVisit, url: str, job: str) -> dict[str, Any]:
    archive = visit.desk.archive
    with clocks.under(clocks.Deadline(_SECONDS)):
        search = url_fates.search_crawls(archive, url, first=job)
    fate = next((fate for fate in search.fates if fate.job == job), None)
    newer: Sequence[CrawlFate] = ()
    if fate is None and not (job and job in search.without):
        fate = url_fates.newest_that_knows(search.fates)
        newer = url_fates.newer_than(search.fates, fate.job) if fate is not None else []
    values: dict[str, Any] = {
        "url": url, "unread": search.unread, "older": search.older, "damaged": search.damaged,
        "rule": rule_on(visit, url),
        "named": _named(visit, job) if job and fate is None else None,
        "newer": [_crawl_of_url(visit, later, url) for later in newer[:_MOST_NEWER]],
    }  # fmt: skip
    asked = fate.job if fate is not None else job
    values["this_page"] = path_of(url, asked) if asked else f"/missing?{urlencode({'url': url})}"
    others = [other for other in search.fates if other is not fate]
    values["others"] = [_crawl_of_url(visit, other, url) for other in others[:_MOST_CRAWLS]]
    values["more_crawls"] = len(others[_MOST_CRAWLS:])
    if fate is not None:
        values |= _values_of_fate(visit, search, fate)
    if fate is None or not fate.main.archived:
        values |= _beside(visit, url, has_line=fate is not None)
    if fate is None:
        values["offer"] = _offer_of_source(visit, job, values["sources"] or (), url)
    return values


def _values_of_fate(visit: DeskVisit, search: UrlSearch, fate: CrawlFate) -> dict[str, Any]:
    archive, main = visit.desk.archive, fate.main
    with clocks.under(clocks.Deadline(_FURTHER_SECONDS)):
        redirects = url_fates.follow_redirects(archive, fate.job, main)
    publication = publication_of(fate.job)
    newer = [job for job in search.without if publication_of(job) == publication and job > fate.job]
    row = jobs.record_of(visit, fate.job)
    return {
        "main": _crawl_of_url(visit, fate, search.url),
        "fates": [view_of(line) for line in fate.lines],
        "redirects": [view_of(line) for line in redirects],
        "was_asked": fate.knowledge is Knowledge.ASKED,
        "without": [_named(visit, job) for job in newer[:_MOST_NEWER]],
        "preview": f"{snapshots.href_of(row.id)}/preview?{urlencode({'url': main.url})}"
        if row is not None and main.archived else "",
        "offer": None if main.archived else _offer(visit, fate.job, main.url),
        **(readers_of(row) if row is not None and main.archived else {}),
    }  # fmt: skip


def _beside(visit: DeskVisit, url: str, *, has_line: bool) -> dict[str, Any]:
    """Return where else a page is, and where no crawl saw it, which publications could ask for it."""
    archive = visit.desk.archive
    captured: Sequence[datetime] = ()
    sources: Sequence[PossibleSource] | None = None
    with clocks.under(clocks.Deadline(_FURTHER_SECONDS)):
        with suppress(WebarcError, OSError):
            captured = [CommitTag.parse(tag).crawl_time for tag in url_fates.captures_of(archive, url)]
        if not has_line:
            with suppress(TookTooLong):
                last = visit.desk.history().last
                sources = url_fates.possible_sources(archive, visit.desk.settings(), last, url)
    return {
        "captured": captured,
        "sources": None if sources is None else [
            (source, explanation_of(source.reason), desk_advice_on(source.reason)) for source in sources
        ],
    }  # fmt: skip


def rule_on(visit: DeskVisit, url: str) -> AccessRule | None:
    """Return the rule that withholds a page from readers now; without its reason where the reasons cannot be read."""
    with suppress(SettingsError, OSError):
        rules, _ = access_rules.load_with_fault(visit.desk.archive)
        rule = rules.find(url, "", now(), now())
        return rule if rule is not None and rule.access is not Access.ALLOW else None
    return None


def readers_of(row: RecordRow) -> dict[str, Any]:
    """Return whether readers see a crawl (a msgid if not), and from when on."""
    is_released, until = release_of(row.state, held=False, closed_for=row.closed_for, captured=row.date)
    if not is_released:
        return {"readers": words.msgid("Readers do not see this crawl: it is not released.")}
    return {"until": until if until is not None and now() < until else None}


def _named(visit: DeskVisit, job: str, row: RecordRow | None = None) -> NamedCrawl:
    """Return how a crawl is named, and where its page is."""
    row = row or jobs.record_of(visit, job)
    publication = publication_of(job)
    is_known = any(known.name == publication for known in visit.desk.settings().publications)
    name, href = jobs.name_of(job, visit.language), ""
    if row is not None:
        name, href = snapshots.name_of(row, visit.language), snapshots.href_of(row.id)
    elif (visit.desk.archive.reports / job).is_dir() and "/" not in job:
        href = f"/report/{quote(job, safe='')}"
    return NamedCrawl(
        name=name,
        href=href,
        publication=publication,
        publication_href=f"/publications/{quote(publication, safe='')}" if is_known else "",
    )


def _crawl_of_url(visit: DeskVisit, fate: CrawlFate, url: str) -> CrawlOfUrl:
    return CrawlOfUrl(job=fate.job, crawl=_named(visit, fate.job), href=path_of(url, fate.job), fate=view_of(fate.main))


def path_of(url: str, job: str) -> str:
    """Return the path of the page that says what a crawl did with a URL; without a job, what the newest ones did."""
    return f"/missing?{urlencode({'url': url} | ({'crawl': job} if job else {}))}"


def _offer(visit: DeskVisit, job: str, url: str) -> _PatchOffer | None:
    """Return how a crawl gets a page; None without a record."""
    row = jobs.record_of(visit, job)
    if row is None:
        return None
    return offer_of(visit, row, snapshots.patch_button(visit, row, url))


def offer_of(visit: DeskVisit, row: RecordRow, button: Button | None) -> _PatchOffer:
    """Return the button of a patch, or why there is none."""
    publication = publication_of(row.id)
    is_running = any(open_job.job.endswith(f"-{publication}{PATCH}") for open_job in visit.desk.history().open)
    crawl = _named(visit, row.id, row)
    judged = snapshots.patch_refusal(visit, row.id)
    if judged is None:
        refusal = "" if button is not None else words.msgid("Your role may not have crawls fetch anything.")
        return _PatchOffer(crawl=crawl, button=button, refusal=refusal, is_running=is_running)
    refusal, newer = judged
    href = snapshots.href_of(newer or row.id)
    return _PatchOffer(
        crawl=crawl, button=None, refusal=snapshots.PATCH_REFUSALS[refusal], href=href, is_running=is_running
    )


def _offer_of_source(
    visit: DeskVisit, job: str, sources: Sequence[tuple[Any, str, str]], url: str
) -> _PatchOffer | None:
    """Return how a crawl gets a page that it never saw: the one that is named, or the newest of a publication."""
    last = visit.desk.history().last
    newest = (last[source.publication] for source, _, _ in sources if source.publication in last)
    name = job or next(newest, "")
    return _offer(visit, name, url) if name else None


# == the URLs of a count ==============================================================================================


_CSV_COLUMNS = ("url", "status", "word", "meaning", "archived", "type", "bytes", "page")
_LACKS = {
    Lack.RESOURCE: words.msgid("Embedded resources that pages lack"),
    Lack.MISSING: words.msgid("All that failed to come"),
    Lack.UNWANTED: words.msgid("Pages that were known and not wanted"),
}


def list_urls(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show the URLs of a count. Raises NotFound, Damaged, UsageError."""
    archive, job = visit.desk.archive, _known_job(visit, path_params)
    is_open = not (archive.reports / job).is_dir()
    selection = _selection(visit)
    first = (page_in(visit.parameter("page")) - 1) * ROWS
    with clocks.under(clocks.Deadline(_SECONDS)):
        urls = page_of(archive, job, selection, first, ROWS)
    parameters = selection.as_parameters()
    pages, _ = way_through(
        first // ROWS + 1, urls.total, ROWS, lambda page: visit.with_parameters(page=page if page > 1 else None)
    )
    row = None if is_open else jobs.record_of(visit, job)
    offer = None
    if row is not None and urls.total and selection.is_kept is not True:
        offer = offer_of(visit, row, snapshots.patch_button(visit, row, selection=parameters))
    here = f"/report/{quote(job, safe='')}/urls"
    return visit.page(
        "url_list.html",
        name=jobs.name_of(job, visit.language),
        report=f"/report/{quote(job, safe='')}" if not is_open else "",
        running=f"/running#{quote(job, safe='')}",
        crawl=snapshots.href_of(row.id) if row is not None else "",
        chosen=list(_chosen(visit, selection)),
        rows=[(view_of(line), line, path_of(line.url, "" if is_open else job)) for line in urls.rows],
        pages=pages,
        total=urls.total,
        read=urls.read,
        is_cut=urls.is_cut,
        offer=offer,
        most=patching.MOST_URLS,
        csv=f"{here}.csv?{urlencode(parameters)}",
        list_path=here,
        filters=_filters(visit, selection),
        kept=[(name, value) for name, value in parameters.items() if name not in _FIELDS],
    )


#: Parameters that the form has fields for.
_FIELDS = ("host", "word", "status", "type")


def _filters(visit: DeskVisit, selection: UrlSelection) -> tuple[FormField, ...]:
    text = visit.desk.look_up(visit.language)
    values = selection.as_parameters()
    labels = (words.msgid("Host"), words.msgid("Word of the log"), words.msgid("Status"), words.msgid("Type"))
    return tuple(
        FormField(name=name, label=text(label), value=values.get(name, ""))
        for name, label in zip(_FIELDS, labels, strict=True)
    )


def _chosen(visit: DeskVisit, selection: UrlSelection) -> Iterator[tuple[str, str, str]]:
    """Yield what a list is of: a heading, a value, and what that means (msgids, but for the value)."""
    if selection.lack is not None:
        yield _LACKS[selection.lack], "", ""
    if selection.word:
        yield words.msgid("Why"), selection.word, explanation_of(selection.word)
    if selection.status is not None:
        yield words.msgid("Status"), str(selection.status), explanation_of(f"status {selection.status}")
    if selection.host:
        yield words.msgid("Host"), selection.host, ""
    if selection.mime:
        yield words.msgid("Type"), selection.mime, ""
    if selection.least or selection.below is not None:
        yield words.msgid("Size"), jobs.size_text(selection.least, selection.below, visit.language), ""
    if selection.is_kept is not None:
        yield (words.msgid("Archived") if selection.is_kept else words.msgid("Not archived")), "", ""


def urls_as_csv(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Return all URLs of a count as CSV, as the log is read. Raises NotFound, Damaged, UsageError."""
    job = _known_job(visit, path_params)
    lines = counted_urls.chosen(visit.desk.archive, job, _selection(visit))
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="urls.csv"'}
    text = visit.desk.look_up(visit.language)
    return StreamedAnswer(
        csv_pieces(_CSV_COLUMNS, _csv_rows(lines, text)), headers=headers, media_type=MEDIA_TYPES["csv"]
    )


def _csv_rows(lines: Iterator[LogLine], text: Callable[[str], str]) -> Iterator[Sequence[object]]:
    for line in lines:
        word = "" if line.archived else line.reason
        meaning = text(explanation_of(word)) if word else ""
        yield (line.url, line.status, word, meaning, line.archived, line.mime.strip("-"), line.size,
               line.referrer.strip("-"))  # fmt: skip


def _selection(visit: DeskVisit) -> UrlSelection:
    try:
        return UrlSelection.of_parameters({name: visit.parameter(name) for name in visit.parameters()})
    except UsageError:
        text = words.msgid("This address names no list of URLs. Begin with the counts of the report.")
        raise UsageError(visit.desk.said(text, visit.language)) from None


def _known_job(visit: DeskVisit, path_params: Mapping[str, str]) -> str:
    """Return a job that has a report, or is open. Raises NotFound."""
    job, archive = path_params["job"], visit.desk.archive
    if "/" not in job and not job.startswith(".") and (archive.jobs / job).is_dir():
        return job
    return jobs.report_folder(archive, job).name
