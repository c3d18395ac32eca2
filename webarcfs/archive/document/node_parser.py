"""Reads data.xml, or data nodes alone, as a stream of events: within bounds, in constant memory, against rules.

Documents come from users, so everything is bounded here before a tree is made of it. `NodeRules` receive the beginning
and end of each node, so that a fault is found as soon as its bytes arrive.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, cast

from lxml import etree

from webarcfs.archive.document import data_xml
from webarcfs.archive.document.data_xml import DATA, FILE, META, NAMESPACE
from webarcfs.archive.model.errors import InvalidDocument, WebarcError

#: Levels of elements in a data node. libxml2 before 2.12, which readers may have, reads 256 in a whole document.
LEVELS = 200
#: Elements, attributes, comments and processing instructions of a document; each takes some 200 bytes in a tree.
PARTS = 1_000_000
#: Bytes of one piece of text, comment or attribute; from 10,000,000 on, libxml2's version decides.
LONGEST = 8_000_000
#: White space in XML.
SPACE = " \t\r\n"

_OPENING = f'<arc:data xmlns:arc="{NAMESPACE}">'.encode()
_CLOSING = b"</arc:data>"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_ARC_BOUND = re.compile(rf"""\A(<[^\s/>]+(?:\sxmlns(?::[^\s=]+)?=(?:"[^"]*"|'[^']*'))*?)\sxmlns:arc="{NAMESPACE}\"""")
# Less than libxml2 2.9 and later accept at once (10,000,000 bytes).
_PIECE = 1 << 20
#: Up to this size a tree is made at once: several times as fast as a call of the parser for each event.
SMALL = 8 << 10


def enclosed(nodes: bytes) -> bytes:
    """Return data nodes as a document, with the prefix `arc` bound as in data.xml."""
    # An end tag of this element within `nodes` leaves the last tag without its partner: not well-formed.
    return _OPENING + nodes + _CLOSING


class NodeRules:
    """Rules for a document's metadata and nodes. This class accepts all."""

    #: Whether `ends` needs digests.
    digests: ClassVar[bool] = False

    def meta(self, fields: Mapping[str, str]) -> None:
        """Check the attributes of arc:meta; none, if there is no such element."""

    def begins(self, name: str) -> None:
        """Check the beginning of a data node; `name` is expanded."""

    def ends(self, name: str, digest: bytes) -> None:
        """Check the end of a data node; `digest` is equal for equal content, however XML spells it.

        It is empty unless `digests` is set.
        """


class NodeReader:
    """The parser's target: reads a document (`whole`), or nodes in the element of `enclosed`."""

    def __init__(self, rules: NodeRules, *, whole: bool) -> None:
        self._rules = rules
        #: The expected elements above the nodes, in order, each at its depth.
        self._frame = [(1, FILE), (2, META), (2, DATA)] if whole else [(1, DATA)]
        self._level = 3 if whole else 2
        self._parts = self._text = 0
        self._name = ""
        self._digest: hashlib.blake2b | None = None
        self.depth = 0

    @property
    def inside(self) -> bool:
        """Whether the next event is part of a data node."""
        return self.depth >= self._level

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        self.depth += 1
        self._count(1 + len(attributes))
        if _XML_ID in attributes:
            # Two nodes with the same id, from two writers, would make a document that is not valid XML.
            raise InvalidDocument("data nodes cannot have an xml:id, which must be unique in the whole document")
        if not self.inside:
            return self._frame_begins(name, attributes)
        if self.depth - self._level >= LEVELS:
            raise InvalidDocument(f"a data node has more than {LEVELS} levels")
        if self.depth == self._level:
            self._node_begins(name)
        self._text = 0
        if self._digest is not None:
            self._add("<", name, *(word for pair in sorted(attributes.items()) for word in pair))
        return None

    def _frame_begins(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == DATA and (2, META) in self._frame:
            self._frame.remove((2, META))
            self._rules.meta({})
        if not self._frame or self._frame.pop(0) != (self.depth, name):
            raise InvalidDocument(f"data.xml has {name} where it should not")
        if name == META:
            self._rules.meta(attributes)

    def _node_begins(self, name: str) -> None:
        if self._frame:
            raise InvalidDocument(f"data.xml has {name} before arc:data")
        if name.startswith(f"{{{NAMESPACE}}}"):
            raise InvalidDocument(f"data node {name} is of the archive's own namespace; use another, or none")
        self._name, self._digest = name, hashlib.blake2b() if self._rules.digests else None
        self._rules.begins(name)

    def end(self, name: str) -> None:  # noqa: ARG002 # lxml's interface
        """Handle the end of an element."""
        if self.inside:
            self._add(">")
        if self.depth == self._level:
            self._rules.ends(self._name, self._digest.digest() if self._digest is not None else b"")
        self.depth -= 1

    def data(self, text: str) -> None:
        """Handle a part of the text between two tags."""
        if not self.inside:
            if text.strip(SPACE):
                raise InvalidDocument("there is text between data nodes; they are elements")
            return
        raw = text.encode("utf-8")
        if self._digest is not None:
            self._digest.update(raw if self._text else b"\0=" + raw)
        self._text += len(raw)
        if self._text > LONGEST:
            raise InvalidDocument(f"a text of more than {LONGEST} bytes")

    def comment(self, text: str) -> None:
        """Handle a comment."""
        self._note("!", text)

    def pi(self, target: str, text: str | None = None) -> None:
        """Handle a processing instruction."""
        self._note("?", target, text or "")

    def doctype(self, *_: str | None) -> None:
        """Refuse a document type declaration, and with it entities."""
        raise InvalidDocument("XML with a document type declaration is refused")

    def close(self) -> None:
        """Handle the end of the document."""

    def _note(self, *words: str) -> None:
        self._count(1)
        if not self.inside:
            # Only content that is stored is accepted, and only nodes are stored.
            raise InvalidDocument("comments and processing instructions belong inside data nodes")
        self._add(*words)

    def _count(self, more: int) -> None:
        self._parts += more
        if self._parts > PARTS:
            raise InvalidDocument(f"XML of more than {PARTS} elements and attributes")

    def _add(self, *words: str) -> None:
        # XML contains no NUL: so two sequences of events never yield the same bytes.
        self._text = 0
        if self._digest is not None:
            self._digest.update(("\0" + "\0".join(words)).encode("utf-8"))


class _Heard:
    """A target that never raises: lxml leaks the document of one that does. It ignores all events after an error."""

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader
        self.error: WebarcError | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._tell(self._reader.start, name, attributes)

    def end(self, name: str) -> None:
        self._tell(self._reader.end, name)

    def data(self, text: str) -> None:
        self._tell(self._reader.data, text)

    def comment(self, text: str) -> None:
        self._tell(self._reader.comment, text)

    def pi(self, target: str, text: str | None = None) -> None:
        self._tell(self._reader.pi, target, text)

    def doctype(self, *words: str | None) -> None:
        self._tell(self._reader.doctype, *words)

    def close(self) -> None:
        """Handle the end of the document."""

    def _tell(self, event: Callable[..., None], *words: Any) -> None:
        if self.error is None:
            try:
                event(*words)
            except WebarcError as error:
                self.error = error


# For each parser, lxml inspects the signature of its target, most of the cost of a small one; so it is set here.
for _start in (NodeReader.start, _Heard.start):
    setattr(_start, "__signature__", inspect.signature(_start))  # noqa: B010 # mypy knows no such attribute


def read(document: bytes, rules: NodeRules, *, whole: bool) -> etree._Element | None:
    """Check a document, or nodes enclosed in one, against rules. Raises InvalidDocument and the rules' errors.

    Returns its tree, if one was made.
    """
    # Not for whole documents, whose digests are compared: libxml2 reports an `&amp;` in an attribute as `&#38;`.
    root = None if whole else small_tree(document)
    if root is not None:
        tell(root, NodeReader(rules, whole=whole))
        return root
    try:
        etree.fromstring(document, _parser(NodeReader(rules, whole=whole)))
    except etree.XMLSyntaxError as error:
        raise InvalidDocument(f"XML is not well-formed: {error}") from None
    return None


def small_tree(document: bytes) -> etree._Element | None:
    """Return the tree of a small document that is only its root; None for others, and for malformed ones.

    For those, the parser's events report the fault in order: a rule may have been broken before it.
    """
    if len(document) > SMALL:
        return None
    try:
        root = data_xml.parse_element(document)
    except InvalidDocument:
        return None
    return root if root.getprevious() is None and root.getnext() is None else None


def tell(node: etree._Element, reader: NodeReader) -> None:
    """Send a reader the events of an element, as the parser would."""
    if isinstance(node, etree._Comment):
        reader.comment(node.text or "")
        return
    if isinstance(node, etree._ProcessingInstruction):
        reader.pi(str(node.target), node.text)
        return
    reader.start(str(node.tag), cast(Mapping[str, str], node.attrib))
    if node.text:
        reader.data(node.text)
    for inner in node:  # the reader bounds the depth
        tell(inner, reader)
        if inner.tail:
            reader.data(inner.tail)
    reader.end(str(node.tag))


class NodeStream:
    """Checks bytes as they arrive. UTF-8 only; each piece must end where a tag, comment or the like may end.

    Newer parsers hold back tokens that are cut elsewhere until much more has arrived; so none is cut here.
    """

    def __init__(self, rules: NodeRules, *, whole: bool) -> None:
        self.reader = NodeReader(rules, whole=whole)
        self._whole = whole
        self._heard = _Heard(self.reader)
        self._parser = _parser(self._heard)
        if not whole:
            self._feed(_OPENING)

    def feed(self, data: bytes) -> None:
        """Check the next bytes against the rules; `data` ends with `>`."""
        begin = 0
        while begin < len(data):
            end = data.rfind(b">", begin, begin + _PIECE) + 1 or data.find(b">", begin) + 1 or len(data)
            self._feed(data[begin:end])
            begin = end
        if not self._whole and not self.reader.depth:
            raise InvalidDocument("XML is not well-formed: an end tag without its element")

    def __del__(self) -> None:
        # Only this makes lxml free libxml2's data of a document.
        with suppress(etree.LxmlError):
            self._parser.close()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except etree.XMLSyntaxError as error:
            raise self._heard.error or InvalidDocument(f"XML is not well-formed: {error}") from None
        if self._heard.error is not None:
            raise self._heard.error
        # An unbound prefix is no syntax error for this parser, but one for every other reader of the document.
        for entry in self._parser.feed_error_log.filter_from_errors():
            raise InvalidDocument(f"XML is not well-formed: line {entry.line}: {entry.message}")


def serialised(node: etree._Element) -> bytes:
    """Return a data node in the form of data.xml, with all prefixes in its scope."""
    text = etree.tostring(node, encoding="unicode", with_tail=False)
    # `arc` is bound in every data.xml already. Declarations come before attributes, whose values may look like one.
    found = _ARC_BOUND.match(text)
    return (found[1] + text[found.end() :] if found else text).encode("utf-8")


def _parser(target: NodeReader | _Heard) -> etree.XMLParser:
    return etree.XMLParser(
        target=target,  # type: ignore[arg-type] # lxml-stubs ask for methods that take bytes too
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
    )
