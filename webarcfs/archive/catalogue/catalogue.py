"""The catalogue: catalogue.git, with a record.xml for each capture, and a commit for each change, by its author.

Not derived: edits, releases and withdrawals are here only. A record lies at `records/<publication>/<YYYY>/<id>.xml`,
its attachments in the folder `<id>` beside it. The files `number` (given last), `described` (the number in the feed
up to which each capture has a record) and `discarded` (the ids of discarded records, a line each) lie at the top. All
methods raise Damaged if the repository cannot be read.
"""

from __future__ import annotations

import errno
import heapq
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import IOBase

from webarcfs.archive.catalogue import record_xml
from webarcfs.archive.catalogue.record import Event, Record, State, publication_of
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, RefUpdate, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.model.errors import Busy, Damaged, InvalidDocument, NotFound
from webarcfs.archive.model.metadata import from_epoch, now
from webarcfs.archive.system import locks
from webarcfs.archive.system.whole_files import size_of

RECORDS = "records"
_NUMBER = "number"
_DESCRIBED = "described"
_DISCARDED = "discarded"
_ENDING = ".xml"
_IS_RECORD = re.compile(rf"{RECORDS}/[^/]+/[^/]+/[^/]+\{_ENDING}", re.DOTALL)
#: Times that a change is tried which others of the record overtake.
_TRIES = 10
#: libgit2 writes a stream to a file as it is, and then compressed, beside it.
_TIMES_WRITTEN = 2
_SPACE_OF_A_COMMIT = 1 << 18
#: Characters that the name of a commit's author cannot have.
_NOT_IN_AUTHORS = re.compile(r"[<>\x00-\x1f]+")


@dataclass(frozen=True, slots=True)
class CatalogueState:
    """A state of catalogue.git: a commit and its tree."""

    commit: str
    tree: str


class Catalogue:
    """The records of an archive. For one thread; each method reads the newest state. Empty without a catalogue.git."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._opened: Repository | None = None
        self._discarded: tuple[str, frozenset[str]] = ("", frozenset())

    # -- reading ---------------------------------------------------------------------------------------------------

    def state(self) -> CatalogueState | None:
        """Return the newest state; None if there is no catalogue yet."""
        store = self._store()
        found = None if store is None else store.tree_of(MAIN)
        return None if found is None else CatalogueState(*found)

    def ids(self, publication: str | None = None) -> Iterator[str]:
        """Yield the ids of all records, or of a publication's, newest capture first. No record is read."""
        return (record_id for record_id, _ in self._files(publication))

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield all records, or those of a publication, newest capture first."""
        for record_id, blob in self._files(publication):
            yield self._parsed(blob, record_id)

    def read(self, record_id: str) -> tuple[Record, str]:
        """Return a record and the id of its blob, for `save`. Raises NotFound."""
        blob = self._find(record_id)
        if blob is None:
            raise NotFound(f"the catalogue has no record {record_id}; `webarc-agent record list` lists them")
        return self._parsed(blob, record_id), blob

    def has(self, record_id: str) -> bool:
        """Return whether there is a record of that id."""
        return self._find(record_id) is not None

    def newest(self, publication: str, before: str) -> Record | None:
        """Return the newest counted record of a publication whose id is less than `before`; None without one."""
        older = (each for each in self.ids(publication) if each < before)
        found = (self.read(each)[0] for each in older)
        return next((each for each in found if each.parts and each.state is not State.DISCARDED), None)

    def discarded(self) -> frozenset[str]:
        """Return the ids of the discarded records. It costs a look at a ref if nothing changed."""
        state = self.state()
        if state is None:
            return frozenset()
        known = self._discarded
        if known[0] != state.commit:
            known = self._discarded = (state.commit, self._lines(state.tree, _DISCARDED))
        return known[1]

    def described(self) -> int:
        """Return the number in the feed up to which each capture has a record."""
        state = self.state()
        return 0 if state is None else self._whole(state.tree, _DESCRIBED)

    def changed(self, since: str | None) -> Iterator[tuple[str, Record | None]]:
        """Yield the records that differ from the state of a commit, by id; None for one that is gone."""
        store, state = self._store(), self.state()
        if store is None or state is None:
            return
        old = store.tree_at(since) if since is not None else None
        for each in store.differences(old, state.tree):
            if _IS_RECORD.fullmatch(each.path):
                record_id = each.path.rpartition("/")[2].removesuffix(_ENDING)
                yield record_id, None if each.new is None else self._parsed(each.new, record_id)

    def file(self, path: str) -> bytes | None:
        """Return the newest copy of a file of settings; None without one."""
        store, state = self._store(), self.state()
        entry = store.find(state.tree, path) if store is not None and state is not None else None
        return store.read(entry.oid) if store is not None and entry is not None and not entry.is_tree else None

    def history(self, record_id: str) -> Iterator[Event]:
        """Yield the commits that changed a record, newest first: their subject, time and author."""
        store, state = self._store(), self.state()
        oid = None if state is None else state.commit
        while store is not None and oid is not None:
            commit = store.plain_commit(oid)
            parent = commit.parents[0] if commit.parents else None
            before = None if parent is None else store.tree_at(parent)
            if self._find(record_id, commit.tree) != (self._find(record_id, before) if before is not None else None):
                yield Event(commit.subject, from_epoch(commit.time), commit.author)
            oid = parent

    def attachment(self, record_id: str, name: str) -> tuple[str, int]:
        """Return the blob of an attachment and its size. Raises NotFound."""
        store, state = self._store(), self.state()
        if store is not None and state is not None and "/" not in record_id and "/" not in name:
            entry = store.find(state.tree, f"{_folder(record_id)}/{name}")
            if entry is not None and not entry.is_tree:
                return entry.oid, store.size(entry.oid)
        raise NotFound(f"{record_id} has no attachment {name!r}; `webarc-agent record attachments` lists them")

    def copy(self, blob: str, fd: int) -> None:
        """Write an attachment to the descriptor `fd`, in constant memory."""
        store = self._store()
        assert store is not None
        store.copy(blob, fd)

    def attachment_faults(self, record: Record) -> Iterator[str]:
        """Yield how the attachments that a record names differ from the files beside it."""
        store, state = self._store(), self.state()
        folder = store.find(state.tree, _folder(record.id)) if store is not None and state is not None else None
        there = {} if store is None or folder is None else {each.name: each.oid for each in store.each(folder.oid)}
        for each in record.attachments:
            blob = there.pop(each.name, None)
            if blob is None:
                yield f"{record.id}: its attachment {each.name!r} is missing"
            elif store is not None and store.size(blob) != each.bytes:
                yield f"{record.id}: its attachment {each.name!r} has {store.size(blob)} bytes, and not {each.bytes}"
        yield from (f"{record.id}: {name!r} lies beside it, and it does not name it" for name in there)

    # -- writing ---------------------------------------------------------------------------------------------------

    def write_file(self, file: IOBase) -> str:
        """Store the bytes of an attachment, as a stream; return its blob, which `save` then puts beside a record.

        Raises OSError where the disk has too little space: libgit2 says then that it does not find the new object.
        """
        store = self._store()
        if store is None:
            raise NotFound("the catalogue has no record yet")
        disk = os.statvfs(self._archive.catalogue)
        if disk.f_bavail * disk.f_frsize < _TIMES_WRITTEN * size_of(file) + _SPACE_OF_A_COMMIT:
            raise OSError(errno.ENOSPC, f"{self._archive.catalogue}: {os.strerror(errno.ENOSPC)}")
        return store.write_stream(file)

    def change(
        self,
        record_id: str,
        change: Callable[[Record], Record],
        author: str,
        message: Callable[[Record], str],
        *,
        attached: Mapping[tuple[str, str], str | None] | None = None,
    ) -> Record:
        """Change a record, anew from what it is then where another change overtook this one; return it as it is saved.

        A change that changes nothing is not saved. `message` says of the changed record what was done, `attached` is as
        of `save`. Raises what `change` raises, NotFound, and Busy if the record is changed all the time.
        """
        for _ in range(_TRIES):
            found, blob = self.read(record_id)
            changed = change(found)
            if changed == found:
                return found
            told = f"{record_id}: {message(changed)}"
            try:
                self.save([changed], author, told, expected={record_id: blob}, attached=attached)
            except Busy:
                continue
            return changed
        raise Busy(f"{record_id} is being changed all the time; try again")

    def save(
        self,
        records: Sequence[Record],
        author: str,
        message: str,
        *,
        expected: Mapping[str, str | None] | None = None,
        described: int | None = None,
        files: Mapping[str, bytes] | None = None,
        attached: Mapping[tuple[str, str], str | None] | None = None,
    ) -> list[Record]:
        """Write records in one commit, durably; return them with their numbers, which new ones get here.

        `described` is the number in the feed up to which each capture has a record from now on. `files` are copies of
        settings, kept as they were. `attached` has the blobs of attachments by record and name; None takes one away,
        and the history keeps it. `expected` has the blob from which a record was edited, None for a new one. Raises
        Busy, and writes nothing, if the catalogue has another one by now.
        """
        self._raise_layout()
        with locks.Turnstile(self._archive.catalogue_lock).exclusive():
            store = self._store() or Repository.create(self._archive.catalogue)
            state = self.state()
            tree = state.tree if state is not None else store.write_tree([])
            for record_id, blob in (expected or {}).items():
                if self._find(record_id, tree) != blob:
                    raise Busy(f"the record {record_id} was changed meanwhile; look at it again")
            last = self._whole(tree, _NUMBER)
            numbered = list(_numbered(records, last))
            changes: dict[str, str | None] = {
                _path(each.id): store.write_blob(record_xml.write(each)) for each in numbered
            }
            last = max([last, *(each.number for each in numbered)])
            changes[_NUMBER] = store.write_blob(f"{last}\n".encode())
            changes |= {path: store.write_blob(content) for path, content in (files or {}).items()}
            changes |= {f"{_folder(record_id)}/{name}": blob for (record_id, name), blob in (attached or {}).items()}
            before = self._lines(tree, _DISCARDED)
            discarded = _discarded(numbered, before)
            if discarded != before:
                lines = "".join(f"{each}\n" for each in sorted(discarded))
                changes[_DISCARDED] = store.write_blob(lines.encode()) if lines else None
            if described is not None:
                changes[_DESCRIBED] = store.write_blob(f"{described}\n".encode())
            edited = store.edit(tree, changes)
            if state is None or edited != tree:
                parents = [state.commit] if state is not None else []
                name = _NOT_IN_AUTHORS.sub(" ", author).strip() or "unnamed"
                when = int(now().timestamp())
                commit = store.write_commit(edited, parents, f"{message}\n", (name, f"{name}@localhost"), when)
                store.update_refs([RefUpdate(MAIN, commit, parents[0] if parents else None)])
        return numbered

    # -- internal --------------------------------------------------------------------------------------------------

    def _raise_layout(self) -> None:
        """Programs that know no catalogue must refuse the archive. Taken before the catalogue's lock."""
        if directory.layout_of(self._archive.root) < directory.WITH_CATALOGUE:
            with sequence.hold(self._archive):
                directory.raise_layout(self._archive)

    def _store(self) -> Repository | None:
        if self._opened is None:
            if not self._archive.catalogue.exists():
                return None
            try:
                self._opened = Repository(self._archive.catalogue)
            except NotFound as error:
                raise Damaged(f"{self._archive.catalogue} is no repository: {error}") from None
        return self._opened

    def _files(self, publication: str | None) -> Iterator[tuple[str, str]]:
        """Yield id and blob of each record, newest first; a year's folder is read when it is reached."""
        store, state = self._store(), self.state()
        if store is None or state is None:
            return
        top = store.find(state.tree, RECORDS if publication is None else f"{RECORDS}/{publication}")
        if top is None or not top.is_tree:
            return
        of_publications = [top.oid] if publication is not None else [each.oid for each in store.each(top.oid)]
        yield from heapq.merge(*(_newest_first(store, tree) for tree in of_publications), reverse=True)

    def _find(self, record_id: str, tree: str | None = None) -> str | None:
        """Return the blob of a record, in the newest state if no tree is given."""
        store, state = self._store(), self.state() if tree is None else None
        tree = state.tree if state is not None else tree
        if store is None or tree is None or "/" in record_id:
            return None
        entry = store.find(tree, _path(record_id))
        return entry.oid if entry is not None and not entry.is_tree else None

    def _parsed(self, blob: str, record_id: str) -> Record:
        store = self._store()
        assert store is not None
        try:
            record = record_xml.read(store.read(blob))
        except InvalidDocument as error:
            raise Damaged(f"{store.path}: {_path(record_id)}: {error}") from None
        if record.id != record_id:
            raise Damaged(f"{store.path}: {_path(record_id)} is the record of {record.id}")
        return record

    def _lines(self, tree: str, name: str) -> frozenset[str]:
        """Return the lines of a file; none without one."""
        store = self._store()
        assert store is not None
        entry = store.find(tree, name)
        text = store.read(entry.oid) if entry is not None and not entry.is_tree else b""
        return frozenset(text.decode("utf-8", "replace").splitlines())

    def _whole(self, tree: str, name: str) -> int:
        """Return the number in a file; 0 without one."""
        store = self._store()
        assert store is not None
        entry = store.find(tree, name)
        text = store.read(entry.oid).strip() if entry is not None and not entry.is_tree else b"0"
        if not text.isdigit():
            raise Damaged(f"{store.path}: {name} is no number")
        return int(text)


def _newest_first(store: Repository, publication: str) -> Iterator[tuple[str, str]]:
    for year in sorted(store.each(publication), key=lambda each: each.name, reverse=True):
        found = ((each.name.removesuffix(_ENDING), each.oid) for each in store.each(year.oid) if not each.is_tree)
        yield from sorted(found, reverse=True)


def _path(record_id: str) -> str:
    return f"{_folder(record_id)}{_ENDING}"


def _folder(record_id: str) -> str:
    """Return the folder of a record's attachments."""
    return f"{RECORDS}/{publication_of(record_id)}/{record_id[:4]}/{record_id}"


def _discarded(records: Sequence[Record], before: frozenset[str]) -> frozenset[str]:
    """Return the ids of all discarded records once these are saved."""
    discarded = {each.id for each in records if each.state is State.DISCARDED}
    return before - {each.id for each in records} | discarded


def _numbered(records: Sequence[Record], last: int) -> Iterator[Record]:
    for record in records:
        if record.number:
            yield record
        else:
            last += 1
            yield replace(record, number=last)
