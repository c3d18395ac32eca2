"""data.xml: the metadata of an ARC and the data nodes that users add, as XML (/Xm-1/ … /Xm-5/).

Our own serialiser writes one fixed form, so that equal metadata are equal bytes. It is read with entities, DTDs and the
network off, and bounded in size and depth, since users write data nodes.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from typing import Final
from xml.etree import ElementTree

from lxml import etree

from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, EVIDENCE_FIELDS, FIELDS, MetaData

NAMESPACE = "urn:webarcfs:arc:1"
#: Largest data.xml that is read, in bytes.
LARGEST = 64 * 1024 * 1024

#: Names of the elements.
FILE = f"{{{NAMESPACE}}}file"
META = f"{{{NAMESPACE}}}meta"
DATA = f"{{{NAMESPACE}}}data"

#: Documents whose metadata are cached, 2 KB each: an addition reads the same ones several times.
_REMEMBERED = 2_000

#: Bytes of a document up to which no parser is made.
_LITTLE = 16 << 10

#: Attributes that a document may lack, in their order.
_OPTIONAL = (*CAPTURE_FIELDS, *EVIDENCE_FIELDS)

_COMPILING = threading.Lock()
_OWN = threading.local()
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
_META_OF_OURS = re.compile(rb"<arc:meta\s[^>]*/>")
# The same with attributes of literal values: nothing escaped, no white space to be normalised, nothing forbidden.
_VALUE = '[^"&<\0-\x1f\ufffe\uffff]*'
_PLAIN_META = re.compile(
    "<arc:meta"
    + "".join(f' {name}="({_VALUE})"' for name in FIELDS)
    + "".join(f'(?: {name}="({_VALUE})")?' for name in _OPTIONAL)
    + "/>"
)
#: The same where commitTag has the time of crawlTime, as in all that we write; it captures the two times only. A field
#: of which `MetaData.from_fields` does not take every text has its form here.
_INSTANT = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_DATED = {
    "crawlTime": f"({_INSTANT})",
    "createTime": f"({_INSTANT})",
    "commitTag": '\\1@[^"/&<\0-\x1f\ufffe\uffff]+',
    "captureTime": _INSTANT,
    "status": "[1-5][0-9]{2}",
}
_PLAIN_TIMES: Final = re.compile(
    "".join(f' {name}="{_DATED.get(name, _VALUE)}"' for name in FIELDS)
    + "".join(f'(?: {name}="{_DATED.get(name, _VALUE)}")?' for name in _OPTIONAL)
    + "/>"
)
#: The beginning of each document that we wrote.
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<arc:file xmlns:arc="urn:webarcfs:arc:1">\n  <arc:meta'
_HEAD: Final = HEAD.encode()
_TAIL = "/>\n  <arc:data/>\n</arc:file>\n"
# The form of a value written by `quoted`, and of a document written by `describe`: certainly well-formed.
_ESCAPED = "&(?:amp|lt|gt|quot|#10|#13|#9);"
_QUOTED = "|".join(f"{q}[^{q}&<\0-\x1f\ufffe\uffff]*+(?:{_ESCAPED}[^{q}&<\0-\x1f\ufffe\uffff]*+)*+{q}" for q in "\"'")
_BARE = re.compile(
    re.escape(HEAD)
    + "".join(f" {name}=(?:{_QUOTED})" for name in FIELDS)
    + "".join(f"(?: {name}=(?:{_QUOTED}))?" for name in _OPTIONAL)
    + _TAIL
)
_BARE_END = _TAIL.encode()
_LONGEST_BARE = 65536
# Characters that XML 1.0 forbids, even as character references (section 2.2).
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def describe(meta: MetaData) -> bytes:
    """Return the document of a new ARC: its metadata, and no data nodes yet (/Xm-1.1/, /Xm-1.2/)."""
    attributes = "".join([f" {name}={quoted(value)}" for name, value in meta.as_attributes().items()])
    return f"{HEAD}{attributes}{_TAIL}".encode()


def has_no_nodes(document: bytes) -> bool:
    """Return whether a document has the form of `describe`, and so has no data nodes: no parser is needed."""
    if len(document) > _LONGEST_BARE or not document.endswith(_BARE_END):
        return False
    try:
        return _BARE.fullmatch(document.decode()) is not None
    except UnicodeDecodeError:
        return False


def quoted(text: str) -> str:
    """Return `text` as an attribute's value, with its quotes; characters that XML forbids are left out.

    Equal to `xml.sax.saxutils.quoteattr`, which imports urllib: half of the time that `webarc log` needs to start.
    """
    escaped = clean(text).translate(_ESCAPES)
    if '"' not in escaped:
        return f'"{escaped}"'
    return f"'{escaped}'" if "'" not in escaped else '"' + escaped.replace('"', "&quot;") + '"'


def clean(text: str) -> str:
    """Return `text` without the characters that XML forbids."""
    return _NOT_XML.sub("", text)


def metadata(document: bytes) -> MetaData:
    """Return the metadata of a data.xml. Raises InvalidDocument without metadata, Damaged for a malformed field."""
    # Their element is first and small; data nodes after it may have megabytes.
    head = _META_OF_OURS.search(document, 0, 65536)
    if head and document.startswith(_HEAD):
        return _metadata_of_ours(head[0])
    root = parse_element(document)
    return _metadata(root.find(META) if root.tag == FILE else None)


def times(document: bytes) -> tuple[str, str] | None:
    """Return crawlTime and createTime of a data.xml in our form: a listing needs no more of an ARC.

    None if the document must be parsed (`metadata`). The values have the form of times and are not checked further.
    """
    if not document.startswith(_HEAD):
        return None
    begin = len(_HEAD)
    try:
        element = document[begin : document.find(b"/>", begin) + 2].decode()
    except UnicodeDecodeError:
        return None
    match = _PLAIN_TIMES.fullmatch(element)
    return (match[1], match[2]) if match is not None else None


@lru_cache(maxsize=_REMEMBERED)
def _metadata_of_ours(element: bytes) -> MetaData:
    """Return the metadata of an element in our form; cached, since added data nodes do not change it."""
    if (fields := _plain_fields(element)) is not None:
        return MetaData.from_fields(fields)
    return _metadata(parse_element(b'<arc:file xmlns:arc="urn:webarcfs:arc:1">' + element + b"</arc:file>")[0])


def _metadata(meta: etree._Element | None) -> MetaData:
    if meta is None or meta.tag != META:
        raise InvalidDocument("data.xml has no arc:meta")
    return MetaData.from_fields({str(key): str(value) for key, value in meta.attrib.items()})


def _plain_fields(element: bytes) -> dict[str, str] | None:
    """Return the attributes of an element that needs no parser; a mount reads thousands at once."""
    with suppress(UnicodeDecodeError):
        if match := _PLAIN_META.fullmatch(element.decode()):
            named = zip((*FIELDS, *_OPTIONAL), match.groups(), strict=True)
            return {name: value for name, value in named if value is not None}
    return None


def validate(document: bytes) -> etree._Element:
    """Check a whole data.xml against the schema (/Xm-2/, /Xm-4/), and return its tree.

    Raises InvalidDocument with fault and line: not well-formed, not valid, or two data nodes of one name (/Xm-3.1/).
    """
    root = parse_element(document)
    schema = _schema()
    if not schema.validate(root):
        raise InvalidDocument("data.xml is not valid: " + first_error(schema.error_log))
    data = root.find(DATA)
    names = [str(node.tag) for node in data if isinstance(node.tag, str)] if data is not None else []
    if len(set(names)) < len(names):
        name = Counter(names).most_common(1)[0][0]
        raise InvalidDocument(f"data.xml has more than one data node {name}")
    return root


def parse_element(document: bytes) -> etree._Element:
    """Parse XML from outside. Raises InvalidDocument if it is malformed, too large, too deep, or has a DTD."""
    if len(document) > LARGEST:
        raise InvalidDocument(f"XML of {len(document)} bytes; at most {LARGEST} are read")
    try:
        root = etree.fromstring(document, _own_parser() if len(document) <= _LITTLE else parser())
    except etree.XMLSyntaxError as error:
        raise InvalidDocument(f"XML is not well-formed: {error}") from None
    if root.getroottree().docinfo.doctype:  # type: ignore[union-attr] # lxml-stubs does not know it
        raise InvalidDocument("XML with a document type declaration is refused")
    return root


def read_node(text: bytes) -> tuple[str, bytes]:
    """Return the expanded name of a data node that is sent as a document, and the node. Raises InvalidDocument."""
    element = parse_element(text)
    return str(element.tag), etree.tostring(element, encoding="utf-8", xml_declaration=False, with_tail=False)


def data_node(document: bytes, name: str) -> ElementTree.Element | None:
    """Return the data node of an expanded name (`words`, `{urn:x}words`), or None. Raises InvalidDocument."""
    parse_element(document)  # refuses what is unsafe for the standard library's parser
    data = ElementTree.fromstring(document).find(DATA)  # noqa: S314 # it is checked
    return next((node for node in (data if data is not None else ()) if node.tag == name), None)


def parser() -> etree.XMLParser:
    """Return a parser for XML from outside: entities, DTDs and the network are off."""
    # huge_tree off bounds the depth (256 or 2,048 levels, by libxml2's version) and the growth of entities. Threads do
    # not share a parser.
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False)


def _own_parser() -> etree.XMLParser:
    """Return this thread's parser for small documents: it keeps as much memory as its largest one needed."""
    try:
        own_parser: etree.XMLParser = _OWN.parser
    except AttributeError:
        own_parser = _OWN.parser = parser()
    return own_parser


def compiled(root: etree._ElementTree) -> etree.XMLSchema:
    """Compile a schema: libxml2 makes its built-in types with the first one, which only one thread at a time may do.

    Raises XMLSchemaParseError for an invalid schema.
    """
    with _COMPILING:
        return etree.XMLSchema(root)


def _schema() -> etree.XMLSchema:
    """Return this thread's schema: its error log is not for several threads."""
    try:
        schema: etree.XMLSchema = _OWN.schema
    except AttributeError:
        schema = _OWN.schema = compiled(etree.parse(str(directory.path("xsd", "arc.xsd"))))
    return schema


def first_error(log: etree._ListErrorLog) -> str:
    """Return the first fault in a schema's log, with its line."""
    return next((f"line {entry.line}: {entry.message}" for entry in log), "no reason given")
