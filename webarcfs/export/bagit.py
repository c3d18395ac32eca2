"""BagIt (RFC 8493): the WARC files of a selection with checksums, and a PREMIS 3 record of what happened to them.

The payload is what `warc` writes, and resumes as that does. Then the library `bagit` makes the manifests, and the tag
files follow: who reads the bag needs nothing of ours. metadata/premis.xml has an event for each snapshot's capture, and
one for this export, with the files that came of it.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from contextlib import chdir
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import bagit
from lxml import etree

import webarcfs
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_utc, now
from webarcfs.archive.system.clocks import Progress
from webarcfs.export import warc
from webarcfs.export.descriptions import write_records
from webarcfs.export.export_result import Summary
from webarcfs.export.selection import Exported, Selection, Stop
from webarcfs.export.warc_records import record_id

PREMIS: Final = "http://www.loc.gov/premis/v3"
_NAMES: Final = {"premis": PREMIS, "xsi": "http://www.w3.org/2001/XMLSchema-instance"}
_TYPE: Final = "{http://www.w3.org/2001/XMLSchema-instance}type"
_CHECKSUM: Final = "sha512"
_PAYLOAD: Final = "data"
_EVENTS: Final = "metadata/premis.xml"
_BAG: Final = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_WARC: Final = "application/warc"
#: The agent of all events.
_AGENT: Final = "webarcfs"

_Row = tuple[str, "str | list[_Row]"]


def export(
    selection: Selection, out: Path, progress: Progress, stop: Stop, records: Iterable[tuple[str, bytes]] = ()
) -> Summary:
    """Write a selection to the folder `out`; see the package. Raises Interrupted, Damaged, OSError.

    `records` are files that describe the crawls, by name: they are tag files.
    """
    payload, data = out.with_name(f"{out.name}.payload"), out / _PAYLOAD
    if data.is_dir() and not payload.exists():
        data.rename(payload)  # an export was interrupted behind this; its notes know how far it was
    if out.exists():
        shutil.rmtree(out)
    summary = warc.export(selection, payload, progress, stop)
    (out / _EVENTS).parent.mkdir(parents=True)
    write_records(out / "metadata", records)
    payload.rename(data)
    (out / "bagit.txt").write_text(_BAG, "ascii")
    logging.getLogger(bagit.__name__).setLevel(logging.WARNING)
    progress("checksums", 0, 1)
    try:
        with chdir(out):  # as the library wants it
            size, files = bagit.make_manifests(_PAYLOAD, 1, [_CHECKSUM])
            _write_events(selection, Path(_EVENTS), Path(f"manifest-{_CHECKSUM}.txt"), now())
            bag = bagit.Bag(".")
            bag.info |= _about(selection) | {"Payload-Oxum": f"{size}.{files}"}
            bag.save()
            _sort(Path(f"tagmanifest-{_CHECKSUM}.txt"))
    except bagit.BagError as error:
        raise Damaged(f"{out}: {error}") from None
    progress("checksums", 1, 1)
    every = [path for path in out.rglob("*") if path.is_file()]
    return replace(summary, bytes=sum(path.stat().st_size for path in every), files=len(every))


def _about(selection: Selection) -> dict[str, str]:
    """Return the fields of bag-info.txt."""
    domains = list(selection.chosen)
    shown = ", ".join(domains[:10]) + (f" and {len(domains) - 10} more" if len(domains) > 10 else "")
    return {
        "Bag-Software-Agent": f"webarcfs/{webarcfs.__version__}",
        "Bagging-Date": f"{now():%Y-%m-%d}",
        "External-Description": f"{len(selection)} snapshots of {shown}, as WARC files",
        "External-Identifier": f"urn:webarcfs:selection:{selection.digest}",
    }


def _sort(manifest: Path) -> None:
    """Put the lines of a manifest, which come as the folder lists its files, into the order of their names."""
    lines = manifest.read_text("utf-8").splitlines(keepends=True)
    manifest.write_text("".join(sorted(lines, key=lambda line: line.partition(" ")[2])), "utf-8")


# -- PREMIS ------------------------------------------------------------------------------------------------------------


def _write_events(selection: Selection, path: Path, manifest: Path, when: datetime) -> None:
    """Write what is known of the files that `manifest` lists, of where they come from, and of who made them."""
    with path.open("wb") as file, etree.xmlfile(file, encoding="UTF-8") as xml:
        xml.write_declaration()
        with xml.element(f"{{{PREMIS}}}premis", version="3.0", nsmap=_NAMES):
            names = []
            for line in manifest.read_text("utf-8").splitlines():
                digest, _, name = line.partition("  ")
                names.append(name)
                _put(xml, "object", _file(name, Path(name).stat().st_size, digest), {_TYPE: "premis:file"})
            for exported in selection:
                _put(xml, "event", _capture(exported))
            _put(xml, "event", _made(selection, names, when))
            _put(xml, "agent", _program())


def _put(xml: Any, name: str, rows: list[_Row], attributes: dict[str, str] | None = None) -> None:
    element = etree.Element(f"{{{PREMIS}}}{name}", attributes or {}, nsmap=_NAMES)
    _fill(element, rows)
    xml.write("\n", element)


def _fill(element: etree._Element, rows: list[_Row]) -> None:
    for name, value in rows:
        inner = etree.SubElement(element, f"{{{PREMIS}}}{name}")
        if isinstance(value, str):
            inner.text = value
        else:
            _fill(inner, value)


def _file(path: str, size: int, digest: str) -> list[_Row]:
    about: list[_Row] = [
        ("fixity", [("messageDigestAlgorithm", "SHA-512"), ("messageDigest", digest)]),
        ("size", str(size)),
        ("format", [("formatDesignation", [("formatName", _WARC), ("formatVersion", "1.1")])]),
    ]
    return [_named("objectIdentifier", "path in the bag", path), ("objectCharacteristics", about)]


def _capture(exported: Exported) -> list[_Row]:
    message = exported.message
    words = [
        f"publication {message.publication}",
        *([f"job {message.job}"] if message.job else []),
        *([f"from the file sha256:{digest.removeprefix('sha256:')}" for digest in message.all("Source")]),
    ]
    return [
        _event(record_id("capture", str(exported.tag), exported.tree)),
        ("eventType", "capture"),
        ("eventDateTime", format_utc(exported.tag.crawl_time)),
        ("eventDetailInformation", [("eventDetail", ", ".join(words))]),
        ("eventOutcomeInformation", [("eventOutcome", "complete" if message.complete else "incomplete")]),
        _agent("executing program"),
        _named("linkingObjectIdentifier", "snapshot", f"urn:webarcfs:snapshot:{exported.tag}"),
    ]


def _made(selection: Selection, names: list[str], when: datetime) -> list[_Row]:
    detail = f"{len(selection)} snapshots written as WARC files; {webarcfs.__name__} {webarcfs.__version__}"
    return [
        _event(record_id("export", selection.digest, format_utc(when))),
        ("eventType", "exporting"),
        ("eventDateTime", format_utc(when)),
        ("eventDetailInformation", [("eventDetail", detail)]),
        ("eventOutcomeInformation", [("eventOutcome", "success")]),
        _agent("executing program"),
        *(_named("linkingObjectIdentifier", "path in the bag", name) for name in names),
    ]


def _program() -> list[_Row]:
    return [
        _named("agentIdentifier", "local", _AGENT),
        ("agentName", _AGENT),
        ("agentType", "software"),
        ("agentVersion", webarcfs.__version__),
    ]


def _event(urn: str) -> _Row:
    return _named("eventIdentifier", "UUID", urn.removeprefix("urn:uuid:"))


def _agent(role: str) -> _Row:
    name, rows = _named("linkingAgentIdentifier", "local", _AGENT)
    assert isinstance(rows, list)
    return name, [*rows, ("linkingAgentRole", role)]


def _named(what: str, kind: str, value: str) -> _Row:
    """Return an identifier of PREMIS: type and value."""
    return what, [(f"{what}Type", kind), (f"{what}Value", value)]
