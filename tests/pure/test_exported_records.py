"""Records of exports, read: whatever a file says, it is a value that an archive could have, or Damaged."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.importing import exported_trees
from agent.importing.exported_trees import (
    ExportedArc,
    Lines,
    NamedDocument,
    NamedFile,
    NamedRedirect,
    by_snapshot,
    read_places,
    row_of,
)
from webarcfs.archive.model.arc_paths import arc_path, is_git_name, is_reserved
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.pure

_TAG = "2026-11-21T03:00:00@www.example.org"
_texts = st.text(max_size=30) | st.sampled_from(["..", "a/../b", ".git", "data.xml", "%2e%2e/x", "a%00b", "//", "%09"])
_uris = st.one_of(
    st.sampled_from(["http://www.example.org/a", "http://www.example.org/b/", "https://www.example.org/a?x=/../y"]),
    _texts.map(lambda text: f"http://www.example.org/{text}"),
    _texts.map(lambda text: f"urn:webarcfs:addition:{_TAG}:a/{text}"),
    _texts,
)
_fields = st.fixed_dictionaries(
    {
        "warc-type": st.sampled_from(["response", "revisit", "resource", "metadata", "warcinfo", "x"]),
        "warc-target-uri": _uris,
        "webarcfs-commit-tag": st.just(_TAG) | _texts,
    },
    optional={
        "webarcfs-data": st.sampled_from(["data.html", "data", "data.orig.xml", "headers.http", "../data"]) | _texts,
        "webarcfs-file": st.sampled_from(["data.xml", "headers.http", "n.txt", "x/y"]) | _texts,
        "webarcfs-url": _uris,
        "webarcfs-redirect": _texts.map(lambda text: f"http://www.example.org/a%09301%09{text}%092026-01-01T00:00:00Z"),
        "webarcfs-unseen": st.just("yes") | _texts,
        "webarcfs-seen": st.just("yes") | _texts,
    },
)


@given(_fields)
def test_what_a_record_names_is_nothing_or_has_a_place(fields: dict[str, str]) -> None:
    try:
        found = exported_trees.read_named(fields)
    except Damaged:
        return
    if found is None:
        return
    assert str(found.tag) == fields["webarcfs-commit-tag"]
    if isinstance(found, NamedRedirect):
        assert arc_path(found.redirect.url).startswith("www.example.org/") and "\0" not in str(found.redirect)
        return
    parts = f"{found.arc}/{found.name}".split("/")
    assert not {"", ".", ".."}.intersection(parts) and "\0" not in found.name
    if isinstance(found, NamedDocument) or found.name in ("data.xml", "headers.http"):
        own_url = "" if isinstance(found, NamedDocument) else fields.get("webarcfs-url")
        assert arc_path(own_url or fields["warc-target-uri"]) == f"www.example.org/{found.arc}"
    else:
        assert not is_reserved(found.name.partition("/")[0]) and "data.xml" not in parts
        assert not any(map(is_git_name, parts))


_lines = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "commitTag",
                "publication",
                "job",
                "complete",
                "held",
                "tree",
                "seen",
                "before",
                "time",
                "sequence",
                "source",
                "errors",
                "x",
            ]
        ),
        st.sampled_from([_TAG, "yes", "no", "7", "0" * 40, "p", "20261121T030000-p", "-1", "9" * 12]) | _texts,
    ).map(": ".join),
    max_size=12,
).map("\r\n".join)


@given(_lines.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=80))
def test_a_snapshot_is_one_that_could_be_or_damaged(block: bytes) -> None:
    fields = {"warc-type": "metadata", "warc-target-uri": f"urn:webarcfs:snapshot:{_TAG}"}
    try:
        found = exported_trees.read_snapshot(fields, block)
    except Damaged:
        return
    assert str(found.tag) == _TAG and len(found.tree) == 40 and "/" not in found.publication + found.job


_names = st.sampled_from(["n.txt", "x/y", "\udcff", "a\tb", "ü"])
_arcs = st.sampled_from(["a", "a/b", "a b", "a.b", "ü"])
_tags = st.sampled_from([CommitTag.parse(f"2026-11-2{day}T03:00:00@{host}") for day in (1, 2) for host in ("b", "a")])
_named = st.one_of(
    st.builds(NamedDocument, _tags, _arcs, st.just("data"), st.booleans(), st.booleans()),
    st.builds(NamedFile, _tags, _arcs, _names, st.booleans(), st.booleans()),
)


@given(st.lists(_named, max_size=20), st.sets(_tags))
def test_rows_come_by_snapshot_and_place_whatever_the_order(
    named: list[NamedDocument | NamedFile], more: set[CommitTag]
) -> None:
    rows = sorted(row_of(each, "0" * 40 if each.stored else None) for each in named)
    told = [(tag, list(read_places(own))) for tag, own in by_snapshot(rows, more)]
    tags = [tag for tag, _ in told]
    assert tags == sorted({each.tag for each in named} | more, key=lambda tag: (tag.domain, tag.crawl_time))
    for tag, found in told:
        assert not any(isinstance(each, Lines) for each in found)
        arcs = {each.path: each for each in found if isinstance(each, ExportedArc)}
        assert arcs.keys() == {each.arc for each in named if each.tag == tag}
        for each in named:
            if each.tag == tag:
                assert each.name in arcs[each.arc].files
                assert (arcs[each.arc].files[each.name].blob is not None) >= each.stored


def test_an_addition_has_the_place_that_its_escapes_say() -> None:
    name = quote("ü \udcff/%41.txt".encode("utf-8", "surrogateescape"))
    fields = {
        "warc-type": "resource",
        "warc-target-uri": f"urn:webarcfs:addition:{_TAG}:b/c/{name}",
        "webarcfs-commit-tag": _TAG,
        "webarcfs-file": name,
    }
    found = exported_trees.read_named(fields)
    assert found == NamedFile(CommitTag.parse(_TAG), "b/c", "ü \udcff/%41.txt", True, True)
