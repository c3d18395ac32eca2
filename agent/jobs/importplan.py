"""The first half of an import: reads its files, and plans what becomes of them. `--try` ends here."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.capture.wgetcommand import BatchFiles
from agent.frontier import facts
from agent.frontier.facts import FileRead
from agent.frontier.importindex import ImportIndex
from agent.importing.crawls.naming import CrawlsBy
from agent.importing.plan.again import leave_out_known
from agent.importing.plan.planned import PlannedImport
from agent.importing.plan.planning import Grouping, plan
from agent.importing.revisits import Resolving
from agent.importing.sources import Source
from agent.importing.tally import Tally
from agent.importing.warcfile import WarcFileImport
from agent.jobfolder.job import Job
from agent.reports import waiting
from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.warc.writer import WarcWriter

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
            if self.index.get(facts.FILE_READ.of(batch)) is None:
                self._read_file(source, batch, (before, whole))
            before += source.size
        told = [self.index.get(facts.FILE_READ.of(batch)) for batch in range(1, len(self.files) + 1)]
        results = [result for result in told if result is not None]
        if not any(result["records"] for result in results):
            shutil.rmtree(self.job.folder, ignore_errors=True)
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

    def plan(self) -> None:
        """Resolve the revisits, and write the plan, in one transaction, unless that was done before."""
        asked, lost = self.index.get(facts.GROUPING), self.index.get(facts.PLANNED)
        if lost is None and asked is not None:
            losses, batch = Tally(), len(self.files) + 1
            grouping = Grouping(CrawlsBy(asked["crawls"]), asked["pause"], asked["max_cuts"])
            with self.index.changes(), WarcWriter(BatchFiles(self.job.folder, batch).warc) as spool:
                if self.index.get(facts.COMPLETE) is not True:  # what waits is of other crawls, and these have all
                    reports = waiting.folders(self.job.archive.reports)
                    self.index.add_waiting(itertools.chain.from_iterable(map(waiting.read, reports)))
                Resolving(self.index, self.job.archive, self.job.folder, spool, batch, losses).resolve()
                complete = self.index.get(facts.COMPLETE) is True
                lost = [*losses.lines(), *plan(self.index, grouping, self.job.folder, complete=complete)]
                if self.index.get(facts.AGAIN) is True:
                    leave_out_known(self.index, self.job.archive)
                self.index.set(facts.PLANNED, lost)
        self.losses += lost or []
