"""One import: foreign WARC files become a crawl of their own, told apart by what is in them (DESIGN.md section 3).

A job like a crawl's, with files in place of wget: what was read of them is safe in the job's folder before anything is
published, each file in one transaction. So an import that was killed goes on when it is given again, and one of files
that the archive knows (`Source:` in its commits) changes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent import report
from agent.fetch import BatchFiles
from agent.filters import chain
from agent.foreign import Intake
from agent.frontier import Frontier
from agent.item import State
from agent.itemkeeper import ItemKeeper
from agent.job import Job
from agent.jobnames import named_after
from agent.jobs import Outcome, failures_noted, folders_of, new_folder, stopped
from agent.knownsources import known_sources
from agent.pipeline import publish_domain
from agent.remarks import Remarks
from agent.revisits import resolve
from webarcfs.archive import locks
from webarcfs.archive.config import Profile, Publication
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import Damaged, Interrupted, UsageError
from webarcfs.archive.model import from_epoch, now

_CHUNK = 1 << 20
_STOPPED = "stopped; the same command goes on from here"
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported, and the SHA-256 of its bytes."""

    path: Path
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an import: None where all files were known. `remarks` say what was passed over, and is no loss."""

    outcome: Outcome | None
    known: tuple[Path, ...]
    remarks: tuple[str, ...] = ()


def sources_of(paths: Sequence[Path], progress: Progress = lambda *_: None) -> list[Source]:
    """The files with their hashes, each content once. Raises UsageError where one cannot be read."""
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path} is no file")
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
        digest = _digest(sources)
        name = f"{publication.name}+{'import' if publication.name.endswith(digest) else digest}"
        folder, known = _interrupted(archive, name), set[str]()
        if folder is None:
            known = known_sources(archive) & {source.digest for source in sources}
        told = tuple(source.path for source in sources if source.digest in known)
        fresh = [source for source in sources if source.digest not in known]
        if not fresh:
            return Imported(None, told)
        folder = folder or new_folder(archive, name)
        keeper = ItemKeeper(folder, publication.name, progress)
        with _opened(folder, fresh, complete=complete, accept_shrink=accept_shrink) as frontier, failures_noted(keeper):
            keeper.begin(frontier)
            job = Job(
                archive=archive,
                name=folder.name,
                folder=folder,
                publication=publication,
                profile=profile,
                frontier=frontier,
                begun=from_epoch(frontier.get("begun")),
                accept_shrink=frontier.get("accept_shrink"),
                sources=tuple(frontier.get("sources")),
                stop=stop or threading.Event(),
                progress=keeper.progress,
            )
            by_digest = {source.digest: source for source in sources}
            outcome, remarks = _work_until_stopped(job, keeper, [by_digest[digest] for digest in job.sources])
            if outcome.interrupted:
                keeper.to(State.INTERRUPTED, reason="stopped")
        return Imported(outcome, told, remarks)


def _work_until_stopped(job: Job, keeper: ItemKeeper, sources: Sequence[Source]) -> tuple[Outcome, tuple[str, ...]]:
    try:
        return _work(job, keeper, sources)
    except Interrupted:
        return stopped(job, _STOPPED), ()


def _work(job: Job, keeper: ItemKeeper, sources: Sequence[Source]) -> tuple[Outcome, tuple[str, ...]]:
    seconds = report.Seconds(job.frontier)
    keeper.to(State.COLLECTING)
    with seconds.of("read"):
        losses, remarks = _read(job, sources)
    keeper.to(State.CONVERTING)
    complete = job.frontier.get("complete") and not losses
    for domain in job.frontier.domains():
        if job.stop.is_set():
            return stopped(job, _STOPPED), tuple(remarks)
        done = publish_domain(job, domain, complete, seconds.values)
        if done is not None:
            with job.frontier.changes():
                report.keep_domain(job.frontier, *done)
                seconds.keep()
    parts = report.domains(job.frontier)
    if complete:
        losses += [f"{part['commit_tag']}: {part['reason']}" for part in parts if part["reason"]]
    if not parts:
        losses.append("nothing in the files could be archived")
    whole = complete and all(part["complete"] for part in parts)
    summary = report.summary(job, whole, parts, seconds.values)
    tags = tuple(str(part["commit_tag"]) for part in parts)
    facts = {"complete": whole, "warnings": tuple(losses), "tags": tags, "pid": 0, "ticks": 0}
    path = report.write(job, summary, keeper.ended(State.ARCHIVED, **facts))
    report.remove_job(job.folder)
    return Outcome(job.name, False, whole, tuple(losses), tags, summary, path), tuple(remarks)


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
        lost = Remarks()
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

    intake = Intake(job.frontier, job.settings)
    with job.frontier.changes():
        intake.file(source.path, BatchFiles(job.folder, batch).warc, batch, step)
        told = {"records": intake.records, "losses": intake.losses.lines(), "remarks": intake.remarks.lines()}
        job.frontier.set(f"file:{batch}", told)


# -- the job's folder --------------------------------------------------------------------------------------------------


def _digest(sources: Sequence[Source]) -> str:
    return hashlib.sha256("\n".join(sorted(source.digest for source in sources)).encode()).hexdigest()[:8]


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
