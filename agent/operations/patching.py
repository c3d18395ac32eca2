"""Patches of crawls, as people ask for them: what is missing, and whether the record takes a patch now."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from agent.catalogue import recording
from agent.crawl import job_folder
from agent.crawl.discovery import judge_once_more
from agent.crawl.job_folder import Definition, Patch, publication_of
from agent.crawl.scope import scope_of
from agent.crawl.vocabulary import CUT
from agent.jobs import crawljob
from agent.operations.records import catalogue_of
from agent.reports import missing_urls
from agent.reports.explanations import BOUNDS
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged, NotFound, StepRefused, UsageError
from webarcfs.archive.model.metadata import from_epoch

#: Words that a line names of URLs that are not asked for.
_MOST_WORDS = 20
#: URLs that a person may name for one patch.
MOST_URLS = 1_000
#: Months are as long as from this day on.
_ANY_DAY = from_epoch(0)
#: What stands for a word where a URL that is named is archived already, or is no page.
ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class PlannedPatch:
    """A patch that may begin: its definition, and how many URLs it asks for again; 0: nothing is missing.

    1 stands for any number where nobody asked for it. `left_out` counts the URLs that did not come and that it does not
    ask for, by their words.
    """

    definition: Definition
    patch: Patch
    urls: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def left_by_end(self) -> tuple[str, ...]:
        """The words of URLs that it does not ask for, since a bound or a person ended the crawl before them."""
        return tuple(str(word) for word in CUT if self.left_out.get(word))

    @property
    def main_word(self) -> str:
        """The word of most URLs that it does not ask for; empty without any."""
        return min(self.left_out, key=lambda word: (-self.left_out[word], word), default="")

    def text_of_left_out(self) -> str:
        """Return the URLs that it does not ask for, the most of a word first; bounded."""
        ranked = sorted(self.left_out.items(), key=lambda pair: (-pair[1], pair[0]))
        more = f", {len(ranked) - _MOST_WORDS} more words" * (len(ranked) > _MOST_WORDS)
        return ", ".join(f"{word} {urls}" for word, urls in ranked[:_MOST_WORDS]) + more


def plan(
    archive: Archive,
    settings: Settings,
    job: str,
    *,
    word: str = "",
    url: str = "",
    urls: Sequence[str] = (),
    cut: bool = False,
    acting: Acting | None = None,
    counts: bool = True,
) -> PlannedPatch:
    """Return the patch of the crawl of a job that has ended. Unless it `counts`, it reads no further than to one URL.

    Without a word it asks for what failed, and with `cut` also for what the end of the crawl left. With `urls` it is
    exactly these; those that the settings of the crawl leave out are counted, and not asked for. Raises NotFound
    without its report or record, StepRefused if the record takes none, Forbidden, and UsageError for what is no word of
    crawl.log, no pattern, no URL, or for too many of them.
    """
    if len(urls) > MOST_URLS:
        raise UsageError(f"{len(urls)} URLs are too many to be named; {MOST_URLS} are the most")
    if word.strip() and not missing_urls.is_word(word.strip()):
        raise UsageError(f"{word.strip()!r} is no word of crawl.log; there are: {', '.join(missing_urls.WORDS)}")
    acting = acting or people.acting(archive, Right.CAPTURE)
    if not (archive.reports / job).is_dir():
        raise NotFound(f"there is no report of {job}")
    catalogue = catalogue_of(archive)
    record = recording.find_record(catalogue, job, publication_of(job))
    if why := recording.patch_refusal(archive, catalogue, record):
        raise StepRefused(f"{record.id} takes no patch: {why}")
    named = tuple(sorted({validators.start_url(text) for text in urls}))
    patch = Patch(
        record=record.id, job=job, word=word.strip(), url=_pattern(url), by=acting.name, urls=named, cut=cut,
        **asdict(acting.warrant(Right.CAPTURE)),
    )  # fmt: skip
    asked = recording.definition_of(archive, record, settings)
    asked = dataclasses.replace(asked, instances=settings.crawl.max_instances, only_adds=True, patch=patch)
    if named:
        return _of_urls(archive, asked, patch)
    number, left_out = _count(archive, patch, asked.publication.watch, counts=counts)
    return PlannedPatch(asked, patch, number, left_out)


def _of_urls(archive: Archive, asked: Definition, patch: Patch) -> PlannedPatch:
    """Return the patch of named URLs, without those that the settings of the crawl leave out."""
    hosts = frozenset(missing_urls.start_hosts(missing_urls.lines(archive, patch.job)))
    scope = scope_of(asked.publication, asked.profile, hosts)
    left_out = Counter[str]()
    wanted = []
    for line in crawljob.to_ask_again(archive, patch, asked.publication.watch):
        verdict = judge_once_more(scope, line.url, line.path.strip("-"))
        if verdict is None:
            wanted.append(line.url)
        else:
            left_out[verdict.reason.partition(",")[0]] += 1
    if rest := len(patch.urls) - len(wanted) - left_out.total():
        left_out[ARCHIVED] += rest
    patch = dataclasses.replace(patch, urls=tuple(wanted))
    return PlannedPatch(dataclasses.replace(asked, patch=patch), patch, len(wanted), left_out)


@dataclass(frozen=True, slots=True)
class BoundOfCrawl:
    """A setting by which a crawl ended: its name, its value then and now. `holds`: it is no larger now."""

    setting: str
    then: int | Interval
    now: int | Interval

    @property
    def holds(self) -> bool:
        """Whether a patch ends by it, too, when it is as large as the crawl was."""
        return 0 < _extent(self.now) <= (_extent(self.then) or math.inf)


def _extent(value: int | Interval) -> float:
    return (value.after(_ANY_DAY) - _ANY_DAY).total_seconds() if isinstance(value, Interval) else value


def bound_of(archive: Archive, settings: Settings, record: Record, word: str) -> BoundOfCrawl | None:
    """Return the setting for which a crawl ended with a word; None where no setting ended it."""
    if (setting := BOUNDS.get(word)) is None:
        return None
    now = recording.publication_of(archive, record, settings).crawl
    then = now
    content = catalogue_of(archive).file(f"publications/{record.publication}.json")
    if content is not None:
        with suppress(Damaged):
            then = job_folder.parsed(content).publication.crawl
    return BoundOfCrawl(setting, getattr(then, setting), getattr(now, setting))


def begin(archive: Archive, planned: PlannedPatch) -> Path:
    """Write a patch down as a job, which the agent then runs; return its folder. Raises Busy."""
    with job_folder.alone(archive, planned.definition.publication.name):
        return crawljob.begin_patch(archive, planned.definition)


def _pattern(url: str) -> str:
    if not url:
        return ""
    try:
        return validators.url_pattern(url.strip().partition("://")[2] or url.strip())
    except ValueError as error:
        raise UsageError(str(error)) from None


def _count(archive: Archive, patch: Patch, feed: str, *, counts: bool) -> tuple[int, Mapping[str, int]]:
    """Return how many URLs are asked for again, and how many by word that did not come are not."""
    number = 0
    left_out = Counter[str]()
    for line in crawljob.not_archived(archive, patch, feed):
        if missing_urls.is_chosen(line, patch.word, patch.url, cut=patch.cut):
            number += 1
        else:
            left_out[line.reason] += 1
        if number and not counts:
            break
    return number, left_out
