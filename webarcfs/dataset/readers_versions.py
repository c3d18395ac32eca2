"""The versions of documents that somebody may see, each with its captures, in order of host and path.

A version is one content of a URL, which one or more captures share. What a reader sees of a row of webarc.db is decided
by `access/visible_captures`. Where nothing of a host is hidden, and no rule is about anybody, the same is decided
without asking it: an archive has millions of rows.

Narrowing acts on captures, and a version has those that remain. In memory are the versions of one path.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple, Self

from webarcfs.access.access_rules import Standing, VisibleSnapshot
from webarcfs.access.gate import DomainFacts, KnownGate
from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.index import database
from webarcfs.archive.index.database import CaptureIndex, CaptureRow, Meeting
from webarcfs.archive.index.stored_rows import StoredRow, StoredRows
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.url_lists import Met, spelled
from webarcfs.dataset.narrowing import DatasetUnit, Narrowing, year_of

#: Kinds of the lists of what crawls met.
_ARCS, _REDIRECTS = 0, 1
_ERROR = 400
#: Why something is not in a dataset.
RESOURCES = "versions of the other role (--role any has them)"
ERROR_PAGES = "versions of error pages (--errors has them)"
REDIRECTS = "redirects (--redirects has them)"


class TimedCapture(NamedTuple):
    """A capture of a version: its time in seconds since 1970, the snapshot of its crawl, and the URL asked for.

    `is_revisit`: the crawl met unchanged what an earlier one had stored.
    """

    time: int
    seq: int
    url: str
    is_revisit: bool


class VisibleSpan(NamedTuple):
    """The snapshots from `first` up to `last` have the version, which the crawl of `stored` stored; which are shown."""

    first: int
    last: int
    stored: int
    shown: Callable[[], list[int]]


class ReadersVersion:
    """One content of a URL, with its captures in order of time, and the spans of snapshots that have it."""

    __slots__ = ("captures", "domain", "row", "spans")

    def __init__(self, domain: str, row: StoredRow) -> None:
        self.domain = domain
        self.row = row
        self.spans: list[VisibleSpan] = []
        self.captures: list[TimedCapture] = []


class UnitRow(NamedTuple):
    """What a row of a dataset is of: a version, a year in which it was captured, a capture of it, or a snapshot of it.

    `time` and `seq` are those of its first capture, of the first one in the year, of its capture, or of the last one up
    to the snapshot `seq`. `url` is that of the capture; with versions and their years it is the version's. `last` and
    `captures` are of a version, or of its year. `flag` is whether a capture is a revisit, or a snapshot's crawl
    `carried` the version without meeting it.
    """

    version: ReadersVersion
    time: int
    seq: int
    url: str
    last: int
    captures: int
    flag: bool


class DomainOverview(NamedTuple):
    """A host as the asker sees it: snapshots, those of complete crawls, the first and the last, rows of the unit."""

    domain: str
    snapshots: int
    complete: int
    first: int
    last: int
    units: int


class ReadersVersions:
    """What the reader of a gate sees of an archive. A context manager, for one thread; the gate looks once."""

    def __init__(self, gate: KnownGate, narrowing: Narrowing) -> None:
        self._gate = gate
        self._narrowing = narrowing
        self._path = gate.archive.database
        #: Reason → number of what is left out, of what the asker may see.
        self.left_out: dict[str, int] = {}
        #: Rows of webarc.db that were read: versions.
        self.read = 0
        #: The hosts that were gone through.
        self.overviews: list[DomainOverview] = []
        gate.look()
        #: Of the host that is gone through: the publication of each snapshot, and the snapshots that are open.
        self.publications: dict[int, str] = {}
        self.shown: dict[int, VisibleSnapshot] = {}
        self._has_rules = bool(gate.rules().rules)

    def __enter__(self) -> Self:
        self._rows = StoredRows(self._path)
        self._index = CaptureIndex(self._path)
        self._visible = VisibleCaptures(self._gate, self._index)
        return self

    def __exit__(self, *_: object) -> None:
        self._index.close()
        self._rows.__exit__()

    @property
    def domains(self) -> list[str]:
        """The hosts in question of which the asker sees a snapshot, in order."""
        wanted = self._narrowing.domains
        names = (name for name in database.domains(self._path) if not wanted or name in wanted)
        return [name for name in names if self._gate.facts(name).shown or self._sees_closed(name)]

    def facts(self, domain: str) -> DomainFacts:
        """Return what the gate knows of a host."""
        return self._gate.facts(domain)

    def units(self, domain: str) -> Iterator[UnitRow]:
        """Yield the rows of a host, in order of path, URL and time; note its overview at the end."""
        self._domain, self._facts = domain, self._gate.facts(domain)
        facts = self._facts
        # What several publications saw of a host of which something is hidden is put together snapshot by snapshot.
        is_joined = not facts.is_whole and len({snapshot.publication for snapshot in facts.shown}) > 1
        is_plain = self._narrowing.unit is not DatasetUnit.SNAPSHOT or not is_joined
        self._is_open = facts.sees_all and is_plain and not self._has_rules
        self.shown = {snapshot.seq: snapshot for snapshot in facts.shown}
        self.publications = {snapshot.seq: snapshot.publication for snapshot in facts.snapshots}
        self._newest: list[list[VisibleSnapshot]] | None = None
        self._last_seqs = self._chosen_snapshots()
        number = 0
        expand = {
            DatasetUnit.VERSION: self._versions,
            DatasetUnit.YEAR: self._years,
            DatasetUnit.CAPTURE: self._captures,
            DatasetUnit.SNAPSHOT: self._snapshots,
        }
        make = expand[self._narrowing.unit]
        for version in self._all_versions():
            for unit in make(version):
                number += 1
                yield unit
        seqs = self._counted_snapshots()
        complete = self._index.complete(domain)
        overview = DomainOverview(
            domain, len(seqs), sum(seq in complete for seq in seqs), seqs[0] if seqs else 0, seqs[-1] if seqs else 0,
            number,
        )  # fmt: skip
        if seqs or number:
            self.overviews.append(overview)

    # -- units -------------------------------------------------------------------------------------------------------

    def _versions(self, version: ReadersVersion) -> Iterator[UnitRow]:
        captures = self._narrowed(version.captures)
        if captures:
            first = captures[0]
            yield UnitRow(version, first.time, first.seq, version.row.url, captures[-1].time, len(captures), False)

    def _years(self, version: ReadersVersion) -> Iterator[UnitRow]:
        for _, of_year in groupby(self._narrowed(version.captures), lambda capture: year_of(capture.time)):
            captures = list(of_year)
            first = captures[0]
            yield UnitRow(version, first.time, first.seq, version.row.url, captures[-1].time, len(captures), False)

    def _captures(self, version: ReadersVersion) -> Iterator[UnitRow]:
        for time, seq, url, is_revisit in self._narrowed(version.captures):
            yield UnitRow(version, time, seq, url, time, 1, is_revisit)

    def _snapshots(self, version: ReadersVersion) -> Iterator[UnitRow]:
        captures = sorted(version.captures, key=itemgetter(1, 0))
        own = {capture.seq for capture in captures}
        during, publication = self._narrowing.during, self._narrowing.publication
        at = self._last_seqs
        for span in version.spans:
            for seq in span.shown():
                if at is not None and seq not in at:
                    continue
                if (during is not None and seq not in during) or (
                    publication and self.publications.get(seq) != publication
                ):
                    continue
                place = bisect_right(captures, seq, key=attrgetter("seq")) - 1
                capture = captures[max(place, 0)]
                yield UnitRow(version, capture.time, seq, capture.url, capture.time, 1, seq not in own)

    def _narrowed(self, captures: list[TimedCapture]) -> list[TimedCapture]:
        during, publication = self._narrowing.during, self._narrowing.publication
        if during is not None:
            captures = [capture for capture in captures if capture.time in during]
        if publication:
            captures = [capture for capture in captures if self.publications.get(capture.seq) == publication]
        return captures

    def _chosen_snapshots(self) -> frozenset[int] | None:
        """Return the snapshot that `--at` means of this host; None: all of them."""
        at = self._narrowing.at
        if at is None:
            return None
        if isinstance(at, CommitTag):
            return frozenset({int(at.crawl_time.timestamp())} if at.domain == self._domain else ())
        place = bisect_right(self._facts.seqs, int(at.timestamp()))
        return frozenset(self._facts.seqs[place - 1 : place] if place else ())

    def _counted_snapshots(self) -> list[int]:
        """Return the snapshots of this host that the asker sees, and that were asked for."""
        during, publication, at = self._narrowing.during, self._narrowing.publication, self._last_seqs
        return [
            seq
            for seq in self._facts.seqs
            if (during is None or seq in during)
            and (not publication or self.publications.get(seq) == publication)
            and (at is None or seq in at)
        ]

    # -- versions ----------------------------------------------------------------------------------------------------

    def _all_versions(self) -> Iterator[ReadersVersion]:
        documents = groupby(self._rows.versions(self._domain), attrgetter("path"))
        for _, rows in documents:
            of_path = list(rows)
            self.read += len(of_path)
            yield from self._of_path(of_path, _ARCS)
        for _, rows in groupby(self._rows.redirects(self._domain), attrgetter("url")):
            if self._narrowing.redirects:
                yield from self._of_path(list(rows), _REDIRECTS)
            else:
                self.leave_out(REDIRECTS, sum(1 for row in rows if self._judge(row, []) is not None))

    def _of_path(self, rows: list[StoredRow], kind: int) -> Iterator[ReadersVersion]:
        """Yield the versions of the documents at a path, or of a redirect."""
        narrowing = self._narrowing
        number = rows[0].number  # the lowest at the path: they are in order
        self._of_this_path: list[CaptureRow] = []
        self._shown_at: dict[int, list[int]] | None = None
        met: list[tuple[int, int, int]] | None = None
        if len(rows) == 1:
            groups = [rows]
        else:
            rows.sort(key=_identity)
            groups = [list(group) for _, group in groupby(rows, _identity)]
        versions: list[ReadersVersion] = []
        for group in groups:
            row = group[0]
            is_asked = kind == _REDIRECTS or narrowing.fits_role(is_resource=bool(row.resource))
            is_error = kind == _ARCS and row.status >= _ERROR and not narrowing.errors
            fits_type = narrowing.fits_type(row.mime_type)
            if not fits_type and self._is_open:
                continue
            if met is None:
                met = self._rows.met(self._domain, kind, number) if number else []
            version: ReadersVersion | None = None
            for row in group:
                judged = self._judge(row, met)
                if judged is None:
                    continue
                if version is None:
                    version = ReadersVersion(self._domain, row)
                span, captures = judged
                version.spans.append(span)
                version.captures += captures
            if version is None or not fits_type:
                continue
            if not is_asked or is_error:
                self.leave_out(ERROR_PAGES if is_asked else RESOURCES, 1)
                continue
            if len(version.captures) > 1:
                version.captures = _distinct(version.captures)
            versions.append(version)
        if len(versions) > 1:
            versions.sort(key=lambda version: (version.row.number, version.captures[0]))
        yield from versions

    def _judge(self, row: StoredRow, met: list[tuple[int, int, int]]) -> tuple[VisibleSpan, list[TimedCapture]] | None:
        """Return where the asker sees a row, and its captures; None if the asker does not see it."""
        if not self._is_open:
            return self._judge_by_gate(row, met)
        seqs = self._facts.seqs
        begin, after = bisect_left(seqs, row.first), bisect_left(seqs, row.last)
        if begin == after:
            return None
        since = seqs[begin]
        own = [meeting for meeting in met if row.first <= meeting[0] < row.last and meeting[0] in self.shown]
        captured = row.captured
        if row.stored not in self.shown:
            captured = next((time for seq, time, _ in own if seq == since), since)
        captures = [TimedCapture(captured, since, row.url, False)]
        for seq, time, spelling in own:
            if time != captured:
                captures.append(TimedCapture(time, seq, row.url if row.target else spelled(row.url, spelling), True))
        return VisibleSpan(row.first, row.last, row.stored, lambda: seqs[begin:after]), captures

    def _judge_by_gate(
        self, row: StoredRow, met: list[tuple[int, int, int]]
    ) -> tuple[VisibleSpan, list[TimedCapture]] | None:
        stored_row = _as_capture_row(row, self.publications.get(row.stored, ""))
        meetings = (Meeting(seq, Met(time, spelling)) for seq, time, spelling in met)
        captures = [
            TimedCapture(capture.captured, capture.since, capture.url, capture.is_revisit)
            for capture in self._visible.of_row(stored_row, meetings)
        ]
        if not captures:
            return None
        self._of_this_path.append(stored_row)
        return VisibleSpan(row.first, row.last, row.stored, lambda: self._snapshots_with(stored_row)), captures

    def _snapshots_with(self, row: CaptureRow) -> list[int]:
        """Return the snapshots whose state, as the asker sees it, has a row; closed ones where no other has it."""
        if self._shown_at is None:
            self._shown_at = self._winners()
        shown = self._shown_at.get(id(row), [])
        return shown or [snapshot.seq for snapshot in self._facts.closed if self._has(row)(snapshot)]

    def _winners(self) -> dict[int, list[int]]:
        """Return, by row of this path, the snapshots whose state has it.

        That state is of the newest snapshot of each publication; of two that have something at the path the newer one
        counts. So a row may be there after the host itself has it no more.
        """
        if self._newest is None:
            self._newest = list(self._facts.newest_of_each())
        rows, seqs = self._of_this_path, self._facts.seqs
        first, last = min(row.first for row in rows), max(row.last for row in rows)
        winners: dict[int, list[int]] = {}
        for place in range(bisect_left(seqs, first), len(seqs)):
            newest = self._newest[place]
            if all(snapshot.seq >= last for snapshot in newest):
                break
            winner = next((row for snapshot in newest for row in rows if self._has(row)(snapshot)), None)
            if winner is not None:
                winners.setdefault(id(winner), []).append(seqs[place])
        return winners

    def _has(self, row: CaptureRow) -> Callable[[VisibleSnapshot], bool]:
        return lambda snapshot: self._visible.contains(self._domain, snapshot, row)

    def _sees_closed(self, domain: str) -> bool:
        """Return whether a rule may allow the asker something of what is under embargo."""
        is_named = bool(self._gate.reader.name) and any(
            rule.user == self._gate.reader.name for rule in self._gate.rules().rules
        )
        return is_named and any(snapshot.standing is Standing.CLOSED for snapshot in self._gate.facts(domain).snapshots)

    def leave_out(self, reason: str, number: int) -> None:
        """Count something that is left out."""
        if number:
            self.left_out[reason] = self.left_out.get(reason, 0) + number


def _identity(row: StoredRow) -> tuple[object, ...]:
    """Return what rows of one version share."""
    return row.number, row.url, row.status, row.mime_type, row.resource, row.digest, row.blob, row.target


def _distinct(captures: list[TimedCapture]) -> list[TimedCapture]:
    """Return captures in order of time, one of each time and URL: a version that an import splits keeps its own."""
    captures.sort()
    first: dict[tuple[int, str], TimedCapture] = {}
    for capture in captures:
        first.setdefault((capture.time, capture.url), capture)
    return captures if len(first) == len(captures) else list(first.values())


def _as_capture_row(row: StoredRow, publication: str) -> CaptureRow:
    return CaptureRow(
        url=row.url, path=row.path, surt="", first=row.first, last=row.last, stored=row.stored, captured=row.captured,
        status=row.status, mime_type=row.mime_type, title=row.title, blob=row.blob, head=row.head, size=row.size,
        digest=bytes.fromhex(row.digest), target=row.target, publication=publication, is_resource=bool(row.resource),
    )  # fmt: skip
