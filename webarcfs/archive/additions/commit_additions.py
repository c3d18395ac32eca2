"""Commits the additions that the logs of all mounts hold for a domain, each exactly once.

The commit names the logs and the numbers that it completed, and main moves to it in one step; so after a crash every
addition is either committed and recorded, or neither. Afterwards, `refs/additions/<log>`, a blob with a number, repeats
this progress and follows main: later crawls hide that commit, and the search for it stays short. Objects are made in a
pack before the domain's lock is taken, which is held for moving main only. Locks, in this order: committing, the
domain's; none inside.

Additions are grouped into one commit for each author, as far as their order allows. A commit rewrites the trees above
the ARCs; so authors that alternate must not cause a commit for each addition.

A log of a dead mount is replayed: the first process commits it once, and removes it. A log is dead when no process
holds its lock. Unreadable parts are reported and set aside, never deleted; a log of a newer version of this program is
left alone. The provisional files of a dead mount have settled: nobody can change them any more.

The cost of a commit stretches the interval until the next one. Each commit rewrites the trees above the ARCs, 2 MB for
a folder of 60,000 ARCs, whether it has one addition or thousands. So after an expensive commit, the next waits until
its additions weigh as much as those trees, or for long.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from webarcfs.archive.additions.journal import DRAFT
from webarcfs.archive.additions.journal_log import (
    SET_ASIDE,
    SUFFIX,
    LogReader,
    LogRecord,
    all_logs,
    journal_of,
    provisional_logs,
    take_from_dead,
)
from webarcfs.archive.additions.placement import AdditionTree
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, Commit, RefUpdate, Repository
from webarcfs.archive.git.writing import Pack
from webarcfs.archive.history import sequence
from webarcfs.archive.model.additions import (
    AddFile,
    Addition,
    AddNodes,
    Author,
    Committed,
    Cost,
    Dropped,
    Move,
    Removal,
)
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Busy, Damaged, Exists, NotPermitted, Stale, WebarcError
from webarcfs.archive.model.metadata import COMMITTER, AdditionsMessage, CommitTag, now
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import blob_id, sync_folder

# == progress =========================================================================================================


#: Prefix of the marks' refs.
ADDITIONS = "refs/additions/"


#: Commits that are searched for the newest one of additions. The refs are up to date with all commits before a crawl.
_NEAR = 20


def done(store: Repository, head: str | None, known: Mapping[str, int]) -> dict[str, int]:
    """Return log → the number of its last addition that was committed or dropped below `head`; `known` are the marks.

    Raises Damaged.
    """
    near = (commit.message.done for commit in islice(store.history(head), _NEAR))
    numbers = next((numbers for numbers in near if numbers), {})
    return {log: max(known.get(log, 0), numbers.get(log, 0)) for log in known.keys() | numbers.keys()}


def marks(store: Repository) -> dict[str, int]:
    """Return the same from the refs, which may be behind. Raises Damaged."""
    blobs = {name: store.ref(ADDITIONS + name) for name in sorted(_marked(store))}
    return {name: mark_number(store, blob) for name, blob in blobs.items() if blob is not None}


def mark_body(upto: int) -> bytes:
    """Return the bytes of a mark."""
    return b"%d\n" % upto


def moved(log: str, old: int | None, new: str | None) -> RefUpdate:
    """Return the move of a mark from the number that was read to the blob `new`, or its removal; fails if it moved."""
    return RefUpdate(ADDITIONS + log, new, None if old is None else blob_id(mark_body(old)))


def _marked(store: Repository) -> set[str]:
    # Without `store.refs`, which would read the refs of all crawls for each commit.
    names = {path.name for path in (store.path / ADDITIONS).glob("*") if not path.name.endswith(".lock")}
    try:
        packed = (store.path / "packed-refs").read_text("utf-8", "replace")
    except FileNotFoundError:
        return names
    lines = (line.partition(" ")[2] for line in packed.splitlines()) if ADDITIONS in packed else ()
    return names | {name.removeprefix(ADDITIONS) for name in lines if name.startswith(ADDITIONS)}


def mark_number(store: Repository, blob: str) -> int:
    """Return the number in a mark. Raises Damaged."""
    text = store.read(blob).strip()
    if not text.isdigit():
        raise Damaged(f"{store.path}: the mark {blob} of a log of additions is no number")
    return int(text)


# == batches, pure ====================================================================================================


#: Most additions in one commit: its message has a line for each.
MOST = 20_000


def groups(additions: Sequence[Addition]) -> list[list[int]]:
    """Return the indexes of `additions`, grouped by commit and author; two that touch one name keep their order."""
    commit_groups: list[list[int]] = []
    last: dict[Author, int] = {}
    touched: dict[Hashable, int] = {}
    for index, addition in enumerate(additions):
        names = list(_names(addition))
        earliest = max((touched.get(name, 0) for name in names), default=0)
        number = last.get(addition.author, -1)
        if number < earliest or number < 0 or len(commit_groups[number]) >= MOST:
            number = len(commit_groups)
            commit_groups.append([])
            last[addition.author] = number
        commit_groups[number].append(index)
        touched |= dict.fromkeys(names, number)
    return commit_groups


def newest(additions: Iterable[Addition]) -> dict[int, Addition]:
    """Return the additions to commit, by index: of several versions of a file by one writer, only the last.

    It inherits `replaces` of the first, since git may have that blob and none in between.
    """
    wanted: dict[int, Addition] = {}
    files: dict[Hashable, tuple[int, AddFile]] = {}
    for index, addition in enumerate(additions):
        match addition:
            case AddFile():
                name = addition.place, addition.path
                last = files.get(name)
                if last is not None and addition.replaces == last[1].blob:
                    before = wanted.pop(last[0])
                    assert isinstance(before, AddFile)
                    wanted[index] = replace(addition, replaces=before.replaces)
                else:
                    wanted[index] = addition
                files[name] = index, addition
            case Move():
                files.pop((addition.place, addition.old), None)
                wanted[index] = addition
            case AddNodes():
                files.pop((addition.place, addition.source), None)
                wanted[index] = addition
            case Removal():
                pass  # a log of provisional files is committed as their last states
    return wanted


def _names(addition: Addition) -> Iterator[Hashable]:
    place = addition.place
    match addition:
        case AddFile():
            yield place, addition.path
        case Move():
            yield place, addition.old
            yield place, addition.new
        case AddNodes():
            yield place, "data.xml"
            yield place, addition.source
        case Removal():
            yield place, addition.path


# == plan =============================================================================================================


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pending additions to a domain on `head`, in order; the progress of each log there, and its mark."""

    head: Commit | None
    additions: tuple[tuple[LogReader, LogRecord], ...]
    done: Mapping[str, int]
    marks: Mapping[str, int]


@dataclass(slots=True)
class Plan:
    """Commits on top of `head`, oldest first, and the new marks (log → blob, log → number)."""

    head: Commit | None
    pack: Pack
    commits: list[str] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    upto: dict[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()


def planned(store: Repository, waiting: Waiting) -> Plan:
    """Plan the commits of pending additions. Raises OSError, Damaged when the repository cannot be read."""
    plan = Plan(waiting.head, Pack(store.path))
    plan.upto = {log: number for log, number in waiting.done.items() if number > waiting.marks.get(log, 0)}
    if waiting.additions and plan.head is not None:
        for log, record in waiting.additions:
            if not log.may_change:
                plan.upto[log.id] = max(record.number, plan.upto.get(log.id, 0))
        _plan_commits(store, waiting, plan, plan.head)
    plan.marks = {log: plan.pack.add("blob", mark_body(number)) for log, number in plan.upto.items()}
    return plan


def _plan_commits(store: Repository, waiting: Waiting, plan: Plan, head: Commit) -> None:
    writer = _Writer(store, head, plan)
    additions = [record.addition for _, record in waiting.additions]
    wanted = newest(additions)
    for indexes in groups(additions):
        records = [(index, *waiting.additions[index]) for index in indexes if index in wanted]
        commit = writer.commit([(log, replace(record, addition=wanted[index])) for index, log, record in records])
        plan.commits += [commit] if commit else []
    plan.dropped = tuple(writer.dropped)


class _Writer:
    """Makes the objects of successive commits."""

    def __init__(self, store: Repository, head: Commit, plan: Plan) -> None:
        pack = self._pack = plan.pack
        self._ground = AdditionTree(store, head.tree, lambda document: pack.add("blob", document))
        self._upto = plan.upto
        self._tag = head.message.tag
        self._parent, self._tree = head.oid, head.tree
        self.dropped: list[Dropped] = []

    def commit(self, records: Sequence[tuple[LogReader, LogRecord]]) -> str | None:
        """Make one commit of these additions, all of one author; return its id, None if it changed nothing."""
        placed = [record.addition for log, record in records if self._place(log, record)]
        arcs = {addition.place.arc for addition in placed}
        above = {"/".join(parts[:depth]) for parts in (arc.split("/") for arc in arcs) for depth in range(len(parts))}
        tree = self._ground.tree.write(lambda path, raw: self._store_tree(raw, shared=path in above - arcs))
        if tree == self._tree:
            return None
        last = placed[-1]
        raw = _commit(tree, self._parent, last.author, last.time, _message(self._tag, placed, self._upto))
        self._parent, self._tree = self._pack.add("commit", raw), tree
        return self._parent

    def _place(self, log: LogReader, record: LogRecord) -> bool:
        try:
            addition = record.addition
            self._ground.judge(addition)
            if isinstance(addition, AddFile) and self._add_body(log, record) != addition.blob:
                raise Damaged(f"{addition.path}: its body in the journal is damaged")
            self._ground.place(addition)
        except (WebarcError, FileNotFoundError) as error:
            if isinstance(error, Exists) and self._ground.has(record.addition):
                return False  # its mount wrote it again, since its log was gone
            damaged = not isinstance(error, Stale | Exists | NotPermitted)
            self.dropped.append(Dropped(log.id, record.number, record.addition, str(error), damaged))
            return False
        return True

    def _add_body(self, log: LogReader, record: LogRecord) -> str:
        body = log.body(record)
        return self._pack.add_file(body) if isinstance(body, Path) else self._pack.add("blob", body)

    def _store_tree(self, raw: bytes, *, shared: bool) -> str:
        oid = self._pack.add("tree", raw)
        self._pack.shared_bytes += self._pack.size_of(oid) if shared else 0
        return oid


def _message(tag: CommitTag, placed: Sequence[Addition], upto: Mapping[str, int]) -> str:
    added, renamed = [], []
    for addition in placed:
        arc = addition.place.arc
        match addition:
            case AddFile():
                added.append(f"{arc}/{addition.path}")
            case Move():
                renamed.append((f"{arc}/{addition.old}", f"{arc}/{addition.new}"))
            case _:
                added.append(f"{arc}/{DATA_XML}")
    return str(AdditionsMessage(tag, tuple(dict.fromkeys(added)), renamed, upto))


def _commit(tree: str, parent: str, author: Author, when: int, message: str) -> bytes:
    """Return git's bytes of a commit; times are in CET."""
    name, mail = COMMITTER
    lines = (
        f"tree {tree}",
        f"parent {parent}",
        f"author {_plain(author.name)} <{_plain(author.mail)}> {max(when, 0)} +0100",
        f"committer {name} <{mail}> {int(now().timestamp())} +0100",
        "",
        message,
    )
    return "\n".join(lines).encode("utf-8", "replace")


def _plain(text: str) -> str:
    """Return `text` in the form allowed in a commit's head (git-fast-import(1), "author")."""
    return "".join(char for char in text if char.isprintable() and char not in "<>").strip(" .,:;'\"\\") or "unknown"


# == journal replay ===================================================================================================


#: Commits the pending additions to a domain.
CommitDomain = Callable[[Archive, str], Committed]

#: Seconds, for all logs together, to wait for locks that outlive their owners.
PATIENCE = 2.0

_log = logging.getLogger(__name__)


def replay_logs(archive: Archive, commit: CommitDomain) -> list[Committed]:
    """Commit what dead mounts left, and remove their logs."""
    commits: list[Committed] = []
    if not os.access(archive.journal, os.W_OK):
        return commits  # a read-only user's mount
    until = time.monotonic() + PATIENCE
    _settle(archive, until)
    for log in all_logs(archive):
        fd = take_from_dead(log.path, until)
        if fd is None:
            continue
        try:
            commits += _replay(archive, log, commit)
        except OSError as error:
            _log.error("%s was not replayed, and stays: %s", log.path, error)
        finally:
            os.close(fd)
    with contextlib.suppress(OSError):
        _sweep(archive, until)
    return commits


def _settle(archive: Archive, until: float) -> None:
    """Let the logs of provisional files of dead mounts be committed."""
    for log in provisional_logs(archive):
        fd = take_from_dead(log.path, until)
        if fd is None:
            continue
        try:
            log.path.rename(log.path.with_suffix(SUFFIX))
            sync_folder(archive.journal)
        except OSError as error:
            _log.error("%s was not replayed, and stays: %s", log.path, error)
        finally:
            os.close(fd)


def _replay(archive: Archive, log: LogReader, commit: CommitDomain) -> list[Committed]:
    every = log.more() or []
    records = log.left(every)
    if log.newer:
        _log.error("%s was written by a newer webarcfs, which is needed to take it into the archive", log.path)
        return []
    commits, whole = [], True
    for domain in sorted({record.addition.place.domain for record in records}):
        try:
            commits.append(commit(archive, domain))
            whole = whole and _is_done(archive, domain, log, records)
        except (WebarcError, OSError) as error:
            _log.error("%s: additions to %s were not committed, and stay: %s", log.path, domain, error)
            whole = False
    if whole:
        _remove(log, [record.file for record in every if record.file], damaged=_is_damaged(log, commits))
    return commits


def _is_done(archive: Archive, domain: str, log: LogReader, records: list[LogRecord]) -> bool:
    store = Repository(archive.repository(domain))
    mark = done(store, store.ref(MAIN), marks(store)).get(log.id, 0)
    return all(record.number <= mark for record in records if record.addition.place.domain == domain)


def _is_damaged(log: LogReader, commits: list[Committed]) -> bool:
    """Return whether part of the log could not be read, and must be kept for repair."""
    lost = [dropped for part in commits for dropped in part.dropped if dropped.log == log.id and dropped.damaged]
    spans = [f"bytes {start} to {end}" for start, end in log.damage]
    spans += [f"all after byte {log.end}"] if log.tail == "damaged" else []
    spans += [f"number {dropped.number}: {dropped.reason}" for dropped in lost]
    if spans:
        _log.error(
            "%s is damaged: %s could not be read; the rest is in the archive, and the log is kept as %s",
            log.path,
            ", ".join(spans),
            log.path.with_suffix(SET_ASIDE).name,
        )
    elif log.tail:
        _log.info("%s ends in a record that was never confirmed", log.path)
    return bool(spans)


def _remove(log: LogReader, files: list[str], *, damaged: bool) -> None:
    if damaged:
        log.path.rename(log.path.with_suffix(SET_ASIDE))
    else:
        for file in files:
            (log.bodies / file).unlink(missing_ok=True)
        log.path.unlink(missing_ok=True)
    sync_folder(log.path.parent)


def _sweep(archive: Archive, until: float) -> None:
    """Remove folders of bodies without a log, and files that their dead owner was making."""
    with os.scandir(archive.journal) as listing:
        entries = list(listing)
    # After the folders: a journal makes its log before its folder, so a folder that was seen has its log.
    names = {journal_of(os.path.splitext(name)[0]) for name in os.listdir(archive.journal)}  # noqa: PTH122, PTH208
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and entry.name not in names:
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name.startswith(".") and entry.name.endswith(".new"):
            fd = take_from_dead(archive.journal / entry.name, until)
            if fd is not None:
                (archive.journal / entry.name).unlink(missing_ok=True)
                os.close(fd)
        elif entry.name.startswith(DRAFT):  # a living owner would do the same next
            (archive.journal / entry.name).unlink(missing_ok=True)


# == pacing, pure =====================================================================================================


#: The longest that an interval is stretched, in seconds.
LONGEST = 60.0
#: Bytes that one addition itself adds to git: its blob, its ARC's tree, its line in the commit's message.
OWN_BYTES = 300
#: Trees of this many bytes stretch the interval to the limit.
DEAR = 1 << 20
#: Share of the time for commits of one domain.
SHARE = 0.2


def next_commit(interval: float, last: Cost, ended: float, oldest: float, waiting: int) -> float:
    """Return the time of the next commit; call again when more additions came, which may make it earlier.

    `last` is the cost of the domain's last commit, and `ended` its time; `oldest` is the time at which the first of the
    `waiting` additions was confirmed. All times are of one clock, in seconds.
    """
    rested = ended + last.seconds / SHARE
    if waiting * OWN_BYTES < last.shared_bytes:
        rested = max(rested, ended + LONGEST * min(1.0, last.shared_bytes / DEAR))
    soonest = oldest + interval
    return max(soonest, min(rested, soonest + LONGEST))


# == commit additions =================================================================================================


#: Attempts to prepare a commit, if another one came first, before all is done under the domain's lock.
TRIES = 3
__all__ = ["Committed", "Dropped", "Read", "commit_additions", "fold_in", "replay"]

#: Domain → log → offset in bytes up to which it was read and done for that domain, and the number of its last addition.
Read = dict[str, dict[str, tuple[int, int]]]


def commit_additions(archive: Archive, domain: str, read: Read | None = None) -> Committed:
    """Commit the pending additions to a domain from the logs of all mounts, living or dead. Takes the domain's locks.

    A caller that commits often passes the same `read`, so that committed records are not read again.
    Raises OSError on a full disk, Damaged for an unusable repository; then nothing has happened, or everything except
    the marks, which the next call moves.
    """
    begun = time.monotonic()
    store = Repository(archive.repository(domain))
    with locks.exclusive(archive.committing_lock(domain)):
        for _ in range(TRIES):
            committed = _try(archive, store, domain, {} if read is None else read)
            if committed is not None:
                break
        else:
            with locks.Turnstile(archive.lock(domain)).exclusive():
                committed = fold_in(archive, store, domain)
    return replace(committed, cost=replace(committed.cost, seconds=time.monotonic() - begun))


def fold_in(archive: Archive, store: Repository, domain: str, following: str | None = None) -> Committed:
    """Commit as above for a caller that holds the domain's lock exclusively: a publication, right before its swap.

    `following` is the tree that takes the place of main's. Provisional files of ARCs that it does not have any more are
    committed, too: their last confirmed state belongs to the state before.
    """
    logs, waiting = pending(archive, store, domain, {})
    if following is not None and waiting.head is not None:
        leaving = tuple(_leaving(archive, domain, AdditionTree(store, following)))
        if leaving:
            _log.info("%s: %d additions of pages that are replaced settled before that", domain, len(leaving))
        waiting = replace(waiting, additions=(*waiting.additions, *leaving))
    plan = planned(store, waiting)
    with plan.pack.stored():
        _move(store, _moves(store, plan))
        _follow(archive, store, plan, logs, waiting)
    return _done(domain, plan, waiting, logs)


def _try(archive: Archive, store: Repository, domain: str, read: Read) -> Committed | None:
    """Commit the pending additions; return None if another commit was made meanwhile."""
    logs, waiting = pending(archive, store, domain, read.get(domain, {}))
    plan = planned(store, waiting)
    moves = _moves(store, plan)
    with plan.pack.stored():
        if moves or waiting.additions:
            with locks.Turnstile(archive.lock(domain)).exclusive():
                # Now no addition is being confirmed; one whose sync failed was removed.
                if any(log.was_cut() for log in logs):
                    return None
                try:
                    _move(store, moves)
                except Busy:
                    return None
        _follow(archive, store, plan, logs, waiting)
    committed = _done(domain, plan, waiting, logs)
    read[domain] = {log.id: (log.end, committed.upto.get(log.id, 0)) for log in logs if log.end}
    return committed


def replay(archive: Archive) -> list[Committed]:
    """Commit what dead mounts left, and remove their logs; mounts and agents call it when they start.

    Faults of a log or a repository raise nothing: they are logged, and left for the next time.
    """
    sequence.mend(archive)
    return replay_logs(archive, commit_additions)


def pending(
    archive: Archive, store: Repository, domain: str, read: Mapping[str, tuple[int, int]]
) -> tuple[list[LogReader], Waiting]:
    """Return all logs, and their records for a domain that are not done yet; `read` as in `Read`."""
    head, known = store.head(), marks(store)
    so_far = done(store, head.oid if head else None, known)
    logs, waiting = [], []
    for log in all_logs(archive):
        end, last = read.get(log.id, (0, 0))
        if last <= so_far.get(log.id, 0):
            log.end = end
        try:
            records = log.more()
            if records is None:  # a failed sync was cut off
                log.end = 0
                records = log.more() or []
        except FileNotFoundError:
            continue  # git has all its additions, and its owner removed it
        logs.append(log)
        for start, end in log.damage:
            _log.error("%s is damaged: bytes %d to %d cannot be read", log.path, start, end)
        last = so_far.get(log.id, 0)
        left = log.left(records)
        waiting += [(log, record) for record in left if record.addition.place.domain == domain and record.number > last]
    there = {log.id for log in logs}
    return logs, Waiting(head, tuple(waiting), {log: so_far[log] for log in so_far if log in there}, known)


def _leaving(archive: Archive, domain: str, following: AdditionTree) -> Iterator[tuple[LogReader, LogRecord]]:
    """Yield the provisional files of ARCs that another tree has in another version, or not at all."""
    for log in provisional_logs(archive):
        try:
            records = log.left(log.more() or [])
        except FileNotFoundError:
            continue
        for record in records:
            place = record.addition.place
            if place.domain == domain and not following.has_version(place):
                yield log, record


def _moves(store: Repository, plan: Plan) -> list[RefUpdate]:
    """Return the moves of main and of the commitTag's ref, which a power cut may have left behind."""
    if plan.head is None:
        return []
    tag, newest = plan.head.message.tag.ref, plan.commits[-1] if plan.commits else plan.head.oid
    main = [RefUpdate(MAIN, newest, plan.head.oid)] if plan.commits else []
    target = store.ref(tag)
    return main + ([RefUpdate(tag, newest, target)] if target not in (newest, None) else [])


def _move(store: Repository, moves: list[RefUpdate]) -> None:
    if moves:
        store.update_refs(moves)


def _follow(archive: Archive, store: Repository, plan: Plan, logs: list[LogReader], waiting: Waiting) -> None:
    """Update the marks after main has moved, durably; remove those of logs that no longer exist.

    Not in one transaction with main: after a power cut the disk may have any subset of its refs, and a mark ahead of
    main would lose an addition.
    """
    updates = [moved(log, waiting.marks.get(log), blob) for log, blob in plan.marks.items()]
    orphans = waiting.marks.keys() - {log.id for log in logs}
    if orphans:
        # The logs' removal must be on disk first, or a log might come back without its mark.
        sync_folder(archive.journal)
        left = {log.id for log in all_logs(archive)}
        gone = sorted(orphans - left)
        updates += [moved(name, waiting.marks[name], None) for name in gone]
    with contextlib.suppress(Busy):  # a publication came first: it read the progress from main
        _move(store, updates)


def _done(domain: str, plan: Plan, waiting: Waiting, logs: Sequence[LogReader]) -> Committed:
    for dropped in plan.dropped:
        place = dropped.addition.place
        _log.warning("/%s/%s: an addition went: %s (%s)", place.domain, place.arc, dropped.reason, dropped.log)
    cost = Cost(0.0, plan.pack.shared_bytes, len(waiting.additions) - len(plan.dropped))
    damage = {log.id: tuple(log.damage) for log in logs if log.damage}
    return Committed(domain, dict(waiting.done) | plan.upto, plan.dropped, tuple(plan.commits), cost, damage)
