"""An import: foreign files become crawls, and each crawl a job with a report and a record of its own.

All files are read into the job's folder, each in one transaction, and planned, before anything is published
(`Planning`; `--try` ends there). So the same command resumes a killed import by the same plan. Files that the archive
contains already are not imported again.

Then the snapshots are published one after the other, each through the pipeline of all crawls (`CutPublishing`). A
snapshot has a frontier of its own, which is filled from the import's index, and is removed when the index has what
became of it. A killed import resumes with the first one that has no outcome.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.crawl import frontier, job_folder
from agent.crawl.crawl_log import line
from agent.crawl.frontier import (
    FILLED,
    FILTER_ERRORS,
    PUBLISHED,
    CutOutcome,
    FileRead,
    FilterFailure,
    Frontier,
    ImportIndex,
    StoredCut,
)
from agent.crawl.job_folder import ImportedCut, Job, Phase, StateKeeper, crawl_of_import, folder_of
from agent.crawl.wget import BatchFiles
from agent.filters import chain
from agent.importing.browser_pages import Attaching, ImportedForms
from agent.importing.crawls import CrawlsBy
from agent.importing.foreign import Tally
from agent.importing.import_captures import Resolving, log_row
from agent.importing.import_sources import Source, digest_of, known_sources
from agent.importing.planning import Filling, Grouping, PlannedImport, leave_out_known, plan
from agent.importing.warcfile import WarcFileImport
from agent.jobs.publishing import JobOutcome, failures_noted, publish_domain, reported, until_stopped
from agent.reports import report
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.warc.job_warc import WarcWriter

# == publishing =======================================================================================================


@dataclass
class CutPublishing:
    """The publication of the snapshots of an import in order of time; `files` are in order of their numbers."""

    job: Job
    index: ImportIndex
    files: Sequence[Source]
    complete: bool

    def crawls(self) -> Iterator[int]:
        """Publish what is not published yet; yield the number of each crawl whose last snapshot is there."""
        cuts, ends = self.index.cuts(), self.index.ends_of_sources()
        crawls = len(self.index.crawls())
        ended: set[int] = set()
        for number, cut in enumerate(cuts, 1):
            if self.job.stop.is_set():
                raise Interrupted(f"stopped before {cut.domain} was published")
            ended |= ends.get(cut.begin, set())
            is_there = _is_there(cut.outcome)
            if is_there is None:
                is_there = self._publish(cut, crawls, len(self.files) + 1 + number, ended)
            if is_there:  # the files that ended before without a snapshot end with this one
                ended = set()
            if self.index.is_published(cut.crawl):
                yield cut.crawl

    def _publish(self, cut: StoredCut, crawls: int, batch: int, ended: set[int]) -> bool:
        """Publish a snapshot; return whether there was anything. `ended` are the files that no later one has."""
        with self._filled(cut, batch) as cut_frontier:
            earlier = cut_frontier.get(FILLED) or []
            imported = ImportedCut(
                job=self.job.folder.name,
                number=cut.number,
                time=from_epoch(cut.time),
                sources=self._digests(self.index.sources_of(cut)),
                ended=self._digests(ended),
                earlier=tuple(earlier),
            )
            name = crawl_of_import(self.job.folder.name, cut.crawl, crawls)
            shown = ImportedForms(self.index, self.job.folder).form
            job = dataclasses.replace(self.job, name=name, frontier=cut_frontier, cut=imported, shown=shown)
            seconds: dict[str, float] = {}
            done = publish_domain(job, cut.domain, self.complete and bool(cut.is_last), seconds)
            if done is not None:
                with cut_frontier.changes():
                    report.keep_domain(cut_frontier, *done)
            outcome: CutOutcome = {
                "part": cut_frontier.get(PUBLISHED.of(cut.domain)),
                "known": False,
                "seconds": seconds,
                "filter_errors": cut_frontier.get(FILTER_ERRORS) or {},
            }
            with self.index.changes():
                self.index.set_results(cut, cut_frontier.rows_with_results(), json.dumps(outcome))
        return outcome["part"] is not None

    @contextmanager
    def _filled(self, cut: StoredCut, batch: int) -> Iterator[Frontier]:
        """Open the frontier of a snapshot, with its captures; remove it when the snapshot is published."""
        path = self.job.folder / f"{batch:06}.db"
        cut_frontier = Frontier(path)
        try:
            if cut_frontier.get(FILLED) is None:
                filling = Filling(self.index, cut, self.job.folder, batch, self.complete)
                with cut_frontier.changes():
                    filling.into(cut_frontier)
                    cut_frontier.set(FILLED, filling.earlier)
            yield cut_frontier
        finally:
            cut_frontier.close()
        for left in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            left.unlink(missing_ok=True)
        BatchFiles(self.job.folder, batch).warc.unlink(missing_ok=True)

    def _digests(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.files[number - 1].digest for number in sorted(numbers))


def _is_there(outcome: str) -> bool | None:
    """Return whether a snapshot was published; None if it is not done yet."""
    return json.loads(outcome)["part"] is not None if outcome else None


# == planning =========================================================================================================


#: Of an import that found nothing: how much of its files' names, and how many faults of each, the error has.
_LONGEST_NAMES, _MOST_REASONS = 300, 3


@dataclass
class Planning:
    """The reading and planning of the files of an import, which are in order of their numbers."""

    job: Job
    index: ImportIndex
    files: Sequence[Source]
    losses: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def planned(self) -> PlannedImport:
        """Return the plan that was made."""
        index = self.index
        hosts = tuple(index.planned_hosts())
        crawls = tuple(crawl for crawl in index.crawls() if not index.is_known(crawl.number))
        return PlannedImport(crawls, hosts, tuple(index.untaken()), tuple(self.losses), tuple(self.remarks))

    def read(self) -> None:
        """Read all files that were not read before; note lost and skipped records. Raises Interrupted."""
        whole = sum(source.size for source in self.files)
        before = 0
        for batch, source in enumerate(self.files, 1):
            if self.index.get(frontier.FILE_READ.of(batch)) is None:
                self._read_file(source, batch, (before, whole))
            before += source.size
        file_reads = [self.index.get(frontier.FILE_READ.of(batch)) for batch in range(1, len(self.files) + 1)]
        results = [result for result in file_reads if result is not None]
        if not any(result["records"] for result in results):
            shutil.rmtree(self.job.folder, ignore_errors=True)
            names = ", ".join(source.name for source in self.files)[:_LONGEST_NAMES]
            why = "; ".join(loss for result in results for loss in result["losses"][:_MOST_REASONS])
            raise Damaged(f"{names}: there is no record of a crawl in it{f' ({why})' if why else ''}")
        self.losses += [loss for result in results for loss in result["losses"]]
        self.remarks += [remark for result in results for remark in result["remarks"]]

    def _read_file(self, source: Source, batch: int, share: tuple[int, int]) -> None:
        """Read one file, in one transaction; `share` is the number of bytes in the files before it, and in all."""
        before, whole = share

        def step(taken: int) -> None:
            self.job.progress("read (bytes)", before + taken, whole)
            if self.job.stop.is_set():
                raise Interrupted(f"stopped in {source.name}; the next run reads it from its start")

        asked = self.index.get(frontier.GROUPING)
        intake = WarcFileImport(self.index, self.job.settings, CrawlsBy(asked["crawls"] if asked else CrawlsBy.AUTO))
        with self.index.changes(), WarcWriter(BatchFiles(self.job.folder, batch).warc) as spool:
            intake.file(source, spool, batch, step)
            file_read: FileRead = {
                "records": intake.records,
                "losses": intake.losses.lines(),
                "remarks": intake.remarks.lines(),
            }
            self.index.set(frontier.FILE_READ.of(batch), file_read)

    def _go_on(self) -> None:
        if self.job.stop.is_set():
            raise Interrupted("stopped while the import was planned; the next run plans it again")

    def plan(self) -> None:
        """Resolve the revisits, attach what browsers showed, and write the plan, in one transaction.

        Nothing is done if that was done before.
        """
        asked, lost = self.index.get(frontier.GROUPING), self.index.get(frontier.PLANNED)
        if lost is None and asked is not None:
            losses, batch = Tally(), len(self.files) + 1
            grouping = Grouping(CrawlsBy(asked["crawls"]), asked["pause"], asked["max_cuts"])
            with self.index.changes(), WarcWriter(BatchFiles(self.job.folder, batch).warc) as spool:
                if self.index.get(frontier.COMPLETE) is not True:  # what waits is of other crawls, and these have all
                    reports = report.folders_with_waiting(self.job.archive.reports)
                    self.index.add_waiting(itertools.chain.from_iterable(map(report.read_waiting, reports)))
                resolving = Resolving(self.index, self.job.archive, self.job.folder, spool, batch, losses)
                resolving.resolve()
                remarks = Tally()
                with CaptureIndex(self.job.archive.database) as captures:
                    Attaching(self.index, remarks, self._go_on, partial(resolving.add_archived, captures)).attach()
                self.index.set(frontier.PLAN_REMARKS, remarks.lines())
                complete = self.index.get(frontier.COMPLETE) is True
                lost = [*losses.lines(), *plan(self.index, grouping, self.job.folder, complete=complete)]
                if self.index.get(frontier.AGAIN) is True:
                    leave_out_known(self.index, self.job.archive)
                self.index.set(frontier.PLANNED, lost)
        skipped = self.index.get(frontier.PLAN_REMARKS)
        self.losses += lost or []
        self.remarks += skipped or []


# == import ===========================================================================================================


#: Of an import that archived nothing: how many reasons are reported.
_MOST_WORDS = 5
_STOPPED = "stopped; the same command resumes it"


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: an outcome for each crawl, none if all files were known.

    `remarks` name what was skipped: no loss.
    """

    outcomes: tuple[JobOutcome, ...]
    known: tuple[Source, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The options of an import. `again`: files that were imported before, too; what the archive has is not doubled."""

    complete: bool = False
    accept_shrink: bool = False
    again: bool = False
    grouping: Grouping = field(default_factory=Grouping)


_PLAIN = ImportRequest()


def run(
    archive: Archive,
    sources: Sequence[Source],
    publication: Publication,
    profile: Profile | None,
    request: ImportRequest = _PLAIN,
    *,
    stop: threading.Event | None = None,
    progress: Progress = unseen,
) -> Imported:
    """Import files as crawls of a publication, or resume that import after an interruption.

    Files that were imported before are left out, unless the request takes them `again`.
    Raises Busy if the publication is being crawled, SettingsError if its filters cannot be loaded, Damaged if no file
    contains a record.
    """
    chain(publication.crawl.filters, archive.filters, profile)
    with job_folder.alone(archive, publication.name):
        name = _job_name(publication, sources)
        folder = _interrupted(archive, name)
        digests = known_sources(archive) if folder is None and not request.again else set[str]()
        imported_sources = tuple(source for source in sources if source.is_among(digests))
        fresh = [source for source in sources if source not in imported_sources]
        if not fresh:
            return Imported((), imported_sources)
        folder = folder or job_folder.new_folder(archive, name)
        keeper = StateKeeper(folder, publication.name, progress)
        with job_folder.opened_index(folder) as index, failures_noted(keeper):
            _note_request(index, fresh, request)
            keeper.begin(index)
            job = dataclasses.replace(
                _job(archive, folder, index, publication, profile, stop, keeper.progress),
                begun=from_epoch(index.get(frontier.BEGUN) or 0),
                accept_shrink=index.get(frontier.ACCEPT_SHRINK) is True,
            )
            by_digest = {source.digest: source for source in sources}
            files = [by_digest[digest] for digest in index.get(frontier.SOURCES) or ()]
            work = _Import(job, index, keeper, files)
            stopped = until_stopped(job, keeper, work.all, _STOPPED)
        outcomes = (*work.outcomes, *([stopped] if stopped is not None else []))
        return Imported(outcomes, imported_sources, tuple(work.remarks))


@dataclass
class _Import:
    """The work on an import, from its files to the reports of its crawls. The files are in order of their numbers."""

    job: Job
    index: ImportIndex
    keeper: StateKeeper
    files: Sequence[Source]
    outcomes: list[JobOutcome] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def all(self) -> None:
        """Do all that is left to do. Raises Interrupted."""
        seconds = report.Seconds(self.index)
        self.keeper.to(Phase.COLLECTING)
        planning = Planning(self.job, self.index, self.files, self.losses, self.remarks)
        with seconds.of("read"):
            planning.read()
        with seconds.of("plan"):
            planning.plan()
        with self.index.changes():
            seconds.keep()
        self.keeper.to(Phase.CONVERTING)
        crawls = [crawl.number for crawl in self.index.crawls()]
        left = {crawl.number for crawl in self.index.crawls() if not crawl.done}
        publishing = CutPublishing(self.job, self.index, self.files, complete=self._is_complete())
        for number in itertools.chain(publishing.crawls(), crawls):  # those without a snapshot last
            if number in left and not self.index.is_known(number):
                self._report(number, len(crawls))
            left.discard(number)
        self._settle_waiting()
        report.remove_job(self.job.folder)

    def _is_complete(self) -> bool:
        return self.index.get(frontier.COMPLETE) is True and not self.losses

    # -- reports -------------------------------------------------------------------------------------------------

    def _settle_waiting(self) -> None:
        """Remove from earlier reports the revisits that this import has resolved, or lets wait in its own."""

        def still_waits(revisit: dict[str, Any]) -> bool:
            return not self.index.has_capture(split(arc_path(revisit["url"]))[0], revisit["url"], revisit["time"])

        for folder in report.folders_with_waiting(self.job.archive.reports):
            if folder_of(folder.name) != self.job.folder.name:
                report.keep_waiting(folder, still_waits)

    def _report(self, number: int, crawls: int) -> None:
        """Write the report and the record of a crawl whose snapshots are published."""
        index = self.index
        complete = self._is_complete()
        outcomes: list[CutOutcome] = [json.loads(outcome) for outcome in index.outcomes(number)]
        parts = [outcome["part"] for outcome in outcomes if outcome["part"] is not None]
        seconds = Counter(index.get(frontier.SECONDS) if number == 1 else {})
        for outcome in outcomes:
            seconds.update(outcome["seconds"])
        last = {part["commit_tag"].partition("@")[2]: part for part in parts}.values()
        withheld = [f"{part['commit_tag']}: {part['reason']}" for part in last if part["reason"]] if complete else []
        warnings = [*self.losses, *withheld]
        if crawls == len(self.outcomes) + 1 and not parts and not any(outcome.tags for outcome in self.outcomes):
            why = "; ".join(
                f"{count.number} {count.note or f'status {count.status}'}" for count in index.untaken()[:_MOST_WORDS]
            )
            warnings.append(f"nothing in the files could be archived{f' ({why})' if why else ''}")
        job = dataclasses.replace(self.job, name=crawl_of_import(self.job.folder.name, number, crawls))
        counts = index.counts(number)
        account = report.Account(
            lines=(line(log_row(capture), "") for capture in index.log_of(number)),
            urls=index.by_status_of(number),
            documents=index.by_mime_type_of(number),
            bytes=counts["bytes"],
            filter_errors=_summed(outcomes),
            warcs=[BatchFiles(self.job.folder, batch).warc for batch in index.batches_of(number)],
            revisits=index.unresolved(number),
        )
        item = dataclasses.replace(
            self.keeper.ended(Phase.ARCHIVED), job=job.name, warnings=tuple(warnings), bytes=counts["bytes"]
        )
        self.outcomes.append(reported(job, account, parts, item, seconds=seconds, complete=complete))
        with index.changes():
            index.crawl_done(number)


def _summed(outcomes: Sequence[CutOutcome]) -> dict[str, FilterFailure]:
    """Return the failures of filters over all snapshots of a crawl."""
    failures: dict[str, FilterFailure] = {}
    for outcome in outcomes:
        for name, failure in outcome["filter_errors"].items():
            total = failures.setdefault(name, {**failure, "documents": 0})
            total["documents"] += failure["documents"]
    return failures


def tried(
    archive: Archive,
    sources: Sequence[Source],
    publication: Publication,
    profile: Profile | None,
    request: ImportRequest = _PLAIN,
    *,
    stop: threading.Event | None = None,
    progress: Progress = unseen,
) -> PlannedImport:
    """Return the plan of an import of files that are not known, and publish nothing. Raises as `run`."""
    digests = set[str]() if request.again else known_sources(archive)
    fresh = sorted((source for source in sources if not source.is_among(digests)), key=lambda source: source.digest)
    with TemporaryDirectory(prefix=".try-", dir=archive.log) as scratch:
        folder = Path(scratch)
        with job_folder.opened_index(folder) as index:
            _note_request(index, fresh, request)
            job = _job(archive, folder, index, publication, profile, stop, progress)
            planning = Planning(job, index, fresh)
            if fresh:
                planning.read()
                planning.plan()
            return planning.planned()


def _job(  # noqa: PLR0917 # a job's parts
    archive: Archive,
    folder: Path,
    index: ImportIndex,
    publication: Publication,
    profile: Profile | None,
    stop: threading.Event | None,
    progress: Progress,
) -> Job:
    """Return a job that begins now."""
    return Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        frontier=index,
        publication=publication,
        profile=profile,
        begun=now(),
        stop=stop or threading.Event(),
        progress=progress,
    )


# -- the job's folder --------------------------------------------------------------------------------------------------


def _job_name(publication: Publication, sources: Sequence[Source]) -> str:
    digest = digest_of(sources)
    return f"{publication.name}+{'import' if publication.name.endswith(digest) else digest}"


def _interrupted(archive: Archive, name: str) -> Path | None:
    """Return the folder of this import, if it was interrupted. One that an older version began is dropped."""
    folder = job_folder.interrupted(archive, name)
    if folder is None:
        return None
    with job_folder.opened_index(folder) as index:
        is_older = index.get(frontier.SOURCES) is not None and index.get(frontier.GROUPING) is None
    if is_older:
        job_folder.drop(folder)
        return None
    return folder


def _note_request(index: ImportIndex, sources: Sequence[Source], request: ImportRequest) -> None:
    """Store the request: its files, and its options. An option given once stays set when the import is resumed."""
    with index.changes():
        if index.get(frontier.SOURCES) is None:
            index.set(frontier.SOURCES, sorted(source.digest for source in sources))
            grouping: frontier.GroupingFact = {
                "crawls": request.grouping.crawls,
                "pause": request.grouping.pause,
                "max_cuts": request.grouping.max_cuts,
            }
            index.set(frontier.GROUPING, grouping)
        for fact, value in (
            (frontier.COMPLETE, request.complete),
            (frontier.ACCEPT_SHRINK, request.accept_shrink),
            (frontier.AGAIN, request.again),
        ):
            index.set(fact, value or index.get(fact) is True)
