"""What became of a URL, over all crawls: what each did with it, which page led to it, and which publication could.

The logs of the newest crawls are read, one after the other: first those of crawls that had the URL's host. Each is
streamed, within the time of the thread; what was not read then is counted, and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import Any

from agent.crawl import crawl_log, scope
from agent.crawl.scope import Bounds, ScopeVerdict
from agent.crawl.vocabulary import DECISIONS, NOT_TRIED, LinkKind, Reason
from agent.reports import missing_urls, tables
from agent.reports.report import hosts_in
from agent.reports.tables import LogLine
from webarcfs.archive.catalogue.record import PATCH
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.arc_paths import arc_path, second_path, split
from webarcfs.archive.model.errors import Damaged, NotFound, TookTooLong, WebarcError
from webarcfs.archive.model.metadata import CommitTag, from_epoch, now
from webarcfs.archive.model.urls import both_schemes
from webarcfs.archive.system import clocks, files

#: Reports that are looked through for a URL without a job, or for a host.
MOST_LOGS = 200
#: Where a crawl ends by its settings: that says nothing of a URL to which a page of it has a link.
_BEYOND = frozenset({Reason.TOO_DEEP, Reason.FOREIGN_HOST, Reason.PATHS})
#: Redirects that are followed one after the other, and publications that are named.
_MOST_HOPS, _MOST_PUBLICATIONS = 5, 50

# == one crawl ========================================================================================================


class Knowledge(IntEnum):
    """What a crawl knows of a URL: it saw a link to it, had a reason not to ask for it, or asked for it."""

    NONE = 0
    SEEN = 1
    REFUSED = 2
    ASKED = 3


def knowledge_of(line: LogLine) -> Knowledge:
    """Return what a crawl knows of a URL, by its line."""
    if line.archived or line.status > 0:
        return Knowledge.ASKED
    if line.reason in _BEYOND:
        return Knowledge.SEEN
    return Knowledge.REFUSED if line.reason in DECISIONS or line.status in NOT_TRIED else Knowledge.ASKED


def report_names(archive: Archive) -> list[str]:
    """Return the names of all reports, newest first; each begins with a time."""
    names = (folder.name for folder in archive.reports.iterdir())
    return sorted((name for name in names if name[:1].isdecimal()), reverse=True)


def crawl_of(archive: Archive, report: Path) -> Path:
    """Return the report of the crawl that the job of a report patched; else that report."""
    return archive.reports / (missing_urls.patched_by(report) or report.name)


def target_of(archive: Archive, job: str, url: str) -> str:
    """Return the target of a redirect, as a crawl or a patch of it found it, else as it is archived; else empty.

    A crawl that had found the target before does not log that the redirect led there. Raises what the thread's deadline
    raises.
    """
    for report in (archive.reports / job, *missing_urls.patches_of(archive, job)):
        with suppress(NotFound, Damaged), crawl_log.reading(report) as log:
            if target := _target_in(log, url):
                return target
    with suppress(WebarcError, OSError), CaptureIndex(archive.database) as index:
        _, redirects = index.at(f"/{arc_path(url)}")
        return next((row.target for row in reversed(redirects) if row.url == url), "")
    return ""


def _target_in(log: Iterable[str], url: str) -> str:
    near = (text for text in log if clocks.goes_on() and url in text)
    return next((line.url for line in tables.parsed(near) if line.path.endswith("R") and line.referrer == url), "")


def captures_of(archive: Archive, url: str) -> list[str]:
    """Return the commitTags of the snapshots whose crawls stored something at a URL's place, newest first.

    Raises what reading webarc.db raises.
    """
    path = f"/{arc_path(url)}"
    try:
        with CaptureIndex(archive.database) as index:
            versions, redirects = index.at(path, f"/{second_path(url)}")
    except NotFound:  # nothing was captured yet
        return []
    stored = {row.stored for row in chain(versions, redirects) if row.url in both_schemes(url)}
    return [str(CommitTag(from_epoch(seq), split(path)[0])) for seq in sorted(stored, reverse=True)]


# == all crawls =======================================================================================================


@dataclass(frozen=True, slots=True)
class CrawlFate:
    """What a crawl did with a URL in its spellings, the line that says most first."""

    job: str
    lines: tuple[LogLine, ...]

    @property
    def main(self) -> LogLine:
        """The line that says most of it."""
        return self.lines[0]

    @property
    def knowledge(self) -> Knowledge:
        """What the crawl knows of it."""
        return knowledge_of(self.main)


def newest_that_knows(fates: Sequence[CrawlFate]) -> CrawlFate | None:
    """Return the newest crawl that asked for a URL; else the newest with a reason not to; else the newest with a link.

    `fates` are newest first. Who asks why a page is missing is told of this crawl, wherever it is asked.
    """
    return max(fates, key=lambda fate: fate.knowledge, default=None)


def newer_than(fates: Sequence[CrawlFate], job: str) -> list[CrawlFate]:
    """Return those of later crawls than a job, newest first: what `newest_that_knows` passed over."""
    return [fate for fate in fates if fate.job > job]


def _fate_of(job: str, url: str, lines: Mapping[str, LogLine]) -> CrawlFate:
    in_order = sorted(lines.values(), key=lambda line: (not line.archived, -knowledge_of(line), line.url != url))
    return CrawlFate(job, tuple(in_order))


def fates_until_asked(archive: Archive, url: str, reports: Iterable[Path]) -> list[CrawlFate]:
    """Return what the crawls of some reports did with a URL, newest first, up to the first that asked for it.

    That is as many as `newest_that_knows` and `newer_than` need. Logs that cannot be read are passed over.
    """
    patches = _patches_by_crawl(archive)
    fates: list[CrawlFate] = []
    for job in sorted({crawl_of(archive, report).name for report in reports}, reverse=True):
        with suppress(Damaged, NotFound):
            if lines := missing_urls.lines_of(archive, job, url, patches.get(job, ())):
                fates.append(_fate_of(job, url, lines))
                if fates[-1].knowledge is Knowledge.ASKED:
                    break
    return fates


def _patches_by_crawl(archive: Archive) -> dict[str, list[Path]]:
    """Return the reports of patches by the job that they patched, oldest first."""
    patches: dict[str, list[Path]] = {}
    for name in reversed(report_names(archive)):
        if name.endswith(PATCH):
            patches.setdefault(missing_urls.patched_by(archive.reports / name), []).append(archive.reports / name)
    return patches


@dataclass(slots=True)
class UrlSearch:
    """What was found of a URL in the logs of crawls. `fates` are newest first.

    `without` are the crawls whose logs were read and do not have it, the newest first. `unread` counts those of the
    newest that were not read, since the time was over, `damaged` those that cannot be read, and `older` the reports
    before these.
    """

    url: str
    fates: list[CrawlFate] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    unread: int = 0
    damaged: int = 0
    older: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether some logs were not read."""
        return bool(self.unread or self.older or self.damaged)


def search_crawls(archive: Archive, url: str, first: str = "", most: int = MOST_LOGS) -> UrlSearch:
    """Read the logs of the newest crawls for a canonical URL, as far as the thread's time goes; `first` is one job.

    Those that had the URL's host are read first, so that a short time is spent on them.
    """
    result = UrlSearch(url)
    names = report_names(archive)
    result.older = len(names[most:])
    host = scope.domain_in(url)
    patches: dict[str, list[Path]] = {}
    ranks: dict[str, tuple[bool, bool]] = {}
    for name in names[:most]:
        summary = summary_of(archive, name)
        if patched := str(summary.get("patches", "")):
            patches.setdefault(patched, []).insert(0, archive.reports / name)
        else:
            ranks[name] = name != first, all(end.host != host for end in hosts_in(summary))
    ranked = sorted(ranks, key=lambda job: ranks[job])
    for number, job in enumerate(ranked):
        try:
            lines = missing_urls.lines_of(archive, job, url, patches.get(job, ()))
        except TookTooLong:
            result.unread = len(ranked) - number
            break
        except (Damaged, NotFound):
            result.damaged += 1
            continue
        if not lines:
            result.without.append(job)
        else:
            result.fates.append(_fate_of(job, url, lines))
    result.fates.sort(key=lambda fate: fate.job, reverse=True)
    result.without.sort(reverse=True)
    return result


def summary_of(archive: Archive, job: str) -> dict[str, Any]:
    """Return summary.json of a job; empty where it cannot be read."""
    with suppress(Damaged, OSError):
        summary = files.read_json(archive.reports / job / "summary.json")
        return summary if isinstance(summary, dict) else {}
    return {}


def follow_redirects(archive: Archive, job: str, line: LogLine) -> list[LogLine]:
    """Return the lines of the URLs to which a redirect leads, one after the other, within the thread's time."""
    hops: list[LogLine] = []
    seen = {line.url}
    with suppress(TookTooLong, NotFound, Damaged):
        while line.status in tables.REDIRECTS and len(hops) < _MOST_HOPS:
            target = target_of(archive, job, line.url)
            following = missing_urls.lines_of(archive, job, target).get(target) if target else None
            if following is None or following.url in seen:
                break
            seen.add(following.url)
            hops.append(following)
            line = following
    return hops


# == publications =====================================================================================================


@dataclass(frozen=True, slots=True)
class PossibleSource:
    """A publication to whose hosts a URL belongs. `reason` is why its crawls would not ask for it; empty: they would.

    They would if a page that they read had a link to it, not too many links away from a start URL.
    """

    publication: str
    reason: str
    is_retired: bool


def judge_by_scope(
    publication: Publication, settings: Settings, url: str, hosts: frozenset[str]
) -> ScopeVerdict | None:
    """Return why a publication would not ask for a URL to which a start page has a link; None if it would."""
    crawl = publication.crawl
    year, ahead, back = now().year, crawl.max_years_ahead, crawl.max_years_back
    bounds = Bounds(crawl, latest_year=year + ahead if ahead else 0, earliest_year=year - back if back else 0)
    profile = settings.profiles.get(publication.profile) if publication.profile else None
    is_start = url in publication.named_urls
    kind = LinkKind.SEED if is_start else LinkKind.LINK
    return scope.judge(scope.scope_of(publication, profile, hosts, bounds), url, 0 if is_start else 1, kind)


def possible_sources(
    archive: Archive, settings: Settings, last: Mapping[str, str], url: str
) -> Sequence[PossibleSource]:
    """Return the publications of whose hosts a URL is, those that would ask for it first; no server is asked.

    `last` has the newest report of each publication, which knows the hosts that start URLs redirected to.
    """
    sources = []
    for publication in settings.publications:
        clocks.check()
        summary = summary_of(archive, last[publication.name]) if publication.name in last else {}
        hosts = frozenset(end.host for end in hosts_in(summary) if end.is_page)
        verdict = judge_by_scope(publication, settings, url, hosts)
        reason = "" if verdict is None else verdict.reason.partition(",")[0]
        if reason != Reason.FOREIGN_HOST:
            sources.append(PossibleSource(publication.name, reason, publication.retired))
    return sorted(sources, key=lambda source: (bool(source.reason), source.is_retired))[:_MOST_PUBLICATIONS]
