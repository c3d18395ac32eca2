"""Commits the additions that the logs of all mounts hold for a domain, each exactly once.

The commit that main moves to records the progress of each log, so after a crash every addition is either committed and
recorded, or neither. The refs in refs/additions (progress.py) are updated afterwards. Objects are made before the
domain's lock is taken, which is held for moving main only. Locks, in this order: committing, the domain's; none inside.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from webarcfs.archive.commit import journal_replay
from webarcfs.archive.commit.placement import AdditionTree
from webarcfs.archive.commit.plan import Plan, Waiting, planned
from webarcfs.archive.commit.progress import done, marks, moved
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, RefUpdate, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import LogReader, all_logs, provisional_logs
from webarcfs.archive.model.committed import Committed, Cost, Dropped
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.system import locks
from webarcfs.archive.system.fsync import sync_folder

#: Attempts to prepare a commit, if another one came first, before all is done under the domain's lock.
TRIES = 3
__all__ = ["Committed", "Dropped", "Read", "commit_additions", "fold_in", "replay"]

#: Domain → log → offset in bytes up to which it was read and done for that domain, and the number of its last addition.
Read = dict[str, dict[str, tuple[int, int]]]

_log = logging.getLogger(__name__)


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
        waiting = replace(waiting, found=(*waiting.found, *leaving))
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
        if moves or waiting.found:
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
    return journal_replay.replay(archive, commit_additions)


def pending(
    archive: Archive, store: Repository, domain: str, read: Mapping[str, tuple[int, int]]
) -> tuple[list[LogReader], Waiting]:
    """Return all logs, and their records for a domain that are not done yet; `read` as in `Read`."""
    head, known = store.head(), marks(store)
    so_far = done(store, head.oid if head else None, known)
    logs, found = [], []
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
        found += [(log, record) for record in left if record.addition.place.domain == domain and record.number > last]
    there = {log.id for log in logs}
    return logs, Waiting(head, tuple(found), {log: so_far[log] for log in so_far if log in there}, known)


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
    for each in plan.dropped:
        place = each.addition.place
        _log.warning("/%s/%s: an addition went: %s (%s)", place.domain, place.arc, each.reason, each.log)
    cost = Cost(0.0, plan.pack.shared_bytes, len(waiting.found) - len(plan.dropped))
    damage = {log.id: tuple(log.damage) for log in logs if log.damage}
    return Committed(domain, dict(waiting.done) | plan.upto, plan.dropped, tuple(plan.commits), cost, damage)
