"""The pipeline: brings the captured documents into the archive.

`STAGES` lists its stages in order. Documents pass through all stages one at a time, as through generators, and are not
unpacked into a tree of files. So memory does not grow with the crawl.

A job ends here: its domains are published one after the other, then a report and a record replace its folder. Crawls
and imports end alike. The frontier records each step, so that a job that is killed here resumes at that step.

The stages between the fetched responses and git are generators that take documents and yield them.

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

import contextlib
import dataclasses
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from agent.catalogue.recording import keep_capture, keep_patch
from agent.crawl import frontier, job_folder
from agent.crawl.disposition import Captured
from agent.crawl.frontier import FILTER_ERRORS, FilterFailure, FrontierUrl, PublishedDomain
from agent.crawl.job_folder import Hold, Job, JobState, Phase, StateKeeper, reason_of
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
from agent.crawl.watching import is_idle
from agent.crawl.wget import BatchFiles
from agent.filters import Keep, chain
from agent.indexing.recovery import catch_up_domain, catch_up_links
from agent.pipeline.domain_run import Document, DocumentBody, DomainRun, LaterCrawls, TreeReader, later_crawls, replace
from agent.pipeline.publish import Published, Publisher, had_no_pages
from agent.reports import report
from agent.reports.report import Missing
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, PUBLICATIONS, Commit, Repository, TreeEntry, is_arc
from webarcfs.archive.history import redirect_lists, rendered_forms, sequence
from webarcfs.archive.history.rendered_forms import RenderedForm
from webarcfs.archive.index.database import domains_of
from webarcfs.archive.model.arc_paths import DATA_XML, data_name, second_name
from webarcfs.archive.model.errors import Damaged, Interrupted, NotFound, WebarcError
from webarcfs.archive.model.metadata import (
    CET,
    COPIES,
    PAGE_ROLE,
    RESOURCE_ROLE,
    CommitTag,
    MetaData,
    parse_compact_time,
    parse_time,
)
from webarcfs.archive.model.url_lists import STATUSES, place_of
from webarcfs.archive.system import locks
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

    A picture differs at each time, a title may count, and a DOM may have a nonce. So none of them makes a version where
    there is one with a form.
    """
    stored = _stored(run, folder.get(DATA_XML))
    if stored is None or not stored.rendered:
        return True
    try:
        text_before = rendered_forms.text_blob(run.store, stored.rendered)
    except Damaged as error:
        _log.warning("%s: what a browser showed of it before cannot be read: %s", stored.url, error)
        return True
    return form.has_text and (blob_id(form.text) if form.text else "") != text_before


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


# == publishing =======================================================================================================


Stage = Callable[[Iterator[Document], DomainRun], Iterator[Document]]

#: The stages from a WARC record to git. Capture comes before them, publishing and indexing of a domain after.
STAGES: tuple[tuple[str, Stage], ...] = (
    ("unpack", unpack),
    ("filter", filter_),
    ("normalise", normalise),
    ("compare", compare),
    ("extract", extract),
    ("describe", describe),
)


def publish_domain(
    job: Job, domain: str, complete: bool, seconds: dict[str, float], *, is_resource: bool = False
) -> tuple[DomainRun, Published] | None:
    """Publish the job's documents of a domain; return None if the job has none and may remove none.

    `is_resource`: the crawl has no page of the domain, only what pages of others need.

    Safe to call again after a crash at any point: nothing is published twice. The time of each stage is added to
    `seconds`. Raises Interrupted if the job must stop; then nothing was published.
    """
    archive = job.archive
    with locks.exclusive_until(archive.publishing_lock(domain), job.stop):
        run = _begin(job, domain, complete, is_resource=is_resource)
        if run is None:
            return None
        published = _published_before(run)
        if published is None:
            published = _flow(run, seconds)
        begun = time.monotonic()
        catch_up_domain(archive, domain, {published.commit: published.met.arcs})
    catch_up_links(archive, domain, job.stop.is_set)  # without the lock: other crawls need not wait for it
    seconds["index"] = seconds.get("index", 0.0) + time.monotonic() - begun
    return run, published


def was_published(job: Job, domain: str) -> bool:
    """Return whether a process of this job has published the domain, and may have been killed after that."""
    tag = job.frontier.get(frontier.TAG.of(domain))
    if tag is None or not job.archive.repository(domain).exists():
        return False
    store = Repository(job.archive.repository(domain))
    target = store.ref(CommitTag.parse(tag).ref)
    commit = sequence.crawl_commit(store, target) if target else None
    return commit is not None and job.name in (commit.message.job, commit.message.patch)


def _begin(job: Job, domain: str, complete: bool, *, is_resource: bool) -> DomainRun | None:
    path = job.archive.repository(domain)
    has_captures = job.frontier.has_captures(domain)
    try:
        store = Repository(path)
    except NotFound:
        if not has_captures:
            return None
        store = Repository.create(path)
    if not has_captures and not (complete and store.ref(PUBLICATIONS + job.publication.name)):
        return None
    later = later_crawls(job, store, domain)
    tag = _tag(job, domain, store, later)
    times = {parse_compact_time(name): oid for name, oid in store.refs(CRAWLS).items()}
    older = any(crawl_time > tag.crawl_time for crawl_time in times)
    base = _before(store, tag, times) if older else store.head()
    last = sequence.crawl_commit(store, base.oid) if base is not None else None
    return DomainRun(
        job=job,
        domain=domain,
        store=store,
        base=base,
        tag=tag,
        complete=complete and not older,
        shelf=TreeReader(store, base.tree if base else None),
        older=older,
        later=later,
        errors=last is not None and last.message.has_errors,
        copies=last is not None and last.message.has_copies,
        resources=last is not None and last.message.has_resources,
        is_resource=is_resource,
    )


def _before(store: Repository, tag: CommitTag, times: Mapping[datetime, str]) -> Commit | None:
    """Return the newest state before `tag` in time, with its additions; None if `tag` is the oldest."""
    last = max((crawl_time for crawl_time in times if crawl_time < tag.crawl_time), default=None)
    return None if last is None else store.commit(times[last])


def _tag(job: Job, domain: str, store: Repository, later: LaterCrawls) -> CommitTag:
    """Return the commitTag of this job on a domain: its start, moved to a second after the newest crawl if necessary.

    The time of a snapshot of an import is that of its first capture, and it is inserted between the other crawls; so is
    a crawl that was overtaken by another one while it was interrupted.
    """
    fact = frontier.TAG.of(domain)
    noted = job.frontier.get(fact)
    if noted is not None and store.ref(CommitTag.parse(noted).ref) is not None:
        tag = CommitTag.parse(noted)
        commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
        if commit is not None and commit.message.publication == job.publication.name:
            return tag
    times = {parse_compact_time(name) for name in store.refs(CRAWLS)}
    begun = job.begun if later.overtook else None if job.cut is None else job.cut.time
    if begun is not None:
        crawl_time = begun
        while crawl_time in times:
            crawl_time += timedelta(seconds=1)
    else:
        last = max(times, default=None)
        crawl_time = job.begun if last is None or last < job.begun else last + timedelta(seconds=1)
    tag = CommitTag(crawl_time, domain)
    with job.frontier.changes():
        job.frontier.set(fact, str(tag))
    return tag


def _published_before(run: DomainRun) -> Published | None:
    """Return what a killed run of this job has published already; None if nothing."""
    target = run.store.ref(run.tag.ref)
    commit = sequence.crawl_commit(run.store, target) if target else None
    if commit is None:
        return None
    results = run.job.frontier.by_result(run.domain)
    before = run.store.commit(commit.parents[0]).tree if commit.parents else None
    gone = (difference for difference in run.store.differences(before, commit.tree) if difference.new is None)
    removed = sum(difference.path.endswith(f"/{DATA_XML}") for difference in gone)
    led = Counter(change.what for change in redirect_lists.differences(run.store, before, commit.tree))
    run.redirects.update(led)
    run.arcs.update({key: results.get(key, 0) for key in run.arcs} | {"removed": removed})
    return Published(commit.oid, commit.message.complete, "" if commit.message.complete else "crawl incomplete")


def _flow(run: DomainRun, seconds: dict[str, float]) -> Published:
    """Pass all documents through the stages, then publish."""
    with ExitStack() as stack:
        publisher = stack.enter_context(Publisher(run))
        clock = _Clock(seconds)
        flow: Iterator[Document] = iter(())
        for name, stage in (*STAGES, ("publish", publisher.publish)):
            flow = clock.timed(name, stage(flow, run))
        total = run.job.frontier.count_documents(run.domain)
        for number, document in enumerate(flow, 1):
            document.body.close()
            if run.job.stop.is_set():
                raise Interrupted(f"{run.domain}: stopped before anything was published")
            run.job.progress(f"archive {run.domain}", number, total)
        begun = time.monotonic()
        published = publisher.finish()
        seconds["publish"] += time.monotonic() - begun
    return published


class _Clock:
    """Measures the time of each stage, without the time of the stages before it."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self._inner = 0.0  # time spent in the stages before the running one

    def timed(self, name: str, stage: Iterator[Document]) -> Iterator[Document]:
        """Yield from `stage`, and add its time to `seconds[name]`."""
        self._seconds.setdefault(name, 0.0)
        while True:
            outer, self._inner = self._inner, 0.0
            begun = time.perf_counter()
            try:
                document = next(stage, None)
            finally:
                whole = time.perf_counter() - begun
                self._seconds[name] += whole - self._inner
                self._inner = outer + whole
            if document is None:
                return
            yield document


# == ending ===========================================================================================================


_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The end of a job. An `interrupted` job stays in `jobs/` for the next run; `warnings` say what is missing, why.

    `lacks` is what a crawl did not bring of pages and their resources.
    """

    job: str
    interrupted: bool
    complete: bool
    warnings: tuple[str, ...]
    tags: tuple[str, ...]
    summary: dict[str, object]
    report: Path | None
    lacks: Missing = Missing()

    @property
    def is_whole(self) -> bool:
        """Whether it brought all that servers had (exit code 3 where not)."""
        return not self.interrupted and self.complete and not self.warnings and not self.lacks.lost


def until_stopped(job: Job, keeper: StateKeeper, work: Callable[[], _Outcome], how: str) -> _Outcome | JobOutcome:
    """Return the outcome of `work`. If it raises Interrupted, note that in the item and return `how` as a warning."""
    try:
        return work()
    except Interrupted:
        keeper.to(Phase.INTERRUPTED, reason=keeper.item.held or "stopped", failures=0)
        how = job_folder.lead_on(job.name, Hold(keeper.item.held)) if keeper.item.held else how
        return JobOutcome(job.name, True, False, (how,), (), {}, None)


@contextmanager
def failures_noted(keeper: StateKeeper) -> Iterator[None]:
    """Write the reason of a failure into the item; the job's folder stays, so that it can be tried again."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError, WebarcError):  # the agent reads the error from stderr, and writes it later
            keeper.failed(reason_of(error, keeper.folder))
        raise


def publish(job: Job, captured: Captured, seconds: report.Seconds, *, only_begun: bool = False) -> list[str]:
    """Publish the job domain by domain; return a line for each incomplete publication. Raises Interrupted.

    Each domain with pages is as complete as its own capture was. Those that only have resources of pages follow: what
    no page needs any more is removed there if all pages are known, also where nothing was asked for.

    `only_begun`: nothing is published; what a killed process of the job had published is put into the index.
    """
    resources = {host.domain for host in job.frontier.crawled_hosts() if not host.has_pages}
    domains = [domain for domain in job.frontier.domains() if not only_begun or was_published(job, domain)]
    for domain in (domain for domain in domains if domain not in resources):
        _publish_and_keep(job, domain, seconds, complete=captured.is_complete(domain))
    every = captured.complete and not captured.hosts and all(part["complete"] for part in report.domains(job.frontier))
    idle = list(_idle_resource_domains(job, set(domains))) if every else []
    with job.frontier.changes():
        job.frontier.set(frontier.IDLE, idle)
    for domain in (*(domain for domain in domains if domain in resources), *idle):
        _publish_and_keep(job, domain, seconds, complete=every, is_resource=True)
    return [
        f"{part['commit_tag']}: {part['reason']}"
        for part in report.domains(job.frontier)
        if part["reason"]
        and (every or CommitTag.parse(part["commit_tag"]).domain not in captured.hosts.keys() | resources)
    ]


def _publish_and_keep(
    job: Job, domain: str, seconds: report.Seconds, *, complete: bool, is_resource: bool = False
) -> None:
    if job.stop.is_set():
        raise Interrupted(f"stopped before {domain} was published")
    done = publish_domain(job, domain, complete, seconds.values, is_resource=is_resource)
    if done is not None:
        with job.frontier.changes():
            report.keep_domain(job.frontier, *done)
            seconds.keep()


def _idle_resource_domains(job: Job, asked: Set[str]) -> Iterator[str]:
    """Yield the domains from which the crawl needed nothing, and of which its publication has resources alone."""
    try:
        domains = domains_of(job.archive.database, job.publication.name)
    except WebarcError:
        domains = list(job.archive.domains())  # without the index, git alone tells; it takes longer
    for domain in domains:
        if domain not in asked:
            with contextlib.suppress(NotFound, Damaged):
                store = Repository(job.archive.repository(domain))
                seen = store.ref(PUBLICATIONS + job.publication.name)
                if seen is not None and had_no_pages(store, store.head(), job.publication.name, seen):
                    yield domain


def finish(
    job: Job, keeper: StateKeeper, seconds: report.Seconds, *, captured: Captured, warnings: Sequence[str], state: Phase
) -> JobOutcome:
    """Write the report of a published job and the record of its capture, and remove its folder."""
    parts, account = report.domains(job.frontier), report.account_of(job)
    item = keeper.ended(state, warnings=tuple(warnings))
    hosts = report.host_ends(job.frontier, parts, captured, only_adds=job.only_adds)
    lacks = report.missing(job.archive, job.frontier)
    outcome = reported(
        job, account, parts, item, seconds=seconds.values, complete=captured.complete, hosts=hosts, lacks=lacks
    )
    report.remove_job(job.folder)
    return outcome


def _has_no_news(job: Job) -> bool:
    """Return whether a crawl found a watched feed without new items, and no person asked for it: it has no record."""
    begun = job_folder.load(job.folder)
    return is_idle(job.publication, job.frontier) and (begun is None or not (begun.record or begun.occasion))


def reported(
    job: Job,
    account: report.Account,
    parts: Sequence[PublishedDomain],
    item: JobState,
    *,
    seconds: Mapping[str, float],
    complete: bool,
    hosts: Sequence[report.HostEnd] = (),
    lacks: Missing | None = None,
) -> JobOutcome:
    """Write the report of a published job, with its item as it ended, and the record of its capture.

    It is `complete` if each of its `hosts` is, and the last part of each domain. `parts` are in order of their domains
    and times.
    """
    last = {CommitTag.parse(part["commit_tag"]).domain: part["complete"] for part in parts}
    whole = complete and all(host.complete for host in hosts) and (job.only_adds or all(last.values()))
    lacks = lacks or Missing()
    summary = report.summary(job, account, whole, parts, seconds, hosts, lacks)
    tags = tuple(part["commit_tag"] for part in parts if not part.get("shared"))
    item = dataclasses.replace(item, complete=whole, tags=tags, pid=0, ticks=0)
    path = report.write(job, account, summary, item)
    if job.patch is not None:
        keep_patch(job, tags)
    elif tags or not whole or not _has_no_news(job):
        keep_capture(job, tags)
    return JobOutcome(job.name, False, whole, item.warnings, tags, summary, path, lacks)
