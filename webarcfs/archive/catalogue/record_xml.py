"""A record as XML: record.xml, which `xsd/record.xsd` describes, and simple Dublin Core for other catalogues.

Equal records are equal bytes. Each field is an element of its own name, with its number, group and kind. It is read
with entities, DTDs and the network off. Dublin Core is in the container of OAI-PMH (`oai_dc`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime

from lxml import etree

from webarcfs.archive.catalogue.record import (
    BY_NAME,
    BY_NUMBER,
    Attachment,
    CrawlPart,
    Event,
    FieldNumber,
    MissingResources,
    Occasion,
    Record,
    RecordState,
    ResourceCount,
    Value,
)
from webarcfs.archive.config import directory
from webarcfs.archive.document.data_xml import clean, compiled
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import RESOURCE_ROLE, CommitTag, format_time, parse_time

# == record xml =======================================================================================================


NAMESPACE = "urn:webarcfs:record:1"
#: Largest record.xml that is read, in bytes: statistics of thousands of extensions, and thousands of events.
LARGEST = 16 << 20
_OWN = threading.local()
_ABOUT = ("title", "language", "access")


def write(record: Record) -> bytes:
    """Return a record as record.xml. Characters that XML forbids are left out."""
    root = etree.Element(_name("record"), nsmap={None: NAMESPACE})  # type: ignore[dict-item] # None: no prefix
    for name, value in _attributes(record).items():
        if value:
            root.set(name, clean(value))
    for name in _ABOUT:
        _add_value(root, name, getattr(record, name))
    for part in record.parts:
        _add(
            root, "part", commitTag=str(part.tag), complete=_yes(part.complete), seen=part.seen,
            held=_yes(part.is_held), role=RESOURCE_ROLE if part.is_resource else "",
        )  # fmt: skip
    if record.resources.hosts:
        _add(root, "resources", **{name: str(number) for name, number in asdict(record.resources).items()})
    _add_fields(root, record.values)
    for measure in record.measures:
        _add_fields(_add(root, "measure"), measure)
    for lack in record.missing:
        _add(root, "missing", host=lack.host, word=lack.word, urls=str(lack.urls))
    for attachment in record.attachments:
        element = _add(
            root, "attachment", attachment.note, bytes=str(attachment.bytes), at=_time(attachment.at), by=attachment.by
        )
        element.set("name", clean(attachment.name))
    for event in record.events:
        at, state = format_time(event.at), str(event.state or "")
        _add(root, "event", event.text, what=event.what, at=at, by=event.by, state=state)
    etree.indent(root)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def read(document: bytes) -> Record:
    """Return the record of a record.xml. Raises InvalidDocument for a document that the schema refuses."""
    if len(document) > LARGEST:
        raise InvalidDocument(f"a record of {len(document)} bytes; at most {LARGEST} are read")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidDocument(f"no record: {error}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise InvalidDocument("no record: it has a document type, which could declare entities")
    schema = _schema()
    if not schema.validate(root):
        raise InvalidDocument(f"no record: {schema.error_log}")
    try:
        return _read(root)
    except Damaged as error:
        raise InvalidDocument(f"no record: {error}") from None


def _attributes(record: Record) -> dict[str, str]:
    return {
        "id": record.id,
        "number": str(record.number),
        "publication": record.publication,
        "state": record.state,
        "occasion": record.occasion,
        "complete": _yes(record.complete),
        "release": record.release,
        "closedFor": record.closed_for,
        "job": record.job,
    }


def _read(root: etree._Element) -> Record:
    return Record(
        id=_get(root, "id"),
        number=int(_get(root, "number")),
        publication=_get(root, "publication"),
        state=RecordState(_get(root, "state")),
        occasion=Occasion(_get(root, "occasion")),
        complete=_is_yes(root, "complete"),
        release=_get(root, "release"),
        closed_for=_get(root, "closedFor"),
        job=_get(root, "job"),
        **{name: _value(root.find(_name(name))) for name in _ABOUT},
        parts=tuple(_part(element) for element in root.iterfind(_name("part"))),
        resources=_resources(root.find(_name("resources"))),
        values=dict(_fields(root)),
        measures=tuple(dict(_fields(element)) for element in root.iterfind(_name("measure"))),
        missing=tuple(_lack(element) for element in root.iterfind(_name("missing"))),
        attachments=tuple(_attachment(element) for element in root.iterfind(_name("attachment"))),
        events=tuple(_event(element) for element in root.iterfind(_name("event"))),
    )


def _part(element: etree._Element) -> CrawlPart:
    tag = CommitTag.parse(_get(element, "commitTag"))
    is_resource = _get(element, "role") == RESOURCE_ROLE
    return CrawlPart(tag, _is_yes(element, "complete"), _get(element, "seen"), _is_yes(element, "held"), is_resource)


def _resources(element: etree._Element | None) -> ResourceCount:
    if element is None:
        return ResourceCount()
    return ResourceCount(**{name: int(_get(element, name)) for name in ("hosts", "files", "bytes")})


def _lack(element: etree._Element) -> MissingResources:
    return MissingResources(_get(element, "host"), _get(element, "word"), int(_get(element, "urls")))


def _attachment(element: etree._Element) -> Attachment:
    at, by = parse_time(_get(element, "at")), _get(element, "by")
    return Attachment(_get(element, "name"), int(_get(element, "bytes")), by, at, element.text or "")


def _event(element: etree._Element) -> Event:
    state = _get(element, "state")
    at, by = parse_time(_get(element, "at")), _get(element, "by")
    return Event(_get(element, "what"), at, by, element.text or "", RecordState(state) if state else None)


def _fields(parent: etree._Element) -> Iterator[tuple[int, Value]]:
    for element in parent:
        field = BY_NAME.get(etree.QName(element).localname)
        if field is not None:
            yield field.number, _value(element)


def _value(element: etree._Element | None) -> Value:
    if element is None:
        return Value("")
    at = _get(element, "at")
    return Value(element.text or "", _get(element, "by"), parse_time(at) if at else None)


def _get(element: etree._Element, name: str) -> str:
    return str(element.attrib.get(name, ""))


def _is_yes(element: etree._Element, name: str) -> bool:
    return _get(element, name) == "yes"


def _add_fields(parent: etree._Element, values: Mapping[int, Value]) -> None:
    for number in sorted(values):
        field = BY_NUMBER[number]
        _add_value(parent, field.name, values[number], field=str(number), group=field.group, kind=field.kind)


def _add_value(parent: etree._Element, name: str, value: Value, **attributes: str) -> None:
    if value.text:
        _add(parent, name, value.text, **attributes, by=value.by, at=_time(value.at))


def _add(parent: etree._Element, name: str, text: str = "", **attributes: str) -> etree._Element:
    element = etree.SubElement(parent, _name(name))
    for key, value in attributes.items():
        if value:
            element.set(key, clean(value))
    element.text = clean(text) or None
    return element


def _name(local: str) -> str:
    return f"{{{NAMESPACE}}}{local}"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else ""


def _time(at: datetime | None) -> str:
    return "" if at is None else format_time(at)


def _schema() -> etree.XMLSchema:
    """Return the schema, one for each thread: lxml's keeps its errors in itself."""
    schema: etree.XMLSchema | None = getattr(_OWN, "schema", None)
    if schema is None:
        schema = _OWN.schema = compiled(etree.parse(str(directory.path("xsd", "record.xsd"))))
    return schema


# == dublin core, pure ================================================================================================


OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"


def write_dublin_core(record: Record, institution: str = "") -> bytes:
    """Return a record as Dublin Core; elements without a value are left out. `institution` is the publisher."""
    root = etree.Element(f"{{{OAI_DC}}}dc", nsmap={"oai_dc": OAI_DC, "dc": DC})
    for name, text in _elements(record, institution):
        if text:
            etree.SubElement(root, f"{{{DC}}}{name}").text = clean(text)
    etree.indent(root)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _elements(record: Record, institution: str) -> list[tuple[str, str]]:
    date = "" if record.date is None else format_time(record.date)
    extent = (
        f"{record.text(FieldNumber.FILES)} files, {record.text(FieldNumber.BYTES)} bytes"
        if record.text(FieldNumber.BYTES)
        else ""
    )
    return [
        ("title", record.title.text or record.id),
        ("creator", record.text(FieldNumber.PROVENANCE)),
        ("subject", record.text(FieldNumber.PROJECT)),
        ("description", record.text(FieldNumber.REMARKS)),
        ("publisher", institution),
        ("date", date),
        ("type", "Collection"),
        ("format", extent),
        ("identifier", record.id),
        ("identifier", record.text(FieldNumber.SIGNATURE)),
        *(("source", f"http://{domain}/") for domain in record.domains),
        ("language", record.language.text),
        ("relation", record.publication),
        ("coverage", record.text(FieldNumber.DOMAIN)),
        ("rights", record.access.text or _access(record)),
    ]


def _access(record: Record) -> str:
    """Return the access statement of a record that has none: what its state says."""
    if record.state is not RecordState.RELEASED:
        return "not released"
    return f"closed for {record.closed_for} from its date" if record.closed_for else "released"
