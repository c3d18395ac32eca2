"""Describes a capture in the fields of its record, without any input: from git, and from the report if it is there.

When its job ends, its circumstances are known, too: program, settings, person. A field whose value is not known stays
empty.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.catalogue import counting
from agent.catalogue.counting import Count
from agent.system import jsonfile
from webarcfs.archive.catalogue import formats
from webarcfs.archive.catalogue.captures import Capture
from webarcfs.archive.catalogue.record import OWN, Occasion, Part, Record, State, Value
from webarcfs.archive.catalogue.steps import Way
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Release
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import sequence, versions
from webarcfs.archive.model.arc_paths import HEADERS, arc_path, split
from webarcfs.archive.model.errors import NotFound, SettingsError, WebarcError
from webarcfs.archive.model.metadata import CommitTag, format_time, now, parse_time
from webarcfs.warc import http_response

_log = logging.getLogger(__name__)
#: The setter of fields that nobody typed.
SYSTEM = "webarcfs"
_DAY = 86_400
#: The event of a record that was there before its job: the job has begun, for the person who asked for it.
BEGUN = "begun"
#: Fields that are set before the download, by people and for the person who entered the record.
_TYPED = frozenset({2, 3, 4, 5, 6, 8, 16, 20})


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What only the job itself knows of a capture: texts of fields by number, and when readers may see it.

    `release` is None if it is not known; then git says whether the capture was held. `way` says which steps follow.
    `record` is the record that was there before the job.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    release: Release | None = None
    closed_for: str = ""
    way: Way | None = None
    occasion: Occasion = Occasion.REGULAR
    record: str = ""


def described(
    archive: Archive, capture: Capture, before: Record | None = None, about: Circumstances | None = None
) -> Record:
    """Return the record of a capture, without a number; the circumstances `about` it are known when its job ends.

    `before` is a record of the same publication that is counted already: the cost follows the change since.
    """
    about = about or Circumstances()
    release = about.release or (Release.BY_HAND if capture.is_held else Release.AUTOMATIC)
    state = _state(release, capture.is_complete, about.way)
    record = Record(
        id=capture.job,
        number=0,
        publication=capture.publication,
        state=state,
        occasion=about.occasion,
        complete=capture.is_complete,
        release=release,
        closed_for=about.closed_for,
        parts=capture.parts,
    )
    texts = {**_from_git(archive, capture), **_from_report(archive, capture), **about.texts}
    counted = counted_fields(archive, record, before) if state is not State.CAPTURED else {}
    record = record.with_values({**texts, **counted}, SYSTEM, now())
    record = replace(record, title=Value(title_of(record), SYSTEM, now()))
    return record.with_event("captured", SYSTEM, "", record.state)


def empty(job: str, publication: str, about: Circumstances) -> Record:
    """Return the record of a job that published nothing: a line for people, and no step follows."""
    record = Record(id=job, number=0, publication=publication, state=State.EMPTY, release=about.release or "automatic")
    return record.with_values({1: job, **about.texts}, SYSTEM, now()).with_event(
        "captured", SYSTEM, "nothing", State.EMPTY
    )


def into(record: Record, captured: Record) -> Record:
    """Return a record that was there before its job, with what the job captured; what people typed stays.

    `captured` is what `described` or `empty` returned.
    """
    typed = {number: value for number, value in record.values.items() if number in _TYPED}
    who = next((each.by for each in reversed(record.events) if each.what == BEGUN), SYSTEM)
    copied = {32: Value(who, SYSTEM, now())} if who != SYSTEM else {}
    return replace(
        captured,
        id=record.id,
        number=record.number,
        job=captured.id if captured.id != record.id else "",
        occasion=record.occasion,
        title=record.title if record.title.text else captured.title,
        language=record.language,
        access=record.access,
        values=dict(sorted({**captured.values, **typed, **copied, 1: Value(record.id, SYSTEM, now())}.items())),
        attachments=record.attachments,
        events=(*record.events, *(replace(each, by=who) for each in captured.events)),
    )


def _state(release: Release, is_complete: bool, way: Way | None) -> State:
    """Return the state of a capture: released, unless something comes before that; else counted at once."""
    is_plain = way is None or not (way.set_up or way.step_by_step or way.two_persons)
    if release is Release.AUTOMATIC or (release is Release.WHEN_CHECKED and is_complete and is_plain):
        return State.RELEASED
    return State.CAPTURED if way is not None and way.step_by_step else State.COUNTED


def _from_git(archive: Archive, capture: Capture) -> dict[int, str]:
    domains = list(dict.fromkeys(part.tag.domain for part in capture.parts))
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
        33: ", ".join(f"{archive.content.name}/{part.tag.domain}.git {part.tag.ref}" for part in capture.parts),
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


def counted_fields(archive: Archive, record: Record, before: Record | None) -> dict[int, str]:
    """Return the fields that counting fills, by the difference to the record before where git has both trees."""
    by_tree = not any(part.seen == OWN for each in (record, before) if each is not None for part in each.parts)
    counted = _count_of(archive, before) if by_tree else None
    count, old = counted if counted is not None else (Count(), {})
    earlier = count.extensions if by_tree or before is None else counting.parsed(before.text(25))
    parts = {part.tag.domain: part for part in record.parts}
    for domain in sorted(old.keys() | parts.keys()):
        store, part = Repository(archive.repository(domain)), parts.get(domain)
        if part is not None and part.seen == OWN:
            count += counting.stored(store, versions.tree_of(store, part.tag), _own_tags(store, record.publication))
        else:
            count += counting.difference(store, old.get(domain), None if part is None else _tree(archive, part))
    new = sorted(count.extensions.keys() - earlier.keys())
    programs = _formats(archive)
    return {
        22: str(count.bytes),
        23: str(count.files),
        24: str(count.folders),
        25: counting.written(count.extensions) or "none",
        26: formats.told(programs, count.extensions, by=False),
        27: formats.told(programs, count.extensions, by=True),
        28: ", ".join(new) or "none",
        34: "yes",
    }


def _formats(archive: Archive) -> dict[str, formats.Format]:
    """Return the register of formats; none where it has faults: a record never fails for them."""
    try:
        return formats.load(archive)
    except (SettingsError, OSError) as error:
        _log.warning("%s", error)
        return {}


def _count_of(archive: Archive, before: Record | None) -> tuple[Count, dict[str, str]] | None:
    """Return what was counted of the record before, and its trees by domain; None if one of them is gone."""
    if before is None or not before.text(34):
        return None
    trees = {part.tag.domain: tree for part in before.parts if (tree := _tree(archive, part)) is not None}
    if len(trees) < len(before.domains):
        return None
    size, files, folders = (int(before.text(number) or 0) for number in (22, 23, 24))
    return Count(size, files, folders, counting.parsed(before.text(25))), trees


def _own_tags(store: Repository, publication: str) -> set[CommitTag]:
    """Return the snapshots that a publication's crawls made."""
    found = (sequence.crawl_commit(store, oid) for oid in store.refs(CRAWLS).values())
    return {each.message.tag for each in found if each is not None and each.message.publication == publication}


def _tree(archive: Archive, part: Part) -> str | None:
    """Return the tree that a part's publication saw; None where it is not there any more."""
    try:
        return part.seen or versions.tree_of(Repository(archive.repository(part.tag.domain)), part.tag)
    except NotFound:
        return None


def title_of(record: Record) -> str:
    """Return the title of a record that nobody gave one: project, domains and date."""
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
