"""Plans a commit of pending additions: its trees and commits as objects in a pack, before any ref moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from webarcfs.archive.commit import batches, progress
from webarcfs.archive.commit.placement import AdditionTree
from webarcfs.archive.git.pack_writer import Pack
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import LogReader
from webarcfs.archive.model.addition import AddFile, Addition, Author, Move
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.commit_message import COMMITTER, AdditionsMessage
from webarcfs.archive.model.committed import Dropped
from webarcfs.archive.model.errors import Damaged, Exists, NotPermitted, Stale, WebarcError
from webarcfs.archive.model.metadata import CommitTag, now


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pending additions to a domain on `head`, in order; the progress of each log there, and its mark."""

    head: Commit | None
    found: tuple[tuple[LogReader, LogRecord], ...]
    done: Mapping[str, int]
    marks: Mapping[str, int]


@dataclass(slots=True)
class Plan:
    """Commits on top of `head`, oldest first, and the new marks (log → blob, log → number)."""

    head: Commit | None
    pack: Pack
    commits: list[str] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    upto: dict[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()


def planned(store: Repository, waiting: Waiting) -> Plan:
    """Plan the commits of pending additions. Raises OSError, Damaged when the repository cannot be read."""
    plan = Plan(waiting.head, Pack(store.path))
    plan.upto = {log: number for log, number in waiting.done.items() if number > waiting.marks.get(log, 0)}
    if waiting.found and plan.head is not None:
        for log, record in waiting.found:
            if not log.may_change:
                plan.upto[log.id] = max(record.number, plan.upto.get(log.id, 0))
        _plan_commits(store, waiting, plan, plan.head)
    plan.marks = {log: plan.pack.add("blob", progress.body(number)) for log, number in plan.upto.items()}
    return plan


def _plan_commits(store: Repository, waiting: Waiting, plan: Plan, head: Commit) -> None:
    writer = _Writer(store, head, plan)
    additions = [record.addition for _, record in waiting.found]
    wanted = batches.newest(additions)
    for indexes in batches.groups(additions):
        found = [(index, *waiting.found[index]) for index in indexes if index in wanted]
        commit = writer.commit([(log, replace(record, addition=wanted[index])) for index, log, record in found])
        plan.commits += [commit] if commit else []
    plan.dropped = tuple(writer.dropped)


class _Writer:
    """Makes the objects of successive commits."""

    def __init__(self, store: Repository, head: Commit, plan: Plan) -> None:
        pack = self._pack = plan.pack
        self._ground = AdditionTree(store, head.tree, lambda document: pack.add("blob", document))
        self._upto = plan.upto
        self._tag = head.message.tag
        self._parent, self._tree = head.oid, head.tree
        self.dropped: list[Dropped] = []

    def commit(self, found: Sequence[tuple[LogReader, LogRecord]]) -> str | None:
        """Make one commit of these additions, all of one author; return its id, None if it changed nothing."""
        placed = [record.addition for log, record in found if self._place(log, record)]
        arcs = {addition.place.arc for addition in placed}
        above = {"/".join(parts[:depth]) for parts in (arc.split("/") for arc in arcs) for depth in range(len(parts))}
        tree = self._ground.tree.write(lambda path, raw: self._store_tree(raw, shared=path in above - arcs))
        if tree == self._tree:
            return None
        last = placed[-1]
        raw = _commit(tree, self._parent, last.author, last.time, _message(self._tag, placed, self._upto))
        self._parent, self._tree = self._pack.add("commit", raw), tree
        return self._parent

    def _place(self, log: LogReader, record: LogRecord) -> bool:
        try:
            addition = record.addition
            self._ground.judge(addition)
            if isinstance(addition, AddFile) and self._add_body(log, record) != addition.blob:
                raise Damaged(f"{addition.path}: its body in the journal is damaged")
            self._ground.place(addition)
        except (WebarcError, FileNotFoundError) as error:
            if isinstance(error, Exists) and self._ground.has(record.addition):
                return False  # its mount wrote it again, since its log was gone
            damaged = not isinstance(error, Stale | Exists | NotPermitted)
            self.dropped.append(Dropped(log.id, record.number, record.addition, str(error), damaged))
            return False
        return True

    def _add_body(self, log: LogReader, record: LogRecord) -> str:
        body = log.body(record)
        return self._pack.add_file(body) if isinstance(body, Path) else self._pack.add("blob", body)

    def _store_tree(self, raw: bytes, *, shared: bool) -> str:
        oid = self._pack.add("tree", raw)
        self._pack.shared_bytes += self._pack.size_of(oid) if shared else 0
        return oid


def _message(tag: CommitTag, placed: Sequence[Addition], upto: Mapping[str, int]) -> str:
    added, renamed = [], []
    for addition in placed:
        arc = addition.place.arc
        match addition:
            case AddFile():
                added.append(f"{arc}/{addition.path}")
            case Move():
                renamed.append((f"{arc}/{addition.old}", f"{arc}/{addition.new}"))
            case _:
                added.append(f"{arc}/{DATA_XML}")
    return str(AdditionsMessage(tag, tuple(dict.fromkeys(added)), renamed, upto))


def _commit(tree: str, parent: str, author: Author, when: int, message: str) -> bytes:
    """Return git's bytes of a commit; times are in CET."""
    name, mail = COMMITTER
    lines = (
        f"tree {tree}",
        f"parent {parent}",
        f"author {_plain(author.name)} <{_plain(author.mail)}> {max(when, 0)} +0100",
        f"committer {name} <{mail}> {int(now().timestamp())} +0100",
        "",
        message,
    )
    return "\n".join(lines).encode("utf-8", "replace")


def _plain(text: str) -> str:
    """Return `text` in the form allowed in a commit's head (git-fast-import(1), "author")."""
    return "".join(char for char in text if char.isprintable() and char not in "<>").strip(" .,:;'\"\\") or "unknown"
