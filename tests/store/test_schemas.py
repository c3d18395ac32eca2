"""Schemas of users, and the log of what they refuse (/Xm-3.3/, /Xm-4/)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.pure.test_arcxml import bomb
from tests.pure.test_model import META
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_nodes, data_xml, schemas
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.system import rotating_log

pytestmark = pytest.mark.store

NUMBER = '<xs:element name="words" type="xs:nonNegativeInteger"/>'


def schema(inner: str, target: str = "") -> bytes:
    name = f' targetNamespace="{target}" xmlns="{target}" elementFormDefault="qualified"' if target else ""
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"{name}>{inner}</xs:schema>'.encode()


@pytest.fixture
def found(archive: Archive) -> Schemas:
    return Schemas(archive.schemas)


def put(archive: Archive, name: str, body: bytes) -> None:
    """A file of another name, size or time is another file."""
    (archive.schemas / name).unlink(missing_ok=True)
    (archive.schemas / name).write_bytes(body)


def test_a_node_with_a_schema_must_be_valid(archive: Archive, found: Schemas) -> None:
    found.validate(b"<words>forty</words>")
    put(archive, "words.xsd", schema(NUMBER))
    found.validate(b"<words>42</words>\n    <other>forty</other>")
    with pytest.raises(InvalidDocument, match=r"words is not valid: line 1: .*forty"):
        found.validate(b"<other/><words>forty</words>")
    found.validate(b"")


def test_nodes_are_judged_in_the_tree_of_a_document_as_alone(archive: Archive, found: Schemas) -> None:
    """What is wrong is told by the lines of what was added, whatever tree it was found in."""
    put(archive, "words.xsd", schema(NUMBER))
    attribute = '<xs:attribute name="id" type="xs:ID"/>'
    for name in ("one", "two"):
        declared = f'<xs:element name="{name}"><xs:complexType>{attribute}</xs:complexType></xs:element>'
        put(archive, f"{name}.xsd", schema(declared))
    old = data_nodes.merge_nodes(data_xml.describe(META), b"<one id='a'/>")
    for tail in (b"<words>42</words>", b"<two id='a'/>", b"<x><words>forty</words></x>"):
        nodes = data_nodes.extended(old, old + tail, found.judge)
        assert nodes == data_nodes.extended(old, old + tail)
        found.validate(nodes)
    for tail in (b"<words\n>\nforty</words>", b"<more/><words/>", b"<two id=''/>"):
        with pytest.raises(InvalidDocument) as alone:
            found.validate(data_nodes.extended(old, old + tail))
        with pytest.raises(InvalidDocument) as within:
            data_nodes.extended(old, old + tail, found.judge)
        assert str(within.value) == str(alone.value) and "is not valid: line" in str(alone.value)


def test_a_schema_is_for_its_own_namespace(archive: Archive, found: Schemas) -> None:
    put(archive, "words.xsd", schema(NUMBER, "urn:w"))
    found.validate(b"<words>forty</words><v:words xmlns:v='urn:v'>forty</v:words>")
    found.validate(b"<w:words xmlns:w='urn:w'>42</w:words>")
    with pytest.raises(InvalidDocument):
        found.validate(b"<w:words xmlns:w='urn:w'>forty</w:words>")


def test_strict_archives_take_no_node_without_a_schema(archive: Archive) -> None:
    strict = Schemas(archive.schemas, strict=True)
    put(archive, "words.xsd", schema(NUMBER, "urn:w"))
    strict.validate(b"<w:words xmlns:w='urn:w'>42</w:words>")
    for node in (b"<words>42</words>", b"<other/>", b"<x" + b"y" * 300 + b"/>"):
        with pytest.raises(InvalidDocument, match=r"has no schema; add one as .schemas/"):
            strict.validate(node)


def test_a_schema_that_appears_changes_or_goes_holds_from_then_on(archive: Archive, found: Schemas) -> None:
    put(archive, "words.xsd", schema(NUMBER))
    with pytest.raises(InvalidDocument):
        found.validate(b"<words>forty</words>")
    put(archive, "words.xsd", schema('<xs:element name="words" type="xs:string"/>'))
    found.validate(b"<words>forty</words>")
    put(archive, "words.xsd", schema('<xs:include schemaLocation="types.xsd"/><xs:element name="words" type="t"/>'))
    with pytest.raises(InvalidDocument, match=r"words.xsd for data node words cannot be used: .*types.xsd"):
        found.validate(b"<words>42</words>")
    put(archive, "types.xsd", schema('<xs:simpleType name="t"><xs:restriction base="xs:integer"/></xs:simpleType>'))
    found.validate(b"<words>42</words><types>of anything</types>")
    put(archive, "types.xsd", schema('<xs:simpleType name="t"><xs:restriction base="xs:boolean"/></xs:simpleType>'))
    with pytest.raises(InvalidDocument, match="words is not valid"):
        found.validate(b"<words>42</words>")
    (archive.schemas / "words.xsd").unlink()
    found.validate(b"<words>forty</words>")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "well-formed"),
        (b"no schema", "well-formed"),
        (b"<words/>", "no XML Schema"),
        (schema("<xs:element/>"), "xs:element|XMLSchema.element"),
        (schema('<xs:element name="words" type="missing"/>'), "missing"),
        (schema('<xs:include schemaLocation="missing.xsd"/>'), "missing.xsd"),
        (schema('<xs:include schemaLocation="/etc/passwd"/>'), "refers to"),
        (schema('<xs:include schemaLocation="../webarc.xsd"/>'), "refers to|No such file"),
        (schema('<xs:include schemaLocation="http://127.0.0.1:9/x.xsd"/>'), "refers to"),
        (schema('<xs:include schemaLocation="file:///etc/x.xsd"/>'), "refers to"),
        (schema('<xs:redefine schemaLocation="%2e%2e/x.xsd"/>'), "refers to|No such file"),
        (schema('<xs:include schemaLocation="bomb.xsd"/>'), "document type declaration|entity"),
        (b"<!DOCTYPE s SYSTEM 'file:///etc/passwd'>" + schema(NUMBER), "document type declaration"),
        (bomb(), "."),
        (b"\x00" * 100, "well-formed"),
        (schema(NUMBER) + b" " * schemas.LARGEST_SCHEMA, "more than"),
    ],
    ids=range(16),
)
def test_a_broken_schema_is_named_with_the_reason(archive: Archive, found: Schemas, body: bytes, why: str) -> None:
    """Entities, DTDs and the network are off, and nothing outside the folder is read."""
    put(archive, "bomb.xsd", bomb().replace(b"<a>", b'<a xmlns:xs="http://www.w3.org/2001/XMLSchema">'))
    with pytest.raises(InvalidDocument, match=rf"words.xsd is no schema that can be used: .*({why})"):
        found.check("words.xsd", body)
    put(archive, "words.xsd", body)
    for _ in range(2):
        with pytest.raises(InvalidDocument, match=r"the schema words.xsd for data node words cannot be used"):
            found.validate(b"<words>42</words>")


@pytest.mark.parametrize(
    "name",
    ["words.XSD", "words", ".xsd", ".words.xsd", "a/b.xsd", "..xsd", "a b.xsd", "a\n.xsd", "p:a.xsd", "a%2e.xsd"],
)
def test_a_schema_is_called_like_its_element(found: Schemas, name: str) -> None:
    with pytest.raises(InvalidDocument, match="no name for a schema"):
        found.check(name, schema(NUMBER))


def test_a_good_schema_is_accepted(archive: Archive, found: Schemas) -> None:
    found.check("words.xsd", schema(NUMBER))
    found.check("w\u00f6rter.xsd", schema('<xs:element name="w\u00f6rter"/>', "urn:w"))
    assert list(archive.schemas.iterdir()) == []
    put(archive, "words.xsd", schema(NUMBER))
    found.check("more.xsd", schema('<xs:include schemaLocation="words.xsd"/><xs:element name="more" type="xs:date"/>'))


def test_schemas_that_include_each_other_end(archive: Archive, found: Schemas) -> None:
    put(archive, "a.xsd", schema('<xs:include schemaLocation="b.xsd"/><xs:element name="a" type="xs:integer"/>'))
    put(archive, "b.xsd", schema('<xs:include schemaLocation="a.xsd"/><xs:element name="b" type="xs:integer"/>'))
    found.validate(b"<a>1</a><b>2</b>")
    with pytest.raises(InvalidDocument):
        found.validate(b"<b>two</b>")


def test_many_threads_use_one_schema(archive: Archive, found: Schemas) -> None:
    """Each is told what is wrong with its own node."""
    put(archive, "words.xsd", schema(NUMBER))

    def wrong(number: int) -> str:
        with pytest.raises(InvalidDocument) as raised:
            found.validate(b"<words>no%d</words>" % number)
        return str(raised.value)

    with ThreadPoolExecutor(8) as pool:
        for number, message in enumerate(pool.map(wrong, range(200))):
            assert f"'no{number}'" in message


def test_a_schema_that_a_node_names_is_not_read(archive: Archive, found: Schemas) -> None:
    put(archive, "words.xsd", schema(NUMBER))
    other = archive.root / "other.xsd"
    other.write_bytes(schema('<xs:element name="words" type="xs:string"/>'))
    instance = f"xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:noNamespaceSchemaLocation='{other}'"
    with pytest.raises(InvalidDocument):
        found.validate(f"<words {instance}>forty</words>".encode())


def test_the_log_has_a_line_for_each_refusal(archive: Archive) -> None:
    """/Xm-4/: time, user, document, what was wrong."""
    schemas.refused(archive, "ada", "/www.example.org/index.html/data.xml", InvalidDocument("line 1: no"))
    schemas.refused(archive, "eve\n", "/a\tb/\udc80", InvalidDocument("x" * 5000 + "\n"))
    first, second = (archive.log / "validation.log").read_text("utf-8").splitlines()
    time, *rest = first.split("\t")
    assert len(time) == len("2026-11-21T03:00:00")
    assert rest == ["ada", "/www.example.org/index.html/data.xml", "line 1: no"]
    assert second.split("\t")[1:3] == ["eve\\n", "/a\\tb/\\udc80"]
    assert len(second) < 1100


def test_the_log_is_bounded_and_its_loss_stops_nobody(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotating_log, "LARGEST", 200)
    monkeypatch.setattr(rotating_log.rotate, "__defaults__", (200, 5))
    for number in range(50):
        schemas.refused(archive, "ada", "/a", InvalidDocument(f"{number}"))
    logs = sorted(archive.log.iterdir())
    assert len(logs) == 6
    assert all(log.stat().st_size < 300 for log in logs)
    assert (archive.log / "validation.log").read_text("utf-8").splitlines()[-1].endswith("\t49")
    for log in logs:
        log.unlink()
    archive.log.rmdir()
    schemas.refused(archive, "ada", "/a", InvalidDocument("nobody reads this"))


def test_a_schema_declares_the_element_of_its_name(found: Schemas) -> None:
    with pytest.raises(InvalidDocument, match=r"more\.xsd is no schema that can be used: it declares words, not the"):
        found.check("more.xsd", schema(NUMBER))
    found.check("types.xsd", schema('<xs:simpleType name="t"><xs:restriction base="xs:integer"/></xs:simpleType>'))
