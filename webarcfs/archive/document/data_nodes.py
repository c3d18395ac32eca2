"""Data nodes of data.xml: appended or rewritten documents yield new nodes, which are spliced in (/Xm-3/, /Xm-5/).

Old nodes are never rewritten: new ones are inserted between them and the end of the document, each serialised here.
Every accepted document validates against xsd/arc.xsd; schemas.py checks users' schemas. Raises InvalidDocument
(EINVAL) for documents that are not well-formed, not valid or out of bounds, Exists (EEXIST) for a taken name,
NotPermitted (EPERM) for changed metadata or old nodes, Damaged for an invalid old document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lxml import etree

from webarcfs.archive.document import data_xml
from webarcfs.archive.document.data_xml import DATA, FILE, LARGEST
from webarcfs.archive.document.memoize import remembered, weight_of_names
from webarcfs.archive.document.node_parser import (
    LONGEST,
    SPACE,
    NodeReader,
    NodeStream,
    enclosed,
    read,
    serialised,
    small_tree,
    tell,
)
from webarcfs.archive.document.node_rules import OldNodesUnchanged, UniqueNames
from webarcfs.archive.model.errors import Damaged, InvalidDocument, WebarcError

#: Checks new nodes, also given as elements of their document. Raises the refusal.
Check = Callable[[bytes, list[etree._Element]], None]

_HEAD = data_xml.HEAD.encode()
_NONE = b"\n  <arc:data/>\n</arc:file>\n"
_END = b"\n  </arc:data>\n</arc:file>\n"
_BEGIN = b"\n  <arc:data>"
_BETWEEN = b"\n    "
_SPACE = SPACE.encode()
_BOM = b"\xef\xbb\xbf"
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_ENCODING = re.compile(rb"""\A<\?xml\s[^>]*?\sencoding\s*=\s*["'](?!(?:utf-?8|us-ascii|ascii)["'])""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Simple:
    """Nodes that break no rule by themselves: their names, in order, and their bytes in a document."""

    names: tuple[str, ...]
    nodes: bytes


def _weight(simple: _Simple | None) -> int:
    return weight_of_names(simple.names) + len(simple.nodes) if simple is not None else 0


@remembered(weight_of_names)
def names(document: bytes) -> tuple[str, ...]:
    """Return the expanded names (`words`, `{urn:w}words`) of a document's data nodes, in order."""
    if data_xml.has_no_nodes(document):
        return ()
    return tuple(_tags(_old(document)))


@remembered(weight_of_names)
def names_of(nodes: bytes) -> tuple[str, ...]:
    """Return the same of nodes as `appended` and `rewritten` return them."""
    return tuple(_tags(data_xml.parse_element(enclosed(nodes))))


@remembered(_weight)
def _simple(tail: bytes) -> _Simple | None:
    """Return appended nodes if they are few and valid; else None: the error depends on the document."""
    tree = small_tree(enclosed(tail))
    if tree is None:
        return None
    try:
        tell(tree, NodeReader(UniqueNames(()), whole=False))
    except WebarcError:
        return None
    found = _Simple(tuple(_tags(tree)), _BETWEEN.join([serialised(node) for node in tree]))
    # It is the same document apart from the space between the nodes.
    names_of.know(found.names, found.nodes)
    return found


def _accepted(_nodes: bytes, _elements: list[etree._Element]) -> None:
    """Accept all new nodes."""


def extended(old: bytes, new: bytes, check: Check = _accepted) -> bytes:
    """Return the new nodes of an appended or rewritten document; none if nothing was added.

    `check` may refuse them.
    """
    return appended(old, new[len(old) :], check) if new.startswith(old) else rewritten(old, new, check)


def appended(old: bytes, tail: bytes, check: Check = _accepted) -> bytes:
    """Return the new nodes, serialised, from bytes appended to `old`; white space alone adds none."""
    _bounded(len(old) + len(tail))
    if not tail.strip(_SPACE):
        return b""
    taken, simple = names(old), _simple(tail)
    if simple is not None:
        _check_names(simple.names, taken)
        return _checked(old, simple.nodes, check)
    document = enclosed(tail)
    root = read(document, UniqueNames(taken), whole=False)
    nodes = [serialised(node) for node in (data_xml.parse_element(document) if root is None else root)]
    return _checked(old, _BETWEEN.join(nodes), check)


def rewritten(old: bytes, new: bytes, check: Check = _accepted) -> bytes:
    """Return the new nodes, serialised, of a document with the same metadata and, in order, the same nodes as `old`.

    Its spelling may differ (prefixes, quotes, encoding): the old nodes keep their bytes in `old` all the same.
    """
    _bounded(len(new))
    rules = OldNodesUnchanged(old)
    read(new, rules, whole=True)
    rules.finish()
    # Attributes of the root and the like.
    data_xml.validate(new)
    data = data_xml.parse_element(new).find(DATA)
    fresh = [node for node in data if node.tag not in rules.names] if data is not None else []
    return _checked(old, _BETWEEN.join([serialised(node) for node in fresh]), check)


@remembered(len)
def merge_nodes(document: bytes, nodes: bytes) -> bytes:
    """Return the document with the nodes after its own, byte for byte. Raises Exists for a taken name."""
    if not nodes.strip(_SPACE):
        return document
    _check_names(names_of(nodes), names(document))
    merged = _spliced(document, nodes.strip(_SPACE))
    _bounded(len(merged))
    return merged


class IncrementalCheck:
    """Checks the bytes of a writer as they arrive, and raises as soon as a refusal is certain.

    It reports errors early, at write(2): the functions above still check the whole. Once it has raised, it raises the
    same error for all later bytes. Not for several threads at once.
    """

    def __init__(self, old: bytes, *, rewriting: bool) -> None:
        self._room = LARGEST - (0 if rewriting else len(old))
        self._taken = () if rewriting else names(old)
        self._stream = NodeStream(OldNodesUnchanged(old), whole=True) if rewriting else None
        #: Complete nodes, the first that were written: most writers write no more, and need no stream.
        self._first = b""
        self._undecided, self._unreadable = rewriting, False
        self._rest = b""
        self._error: WebarcError | None = None

    def feed(self, chunk: bytes) -> None:
        """Check the next written bytes."""
        if self._error is not None:
            raise self._error.with_traceback(None)
        try:
            self._feed(chunk)
        except WebarcError as error:
            self._error = error
            raise

    def _feed(self, chunk: bytes) -> None:
        self._room -= len(chunk)
        _bounded(LARGEST - self._room)
        if self._undecided:
            chunk = self._decided(chunk)
        if self._unreadable or self._undecided:
            return
        if found := _CONTROL.search(chunk):
            raise InvalidDocument(f"XML cannot hold the byte {found[0]!r}")
        if self._stream is None:
            if self._is_whole(chunk):
                return
            self._stream = NodeStream(UniqueNames(self._taken), whole=False)
            chunk, self._first = self._first + chunk, b""
        # Cut where a token may end: parsers hold back tokens that are cut elsewhere.
        end = chunk.rfind(b">") + 1
        if end:
            whole, self._rest = self._rest + chunk[:end], b""
            self._stream.feed(whole)
        self._rest += chunk[end:]
        self._check_rest(self._stream)

    def _is_whole(self, chunk: bytes) -> bool:
        """Return whether all written bytes are complete nodes, and few; then they are checked."""
        if self._first or not chunk.rstrip(_SPACE).endswith(b">"):
            return False
        if (simple := _simple(chunk)) is not None:
            _check_names(simple.names, self._taken)
        elif (tree := small_tree(enclosed(chunk))) is not None:
            tell(tree, NodeReader(UniqueNames(self._taken), whole=False))
        else:
            return False
        self._first = chunk
        return True

    def _decided(self, chunk: bytes) -> bytes:
        """Return the checkable bytes of a new document: none before its encoding is known, or if it is not UTF-8."""
        head, self._rest = self._rest + chunk, b""
        if len(head) < len(_BOM) + 1 or (head.removeprefix(_BOM).startswith(b"<?xml") and b">" not in head):
            self._rest = head
            return b""
        self._undecided = False
        head = head.removeprefix(_BOM)
        if b"\0" in head[:4] or head[:2] in (b"\xfe\xff", b"\xff\xfe") or _ENCODING.match(head):
            self._unreadable = True
        return head

    def _check_rest(self, stream: NodeStream) -> None:
        if len(self._rest) > LONGEST:
            raise InvalidDocument(f"XML with more than {LONGEST} bytes without a tag")
        text = self._rest.lstrip(_SPACE)
        if text and not text.startswith(b"<") and not stream.reader.inside:
            raise InvalidDocument("there is text between data nodes; they are elements")


def _old(document: bytes) -> etree._Element:
    try:
        root = data_xml.parse_element(document)
    except InvalidDocument as error:
        raise Damaged(f"the data.xml in the archive cannot be read: {error}") from None
    data = root.find(DATA)
    if root.tag != FILE or data is None:
        raise Damaged("the data.xml in the archive is none")
    return data


def _tags(data: etree._Element) -> Iterable[str]:
    return (str(node.tag) for node in data if isinstance(node.tag, str))


def _check_names(fresh: Iterable[str], taken: Iterable[str]) -> None:
    """Raise Exists for the first new name that is taken, InvalidDocument for too many names."""
    rule = UniqueNames(taken)
    for name in fresh:
        rule.begins(name)


def _checked(old: bytes, nodes: bytes, check: Check) -> bytes:
    """Return the new nodes, if they make a valid document with the old ones, and `check` accepts them."""
    if nodes:
        merged, fresh = merge_nodes(old, nodes), names_of(nodes)
        data = data_xml.validate(merged).find(DATA)
        assert data is not None
        names.know((*names(old), *fresh), merged)
        check(nodes, list(data)[-len(fresh) :])
    return nodes


def _spliced(document: bytes, nodes: bytes) -> bytes:
    if not document.startswith(_HEAD) or not document.endswith((_NONE, _END)):
        document = _in_our_form(document)
    if document.endswith(_NONE):
        return document.removesuffix(_NONE) + _BEGIN + _BETWEEN + nodes + _END
    # In a valid document with this ending, the end tag is that of its one arc:data.
    return document.removesuffix(_END) + _BETWEEN + nodes + _END


def _in_our_form(document: bytes) -> bytes:
    """Return a document that another program wrote into the archive, in our form."""
    nodes = _BETWEEN.join(serialised(node) for node in _old(document) if isinstance(node.tag, str))
    bare = data_xml.describe(data_xml.metadata(document))
    return _spliced(bare, nodes) if nodes else bare


def _bounded(size: int) -> None:
    if size > LARGEST:
        raise InvalidDocument(f"data.xml would have {size} bytes; at most {LARGEST} are kept")
