"""The repositories of an archive as a reader sees them: the archive's own, or one made for the reader.

Where nothing of a domain is hidden, a reader reads the archive's repository. Else a temporary one is made: its refs are
the open snapshots, its trees have what the reader may see, its objects are the archive's (git's alternates). So all
that reads repositories works for readers, too.

Its trees are without what rules forbid, and combine several publications. They are written into a store of the reader's
own, which reads the archive's objects and writes none there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from webarcfs.access import secret_headers
from webarcfs.access.access_rules import Access, Standing, VisibleSnapshot, hosts, plain_key
from webarcfs.access.gate import Gate
from webarcfs.archive.catalogue.record import OWN
from webarcfs.archive.config import settings_files
from webarcfs.archive.document.data_xml import describe, has_no_nodes, metadata
from webarcfs.archive.git.repository import CRAWLS, MAIN, RefUpdate, Repository, TreeEntry, is_arc
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.history.versions import arcs, leads_to_arcs
from webarcfs.archive.index import database
from webarcfs.archive.index.database import HeldVersion
from webarcfs.archive.model.arc_paths import is_reserved, split
from webarcfs.archive.model.errors import Forbidden, InvalidDocument, NotFound, SettingsError
from webarcfs.archive.model.metadata import CommitTag, format_time, from_epoch
from webarcfs.archive.model.url_lists import REDIRECTS, Redirect, write_list
from webarcfs.archive.model.urls import surt
from webarcfs.archive.system.files import OF_READERS, TemporaryFolder

# == layers ===========================================================================================================


def without(store: Repository, tree: str, paths: Iterable[str], lists: Callable[[str, TreeEntry], str | None]) -> str:
    """Return a tree without the ARCs at some paths and their additions.

    `lists` returns the blob of the list of redirects that takes the place of one, None for none.
    """
    changes: dict[str, str | None] = {}
    for path in paths:
        changes |= {f"{path}/{entry.name}": None for entry in _own(store, tree, path)}
    for place, entry in redirect_lists.places(store, store.find(tree, REDIRECTS)):
        blob = lists(place, entry)
        if blob != entry.oid:
            changes[place] = blob
    return store.edit(tree, changes) if changes else tree


class WithoutAdditions:
    """Takes what users added from the trees of a store; remembers folders, so that equal ones cost nothing."""

    def __init__(self, store: Repository) -> None:
        self._store = store
        self._known: dict[str, str | None] = {}

    def of(self, tree: str) -> str:
        """Return a domain's tree without additions: files and folders beside an ARC's own, and data nodes."""
        top = {entry.name: entry for entry in self._store.each(tree)}
        left = self._of(tree) or self._store.write_tree([])
        if REDIRECTS not in top:
            return left
        return self._store.write_tree([*self._store.each(left), top[REDIRECTS]])

    def _of(self, tree: str) -> str | None:
        if tree not in self._known:
            self._known[tree] = self._made(tree)
        return self._known[tree]

    def _made(self, tree: str) -> str | None:
        """Return a folder without additions; None if nothing is left, as of a folder of additions."""
        kept = []
        entries = self._store.entries(tree)
        for entry in entries:
            if entry.is_tree:
                inner = self._of(entry.oid) if entry.name != REDIRECTS else None
                kept += [TreeEntry(entry.name, inner, True)] if inner is not None else []
            elif entry.is_document:
                kept.append(TreeEntry(entry.name, self._plain(entry.oid), False))
            elif is_reserved(entry.name) and is_arc(entries):
                kept.append(entry)
        return self._store.write_tree(kept) if kept else None

    def _plain(self, document: str) -> str:
        content = self._store.read(document)
        if has_no_nodes(content):
            return document
        try:
            return self._store.write_blob(describe(metadata(content)))
        except InvalidDocument:
            return self._store.write_blob(b"")  # what cannot be read cannot be judged


def only(store: Repository, tree: str, paths: Iterable[str]) -> str:
    """Return a tree with nothing but the ARCs at some paths."""
    changes: dict[str, str | None] = {}
    for path in paths:
        for entry in _own(store, tree, path):
            if not entry.is_tree:
                changes[f"{path}/{entry.name}"] = entry.oid
            else:
                changes |= dict(store.files(entry.oid, f"{path}/{entry.name}"))
    return store.edit(store.write_tree([]), changes)


def stored_by(store: Repository, tree: str, tags: set[CommitTag]) -> str:
    """Return a tree with nothing but the ARCs whose versions some crawls stored: all that layout 1 says."""

    def is_one(document: str) -> bool:
        try:
            return metadata(store.read(document)).commit_tag in tags
        except InvalidDocument:
            return False

    return only(store, tree, [arc.path for arc in arcs(store, tree) if is_one(arc.data_xml)])


def union(store: Repository, trees: Sequence[str]) -> str:
    """Return what several trees have together, the newest first: for each ARC, and each redirect, the newest."""
    distinct = list(dict.fromkeys(trees))
    if len(distinct) == 1:
        return distinct[0]
    tops = [store.find(tree, REDIRECTS) for tree in distinct]
    merged = {entry.name: entry for entry in _merged(store, distinct) if entry.name != REDIRECTS}
    redirects = _redirects(store, [top for top in tops if top is not None])
    if redirects is not None:
        merged[REDIRECTS] = TreeEntry(REDIRECTS, redirects, True)
    return store.write_tree(list(merged.values()))


def _merged(store: Repository, trees: Sequence[str]) -> Iterator[TreeEntry]:
    """Yield the entries of a folder: an ARC with its additions is one, and comes from the newest tree that has it."""
    layers = [{entry.name: entry for entry in store.each(tree)} for tree in trees]
    owner = next((layer for layer in layers if is_arc(layer.values())), {})
    own = {name: entry for name, entry in owner.items() if not entry.is_tree or not leads_to_arcs(store, entry.oid)}
    yield from own.values()
    for name in sorted(set().union(*layers) - own.keys()):
        inner = [layer[name].oid for layer in layers if name in layer and _is_above_arcs(store, layer[name])]
        distinct = list(dict.fromkeys(inner))
        if len(distinct) == 1:
            yield TreeEntry(name, distinct[0], True)
        elif distinct:
            yield TreeEntry(name, store.write_tree(list(_merged(store, distinct))), True)


def _is_above_arcs(store: Repository, entry: TreeEntry) -> bool:
    return entry.is_tree and leads_to_arcs(store, entry.oid)


def _redirects(store: Repository, tops: Sequence[TreeEntry]) -> str | None:
    """Return the folder of the redirects that several trees have together; None if none has any."""
    redirects: dict[str, dict[str, Redirect]] = {}
    for top in reversed(tops):
        for place, entry in redirect_lists.places(store, top):
            redirects.setdefault(place, {}).update(
                {redirect.url: redirect for redirect in redirect_lists.lines(store, entry, place)}
            )
    if not redirects:
        return None
    blobs: dict[str, str | None] = {
        place.removeprefix(f"{REDIRECTS}/"): store.write_blob(write_list(lines.values()))
        for place, lines in redirects.items()
    }
    return store.edit(store.write_tree([]), blobs)


def _own(store: Repository, tree: str, path: str) -> Iterator[TreeEntry]:
    """Yield the entries of an ARC, without the ARCs below it."""
    folder = store.find(tree, path)
    for entry in store.each(folder.oid) if folder is not None and folder.is_tree else ():
        if not entry.is_tree or not leads_to_arcs(store, entry.oid):
            yield entry


# == reader repositories ==============================================================================================


class ReaderRepositories:
    """The repositories of one archive for one reader. A context manager; at its end those made for the reader go."""

    def __init__(self, gate: Gate, *, keep: int = 0) -> None:
        """`keep` older repositories stay readable when a newer one was made."""
        self.gate = gate
        self._keep = keep
        self._older: list[Path] = []
        self._folder: TemporaryFolder | None = None
        self._made: dict[str, tuple[_Fingerprint, Repository]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the repositories that were made for the reader."""
        self._made.clear()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def open(self, domain: str) -> Repository:
        """Return a domain's repository as the reader sees it now. Raises NotFound if it sees none of the domain."""
        view = _DomainView(self.gate, domain)
        known = self._made.get(domain)
        if known is not None and known[0] == view.fingerprint:
            return known[1]
        self._forget(domain)
        if not view.shown:
            raise NotFound(f"the archive has no domain {domain!r}")
        if view.is_whole:
            store = Repository(self.gate.archive.repository(domain))
        else:
            if self._folder is None:
                self._folder = TemporaryFolder(OF_READERS)
            store = view.made(Path(tempfile.mkdtemp(dir=self._folder.path)) / f"{domain}.git")
        self._made[domain] = view.fingerprint, store
        return store

    def _forget(self, domain: str) -> None:
        known = self._made.pop(domain, None)
        if known is not None and self._folder is not None and known[1].path.is_relative_to(self._folder.path):
            self._older.append(known[1].path.parent)
        while len(self._older) > self._keep:
            shutil.rmtree(self._older.pop(0), ignore_errors=True)

    def must_be_open(self, tag: CommitTag) -> None:
        """Raise NotFound if the reader sees no such snapshot, Forbidden if it is closed until a date."""
        snapshot = self.gate.standing(tag)
        if snapshot is not None and snapshot.standing is Standing.CLOSED and snapshot.until is not None:
            if not _DomainView(self.gate, tag.domain).is_named:
                raise Forbidden(f"{tag} is under embargo until {format_time(snapshot.until)}")
        elif snapshot is None or snapshot.standing is not Standing.OPEN:
            raise NotFound(f"there is no snapshot {tag}")


def hides(store: Repository, tag: CommitTag) -> bool:
    """Return whether a repository was made for a reader who sees nothing of a crawl that the archive has."""
    alternates = store.path / "objects" / "info" / "alternates"
    if store.ref(tag.ref) is not None or not alternates.exists():
        return False
    original = Path(os.fsdecode(alternates.read_bytes().rstrip(b"\n"))).parent
    return Repository(original).ref(tag.ref) is not None


#: What a reader's repository follows from.
_Fingerprint = tuple[object, ...]


class _DomainView:
    """What a reader sees of a domain, at one moment."""

    def __init__(self, gate: Gate, domain: str) -> None:
        self._gate = gate
        self._domain = domain
        self._snapshots = gate.snapshots(domain)
        self._rules = gate.rules()
        self._now = gate.now()
        self._lists: dict[str, str | None] = {}

    @cached_property
    def fingerprint(self) -> _Fingerprint:
        """A value that changes whenever the reader may see something else: snapshots, additions, rules, lapses."""
        in_force = tuple(rule for rule in self._rules.rules if rule.lapses is None or self._now < rule.lapses)
        try:
            main = Repository(self._gate.archive.repository(self._domain)).ref(MAIN)
        except NotFound:
            main = None
        return tuple(self._snapshots), in_force, main, self._kept_in_house

    @cached_property
    def _kept_in_house(self) -> frozenset[str]:
        """The publications of the domain whose additions are for staff; all of them if the settings have faults."""
        if self._gate.is_staff:
            return frozenset()
        names = frozenset(snapshot.publication for snapshot in self._snapshots)
        try:
            settings, _ = settings_files.load(self._gate.archive.settings)
        except SettingsError:
            return names
        return names & {publication.name for publication in settings.publications if publication.additions == "staff"}

    @cached_property
    def is_named(self) -> bool:
        """Whether a rule allows something to the reader by name, so that it may see parts of closed snapshots."""
        name = self._gate.reader.name
        return bool(name) and any(rule.access is Access.ALLOW and rule.user == name for rule in self._rules.rules)

    @cached_property
    def shown(self) -> list[VisibleSnapshot]:
        """The snapshots of which the reader may see something, oldest first."""
        wanted = (Standing.OPEN, Standing.CLOSED) if self.is_named else (Standing.OPEN,)
        return [snapshot for snapshot in self._snapshots if snapshot.standing in wanted]

    @cached_property
    def is_whole(self) -> bool:
        """Whether nothing of the domain is hidden."""
        is_open = all(snapshot.standing is Standing.OPEN for snapshot in self._snapshots)
        is_plain = self._is_plain and self._without_secrets_but is None
        return bool(self._snapshots) and is_open and is_plain and not self._kept_in_house

    @cached_property
    def _without_secrets_but(self) -> frozenset[CommitTag] | None:
        """The crawls whose headers the reader sees as they were sent; None: all of them."""
        if self._gate.is_staff:
            return None
        return secret_headers.plain_crawls(Repository(self._gate.archive.repository(self._domain)), self._domain)

    def made(self, path: Path) -> Repository:
        """Make the reader's repository at `path`, and return it."""
        original = Repository(self._gate.archive.repository(self._domain))
        Repository.create(path)
        (path / "objects" / "info").mkdir(exist_ok=True)
        (path / "objects" / "info" / "alternates").write_bytes(bytes(original.path.absolute() / "objects") + b"\n")
        store = Repository(path)
        trees: dict[int, str] = {}
        self._without = WithoutAdditions(store)
        plain = self._without_secrets_but
        self._blanked = None if plain is None else secret_headers.WithoutSecrets(store, plain)
        updates = []
        commit = ""
        for snapshot in self.shown:
            tag = self._tag(snapshot)
            oid = original.ref(tag.ref)
            if oid is None:
                continue
            newest = {other.publication: other for other in self.shown if other.seq <= snapshot.seq}
            for other in newest.values():
                if other.seq not in trees:
                    trees[other.seq] = self._tree(store, other, original)
            ordered = sorted(newest.values(), key=lambda other: other.seq, reverse=True)
            tree = union(store, [trees[other.seq] for other in ordered])
            commit = oid
            if tree != original.tree_at(oid):
                # The crawl's message: those of additions name files.
                crawl = sequence.crawl_commit(original, oid)
                plain_commit = original.plain_commit(oid if crawl is None else crawl.oid)
                message = plain_commit.message
                if crawl is not None and crawl.message.met and not crawl.message.seen:
                    message += f"Seen: {crawl.tree}\n"  # the list of what it met is of this tree
                commit = store.write_commit(
                    tree, [], message, (plain_commit.author, "reader@localhost"), plain_commit.time
                )
            updates.append(RefUpdate(f"{CRAWLS}{tag.ref.removeprefix(CRAWLS)}", commit, None))
            if trees[snapshot.seq] != tree:
                updates.append(RefUpdate(tag.seen_ref, trees[snapshot.seq], None))
        if commit:
            updates.append(RefUpdate(MAIN, commit, None))
        store.update_refs(updates)
        return store

    def _tag(self, snapshot: VisibleSnapshot) -> CommitTag:
        return CommitTag(from_epoch(snapshot.seq), self._domain)

    def _tree(self, store: Repository, snapshot: VisibleSnapshot, original: Repository) -> str:
        """Return what a snapshot shows the reader: what its publication saw, without what rules take away."""
        whole = original.snapshot_tree(self._tag(snapshot))
        tree = snapshot.seen or whole
        if snapshot.seen == OWN:
            own = {self._tag(other) for other in self._snapshots if other.publication == snapshot.publication}
            tree = stored_by(store, whole, own)
        if snapshot.publication in self._kept_in_house:
            tree = self._without.of(tree)
        if self._blanked is not None:
            tree = self._blanked.of(tree)
        hidden, allowed = self._ruled(snapshot.seq)
        if snapshot.standing is Standing.CLOSED:
            return only(store, tree, allowed)
        return (
            tree if self._is_plain else without(store, tree, hidden, lambda *arguments: self._list(store, *arguments))
        )

    def _list(self, store: Repository, place: str, entry: TreeEntry) -> str | None:
        """Return the list of redirects that the reader may see in place of one."""
        if entry.oid not in self._lists:
            lines = redirect_lists.lines(store, entry, place)
            kept = [redirect for redirect in lines if not self._is_hidden(redirect)]
            same = len(kept) == len(lines)
            self._lists[entry.oid] = entry.oid if same else store.write_blob(write_list(kept)) if kept else None
        return self._lists[entry.oid]

    def _is_hidden(self, redirect: Redirect) -> bool:
        rule = self._rules.find(redirect.url, self._gate.reader.name, redirect.time, self._now)
        return rule is not None and rule.access is not Access.ALLOW

    @cached_property
    def _is_plain(self) -> bool:
        """Whether no rule is about a host of the domain."""
        own = plain_key(surt(f"http://{self._domain}/"))
        return not any(own.startswith(host) for host in hosts(self._rules.rules))

    @cached_property
    def _touched(self) -> list[HeldVersion]:
        """The versions that some rule is about."""
        if self._is_plain:
            return []
        versions = database.versions_of(self._gate.archive.database, self._domain)
        return [version for version in versions if self._rules.touches(version.url)]

    def _ruled(self, seq: int) -> tuple[list[str], list[str]]:
        """Return the ARCs of a snapshot that rules hide, and those that they allow to the reader by name."""
        hidden, allowed = [], []
        for version in self._touched:
            if version.first <= seq < version.last:
                arc = split(version.path)[1]
                rule = self._rules.find(version.url, self._gate.reader.name, version.captured, self._now)
                if rule is not None and rule.access is not Access.ALLOW:
                    hidden.append(arc)
                elif rule is not None and rule.user:
                    allowed.append(arc)
        return hidden, allowed
