"""The text of PDF files, by PDFium."""

from __future__ import annotations

from typing import BinaryIO

from webarcfs.content.extractors.extracted import LONGEST, Extracted, Fault, UnreadableDocument

#: Most pages that are read.
_MOST = 5_000
_HYPHENS = {"\ufffe\r\n": "", "\ufffe": "", "\u0002\r\n": "", "\u0002": ""}


def extract(file: BinaryIO) -> Extracted:
    """Return the text of a PDF file, page by page. Raises Unreadable for one that is encrypted or damaged."""
    import pypdfium2  # type: ignore[import-untyped] # noqa: PLC0415 # of the extra `search`; it has no types

    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        raise UnreadableDocument(Fault.ENCRYPTED if "password" in str(error).lower() else Fault.DAMAGED) from None
    try:
        metadata = document.get_metadata_dict()
        pieces: list[str] = []
        size = 0
        fault = ""
        for number in range(min(len(document), _MOST)):
            try:
                page = document[number]
                text = page.get_textpage()
                piece = text.get_text_bounded()
                text.close()
                page.close()
            except pypdfium2.PdfiumError:
                fault = Fault.DAMAGED  # of this page: others may be sound
                continue
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST:
                fault = Fault.TOO_LONG
                break
        body = "\n".join(pieces)
        for hyphen, put in _HYPHENS.items():
            body = body.replace(hyphen, put)
        if not body.strip():
            fault = fault or Fault.NO_TEXT
        description = "\n".join(metadata.get(name, "") for name in ("Subject", "Keywords", "Author"))
        return Extracted(body[:LONGEST], title=metadata.get("Title", ""), description=description, fault=fault)
    finally:
        document.close()
