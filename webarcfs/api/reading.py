"""The handlers that read: what there is, rows, documents and their files, the catalogue and the indexes.

Each answers what a source has for whoever asks. A text that says that something is not there is made of the question.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from starlette.responses import Response

from webarcfs import __version__
from webarcfs.api.answers import (
    DOCUMENT_COLUMNS,
    LINK_COLUMNS,
    RECORD_COLUMNS,
    collected_rows,
    file_answer,
    json_answer,
    listing_answer,
    row_of,
    row_of_link,
    row_of_record,
    streamed_rows,
    tar_answer,
)
from webarcfs.api.api_request import ApiRequest, missing, moment_of, tag_of
from webarcfs.archive.catalogue.record import write_record
from webarcfs.archive.index.links import AskedKind, Question
from webarcfs.archive.index.query import DocumentOrigin
from webarcfs.archive.model.errors import NotShown, UsageError
from webarcfs.archive.model.metadata import ROLES
from webarcfs.archive.model.urls import canonical

if TYPE_CHECKING:
    from webarcfs.search.searching import Hit

# == what there is ====================================================================================================


def describe_server(asked: ApiRequest) -> Response:
    """Return what the server is, what it can do, and who asks."""
    source = asked.source
    value = {
        "version": __version__, "format": source.layout(), "can": source.abilities(), "person": source.person,
    }  # fmt: skip
    return json_answer(asked, value)


@cache
def _openapi() -> bytes:
    return (Path(__file__).parent / "openapi.yaml").read_bytes()


def describe_api(asked: ApiRequest) -> Response:
    """Return the description of the API (OpenAPI 3.1)."""
    return asked.answered(Response(_openapi(), media_type="application/yaml"))


def list_domains(asked: ApiRequest) -> Response:
    """Return the domains."""
    return json_answer(asked, asked.source.domains())


def list_snapshots(asked: ApiRequest) -> Response:
    """Return the snapshots of a domain, oldest first."""
    domain = asked.text_segment("domain", "domain")
    with missing(f"there is no domain {domain!r}"):
        return json_answer(asked, [str(tag) for tag in asked.source.snapshots(domain)])


# == rows =============================================================================================================


def _no_snapshot(asked: ApiRequest) -> str:
    return f"there is no snapshot {asked.tag}"


def list_documents(asked: ApiRequest) -> Response:
    """Return the documents of a snapshot, by folders."""
    after = asked.value("after")
    with missing(f"there is no document {after} in {asked.tag}" if after else _no_snapshot(asked)):
        return streamed_rows(asked, DOCUMENT_COLUMNS, map(row_of, asked.source.documents(asked.tag, after)))


def list_changed(asked: ApiRequest) -> Response:
    """Return the documents that a snapshot added or changed."""
    with missing(_no_snapshot(asked)):
        return streamed_rows(asked, DOCUMENT_COLUMNS, map(row_of, asked.source.changed(asked.tag)))


def ask_query(asked: ApiRequest) -> Response:
    """Return the documents for which a condition holds."""
    origin = DocumentOrigin(asked.text("domain"), asked.text("publication"))
    rows = asked.source.query(asked.value("where"), asked.value("order_by"), asked.number("limit"), origin)
    with missing("the archive has no index of its documents yet"), closing(rows):
        return collected_rows(asked, DOCUMENT_COLUMNS, map(row_of, rows))


# == documents ========================================================================================================


def list_arc(asked: ApiRequest) -> Response:
    """Return a document with the names in its ARC."""
    with missing(f"there is no document {asked.path} in {asked.tag}"):
        listing = asked.source.arc(asked.tag, asked.path)
    value = {
        "metadata": listing.document.as_fields(),
        "entries": [entry.as_fields() for entry in listing.entries],
    }
    return listing_answer(asked, f'"{listing.tree}"', value)


def send_file(asked: ApiRequest) -> Response:
    """Return a file of a document."""
    name = asked.file_name()
    with missing(f"there is no file {name!r} of {asked.path} in {asked.tag}"):
        return file_answer(asked, asked.source.file(asked.tag, asked.path, name), name)


def send_node(asked: ApiRequest) -> Response:
    """Return a data node of a document, as XML."""
    name = asked.text("name")
    if not name:
        raise UsageError("say which data node: ?name=")
    absent = f"there is no data node {name!r} of {asked.path} in {asked.tag}"
    with missing(absent):
        element = asked.source.node(asked.tag, asked.path, name)
    if element is None:
        raise NotShown(absent)
    body = ElementTree.tostring(element, "utf-8", xml_declaration=True)
    return asked.answered(Response(body, media_type="application/xml"))


def send_tar(asked: ApiRequest) -> Response:
    """Return the files of a snapshot as a tar file."""
    after = asked.value("after")
    with missing(_no_snapshot(asked)):
        return tar_answer(asked, asked.tag, asked.source.files(asked.tag), after)


# == indexes ==========================================================================================================


#: Hits of an answer.
_MOST_HITS: Final = 1_000
#: Parameters of a search that are texts, and switches.
_TEXTS: Final = (
    "record", "during", "site", "after", "before", "domain", "publication", "collection", "type", "language",
)  # fmt: skip
_SWITCHES: Final = ("present", "past", "error_pages", "exact")
SEARCH_PARAMETERS: Final = ("words", "at", "role", "sort", "limit", "offset", *_TEXTS, *_SWITCHES)
LINK_PARAMETERS: Final = (
    "path", "target", "word", "at", "ever", "kind", "external", "broken", "role", "limit", "domain", "publication",
)  # fmt: skip
#: Parameters of which one must say which links.
_WHICH: Final = ("path", "target", "word", "external", "broken", "domain", "publication", "at")


def search(asked: ApiRequest) -> Response:
    """Return a page of hits."""
    if "search" not in asked.source.abilities():
        raise NotShown("this server has no full-text search")
    from webarcfs.search.searching import HitOrder  # noqa: PLC0415 # of the extra `search`

    narrowing: dict[str, Any] = {name: asked.text(name) for name in _TEXTS}
    narrowing |= {name: asked.is_set(name) for name in _SWITCHES}
    at, sort, limit = asked.text("at"), asked.word("sort", tuple(HitOrder)), asked.number("limit")
    if limit is not None and limit > _MOST_HITS:
        raise UsageError(f"an answer has {_MOST_HITS:,} hits at most; ask for further ones by offset")
    narrowing |= {
        "at": moment_of(at) if at else None,
        "role": asked.word("role", ROLES),
        "sort": HitOrder(sort or HitOrder.RELEVANCE),
        "offset": asked.number("offset") or 0,
        **({} if limit is None else {"limit": limit}),
    }
    with missing("the full-text index has no such snapshot, record or collection"):
        answer = asked.source.search(asked.text("words"), narrowing)
    value = {
        "total": answer.total, "exact": answer.is_exact, "inPresent": answer.in_present, "missing": answer.missing,
        "suggestion": answer.suggestion, "hits": [_hit(hit) for hit in answer.hits],
    }  # fmt: skip
    return json_answer(asked, value)


def _hit(hit: Hit) -> dict[str, Any]:
    return asdict(hit) | {"snippet": hit.snippet.text, "marks": [list(mark) for mark in hit.snippet.marks]}


def list_links(asked: ApiRequest) -> Response:
    """Return links of pages."""
    if not any(any(asked.parameters.get(name, ())) for name in _WHICH):
        raise UsageError(f"say which links, by one of: {', '.join(_WHICH)}")
    at, ever = asked.text("at"), asked.is_set("ever")
    if at and ever:
        raise UsageError("at is one snapshot, and ever is all; give one of them")
    kind = asked.word("kind", tuple(kind.name.lower() for kind in AskedKind))
    targets = asked.texts("target")
    question = Question(
        path=asked.text("path"),
        targets=tuple(target if target.startswith("mailto:") else canonical(target) for target in targets),
        word=asked.text("word"),
        at=tag_of(at) if at else None,
        ever=ever,
        kind=AskedKind[kind.upper()] if kind else None,
        external=asked.is_set("external"),
        broken=asked.is_set("broken"),
        role=asked.word("role", ROLES),
        limit=asked.number("limit"),
        origin=DocumentOrigin(asked.text("domain"), asked.text("publication")),
    )
    rows = asked.source.links(question)
    with missing("there are no links of it here"), closing(rows):
        return collected_rows(asked, LINK_COLUMNS, map(row_of_link, rows))


# == catalogue ========================================================================================================


def list_records(asked: ApiRequest) -> Response:
    """Return the records of crawls, newest first."""
    has_xml = asked.is_set("xml")
    columns = RECORD_COLUMNS if has_xml else RECORD_COLUMNS[:-1]
    rows = asked.source.records(asked.text("publication") or None)
    return collected_rows(asked, columns, (row_of_record(record, has_xml=has_xml) for record in rows))


def send_record(asked: ApiRequest) -> Response:
    """Return a record, as XML where that is accepted."""
    record_id = asked.text_segment("id", "record")
    with missing(f"there is no record {record_id!r}"):
        record = asked.source.record(record_id)
    if "xml" in asked.request.headers.get("accept", ""):
        return asked.answered(Response(write_record(record), media_type="application/xml"))
    fields = {name: text for name, text in record.as_fields().items() if text}
    return json_answer(asked, fields | {"domains": ", ".join(record.domains)})


def describe_publication(asked: ApiRequest) -> Response:
    """Return a publication."""
    name = asked.text_segment("name", "publication")
    with missing(f"there is no publication {name!r}"):
        return json_answer(asked, asked.source.publication(name))
