"""Stage 7, describe: the data.xml of each new or changed document, validated (/Cr-13/)."""

from __future__ import annotations

from collections.abc import Iterator

from agent.pipeline.document import Document, replace
from agent.pipeline.domainrun import DomainRun
from webarcfs.archive.document import data_xml
from webarcfs.archive.model.metadata import MetaData


def describe(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield all documents; add data.xml to the new and changed ones. Raises InvalidDocument if it is not valid."""
    for document in documents:
        if document.unchanged:
            yield document
            continue
        xml = data_xml.describe(_metadata(document, run))
        data_xml.validate(xml)
        yield replace(document, data_xml=xml)


def _metadata(document: Document, run: DomainRun) -> MetaData:
    at_crawl_time = document.captured == run.tag.crawl_time
    return MetaData(
        url=document.url,
        mime_type=document.mime_type,
        title=document.title,
        path=f"/{run.domain}/{document.arc}",
        domain=run.domain,
        crawl_time=run.tag.crawl_time,
        create_time=document.create_time or document.captured,
        commit_tag=run.tag,
        captured=None if at_crawl_time else document.captured,
        status=document.status,
        source=document.source,
    )
