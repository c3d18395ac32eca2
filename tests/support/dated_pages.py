"""Documents of many types with the times of their captures, for archives that tests import."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from tests.support import warcs
from tests.support.imports import imported
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def response(url: str, body: bytes, date: str, mime: str = "text/html", status: str = "200 OK", **fields: str) -> bytes:
    """A response record of any type; `fields` are those of the response."""
    return warcs.record("response", url, warcs.http(body, mime, status, **fields), date)


def import_pages(archive: Archive, file: Path, date: str, pages: Mapping[str, bytes | tuple[bytes, str]]) -> None:
    """Import one crawl: URL → body, or body and MIME type; all of one second."""
    records = [
        response(url, page, date) if isinstance(page, bytes) else response(url, page[0], date, page[1])
        for url, page in pages.items()
    ]
    imported(archive, warcs.write(file, records))


def tags_of(archive: Archive, host: str) -> list[str]:
    """The commitTags of a host, oldest first."""
    return [snapshot.tag for snapshot in database.snapshots(archive.database, host)]


def pdf(*texts: str) -> bytes:
    """A PDF with a page for each text; a page without a text is as a scan is."""
    file = io.BytesIO()
    with PdfPages(file) as pages:
        for text in texts:
            figure = Figure()
            if text:
                figure.text(0.1, 0.5, text)
            pages.savefig(figure)
    return file.getvalue()


def docx(text: str) -> bytes:
    """A letter."""
    file = io.BytesIO()
    body = f"<w:document {_W}><w:body><w:p><w:t>{text}</w:t></w:p></w:body></w:document>"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("[Content_Types].xml", f'<Types><Override ContentType="{DOCX}.main+xml"/></Types>')
        package.writestr("word/document.xml", body)
    return file.getvalue()
