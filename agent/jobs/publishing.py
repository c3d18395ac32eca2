"""The pipeline: brings the captured documents into the archive.

`STAGES` lists its stages in order. Documents pass through all stages one at a time, as through generators, and are not
unpacked into a tree of files. So memory does not grow with the crawl.

A job ends here: its domains are published one after the other, then a report and a record replace its folder. Crawls
and imports end alike. The frontier records each step, so that a job that is killed here resumes at that step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from agent.catalogue.patches import keep_patch
from agent.catalogue.recording import keep_capture
from agent.crawl import frontier, job_folder
from agent.crawl.disposition import Captured
from agent.crawl.frontier import PublishedDomain
from agent.crawl.job_folder import Job, StateKeeper
from agent.crawl.job_state import JobState, Phase, reason_of
from agent.crawl.watching import is_idle
from agent.indexing.recovery import catch_up_domain, catch_up_links
from agent.jobs.stages import compare, describe, extract, filter_, normalise, unpack
from agent.pipeline.domain_run import Document, DomainRun, LaterCrawls, TreeReader, later_crawls
from agent.pipeline.publish import Published, Publisher
from agent.pipeline.removal import had_no_pages
from agent.reports import report
from agent.reports.report import Missing
from webarcfs.archive.git.repository import CRAWLS, PUBLICATIONS, Commit, Repository
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.index.captures import domains_of
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, Interrupted, NotFound, WebarcError
from webarcfs.archive.model.metadata import CommitTag, parse_compact_time
from webarcfs.archive.system import locks

# == publishing =======================================================================================================


Stage = Callable[[Iterator[Document], DomainRun], Iterator[Document]]

#: The stages from a WARC record to git. Capture comes before them, publishing and indexing of a domain after.
STAGES: tuple[tuple[str, Stage], ...] = (
    ("unpack", unpack),
    ("filter", filter_),
    ("normalise", normalise),
    ("compare", compare),
    ("extract", extract),
    ("describe", describe),
)


def publish_domain(
    job: Job, domain: str, complete: bool, seconds: dict[str, float], *, is_resource: bool = False
) -> tuple[DomainRun, Published] | None:
    """Publish the job's documents of a domain; return None if the job has none and may remove none.

    `is_resource`: the crawl has no page of the domain, only what pages of others need.

    Safe to call again after a crash at any point: nothing is published twice. The time of each stage is added to
    `seconds`. Raises Interrupted if the job must stop; then nothing was published.
    """
    archive = job.archive
    with locks.exclusive_until(archive.publishing_lock(domain), job.stop):
        run = _begin(job, domain, complete, is_resource=is_resource)
        if run is None:
            return None
        published = _published_before(run)
        if published is None:
            published = _flow(run, seconds)
        begun = time.monotonic()
        catch_up_domain(archive, domain, {published.commit: published.met.arcs})
    catch_up_links(archive, domain, job.stop.is_set)  # without the lock: other crawls need not wait for it
    seconds["index"] = seconds.get("index", 0.0) + time.monotonic() - begun
    return run, published


def was_published(job: Job, domain: str) -> bool:
    """Return whether a process of this job has published the domain, and may have been killed after that."""
    tag = job.frontier.get(frontier.TAG.of(domain))
    if tag is None or not job.archive.repository(domain).exists():
        return False
    store = Repository(job.archive.repository(domain))
    target = store.ref(CommitTag.parse(tag).ref)
    commit = sequence.crawl_commit(store, target) if target else None
    return commit is not None and job.name in (commit.message.job, commit.message.patch)


def _begin(job: Job, domain: str, complete: bool, *, is_resource: bool) -> DomainRun | None:
    path = job.archive.repository(domain)
    has_captures = job.frontier.has_captures(domain)
    try:
        store = Repository(path)
    except NotFound:
        if not has_captures:
            return None
        store = Repository.create(path)
    if not has_captures and not (complete and store.ref(PUBLICATIONS + job.publication.name)):
        return None
    later = later_crawls(job, store, domain)
    tag = _tag(job, domain, store, later)
    times = {parse_compact_time(name): oid for name, oid in store.refs(CRAWLS).items()}
    older = any(crawl_time > tag.crawl_time for crawl_time in times)
    base = _before(store, tag, times) if older else store.head()
    last = sequence.crawl_commit(store, base.oid) if base is not None else None
    return DomainRun(
        job=job,
        domain=domain,
        store=store,
        base=base,
        tag=tag,
        complete=complete and not older,
        shelf=TreeReader(store, base.tree if base else None),
        older=older,
        later=later,
        errors=last is not None and last.message.has_errors,
        copies=last is not None and last.message.has_copies,
        resources=last is not None and last.message.has_resources,
        is_resource=is_resource,
    )


def _before(store: Repository, tag: CommitTag, times: Mapping[datetime, str]) -> Commit | None:
    """Return the newest state before `tag` in time, with its additions; None if `tag` is the oldest."""
    last = max((crawl_time for crawl_time in times if crawl_time < tag.crawl_time), default=None)
    return None if last is None else store.commit(times[last])


def _tag(job: Job, domain: str, store: Repository, later: LaterCrawls) -> CommitTag:
    """Return the commitTag of this job on a domain: its start, moved to a second after the newest crawl if necessary.

    The time of a snapshot of an import is that of its first capture, and it is inserted between the other crawls; so is
    a crawl that was overtaken by another one while it was interrupted.
    """
    fact = frontier.TAG.of(domain)
    noted = job.frontier.get(fact)
    if noted is not None and store.ref(CommitTag.parse(noted).ref) is not None:
        tag = CommitTag.parse(noted)
        commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
        if commit is not None and commit.message.publication == job.publication.name:
            return tag
    times = {parse_compact_time(name) for name in store.refs(CRAWLS)}
    begun = job.begun if later.overtook else None if job.cut is None else job.cut.time
    if begun is not None:
        crawl_time = begun
        while crawl_time in times:
            crawl_time += timedelta(seconds=1)
    else:
        last = max(times, default=None)
        crawl_time = job.begun if last is None or last < job.begun else last + timedelta(seconds=1)
    tag = CommitTag(crawl_time, domain)
    with job.frontier.changes():
        job.frontier.set(fact, str(tag))
    return tag


def _published_before(run: DomainRun) -> Published | None:
    """Return what a killed run of this job has published already; None if nothing."""
    target = run.store.ref(run.tag.ref)
    commit = sequence.crawl_commit(run.store, target) if target else None
    if commit is None:
        return None
    results = run.job.frontier.by_result(run.domain)
    before = run.store.commit(commit.parents[0]).tree if commit.parents else None
    gone = (difference for difference in run.store.differences(before, commit.tree) if difference.new is None)
    removed = sum(difference.path.endswith(f"/{DATA_XML}") for difference in gone)
    led = Counter(change.what for change in redirect_lists.differences(run.store, before, commit.tree))
    run.redirects.update(led)
    run.arcs.update({key: results.get(key, 0) for key in run.arcs} | {"removed": removed})
    return Published(commit.oid, commit.message.complete, "" if commit.message.complete else "crawl incomplete")


def _flow(run: DomainRun, seconds: dict[str, float]) -> Published:
    """Pass all documents through the stages, then publish."""
    with ExitStack() as stack:
        publisher = stack.enter_context(Publisher(run))
        clock = _Clock(seconds)
        flow: Iterator[Document] = iter(())
        for name, stage in (*STAGES, ("publish", publisher.publish)):
            flow = clock.timed(name, stage(flow, run))
        total = run.job.frontier.count_documents(run.domain)
        for number, document in enumerate(flow, 1):
            document.body.close()
            if run.job.stop.is_set():
                raise Interrupted(f"{run.domain}: stopped before anything was published")
            run.job.progress(f"archive {run.domain}", number, total)
        begun = time.monotonic()
        published = publisher.finish()
        seconds["publish"] += time.monotonic() - begun
    return published


class _Clock:
    """Measures the time of each stage, without the time of the stages before it."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self._inner = 0.0  # time spent in the stages before the running one

    def timed(self, name: str, stage: Iterator[Document]) -> Iterator[Document]:
        """Yield from `stage`, and add its time to `seconds[name]`."""
        self._seconds.setdefault(name, 0.0)
        while True:
            outer, self._inner = self._inner, 0.0
            begun = time.perf_counter()
            try:
                document = next(stage, None)
            finally:
                whole = time.perf_counter() - begun
                self._seconds[name] += whole - self._inner
                self._inner = outer + whole
            if document is None:
                return
            yield document


# == ending ===========================================================================================================


_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The end of a job. An `interrupted` job stays in `jobs/` for the next run; `warnings` say what is missing, why.

    `lacks` is what a crawl did not bring of pages and their resources.
    """

    job: str
    interrupted: bool
    complete: bool
    warnings: tuple[str, ...]
    tags: tuple[str, ...]
    summary: dict[str, object]
    report: Path | None
    lacks: Missing = Missing()

    @property
    def is_whole(self) -> bool:
        """Whether it brought all that servers had (exit code 3 where not)."""
        return not self.interrupted and self.complete and not self.warnings and not self.lacks.lost


def until_stopped(job: Job, keeper: StateKeeper, work: Callable[[], _Outcome], how: str) -> _Outcome | JobOutcome:
    """Return the outcome of `work`. If it raises Interrupted, note that in the item and return `how` as a warning."""
    try:
        return work()
    except Interrupted:
        keeper.to(Phase.INTERRUPTED, reason=keeper.item.held or "stopped", failures=0)
        how = f"held ({keeper.item.held}); `webarc-agent job` resumes it" if keeper.item.held else how
        return JobOutcome(job.name, True, False, (how,), (), {}, None)


@contextmanager
def failures_noted(keeper: StateKeeper) -> Iterator[None]:
    """Write the reason of a failure into the item; the job's folder stays, so that it can be tried again."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError, WebarcError):  # the agent reads the error from stderr, and writes it later
            keeper.failed(reason_of(error, keeper.folder))
        raise


def publish(job: Job, captured: Captured, seconds: report.Seconds, *, only_begun: bool = False) -> list[str]:
    """Publish the job domain by domain; return a line for each incomplete publication. Raises Interrupted.

    Each domain with pages is as complete as its own capture was. Those that only have resources of pages follow: what
    no page needs any more is removed there if all pages are known, also where nothing was asked for.

    `only_begun`: nothing is published; what a killed process of the job had published is put into the index.
    """
    resources = {host.domain for host in job.frontier.crawled_hosts() if not host.has_pages}
    domains = [domain for domain in job.frontier.domains() if not only_begun or was_published(job, domain)]
    for domain in (domain for domain in domains if domain not in resources):
        _publish_and_keep(job, domain, seconds, complete=captured.is_complete(domain))
    every = captured.complete and not captured.hosts and all(part["complete"] for part in report.domains(job.frontier))
    idle = list(_idle_resource_domains(job, set(domains))) if every else []
    with job.frontier.changes():
        job.frontier.set(frontier.IDLE, idle)
    for domain in (*(domain for domain in domains if domain in resources), *idle):
        _publish_and_keep(job, domain, seconds, complete=every, is_resource=True)
    return [
        f"{part['commit_tag']}: {part['reason']}"
        for part in report.domains(job.frontier)
        if part["reason"]
        and (every or CommitTag.parse(part["commit_tag"]).domain not in captured.hosts.keys() | resources)
    ]


def _publish_and_keep(
    job: Job, domain: str, seconds: report.Seconds, *, complete: bool, is_resource: bool = False
) -> None:
    if job.stop.is_set():
        raise Interrupted(f"stopped before {domain} was published")
    done = publish_domain(job, domain, complete, seconds.values, is_resource=is_resource)
    if done is not None:
        with job.frontier.changes():
            report.keep_domain(job.frontier, *done)
            seconds.keep()


def _idle_resource_domains(job: Job, asked: Set[str]) -> Iterator[str]:
    """Yield the domains from which the crawl needed nothing, and of which its publication has resources alone."""
    try:
        domains = domains_of(job.archive.database, job.publication.name)
    except WebarcError:
        domains = list(job.archive.domains())  # without the index, git alone tells; it takes longer
    for domain in domains:
        if domain not in asked:
            with contextlib.suppress(NotFound, Damaged):
                store = Repository(job.archive.repository(domain))
                seen = store.ref(PUBLICATIONS + job.publication.name)
                if seen is not None and had_no_pages(store, store.head(), job.publication.name, seen):
                    yield domain


def finish(
    job: Job, keeper: StateKeeper, seconds: report.Seconds, *, captured: Captured, warnings: Sequence[str], state: Phase
) -> JobOutcome:
    """Write the report of a published job and the record of its capture, and remove its folder."""
    parts, account = report.domains(job.frontier), report.account_of(job)
    item = keeper.ended(state, warnings=tuple(warnings))
    hosts = report.host_ends(job.frontier, parts, captured, only_adds=job.only_adds)
    lacks = report.missing(job.archive, job.frontier)
    outcome = reported(
        job, account, parts, item, seconds=seconds.values, complete=captured.complete, hosts=hosts, lacks=lacks
    )
    report.remove_job(job.folder)
    return outcome


def _has_no_news(job: Job) -> bool:
    """Return whether a crawl found a watched feed without new items, and no person asked for it: it has no record."""
    begun = job_folder.load(job.folder)
    return is_idle(job.publication, job.frontier) and (begun is None or not (begun.record or begun.occasion))


def reported(
    job: Job,
    account: report.Account,
    parts: Sequence[PublishedDomain],
    item: JobState,
    *,
    seconds: Mapping[str, float],
    complete: bool,
    hosts: Sequence[report.HostEnd] = (),
    lacks: Missing | None = None,
) -> JobOutcome:
    """Write the report of a published job, with its item as it ended, and the record of its capture.

    It is `complete` if each of its `hosts` is, and the last part of each domain. `parts` are in order of their domains
    and times.
    """
    last = {CommitTag.parse(part["commit_tag"]).domain: part["complete"] for part in parts}
    whole = complete and all(host.complete for host in hosts) and (job.only_adds or all(last.values()))
    lacks = lacks or Missing()
    summary = report.summary(job, account, whole, parts, seconds, hosts, lacks)
    tags = tuple(part["commit_tag"] for part in parts if not part.get("shared"))
    item = dataclasses.replace(item, complete=whole, tags=tags, pid=0, ticks=0)
    path = report.write(job, account, summary, item)
    if job.patch is not None:
        keep_patch(job, tags)
    elif tags or not whole or not _has_no_news(job):
        keep_capture(job, tags)
    return JobOutcome(job.name, False, whole, item.warnings, tags, summary, path, lacks)
