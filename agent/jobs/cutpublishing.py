"""Publishes the snapshots of an import one after the other, each through the pipeline of all crawls.

A snapshot has a frontier of its own, which is filled from the import's index, and goes when the index has what became
of it. A killed import goes on with the first one that has no outcome.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from agent.capture.wgetcommand import BatchFiles
from agent.frontier import facts
from agent.frontier.facts import CutOutcome
from agent.frontier.importindex import ImportIndex
from agent.frontier.rows import StoredCut
from agent.frontier.store import Frontier
from agent.importing.plan.filling import Filling
from agent.importing.sources import Source
from agent.jobfolder.job import ImportedCut, Job
from agent.jobfolder.names import crawl_of_import
from agent.jobs.publishing import publish_domain
from agent.reports import report
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import from_epoch


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
        with self._filled(cut, batch) as frontier:
            earlier = frontier.get(facts.FILLED) or []
            imported = ImportedCut(
                job=self.job.folder.name,
                number=cut.number,
                time=from_epoch(cut.time),
                sources=self._digests(self.index.sources_of(cut)),
                ended=self._digests(ended),
                earlier=tuple(earlier),
            )
            name = crawl_of_import(self.job.folder.name, cut.crawl, crawls)
            job = dataclasses.replace(self.job, name=name, frontier=frontier, cut=imported)
            seconds: dict[str, float] = {}
            done = publish_domain(job, cut.domain, self.complete and bool(cut.is_last), seconds)
            if done is not None:
                with frontier.changes():
                    report.keep_domain(frontier, *done)
            outcome: CutOutcome = {
                "part": frontier.get(facts.PUBLISHED.of(cut.domain)),
                "known": False,
                "seconds": seconds,
                "filter_errors": frontier.get(facts.FILTER_ERRORS) or {},
            }
            with self.index.changes():
                self.index.set_results(cut, frontier.rows_with_results(), json.dumps(outcome))
        return outcome["part"] is not None

    @contextmanager
    def _filled(self, cut: StoredCut, batch: int) -> Iterator[Frontier]:
        """Open the frontier of a snapshot, with its captures; remove it when the snapshot is published."""
        path = self.job.folder / f"{batch:06}.db"
        frontier = Frontier(path)
        try:
            if frontier.get(facts.FILLED) is None:
                filling = Filling(self.index, cut, self.job.folder, batch, self.complete)
                with frontier.changes():
                    filling.into(frontier)
                    frontier.set(facts.FILLED, filling.earlier)
            yield frontier
        finally:
            frontier.close()
        for left in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            left.unlink(missing_ok=True)
        BatchFiles(self.job.folder, batch).warc.unlink(missing_ok=True)

    def _digests(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.files[number - 1].digest for number in sorted(numbers))


def _is_there(outcome: str) -> bool | None:
    """Return whether a snapshot was published; None if it is not done yet."""
    return json.loads(outcome)["part"] is not None if outcome else None
