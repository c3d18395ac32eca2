"""A record as simple Dublin Core, in the container of OAI-PMH (`oai_dc`): what other catalogues take. Pure."""

from __future__ import annotations

from lxml import etree

from webarcfs.archive.catalogue.record import Record, State
from webarcfs.archive.document.data_xml import clean
from webarcfs.archive.model.metadata import format_time

OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"


def write(record: Record, institution: str = "") -> bytes:
    """Return a record as Dublin Core; elements without a value are left out. `institution` is the publisher."""
    root = etree.Element(f"{{{OAI_DC}}}dc", nsmap={"oai_dc": OAI_DC, "dc": DC})
    for name, text in _elements(record, institution):
        if text:
            etree.SubElement(root, f"{{{DC}}}{name}").text = clean(text)
    etree.indent(root)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _elements(record: Record, institution: str) -> list[tuple[str, str]]:
    date = "" if record.date is None else format_time(record.date)
    extent = f"{record.text(23)} files, {record.text(22)} bytes" if record.text(22) else ""
    return [
        ("title", record.title.text or record.id),
        ("creator", record.text(3)),
        ("subject", record.text(4)),
        ("description", record.text(6)),
        ("publisher", institution),
        ("date", date),
        ("type", "Collection"),
        ("format", extent),
        ("identifier", record.id),
        ("identifier", record.text(2)),
        *(("source", f"http://{domain}/") for domain in record.domains),
        ("language", record.language.text),
        ("relation", record.publication),
        ("coverage", record.text(12)),
        ("rights", record.access.text or _access(record)),
    ]


def _access(record: Record) -> str:
    """Return the access statement of a record that has none: what its state says."""
    if record.state is not State.RELEASED:
        return "not released"
    return f"closed for {record.closed_for} from its date" if record.closed_for else "released"
