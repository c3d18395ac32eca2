"""Stage 6, extract: the metadata of a document, from its content and its head (/Cr-12/)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from agent.pipeline.document import Document, replace
from agent.pipeline.domainrun import DomainRun
from webarcfs.archive.model.metadata import CET
from webarcfs.content import mimetype, text

#: A server's clock may be ahead by this much; a Last-Modified further in the future is ignored (RFC 9110 8.8.2.1).
_CLOCK_SKEW = timedelta(days=1)


def extract(documents: Iterator[Document], _run: DomainRun) -> Iterator[Document]:
    """Yield all documents; add title and creation time to the new and changed ones (the type is sniffed on demand).

    Runs in this thread: threads that sniffed and parsed ahead slowed the other stages more than they saved.
    """
    for document in documents:
        if document.unchanged:
            yield document
        else:
            yield replace(document, title=_title(document), create_time=_create_time(document))


def _title(document: Document) -> str:
    """Return the title of an HTML or XML document, else an empty string (/Cr-12.2/)."""
    if document.mime_type not in text.HTML_TYPES and not text.is_xml(document.mime_type):
        return ""
    charset = text.decode_charset(document.body.start(mimetype.SAMPLE), document.head.content_type)
    return text.title_of(document.body.chunks(), charset, document.mime_type)


def _create_time(document: Document) -> datetime:
    """Return Last-Modified, else the time of the first capture of this content (/Cr-12.7/)."""
    try:
        found = parsedate_to_datetime(document.head.get("last-modified")).astimezone(CET)
    except (ValueError, TypeError, IndexError, OverflowError):
        return document.captured
    plausible = found.year >= 1000 and found <= document.captured + _CLOCK_SKEW
    return found.replace(microsecond=0) if plausible else document.captured
