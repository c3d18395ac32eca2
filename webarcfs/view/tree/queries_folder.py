"""`.query/<condition>/`: the documents of a condition, as links into `.snapshots` (/Cl-6/).

The kernel splits paths at each slash, also inside the quotes of a condition. So a name that ends inside quotes is the
beginning of a condition: a folder in which the next name continues it.

A folder of links is one answer (query_answers.py), and its inode number identifies it: in another state of the archive,
the same condition is another folder. A process inside one, or reading its listing, keeps that answer. Safe for any
thread.

The kernel keeps what is in such a folder, and asks for its name each time; so nothing has to be dropped.
"""

# ruff: noqa: D102 # view/node.py specifies the methods
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from webarcfs.archive.index.condition import from_name, open_quote
from webarcfs.archive.model.errors import NameTooLong, NotFound
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.view.node import Attrs, Folder, Node, number, seconds
from webarcfs.view.state.query_answers import SLASH, Queries, QueryAnswer, Stamp, unanswered
from webarcfs.view.tree.symlink import Symlink

#: Its name in the mount's root.
QUERY = ".query"
#: The name of the folder of searches.
SEARCH = ".search"
#: Most bytes of a condition, as of a path (PATH_MAX); SQLite would accept sixteen times as many (query.py).
LONGEST = 4096
_NUMBER = re.compile(r"[0-9]{6}")


@dataclass(frozen=True)
class QueryFolder(Folder):
    """`.query`: lists no names, and contains a folder for every condition that SQLite accepts."""

    queries: Queries
    names_cacheable: ClassVar[bool] = False
    attrs_cacheable: ClassVar[bool] = False

    @property
    def old(self) -> bool:
        return True

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
        condition, quote = self._with(name)
        return bool(name) and not quote and not self.queries.is_known(condition)

    def names(self) -> Iterator[str]:
        return iter(())

    def lookup(self, name: str) -> Node:
        condition, quote = self._with(name)
        if quote:
            return Beginning(self.queries, condition, quote)
        answer, stamp = self.queries.find(condition)
        return AnswerFolder(condition, stamp, answer)

    def _with(self, name: str) -> tuple[str, str]:
        """Return the condition up to and including a name in this folder, and the quote that it ends inside."""
        return name, _open_quote(name)


@dataclass(frozen=True)
class SearchFolder(QueryFolder):
    """`.search`: lists no names, and contains a folder for every search; a slash in one is written `%2F`."""

    @property
    def ino(self) -> int:
        return number("searches")

    def _with(self, name: str) -> tuple[str, str]:
        return name, ""


@dataclass(frozen=True)
class Beginning(QueryFolder):
    """`.query/path LIKE '`: the beginning of a condition, up to a slash inside quotes. Its listing is empty, and logs
    that the condition is incomplete.
    """

    begun: str
    quote: str

    @property
    def ino(self) -> int:
        return number("begun", self.begun)

    def names(self) -> Iterator[str]:
        unanswered(self.begun, f"the quote {self.quote} is never closed | {SLASH}")
        return iter(())

    def lookup(self, name: str) -> Node:
        condition, _ = self._with(name)
        if len(os.fsencode(condition)) > LONGEST:
            raise NameTooLong(f"a condition of more than {LONGEST} bytes")
        if self.begun.lower().endswith(("http:", "https:")):  # no URL begins so: the kernel drops one of two slashes
            raise unanswered(condition, "// within quotes comes here as one slash; it is written %2F%2F")
        return super().lookup(name)

    def _with(self, name: str) -> tuple[str, str]:
        return f"{self.begun}/{name}", _open_quote(name, f"{self.quote}/")


def _open_quote(name: str, before: str = "") -> str:
    """Return the quote that a name ends inside. Invalid text ends inside none: it is refused as a condition."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return ""
    return open_quote(before + from_name(name))


@dataclass(frozen=True)
class AnswerFolder(Folder):
    """`.query/<condition>/`: `000001` and so on, a link for each hit, in the requested order.

    Each slash in the condition adds a folder above them.
    """

    condition: str
    moment: Stamp
    answer: QueryAnswer = field(compare=False, repr=False)

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

    def is_slow(self, name: str = "") -> bool:  # noqa: ARG002 # any hit needs the whole answer
        return not self.answer.is_there

    def names(self) -> Iterator[str]:
        return (f"{place:06}" for place in range(1, len(self.answer.hits()) + 1))

    def lookup(self, name: str) -> Node:
        hits = self.answer.hits() if _NUMBER.fullmatch(name) else ()
        place = int(name) if hits else 0
        if not 1 <= place <= len(hits):
            raise NotFound(f"the condition {self.condition!r} has no hit {name!r}")
        up = "../" * (2 + self.condition.count("/"))
        target = f"{up}.snapshots/{hits[place - 1]}"
        tag = CommitTag.parse(hits[place - 1].partition("/")[0])
        return Symlink(f"query/{target}", target, seconds(tag.crawl_time))
