"""Compares documents from snapshot to snapshot by their trees, where equal ones cost nothing, and counts those of one.

Reads git only; a snapshot is the newest commit of its commitTag, additions included. Paths are relative to the domain.
Raises Damaged if the repository cannot be read.

The statistics of a snapshot are documents and bytes by MIME type and by extension.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from webarcfs.archive.document.data_xml import metadata
from webarcfs.archive.git.repository import CRAWLS, Repository, TreeEntry, is_arc
from webarcfs.archive.model.arc_paths import DATA_XML, is_data_file, is_reserved
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import OK, PAGE_ROLE, RESOURCE_ROLE, CommitTag, MetaData, parse_compact_time
from webarcfs.archive.model.url_lists import REDIRECTS

# == versions =========================================================================================================


@dataclass(frozen=True, slots=True)
class ArcTree:
    """An ARC in one tree: its path, its data file and its data.xml (blobs), and the names added to it."""

    path: str
    data: TreeEntry | None
    data_xml: str
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document's change in a snapshot: `what` is added, changed, removed or extended (data nodes, users' files).

    `size` is the new size of the data file in bytes; 0 if it was removed. `files` are the new additions. `status` is
    HTTP's of the new version. `stored` is the snapshot whose crawl stored the version, `captured` the time of the
    server's answer, `certificate` what was wrong with the server's.
    """

    tag: CommitTag
    what: str
    size: int
    files: tuple[str, ...] = ()
    status: int = OK
    stored: CommitTag | None = None
    captured: datetime | None = None
    certificate: str = ""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A document that differs between two trees: added, removed or changed, with its data files before and after.

    `documents` are its data.xml before and after, as far as they differ.
    """

    path: str
    what: str
    old: str | None
    new: str | None
    documents: tuple[str | None, str | None] = (None, None)


def snapshots(store: Repository, domain: str) -> list[tuple[CommitTag, str]]:
    """Return all snapshots of a domain, oldest first, with their commits."""
    refs = ((parse_compact_time(time), oid) for time, oid in store.refs(CRAWLS).items())
    return [(CommitTag(time, domain), oid) for time, oid in sorted(refs)]


def steps(store: Repository, domain: str, arc: str) -> Iterator[ChangedDocument]:
    """Yield the changes of the document at `arc`, oldest first; snapshots without one are skipped."""
    before: dict[str, TreeEntry] = {}
    tree = None
    for tag, oid in snapshots(store, domain):
        entry = store.find(store.commit(oid).tree, arc)
        now = entry.oid if entry is not None and entry.is_tree else None
        if now == tree:
            continue
        tree = now
        after = _own_entries(store, tree)
        step = _step(store, tag, before, after)
        if step is not None:
            yield step
        before = after


def _own_entries(store: Repository, tree: str | None) -> dict[str, TreeEntry]:
    """Return the entries of an ARC, by name, without the ARCs below it; none if it is no ARC."""
    entries = {entry.name: entry for entry in store.entries(tree)} if tree else {}
    if not is_arc(entries.values()):
        return {}
    inner = {name for name, entry in entries.items() if entry.is_tree and leads_to_arcs(store, entry.oid)}
    return {name: entry for name, entry in entries.items() if name not in inner}


def _step(
    store: Repository, tag: CommitTag, before: Mapping[str, TreeEntry], after: Mapping[str, TreeEntry]
) -> ChangedDocument | None:
    old, new = _data(before.values()), _data(after.values())
    size = store.size(new.oid) if new is not None else 0
    came = tuple(sorted(name for name in after.keys() - before.keys() if not is_reserved(name)))
    was, now = _described(store, before), _described(store, after)
    version = () if now is None else (now.status, now.commit_tag, now.capture_time, now.certificate)
    if before and not after:
        return ChangedDocument(tag, "removed", 0)
    if after and not before:
        return ChangedDocument(tag, "added", size, came, *version)
    if (was and was.commit_tag) != (now and now.commit_tag) or old != new:
        return ChangedDocument(tag, "changed", size, came, *version)
    if came or before.get(DATA_XML) != after.get(DATA_XML):
        return ChangedDocument(tag, "extended", size, came, *version)
    return None


def _described(store: Repository, entries: Mapping[str, TreeEntry]) -> MetaData | None:
    """Return the metadata of a version of an ARC, from its data.xml; None without one, and if it is unreadable."""
    return _read(store, entries[DATA_XML].oid) if entries else None


def _read(store: Repository, document: str) -> MetaData | None:
    try:
        return metadata(store.read(document))
    except InvalidDocument:
        return None


def _data(entries: Iterable[TreeEntry]) -> TreeEntry | None:
    return next((entry for entry in entries if not entry.is_tree and is_data_file(entry.name)), None)


def compare(
    store: Repository,
    old: str | None,
    new: str | None,
    below: str = "",
    text_of: Callable[[str], str] = lambda _: "",
) -> Iterator[VersionChange]:
    """Yield documents whose data file differs between two trees, in order of path; `below` limits it to a folder.

    Those whose texts differ are among them: `text_of` returns what identifies the text that a browser showed, by the
    blob of data.xml.
    """
    if below:
        old, new = (_subtree(store, tree, below) for tree in (old, new))
    pending: dict[str, dict[str, str | None]] = {}
    documents: dict[str, tuple[str | None, str | None]] = {}
    for difference in store.differences(old, new, f"{below}/" if below else ""):
        folder, _, name = difference.path.rpartition("/")
        if is_data_file(name):
            pair = pending.setdefault(folder, {"old": None, "new": None})
            pair["old"] = pair["old"] or difference.old
            pair["new"] = pair["new"] or difference.new
        elif name == DATA_XML:
            documents[folder] = difference.old, difference.new
    for path, (was, now) in documents.items():
        if path not in pending and was and now and text_of(was) != text_of(now):
            tree = _subtree(store, new, path.removeprefix(below).strip("/")) if path != below else new
            data = _data(store.entries(tree)) if tree else None
            pending[path] = dict.fromkeys(("old", "new"), None if data is None else data.oid)
    for path, pair in sorted(pending.items()):
        what = "added" if pair["old"] is None else "removed" if pair["new"] is None else "changed"
        yield VersionChange(path, what, pair["old"], pair["new"], documents.get(path, (None, None)))


def _subtree(store: Repository, tree: str | None, path: str) -> str | None:
    entry = store.find(tree, path) if tree else None
    return entry.oid if entry is not None and entry.is_tree else None


def arcs(store: Repository, tree: str, prefix: str = "") -> Iterator[ArcTree]:
    """Yield every ARC of a tree, parents before the ARCs below them."""
    entries = store.entries(tree)
    document = next((entry for entry in entries if entry.is_document), None)
    if document is not None:
        added = tuple(entry.name for entry in entries if not entry.is_tree and not is_reserved(entry.name))
        yield ArcTree(prefix.rstrip("/"), _data(entries), document.oid, added)
    for entry in entries:
        if entry.is_tree and entry.name != REDIRECTS:
            yield from arcs(store, entry.oid, f"{prefix}{entry.name}/")


def leads_to_arcs(store: Repository, tree: str) -> bool:
    """Return whether a folder is an ARC or contains one, at any depth."""
    document = store.names(tree).find(DATA_XML)
    if document is not None and document.is_document:
        return True
    return any(leads_to_arcs(store, entry.oid) for entry in store.each(tree) if entry.is_tree)


def stored_by(store: Repository, tag: CommitTag) -> Iterator[MetaData]:
    """Return the metadata of documents that a snapshot stored a version of, in order of path. Raises NotFound."""
    return (meta for meta in differing(store, tag) if meta.commit_tag == tag)


def differing(store: Repository, tag: CommitTag) -> Iterator[MetaData]:
    """Return the metadata of documents that are others than in the snapshot before, in order of path. Raises NotFound.

    Each names the snapshot that stored it.
    """
    tree = store.snapshot_tree(tag)
    before = [oid for earlier, oid in snapshots(store, tag.domain) if earlier.crawl_time < tag.crawl_time]
    changes = store.differences(store.commit(before[-1]).tree if before else None, tree)
    documents = (change.new for change in changes if change.new is not None and change.path.endswith(f"/{DATA_XML}"))
    return (metadata(store.read(document)) for document in documents)


def described(store: Repository, arc: ArcTree) -> MetaData:
    """Return the metadata of an ARC, from its data.xml."""
    return metadata(store.read(arc.data_xml))


#: Documents by which it is told whether a tree has pages.
_LOOKED_AT = 20


def only_resources(store: Repository, tree: str) -> bool:
    """Return whether a tree has no page, by the first of its documents, only what pages of other hosts needed.

    A document without a readable data.xml says nothing.
    """
    first = (_read(store, arc.data_xml) for arc in islice(arcs(store, tree), _LOOKED_AT))
    roles = {meta.role for meta in first if meta is not None}
    return roles == {RESOURCE_ROLE}


# == statistics =======================================================================================================


#: The type or extension of a document without one.
NONE = "(none)"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Documents and bytes; each kind of count by MIME type and by extension (of the data file, without its dot).

    Error pages are counted by themselves, and are no documents here. `resources` is the number of documents, and their
    bytes, that only pages of other hosts needed.
    """

    documents: int = 0
    bytes: int = 0
    types: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    extensions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    error_pages: int = 0
    resources: tuple[int, int] = (0, 0)

    def as_table(self) -> dict[str, object]:
        """For JSON: `{"documents": n, "bytes": n, "types": {"text/html": {"documents": n, "bytes": n}, …}, …}`."""
        tables = {"types": self.types, "extensions": self.extensions}
        parts = {
            name: {key: {"documents": count, "bytes": size} for key, (count, size) in table.items()}
            for name, table in tables.items()
        }
        resources = dict(zip(("documents", "bytes"), self.resources, strict=True))
        whole = {"documents": self.documents, "bytes": self.bytes, "error_pages": self.error_pages}
        return {**whole, "resources": resources, **parts}


def statistics(store: Repository, tree: str, roles: Set[str] = frozenset({PAGE_ROLE})) -> Statistics:
    """Count a snapshot's documents of some roles; bodies are not read.

    One without a readable data.xml has no type and counts as a page, as any that does not say its role.
    """
    counts: dict[str, Counter[str]] = {"types": Counter(), "extensions": Counter()}
    sizes: dict[str, Counter[str]] = {"types": Counter(), "extensions": Counter()}
    error_pages = resources = resource_bytes = 0
    for arc in arcs(store, tree):
        if arc.data is None:
            continue
        size = store.size(arc.data.oid)
        meta = _read(store, arc.data_xml)
        if meta is not None and meta.is_error_page:
            error_pages += 1
            continue
        role = PAGE_ROLE if meta is None else meta.role
        if role == RESOURCE_ROLE:
            resources, resource_bytes = resources + 1, resource_bytes + size
        if role not in roles:
            continue
        kind = (meta.mime_type if meta is not None else "") or NONE
        # data.xml is the ARC's own, so an .xml body is data.orig.xml: the last part is the extension.
        extension = arc.data.name.rpartition(".")[2] if "." in arc.data.name else NONE
        for table, key in (("types", kind), ("extensions", extension)):
            counts[table][key] += 1
            sizes[table][key] += size
    joined = {
        table: {key: (count, sizes[table][key]) for key, count in counts[table].most_common()} for table in counts
    }
    return Statistics(
        documents=sum(counts["types"].values()),
        bytes=sum(sizes["types"].values()),
        types=joined["types"],
        extensions=joined["extensions"],
        error_pages=error_pages,
        resources=(resources, resource_bytes),
    )
