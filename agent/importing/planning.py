"""Plans an import: from the captures of its files to crawls, and to the snapshots of each host. Writes the index.

The plan follows from the files and the options alone. It is written before anything is published, in one transaction,
so that a killed import resumes by the same plan. `PlannedImport` is the plan as `--try` prints it.

`Filling` fills the frontier of a snapshot of a host from the index: the state of each URL, as a crawl leaves it. Of the
captures of a URL in a snapshot the first one of its newest version counts; all others say the same, or less.

An import of known files (`--again`) leaves out the snapshots of its plan that the archive has already. A snapshot is
known if of each of its URLs the archive has the capture that would be published: as a version or a redirect of that
time, or as one that a crawl met unchanged then.

Older versions made all files of an import one snapshot of each host (`flattened_imports`): its captures lie more than a
day apart. The same files, imported again, come to their own times. Such a commit has `Source`, and no `Import`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from agent.crawl.frontier import (
    CutOutcome,
    Frontier,
    ImportIndex,
    PlannedHost,
    StoredCapture,
    StoredCrawl,
    StoredCut,
    UntakenCount,
)
from agent.crawl.vocabulary import ARCHIVED, LinkKind, Reason, source_in
from agent.crawl.wget import BatchFiles
from agent.importing.browser_pages import TITLE
from agent.importing.crawls import (
    CrawlsBy,
    CrawlSpan,
    HostCuts,
    Precedence,
    Sighting,
    UrlCaptures,
    cut,
    group_by_pauses,
)
from agent.importing.foreign import Tally, printable
from agent.importing.import_captures import GONE_CONTENT
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import redirect_lists, rendered_forms, sequence
from webarcfs.archive.index.database import CaptureIndex, CaptureRow
from webarcfs.archive.model.arc_paths import DATA_XML, arc_path, data_name, places, second_path, split
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import COPIES, CommitTag, format_time, from_epoch, parse_compact_time, parse_time
from webarcfs.archive.model.url_lists import place_of
from webarcfs.archive.system.files import Sorter
from webarcfs.content.text import HTML_TYPES
from webarcfs.warc import job_warc
from webarcfs.warc.decoding import body_of
from webarcfs.warc.http_response import base32
from webarcfs.warc.job_warc import WarcWriter

# == plan, pure =======================================================================================================


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """What an import would do: its crawls, their hosts, and what is not taken."""

    crawls: tuple[StoredCrawl, ...]
    hosts: tuple[PlannedHost, ...]
    untaken: tuple[UntakenCount, ...]
    losses: tuple[str, ...]
    remarks: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the plan: crawls with their hosts, then what is not taken, and why."""
        for crawl in self.crawls:
            hosts = [host for host in self.hosts if host.crawl == crawl.number]
            if not hosts:
                continue
            captures, size = sum(host.captures for host in hosts), sum(host.bytes for host in hosts)
            span = f"{format_time(from_epoch(crawl.first))} to {format_time(from_epoch(crawl.last))}"
            name = f" ({printable(crawl.name)})" if crawl.name else ""
            yield f"crawl {crawl.number}{name}: {span}, {len(hosts)} hosts, {captures:,} captures, {size:,} bytes"
            yield from (
                f"  {host.domain}: {host.captures:,} captures in {host.cuts} snapshots, {host.bytes:,} bytes"
                for host in hosts
            )
        if not self.hosts:
            yield "nothing would be added"
        for count in self.untaken:
            what = count.note or f"status {count.status}"
            yield f"not taken: {count.number:,} {what}, first {printable(count.first)[:200]}"
        yield from self.losses


# == flattened imports ================================================================================================


_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FlattenedImport:
    """A snapshot of an import, its publication, its first and last capture, the SHA-256 of its files."""

    tag: CommitTag
    publication: str
    first: str
    last: str
    sources: tuple[str, ...]

    def line(self) -> str:
        """Return what `upgrade` says of it."""
        named = ", ".join(digest.removeprefix("sha256:")[:12] for digest in self.sources[:3])
        more = f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else ""
        return (
            f"{self.tag}: an older webarcfs made one snapshot of captures from {self.first} to {self.last}; "
            f"`webarc-agent import --again --publication {self.publication} FILE...` puts each into its time "
            f"(files with SHA-256 {named}{more})"
        )


def flattened_imports(archive: Archive) -> Iterator[FlattenedImport]:
    """Yield the snapshots of imports of older versions that have captures of several days."""
    with CaptureIndex(archive.database) as index:
        spread = list(index.spread())
    for domain, seq, first, last in spread:
        if parse_time(last) - parse_time(first) <= _DAY:
            continue
        tag = CommitTag(from_epoch(seq), domain)
        try:
            store = Repository(archive.repository(domain))
        except NotFound:
            continue
        target = store.ref(tag.ref)
        commit = sequence.crawl_commit(store, target) if target else None
        sources = () if commit is None or commit.message.all("Import") else tuple(commit.message.all("Source"))
        if commit is not None and sources:
            yield FlattenedImport(
                tag, commit.message.publication, format_time(parse_time(first)), format_time(parse_time(last)), sources
            )


# == planning =========================================================================================================


#: Hours without a capture that end a crawl, and snapshots of a host in one crawl, unless options say otherwise.
PAUSE_HOURS, MOST_CUTS = 12, 50
_HOUR = 3600
_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Grouping:
    """The options of an import by which captures become crawls and snapshots; `pause` in seconds."""

    crawls: CrawlsBy = CrawlsBy.AUTO
    pause: int = PAUSE_HOURS * _HOUR
    max_cuts: int = MOST_CUTS


def plan(index: ImportIndex, grouping: Grouping, folder: Path, *, complete: bool) -> list[str]:
    """Write the plan into the index; return a line for each host with more versions than can be kept.

    `folder` receives what is more than memory holds. `complete`: that a page is gone is a version of it.
    """
    index.sort()
    spans = group_by_pauses(index.times(), grouping.pause) or [CrawlSpan("", 0, 0, 0)]
    index.add_crawls(StoredCrawl(number, span.name, span.first, span.last, 0) for number, span in enumerate(spans, 1))
    index.index_captures()
    losses, dropped = Tally(), list[int]()
    for domain, rows in groupby(index.hosts(all_of_them=complete), key=itemgetter(0)):
        host = _Host(index, domain, folder, complete=complete)
        cuts = host.cuts({crawl: first for _, crawl, first in rows}, grouping.max_cuts)
        index.add_cuts(
            StoredCut(crawl, domain, number, begin, 0, number == len(begins), "")
            for crawl, begins in cuts.begins.items()
            for number, begin in enumerate(begins, 1)
        )
        for position, url in cuts.dropped(host.urls()):
            dropped.append(position)
            losses.add(domain, f"a version beyond the {grouping.max_cuts} snapshots of one crawl (--max-cuts)", url)
    index.place_in_cuts(dropped, Reason.MOST_CUTS)
    return losses.lines()


@dataclass(frozen=True, slots=True)
class _Host:
    """A host with its captures in all crawls."""

    index: ImportIndex
    domain: str
    folder: Path
    complete: bool

    def urls(self) -> Iterator[UrlCaptures]:
        for url, rows in self.index.sightings(self.domain, gone=self.complete):
            yield UrlCaptures(url, [Sighting(*row) for row in rows])

    def cuts(self, firsts: Mapping[int, int], most: int) -> HostCuts:
        with ExitStack() as stack:
            return cut(firsts, self.urls, most, lambda rows: _sorted(rows, stack.enter_context(Sorter(self.folder))))


def _sorted(rows: Iterable[Precedence], sorter: Sorter) -> Iterator[Precedence]:
    for numbers in rows:
        sorter.add(b"".join(number.to_bytes(_WIDTH, "big") for number in numbers))
    for row in sorter.rows():
        yield Precedence._make(int.from_bytes(row[at : at + _WIDTH], "big") for at in range(0, len(row), _WIDTH))


# == filling ==========================================================================================================


@dataclass
class Filling:
    """The frontier of the snapshot `cut` is filled in the job's `folder`.

    The last snapshot of a `complete` crawl has the newest state of all URLs that the crawl saw of the host. `earlier`
    are then the URLs that only snapshots before it have captures of.
    """

    index: ImportIndex
    cut: StoredCut
    folder: Path
    batch: int
    complete: bool
    earlier: list[str] = field(default_factory=list)

    def into(self, frontier: Frontier) -> None:
        """Add the URLs. Responses whose heads are those of revisits are written into the WARC `batch`."""
        is_whole = self.complete and bool(self.cut.is_last)
        captures = self.index.captures_of_host(self.cut) if is_whole else self.index.captures_of(self.cut)
        with WarcWriter(BatchFiles(self.folder, self.batch).warc) as spool:
            frontier.add_settled(self._rows(captures, spool))

    def _rows(self, captures: Iterable[StoredCapture], spool: WarcWriter) -> Iterator[dict[str, Any]]:
        for _, group in groupby(captures, key=lambda capture: capture.url):
            capture = newest_version(list(group), complete=self.complete)
            if capture.cut == self.cut.number or not capture.arc:
                yield self._row(capture, spool)
            elif capture.result in ARCHIVED:
                self.earlier.append(capture.url)

    def _row(self, capture: StoredCapture, spool: WarcWriter) -> dict[str, Any]:
        batch, position = capture.batch, capture.position
        if capture.head:
            batch, position = self.batch, self._with_own_head(capture, spool)
        return {
            "id": capture.id,
            "url": capture.url,
            "domain": capture.domain,
            "kind": LinkKind.LINK,
            "state": capture.state,
            "status": capture.status,
            "note": capture.note,
            "batch": batch,
            "position": position,
            "size": capture.size,
            "mime": capture.mime,
            "digest": capture.digest,
            "captured": format_time(from_epoch(capture.time)),
            "arc": capture.arc,
            "target": capture.target,
        }

    def _with_own_head(self, capture: StoredCapture, spool: WarcWriter) -> int:
        with BatchFiles(self.folder, capture.batch).warc.open("rb") as file:
            response = job_warc.response_at(file, capture.position)
            return spool.add(capture.url, from_epoch(capture.time), capture.head, body_of(response))


def newest_version(captures: Sequence[StoredCapture], *, complete: bool) -> StoredCapture:
    """Return of captures of one URL, in order of time, the first one of the newest version, in the last snapshot of it.

    A failure is no version, and that the URL is gone is one only for a `complete` crawl: else the page stays.
    """
    versions = [capture for capture in captures if capture.content and (complete or capture.content != GONE_CONTENT)]
    if not versions:
        return captures[-1]
    newest = versions[-1]
    for capture in reversed(versions):
        if (capture.content, capture.cut) != (versions[-1].content, versions[-1].cut):
            break
        newest = capture
    return newest


# == known snapshots ==================================================================================================


#: Seconds after the time of a snapshot in which the archive may have it: the next free one is taken.
_LATER = 60
_KNOWN: CutOutcome = {"part": None, "known": True, "seconds": {}, "filter_errors": {}}


def leave_out_known(index: ImportIndex, archive: Archive) -> None:
    """Settle the snapshots that the archive has; webarc.db must be synchronised with git."""
    with CaptureIndex(archive.database) as captures:
        for cut in index.cuts():
            if _is_known(index, cut, archive, captures):
                index.set_results(cut, (), json.dumps(_KNOWN))


def _is_known(index: ImportIndex, cut: StoredCut, archive: Archive, captures: CaptureIndex) -> bool:
    store = _store(archive, cut.domain)
    groups = groupby(index.captures_of(cut), key=lambda capture: capture.url)
    published = [newest_version(list(rows), complete=False) for _, rows in groups]
    missing = [
        capture for capture in published
        if capture.content and not _has_stored(captures, store, capture, _shown_kinds(index, capture))
    ]  # fmt: skip
    if store is not None and any(source_in(capture.note) in COPIES for capture in missing):
        tree = _tree_before(store, cut)
        missing = [capture for capture in missing if tree is None or not _is_held(store, tree, capture)]
    if not missing:
        return True
    met = set[tuple[str, int]]() if store is None else _met(store, cut)
    return all(any((name, capture.time) in met for name in (capture.url, *places(capture.url))) for capture in missing)


def _shown_kinds(index: ImportIndex, capture: StoredCapture) -> frozenset[str]:
    """Return the kinds of what a browser showed at a capture."""
    if Reason.RENDERED not in capture.note.split(","):
        return frozenset()
    return frozenset(part.kind for part in index.parts_of(capture.id))


def _has_stored(
    captures: CaptureIndex, store: Repository | None, capture: StoredCapture, kinds: Set[str] = frozenset()
) -> bool:
    """Return whether the archive has a capture, with what a browser showed where that has these kinds."""
    versions, redirects = captures.at(f"/{arc_path(capture.url)}", f"/{second_path(capture.url)}")
    rows = [row for row in (redirects if capture.target else versions) if row.url == capture.url]
    same = [row for row in rows if row.captured == capture.time]
    if store is None or not kinds:
        return bool(same)
    if kinds == {TITLE}:  # it counts for a page without a title of its own
        same = [row for row in same if row.title or row.mime_type not in HTML_TYPES or _has_form(store, row)]
        return bool(same)
    return any(_has_form(store, row) for row in same)


def _has_form(store: Repository, row: CaptureRow) -> bool:
    """Return whether an archived version has something that a browser showed of it."""
    domain, arc = split(row.path)
    return bool(rendered_forms.named_at(store, CommitTag(from_epoch(row.first), domain), arc))


def _store(archive: Archive, domain: str) -> Repository | None:
    try:
        return Repository(archive.repository(domain))
    except NotFound:
        return None


def _tree_before(store: Repository, cut: StoredCut) -> str | None:
    """Return the tree of the newest crawl at the time of a snapshot; None if there is none."""
    by_time = {parse_compact_time(time).timestamp(): oid for time, oid in store.refs(CRAWLS).items()}
    newest = max((time for time in by_time if time - cut.time <= _LATER), default=None)
    return None if newest is None else store.commit(by_time[newest]).tree


def _is_held(store: Repository, tree: str, capture: StoredCapture) -> bool:
    """Return whether a capture is a copy, and a tree has a response of its URL, or with its bytes in its place."""
    if source_in(capture.note) not in COPIES:
        return False
    if capture.url in redirect_lists.urls(store, store.find(tree, place_of(capture.url))):
        return True
    for arc in places(capture.url):
        entry = store.find(tree, f"{arc}/{DATA_XML}")
        if entry is None or not entry.is_document:
            continue
        stored = data_xml.metadata(store.read(entry.oid))
        if stored.source not in COPIES and (stored.url == capture.url or _has_bytes(store, tree, arc, capture)):
            return True
    return False


def _has_bytes(store: Repository, tree: str, arc: str, capture: StoredCapture) -> bool:
    """Return whether the ARC at a path has the bytes of a capture."""
    data = store.find(tree, f"{arc}/{data_name(capture.url)}")
    if data is None or data.is_tree:
        return False
    return base32(store.digest(data.oid)) == capture.content.partition(" ")[0]


def _met(store: Repository, cut: StoredCut) -> set[tuple[str, int]]:
    """Return ARC or URL, and time, of what crawls met unchanged that have the time of a snapshot."""
    names_and_times: set[tuple[str, int]] = set()
    for time, oid in store.refs(CRAWLS).items():
        if not 0 <= parse_compact_time(time).timestamp() - cut.time <= _LATER:
            continue
        crawl = sequence.crawl_commit(store, oid)
        met_list = None if crawl is None else redirect_lists.of_crawl(store, crawl)
        if crawl is not None and met_list is not None:
            tree = redirect_lists.seen_tree(crawl)
            met = (
                *redirect_lists.met_arcs(store, tree, met_list),
                *redirect_lists.met_redirects(store, tree, met_list),
            )
            names_and_times |= {(name, at.time) for name, at in met if at is not None}
    return names_and_times
