"""The repositories of an archive as a reader sees them: the archive's own, or one made for the reader.

Where nothing of a domain is hidden, a reader reads the archive's repository. Else a temporary one is made: its refs are
the open snapshots, its trees have what the reader may see, its objects are the archive's (git's alternates). So all
that reads repositories works for readers, too.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Self

from webarcfs.archive.catalogue.record import OWN
from webarcfs.archive.config import settings_file
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import CRAWLS, MAIN, RefUpdate, Repository
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.history.versions import tree_of
from webarcfs.archive.index import held_versions
from webarcfs.archive.index.held_versions import HeldVersion
from webarcfs.archive.model.arc_paths import split
from webarcfs.archive.model.errors import Forbidden, NotFound, SettingsError
from webarcfs.archive.model.metadata import CommitTag, format_time, from_epoch
from webarcfs.archive.model.redirects import Redirect, write_list
from webarcfs.archive.model.surt import surt
from webarcfs.archive.system.temporary_folders import OF_READERS, TemporaryFolder
from webarcfs.gate import layers
from webarcfs.gate.access_rules import Access, hosts, plain_key
from webarcfs.gate.gate import Gate
from webarcfs.gate.visibility import Snapshot, Standing


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
        found = self.gate.standing(tag)
        if found is not None and found.standing is Standing.CLOSED and found.until is not None:
            if not _DomainView(self.gate, tag.domain).is_named:
                raise Forbidden(f"{tag} is closed until {format_time(found.until)}")
        elif found is None or found.standing is not Standing.OPEN:
            raise NotFound(f"there is no snapshot {tag}")


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
        in_force = tuple(each for each in self._rules.rules if each.lapses is None or self._now < each.lapses)
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
        names = frozenset(each.publication for each in self._snapshots)
        try:
            settings, _ = settings_file.load(self._gate.archive.settings)
        except SettingsError:
            return names
        return names & {each.name for each in settings.publications if each.additions == "staff"}

    @cached_property
    def is_named(self) -> bool:
        """Whether a rule allows something to the reader by name, so that it may see parts of closed snapshots."""
        name = self._gate.reader.name
        return bool(name) and any(each.access is Access.ALLOW and each.user == name for each in self._rules.rules)

    @cached_property
    def shown(self) -> list[Snapshot]:
        """The snapshots of which the reader may see something, oldest first."""
        wanted = (Standing.OPEN, Standing.CLOSED) if self.is_named else (Standing.OPEN,)
        return [each for each in self._snapshots if each.standing in wanted]

    @cached_property
    def is_whole(self) -> bool:
        """Whether nothing of the domain is hidden."""
        is_open = all(each.standing is Standing.OPEN for each in self._snapshots)
        return bool(self._snapshots) and is_open and self._is_plain and not self._kept_in_house

    def made(self, path: Path) -> Repository:
        """Make the reader's repository at `path`, and return it."""
        original = Repository(self._gate.archive.repository(self._domain))
        Repository.create(path)
        (path / "objects" / "info").mkdir(exist_ok=True)
        (path / "objects" / "info" / "alternates").write_bytes(bytes(original.path.absolute() / "objects") + b"\n")
        store = Repository(path)
        trees: dict[int, str] = {}
        self._without = layers.WithoutAdditions(store)
        updates = []
        commit = ""
        for each in self.shown:
            tag = self._tag(each)
            oid = original.ref(tag.ref)
            if oid is None:
                continue
            newest = {other.publication: other for other in self.shown if other.seq <= each.seq}
            for other in newest.values():
                if other.seq not in trees:
                    trees[other.seq] = self._tree(store, other, original)
            ordered = sorted(newest.values(), key=lambda one: one.seq, reverse=True)
            tree = layers.union(store, [trees[one.seq] for one in ordered])
            commit = oid
            if tree != original.tree_at(oid):
                # The crawl's message: those of additions name files.
                crawl = sequence.crawl_commit(original, oid)
                said = original.plain_commit(oid if crawl is None else crawl.oid)
                message = said.message
                if crawl is not None and crawl.message.met and not crawl.message.seen:
                    message += f"Seen: {crawl.tree}\n"  # the list of what it met is of this tree
                commit = store.write_commit(tree, [], message, (said.author, "reader@localhost"), said.time)
            updates.append(RefUpdate(f"{CRAWLS}{tag.ref.removeprefix(CRAWLS)}", commit, None))
            if trees[each.seq] != tree:
                updates.append(RefUpdate(tag.seen_ref, trees[each.seq], None))
        if commit:
            updates.append(RefUpdate(MAIN, commit, None))
        store.update_refs(updates)
        return store

    def _tag(self, snapshot: Snapshot) -> CommitTag:
        return CommitTag(from_epoch(snapshot.seq), self._domain)

    def _tree(self, store: Repository, snapshot: Snapshot, original: Repository) -> str:
        """Return what a snapshot shows the reader: what its publication saw, without what rules take away."""
        whole = tree_of(original, self._tag(snapshot))
        tree = snapshot.seen or whole
        if snapshot.seen == OWN:
            own = {self._tag(each) for each in self._snapshots if each.publication == snapshot.publication}
            tree = layers.stored_by(store, whole, own)
        if snapshot.publication in self._kept_in_house:
            tree = self._without.of(tree)
        hidden, allowed = self._ruled(snapshot.seq)
        if snapshot.standing is Standing.CLOSED:
            return layers.only(store, tree, allowed)
        return tree if self._is_plain else layers.without(store, tree, hidden, lambda *each: self._list(store, *each))

    def _list(self, store: Repository, place: str, entry: Entry) -> str | None:
        """Return the list of redirects that the reader may see in place of one."""
        if entry.oid not in self._lists:
            lines = redirect_lists.lines(store, entry, place)
            kept = [each for each in lines if not self._is_hidden(each)]
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
        return not any(own.startswith(each) for each in hosts(self._rules.rules))

    @cached_property
    def _touched(self) -> list[HeldVersion]:
        """The versions that some rule is about."""
        if self._is_plain:
            return []
        found = held_versions.versions_of(self._gate.archive.database, self._domain)
        return [each for each in found if self._rules.touches(each.url)]

    def _ruled(self, seq: int) -> tuple[list[str], list[str]]:
        """Return the ARCs of a snapshot that rules hide, and those that they allow to the reader by name."""
        hidden, allowed = [], []
        for each in self._touched:
            if each.first <= seq < each.last:
                arc = split(each.path)[1]
                rule = self._rules.find(each.url, self._gate.reader.name, each.captured, self._now)
                if rule is not None and rule.access is not Access.ALLOW:
                    hidden.append(arc)
                elif rule is not None and rule.user:
                    allowed.append(arc)
        return hidden, allowed
