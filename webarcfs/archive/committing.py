"""Additions become commits: what the logs of all mounts hold for a domain, exactly once (DESIGN.md section 5).

A mark in the repository (`refs/additions/<log>`, a blob with a number) says how far a log is committed; it moves in one
transaction with main and the commitTag's ref. So whoever comes after a crash, at any point, finds each addition either
committed and marked, or neither. Objects are made before the domain's lock is taken, which is held for that transaction
only. Locks, in this order: committing, the domain's, and none inside.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from webarcfs.archive import locks, replaying
from webarcfs.archive.directory import Archive
from webarcfs.archive.durable import sync_folder
from webarcfs.archive.errors import Busy
from webarcfs.archive.logs import Log, all_logs
from webarcfs.archive.marks import marks, moved
from webarcfs.archive.pace import Cost
from webarcfs.archive.plan import Committed, Dropped, Plan, Waiting, planned
from webarcfs.archive.store import MAIN, RefUpdate, Store

#: How often a commit is prepared anew, since another one came first, before all is done under the domain's lock.
TRIES = 3
__all__ = ["Committed", "Dropped", "commit_additions", "fold_in", "replay"]

_log = logging.getLogger(__name__)


def commit_additions(archive: Archive, domain: str) -> Committed:
    """Commit what is pending for a domain in the logs of all mounts, living or dead. Takes the domain's locks.

    Raises OSError on a full disk, Damaged when the repository cannot be used; then nothing has happened.
    """
    begun = time.monotonic()
    store = Store(archive.repository(domain))
    with locks.exclusive(archive.committing_lock(domain)):
        for _ in range(TRIES):
            done = _try(archive, store, domain)
            if done is not None:
                break
        else:
            with locks.Turnstile(archive.lock(domain)).exclusive():
                done = fold_in(archive, store, domain)
    return replace(done, cost=replace(done.cost, seconds=time.monotonic() - begun))


def fold_in(archive: Archive, store: Store, domain: str) -> Committed:
    """The same for a caller who holds the domain's lock alone: a publication, right before its swap."""
    logs, waiting = pending(archive, store, domain)
    plan = planned(store, waiting)
    updates = _updates(archive, store, plan, logs, waiting)
    if updates:
        with plan.pack.stored():
            store.update_refs(updates)
    return _done(domain, plan, waiting)


def _try(archive: Archive, store: Store, domain: str) -> Committed | None:
    """Commit what is pending; None when something else was committed meanwhile."""
    logs, waiting = pending(archive, store, domain)
    plan = planned(store, waiting)
    updates = _updates(archive, store, plan, logs, waiting)
    if updates:
        with plan.pack.stored(), locks.Turnstile(archive.lock(domain)).exclusive():
            # Now no addition is being confirmed; one whose sync failed was taken back.
            if any(log.was_cut() for log in logs):
                return None
            try:
                store.update_refs(updates)
            except Busy:
                return None
    return _done(domain, plan, waiting)


def replay(archive: Archive) -> list[Committed]:
    """Commit what dead mounts left, and remove their logs; mounts and agents call it when they start.

    It raises nothing for what is wrong with a log or a repository: that is logged, and left for the next time.
    """
    return replaying.replay(archive, commit_additions)


def pending(archive: Archive, store: Store, domain: str) -> tuple[list[Log], Waiting]:
    """All logs, and what they hold for a domain beyond their marks."""
    known = marks(store)
    logs, found = [], []
    for log in all_logs(archive):
        try:
            records = log.more() or []
        except FileNotFoundError:
            continue  # git has all of it, and its owner removed it
        logs.append(log)
        for start, end in log.damage:
            _log.error("%s is damaged: bytes %d to %d cannot be read", log.path, start, end)
        mark = known.get(log.id, 0)
        found += [
            (log, record) for record in records if record.addition.place.domain == domain and record.number > mark
        ]
    return logs, Waiting(tuple(found), known)


def _updates(archive: Archive, store: Store, plan: Plan, logs: list[Log], waiting: Waiting) -> list[RefUpdate]:
    """The transaction: main, the commitTag, the marks; and marks of logs that are gone, for good."""
    updates = []
    if plan.head is not None and plan.commits:
        tag = plan.head.message.tag.ref
        updates = [RefUpdate(MAIN, plan.commits[-1], plan.head.oid), RefUpdate(tag, plan.commits[-1], store.ref(tag))]
    # From where they were when the logs were read: what a publication took in meanwhile is not done again.
    updates += [moved(log, waiting.marks.get(log), blob) for log, blob in plan.marks.items()]
    orphans = waiting.marks.keys() - {log.id for log in logs}
    if orphans:
        # Their removal must be on disk first, or a log might come back without its mark.
        sync_folder(archive.journal)
        left = {log.id for log in all_logs(archive)}
        gone = sorted(orphans - left)
        updates += [moved(name, waiting.marks[name], None) for name in gone]
    return updates


def _done(domain: str, plan: Plan, waiting: Waiting) -> Committed:
    for each in plan.dropped:
        place = each.addition.place
        _log.warning("/%s/%s: an addition went: %s (%s)", place.domain, place.arc, each.reason, each.log)
    cost = Cost(0.0, plan.pack.shared_bytes, len(waiting.found) - len(plan.dropped))
    return Committed(domain, dict(waiting.marks) | plan.upto, plan.dropped, tuple(plan.commits), cost)
