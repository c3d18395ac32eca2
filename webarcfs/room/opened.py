"""The archive with one record open, whatever its state: as readers would see it if that alone were released.

So staff preview a crawl before its release, and its check shows its pages. Without a record all is open, as staff see
it: snapshots released or not, and withheld pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from webarcfs.access.access_rules import AccessRules, Answer, Standing
from webarcfs.access.gate import DomainFacts, KnownGate, Reader, opened_to_staff
from webarcfs.access.reader_stores import ReaderRecords, RecordHead, whole_head
from webarcfs.archive.catalogue.catalogue import ShownRecord
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.room.visit import Services, Shared

#: No proxy can give such a name: it has a character that does not print.
_STAFF = "\0staff"


class OpenedGate(KnownGate):
    """A gate with the snapshots of a record open, whatever its state; without a record, with all but discarded ones."""

    def __init__(self, archive: Archive, record: str | None) -> None:
        super().__init__(archive, Reader(f"{_STAFF} {record or ''}"))
        self._record = record
        self._opened: dict[str, tuple[DomainFacts, DomainFacts]] = {}

    def facts(self, domain: str) -> DomainFacts:
        """Return what is known of a domain, with the record's snapshots open."""
        own = super().facts(domain)
        kept = self._opened.get(domain)
        if kept is None or kept[0] is not own:
            kept = self._opened[domain] = (own, self._with_record(own))
        return kept[1]

    def _with_record(self, own: DomainFacts) -> DomainFacts:
        snapshots = [
            opened_to_staff(snapshot)
            if self._record is None
            else replace(snapshot, standing=Standing.OPEN, until=None)
            if own.records.get(snapshot.seq) == self._record
            else snapshot
            for snapshot in own.snapshots
        ]
        return DomainFacts(snapshots, own.records)

    def rules(self) -> AccessRules:
        """Return the access rules that hold: none for staff, who mend a file with faults here."""
        return AccessRules() if self._record is None else super().rules()

    def hides_headers(self, store: Repository, stored: int) -> bool:
        """Return whether headers may have secrets, which a preview shows as little as readers get them."""
        return self._record is not None and super().hides_headers(store, stored)

    def with_rules(self, answer: Answer, url: str, captured: datetime) -> Answer:
        """Return an answer after the access rules, which a preview shows as readers would meet them."""
        return answer if self._record is None else super().with_rules(answer, url, captured)


class OpenedRecords(ReaderRecords):
    """Records one by one, as their pages need them: that record, or all of them, whatever their state.

    Its lists are those of readers.
    """

    def __init__(self, archive: Archive, record: str | None) -> None:
        super().__init__(archive)
        self._record = record

    def _judged(self, shown: ShownRecord, whole: Callable[[str], bool]) -> RecordHead | None:
        return whole_head(shown) if self._record in (None, shown.id) else super()._judged(shown, whole)


class OpenedServices(Services):
    """The archive with one record open, or all of them."""

    def __init__(self, shared: Shared, record: str | None, *, of_one_thread: bool = True) -> None:
        gate, records = OpenedGate(shared.archive, record), OpenedRecords(shared.archive, record)
        super().__init__(shared, gate.reader, of_one_thread=of_one_thread, gate=gate, records=records)
