"""`/snapshot/<record>`: a record as readers see it, its statistics, and its external links."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from urllib.parse import quote

from webarcfs.archive.catalogue import dublin_core, record_xml
from webarcfs.archive.catalogue.fields import BY_NUMBER
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.index.links_query import FoundLink, Question, ask
from webarcfs.archive.model.errors import Forbidden, NotFound
from webarcfs.archive.model.metadata import format_time
from webarcfs.gate.reader_records import RecordHead
from webarcfs.room import limits
from webarcfs.room.pages import counts, rows
from webarcfs.room.services import Services
from webarcfs.room.views import (
    ExternalLinkRow,
    FieldGroup,
    Link,
    LinksPage,
    PartRow,
    RecordPage,
)
from webarcfs.room.visit import Visit

#: Step of the workflow → its label (a msgid).
GROUPS = {
    "1": "Capture", "2": "Download", "3": "Copy", "4": "Conversion", "4.1": "Links", "4.2": "Error pages",
    "4.3": "Search links", "4.4": "XHTML", "5": "Index", "6": "Release", "7": "Backup", "8": "Measures",
}  # fmt: skip
#: Texts of a link, and pages with it, that a row shows.
_SHOWN = 3
#: Fields that the head of the page has already.
_IN_HEAD = frozenset({1, 21})


def head_of(services: Services, record_id: str) -> RecordHead:
    """Return the head of a record. Raises NotFound, also for one that readers may not see."""
    head = services.records.head(record_id)
    if head is None:
        raise NotFound(f"there is no snapshot {record_id}")
    return head


def record(visit: Visit, record_id: str) -> RecordPage:
    """Return the page of a record; of a closed one its description alone. Raises NotFound."""
    services = visit.services
    head = head_of(services, record_id)
    said = services.records.read(record_id)
    row = rows.snapshot_row(services, head)
    groups = field_groups(said, visit.language)
    same = [each for each in services.records.all() if each.publication == head.publication]
    at = same.index(head)
    neighbours = [
        Link(rows.record_href(each.id), label)
        for label, place in (("earlier", at + 1), ("later", at - 1))
        if 0 <= place < len(same) and (each := same[place])
    ]
    exports = tuple(Link(f"{row.href}.{kind}", kind.upper()) for kind in ("xml", "json", "dc"))
    if head.closed_until is not None:
        return RecordPage(row, True, groups, (), (), (), (), None, (), "", "", tuple(neighbours), ())
    total = counts.of_tags(services, head.tags)
    older = next((each for each in same[at + 1 :] if each.closed_until is None), None)
    return RecordPage(
        row=row,
        is_closed=False,
        groups=groups,
        starts=tuple(Link(href, url) for url, href in rows.start_urls(services, head)),
        parts=tuple(_part(services, head)),
        types=counts.slices(total.types),
        extensions=counts.slices(total.extensions),
        before=None if older is None else rows.snapshot_row(services, older),
        changes=() if older is None else counts.compared(counts.of_tags(services, older.tags).types, total.types),
        compare="" if older is None else f"/compare/{quote(older.id, safe='')}..{quote(head.id, safe='')}",
        links=f"{row.href}/links" if services.archive.links.exists() else "",
        neighbours=tuple(neighbours),
        exports=exports,
    )


def field_groups(said: Record, language: str) -> tuple[FieldGroup, ...]:
    """Return the fields of a record that have a text, by groups; measures are groups of their own."""
    found: list[FieldGroup] = []
    values = [(BY_NUMBER[number], value.text) for number, value in said.values.items() if number not in _IN_HEAD]
    for group, fields in groupby(values, key=lambda each: each[0].group):
        texts = tuple((each.number, each.de if language == "de" else each.en, text) for each, text in fields if text)
        if texts:
            found.append(FieldGroup(GROUPS[group], texts))
    for measure in said.measures:
        fields_of = ((BY_NUMBER[number], value.text) for number, value in measure.items())
        texts = tuple((each.number, each.de if language == "de" else each.en, text) for each, text in fields_of if text)
        if texts:
            found.append(FieldGroup(GROUPS["8"], texts))
    return tuple(found)


def _part(services: Services, head: RecordHead) -> Iterator[PartRow]:
    for tag in head.tags:
        found = counts.of_tag(services, tag)
        start = rows.frame_of(tag, rows.root_of(services, tag))
        yield PartRow(tag.domain, str(tag), start, found.documents, 0, found.bytes)


def exported(visit: Visit, record_id: str, kind: str) -> tuple[bytes, str]:
    """Return a record as readers see it, and its type: `xml`, `json` or `dc`. Raises NotFound, Forbidden if closed."""
    _must_be_open(head_of(visit.services, record_id))
    said = visit.services.records.read(record_id)
    if kind == "xml":
        return record_xml.write(said), "application/xml"
    if kind == "dc":
        return dublin_core.write(said, ""), "application/xml"
    return _as_json(said), "application/json"


def _as_json(said: Record) -> bytes:
    import json  # noqa: PLC0415 # one caller

    fields = {name: text for name, text in said.as_fields().items() if text}
    fields["domains"] = ", ".join(said.domains)
    return json.dumps(fields, ensure_ascii=False, indent=1).encode()


# -- external links ----------------------------------------------------------------------------------------------------


def links(visit: Visit, record_id: str) -> LinksPage:
    """Return the external links of a snapshot: each target with its texts and pages. Raises NotFound, Forbidden."""
    services = visit.services
    head = head_of(services, record_id)
    found = _external(services, head)
    pages, part = rows.pages_of(visit, len(found))
    shown = tuple(
        _link_row(head, number, target, each) for number, (target, each) in enumerate(found[part], part.start + 1)
    )
    row = rows.snapshot_row(services, head)
    return LinksPage(row, shown, pages, f"{row.href}/links.csv")


def links_as_csv(visit: Visit, record_id: str) -> bytes:
    """Return the external links of a snapshot as a table: number, target, text, page, times, window."""
    services = visit.services
    head = head_of(services, record_id)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("number", "target", "text", "page", "times", "window"))
    for number, (target, found) in enumerate(_external(services, head), 1):
        writer.writerows((number, target, each.text, each.page, each.times, each.window) for each in found)
    return text.getvalue().encode()


def _must_be_open(head: RecordHead) -> None:
    if head.closed_until is not None:
        raise Forbidden(f"the snapshot is closed until {format_time(head.closed_until)}")


def _external(services: Services, head: RecordHead) -> list[tuple[str, list[FoundLink]]]:
    _must_be_open(head)
    by_target: dict[str, list[FoundLink]] = defaultdict(list)
    left = limits.LINKS
    for tag in head.tags:
        question = Question(at=tag, external=True, limit=left)
        for each in ask(services.archive, question, limits.SECONDS, services.link_reader(question)):
            by_target[each.target].append(each)
            left -= 1
    return sorted(by_target.items())


def _link_row(head: RecordHead, number: int, target: str, found: Sequence[FoundLink]) -> ExternalLinkRow:
    texts = tuple(dict.fromkeys(each.text for each in found if each.text))[:_SHOWN]
    windows = tuple(dict.fromkeys(each.window for each in found if each.window))[:_SHOWN]
    pages = list(dict.fromkeys(each.page for each in found))
    tags = {tag.domain: tag for tag in head.tags}
    shown = []
    for page in pages[:_SHOWN]:
        tag = tags.get(page.partition("://")[2].partition("/")[0])
        if tag is not None:
            shown.append(Link(rows.frame_of(tag, page), page))
    return ExternalLinkRow(number, texts, target, windows, tuple(shown), max(len(pages) - _SHOWN, 0))
