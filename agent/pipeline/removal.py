"""Decides which ARCs a crawl removes, and whether it may remove any (/Cr-14.2/).

An ARC is removed if the publication's last complete crawl saw it, this crawl did not see it, and no other publication
on the domain contains it. A crawl that found much less than the last one removes nothing.

An incomplete crawl removes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agent.pipeline.domainrun import DomainRun, TreeReader
from agent.pipeline.seentree import SeenTree
from webarcfs.archive.git.repository import PUBLICATIONS, Repository
from webarcfs.archive.history.versions import leads_to_arcs
from webarcfs.archive.model.arc_paths import DATA_XML


@dataclass(frozen=True, slots=True)
class RemovalVerdict:
    """The ARCs that a complete crawl may remove. `complete` is false if too little was found, with the `reason`."""

    complete: bool
    removed: list[str] = field(default_factory=list)
    reason: str = ""


def removed_arcs(run: DomainRun, last: str | None, seen: SeenTree, found: int) -> RemovalVerdict:
    """Return the verdict on a crawl that saw `seen`, of which it fetched `found` ARCs, and saw `last` before."""
    store = run.store
    if last is None:
        return RemovalVerdict(True)
    gone, new = _compare(store, last, seen.tree)
    # The number of ARCs in the last complete crawl: this crawl's, minus the new, plus the gone. No tree is walked.
    before = seen.arcs - new + len(gone)
    if found < run.job.settings.min_share * before and not run.job.accept_shrink:
        reason = (
            f"found {found} of the {before} ARCs that the last complete crawl saw; nothing was removed "
            f"(--accept-shrink accepts it)"
        )
        return RemovalVerdict(False, reason=reason)
    held = store.refs(PUBLICATIONS).items()
    others = [TreeReader(store, oid) for name, oid in held if name != run.job.publication.name]
    return RemovalVerdict(True, [arc for arc in gone if not any(_holds(other, arc) for other in others)])


def without(store: Repository, tree: str, arcs: list[str]) -> str:
    """Return `tree` without the files and additions of these ARCs; ARCs inside them stay."""
    if not arcs:
        return tree
    shelf = TreeReader(store, tree)
    with store.rewriting(tree) as left:
        for arc in arcs:
            for path in own_paths(store, shelf, arc):
                left.remove(path)
        return left.finish()


def _compare(store: Repository, last: str, seen: str) -> tuple[list[str], int]:
    """Return the ARCs of `last` that are not in `seen`, and the number of ARCs in `seen` that are not in `last`."""
    gone, new = [], 0
    for difference in store.differences(last, seen):
        folder, _, name = difference.path.rpartition("/")
        if name != DATA_XML:
            continue
        if difference.new is None:
            gone.append(folder)
        elif difference.old is None:
            new += 1
    return gone, new


def _holds(held: TreeReader, arc: str) -> bool:
    entry = held.find(f"{arc}/{DATA_XML}")
    return entry is not None and not entry.is_tree


def own_files(store: Repository, shelf: TreeReader, arc: str) -> Iterator[tuple[str, str]]:
    """Path and blob of each file of an ARC, also in folders of additions; not of the ARCs inside it."""
    for entry in (shelf.folder(arc) or {}).values():
        path = f"{arc}/{entry.name}"
        if not entry.is_tree:
            yield path, entry.oid
        elif not leads_to_arcs(store, entry.oid):
            yield from store.files(entry.oid, path)


def own_paths(store: Repository, shelf: TreeReader, arc: str) -> Iterator[str]:
    """Yield the files of an ARC, and its folders without other ARCs inside."""
    for entry in (shelf.folder(arc) or {}).values():
        if not entry.is_tree or not leads_to_arcs(store, entry.oid):
            yield f"{arc}/{entry.name}"
