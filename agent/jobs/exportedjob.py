"""The import of WARCs that `webarc export` wrote: the same snapshots again, tree by tree, object for object.

First all bodies become objects, then each domain's trees are put together, oldest first; both without a ref. Then the
snapshots are published in the order in which their first archive published them, each as a crawl is: so a reader sees a
snapshot whole or not at all, and after a kill the same command resumes with those that are not there. A snapshot whose
tree is not the one that its record names is not published.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from agent.catalogue.recording import catch_up_records
from agent.importing.exported_trees import (
    Built,
    Intake,
    NamedSnapshot,
    Rows,
    build,
    by_snapshot,
    drop_empty,
    in_order,
    store_forms,
    with_met,
)
from agent.importing.import_sources import Source, chosen
from agent.indexing.recovery import catch_up_domain, catch_up_links
from webarcfs.archive.additions.commit_additions import commit_additions, fold_in
from webarcfs.archive.additions.placement import additions_since
from webarcfs.archive.catalogue.catalogue import Catalogue, captures
from webarcfs.archive.catalogue.record import SYSTEM, RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, MAIN, PUBLICATIONS, SEEN, Commit, RefUpdate, Repository
from webarcfs.archive.history import rendered_forms, sequence
from webarcfs.archive.model.errors import Damaged, Interrupted, NotFound, WebarcError
from webarcfs.archive.model.metadata import COMMITTER, AdditionsMessage, CommitTag, CrawlMessage, parse_compact_time
from webarcfs.archive.system import locks
from webarcfs.archive.system.clocks import Progress, unseen

_log = logging.getLogger(__name__)
#: One such import at a time; no publication has this name.
_LOCK = ".as-exported"
_NUMBERED = re.compile(r"(.*)-(\d{5,})(\.warc(?:\.gz)?)", re.ASCII | re.DOTALL)
_OTHER_TREE = "a snapshot of that time is there already, with another tree"


@dataclass(frozen=True, slots=True)
class MadeAgain:
    """What came of it: snapshots published now, those that were there, and a line for each refused one.

    `faults` are lines on records that could not be read, `remarks` on what else to know.
    """

    published: tuple[CommitTag, ...]
    there: tuple[CommitTag, ...]
    refused: tuple[str, ...]
    faults: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def run(
    archive: Archive,
    files: Sequence[Path],
    *,
    stop: threading.Event | None = None,
    progress: Progress = unseen,
) -> MadeAgain:
    """Import files of one or more exports, in any order: WARC files, WACZ, folders of them.

    Raises UsageError if a path is nothing of that, Damaged if a file cannot be read or no record names a snapshot,
    Interrupted, OSError on a full disk; the same command resumes then.
    """
    busy = "another import of exported files is at work in this archive"
    with locks.exclusive_or_busy(archive.publication_lock(_LOCK), busy), ExitStack() as stack:
        given = chosen(files, archive.log, stack, progress)
        if given.faults:
            raise Damaged("\n".join(given.faults))
        return _Run(archive, given.sources, stop or threading.Event(), progress).all()


@dataclass(frozen=True, slots=True)
class _Ready:
    """A snapshot whose trees are stored."""

    named: NamedSnapshot
    built: Built


class _Run:
    def __init__(self, archive: Archive, files: Sequence[Source], stop: threading.Event, progress: Progress) -> None:
        self._archive = archive
        self._files = files
        self._stop = stop
        self._progress = progress
        self._intake = Intake(archive, stop, lambda snapshot: _standing(archive, snapshot) is True)
        self._touched: set[str] = set()

    def all(self) -> MadeAgain:
        intake, published = self._intake, list[CommitTag]()
        named: dict[str, set[CommitTag]] = defaultdict(set)
        rendered: dict[str, set[str]] = defaultdict(set)
        try:
            with intake:
                self._read()
                ready = sorted(self._built(), key=lambda snapshot: snapshot.named.sequence)
                for snapshot in ready:
                    rendered[snapshot.named.tag.domain] |= snapshot.built.rendered
                store_forms(self._archive, intake.forms.rows(), rendered, intake.fault)
                for number, ready_snapshot in enumerate(ready, 1):
                    self._ask()
                    if self._publish(ready_snapshot):
                        published.append(ready_snapshot.named.tag)
                        named[ready_snapshot.named.tag.domain] |= ready_snapshot.built.stored_by
                    self._progress("publish snapshots", number, len(ready))
        except Interrupted:
            self._tidy()
            self._follow(published)
            raise
        except (WebarcError, OSError):
            with suppress(WebarcError, OSError):  # the first fault is the one to be reported
                self._tidy()
            raise
        self._tidy()
        self._follow(published)
        refused = tuple(f"{tag}: {why}; it was not imported" for tag, why in sorted(intake.refused.items()))
        remarks = [line for domain in sorted(named) if (line := self._unknown(domain, named[domain]))]
        remarks += [line for domain in sorted(rendered) if (line := self._unshown(domain, rendered[domain]))]
        there = tuple(sorted(intake.there))
        return MadeAgain(tuple(published), there, refused, tuple(intake.faults), tuple(remarks))

    def _unknown(self, domain: str, named: set[CommitTag]) -> str:
        """Return a line on snapshots that documents name, and that are not there; empty if all are."""
        store = Repository(self._archive.repository(domain))
        lacking = sorted(tag for tag in named if store.ref(tag.ref) is None)
        if not lacking:
            return ""
        return (
            f"{domain}: documents name {len(lacking)} snapshots that are not here, the first {lacking[0]}; `verify`"
            " will say so, until their export is imported as well"
        )

    def _unshown(self, domain: str, trees: set[str]) -> str:
        """Return a line on what browsers showed that documents name, and that is not there; empty if all is."""
        lacking = rendered_forms.lacking(Repository(self._archive.repository(domain)), trees)
        if not lacking:
            return ""
        return f"{domain}: what browsers showed of {len(lacking)} pages is not in the files, the first {lacking[0]}"

    def _tidy(self) -> None:
        """Remove the repositories of domains of which nothing was published."""
        for domain in sorted(self._touched | self._intake.touched):
            drop_empty(self._archive, domain)

    def _ask(self) -> None:
        if self._stop.is_set():
            raise Interrupted("stopped; the same command resumes it")

    # -- objects -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        intake, before = self._intake, 0
        whole = sum(source.size for source in self._files)

        def step(taken: int) -> None:
            self._ask()
            self._progress("read (bytes)", before + taken, whole)

        for source in in_order(self._files):
            intake.file(source, step)
            before += source.size
        intake.end()
        if not intake.snapshots and not intake.named:
            hint = "; without --as-exported they are WARC files like any other" if intake.others else ""
            none = f"no record in these files is of a snapshot of `webarc export`{hint}"
            raise Damaged("\n".join([none, *intake.faults]))

    def _built(self) -> Iterator[_Ready]:
        """Yield the snapshots whose trees could be made; note why the others could not."""
        intake = self._intake
        store: Repository | None = None
        trees: set[str] = set()
        for number, (tag, own) in enumerate(by_snapshot(intake.rows.rows(), intake.snapshots), 1):
            self._progress("make trees", number, max(len(intake.snapshots), number))
            snapshot = intake.snapshots.get(tag)
            if snapshot is None:
                intake.refused.setdefault(tag, f"the record that names it is missing{self._hint()}")
            elif tag not in intake.there and tag not in intake.refused:
                if store is None or store.path != self._archive.repository(tag.domain):
                    store, trees = self._store(tag.domain), set()
                if (ready := self._one(store, snapshot, own, trees)) is not None:
                    trees.add(ready.built.tree)
                    yield ready

    def _store(self, domain: str) -> Repository:
        """Return the repository of a domain; it may be that no record had a body."""
        self._touched.add(domain)
        path = self._archive.repository(domain)
        return Repository(path) if path.is_dir() else Repository.create(path)

    def _one(self, store: Repository, snapshot: NamedSnapshot, own: Rows, trees: Collection[str]) -> _Ready | None:
        tag, refused = snapshot.tag, self._intake.refused
        if _standing(self._archive, snapshot) is False:
            refused[tag] = _OTHER_TREE
            return None
        before = snapshot.before or None
        if before is not None and before not in trees and before not in _trees_of(store):
            refused[tag] = f"it is told by its differences to the tree {before}, which is not there{self._hint()}"
            return None
        try:
            with locks.exclusive_until(self._archive.publishing_lock(tag.domain), self._stop):
                built = build(store, snapshot, before, own, self._ask)
                return _Ready(snapshot, with_met(store, snapshot, built, self._intake.lists.get(tag, "")))
        except Damaged as error:
            refused[tag] = f"{error}{self._hint()}"
            return None

    def _hint(self) -> str:
        """Return what may be the reason of something missing."""
        lines = [f"{name} is not among the files" for name in missing_numbers(self._files)]
        if self._intake.broken:
            lines.append(f"{self._intake.broken} records could not be read")
        return f" ({'; '.join(lines)})" if lines else ""

    # -- publishing ----------------------------------------------------------------------------------------------

    def _publish(self, ready: _Ready) -> bool:
        """Publish a snapshot; return whether it was not there yet."""
        archive, tag = self._archive, ready.named.tag
        with locks.exclusive_until(archive.publishing_lock(tag.domain), self._stop):
            if (standing := _standing(archive, ready.named)) is not None:
                (self._intake.there.add(tag) if standing else self._intake.refused.setdefault(tag, _OTHER_TREE))
                return False
            commit_additions(archive, tag.domain)  # so that little work is left under the lock
            store = Repository(archive.repository(tag.domain))
            with locks.Turnstile(archive.lock(tag.domain)).exclusive(), sequence.publication_slot(archive, tag) as turn:
                following = None if _is_older(store, tag) else ready.built.tree
                fold_in(archive, store, tag.domain, following=following)
                directory.raise_layout(archive)
                store.update_refs(_updates(store, ready, turn.number))
                turn.publish()
        return True

    def _follow(self, published: Sequence[CommitTag]) -> None:
        """Bring what derives from git in step; after a kill the next start does."""
        for domain in sorted({tag.domain for tag in published}):
            with locks.exclusive(self._archive.publishing_lock(domain)):
                catch_up_domain(self._archive, domain)
            catch_up_links(self._archive, domain, self._stop.is_set)
        if published or self._intake.there:
            snapshots = self._intake.snapshots
            late = [tag for tag in (*published, *self._intake.there) if not snapshots[tag].patch]
            try:
                _complete_records(self._archive, late)
            except (WebarcError, OSError) as error:  # as anywhere: a record never fails what was published
                _log.error("the records were not completed, the same command tries again: %s", error)
            catch_up_records(self._archive)


def _complete_records(archive: Archive, tags: Sequence[CommitTag]) -> None:
    """Give the parts among these snapshots to the records that lack them: of jobs whose other parts came before.

    None of them is of a patch: `catch_up_records` adds those, to what the crawl has by then. A released record takes
    none that was held: nobody has looked at it.
    """
    catalogue = Catalogue(archive)
    for capture in captures(archive, tags):
        if not catalogue.has(capture.job):
            continue
        record, blob = catalogue.read(capture.job)
        new = [part for part in capture.parts if all(part.tag != other.tag for other in record.parts)]
        if any(part.is_held for part in new) and record.state is RecordState.RELEASED:
            _log.warning("%s is released, and lacks snapshots that were held: they stay closed", record.id)
        elif new:
            whole = record.complete and all(part.complete for part in new)
            more = replace(record, parts=(*record.parts, *new), complete=whole)
            more = more.with_event("captured", SYSTEM, ", ".join(str(part.tag) for part in new))
            catalogue.save([more], SYSTEM, f"{record.id}: {len(new)} parts more", expected={record.id: blob})


def _standing(archive: Archive, snapshot: NamedSnapshot) -> bool | None:
    """Return whether a snapshot that is there has the named tree, additions made here aside; None if none is there."""
    try:
        store = Repository(archive.repository(snapshot.tag.domain))
    except NotFound:
        return None
    target = store.ref(snapshot.tag.ref)
    if target is None:
        return None
    crawl = sequence.crawl_commit(store, target)
    return snapshot.tree in {store.commit(target).tree, crawl.tree if crawl is not None else ""}


def _trees_of(store: Repository) -> Iterator[str]:
    """Yield the trees of the snapshots that are there, with and without additions, and those of refs/seen."""
    for target in store.refs(CRAWLS).values():
        yield store.commit(target).tree
        crawl = sequence.crawl_commit(store, target)
        if crawl is not None:
            yield crawl.tree
    yield from store.refs(SEEN).values()


def _times(store: Repository) -> dict[datetime, str]:
    """Return the snapshots of a domain by time."""
    return {parse_compact_time(name): oid for name, oid in store.refs(CRAWLS).items()}


def _is_older(store: Repository, tag: CommitTag) -> bool:
    """Return whether there is a newer snapshot, so that the present stays as it is."""
    return any(time > tag.crawl_time for time in _times(store))


def _updates(store: Repository, ready: _Ready, number: int) -> list[RefUpdate]:
    """Store the commit of a snapshot, and that of additions which continue it; return what moves."""
    named, built, tag = ready.named, ready.built, ready.named.tag
    times = _times(store)
    older = _is_older(store, tag)
    main = store.head()
    last = max((time for time in times if time < tag.crawl_time), default=None)
    parent = (None if last is None else times[last]) if older else main.oid if main is not None else None
    message = CrawlMessage(
        tag,
        named.publication,
        named.complete,
        number,
        sources=named.sources,
        ended=named.ended,
        imported_by=named.imported_by,
        job=named.job,
        held=named.held,
        seen=built.seen,
        errors=named.errors,
        copies=named.copies,
        resources=named.resources,
        secrets=named.secrets,
        met=built.met,
        patch=named.patch,
    )
    newest = store.write_commit(built.tree, [parent] if parent else [], str(message), COMMITTER, named.time)
    if not older and main is not None:
        newest = _with_additions(store, main, Commit(newest, built.tree, (), main.message, named.time), tag)
    updates = [RefUpdate(tag.ref, newest, None)]
    if built.seen:
        updates.append(RefUpdate(tag.seen_ref, built.seen, None))
    if built.met:
        updates.append(RefUpdate(tag.met_ref, built.met, None))
    if not older:
        updates.append(RefUpdate(MAIN, newest, main.oid if main is not None else None))
    publication = PUBLICATIONS + named.publication
    saw, before = built.seen or built.tree, store.ref(publication)
    later = (oid for time, oid in times.items() if time > tag.crawl_time)
    if named.complete and saw != before and not any(_is_complete(store, oid, named.publication) for oid in later):
        updates.append(RefUpdate(publication, saw, before))
    return updates


def _with_additions(store: Repository, main: Commit, crawl: Commit, tag: CommitTag) -> str:
    """Return the snapshot's commit, or that of the additions which users made here meanwhile: they continue it."""
    made_on = sequence.crawl_commit(store, main.oid)
    if made_on is None or made_on.tree == main.tree:
        return crawl.oid
    tree = additions_since(store, made_on.tree, main.tree, crawl.tree)
    if tree == crawl.tree:
        return crawl.oid
    added = [difference.path for difference in store.differences(crawl.tree, tree) if difference.new is not None]
    return store.write_commit(tree, [crawl.oid], str(AdditionsMessage(tag, added)), COMMITTER, crawl.time)


def _is_complete(store: Repository, target: str, publication: str) -> bool:
    crawl = sequence.crawl_commit(store, target)
    return crawl is not None and crawl.message.complete and crawl.message.publication == publication


def missing_numbers(files: Sequence[Source]) -> list[str]:
    """Return the names of files that are missing in a row of numbered ones, as far as their numbers show."""
    rows: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for source in files:
        if match := _NUMBERED.fullmatch(source.name):
            rows[match[1], match[3], len(match[2])].add(int(match[2]))
    missing = []
    for (stem, ending, width), numbers in sorted(rows.items()):
        gaps = (number for number in range(max(numbers)) if number not in numbers)
        for _, number in zip(range(5), gaps, strict=False):
            missing.append(f"{stem}-{number:0{width}}{ending}")
    return missing
