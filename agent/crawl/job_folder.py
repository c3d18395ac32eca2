"""The folder of a job, a crawl or an import: its name, its definition, its frontier, its item.

It is in `jobs/` from the job's start until the report replaces it. It contains the frontier and the WARCs, so the next
run of the same publication, or of the same import, resumes the job. With the request of the job, `definition.json`, any
process can do so. `StateKeeper` updates item.json: at every change of state, and periodically with the progress.

A folder's name is `<YYYYmmddTHHMMSS>-<publication>`. An import's name is `<time>-<publication>+<digest>`; if its files
hold several crawls, each of these is a job with a number, `<time>-<publication>+<digest>.0001`, in the folder of the
import. The name of a crawl beside the schedule is `<time>-<publication>+occasion`, that of a patch of a crawl
`<time>-<publication>+patch`, that of one page that a person saves `<time>-saved-<host>+page`; `+` cannot occur in a
publication's name. The folder of a step of a crawl, `step-<record>-<step>`, also lies in `jobs/`: it is no job of a
publication.

The item, `item.json`, is one run of a publication, with its state and its progress.

The job writes the item, `status` and the scheduler read it; a finished job's item is in its report. The states are
Tarântula's: an item waits until its base document is fetched, collects, converts (here: passes the pipeline), and is
archived. An item that exceeds its time is interrupted and keeps its documents. Only `load`, `reserve` and the `save`
functions access files.

A failure may be temporary: a full disk, lack of memory, a lock held by git. So a failed job is tried again soon, then
after growing pauses, and in any case when its publication is due. A job whose process is killed each time may harm the
machine; after MOST_WITH_KILLS failures it waits until its publication is due. The item stores the count: it survives a
restart.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agent.crawl.frontier import BEGUN, CAPTURED, NO_STATES, Frontier, ImportIndex
from agent.crawl.scope import TypeRules
from webarcfs.archive.catalogue.record import PAGE, PATCH
from webarcfs.archive.config import settings as config
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Profile, Publication
from webarcfs.archive.config.settings_files import OLD_DEFAULTS
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged, NotFound, WebarcError
from webarcfs.archive.model.metadata import compact_time, format_time, now, parse_compact_time, parse_time
from webarcfs.archive.system import files, locks
from webarcfs.archive.system.clocks import Progress, Speed, unseen
from webarcfs.archive.system.processes import Process

if TYPE_CHECKING:
    from webarcfs.archive.history.rendered_forms import RenderedForm  # it loads git's library, and few jobs have one


# == item =============================================================================================================


ITEM_FILE = "item.json"
#: A file that is removed to make room for the item on a full disk, and its size in bytes.
RESERVE = ".reserve"
_RESERVED = 8192
#: Version of item.json and definition.json; a job's folder of another version is left unchanged.
VERSION = 1


class Phase(StrEnum):
    """Tarântula's states (figure 3.7), and `failed` for errors of the system, which that figure does not have."""

    WAITING = "waiting"
    COLLECTING = "collecting"
    CONVERTING = "converting"
    ARCHIVED = "archived"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Hold(StrEnum):
    """Why a job keeps what it has, and waits for an order."""

    PAUSED = "paused"
    DEADLINE = "deadline"


def lead_on(job: str, hold: Hold | None) -> str:
    """Return what a person may do about a job that waits for an order."""
    if hold is not Hold.DEADLINE:
        return f"held ({hold}); `webarc-agent job resume {job}` continues it"
    return f"held ({hold}); `webarc-agent job deadline {job} TIME` gives it more time, `job stop` and `discard` end it"


#: States in which a process works on the item.
AT_WORK = frozenset({Phase.WAITING, Phase.COLLECTING, Phase.CONVERTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The fields of item.json. Times are `yyyy-mm-ddThh:mm:ss` CET.

    `urls` counts by state of the frontier, `views` the pages for the browser by theirs.
    """

    job: str
    publication: str
    state: Phase = Phase.WAITING
    due: str = ""
    begun: str = ""
    attempted: str = ""  # the start of its last process
    updated: str = ""
    stage: str = ""
    done: int = 0
    known: int = 0
    a_second: float = 0.0  # recent increase of `done` per second; 0: not known yet
    left: int | None = None  # seconds until `known` is done at this speed; None: not known
    urls: dict[str, int] = field(default_factory=dict)
    views: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    documents: int = 0
    complete: bool | None = None
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    reason: str = ""
    failures: int = 0  # number of failures in a row
    again: str = ""  # time of its next try; empty: when its publication is due
    latest_end: str = ""  # its deadline
    held: str = ""  # why it fetches nothing until a person decides about it (`Hold`); empty: it is not held
    orders: int = 0  # number of the last order that it took
    by_agent: bool = False  # whether the agent, not a command, started its last process
    pid: int = 0
    ticks: int = 0

    @property
    def runs(self) -> bool:
        """Whether a process works on it now."""
        return Process(self.pid, self.ticks).runs()

    @property
    def unread(self) -> int:
        """How many URLs were fetched whose documents are not read yet. In `urls` they are still being fetched."""
        if self.stage != "capture":
            return 0
        settled = self.urls.get("done", 0) + self.urls.get("failed", 0)
        return max(0, min(self.done - settled, self.urls.get("fetching", 0)))

    @property
    def counted_urls(self) -> dict[str, int]:
        """The URLs by state, as `done` of `known` counts them: with those that are not read yet among the done ones."""
        unread = self.unread
        moved = {"done": self.urls.get("done", 0) + unread, "fetching": self.urls.get("fetching", 0) - unread}
        return self.urls | moved if unread else self.urls

    def as_json(self) -> dict[str, Any]:
        """Return the content of item.json."""
        return {"version": VERSION, **dataclasses.asdict(self)}


def load_item(folder: Path) -> JobState | None:
    """Return the item in a job's (or report's) folder; None without one. Raises Damaged if it is of another version."""
    content = files.read_json(folder / ITEM_FILE)
    if content is None:
        return None
    if content.pop("version", None) != VERSION:
        raise Damaged(f"{folder} is of another version of webarcfs; it is left alone, finish or remove it by hand")
    try:
        content["state"] = Phase(content["state"])
        content["warnings"], content["tags"] = tuple(content["warnings"]), tuple(content["tags"])
        return JobState(**content)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(
            f"{folder / ITEM_FILE} is no item: {error}; it is left alone, finish or remove it by hand"
        ) from None


def save_item(folder: Path, item: JobState, *, durable: bool = True) -> None:
    """Write an item."""
    files.write_json(folder / ITEM_FILE, item.as_json(), durable=durable)


def reserve(folder: Path) -> None:
    """Reserve disk space for the reason of a failure. Errors are ignored: only that reason would be lost."""
    path = folder / RESERVE
    with contextlib.suppress(OSError):
        if not path.exists() or path.stat().st_size < _RESERVED:
            path.write_bytes(bytes(_RESERVED))


def save_surely(folder: Path, item: JobState) -> None:
    """Write an item; on a full disk, use the reserve. Raises OSError."""
    try:
        save_item(folder, item)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        (folder / RESERVE).unlink(missing_ok=True)
        save_item(folder, item)
        reserve(folder)  # at once, before a log takes the space: another failure may follow


# == attempts, pure ===================================================================================================


#: Pauses after the first, second, … failure in a row; the last one after all further failures.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 60 * 60))
#: Failures in a row after which a job whose process was killed waits until its publication is due.
MOST_WITH_KILLS = 10


def pause(failures: int) -> timedelta:
    """Return the pause after so many failures in a row."""
    return PAUSES[min(max(failures, 1), len(PAUSES)) - 1]


def failed(known: JobState, reason: str, at: datetime, *, killed: bool) -> JobState:
    """Return the item of a job whose process failed at `at`, with the time of its next try."""
    failures = known.failures + 1
    given_up = killed and failures >= MOST_WITH_KILLS
    again = "" if given_up else format_time(at + pause(failures))
    stamp = format_time(at)
    return dataclasses.replace(
        known, state=Phase.FAILED, reason=reason, updated=stamp, failures=failures, again=again, pid=0, ticks=0
    )


def is_due(known: JobState, at: datetime) -> bool:
    """Return whether a failed job is to be tried again now; a clock that was set back delays it at most one pause."""
    if known.state is not Phase.FAILED or not known.again:
        return False
    try:
        again = parse_time(known.again)
    except Damaged:
        return True
    return again <= at or again > at + PAUSES[-1]


def reason_of(error: BaseException, where: object = None) -> str:
    """Return the reason that an item gives for an error: the error, its file (else `where`), and the remedy."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or where
        return f"the disk is full: {error.strerror}{f': {place}' if place else ''}; make room, and it resumes by itself"
    return f"{type(error).__name__}: {error}"


# == names, pure ======================================================================================================


_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+|\.\.+", re.ASCII)
_LONGEST_SLUG = 60
_STEP = "step-"
_CRAWL_OF_IMPORT = re.compile(r"(\+[0-9a-z]+)\.\d{4,}\Z", re.ASCII)


def kind_of(job: str) -> str:
    """Return the part after the time; all crawls of a publication, or all jobs of one import, share it.

    Empty for the folder of a step.
    """
    return "" if is_step(job) else job.partition("-")[2]


def publication_of(job: str) -> str:
    """Return the publication whose lock the process of a job holds, for crawls and imports."""
    return kind_of(job).partition("+")[0]


def crawl_of_import(folder: str, number: int, crawls: int) -> str:
    """Return the name of the job that is one of the `crawls` of an import, counted from 1."""
    return folder if crawls == 1 else f"{folder}.{number:04}"


def folder_of(job: str) -> str:
    """Return the name of the folder in which a job works."""
    return _CRAWL_OF_IMPORT.sub(r"\1", job)


def is_patch(job: str) -> bool:
    """Return whether a job, or the kind of a job, is a patch of a crawl."""
    return job.endswith(PATCH)


def is_page(job: str) -> bool:
    """Return whether a job, or the kind of a job, saves one page."""
    return job.endswith(PAGE)


def is_asked_for(job: str) -> bool:
    """Return whether a job, or the kind of a job, is all that there is of what a person asked for at the desk."""
    return is_patch(job) or is_page(job)


def is_step(folder: str) -> bool:
    """Return whether a folder is that of a step, also while it is being removed."""
    return folder.lstrip(".").startswith(_STEP)


def step_folder(record: str, step: str) -> str:
    """Return the name of the folder of a step of a record."""
    return f"{_STEP}{record}-{step}"


def step_of(folder: str) -> tuple[str, str] | None:
    """Return record and step of a step's folder; None for another name."""
    record, _, step = folder.removeprefix(_STEP).rpartition("-")
    return (record, step) if folder.startswith(_STEP) and record and step else None


def command_line_name(urls: Sequence[str]) -> str:
    """Return the publication name of a crawl given on the command line, made from its start URLs."""
    digest = hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()[:8]
    return named_after(urls[0].partition("://")[2], digest, "crawl")


def list_name(stem: str, digest: str) -> str:
    """Return the publication name of a crawl of a list given on the command line."""
    return named_after(stem, digest, "list")


def named_after(text: str, digest: str, otherwise: str) -> str:
    """Return a publication name made from `text` (else `otherwise`) and `digest`, which makes it unique."""
    slug = _NOT_IN_A_NAME.sub("-", text).strip("-.")[:_LONGEST_SLUG].rstrip("-.")
    return f"{slug or otherwise}-{digest}"


# == definition =======================================================================================================


FILE = "definition.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPage:
    """The page that a job saves: its canonical URL, who asked for it and in which role, and what they say of it.

    `person` is the short name in people.toml; it and `role` are empty where the archive has no people.
    """

    url: str
    by: str
    role: str = ""
    person: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What a job asks for again: URLs that the crawl of `job`, which `record` describes, did not get.

    `word` is the word of crawl.log for why, `url` a pattern of theirs; empty: what failed, and with `cut` also what the
    end of the crawl left. With `urls` it is exactly these, whatever the reason was, also those that the crawl never
    saw. `by` is who asked for it, in which role, `person` the short name in people.toml.
    """

    record: str
    job: str
    word: str = ""
    url: str = ""
    by: str = ""
    role: str = ""
    person: str = ""
    urls: tuple[str, ...] = ()
    cut: bool = False

    @property
    def of_anybody(self) -> Patch:
        """The same, whoever asked for it."""
        return replace(self, by="", role="", person="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The publication as of the job's start. `instances` is the number of wgets that the archive allows (/Cr-1.3/).

    `record` is the record that was there before the job, `occasion` why it was begun; empty for a regular job.
    `only_adds`: the job removes nothing, since its URLs are no more than a part of their sites.
    """

    publication: Publication
    profile: Profile | None = None
    accept_shrink: bool = False
    instances: int = 0
    record: str = ""
    occasion: str = ""
    only_adds: bool = False
    patch: Patch | None = None
    page: SavedPage | None = None


#: Fields of a patch that the first versions with patches did not have; they are written where they say something.
_LATER_OF_PATCH = ("urls", "cut")


def save(folder: Path, definition: Definition) -> None:
    """Write it down, durably. When readers may see the captures, and why, is what was said when the job began."""
    publication, begun = definition.publication, None
    with contextlib.suppress(Damaged):  # what cannot be read is replaced
        begun = load(folder)
    if begun is not None:
        earlier = begun.publication
        publication = dataclasses.replace(publication, release=earlier.release, closed_for=earlier.closed_for)
    content = {
        "version": VERSION,
        **settings_of(publication, definition.profile),
        "accept_shrink": definition.accept_shrink,
        "instances": definition.instances,
        "record": (begun or definition).record,
        "occasion": (begun or definition).occasion,
        "only_adds": (begun or definition).only_adds,
    }
    if (patch := (begun or definition).patch) is not None:
        of_patch = dataclasses.asdict(patch).items()
        content["patch"] = {name: value for name, value in of_patch if name not in _LATER_OF_PATCH or value}
    if (page := (begun or definition).page) is not None:
        content["page"] = dataclasses.asdict(page)
    files.write_json(folder / FILE, content)


def settings_of(publication: Publication, profile: Profile | None) -> dict[str, Any]:
    """Return all settings of a publication as JSON: its own, the crawl's, its profile's."""
    return {
        "publication": _plain(publication),
        "crawl": _plain(publication.crawl),
        "profile": None if profile is None else _plain(profile),
    }


def load(folder: Path) -> Definition | None:
    """Return the definition in a job's folder; None if it has none. Raises Damaged if it cannot be parsed."""
    content = files.read_json(folder / FILE)
    if content is None:
        return None
    if content.get("version") != VERSION:
        raise Damaged(f"{folder} is of another version of webarcfs; it is left alone, finish or remove it by hand")
    return _definition(content, str(folder / FILE))


def parsed(text: bytes) -> Definition:
    """Return what `settings_of` gave for a publication, from its JSON. Raises Damaged if it cannot be parsed."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise Damaged(f"settings of a publication are no JSON: {error}") from None
    return _definition({"accept_shrink": False, "instances": 0, **content}, "settings of a publication")


def _definition(content: dict[str, Any], where: str) -> Definition:
    try:
        crawl = config.override(CrawlSettings(), _as_it_was(content["crawl"]), where)
        profile = content["profile"]
        return Definition(
            publication=Publication(**_checked(Publication, content["publication"]), crawl=crawl),
            profile=None if profile is None else Profile(**_checked(Profile, profile)),
            accept_shrink=bool(content["accept_shrink"]),
            instances=int(content["instances"]),
            record=str(content.get("record", "")),
            occasion=str(content.get("occasion", "")),
            only_adds=bool(content.get("only_adds", False)),
            patch=_patch(content.get("patch")),
            page=_page(content.get("page")),
        )
    except (KeyError, TypeError, ValueError, WebarcError) as error:
        raise Damaged(f"{where} is no definition of a job: {error}; it is left alone") from None


def _patch(content: dict[str, Any] | None) -> Patch | None:
    if content is None:
        return None
    named = {key: str(value) for key, value in content.items() if key not in _LATER_OF_PATCH}
    return Patch(**named, urls=tuple(map(str, content.get("urls", ()))), cut=bool(content.get("cut")))


def _page(content: dict[str, Any] | None) -> SavedPage | None:
    return None if content is None else SavedPage(**{key: str(value) for key, value in content.items()})


def _as_it_was(crawl: dict[str, Any]) -> dict[str, Any]:
    """Return crawl settings with what versions did that did not have all of them."""
    return {**OLD_DEFAULTS, **crawl} if crawl else crawl


def _plain(settings: Publication | CrawlSettings | Profile) -> dict[str, Any]:
    """Return the settings that have a check and a value, as JSON. `start` is left out: only the scheduler needs it."""
    values: dict[str, Any] = {}
    for setting in dataclasses.fields(settings):
        value = getattr(settings, setting.name)
        if "check" in setting.metadata and setting.name != "start" and value not in (None, ""):
            unlimited = value != setting.default and value == setting.metadata.get("words") == config.UNLIMITED
            values[setting.name] = validators.UNLIMITED_WORD if unlimited else _as_json(value)
    return values


def _as_json(value: Any) -> Any:
    if isinstance(value, Interval):
        return str(value)
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return [_table(element) for element in value]
    return value


def _table(item: Any) -> dict[str, Any]:
    """Return an exclusion or a rule as its table in TOML."""
    values = {
        attribute.metadata.get("key", attribute.name): getattr(item, attribute.name)
        for attribute in dataclasses.fields(item)
    }
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in values.items()
        if value not in (None, "")
    }


def _checked(kind: type[Publication] | type[Profile], values: dict[str, Any]) -> dict[str, Any]:
    checks = {
        setting.name: setting.metadata["check"] for setting in dataclasses.fields(kind) if "check" in setting.metadata
    }
    return {name: checks[name](value) for name, value in values.items()}


# == job ==============================================================================================================


#: Returns what a browser showed of a document, by its row in the frontier; None where there is nothing.
ShownForm = Callable[[int], "RenderedForm | None"]


class Note(Protocol):
    """Writes fields of the job's item at once."""

    def __call__(self, **facts: Any) -> None:
        """The fields by name."""


def _nothing(**_facts: Any) -> None:
    """Write nothing: nobody keeps an item of this job."""


@dataclass(frozen=True, slots=True)
class ImportedCut:
    """A snapshot of a host, cut out of the captures of an import: its number in its crawl, the time of its first one.

    `sources` are the SHA-256 of the files that it has captures of, `ended` those that no later snapshot has any of.
    `earlier` are the URLs that the crawl saw in snapshots before this one, and not again.
    """

    job: str
    number: int
    time: datetime
    sources: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one publication. `begun` is the start of the crawl (/Cr-4/).

    A crawl of an import publishes one snapshot of a host at a time, `cut`. `page` is the one that the job saves. A
    `patch` is of a crawl that was published before; `is_closed`: readers do not see that crawl now. `shown` returns
    what a browser showed of a document, by its row in the frontier.
    """

    archive: Archive
    name: str
    folder: Path
    publication: Publication
    profile: Profile | None
    frontier: Frontier
    begun: datetime
    accept_shrink: bool = False
    instances: int = 0  # number of wgets that the archive allows over all jobs; 0: as many as this job
    only_adds: bool = False
    cut: ImportedCut | None = None
    patch: Patch | None = None
    page: SavedPage | None = None
    is_closed: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress = unseen
    note: Note = _nothing
    shown: ShownForm = lambda _: None
    by_agent: bool = False  # whether it ends when it is held, since the agent begins it again

    @property
    def crawl(self) -> str:
        """The job whose record describes what it publishes: itself, unless it is a patch."""
        return self.name if self.patch is None else self.patch.job

    @property
    def is_held(self) -> bool:
        """Whether readers may not see at once what it publishes."""
        return self.publication.is_held or self.is_closed

    @property
    def types(self) -> TypeRules:
        """Which types of documents it keeps."""
        return TypeRules.of(self.settings, self.profile)

    @property
    def settings(self) -> CrawlSettings:
        """The crawl settings of the publication."""
        return self.publication.crawl


# == folders ==========================================================================================================


_log = logging.getLogger(__name__)
_FRONTIER = "frontier.db"
_AnyFrontier = TypeVar("_AnyFrontier", bound=Frontier)


@contextmanager
def alone(archive: Archive, publication: str) -> Iterator[None]:
    """Hold the publication's lock: only its holder begins or runs jobs of it. Raises Busy if another process does."""
    busy = f"{publication} is being crawled or imported already, by another process"
    with locks.exclusive_or_busy(archive.publication_lock(publication), busy):
        yield


def new_name(archive: Archive, kind: str) -> str:
    """Return the name of a job that begins now (/Cr-4/, /Cr-7.1/); `kind` is the part of its name after the time.

    Where another job has that name, its time is the next second that no job has.
    """
    begun = now()
    while (archive.jobs / (name := f"{compact_time(begun)}-{kind}")).exists() or (archive.reports / name).exists():
        begun += timedelta(seconds=1)
    return name


def new_folder(archive: Archive, kind: str) -> Path:
    """Create the folder of a job that begins now."""
    folder = archive.jobs / new_name(archive, kind)
    folder.mkdir()
    return folder


def interrupted(archive: Archive, kind: str) -> Path | None:
    """Return the folder of the job that was interrupted last; None if none is usable. Removes jobs that never began."""
    for path in reversed(folders_of(archive, kind)):
        if not has_begun(path):
            drop(path)  # killed before it began
        elif usable(path):
            _log.info("resuming the interrupted job %s", path.name)
            return path
    return None


def folders_of(archive: Archive, kind: str) -> list[Path]:
    """Return the folders of a publication's crawls, or of one import, oldest first. Complete interrupted removals."""
    paths = sorted(path for path in archive.jobs.iterdir() if kind_of(path.name) == kind)
    for path in paths:
        if path.name.startswith("."):
            shutil.rmtree(path)
    return [path for path in paths if not path.name.startswith(".")]


def has_begun(folder: Path) -> bool:
    """Return whether the folder contains a frontier; without one, the job has done nothing."""
    return (folder / _FRONTIER).exists()


def usable(folder: Path) -> bool:
    """Return whether a job can be resumed. A damaged folder, or one of another version, is logged and left alone."""
    try:
        check(folder)
    except Damaged as error:
        _log.warning("%s", error)
        return False
    return True


def check(folder: Path) -> None:
    """Read a job's item and open its frontier. Raises Damaged, and WebarcError if that is not possible now."""
    load_item(folder)
    if has_begun(folder):
        Frontier(folder / _FRONTIER).close()


@contextmanager
def looked_at(folder: Path) -> Iterator[Frontier]:
    """Open the frontier of a job to read it; another process may work on it. Raises NotFound, Damaged, WebarcError."""
    if not has_begun(folder):
        raise NotFound(f"{folder.name} has not begun")
    with contextlib.closing(Frontier(folder / _FRONTIER)) as frontier:
        yield frontier


@contextmanager
def opened(folder: Path) -> Iterator[Frontier]:
    """Open the frontier of a job, or create it, and store the job's start in it. Raises Damaged."""
    with _begun_in(folder, Frontier(folder / _FRONTIER)) as frontier:
        yield frontier


@contextmanager
def opened_index(folder: Path) -> Iterator[ImportIndex]:
    """Open the index of an import, or create it, and store the job's start in it. Raises Damaged."""
    with _begun_in(folder, ImportIndex(folder / _FRONTIER)) as index:
        yield index


@contextmanager
def _begun_in(folder: Path, frontier: _AnyFrontier) -> Iterator[_AnyFrontier]:
    try:
        if frontier.get(BEGUN) is None:
            with frontier.changes():
                frontier.set(BEGUN, _begun(folder.name))
        yield frontier
    finally:
        frontier.close()


def _begun(name: str) -> float:
    try:
        return parse_compact_time(name.partition("-")[0]).timestamp()
    except Damaged:
        return now().timestamp()


def drop(folder: Path) -> None:
    """Remove the folder of a job that never began."""
    shutil.rmtree(folder, ignore_errors=True)


# == item =============================================================================================================


_SECONDS_BETWEEN = 2.0
#: Counting reads all rows: the pause until the next count is this many times its duration.
_PART_OF_COUNTING = 50


class StateKeeper:
    """The item of one job, kept by its process."""

    def __init__(self, folder: Path, publication: str, progress: Progress, *, by_agent: bool = False) -> None:
        self.folder = folder
        self._progress = progress
        self._frontier: Frontier | None = None
        self._again = 0.0
        self._speed = Speed()
        known = load_item(folder) or JobState(job=folder.name, publication=publication)
        process, begun = Process.current(), format_time(now())
        self.item = dataclasses.replace(
            known,
            begun=known.begun or begun,
            attempted=begun,
            pid=process.pid,
            ticks=process.ticks,
            by_agent=by_agent,
            reason="",
            again="",
        )

    def begin(self, frontier: Frontier) -> None:
        """Set the state of a job that begins or is resumed."""
        reserve(self.folder)
        self._frontier = frontier
        captured = frontier.get(CAPTURED) is not None
        collected = frontier.counts().get("done", 0) > 0
        state = Phase.CONVERTING if captured else Phase.COLLECTING if collected else Phase.WAITING
        self.to(state)

    def to(self, state: Phase, **facts: Any) -> None:
        """Set another state, and write the item."""
        self.item = self.ended(state, **facts)
        save_item(self.folder, self.item)

    def note(self, **facts: Any) -> None:
        """Write some fields of the item at once, if they have other values; `Job.note` is this method."""
        changed = dataclasses.replace(self.item, **facts)
        if changed != self.item:
            self.item = dataclasses.replace(changed, updated=format_time(now()))
            with contextlib.suppress(OSError):  # the frontier has them
                save_item(self.folder, self.item)

    def failed(self, reason: str) -> None:
        """Write that the job has failed. Raises OSError if the disk is too full even with the reserve."""
        counts: dict[str, Any] = {}
        with contextlib.suppress(OSError, WebarcError):  # the reason matters more than the counts
            counts = self._counts()
        stamp = format_time(now())
        self.item = dataclasses.replace(self.item, state=Phase.FAILED, updated=stamp, reason=reason, **counts)
        save_surely(self.folder, self.item)

    def ended(self, state: Phase, **facts: Any) -> JobState:
        """Return the item in the given state, with current counts and the given fields."""
        stamp = format_time(now())
        return dataclasses.replace(self.item, state=state, updated=stamp, **self._counts(), **facts)

    def progress(self, stage: str, done: int, known: int) -> None:
        """Report `done` of `known` things of a stage; `Job.progress` is this method."""
        self._progress(stage, done, known)
        begun = time.monotonic()
        is_new = stage != self.item.stage
        if is_new:
            self._speed = Speed()
        self._speed.note(begun, done)
        waits = stage == "capture" and done > 0 and self.item.state is Phase.WAITING
        if not (waits or is_new or begun >= self._again):
            return
        counts = self._counts() if stage == "capture" else {}
        # wget may have fetched the first page before it is read.
        collects = waits and counts.get("urls", {}).get("done", 0) > 0
        if not (collects or is_new or begun >= self._again):
            return
        left = self._speed.left(known)
        self.item = dataclasses.replace(
            self.item,
            state=Phase.COLLECTING if collects else self.item.state,
            updated=format_time(now()),
            stage=stage,
            done=done,
            known=known,
            a_second=round(self._speed.a_second or 0.0, 3),
            left=None if left is None else round(left),
            **counts,
        )
        with contextlib.suppress(OSError):  # a full disk must not end the job here, only where documents are written
            save_item(self.folder, self.item, durable=collects)
        ended = time.monotonic()
        self._again = ended + max(_SECONDS_BETWEEN, _PART_OF_COUNTING * (ended - begun))

    def _counts(self) -> dict[str, Any]:
        if self._frontier is None:
            return {}
        counts = self._frontier.counts()
        urls = {state: count for state, count in counts.items() if state not in NO_STATES}
        return {"urls": urls, "views": self._frontier.views(), **{name: counts[name] for name in NO_STATES}}
