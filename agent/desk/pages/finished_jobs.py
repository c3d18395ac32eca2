"""`/running`: what runs, what comes next, and what the jobs brought that ended last; Today shows some of these, too.

What ended is read from the newest reports: result, documents, bytes, duration, failures, and why. It is kept until
another report comes, or the catalogue changes: a report is there before the record of its crawl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from agent.crawl import job_folder
from agent.desk.pages import jobs, snapshots
from agent.desk.theme import words
from agent.desk.views import FinishedJob
from agent.desk.visit import DeskVisit
from agent.pipeline.domain_run import ARC_COUNTS
from agent.reports import url_fates
from agent.reports.counted_urls import Lack, UrlSelection
from agent.reports.explanations import explain_end, explanation_of
from agent.reports.report import Missing, hosts_in, missing_in
from agent.service import agent_status
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordRow
from webarcfs.archive.catalogue.record import is_import
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import parse_time
from webarcfs.web import language as languages

#: Jobs that Running shows of those that ended last.
MOST = 10
_COMPLETE = words.msgid("complete"), "●"
_LACKING = words.msgid("complete but for what failed"), "◐"
_INCOMPLETE = words.msgid("incomplete"), "▲"
_EMPTY = words.msgid("empty"), "∅"
_IMPORTED = words.msgid("imported"), "●"
_UNKNOWN = words.msgid("not known"), "?"


def running(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show what runs."""
    archive = visit.desk.archive
    return visit.page(
        "running.html",
        jobs=list(jobs.cards_with_servers(visit)),
        publications={publication.name for publication in visit.desk.settings().publications},
        steps=list(jobs.steps(archive)),
        coming=jobs.coming(visit, 10),
        finished=newest(visit),
        has_agent=agent_status.running(archive) is not None,
        command=f"webarc-agent start --archive {archive.root}",
    )


def newest(visit: DeskVisit, most: int = MOST) -> list[FinishedJob]:
    """Return the jobs that ended last, the newest first."""
    archive = visit.desk.archive
    state = Catalogue(archive).state()  # a record follows its report
    commit = None if state is None else state.commit
    key = ("finished", archive.reports.stat().st_mtime_ns, commit, most, visit.language)
    return visit.desk.kept(key, lambda: _newest(visit, most))


def _newest(visit: DeskVisit, most: int) -> list[FinishedJob]:
    return [
        _finished(visit, job, summary, jobs.record_of(visit, str(summary.get("patches") or job)))
        for job, summary in _summaries(visit, most)
    ]


def read_ended(visit: DeskVisit, most: int) -> Iterator[FinishedJob]:
    """Yield the same as their reports are read, for lists of any length: without the paths of their crawls."""
    for job, summary in _summaries(visit, most):
        yield _finished(visit, job, summary, None)


def _summaries(visit: DeskVisit, most: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for job in url_fates.report_names(visit.desk.archive)[:most]:
        yield job, url_fates.summary_of(visit.desk.archive, job)


def _finished(visit: DeskVisit, job: str, summary: Mapping[str, Any], record: RecordRow | None) -> FinishedJob:
    lacks = missing_in(summary)
    failures = sum(lacks.words.values())
    arcs = {name: _figure(summary.get("arcs"), name) for name in ARC_COUNTS}
    word, sign = _result_of(job, summary, lacks)
    main = max(lacks.words, key=lambda name: lacks.words[name], default="")
    reason, host = _reason_of(visit, job, summary)
    ended = explain_end(reason)
    return FinishedJob(
        job=job,
        name=jobs.name_of(job, visit.language),
        kind=jobs.kind_of(job),
        href=f"/report/{quote(job, safe='')}",
        record="" if record is None else snapshots.href_of(record.id),
        number=0 if record is None else record.number,
        result=word,
        sign=sign,
        is_whole=word in (_COMPLETE[0], _IMPORTED[0]),
        why=ended or (explanation_of(main) if main else ""),
        host_reason="" if ended or not reason else f"{host}: {reason}" if host else reason,
        documents=arcs["added"] + arcs["changed"] + arcs["unchanged"],
        added=arcs["added"],
        changed=arcs["changed"],
        removed=arcs["removed"],
        bytes=_figure(summary, "bytes"),
        duration=_duration(summary, visit.language),
        failures=failures,
        failures_href=jobs.urls_href(job, UrlSelection(lack=Lack.MISSING)) if failures else "",
    )


def _figure(counts: object, name: str) -> int:
    """Return a number of a summary; 0 where it has none."""
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) else 0


def _result_of(job: str, summary: Mapping[str, Any], lacks: Missing) -> tuple[str, str]:
    if not summary:
        return _UNKNOWN
    if is_import(job):
        return _IMPORTED if summary.get("commit_tags") else _EMPTY
    if summary.get("complete"):
        return _LACKING if lacks.lost else _COMPLETE
    return _INCOMPLETE if summary.get("commit_tags") else _EMPTY


def _reason_of(visit: DeskVisit, job: str, summary: Mapping[str, Any]) -> tuple[str, str]:
    """Return why the first host is incomplete, and that host; or what was noted at the end of a job."""
    for end in hosts_in(summary):
        if not end.complete and end.reason:
            return end.reason, end.host
    with suppress(Damaged):
        known = job_folder.load_item(visit.desk.archive.reports / job)
        if known is not None and not summary.get("complete"):
            return known.reason or next(iter(known.warnings), ""), ""
    return "", ""


def _duration(summary: Mapping[str, Any], language: str) -> str:
    with suppress(Damaged, KeyError):
        seconds = (parse_time(str(summary["finished"])) - parse_time(str(summary["started"]))).total_seconds()
        return languages.time_taken(max(int(seconds), 0), language)
    return ""
