"""Data nodes (/Xm-3/ … /Xm-5/): appended, rewritten, merged; old ones stay as they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.pure.test_arcxml import bomb
from tests.pure.test_model import META
from tests.support.memory import kept
from tests.support.properties import examples
from webarcfs.archive.document import data_nodes, data_xml
from webarcfs.archive.document.data_nodes import (
    IncrementalCheck,
    appended,
    extended,
    merge_nodes,
    names,
    names_of,
    rewritten,
)
from webarcfs.archive.model.errors import Damaged, Exists, InvalidDocument, NotPermitted, WebarcError

pytestmark = pytest.mark.pure

EMPTY = data_xml.describe(META)
OLD = merge_nodes(
    EMPTY, b"<words>42</words>\n    <w:words xmlns:w='urn:w' a='1' b=\"2\"><!-- so --><x/>&amp; more</w:words>"
)
TYPED = (
    b"<a xmlns:i='http://www.w3.org/2001/XMLSchema-instance' xmlns:s='http://www.w3.org/2001/XMLSchema' i:type='s:int'>"
)


def with_nodes(nodes: str, document: bytes = EMPTY) -> bytes:
    """A document as a user would write it: new nodes before the end of arc:data."""
    if b"<arc:data/>" in document:
        return document.replace(b"<arc:data/>", f"<arc:data>{nodes}</arc:data>".encode())
    return document.replace(b"</arc:data>", f"{nodes}</arc:data>".encode())


def canonical(document: bytes) -> list[bytes]:
    """The nodes in canonical XML, which says the same of the same content."""
    data = etree.fromstring(document).find(data_xml.DATA)
    assert data is not None
    return [etree.tostring(node, method="c14n", exclusive=True, with_tail=False) for node in data]


def test_the_first_node_looks_as_the_design_shows() -> None:
    document = merge_nodes(EMPTY, appended(EMPTY, b"<words>42</words>\n"))
    assert document.endswith(b"\n  <arc:data>\n    <words>42</words>\n  </arc:data>\n</arc:file>\n")
    assert document.startswith(EMPTY.removesuffix(b"<arc:data/>\n</arc:file>\n"))
    data_xml.validate(document)
    assert data_xml.metadata(document) == META
    assert names(document) == ("words",)


def test_names_are_expanded_and_in_order() -> None:
    assert names(OLD) == ("words", "{urn:w}words")
    assert names(EMPTY) == ()
    assert names_of(b"<b/><a xmlns='urn:a'/>") == ("b", "{urn:a}a")


ACCEPTED = [
    b"<a/>",
    b"<a/><b/>\n<c>text</c>",
    b"  <a>\n  <b/>\n</a>  ",
    b"<a xmlns='urn:a'><b xmlns=''/></a>",
    b"<p:words xmlns:p='urn:other'/>",
    b"<a b='&lt;&quot;&#10;&#9;' c=\"'\">&#13;&gt;]]&gt;</a>",
    b"<a><![CDATA[<not/> > an element]]></a>",
    b"<a><!-- > --><?pi > ?></a>",
    TYPED + b"4</a>",
    b"<a b=' xmlns:arc=\"urn:webarcfs:arc:1\"'/>",
    b"<a xml:lang='de' xml:space='preserve'> </a>",
    "<\u00e4\u00f6 \u00fc='\U0001f600'>\u2028\ud7ff\ufffd</\u00e4\u00f6>".encode(),
    b"<a>" * data_nodes.LEVELS + b"</a>" * data_nodes.LEVELS,
    b"<a>" + b"x" * 1_000_000 + b"</a>",
]


@pytest.mark.parametrize("tail", ACCEPTED, ids=lambda tail: repr(tail[:30]))
def test_elements_that_are_appended_are_new_nodes(tail: bytes) -> None:
    """/Xm-3/, /Xm-3.2/: any structure, any content."""
    for old in (EMPTY, OLD):
        judge = IncrementalCheck(old, rewriting=False)
        judge.feed(tail)
        document = merge_nodes(old, appended(old, tail))
        data_xml.validate(document)
        assert canonical(document)[: len(names(old))] == canonical(old)
        assert canonical(document)[len(names(old)) :] == canonical(with_nodes(tail.decode()))
        # To be seen, to be told by whoever rewrites, and never a change.
        assert rewritten(document, document) == b""
        assert extended(old, old + tail) == appended(old, tail)


@pytest.mark.parametrize("tail", ACCEPTED, ids=lambda tail: repr(tail[:30]))
def test_a_rewritten_document_gives_its_new_nodes(tail: bytes) -> None:
    for old in (EMPTY, OLD):
        new = with_nodes(tail.decode(), old)
        IncrementalCheck(old, rewriting=True).feed(new)
        assert rewritten(old, new) == extended(old, new) == appended(old, tail)


def test_nothing_added_is_nothing_new() -> None:
    for old in (EMPTY, OLD):
        assert appended(old, b"") == appended(old, b" \r\n") == rewritten(old, old) == b""
        assert extended(old, old + b"\n") == b""
        assert merge_nodes(old, b"") == old


ENTITIES = bomb().partition(b"<a>")[0]
#: Bytes appended to OLD; the error; whether they say so on their own, without an end of the document.
REFUSED: list[tuple[bytes, type[WebarcError], bool]] = [
    (b"42\n", InvalidDocument, True),
    (b"<words>43</words>", Exists, True),
    (b"<a/><b/><a/>", Exists, True),
    (b"<v:words xmlns:v='urn:w'/>", Exists, True),
    (b"<a/>text<b/>", InvalidDocument, True),
    (b"<a/>text", InvalidDocument, True),
    (b"<a></b>", InvalidDocument, True),
    (b"<a", InvalidDocument, False),
    (b"<a>", InvalidDocument, False),
    (b"<a>text", InvalidDocument, False),
    (b"<a b='1' b='2'/>", InvalidDocument, True),
    (b"<a><b c=1/></a>", InvalidDocument, True),
    (b"<p:a/>", InvalidDocument, True),
    (b"<a p:b='1'/>", InvalidDocument, True),
    (b"<arc:note/>", InvalidDocument, True),
    (b"<note xmlns='urn:webarcfs:arc:1'/>", InvalidDocument, True),
    (b"<arc:meta url='http://evil.example/'/>", InvalidDocument, True),
    (b"</arc:data>", InvalidDocument, True),
    (b"</arc:data><arc:data>", InvalidDocument, True),
    (b"<a/></arc:data></arc:file>", InvalidDocument, True),
    (b"<a/></arc:data><arc:data xmlns:arc='urn:webarcfs:arc:1'><b/>", InvalidDocument, True),
    (b"<a/><!-- a note -->", InvalidDocument, True),
    (b"<a/><?target data?>", InvalidDocument, True),
    (b"<?xml version='1.0'?><a/>", InvalidDocument, True),
    (b"<!DOCTYPE a><a/>", InvalidDocument, True),
    (b"<a>&unknown;</a>", InvalidDocument, True),
    (b"<a>&#11;</a>", InvalidDocument, True),
    (b"<a>&#xFFFE;</a>", InvalidDocument, True),
    (b"<a>&#xD800;</a>", InvalidDocument, True),
    (b"<a>\x0b</a>", InvalidDocument, True),
    (b"<a>\x00", InvalidDocument, True),
    ("<a>\ufffe</a>".encode(), InvalidDocument, True),
    ("<a>\ud800</a>".encode("utf-8", "surrogatepass"), InvalidDocument, True),
    ("<a>\u00e9</a>".encode("latin-1"), InvalidDocument, True),
    ("<a>x</a>".encode("utf-16"), InvalidDocument, True),
    (b"\x00" * 100, InvalidDocument, True),
    (bytes(range(256)), InvalidDocument, True),
    (b"\x1f\x8b\x08\x00" + bytes(range(255, 0, -1)) * 400, InvalidDocument, True),
    (ENTITIES + b"<a>&e11;</a>", InvalidDocument, True),
    (b"<a>" * 10_000 + b"</a>" * 10_000, InvalidDocument, True),
    (b"<a>" * 10_000, InvalidDocument, True),
    (b"<a xml:id='x'/>", InvalidDocument, True),
    (b"<a><b xml:id='x'/></a>", InvalidDocument, True),
    (TYPED + b"x</a>", InvalidDocument, False),
    (b"<a>" + b"x" * (data_nodes.LONGEST + 1) + b"</a>", InvalidDocument, True),
    (b"<a>" + b"x" * (data_nodes.LONGEST + 1), InvalidDocument, True),
    (b"<a b='" + b"x" * (data_nodes.LONGEST + 1), InvalidDocument, True),
    (b"".join(b"<n%d/>" % i for i in range(data_nodes.MOST)), InvalidDocument, True),
]


@pytest.mark.large
@pytest.mark.parametrize(
    ("tail", "kind", "early"), REFUSED, ids=lambda each: repr(each[:30]) if isinstance(each, bytes) else ""
)
def test_what_is_appended_and_refused(tail: bytes, kind: type[WebarcError], early: bool) -> None:
    """/Xm-3.1/, /Xm-4/: the errno says what is wrong, at write(2) where that can be told."""
    with pytest.raises(WebarcError) as raised:
        appended(OLD, tail)
    assert type(raised.value) is kind
    judge = IncrementalCheck(OLD, rewriting=False)
    if not early:
        judge.feed(tail)
        return
    for _ in range(2):
        with pytest.raises(WebarcError) as raised:
            judge.feed(tail)
        assert type(raised.value) is kind
    with pytest.raises(kind):
        judge.feed(b"<fine/>")


def outcome(attempt: Callable[[], object]) -> object:
    """What comes of it: what is returned, or what is raised and says."""
    try:
        return attempt()
    except WebarcError as error:
        return type(error), str(error)


def judged(old: bytes, tail: bytes) -> object:
    return outcome(lambda: IncrementalCheck(old, rewriting=False).feed(tail))


@pytest.mark.large
@pytest.mark.parametrize("tail", [*ACCEPTED, *(tail for tail, _, _ in REFUSED)], ids=lambda tail: repr(tail[:30]))
def test_what_was_found_before_changes_no_answer(tail: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of nodes is what holds wherever they are added. Refusals say the same, too."""
    olds = (EMPTY, OLD, merge_nodes(EMPTY, b"<a/>"))
    found = [(judged(old, tail), outcome(lambda: appended(old, tail))) for old in olds for _ in range(2)]  # noqa: B023 # called at once
    monkeypatch.setattr(data_nodes, "_simple", lambda _: None)
    expected = [(judged(old, tail), outcome(lambda: appended(old, tail))) for old in olds for _ in range(2)]  # noqa: B023
    assert found == expected


def test_one_node_is_parsed_as_it_is_written_and_in_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what the processor's time for a data node goes into."""
    parsed: list[bytes] = []
    parse = data_xml.parse_element
    monkeypatch.setattr(data_xml, "parse_element", lambda document: parsed.append(document) or parse(document))
    seen: list[tuple[bytes, list[str]]] = []
    old, tail = EMPTY.replace(b"Example", b"Parsed twice"), b"<twice at='most'/>\n<once/>"
    IncrementalCheck(old, rewriting=False).feed(tail)
    nodes = extended(old, old + tail, lambda new, elements: seen.append((new, [str(each.tag) for each in elements])))
    new = merge_nodes(old, nodes)
    assert names(new) == names_of(nodes) == ("twice", "once")
    assert parsed == [data_nodes.enclosed(tail), new]
    assert seen == [(nodes, ["twice", "once"])]
    more = extended(new, new + b"<c/>", lambda _, elements: seen.append((b"", [str(each.tag) for each in elements])))
    assert merge_nodes(new, more) == parsed[-1] and len(parsed) == 4 and seen[-1] == (b"", ["c"])


def test_a_check_has_the_last_word() -> None:
    def refuse(nodes: bytes, _: object) -> None:
        raise InvalidDocument(f"not {nodes!r}")

    for old in (EMPTY, OLD):
        for new in (old + b"<a/>", with_nodes("<a/>", old)):
            with pytest.raises(InvalidDocument, match="not b'<a/>'"):
                extended(old, new, refuse)
            assert extended(old, old, refuse) == b""
        with pytest.raises(Exists):
            extended(merge_nodes(old, b"<a/>"), merge_nodes(old, b"<a/>") + b"<a/>", refuse)


def test_what_is_remembered_is_little() -> None:
    """However many and whatever kinds of nodes are written: bounded in bytes, results and what they are for."""
    calls: list[bytes] = []
    known = data_nodes.CachedFunction(lambda each: calls.append(each) or each, len)
    large = b"x" * (data_nodes.SMALL + 1)
    assert [known(each) for each in (large, large, b"a", b"a")] == [large, large, b"a", b"a"]
    known.know(b"known", b"b")
    known.know(b"known", large)
    assert known(b"b") == b"known" and known(large) == large
    assert calls == [large, large, b"a", large]
    many = data_nodes.HELD // data_nodes.SMALL
    for number in range(2 * many):
        known(b"%d" % number)
    assert known.weight <= data_nodes.HELD
    calls.clear()
    known(b"0")
    known(b"%d" % (2 * many - 1))
    assert calls == [b"0"]


def edited(old: str, new: str) -> bytes:
    assert old in OLD.decode()
    return OLD.decode().replace(old, new, 1).encode()


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        (edited('title="Example"', 'title="Mine"'), NotPermitted),
        (edited('title="Example"', ""), NotPermitted),
        (edited("<arc:meta", "<arc:meta more='1'"), NotPermitted),
        (edited("<words>42</words>", "<words>43</words>"), NotPermitted),
        (edited("<words>42</words>", "<words> 42</words>"), NotPermitted),
        (edited("<words>42</words>", "<words b='1'>42</words>"), NotPermitted),
        (edited("<words>42</words>", ""), NotPermitted),
        (edited("<words>42</words>", "<words xmlns='urn:v'>42</words>"), NotPermitted),
        (edited("<!-- so -->", "<!-- not so -->"), NotPermitted),
        (edited("<x/>", "<y/>"), NotPermitted),
        (edited("&amp; more", "&amp; less"), NotPermitted),
        (OLD.partition(b"<arc:data>")[0] + b"<arc:data/></arc:file>", NotPermitted),
        (EMPTY, NotPermitted),
        (b"<arc:file xmlns:arc='urn:webarcfs:arc:1'><arc:data/></arc:file>", NotPermitted),
        (edited("</arc:data>", "<words/></arc:data>"), Exists),
        (edited("</arc:data>", "<a/><a/></arc:data>"), Exists),
        (edited("<arc:data>", "<arc:data a='1'>"), InvalidDocument),
        (edited("<arc:file", "<arc:file a='1'"), InvalidDocument),
        (edited("</arc:data>", "<arc:note/></arc:data>"), InvalidDocument),
        (edited("</arc:data>", "text</arc:data>"), InvalidDocument),
        (edited("</arc:data>", "<a></arc:data>"), InvalidDocument),
        (edited("</arc:data>", "</arc:data><arc:data/>"), InvalidDocument),
        (edited("<?xml", "<!-- mine --><?xml"), InvalidDocument),
        (edited("<arc:file", "<!-- mine --><arc:file"), InvalidDocument),
        (edited("<arc:file", "<!DOCTYPE arc:file><arc:file"), InvalidDocument),
        (edited("urn:webarcfs:arc:1", "urn:webarcfs:arc:2"), InvalidDocument),
        (edited("UTF-8", "UTF-16"), InvalidDocument),
        (edited("UTF-8", "nonsense"), InvalidDocument),
        (edited("42", "\x0b"), InvalidDocument),
        (OLD[:-1].removesuffix(b"</arc:file>"), InvalidDocument),
        (OLD + b"<more/><more2/>", InvalidDocument),
        (b"", InvalidDocument),
        (b"<html/>", InvalidDocument),
        (b"hello", InvalidDocument),
    ],
    ids=range(34),
)  # fmt: skip
def test_rewritten_documents_that_are_refused(new: bytes, kind: type[WebarcError]) -> None:
    """EPERM: metadata or an old node changed (/Xm-5/); EEXIST: a name is taken; EINVAL: not well-formed, not valid."""
    with pytest.raises(WebarcError) as raised:
        rewritten(OLD, new)
    assert type(raised.value) is kind


@pytest.mark.parametrize("cut", [1, 3, 7, 64, 4096])
def test_a_rewriting_is_judged_while_it_is_written(cut: int) -> None:
    new = edited("<words>42</words>", "<words>43</words>")
    judge = IncrementalCheck(OLD, rewriting=True)
    wrong = new.index(b"</words>") + len(b"</words>")
    for begin in range(0, len(new), cut):
        if begin + cut < wrong:
            judge.feed(new[begin : begin + cut])
            continue
        with pytest.raises(NotPermitted):
            judge.feed(new[begin : begin + cut])
        break
    judge = IncrementalCheck(OLD, rewriting=True)
    for begin in range(0, len(OLD), cut):
        judge.feed(OLD[begin : begin + cut])


def test_old_nodes_cannot_change_places() -> None:
    old = merge_nodes(EMPTY, b"<a/>\n    <b/>\n    <c/>")
    with pytest.raises(NotPermitted):
        rewritten(old, with_nodes("<b/><a/><c/>"))
    with pytest.raises(NotPermitted):
        IncrementalCheck(old, rewriting=True).feed(with_nodes("<b/><a/><c/>"))
    assert rewritten(old, with_nodes("<x/><a/><y/><b/><c/><z/>")) == b"<x/>\n    <y/>\n    <z/>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "us-ascii", "windows-1252"])
def test_a_rewritten_document_may_be_spelled_otherwise(encoding: str) -> None:
    """Another encoding, other quotes, another prefix; what is kept is our form of it."""
    text = with_nodes("<neu>caf\u00e9</neu>" if "ascii" not in encoding else "<neu>caf&#233;</neu>", OLD).decode()
    text = text.replace("UTF-8", encoding.removesuffix("-sig")).translate(str.maketrans("'\"", "\"'"))
    text = text.replace("arc:", "a:").replace("xmlns:arc", "xmlns:a").replace("webarcfs:a:1", "webarcfs:arc:1")
    new = text.encode(encoding)
    judge = IncrementalCheck(OLD, rewriting=True)
    for byte in new:
        judge.feed(bytes([byte]))
    document = merge_nodes(OLD, rewritten(OLD, new))
    assert document.startswith(OLD.removesuffix(b"\n  </arc:data>\n</arc:file>\n"))
    assert canonical(document)[-1] == "<neu>caf\u00e9</neu>".encode()
    data_xml.validate(document)


def test_prefixes_that_values_use_are_kept() -> None:
    """A prefix may be meant in a text or an attribute's value; who can tell?"""
    new = with_nodes("<a t='p:x'/>").replace(b"<arc:file ", b"<arc:file xmlns:p='urn:p' ")
    (node,) = etree.fromstring(merge_nodes(EMPTY, rewritten(EMPTY, new)))[1]
    assert node.nsmap["p"] == "urn:p"


def test_a_name_that_was_added_meanwhile_is_told_when_nodes_are_merged() -> None:
    ours, theirs = appended(EMPTY, b"<a/>"), appended(EMPTY, b"<b/><a/>")
    with pytest.raises(Exists):
        merge_nodes(merge_nodes(EMPTY, ours), theirs)


def test_a_document_of_another_form_is_brought_into_ours_first() -> None:
    other = b"<file xmlns='urn:webarcfs:arc:1'>" + EMPTY[EMPTY.index(b"<arc:meta") :].replace(b"arc:meta", b"meta")
    other = other.replace(b"<arc:data/>", b"<data><a xmlns=''>1</a></data>").replace(b"</arc:file>", b"</file>")
    document = merge_nodes(other, b"<b/>")
    assert data_xml.metadata(document) == META
    assert names(document) == ("a", "b")
    assert document == merge_nodes(EMPTY, b'<a xmlns="">1</a>\n    <b/>')


@pytest.mark.parametrize("old", [b"", b"no XML", b"<a/>", EMPTY[:-5], bomb()])
def test_a_damaged_document_is_not_the_writers_fault(old: bytes) -> None:
    calls: list[Callable[[], object]] = [
        lambda: names(old),
        lambda: appended(old, b"<a/>"),
        lambda: rewritten(old, EMPTY),
        lambda: merge_nodes(old, b"<a/>"),
        lambda: IncrementalCheck(old, rewriting=True),
    ]
    for call in calls:
        with pytest.raises(Damaged):
            call()


@pytest.mark.large
def test_documents_are_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB are refused before anything is read, and by the write that goes too far."""
    begun = time.process_time()
    huge = b"<a>" + b"x" * 100_000_000 + b"</a>"
    with pytest.raises(InvalidDocument, match="at most"):
        appended(EMPTY, huge)
    with pytest.raises(InvalidDocument, match="at most"):
        rewritten(EMPTY, huge)
    assert time.process_time() - begun < 10
    monkeypatch.setattr(data_nodes, "LARGEST", len(OLD) + 100)
    judge = IncrementalCheck(OLD, rewriting=False)
    judge.feed(b"<a>" + b" " * 90)
    with pytest.raises(InvalidDocument, match="at most"):
        judge.feed(b" " * 10)
    # What grows when it is serialised is measured then.
    with pytest.raises(InvalidDocument, match="at most"):
        appended(OLD, b"<a>" + b">" * 80 + b"</a>")


# A loaded machine is slow, and that is no fault of the code.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(60))
text = st.text("ab <>&\"']\n\t\u00e4\u2028\U0001f600", max_size=12)
content = text.map(escape) | st.sampled_from(["<!-- > -->", "<?p > ?>", "<![CDATA[<&>]]>", "&#13;", "&#x1F600;"])
#: How an element may be called, and what binds its prefix.
CALLED = [("a", ""), ("b", ""), ("words", ""), ("\u00e4", ""), ("p:a", " xmlns:p='urn:a'"), ("p:a", " xmlns:p='urn:b'")]
CALLED += [("q:b", ' xmlns:q="urn:b"'), ("a", " xmlns='urn:a'"), ("b", " xmlns=''")]


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    """An element with whatever an element can hold, as somebody might write it."""
    name, bound = draw(st.sampled_from(CALLED))
    attributes = draw(st.lists(st.sampled_from(["x", "y", "p:x"]), max_size=2, unique=True))
    if "p:x" in attributes and "xmlns:p" not in bound:
        bound += " xmlns:p='urn:c'"
    words = "".join(f" {each}={quoteattr(draw(text))}" for each in attributes)
    inner = draw(st.lists(content | elements(depth - 1) if depth else content, max_size=3))
    return f"<{name}{bound}{words}>{''.join(inner)}</{name}>" if inner else f"<{name}{words}{bound} />"


def expanded(node: str) -> str:
    return str(etree.fromstring(node.encode()).tag)


def unique(nodes: list[str]) -> list[str]:
    return list({expanded(node): node for node in nodes}.values())


def written(nodes: list[str]) -> bytes:
    return "\n".join(nodes).encode()


@pytest.mark.large
@PATIENT
@given(st.lists(elements(), max_size=4).map(unique), st.lists(elements(), max_size=3).map(unique))
def test_additions_of_two_writers_commute(ours: list[str], theirs: list[str]) -> None:
    """Two writers at once both succeed if their nodes differ; each node is there once, as it was written."""
    theirs = [node for node in theirs if expanded(node) not in set(map(expanded, ours))]
    one, two = appended(EMPTY, written(ours)), appended(EMPTY, written(theirs))
    first = merge_nodes(merge_nodes(EMPTY, one), two)
    second = merge_nodes(merge_nodes(EMPTY, two), one)
    assert sorted(canonical(first)) == sorted(canonical(second))
    assert canonical(first) == canonical(with_nodes("".join(ours + theirs)))
    assert first.startswith(merge_nodes(EMPTY, one).removesuffix(b"\n  </arc:data>\n</arc:file>\n")) or not ours
    data_xml.validate(first)
    assert appended(merge_nodes(EMPTY, one), written(theirs)) == two
    assert rewritten(first, second if not (ours and theirs) else first) == b""


@pytest.mark.parametrize("part", [b"<b/>", b"<b c='' d='' e='' f=''/>", b"<!---->", b"<?p?>"])
def test_documents_are_bounded_in_number(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree takes many times the memory of its text; so what is in it is counted before one is made."""
    monkeypatch.setattr(data_nodes, "PARTS", 1000)
    for tail in (b"<a>" + part * 1000 + b"</a>", part * 1000):
        with pytest.raises(WebarcError):
            appended(OLD, tail)
        with pytest.raises(WebarcError):
            IncrementalCheck(OLD, rewriting=False).feed(tail)
    appended(OLD, b"<a>" + part * 199 + b"</a>")


PARTS = b"""<a> </a> <b/> x & < ' &lt; &x; <![CDATA[ ]]> <!-- --> <?p ?> <c_d=' '> </c> </arc:data> <arc:data> <arc:x/>
<words/> <!DOCTYPE_a_[ ]> <p:q_xmlns:p='urn:w'/> _ \xff \x00 \x0b"""
pieces = st.lists(st.sampled_from([part.replace(b"_", b" ") for part in PARTS.split()]), max_size=12).map(b"".join)


@PATIENT
@given(st.binary(max_size=80) | pieces, st.integers(1, 20))
def test_whatever_is_accepted_is_valid_and_was_not_refused_early(tail: bytes, cut: int) -> None:
    """And nothing raises but what is ours."""
    judge, refused = IncrementalCheck(OLD, rewriting=False), None
    try:
        for begin in range(0, len(tail), cut):
            judge.feed(tail[begin : begin + cut])
    except WebarcError as error:
        refused = error
    try:
        nodes = appended(OLD, tail)
    except WebarcError as error:
        assert refused is None or errors_agree(refused, error)
        return
    assert refused is None
    document = merge_nodes(OLD, nodes)
    data_xml.validate(document)
    assert document.startswith(OLD.removesuffix(b"\n  </arc:data>\n</arc:file>\n"))
    assert names(document) == names(OLD) + (names_of(nodes) if nodes else ())


@pytest.mark.large
@PATIENT
@given(st.binary(max_size=80) | pieces | st.lists(elements(), max_size=3).map(written))
def test_a_small_document_is_read_by_its_tree_as_by_events(tail: bytes) -> None:
    """Which of the two reads it depends on its size alone, and nobody may notice."""
    found = []
    for small in (data_nodes.SMALL, 0):
        rules, fault = data_nodes._Record(), ""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(data_nodes, "SMALL", small)
            try:
                data_nodes.read(data_nodes.enclosed(tail), rules, whole=False)
            except WebarcError as error:
                fault = str(error)
        found.append(([name for name, _ in rules.nodes], fault))
    assert found[0] == found[1]


def errors_agree(early: WebarcError, late: WebarcError) -> bool:
    """Of several faults in one text, either may be told."""
    return {type(early), type(late)} <= {InvalidDocument, Exists}


@PATIENT
@given(st.binary(max_size=60), st.integers(0, len(OLD)), st.integers(0, 40), st.integers(1, 60))
def test_a_damaged_rewriting_is_refused_or_changes_nothing(junk: bytes, at: int, length: int, cut: int) -> None:
    new = OLD[:at] + junk + OLD[at + length :]
    judge, refused = IncrementalCheck(OLD, rewriting=True), None
    try:
        for begin in range(0, len(new), cut):
            judge.feed(new[begin : begin + cut])
    except WebarcError as error:
        refused = error
    try:
        nodes = rewritten(OLD, new)
    except WebarcError:
        return
    assert refused is None
    document = merge_nodes(OLD, nodes)
    data_xml.validate(document)
    assert canonical(document)[:2] == canonical(OLD)


@pytest.mark.large
@PATIENT
@given(st.lists(elements(), min_size=1, max_size=3).map(unique), st.data())
def test_the_judge_lets_pass_what_is_right_however_it_is_cut(nodes: list[str], data: st.DataObject) -> None:
    tail = written(nodes)
    assume(len(tail) > 3)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(tail) - 1), max_size=8)))
    for rewriting, whole in ((False, tail), (True, with_nodes(tail.decode()))):
        judge = IncrementalCheck(EMPTY, rewriting=rewriting)
        for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            judge.feed(whole[begin:end])  # must not raise


@pytest.mark.large
@pytest.mark.parametrize(
    "pieces", [(b"<a>", b"</a>"), (b"<a>", b"</a><a/>"), (b"<a>", b"</b>"), (b"<!DOCTYPE a>", b"<a>")]
)
def test_nothing_stays_of_what_was_judged_as_it_came(pieces: tuple[bytes, ...]) -> None:
    """Neither of what passed nor of what was refused; a mount judges for months."""

    def write() -> None:
        judge = IncrementalCheck(EMPTY, rewriting=False)
        with suppress(InvalidDocument, Exists):
            for piece in pieces:
                judge.feed(piece)

    assert kept(write, 1000) < 50
