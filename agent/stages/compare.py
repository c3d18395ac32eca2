"""Stage 5, compare: the ARC of a document with the same bytes stays unchanged; later stages skip the document.

The cost depends on changes, not on size. The ARC keeps its head, times, title and additions. An ARC that another crawl
captured after this document stays unchanged, too.
A page and an error page with the same bytes are not the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.pipeline.document import Document, replace
from agent.pipeline.domainrun import DomainRun
from agent.policy.fetchstatus import is_error_page
from agent.policy.vocabulary import Reason, Result
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.history.versions import is_arc
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.redirects import place_of


def compare(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield all documents, with the current entries of their ARC and whether the ARC stays unchanged."""
    keep = run.job.settings.unchanged == "keep"
    for document in documents:
        folder = run.shelf.folder(document.arc)
        if folder is None:
            yield replace(document, unchanged=True) if _is_redirected_later(document, run) else document
            continue
        entries = tuple(folder.values())
        data = folder.get(document.data_name)
        same = is_arc(entries) and data is not None and not data.is_tree and data.oid == document.body.blob
        is_error = is_error_page(document.status)
        was_error = (is_error or run.errors) and _is_error(folder, run)
        same = same and is_error == was_error
        nested = any(entry.is_tree for entry in entries)
        stays = (same and keep) or (bool(run.later.begun) and _is_older(document, folder, run))
        yield replace(document, stored=entries, nested=nested, unchanged=stays, was_error=was_error)


def _is_redirected_later(document: Document, run: DomainRun) -> bool:
    """Return whether a crawl published meanwhile saw a redirect at the document's URL later; it stays."""
    if not run.later.begun:
        return False
    place = place_of(document.url)
    redirects = redirect_lists.lines(run.store, run.shelf.find(place), place)
    later = any(each.url == document.url and each.time > document.captured for each in redirects)
    if later:
        run.note(document.row, Result.UNCHANGED, document.mime_type, Reason.OLDER)
    return later


def _is_error(folder: Mapping[str, Entry], run: DomainRun) -> bool:
    """Whether the ARC holds an error page."""
    described = folder.get(DATA_XML)
    if described is None or not described.is_document:
        return False
    return is_error_page(data_xml.metadata(run.store.read(described.oid)).status)


def _is_older(document: Document, folder: Mapping[str, Entry], run: DomainRun) -> bool:
    """Return whether the ARC contains a later capture of another crawl; then it stays, and crawl.log notes that."""
    described = folder.get(DATA_XML)
    if described is None or described.is_tree:
        return False
    stored = data_xml.metadata(run.store.read(described.oid))
    older = run.later.replaces(str(stored.commit_tag), document.captured)
    if older:
        run.note(document.row, Result.UNCHANGED, document.mime_type, Reason.OLDER)
    return older
