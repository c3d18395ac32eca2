"""What is exported: snapshots of domains, each with its tree and that of the snapshot exported before it.

A selection is decided once, and stays as it is while crawls publish and users add files: it names commits, which stay.
It can be written down, so that an interrupted export resumes with the same one. For a reader its repositories are those
of `access/reader_repositories`: nothing that reads a selection has to know of rules.

A snapshot is read document by document, beside what the one exported before it had and what its publication saw. Trees
are read folder by folder, in git's order, an ARC before those below it; equal folders are recognised by one look at
both. Memory holds the folders on the way to the current one, as git's bytes. Bodies are not read.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_crawl
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.git.writing import FILE, FOLDERS, LINE, Line, key, read_lines
from webarcfs.archive.history import redirect_lists, sequence, versions
from webarcfs.archive.history.redirect_lists import MetInOrder
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.errors import Damaged, NotFound, UsageError
from webarcfs.archive.model.metadata import CommitMessage, CommitTag, format_time
from webarcfs.archive.model.url_lists import REDIRECTS, Met, MetList, Redirect

# == selection ========================================================================================================


#: Opens the repository of a domain.
Opener = Callable[[str], Repository]
#: Whether someone asked for the end.
Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for; all of it: every snapshot of every domain.

    `at`: one snapshot a domain, the state at that time; with a commitTag, of its domain alone. `record`: the snapshots
    of a record. `publication`: those of a publication's crawls. `since`: those of this domain after that snapshot, of
    which only differences are written. Of a record or publication each snapshot is exported as its publication saw it.
    """

    at: CommitTag | datetime | None = None
    since: CommitTag | None = None
    record: str = ""
    publication: str = ""

    def __post_init__(self) -> None:
        """Raise UsageError for what makes no sense together."""
        if self.record and (self.publication or self.at or self.since):
            raise UsageError("--record names its snapshots; nothing else does beside it")
        if self.since is not None and isinstance(self.at, CommitTag):
            if self.at.domain != self.since.domain:
                raise UsageError(f"{self.since} and {self.at} are snapshots of different domains")
            if self.at <= self.since:
                raise UsageError(f"there is nothing after {self.since} up to {self.at}; give the older one to --since")

    def __str__(self) -> str:
        """Return it in words, for messages and to compare with what was asked before."""
        at = self.at if isinstance(self.at, CommitTag | None) else format_time(self.at)
        named = {"at": at, "since": self.since, "record": self.record, "publication": self.publication}
        return ", ".join(f"{name} {value}" for name, value in named.items() if value) or "all snapshots"


@dataclass(frozen=True, slots=True)
class SelectedSnapshot:
    """A snapshot to export: ids of commit and tree, and of the tree that its publication saw, where that is less."""

    tag: CommitTag
    commit: str
    tree: str
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Exported:
    """A snapshot with all that a format needs of it.

    `tree` is exported; `before` is the tree of the same domain that was exported before it, None without one.
    `message` and `time` (seconds) are those of the crawl's commit. `seen` is the tree that the publication saw, where
    that is less than `tree`; `met_in` the tree that the crawl's list of what it met unchanged is of.
    """

    store: Repository
    tag: CommitTag
    tree: str
    before: str | None
    message: CommitMessage
    time: int
    seen: str = ""
    met_in: str = ""

    def met(self) -> MetList | None:
        """Return the crawl's list of what it met unchanged; None if it has none. Raises Damaged."""
        return redirect_lists.read_met_list(self.store, self.message.met) if self.message.met else None


@dataclass(frozen=True, slots=True)
class Selection:
    """The snapshots to export: domain → snapshots, oldest first; domains are in order. Iterated as often as need be.

    `before` has, for the first snapshot of a domain, the tree to compare it with; no entry: none.
    """

    open: Opener
    chosen: Mapping[str, tuple[SelectedSnapshot, ...]]
    before: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of snapshots."""
        return sum(map(len, self.chosen.values()))

    def __iter__(self) -> Iterator[Exported]:
        """Yield the snapshots, domain by domain; one repository is open at a time. Raises NotFound, Damaged."""
        return self.after(0)

    def after(self, number: int) -> Iterator[Exported]:
        """Yield the snapshots but for the first `number`."""
        for domain, snapshots in self.chosen.items():
            if number >= len(snapshots):
                number -= len(snapshots)
                continue
            store = self.open(domain)
            before = snapshots[number - 1].tree if number else self.before.get(domain)
            for snapshot in snapshots[number:]:
                crawl = crawl_of(store, snapshot.tag, snapshot.commit)
                met_in = redirect_lists.seen_tree(crawl)
                yield Exported(
                    store, snapshot.tag, snapshot.tree, before, crawl.message, crawl.time, snapshot.seen, met_in
                )
                before = snapshot.tree
            number = 0

    @property
    def newest(self) -> CommitTag:
        """The newest snapshot that is exported."""
        return max(
            (snapshot.tag for snapshots in self.chosen.values() for snapshot in snapshots),
            key=lambda tag: tag.crawl_time,
        )

    @property
    def name(self) -> str:
        """A name for files: the domain, if it is one."""
        return next(iter(self.chosen)).replace(":", "-") if len(self.chosen) == 1 else "webarc"

    @property
    def digest(self) -> str:
        """A value that identifies this selection, wherever it is exported."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON, without the repositories."""
        rows = {
            domain: [
                [format_time(snapshot.tag.crawl_time), snapshot.commit, snapshot.tree, snapshot.seen]
                for snapshot in snapshots
            ]
            for domain, snapshots in self.chosen.items()
        }
        return {"snapshots": rows, "before": dict(self.before)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], open_: Opener) -> Selection:
        """Return the inverse of `as_json`. Raises Damaged for anything else."""
        try:
            chosen = {
                str(domain): tuple(
                    SelectedSnapshot(CommitTag.parse(f"{time}@{domain}"), str(commit), str(tree), str(seen))
                    for time, commit, tree, seen in rows
                )
                for domain, rows in fields["snapshots"].items()
            }
            return cls(open_, chosen, {str(domain): str(tree) for domain, tree in fields["before"].items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(f"no selection of snapshots: {error!r}") from None


def select(archive: Archive, asked: Asked, reader: ReaderRepositories | None = None) -> Selection:
    """Return what is to be exported; for a reader what it may see. Raises NotFound if that is nothing."""
    open_ = opener(archive, reader)
    chosen: dict[str, tuple[SelectedSnapshot, ...]] = {}
    before: dict[str, str] = {}
    for domain, tags in _domains(archive, asked, reader):
        try:
            store = open_(domain)
        except NotFound:
            continue  # the reader sees nothing of it
        snapshots = [snapshot for snapshot in _snapshots(store, domain, asked) if tags is None or snapshot.tag in tags]
        if asked.since is not None:
            old = next((snapshot for snapshot in snapshots if snapshot.tag == asked.since), None)
            if old is None:
                raise NotFound(f"there is no snapshot {asked.since}{_of(asked)}")
            before[domain] = old.tree
            snapshots = [snapshot for snapshot in snapshots if snapshot.tag > asked.since]
        if asked.at is not None:
            snapshots = _up_to(snapshots, asked, archive)
        if snapshots:
            chosen[domain] = tuple(snapshots)
    if not chosen:
        raise NotFound(f"there is nothing to export: no snapshot is one of {asked}")
    return Selection(open_, chosen, before)


def opener(archive: Archive, reader: ReaderRepositories | None = None) -> Opener:
    """Return what opens the repository of a domain, for staff or for a reader."""
    return reader.open if reader is not None else lambda domain: Repository(archive.repository(domain))


def _domains(
    archive: Archive, asked: Asked, reader: ReaderRepositories | None
) -> Iterator[tuple[str, frozenset[CommitTag] | None]]:
    """Yield the domains in question, with the snapshots in question; None: all."""
    for tag in (asked.since, asked.at):
        if isinstance(tag, CommitTag):
            if tag.domain not in set(archive.domains()):
                raise NotFound(f"the archive has no domain {tag.domain!r}")
            if reader is not None:
                reader.must_be_open(tag)
            yield tag.domain, None
            return
    if not asked.record:
        yield from ((domain, None) for domain in archive.domains())
        return
    for domain, tags in sorted(_parts(archive, asked.record, reader).items()):
        yield domain, frozenset(tags)


def _parts(archive: Archive, record_id: str, reader: ReaderRepositories | None) -> dict[str, set[CommitTag]]:
    """Return the parts of a record by domain. Raises NotFound for one that is not there, or not for the reader."""
    catalogue = Catalogue(archive)
    shown = None if reader is None else reader.gate.records
    record, _ = catalogue.read(look_up_crawl(archive, catalogue, record_id, shown).id)  # with all its parts
    tags_by_domain: dict[str, set[CommitTag]] = {}
    for part in record.parts:
        tags_by_domain.setdefault(part.tag.domain, set()).add(part.tag)
    return tags_by_domain


def _snapshots(store: Repository, domain: str, asked: Asked) -> Iterator[SelectedSnapshot]:
    """Yield the snapshots of a domain, oldest first; of a publication its own, as it saw them."""
    for tag, commit in versions.snapshots(store, domain):
        if asked.publication and crawl_of(store, tag, commit).message.publication != asked.publication:
            continue
        tree, seen = store.commit(commit).tree, store.ref(tag.seen_ref) or ""
        if seen and (asked.publication or asked.record):
            tree, seen = seen, ""
        yield SelectedSnapshot(tag, commit, tree, seen if seen != tree else "")


def _up_to(snapshots: list[SelectedSnapshot], asked: Asked, archive: Archive) -> list[SelectedSnapshot]:
    """Return the snapshots up to a time; without a beginning, the last of them."""
    at = asked.at
    if isinstance(at, CommitTag):
        if all(snapshot.tag != at for snapshot in snapshots):
            raise NotFound(f"there is no snapshot {at}{_of(asked)} in {archive.root}")
        at = at.crawl_time
    assert at is not None
    kept = [snapshot for snapshot in snapshots if snapshot.tag.crawl_time <= at]
    return kept if asked.since is not None else kept[-1:]


def _of(asked: Asked) -> str:
    return f" of {asked.publication}" if asked.publication else ""


def crawl_of(store: Repository, tag: CommitTag, commit: str) -> Commit:
    """Return the crawl's own commit of a snapshot, below additions made since."""
    crawl = sequence.crawl_commit(store, commit)
    if crawl is None or crawl.message.tag != tag:
        raise Damaged(f"{store.path}: {commit} is no snapshot {tag}; `webarc-agent verify` says more")
    return crawl


# == documents ========================================================================================================


#: Files of a folder that belong to its ARC: path inside the folder → blob.
Files = Mapping[str, str]
_NONE: Final[Files] = {}
_DOCUMENT: Final = b"%s %s\0" % (FILE, DATA_XML.encode())


@dataclass(frozen=True, slots=True)
class ExportedDocument:
    """The own files of an ARC: data, data.xml, head and additions; or files in a folder that is none.

    `path` is that of its folder in the domain. `before` has the files that it had in the snapshot exported before,
    `seen` those that the publication saw; None: it was not there.
    """

    path: str
    files: Files
    before: Files | None
    seen: Files | None

    @property
    def data(self) -> str:
        """The name of its data file; empty without one."""
        return data_of(self.files)

    @property
    def data_xml(self) -> str:
        """The blob of its data.xml; empty without one."""
        return self.files.get(DATA_XML, "")

    @property
    def head(self) -> str:
        """The blob of its headers.http; empty without one."""
        return self.files.get(HEADERS, "")

    @property
    def is_whole(self) -> bool:
        """Whether it has what makes a document: data.xml and a data file."""
        return bool(self.data_xml and self.data)

    @property
    def is_changed(self) -> bool:
        """Whether any of its files differs from what it was before."""
        return self.files is not self.before and self.files != self.before

    def additions(self) -> Iterator[tuple[str, str]]:
        """Yield path and blob of what users added, in order."""
        own = (DATA_XML, HEADERS, self.data)
        return ((path, self.files[path]) for path in sorted(self.files) if path not in own)


def data_of(files: Files) -> str:
    """Return the name of the data file among the own files of an ARC; empty without one."""
    return next((path for path in files if is_data_file(path) and "/" not in path), "")


@dataclass(frozen=True, slots=True)
class ListedRedirect:
    """A line of a list of redirects: whether it was there before, whether the publication saw it.

    `only_seen`: the state has another line of this URL, or none.
    """

    redirect: Redirect
    was_there: bool
    is_seen: bool
    only_seen: bool = False


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder of a tree, with the same folder before and as it was seen; None where it is not there."""

    path: str
    tree: str
    before: str | None
    seen: str | None


def documents(
    store: Repository, tree: str, before: str | None = None, seen: str = "", *, every: bool = True
) -> Iterator[ExportedDocument]:
    """Yield the documents of a tree, in its order. Raises Damaged if a tree cannot be read.

    `seen` is what the publication saw, empty for all of it. Without `every`, only those that differ from `before`.
    """
    stack = [iter((_Folder("", tree, before, seen or tree),))]
    while stack:
        folder = next(stack[-1], None)
        if folder is None:
            stack.pop()
        elif every or folder.tree != folder.before:
            document, below = _opened(store, folder)
            if document is not None and (every or document.is_changed):
                yield document
            if below is not None:
                stack.append(below)


def listed_redirects(
    store: Repository, tree: str, before: str | None = None, seen: str = ""
) -> Iterator[ListedRedirect]:
    """Yield the redirects of a domain's tree, list by list, by URL. Raises Damaged."""
    tops = [store.find(root, REDIRECTS) if root else None for root in (tree, before, seen or tree)]
    for place, entry in redirect_lists.places(store, tops[0]):
        was, saw = (
            store.find(top.oid, place.partition("/")[2]) if top is not None and top.is_tree else None
            for top in tops[1:]
        )
        now = redirect_lists.lines(store, entry, place)
        old, witnessed = (now if other == entry else redirect_lists.lines(store, other, place) for other in (was, saw))
        there, watched = frozenset(old), frozenset(witnessed)
        redirects = [ListedRedirect(redirect, redirect in there, redirect in watched) for redirect in now]
        redirects += [ListedRedirect(redirect, False, True, only_seen=True) for redirect in watched.difference(now)]
        yield from sorted(redirects, key=lambda listed: (listed.redirect, listed.only_seen))


@dataclass(frozen=True, slots=True)
class Unit:
    """What is exported in one piece: the snapshot itself (None), a document, a redirect, the list of what was met.

    `met` says when the crawl met a document or redirect unchanged.
    """

    what: ExportedDocument | ListedRedirect | MetList | None = None
    met: Met | None = None


def units(exported: Exported, skipped: int = 0) -> Iterator[Unit]:
    """Yield what a snapshot has, but for the first `skipped` pieces, whose bodies are not read."""
    return islice(_units(exported), skipped, None)


def _units(exported: Exported) -> Iterator[Unit]:
    yield Unit()
    store, place = exported.store, (exported.store, exported.tree, exported.before, exported.seen)
    met_list = exported.met()
    met = MetInOrder(store, exported.met_in, met_list) if met_list is not None else None
    for document in documents(*place):
        yield Unit(document, met.arc(document.path) if met is not None and document.seen is not None else None)
    for listed in listed_redirects(*place):
        yield Unit(listed, met.redirect(listed.redirect.url) if met is not None and listed.is_seen else None)
    if met_list is not None:
        yield Unit(redirect_lists.narrowed(store, met_list, exported.met_in, exported.seen or exported.tree))


def _opened(store: Repository, folder: _Folder) -> tuple[ExportedDocument | None, Iterator[_Folder] | None]:
    """Return the document of a folder, and the folders below that may have more."""
    raw = store.read_tree(folder.tree)
    files, inner = _own(store, raw, folder.tree, is_root=not folder.path)
    others: list[Files | None] = []
    for other in (folder.before, folder.seen):
        beside = raw if other == folder.tree else b"" if other is None else store.read_tree(other)
        if other is None or (_DOCUMENT in raw) != (_DOCUMENT in beside):
            others.append(None)  # what belongs to an ARC here belongs to another one there
        elif other == folder.tree:
            others.append(files)
        else:
            others.append(_own(store, beside, other, is_root=not folder.path)[0] or None)
    document = ExportedDocument(folder.path, files, *others) if files else None
    return document, None if inner is None else _below(store, folder, raw, inner)


def _own(store: Repository, raw: bytes, tree: str, *, is_root: bool) -> tuple[Files, frozenset[str] | None]:
    """Return the own files of a folder, and the names of folders in it that belong to its ARC; None: it has no folders.

    Folders of an ARC belong to it unless they lead to other ARCs.
    """
    is_arc = _DOCUMENT in raw
    files: dict[str, str] = {}
    own: list[str] = []
    has_folders = False
    for mode, name, oid in read_lines(raw, f"{store.path}: {tree}"):
        if mode not in FOLDERS:
            files[os.fsdecode(name)] = oid.hex()
            continue
        has_folders = True
        if is_arc and not _leads_to_arcs(store, oid.hex()):
            folder = os.fsdecode(name)
            own.append(folder)
            files |= store.files(oid.hex(), folder)
    if is_root and REDIRECTS not in own and has_folders:
        own.append(REDIRECTS)
    return files or _NONE, frozenset(own) if has_folders else None


def _leads_to_arcs(store: Repository, tree: str) -> bool:
    """Return whether a folder is an ARC or contains one, at any depth; most are, which their bytes show."""
    raw = store.read_tree(tree)
    if _DOCUMENT in raw:
        return True
    return any(
        _leads_to_arcs(store, oid.hex()) for mode, _, oid in read_lines(raw, f"{store.path}: {tree}") if mode in FOLDERS
    )


def _below(store: Repository, folder: _Folder, raw: bytes, own: frozenset[str]) -> Iterator[_Folder]:
    """Yield the folders in a folder, but for its `own`, each with the same one before and as it was seen."""
    others = [
        None if other is None else None if other == folder.tree else _Finder(store, other)
        for other in (folder.before, folder.seen)
    ]
    for line in read_lines(raw, f"{store.path}: {folder.tree}"):
        if line[0] not in FOLDERS:
            continue
        name, oid = os.fsdecode(line[1]), line[2].hex()
        if name in own:
            continue
        before, seen = (
            finder.find(line) if finder is not None else oid if other == folder.tree else None
            for finder, other in zip(others, (folder.before, folder.seen), strict=True)
        )
        yield _Folder(f"{folder.path}/{name}" if folder.path else name, oid, before, seen)


class FolderLines:
    """Git's bytes of a folder, and the places where its lines begin: finds names without an object for each."""

    __slots__ = ("_raw", "_starts")

    def __init__(self, raw: bytes, name: str) -> None:
        """Read git's bytes of a folder. Raises Damaged, with `name`, for others."""
        self._raw = raw
        self._starts = array("Q")
        upto = 0
        for match in LINE.finditer(raw):
            self._starts.append(match.start())
            upto += match.end() - match.start()
        if upto != len(raw):
            raise Damaged(f"{name} is no tree that can be read")

    @property
    def weight(self) -> int:
        """Bytes of memory, for a cache's bound."""
        return 500 + len(self._raw) + 8 * len(self._starts)

    def folder(self, name: str) -> str | None:
        """Return the id of a folder in it; None without one."""
        return next((folder_id for mode in FOLDERS if (folder_id := self._find(mode, name)) is not None), None)

    def file(self, name: str) -> str | None:
        """Return the id of a file in it; None without one."""
        return self._find(FILE, name)

    def _find(self, mode: bytes, name: str) -> str | None:
        line = b"%s %s\0" % (mode, os.fsencode(name))
        at = self._raw.find(line)
        while at >= 0:
            # A name may have in it what looks like a line.
            place = bisect_left(self._starts, at)
            if place < len(self._starts) and self._starts[place] == at:
                begin = at + len(line)
                return self._raw[begin : begin + 20].hex()
            at = self._raw.find(line, at + 1)
        return None


class _Finder:
    """Finds folders in another tree by the lines of one, in git's order."""

    def __init__(self, store: Repository, tree: str) -> None:
        self._lines = read_lines(store.read_tree(tree), f"{store.path}: {tree}")
        self._line: Line | None = next(self._lines, None)

    def find(self, line: Line) -> str | None:
        """Return the id of the folder of that name; None without one. Names are asked for in order."""
        wanted = key(line)
        while self._line is not None and key(self._line) < wanted:
            self._line = next(self._lines, None)
        if self._line is None or self._line[0] not in FOLDERS or key(self._line) != wanted:
            return None
        return self._line[2].hex()
