"""data.xml (/Xm-1/ … /Xm-5/): what is written is read, and what is hostile is refused."""

import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.pure.test_model import META, TAG
from webarcfs.archive.config import directory
from webarcfs.archive.document import data_xml
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import CET, EVIDENCE_FIELDS, FIELDS, MetaData

pytestmark = pytest.mark.pure

EMPTY = data_xml.describe(META)
hostile = st.text(max_size=60) | st.sampled_from(
    [
        '">',
        "'\"",
        "--><!-- ]]>",
        "<arc:meta/>",
        "&amp;&#10;&bomb;",
        "a\nb\tc\r\nd",
        "\x00\x0b\x1f",
        "\ud800",
        "\ufffe",
        "\u2028",
    ]
)


def with_data(nodes: str) -> bytes:
    return EMPTY.replace(b"<arc:data/>", f"<arc:data>{nodes}</arc:data>".encode())


def test_it_looks_as_the_design_shows() -> None:
    root = etree.fromstring(EMPTY)
    arc = "{urn:webarcfs:arc:1}"
    assert root.tag == f"{arc}file"
    meta, data = root
    assert (meta.tag, data.tag, len(data)) == (f"{arc}meta", f"{arc}data", 0)
    assert {str(name): str(value) for name, value in meta.attrib.items()} == {
        name: value for name, value in META.as_fields().items() if name in FIELDS
    }
    assert EMPTY.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<arc:file xmlns:arc="urn:webarcfs:arc:1">\n')
    data_xml.validate(EMPTY)


def test_time_and_status_of_a_capture_are_written_where_they_say_more() -> None:
    late = replace(META, captured=META.crawl_time + timedelta(seconds=9), status=404)
    document = data_xml.describe(late)
    assert document == EMPTY.replace(b"/>", b' captureTime="2026-11-21T03:00:09" status="404"/>', 1)
    data_xml.validate(document)
    assert data_xml.metadata(document) == late and data_xml.times(document) == times_of(late)
    assert data_xml.has_no_nodes(document)
    for wrong in (b'status="900"', b'status="x"', b'captureTime="soon"'):
        with pytest.raises(InvalidDocument):
            data_xml.validate(EMPTY.replace(b"/>", b" " + wrong + b"/>", 1))


def test_what_layout_3_may_have_is_written_where_it_says_something() -> None:
    more = replace(
        META, role="resource", source="HAR", certificate="expired", method="POST", rendered="a" * 40,
        request_type="application/json",
    )  # fmt: skip
    document = data_xml.describe(more)
    said = b' role="resource" certificate="expired" source="HAR" method="POST" rendered="' + b"a" * 40
    said += b'" requestType="application/json"/>'
    assert document == EMPTY.replace(b"/>", said, 1)
    data_xml.validate(document)
    assert data_xml.metadata(document) == more and data_xml.times(document) == times_of(META)
    assert data_xml.has_no_nodes(document)
    both = replace(more, status=404, captured=META.crawl_time + timedelta(seconds=9))
    assert data_xml.metadata(data_xml.describe(both)) == both
    for name in ("role", "source", "method", "rendered", "requestType"):
        with pytest.raises(InvalidDocument):
            data_xml.validate(EMPTY.replace(b"/>", f' {name}="?"/>'.encode(), 1))


@given(st.tuples(hostile, hostile, hostile, hostile))
def test_the_fields_of_layout_3_are_read_back(values: tuple[str, ...]) -> None:
    fields = dict(zip(EVIDENCE_FIELDS, values, strict=True))
    meta = MetaData.from_fields(META.as_attributes() | fields)
    found = data_xml.metadata(data_xml.describe(meta))
    cleaned = {name: data_xml.clean(value) for name, value in fields.items()}
    assert found == MetaData.from_fields(META.as_attributes() | cleaned)
    assert found.as_fields() == META.as_fields()


@given(hostile)
def test_attributes_are_written_as_the_standard_library_does(text: str) -> None:
    """For ever: the same metadata are the same bytes, whatever wrote them."""
    escapes = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
    assert data_xml.quoted(text) == quoteattr(data_xml.clean(text), escapes)


@given(
    hostile,
    hostile,
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 1, 1)),
    st.none() | st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 1, 1)),
    st.integers(100, 599),
)
def test_what_is_described_is_read_back(
    title: str, rest: str, created: datetime, captured: datetime | None, status: int
) -> None:
    meta = MetaData(
        url="http://www.example.org/" + rest,
        mime_type="text/html",
        title=title,
        path="/www.example.org/x" + rest,
        domain="www.example.org",
        crawl_time=TAG.crawl_time,
        create_time=created.replace(microsecond=0, tzinfo=CET),
        commit_tag=TAG,
        captured=None if captured is None else captured.replace(microsecond=0, tzinfo=CET),
        status=status,
    )
    document = data_xml.describe(meta)
    assert data_xml.describe(meta) == document
    found = data_xml.metadata(document)
    assert found.title == data_xml.clean(title)
    assert found.as_fields() == {name: data_xml.clean(value) for name, value in meta.as_fields().items()}
    if "\n" not in rest and "\r" not in rest:
        data_xml.validate(document)


@pytest.mark.parametrize(
    "nodes",
    [
        "<words>42</words>",
        "<words>42</words><w:words xmlns:w='urn:w'>42</w:words>",
        "<a xmlns='urn:a' b='c'><d><e/></d>text</a>",
        "<!-- a note --><words/><?target data?>",
        "<a><a/><a/></a>",
        "<x xmlns='urn:x' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:schemaLocation='urn:x /nowhere.xsd'/>",
        "\n  <words>42</words>\n",
    ],
)
def test_data_nodes_of_any_namespace_but_ours_or_none(nodes: str) -> None:
    """/Xm-3/, /Xm-3.2/."""
    data_xml.validate(with_data(nodes))
    assert data_xml.metadata(with_data(nodes)) == META


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ("<words>1</words><words>2</words>", "more than one data node words"),
        ("<w:a xmlns:w='urn:w'/><v:a xmlns:v='urn:w'/>", "more than one data node {urn:w}a"),
        ("<arc:other/>", "not valid"),
        ("<arc:meta/>", "not valid"),
        ("text", "not valid"),
        ("<words>", "not well-formed"),
        ("<words>\x0b</words>", "not well-formed"),
        ("<words>&unknown;</words>", "not well-formed"),
    ],
)
def test_data_nodes_that_are_refused(nodes: str, why: str) -> None:
    """/Xm-3.1/, /Xm-4/."""
    with pytest.raises(InvalidDocument, match=why.replace("{", r"\{")):
        data_xml.validate(with_data(nodes))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('url="http://www.example.org/"', 'url="ftp://www.example.org/"'),
        ('mimeType="text/html"', 'mimeType="html"'),
        ('title="Example"', f'title="{"x" * 1001}"'),
        ('crawlTime="2026-11-21T03:00:00"', 'crawlTime="2026-11-21T03:00:00Z"'),
        ('crawlTime="2026-11-21T03:00:00"', 'crawlTime="2026-13-21T03:00:00"'),
        ('domain="www.example.org"', ""),
        ('domain="www.example.org"', 'domain=""'),
        ('title="Example"', 'title="Example" more="1"'),
        ("<arc:data/>", ""),
        ("<arc:data/>", "<arc:data/><arc:data/>"),
        ("<arc:data/>", "<arc:data x='1'/>"),
        ("<arc:data/>", "<arc:data/>text"),
    ],
)
def test_the_schema_refuses(old: str, new: str) -> None:
    """/Xm-2/."""
    document = EMPTY.decode().replace(old, new)
    assert document != EMPTY.decode()
    with pytest.raises(InvalidDocument):
        data_xml.validate(document.encode())


def test_the_schema_is_one() -> None:
    etree.XMLSchema(etree.parse(str(directory.path("xsd", "arc.xsd"))))  # must not raise


def bomb(levels: int = 12) -> bytes:
    entities = "".join(f"<!ENTITY e{i} '{f'&e{i - 1};' * 10}'>" for i in range(1, levels))
    return f"<!DOCTYPE a [<!ENTITY e0 'lol'>{entities}]><a>&e{levels - 1};</a>".encode()


@pytest.mark.parametrize(
    "document",
    [
        bomb(),
        bomb().replace(b"<a>&e11;</a>", b"<a b='&e11;'/>"),
        b"<!DOCTYPE a><a/>",
        b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/a.dtd'><a/>",
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
        b"<!DOCTYPE a [<!ENTITY % p SYSTEM 'file:///etc/passwd'> %p;]><a/>",
        b"<a>" * 10_000 + b"</a>" * 10_000,
        b"<a>" * 1_000_000,
        b"<a " + b" ".join(b"b%d='1'" % i for i in range(10)) + b" b1='2'/>",
        b"",
        b"   ",
        b"\x00" * 100,
        b"plain text",
        b"<a/><b/>",
        b"<?xml version='1.0' encoding='nonsense'?><a/>",
        "<a>\u00e9</a>".encode("latin-1"),
    ],
    ids=lambda document: repr(document[:24]),
)
def test_xml_from_outside_that_is_refused(document: bytes) -> None:
    """Entities, DTDs and network off, and bounded in depth."""
    begun = time.process_time()
    for read in (data_xml.parse_element, data_xml.validate, data_xml.metadata):
        with pytest.raises(InvalidDocument):
            read(document)
    assert time.process_time() - begun < 5


def test_what_was_refused_leaves_no_trace() -> None:
    """A thread reads what is little with one parser, which reads each document as a new one would."""
    good = b"<a b='1'>&amp;<c/></a>"
    expected = etree.tostring(data_xml.parse_element(good))
    told: dict[bytes, set[str]] = {}
    refused = (b"", b"<a>", b"<a></b>", b"<p:a/>", b"\xff", b"<a>" * 5_000, bomb(), b"<a>&#11;</a>", b"<a>\n\n&x;</a>")
    for document in refused * 2:
        with pytest.raises(InvalidDocument) as raised:
            data_xml.parse_element(document)
        told.setdefault(document, set()).add(str(raised.value))
        assert etree.tostring(data_xml.parse_element(good)) == expected
    assert {len(each) for each in told.values()} == {1}
    assert "line 3" in told[refused[-1]].pop()


def test_xml_is_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_xml, "LARGEST", len(EMPTY))
    data_xml.validate(EMPTY)
    with pytest.raises(InvalidDocument, match="at most"):
        data_xml.validate(EMPTY + b"\n")


def test_many_data_nodes_are_checked_in_one_pass() -> None:
    begun = time.process_time()
    data_xml.validate(with_data("".join(f"<n{i}/>" for i in range(50_000))))
    assert time.process_time() - begun < 5


def test_a_schema_that_a_document_names_is_not_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The network is off, and so are files that users name."""
    schema = tmp_path_factory.mktemp("xsd") / "x.xsd"
    schema.write_text(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:x">'
        '<xs:element name="x" type="xs:integer"/></xs:schema>'
    )
    instance = "xmlns:i='http://www.w3.org/2001/XMLSchema-instance'"
    named = f"<x xmlns='urn:x' {instance} i:schemaLocation='urn:x {schema}'>no number</x>"
    data_xml.validate(with_data(named))  # must not raise


@pytest.mark.parametrize(
    "document", [b"<a/>", EMPTY.replace(b"arc:meta", b"arc:mate"), EMPTY.replace(b"arc:1", b"arc:2")]
)
def test_other_documents_have_no_metadata(document: bytes) -> None:
    with pytest.raises(InvalidDocument):
        data_xml.metadata(document)


def test_malformed_fields_are_damage() -> None:
    with pytest.raises(Damaged):
        data_xml.metadata(EMPTY.replace(b"2026-11-21T03:00:00@", b"yesterday@"))
    with pytest.raises(Damaged):
        data_xml.metadata(EMPTY.replace(b' title="Example"', b""))


def test_a_document_that_a_user_rewrote_is_read_too() -> None:
    """Another prefix, other quotes, another encoding."""
    text = EMPTY.decode().replace('encoding="UTF-8"', "encoding='UTF-16'")
    assert data_xml.metadata(text.encode("utf-16")) == META
    assert (
        data_xml.metadata(
            EMPTY.replace(b"arc:", b"a:").replace(b"xmlns:arc", b"xmlns:a").replace(b"webarcfs:a:1", b"webarcfs:arc:1")
        )
        == META
    )


@pytest.mark.large
def test_the_first_documents_may_be_validated_by_many_threads_at_once() -> None:
    """libxml2 makes its types with the first schema: two threads that did so at once got errors, or died."""
    script = """
import threading
from webarcfs.archive.document import data_xml
def work():
    start.wait()
    try:
        data_xml.validate(document)
    except Exception as error:
        print(error)
document = open(0, "rb").read()
start = threading.Barrier(8)
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], input=EMPTY, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def read(document: bytes) -> object:
    """The metadata of a document, or how it is refused."""
    try:
        return data_xml.metadata(document)
    except (Damaged, InvalidDocument) as error:
        return type(error)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"", b""),
        (b'title="', b'title="&lt;&#10;'),
        (b'title="', b'title="a\tb\n'),
        (b'title="', b'title="\x01'),
        (b'title="', b'title="\xef\xbf\xbf'),
        (b'title="', b'title="\xff'),
        (b'title="', b'title="<'),
        (b'title="', b'title="" title="'),
        (b'title="', b'other="" title="'),
        (b'title="', b'other="'),
        (b'title="', b"title='\"' x=\""),
        (b'title="', b'domain="'),
        (b'title="', b'  title="'),
        (b'title="', b'title = "'),
        (b'crawlTime="', b'crawlTime="x'),
        (b"/>\n  <arc:data/>", b"></arc:meta>\n  <arc:data/>"),
        (b"/>\n", b' captureTime="2026-11-21T03:00:09"/>\n'),
        (b"/>\n", b' status="404"/>\n'),
        (b"/>\n", b' status="404" captureTime="2026-11-21T03:00:09"/>\n'),
        (b"/>\n", b' status="4040"/>\n'),
        (b"/>\n", b' captureTime=""/>\n'),
        (b"/>\n", b' other="x"/>\n'),
        (b"/>\n", b' status="404" role="page"/>\n'),
        (b"/>\n", b' role="page" status="404"/>\n'),
        (b"/>\n", b' role="&lt;" rendered="x"/>\n'),
    ],
)
def test_what_is_read_without_a_parser_is_read_as_with_one(
    old: bytes, new: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = EMPTY.replace(old, new, 1)
    found = read(document)
    monkeypatch.setattr(data_xml, "_plain_fields", lambda _: None)
    assert found == read(document)
    times = data_xml.times(document)
    assert times is None or (isinstance(found, MetaData) and times == times_of(found))


def times_of(meta: MetaData) -> tuple[str, str]:
    fields = meta.as_fields()
    return fields["crawlTime"], fields["createTime"]


@given(hostile, hostile)
def test_the_times_of_a_document_are_those_of_its_metadata(title: str, rest: str) -> None:
    """A listing reads no more of a document than these; None has it read the rest."""
    document = data_xml.describe(replace(META, title=title, url=META.url + rest))
    assert data_xml.times(document) in (None, times_of(META))
    assert data_xml.times(with_data("<n/>" * 10)) == times_of(META)


@pytest.mark.parametrize("end", ["", "/>", '/>\n  <arc:data/>"'])
def test_a_title_does_not_tell_the_times(end: str) -> None:
    said = 'crawlTime="1999-01-01T00:00:00" createTime="1999-01-01T00:00:00" commitTag="1999-01-01T00:00:00@x"'
    for title in (f'" {said}{end}', f"' {said}{end}", f"x' \" {said}{end}"):
        assert data_xml.times(data_xml.describe(replace(META, title=title))) in (None, times_of(META))


@pytest.mark.parametrize("tag", ["2026-11-21T03:00:01@x", "2026-11-21T03:00:00@", "2026-11-21T03:00:00@a/b"])
def test_documents_with_another_tag_are_read_whole(tag: str) -> None:
    document = EMPTY.replace(str(TAG).encode(), tag.encode())
    assert document != EMPTY and data_xml.times(document) is None


@given(hostile, hostile)
def test_documents_without_nodes_are_known_by_how_they_look(title: str, rest: str) -> None:
    document = data_xml.describe(replace(META, title=title, url=f"http://www.example.org/{rest}"))
    assert data_xml.has_no_nodes(document)
    assert not data_xml.has_no_nodes(document.replace(b"<arc:data/>", b"<arc:data><a/></arc:data>"))


@given(
    hostile,
    st.integers(0, len(EMPTY)),
    st.integers(0, 8),
    st.sampled_from(["", "&", "&#10;", "<", '"', "'", "\x7f", "/>"]),
)
def test_nothing_else_looks_like_a_document_without_nodes(title: str, at: int, length: int, junk: str) -> None:
    text = data_xml.describe(replace(META, title=title))
    document = text[:at] + junk.encode() + text[at + length :]
    if data_xml.has_no_nodes(document):
        data = data_xml.parse_element(document).find(data_xml.DATA)
        assert data is not None and len(data) == 0


def test_plain_metadata_need_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount reads those of every ARC of a folder that is listed."""
    monkeypatch.setattr(data_xml, "parse_element", None)
    assert data_xml.metadata(with_data("<n/>" * 10)) == META
