"""The figures of an archive for monitoring systems: what `webarc-agent metrics` prints, and its listener answers.

Everything is read from files, so the figures are the same whether the agent runs or not. There may be ten thousand
publications and a scrape every few seconds. So a figure is read again when what it comes from changed: reports are
listed when their folder changed, and only new ones are read. The lines of a publication are kept until it has others.
Times stand as points in time and not as ages, so that they stay the same from one scrape to the next.
"""

from __future__ import annotations

import math
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.catalogue import stepfolders
from agent.crawl import job_folder
from agent.crawl.job_folder import AT_WORK, JobState, Phase
from agent.indexing import fulltext
from agent.maintenance import backup_mark
from agent.service import agent_status, scheduler
from webarcfs import __version__
from webarcfs.archive.catalogue.catalogue import Catalogue, CatalogueState, RecordSelection, opened
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Damaged, SettingsError, WebarcError
from webarcfs.archive.model.metadata import now, parse_compact_time, parse_time
from webarcfs.archive.system import clocks, files
from webarcfs.archive.system.cache import identity
from webarcfs.web.exposition import MetricFamily, MetricForm, MetricKind, page

# == families =========================================================================================================


#: The results of a publication's newest crawl.
RESULTS = ("complete", "incomplete", "failed")
#: The states of jobs that are counted, each also where it is zero.
_JOB_STATES = (Phase.WAITING, Phase.COLLECTING, Phase.CONVERTING, Phase.INTERRUPTED, Phase.FAILED)
#: Reports of a publication that are read, newest first, for one that was complete.
_REPORTS_BACK = 50

_BUILD = MetricFamily("webarc_build", "The version of webarcfs that reports.", MetricKind.INFO)
_UP = MetricFamily("webarc_agent_up", "Whether the agent of the archive runs.")
_SINCE = MetricFamily("webarc_agent_start_timestamp_seconds", "When the agent was started.")
_FAULTS = MetricFamily("webarc_settings_faults", "Faults of the settings and of publications.")
_JOBS = MetricFamily("webarc_jobs", "Open jobs, by state.")
_HELD = MetricFamily("webarc_jobs_held", "Jobs that wait for an order of a person.")
_STEPS = MetricFamily("webarc_steps_waiting", "Steps of crawls that wait or run.")
_BEHIND = MetricFamily("webarc_index_behind_snapshots", "Snapshots that the full-text index does not have yet.")
_WAITING = MetricFamily("webarc_records_waiting_for_release", "Crawls that wait for a release.")
_BACKUP = MetricFamily(
    "webarc_backup_last_success_timestamp_seconds",
    "When the last backup to the folder of the settings was finished; 0 without one.",
)
_ANY_BACKUP = MetricFamily(
    "webarc_backup_any_last_success_timestamp_seconds",
    "When the last backup to any folder was finished, also one by hand; 0 if none is known.",
)
_FREE = MetricFamily("webarc_disk_free_bytes", "Free space of the disk with the archive.")
_SIZE = MetricFamily("webarc_disk_size_bytes", "Size of the disk with the archive.")
_READABLE = MetricFamily("webarc_readable", "Whether a part of the archive could be read for these figures.")
_COUNT = MetricFamily("webarc_publications", "Publications, by whether they are crawled.")

_SUCCESS = MetricFamily(
    "webarc_publication_last_success_timestamp_seconds",
    f"When its newest complete crawl ended; 0 if none of the last {_REPORTS_BACK} was.",
)
_FIRST = MetricFamily(
    "webarc_publication_first_start_timestamp_seconds", "When the first of its crawls began, or is due where none has."
)
_RESULT = MetricFamily("webarc_publication_last_result", "How its newest crawl ended.", MetricKind.STATE_SET)
_FINISHED = MetricFamily("webarc_publication_last_finish_timestamp_seconds", "When its newest crawl ended.")
_DOCUMENTS = MetricFamily("webarc_publication_last_documents", "Documents of its newest crawl.")
_BYTES = MetricFamily("webarc_publication_last_bytes", "Bytes of its newest crawl.")
_DURATION = MetricFamily("webarc_publication_last_duration_seconds", "How long its newest crawl took.")
_NEXT = MetricFamily("webarc_publication_next_due_timestamp_seconds", "When it is due next.")
_INTERVAL = MetricFamily("webarc_publication_interval_seconds", "The time from one crawl to the next.")
_RUNNING = MetricFamily("webarc_publication_running", "Whether it is being crawled.")
_FAILURES = MetricFamily("webarc_publication_failures", "Failures in a row of its open job.")
#: In the order of the page; the lines of a publication have the same order.
_OF_PUBLICATION = (
    _SUCCESS, _FIRST, _RESULT, _FINISHED, _DOCUMENTS, _BYTES, _DURATION, _NEXT, _INTERVAL, _RUNNING, _FAILURES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure of the archive as a whole."""

    family: MetricFamily
    value: float
    labels: Mapping[str, str]


#: Further figures, which others add: called once a scrape.
Source = Callable[[], Iterable[Sample]]


# == what is read =====================================================================================================


@dataclass(frozen=True, slots=True)
class KnownSettings:
    """The settings that hold, and the number of faults in the files that they were read from."""

    publications: Mapping[str, Publication]
    backup_to: str
    has_search: bool
    faults: int


def known_settings(settings: Settings, faults: int, further: Iterable[Publication] = ()) -> KnownSettings:
    """Return what the figures need of settings; `further` publications replace those of their names."""
    publications = {publication.name: publication for publication in (*settings.publications, *further)}
    return KnownSettings(publications, settings.backup.to, settings.index.search, faults)


class _SettingsFile:
    """The settings as the files have them; those from before while they have faults."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._read: tuple[object, KnownSettings] = (None, known_settings(Settings(), 0))

    def __call__(self) -> KnownSettings:
        state = identity(self._archive.settings, self._archive.publications)
        before, known = self._read
        if state != before:
            apart: dict[str, list[str]] = {}
            try:
                settings = settings_files.load(self._archive.settings, apart=apart)[0]
                known = known_settings(settings, sum(map(len, apart.values())))
            except SettingsError as error:
                known = KnownSettings(known.publications, known.backup_to, known.has_search, len(error.faults))
            self._read = state, known
        return known


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a crawl ended, by its report. Times are seconds since 1970."""

    finished: float
    is_complete: bool
    documents: int
    bytes: int
    seconds: float


class _Reports:
    """The reports of each publication: names when their folder changed, contents once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp: int | None = None
        self._names: dict[str, list[str]] = {}
        self._listed: set[str] = set()
        self._ended: dict[str, _Ended | None] = {}

    def list_changed(self) -> set[str]:
        """List the folder if it changed; return the publications with other reports than before.

        The time of a folder moves in steps of a few milliseconds: one that changed just now is listed once more.
        """
        stamp = self._folder.stat().st_mtime_ns
        if stamp == self._stamp:
            return set()
        is_settled = _is_settled(stamp)
        listed = set(os.listdir(self._folder))  # noqa: PTH208 # a Path each costs more than the listing
        changed = set()
        for name in listed ^ self._listed:
            if (parts := scheduler.split_name(name)) is None:
                continue
            names = self._names.setdefault(parts[1], [])
            if name in listed:
                names.append(name)
            else:
                names.remove(name)
                self._ended.pop(name, None)
            changed.add(parts[1])
        for publication in changed:
            self._names[publication].sort()
        self._listed, self._stamp = listed, stamp if is_settled else None
        return changed

    def newest(self, publication: str) -> tuple[str, _Ended | None, float]:
        """Return the newest report of a publication, how that crawl ended, and when the newest complete one did.

        Empty, None and 0 for none. A report that cannot be read has a name all the same.
        """
        latest = scheduler.latest_name(now())
        names = [name for name in self._names.get(publication, ()) if name <= latest]
        if not names:
            return "", None, 0.0
        success = 0.0
        for name in reversed(names[-_REPORTS_BACK:]):
            clocks.check()
            ended = self._read(name)
            if ended is not None and ended.is_complete:
                success = ended.finished
                break
        return names[-1], self._read(names[-1]), success

    def first(self, publication: str) -> tuple[datetime, ...]:
        """Return when the oldest crawl of a publication began; nothing where it has none."""
        for name in self._names.get(publication, ()):
            with suppress(Damaged):  # the digits are those of no time
                return (parse_compact_time(name.partition("-")[0]),)
        return ()

    def _read(self, name: str) -> _Ended | None:
        if name not in self._ended:
            self._ended[name] = _read_report(self._folder / name)
        return self._ended[name]


def _read_report(folder: Path) -> _Ended | None:
    """Return how a crawl ended; None where its report cannot be read."""
    try:
        summary: dict[str, Any] = files.read_json(folder / "summary.json") or {}
        started, finished = parse_time(str(summary["started"])), parse_time(str(summary["finished"]))
        documents = summary.get("documents", 0)
        return _Ended(
            finished.timestamp(),
            bool(summary["complete"]),
            sum(documents.values()) if isinstance(documents, dict) else int(documents),
            int(summary.get("bytes", 0)),
            max(0.0, (finished - started).total_seconds()),
        )
    except (OSError, Damaged, KeyError, TypeError, ValueError):
        return None


class _Jobs:
    """The open jobs; the item of each is read again when its file changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._items: dict[str, tuple[object, JobState | None]] = {}
        self.refused = 0

    def read_open(self) -> dict[str, JobState]:
        """Return the open jobs by name; those of another version are counted."""
        items: dict[str, tuple[object, JobState | None]] = {}
        self.refused = 0
        for name in os.listdir(self._folder):  # noqa: PTH208 # as above
            if (parts := scheduler.split_name(name)) is None:
                continue
            stamp = identity(self._folder / name / job_folder.ITEM_FILE)
            known = self._items.get(name)
            if known is None or known[0] != stamp:
                try:
                    item = job_folder.load_item(self._folder / name) or JobState(job=name, publication=parts[1])
                except Damaged:
                    item = None
                known = stamp, item
            self.refused += known[1] is None
            items[name] = known
        self._items = items
        return {name: item for name, (_, item) in items.items() if item is not None}


#: Seconds by which the time of a folder may stay behind its changes.
_MTIME_STEP = 0.05


def _is_settled(stamp: int) -> bool:
    """Return whether a folder's time is so long ago that a further change would have another."""
    return abs(now().timestamp() - stamp / 1e9) > _MTIME_STEP


# == metrics ==========================================================================================================


@dataclass(frozen=True, slots=True)
class _OpenJob:
    """What the figures of a publication need of its open job."""

    begun: frozenset[datetime]
    is_failed: bool
    is_running: bool
    failures: int


class ArchiveMetrics:
    """The figures of one archive. Any thread may ask; they are read by one at a time."""

    def __init__(
        self, archive: Archive, settings: Callable[[], KnownSettings] | None = None, further: Sequence[Source] = ()
    ) -> None:
        """Read nothing yet. `settings` are those that hold, where it is known; `further` figures are added."""
        self._archive = archive
        self._settings = settings or _SettingsFile(archive)
        self._further = further
        self._own = {"archive": os.fsencode(archive.root).decode("utf-8", "replace")}
        self._lock = threading.Lock()
        self._reports = _Reports(archive.reports)
        self._jobs = _Jobs(archive.jobs)
        self._catalogue = Catalogue(archive)
        self._waiting: tuple[CatalogueState | None, int] = (None, 0)
        self._known: Mapping[str, Publication] = {}
        self._open: dict[str, _OpenJob] = {}
        self._lines: tuple[dict[str, str], ...] = tuple({} for _ in _OF_PUBLICATION)
        self._joined: tuple[str, ...] = tuple("" for _ in _OF_PUBLICATION)

    def page(self, form: MetricForm) -> bytes:
        """Return all figures. Raises OSError while the archive is gone."""
        with self._lock:
            settings = self._settings()
            jobs = self._jobs.read_open()
            samples = [*self._of_agent(settings), *self._of_work(settings, jobs), *self._of_disk(settings)]
            for source in self._further:
                samples += source()
            self._renew(settings, jobs)
            families: dict[MetricFamily, str] = {}
            for sample in samples:
                line = sample.family.sample(sample.value, {**self._own, **sample.labels})
                families[sample.family] = families.get(sample.family, "") + line
            return page([*families.items(), *zip(_OF_PUBLICATION, self._joined, strict=True)], form)

    # -- the archive -------------------------------------------------------------------------------------------------

    def _of_agent(self, settings: KnownSettings) -> Iterator[Sample]:
        agent = agent_status.running(self._archive)
        yield Sample(_BUILD, 1, {"version": __version__})
        yield Sample(_UP, float(agent is not None), {})
        if agent is not None:
            with suppress(Damaged):
                yield Sample(_SINCE, parse_time(agent.since).timestamp(), {})
        yield Sample(_FAULTS, max(settings.faults, len(agent.faults) if agent else 0), {})
        retired = sum(publication.retired for publication in settings.publications.values())
        yield Sample(_COUNT, len(settings.publications) - retired, {"state": "active"})
        yield Sample(_COUNT, retired, {"state": "retired"})

    def _of_work(self, settings: KnownSettings, jobs: Mapping[str, JobState]) -> Iterator[Sample]:
        states = [agent_status.shown_state(job) for job in jobs.values()]
        for state in _JOB_STATES:
            yield Sample(_JOBS, states.count(state), {"state": str(state)})
        yield Sample(_HELD, sum(bool(job.held) for job in jobs.values()), {})
        yield Sample(_READABLE, float(not self._jobs.refused), {"part": "jobs"})
        yield Sample(_STEPS, sum(1 for _ in stepfolders.waiting(self._archive)), {})
        try:
            yield Sample(_WAITING, self._count_waiting(), {})
            yield Sample(_READABLE, 1, {"part": "catalogue"})
        except (WebarcError, OSError):
            yield Sample(_READABLE, 0, {"part": "catalogue"})
        if settings.has_search and fulltext.installed():
            yield Sample(_BEHIND, fulltext.count_behind(self._archive), {})

    def _of_disk(self, settings: KnownSettings) -> Iterator[Sample]:
        space = shutil.disk_usage(self._archive.root)
        yield Sample(_FREE, space.free, {})
        yield Sample(_SIZE, space.total, {})
        if settings.backup_to:
            finished = backup_mark.finished_at(Path(settings.backup_to))
            yield Sample(_BACKUP, finished.timestamp() if finished else 0, {})
        last = backup_mark.last_of(self._archive)
        yield Sample(_ANY_BACKUP, last[0].timestamp() if last else 0, {})

    def _count_waiting(self) -> int:
        """Return how many records wait for a release; they are counted when the catalogue has another state."""
        state = self._catalogue.state()
        if state != self._waiting[0]:
            with opened(self._archive, self._catalogue) as tables:
                self._waiting = state, tables.count_of(RecordSelection(waits=True))
        return self._waiting[1]

    # -- its publications --------------------------------------------------------------------------------------------

    def _renew(self, settings: KnownSettings, jobs: Mapping[str, JobState]) -> None:
        """Write the lines of the publications anew of which something changed."""
        opened_jobs = _open_jobs(jobs)
        changed = self._reports.list_changed()
        changed |= {name for name, _ in opened_jobs.items() ^ self._open.items()}
        known = settings.publications
        if known is not self._known:
            changed |= {name for name in {*known, *self._known} if known.get(name) != self._known.get(name)}
        self._open, self._known = opened_jobs, known
        for name in sorted(changed):
            clocks.check()
            publication = known.get(name)
            lines = ("",) * len(_OF_PUBLICATION) if publication is None else self._lines_of(publication)
            for family, line in zip(self._lines, lines, strict=True):
                if line:
                    family[name] = line
                else:
                    family.pop(name, None)
        if changed:
            self._joined = tuple("".join(family.values()) for family in self._lines)

    def _lines_of(self, publication: Publication) -> tuple[str, ...]:
        """Return the lines of a publication, one text for each family; empty where it has none."""
        name = publication.name
        labels = {**self._own, "publication": name}
        job = self._open.get(name, _OpenJob(frozenset(), is_failed=False, is_running=False, failures=0))
        report, ended, success = self._reports.newest(name)
        result = ""
        if ended is not None:
            result = "complete" if ended.is_complete else "incomplete"
        if job.is_failed:
            result = "failed"
        first = min((begun.timestamp() for begun in (*job.begun, *self._reports.first(name))), default=math.nan)
        due = interval = math.nan
        if not publication.retired:
            runs = job.begun | _begun(report)
            due = scheduler.next_due(publication, runs, now()).timestamp()
            first = due if math.isnan(first) else first
            interval = publication.crawl.interval.seconds
            if not runs and due > now().timestamp():
                success = math.nan  # its time has not come: there is nothing to be late with
        values: dict[MetricFamily, float] = {
            _SUCCESS: success,
            _FIRST: first,
            _FINISHED: ended.finished if ended else math.nan,
            _DOCUMENTS: ended.documents if ended else math.nan,
            _BYTES: ended.bytes if ended else math.nan,
            _DURATION: ended.seconds if ended else math.nan,
            _NEXT: due,
            _INTERVAL: interval,
            _RUNNING: float(job.is_running),
            _FAILURES: job.failures,
        }
        lines = {family: "" if math.isnan(value) else family.sample(value, labels) for family, value in values.items()}
        lines[_RESULT] = _RESULT.states(result, RESULTS, labels) if result else ""
        return tuple(lines[family] for family in _OF_PUBLICATION)


def _begun(name: str) -> frozenset[datetime]:
    """Return when a job began, by its name; nothing for another name."""
    try:
        return frozenset((parse_compact_time(name.partition("-")[0]),))
    except Damaged:
        return frozenset()


def _open_jobs(jobs: Mapping[str, JobState]) -> dict[str, _OpenJob]:
    """Return what open jobs mean for their publications; the newest job of each counts."""
    result: dict[str, _OpenJob] = {}
    for name in sorted(jobs):
        job = jobs[name]
        begun = _begun(name)
        with suppress(Damaged):
            begun |= {parse_time(job.attempted)}
        state = agent_status.shown_state(job)
        parts = scheduler.split_name(name)
        if parts is not None:
            result[parts[1]] = _OpenJob(begun, state is Phase.FAILED, state in AT_WORK and job.runs, job.failures)
    return result
