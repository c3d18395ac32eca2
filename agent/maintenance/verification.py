"""`webarc-agent verify`: checks whether an archive is consistent, with a line for each finding.

git checks its objects; each data.xml is validated against the schema; refs, feed and database are compared. It changes
nothing, except for a note on checked commits for `--quick`. A crawl may publish meanwhile.

In each domain's repository it checks refs, history, documents, redirects, and lists of what crawls met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise

from agent.crawl import job_folder
from agent.crawl.job_folder import publication_of
from agent.indexing import fulltext
from agent.maintenance.damaged_pages import advice, damage_lines
from webarcfs.access import access_rules
from webarcfs.archive.additions import commit_additions
from webarcfs.archive.additions.journal_log import LogReader, LogRecord, all_logs, provisional_logs
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import MISSING, Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import CRAWLS, FORMS, MAIN, MET, PUBLICATIONS, SEEN, Repository
from webarcfs.archive.history import redirect_lists, rendered_forms, sequence
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import OF_SNAPSHOT, Database
from webarcfs.archive.index.links import LinksDatabase
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS
from webarcfs.archive.model.errors import Damaged, DatabaseDamaged, InvalidDocument, SettingsError, WebarcError
from webarcfs.archive.model.metadata import CommitTag, parse_compact_time
from webarcfs.archive.model.url_lists import REDIRECTS, Redirect, is_place, read_list
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.repair import damage_note, mending
from webarcfs.archive.repair.mending import MENDS, damaged_refs
from webarcfs.archive.repair.restoring import ids_named
from webarcfs.archive.system import files, locks
from webarcfs.archive.system.clocks import Progress, unseen

# == domain verification ==============================================================================================


_MOST_LINES = 20
_NO_FORM = f"what a browser showed of it is not in {rendered_forms.REF}; a backup has it, or an export"


@dataclass
class Domain:
    """A domain's refs at one moment, and the findings on them."""

    name: str
    store: Repository
    main: str | None = None
    refs: dict[str, str] = field(default_factory=dict)  # of refs/crawls/
    sequence: dict[str, int] = field(default_factory=dict)  # commitTag → number
    findings: list[str] = field(default_factory=list)
    #: path → the fields that the database should contain; None if not all documents were read, or one is faulty
    current: dict[str, dict[str, str]] | None = None
    #: URL → redirect of main; None if a list cannot be read
    redirects: dict[str, Redirect] | None = None
    #: The objects that cannot be read.
    damaged: frozenset[str] = frozenset()


def read_refs(store: Repository, name: str) -> Domain:
    """Read and check the refs of a domain. Raises Damaged if they cannot be listed."""
    domain = Domain(name, store)
    domain.main = _target(domain, MAIN)
    targets = ((time, _target(domain, CRAWLS + time)) for time in store.ref_names(CRAWLS))
    domain.refs = {time: target for time, target in targets if target is not None}
    for time, target in domain.refs.items():
        try:
            _read_crawl(domain, time, target)
        except WebarcError as error:
            domain.findings.append(f"{CRAWLS}{time}: {error}")
    if domain.refs and domain.main != domain.refs[max(domain.refs)]:
        domain.findings.append(f"{MAIN} is not where the newest crawl's ref is, {CRAWLS}{max(domain.refs)}")
    for kind in (SEEN, MET):
        alone = (time for time in store.ref_names(kind) if time not in domain.refs)
        domain.findings += [f"{kind}{time}: there is no crawl of that time" for time in alone]
    readers: tuple[tuple[str, Callable[[str], object]], ...] = (
        (PUBLICATIONS, store.entries),
        (SEEN, store.entries),
        (MET, partial(redirect_lists.read_met_list, store)),
        (FORMS, store.entries),
        (commit_additions.ADDITIONS, partial(commit_additions.mark_number, store)),
    )
    for kind, read_target in readers:
        for ref_name in store.ref_names(kind):
            try:
                if (oid := _target(domain, kind + ref_name)) is not None:
                    read_target(oid)
            except Damaged as error:
                domain.findings.append(f"{kind}{ref_name}: {error}")
    return domain


def _target(domain: Domain, ref: str) -> str | None:
    """Return the target of a ref; None, with a finding, if it cannot be read."""
    try:
        return domain.store.ref(ref)
    except Damaged as error:
        domain.findings.append(str(error).removeprefix(f"{domain.store.path}: "))
        return None


def _read_crawl(domain: Domain, time: str, target: str) -> None:
    commit = sequence.crawl_commit(domain.store, target)
    tag = CommitTag(parse_compact_time(time), domain.name)
    if commit is None or commit.message.tag != tag:
        raise Damaged(f"it is on no commit of the crawl {tag}")
    number = commit.message.sequence
    if number in domain.sequence.values():
        raise Damaged(f"its number {number} is another crawl's, too")
    domain.sequence[str(tag)] = number
    kept = domain.store.ref(tag.seen_ref)
    if commit.message.seen != (kept or ""):
        saw = commit.message.seen or "all of it"
        raise Damaged(f"its publication saw {saw}, and {tag.seen_ref} is {kept or 'gone'}")
    listed = domain.store.ref(tag.met_ref)
    if commit.message.met != (listed or ""):
        named = commit.message.met or "none"
        raise Damaged(f"its list of what it met unchanged is {named}, and {tag.met_ref} is {listed or 'gone'}")


def fsck(store: Repository) -> Iterator[str]:
    """Yield the findings of `git fsck`, which reads all objects."""
    return _of_git(store.check())


def _of_git(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"git fsck: {line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"git fsck: and {len(lines) - _MOST_LINES} more lines"


def history(domain: Domain) -> Iterator[str]:
    """Check that main's history is linear, and that each crawl in it has its ref."""
    for commit in domain.store.history(domain.main):
        if len(commit.parents) > 1:
            yield f"history is no line: commit {commit.oid} has {len(commit.parents)} parents"
        if commit.message.tag.ref.removeprefix(CRAWLS) not in domain.refs:
            yield f"{commit.message.tag.ref} is missing, and commit {commit.oid} belongs to it"


def documents(domain: Domain, sound: str | None, progress: Progress = unseen) -> Iterator[str]:
    """Check that each data.xml of main is valid, names its own ARC, and has its files beside it.

    With `sound`, a commit that was checked before, only the documents that differ from it are read.
    """
    store = domain.store
    head = store.head() if domain.main is None else store.commit(domain.main)
    if head is None:
        return
    before = _tree_of(store, sound)
    current: dict[str, dict[str, str]] = {}
    sound_so_far = before is None
    count = 0
    for difference in store.differences(before, head.tree):
        folder, _, name = difference.path.rpartition("/")
        if name != DATA_XML or difference.new is None:
            continue
        count += 1
        progress(f"check documents of {domain.name}", count, 0)
        try:
            data_xml.validate(document := store.read(difference.new))
            meta = data_xml.metadata(document)
            fields = meta.as_fields()
            if meta.rendered and rendered_forms.lacking(store, [meta.rendered]):
                yield f"/{difference.path}: {_NO_FORM}: {meta.rendered}"
        except (InvalidDocument, Damaged) as error:
            yield f"/{difference.path}: {error}"
            sound_so_far = False
            continue
        for line in _faults(domain, head.tree, folder, fields):
            yield f"/{difference.path}: {line}"
            sound_so_far = False
        current[fields["path"]] = {key: fields[key] for key in fields.keys() - OF_SNAPSHOT}
    domain.current = current if sound_so_far else None


def redirects(domain: Domain, sound: str | None) -> Iterator[str]:
    """Check that each list of redirects of main can be read, and lies where its URLs belong.

    With `sound`, a commit that was checked before, nothing is read if it has the same lists.
    """
    head = domain.store.head() if domain.main is None else domain.store.commit(domain.main)
    top = domain.store.find(head.tree, REDIRECTS) if head is not None else None
    before = _tree_of(domain.store, sound)
    if before is not None and domain.store.find(before, REDIRECTS) == top:
        return
    domain.redirects = {}
    for path, blob in domain.store.files(top.oid, REDIRECTS) if top is not None and top.is_tree else ():
        try:
            if not is_place(path):
                raise Damaged("there can be no list of redirects")
            for redirect in read_list(domain.store.read(blob), path):
                if domain_of(redirect.url) != domain.name:
                    raise Damaged(f"{redirect.url} is of another domain")
                if domain.redirects is not None:
                    domain.redirects[redirect.url] = redirect
        except Damaged as error:
            domain.redirects = None
            yield f"/{path}: {error}"


def met(domain: Domain, sound: str | None) -> Iterator[str]:
    """Check that the list of what each crawl met unchanged is of the URLs that its publication saw.

    With `sound`, a commit that was checked before, only the lists of later publications are read.
    """
    store = domain.store
    checked = 0
    if sound is not None:
        with suppress(Damaged):
            checked = domain.sequence.get(str(store.commit(sound).message.tag), 0)
    for time, target in domain.refs.items():
        crawl = sequence.crawl_commit(store, target)
        if crawl is None or crawl.message.sequence <= checked:
            continue
        try:
            if (met_list := redirect_lists.of_crawl(store, crawl)) is not None:
                redirect_lists.check_met_list(store, redirect_lists.seen_tree(crawl), met_list)
        except Damaged as error:
            yield f"{MET}{time}: {error}"


def _faults(domain: Domain, tree: str, folder: str, fields: dict[str, str]) -> Iterator[str]:
    if fields["path"] != f"/{domain.name}/{folder}":
        yield f"it is the data.xml of {fields['path']}"
    if fields["commitTag"] not in domain.sequence:
        yield f"it names the crawl {fields['commitTag']}, which is not there"
    if not fields["commitTag"].startswith(fields["crawlTime"]):
        yield f"its crawlTime {fields['crawlTime']} is not that of its commitTag {fields['commitTag']}"
    arc = domain.store.find(tree, folder)
    names = {entry.name for entry in domain.store.entries(arc.oid) if not entry.is_tree} if arc else set()
    if HEADERS not in names:
        yield f"there is no {HEADERS} beside it"
    if not any(name.startswith("data.") and name != DATA_XML for name in names) and "data" not in names:
        yield "there is no data file beside it"


def _tree_of(store: Repository, commit: str | None) -> str | None:
    try:
        return None if commit is None else store.commit(commit).tree
    except Damaged:
        return None


# == verification =====================================================================================================


#: The note of the last verification: domain → a commit all of whose documents were valid.
_NOTE = "verified.json"
#: The checks that the quick form leaves out.
LEFT_OUT = "objects (but for data.xml that is new), commit-graphs, the databases' pages"
_RECOVER = "`webarc-agent recover` rebuilds it"
#: Records that the quick form reads.
_QUICK_RECORDS = 50
_KEPT = "a backup has it (`webarc-agent restore --damaged`), and so may the history of catalogue.git"
_EDITED = (
    "a backup has it (`webarc-agent restore --damaged`); without one, remove catalogue.git: records are rebuilt from"
    " git, edits are lost"
)


@dataclass
class _Seen:
    """The archive's refs and feed at one moment."""

    domains: list[Domain] = field(default_factory=list)
    feed: list[str] = field(default_factory=list)

    @property
    def tags(self) -> dict[str, int]:
        """Each commitTag → its number in the order of the feed."""
        return {tag: number for domain in self.domains for tag, number in domain.sequence.items()}


def verify(archive: Archive, progress: Progress = unseen, *, quick: bool = False) -> Iterator[str]:
    """Yield a line for each finding.

    `quick` checks only documents changed since the last verification, and leaves out the checks in `LEFT_OUT`.
    """
    seen, count = _Seen(), 0
    for line in _findings(archive, seen, progress, quick=quick):
        count += 1
        yield line
    if any(domain.damaged for domain in seen.domains):
        damage_note.write(archive)
    elif not count and not quick:
        damage_note.clear(archive)


def _findings(archive: Archive, seen: _Seen, progress: Progress, *, quick: bool) -> Iterator[str]:
    with suppress(FileNotFoundError):
        missing = (archive.root / MISSING).read_text("utf-8", "replace").splitlines()
        yield from (f"{MISSING}: {line}" for line in missing)
    for name in archive.domains():
        yield from (f"{name}: {line}; {MENDS}" for line in mending.faults(archive.repository(name)))
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
    for number, domain in enumerate(seen.domains):
        progress("check repositories", number, len(seen.domains))
        findings = list(_domain(archive, domain, sound.get(domain.name), progress, quick=quick))
        if findings:
            domain.damaged |= ids_named(domain.store, findings)
            pages = damage_lines(archive, domain.name, domain.store, domain.damaged)
            yield from (f"{domain.name}: {line}; {advice(archive)}" for line in pages)
        yield from (f"{domain.name}: {line}" for line in findings)
        yield from _rows(archive, domain)
        domain.current = domain.redirects = None  # bounds memory
        if not findings and domain.main:
            now_sound[domain.name] = domain.main
        else:
            now_sound.pop(domain.name, None)
    progress("check repositories", len(seen.domains), len(seen.domains))
    yield from catalogue_findings(archive, quick=quick)
    yield from _feed(seen)
    yield from _database(archive, seen, quick)
    yield from _links(archive, quick)
    yield from fulltext.findings(archive)
    yield from journal(archive, {domain.name: domain for domain in seen.domains})
    yield from _jobs(archive)
    with suppress(OSError):  # the archive may be read-only, and this only saves time
        files.write_json(archive.log / _NOTE, dict(now_sound), durable=False)


def _known(archive: Archive) -> dict[str, str]:
    try:
        return {key: str(value) for key, value in (files.read_json(archive.log / _NOTE) or {}).items()}
    except Damaged:
        return {}  # it only saves time


def _domain(archive: Archive, domain: Domain, sound: str | None, progress: Progress, *, quick: bool) -> Iterator[str]:
    yield from domain.findings
    if not domain.findings:
        with suppress(WebarcError):  # another check reports it
            yield from damaged_refs(archive, domain.name)
    for path in git_command.left_locks(domain.store.path):
        name = path.relative_to(domain.store.path)
        yield f"{name} was left by a git that was killed; `webarc-agent recover` removes it, or the next crawl"
    try:
        if not quick:
            lines = domain.store.check()
            domain.damaged = ids_named(domain.store, lines)
            yield from _of_git(lines)
        yield from history(domain)
        yield from documents(domain, sound, progress)
        yield from redirects(domain, sound)
        yield from met(domain, sound)
    except WebarcError as error:
        yield str(error)


def catalogue_findings(archive: Archive, *, quick: bool) -> Iterator[str]:
    """Check that the catalogue's objects are whole, and that each record fits its schema; `quick`, the newest alone."""
    name = archive.catalogue.name
    if not archive.catalogue.exists():
        if archive.format.exists() and _should_have_one(archive):
            yield f"{name}: it is missing; a backup has it. The next start rebuilds records from git, edits are lost"
        return
    try:
        catalogue = Catalogue(archive)
        yield from (f"{name}: {line}" for line in mending.faults(archive.catalogue))
        if not quick:
            yield from (f"{name}: {line}" for line in fsck(Repository(archive.catalogue)))
        if catalogue.file(archive.access_rules.name) and not archive.access_rules.exists():
            yield f"{archive.access_rules.name}: it is missing, its rules do not hold; {name} has its last state"
        yield from _reason_findings(archive, catalogue)
        for record_id in islice(catalogue.ids(), _QUICK_RECORDS if quick else None):
            try:
                record, _ = catalogue.read(record_id)
                yield from (f"{name}: {line}; {_KEPT}" for line in catalogue.attachment_faults(record))
            except Damaged as error:
                yield f"{name}: {error}; {_EDITED}"
    except WebarcError as error:
        yield f"{name}: {error}; {_EDITED}"


def _reason_findings(archive: Archive, catalogue: Catalogue) -> Iterator[str]:
    """Check that the reason of each rule that a program made is there."""
    name = archive.access_reasons.name
    try:
        lacking = access_rules.rules_without_reason(archive)
    except SettingsError as error:
        yield str(error)
        return
    if not lacking:
        return
    last = f"; {archive.catalogue.name} has its last state" if catalogue.file(name) else ""
    missing = "it is missing" if not archive.access_reasons.exists() else "it lacks reasons"
    ids = sorted({rule.id for rule in lacking})
    more = f" and {len(ids) - _MOST_NAMED} more" * (len(ids) > _MOST_NAMED)
    yield f"{name}: {missing}, nobody knows why {', '.join(ids[:_MOST_NAMED])}{more} were withheld{last}"


#: Most rules that a finding names.
_MOST_NAMED = 10


def _should_have_one(archive: Archive) -> bool:
    return directory.layout_of(archive.root) >= directory.WITH_CATALOGUE and any(archive.reports.glob("*/summary.json"))


def _feed(seen: _Seen) -> Iterator[str]:
    """Check that each crawl has one line and each line a crawl, in the order of the numbers."""
    tags = seen.tags
    damaged = {domain.name for domain in seen.domains if domain.findings}
    lines = set(seen.feed)
    for tag in sorted(tags.keys() - lines):
        yield f"changes: there is no line for {tag}; `webarc-agent recover` writes it"
    for tag in sorted(lines - tags.keys()):
        if tag.partition("@")[2] not in damaged:
            yield f"changes: {tag} is on no ref of its domain"
    if len(lines) != len(seen.feed):
        yield "changes: a line is there twice"
    published = [tag for tag in seen.feed if tag in tags]
    for earlier, later in pairwise(published):
        if tags[earlier] >= tags[later]:
            yield f"changes: {later} ({tags[later]}) stands behind {earlier} ({tags[earlier]})"


def _database(archive: Archive, seen: _Seen, quick: bool) -> Iterator[str]:
    """Check that webarc.db exists, and that SQLite finds no error in it."""
    if not archive.database.exists():
        if seen.tags:
            yield "webarc.db: it is missing; `webarc-agent recover` rebuilds it"
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
    for held, in_database in ((domain.current, current), (domain.redirects, led)):
        if held is None:
            continue  # not all of them were checked
        wrong = sorted(name for name in held.keys() | in_database.keys() if held.get(name) != in_database.get(name))
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
            yield f"{name}: it is damaged; the next mount or crawl commits what can be read of it"
        for record in records:
            place = record.addition.place
            domain = domains.get(place.domain)
            if domain is None:
                yield f"{name}: addition {record.number} is for {place.domain}, which is not there"
                continue
            if place.domain not in marks:
                marks[place.domain] = commit_additions.marks(domain.store)
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
                if free and job_folder.has_begun(folder):
                    job_folder.check(folder)
        except WebarcError as error:
            yield f"jobs/{folder.name}: {error}"
