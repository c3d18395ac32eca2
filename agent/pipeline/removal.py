"""Decides which ARCs a crawl removes, and whether it may remove any (/Cr-14.2/).

An ARC is removed if the publication's last complete crawl saw it, this crawl did not see it, and no other publication
on the domain contains it. A crawl that found much less than the last one removes nothing; nor does an incomplete one.
Each domain is judged for itself. One that only has resources of pages may lose most of them: pages change what they
need.

The part of a domain's tree that a publication saw, the tree behind refs/publications, is made here, too. Folders that
the publication saw completely are the tree objects of main. So the only publication of a host costs no object, and one
that saw a part costs the folders above that part.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agent.pipeline.domain_run import DomainRun, TreeReader
from webarcfs.archive.git.repository import PUBLICATIONS, Commit, Repository, TreeEntry
from webarcfs.archive.git.tree_stream import FILE, FOLDER
from webarcfs.archive.history.versions import leads_to_arcs, only_resources
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.url_lists import REDIRECTS
from webarcfs.archive.system import files

# == seen tree ========================================================================================================


_NOTES = "webarc-seen.json"
_AT_ONCE = 1000
#: Commits among which a publication's last complete crawl is looked for.
_LOOKED_BACK = 1000


def subset(store: Repository, tree: str, arcs: Iterator[tuple[str, bool]], redirects: TreeEntry | None = None) -> str:
    """Write the tree that contains only these ARCs of `tree`, and the lists of `redirects`; return its id.

    `arcs` yields (path, whether its folder contains folders), children directly after their folder. ARCs that are not
    in `tree` are ignored.
    """
    cursor = _Cursor(arcs)
    return _subset(store, tree, "", False, cursor, redirects) or store.write_tree([])


@dataclass(frozen=True, slots=True)
class SeenTree:
    """The part of a tree that a publication saw, and its number of ARCs."""

    tree: str
    arcs: int


def seen_part(
    store: Repository,
    publication: str,
    tree: str,
    names: Iterable[str],
    arcs: Callable[[], Iterator[tuple[str, bool]]],
    *,
    redirects: TreeEntry | None = None,
) -> SeenTree:
    """Return the part of `tree` that `publication` saw: the ARCs `names`, each once, in any order; the rest as above.

    The same ARCs of the same tree give the same part, so the last result is stored in the repository, in a file that
    may be lost. For an unchanged site no tree is read. `names` in another order only lose this saving.
    """
    lists = redirects.oid if redirects is not None else ""
    digest, count, left = hashlib.sha256(f"{tree}{lists}".encode()), 0, iter(names)
    while some := list(islice(left, _AT_ONCE)):
        digest.update(os.fsencode("\0".join(some)) + b"\0")
        count += len(some)
    question = digest.hexdigest()
    notes = _notes(store)
    noted = notes.get(publication)
    if noted == [question, store.ref(PUBLICATIONS + publication)]:
        return SeenTree(noted[1], count)
    part = subset(store, tree, arcs(), redirects)
    with suppress(OSError):  # it only saves time
        files.write_json(store.path / _NOTES, notes | {publication: [question, part]}, durable=False)
    return SeenTree(part, count)


@dataclass(frozen=True, slots=True)
class CrawlBefore:
    """The publication's crawl before this one: the tree that it saw, None where that is not known or there is none.

    `is_newest`: no other publication was crawled since. `is_whole`: it saw all of its state.
    """

    tree: str | None = None
    is_newest: bool = False
    is_whole: bool = False


def crawl_before(
    store: Repository, base: Commit | None, publication: str, *, only_complete: bool = False
) -> CrawlBefore:
    """What a publication saw in its newest crawl at or below the state `base`, in the newest complete one if wanted.

    The commits of layout 1 do not say it: of those it is the whole state where no other publication ever published on
    the domain, else the tree behind refs/publications.
    """
    history = (commit for commit in store.history(base.oid if base else None) if commit.message.is_crawl)
    is_newest = True
    for commit in history:
        if commit.message.publication != publication:
            is_newest = False
        elif only_complete and not commit.message.complete:
            continue
        elif commit.message.job:
            return CrawlBefore(commit.message.seen or commit.tree, is_newest, not commit.message.seen)
        elif is_newest and all(older.message.publication == publication for older in history):
            return CrawlBefore(commit.tree, is_newest, True)
        else:
            return CrawlBefore(store.ref(PUBLICATIONS + publication), is_newest, False)
    return CrawlBefore()


def _notes(store: Repository) -> dict[str, Any]:
    try:
        return files.read_json(store.path / _NOTES) or {}
    except (Damaged, OSError):
        return {}


class _Cursor:
    """The next ARC of an iterator."""

    def __init__(self, arcs: Iterator[tuple[str, bool]]) -> None:
        self._arcs = arcs
        self.path: str | None = None
        self.nested = False
        self.advance()

    def advance(self) -> None:
        self.path, self.nested = next(self._arcs, (None, False))

    def inside(self, prefix: str) -> bool:
        """Return whether the next ARC is below `prefix` (which ends in `/`, or is empty)."""
        return self.path is not None and self.path.startswith(prefix)


def _subset(  # noqa: PLR0917 # a recursion
    store: Repository, tree: str, prefix: str, is_seen_arc: bool, cursor: _Cursor, redirects: TreeEntry | None = None
) -> str | None:
    """Return the seen part of the folder `prefix`, with `redirects`; None if nothing in it was seen."""
    whole = store.names(tree)
    part, same = _Part(), True
    if is_seen_arc:
        for child in store.each(tree):
            if not child.is_tree or not leads_to_arcs(store, child.oid):
                part.add(child)
    if redirects is not None:
        part.add(redirects)
        same = whole.find(REDIRECTS) == redirects
    while cursor.inside(prefix):
        name = str(cursor.path)[len(prefix) :].partition("/")[0]
        entry = whole.find(name)
        inner = _child(store, entry, f"{prefix}{name}", cursor)
        if inner is not None:
            part.add(TreeEntry(name, inner, True))
            same = same and entry is not None and entry.oid == inner
    if same and len(part) == len(whole):
        return tree
    return store.write_lines(part.lines()) if len(part) else None


class _Part:
    """The entries of a folder that are kept; there may be hundreds of thousands."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, entry: TreeEntry) -> None:
        """Add an entry; each name once."""
        # git's order: folders are sorted as if their names ended in a slash. No name contains a zero byte.
        name = os.fsencode(entry.name)
        self._rows.append(b"%s%s\0%s" % (name, b"/" if entry.is_tree else b"", bytes.fromhex(entry.oid)))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of git's tree object, in its order."""
        self._rows.sort()
        for row in self._rows:
            name, _, oid = row.partition(b"\0")
            yield b"%s %s\0%s" % ((FOLDER, name[:-1], oid) if name.endswith(b"/") else (FILE, name, oid))


def _child(store: Repository, entry: TreeEntry | None, path: str, cursor: _Cursor) -> str | None:
    """Return the seen part of one folder; move the cursor past all ARCs in it."""
    is_arc = cursor.path == path
    nested = cursor.nested
    if is_arc:
        cursor.advance()
    inner = f"{path}/"
    if entry is None or not entry.is_tree:
        while cursor.inside(inner):
            cursor.advance()
        return None
    if is_arc and not nested and not cursor.inside(inner):
        return entry.oid
    return _subset(store, entry.oid, inner, is_arc, cursor)


# == removal ==========================================================================================================


#: How the reason begins where a crawl found too little of a domain to be believed.
TOO_FEW = "found"


@dataclass(frozen=True, slots=True)
class RemovalVerdict:
    """The ARCs that a complete crawl may remove. `complete` is false if too little was found, with the `reason`."""

    complete: bool
    removed: list[str] = field(default_factory=list)
    reason: str = ""


def removed_arcs(
    run: DomainRun, last: str | None, seen: SeenTree, fetched: int, listed: Iterable[str] = ()
) -> RemovalVerdict:
    """Return the verdict on a crawl that saw `seen`, of which it fetched `fetched` ARCs, and saw `last` before.

    `listed` are ARCs that are gone as well, and are not in `last`, since the crawl before knew them by sitemaps alone.
    """
    store = run.store
    if last is None:
        return RemovalVerdict(True)
    gone, new = _compare(store, last, seen.tree)
    # The number of ARCs in the last complete crawl: this crawl's, minus the new, plus the gone. No tree is walked.
    before = seen.arcs - new + len(gone)
    is_too_few = fetched < run.job.settings.min_share * before and not run.job.accept_shrink
    # A domain that had pages, and of which only an image is needed now, is one whose links broke.
    if is_too_few and not (run.is_resource and had_no_pages(store, run.base, run.job.publication.name, last)):
        reason = (
            f"{TOO_FEW} {fetched} of the {before} ARCs that the last complete crawl saw; nothing was removed "
            f"(--accept-shrink accepts it)"
        )
        return RemovalVerdict(False, reason=reason)
    held = store.refs(PUBLICATIONS).items()
    others = [TreeReader(store, oid) for name, oid in held if name != run.job.publication.name]
    arcs_gone = dict.fromkeys([*gone, *listed])
    return RemovalVerdict(True, [arc for arc in arcs_gone if not any(_holds(other, arc) for other in others)])


def had_no_pages(store: Repository, base: Commit | None, publication: str, tree: str) -> bool:
    """Return whether a publication's last complete crawl at or below `base`, which saw `tree`, had no page of a domain.

    Another publication may have made pages of the documents since; then its commit tells.
    """
    if only_resources(store, tree):
        return True
    commits = islice(store.history(base.oid if base else None), _LOOKED_BACK)
    own = (commit.message for commit in commits if commit.message.is_crawl and commit.message.complete)
    last = next((message for message in own if message.publication == publication), None)
    return last is not None and not last.has_pages


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
