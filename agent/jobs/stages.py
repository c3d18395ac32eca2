"""The stages of the pipeline between the fetched responses and git: generators that take documents and yield them.

- Stage 2, unpack, makes documents from WARC records, with decoded bodies and the heads as received.
- Stage 3, filter, passes each document through the configured chain; refused ones are dropped (/Cr-9/, /Fi-1…4/).
- Stage 4, normalise, assigns each document its ARC and the name of its data file (/Cr-8.2/, /Cr-11/).
- Stage 5, compare, leaves the ARC of a document with the same bytes as it is; later stages skip the document.
- Stage 6, extract, finds the metadata of a document in its content and its head (/Cr-12/).
- Stage 7, describe, makes the data.xml of each new or changed document, and validates it (/Cr-13/).

Two URLs of one crawl may share an ARC (http and https, `/` and `/index.html`). Where they have the same bytes, one ARC
has them, and crawl.log names its URL at the other. Where the bytes differ, both are kept: the ARC's first name stays
with the URL that has it, and each other URL gets a second name, for good. In a new place https has the first name, then
the URL of the directory, then the capture that is older.

What a browser showed of a document comes with it from stage 2. A document whose bytes are the same is a new version
where the text that the browser showed is another one.

By stage 5 the cost depends on changes, not on size. An unchanged ARC keeps its head, times, title and additions. An ARC
that another crawl captured after this document stays unchanged, too. A page and an error page with the same bytes are
not the same.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import groupby

from agent.crawl.frontier import FILTER_ERRORS, FilterFailure, FrontierUrl
from agent.crawl.vocabulary import (
    LinkKind,
    Reason,
    Result,
    UrlState,
    certificate_of,
    has_secrets,
    is_error_page,
    request_in,
    source_in,
)
from agent.crawl.wget import BatchFiles
from agent.filters import Keep, chain
from agent.pipeline.domain_run import Document, DocumentBody, DomainRun, TreeReader, replace
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import PUBLICATIONS, TreeEntry, is_arc
from webarcfs.archive.history import redirect_lists, rendered_forms
from webarcfs.archive.history.rendered_forms import RenderedForm
from webarcfs.archive.model.arc_paths import DATA_XML, data_name, second_name
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CET, COPIES, PAGE_ROLE, RESOURCE_ROLE, MetaData, parse_time
from webarcfs.archive.model.url_lists import STATUSES, place_of
from webarcfs.archive.system.files import blob_id
from webarcfs.content import mimetype, text
from webarcfs.warc import decoding, http_response, job_warc

# == unpack ===========================================================================================================


def unpack(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the job's documents of this domain, after those given. Each WARC is read once, from start to end."""
    yield from documents
    frontier = run.job.frontier
    for batch in frontier.document_batches(run.domain):
        path = BatchFiles(run.job.folder, batch).warc
        with path.open("rb") as file:
            for row in frontier.documents(run.domain, batch):
                document = _document(row, job_warc.response_at(file, row.position), run)
                if document is not None:
                    yield document


def _document(row: FrontierUrl, response: http_response.Response, run: DomainRun) -> Document | None:
    body = DocumentBody(run.job.folder)
    try:
        for part in decoding.body_of(response):
            body.write(part)
    except decoding.BadBody as error:
        body.close()
        run.note(row.id, Result.UNDECODABLE, note=str(error))
        return None
    method, request_type = request_in(row.note)
    document = Document(
        row=row.id,
        url=row.url,
        status=response.head.document_status,
        head=response.head,
        body=body,
        captured=parse_time(row.captured) if row.captured else response.date,
        folder=run.job.folder,
        arc=row.arc,
        source=source_in(row.note),
        certificate=certificate_of(row.note),
        has_secrets=has_secrets(row.note),
        method=method,
        request_type=request_type,
    )
    return replace(document, rendered=_shown(document, run)) if Reason.RENDERED in row.note.split(",") else document


def _shown(document: Document, run: DomainRun) -> RenderedForm | None:
    """Return what a browser showed of a document; None where there is nothing to keep.

    A title counts for a page without one of its own. Other documents have theirs inside, if any.
    """
    form = run.job.shown(document.row)
    if form is not None and form.title and (not _may_have_title(document) or _title(document)):
        form = dataclasses.replace(form, title="")
    return None if form is None or form.is_empty else form


# == filter ===========================================================================================================


_log = logging.getLogger(__name__)


def filter_(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the documents that every filter keeps. A filter that raises keeps the document; a job reports it once."""
    job = run.job
    types = job.types
    filters = chain(job.settings.filters, job.archive.filters, None if types.are_own else job.profile)
    if types.are_own:
        filters.insert(0, ("types", lambda document: types.wants(document.mime_type)))
    failures: dict[str, FilterFailure] = job.frontier.get(FILTER_ERRORS) or {}
    failed_before = sum(failure["documents"] for failure in failures.values())
    for document in documents:
        refused_by = next((name for name, keep in filters if not _keeps(name, keep, document, failures)), None)
        if "path" in document.__dict__:
            document.path.unlink(missing_ok=True)
        if refused_by is None:
            yield document
        else:
            run.note(document.row, Result.FILTERED, document.mime_type, f"{Reason.FILTER}{refused_by}")
            document.body.close()
    if sum(failure["documents"] for failure in failures.values()) > failed_before:
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


# == normalise ========================================================================================================


def normalise(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the documents that have an ARC of their own, with that and the name of its data file."""
    names = _Names(run)
    for document in documents:
        name = data_name(document.url)
        arc = names.arc_of(document, name)
        if isinstance(arc, _Shared):
            held = f"{Reason.RESPONSE_HELD}," if document.source in COPIES else ""
            run.note(document.row, Result.DUPLICATE, document.mime_type, f"{held}{Reason.SAME_AS}{arc.url}")
            document.body.close()
            continue
        if arc != document.arc:
            run.move(document.row, arc)
            run.annotate(document.row, f"{Reason.DIFFERS_FROM}{names.holder_of(document.arc)}")
        yield replace(document, arc=arc, data_name=name)


@dataclass(frozen=True, slots=True)
class _Shared:
    """The URL whose ARC has the same bytes."""

    url: str


class _Names:
    """Which document of a place has its first name, in one run on one domain."""

    def __init__(self, run: DomainRun) -> None:
        self._run = run
        store = run.store
        published = store.refs(PUBLICATIONS)
        own = published.pop(run.job.publication.name, None)
        self._last = TreeReader(store, own) if own else None
        self._others = [TreeReader(store, tree) for tree in published.values()]
        rivals = run.job.frontier.rivals(run.domain)
        groups = groupby((row for row in rivals if not self._has_second(row.arc, row.url)), key=lambda row: row.arc)
        self._winners = {arc: self._winner(arc, list(rows)) for arc, rows in groups}

    def arc_of(self, document: Document, name: str) -> str | _Shared:
        """Return the ARC of a document, or whose ARC has its bytes; `name` is that of its data file."""
        first, second = document.arc, second_name(document.arc, document.url)
        if self._has_second(first, document.url):
            return second
        # Not `find`: it would keep each ARC's folder in place of those above it, and `compare` needs all entries.
        entry = (self._run.shelf.folder(first) or {}).get(name)
        is_same = entry is not None and entry.oid == document.body.blob
        if first not in self._winners:
            return first if is_same or self._is_free_for(document, first) else second
        winner = self._winners[first]
        if winner is None:
            return (
                _Shared(self._holder(first, for_copy=document.source in COPIES) or document.url) if is_same else second
            )
        if winner.id == document.row:
            return first
        own = self._run.job.frontier.by_url(document.url)
        return _Shared(winner.url) if own is not None and own.digest == winner.digest else second

    def holder_of(self, arc: str) -> str:
        """Return the URL that has a first name from now on; empty if none has it any more."""
        winner = self._winners.get(arc)
        return winner.url if winner is not None else self._holder(arc, for_copy=True) or ""

    def _winner(self, arc: str, rows: list[FrontierUrl]) -> FrontierUrl | None:
        """Return which of several captures of a place has its first name; None: an archived one of another URL."""
        holder = self._holder(arc, for_copy=all(source_in(row.note) in COPIES for row in rows))
        holding = next((row for row in rows if row.url == holder), None)
        if holding is not None:
            return holding
        return None if holder and not self._gives_way(holder, arc) else min(rows, key=_rank, default=None)

    def _has_second(self, arc: str, url: str) -> bool:
        return _has(self._run.shelf, second_name(arc, url))

    def _holder(self, arc: str, *, for_copy: bool) -> str | None:
        """Return the URL of the document that has a place; None without one.

        A copy holds a place only for other copies.
        """
        stored = _stored(self._run, self._run.shelf.find(f"{arc}/{DATA_XML}"))
        if stored is None or (stored.source in COPIES and not for_copy):
            return None
        return stored.url

    def _is_free_for(self, document: Document, arc: str) -> bool:
        holder = self._holder(arc, for_copy=document.source in COPIES)
        return holder is None or holder == document.url or self._gives_way(holder, arc)

    def _gives_way(self, holder: str, arc: str) -> bool:
        """Return whether the crawl ends the document that has a place: its URL redirects now, or is gone."""
        row = self._run.job.frontier.by_url(holder)
        if row is not None and row.kind != LinkKind.ROBOTS and row.state == UrlState.DONE and row.status in STATUSES:
            return source_in(row.note) not in COPIES
        if row is not None or not self._run.complete or self._last is None:
            return False
        return _has(self._last, arc) and not any(_has(other, arc) for other in self._others)


def _has(tree: TreeReader, arc: str) -> bool:
    entry = tree.find(f"{arc}/{DATA_XML}")
    return entry is not None and entry.is_document


def _stored(run: DomainRun, described: TreeEntry | None) -> MetaData | None:
    """Return what the data.xml of an ARC says; None where there is none."""
    if described is None or not described.is_document:
        return None
    return data_xml.metadata(run.store.read(described.oid))


def _rank(row: FrontierUrl) -> tuple[bool, bool, bool, str, int]:
    is_folder = row.url.partition("?")[0].endswith("/")
    return source_in(row.note) in COPIES, not row.url.startswith("https:"), not is_folder, row.captured, row.id


# == compare ==========================================================================================================


def compare(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield all documents, with the current entries of their ARC and whether the ARC stays unchanged."""
    keep = run.job.settings.unchanged == "keep"
    for document in documents:
        folder = run.shelf.folder(document.arc)
        if document.source in COPIES and _has_response(document, folder, run):
            run.note(document.row, Result.UNCHANGED, document.mime_type, Reason.RESPONSE_HELD)
            yield replace(document, unchanged=True)
            continue
        if folder is None:
            yield replace(document, unchanged=True) if _is_redirected_later(document, run) else document
            continue
        entries = tuple(folder.values())
        data = folder.get(document.data_name)
        same = is_arc(entries) and data is not None and not data.is_tree and data.oid == document.body.blob
        is_error = is_error_page(document.status)
        was_error = (is_error or run.errors) and _is_error(folder, run)
        same = same and (document.rendered is None or not _shows_more(document.rendered, folder, run))
        same = same and is_error == was_error and not (run.copies and _is_other_kind(document, folder, run))
        becomes_page = same and run.resources and not run.is_resource and _is_resource(folder, run)
        nested = any(entry.is_tree for entry in entries)
        stays = (same and keep and not becomes_page) or (bool(run.later.begun) and _is_older(document, folder, run))
        yield replace(
            document,
            stored=entries,
            nested=nested,
            unchanged=stays,
            becomes_page=becomes_page and keep,
            was_error=was_error,
        )


def _is_redirected_later(document: Document, run: DomainRun) -> bool:
    """Return whether a crawl published meanwhile saw a redirect at the document's URL later; it stays."""
    if not run.later.begun:
        return False
    place = place_of(document.url)
    redirects = redirect_lists.lines(run.store, run.shelf.find(place), place)
    later = any(redirect.url == document.url and redirect.time > document.captured for redirect in redirects)
    if later:
        run.note(document.row, Result.UNCHANGED, document.mime_type, Reason.OLDER)
    return later


def _has_response(copy: Document, folder: Mapping[str, TreeEntry] | None, run: DomainRun) -> bool:
    """Return whether the archive has a server's response where a copy would be stored: a document, or a redirect."""
    stored = None if folder is None else _stored(run, folder.get(DATA_XML))
    if stored is not None:
        return stored.source not in COPIES
    place = place_of(copy.url)
    return copy.url in redirect_lists.urls(run.store, run.shelf.find(place))


def _is_other_kind(document: Document, folder: Mapping[str, TreeEntry], run: DomainRun) -> bool:
    """Return whether a document was taken from something else than the one of its ARC, with the same bytes."""
    stored = _stored(run, folder.get(DATA_XML))
    return stored is not None and stored.source != document.source and bool(COPIES & {stored.source, document.source})


def _shows_more(form: RenderedForm, folder: Mapping[str, TreeEntry], run: DomainRun) -> bool:
    """Return whether a browser showed something of the same bytes that the ARC's version has not, or another text.

    A picture differs at each time, and a title may count, so neither makes a version where there is one with a form.
    """
    stored = _stored(run, folder.get(DATA_XML))
    if stored is None or not stored.rendered:
        return True
    try:
        text_before = rendered_forms.text_blob(run.store, stored.rendered)
    except Damaged as error:
        _log.warning("%s: what a browser showed of it before cannot be read: %s", stored.url, error)
        return True
    return bool(form.text) and blob_id(form.text) != text_before


def _is_resource(folder: Mapping[str, TreeEntry], run: DomainRun) -> bool:
    """Whether only pages of other hosts needed what the ARC holds; it becomes a page where its host has some now."""
    stored = _stored(run, folder.get(DATA_XML))
    return stored is not None and stored.is_resource


def _is_error(folder: Mapping[str, TreeEntry], run: DomainRun) -> bool:
    """Whether the ARC holds an error page."""
    stored = _stored(run, folder.get(DATA_XML))
    return stored is not None and is_error_page(stored.status)


def _is_older(document: Document, folder: Mapping[str, TreeEntry], run: DomainRun) -> bool:
    """Return whether the ARC contains a later capture of another crawl; then it stays, and crawl.log notes that."""
    described = folder.get(DATA_XML)
    if described is None or described.is_tree:
        return False
    stored = data_xml.metadata(run.store.read(described.oid))
    older = run.later.replaces(str(stored.commit_tag), document.captured)
    if older:
        run.note(document.row, Result.UNCHANGED, document.mime_type, Reason.OLDER)
    return older


# == extract ==========================================================================================================


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
            title = _title(document) or (document.rendered.title if document.rendered is not None else "")
            yield replace(document, title=title, create_time=_create_time(document))


def _title(document: Document) -> str:
    """Return the title of an HTML or XML document, else an empty string (/Cr-12.2/)."""
    if not _may_have_title(document):
        return ""
    charset = text.decode_charset(document.body.start(mimetype.SAMPLE), document.head.content_type)
    return text.title_of(document.body.chunks(), charset, document.mime_type)


def _may_have_title(document: Document) -> bool:
    return document.mime_type in text.HTML_TYPES or text.is_xml(document.mime_type)


def _create_time(document: Document) -> datetime:
    """Return Last-Modified, else the time of the first capture of this content (/Cr-12.7/)."""
    try:
        modified = parsedate_to_datetime(document.head.get("last-modified")).astimezone(CET)
    except (ValueError, TypeError, IndexError, OverflowError):
        return document.captured
    plausible = modified.year >= 1000 and modified <= document.captured + _CLOCK_SKEW
    return modified.replace(microsecond=0) if plausible else document.captured


# == describe =========================================================================================================


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
        certificate=document.certificate,
        method=document.method,
        request_type=document.request_type,
        role=_role_of(document, run),
        rendered="" if document.rendered is None else rendered_forms.tree_of(document.rendered.files()),
    )


def _role_of(document: Document, run: DomainRun) -> str:
    """Return the role of a new version: a page stays one where pages of other hosts need it as well."""
    if not run.is_resource:
        return PAGE_ROLE
    described = next((entry for entry in document.stored or () if entry.name == DATA_XML), None)
    stored = _stored(run, described)
    return RESOURCE_ROLE if stored is None or stored.is_resource else PAGE_ROLE
