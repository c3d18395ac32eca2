"""Data nodes of data.xml: appended or rewritten documents yield new nodes, which are spliced in (/Xm-3/, /Xm-5/).

Old nodes are never rewritten: new ones are inserted between them and the end of the document, each serialised here.
Every accepted document validates against xsd/arc.xsd; schemas.py checks users' schemas. Raises InvalidDocument (EINVAL)
for documents that are not well-formed, not valid or out of bounds, Exists (EEXIST) for a taken name, NotPermitted
(EPERM) for changed metadata or old nodes, Damaged for an invalid old document.

Documents come from users, so data.xml, or data nodes alone, are read as a stream of events: within bounds, in constant
memory, before a tree is made. `NodeRules`, the rules for nodes that users add (/Xm-3.1/, /Xm-5/), receive the beginning
and end of each node, so that a fault is found as soon as its bytes arrive.

The results of functions of small bytes are cached, within bounds of memory. The data nodes of one addition are checked
as they are written and as a whole, claimed, merged and committed, by several threads; each step can use the results of
those before. Otherwise pure; safe for any thread.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from lxml import etree

from webarcfs.archive.document import data_xml
from webarcfs.archive.document.data_xml import DATA, FILE, LARGEST, META, NAMESPACE
from webarcfs.archive.model.errors import Damaged, Exists, InvalidDocument, NotPermitted, WebarcError
from webarcfs.archive.system.cache import Cache

# == memoize, pure ====================================================================================================


#: Bytes of arguments up to which a result is remembered.
SMALL = 8 << 10
#: Capacity of one function's cache in bytes; each result also counts as much as the largest arguments.
HELD = 8 << 20

R = TypeVar("R")


class CachedFunction(Generic[R]):
    """A deterministic function of bytes, with a cache; `weigh` returns the bytes that a result takes."""

    def __init__(self, function: Callable[..., R], weigh: Callable[[R], int]) -> None:
        self._function = function
        self._results: Cache[tuple[bytes, ...], R] = Cache(HELD, lambda result: SMALL + weigh(result))
        self.__doc__ = function.__doc__

    @property
    def weight(self) -> int:
        """Upper bound of the bytes in the cache."""
        return self._results.weight

    def __call__(self, *arguments: bytes) -> R:
        """Return the function's result. Errors are not cached."""
        if sum(map(len, arguments)) > SMALL:
            return self._function(*arguments)
        return self._results.get(arguments, lambda: self._function(*arguments))

    def know(self, result: R, *arguments: bytes) -> None:
        """Add a result that the caller has found in another way."""
        if sum(map(len, arguments)) <= SMALL:
            self._results.get(arguments, lambda: result)


def remembered(weigh: Callable[[Any], int]) -> Callable[[Callable[..., R]], CachedFunction[R]]:
    """Decorate a function with a cache."""
    return lambda function: CachedFunction(function, weigh)


def weight_of_names(names: tuple[str, ...]) -> int:
    """Return the bytes that names take."""
    return sum(map(sys.getsizeof, names))


# == node parser ======================================================================================================


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
    match = _ARC_BOUND.match(text)
    return (match[1] + text[match.end() :] if match else text).encode("utf-8")


def _parser(target: NodeReader | _Heard) -> etree.XMLParser:
    return etree.XMLParser(
        target=target,  # type: ignore[arg-type] # lxml-stubs ask for methods that take bytes too
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
    )


# == node rules, pure =================================================================================================


#: Data nodes of one document.
MOST = 50_000


class UniqueNames(NodeRules):
    """Each node's name must be a new one (/Xm-3.1/)."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def begins(self, name: str) -> None:
        """Refuse a taken name."""
        if name in self._taken:
            raise Exists(f"there is a data node {name} already")
        self._taken.add(name)
        if len(self._taken) > MOST:
            raise InvalidDocument(f"data.xml would have more than {MOST} data nodes")


class OldNodesUnchanged(UniqueNames):
    """The metadata and the old nodes must exist, in order and unchanged (/Xm-5/); other nodes must be new."""

    digests = True

    def __init__(self, old: bytes) -> None:
        super().__init__(())
        record = _Record()
        read_old(old, record)
        self._meta, self._old = record.fields, record.nodes
        self._next = 0
        self.names = {name for name, _ in record.nodes}

    def meta(self, fields: Mapping[str, str]) -> None:
        """Refuse changed metadata (/Xm-5.2/)."""
        if dict(fields) != self._meta:
            raise NotPermitted("the metadata in data.xml cannot be changed")

    def begins(self, name: str) -> None:
        """Refuse an old node out of order."""
        super().begins(name)
        if name in self.names and self._old[self._next][0] != name:
            raise _gone(self._old[self._next][0])

    def ends(self, name: str, digest: bytes) -> None:
        """Refuse a changed old node (/Xm-5.1/)."""
        if name in self.names:
            if self._old[self._next][1] != digest:
                raise NotPermitted(f"data node {name} cannot be changed")
            self._next += 1

    def finish(self) -> None:
        """Refuse a missing old node."""
        if self._next < len(self._old):
            raise _gone(self._old[self._next][0])


class _Record(NodeRules):
    """Records metadata and nodes."""

    digests = True

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.nodes: list[tuple[str, bytes]] = []

    def meta(self, fields: Mapping[str, str]) -> None:
        """Record the metadata."""
        self.fields = dict(fields)

    def ends(self, name: str, digest: bytes) -> None:
        """Record a node."""
        self.nodes.append((name, digest))


def read_old(document: bytes, rules: NodeRules) -> None:
    """Check a data.xml of the archive against rules. Raises Damaged for an invalid one: not the writer's fault."""
    try:
        read(document, rules, whole=True)
    except InvalidDocument as error:
        raise Damaged(f"the data.xml in the archive cannot be read: {error}") from None


def _gone(name: str) -> NotPermitted:
    return NotPermitted(f"data node {name} is missing or not where it was")


# == data nodes =======================================================================================================


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
    appended = _Simple(tuple(_tags(tree)), _BETWEEN.join([serialised(node) for node in tree]))
    # It is the same document apart from the space between the nodes.
    names_of.know(appended.names, appended.nodes)
    return appended


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
        if match := _CONTROL.search(chunk):
            raise InvalidDocument(f"XML cannot hold the byte {match[0]!r}")
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
