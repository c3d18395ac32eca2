"""One import: foreign files become a crawl, identified by their content.

A job like a crawl's, with files instead of wget. Each file is read into the job's folder in one transaction, before
anything is published. So the same command resumes a killed import. Files that the archive contains already (`Source:`
in its commits) are not imported again.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.capture.wgetcommand import BatchFiles
from agent.filters import chain
from agent.frontier import facts
from agent.frontier.facts import FileRead
from agent.frontier.store import Frontier
from agent.importing.importedfiles import known_sources
from agent.importing.revisits import resolve
from agent.importing.sources import Source, digest_of
from agent.importing.tally import Tally
from agent.importing.warcfile import WarcFileImport
from agent.jobfolder import folders
from agent.jobfolder.job import Job, Progress
from agent.jobfolder.jobstate import Phase
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.ending import JobOutcome, failures_noted, finish, publish, until_stopped
from agent.reports import report
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import from_epoch

#: Of an import that found nothing: how much of its files' names, and how many faults of each, the error has.
_LONGEST_NAMES, _MOST_REASONS = 300, 3
_STOPPED = "stopped; the same command goes on from here"


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import; `outcome` is None if all files were known. `remarks` name what was skipped: no loss."""

    outcome: JobOutcome | None
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
    stop: threading.Event | None = None,
    progress: Progress = lambda *_: None,
) -> Imported:
    """Import files as one crawl of a publication, or resume that import after an interruption.

    Raises Busy if the publication is being crawled, SettingsError if its filters cannot be loaded, Damaged if no file
    contains a record.
    """
    chain(publication.crawl.filters, archive.filters, profile)
    with folders.alone(archive, publication.name):
        name = _job_name(publication, sources)
        folder = folders.interrupted(archive, name)
        known = known_sources(archive) if folder is None else set[str]()
        told = tuple(source for source in sources if source.is_among(known))
        fresh = [source for source in sources if source not in told]
        if not fresh:
            return Imported(None, told)
        folder = folder or folders.new_folder(archive, name)
        keeper = StateKeeper(folder, publication.name, progress)
        with folders.opened(folder) as frontier, failures_noted(keeper):
            _note_request(frontier, fresh, complete=complete, accept_shrink=accept_shrink)
            keeper.begin(frontier)
            stop = stop or threading.Event()
            job = _job(archive, folder, frontier, keeper, publication=publication, profile=profile, stop=stop)
            by_digest = {source.digest: source for source in sources}
            files, remarks = [by_digest[digest] for digest in job.sources], list[str]()
            outcome = until_stopped(job, keeper, lambda: _work(job, keeper, files, remarks), _STOPPED)
        return Imported(outcome, told, tuple(remarks))


def _job(archive: Archive, folder: Path, frontier: Frontier, keeper: StateKeeper, **asked: Any) -> Job:
    digests = frontier.get(facts.SOURCES)
    return Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        frontier=frontier,
        begun=from_epoch(frontier.get(facts.BEGUN) or 0),
        accept_shrink=frontier.get(facts.ACCEPT_SHRINK) is True,
        sources=tuple(digests or ()),
        progress=keeper.progress,
        **asked,
    )


def _work(job: Job, keeper: StateKeeper, sources: Sequence[Source], remarks: list[str]) -> JobOutcome:
    seconds = report.Seconds(job.frontier)
    keeper.to(Phase.COLLECTING)
    with seconds.of("read"):
        losses, passed_over = _read(job, sources)
    remarks += passed_over
    keeper.to(Phase.CONVERTING)
    complete = job.frontier.get(facts.COMPLETE) is True and not losses
    withheld = publish(job, complete, seconds)
    losses += withheld if complete else []
    if not report.domains(job.frontier):
        losses.append("nothing in the files could be archived")
    return finish(job, keeper, seconds, complete=complete, warnings=losses, state=Phase.ARCHIVED)


def _read(job: Job, sources: Sequence[Source]) -> tuple[list[str], list[str]]:
    """Read all files that were not read before; return lines on lost and on skipped records. Raises Interrupted."""
    frontier = job.frontier
    whole = sum(source.size for source in sources)
    before = 0
    for batch, source in enumerate(sources, 1):
        if frontier.get(facts.FILE_READ.of(batch)) is None:
            _read_file(job, source, batch, (before, whole))
        before += source.size
    told = [known for batch in range(1, len(sources) + 1) if (known := frontier.get(facts.FILE_READ.of(batch)))]
    if not any(each["records"] for each in told):
        shutil.rmtree(job.folder)
        names = ", ".join(source.name for source in sources)[:_LONGEST_NAMES]
        why = "; ".join(line for each in told for line in each["losses"][:_MOST_REASONS])
        raise Damaged(f"{names}: there is no record of a crawl in it{f' ({why})' if why else ''}")
    unresolved = frontier.get(facts.REVISITS)
    if unresolved is None:
        lost = Tally()
        with frontier.changes():
            resolve(job, lost, len(sources) + 1)
            unresolved = lost.lines()
            frontier.set(facts.REVISITS, unresolved)
    losses = [line for each in told for line in each["losses"]] + unresolved
    return losses, [line for each in told for line in each["remarks"]]


def _read_file(job: Job, source: Source, batch: int, share: tuple[int, int]) -> None:
    """Read one file, in one transaction; `share` is the number of bytes in the files before it, and in all files."""
    before, whole = share

    def step(taken: int) -> None:
        job.progress("read (bytes)", before + taken, whole)
        if job.stop.is_set():
            raise Interrupted(f"stopped in {source.name}; what was read of it is forgotten")

    intake = WarcFileImport(job.frontier, job.settings)
    with job.frontier.changes():
        intake.file(source.path, source.name, BatchFiles(job.folder, batch).warc, batch, step)
        told: FileRead = {"records": intake.records, "losses": intake.losses.lines(), "remarks": intake.remarks.lines()}
        job.frontier.set(facts.FILE_READ.of(batch), told)


# -- the job's folder --------------------------------------------------------------------------------------------------


def _job_name(publication: Publication, sources: Sequence[Source]) -> str:
    digest = digest_of(sources)
    return f"{publication.name}+{'import' if publication.name.endswith(digest) else digest}"


def _note_request(frontier: Frontier, sources: Sequence[Source], *, complete: bool, accept_shrink: bool) -> None:
    """Store the request: its files, and its options. An option given once stays set when the import is resumed."""
    frontier.begin_captures()
    with frontier.changes():
        if frontier.get(facts.SOURCES) is None:
            frontier.set(facts.SOURCES, [source.digest for source in sources])
        for fact, said in ((facts.COMPLETE, complete), (facts.ACCEPT_SHRINK, accept_shrink)):
            frontier.set(fact, said or frontier.get(fact) is True)
