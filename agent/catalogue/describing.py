"""Describes a capture in the fields of its record, without any input: from git, and from the report if it is there.

A field whose value is not known stays empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from agent.catalogue import counting
from agent.catalogue.counting import Count
from agent.system import jsonfile
from webarcfs.archive.catalogue.captures import Capture
from webarcfs.archive.catalogue.record import Occasion, Part, Record, State, Value
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import versions
from webarcfs.archive.model.arc_paths import HEADERS, arc_path, split
from webarcfs.archive.model.errors import NotFound, WebarcError
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.warc import http_response

#: The setter of fields that nobody typed.
SYSTEM = "webarcfs"
_DAY = 86_400


def records(archive: Archive, found: Iterable[Capture]) -> Iterator[Record]:
    """Yield the record of each capture, numbered; each is counted by the difference to its publication's before it."""
    newest: dict[str, Record] = {}
    for number, capture in enumerate(found, 1):
        record = described(archive, capture, number, newest.get(capture.publication))
        newest[capture.publication] = record
        yield record


def described(archive: Archive, capture: Capture, number: int, before: Record | None = None) -> Record:
    """Return the record of a capture. `before` is one of the same publication that is counted already."""
    record = Record(
        id=capture.job,
        number=number,
        publication=capture.publication,
        state=_state(capture),
        complete=capture.is_complete,
        release=_release(capture),
        parts=capture.parts,
    )
    texts = {**_from_git(archive, capture), **_from_report(archive, capture)}
    at = record.date or now()
    record = record.with_values({**texts, **_counted(archive, record, before)}, SYSTEM, at)
    return replace(record, title=Value(_title(record), SYSTEM, at))


def _state(capture: Capture) -> State:
    """Return the state of a capture that needs no decision: released, unless its publication was held."""
    return State.CAPTURED if any(part.is_held for part in capture.parts) else State.RELEASED


def _release(capture: Capture) -> str:
    return "by-hand" if any(part.is_held for part in capture.parts) else "automatic"


def _from_git(archive: Archive, capture: Capture) -> dict[int, str]:
    domains = [part.tag.domain for part in capture.parts]
    date = min(part.tag.crawl_time for part in capture.parts)
    last = max(part.tag.crawl_time for part in capture.parts)
    span = format_time(date) if (last - date).total_seconds() <= _DAY else f"{format_time(date)} to {format_time(last)}"
    places = ", ".join(str(archive.repository(domain).relative_to(archive.root)) for domain in domains)
    return {
        1: capture.job,
        4: "Internet",
        5: Occasion.REGULAR,
        7: span,
        9: _server(archive, capture.parts[0]),
        10: places,
        12: ", ".join(domains),
        21: "complete" if capture.is_complete else "incomplete",
    }


def _from_report(archive: Archive, capture: Capture) -> dict[int, str]:
    """Return what only the report of the job knows; nothing where it is gone."""
    try:
        summary = jsonfile.read(archive.reports / capture.job / "summary.json") or {}
        started, finished = (str(summary.get(key, "")) for key in ("started", "finished"))
        seconds = int((parse_time(finished) - parse_time(started)).total_seconds())
    except (WebarcError, OSError):
        return {}
    return {29: f"{seconds} s", 31: finished}


def _counted(archive: Archive, record: Record, before: Record | None) -> dict[int, str]:
    """Return the fields that counting fills, by the difference to the record before."""
    counted = _count_of(archive, before)
    count, old = counted if counted is not None else (Count(), {})
    earlier = count.extensions
    trees = {part.tag.domain: _tree(archive, part) for part in record.parts}
    for domain in sorted(old.keys() | trees.keys()):
        store = Repository(archive.repository(domain))
        count += counting.difference(store, old.get(domain), trees.get(domain))
    new = sorted(count.extensions.keys() - earlier.keys())
    return {
        22: str(count.bytes),
        23: str(count.files),
        24: str(count.folders),
        25: counting.written(count.extensions) or "none",
        28: ", ".join(new) or "none",
        34: "yes",
    }


def _count_of(archive: Archive, before: Record | None) -> tuple[Count, dict[str, str]] | None:
    """Return what was counted of the record before, and its trees by domain; None if one of them is gone."""
    if before is None or not before.text(34):
        return None
    trees = {part.tag.domain: tree for part in before.parts if (tree := _tree(archive, part)) is not None}
    if len(trees) < len(before.parts):
        return None
    size, files, folders = (int(before.text(number) or 0) for number in (22, 23, 24))
    return Count(size, files, folders, counting.parsed(before.text(25))), trees


def _tree(archive: Archive, part: Part) -> str | None:
    """Return the tree that a part's publication saw; None where it is not there any more."""
    try:
        return part.seen or versions.tree_of(Repository(archive.repository(part.tag.domain)), part.tag)
    except NotFound:
        return None


def _title(record: Record) -> str:
    return f"{record.text(4)}: {record.text(12)}, {record.text(7)}"


def _server(archive: Archive, part: Part) -> str:
    """Return how the server of a part named itself, in the head of its start page."""
    store = Repository(archive.repository(part.tag.domain))
    arc = split(arc_path(f"http://{part.tag.domain}/"))[1]
    try:
        entry = store.find(versions.tree_of(store, part.tag), f"{arc}/{HEADERS}")
        head = http_response.parse_head(store.read(entry.oid)) if entry is not None else None
    except WebarcError:
        return "not told"
    return (head.get("server") if head is not None else "") or "not told"
