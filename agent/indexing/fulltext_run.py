"""Brings the full-text index in step with webarc.db.

A snapshot's documents are added in one or more commits, and its mark with the last of them: after a kill, the next run
resumes where this one committed. A version that a snapshot ended is put again, with the text that the index has. An
index that cannot be read is rebuilt.

A version of which the archive has what a browser showed is found by the words of both: those of the document, and
those that scripts put there. A line that both have counts once.

`textless` lists the documents of a job that have no text in the index, or not all of it, and why. `documents` has those
of the index with the field names of SolrWayback, for Solr.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent.pipeline.domain_run import TreeReader
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.index import database
from webarcfs.archive.index.database import SourceSnapshot, SourceVersion
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Busy, Damaged, Interrupted, InvalidDocument, NotFound
from webarcfs.archive.model.metadata import RESOURCE_ROLE, CommitTag, from_epoch
from webarcfs.archive.system.clocks import Progress
from webarcfs.content.extractors.extracted import SENTENCES, Extracted, Fault
from webarcfs.content.extractors.extracting import has_text
from webarcfs.search import generations
from webarcfs.search.index import IndexReader, IndexWriter
from webarcfs.search.translation import Translator
from webarcfs.search.words import CURRENT, IndexedDocument, began, faulty, kind_of
from webarcfs.texts.extraction import Extraction, ExtractionRequest
from webarcfs.texts.version_text import joined

# == textless =========================================================================================================


@dataclass(frozen=True, slots=True)
class Textless:
    """A document without a text, or without all of it."""

    url: str
    mime_type: str
    size: int
    fault: Fault


def textless(archive: Archive, tags: Iterable[CommitTag]) -> Iterator[Textless]:
    """Yield what snapshots brought that cannot be searched by its words, by fault and URL.

    Raises NotFound for a snapshot that is not indexed yet.
    """
    reader = generations.opened(archive)
    make = Translator(reader.schema)
    indexed = reader.snapshots()
    for tag in tags:
        if str(tag) not in indexed:
            raise NotFound(f"{tag} is not indexed yet; the agent does it, or `webarc-agent index`")
        came = make.term("mark", began(tag.domain, int(tag.crawl_time.timestamp())))
        for fault in SENTENCES:
            query = make.all(came, make.term("mark", faulty(fault)))
            hits = reader.documents(query, max(reader.count(query), 1)).plain()
            for document in sorted(hits, key=lambda hit: hit.url):
                yield Textless(document.url, document.mime_type, document.size, fault)


# == fulltext run =====================================================================================================


_log = logging.getLogger(__name__)
_ANEW = "`webarc-agent index --rebuild` rebuilds it"
#: Documents between two commits: a kill loses no more work than this.
_AT_ONCE = 20_000
#: Is called with a domain, documents done, and documents known.
#: `seq_until` of current versions in webarc.db.
_NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Indexed:
    """The numbers of snapshots and documents that a run added or put again."""

    snapshots: int
    documents: int


def run(archive: Archive, stop: Callable[[], bool], progress: Progress, *, anew: bool) -> Indexed:
    """Index what is missing; with `anew`, everything, beside the index in use. The caller holds the archive's lock.

    Raises Interrupted if `stop` returns True, Busy, OSError, and Damaged for a database that cannot be read.
    """
    folder = None if anew else generations.current(archive)
    if folder is not None:
        try:
            IndexReader(folder)
        except Damaged as error:
            _log.warning("%s; it is rebuilt", error)
            folder = None
    if folder is not None:
        generations.remove_others(archive)
        return _Run(archive, folder, stop, progress).all()
    beside = anew and generations.current(archive) is not None
    folder = generations.begun(archive)
    with IndexWriter(folder) as writer:
        writer.commit()
    if not beside:
        generations.use(archive, folder)
    done = _Run(archive, folder, stop, progress).all()
    generations.use(archive, folder)
    return done


def findings(archive: Archive, *, in_step: bool) -> Iterator[str]:
    """Yield what is wrong with the index in use, a line each. With `in_step`, missing snapshots are wrong, too."""
    name = archive.search.name
    folder = generations.current(archive)
    if folder is None:
        if in_step:
            yield f"{name}: there is no index of this version; {_ANEW}"
        return
    try:
        reader = IndexReader(folder)
        indexed = reader.snapshots()
        counts = reader.counts()
    except (Damaged, Busy, OSError) as error:
        yield f"{name}: {error}"
        return
    try:
        snapshots = database.snapshots(archive.database)
        rows = database.count_versions(archive.database)
    except (Damaged, Busy, NotFound):
        return  # another check reports it
    tags = {snapshot.tag for snapshot in snapshots}
    for tag in sorted(indexed - tags):
        yield f"{name}: it has {tag}, which webarc.db has not; {_ANEW}"
    lacking = {snapshot.domain for snapshot in snapshots if snapshot.tag not in indexed}
    if in_step:
        yield from (
            f"{name}: snapshots of {domain} are missing; `webarc-agent index` adds them" for domain in sorted(lacking)
        )
    for domain, count in sorted(rows.items()):
        if domain not in lacking and counts.get(domain, 0) != count:
            yield f"{name}: it has {counts.get(domain, 0)} versions of {domain}, webarc.db has {count}; {_ANEW}"


class _Run:
    """One run of the indexer."""

    def __init__(self, archive: Archive, folder: Path, stop: Callable[[], bool], progress: Progress) -> None:
        self._archive = archive
        self._folder = folder
        self._stop = stop
        self._progress = progress
        self._documents = self._since_commit = 0

    def all(self) -> Indexed:
        """Bring the index in step."""
        by_domain: dict[str, list[SourceSnapshot]] = {}
        with suppress(NotFound):
            for snapshot in database.snapshots(self._archive.database):
                by_domain.setdefault(snapshot.domain, []).append(snapshot)
        self._known = sum(database.count_versions(self._archive.database).values()) if by_domain else 0
        with IndexWriter(self._folder) as self._writer:
            self._reader = IndexReader(self._folder)
            indexed = self._without_vanished(
                {snapshot.tag for snapshots in by_domain.values() for snapshot in snapshots}
            )
            count = 0
            with Extraction[_Wanted]() as self._extraction:
                for domain, snapshots in sorted(by_domain.items()):
                    missing = [snapshot for snapshot in snapshots if snapshot.tag not in indexed]
                    if missing:
                        self._domain(domain, missing, snapshots)
                        count += len(missing)
            self._writer.commit()
        return Indexed(count, self._documents)

    def _without_vanished(self, tags: set[str]) -> set[str]:
        """Remove the domains with a snapshot that the archive does not have; return the snapshots of the others."""
        indexed = self._reader.snapshots()
        gone = {tag.partition("@")[2] for tag in indexed - tags}
        for domain in sorted(gone):
            _log.warning("the full-text index of %s does not match the archive; it is rebuilt", domain)
            self._writer.forget(domain)
        if gone:
            self._writer.commit()
            self._reader = IndexReader(self._folder)
        return {tag for tag in indexed if tag.partition("@")[2] not in gone}

    def _domain(self, domain: str, missing: list[SourceSnapshot], all_of_it: list[SourceSnapshot]) -> None:
        """Add the missing snapshots of a domain: the versions that began or ended in them, or in the next ones."""
        seqs = [snapshot.seq for snapshot in all_of_it]
        touched = {snapshot.seq for snapshot in missing}
        for snapshot in missing:
            at = seqs.index(snapshot.seq) + 1
            touched |= {*seqs[at : at + 1]}
        versions = database.versions(self._archive.database, domain, touched)
        for wanted, text in self._extraction.texts(self._wanted(domain, versions)):
            self._put(domain, wanted.version, joined(text, wanted.rendered.text), wanted.rendered.shown_in)
        facts = database.capture_facts(self._archive.database, domain, (snapshot.seq for snapshot in missing))
        for snapshot in missing:
            self._writer.mark_snapshot(snapshot.tag, facts[snapshot.seq])
        self._progress(domain, self._documents, self._documents)

    def _wanted(self, domain: str, versions: Iterator[SourceVersion]) -> Iterator[tuple[_Wanted, ExtractionRequest]]:
        """Yield the versions whose texts are to be read; put the others at once."""
        repository = str(self._archive.repository(domain))
        shown = _ShownTexts(self._archive, domain)
        languages: dict[str, str] = {}
        is_new = not self._reader.frequency("domain", domain)
        for version in versions:
            if self._stop():
                self._writer.commit()
                raise Interrupted(f"stopped while {domain} was indexed; the next run resumes it")
            before = self._reader.find(version.path, version.since) if not is_new else None
            if before is not None and before.blob == version.blob and before.until == _until(version):
                continue
            if before is not None and before.blob == version.blob:
                languages[version.path] = before.extracted.language
                self._put(domain, version, before.extracted, before.shown_in)
                continue
            rendered = shown.text_of(version)
            if not has_text(version.mime_type):
                self._put(domain, version, joined(Extracted(), rendered.text), rendered.shown_in)
            else:
                # The version that it replaced came before it: of one MIME type, the oldest come first.
                language = languages.pop(version.path, "")
                request = ExtractionRequest(repository, version.blob, version.head, version.mime_type, language)
                yield _Wanted(version, rendered), request

    def _put(self, domain: str, version: SourceVersion, text: Extracted, shown_in: int) -> None:
        self._writer.put(
            IndexedDocument(
                url=version.url, path=version.path, domain=domain, publication=version.publication,
                since=version.since, until=_until(version), captured=version.captured, mime_type=version.mime_type,
                title=version.title or text.title, status=version.status, size=version.size, blob=version.blob,
                is_resource=version.is_resource, shown_in=shown_in, is_later_part=version.stored != version.since,
                extracted=text,
            )
        )  # fmt: skip
        self._documents += 1
        self._since_commit += 1
        if self._since_commit >= _AT_ONCE:
            self._since_commit = 0
            self._writer.commit()
        if self._documents % 1_000 == 0:
            self._progress(domain, self._documents, max(self._documents, self._known))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A version whose text is to be read, and the text that a browser showed of it."""

    version: SourceVersion
    rendered: _ShownText


@dataclass(frozen=True, slots=True)
class _ShownText:
    """The text that a browser showed, and the snapshot whose crawl recorded it; 0 without a text."""

    text: str = ""
    shown_in: int = 0


class _ShownTexts:
    """The texts that browsers showed of the versions of a domain: data.xml names them, and webarc.db does not."""

    def __init__(self, archive: Archive, domain: str) -> None:
        self._domain = domain
        self._store = Repository(archive.repository(domain))
        self._is_any = self._store.ref(rendered_forms.REF) is not None
        self._at = -1
        self._shelf: TreeReader | None = None

    def text_of(self, version: SourceVersion) -> _ShownText:
        """Return the text of a version; empty without one, or, with a line in the log, where it cannot be read."""
        if not self._is_any:
            return _ShownText()
        try:
            if self._shelf is None or version.since != self._at:
                tag = CommitTag(from_epoch(version.since), self._domain)
                self._shelf, self._at = TreeReader(self._store, self._store.snapshot_tree(tag)), version.since
            arc = version.path.removeprefix(f"/{self._domain}/")
            entry = self._shelf.find(f"{arc}/{DATA_XML}")
            if entry is None or not entry.is_document:
                return _ShownText()
            meta = data_xml.metadata(self._store.read(entry.oid))
            text = rendered_forms.text_of(self._store, meta.rendered) if meta.rendered else ""
            return _ShownText(text, int(meta.commit_tag.crawl_time.timestamp())) if text else _ShownText()
        except (Damaged, NotFound, InvalidDocument) as error:
            _log.warning("what a browser showed of %s is not indexed: %s", version.path, error)
            return _ShownText()


def _until(version: SourceVersion) -> int:
    return CURRENT if version.until == _NEVER else version.until


# == fulltext export ==================================================================================================


#: Warcindexer's words for kinds that it names otherwise.
_KINDS = {"table": "excel", "slides": "powerpoint", "style": "css", "script": "javascript"}


def documents(archive: Archive) -> Iterator[dict[str, Any]]:
    """Yield each version in the index as a document of Solr. Raises NotFound without an index."""
    reader = generations.opened(archive)
    for version in database.every_version(archive.database):
        document = reader.find(version.path, version.since)
        if document is None:
            raise NotFound(f"{version.url} is not indexed yet; `webarc-agent index` brings the index in step")
        yield solr(document)


def solr(document: IndexedDocument) -> dict[str, Any]:
    """Return a document of Solr; fields without a value are left out."""
    captured = datetime.fromtimestamp(document.captured, UTC)
    host = urlsplit(document.url).hostname or ""
    text = document.extracted
    fields = {
        "id": f"{captured:%Y%m%d%H%M%S}/{document.blob}/{document.url}",
        "url": document.url,
        "url_norm": document.url,
        "url_path": urlsplit(document.url).path,
        "host": host,
        "domain": ".".join(host.split(".")[-2:]),
        "public_suffix": host.rpartition(".")[2],
        "title": document.title,
        "content": text.body,
        "content_type": document.mime_type,
        "content_type_norm": _KINDS.get(kind_of(document.mime_type), kind_of(document.mime_type)),
        "content_type_ext": document.extension,
        "content_length": document.size,
        "content_text_length": len(text.body),
        "content_language": text.language,
        "description": text.description,
        "crawl_date": f"{captured:%Y-%m-%dT%H:%M:%SZ}",
        "crawl_year": captured.year,
        "wayback_date": int(f"{captured:%Y%m%d%H%M%S}"),
        "status_code": document.status,
        "hash": document.blob,
        "collection": document.publication,
        "record_type": "response",
        "webarcfs_role": RESOURCE_ROLE if document.is_resource else "",
        "type": kind_of(document.mime_type),
        "webarcfs_since": document.since,
        "webarcfs_until": None if document.until == CURRENT else document.until,
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}
