"""What the records of exported snapshots name, as rows of bytes: they sort by domain, time and place. Pure.

Files may be given in any order, and one snapshot's records may be in several of them; so all rows are collected first.
A row has no more than the id of a blob, whatever the size of the body.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from agent.importing.exported.records import NamedDocument, NamedFile, NamedRedirect
from webarcfs.archive.model.metadata import CommitTag, compact_time, parse_compact_time
from webarcfs.archive.model.redirects import place_of

_ARCS, _LISTS = b"1", b"2"
_DOCUMENT, _FILE = b"1", b"2"
_SEEN, _ONLY_SEEN = b"s", b"o"
#: The rows of one snapshot, in parts.
Rows = Iterator[list[bytes]]


@dataclass(frozen=True, slots=True)
class File:
    """A file of an ARC: its blob, None for that of the tree before; `seen` by the publication, or `only_seen`."""

    blob: str | None
    seen: bool
    only_seen: bool = False


@dataclass(slots=True)
class Arc:
    """The rows of one ARC: name → files. `data` is the name of its data file, empty without its record."""

    path: str
    data: str = ""
    seen: bool = True
    files: dict[str, File] = field(default_factory=dict)
    seen_files: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Lines:
    """The lines of one list of redirects, in their order, and those that the publication saw."""

    place: str
    lines: list[bytes] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)


def row_of(named: NamedDocument | NamedFile | NamedRedirect, blob: str | None) -> bytes:
    """Return the row of what a record names; `blob` is the id of its body, None where the record has none."""
    oid = (blob or "").encode()
    # No part contains a zero byte; so the rows of a place are together, and places sort by their bytes.
    match named:
        case NamedDocument():
            flags = _SEEN if named.seen else b""
            parts = [_ARCS, os.fsencode(named.arc), _DOCUMENT, named.name.encode(), oid, flags]
        case NamedFile():
            flags = _ONLY_SEEN if named.only_seen else _SEEN if named.seen else b""
            parts = [_ARCS, os.fsencode(named.arc), _FILE, os.fsencode(named.name), oid, flags]
        case NamedRedirect():
            flags = _ONLY_SEEN if named.only_seen else _SEEN if named.seen else b""
            parts = [_LISTS, place_of(named.redirect.url).encode(), str(named.redirect).encode(), flags]
    return b"\0".join([*_key(named.tag), *parts])


def by_snapshot(rows: Iterable[bytes], named: Collection[CommitTag]) -> Iterator[tuple[CommitTag, Rows]]:
    """Yield the snapshots, domain by domain, oldest first, with their rows, which must be read before the next.

    Those `named` come as well if they have none: a domain may have had nothing at the time.
    """
    left = iter(sorted(named, key=_key))
    next_ = next(left, None)
    split = (row.split(b"\0") for row in rows)
    for key, own in groupby(split, key=lambda parts: (parts[0], parts[1])):
        while next_ is not None and _key(next_) < key:
            yield next_, iter(())
            next_ = next(left, None)
        if next_ is not None and _key(next_) == key:
            next_ = next(left, None)
        domain, time = key
        yield CommitTag(parse_compact_time(time.decode()), domain.decode()), (parts[2:] for parts in own)
    while next_ is not None:
        yield next_, iter(())
        next_ = next(left, None)


def _key(tag: CommitTag) -> tuple[bytes, bytes]:
    return tag.domain.encode(), compact_time(tag.crawl_time).encode()


def places(rows: Rows) -> Iterator[Arc | Lines]:
    """Yield the ARCs of a snapshot in order of the bytes of their paths, then its lists of redirects."""
    for (section, place), own in groupby(rows, key=lambda parts: (parts[0], parts[1])):
        if section == _LISTS:
            found = Lines(place.decode())
            for _, _, line, flags in own:
                _add_line(found, line, flags)
            yield found
        else:
            arc = Arc(os.fsdecode(place))
            for parts in own:
                _add_file(arc, parts)
            yield arc


def _add_line(found: Lines, line: bytes, flags: bytes) -> None:
    into = {_SEEN: (found.lines, found.seen), _ONLY_SEEN: (found.seen,)}
    for lines in into.get(flags, (found.lines,)):
        if line not in lines[-1:]:  # the same record may be in two of the files
            lines.append(line)


def _add_file(arc: Arc, parts: list[bytes]) -> None:
    _, _, what, raw, oid, flags = parts
    name, blob = os.fsdecode(raw), oid.decode() or None
    if what == _DOCUMENT:
        arc.data, arc.seen = name, flags == _SEEN
    elif flags == _ONLY_SEEN:
        if blob:
            arc.seen_files[name] = blob
        return
    known = arc.files.get(name)
    arc.files[name] = File(blob or (known.blob if known else None), flags == _SEEN)
