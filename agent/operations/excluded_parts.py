"""How many addresses that the newest crawl of a publication knew its excluded parts match.

A mistyped one matches none, and nobody would notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.crawl import scope
from agent.reports import missing_urls
from agent.service import scheduler
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Exclusion
from webarcfs.archive.model.errors import Damaged, NotFound, TookTooLong
from webarcfs.archive.system import clocks

#: Excluded parts that are counted at once, and seconds in which a log is read for them.
MOST, _SECONDS = 20, 5.0


@dataclass(frozen=True, slots=True)
class PartMatches:
    """An excluded part, and how many of the `known` URLs of a crawl's log it matches.

    `is_cut`: the log is longer, and there may be more. `job` is empty where no crawl has a log; then nothing is known.
    """

    match: str
    has_reason: bool
    urls: int
    known: int
    job: str
    is_cut: bool = False


def count_matches(archive: Archive, publication: str, exclusions: Sequence[Exclusion]) -> list[PartMatches]:
    """Return the first excluded parts with what they match in the newest crawl of a publication."""
    job = scheduler.read(archive).newest(publication) or ""
    wanted = exclusions[:MOST]
    counts, known, is_cut = [0] * len(wanted), 0, False
    if job and wanted:
        try:
            with clocks.under(clocks.Deadline(_SECONDS)):
                for line in missing_urls.lines(archive, job):
                    known += 1
                    for number, exclusion in enumerate(wanted):
                        counts[number] += scope.covers(exclusion.match, line.host, line.url)
        except TookTooLong:
            is_cut = True
        except (NotFound, Damaged):
            job = ""
    return [
        PartMatches(exclusion.match, bool(exclusion.reason), urls, known, job, is_cut)
        for exclusion, urls in zip(wanted, counts, strict=True)
    ]


def changed_since(before: Sequence[Exclusion], after: Sequence[Exclusion]) -> list[Exclusion]:
    """Return the excluded parts that are new, or have another reason."""
    return [exclusion for exclusion in after if exclusion not in set(before)]
