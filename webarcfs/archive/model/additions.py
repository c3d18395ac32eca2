"""Users' additions to ARCs, as values, their form in the journal, and the result of committing them. Pure.

An addition belongs to one *version* of an ARC: the crawlTime in its data.xml, which names the crawl that stored it. It
is never put into another version (/Ar-10/). A file's body is named by the object id that git will give it, so a pending
file and the committed one are the same version to a reader.

The result of a commit has the progress of each log of the journal, the dropped additions, and the cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webarcfs.archive.model.errors import Damaged

# == addition, pure ===================================================================================================


#: Made once: json.dumps makes an encoder for each call with other than its default options.
_AS_JSON = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Author:
    """The author of an addition in its commit: `name <login@host>`."""

    name: str
    mail: str


@dataclass(frozen=True, slots=True)
class ArcVersion:
    """One version of an ARC: `arc` is its path relative to `domain`, `version` the crawlTime of its data.xml."""

    domain: str
    arc: str
    version: str


@dataclass(frozen=True, slots=True)
class AddFile:
    """A new file at `path` inside the ARC (`notes.txt`, `more/deep/w.txt`); `blob` is git's id of its bytes.

    `replaces` is the blob that the same writer confirmed under this name before (at an fsync, say): only that blob may
    exist there already.
    """

    place: ArcVersion
    path: str
    blob: str
    size: int
    author: Author
    time: int
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class AddNodes:
    """New data nodes: serialised elements, each with the namespaces that it needs, to be spliced into data.xml.

    `source` is the addition that was renamed onto data.xml, and is removed; empty if the nodes were written there.
    """

    place: ArcVersion
    nodes: bytes
    author: Author
    time: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """A new name for an addition inside its ARC, by its maker, whether or not it is in git already."""

    place: ArcVersion
    old: str
    new: str
    author: Author
    time: int


@dataclass(frozen=True, slots=True)
class Removal:
    """The end of a provisional file: its maker removed it, or it settled. Only logs of provisional files have it."""

    place: ArcVersion
    path: str
    author: Author
    time: int


Addition = AddFile | AddNodes | Move | Removal


def encode(addition: Addition) -> bytes:
    """Return one line of ASCII without its newline; it excludes the nodes of AddNodes, which are a body."""
    place, author = addition.place, addition.author
    fields: dict[str, Any] = {
        "domain": place.domain,
        "arc": place.arc,
        "version": place.version,
        "author": [author.name, author.mail],
        "time": addition.time,
    }
    match addition:
        case AddFile():
            fields |= {"kind": "file", "path": addition.path, "blob": addition.blob, "size": addition.size}
            fields |= {"replaces": addition.replaces} if addition.replaces else {}
        case AddNodes():
            fields |= {"kind": "nodes"}
            fields |= {"source": addition.source} if addition.source else {}
        case Move():
            fields |= {"kind": "move", "old": addition.old, "new": addition.new}
        case Removal():
            fields |= {"kind": "removal", "path": addition.path}
    # Names that are not UTF-8 have surrogates, which JSON can encode in ASCII.
    return _AS_JSON(fields).encode("ascii")


def decode(line: bytes, nodes: bytes = b"") -> Addition:
    """Return the inverse of `encode`. Raises Damaged for an invalid line."""
    try:
        fields = json.loads(line)
        place = ArcVersion(*_texts(fields, "domain", "arc", "version"))
        author = Author(*map(str, fields["author"]))
        time = int(fields["time"])
        match fields["kind"]:
            case "file":
                path, blob = _texts(fields, "path", "blob")
                return AddFile(place, path, blob, int(fields["size"]), author, time, str(fields.get("replaces", "")))
            case "nodes":
                return AddNodes(place, nodes, author, time, str(fields.get("source", "")))
            case "move":
                old, new = _texts(fields, "old", "new")
                return Move(place, old, new, author, time)
            case "removal":
                [path] = _texts(fields, "path")
                return Removal(place, path, author, time)
            case kind:
                raise Damaged(f"an addition of a kind that is not known: {kind!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"not an addition: {error!r}: {line[:200]!r}") from None


def _texts(fields: dict[str, Any], *names: str) -> list[str]:
    return [str(fields[name]) for name in names]


# == committed, pure ==================================================================================================


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a commit: seconds, and bytes of the trees above the ARCs, which each commit writes once."""

    seconds: float = 0.0
    shared_bytes: int = 0
    additions: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """An addition that did not get into git, with the reason: a crawl took its ARC or place, or it was damaged."""

    log: str
    number: int
    addition: Addition
    reason: str
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """The state of a domain's additions: each log is done up to a number, and git has all that were not dropped.

    `damage`: the spans of each log that could not be read. Git lacks the records in them.
    """

    domain: str
    upto: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    commits: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    damage: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
