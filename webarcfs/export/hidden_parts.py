"""What an export for staff takes along that readers do not see: pages that rules withhold, snapshots that are not open.

Whoever hands an export over shall know of it. The rules and the catalogue are asked as they are while the export is
made, for a reader without a name; webarc.db says which pages the snapshots have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from webarcfs.access.access_rules import Access, AccessRules, Standing, key_spans, plain_key, strict
from webarcfs.access.gate import KnownGate, Reader
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.database import CaptureIndex, CaptureRow, Span
from webarcfs.archive.model.arc_paths import split
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import CommitTag, from_epoch
from webarcfs.export.export_result import Exportable
from webarcfs.export.selection import Opener, SelectedSnapshot, Selection, Stop
from webarcfs.export.version_selection import VersionSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenParts:
    """What readers do not see: URLs that rules withhold, and snapshots that are not released or under embargo.

    `hosts` are those of the snapshots.
    """

    pages: int = 0
    snapshots: int = 0
    hosts: int = 0

    def as_fields(self) -> dict[str, int]:
        """Return it for JSON."""
        return asdict(self)


def count_hidden(archive: Archive, selection: Exportable, stop: Stop, since: CommitTag | None = None) -> HiddenParts:
    """Return what a selection for staff has that readers do not see.

    Of an export `since` a snapshot it is what is not in that one. Raises Interrupted, and what the gate and webarc.db
    raise.
    """
    gate = KnownGate(archive, Reader())
    gate.look()
    if isinstance(selection, VersionSelection):
        return _count_in_versions(gate, selection, stop)
    closed: dict[str, int] = {}
    for domain, snapshots in selection.chosen.items():
        _look_at(stop)
        open_seqs = _open_seqs(gate, domain)
        if count := sum(seq not in open_seqs for seq in map(_seq_of, snapshots)):
            closed[domain] = count
    pages = _count_pages(archive, selection, gate.rules(), gate.now(), stop, since)
    return HiddenParts(pages=pages, snapshots=sum(closed.values()), hosts=len(closed))


def _look_at(stop: Stop) -> None:
    """Raise Interrupted if someone asked for the end."""
    if stop():
        raise Interrupted("the export was interrupted; the same command resumes it")


def _seq_of(snapshot: SelectedSnapshot) -> int:
    return int(snapshot.tag.crawl_time.timestamp())


def _open_seqs(gate: KnownGate, domain: str) -> set[int]:
    return {snapshot.seq for snapshot in gate.snapshots(domain) if snapshot.standing is Standing.OPEN}


def _is_withheld(rules: AccessRules, url: str, captured: int, at: datetime) -> bool:
    rule = rules.find(url, "", from_epoch(captured), at)
    return rule is not None and rule.access is not Access.ALLOW


def _count_in_versions(gate: KnownGate, selection: VersionSelection, stop: Stop) -> HiddenParts:
    rules, at = gate.rules(), gate.now()
    open_seqs: dict[str, set[int]] = {}
    is_ruled: dict[str, bool] = {}
    urls: set[str] = set()
    closed: set[tuple[str, int]] = set()
    for row in selection.after(0):
        _look_at(stop)
        if row.domain not in open_seqs:
            open_seqs[row.domain] = _open_seqs(gate, row.domain)
            is_ruled[row.domain] = rules.takes_from(row.domain, "", at)
        if row.seq not in open_seqs[row.domain]:
            closed.add((row.domain, row.seq))
        if is_ruled[row.domain] and _is_withheld(rules, row.url, row.captured, at):
            urls.add(row.url)
    return HiddenParts(pages=len(urls), snapshots=len(closed), hosts=len({domain for domain, _ in closed}))


def _count_pages(  # noqa: PLR0917 # of one caller
    archive: Archive, selection: Selection, rules: AccessRules, at: datetime, stop: Stop, since: CommitTag | None
) -> int:
    """Return how many URLs of the snapshots a rule withholds from readers without a name."""
    in_force = [rule for rule in strict(rules.rules) if not rule.user and (rule.lapses is None or at < rule.lapses)]
    if not in_force:
        return 0
    has = _has(selection, 0 if since is None else int(since.crawl_time.timestamp()))
    count = 0
    with CaptureIndex(archive.database) as index:
        for low, high in _merged(span for rule in in_force for span in key_spans(rule)):
            counted = ""
            for row in index.below(Span(low, high)):
                _look_at(stop)
                key = plain_key(row.surt)
                if row.url == counted or not any(rule.fits(key) for rule in in_force):
                    continue
                if has(row) and _is_withheld(rules, row.url, row.captured, at):
                    count, counted = count + 1, row.url
    return count


def _merged(spans: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return spans that do not overlap."""
    merged: list[tuple[str, str]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _has(selection: Selection, since: int) -> Callable[[CaptureRow], bool]:
    """Return the predicate whether a snapshot of a selection has a version, and the one `since` has it not."""
    seqs = {domain: list(map(_seq_of, snapshots)) for domain, snapshots in selection.chosen.items()}
    narrowed = _Narrowed(selection.open, selection.chosen)

    def has(row: CaptureRow) -> bool:
        domain, _ = split(row.path)
        own = seqs.get(domain, [])
        if row.first <= since:
            return False
        place = bisect_left(own, row.first)
        while place < len(own) and own[place] < row.last:
            if row.target or narrowed.has(selection.chosen[domain][place], row):
                return True
            place += 1
        return False

    return has


class _Narrowed:
    """Asks git where a snapshot is exported as its publication saw it, which may be less than the whole."""

    def __init__(self, open_: Opener, chosen: Mapping[str, tuple[SelectedSnapshot, ...]]) -> None:
        self._open = open_
        self._chosen = chosen
        self._stores: dict[str, Repository] = {}
        self._whole: dict[str, bool] = {}

    def has(self, snapshot: SelectedSnapshot, row: CaptureRow) -> bool:
        """Return whether a snapshot, which has a document, is exported with it."""
        domain, arc = split(row.path)
        if domain not in self._stores:
            self._stores = {domain: self._open(domain)}  # rows come host by host
        store = self._stores[domain]
        if snapshot.commit not in self._whole:
            self._whole[snapshot.commit] = store.commit(snapshot.commit).tree == snapshot.tree
        return self._whole[snapshot.commit] or store.find(snapshot.tree, arc) is not None
