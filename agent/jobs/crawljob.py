"""A crawl's job: one run of one publication, or a patch of a crawl, from start to report.

A killed job is resumed where it ended.

A patch asks again for URLs which a crawl did not get, each with what it needs. Its URLs come from the crawl's own log,
with how the crawl came to them: a resource stays one, the target of a redirect stays one, and the server gets the page
that named a URL (Referer). Hosts, excludes and private addresses are those of the crawl, but that the feed which a
publication watches opens no private address: `private_addresses` does. Links of its pages are not followed. It only
adds, as a list of URLs does; what it publishes belongs to the record of the crawl. Items of a feed that it publishes
are captured; the feed itself is no page, and is left to the next crawl.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from agent.catalogue import recording, stepfolders
from agent.crawl import job_folder, url_files, watching
from agent.crawl.browserpool import CrawledForms
from agent.crawl.discovery import Discovery
from agent.crawl.disposition import OVER_TIME, ArchivedPages, Captured, lines_on_hosts
from agent.crawl.frontier import (
    ASKED,
    ASKED_URLS,
    BEGUN,
    CAPTURED,
    HOSTS,
    LIST_READ,
    ORDERS,
    PAGE_HOSTS,
    WATCH_BEGUN,
    CaptureEnd,
    Frontier,
    FrontierUrl,
)
from agent.crawl.job_folder import Definition, Job, Patch, Phase, StateKeeper
from agent.crawl.job_orders import OrderBook, stop_on_discard
from agent.crawl.loop import capture
from agent.crawl.sitemaps import MOST_LISTED
from agent.crawl.vocabulary import ARCHIVED_OR_DUPLICATE, Reason, Status, is_error_page
from agent.crawl.watching import WatchedItems
from agent.filters import chain
from agent.jobs.publishing import JobOutcome, failures_noted, finish, publish, until_stopped, was_published
from agent.pipeline import domain_run
from agent.reports import missing_urls, report
from agent.reports.report import hosts_in
from agent.reports.tables import LogLine
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import OCCASION, PATCH, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.errors import Damaged, Interrupted, NotFound
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.system import files
from webarcfs.archive.system.clocks import Progress, unseen

# == patchjob =========================================================================================================


def lock_record(archive: Archive, patch: Patch | None) -> AbstractContextManager[object]:
    """Hold the lock of the record that is patched, so that nobody decides about it meanwhile. Raises Busy."""
    return nullcontext() if patch is None else stepfolders.locked(archive, patch.record)


def narrowed(publication: Publication) -> Publication:
    """Return a publication whose crawl asks for the URLs that it is given, and for what they need."""
    crawl = dataclasses.replace(publication.crawl, depth=0, sitemaps=False)
    return dataclasses.replace(publication, list="", watch="", crawl=crawl)


def _refusal_now(archive: Archive, patch: Patch) -> str:
    """Return why the record takes the patch no more; empty if it does. It may have been decided about meanwhile."""
    catalogue = Catalogue(archive)
    try:
        why = recording.patch_refusal(archive, catalogue, catalogue.read(patch.record)[0])
    except NotFound as error:
        return str(error)
    return f"{patch.record} takes no patch: {why}" if why else ""


def is_closed(archive: Archive, patch: Patch | None) -> bool:
    """Return whether readers do not see the record that is patched."""
    if patch is None:
        return False
    try:
        return Catalogue(archive).read(patch.record)[0].state is not RecordState.RELEASED
    except NotFound:
        return True


def begin_patch(archive: Archive, asked: Definition) -> Path:
    """Return the folder of a patch that begins, or of the same one that waits or was interrupted, whoever asked for it.

    The caller holds the lock of the publication.
    """
    assert asked.patch is not None
    same = asked.patch.of_anybody
    kind = asked.publication.name + PATCH
    for folder in job_folder.folders_of(archive, kind):
        earlier = patch_in(folder)
        if earlier is not None and earlier.of_anybody == same and job_folder.usable(folder):
            return folder
    folder = job_folder.new_folder(archive, kind)
    job_folder.save(folder, asked)
    return folder


def patch_in(folder: Path) -> Patch | None:
    """Return what the job of a folder asks for again; None if it is no patch, or cannot be read."""
    try:
        asked = job_folder.load(folder)
    except Damaged:
        return None
    return None if asked is None else asked.patch


def feed_of(folder: Path) -> str:
    """Return the feed that the publication of a job watches, also where `narrowed` leaves it out; empty for none."""
    asked = job_folder.load(folder)
    return "" if asked is None else asked.publication.watch


def not_archived(archive: Archive, patch: Patch, feed: str) -> Iterator[LogLine]:
    """Yield the lines of the URLs that a patch could ask for again, but for the watched feed. Raises NotFound, Damaged.

    Where the thread has a deadline, it raises its errors as well.
    """
    for line in missing_urls.lines(archive, patch.job):
        if line.url != feed and missing_urls.could_be_asked_for(line):
            yield line


def to_ask_again(archive: Archive, patch: Patch, feed: str) -> Iterator[LogLine]:
    """Yield the lines of the URLs that a patch asks for, before its scope is asked. The errors are those of `lines`.

    A URL that is named and that no line is about comes at the end, as one to which a page has a link.
    """
    if not patch.urls:
        for line in not_archived(archive, patch, feed):
            if missing_urls.is_chosen(line, patch.word, patch.url, cut=patch.cut):
                yield line
        return
    unseen = dict.fromkeys(patch.urls)
    for line in missing_urls.lines(archive, patch.job):
        if line.url in unseen:
            del unseen[line.url]
            if line.url != feed and missing_urls.may_be_named(line):
                yield line
    yield from (LogLine(url, Status.WAITING, 0, "L", "-", (), "-") for url in unseen)


def _hosts_with_pages(archive: Archive, patch: Patch) -> set[str]:
    """Return the hosts of which the crawl had pages: by its report, also where it published nothing new of them."""
    record, _ = Catalogue(archive).read(patch.record)
    summary = files.read_json(archive.reports / patch.job / "summary.json") or {}
    by_report = {end.host for end in hosts_in(summary) if end.is_page}
    return by_report | {part.tag.domain for part in record.parts if not part.is_resource}


def add_missing(job: Job) -> None:
    """Add the URLs that the job asks for again, once. The caller wraps it in a transaction.

    Raises Interrupted where the job shall stop; then none of them is in the frontier.
    """
    assert job.patch is not None
    if job.frontier.get(ASKED_URLS) is not None:
        return
    lines = _until_stopped(job, missing_urls.lines(job.archive, job.patch.job))
    job.frontier.set(HOSTS, sorted(missing_urls.start_hosts(lines)))
    job.frontier.set(PAGE_HOSTS, sorted(_hosts_with_pages(job.archive, job.patch)))
    discovery = Discovery(job.frontier, job.publication, job.profile)
    number = 0
    for line in _until_stopped(job, to_ask_again(job.archive, job.patch, feed_of(job.folder))):
        number += 1
        hops = line.path.strip("-")
        discovery.once_more(line.url, hops)
        job.frontier.set(ASKED.of(line.url), line.referrer.strip("-") if hops.strip("R") else "")
    discovery.flush()
    job.frontier.set(ASKED_URLS, number)


def _until_stopped(job: Job, lines: Iterator[LogLine]) -> Iterator[LogLine]:
    for line in lines:
        if job.stop.is_set():
            raise Interrupted("stopped while it added what is missing; the next run starts with that")
        yield line


# == crawljob =========================================================================================================


_log = logging.getLogger(__name__)
#: Start URLs of a crawl that is looked at for lonely ones, as each look reads the frontier; hosts that a message names.
_MOST_STARTS, _MOST_HOSTS = 20, 5
#: Lines on start URLs, and on what is no URL in a list, that a crawl ends with.
_MOST_LINES = 50
#: Entries of a list that are named of those that are no pages.
_MOST_NO_PAGES = 5
_STOPPED = "stopped; the next crawl of it resumes from here"


def run(
    archive: Archive,
    publication: Publication,
    profile: Profile | None,
    *,
    accept_shrink: bool = False,
    instances: int = 0,
    folder: Path | None = None,
    by_agent: bool = False,
    occasion: str = "",
    only_adds: bool = False,
    patch: Patch | None = None,
    shifts: bool = False,
    stop: threading.Event | None = None,
    progress: Progress = unseen,
) -> JobOutcome:
    """Crawl a publication, or resume its interrupted job, and publish the result.

    `folder` selects a job; by default it is the job that was interrupted last, or a new one. `instances` is the number
    of wgets that the archive allows over all jobs. `by_agent`: the agent started the job, not a command. `occasion`
    says why it is begun beside the schedule, which counts from it only if it `shifts`. `patch` names the crawl that it
    asks again for, and which of its URLs. Raises Busy if the publication is being crawled already or the patched record
    is being worked on, SettingsError if its filters cannot be loaded, NotFound if the job has finished meanwhile,
    Damaged if it is of another version.
    """
    chain(publication.crawl.filters, archive.filters, profile)  # fails before anything is fetched
    asked = Definition(
        publication=publication,
        profile=profile,
        accept_shrink=accept_shrink,
        instances=instances,
        occasion=occasion,
        only_adds=only_adds or patch is not None,
        patch=patch,
    )
    kind = publication.name + (OCCASION if occasion and not shifts else "")
    patch = patch if folder is None else patch_in(folder)
    with job_folder.alone(archive, publication.name), lock_record(archive, patch):
        if folder is not None and not folder.is_dir():
            raise NotFound(f"there is no job {folder.name} any more")
        if patch is not None:
            folder = folder or begin_patch(archive, asked)
        folder = folder or job_folder.interrupted(archive, kind)
        folder = folder or job_folder.new_folder(archive, kind)
        keeper = StateKeeper(folder, publication.name, progress, by_agent=by_agent)
        with job_folder.opened(folder) as frontier, failures_noted(keeper):
            url_files.keep_standard_input(Path(publication.list), folder)
            job_folder.save(folder, asked)
            begun = job_folder.load(folder) or asked
            keeper.begin(frontier)
            how = {"progress": keeper.progress, "note": keeper.note, "stop": stop or threading.Event()}
            job = _job(archive, folder, frontier, begun, by_agent=by_agent, **how)
            return _run(job, keeper)


def _run(job: Job, keeper: StateKeeper) -> JobOutcome:
    """Work on the job to its end, or until it stops or is discarded."""
    book = OrderBook(job)
    book.take(at_once=True)
    book.tell()
    if not book.discarded:
        if job.patch is not None and (why := _refusal_now(job.archive, job.patch)):
            return _discarded(job, keeper, why)
        with stop_on_discard(job, job.frontier.get(ORDERS) or 0):
            outcome = until_stopped(job, keeper, lambda: _work(job, keeper, book), _STOPPED)
        if not outcome.interrupted:
            return outcome
        book.take(at_once=True)
    return _discarded(job, keeper) if book.discarded else outcome


def _job(archive: Archive, folder: Path, frontier: Frontier, asked: Definition, **how: Any) -> Job:
    return Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        publication=asked.publication if asked.patch is None else narrowed(asked.publication),
        profile=asked.profile,
        frontier=frontier,
        begun=from_epoch(frontier.get(BEGUN) or 0),
        accept_shrink=asked.accept_shrink,
        instances=asked.instances,
        only_adds=asked.only_adds or bool(asked.publication.watch),
        patch=asked.patch,
        page=asked.page,
        is_closed=is_closed(archive, asked.patch),
        shown=CrawledForms(frontier, folder).form,
        **how,
    )


def _work(job: Job, keeper: StateKeeper, book: OrderBook) -> JobOutcome:
    with job.frontier.changes():
        if job.patch is not None:
            add_missing(job)
        else:
            discovery = Discovery(job.frontier, job.publication, job.profile)
            discovery.seeds(job.publication.urls)
            if job.publication.list and job.frontier.get(LIST_READ) is None:
                _read_list(job, discovery)
            if job.publication.watch and job.frontier.get(WATCH_BEGUN) is None:
                _begin_watch(job, discovery)
    seconds = report.Seconds(job.frontier)
    captured = _captured(job, seconds, book)
    keeper.to(Phase.CONVERTING)
    warnings = [captured.reason] if captured.reason else lines_on_hosts(captured.hosts)
    warnings += _never_added(job, book)
    removes = captured.complete and not job.only_adds
    withheld = publish(job, dataclasses.replace(captured, complete=removes), seconds)
    warnings += withheld if removes else []
    warnings += _not_urls(job)
    _settle_items(job, lambda _: True)
    fruitless = _fruitless(job)
    warnings += fruitless
    if job.patch is not None and fruitless:
        captured = dataclasses.replace(captured, complete=False)
    _tell_of_feed(job)
    _tell_of_lonely(job)
    state = Phase.INTERRUPTED if captured.reason in (OVER_TIME, Reason.STOPPED) else Phase.ARCHIVED
    return finish(job, keeper, seconds, captured=captured, warnings=warnings, state=state)


def _discarded(job: Job, keeper: StateKeeper, reason: str = str(Reason.DISCARDED)) -> JobOutcome:
    """End a job without publishing what is not published yet; its report and record say so."""
    job.stop.clear()
    seconds = report.Seconds(job.frontier)
    with job.frontier.changes():
        job.frontier.give_up(Status.CUT, Reason.DISCARDED)
    end = Captured(False, reason)
    publish(job, end, seconds, only_begun=True)
    _settle_items(job, lambda domain: was_published(job, domain))
    keeper.note(held="", reason=reason)
    return finish(job, keeper, seconds, captured=end, warnings=[reason], state=Phase.INTERRUPTED)


def _never_added(job: Job, book: OrderBook) -> list[str]:
    """Return a line on the URLs that were added when the job fetched nothing more, as after an interruption."""
    if not book.added:
        return []
    line = (
        f"not asked for, since all was fetched: {' '.join(book.added)}; `webarc-agent crawl --page URL…` fetches them"
    )
    with job.frontier.changes():
        book.forget_added()
    return [line]


def _captured(job: Job, seconds: report.Seconds, book: OrderBook) -> Captured:
    """Run the capture unless it has ended before an interruption; return its end. Raises Interrupted."""
    end_before = job.frontier.get(CAPTURED)
    if end_before is not None:
        domain_run.note_wait(job)
        return Captured(**end_before)
    domain_run.note_begin(job)
    with seconds.of("capture"):
        captured = capture(job, ArchivedPages(job.archive), book)
    if (book.held and captured.reason == book.held) or (job.stop.is_set() and not captured.complete):
        raise Interrupted("stopped while it was fetching")
    book.let_go()  # an order to pause came too late
    end: CaptureEnd = {"complete": captured.complete, "reason": captured.reason, "hosts": dict(captured.hosts)}
    with job.frontier.changes():
        job.frontier.set(CAPTURED, end)
        seconds.keep()
    return captured


def _tell_of_lonely(job: Job) -> None:
    """Log each start URL that gave one page whose links all lead to hosts that the crawl does not accept.

    Mostly it forwards by a script or frames. A site may also be just that, so the crawl is as complete as any.
    """
    if not job.publication.crawl.depth or job.publication.list or len(job.publication.urls) > _MOST_STARTS:
        return
    for seed in job.frontier.seeds():
        end = job.frontier.end_of(seed)
        if end.links < 1 or job.frontier.count_documents(end.domain) != 1:
            continue
        hosts = job.frontier.hosts_named(end.id)
        if hosts and end.domain not in hosts and not any(hosts.values()):
            named = ", ".join(list(hosts)[:_MOST_HOSTS]) + (", …" if len(hosts) > _MOST_HOSTS else "")
            _log.warning(
                "%s gave one page, and its links lead to other hosts: %s. If the site moved there, start there, or "
                "accept the host by `hosts`",
                end.url,
                named,
            )


def _read_list(job: Job, discovery: Discovery) -> None:
    """Add the URLs of the publication's list; note the lines that are none. Raises UsageError if it cannot be read.

    Raises Interrupted where the job shall stop; then nothing of the list is in the frontier.
    """
    faults: list[str] = []
    named: list[str] = []
    number = no_pages = 0
    title = url_files.list_title(job.publication.list)
    kept = job.folder / url_files.STANDARD_INPUT
    path = kept if kept.exists() else url_files.list_of(job.archive, job.publication)

    def urls() -> Iterator[str]:
        nonlocal number, no_pages
        for listed in url_files.read_urls(path):
            if job.stop.is_set():
                raise Interrupted("stopped while its list was read; the next run starts with it")
            if listed.url:
                yield listed.url
                continue
            if listed.is_no_page:
                no_pages += 1
                if no_pages <= _MOST_NO_PAGES:
                    named.append(f"{title}:{listed.line}: {listed.fault}")
                continue
            number += 1
            if len(faults) < _MOST_LINES:
                faults.append(f"{title}:{listed.line}: {listed.fault}")

    discovery.seeds_of_list(urls())
    if no_pages:
        _log.info("%s: %d entries are no pages of the web, and are left out:", title, no_pages)
        for line in named:
            _log.info("  %s", line)
        if no_pages > len(named):
            _log.info("  and %d more", no_pages - len(named))
    job.frontier.set(LIST_READ, (faults, number))


def _begin_watch(job: Job, discovery: Discovery) -> None:
    """Add the feed of the publication, and the items that earlier crawls did not get."""
    with WatchedItems(job.archive, job.publication.name) as items:
        waiting = items.waiting(job.settings.max_sitemap_urls)
    discovery.watch(waiting)
    job.frontier.set(WATCH_BEGUN, len(waiting))


def _settle_items(job: Job, is_published: Callable[[str], bool]) -> None:
    """Record which items of the watched feed are captured, and which are to be asked for again.

    A patch says only what it captured, so that asking again by hand uses no try up.
    """
    if not feed_of(job.folder):
        return
    ends = watching.ends_of(job.frontier, is_published)
    if job.patch is not None:
        ends = (end for end in ends if end.captured)
    with WatchedItems(job.archive, job.publication.name) as items:
        items.settle(job.name, ends)


def _tell_of_feed(job: Job) -> None:
    """Log what the watched feed listed beside the items that were taken."""
    feed = job.frontier.feed() if job.publication.watch else None
    if feed is None:
        return
    end = job.frontier.end_of(feed)
    if Reason.SITEMAP_CUT in end.note.split(","):
        most = job.settings.max_sitemap_urls or MOST_LISTED
        _log.warning(
            "%s lists more than was read: it is broken, or has more than %d items (`max_sitemap_urls`)", feed.url, most
        )
    if unlinked := watching.unlinked_in(end):
        _log.warning("%s lists %d items without a page; there is nothing to capture of them", feed.url, unlinked)


def _not_urls(job: Job) -> list[str]:
    """Return lines on what is no URL in the list."""
    faults, number = job.frontier.get(LIST_READ) or ([], 0)
    more = number - len(faults)
    title = url_files.list_title(job.publication.list)
    return [*faults, *([f"{title}: {more} further lines are no URLs"] if more else [])]


def _fruitless(job: Job) -> list[str]:
    """Return a line for each start URL without an archived document; of many, only their number.

    The error page of an item of a feed, which `keep_errors` archives, is none.
    """
    if job.publication.watch:
        with WatchedItems(job.archive, job.publication.name) as items:
            return _lines_on(job, filter(watching.is_wanted, job.frontier.seeds()), items)
    return _lines_on(job, job.frontier.seeds() if job.patch is None else job.frontier.asked())


def _lines_on(job: Job, seeds: Iterable[FrontierUrl], items: WatchedItems | None = None) -> list[str]:
    """Return the lines on the start URLs that gave nothing; `items` are those of the watched feed."""
    lines: list[str] = []
    more = 0
    for seed in seeds:
        end = job.frontier.end_of(seed)
        if end.result in ARCHIVED_OR_DUPLICATE and not (items is not None and is_error_page(end.status)):
            continue
        if len(lines) >= _MOST_LINES:
            more += 1
            continue
        why = ", ".join(part for part in (str(end.status), end.note, end.result) if part)
        where = "" if end.id == seed.id else f" (by way of {end.url})"
        again = "" if items is None else _of_item(items, seed.url)
        lines.append(f"{seed.url} gave nothing{where}: {why}{again}")
    return [*lines, *([f"{more} further start URLs gave nothing; `webarc-agent report` lists them"] if more else [])]


def _of_item(items: WatchedItems, url: str) -> str:
    """Return what becomes of an item of a watched feed that gave nothing."""
    return "; it is not tried again" if items.is_settled(url) else "; the next crawl tries it again"
