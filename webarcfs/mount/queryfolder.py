"""`.query/<condition>/`: what a condition finds, as links into `.snapshots` (DESIGN.md section 5; /Cl-6/).

A folder of links is one answer (queries.py), and its number says so: in another state of the archive the same condition
is another folder. Whoever is inside one, or reads its listing, keeps that answer. Safe for any thread.
"""

# ruff: noqa: D102 # what the methods mean stands in base.py, once
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from webarcfs.archive.errors import NotFound
from webarcfs.archive.model import CommitTag
from webarcfs.mount.base import Attrs, Folder, Node, number, seconds
from webarcfs.mount.links import Link
from webarcfs.mount.queries import Answer, Queries, Stamp

#: Its name in the mount's root.
QUERY = ".query"
_NUMBER = re.compile(r"[0-9]{6}")


@dataclass(frozen=True)
class QueryFolder(Folder):
    """`.query`: lists nothing, and finds a folder for every condition that SQLite takes."""

    queries: Queries
    lasting = False

    @property
    def old(self) -> bool:
        return True

    @property
    def settled(self) -> bool:
        return False

    @property
    def ino(self) -> int:
        return number("queries")

    def attrs(self) -> Attrs:
        try:
            time = self.queries.stamp().mtime
        except NotFound:
            time = 0
        return Attrs(self.kind, 0, time, self.ino)

    def is_slow(self, name: str = "") -> bool:
        return bool(name) and not self.queries.is_known(name)

    def names(self) -> Iterator[str]:
        return iter(())

    def lookup(self, name: str) -> Node:
        answer, stamp = self.queries.find(name)
        return AnswerFolder(name, stamp, answer)


@dataclass(frozen=True)
class AnswerFolder(Folder):
    """`.query/<condition>/`: `000001` and so on, a link for each hit, in the order that was asked for."""

    condition: str
    moment: Stamp
    answer: Answer = field(compare=False, repr=False)

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        stamp = self.moment
        state = (str(stamp.inode), str(stamp.size), str(stamp.time), stamp.counter.hex())
        return number("answer", self.condition, *state)

    def attrs(self) -> Attrs:
        return Attrs(self.kind, 0, self.moment.mtime, self.ino)

    def is_slow(self, name: str = "") -> bool:  # noqa: ARG002 # whichever hit is asked for, all are looked for
        return not self.answer.is_there

    def names(self) -> Iterator[str]:
        return (f"{place:06}" for place in range(1, len(self.answer.hits()) + 1))

    def lookup(self, name: str) -> Node:
        hits = self.answer.hits() if _NUMBER.fullmatch(name) else ()
        place = int(name) if hits else 0
        if not 1 <= place <= len(hits):
            raise NotFound(f"the condition {self.condition!r} has no hit {name!r}")
        target = f"../../.snapshots/{hits[place - 1]}"
        tag = CommitTag.parse(hits[place - 1].partition("/")[0])
        return Link(f"query/{target}", target, seconds(tag.crawl_time))
