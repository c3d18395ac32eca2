"""What is exported: snapshots of domains, each with its tree and that of the snapshot exported before it.

A selection is decided once, and stays as it is while crawls publish and users add files: it names commits, which stay.
It can be written down, so that an interrupted export goes on with the same one. For a reader its repositories are those
of `gate/reader_repositories`: nothing that reads a selection has to know of rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from webarcfs.archive.catalogue import catalogue_database
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import publication_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.history import met_lists, sequence, versions
from webarcfs.archive.model.commit_message import Message
from webarcfs.archive.model.errors import Damaged, NotFound, UsageError
from webarcfs.archive.model.met_list import MetList
from webarcfs.archive.model.metadata import CommitTag, format_time
from webarcfs.gate.reader_repositories import ReaderRepositories

#: Most digits of a record's number.
_DIGITS = 15
#: Opens the repository of a domain.
Opener = Callable[[str], Repository]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for; all of it: every snapshot of every domain.

    `at`: one snapshot a domain, the state at that time; with a commitTag, of its domain alone. `record`: the snapshots
    of a record. `publication`: those of a publication's crawls. `since`: those of this domain after that snapshot, of
    which only differences are told. Of a record or a publication each snapshot is exported as its publication saw it.
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
class Chosen:
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
    message: Message
    time: int
    seen: str = ""
    met_in: str = ""

    def met(self) -> MetList | None:
        """Return the crawl's list of what it met unchanged; None if it has none. Raises Damaged."""
        return met_lists.read(self.store, self.message.met) if self.message.met else None


@dataclass(frozen=True, slots=True)
class Selection:
    """The snapshots to export: domain → snapshots, oldest first; domains are in order. Iterated as often as need be.

    `before` has, for the first snapshot of a domain, the tree to compare it with; no entry: none.
    """

    open: Opener
    chosen: Mapping[str, tuple[Chosen, ...]]
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
            for each in snapshots[number:]:
                crawl = _crawl(store, each.tag, each.commit)
                met_in = met_lists.seen_tree(crawl)
                yield Exported(store, each.tag, each.tree, before, crawl.message, crawl.time, each.seen, met_in)
                before = each.tree
            number = 0

    @property
    def newest(self) -> CommitTag:
        """The newest snapshot that is exported."""
        return max((each.tag for found in self.chosen.values() for each in found), key=lambda tag: tag.crawl_time)

    @property
    def name(self) -> str:
        """A name for files: the domain, if it is one."""
        return next(iter(self.chosen)).replace(":", "-") if len(self.chosen) == 1 else "webarc"

    @property
    def digest(self) -> str:
        """A value that tells this selection from others, wherever it is exported."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON, without the repositories."""
        rows = {
            domain: [[format_time(each.tag.crawl_time), each.commit, each.tree, each.seen] for each in found]
            for domain, found in self.chosen.items()
        }
        return {"snapshots": rows, "before": dict(self.before)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any], open_: Opener) -> Selection:
        """Return the inverse of `as_json`. Raises Damaged for anything else."""
        try:
            chosen = {
                str(domain): tuple(
                    Chosen(CommitTag.parse(f"{time}@{domain}"), str(commit), str(tree), str(seen))
                    for time, commit, tree, seen in rows
                )
                for domain, rows in found["snapshots"].items()
            }
            return cls(open_, chosen, {str(domain): str(tree) for domain, tree in found["before"].items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(f"no selection of snapshots: {error!r}") from None


def select(archive: Archive, asked: Asked, reader: ReaderRepositories | None = None) -> Selection:
    """Return what is to be exported; for a reader what it may see. Raises NotFound if that is nothing."""
    open_ = opener(archive, reader)
    chosen: dict[str, tuple[Chosen, ...]] = {}
    before: dict[str, str] = {}
    for domain, tags in _domains(archive, asked, reader):
        try:
            store = open_(domain)
        except NotFound:
            continue  # the reader sees nothing of it
        found = [each for each in _snapshots(store, domain, asked) if tags is None or each.tag in tags]
        if asked.since is not None:
            old = next((each for each in found if each.tag == asked.since), None)
            if old is None:
                raise NotFound(f"there is no snapshot {asked.since}{_of(asked)}")
            before[domain] = old.tree
            found = [each for each in found if each.tag > asked.since]
        if asked.at is not None:
            found = _up_to(found, asked, archive)
        if found:
            chosen[domain] = tuple(found)
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
    catalogue, name = Catalogue(archive), record_id
    if name.isdecimal():
        with catalogue_database.opened(archive, catalogue) as tables:
            name = (tables.id_of(int(name)) if len(name) <= _DIGITS else None) or name
    if reader is not None:
        shown = reader.gate.records(publication_of(name))
        if all(each.id != name for each in shown):
            raise NotFound(f"the catalogue has no record {record_id}")
    record, _ = catalogue.read(name)
    found: dict[str, set[CommitTag]] = {}
    for part in record.parts:
        found.setdefault(part.tag.domain, set()).add(part.tag)
    return found


def _snapshots(store: Repository, domain: str, asked: Asked) -> Iterator[Chosen]:
    """Yield the snapshots of a domain, oldest first; of a publication its own, as it saw them."""
    for tag, commit in versions.snapshots(store, domain):
        if asked.publication and _crawl(store, tag, commit).message.publication != asked.publication:
            continue
        tree, seen = store.commit(commit).tree, store.ref(tag.seen_ref) or ""
        if seen and (asked.publication or asked.record):
            tree, seen = seen, ""
        yield Chosen(tag, commit, tree, seen if seen != tree else "")


def _up_to(found: list[Chosen], asked: Asked, archive: Archive) -> list[Chosen]:
    """Return the snapshots up to a time; without a beginning, the last of them."""
    at = asked.at
    if isinstance(at, CommitTag):
        if all(each.tag != at for each in found):
            raise NotFound(f"there is no snapshot {at}{_of(asked)} in {archive.root}")
        at = at.crawl_time
    assert at is not None
    kept = [each for each in found if each.tag.crawl_time <= at]
    return kept if asked.since is not None else kept[-1:]


def _of(asked: Asked) -> str:
    return f" of {asked.publication}" if asked.publication else ""


def _crawl(store: Repository, tag: CommitTag, commit: str) -> Commit:
    """Return the crawl's own commit of a snapshot, below additions made since."""
    found = sequence.crawl_commit(store, commit)
    if found is None or found.message.tag != tag:
        raise Damaged(f"{store.path}: {commit} is no snapshot {tag}; `webarc-agent verify` says more")
    return found
