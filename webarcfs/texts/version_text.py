"""The text of a version: that of its document, and the lines that only a browser showed.

What a browser showed belongs to the crawl that recorded it. A repository that was made for a reader who does not see
that crawl gives the document's own text alone.
"""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from webarcfs.access.reader_repositories import hides
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.archive.model.metadata import MetaData
from webarcfs.content.extractors.extracted import LONGEST, Extracted, Fault
from webarcfs.content.extractors.extracting import clean, has_text, language_of
from webarcfs.texts.extraction import Extraction, ExtractionRequest

#: Libraries of the extra `search` that read texts.
_LIBRARIES: Final = ("pypdfium2", "striprtf", "py3langid")


def must_be_installed(*others: str) -> None:
    """Raise UsageError where the libraries that read texts are missing, or `others` of the extra."""
    if not all(find_spec(library) is not None for library in (*_LIBRARIES, *others)):
        raise UsageError("texts need more libraries: pip install 'webarcfs[search]'")


def joined(text: Extracted, rendered: str) -> Extracted:
    """Return the text of a document with that which a browser showed of it: its lines that the document has not."""
    if not rendered:
        return text
    own = set(text.body.split("\n"))
    shown = clean(rendered)
    more = "\n".join(line for line in shown.split("\n") if line not in own)
    body = f"{text.body}\n{more}".strip()
    fault = text.fault
    if len(body) > LONGEST and not fault:
        fault = Fault.TOO_LONG
    if fault == Fault.NO_TEXT:
        fault = Fault.NONE
    return dataclasses.replace(
        text, body=body[:LONGEST], language=text.language or language_of(shown), fault=str(fault)
    )


def request_of(repository: Path, mime_type: str, blob: str, head: str, language: str = "") -> ExtractionRequest | None:
    """Return the request for a document's text; None for what has none by its type.

    `blob` and `head` are git's ids of the body and of headers.http, which may be empty.
    """
    if not has_text(mime_type):
        return None
    return ExtractionRequest(str(repository), blob, head, mime_type, language)


def shown_text(store: Repository, meta: MetaData) -> str:
    """Return the text that a browser showed of a version; empty without one, or where its crawl is hidden."""
    if not meta.rendered or hides(store, meta.commit_tag):
        return ""
    try:
        return rendered_forms.text_of(store, meta.rendered)
    except Damaged:
        return ""


def read_text(store: Repository, meta: MetaData, blob: str, head: str) -> Extracted:
    """Return the text of one version; its language is not guessed. Raises UsageError without the libraries."""
    must_be_installed()
    with Extraction[None]() as extraction:
        _, extracted = next(extraction.texts([(None, request_of(store.path, meta.mime_type, blob, head, _UNASKED))]))
    return joined(extracted, shown_text(store, meta))


#: A language that is given, so that it is not guessed: the model for that takes half a second to load.
_UNASKED = "und"
