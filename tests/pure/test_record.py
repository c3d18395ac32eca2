"""Records: the table of fields, record.xml, the counts as text."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from agent.catalogue import recording
from agent.catalogue.recording import Count
from tests.support.sources import MODULES, tree
from webarcfs.archive.catalogue.record import (
    BY_NUMBER,
    FIELDS,
    LARGEST_RECORD,
    Attachment,
    CrawlPart,
    Edit,
    Event,
    FieldNumber,
    FieldPurpose,
    Occasion,
    Record,
    RecordState,
    Value,
    Warrant,
    is_import,
    read_record,
    step_of,
    write_record,
)
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import InvalidDocument, NameTooLong, NotPermitted
from webarcfs.archive.model.metadata import CET, CommitTag

pytestmark = pytest.mark.pure

_XSD = Path(__file__).parents[2] / "xsd" / "record.xsd"
_XS = "{http://www.w3.org/2001/XMLSchema}"
_TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)).map(
    lambda time: time.replace(microsecond=0, tzinfo=CET)
)
#: Text of every script, without what XML cannot hold; white space at its ends is kept.
_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=30)
_VALUES = st.builds(Value, _TEXT.filter(bool), _TEXT, st.none() | _TIMES)
_OID = st.text("0123456789abcdef", min_size=40, max_size=40)


def _fields_of(group_of_measures: bool) -> st.SearchStrategy[dict[int, Value]]:
    numbers = [each.number for each in FIELDS if each.repeats is group_of_measures]
    return st.dictionaries(st.sampled_from(numbers), _VALUES, max_size=6).map(lambda found: dict(sorted(found.items())))


_PARTS = st.builds(
    CrawlPart, st.builds(CommitTag, _TIMES, st.just("a.example")), st.booleans(), st.just("") | _OID, st.booleans()
)
_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


def _is_name(text: str) -> bool:
    try:
        arc_paths.check_attachment(text)
    except (NotPermitted, NameTooLong):
        return False
    return True


_ATTACHMENTS = st.builds(Attachment, _NAMES.filter(_is_name), st.integers(0, 20_000_000), _TEXT, _TIMES, _TEXT)
_RECORDS = st.builds(
    Record,
    id=st.just("20261121T030000-example"),
    number=st.integers(1, 10**9),
    publication=st.just("example"),
    state=st.sampled_from(RecordState),
    occasion=st.sampled_from(Occasion),
    complete=st.booleans(),
    release=st.sampled_from(["automatic", "when-checked", "by-hand"]),
    closed_for=st.sampled_from(["", "30 years"]),
    title=st.just(Value("")) | _VALUES,
    parts=st.lists(_PARTS, max_size=3).map(tuple),
    values=_fields_of(False),
    measures=st.lists(_fields_of(True), max_size=2).map(tuple),
    attachments=st.lists(_ATTACHMENTS, max_size=2).map(tuple),
    events=st.lists(st.builds(Event, st.just("captured"), _TIMES, _TEXT, _TEXT), max_size=2).map(tuple),
)


@pytest.mark.parametrize(
    ("roles", "sites", "without_pages"),
    [
        ({"a": [False], "b": [True]}, {"a"}, {"b"}),
        ({"a": [True], "b": [True]}, {"a", "b"}, {"a", "b"}),  # pages of none
        ({"a": [False, True], "b": [True, True]}, {"a"}, {"b"}),  # two parts of one domain
        ({"a": [True, False]}, {"a"}, set()),
    ],
)
def test_a_site_is_a_domain_of_which_some_part_has_pages(
    roles: dict[str, list[bool]], sites: set[str], without_pages: set[str]
) -> None:
    parts = (
        CrawlPart(CommitTag(datetime(2021, 5, 1, hour, tzinfo=CET), domain), True, is_resource=is_resource)
        for domain, each in roles.items()
        for hour, is_resource in enumerate(each)
    )
    record = Record(id="id", number=1, publication="p", state=RecordState.RELEASED, parts=tuple(parts))
    assert (set(record.sites), record.domains_without_pages) == (sites, without_pages)


def test_there_are_81_fields_of_three_kinds() -> None:
    assert [each.number for each in FIELDS] == list(range(1, 82))
    assert Counter(each.kind for each in FIELDS) == {FieldPurpose.LOG: 16, FieldPurpose.AVA: 9, FieldPurpose.TMD: 56}
    assert len({each.name for each in FIELDS}) == len({each.de for each in FIELDS}) == 81
    assert {step_of(each) for each in FIELDS} == {
        "capture",
        "count",
        "convert",
        "index",
        "release",
        "backup",
        "measure",
    }


def test_who_may_edit_and_who_sees_what() -> None:
    until_fetched = {each.number for each in FIELDS if each.archivist is Edit.UNTIL_FETCHED}
    always = {each.number for each in FIELDS if each.archivist is Edit.ALWAYS}
    assert until_fetched == {12, 13, 16}
    assert always == {2, 3, 4, 5, 6, 20, 30, 43, 45, 47, 52, 59, 64, 73, 81}
    assert not any(BY_NUMBER[number].is_public for number in (8, 32, 33, 36, 54, 61, 66, 71, 72, 75))
    assert not any(BY_NUMBER[number].administrator for number in (1, 7, 8, 21, 29, 31, 38, 53, 60, 61, 65, 67, 74))
    assert all(BY_NUMBER[number].administrator for number in (2, 6, 11, 14, 48, 70, 71, 72, 73))


def test_the_schema_has_each_field_as_the_table_does() -> None:
    found = {}
    for element in etree.parse(str(_XSD)).iter(f"{_XS}element"):
        fixed = {each.get("name"): each.get("fixed") for each in element.iter(f"{_XS}attribute") if each.get("fixed")}
        if "field" in fixed and element.get("name") not in ("record", "measure"):
            found[element.get("name")] = (fixed["field"], fixed["group"], fixed["kind"])
    assert found == {each.name: (str(each.number), each.group, str(each.kind)) for each in FIELDS}


@given(_RECORDS)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    raw = write_record(record)
    assert read_record(raw) == record
    assert write_record(read_record(raw)) == raw


@pytest.mark.parametrize(
    ("name", "is_good"),
    [("Vertrag vom 3. März.pdf", True), ("\u4f8b \u05e9.txt", True), ("a\u202f3 PM.png", True), ("data.xml", True),
     ("", False), (" a", False), ("a/b", False), ("..", False), (".htaccess", False), (".git", False),
     ("git~1", False), ("a\nb", False), ("a\x7f", False), ("gpj\u202efdp.exe", False), ("\udcff", False),
     ("a" * 255, True), ("a" * 256, False), ("\u4f8b" * 86, False)],
)  # fmt: skip
def test_names_of_attachments(name: str, is_good: bool) -> None:
    assert _is_name(name) is is_good


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<record/>",
        b"<record xmlns='urn:webarcfs:record:1'/>",
        b"<!DOCTYPE r [<!ENTITY a 'b'>]><record xmlns='urn:webarcfs:record:1'>&a;</record>",
        b"x" * (LARGEST_RECORD + 1),
    ],
    ids=["empty", "no namespace", "no attributes", "entity", "large"],
)
def test_what_is_no_record_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidDocument):
        read_record(raw)


def test_a_commit_tag_that_is_none_is_refused() -> None:
    record = Record(id="20261121T030000-x", number=1, publication="x", state=RecordState.EMPTY)
    raw = write_record(record).replace(b"</record>", b'<part commitTag="nonsense"/></record>')
    raw = raw.replace(b"/>\n", b'><part commitTag="nonsense"/></record>') if b"</record>" not in raw else raw
    with pytest.raises(InvalidDocument):
        read_record(raw)


@given(st.dictionaries(st.sampled_from(["html", "png", "(none)", "tar.gz"]), st.integers(1, 10**6)))
def test_counts_are_read_as_they_were_written(extensions: dict[str, int]) -> None:
    assert recording.parsed(recording.written(extensions)) == extensions


def test_counts_are_added() -> None:
    both = Count(10, 2, 1, {"html": 2}) + Count(-3, 0, 0, {"html": -2, "png": 2})
    assert both == Count(7, 2, 1, {"png": 2})


def test_a_field_is_named_as_its_element_in_record_xml() -> None:
    """A number in the code would say nothing of what it stands for."""
    elements = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", field.name).upper(): field.number for field in FIELDS}
    assert {field.name: field.value for field in FieldNumber} == elements


def test_no_number_of_a_field_stands_in_the_code() -> None:
    calls = [
        f"{module}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "text"
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, int)
    ]
    assert calls == []


_FIRST = Record(id="20261121T030000-p", number=1, publication="p", state=RecordState.COUNTED)
_EVENT_TEXTS = [
    "",
    "why",
    "two\nlines",
    "a <b> & c",
    "?> <?acting role='king'?>",
    "\u202e turned \u05e2\u05e8\u05d1",
    "x" * 10_000,
]


@pytest.mark.parametrize("text", _EVENT_TEXTS, ids=range(len(_EVENT_TEXTS)))
def test_an_event_names_the_role_that_allowed_it_and_older_programs_read_it(text: str) -> None:
    """S-people-4."""
    warrant = Warrant("curator", "anna")
    record = replace(_FIRST, events=()).with_event(
        "released", "Anna \u4f8b", text, RecordState.RELEASED, warrant=warrant
    )
    document = write_record(record)
    assert read_record(document).events == record.events
    root = etree.fromstring(document)
    (event,) = root.iterfind("{*}event")
    assert set(event.attrib) == {"what", "at", "by", "state"}, "what the schema of older programs allows"
    assert (event.text or "") == text, "as older programs read it"
    etree.XMLSchema(etree.parse(str(_XSD))).assertValid(root)
    assert document.count(b"<?acting ") == 1


@pytest.mark.parametrize("word", ["a?>b", 'a" x="', "a b", "", "\u4f8b"])
def test_a_word_that_an_instruction_could_not_hold_is_left_out(word: str) -> None:
    record = replace(_FIRST, events=()).with_event("edited", "Anna", "x", warrant=Warrant("curator", word))
    (event,) = read_record(write_record(record)).events
    assert event.warrant == Warrant("curator", "")


@pytest.mark.parametrize(
    "inner", ["<?acting?>", "<?acting role=?>", "<?other role='x'?>", "<!-- acting -->", "<?acting x y z?>"]
)
def test_an_instruction_of_others_costs_nothing(inner: str) -> None:
    record = replace(_FIRST, events=()).with_event("edited", "Anna", "why")
    document = write_record(record).replace(b">why<", f">w{inner}hy<".encode())
    (event,) = read_record(document).events
    assert (event.text, event.warrant) == ("why", Warrant())


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("20260101T000000-p", False), ("20260101T000000-p+0a1b2c", True), ("20260101T000000-p+0a1b.0003", True),
        ("20260101T000000-p+occasion", False), ("20260101T000000-p+patch", False), ("", False),
    ],
)  # fmt: skip
def test_an_import_is_known_by_its_name(job: str, expected: bool) -> None:
    assert is_import(job) is expected
