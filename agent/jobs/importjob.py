"""One import: foreign WARC files become a crawl of their own, told apart by what is in them.

A job like a crawl's, with files in place of wget: what was read of them is safe in the job's folder before anything is
published, each file in one transaction. So an import that was killed goes on when it is given again, and one of files
that the archive knows (`Source:` in its commits) changes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.capture.wgetcommand import BatchFiles
from agent.filters import chain
from agent.frontier.store import Frontier
from agent.importing import otherformats
from agent.importing.importedfiles import known_sources
from agent.importing.revisits import resolve
from agent.importing.tally import Tally
from agent.importing.warcfile import WarcFileImport
from agent.jobfolder.job import Job, Progress
from agent.jobfolder.jobstate import Phase
from agent.jobfolder.names import named_after
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.crawljob import folders_of, new_folder
from agent.jobs.ending import JobOutcome, failures_noted, finish, publish, until_stopped
from agent.reports import report
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.errors import Damaged, Interrupted, UsageError
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.system import locks

_CHUNK = 1 << 20
_STOPPED = "stopped; the same command goes on from here"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported, and the SHA-256 of its bytes."""

    path: Path
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an import: None where all files were known. `remarks` say what was passed over, and is no loss."""

    outcome: JobOutcome | None
    known: tuple[Path, ...]
    remarks: tuple[str, ...] = ()


def sources_of(paths: Sequence[Path], progress: Progress = lambda *_: None) -> list[Source]:
    """The files with their hashes, each content once. Raises UsageError where one is no file, Damaged where it is of
    another format.
    """
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path} is no file")
        if other := otherformats.named(path):
            raise Damaged(other)
    whole = sum(path.stat().st_size for path in paths)
    found: dict[str, Source] = {}
    done = 0
    for path in paths:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
                done += len(data)
                progress("check files (bytes)", done, whole)
        source = Source(path.resolve(), digest.hexdigest(), path.stat().st_size)
        found.setdefault(source.digest, source)
    return list(found.values())


def name_of(sources: Sequence[Source]) -> str:
    """The publication that files are which nobody gave one: after the first of them, and what is in them."""
    return named_after(sources[0].path.name.partition(".warc")[0], _digest(sources), "import")


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
    """Import files as one crawl of a publication, or go on with that import where it was interrupted.

    Raises Busy when the publication is being crawled, SettingsError when its filters cannot be loaded, Damaged when no
    file holds a record.
    """
    chain(publication.crawl.filters, archive.filters, profile)
    busy = f"{publication.name} is being crawled or imported already, by another process"
    with locks.exclusive_or_busy(archive.publication_lock(publication.name), busy):
        name = _job_name(publication, sources)
        folder = _interrupted(archive, name)
        known = known_sources(archive) if folder is None else set[str]()
        told = tuple(source.path for source in sources if source.digest in known)
        fresh = [source for source in sources if source.digest not in known]
        if not fresh:
            return Imported(None, told)
        folder = folder or new_folder(archive, name)
        keeper = StateKeeper(folder, publication.name, progress)
        with _opened(folder, fresh, complete=complete, accept_shrink=accept_shrink) as frontier, failures_noted(keeper):
            keeper.begin(frontier)
            stop = stop or threading.Event()
            job = _job(archive, folder, frontier, keeper, publication=publication, profile=profile, stop=stop)
            by_digest = {source.digest: source for source in sources}
            files, remarks = [by_digest[digest] for digest in job.sources], list[str]()
            outcome = until_stopped(job, keeper, lambda: _work(job, keeper, files, remarks), _STOPPED)
        return Imported(outcome, told, tuple(remarks))


def _job(archive: Archive, folder: Path, frontier: Frontier, keeper: StateKeeper, **asked: Any) -> Job:
    return Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        frontier=frontier,
        begun=from_epoch(frontier.get("begun")),
        accept_shrink=frontier.get("accept_shrink"),
        sources=tuple(frontier.get("sources")),
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
    complete = job.frontier.get("complete") and not losses
    withheld = publish(job, complete, seconds)
    losses += withheld if complete else []
    if not report.domains(job.frontier):
        losses.append("nothing in the files could be archived")
    return finish(job, keeper, seconds, complete=complete, warnings=losses, state=Phase.ARCHIVED)


def _read(job: Job, sources: Sequence[Source]) -> tuple[list[str], list[str]]:
    """Read all files that were not read before: what was lost, and what was passed over. Raises Interrupted."""
    frontier = job.frontier
    whole = sum(source.size for source in sources)
    before = 0
    for batch, source in enumerate(sources, 1):
        if frontier.get(f"file:{batch}") is None:
            _read_file(job, source, batch, (before, whole))
        before += source.size
    told = [frontier.get(f"file:{batch}") for batch in range(1, len(sources) + 1)]
    if not any(each["records"] for each in told):
        shutil.rmtree(job.folder)
        raise Damaged(f"{', '.join(source.path.name for source in sources)}: there is no WARC record in it")
    if frontier.get("revisits") is None:
        lost = Tally()
        with frontier.changes():
            resolve(job, lost, len(sources) + 1)
            frontier.set("revisits", lost.lines())
    losses = [line for each in told for line in each["losses"]] + frontier.get("revisits")
    return losses, [line for each in told for line in each["remarks"]]


def _read_file(job: Job, source: Source, batch: int, share: tuple[int, int]) -> None:
    """Read one file, in one transaction; `share` is how many bytes came before it, of how many."""
    before, whole = share

    def step(taken: int) -> None:
        job.progress("read (bytes)", before + taken, whole)
        if job.stop.is_set():
            raise Interrupted(f"stopped in {source.path.name}; what was read of it is forgotten")

    intake = WarcFileImport(job.frontier, job.settings)
    with job.frontier.changes():
        intake.file(source.path, BatchFiles(job.folder, batch).warc, batch, step)
        told = {"records": intake.records, "losses": intake.losses.lines(), "remarks": intake.remarks.lines()}
        job.frontier.set(f"file:{batch}", told)


# -- the job's folder --------------------------------------------------------------------------------------------------


def _digest(sources: Sequence[Source]) -> str:
    return hashlib.sha256("\n".join(sorted(source.digest for source in sources)).encode()).hexdigest()[:8]


def _job_name(publication: Publication, sources: Sequence[Source]) -> str:
    digest = _digest(sources)
    return f"{publication.name}+{'import' if publication.name.endswith(digest) else digest}"


def _interrupted(archive: Archive, name: str) -> Path | None:
    """The folder of this very import, where it was interrupted. No publication's name has a `+`, so no crawl's."""
    for path in folders_of(archive, name):
        if (path / "frontier.db").exists():
            return path
        shutil.rmtree(path)  # killed before it had begun
    return None


@contextmanager
def _opened(folder: Path, sources: Sequence[Source], **asked: bool) -> Iterator[Frontier]:
    """The frontier of the import. What it was `asked` for holds from then on, also where it is not said again."""
    frontier = Frontier(folder / "frontier.db")
    try:
        frontier.begin_captures()
        if frontier.get("begun") is None:
            with frontier.changes():
                frontier.set("sources", [source.digest for source in sources])
                frontier.set("begun", now().timestamp())
        with frontier.changes():
            for name, value in asked.items():
                frontier.set(name, value or frontier.get(name) is True)
        yield frontier
    finally:
        frontier.close()
