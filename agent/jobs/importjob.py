"""An import: foreign files become crawls, and each crawl a job with a report and a record of its own.

All files are read into the job's folder, each in one transaction, and planned, before anything is published. So the
same command resumes a killed import by the same plan. Files that the archive contains already are not imported again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.capture.wgetcommand import BatchFiles
from agent.filters import chain
from agent.frontier import facts
from agent.frontier.facts import CutOutcome, FileRead, FilterFailure
from agent.frontier.importindex import ImportIndex
from agent.importing.captures import log_row
from agent.importing.crawls.naming import CrawlsBy
from agent.importing.importedfiles import known_sources
from agent.importing.plan.planning import Grouping, plan
from agent.importing.revisits import Resolving
from agent.importing.sources import Source, digest_of
from agent.importing.tally import Tally
from agent.importing.warcfile import WarcFileImport
from agent.jobfolder import folders
from agent.jobfolder.job import Job, Progress
from agent.jobfolder.jobstate import Phase
from agent.jobfolder.loglines import line
from agent.jobfolder.names import crawl_of_import
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.cutpublishing import CutPublishing
from agent.jobs.ending import JobOutcome, failures_noted, reported, until_stopped
from agent.reports import report
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.warc.writer import WarcWriter

#: Of an import that found nothing: how much of its files' names, and how many faults of each, the error has.
_LONGEST_NAMES, _MOST_REASONS = 300, 3
_STOPPED = "stopped; the same command goes on from here"


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: an outcome for each crawl, none if all files were known.

    `remarks` name what was skipped: no loss.
    """

    outcomes: tuple[JobOutcome, ...]
    known: tuple[Source, ...]
    remarks: tuple[str, ...] = ()


def run(
    archive: Archive,
    sources: Sequence[Source],
    publication: Publication,
    profile: Profile | None,
    *,
    complete: bool = False,
    accept_shrink: bool = False,
    grouping: Grouping | None = None,
    stop: threading.Event | None = None,
    progress: Progress = lambda *_: None,
) -> Imported:
    """Import files as crawls of a publication, or resume that import after an interruption.

    Raises Busy if the publication is being crawled, SettingsError if its filters cannot be loaded, Damaged if no file
    contains a record.
    """
    chain(publication.crawl.filters, archive.filters, profile)
    with folders.alone(archive, publication.name):
        name = _job_name(publication, sources)
        folder = _interrupted(archive, name)
        known = known_sources(archive) if folder is None else set[str]()
        told = tuple(source for source in sources if source.is_among(known))
        fresh = [source for source in sources if source not in told]
        if not fresh:
            return Imported((), told)
        folder = folder or folders.new_folder(archive, name)
        keeper = StateKeeper(folder, publication.name, progress)
        with folders.opened_index(folder) as index, failures_noted(keeper):
            _note_request(index, fresh, grouping or Grouping(), complete=complete, accept_shrink=accept_shrink)
            keeper.begin(index)
            job = Job(
                archive=archive,
                name=folder.name,
                folder=folder,
                frontier=index,
                publication=publication,
                profile=profile,
                begun=from_epoch(index.get(facts.BEGUN) or 0),
                accept_shrink=index.get(facts.ACCEPT_SHRINK) is True,
                stop=stop or threading.Event(),
                progress=keeper.progress,
            )
            by_digest = {source.digest: source for source in sources}
            files = [by_digest[digest] for digest in index.get(facts.SOURCES) or ()]
            work = _Import(job, index, keeper, files)
            stopped = until_stopped(job, keeper, work.all, _STOPPED)
        outcomes = (*work.outcomes, *([stopped] if stopped is not None else []))
        return Imported(outcomes, told, tuple(work.remarks))


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
        with seconds.of("read"):
            self._read()
        with seconds.of("plan"):
            self._plan()
        with self.index.changes():
            seconds.keep()
        self.keeper.to(Phase.CONVERTING)
        crawls = [crawl.number for crawl in self.index.crawls()]
        left = {crawl.number for crawl in self.index.crawls() if not crawl.done}
        publishing = CutPublishing(self.job, self.index, self.files, complete=self._is_complete())
        for number in itertools.chain(publishing.crawls(), crawls):  # those without a snapshot last
            if number in left:
                self._report(number, len(crawls))
                left.remove(number)
        report.remove_job(self.job.folder)

    def _is_complete(self) -> bool:
        return self.index.get(facts.COMPLETE) is True and not self.losses

    # -- reading and planning ------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read all files that were not read before; note lost and skipped records. Raises Interrupted."""
        whole = sum(source.size for source in self.files)
        before = 0
        for batch, source in enumerate(self.files, 1):
            if self.index.get(facts.FILE_READ.of(batch)) is None:
                self._read_file(source, batch, (before, whole))
            before += source.size
        told = [self.index.get(facts.FILE_READ.of(batch)) for batch in range(1, len(self.files) + 1)]
        results = [result for result in told if result is not None]
        if not any(result["records"] for result in results):
            shutil.rmtree(self.job.folder)
            names = ", ".join(source.name for source in self.files)[:_LONGEST_NAMES]
            why = "; ".join(line for result in results for line in result["losses"][:_MOST_REASONS])
            raise Damaged(f"{names}: there is no record of a crawl in it{f' ({why})' if why else ''}")
        self.losses += [line for result in results for line in result["losses"]]
        self.remarks += [line for result in results for line in result["remarks"]]

    def _read_file(self, source: Source, batch: int, share: tuple[int, int]) -> None:
        """Read one file, in one transaction; `share` is the number of bytes in the files before it, and in all."""
        before, whole = share

        def step(taken: int) -> None:
            self.job.progress("read (bytes)", before + taken, whole)
            if self.job.stop.is_set():
                raise Interrupted(f"stopped in {source.name}; what was read of it is forgotten")

        asked = self.index.get(facts.GROUPING)
        intake = WarcFileImport(self.index, self.job.settings, CrawlsBy(asked["crawls"] if asked else CrawlsBy.AUTO))
        with self.index.changes(), WarcWriter(BatchFiles(self.job.folder, batch).warc) as spool:
            intake.file(source, spool, batch, step)
            told: FileRead = {
                "records": intake.records,
                "losses": intake.losses.lines(),
                "remarks": intake.remarks.lines(),
            }
            self.index.set(facts.FILE_READ.of(batch), told)

    def _plan(self) -> None:
        """Resolve the revisits, and write the plan, in one transaction, unless that was done before."""
        asked, lost = self.index.get(facts.GROUPING), self.index.get(facts.PLANNED)
        if lost is None and asked is not None:
            losses, batch = Tally(), len(self.files) + 1
            grouping = Grouping(CrawlsBy(asked["crawls"]), asked["pause"], asked["max_cuts"])
            with self.index.changes(), WarcWriter(BatchFiles(self.job.folder, batch).warc) as spool:
                Resolving(self.index, self.job.archive, self.job.folder, spool, batch, losses).resolve()
                complete = self.index.get(facts.COMPLETE) is True
                lost = [*losses.lines(), *plan(self.index, grouping, self.job.folder, complete=complete)]
                self.index.set(facts.PLANNED, lost)
        self.losses += lost or []

    # -- reports -------------------------------------------------------------------------------------------------

    def _report(self, number: int, crawls: int) -> None:
        """Write the report and the record of a crawl whose snapshots are published."""
        index = self.index
        complete = self._is_complete()
        outcomes: list[CutOutcome] = [json.loads(outcome) for outcome in index.outcomes(number)]
        parts = [outcome["part"] for outcome in outcomes if outcome["part"] is not None]
        seconds = Counter(index.get(facts.SECONDS) if number == 1 else {})
        for outcome in outcomes:
            seconds.update(outcome["seconds"])
        last = {part["commit_tag"].partition("@")[2]: part for part in parts}.values()
        withheld = [f"{part['commit_tag']}: {part['reason']}" for part in last if part["reason"]] if complete else []
        warnings = [*self.losses, *withheld]
        if crawls == len(self.outcomes) + 1 and not parts and not any(outcome.tags for outcome in self.outcomes):
            warnings.append("nothing in the files could be archived")
        job = dataclasses.replace(self.job, name=crawl_of_import(self.job.folder.name, number, crawls))
        counts = index.counts(number)
        account = report.Account(
            lines=(line(log_row(capture), "") for capture in index.log_of(number)),
            urls=index.by_status_of(number),
            documents=index.by_mime_type_of(number),
            bytes=counts["bytes"],
            filter_errors=_summed(outcomes),
            warcs=[BatchFiles(self.job.folder, batch).warc for batch in index.batches_of(number)],
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
            known = failures.setdefault(name, {**failure, "documents": 0})
            known["documents"] += failure["documents"]
    return failures


# -- the job's folder --------------------------------------------------------------------------------------------------


def _job_name(publication: Publication, sources: Sequence[Source]) -> str:
    digest = digest_of(sources)
    return f"{publication.name}+{'import' if publication.name.endswith(digest) else digest}"


def _interrupted(archive: Archive, name: str) -> Path | None:
    """Return the folder of this import, if it was interrupted. One that an older version began is dropped."""
    folder = folders.interrupted(archive, name)
    if folder is None:
        return None
    with folders.opened_index(folder) as index:
        is_older = index.get(facts.SOURCES) is not None and index.get(facts.GROUPING) is None
    if is_older:
        folders.drop(folder)
        return None
    return folder


def _note_request(
    index: ImportIndex, sources: Sequence[Source], grouping: Grouping, *, complete: bool, accept_shrink: bool
) -> None:
    """Store the request: its files, and its options. An option given once stays set when the import is resumed."""
    with index.changes():
        if index.get(facts.SOURCES) is None:
            index.set(facts.SOURCES, sorted(source.digest for source in sources))
            asked: facts.GroupingFact = {
                "crawls": grouping.crawls,
                "pause": grouping.pause,
                "max_cuts": grouping.max_cuts,
            }
            index.set(facts.GROUPING, asked)
        for fact, said in ((facts.COMPLETE, complete), (facts.ACCEPT_SHRINK, accept_shrink)):
            index.set(fact, said or index.get(fact) is True)
