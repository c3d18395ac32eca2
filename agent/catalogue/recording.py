"""Makes the record of each crawl: which steps follow it, what it contains, how it was made. Keeps it in the catalogue.

A snapshot that is released as it is published is worked on afterwards only where something asks for it: conf/tidy.conf
and error pages for `convert`, checks for `check`, `[backup]` for `backup`. `index` goes along with them.

What a capture contains is counted by the difference to a capture that was counted before: the cost follows the change.
Its fields need no input: they come from git, and from the report if it is there. What git does not know (program,
command line, settings, person) the job knows when it ends. A field whose value is not known stays empty.

A record is written when its job ends, and later for captures that have none. One that cannot be written never fails a
job; the next start writes it.

A patch of a crawl goes into the record of that crawl.

A patch asks again for what a crawl did not get. What it publishes becomes parts of the record of that crawl, with an
event; the record stays one. What was done with the record before counts no more: new pages have to be counted and
checked like all others. Its completeness stays as it was, since a patch removes nothing and follows no links.
"""

from __future__ import annotations

import getpass
import json
import logging
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import starmap
from pathlib import Path
from typing import Any, Final

from agent.catalogue import stepfolders
from agent.crawl import job_folder
from agent.crawl.job_folder import Definition, Job, SavedPage, folder_of
from agent.crawl.scope import matches_host
from agent.crawl.vocabulary import ARCHIVED_OR_DUPLICATE
from agent.crawl.wget import BatchFiles, command
from agent.indexing import fulltext
from agent.reports.report import HostEnd, hosts_in, missing_after_patches, missing_in, most_rows, text_of_certificates
from webarcfs.archive.catalogue import formats
from webarcfs.archive.catalogue.catalogue import (
    Catalogue,
    PublishedCrawl,
    RecordSelection,
    captures,
    opened,
    part_of,
    with_patch,
)
from webarcfs.archive.catalogue.record import (
    NO_WARRANT,
    OWN,
    SYSTEM,
    CrawlPart,
    Event,
    FieldNumber,
    MissingResources,
    Occasion,
    Record,
    RecordState,
    ResourceCount,
    Value,
    Warrant,
    is_import,
)
from webarcfs.archive.catalogue.workflow import (
    BUT_FOR,
    HELD,
    ORDER,
    PATCHED,
    Way,
    WorkflowStep,
    next_by_itself,
    progress_of,
    status_word,
    with_status,
)
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import (
    UNLIMITED,
    Certificates,
    DescribeSettings,
    Exclusion,
    PageResources,
    Publication,
    Release,
    Settings,
)
from webarcfs.archive.config.validators import UNLIMITED_WORD
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.history.versions import arcs, described, leads_to_arcs
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.arc_paths import HEADERS, arc_path, is_data_file, split
from webarcfs.archive.model.errors import Busy, Damaged, InvalidDocument, NotFound, SettingsError, WebarcError
from webarcfs.archive.model.metadata import CommitTag, format_time, now, parse_time
from webarcfs.archive.system import files
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.warc import http_response

# == way ==============================================================================================================


def settings_now(archive: Archive) -> Settings:
    """Return the settings; the defaults where webarc.toml has faults, which others report."""
    try:
        return settings_files.load(archive.settings)[0]
    except SettingsError:
        return Settings()


def publication_of(archive: Archive, record: Record, settings: Settings) -> Publication:
    """Return a record's publication as webarc.toml has it, else as it was when it was captured last."""
    return definition_of(archive, record, settings).publication


def definition_of(archive: Archive, record: Record, settings: Settings) -> Definition:
    """Return a record's publication and its profile, as webarc.toml has them, else as they were at its last crawl."""
    current = next(
        (publication for publication in settings.publications if publication.name == record.publication), None
    )
    if current is not None:
        return Definition(publication=current, profile=settings.profiles.get(current.profile or ""))
    content = Catalogue(archive).file(f"publications/{record.publication}.json")
    if content is not None:
        with suppress(Damaged):
            return job_folder.parsed(content)
    return Definition(publication=settings.unlisted(record.publication))


def way_of(archive: Archive, publication: Publication, settings: Settings, release: str = "") -> Way:
    """Return the way of a publication's snapshots; `release` is what its record says, else the publication's word."""
    checks = bool(publication.check or publication.checks or publication.check_search or publication.check_pictures)
    needs = {
        WorkflowStep.CONVERT: archive.converter_settings.exists() or bool(publication.error_page),
        WorkflowStep.CHECK: checks or publication.two_persons,
    }
    set_up = {step for step, is_needed in needs.items() if is_needed}
    if publication.step_by_step:
        set_up = set(ORDER)
    set_up.discard(WorkflowStep.INDEX)
    if set_up and fulltext.wanted(archive):
        set_up.add(WorkflowStep.INDEX)
    return Way(
        set_up=frozenset(set_up),
        release=release or publication.release,
        step_by_step=publication.step_by_step,
        two_persons=publication.two_persons,
        backs_up=bool(settings.backup.to),
        backs_up_late=settings.backup.after == "release",
    )


def of_record(archive: Archive, record: Record) -> Way:
    """Return the way of a record."""
    settings = settings_now(archive)
    return way_of(archive, publication_of(archive, record, settings), settings, record.release)


# == counting =========================================================================================================


#: The extension of a file without one.
NONE = "(none)"


@dataclass(frozen=True, slots=True)
class Count:
    """The documents of a capture: their bytes and number, the folders above them, and their number by extension."""

    bytes: int = 0
    files: int = 0
    folders: int = 0
    extensions: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Count) -> Count:
        extensions = Counter(self.extensions)
        extensions.update(other.extensions)
        kept = {name: number for name, number in sorted(extensions.items()) if number}
        return Count(self.bytes + other.bytes, self.files + other.files, self.folders + other.folders, kept)


def difference(store: Repository, old: str | None, new: str | None) -> Count:
    """Return by how much the tree `new` exceeds the tree `old`; numbers may be negative."""
    size, count, extensions = 0, 0, Counter[str]()
    changed: set[str] = set()
    for change in store.differences(old, new):
        folder, _, name = change.path.rpartition("/")
        if not is_data_file(name):
            continue
        extension = name.rpartition(".")[2] if "." in name else NONE
        for blob, sign in ((change.old, -1), (change.new, 1)):
            if blob is not None:
                size += sign * store.size(blob)
                count += sign
                extensions[extension] += sign
        if change.old is None or change.new is None:
            changed |= _above(folder)
    folders = sum(_holds(store, new, path) - _holds(store, old, path) for path in changed)
    return Count(size, count, folders, {name: number for name, number in extensions.items() if number})


def stored(store: Repository, tree: str, tags: Set[CommitTag]) -> Count:
    """Return the count of the documents of a tree that some crawls stored: of what a publication saw in layout 1."""
    size, extensions = 0, Counter[str]()
    above: set[str] = set()
    for arc in arcs(store, tree):
        try:
            is_own = described(store, arc).commit_tag in tags
        except InvalidDocument:
            is_own = False
        if is_own and arc.data is not None:
            size += store.size(arc.data.oid)
            extensions[arc.data.name.rpartition(".")[2] if "." in arc.data.name else NONE] += 1
            above |= _above(arc.path)
    return Count(size, extensions.total(), len(above), dict(extensions))


def _above(arc: str) -> set[str]:
    """Return the folders above an ARC."""
    parts = arc.split("/")[:-1]
    return {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}


def _holds(store: Repository, tree: str | None, path: str) -> bool:
    """Return whether a folder has ARCs below it."""
    entry = store.find(tree, path) if tree is not None else None
    if entry is None or not entry.is_tree:
        return False
    return any(child.is_tree and leads_to_arcs(store, child.oid) for child in store.each(entry.oid))


def written(extensions: Mapping[str, int]) -> str:
    """Return the numbers by extension as a field has them: `html 12, png 3`, most files first."""
    return ", ".join(
        f"{name} {number}" for name, number in sorted(extensions.items(), key=lambda pair: (-pair[1], pair))
    )


def parsed(text: str) -> dict[str, int]:
    """Return the inverse of `written`; words that are no such pair are left out."""
    pairs = (pair.rpartition(" ") for pair in text.split(", ") if pair)
    return {name: int(number) for name, _, number in pairs if name and number.isdecimal()}


# == describing =======================================================================================================


_log = logging.getLogger(__name__)
_DAY = 86_400
#: Incomplete hosts that field 21 names; the report has all.
_MOST_NAMED = 20
#: Rows of a record on resources that are missing; the report has more.
_MOST_MISSING = 100
#: The event of a record that was there before its job: the job has begun, for the person who asked for it.
BEGUN = "begun"
#: The first event of a saved page: a person asked for it.
WISH = "asked"
#: Fields that are set before the download, by people and for the person who entered the record.
_TYPED: frozenset[int] = frozenset(
    {
        FieldNumber.SIGNATURE,
        FieldNumber.PROVENANCE,
        FieldNumber.PROJECT,
        FieldNumber.OCCASION,
        FieldNumber.REMARKS,
        FieldNumber.PERSON,
        FieldNumber.EXCLUDED_EXTENSIONS,
        FieldNumber.CRAWLER_REMARKS,
    }
)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What only the job itself knows of a capture: texts of fields by number, and when readers may see it.

    `release` is None if it is not known; then git says whether the capture was held. `way` says which steps follow.
    `record` is the record that was there before the job. `page` is the one that the job was to save.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    release: Release | None = None
    closed_for: str = ""
    way: Way | None = None
    occasion: Occasion = Occasion.REGULAR
    record: str = ""
    hosts: tuple[HostEnd, ...] = ()
    required: tuple[str, ...] = ()
    page: SavedPage | None = None


def is_whole(about: Circumstances, parts: Iterable[CrawlPart], released: Record | None) -> bool:
    """Return whether a crawl counts as complete, given the publication's last released crawl. Pure.

    It does if each host that was complete in that is complete again, and each that is required. Other hosts may be
    incomplete: the table of the crawl names them. A crawl that was cut short is incomplete.
    """
    ends = {end.host: end.complete for end in about.hosts if end.is_page}
    if not ends:
        return all({part.tag.domain: part.complete for part in parts}.values())
    if not any(ends.values()):
        return False
    before = {part.tag.domain: part.complete for part in (released.parts if released is not None else ())}
    again = all(ends.get(domain, True) for domain, was_complete in before.items() if was_complete)
    return again and all(ends.get(domain, False) for domain in _required(about.required, ends))


def _required(patterns: tuple[str, ...], ends: Mapping[str, bool]) -> Iterator[str]:
    """Yield the hosts that are required; a pattern that no host matches is yielded as it is."""
    for pattern in patterns:
        matching = [domain for domain in ends if matches_host((pattern,), domain)]
        yield from matching or (pattern,)


def status_of(about: Circumstances, completeness: bool | None) -> str:
    """Return the text of field 21 as the crawl ended: `complete but for 1 host: a.org (server down: dns)`."""
    missing = [end for end in about.hosts if end.is_page and not end.complete]
    if not completeness or not missing:
        return status_word(completeness)
    texts = [f"{end.host} ({end.reason.partition(': http')[0]})" for end in missing[:_MOST_NAMED]]
    more = len(missing) - len(texts)
    texts += [f"{more} more"] if more else []
    return f"{BUT_FOR}{len(missing)} host{'s' * (len(missing) > 1)}: {', '.join(texts)}"


def describe_capture(
    archive: Archive,
    capture: PublishedCrawl,
    before: Record | None = None,
    about: Circumstances | None = None,
    released: Record | None = None,
) -> Record:
    """Return the record of a capture, without a number; the circumstances `about` it are known when its job ends.

    `before` is a record of the same publication that is counted already: the cost follows the change since. `released`
    is the publication's last one that was released.
    """
    summary = _summary(archive, capture.job)
    about = replace(about or Circumstances(), hosts=hosts_in(summary))
    capture = replace(capture, parts=_with_roles(capture.parts, about.hosts))
    is_complete = is_whole(about, capture.parts, released)
    release = about.release or (Release.BY_HAND if capture.is_held else Release.AUTOMATIC)
    state = _state(release, is_complete, about.way)
    record = Record(
        id=capture.job,
        number=0,
        publication=capture.publication,
        state=state,
        occasion=about.occasion,
        complete=is_complete,
        release=release,
        closed_for=about.closed_for,
        parts=capture.parts,
        resources=_resources_of(archive, capture.parts, about.hosts),
        missing=tuple(starmap(MissingResources, most_rows(missing_in(summary).rows, _MOST_MISSING))),
    )
    status: dict[int, str] = {FieldNumber.STATUS: status_of(about, record.completeness)}
    remarks: dict[int, str] = {FieldNumber.CAPTURE_REMARKS: text_of_certificates(summary)}
    texts = {**_from_git(archive, capture, record), **status, **_times_in(summary), **remarks, **about.texts}
    counted = counted_fields(archive, record, before) if state is not RecordState.CAPTURED else {}
    record = record.with_values({**texts, **counted}, SYSTEM, now())
    record = replace(record, title=Value(title_of(record), SYSTEM, now()))
    return record.with_event("captured", SYSTEM, "", record.state)


def _with_roles(parts: Iterable[CrawlPart], hosts: Iterable[HostEnd]) -> tuple[CrawlPart, ...]:
    """Return parts that say whether the crawl had pages of their domain, as it ended; git alone says it as it began."""
    roles = {end.host: not end.is_page for end in hosts}
    return tuple(replace(part, is_resource=roles.get(part.tag.domain, part.is_resource)) for part in parts)


def _resources_of(archive: Archive, parts: Iterable[CrawlPart], hosts: Iterable[HostEnd]) -> ResourceCount:
    """Count what a crawl has of hosts without pages, also where it shares the snapshot of an earlier one."""
    trees = {part.tag.domain: _tree(archive, part) for part in parts if part.is_resource}
    for end in hosts:
        if not end.is_page and end.commit_tag and end.host not in trees:
            with suppress(NotFound, Damaged):
                store, tag = Repository(archive.repository(end.host)), CommitTag.parse(end.commit_tag)
                target = store.ref(tag.ref)
                commit = sequence.crawl_commit(store, target) if target else None
                trees[end.host] = None if commit is None else _tree(archive, part_of(store, commit))
    count, counted = Count(), 0
    for domain, tree in trees.items():
        if tree is not None:
            here = difference(Repository(archive.repository(domain)), None, tree)
            count, counted = count + here, counted + bool(here.files)
    return ResourceCount(counted, count.files, count.bytes)


def empty(job: str, publication: str, about: Circumstances) -> Record:
    """Return the record of a job that published nothing: a line for people, and no step follows."""
    record = Record(
        id=job, number=0, publication=publication, state=RecordState.EMPTY, release=about.release or "automatic"
    )
    return record.with_values({FieldNumber.ID: job, **about.texts}, SYSTEM, now()).with_event(
        "captured", SYSTEM, "nothing", RecordState.EMPTY
    )


def into(record: Record, captured: Record) -> Record:
    """Return a record that was there before its job, with what the job captured; what people typed stays.

    `captured` is what `describe_capture` or `empty` returned.
    """
    typed = {number: value for number, value in record.values.items() if number in _TYPED}
    who = next((event.by for event in reversed(record.events) if event.what == BEGUN), SYSTEM)
    values = {**captured.values, **typed, FieldNumber.ID: Value(record.id, SYSTEM, now())}
    if who != SYSTEM:
        values[FieldNumber.COPY_PERSON] = Value(who, SYSTEM, now())
    return replace(
        captured,
        id=record.id,
        number=record.number,
        job=captured.id if captured.id != record.id else "",
        occasion=record.occasion,
        title=record.title if record.title.text else captured.title,
        language=record.language,
        access=record.access,
        values=dict(sorted(values.items())),
        attachments=record.attachments,
        events=(*record.events, *(replace(event, by=who) for event in captured.events)),
    )


def _state(release: Release, is_complete: bool, way: Way | None) -> RecordState:
    """Return the state of a capture: released, unless something comes before that; else counted at once."""
    is_plain = way is None or not (way.set_up or way.step_by_step or way.two_persons)
    if release is Release.AUTOMATIC or (release is Release.WHEN_CHECKED and is_complete and is_plain):
        return RecordState.RELEASED
    return RecordState.CAPTURED if way is not None and way.step_by_step else RecordState.COUNTED


def _from_git(archive: Archive, capture: PublishedCrawl, record: Record) -> dict[int, str]:
    """Return what git knows; hosts that only have what pages of others need are counted alone."""
    domains = record.sites
    others = len(record.domains) - len(domains)
    more = f" and {others} host{'s' * (others > 1)} of their resources" if others else ""
    date = min(part.tag.crawl_time for part in capture.parts)
    last = max(part.tag.crawl_time for part in capture.parts)
    span = format_time(date) if (last - date).total_seconds() <= _DAY else f"{format_time(date)} to {format_time(last)}"
    places = ", ".join(str(archive.repository(domain).relative_to(archive.root)) for domain in domains)
    return {
        FieldNumber.ID: capture.job,
        FieldNumber.PROJECT: "Internet",
        FieldNumber.OCCASION: Occasion.REGULAR,
        FieldNumber.DATE: span,
        FieldNumber.OPERATING_SYSTEM: _system(archive, capture.parts[0]),
        FieldNumber.PATH: places,
        FieldNumber.DOMAIN: ", ".join(domains) + more,
        FieldNumber.COPY_PATH: ", ".join(
            f"{archive.content.name}/{part.tag.domain}.git {part.tag.ref}" for part in capture.parts
        ),
    }


def _summary(archive: Archive, job: str) -> dict[str, Any]:
    """Return the summary in the report of a job; empty where it is gone."""
    try:
        return files.read_json(archive.reports / job / "summary.json") or {}
    except (WebarcError, OSError):
        return {}


def _times_in(summary: Mapping[str, Any]) -> dict[int, str]:
    """Return what only the report of a job knows."""
    try:
        started, finished = (str(summary.get(key, "")) for key in ("started", "finished"))
        seconds = int((parse_time(finished) - parse_time(started)).total_seconds())
    except WebarcError:
        return {}
    return {FieldNumber.DURATION: f"{seconds} s", FieldNumber.COPY_DATE: finished}


def counted_fields(archive: Archive, record: Record, before: Record | None) -> dict[int, str]:
    """Return the fields that counting fills, by the difference to the record before where git has both trees."""
    by_tree = not any(
        part.seen == OWN for compared in (record, before) if compared is not None for part in compared.parts
    )
    counted = _count_of(archive, before) if by_tree else None
    count, old = counted if counted is not None else (Count(), {})
    earlier = count.extensions if by_tree or before is None else parsed(before.text(FieldNumber.FILES_BY_EXTENSION))
    parts = {part.tag.domain: part for part in record.parts if not part.is_resource}
    for domain in sorted(old.keys() | parts.keys()):
        store, part = Repository(archive.repository(domain)), parts.get(domain)
        if part is not None and part.seen == OWN:
            count += stored(store, store.snapshot_tree(part.tag), _own_tags(store, record.publication))
        else:
            count += difference(store, old.get(domain), None if part is None else _tree(archive, part))
    new = sorted(count.extensions.keys() - earlier.keys())
    programs = _formats(archive)
    return {
        FieldNumber.BYTES: str(count.bytes),
        FieldNumber.FILES: str(count.files),
        FieldNumber.FOLDERS: str(count.folders),
        FieldNumber.FILES_BY_EXTENSION: written(count.extensions) or "none",
        FieldNumber.MAKERS: formats.describe_programs(programs, count.extensions, by=False),
        FieldNumber.READERS: formats.describe_programs(programs, count.extensions, by=True),
        FieldNumber.NEW_EXTENSIONS: ", ".join(new) or "none",
        FieldNumber.COUNTED: "yes",
    }


def _formats(archive: Archive) -> dict[str, formats.Format]:
    """Return the register of formats; none where it has faults: a record never fails for them."""
    try:
        return formats.load(archive)
    except (SettingsError, OSError) as error:
        _log.warning("%s", error)
        return {}


def _count_of(archive: Archive, before: Record | None) -> tuple[Count, dict[str, str]] | None:
    """Return what was counted of the record before, and its trees by domain; None if one of them is gone."""
    if before is None or not before.text(FieldNumber.COUNTED):
        return None
    pages = [part for part in before.parts if not part.is_resource]
    trees = {part.tag.domain: tree for part in pages if (tree := _tree(archive, part)) is not None}
    if len(trees) < len({part.tag.domain for part in pages}):
        return None
    size, documents, folders = (
        int(before.text(number) or 0) for number in (FieldNumber.BYTES, FieldNumber.FILES, FieldNumber.FOLDERS)
    )
    return Count(size, documents, folders, parsed(before.text(FieldNumber.FILES_BY_EXTENSION))), trees


def _own_tags(store: Repository, publication: str) -> set[CommitTag]:
    """Return the snapshots that a publication's crawls made."""
    commits = (sequence.crawl_commit(store, oid) for oid in store.refs(CRAWLS).values())
    return {
        commit.message.tag for commit in commits if commit is not None and commit.message.publication == publication
    }


def _tree(archive: Archive, part: CrawlPart) -> str | None:
    """Return the tree that a part's publication saw; None where it is not there any more."""
    try:
        return part.seen or Repository(archive.repository(part.tag.domain)).snapshot_tree(part.tag)
    except NotFound:
        return None


def title_of(record: Record) -> str:
    """Return the title of a record that nobody gave one: project, domains and date."""
    return f"{record.text(FieldNumber.PROJECT)}: {record.text(FieldNumber.DOMAIN)}, {record.text(FieldNumber.DATE)}"


#: Operating systems, as servers name them in their Server field, and what they are called. The first that fits holds.
_SYSTEMS: Final = tuple(
    (re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![a-z])", re.IGNORECASE), name)
    for pattern, name in (
        ("Debian", "Debian"), ("Raspbian", "Raspbian"), ("Ubuntu", "Ubuntu"), ("Fedora", "Fedora"),
        ("CentOS", "CentOS"), ("AlmaLinux", "AlmaLinux"), ("Rocky Linux", "Rocky Linux"),
        ("Red[ -]?Hat(?: Enterprise Linux)?|RHEL", "Red Hat Linux"), ("Oracle Linux", "Oracle Linux"),
        ("openSUSE|SUSE|SLES", "SUSE Linux"), ("Gentoo", "Gentoo"), ("Alpine", "Alpine Linux"),
        ("Amazon Linux|Amazon", "Amazon Linux"), ("FreeBSD", "FreeBSD"), ("OpenBSD", "OpenBSD"), ("NetBSD", "NetBSD"),
        ("Mac ?OS ?X?|macOS|Darwin", "macOS"), ("Solaris|SunOS", "Solaris"), ("AIX", "AIX"), ("HP-UX", "HP-UX"),
        ("Windows|Win32|Win64|Microsoft-IIS|Microsoft-HTTPAPI", "Windows"), ("NetWare", "NetWare"),
        ("Linux", "Linux"), ("Unix", "Unix"),
    )
)  # fmt: skip


def system_of(server: str) -> str:
    """Return the operating system that a Server field names; empty where it names none, but only programs."""
    return next((name for pattern, name in _SYSTEMS if pattern.search(server)), "")


def _system(archive: Archive, part: CrawlPart) -> str:
    """Return the operating system of the server of a part, where the header of its start page names it."""
    store = Repository(archive.repository(part.tag.domain))
    arc = split(arc_path(f"http://{part.tag.domain}/"))[1]
    try:
        entry = store.find(store.snapshot_tree(part.tag), f"{arc}/{HEADERS}")
        head = http_response.parse_head(store.read(entry.oid)) if entry is not None else None
    except WebarcError:
        return ""
    return system_of(head.get("server") or "") if head is not None else ""


# == circumstances ====================================================================================================


#: A WARC's first record names the program that wrote it (WARC 1.1, `warcinfo`).
_SOFTWARE = re.compile(rb"^software: *([^\r\n]{1,200})", re.MULTILINE)
_HEAD = 4096
_HIDDEN = "***"
_EXTERNAL = {
    PageResources.ANY: "embedded resources of pages, on any host",
    PageResources.HOSTS: "embedded resources of pages, on accepted hosts",
    PageResources.NONE: "0",
}
_HARMLESS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?[kmgKMGsmhd]?|on|off|yes|no", re.ASCII)
# Options, whole or shortened, whose values are secrets or hold some, also where they look like numbers.
_OF_SECRETS = re.compile(r"--?(?:h|us|p|f|b|co|ce|l|e|no-|i)|-[eU]", re.ASCII)


def of_job(job: Job) -> Circumstances:
    """Return the circumstances of a job that has ended. Reads the first WARC in its folder, and webarc.toml."""
    publication, crawl = job.publication, job.settings
    describe = _describe(job, publication)
    texts = {
        **wanted(publication, describe),
        FieldNumber.COPY_DATE: format_time(now()),
        FieldNumber.COPY_PERSON: person_of_process(),
    }
    if not is_import(job.name):
        texts |= {
            **how(publication, job.instances or crawl.max_instances),
            FieldNumber.TOOL: _software(job.folder),
        }
    closed_for = "" if publication.closed_for is None else str(publication.closed_for)
    way = way_of(job.archive, publication, settings_now(job.archive))
    asked = _asked(job)
    texts |= {FieldNumber.OCCASION: asked.occasion} if asked is not None and asked.occasion else {}
    if job.page is not None:
        texts |= {FieldNumber.PERSON: job.page.by, FieldNumber.REMARKS: job.page.description}
    return Circumstances(
        texts=texts,
        release=Release(publication.release),
        closed_for=closed_for,
        way=way,
        occasion=Occasion.OCCASION if FieldNumber.OCCASION in texts else Occasion.REGULAR,
        record="" if asked is None else asked.record,
        page=job.page,
    )


def _asked(job: Job) -> Definition | None:
    try:
        return job_folder.load(job.folder)
    except Damaged:
        return None


def wanted(publication: Publication, describe: DescribeSettings) -> dict[int, str]:
    """Return what settings say of a record: signature, office, project; and the person whose process this is."""
    return {
        FieldNumber.SIGNATURE: describe.signature or publication.name,
        FieldNumber.PROVENANCE: describe.provenance or _host(publication),
        FieldNumber.PROJECT: describe.project,
        FieldNumber.PERSON: person_of_process(),
    }


def how(publication: Publication, instances: int) -> dict[int, str]:
    """Return how a publication is fetched: the fields 13 to 19, as far as settings say."""
    crawl = publication.crawl
    bind = _HIDDEN if crawl.bind else ""
    shown = replace(crawl, wget_args=without_secrets(crawl.wget_args), ca=Path(crawl.ca).name, bind=bind)
    return {
        FieldNumber.EXCLUDED_DOMAIN: ", ".join((*publication.exclude_hosts, *map(_left_out, publication.exclude)))
        or "none",
        FieldNumber.INTERNAL_DEPTH: UNLIMITED_WORD if crawl.depth == UNLIMITED else str(crawl.depth),
        FieldNumber.EXTERNAL_DEPTH: _EXTERNAL[crawl.resources],
        FieldNumber.EXCLUDED_EXTENSIONS: ", ".join(crawl.exclude_extensions) or "none",
        FieldNumber.RATE_LIMIT: f"{crawl.rate_limit} bytes a second" if crawl.rate_limit else "none",
        FieldNumber.PARALLEL_DOWNLOADS: str(instances),
        FieldNumber.COMMAND_LINE: shlex.join(
            command(
                BatchFiles(Path(), 1),
                shown,
                crawl.wait,
                Path("cookies"),
                speed=crawl.rate_limit,
                checked=crawl.certificates == Certificates.CHECK,
            )
        ),
    }


def without_secrets(wget_args: Iterable[str]) -> tuple[str, ...]:
    """Return further arguments of wget as readers may see them: names of options, and values that can be no secret.

    A header, a password, a cookie or a proxy with its user is public once it is in a record. wget takes options
    shortened and in several spellings, so the harmless are named, not the secret: a switch, and a number with its unit
    where the option has no word of a secret.
    """
    shown = []
    before = ""
    for argument in wget_args:
        name, sign, value = argument.partition("=")
        if not name.startswith("-"):
            shown.append(argument if _may_show(before, argument) else _HIDDEN)
        elif name.startswith("--"):
            shown.append(argument if not sign or _may_show(name, value) else f"{name}={_HIDDEN}")
        else:  # a short option may have its value right behind it
            is_plain = not sign and _may_show(name[:2], name[2:])
            shown.append(argument if len(argument) == 2 or is_plain else f"{argument[:2]}{_HIDDEN}")
        before = name
    return tuple(shown)


def _may_show(option: str, value: str) -> bool:
    return _HARMLESS.fullmatch(value) is not None and _OF_SECRETS.match(option) is None


def person_of_process() -> str:
    """Return the login name of the person whose process this is; the number of the user where there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _describe(job: Job, publication: Publication) -> DescribeSettings:
    """Return what webarc.toml says now of the publication's records; the defaults if it has faults."""
    with suppress(SettingsError):
        settings, _ = settings_files.load(job.archive.settings)
        matching = (candidate for candidate in settings.publications if candidate.name == publication.name)
        return next(matching, settings.unlisted(publication.name)).describe
    return DescribeSettings()


def _left_out(exclusion: Exclusion) -> str:
    return f"{exclusion.match} ({exclusion.reason})" if exclusion.reason else exclusion.match


def settings_as_they_were(job: Job) -> dict[str, bytes]:
    """Return the settings of the job's publication as a file for the catalogue: path → JSON."""
    settings = job_folder.settings_of(job.publication, job.profile)
    content = json.dumps(settings, indent=1, ensure_ascii=False, sort_keys=True)
    return {f"publications/{job.publication.name}.json": f"{content}\n".encode()}


def keep_old_defaults(archive: Archive) -> list[str]:
    """Write old defaults into publications whose last crawl was made before there were these settings; return names.

    In an archive of an older layout, which is to be raised after this, into those without a crawl as well. Raises
    SettingsError, Damaged, OSError.
    """
    also_new = directory.layout_of(archive.root) < directory.LAYOUT
    catalogue = Catalogue(archive)
    unsaid: dict[str, Set[str]] = {}
    for publication in settings_files.load(archive.settings, apart={})[0].publications:
        content = catalogue.file(f"publications/{publication.name}.json")
        if content is None and not also_new:
            continue
        keys = settings_files.OLD_DEFAULTS.keys() - _keys_of_crawl(content, publication.name)
        if keys:
            unsaid[publication.name] = keys
    return settings_files.keep_old_defaults(archive, unsaid) if unsaid else []


def crawl_as_before(archive: Archive) -> None:
    """Keep old defaults before the first crawl of this version; log what was written, or why it could not be."""
    try:
        for name in keep_old_defaults(archive):
            _log.info("%s is crawled as before: the old values of new defaults are in its settings now", name)
    except (WebarcError, OSError) as error:
        keys = ", ".join(settings_files.OLD_DEFAULTS)
        _log.warning("publications of an older version may be crawled by new defaults: %s; set %s in them", error, keys)


def _keys_of_crawl(content: bytes | None, name: str) -> Set[str]:
    """Return the settings of a crawl that the copy of a publication's settings has. Raises Damaged."""
    if content is None:
        return frozenset()
    try:
        return frozenset(json.loads(content)["crawl"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"catalogue.git, publications/{name}.json: {error}; `webarc-agent verify` reports it") from None


def _host(publication: Publication) -> str:
    return split(arc_path(publication.named_urls[0]))[0] if publication.named_urls else ""


def _software(folder: Path) -> str:
    for path in sorted(folder.glob("*.warc")):
        with path.open("rb") as file:
            match = _SOFTWARE.search(file.read(_HEAD))
        if match:
            return match[1].decode("utf-8", "replace")
    return ""


# == keeping ==========================================================================================================


#: Records that are written in one commit.
_AT_ONCE = 100


def keep_capture(job: Job, tags: Iterable[str]) -> None:
    """Write the record of a job that has ended and has its report, and its publication's settings.

    A record that is there stays. Then the first step that comes by itself is asked for.
    """
    try:
        catalogue = Catalogue(job.archive)
        about = replace(of_job(job), required=job.publication.required_hosts)
        name = about.record if about.record and catalogue.has(about.record) else job.name
        if about.record or not catalogue.has(name):  # a record that was entered may have the job's name
            _keep(catalogue, job, about, tags)
        ask_next(job.archive, catalogue.read(name)[0], about.way)
    except (WebarcError, OSError) as error:
        _log.error("the record of %s was not written, the next start tries again: %s", job.name, error)


def _keep(catalogue: Catalogue, job: Job, about: Circumstances, tags: Iterable[str]) -> None:
    mark = None
    captured = captures(job.archive, map(CommitTag.parse, tags))
    capture = next((capture for capture in captured if capture.job == job.name), None)
    if capture is None:
        record = empty(job.name, job.publication.name, about)
    else:
        newest = catalogue.newest(job.publication.name, job.name)
        record = describe_capture(job.archive, capture, newest, about, _last_released(catalogue, job))
        mark = capture.last if catalogue.described() == capture.last - len(capture.parts) else None
    if about.page is not None:
        record = _with_wish(record, about.page, job)
    outcome = "captured" if capture is not None else "nothing"
    expected: dict[str, str | None] = {job.name: None}
    if about.record:
        waiting, blob = catalogue.read(about.record)
        if waiting.state is not RecordState.OPEN:
            return
        record, expected = into(waiting, record), {waiting.id: blob}
    publication_files = settings_as_they_were(job)
    catalogue.save(
        [record], SYSTEM, f"{record.id}: {outcome}", expected=expected, described=mark, files=publication_files
    )


def _with_wish(record: Record, page: SavedPage, job: Job) -> Record:
    """Return the record of a saved page, whose first event is that a person asked for it."""
    wish = Event(WISH, job.begun, page.by, page.url, warrant=Warrant(page.role, page.person))
    return replace(record, events=(wish, *record.events))


def _last_released(catalogue: Catalogue, job: Job) -> Record | None:
    """Return the newest released record of a job's publication; None where it has none, or needs no checks."""
    if job.publication.release != Release.WHEN_CHECKED:
        return None
    records = (record for record in catalogue.records(job.publication.name) if record.id != job.name)
    return next((record for record in records if record.state is RecordState.RELEASED), None)


def ask_next(archive: Archive, record: Record, way: Way | None = None) -> WorkflowStep | None:
    """Ask for the step of a record that comes by itself, and return it; None where there is none.

    One that was asked for already is returned, too.
    """
    step = next_by_itself(progress_of(record), way or of_record(archive, record))
    if step is not None:
        with suppress(Busy):
            stepfolders.ask(archive, record, step)
    return step


def add_parts(
    archive: Archive,
    catalogue: Catalogue,
    record_id: str,
    new: Iterable[CrawlPart],
    text: str,
    *,
    by: str,
    warrant: Warrant = NO_WARRANT,
) -> Record:
    """Add parts of a patch to a record; return it as it is then. Raises NotFound, Busy."""
    new = tuple(new)
    unpatched = catalogue.read(record_id)[0]
    before = catalogue.newest(unpatched.publication, record_id)
    lacks = unpatched.missing
    if with_patch(unpatched.parts, new) != unpatched.parts:
        lacks = _missing_now(archive, unpatched)

    def changed(record: Record) -> Record:
        parts = with_patch(record.parts, new)
        if parts == record.parts:
            return record
        if record.state is RecordState.RELEASED and any(part.is_held for part in parts[len(record.parts) :]):
            _log.warning("%s is released, and its patch was held: readers do not see it", record.id)
            return record
        resources = record.resources
        if any(part.is_resource for part in new):
            resources = _resources_of(archive, parts, hosts_in(_summary(archive, record.job_name)))
        patched = replace(record, parts=parts, resources=resources, missing=lacks)
        return _patched(archive, patched, before, text, by, warrant)

    saved = catalogue.change(record_id, changed, by or SYSTEM, lambda _: "patched")
    ask_next(archive, saved)
    return saved


def _missing_now(archive: Archive, record: Record) -> tuple[MissingResources, ...]:
    """Return what pages of a crawl lack after its patches; what they lacked before where its log cannot be read."""
    try:
        rows = missing_after_patches(archive, record.job_name).rows
    except (NotFound, Damaged, OSError):
        return record.missing
    return tuple(starmap(MissingResources, most_rows(rows, _MOST_MISSING)))


def _patched(  # noqa: PLR0917 # of one caller
    archive: Archive, record: Record, before: Record | None, text: str, by: str, warrant: Warrant
) -> Record:
    state = None
    if record.state in HELD:
        is_counted_later = of_record(archive, record).step_by_step
        state = RecordState.CAPTURED if is_counted_later else RecordState.COUNTED
    texts: dict[int, str] = {
        FieldNumber.COPY_PATH: ", ".join(
            f"{archive.content.name}/{part.tag.domain}.git {part.tag.ref}" for part in record.parts
        ),
    }
    if state is RecordState.CAPTURED:
        texts[FieldNumber.COUNTED] = ""
    else:
        texts |= counted_fields(archive, record, before)
    record = record.with_values(texts, SYSTEM, now())
    record = record.with_event(PATCHED, by or SYSTEM, text, state, warrant=warrant)
    return with_status(record, SYSTEM, now())


def catch_up_records(archive: Archive, stop: Callable[[], bool] = lambda: False, progress: Progress = unseen) -> int:
    """Write the records of captures that have none, but for jobs that have not ended; return their number.

    An archive of layout 1 gets none: the next publication, or `upgrade`, raises it. Reads only what was published since
    all had one. `stop` ends it between two commits; the next call resumes. Logs what cannot be read or written.
    """
    try:
        return _catch_up(archive, stop, progress)
    except (WebarcError, OSError) as error:
        _log.error("the catalogue was not completed, the next start tries again: %s", error)
        return 0


def _catch_up(archive: Archive, stop: Callable[[], bool], progress: Progress) -> int:
    catalogue = Catalogue(archive)
    if directory.layout_of(archive.root) < directory.WITH_CATALOGUE or not archive.database.exists():
        return 0
    described = catalogue.described()
    with Database(archive.database) as database:
        since = {tag: number for number, tag in database.since(described)}
    if not since:
        return 0
    under_way = set(_under_way(archive))
    captured = captures(archive, map(CommitTag.parse, since))
    last = min(
        [max(since.values()), *(capture.sequence - 1 for capture in captured if folder_of(capture.job) in under_way)]
    )
    ended = [capture for capture in captured if folder_of(capture.job) not in under_way]
    missing = [capture for capture in ended if not catalogue.has(capture.job)]
    begun = _begun(catalogue) if missing else {}
    for capture in ended:
        if capture.patches and (capture not in missing or capture.job in begun):
            record_id = begun[capture.job][0].id if capture.job in begun else capture.job
            add_parts(archive, catalogue, record_id, capture.parts, ", ".join(capture.patches), by=SYSTEM)
    waiting = {job: found for job, found in begun.items() if found[0].state is RecordState.OPEN}
    missing = [capture for capture in missing if capture.job in waiting or capture.job not in begun]
    expected: dict[str, str | None]
    newest: dict[str, Record] = {}
    for start in range(0, len(missing), _AT_ONCE):
        if stop():
            return start
        progress("describe crawls", start, len(missing))
        records, expected = [], {}
        for capture in missing[start : start + _AT_ONCE]:
            record = _described(archive, catalogue, capture, newest)
            before, blob = waiting.get(capture.job, (None, None))
            records.append(record if before is None else into(before, record))
            expected[records[-1].id] = blob
        saved = catalogue.save(records, SYSTEM, f"{len(records)} captures from git", expected=expected)
        for saved_record in saved:
            if saved_record.state in HELD:  # what readers see already is left as it is
                ask_next(archive, saved_record)
    if last > described:
        catalogue.save([], SYSTEM, f"all captures up to {last} have records", described=last)
    return len(missing)


def _begun(catalogue: Catalogue) -> dict[str, tuple[Record, str]]:
    """Return the records that were there before their jobs, by these, with their blobs."""
    records = (catalogue.read(record.id) for record in catalogue.records() if record.job)
    return {record.job: (record, blob) for record, blob in records}


def _under_way(archive: Archive) -> Iterator[str]:
    """Yield the folders of jobs that have not ended, and the crawls that some of them patch."""
    for folder in archive.jobs.iterdir():
        yield folder.name
        if job_folder.is_patch(folder.name):
            with suppress(Damaged):
                asked = job_folder.load(folder)
                if asked is not None and asked.patch is not None:
                    yield asked.patch.job


def _described(archive: Archive, catalogue: Catalogue, capture: PublishedCrawl, newest: dict[str, Record]) -> Record:
    """Return the record of a capture, counted from the one before it; `newest` has those not written yet."""
    before = newest.get(capture.publication) or catalogue.newest(capture.publication, capture.job)
    if before is not None and before.id > capture.job:
        before = None
    record = newest[capture.publication] = describe_capture(archive, capture, before)
    return record


# == patches ==========================================================================================================


#: Rows of the publication's newest records that are looked at.
_LOOKED_AT = 100


def find_record(catalogue: Catalogue, job: str, publication: str) -> Record:
    """Return the record of a job, which may have been there before it. Raises NotFound."""
    if catalogue.has(job):
        record, _ = catalogue.read(job)
        if not record.job:
            return record
    for record in catalogue.records(publication):
        if record.job_name == job:
            return record
    raise NotFound(f"the catalogue has no record of {job}; `webarc-agent record list` lists them")


class PatchRefusal(StrEnum):
    """Why a record takes no patch."""

    IMPORT = "import"
    OPEN = "open"
    EMPTY = "empty"
    DISCARDED = "discarded"
    REJECTED = "rejected"
    RELEASED = "released"
    OLDER = "older"


def judge_patch(archive: Archive, catalogue: Catalogue, record: Record) -> tuple[PatchRefusal, str] | None:
    """Return why a record takes no patch now, with the newer crawl if there is one; None if it takes one."""
    refusals = (
        (PatchRefusal.IMPORT, is_import(record.id)),
        (PatchRefusal.OPEN, record.state is RecordState.OPEN),
        (PatchRefusal.EMPTY, not record.parts),
        (PatchRefusal.DISCARDED, record.state is RecordState.DISCARDED),
        (PatchRefusal.REJECTED, record.state is RecordState.REJECTED),
        (PatchRefusal.RELEASED, record.state is RecordState.RELEASED and record.release != Release.AUTOMATIC),
    )
    for refusal, is_so in refusals:
        if is_so:
            return refusal, ""
    newer = _newer(archive, catalogue, record)
    return (PatchRefusal.OLDER, newer) if newer else None


def patch_refusal(archive: Archive, catalogue: Catalogue, record: Record) -> str:
    """Return why a record takes no patch now, for who has a terminal; empty if it takes one."""
    judged_patch = judge_patch(archive, catalogue, record)
    if judged_patch is None:
        return ""
    refusal, newer = judged_patch
    return {
        PatchRefusal.IMPORT: "it is an import, which asks no server",
        PatchRefusal.OPEN: "its crawl has not ended",
        PatchRefusal.EMPTY: "its crawl published nothing, so there is nothing to patch: crawl it again",
        PatchRefusal.DISCARDED: f"it is discarded; `webarc-agent record restore {record.id}` takes that back",
        PatchRefusal.REJECTED: f"it is rejected; `webarc-agent record reopen {record.id}` takes that back",
        PatchRefusal.RELEASED: (
            "it is released, and readers would see pages that nobody has checked: withdraw it first "
            f"(`webarc-agent record withdraw {record.id} --reason TEXT`), and release it after the patch"
        ),
        PatchRefusal.OLDER: f"{newer} is a newer crawl of {record.publication}; patch that one",
    }[refusal]


def _newer(archive: Archive, catalogue: Catalogue, record: Record) -> str:
    """Return the id of a later crawl of the record's publication; empty without one."""
    since = int(record.date.timestamp()) + 1 if record.date is not None else 0
    with opened(archive, catalogue) as tables:
        chosen = RecordSelection(publication=record.publication, since=since)
        rows = tables.listed(chosen, limit=_LOOKED_AT)
        return next((row.id for row in rows if row.has_parts and row.id != record.id), "")


def keep_patch(job: Job, tags: Iterable[str]) -> None:
    """Add to the record of a crawl what its patch published. A part that is there already is not added again.

    It never fails the job: the next start adds what is missing.
    """
    patch = job.patch
    assert patch is not None
    try:
        for capture in captures(job.archive, map(CommitTag.parse, tags)):
            add_parts(
                job.archive, Catalogue(job.archive), patch.record, capture.parts, _account(job), by=patch.by,
                warrant=Warrant(patch.role, patch.person),
            )  # fmt: skip
    except (WebarcError, OSError) as error:
        _log.error("the record %s lacks its patch, the next start tries again: %s", patch.record, error)


def _account(job: Job) -> str:
    asked = came = 0
    for row in job.frontier.asked():
        asked += 1
        came += job.frontier.end_of(row).result in ARCHIVED_OR_DUPLICATE
    return f"{came} of {asked} URLs came, {job.name}"
