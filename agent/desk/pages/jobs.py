"""The pages of jobs: `/running`, the open jobs and steps as they are now, and `/report/<job>`, what became of one.

They show the orders that a job was given: from its folder while it is open, then from its report. A new order to an
open job is on the disk before the page answers.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from agent.catalogue import stepfolders
from agent.crawl import crawl_log, job_folder, job_orders
from agent.crawl.frontier import ShownView
from agent.crawl.job_folder import JobState, publication_of, step_of
from agent.crawl.job_orders import OrderWord
from agent.crawl.politeness import LONGEST_PAUSE
from agent.crawl.vocabulary import CUT
from agent.desk import localized
from agent.desk.theme import words
from agent.desk.views import (
    AskedAgain,
    CrawlEnd,
    JobCard,
    LackRow,
    OrderRow,
    ReportTable,
    ServersOfJob,
    StillMissing,
)
from agent.desk.visit import DeskVisit
from agent.operations import ordering, patching
from agent.reports import missing_urls, shown_pages, tables
from agent.reports.counted_urls import Lack, UrlSelection
from agent.reports.explanations import desk_advice_on, explain_end, explanation_of
from agent.reports.report import Missing, missing_now, most_rows, remarks_in
from agent.reports.tables import LogLine
from agent.service import agent_status, scheduler
from agent.service.agent_status import state_word
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordRow, opened
from webarcfs.archive.catalogue.record import OCCASION, PATCH, Record, is_import
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged, NotFound, WebarcError
from webarcfs.archive.model.metadata import RESOURCE_ROLE, format_time, now, parse_compact_time, parse_time
from webarcfs.archive.system import files
from webarcfs.web import language as languages

# == order rows =======================================================================================================


def rows(archive: Archive, job: str, language: str) -> tuple[OrderRow, ...]:
    """Return the orders of a job in their order; none where its report cannot be read."""
    folder = archive.jobs / job
    if folder.is_dir():
        with suppress(Damaged):
            known = job_folder.load_item(folder)
            return of_open(job_orders.describe_orders(folder), known.orders if known is not None else 0, language)
    with suppress(Damaged, OSError):
        return of_report(files.read_json(archive.reports / job / "summary.json") or {}, language)
    return ()


def of_open(given: list[dict[str, Any]], taken: int, language: str) -> tuple[OrderRow, ...]:
    """Return the orders of an open job, which took those up to a number."""
    return tuple(_row(order, language, is_taken=order["number"] <= taken) for order in given)


def of_report(summary: Mapping[str, Any], language: str) -> tuple[OrderRow, ...]:
    """Return the orders that a report has; older reports have no reasons."""
    return tuple(_row(order, language) for order in _told(summary))


def _told(summary: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    orders = summary.get("orders")
    yield from (order for order in orders if isinstance(order, dict)) if isinstance(orders, list) else ()


def _row(order: Mapping[str, Any], language: str, *, is_taken: bool = True) -> OrderRow:
    word, value = str(order.get("order", "")), str(order.get("value", ""))
    until = _time(value) if word == job_orders.OrderWord.DEADLINE else None
    return OrderRow(
        what=words.ORDERS.get(word, word),
        value=languages.moment(until, language) if until is not None else value,
        at=_time(str(order.get("at", ""))),
        by=str(order.get("by", "")),
        reason=str(order.get("reason", "")),
        is_taken=is_taken,
    )


def _time(text: str) -> datetime | None:
    with suppress(Damaged):
        return parse_time(text) if text else None
    return None


# == orders ===========================================================================================================


#: Seconds that a page waits for a job to take an order.
_SOON = 2.5
_DONE = {
    OrderWord.PAUSE: words.msgid("It is paused."), OrderWord.RESUME: words.msgid("It is resumed."),
    OrderWord.STOP: words.msgid("It fetches nothing more, and publishes what there is."),
    OrderWord.DISCARD: words.msgid("It ends without publishing."), OrderWord.DEADLINE: words.msgid("Its time is set."),
    OrderWord.EXCLUDE: words.msgid("The server is left out."),
    OrderWord.ADD: words.msgid("The addresses were added. The log names those that its settings leave out."),
    OrderWord.WAIT: words.msgid("The pause is set."),
}  # fmt: skip


def give(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Give an order. Raises FieldsRefused for one that makes no sense, Busy if another came meanwhile, NotFound."""
    folder = ordering.find(visit.desk.archive, path_params["job"])
    word = visit.form.one("word")
    if visit.form.token.state != str(job_orders.last(folder)):
        late = words.msgid("Somebody gave this job an order meanwhile. Nothing was done; this is how it is now.")
        raise visit.outdated(late)
    if word == OrderWord.DISCARD and visit.form.one("sure") != "yes":
        sure = words.msgid("A discarded job loses all that it fetched. Tick that you want this.")
        label = visit.said(words.msgid("Delete all that it fetched"))
        raise visit.refusal({"sure": (label, visit.said(sure))}, anchor=f"%s-{path_params['job'].replace('%', '%%')}")
    values = _values(visit, word, path_params["job"])
    is_run = ordering.state_of(folder).runs
    hosts = ordering.matching_hosts(folder, word, values)
    order = ordering.give(folder, word, values, visit.acting.name, visit.form.one("reason"))
    if not is_run and agent_status.running(visit.desk.archive) is None:
        message = words.msgid("The order was given. Nobody runs the job; it takes the order when it is resumed.")
    elif ordering.is_taken(folder, order, _SOON).startswith("given"):
        message = words.msgid("The order was given; the job takes it as soon as it can.")
    else:
        message = _DONE[order.word]
    return visit.led("/running", f"{visit.said(message)} {_meant(visit, hosts)}".rstrip())


def _meant(visit: DeskVisit, hosts: Sequence[str] | None) -> str:
    """Return which servers an order means; empty for an order about none, or where nobody knows."""
    if hosts is None:
        return ""
    if not hosts:
        return visit.said(words.msgid("The job asks no server of this name now."))
    more = len(hosts) - ordering.MOST_MATCHING
    names = ", ".join(hosts[: ordering.MOST_MATCHING]) + (f" (+{more})" if more > 0 else "")
    return visit.said(words.msgid("It means: %(servers)s."), servers=names)


def _values(visit: DeskVisit, word: str, job: str) -> tuple[str, ...]:
    """Return what was typed for an order. Raises FieldsRefused, in the language of the page."""
    typed = _TypedOrder(visit)
    values: tuple[str, ...] = ()
    if word == OrderWord.DEADLINE:
        values = (typed.deadline(),)
    elif word == OrderWord.EXCLUDE:
        values = (typed.host("exclude", words.msgid("Leave out a server")),)
    elif word == OrderWord.ADD:
        values = typed.addresses()
    elif word == OrderWord.WAIT:
        values = (typed.host("wait", words.msgid("Slow down a server")), typed.seconds())
    elif word not in set(OrderWord):
        raise visit.refusal({}, visit.said(words.msgid("Choose one of the orders.")))
    if len(visit.form.one("reason")) > ordering.LONGEST_REASON:
        sentence = visit.said(words.msgid("A reason has %(most)s characters at most."), most=ordering.LONGEST_REASON)
        typed.faults["reason"] = visit.said(words.msgid("Reason")), sentence
    if typed.faults:
        raise visit.refusal(typed.faults, visit.said(_NOT_GIVEN), anchor=f"%s-{job.replace('%', '%%')}")
    return values


_NOT_GIVEN = words.msgid("The order was not given. Please look at these fields:")


class _TypedOrder:
    """What was typed into the fields of an order, with what is wrong with it."""

    def __init__(self, visit: DeskVisit) -> None:
        self._visit = visit
        self.faults: dict[str, tuple[str, str]] = {}

    def _note(self, name: str, label: str, sentence: str) -> str:
        self.faults[name] = self._visit.said(label), sentence
        return ""

    def deadline(self) -> str:
        """Return the time that was picked, or the time or span that was typed."""
        picked, typed = self._visit.form.one("until"), self._visit.form.one("deadline")
        label = words.msgid("May fetch until")
        if picked and typed:
            both = words.msgid("Pick a time, or type how long: not both.")
            return self._note("deadline", words.msgid("May fetch for"), self._visit.said(both))
        if typed:
            with suppress(ValueError):
                return str(localized.value_of(validators.interval, typed, self._visit.language))
        with suppress(ValueError, OverflowError):
            at = localized.read_time(picked or typed)
            if at > now():
                return format_time(at)
            over = words.msgid("This time is over already. To end the job now, stop it.")
            return self._note("until" if picked else "deadline", label, self._visit.said(over))
        sentence = words.msgid("Pick a time, or type how long, such as 2 hours.")
        return self._note("until" if picked else "deadline", label, self._visit.said(sentence))

    def host(self, name: str, label: str) -> str:
        """Return a host."""
        typed = self._visit.form.one(name)
        with suppress(ValueError):
            pattern = str(validators.url_pattern(typed))
            if "/" not in pattern:
                return pattern
        return self._note(
            name, label, self._visit.said(words.msgid("Type the name of a server, such as www.example.org."))
        )

    def addresses(self) -> tuple[str, ...]:
        """Return addresses, as many as one order may add."""
        typed = self._visit.form.one("add")
        label = words.msgid("Fetch these, too")
        try:
            check = validators.list_of(validators.url)
            urls = localized.value_of(check, "\n".join(typed.split()), self._visit.language)
        except ValueError as error:
            self._note("add", label, str(error))
            return ()
        if not urls:
            self._note("add", label, localized.what_to_type(validators.url, self._visit.language))
        if len(urls) > ordering.MOST_URLS:
            sentence = words.msgid("One order adds %(most)s addresses at most.")
            self._note("add", label, self._visit.said(sentence, most=ordering.MOST_URLS))
        return tuple(urls)

    def seconds(self) -> str:
        """Return a number of seconds."""
        try:
            check = validators.number(0, LONGEST_PAUSE)
            return str(localized.value_of(check, self._visit.form.one("seconds"), self._visit.language))
        except ValueError as error:
            return self._note("seconds", words.msgid("Seconds between two requests"), str(error))


# == jobs =============================================================================================================


#: Rows of a table of a report, and pages that are named of those that a patch asks for.
_ROWS, _MOST_PAGES = 30, 5
#: The smallest sizes of the classes in the table by size, in bytes.
_BINS = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
_HEADINGS = {
    "statuses": words.msgid("By status"), "types": words.msgid("By type"), "sizes": words.msgid("By size"),
    "hosts": words.msgid("By server"),
    "resource_hosts": words.msgid("Hosts without pages, which only gave resources"),
    "left_out": words.msgid("Not archived, and why"),
}  # fmt: skip


def kind_of(job: str) -> str:
    """Return what a job is (a msgid): a crawl, an import, a patch, or a crawl on an occasion."""
    if job.endswith(PATCH):
        return words.msgid("asked again")
    if is_import(job):
        return words.msgid("import")
    return words.msgid("occasion") if job.endswith(OCCASION) else words.msgid("crawl")


def cards(visit: DeskVisit) -> Iterator[JobCard]:
    """Yield the open jobs."""
    for job in visit.desk.history().open:
        yield card(visit, job)


def cards_with_servers(visit: DeskVisit) -> Iterator[JobCard]:
    """Yield the open jobs with the servers that they ask."""
    for job in visit.desk.history().open:
        yield dataclasses.replace(card(visit, job), servers=_servers(visit, job))


#: Servers of a job that Running names; URLs of a job that are counted by server for a page; seconds for which that is
#: kept: counting reads all rows, a million in one to three seconds.
_MOST_SERVERS, _MOST_URLS, _SECONDS_KEPT = 30, 200_000, 10


def _servers(visit: DeskVisit, job: JobState) -> ServersOfJob | None:
    """Return the servers of a crawl, without any where too many URLs would be counted; None where nobody knows them."""
    archive = visit.desk.archive
    if is_import(job.job) or not job.urls:
        return None
    if sum(job.urls.values()) > _MOST_URLS:
        return ServersOfJob((), 0)

    def counted() -> ServersOfJob | None:
        with suppress(WebarcError, OSError):  # it has not begun, or is about to end
            hosts = ordering.hosts_now(archive, archive.jobs / job.job)
            rows = tuple(
                (host["host"], host["waiting"] + host["fetching"], urls_href(job.job, UrlSelection(host=host["host"])))
                for host in hosts[:_MOST_SERVERS]
            )
            return ServersOfJob(rows, len(hosts[_MOST_SERVERS:]))
        return None

    key = ("servers", job.job, job.orders, int(time.monotonic()) // _SECONDS_KEPT)
    return visit.desk.kept(key, counted)


def card(visit: DeskVisit, job: JobState) -> JobCard:
    """Return an open job as pages show it."""
    publication = job.publication or publication_of(job.job)
    given = job_orders.describe_orders(visit.desk.archive.jobs / job.job)
    return JobCard(
        job=job.job,
        name=name_of(job.job, visit.language),
        kind=kind_of(job.job),
        publication=publication,
        state=state_word(job),
        is_running=job.runs,
        reason=job.reason,
        again=job.again,
        done=job.done,
        known=job.known,
        documents=job.documents,
        bytes=job.bytes,
        speed=job.a_second if job.runs else 0.0,
        latest_end=_time(job.latest_end),
        held=job.held,
        urls=tuple((state, job.counted_urls[state]) for state in words.URLS if state in job.urls),
        unread=job.unread,
        views=tuple((state, job.views.get(state, 0)) for state in words.VIEWS) if job.views else (),
        orders=frozenset(map(str, ordering.words_for(job))),
        last_order=given[-1]["number"] if given else 0,
        given=of_open(given, job.orders, visit.language),
        asked_again=_asked_again(visit, job.job),
        typed=_typed(visit, job.job),
    )


def _asked_again(visit: DeskVisit, job: str) -> AskedAgain | None:
    """Return what a patch asks for again; None for other jobs, and where that cannot be read."""
    if not job.endswith(PATCH):
        return None
    with suppress(Damaged, OSError):
        definition = job_folder.load(visit.desk.archive.jobs / job)
        if definition is not None and definition.patch is not None:
            patch = definition.patch
            pages = tuple(
                (url, f"/missing?{urlencode({'url': url, 'crawl': patch.job})}") for url in patch.urls[:_MOST_PAGES]
            )
            return AskedAgain(
                name=name_of(patch.job, visit.language),
                href=f"/snapshot/{quote(patch.record, safe='')}",
                pages=pages,
                more=len(patch.urls[_MOST_PAGES:]),
            )
    return None


def _typed(visit: DeskVisit, job: str) -> Mapping[str, str]:
    """Return what was typed into the form of a job, where it comes back."""
    if not visit.is_typed or visit.path != f"/job/{job}/order":
        return {}
    return {name: visit.form.raw(name) for name in ("reason", "until", "deadline", "exclude", "add", "wait", "seconds")}


def name_of(job: str, language: str) -> str:
    """Return how people call a job: its publication, and when it began."""
    begun = begun_at(job)
    when = f", {languages.moment(begun, language)}" if begun is not None else ""
    return f"{publication_of(job)}{when}"


def begun_at(job: str) -> datetime | None:
    """Return when a job began, as its name says; None for a name without a time."""
    with suppress(Damaged):
        return parse_compact_time(job.partition("-")[0])
    return None


def coming(visit: DeskVisit, most: int = 1) -> list[tuple[str, datetime]]:
    """Return the publications that are due next, with their times."""
    desk = visit.desk
    past = desk.history()
    at = now()
    key = ("coming", desk.settings_state(), tuple(past.last.values()), tuple(job.job for job in past.open),
           int(at.timestamp()) // 60, most)  # fmt: skip

    def found() -> list[tuple[str, datetime]]:
        due = [
            (scheduler.next_due(publication, past.runs.get(publication.name, ()), at), publication.name)
            for publication in desk.settings().publications
            if not publication.retired
        ]
        return [(name, time) for time, name in sorted(due)[:most]]

    return desk.kept(key, found)


def steps(archive: Archive) -> Iterator[tuple[str, str, str, str]]:
    """Yield the steps that wait or run: words, the snapshot's page, its id, why it failed."""
    for name in stepfolders.waiting(archive):
        record, step = step_of(name) or ("", "")
        failure = stepfolders.failure(archive, name)
        yield (
            words.STEPS.get(step, step),
            f"/snapshot/{quote(record, safe='')}",
            record,
            failure.reason if failure else "",
        )


def describe_jobs(archive: Archive, jobs: tuple[JobState, ...]) -> dict[str, Any]:
    """Return the figures of the open jobs, for the events that a page follows."""
    return {
        "agent": agent_status.running(archive) is not None,
        "jobs": {
            job.job: {
                "state": state_word(job), "stage": job.stage, "done": job.done, "known": job.known,
                "documents": job.documents, "bytes": job.bytes, "held": job.held,
                "urls": job.counted_urls, "unread": job.unread,
                **{f"url-{state}": job.counted_urls.get(state, 0) for state in words.URLS},
                **{f"view-{state}": job.views.get(state, 0) for state in words.VIEWS},
                "share": min(100, 100 * job.done // job.known) if job.known else 0,
            }
            for job in jobs
        },
        "steps": asked(archive),
    }  # fmt: skip


def asked(archive: Archive) -> dict[str, str]:
    """Return the steps that wait or run, by snapshot: their names, those that failed with a mark."""
    steps_by_record: dict[str, list[str]] = {}
    for name in stepfolders.waiting(archive):
        record, step = step_of(name) or ("", "")
        mark = "" if stepfolders.failure(archive, name) is None else "!"
        steps_by_record.setdefault(record, []).append(f"{step}{mark}")
    return {record: " ".join(names) for record, names in steps_by_record.items()}


#: Records before a job of which one may have been entered for it.
_LOOKED_AT = 100


def record_of(visit: DeskVisit, job: str) -> RecordRow | None:
    """Return the row of the record of a job, which may have been entered before it, under another name; else None."""
    archive = visit.desk.archive
    catalogue = Catalogue(archive)
    state = catalogue.state()

    def find_id() -> str:
        if catalogue.has(job) and not catalogue.read(job)[0].job:
            return job
        earlier = (record_id for record_id in catalogue.ids(publication_of(job)) if record_id < job)
        near = islice(earlier, _LOOKED_AT)
        return next((record_id for record_id in near if catalogue.read(record_id)[0].job_name == job), "")

    key = ("record of a job", job, None if state is None else state.commit)
    record_id: str = visit.desk.kept(key, find_id)
    if not record_id:
        return None
    with opened(archive, catalogue) as records:
        return records.row(record_id)


# -- how a crawl ended, and what it lacks now --------------------------------------------------------------------------


#: What a crawl noted that pages show.
_MOST_NOTES = 20


def ends_of(visit: DeskVisit, job: str, record: Record | None) -> Iterator[CrawlEnd]:
    """Yield how a crawl ended early, with the bound that ended it, and what it noted; of an open job so far."""
    archive = visit.desk.archive
    for folder in (archive.reports / job, archive.jobs / job):
        with suppress(Damaged, OSError):
            known = job_folder.load_item(folder)
            if known is not None:
                texts = (*known.warnings[:_MOST_NOTES], known.reason)
                yield from (_end_of(visit, text, record) for text in texts if text)
                return


def _end_of(visit: DeskVisit, text: str, record: Record | None) -> CrawlEnd:
    explained = explain_end(text)
    if not explained:
        return CrawlEnd(text=text)
    bound = None
    if record is not None:
        bound = patching.bound_of(visit.desk.archive, visit.desk.settings(), record, text)
    if record is None or bound is None:
        return CrawlEnd(text=explained, word=text)
    then, now_is = (_value_of(visit, value) for value in (bound.then, bound.now))
    label = words.label_of_setting(bound.setting, visit.desk.look_up(visit.language))
    is_set_up = any(publication.name == record.publication for publication in visit.desk.settings().publications)
    href = f"/publications/{quote(record.publication, safe='')}#f-{bound.setting}" if is_set_up else ""
    return CrawlEnd(text=explained, word=text, setting=label, then=then, now=now_is, href=href, holds=bound.holds)


def _value_of(visit: DeskVisit, value: int | Interval) -> str:
    """Return a bound of a crawl as people read it."""
    if isinstance(value, Interval):
        return localized.interval_of(str(value), visit.language)
    return languages.size(value, visit.language) if value else visit.said(words.msgid("no limit"))


def still_missing(archive: Archive, job: str, lacks: Missing) -> StillMissing:
    """Return what a crawl lacks after its patches."""
    cut = [word for word in CUT if lacks.unwanted.get(word)]
    selection = UrlSelection(lack=Lack.UNWANTED, word=str(cut[0]) if len(cut) == 1 else "")
    return StillMissing(
        left=sum(lacks.unwanted[word] for word in cut),
        left_href=urls_href(job, selection),
        failed=sum(lacks.words.values()),
        failed_href=urls_href(job, UrlSelection(lack=Lack.MISSING)),
        patches=tuple((folder.name, begun_at(folder.name)) for folder in missing_urls.patches_of(archive, job)),
    )


# -- the report of a job -----------------------------------------------------------------------------------------------


def report(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show what became of a job. Raises NotFound, Damaged."""
    archive, job = visit.desk.archive, path_params["job"]
    folder = report_folder(archive, job)
    summary = files.read_json(folder / "summary.json") or {}

    def counted() -> tuple[ReportTable, ...]:
        return tuple(_tables(archive, job, summary.get("hosts") or (), visit.language))

    version = _version_of(archive, job)
    lacks = _lacks(visit, job, summary, version)
    pages, more_pages = visit.desk.kept(("shown", job, version), lambda: _first_shown(folder))
    record = record_of(visit, job)
    snapshot = "" if record is None else f"/snapshot/{quote(record.id, safe='')}"
    return visit.page(
        "report.html",
        name=name_of(job, visit.language),
        snapshot=snapshot,
        facts=list(_facts(summary, visit.language)),
        ends=list(ends_of(visit, job, None if record is None else Catalogue(archive).read(record.id)[0])),
        still=still_missing(archive, job, lacks),
        warnings=(
            *lacks.lines(),
            *(remark.text for remark in remarks_in(summary) if remark.is_warning),
        ),
        orders=of_report(summary, visit.language),
        tables=visit.desk.kept(("report", job, version, visit.language), counted),
        log=f"{snapshot}/log/{crawl_log.COMPRESSED}" if snapshot and (folder / crawl_log.COMPRESSED).exists() else "",
        missing=list(lack_rows(most_rows(lacks.rows, _ROWS), job)),
        lost=word_rows(job, lacks),
        job=job,
        shown=pages,
        more_shown=more_pages,
    )  # fmt: skip


def report_folder(archive: Archive, job: str) -> Path:
    """Return the folder of a report. Raises NotFound, also for a name that is none of a job."""
    folder = archive.reports / job
    if "/" in job or job.startswith(".") or not folder.is_dir():
        raise NotFound(f"there is no report of {job}")
    return folder


def _first_shown(folder: Path) -> tuple[list[ShownView], int]:
    """Return the first pages that a browser was to show, worst first, and how many more there are.

    There are none where their file cannot be read.
    """
    with suppress(Damaged):
        pages = shown_pages.worst_first(shown_pages.read(folder))
        return pages[:_ROWS], len(pages[_ROWS:])
    return [], 0


def lack_rows(rows: Iterable[tuple[str, str, int]], job: str) -> Iterator[LackRow]:
    """Yield the rows of the table of what is missing from pages of a crawl."""
    for host, word, urls in rows:
        href = urls_href(job, UrlSelection(lack=Lack.RESOURCE, host=host, word=word)) if host else ""
        yield LackRow(host, word, desk_advice_on(word) if word else "", urls, href)


def urls_href(job: str, selection: UrlSelection) -> str:
    """Return the path of the URLs behind a count of a report."""
    return f"/report/{quote(job, safe='')}/urls?{urlencode(selection.as_parameters())}"


def lacks_of(visit: DeskVisit, job: str, summary: Mapping[str, Any]) -> Missing:
    """Return what a crawl lacks now; nothing without a report. Raises what the thread's deadline raises."""
    archive = visit.desk.archive
    if not (archive.reports / job / "summary.json").exists():
        return Missing()
    return _lacks(visit, job, summary, _version_of(archive, job))


def _lacks(visit: DeskVisit, job: str, summary: Mapping[str, Any], version: tuple[int, tuple[str, ...]]) -> Missing:
    return visit.desk.kept(("missing", job, version), lambda: missing_now(visit.desk.archive, job, summary))


def _version_of(archive: Archive, job: str) -> tuple[int, tuple[str, ...]]:
    """Return what the figures of a report depend on: when it was written, and the patches of its crawl."""
    patches = tuple(folder.name for folder in missing_urls.patches_of(archive, job))
    return (archive.reports / job / "summary.json").stat().st_mtime_ns, patches


def word_rows(job: str, lacks: Missing) -> list[ReportTable]:
    """Return tables of what failed to come and of what was not wanted, by the word for why."""
    left = {word: urls for word, urls in lacks.unwanted.items() if word in CUT}
    unwanted = {word: urls for word, urls in lacks.unwanted.items() if word not in CUT}
    return [
        _table_of_words(job, heading, counts, lack)
        for heading, counts, lack in (
            (words.msgid("Failed to come, and why"), lacks.words, Lack.MISSING),
            (words.msgid("Left when the crawl ended, and why"), left, Lack.UNWANTED),
            (words.msgid("Known and not wanted, and why"), unwanted, Lack.UNWANTED),
        )
        if counts
    ]


def _table_of_words(job: str, heading: str, counts: Mapping[str, int], lack: Lack) -> ReportTable:
    whole = sum(counts.values()) or 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = tuple((word, explanation_of(word), urls, 100 * urls / whole, 0) for word, urls in ranked[:_ROWS])
    hrefs = {word: urls_href(job, UrlSelection(lack=lack, word=word)) for word, *_ in shown}
    return ReportTable(heading, shown, max(len(ranked) - _ROWS, 0), hrefs)


def size_text(least: int, below: int | None, language: str) -> str:
    """Return the bounds of sizes in words."""
    first = f"≥ {languages.size(least, language)}" if least or below is None else ""
    return " ".join(filter(None, (first, "" if below is None else f"< {languages.size(below, language)}")))


def _facts(summary: Mapping[str, Any], language: str) -> Iterator[tuple[str, str]]:
    """Yield what became of a job as people read it: what it is called (a msgid), and times, sizes and numbers."""
    for name in ("started", "finished"):
        if summary.get(name):
            at = _time(str(summary[name]))
            yield name, str(summary[name]) if at is None else languages.moment(at, language)
    if isinstance(summary.get("complete"), bool):
        yield "complete", languages.translate("yes" if summary["complete"] else "no", language)
    if isinstance(summary.get("bytes"), int):
        yield "size", languages.size(summary["bytes"], language)
    for name, count in (summary.get("arcs") or {}).items():
        yield name, languages.number(int(count), language)
    if shown := summary.get("shown"):
        yield "pages_shown_by_a_browser", languages.number(int(shown["pages"]), language)


def _counted(lines: Iterable[LogLine]) -> tuple[tables.Tables, dict[int, tuple[int, int]]]:
    """Return the tables of these lines, and documents and bytes by class of size."""
    sizes = dict.fromkeys(_BINS, (0, 0))
    log_tables = tables.Tables()
    for line in lines:
        log_tables.add(line)
        if line.archived:
            bin_ = max(bound for bound in _BINS if line.size >= bound)
            documents, size = sizes[bin_]
            sizes[bin_] = documents + 1, size + line.size
    return log_tables, sizes


def _tables(archive: Archive, job: str, ends: Sequence[Mapping[str, Any]], language: str) -> Iterator[ReportTable]:
    """Yield the tables of a job after its patches: by status, type, size, server, and what was left out.

    `ends` is what became of the hosts, as summary.json has it, with why one is incomplete. Those without pages have a
    table of their own.
    """
    try:
        log_tables, sizes = _counted(missing_urls.lines(archive, job))
    except (NotFound, Damaged):  # also where the log of a patch is: then of the crawl alone
        try:
            with crawl_log.reading(archive.reports / job) as log:
                log_tables, sizes = _counted(tables.parsed(log))
        except NotFound:
            return
    by_name = dict(log_tables.sorted())
    statuses = [(key, explanation_of(f"status {key}"), row.urls, row.bytes) for key, row in by_name["statuses"]]
    yield _table(job, "statuses", statuses, lambda key: UrlSelection(status=int(key)))
    types = [(key, "", row.urls, row.bytes) for key, row in by_name["types"]]
    yield _table(job, "types", types, lambda key: UrlSelection(mime=key, is_kept=True))
    classes = {
        size_text(0 if below else least, below, language): UrlSelection(is_kept=True, least=least, below=below)
        for least, below in zip(_BINS, (*_BINS[1:], None), strict=True)
    }
    by_size = [(text, "", *sizes[selection.least]) for text, selection in classes.items() if sizes[selection.least][0]]
    yield _table(job, "sizes", by_size, classes.__getitem__)
    resources = {end["host"] for end in ends if end.get("role") == RESOURCE_ROLE}
    reasons = {end["host"]: explain_end(end["reason"]) or end["reason"] for end in ends}
    ranks = {host: rank for rank, host in enumerate(reasons)}
    hosts = sorted(by_name["hosts"], key=lambda pair: ranks.get(pair[0], len(ranks)))
    for name, are_resources in (("hosts", False), ("resource_hosts", True)):
        of_role = [(key, row) for key, row in hosts if (key in resources) is are_resources]
        rows = [(key, reasons.get(key, ""), row.urls, row.bytes) for key, row in of_role]
        yield _table(job, name, rows, lambda key: UrlSelection(host=key))
    left_out = [(key, explanation_of(key), row.urls, row.bytes) for key, row in by_name["left_out"]]
    yield _table(job, "left_out", left_out, lambda key: UrlSelection(word=key, is_kept=False))


def _table(
    job: str, name: str, rows: list[tuple[str, str, int, int]], select: Callable[[str], UrlSelection]
) -> ReportTable:
    """Return a table; `select` returns the URLs that the row of a key counts."""
    whole = sum(count for _, _, count, _ in rows) or 1
    shown = tuple((key, meaning, count, 100 * count / whole, size) for key, meaning, count, size in rows[:_ROWS])
    hrefs = {key: urls_href(job, select(key)) for key, *_ in shown}
    return ReportTable(_HEADINGS[name], shown, max(len(rows) - _ROWS, 0), hrefs)
