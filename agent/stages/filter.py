"""Stage 3, filter: each document passes the configured chain; what is refused is dropped at once (/Cr-9/, /Fi-1…4/)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from agent.document import Document
from agent.filters import Keep, chain
from agent.run import Run

_log = logging.getLogger(__name__)


def filter_(documents: Iterator[Document], run: Run) -> Iterator[Document]:
    """The documents that every filter keeps. A filter that raises keeps the document, and is reported once."""
    job = run.job
    filters = chain(job.settings.filters, job.archive.filters, job.profile)
    failed: set[str] = set()
    for document in documents:
        refused_by = next((name for name, keep in filters if not _keeps(name, keep, document, failed)), None)
        if "path" in document.__dict__:
            document.path.unlink(missing_ok=True)
        if refused_by is None:
            yield document
        else:
            run.note(document.row, "filtered", document.mime_type, f"filter:{refused_by}")
            document.body.close()


def _keeps(name: str, keep: Keep, document: Document, failed: set[str]) -> bool:
    try:
        return bool(keep(document))
    except Exception:  # a filter is somebody else's code; whatever it raises must not cost a page
        if name not in failed:
            _log.exception("filter %s failed on %s; it keeps what it fails on", name, document.url)
            failed.add(name)
        return True
