"""What an import of known files (`--again`) leaves out: the snapshots of its plan that the archive has already.

A snapshot is known if of each of its URLs the archive has the capture that would be published: as a version or a
redirect of that time, or as one that a crawl met unchanged then.
"""

from __future__ import annotations

import json
from itertools import groupby

from agent.frontier.facts import CutOutcome
from agent.frontier.importindex import ImportIndex
from agent.frontier.rows import StoredCapture, StoredCut
from agent.importing.plan.filling import newest_version
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import met_lists, sequence
from webarcfs.archive.index.captures import CaptureIndex
from webarcfs.archive.model.arc_paths import arc_path, places, second_path
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import parse_compact_time

#: Seconds after the time of a snapshot in which the archive may have it: the next free one is taken.
_LATER = 60
_KNOWN: CutOutcome = {"part": None, "known": True, "seconds": {}, "filter_errors": {}}


def leave_out_known(index: ImportIndex, archive: Archive) -> None:
    """Settle the snapshots that the archive has; webarc.db must be synchronised with git."""
    with CaptureIndex(archive.database) as captures:
        for cut in index.cuts():
            if _is_known(index, cut, archive, captures):
                index.set_results(cut, (), json.dumps(_KNOWN))


def _is_known(index: ImportIndex, cut: StoredCut, archive: Archive, captures: CaptureIndex) -> bool:
    groups = groupby(index.captures_of(cut), key=lambda capture: capture.url)
    published = [newest_version(list(rows), complete=False) for _, rows in groups]
    missing = [each for each in published if each.content and not _has_stored(captures, each)]
    if not missing:
        return True
    met = _met(archive, cut)
    return all(any((name, each.time) in met for name in (each.url, *places(each.url))) for each in missing)


def _has_stored(captures: CaptureIndex, capture: StoredCapture) -> bool:
    versions, redirects = captures.at(f"/{arc_path(capture.url)}", f"/{second_path(capture.url)}")
    rows = redirects if capture.target else versions
    return any(row.url == capture.url and row.captured == capture.time for row in rows)


def _met(archive: Archive, cut: StoredCut) -> set[tuple[str, int]]:
    """Return ARC or URL, and time, of what crawls met unchanged that have the time of a snapshot."""
    found: set[tuple[str, int]] = set()
    try:
        store = Repository(archive.repository(cut.domain))
    except NotFound:
        return found
    for time, oid in store.refs(CRAWLS).items():
        if not 0 <= parse_compact_time(time).timestamp() - cut.time <= _LATER:
            continue
        crawl = sequence.crawl_commit(store, oid)
        known = None if crawl is None else met_lists.of_crawl(store, crawl)
        if crawl is not None and known is not None:
            tree = met_lists.seen_tree(crawl)
            met = (*met_lists.met_arcs(store, tree, known), *met_lists.met_redirects(store, tree, known))
            found |= {(name, at.time) for name, at in met if at is not None}
    return found
