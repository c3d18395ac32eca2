"""Stage 3, filter: each document passes the configured chain; refused documents are dropped (/Cr-9/, /Fi-1…4/)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from agent.filters import Keep, chain
from agent.frontier.facts import FILTER_ERRORS, FilterFailure
from agent.pipeline.document import Document
from agent.pipeline.domainrun import DomainRun
from agent.policy.vocabulary import Reason, Result

_log = logging.getLogger(__name__)


def filter_(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the documents that every filter keeps. A filter that raises keeps the document; a job reports it once."""
    job = run.job
    types = job.types
    filters = chain(job.settings.filters, job.archive.filters, None if types.are_own else job.profile)
    if types.are_own:
        filters.insert(0, ("types", lambda document: types.wants(document.mime_type)))
    failures: dict[str, FilterFailure] = job.frontier.get(FILTER_ERRORS) or {}
    failed_before = sum(each["documents"] for each in failures.values())
    for document in documents:
        refused_by = next((name for name, keep in filters if not _keeps(name, keep, document, failures)), None)
        if "path" in document.__dict__:
            document.path.unlink(missing_ok=True)
        if refused_by is None:
            yield document
        else:
            run.note(document.row, Result.FILTERED, document.mime_type, f"{Reason.FILTER}{refused_by}")
            document.body.close()
    if sum(each["documents"] for each in failures.values()) > failed_before:
        with job.frontier.changes():
            job.frontier.set(FILTER_ERRORS, failures)


def _keeps(name: str, keep: Keep, document: Document, failures: dict[str, FilterFailure]) -> bool:
    try:
        return bool(keep(document))
    except (Exception, SystemExit) as error:  # foreign code: none of its exceptions may lose a page
        if name not in failures:
            _log.exception("filter %s failed on %s; it keeps what it fails on", name, document.url)
            failures[name] = {"documents": 0, "first": document.url, "error": f"{type(error).__name__}: {error}"}
        failures[name]["documents"] += 1
        return True
