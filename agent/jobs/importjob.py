"""An import: foreign files become crawls, and each crawl a job with a report and a record of its own.

All files are read into the job's folder, each in one transaction, and planned, before anything is published. So the
same command resumes a killed import by the same plan. Files that the archive contains already are not imported again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.capture.wgetcommand import BatchFiles
from agent.filters import chain
from agent.frontier import facts
from agent.frontier.facts import CutOutcome, FilterFailure
from agent.frontier.importindex import ImportIndex
from agent.importing.captures import log_row
from agent.importing.importedfiles import known_sources
from agent.importing.plan.planned import PlannedImport
from agent.importing.plan.planning import Grouping
from agent.importing.sources import Source, digest_of
from agent.jobfolder import folders
from agent.jobfolder.job import Job, Progress
from agent.jobfolder.jobstate import Phase
from agent.jobfolder.loglines import line
from agent.jobfolder.names import crawl_of_import, folder_of
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.cutpublishing import CutPublishing
from agent.jobs.ending import JobOutcome, failures_noted, reported, until_stopped
from agent.jobs.importplan import Planning
from agent.reports import report, waiting
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.metadata import from_epoch, now

#: Of an import that archived nothing: how many reasons are told.
_MOST_WORDS = 5
_STOPPED = "stopped; the same command goes on from here"


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: an outcome for each crawl, none if all files were known.

    `remarks` name what was skipped: no loss.
    """

    outcomes: tuple[JobOutcome, ...]
    known: tuple[Source, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of an import. `again`: files that were imported before, too; what the archive has is not doubled."""

    complete: bool = False
    accept_shrink: bool = False
    again: bool = False
    grouping: Grouping = field(default_factory=Grouping)


_PLAIN = Request()


def run(
    archive: Archive,
    sources: Sequence[Source],
    publication: Publication,
    profile: Profile | None,
    request: Request = _PLAIN,
    *,
    stop: threading.Event | None = None,
    progress: Progress = lambda *_: None,
) -> Imported:
    """Import files as crawls of a publication, or resume that import after an interruption.

    Files that were imported before are left out, unless the request takes them `again`.
    Raises Busy if the publication is being crawled, SettingsError if its filters cannot be loaded, Damaged if no file
    contains a record.
    """
    chain(publication.crawl.filters, archive.filters, profile)
    with folders.alone(archive, publication.name):
        name = _job_name(publication, sources)
        folder = _interrupted(archive, name)
        known = known_sources(archive) if folder is None and not request.again else set[str]()
        told = tuple(source for source in sources if source.is_among(known))
        fresh = [source for source in sources if source not in told]
        if not fresh:
            return Imported((), told)
        folder = folder or folders.new_folder(archive, name)
        keeper = StateKeeper(folder, publication.name, progress)
        with folders.opened_index(folder) as index, failures_noted(keeper):
            _note_request(index, fresh, request)
            keeper.begin(index)
            job = dataclasses.replace(
                _job(archive, folder, index, publication, profile, stop, keeper.progress),
                begun=from_epoch(index.get(facts.BEGUN) or 0),
                accept_shrink=index.get(facts.ACCEPT_SHRINK) is True,
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
        return self.index.get(facts.COMPLETE) is True and not self.losses

    # -- reports -------------------------------------------------------------------------------------------------

    def _settle_waiting(self) -> None:
        """Remove from earlier reports the revisits that this import has resolved, or lets wait in its own."""

        def still_waits(revisit: dict[str, Any]) -> bool:
            return not self.index.has_capture(split(arc_path(revisit["url"]))[0], revisit["url"], revisit["time"])

        for folder in waiting.folders(self.job.archive.reports):
            if folder_of(folder.name) != self.job.folder.name:
                waiting.keep(folder, still_waits)

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
            why = "; ".join(
                f"{each.number} {each.note or f'status {each.status}'}" for each in index.untaken()[:_MOST_WORDS]
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
            known = failures.setdefault(name, {**failure, "documents": 0})
            known["documents"] += failure["documents"]
    return failures


def tried(
    archive: Archive,
    sources: Sequence[Source],
    publication: Publication,
    profile: Profile | None,
    request: Request = _PLAIN,
    *,
    stop: threading.Event | None = None,
    progress: Progress = lambda *_: None,
) -> PlannedImport:
    """Return the plan of an import of files that are not known, and publish nothing. Raises as `run`."""
    known = set[str]() if request.again else known_sources(archive)
    fresh = sorted((each for each in sources if not each.is_among(known)), key=lambda each: each.digest)
    with TemporaryDirectory(prefix=".try-", dir=archive.log) as scratch:
        folder = Path(scratch)
        with folders.opened_index(folder) as index:
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
    folder = folders.interrupted(archive, name)
    if folder is None:
        return None
    with folders.opened_index(folder) as index:
        is_older = index.get(facts.SOURCES) is not None and index.get(facts.GROUPING) is None
    if is_older:
        folders.drop(folder)
        return None
    return folder


def _note_request(index: ImportIndex, sources: Sequence[Source], request: Request) -> None:
    """Store the request: its files, and its options. An option given once stays set when the import is resumed."""
    with index.changes():
        if index.get(facts.SOURCES) is None:
            index.set(facts.SOURCES, sorted(source.digest for source in sources))
            grouping: facts.GroupingFact = {
                "crawls": request.grouping.crawls,
                "pause": request.grouping.pause,
                "max_cuts": request.grouping.max_cuts,
            }
            index.set(facts.GROUPING, grouping)
        for fact, said in (
            (facts.COMPLETE, request.complete),
            (facts.ACCEPT_SHRINK, request.accept_shrink),
            (facts.AGAIN, request.again),
        ):
            index.set(fact, said or index.get(fact) is True)
