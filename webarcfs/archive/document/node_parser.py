"""Reads data.xml, or data nodes alone, as a stream of events: within bounds, in flat memory, against rules.

Documents come from users, so everything is bounded here before a tree is made of it. `NodeRules` hear of each node as
it begins and ends, so that a fault is known as soon as its bytes are.
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

#: Levels of elements in a data node. libxml2 before 2.12 reads 256 in a whole document, and may be what others have.
LEVELS = 200
#: Elements, attributes, comments and processing instructions of a document: a tree takes some 200 bytes for each.
PARTS = 1_000_000
#: Bytes of one piece of text, comment or attribute; from 10,000,000 on it depends on libxml2's version.
LONGEST = 8_000_000
#: White space as XML knows it.
SPACE = " \t\r\n"

_OPENING = f'<arc:data xmlns:arc="{NAMESPACE}">'.encode()
_CLOSING = b"</arc:data>"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_ARC_BOUND = re.compile(rf"""\A(<[^\s/>]+(?:\sxmlns(?::[^\s=]+)?=(?:"[^"]*"|'[^']*'))*?)\sxmlns:arc="{NAMESPACE}\"""")
# Smaller than what libxml2 2.9 and later take at once (10,000,000 bytes).
_PIECE = 1 << 20
#: Up to this size a tree is made at once: that is several times as quick as to have a parser call for each event.
SMALL = 8 << 10


def enclosed(nodes: bytes) -> bytes:
    """Data nodes alone, as a document: with the prefix `arc` bound as it is where they will stand."""
    # Whatever ends this element within `nodes` leaves the last tag without its partner, and is not well-formed.
    return _OPENING + nodes + _CLOSING


class NodeRules:
    """What is asked of a document's metadata and nodes. These ask nothing."""

    #: Whether what nodes hold is asked for.
    digests: ClassVar[bool] = False

    def meta(self, fields: Mapping[str, str]) -> None:
        """The attributes of arc:meta; none, if there is no such element."""

    def begins(self, name: str) -> None:
        """A data node begins; `name` is expanded."""

    def ends(self, name: str, digest: bytes) -> None:
        """A data node has ended; `digest` is the same for the same content, however that is spelled in XML.

        Empty, unless `digests` says that it is asked for.
        """


class NodeReader:
    """The parser's target: follows a document (`whole`), or nodes in the element of `enclosed`."""

    def __init__(self, rules: NodeRules, *, whole: bool) -> None:
        self._rules = rules
        #: The elements above the nodes that are to come, in order, each at its depth.
        self._frame = [(1, FILE), (2, META), (2, DATA)] if whole else [(1, DATA)]
        self._level = 3 if whole else 2
        self._parts = self._text = 0
        self._name = ""
        self._digest: hashlib.blake2b | None = None
        self.depth = 0

    @property
    def inside(self) -> bool:
        """Whether what comes next is part of a data node."""
        return self.depth >= self._level

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self.depth += 1
        self._count(1 + len(attributes))
        if _XML_ID in attributes:
            # Two nodes with the same one, from two writers, would make a document that is no XML any more.
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
        """An element ends."""
        if self.inside:
            self._add(">")
        if self.depth == self._level:
            self._rules.ends(self._name, self._digest.digest() if self._digest is not None else b"")
        self.depth -= 1

    def data(self, text: str) -> None:
        """A part of the text between two tags."""
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
        """A comment."""
        self._note("!", text)

    def pi(self, target: str, text: str | None = None) -> None:
        """A processing instruction."""
        self._note("?", target, text or "")

    def doctype(self, *_: str | None) -> None:
        """A document type declaration, and with it entities: never."""
        raise InvalidDocument("XML with a document type declaration is refused")

    def close(self) -> None:
        """The document has ended."""

    def _note(self, *words: str) -> None:
        self._count(1)
        if not self.inside:
            # Nothing is accepted that is not kept, and only nodes are.
            raise InvalidDocument("comments and processing instructions belong inside data nodes")
        self._add(*words)

    def _count(self, more: int) -> None:
        self._parts += more
        if self._parts > PARTS:
            raise InvalidDocument(f"XML of more than {PARTS} elements and attributes")

    def _add(self, *words: str) -> None:
        # NUL is in no XML: so no two sequences of events are the same bytes.
        self._text = 0
        if self._digest is not None:
            self._digest.update(("\0" + "\0".join(words)).encode("utf-8"))


class _Heard:
    """A target that never raises: lxml does not free the document of one that does. After an error it hears no more."""

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
        """The document has ended."""

    def _tell(self, event: Callable[..., None], *words: Any) -> None:
        if self.error is None:
            try:
                event(*words)
            except WebarcError as error:
                self.error = error


# lxml looks at the signature of a target for each parser, which is most of the cost of a small one; so it is told.
for _start in (NodeReader.start, _Heard.start):
    setattr(_start, "__signature__", inspect.signature(_start))  # noqa: B010 # mypy knows no such attribute


def read(document: bytes, rules: NodeRules, *, whole: bool) -> etree._Element | None:
    """Hold a document, or nodes as `enclosed` makes them one, against rules. Raises InvalidDocument and theirs.

    Returns its tree, if one was made.
    """
    # Not of whole documents, whose digests are compared: libxml2 tells of an `&amp;` in an attribute as `&#38;`.
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
    """The tree of a small document with nothing beside its root; None for others, and for what is not well-formed.

    What is wrong with those the parser's events tell in order: a rule may have been broken before.
    """
    if len(document) > SMALL:
        return None
    try:
        root = data_xml.parse_element(document)
    except InvalidDocument:
        return None
    return root if root.getprevious() is None and root.getnext() is None else None


def tell(node: etree._Element, reader: NodeReader) -> None:
    """Tell a reader of an element as the parser would."""
    if isinstance(node, etree._Comment):
        reader.comment(node.text or "")
        return
    if isinstance(node, etree._ProcessingInstruction):
        reader.pi(str(node.target), node.text)
        return
    reader.start(str(node.tag), cast(Mapping[str, str], node.attrib))
    if node.text:
        reader.data(node.text)
    for inner in node:  # as deep as the reader lets it be
        tell(inner, reader)
        if inner.tail:
            reader.data(inner.tail)
    reader.end(str(node.tag))


class NodeStream:
    """The same for bytes as they come. UTF-8 only; each piece must end where a tag, comment or the like may end.

    Tokens that are cut anywhere are held back by newer parsers until much more has come; so none is cut here.
    """

    def __init__(self, rules: NodeRules, *, whole: bool) -> None:
        self.reader = NodeReader(rules, whole=whole)
        self._whole = whole
        self._heard = _Heard(self.reader)
        self._parser = _parser(self._heard)
        if not whole:
            self._feed(_OPENING)

    def feed(self, data: bytes) -> None:
        """Hold what has come against the rules; `data` ends with `>`."""
        begin = 0
        while begin < len(data):
            end = data.rfind(b">", begin, begin + _PIECE) + 1 or data.find(b">", begin) + 1 or len(data)
            self._feed(data[begin:end])
            begin = end
        if not self._whole and not self.reader.depth:
            raise InvalidDocument("XML is not well-formed: an end tag without its element")

    def __del__(self) -> None:
        # lxml frees what libxml2 holds of a document only with this.
        with suppress(etree.LxmlError):
            self._parser.close()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except etree.XMLSyntaxError as error:
            raise self._heard.error or InvalidDocument(f"XML is not well-formed: {error}") from None
        if self._heard.error is not None:
            raise self._heard.error
        # A prefix that is not bound is no syntax error for the parser, but one for everybody who reads the document.
        for entry in self._parser.feed_error_log.filter_from_errors():
            raise InvalidDocument(f"XML is not well-formed: line {entry.line}: {entry.message}")


def serialised(node: etree._Element) -> bytes:
    """A data node as it will stand in data.xml, with all the prefixes that it could see where it stood."""
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
