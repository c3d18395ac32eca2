"""Fills the frontier of a snapshot of a host from the index of its import: the state of each URL, as a crawl leaves it.

Of the captures of a URL in a snapshot the first one of its newest version counts; all others say the same, or less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from agent.capture.wgetcommand import BatchFiles
from agent.frontier.importindex import ImportIndex
from agent.frontier.rows import StoredCapture, StoredCut
from agent.frontier.store import Frontier
from agent.importing.captures import GONE_CONTENT
from agent.policy.vocabulary import LinkKind, Result
from webarcfs.archive.model.metadata import format_time, from_epoch
from webarcfs.warc import jobwarc
from webarcfs.warc.decoding import body_of
from webarcfs.warc.writer import WarcWriter

_STORED = frozenset({Result.ADDED, Result.CHANGED, Result.UNCHANGED})


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
            elif capture.result in _STORED:
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
            response = jobwarc.response_at(file, capture.position)
            return spool.add(capture.url, from_epoch(capture.time), capture.head, body_of(response))


def newest_version(captures: Sequence[StoredCapture], *, complete: bool) -> StoredCapture:
    """Return of captures of one URL, in order of time, the first one of the newest version, in the last snapshot of it.

    A failure is no version, and that the URL is gone is one only for a `complete` crawl: else the page stays.
    """
    versions = [each for each in captures if each.content and (complete or each.content != GONE_CONTENT)]
    if not versions:
        return captures[-1]
    newest = versions[-1]
    for capture in reversed(versions):
        if (capture.content, capture.cut) != (versions[-1].content, versions[-1].cut):
            break
        newest = capture
    return newest
