"""`webarc-agent verify`: checks whether an archive is consistent, with a line for each finding.

git checks its objects; each data.xml is validated against the schema; refs, feed and database are compared. It changes
nothing, except for a note on checked commits for `--quick`. A crawl may publish meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise

from agent.indexing import fulltext
from agent.jobfolder import folders
from agent.jobfolder.names import publication_of
from agent.system import jsonfile
from agent.upkeep.domain_verification import Domain, documents, fsck, history, met, read_refs, redirects
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.commit.progress import marks as marks_of
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import MISSING, Archive
from webarcfs.archive.git import leftlocks
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.history.feed import Feed
from webarcfs.archive.index.database import Database
from webarcfs.archive.index.links_database import LinksDatabase
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import LogReader, all_logs, provisional_logs
from webarcfs.archive.model.errors import Damaged, DatabaseDamaged, WebarcError
from webarcfs.archive.repair import repository_files
from webarcfs.archive.repair.mending import damaged_refs
from webarcfs.archive.repair.ref_mending import MENDS
from webarcfs.archive.system import locks

#: The note of the last verification: domain → a commit all of whose documents were valid.
_NOTE = "verified.json"
#: The checks that the quick form leaves out.
LEFT_OUT = "objects (but for data.xml that is new), commit-graphs, the databases' pages"
_RECOVER = "`webarc-agent recover` makes it anew"
#: Records that the quick form reads.
_QUICK_RECORDS = 50
_KEPT = "a backup has it, and so may the history of catalogue.git"
_EDITED = "a backup has it; without one, remove catalogue.git: records are made anew from git, edits are lost"


@dataclass
class _Seen:
    """The archive's refs and feed at one moment."""

    domains: list[Domain] = field(default_factory=list)
    feed: list[str] = field(default_factory=list)

    @property
    def tags(self) -> dict[str, int]:
        """Each commitTag → its number in the order of the feed."""
        return {tag: number for domain in self.domains for tag, number in domain.sequence.items()}


def verify(archive: Archive, *, quick: bool = False) -> Iterator[str]:
    """Yield a line for each finding.

    `quick` checks only documents changed since the last verification, and leaves out the checks in `LEFT_OUT`.
    """
    seen = _Seen()
    with suppress(FileNotFoundError):
        missing = (archive.root / MISSING).read_text("utf-8", "replace").splitlines()
        yield from (f"{MISSING}: {line}" for line in missing)
    for name in archive.domains():
        yield from (f"{name}: {line}; {MENDS}" for line in repository_files.faults(archive.repository(name)))
    # While it is held, no publication moves refs or writes to the feed.
    with sequence.hold(archive):
        for name in archive.domains():
            try:
                seen.domains.append(read_refs(Repository(archive.repository(name)), name))
            except WebarcError as error:
                yield f"{name}: {error}"
        seen.feed = list(Feed(archive.changes).lines())
    sound = _known(archive) if quick else {}
    now_sound = dict(sound)
    for domain in seen.domains:
        found = list(_domain(archive, domain, sound.get(domain.name), quick))
        yield from (f"{domain.name}: {line}" for line in found)
        yield from _rows(archive, domain)
        domain.current = domain.redirects = None  # bounds memory
        if not found and domain.main:
            now_sound[domain.name] = domain.main
        else:
            now_sound.pop(domain.name, None)
    yield from catalogue_findings(archive, quick=quick)
    yield from _feed(seen)
    yield from _database(archive, seen, quick)
    yield from _links(archive, quick)
    yield from fulltext.findings(archive)
    yield from journal(archive, {domain.name: domain for domain in seen.domains})
    yield from _jobs(archive)
    with suppress(OSError):  # the archive may be read-only, and this only saves time
        jsonfile.write(archive.log / _NOTE, dict(now_sound), durable=False)


def _known(archive: Archive) -> dict[str, str]:
    try:
        return {key: str(value) for key, value in (jsonfile.read(archive.log / _NOTE) or {}).items()}
    except Damaged:
        return {}  # it only saves time


def _domain(archive: Archive, domain: Domain, sound: str | None, quick: bool) -> Iterator[str]:
    yield from domain.findings
    if not domain.findings:
        with suppress(WebarcError):  # another check reports it
            yield from damaged_refs(archive, domain.name)
    for path in leftlocks.left(domain.store.path):
        name = path.relative_to(domain.store.path)
        yield f"{name} was left by a git that was killed; `webarc-agent recover` removes it, or the next crawl"
    try:
        if not quick:
            yield from fsck(domain.store)
        yield from history(domain)
        yield from documents(domain, sound)
        yield from redirects(domain, sound)
        yield from met(domain, sound)
    except WebarcError as error:
        yield str(error)


def catalogue_findings(archive: Archive, *, quick: bool) -> Iterator[str]:
    """Check that the catalogue's objects are whole, and that each record fits its schema; `quick`, the newest alone."""
    name = archive.catalogue.name
    if not archive.catalogue.exists():
        if archive.format.exists() and _should_have_one(archive):
            yield f"{name}: it is missing; a backup has it. The next start makes records anew from git, edits are lost"
        return
    try:
        catalogue = Catalogue(archive)
        yield from (f"{name}: {line}" for line in repository_files.faults(archive.catalogue))
        if not quick:
            yield from (f"{name}: {line}" for line in fsck(Repository(archive.catalogue)))
        if catalogue.file(archive.access_rules.name) and not archive.access_rules.exists():
            yield f"{archive.access_rules.name}: it is missing, and what it withheld is open; {name} has its last state"
        for record_id in islice(catalogue.ids(), _QUICK_RECORDS if quick else None):
            try:
                record, _ = catalogue.read(record_id)
                yield from (f"{name}: {line}; {_KEPT}" for line in catalogue.attachment_faults(record))
            except Damaged as error:
                yield f"{name}: {error}; {_EDITED}"
    except WebarcError as error:
        yield f"{name}: {error}; {_EDITED}"


def _should_have_one(archive: Archive) -> bool:
    return directory.layout_of(archive.root) >= directory.WITH_CATALOGUE and any(archive.reports.glob("*/summary.json"))


def _feed(seen: _Seen) -> Iterator[str]:
    """Check that each crawl has one line and each line a crawl, in the order of the numbers."""
    tags = seen.tags
    damaged = {domain.name for domain in seen.domains if domain.findings}
    lines = set(seen.feed)
    for tag in sorted(tags.keys() - lines):
        yield f"changes: there is no line for {tag}; `webarc-agent recover` writes it anew"
    for tag in sorted(lines - tags.keys()):
        if tag.partition("@")[2] not in damaged:
            yield f"changes: {tag} is on no ref of its domain"
    if len(lines) != len(seen.feed):
        yield "changes: a line is there twice"
    known = [tag for tag in seen.feed if tag in tags]
    for earlier, later in pairwise(known):
        if tags[earlier] >= tags[later]:
            yield f"changes: {later} ({tags[later]}) stands behind {earlier} ({tags[earlier]})"


def _database(archive: Archive, seen: _Seen, quick: bool) -> Iterator[str]:
    """Check that webarc.db exists, and that SQLite finds no error in it."""
    if not archive.database.exists():
        if seen.tags:
            yield "webarc.db: it is missing; `webarc-agent recover` makes it anew"
        return
    try:
        with Database(archive.database) as database:
            yield from (f"webarc.db: {line}; {_RECOVER}" for line in ([] if quick else database.check()))
    except DatabaseDamaged as error:
        yield str(error)


def _links(archive: Archive, quick: bool) -> Iterator[str]:
    """Check that SQLite finds no error in links.db, if it exists. It may lack snapshots: crawls do not wait for it."""
    if archive.links.exists() and not quick:
        try:
            with LinksDatabase(archive.links) as base:
                yield from (f"links.db: {line}; {_RECOVER}" for line in base.check())
        except DatabaseDamaged as error:
            yield str(error)


def _rows(archive: Archive, domain: Domain) -> Iterator[str]:
    """Check that the database contains exactly the snapshots of a domain, and the documents of the newest one.

    Skipped while a crawl publishes on the domain, since the database may then lack snapshots.
    """
    with locks.if_free(archive.publishing_lock(domain.name)) as free:
        if not free or not archive.database.exists():
            return
        try:
            with Database(archive.database) as database:
                indexed, current = database.indexed(domain.name), database.current(domain.name)
                led = database.redirects(domain.name)
        except DatabaseDamaged:
            return  # `_database` reports it once
        now = set(read_refs(domain.store, domain.name).sequence)
    for tag in sorted(domain.sequence.keys() - indexed):
        yield f"webarc.db: there is no snapshot {tag}; {_RECOVER}"
    for tag in sorted(indexed - now):
        yield f"webarc.db: it has a snapshot {tag}, which git has not; {_RECOVER}"
    if now != domain.sequence.keys():
        return  # the domain has changed meanwhile
    for held, said in ((domain.current, current), (domain.redirects, led)):
        if held is None:
            continue  # not all of them were checked
        wrong = sorted(name for name in held.keys() | said.keys() if held.get(name) != said.get(name))
        if wrong:
            more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            yield f"webarc.db: what it says of {wrong[0]}{more} is not what git holds; {_RECOVER}"


def journal(archive: Archive, domains: dict[str, Domain]) -> Iterator[str]:
    """Check that confirmed additions can be committed: the logs can be read, and the bodies exist."""
    marks: dict[str, dict[str, int]] = {}
    for log in all_logs(archive) + provisional_logs(archive):
        try:
            records = log.left(log.more() or [])
        except FileNotFoundError:
            continue  # all its additions are committed
        name = f"journal/{log.path.name}"
        if log.newer:
            yield f"{name}: a newer version wrote it; use that to mount or crawl"
        elif log.damage or log.tail == "damaged":
            yield f"{name}: it is damaged, and what can be read of it is committed by the next mount or crawl"
        for record in records:
            place = record.addition.place
            domain = domains.get(place.domain)
            if domain is None:
                yield f"{name}: addition {record.number} is for {place.domain}, which is not there"
                continue
            if place.domain not in marks:
                marks[place.domain] = marks_of(domain.store)
            if record.number > marks[place.domain].get(log.id, 0) and not _is_whole(log, record):
                yield f"{name}: the body of addition {record.number}, to {place.arc} of {place.domain}, is gone"


def _is_whole(log: LogReader, record: LogRecord) -> bool:
    """Return whether a record's body is there, or is not needed any more: its file was written again meanwhile."""
    if not record.file or (log.bodies / record.file).exists():
        return True
    again = LogReader(log.path)
    try:
        return log.provisional and record not in again.left(again.more() or [])
    except FileNotFoundError:
        return True


def _jobs(archive: Archive) -> Iterator[str]:
    """Check that each job without a running process can be resumed."""
    for folder in sorted(archive.jobs.iterdir()):
        if folder.name.startswith("."):
            continue  # it is being removed
        try:
            with locks.if_free(archive.publication_lock(publication_of(folder.name))) as free:
                if free and folders.has_begun(folder):
                    folders.check(folder)
        except WebarcError as error:
            yield f"jobs/{folder.name}: {error}"
