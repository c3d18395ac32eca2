"""Saves one page, for the person who asked for it: which URLs may be, how many, and whether it is being saved already.

A page is a job of its own, which only adds it, with what it needs to be shown, to the publication `saved-<host>`. The
agent runs such jobs beside those of publications; neither waits for the other.

A URL may come from anybody who gets a person to open a link. So it permits no address of one's own network by itself;
the setting `private_addresses` does. Nor may it have a password in it, or be for a port of another protocol.

`lock/saves.json` has what was asked for in the last hour. A job's folder comes into being whole, before that: what was
accepted is there after a crash, and is counted by the folder then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, auto
from pathlib import Path
from typing import Any

from agent.crawl import crawl_log, job_folder, scope
from agent.crawl.job_folder import Definition, Phase, SavedPage, is_page, kind_of
from agent.crawl.public_proxy import BLOCKED_PORTS
from agent.reports import tables
from agent.reports.tables import LogLine
from webarcfs.archive.catalogue.record import PAGE
from webarcfs.archive.config import settings as config
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import SAVED, AtDeadline, Fetcher, Publication, Settings
from webarcfs.archive.config.validators import Interval, start_url
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, NotFound, UsageError, WebarcError
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.model.sites import split_port
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.system import files, locks

# == urls, pure =======================================================================================================


class UrlRefusal(StrEnum):
    """Why a URL is not saved, in a sentence."""

    NO_URL = "This is no address of a page, such as https://www.example.org/page."
    SCHEME = "Only addresses that begin with http:// or https:// can be saved."
    LONG = "This address is too long: it may have 8,192 characters, all in ASCII."
    USER = "This address has a name or a password in it. Leave out what stands before the @."
    PORT = "The port of this address belongs to another protocol than that of the web."
    PRIVATE = "This address is one of your own machine or network, which is not saved unless the options permit it."


#: Characters of what a person may type as a URL, and of what they may say of the page.
LONGEST_URL, LONGEST_DESCRIPTION = scope.LONGEST_URL, 500
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):(?!\d)")
_AUTHORITY = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:)?[\\/]*([^\\/?#]*)")


def read_url(typed: str) -> str | UrlRefusal:
    """Return the canonical URL that a person means, or why it is not saved. It may be one of one's own network."""
    if len(typed.strip()) > LONGEST_URL:
        return UrlRefusal.LONG
    scheme = _SCHEME.match(typed)
    if scheme is not None and scheme[1].lower() not in ("http", "https"):
        return UrlRefusal.SCHEME
    authority = _AUTHORITY.match(typed)
    if authority is not None and "@" in authority[1]:
        return UrlRefusal.USER
    try:
        url = start_url(typed.strip())
        domain = domain_of(url)
    except WebarcError:
        return UrlRefusal.NO_URL
    if len(url) > LONGEST_URL:  # each letter of another script takes several characters
        return UrlRefusal.LONG
    return UrlRefusal.PORT if _port_of(url, domain) in BLOCKED_PORTS else url


def _port_of(url: str, domain: str) -> int:
    return int(split_port(domain)[2] or (443 if url.startswith("https:") else 80))


#: Characters of a host that are in the name of its publication as they are.
_LONGEST_HOST = 80
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")


def publication_name(url: str) -> str:
    """Return the publication that has the saved pages of a URL's host."""
    domain = domain_of(url)
    name = re.sub(r"\.\.+|^\.|\.$", "-", _NOT_IN_A_NAME.sub("-", domain.strip("[]"))).strip("-") or "host"
    if len(name) > _LONGEST_HOST or name.endswith(".lock"):
        name = f"{name[:_LONGEST_HOST].rstrip('.-')}-{hashlib.sha256(domain.encode()).hexdigest()[:8]}"
    return f"{SAVED}{name}"


# == definition =======================================================================================================


#: Most time and bytes of one page, with what it needs; and documents of one host.
_LONGEST, _MOST_BYTES, _MOST_DOCUMENTS = Interval(15, "minute"), 1_000_000_000, 2_000


def publication_of(settings: Settings, url: str = "") -> Publication:
    """Return the publication that a saved page is added to, as the settings have it; without a URL, any host's."""
    name = publication_name(url) if url else f"{SAVED}host"
    own = next((publication for publication in settings.publications if url and publication.name == name), None)
    return own or settings.unlisted(name, release=settings.save.release or settings.release.release)


def define(
    settings: Settings, page: SavedPage, *, fetcher: str = "", values: dict[str, Any] | None = None
) -> Definition:
    """Return how a page is saved: by the settings of its publication where there is one, else by the archive's.

    `values` are settings of a crawl that go before these. Raises SettingsError.
    """
    publication = publication_of(settings, page.url)
    given: dict[str, Any] = {"fetcher": Fetcher(fetcher)} if fetcher else {}
    crawl = config.override(publication.crawl, {**given, **(values or {})}, "saving a page")
    crawl = dataclasses.replace(
        crawl,
        depth=0,
        sitemaps=False,
        paths=(),  # a person asked for this page, whatever parts of its site crawls keep to
        at_deadline=AtDeadline.PUBLISH,
        max_duration=min(crawl.max_duration, _LONGEST, key=lambda interval: interval.seconds),
        max_total_size=min(crawl.max_total_size or _MOST_BYTES, _MOST_BYTES),
        max_host_documents=min(crawl.max_host_documents or _MOST_DOCUMENTS, _MOST_DOCUMENTS),
    )
    publication = dataclasses.replace(publication, urls=(page.url,), list="", watch="", required_hosts=(), crawl=crawl)
    return Definition(
        publication=publication,
        profile=settings.profiles.get(publication.profile or ""),
        instances=SLOTS,
        occasion="a page was saved",
        only_adds=True,
        page=page,
    )


# == asking ===========================================================================================================


#: Pages that a person may save in an hour.
PER_HOUR = 60
#: Pages that may wait to be saved, in all and of one host: the names of its jobs lie a second apart.
MOST_WAITING, MOST_OF_HOST = 200, 50
#: wgets at a time over all saved pages: they are none of those of publications.
SLOTS = 4
_HOUR = 3600.0
#: Seconds for which a page that was saved counts as saved now.
_RECENTLY = 60.0
_FILE, _LOCK = "saves.json", ".saves"


class SaveState(StrEnum):
    """What became of a wish to save a page."""

    BEGUN = auto()
    RUNS = auto()
    RECENT = auto()
    TOO_OFTEN = auto()
    FULL = auto()


@dataclass(frozen=True, slots=True)
class AskedPage:
    """What became of a wish to save a page: the job that saves it or saved it, or when the person may ask again."""

    state: SaveState
    job: str = ""
    again: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Wish:
    """A page that was asked for: its job, when, by whom."""

    job: str
    at: float
    by: str
    url: str


def ask(archive: Archive, definition: Definition) -> AskedPage:
    """Write down that a page shall be saved, for the agent, unless it is being saved already, or was just now.

    On return it is on the disk. Raises OSError.
    """
    page = definition.page
    assert page is not None
    with locks.exclusive(archive.root / "lock" / _LOCK):
        now = time.time()
        waiting = list(_waiting(archive))
        if (job := next((job for job, saved in waiting if saved.url == page.url), None)) is not None:
            return AskedPage(SaveState.RUNS, job)
        wishes = _wishes(archive, waiting, now)
        if (job := _saved_recently(archive, wishes, page.url, now)) is not None:
            return AskedPage(SaveState.RECENT, job)
        if (again := _again(wishes, page.by, now)) is not None:
            return AskedPage(SaveState.TOO_OFTEN, again=from_epoch(again))
        kind = definition.publication.name + PAGE
        if len(waiting) >= MOST_WAITING or sum(kind_of(job) == kind for job, _ in waiting) >= MOST_OF_HOST:
            return AskedPage(SaveState.FULL)
        folder = _new_folder(archive, kind, definition)
        _keep(archive, [*wishes, _Wish(folder.name, now, page.by, page.url)])
        return AskedPage(SaveState.BEGUN, folder.name)


def _waiting(archive: Archive) -> Iterator[tuple[str, SavedPage]]:
    """Yield the jobs that save pages and have not ended, oldest first. Remove what a killed process began.

    A job that the agent gave up stays until a person discards it; its page may be asked for again.
    """
    for path in sorted(archive.jobs.iterdir()):
        if not is_page(path.name):
            continue
        if path.name.startswith("."):
            shutil.rmtree(path, ignore_errors=True)
            continue
        with contextlib.suppress(Damaged):
            definition, item = job_folder.load(path), job_folder.load_item(path)
            is_given_up = item is not None and item.state is Phase.FAILED and not item.again
            if definition is not None and definition.page is not None and not is_given_up:
                yield path.name, definition.page


def _new_folder(archive: Archive, kind: str, definition: Definition) -> Path:
    """Return a new folder of a job with its definition. It has its name once it is whole."""
    folder = archive.jobs / job_folder.new_name(archive, kind)
    scratch = folder.with_name(f".{folder.name}")
    scratch.mkdir()
    job_folder.save(scratch, definition)
    scratch.rename(folder)
    files.sync_folder(archive.jobs)
    return folder


def _wishes(archive: Archive, waiting: list[tuple[str, SavedPage]], now: float) -> list[_Wish]:
    """Return what was asked for in the last hour, oldest first.

    A time in the future, of a clock that was set back, counts as now; one far ahead counts no more.
    """
    try:
        kept = (files.read_json(archive.root / "lock" / _FILE) or {}).get("saves", [])
    except Damaged:  # it is written again
        kept = []
    wishes = {}
    for entry in kept if isinstance(kept, list) else ():
        with contextlib.suppress(TypeError, ValueError, KeyError):
            wish = _Wish(str(entry["job"]), float(entry["at"]), str(entry["by"]), str(entry["url"]))
            if abs(now - wish.at) < _HOUR:
                wishes[wish.job] = dataclasses.replace(wish, at=min(wish.at, now))
    for job, page in waiting:  # a process was killed before it could count them
        wishes.setdefault(job, _Wish(job, now, page.by, page.url))
    return sorted(wishes.values(), key=lambda wish: wish.at)


def _keep(archive: Archive, wishes: list[_Wish]) -> None:
    files.write_json(archive.root / "lock" / _FILE, {"saves": [dataclasses.asdict(wish) for wish in wishes]})


def _again(wishes: list[_Wish], by: str, now: float) -> float | None:
    """Return when a person may save another page, if that is not now."""
    own = [wish.at for wish in wishes if wish.by == by]
    if len(own) < PER_HOUR:
        return None
    return max(own[-PER_HOUR] + _HOUR, now + 1)


def _saved_recently(archive: Archive, wishes: list[_Wish], url: str, now: float) -> str | None:
    """Return the job that saved a URL just now; None without one, or if the page did not come."""
    for wish in reversed(wishes):
        if wish.url != url:
            continue
        report = archive.reports / wish.job
        with contextlib.suppress(OSError, Damaged):
            item = job_folder.load_item(report)
            ended = (report / job_folder.ITEM_FILE).stat().st_mtime
            if item is not None and item.tags and abs(now - ended) < _RECENTLY:
                return wish.job
    return None


# == results ==========================================================================================================


def page_of(archive: Archive, job: str) -> SavedPage | None:
    """Return the page that an open job saves; None if it is open no more, or saves none."""
    if not is_page(job) or "/" in job:
        return None
    with contextlib.suppress(Damaged):
        definition = job_folder.load(archive.jobs / job)
        return None if definition is None else definition.page
    return None


def url_saved_by(archive: Archive, job: str) -> str:
    """Return the URL that a job saved which has ended; empty for any other job."""
    if not is_page(job) or "/" in job:
        return ""
    with contextlib.suppress(Damaged):
        return str((files.read_json(archive.reports / job / "summary.json") or {}).get("page", ""))
    return ""


#: Redirects in a row that a result follows.
_MOST_REDIRECTS = 20


def lines_of(archive: Archive, job: str, url: str) -> list[LogLine]:
    """Return the lines of a job's log on a URL, and on what its redirects led to; none where it cannot be read."""
    with contextlib.suppress(NotFound, Damaged, OSError), crawl_log.reading(archive.reports / job) as log:
        lines = {line.url: line for line in tables.parsed(log)}
        redirected = {line.referrer: line for line in lines.values() if line.path.endswith("R")}
        followed = {url: lines[url]} if url in lines else {}
        here = url
        while here in followed and 300 <= followed[here].status < 400 and len(followed) <= _MOST_REDIRECTS:
            target = redirected.get(here)
            if target is None or target.url in followed:
                break
            here = target.url
            followed[here] = target
        return list(followed.values())
    return []


def snapshot_of(archive: Archive, job: str, url: str) -> str:
    """Return the commitTag of the snapshot that an ended job made of a URL's host; empty where there is none."""
    with contextlib.suppress(Damaged, OSError):
        item = job_folder.load_item(archive.reports / job)
        host = split(arc_path(url))[0]
        return next((tag for tag in item.tags if tag.partition("@")[2] == host), "") if item is not None else ""
    return ""


def why_not(lines: list[LogLine]) -> list[str]:
    """Return why a page did not come, in sentences."""
    if not lines:
        return ["Its log is not there, or is damaged."]
    return [sentence.strip() for sentence in tables.fate(lines[-1])][1:]


def is_kept_out(definition: Definition) -> bool:
    """Return whether the crawl would not ask for a page, since its URL names an address of one's own network."""
    bounds = scope.scope_of(definition.publication, definition.profile)
    return any(scope.keeps_out(bounds, domain_of(url)) for url in definition.publication.urls)


def description_of(text: str) -> str:
    """Return what a person says of a page as one line. Raises UsageError for a long one."""
    line = " ".join(text.split())
    if len(line) > LONGEST_DESCRIPTION:
        raise UsageError(f"a description has {LONGEST_DESCRIPTION} characters at most; this one has {len(line)}")
    return line


def must_be_known(fetcher: str) -> str:
    """Return what shows the page, as a form or an option names it; empty for as usual. Raises UsageError."""
    if fetcher and fetcher not in set(Fetcher):
        raise UsageError(f"{fetcher} is none of {', '.join(Fetcher)}")
    return fetcher
