"""The documents of the full-text index with the field names of SolrWayback, for Solr."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import fulltext_source
from webarcfs.archive.model.errors import NotFound
from webarcfs.search import generations
from webarcfs.search.indexed_document import CURRENT, IndexedDocument
from webarcfs.search.kinds import kind_of

#: Warcindexer's words for kinds that it names otherwise.
_KINDS = {"table": "excel", "slides": "powerpoint", "style": "css", "script": "javascript"}


def documents(archive: Archive) -> Iterator[dict[str, Any]]:
    """Yield each version in the index as a document of Solr. Raises NotFound without an index."""
    reader = generations.opened(archive)
    for version in fulltext_source.every_version(archive.database):
        found = reader.find(version.path, version.since)
        if found is None:
            raise NotFound(f"{version.url} is not indexed yet; `webarc-agent index` brings the index in step")
        yield solr(found)


def solr(document: IndexedDocument) -> dict[str, Any]:
    """Return a document of Solr; fields without a value are left out."""
    captured = datetime.fromtimestamp(document.captured, UTC)
    host = urlsplit(document.url).hostname or ""
    text = document.extracted
    said = {
        "id": f"{captured:%Y%m%d%H%M%S}/{document.blob}/{document.url}",
        "url": document.url,
        "url_norm": document.url,
        "url_path": urlsplit(document.url).path,
        "host": host,
        "domain": ".".join(host.split(".")[-2:]),
        "public_suffix": host.rpartition(".")[2],
        "title": document.title,
        "content": text.body,
        "content_type": document.mime_type,
        "content_type_norm": _KINDS.get(kind_of(document.mime_type), kind_of(document.mime_type)),
        "content_type_ext": document.extension,
        "content_length": document.size,
        "content_text_length": len(text.body),
        "content_language": text.language,
        "description": text.description,
        "crawl_date": f"{captured:%Y-%m-%dT%H:%M:%SZ}",
        "crawl_year": captured.year,
        "wayback_date": int(f"{captured:%Y%m%d%H%M%S}"),
        "status_code": document.status,
        "hash": document.blob,
        "collection": document.publication,
        "record_type": "response",
        "type": kind_of(document.mime_type),
        "webarcfs_since": document.since,
        "webarcfs_until": None if document.until == CURRENT else document.until,
    }
    return {name: value for name, value in said.items() if value not in ("", None)}
