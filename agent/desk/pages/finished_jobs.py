"""`/running`: what runs, what comes next, and what the jobs brought that ended last; Today shows some of these, too.

What ended is read from the newest reports: result, documents, bytes, duration, failures, and why. It is kept until
another report comes, or the catalogue changes: a report is there before the record of its crawl. What a crawl lacks is
counted after its patches, as on its page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
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
from webarcfs.archive.model.errors import Damaged, TookTooLong
from webarcfs.archive.model.metadata import parse_time
from webarcfs.archive.system import clocks
from webarcfs.web import language as languages

#: Jobs that Running shows of those that ended last.
MOST = 10
#: Seconds that the logs of all patched crawls of a list are read.
_LOG_SECONDS = 3.0
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
        _finished(visit, ended, jobs.record_of(visit, str(ended.summary.get("patches") or ended.job)))
        for ended in _ended(visit, most)
    ]


def read_ended(visit: DeskVisit, most: int) -> Iterator[FinishedJob]:
    """Yield the same as their reports are read, for lists of any length: without the paths of their crawls."""
    for ended in _ended(visit, most):
        yield _finished(visit, ended, None)


@dataclass(frozen=True, slots=True)
class _EndedJob:
    """A job with its summary, and what it lacks now; None where the logs are too long to be read for a list."""

    job: str
    summary: Mapping[str, Any]
    lacks: Missing | None


def _ended(visit: DeskVisit, most: int) -> Iterator[_EndedJob]:
    """Yield the jobs that ended last. A patch began after its crawl, so its report comes first."""
    archive, patched, deadline = visit.desk.archive, set[str](), clocks.Deadline(_LOG_SECONDS)
    for job in url_fates.report_names(archive)[:most]:
        summary = url_fates.summary_of(archive, job)
        patched.add(str(summary.get("patches", "")))
        lacks: Missing | None = missing_in(summary)
        if job in patched:
            lacks = None
            with suppress(TookTooLong), clocks.under(deadline):
                lacks = jobs.lacks_of(visit, job, summary)
        yield _EndedJob(job, summary, lacks)


def _finished(visit: DeskVisit, ended_job: _EndedJob, record: RecordRow | None) -> FinishedJob:
    job, summary = ended_job.job, ended_job.summary
    is_counted = ended_job.lacks is not None
    lacks = missing_in(summary) if ended_job.lacks is None else ended_job.lacks
    failures = sum(lacks.words.values())
    arcs = {name: _figure(summary.get("arcs"), name) for name in ARC_COUNTS}
    word, sign = _result_of(job, summary, ended_job.lacks)
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
        failures=failures if is_counted else None,
        failures_href=jobs.urls_href(job, UrlSelection(lack=Lack.MISSING)) if failures or not is_counted else "",
    )


def _figure(counts: object, name: str) -> int:
    """Return a number of a summary; 0 where it has none."""
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) else 0


def _result_of(job: str, summary: Mapping[str, Any], lacks: Missing | None) -> tuple[str, str]:
    """Return how a job ended. What its end lost and patches got is not lacking any more."""
    if not summary:
        return _UNKNOWN
    if is_import(job):
        return _IMPORTED if summary.get("commit_tags") else _EMPTY
    if summary.get("complete"):
        is_lacking = missing_in(summary).lost and (lacks is None or lacks.has_failures)
        return _LACKING if is_lacking else _COMPLETE
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
